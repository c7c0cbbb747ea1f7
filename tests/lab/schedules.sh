# SPDX-License-Identifier: BSD-2-Clause
# The algorithms that go by the network, on a tree of four switches of unequal size, with one rank a
# host and with two: every byte right, and no frame lost in a port by those that guarantee that no
# link is shared.
# timeout: 600
# run: long
. "$(dirname "$0")/lib.sh"
need_lab

cat >four.topo <<'EOF'
switch s0
switch s1
switch s2
switch s3
link s0 s1 rate 20mbit buffer 45
link s1 s2 rate 20mbit buffer 45
link s1 s3 rate 20mbit buffer 45
EOF
h=0
for s in s0 s0 s0 s1 s1 s1 s1 s2 s2 s3 s3 s3; do
	printf 'host h%d\nlink h%d %s rate 20mbit buffer 43\n' $h $h $s >>four.topo
	h=$((h + 1))
done

# bench LAB-OPTIONS -- BENCH-OPTIONS
bench() {
	lab_rows --topology four.topo --timeout 200 "$patient" "$@"
	echo "ok: $(wc -l <rows) rows, lost in ports $(json drops_total ports), resent" \
		"$(json frames_resent rows | xargs): $what"
}

# undropped LAB-OPTIONS -- BENCH-OPTIONS: the same, and no frame is lost in a port. A host that a busy
# machine does not run for a while sends late what others do not expect then, so this has three tries.
undropped() {
	for try in 1 2 3; do
		bench "$@"
		[ "$(json drops_total ports)" != 0 ] || return 0
	done
	no_drops
}

some="--sizes 0,1,1k,20k --iterations 3"
# shellcheck disable=SC2086
for ranks in 1 2; do
	if [ $ranks -gt 1 ]; then
		bench --ranks-per-node $ranks -- alltoall $some --algorithm aapc
	else
		undropped --ranks-per-node $ranks -- alltoall $some --algorithm aapc
	fi
	undropped --ranks-per-node $ranks -- allgather $some --algorithm lr1,lr2,lr3
	[ "$(json algorithm rows | sort -u | xargs)" = "lr1 lr2 lr3" ] || fail "algorithms: $what"
	bench --ranks-per-node $ranks -- bcast $some --algorithm chain,binary,kary,smp,binomial
	undropped --ranks-per-node $ranks -- scatter $some --algorithm furthest
	undropped --ranks-per-node $ranks -- gather $some --algorithm windowed
	# Back to back, the first senders of a gather are ahead of the last of the one before.
	bench --ranks-per-node $ranks -- gather $some --algorithm nearest
	bench --ranks-per-node $ranks -- alltoall $some --algorithm fattree
done

# What is chosen without a word, and by the environment's.
bench -- bcast --sizes 1k,100k --iterations 3
[ "$(json algorithm rows | wc -l)" -eq 2 ] || fail "rows: $(cat rows)"
COLLNET_ALGORITHM=alltoall=aapc,allgather=lr2 bench -- alltoall --sizes 1k --iterations 2
[ "$(json algorithm rows)" = aapc ] || fail "not aapc: $(cat rows)"
COLLNET_ALGORITHM=alltoall=best collnet lab run --topology four.topo --timeout 200 -- \
	collnet bench alltoall --sizes 1k >out 2>&1
[ $? -ne 0 ] || { cat out; fail "an algorithm that does not exist"; }
has "COLLNET_ALGORITHM is 'alltoall=best': alltoall has no algorithm 'best'.*shuffle" out
