/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker of schedules: order, each violation with its message, on schedules made by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "check_book.h"

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
	assert_int_equal(b_verdict(b, ALL, &before, NULL), COLLNET_OK);
	while (b->s[A].actions[--i].kind != CN_ACT_SEND) {
	}
	a.phase = b->s[A].actions[i].phase;
	b_add(b, A, a);
	assert_int_not_equal(b_verdict(b, ALL, &after, NULL), COLLNET_OK);
	a.kind = CN_ACT_RECV;
	a.peer = A;
	b_add(b, D, a);
	b_expect(b, ALL, "");
	assert_int_equal(b_verdict(b, ALL, &after, NULL), COLLNET_OK);
	assert_int_equal(after.syncs, before.syncs + 1);
	assert_int_equal(after.messages, before.messages);
	b_close(b);
}

/* The message for a list, and one for what is told too early to be of use. */
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
	assert_int_equal(b_verdict(b, CN_GUARANTEE_OPTIMAL, &r, &err), COLLNET_OK);
	assert_int_equal(r.phases, 2);
	assert_int_equal(r.bound, 2);
	assert_int_equal(r.messages, 6);
	b_action(b, B, CN_ACT_SEND, A, 1)->dep = CN_DEP_NONE;
	b_expect(b, 0, ""); /* among three, everyone is heard at first hand */
	b_cut(&b->s[C], b_find(b, C, CN_ACT_SEND, B, 1));
	b_cut(&b->s[B], b_find(b, B, CN_ACT_RECV, C, 1));
	b_action(b, A, CN_ACT_SEND, B, 0)->dep = CN_DEP_NONE;
	b_expect(b, 0, "b can leave the barrier before c has entered it");
	b_close(b);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
