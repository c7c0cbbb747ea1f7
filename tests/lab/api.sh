# SPDX-License-Identifier: BSD-2-Clause
# The library at length, through the daemon and directly: exchanges of every size, ranks that
# disagree, hundreds of teams, endpoints that come and go.
# run: asan
# timeout: 600
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need api

# api WORDS LAB-OPTION...: every rank does all of the words.
api() {
	words=$1
	shift
	begin=$(date +%s)
	# shellcheck disable=SC2086
	collnet lab run "$patient" --rate none --timeout 200 "$@" -- api $words >out 2>&1 </dev/null || {
		status=$?
		cat out
		fail "status $status: $* -- api $words"
	}
	n=$(sort -u out | grep -c ': done$')
	echo "ok: $n in $(($(date +%s) - begin)) s: $* -- api $words"
	grep ' after [0-9]* ms' out | sed 's/^.*: rank [0-9]*: \(.* after\) \([0-9]*\) ms.*/\1 \2/' |
		awk '{ t = $NF; NF -= 2; n[$0]++; if (t > m[$0]) { m[$0] = t } }
			END { for (e in n) { print "    " n[e] " times " e ", at most " m[e] " ms" } }'
}

for mode in "" --no-daemons; do
	# shellcheck disable=SC2086
	api sizes --shape 3 $mode
	[ "$n" -eq 3 ] || { cat out; fail "$n of 3 ranks"; }
	# shellcheck disable=SC2086
	api "endpoints mismatch teams" --shape 3 $mode
	[ "$n" -eq 9 ] || { cat out; fail "$n of 9"; }
done
# Two ranks on one node talk through its daemon.
api "endpoints mismatch teams" --shape 2 --ranks-per-node 2
[ "$n" -eq 12 ] || { cat out; fail "$n of 12"; }
