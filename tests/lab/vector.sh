# SPDX-License-Identifier: BSD-2-Clause
# Operations with blocks of any size, and in place, through the library: one rank per node and two,
# daemons and direct mode; wrong arguments; pairs that disagree about a size, of which none hangs;
# and no frame is lost where many send to one.
# timeout: 600
. "$(dirname "$0")/lib.sh"
need_lab
need vector

# vector WORDS LAB-OPTION...: every rank does all of the words.
vector() {
	words=$1
	shift
	# shellcheck disable=SC2086
	collnet lab run --timeout 200 "$patient" "$@" -- vector $words >out 2>&1 </dev/null || {
		status=$?
		cat out
		fail "status $status: $* -- vector $words"
	}
	n=$(grep -c ': done$' out)
	echo "ok: $n done: $* -- vector $words"
}

vector "right wrong" --rate none --shape 4x2
[ "$n" -eq 16 ] || { cat out; fail "$n of 16"; }
vector "right" --rate none --shape 3x2 --ranks-per-node 2
[ "$n" -eq 12 ] || { cat out; fail "$n of 12"; }
vector "right wrong disagree" --rate none --shape 3 --no-daemons
[ "$n" -eq 9 ] || { cat out; fail "$n of 9"; }
vector disagree --rate none --shape 4x2
has "bytes sent, .* expected: rank .*does not match" out
# Two ranks of one node disagree, and tell its daemon so.
vector disagree --rate none --shape 2 --ranks-per-node 2
has "bytes sent, .* expected: rank .*does not match" out

# Blocks of any sizes, and much for one rank from all the others: the windows keep all queues below
# their limits.
nets="--shape 4x2,--shape 3x2 --ranks-per-node 2"
! is_long || nets="$nets,--shape 16,--shape 8x2"
IFS=,
for net in $nets; do
	unset IFS
	# shellcheck disable=SC2086
	vector "uneven hot fan" --json --rate 20mbit $net
	grep '"ports"' out >ports
	[ -s ports ] || { cat out; fail "no ports: $net"; }
	what="$net: vector uneven hot fan"
	no_drops
done
