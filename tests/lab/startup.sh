# SPDX-License-Identifier: BSD-2-Clause
# What collnetd meets at its start and what its interface can do to it: a signal before it is ready, closed
# standard descriptors, an interface that is recreated unnoticed with the same properties.
# concurrent: yes
# timeout: 300
# run: root
. "$(dirname "$0")/lib.sh"
need_lab
need ip unshare nsenter

host_commands await
# host WHAT SCRIPT: on a host that has no daemon.
host() {
	echo "$2" >script
	collnet lab run --no-daemons --shape 1 --timeout 50 --tag -- sh -eu -c '
		cd $HERE
		tries() { # COMMAND...: until it succeeds, or for 20 s
			for i in $(seq 400); do "$@" && return 0; sleep 0.05; done
			return 1
		}
		child() { tr -d " " <"/proc/$1/task/$1/children"; }
		ends() { timeout 20 tail --pid="$1" -s 0.02 -f /dev/null; }
		. $HERE/script' >out 2>&1 </dev/null || {
		cat out log 2>/dev/null
		fail "$1"
	}
	echo "ok: $1"
}

# The worker waits for its topology and is root still, its parent is not.
if [ "$(id -u)" -ne 0 ] || [ "$(wc -l </proc/self/uid_map)" -ne 1 ] || ! grep -q ' 4294967295$' /proc/self/uid_map; then
	echo "skipped: a daemon that changes its user needs root and all users"
else
	host "a signal before it is ready" '
		rm -f topology; mkfifo topology
		collnetd -i eth0 --node h0 --topology topology --socket $HERE/start.sock --user nobody 2>log &
		pid=$!
		changed() { ! grep -q "^Uid:.0.0" /proc/$pid/status; }
		tries changed
		kill -TERM $pid
		printf "switch s\nhost h0\nlink h0 s rate 1gbit\n" >topology
		ends $pid
		wait $pid
		grep -q "shutting down (SIGTERM)" log'
fi

host "closed standard descriptors" '
	rm -f ready; mkfifo ready
	collnetd -i eth0 --node h0 --socket $HERE/closed.sock --user none --ready-fd 3 3>ready 0<&- 1>&- 2>&- &
	pid=$!
	read -r line <ready
	[ "$line" = READY ]
	for fd in 0 1 2; do
		[ "$(readlink /proc/$(child $pid)/fd/$fd)" = /dev/null ]
	done
	kill $pid
	wait $pid'

# The first one has dropped its privileges when its interface comes up.
host "two daemons for an interface that is down" '
	user=none
	[ "$(id -u)" -ne 0 ] || [ "$(wc -l </proc/self/uid_map)" -ne 1 ] ||
		! grep -q " 4294967295$" /proc/self/uid_map || user=nobody
	ip link set eth0 down
	rm -f ready; mkfifo ready
	collnetd -i eth0 --node h0 --socket $HERE/first.sock --user $user --ready-fd 3 3>ready 2>log &
	pid=$!
	read -r line <ready
	status=0
	collnetd -i eth0 --node h1 --socket $HERE/second.sock --user $user 2>second || status=$?
	[ $status -eq 1 ]
	grep -q "interface eth0 is used by another collnetd" second
	ip link set eth0 up
	tries grep -q "interface eth0 is up" log
	status=0
	collnetd -i eth0 --node h1 --socket $HERE/second.sock --user $user 2>second || status=$?
	[ $status -eq 1 ]
	grep -q "interface eth0 is used by another collnetd" second
	kill $pid
	ends $pid'

# refused STATUS TEXT OPTION...: while the interface is down, not when it comes up.
host "options in conflict, and an interface that is down" '
	refused() {
		want=$1 text=$2 status=0
		shift 2
		timeout 20 collnetd -i eth0 --node h0 --socket $HERE/no.sock --user none "$@" 2>log || status=$?
		[ $status -eq $want ]
		grep -q "$text" log
	}
	ip link set eth0 down
	refused 78 "too low a port" --link udp --ethertype 0x1234
	refused 78 "link pcap has no encapsulation udp\|no link pcap" --link pcap'

# It says each thing once, although it tries again and again.
host "an interface that another one has" '
	ip link add vy type veth peer name pvy
	ip link add name br0 type bridge
	ip link set vy master br0
	rm -f ready; mkfifo ready
	collnetd -i vy --node h0 --socket $HERE/busy.sock --user none --peers h1, --ready-fd 3 3>ready 2>log &
	pid=$!
	read -r line <ready
	ip link set vy up; ip link set pvy up
	tries grep -q "port of a bridge" log
	for mtu in 1490 1480 1470; do ip link set vy mtu $mtu; done
	ip link set vy down
	tries grep -q "interface vy is down on node h0: waiting" log
	[ "$(grep -c "only link udp uses peers" log)" -eq 1 ]
	kill $pid
	ends $pid'

host "an interface that comes back as it was" '
	ip link add vx type veth peer name pvx
	ip link set vx up; ip link set pvx up
	rm -f ready; mkfifo ready
	collnetd -i vx --node h0 --socket $HERE/back.sock --user none --ready-fd 3 3>ready 2>log &
	pid=$!
	read -r line <ready
	worker=$(child $pid)
	index=$(cat /sys/class/net/vx/ifindex 2>/dev/null || ip -o link show vx | cut -d: -f1)
	unshare -n sleep 40 &
	other=$!
	elsewhere() { [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; }
	tries elsewhere
	kill -STOP $worker
	ip link set vx netns $other
	nsenter -t $other -n ip link set vx netns $$
	ip link set vx up
	kill -CONT $worker
	tries grep -q "interface vx is up" log
	# Sockets of an interface that was removed have no index.
	if awk "NR > 1 && \$5 + 0 != $index { found = 1 } END { exit !found }" /proc/net/packet; then
		cat /proc/net/packet
		exit 1
	fi
	[ "$(awk "NR > 1 && \$5 + 0 == $index" /proc/net/packet | wc -l)" -ge 2 ]
	kill $other
	kill $pid
	ends $pid'
