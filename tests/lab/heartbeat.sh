# SPDX-License-Identifier: BSD-2-Clause
# A collnetd that is stopped: ranks above it get an error before their own deadline and while it is
# stopped still; a stop of a third of the peer timeout does no harm; and ranks that wait hardly ever
# wake up. The peer timeout is three times the usual one, for a machine that stops processes, too.
# concurrent: yes
# timeout: 300
# run: asan
. "$(dirname "$0")/lib.sh"
need_lab
need api ps

host_commands await worker
cat >wakeups <<'EOS'
#!/bin/sh
# wakeups PID: how often it has slept so far
sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' "/proc/$1/status"
EOS
chmod 755 wakeups

# ranks 0, 1 and 3 wait in a barrier, with a deadline of 15 s, for rank 2, which does not call.
collnet lab run --rate 20mbit --timeout 200 --daemon-arg=--peer-timeout=4500 --tag --shape 4 -- sh -c '
	if [ $COLLNET_RANK != 3 ]; then
		api wait $HERE/pid.$COLLNET_RANK
		touch $HERE/end.$COLLNET_RANK
		exit 0
	fi
	api wait $HERE/pid.3 &
	own=$!
	for r in 0 1 2 3; do await $HERE/pid.$r 20 || exit 3; done
	pid=$(worker h1)

	began=$(date +%s%N) before=$(wakeups $(cat $HERE/pid.1))
	sleep 4 # what is counted is the wake-ups of this time
	after=$(wakeups $(cat $HERE/pid.1)) ended=$(date +%s%N)
	echo $((after - before)) $(((ended - began) / 1000000)) >$HERE/wakeups.1

	kill -STOP $pid
	sleep 1.5 # the length of the fault
	kill -CONT $pid
	sleep 3 # a wrong alarm would come now
	for r in 0 1 3; do [ ! -e $HERE/end.$r ] || touch $HERE/alarm; done

	kill -STOP $pid
	await $HERE/end.1 30 || exit 4
	grep -q "^State:.*stopped" /proc/$pid/status && touch $HERE/stopped
	kill -CONT $pid
	kill -9 $(cat $HERE/pid.2) # it only waits for that
	kill -9 $(cat $HERE/pid.0) $own
	wait' >out 2>err </dev/null || {
	status=$?
	cat out err
	fail "status $status"
}
[ ! -e alarm ] || { cat out err; fail "a stop of 1.5 s is taken for more"; }
echo "ok: a daemon that is stopped for 1.5 s"
[ -e stopped ] || { cat out err; fail "the rank waited for its daemon"; }
has "end 1 .*collnetd on this node does not respond" out
echo "ok: a rank above a stopped daemon: $(sed -n 's/^\[.*\] end 1 [0-9]* //p' out)"
# An interval is a third of the peer timeout, and has a question and an answer.
read -r n ms <wakeups.1
[ "$n" -le $((3 + ms / 300)) ] || fail "a rank that waits wakes up $n times in $ms ms"
echo "ok: a rank that waits wakes up $n times in $ms ms"
