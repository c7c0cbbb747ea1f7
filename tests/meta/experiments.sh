# SPDX-License-Identifier: BSD-2-Clause
# timeout: 600
# run: long
#
# The tables of collnet_experiments(7), as it is installed, have the numbers that the installed collnet
# computes: of the short experiments all, of the others the points of --quick, which are some of theirs.
# The numbers in the text are those that tools/experiments computes from the tables.
set -u
cd "$(dirname "$0")/../.." || exit 1
page=$PREFIX/share/man/man7/collnet_experiments.7
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT

sh tools/experiments --text "$page" >"$t/page" || exit 1
cmp -s "$t/page" "$page" || {
	diff "$page" "$t/page"
	echo "run tools/experiments --text man/collnet_experiments.7, and replace the page by its output"
	exit 1
}

# One number in a table is changed: the text must follow.
sed 's/^\((f) .* \)[0-9][0-9]*\( *[0-9]*\)$/\1 999\2/' "$page" >"$t/changed"
sh tools/experiments --text "$t/changed" >"$t/page" || exit 1
if cmp -s "$page" "$t/changed" || cmp -s "$t/changed" "$t/page"; then
	echo "the text does not depend on the tables"
	exit 1
fi

# run EXPERIMENT [--quick]
run() {
	"$PREFIX/bin/collnet" sim --experiment "$@" --output "$t" >"$t/out" 2>&1 || {
		echo "collnet sim --experiment $*"
		cat "$t/out"
		exit 1
	}
}
for x in exchange-5 exchange-6 exchange-7 rings-9 rings-10 rings-table-1 smp-5.4; do
	run $x
done
for x in exchange-8 exchange-9 exchange-10 aapc-6 aapc-7 aapc-8 smp-5.1 smp-5.2 smp-5.3 loss \
	scale; do
	run $x --quick
done
sh tools/experiments --check "$t" "$page" || {
	echo "run tools/experiments DIR, which takes some minutes, and tools/experiments --page DIR;"
	echo "then read what the page says about the numbers that are others"
	exit 1
}

# Two numbers are others: of an experiment that was run whole, and of one of which some rows were.
sed -e 's/^\(8x2  *sync+GW .*\)[0-9]$/\1x/' -e 's/^\(32  *[0-9]*\.\)[0-9]/\1x/' "$page" >"$t/changed"
if sh tools/experiments --check "$t" "$t/changed" >"$t/out" ||
	[ "$(grep -c "computed and in the page" "$t/out")" -ne 2 ]; then
	echo "two other numbers are not found:"
	cat "$t/out"
	exit 1
fi
