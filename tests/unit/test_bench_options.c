/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `collnet bench`: what is taken, its defaults, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tools/bench/command.h"
#include "words.h"

static int parse(struct bench_options *o, const char *line)
{
	char **argv;
	int argc = words(line, &argv);

	return bench_options_parse(o, argc, argv);
}

static void parse__everything(void **state)
{
	struct bench_options o;

	(void)state;
	assert_int_equal(parse(&o, "bench alltoall --sizes 1k,64k,1m --algorithm shuffle "
				   "--permutation xor --contention-aware off --window 7 "
				   "--iterations 5 --warmup 0 --verify --json --timeout 1.5"),
			 TOOL_OK);
	assert_int_equal(o.m.op, MEASURE_ALLTOALL);
	assert_int_equal(o.m.nsizes, 3);
	assert_int_equal(o.m.sizes[2], 1 << 20);
	assert_int_equal(o.m.nalgorithms, 1);
	assert_string_equal(o.m.algorithms[0]->name, "shuffle");
	assert_int_equal(o.m.permutation, CN_PERM_XOR);
	assert_false(o.m.contention_aware);
	assert_int_equal(o.m.window, 7);
	assert_int_equal(o.m.iterations, 5);
	assert_int_equal(o.m.warmup, 0);
	assert_true(o.m.verify);
	assert_true(o.m.json);
	assert_int_equal(o.timeout_ms, 1500);
}

static void parse__defaults(void **state)
{
	struct bench_options o;

	(void)state;
	assert_int_equal(parse(&o, "bench allgather"), TOOL_OK);
	assert_int_equal(o.m.nalgorithms, 0); /* chosen for every size */
	assert_false(o.m.all);
	assert_int_equal(o.m.permutation, CN_PERM_AUTO);
	assert_true(o.m.contention_aware);
	assert_int_equal(o.m.window, COLLNET_WINDOW_AUTO);
	assert_int_equal(o.m.iterations, MEASURE_DEFAULT);
	assert_int_equal(o.m.warmup, 1);
	assert_true(o.m.nsizes > 0);
	assert_false(o.m.verify || o.m.json || o.baseline);
	assert_int_equal(parse(&o, "bench stream"), TOOL_OK);
	assert_int_equal(o.m.nalgorithms, 0);
	assert_int_equal(o.m.sizes[0], 1 << 20);
}

static void parse__options_before_operation(void **state)
{
	struct bench_options o;

	(void)state;
	assert_int_equal(parse(&o,
			       "bench --json --mode direct pingpong --baseline --rank 1 --ranks 2"),
			 TOOL_OK);
	assert_int_equal(o.m.op, MEASURE_PINGPONG);
	assert_int_equal(o.open.mode, COLLNET_MODE_DIRECT);
	assert_int_equal(o.team.rank, 1);
	assert_int_equal(o.team.ranks, 2);
}

static void parse__several_algorithms(void **state)
{
	struct bench_options o;

	(void)state;
	assert_int_equal(parse(&o, "bench alltoall --algorithm linear,shuffle"), TOOL_OK);
	assert_int_equal(o.m.nalgorithms, 2);
	assert_string_equal(o.m.algorithms[0]->name, "linear");
	assert_string_equal(o.m.algorithms[1]->name, "shuffle");
	assert_int_equal(parse(&o, "bench alltoall --algorithm all"), TOOL_OK);
	assert_int_equal(o.m.nalgorithms, 0); /* those that can run, when that is known */
	assert_true(o.m.all);
}

static void parse__rate_from_environment(void **state)
{
	struct bench_options o;

	(void)state;
	setenv("COLLNET_LINK_RATE", "10mbit", 1);
	assert_int_equal(parse(&o, "bench alltoall"), TOOL_OK);
	assert_int_equal(o.rate, 10000000);
	assert_int_equal(parse(&o, "bench alltoall --rate 1gbit"), TOOL_OK);
	assert_int_equal(o.rate, 1000000000);
	setenv("COLLNET_LINK_RATE", "fast", 1);
	assert_int_equal(parse(&o, "bench alltoall"), TOOL_USAGE);
	unsetenv("COLLNET_LINK_RATE");
}

static void parse__refused(void **state)
{
	static const char *const bad[] = {
		"bench",
		"bench reduced",
		"bench alltoall pingpong",
		"bench alltoall --sizes",
		"bench alltoall --sizes 1k,,2k",
		"bench alltoall --sizes 2g",
		"bench alltoall --algorithm ring",
		"bench alltoall --algorithm shuffle,",
		"bench alltoall --permutation random",
		"bench alltoall --algorithm aapc,linear --permutation xor",
		"bench alltoall --contention-aware maybe",
		"bench alltoall --window -1",
		"bench alltoall --iterations 0",
		"bench alltoall --baseline",
		"bench pingpong --warmup 0",
		"bench stream --warmup 0",
		"bench alltoall --wrong",
		"bench alltoall --mode fast",
		"bench alltoall --timeout 0",
		"bench alltoall --rank 4 --ranks 4",
		"bench alltoall --rate 0",
		"bench barrier --sizes 1k",
		"bench pingpong --algorithm shuffle",
	};
	struct bench_options o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (parse(&o, bad[i]) != TOOL_USAGE) {
			fail_msg("taken: %s", bad[i]);
		}
	}
}

static void parse__options_of_direct_mode(void **state)
{
	static const char *const its[] = { "--interface eth0", "--link udp", "--peers launcher",
					   "--encapsulation raw", "--spin" };
	struct bench_options o;
	char line[80];

	(void)state;
	for (size_t i = 0; i < sizeof(its) / sizeof(its[0]); i++) {
		snprintf(line, sizeof(line), "bench alltoall %s", its[i]);
		assert_int_equal(parse(&o, line), TOOL_USAGE);
		setenv("COLLNET_MODE", "direct", 1);
		assert_int_equal(parse(&o, line), TOOL_OK);
		snprintf(line, sizeof(line), "bench alltoall %s --mode daemon", its[i]);
		assert_int_equal(parse(&o, line), TOOL_USAGE);
		unsetenv("COLLNET_MODE");
		snprintf(line, sizeof(line), "bench alltoall %s --mode direct", its[i]);
		assert_int_equal(parse(&o, line), TOOL_OK);
	}
}

static void check_ranks__one_has_to_be_asked_for(void **state)
{
	struct bench_options o;

	(void)state;
	assert_int_equal(parse(&o, "bench alltoall"), TOOL_OK);
	assert_int_equal(o.team.ranks, 1);
	assert_int_equal(bench_check_ranks(&o, NULL), TOOL_USAGE);
	assert_int_equal(bench_check_ranks(&o, "PMI_SIZE"), TOOL_USAGE);
	assert_int_equal(bench_check_ranks(&o, "COLLNET_SIZE"), TOOL_OK);
	assert_int_equal(parse(&o, "bench alltoall --ranks 1"), TOOL_OK);
	assert_int_equal(bench_check_ranks(&o, NULL), TOOL_OK);
	assert_int_equal(parse(&o, "bench alltoall --ranks 2"), TOOL_OK);
	assert_int_equal(bench_check_ranks(&o, NULL), TOOL_OK);
	o.team.ranks = 2; /* by a launcher */
	o.ranks_given = false;
	assert_int_equal(bench_check_ranks(&o, "PMI_SIZE"), TOOL_OK);
	o.team.ranks = 0; /* a wrong environment, which is explained elsewhere */
	assert_int_equal(bench_check_ranks(&o, NULL), TOOL_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__everything),
		cmocka_unit_test(parse__defaults),
		cmocka_unit_test(parse__options_before_operation),
		cmocka_unit_test(parse__several_algorithms),
		cmocka_unit_test(parse__rate_from_environment),
		cmocka_unit_test(parse__refused),
		cmocka_unit_test(parse__options_of_direct_mode),
		cmocka_unit_test(check_ranks__one_has_to_be_asked_for),
	};

	/* What decides defaults must not come from outside. */
	unsetenv("COLLNET_LINK_RATE");
	unsetenv("COLLNET_RANK");
	unsetenv("COLLNET_SIZE");
	unsetenv("COLLNET_MODE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
