/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gathers back to back on a simulated cluster: the root's link is busy, and no port overflows, with
 * more nodes than a port holds frames, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/sim/core/job.h"

#define RATE 20000000u

struct run {
	uint64_t drops, resent;
	double seconds;
};

static uint64_t resent(struct cn_sim *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < cn_sim_hosts(s); i++) {
		struct collnet_stats one = { .size = sizeof(one) };

		cn_engine_stats(cn_sim_engine(s, i), &one, false);
		sum += one.data_resent;
	}
	return sum;
}

/* `times` gathers on hosts of 20 Mbit/s, whose ports hold `buffer` frames; each byte is checked. */
static struct run run(const char *shape, uint32_t buffer, const char *algorithm, uint64_t bytes,
		      uint32_t times, bool aware)
{
	struct cn_job_config jc = { .local = 1, .bytes = bytes };
	struct cn_coll_args a = { .op = CN_OP_GATHER,
				  .algorithm = algorithm,
				  .bytes = bytes,
				  .root = 1,
				  .deadline = 60000 * CN_MS };
	struct cn_sim_config config;
	struct cn_sim_totals before, after;
	struct cn_job_result r;
	struct cn_err err = { 0 };
	struct cn_topo *topo;
	struct cn_sim *s;
	struct cn_job *j;
	struct run out = { 0 };
	cn_time from;

	assert_int_equal(cn_topo_shape(shape, RATE, buffer, 10 * RATE, buffer, &topo, &err), 0);
	cn_sim_config_init(&config);
	config.topo = topo;
	config.topology_unaware = !aware;
	config.engine.node.max_peers = 64;
	assert_int_equal(cn_sim_new(&config, &s, &err), COLLNET_OK);
	assert_int_equal(cn_job_new(s, &jc, &j, &err), COLLNET_OK);
	assert_int_equal(cn_job_join(j, 20000 * CN_MS, &err), COLLNET_OK);
	cn_sim_totals(s, &before);
	out.resent -= resent(s);
	from = cn_sim_now(s);
	if (cn_job_repeat(j, &a, times, 600000 * CN_MS, NULL, NULL, &r, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	out.seconds = (double)(cn_sim_now(s) - from) / 1e9;
	cn_sim_totals(s, &after);
	assert_int_equal(r.ended, cn_job_ranks(j));
	assert_int_equal(r.wrong, 0);
	out.drops = after.drops - before.drops;
	out.resent += resent(s);
	cn_job_free(j);
	cn_sim_free(s);
	cn_topo_free(topo);
	return out;
}

/* What the root's link needs for the frames of `times` gathers, over what they took. */
static double efficiency(const struct run *r, uint32_t others, uint64_t bytes, uint32_t times)
{
	const uint64_t frames = (bytes + 1475) / 1476;

	return others * times * (double)(bytes + frames * 62) * 8 / RATE / r->seconds;
}

static void gather_windowed__back_to_back(void **state)
{
	static const struct {
		const char *shape;
		uint32_t others, buffer;
		uint64_t bytes;
		uint32_t times;
	} what[] = { { "16", 15, 43, 1024, 40 }, { "8x2", 15, 43, 1024, 40 },
		     { "16", 15, 43, 16384, 4 }, { "16", 15, 8, 1024, 40 },
		     { "30", 29, 24, 3000, 5 },	 { "16x3", 47, 43, 1024, 20 } };

	(void)state;
	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		struct run r = run(what[i].shape, what[i].buffer, "windowed", what[i].bytes,
				   what[i].times, true);
		double e = efficiency(&r, what[i].others, what[i].bytes, what[i].times);

		print_message("%s, %u frames, %u bytes: %.1f %%\n", what[i].shape, what[i].buffer,
			      (unsigned)what[i].bytes, 100 * e);
		assert_int_equal(r.drops, 0);
		/* The wire-up knows no windows: what it loses at such ports may still be resent. */
		assert_true(r.resent == 0 || what[i].buffer < 40);
		assert_true(e > 0.95);
	}
}

/* Without a topology, ports are taken for such of 43 frames. */
static void gather_windowed__unknown_network(void **state)
{
	struct run r = run("8x2", 43, NULL, 1024, 40, false);

	(void)state;
	assert_int_equal(r.drops, 0);
	assert_true(efficiency(&r, 15, 1024, 40) > 0.95);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gather_windowed__back_to_back),
		cmocka_unit_test(gather_windowed__unknown_network),
	};

	return cmocka_run_group_tests_name("gather", tests, NULL, NULL);
}
