# SPDX-License-Identifier: BSD-2-Clause
# The tarball has every file of the repository, and uninstall leaves no file. Where LONG is yes, also make
# distcheck: the tarball builds out of tree from a read-only source.
# timeout: 1200
set -u
cd "$(dirname "$0")/../.." || exit 1
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
unset PREFIX COLLNET_CORPUS COLLNET_SOURCE CMOCKA_MESSAGE_OUTPUT

# run TARGET ARGUMENT...
run() {
	make -C "$BUILD" "$@" >"$t/log" 2>&1 && return
	tail -n 60 "$t/log"
	exit 1
}
run install DESTDIR="$t/root"
[ -f "$(find "$t/root" -name libcollnet.a)" ] || {
	echo "nothing was installed"
	exit 1
}
run uninstall DESTDIR="$t/root"
find "$t/root" ! -type d >"$t/left"
[ ! -s "$t/left" ] || {
	echo "uninstall leaves:"
	cat "$t/left"
	exit 1
}

if [ "${LONG:-no}" = yes ]; then
	export REPLAY_MUTATIONS=0 CONFIG_SHELL=/bin/sh
	# It is the tarball that is tested: compiled the fastest way, where the compiler guesses worse
	# what is a mistake, with those tests that read the source's files. The corpora's files suffice.
	tests='$(fuzz_tests) tests/unit/test_topo'
	run -j"${JOBS:-1}" distcheck check_PROGRAMS="$tests" TESTS="$tests" \
		DISTCHECK_CONFIGURE_FLAGS='CFLAGS="-O0 -Wno-error"'
else
	XZ_OPT=-0 run dist-xz
fi
[ -d .git ] && command -v git >/dev/null || exit 0
git ls-files | grep -v '^\.gitignore$\|/\.gitignore$' | sort >"$t/repository" || exit 0
tar tf "$BUILD"/collnet-*.tar.xz | sed 's|^[^/]*/||' | sort >"$t/tarball"
comm -23 "$t/repository" "$t/tarball" >"$t/missing"
[ ! -s "$t/missing" ] || {
	echo "not in the tarball:" $(cat "$t/missing")
	exit 1
}
