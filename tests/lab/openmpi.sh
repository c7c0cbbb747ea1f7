# SPDX-License-Identifier: BSD-2-Clause
# Programs of Open MPI on collnet, unchanged: a program that knows nothing of collnet runs with the
# component, with the same results, and the node's counters show that its data went through collnet.
# Where collnet cannot serve, the program runs as without it, and one line says why.
# timeout: 900
. "$(dirname "$0")/lib.sh"
need_lab
need mpicc mpirun

component=$(dirname "$(command -v collnet)")/../lib/collnet/openmpi
[ -e "$component/mca_coll_collnet.so" ] || skip "the component for Open MPI is not built"
component=$(cd "$component" && pwd)
# A sanitizer in a component is too late for the process that loads it.
[ "$VARIANT" = plain ] || { echo "ok: nothing to do in this variant" && exit 0; }
here=$(cd "$(dirname "$0")" && pwd)
seed=${SEED:-1}
echo "seed $seed"

mpicc -std=c99 -O1 -Wall -Wextra "$here/mpi_program.c" -o program || fail "mpi_program.c"
open_mpi
# Open MPI 5 passes a parameter of --mca to PMIx as well, which then looks for its own components there.
mca=--mca
mpirun --version | grep -q 'Open MPI) 4' || mca=--omca
cat >with-collnet <<EOF
#!/bin/sh
hosts=\$1 ranks=\$2
shift 2
exec ./lab-mpirun "\$hosts" "\$ranks" $mca mca_base_component_path "$component:SYS_DEFAULT" \\
	--mca coll_collnet_priority 90 --mca coll_collnet_verbose 2 \\
	--mca coll_collnet_select \${SELECT:-always} "\$@"
EOF
chmod +x with-collnet
mpi_commands

hosts=h0:2,h1:2,h2:2,h3:2
mpi "with the component" --shape 2x2 -- ./count ./with-collnet $hosts 8 ./program "$seed" 150 1
has '^right: 150 calls' out
has 'MPI_COMM_WORLD of 8 ranks: served by collnet on 4 nodes' out
has '^data_sent *[1-9][0-9][0-9]' out
lacks 'not served' out
echo "ok: 8 ranks on 4 hosts, every byte right, $(grep '^data_sent' out | awk '{ print $2 }') frames"

mpi "without it" --shape 2x2 -- ./count ./lab-mpirun $hosts 8 ./program "$seed" 150
has '^right: 150 calls' out
has '^data_sent *0 ' out
echo "ok: the same program without the component"

mpi "one node" --shape 2 -- ./with-collnet h0:4 4 ./program "$seed" 30
has '^right: 30 calls' out
has 'not served: all ranks run on one node' out
echo "ok: ranks of one node are left to Open MPI"

mpi "no daemon" --shape 2 -- ./with-collnet h0:1,h1:1 2 \
	env COLLNET_SOCKET="$PWD/nobody" ./program "$seed" 30
has '^right: 30 calls' out
has 'not served: .*collnetd' out
echo "ok: without collnetd the program runs as before"

if command -v mpifort.openmpi >/dev/null; then
	mpifort.openmpi -w -fallow-argument-mismatch "$here/mpi_program.f" -o fortran || fail "mpi_program.f"
	mpi Fortran --shape 2x2 -- ./with-collnet $hosts 8 ./fortran
	has 'right: fortran' out
	has 'MPI_COMM_WORLD of 8 ranks: served by collnet on 4 nodes' out
	echo "ok: Fortran"
fi

mpicc -std=gnu99 -O1 -Wall -Wextra "$here/mpi_cases.c" -o cases -pthread || fail "mpi_cases.c"
mpi "a rendezvous" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./cases rendezvous
has '^right: rendezvous' out
mpi "aligned operands" --shape 2 -- ./count ./with-collnet h0:2,h1:2 4 ./cases operands
has '^right: operands' out
has '^data_sent *[1-9][0-9]' out
echo "ok: operands of a function are aligned"

mpi "blocks between others" --shape 2 -- ./count ./with-collnet h0:2,h1:2 4 ./cases between
has '^right: between' out
has '^data_sent *[1-9][0-9]' out
echo "ok: blocks that are sent lie between those that are received"

mpi "blocks without elements" --shape 2 -- ./count ./with-collnet h0:2,h1:2 4 ./cases unused
has '^right: unused' out
has '^data_sent *[1-9]' out

mpi "duplication" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./cases idup
has '^right: idup' out
echo "ok: MPI_Comm_idup beside other calls"

mpicc -std=gnu99 -O1 -Wall -Wextra "$here/mpi_inter.c" -o inter || fail "mpi_inter.c"
mpi "inter-communicators" --shape 2 -- ./with-collnet h0:2,h1:4 6 ./inter idup
has '^right: idup' out
mpi "spawned processes" --shape 2 -- ./with-collnet h0:2,h1:2 2 ./inter spawn h0,h1
has '^right: spawn' out
has 'of 4 ranks: served by collnet on 2 nodes' out
echo "ok: inter-communicators"

mpicc -std=c99 -O1 -Wall -Wextra "$here/mpi_arguments.c" -o arguments || fail "mpi_arguments.c"
mpi "wrong arguments" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./arguments
has '^right: arguments' out
echo "ok: wrong arguments"

mpi "communicators" --shape 2 -- ./with-collnet h0:2,h1:2 4 ./cases communicators
has '^right: communicators' out
mpi "threads" --shape 2 -- ./with-collnet h0:2,h1:2 4 ./cases threads
has '^right: threads' out
[ "$(grep -c 'of 4 ranks: served' out)" = 6 ] || { cat out; fail "not all served"; }
mpi "mixed" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./cases mixed
has '^right: mixed' out
mpi "threads in direct mode" --shape 2 --no-daemons -- ./with-collnet h0:1,h1:1 2 \
	env COLLNET_MODE=direct ./cases threads
has '^right: threads' out
has 'of 2 ranks: not served: with MPI_THREAD_MULTIPLE' out
lacks 'is used by' out
echo "ok: MPI_THREAD_MULTIPLE"

mpicc -std=c99 -O1 -Wall -Wextra -include "$here/mpi_nonblocking.h" "$here/mpi_program.c" -o nonblocking ||
	fail "mpi_program.c"
mpi "non-blocking" --shape 2x2 -- ./with-collnet $hosts 8 ./nonblocking "$seed" 150 1
has '^right: 150 calls' out
# 360 frames of MPI_Ialltoall(). Only communicators with non-blocking calls need a team of their own.
mpi "non-blocking cases" --shape 2 -- ./count ./with-collnet h0:2,h1:2 4 ./cases nonblocking
has '^right: nonblocking' out
lacks 'not served' out
[ "$(grep -c ': a team of its own' out)" = 5 ] || { cat out; fail "not five teams of a communicator's own"; }
has '^data_sent *[1-9]*[4-9][0-9][0-9] ' out
echo "ok: non-blocking operations, $(grep '^data_sent' out | awk '{ print $2 }') frames"
mpi "outstanding" --shape 3 -- ./with-collnet h0:1,h1:1,h2:1 3 ./cases outstanding
has '^right: outstanding' out
[ "$(grep -c ': a team of its own' out)" = 20 ] || { cat out; fail "not a team for each of 20 communicators"; }
mpi "a root that is ahead" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./cases ahead
has '^right: ahead' out
echo "ok: more non-blocking operations than collnet has at once, in any order"

# Two, unless a rank makes a duplicate before another one has freed the last one.
mpi "recurring communicators" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./cases recurring
has '^right: recurring' out
has '^teams: [2-4]$' out
# Each rank frees three while it has three others.
mpicc -std=gnu99 -O1 -Wall -Wextra "$here/mpi_teams.c" -o teams -rdynamic -ldl || fail "mpi_teams.c"
for case in orders persistent; do
	mpi "teams: $case" --shape 3 --rate none -- ./with-collnet h0:1,h1:1,h2:1 3 ./teams $case
	has "^right: $case" out
	has '^teams: [1-9]$' out
done
mpi "teams: buffers" --shape 3 --rate none -- ./with-collnet h0:1,h1:1,h2:1 3 ./teams buffers
has '^right: buffers' out
[ "$(grep -c 'of 3 ranks: served' out)" = 7 ] || { cat out; fail "not all served"; }
mpi "teams: first" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./teams first
has '^right: first' out
has '^teams: 3$' out
echo "ok: teams that ranks free and take in orders of their own, or keep"
mpi descriptors --shape 2 -- ./with-collnet h0:1,h1:1 2 ./teams descriptors
has '^right: descriptors' out
has 'not served: a rank has too many teams' out
echo "ok: contexts of communicators leave descriptors to the program"
mpi finalize --shape 2 -- ./with-collnet h0:1,h1:1 2 ./teams finalize
has '^right: in MPI_Finalize' out
echo "ok: a function of an attribute in MPI_Finalize()"
mpi_leaving
mpi signals --shape 2 -- ./with-collnet h0:1,h1:1 2 ./teams signals
has '^right: signals' out
if is_long; then # 1,100 communicators, each formed by three ranks
	mpi "more communicators than teams" --shape 3 --rate none -- ./with-collnet h0:1,h1:1,h2:1 3 ./cases limit
	has '^right: limit' out
	has 'this context has 1024 teams already' out
	has 'not served: a rank has too many teams' out
	echo "ok: communicators beyond the teams of a process are left to Open MPI"
fi

# The second run shows that the program is right. Of 57 operations, 7 are initialized twice.
mpicc -std=c99 -O1 -Wall -Wextra "$here/mpi_persistent.c" -o persistent || fail "mpi_persistent.c"
cat >both <<'EOF'
#!/bin/sh
./count ./with-collnet h0:2,h1:1,h2:1 4 ./persistent 1 && exec ./lab-mpirun h0:1,h1:1 2 ./persistent
EOF
chmod +x both
mpi persistent --shape 3 -- ./both
[ "$(grep -c '^right: 57 operations' out)" = 2 ] || { cat out; fail "not right twice"; }
[ "$(grep -c ': persistent, by collnet' out)" = 64 ] || { cat out; fail "not all by collnet"; }
has '^data_sent *[1-9][0-9][0-9]' out
echo "ok: persistent operations, $(grep '^data_sent' out | awk '{ print $2 }') frames"
mpi "pairs with holes" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./cases long-pairs
has '^right: long-pairs' out
has 'MPI_Barrier: persistent, by collnet' out
lacks 'are more than' out

mpicc -std=c99 -O1 -Wall -Wextra "$here/mpi_memory.c" -o memory || fail "mpi_memory.c"
mpi memory --shape 2 --rate none -- ./with-collnet h0:1,h1:1 2 ./memory
mpi_memory

# What of neighbourhoods went through collnet would be 20,000 frames.
mpicc -std=c99 -O1 -Wall -Wextra "$here/mpi_neighbours.c" -o neighbours || fail "mpi_neighbours.c"
mpi neighbourhoods --shape 3 --rate none -- ./count ./with-collnet h0:2,h1:2,h2:2 6 ./neighbours
mpi_neighbours

# Which one is faster depends on the machine's load; the choice must follow from the times.
follows() {
	sed -n 's/.*: collnet \([0-9.]*\) us (faster in \(.\) of \(.\)\(.*\)), MPI \([0-9.]*\) us: by \(.*\)/\1 \5 \2 \3 \6 \4/p' out |
		awk '{ n++; mpi = $5 == "MPI" }
			NF > 5 { often = $3 >= $4 - ($4 == 5); bad += mpi ? often && 2.01 * $1 < $2 : !often || 1.99 * $1 > $2 }
			NF == 5 { bad += mpi ? $1 < 1.04 * $2 : $1 > 1.06 * $2 }
			END { exit !n || bad }' ||
		{ cat out; fail "a choice does not follow from the times"; }
}
export SELECT=alwyas
mpi "a choice that does not exist" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./cases rendezvous
has '^right: rendezvous' out
[ "$(grep "alwyas" out)" = "collnet: coll_collnet_select is 'alwyas': expected measured or always; measured is used" ] ||
	{ cat out; fail "not one line about a choice that does not exist"; }
export SELECT=measured
mpi "a choice" --shape 2 --rate none -- ./with-collnet h0:1,h1:1 2 ./cases repetition
has '^right: repetition' out
has 'MPI_Alltoall of 131072 bytes and more: collnet .* us (.*), MPI .* us: by' out
# The link has no bucket here, and its interfaces say that they have 10 Gbit/s.
[ "$(grep 'MPI_Allreduce' out | sed 's/.*MPI_Allreduce: //')" = 'floating-point or user-defined, of up to 62500 bytes: by MPI' ] ||
	{ cat out; fail "not one line about sums, without times"; }
lacks 'MPI_Bcast' out # small, and not called often enough
follows
# All ranks run on one processor. On a machine so busy that calls take 20 ms or longer, links are the limit.
if is_long && [ -r /proc/thread-self/schedstat ]; then
	cat >on-one-processor <<-'EOF'
		#!/bin/sh
		exec taskset -c "$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)" "$@"
	EOF
	chmod +x on-one-processor
	mpi "a busy processor" --shape 6 --rate none -- ./on-one-processor ./with-collnet \
		h0:1,h1:1,h2:1,h3:1,h4:1,h5:1 6 ./cases repetition
	has '^right: repetition' out
	sed -n 's/.*MPI_Alltoall of 131072 .*(\(.*\)), MPI \([0-9.]*\) us: by.*/\2 \1/p' out |
		awk '{ n++; bad += !/ranks wait for processors/ && $1 < 20000 } END { exit !n || bad }' ||
		{ cat out; fail "ranks do not wait for a processor"; }
	follows
fi
# Of each sum of 200 numbers two frames, and of a single number's none.
mpi "sums that no measurement decides" --shape 2 -- ./count ./with-collnet h0:1,h1:1 2 ./cases sums
has '^right: sums' out
[ "$(grep -c 'MPI_Allreduce: floating-point or user-defined, of up to 1024 bytes: by MPI' out)" = 1 ] ||
	{ cat out; fail "not said once"; }
frames=$(sed -n 's/^data_sent *\([0-9]*\).*/\1/p' out)
[ "$frames" -ge 200 ] && [ "$frames" -lt 300 ] || { cat out; fail "not the long sums alone by collnet"; }
# Short calls that are not tried are Open MPI's where each rank has a node, else collnet's.
mpi "few short calls" --shape 2 -- ./count ./with-collnet h0:1,h1:1 2 ./cases few
has '^right: few' out
frames=$(sed -n 's/^data_sent *\([0-9]*\).*/\1/p' out)
[ "$frames" -lt 20 ] || { cat out; fail "collnet performs short calls: $frames frames"; }
mpi "few short calls of ranks that share nodes" --shape 2 -- ./count ./with-collnet h0:2,h1:2 4 ./cases few
has '^right: few' out
frames=$(sed -n 's/^data_sent *\([0-9]*\).*/\1/p' out)
[ "$frames" -ge 64 ] || { cat out; fail "not the first 32 of each by collnet: $frames frames"; }
if is_long; then
	mpi_halves ./with-collnet
fi
mpi "sums of ranks that share nodes" --shape 2 -- ./with-collnet h0:2,h1:2 4 ./cases sums
has '^right: sums' out
lacks 'by MPI' out
mpi "choices by threads" --shape 2 -- ./with-collnet h0:2,h1:2 4 ./cases threads
has '^right: threads' out
has 'MPI_Bcast of 4 bytes and more: collnet .* us (.*), MPI .* us: by' out
follows
# Open MPI's own reductions consist of other operations of the communicator here.
mpi "reductions of reductions" --shape 2 --rate none -- ./with-collnet h0:1,h1:1 2 --mca coll ^tuned ./cases reductions
has '^right: reductions' out
has 'MPI_Reduce of 16 bytes and more: collnet .* us (.*), MPI .* us: by' out
follows
# With times that are given, in programs that make calls of several lengths.
mpicc -std=gnu99 -O1 -Wall -Wextra -I"$here/../.." -I"$here/../../lib/include" "$here/mpi_select.c" -o choices ||
	fail "mpi_select.c"
./choices >out || { cat out; fail "a choice"; }
has '^right: choices' out
# Long exchanges take 52 ms or longer, short ones 1 ms: trials that compare them differ by far more than long ones.
if is_long; then
	mpi "long and short calls in turns" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./cases in-turns
	has '^right: in-turns' out
	sed -n 's/.*MPI_Alltoallv: collnet \([0-9.]*\) us (.*), MPI \([0-9.]*\) us: by.*/\1 \2/p' out |
		awk '{ n++; bad += $1 < 50000 || $2 < 50000 } END { exit n != 1 || bad }' ||
		{ cat out; fail "a long call is compared with a short one"; }
fi
# One frame at a time, so that collnet is the slower one.
mpi "a persistent operation's choice" --shape 2 --rate none --daemon-arg=--window=1 -- \
	./with-collnet h0:1,h1:1 2 ./cases persistent-choice
has '^right: persistent-choice' out
has 'MPI_Alltoall of 131072 bytes and more: collnet .* us (.*), MPI .* us: by MPI' out
lacks 'persistent, by collnet' out
unset SELECT
echo "ok: the faster one performs an operation, and always the same one the sums of floating-point numbers"

mpi_error error Allreduce
mpi_error nonblocking-error Allreduce Alltoall Reduce_scatter
mpi_restarted
# Rank 1's daemon takes some of the calls.
cat >little-memory <<'EOF'
#!/bin/sh
pid=$(cat "$COLLNET_LAB_DIR/h1.daemon.pid")
kill "$pid" && timeout 20 tail --pid="$pid" -s 0.02 -f /dev/null
sed -i "s,--interface,--max-memory 64k --interface," "$COLLNET_LAB_DIR/h1.daemon.cmd"
lab-daemon h1 && "$@"
EOF
chmod +x little-memory
mpi "refused calls" --shape 3 -- ./little-memory ./with-collnet h0:1,h1:1,h2:1 3 ./cases refused
has 'right: refused' out # many lines, which mpirun divides
has 'rank 1 of 3: the schedules of this user' out
has 'rank 0 of 3: rank 1 on node h1 left the team' out
echo "ok: calls that collnetd refuses on one rank are errors on all"

# The installed parameters: one option, and mpirun does not wait for ranks that are to be killed.
if [ "$mca" = --mca ]; then
	# This is a copy of the installation, perhaps.
	sed "s|= .*/openmpi:SYS|= $component:SYS|" "${component%/*}/openmpi.conf" >openmpi.conf
	has "^mca_base_component_path = $component:SYS_DEFAULT" openmpi.conf
	cat >tuned <<-EOF
		#!/bin/sh
		hosts=\$1 ranks=\$2
		shift 2
		exec ./lab-mpirun "\$hosts" "\$ranks" --tune "$PWD/openmpi.conf" \\
			--mca coll_collnet_verbose 1 --mca coll_collnet_select always "\$@"
	EOF
	chmod +x tuned
	mpi "openmpi.conf" --shape 2x2 -- ./count ./tuned $hosts 8 ./program "$seed" 150
	has '^right: 150 calls' out
	has 'MPI_COMM_WORLD of 8 ranks: served by collnet on 4 nodes' out
	collnet lab shell --shape 3 --ip --timeout 60 -- \
		./kill-a-daemon ./tuned h0:1,h1:1,h2:1 3 ./cases fatal >out 2>&1 </dev/null &&
		fail "a program whose daemon was killed succeeds"
	has '^collnet: MPI_Allreduce, rank . of 3: .*node h1' out
	lacks '^right' out
	echo "ok: openmpi.conf"
fi
