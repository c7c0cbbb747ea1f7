# SPDX-License-Identifier: BSD-2-Clause
# The errors of programs when a node, its interface or a descriptor disappears, how soon, and that the end of a
# context does not wait for a node that was given up.
# timeout: 400
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need departures

# departure WHAT LAB-OPTION...: to rank 1 or its node, of three. What the ranks print is in `out`.
departure() {
	what=$*
	event=$1 options=${2:-}
	shift
	collnet lab run --shape 3 --rate 100mbit --timeout 200 "$@" -- departures "$event" >out 2>err </dev/null
	lacks 'timed out' err
	echo "ok: $what: $(grep error out)"
}

# below WHAT SECONDS RANK...: what each of these ranks measured, at least one time of four: a busy machine
# makes a time longer, and what is not to be waited for would be waited for each time.
below() {
	measure=$1 most=$2
	shift 2
	for r; do
		tries=4
		until awk -v rank="$r:" -v what="$measure" -v most="$most" '
			$1 == rank && $2 == "took" { for (i = 2; i < NF; i += 2) if ($i == what) value = $(i + 1) }
			END { exit !(value != "" && value < most) }' out; do
			cat out err
			[ $((tries -= 1)) -gt 0 ] || fail "$what: rank $r: $measure: not below $most s, four times"
			# shellcheck disable=SC2086 # no word when there are none
			departure "$event" $options
		done
	done
}

address='ip link set eth0 address 02:00:00:00:77:02'
# Which of the others has the reason first ends, and the third may hear of that first.
told='interface eth0 was given another address on node h1\|node h1 changed the address of its interface'

# ---- another address of the interface: at once, and not by the silence of 1.5 s ------------------
departure "$address"
has "^1: error interface eth0 was \(given another address\|removed or changed\) on node h1" out
for r in 0 2; do
	has "^$r: error .*\($told\)" out
done
below took 1 0 1 2

for COLLNET_ENCAPSULATION in udp raw; do
	export COLLNET_ENCAPSULATION
	departure "$address" --no-daemons
	has "^1: error interface eth0 was given another address on node h1" out
	for r in 0 2; do
		has "^$r: error .*\($told\|node h[02] ended its process\)" out
	done
	below took 1 0 1 2
	below close 1 0 1 2
done
unset COLLNET_ENCAPSULATION

# ---- a program that is killed in direct mode; what is queued for it is not waited for -------------
departure kill --no-daemons
for r in 0 2; do
	has "^$r: error .*node h1 stopped answering\|^$r: error node h[02] ended its process" out
done
below close 0.8 0 2

# ---- a program that ends in direct mode has no daemon ---------------------------------------------
departure end --no-daemons
lacks daemon out

# ---- the program closes the library's descriptors -------------------------------------------------
departure descriptors
has "^1: error collnetd on this node cannot be reached: the program closed a descriptor" out
departure descriptors --no-daemons
has "^1: error the program closed a descriptor of the library: its socket on interface eth0 of node h1" out
below took 1 1
below used 0.5 1
