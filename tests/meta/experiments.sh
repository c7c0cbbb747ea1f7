# SPDX-License-Identifier: BSD-2-Clause
# The numbers in the text of collnet_experiments(7) are those that tools/experiments computes from
# the tables of the page.
set -u
cd "$(dirname "$0")/../.." || exit 1
page=man/collnet_experiments.7
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT

sh tools/experiments --text $page >"$t/page" || exit 1
cmp -s "$t/page" $page || {
	diff $page "$t/page"
	echo "run tools/experiments --text $page, and replace the page by its output"
	exit 1
}

# One number in a table is changed: the text must follow.
sed 's/^\((f) .* \)[0-9][0-9]*\( *[0-9]*\)$/\1 999\2/' $page >"$t/changed"
sh tools/experiments --text "$t/changed" >"$t/page" || exit 1
if cmp -s $page "$t/changed" || cmp -s "$t/changed" "$t/page"; then
	echo "the text does not depend on the tables"
	exit 1
fi
