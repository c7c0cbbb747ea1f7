# SPDX-License-Identifier: BSD-2-Clause
# The lab's end: whatever happens to it, no process, network or file is left; two labs at once
# do not meet.
# run: user root-long
# timeout: 300
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need pgrep

marker=$(((0x$(od -An -N3 -tx1 /dev/urandom | tr -d ' ')) + 100000))

# until_gone: no process sleeps for $marker seconds any more.
until_gone() {
	i=0
	while pgrep -f "sleep $marker" >/dev/null; do
		i=$((i + 1))
		[ $i -lt 100 ] || fail "processes are left after $1: $(pgrep -fa "sleep $marker")"
		sleep 0.1
	done
	[ ! -e /run/collnet-lab ] || fail "/run/collnet-lab is left after $1"
	! ip netns list 2>/dev/null | grep -q '^h[0-9]' || fail "namespaces are left after $1"
}

# until_up: the lab in the background is up and running.
until_up() {
	i=0
	while [ ! -e up ]; do
		i=$((i + 1))
		[ $i -lt 200 ] || { cat err; fail "the lab did not come up"; }
		sleep 0.1
	done
}

# start: a lab in the background, up and running; its process in $lab.
start() {
	rm -f up
	collnet lab run --shape 2x2 --no-daemons -- sh -c "
		[ \$COLLNET_RANK != 3 ] || echo >up
		(trap '' TERM INT HUP; exec setsid sleep $marker) &
		exec sleep $marker" 2>err &
	lab=$!
	until_up
}

# ended_by SIGNAL STATUS: that is the status of a process that the signal ended.
ended_by() {
	[ "$2" -gt 128 ] && [ "$(kill -l "$2")" = "$1" ]
}

for signal in KILL TERM HUP INT; do
	start
	kill -$signal $lab
	wait $lab
	got=$?
	# A shell's background job ignores SIGINT from the start, unless the program asks for it.
	ended_by $signal $got || fail "status $got after SIG$signal"
	until_gone SIG$signal
done

# Under nohup, SIGHUP ends neither the lab nor what runs in it.
rm -f up go
nohup collnet lab run --shape 2 --no-daemons -- sh -c '
	[ $COLLNET_RANK != 1 ] || echo >up
	n=400
	until [ -e go ] || [ $((n -= 1)) -le 0 ]; do sleep 0.05; done' >out 2>err </dev/null &
lab=$!
until_up
kill -HUP $lab "$(pgrep -P $lab)"
echo >go
wait $lab || fail "status $? after SIGHUP under nohup"

# A signal while the network is made ends the lab, too. The tool ip waits for it there.
mkdir early
cat >early/ip <<EOS
#!/bin/sh
[ -e "$PWD/early/signalled" ] || echo >"$PWD/early/making"
n=600
until [ -e "$PWD/early/signalled" ] || [ \$((n -= 1)) -le 0 ]; do sleep 0.05; done
exec $(command -v ip) "\$@"
EOS
chmod 755 early early/ip
for signal in TERM HUP INT; do
	rm -f early/making early/signalled
	PATH=$PWD/early:$PATH collnet lab run --shape 2 --no-daemons -- sleep 2 2>err &
	lab=$!
	i=0
	while [ ! -e early/making ]; do
		i=$((i + 1))
		[ $i -lt 200 ] || { cat err; fail "no network is made"; }
		sleep 0.1
	done
	kill -$signal $lab
	echo >early/signalled
	wait $lab
	got=$?
	ended_by $signal $got || fail "status $got after an early SIG$signal"
done

# The supervisor alone is killed: the lab ends too.
start
kill -KILL "$(pgrep -P $lab)"
wait $lab
[ $? -eq 137 ] || fail "the end of the supervisor is not seen"
until_gone "the end of the supervisor"

# When the command ends, its background processes end.
collnet lab run --shape 2 --no-daemons -- sh -c "setsid sleep $marker & true" || fail "status $?"
until_gone "the end of the command"

# Two at once, with equal names and addresses inside.
for i in 1 2; do
	(
		cd "$TMPDIR" || exit 1
		collnet lab run --shape 4x2 --rate 50mbit --no-daemons --json -- sh -c '
			if [ $COLLNET_RANK = 0 ]; then
				exec frames receive zero 500 7
			fi
			exec frames send zero 02:c0:11:00:00:00 5 100' >out.$i 2>err.$i
		echo $? >status.$i
	) &
done
wait
for i in 1 2; do
	[ "$(cat status.$i)" = 0 ] || { cat err.$i; fail "lab $i of two ended with $(cat status.$i)"; }
	has "received 35" out.$i
done
echo "ok"

# A command that runs for too long can clean up.
collnet lab shell --shape 1 --no-daemons --timeout 2 -- \
	sh -c "trap 'echo x >cleaned; exit' TERM; while :; do sleep 0.1; done"
[ $? -eq 124 ] || fail "no timeout"
[ -s cleaned ] || fail "a command that timed out could not clean up"

# The terminal belongs to the caller's shell again, after a command and after a shell.
if command -v script >/dev/null && command -v bash >/dev/null; then
	for command in '-- true' '</dev/tty'; do
		echo "SHELL=/bin/true collnet lab shell --shape 2 --no-daemons $command
			read -r line && echo \"read \$line\"" >after
		echo LINE | timeout 30 script -qec "bash --norc -ic 'sh $PWD/after'" /dev/null >out 2>&1
		has '^read LINE' out
	done
	# Also its modes, where the shell is killed at its prompt.
	echo "stty -g >before; SHELL=/bin/bash collnet lab shell --shape 1 --no-daemons --timeout 3; stty -g >after" >modes
	sleep 20 | timeout 60 script -qec "sh $PWD/modes" /dev/null >out 2>&1 || true
	[ -s after ] && cmp before after || { cat out; fail "the modes of the terminal"; }
	echo "ok: the terminal is given back"
fi
