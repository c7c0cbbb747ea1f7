/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll and lib/sched: operations of blocks of any size, by every algorithm, against a model
 * that knows only the matrix of sizes: len[s][d] bytes go from rank s to rank d. Rank i knows row i
 * and column i of it, as far as the operation says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine_fixture.h"
#include "tools/plan/random.h"

#define FRESH 0xcc /* of a receive buffer, and of the gaps in it when all is done */

struct vector {
	enum cn_op_kind op;
	const char *algorithm;
	enum cn_permutation permutation;
	uint32_t root;
	bool in_place;
	uint32_t number;
	uint64_t len[RANKS][RANKS];
	uint64_t expected_len[RANKS][RANKS]; /* what receivers know: the same, or it is a mistake */
};

static struct vector v;
static struct cn_block sends[RANKS][RANKS], recvs[RANKS][RANKS];
static uint8_t *expected[RANKS];
static uint64_t seed = SEED;

static uint8_t byte_of(uint32_t from, uint32_t to, uint64_t at)
{
	return (uint8_t)(v.number * 101 + from * 37 + to * 11 + at * 7 + (at >> 8));
}

/* Blocks in any order, with gaps: where they are, of which rank. Returns the end. */
static uint64_t place(struct cn_block *b, uint32_t n)
{
	uint64_t at = cn_random(&seed) % 4;
	uint32_t order[RANKS];

	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = (uint32_t)(cn_random(&seed) % (i + 1));

		order[i] = order[j];
		order[j] = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		b[order[i]].at = at;
		at += b[order[i]].len + cn_random(&seed) % 4;
	}
	return at;
}

static uint8_t *buffer(uint64_t bytes)
{
	uint8_t *p = malloc(bytes + 1);

	assert_non_null(p);
	memset(p, FRESH, bytes + 1);
	return p;
}

static void fill(uint8_t *p, uint32_t from, uint32_t to, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++) {
		p[i] = byte_of(from, to, i);
	}
}

static bool everyone(void)
{
	return v.op == CN_OP_ALLGATHERV || v.op == CN_OP_GATHERV; /* a rank has one block */
}

/* The buffers of a rank, and what is to be in the one that it receives in. */
static void make_buffers(struct engine_fixture *w, uint32_t rank, struct cn_coll_args *a)
{
	struct engine_rank *r = &w->rank[rank];
	const struct cn_call c = { .op = v.op, .rank = rank, .ranks = w->ranks, .root = v.root };
	uint64_t send_end = v.len[rank][v.op == CN_OP_GATHERV ? v.root : 0], recv_end;
	bool many_out = cn_call_send_blocks(&c), many_in = cn_call_recv_blocks(&c);
	bool root = !cn_op_has_root(v.op) || rank == v.root, own;

	for (uint32_t i = 0; i < w->ranks; i++) {
		sends[rank][i].len = v.len[rank][i];
		recvs[rank][i].len = v.expected_len[i][v.op == CN_OP_ALLGATHERV ? 0 : rank];
	}
	recv_end = place(recvs[rank], w->ranks);
	if (v.op == CN_OP_SCATTERV) {
		recv_end = v.expected_len[v.root][rank];
		recvs[rank][v.root] = (struct cn_block){ 0, recv_end };
	}
	if (many_out) {
		send_end = place(sends[rank], w->ranks);
	} else if (v.op == CN_OP_SCATTERV) {
		send_end = 0;
	}
	if (v.op == CN_OP_GATHERV && !root) {
		recv_end = 0;
	}
	free(r->send[0]);
	free(r->recv[0]);
	free(expected[rank]);
	r->send[0] = buffer(send_end);
	r->recv[0] = buffer(recv_end);
	expected[rank] = buffer(recv_end);
	for (uint32_t i = 0; i < w->ranks && many_out; i++) {
		fill(r->send[0] + sends[rank][i].at, rank, i, sends[rank][i].len);
	}
	if (everyone()) {
		fill(r->send[0], rank, 0, send_end);
	}
	for (uint32_t i = 0; i < w->ranks; i++) {
		if (many_in || (v.op == CN_OP_SCATTERV && i == v.root)) {
			fill(expected[rank] + recvs[rank][i].at, i, everyone() ? 0 : rank,
			     recvs[rank][i].len);
		}
	}
	a->send = send_end > 0 ? r->send[0] : NULL;
	a->recv = recv_end > 0 ? r->recv[0] : NULL;
	a->blocks = (struct cn_blocks){
		.send = many_out ? sends[rank] : NULL,
		.recv = many_in ? recvs[rank] : NULL,
		.send_len = v.op == CN_OP_GATHERV ? send_end : 0,
		.recv_len = v.op == CN_OP_SCATTERV ? recv_end : 0,
	};
	engine_begin_wait(w, &r->op[0]);
	r->op[0].send = r->send[0];
	r->op[0].sent = send_end;
	r->op[0].recv = r->recv[0];
	r->op[0].received = recv_end;
	own = v.in_place && root;
	if (own && everyone() && v.len[rank][v.op == CN_OP_GATHERV ? v.root : 0] > 0) {
		memcpy(r->recv[0] + recvs[rank][rank].at, r->send[0], send_end);
		a->send = r->recv[0] + recvs[rank][rank].at;
	} else if (own && v.op == CN_OP_SCATTERV && recv_end > 0) {
		a->recv = r->send[0] + sends[rank][rank].at;
		memcpy(r->recv[0], a->recv, recv_end); /* as no byte will come there */
	}
}

static void post(struct engine_fixture *w, uint32_t rank)
{
	struct cn_coll_args a = {
		.op = v.op,
		.algorithm = v.algorithm,
		.permutation = v.permutation,
		.window = COLLNET_WINDOW_AUTO,
		.root = v.root,
		.deadline = w->now + 60 * SECOND,
	};
	struct cn_call c = { .op = v.op, .rank = rank, .ranks = w->ranks, .root = v.root };
	struct cn_err err = { 0 };

	make_buffers(w, rank, &a);
	c.blocks = a.blocks;
	if (cn_call_check_buffers(&c, a.send, a.recv, &err) != COLLNET_OK) {
		fail_msg("%s: rank %u: %s", cn_op_name(v.op), rank, err.text);
	}
	if (cn_coll_post(w->rank[rank].member, w->now, &a, &w->rank[rank].op[0].done, &err) !=
	    COLLNET_OK) {
		assert_int_equal(err.code, COLLNET_EMISMATCH);
		w->rank[rank].op[0].done.fn(&w->rank[rank].op[0].done, err.code, err.text);
	}
}

static void check(const struct engine_fixture *w, uint32_t rank)
{
	const struct engine_waiter *x = &w->rank[rank].op[0];

	if (x->status != COLLNET_OK) {
		fail_msg("%s by %s: rank %u of %u: %s", cn_op_name(v.op), v.algorithm, rank,
			 w->ranks, x->text);
	}
	if (memcmp(x->got, expected[rank], x->received + 1) != 0) {
		fail_msg("%s by %s: rank %u of %u on %u nodes: wrong bytes", cn_op_name(v.op),
			 v.algorithm, rank, w->ranks, w->nodes);
	}
}

/* All ranks call, in any order, and have the right bytes. */
static void run(struct engine_fixture *w, cn_time within)
{
	uint32_t first = (uint32_t)(cn_random(&seed) % w->ranks);

	v.number++;
	for (uint32_t i = 0; i < w->ranks; i++) {
		post(w, (first + i) % w->ranks);
	}
	engine_wait_all(w, 0, within);
	for (uint32_t r = 0; r < w->ranks; r++) {
		check(w, r);
	}
}

/* Sizes of every kind; some ranks send nothing, and some pairs exchange nothing. */
static void draw(uint32_t ranks, uint32_t zeros)
{
	static const uint64_t lens[] = { 1, 8, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, 2 * PAYLOAD };

	for (uint32_t s = 0; s < ranks; s++) {
		bool silent = cn_random(&seed) % 100 < zeros / 3;

		for (uint32_t d = 0; d < ranks; d++) {
			uint64_t len = cn_random(&seed) % 2 ? lens[cn_random(&seed) % 6]
							    : cn_random(&seed) % (4 * PAYLOAD);

			if (silent || cn_random(&seed) % 100 < zeros) {
				len = 0;
			}
			v.len[s][d] = v.expected_len[s][d] = len;
		}
	}
}

static void every_operation(struct engine_fixture *w, cn_time within)
{
	static const enum cn_permutation perms[] = { CN_PERM_SHIFT, CN_PERM_XOR,
						     CN_PERM_EDGE_COLOUR };
	size_t rows;
	const struct cn_algorithm *row = cn_algorithms(&rows);

	for (int op = CN_OP_ALLTOALLV; op <= CN_OP_GATHERV; op++) {
		for (size_t k = 0; k < rows; k++) {
			if (row[k].op != cn_op_base((enum cn_op_kind)op) ||
			    (row[k].needs_tree && w->topo == NULL) ||
			    strcmp(row[k].name, "lr2") == 0) {
				continue;
			}
			v.op = (enum cn_op_kind)op;
			v.algorithm = cn_random(&seed) % 8 ? row[k].name : NULL;
			v.permutation = row[k].permuted ? perms[cn_random(&seed) % 3]
							: CN_PERM_AUTO;
			if (v.permutation == CN_PERM_XOR && (w->nodes & (w->nodes - 1)) != 0) {
				v.permutation = CN_PERM_AUTO;
			}
			v.root = cn_op_has_root(v.op) ? (uint32_t)(cn_random(&seed) % w->ranks) : 0;
			v.in_place = cn_random(&seed) % 2;
			draw(w->ranks, (uint32_t)(cn_random(&seed) % 4) * 33);
			run(w, within);
		}
	}
}

static void free_all(struct engine_fixture *w)
{
	engine_leave_all(w);
	engine_run(w, SECOND);
	for (uint32_t i = 0; i < w->nodes; i++) {
		struct collnet_stats s = { .size = sizeof(s) };

		cn_engine_stats(w->engines[i], &s, false);
		assert_int_equal(s.jobs, 0);
		assert_int_equal(s.window_now, 0);
	}
	engine_fixture_free(w);
	for (uint32_t r = 0; r < RANKS; r++) {
		free(expected[r]);
		expected[r] = NULL;
	}
}

static void vector__one_rank_per_node(void **state)
{
	(void)state;
	for (uint32_t nodes = 1; nodes <= NODES; nodes++) {
		struct engine_fixture *w = engine_fixture(nodes, NULL, NULL);

		engine_join_all(w, 1, false, "job");
		for (int i = 0; i < 3; i++) {
			every_operation(w, SECOND);
		}
		free_all(w);
	}
}

static void vector__several_ranks_per_node(void **state)
{
	(void)state;
	for (uint32_t nodes = 1; nodes <= 8; nodes++) {
		for (uint32_t a_node = 2; a_node <= 3; a_node++) {
			struct engine_fixture *w = engine_fixture(nodes, NULL, NULL);

			engine_join_all(w, a_node, nodes % 2, "job");
			for (int i = 0; i < 2; i++) {
				every_operation(w, SECOND);
			}
			free_all(w);
		}
	}
}

static void vector__on_a_tree(void **state)
{
	static const char *const shapes[] = { "4", "2x2", "3x2", "2x3", "1x2", "1", "4x4" };

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct cn_topo *t = NULL;
		struct engine_fixture *w;

		assert_int_equal(cn_topo_shape(shapes[i], 0, 0, 0, 0, &t, NULL), COLLNET_OK);
		w = engine_fixture(t->nhosts, shapes[i], NULL);
		cn_topo_free(t);
		engine_join_all(w, 1 + i % 2, i % 3 == 0, "job");
		for (int k = 0; k < 3; k++) {
			every_operation(w, SECOND);
		}
		free_all(w);
	}
}

static void vector__with_losses(void **state)
{
	const struct cn_hub_faults faults = {
		.seed = SEED, .loss = 20000, .duplicate = 5000, .reorder = 5000
	};
	struct engine_fixture *w = engine_fixture(5, NULL, NULL);

	(void)state;
	engine_join_all(w, 2, false, "job");
	cn_hub_set_faults(w->hub, &faults);
	for (int i = 0; i < 5; i++) {
		every_operation(w, 50 * SECOND);
	}
	free_all(w);
}

static void choose(const struct engine_fixture *w, enum cn_op_kind op, const char *algorithm)
{
	v.op = op;
	v.algorithm = algorithm;
	v.permutation = CN_PERM_AUTO;
	v.root = w->ranks - 1;
	v.in_place = false;
}

static void draw_equal(uint32_t ranks, uint64_t len)
{
	for (uint32_t s = 0; s < ranks; s++) {
		for (uint32_t d = 0; d < ranks; d++) {
			v.len[s][d] = v.expected_len[s][d] = len;
		}
	}
}

/* Acknowledgements in ten exchanges of such blocks after one. */
static uint64_t acks_in_exchanges(struct engine_fixture *w, uint64_t len, uint64_t len_for_one)
{
	uint64_t before = 0;

	choose(w, CN_OP_ALLTOALLV, NULL);
	draw_equal(w->ranks, len);
	for (uint32_t s = 0; s < w->ranks; s++) {
		v.len[s][0] = v.expected_len[s][0] = len_for_one;
	}
	for (int i = 0; i <= 10; i++) {
		before = i == 1 ? engine_acks(w) : before;
		run(w, SECOND);
	}
	return engine_acks(w) - before;
}

/*
 * A port of 43 frames holds two exchanges of a frame from each of 15 nodes, and nobody waits for
 * acknowledgements. Of two frames from each it does not, and each is acknowledged.
 */
static void vector__short_blocks_need_no_acknowledgements(void **state)
{
	struct engine_fixture *w = engine_fixture(16, "16", NULL);

	(void)state;
	engine_join_all(w, 1, false, "job");
	assert_int_equal(acks_in_exchanges(w, 8, 8), 0);
	assert_int_equal(acks_in_exchanges(w, PAYLOAD, PAYLOAD), 0);
	assert_true(acks_in_exchanges(w, 8, PAYLOAD + 1) >= 10 * 15);
	assert_int_equal(acks_in_exchanges(w, 8, 8), 0);
	assert_true(acks_in_exchanges(w, PAYLOAD + 1, PAYLOAD + 1) >= 10 * 15 * 15);
	free_all(w);
}

/* ---- ranks that disagree ------------------------------------------------------------------ */

/*
 * Some rank finds out, at once, and says which; nobody waits for the deadline, nobody who
 * succeeds has a wrong byte, and the team has failed for all.
 */
static void disagree(uint32_t nodes, uint32_t a_node, uint32_t from, uint32_t to, uint64_t sent,
		     uint64_t wanted)
{
	static const enum cn_op_kind ops[] = { CN_OP_ALLTOALLV, CN_OP_ALLTOALLV, CN_OP_SCATTERV,
					       CN_OP_GATHERV };
	static const char *const algorithms[] = { "shuffle", "pairwise", NULL, NULL };

	for (int k = 0; k < 4; k++) {
		struct engine_fixture *w = engine_fixture(nodes, NULL, NULL);
		uint32_t found = 0;

		engine_join_all(w, a_node, false, "job");
		v.op = ops[k];
		v.algorithm = algorithms[k];
		v.permutation = CN_PERM_AUTO;
		v.root = ops[k] == CN_OP_SCATTERV ? from : ops[k] == CN_OP_GATHERV ? to : 0;
		v.in_place = false;
		draw(w->ranks, 30);
		v.len[from][to] = sent;
		v.expected_len[from][to] = wanted;
		v.number++;
		for (uint32_t r = 0; r < w->ranks; r++) {
			post(w, r);
		}
		engine_wait_all(w, 0, SECOND);
		for (uint32_t r = 0; r < w->ranks; r++) {
			const struct engine_waiter *x = &w->rank[r].op[0];

			if (x->status == COLLNET_OK) {
				check(w, r);
				continue;
			}
			if (x->status != COLLNET_EMISMATCH ||
			    strstr(x->text, "does not match") == NULL) {
				fail_msg("%s: rank %u: %d %s", cn_op_name(v.op), r, x->status,
					 x->text);
			}
			found++;
		}
		if (found == 0) {
			fail_msg("%s by %s of %u ranks: %llu bytes from %u to %u, where %llu are "
				 "expected: nobody found out",
				 cn_op_name(v.op), v.algorithm, w->ranks, (unsigned long long)sent,
				 from, to, (unsigned long long)wanted);
		}
		free_all(w);
	}
}

static void vector__sizes_that_disagree(void **state)
{
	static const uint64_t sizes[] = { 0, 1, PAYLOAD, PAYLOAD + 1, 2 * PAYLOAD, 3 * PAYLOAD };

	(void)state;
	for (int i = 0; i < 6; i++) {
		for (int j = 0; j < 6; j++) {
			if (i != j) {
				disagree(4, 1, 1, 2, sizes[i], sizes[j]);
				disagree(3, 2, 1, 4, sizes[i], sizes[j]);
				disagree(2, 2, 2, 3, sizes[i], sizes[j]); /* on one node */
			}
		}
	}
}

/* As many bytes and frames between two nodes, but of other ranks: only the digest shows it. */
static void vector__sizes_that_are_exchanged(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	uint32_t found = 0, frame;

	(void)state;
	engine_join_all(w, 2, false, "job");
	v.op = CN_OP_ALLTOALLV;
	v.algorithm = "shuffle";
	v.permutation = CN_PERM_AUTO;
	v.number++;
	memset(v.len, 0, sizeof(v.len));
	memset(v.expected_len, 0, sizeof(v.expected_len));
	frame = cn_node_payload(cn_engine_node(w->engines[0]));
	v.len[0][2] = v.expected_len[0][3] = 2 * frame;
	v.len[0][3] = v.expected_len[0][2] = frame;
	for (uint32_t r = 0; r < w->ranks; r++) {
		post(w, r);
	}
	engine_wait_all(w, 0, SECOND);
	for (uint32_t r = 0; r < w->ranks; r++) {
		found += w->rank[r].op[0].status == COLLNET_EMISMATCH;
	}
	assert_true(found >= 2);
	free_all(w);
}

/* Every rank must know all sizes: the counts of one rank differ in a block that is not its own. */
static void vector__allgatherv_counts_that_disagree(void **state)
{
	static const uint64_t sizes[] = { 0, 1, PAYLOAD, 2 * PAYLOAD };

	(void)state;
	for (int k = 0; k < 16; k++) {
		uint64_t wrong = sizes[(k / 4 + 1 + k % 3) % 4];
		struct engine_fixture *w = engine_fixture(4, NULL, NULL);
		uint32_t found = 0;

		engine_join_all(w, 1 + (uint32_t)k % 2, false, "job");
		v.op = CN_OP_ALLGATHERV;
		v.algorithm = k / 2 % 2 == 0 ? "ring" : "doubling";
		v.permutation = CN_PERM_AUTO;
		v.in_place = false;
		v.number++;
		draw(w->ranks, 0);
		v.len[0][0] = v.expected_len[0][0] = sizes[k / 4];
		for (uint32_t r = 0; r < w->ranks; r++) {
			v.expected_len[0][0] = r == 3 ? wrong : sizes[k / 4];
			post(w, r);
		}
		engine_wait_all(w, 0, SECOND);
		for (uint32_t r = 0; r < w->ranks; r++) {
			const struct engine_waiter *x = &w->rank[r].op[0];

			assert_true(x->status == COLLNET_OK || x->status == COLLNET_EMISMATCH);
			found += x->status == COLLNET_EMISMATCH;
		}
		assert_true(found > 0);
		free_all(w);
	}
}

/* Another operation, with blocks or without, is found out, too. */
static void vector__another_operation(void **state)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_coll_args other = engine_alltoall(100);
	struct cn_err err = { 0 };
	uint32_t found = 0;

	(void)state;
	engine_join_all(w, 1, false, "job");
	v.op = CN_OP_ALLGATHERV;
	v.algorithm = NULL;
	v.permutation = CN_PERM_AUTO;
	draw(w->ranks, 0);
	for (uint32_t r = 1; r < w->ranks; r++) {
		post(w, r);
	}
	assert_int_equal(engine_post(w, 0, 0, &other, &err), COLLNET_OK);
	engine_wait_all(w, 0, SECOND);
	for (uint32_t r = 0; r < w->ranks; r++) {
		found += w->rank[r].op[0].status == COLLNET_EMISMATCH;
	}
	assert_true(found > 0);
	free_all(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vector__one_rank_per_node),
		cmocka_unit_test(vector__several_ranks_per_node),
		cmocka_unit_test(vector__on_a_tree),
		cmocka_unit_test(vector__with_losses),
		cmocka_unit_test(vector__short_blocks_need_no_acknowledgements),
		cmocka_unit_test(vector__sizes_that_disagree),
		cmocka_unit_test(vector__sizes_that_are_exchanged),
		cmocka_unit_test(vector__allgatherv_counts_that_disagree),
		cmocka_unit_test(vector__another_operation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
