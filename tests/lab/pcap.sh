# SPDX-License-Identifier: BSD-2-Clause
# The other way to the wire: daemons and programs by libpcap, and both ways in one network.
# timeout: 300
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
export COLLNET_ENCAPSULATION=raw

# right RANKS RUNS WHAT: ./out has RUNS verified rows, of RANKS ranks each.
right() {
	[ "$(json verified out | sort | uniq -c | xargs)" = "$2 true" ] &&
		[ "$(json ranks out | sort -u)" = "$1" ] || {
		cat out
		fail "not $2 right rows of $1 ranks: $3"
	}
	echo "ok: $3: median $(json median out | xargs) us, sent again $(json frames_resent out | xargs)"
}

# run LAB-OPTIONS -- COMMAND...
run() {
	what=$*
	collnet lab run --rate 20mbit --timeout 200 "$patient" "$@" >out 2>err </dev/null || {
		status=$?
		cat out err
		fail "status $status: $what"
	}
}

bench="--sizes 0,1,1k,10k --iterations 5 --verify --json"

# Daemons, with a rank, two ranks, loss.
# shellcheck disable=SC2086
run --shape 2x2 --daemon-arg=--link --daemon-arg pcap --keep-logs "$PWD" -- \
	collnet bench alltoall $bench
right 4 4 "daemons by pcap, alltoall"
for h in h0 h1 h2 h3; do
	has "on eth0 (pcap" $h.log
	rm $h.log
done
# shellcheck disable=SC2086
run --shape 2 --ranks-per-node 2 --daemon-arg=--link --daemon-arg pcap -- \
	collnet bench allgather $bench
right 4 4 "daemons by pcap, two ranks a node, allgather"
# shellcheck disable=SC2086
run --shape 2 --loss 3% --daemon-arg=--link=pcap -- collnet bench stream --sizes 1,64k \
	--iterations 20 --verify --json
right 2 2 "daemons by pcap, lossy wires, stream"

# Programs on their own, by each way, and by each of the two in one exchange.
for links in "pcap pcap" "packet packet" "pcap packet"; do
	run --shape 2x2 --no-daemons -- sh -c "
		if [ \$((COLLNET_RANK % 2)) = 0 ]; then
			COLLNET_LINK=${links% *}
		else
			COLLNET_LINK=${links#* }
		fi
		export COLLNET_LINK
		exec collnet bench alltoall $bench"
	right 4 4 "directly, $links"
done

# Daemons by one way and another. The lab starts all alike, so two are started again.
run --shape 2x2 --keep-logs "$PWD" -- sh -c "
	if [ \$COLLNET_RANK = 3 ]; then
		for h in h1 h3; do
			pid=\$(cat \$COLLNET_LAB_DIR/\$h.daemon.pid)
			sed -i 's/--interface/--link pcap --interface/' \$COLLNET_LAB_DIR/\$h.daemon.cmd
			grep -q -e '--link pcap' \$COLLNET_LAB_DIR/\$h.daemon.cmd || exit 3
			kill -TERM \$pid
			n=200
			while kill -0 \$pid 2>/dev/null; do
				[ \$((n -= 1)) -gt 0 ] || exit 4
				sleep 0.05
			done
			lab-daemon \$h || exit 5
		done
		touch started
	else
		n=400
		until [ -e started ]; do
			[ \$((n -= 1)) -gt 0 ] || exit 6
			sleep 0.05
		done
	fi
	exec collnet bench alltoall $bench"
right 4 4 "daemons, two by pcap and two by packet"
has "on eth0 (pcap" h1.log
has "on eth0 (pcap" h3.log
lacks "on eth0 (pcap" h2.log

# There is no third way.
COLLNET_LINK=carrier-pigeon collnet lab run --shape 2 --no-daemons --timeout 20 -- \
	collnet bench barrier >out 2>&1 && fail "any link is taken"
has "carrier-pigeon" out
