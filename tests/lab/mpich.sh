# SPDX-License-Identifier: BSD-2-Clause
# Programs of MPICH on collnet, unchanged: with libcollnet_mpich.so preloaded a program has the same
# results, in C and in Fortran, and the node's counters show that its data went through collnet.
# timeout: 900
. "$(dirname "$0")/lib.sh"
need_lab
need mpicc.mpich

library=$(dirname "$(command -v collnet)")/../lib/libcollnet_mpich.so
[ -e "$library" ] || skip "the library for MPICH is not built"
# A sanitizer in a preloaded library would have to come before it.
[ "$VARIANT" = plain ] || { echo "ok: nothing to do in this variant" && exit 0; }
library=$(cd "$(dirname "$library")" && pwd)/libcollnet_mpich.so
here=$(cd "$(dirname "$0")" && pwd)
seed=${SEED:-1}
echo "seed $seed"

mpicc.mpich -std=c99 -O1 -Wall -Wextra "$here/mpi_program.c" -o program || fail "mpi_program.c"
mpich
cat >with-collnet <<EOF
#!/bin/sh
export LD_PRELOAD="$library" COLLNET_MPI_VERBOSE=2 COLLNET_MPI_SELECT="\${SELECT:-always}"
exec ./lab-mpiexec "\$@"
EOF
chmod +x with-collnet
mpi_commands

hosts=h0:2,h1:2,h2:2,h3:2
mpi "with collnet" --shape 2x2 -- ./count ./with-collnet $hosts 8 ./program "$seed" 150 1
has '^right: 150 calls' out
has 'MPI_COMM_WORLD of 8 ranks: served by collnet on 4 nodes' out
has '^data_sent *[1-9][0-9][0-9]' out
lacks 'not served' out
echo "ok: 8 ranks on 4 hosts, every byte right, $(grep '^data_sent' out | awk '{ print $2 }') frames"

# Its own MPI_Reduce() of MPICH 4.0.2 crashes with MPI_IN_PLACE at some roots: calls without that.
mpi "without it" --shape 2x2 -- ./count ./lab-mpiexec $hosts 8 ./program 1 40
has '^right: 40 calls' out
has '^data_sent *0 ' out
echo "ok: the same program without collnet"

if command -v mpifort.mpich >/dev/null; then
	mpifort.mpich -w -fallow-argument-mismatch "$here/mpi_program.f" -o fortran || fail "mpi_program.f"
	mpi Fortran --shape 2x2 -- ./count ./with-collnet $hosts 8 ./fortran
	has 'right: fortran' out
	has 'MPI_COMM_WORLD of 8 ranks: served by collnet on 4 nodes' out
	has '^data_sent *[1-9][0-9]' out
	# Of its 100 barriers at least a frame each.
	mpifort.mpich "$here/mpi_program.f90" -o f08 || fail "mpi_program.f90"
	mpi "Fortran's mpi_f08" --shape 2 -- ./count ./with-collnet h0:1,h1:1 2 ./f08
	has 'right: f08' out
	has 'of 2 ranks: served by collnet on 2 nodes' out
	has '^data_sent *[1-9][0-9][0-9]' out
	echo "ok: Fortran"
fi

mpicc.mpich -std=gnu99 -O1 -Wall -Wextra "$here/mpi_cases.c" -o cases -pthread || fail "mpi_cases.c"
mpi "a rendezvous" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./cases rendezvous
has '^right: rendezvous' out
has 'served by collnet on 2 nodes' out
echo "ok: MPI's messages move while a rank waits in a collective"

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

mpi "communicators" --shape 2 -- ./with-collnet h0:2,h1:2 4 ./cases communicators
has '^right: communicators' out
mpi "threads" --shape 2 -- ./with-collnet h0:2,h1:2 4 ./cases threads
has '^right: threads' out
[ "$(grep -c 'without a name of 4 ranks: served' out)" = 6 ] || { cat out; fail "not all served"; }
mpi "mixed" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./cases mixed
has '^right: mixed' out
echo "ok: MPI_THREAD_MULTIPLE"

cat >loader.c <<'EOF'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *module = dlopen("./module.so", RTLD_NOW | RTLD_LOCAL);
	int (*run)(int, char **) = module != NULL ? (int (*)(int, char **))dlsym(module, "run") : NULL;

	if (run == NULL) {
		fprintf(stderr, "%s\n", dlerror());
	}
	return run != NULL ? run(argc, argv) : 1;
}
EOF
mpicc.mpich -std=c99 -O1 -fPIC -shared -Dmain=run "$here/mpi_program.c" -o module.so || fail "module.so"
gcc loader.c -o loader -ldl || fail "loader.c"
mpi "a module" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./loader "$seed" 30
has '^right: 30 calls' out
has 'MPI_COMM_WORLD of 2 ranks: served by collnet on 2 nodes' out
if command -v mpifort.mpich >/dev/null; then
	for init in 'Init()' 'Init_thread(MPI_THREAD_SINGLE, provided)'; do
		sed "s/call MPI_Init.*/call MPI_$init/" "$here/mpi_program.f90" >module.f90
		mpifort.mpich -fPIC -shared module.f90 -Wl,--defsym,run=main -o module.so || fail "a module in Fortran"
		mpi "a module that uses mpi_f08" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./loader
		has 'right: f08' out
		has 'of 2 ranks: served by collnet on 2 nodes' out
	done
fi
cat >nobody.c <<'EOF'
int MPI_Init(int *argc, char ***argv);
int main(int argc, char **argv)
{
	return MPI_Init(&argc, &argv);
}
EOF
gcc nobody.c -o nobody "$library" -Wl,--allow-shlib-undefined && ./nobody >out 2>&1 && fail "MPI_Init() without MPICH"
has 'no library of MPICH is found for MPI_Init' out
echo "ok: a program that loads MPICH with a module, as Python does"

export LD_BIND_NOW=1
mpi "LD_BIND_NOW" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./program "$seed" 30
has '^right: 30 calls' out
has 'MPI_COMM_WORLD of 2 ranks: served by collnet on 2 nodes' out
LD_PRELOAD=$library ./loader >out 2>&1 && { cat out; fail "functions that are not bound are called"; }
has 'LD_BIND_NOW is set' out
unset LD_BIND_NOW
! nm -D --undefined-only "$library" | grep -E ' U P?MPI_' || fail "references to MPICH that are not weak"
echo "ok: LD_BIND_NOW"

mpicc.mpich -std=c99 -O1 -Wall -Wextra "$here/mpi_arguments.c" -o arguments || fail "mpi_arguments.c"
mpi "wrong arguments" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./arguments
has '^right: arguments' out
echo "ok: wrong arguments"

mpicc.mpich -std=gnu99 -O1 -Wall -Wextra "$here/mpi_teams.c" -o teams -rdynamic -ldl || fail "mpi_teams.c"
for case in attributes signals descriptors; do
	mpi "$case" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./teams $case
	has "^right: $case" out
done
has 'not served: a rank has too many teams' out
mpi finalize --shape 2 -- ./with-collnet h0:1,h1:1 2 ./teams finalize
has '^right: in MPI_Finalize' out
echo "ok: functions of attributes, also in MPI_Finalize(); contexts leave descriptors to the program"

mpi_leaving

mpicc.mpich -std=c99 -O1 -Wall -Wextra "$here/mpi_large.c" -o large || fail "mpi_large.c"
mpi "large counts" --shape 2 -- ./count ./with-collnet h0:2,h1:2 4 ./large
has '^right: large' out
has '^data_sent *[1-9][0-9]' out
echo "ok: large counts, $(grep '^data_sent' out | awk '{ print $2 }') frames"

mpicc.mpich -std=c99 -O1 -Wall -Wextra "$here/mpi_memory.c" -o memory || fail "mpi_memory.c"
mpi memory --shape 2 --rate none -- ./with-collnet h0:1,h1:1 2 ./memory
mpi_memory

# What of neighbourhoods went through collnet would be 20,000 frames.
mpicc.mpich -std=c99 -O1 -Wall -Wextra "$here/mpi_neighbours.c" -o neighbours || fail "mpi_neighbours.c"
mpi neighbourhoods --shape 3 --rate none -- ./count ./with-collnet h0:2,h1:2,h2:2 6 ./neighbours
mpi_neighbours

# A tool sees what MPICH performs, here one of two allreduces.
cat >tool.c <<'EOF'
#include <mpi.h>
#include <stdio.h>
static int initialized, reduced, freed;
int MPI_Init(int *argc, char ***argv)
{
	initialized++;
	return PMPI_Init(argc, argv);
}
int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	reduced++;
	return PMPI_Allreduce(in, out, n, type, op, comm);
}
int MPI_Comm_free(MPI_Comm *comm)
{
	freed++;
	return PMPI_Comm_free(comm);
}
int MPI_Finalize(void)
{
	printf("tool: %d of MPI_Init, %d of MPI_Allreduce, %d of MPI_Comm_free\n", initialized, reduced, freed);
	return PMPI_Finalize();
}
EOF
mpicc.mpich -O1 -fPIC -shared tool.c -o libtool.so || fail "libtool.so"
mpicc.mpich -std=gnu99 -O1 -w "$here/mpi_cases.c" -o profiled -pthread -L. -Wl,--no-as-needed -ltool -Wl,-rpath,"$PWD" ||
	fail "a program with a tool"
export SELECT=measured
mpi "a tool" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./profiled sums
has 'served by collnet on 2 nodes' out
[ "$(grep -c '^tool: 1 of MPI_Init, 100 of MPI_Allreduce, 0 of' out)" = 2 ] || { cat out; fail "a tool's calls"; }
mpi "communicators of a tool" --shape 2 -- ./with-collnet h0:2,h1:2 4 ./profiled communicators
[ "$(grep -c '^tool: 1 of MPI_Init, .* 6 of MPI_Comm_free' out)" = 4 ] || { cat out; fail "a tool's calls"; }
echo "ok: a tool of MPI's profiling interface"

export SELECT=alwyas
mpi "a choice that does not exist" --shape 2 -- ./with-collnet h0:1,h1:1 2 ./cases rendezvous
has '^right: rendezvous' out
[ "$(grep "alwyas" out)" = "collnet: COLLNET_MPI_SELECT is 'alwyas': expected measured or always; measured is used" ] ||
	{ cat out; fail "not one line about a choice that does not exist"; }

# The lab's MPICH uses shared memory between hosts, and collnet a slow link, so that two long calls of each decide,
# and of columns those of the rows.
if is_long; then
	export SELECT=measured
	mpi "a choice" --shape 2 --rate 5mbit -- ./with-collnet h0:1,h1:1 2 ./cases repetition 15
	has '^right: repetition' out
	has 'MPI_Alltoall of 131072 bytes and more: collnet .* us (.*), MPI .* us: by MPI' out
	[ "$(grep 'MPI_Allreduce' out | sed 's/.*MPI_Allreduce: //')" = 'floating-point or user-defined, of up to 1024 bytes: by MPI' ] ||
		{ cat out; fail "not one line about sums, without times"; }
	mpi "choices of rows" --shape 4 --rate 5mbit -- ./with-collnet h0:1,h1:1,h2:1,h3:1 4 ./cases rows 15
	has '^right: rows' out
	for why in 'collnet .* us (.*), MPI .* us' 'as in a communicator alike'; do
		[ "$(grep -c "MPI_Alltoall of 131072 bytes and more: $why: by MPI" out)" = 2 ] || { cat out; fail "not twice: $why"; }
	done
	mpi_halves ./with-collnet
	echo "ok: the faster one performs an operation, and always the same one the sums of floating-point numbers"
fi
unset SELECT

mpi_error error Allreduce
mpi_restarted

mpi "one node" --shape 2 -- ./with-collnet h0:4 4 ./program 1 30
has '^right: 30 calls' out
has 'not served: all ranks run on one node' out
echo "ok: ranks of one node are left to MPICH"

if command -v mpicc.openmpi >/dev/null; then
	mpicc.openmpi "$here/mpi_program.c" -o other || fail "mpicc.openmpi"
	LD_PRELOAD=$library ./other >out 2>&1 && { cat out; fail "a program of Open MPI runs"; }
	has 'is for programs of MPICH' out
	echo "ok: programs of Open MPI are refused"
fi
