# SPDX-License-Identifier: BSD-2-Clause
# The simulator against the lab: the exchange on the same networks, at the same rates and sizes, and
# the fractions of the wire's limit within five points of each other. The lab's links are token
# buckets: a frame is not held up for its own time, and it counts without preamble and gap, 1,514
# bytes instead of 1,538. --lab simulates them so; as wires they are some points slower for the
# shortest blocks. A busy machine slows the lab and not the simulator, so only STRICT=1, on a quiet
# one, demands that the lab is not slower, for longer blocks, too; otherwise that it is never faster,
# and not half as fast, at a rate that the machine can carry.
# run: long
# timeout: 600
. "$(dirname "$0")/lib.sh"
need_lab

# As many iterations as the benchmark itself chooses: the token buckets let a few frames pass at once,
# which flatters short runs.
sizes=1k,16k,128k
[ "${STRICT:-0}" = 0 ] || sizes=$sizes,512k
number=$(echo $sizes | tr ',' '\n' | wc -l)
within=0.05

# fractions FILE: size and fraction, a line each.
fractions() {
	json bytes_per_pair "$1" >"$1.sizes"
	json efficiency "$1" | paste -d' ' "$1.sizes" -
}

# compare SHAPE RATE: 0 where all are near.
compare() {
	collnet lab run --shape "$1" --rate "$2" --timeout 200 "$patient" -- collnet bench alltoall \
		--algorithm shuffle --sizes $sizes --json >lab 2>err </dev/null || {
		cat lab err
		fail "the lab: $1"
	}
	collnet sim alltoall --shape "$1" --rate "$2" --lab --algorithm shuffle --sizes $sizes --json \
		>sim 2>err || {
		cat sim err
		fail "the simulator: $1"
	}
	fractions lab >lab.list
	fractions sim >sim.list
	[ "$(wc -l <lab.list)/$(wc -l <sim.list)" = "$number/$number" ] || fail "not $number sizes: $1"
	paste -d' ' lab.list sim.list | awk -v within=$within -v strict="${STRICT:-0}" -v shape="$1 $2" '
		$1 != $3 { print "sizes differ"; bad = 1 }
		{
			d = $2 - $4
			far = d > within || (strict && d < -within) || $2 < $4 / 2 || $4 < 0.3
			printf "%s, %d bytes: lab %.1f %%, sim %.1f %%%s\n", shape, $1, $2 * 100,
				$4 * 100, far ? ": too far" : ""
			bad += far
		}
		END { exit bad > 0 }'
}

# Three tries, each with half the frames per second that the machine has to carry.
for shape in 8x2 16x1; do
	rate=20
	until compare $shape ${rate}mbit; do
		[ $rate -gt 5 ] || fail "$shape: too far apart, three times of three"
		rate=$((rate / 2))
	done
done
