/* SPDX-License-Identifier: BSD-2-Clause */
/* Contention-aware numbering: Eq. 5 for equal switches, an even spread for unequal ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "sched/sched.h"
#include "topo/topo.h"

#define N_MAX 1100

static struct cn_topo *shape(const char *text)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };

	if (cn_topo_shape(text, 20000000, 43, 200000000, 45, &t, &err) != COLLNET_OK) {
		fail_msg("%s: %s", text, err.text);
	}
	return t;
}

/* A tree of switches s0 .. with the given numbers of hosts under a root. */
static struct cn_topo *unequal(const uint32_t *hosts, uint32_t switches)
{
	static char text[65536];
	size_t len = 0;
	uint32_t h = 0;
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };

	len += (size_t)snprintf(text + len, sizeof(text) - len, "switch root\n");
	for (uint32_t s = 0; s < switches; s++) {
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"switch s%u\nlink s%u root rate 1gbit\n", s, s);
		for (uint32_t i = 0; i < hosts[s]; i++, h++) {
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"host h%u\nlink h%u s%u rate 20mbit\n", h, h, s);
			assert_true(len < sizeof(text));
		}
	}
	if (cn_topo_parse(text, len, "test", &t, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	return t;
}

static void number_all(const struct cn_topo *t, uint32_t *logical)
{
	uint8_t seen[N_MAX] = { 0 };

	assert_true(t->nhosts <= N_MAX);
	assert_int_equal(cn_number_nodes(t, t->hosts, t->nhosts, logical, NULL), COLLNET_OK);
	for (uint32_t i = 0; i < t->nhosts; i++) {
		assert_true(logical[i] < t->nhosts);
		assert_int_equal(seen[logical[i]]++, 0);
	}
}

static void cn_number_nodes__equation_5_for_equal_switches(void **state)
{
	uint32_t logical[N_MAX];

	(void)state;
	for (uint32_t a = 1; a <= 33; a++) {
		for (uint32_t b = 1; b <= 33; b += a > 9 ? 8 : 1) {
			char text[32];
			struct cn_topo *t;

			(void)snprintf(text, sizeof(text), "%ux%u", a, b);
			t = shape(text);
			assert_int_equal(t->nhosts, a * b);
			number_all(t, logical);
			for (uint32_t id = 0; id < a * b; id++) {
				assert_int_equal(logical[id], id / a + (id % a) * b);
			}
			cn_topo_free(t);
		}
	}
}

static void cn_number_nodes__one_switch_keeps_the_order(void **state)
{
	uint32_t logical[N_MAX];
	struct cn_topo *t = shape("16");

	(void)state;
	number_all(t, logical);
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(logical[i], i);
	}
	cn_topo_free(t);
}

/*
 * Figures 3 and 4: on 4x4, plain XOR talks to one switch for four steps on end; on the numbers of
 * Eq. 5 two consecutive steps always lead to different switches, and any four steps of a row of
 * four to all four.
 */
static void cn_number_nodes__figure_4(void **state)
{
	struct cn_topo *t = shape("4x4");
	uint32_t logical[16], node_at[16];
	uint32_t stays_plain = 0;

	(void)state;
	number_all(t, logical);
	for (uint32_t i = 0; i < 16; i++) {
		node_at[logical[i]] = i;
	}
	for (uint32_t me = 0; me < 16; me++) {
		uint32_t last = CN_IDLE, visits[4][4] = { { 0 } };

		for (uint32_t step = 1; step < 16; step++) {
			uint32_t number = cn_perm_to(COLLNET_PERM_XOR, 16, logical[me], step);
			uint32_t sw = node_at[number] / 4;

			assert_int_not_equal(sw, last);
			last = sw;
			visits[step / 4][sw]++;
			if (step > 1) {
				stays_plain += (me ^ step) / 4 == (me ^ (step - 1)) / 4;
			}
		}
		for (uint32_t row = 0; row < 4; row++) {
			for (uint32_t sw = 0; sw < 4; sw++) {
				/* Step 0 would be the node itself. */
				uint32_t want = !(row == 0 && sw == me / 4);

				assert_int_equal(visits[row][sw], want);
			}
		}
	}
	assert_int_equal(stays_plain, 16 * 11); /* Figure 3: the test sees the difference */
	cn_topo_free(t);
}

/*
 * Up to any place x between 0 and 1 a switch has n_s x hosts to within a half, and all of the
 * `switches` together n x to within as many halves; so among the first k numbers a switch has its
 * share n_s k / n to within (1 + switches n_s / n) / 2.
 */
static void check_spread(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
			 uint32_t switches)
{
	uint32_t logical[N_MAX], node_at[N_MAX];

	assert_int_equal(cn_number_nodes(t, hosts, n, logical, NULL), COLLNET_OK);
	for (uint32_t i = 0; i < n; i++) {
		node_at[logical[i]] = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t sw = cn_topo_switch_of(t, hosts[i]);
		int64_t total = 0, here = 0;

		for (uint32_t k = 0; k < n; k++) {
			total += cn_topo_switch_of(t, hosts[k]) == sw;
		}
		for (uint32_t k = 0; k < n; k++) {
			int64_t off;

			here += cn_topo_switch_of(t, hosts[node_at[k]]) == sw;
			off = here * n - total * (k + 1);
			assert_true(2 * (off < 0 ? -off : off) <= n + total * switches);
		}
	}
}

static void cn_number_nodes__unequal_switches_are_spread(void **state)
{
	static const uint32_t cases[][5] = {
		{ 8, 4, 0, 0, 0 },  { 7, 1, 0, 0, 0 },	{ 1, 7, 0, 0, 0 },  { 5, 3, 2, 0, 0 },
		{ 12, 8, 4, 0, 0 }, { 6, 6, 6, 3, 0 },	{ 16, 1, 1, 1, 1 }, { 9, 7, 5, 3, 1 },
	};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		uint32_t n = 0, logical[N_MAX];
		struct cn_topo *t;

		while (n < 5 && cases[c][n]) {
			n++;
		}
		t = unequal(cases[c], n);
		number_all(t, logical);
		check_spread(t, t->hosts, t->nhosts, n);
		cn_topo_free(t);
	}
}

/* 4 and 2 hosts: places 1/8 3/8 5/8 7/8 and 1/4 3/4, so a b a a b a. */
static void cn_number_nodes__four_and_two(void **state)
{
	static const uint32_t hosts[] = { 4, 2 };
	static const uint32_t want[] = { 0, 2, 3, 5, 1, 4 };
	struct cn_topo *t = unequal(hosts, 2);
	uint32_t logical[6];

	(void)state;
	number_all(t, logical);
	assert_memory_equal(logical, want, sizeof(want));
	cn_topo_free(t);
}

/* Only the team's hosts count, in the order of the team, wherever they are in the file. */
static void cn_number_nodes__part_of_the_hosts(void **state)
{
	struct cn_topo *t = shape("8x2");
	uint32_t hosts[6], logical[6];
	/* Team order: s2 s2 s1 s2 s1 s1: s2 appears first. */
	static const uint32_t which[] = { 9, 12, 3, 15, 0, 7 };
	static const uint32_t want[] = { 0, 2, 1, 4, 3, 5 };

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		hosts[i] = t->hosts[which[i]];
	}
	assert_int_equal(cn_number_nodes(t, hosts, 6, logical, NULL), COLLNET_OK);
	assert_memory_equal(logical, want, sizeof(want));
	check_spread(t, hosts, 6, 2);
	cn_topo_free(t);
}

static void cn_number_nodes__refuses_what_is_no_host(void **state)
{
	struct cn_topo *t = shape("2x2");
	uint32_t hosts[2] = { t->hosts[0], t->root }, logical[2] = { 7, 7 };
	struct cn_err err = { 0 };

	(void)state;
	assert_int_equal(cn_number_nodes(t, hosts, 2, logical, &err), COLLNET_ETOPO);
	hosts[1] = CN_TOPO_NONE;
	assert_int_equal(cn_number_nodes(t, hosts, 2, logical, &err), COLLNET_ETOPO);
	assert_int_equal(logical[0], 7);
	assert_int_equal(cn_number_nodes(t, hosts, 0, logical, &err), COLLNET_OK);
	cn_topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_number_nodes__equation_5_for_equal_switches),
		cmocka_unit_test(cn_number_nodes__one_switch_keeps_the_order),
		cmocka_unit_test(cn_number_nodes__figure_4),
		cmocka_unit_test(cn_number_nodes__unequal_switches_are_spread),
		cmocka_unit_test(cn_number_nodes__four_and_two),
		cmocka_unit_test(cn_number_nodes__part_of_the_hosts),
		cmocka_unit_test(cn_number_nodes__refuses_what_is_no_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
