# SPDX-License-Identifier: BSD-2-Clause
# A host that speaks another wire version: the ranks that miss its rank name it, and so does status.
# Status also names one of another encapsulation, and one with the name of the node.
# run: asan
# timeout: 120
# beside: others
. "$(dirname "$0")/lib.sh"
need_lab
need frames

HERE=$PWD
export HERE
text='h2 speaks wire version 2, this node 3'

# job LAB-OPTIONS BEFORE PREPARE: PREPARE on rank 2, whose host then sends hellos of version 2 alone;
# the others run BEFORE, and a job of three ranks. Output in ./N.out.
job() {
	rm -f ./*.out ./*.end
	# shellcheck disable=SC2086
	collnet lab run --shape 3 --rate 100mbit --timeout 60 $1 --tag -- sh -c '
		if [ $COLLNET_RANK = 2 ]; then
			{ '"$3"'; } || exit 3
			exec frames hello 2 end
		fi
		( '"$2"'
		! collnet bench alltoall --sizes 1k --iterations 3 --timeout 3 ) >$HERE/$COLLNET_RANK.out 2>&1
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

# The daemon of h2 ends, and the host comes back with another version. The others wait for the line.
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

# The daemon of h1 ends, and processes on the host take part in the cluster until h0 has seen it.
for odd in COLLNET_ENCAPSULATION=raw COLLNET_NODE=h0; do
	export odd
	collnet lab run --shape 2 --timeout 60 --tag -- sh -c '
		if [ $COLLNET_RANK = 1 ]; then
			pid=$(cat $COLLNET_LAB_DIR/h1.daemon.pid)
			kill $pid && timeout 10 tail --pid=$pid -s 0.02 -f /dev/null || exit 3
			while [ ! -e $COLLNET_LAB_DIR/ready-seen ]; do
				env COLLNET_MODE=direct $odd collnet bench barrier --timeout 1
			done
			exit 0
		fi
		n=200
		while ! collnet status >$HERE/status || ! grep -q "^h1 [ui]" $HERE/status; do
			[ $((n -= 1)) -gt 0 ] || exit 4
			sleep 0.05
		done
		collnet status --json >$HERE/json
		touch $COLLNET_LAB_DIR/ready-seen' >out 2>&1 || { cat out status; fail "$odd"; }
	case $odd in
	*raw) text='uses encapsulation raw' ;;
	*) text='is called h0' ;;
	esac
	has "^h1 $text, [at]" status
	[ "$(json mismatch json | xargs)" = "null $text" ] || { cat json; fail "mismatch, $odd"; }
done
echo "ok: a node of another encapsulation, and one of the same name, in status"
