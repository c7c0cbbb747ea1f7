# SPDX-License-Identifier: BSD-2-Clause
# collnetd: main.c over a convenience library, which tests and fuzzers link too.

noinst_LTLIBRARIES += daemon/libcn_daemon.la
daemon_libcn_daemon_la_LIBTOOLFLAGS = --tag=disable-shared
daemon_libcn_daemon_la_SOURCES = \
	daemon/blocks.c \
	daemon/client.c \
	daemon/close.c \
	daemon/combine.c \
	daemon/config.c \
	daemon/config.h \
	daemon/daemon.h \
	daemon/event.c \
	daemon/interface.c \
	daemon/interface.h \
	daemon/listen.c \
	daemon/log.c \
	daemon/mapping.c \
	daemon/mapping.h \
	daemon/notify.c \
	daemon/operation.c \
	daemon/parent.c \
	daemon/parent.h \
	daemon/priv.c \
	daemon/quota.c \
	daemon/reaper.c \
	daemon/receive.c \
	daemon/reload.c \
	daemon/report.c \
	daemon/request.c \
	daemon/rings.c \
	daemon/seccomp.c \
	daemon/start.c \
	daemon/subuid.c \
	daemon/time_slice.c \
	daemon/unmap.c

sbin_PROGRAMS += daemon/collnetd
daemon_collnetd_SOURCES = daemon/main.c
daemon_collnetd_LDADD = daemon/libcn_daemon.la lib/libcn_all.la

# The unit, with the paths of the installation.
daemon/collnetd.service: daemon/collnetd.service.in stamp-directories
	$(AM_V_GEN)$(MKDIR_P) daemon && $(SED) -e 's|@sbindir[@]|$(sbindir)|g' \
		-e 's|@sysconfdir[@]|$(sysconfdir)|g' $(top_srcdir)/daemon/collnetd.service.in >$@.tmp && \
		mv -f $@.tmp $@
EXTRA_DIST += daemon/collnetd.service.in daemon/collnet.sysusers daemon/collnet.sysctl
dist_doc_DATA += daemon/collnetd.conf
CLEANFILES += daemon/collnetd.service
if HAVE_SYSTEMD
systemdsystemunit_DATA = daemon/collnetd.service
endif

# The user and the group, which systemd-sysusers creates, and what systemd-sysctl sets.
if HAVE_SYSUSERS
install-data-hook: install-sysusers
install-sysusers:
	$(MKDIR_P) $(DESTDIR)$(sysusersdir) $(DESTDIR)$(sysctldir)
	$(INSTALL_DATA) $(top_srcdir)/daemon/collnet.sysusers \
		$(DESTDIR)$(sysusersdir)/collnet.conf
	$(INSTALL_DATA) $(top_srcdir)/daemon/collnet.sysctl \
		$(DESTDIR)$(sysctldir)/10-collnet.conf
uninstall-hook: uninstall-sysusers
uninstall-sysusers:
	rm -f $(DESTDIR)$(sysusersdir)/collnet.conf $(DESTDIR)$(sysctldir)/10-collnet.conf
endif
