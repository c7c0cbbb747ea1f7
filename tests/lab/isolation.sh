# SPDX-License-Identifier: BSD-2-Clause
# Two jobs between the same nodes, of which one never receives: the other one's exchanges are right,
# lose nothing, and retransmit nothing. Prints the ratio of the times without and with the first.
# concurrent: yes
# timeout: 300
# run: asan
. "$(dirname "$0")/lib.sh"
need_lab
need api

host_commands await

# isolation LAB-OPTIONS -- BENCH-OPTIONS
isolation() {
	rm -f pid.* alone beside done.*
	what=$*
	lab=${what%% -- *} bench=${what##* -- }
	# shellcheck disable=SC2086
	collnet lab run --timeout 200 "$patient" $lab -- sh -c '
		exchange() {
			collnet bench alltoall '"$bench"' --verify --json
		}
		exchange >$HERE/alone.$COLLNET_RANK || exit 3
		COLLNET_JOB=stuck api stuck $HERE/pid.$COLLNET_RANK &
		own=$!
		for r in 0 1 2 3; do await $HERE/pid.$r 20 || exit 4; done
		exchange >$HERE/beside.$COLLNET_RANK || exit 5
		touch $HERE/done.$COLLNET_RANK
		for r in 0 1 2 3; do await $HERE/done.$r 20 || exit 6; done
		kill -9 $own
		wait $own
		exit 0' >out 2>err </dev/null || {
		status=$?
		cat out err
		fail "status $status: $what"
	}
	for run in alone beside; do
		grep -q '"verified": *true' $run.0 || { cat $run.0; fail "$run: $what"; }
		sed -n 's/.*"median": *\([0-9.]*\).*/\1/p' $run.0 >$run
		# Few: to its peers, a node that a busy machine does not run looks like one that loses frames.
		sed -n 's/.*"frames_sent": *\([0-9]*\).*"frames_resent": *\([0-9]*\).*/\1 \2/p' $run.0 |
			awk '{ sent += $1; resent += $2 } END { exit !(sent > 0 && resent <= 8 + sent / 20) }' ||
			{ cat $run.0; fail "$run: too many frames sent again: $what"; }
	done
	paste alone beside | awk -v what="$what" '{
		printf("ok: %s us alone, %s beside a job that does not receive (%.3f): %s\n",
			$1, $2, $2 / $1, what)
	}'
}

isolation --shape 4 --rate 20mbit -- --sizes 16k --iterations 20
isolation --shape 4 --rate 100mbit --buffer 1000 -- --sizes 1k,64k --iterations 20 --window off
