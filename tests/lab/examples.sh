# SPDX-License-Identifier: BSD-2-Clause
# The programs of examples/: each checks its own result.
# timeout: 300
# concurrent: yes
# run: asan-long
. "$(dirname "$0")/lib.sh"
need_lab
need cg exchange fft2d train

# run LAB-OPTIONS -- COMMAND: rank 0 says that the result is correct
run() {
	collnet lab run --rate 100mbit --timeout 200 "$patient" "$@" >out 2>&1 || {
		cat out
		fail "status $?: $*"
	}
	grep -q ': correct$' out || {
		cat out
		fail "$*"
	}
	echo "ok: $(cat out)"
}

for lab in '--shape 4' '--shape 3 --ranks-per-node 2'; do
	for example in 'exchange 10000' 'cg 40' 'fft2d 64' 'train 100'; do
		# shellcheck disable=SC2086
		run $lab -- $example
	done
done
run --shape 1 -- cg 20
run --shape 2x2 --loss 1% -- fft2d 64
