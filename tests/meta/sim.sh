# SPDX-License-Identifier: BSD-2-Clause
# The installed collnet sim: its output, its statuses, and the arguments that it refuses.
. "$(dirname "$0")/lib.sh"

# sim STATUS ARGUMENT...: `collnet sim ARGUMENT...` ends with that status.
sim() {
	ends sim "$@"
}

# ---- what cannot be written -------------------------------------------------------------
if [ -c /dev/full ]; then
	sim 1 bcast --shape 4 --sizes 1k --pcap /dev/full --port s1-h0
	has '^collnet sim: --pcap: /dev/full could not be written' err
	sim 1 bcast --shape 4 --sizes 1k --trace /dev/full
	has '^collnet sim: --trace: /dev/full could not be written' err
	sim 1 bcast --shape 4 --sizes 1k --csv /dev/full
	for command in "bcast --shape 4 --sizes 1k" "--help" \
		"--experiment loss --quick --output $t"; do
		# shellcheck disable=SC2086
		"$collnet" sim $command >/dev/full 2>"$t/err" && fail "full: $command"
		has '^collnet sim: standard output: ' err
	done
	"$collnet" --version >/dev/full 2>"$t/err" && fail "full: --version"
fi

# ---- refused arguments, with one line ---------------------------------------------------
for command in "--shape 0" "--shape x" "--shape 2x2x2" "--shape 4096x4096" "--shape --sizes 1k" \
	"--shape 4 --sizes 1k --csv $t/x --trace $t/x" "--shape 4 --duplicate 100001"; do
	# shellcheck disable=SC2086
	sim 2 alltoall $command
	[ "$(wc -l <"$t/err")" -eq 1 ] || fail "not one line: $command"
done
sim 2 alltoall --shape --sizes 1k
has '^collnet sim: --shape needs a value;' err
sim 2 alltoall --shape 4 --csv ''
has '^collnet sim: --csv: its value is empty' err
# getopt stands before a word of several letters until it has refused all of them
sim 2 --verify -np 4 alltoall --shape 4
has "^collnet sim: unknown option '-n';" err
sim 2 alltoall --shape 4 --verify=yes
has '^collnet sim: --verify takes no value;' err
sim 2 alltoall --shape 4 --verfy
has "^collnet sim: unknown or ambiguous option '--verfy';" err
sim 2 --experiment loss --quick --loss 5
has 'takes only --seed, --output and --quick, not --loss' err
# The listed operations are accepted.
sim 2 alltoallx --shape 4
has "unknown operation 'alltoallx'; expected one of alltoall, allgather, bcast, " err
for op in $(sed -n 's/.*expected one of \(.*\); see.*/\1/p' "$t/err" | tr -d ,); do
	sim 0 "$op" --shape 2 --iterations 1
done
sim 2 alltoallv --shape 4
has 'alltoallv is not simulated yet' err
sim 2 alltoall
has 'specify --shape (e.g. 8x4) or --topology FILE' err
sim 2 alltoall --shape 4 --topology "$t/topo"
has 'specify --shape or --topology, not both' err
sim 2 alltoall --shape 4 --algorithm nope
has "unknown algorithm 'nope' for alltoall; there are shuffle, " err
printf 'switch a\nhost h\nlink a h rate 1gbit\n' >"$t/topo"
sim 2 alltoall --topology "$t/topo" --csv "$t/./topo"
has 'switch a' topo

# ---- an experiment that fails leaves what was there -------------------------------------
echo good >"$t/scale.csv"
# It takes minutes, and is ended after a second.
timeout -s TERM 1 "$collnet" sim --experiment scale --output "$t" >"$t/out" 2>"$t/err" &&
	fail "an experiment that was ended says that it is well"
ls "$t"/.scale.csv.* >"$t/ls" 2>&1 && fail "an experiment left $(cat "$t/ls")"
has '^good$' scale.csv
sim 0 --experiment loss --quick --output "$t"
has '^transport,' loss.csv

# ---- a network that the nodes do not know -----------------------------------------------
# ---- where many send to one over long cables, no frame is lost ---------------------------
for hosts in 11 13 24 32; do
	sim 0 gather --shape $hosts --rate 25gbit --sizes 14k,64k --latency 5us --iterations 6 --json
	! grep -q '"drops": [1-9]' "$t/out" || { cat "$t/out"; fail "a gather on $hosts hosts loses frames"; }
	[ "$(grep -c '"drops": 0' "$t/out")" -eq 2 ] || fail "a gather on $hosts hosts"
done

# efficiency RATE OPTION...: in per cent, of exchanges whose busiest links are as fast as the others.
efficiency() {
	rate=$1
	shift
	sim 0 alltoall --shape 8x2 --rate "$rate" --uplink "$rate" --no-topology --algorithm shuffle \
		--sizes 16k --warmup 5 --iterations 20 --json "$@"
	sed -n 's/.*"efficiency": 0.\(..\).*/\1/p' "$t/out"
}
for rate in 20mbit 1gbit 25gbit; do
	adaptive=$(efficiency $rate) off=$(efficiency $rate --window off)
	[ "$adaptive" -ge 85 ] && [ "$off" -le $((adaptive - 10)) ] ||
		fail "$rate: $adaptive % with an adaptive window, $off % without one"
done

# One host with a slow cable, whose port would hold the frames in flight of all others.
"$collnet" topo tree --shape 16 --rate 1gbit --buffer 43 |
	sed 's/^link h5 s1 rate 1gbit/link h5 s1 rate 100mbit/' >"$t/slow.topo"
sim 0 alltoall --topology "$t/slow.topo" --sizes 16k
has 'no queue overflowed'

# Messages one after the other over a link that is slower than the hosts': no queue of their ends.
for uplink in 50mbit 75mbit; do
	sim 0 alltoall --shape 8x2 --rate 100mbit --uplink $uplink --algorithm aapc --sizes 16k --encapsulation raw
	has 'no queue overflowed'
done

# ---- a case that fails is a row, and the others go on -----------------------------------
sim 1 alltoall --shape 3 --sizes 1k,2k --algorithm shuffle,pairwise --permutation xor
[ "$(grep -c ' failed ' "$t/out")" -eq 4 ] || fail "four rows"
[ "$(wc -l <"$t/err")" -eq 4 ] || fail "four complaints"
has '^collnet sim: pairwise of 2 KiB: 3 of 3 ranks failed, first rank 0 on h0: the xor' err
sim 1 alltoall --shape 4x4 --sizes 1k,512m --algorithm shuffle --json --csv "$t/csv"
[ "$(wc -l <"$t/out")" -eq 2 ] || fail "two objects"
has '"bytes_per_pair": 1024,.*"frames_resent": 0,.*"error": null}$'
has '"time_us": null,.*"frames_resent": null,.*"drops": null,.*"error": "blocks of 512 MiB'
[ "$(cut -d, -f10 "$t/csv" | tail -n 1)" = "" ] || fail "a count of a case that failed"

# ---- what is not known, and what a row does not have --------------------------------------
sim 0 alltoall --shape 4x2 --sizes 1k --algorithm shuffle,aapc --contention-aware off --json
has '"cpu_s_per_gib": null,.*"daemon_rss_bytes": null,'
has '"algorithm": "shuffle", .*"contention_aware": false'
has '"algorithm": "aapc", "permutation": null, "contention_aware": true'

# ---- nothing is faster than the best time -------------------------------------------------
# within OPERATION OPTION...: % best is at most 100.
within() {
	sim 0 "$@" --json
	grep -o '"of_best": [^,]*' "$t/out" | awk '$2 > 1.01 { bad = 1 } END { exit bad || NR == 0 }' ||
		fail "faster than the best time"
}
for op in alltoall allgather gather scatter allreduce reduce_scatter; do
	within $op --shape 16 --rate 100mbit --sizes 8,200,1k --algorithm all
	within $op --shape 8x2 --rate 100mbit --sizes 8,200,1k --algorithm all --local 4
done
within alltoall --shape 16 --rate 20mbit --lab --sizes 8,1k,16k --iterations 20

# ---- buffers are those of the operation ---------------------------------------------------
sim 0 bcast --shape 64 --sizes 3m --verify --iterations 1 --warmup 0
has ' right '

# ---- the headers of frames: 1,460 bytes are one frame without the 28 bytes of udp or the 24 of a tag ----
frames() {
	sim 0 alltoall --shape 2 --sizes 1460 --iterations 1 --warmup 0 --json "$@"
	grep -o '"frames_sent": [0-9]*' "$t/out" | cut -d' ' -f2
}
[ $(($(frames) - $(frames --encapsulation raw))) -eq 2 ] || fail "frames by encapsulation"
[ "$(frames)" = "$(frames --encapsulation udp)" ] || fail "udp is not the default"
[ $(($(frames --encapsulation raw --authenticated) - $(frames --encapsulation raw))) -eq 2 ] ||
	fail "frames of a cluster with a key"
sim 2 alltoall --shape 2 --encapsulation vxlan
has "^collnet sim: --encapsulation: 'vxlan' is no encapsulation; there are raw, udp" err

# ---- faults at their times --------------------------------------------------------------
sim 1 alltoall --shape 4x2 --sizes 64k --verify --fault "t=2ms for=100ms crash h3"
[ "$(grep -c "after 't=2ms for=100ms crash h3', names h3: " "$t/out")" -eq 8 ] || fail "names h3"
has '8 ranks failed, 7 on other hosts .* after the fault; 7 of these name a host with the fault'
has '^  next job: right$'
sim 1 alltoall --shape 4x2 --sizes 64k --fault "t=2ms crash h3" --json --csv "$t/csv"
[ "$(grep -o '"culprit": "h3", "culprit_faulted": true' "$t/out" | wc -l)" -eq 8 ] || fail "JSON"
has '"next_job": "not attempted: a host is still down or a link still cut"}$'
[ "$(sed 1d "$t/csv" | cut -d, -f22-23)" = 8,7 ] || fail "CSV"
[ "$(sed 1d "$t/csv" | tr -cd , | wc -c)" -eq "$(sed -n 1p "$t/csv" | tr -cd , | wc -c)" ] ||
	fail "CSV: columns"
sim 1 alltoall --shape 4x2 --sizes 64k --verify --fault "t=1ms cut s0-s1" \
	--fault "t=3s repair s0-s1"
has '8 ranks failed, 8 on other hosts .* 8 of these name'
has '^  next job: right$'
sim 1 allgather --shape 8 --sizes 64k --verify --fault "for=3s partition h0-h3|h4,h5-h7"
has '^  next job: right$'
# Whenever the cable of a host is cut, it says that none of its peers answers.
for seed in $(seq 60); do
	sim 1 alltoall --shape 4 --rate 20mbit --sizes 16k --iterations 300 --seed "$seed" \
		--fault "t=$((300 + seed))ms cut h2"
	has 'rank 2 on h2: .*: node h2 is cut off: none of its 3 peers answers$'
done
sim 0 alltoall --shape 4x2 --sizes 64k --verify --fault "for=5ms loss 5%" \
	--fault "duplicate 1% s0-s1" --fault "t=1ms for=300ms pause h2" --fault "t=1s crash h0" \
	--fault "t=0 restart h1"
has "^  fault 't=1s crash h0': the operation ended before it$"
has "^  fault 't=0 restart h1': no effect, the host was running$"
cp "$t/out" "$t/first"
sim 0 alltoall --shape 4x2 --sizes 64k --verify --fault "for=5ms loss 5%" \
	--fault "duplicate 1% s0-s1" --fault "t=1ms for=300ms pause h2" --fault "t=1s crash h0" \
	--fault "t=0 restart h1"
cmp -s "$t/out" "$t/first" || fail "faults: the same seed gives another result"
sim 2 alltoall --shape 4x2 --fault "t=2ms crush h3"
has "column 7: 'crush'; expected crash, restart, pause," err

# ---- the line below the table -----------------------------------------------------------
# Progress is for terminals, or on request; a trace is complete in either case.
sim 0 alltoall --shape 4 --sizes 1k
[ ! -s "$t/err" ] || fail "$(cat "$t/err")"
sim 0 alltoall --shape 4 --sizes 1k --trace "$t/silent"
COLLNET_PROGRESS=1 sim 0 alltoall --shape 4 --sizes 1k --trace "$t/shown"
has '^alltoall by [a-z]*, 1 KiB: [0-9.]* s simulated, [0-9]* frames sent$' err
cmp "$t/silent" "$t/shown" || fail "progress changes the trace"

sim 0 alltoall --shape 1 --sizes 1k
has '^alltoall, 1 rank on 1 simulated node, seed'
sim 0 alltoall --shape 4x2 --sizes 1k,16k --algorithm linear,shuffle,pairwise
has '^8 nodes: alltoall of 16 KiB; of 3 algorithms none is faster than shuffle, which takes '
sim 0 alltoall --shape 4x4 --sizes 64k --switch input --uplink 1gbit --algorithm linear
has 'full queues dropped [0-9]* frames, most of them ([0-9]*) at s[0-9], port from [hs][0-9]'
sim 0 alltoall --shape 4x4 --sizes 64k --switch dynamic
has 'the longest was [0-9]* of 217 frames of s[1-4].s memory, port to '
sim 0 alltoall --shape 4x2 --sizes 64k --buffer 0 --uplink-buffer 0
has 'buffers at s[0-9] are unlimited, and its longest queue was [0-9]* frame'
lacks 'no queue overflowed'
sim 0 alltoall --shape 8 --sizes 64k --reorder 20000
has 'no frame was dropped, but [0-9]* were retransmitted'
sim 0 alltoall --shape 8 --sizes 64k --window 1
has 'the window of 1 frame limits it (--window sets another)'
sim 0 alltoall --shape 8x2 --sizes 64k --buffer 6 --uplink-buffer 6 --algorithm aapc \
	--encapsulation raw # with udp a few of 34,000 frames are dropped
has 'frames, which the buffers allow, limits it (--window sets another)'
sim 0 alltoall --shape 16x8 --sizes 1k --buffer 0 --uplink-buffer 0 --algorithm shuffle
has ', for an assumed buffer of 43 frames per port, limits it'
# Two nodes send to each node of a chain there and back: half of the window of a link.
sim 0 allreduce --shape 8x2 --rate 20mbit --sizes 1m --algorithm chain --iterations 3
has 'no queue overflowed'
# What 63 nodes tell their root now and then does not meet in its port.
sim 0 scatter --shape 64 --sizes 8 --iterations 300
has 'no queue overflowed'
sim 0 reduce --shape 3x2 --sizes 8,3k,64k --algorithm all --verify
sim 0 reduce_scatter --shape 3x2 --sizes 8,3k,64k --algorithm all --verify --local 2
[ "$(grep -c ' right ' "$t/out")" -eq 6 ] || fail "reduce_scatter"
sim 0 allgather --shape 3x2 --sizes 1k,2k --algorithm all
[ "$(wc -l <"$t/err")" -eq 1 ] || fail "left out once"
sim 0 bcast --shape 4 --sizes 1 --delay 100ms
has ', <1 % of the best time that these links allow'

# ---- the network ----------------------------------------------------------------------------
printf '%s\n' "switch s" "host a" "host b" "link a s rate 1gbit" "link b s rate 1gbit" >"$t/two"
sim 0 alltoall --topology "$t/two" --sizes 16k
cp "$t/out" "$t/of-file"
sim 0 alltoall --topology - --sizes 16k <"$t/two"
cmp -s "$t/out" "$t/of-file" || fail "a topology from standard input"
sim 2 alltoall --shape 400000
has 'with at most 200000 hosts' err

# ---- channels without number ----------------------------------------------------------------
printf '%s\n' "switch s" "switch t" "host a" "host b" "link a s rate 1gbit" "link b t rate 1gbit" \
	"link s t rate 10kbit buffer 65536 channels 65536" >"$t/wide"
sim 0 alltoall --topology "$t/wide" --sizes 16k
has ' of 4294967295 frames'
sed 's/10kbit/281474976710656/' "$t/wide" >"$t/wider"
sim 1 alltoall --topology "$t/wider" --sizes 1k
has "wider:7: expected 'rate RATE'" err

# ---- clusters that cannot be --------------------------------------------------------------
sim 1 barrier --shape 4x2 --rate 1kbit
has 'rank 0 does not join: with this rate, latency, gap or loss the hosts did not all find' err
lacks 'collnet status' err
# The point at which memory is exhausted may vary; the error must be reported.
for kib in 40000 60000 100000 200000; do
	(
		ulimit -v $kib 2>/dev/null || exit 0
		"$collnet" sim alltoall --shape 8x8 --sizes 16k --iterations 1 >"$t/out" 2>"$t/err"
	) || has 'memory' err
done
exit 0
