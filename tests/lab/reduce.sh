# SPDX-License-Identifier: BSD-2-Clause
# Reductions through the library: one rank per node and two, daemons and direct mode; every type and
# operation, every function and algorithm, a product that is not commutative, wrong arguments; and
# sums of floats with the same bits by every run, with frames lost too.
# run: asan-long
# timeout: 400
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need reduce

# reduce WORDS LAB-OPTION...: every rank does all of the words.
reduce() {
	words=$1
	shift
	# shellcheck disable=SC2086
	collnet lab run --timeout 200 "$patient" "$@" -- reduce $words >out 2>&1 </dev/null || {
		status=$?
		cat out
		fail "status $status: $* -- reduce $words"
	}
	n=$(grep -c ': done$' out)
	echo "ok: $n done: $* -- reduce $words"
}

reduce "table every wrong floats" --rate none --shape 4x2
[ "$n" -eq 32 ] || { cat out; fail "$n of 32"; }
first=$(grep '^floats' out) || fail "no sums"
reduce "every table" --rate none --shape 3x2 --ranks-per-node 2
[ "$n" -eq 24 ] || { cat out; fail "$n of 24"; }
reduce "table every wrong" --rate none --shape 3 --no-daemons
[ "$n" -eq 9 ] || { cat out; fail "$n of 9"; }
reduce "every" --rate none --shape 1
reduce "floats" --rate none --shape 4x2 --loss 1%
[ "$(grep '^floats' out)" = "$first" ] || fail "other bits: $first, then $(grep '^floats' out)"
reduce "floats" --rate none --shape 4x2 --no-daemons
[ "$(grep '^floats' out)" = "$first" ] || fail "other bits: $first, then $(grep '^floats' out)"
