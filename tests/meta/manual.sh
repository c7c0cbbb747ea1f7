# SPDX-License-Identifier: BSD-2-Clause
# mandoc has nothing to say about the manual pages; every .Xr among our own pages leads somewhere.
set -u
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
	sed -n 's/^\.Xr \(collnet[a-z_]*\) \([1-9]\).*/\1.\2/p' "$page" | sort -u | while read -r to; do
		[ -f "man/$to" ] || [ -f "$PREFIX/share/man/man${to##*.}/$to" ] ||
			echo "$page refers to $to, which is not there"
	done
done >"${TMPDIR:-/tmp}/manual.$$"
[ ! -s "${TMPDIR:-/tmp}/manual.$$" ] || status=1
cat "${TMPDIR:-/tmp}/manual.$$"
rm -f "${TMPDIR:-/tmp}/manual.$$"
exit $status
