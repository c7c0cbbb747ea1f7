# SPDX-License-Identifier: BSD-2-Clause
# The functions that collnet.h declares are exactly those that the symbol map names, that the
# shared library shows, and that the manual documents (named in NAME, and with a prototype in
# SYNOPSIS); and each has a manual page of its own name.
set -u
cd "$(dirname "$0")/../.." || exit 1
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
status=0

${CC:-cc} -E -P -Ilib/include lib/include/collnet/collnet.h |
	grep -o '\<collnet_[a-z_]*(' | tr -d '(' | sort -u >"$t/header"
sed -n 's/^[[:space:]]*\(collnet_[a-z_]*\);.*/\1/p' lib/collnet.map | sort >"$t/map"
nm -D --defined-only "$BUILD"/lib/.libs/libcollnet.so |
	awk '$2 != "A" { sub("@.*", "", $3); print $3 }' | sort -u >"$t/library"
cat man/*.3 2>/dev/null | sed -n 's/^\.Nm \(collnet_[a-z_]*\).*/\1/p' | sort -u >"$t/names"
cat man/*.3 2>/dev/null | sed -n 's/^\.F[no] "*\([a-z_ *]*[ *]\)*\(collnet_[a-z_]*\)\([" ].*\)*$/\2/p' |
	sort -u >"$t/prototypes"
(cd "$PREFIX/share/man/man3" 2>/dev/null && ls) | sed -n 's/^\(collnet_[a-z_]*\)\.3.*/\1/p' |
	sort -u >"$t/pages"

[ -s "$t/header" ] || {
	echo "no function found in collnet.h"
	exit 1
}
# same FILE WHAT: the names in the file are those of the header.
same() {
	comm -23 "$t/header" "$t/$1" >"$t/missing"
	comm -13 "$t/header" "$t/$1" >"$t/extra"
	[ ! -s "$t/missing" ] || {
		echo "declared in collnet.h, but not $2:" $(cat "$t/missing")
		status=1
	}
	[ ! -s "$t/extra" ] || {
		echo "$2, but not declared in collnet.h:" $(cat "$t/extra")
		status=1
	}
}
same map "in lib/collnet.map"
same library "shown by the shared library"
same names "in the NAME section of a manual page"
same prototypes "with a prototype in a manual page"
same pages "installed as a manual page"
exit $status
