/* SPDX-License-Identifier: BSD-2-Clause */
/* The interpreter: carries out the schedules of all nodes on real buffers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reduction.h"
#include "sched_fixture_impl.h"

static uint8_t *place(const struct sched_fixture *w, const struct cn_span *s, uint64_t at)
{
	uint8_t *base = s->buffer == CN_BUF_SEND   ? w->send[s->rank]
			: s->buffer == CN_BUF_RECV ? w->recv[s->rank]
						   : w->scratch[s->rank];

	return base + s->offset + at;
}

static const uint8_t *source(const struct sched_fixture *w, const struct cn_action *a, uint64_t at)
{
	return place(w, &a->src, at);
}

static void write_bytes(struct sched_fixture *w, const struct cn_action *a, uint64_t at,
			const uint8_t *data, uint64_t len)
{
	uint64_t offset = a->dst.offset + at;
	/* A sum to which more is added is not written anew. */
	const bool adds = a->kind == CN_ACT_REDUCE && a->dst.buffer == a->src.buffer &&
			  a->dst.offset == a->src.offset;

	if (len == 0) {
		return;
	}
	assert_true(a->dst.buffer == CN_BUF_RECV ||
		    (a->dst.buffer == CN_BUF_SCRATCH && cn_op_reduces(w->plan.op)));
	if (a->kind == CN_ACT_REDUCE) {
		reduction_combine(w->plan.ordered, data, place(w, &a->right, at),
				  place(w, &a->dst, at), len);
	} else {
		memcpy(place(w, &a->dst, at), data, len);
	}
	for (uint64_t i = 0; a->dst.buffer == CN_BUF_RECV && !adds && i < len; i++) {
		w->writes[a->dst.rank][offset + i]++;
	}
}

/* May `len` bytes of the action, behind those done, go by its dependency? */
static bool may_go(const struct w_node *n, uint32_t i, uint64_t len)
{
	const struct cn_action *a = &n->sched.actions[i];

	switch (a->dep) {
	case CN_DEP_NONE:
		return true;
	case CN_DEP_COMPLETE:
		return n->state[a->dep_on].complete;
	case CN_DEP_STREAM:
		return n->state[a->dep_on].complete ||
		       (a->len > 0 && n->state[a->dep_on].done >= n->state[i].done + len);
	}
	return false;
}

static uint32_t frame_len(const struct w_node *n, uint32_t i)
{
	uint64_t left = n->sched.actions[i].len - n->state[i].done;

	return left < W_FRAME ? (uint32_t)left : W_FRAME;
}

/* One frame of the next message to `to`, if it may go. */
static bool send_frame(struct sched_fixture *w, uint32_t me, uint32_t to)
{
	struct w_node *n = &w->nodes[me];
	struct w_stream *s = &w->streams[me][to];
	struct w_frame *f;
	uint32_t i = s->sends[s->sent], len = frame_len(n, i);

	if (!may_go(n, i, len)) {
		return false;
	}
	if (s->tail == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 16;
		s->frames = realloc(s->frames, s->cap * sizeof(*s->frames));
		assert_non_null(s->frames);
	}
	f = &s->frames[s->tail++];
	f->len = len;
	if (len) {
		memcpy(f->data, source(w, &n->sched.actions[i], n->state[i].done), len);
	}
	n->state[i].done += len;
	f->last = n->state[i].done == n->sched.actions[i].len;
	if (f->last) {
		n->state[i].complete = true;
		s->sent++;
	}
	return true;
}

static bool more_to(const struct sched_fixture *w, uint32_t me, uint32_t to)
{
	const struct w_stream *s = &w->streams[me][to];

	return s->sent < s->nsends;
}

/* The next frame by the schedule's order. False: none can go now. */
static bool node_send(struct sched_fixture *w, uint32_t me)
{
	struct w_node *n = &w->nodes[me];

	switch (n->sched.order) {
	case CN_ORDER_IN_TURN:
		while (n->turn < n->sched.n && (n->sched.actions[n->turn].kind != CN_ACT_SEND ||
						n->state[n->turn].complete)) {
			if (n->sched.actions[n->turn].kind == CN_ACT_WAIT) {
				if (!may_go(n, n->turn, 0)) {
					return false;
				}
				n->state[n->turn].complete = true;
			}
			n->turn++;
		}
		return n->turn < n->sched.n && send_frame(w, me, n->sched.actions[n->turn].peer);
	case CN_ORDER_INTERLEAVED:
		for (uint32_t k = 0; k < n->ndests; k++) {
			uint32_t to = n->dests[n->turn % n->ndests];

			if (more_to(w, me, to)) {
				if (!send_frame(w, me, to)) {
					return false;
				}
				n->turn++;
				return true;
			}
			n->turn++;
		}
		return false;
	case CN_ORDER_ANY:
		for (uint32_t i = 0; i < n->sched.n; i++) {
			const struct cn_action *a = &n->sched.actions[i];

			if (a->kind == CN_ACT_SEND && !n->state[i].complete &&
			    w->streams[me][a->peer].sends[w->streams[me][a->peer].sent] == i &&
			    send_frame(w, me, a->peer)) {
				return true;
			}
		}
		return false;
	}
	return false;
}

static bool node_receive(struct sched_fixture *w, uint32_t me, uint32_t from)
{
	struct w_stream *s = &w->streams[from][me];
	struct w_node *n = &w->nodes[me];
	struct w_frame *f;
	uint32_t i;

	if (s->head == s->tail) {
		return false;
	}
	f = &s->frames[s->head++];
	assert_true(s->received < s->nrecvs);
	i = s->recvs[s->received];
	write_bytes(w, &n->sched.actions[i], n->state[i].done, f->data, f->len);
	n->state[i].done += f->len;
	if (f->last) {
		assert_int_equal(n->state[i].done, n->sched.actions[i].len);
		n->state[i].complete = true;
		s->received++;
	}
	return true;
}

static bool node_copy(struct sched_fixture *w, uint32_t me)
{
	struct w_node *n = &w->nodes[me];
	bool busy[W_RANKS] = { false }; /* ranks with a REDUCE that is not complete */
	uint32_t kept = 0;
	bool moved = false;

	for (uint32_t k = 0; k < n->ncopies; k++) {
		uint32_t i = n->copies[k], len = frame_len(n, i);
		const struct cn_action *a = &n->sched.actions[i];

		bool reduce = a->kind == CN_ACT_REDUCE;

		if (reduce &&
		    (busy[a->dst.rank] || (a->after != i && !n->state[a->after].complete))) {
			n->copies[kept++] = i;
			busy[a->dst.rank] = true;
			continue;
		}
		if (may_go(n, i, len)) {
			write_bytes(w, a, n->state[i].done, source(w, a, n->state[i].done), len);
			n->state[i].done += len;
			n->state[i].complete = n->state[i].done == a->len;
			moved = true;
		}
		if (!n->state[i].complete) {
			n->copies[kept++] = i;
			busy[a->dst.rank] |= reduce;
		}
	}
	n->ncopies = kept;
	return moved;
}

static bool node_any_receive(struct sched_fixture *w, uint32_t me, uint64_t *seed)
{
	uint32_t n = w->team->layout.nnodes, start = cn_below(seed, n);

	for (uint32_t k = 0; k < n; k++) {
		if (node_receive(w, me, (start + k) % n)) {
			return true;
		}
	}
	return false;
}

/* One thing that somebody can do. */
static bool one_turn(struct sched_fixture *w, uint64_t *seed, uint32_t eager, uint32_t frozen)
{
	uint32_t n = w->team->layout.nnodes, start = cn_below(seed, n);
	bool send_first = cn_below(seed, 100) < eager;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t k = 0; k < n; k++) {
			uint32_t me = (start + k) % n;
			bool sending = send_first == (pass == 0);

			if (me == frozen) {
				continue;
			}
			if (sending ? node_send(w, me)
				    : node_any_receive(w, me, seed) || node_copy(w, me)) {
				return true;
			}
		}
	}
	return false;
}

void w_run(struct sched_fixture *w, uint64_t *seed, uint32_t eager, uint32_t frozen)
{
	while (one_turn(w, seed, eager, frozen)) {
	}
}

bool w_complete(const struct sched_fixture *w, uint32_t node)
{
	const struct w_node *n = &w->nodes[node];

	for (uint32_t i = 0; i < n->sched.n; i++) {
		if (!n->state[i].complete) {
			return false;
		}
	}
	return true;
}

/* The byte that rank r's receive buffer must hold at i; *times: how often it must be written. */
static uint8_t expected(const struct sched_fixture *w, uint32_t r, uint64_t i, uint8_t *times)
{
	uint32_t root = w->plan.root, block = (uint32_t)(i / w->plan.bytes);
	uint64_t at = i % w->plan.bytes;

	*times = 1;
	switch (w->plan.op) {
	case CN_OP_ALLTOALL:
		return w_pattern(block, r, at);
	case CN_OP_BCAST:
		return w_pattern(root, 0, at);
	case CN_OP_SCATTER:
		return w_pattern(root, r, at);
	case CN_OP_GATHER:
		*times = r == root;
		return r == root ? w_pattern(block, 0, at) : POISON;
	case CN_OP_ALLGATHER:
	default:
		break;
	}
	return w_pattern(block, 0, at);
}

static void check_reduction(const struct sched_fixture *w, uint32_t rank)
{
	const struct cn_plan *p = &w->plan;
	const bool has = p->op == CN_OP_REDUCE ? rank == p->root
					       : p->op != CN_OP_EXSCAN || rank > 0;
	uint8_t *want = malloc(w->recv_bytes + 1);

	assert_non_null(want);
	if (has) {
		reduction_expect(p->op, p->ordered, rank, w->team->layout.nranks, p->bytes, w->send,
				 want);
	}
	for (uint64_t i = 0; i < w->recv_bytes; i++) {
		if (w->recv[rank][i] != (has ? want[i] : POISON) || w->writes[rank][i] != has) {
			fail_msg("byte %llu of rank %u's result is wrong", (unsigned long long)i,
				 rank);
		}
	}
	free(want);
}

void w_check_data(const struct sched_fixture *w)
{
	for (uint32_t r = 0; cn_op_reduces(w->plan.op) && r < w->team->layout.nranks; r++) {
		check_reduction(w, r);
	}
	if (cn_op_reduces(w->plan.op)) {
		return;
	}
	for (uint32_t r = 0; r < w->team->layout.nranks; r++) {
		for (uint64_t i = 0; i < w->recv_bytes; i++) {
			uint8_t times, byte = expected(w, r, i, &times);

			if (w->recv[r][i] != byte || w->writes[r][i] != times) {
				fail_msg("byte %llu of rank %u's receive buffer: %s",
					 (unsigned long long)i, r,
					 w->writes[r][i] == times ? "wrong" : "not written once");
			}
		}
	}
}
