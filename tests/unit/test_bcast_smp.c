/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broadcast of Sun, Bader, Lin and Ling: shortest paths against brute force, the heuristics
 * against all orders and all trees, and 1,000 random networks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/bcast/bcast.h"
#include "sched/bcast/relay.h"
#include "sched/bcast/switch.h"
#include "sched/select.h"
#include "tools/papers/papers.h"
#include "tools/papers/bcast.h"

static uint64_t seed = 20010423;

/* ---- shortest paths ------------------------------------------------------------------------- */

static struct cn_topo *random_graph(uint32_t switches, uint32_t more)
{
	char text[16384];
	size_t at = 0;
	struct cn_topo *t;
	struct cn_err err = { 0 };

	for (uint32_t i = 0; i < switches; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "switch s%u\n", i);
		if (i > 0) {
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "link s%u s%u rate none\n", i, cn_below(&seed, i));
		}
	}
	while (switches > 1 && more-- > 0) {
		uint32_t a = cn_below(&seed, switches), b = cn_below(&seed, switches - 1);

		at += (size_t)snprintf(text + at, sizeof(text) - at, "link s%u s%u rate none\n", a,
				       b < a ? b : b + 1);
	}
	at += (size_t)snprintf(text + at, sizeof(text) - at, "host h\nlink h s0 rate none\n");
	if (cn_topo_parse(text, at, "random", &t, &err)) {
		fail_msg("%s", err.text);
	}
	return t;
}

/* Dijkstra against relaxing all links until nothing changes; and the working switch above. */
static void cn_bswitch_shortest__against_relaxation(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		uint32_t n = 1 + cn_below(&seed, 20), source = cn_below(&seed, n), above[32];
		struct cn_topo *t = random_graph(n, cn_below(&seed, 30));
		uint64_t weight[64], dist[32];
		bool working[32], tree_only = i % 3 == 0, again = true;
		struct cn_bswitch net = {
			.topo = t, .tree_only = tree_only, .weight = weight, .working = working
		};
		struct cn_bswitch_paths p;

		for (uint32_t k = 0; k < t->nlinks; k++) {
			weight[k] = cn_below(&seed, 10); /* ties, and links that cost nothing */
		}
		for (uint32_t v = 0; v < t->nvertices; v++) {
			working[v] = cn_below(&seed, 2) && v < n;
			dist[v] = v == source ? 0 : UINT64_MAX;
		}
		while (again) {
			again = false;
			for (uint32_t k = 0; k < 2 * t->nlinks; k++) {
				const struct cn_topo_link *l = &t->links[k / 2];
				uint32_t a = k % 2 ? l->a : l->b, b = k % 2 ? l->b : l->a;

				if (a < n && b < n && dist[a] != UINT64_MAX &&
				    (!tree_only || cn_topo_in_tree(t, k / 2)) &&
				    dist[a] + weight[k / 2] < dist[b]) {
					dist[b] = dist[a] + weight[k / 2];
					again = true;
				}
			}
		}
		assert_int_equal(cn_bswitch_shortest(&net, source, &p, NULL), COLLNET_OK);
		assert_int_equal(p.reached, n);
		cn_bswitch_above(&net, &p, above);
		for (uint32_t v = 0; v < n; v++) {
			uint32_t x = v;

			assert_true(p.dist[v] == dist[v]);
			if (v == source) {
				continue;
			}
			do {
				uint32_t before = cn_bswitch_across(t, p.via[x], x);

				assert_true(p.dist[before] + weight[p.via[x]] == p.dist[x]);
				x = before;
			} while (!working[x] && x != source);
			assert_int_equal(above[v], x);
		}
		cn_bswitch_paths_done(&p);
		cn_topo_free(t);
	}
}

/* ---- the heuristics ------------------------------------------------------------------------- */

#define N_MAX 12

/* Endpoints on a ring of links, 2 i clockwise from i, 2 i + 1 back to it; costs at random. */
struct table {
	uint32_t n, channels;
	uint64_t busy[N_MAX][N_MAX], total[N_MAX][N_MAX];
};

static void cost(const void *ctx, uint32_t from, uint32_t to, uint64_t *busy, uint64_t *total)
{
	const struct table *t = ctx;

	*busy = t->busy[from][to];
	*total = t->total[from][to];
}

static uint32_t path(const void *ctx, uint32_t from, uint32_t to, uint32_t *links)
{
	const struct table *t = ctx;
	uint32_t n = 0, clockwise = (to + t->n - from) % t->n;

	while (from != to) {
		if (2 * clockwise <= t->n) {
			links[n++] = 2 * from;
			from = (from + 1) % t->n;
		} else {
			from = (from + t->n - 1) % t->n;
			links[n++] = 2 * from + 1;
		}
	}
	return n;
}

static uint32_t channels(const void *ctx, uint32_t link)
{
	const struct table *t = ctx;

	(void)link;
	return t->channels;
}

static void table_init(struct table *t, uint32_t n, struct cn_relay_net *net)
{
	t->n = n;
	t->channels = 1 + cn_below(&seed, 3);
	for (uint32_t a = 0; a < n; a++) {
		for (uint32_t b = 0; b < n; b++) {
			t->busy[a][b] = 1 + cn_below(&seed, 20);
			t->total[a][b] = t->busy[a][b] + cn_below(&seed, 2) * cn_below(&seed, 20);
		}
	}
	*net = (struct cn_relay_net){ .ctx = t,
				      .cost = cost,
				      .path = path,
				      .channels = channels,
				      .nlinks = 2 * n,
				      .longest = n,
				      .segments = 1 + cn_below(&seed, 2) * cn_below(&seed, 6) };
}

/* A tree in which i receives from one of those before it; the root is 0. */
static void random_tree(struct cn_relay *r, uint32_t n, const struct cn_relay_net *net)
{
	assert_int_equal(cn_relay_init(r, n, 0, net, NULL), COLLNET_OK);
	for (uint32_t i = 1; i < n; i++) {
		cn_relay_attach(r, i, cn_below(&seed, i));
	}
}

/* The last arrival, stepped segment by segment from the lists alone. */
static uint64_t stepped(const struct cn_relay *r)
{
	uint64_t at[N_MAX][8] = { { 0 } }, last = 0;
	uint32_t queue[N_MAX], tail = 1;

	queue[0] = r->root;
	for (uint32_t q = 0; q < tail; q++) {
		uint32_t v = queue[q];
		uint64_t free_at = 0, busy, total;

		for (uint32_t s = 0; s < r->net.segments; s++) {
			free_at = at[v][s] > free_at ? at[v][s] : free_at;
			last = at[v][s] > last ? at[v][s] : last;
			for (uint32_t c = r->first[v]; c != UINT32_MAX; c = r->next[c]) {
				r->net.cost(r->net.ctx, v, c, &busy, &total);
				at[c][s] = free_at + total;
				free_at += busy;
			}
		}
		for (uint32_t c = r->first[v]; c != UINT32_MAX; c = r->next[c]) {
			queue[tail++] = c;
		}
	}
	assert_int_equal(tail, r->n);
	return last;
}

/* The best of all orders: node by node, every child first in turn. */
static void all_orders(struct cn_relay *r, uint32_t v, uint64_t *best)
{
	uint32_t kids[N_MAX], n = 0, order[N_MAX];

	if (v == r->n) {
		uint64_t end = stepped(r);

		*best = end < *best ? end : *best;
		return;
	}
	for (uint32_t c = r->first[v]; c != UINT32_MAX; c = r->next[c]) {
		kids[n++] = c;
	}
	for (uint32_t code = 0, codes = n < 2	 ? 1
					: n == 2 ? 2
					: n == 3 ? 6
					: n == 4 ? 24
						 : 120;
	     code < codes; code++) {
		uint32_t left[N_MAX], x = code;

		memcpy(left, kids, sizeof(left));
		for (uint32_t k = 0; k < n; k++) {
			uint32_t at = x % (n - k);

			x /= n - k;
			order[k] = left[at];
			memmove(left + at, left + at + 1, (n - k - 1 - at) * sizeof(*left));
		}
		for (uint32_t k = 0; k < n; k++) {
			r->next[order[k]] = k + 1 < n ? order[k + 1] : UINT32_MAX;
		}
		r->first[v] = n > 0 ? order[0] : UINT32_MAX;
		all_orders(r, v + 1, best);
	}
}

static void cn_relay_down_up__is_the_best_order(void **state)
{
	(void)state;
	for (int i = 0; i < 400; i++) {
		uint64_t best = UINT64_MAX;
		struct cn_relay_net net;
		struct cn_relay r;
		struct table t;

		table_init(&t, 1 + cn_below(&seed, 6), &net);
		random_tree(&r, t.n, &net);
		cn_relay_time(&r);
		assert_int_equal(r.finish, stepped(&r));
		all_orders(&r, 0, &best);
		cn_relay_down_up(&r);
		assert_int_equal(r.finish, stepped(&r));
		assert_int_equal(r.finish, best);
		cn_relay_done(&r);
	}
}

/* The finish of the best tree of all, links being free: parents by counting. */
static uint64_t best_tree(uint32_t n, const struct cn_relay_net *net)
{
	uint64_t best = UINT64_MAX;
	uint32_t code[N_MAX] = { 0 };

	for (;;) {
		struct cn_relay r;
		uint32_t i, reached = 1;

		assert_int_equal(cn_relay_init(&r, n, 0, net, NULL), COLLNET_OK);
		for (i = 1; i < n; i++) {
			if (code[i] != i) {
				cn_relay_attach(&r, i, code[i]);
			}
		}
		for (i = 1; i < n; i++) { /* does everyone hang on the root? */
			uint32_t v = i, steps = 0;

			while (v != 0 && v != UINT32_MAX && steps++ < n) {
				v = r.parent[v];
			}
			reached += v == 0;
		}
		if (reached == n) {
			cn_relay_down_up(&r);
			best = r.finish < best ? r.finish : best;
		}
		cn_relay_done(&r);
		for (i = 1; i < n && ++code[i] == n; i++) {
			code[i] = 0;
		}
		if (i >= n) {
			return best;
		}
	}
}

/* Never slower, never more conflicts, still a tree, fixed ones stay; and how near to the best. */
static void cn_relay_up_down__never_worse(void **state)
{
	uint32_t optimal = 0, compared = 0, moved = 0;

	(void)state;
	for (int i = 0; i < 600; i++) {
		uint32_t n = 1 + cn_below(&seed, i % 4 == 0 ? 5 : N_MAX), was[N_MAX], reparented;
		bool movable[N_MAX];
		uint64_t before, conflicts, after;
		struct cn_relay_net net;
		struct cn_relay r;
		struct table t;

		table_init(&t, n, &net);
		for (uint32_t v = 0; v < n; v++) {
			movable[v] = cn_below(&seed, 4) > 0;
		}
		net.movable = i % 4 == 0 ? NULL : movable;
		random_tree(&r, n, &net);
		memcpy(was, r.parent, n * sizeof(*was));
		cn_relay_down_up(&r);
		before = r.finish;
		assert_int_equal(cn_relay_conflicts(&r, &conflicts, NULL), COLLNET_OK);
		assert_int_equal(cn_relay_up_down(&r, &reparented, NULL), COLLNET_OK);
		assert_true(r.finish <= before);
		assert_int_equal(r.finish, stepped(&r));
		assert_int_equal(cn_relay_conflicts(&r, &after, NULL), COLLNET_OK);
		assert_true(after <= conflicts);
		moved += reparented > 0;
		for (uint32_t v = 0; v < n && net.movable != NULL; v++) {
			assert_true(movable[v] || r.parent[v] == was[v]);
		}
		if (net.movable == NULL) {
			uint64_t best = best_tree(n, &net);

			assert_true(r.finish >= best);
			compared++;
			optimal += r.finish == best;
		}
		cn_relay_done(&r);
	}
	printf("of random trees %u of 600 changed; %u of %u small ones became the best there is\n",
	       moved, optimal, compared);
	assert_true(moved > 200);
}

/* What up-to-down keeps up to date while it moves children is what a new computation gives. */
static void cn_relay_up_down__leaves_it_in_order(void **state)
{
	(void)state;
	for (int i = 0; i < 600; i++) {
		uint32_t n = 1 + cn_below(&seed, N_MAX), next[N_MAX];
		uint64_t start[N_MAX], ready[N_MAX], finish, sum;
		struct cn_relay_net net;
		struct cn_relay r;
		struct table t;

		table_init(&t, n, &net);
		random_tree(&r, n, &net);
		assert_int_equal(cn_relay_up_down(&r, NULL, NULL), COLLNET_OK);
		memcpy(next, r.next, n * sizeof(*next));
		memcpy(start, r.start, n * sizeof(*start));
		memcpy(ready, r.ready, n * sizeof(*ready));
		finish = r.finish;
		sum = r.sum;
		cn_relay_down_up(&r);
		assert_int_equal(finish, r.finish);
		assert_int_equal(sum, r.sum);
		assert_memory_equal(next, r.next, n * sizeof(*next));
		assert_memory_equal(start, r.start, n * sizeof(*start));
		assert_memory_equal(ready, r.ready, n * sizeof(*ready));
		cn_relay_done(&r);
	}
}

/* Overlaps counted with pencil and paper: all of a star's messages leave by one link. */
static void cn_relay_conflicts__counts_channels(void **state)
{
	struct cn_relay_net net;
	struct cn_relay r;
	struct table t;
	uint64_t conflicts;

	(void)state;
	table_init(&t, 8, &net);
	net.segments = 1;
	for (uint32_t a = 0; a < 8; a++) {
		for (uint32_t b = 0; b < 8; b++) {
			t.busy[a][b] = t.total[a][b] = 10;
		}
	}
	/* 0 -> 1 at 0, then 0 -> 3 (over 0-1, 1-2, 2-3) and 1 -> 2 (over 1-2) from 10 to 20. */
	assert_int_equal(cn_relay_init(&r, 4, 0, &net, NULL), COLLNET_OK);
	cn_relay_attach(&r, 1, 0);
	cn_relay_attach(&r, 3, 0);
	cn_relay_attach(&r, 2, 1);
	cn_relay_time(&r);
	assert_int_equal(r.finish, 20);
	t.channels = 1;
	assert_int_equal(cn_relay_conflicts(&r, &conflicts, NULL), COLLNET_OK);
	assert_int_equal(conflicts, 1);
	t.channels = 2;
	assert_int_equal(cn_relay_conflicts(&r, &conflicts, NULL), COLLNET_OK);
	assert_int_equal(conflicts, 0);
	cn_relay_done(&r);
}

/* A star of one-host switches: far below the n - 1 sends of the root one after another. */
static void cn_bcast_smp__a_star_is_served_in_parallel(void **state)
{
	struct cn_plan p = { .op = CN_OP_BCAST, .algorithm = 16, .bytes = 1024 };
	uint32_t id[65];
	struct cn_topo *topo;
	struct cn_tree *tree;
	struct cn_bcast b;
	char text[8192];
	size_t at = (size_t)snprintf(text, sizeof(text), "switch hub\n");
	uint64_t busy, total;

	(void)state;
	for (uint32_t i = 0; i < 64; i++) {
		id[i] = i;
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "switch s%u\nhost h%u\n"
				       "link h%u s%u rate 1gbit\nlink s%u hub rate 1gbit\n",
				       i, i, i, i, i);
	}
	id[64] = 64;
	assert_int_equal(cn_topo_parse(text, at, "star", &topo, NULL), COLLNET_OK);
	assert_int_equal(cn_tree_make(topo, topo->hosts, 64, CN_TOPO_NONE, &tree, NULL),
			 COLLNET_OK);
	assert_int_equal(cn_bcast_predict(&(struct cn_layout){ .nranks = 64,
							       .nnodes = 64,
							       .node_of = id,
							       .first = id,
							       .ranks = id,
							       .tree = tree },
					  &p, &cn_cost_default, &b, NULL),
			 COLLNET_OK);
	cn_bcast_cost(&cn_cost_default, tree, 0, 1, p.bytes, &busy, &total);
	printf("64 switches of one host: %u phases, %.1f us, by the root alone %.1f\n", b.phases,
	       (double)b.time / 1e3, (double)(62 * busy + total) / 1e3);
	assert_true(b.phases <= 20 && b.time < (62 * busy + total) / 2);
	cn_bcast_done(&b);
	cn_tree_free(tree);
	cn_topo_free(topo);
}

/* "Broadcast on Clusters of SMPs with Optimal Concurrency": the heuristics on 1,000 networks. */
static void smp_broadcast__1000_random_networks_never_worse(void **state)
{
	uint64_t s = seed;
	uint32_t better = 0, sorted = 0, beats = 0;
	struct cn_err err = { 0 };

	(void)state;
	for (uint32_t i = 0; i < EXPERIMENT_BCAST_NETWORKS; i++) {
		struct cn_bswitch_times t;
		uint32_t switches;

		if (experiment_bcast_network(&s, &switches, &t, &err)) {
			fail_msg("network %u: %s", i, err.text);
		}
		assert_true(t.working >= 2 && t.shortest > 0);
		assert_true(t.down_up <= t.shortest);
		assert_true(t.final <= t.down_up);
		better += t.final < t.shortest;
		sorted += t.down_up < t.shortest;
		beats += t.final < t.binomial;
	}
	printf("of 1000 networks: %u improved over the tree of shortest paths (%u by its order "
	       "alone), none worse; %u faster than binomial\n",
	       better, sorted, beats);
	assert_true(better > 700);
	assert_true(beats > 800);
}

static void experiment_bcast__a_line_a_network(void **state)
{
	char *text = NULL, *line, *again = NULL;
	size_t len = 0, len2 = 0;
	FILE *f = open_memstream(&text, &len), *g = open_memstream(&again, &len2);
	uint32_t lines = 0;

	(void)state;
	assert_true(f && g);
	assert_int_equal(experiment_bcast(seed, f, NULL), COLLNET_OK);
	assert_int_equal(experiment_bcast(seed, g, NULL), COLLNET_OK);
	fclose(f);
	fclose(g);
	assert_string_equal(text, again);
	for (line = text; (line = strchr(line, '\n')) != NULL; line++) {
		lines++;
	}
	assert_int_equal(lines, EXPERIMENT_BCAST_NETWORKS + 2);
	assert_non_null(strstr(text, ", 0 worse;"));
	free(text);
	free(again);
}

/* A chain of switches by which a message takes longer than 2^64 nanoseconds: the paths stay paths.
 */
static void cn_bcast_smp__hardly_any_rate(void **state)
{
	static const char text[] =
		"switch s0\nswitch s1\nswitch s2\nswitch s3\n"
		"link s0 s1 rate 1kbit\nlink s1 s2 rate 1kbit\nlink s2 s3 rate 1kbit\n"
		"host a\nlink a s0 rate 1kbit\nhost b\nlink b s1 rate 1kbit\n"
		"host c\nlink c s2 rate 1kbit\nhost d\nlink d s3 rate 1kbit\n";
	const uint32_t numbers[] = { 0, 1, 2, 3, 4 };
	const struct cn_plan p = { .op = CN_OP_BCAST, .bytes = COLLNET_BLOCK_MAX };
	struct cn_layout l = {
		.nranks = 4, .nnodes = 4, .node_of = numbers, .first = numbers, .ranks = numbers
	};
	struct cn_topo *topo;
	struct cn_tree *tree;
	struct cn_err err = { 0 };

	(void)state;
	assert_int_equal(cn_topo_parse(text, sizeof(text) - 1, "slow", &topo, &err), COLLNET_OK);
	assert_int_equal(cn_tree_make(topo, topo->hosts, 4, CN_TOPO_NONE, &tree, &err), COLLNET_OK);
	l.tree = tree;
	assert_non_null(cn_select(&l, &p));
	cn_tree_free(tree);
	cn_topo_free(topo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_bswitch_shortest__against_relaxation),
		cmocka_unit_test(cn_relay_down_up__is_the_best_order),
		cmocka_unit_test(cn_relay_up_down__never_worse),
		cmocka_unit_test(cn_relay_up_down__leaves_it_in_order),
		cmocka_unit_test(cn_relay_conflicts__counts_channels),
		cmocka_unit_test(cn_bcast_smp__a_star_is_served_in_parallel),
		cmocka_unit_test(cn_bcast_smp__hardly_any_rate),
		cmocka_unit_test(smp_broadcast__1000_random_networks_never_worse),
		cmocka_unit_test(experiment_bcast__a_line_a_network),
	};

	printf("seed %llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
