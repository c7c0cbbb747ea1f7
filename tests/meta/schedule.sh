# SPDX-License-Identifier: BSD-2-Clause
# The command line of collnet schedule, as it is installed: what it writes, its statuses, and what
# it refuses. That schedules are right is shown by schedules.sh and the unit tests.
. "$(dirname "$0")/lib.sh"

# schedule STATUS ARGUMENT...: `collnet schedule ARGUMENT...` ends with that status.
schedule() {
	ends schedule "$@"
}

schedule 0 --help
has '^usage: collnet schedule'

for emit in json text dot mpi-c; do
	"$collnet" schedule alltoall --shape 4 --emit $emit >/dev/full 2>"$t/err"
	has 'could not be written: No space left' err
done

# ---- every operation, every way ------------------------------------------------------------
for op in alltoall allgather barrier bcast scatter gather allreduce reduce reduce_scatter scan exscan; do
	schedule 0 $op --shape 3x2
	has "^operation  *$op"
	schedule 0 $op --shape 3x2 --check
	[ "$(tail -n 1 "$t/out")" = OK ] || fail "$op: no OK"
	schedule 0 $op --shape 3x2 --json --check
	is_json
	has '"ok": true, "broken": null'
	cp "$t/out" "$t/summary"
	schedule 0 $op --shape 3x2 --emit json
	is_json
	# both say whether there is a root
	case $op in
	bcast | scatter | gather | reduce)
		has '"root": 0' && has '"root": "h0"' summary
		;;
	*)
		has '"root": null' && has '"root": null' summary
		;;
	esac
	schedule 0 $op --shape 3x2 --explain
	has '^The network of 3x2 has 6 hosts, 3 switches and 8 links\.$'
	schedule 0 $op --shape 2 --explain
	has 'has 2 hosts, 1 switch and 2 links'
	has '^ \* '
	schedule 0 $op --shape 3x2 --emit dot
	has '^digraph'
	schedule 0 $op --shape 3x2 --emit text
	cp "$t/out" "$t/mine"
	case $op in
	*reduce* | *scan)
		has '^h[0-5] combines .* and .* to [rs]'
		schedule 0 $op --shape 3x2 --emit json
		has '"action": "reduce", .*"right": '
		schedule 2 $op --shape 3x2 --schedule "$t/mine"
		has '^collnet schedule: --schedule: schedules of reductions' err
		schedule 2 $op --shape 3x2 --emit mpi-c
		;;
	*)
		# the output can be read, and is still correct
		schedule 0 $op --shape 3x2 --schedule "$t/mine"
		has '^OK$'
		schedule 0 $op --shape 3x2 --emit mpi-c
		has "^int collnet_$op("
		;;
	esac
	schedule 0 $op --shape 3x2 --rank 5
	has '^part h5$'
	schedule 0 $op --shape 3x2 --rank h5 --emit json
	is_json
done

# A reduction that waits for two actions.
schedule 0 scan --shape 5 --size 6k --algorithm doubling --rank h2 --emit json
has '"dependency": "stream", "on": 3, "after": 0}'
schedule 1 alltoall --shape 4 --emit dot --rank 2 --phase 9
has 'there are 3 phases' err

schedule 0 alltoall --shape 8x4 --explain
has '^There are 31 phases, in which messages share links; without sharing there would be at$'
has '^shuffle was chosen .* (+ are baselines, never chosen):$'
has '^ + linear '
# Without contention there are no fewer phases than the lower bound says, whatever a message carries.
for op in alltoall allgather barrier bcast scatter gather allreduce reduce reduce_scatter scan exscan; do
	size="--size 8"
	[ $op != barrier ] || size=
	for shape in 2 3 4 5x2 3x3; do
		# shellcheck disable=SC2086 # words
		schedule 0 $op --shape $shape $size --json
		for a in $(sed 's/.*"predictions"//' "$t/out" | grep -o '"algorithm": "[^"]*", "seconds": [0-9]' |
			cut -d'"' -f4); do
			# shellcheck disable=SC2086 # words
			schedule 0 $op --shape $shape $size --algorithm "$a"
			phases=$(sed -n 's/^phases  *\([0-9]*\) .*/\1/p' "$t/out")
			bound=$(sed -n 's/^phases .*(lower bound \([0-9]*\))/\1/p' "$t/out")
			[ -n "$bound" ] || {
				has 'lower bound without contention '
				has '^busiest link .* messages in' # several
				continue
			}
			[ "$phases" -ge "$bound" ] || fail "$op by $a: $phases phases"
		done
	done
done
schedule 0 scan --shape 4 --size 8 --explain
has '^There are 2 phases, which is the lower bound: no schedule without contention$'
lacks 'in which messages share links'
schedule 0 allgather --shape 4 --algorithm ring --explain
has '^There are 3 phases, which is the lower bound: no schedule without contention, of messages of one'
for size in 0 8; do
	schedule 0 allgather --shape 4 --algorithm doubling --size $size
	has '^phases  *2 (lower bound 2)$'
	schedule 0 allgather --shape 4 --algorithm ring --size $size
	has '^phases  *3 (lower bound 3)$'
done
schedule 0 scan --shape 4 --size 0
has '^phases  *0$'
schedule 0 scan --shape 4 --size 0 --json
has '"phases": 0, "bound": null'
schedule 0 alltoall --shape 4 --algorithm linear
has '^phases  *1 (lower bound without contention 3)$'
for how in --json "--emit json"; do
	# shellcheck disable=SC2086 # words
	schedule 0 alltoall --shape 4 --algorithm aapc $how
	has '"guarantees": \["links", "ordered", "optimal"\]'
	# shellcheck disable=SC2086
	schedule 0 alltoall --shape 4 --algorithm linear $how
	has '"guarantees": \[\]'
done
schedule 0 bcast --shape 4 --explain
has '^smp was chosen by its predicted time. Predicted times of all, encapsulation udp:$'
schedule 0 alltoall --shape 8 --json
has '"encapsulation": "udp"'
cp "$t/out" "$t/udp"
schedule 0 alltoall --shape 8 --json --encapsulation raw
has '"encapsulation": "raw"'
[ "$(grep -o '"seconds": [0-9.]*' "$t/out")" != "$(grep -o '"seconds": [0-9.]*' "$t/udp")" ] ||
	fail "predicted times do not depend on the encapsulation"
schedule 0 alltoall --shape 8 --json --authenticated
[ "$(grep -o '"seconds": [0-9.]*' "$t/out")" != "$(grep -o '"seconds": [0-9.]*' "$t/udp")" ] ||
	fail "predicted times do not depend on the tags of frames"


# ---- the source of the network -----------------------------------------------------------------
"$collnet" topo random --hosts 20 --seed 2 >"$t/net"
schedule 0 alltoall --topology "$t/net" --algorithm aapc --check
cp "$t/out" "$t/from-file"
schedule 0 alltoall --topology - --algorithm aapc --check <"$t/net"
cmp "$t/out" "$t/from-file" || fail "standard input gives something else"
schedule 0 alltoall --topology - --explain <"$t/net"
has 'etwork.* standard input'
# A name cannot end the comment that it is in.
cp "$t/net" "$t/net
switch x"
schedule 0 alltoall --topology "$t/net
switch x" --algorithm aapc --emit text
grep -q '^switch x' "$t/out" && fail "a newline in a file's name"
printf 'switch s\nhost a\nlink a s rate 0gbit\n' >"$t/zero"
schedule 1 alltoall --topology "$t/zero"
has "zero:3: expected 'rate RATE' with .* from 1kbit to 100tbit, or none, found '0gbit'" err
schedule 1 alltoall --topology - <"$t/zero"
has 'standard input:3: ' err
schedule 1 alltoall --topology "$t/nothing"
schedule 1 alltoall --topology "$t"
schedule 1 alltoall --topology /dev/null
head -c 100000 /dev/urandom >"$t/noise"
schedule 1 alltoall --topology "$t/noise"
schedule 1 alltoall --shape 2 --schedule "$t/noise"
[ "$(wc -l <"$t/err")" -eq 1 ] || fail "noise"
schedule 1 alltoall --shape 2 --schedule /dev/null
has '/dev/null:1: before the first message expected' err
schedule 1 alltoall --shape 1
schedule 2 alltoall --shape 8y2
schedule 1 alltoall --shape 5000
schedule 1 alltoall --shape 4 --hosts h0
schedule 2 alltoall --shape 4 --hosts h0,,h1
schedule 1 alltoall --shape 4 --hosts h0,h9
schedule 1 alltoall --shape 4 --hosts h0,h0
schedule 1 bcast --shape 4 --root 4
schedule 1 bcast --shape 4 --root s1
schedule 1 bcast --shape 4 --size 1g --segment 1 --algorithm chain
schedule 1 alltoall --shape 4 --rank 4
schedule 1 allgather --shape 2x2 --algorithm lr2
schedule 1 alltoall --shape 4 --emit dot --phase 99

# ---- the command line -------------------------------------------------------------------------
while read -r line; do
	# shellcheck disable=SC2086 # words
	schedule 2 $line
	[ "$(wc -l <"$t/err")" -eq 1 ] || fail "not one line: $line"
	[ ! -s "$t/out" ] || fail "output: $line"
done <<'END'

alltoal --shape 4
alltoall
alltoall --shape
alltoall --shape 4 --topology x
alltoall more --shape 4
alltoall --shape 4 --nonsense
alltoall --shape 4 --algorithm ring
alltoall --shape 4 --size x
alltoall --shape 4 --size 2g
alltoall --shape 4 --root 1
alltoall --shape 4 --segment 1k
scatter --shape 4 --segment 1k
barrier --shape 4 --size 5
alltoall --shape 4 --seed 3
alltoall --shape 4 --output x
alltoall --shape 4 --emit xml
alltoall --shape 4 --emit text --json
alltoall --shape 4 --phase 1
alltoall --shape 4 --rank 0 --check
alltoall --shape 4 --rank 0 --json
alltoall --shape 4 --json --explain
--experiment allgather-rings-11 --shape 4
--experiment allgather-rings-11 --json
alltoall --shape 4 --name f
alltoall --shape 4 --emit mpi-c --name 9
alltoall --shape 4 --emit mpi-c --name int
alltoall --shape 4 --emit mpi-c --name steps
alltoall --shape 4 --emit mpi-c --name MPI_Alltoall
alltoall --shape 4 --schedule x --algorithm aapc
alltoall --experiment allgather-rings-11
END
schedule 2 alltoall
has 'specify --shape (e.g. 8x4) or --topology FILE' err
schedule 2 alltoall --shape 4 --topology x
has 'specify --shape or --topology, not both' err
schedule 2 alltoall --shape 4 --algorithm nope
has "unknown algorithm 'nope' for alltoall; there are shuffle, " err
schedule 2 --experiment nonsense
has "unknown experiment 'nonsense'" err
schedule 1 --experiment smp-broadcast-random --output "$t/nothing"
# nobody reads it: a failure, not a success
[ ! -e /dev/full ] || for how in "" --json --explain --check "--emit text" "--emit json" \
	"--emit dot" "--emit mpi-c" "--rank 1"; do
	# shellcheck disable=SC2086 # words
	"$collnet" schedule alltoall --shape 2 $how >/dev/full 2>"$t/err" && fail "a full device: $how"
	[ -s "$t/err" ] || fail "no word of a full device: $how"
done
echo ok
