# SPDX-License-Identifier: BSD-2-Clause
# The benchmark: every operation and algorithm checked, the fields of its JSON, its statuses; and
# that --verify sees a wrong byte.
# run: user asan-long
# timeout: 600
. "$(dirname "$0")/lib.sh"
need_lab

# bench STATUS LAB-OPTIONS -- BENCH-OPTIONS: in the lab, by daemons.
bench() {
	expected=$1
	shift
	lab_bench --timeout 200 "$patient" "$@"
	[ $status -eq "$expected" ] || {
		cat out err
		fail "status $status instead of $expected: $what"
	}
}

# fields NAME...: those are the keys of every object, in this order.
fields() {
	printf '%s\n' "$@" >wanted
	while read -r line; do
		echo "$line" | grep -o '"[a-z0-9_]*":' | tr -d '":' >found
		cmp -s wanted found || {
			diff wanted found
			fail "these fields are not the ones: $line"
		}
	done <out
}

common="op algorithm permutation contention_aware window window_peak ranks nodes bytes_per_pair
	iterations time_us min median p99 limit_us efficiency frames_sent frames_resent
	ack_bytes_share cpu_s_per_gib verified bandwidth_mbit_per_node ring_drops"

# Blocks of different sizes: all algorithms, in one block per batch and in many.
bench 0 --shape 2x2 --ranks-per-node 2 -- alltoallv --sizes 0,1,1476,20k --algorithm all \
	--iterations 4 --verify --json
[ "$(json verified out | sort -u)" = true ] || { cat out; fail "alltoallv: wrong bytes"; }
[ "$(json algorithm out | sort -u | xargs)" = "aapc fattree linear pairwise shuffle" ] || {
	cat out
	fail "alltoallv: algorithms"
}

# Exchange: all algorithms in one run, right at sizes around a frame.
bench 0 --shape 2x2 -- alltoall --sizes 0,1,1476,1477,5k --algorithm all --iterations 4 --verify \
	--json
# shellcheck disable=SC2086
fields $common daemon_rss_bytes slowest_rank_us
[ "$(json verified out | sort | uniq -c | tr -s ' ')" = " 25 true" ] || fail "not all right"
[ "$(json algorithm out | sort -u | tr '\n' ' ')" = "aapc fattree linear pairwise shuffle " ] ||
	fail "not all algorithms"
[ "$(json iterations out | sort -u)" = 4 ] || fail "iterations"
[ "$(json ranks out | sort -u)/$(json nodes out | sort -u)" = 4/4 ] || fail "ranks"

# The limit: at 20 Mbit/s three blocks of 5 KiB take 6.144 ms; nobody can be told to wait less.
[ "$(json limit_us out | tail -1)" = 6144.000 ] || fail "limit $(json limit_us out)"

# The window of the shuffle is in force and holds; the baselines have none.
json window out >windows
window_kept out
[ "$(grep -c null windows)" = 10 ] || fail "windows: $(tr '\n' ' ' <windows)"
bench 0 --shape 2x2 -- alltoall --sizes 20k --iterations 3 --window 3 --permutation shift \
	--contention-aware off --json
[ "$(json window out)/$(json permutation out)/$(json contention_aware out)" = 3/shift/false ] ||
	fail "options: $(cat out)"
[ "$(json window_peak out)" -le 3 ] || fail "peak $(json window_peak out)"
[ "$(json verified out)" = null ] || fail "verified, and nobody asked"

# Two ranks a node; allgather; barrier.
bench 0 --shape 2 --ranks-per-node 2 -- alltoall --sizes 3k --iterations 3 --verify --json
[ "$(json ranks out)/$(json nodes out)/$(json verified out)" = 4/2/true ] || fail "$(cat out)"
bench 0 --shape 2x2 -- allgather --sizes 0,1,10k --iterations 3 --verify --json
[ "$(json verified out | uniq -c | tr -s ' ')" = " 3 true" ] || fail "$(cat out)"
for op in reduce reduce_scatter scan exscan; do
	bench 0 --shape 2 --ranks-per-node 2 -- $op --sizes 1,10k --algorithm all --iterations 3 \
		--verify --json
	[ "$(json verified out | uniq -c | tr -s ' ')" = " 4 true" ] || fail "$op: $(cat out)"
done
# Blocks of the sizes that both sides drew, and of none.
for op in allgatherv scatterv gatherv reduce_scatterv; do
	bench 0 --shape 3 --ranks-per-node 2 -- $op --sizes 0,1,10k --iterations 3 --verify --json
	[ "$(json verified out | uniq -c | tr -s ' ')" = " 3 true" ] || fail "$op: $(cat out)"
done
bench 0 --shape 3 -- barrier --iterations 10 --json
# shellcheck disable=SC2086
fields $common daemon_rss_bytes slowest_rank_us
[ "$(json iterations out)/$(json limit_us out)" = 10/null ] || fail "$(cat out)"

# Messages, by daemons and without; a third rank waits; raw sockets as the baseline.
for mode in "" --no-daemons; do
	rss=daemon_rss_bytes
	[ -z "$mode" ] || rss=transport_rss_bytes
	# shellcheck disable=SC2086
	bench 0 --shape 3 --rate none $mode -- pingpong --sizes 0,64,2k --iterations 50 --verify \
		--baseline --json ${mode:+--mode direct}
	[ "$(json verified out | uniq -c | tr -s ' ')" = " 3 true" ] || fail "$(cat out)"
	# No frame of the baseline carries 2 KiB.
	[ "$(json baseline_ratio out | grep -c null)" = 1 ] || fail "$(cat out)"
	[ "$(json baseline_time_us out | grep -c null)" = 1 ] || fail "$(cat out)"
	sed -i '$d' out
	# shellcheck disable=SC2086
	fields $common $rss half_us baseline_time_us min median p99 baseline_ratio
	bench 0 --shape 3 --rate none $mode -- stream --sizes 1,100k --iterations 40 --verify \
		--baseline --json ${mode:+--mode direct}
	# shellcheck disable=SC2086
	fields $common $rss frames_per_s baseline_frames_per_s baseline_ratio
	[ "$(json verified out | uniq -c | tr -s ' ')" = " 2 true" ] || fail "$(cat out)"
done

# As many as were asked for, in rounds that differ.
for op in pingpong stream; do
	for n in 1 7 23; do
		bench 0 --shape 2 -- $op --sizes 64 --iterations $n --warmup 0 --verify --baseline --json
		[ "$(json iterations out)/$(json verified out)" = $n/true ] || fail "$op, $n: $(cat out)"
	done
done

# The tables, and the file for plotting.
for op in pingpong stream; do
	bench 0 --shape 2 -- $op --sizes 64 --iterations 5
	sed -n 2p out >head
	has ' base ' head
	! grep -q raw head || fail "raw is an encapsulation: $(cat head)"
done
bench 0 --shape 2 -- alltoall --sizes 1k,2k --iterations 5 --algorithm shuffle,linear \
	--csv "$PWD/plot.csv"
[ "$(wc -l <out)" -eq 6 ] || fail "a title, a header and four rows: $(cat out)"
[ "$(wc -l <plot.csv)" -eq 5 ] || fail "$(cat plot.csv)"
[ "$(awk -F, '{ print NF }' plot.csv | sort -u)" = 13 ] || fail "$(cat plot.csv)"

# The options of "plan" are also taken before it.
collnet bench --json --seed 7 plan --help >out 2>&1 || fail "$(cat out)"
has "usage: collnet bench plan" out
collnet bench --sizes 1k plan >out 2>err && fail "plan took --sizes"
has "plan takes no options but --json and --seed" err

# What cannot be: one line each.
bench 2 --shape 1 -- reduced
has "unknown operation 'reduced'" err
bench 1 --shape 1 -- stream
has "needs two ranks" err
bench 1 --shape 2 --ranks-per-node 2 -- stream --baseline
has "different nodes" err
bench 1 --shape 2 -- alltoall --csv /nonexistent/file
has "/nonexistent/file: No such file" err

# Bytes that change on the wire (the frames have no check of their own) are seen. They change where
# they leave rank 0: a receiving packet socket takes frames before nftables sees them.
if command -v nft >/dev/null; then
	cat >spoil <<'EOS'
[ "$COLLNET_RANK" = 1 ] || {
	nft add table netdev t &&
	nft add chain netdev t c '{ type filter hook egress device eth0 priority 0; }' &&
	nft add rule netdev t c meta length gt 1000 numgen inc mod 4 == 3 @nh,3968,8 set 0xaa
} || exit 99
exec collnet bench "$@" --mode direct --verify --json
EOS
	for op in "alltoall --sizes 16k" "allgather --sizes 16k" "stream --sizes 100k"; do
		# shellcheck disable=SC2086
		collnet lab run --shape 2 --rate none --no-daemons --timeout 200 -- \
			sh "$PWD/spoil" $op --iterations 20 >out 2>err </dev/null
		got=$?
		[ $got -ne 99 ] || break # this nft cannot
		[ $got -eq 1 ] || fail "$op: status $got: $(cat out err)"
		has "wrong byte: rank 1 on node h1, .* from rank 0, offset [0-9]*: expected" err
		[ "$(json verified out)" = false ] || fail "$op: $(cat out)"
	done
fi
