# SPDX-License-Identifier: BSD-2-Clause
# Launchers that are installed here: two jobs of theirs at once, on the same two hosts, are two
# jobs; and an MPI program's own start is not disturbed by the question for the job's name.
# timeout: 300
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab

# A rank: it waits until all four of both jobs are there, so that the jobs are at once; what the
# ranks call their job, rank 0 prints.
cat >rank <<'EOS'
: >"$HERE/here.$1.$(hostname)"
while [ "$(ls "$HERE" | grep -c '^here\.')" -lt 4 ]; do sleep 0.05; done
exec collnet bench alltoall --sizes 1k --iterations 20 --verify --json
EOS
# twice COMMAND...: the same twice at once. Each has a TMPDIR of its own: mpirun fails when another
# one makes the directory of its sessions at the same moment.
cat >twice <<'EOS'
rm -rf here.* tmp.a tmp.b
mkdir tmp.a tmp.b
TMPDIR=$HERE/tmp.a "$@" sh "$HERE/rank" a >a.out 2>a.err </dev/null &
one=$!
TMPDIR=$HERE/tmp.b "$@" sh "$HERE/rank" b >b.out 2>b.err </dev/null
b=$?
wait $one
echo "status $? $b"
EOS
export HERE="$PWD"

# twice NAME COMMAND...: two jobs at once, each of a rank on each of two hosts.
twice() {
	name=$1
	shift
	collnet lab shell --shape 2 --rate 20mbit --ip --timeout 200 "$patient" -- lab-on h0 \
		sh "$PWD/twice" "$@" >out 2>&1 </dev/null
	grep -q '^status 0 0$' out || {
		cat out a.out a.err b.out b.err
		fail "$name: two jobs at once"
	}
	for job in a b; do
		[ "$(json ranks $job.out)/$(json nodes $job.out)/$(json verified $job.out)" = 2/2/true ] || {
			cat $job.out
			fail "$name: job $job"
		}
	done
	ran="$ran $name"
	echo "ok: $name"
}
ran=

hydra=$(command -v mpiexec.hydra || command -v mpiexec.mpich)
if [ -n "$hydra" ]; then
	twice hydra "$hydra" -hosts h0,h1 -n 2 -ppn 1
	# A launcher that was called in another's way starts one rank; nobody asked for one.
	"$hydra" -n 1 collnet bench alltoall >out 2>&1 </dev/null && fail "one rank measured"
	has "PMI_SIZE is 1.*mpiexec -n RANKS -ppn 1" out
	"$hydra" -pmi-port -n 1 collnet bench alltoall >out 2>&1 </dev/null && fail "no rank measured"
	has "without -pmi-port" out
fi
# A program that asks for its place before MPI_Init(), and MPI works; two jobs have two names.
if [ -n "$hydra" ] && command -v mpicc.mpich >/dev/null; then
	cat >both.c <<'EOS'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <collnet/collnet.h>

int main(int argc, char **argv)
{
	struct collnet_team_options before, after;
	char job[64], first[64];
	int rank, sum, ok, all;

	collnet_team_options_init(&before);
	snprintf(job, sizeof(job), "%s", before.job);
	MPI_Init(&argc, &argv);
	collnet_team_options_init(&after);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	rank++;
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	memcpy(first, job, sizeof(first));
	MPI_Bcast(first, sizeof(first), MPI_CHAR, 0, MPI_COMM_WORLD);
	ok = sum == 3 && (int)before.rank == rank - 1 && after.ranks == 2 &&
	     strcmp(job, after.job) == 0 && strcmp(job, first) == 0;
	MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (rank == 1 && all) {
		printf("%s\n", job);
	}
	MPI_Finalize();
	return 0;
}
EOS
	prefix=$(dirname "$(command -v collnet)")/..
	mpicc.mpich both.c -I"$prefix/include" -L"$prefix/lib" -lcollnet -o both ||
		fail "mpicc.mpich"
	for i in 1 2; do
		UCX_TLS=self,sm "$hydra" -n 2 ./both >job.$i 2>err </dev/null || { cat err; fail "MPI"; }
		grep -q '^pmi-kvs_' job.$i || {
			cat job.$i err
			fail "the ranks of an MPI job do not agree on its name"
		}
	done
	cmp -s job.1 job.2 && fail "two MPI jobs have the same name: $(cat job.1)"
	echo "ok: with MPI_Init(), $(sort -u job.1 job.2 | xargs)"
fi
mpirun=$(command -v mpirun.openmpi || command -v orterun)
if [ -n "$mpirun" ]; then
	twice "Open MPI" "$mpirun" --host h0,h1 -N 1
fi
[ -n "$ran" ] || skip "neither MPICH's hydra nor Open MPI is installed"
[ -n "$hydra" ] || skip "MPICH's hydra is not installed (the rest is right:$ran)"
