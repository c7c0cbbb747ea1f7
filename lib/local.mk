# SPDX-License-Identifier: BSD-2-Clause
# The library. Each room is a convenience library, so that tests link what ships and can look at
# the undefined symbols of a room alone; libcn_all.la is all of them.

pkginclude_HEADERS = lib/include/collnet/collnet.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = lib/collnet.pc

noinst_LTLIBRARIES += \
	lib/libcn_util.la lib/libcn_proto.la lib/libcn_topo.la lib/libcn_sched.la \
	lib/libcn_link.la lib/libcn_coll.la lib/libcn_client.la lib/libcn_all.la

lib_libcn_util_la_SOURCES = \
	lib/util/util.h

lib_libcn_proto_la_SOURCES = \
	lib/proto/frame.h

lib_libcn_topo_la_SOURCES = \
	lib/topo/topo.h

lib_libcn_sched_la_SOURCES = \
	lib/sched/sched.h

lib_libcn_link_la_SOURCES = \
	lib/link/link.h

lib_libcn_coll_la_SOURCES =

lib_libcn_client_la_SOURCES =

lib_libcn_all_la_SOURCES =
lib_libcn_all_la_LIBADD = \
	lib/libcn_client.la lib/libcn_coll.la lib/libcn_link.la lib/libcn_sched.la \
	lib/libcn_proto.la lib/libcn_topo.la lib/libcn_util.la $(PCAP_LIBS) $(LIBNET_LIBS)

lib_LTLIBRARIES += lib/libcollnet.la
lib_libcollnet_la_SOURCES =
lib_libcollnet_la_LIBADD = lib/libcn_all.la
lib_libcollnet_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 \
	-Wl,--version-script=$(top_srcdir)/lib/collnet.map
EXTRA_lib_libcollnet_la_DEPENDENCIES = lib/collnet.map
EXTRA_DIST += lib/collnet.map
