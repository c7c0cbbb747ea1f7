# SPDX-License-Identifier: BSD-2-Clause
# Link udp: collectives between daemons and between programs without any privilege, by a multicast
# group, a file, a list and what a launcher names, and across a router; a node that is not listed
# takes no part; a killed worker is announced.
# timeout: 400
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need setpriv
export HERE="$PWD"
again="alltoall --sizes 1k,64k --iterations 5 --verify --json"

# right: all rows of ./out are verified.
right() {
	[ -s out ] && [ "$(json verified out | sort -u)" = true ] || {
		cat out err
		fail "$what: wrong bytes"
	}
	echo "ok: $what"
}

lab_rows --timeout 200 "$patient" --ip --shape 4x2 --rate 20mbit --daemon-arg=--link=udp -- \
	alltoall --sizes 1k,64k --iterations 5
no_drops
echo "ok: $what"

# A rank without any capability: link packet is refused, link udp works.
cat >rank <<'EOS'
export COLLNET_MODE=direct
unprivileged() {
	setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs "$@"
}
unprivileged collnet bench barrier 2>"$HERE/refused.$COLLNET_RANK" && exit 5
grep -q "no permission for raw sockets" "$HERE/refused.$COLLNET_RANK" || exit 6
export COLLNET_LINK=udp
unprivileged collnet bench "$@"
EOS
printf 'h0\nh1 # by name\nh2\nh3\n' >hosts
unprivileged() {
	what="programs without a capability, $1"
	shift
	# shellcheck disable=SC2086
	env "$@" collnet lab run --shape 4 --rate 20mbit --ip --no-daemons --timeout 200 -- \
		sh "$PWD/rank" $again >out 2>err </dev/null || {
		cat out err refused.*
		fail "$what"
	}
	right
}
unprivileged "by a file of hosts" COLLNET_PEERS="$PWD/hosts"
unprivileged "by a list of hosts" COLLNET_PEERS="h3,h[0-2]"
unprivileged "by Slurm's list" COLLNET_PEERS=launcher SLURM_JOB_NODELIST="h[0-1,2-3]"
unprivileged "by PBS's file" COLLNET_PEERS=launcher PBS_NODEFILE="$PWD/hosts"
COLLNET_MODE=direct COLLNET_LINK=udp COLLNET_PEERS=launcher COLLNET_INTERFACE=lo \
	collnet bench barrier --ranks 1 >out 2>&1 && fail "no launcher"
has "the launcher names no hosts" out

what="a list that lacks a host"
COLLNET_MODE=direct COLLNET_LINK=udp COLLNET_PEERS=h0, COLLNET_TIMEOUT=1000 \
	collnet lab run --shape 2 --ip --no-daemons --timeout 60 -- collnet bench barrier >out 2>&1 </dev/null &&
	fail "$what"
has "check COLLNET_INTERFACE and COLLNET_PEERS on all hosts" out
lacks "collnet status" out
echo "ok: $what"

# h1 moves to a network beyond h2, which forwards.
what="across a router"
cat >routed <<'EOS'
address() {
	lab-on "$1" ip -4 -o addr show dev eth0 | sed 's/.*inet \([0-9.]*\).*/\1/'
}
h0=$(address h0) h2=$(address h2)
lab-on h1 ip addr flush dev eth0 && lab-on h1 ip addr add 10.99.0.1/24 dev eth0 &&
	lab-on h2 ip addr add 10.99.0.2/24 dev eth0 &&
	lab-on h2 sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' &&
	lab-on h0 ip route add 10.99.0.0/24 via "$h2" &&
	lab-on h1 ip route add default via 10.99.0.2 || exit 3
printf '%s\n10.99.0.1\n' "$h0" >"$HERE/hosts"
export COLLNET_LINK=udp COLLNET_PEERS="$HERE/hosts" COLLNET_SIZE=2 COLLNET_JOB=routed
unset COLLNET_TOPOLOGY
lab-on h1 env COLLNET_RANK=1 collnet bench "$@" &
lab-on h0 env COLLNET_RANK=0 collnet bench "$@"
status=$?
wait
exit $status
EOS
# shellcheck disable=SC2086
collnet lab shell --shape 3 --rate 20mbit --ip --no-daemons --timeout 200 -- \
	sh "$PWD/routed" $again >out 2>err </dev/null || {
	cat out err
	fail "$what"
}
right

# h2 lists h0, which does not list h2: h0 does not see it before h1 starts, and it takes no rank.
what="a node that is not listed"
cat >stranger <<'EOS'
export COLLNET_LINK=udp COLLNET_MODE=direct COLLNET_SIZE=2 COLLNET_JOB=stranger COLLNET_TIMEOUT=60000
unset COLLNET_TOPOLOGY
lab-on h0 env COLLNET_PEERS=h0,h1 COLLNET_RANK=0 collnet bench barrier >"$HERE/out" 2>&1 &
job=$!
lab-on h2 env COLLNET_PEERS=h0,h2 COLLNET_RANK=1 COLLNET_TIMEOUT=1500 \
	collnet bench barrier >"$HERE/out.2" 2>&1 && exit 4
lab-on h1 env COLLNET_PEERS=h0,h1 COLLNET_RANK=1 collnet bench barrier >"$HERE/out.1" 2>&1 &&
	wait $job
EOS
collnet lab shell --shape 3 --rate 20mbit --ip --no-daemons --timeout 200 -- \
	sh "$PWD/stranger" >lab.out 2>&1 </dev/null || {
	cat lab.out out out.1 out.2
	fail "$what"
}
has "1 of 2 ranks missing" out.2
echo "ok: $what"

# Its parent announces a killed worker, from the worker's address and port.
what="a killed worker"
cat >killed <<'EOS'
for r in 0 1 2; do
	lab-on h$r env COLLNET_RANK=$r COLLNET_SIZE=3 COLLNET_JOB=killed collnet bench alltoall \
		--sizes 1k --iterations 1000000 >"$HERE/out.$r" 2>"$HERE/err.$r" &
done
until lab-on h1 collnet status | grep -q "killed.*running"; do sleep 0.05; done
kill -KILL "$(ps -o pid= --ppid "$(cat "$COLLNET_LAB_DIR/h0.daemon.pid")" | xargs)"
wait
EOS
collnet lab shell --shape 3 --rate 20mbit --ip --daemon-arg=--link=udp "$patient" --timeout 200 -- \
	sh "$PWD/killed" >out 2>err </dev/null # its status is that of the killed daemon
for r in 1 2; do
	has "node h0 ended its daemon" err.$r
done
echo "ok: $what: $(tail -n 1 err.1)"

# What tcpdump does to an interface changes nothing for the link.
what="promiscuous mode"
cat >promisc <<'EOS'
for r in 0 1; do
	lab-on h$r env COLLNET_RANK=$r COLLNET_SIZE=2 COLLNET_JOB=promisc collnet bench alltoall \
		--sizes 1k --iterations 8000 >"$HERE/out.$r" 2>"$HERE/err.$r" &
	eval pid$r=$!
done
until lab-on h0 collnet status | grep -q "promisc.*running"; do sleep 0.05; done
lab-on h0 ip link set eth0 promisc on
lab-on h0 ip link set eth0 promisc off
lab-on h0 collnet status | grep -q "promisc.*running" || echo "the job ended before" >"$HERE/err.0"
wait $pid0 && wait $pid1
EOS
collnet lab shell --shape 2 --rate 20mbit --ip --daemon-arg=--link=udp "$patient" --timeout 200 -- \
	sh "$PWD/promisc" >out 2>err </dev/null && [ ! -s err.0 ] || {
	cat out err err.0 err.1
	fail "$what"
}
echo "ok: $what"

# As with DHCP at boot: the daemon waits, starts when there is an address, and logs each once.
what="an address that comes later"
host_commands await
cat >later <<'EOS'
address=$(ip -4 -o addr show dev eth0 | sed 's/.*inet \([0-9./]*\).*/\1/')
ip addr flush dev eth0 || exit 3
collnetd --link udp -i eth0 --node h0 --user none --socket "$HERE/later.sock" --ready-fd 3 \
	3>"$HERE/ready" 2>"$HERE/later.log" &
await "$HERE/ready" 20 READY || exit 4
COLLNET_SOCKET=$HERE/later.sock collnet status >"$HERE/out.later" 2>&1 && exit 5
ip addr add "$address" dev eth0 || exit 6
await "$HERE/later.log" 20 "interface eth0 is up on node h0" || exit 7
COLLNET_SOCKET=$HERE/later.sock collnet bench barrier --ranks 1 || exit 8
ip link set eth0 down || exit 9
await "$HERE/later.log" 20 "is down on node h0: waiting for it" || exit 10
kill -TERM $!
wait $!
EOS
collnet lab run --shape 1 --ip --no-daemons --timeout 200 -- sh "$PWD/later" >out 2>&1 </dev/null || {
	status=$?
	cat out later.log
	fail "$what: status $status"
}
has "interface eth0 has no IPv4 address" out.later
[ "$(grep -c "interface eth0 has no IPv4 address.*: waiting for it" later.log)" = 1 ] || { cat later.log; fail "$what"; }
lacks "Network is down" later.log
echo "ok: $what: $(tail -n 1 out.later)"

# What is wrong is said.
collnetd --link udp -i lo --ethertype 0x7000 --socket "$PWD/s" >out 2>&1 && fail "port 0x7000"
has "too low a port: choose an EtherType from 0x8000 up" out
collnetd --link packet --peers hosts -i lo --socket "$PWD/s" >out 2>&1 && fail "peers"
has "only link udp uses peers; link packet finds all nodes" out
echo "ok: bad options"
