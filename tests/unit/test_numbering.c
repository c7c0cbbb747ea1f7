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
			uint32_t number = cn_perm_to(CN_PERM_XOR, 16, logical[me], step);
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
		{ 8, 4, 0, 0, 0 },  { 7, 1, 0, 0, 0 }, { 1, 7, 0, 0, 0 },  { 5, 3, 2, 0, 0 },
		{ 12, 8, 4, 0, 0 }, { 6, 6, 6, 3, 0 }, { 16, 1, 1, 1, 1 }, { 9, 7, 5, 3, 1 },
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

/* ---- trees of several levels -------------------------------------------------------------- */

/*
 * "(4 (3 (2 2)))": a group in parentheses is a switch, a number so many hosts: on a switch of their
 * own, or with '.' after it on the switch of the group itself.
 */
struct nest {
	char text[65536];
	size_t len;
	uint32_t stack[32], depth, switches, hosts;
};

static void say(struct nest *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct nest *n, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	n->len += (size_t)vsnprintf(n->text + n->len, sizeof(n->text) - n->len, fmt, ap);
	va_end(ap);
	assert_true(n->len < sizeof(n->text));
}

static uint32_t new_switch(struct nest *n)
{
	say(n, "switch s%u\n", n->switches);
	if (n->depth > 0) {
		say(n, "link s%u s%u rate 1gbit\n", n->switches, n->stack[n->depth - 1]);
	}
	return n->switches++;
}

static const char *some_hosts(struct nest *n, const char *p)
{
	uint32_t count = 0, sw;

	for (; *p >= '0' && *p <= '9'; p++) {
		count = count * 10 + (uint32_t)(*p - '0');
	}
	sw = *p == '.' ? n->stack[n->depth - 1] : new_switch(n);
	for (; count > 0; count--, n->hosts++) {
		say(n, "host h%u\nlink h%u s%u rate 20mbit\n", n->hosts, n->hosts, sw);
	}
	return *p == '.' ? p + 1 : p;
}

static struct cn_topo *nested(const char *spec)
{
	static struct nest n;
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };

	memset(&n, 0, sizeof(n));
	for (const char *p = spec; *p != 0;) {
		if (*p == '(') {
			uint32_t sw = new_switch(&n);

			assert_true(n.depth < 32);
			n.stack[n.depth++] = sw;
			p++;
		} else if (*p == ')' || *p == ' ') {
			n.depth -= *p++ == ')';
		} else {
			p = some_hosts(&n, p);
		}
	}
	if (cn_topo_parse(n.text, n.len, spec, &t, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	return t;
}

/* The hosts behind the topology's links, one subtree after the other: the plain numbers. */
static struct cn_tree *in_tree_order(const struct cn_topo *t, uint32_t *hosts)
{
	struct cn_tree *tree = NULL;
	struct cn_err err = { 0 };
	uint32_t n = 0;

	assert_int_equal(cn_tree_make(t, t->hosts, t->nhosts, CN_TOPO_NONE, &tree, &err), 0);
	for (uint32_t v = 0; v < tree->n; v++) {
		if (tree->v[v].node != CN_TOPO_NONE) {
			hosts[n++] = tree->v[v].vertex;
		}
	}
	cn_tree_free(tree);
	assert_int_equal(cn_tree_make(t, hosts, n, CN_TOPO_NONE, &tree, &err), 0);
	return tree;
}

/* 2x2x4: by turns of the halves, and within each half of its two switches. */
static void cn_number_nodes__alternates_at_every_level(void **state)
{
	struct cn_topo *t = nested("((4 4) (4 4))");
	uint32_t logical[N_MAX], node_at[N_MAX];

	(void)state;
	assert_int_equal(t->nhosts, 16);
	number_all(t, logical);
	for (uint32_t i = 0; i < 16; i++) {
		node_at[logical[i]] = i;
	}
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(node_at[i] / 8, i % 2);
		assert_int_equal(node_at[i] / 4, i % 2 * 2 + i / 2 % 2);
		assert_int_equal(node_at[i] % 4, i / 4);
	}
	cn_topo_free(t);
}

/* Hosts at a switch that has switches below are a sequence too, not each one of its own. */
static void cn_number_nodes__hosts_at_an_upper_switch(void **state)
{
	static const uint32_t want[] = { 0, 1, 0, 1, 0, 1, 0, 1 };
	struct cn_topo *t = nested("(4. (2 2))");
	uint32_t logical[N_MAX];

	(void)state;
	assert_int_equal(t->nhosts, 8);
	number_all(t, logical);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(want[logical[i]], i >= 4);
	}
	cn_topo_free(t);
}

/* Most frames that go up from subtree v in any `width` steps of a permutation that is repeated. */
struct load {
	uint32_t steps;
	uint32_t up[N_MAX]; /* frames in a step */
};

static void count_load(const struct cn_tree *t, const uint32_t *number, uint32_t v,
		       enum cn_permutation kind, struct load *l)
{
	uint32_t n = t->nhosts, node_at[N_MAX];

	for (uint32_t i = 0; i < n; i++) {
		node_at[number == NULL ? i : number[i]] = i;
	}
	l->steps = cn_perm_steps(kind, n);
	for (uint32_t step = 1; step <= l->steps; step++) {
		l->up[step - 1] = 0;
		for (uint32_t me = 0; me < n; me++) {
			uint32_t to = cn_perm_to(kind, n, number == NULL ? me : number[me], step);

			l->up[step - 1] += to != CN_IDLE && cn_tree_below(t, t->host[me], v) &&
					   !cn_tree_below(t, t->host[node_at[to]], v);
		}
	}
}

static uint32_t most_in(const struct load *l, uint32_t width, bool cyclic)
{
	uint32_t most = 0, last = cyclic ? l->steps : l->steps - width + 1;

	for (uint32_t start = 0; start < last; start++) {
		uint32_t sum = 0;

		for (uint32_t i = 0; i < width; i++) {
			sum += l->up[(start + i) % l->steps];
		}
		most = sum > most ? sum : most;
	}
	return most;
}

/* What windows of steps hold with aware numbers against plain ones, of all links of a tree. */
struct verdict {
	uint32_t windows, better, worse, excess;
};

static void compare(const struct cn_topo *t, enum cn_permutation kind, bool cyclic,
		    struct verdict *out)
{
	static struct load plain, aware;
	uint32_t hosts[N_MAX], logical[N_MAX];
	struct cn_tree *tree = in_tree_order(t, hosts);

	assert_int_equal(cn_number_nodes(t, hosts, t->nhosts, logical, NULL), COLLNET_OK);
	for (uint32_t v = 1; v < tree->n; v++) {
		if (tree->v[v].node != CN_TOPO_NONE) {
			continue; /* a host's own link carries a frame a step at most, always */
		}
		count_load(tree, NULL, v, kind, &plain);
		count_load(tree, logical, v, kind, &aware);
		for (uint32_t width = 1; width <= plain.steps; width++) {
			uint32_t a = most_in(&plain, width, cyclic);
			uint32_t b = most_in(&aware, width, cyclic);

			out->windows++;
			out->better += b < a;
			out->worse += b > a;
			out->excess = b > a && b - a > out->excess ? b - a : out->excess;
		}
	}
	cn_tree_free(tree);
}

/*
 * A link's busiest window of so many steps carries no more frames than its busiest one with plain
 * numbers in the tree's order. The permutation is repeated frame by frame: in a window that goes
 * over its end, shift may carry one more, as the step that a node had with itself is left out.
 */
static void cn_number_nodes__windows_of_steps_carry_no_more(void **state)
{
	static const char *const trees[] = {
		"(4 4)",
		"(4 4 4 4)",
		"((4 4) (4 4))",
		"((8 8) (8 8))",
		"((2 2) (2 2))",
		"(((2 2) (2 2)) ((2 2) (2 2)))",
		"((4 4) (4 4) (4 4))",
		"(4 2)",
		"(5 3 2)",
		"(12 8 4)",
		"((4 2) (3 5 1))",
		"((6 2) 8)",
		"((3 3) (3 3))",
		"((5 3) (4 4))",
		"((1 1 1) (7 2))",
		"(9 7)",
		"((6 2 2) (4 (4 2) (1 3)))",
		"(3. (4 4) 6)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		struct cn_topo *t = nested(trees[i]);
		bool power = (t->nhosts & (t->nhosts - 1)) == 0;
		struct verdict v = { 0 };

		if (power) {
			compare(t, CN_PERM_XOR, true, &v);
			compare(t, CN_PERM_XOR, false, &v);
		}
		compare(t, CN_PERM_EDGE_COLOUR, true, &v);
		compare(t, CN_PERM_SHIFT, false, &v);
		if (v.worse > 0) {
			fail_msg("%s: worse in %u windows", trees[i], v.worse);
		}
		assert_true(v.better > 0 || strcmp(trees[i], "(4 2)") == 0);
		compare(t, CN_PERM_SHIFT, true, &v);
		assert_true(v.excess <= 1);
		cn_topo_free(t);
	}
}

/* "((3 1 (5 4.)) ..." of up to `depth` levels, at most 40 hosts in all. */
static size_t random_spec(char *text, size_t cap, uint64_t *seed, uint32_t depth, uint32_t *left)
{
	size_t len = 0;
	uint32_t children = 1 + (uint32_t)(cn_random(seed) % 3);

	len += (size_t)snprintf(text, cap, "(");
	for (uint32_t i = 0; i < children; i++) {
		if (depth > 1 && cn_random(seed) % 4 != 0) {
			len += random_spec(text + len, cap - len, seed, depth - 1, left);
		} else if (*left > 0) {
			uint32_t n = 1 + (uint32_t)(cn_random(seed) % (*left < 7 ? *left : 7));

			*left -= n;
			len += (size_t)snprintf(text + len, cap - len, "%u%s ", n,
						cn_random(seed) % 4 == 0 ? "." : "");
		}
	}
	len += (size_t)snprintf(text + len, cap - len, ")");
	assert_true(len < cap);
	return len;
}

/* The same on random trees. xor on 2^k hosts in unequal subtrees is not always as good. */
static void cn_number_nodes__windows_on_random_trees(void **state)
{
	uint64_t seed = 20240612;
	struct verdict xor = { 0 }, all = { 0 }, cyclic = { 0 };

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < 120; round++) {
		char spec[2048];
		uint32_t left = 40;
		struct cn_topo *t;

		random_spec(spec, sizeof(spec), &seed, 3, &left);
		if (left == 40) {
			continue; /* no hosts */
		}
		t = nested(spec);
		if (t->nhosts > 1) {
			if ((t->nhosts & (t->nhosts - 1)) == 0) {
				compare(t, CN_PERM_XOR, true, &xor);
			}
			compare(t, CN_PERM_EDGE_COLOUR, true, &all);
			compare(t, CN_PERM_SHIFT, false, &all);
			compare(t, CN_PERM_SHIFT, true, &cyclic);
		}
		cn_topo_free(t);
	}
	print_message("better in %u of %u windows; xor: better in %u, worse in %u of %u\n",
		      all.better, all.windows, xor.better, xor.worse, xor.windows);
	assert_int_equal(all.worse, 0);
	assert_true(all.better > all.windows / 2);
	assert_true(cyclic.excess <= 1);
	assert_true(xor.windows > 0 && xor.better > 20 * xor.worse);
}

/* A chain of 60,000 switches: nothing recurses, and switches without a choice cost nothing. */
static void cn_number_nodes__long_chain(void **state)
{
	static char text[4 << 20];
	static uint32_t logical[2];
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	size_t len = 0;

	(void)state;
	for (uint32_t i = 0; i < 60000; i++) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, "switch s%u\n", i);
		if (i > 0) {
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"link s%u s%u rate none\n", i - 1, i);
		}
	}
	len += (size_t)snprintf(text + len, sizeof(text) - len,
				"host a\nhost b\nlink a s59999 rate none\n"
				"link b s30000 rate none\n");
	assert_true(len < sizeof(text));
	assert_int_equal(cn_topo_parse(text, len, "chain", &t, &err), COLLNET_OK);
	number_all(t, logical);
	assert_int_equal(logical[0], 0);
	assert_int_equal(logical[1], 1);
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
		cmocka_unit_test(cn_number_nodes__alternates_at_every_level),
		cmocka_unit_test(cn_number_nodes__hosts_at_an_upper_switch),
		cmocka_unit_test(cn_number_nodes__windows_of_steps_carry_no_more),
		cmocka_unit_test(cn_number_nodes__windows_on_random_trees),
		cmocka_unit_test(cn_number_nodes__long_chain),
		cmocka_unit_test(cn_number_nodes__refuses_what_is_no_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
