# SPDX-License-Identifier: BSD-2-Clause
# Every kind of fault twice, and jobs with random faults: each rank has an error that names the victim,
# the next job works, and no daemon leaks. tests/trials and tests/soak do it for long.
# timeout: 600
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need fault_driver

for kind in kill-rank kill-daemon kill-worker kill-parent stop-daemon interface-down link-down \
	uplink-down; do
	collnet lab shell --shape 2x2 --rate 20mbit --timeout 200 -- \
		fault_driver trials --kind $kind --trials 2 --csv "$PWD/$kind.csv" >out 2>err </dev/null
	grep -q '^VERDICT ok$' out || { cat out err; fail "$kind"; }
	if grep -q 'is left out' out; then
		[ $kind = kill-worker ] || [ $kind = kill-parent ] || { cat out; fail "$kind is left out"; }
	else
		# kind trials errors min median max named silent: 3 others each, 4 for an uplink
		awk -v k=$kind '$1 == k { ok = $2 == 2 && $3 == (k == "uplink-down" ? 8 : 6) &&
			$7 == $3 && $8 == 0 } END { exit !ok }' out || { cat out; fail "$kind"; }
		[ "$(wc -l <$kind.csv)" -eq 2 ] || { cat $kind.csv; fail "$kind: not a line a trial"; }
	fi
	echo "ok: $(grep "^$kind" out)"
done

for seed in 7 8; do
	collnet lab shell --shape 2x2 --rate 20mbit --loss 0.5% --timeout 200 -- \
		fault_driver soak --seed $seed --jobs 6 >out 2>err </dev/null
	grep -q '^VERDICT ok$' out || { cat out err; fail "seed $seed"; }
	echo "ok: seed $seed: $(grep '^SUM' out)"
done

collnet lab shell --shape 2x2 --rate 20mbit --timeout 200 -- \
	fault_driver alarms --jobs 10 --load 2 >out 2>err </dev/null
grep -q ' at load 2: 0 false alarms' out || { cat out err; fail "false alarms"; }
echo "ok: $(grep false out)"
