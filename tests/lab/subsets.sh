# SPDX-License-Identifier: BSD-2-Clause
# Jobs on random subsets of a larger cluster become ready and run: each rank of each job ends well.
# SUBSETS_JOBS=100 and SUBSETS_HOSTS=64 run more (than 12 jobs on 32 hosts); SUBSETS_SEED for others.
# run: plain
# timeout: 400
. "$(dirname "$0")/lib.sh"
need_lab

HERE=$PWD
HOSTS=${SUBSETS_HOSTS:-32}
JOBS=${SUBSETS_JOBS:-12}
SEED=${SUBSETS_SEED:-7}
export HERE HOSTS JOBS SEED
echo "seed $SEED, $JOBS jobs on $HOSTS hosts"

# Runs among the switches: one job after another, then one on all hosts.
cat >jobs <<'EOS'
#!/bin/sh
met() {
	[ "$(lab-on "$1" collnet status --json | tr '{' '\n' | grep -c '"alive": *true')" -ge "$HOSTS" ]
}
h=0
while [ $h -lt "$HOSTS" ]; do
	n=0
	until met h$h; do
		[ $((n += 1)) -lt 200 ] || { echo "h$h does not see $HOSTS nodes"; exit 1; }
		sleep 0.1
	done
	h=$((h + 1))
done
# job NAME HOST...: a rank on each of the hosts.
job() {
	name=$1
	shift
	rank=0
	began=$(date +%s%N)
	for host; do
		{
			lab-on "$host" collnet bench barrier --iterations 1 --warmup 0 --timeout 15 \
				--job "$name" --rank $rank --ranks $# >/dev/null 2>"$HERE/err.$name.$rank"
			echo $? >"$HERE/status.$name.$rank"
		} &
		rank=$((rank + 1))
	done
	wait
	bad=0
	while [ $((rank -= 1)) -ge 0 ]; do
		[ "$(cat "$HERE/status.$name.$rank")" = 0 ] && continue
		bad=$((bad + 1))
		sed "s/^/$name rank $rank: /" "$HERE/err.$name.$rank"
	done
	echo "job $name size $# failed $bad ms $((($(date +%s%N) - began) / 1000000))"
	rm -f "$HERE"/err."$name".* "$HERE"/status."$name".*
}
j=0
while [ $j -lt "$JOBS" ]; do
	case $((j % 4)) in
	0 | 2) size=4 ;;
	1) size=8 ;;
	3) size=$((HOSTS / 2)) ;;
	esac
	job j$j $(awk -v n="$HOSTS" -v k=$size -v s=$((SEED * 1000 + j)) 'BEGIN {
		srand(s)
		for (i = 0; i < n; i++)
			h[i] = i
		for (i = 0; i < k; i++) {
			r = i + int(rand() * (n - i))
			x = h[i]; h[i] = h[r]; h[r] = x
			print "h" h[i]
		}
	}')
	j=$((j + 1))
done
job everybody $(awk -v n="$HOSTS" 'BEGIN { for (i = 0; i < n; i++) print "h" i }')
EOS
chmod 755 jobs
collnet lab shell "$patient" --shape "$HOSTS" -- ./jobs >out 2>&1 || {
	cat out
	fail "the lab"
}
cat out
[ "$(grep -c '^job ' out)" -eq $((JOBS + 1)) ] || fail "not all jobs ran"
[ "$(grep -c '^job .* failed 0 ' out)" -eq $((JOBS + 1)) ] || fail "jobs failed"
echo "$((JOBS + 1)) of $((JOBS + 1)) jobs"
