/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker of schedules: data that is missing, delivered twice, wrong, or forwarded before it is
 * there, each violation with its message, on schedules made by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check_book.h"

/* Everything arrives, and once. */
static void run__missing_and_twice(void **state)
{
	struct book *b = b_good();
	struct cn_action twice;

	(void)state;
	b_cut(&b->s[B], b_find(b, B, CN_ACT_COPY, B, 0));
	b_expect(b, ALL, "rank 1 on b never gets the block of rank 1");
	b_write(b);
	b_action(b, B, CN_ACT_COPY, B, 0)->len = 7;
	b_expect(b, ALL, "rank 1 on b never gets bytes 17 to 19 of its receive buffer");
	b_write(b);
	b_cut(&b->s[B], b_find(b, B, CN_ACT_SEND, C, 2));
	b_cut(&b->s[C], b_find(b, C, CN_ACT_RECV, B, 2));
	b_expect(b, CN_GUARANTEE_LINKS, "rank 2 on c never gets the block of rank 1");
	b_write(b);
	twice = *b_action(b, B, CN_ACT_SEND, C, 2);
	twice.phase = 3;
	b_add(b, B, twice);
	twice.kind = CN_ACT_RECV;
	twice.peer = B;
	b_add(b, C, twice);
	b_expect(b, 0,
		 "the block of rank 1 for rank 2 arrives twice: by b -> c in phase 2 and by "
		 "b -> c in phase 3");
	b_close(b);
}

static void run__wrong_data(void **state)
{
	struct book *b = b_good();

	(void)state;
	b_action(b, B, CN_ACT_SEND, C, 2)->src.offset = 30;
	b_action(b, C, CN_ACT_RECV, B, 2)->src.offset = 30;
	b_expect(b, ALL,
		 "the block of rank 1 for rank 2: byte 30 of rank 1's send buffer comes by "
		 "b -> c in phase 2; byte 20 of rank 1's belongs there");
	b_close(b);
}

/* A broadcast a -> b -> c of two segments of 5 bytes. */
static struct book *chain_book(enum cn_dep dep)
{
	struct book *b = b_open(STAR, CN_OP_BCAST, 10);

	for (uint32_t k = 0; k < 2; k++) {
		struct cn_action a = { .len = 5,
				       .src = { CN_BUF_SEND, A, 5 * k },
				       .dst = { CN_BUF_RECV, A, 5 * k },
				       .peer = A };
		uint32_t came;

		a.kind = CN_ACT_COPY;
		b_add(b, A, a);
		a.phase = k;
		a.dst.rank = B;
		a.kind = CN_ACT_SEND;
		a.peer = B;
		b_add(b, A, a);
		a.kind = CN_ACT_RECV;
		a.peer = A;
		came = b_add(b, B, a);
		a.src = a.dst;
		a.dst.rank = C;
		a.phase = k + 1;
		a.kind = CN_ACT_SEND;
		a.peer = C;
		a.dep = dep;
		a.dep_on = came;
		b_add(b, B, a);
		a.kind = CN_ACT_RECV;
		a.peer = B;
		a.dep = CN_DEP_NONE;
		b_add(b, C, a);
	}
	b->s[A].phases = b->s[B].phases = b->s[C].phases = 3;
	return b;
}

static void run__data_sent_on(void **state)
{
	struct book *b = chain_book(CN_DEP_COMPLETE);
	struct cn_action *first, *second;

	(void)state;
	b_expect(b, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED, "");
	b_close(b);
	b = chain_book(CN_DEP_STREAM);
	b_expect(b, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED, "");
	/* The second segment comes after the first one, and sends go in turn. */
	first = b_action(b, B, CN_ACT_SEND, C, 1);
	second = b_action(b, B, CN_ACT_SEND, C, 2);
	second->dep = CN_DEP_NONE;
	b_expect(b, 0,
		 "b -> c in phase 2 uses the data of a -> b in phase 1 without waiting for it");
	second->dep = CN_DEP_COMPLETE;
	first->dep = CN_DEP_NONE;
	b_expect(b, 0,
		 "b -> c in phase 1 uses the data of a -> b in phase 0 without waiting for it");
	/* A host that has the second segment has the first one, too. */
	first->dep = CN_DEP_COMPLETE;
	*first = *second;
	first->phase = 1;
	first->src.offset = first->dst.offset = 0;
	first->dep_on = b_find(b, B, CN_ACT_RECV, A, 0);
	b_expect(b, 0, "");
	second->dep_on = first->dep_on;
	b_expect(b, 0,
		 "b -> c in phase 2 uses the data of a -> b in phase 1 without waiting for it");
	/* A stream of other bytes. */
	second->dep = CN_DEP_STREAM;
	b_expect(b, 0, "b, action 3: it streams the bytes of another action, but has other bytes");
	b_close(b);
}

/* What goes on is not what belongs there: the two segments change places on their way. */
static void run__wrong_data_sent_on(void **state)
{
	struct book *b = chain_book(CN_DEP_COMPLETE);

	(void)state;
	for (uint32_t k = 0; k < 2; k++) {
		b_action(b, B, CN_ACT_SEND, C, 1 + k)->dst.offset = 5 - 5 * k;
		b_action(b, C, CN_ACT_RECV, B, 1 + k)->dst.offset = 5 - 5 * k;
	}
	b_expect(b, 0,
		 "byte 5 for rank 2: byte 0 of rank 0's send buffer comes by b -> c in phase 1; "
		 "byte 5 of rank 0's belongs there");
	b_close(b);
}

/* A copy is not there before somebody has waited for it. */
static void run__a_copy_sent_on(void **state)
{
	struct book *b = b_open("switch s\nhost a\nhost b\nlink a s rate none\n"
				"link b s rate none\n",
				CN_OP_BCAST, 10);
	const char
		*without = "a -> b in phase 0 uses the data of a copy on a without waiting for it";
	struct cn_action a = { .kind = CN_ACT_COPY, .peer = A, .len = 10 }, *send;

	(void)state;
	a.src = (struct cn_span){ CN_BUF_SEND, A, 0 };
	a.dst = (struct cn_span){ CN_BUF_RECV, A, 0 };
	b_add(b, A, a);
	b_add(b, A, (struct cn_action){ .kind = CN_ACT_WAIT, .dep = CN_DEP_COMPLETE });
	a.src = a.dst;
	a.dst.rank = B;
	a.kind = CN_ACT_RECV;
	b_add(b, B, a);
	a.kind = CN_ACT_SEND;
	a.peer = B;
	b_add(b, A, a);
	b_expect(b, 0, "");
	b_cut(&b->s[A], 1);
	b_expect(b, 0, without);
	send = b_action(b, A, CN_ACT_SEND, B, 0);
	send->dep = CN_DEP_STREAM;
	b_expect(b, 0, "");
	send->dep = CN_DEP_COMPLETE;
	b_expect(b, 0, "");
	send->dep = CN_DEP_NONE;
	b_expect(b, 0, without);
	b_close(b);
}

static void run__a_later_receive_will_do(void **state)
{
	struct book *b = b_open(STAR, CN_OP_BCAST, 10);
	struct cn_action a = { .kind = CN_ACT_COPY,
			       .len = 10,
			       .src = { CN_BUF_SEND, A, 0 },
			       .dst = { CN_BUF_RECV, A, 0 },
			       .peer = A };

	(void)state;
	b_add(b, A, a);
	a.kind = CN_ACT_SEND;
	a.peer = B;
	a.len = 5;
	for (uint32_t k = 0; k < 2; k++) {
		struct cn_action r;

		a.phase = k;
		a.src.offset = a.dst.offset = 5 * k;
		a.dst.rank = B;
		b_add(b, A, a);
		r = a;
		r.kind = CN_ACT_RECV;
		r.peer = A;
		b_add(b, B, r);
	}
	/* Both segments in one message, after the second one; then after the first one only. */
	a = (struct cn_action){ .kind = CN_ACT_SEND,
				.peer = C,
				.len = 10,
				.phase = 2,
				.src = { CN_BUF_RECV, B, 0 },
				.dst = { CN_BUF_RECV, C, 0 },
				.dep = CN_DEP_COMPLETE,
				.dep_on = 1 };
	b_add(b, B, a);
	a.kind = CN_ACT_RECV;
	a.peer = B;
	a.dep = CN_DEP_NONE;
	b_add(b, C, a);
	b->s[A].phases = b->s[B].phases = 3;
	b_expect(b, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED, "");
	b_action(b, B, CN_ACT_SEND, C, 2)->dep_on = 0;
	b_expect(b, 0,
		 "b -> c in phase 2 uses the data of a -> b in phase 1 without waiting for it");
	/* A whole piece of a broadcast is missing, and of it all. */
	b_cut(&b->s[B], 2);
	b_cut(&b->s[C], 0);
	b_expect(b, 0, "rank 2 on c never gets its data");
	b_close(b);
}

static void run__gather_owes_others_nothing(void **state)
{
	struct book *b = b_open(STAR, CN_OP_GATHER, 10);
	struct cn_action a = { .kind = CN_ACT_COPY,
			       .len = 10,
			       .src = { CN_BUF_SEND, B, 0 },
			       .dst = { CN_BUF_RECV, B, 0 },
			       .peer = B };

	(void)state;
	b_expect(b, 0, "rank 0 on a never gets the block of rank 0");
	b_add(b, B, a);
	b_expect(b, 0, "b, action 0: the rank has no receive buffer");
	b_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run__missing_and_twice),
		cmocka_unit_test(run__wrong_data),
		cmocka_unit_test(run__data_sent_on),
		cmocka_unit_test(run__wrong_data_sent_on),
		cmocka_unit_test(run__a_copy_sent_on),
		cmocka_unit_test(run__a_later_receive_will_do),
		cmocka_unit_test(run__gather_owes_others_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
