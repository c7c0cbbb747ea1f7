/* SPDX-License-Identifier: BSD-2-Clause */
/* Teams, plans and what must hold of every schedule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched_fixture_impl.h"

static void *need(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size);

	assert_non_null(p);
	return p;
}

static void shuffle(uint32_t *v, uint32_t n, uint64_t *seed)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = cn_below(seed, i), x = v[i - 1];

		v[i - 1] = v[j];
		v[j] = x;
	}
}

/* A random tree of 1 .. nnodes switches, with a spare host that the team does not use. */
static void random_tree(struct w_team *t, uint32_t nnodes, uint64_t *seed)
{
	char text[4096];
	size_t at = 0;
	uint32_t nswitches = 1 + cn_below(seed, nnodes), hosts[W_NODES];
	struct cn_err err = { 0 };

	for (uint32_t i = 0; i < nswitches; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "switch s%u\n", i);
		if (i > 0) {
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "link s%u s%u rate none\n", i, cn_below(seed, i));
		}
	}
	for (uint32_t i = 0; i <= nnodes; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "host h%u\nlink h%u s%u rate none\n", i, i,
				       cn_below(seed, nswitches));
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
			here = 1 + cn_below(seed, 3);
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

uint8_t w_pattern(uint32_t from, uint32_t to, uint64_t i)
{
	return (uint8_t)cn_mix64(((uint64_t)from << 40) ^ ((uint64_t)to << 24) ^ i);
}

static void index_node(struct sched_fixture *w, uint32_t me)
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
		if (a->kind == CN_ACT_COPY || a->kind == CN_ACT_REDUCE) {
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

static uint64_t scratch_bytes(const struct w_team *t, const struct cn_plan *p, uint32_t rank)
{
	const uint32_t node = t->node_of[rank];
	const struct cn_call c = {
		.op = p->op,
		.bytes = p->bytes,
		.rank = rank,
		.ranks = t->layout.nranks,
		.root = p->root,
		.nodes = t->layout.nnodes,
		.local = t->first[node + 1] - t->first[node],
		.element = p->element,
	};

	return cn_call_scratch_bytes(&c);
}

struct sched_fixture *w_new(const struct w_team *t, const struct cn_plan *p)
{
	struct sched_fixture *w = need(1, sizeof(*w));
	uint32_t nranks = t->layout.nranks;

	w->team = t;
	w->plan = *p;
	w->send_bytes = p->op == CN_OP_BARRIER ? 0 : p->bytes;
	w->recv_bytes = w->send_bytes;
	if (p->op == CN_OP_ALLTOALL || p->op == CN_OP_SCATTER || p->op == CN_OP_REDUCE_SCATTER) {
		w->send_bytes *= nranks;
	}
	if (p->op == CN_OP_ALLTOALL || p->op == CN_OP_ALLGATHER || p->op == CN_OP_GATHER) {
		w->recv_bytes *= nranks;
	}
	for (uint32_t r = 0; r < nranks; r++) {
		w->send[r] = need(w->send_bytes, 1);
		w->recv[r] = need(w->recv_bytes, 1);
		w->writes[r] = need(w->recv_bytes, 1);
		w->scratch_bytes[r] = scratch_bytes(t, p, r);
		w->scratch[r] = need(w->scratch_bytes[r], 1);
		memset(w->scratch[r], POISON, w->scratch_bytes[r]);
		memset(w->recv[r], POISON, w->recv_bytes);
		for (uint64_t i = 0; i < w->send_bytes; i++) {
			/* Maps x -> a x + b of which a is odd can be told apart (reduction.h). */
			w->send[r][i] = w_pattern(r, (uint32_t)(i / p->bytes), i % p->bytes) |
					(p->ordered && i % 2 == 0);
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

void w_free(struct sched_fixture *w)
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
		free(w->scratch[r]);
	}
	free(w);
}

const struct cn_sched *w_sched(const struct sched_fixture *w, uint32_t node)
{
	return &w->nodes[node].sched;
}

/* ---- what can be seen without running ----------------------------------------------------- */

static void check_span(const struct sched_fixture *w, const struct cn_span *s, uint64_t len,
		       uint32_t node)
{
	if (s->buffer == CN_BUF_NONE) {
		assert_int_equal(len, 0); /* a barrier, or a synchronisation */
		return;
	}
	assert_true(s->rank < w->team->layout.nranks);
	assert_int_equal(w->team->node_of[s->rank], node);
	assert_true(s->offset + len <= (s->buffer == CN_BUF_SEND   ? w->send_bytes
					: s->buffer == CN_BUF_RECV ? w->recv_bytes
								   : w->scratch_bytes[s->rank]));
}

static void same_span(const struct cn_span *a, const struct cn_span *b)
{
	assert_int_equal(a->buffer, b->buffer);
	assert_int_equal(a->rank, b->rank);
	assert_int_equal(a->offset, b->offset);
}

static void check_node(const struct sched_fixture *w, uint32_t me, bool phases)
{
	const struct cn_sched *s = &w->nodes[me].sched;
	uint32_t *to = need(s->phases, sizeof(*to)), *from = need(s->phases, sizeof(*from));

	for (uint32_t i = 0; i < s->n; i++) {
		const struct cn_action *a = &s->actions[i];

		if (a->kind == CN_ACT_WAIT) {
			assert_int_equal(s->order, CN_ORDER_IN_TURN);
			assert_int_equal(a->dep, CN_DEP_COMPLETE);
			assert_true(a->dep_on < i);
			assert_true(s->actions[a->dep_on].kind == CN_ACT_RECV ||
				    s->actions[a->dep_on].kind == CN_ACT_COPY ||
				    cn_op_reduces(w->plan.op));
			continue;
		}
		check_span(w, &a->src, a->len, a->kind == CN_ACT_RECV ? a->peer : me);
		check_span(w, &a->dst, a->len, a->kind == CN_ACT_SEND ? a->peer : me);
		if (a->kind == CN_ACT_REDUCE) {
			check_span(w, &a->right, a->len, me);
			assert_int_equal(a->src.rank, a->dst.rank);
			assert_int_equal(a->right.rank, a->dst.rank);
			assert_true(a->after <= i && a->len > 0);
		}
		if (a->kind == CN_ACT_COPY || a->kind == CN_ACT_REDUCE) {
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
			/* What is waited for is something that comes, or is made here. */
			assert_true(s->actions[a->dep_on].kind == CN_ACT_RECV ||
				    s->actions[a->dep_on].kind == CN_ACT_COPY ||
				    cn_op_reduces(w->plan.op));
		}
		if (a->dep == CN_DEP_STREAM) {
			bool right = a->kind == CN_ACT_REDUCE &&
				     a->right.offset == s->actions[a->dep_on].dst.offset &&
				     a->right.buffer == s->actions[a->dep_on].dst.buffer;

			same_span(right ? &a->right : &a->src, &s->actions[a->dep_on].dst);
			assert_int_equal(a->len, s->actions[a->dep_on].len);
		}
	}
	free(to);
	free(from);
}

void w_check(const struct sched_fixture *w, bool phases)
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
