/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcasts: their schedules proved by the checker on many networks, from every root; phases; and
 * predicted times against a clock that is stepped message by message.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/plan/check.h"
#include "topo_text.h"
#include "bcast_team.h"

#define NALGS 5

static const uint8_t ids[NALGS] = { 16, 17, 18, 19, 20 };

static cn_bcast_builder *const builders[NALGS] = {
	cn_bcast_smp, cn_bcast_chain, cn_bcast_binary, cn_bcast_kary, cn_bcast_binomial,
};

/* ---- teams on networks ---------------------------------------------------------------------- */

/* A chain of switches with the given numbers of hosts, or a star around a switch without any. */
static struct cn_topo *row_of(const uint32_t *hosts, uint32_t n, bool star)
{
	char text[8192];
	size_t at = (size_t)snprintf(text, sizeof(text), "switch hub\n");
	uint32_t h = 0;

	for (uint32_t i = 0; i < n; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "switch s%u\n", i);
		if (star || i == 0) {
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "link s%u hub rate 1gbit\n", i);
		} else {
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "link s%u s%u rate 1gbit\n", i, i - 1);
		}
		for (uint32_t k = 0; k < hosts[i]; k++, h++) {
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "host h%u\nlink h%u s%u rate 1gbit\n", h, h, i);
		}
	}
	return topo_bytes(text, at);
}

/* Plans all nodes; the checker proves what the row guarantees. Returns the phases. */
static uint32_t prove(const struct bcast_team *t, const struct cn_plan *p,
		      struct cn_check_report *report)
{
	const struct cn_algorithm *a = cn_algorithm_by_id(CN_OP_BCAST, p->algorithm);
	struct cn_sched s = { 0 };
	struct cn_err err = { 0 };
	struct cn_check *c;
	uint32_t phases = 0;

	assert_non_null(a);
	assert_int_equal(cn_check_new(&t->l, p, &c, &err), COLLNET_OK);
	for (uint32_t b = 0; b < t->l.nnodes; b++) {
		if (cn_sched_plan(&t->l, p, b, &s, &err) || cn_check_add(c, b, &s, &err)) {
			fail_msg("%s, node %u of %u, root %u: %s", a->name, b, t->l.nnodes, p->root,
				 err.text);
		}
		assert_true(b == 0 || s.phases == phases);
		phases = s.phases;
	}
	if (cn_check_run(c, a->guarantees, report, &err)) {
		fail_msg("%s on %u nodes, root %u, %llu bytes by %llu: %s", a->name, t->l.nnodes,
			 p->root, (unsigned long long)p->bytes, (unsigned long long)p->segment,
			 err.text);
	}
	cn_check_free(c);
	cn_sched_reset(&s);
	return phases;
}

/* Every algorithm from the given root, with several lengths and segments (or one of them). */
static void prove_root(const struct bcast_team *t, uint32_t root, bool all)
{
	static const struct {
		uint64_t bytes, segment;
	} sizes[] = { { 0, 0 }, { 1, 0 }, { 5, 2 }, { 1000, 99 }, { 100000, 0 }, { 7, 100 } };

	for (size_t z = 0; z < sizeof(sizes) / sizeof(sizes[0]); z++) {
		for (int i = 0; i < NALGS && (all || (z + root) % 4 == 0); i++) {
			struct cn_check_report report;
			struct cn_plan p = { .op = CN_OP_BCAST,
					     .algorithm = ids[i],
					     .bytes = sizes[z].bytes,
					     .segment = sizes[z].segment,
					     .root = root };

			prove(t, &p, &report);
			if (sizes[z].segment > 0 && sizes[z].bytes > sizes[z].segment) {
				uint64_t segments = (p.bytes - 1) / p.segment + 1;

				assert_int_equal(report.messages, segments * (t->l.nnodes - 1));
			}
		}
	}
}

static void cn_plan_bcast__every_root_of_shapes(void **state)
{
	static const char *const shapes[] = { "1", "2", "5", "8x2", "2x8", "4x4", "1x5" };
	static const uint32_t unequal[] = { 1, 7, 2, 0, 4 }, ones[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]) + 4; i++) {
		size_t n = sizeof(shapes) / sizeof(shapes[0]);
		struct cn_topo *topo = i < n	   ? bcast_shape(shapes[i])
				       : i < n + 2 ? row_of(unequal, 5, i == n)
						   : row_of(ones, 9, i == n + 2);
		struct bcast_team t;

		bcast_team(&t, topo, i % 2 ? 3 : 1);
		for (uint32_t root = 0; root < t.l.nranks; root++) {
			prove_root(&t, root, t.l.nnodes < 9);
		}
		bcast_team_done(&t);
	}
}

static void cn_plan_bcast__random_networks(void **state)
{
	(void)state;
	for (int i = 0; i < 150; i++) {
		struct bcast_team t;

		bcast_team(&t, bcast_random_topo(16, i % 10 == 0 ? 64 : 20), 1 + i % 3);
		prove_root(&t, bcast_below(t.l.nranks), true);
		bcast_team_done(&t);
	}
}

/* ---- phases --------------------------------------------------------------------------------- */

static void cn_plan_bcast__phases(void **state)
{
	struct cn_check_report report;
	struct cn_plan p = { .op = CN_OP_BCAST, .bytes = 1000, .segment = 100, .root = 3 };
	struct bcast_team t;

	(void)state;
	bcast_team(&t, bcast_shape("8x4"), 1);
	p.algorithm = 17;
	/* A segment a phase. */
	assert_int_equal(prove(&t, &p, &report), 31 + 9);
	assert_int_equal(report.link_load, 1);
	p.algorithm = 18;
	/* Two phases a segment. */
	assert_int_equal(prove(&t, &p, &report), bcast_height(&t, 3, 2) + 2 * 9);
	assert_int_equal(report.link_load, 1);
	assert_true(bcast_height(&t, 3, 2) < 20);
	p.algorithm = 20;
	assert_int_equal(prove(&t, &p, &report), 5 * 10);
	p.segment = 0;
	assert_int_equal(prove(&t, &p, &report), 5);
	assert_int_equal(report.phases, report.bound);
	bcast_team_done(&t);
}

/* A tree that sends everything over one link needs a phase for each message, or channels. */
static void cn_bcast_colour__counts_channels(void **state)
{
	static const char text[] = "switch a\nswitch b\nlink a b rate 1gbit channels %u\n"
				   "host h0\nhost h1\nhost h2\nhost h3\nhost h4\nhost h5\n"
				   "link h0 a rate 1gbit\nlink h1 a rate 1gbit\n"
				   "link h2 a rate 1gbit\nlink h3 b rate 1gbit\n"
				   "link h4 b rate 1gbit\nlink h5 b rate 1gbit\n";
	/* h0 serves h1 and h2, and each of the three one of b's. */
	static const uint32_t seq[] = { 1, 2, 3, 4, 5 }, parent[] = { 0, 0, 0, 0, 1, 2 };
	static const uint32_t want[] = { 3, 3, 3 };

	(void)state;
	for (uint32_t channels = 1; channels <= 3; channels++) {
		char net[512];
		int len = snprintf(net, sizeof(net), text, channels);
		struct bcast_team t;
		struct cn_bcast b;

		bcast_team(&t, topo_bytes(net, (size_t)len), 1);
		assert_int_equal(cn_bcast_init(&b, 6, 0, NULL), COLLNET_OK);
		memcpy(b.parent + 1, parent + 1, 5 * sizeof(*parent));
		assert_int_equal(cn_bcast_arrange(&b, seq, NULL), COLLNET_OK);
		assert_int_equal(cn_bcast_segment(&b, 100, 10, NULL), COLLNET_OK);
		assert_int_equal(cn_bcast_colour(&b, t.tree, NULL), COLLNET_OK);
		assert_int_equal(b.period, want[channels - 1]);
		/* h1 has it after phase 0 and h2 after phase 1: both could send in phase 2, as
		 * h0 does. With a channel each, they do. */
		assert_int_equal(b.offset[3], 2);
		assert_int_equal(b.offset[4] + b.offset[5], channels == 1   ? 1 + 3
							    : channels == 2 ? 1 + 2
									    : 1 + 2);
		cn_bcast_done(&b);
		bcast_team_done(&t);
	}
}

/* ---- the model ------------------------------------------------------------------------------ */

/* The last arrival when every node sends segment after segment, child after child. */
static uint64_t stepped(const struct cn_bcast *b, const struct cn_tree *t)
{
	uint64_t *at = calloc((size_t)b->n * b->segments, sizeof(*at)), last = 0;

	assert_non_null(at);
	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t v = b->order[i];
		uint64_t free_at = 0;

		for (uint32_t s = 0; s < b->segments; s++) {
			uint64_t have = at[(size_t)v * b->segments + s];

			for (uint32_t k = 0; k < b->nchildren[v]; k++) {
				uint32_t c = b->order[b->first[v] + k];
				uint64_t busy, total, start = have > free_at ? have : free_at;

				cn_bcast_cost(&cn_cost_default, t, v, c, b->segment, &busy, &total);
				at[(size_t)c * b->segments + s] = start + total;
				free_at = start + busy;
			}
			last = have > last ? have : last;
		}
	}
	free(at);
	return last;
}

/* Whether a segment's messages share a link, which stepping does not count. */
static bool links_shared(const struct cn_bcast *b, const struct cn_tree *t)
{
	for (uint32_t d = 2; d < 2 * t->n; d++) {
		if (b->load[d] > cn_tree_channels(t, d)) {
			return true;
		}
	}
	return false;
}

static void cn_bcast_time__is_what_stepping_gives(void **state)
{
	uint32_t equal = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		uint32_t k = (uint32_t)i % 3, root;
		struct cn_bcast b;
		struct bcast_team t;

		bcast_team(&t, bcast_random_topo(8, 30), 1);
		root = bcast_below(t.l.nnodes);
		assert_int_equal(builders[1 + k](&t.l, root, 10 * 1476, 1476, &cn_cost_default, &b,
						 NULL),
				 COLLNET_OK);
		assert_int_equal(b.segments, 10);
		if (links_shared(&b, t.tree)) {
			assert_true(b.time >= stepped(&b, t.tree));
		} else {
			assert_int_equal(b.time, stepped(&b, t.tree));
			equal++;
		}
		cn_bcast_done(&b);
		bcast_team_done(&t);
	}
	print_message("%u of 200 without a shared link\n", equal);
	assert_true(equal >= 50);
}

/* No other segment of those that are tried is better; and a longer message takes longer. */
static void cn_bcast_choose__the_best(void **state)
{
	uint64_t before = 0;
	struct bcast_team t;

	(void)state;
	bcast_team(&t, bcast_shape("8x4"), 1);
	for (uint64_t bytes = 1; bytes <= 4 << 20; bytes = bytes * 3 + 1) {
		struct cn_bcast b;

		assert_int_equal(cn_bcast_binary(&t.l, 0, bytes, 0, &cn_cost_default, &b, NULL),
				 COLLNET_OK);
		for (uint64_t segment = 1476; segment < bytes; segment *= 2) {
			struct cn_bcast other;

			assert_int_equal(cn_bcast_binary(&t.l, 0, bytes, segment, &cn_cost_default,
							 &other, NULL),
					 COLLNET_OK);
			assert_true(b.time <= other.time);
			cn_bcast_done(&other);
		}
		assert_true(b.time >= before);
		before = b.time;
		cn_bcast_done(&b);
	}
	bcast_team_done(&t);
}

/* Binomial's messages of one phase share what they have in common. */
static void cn_bcast_time__contention(void **state)
{
	static const uint32_t two[] = { 4, 4 };
	struct cn_bcast aligned, turned;
	struct bcast_team t;

	(void)state;
	bcast_team(&t, row_of(two, 2, false), 1);
	assert_int_equal(cn_bcast_binomial(&t.l, 0, 1 << 20, 0, &cn_cost_default, &aligned, NULL),
			 COLLNET_OK);
	/* From h1 the second and third rounds cross between the switches as well. */
	assert_int_equal(cn_bcast_binomial(&t.l, 3, 1 << 20, 0, &cn_cost_default, &turned, NULL),
			 COLLNET_OK);
	assert_true(turned.time > aligned.time);
	cn_bcast_done(&aligned);
	cn_bcast_done(&turned);
	bcast_team_done(&t);
}

/* The five algorithms on 8x4; and what should be best is. */
static void cn_bcast_predict__eight_by_four(void **state)
{
	static const uint64_t sizes[] = { 1 << 10, 64 << 10, 1 << 20 };
	struct bcast_team t;

	(void)state;
	bcast_team(&t, bcast_shape("8x4"), 1);
	for (int z = 0; z < 3; z++) {
		uint64_t time[NALGS];

		for (int i = 0; i < NALGS; i++) {
			struct cn_plan p = { .op = CN_OP_BCAST,
					     .algorithm = ids[i],
					     .bytes = sizes[z] };
			struct cn_bcast b;

			assert_int_equal(cn_bcast_predict(&t.l, &p, &cn_cost_default, &b, NULL),
					 COLLNET_OK);
			time[i] = b.time;
			printf("8x4, %7llu bytes, %-8s: %8.1f us, segments of %llu, period %u\n",
			       (unsigned long long)sizes[z],
			       cn_algorithm_by_id(CN_OP_BCAST, ids[i])->name, (double)b.time / 1e3,
			       (unsigned long long)b.segment, b.period);
			cn_bcast_done(&b);
		}
		for (int i = 1; i < NALGS && z == 0; i++) {
			assert_true(time[0] <= time[i]); /* short: smp */
		}
		assert_true(time[0] <= time[4]);
		assert_true(z < 2 || time[1] < time[4] / 2); /* long: the chain, not binomial */
	}
	bcast_team_done(&t);
}

/* ---- refusals ------------------------------------------------------------------------------- */

static void cn_plan_bcast__refuses_too_many_segments(void **state)
{
	struct cn_plan p = { .op = CN_OP_BCAST, .bytes = 1 << 20, .segment = 1 };
	struct cn_sched s = { 0 };
	struct cn_err err;
	struct bcast_team t;

	(void)state;
	bcast_team(&t, bcast_shape("3"), 1);
	for (int i = 0; i < NALGS; i++) {
		p.algorithm = ids[i];
		assert_int_equal(cn_sched_plan(&t.l, &p, 1, &s, &err), COLLNET_ELIMIT);
		assert_non_null(strstr(err.text, "at least 16 bytes"));
		assert_int_equal(s.n, 0);
	}
	/* Without a network only the baseline plans. */
	t.l.tree = NULL;
	p.segment = 0;
	for (int i = 0; i < NALGS; i++) {
		p.algorithm = ids[i];
		assert_int_equal(cn_sched_plan(&t.l, &p, 1, &s, &err),
				 ids[i] == 20 ? COLLNET_OK : COLLNET_ETOPO);
	}
	cn_sched_reset(&s);
	bcast_team_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_plan_bcast__every_root_of_shapes),
		cmocka_unit_test(cn_plan_bcast__random_networks),
		cmocka_unit_test(cn_plan_bcast__phases),
		cmocka_unit_test(cn_bcast_colour__counts_channels),
		cmocka_unit_test(cn_bcast_time__is_what_stepping_gives),
		cmocka_unit_test(cn_bcast_time__contention),
		cmocka_unit_test(cn_bcast_choose__the_best),
		cmocka_unit_test(cn_bcast_predict__eight_by_four),
		cmocka_unit_test(cn_plan_bcast__refuses_too_many_segments),
	};

	printf("seed %llu\n", (unsigned long long)bcast_seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
