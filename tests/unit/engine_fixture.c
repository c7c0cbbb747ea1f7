/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "engine_fixture.h"
#include "reduction.h"

static void done(struct cn_done *d, int status, const char *text)
{
	struct engine_waiter *w = (struct engine_waiter *)((char *)d -
							   offsetof(struct engine_waiter, done));

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
		if (w->scratched > 0) {
			memset(w->scratch, 0xee, w->scratched);
		}
	}
}

static const uint8_t *place(const struct engine_waiter *x, const struct cn_span *s, uint64_t bytes)
{
	const size_t size = s->buffer == CN_BUF_SEND   ? x->sent
			    : s->buffer == CN_BUF_RECV ? x->received
						       : x->scratched;
	const uint8_t *p = s->buffer == CN_BUF_SEND   ? x->send
			   : s->buffer == CN_BUF_RECV ? x->recv
						      : x->scratch;

	assert_true(s->offset <= size && bytes <= size - s->offset);
	return p + s->offset;
}

static void combine_piece(struct engine_waiter *x, const struct cn_combine *c)
{
	uint8_t *out = (uint8_t *)(uintptr_t)place(x, &c->out, c->bytes);

	assert_int_equal(c->bytes % reduction_element(x->fixture->ordered), 0);
	assert_true(c->out.buffer != CN_BUF_SEND);
	assert_true(c->operands > 0);
	reduction_combine_all(x->fixture->ordered, place(x, &c->left, c->bytes),
			      place(x, &c->right, c->bytes * c->operands), out, c->bytes,
			      c->operands);
}

static bool combine(struct cn_reducer *r, const struct cn_combine *c)
{
	struct engine_waiter *x = (struct engine_waiter *)((char *)r -
							   offsetof(struct engine_waiter, reducer));

	assert_false(x->has_piece);
	x->pieces++;
	x->last += c->last;
	if (x->fixture->later) {
		x->piece = *c;
		x->has_piece = true;
		return false;
	}
	combine_piece(x, c);
	return true;
}

/* What ranks have to combine; the number of pieces. */
static int combine_all(struct engine_fixture *w)
{
	int n = 0;

	for (uint32_t r = 0; r < w->ranks; r++) {
		for (int k = 0; k < COLLNET_OUTSTANDING_MAX; k++) {
			struct engine_waiter *x = &w->rank[r].op[k];

			if (x->has_piece) {
				x->has_piece = false;
				combine_piece(x, &x->piece);
				cn_coll_combined(&x->reducer);
				n++;
			}
		}
	}
	return n;
}

struct cn_done *engine_begin_wait(struct engine_fixture *w, struct engine_waiter *x)
{
	free(x->got);
	memset(x, 0, sizeof(*x));
	x->done.fn = done;
	x->fixture = w;
	return &x->done;
}

void engine_start_node(struct engine_fixture *w, uint32_t i)
{
	struct cn_link *l = cn_hub_port(w->hub, i);
	struct cn_err err = { 0 };

	memcpy(w->config.node.mac, l->mac, 6);
	w->config.node.epoch++;
	w->config.node.mtu = MTU + cn_encapsulation_bytes(w->config.node.encapsulation);
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

void engine_stop_node(struct engine_fixture *w, uint32_t i)
{
	cn_poller_free(w->pollers[i]);
	cn_engine_free(w->engines[i]);
	w->pollers[i] = NULL;
	w->engines[i] = NULL;
}

struct engine_fixture *engine_fixture(uint32_t nodes, const char *shape,
				      void (*change)(struct cn_engine_config *))
{
	struct engine_fixture *w = calloc(1, sizeof(*w));
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
		engine_start_node(w, i);
	}
	return w;
}

static void free_buffers(struct engine_rank *r)
{
	for (int k = 0; k < COLLNET_OUTSTANDING_MAX; k++) {
		free(r->send[k]);
		free(r->recv[k]);
		free(r->op[k].got);
		free(r->scratch[k]);
		r->scratch[k] = NULL;
		r->send[k] = r->recv[k] = r->op[k].got = NULL;
	}
}

void engine_fixture_free(struct engine_fixture *w)
{
	for (uint32_t i = 0; i < w->nodes; i++) {
		if (w->engines[i] != NULL) {
			engine_stop_node(w, i);
		}
	}
	for (uint32_t r = 0; r < RANKS; r++) {
		free_buffers(&w->rank[r]);
	}
	for (uint32_t r = 0; r < RANKS; r++) {
		free(w->reduced.send[r]);
	}
	cn_hub_free(w->hub);
	cn_topo_free(w->topo);
	free(w);
}

/* The engine counts those of its teams that form. */
static void check_forming(const struct cn_engine *e)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->places; i++) {
		n += e->teams[i] != NULL && e->teams[i]->state == CN_TEAM_FORMING;
	}
	assert_int_equal(e->nforming, n);
}

bool engine_step(struct engine_fixture *w, cn_time limit)
{
	cn_time next = CN_NEVER;
	int work = combine_all(w);

	for (uint32_t i = 0; i < w->nodes; i++) {
		if (w->engines[i] != NULL) {
			int r = cn_poller_poll(w->pollers[i], w->now);

			assert_true(r >= 0);
			check_forming(w->engines[i]);
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

void engine_run(struct engine_fixture *w, cn_time duration)
{
	cn_time limit = w->now + duration;

	while (engine_step(w, limit)) {
	}
}

static bool all_called(const struct engine_fixture *w, int k)
{
	for (uint32_t r = 0; r < w->ranks; r++) {
		const struct engine_rank *x = &w->rank[r];

		if (x->member != NULL && (k < 0 ? x->joined.calls : x->op[k].calls) == 0) {
			return false;
		}
	}
	return true;
}

void engine_wait_all(struct engine_fixture *w, int k, cn_time duration)
{
	cn_time limit = w->now + duration;

	while (!all_called(w, k)) {
		if (!engine_step(w, limit)) {
			break;
		}
	}
	for (uint32_t r = 0; r < w->ranks; r++) {
		const struct engine_rank *x = &w->rank[r];
		uint32_t calls = k < 0 ? x->joined.calls : x->op[k].calls;

		if (x->member != NULL && calls != 1) {
			fail_msg("rank %u of %u on node n%u: told %u times", r, w->ranks, x->node,
				 calls);
		}
	}
}

void engine_join(struct engine_fixture *w, uint32_t rank, uint32_t node, const char *job,
		 cn_time within)
{
	struct engine_rank *r = &w->rank[rank];
	struct cn_err err = { 0 };

	r->node = node;
	if (cn_team_join(w->engines[node], w->now, OWNER, job, rank, w->ranks, w->now + within,
			 engine_begin_wait(w, &r->joined), &r->member, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
}

void engine_join_all(struct engine_fixture *w, uint32_t a_node, bool in_turn, const char *job)
{
	w->ranks = w->nodes * a_node;
	for (uint32_t r = 0; r < w->ranks; r++) {
		engine_join(w, r, in_turn ? r % w->nodes : r / a_node, job, 60 * SECOND);
	}
	engine_wait_all(w, -1, 60 * SECOND);
	for (uint32_t r = 0; r < w->ranks; r++) {
		if (w->rank[r].joined.status != COLLNET_OK) {
			fail_msg("rank %u: %s", r, w->rank[r].joined.text);
		}
		assert_int_equal(cn_member_nodes(w->rank[r].member), w->nodes);
	}
}

void engine_leave(struct engine_fixture *w, uint32_t rank, bool failed)
{
	cn_team_leave(w->rank[rank].member, w->now, failed);
	w->rank[rank].member = NULL;
}

uint64_t engine_acks(const struct engine_fixture *w)
{
	uint64_t acks = 0;

	for (uint32_t k = 0; k < w->nodes; k++) {
		struct collnet_stats s = { .size = sizeof(s) };

		cn_engine_stats(w->engines[k], &s, false);
		assert_true(s.data_resent == 0);
		acks += s.acks_sent;
	}
	return acks;
}

void engine_leave_all(struct engine_fixture *w)
{
	for (uint32_t r = 0; r < w->ranks; r++) {
		if (w->rank[r].member != NULL) {
			engine_leave(w, r, false);
		}
		free_buffers(&w->rank[r]);
	}
}

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

static void fill(const struct engine_fixture *w, uint32_t rank, const struct cn_coll_args *a,
		 uint8_t *send, uint64_t n)
{
	const bool odd = cn_op_reduces(a->op) && w->ordered;
	uint32_t to = 0;

	for (uint64_t i = 0, at = 0; i < n; i++, at++) {
		if (at == a->bytes) {
			at = 0;
			to++;
		}
		/* Maps x -> a x + b of which a is odd can be told apart (reduction.h). */
		send[i] = byte_of(w->number, rank, to, at) | (odd && i % 2 == 0);
	}
}

static struct cn_call call_of(const struct engine_fixture *w, uint32_t rank,
			      const struct cn_coll_args *a)
{
	return (struct cn_call){
		.op = a->op,
		.bytes = a->bytes,
		.rank = rank,
		.ranks = w->ranks,
		.root = a->root,
		.blocks = a->blocks,
		.nodes = w->nodes,
		.local = w->ranks / w->nodes,
		.element = reduction_element(w->ordered),
	};
}

static void fill_all(struct engine_fixture *w, const struct cn_coll_args *a)
{
	const struct cn_call c = call_of(w, 0, a);
	const uint64_t sent = cn_call_send_bytes(&c);

	if (w->reduced.number == w->number && w->reduced.bytes == a->bytes &&
	    w->reduced.sent == sent) {
		return;
	}
	w->reduced.number = w->number;
	w->reduced.bytes = a->bytes;
	w->reduced.sent = sent;
	for (uint32_t r = 0; r < w->ranks; r++) {
		free(w->reduced.send[r]);
		w->reduced.send[r] = block(sent, 0);
		fill(w, r, a, w->reduced.send[r], sent);
	}
}

static void check_reduction(struct engine_fixture *w, uint32_t rank, int k,
			    const struct cn_coll_args *a, uint64_t n)
{
	uint8_t *want = block(n, 0);

	fill_all(w, a);
	if (n > 0) {
		reduction_expect(a->op, w->ordered, rank, w->ranks, a->bytes, w->reduced.send,
				 want);
	}
	if (memcmp(w->rank[rank].op[k].got, want, n) != 0) {
		fail_msg("%s by %s of %llu bytes, %u ranks on %u nodes: rank %u has a wrong result",
			 cn_op_name(a->op), a->algorithm, (unsigned long long)a->bytes, w->ranks,
			 w->nodes, rank);
	}
	free(want);
}

int engine_post(struct engine_fixture *w, uint32_t rank, int k, const struct cn_coll_args *like,
		struct cn_err *err)
{
	struct engine_rank *r = &w->rank[rank];
	const struct cn_call c = call_of(w, rank, like);
	uint64_t n = cn_call_send_bytes(&c);
	struct cn_coll_args a = *like;

	free(r->send[k]);
	free(r->recv[k]);
	r->send[k] = block(n, 0);
	r->recv[k] = block(cn_call_recv_bytes(&c), 0xcc);
	fill(w, rank, like, r->send[k], n);
	a.send = n > 0 ? r->send[k] : NULL;
	a.recv = like->op == CN_OP_BARRIER ? NULL : r->recv[k];
	engine_begin_wait(w, &r->op[k]);
	r->op[k].send = r->send[k];
	r->op[k].sent = n;
	r->op[k].recv = r->recv[k];
	r->op[k].received = cn_call_recv_bytes(&c);
	if (cn_op_reduces(like->op)) {
		free(r->scratch[k]);
		r->op[k].scratched = cn_call_scratch_bytes(&c);
		r->op[k].scratch = r->scratch[k] = block(r->op[k].scratched, 0xcc);
		r->op[k].reducer.combine = combine;
		a.scratch = r->scratch[k];
		a.reducer = &r->op[k].reducer;
		a.ordered = w->ordered;
		a.element = reduction_element(w->ordered);
	}
	return cn_coll_post(r->member, w->now, &a, &r->op[k].done, err);
}

void engine_check(struct engine_fixture *w, uint32_t rank, int k, const struct cn_coll_args *a)
{
	const struct engine_rank *r = &w->rank[rank];
	const struct cn_call c = call_of(w, rank, a);
	uint64_t n = cn_call_recv_bytes(&c);

	if (r->op[k].status != COLLNET_OK) {
		fail_msg("rank %u: %s", rank, r->op[k].text);
	}
	if (cn_op_reduces(a->op)) {
		check_reduction(w, rank, k, a, n);
		assert_int_equal(r->op[k].got[n], 0xcc);
		return;
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

void engine_collective(struct engine_fixture *w, const struct cn_coll_args *a, cn_time within)
{
	cn_time limit = w->now + within;
	bool checked[RANKS] = { false };
	uint32_t left = w->ranks;
	struct cn_err err = { 0 };

	w->number++;
	for (uint32_t r = 0; r < w->ranks; r++) {
		if (engine_post(w, r, 0, a, &err) != COLLNET_OK) {
			fail_msg("%s", err.text);
		}
	}
	while (left > 0) {
		bool more = engine_step(w, limit);

		for (uint32_t r = 0; r < w->ranks; r++) {
			if (w->rank[r].op[0].calls > 0 && !checked[r]) {
				checked[r] = true;
				left--;
				engine_check(w, r, 0, a);
			}
		}
		if (!more && left > 0) {
			fail_msg("%s of %llu bytes, %u ranks on %u nodes: %u ranks wait",
				 a->algorithm, (unsigned long long)a->bytes, w->ranks, w->nodes,
				 left);
		}
	}
}

void engine_set_numbers(struct engine_fixture *w, uint32_t calls)
{
	for (uint32_t i = 0; i < w->nodes; i++) {
		for (uint32_t p = 0; p < w->engines[i]->places; p++) {
			struct cn_team *t = w->engines[i]->teams[p];

			if (t == NULL) {
				continue;
			}
			t->nstarted = calls;
			for (uint32_t k = 0; k < t->layout.nnodes; k++) {
				t->nodes[k].unexpected.started = calls;
				t->nodes[k].unexpected.notified = calls;
			}
			for (struct cn_member *m = t->members; m != NULL; m = m->next) {
				m->posted = m->done_ops = calls;
			}
		}
	}
}

const char *const engine_exchanges[] = { "shuffle", "pairwise", "linear" };

static const enum cn_permutation perms[] = {
	CN_PERM_SHIFT,
	CN_PERM_XOR,
	CN_PERM_EDGE_COLOUR,
};

struct cn_coll_args engine_alltoall(uint64_t bytes)
{
	return (struct cn_coll_args){
		.op = CN_OP_ALLTOALL,
		.algorithm = "shuffle",
		.bytes = bytes,
		.window = COLLNET_WINDOW_AUTO,
		.deadline = CN_NEVER,
	};
}

void engine_every_algorithm(struct engine_fixture *w, const uint64_t *sizes, int nsizes,
			    cn_time within)
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
				struct cn_coll_args a = engine_alltoall(sizes[s]);

				a.op = row[k].op;
				a.algorithm = row[k].name;
				a.permutation = paired ? perms[g] : CN_PERM_AUTO;
				a.contention_aware = (g + s) % 2;
				a.root = a.op >= CN_OP_BCAST ? (uint32_t)(k + (size_t)s) % w->ranks
							     : 0;
				if (a.permutation == CN_PERM_XOR && (w->nodes & (w->nodes - 1))) {
					continue;
				}
				engine_collective(w, &a, within);
			}
		}
	}
}

const uint64_t engine_sizes[] = { 0, 1, 777, 3 * PAYLOAD + 1 };

void engine_assert_all_fail(struct engine_fixture *w, uint32_t gone, int status, const char *text,
			    cn_time most)
{
	cn_time from = w->now;

	engine_wait_all(w, 0, most);
	for (uint32_t r = 0; r < w->ranks; r++) {
		const struct engine_waiter *x = &w->rank[r].op[0];

		if (w->rank[r].node == gone || w->rank[r].member == NULL) {
			continue;
		}
		if (x->status != status || (text != NULL && strstr(x->text, text) == NULL)) {
			fail_msg("rank %u: status %d, \"%s\"", r, x->status, x->text);
		}
		assert_true(x->at <= from + most);
	}
}
