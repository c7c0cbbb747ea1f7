# SPDX-License-Identifier: BSD-2-Clause
# Broadcast, scatter and gather through the library: every root, in place and outstanding, with one
# rank a node and with two; wrong roots; and ranks that disagree, of which none hangs.
# run: asan-long
# timeout: 400
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need rooted

# rooted WORDS LAB-OPTION...: every rank does all of the words.
rooted() {
	words=$1
	shift
	# shellcheck disable=SC2086
	collnet lab run --rate none --timeout 200 "$patient" "$@" -- rooted $words >out 2>&1 </dev/null || {
		status=$?
		cat out
		fail "status $status: $* -- rooted $words"
	}
	n=$(grep -c ': done$' out)
	echo "ok: $n done: $* -- rooted $words"
}

rooted "right wrong" --shape 4x2
[ "$n" -eq 16 ] || { cat out; fail "$n of 16"; }
rooted "right" --shape 3x2 --ranks-per-node 2
[ "$n" -eq 12 ] || { cat out; fail "$n of 12"; }
rooted "right wrong disagree" --shape 3 --no-daemons
[ "$n" -eq 9 ] || { cat out; fail "$n of 9"; }
rooted disagree --shape 4x2
has "bcast, roots 2 and 0: rank 1: operations or sizes differ between ranks" out
has "does not match node h1 in operation 1 " out
# The two that disagree are on one node, and tell its daemon so.
rooted disagree --shape 2 --ranks-per-node 2
has "bcast, roots 0 and 1: rank 1: operations or sizes differ between ranks.* after [0-9]* ms: rank [01] on node h0" out
