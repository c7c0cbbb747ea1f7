# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For lab tests, which begin with:
#
#     . "$(dirname "$0")/lib.sh"
#
# tests/run puts collnet and collnetd in the PATH, gives a private directory (the current one, and
# TMPDIR), and sets VARIANT to plain or asan. By hand: PATH=$PWD/build/prefix/bin:... sh tests/lab/X.sh

set -u

fail() {
	echo "FAIL: $*"
	exit 1
}

# Whether everything is wanted that takes long.
is_long() {
	[ "${LONG:-no}" = yes ]
}

skip() {
	echo "skip: $*"
	exit 77
}

# need COMMAND...: skips the test without them.
need() {
	for c; do
		command -v "$c" >/dev/null 2>&1 || skip "$c is not installed"
	done
}

# Skips the test where the system gives an ordinary user no network namespace.
need_lab() {
	need ip tc unshare collnet collnetd
	[ "$(id -u)" -eq 0 ] && return
	unshare -Urnm true 2>/dev/null || skip "this system allows no user namespaces to ordinary users"
}

# Of collnet lab run, in tests that look for no lost node: where the machine takes a processor away for
# 1.5 s, all nodes on it would be.
# shellcheck disable=SC2034 # by those that read this file
patient=--daemon-arg=--peer-timeout=5000

# every_rank RANKS PROGRAM OPTION...: in the lab, the program ends well, and each of so many ranks says
# that it is done. What they print is in `out`. PROGRAM may have arguments.
every_rank() {
	want=$1 program=$2
	shift 2
	# shellcheck disable=SC2086 # a list of words
	collnet lab run --timeout 200 "$patient" "$@" -- $program >out 2>&1 || { cat out; fail "$program: $*"; }
	[ "$(grep -c ': done$' out)" -eq "$want" ] || { cat out; fail "$program: not $want ranks: $*"; }
	echo "ok: $program: $*"
}

# Python finds the installed package.
python_package() {
	for PYTHONPATH in "$(dirname "$(command -v collnet)")"/../lib/python3*/*-packages; do
		[ -d "$PYTHONPATH/collnet" ] || skip "the Python package is not installed"
	done
	export PYTHONPATH
}

# open_mpi: writes ./lab-mpirun, which starts Open MPI on hosts of the lab that it is called in:
# lab-mpirun HOST[:SLOTS],... RANKS ARGUMENT...
open_mpi() {
	cat >lab-mpirun <<-EOS
		#!/bin/sh
		hosts=\$1 ranks=\$2 first=\${1%%[:,]*}
		shift 2
		exec lab-on "\$first" mpirun --host "\$hosts" -np "\$ranks" --mca btl tcp,self \
			--mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
			--mca plm_rsh_no_tree_spawn 1 --bind-to none --mca mpi_yield_when_idle 1 "\$@"
	EOS
	chmod +x lab-mpirun
}

# mpich: writes ./lab-mpiexec, the same for MPICH's hydra. Hydra itself can hang where several ranks abort at the same
# moment, which is no fault of collnet: a test of that needs a time limit. MPICH's own messages use shared memory also
# between the lab's hosts, because MPI_Finalize() of Debian 12's MPICH 4.0.2 often hangs in UCX over TCP.
mpich() {
	hydra=$(command -v mpiexec.hydra || command -v mpiexec.mpich) || skip "no mpiexec of MPICH"
	cat >lab-mpiexec <<-EOS
		#!/bin/sh
		hosts=\$1 ranks=\$2 first=\${1%%[:,]*}
		shift 2
		export UCX_TLS=self,sm
		exec lab-on "\$first" "$hydra" -hosts "\$hosts" -n "\$ranks" "\$@"
	EOS
	chmod +x lab-mpiexec
}

# mpi_commands: writes ./count, which runs a command and prints host h1's frames, ./kill-a-daemon, which runs one and
# kills h1's daemon while it calls, and ./restart-a-daemon, which starts that again.
mpi_commands() {
	cat >count <<-'EOS'
		#!/bin/sh
		"$@"
		status=$?
		lab-on h1 collnet status | grep '^data_sent'
		exit $status
	EOS
	cat >kill-a-daemon <<-'EOS'
		#!/bin/sh
		rm -f calling
		"$@" &
		await calling 50 || exit 1
		kill -9 "$(worker h1)"
		wait $!
	EOS
	cat >restart-a-daemon <<-'EOS'
		#!/bin/sh
		rm -f calling restarted
		"$@" &
		await calling 50 || exit 1
		kill -9 "$(worker h1)"
		lab-daemon h1 || exit 1
		touch restarted
		wait $!
	EOS
	chmod +x count kill-a-daemon restart-a-daemon
	host_commands await worker
}

# mpi NAME LAB-OPTIONS -- COMMAND...: in a lab; output in ./out.
mpi() {
	what=$1
	shift
	lab=
	while [ "$1" != -- ]; do
		lab="$lab $1"
		shift
	done
	# shellcheck disable=SC2086
	collnet lab shell $lab "$patient" --ip --timeout 200 "$@" >out 2>&1 </dev/null || {
		cat out
		fail "$what"
	}
}

# mpi_halves COMMAND: with measured choices, communicators of a part of the ranks have no team before their 257th
# short call. Ranks that share a node have one at once.
mpi_halves() {
	mpi "few calls of communicators" --shape 4 -- "$1" h0:1,h1:1,h2:1,h3:1 4 ./cases halves 64
	has '^right: halves' out
	[ "$(grep -c 'of 2 ranks: few short calls: by MPI' out)" = 2 ] || { cat out; fail "halves do not say who performs"; }
	lacks 'of 2 ranks: served' out
	mpi "calls of communicators" --shape 4 -- "$1" h0:1,h1:1,h2:1,h3:1 4 ./cases halves 65
	has '^right: halves' out
	[ "$(grep -c 'of 2 ranks: served by collnet on 2 nodes' out)" = 2 ] || { cat out; fail "halves have no teams"; }
	mpi "few calls of ranks that share nodes" --shape 2 -- "$1" h0:2,h1:2 4 ./cases halves 1
	has '^right: halves' out
	lacks 'few short calls' out
	[ "$(grep -c 'of 2 ranks: served by collnet on 2 nodes' out)" = 2 ] || { cat out; fail "halves have no teams"; }
}

# mpi_neighbours: after a run of ./neighbours with collnet and ./count: all right, of which collnet served only the
# ordinary operations.
mpi_neighbours() {
	has '^right: 30 operations of neighbourhoods' out
	for what in grid graph; do
		has "communicator $what of 6 ranks: served by collnet on 3 nodes" out
	done
	frames=$(sed -n 's/^data_sent *\([0-9]*\).*/\1/p' out)
	[ "${frames:-0}" -ge 100 ] && [ "$frames" -lt 5000 ] || { cat out; fail "not only ordinary operations: frames"; }
	echo "ok: operations of neighbourhoods are left to MPI, the others are served, $frames frames"
}

# mpi_memory: after a run of ./memory with collnet: all right. Its first long call fits, a broadcast takes that one's
# place, and an allreduce of 32 MiB does not fit, nor an allgather with counts. Nor does an all-to-all with counts, of
# which no rank knows what the others need.
mpi_memory() {
	has '^right: memory' out
	[ "$(grep -c 'a rank cannot allocate' out)" = 2 ] || { cat out; fail "not two calls for which memory was short"; }
	has 'MPI_Allreduce: a rank cannot allocate' out
	has 'MPI_Allgatherv: a rank cannot allocate' out
	has '^collnet: MPI_Alltoallv, rank 0 of 2: rank 1 on node h1 left the team' out
	has '^collnet: MPI_Barrier, rank 1 of 2: this rank left the team after: .*MPI_Alltoallv' out
	echo "ok: long calls for which memory is short are left to MPI"
}

# mpi_leaving: a rank that cannot start a call has an error at once, and leaves the team once the others have what it
# sent.
mpi_leaving() {
	mpi leaving --shape 2 -- ./with-collnet h0:2,h1:2 4 ./teams leaving
	has '^right: leaving' out
	has '^collnet: MPI_Gatherv, rank 3 of 4: rank 0 on node h0 left the team' out
	echo "ok: a rank leaves a team while what it sent is on its way"
}

# mpi_error CASE [OPERATION]...: the death of a daemon under ./with-collnet ./cases is the communicator's error on
# every rank, and every rank prints one of each operation.
mpi_error() {
	collnet lab shell --shape 3 --ip --timeout 60 -- \
		./kill-a-daemon ./with-collnet h0:1,h1:1,h2:1 3 ./cases "$1" >out 2>&1 </dev/null
	[ "$(grep -c '^failed: collnet: MPI_All[a-z]*, rank . of 3: ' out)" = 3 ] &&
		grep -q '^failed: .*node h1' out || { cat out; fail "no message of collnet"; }
	lacks '^wrong' out
	case=$1
	shift
	for what; do
		[ "$(grep -c "^collnet: MPI_$what, rank . of 3: " out)" = 3 ] || { cat out; fail "no error of $what"; }
	done
	echo "ok: $case: it is the communicator's, with collnet's message"
}

# mpi_restarted: what is created after a daemon's end and restart is served, though the communicators before it have
# errors.
mpi_restarted() {
	collnet lab shell --shape 3 "$patient" --ip --timeout 100 -- \
		./restart-a-daemon ./with-collnet h0:1,h1:1,h2:1 3 ./cases restarted >out 2>&1 </dev/null
	[ "$(grep -c '^failed: collnet: MPI_Allreduce, rank . of 3: ' out)" = 3 ] ||
		{ cat out; fail "no message of collnet"; }
	has '^right: restarted' out
	has 'communicator again of 3 ranks: served by collnet on 3 nodes' out
	echo "ok: a communicator that is created after a daemon's restart is served"
}

# has TEXT FILE: the file has the text.
has() {
	grep -q -e "$1" "$2" || {
		cat "$2"
		fail "'$1' is not in the output above"
	}
}

# lacks TEXT FILE
lacks() {
	! grep -q -e "$1" "$2" || {
		cat "$2"
		fail "'$1' is in the output above: $(grep -m 1 -e "$1" "$2")"
	}
}

# json KEY FILE: the values of a key, one a line; enough for the flat objects that collnet prints.
json() {
	grep -o "\"$1\": *[^,}]*" "$2" | sed 's/^[^:]*: *//; s/^"//; s/"$//'
}

# lab_bench LAB-OPTIONS -- BENCH-OPTIONS: collnet bench on every host of a lab. Output in ./out and
# ./err, status in $status, and in $what what it was.
lab_bench() {
	what=$*
	lab=
	while [ "$1" != -- ]; do
		lab="$lab $1"
		shift
	done
	shift
	# shellcheck disable=SC2086
	collnet lab run $lab -- collnet bench "$@" >out 2>err </dev/null
	status=$?
}

# lab_rows LAB-OPTIONS -- BENCH-OPTIONS: the same, which must end well and have every byte right; one
# line a row in ./rows, the ports in ./ports.
lab_rows() {
	lab_bench --json "$@" --json --verify
	[ $status -eq 0 ] || { cat out err; fail "status $status: $what"; }
	grep '"op"' out >rows
	grep '"ports"' out >ports
	[ -s rows ] && [ -s ports ] || { cat out err; fail "no rows or no ports: $what"; }
	right=true
	case $what in *" -- barrier "*) right=null ;; esac # there are no bytes to look at
	[ "$(json verified rows | sort -u)" = $right ] || { cat rows; fail "not right: $what"; }
}

# no_drops: nothing was lost in a port.
no_drops() {
	[ "$(json drops_total ports)" = 0 ] || { cat ports; fail "frames lost in ports: $what"; }
}

# window_kept FILE: in no row more was in flight than its window, or than all frames of an all-to-all so
# short that it is sent at once: three quarters of a host's port of 43 frames hold what is for it.
# A frame carries at least 1,400 bytes. Rows whose window is null have none.
window_kept() {
	for member in op window window_peak ranks nodes bytes_per_pair; do
		json $member "$1" >"kept.$member"
	done
	paste -d' ' kept.op kept.window kept.window_peak kept.ranks kept.nodes kept.bytes_per_pair >kept
	awk '{
		frames = int(($6 + 1399) / 1400)
		all = (frames > 0 ? frames : 1) * ($4 / $5) ^ 2 * ($5 - 1)
		most = $1 == "alltoall" && all <= 32 && all > $2 ? all : $2
		if ($2 != "null" && $3 > most) exit 1
	}' kept || { cat "$1"; fail "more in flight than the window: ${what:-}"; }
}

# host_commands NAME...: writes these commands into the test's directory and puts it into PATH, so that
# what runs on the hosts finds them. HERE is that directory.
#
#   await FILE SECONDS [TEXT]   waits until the file is there, and has the text
#   running RANK...             waits until these ranks have written pid.RANK, and this host's daemon
#                               moves their frames
#   worker HOST | PID           prints the worker process of the host's collnetd, or of a parent's
host_commands() {
	HERE=$PWD
	PATH=$HERE:$PATH
	export HERE PATH
	for c; do
		{
			echo '#!/bin/sh'
			case $c in
			await) cat <<'EOS' ;;
n=$(($2 * 50))
until [ -e "$1" ] && { [ $# -lt 3 ] || grep -q -e "$3" "$1"; }; do
	[ $((n -= 1)) -gt 0 ] || { echo "await: no $1 $3 after $2 s" >&2; exit 1; }
	sleep 0.02
done
EOS
			running) cat <<'EOS' ;;
for r; do
	await "$HERE/pid.$r" 60 || exit 1
done
n=2000
while :; do
	received=$(collnet status --json | tr ',{}' '\n\n\n' |
		sed -n 's/^ *"data_received": *//p' | sort -n | tail -n 1)
	[ "${received:-0}" -gt 300 ] && exit 0
	[ $((n -= 1)) -gt 0 ] || { echo "running: nothing moves" >&2; exit 1; }
	sleep 0.02
done
EOS
			worker) cat <<'EOS' ;;
case $1 in
*[!0-9]*) parent=$(cat "$COLLNET_LAB_DIR/$1.daemon.pid") ;;
*) parent=$1 ;;
esac
worker=$(ps -o pid= --ppid "$parent" | tr -d ' ')
echo "${worker:-$parent}"
EOS
			esac
		} >"$c"
		chmod 755 "$c"
	done
}
