/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker: taking in schedules, and running its parts, which have files of their own
 * (check_parts.h).
 *
 * Of several violations the most telling one is reported: two messages that collide in a phase
 * before lists that do not match, these before wrong data, and order last.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/plan/check_parts.h"

const char *cn_check_name(const struct cn_check *c, uint32_t node, char *text)
{
	if (c->l->tree != NULL) {
		snprintf(text, CN_CHECK_NAME, "%s", cn_tree_node_name(c->l->tree, node));
	} else {
		snprintf(text, CN_CHECK_NAME, "node %u", node);
	}
	return text;
}

const char *cn_check_pair(const struct cn_check *c, uint32_t from, uint32_t to, char *text)
{
	char a[CN_CHECK_NAME], b[CN_CHECK_NAME];

	snprintf(text, CN_CHECK_PAIR, "%s -> %s", cn_check_name(c, from, a),
		 cn_check_name(c, to, b));
	return text;
}

uint32_t cn_check_sender(const struct cn_check *c, uint32_t g)
{
	uint32_t low = 0, n = c->l->nnodes;

	while (n > 1) { /* the last node whose messages begin at g or before */
		uint32_t half = n / 2;

		if (c->base[low + half] <= g) {
			low += half;
			n -= half;
		} else {
			n = half;
		}
	}
	return low;
}

uint32_t cn_check_use_end(const struct cn_check_node *n, uint32_t i, uint64_t *bytes)
{
	uint32_t last = i;

	*bytes = n->sent[i].len;
	for (uint32_t k = i + 1; k < n->nsent && !(n->sent[k].data && n->sent[k].first); k++) {
		if (n->sent[k].data) {
			*bytes += n->sent[k].len;
			last = k;
		}
	}
	return last;
}

static struct cn_call call_of(const struct cn_check *c, uint32_t rank)
{
	const uint32_t node = c->l->node_of[rank];

	return (struct cn_call){
		.op = c->plan.op,
		.bytes = c->plan.bytes,
		.rank = rank,
		.ranks = c->l->nranks,
		.root = c->plan.root,
		.nodes = c->l->nnodes,
		.local = c->l->first[node + 1] - c->l->first[node],
		.element = c->plan.element,
		.blocks = c->plan.blocks != NULL ? c->plan.blocks[0] : (struct cn_blocks){ 0 },
	};
}

uint64_t cn_check_recv_size(const struct cn_check *c, uint32_t rank)
{
	const struct cn_call call = call_of(c, rank);

	return cn_call_recv_bytes(&call);
}

/* ---- making and unmaking ------------------------------------------------------------------ */

int cn_check_new(const struct cn_layout *l, const struct cn_plan *p, struct cn_check **out,
		 struct cn_err *err)
{
	struct cn_check *c;

	if (l->nnodes == 0 || l->nranks < l->nnodes || l->nranks > COLLNET_RANKS_MAX ||
	    (l->tree != NULL && l->tree->nhosts != l->nnodes)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "a team of %u ranks on %u nodes cannot be checked", l->nranks,
			       l->nnodes);
	}
	if (p->op < CN_OP_ALLTOALL || p->op >= CN_OP_KINDS ||
	    (cn_op_is_vector(p->op) && p->op != CN_OP_REDUCE_SCATTERV) ||
	    cn_op_is_vector(p->op) != (p->blocks != NULL) || p->bytes > COLLNET_BLOCK_MAX ||
	    (cn_op_has_root(p->op) && p->root >= l->nranks)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "operation %d of %llu bytes, root %u, cannot be checked", (int)p->op,
			       (unsigned long long)p->bytes, p->root);
	}
	c = calloc(1, sizeof(*c));
	if (c != NULL) {
		c->l = l;
		c->plan = *p;
		c->local = calloc(l->nranks, sizeof(*c->local));
		c->nodes = calloc(l->nnodes, sizeof(*c->nodes));
		c->counts = calloc(l->nnodes, sizeof(*c->counts));
		c->known = calloc(l->nnodes, sizeof(*c->known));
	}
	if (c == NULL || c->local == NULL || c->nodes == NULL || c->counts == NULL ||
	    c->known == NULL) {
		cn_check_free(c);
		return cn_fail(err, COLLNET_ENOMEM, "no memory to check %u nodes", l->nnodes);
	}
	for (uint32_t b = 0; b < l->nnodes; b++) {
		for (uint32_t k = l->first[b]; k < l->first[b + 1]; k++) {
			c->local[l->ranks[k]] = k - l->first[b];
		}
	}
	*out = c;
	return COLLNET_OK;
}

/* What only adding needs. */
static void free_scratch(struct cn_check *c)
{
	free(c->pieces);
	free(c->unsorted);
	free(c->ready);
	free(c->ordinal);
	free(c->start);
	c->pieces = c->unsorted = NULL;
	c->ready = NULL;
	c->ordinal = c->start = NULL;
	c->nfragments_cap = c->nready_cap = c->nordinal_cap = c->nstart_cap = 0;
}

static void free_run(struct cn_check *c)
{
	free(c->base);
	free(c->rbase);
	free(c->match);
	free(c->uses);
	free(c->users);
	c->base = c->rbase = c->match = c->uses = c->users = NULL;
}

static void free_node(struct cn_check_node *n)
{
	free(n->sent);
	free(n->recv);
	free(n->steps);
	free(n->actions);
	memset(n, 0, sizeof(*n));
}

void cn_check_free(struct cn_check *c)
{
	if (c == NULL) {
		return;
	}
	free_scratch(c);
	free_run(c);
	for (uint32_t b = 0; c->nodes != NULL && b < c->l->nnodes; b++) {
		free_node(&c->nodes[b]);
	}
	free(c->nodes);
	free(c->local);
	free(c->counts);
	free(c->known);
	free(c);
}

/* ---- one node's schedule ------------------------------------------------------------------ */

static int bad_action(const struct cn_check *c, uint32_t node, uint32_t i, const char *what,
		      struct cn_err *err)
{
	char name[CN_CHECK_NAME];

	return cn_fail(err, COLLNET_EINVAL, "%s, action %u: %s", cn_check_name(c, node, name), i,
		       what);
}

static const char *buffer_fault(enum cn_buffer buffer, uint64_t size)
{
	static const char *const beyond[] = {
		[CN_BUF_SEND] = "its data reaches beyond the send buffer",
		[CN_BUF_RECV] = "its data reaches beyond the receive buffer",
		[CN_BUF_SCRATCH] = "its data reaches beyond the scratch buffer",
	};
	static const char *const none[] = {
		[CN_BUF_SEND] = "the rank has no send buffer",
		[CN_BUF_RECV] = "the rank has no receive buffer",
		[CN_BUF_SCRATCH] = "the rank has no scratch buffer",
	};

	return size > 0 ? beyond[buffer] : none[buffer];
}

/* NULL: fine. */
static const char *span_fault(const struct cn_check *c, const struct cn_span *s, uint64_t len,
			      uint32_t owner)
{
	struct cn_call call;
	uint64_t size;

	if (s->buffer == CN_BUF_NONE) {
		return len == 0 ? NULL : "it moves bytes, but has no buffer";
	}
	if (s->buffer == CN_BUF_DIGEST) {
		return NULL;
	}
	if (s->rank >= c->l->nranks || c->l->node_of[s->rank] != owner) {
		return "its data belongs to a rank of another node";
	}
	call = call_of(c, s->rank);
	size = s->buffer == CN_BUF_SEND	  ? cn_call_send_bytes(&call)
	       : s->buffer == CN_BUF_RECV ? cn_call_recv_bytes(&call)
					  : cn_call_scratch_bytes(&call);
	if (len > size || s->offset > size - len) {
		return buffer_fault(s->buffer, size);
	}
	return NULL;
}

/* Whether the bytes of an action are those that another one brings. */
static bool same_bytes(const struct cn_action *a, const struct cn_action *by)
{
	return (by->kind == CN_ACT_RECV || by->kind == CN_ACT_COPY || by->kind == CN_ACT_REDUCE) &&
	       (cn_span_same(&a->src, &by->dst) ||
		(a->kind == CN_ACT_REDUCE && cn_span_same(&a->right, &by->dst))) &&
	       a->len == by->len;
}

/* What is wrong with the rest of a REDUCE; NULL: nothing. */
static const char *reduce_fault(const struct cn_check *c, uint32_t node, const struct cn_action *a,
				uint32_t i)
{
	if (a->after > i) {
		return "it depends on an action that is not before it";
	}
	if (a->src.rank != a->dst.rank || a->right.rank != a->dst.rank ||
	    a->right.buffer == CN_BUF_NONE || a->right.buffer == CN_BUF_DIGEST) {
		return "its operands and its result are not of one rank";
	}
	return span_fault(c, &a->right, a->len, node);
}

static bool known_buffer(const struct cn_check *c, enum cn_buffer b)
{
	return b <= CN_BUF_RECV || (b == CN_BUF_SCRATCH && cn_op_reduces(c->plan.op)) ||
	       (b == CN_BUF_DIGEST && cn_op_is_vector(c->plan.op));
}

/* True for a digest that is not a message, or not the same at both ends. */
static bool bad_digest(const struct cn_action *a)
{
	const bool is_message = a->kind == CN_ACT_SEND || a->kind == CN_ACT_RECV;

	return (a->src.buffer == CN_BUF_DIGEST || a->dst.buffer == CN_BUF_DIGEST) &&
	       (!is_message || !cn_span_same(&a->src, &a->dst) || a->len != sizeof(a->src.offset));
}

static const char *action_fault(const struct cn_check *c, uint32_t node, const struct cn_sched *s,
				uint32_t i)
{
	const struct cn_action *a = &s->actions[i];
	const bool reduces = cn_op_reduces(c->plan.op);
	const bool local = a->kind == CN_ACT_COPY || a->kind == CN_ACT_REDUCE;
	const char *fault;

	if (a->kind > (reduces ? CN_ACT_REDUCE : CN_ACT_WAIT) || a->dep > CN_DEP_STREAM ||
	    !known_buffer(c, a->src.buffer) || !known_buffer(c, a->dst.buffer) || bad_digest(a)) {
		return "it is of an unknown kind";
	}
	if (a->dep != CN_DEP_NONE && a->dep_on >= i) {
		return "it depends on an action that is not before it";
	}
	if (a->kind == CN_ACT_WAIT) {
		if (s->order != CN_ORDER_IN_TURN || a->dep != CN_DEP_COMPLETE) {
			return "only sends in turn wait, and for a whole action";
		}
		return NULL;
	}
	if (a->peer >= c->l->nnodes || (a->peer == node) != local) {
		return "its peer is not a node that it can be";
	}
	if (!local && a->phase >= s->phases) {
		return "its phase is beyond the last";
	}
	if ((a->src.buffer == CN_BUF_NONE) != (a->dst.buffer == CN_BUF_NONE) ||
	    a->dst.buffer == CN_BUF_SEND) {
		return "data goes from a buffer to a receive buffer";
	}
	if (a->dep == CN_DEP_STREAM && !same_bytes(a, &s->actions[a->dep_on])) {
		return "it streams the bytes of another action, but has other bytes";
	}
	fault = span_fault(c, &a->src, a->len, a->kind == CN_ACT_RECV ? a->peer : node);
	if (fault == NULL) {
		fault = span_fault(c, &a->dst, a->len, a->kind == CN_ACT_SEND ? a->peer : node);
	}
	if (fault == NULL && a->kind == CN_ACT_REDUCE) {
		fault = reduce_fault(c, node, a, i);
	}
	return fault;
}

static uint64_t hash_places(const struct cn_action *a)
{
	uint64_t h = cn_mix64((uint64_t)a->src.buffer << 32 | a->src.rank);

	if (a->src.buffer == CN_BUF_NONE) {
		return 0;
	}
	h = cn_mix64(h ^ a->src.offset);
	h = cn_mix64(h ^ a->dst.rank);
	return cn_mix64(h ^ a->dst.offset);
}

static bool is_data(const struct cn_check *c, const struct cn_action *a)
{
	return a->src.buffer != CN_BUF_NONE || c->plan.op == CN_OP_BARRIER;
}

/* Data goes by phase, and a synchronisation has the phase of the data before it. */
static void check_phase(struct cn_check *c, uint32_t node, const struct cn_check_sent *before,
			const struct cn_check_sent *m)
{
	char a[CN_CHECK_PAIR], b[CN_CHECK_PAIR];

	if (c->backwards.code == 0 && before != NULL &&
	    (m->data ? m->phase < before->phase : m->phase != before->phase)) {
		cn_fail(&c->backwards, COLLNET_EINVAL,
			"%s of phase %u%s comes after %s of phase %u in the sender's list",
			cn_check_pair(c, node, m->to, a), m->phase,
			m->data ? "" : ", a synchronisation,",
			cn_check_pair(c, node, before->to, b), before->phase);
	}
}

/* The records of a node's messages. */
static void add_node_messages(struct cn_check *c, uint32_t node, const struct cn_sched *s)
{
	struct cn_check_node *n = &c->nodes[node];
	const struct cn_check_sent *before = NULL; /* the data message before */

	for (uint32_t i = 0; i < s->n; i++) {
		const struct cn_action *a = &s->actions[i];

		if (a->kind == CN_ACT_RECV) {
			n->recv[n->nrecv++] = (struct cn_check_recv){ .hash = hash_places(a),
								      .len = a->len,
								      .phase = a->phase,
								      .from = a->peer & 0xfffffff,
								      .data = is_data(c, a) };
		} else if (a->kind == CN_ACT_SEND) {
			struct cn_check_sent *m = &n->sent[n->nsent++];

			*m = (struct cn_check_sent){ .hash = hash_places(a),
						     .len = a->len,
						     .phase = a->phase,
						     .to = a->peer & 0xfffffff,
						     .data = is_data(c, a) };
			if (n->in_turn) {
				check_phase(c, node, before, m);
			}
			if (m->data) {
				m->first = before == NULL || before->to != m->to ||
					   before->phase != m->phase;
				before = m;
			}
		}
	}
}

int cn_check_add(struct cn_check *c, uint32_t node, const struct cn_sched *s, struct cn_err *err)
{
	uint32_t nsent = 0, nrecv = 0;
	struct cn_check_node *n;
	int rc;

	if (node >= c->l->nnodes || c->nodes[node].added || s->order > CN_ORDER_ANY ||
	    s->n > CN_CHECK_INDEX / 2) {
		return cn_fail(err, COLLNET_EINVAL,
			       "node %u's schedule was added before, or cannot be checked", node);
	}
	for (uint32_t i = 0; i < s->n; i++) {
		const char *fault = action_fault(c, node, s, i);

		if (fault != NULL) {
			return bad_action(c, node, i, fault, err);
		}
		nsent += s->actions[i].kind == CN_ACT_SEND;
		nrecv += s->actions[i].kind == CN_ACT_RECV;
	}
	if (c->nsent + nsent >= CN_CHECK_NONE || c->nrecv + nrecv >= CN_CHECK_NONE) {
		return cn_fail(err, COLLNET_ELIMIT, "more than %u messages cannot be checked",
			       CN_CHECK_NONE - 1);
	}
	n = &c->nodes[node];
	n->in_turn = s->order == CN_ORDER_IN_TURN;
	n->sent = malloc((nsent + 1) * sizeof(*n->sent));
	n->recv = malloc((nrecv + 1) * sizeof(*n->recv));
	if (n->sent == NULL || n->recv == NULL) {
		free_node(n);
		return cn_fail(err, COLLNET_ENOMEM, "no memory to check %u messages", nsent);
	}
	add_node_messages(c, node, s);
	rc = cn_op_reduces(c->plan.op) ? cn_check_reduce_steps(c, node, s, err)
				       : cn_check_data(c, node, s, err);
	if (rc != COLLNET_OK) {
		free_node(n);
		return rc;
	}
	n->added = true;
	c->nadded++;
	c->nsent += nsent;
	c->nrecv += nrecv;
	return COLLNET_OK;
}

/* ---- running ------------------------------------------------------------------------------ */

static int number(struct cn_check *c, struct cn_err *err)
{
	uint32_t n = c->l->nnodes;

	free_run(c);
	c->base = malloc((n + 1) * sizeof(*c->base));
	c->rbase = malloc((n + 1) * sizeof(*c->rbase));
	if (c->base == NULL || c->rbase == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to check %u nodes", n);
	}
	c->base[0] = c->rbase[0] = 0;
	for (uint32_t b = 0; b < n; b++) {
		c->base[b + 1] = c->base[b] + c->nodes[b].nsent;
		c->rbase[b + 1] = c->rbase[b] + c->nodes[b].nrecv;
	}
	return COLLNET_OK;
}

/* What can be checked without looking at a message. */
static int refuse(const struct cn_check *c, unsigned guarantees, struct cn_err *err)
{
	for (uint32_t b = 0; c->nadded < c->l->nnodes && b < c->l->nnodes; b++) {
		char name[CN_CHECK_NAME];

		if (!c->nodes[b].added) {
			return cn_fail(err, COLLNET_EINVAL, "the schedule of %s is missing",
				       cn_check_name(c, b, name));
		}
	}
	if (c->l->tree == NULL && guarantees != 0) {
		return cn_fail(err, COLLNET_EINVAL,
			       "the network is unknown, so that no guarantee about its links can "
			       "be checked");
	}
	return COLLNET_OK;
}

static int not_optimal(const struct cn_check_report *r, struct cn_err *err)
{
	return cn_fail(err, COLLNET_EINVAL, "the schedule has %u phases, the lower bound is %llu",
		       r->phases, (unsigned long long)r->bound);
}

int cn_check_run(struct cn_check *c, unsigned guarantees, struct cn_check_report *out,
		 struct cn_err *err)
{
	struct cn_err links = { 0 }, lists = { 0 }, late = { 0 }, unordered = { 0 };
	const struct cn_err *found[7];
	int rc;

	memset(out, 0, sizeof(*out));
	out->busiest = out->bottleneck = CN_TOPO_NONE;
	free_scratch(c);
	rc = refuse(c, guarantees, err);
	if (rc == COLLNET_OK) {
		rc = number(c, err);
	}
	if (rc == COLLNET_OK) {
		rc = cn_check_links(c, guarantees, out, &links, err);
	}
	if (rc == COLLNET_OK) {
		rc = cn_check_match(c, &lists, err);
	}
	if (rc == COLLNET_OK && lists.code == 0 && cn_op_reduces(c->plan.op)) {
		rc = cn_check_reduce(c, &c->wrong_data, err);
	}
	if (rc == COLLNET_OK && lists.code == 0) {
		rc = cn_check_order(c, out, &c->stuck, &late, &unordered, err);
	}
	if (rc != COLLNET_OK) {
		return rc;
	}
	found[0] = &links;
	found[1] = &lists;
	found[2] = &c->wrong_data;
	found[3] = &c->stuck;
	found[4] = guarantees != 0 ? &c->backwards : NULL;
	found[5] = guarantees != 0 ? &late : NULL;
	found[6] = guarantees & CN_GUARANTEE_ORDERED ? &unordered : NULL;
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
		if (found[i] != NULL && found[i]->code != 0) {
			return cn_fail(err, found[i]->code, "%s", found[i]->text);
		}
	}
	if ((guarantees & CN_GUARANTEE_OPTIMAL) && out->phases != out->bound) {
		return not_optimal(out, err);
	}
	return COLLNET_OK;
}
