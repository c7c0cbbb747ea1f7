/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The total exchange as a schedule: through the checker on random trees with channels, with several
 * ranks a node; its four ways of filling phases; the paper's own messages on binary trees.
 * (test_fat_tree_exchange.c counts its steps.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/plan/check.h"
#include "sched/alltoall/fattree.h"
#include "packet_stepper.h"

#define NODES 40u

static uint64_t seed = 0x95;

struct team {
	struct cn_topo *topo;
	struct cn_tree *tree;
	struct cn_layout layout;
	uint32_t node_of[3 * NODES], first[NODES + 1], ranks[3 * NODES];
};

/* most ranks a node, dealt out unevenly. */
static void lay_out(struct team *m, uint32_t most)
{
	uint32_t n = m->tree->nhosts, nranks = 0;

	assert_true(n <= NODES);
	for (uint32_t b = 0; b < n; b++) {
		m->first[b] = nranks;
		for (uint32_t i = 1 + cn_below(&seed, most); i > 0; i--) {
			m->node_of[nranks] = b;
			m->ranks[nranks] = nranks;
			nranks++;
		}
	}
	m->first[n] = nranks;
	m->layout = (struct cn_layout){ .nranks = nranks,
					.nnodes = n,
					.node_of = m->node_of,
					.first = m->first,
					.ranks = m->ranks,
					.tree = m->tree };
}

static void done(struct team *m)
{
	cn_tree_free(m->tree);
	cn_topo_free(m->topo);
}

static void check(const struct team *m, struct cn_check_report *report)
{
	struct cn_plan p = { .op = CN_OP_ALLTOALL, .bytes = 3 };
	struct cn_sched s = { 0 };
	struct cn_err err = { 0 };
	struct cn_check *c;

	p.algorithm = cn_algorithm_find(CN_OP_ALLTOALL, "fattree")->id;
	assert_int_equal(cn_check_new(&m->layout, &p, &c, &err), COLLNET_OK);
	for (uint32_t node = 0; node < m->layout.nnodes; node++) {
		if (cn_sched_plan(&m->layout, &p, node, &s, &err) != COLLNET_OK ||
		    cn_check_add(c, node, &s, &err) != COLLNET_OK) {
			fail_msg("%s", err.text);
		}
	}
	if (cn_check_run(c, CN_GUARANTEE_LINKS, report, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(s.phases, report->phases);
	cn_check_free(c);
	cn_sched_reset(&s);
}

static void alltoall_exchange__free_links(void **state)
{
	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint32_t k = 0; k < 200; k++) {
		struct cn_check_report report;
		struct team m;

		st_random(1 + cn_below(&seed, k % 20 == 0 ? NODES : 16), 1 + cn_below(&seed, 10),
			  1 + cn_below(&seed, 6), &seed, &m.topo, &m.tree);
		lay_out(&m, 1 + k % 3);
		check(&m, &report);
		assert_true(report.phases >= report.bound);
		done(&m);
	}
}

/* One switch: n - 1 phases, the bound. */
static void alltoall_exchange__star_is_optimal(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= NODES; n++) {
		struct cn_check_report report;
		struct team m;

		st_random(n, 1, 1, &seed, &m.topo, &m.tree);
		lay_out(&m, 1);
		check(&m, &report);
		assert_int_equal(report.phases, n - 1);
		done(&m);
	}
}

/* The whole exchange: phase of every message, [from * n + to]. */
static uint32_t *phases_of(const struct cn_tree *t, struct cn_fattree **x)
{
	uint32_t n = t->nhosts, *to = calloc((size_t)n * n + n, sizeof(*to));

	assert_non_null(to);
	assert_int_equal(cn_fattree_new(t, x, NULL), COLLNET_OK);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *from = to + (size_t)n * n;

		assert_int_equal(cn_fattree_node(*x, i, to + (size_t)i * n, from, NULL),
				 COLLNET_OK);
		for (uint32_t j = 0; j < i; j++) { /* both ends agree */
			assert_int_equal(to[(size_t)j * n + i], from[j]);
		}
	}
	return to;
}

/* Section 5, "Phase i for CBFTs": in period k, message l, node k of a side sends to node l. */
static void exchange__cbft_messages(void **state)
{
	(void)state;
	for (uint32_t levels = 1; levels <= 6; levels++) {
		struct cn_fattree *x;
		struct team m;
		uint32_t n = 1u << levels, *phase, start = 0;

		st_binary(levels, NULL, &m.topo, &m.tree);
		phase = phases_of(m.tree, &x);
		for (uint32_t h = levels; h >= 1; h--) {
			uint32_t half = 1u << (h - 1);

			for (uint32_t j = 0; j < n >> h; j++) {
				for (uint32_t k = 0; k < half; k++) {
					for (uint32_t l = 0; l < half; l++) {
						uint32_t a = (j << h) + k, b = (j << h) + half + l;
						uint32_t c = (j << h) + half + k, d = (j << h) + l;

						assert_int_equal(phase[a * n + b],
								 start + k * half + l);
						assert_int_equal(phase[c * n + d],
								 start + k * half + l);
					}
				}
			}
			start += half * half;
		}
		assert_int_equal(x->phases, start);
		assert_int_equal(x->share[0].method, CN_FATTREE_RING);
		cn_fattree_free(x);
		free(phase);
		done(&m);
	}
}

/* Section 5, "Phase i for EBFTs": in step l node k sends to k xor 2^(h-1) xor l. */
static void exchange__ebft_messages(void **state)
{
	static const uint32_t channels[] = { 1, 2, 4, 8, 16, 32 };

	(void)state;
	for (uint32_t levels = 1; levels <= 6; levels++) {
		struct cn_fattree *x;
		struct team m;
		uint32_t n = 1u << levels, *phase, start = 0;

		st_binary(levels, channels, &m.topo, &m.tree);
		phase = phases_of(m.tree, &x);
		for (uint32_t h = levels; h >= 1; h--) {
			for (uint32_t l = 0; l < 1u << (h - 1); l++) {
				for (uint32_t k = 0; k < n; k++) {
					uint32_t to = k ^ (1u << (h - 1)) ^ l;

					assert_int_equal(phase[k * n + to], start + l);
				}
			}
			start += 1u << (h - 1);
		}
		assert_int_equal(x->phases, start);
		assert_true(levels == 1 || x->share[0].method == CN_FATTREE_XOR);
		cn_fattree_free(x);
		free(phase);
		done(&m);
	}
}

/* Which method regular and irregular trees take, and that colouring meets its bound. */
static void exchange__ways(void **state)
{
	static const struct {
		const char *text;
		enum cn_fattree_method method;
		uint32_t phases; /* of the root's share */
	} cases[] = {
		/* Two switches of 4 hosts, 3 channels: ceil(16 / 3). */
		{ "link s1 s0 rate none channels 3\nlink s2 s0 rate none channels 3\n"
		  "4 s1\n4 s2\n",
		  CN_FATTREE_DIAGONAL, 6 },
		/* Five and three hosts: 15 messages, two at a time. */
		{ "link s1 s0 rate none channels 2\nlink s2 s0 rate none channels 2\n"
		  "5 s1\n3 s2\n",
		  CN_FATTREE_DIAGONAL, 8 },
		/* One channel: the ring; 4 hosts against 2 + 1. */
		{ "link s1 s0 rate none\nlink s2 s0 rate none\n4 s1\n2 s2\n1 s0\n", CN_FATTREE_RING,
		  12 },
		/* A bundle beside single hosts, which must not wait for each other: 8 * 8 / 4. */
		{ "link s1 s0 rate none channels 4\n8 s1\n8 s0\n", CN_FATTREE_COLOUR, 16 },
		/* Bundles of different sizes. */
		{ "link s1 s0 rate none channels 3\nlink s2 s0 rate none channels 2\n"
		  "7 s1\n4 s2\n2 s0\n",
		  CN_FATTREE_COLOUR, 18 },
		/* Windows of 3 fit every 3 places in a row, but not where a run of pairs ends. */
		{ "link s1 s0 rate none channels 5\nlink s2 s0 rate none channels 3\n"
		  "switch s3\nlink s3 s1 rate none channels 2\n"
		  "switch s4\nlink s4 s2 rate none channels 2\n"
		  "switch s5\nlink s5 s4 rate none channels 2\n"
		  "switch s6\nlink s6 s2 rate none channels 2\n"
		  "4 s1\n1 s3\n2 s2\n3 s4\n2 s5\n3 s6\n",
		  CN_FATTREE_COLOUR, 17 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		char text[4096] = "switch s0\nswitch s1\nswitch s2\n";
		struct cn_check_report report;
		struct cn_err err = { 0 };
		struct cn_fattree *x;
		size_t at = strlen(text);
		uint32_t hosts = 0;
		struct team m;

		/* "4 s1": four hosts at s1. */
		for (const char *line = cases[k].text; *line; line = strchr(line, '\n') + 1) {
			uint32_t count;
			char sw[8];

			if (sscanf(line, "%u %7s", &count, sw) != 2) {
				at += (size_t)snprintf(text + at, sizeof(text) - at, "%.*s\n",
						       (int)(strchr(line, '\n') - line), line);
				continue;
			}
			for (; count > 0; count--, hosts++) {
				at += (size_t)snprintf(text + at, sizeof(text) - at,
						       "host h%u\nlink h%u %s rate none\n", hosts,
						       hosts, sw);
			}
		}
		if (strstr(text, "s2 ") == NULL) {
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "link s2 s0 rate none\n");
		}
		if (cn_topo_parse(text, at, "case", &m.topo, &err) != COLLNET_OK ||
		    cn_tree_make(m.topo, m.topo->hosts, hosts, CN_TOPO_NONE, &m.tree, &err) !=
			    COLLNET_OK) {
			fail_msg("%s", err.text);
		}
		lay_out(&m, 1);
		assert_int_equal(cn_fattree_new(m.tree, &x, NULL), COLLNET_OK);
		assert_int_equal(x->share[0].phases, cases[k].phases);
		assert_int_equal(x->share[0].method, cases[k].method);
		cn_fattree_free(x);
		check(&m, &report);
		done(&m);
	}
}

/* Where colouring would take too much memory, the ring does it, in its own number of phases. */
static void exchange__too_large_to_colour(void **state)
{
	char *text = malloc(1 << 16), sw[] = "s0";
	uint32_t count[] = { 90, 330, 300 }, hosts = 0;
	struct cn_fattree *x;
	struct cn_topo *topo;
	struct cn_tree *tree;
	size_t at;

	(void)state;
	assert_non_null(text);
	at = (size_t)snprintf(text, 1 << 16,
			      "switch s0\nswitch s1\nswitch s2\n"
			      "link s1 s0 rate none channels 3\nlink s2 s0 rate none channels 2\n");
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t k = 0; k < count[i]; k++, hosts++) {
			sw[1] = (char)('0' + i);
			at += (size_t)snprintf(text + at, (1 << 16) - at,
					       "host h%u\nlink h%u %s rate none\n", hosts, hosts,
					       sw);
			assert_true(at < 1 << 16);
		}
	}
	assert_int_equal(cn_topo_parse(text, at, "large", &topo, NULL), COLLNET_OK);
	assert_int_equal(cn_tree_make(topo, topo->hosts, hosts, CN_TOPO_NONE, &tree, NULL),
			 COLLNET_OK);
	assert_int_equal(cn_fattree_new(tree, &x, NULL), COLLNET_OK);
	assert_int_equal(x->share[0].method, CN_FATTREE_RING);
	assert_int_equal(x->share[0].phases, 330 * 390);
	assert_int_equal(x->phases, 330 * 390 + 329);
	cn_fattree_free(x);
	cn_tree_free(tree);
	cn_topo_free(topo);
	free(text);
}

/* A part of a cluster: the team's tree alone counts. */
static void exchange__part_of_a_cluster(void **state)
{
	struct cn_fattree *x;
	struct cn_topo *topo;
	struct cn_tree *tree;
	uint32_t hosts[3], *phase;

	(void)state;
	assert_int_equal(cn_topo_shape("4x4", 0, 0, 0, 0, &topo, NULL), COLLNET_OK);
	hosts[0] = topo->hosts[9];
	hosts[1] = topo->hosts[2];
	hosts[2] = topo->hosts[10];
	assert_int_equal(cn_tree_make(topo, hosts, 3, CN_TOPO_NONE, &tree, NULL), COLLNET_OK);
	phase = phases_of(tree, &x);
	assert_int_equal(x->phases, 2 + 1); /* two hosts against one, then those two */
	assert_int_equal(phase[0 * 3 + 2], 2);
	free(phase);
	cn_fattree_free(x);
	cn_tree_free(tree);
	cn_topo_free(topo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alltoall_exchange__free_links),
		cmocka_unit_test(alltoall_exchange__star_is_optimal),
		cmocka_unit_test(exchange__cbft_messages),
		cmocka_unit_test(exchange__ebft_messages),
		cmocka_unit_test(exchange__ways),
		cmocka_unit_test(exchange__too_large_to_colour),
		cmocka_unit_test(exchange__part_of_a_cluster),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
