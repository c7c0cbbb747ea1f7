/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker: order. Every node executes its steps, up to the data of the current phase; a message
 * is "sent" when its sender reaches it. The resulting order is one that the dependencies allow, and
 * nodes that never proceed wait in a cycle.
 *
 * Vector clocks decide happens-before exactly: a node's clock has for every node the number of
 * messages of its list that it is known to have sent. A message carries its sender's clock as a
 * timestamp (a copy, kept only if the receiver waits for that message, and only until then); the
 * receiver's clock becomes the elementwise maximum of both. A message that streams another one has,
 * at its beginning, the timestamp of the other's beginning and, when it is sent, all of the
 * other's.
 *
 * A sender that does not send in turn has no clock: its messages are ordered only if they go to one
 * node. Clocks are numbers of 31 bits in rows of a multiple of 16, so that the compiler compares
 * several at once; they are allocated only if the order of another node's messages matters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/plan/check_parts.h"
#include "util/vector.h"

#define ROW_STEP 16u
/* Memory for clocks that messages carry: beyond it the checker gives up. */
#define TIMESTAMPS_MAX ((uint64_t)1 << 30)

/* A use of a link: the sender's messages of it end with number `end`. */
struct user {
	uint32_t from, to, end, phase;
};

/* The last uses of a directed link, one a channel; the oldest at `head` when all are taken. */
struct channels {
	struct user *users;
	uint32_t n, cap, head;
};

/* Clocks of a message that is waited for: when it began, when it was sent. */
struct carried {
	int32_t *row[2];
	uint32_t next; /* in the list of free ones */
};

struct run {
	struct cn_check *c;
	struct cn_check_report *out;
	struct cn_err *stuck, *late, *unordered, *err;
	int rc;
	uint32_t phase;	   /* data of later ones is not sent yet */
	uint32_t *step;	   /* [nnodes] next one */
	uint32_t *sent;	   /* [nnodes] messages */
	uint32_t *blocked; /* [nnodes] message of all that it waits for; CN_CHECK_NONE */
	uint32_t *woken;   /* [nnodes] stack */
	uint32_t nwoken;
	uint32_t width;	   /* of a row */
	int32_t *clock;	   /* [nnodes][width]; NULL: no check needs the order */
	int32_t *arrived;  /* the same, barrier: a node's clock when all messages have arrived */
	uint32_t *carries; /* [nsent] index of its clocks */
	struct carried *carried;
	uint32_t ncarried, carried_cap, free_timestamps;
	uint64_t timestamp_bytes;
	uint32_t *path;
	struct channels *links; /* [2 tree->n]; NULL without a tree */
	struct user *users;	/* of all links */
};

/* ---- clocks ------------------------------------------------------------------------------- */

static int32_t *row_of(const struct run *r, int32_t *rows, uint32_t node)
{
	return rows + (size_t)node * r->width;
}

static void join(int32_t *restrict into, const int32_t *restrict from, uint32_t width)
{
	for (uint32_t i = 0; i < width; i += ROW_STEP) {
		for (uint32_t k = 0; k < ROW_STEP; k++) {
			into[i + k] = into[i + k] > from[i + k] ? into[i + k] : from[i + k];
		}
	}
}

/* Another set of clocks for a message; its index, or CN_CHECK_NONE and r->rc. */
static uint32_t new_timestamp(struct run *r)
{
	uint32_t k = r->free_timestamps;
	struct carried *more;

	if (k != CN_CHECK_NONE) {
		r->free_timestamps = r->carried[k].next;
		return k;
	}
	more = cn_vector_grow(r->carried, r->ncarried, &r->carried_cap, sizeof(*more));
	if (more == NULL) {
		r->rc = cn_fail(r->err, COLLNET_ENOMEM, "no memory to follow the order");
		return CN_CHECK_NONE;
	}
	r->carried = more;
	r->carried[r->ncarried] = (struct carried){ { NULL, NULL }, CN_CHECK_NONE };
	return r->ncarried++;
}

/* Message g carries its sender's clock. which: 0 as it begins, 1 as it is sent. */
static void carry(struct run *r, uint32_t g, uint32_t from, int which)
{
	size_t bytes = r->width * sizeof(*r->clock);
	uint32_t k = r->carries[g];

	if (k == CN_CHECK_NONE) {
		k = r->carries[g] = new_timestamp(r);
		if (k == CN_CHECK_NONE) {
			return;
		}
	}
	if (r->carried[k].row[which] == NULL) {
		r->timestamp_bytes += bytes;
		if (r->timestamp_bytes > TIMESTAMPS_MAX) {
			r->rc = cn_fail(r->err, COLLNET_ELIMIT,
					"too many messages in flight to check the order");
			return;
		}
		r->carried[k].row[which] = malloc(bytes);
		if (r->carried[k].row[which] == NULL) {
			r->rc = cn_fail(r->err, COLLNET_ENOMEM, "no memory to follow the order");
			return;
		}
	}
	memcpy(r->carried[k].row[which], row_of(r, r->clock, from), bytes);
}

/* The node takes over what message g carries; with the second part g needs its clocks no more. */
static void merge_timestamp(struct run *r, uint32_t node, uint32_t g, int which)
{
	uint32_t k = r->carries[g];

	if (k == CN_CHECK_NONE) {
		return; /* of a sender without a clock */
	}
	join(row_of(r, r->clock, node), r->carried[k].row[which], r->width);
	if (which == 1) {
		r->carried[k].next = r->free_timestamps;
		r->free_timestamps = k;
		r->carries[g] = CN_CHECK_NONE;
	}
}

/* ---- users of links ----------------------------------------------------------------------- */

/* Whether `from`, about to send to `to`, knows that the use is over. */
static bool knows(const struct run *r, uint32_t from, uint32_t to, const struct user *u)
{
	if (u->from == from) {
		return r->c->nodes[from].in_turn || u->to == to;
	}
	return r->clock != NULL && row_of(r, r->clock, from)[u->from] > (int32_t)u->end;
}

static void no_order(struct run *r, const struct user *a, const struct user *b, uint32_t link)
{
	char one[CN_CHECK_PAIR], two[CN_CHECK_PAIR], name[2 * CN_CHECK_NAME];

	r->out->unordered++;
	if (r->unordered->code == 0) {
		cn_fail(r->unordered, COLLNET_EINVAL,
			"%s of phase %u and %s of phase %u both use link %s, and nothing keeps "
			"the second back until the first is sent",
			cn_check_pair(r->c, a->from, a->to, one), a->phase,
			cn_check_pair(r->c, b->from, b->to, two), b->phase,
			cn_tree_link_name(r->c->l->tree, link, name, sizeof(name)));
	}
}

/*
 * The use takes a channel of the link whose last user it knows to be done: the oldest user's, if
 * it can be that. Uses of one channel are in order then, so no more than all channels are in use
 * at any time. (After the first failure, which decides, only the oldest is looked at.)
 */
static void use_link(struct run *r, uint32_t link, const struct user *u)
{
	struct channels *l = &r->links[link];
	uint32_t k;

	if (l->n < l->cap) {
		l->users[l->n++] = *u;
		return;
	}
	for (k = 0; k < (r->unordered->code == 0 ? l->cap : 1); k++) {
		if (knows(r, u->from, u->to, &l->users[(l->head + k) % l->cap])) {
			break;
		}
	}
	if (k > 0 && k < l->cap && r->unordered->code == 0) {
		l->users[(l->head + k) % l->cap] = l->users[l->head];
	} else if (k > 0) {
		no_order(r, &l->users[l->head], u, link);
	}
	l->users[l->head] = *u;
	l->head = (l->head + 1) % l->cap;
}

static void use_links(struct run *r, uint32_t from, uint32_t i)
{
	const struct cn_check_node *n = &r->c->nodes[from];
	const struct cn_check_sent *m = &n->sent[i];
	uint64_t bytes;
	struct user u = { from, m->to, cn_check_use_end(n, i, &bytes), m->phase };
	uint32_t links = cn_tree_path(r->c->l->tree, from, m->to, r->path);

	for (uint32_t k = 0; k < links; k++) {
		use_link(r, r->path[k], &u);
	}
}

/* ---- steps -------------------------------------------------------------------------------- */

static bool was_sent(const struct run *r, uint32_t from, uint32_t g)
{
	return r->sent[from] > g - r->c->base[from];
}

/* The node's next message; `stream`: the receive that it follows byte by byte, or CN_CHECK_NONE. */
static void send_next(struct run *r, uint32_t node, uint32_t stream)
{
	struct cn_check *c = r->c;
	struct cn_check_node *n = &c->nodes[node];
	uint32_t i = r->sent[node], g = c->base[node] + i;
	const struct cn_check_sent *m = &n->sent[i];
	bool clocked = r->clock != NULL && n->in_turn;

	if (m->phase < r->phase && r->late->code == 0) {
		char pair[CN_CHECK_PAIR];

		cn_fail(r->late, COLLNET_EINVAL, "%s of phase %u cannot be sent before phase %u",
			cn_check_pair(c, node, m->to, pair), m->phase, r->phase);
	}
	if (clocked && stream != CN_CHECK_NONE) {
		merge_timestamp(r, node, c->match[c->rbase[node] + stream], 0);
	}
	if (m->data && m->first && r->links != NULL) {
		use_links(r, node, i);
	}
	if (clocked) {
		if (m->before) {
			carry(r, g, node, 0);
		}
		if (stream != CN_CHECK_NONE) {
			merge_timestamp(r, node, c->match[c->rbase[node] + stream], 1);
		}
		row_of(r, r->clock, node)[node] = (int32_t)i + 1;
		if (m->after) {
			carry(r, g, node, 1);
		}
		if (r->arrived != NULL) {
			join(row_of(r, r->arrived, m->to), row_of(r, r->clock, node), r->width);
		}
	}
	r->sent[node]++;
	if (r->blocked[m->to] == g) {
		r->blocked[m->to] = CN_CHECK_NONE;
		r->woken[r->nwoken++] = m->to;
	}
}

/* The phase of the node's next message of data, which the current phase may hold back. */
static bool is_blocked(const struct run *r, uint32_t node)
{
	const struct cn_check_node *n = &r->c->nodes[node];
	const struct cn_check_sent *m = &n->sent[r->sent[node]];

	return m->data && m->phase > r->phase;
}

/* Executes the node's steps as far as possible. */
static void advance_node(struct run *r, uint32_t node)
{
	struct cn_check *c = r->c;
	const struct cn_check_node *n = &c->nodes[node];

	while (r->step[node] < n->nsteps && r->rc == COLLNET_OK) {
		uint32_t step = n->steps[r->step[node]], recv = step & CN_CHECK_INDEX, g;
		enum cn_check_step kind = (enum cn_check_step)(step >> CN_CHECK_SHIFT);

		if (kind == CN_CHECK_SEND) {
			if (is_blocked(r, node)) {
				return;
			}
			send_next(r, node, CN_CHECK_NONE);
			r->step[node]++;
			continue;
		}
		g = c->match[c->rbase[node] + recv];
		if (!was_sent(r, n->recv[recv].from, g)) {
			r->blocked[node] = g;
			return;
		}
		if (kind == CN_CHECK_WAIT) {
			if (r->clock != NULL && n->in_turn) {
				merge_timestamp(r, node, g, 1);
			}
			r->step[node]++;
			continue;
		}
		if (is_blocked(r, node)) {
			return;
		}
		send_next(r, node, recv);
		r->step[node] += 2;
	}
}

static void start(struct run *r, uint32_t node)
{
	if (r->blocked[node] == CN_CHECK_NONE) {
		advance_node(r, node);
	}
	while (r->nwoken > 0) {
		advance_node(r, r->woken[--r->nwoken]);
	}
}

/* ---- who waits for whom ------------------------------------------------------------------- */

/* What a node that stands still would send next: "h3 -> h9 of phase 2". */
static const char *next_text(const struct run *r, uint32_t node, char *text, size_t cap)
{
	const struct cn_check_node *n = &r->c->nodes[node];
	char pair[CN_CHECK_PAIR];

	if (r->sent[node] < n->nsent) {
		const struct cn_check_sent *m = &n->sent[r->sent[node]];

		snprintf(text, cap, "%s of phase %u", cn_check_pair(r->c, node, m->to, pair),
			 m->phase);
	} else {
		snprintf(text, cap, "the end of %s", cn_check_name(r->c, node, pair));
	}
	return text;
}

static const char *message_text(const struct run *r, uint32_t g, char *text, size_t cap)
{
	uint32_t from = cn_check_sender(r->c, g);
	const struct cn_check_sent *m = &r->c->nodes[from].sent[g - r->c->base[from]];
	char pair[CN_CHECK_PAIR];

	snprintf(text, cap, "%s of phase %u", cn_check_pair(r->c, from, m->to, pair), m->phase);
	return text;
}

/* A node of the current phase has not sent its data: it waits for something that comes later. */
static void too_late(struct run *r, uint32_t node)
{
	char next[CN_CHECK_PAIR + 24], waits[CN_CHECK_PAIR + 24], last[CN_CHECK_PAIR + 24];
	uint32_t x = node, g = r->blocked[node];

	for (uint32_t k = 0; k < r->c->l->nnodes && r->blocked[x] != CN_CHECK_NONE; k++) {
		g = r->blocked[x];
		x = cn_check_sender(r->c, g);
	}
	if (r->blocked[x] != CN_CHECK_NONE) {
		return; /* a circle: it will be found at the end */
	}
	next_text(r, node, next, sizeof(next));
	message_text(r, r->blocked[node], waits, sizeof(waits));
	next_text(r, x, last, sizeof(last));
	if (r->late->code == 0 && strcmp(waits, last) == 0) {
		cn_fail(r->late, COLLNET_EINVAL, "%s waits for %s, a later phase", next, waits);
	} else if (r->late->code == 0) {
		cn_fail(r->late, COLLNET_EINVAL, "%s waits for %s, which comes after %s", next,
			waits, last);
	}
}

static void find_late(struct run *r, uint32_t first, uint32_t end)
{
	const struct cn_check *c = r->c;

	for (uint32_t i = first; i < end && r->late->code == 0; i++) {
		uint32_t node = cn_check_sender(c, c->uses[i]), k = r->sent[node];

		if (k < c->nodes[node].nsent && r->blocked[node] != CN_CHECK_NONE &&
		    c->nodes[node].sent[k].phase <= r->phase) {
			too_late(r, node);
		}
	}
}

/* Deadlock: a cycle of nodes that wait for each other. */
static void find_circle(struct run *r)
{
	const struct cn_check *c = r->c;
	char a[CN_CHECK_PAIR + 24], b[CN_CHECK_PAIR + 24], x[CN_CHECK_PAIR + 24];
	uint32_t node = 0, other;

	while (node < c->l->nnodes && r->blocked[node] == CN_CHECK_NONE) {
		node++;
	}
	if (node == c->l->nnodes || r->stuck->code != 0) {
		return;
	}
	for (uint32_t k = 0; k < c->l->nnodes; k++) { /* now it is in the circle for certain */
		node = cn_check_sender(c, r->blocked[node]);
	}
	other = cn_check_sender(c, r->blocked[node]);
	cn_fail(r->stuck, COLLNET_EINVAL,
		"%s waits for %s, whose sender waits for %s before: neither can proceed",
		next_text(r, node, a, sizeof(a)), message_text(r, r->blocked[node], b, sizeof(b)),
		message_text(r, r->blocked[other], x, sizeof(x)));
}

/* Leaving the barrier happens after every node's arrival at it. */
static void check_barrier(struct run *r)
{
	const struct cn_check *c = r->c;

	for (uint32_t b = 0; b < c->l->nnodes && r->stuck->code == 0; b++) {
		for (uint32_t a = 0; a < c->l->nnodes; a++) {
			char me[CN_CHECK_NAME], other[CN_CHECK_NAME];

			if (a != b && row_of(r, r->arrived, b)[a] == 0) {
				cn_fail(r->stuck, COLLNET_EINVAL,
					"%s can leave the barrier before %s has entered it",
					cn_check_name(c, b, me), cn_check_name(c, a, other));
				break;
			}
		}
	}
}

/* ---- all of it ---------------------------------------------------------------------------- */

static void run_phases(struct run *r)
{
	const struct cn_check *c = r->c;
	uint32_t end;

	for (uint32_t b = 0; b < c->l->nnodes; b++) {
		start(r, b); /* what begins with a synchronisation */
	}
	for (uint32_t first = 0; first < c->nuses && r->rc == COLLNET_OK; first = end) {
		for (end = first; end < c->nuses; end++) {
			uint32_t g = c->uses[end], from = cn_check_sender(c, g);
			uint32_t phase = c->nodes[from].sent[g - c->base[from]].phase;

			if (end == first) {
				r->phase = phase;
			} else if (phase != r->phase) {
				break;
			}
			start(r, from);
		}
		find_late(r, first, end);
	}
	r->phase = CN_CHECK_NONE;
	for (uint32_t b = 0; b < c->l->nnodes && r->rc == COLLNET_OK; b++) {
		start(r, b);
	}
}

/* Room for the last users of every link: a channel each, but no more than it has users. */
static bool make_links(struct run *r)
{
	const struct cn_tree *t = r->c->l->tree;
	uint64_t total = 0;

	r->links = calloc(2 * (size_t)t->n, sizeof(*r->links));
	r->path = calloc(2 * (size_t)t->height + 1, sizeof(*r->path));
	if (r->links == NULL || r->path == NULL) {
		return false;
	}
	for (uint32_t link = 2; link < 2 * t->n; link++) {
		uint32_t channels = cn_tree_channels(t, link), users = r->c->users[link];

		r->links[link].cap = channels < users ? channels : users;
		total += r->links[link].cap;
	}
	r->users = calloc(total + 1, sizeof(*r->users));
	if (r->users == NULL) {
		return false;
	}
	total = 0;
	for (uint32_t link = 2; link < 2 * t->n; link++) {
		r->links[link].users = r->users + total;
		total += r->links[link].cap;
	}
	return true;
}

static bool make_clocks(struct run *r)
{
	struct cn_check *c = r->c;
	bool barrier = c->plan.op == CN_OP_BARRIER;
	size_t cells;

	if (!barrier && !c->shared) {
		return true;
	}
	r->width = (c->l->nnodes + ROW_STEP - 1) / ROW_STEP * ROW_STEP;
	cells = (size_t)c->l->nnodes * r->width;
	r->clock = calloc(cells, sizeof(*r->clock));
	r->carries = malloc((c->nsent + 1) * sizeof(*r->carries));
	if (barrier) {
		r->arrived = calloc(cells, sizeof(*r->arrived));
	}
	if (r->clock == NULL || r->carries == NULL || (barrier && r->arrived == NULL)) {
		return false;
	}
	for (uint64_t i = 0; i < c->nsent; i++) {
		r->carries[i] = CN_CHECK_NONE;
	}
	return true;
}

static bool make_run(struct run *r)
{
	uint32_t n = r->c->l->nnodes;

	r->step = calloc(n, sizeof(*r->step));
	r->sent = calloc(n, sizeof(*r->sent));
	r->blocked = malloc(n * sizeof(*r->blocked));
	r->woken = malloc(n * sizeof(*r->woken));
	if (r->step == NULL || r->sent == NULL || r->blocked == NULL || r->woken == NULL) {
		return false;
	}
	for (uint32_t b = 0; b < n; b++) {
		r->blocked[b] = CN_CHECK_NONE;
	}
	return make_clocks(r) && (r->c->l->tree == NULL || make_links(r));
}

static void free_run(struct run *r)
{
	free(r->step);
	free(r->sent);
	free(r->blocked);
	free(r->woken);
	free(r->clock);
	free(r->arrived);
	free(r->carries);
	for (uint32_t k = 0; k < r->ncarried; k++) {
		free(r->carried[k].row[0]);
		free(r->carried[k].row[1]);
	}
	free(r->carried);
	free(r->path);
	free(r->links);
	free(r->users);
}

int cn_check_order(struct cn_check *c, struct cn_check_report *out, struct cn_err *stuck,
		   struct cn_err *late, struct cn_err *unordered, struct cn_err *err)
{
	struct run r = { .c = c,
			 .out = out,
			 .stuck = stuck,
			 .late = late,
			 .unordered = unordered,
			 .err = err,
			 .free_timestamps = CN_CHECK_NONE };

	if (make_run(&r)) {
		run_phases(&r);
		if (r.rc == COLLNET_OK) {
			find_circle(&r);
		}
		if (r.rc == COLLNET_OK && c->plan.op == CN_OP_BARRIER) {
			check_barrier(&r);
		}
	} else {
		r.rc = cn_fail(err, COLLNET_ENOMEM, "no memory to follow the order");
	}
	free_run(&r);
	return r.rc;
}
