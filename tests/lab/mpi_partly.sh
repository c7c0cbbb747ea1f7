# SPDX-License-Identifier: BSD-2-Clause
# MPI programs some of whose ranks lack collnet: a node without the package, or an application context
# without the parameters. All ranks use MPI alone, and one line names those that lack it.
# timeout: 600
. "$(dirname "$0")/lib.sh"
need_lab

lib=$(cd "$(dirname "$(command -v collnet)")/../lib" && pwd)
# A sanitizer in a component or a preloaded library is too late.
[ "$VARIANT" = plain ] || { echo "ok: nothing to do in this variant" && exit 0; }
here=$(cd "$(dirname "$0")" && pwd)
mpi_commands
tested=

# partly WHAT HOSTS RANKS LACKING COMMAND...: without collnet on ranks LACKING, MPI_COMM_WORLD is not served, and one
# line says so. Communicators of the other ranks may be.
partly() {
	what=$1 hosts=$2 ranks=$3 lacking=$4
	shift 4
	mpi "$what" --shape 3 -- env LACKING="$lacking" ./count ./with-collnet "$hosts" "$ranks" ./some "$@"
	has '^right: ' out
	[ "$(grep -c '^collnet: not used' out)" = 1 ] || { cat out; fail "$what: not one line"; }
	has "^collnet: not used, because ranks of $ranks lack .*: $said" out
	lacks 'MPI_COMM_WORLD' out
	echo "ok: $what: $(sed -n 's/^collnet: not used.*: //p' out)"
}

component=$lib/collnet/openmpi
if command -v mpicc.openmpi >/dev/null && command -v mpirun >/dev/null && [ -e "$component/mca_coll_collnet.so" ]; then
	open_mpi
	mca=--mca
	mpirun --version | grep -q 'Open MPI) 4' || mca=--omca
	cat >with-collnet <<-EOF
		#!/bin/sh
		hosts=\$1 ranks=\$2
		shift 2
		exec ./lab-mpirun "\$hosts" "\$ranks" $mca mca_base_component_path "$component:SYS_DEFAULT" \\
			--mca coll_collnet_priority 90 --mca coll_collnet_verbose 1 --mca coll_collnet_select always "\$@"
	EOF
	cat >some <<-'EOF'
		#!/bin/sh
		case " $LACKING " in
		*" $OMPI_COMM_WORLD_RANK "*) unset OMPI_MCA_mca_base_component_path ;;
		esac
		case " ${LOW:-} " in
		*" $OMPI_COMM_WORLD_RANK "*) export OMPI_MCA_coll_collnet_priority=80 ;;
		esac
		exec "$@"
	EOF
	chmod +x with-collnet some
	mpicc.openmpi -std=c99 -O1 "$here/mpi_program.c" -o program || fail "mpi_program.c"
	said='1 on h1$' partly "Open MPI, a rank" h0:1,h1:1,h2:1 3 1 ./program 3 30
	said='0, 3-5 on h0, h1, h2$' partly "Open MPI, the first rank and others" h0:2,h1:2,h2:2 6 "0 3 4 5" ./program 3 30
	export LOW=2
	said='2 on h2$' partly "Open MPI, another priority" h0:1,h1:1,h2:1 3 "" ./program 3 30
	unset LOW
	mpi "Open MPI, all ranks" --shape 3 -- env LACKING= ./with-collnet h0:1,h1:1,h2:1 3 ./some ./program 3 30
	has 'MPI_COMM_WORLD of 3 ranks: served by collnet on 3 nodes' out
	tested=1
fi

library=$lib/libcollnet_mpich.so
if command -v mpicc.mpich >/dev/null && [ -e "$library" ]; then
	mpich
	cat >with-collnet <<-EOF
		#!/bin/sh
		export LD_PRELOAD="$library" COLLNET_MPI_VERBOSE=1 COLLNET_MPI_SELECT=always
		exec ./lab-mpiexec "\$@"
	EOF
	cat >some <<-'EOF'
		#!/bin/sh
		case " $LACKING " in
		*" $PMI_RANK "*) unset LD_PRELOAD ;;
		esac
		exec "$@"
	EOF
	chmod +x with-collnet some
	mpicc.mpich -std=c99 -O1 "$here/mpi_program.c" -o program || fail "mpi_program.c"
	said='1$' partly "MPICH, a rank" h0:1,h1:1,h2:1 3 1 ./program 3 30
	said='0, 3-5$' partly "MPICH, the first rank and others" h0:2,h1:2,h2:2 6 "0 3 4 5" ./program 3 30
	mpi "MPICH, all ranks" --shape 3 -- env LACKING= ./with-collnet h0:1,h1:1,h2:1 3 ./some ./program 3 30
	has 'MPI_COMM_WORLD of 3 ranks: served by collnet on 3 nodes' out
	tested=1
fi

[ -n "$tested" ] || skip "no MPI library for which collnet is built"
