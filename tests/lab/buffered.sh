# SPDX-License-Identifier: BSD-2-Clause
# Calls that return before their operation has ended: what they sent arrives, and their errors are
# reported by the next call.
# timeout: 120
# beside: others
# run: user asan-long
. "$(dirname "$0")/lib.sh"
need_lab
need buffered

# try RANKS OPTION...
try() {
	want=$1
	shift
	collnet lab run --timeout 60 "$patient" "$@" -- buffered >out 2>&1 || { cat out; fail "$*"; }
	[ "$(grep -c ': done$' out)" -eq "$want" ] || { cat out; fail "not $want ranks: $*"; }
	echo "ok: $*"
}

try 4 --shape 2x2 --rate 100mbit
try 6 --shape 3 --ranks-per-node 2 --rate none
try 2 --shape 2 --rate 100mbit --loss 2%
