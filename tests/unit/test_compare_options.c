/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `collnet compare`, lists of hosts, and the launchers' command lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tools/compare/command.h"
#include "words.h"

static int parse(struct compare_options *o, const char *line)
{
	char **argv;
	int argc = words(line, &argv);

	return compare_options_parse(o, argc, argv);
}

static void parse__defaults(void **state)
{
	static const enum loop_op ops[] = { LOOP_ALLTOALL, LOOP_ALLGATHER, LOOP_BCAST,
					    LOOP_BARRIER };
	static const uint64_t sizes[] = { 8, 1024, 65536, 1 << 20 };
	struct compare_options o;

	(void)state;
	assert_int_equal(parse(&o, "compare"), TOOL_OK);
	assert_int_equal(o.nops, 4);
	assert_memory_equal(o.ops, ops, sizeof(ops));
	assert_int_equal(o.m.nsizes, 4);
	assert_memory_equal(o.m.sizes, sizes, sizeof(sizes));
	assert_int_equal(o.rounds, 5);
	assert_int_equal(o.ranks_per_node, 1);
	assert_int_equal(o.timeout_ms, 60000);
	assert_int_equal(o.m.iterations, MEASURE_DEFAULT);
	assert_int_equal(o.m.window, COLLNET_WINDOW_AUTO);
	assert_false(o.loop || o.lab_given || o.direct || o.spin || o.mpi_on_collnet || o.m.json);
	compare_options_free(&o);
}

/* What is the lab's and what is the comparison's, each as it was written. */
static void parse__parts_the_options(void **state)
{
	struct compare_options o;

	(void)state;
	assert_int_equal(parse(&o, "compare bcast --shape 4x2 --rate none gather --sizes 1k "
				   "--ranks-per-node 2 --daemon-arg=--window=off --rounds 3 "
				   "--json --window 7"),
			 TOOL_OK);
	assert_int_equal(o.nops, 2);
	assert_int_equal(o.ops[0], LOOP_BCAST);
	assert_int_equal(o.ops[1], LOOP_GATHER);
	assert_true(o.lab_given);
	assert_int_equal(o.nlab_args, 3);
	assert_string_equal(o.lab_args[0], "--shape=4x2");
	assert_string_equal(o.lab_args[1], "--rate=none");
	assert_string_equal(o.lab_args[2], "--daemon-arg=--window=off");
	assert_int_equal(o.nown_args, 5);
	assert_string_equal(o.own_args[0], "--sizes=1k");
	assert_string_equal(o.own_args[1], "--ranks-per-node=2");
	assert_string_equal(o.own_args[2], "--rounds=3");
	assert_string_equal(o.own_args[3], "--json");
	assert_string_equal(o.own_args[4], "--window=7");
	assert_int_equal(o.ranks_per_node, 2);
	assert_int_equal(o.m.window, 7);
	compare_options_free(&o);
}

static void parse__loop(void **state)
{
	struct compare_options o;

	(void)state;
	assert_int_equal(parse(&o, "compare loop --mode=direct --spin --window=off"), TOOL_OK);
	assert_true(o.loop && o.direct && o.spin);
	assert_int_equal(o.m.window, COLLNET_WINDOW_OFF);
	compare_options_free(&o);
}

static void parse__refused(void **state)
{
	static const char *const lines[] = {
		"compare pingpong --shape 2",
		"compare exscan --shape 2",
		"compare bcast bcast --shape 2",
		"compare loop bcast",
		"compare --shape 2 --sizes 0",
		"compare --shape 2 --sizes 2g",
		"compare --shape 2 --rounds 0",
		"compare --shape 2 --rounds 100",
		"compare --shape 2 --rate fast",
		"compare --shape 2 --mode quick",
		"compare --shape 2 --spin",
		"compare --shape 2 --mode direct --mpi-on-collnet",
		"compare --shape 2 --mode direct --ranks-per-node 2",
		"compare --shape 2 --topology file",
		"compare --rate none",
		"compare --shape 2 --hosts a,b",
		"compare --verify",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct compare_options o;

		print_message("%s\n", lines[i]);
		assert_int_equal(parse(&o, lines[i]), TOOL_USAGE);
		compare_options_free(&o);
	}
}

/* ---- hosts ---------------------------------------------------------------------------- */

static void free_hosts(char **hosts, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		free(hosts[i]);
	}
	free(hosts);
}

static void hosts__from_a_list(void **state)
{
	struct cn_err err = { 0 };
	char **hosts;
	uint32_t n;

	(void)state;
	assert_int_equal(compare_hosts("n1:4,n2,n1,n3.example", &hosts, &n, &err), COLLNET_OK);
	assert_int_equal(n, 3);
	assert_string_equal(hosts[0], "n1");
	assert_string_equal(hosts[1], "n2");
	assert_string_equal(hosts[2], "n3.example");
	free_hosts(hosts, n);
	assert_int_equal(compare_hosts("n1", &hosts, &n, &err), COLLNET_EINVAL);
	free_hosts(hosts, n);
	assert_int_equal(compare_hosts("a[09-11,2]:8,n", &hosts, &n, &err), COLLNET_OK);
	assert_int_equal(n, 5);
	assert_string_equal(hosts[0], "a09");
	assert_string_equal(hosts[3], "a2");
	assert_string_equal(hosts[4], "n");
	free_hosts(hosts, n);
	assert_int_equal(compare_hosts("n[1-5000]", &hosts, &n, &err), COLLNET_ELIMIT);
	free_hosts(hosts, n);
	assert_int_equal(compare_hosts("n[1-2", &hosts, &n, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "found 'n[1-2'"));
	free_hosts(hosts, n);
	assert_int_equal(compare_hosts("n[1-2],", &hosts, &n, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "found its end"));
	free_hosts(hosts, n);
	assert_int_equal(compare_hosts("a,:2", &hosts, &n, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "':2' names no host"));
	free_hosts(hosts, n);
	assert_int_equal(compare_hosts("/nonexistent/hosts", &hosts, &n, &err), COLLNET_EINVAL);
}

/* The files of both launchers, and a name per line. */
static void hosts__from_a_file(void **state)
{
	char path[] = "/tmp/test_compare_options.XXXXXX";
	struct cn_err err = { 0 };
	int fd = mkstemp(path);
	char **hosts;
	uint32_t n;

	(void)state;
	assert_true(fd >= 0);
	assert_true(dprintf(fd, "# the cluster\n\nn1 slots=4\nn2:4\n  n3 # new\nn1\n") > 0);
	close(fd);
	assert_int_equal(compare_hosts(path, &hosts, &n, &err), COLLNET_OK);
	unlink(path);
	assert_int_equal(n, 3);
	assert_string_equal(hosts[0], "n1");
	assert_string_equal(hosts[1], "n2");
	assert_string_equal(hosts[2], "n3");
	free_hosts(hosts, n);
}

/* ---- command lines -------------------------------------------------------------------- */

struct fixture {
	struct compare_options o;
	struct compare_mpi mpi;
	struct contender t;
	struct compare c;
	char *hosts[2];
};

static void set_up(struct fixture *f, enum cell_library launcher, enum cell_library library,
		   int yield)
{
	static char h0[] = "h0", h1[] = "h1";

	memset(f, 0, sizeof(*f));
	f->o.ranks_per_node = 2;
	f->mpi.library = launcher;
	strcpy(f->mpi.mpirun, "/m/mpirun");
	strcpy(f->mpi.program, "/d/loop");
	f->t.library = library;
	f->t.launcher = &f->mpi;
	f->t.yield = yield;
	f->c.o = &f->o;
	f->c.hosts = f->hosts;
	f->hosts[0] = h0;
	f->hosts[1] = h1;
	f->c.nhosts = 2;
	strcpy(f->c.self, "/c/collnet");
	strcpy(f->c.directory, "/d");
}

static void assert_line(const struct fixture *f, const char *expected)
{
	char **argv = compare_argv(&f->c, &f->t), line[1024] = "";

	assert_non_null(argv);
	for (size_t i = 0; argv[i] != NULL; i++) {
		strcat(strcat(line, i > 0 ? " " : ""), argv[i]);
	}
	assert_string_equal(line, expected);
	compare_argv_free(argv);
}

/* Nothing is set that the user did not ask for, but for the setting that is compared. */
static void argv__on_a_network(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, CELL_OPENMPI, CELL_OPENMPI, 1);
	assert_line(&f, "/m/mpirun --host h0:2,h1:2 -np 4 --map-by ppr:2:node "
			"--mca mpi_yield_when_idle 1 /d/loop");
	set_up(&f, CELL_OPENMPI, CELL_OPENMPI, 0);
	f.o.interface = "eth7";
	assert_line(&f, "/m/mpirun --host h0:2,h1:2 -np 4 --map-by ppr:2:node --mca pml ob1 "
			"--mca btl tcp,vader,self --mca btl_tcp_if_include eth7 "
			"--mca oob_tcp_if_include eth7 --mca mpi_yield_when_idle 0 /d/loop");
	set_up(&f, CELL_MPICH, CELL_MPICH, -1);
	assert_line(&f, "/m/mpirun -hosts h0,h1 -n 4 -ppn 2 /d/loop");
}

static void argv__of_collnet(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, CELL_MPICH, CELL_COLLNET, -1);
	f.o.timeout_ms = 90500;
	assert_line(&f, "/m/mpirun -hosts h0,h1 -n 4 -ppn 2 /c/collnet compare loop "
			"--timeout=90.500");
	f.o.direct = f.o.spin = true;
	f.o.m.window = COLLNET_WINDOW_OFF;
	assert_line(&f, "/m/mpirun -hosts h0,h1 -n 4 -ppn 2 /c/collnet compare loop "
			"--timeout=90.500 --mode=direct --spin --window=off");
	f.o.direct = f.o.spin = false;
	f.o.m.window = 5;
	assert_line(&f, "/m/mpirun -hosts h0,h1 -n 4 -ppn 2 /c/collnet compare loop "
			"--timeout=90.500 --window=5");
}

static void argv__of_mpi_on_collnet(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, CELL_OPENMPI, CELL_OPENMPI_ON_COLLNET, 1);
	strcpy(f.mpi.collnet, "/l/collnet/openmpi");
	assert_line(&f, "/m/mpirun --host h0:2,h1:2 -np 4 --map-by ppr:2:node "
			"--mca mca_base_component_path /l/collnet/openmpi:SYS_DEFAULT:USER_DEFAULT "
			"--mca coll_collnet_priority 90 --mca coll_collnet_verbose 2 "
			"--mca mpi_yield_when_idle 1 /d/loop");
	set_up(&f, CELL_MPICH, CELL_MPICH_ON_COLLNET, -1);
	strcpy(f.mpi.collnet, "/l/libcollnet_mpich.so");
	assert_line(&f, "/m/mpirun -hosts h0,h1 -n 4 -ppn 2 -genv LD_PRELOAD "
			"/l/libcollnet_mpich.so -genv COLLNET_MPI_VERBOSE 2 /d/loop");
}

/* Times of a library that did not use collnet must not pass for those of collnet. */
static void contender_used_collnet__by_its_log(void **state)
{
	static const struct {
		const char *log;
		bool used;
	} cases[] = {
		{ "", false },
		{ "hello\ncollnet: communicator MPI_COMM_WORLD of 2 ranks: served by collnet on 2 "
		  "nodes\n",
		  true },
		{ "collnet: communicator MPI_COMM_WORLD of 2 ranks: not served: all ranks run on "
		  "one node\n",
		  false },
		{ "collnet: communicator without a name of 2 ranks: served by collnet on 2 nodes\n",
		  false },
	};
	char path[] = "/tmp/test_compare.XXXXXX";
	struct fixture f;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	set_up(&f, CELL_MPICH, CELL_MPICH_ON_COLLNET, -1);
	strcpy(f.t.log, path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const size_t len = strlen(cases[i].log);

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, cases[i].log, len, 0), len);
		assert_true(contender_used_collnet(&f.t) == cases[i].used);
	}
	close(fd);
	unlink(path);
	assert_false(contender_used_collnet(&f.t));
}

static void contender_choice__by_its_log(void **state)
{
	static const char log[] =
		"collnet: communicator MPI_COMM_WORLD of 4 ranks: served by collnet on 4 nodes\n"
		"collnet: communicator a of 4 ranks: MPI_Bcast of 8 bytes and more: x: by MPI\n"
		"collnet: communicator MPI_COMM_WORLD of 4 ranks: MPI_Allreduce of 8 bytes and "
		"more: collnet 1.0 us (faster in 5 of 5), MPI 2.0 us: by collnet\n"
		"collnet: communicator MPI_COMM_WORLD of 4 ranks: MPI_Alltoallv: collnet 2.0 us "
		"(faster in 0 of 5), MPI 1.0 us: by MPI\n";
	char path[] = "/tmp/test_compare.XXXXXX";
	struct fixture f;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, log, strlen(log), 0), strlen(log));
	close(fd);
	set_up(&f, CELL_MPICH, CELL_MPICH_ON_COLLNET, -1);
	strcpy(f.t.log, path);
	assert_string_equal(contender_choice(&f.t, LOOP_ALLREDUCE, 8), "collnet");
	assert_string_equal(contender_choice(&f.t, LOOP_ALLREDUCE, 15), "collnet");
	assert_null(contender_choice(&f.t, LOOP_ALLREDUCE, 7));
	assert_null(contender_choice(&f.t, LOOP_ALLREDUCE, 16));
	assert_string_equal(contender_choice(&f.t, LOOP_ALLTOALLV, 0), "mpi");
	assert_null(contender_choice(&f.t, LOOP_ALLTOALL, 1));
	assert_null(contender_choice(&f.t, LOOP_BCAST, 8));
	setenv("COLLNET_MPI_SELECT", "always", 1);
	assert_string_equal(contender_choice(&f.t, LOOP_BCAST, 8), "collnet");
	unsetenv("COLLNET_MPI_SELECT");
	unlink(path);
	assert_null(contender_choice(&f.t, LOOP_ALLREDUCE, 8));
}

static void argv__in_a_lab(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, CELL_MPICH, CELL_MPICH, -1);
	f.c.in_lab = true;
	assert_line(&f, "lab-on h0 /m/mpirun -hosts h0,h1 -n 4 -ppn 2 /d/loop");
	set_up(&f, CELL_OPENMPI, CELL_COLLNET, -1);
	f.c.in_lab = true;
	assert_line(&f,
		    "lab-on h0 /m/mpirun --host h0:2,h1:2 -np 4 --map-by ppr:2:node "
		    "--mca pml ob1 --mca btl tcp,vader,self --mca btl_tcp_if_include eth0 "
		    "--mca oob_tcp_if_include eth0 --mca plm_rsh_no_tree_spawn 1 --bind-to none "
		    "/c/collnet compare loop --timeout=0.000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__defaults),
		cmocka_unit_test(parse__parts_the_options),
		cmocka_unit_test(parse__loop),
		cmocka_unit_test(parse__refused),
		cmocka_unit_test(hosts__from_a_list),
		cmocka_unit_test(hosts__from_a_file),
		cmocka_unit_test(argv__on_a_network),
		cmocka_unit_test(argv__of_collnet),
		cmocka_unit_test(argv__of_mpi_on_collnet),
		cmocka_unit_test(contender_used_collnet__by_its_log),
		cmocka_unit_test(contender_choice__by_its_log),
		cmocka_unit_test(argv__in_a_lab),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
