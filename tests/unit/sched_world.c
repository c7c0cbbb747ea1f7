/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched_world.h"

#define POISON 0xee

struct w_frame {
	uint8_t data[W_FRAME];
	uint32_t len;
	bool last; /* of its message */
};

/* The stream of bytes from one node to another. */
struct w_stream {
	uint32_t *sends, *recvs; /* actions at either side, in list order */
	uint32_t nsends, nrecvs;
	uint32_t sent, received; /* messages */
	struct w_frame *frames;	 /* on the wire */
	uint32_t head, tail, cap;
};

struct w_state {
	uint64_t done; /* bytes */
	bool complete;
};

struct w_node {
	struct cn_sched sched;
	struct w_state *state;
	uint32_t ncopies, *copies;
	uint32_t ndests, dests[W_NODES]; /* by first appearance */
	uint32_t turn;			 /* of dests, or the place in the list */
};

struct world {
	const struct w_team *team;
	struct cn_plan plan;
	struct w_node nodes[W_NODES];
	struct w_stream streams[W_NODES][W_NODES]; /* from, to */
	uint8_t *send[W_RANKS], *recv[W_RANKS], *writes[W_RANKS];
	uint64_t send_bytes, recv_bytes; /* of a buffer */
};

static void *need(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size);

	assert_non_null(p);
	return p;
}

static uint32_t below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)(cn_random(seed) % n);
}

static void shuffle(uint32_t *v, uint32_t n, uint64_t *seed)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = below(seed, i), x = v[i - 1];

		v[i - 1] = v[j];
		v[j] = x;
	}
}

/* A random tree of 1 .. nnodes switches, with a spare host that the team does not use. */
static void random_tree(struct w_team *t, uint32_t nnodes, uint64_t *seed)
{
	char text[4096];
	size_t at = 0;
	uint32_t nswitches = 1 + below(seed, nnodes), hosts[W_NODES];
	struct cn_err err = { 0 };

	for (uint32_t i = 0; i < nswitches; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "switch s%u\n", i);
		if (i > 0) {
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "link s%u s%u rate none\n", i, below(seed, i));
		}
	}
	for (uint32_t i = 0; i <= nnodes; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "host h%u\nlink h%u s%u rate none\n", i, i,
				       below(seed, nswitches));
	}
	if (cn_topo_parse(text, at, "random", &t->topo, &err)) {
		fail_msg("%s", err.text);
	}
	memcpy(hosts, t->topo->hosts, nnodes * sizeof(*hosts));
	shuffle(hosts, nnodes, seed);
	if (cn_tree_make(t->topo, hosts, nnodes, CN_TOPO_NONE, &t->tree, &err)) {
		fail_msg("%s", err.text);
	}
	t->layout.tree = t->tree;
}

void w_team_done(struct w_team *t)
{
	cn_tree_free(t->tree);
	cn_topo_free(t->topo);
}

void w_team_init(struct w_team *t, uint32_t nnodes, enum w_placement placement, uint64_t *seed)
{
	uint32_t n = 0;

	memset(t, 0, sizeof(*t));
	for (uint32_t b = 0; b < nnodes; b++) {
		uint32_t here = placement == W_ONE ? 1 : placement == W_TWO ? 2 : 3;

		if (placement == W_UNEVEN) {
			here = 1 + below(seed, 3);
		}
		for (uint32_t i = 0; i < here; i++, n++) {
			t->node_of[n] = placement == W_ROUND ? n % nnodes : b;
		}
	}
	if (placement == W_UNEVEN) {
		shuffle(t->node_of, n, seed);
	}
	for (uint32_t b = 0, k = 0; b < nnodes; b++) {
		for (uint32_t r = 0; r < n; r++) {
			if (t->node_of[r] == b) {
				t->ranks[k++] = r;
			}
		}
		t->first[b + 1] = k;
		t->logical[b] = b;
	}
	shuffle(t->logical, nnodes, seed);
	t->layout = (struct cn_layout){ .nranks = n,
					.nnodes = nnodes,
					.node_of = t->node_of,
					.first = t->first,
					.ranks = t->ranks,
					.logical = t->logical };
	random_tree(t, nnodes, seed);
}

/* ---- making and unmaking ------------------------------------------------------------------ */

static uint8_t pattern(uint32_t from, uint32_t to, uint64_t i)
{
	return (uint8_t)cn_mix64(((uint64_t)from << 40) ^ ((uint64_t)to << 24) ^ i);
}

static void index_node(struct world *w, uint32_t me)
{
	struct w_node *n = &w->nodes[me];

	n->state = need(n->sched.n, sizeof(*n->state));
	n->copies = need(n->sched.n, sizeof(*n->copies));
	for (uint32_t i = 0; i < n->sched.n; i++) {
		const struct cn_action *a = &n->sched.actions[i];
		struct w_stream *s;

		assert_true(a->peer < w->team->layout.nnodes);
		if (a->kind == CN_ACT_WAIT) {
			continue;
		}
		if (a->kind == CN_ACT_COPY) {
			n->copies[n->ncopies++] = i;
			continue;
		}
		assert_int_not_equal(a->peer, me);
		s = a->kind == CN_ACT_SEND ? &w->streams[me][a->peer] : &w->streams[a->peer][me];
		if (a->kind == CN_ACT_SEND) {
			if (!s->sends) {
				s->sends = need(n->sched.n, sizeof(*s->sends));
				n->dests[n->ndests++] = a->peer;
			}
			s->sends[s->nsends++] = i;
		} else {
			if (!s->recvs) {
				s->recvs = need(n->sched.n, sizeof(*s->recvs));
			}
			s->recvs[s->nrecvs++] = i;
		}
	}
}

struct world *w_new(const struct w_team *t, const struct cn_plan *p)
{
	struct world *w = need(1, sizeof(*w));
	uint32_t nranks = t->layout.nranks;

	w->team = t;
	w->plan = *p;
	w->send_bytes = p->op == CN_OP_BARRIER ? 0 : p->bytes;
	w->recv_bytes = w->send_bytes;
	if (p->op == CN_OP_ALLTOALL || p->op == CN_OP_SCATTER) {
		w->send_bytes *= nranks;
	}
	if (p->op == CN_OP_ALLTOALL || p->op == CN_OP_ALLGATHER || p->op == CN_OP_GATHER) {
		w->recv_bytes *= nranks;
	}
	for (uint32_t r = 0; r < nranks; r++) {
		w->send[r] = need(w->send_bytes, 1);
		w->recv[r] = need(w->recv_bytes, 1);
		w->writes[r] = need(w->recv_bytes, 1);
		memset(w->recv[r], POISON, w->recv_bytes);
		for (uint64_t i = 0; i < w->send_bytes; i++) {
			w->send[r][i] = pattern(r, (uint32_t)(i / p->bytes), i % p->bytes);
		}
	}
	for (uint32_t b = 0; b < t->layout.nnodes; b++) {
		struct cn_err err = { 0 };

		if (cn_sched_plan(&t->layout, p, b, &w->nodes[b].sched, &err)) {
			fail_msg("%s", err.text);
		}
		index_node(w, b);
	}
	return w;
}

void w_free(struct world *w)
{
	for (uint32_t b = 0; b < W_NODES; b++) {
		cn_sched_reset(&w->nodes[b].sched);
		free(w->nodes[b].state);
		free(w->nodes[b].copies);
		for (uint32_t c = 0; c < W_NODES; c++) {
			free(w->streams[b][c].sends);
			free(w->streams[b][c].recvs);
			free(w->streams[b][c].frames);
		}
	}
	for (uint32_t r = 0; r < W_RANKS; r++) {
		free(w->send[r]);
		free(w->recv[r]);
		free(w->writes[r]);
	}
	free(w);
}

const struct cn_sched *w_sched(const struct world *w, uint32_t node)
{
	return &w->nodes[node].sched;
}

/* ---- what can be seen without running ----------------------------------------------------- */

static void check_span(const struct world *w, const struct cn_span *s, uint64_t len, uint32_t node)
{
	if (s->buffer == CN_BUF_NONE) {
		assert_int_equal(len, 0); /* a barrier, or a synchronisation */
		return;
	}
	assert_true(s->rank < w->team->layout.nranks);
	assert_int_equal(w->team->node_of[s->rank], node);
	assert_true(s->offset + len <= (s->buffer == CN_BUF_SEND ? w->send_bytes : w->recv_bytes));
}

static void same_span(const struct cn_span *a, const struct cn_span *b)
{
	assert_int_equal(a->buffer, b->buffer);
	assert_int_equal(a->rank, b->rank);
	assert_int_equal(a->offset, b->offset);
}

static void check_node(const struct world *w, uint32_t me, bool phases)
{
	const struct cn_sched *s = &w->nodes[me].sched;
	uint32_t *to = need(s->phases, sizeof(*to)), *from = need(s->phases, sizeof(*from));

	for (uint32_t i = 0; i < s->n; i++) {
		const struct cn_action *a = &s->actions[i];

		if (a->kind == CN_ACT_WAIT) {
			assert_int_equal(s->order, CN_ORDER_IN_TURN);
			assert_int_equal(a->dep, CN_DEP_COMPLETE);
			assert_true(a->dep_on < i);
			assert_int_equal(s->actions[a->dep_on].kind, CN_ACT_RECV);
			continue;
		}
		check_span(w, &a->src, a->len, a->kind == CN_ACT_RECV ? a->peer : me);
		check_span(w, &a->dst, a->len, a->kind == CN_ACT_SEND ? a->peer : me);
		if (a->kind == CN_ACT_COPY) {
			assert_int_equal(a->peer, me);
		} else {
			uint32_t *met = a->kind == CN_ACT_SEND ? to : from;

			assert_true(a->phase < s->phases);
			if (a->src.buffer == CN_BUF_NONE && w->plan.op != CN_OP_BARRIER) {
				continue; /* a synchronisation meets whom it must */
			}
			if (phases) {
				assert_true(met[a->phase] == 0 || met[a->phase] == a->peer + 1);
			}
			met[a->phase] = a->peer + 1;
		}
		if (a->dep != CN_DEP_NONE) {
			assert_true(a->dep_on < i);
			/* What is waited for is something that comes. */
			assert_int_equal(s->actions[a->dep_on].kind, CN_ACT_RECV);
		}
		if (a->dep == CN_DEP_STREAM) {
			same_span(&a->src, &s->actions[a->dep_on].dst);
			assert_int_equal(a->len, s->actions[a->dep_on].len);
		}
	}
	free(to);
	free(from);
}

void w_check(const struct world *w, bool phases)
{
	uint32_t n = w->team->layout.nnodes;

	for (uint32_t a = 0; a < n; a++) {
		check_node(w, a, phases);
		for (uint32_t b = 0; b < n; b++) {
			const struct w_stream *s = &w->streams[a][b];

			assert_int_equal(s->nsends, s->nrecvs);
			for (uint32_t k = 0; k < s->nsends; k++) {
				const struct cn_action *x = &w->nodes[a].sched.actions[s->sends[k]];
				const struct cn_action *y = &w->nodes[b].sched.actions[s->recvs[k]];

				same_span(&x->src, &y->src);
				same_span(&x->dst, &y->dst);
				assert_int_equal(x->len, y->len);
				assert_int_equal(x->phase, y->phase);
			}
		}
	}
}

/* ---- running ------------------------------------------------------------------------------ */

static const uint8_t *source(const struct world *w, const struct cn_action *a, uint64_t at)
{
	const uint8_t *base = a->src.buffer == CN_BUF_SEND ? w->send[a->src.rank]
							   : w->recv[a->src.rank];

	return base + a->src.offset + at;
}

static void write_bytes(struct world *w, const struct cn_action *a, uint64_t at,
			const uint8_t *data, uint64_t len)
{
	uint64_t offset = a->dst.offset + at;

	if (len == 0) {
		return;
	}
	assert_int_equal(a->dst.buffer, CN_BUF_RECV);
	memcpy(w->recv[a->dst.rank] + offset, data, len);
	for (uint64_t i = 0; i < len; i++) {
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
static bool send_frame(struct world *w, uint32_t me, uint32_t to)
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

static bool more_to(const struct world *w, uint32_t me, uint32_t to)
{
	const struct w_stream *s = &w->streams[me][to];

	return s->sent < s->nsends;
}

/* The next frame by the schedule's order. False: none can go now. */
static bool node_send(struct world *w, uint32_t me)
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

static bool node_receive(struct world *w, uint32_t me, uint32_t from)
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

static bool node_copy(struct world *w, uint32_t me)
{
	struct w_node *n = &w->nodes[me];
	uint32_t kept = 0;
	bool moved = false;

	for (uint32_t k = 0; k < n->ncopies; k++) {
		uint32_t i = n->copies[k], len = frame_len(n, i);
		const struct cn_action *a = &n->sched.actions[i];

		if (may_go(n, i, len)) {
			write_bytes(w, a, n->state[i].done, source(w, a, n->state[i].done), len);
			n->state[i].done += len;
			n->state[i].complete = n->state[i].done == a->len;
			moved = true;
		}
		if (!n->state[i].complete) {
			n->copies[kept++] = i;
		}
	}
	n->ncopies = kept;
	return moved;
}

static bool node_any_receive(struct world *w, uint32_t me, uint64_t *seed)
{
	uint32_t n = w->team->layout.nnodes, start = below(seed, n);

	for (uint32_t k = 0; k < n; k++) {
		if (node_receive(w, me, (start + k) % n)) {
			return true;
		}
	}
	return false;
}

/* One thing that somebody can do. */
static bool one_turn(struct world *w, uint64_t *seed, uint32_t eager, uint32_t frozen)
{
	uint32_t n = w->team->layout.nnodes, start = below(seed, n);
	bool send_first = below(seed, 100) < eager;

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

void w_run(struct world *w, uint64_t *seed, uint32_t eager, uint32_t frozen)
{
	while (one_turn(w, seed, eager, frozen)) {
	}
}

bool w_complete(const struct world *w, uint32_t node)
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
static uint8_t expected(const struct world *w, uint32_t r, uint64_t i, uint8_t *times)
{
	uint32_t root = w->plan.root, block = (uint32_t)(i / w->plan.bytes);
	uint64_t at = i % w->plan.bytes;

	*times = 1;
	switch (w->plan.op) {
	case CN_OP_ALLTOALL:
		return pattern(block, r, at);
	case CN_OP_BCAST:
		return pattern(root, 0, at);
	case CN_OP_SCATTER:
		return pattern(root, r, at);
	case CN_OP_GATHER:
		*times = r == root;
		return r == root ? pattern(block, 0, at) : POISON;
	case CN_OP_ALLGATHER:
	case CN_OP_BARRIER:
		break;
	}
	return pattern(block, 0, at);
}

void w_check_data(const struct world *w)
{
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
