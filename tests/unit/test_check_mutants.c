/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker of schedules: mutants of schedules of all kinds. The checker and brute force
 * (check_oracle.h) must agree on each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check_book.h"
#include "sched_fixture.h"

static uint64_t seed = 20070301;

static struct cn_plan plan_of(const struct cn_algorithm *a, const struct cn_layout *l)
{
	struct cn_plan p = { .op = a->op, .algorithm = a->id, .permutation = CN_PERM_AUTO };

	p.bytes = cn_below(&seed, 4) == 0 ? 0 : 1 + cn_below(&seed, 12);
	p.root = cn_below(&seed, l->nranks);
	p.segment = cn_below(&seed, 2) ? 0 : 1 + cn_below(&seed, 5);
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
	struct cn_plan p = { .op = CN_OP_ALLTOALL, .bytes = 1 + cn_below(&seed, 3) };
	struct book *b = book_of(t, &p);
	uint32_t n = t->layout.nnodes, start = cn_below(&seed, n * n + 1);

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
	p.segment = cn_below(&seed, 2);
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
		*node = cn_below(&seed, b->l.nnodes);
		if (b->s[*node].n == 0) {
			continue;
		}
		*i = cn_below(&seed, b->s[*node].n);
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
	bool both = cn_below(&seed, 2);

	switch (cn_below(&seed, 6)) {
	case 0:
		a->peer = cn_below(&seed, b->l.nnodes);
		break;
	case 1:
		a->src.offset += b->p.bytes;
		o->src.offset += both ? b->p.bytes : 0;
		break;
	case 2:
		a->dst.offset = cn_below(&seed, 3) * b->p.bytes;
		o->dst.offset = both ? a->dst.offset : o->dst.offset;
		break;
	case 3:
		a->len = cn_below(&seed, (uint32_t)b->p.bytes + 1);
		o->len = both ? a->len : o->len;
		break;
	case 4:
		a->phase = cn_below(&seed, b->s[node].phases);
		o->phase = both ? a->phase : o->phase;
		break;
	default:
		a->src.rank = b->l.ranks[b->l.first[node] +
					 cn_below(&seed, b->l.first[node + 1] - b->l.first[node])];
		o->src.rank = both ? a->src.rank : o->src.rank;
		break;
	}
}

static void change_dependency(struct book *b)
{
	uint32_t node, i, k;
	struct cn_action *a;

	if (!pick(b, cn_below(&seed, 2) ? CN_ACT_SEND : CN_ACT_WAIT, &node, &i) || i == 0) {
		return;
	}
	a = &b->s[node].actions[i];
	switch (cn_below(&seed, 3)) {
	case 0:
		a->dep = a->kind == CN_ACT_WAIT ? a->dep : CN_DEP_NONE;
		break;
	case 1:
		a->dep = a->dep == CN_DEP_STREAM ? CN_DEP_COMPLETE : a->dep;
		break;
	default:
		k = cn_below(&seed, i);
		if (b->s[node].actions[k].kind == CN_ACT_RECV) {
			a->dep = a->kind == CN_ACT_WAIT || cn_below(&seed, 2) ? CN_DEP_COMPLETE
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

	switch (cn_below(&seed, 9)) {
	case 0:
	case 1:
		exchange_phases(b, cn_below(&seed, 2));
		break;
	case 2:
		drop(b, CN_ACT_WAIT + 1, cn_below(&seed, 2));
		break;
	case 3:
	case 4:
		drop(b, CN_ACT_WAIT, false);
		break;
	case 5:
		duplicate(b, cn_below(&seed, 2));
		break;
	case 6:
		if (pick(b, cn_below(&seed, 3) ? CN_ACT_SEND : CN_ACT_RECV, &node, &i)) {
			change_message(b, node, i);
		}
		break;
	case 7:
		change_dependency(b);
		break;
	default:
		if (pick(b, CN_ACT_WAIT + 1, &node, &i)) {
			move_action(&b->s[node], i, cn_below(&seed, b->s[node].n));
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
	bool good = b_verdict(b, guarantees, &r, &err) == COLLNET_OK;

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
	while (cn_op_reduces(all[count - 1].op)) { /* the checker does not know them */
		count--;
	}
	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t k = 0; k < rounds; k++) {
		uint64_t from = seed;
		uint32_t n = 2 + cn_below(&seed, 4), which = cn_below(&seed, 2 * (uint32_t)count);
		const struct cn_algorithm *a = which < count ? &all[which] : NULL;
		unsigned guaranteed = a != NULL ? a->guarantees & 3u : guarantees[2];
		struct w_team t;
		struct book *b;

		w_team_init(&t, n, cn_below(&seed, 2) ? W_ONE : W_UNEVEN, &seed);
		b = a != NULL ? registry_book(&t, a) : greedy_book(&t);
		if (b != NULL) {
			assert_true(agree(b, guaranteed, "as made", from));
			for (uint32_t times = 1 + cn_below(&seed, 3); times > 0; times--) {
				mutate(b);
			}
			if (agree(b,
				  cn_below(&seed, 4) ? guaranteed : guarantees[cn_below(&seed, 3)],
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
		cmocka_unit_test(run__spoilt_schedules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
