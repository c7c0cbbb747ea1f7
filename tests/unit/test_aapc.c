/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-to-all in phases (sched/aapc.h): the tables of Faraj and Yuan, "Message Scheduling for
 * All-to-All Personalized Communication on Ethernet Switched Clusters", and brute force on small
 * trees, which knows only paths: every message once, no link twice in a phase, synchronisations
 * exactly the transitive reduction of the messages that share links.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/alltoall/aapc.h"
#include "tools/plan/check.h"
#include "sched_fixture.h"

#define MOST_HOSTS    32u
#define MOST_MESSAGES (MOST_HOSTS * (MOST_HOSTS - 1))
#define MOST_LINKS    256u

static uint64_t seed = 20050404;

static uint32_t below(uint32_t n)
{
	return (uint32_t)(cn_random(&seed) % n);
}

/* ---- a network and its phases ------------------------------------------------------------- */

struct net {
	struct cn_topo *topo;
	struct cn_tree *tree; /* rooted where nobody asked for it: for paths only */
	struct cn_aapc *a;
	struct cn_aapc_sync *sync, *sync_too;
};

static void net_of(struct net *n, struct cn_topo *topo)
{
	struct cn_err err = { 0 };

	n->topo = topo;
	if (cn_tree_make(topo, topo->hosts, topo->nhosts, CN_TOPO_NONE, &n->tree, &err) ||
	    cn_aapc_new(n->tree, &n->a, &err) ||
	    cn_aapc_sync_new(n->a, UINT32_MAX, &n->sync, &err) ||
	    cn_aapc_sync_new(n->a, UINT32_MAX, &n->sync_too, &err)) {
		fail_msg("%s", err.text);
	}
}

static void net_text(struct net *n, const char *text)
{
	struct cn_err err = { 0 };
	struct cn_topo *topo = NULL;

	if (cn_topo_parse(text, strlen(text), "test", &topo, &err)) {
		fail_msg("%s", err.text);
	}
	net_of(n, topo);
}

static void net_shape(struct net *n, const char *shape)
{
	struct cn_topo *topo = NULL;

	assert_int_equal(cn_topo_shape(shape, 0, 0, 0, 0, &topo, NULL), COLLNET_OK);
	net_of(n, topo);
}

static void net_free(struct net *n)
{
	cn_aapc_sync_free(n->sync);
	cn_aapc_sync_free(n->sync_too);
	cn_aapc_free(n->a);
	cn_tree_free(n->tree);
	cn_topo_free(n->topo);
}

/*
 * `hosts` hosts on `switches` switches. Kind 0: a random tree; 1: a chain; 2: a star; 3: deep, with
 * most hosts on few switches.
 */
static void net_random(struct net *n, uint32_t hosts, uint32_t switches, uint32_t kind)
{
	char text[8192];
	size_t at = 0;

	for (uint32_t s = 0; s < switches; s++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "switch s%u\n", s);
	}
	for (uint32_t h = 0; h < hosts; h++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "host h%u\n", h);
	}
	for (uint32_t s = 1; s < switches; s++) {
		uint32_t to = kind == 1 ? s - 1 : kind == 2 ? 0 : below(s);

		if (kind == 3 && s > 2) {
			to = s - 1 - below(2);
		}
		at += (size_t)snprintf(text + at, sizeof(text) - at, "link s%u s%u rate none\n", to,
				       s);
	}
	for (uint32_t h = 0; h < hosts; h++) {
		uint32_t s = below(switches);

		s = kind == 3 && below(2) ? s - s % 3 : s;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "link h%u s%u rate none\n", h,
				       s);
	}
	assert_true(at < sizeof(text));
	net_text(n, text);
}

static const char *name_at(const struct net *n, uint32_t place)
{
	return cn_tree_node_name(n->tree, n->a->node[place]);
}

/* "t0,1" for a place: the paper's names. */
static const char *paper(const struct cn_aapc *a, uint32_t place, char *text, size_t cap)
{
	snprintf(text, cap, "t%u,%u", a->subtree[place], place - a->first[a->subtree[place]]);
	return text;
}

/* ---- brute force -------------------------------------------------------------------------- */

struct brute {
	const struct net *net;
	uint32_t n, nlinks;			 /* messages, directed links of net->tree */
	struct cn_aapc_message m[MOST_MESSAGES]; /* by phase, then sender */
	bool uses[MOST_MESSAGES][MOST_LINKS];
	bool edge[MOST_MESSAGES][MOST_MESSAGES];  /* earlier, later: they share a link */
	bool reach[MOST_MESSAGES][MOST_MESSAGES]; /* from, to */
};

static int by_phase(const void *x, const void *y)
{
	const struct cn_aapc_message *a = x, *b = y;

	if (a->phase != b->phase) {
		return a->phase < b->phase ? -1 : 1;
	}
	return a->from < b->from ? -1 : a->from > b->from;
}

static struct brute *brute_new(const struct net *net)
{
	const struct cn_aapc *a = net->a;
	struct brute *b = calloc(1, sizeof(*b));
	uint32_t links[2 * MOST_LINKS];

	assert_non_null(b);
	b->net = net;
	b->nlinks = 2 * net->tree->n;
	assert_true(a->n <= MOST_HOSTS && b->nlinks <= MOST_LINKS);
	for (uint32_t x = 0; x < a->n; x++) {
		for (uint32_t y = 0; y < a->n; y++) {
			if (x != y) {
				b->m[b->n++] = cn_aapc_between(a, x, y);
			}
		}
	}
	qsort(b->m, b->n, sizeof(b->m[0]), by_phase);
	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t d = cn_tree_path(net->tree, a->node[b->m[i].from], a->node[b->m[i].to],
					  links);

		for (uint32_t l = 0; l < d; l++) {
			b->uses[i][links[l]] = true;
		}
	}
	return b;
}

static bool brute_share(const struct brute *b, uint32_t i, uint32_t j)
{
	for (uint32_t l = 0; l < b->nlinks; l++) {
		if (b->uses[i][l] && b->uses[j][l]) {
			return true;
		}
	}
	return false;
}

/* The load of the most loaded link: the paper's bound, from paths alone. */
static uint32_t brute_bound(const struct brute *b)
{
	uint32_t most = 0;

	for (uint32_t l = 0; l < b->nlinks; l++) {
		uint32_t load = 0;

		for (uint32_t i = 0; i < b->n; i++) {
			load += b->uses[i][l];
		}
		most = load > most ? load : most;
	}
	return most;
}

/* Phases are the bound; nothing meets in a phase; the list by phase says the same messages. */
static void check_phases(const struct brute *b)
{
	const struct cn_aapc *a = b->net->a;
	uint32_t seen = 0;

	assert_int_equal(a->phases, brute_bound(b));
	for (uint32_t i = 0; i < a->k; i++) { /* Lemma 1, and the order of the subtrees */
		assert_true(2 * cn_aapc_size(a, i) <= a->n);
		assert_true(i == 0 || cn_aapc_size(a, i) <= cn_aapc_size(a, i - 1));
	}
	assert_int_equal(b->n, a->n * (a->n - 1));
	for (uint32_t i = 0; i < b->n; i++) {
		assert_true(b->m[i].phase < a->phases);
		for (uint32_t j = i + 1; j < b->n && b->m[j].phase == b->m[i].phase; j++) {
			assert_int_not_equal(b->m[i].from, b->m[j].from);
			assert_int_not_equal(b->m[i].to, b->m[j].to);
			if (brute_share(b, i, j)) {
				fail_msg("phase %u: %s -> %s and %s -> %s share a link",
					 b->m[i].phase, name_at(b->net, b->m[i].from),
					 name_at(b->net, b->m[i].to), name_at(b->net, b->m[j].from),
					 name_at(b->net, b->m[j].to));
			}
		}
	}
	for (uint32_t p = 0; p < a->phases; p++) {
		for (uint32_t i = 0; i < a->k; i++) {
			uint32_t j = cn_aapc_target(a, i, p);
			struct cn_aapc_message m, same;

			if (j != CN_TOPO_NONE) {
				m = cn_aapc_global(a, i, j, p);
				same = cn_aapc_between(a, m.from, m.to);
				assert_int_equal(same.phase, p);
				assert_int_equal(cn_aapc_source(a, j, p), i);
				seen++;
			}
			if (cn_aapc_local(a, i, p, &m)) {
				same = cn_aapc_between(a, m.from, m.to);
				assert_int_equal(m.phase, p);
				assert_int_equal(same.phase, p);
				seen++;
			}
		}
	}
	assert_int_equal(seen, b->n);
}

/* cn_aapc_user() for every link and phase. Links are of a->tree: found by what is below them. */
static void check_users(const struct brute *b)
{
	const struct cn_aapc *a = b->net->a;
	const struct cn_tree *t = a->tree;

	for (uint32_t dlink = 2; dlink < 2 * t->n; dlink++) {
		/* Beyond both ends too: the first of all, and the last. */
		for (uint32_t p = CN_TOPO_NONE; p != a->phases + 1; p++) {
			const struct cn_aapc_message *before = NULL, *after = NULL;
			struct cn_aapc_message m;

			for (uint32_t i = 0; i < b->n; i++) {
				bool from = cn_tree_below(t, t->host[a->node[b->m[i].from]],
							  dlink / 2);
				bool to = cn_tree_below(t, t->host[a->node[b->m[i].to]], dlink / 2);

				if (from == to || from != (dlink % 2 == 0)) {
					continue;
				}
				if (p != CN_TOPO_NONE && b->m[i].phase < p) {
					before = &b->m[i];
				}
				if ((p == CN_TOPO_NONE || b->m[i].phase > p) && after == NULL) {
					after = &b->m[i];
				}
			}
			if (p != CN_TOPO_NONE) {
				assert_int_equal(cn_aapc_user(a, dlink, p, true, CN_AAPC_ANY, &m),
						 before != NULL);
			}
			if (before != NULL) {
				assert_memory_equal(&m, before, sizeof(m));
			}
			assert_int_equal(cn_aapc_user(a, dlink, p, false, CN_AAPC_ANY, &m),
					 after != NULL);
			if (after != NULL) {
				assert_memory_equal(&m, after, sizeof(m));
			}
		}
	}
}

static void find_edges(struct brute *b)
{
	for (uint32_t j = 0; j < b->n; j++) {
		for (uint32_t i = j; i-- > 0;) {
			if (b->m[i].phase == b->m[j].phase || !brute_share(b, i, j)) {
				continue;
			}
			b->edge[i][j] = true;
			b->reach[i][j] = true;
			for (uint32_t h = 0; h < i; h++) {
				b->reach[h][j] |= b->reach[h][i];
			}
		}
	}
}

static bool brute_redundant(const struct brute *b, uint32_t i, uint32_t j)
{
	for (uint32_t h = i + 1; h < j; h++) {
		if (b->reach[i][h] && b->edge[h][j]) {
			return true;
		}
	}
	return false;
}

static bool listed(const struct cn_aapc_message *list, uint32_t n, const struct cn_aapc_message *m)
{
	for (uint32_t i = 0; i < n; i++) {
		if (memcmp(&list[i], m, sizeof(*m)) == 0) {
			return true;
		}
	}
	return false;
}

static void complain(const struct brute *b, uint32_t i, uint32_t j, const char *what)
{
	fail_msg("%s -> %s (phase %u), then %s -> %s (phase %u): %s", name_at(b->net, b->m[i].from),
		 name_at(b->net, b->m[i].to), b->m[i].phase, name_at(b->net, b->m[j].from),
		 name_at(b->net, b->m[j].to), b->m[j].phase, what);
}

/*
 * Both ends list exactly the edges of the transitive reduction between different senders: so they
 * suffice, none is redundant, and who is told knows it. Returns their number.
 */
static uint32_t check_syncs(struct brute *b)
{
	const struct cn_aapc_message *list;
	uint32_t found = 0, said = 0, n;

	find_edges(b);
	for (uint32_t j = 0; j < b->n; j++) {
		assert_int_equal(cn_aapc_before(b->net->sync, &b->m[j], &list, &n, NULL), 0);
		said += n;
		for (uint32_t i = 0; i < j; i++) {
			bool want = b->edge[i][j] && b->m[i].from != b->m[j].from &&
				    !brute_redundant(b, i, j);

			if (want != listed(list, n, &b->m[i])) {
				complain(b, i, j, want ? "not waited for" : "waited for in vain");
			}
			found += want;
		}
	}
	assert_int_equal(found, said);
	said = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		assert_int_equal(cn_aapc_after(b->net->sync, &b->m[i], &list, &n, NULL), 0);
		said += n;
		for (uint32_t j = i + 1; j < b->n; j++) {
			bool want = b->edge[i][j] && b->m[i].from != b->m[j].from &&
				    !brute_redundant(b, i, j);

			if (want != listed(list, n, &b->m[j])) {
				complain(b, i, j, want ? "not told" : "told in vain");
			}
		}
	}
	assert_int_equal(found, said);
	return found;
}

static void check_all(const struct net *net)
{
	struct brute *b = brute_new(net);

	check_phases(b);
	check_users(b);
	check_syncs(b);
	free(b);
}

static void cn_aapc__random_trees(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < 200; round++) {
		uint32_t hosts = round % 20 == 19 ? 24 + below(MOST_HOSTS - 23) : 1 + below(16);
		uint32_t switches = 1 + below(9);
		struct net n;

		net_random(&n, hosts, switches, round % 4);
		check_all(&n);
		net_free(&n);
	}
}

/* Wherever the tree that one begins with is rooted, all is the same. */
static void cn_aapc_new__whatever_the_root(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < 40; round++) {
		struct net n;

		net_random(&n, 2 + below(14), 1 + below(9), round % 4);
		for (uint32_t v = 0; v < n.topo->nvertices; v++) {
			struct cn_tree *tree;
			struct cn_aapc *a;

			if (!n.topo->vertices[v].is_switch) {
				continue;
			}
			assert_int_equal(0, cn_tree_make(n.topo, n.topo->hosts, n.topo->nhosts, v,
							 &tree, NULL));
			assert_int_equal(cn_aapc_new(tree, &a, NULL), COLLNET_OK);
			assert_int_equal(cn_aapc_root(tree), cn_aapc_root(n.tree));
			assert_int_equal(a->phases, n.a->phases);
			assert_memory_equal(a->node, n.a->node, a->n * sizeof(*a->node));
			assert_memory_equal(a->first, n.a->first, (a->k + 1) * sizeof(*a->first));
			cn_aapc_free(a);
			cn_tree_free(tree);
		}
		net_free(&n);
	}
}

/* One host: nothing. Two: one phase both ways, also over switches without other branches. */
static void cn_aapc_new__one_and_two_hosts(void **state)
{
	struct net n;

	(void)state;
	net_shape(&n, "1");
	assert_int_equal(n.a->phases, 0);
	assert_int_equal(n.a->k, 0);
	check_all(&n);
	net_free(&n);
	for (uint32_t chain = 1; chain < 4; chain++) {
		net_random(&n, 2, chain, 1);
		assert_int_equal(n.a->phases, 1);
		assert_int_equal(cn_aapc_between(n.a, 0, 1).phase, 0);
		assert_int_equal(cn_aapc_between(n.a, 1, 0).phase, 0);
		check_all(&n);
		net_free(&n);
	}
}

/* ---- both ends, where brute force is too much --------------------------------------------- */

/* What x's messages wait for, its senders tell; and whom x tells, they wait. Returns the number. */
static uint32_t check_ends(const struct cn_aapc *a, struct cn_aapc_sync *one,
			   struct cn_aapc_sync *other, uint32_t x)
{
	const struct cn_aapc_message *list, *back;
	uint32_t n, m, total = 0;

	for (uint32_t y = 0; y < a->n; y++) {
		struct cn_aapc_message mine;

		if (x == y) {
			continue;
		}
		mine = cn_aapc_between(a, x, y);
		assert_int_equal(cn_aapc_before(one, &mine, &list, &n, NULL), COLLNET_OK);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_not_equal(list[i].from, x);
			assert_true(list[i].phase < mine.phase);
			assert_int_equal(cn_aapc_after(other, &list[i], &back, &m, NULL), 0);
			assert_true(listed(back, m, &mine));
		}
		total += n;
		assert_int_equal(cn_aapc_after(one, &mine, &list, &n, NULL), COLLNET_OK);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(list[i].phase > mine.phase);
			assert_int_equal(cn_aapc_before(other, &list[i], &back, &m, NULL), 0);
			assert_true(listed(back, m, &mine));
		}
		total += n;
	}
	return total;
}

static void check_ends_of(const char *shape, uint32_t phases)
{
	struct cn_aapc_sync *one, *other;
	struct net n;

	net_shape(&n, shape);
	assert_int_equal(n.a->phases, phases);
	/* Half of the effort decides as much as any: nothing is left undecided, by far. */
	assert_int_equal(cn_aapc_sync_new(n.a, CN_AAPC_EFFORT / 2, &one, NULL), COLLNET_OK);
	assert_int_equal(cn_aapc_sync_new(n.a, UINT32_MAX, &other, NULL), COLLNET_OK);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(check_ends(n.a, one, other, below(n.a->n)) > 0);
	}
	cn_aapc_sync_free(one);
	cn_aapc_sync_free(other);
	net_free(&n);
}

static void cn_aapc_before__both_ends_agree_on_1024_hosts(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	check_ends_of("16x64", 16 * (1024 - 16));
	check_ends_of("128x8", 128 * (1024 - 128));
	check_ends_of("512x2", 512 * 512);
}

/* An effort that is too small keeps edges that are redundant: more, but the same at both ends. */
static void cn_aapc_before__both_ends_agree_without_effort(void **state)
{
	uint32_t more = 0;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < 30; round++) {
		struct net n;

		net_random(&n, 10 + below(14), 2 + below(6), round % 4);
		for (uint32_t effort = 0; effort < 6; effort++) {
			struct cn_aapc_sync *one, *other;

			assert_int_equal(cn_aapc_sync_new(n.a, effort, &one, NULL), COLLNET_OK);
			assert_int_equal(cn_aapc_sync_new(n.a, effort, &other, NULL), COLLNET_OK);
			for (uint32_t x = 0; x < n.a->n; x++) {
				uint32_t kept = check_ends(n.a, one, other, x);
				uint32_t exact = check_ends(n.a, n.sync, n.sync_too, x);

				assert_true(kept >= exact);
				more += kept - exact;
			}
			cn_aapc_sync_free(one);
			cn_aapc_sync_free(other);
		}
		net_free(&n);
	}
	assert_true(more > 0); /* or the test tests nothing */
}

/* ---- the paper's tables ------------------------------------------------------------------- */

static void expect_message(const struct net *n, const struct cn_aapc_message *m, const char *want)
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
		struct net n;

		snprintf(shape, sizeof(shape), "%u", k);
		net_shape(&n, shape);
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
		net_free(&n);
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
static void net_sizes(struct net *n, const uint32_t *sizes, uint32_t k)
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
	net_text(n, text);
}

/* Table 2 again, as step 1 has it in a whole schedule: the same senders, receivers in turn. */
static void cn_aapc_global__table_2_in_a_schedule(void **state)
{
	static const uint32_t sizes[] = { 6, 4, 4 };
	struct net n;

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
	net_free(&n);
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
				struct net n;

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
				net_free(&n);
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
	struct net n;

	(void)state;
	net_text(&n, figure_1);
	assert_string_equal(n.topo->vertices[cn_aapc_root(n.tree)].name, "s1");
	assert_int_equal(n.a->k, 3);
	assert_int_equal(cn_aapc_size(n.a, 0), 3);
	assert_int_equal(cn_aapc_size(n.a, 1), 2);
	assert_int_equal(cn_aapc_size(n.a, 2), 1);
	for (uint32_t x = 0; x < 6; x++) {
		char want[8];

		snprintf(want, sizeof(want), "n%u", x);
		assert_string_equal(name_at(&n, x), want);
	}
	assert_int_equal(n.a->phases, 9);
	assert_int_equal(cn_aapc_start(n.a, 0, 1), 0);
	assert_int_equal(cn_aapc_start(n.a, 0, 2), 6);
	assert_int_equal(cn_aapc_start(n.a, 1, 2), 0);
	assert_int_equal(cn_aapc_start(n.a, 1, 0), 3);
	assert_int_equal(cn_aapc_start(n.a, 2, 0), 0);
	assert_int_equal(cn_aapc_start(n.a, 2, 1), 7);
	assert_int_equal(cn_aapc_target(n.a, 1, 2), CN_TOPO_NONE);
	net_free(&n);
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
	struct net n;

	(void)state;
	net_text(&n, figure_1);
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
	check_all(&n);
	net_free(&n);
}

/*
 * Figure 5: 24 machines on one switch; four switches of 8, as a star around the first, and as a
 * line. The text does not draw them; loads of 192 and 256 fit the times of Figures 7 and 8, whose
 * ratio is 1.32 for the longest messages.
 */
static void check_topology(const char *name, uint32_t phases, const char *links)
{
	uint32_t pairs = 0, kept;
	struct brute *b;
	struct net n;

	if (links == NULL) {
		net_shape(&n, "24");
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
		net_text(&n, text);
	}
	assert_int_equal(n.a->phases, phases);
	b = brute_new(&n);
	check_phases(b);
	kept = check_syncs(b);
	for (uint32_t i = 0; i < b->n; i++) {
		for (uint32_t j = i + 1; j < b->n; j++) {
			pairs += b->edge[i][j] && b->m[i].from != b->m[j].from;
		}
	}
	print_message("topology (%s): %u phases; pairs that share a link %u, synchronisations %u\n",
		      name, phases, pairs, kept);
	assert_true(kept <= pairs);
	free(b);
	net_free(&n);
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

/* ---- the planner -------------------------------------------------------------------------- */

static const struct cn_algorithm *row(void)
{
	return cn_algorithm_find(CN_OP_ALLTOALL, "aapc");
}

static void cn_plan_alltoall_aapc__right_and_checked(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < 4 * W_NODES; round++) {
		struct cn_plan p = { .op = CN_OP_ALLTOALL,
				     .algorithm = row()->id,
				     .bytes = round % 9 };
		struct cn_check_report report;
		struct cn_err err = { 0 };
		struct cn_check *c;
		struct sched_fixture *w;
		struct w_team t;

		w_team_init(&t, 1 + round % W_NODES, (enum w_placement)(round / W_NODES), &seed);
		w = w_new(&t, &p);
		w_check(w, true);
		assert_int_equal(cn_check_new(&t.layout, &p, &c, &err), COLLNET_OK);
		for (uint32_t b = 0; b < t.layout.nnodes; b++) {
			assert_int_equal(w_sched(w, b)->order, CN_ORDER_IN_TURN);
			assert_int_equal(cn_check_add(c, b, w_sched(w, b), &err), COLLNET_OK);
		}
		if (cn_check_run(c, row()->guarantees, &report, &err)) {
			fail_msg("%s", err.text);
		}
		w_run(w, &seed, 50, W_NOBODY);
		for (uint32_t b = 0; b < t.layout.nnodes; b++) {
			assert_true(w_complete(w, b));
		}
		w_check_data(w);
		cn_check_free(c);
		w_free(w);
		w_team_done(&t);
	}
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
		cmocka_unit_test(cn_aapc__random_trees),
		cmocka_unit_test(cn_aapc_new__whatever_the_root),
		cmocka_unit_test(cn_aapc_new__one_and_two_hosts),
		cmocka_unit_test(cn_aapc_before__both_ends_agree_on_1024_hosts),
		cmocka_unit_test(cn_aapc_before__both_ends_agree_without_effort),
		cmocka_unit_test(cn_plan_alltoall_aapc__right_and_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
