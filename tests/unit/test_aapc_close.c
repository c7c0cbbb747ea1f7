/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-to-all in phases, again and again (cn_aapc_closing(), sched/alltoall/aapc_close.c): by brute
 * force over two operations in a row, from nothing but the schedules and the paths of the messages.
 * A node begins the second when its part of the first is complete: all that it sends and all that
 * comes to it.
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
#include "sched/sched.h"
#include "util/bits.h"

#define MOST_HOSTS 32u
#define WORDS	   (MOST_HOSTS * MOST_HOSTS / 64)
#define NOBODY	   UINT32_MAX
#define ROUNDS	   400u

static uint64_t seed = 20050404;

/* ---- a network and everybody's schedule --------------------------------------------------- */

/* Messages that somebody knows to be sent: bit from * MOST_HOSTS + to. */
struct known {
	uint64_t bits[WORDS];
};

struct party {
	struct cn_sched s;
	uint32_t *match;    /* [s.n] of a receive: the sender's action */
	bool *waited;	    /* [s.n] a receive that a WAIT depends on */
	struct known *then; /* [s.n] of a send: what its sender knew once it was sent */
	struct known now;
	uint32_t at; /* next action */
};

struct net {
	struct cn_topo *topo;
	struct cn_tree *tree;
	struct cn_aapc *a;
	uint32_t n, numbers[MOST_HOSTS + 1];
	struct cn_layout layout; /* a rank a host */
	struct party *p;
};

static void net_of(struct net *net, struct cn_topo *topo)
{
	struct cn_err err = { 0 };

	memset(net, 0, sizeof(*net));
	net->topo = topo;
	net->n = topo->nhosts;
	if (cn_tree_make(topo, topo->hosts, net->n, CN_TOPO_NONE, &net->tree, &err) ||
	    cn_aapc_new(net->tree, &net->a, &err)) {
		fail_msg("%s", err.text);
	}
}

static void net_free(struct net *net)
{
	for (uint32_t b = 0; net->p != NULL && b < net->n; b++) {
		cn_sched_reset(&net->p[b].s);
		free(net->p[b].match);
		free(net->p[b].waited);
		free(net->p[b].then);
	}
	free(net->p);
	cn_aapc_free(net->a);
	cn_tree_free(net->tree);
	cn_topo_free(net->topo);
}

static void net_shape(struct net *net, const char *shape)
{
	struct cn_topo *topo = NULL;

	assert_int_equal(cn_topo_shape(shape, 0, 0, 0, 0, &topo, NULL), COLLNET_OK);
	net_of(net, topo);
}

/* Kind 0: a random tree of switches; 1: a chain; 2: a star; 3: most hosts on few switches. */
static void net_random(struct net *net, uint32_t hosts, uint32_t switches, uint32_t kind)
{
	struct cn_topo *topo = NULL;
	struct cn_err err = { 0 };
	char text[8192];
	size_t at = 0;

	for (uint32_t s = 0; s < switches; s++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "switch s%u\n", s);
		if (s > 0) {
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "link s%u s%u rate none\n", s,
					       kind == 1   ? s - 1
					       : kind == 2 ? 0
							   : cn_below(&seed, s));
		}
	}
	for (uint32_t h = 0; h < hosts; h++) {
		uint32_t s = cn_below(&seed, switches);

		s = kind == 3 && cn_below(&seed, 2) ? s - s % 3 : s;
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "host h%u\nlink h%u s%u rate none\n", h, h, s);
	}
	assert_true(at < sizeof(text));
	if (cn_topo_parse(text, at, "test", &topo, &err)) {
		fail_msg("%s", err.text);
	}
	net_of(net, topo);
}

/* The k-th message from a to b is the k-th that b expects from a. */
static void match(struct net *net, uint32_t a, uint32_t b)
{
	const struct cn_sched *from = &net->p[a].s, *to = &net->p[b].s;
	uint32_t i = 0;

	for (uint32_t k = 0; k < to->n; k++) {
		if (to->actions[k].kind != CN_ACT_RECV || to->actions[k].peer != a) {
			continue;
		}
		while (i < from->n &&
		       (from->actions[i].kind != CN_ACT_SEND || from->actions[i].peer != b)) {
			i++;
		}
		assert_true(i < from->n);
		assert_int_equal(from->actions[i].len, to->actions[k].len);
		assert_int_equal(from->actions[i].phase, to->actions[k].phase);
		net->p[b].match[k] = i++;
	}
	for (; i < from->n; i++) {
		assert_false(from->actions[i].kind == CN_ACT_SEND && from->actions[i].peer == b);
	}
}

static void plan(struct net *net)
{
	struct cn_plan p = { .op = CN_OP_ALLTOALL,
			     .bytes = 8,
			     .algorithm = cn_algorithm_find(CN_OP_ALLTOALL, "aapc")->id };
	uint32_t n = net->n;

	assert_true(n <= MOST_HOSTS);
	for (uint32_t i = 0; i <= n; i++) {
		net->numbers[i] = i;
	}
	net->layout = (struct cn_layout){ .nranks = n,
					  .nnodes = n,
					  .node_of = net->numbers,
					  .first = net->numbers,
					  .ranks = net->numbers,
					  .tree = net->tree };
	net->p = calloc(n, sizeof(*net->p));
	assert_non_null(net->p);
	for (uint32_t b = 0; b < n; b++) {
		struct party *x = &net->p[b];
		struct cn_err err = { 0 };

		if (cn_sched_plan(&net->layout, &p, b, &x->s, &err)) {
			fail_msg("%s", err.text);
		}
		x->match = calloc(x->s.n + 1, sizeof(*x->match));
		x->waited = calloc(x->s.n + 1, sizeof(*x->waited));
		x->then = calloc(x->s.n + 1, sizeof(*x->then));
		assert_true(x->match != NULL && x->waited != NULL && x->then != NULL);
		for (uint32_t i = 0; i < x->s.n; i++) {
			if (x->s.actions[i].kind == CN_ACT_WAIT) {
				x->waited[x->s.actions[i].dep_on] = true;
			}
		}
	}
	for (uint32_t a = 0; a < n; a++) {
		for (uint32_t b = 0; b < n; b++) {
			match(net, a, b);
		}
	}
}

/* ---- two operations ----------------------------------------------------------------------- */

static void learn(struct known *into, const struct known *from)
{
	for (uint32_t w = 0; w < WORDS; w++) {
		into->bits[w] |= from->bits[w];
	}
}

static bool knows(const struct known *k, uint32_t from, uint32_t to)
{
	uint32_t bit = from * MOST_HOSTS + to;

	return cn_bit(k->bits, bit);
}

static bool share(const struct net *net, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	uint32_t x[2 * MOST_HOSTS], y[2 * MOST_HOSTS];
	uint32_t nx = cn_tree_path(net->tree, a, b, x), ny = cn_tree_path(net->tree, c, d, y);

	for (uint32_t i = 0; i < nx; i++) {
		for (uint32_t k = 0; k < ny; k++) {
			if (x[i] == y[k]) {
				return true;
			}
		}
	}
	return false;
}

/* Messages of the first operation that may be under way on links of this one of the second. */
static uint32_t unknown(const struct net *net, uint32_t from, uint32_t to, const struct known *k)
{
	uint32_t n = 0;

	for (uint32_t a = 0; a < net->n; a++) {
		for (uint32_t b = 0; b < net->n; b++) {
			n += a != b && !knows(k, a, b) && share(net, a, b, from, to);
		}
	}
	return n;
}

/* As far as the node can go: messages of the first operation are noted, of the second judged. */
static bool go_on(struct net *net, uint32_t b, bool second, uint32_t *unordered)
{
	struct party *x = &net->p[b];
	uint32_t before = x->at;

	for (; x->at < x->s.n; x->at++) {
		const struct cn_action *a = &x->s.actions[x->at];

		if (a->kind == CN_ACT_WAIT) {
			uint32_t from = x->s.actions[a->dep_on].peer;
			uint32_t sent = x->match[a->dep_on];

			if (net->p[from].at <= sent) {
				break;
			}
			learn(&x->now, &net->p[from].then[sent]);
		} else if (a->kind == CN_ACT_SEND) {
			uint32_t bit = b * MOST_HOSTS + a->peer;

			if (a->len > 0 && second) {
				*unordered += unknown(net, b, a->peer, &x->now);
			} else if (a->len > 0) {
				cn_bit_set(x->now.bits, bit);
			}
			x->then[x->at] = x->now;
		}
	}
	return x->at > before;
}

static void operate(struct net *net, bool second, uint32_t *unordered)
{
	bool moved = true;

	for (uint32_t b = 0; b < net->n; b++) {
		net->p[b].at = 0;
	}
	while (moved) {
		moved = false;
		for (uint32_t b = 0; b < net->n; b++) {
			moved |= go_on(net, b, second, unordered);
		}
	}
	for (uint32_t b = 0; b < net->n; b++) {
		assert_int_equal(net->p[b].at, net->p[b].s.n);
	}
}

/*
 * Pairs of messages of two operations in a row that share a link without an order. `skip` leaves
 * out, at one node or at all of them (NOBODY: none), what nobody waits for. Returns in *closing how
 * many of those there are.
 */
static uint32_t two_in_a_row(struct net *net, bool all, uint32_t skip, uint32_t *closing)
{
	uint32_t unordered = 0;

	*closing = 0;
	for (uint32_t b = 0; b < net->n; b++) {
		net->p[b].now = (struct known){ { 0 } };
	}
	operate(net, false, &unordered);
	for (uint32_t b = 0; b < net->n; b++) { /* the operation is complete */
		struct party *x = &net->p[b];

		for (uint32_t i = 0; i < x->s.n; i++) {
			const struct cn_action *a = &x->s.actions[i];
			bool closes = a->len == 0 && !x->waited[i];

			if (a->kind == CN_ACT_RECV && !(closes && (all || *closing == skip))) {
				learn(&x->now, &net->p[a->peer].then[x->match[i]]);
			}
			*closing += a->kind == CN_ACT_RECV && closes;
		}
	}
	operate(net, true, &unordered);
	return unordered;
}

static void random_net(struct net *net, uint32_t round)
{
	uint32_t hosts = round % 20 == 19 ? 24 + cn_below(&seed, MOST_HOSTS - 23)
					  : 1 + cn_below(&seed, 16);

	net_random(net, hosts, 1 + cn_below(&seed, 9), round % 4);
	plan(net);
}

static void aapc__two_operations_in_a_row(void **state)
{
	uint32_t overlap = 0, closing, total = 0;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct net net;
		uint32_t unordered;

		random_net(&net, round);
		unordered = two_in_a_row(&net, false, NOBODY, &closing);
		if (unordered > 0) {
			fail_msg("round %u: %u pairs of %u hosts are unordered", round, unordered,
				 net.n);
		}
		assert_true(closing <= 2 * net.tree->n);
		total += closing;
		overlap += two_in_a_row(&net, true, NOBODY, &closing) > 0;
		net_free(&net);
	}
	print_message("%u synchronisations close; without them %u networks of %u overlap\n", total,
		      overlap, ROUNDS);
	assert_true(overlap > ROUNDS / 2); /* or the test tests nothing */
}

/* Most of what closes is needed: without that one alone, something is unordered. */
static void aapc__few_close_in_vain(void **state)
{
	uint32_t needed = 0, total = 0;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < 60; round++) {
		struct net net;
		uint32_t closing;

		net_random(&net, 2 + cn_below(&seed, 9), 1 + cn_below(&seed, 6), round % 4);
		plan(&net);
		two_in_a_row(&net, false, NOBODY, &closing);
		for (uint32_t k = 0, again; k < closing; k++) {
			needed += two_in_a_row(&net, false, k, &again) > 0;
		}
		total += closing;
		net_free(&net);
	}
	print_message("%u of %u are needed\n", needed, total);
	assert_true(needed <= total && needed * 10 >= total * 9);
}

/* ---- both ends ---------------------------------------------------------------------------- */

static bool has(const struct cn_aapc_closing *list, uint32_t n, const struct cn_aapc_closing *c)
{
	for (uint32_t i = 0; i < n; i++) {
		if (memcmp(&list[i], c, sizeof(*c)) == 0) {
			return true;
		}
	}
	return false;
}

/* What a place tells, the other one expects, and the other way; once a pair. Returns how many. */
static uint32_t check_ends(const struct cn_aapc *a, uint32_t me)
{
	struct cn_aapc_closing *mine, *other;
	uint32_t n, m;

	assert_int_equal(cn_aapc_closing(a, me, &mine, &n, NULL), COLLNET_OK);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t from = mine[i].last.from, to = mine[i].to;

		assert_true((from == me) != (to == me));
		assert_int_equal(cn_aapc_closing(a, from == me ? to : from, &other, &m, NULL), 0);
		assert_true(has(other, m, &mine[i]));
		free(other);
		for (uint32_t k = 0; k < i; k++) {
			assert_false(mine[k].last.from == from && mine[k].to == to);
		}
	}
	free(mine);
	return n;
}

static void cn_aapc_closing__both_ends_agree(void **state)
{
	static const char *const shapes[] = { "16x64", "128x8", "512x2", "1023" };
	struct net net;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < 100; round++) {
		net_random(&net, 1 + cn_below(&seed, MOST_HOSTS), 1 + cn_below(&seed, 9),
			   round % 4);
		for (uint32_t me = 0; me < net.n; me++) {
			check_ends(net.a, me);
		}
		net_free(&net);
	}
	for (uint32_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		uint32_t some = 0;

		net_shape(&net, shapes[s]);
		for (uint32_t i = 0; i < 3; i++) {
			some += check_ends(net.a, cn_below(&seed, net.n));
		}
		some += check_ends(net.a, 0) + check_ends(net.a, net.n - 1);
		assert_true(some > 0);
		net_free(&net);
	}
}

/* Nothing overlaps where nobody shares: one host, two hosts. */
static void cn_aapc_closing__one_and_two_hosts(void **state)
{
	(void)state;
	for (uint32_t hosts = 1; hosts <= 2; hosts++) {
		struct cn_aapc_closing *list;
		struct net net;
		uint32_t n;

		net_random(&net, hosts, 3, 1);
		for (uint32_t me = 0; me < hosts; me++) {
			assert_int_equal(cn_aapc_closing(net.a, me, &list, &n, NULL), COLLNET_OK);
			assert_int_equal(n, 0);
			free(list);
		}
		net_free(&net);
	}
}

/*
 * One switch, n hosts: i sends to i + 1, i + 2 .., so h hears of h - 1 first, of h + 1 last: h + 1
 * tells h - 1 that the link to h is free.
 */
static void cn_aapc_closing__one_switch(void **state)
{
	struct cn_aapc_closing *list;
	struct net net;
	uint32_t n;

	(void)state;
	net_shape(&net, "8");
	for (uint32_t me = 0; me < 8; me++) {
		assert_int_equal(cn_aapc_closing(net.a, me, &list, &n, NULL), COLLNET_OK);
		assert_int_equal(n, 2);
		for (uint32_t i = 0; i < 2; i++) {
			uint32_t h = list[i].last.to;

			assert_int_equal(list[i].last.phase, 6);
			assert_int_equal(list[i].last.from, (h + 1) % 8);
			assert_int_equal(list[i].to, (h + 7) % 8);
		}
		assert_int_not_equal(list[0].to, list[1].to);
		free(list);
	}
	net_free(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aapc__two_operations_in_a_row),
		cmocka_unit_test(aapc__few_close_in_vain),
		cmocka_unit_test(cn_aapc_closing__both_ends_agree),
		cmocka_unit_test(cn_aapc_closing__one_and_two_hosts),
		cmocka_unit_test(cn_aapc_closing__one_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
