/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `collnet sim`: what is taken, its defaults, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tools/sim/command.h"
#include "tools/sim/parse.h"
#include "words.h"

static int parse(struct sim_options *o, const char *line)
{
	char **argv;
	int argc = words(line, &argv);

	return sim_options_parse(o, argc, argv);
}

static void parse__network(void **state)
{
	struct sim_options o;

	(void)state;
	assert_int_equal(parse(&o,
			       "sim alltoall --shape 8x4 --switch input --cut-through --buffer 7 "
			       "--uplink-buffer 0 --rate 100mbit --uplink 1gbit --latency 1us "
			       "--delay 2.5us --root-switch dynamic --alpha 50"),
			 TOOL_OK);
	assert_int_equal(o.measure.op, MEASURE_ALLTOALL);
	assert_string_equal(o.shape, "8x4");
	assert_null(o.topology);
	assert_int_equal(o.cluster.kind, CN_SIM_INPUT);
	assert_true(o.cluster.cut_through);
	assert_int_equal(o.buffer, 7);
	assert_true(o.uplink_buffer_set);
	assert_int_equal(o.uplink_buffer, 0);
	assert_int_equal(o.rate, 100000000);
	assert_int_equal(o.uplink, 1000000000);
	assert_int_equal(o.cluster.latency, 1000);
	assert_int_equal(o.cluster.delay, 2500);
	assert_int_equal(o.cluster.alpha_pct, 50);
	assert_int_equal(parse(&o, "sim alltoall --topology x --switch dynamic"), TOOL_OK);
	assert_int_equal(o.cluster.kind, CN_SIM_DYNAMIC);
	assert_int_equal(parse(&o, "sim alltoall --topology x --switch shared"), TOOL_OK);
	assert_int_equal(o.cluster.kind, CN_SIM_SHARED);
	assert_false(o.cluster.root.other);
	assert_int_equal(parse(&o, "sim alltoall --topology x --root-switch shared:820"), TOOL_OK);
	assert_true(o.cluster.root.other);
	assert_int_equal(o.cluster.root.kind, CN_SIM_SHARED);
	assert_int_equal(o.cluster.root.memory, 820);
	assert_int_equal(o.cluster.kind, CN_SIM_OUTPUT);
	assert_int_equal(parse(&o, "sim alltoall --topology x --root-switch input"), TOOL_OK);
	assert_int_equal(o.cluster.root.kind, CN_SIM_INPUT);
	assert_int_equal(o.cluster.root.memory, 0);
	assert_false(o.cluster.buckets);
	assert_int_equal(parse(&o, "sim alltoall --topology x --lab"), TOOL_OK);
	assert_true(o.cluster.buckets);
}

static void parse__hosts_and_faults(void **state)
{
	struct sim_options o;

	(void)state;
	assert_int_equal(parse(&o, "sim allgather --shape 4 --local 3 --overheads 5us,8us,250ns "
				   "--gap 120us --jitter 1ms:5000 --loss 10 --duplicate 20 "
				   "--reorder 30 --corrupt 40"),
			 TOOL_OK);
	assert_int_equal(o.local, 3);
	assert_int_equal(o.cluster.o_send, 5000);
	assert_int_equal(o.cluster.o_recv, 8000);
	assert_int_equal(o.cluster.u_recv, 250);
	assert_int_equal(o.cluster.gap, 120000);
	assert_int_equal(o.cluster.jitter, 1000000);
	assert_int_equal(o.cluster.jitter_ppm, 5000);
	assert_int_equal(o.faults.loss, 10);
	assert_int_equal(o.faults.duplicate, 20);
	assert_int_equal(o.faults.reorder, 30);
	assert_int_equal(o.faults.corrupt, 40);
}

static void parse__what_to_run(void **state)
{
	struct sim_options o;

	(void)state;
	assert_int_equal(parse(&o,
			       "sim alltoall --shape 4 --sizes 1k,64k --algorithm shuffle,linear "
			       "--permutation xor --contention-aware off --window 9 "
			       "--iterations 5 --warmup 0 --verify --seed 77 --json"),
			 TOOL_OK);
	assert_int_equal(o.measure.nsizes, 2);
	assert_int_equal(o.measure.sizes[1], 65536);
	assert_int_equal(o.measure.nalgorithms, 2);
	assert_string_equal(o.measure.algorithms[1]->name, "linear");
	assert_int_equal(o.measure.permutation, CN_PERM_XOR);
	assert_false(o.measure.contention_aware);
	assert_int_equal(o.measure.window, 9);
	assert_int_equal(o.measure.iterations, 5);
	assert_int_equal(o.measure.warmup, 0);
	assert_true(o.measure.verify && o.measure.json);
	assert_int_equal(o.cluster.seed, 77);
}

static void parse__defaults(void **state)
{
	struct sim_options o;

	(void)state;
	assert_int_equal(parse(&o, "sim bcast --shape 4"), TOOL_OK);
	assert_int_equal(o.measure.iterations, 3);
	assert_int_equal(o.measure.warmup, 1);
	assert_int_equal(o.cluster.seed, 1);
	assert_int_equal(o.cluster.kind, CN_SIM_OUTPUT);
	assert_int_equal(o.buffer, 43);
	assert_int_equal(o.uplink_buffer, 45);
	assert_false(o.buffer_set || o.uplink_buffer_set);
	assert_int_equal(o.local, 1);
	assert_int_equal(o.measure.nalgorithms, 0);
	assert_int_equal(o.measure.window, COLLNET_WINDOW_AUTO);
	assert_true(o.measure.nsizes > 0);
	/* what is looked at is one iteration */
	assert_int_equal(parse(&o, "sim bcast --shape 4 --sizes 1k --trace x"), TOOL_OK);
	assert_int_equal(o.measure.iterations, 1);
	assert_int_equal(parse(&o, "sim barrier --shape 4 --algorithm all"), TOOL_OK);
	assert_true(o.measure.all);
}

static void parse__experiment(void **state)
{
	struct sim_options o;

	(void)state;
	assert_int_equal(parse(&o, "sim --experiment exchange-5 --seed 3 --quick"), TOOL_OK);
	assert_string_equal(o.experiment, "exchange-5");
	assert_string_equal(o.output, ".");
	assert_int_equal(o.measure.seed, 3);
	assert_true(o.quick);
	assert_int_equal(parse(&o, "sim --experiment exchange-5 --output /tmp"), TOOL_OK);
	assert_string_equal(o.output, "/tmp");
	assert_false(o.quick);
}

static void parse__refused(void **state)
{
	static const char *const bad[] = {
		"sim",
		"sim alltoall",
		"sim alltoall --shape 4 --topology x",
		"sim pingpong --shape 4",
		"sim stream --shape 4",
		"sim dance --shape 4",
		"sim alltoall allgather --shape 4",
		"sim alltoall --shape 4 --wrong",
		"sim alltoall --shape",
		"sim alltoall --shape 4 --switch magic",
		"sim alltoall --shape 4 --root-switch magic",
		"sim alltoall --shape 4 --root-switch input:20",
		"sim alltoall --shape 4 --root-switch shared:0",
		"sim alltoall --shape 4 --root-switch shared:",
		"sim alltoall --shape 4 --switch dynamic --alpha 0",
		"sim alltoall --shape 4 --switch shared --alpha 50",
		"sim alltoall --shape 4 --rate fast",
		"sim alltoall --shape 4 --rate 0",
		"sim alltoall --shape 4 --buffer -1",
		"sim alltoall --shape 4 --latency",
		"sim alltoall --shape 4 --latency 1hour",
		"sim alltoall --shape 4 --latency -1us",
		"sim alltoall --shape 4 --overheads 1us,2us",
		"sim alltoall --shape 4 --overheads 1us,2us,3us,4us",
		"sim alltoall --shape 4 --jitter 1us",
		"sim alltoall --shape 4 --jitter 1us:2000000",
		"sim alltoall --shape 4 --loss 1000001",
		"sim alltoall --shape 4 --local 0",
		"sim alltoall --shape 4 --sizes",
		"sim alltoall --shape 4 --sizes 1q",
		"sim alltoall --shape 4 --algorithm ring",
		"sim alltoall --shape 4 --permutation random",
		"sim alltoall --shape 4 --contention-aware maybe",
		"sim alltoall --shape 4 --window 0",
		"sim alltoall --shape 4 --iterations 0",
		"sim barrier --shape 4 --sizes 1k",
		"sim alltoall --shape 4 --sizes 1k --pcap x",
		"sim alltoall --shape 4 --sizes 1k --port s1-h0",
		"sim alltoall --shape 4 --sizes 1k,2k --trace x",
		"sim alltoall --shape 4 --sizes 1k --algorithm all --trace x",
		"sim alltoall --shape 4 --sizes 1k --algorithm shuffle,linear --pcap x --port s1-h0",
		"sim alltoall --shape 4 --lab --cut-through",
		"sim alltoall --shape 4 --quick",
		"sim alltoall --shape 4 --output x",
		"sim alltoall --experiment exchange-5",
		"sim --experiment exchange-5 --shape 4",
		"sim --experiment exchange-5 --topology x",
		"sim --experiment exchange-5 --loss 5",
		"sim --switch input --experiment exchange-5",
		"sim --experiment exchange-5 --sizes 1k",
		"sim --experiment exchange-5 --algorithm linear",
		"sim --experiment exchange-5 --json",
		"sim --experiment exchange-5 --csv x",
		"sim --experiment exchange-5 --trace x",
		"sim --experiment exchange-5 --pcap x --port s1-h0",
		"sim --experiment exchange-5 --verify",
		"sim --experiment exchange-5 --iterations 2",
		"sim --experiment exchange-5 --local 2",
		"sim --experiment exchange-5 --window 4",
		"sim --experiment exchange-5 --rate 1gbit",
		"sim --experiment exchange-5 --output",
		"sim --experiment exchange-5 --output --quick",
		"sim alltoall --shape --sizes 1k",
		"sim alltoall --shape 4 --csv=",
		"sim alltoall --shape 4 --sizes 1k --trace=",
		"sim alltoall --shape 4 --sizes 1k --trace x --csv x",
		"sim alltoall --shape 4 --sizes 1k --trace x --pcap x --port s1-h0",
		"sim alltoall --topology x --csv x",
		"sim alltoall --shape 4 --duplicate 100001",
	};
	struct sim_options o;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (parse(&o, bad[i]) != TOOL_USAGE) {
			fail_msg("taken: %s", bad[i]);
		}
	}
}

static void sim_parse_time__units(void **state)
{
	static const struct {
		const char *text;
		cn_time ns;
	} good[] = {
		{ "0", 0 },
		{ "500ns", 500 },
		{ "2.5us", 2500 },
		{ "1ms", 1000000 },
		{ "0.001ms", 1000 },
		{ "1.0000000001s", 1000000000 },
		{ "60s", 60000000000u },
		{ "0.9ns", 0 },
		{ "60000ms", 60000000000u },
	};
	static const char *const bad[] = {
		"",
		".",
		"5",
		"0.5",
		"us",
		".5us",
		"1.us",
		"1.5.5us",
		"-1",
		"+1",
		"1 us",
		"1m",
		"1US",
		"0x10",
		"61s",
		"60.1s",
		"60001ms",
		"99999999999999999999",
		"18446744073709551617ns",
	};
	cn_time ns;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ns = 1;
		if (sim_parse_time(good[i].text, &ns, NULL) != COLLNET_OK || ns != good[i].ns) {
			fail_msg("%s: %llu ns", good[i].text, (unsigned long long)ns);
		}
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ns = 7;
		if (sim_parse_time(bad[i], &ns, NULL) != COLLNET_EINVAL || ns != 7) {
			fail_msg("taken: %s", bad[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__network),	 cmocka_unit_test(parse__hosts_and_faults),
		cmocka_unit_test(parse__what_to_run),	 cmocka_unit_test(parse__defaults),
		cmocka_unit_test(parse__experiment),	 cmocka_unit_test(parse__refused),
		cmocka_unit_test(sim_parse_time__units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
