# SPDX-License-Identifier: BSD-2-Clause
# collnet compare: every cell is there for every library that is installed, ratios are what the
# columns say, a wrong byte and a barrier that does not hold are seen, and what cannot be is said in
# one line. No time is judged.
# timeout: 900
. "$(dirname "$0")/lib.sh"
need_lab

# compiler SIGN NAME...: the first of these that is installed and whose mpirun prints the sign.
compiler() {
	sign=$1
	shift
	for name; do
		c=$(command -v "$name") || continue
		"$(dirname "$c")/mpirun${name#mpicc}" --version 2>/dev/null | grep -q "$sign" || continue
		echo "$c"
		return
	done
}
openmpi=$(compiler 'Open MPI' mpicc.openmpi mpicc)
mpich=$(compiler HYDRA mpicc.mpich mpicc)
[ -n "$openmpi$mpich" ] || skip "neither Open MPI nor MPICH is installed with its compiler"

# compare STATUS ARGUMENT...: output in ./out and ./err.
compare() {
	expected=$1
	shift
	what=$*
	collnet compare --timeout 200 "$@" >out 2>err </dev/null
	status=$?
	[ $status -eq "$expected" ] || {
		cat out err
		fail "status $status instead of $expected: $what"
	}
}

# ---- the loop, started by hand where there is no daemon

COLLNET_SOCKET=$PWD/none collnet compare loop >out 2>err </dev/null
status=$?
[ $status = 1 ] || fail "status $status of a loop without a daemon"
has '^collnet compare: no collnetd at ' err

# ---- all cells, and the ratios that follow from the rounds -----------------------------------

some="gather allreduce"
! is_long || some="$some alltoall bcast allgather scatter"
# shellcheck disable=SC2086
compare 0 $some barrier --shape 2 --ranks-per-node 2 --rate none --sizes 8,3001 --rounds 3 --iterations 4 --json
contenders=$((1 + (${#openmpi} > 0) * 2 + (${#mpich} > 0)))
cells=barrier/0
for op in $some; do
	cells="$cells $op/8 $op/3001"
done
for cell in $cells; do
	grep -q "^{\"op\": \"${cell%/*}\", \"bytes\": ${cell#*/}, \"ranks\": 4, \"nodes\": 2, " out || {
		cat out
		fail "no cell $cell"
	}
done
cells=$(echo $cells | wc -w)
[ "$(wc -l <out)" -eq $cells ] || fail "not $cells cells: $(cat out)"
[ "$(json verified out | sort | uniq -c | tr -s ' ')" = " $((cells * contenders)) true" ] || {
	cat out
	fail "not every cell of every contender was verified"
}
[ "$(json one_clock out | sort -u)" = true ] || fail "the hosts of a lab have one clock"
awk '
	function median(v, n,    i, k, x) {
		for (i = 2; i <= n; i++) {
			x = v[i]
			for (k = i - 1; k > 0 && v[k] > x; k--) {
				v[k + 1] = v[k]
			}
			v[k + 1] = x
		}
		return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
	}
	{
		n = split($0, part, "\"library\": ")
		best = 0
		for (i = 2; i <= n; i++) {
			match(part[i], /"time_us": [0-9.]*/)
			time = substr(part[i], RSTART + 11, RLENGTH - 11) + 0
			match(part[i], /"rounds_us": \[[^]]*/)
			count = split(substr(part[i], RSTART + 14, RLENGTH - 14), us, ", ")
			if (count != 3 || time <= 0) {
				print "three rounds with a time: " part[i]
				bad = 1
			}
			for (r = 1; r <= 3; r++) {
				v[r] = us[r]
				if (i == 2) {
					ours[r] = us[r]
				}
			}
			if (median(v, 3) != time) {
				print time " is not the median of " part[i]
				bad = 1
			}
			for (r = 1; r <= 3; r++) {
				quotient[r] = ours[r] / us[r]
			}
			times[i] = time
			ratios[i] = median(quotient, 3)
			if (i > 2 && (best == 0 || time < best)) {
				best = time
			}
		}
		match($0, /"ratio": [0-9.]*/)
		ratio = substr($0, RSTART + 9, RLENGTH - 9)
		# Times have three decimals, by which two can be the best one, and ratios four.
		near = 0
		for (i = 3; i <= n; i++) {
			wanted = ratios[i]
			near += times[i] < best + 0.0015 && ratio - wanted <= 0.002 * wanted + 0.0001 &&
				wanted - ratio <= 0.002 * wanted + 0.0001
		}
		if (!near) {
			print "another ratio than " ratio ": " $0
			bad = 1
		}
		if (ratio != 1.05 && (ratio > 1.05) != ($0 ~ /"slower": true/)) {
			print "slower: " $0
			bad = 1
		}
	}
	END { exit bad }' out || fail "ratios"
echo "ok: $cells cells, $contenders contenders, 2 hosts with 2 ranks"

# ---- the table, the file, the plot -----------------------------------------------------------

# A component with a sanitizer is too late for the process that loads it.
on_collnet=
component=$(dirname "$(command -v collnet)")/../lib/collnet/openmpi/mca_coll_collnet.so
[ "$VARIANT" != plain ] || [ -z "$openmpi" ] || [ ! -e "$component" ] || on_collnet=--mpi-on-collnet
export OMPI_MCA_coll_collnet_select=always COLLNET_MPI_SELECT=always # choices of all cells take long
some="reduce alltoallv"
! is_long || some="$some scan allgatherv gatherv reduce_scatter"
# shellcheck disable=SC2086
compare 0 alltoall $some barrier --shape 2x2 --sizes 8,1k --rounds 1 --iterations 3 $on_collnet \
	--csv "$PWD/ratios.csv" --plot "$PWD/ratios.gp"
unset OMPI_MCA_coll_collnet_select COLLNET_MPI_SELECT
cells=$((3 + 2 * $(echo $some | wc -w)))
[ "$(wc -l <out)" -eq $((cells + 5)) ] || { cat out; fail "three lines, $cells rows and two lines"; }
has '^4 ranks on 4 nodes; ' out
has '^alltoall *8 B ' out
has '^alltoall *1 KiB ' out
for op in $some; do
	has "^$op *8 B " out
	has "^$op *1 KiB " out
done
has '^barrier * - ' out
has "in [0-9]* of $cells cells; geometric mean" out
[ "$(wc -l <ratios.csv)" -eq $((cells + 1)) ] || fail "$(cat ratios.csv)"
awk -F, '
	NR == 1 {
		for (i = 1; i <= NF; i++) {
			column[$i] = i
		}
		names = NF
		next
	}
	{
		best = $column["openmpi_us"]
		if (best == "" || ($column["mpich_us"] != "" && $column["mpich_us"] + 0 < best + 0)) {
			best = $column["mpich_us"]
		}
		wanted = $column["collnet_us"] / best
		off = $column["ratio"] / wanted - 1
		if (NF != names || off > 1e-4 || off < -1e-4 || $column["verified"] != "true" ||
		    $column["ratio_min"] != $column["ratio"] ||
		    $column["ratio_fastest"] <= 0 || $column["collnet_min_us"] + 0 > $column["collnet_us"] + 0) {
			print "wrong: " $0 " (ratio " wanted ")"
			bad = 1
		}
	}
	END { exit bad }' ratios.csv || fail "ratios.csv"
if [ -n "$on_collnet" ]; then
	has 'Open MPI *yield *ratio *on collnet *ratio' out
	awk -F, -v lines=$((cells + 1)) '
		NR == 1 {
			for (i = 1; i <= NF; i++) {
				column[$i] = i
			}
			next
		}
		{
			wanted = $column["openmpi_on_collnet_us"] / $column["openmpi_us"]
			off = $column["openmpi_on_collnet_ratio"] / wanted - 1
			if (off > 1e-4 || off < -1e-4) {
				print "wrong: " $0 " (ratio " wanted ")"
				bad = 1
			}
		}
		END { exit bad || NR != lines }' ratios.csv || fail "Open MPI on collnet"
	# The rounds begin when the library has chosen, or it is said that it has not.
	compare 0 allreduce allgatherv --shape 2 --rate none --sizes 8 --rounds 1 --iterations 3 --mpi-on-collnet \
		--mpicc "$openmpi" --json
	[ $(($(json by out | grep -c -e collnet -e mpi) + $(grep -c 'choice between .* is not made$' err))) -eq 4 ] ||
		{ cat out err; fail "choices between collnet and Open MPI"; }
	echo "ok: Open MPI on collnet"
fi
has '^"alltoall 1 KiB" [0-9.?]* [0-9.?]*$' ratios.gp
if command -v gnuplot >/dev/null; then
	gnuplot ratios.gp >ratios.svg 2>err || { cat err; fail "gnuplot"; }
	has '</svg>' ratios.svg
	compare 0 barrier --shape 2 --rounds 1 --iterations 2 --mode direct --plot "$PWD/direct.svg"
	has '</svg>' direct.svg
fi
[ -z "$(find . -name 'collnet-compare.*')" ] || fail "a directory is left: $(find . -name 'coll*')"
echo "ok: table, CSV, plot"

# ---- errors are detected ----------------------------------------------------------------------

# library NAME REAL FILE: a compiler mpicc.NAME that adds FILE, and its mpirun.
library() {
	printf '#!/bin/sh\nexec %s "$@" %s\n' "$2" "${3:-}" >"mpicc.$1"
	base=${2##*/}
	printf '#!/bin/sh\nexec %s "$@"\n' "${2%/*}/mpirun${base#mpicc}" >"mpirun.$1"
	chmod +x "mpicc.$1" "mpirun.$1"
}
cat >spoil.c <<'EOS'
#include <mpi.h>
#include <unistd.h>

/* One byte of what rank 1 receives from rank 0. */
int MPI_Alltoall(const void *send, int n, MPI_Datatype t, void *recv, int m, MPI_Datatype u,
		 MPI_Comm comm)
{
	int rank, rc = PMPI_Alltoall(send, n, t, recv, m, u, comm);

	MPI_Comm_rank(comm, &rank);
	if (rank == 1) {
		((char *)recv)[3] ^= 1;
	}
	return rc;
}

/* Every second barrier is none; rank 0 comes to it late. */
int MPI_Barrier(MPI_Comm comm)
{
	static int calls;
	int rank;

	MPI_Comm_rank(comm, &rank);
	if (++calls % 2 == 0) {
		return MPI_SUCCESS;
	}
	PMPI_Barrier(comm);
	usleep(rank == 0 ? 20000 : 0);
	return MPI_SUCCESS;
}
EOS
for real in "$openmpi" "$mpich"; do
	[ -n "$real" ] || continue
	name="Open MPI"
	[ "$real" = "$openmpi" ] || name=MPICH
	library spoilt "$real" "$PWD/spoil.c"
	compare 1 alltoall barrier --shape 2 --rate none --sizes 8 --rounds 1 --iterations 3 \
		--mpicc "$PWD/mpicc.spoilt"
	has "wrong: $name, alltoall of 8 B, rank 1, block from rank 0, offset 3: expected 0x" err
	has "wrong: $name, barrier, a rank left the barrier before the last one entered it" err
	[ "$(grep -c 'WRONG$' out)" = 2 ] || { cat out err; fail "two wrong cells"; }
	echo "ok: a wrong byte and a broken barrier of $name"
done

# ---- a signal ends it ------------------------------------------------------------------------

mkdir empty
collnet lab shell --shape 2 --rate none --ip --timeout 200 -- sh -c '
	export TMPDIR=$1
	collnet compare barrier --iterations 1000000 --timeout 80000 >out 2>err </dev/null &
	until ls "$1"/collnet-compare.*/*.log >log 2>/dev/null && [ $(wc -l <log) -ge 2 ]; do
		kill -0 $! || exit 3
		sleep 0.05
	done
	kill -TERM $!
	wait $!
	[ $? -eq 143 ] || exit 4
	ls -A "$1" >left' sh "$PWD/empty" || { cat out err; fail "a signal does not end it"; }
[ ! -s left ] || { cat left; fail "a signal leaves files"; }
echo "ok: a signal ends it, and nothing stays"

# A compiler that takes its time. The signal is for compare alone, and not for the script that called it.
if [ -n "$openmpi" ]; then
	library slow "$openmpi"
	printf '#!/bin/sh\ntouch %s/compiles\nexec sleep 3\n' "$PWD" >mpicc.slow
	cat >caller <<-'EOS'
		#!/bin/sh
		collnet compare barrier --hosts n1,n2 --mpicc "$PWD/mpicc.slow" >out 2>err &
		for i in $(seq 400); do [ -e compiles ] && break; sleep 0.05; done
		kill -TERM $!
		wait $!
		echo $? >survived
	EOS
	setsid -w sh caller || fail "a signal for compare ends its caller"
	[ "$(cat survived)" = 143 ] || { cat out err; fail "status $(cat survived) after a signal"; }
	! grep -e "does not compile" -e "has ended" err || fail "libraries are accused"
	echo "ok: a signal while a loop is compiled"
fi

# ---- what cannot be is said ------------------------------------------------------------------

compare 1 barrier --shape 2 --rounds 1 --mpicc "$PWD/mpicc.nowhere"
has "there is no program $PWD/mpicc.nowhere" err
compare 2 barrier
has "specify --shape" err
compare 2 barrier --shape 2 --csv same --plot same
has "name the same file" err
COLLNETD=/nonexistent compare 1 barrier --shape 2 --csv /nonexistent/ratios.csv
has "^collnet compare: /nonexistent/ratios.csv: No such file" err # before there is a lab
compare 2 barrier --hosts /
has "Is a directory" err
compare 1 barrier --shape 2 --directory /dev/null
has "/dev/null: Not a directory" err
compare 2 barrier --shape 2 --interface eth0
has "interface requires --hosts" err
if [ -n "$openmpi" ] && [ -n "$mpich" ]; then
	# One library that does not start is left out, and says why.
	library broken "$openmpi"
	printf '%s\n' '[ "$1" = --version ] || { echo "no luck today" >&2; exit 3; }' | cat - mpirun.broken |
		sed '/^#!/d' >new
	{ echo '#!/bin/sh' && cat new; } >mpirun.broken
	compare 1 barrier --shape 2 --rounds 1 --iterations 2 --json \
		--mpicc "$mpich,$PWD/mpicc.broken"
	has "Open MPI (openmpi-spin) has ended" err
	has "no luck today" err
	[ "$(json best out)" = mpich ] || { cat out err; fail "MPICH alone is compared"; }
	echo "ok: a library that does not start is left out"
fi
[ -n "$openmpi" ] || skip "Open MPI is not installed (the rest is right)"
[ -n "$mpich" ] || skip "MPICH is not installed (the rest is right)"
