# SPDX-License-Identifier: BSD-2-Clause
# collnetd: main.c over a convenience library, which tests and fuzzers link too.

# The unit, with the paths of this build.
daemon/collnetd.service: daemon/collnetd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) daemon && $(SED) -e 's|@sbindir[@]|$(sbindir)|g' \
		-e 's|@sysconfdir[@]|$(sysconfdir)|g' $(top_srcdir)/daemon/collnetd.service.in >$@.tmp && \
		mv -f $@.tmp $@
EXTRA_DIST += daemon/collnetd.service.in
CLEANFILES += daemon/collnetd.service
if HAVE_SYSTEMD
systemdsystemunit_DATA = daemon/collnetd.service
endif
