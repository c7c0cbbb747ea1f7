/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/plan/random: connected, as many links as asked for, no pair twice, the same for a seed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topo/topo.h"
#include "tools/plan/random.h"

static struct cn_topo *make(const struct cn_topo_random *r)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };

	if (cn_topo_random(r, &t, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return t;
}

static uint32_t uplinks(const struct cn_topo *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->nlinks; i++) {
		n += t->vertices[t->links[i].a].is_switch && t->vertices[t->links[i].b].is_switch;
	}
	return n;
}

/* The cluster of allgather-rings, section 5: five hosts a switch, degree 4. */
static void random__as_in_the_paper(void **state)
{
	struct cn_topo_random r = {
		.hosts = 640, .switches = 128, .degree = 4, .rate = 100000000, .buffer = 7
	};
	uint32_t most = 0;

	(void)state;
	for (r.seed = 1; r.seed <= 50; r.seed++) {
		struct cn_topo *t = make(&r);

		assert_int_equal(t->nhosts, 640);
		assert_int_equal(t->nvertices, 768);
		assert_int_equal(uplinks(t), 256);
		assert_int_equal(t->nlinks, 256 + 640);
		for (uint32_t i = 0; i < t->nlinks; i++) {
			assert_int_equal(t->links[i].rate, 100000000);
			assert_int_equal(t->links[i].buffer, 7);
			assert_int_equal(t->links[i].channels, 1);
		}
		for (uint32_t v = 0; v < 128; v++) {
			uint32_t n = t->adj_start[v + 1] - t->adj_start[v];

			assert_true(n > 0);
			most = n > most ? n : most;
		}
		assert_string_equal(t->vertices[t->hosts[639]].name, "h639");
		cn_topo_free(t);
	}
	assert_uint_in_range(most, 15, 60); /* uneven, as random is */
}

/* No pair of switches twice, whatever the degree: from a tree to all pairs. */
static void random__every_degree(void **state)
{
	struct cn_topo_random r = { .hosts = 3 };
	bool seen[20][20];

	(void)state;
	for (r.switches = 1; r.switches <= 20; r.switches++) {
		for (r.degree = 0; r.degree <= 24; r.degree += 0.75) {
			uint32_t all = r.switches * (r.switches - 1) / 2, tree = r.switches - 1;
			uint32_t want = (uint32_t)floor(r.degree * r.switches / 2 + 0.5);
			struct cn_topo *t = make(&r);

			want = want < tree ? tree : want > all ? all : want;
			assert_int_equal(uplinks(t), want);
			memset(seen, 0, sizeof(seen));
			for (uint32_t i = 0; i < want; i++) {
				assert_false(seen[t->links[i].a][t->links[i].b]);
				seen[t->links[i].a][t->links[i].b] = true;
				seen[t->links[i].b][t->links[i].a] = true;
			}
			cn_topo_free(t);
			r.seed++;
		}
	}
}

static void random__by_seed(void **state)
{
	struct cn_topo_random r = { .hosts = 50, .switches = 10, .degree = 4, .seed = 3 };
	struct cn_topo *a = make(&r), *b = make(&r), *c;

	(void)state;
	r.seed = 4;
	c = make(&r);
	assert_memory_equal(a->links, b->links, a->nlinks * sizeof(*a->links));
	assert_memory_not_equal(a->links, c->links, a->nlinks * sizeof(*a->links));
	cn_topo_free(a);
	cn_topo_free(b);
	cn_topo_free(c);
}

/* Each switch about as likely for a host, and each pair for a link. */
static void random__even(void **state)
{
	struct cn_topo_random r = { .hosts = 1000, .switches = 5, .degree = 2 };
	uint32_t hosts[5] = { 0 }, links[5] = { 0 };

	(void)state;
	for (r.seed = 0; r.seed < 200; r.seed++) {
		struct cn_topo *t = make(&r);

		for (uint32_t i = 0; i < t->nlinks; i++) {
			if (i < 5) {
				links[t->links[i].a]++;
				links[t->links[i].b]++;
			} else {
				hosts[t->links[i].b]++;
			}
		}
		cn_topo_free(t);
	}
	for (int i = 0; i < 5; i++) {
		assert_uint_in_range(hosts[i], 39000, 41000);
		assert_uint_in_range(links[i], 350, 450);
	}
}

static void random__large(void **state)
{
	const struct cn_topo_random r = { .hosts = 100000, .switches = 100000, .degree = 4 };
	struct cn_topo *t = make(&r);

	(void)state;
	assert_int_equal(uplinks(t), 200000);
	cn_topo_free(t);
}

static void random__refuses(void **state)
{
	static const struct cn_topo_random bad[] = {
		{ .hosts = 0, .switches = 1 },
		{ .hosts = 1, .switches = 0 },
		{ .hosts = 200000, .switches = 1 },
		{ .hosts = UINT32_MAX, .switches = UINT32_MAX },
		{ .hosts = 1, .switches = 1, .degree = -1 },
		{ .hosts = 1, .switches = 1, .degree = NAN },
		{ .hosts = 1, .switches = 100000, .degree = 100 },
		{ .hosts = 1, .switches = 100000, .degree = INFINITY },
	};
	struct cn_topo *t = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cn_err err = { 0 };

		assert_int_equal(cn_topo_random(&bad[i], &t, &err), COLLNET_EINVAL);
		assert_non_null(strstr(err.text, "random cluster"));
		assert_null(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random__as_in_the_paper), cmocka_unit_test(random__every_degree),
		cmocka_unit_test(random__by_seed),	   cmocka_unit_test(random__even),
		cmocka_unit_test(random__large),	   cmocka_unit_test(random__refuses),
	};

	return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
