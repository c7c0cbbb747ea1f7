# SPDX-License-Identifier: BSD-2-Clause
# Persistent operations, through the daemon and directly.
# run: asan
# timeout: 120
# beside: others
. "$(dirname "$0")/lib.sh"
need_lab
need persistent

# try RANKS OPTION...
try() {
	want=$1
	shift
	collnet lab run --timeout 60 --rate none "$patient" "$@" -- persistent >out 2>&1 || { cat out; fail "$*"; }
	[ "$(grep -c ': done$' out)" -eq "$want" ] || { cat out; fail "not $want ranks: $*"; }
	echo "ok: $*"
}

try 3 --shape 3
try 6 --shape 3 --ranks-per-node 2
try 2 --shape 1 --ranks-per-node 2
COLLNET_MODE=direct try 3 --shape 3 --no-daemons
