# SPDX-License-Identifier: BSD-2-Clause
# The two processes of collnetd: when one of them is killed, the other notifies the other nodes, which
# do not have to miss it. The reason in the errors shows which it was: "ended its daemon" is the
# announcement, "stopped answering" is the silence, which takes longer here than a rank waits. Prints how
# soon the ranks know.
# concurrent: yes
# timeout: 400
# run: asan-long
. "$(dirname "$0")/lib.sh"
need_lab
need api ps

host_commands await worker
TRIALS=${TRIALS:-3}

# case_of WHAT RANKS SHAPE: ranks wait in silence; the parent or worker of h2 is killed, and a new job
# works after its daemon has been started again.
case_of() {
	rm -f pid.* killed next
	# shellcheck disable=SC2016 # the host expands it
	case $1 in
	parent) victim='cat $COLLNET_LAB_DIR/h2.daemon.pid' ;;
	worker) victim='worker h2' ;;
	esac
	collnet lab run --rate 20mbit --timeout 200 --daemon-arg=--peer-timeout=20000 --tag --shape "$3" --keep-logs "$PWD" -- sh -c "
		if [ \$COLLNET_RANK = 3 ]; then
			api wait \$HERE/pid.3 &
			for r in \$(seq 0 $(($2 - 1))); do await \$HERE/pid.\$r 20 || exit 3; done
			pid=\$($victim) && worker=\$(worker h2) || exit 4
			kill -9 \$pid
			echo \$((\$(date +%s%N) / 1000000)) >\$HERE/killed
			wait
			kill -9 \$(cat \$HERE/pid.2) # it only waits for that
			timeout 5 tail --pid=\$worker -s 0.02 -f /dev/null || exit 5
			lab-daemon h2 || exit 6
			touch \$HERE/next
		else
			api wait \$HERE/pid.\$COLLNET_RANK
			await \$HERE/next 30 || exit 7
		fi
		exec collnet bench alltoall --sizes 1k --iterations 3 --verify --json" >out 2>err </dev/null
	sed -n 's/^\[.*\] end //p' out >ends
	[ -e killed ] && [ "$(wc -l <ends)" -eq $(($2 - 1)) ] || { cat out err; fail "no ends: $1"; }
	while read -r r when status message; do
		[ "$status" -ne 0 ] || fail "rank $r has no error: $1"
		case $message in
		*"node h2 ended its daemon"*) ;;
		*) cat ends h2.log; fail "rank $r was not told of the death of h2's $1: $message" ;;
		esac
		echo $((when - $(cat killed))) >>"times.$1"
	done <ends
	[ "$(json verified out)" = true ] || { cat out err; fail "no new job: $1"; }
}

for kind in worker parent; do
	for i in $(seq "$TRIALS"); do
		case_of $kind 8 4x2
	done
	[ $kind = parent ] || has "was killed by signal 9; 7 nodes were notified" h2.log
	[ $kind = worker ] || has "the parent process died" h2.log
	n=$(wc -l <times.$kind)
	sort -n times.$kind >sorted
	max=$(tail -n 1 sorted)
	echo "ok: the $kind is killed: $n ranks know after $(head -n 1 sorted)," \
		"$(sed -n "$(((n + 1) / 2))p" sorted), $max ms (min, median, max)"
done
