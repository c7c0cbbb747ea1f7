# SPDX-License-Identifier: BSD-2-Clause
# Exchanges in networks of several forms, by every algorithm and permutation: right bytes; and by
# the shuffle no frame lost in any port, and no more in flight than the window. That none is sent twice
# is a matter of time too, and so of the simulator's tests; here few are.
# timeout: 400
. "$(dirname "$0")/lib.sh"
need_lab

# bench LAB-OPTIONS -- BENCH-OPTIONS: every byte right, and no host lost a frame.
bench() {
	again=$*
	lab_rows --timeout 200 "$patient" "$@"
	[ "$(json nic_drops ports)/$(json ring_drops rows | sort -u)" = 0/0 ] || {
		cat out
		fail "a host lost frames: $what"
	}
}

# held: nothing lost in a port, little sent twice, the window kept, in all rows.
held() {
	no_drops
	# To its peers, a node that a busy machine did not run for a tenth of a second looks like one
	# that lost frames. A fault of ours comes again; that does not.
	tries=1
	while :; do
		sent=$(json frames_sent rows | awk '{ n += $1 } END { print n + 0 }')
		resent=$(json frames_resent rows | awk '{ n += $1 } END { print n + 0 }')
		[ "$resent" -gt $((sent / 10)) ] || break
		cat rows
		[ $tries -lt 3 ] || fail "$resent of $sent frames sent twice, three of three times: $what"
		tries=$((tries + 1))
		# shellcheck disable=SC2086
		bench $again
		no_drops
	done
	json window rows >windows
	! grep -qv '^[1-9]' windows || { cat rows; fail "no window: $what"; }
	window_kept rows
	echo "ok: $(wc -l <rows) rows, $resent of $sent frames sent twice, windows $(sort -un windows | xargs), peaks $(json window_peak \
		rows | sort -un | xargs): $what"
}

all="--sizes 0,1,1k,10k --iterations 4"
cat >uneven <<'EOS'
switch root
switch one
switch two
switch four
link root one rate 100mbit buffer 45
link root two rate 100mbit buffer 45
link root four rate 100mbit buffer 45
host a mac 02:c0:11:00:01:01
host b mac 02:c0:11:00:01:02
host c mac 02:c0:11:00:01:03
host d mac 02:c0:11:00:01:04
host e mac 02:c0:11:00:01:05
host f mac 02:c0:11:00:01:06
host g mac 02:c0:11:00:01:07
EOS
# In an order that is not that of the switches.
for link in "e one" "a two" "g two" "b four" "c four" "d four" "f four"; do
	echo "link $link rate 20mbit buffer 43" >>uneven
done

for net in "--shape 4x2 --uplink 40mbit" "--shape 6" "--topology $PWD/uneven" "--shape 2x2 --ranks-per-node 2"; do
	case $net in
	--shape*) net="$net --rate 20mbit" ;;
	esac
	# The shuffle alone, as the ports' counters are of the whole run.
	# shellcheck disable=SC2086
	bench $net -- alltoall $all --algorithm shuffle
	held
	[ "$(json bytes_per_pair rows | xargs)" = "0 1 1024 10240" ] || fail "sizes: $(cat rows)"
	# shellcheck disable=SC2086
	bench $net -- alltoall $all --algorithm pairwise,linear
	[ "$(json algorithm rows | sort | uniq -c | xargs)" = "4 linear 4 pairwise" ] || {
		cat rows
		fail "algorithms: $what"
	}
	echo "ok: $what"
	# shellcheck disable=SC2086
	bench $net -- allgather $all --algorithm ring
	no_drops
	echo "ok: $what"
	# shellcheck disable=SC2086
	bench $net -- barrier --iterations 50
	echo "ok: $what"
done

# Permutations, with the nodes numbered by the topology and in rank order.
for aware in on off; do
	nets="4x2 edge-colour,6 shift"
	! is_long && [ $aware = off ] || nets="$nets,4x2 shift,4x2 xor,6 edge-colour,5 edge-colour"
	IFS=,
	for net in $nets; do
		unset IFS
		p=${net#* }
		bench --shape "${net% *}" --rate 20mbit -- alltoall --sizes 1,10k --iterations 3 \
			--algorithm shuffle --permutation "$p" --contention-aware $aware
		held
		[ "$(json permutation rows | sort -u)" = "$p" ] || fail "not $p: $(cat rows)"
		case $aware:$(json contention_aware rows | sort -u) in
		on:true | off:false) ;;
		*) fail "not contention-aware $aware: $(cat rows)" ;;
		esac
	done
	for p in shift edge-colour; do
		bench --topology "$PWD/uneven" -- alltoall --sizes 1,10k --iterations 3 \
			--algorithm shuffle --permutation $p --contention-aware $aware
		held
	done
done

# At a real-time priority, daemons and processes in direct mode yield after each burst of frames.
if chrt --rr --pid 1 $$ 2>why; then
	for net in "6 --rate 20mbit" "4x2 --rate 100mbit" "4 --rate none"; do
		# shellcheck disable=SC2086
		bench --shape $net -- alltoall --sizes 1k,20k --iterations 20 --algorithm shuffle
		case $net in
		*none) echo "ok: $what" ;;
		*) held ;;
		esac
	done
	bench --shape 4x2 --rate 100mbit --no-daemons -- alltoall --mode direct --sizes 1k,20k \
		--iterations 20 --algorithm shuffle
	held
	chrt --other --pid 0 $$
else
	echo "not run at a real-time priority: $(cat why)"
fi

# xor is for powers of two, and says so.
collnet lab run --shape 6 --timeout 20 -- collnet bench alltoall --sizes 1k --algorithm shuffle \
	--permutation xor >out 2>&1
[ $? -eq 1 ] || { cat out; fail "xor among six"; }
has "xor" out
has "power" out
