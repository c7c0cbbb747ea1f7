# SPDX-License-Identifier: BSD-2-Clause
# Frames that arrive twice, or late: the bytes are still correct.
# run: asan-long
# timeout: 400
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need nft

# twice LAB-OPTIONS -- BENCH-OPTIONS: every byte is right, and frames were duplicated.
twice() {
	lab_bench --json --timeout 200 "$patient" --rate 20mbit "$@" --json
	[ $status -ne 77 ] || skip "$(head -n 1 err)"
	[ $status -eq 0 ] || { cat out err; fail "status $status: $what"; }
	! json verified out | grep -q false || { cat out; fail "not right: $what"; }
	copies=$(json duplicated out)
	sent=$(json frames_sent out | awk '{ n += $1 } END { print n }')
	# A quarter of the share at least: acknowledgements and hellos are frames too.
	[ "$copies" -ge $((sent * percent / 400)) ] && [ "$copies" -gt 0 ] || {
		cat out
		fail "$copies frames of $sent duplicated: $what"
	}
	echo "ok: $copies frames duplicated, $sent sent: $what"
}

for percent in 2 20; do
	twice --duplicate $percent% --shape 4x2 -- alltoall --sizes 0,1,10k --iterations 4 --verify
	twice --duplicate $percent% --shape 6 -- allgather --sizes 0,1,20k --iterations 4 --verify
	twice --duplicate $percent% --shape 2 -- stream --sizes 100k --iterations 40 --verify
done
percent=5
twice --duplicate 5% --loss 2% --shape 4x2 -- alltoall --sizes 0,1,10k --iterations 4 --verify
twice --duplicate 5% --shape 2x2 --no-daemons -- alltoall --sizes 0,1,10k --iterations 4 --verify

# Without the option no frame is: the counter's other value.
lab_bench --json --timeout 200 "$patient" --rate 20mbit --shape 2 -- alltoall --sizes 1k --json
[ $status -eq 0 ] && [ "$(json duplicated out)" = 0 ] || { cat out err; fail "without: $what"; }

for bad in "--duplicate 51%" "--duplicate x" "--reorder 101%"; do
	# shellcheck disable=SC2086
	collnet lab run --shape 2 $bad -- true >out 2>err
	[ $? -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] || { cat out err; fail "$bad is not refused"; }
done

lab_bench --json --timeout 200 "$patient" --rate 20mbit --reorder 5% --shape 4 -- alltoall --sizes 0,10k \
	--iterations 4 --verify --json
if [ $status -eq 77 ]; then
	has "needs netem, and this kernel has none" err
	echo "ok: reordering is left out: $(head -n 1 err)"
else
	[ $status -eq 0 ] || { cat out err; fail "status $status: $what"; }
	! json verified out | grep -q false || { cat out; fail "not right: $what"; }
	echo "ok: reordered: $what"
fi
