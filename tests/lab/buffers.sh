# SPDX-License-Identifier: BSD-2-Clause
# Ports of twelve frames: the shuffle knows them and loses nothing; the naive way does lose frames
# there, and is right all the same.
# timeout: 300
. "$(dirname "$0")/lib.sh"
need_lab

# exchange ALGORITHM BENCH-OPTION...: in $drops, $resent, $peak, $window; $more: options of the lab.
more=
exchange() {
	# shellcheck disable=SC2086 # no word when there are none
	collnet lab run --shape 8x2 --rate 20mbit --buffer 12 --uplink-buffer 12 --json $more \
		--timeout 60 "$patient" -- collnet bench alltoall --sizes 10k --iterations 2 --warmup 0 \
		--verify --json --algorithm "$@" >out 2>err </dev/null || {
		status=$?
		cat out err
		fail "status $status: $*"
	}
	[ "$(json verified out)" = true ] || { cat out; fail "not right: $*"; }
	[ "$(json nic_drops out)/$(json ring_drops out)" = 0/0 ] || { cat out; fail "hosts lose: $*"; }
	drops=$(json drops_total out) resent=$(json frames_resent out)
	window=$(json window out) peak=$(json window_peak out)
	echo "$*: $drops frames lost in ports, $resent sent again, window $window, peak $peak"
}

# The exchange loses nothing: a lost frame of data is sent again. While the nodes meet, their hellos and
# probes may do so in ports as small as these, on a busy machine above all; they are not sent again. A
# host that the machine does not run for a while is sent to again without a loss, so both may come
# together: three tries.
for try in 1 2 3; do
	exchange shuffle
	[ "$drops" != 0 ] && [ "$resent" != 0 ] || break
done
[ "$drops" = 0 ] || [ "$resent" = 0 ] || {
	cat out
	fail "the shuffle loses frames in ports"
}
# To its peers a node that a busy machine did not run for a while looks like one that lost frames.
[ "$resent" -le $(($(json frames_sent out) / 10)) ] || {
	cat out
	fail "no frame was lost, and $resent of $(json frames_sent out) were sent again"
}
[ "$window" -ge 1 ] && [ "$window" -le 12 ] && [ "$peak" -le "$window" ] || {
	cat out
	fail "window $window, peak $peak"
}

# The same network and bytes; without these losses the lines above would say nothing.
exchange linear
[ "$drops" -gt 0 ] && [ "$resent" -ge $((drops / 2)) ] || {
	cat out
	fail "the naive way loses $drops and sends $resent again"
}

# Right too, whatever gets lost.
exchange shuffle --window off --permutation shift --contention-aware off
exchange pairwise

# Nodes that do not know the network find a window by the frames that they lose.
more="--no-topology --uplink 20mbit"
exchange shuffle --window off --warmup 2
off=$drops
exchange shuffle --warmup 2
[ "$window" = null ] && [ "$drops" -le $((off / 2)) ] || {
	cat out
	fail "without a topology: $drops frames lost, and $off without a window"
}
