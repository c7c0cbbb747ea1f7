# SPDX-License-Identifier: BSD-2-Clause
# Every call of the library, through the daemon and directly, with memory of every kind.
# timeout: 400
# concurrent: yes
# run: asan-long
. "$(dirname "$0")/lib.sh"
need_lab
need calls

# try RANKS OPTION...
try() {
	want=$1
	shift
	collnet lab run --timeout 200 "$patient" "$@" -- calls >out 2>&1 || { cat out; fail "$*"; }
	[ "$(grep -c 'all calls answer as they should' out)" -eq "$want" ] || {
		cat out
		fail "not $want ranks: $*"
	}
	echo "ok: $*"
}

try 3 --shape 3 --rate 100mbit
try 6 --shape 3 --ranks-per-node 2 --rate 100mbit
try 2 --shape 1 --ranks-per-node 2
try 4 --shape 2x2 --rate 100mbit --loss 2%
export COLLNET_MODE=direct
try 3 --shape 3 --rate 100mbit --no-daemons
COLLNET_SPIN=1 try 2 --shape 2 --rate 100mbit --no-daemons
COLLNET_LINK=pcap COLLNET_ENCAPSULATION=raw try 2 --shape 2 --rate 100mbit --no-daemons

collnet lab run --timeout 200 --shape 2 --no-daemons -- calls away >out 2>&1 || {
	cat out
	fail "a node whose program computes is taken for dead"
}
echo "ok: a program that computes is not dead"
