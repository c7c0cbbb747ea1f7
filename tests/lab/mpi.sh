# SPDX-License-Identifier: BSD-2-Clause
# Routines written by collnet schedule --emit mpi-c, compiled by mpicc without a warning and run
# under Open MPI on emulated hosts: they do what MPI's own routines do, byte by byte, on a small tree,
# with roots that are not rank 0. Where LONG is yes, the exchange also runs on topology (c) of Faraj and
# Yuan, a chain of four switches with eight hosts each, at 10 Mbit/s, where 32 hosts take about 25
# seconds, most of them for starting.
# timeout: 600
. "$(dirname "$0")/lib.sh"
need_lab
need mpicc mpirun

here=$(cd "$(dirname "$0")" && pwd)

# chain SWITCHES HOSTS: a topology file of SWITCHES switches in a chain, with HOSTS hosts each.
chain() {
	awk -v switches="$1" -v hosts="$2" 'BEGIN {
		for (s = 0; s < switches; s++) {
			print "switch s" s
			if (s > 0)
				print "link s" s - 1 " s" s " rate 10mbit buffer 45"
			for (h = s * hosts; h < (s + 1) * hosts; h++)
				print "host n" h "\nlink n" h " s" s " rate 10mbit buffer 43"
		}
	}'
}

open_mpi

# compile OPERATION:ALGORITHM[:ROOT]...: ./check, with a routine for each.
compile() {
	defines='' files=''
	for what; do
		op=${what%%:*}
		rest=${what#*:}
		root=
		case $rest in *:*) root="--root n${rest#*:}" ;; esac
		size="--size 20k"
		[ "$op" != barrier ] || size=
		upper=$(echo "$op" | tr '[:lower:]' '[:upper:]')
		# shellcheck disable=SC2086
		collnet schedule "$op" --topology net --algorithm "${rest%%:*}" $root $size \
			--check --emit mpi-c --name "routine_$op" >"$op.c" || fail "no routine: $what"
		defines="$defines -D$upper=routine_$op"
		[ -z "$root" ] || defines="$defines -D${upper}_ROOT=${rest#*:}"
		files="$files $op.c"
	done
	# shellcheck disable=SC2086
	mpicc -std=c99 -O1 -Wall -Wextra -Wshadow -Wmissing-prototypes -pedantic -Werror -c $files ||
		fail "not clean C: $*"
	# shellcheck disable=SC2086
	mpicc -std=c99 -O1 -Wall -Wextra $defines "$here/mpi_check.c" $files -o check ||
		fail "mpi_check.c does not compile"
}

# run ARGUMENT...: ./check on all hosts of ./net.
run() {
	hosts=$(sed -n 's/^host //p' net | paste -sd, -)
	collnet lab shell --topology "$PWD/net" --ip --no-daemons --timeout 400 -- \
		./lab-mpirun "$hosts" "$(grep -c '^host' net)" \
		"$PWD/check" "$@" >out 2>&1 </dev/null || {
		status=$?
		cat out
		fail "status $status"
	}
	has '^right: [1-9][0-9]* calls' out
	grep '^right' out
}

began=$(date +%s)
chain 2 3 >net
compile allgather:lr3 bcast:smp:4 scatter:furthest:2 gather:nearest:5 barrier:dissemination
run 1 0 1 7 3000
compile alltoall:shuffle allgather:ring bcast:binary barrier:doubling
run 2 0 1 7 3000
echo "ok: six hosts, $(($(date +%s) - began)) s"

if is_long; then
	began=$(date +%s)
	chain 4 8 >net
	compile alltoall:aapc
	run 3 1 300
	echo "ok: topology (c), $(($(date +%s) - began)) s"
fi

# A wrong schedule is seen: the routine for one network's order of phases, with two blocks swapped.
chain 2 3 >net
compile alltoall:aapc
sed -i '0,/{SEND,1,1,1}/s//{SEND,1,2,1}/' alltoall.c
mpicc -std=c99 -DALLTOALL=routine_alltoall "$here/mpi_check.c" alltoall.c -o check || fail "compile"
collnet lab shell --topology "$PWD/net" --ip --no-daemons --timeout 400 -- lab-on n0 \
	mpirun --oversubscribe -np 6 "$PWD/check" 1 100 >out 2>&1 </dev/null &&
	fail "a wrong block is not seen"
has 'wrong: rank 1, alltoall' out
