# SPDX-License-Identifier: BSD-2-Clause
# The encapsulations udp, the default, and tcp: right bytes; with super-frames no frame is lost in any port, and no more
# are in flight than the window; the kernels of the hosts neither reply to such a frame nor log it. And raw.
# timeout: 900
. "$(dirname "$0")/lib.sh"
need_lab
need frames

# The networks and windows of lab/exchange and lab/buffers.
exchange() {
	lab_rows --timeout 200 "$patient" "$@" --algorithm shuffle
	no_drops
	[ "$(json nic_drops ports)/$(json ring_drops rows | sort -u)" = 0/0 ] || {
		cat out
		fail "a host lost frames: $what"
	}
	json window rows >windows
	window_kept rows
	echo "ok: windows $(sort -un windows | xargs), peaks $(json window_peak rows | sort -un | xargs): $what"
}
exchange --shape 4x2 --rate 20mbit -- alltoall --sizes 0,1,1k,10k,64k --iterations 3
exchange --shape 2x2 --ranks-per-node 2 --rate 20mbit -- alltoall --sizes 1k,64k --iterations 3
# Ports that hold a hundred frames: super-frames form, and the ports hold them.
for e in udp tcp raw; do
	exchange --shape 4 --rate 50mbit --buffer 100 --encapsulation $e -- alltoall --sizes 256k --iterations 3
done

# Without a window, without and with a link that has a rate (which cuts super-frames), and through
# direct mode; loss is repaired.
for net in "--shape 2 --no-daemons" "--shape 2 --mtu 604" \
	"--shape 4 --rate 100mbit --loss 1% --encapsulation tcp" \
	"--shape 2 --mtu 9000" "--shape 4 --rate 100mbit --loss 1%" "--shape 2 --mtu 616 --encapsulation tcp"; do
	is_long || [ "$net" != "--shape 2 --mtu 9000" ] || break
	# shellcheck disable=SC2086
	lab_rows --timeout 200 "$patient" $net -- alltoall --sizes 1,1k,1m --iterations 2 \
		--window off --timeout 30
	echo "ok: $what"
	# shellcheck disable=SC2086
	lab_rows --timeout 200 "$patient" $net -- stream --sizes 1,100k --iterations 20
	echo "ok: $what"
done

# The kernels: without and with IP addresses, martians logged, packets forwarded.
HERE=$PWD
export HERE
cat >counters <<'EOS'
awk '/^Icmp:/ { if (n++) { out = $15; in_ = $2 } } END { print "icmp", in_, out }' /proc/net/snmp
awk '/^Udp:/ && n++ { print "udp", $2, $3, $4 }' /proc/net/snmp
awk '/^Tcp:/ && n++ { print "tcp", $11, $12, $14, $15 }' /proc/net/snmp
awk '/^Ip:/ && n++ { print "ip out", $11 }' /proc/net/snmp
EOS
for how in "" --ip "--encapsulation tcp" "--encapsulation tcp --ip"; do
	# shellcheck disable=SC2086
	collnet lab run --shape 2 $how --timeout 200 -- sh -c '
		for f in all/log_martians all/forwarding all/rp_filter default/log_martians; do
			echo 1 >/proc/sys/net/ipv4/conf/$f 2>/dev/null
		done
		sh $HERE/counters >$HERE/before.$COLLNET_RANK
		collnet bench stream --sizes 100k --iterations 40 --window off >$HERE/bench.$COLLNET_RANK || exit 1
		sh $HERE/counters >$HERE/after.$COLLNET_RANK' >out 2>&1 </dev/null || {
		cat out
		fail "a stream, options '$how'"
	}
	for rank in 0 1; do
		cmp before.$rank after.$rank || {
			cat before.$rank after.$rank
			fail "the kernel of a host took notice, options '$how'"
		}
	done
	echo "ok: no ICMP, no datagram or segment delivered or sent by the kernel, options '$how'"
done

# Programs without privileges that join the group receive what they send to it, and no frame.
collnet lab run --shape 2 --ip --timeout 200 -- sh -c '
	for f in all eth0; do
		echo 0 >/proc/sys/net/ipv4/conf/$f/rp_filter
	done
	frames joined 224.0.0.254 34997 collnet bench stream --sizes 100k --iterations 4' >out 2>&1 </dev/null || {
	cat out
	fail "a group that was joined"
}
[ "$(grep -c "^joined [12]$" out)" -eq 2 ] || { cat out; fail "a socket received frames"; }
echo "ok: no frame for a socket that joined the group"

# One node of another encapsulation: named at both, in one line.
collnet lab run --shape 2 --no-daemons --timeout 200 --tag -- sh -c '
	[ $COLLNET_RANK = 1 ] || { COLLNET_ENCAPSULATION=raw; export COLLNET_ENCAPSULATION; }
	: >$HERE/here.$COLLNET_RANK
	until [ -e $HERE/here.$((1 - COLLNET_RANK)) ]; do sleep 0.02; done
	! collnet bench barrier --timeout 5' >out 2>&1 </dev/null || { cat out; fail "two encapsulations"; }
has "0.*1 of 2 ranks missing at the deadline: 1; h1 uses encapsulation udp, this node raw" out
has "1.*1 of 2 ranks missing at the deadline: 0; h0 uses encapsulation raw, this node udp" out
echo "ok: two encapsulations, named at both nodes"

# The link pcap has raw alone.
collnet lab run --shape 2 --no-daemons --timeout 200 -- sh -c '
	! collnet bench barrier --link pcap --timeout 3' >out 2>&1 </dev/null || { cat out; fail "pcap"; }
has "link pcap has no encapsulation udp\|no link pcap" out

is_long || exit 0
# The encapsulation raw: the whole of two other tests, goodbyes of a daemon that was killed, which its parent
# sends; and ports of twelve frames, in which the shuffle loses nothing.
case $0 in
/*) tests=${0%/*} ;;
*) tests=$PWD/${0%/*} ;;
esac
COLLNET_ENCAPSULATION=raw
export COLLNET_ENCAPSULATION
for t in parent buffers; do
	mkdir "$t"
	(cd "$t" && TMPDIR=$PWD sh "$tests/$t.sh") || fail "$t with the encapsulation raw"
done
