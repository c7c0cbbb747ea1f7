# SPDX-License-Identifier: BSD-2-Clause
# A daemon whose limit of descriptors is below what it has open sleeps, although clients wait at its
# socket, and serves clients when the limit is raised.
. "$(dirname "$0")/lib.sh"
need_lab
need ps prlimit

host_commands await worker
collnet lab shell --shape 1 --keep-logs "$PWD" -- sh -c '
	pid=$(worker h0)
	slept() { sed -n "s/^voluntary_ctxt_switches:[^0-9]*//p" /proc/$pid/status; }
	prlimit --pid $pid --nofile=1: || exit 3
	lab-on h0 collnet status >out.waiting 2>&1 &
	await $COLLNET_LAB_DIR/logs/h0.log 10 "no descriptor is left" || exit 4
	# It sleeps before each of five further tries; one that spins never sleeps.
	first=$(slept)
	tries=500
	until [ $(($(slept) - first)) -ge 5 ]; do
		[ $((tries -= 1)) -gt 0 ] || exit 5
		sleep 0.02
	done
	prlimit --pid $pid --nofile=1024: || exit 6
	wait $! # served, unless this took longer than it waits
	lab-on h0 collnet status >out.status 2>&1 || exit 7
	grep -q "node h0" out.status' >out 2>&1 </dev/null || {
	status=$?
	cat out out.* h0.log
	fail "status $status"
}
[ "$(grep -c "no descriptor is left" h0.log)" -eq 1 ] || { cat h0.log; fail "not one line"; }
echo "ok: $(grep "no descriptor is left" h0.log)"
