# SPDX-License-Identifier: BSD-2-Clause
# An attacker on a third host of the segment, which sees what is broadcast and sends frames with the
# addresses of two nodes that run a job: goodbyes, restarts, other incarnations, session frames, invented nodes,
# floods, wrong headers of the encapsulations. The jobs end well with every byte right, no node is reported lost,
# and no log fills. On version 0.1 bye, unibye, restart and life each end the job.
# run: asan-long
# concurrent: yes
# timeout: 900
. "$(dirname "$0")/lib.sh"
need_lab
need attacker
export COLLNET_ENCAPSULATION=raw # what the attacker reads and forges

host_commands await
CALLS=600 # of each job
! is_long || CALLS=2000
export CALLS

# Ranks 0 and 1 run three jobs, and one more when the attacker is done; rank 2 attacks as soon as the
# first job moves.
cat >host <<'EOS'
#!/bin/sh
if [ "$COLLNET_RANK" = 2 ]; then
	await "$HERE/go" 40 || exit 1
	attacker "$@" >"$HERE/attacker.out" 2>&1
	status=$?
	: >"$HERE/done"
	exit $status
fi
export COLLNET_SIZE=2
job() {
	COLLNET_JOB=$1 collnet bench alltoall --sizes 4k --iterations "$2" --verify --timeout 20 \
		>"$HERE/out.$COLLNET_RANK" 2>&1 || {
		echo "job $1 failed at rank $COLLNET_RANK" >&2
		cat "$HERE/out.$COLLNET_RANK" >&2
		exit 1
	}
}
[ "$COLLNET_RANK" != 0 ] || (
	until collnet status --json | grep -q '"data_received": *[1-9][0-9][0-9]'; do
		sleep 0.02
	done
	: >"$HERE/go"
) &
for j in 1 2 3; do
	job "job$j" "$CALLS"
done
await "$HERE/done" 40 || exit 1
job after 20
wait
EOS
chmod 755 host

attack() {
	rm -rf go done logs && mkdir logs
	collnet lab run --shape 3 --rate 100mbit --keep-logs logs "$patient" -- host "$@" >lab.out 2>&1 ||
		{ cat lab.out attacker.out; tail -n 3 logs/*; fail "$*"; }
	cat logs/* >log
	lacks 'node h[01] \(restarted\|stopped\|did not\)' log
	lacks 'node x' log
	lines=$(wc -l <log)
	echo "ok: $*: $(cat attacker.out), $lines lines in all logs"
	[ "$lines" -le 60 ] || { head -n 70 log; fail "$*: the logs are full"; }
}

attack bye h0 h1 100
attack unibye h0 h1 100
attack restart h0 h1 100
attack life h0 h1 100
attack data h0 h1 4096
attack ack h0 h1 4096
# A sanitized daemon takes many times as long per frame, and is not to miss what its peers send.
many=16000
[ "$VARIANT" != asan ] || many=4000
attack sweep h0 h1 $many
attack invent h0 h1 100
attack invent h0 h1 $((many / 4))
attack flood h0 h1 $many

# Behind IPv4 and UDP or TCP headers.
for COLLNET_ENCAPSULATION in udp tcp; do
	attack headers h0 h1 $many
	attack super h0 h1 $((many / 100))
done
