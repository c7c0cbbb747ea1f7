/* SPDX-License-Identifier: BSD-2-Clause */
/* Control messages about teams: sent to the nodes that know a team, and dispatched. */
#include <stdio.h>
#include <string.h>

#include "coll/control.h"
#include "coll/engine_state.h"
#include "coll/op.h"
#include "coll/split.h"

/* ---- sending -------------------------------------------------------------------------- */

/* True if the k-th candidate was sent JOIN. */
static bool was_sent_join(const struct cn_team *t, uint32_t k)
{
	return cn_peer_alive(cn_wireup_candidate(t, k)) &&
	       t->wireup.advertised[t->wireup.candidates[k]].version != 0;
}

/* Through the node's own transport, to all nodes that were sent JOIN. False: some are lost. */
static bool notify_nodes(struct cn_team *t, const uint8_t *m, const struct cn_cursor *c)
{
	bool all = true;

	for (uint32_t k = 0; k < t->wireup.ncandidates && !c->bad; k++) {
		if (was_sent_join(t, k)) {
			all &= cn_pending_send(&t->engine->own.pending, cn_wireup_candidate(t, k),
					       m, (size_t)(c->at - m));
		}
	}
	return all;
}

/* Through the node's own transport, to all nodes of the team being split: some may already have the
 * new team, and a record of this node's. */
static void notify_parent(struct cn_team *t, const uint8_t *m, const struct cn_cursor *c)
{
	const struct cn_team *parent = cn_team_by_id(t->engine, t->parent);

	for (uint32_t k = 0; parent != NULL && k < parent->layout.nnodes && !c->bad; k++) {
		const struct cn_peer *p = parent->nodes[k].peer;
		struct cn_engine_peer *of = p != NULL ? cn_engine_peer_of(p) : NULL;

		if (of != NULL && cn_peer_alive(of->peer)) { /* lost: it times out */
			(void)cn_pending_send(&t->engine->own.pending, of->peer, m,
					      (size_t)(c->at - m));
		}
	}
}

/* Through the team's transport, after all its data. */
static void notify_team(struct cn_team *t, const uint8_t *m, const struct cn_cursor *c)
{
	bool all = true;

	for (uint32_t k = 0; k < t->layout.nnodes && !c->bad; k++) {
		if (t->nodes[k].peer != NULL) {
			cn_transport_activate(t->transport);
			all &= cn_pending_send(&t->transport->pending, t->nodes[k].peer, m,
					       (size_t)(c->at - m));
		}
	}
	if (!all) {
		cn_transport_fail_team(t->transport);
	}
}

/* Sends END for a stale record of the peer: the team is gone. */
static void send_end(struct cn_engine *e, struct cn_peer *p, uint32_t id)
{
	uint8_t m[8];
	struct cn_cursor c = { m, m + sizeof(m), false };

	cn_put8(&c, CN_CONTROL_END);
	cn_put32(&c, id);
	/* without a buffer, the next repetition is answered */
	(void)cn_node_control(e->own.node, p, m, (size_t)(c.at - m));
}

static struct cn_cursor put_leave(uint8_t m[16], const struct cn_team *t, uint32_t rank,
				  uint32_t posted, bool dead)
{
	struct cn_cursor c = { m, m + 16, false };

	cn_put8(&c, CN_CONTROL_LEAVE);
	cn_put32(&c, t->id);
	cn_put32(&c, rank);
	cn_put32(&c, posted);
	cn_put8(&c, dead);
	return c;
}

void cn_control_leave(struct cn_team *t, uint32_t rank, uint32_t posted, bool dead)
{
	uint8_t m[16];
	const struct cn_cursor c = put_leave(m, t, rank, posted, dead);

	notify_team(t, m, &c);
}

void cn_control_died_forming(struct cn_team *t, uint32_t rank)
{
	uint8_t m[16];
	const struct cn_cursor c = put_leave(m, t, rank, 0, true);
	bool all = true;

	for (uint32_t k = 0; k < t->wireup.ncandidates; k++) {
		struct cn_peer *p = cn_wireup_candidate(t, k);
		const struct cn_join *j = cn_wireup_join_of(t, p);

		/* A derived team's JOIN commits, whether or not the peer's has come. */
		if (t->wireup.derived ? was_sent_join(t, k)
				      : j != NULL && j->commit_sent == t->id) {
			all &= cn_pending_send(&t->engine->own.pending, p, m, (size_t)(c.at - m));
		}
	}
	if (!all) {
		cn_transport_fail_team(t->transport);
	}
}

void cn_control_end(struct cn_team *t)
{
	uint8_t m[8];
	struct cn_cursor c = { m, m + sizeof(m), false };

	cn_put8(&c, CN_CONTROL_END);
	cn_put32(&c, t->id);
	cn_put8(&c, t->nodes == NULL);
	if (!notify_nodes(t, m, &c) && t->nodes == NULL) { /* else LEAVE has said it */
		cn_transport_fail_team(t->transport);
	}
}

static struct cn_cursor put_fail(uint8_t m[CN_CONTROL_MAX], uint32_t id, unsigned flags, int code,
				 const char *text)
{
	struct cn_cursor c = { m, m + CN_CONTROL_MAX, false };

	cn_put8(&c, CN_CONTROL_FAIL);
	cn_put32(&c, id);
	cn_put8(&c, (uint8_t)((unsigned)-code | flags));
	cn_put_text(&c, text);
	return c;
}

void cn_control_fail(struct cn_team *t, int code, const char *text)
{
	uint8_t m[CN_CONTROL_MAX];
	const bool forming = t->nodes == NULL;
	const unsigned flags = (forming ? CN_FAIL_FORMING : 0) |
			       (t->wireup.contradicts ? CN_FAIL_CONTRADICTION : 0);
	const struct cn_cursor c = put_fail(m, t->id, flags, code, text);

	if (t->division != NULL) {
		notify_parent(t, m, &c);
	} else if (!forming) {
		notify_team(t, m, &c);
	} else {
		cn_wireup_pend_joins(t);
		if (!notify_nodes(t, m, &c)) {
			cn_transport_fail_team(t->transport);
		}
	}
}

bool cn_control_fail_peers(struct cn_transport *x, const struct cn_err *why)
{
	uint8_t m[CN_CONTROL_MAX];
	const struct cn_cursor c = put_fail(m, x->id, 0, why->code, why->text);

	while (x->failed < cn_node_peers(x->node) &&
	       cn_node_control(x->node, cn_node_peer(x->node, x->failed), m, (size_t)(c.at - m)) !=
		       COLLNET_ELIMIT) {
		x->failed++;
	}
	return x->failed == cn_node_peers(x->node);
}

void cn_control_called(struct cn_team *t, struct cn_peer *p, uint32_t n, uint64_t late, bool ask)
{
	uint8_t m[32];
	struct cn_cursor c = { m, m + sizeof(m), false };

	cn_put8(&c, CN_CONTROL_CALLED);
	cn_put32(&c, t->id);
	cn_put32(&c, n);
	cn_put64(&c, late);
	cn_put8(&c, ask);
	cn_transport_activate(t->transport);
	/* Without a buffer it is dropped. */
	(void)cn_node_control(t->transport->node, p, m, (size_t)(c.at - m));
}

/* ---- input ------------------------------------------------------------------------------ */

/* Finds the ready team here that includes the peer's team of this record, and the peer's node in
 * it. */
static struct cn_team *team_of(struct cn_engine *e, const struct cn_engine_peer *m,
			       const struct cn_join *j, uint32_t *node)
{
	struct cn_team *t = NULL;

	while ((t = cn_team_of_job(e, t, j->owner, j->job)) != NULL) {
		const uint32_t k = cn_team_node_of(t, m->peer);

		if (k != UINT32_MAX && t->nodes[k].peer != NULL && t->nodes[k].port == j->port) {
			*node = k;
			return t;
		}
	}
	return NULL;
}

/* True if the record's job has a team here. */
static bool in_use(const void *ctx, const struct cn_join *j)
{
	/* Of those that have committed to each other, END removes the record. */
	return (j->commit_sent != 0 && j->commit_sent == j->commit_received) ||
	       cn_team_of_job(ctx, NULL, j->owner, j->job) != NULL;
}

/* At most three warnings per peer. */
static bool may_warn(struct cn_engine_peer *m)
{
	return m->warnings < 3 && ++m->warnings > 0;
}

/* Parses a JOIN; false: malformed. */
static bool read_join(struct cn_cursor *c, struct cn_join *in, char *job, size_t cap,
		      uint32_t *yours)
{
	in->id = cn_get32(c);
	in->port = cn_get16(c);
	in->ranks = cn_get32(c);
	in->topology = cn_get32(c);
	in->owner = cn_get64(c);
	*yours = cn_get32(c);
	if (!cn_get_text(c, job, cap) || !cn_valid_name(job) || in->id == 0 || in->ranks == 0 ||
	    in->ranks > COLLNET_RANKS_MAX || !cn_join_read(c, in)) {
		return false;
	}
	in->link_mbit = c->at < c->end ? cn_get32(c) : 0;
	return true;
}

struct cn_join *cn_control_record_join(struct cn_engine *e, struct cn_engine_peer *m,
				       struct cn_join *in, const char *job, uint32_t *more)
{
	struct cn_join *j = cn_join_by_id(&m->joins, in->id);
	uint32_t before = 0, now;

	if (j != NULL &&
	    (j->ranks != in->ranks || j->owner != in->owner || strcmp(j->job, job) != 0)) {
		if (may_warn(m)) {
			cn_log(COLLNET_LOG_WARNING,
			       "node %s says that a team of it is another one now",
			       cn_peer_name(m->peer));
		}
		return NULL;
	}
	if (j != NULL) {
		before = cn_join_ranks(j);
	} else {
		j = cn_join_new(&m->joins, in, job, in_use, e);
		if (j == NULL) {
			if (may_warn(m)) {
				cn_log(COLLNET_LOG_WARNING, "node %s has too many teams",
				       cn_peer_name(m->peer));
			}
			return NULL;
		}
	}
	cn_join_move_ranges(j, in);
	now = cn_join_ranks(j);
	*more = now > before ? now - before : 0;
	return j;
}

static void on_join(struct cn_engine *e, cn_time now, struct cn_engine_peer *m, struct cn_cursor *c)
{
	struct cn_join in = { 0 }, *j;
	char job[COLLNET_NAME_MAX + 1];
	uint32_t yours, more = 0, k;
	struct cn_team *t;

	if (!read_join(c, &in, job, sizeof(job), &yours)) {
		if (may_warn(m)) {
			cn_log(COLLNET_LOG_WARNING, "node %s sent an invalid JOIN",
			       cn_peer_name(m->peer));
		}
		return;
	}
	j = cn_control_record_join(e, m, &in, job, &more);
	if (j == NULL) {
		cn_join_forget(&in);
		return;
	}
	if (j->ended) {
		return; /* no JOIN follows END; the record is removed with the next team */
	}
	if (yours == 0 && (t = team_of(e, m, j, &k)) != NULL && t->wireup.derived) {
		cn_wireup_send_join(t, m->peer); /* it lacks this node's JOIN */
	}
	t = yours != 0 ? cn_team_by_id(e, yours) : NULL;
	if (yours != 0 && (t == NULL || t->state == CN_TEAM_FAILED ||
			   (t->state == CN_TEAM_READY && team_of(e, m, j, &k) != t))) {
		send_end(e, m->peer, yours);
	}
	t = cn_team_forming(e, j->owner, j->job);
	if (t != NULL && t->division != NULL) {
		cn_division_joined(t, m->peer);
	} else if (t != NULL) {
		if (t->wireup.derived && cn_wireup_is_announced_to(t, m->peer)) {
			cn_peer_no_reply(m->peer);
		}
		cn_wireup_joined(t, now, m->peer, j, more, yours == t->id);
	}
}

static void on_commit(struct cn_engine *e, cn_time now, struct cn_engine_peer *m, struct cn_join *j,
		      struct cn_cursor *c)
{
	uint32_t mine = cn_get32(c);
	bool ask = !c->bad && c->at < c->end && cn_get8(c) != 0, first;
	struct cn_team *t = c->bad ? NULL : cn_team_by_id(e, mine);

	if (t == NULL || t->owner != j->owner || strcmp(t->job, j->job) != 0) {
		if (!c->bad && t == NULL) {
			send_end(e, m->peer, mine);
		}
		return;
	}
	if (j->commit_sent == mine) {
		cn_peer_no_reply(m->peer);
	}
	first = j->commit_received != mine;
	cn_join_commit(&m->joins, j, mine, j->commit_sent);
	cn_wireup_committed(t, now, m->peer, j, first, ask);
}

/* Finds the forming team here of the same run as this record; any_size: also one with its name but
 * another number of ranks. */
static struct cn_team *forming_of(struct cn_engine *e, struct cn_engine_peer *m,
				  const struct cn_join *j, bool any_size)
{
	struct cn_team *t = cn_team_forming(e, j->owner, j->job);

	return t != NULL && (any_size || j->ranks == t->ranks) &&
			       cn_join_find(&m->joins, t->owner, t->job) == j &&
			       (j->commit_received == 0 || j->commit_received == t->id)
		       ? t
		       : NULL;
}

/* Parses a FAIL; false: malformed. */
static bool read_fail(struct cn_cursor *c, int *code, unsigned *flags, char *text, size_t cap)
{
	const unsigned byte = cn_get8(c);

	*flags = byte & (CN_FAIL_FORMING | CN_FAIL_CONTRADICTION);
	*code = -(int)(byte & ~*flags);
	if (!cn_get_text(c, text, cap) || *code == 0) {
		return false;
	}
	if (*code < COLLNET_EUNSUPPORTED) {
		/* A status of a later version: processes reject unknown ones. */
		*code = COLLNET_EPROTO;
	}
	for (char *s = text; *s != '\0'; s++) {
		if (*s < ' ' || *s > '~') {
			*s = '?';
		}
	}
	if (text[0] == '\0') {
		snprintf(text, cap, "another node failed and does not say why");
	}
	return true;
}

/* Records that a team failed at the peer before it was known here: a split whose claims are under
 * way. Without memory, the peer times out later. */
static void record_failure(struct cn_engine_peer *m, uint32_t id, struct cn_cursor *c)
{
	struct cn_join_failure in = { .id = id }, *f;
	unsigned flags;

	if (read_fail(c, &in.code, &flags, in.text, sizeof(in.text)) &&
	    (flags & CN_FAIL_FORMING) != 0) {
		f = cn_join_fail(&m->joins);
		if (f != NULL) {
			*f = in;
		}
	}
}

/* A team failed at the peer while it formed. */
static void on_fail(struct cn_engine *e, cn_time now, struct cn_engine_peer *m, struct cn_join *j,
		    struct cn_cursor *c)
{
	struct cn_team *t;
	unsigned flags;
	char text[256];
	bool contradiction;
	uint32_t k;
	int code;

	if (!read_fail(c, &code, &flags, text, sizeof(text)) || (flags & CN_FAIL_FORMING) == 0) {
		return;
	}
	contradiction = (flags & CN_FAIL_CONTRADICTION) != 0;
	t = forming_of(e, m, j, contradiction);
	j->left = true;
	if (t != NULL && contradiction) {
		cn_wireup_contradicted(t, now, text);
		return;
	}
	if (t == NULL) {
		t = team_of(e, m, j, &k); /* the peer has committed to it */
	}
	if (t != NULL) {
		cn_team_fail(t, false, code, "%s", text);
	}
}

static void on_end(struct cn_engine *e, cn_time now, struct cn_engine_peer *m, struct cn_join *j,
		   struct cn_cursor *c)
{
	const bool never_ready = c->at < c->end && cn_get8(c) != 0;
	uint32_t k;
	struct cn_team *r = never_ready ? team_of(e, m, j, &k) : NULL, *t;

	if (r != NULL && r->state == CN_TEAM_READY && !r->nodes[k].left.any) {
		cn_team_fail(r, true, COLLNET_ERANK, "node %s abandoned job %s before it was ready",
			     r->nodes[k].name, r->job);
	}
	t = cn_team_forming(e, j->owner, j->job);
	if (t != NULL && t->division == NULL) {
		if (!never_ready && cn_wireup_committed_of(t, m->peer) == j) {
			j->ended = true; /* it may have been ready: its transport decides */
			return;
		}
		cn_wireup_ended(t, now);
	}
	cn_join_remove(&m->joins, j);
}

static void on_leave(struct cn_team *t, uint32_t k, struct cn_join *j, struct cn_cursor *c)
{
	const uint32_t rank = cn_get32(c), posted = cn_get32(c);
	const bool dead = c->at < c->end && cn_get8(c) != 0;

	if (c->bad || (k != UINT32_MAX && (rank >= t->ranks || t->layout.node_of[rank] != k))) {
		return;
	}
	if (j != NULL) {
		j->left = true;
		cn_left_record(&j->first_left, rank, posted, dead);
	}
	if (k != UINT32_MAX) {
		cn_team_rank_left(t, k, rank, posted, dead);
	}
}

/* A rank died before the peer's team was ready. The team here may be ready; if not, the peer's
 * commit is void. */
static void on_died_forming(struct cn_engine *e, struct cn_engine_peer *m, struct cn_join *j,
			    struct cn_cursor *c)
{
	uint32_t k;
	struct cn_team *t = team_of(e, m, j, &k);

	if (t != NULL) {
		on_leave(t, k, j, c);
	} else {
		cn_join_commit(&m->joins, j, 0, j->commit_sent);
	}
}

bool cn_control_deliver(struct cn_engine *e, cn_time now, struct cn_peer *p, const uint8_t *data,
			size_t len)
{
	struct cn_cursor c = cn_cursor_of(data, len);
	struct cn_engine_peer *m = cn_engine_peer_of(p);
	struct cn_join *j;
	uint8_t kind = cn_get8(&c);
	uint32_t id;

	if (kind == CN_CONTROL_JOIN) {
		on_join(e, now, m, &c);
		return true;
	}
	id = cn_get32(&c);
	j = cn_join_by_id(&m->joins, id);
	if (j == NULL) { /* a team not advertised yet, or ended */
		if (kind == CN_CONTROL_FAIL) {
			record_failure(m, id, &c);
		}
		return true;
	}
	switch (kind) {
	case CN_CONTROL_COMMIT:
		on_commit(e, now, m, j, &c);
		break;
	case CN_CONTROL_LEAVE:
		on_died_forming(e, m, j, &c);
		break;
	case CN_CONTROL_END:
		on_end(e, now, m, j, &c);
		break;
	case CN_CONTROL_FAIL:
		on_fail(e, now, m, j, &c);
		break;
	default:
		break;
	}
	return true;
}

/* ---- input through a team's transport ----------------------------------------------------- */

static void on_team_fail(struct cn_team *t, struct cn_join *j, struct cn_cursor *c)
{
	unsigned flags;
	char text[256];
	int code;

	if (read_fail(c, &code, &flags, text, sizeof(text)) && (flags & CN_FAIL_FORMING) == 0) {
		if (j != NULL) {
			j->left = true;
		}
		cn_team_fail(t, false, code, "%s", text);
	}
}

/* END, the last message of the peer's team. Without a LEAVE of its ranks, the team was never
 * ready. */
void cn_control_team_ended(struct cn_team *t, cn_time now, struct cn_peer *p)
{
	struct cn_engine_peer *m = cn_engine_peer_of(p);
	struct cn_join *j = m != NULL ? cn_wireup_committed_of(t, m->peer) : NULL;

	if (t->state == CN_TEAM_FORMING && j != NULL && !j->first_left.any) {
		cn_join_remove(&m->joins, j);
		cn_wireup_ended(t, now);
	}
}

void cn_control_deliver_team(struct cn_team *t, struct cn_peer *p, const uint8_t *data, size_t len)
{
	struct cn_cursor c = cn_cursor_of(data, len);
	struct cn_engine_peer *m = cn_engine_peer_of(p);
	uint8_t kind = cn_get8(&c);
	const uint32_t id = cn_get32(&c), k = cn_team_node_of(t, p);
	uint32_t n;

	switch (m != NULL ? kind : 0) {
	case CN_CONTROL_LEAVE:
		on_leave(t, k, cn_join_by_id(&m->joins, id), &c);
		break;
	case CN_CONTROL_FAIL:
		on_team_fail(t, cn_join_by_id(&m->joins, id), &c);
		break;
	case CN_CONTROL_STARTED:
		n = cn_get32(&c);
		if (!c.bad) {
			cn_op_unexpected_started(t, p, cn_join_by_id(&m->joins, id), n);
		}
		break;
	case CN_CONTROL_CALLED:
		cn_op_called_by(t, p, k, &c);
		break;
	default:
		break;
	}
}
