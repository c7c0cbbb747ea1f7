/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker of schedules: order, each violation with its sentence, on schedules made by hand; and
 * spoilt schedules of all kinds, judged by brute force too (check_oracle.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_book.h"
#include "sched_fixture.h"

static uint64_t seed = 20070301;

static uint32_t below(uint32_t n)
{
	return (uint32_t)(cn_random(&seed) % n);
}

/* ---- tests: order ------------------------------------------------------------------------- */

static void run__a_wait_is_missing(void **state)
{
	struct book *b = b_good();

	(void)state;
	/* b's first message between the switches waits for a's last one. */
	for (uint32_t i = b->s[B].n; i-- > 0;) {
		if (b->s[B].actions[i].kind == CN_ACT_WAIT) {
			b_cut(&b->s[B], i);
		}
	}
	b_expect(b, CN_GUARANTEE_LINKS | CN_GUARANTEE_OPTIMAL, "");
	b_expect(b, ALL,
		 "a -> d of phase 1 and b -> c of phase 2 both use link s0 -> s1, and nothing "
		 "keeps the second back until the first is sent");
	b_close(b);
}

/* What is told at the end, and nobody waits for: it may be, as long as both ends have it. */
static void run__told_at_the_end(void **state)
{
	struct book *b = b_good();
	struct cn_check_report before, after;
	struct cn_action a = { .kind = CN_ACT_SEND, .peer = D };
	uint32_t i = b->s[A].n;

	(void)state;
	assert_int_equal(b_judge(b, ALL, &before, NULL), COLLNET_OK);
	while (b->s[A].actions[--i].kind != CN_ACT_SEND) {
	}
	a.phase = b->s[A].actions[i].phase;
	b_add(b, A, a);
	assert_int_not_equal(b_judge(b, ALL, &after, NULL), COLLNET_OK);
	a.kind = CN_ACT_RECV;
	a.peer = A;
	b_add(b, D, a);
	b_expect(b, ALL, "");
	assert_int_equal(b_judge(b, ALL, &after, NULL), COLLNET_OK);
	assert_int_equal(after.syncs, before.syncs + 1);
	assert_int_equal(after.messages, before.messages);
	b_close(b);
}

/* The sentence for a list, and one for what is told too early to be of use. */
static void run__told_too_early(void **state)
{
	struct book *b = b_open(STAR, CN_OP_ALLTOALL, 0);
	struct cn_sched *s;
	struct cn_action x;

	(void)state;
	b_put(b, A, C, 0);
	b_put(b, B, C, 1);
	b_synchronise(b);
	b_write(b);
	b_expect(b, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED, "");
	s = &b->s[A]; /* copy, data, synchronisation */
	x = s->actions[1];
	s->actions[1] = s->actions[2];
	s->actions[2] = x;
	b_expect(b, CN_GUARANTEE_LINKS, "");
	b_expect(b, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED,
		 "a -> c of phase 0 and b -> c of phase 1 both use link s -> c, and nothing keeps "
		 "the "
		 "second back until the first is sent");
	b_close(b);
}

/* What a stream tells: that the one before it is over, not that it is itself. */
static void run__streams_know_less(void **state)
{
	struct book *b = b_open(STAR "host d\nlink d s rate none\n", CN_OP_ALLTOALL, 0);
	struct cn_action *a;
	uint32_t came;

	(void)state;
	/* a -> c, then a -> b; after it b -> c, or as it comes. */
	b_put(b, A, C, 0);
	b_put(b, A, B, 1);
	b_put(b, B, C, 2);
	b_write(b);
	b_expect(b, CN_GUARANTEE_ORDERED,
		 "a -> c of phase 0 and b -> c of phase 2 both use link s -> c, and nothing keeps "
		 "the "
		 "second back until the first is sent");
	a = b_action(b, B, CN_ACT_SEND, C, 2);
	came = b_find(b, B, CN_ACT_RECV, A, 1);
	a->dep = CN_DEP_COMPLETE;
	a->dep_on = came;
	b_expect(b, CN_GUARANTEE_ORDERED, "");
	a->dep = CN_DEP_STREAM;
	a->src = b->s[B].actions[came].dst;
	b_action(b, C, CN_ACT_RECV, B, 2)->src = a->src;
	b_expect(b, CN_GUARANTEE_ORDERED, "");
	/* d -> c of phase 3 after b's: only b tells. */
	b_put(b, D, C, 3);
	b->y[0] = (struct b_sync){ B, D, 2, 3 };
	b->ny = 1;
	b_write(b);
	a = b_action(b, B, CN_ACT_SEND, C, 2);
	a->dep = CN_DEP_STREAM;
	a->dep_on = came;
	a->src = b->s[B].actions[came].dst;
	b_action(b, C, CN_ACT_RECV, B, 2)->src = a->src;
	b_expect(b, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED, "");
	b_close(b);
}

/* The link on which a stream goes is not free when it begins. */
static void run__a_stream_is_not_over(void **state)
{
	struct book *b = b_open("switch s0\nswitch s1\nhost a\nhost b\nhost c\nhost d\n"
				"link a s0 rate none\nlink b s1 rate none\nlink c s0 rate none\n"
				"link d s1 rate none\nlink s0 s1 rate none\n",
				CN_OP_ALLTOALL, 0);
	struct cn_action *x, *y;
	uint32_t i, k;

	(void)state;
	/* a -> b over the switches; b -> c as it comes; c -> d, as that comes: over them again. */
	b_put(b, A, B, 0);
	b_put(b, B, C, 1);
	b_put(b, C, D, 2);
	b_write(b);
	x = b_action(b, B, CN_ACT_SEND, C, 1);
	i = b_find(b, B, CN_ACT_RECV, A, 0);
	x->dep = CN_DEP_COMPLETE;
	x->dep_on = i;
	y = b_action(b, C, CN_ACT_SEND, D, 2);
	k = b_find(b, C, CN_ACT_RECV, B, 1);
	y->dep = CN_DEP_COMPLETE;
	y->dep_on = k;
	b_expect(b, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED, "");
	x->dep = CN_DEP_STREAM;
	x->src = b->s[B].actions[i].dst;
	b->s[C].actions[k].src = x->src;
	b_expect(b, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED, ""); /* c waits for all of it */
	y->dep = CN_DEP_STREAM;
	y->src = b->s[C].actions[k].dst;
	b_action(b, D, CN_ACT_RECV, C, 2)->src = y->src;
	b_expect(
		b, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED,
		"a -> b of phase 0 and c -> d of phase 2 both use link s0 -> s1, and nothing keeps "
		"the second back until the first is sent");
	b_close(b);
}

static void run__phases_that_do_not_hold(void **state)
{
	struct book *b = b_open(STAR, CN_OP_ALLTOALL, 0);
	struct cn_action wait = { .kind = CN_ACT_WAIT, .dep = CN_DEP_COMPLETE };
	struct cn_action *x, *y, swap;

	(void)state;
	b_put(b, A, B, 0);
	b_put(b, C, A, 1);
	b_put(b, A, C, 2);
	b_write(b);
	b_expect(b, CN_GUARANTEE_LINKS, "");
	/* a's first message waits for what c sends a phase later. */
	b->s[A].n = 0;
	wait.dep_on = 0;
	b_add(b, A,
	      (struct cn_action){ .kind = CN_ACT_RECV,
				  .peer = C,
				  .phase = 1,
				  .src = { CN_BUF_SEND, C, 0 },
				  .dst = { CN_BUF_RECV, A, 0 } });
	b_add(b, A, wait);
	b_add_message(b, A, &b->m[0], true);
	b_add_message(b, A, &b->m[2], true);
	b_expect(b, CN_GUARANTEE_LINKS,
		 "a -> b of phase 0 waits for c -> a of phase 1, a later phase");
	b_expect(b, 0, "");
	/* The list and the phases of one sender. */
	b_write(b);
	x = b_action(b, A, CN_ACT_SEND, B, 0);
	y = b_action(b, A, CN_ACT_SEND, C, 2);
	swap = *x;
	*x = *y;
	*y = swap;
	b_expect(b, CN_GUARANTEE_LINKS,
		 "a -> b of phase 0 comes after a -> c of phase 2 in the sender's list");
	b_expect(b, 0, "");
	b_write(b);
	b->y[0] = (struct b_sync){ A, C, 0, 1 };
	b->ny = 1;
	b_write(b);
	b_expect(b, CN_GUARANTEE_LINKS, "");
	b_action(b, A, CN_ACT_SEND, C, 0)->phase = 1;
	b_action(b, C, CN_ACT_RECV, A, 0)->phase = 1;
	b_expect(b, CN_GUARANTEE_LINKS,
		 "a -> c of phase 1, a synchronisation, comes after a -> b of phase "
		 "0 in the sender's list");
	b_close(b);
}

/* What c tells b of phase 0 is held back until phase 1, though c has no data. */
static void run__a_synchronisation_too_late(void **state)
{
	struct book *b = b_open(STAR, CN_OP_ALLTOALL, 0);
	struct cn_action a = { .kind = CN_ACT_RECV, .peer = A, .phase = 1 };

	(void)state;
	b_put(b, A, B, 0);
	b_put(b, B, A, 1);
	b->y[0] = (struct b_sync){ A, C, 0, 1 };
	b->ny = 1;
	b_write(b);
	b_expect(b, CN_GUARANTEE_LINKS, "");
	/* b tells c after its data of phase 1, and c tells a. */
	b->s[C].n = 0;
	b_add(b, C, (struct cn_action){ .kind = CN_ACT_RECV, .peer = A });
	a.peer = B;
	b_add(b, C, a);
	b_add(b, C, (struct cn_action){ .kind = CN_ACT_WAIT, .dep = CN_DEP_COMPLETE, .dep_on = 1 });
	a.kind = CN_ACT_SEND;
	a.peer = C;
	b_add(b, B, a);
	a.peer = A;
	a.phase = 0;
	b_add(b, C, a);
	a.kind = CN_ACT_RECV;
	a.peer = C;
	b_add(b, A, a);
	b_expect(b, 0, "");
	b_expect(b, CN_GUARANTEE_LINKS, "c -> a of phase 0 cannot be sent before phase 1");
	b_close(b);
}

static void run__a_circle(void **state)
{
	struct book *b = b_open(STAR, CN_OP_ALLTOALL, 0);

	(void)state;
	b_put(b, A, B, 0);
	b_put(b, B, C, 0);
	b_put(b, C, A, 0);
	b_write(b);
	b_expect(b, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED, "");
	for (uint32_t i = 0; i < 3; i++) {
		struct cn_sched *s = &b->s[i]; /* copy, send, receive */
		struct cn_action x = s->actions[1];

		s->actions[1] = s->actions[2];
		s->actions[2] = x;
		s->actions[2].dep = CN_DEP_COMPLETE;
		s->actions[2].dep_on = 1;
	}
	b_expect(b, 0,
		 "a -> b of phase 0 waits for c -> a of phase 0, whose sender waits for b -> c of "
		 "phase 0 before: neither can proceed");
	b_close(b);
}

static void run__other_orders(void **state)
{
	struct book *b = b_open(STAR, CN_OP_ALLTOALL, 0);
	struct cn_action *a;

	(void)state;
	b_put(b, A, B, 0);
	b_put(b, A, C, 1);
	b_put(b, B, A, 2);
	b_write(b);
	b_expect(b, CN_GUARANTEE_ORDERED, "");
	b->s[A].order = CN_ORDER_ANY;
	b_expect(b, CN_GUARANTEE_LINKS, "");
	b_expect(b, CN_GUARANTEE_ORDERED,
		 "a -> b of phase 0 and a -> c of phase 1 both use link a -> s, and nothing keeps "
		 "the "
		 "second back until the first is sent");
	/* To one node there is an order. */
	b->m[1].to = B;
	b_write(b);
	b->s[A].order = CN_ORDER_ANY;
	b_expect(b, CN_GUARANTEE_ORDERED, "");
	b->s[B].order = CN_ORDER_INTERLEAVED;
	b_expect(b, CN_GUARANTEE_LINKS, "");
	a = b_action(b, B, CN_ACT_SEND, A, 2);
	a->dep = CN_DEP_COMPLETE;
	a->dep_on = b_find(b, B, CN_ACT_RECV, A, 0);
	b_expect(b, 0,
		 "b sends frame by frame in turn over nodes, and waits in between: nothing proves "
		 "that it proceeds");
	b_close(b);
}

static void run__barrier(void **state)
{
	struct book *b = b_open(STAR, CN_OP_BARRIER, 0);
	struct cn_check_report r;
	struct cn_err err = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct cn_err e = { 0 };

		b->p.algorithm = cn_algorithm_find(CN_OP_BARRIER, "dissemination")->id;
		assert_int_equal(cn_sched_plan(&b->l, &b->p, i, &b->s[i], &e), COLLNET_OK);
	}
	assert_int_equal(b_judge(b, CN_GUARANTEE_OPTIMAL, &r, &err), COLLNET_OK);
	assert_int_equal(r.phases, 2);
	assert_int_equal(r.bound, 2);
	assert_int_equal(r.messages, 6);
	b_action(b, B, CN_ACT_SEND, A, 1)->dep = CN_DEP_NONE;
	b_expect(b, 0, ""); /* among three, everyone is heard at first hand */
	b_cut(&b->s[C], b_find(b, C, CN_ACT_SEND, B, 1));
	b_cut(&b->s[B], b_find(b, B, CN_ACT_RECV, C, 1));
	b_action(b, A, CN_ACT_SEND, B, 0)->dep = CN_DEP_NONE;
	b_expect(b, 0, "b can leave the barrier before c has come to it");
	b_close(b);
}

/* ---- tests: spoilt schedules, judged twice ------------------------------------------------ */

static struct cn_plan plan_of(const struct cn_algorithm *a, const struct cn_layout *l)
{
	struct cn_plan p = { .op = a->op, .algorithm = a->id, .permutation = CN_PERM_AUTO };

	p.bytes = below(4) == 0 ? 0 : 1 + below(12);
	p.root = below(l->nranks);
	p.segment = below(2) ? 0 : 1 + below(5);
	return p;
}

/* A copy of the team's layout and of schedules to be spoilt. */
static struct book *book_of(const struct w_team *t, const struct cn_plan *p)
{
	struct book *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->l = t->layout;
	b->p = *p;
	return b;
}

/* Every message into the first phase that has room for it; in random order. */
static struct book *greedy_book(const struct w_team *t)
{
	struct cn_plan p = { .op = CN_OP_ALLTOALL, .bytes = 1 + below(3) };
	struct book *b = book_of(t, &p);
	uint32_t n = t->layout.nnodes, start = below(n * n + 1);

	for (uint32_t k = 0; k < n * n; k++) {
		uint32_t at = (start + k * 7) % (n * n), tried = 0, phase = 0;

		at = n % 7 == 0 ? (start + k) % (n * n) : at;
		if (at / n == at % n) {
			continue;
		}
		b_put(b, at / n, at % n, 0);
		while (tried < b->nm - 1) { /* messages of this phase that do not meet it */
			const struct b_message *x = &b->m[b->nm - 1], *y = &b->m[tried++];
			bool meet = x->from == y->from || x->to == y->to;

			for (uint32_t link = 2; link < 2 * t->tree->n; link++) {
				meet = meet || (b_on_link(b, x, link) && b_on_link(b, y, link));
			}
			if (y->phase == phase && meet) {
				phase++;
				tried = 0;
			}
		}
		b->m[b->nm - 1].phase = phase;
	}
	b_synchronise(b);
	b_write(b);
	return b;
}

/* An algorithm's schedules; NULL: it has none here, or they are not sent in turn. */
static struct book *registry_book(const struct w_team *t, const struct cn_algorithm *a)
{
	struct cn_plan p = plan_of(a, &t->layout);
	struct book *b;
	struct cn_err err = { 0 };

	p.bytes = 1 + p.bytes % 3;
	p.segment = below(2);
	b = book_of(t, &p);
	for (uint32_t i = 0; i < t->layout.nnodes; i++) {
		if (cn_sched_plan(&t->layout, &p, i, &b->s[i], &err) ||
		    b->s[i].order != CN_ORDER_IN_TURN) {
			b_close(b);
			return NULL;
		}
	}
	return b;
}

/* The other side of message i of a node. False: there is none. */
static bool partner(const struct book *b, uint32_t node, uint32_t i, uint32_t *place)
{
	const struct cn_action *a = &b->s[node].actions[i];
	enum cn_action_kind kind = a->kind == CN_ACT_SEND ? CN_ACT_RECV : CN_ACT_SEND;
	uint32_t nth = 0;

	if (a->peer >= b->l.nnodes) {
		return false;
	}
	for (uint32_t k = 0; k < i; k++) {
		const struct cn_action *x = &b->s[node].actions[k];

		nth += x->kind == a->kind && x->peer == a->peer;
	}
	for (uint32_t k = 0; k < b->s[a->peer].n; k++) {
		const struct cn_action *x = &b->s[a->peer].actions[k];

		if (x->kind == kind && x->peer == node && nth-- == 0) {
			*place = k;
			return true;
		}
	}
	return false;
}

/* A node and one of its actions of a kind (of any: CN_ACT_WAIT + 1). False: nothing found. */
static bool pick(const struct book *b, int kind, uint32_t *node, uint32_t *i)
{
	for (uint32_t tries = 0; tries < 200; tries++) {
		*node = below(b->l.nnodes);
		if (b->s[*node].n == 0) {
			continue;
		}
		*i = below(b->s[*node].n);
		if (kind > (int)CN_ACT_WAIT || (int)b->s[*node].actions[*i].kind == kind) {
			return true;
		}
	}
	return false;
}

/* The action at the other side, or a stand-in. */
static struct cn_action *other_side(const struct book *b, uint32_t node, uint32_t i)
{
	static struct cn_action nobody;
	uint32_t k;

	return partner(b, node, i, &k) ? &b->s[b->s[node].actions[i].peer].actions[k] : &nobody;
}

/* Action i of the list goes to place k; dependencies go with their actions. */
static void move_action(struct cn_sched *s, uint32_t i, uint32_t k)
{
	struct cn_action x = s->actions[i];
	uint32_t *place = calloc(s->n, sizeof(*place));

	assert_non_null(place);
	for (uint32_t j = 0; j < s->n; j++) {
		place[j] = j == i ? k : i < j && j <= k ? j - 1 : k <= j && j < i ? j + 1 : j;
	}
	if (i < k) {
		memmove(s->actions + i, s->actions + i + 1, (k - i) * sizeof(x));
	} else {
		memmove(s->actions + k + 1, s->actions + k, (i - k) * sizeof(x));
	}
	s->actions[k] = x;
	for (uint32_t j = 0; j < s->n; j++) {
		s->actions[j].dep_on = s->actions[j].dep == CN_DEP_NONE
					       ? 0
					       : place[s->actions[j].dep_on];
	}
	free(place);
}

static void exchange_phases(struct book *b, bool whole)
{
	uint32_t n1, i1, n2, i2;
	struct cn_action *x, *y, swap;

	if (!pick(b, CN_ACT_SEND, &n1, &i1) || !pick(b, CN_ACT_SEND, &n2, &i2)) {
		return;
	}
	x = &b->s[n1].actions[i1];
	y = &b->s[n2].actions[i2];
	if (whole && n1 == n2) { /* they change places in the list, and with them phases */
		other_side(b, n1, i1)->phase = y->phase;
		other_side(b, n1, i2)->phase = x->phase;
		swap = *x;
		*x = *y;
		*y = swap;
		y->phase = x->phase;
		x->phase = swap.phase;
		return;
	}
	other_side(b, n1, i1)->phase = y->phase;
	other_side(b, n2, i2)->phase = x->phase;
	swap.phase = x->phase;
	x->phase = y->phase;
	y->phase = swap.phase;
}

static void change_message(struct book *b, uint32_t node, uint32_t i)
{
	struct cn_action *a = &b->s[node].actions[i], *o = other_side(b, node, i);
	bool both = below(2);

	switch (below(6)) {
	case 0:
		a->peer = below(b->l.nnodes);
		break;
	case 1:
		a->src.offset += b->p.bytes;
		o->src.offset += both ? b->p.bytes : 0;
		break;
	case 2:
		a->dst.offset = below(3) * b->p.bytes;
		o->dst.offset = both ? a->dst.offset : o->dst.offset;
		break;
	case 3:
		a->len = below((uint32_t)b->p.bytes + 1);
		o->len = both ? a->len : o->len;
		break;
	case 4:
		a->phase = below(b->s[node].phases);
		o->phase = both ? a->phase : o->phase;
		break;
	default:
		a->src.rank = b->l.ranks[b->l.first[node] +
					 below(b->l.first[node + 1] - b->l.first[node])];
		o->src.rank = both ? a->src.rank : o->src.rank;
		break;
	}
}

static void change_dependency(struct book *b)
{
	uint32_t node, i, k;
	struct cn_action *a;

	if (!pick(b, below(2) ? CN_ACT_SEND : CN_ACT_WAIT, &node, &i) || i == 0) {
		return;
	}
	a = &b->s[node].actions[i];
	switch (below(3)) {
	case 0:
		a->dep = a->kind == CN_ACT_WAIT ? a->dep : CN_DEP_NONE;
		break;
	case 1:
		a->dep = a->dep == CN_DEP_STREAM ? CN_DEP_COMPLETE : a->dep;
		break;
	default:
		k = below(i);
		if (b->s[node].actions[k].kind == CN_ACT_RECV) {
			a->dep = a->kind == CN_ACT_WAIT || below(2) ? CN_DEP_COMPLETE
								    : CN_DEP_STREAM;
			a->dep_on = k;
		}
		break;
	}
}

static void duplicate(struct book *b, bool both)
{
	uint32_t node, i;
	struct cn_action a;

	if (!pick(b, CN_ACT_SEND, &node, &i)) {
		return;
	}
	a = b->s[node].actions[i];
	b_add(b, node, a);
	a.dep = CN_DEP_NONE;
	if (both) {
		uint32_t to = a.peer;

		a.kind = CN_ACT_RECV;
		a.peer = node;
		b_add(b, to, a);
	}
}

static void drop(struct book *b, int kind, bool both)
{
	uint32_t node, i, k = 0;
	struct cn_action a;
	bool other;

	if (!pick(b, kind, &node, &i)) {
		return;
	}
	a = b->s[node].actions[i];
	other = both && (a.kind == CN_ACT_SEND || a.kind == CN_ACT_RECV) && partner(b, node, i, &k);
	b_cut(&b->s[node], i);
	if (other) {
		b_cut(&b->s[a.peer], k);
	}
}

static void mutate(struct book *b)
{
	uint32_t node, i;

	switch (below(9)) {
	case 0:
	case 1:
		exchange_phases(b, below(2));
		break;
	case 2:
		drop(b, CN_ACT_WAIT + 1, below(2));
		break;
	case 3:
	case 4:
		drop(b, CN_ACT_WAIT, false);
		break;
	case 5:
		duplicate(b, below(2));
		break;
	case 6:
		if (pick(b, below(3) ? CN_ACT_SEND : CN_ACT_RECV, &node, &i)) {
			change_message(b, node, i);
		}
		break;
	case 7:
		change_dependency(b);
		break;
	default:
		if (pick(b, CN_ACT_WAIT + 1, &node, &i)) {
			move_action(&b->s[node], i, below(b->s[node].n));
		}
		break;
	}
}

/* Both checkers say the same. Returns whether it is a good schedule. */
static bool agree(const struct book *b, unsigned guarantees, const char *what, uint64_t from)
{
	struct cn_check_report r;
	struct cn_err err = { 0 };
	const char *why;
	bool good = b_judge(b, guarantees, &r, &err) == COLLNET_OK;

	if (good != o_check(&b->l, &b->p, b->s, guarantees, &why)) {
		fail_msg("seed %llu, %s: here \"%s\", there \"%s\"", (unsigned long long)from, what,
			 err.text, why);
	}
	return good;
}

static void run__spoilt_schedules(void **state)
{
	const unsigned guarantees[] = { 0, CN_GUARANTEE_LINKS,
					CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED };
	uint32_t good = 0, bad = 0,
		 rounds = getenv("CHECK_ROUNDS")
				  ? (uint32_t)strtoul(getenv("CHECK_ROUNDS"), NULL, 10)
				  : 3000;
	size_t count;
	const struct cn_algorithm *all = cn_algorithms(&count);

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t k = 0; k < rounds; k++) {
		uint64_t from = seed;
		uint32_t n = 2 + below(4), which = below(2 * (uint32_t)count);
		const struct cn_algorithm *a = which < count ? &all[which] : NULL;
		unsigned guaranteed = a != NULL ? a->guarantees & 3u : guarantees[2];
		struct w_team t;
		struct book *b;

		w_team_init(&t, n, below(2) ? W_ONE : W_UNEVEN, &seed);
		b = a != NULL ? registry_book(&t, a) : greedy_book(&t);
		if (b != NULL) {
			assert_true(agree(b, guaranteed, "as made", from));
			for (uint32_t times = 1 + below(3); times > 0; times--) {
				mutate(b);
			}
			if (agree(b, below(4) ? guaranteed : guarantees[below(3)],
				  a != NULL ? a->name : "greedy", from)) {
				good++;
			} else {
				bad++;
			}
			b_close(b);
		}
		w_team_done(&t);
	}
	print_message("%u spoilt schedules were still good, %u were not\n", good, bad);
	assert_true(good > 0 && bad > good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run__a_wait_is_missing),
		cmocka_unit_test(run__told_at_the_end),
		cmocka_unit_test(run__told_too_early),
		cmocka_unit_test(run__streams_know_less),
		cmocka_unit_test(run__a_stream_is_not_over),
		cmocka_unit_test(run__phases_that_do_not_hold),
		cmocka_unit_test(run__a_synchronisation_too_late),
		cmocka_unit_test(run__a_circle),
		cmocka_unit_test(run__other_orders),
		cmocka_unit_test(run__barrier),
		cmocka_unit_test(run__spoilt_schedules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
