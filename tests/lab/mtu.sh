# SPDX-License-Identifier: BSD-2-Clause
# Paths that drop large frames, and nodes of different MTUs: every rank gets an error with the word MTU
# and the nodes' names, long before its deadline; short frames, and the job after a repair, get through.
# run: asan
# concurrent: yes
# timeout: 300
. "$(dirname "$0")/lib.sh"
need_lab
# A bridge passes super-frames whatever the MTU of its port is. No switch does.
export COLLNET_ENCAPSULATION=raw

HERE=$PWD
export HERE

# job LAB-OPTIONS PREPARE COMMAND: PREPARE on rank 0 first, then COMMAND on all; the output of rank N in
# ./N.out, its status in ./N.status.
job() {
	rm -f ./*.out ./*.status prepared
	logs="--keep-logs $PWD"
	case $1 in *--no-daemons*) logs= ;; esac
	# shellcheck disable=SC2086
	collnet lab run --timeout 200 $1 $logs --tag -- sh -c '
		if [ $COLLNET_RANK = 0 ]; then
			{ '"$2"'; } >$HERE/prepare.out 2>&1 && touch $HERE/prepared
		fi
		n=600
		while [ ! -e $HERE/prepared ]; do
			[ $((n -= 1)) -gt 0 ] || exit 9
			sleep 0.05
		done
		( '"$3"' ) >$HERE/$COLLNET_RANK.out 2>&1
		echo $? >$HERE/$COLLNET_RANK.status' >out 2>&1
	[ -e prepared ] || { cat out prepare.out; fail "not prepared: $2"; }
}

# every RANKS TEXT...: each rank failed, and its error has every TEXT and is no deadline.
every() {
	ranks=$1
	shift
	n=0
	while [ $n -lt "$ranks" ]; do
		[ -s $n.status ] || { cat out; fail "rank $n did not end"; }
		[ "$(cat $n.status)" -ne 0 ] || { cat $n.out; fail "rank $n did not fail"; }
		for text; do
			has "$text" $n.out
		done
		lacks "missing at the deadline" $n.out
		n=$((n + 1))
	done
}

# on_trunk MTU: what the port of switch s0 towards s1 carries.
on_trunk() {
	echo "nsenter --net=/run/netns/@fabric ip link set s0-s1 mtu $1"
}

# A trunk that carries 1,000 bytes, in one direction, from the beginning; then it is mended, and the next
# job on the same daemons gets through.
job "--shape 2x2" "$(on_trunk 1000)" '
	collnet bench alltoall --sizes 8k --iterations 3 --timeout 60
	first=$?
	touch $HERE/first.$COLLNET_RANK
	n=600
	while [ $(ls $HERE | grep -c "^first[.]") -lt 4 ]; do
		[ $((n -= 1)) -gt 0 ] || exit 9
		sleep 0.05
	done
	'"$(on_trunk 1500)"' && COLLNET_JOB=again collnet bench alltoall --sizes 8k --iterations 3 --verify \
		>$HERE/$COLLNET_RANK.again 2>&1 || touch $HERE/again.failed
	(exit $first)'
every 4 "frames of 1500 bytes from node h[0-3] do not reach node h[0-3]" "carry MTU 1500"
[ ! -e again.failed ] || { cat ./*.again; fail "the job after the repair"; }
echo "ok: a trunk of 1,000 bytes, named at every rank; the job after the repair"

# The trunk narrows while a job runs.
job "--shape 2x2" true '
	(if [ $COLLNET_RANK = 0 ]; then
		n=600
		while ! collnet status | grep -q "running"; do
			[ $((n -= 1)) -gt 0 ] || exit 9
			sleep 0.05
		done
		'"$(on_trunk 1000)"'
	fi) &
	collnet bench alltoall --sizes 8k --iterations 1000000 --timeout 60'
every 4 "frames of [0-9]* bytes from node h[0-3] do not reach node h[0-3]" "carry MTU 1500"
echo "ok: a trunk that narrows under a job, named at every rank"

# A node of another MTU.
job "--shape 4 --no-daemons" "ip link set eth0 mtu 1400" '
	collnet bench alltoall --sizes 8k --iterations 3 --timeout 60'
every 4 "set them alike" "node h0" "1400" "1500"
echo "ok: a node of another MTU, named at every rank"
