# SPDX-License-Identifier: BSD-2-Clause
# The installed collnet topo: each subcommand's output, statuses, and the arguments that it refuses.
. "$(dirname "$0")/lib.sh"

# topo STATUS ARGUMENT...: `collnet topo ARGUMENT...` ends with that status.
topo() {
	ends topo "$@"
}

# A triangle of switches, one side of it twice and one of two channels, and a switch for nobody.
cat >"$t/cycle" <<'END'
switch a
switch b
switch c
switch empty
host h0 mac 02:00:00:00:00:01
host h1
host h2
host h3
host h4
link a b rate 100mbit buffer 45
link b c rate 1gbit buffer 45 channels 2
link c a rate 100mbit buffer 45
link a b rate 100mbit buffer 45
link empty c rate none
link h0 a rate 20mbit buffer 43
link h1 a rate 20mbit buffer 43
link h2 b rate 20mbit buffer 43
link h3 c rate 10mbit buffer 43
link h4 c rate 20mbit
END

# ---- show -------------------------------------------------------------------------------
topo 0 show --shape 8x4
has '^8x4: 5 switches, 32 hosts, 36 links, height 2$'
has 'all-to-all *192 phases at least: s1 - s0 parts the hosts 8 to 24, 192 messages each way'
has 'unused links *none'
has '^  s4: 100 Mbit/s, 45 frames$'
has '^    8 hosts h24 h25 h26 h27 .. h31: 10 Mbit/s, 43 frames$'
topo 0 show --shape 1
has '^hosts *1, at 20 Mbit/s$'
topo 0 show --shape 8x4 --all
has '^    8 hosts h24 h25 h26 h27 h28 h29 h30 h31:'
topo 0 show "$t/cycle"
has 'root a, height 2; longest path 3 switches'
has 'unused links *2: b - c, a - b$'
has 'all-to-all *6 phases at least: c - a parts the hosts 2 to 3'
has 'by its rate, h3 - c takes longest: 4 messages at 10 Mbit/s'
topo 0 show --json - <"$t/cycle"
is_json
has '"source": "standard input"'
has '{"a": "b", "b": "c", "rate": 1000000000, "buffer": 45, "channels": 2, "in_tree": false}'
has '{"name": "h0", "switch": "a", "mac": "02:00:00:00:00:01"}'
has '"phases_bound": 6'
topo 0 show --shape 2
has 'all-to-all *1 phase at least: h0 - s1 parts the hosts 1 to 1, 1 message each way'
# the bound counts channels
printf '%s\n' 'switch a' 'switch b' 'host x' 'host y' 'host z' 'link a b rate 1gbit channels 2' \
	'link x a rate 1gbit' 'link y a rate 1gbit' 'link z b rate 1gbit' >"$t/two"
topo 0 show "$t/two"
has '2 phases at least'
# large ones are summed up; a chain is no obstacle
topo 0 random --hosts 500 --seed 3
cp "$t/out" "$t/random"
topo 0 show "$t/random"
has 'level 1: '
[ "$(wc -l <"$t/out")" -lt 40 ] || fail "a large tree is not summed up"
topo 0 show "$t/random" --all
[ "$(wc -l <"$t/out")" -gt 100 ] || fail "--all does not show all"
awk 'BEGIN { for (i = 0; i < 20000; i++) { print "switch s" i
	if (i) print "link s" i - 1, "s" i, "rate none" }
	print "host a\nhost b\nlink a s0 rate none\nlink b s19999 rate none" }' >"$t/chain"
topo 0 show "$t/chain" --all
has '\[19999\] s19999'
[ "$(wc -c <"$t/out")" -lt 3000000 ] || fail "the indentation has no limit"
topo 0 show "$t/chain"
has 'longest path 20000 switches'
has 'and 19985 more levels'

# ---- check ------------------------------------------------------------------------------
topo 0 check --shape 8x2
[ "$(cat "$t/out")" = "8x2: OK, 3 switches, 16 hosts, 18 links, height 2" ] || fail "check"
topo 0 check - <<'END'
host alone
END
has 'OK, 0 switches, 1 host, 0 links, height 0$'
topo 0 check "$t/cycle"
has 'warning: 2 links are not in the spanning tree (such as b - c)'
has 'warning: 1 switch leads to no host (such as empty)'
has 'warning: hosts have unequal rates, 10 Mbit/s to 20 Mbit/s'
has 'warning: 1 of 7 links has no buffer'
lacks 'links between switches have unequal' # the fast one is not in the tree
topo 0 check "$t/two" --json
is_json
has '"kind": "no-buffer", "count": 4'
topo 0 check "$t/chain"
has 'have no rate'
has 'the window assumes 43 frames per port'
# nothing is assumed where a link says its buffer, be it one that no frame crosses
{ cat "$t/two" && printf '%s\n' 'switch c' 'link c a rate 1gbit buffer 45'; } >"$t/unused"
topo 0 check "$t/unused"
has '4 of 4 links have no buffer: the window ignores their ports$'
topo 0 window "$t/unused"
has '^W_g: off; no port'
printf 'switch s\nhost h\nlink h s rate fast\n' >"$t/bad"
topo 1 check "$t/bad"
has "^collnet topo: $t/bad:3: expected 'rate RATE'" err
topo 1 check - <"$t/bad"
has 'standard input:3: expected' err
topo 1 check --json "$t/bad"
is_json
has '"ok": false, "error": '
topo 1 check /nonexistent
has '/nonexistent' err
topo 1 check /dev/null
for part in show draw tree window; do
	topo 1 $part "$t/bad"
	has ':3: expected' err
	[ ! -s "$t/out" ] || fail "output of a bad file"
done
head -c 100000 /dev/urandom >"$t/noise"
topo 1 check "$t/noise"
[ "$(wc -l <"$t/err")" -eq 1 ] || fail "noise"

# ---- Slurm ------------------------------------------------------------------------------
cat >"$t/slurm" <<'END'
SwitchName=leaf0 Nodes=n[0-3]
SwitchName=leaf1 Nodes=n[4-5]
SwitchName=spine Switches=leaf[0-1]
END
topo 0 show "$t/slurm"
has '3 switches, 6 hosts, 8 links'
has '4 hosts n0 n1 n2 n3'
has '^hosts *6, at an unknown rate$'
# rates of some links only
sed '1s/$/ LinkSpeed=1gbit/; 3s/$/ LinkSpeed=10gbit/' "$t/slurm" >"$t/some"
topo 0 show "$t/some"
has '^hosts *6, at 1 Gbit/s, but 2 of them at an unknown rate$'
has '^switches *3, joined by 2 links of the tree at 10 Gbit/s$'
topo 0 tree - <"$t/slurm"
cp "$t/out" "$t/ours"
has '^link n5 leaf1 rate none$' ours
topo 0 check "$t/ours"

# ---- tree -------------------------------------------------------------------------------
for kind in bfs dfs random shortest; do
	topo 0 tree "$t/cycle" --kind $kind --seed 9
	has "^# spanning tree ($kind) from a: 2 of 10 links are left out$"
	cp "$t/out" "$t/tree"
	topo 0 show --json "$t/tree"
	has '"nlinks": 8, "unused_links": 0'
	has '"mac": "02:00:00:00:00:01"'
done
# by rate, the way from c leads over the fast link to b
topo 0 tree "$t/cycle" --kind shortest --root c
has '^link b c rate 1gbit'
topo 0 tree "$t/cycle" --json
is_json
topo 1 tree "$t/cycle" --root h0
has 'no switch of that name' err
topo 1 tree "$t/cycle" --root nobody

# ---- random -----------------------------------------------------------------------------
topo 0 random --hosts 50 --switches 10 --degree 4 --seed 5 --rate 1gbit --buffer 12
cp "$t/out" "$t/one"
topo 0 random --hosts 50 --switches 10 --degree 4 --seed 5 --rate 1gbit --buffer 12
cmp "$t/out" "$t/one" || fail "the same seed gives another cluster"
topo 0 show --json "$t/one"
has '"nhosts": 50, "nswitches": 10, "nlinks": 70, "unused_links": 11'
has '"rate": 1000000000, "buffer": 12'
# The first line is a command that makes the file again.
topo 0 random --hosts 50 --switches 10 --degree 12.345 --rate 1gbit --buffer 12
cp "$t/out" "$t/random"
# shellcheck disable=SC2046 # a list of words
topo 0 $(sed -n '1s/.*: collnet topo //p' "$t/random")
cmp -s "$t/out" "$t/random" || fail "the command in the file makes another one"
topo 0 random --hosts 50 --switches 10 --degree 4 --seed 6 --rate 1gbit --buffer 12
! cmp -s "$t/out" "$t/one" || fail "another seed gives the same cluster"
topo 0 random --hosts 1
topo 0 random --hosts 7 --json
is_json

# ---- window: the five networks of the paper, Table 1's buffers (6x4: 5 in the paper's text) ---
# input_buffered SHAPE OPTION...: writes the shape as the file input-buffered.
input_buffered() {
	topo 0 tree --shape "$@"
	sed 's/^switch .*/& input-buffered/' "$t/out" >"$t/input-buffered"
}
for case in 16x1:43:21 8x2:10:5 8x3:8:4 6x4:9:4 8x4:7:3; do
	input_buffered "${case%%:*}" --buffer 43 --uplink-buffer 45
	topo 0 window "$t/input-buffered" --json
	is_json
	rest=${case#*:}
	has "\"window_data\": ${rest%:*}, \"window\": ${rest#*:}, \"bottleneck\": "
done
input_buffered 4x4 --buffer 43 --uplink-buffer 30 # section 3.3: nu 3.2, W_g 9
topo 0 window "$t/input-buffered"
has '^switch *4 *4:12 *1 *3.200 *100.0 % *30 *9 *4  s1 - s0$'
has '^W_g: 9 frames'
has '^bottleneck: s1 - s0$'
topo 0 window --shape 8x2 --rate 1gbit --uplink 5gbit --buffer 43 --uplink-buffer 45
has '^switch *2 *8:8 *1 *4.267 *42.9 % *45 *24 *12  s1 - s0$'
has '^W_g: 24 frames'
input_buffered 8x2 --uplink-buffer 2 # less than a frame per host
topo 0 window "$t/input-buffered"
has '^Eq. 4 gives 0.23 for s1 - s0; the least window is 1, with which that port may overflow$'
input_buffered 8x2 --uplink-buffer 9
topo 0 window "$t/input-buffered"
has '1 if pure acknowledgements are counted'
lacks '^Eq. 4 gives'
topo 0 window --shape 24x2 --rate 100mbit --uplink 1gbit
has '^W_g: 3 frames in flight per host; 1 if'
has '^W_g is 2 in an all-to-all:'
topo 0 window --shape 24x2 --rate 100mbit --uplink 300mbit
lacks 'in an all-to-all'
topo 0 window --shape 8x4 --hosts h0,h1,h31
has 'among 3 hosts'
has '^switch *2 *1:2 ' # two uplinks
topo 0 window "$t/chain"
has '^W_g: 43 frames'
has '^no link has a known buffer; 43 frames per port are assumed$'
topo 0 window "$t/two" --json
has '"window_data": 43, "window": 21, "bottleneck": "x - a"'
topo 0 window "$t/two" --hosts x --json
has '"window_data": null, "window": null, "bottleneck": null'
topo 1 window --shape 2 --hosts h0,h7
has "no host 'h7'" err
topo 1 window --shape 2 --hosts h0,h0
topo 2 window --shape 2 --hosts h0,,h1
topo 2 window --shape 2 --hosts ""
has "the list has an empty item" err
topo 1 window --shape 2 --hosts s1

# ---- draw -------------------------------------------------------------------------------
topo 0 draw "$t/cycle"
has 'graph'
has 'dashed'
topo 0 draw --shape 8x4 --ring lr3 --json
is_json
has 'ring lr3 of 32 hosts, longest path 3 switches'
[ "$(grep -o '"from"' "$t/out" | wc -l)" -eq 32 ] || fail "not 32 messages"
for ring in lr1 lr3 file-order; do
	topo 0 draw --shape 2x2 --ring $ring
	has "ring $ring of 4 hosts"
done
topo 0 draw "$t/two" --ring lr2
has 'ring lr2 of 3 hosts, longest path 2 switches'
topo 1 draw --shape 2x2 --ring lr2 # Theorem 2: the root has no hosts
has 'switch s0 has 0 hosts' err
topo 0 draw --shape 4x2 --phase 0 --algorithm pairwise --json
[ "$(grep -o '"from"' "$t/out" | wc -l)" -eq 8 ] || fail "not 8 messages"
topo 0 draw --shape 4x2 --phase 15 # aapc: 4 * 4 phases
has 'aapc, phase 15 of 0 to 15'
topo 1 draw --shape 4x2 --phase 16
has 'aapc has phases 0 to 15 here' err
topo 2 draw --shape 4x2 --phase 0 --algorithm nonsense
has "unknown algorithm 'nonsense'; there are shuffle, pairwise, .*, exchange; see collnet topo --help$" err
# every name once, and whole
sed -n 's/.*; there are \(.*\); see .*/\1/p' "$t/err" | tr -d , | tr ' ' '\n' >"$t/names"
[ -z "$(sort "$t/names" | uniq -d)" ] || fail "twice: $(sort "$t/names" | uniq -d)"
while read -r name; do
	topo 0 draw --shape 4 --phase 0 --algorithm "$name"
done <"$t/names"
topo 1 draw --shape 4 --output /nonexistent/x
if command -v dot >/dev/null; then
	topo 0 draw --shape 8x4 --ring lr3 --output "$t/ring.svg"
	has '<svg' ring.svg
	has '>h31<' ring.svg
	topo 0 draw --shape 4 --format svg
	has '</svg>'
fi
mkdir "$t/empty"
PATH=$t/empty topo 1 draw --shape 4 --format svg
has 'dot is missing: install the Debian package graphviz' err

# ---- the command line -------------------------------------------------------------------
topo 0 --help
for part in show check draw random tree window; do
	topo 0 $part --help
	has "^usage: collnet topo $part"
	has '  --json'
done
while read -r line; do
	# shellcheck disable=SC2086 # words
	topo 2 $line
	[ "$(wc -l <"$t/err")" -eq 1 ] || fail "not one line: $line"
done <<'END'

walk
show
show a b
show --shape
show --nonsense
show --kind bfs --shape 2
show x --shape 2
show x --rate 1gbit
check x --buffer 5
random
random x --hosts 4
random --hosts 0
random --hosts 4 --degree x
random --hosts 4 --switches 0
random --hosts 200000
random --hosts 4 --switches 200000
random --hosts 10000 --switches 100000 --degree 100
random --hosts 4 --shape 2
tree --shape 4 --kind widest
draw --shape 4 --ring lr4
draw --shape 4 --ring lr1 --phase 1
draw --shape 4 --algorithm aapc
draw --shape 4 --format png
draw --shape 4 --format dot --json
draw --shape 4 --phase -1
window --shape 4 --buffer 0
END
topo 2 show x --shape 2
has 'specify a FILE or --shape, not both' err
# no rate is called none, as in a topology file
topo 2 show --shape 2 --rate 0
has "rate: '0' is neither none nor a rate with a unit" err
topo 2 show --shape 2x2 --uplink 0
topo 0 show --shape 2x2 --rate none --uplink none
has '^hosts *4, at an unknown rate$'
# a shape that is none is an option's error, in every part
for part in show check tree window draw; do
	topo 2 $part --shape 8y2
	[ "$(wc -l <"$t/err")" -eq 1 ] || fail "not one line"
done
topo 2 check --shape 8y2 --json
topo 2
has 'no subcommand given' err
topo 2 foo
has "unknown subcommand 'foo'" err
# nobody reads it: a failure, not a success
[ ! -e /dev/full ] || {
	"$collnet" topo show --shape 2 >/dev/full 2>"$t/err" && fail "a full device"
	has 'standard output: No space' err
	"$collnet" topo show --shape 2 --json >/dev/full 2>"$t/err" && fail "a full device"
	has 'standard output: No space' err
	"$collnet" topo check --shape 2 >/dev/full 2>"$t/err" && fail "a full device"
	has 'standard output: No space' err
	"$collnet" topo check --shape 2 --json >/dev/full 2>"$t/err" && fail "a full device"
	has 'standard output: No space' err
	for command in "random --hosts 2" "tree --shape 2" "tree --shape 2 --json" "window --shape 2" \
		"window --shape 2 --json"; do
		# shellcheck disable=SC2086 # words
		"$collnet" topo $command >/dev/full 2>"$t/err" && fail "a full device"
		has 'standard output: No space' err
	done
}
# A tree has no rate that a file cannot have.
"$collnet" topo tree --shape 2x2 --rate 100tbit >"$t/out" && "$collnet" topo check "$t/out" >/dev/null ||
	fail "the fastest uplinks"
echo ok
