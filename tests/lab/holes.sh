# SPDX-License-Identifier: BSD-2-Clause
# A program punches holes in memory that it shares with the daemon and has mapped 600 times, while the
# daemon has to serve a request on it, to unmap it, or to close its client. Other clients are served
# during a hole, and another job goes on.
# concurrent: yes
# timeout: 300
. "$(dirname "$0")/lib.sh"
need_lab
need greedy

host_commands await

MAPS=200
! is_long || MAPS=600
export MAPS
collnet lab run --timeout 200 "$patient" --shape 2 --keep-logs "$PWD" -- sh -c '
	collnet bench barrier --iterations 1000000 >$HERE/bench.$COLLNET_RANK 2>&1 &
	job=$!
	if [ $COLLNET_RANK = 0 ]; then
		greedy $COLLNET_SOCKET holes $MAPS >$HERE/holes || exit 3
		touch $HERE/done
	fi
	await $HERE/done 150 || exit 4
	kill -0 $job || exit 5
	touch $HERE/alive.$COLLNET_RANK
	await $HERE/alive.0 20 && await $HERE/alive.1 20 || exit 6
	kill $job
	wait $job
	exit 0' >out 2>&1 </dev/null || {
	status=$?
	cat out holes bench.* h?.log
	fail "status $status"
}
grep -q "^3 of 3" holes || { cat out holes h?.log; fail "others wait for the end of a hole"; }
grep -q "buffer outside its regions" h0.log || { cat h0.log; fail "a request on memory that is not sealed"; }
echo "ok: $(cat holes), with $MAPS mappings"
