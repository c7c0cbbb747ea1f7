# SPDX-License-Identifier: BSD-2-Clause
# Frames that get lost at random: right bytes all the same, in reasonable time, and the losses are
# made good by sending again.
# run: asan-long
# timeout: 400
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab

# lossy LOSS LAB-OPTIONS -- BENCH-OPTIONS
lossy() {
	lab_bench --json --timeout 200 "$patient" --rate 20mbit --loss "$@" --json
	[ $status -eq 0 ] || { cat out err; fail "status $status: $what"; }
	! json verified out | grep -q false || { cat out; fail "not right: $what"; }
	lost=$(json loss_dropped out)
	resent=$(json frames_resent out | awk '{ n += $1 } END { print n }')
	sent=$(json frames_sent out | awk '{ n += $1 } END { print n }')
	[ "$lost" -gt 0 ] && [ "$resent" -gt 0 ] || {
		cat out
		fail "$lost frames lost and $resent sent again: $what"
	}
	# All frames after a lost one may be retransmitted, but not many times.
	[ "$resent" -le $((sent / 2)) ] || { cat out; fail "$resent of $sent sent again: $what"; }
	echo "ok: $lost lost, $resent of $sent sent again, median $(json median out | xargs) us: $what"
}

for loss in 1% 5%; do
	lossy $loss --shape 4x2 -- alltoall --sizes 0,1,10k --iterations 6 --verify
	lossy $loss --shape 4x2 -- alltoall --sizes 10k --iterations 3 --verify \
		--algorithm pairwise,linear
	lossy $loss --shape 2x2 --ranks-per-node 2 -- alltoall --sizes 1,10k --iterations 6 --verify
	lossy $loss --shape 6 -- allgather --sizes 0,1,20k --iterations 6 --verify
	lossy $loss --shape 4x2 -- barrier --iterations 60
	lossy $loss --shape 2 -- stream --sizes 100k --iterations 40 --verify
done
lossy 5% --shape 2x2 --no-daemons -- alltoall --sizes 0,1,10k --iterations 6 --verify
