# SPDX-License-Identifier: BSD-2-Clause
# The interface of a daemon goes down, is missing at the start, is removed and created again; and
# the daemon reads its configuration again.
# concurrent: yes
# timeout: 600
# run: root-long asan-long
. "$(dirname "$0")/lib.sh"
need_lab

host_commands await running
cat >exchange <<'EOS'
#!/bin/sh
# An exchange without end, and how it ended.
collnet bench alltoall --sizes 16k --iterations 1000000 --timeout 15 2>"$HERE/error.$COLLNET_RANK" &
echo $! >"$HERE/tmp.$COLLNET_RANK"
mv "$HERE/tmp.$COLLNET_RANK" "$HERE/pid.$COLLNET_RANK"
wait $!
echo $? >"$HERE/tmp.$COLLNET_RANK"
mv "$HERE/tmp.$COLLNET_RANK" "$HERE/end.$COLLNET_RANK"
EOS
chmod 755 exchange

# lab WHAT SHAPE COMMAND: on every rank, which must end well. Logs in h*.log.
lab() {
	what=$1
	rm -f pid.* end.* error.* next
	collnet lab run --rate 20mbit --timeout 200 --shape "$2" --keep-logs "$PWD" --tag -- \
		sh -c "$3" >out 2>&1 </dev/null || {
		status=$?
		cat out h?.log
		fail "$what: status $status"
	}
}

# ---- down for 0.2 s in the middle of an exchange ----------------------------------------------
lab "down for 0.2 s" 4 '
	if [ $COLLNET_RANK = 3 ]; then
		exchange & running 0 1 2 3 || exit 3
		lab-on h2 ip link set eth0 down || exit 4
		await $HERE/end.2 20 || exit 5
		sleep 0.2 # the length of the fault
		lab-on h2 ip link set eth0 up || exit 6
		for r in 0 1 2 3; do await $HERE/end.$r 20 || exit 7; done
		wait
		touch $HERE/next
	else
		exchange
		await $HERE/next 30 || exit 8
	fi
	exec collnet bench alltoall --sizes 0,10k --iterations 3 --verify --json'
has "interface eth0 went down on node h2" error.2
for r in 0 1 3; do
	has "node h2" error.$r
done
has "interface eth0 is up on node h2" h2.log
[ "$(grep -c "error: interface eth0 went down on node h2" h2.log)" -eq 1 ] || { cat h2.log; fail "not one line"; }
[ "$(json verified out | xargs)" = "true true" ] || { cat out; fail "no new job: $what"; }
echo "ok: $what: $(cat error.2)"

# ---- requests while it is down, and a start while it is down -----------------------------------
lab "down at the start" 3 '
	if [ $COLLNET_RANK = 1 ]; then
		ip link set eth0 down || exit 3
		await $COLLNET_LAB_DIR/logs/h1.log 20 "is down on node h1: waiting for it" || exit 4
		COLLNET_SIZE=1 COLLNET_RANK=0 collnet bench barrier 2>$HERE/error.down && exit 5
		collnet status >$HERE/status.down || exit 12
		kill -TERM $(cat $COLLNET_LAB_DIR/h1.daemon.pid)
		lab-daemon h1 || exit 6
		COLLNET_SIZE=1 COLLNET_RANK=0 collnet bench barrier 2>$HERE/error.start && exit 7
		collnet status >$HERE/status.start 2>&1 && exit 8
		ip link set eth0 up || exit 9
		await $COLLNET_LAB_DIR/logs/h1.log 20 "is up on node h1" || exit 10
		touch $HERE/next
	else
		await $HERE/next 30 || exit 11
	fi
	exec collnet bench alltoall --sizes 10k --iterations 3 --verify --json'
has "interface eth0 is down on node h1" error.down
has "interface eth0 is down on node h1" error.start
has "interface eth0 is down on node h1" status.start
has "^interface eth0 is DOWN, link packet, encapsulation udp, EtherType 0x88B5, cluster 1$" status.down
has "without interface eth0.*ready" h1.log
[ "$(json verified out | xargs)" = true ] || { cat out; fail "no job: $what"; }
echo "ok: $what: $(cat error.start)"

# ---- not there yet -----------------------------------------------------------------------------
lab "not there at the start" 1 '
	collnetd -i later --socket $HERE/later.sock --ethertype 0x88B6 --user none --ready-fd 3 \
		3>$HERE/ready 2>$HERE/later.log &
	await $HERE/ready 20 READY || exit 3
	COLLNET_SOCKET=$HERE/later.sock collnet status >$HERE/error.later 2>&1 && exit 4
	ip link add later type veth peer name other || exit 5
	ip link set other up && ip link set later up || exit 6
	await $HERE/later.log 20 "interface later is up" || exit 7
	COLLNET_SOCKET=$HERE/later.sock collnet status >/dev/null || exit 8
	kill -TERM $!
	wait $!'
has "no interface later on node" error.later
has "no such interface 'later' (available: lo, .*eth0.*): waiting for it" later.log
echo "ok: $what: $(cat error.later)"

# For what happens to the interface of h1 in a lab of three hosts, among the switches: a rank of the
# job $job on its host, the interface that was deleted created again with another address, and a job
# whose bytes are checked.
cat >h1 <<'EOS'
cable=$(ip -o link | sed -n "s/^[0-9]*: \(s[01]-h1\)[@:].*/\1/p")
[ -n "$cable" ] || exit 3
bridge=$(ip -o link show $cable | sed -n "s/.* master \([^ ]*\) .*/\1/p")
on() {
	r=$1
	shift
	lab-on h$r env COLLNET_RANK=$r COLLNET_SIZE=3 COLLNET_JOB=$job "$@"
}
create() {
	ip link add $cable mtu 1500 type veth peer name eth0 mtu 1500 netns h1 &&
		ip link set $cable master $bridge up &&
		lab-on h1 ip link set eth0 address 02:00:00:00:77:01 up
}
measure() {
	for r in 1 2; do on $r collnet bench alltoall --sizes 10k --iterations 3 --verify & done
	on 0 collnet bench alltoall --sizes 10k --iterations 3 --verify --json
	status=$?
	wait
	return $status
}
EOS

# ---- removed and created again, with another index and address ---------------------------------
what="removed and created again"
rm -f pid.* end.* error.* next
collnet lab shell --shape 3 --rate 20mbit --keep-logs "$PWD" -- sh -c '
	. "$HERE/h1"
	log=$COLLNET_LAB_DIR/logs/h1.log
	job=removed
	for r in 0 1 2; do on $r exchange & done
	lab-on h2 running 0 1 2 || exit 4
	before=$(cat $COLLNET_LAB_DIR/h1.daemon.pid)
	lab-on h1 ip link del eth0 || exit 5
	for r in 0 1 2; do await end.$r 20 || exit 6; done
	await $log 20 "no interface eth0 on node h1" || exit 7
	create || exit 8
	await $log 20 "interface eth0 is up on node h1" || exit 11
	kill -0 $before || exit 12
	wait
	job=created
	measure || exit 13
	lab-on h0 collnet status --json >$HERE/status.json' >out 2>err </dev/null || {
	status=$?
	cat out err h1.log error.*
	fail "$what: status $status"
}
has "interface eth0 was removed on node h1" error.1
has "node h1" error.0
has "node h1" error.2
[ "$(json verified out)" = true ] || { cat out err; fail "no new job: $what"; }
sed 's/"jobs".*//' status.json >nodes.json
[ "$(json name nodes.json | sort | xargs)" = "h0 h1 h2" ] || { cat status.json; fail "a node is listed twice: $what"; }
echo "ok: $what: $(cat error.1)"

# ---- replaced in the middle of an exchange; the same job again ----------------------------------
what="replaced in the middle"
rm -f pid.* end.* error.* next
collnet lab shell --shape 3 --rate 20mbit --keep-logs "$PWD" -- sh -c '
	. "$HERE/h1"
	job=replaced
	for r in 0 1 2; do on $r exchange & done
	lab-on h2 running 0 1 2 || exit 4
	lab-on h1 ip link del eth0 || exit 5
	create || exit 6
	wait
	measure' >out 2>err </dev/null || {
	status=$?
	cat out err h?.log error.*
	fail "$what: status $status"
}
for r in 0 2; do
	has "node h1 replaced its interface" error.$r
	has "node h1 replaced its interface" h$r.log
	if grep "is called h1, as another" h$r.log; then
		fail "$what: the new address was refused the name"
	fi
done
[ "$(json verified out)" = true ] || { cat out err; fail "no new job: $what"; }
echo "ok: $what: $(cat error.0)"

# ---- another MTU, in the middle of an exchange, too small a one with another address, and as before ----
what="another MTU"
rm -f pid.* end.* error.* next h?.log # a log goes on where one of the same name ended
collnet lab shell --shape 3 --rate 20mbit --keep-logs "$PWD" -- sh -c '
	. "$HERE/h1"
	log=$COLLNET_LAB_DIR/logs/h1.log
	job=mtu
	for r in 0 1 2; do on $r exchange & done
	lab-on h2 running 0 1 2 || exit 4
	lab-on h1 ip link set eth0 mtu 700 || exit 5
	wait
	await $log 20 "interface eth0 is up on node h1 (MTU 700)" || exit 6
	lab-on h1 ip link set eth0 mtu 500 || exit 7
	lab-on h1 ip link set eth0 address 02:00:00:00:77:02 || exit 8
	await $log 20 "at least 604 is required" || exit 9
	lab-on h1 env COLLNET_SIZE=1 COLLNET_RANK=0 collnet bench barrier 2>error.small && exit 10
	lab-on h1 ip link set eth0 mtu 700 || exit 11
	lab-on h1 ip link set eth0 mtu 1500 || exit 13
	await $log 20 "(MTU 1500)" || exit 14
	job=again
	measure' >out 2>err </dev/null || {
	status=$?
	cat out err h?.log error.*
	fail "$what: status $status"
}
for r in 0 1 2; do
	has "interface eth0 was given an MTU of 700 instead of 1500 on node h1" error.$r
done
has "interface eth0 has an MTU of 500, and at least 604 is required" error.small
[ "$(json verified out)" = true ] || { cat out err; fail "no new job: $what"; }
echo "ok: $what: $(cat error.0)"

# ---- a lower MTU in direct mode: between programs, by the encapsulations and by link udp ------------
cat >moving <<'EOS'
#!/bin/sh
# Waits until this host has received this many frames.
n=1000
until [ "$(awk '$1 == "eth0:" { print $3 }' /proc/net/dev)" -gt "$1" ]; do
	[ $((n -= 1)) -gt 0 ] || { echo "moving: nothing moves" >&2; exit 1; }
	sleep 0.02
done
EOS
chmod 755 moving
for how in COLLNET_ENCAPSULATION=udp COLLNET_ENCAPSULATION=raw COLLNET_LINK=udp; do
	what="a lower MTU in direct mode, $how"
	rm -f pid.* end.* error.*
	# shellcheck disable=SC2016
	env $how collnet lab run --shape 3 --ip --rate 20mbit --no-daemons --timeout 200 -- sh -c '
		[ $COLLNET_RANK = 1 ] || exec exchange
		exchange & moving 2000 || exit 4
		ip link set eth0 mtu 700 || exit 5
		for r in 0 1 2; do await $HERE/end.$r 10 || exit 6; done
		wait' >out 2>&1 </dev/null || {
		status=$?
		cat out error.*
		fail "$what: status $status"
	}
	has "interface eth0 was given an MTU of 700 instead of 1500 on node h1" error.1
	for r in 0 2; do # which of the two has the reason first ends, and the other may hear of that first
		has "interface eth0 was given an MTU of 700 instead of 1500 on node h1\|node h[02] ended" error.$r
	done
	echo "ok: $what: $(cat error.1)"
done

# ---- one that flaps ----------------------------------------------------------------------------
rm -f h?.log
lab "flapping" 2 '
	[ $COLLNET_RANK = 1 ] || exit 0
	log=$COLLNET_LAB_DIR/logs/h1.log
	seen() { # each state is one that the daemon has seen
		n=400
		until collnet status | grep -q "^interface eth0$1, link"; do
			[ $((n -= 1)) -gt 0 ] || exit 4
			sleep 0.05
		done
	}
	flap() {
		ip link set eth0 down || exit 3
		seen " is DOWN"
		ip link set eth0 up || exit 5
		seen
	}
	flap && flap && flap && flap
	await $log 40 "earlier lines were suppressed" || exit 6'
[ "$(grep -c "receive buffer" h1.log)" -le 1 ] || { cat h1.log; fail "$what: the same advice again"; }
grep "interface eth0" h1.log | grep -v "receive buffer" >lines # of which an ordinary user has no more
[ "$(wc -l <lines)" -eq 9 ] || { cat h1.log; fail "$what: not 9 lines"; }
has "^collnetd: interface eth0 is up on node h1 (MTU 1500) (3 earlier lines were suppressed)$" lines
[ "$(tail -n 1 lines)" = "$(grep "were suppressed" lines)" ] || { cat lines; fail "$what: not the last line"; }
lacks "Network is down" h1.log
echo "ok: $what: $(tail -n 1 lines)"

# ---- a cable that is pulled out, and plugged in again ---------------------------------------------
# Directly, a node has 1.5 s: one that the machine does not run for a while is another that does not answer,
# by which the third one is cut off. That has three tries.
named=
for how in direct direct direct daemons; do
	[ $how = daemons ] || [ -z "$named" ] || continue
	what="without a carrier, $how"
	rm -f pid.* end.* error.* h?.log
	[ $how = daemons ] && options="$patient --keep-logs $PWD" || options=--no-daemons
	# shellcheck disable=SC2086 # a list of words
	collnet lab shell --shape 3 --rate 20mbit $options -- sh -c '
		. "$HERE/h1"
		job=carrier
		for r in 0 1 2; do on $r exchange & done
		if [ '$how' = daemons ]; then lab-on h2 running 0 1 2; else lab-on h2 moving 2000; fi || exit 4
		ip link set $cable down || exit 5
		for r in 0 1 2; do await end.$r 20 || exit 6; done
		wait
		[ '$how' = daemons ] || exit 0
		log=$COLLNET_LAB_DIR/logs/h1.log
		lab-on h1 collnet status >status.text && lab-on h1 collnet status --json >status.json || exit 7
		ip link set $cable up || exit 8
		await $log 20 "interface eth0 has a carrier again on node h1" || exit 9
		lab-on h1 collnet status >status.again || exit 10
		job=again
		measure' >out 2>err </dev/null || {
		status=$?
		cat out err h?.log error.*
		fail "$what: status $status"
	}
	has "interface eth0 of node h1 has no carrier" error.1
	if [ $how = direct ] && grep "node h[02] is cut off" error.0 error.2; then
		continue
	fi
	named=1$named
	for r in 0 2; do
		has "node h1" error.$r
		lacks "has no carrier" error.$r
	done
	echo "ok: $what: $(cat error.1)"
done
[ "$named" = 11 ] || fail "without a carrier, direct: another node is cut off, three times"
[ "$(grep -c "interface eth0 has no carrier on node h1: is its cable plugged in?$" h1.log)" -eq 1 ] ||
	{ cat h1.log; fail "not one line about the carrier"; }
has "^interface eth0 has no carrier, link packet" status.text
[ "$(json carrier status.json) $(json down status.json)" = "false false" ] || { cat status.json; fail "status"; }
has "^interface eth0, link packet" status.again
[ "$(json verified out)" = true ] || { cat out err; fail "no new job: $what"; }

# ---- SIGHUP ------------------------------------------------------------------------------------
cat >good.conf <<'EOS'
window 7
EOS
lab "SIGHUP" 2 '
	if [ $COLLNET_RANK = 1 ]; then
		exchange
		exit 0
	fi
	pid=$(cat $COLLNET_LAB_DIR/h0.daemon.pid)
	log=$COLLNET_LAB_DIR/logs/h0.log
	kill -TERM $pid
	cp $HERE/good.conf $HERE/h0.conf
	sed -i "s,--interface,--config $HERE/h0.conf --interface," $COLLNET_LAB_DIR/h0.daemon.cmd
	lab-daemon h0 || exit 3
	pid=$(cat $COLLNET_LAB_DIR/h0.daemon.pid)
	window() { collnet status --json | tr ",{}" "\n\n\n" | sed -n "s/^ *\"limit\": *//p"; }
	[ "$(window)" = 7 ] || { window; exit 4; }
	exchange & running 0 1 || exit 5
	printf "window 9\ncluster 5\nlog-level debug\n" >$HERE/h0.conf
	kill -HUP $pid
	await $log 20 "configuration reloaded" || exit 6
	[ "$(window)" = 9 ] || { window; exit 7; }
	reloads() { grep -c "configuration reloaded" $log; }
	for i in 2 3 4 5 6 7 8 9 10 11 12; do # of the topologies, the job uses the first
		sed -i "s/buffer [0-9]*/buffer $((50 + i))/" $COLLNET_LAB_DIR/topology
		kill -HUP $pid
		tries=200
		until [ "$(reloads)" -eq $i ]; do
			[ $((tries -= 1)) -gt 0 ] || exit 11
			sleep 0.05
		done
	done
	printf "window 11\nwindoes 3\n" >$HERE/h0.conf
	kill -HUP $pid
	await $log 20 "configuration not reloaded" || exit 8
	[ "$(window)" = 9 ] || { window; exit 9; }
	printf "window 13\ngroup of-nobody\n" >$HERE/h0.conf
	kill -HUP $pid
	await $log 20 "restart to change: group" || exit 12
	[ "$(window)" = 13 ] || { window; exit 13; }
	printf "window 13\ntopology /nowhere\n" >$HERE/h0.conf
	[ ! -e $HERE/end.0 ] || { cat $HERE/error.0; exit 10; }
	kill $(cat $HERE/pid.0)
	wait'
has "h0.conf:2: unknown key 'windoes'" h0.log
has "configuration reloaded; restart to change: group$" h0.log
[ "$(grep -c "configuration" h0.log)" -eq 14 ] || { cat h0.log; fail "not 14 lines"; }
echo "ok: $what: $(grep -m 1 "configuration reloaded" h0.log)"
