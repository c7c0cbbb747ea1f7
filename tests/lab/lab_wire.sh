# SPDX-License-Identifier: BSD-2-Clause
# The lab's wires: nothing lost without reason, rates kept, buffers of so many frames, random
# loss, and every frame accounted for.
# run: user root-long
# timeout: 400
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need frames

# sum WORD: the sum of the numbers after WORD at the beginning of lines of out.
sum() {
	awk -v w="$1" '$1 == w { n += $2 } END { print n + 0 }' out
}

# run SENDERS COUNT BYTES OPTION...: ranks 1 .. SENDERS send COUNT frames each to rank 0.
run() {
	senders=$1 count=$2 bytes=$3
	shift 3
	collnet lab run --no-daemons --json "$@" -- sh -c "
		if [ \$COLLNET_RANK = 0 ]; then
			exec frames receive zero 500 $senders
		elif [ \$COLLNET_RANK -le $senders ]; then
			exec frames send zero 02:c0:11:00:00:00 $count $bytes
		fi" >out 2>err || { cat out err; fail "status $?"; }
	received=$(sum received) sent=$(sum sent)
	ms=$(awk '$1 == "sent" {
			if (!n++ || $6 < first) first = $6
			if ($6 + $4 > last) last = $6 + $4
		} END { print int((last - first) / 1000) + 1 }' out)
	drops=$(json drops_total out) lost=$(json loss_dropped out)
	[ "$(json nic_drops out)" -eq 0 ] || { cat out; fail "a network card lost frames"; }
	[ $((received + drops + lost)) -eq "$sent" ] || {
		cat out
		fail "sent $sent, received $received, dropped $drops, lost $lost: not all accounted for"
	}
}

# slow RATE BUFFER: ./slow.topo, where h0's port is that slow and all else has no limit. The number of
# frames that come is the port's buffer, two or three in the bucket and on the wire, and those that the
# port sends in the $ms milliseconds from the first sender's start to the last one's end.
slow() {
	printf 'switch s\nhost h0 mac 02:c0:11:00:00:00\nlink h0 s rate %s buffer %s\n' "$1" "$2"
	printf 'host h1\nlink h1 s rate none\nhost h2\nlink h2 s rate none\n'
} >slow.topo

# A single sender loses nothing, and does not exceed the rate: 400 frames of 1514 bytes, less the
# bucket of about two at each end, take at least 396 * 605.6 us at 20 Mbit/s.
run 1 400 1514 --shape 2 --rate 20mbit --buffer 400
[ "$drops" -eq 0 ] || { cat out; fail "one sender lost $drops frames"; }
us=$(awk '$1 == "sent" { print $4 }' out)
# The sender itself is done when the last frames are in its card's queue.
[ "$us" -ge 180000 ] || fail "400 frames took $us us: faster than the link"

# Over three switches; nothing is flooded to hosts that it is not for.
run 3 50 1000 --shape 2x2 --rate 20mbit --buffer 200 --uplink-buffer 200
[ "$received" -eq 150 ] || { cat out; fail "$received of 150 frames came"; }
for host in h1 h2 h3; do
	frames=$(grep -o "\"peer\":\"$host\",\"frames\":[0-9]*" out | sed 's/.*://')
	[ "$frames" -eq 0 ] || { cat out; fail "$host was sent $frames frames that are not its own"; }
done

# Two senders into one port, 30 ms a frame: frames that its buffer holds arrive, the others are lost.
for buffer in 5 60; do
	slow 400kbit $buffer
	run 2 400 1514 --topology slow.topo
	[ "$received" -ge $buffer ] && [ "$received" -le $((buffer + 4 + ms / 30)) ] || {
		cat out
		fail "$received frames of 800 came through a port with a buffer of $buffer in $ms ms"
	}
done

# The buffer counts frames, not bytes: 252 frames of 60 bytes would fit into ten of 1514. 10 ms a frame.
slow 50kbit 10
run 2 300 60 --topology slow.topo
[ "$received" -ge 10 ] && [ "$received" -le $((150 + ms / 9)) ] || {
	cat out
	fail "$received small frames came through a buffer of 10 in $ms ms: it counts bytes"
}

# Random loss: 10 % of 2000 is 200, give or take six standard deviations: once a frame, and not
# at each of the three switches on its way.
run 1 2000 200 --shape 1x2 --rate 200mbit --loss 10% --buffer 2000 --uplink-buffer 2000
[ "$drops" -eq 0 ] || fail "$drops frames dropped by buffers"
[ "$lost" -ge 120 ] && [ "$lost" -le 280 ] || { cat out; fail "10 % loss took $lost of 2000"; }

# No rate: no queue, no loss; the buffer in the topology file is that of the kernel.
run 1 5000 1514 --shape 2 --rate none
[ "$received" -eq 5000 ] || { cat out; fail "$received of 5000"; }
collnet lab run --shape 2 --rate none --no-daemons -- \
	sh -c '[ $COLLNET_RANK = 0 ] || exit 0; cat "$COLLNET_TOPOLOGY"' >out || fail "status $?"
has "rate none" out
has "buffer 1000" out

# The table for people.
collnet lab run --shape 2 --no-daemons --ports -- true >out || fail "status $?"
has "^s1  *h1  *0  *0  *0$" out

# A topology from a file, with names and an address of its own; what the lab writes reads back.
cat >net.topo <<EOF
switch core-switch          # names that are too long for interfaces
switch the.other.long.switch
host node-001
host node-002 mac 02:c0:11:00:00:00
link core-switch the.other.long.switch rate none
link node-001 core-switch rate 100mbit buffer 7
link the.other.long.switch node-002 rate none
EOF
for i in 1 2; do
	collnet lab run --topology net.topo --no-daemons --json -- sh -c '
		if [ $COLLNET_NODE = node-002 ]; then
			exec frames receive two 500 1
		fi
		cp "$COLLNET_TOPOLOGY" again.topo
		exec frames send two 02:c0:11:00:00:00 100 100' >out || { cat out; fail "status $?"; }
	has "received 100" out
	has '"switch":"core-switch","peer":"the.other.long.switch","frames":100' out
	mv again.topo net.topo
done
has "host node-001 mac 02:c0:11:01:00:00" net.topo
printf 'switch s\nhost a\nlink a s rate fast\n' >bad.topo
collnet lab run --topology bad.topo --no-daemons -- true 2>err
[ $? -eq 2 ] || fail "a bad topology was taken"
has "bad.topo:3: expected 'rate RATE'" err
echo "ok"
