/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker: data. All actions that fill a receive buffer are in the schedule of the buffer's own
 * node, so one node's schedule suffices to check that each byte arrives once. The operation
 * determines the contents of every position, so a byte forwarded from a receive buffer is correct
 * if it belongs there and has arrived. No data needs to be followed from node to node.
 *
 * A byte has arrived for an action if the action depends on the receive of the byte, or on a later
 * receive from the same node; or, for sends in turn, if an earlier send or CN_ACT_WAIT does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/plan/check_parts.h"

/* What belongs at a place of a receive buffer: `run` bytes from there are one block's. */
struct origin {
	uint32_t rank;
	uint64_t offset, run;
};

static struct origin expected_at(const struct cn_check *c, uint32_t rank, uint64_t offset)
{
	uint64_t bytes = c->plan.bytes, block = offset / bytes, at = offset % bytes;

	switch (c->plan.op) {
	case CN_OP_ALLTOALL:
		return (struct origin){ (uint32_t)block, rank * bytes + at, bytes - at };
	case CN_OP_ALLGATHER:
	case CN_OP_GATHER:
		return (struct origin){ (uint32_t)block, at, bytes - at };
	case CN_OP_SCATTER:
		return (struct origin){ c->plan.root, rank * bytes + at, bytes - at };
	default:
		break;
	}
	return (struct origin){ c->plan.root, at, bytes - at };
}

/* How an action is called: "h3 -> h9 in phase 2", "a copy on h9". */
static const char *action_text(const struct cn_check *c, uint32_t node, const struct cn_action *a,
			       char *text, size_t cap)
{
	char pair[CN_CHECK_PAIR];

	if (a->kind == CN_ACT_COPY) {
		snprintf(text, cap, "a copy on %s", cn_check_name(c, node, pair));
	} else {
		bool in = a->kind == CN_ACT_RECV;

		snprintf(text, cap, "%s in phase %u",
			 cn_check_pair(c, in ? a->peer : node, in ? node : a->peer, pair),
			 a->phase);
	}
	return text;
}

/* What a byte of a receive buffer is called: "the block of rank 3 for rank 9". */
static const char *place_text(const struct cn_check *c, uint32_t rank, uint64_t offset, char *text,
			      size_t cap)
{
	if (cn_op_is_from_root(c->plan.op)) {
		snprintf(text, cap, "byte %llu for rank %u", (unsigned long long)offset, rank);
	} else {
		snprintf(text, cap, "the block of rank %u for rank %u",
			 (uint32_t)(offset / c->plan.bytes), rank);
	}
	return text;
}

/* ---- every byte once ---------------------------------------------------------------------- */

static bool fills(const struct cn_action *a)
{
	return (a->kind == CN_ACT_RECV || a->kind == CN_ACT_COPY) && a->len > 0;
}

static int by_offset(const void *x, const void *y)
{
	const struct cn_check_fragment *a = x, *b = y;

	if (a->offset != b->offset) {
		return a->offset < b->offset ? -1 : 1;
	}
	return a->action < b->action ? -1 : a->action > b->action;
}

static int grow(void **p, uint32_t *cap, uint32_t n, size_t size, struct cn_err *err)
{
	void *more;

	if (n < *cap) {
		return COLLNET_OK;
	}
	more = realloc(*p, (size_t)(n + 1) * size);
	if (more == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to check %u actions", n);
	}
	*p = more;
	*cap = n + 1;
	return COLLNET_OK;
}

static int grow_all(struct cn_check *c, const struct cn_sched *s, uint32_t nranks,
		    uint32_t nfragments, uint32_t nrecv, struct cn_err *err)
{
	uint32_t cap = c->nfragments_cap;
	int rc = grow((void **)&c->unsorted, &cap, nfragments, sizeof(*c->unsorted), err);

	if (rc == COLLNET_OK) {
		rc = grow((void **)&c->pieces, &c->nfragments_cap, nfragments, sizeof(*c->pieces),
			  err);
	}
	if (rc == COLLNET_OK) {
		rc = grow((void **)&c->ready, &c->nready_cap, s->n, sizeof(*c->ready), err);
	}
	if (rc == COLLNET_OK) {
		rc = grow((void **)&c->ordinal, &c->nordinal_cap, nrecv, sizeof(*c->ordinal), err);
	}
	if (rc == COLLNET_OK) {
		rc = grow((void **)&c->start, &c->nstart_cap, nranks + 1, sizeof(*c->start), err);
	}
	return rc;
}

/* The pieces of the node's receive buffers: by rank, then by offset. */
static int collect(struct cn_check *c, uint32_t node, const struct cn_sched *s, struct cn_err *err)
{
	uint32_t nranks = c->l->first[node + 1] - c->l->first[node], nfragments = 0, k = 0;
	int rc;

	for (uint32_t i = 0; i < s->n; i++) {
		nfragments += fills(&s->actions[i]);
	}
	rc = grow_all(c, s, nranks, nfragments, c->nodes[node].nrecv, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	memset(c->start, 0, (nranks + 1) * sizeof(*c->start));
	for (uint32_t i = 0; i < s->n; i++) {
		const struct cn_action *a = &s->actions[i];

		if (fills(a)) {
			uint32_t local = c->local[a->dst.rank];

			c->unsorted[k++] = (struct cn_check_fragment){ a->dst.offset, i, local };
			c->start[local + 1]++;
		}
	}
	for (uint32_t r = 0; r < nranks; r++) {
		c->start[r + 1] += c->start[r];
	}
	for (uint32_t i = 0; i < nfragments; i++) {
		c->pieces[c->start[c->unsorted[i].local]++] = c->unsorted[i];
	}
	memmove(c->start + 1, c->start, nranks * sizeof(*c->start));
	c->start[0] = 0;
	for (uint32_t r = 0; r < nranks; r++) {
		struct cn_check_fragment *p = c->pieces + c->start[r];
		uint32_t n = c->start[r + 1] - c->start[r];
		bool sorted = true;

		for (uint32_t i = 1; i < n && sorted; i++) {
			sorted = p[i - 1].offset <= p[i].offset;
		}
		if (!sorted) {
			qsort(p, n, sizeof(*p), by_offset);
		}
	}
	return COLLNET_OK;
}

static void missing(struct cn_check *c, uint32_t node, uint32_t rank, uint64_t from, uint64_t to)
{
	uint64_t bytes = c->plan.bytes;
	char name[CN_CHECK_NAME];

	cn_check_name(c, node, name);
	if (from % bytes != 0 || to - from < bytes) {
		cn_fail(&c->wrong_data, COLLNET_EINVAL,
			"rank %u on %s never gets bytes %llu to %llu of its receive buffer", rank,
			name, (unsigned long long)from, (unsigned long long)to - 1);
	} else if (cn_op_is_from_root(c->plan.op)) {
		cn_fail(&c->wrong_data, COLLNET_EINVAL, "rank %u on %s never gets its data", rank,
			name);
	} else {
		cn_fail(&c->wrong_data, COLLNET_EINVAL,
			"rank %u on %s never gets the block of rank %u", rank, name,
			(uint32_t)(from / bytes));
	}
}

static void twice(struct cn_check *c, uint32_t node, uint32_t rank, uint64_t offset,
		  const struct cn_action *a, const struct cn_action *b)
{
	char first[CN_CHECK_PAIR + 24], second[CN_CHECK_PAIR + 24], place[64];

	cn_fail(&c->wrong_data, COLLNET_EINVAL, "%s arrives twice: by %s and by %s",
		place_text(c, rank, offset, place, sizeof(place)),
		action_text(c, node, a, first, sizeof(first)),
		action_text(c, node, b, second, sizeof(second)));
}

/* Every byte of the rank's receive buffer once. False: the message is in c->wrong_data. */
static bool covered(struct cn_check *c, uint32_t node, uint32_t rank, const struct cn_sched *s)
{
	uint32_t local = c->local[rank];
	uint64_t at = 0, size = cn_check_recv_size(c, rank);

	for (uint32_t i = c->start[local]; i < c->start[local + 1]; i++) {
		const struct cn_check_fragment *p = &c->pieces[i];

		if (p->offset < at) { /* so there is one before it */
			twice(c, node, rank, p->offset, &s->actions[c->pieces[i - 1].action],
			      &s->actions[p->action]);
			return false;
		}
		if (p->offset > at) {
			missing(c, node, rank, at, p->offset);
			return false;
		}
		at += s->actions[p->action].len;
	}
	if (at < size) {
		missing(c, node, rank, at, size);
		return false;
	}
	return true;
}

/* ---- the right bytes ---------------------------------------------------------------------- */

static bool right_bytes(struct cn_check *c, uint32_t node, const struct cn_action *a)
{
	uint64_t done = 0;

	while (done < a->len) {
		struct origin to = expected_at(c, a->dst.rank, a->dst.offset + done);
		struct origin from = { a->src.rank, a->src.offset + done, a->len - done };

		if (a->src.buffer == CN_BUF_RECV) {
			from = expected_at(c, a->src.rank, a->src.offset + done);
		}
		if (from.rank != to.rank || from.offset != to.offset) {
			char what[CN_CHECK_PAIR + 24], place[64];

			cn_fail(&c->wrong_data, COLLNET_EINVAL,
				"%s: byte %llu of rank %u's send buffer comes by %s; byte %llu of "
				"rank %u's belongs there",
				place_text(c, a->dst.rank, a->dst.offset + done, place,
					   sizeof(place)),
				(unsigned long long)from.offset, from.rank,
				action_text(c, node, a, what, sizeof(what)),
				(unsigned long long)to.offset, to.rank);
			return false;
		}
		done += from.run < to.run ? from.run : to.run;
	}
	return true;
}

/* ---- what is sent on has arrived ---------------------------------------------------------- */

/* A node's schedule while it is read. */
struct reading {
	struct cn_check *c;
	struct cn_check_node *n;
	const struct cn_sched *s;
	uint32_t node;
};

/* What action i needs to have begun or to be complete, by its dependency. */
static struct cn_check_ready readiness(const struct reading *r, uint32_t i)
{
	const struct cn_action *a = &r->s->actions[i];
	struct cn_check_ready ready = { .recv = CN_CHECK_NONE };

	if (a->dep == CN_DEP_NONE) {
		return ready;
	}
	ready = r->c->ready[a->dep_on];
	ready.done = 0;
	if (r->s->actions[a->dep_on].kind == CN_ACT_RECV || a->dep == CN_DEP_COMPLETE) {
		ready.mode = a->dep & 3u;
	}
	return ready;
}

/* Whether the bytes of an action are those that another one fills. */
static bool follows(const struct cn_action *a, const struct cn_action *by)
{
	return a->src.buffer == CN_BUF_RECV && a->src.rank == by->dst.rank &&
	       a->src.offset == by->dst.offset && a->len == by->len;
}

/* Whether what action w fills is there when action i, which comes later, uses it. */
static bool arrived(const struct reading *r, uint32_t i, uint32_t w)
{
	const struct cn_check *c = r->c;
	const struct cn_action *a = &r->s->actions[i], *by = &r->s->actions[w];
	bool in_turn = a->kind == CN_ACT_SEND && r->n->in_turn;
	const struct cn_check_ready *ready = &c->ready[i];
	uint32_t number, from;

	if (w >= i) {
		return false;
	}
	if (a->dep != CN_DEP_NONE && a->dep_on == w) {
		return true; /* a stream has just those bytes */
	}
	if (by->kind == CN_ACT_COPY) {
		return in_turn && c->ready[w].done;
	}
	number = c->ready[w].recv;
	from = by->peer;
	if (in_turn && c->known[from] >= c->ordinal[number]) {
		return true;
	}
	if (ready->recv == CN_CHECK_NONE || r->n->recv[ready->recv].from != from) {
		return false;
	}
	if (ready->recv == number) {
		return ready->mode == CN_DEP_COMPLETE; /* over a copy */
	}
	return c->ordinal[ready->recv] > c->ordinal[number];
}

/* The first piece of the rank's buffer that ends beyond the offset. */
static uint32_t find_fragment(const struct reading *r, uint32_t local, uint64_t offset)
{
	const struct cn_check *c = r->c;
	uint32_t low = c->start[local], high = c->start[local + 1];

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct cn_check_fragment *p = &c->pieces[mid];

		if (p->offset + r->s->actions[p->action].len <= offset) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	return low;
}

/* Whether all that action i takes from a receive buffer is there in time. */
static bool has_before(const struct reading *r, uint32_t i)
{
	struct cn_check *c = r->c;
	const struct cn_action *a = &r->s->actions[i];
	uint32_t local = c->local[a->src.rank];
	char what[CN_CHECK_PAIR + 24], by[CN_CHECK_PAIR + 24];

	if (a->dep != CN_DEP_NONE && fills(&r->s->actions[a->dep_on]) &&
	    follows(a, &r->s->actions[a->dep_on])) {
		return true;
	}
	for (uint32_t k = find_fragment(r, local, a->src.offset);
	     k < c->start[local + 1] && c->pieces[k].offset < a->src.offset + a->len; k++) {
		uint32_t w = c->pieces[k].action;

		if (!arrived(r, i, w)) {
			cn_fail(&c->wrong_data, COLLNET_EINVAL,
				"%s uses the data of %s without waiting for it",
				action_text(c, r->node, a, what, sizeof(what)),
				action_text(c, r->node, &r->s->actions[w], by, sizeof(by)));
			return false;
		}
	}
	return true;
}

/* ---- the steps of a node ------------------------------------------------------------------ */

void cn_check_waits(struct cn_check *c, uint32_t node, const struct cn_sched *s)
{
	char name[CN_CHECK_NAME];

	if (s->order == CN_ORDER_INTERLEAVED && c->stuck.code == 0) {
		cn_fail(&c->stuck, COLLNET_EINVAL,
			"%s sends frame by frame in turn over nodes, and waits in between: nothing "
			"proves that it proceeds",
			cn_check_name(c, node, name));
	}
}

/* A step that waits for what action i needs, unless earlier steps did. */
static void add_wait(const struct reading *r, uint32_t i)
{
	struct cn_check *c = r->c;
	const struct cn_check_ready *ready = &c->ready[i];
	bool stream = ready->mode == CN_DEP_STREAM;
	uint32_t dep_on = r->s->actions[i].dep_on;
	struct cn_check_recv *recv;

	if (r->s->actions[dep_on].kind == CN_ACT_COPY) {
		c->ready[dep_on].done = 1;
	}
	if (ready->recv == CN_CHECK_NONE) {
		return;
	}
	recv = &r->n->recv[ready->recv];
	cn_check_waits(c, r->node, r->s);
	if (r->n->in_turn) {
		if (c->known[recv->from] >= c->ordinal[ready->recv]) {
			return;
		}
		c->known[recv->from] = c->ordinal[ready->recv];
		recv->before = recv->before || stream;
		recv->after = 1;
	}
	r->n->steps[r->n->nsteps++] = (uint32_t)(stream ? CN_CHECK_STREAM : CN_CHECK_WAIT)
					      << CN_CHECK_SHIFT |
				      ready->recv;
}

/* Numbers of receives, among all of the node and among those of one peer. */
static void number_receives(const struct reading *r)
{
	struct cn_check *c = r->c;
	uint32_t number = 0;

	memset(c->counts, 0, c->l->nnodes * sizeof(*c->counts));
	memset(c->known, 0, c->l->nnodes * sizeof(*c->known));
	for (uint32_t i = 0; i < r->s->n; i++) {
		const struct cn_action *a = &r->s->actions[i];

		if (a->kind == CN_ACT_RECV) {
			c->ready[i] = (struct cn_check_ready){ .recv = number };
			c->ordinal[number++] = ++c->counts[a->peer];
		}
	}
}

static void read_actions(const struct reading *r)
{
	struct cn_check *c = r->c;

	number_receives(r);
	for (uint32_t i = 0; i < r->s->n; i++) {
		const struct cn_action *a = &r->s->actions[i];

		if (a->kind == CN_ACT_RECV) {
			continue;
		}
		c->ready[i] = readiness(r, i);
		if (a->kind != CN_ACT_WAIT && a->len > 0 && a->src.buffer == CN_BUF_RECV &&
		    c->wrong_data.code == 0) {
			has_before(r, i);
		}
		if (a->kind != CN_ACT_COPY && a->dep != CN_DEP_NONE) {
			add_wait(r, i);
		}
		if (a->kind == CN_ACT_SEND) {
			r->n->steps[r->n->nsteps++] = CN_CHECK_SEND;
		}
	}
}

int cn_check_data(struct cn_check *c, uint32_t node, const struct cn_sched *s, struct cn_err *err)
{
	struct reading r = { c, &c->nodes[node], s, node };
	uint32_t nsteps = 0, *less;
	int rc = collect(c, node, s, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	for (uint32_t k = c->l->first[node]; k < c->l->first[node + 1]; k++) {
		if (c->wrong_data.code == 0) {
			covered(c, node, c->l->ranks[k], s);
		}
	}
	for (uint32_t i = 0; i < s->n && c->wrong_data.code == 0; i++) {
		if (fills(&s->actions[i])) {
			right_bytes(c, node, &s->actions[i]);
		}
	}
	for (uint32_t i = 0; i < s->n; i++) {
		const struct cn_action *a = &s->actions[i];

		nsteps += a->kind == CN_ACT_SEND;
		nsteps += a->dep != CN_DEP_NONE && a->kind != CN_ACT_COPY;
	}
	r.n->steps = malloc((nsteps + 1) * sizeof(*r.n->steps));
	if (r.n->steps == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to check %u actions", s->n);
	}
	read_actions(&r);
	less = realloc(r.n->steps, (r.n->nsteps + 1) * sizeof(*less));
	r.n->steps = less != NULL ? less : r.n->steps;
	return COLLNET_OK;
}
