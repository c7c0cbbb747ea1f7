/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker of schedules: links, ports and lists, each violation with its message, on schedules
 * made by hand; input that is no schedule; bounds; and what the algorithms guarantee.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check_book.h"
#include "sched_fixture.h"

static uint64_t seed = 20070301;

/* Two messages change their phases, in everyone's lists. */
static void swap_phases(struct book *b, uint32_t f1, uint32_t t1, uint32_t f2, uint32_t t2)
{
	struct b_message *x = NULL, *y = NULL;
	uint32_t phase;

	for (uint32_t i = 0; i < b->nm; i++) {
		x = b->m[i].from == f1 && b->m[i].to == t1 ? &b->m[i] : x;
		y = b->m[i].from == f2 && b->m[i].to == t2 ? &b->m[i] : y;
	}
	assert_true(x != NULL && y != NULL);
	phase = x->phase;
	x->phase = y->phase;
	y->phase = phase;
	b_write(b);
}

static uint32_t link_of(const struct book *b, const char *name)
{
	char text[128];

	for (uint32_t link = 2; link < 2 * b->tree->n; link++) {
		if (strcmp(cn_tree_link_name(b->tree, link, text, sizeof(text)), name) == 0) {
			return link;
		}
	}
	fail_msg("no link %s", name);
	return 0;
}

/* ---- tests: a good one, and its figures --------------------------------------------------- */

static void run__all_is_well(void **state)
{
	struct book *b = b_good();
	struct cn_check_report r;
	struct cn_err err = { 0 };

	(void)state;
	assert_int_equal(b_verdict(b, ALL, &r, &err), COLLNET_OK);
	assert_int_equal(r.messages, 12);
	assert_int_equal(r.syncs, b->ny);
	assert_int_equal(r.phases, 4);
	assert_int_equal(r.bound, 4);
	assert_int_equal(r.longest_path, 2);
	assert_int_equal(r.link_load, 1);
	assert_int_equal(r.busiest_phase, 0);
	assert_int_equal(r.link_total, 40);
	assert_int_equal(r.bottleneck, link_of(b, "s1 -> s0"));
	assert_int_equal(r.unordered, 0);
	b_close(b);
}

/* The bottleneck is busy longest: a slow link with fewer bytes is, a fast one with more is not. */
static void run__bottleneck_by_rates(void **state)
{
	struct book *b = b_good();
	struct cn_topo *topo = b->topo;
	struct cn_check_report r;
	struct cn_err err = { 0 };
	uint32_t most = link_of(b, "s1 -> s0"), slow = link_of(b, "a -> s0");

	(void)state;
	topo->links[b->tree->v[most / 2].link].rate = 10000000000;
	topo->links[b->tree->v[slow / 2].link].rate = 100000000;
	assert_int_equal(b_verdict(b, 0, &r, &err), COLLNET_OK);
	assert_int_equal(r.bottleneck / 2, slow / 2);
	assert_true(r.link_total < 40);
	topo->links[b->tree->v[slow / 2].link].channels = 200;
	assert_int_equal(b_verdict(b, 0, &r, &err), COLLNET_OK);
	assert_int_not_equal(r.bottleneck / 2, slow / 2);
	b_close(b);
}

static void run__everything_at_once(void **state)
{
	struct book *b = b_good();
	struct cn_check_report r;
	struct cn_err err = { 0 };

	(void)state;
	b->ny = 0;
	for (uint32_t i = 0; i < b->nm; i++) {
		b->m[i].phase = 0;
	}
	b_write(b);
	assert_int_equal(b_verdict(b, 0, &r, &err), COLLNET_OK);
	assert_int_equal(r.phases, 1);
	assert_int_equal(r.link_load, 4);
	assert_int_equal(r.link_total, 40);
	/* Three senders to each host, and two over either direction between the switches. */
	assert_int_equal(r.unordered, 4 * 2 + 2 * 1);
	b_expect(b, CN_GUARANTEE_ORDERED, "phase 0: a sends to c and to d, both over link a -> s0");
	b_close(b);
}

static void run__no_tree(void **state)
{
	struct book *b = b_good();
	struct cn_check_report r;
	struct cn_err err = { 0 };

	(void)state;
	b->l.tree = NULL;
	assert_int_equal(b_verdict(b, 0, &r, &err), COLLNET_OK);
	assert_int_equal(r.bound, 0);
	assert_int_equal(r.link_load, 0);
	assert_int_equal(r.link_total, 0);
	assert_int_equal(r.longest_path, 0);
	assert_int_equal(r.busiest, CN_TOPO_NONE);
	assert_int_equal(r.bottleneck, CN_TOPO_NONE);
	assert_int_equal(r.phases, 4);
	b_expect(b, CN_GUARANTEE_LINKS,
		 "the network is unknown, so that no guarantee about its links can "
		 "be checked");
	b_cut(&b->s[A], b_find(b, A, CN_ACT_SEND, B, 2));
	b_expect(b, 0,
		 "node 0 -> node 1: messages sent: 2, expected: 3; they differ from phase 2 on");
	b_close(b);
}

static void run__a_schedule_is_missing(void **state)
{
	struct book *b = b_good();
	struct cn_check *c = NULL;
	struct cn_check_report r;
	struct cn_err err = { 0 };

	(void)state;
	assert_int_equal(cn_check_new(&b->l, &b->p, &c, &err), COLLNET_OK);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(cn_check_add(c, i, &b->s[i], &err), COLLNET_OK);
	}
	assert_int_equal(cn_check_add(c, 1, &b->s[1], &err), COLLNET_EINVAL);
	assert_int_equal(cn_check_add(c, 4, &b->s[1], &err), COLLNET_EINVAL);
	assert_int_equal(cn_check_run(c, 0, &r, &err), COLLNET_EINVAL);
	assert_string_equal(err.text, "the schedule of d is missing");
	cn_check_free(c);
	cn_check_free(NULL);
	b_close(b);
}

/* ---- tests: links and ports --------------------------------------------------------------- */

/* Two messages swapped between phases: the pair and the link are named. */
static void run__swapped_phases(void **state)
{
	struct book *b = b_good();

	(void)state;
	swap_phases(b, B, D, B, A);
	b_expect(b, ALL, "phase 0: a -> c and b -> d both use link s0 -> s1, which has 1 channel");
	swap_phases(b, B, D, B, A);
	b_expect(b, ALL, "");
	swap_phases(b, A, C, B, C);
	b_expect(b, ALL, "phase 0: b sends to a and to c, both over link b -> s0");
	swap_phases(b, A, C, B, C);
	swap_phases(b, A, B, C, B);
	b_expect(b, ALL, "phase 1: a sends to d and to b, both over link a -> s0");
	b_close(b);
}

static void run__one_port(void **state)
{
	struct book *b = b_good();

	(void)state;
	swap_phases(b, B, D, B, A);
	/* Links are not guaranteed: what is left is that d gets two. */
	b_expect(b, CN_GUARANTEE_ORDERED,
		 "phase 0: d receives from b and from c, both over link s1 -> d");
	b_close(b);
}

static void run__channels_are_counted(void **state)
{
	struct book *b = b_open("switch s0\nswitch s1\nhost a\nhost b\nhost c\nhost d\nhost e\n"
				"host f\nlink a s0 rate none\nlink b s0 rate none\n"
				"link c s0 rate none\nlink d s1 rate none\nlink e s1 rate none\n"
				"link f s1 rate none\nlink s0 s1 rate none channels 2\n",
				CN_OP_ALLTOALL, 0);
	struct cn_check_report r;
	struct cn_err err = { 0 };

	(void)state;
	b_put(b, A, D, 0);
	b_put(b, B, E, 0);
	b_put(b, C, F, 1);
	b_write(b);
	b_expect(b, CN_GUARANTEE_LINKS, "");
	/* c may use the channel of a, or that of b, but must know of one of them. */
	b_expect(
		b, CN_GUARANTEE_ORDERED,
		"a -> d of phase 0 and c -> f of phase 1 both use link s0 -> s1, and nothing keeps "
		"the second back until the first is sent");
	for (uint32_t first = A; first <= B; first++) {
		b->y[0] = (struct b_sync){ first, C, 0, 1 };
		b->ny = 1;
		b_write(b);
		b_expect(b, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED, "");
	}
	assert_int_equal(b_verdict(b, CN_GUARANTEE_LINKS, &r, &err), COLLNET_OK);
	assert_int_equal(r.link_load, 2);
	b->m[2].phase = 0;
	b->ny = 0;
	b_write(b);
	b_expect(b, CN_GUARANTEE_LINKS,
		 "phase 0: a -> d, c -> f and 1 more use link s0 -> s1, which has 2 channels");
	/* The other two users of the same channels: the bound is 3 * 3 / 2, and the ports' 5. */
	assert_int_equal(cn_phase_bound(&b->l, CN_OP_ALLTOALL, true), 5);
	b_close(b);
}

static void run__more_phases_than_needed(void **state)
{
	struct book *b = b_good();

	(void)state;
	for (uint32_t i = 0; i < b->nm; i++) {
		b->m[i].phase = b->m[i].phase == 3 ? 4 : b->m[i].phase;
	}
	b_synchronise(b);
	b_write(b);
	b_expect(b, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED, "");
	b_expect(b, ALL, "the schedule has 5 phases, the lower bound is 4");
	b_close(b);
}

/* ---- tests: do lists match? --------------------------------------------------------------- */

static void run__lists_that_differ(void **state)
{
	struct book *b = b_good();
	struct cn_action *a;

	(void)state;
	b_cut(&b->s[C], b_find(b, C, CN_ACT_RECV, B, 2));
	b_expect(b, ALL, "b -> c: messages sent: 1, expected: 0; they differ from phase 2 on");
	b_write(b);
	b_cut(&b->s[B], b_find(b, B, CN_ACT_SEND, C, 2));
	b_expect(b, ALL, "b -> c: messages sent: 0, expected: 1; they differ from phase 2 on");
	b_write(b);
	a = b_action(b, B, CN_ACT_RECV, A, 2);
	a->phase = 3;
	b_expect(b, ALL, "a -> b: sent in phase 2, expected in phase 3");
	a->phase = 2;
	b_expect(b, ALL, "");
	a->len = 9;
	b_expect(b, ALL, "a -> b (phase 2): 10 bytes are sent, 9 expected");
	a->len = 10;
	a->src.offset = 20;
	b_expect(b, ALL, "a -> b (phase 2): the sender means other places than the receiver");
	b_close(b);
}

static void run__data_for_a_synchronisation(void **state)
{
	struct book *b = b_good();
	struct cn_action *a = b_action(b, B, CN_ACT_RECV, A, 1); /* it is one */

	(void)state;
	b->p.bytes = 0;
	b_write(b);
	a = b_action(b, B, CN_ACT_RECV, A, 1);
	assert_int_equal(a->src.buffer, CN_BUF_NONE);
	a->src = (struct cn_span){ CN_BUF_SEND, A, 0 };
	a->dst = (struct cn_span){ CN_BUF_RECV, B, 0 };
	b_expect(b, ALL, "a -> b (phase 1): a synchronisation is sent, data expected");
	b_close(b);
}

/* ---- tests: what is no schedule ----------------------------------------------------------- */

static void spoil(const struct cn_action *a, const char *what)
{
	struct book *b = b_good();
	char text[200];

	b->s[A].n = 0;
	b_add(b, A, (struct cn_action){ .kind = CN_ACT_RECV, .peer = B });
	b_add(b, A, *a);
	b->s[A].phases = 4;
	snprintf(text, sizeof(text), "a, action 1: %s", what);
	b_expect(b, 0, text);
	b_close(b);
}

static void add__no_schedule(void **state)
{
	const struct cn_action good = { .kind = CN_ACT_SEND,
					.peer = B,
					.len = 10,
					.src = { CN_BUF_SEND, A, 10 },
					.dst = { CN_BUF_RECV, B, 0 } };
	struct cn_action a = good;

	(void)state;
	a.kind = (enum cn_action_kind)7;
	spoil(&a, "it is of an unknown kind");
	a = good;
	a.dep = CN_DEP_COMPLETE;
	a.dep_on = 1;
	spoil(&a, "it depends on an action that is not before it");
	a = good;
	a.peer = A;
	spoil(&a, "its peer is not a node that it can be");
	a.peer = 4;
	spoil(&a, "its peer is not a node that it can be");
	a = good;
	a.kind = CN_ACT_COPY;
	spoil(&a, "its peer is not a node that it can be");
	a = good;
	a.phase = 4;
	spoil(&a, "its phase is beyond the last");
	a = good;
	a.dst.buffer = CN_BUF_SEND;
	spoil(&a, "data goes from a buffer to a receive buffer");
	a.dst.buffer = CN_BUF_NONE;
	spoil(&a, "data goes from a buffer to a receive buffer");
	a.src.buffer = CN_BUF_NONE;
	spoil(&a, "it moves bytes, but has no buffer");
	a = good;
	a.src.rank = B;
	spoil(&a, "its data belongs to a rank of another node");
	a.src.rank = 4;
	spoil(&a, "its data belongs to a rank of another node");
	a = good;
	a.dst.offset = 31;
	spoil(&a, "its data reaches beyond the receive buffer");
	a.dst.offset = UINT64_MAX - 5;
	spoil(&a, "its data reaches beyond the receive buffer");
	a = good;
	a.kind = CN_ACT_WAIT;
	spoil(&a, "only sends in turn wait, and for a whole action");
}

static void new__nonsense(void **state)
{
	struct book *b = b_good();
	struct cn_check *c = NULL;
	struct cn_err err = { 0 };

	(void)state;
	b->p.op = (enum cn_op_kind)9;
	assert_int_equal(cn_check_new(&b->l, &b->p, &c, &err), COLLNET_EINVAL);
	b->p.op = CN_OP_GATHER;
	b->p.root = 4;
	assert_int_equal(cn_check_new(&b->l, &b->p, &c, &err), COLLNET_EINVAL);
	b->p.root = 0;
	b->p.bytes = COLLNET_BLOCK_MAX + 1;
	assert_int_equal(cn_check_new(&b->l, &b->p, &c, &err), COLLNET_EINVAL);
	b->p.bytes = 1;
	b->l.nnodes = 0;
	assert_int_equal(cn_check_new(&b->l, &b->p, &c, &err), COLLNET_EINVAL);
	assert_null(c);
	b->l.nnodes = 4;
	b_close(b);
}

/* ---- tests: bounds ------------------------------------------------------------------------ */

static void phase_bound__shapes(void **state)
{
	static const struct {
		const char *shape;
		uint64_t alltoall, others, tree;
	} want[] = {
		{ "1", 0, 0, 0 },     { "2", 1, 1, 1 },	     { "8", 7, 7, 3 },
		{ "8x2", 64, 15, 4 }, { "8x4", 192, 31, 5 }, { "3x3", 18, 8, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct cn_topo *t = NULL;
		struct cn_tree *tree = NULL;
		struct cn_err err = { 0 };
		struct cn_layout l = { 0 };

		assert_int_equal(cn_topo_shape(want[i].shape, 0, 0, 0, 0, &t, &err), COLLNET_OK);
		assert_int_equal(cn_tree_make(t, t->hosts, t->nhosts, CN_TOPO_NONE, &tree, &err),
				 COLLNET_OK);
		l.nnodes = l.nranks = t->nhosts;
		assert_int_equal(cn_phase_bound(&l, CN_OP_ALLTOALL, true), 0);
		l.tree = tree;
		assert_int_equal(cn_phase_bound(&l, CN_OP_ALLTOALL, true), want[i].alltoall);
		assert_int_equal(cn_phase_bound(&l, CN_OP_ALLGATHER, true), want[i].others);
		assert_int_equal(cn_phase_bound(&l, CN_OP_SCATTER, true), want[i].others);
		assert_int_equal(cn_phase_bound(&l, CN_OP_GATHER, true), want[i].others);
		for (int op = CN_OP_ALLTOALL; op < CN_OP_KINDS; op++) {
			assert_int_equal(cn_phase_bound(&l, (enum cn_op_kind)op, false),
					 want[i].tree);
		}
		cn_tree_free(tree);
		cn_topo_free(t);
	}
}

/* 5 * 5 messages over 2 channels each way: 12.5 phases. */
static void phase_bound__channels(void **state)
{
	struct cn_topo *t = NULL;
	struct cn_tree *tree = NULL;
	struct cn_err err = { 0 };
	struct cn_layout l = { .nnodes = 10, .nranks = 10 };

	(void)state;
	assert_int_equal(cn_topo_shape("5x2", 0, 0, 0, 0, &t, &err), COLLNET_OK);
	for (uint32_t i = 0; i < t->nlinks; i++) {
		bool between = t->vertices[t->links[i].a].is_switch &&
			       t->vertices[t->links[i].b].is_switch;

		t->links[i].channels = between ? 2 : 1;
	}
	assert_int_equal(cn_tree_make(t, t->hosts, 10, CN_TOPO_NONE, &tree, &err), COLLNET_OK);
	l.tree = tree;
	assert_int_equal(cn_phase_bound(&l, CN_OP_ALLTOALL, true), 13);
	cn_tree_free(tree);
	cn_topo_free(t);
}

/* ---- tests: the algorithms ---------------------------------------------------------------- */

static struct cn_plan plan_of(const struct cn_algorithm *a, const struct cn_layout *l)
{
	struct cn_plan p = { .op = a->op, .algorithm = a->id, .permutation = CN_PERM_AUTO };

	p.bytes = cn_below(&seed, 4) == 0 ? 0 : 1 + cn_below(&seed, 12);
	p.root = cn_below(&seed, l->nranks);
	p.segment = cn_below(&seed, 2) ? 0 : 1 + cn_below(&seed, 5);
	return p;
}

static void run_algorithm(const struct cn_algorithm *a, uint32_t n, enum w_placement where)
{
	struct w_team t;
	struct cn_plan p;
	struct cn_check *c = NULL;
	struct cn_check_report r;
	struct cn_sched s = { 0 };
	struct cn_err err = { 0 };
	int rc;

	w_team_init(&t, n, where, &seed);
	p = plan_of(a, &t.layout);
	rc = cn_check_new(&t.layout, &p, &c, &err);
	for (uint32_t i = 0; rc == COLLNET_OK && i < n; i++) {
		rc = cn_sched_plan(&t.layout, &p, i, &s, &err);
		if (rc == COLLNET_OK) {
			rc = cn_check_add(c, i, &s, &err);
		}
	}
	if (rc == COLLNET_OK) {
		rc = cn_check_run(c, a->guarantees, &r, &err);
	}
	/* LR2 exists where Theorem 2 says so. */
	if (rc != COLLNET_OK && !(rc == COLLNET_ETOPO && strcmp(a->name, "lr2") == 0)) {
		fail_msg("%s on %u nodes: %s", a->name, n, err.text);
	}
	cn_check_free(c);
	cn_sched_reset(&s);
	w_team_done(&t);
}

static void run__every_algorithm_keeps_its_promises(void **state)
{
	size_t count;
	const struct cn_algorithm *a = cn_algorithms(&count);

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (size_t i = 0; i < count; i++) {
		for (uint32_t n = 1; n <= W_NODES; n++) {
			for (int where = 0; where < W_PLACEMENTS; where++) {
				run_algorithm(&a[i], n, (enum w_placement)where);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run__all_is_well),
		cmocka_unit_test(run__bottleneck_by_rates),
		cmocka_unit_test(run__everything_at_once),
		cmocka_unit_test(run__no_tree),
		cmocka_unit_test(run__a_schedule_is_missing),
		cmocka_unit_test(run__swapped_phases),
		cmocka_unit_test(run__one_port),
		cmocka_unit_test(run__channels_are_counted),
		cmocka_unit_test(run__more_phases_than_needed),
		cmocka_unit_test(run__lists_that_differ),
		cmocka_unit_test(run__data_for_a_synchronisation),
		cmocka_unit_test(add__no_schedule),
		cmocka_unit_test(new__nonsense),
		cmocka_unit_test(phase_bound__shapes),
		cmocka_unit_test(phase_bound__channels),
		cmocka_unit_test(run__every_algorithm_keeps_its_promises),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
