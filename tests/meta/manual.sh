# SPDX-License-Identifier: BSD-2-Clause
# mandoc finds nothing wrong with the manual pages, no word of a heading is a macro; where groff is installed, tables fit
# 80 columns; every .Xr to a page of collnet leads to one;
# every file that HACKING.md names exists; collnet.h, collnet_strerror() and its page describe each status alike; and
# collnet_protocol(7) has the number of every algorithm.
set -u
: "${PREFIX:?where collnet is installed}"
cd "$(dirname "$0")/../.." || exit 1
command -v mandoc >/dev/null || {
	echo "skip: mandoc is not installed"
	exit 77
}
pages=$(ls man/*.[1-9]) || exit 1
status=0
# Style advice about the operating system's own conventions does not apply.
out=$(mandoc -T lint -W warning $pages) || status=1
[ -z "$out" ] || echo "$out"
for page in $pages; do
	mandoc -T tree "$page" | awk -v page="$page" '
		/S[hs] \((head|body)\)/ { head = /head/; next }
		head && /\(elem\)/ { print page ": a word of a heading is the macro " $1 }'
	groff -mandoc -Tutf8 -rLL=78n -ww "$page" 2>&1 >/dev/null | grep "can't break line" |
		sed "s,^,$page: ,"
	sed -n 's/^\.Xr \(collnet[a-z_]*\) \([1-9]\).*/\1.\2/p' "$page" | sort -u | while read -r to; do
		[ -f "man/$to" ] || [ -f "$PREFIX/share/man/man${to##*.}/$to" ] ||
			echo "$page refers to $to, which is not there"
	done
	# groff ends the width of a column there.
	grep -n "^\.Bl -column.*'" "$page" | sed "s,^,$page: ,"
done >"${TMPDIR:-/tmp}/manual.$$"
# Not the names of files yet to be written, x.c and test_x.c.
grep -oE '(lib|daemon|tools|tests|man|mpi|examples)/[a-z0-9_./-]*(\.[ch]|\.sh|\.mk|\.conf|\.map|[a-z]/)' HACKING.md |
	sort -u | grep -v '/\(test_\)\{0,1\}x\.' | while read -r path; do
	[ -e "$path" ] || echo "HACKING.md names $path, which does not exist"
done >>"${TMPDIR:-/tmp}/manual.$$"
# Lines "COLLNET_EINVAL an argument is invalid".
header() {
	sed -n 's,^.(COLLNET_E[A-Z]*) = -[0-9]*.[[:space:]]*/\*\*< (.*) \*/$,\1 \2,p' -E lib/include/collnet/collnet.h
}
{
	[ "$(header | wc -l)" -gt 10 ] || echo "collnet.h has no descriptions of status codes"
	for other in "strerror $(sed -nE 's/^.*\[-(COLLNET_E[A-Z]*)\] = "(.*)",$/\1 \2/p' lib/client/collnet.c)" \
		"manual $(sed -nE '/^\.It Dv COLLNET_E/{N;s/^.It Dv (COLLNET_E[A-Z]*)\n-[0-9]+: (.*)$/\1 \2/p}' man/collnet_error.3)"; do
		[ "$(header)" = "${other#* }" ] || echo "collnet.h and collnet_error(3), ${other%% *}, describe a status differently"
	done
} >>"${TMPDIR:-/tmp}/manual.$$"
# Lines "allgather lr1 9".
registered() {
	awk '$1 == ".id" { id = $3 + 0 } $1 == ".op" { op = tolower(substr($3, 7)); sub(",", "", op) }
		$1 == ".name" { gsub("[\",]", "", $3); print op, $3, id }' lib/sched/registry.c | sort
}
documented() {
	awk '/^Algorithms have these numbers/ { on = 1 } /^\.El/ { on = 0 } !on { next }
		$1 == ".It" { op = $2 } $1 !~ /^\./ && op != "" {
			gsub(",", ""); for (i = 1; i < NF; i += 2) print op, $i, $(i + 1) }' man/collnet_protocol.7 | sort
}
{
	[ "$(registered | wc -l)" -gt 10 ] || echo "lib/sched/registry.c has no algorithms that can be read"
	[ "$(registered)" = "$(documented)" ] ||
		echo "lib/sched/registry.c and collnet_protocol(7) have other algorithms or numbers"
} >>"${TMPDIR:-/tmp}/manual.$$"
[ ! -s "${TMPDIR:-/tmp}/manual.$$" ] || status=1
cat "${TMPDIR:-/tmp}/manual.$$"
rm -f "${TMPDIR:-/tmp}/manual.$$"
exit $status
