# SPDX-License-Identifier: BSD-2-Clause
# All teams that a context can have, through the daemon and directly.
# timeout: 300
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need teams

# try RANKS OPTION...
try() {
	ranks=$1
	shift
	every_rank "$ranks" teams --rate none "$@"
	grep 'per team' out
}

try 3 --shape 3
every_rank 2 "teams 150" --shape 2 --rate 1mbit --no-topology
grep 'one rank' out
COLLNET_MODE=direct try 2 --shape 2 --no-daemons
