/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-to-all in phases (sched/alltoall/aapc.h): the tables and figures of Faraj and Yuan, "Message
 * Scheduling for All-to-All Personalized Communication on Ethernet Switched Clusters".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aapc_oracle.h"

/* ---- a network and its phases ------------------------------------------------------------- */

/* "t0,1" for a place: the paper's names. */
static const char *paper(const struct cn_aapc *a, uint32_t place, char *text, size_t cap)
{
	snprintf(text, cap, "t%u,%u", a->subtree[place], place - a->first[a->subtree[place]]);
	return text;
}

/* ---- the paper's tables ------------------------------------------------------------------- */

static void expect_message(const struct aapc_net *n, const struct cn_aapc_message *m,
			   const char *want)
{
	char from[32], to[32], text[80];

	snprintf(text, sizeof(text), "%s -> %s", paper(n->a, m->from, from, sizeof(from)),
		 paper(n->a, m->to, to, sizeof(to)));
	assert_string_equal(text, want);
}

/* Table 1: ring scheduling, one host a subtree. t_i -> t_(i + 1 + p) at phase p. */
static void cn_aapc_start__table_1_ring_scheduling(void **state)
{
	(void)state;
	for (uint32_t k = 3; k < 12; k++) {
		char shape[8];
		struct aapc_net n;

		snprintf(shape, sizeof(shape), "%u", k);
		aapc_net_shape(&n, shape);
		assert_int_equal(n.a->k, k);
		assert_int_equal(n.a->phases, k - 1);
		for (uint32_t i = 0; i < k; i++) {
			for (uint32_t j = 0; j < k; j++) {
				if (i != j) {
					assert_int_equal(cn_aapc_start(n.a, i, j),
							 j > i ? j - i - 1 : k - 1 - (i - j));
				}
			}
			for (uint32_t p = 0; p < k - 1; p++) {
				assert_int_equal(cn_aapc_target(n.a, i, p), (i + 1 + p) % k);
			}
		}
		aapc_net_free(&n);
	}
}

/* Table 2: rotate, 6 senders and 4 receivers; the table's senders and receivers by phase. */
static void cn_aapc_rotate__table_2(void **state)
{
	static const uint8_t senders[24] = { 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5,
					     1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0 };
	static const uint8_t receivers[24] = { 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,
					       0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3 };

	(void)state;
	for (uint32_t p = 0; p < 24; p++) {
		assert_int_equal(cn_aapc_rotate(6, 12, p), senders[p]);
		assert_int_equal(p % 4, receivers[p]);
	}
}

/* Hosts of three subtrees: sizes m0 >= m1 >= m2, on switches below a root without hosts. */
static void net_sizes(struct aapc_net *n, const uint32_t *sizes, uint32_t k)
{
	char text[8192];
	size_t at = (size_t)snprintf(text, sizeof(text), "switch root\n");

	for (uint32_t i = 0; i < k; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "switch s%u\nlink root s%u rate none\n", i, i);
		for (uint32_t h = 0; h < sizes[i]; h++) {
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "host h%u.%u\nlink h%u.%u s%u rate none\n", i, h, i,
					       h, i);
		}
	}
	assert_true(at < sizeof(text));
	aapc_net_text(n, text);
}

/* Table 2 again, as step 1 has it in a whole schedule: the same senders, receivers in turn. */
static void cn_aapc_global__table_2_in_a_schedule(void **state)
{
	static const uint32_t sizes[] = { 6, 4, 4 };
	struct aapc_net n;

	(void)state;
	net_sizes(&n, sizes, 3);
	for (uint32_t j = 1; j < 3; j++) {
		uint32_t start = cn_aapc_start(n.a, 0, j), first = 0;

		for (uint32_t r = 0; r < 24; r++) {
			struct cn_aapc_message m = cn_aapc_global(n.a, 0, j, start + r);

			first = r == 0 ? m.to - n.a->first[j] : first;
			assert_int_equal(m.from, cn_aapc_rotate(6, 12, r));
			assert_int_equal(m.to - n.a->first[j], (first + r) % 4);
		}
	}
	aapc_net_free(&n);
}

/*
 * Lemma 6, and what step 1 makes of it: whichever receiver begins, every pair meets once; every
 * sender once in |M_i| steps and every receiver once in |M_j|. All sizes up to 13 x 13.
 */
static void cn_aapc_rotate__every_pair_once(void **state)
{
	(void)state;
	for (uint32_t mi = 1; mi <= 13; mi++) {
		for (uint32_t mj = 1; mj <= 13; mj++) {
			uint32_t lcm = mi;

			while (lcm % mj != 0) {
				lcm += mi;
			}
			for (uint32_t shift = 0; shift < mj; shift++) {
				bool met[13][13] = { { false } };

				for (uint32_t r = 0; r < mi * mj; r++) {
					uint32_t x = cn_aapc_rotate(mi, lcm, r);
					uint32_t y = (r + shift) % mj;

					assert_false(met[x][y]);
					met[x][y] = true;
				}
			}
		}
	}
}

/*
 * Every pair of sizes of t_0 and t_j, as whole schedules: a third subtree of |M_0| hosts keeps t_0
 * the largest. All rules hold, and the closed form of a pair's phase is the pattern's inverse.
 */
static void cn_aapc_between__all_sizes(void **state)
{
	(void)state;
	for (uint32_t m0 = 1; m0 <= 12; m0++) {
		for (uint32_t m1 = 1; m1 <= m0; m1++) {
			for (uint32_t m2 = 0; m2 <= m1; m2 = m2 == 0 ? m1 : m1 + 1) {
				uint32_t sizes[] = { m0, m1, m0, m2 };
				struct aapc_net n;

				net_sizes(&n, sizes, m2 == 0 ? 3 : 4);
				for (uint32_t x = 0; x < n.a->n; x++) {
					for (uint32_t y = 0; y < n.a->n; y++) {
						struct cn_aapc_message m, got = { 0, 0, 0 };
						uint32_t i = n.a->subtree[x], j = n.a->subtree[y];

						if (x == y) {
							continue;
						}
						m = cn_aapc_between(n.a, x, y);
						assert_true(m.phase < n.a->phases);
						if (i == j) {
							assert_true(cn_aapc_local(n.a, i, m.phase,
										  &got));
						} else {
							assert_int_equal(cn_aapc_target(n.a, i,
											m.phase),
									 j);
							got = cn_aapc_global(n.a, i, j, m.phase);
						}
						assert_memory_equal(&m, &got, sizeof(m));
					}
				}
				aapc_net_free(&n);
			}
		}
	}
}

/* Table 3: who receives in t_0 while who sends, by rounds; round r is like round r mod |M_0|. */
static void cn_aapc_mapped__table_3(void **state)
{
	(void)state;
	for (uint32_t m = 2; m < 9; m++) {
		for (uint32_t x = 0; x < m; x++) {
			assert_int_equal(cn_aapc_mapped(m, 0, x), x + 1 < m ? x + 1 : 0);
			assert_int_equal(cn_aapc_mapped(m, 1, x), x + 2 < m ? x + 2 : x + 2 - m);
			assert_int_equal(cn_aapc_mapped(m, m - 2, x), x > 0 ? x - 1 : m - 1);
			assert_int_equal(cn_aapc_mapped(m, m - 1, x), x);
			assert_int_equal(cn_aapc_mapped(m, m, x), cn_aapc_mapped(m, 0, x));
		}
	}
}

/*
 * Figure 1: the root is s1, t_0 is below s0, t_1 below s3, and t_2 is n5. The text does not say
 * where in t_0 the switch s2 is; it does not matter.
 */
static const char figure_1[] = "switch s0\nswitch s1\nswitch s2\nswitch s3\n"
			       "host n0\nhost n1\nhost n2\nhost n3\nhost n4\nhost n5\n"
			       "link n0 s0 rate 100mbit\nlink n1 s0 rate 100mbit\n"
			       "link n2 s2 rate 100mbit\nlink n3 s3 rate 100mbit\n"
			       "link n4 s3 rate 100mbit\nlink n5 s1 rate 100mbit\n"
			       "link s0 s1 rate 100mbit\nlink s0 s2 rate 100mbit\n"
			       "link s1 s3 rate 100mbit\n";

/* Section 4.2's figures for Figure 1, and Figure 3. */
static void cn_aapc_start__figure_3(void **state)
{
	struct aapc_net n;

	(void)state;
	aapc_net_text(&n, figure_1);
	assert_string_equal(n.topo->vertices[cn_aapc_root(n.tree)].name, "s1");
	assert_int_equal(n.a->k, 3);
	assert_int_equal(cn_aapc_size(n.a, 0), 3);
	assert_int_equal(cn_aapc_size(n.a, 1), 2);
	assert_int_equal(cn_aapc_size(n.a, 2), 1);
	for (uint32_t x = 0; x < 6; x++) {
		char want[8];

		snprintf(want, sizeof(want), "n%u", x);
		assert_string_equal(aapc_host_name(&n, x), want);
	}
	assert_int_equal(n.a->phases, 9);
	assert_int_equal(cn_aapc_start(n.a, 0, 1), 0);
	assert_int_equal(cn_aapc_start(n.a, 0, 2), 6);
	assert_int_equal(cn_aapc_start(n.a, 1, 2), 0);
	assert_int_equal(cn_aapc_start(n.a, 1, 0), 3);
	assert_int_equal(cn_aapc_start(n.a, 2, 0), 0);
	assert_int_equal(cn_aapc_start(n.a, 2, 1), 7);
	assert_int_equal(cn_aapc_target(n.a, 1, 2), CN_TOPO_NONE);
	aapc_net_free(&n);
}

/* Table 4, message by message: global ones out of t_0, t_1, t_2, then local ones in them. */
static const char *const table_4[9][6] = {
	{ "t0,0 -> t1,1", "t1,0 -> t2,0", "t2,0 -> t0,1", "t0,1 -> t0,0", NULL, NULL },
	{ "t0,1 -> t1,0", "t1,1 -> t2,0", "t2,0 -> t0,2", "t0,2 -> t0,1", NULL, NULL },
	{ "t0,2 -> t1,1", NULL, "t2,0 -> t0,0", "t0,0 -> t0,2", NULL, NULL },
	{ "t0,0 -> t1,0", "t1,0 -> t0,2", NULL, "t0,2 -> t0,0", NULL, NULL },
	{ "t0,1 -> t1,1", "t1,0 -> t0,0", NULL, "t0,0 -> t0,1", "t1,1 -> t1,0", NULL },
	{ "t0,2 -> t1,0", "t1,0 -> t0,1", NULL, "t0,1 -> t0,2", NULL, NULL },
	{ "t0,0 -> t2,0", "t1,1 -> t0,0", NULL, NULL, NULL, NULL },
	{ "t0,1 -> t2,0", "t1,1 -> t0,1", "t2,0 -> t1,0", NULL, "t1,0 -> t1,1", NULL },
	{ "t0,2 -> t2,0", "t1,1 -> t0,2", "t2,0 -> t1,1", NULL, NULL, NULL },
};

static void cn_aapc__table_4(void **state)
{
	struct aapc_net n;

	(void)state;
	aapc_net_text(&n, figure_1);
	for (uint32_t p = 0; p < 9; p++) {
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t j = cn_aapc_target(n.a, i, p);
			struct cn_aapc_message m;

			assert_int_equal(j != CN_TOPO_NONE, table_4[p][i] != NULL);
			if (j != CN_TOPO_NONE) {
				m = cn_aapc_global(n.a, i, j, p);
				expect_message(&n, &m, table_4[p][i]);
			}
			assert_int_equal(cn_aapc_local(n.a, i, p, &m), table_4[p][3 + i] != NULL);
			if (table_4[p][3 + i] != NULL) {
				expect_message(&n, &m, table_4[p][3 + i]);
			}
		}
	}
	aapc_check_all(&n);
	aapc_net_free(&n);
}

/*
 * Figure 5: 24 machines on one switch; four switches of 8, as a star around the first, and as a
 * line. The text does not draw them; loads of 192 and 256 fit the times of Figures 7 and 8, whose
 * ratio is 1.32 for the longest messages.
 */
static void check_topology(const char *name, uint32_t phases, const char *links)
{
	uint32_t pairs = 0, kept;
	struct aapc_oracle *b;
	struct aapc_net n;

	if (links == NULL) {
		aapc_net_shape(&n, "24");
	} else {
		char text[4096];
		size_t at = 0;

		for (uint32_t h = 0; h < 32; h++) {
			if (h % 8 == 0) {
				at += (size_t)snprintf(text + at, sizeof(text) - at, "switch s%u\n",
						       h / 8);
			}
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "host n%u\nlink n%u s%u rate 100mbit\n", h, h,
					       h / 8);
		}
		snprintf(text + at, sizeof(text) - at, "%s", links);
		aapc_net_text(&n, text);
	}
	assert_int_equal(n.a->phases, phases);
	b = aapc_oracle(&n);
	aapc_check_phases(b);
	kept = aapc_check_syncs(b);
	for (uint32_t i = 0; i < b->n; i++) {
		for (uint32_t j = i + 1; j < b->n; j++) {
			pairs += b->edge[i][j] && b->m[i].from != b->m[j].from;
		}
	}
	print_message("topology (%s): %u phases; pairs that share a link %u, synchronisations %u\n",
		      name, phases, pairs, kept);
	assert_true(kept <= pairs);
	free(b);
	aapc_net_free(&n);
}

static void cn_aapc__figure_5_topologies(void **state)
{
	(void)state;
	check_topology("a", 23, NULL);
	check_topology("b", 24 * 8,
		       "link s0 s1 rate 100mbit\nlink s0 s2 rate 100mbit\n"
		       "link s0 s3 rate 100mbit\n");
	check_topology("c", 16 * 16,
		       "link s0 s1 rate 100mbit\nlink s1 s2 rate 100mbit\n"
		       "link s2 s3 rate 100mbit\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_aapc_start__table_1_ring_scheduling),
		cmocka_unit_test(cn_aapc_rotate__table_2),
		cmocka_unit_test(cn_aapc_global__table_2_in_a_schedule),
		cmocka_unit_test(cn_aapc_rotate__every_pair_once),
		cmocka_unit_test(cn_aapc_between__all_sizes),
		cmocka_unit_test(cn_aapc_mapped__table_3),
		cmocka_unit_test(cn_aapc_start__figure_3),
		cmocka_unit_test(cn_aapc__table_4),
		cmocka_unit_test(cn_aapc__figure_5_topologies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
