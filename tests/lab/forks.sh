# SPDX-License-Identifier: BSD-2-Clause
# Ranks that fork: a child neither ends what its parent has, nor hides its death.
# run: asan
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need forks

# try WORD RANKS STATUS OPTION...
try() {
	word=$1 want=$2 status=$3
	shift 3
	collnet lab run --timeout 200 --shape 3 --rate 100mbit "$@" -- forks "$word" >out 2>&1
	got=$?
	[ "$got" -eq "$status" ] || { cat out; fail "$word $*: status $got"; }
	[ "$(grep -c ': as it should' out)" -eq "$want" ] || { cat out; fail "$word $*: not $want ranks"; }
	echo "ok: $word $*"
}

try tidy 3 0
try reopen 3 0
try killed 2 137
export COLLNET_MODE=direct
try tidy 3 0 --no-daemons
try reopen 3 0 --no-daemons
try killed 2 137 --no-daemons
