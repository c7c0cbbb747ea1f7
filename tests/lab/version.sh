# SPDX-License-Identifier: BSD-2-Clause
# A host that speaks another wire version: the ranks that miss its rank name it, and so does status.
# Status also names one of another encapsulation, one with the name of the node or of another one, and
# another cluster.
# run: asan-long
# timeout: 300
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need frames

HERE=$PWD
export HERE
text='h2 speaks wire version 2, this node 3'

# job LAB-OPTIONS BEFORE PREPARE: PREPARE on rank 2, whose host then sends hellos of version 2 alone;
# the others run BEFORE, and a job of three ranks. Output in ./N.out.
job() {
	rm -f ./*.out ./*.end ./*.here
	# shellcheck disable=SC2086
	collnet lab run --shape 3 --rate 100mbit --timeout 200 "$patient" $1 --tag -- sh -c '
		if [ $COLLNET_RANK = 2 ]; then
			{ '"$3"'; } || exit 3
			exec frames hello 2 end
		fi
		( '"$2"'
		: >$HERE/$COLLNET_RANK.here
		until [ -e $HERE/$((1 - COLLNET_RANK)).here ]; do sleep 0.02; done
		! collnet bench alltoall --sizes 1k --iterations 3 --timeout 5 ) >$HERE/$COLLNET_RANK.out 2>&1
		rc=$?
		touch $HERE/$COLLNET_RANK.end
		[ ! -e $HERE/0.end ] || [ ! -e $HERE/1.end ] || touch $COLLNET_LAB_DIR/ready-end
		exit $rc' >out 2>&1
	rc=$?
	[ $rc -eq 0 ] || { cat out ./*.out; fail "status $rc"; }
	for rank in 0 1; do
		has "1 of 3 ranks missing at the deadline: 2; $text" $rank.out
	done
}

job --no-daemons true true
echo "ok: a host that was never known, named at every rank"

# The daemon of h2 ends, and the host returns with another version. The others wait for the line.
job "" '
	n=300
	while ! collnet status >$HERE/status.$COLLNET_RANK || ! grep -q "speaks wire" $HERE/status.$COLLNET_RANK; do
		[ $((n -= 1)) -gt 0 ] || exit 4
		sleep 0.05
	done
	collnet status --json >$HERE/json.$COLLNET_RANK || exit 5' '
	pid=$(cat $COLLNET_LAB_DIR/h2.daemon.pid)
	kill $pid && timeout 10 tail --pid=$pid -s 0.02 -f /dev/null'
for rank in 0 1; do
	has "^$text" status.$rank
	[ "$(json wire_version json.$rank | sort | tr '\n' ' ')" = "2 3 3 " ] ||
		{ cat json.$rank; fail "wire_version of three nodes"; }
	[ "$(json mismatch json.$rank | sort -u)" = "null
speaks wire version 2" ] || { cat json.$rank; fail "mismatch of three nodes"; }
	[ "$(json version_frames json.$rank)" -gt 0 ] || { cat json.$rank; fail "version_frames"; }
done
echo "ok: a node that was known, named at every rank and in status"

# The daemon of h2 ends, and processes on the host take part in the cluster until h0 has seen it.
# odd VARIABLE TEXT FIELD: what status is to say at h0, and as JSON.
odd() {
	export odd="$1" text="$2" field="$3"
	collnet lab run --shape 3 --timeout 200 "$patient" --tag -- sh -c '
		case $COLLNET_RANK in
		2)
			pid=$(cat $COLLNET_LAB_DIR/h2.daemon.pid)
			kill $pid && timeout 10 tail --pid=$pid -s 0.02 -f /dev/null || exit 3
			while [ ! -e $COLLNET_LAB_DIR/ready-seen ]; do
				env COLLNET_MODE=direct $odd collnet bench barrier --timeout 1
			done
			exit 0
			;;
		1)
			while [ ! -e $COLLNET_LAB_DIR/ready-seen ]; do
				sleep 0.05
			done
			exit 0
			;;
		esac
		n=400
		while ! collnet status >$HERE/status || ! grep -q "$text" $HERE/status ||
			! collnet status --json >$HERE/json || ! grep -q "$field" $HERE/json; do
			[ $((n -= 1)) -gt 0 ] || exit 4
			sleep 0.05
		done
		touch $COLLNET_LAB_DIR/ready-seen' >out 2>&1 || { cat out status; fail "$odd"; }
}

# mismatch TEXT: of the three nodes of the table
mismatch() {
	[ "$(json mismatch json | sort | xargs)" = "$1" ] || { cat json; fail "mismatch, $odd"; }
}

odd COLLNET_ENCAPSULATION=raw '^h2 uses encapsulation raw, this node udp$' 'uses encapsulation raw'
mismatch "null null uses encapsulation raw"
odd COLLNET_NODE=h0 '^02:.* is called h0, as this node$' 'is called h0'
mismatch "is called h0 null null"
odd COLLNET_NODE=h1 '^02:.* is called h1, as another node$' 'is called h1'
mismatch "is called h1 null null"
[ "$(json name json | sort | sed 's/^02:.*/mac/' | xargs)" = "mac h0 h1" ] || { cat json; fail "names"; }
odd COLLNET_CLUSTER=2 '^nodes of cluster 2 were heard, this node is of cluster 1$' '"other_cluster": *2'
mismatch "null null null"
[ "$(json other_cluster json)" = 2 ] || { cat json; fail "other_cluster"; }
echo "ok: a node of another encapsulation, of the same name, of another's name, of another cluster, in status"
