/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll: engines on the in-memory hub under a virtual clock. Frames need no time there, so the
 * clock moves only from timer to timer: what takes time was a fault.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/poller.h"
#include "tests/unit/hub.h"

#define NODES	16
#define OWNER	1000u
#define RANKS	(NODES * 3)
#define SECOND	(1000 * CN_MS)
#define MTU	576
#define PAYLOAD (MTU - 24)
#define SEED	271828u

struct waiter {
	struct cn_done done;
	uint32_t calls;
	int status;
	cn_time at;
	char text[CN_ERR_TEXT];
	struct fixture *fixture;
	/* An operation's buffers: the moment it is done they are the caller's again, and he spoils
	 * them, so that a frame that still points into them is seen. What had come is kept. */
	uint8_t *send, *recv, *got;
	size_t sent, received;
};

struct rank {
	uint32_t node;
	struct cn_member *member;
	struct waiter joined, op[COLLNET_OUTSTANDING_MAX];
	uint8_t *send[COLLNET_OUTSTANDING_MAX], *recv[COLLNET_OUTSTANDING_MAX];
};

struct fixture {
	cn_time now;
	uint32_t nodes, ranks, number; /* of operations so far */
	struct cn_hub *hub;
	struct cn_engine *engines[NODES];
	struct cn_poller *pollers[NODES];
	struct cn_engine_config config;
	struct cn_topo *topo;
	struct rank rank[RANKS];
};

static void done(struct cn_done *d, int status, const char *text)
{
	struct waiter *w = (struct waiter *)((char *)d - offsetof(struct waiter, done));

	w->calls++;
	w->status = status;
	w->at = w->fixture->now;
	snprintf(w->text, sizeof(w->text), "%s", text);
	if (status == COLLNET_OK && w->recv != NULL) {
		w->got = malloc(w->received + 1);
		assert_non_null(w->got);
		memcpy(w->got, w->recv, w->received + 1);
		memset(w->send, 0xee, w->sent);
		memset(w->recv, 0xee, w->received);
	}
}

static struct cn_done *begin_wait(struct fixture *w, struct waiter *x)
{
	free(x->got);
	memset(x, 0, sizeof(*x));
	x->done.fn = done;
	x->fixture = w;
	return &x->done;
}

/* ---- the fixture ---------------------------------------------------------------------------- */

static void start_node(struct fixture *w, uint32_t i)
{
	struct cn_link *l = cn_hub_port(w->hub, i);
	struct cn_err err = { 0 };

	memcpy(w->config.node.mac, l->mac, 6);
	w->config.node.epoch++;
	w->config.node.mtu = MTU;
	if (w->topo != NULL) {
		snprintf(w->config.node.name, sizeof(w->config.node.name), "%s",
			 w->topo->vertices[w->topo->hosts[i]].name);
	} else {
		snprintf(w->config.node.name, sizeof(w->config.node.name), "n%u", i);
	}
	if (cn_engine_new(&w->config, &w->engines[i], &err) != COLLNET_OK ||
	    cn_poller_new(l, w->engines[i], &w->pollers[i], &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
}

static void stop_node(struct fixture *w, uint32_t i)
{
	cn_poller_free(w->pollers[i]);
	cn_engine_free(w->engines[i]);
	w->pollers[i] = NULL;
	w->engines[i] = NULL;
}

static struct fixture *world_new(uint32_t nodes, const char *shape,
				 void (*change)(struct cn_engine_config *))
{
	struct fixture *w = calloc(1, sizeof(*w));
	struct cn_err err = { 0 };

	assert_non_null(w);
	w->now = SECOND;
	w->nodes = nodes;
	w->hub = cn_hub_new(nodes, MTU, 4096);
	assert_non_null(w->hub);
	cn_engine_config_init(&w->config);
	w->config.node.epoch = SEED;
	w->config.node.max_peers = 32;
	if (shape != NULL) {
		if (cn_topo_shape(shape, 100000000, 43, 1000000000, 45, &w->topo, &err) != 0) {
			fail_msg("%s", err.text);
		}
		w->config.topo = w->topo;
	}
	if (change != NULL) {
		change(&w->config);
	}
	for (uint32_t i = 0; i < nodes; i++) {
		start_node(w, i);
	}
	return w;
}

static void free_buffers(struct rank *r)
{
	for (int k = 0; k < COLLNET_OUTSTANDING_MAX; k++) {
		free(r->send[k]);
		free(r->recv[k]);
		free(r->op[k].got);
		r->send[k] = r->recv[k] = r->op[k].got = NULL;
	}
}

static void world_free(struct fixture *w)
{
	for (uint32_t i = 0; i < w->nodes; i++) {
		if (w->engines[i] != NULL) {
			stop_node(w, i);
		}
	}
	for (uint32_t r = 0; r < RANKS; r++) {
		free_buffers(&w->rank[r]);
	}
	cn_hub_free(w->hub);
	cn_topo_free(w->topo);
	free(w);
}

/* One turn of every node, and to the next timer if there was nothing to do. False: limit. */
static bool step(struct fixture *w, cn_time limit)
{
	cn_time next = CN_NEVER;
	int work = 0;

	for (uint32_t i = 0; i < w->nodes; i++) {
		if (w->engines[i] != NULL) {
			int r = cn_poller_poll(w->pollers[i], w->now);

			assert_true(r >= 0);
			work += r;
			next = cn_min_time(next, cn_poller_deadline(w->pollers[i]));
		}
	}
	if (work > 0 || next <= w->now) {
		w->now += CN_US; /* so that nothing can spin for ever unseen */
		return w->now < limit;
	}
	w->now = next < limit ? next : limit;
	return w->now < limit;
}

static void run(struct fixture *w, cn_time duration)
{
	cn_time limit = w->now + duration;

	while (step(w, limit)) {
	}
}

static bool all_called(const struct fixture *w, int k)
{
	for (uint32_t r = 0; r < w->ranks; r++) {
		const struct rank *x = &w->rank[r];

		if (x->member != NULL && (k < 0 ? x->joined.calls : x->op[k].calls) == 0) {
			return false;
		}
	}
	return true;
}

static void wait_all(struct fixture *w, int k, cn_time duration)
{
	cn_time limit = w->now + duration;

	while (!all_called(w, k)) {
		if (!step(w, limit)) {
			break;
		}
	}
	for (uint32_t r = 0; r < w->ranks; r++) {
		const struct rank *x = &w->rank[r];
		uint32_t calls = k < 0 ? x->joined.calls : x->op[k].calls;

		if (x->member != NULL && calls != 1) {
			fail_msg("rank %u of %u on node n%u: told %u times", r, w->ranks, x->node,
				 calls);
		}
	}
}

/* ---- teams -------------------------------------------------------------------------------- */

static void join(struct fixture *w, uint32_t rank, uint32_t node, const char *job, cn_time within)
{
	struct rank *r = &w->rank[rank];
	struct cn_err err = { 0 };

	r->node = node;
	if (cn_team_join(w->engines[node], w->now, OWNER, job, rank, w->ranks, w->now + within,
			 begin_wait(w, &r->joined), &r->member, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
}

/* `a_node` ranks a node, dealt out in turn or side by side. */
static void join_all(struct fixture *w, uint32_t a_node, bool in_turn, const char *job)
{
	w->ranks = w->nodes * a_node;
	for (uint32_t r = 0; r < w->ranks; r++) {
		join(w, r, in_turn ? r % w->nodes : r / a_node, job, 60 * SECOND);
	}
	wait_all(w, -1, 60 * SECOND);
	for (uint32_t r = 0; r < w->ranks; r++) {
		if (w->rank[r].joined.status != COLLNET_OK) {
			fail_msg("rank %u: %s", r, w->rank[r].joined.text);
		}
		assert_int_equal(cn_member_nodes(w->rank[r].member), w->nodes);
	}
}

static void leave(struct fixture *w, uint32_t rank, bool failed)
{
	cn_team_leave(w->rank[rank].member, w->now, failed);
	w->rank[rank].member = NULL;
}

static void leave_all(struct fixture *w)
{
	for (uint32_t r = 0; r < w->ranks; r++) {
		if (w->rank[r].member != NULL) {
			leave(w, r, false);
		}
		free_buffers(&w->rank[r]);
	}
}

/* ---- operations ---------------------------------------------------------------------------- */

static uint8_t *block(size_t bytes, uint8_t fill)
{
	uint8_t *b = malloc(bytes + 1);

	assert_non_null(b);
	memset(b, fill, bytes + 1);
	return b;
}

static uint8_t byte_of(uint32_t number, uint32_t from, uint32_t to, uint64_t at)
{
	return (uint8_t)(number * 101 + from * 37 + to * 11 + at * 7 + (at >> 8));
}

static int post(struct fixture *w, uint32_t rank, int k, const struct cn_coll_args *like,
		struct cn_err *err)
{
	struct rank *r = &w->rank[rank];
	const struct cn_call c = { like->op, like->bytes, rank, w->ranks, like->root };
	uint64_t n = cn_call_send_bytes(&c), b = like->bytes;
	struct cn_coll_args a = *like;

	free(r->send[k]);
	free(r->recv[k]);
	r->send[k] = block(n, 0);
	r->recv[k] = block(cn_call_recv_bytes(&c), 0xcc);
	for (uint64_t i = 0; i < n; i++) {
		uint32_t to = n > b ? (uint32_t)(i / b) : 0;

		r->send[k][i] = byte_of(w->number, rank, to, i % b);
	}
	a.send = n > 0 ? r->send[k] : NULL;
	a.recv = like->op == CN_OP_BARRIER ? NULL : r->recv[k];
	begin_wait(w, &r->op[k]);
	r->op[k].send = r->send[k];
	r->op[k].sent = n;
	r->op[k].recv = r->recv[k];
	r->op[k].received = cn_call_recv_bytes(&c);
	return cn_coll_post(r->member, w->now, &a, &r->op[k].done, err);
}

static void check(const struct fixture *w, uint32_t rank, int k, const struct cn_coll_args *a)
{
	const struct rank *r = &w->rank[rank];
	const struct cn_call c = { a->op, a->bytes, rank, w->ranks, a->root };
	uint64_t n = cn_call_recv_bytes(&c);

	if (r->op[k].status != COLLNET_OK) {
		fail_msg("rank %u: %s", rank, r->op[k].text);
	}
	for (uint64_t i = 0; i < n; i++) {
		bool one = a->op == CN_OP_BCAST || a->op == CN_OP_SCATTER;
		uint32_t from = one ? a->root : (uint32_t)(i / a->bytes);
		uint32_t to = a->op == CN_OP_ALLTOALL || a->op == CN_OP_SCATTER ? rank : 0;

		if (r->op[k].got[i] != byte_of(w->number, from, to, i % a->bytes)) {
			fail_msg(
				"%s of %llu bytes, %u ranks on %u nodes: rank %u, byte %llu of rank "
				"%u is wrong",
				a->algorithm, (unsigned long long)a->bytes, w->ranks, w->nodes,
				rank, (unsigned long long)(i % a->bytes), from);
		}
	}
	assert_int_equal(r->op[k].got[n], 0xcc);
}

/* All ranks call, are told, and have the right bytes. */
static void collective(struct fixture *w, const struct cn_coll_args *a, cn_time within)
{
	cn_time limit = w->now + within;
	bool checked[RANKS] = { false };
	uint32_t left = w->ranks;
	struct cn_err err = { 0 };

	w->number++;
	for (uint32_t r = 0; r < w->ranks; r++) {
		if (post(w, r, 0, a, &err) != COLLNET_OK) {
			fail_msg("%s", err.text);
		}
	}
	while (left > 0) {
		bool more = step(w, limit);

		for (uint32_t r = 0; r < w->ranks; r++) {
			if (w->rank[r].op[0].calls > 0 && !checked[r]) {
				checked[r] = true;
				left--;
				check(w, r, 0, a);
			}
		}
		if (!more && left > 0) {
			fail_msg("%s of %llu bytes, %u ranks on %u nodes: %u ranks wait",
				 a->algorithm, (unsigned long long)a->bytes, w->ranks, w->nodes,
				 left);
		}
	}
}

static const char *const exchanges[] = { "shuffle", "pairwise", "linear" };
static const enum cn_permutation perms[] = {
	CN_PERM_SHIFT,
	CN_PERM_XOR,
	CN_PERM_EDGE_COLOUR,
};

static struct cn_coll_args alltoall(uint64_t bytes)
{
	return (struct cn_coll_args){
		.op = CN_OP_ALLTOALL,
		.algorithm = "shuffle",
		.bytes = bytes,
		.window = COLLNET_WINDOW_AUTO,
		.deadline = CN_NEVER,
	};
}

/* Every row of the registry that can run here; the order of numbers and the root change. */
static void everything(struct fixture *w, const uint64_t *sizes, int nsizes, cn_time within)
{
	size_t rows;
	const struct cn_algorithm *row = cn_algorithms(&rows);

	for (size_t k = 0; k < rows; k++) {
		bool paired = row[k].op == CN_OP_ALLTOALL && !row[k].needs_tree;

		/* LR2 needs hosts on every switch, which shapes do not have on their root. */
		if ((row[k].needs_tree && w->topo == NULL) || strcmp(row[k].name, "lr2") == 0) {
			continue;
		}
		for (int s = 0; s < (row[k].op == CN_OP_BARRIER ? 1 : nsizes); s++) {
			for (int g = 0; g < (paired ? 3 : 1); g++) {
				struct cn_coll_args a = alltoall(sizes[s]);

				a.op = row[k].op;
				a.algorithm = row[k].name;
				a.permutation = paired ? perms[g] : CN_PERM_AUTO;
				a.contention_aware = (g + s) % 2;
				a.root = a.op >= CN_OP_BCAST ? (uint32_t)(k + (size_t)s) % w->ranks
							     : 0;
				if (a.permutation == CN_PERM_XOR && (w->nodes & (w->nodes - 1))) {
					continue;
				}
				collective(w, &a, within);
			}
		}
	}
}

static const uint64_t sizes[] = { 0, 1, 777, 3 * PAYLOAD + 1 };

static void engine__every_algorithm_one_rank_a_node(void **state)
{
	(void)state;
	for (uint32_t nodes = 1; nodes <= NODES; nodes++) {
		struct fixture *w = world_new(nodes, NULL, NULL);

		join_all(w, 1, false, "job");
		everything(w, sizes, 4, SECOND);
		leave_all(w);
		run(w, SECOND);
		for (uint32_t i = 0; i < nodes; i++) {
			struct collnet_stats s = { .size = sizeof(s) };

			cn_engine_stats(w->engines[i], &s, false);
			assert_int_equal(s.jobs, 0);
			assert_int_equal(s.window_now, 0);
			assert_int_equal(s.data_resent, 0);
		}
		world_free(w);
	}
}

static void engine__every_algorithm_on_a_tree(void **state)
{
	static const char *const shapes[] = { "4", "2x2", "3x2", "2x3", "1x2", "1" };

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct cn_topo *t = NULL;
		struct fixture *w;

		assert_int_equal(cn_topo_shape(shapes[i], 0, 0, 0, 0, &t, NULL), COLLNET_OK);
		assert_true(t->nhosts <= NODES);
		w = world_new(t->nhosts, shapes[i], NULL);
		cn_topo_free(t);
		join_all(w, 1 + i % 2, i % 3 == 0, "job");
		everything(w, sizes, 4, SECOND);
		leave_all(w);
		run(w, SECOND);
		world_free(w);
	}
}

static void engine__every_algorithm_many_ranks_a_node(void **state)
{
	static const uint32_t nodes[] = { 1, 2, 3, 5, 8 };

	(void)state;
	for (int i = 0; i < 5; i++) {
		for (uint32_t a_node = 2; a_node <= 3; a_node++) {
			struct fixture *w = world_new(nodes[i], NULL, NULL);

			join_all(w, a_node, (i + a_node) % 2, "job");
			everything(w, sizes, 4, SECOND);
			leave_all(w);
			world_free(w);
		}
	}
}

static void engine__every_size(void **state)
{
	struct fixture *w = world_new(3, NULL, NULL);

	(void)state;
	join_all(w, 1, false, "job");
	for (uint64_t bytes = 0; bytes <= 3 * MTU + 1; bytes++) {
		struct cn_coll_args a = alltoall(bytes);

		a.algorithm = exchanges[bytes % 3];
		collective(w, &a, SECOND);
		a.op = CN_OP_ALLGATHER;
		a.algorithm = "ring";
		collective(w, &a, SECOND);
	}
	leave_all(w);
	world_free(w);
}

/* With a topology: the window of Eq. 4 holds all the time, and leaves nothing behind. */
static void engine__window_of_the_topology(void **state)
{
	struct fixture *w = world_new(8, "4x2", NULL);
	struct cn_coll_args a = alltoall(20000);

	(void)state;
	join_all(w, 2, false, "job");
	everything(w, sizes, 4, SECOND);
	a.contention_aware = true;
	for (int i = 0; i < 3; i++) {
		collective(w, &a, SECOND);
	}
	for (uint32_t i = 0; i < w->nodes; i++) {
		struct collnet_stats s = { .size = sizeof(s) };

		cn_engine_stats(w->engines[i], &s, false);
		assert_true(s.window > 0 && s.window < 100);
		assert_int_equal(s.window_now, 0);
	}
	world_free(w);
}

static void window_of_three(struct cn_engine_config *c)
{
	c->window = 3;
}

/* A window as configured is never passed, not even with losses, and losses leak nothing. */
static void engine__window_holds_with_losses(void **state)
{
	struct fixture *w = world_new(5, NULL, window_of_three);
	struct cn_hub_faults faults = { .seed = SEED, .loss = 20000, .duplicate = 5000 };

	(void)state;
	join_all(w, 1, false, "job");
	cn_hub_set_faults(w->hub, &faults);
	everything(w, sizes, 4, 100 * SECOND);
	for (uint32_t i = 0; i < w->nodes; i++) {
		struct collnet_stats s = { .size = sizeof(s) };

		cn_engine_stats(w->engines[i], &s, false);
		assert_int_equal(s.window, 3);
		assert_in_range(s.window_peak, 1, 3);
		assert_int_equal(s.window_now, 0);
	}
	world_free(w);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void engine__losses(void **state)
{
	static const uint32_t loss[] = { 10000, 50000, 10000, 50000, 200000 };

	(void)state;
	for (uint32_t k = 0; k < 5; k++) {
		struct fixture *w = world_new(4, NULL, NULL);
		struct cn_hub_faults faults = {
			.seed = SEED + k,
			.loss = loss[k],
			.duplicate = 5000,
			.reorder = 5000,
		};

		print_message("seed %llu, loss %u ppm\n", (unsigned long long)faults.seed, loss[k]);
		cn_hub_set_faults(w->hub, &faults);
		join_all(w, 1 + k % 3, k % 2, "job");
		everything(w, sizes, 4, 100 * SECOND);
		leave_all(w);
		world_free(w);
	}
}

static void tiny_pool(struct cn_engine_config *c)
{
	c->node.pool_frames = 16;
}

/* Ranks call at different times, and several operations at once: frames that come early wait in a
 * pool of 16, and what does not fit is refused until there is room. */
static void engine__early_frames_and_many_operations(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 12; seed++) {
		struct fixture *w = world_new(4, NULL, tiny_pool);
		struct cn_coll_args a = alltoall(5 * PAYLOAD + 3);
		uint32_t posted[RANKS] = { 0 }, left;
		uint64_t random = SEED + seed;
		struct cn_err err = { 0 };
		int ops = COLLNET_OUTSTANDING_MAX;

		a.algorithm = exchanges[seed % 3];
		join_all(w, 1 + seed % 2, false, "job");
		left = w->ranks * (uint32_t)ops;
		while (left > 0) {
			uint32_t r = cn_random(&random) % w->ranks;

			if (posted[r] < (uint32_t)ops) {
				if (post(w, r, (int)posted[r], &a, &err) != COLLNET_OK) {
					fail_msg("%s", err.text);
				}
				posted[r]++;
				left--;
			}
			run(w, cn_random(&random) % 5 * CN_MS);
		}
		for (int k = 0; k < ops; k++) {
			wait_all(w, k, 20 * SECOND);
			for (uint32_t r = 0; r < w->ranks; r++) {
				check(w, r, k, &a);
			}
		}
		leave_all(w);
		world_free(w);
	}
}

static void engine__too_many_operations(void **state)
{
	struct fixture *w = world_new(2, NULL, NULL);
	struct cn_coll_args a = alltoall(10);
	struct cn_err err = { 0 };

	(void)state;
	join_all(w, 1, false, "job");
	for (int k = 0; k < COLLNET_OUTSTANDING_MAX; k++) {
		assert_int_equal(post(w, 0, k, &a, &err), COLLNET_OK);
	}
	a.send = a.recv = w->rank[0].recv[0];
	assert_int_equal(cn_coll_post(w->rank[0].member, w->now, &a, NULL, &err), COLLNET_ELIMIT);
	stop_node(w, 0); /* whoever waits is told, once */
	for (int k = 0; k < COLLNET_OUTSTANDING_MAX; k++) {
		assert_int_equal(w->rank[0].op[k].calls, 1);
		assert_int_equal(w->rank[0].op[k].status, COLLNET_EDAEMON);
	}
	world_free(w);
}

static void engine__rank_is_missing(void **state)
{
	struct fixture *w = world_new(4, NULL, NULL);

	(void)state;
	w->ranks = 8;
	for (uint32_t r = 0; r < 8; r++) {
		if (r != 2 && r != 5 && r != 6) {
			join(w, r, r % 4, "job", 2 * SECOND);
		}
	}
	run(w, 1900 * CN_MS);
	assert_int_equal(w->rank[0].joined.calls, 0);
	wait_all(w, -1, 200 * CN_MS);
	for (uint32_t r = 0; r < 8; r++) {
		if (r != 2 && r != 5 && r != 6) {
			assert_int_equal(w->rank[r].joined.status, COLLNET_ETIMEOUT);
			assert_non_null(strstr(w->rank[r].joined.text, "2, 5-6"));
		}
	}
	leave_all(w);
	w->ranks = 4; /* the same name, another size: nothing of the first run is in the way */
	run(w, 100 * CN_MS);
	join_all(w, 1, false, "job");
	world_free(w);
}

static void engine__late_rank_is_in_time(void **state)
{
	struct fixture *w = world_new(3, NULL, NULL);
	struct cn_coll_args a = alltoall(100);

	(void)state;
	w->ranks = 3;
	join(w, 0, 0, "job", 10 * SECOND);
	join(w, 2, 2, "job", 10 * SECOND);
	run(w, 9 * SECOND);
	join(w, 1, 1, "job", 10 * SECOND);
	wait_all(w, -1, 100 * CN_MS);
	collective(w, &a, SECOND);
	world_free(w);
}

/* Every rank but those on `gone` gets `status` with `text` in its sentence, within `most`. */
static void assert_all_fail(struct fixture *w, uint32_t gone, int status, const char *text,
			    cn_time most)
{
	cn_time from = w->now;

	wait_all(w, 0, most);
	for (uint32_t r = 0; r < w->ranks; r++) {
		const struct waiter *x = &w->rank[r].op[0];

		if (w->rank[r].node == gone || w->rank[r].member == NULL) {
			continue;
		}
		if (x->status != status || (text != NULL && strstr(x->text, text) == NULL)) {
			fail_msg("rank %u: status %d, \"%s\"", r, x->status, x->text);
		}
		assert_true(x->at <= from + most);
	}
}

/* The same where some may have had all they need before; the others must have the right bytes.
 * Returns how many failed. */
static uint32_t assert_done_or_failed(struct fixture *w, uint32_t gone,
				      const struct cn_coll_args *a, int status, const char *text,
				      cn_time most)
{
	uint32_t failed = 0;
	cn_time from = w->now;

	wait_all(w, 0, most);
	for (uint32_t r = 0; r < w->ranks; r++) {
		const struct waiter *x = &w->rank[r].op[0];

		if (w->rank[r].node == gone || w->rank[r].member == NULL) {
			continue;
		}
		assert_true(x->at <= from + most);
		if (x->status == COLLNET_OK) {
			check(w, r, 0, a);
			continue;
		}
		failed++;
		if (x->status != status || (text != NULL && strstr(x->text, text) == NULL)) {
			fail_msg("rank %u: status %d, \"%s\"", r, x->status, x->text);
		}
	}
	return failed;
}

/* A node is cut off at any moment of an exchange: all others are told, with its name, in time. */
static void engine__node_is_cut_off(void **state)
{
	uint32_t cases = 0;

	(void)state;
	for (uint32_t k = 0; k < 36; k++) {
		struct fixture *w = world_new(6, NULL, NULL);
		bool over = false;
		struct cn_coll_args a = alltoall(200000);
		struct cn_err err = { 0 };

		a.algorithm = exchanges[k % 3];
		if (k % 4 == 3) {
			a.op = CN_OP_ALLGATHER;
			a.algorithm = "ring";
		}
		join_all(w, 1 + k % 2, false, "job");
		for (uint32_t r = 0; r < w->ranks; r++) {
			/* in a third of the cases it has not even called */
			if (k / 12 != 1 || w->rank[r].node != 2) {
				assert_int_equal(post(w, r, 0, &a, &err), COLLNET_OK);
			}
		}
		for (uint32_t i = 0; i < k / 3; i++) {
			step(w, w->now + 1000 * SECOND);
		}
		if (k / 12 == 1) {
			run(w, SECOND);
			for (uint32_t r = 0; r < w->ranks; r++) {
				if (w->rank[r].node == 2) {
					assert_int_equal(post(w, r, 0, &a, &err), COLLNET_OK);
				}
			}
		}
		for (uint32_t r = 0; r < w->ranks; r++) {
			over |= w->rank[r].op[0].calls != 0;
		}
		cn_hub_cut(w->hub, 2, true);
		if (!over) {
			cases += assert_done_or_failed(w, 2, &a, COLLNET_EPEER, "n2", 2 * SECOND) >
				 0;
			assert_done_or_failed(w, NODES, &a, COLLNET_EPEER, NULL, 2 * SECOND);
		}
		world_free(w);
	}
	assert_true(cases >= 24);
}

/* It is cut off while it keeps the others waiting for its call; and after it comes back, a new
 * job works. */
static void engine__absent_caller_is_cut_off(void **state)
{
	struct fixture *w = world_new(4, NULL, NULL);
	struct cn_coll_args a = alltoall(1000);
	struct cn_err err = { 0 };

	(void)state;
	a.op = CN_OP_BARRIER;
	a.algorithm = NULL;
	a.bytes = 0;
	join_all(w, 1, false, "job");
	for (uint32_t r = 0; r < w->ranks; r++) {
		if (r != 1) {
			assert_int_equal(post(w, r, 0, &a, &err), COLLNET_OK);
		}
	}
	run(w, 30 * SECOND);
	assert_int_equal(w->rank[0].op[0].calls, 0); /* slow is not dead */
	cn_hub_cut(w->hub, 1, true);
	w->rank[1].op[0].calls = 1; /* it does not wait for anything */
	w->rank[1].node = NODES;
	assert_all_fail(w, NODES, COLLNET_EPEER, "n1", 2 * SECOND);
	leave_all(w);
	cn_hub_cut(w->hub, 1, false);
	run(w, 3 * SECOND);
	join_all(w, 1, false, "job");
	a = alltoall(1000);
	collective(w, &a, SECOND);
	world_free(w);
}

static void engine__daemon_restarts(void **state)
{
	struct fixture *w = world_new(4, NULL, NULL);
	struct cn_coll_args a = alltoall(400000);
	struct cn_err err = { 0 };

	(void)state;
	join_all(w, 1, false, "job");
	for (uint32_t r = 0; r < w->ranks; r++) {
		assert_int_equal(post(w, r, 0, &a, &err), COLLNET_OK);
	}
	step(w, w->now + SECOND);
	stop_node(w, 3); /* its rank is told that its daemon is gone, and its team with it */
	assert_int_equal(w->rank[3].op[0].status, COLLNET_EDAEMON);
	w->rank[3].member = NULL;
	start_node(w, 3);
	assert_all_fail(w, 3, COLLNET_EPEER, "n3", 2 * SECOND);
	leave_all(w);
	run(w, SECOND);
	join_all(w, 1, false, "job");
	a.bytes = 5000;
	collective(w, &a, SECOND);
	world_free(w);
}

/* An orderly end is known at once, not after a silence. */
static void engine__daemon_ends(void **state)
{
	struct fixture *w = world_new(4, NULL, NULL);
	struct cn_coll_args a = alltoall(100000);
	struct cn_err err = { 0 };

	(void)state;
	join_all(w, 2, false, "job");
	for (uint32_t r = 0; r < w->ranks; r++) {
		assert_int_equal(post(w, r, 0, &a, &err), COLLNET_OK);
	}
	step(w, w->now + SECOND);
	cn_engine_shutdown(w->engines[2], w->now);
	assert_int_equal(w->rank[4].op[0].status, COLLNET_EDAEMON);
	assert_int_equal(w->rank[5].op[0].status, COLLNET_EDAEMON);
	assert_all_fail(w, 2, COLLNET_EPEER, "n2", 10 * CN_MS);
	world_free(w);
}

/*
 * ---- mistakes of the callers --------------------------------------------------------------------
 */

static void engine__mismatches(void **state)
{
	static const struct {
		enum cn_op_kind op;
		const char *algorithm;
		uint64_t bytes;
	} calls[] = {
		{ CN_OP_ALLTOALL, "shuffle", 100 },    { CN_OP_ALLTOALL, "shuffle", 101 },
		{ CN_OP_ALLTOALL, "shuffle", 0 },      { CN_OP_ALLTOALL, "shuffle", PAYLOAD },
		{ CN_OP_ALLTOALL, "shuffle", 5000 },   { CN_OP_ALLTOALL, "pairwise", 100 },
		{ CN_OP_ALLTOALL, "linear", 100 },     { CN_OP_ALLGATHER, "ring", 100 },
		{ CN_OP_ALLGATHER, "ring", 0 },	       { CN_OP_ALLGATHER, "ring", 3 * PAYLOAD },
		{ CN_OP_BARRIER, "dissemination", 0 },
	};
	const uint32_t n = sizeof(calls) / sizeof(calls[0]);
	struct cn_err err;

	(void)state;
	for (uint32_t k = 0; k < n * n; k++) {
		struct fixture *w;
		uint32_t odd = k % 4;

		if (k / n == k % n) {
			continue;
		}
		w = world_new(4, NULL, NULL);
		join_all(w, 1 + k % 2, false, "job");
		for (uint32_t r = 0; r < w->ranks; r++) {
			uint32_t c = w->rank[r].node == odd ? k / n : k % n;
			struct cn_coll_args a = alltoall(calls[c].bytes);

			a.op = calls[c].op;
			a.algorithm = calls[c].algorithm;
			if (post(w, r, 0, &a, &err) != COLLNET_OK) {
				assert_int_equal(err.code, COLLNET_EMISMATCH);
				w->rank[r].op[0].calls = 1;
				w->rank[r].op[0].status = COLLNET_EMISMATCH;
			}
			run(w, k % 3 * CN_MS);
		}
		assert_all_fail(w, NODES, COLLNET_EMISMATCH, NULL, SECOND);
		leave_all(w);
		run(w, SECOND);
		join_all(w, 1, false, "job");
		world_free(w);
	}
}

/* Two ranks of one node do not agree: known without a frame. */
static void engine__mismatch_on_one_node(void **state)
{
	struct fixture *w = world_new(2, NULL, NULL);
	struct cn_coll_args a = alltoall(100), b = alltoall(99);
	struct cn_err err = { 0 };

	(void)state;
	join_all(w, 2, false, "job");
	assert_int_equal(post(w, 0, 0, &a, &err), COLLNET_OK);
	assert_int_equal(post(w, 1, 0, &b, &err), COLLNET_EMISMATCH);
	assert_true(err.text[0] != '\0');
	assert_int_equal(w->rank[0].op[0].status, COLLNET_EMISMATCH);
	run(w, 100 * CN_MS);
	assert_int_equal(post(w, 2, 0, &a, &err), COLLNET_EMISMATCH);
	world_free(w);
}

static void engine__join_mistakes(void **state)
{
	struct fixture *w = world_new(2, NULL, NULL);
	struct cn_member *m;
	struct waiter x = { 0 };
	struct cn_err err = { 0 };

	(void)state;
	w->ranks = 3;
	join(w, 0, 0, "job", 5 * SECOND);
	assert_int_equal(cn_team_join(w->engines[0], w->now, OWNER, "job", 0, 3, CN_NEVER,
				      begin_wait(w, &x), &m, &err),
			 COLLNET_EMISMATCH);
	assert_int_equal(cn_team_join(w->engines[0], w->now, OWNER, "job", 1, 4, CN_NEVER,
				      begin_wait(w, &x), &m, &err),
			 COLLNET_EMISMATCH);
	assert_int_equal(cn_team_join(w->engines[0], w->now, OWNER, "job", 3, 3, CN_NEVER,
				      begin_wait(w, &x), &m, &err),
			 COLLNET_EINVAL);
	assert_int_equal(cn_team_join(w->engines[0], w->now, OWNER, "", 1, 3, CN_NEVER,
				      begin_wait(w, &x), &m, &err),
			 COLLNET_EINVAL);
	run(w, 100 * CN_MS);
	/* the same rank, and another size, on another node */
	join(w, 1, 1, "job", 5 * SECOND);
	assert_int_equal(cn_team_join(w->engines[1], w->now, OWNER, "job", 0, 3,
				      w->now + 5 * SECOND, begin_wait(w, &x), &m, &err),
			 COLLNET_OK);
	wait_all(w, -1, SECOND);
	assert_int_equal(x.status, COLLNET_EMISMATCH);
	assert_int_equal(w->rank[0].joined.status, COLLNET_EMISMATCH);
	assert_int_equal(w->rank[1].joined.status, COLLNET_EMISMATCH);
	world_free(w);
}

static void engine__rank_dies(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 8; k++) {
		struct fixture *w = world_new(4, NULL, NULL);
		struct cn_coll_args a = alltoall(100000);
		struct cn_err err = { 0 };
		char name[32];

		join_all(w, 2, k % 2, "job");
		for (uint32_t r = 0; r < w->ranks; r++) {
			if (r != 5 || k >= 4) {
				assert_int_equal(post(w, r, 0, &a, &err), COLLNET_OK);
			}
		}
		for (uint32_t i = 0; i < k; i++) {
			step(w, w->now + SECOND);
		}
		leave(w, 5, k % 4 < 2); /* died, or left in an orderly way without calling */
		snprintf(name, sizeof(name), "rank 5 on node n%u", w->rank[5].node);
		if (k < 4) {
			assert_all_fail(w, NODES, COLLNET_ERANK, name, 100 * CN_MS);
		} else {
			assert_done_or_failed(w, NODES, &a, COLLNET_ERANK, name, 100 * CN_MS);
		}
		leave_all(w);
		run(w, 100 * CN_MS);
		join_all(w, 1, false, "job");
		world_free(w);
	}
}

/* A rank that leaves after the last operation disturbs nobody, however far the others are. */
static void engine__rank_leaves_in_order(void **state)
{
	struct fixture *w = world_new(4, NULL, NULL);
	struct cn_hub_faults faults = { .seed = SEED, .loss = 50000 };
	struct cn_coll_args a = alltoall(3000);
	struct cn_err err = { 0 };

	(void)state;
	join_all(w, 1, false, "job");
	cn_hub_set_faults(w->hub, &faults);
	for (uint32_t r = 0; r < w->ranks; r++) {
		assert_int_equal(post(w, r, 0, &a, &err), COLLNET_OK);
	}
	for (uint32_t left = w->ranks; left > 0;) {
		assert_true(step(w, 1000 * SECOND));
		for (uint32_t r = 0; r < w->ranks; r++) {
			if (w->rank[r].member != NULL && w->rank[r].op[0].calls > 0) {
				check(w, r, 0, &a);
				leave(w, r, false);
				left--;
			}
		}
	}
	world_free(w);
}

static void engine__deadline_of_an_operation(void **state)
{
	struct fixture *w = world_new(3, NULL, NULL);
	struct cn_coll_args a = alltoall(1000);
	struct cn_err err = { 0 };

	(void)state;
	join_all(w, 1, false, "job");
	a.deadline = w->now + 3 * SECOND;
	assert_int_equal(post(w, 0, 0, &a, &err), COLLNET_OK);
	assert_int_equal(post(w, 2, 0, &a, &err), COLLNET_OK);
	w->rank[1].op[0].calls = 1;
	w->rank[1].op[0].status = COLLNET_ETIMEOUT;
	run(w, 2900 * CN_MS);
	assert_int_equal(w->rank[0].op[0].calls, 0);
	assert_all_fail(w, 1, COLLNET_ETIMEOUT, "1 (node n1)", 200 * CN_MS);
	world_free(w);
}

/*
 * ---- several jobs -------------------------------------------------------------------------------
 */

static void engine__jobs_one_after_the_other(void **state)
{
	struct fixture *w = world_new(4, NULL, NULL);
	struct cn_coll_args a = alltoall(600);

	(void)state;
	for (int i = 0; i < 600; i++) { /* more than a slot has generations */
		join_all(w, 1 + i % 2, false, "job");
		collective(w, &a, SECOND);
		leave_all(w);
	}
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine__every_algorithm_one_rank_a_node),
		cmocka_unit_test(engine__every_algorithm_on_a_tree),
		cmocka_unit_test(engine__every_algorithm_many_ranks_a_node),
		cmocka_unit_test(engine__every_size),
		cmocka_unit_test(engine__window_of_the_topology),
		cmocka_unit_test(engine__window_holds_with_losses),
		cmocka_unit_test(engine__losses),
		cmocka_unit_test(engine__early_frames_and_many_operations),
		cmocka_unit_test(engine__too_many_operations),
		cmocka_unit_test(engine__rank_is_missing),
		cmocka_unit_test(engine__late_rank_is_in_time),
		cmocka_unit_test(engine__node_is_cut_off),
		cmocka_unit_test(engine__absent_caller_is_cut_off),
		cmocka_unit_test(engine__daemon_restarts),
		cmocka_unit_test(engine__daemon_ends),
		cmocka_unit_test(engine__mismatches),
		cmocka_unit_test(engine__mismatch_on_one_node),
		cmocka_unit_test(engine__join_mistakes),
		cmocka_unit_test(engine__rank_dies),
		cmocka_unit_test(engine__rank_leaves_in_order),
		cmocka_unit_test(engine__deadline_of_an_operation),
		cmocka_unit_test(engine__jobs_one_after_the_other),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
