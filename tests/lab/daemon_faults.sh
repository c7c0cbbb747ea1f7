# SPDX-License-Identifier: BSD-2-Clause
# What happens to daemons and their clients: garbage on the socket, killed clients and daemons,
# SIGTERM, restarts, and daemons that must not start.
# timeout: 400
# run: root-long asan-long
. "$(dirname "$0")/lib.sh"
need_lab
need malformed_client

# lab SHAPE COMMAND: status in $got, output in ./out.
lab() {
	collnet lab run --timeout 200 --shape "$1" --keep-logs "$PWD" --tag -- sh -c "$2" >out 2>&1
	got=$?
}

# ok WHAT
ok() {
	[ $got -eq 0 ] || { cat out; fail "$1: status $got"; }
	echo "ok: $1"
}

# Waiting is for something: a file of the test, or the end of a process.
cat >ended <<'EOS'
#!/bin/sh
# ended PID SECONDS
n=$(($2 * 20))
while kill -0 "$1" 2>/dev/null; do
	[ $((n -= 1)) -gt 0 ] || { echo "ended: $1 runs after $2 s" >&2; exit 1; }
	sleep 0.05
done
EOS
chmod 755 ended
host_commands await worker

# ---- garbage while an exchange runs --------------------------------------------------------
lab 2 '
	if [ $COLLNET_RANK = 0 ]; then
		malformed_client $COLLNET_SOCKET 1 3 >$HERE/malformed.out 2>&1 || { cat $HERE/malformed.out; exit 3; }
	fi
	collnet bench alltoall --sizes 0,1,100,8k --verify'
ok "any bytes on the socket: that client is closed, others are served"
has "the daemon is unaffected" malformed.out
has "is disconnected: " h0.log
lacks "is disconnected: " h1.log

lab 2 '
	if [ $COLLNET_RANK = 0 ]; then
		malformed_client $COLLNET_SOCKET 2 3 >$HERE/malformed.out 2>&1 || touch $HERE/malformed.failed &
	fi
	collnet bench alltoall --sizes 8k --iterations 200 --verify
	status=$?
	wait
	exit $status'
ok "garbage beside an exchange"
[ ! -e malformed.failed ] || { cat malformed.out; fail "a malformed client disturbs the daemon"; }

# ---- a rank is killed -----------------------------------------------------------------------
cat >exchange <<'EOS'
#!/bin/sh
# Exchanges without end; says in $HERE what becomes of it.
collnet bench alltoall --sizes 16k --iterations 1000000 2>"$HERE/error.$COLLNET_RANK" &
echo $! >"$HERE/pid.tmp.$COLLNET_RANK"
mv "$HERE/pid.tmp.$COLLNET_RANK" "$HERE/pid.$COLLNET_RANK"
wait $!
echo $? >"$HERE/status.tmp.$COLLNET_RANK"
mv "$HERE/status.tmp.$COLLNET_RANK" "$HERE/status.$COLLNET_RANK"
EOS
# running: waits until all four daemons have moved frames of the job.
cat >running <<'EOS'
#!/bin/sh
for r in 0 1 2 3; do
	await "$HERE/pid.$r" 20 || exit 1
done
end=$(($(date +%s) + 20))
while :; do
	sent=$(collnet status --json | tr ',{}' '\n\n\n' | sed -n 's/^ *"data_sent": *//p' | tail -n 1)
	[ "${sent:-0}" -gt 500 ] && exit 0
	[ "$(date +%s)" -lt $end ] || { echo "running: nothing moves" >&2; exit 1; }
	sleep 0.05
done
EOS
chmod 755 exchange running

rm -f pid.* status.* error.*
lab 4 '
	if [ $COLLNET_RANK = 3 ]; then
		exchange & running || exit 3
		kill -9 $(cat $HERE/pid.2) || exit 4
		for r in 0 1 3; do await $HERE/status.$r 20 || exit 5; done
		wait
	else
		exchange
	fi
	collnet bench barrier --iterations 10 >/dev/null'
ok "a killed rank ends the others, and the next job works"
for r in 0 1 3; do
	[ "$(cat status.$r)" -ne 0 ] || fail "rank $r does not mind that rank 2 was killed"
	has "rank 2 on node h2 died" error.$r
done

# ---- a daemon is killed and restarts ----------------------------------------------------------
rm -f pid.* status.* error.*
lab 4 '
	if [ $COLLNET_RANK = 3 ]; then
		exchange & running || exit 3
		kill -9 $(worker h1) || exit 4
		await $HERE/status.1 20 || exit 5
		for r in 0 2 3; do await $HERE/status.$r 20 || exit 6; done
		wait
		lab-daemon h1 || exit 7
		touch $HERE/restarted
	else
		exchange
		await $HERE/restarted 30 || exit 8
	fi
	collnet bench alltoall --sizes 1k --iterations 20 --verify >$HERE/again.$COLLNET_RANK'
[ $got -eq 0 ] || has "collnetd on h1 ended with status 1" out
grep -v "collnetd on h1 ended" out | grep -q "status [1-9]" && { cat out; fail "after a killed daemon"; }
for r in 0 2 3; do
	has "node h1" error.$r
done
has "collnetd on this node went away (socket .*h1.sock)" error.1
has "right" again.0
echo "ok: a killed daemon is named by all, its clients know at once, and it comes back"

# ---- SIGTERM --------------------------------------------------------------------------------
rm -f pid.* status.* error.* restarted
lab 4 '
	if [ $COLLNET_RANK = 3 ]; then
		exchange & running || exit 3
		pid=$(cat $COLLNET_LAB_DIR/h1.daemon.pid)
		kill -TERM $pid
		ended $pid 20 || exit 4
		for r in 0 1 2 3; do await $HERE/status.$r 20 || exit 5; done
		wait
		[ ! -e $COLLNET_LAB_DIR/h1.sock ] || exit 6
	else
		exchange
	fi'
ok "SIGTERM ends a daemon cleanly"
for r in 0 1 2 3; do
	has "h1" error.$r
	[ "$(cat status.$r)" -ne 0 ] || fail "rank $r does not mind that h1 ended"
done
has "shutting down (SIGTERM)" h1.log

# ---- a daemon that hangs ----------------------------------------------------------------------
rm -f pid.* status.* error.*
lab 4 '
	export COLLNET_TIMEOUT=10000
	if [ $COLLNET_RANK = 3 ]; then
		exchange & running || exit 3
		pid=$(worker h1)
		kill -STOP $pid
		for r in 0 2 3; do await $HERE/status.$r 30 || exit 4; done
		await $HERE/status.1 30 || exit 5
		kill -CONT $pid
		wait
	else
		exchange
	fi'
ok "nobody waits for ever for a daemon that hangs"
for r in 0 2 3; do
	has "h1" error.$r
done
has "collnetd on this node does not respond" error.1

# ---- missing ranks ---------------------------------------------------------------------------
rm -f pid.*
lab 2 '
	touch $HERE/pid.$COLLNET_RANK
	await $HERE/pid.$((1 - COLLNET_RANK)) 20 || exit 3
	COLLNET_SIZE=5 COLLNET_TIMEOUT=3000 collnet bench barrier 2>$HERE/error.$COLLNET_RANK
	[ $? -ne 0 ]'
ok "missing ranks"
has "2-4" error.0
has "2-4" error.1

# ---- daemons that must not start --------------------------------------------------------------
cat >bad.conf <<'EOS'
# one good line
interface eth0
windows 7
EOS
lab 1 '
	cd $HERE
	refused() {
		expected=$1
		shift
		if collnetd "$@" >refused 2>&1 || ! echo $? >refused-status || [ "$(wc -l <refused)" -ne 1 ] ||
			! grep -q -e "$expected" refused; then
			echo "collnetd $*: not refused with \"$expected\":"
			cat refused
			exit 1
		fi
	}
	configuration() { # the unit does not start it again
		refused "$@"
		[ "$(cat refused-status)" -eq 78 ] || {
			echo "collnetd $*: status $(cat refused-status), expected 78"
			exit 1
		}
	}
	pid=$(worker h0)
	refused "interface eth0 is used by another collnetd .*(process $pid " \
		-i eth0 --socket $HERE/other.sock --user none
	configuration "bad.conf:3: .*windows" --config bad.conf
	configuration "no-such.conf: No such file" --config no-such.conf
	refused "another collnetd, or another program, listens on" -i eth0 --ethertype 0x88B6 --user none \
		--socket $COLLNET_SOCKET
	refused "another collnetd, or another program, listens on" -i later --node h0 --user none \
		--socket $COLLNET_SOCKET
	configuration "no such user .nobody-at-all" -i eth0 --ethertype 0x88B6 --user nobody-at-all
	configuration "--cluster is .x.: expected a number" -i eth0 --cluster x
	configuration "unknown or ambiguous option .--nonsense" --nonsense
	configuration "unknown or ambiguous option .-x" -xV
	configuration "link pcap " -i eth0 --ethertype 0x88B6 --user none --node h0 --link pcap \
		--encapsulation udp --socket $HERE/other.sock
	configuration "--ethertype is .0x0806.: expected one that no other protocol uses" -i eth0 --ethertype 0x0806 --user none --node h0 \
		--socket $HERE/other.sock
	configuration "--ready-fd 77: it is not open" -i eth0 --ready-fd 77
	printf "switch s\nhost other\nlink s other rate 1mbit\n" >strange
	refused "strange: no host .h0" -i eth0 --ethertype 0x88B6 --user none \
		--topology strange --node h0 --socket $HERE/other.sock
	printf "switch s\nnonsense\n" >broken
	refused "broken:2: " -i eth0 --ethertype 0x88B6 --user none --topology broken --node h0
	touch file
	refused "is not a socket" -i eth0 --ethertype 0x88B6 --user none --node h0 --socket $HERE/file
	# In a user namespace that has only one user, nobody else can be become.
	if [ "$(wc -l </proc/self/uid_map)" -eq 1 ] && grep -q " 1$" /proc/self/uid_map; then
		refused "--user none keeps" -i eth0 --ethertype 0x88B6 --user nobody --node h0 \
			--socket $HERE/other.sock
	fi
	# The library also reports what is missing.
	if COLLNET_SOCKET=$HERE/nothing collnet status >none 2>&1; then exit 9; fi
	grep -q "no collnetd at $HERE/nothing: start it with .collnetd -i IFACE" none || {
		cat none
		exit 10
	}
	if COLLNET_MODE=direct COLLNET_INTERFACE=eth0 collnet bench barrier >none 2>&1; then exit 11; fi
	grep -q "interface eth0 is used by another collnetd" none || { cat none; exit 12; }'
ok "one line for what is wrong at the start"

# ---- privileges (where there are some to drop) --------------------------------------------------
[ "$(id -u)" -eq 0 ] || exit 0
collnet lab run --timeout 200 --shape 1 --no-daemons -- sh -c '
	cd $HERE
	collnetd -i eth0 --node h0 --socket $HERE/root.sock --ready-fd 3 3>ready 2>root.log &
	n=200
	while [ ! -s ready ]; do
		[ $((n -= 1)) -gt 0 ] || { cat root.log; exit 3; }
		sleep 0.05
	done
	cp /proc/$!/status parent
	cp /proc/$(worker $!)/status status
	COLLNET_SOCKET=$HERE/root.sock collnet status >/dev/null || exit 4
	kill -TERM $!
	wait $!' >out 2>&1
got=$?
ok "a daemon that root starts"
for line in CapInh CapPrm CapEff CapAmb; do
	has "^$line:.0*$" status
done
has "^NoNewPrivs:.1$" status
lacks "^[UG]id:.*[^0-9]0[^0-9]" status
lacks "^[UG]id:.*[^0-9]0$" status
lacks "^Groups:.*[^0-9]0[^0-9]" status
# The parent keeps CAP_NET_RAW, the 13th bit, and nothing else.
for line in CapPrm CapEff; do
	has "^$line:.0*2000$" parent
done
has "^CapInh:.0*$" parent
has "^NoNewPrivs:.1$" parent
lacks "^[UG]id:.*[^0-9]0[^0-9]" parent
echo "ok: it is nobody of importance afterwards"
