# SPDX-License-Identifier: BSD-2-Clause
# All teams that a context can have, through the daemon and directly.
# timeout: 120
# beside: others
. "$(dirname "$0")/lib.sh"
need_lab
need teams

# try RANKS OPTION...
try() {
	want=$1
	shift
	collnet lab run --timeout 60 --rate none "$patient" "$@" -- teams >out 2>&1 || { cat out; fail "$*"; }
	[ "$(grep -c ': done$' out)" -eq "$want" ] || { cat out; fail "not $want ranks: $*"; }
	echo "ok: $*: $(grep 'per team' out)"
}

try 3 --shape 3
COLLNET_MODE=direct try 2 --shape 2 --no-daemons
