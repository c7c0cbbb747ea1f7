/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages about teams. Engines exchange them over their reliable sequences, which keep
 * their order:
 *
 *   JOIN   my ranks of this job, and the slot to address the team by; to the nodes that announced
 *          the same job, and to all others until it is complete (wireup.c)
 *   COMMIT   I know all ranks of the job, and you under this team id; a team is ready when it knows
 *          all ranks and every other node has bound it. A team that an earlier run of the same
 *          job left behind never binds the new one, so the two cannot be taken for each other.
 *          COMMIT is sent when all nodes have this one's MTU and a validated path (wireup_path.c)
 *   LEAVE, END, FAIL   a rank leaves, the last one has left, the team has failed
 *   STARTED   so many operations have started here (unexpected.c)
 *
 * LEAVE, END and FAIL go to the nodes that announced the job. A record that is left at another one
 * is found to be stale when it is used: a JOIN or COMMIT that names a team that is gone is answered
 * by END. So what a node announces is kept as a hint, in a bounded table.
 *
 * A team id names one team of one engine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"

/* ---- telling -------------------------------------------------------------------------- */

static void tell_everyone(struct cn_team *t, const uint8_t *m, const struct cn_cursor *c)
{
	struct cn_engine *e = t->engine;

	for (uint32_t k = 0; k < t->ncandidates; k++) {
		uint32_t i = t->candidates[k];
		struct cn_peer *p = cn_node_peer(e->node, i);

		if (cn_peer_alive(p) && t->told[i].version != 0 && !c->bad) {
			cn_pending_send(e, p, m, (size_t)(c->at - m));
		}
	}
}

/* The peer's record of a team that is not here any more is stale. */
static void tell_stale(struct cn_engine *e, struct cn_peer *p, uint32_t id)
{
	uint8_t m[8];
	struct cn_cursor c = { m, m + sizeof(m), false };

	cn_put8(&c, CN_CONTROL_END);
	cn_put32(&c, id);
	/* Without a buffer now, the next repetition is answered. */
	(void)cn_node_control(e->node, p, m, (size_t)(c.at - m));
}

void cn_control_leave(struct cn_team *t, uint32_t rank, uint32_t posted)
{
	uint8_t m[16];
	struct cn_cursor c = { m, m + sizeof(m), false };

	cn_put8(&c, CN_CONTROL_LEAVE);
	cn_put32(&c, t->id);
	cn_put32(&c, rank);
	cn_put32(&c, posted);
	tell_everyone(t, m, &c);
}

void cn_control_end(struct cn_team *t)
{
	uint8_t m[8];
	struct cn_cursor c = { m, m + sizeof(m), false };

	cn_put8(&c, CN_CONTROL_END);
	cn_put32(&c, t->id);
	tell_everyone(t, m, &c);
}

void cn_control_fail(struct cn_team *t, int code, const char *text)
{
	uint8_t m[CN_CONTROL_MAX];
	struct cn_cursor c = { m, m + sizeof(m), false };
	bool forming = t->nodes == NULL;

	if (forming) {
		cn_wireup_send_joins(t);
	}
	cn_put8(&c, CN_CONTROL_FAIL);
	cn_put32(&c, t->id);
	cn_put8(&c, (uint8_t)(-code | (forming ? CN_FAIL_FORMING : 0)));
	cn_put_text(&c, text);
	tell_everyone(t, m, &c);
}

/* ---- being told ----------------------------------------------------------------------- */

static struct cn_team *team_by_id(struct cn_engine *e, uint32_t id)
{
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		if (e->teams[i] != NULL && e->teams[i]->id == id) {
			return e->teams[i];
		}
	}
	return NULL;
}

/* The ready team here in which the peer's team of this record takes part, and its node there. */
static struct cn_team *team_of(struct cn_engine *e, const struct cn_engine_peer *m,
			       const struct cn_join *j, uint32_t *node)
{
	uint32_t index = cn_peer_index(m->peer);

	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		struct cn_team *t = e->teams[i];

		if (t == NULL || t->nodes == NULL || index >= t->npeers ||
		    t->node_by_peer[index] == UINT16_MAX) {
			continue;
		}
		*node = t->node_by_peer[index];
		if (t->nodes[*node].peer == m->peer && t->nodes[*node].slot == j->slot) {
			return t;
		}
	}
	return NULL;
}

/* At most three lines a peer, whatever it sends. */
static bool may_complain(struct cn_engine_peer *m)
{
	return m->complaints < 3 && ++m->complaints > 0;
}

/* Reads a JOIN; false: it makes no sense. */
static bool read_join(struct cn_cursor *c, struct cn_join *in, char *job, size_t cap,
		      uint32_t *yours)
{
	in->id = cn_get32(c);
	in->slot = cn_get16(c);
	in->ranks = cn_get32(c);
	in->topology = cn_get32(c);
	in->owner = cn_get64(c);
	*yours = cn_get32(c);
	return cn_get_text(c, job, cap) && cn_valid_name(job) && in->id != 0 && in->ranks != 0 &&
	       in->ranks <= COLLNET_RANKS_MAX && cn_join_read(c, in);
}

/* The record, as it is now; NULL: it is not kept. *more: ranks that it has more than before. */
static struct cn_join *keep_join(struct cn_engine *e, struct cn_engine_peer *m, struct cn_join *in,
				 const char *job, uint32_t *more)
{
	struct cn_join *j = cn_join_by_id(m, in->id);
	uint32_t before = 0, now;

	if (j != NULL &&
	    (j->ranks != in->ranks || j->owner != in->owner || strcmp(j->job, job) != 0)) {
		if (may_complain(m)) {
			cn_log(COLLNET_LOG_WARNING,
			       "node %s says that a team of it is another one now",
			       cn_peer_name(m->peer));
		}
		return NULL;
	}
	if (j != NULL) {
		before = cn_join_ranks(j);
	} else {
		j = cn_join_new(e, m, in, job);
		if (j == NULL) {
			if (may_complain(m)) {
				cn_log(COLLNET_LOG_WARNING, "node %s has too many teams",
				       cn_peer_name(m->peer));
			}
			return NULL;
		}
	}
	cn_join_take(j, in);
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
		if (may_complain(m)) {
			cn_log(COLLNET_LOG_WARNING, "node %s sent a join that makes no sense",
			       cn_peer_name(m->peer));
		}
		return;
	}
	j = keep_join(e, m, &in, job, &more);
	if (j == NULL) {
		cn_join_forget(&in);
		return;
	}
	t = yours != 0 ? team_by_id(e, yours) : NULL;
	if (yours != 0 && (t == NULL || t->state == CN_TEAM_FAILED ||
			   (t->state == CN_TEAM_READY && team_of(e, m, j, &k) != t))) {
		tell_stale(e, m->peer, yours);
	}
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		t = e->teams[i];
		if (t != NULL && t->state == CN_TEAM_FORMING && t->owner == j->owner &&
		    strcmp(t->job, j->job) == 0) {
			cn_wireup_joined(t, now, m->peer, j, more, yours == t->id);
		}
	}
}

static void on_commit(struct cn_engine *e, cn_time now, struct cn_engine_peer *m, struct cn_join *j,
		      struct cn_cursor *c)
{
	uint32_t mine = cn_get32(c);
	bool ask = !c->bad && c->at < c->end && cn_get8(c) != 0, first;
	struct cn_team *t = c->bad ? NULL : team_by_id(e, mine);

	if (t == NULL || t->owner != j->owner || strcmp(t->job, j->job) != 0) {
		if (!c->bad && t == NULL) {
			tell_stale(e, m->peer, mine);
		}
		return;
	}
	first = j->commit_received != mine;
	j->commit_received = mine;
	cn_wireup_committed(t, now, m->peer, j, first, ask);
}

static void on_leave(struct cn_engine *e, cn_time now, struct cn_engine_peer *m, struct cn_join *j,
		     struct cn_cursor *c)
{
	uint32_t rank = cn_get32(c), posted = cn_get32(c), k;
	struct cn_team *t = team_of(e, m, j, &k);

	if (c->bad) {
		return;
	}
	j->left = true;
	if (t != NULL && posted < t->nodes[k].left_after) {
		t->nodes[k].left_after = posted;
		t->nodes[k].left_rank = rank;
		cn_op_check_left(t, now, k);
	}
}

/* The team here that has not come further than the one of this record, of the same run. */
static struct cn_team *forming_of(struct cn_engine *e, struct cn_engine_peer *m,
				  const struct cn_join *j)
{
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		struct cn_team *t = e->teams[i];

		if (t != NULL && t->state == CN_TEAM_FORMING && j->ranks == t->ranks &&
		    cn_join_find(m, t->owner, t->job) == j &&
		    (j->commit_received == 0 || j->commit_received == t->id)) {
			return t;
		}
	}
	return NULL;
}

static void on_fail(struct cn_engine *e, cn_time now, struct cn_engine_peer *m, struct cn_join *j,
		    struct cn_cursor *c)
{
	uint8_t byte = cn_get8(c);
	int code = -(int)(byte & ~CN_FAIL_FORMING);
	char text[256];
	uint32_t k;
	struct cn_team *t = team_of(e, m, j, &k);

	if (t == NULL && (byte & CN_FAIL_FORMING) != 0) {
		t = forming_of(e, m, j);
	}
	if (!cn_get_text(c, text, sizeof(text)) || code == 0) {
		return;
	}
	for (char *s = text; *s != '\0'; s++) {
		if (*s < ' ' || *s > '~') {
			*s = '?';
		}
	}
	j->left = true;
	if (t != NULL) {
		cn_team_fail(t, now, false, code, "%s",
			     text[0] != '\0' ? text : "another node failed and does not say why");
	}
}

static void on_started(struct cn_engine *e, struct cn_engine_peer *m, struct cn_join *j,
		       struct cn_cursor *c)
{
	uint32_t n = cn_get32(c), k;
	struct cn_team *t = team_of(e, m, j, &k);

	if (!c->bad && t != NULL) {
		cn_unexpected_started(t, k, n);
	}
}

static void on_end(struct cn_engine *e, cn_time now, struct cn_engine_peer *m, struct cn_join *j)
{
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		struct cn_team *t = e->teams[i];

		if (t != NULL && t->state == CN_TEAM_FORMING && t->owner == j->owner &&
		    strcmp(t->job, j->job) == 0) {
			cn_wireup_ended(t, now);
		}
	}
	cn_join_remove(m, j);
}

bool cn_control_deliver(struct cn_engine *e, cn_time now, struct cn_peer *p, const uint8_t *data,
			size_t len)
{
	/* The cursor reads only; its type serves writing too. */
	uint8_t *at = (uint8_t *)(uintptr_t)data;
	struct cn_cursor c = { at, at + len, false };
	struct cn_engine_peer *m = cn_engine_peer_of(p);
	struct cn_join *j;
	uint8_t kind = cn_get8(&c);

	if (m == NULL) {
		return true;
	}
	if (kind == CN_CONTROL_JOIN) {
		on_join(e, now, m, &c);
		return true;
	}
	j = cn_join_by_id(m, cn_get32(&c));
	if (j == NULL) {
		return true; /* of a team that it never told us of, or has ended */
	}
	switch (kind) {
	case CN_CONTROL_COMMIT:
		on_commit(e, now, m, j, &c);
		break;
	case CN_CONTROL_LEAVE:
		on_leave(e, now, m, j, &c);
		break;
	case CN_CONTROL_END:
		on_end(e, now, m, j);
		break;
	case CN_CONTROL_FAIL:
		on_fail(e, now, m, j, &c);
		break;
	case CN_CONTROL_STARTED:
		on_started(e, m, j, &c);
		break;
	default:
		break;
	}
	return true;
}

void cn_teams_peer_up(struct cn_engine *e, struct cn_peer *p)
{
	if (cn_engine_peer_of(p) != NULL) {
		cn_engine_peer_of(p)->complaints = 0;
	}
	for (uint32_t s = 0; s < e->config.max_teams; s++) {
		if (e->teams[s] != NULL) {
			cn_wireup_peer_up(e->teams[s], p);
		}
	}
}

/* "h8-h15, h20": appends names in the team's order; names that count up are a range. */
struct name_list {
	char text[200];
	size_t len;
	const char *first, *last; /* of the range that is open */
};

/* Whether `next` is `name` with its last number one higher. */
static bool counts_up(const char *name, const char *next)
{
	size_t n = strlen(name), k = strlen(next);
	uint64_t a, b;

	while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9' && strlen(name) - n < 8) {
		n--;
	}
	while (k > 0 && next[k - 1] >= '0' && next[k - 1] <= '9' && strlen(next) - k < 8) {
		k--;
	}
	return n == k && strncmp(name, next, n) == 0 &&
	       cn_parse_uint(name + n, 0, UINT32_MAX, &a) &&
	       cn_parse_uint(next + k, 0, UINT32_MAX, &b) && a + 1 == b;
}

static void end_range(struct name_list *l)
{
	const char *comma = l->len > 0 ? ", " : "";
	int n;

	if (l->first == NULL || l->len + 1 >= sizeof(l->text)) {
		return;
	}
	n = l->first == l->last
		    ? snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s%s", comma, l->first)
		    : snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s%s-%s", comma,
			       l->first, l->last);
	l->len = l->len + (size_t)n < sizeof(l->text) ? l->len + (size_t)n : sizeof(l->text) - 1;
	l->first = NULL;
}

static void add_name(struct name_list *l, const char *name)
{
	if (l->first == NULL || !counts_up(l->last, name)) {
		end_range(l);
		l->first = name;
	}
	l->last = name;
}

/*
 * One peer is lost by silence. All of them: this node is cut off. Some: they are named as a group.
 */
static void fail_by_silence(struct cn_team *t, cn_time now, const struct cn_peer *p, uint32_t lost)
{
	const struct cn_engine_config *c = &t->engine->config;
	struct name_list l = { .len = 0 };
	char other[256];
	uint32_t silent = 0, peers = t->layout.nnodes - 1;

	for (uint32_t k = 0; k < t->layout.nnodes; k++) {
		const struct cn_peer *q = t->nodes[k].peer;

		if (k == lost || (q != NULL && cn_peer_silent_with(p, q))) {
			add_name(&l, t->nodes[k].name);
			silent++;
		}
	}
	end_range(&l);
	cn_version_mismatch_clause(t, now, p, other, sizeof(other));
	if (silent == 1) {
		cn_team_fail(t, now, true, COLLNET_EPEER, "node %s stopped answering node %s%s",
			     t->nodes[lost].name, c->node.name, other);
	} else if (silent == peers) {
		cn_team_fail(t, now, true, COLLNET_EPEER,
			     "node %s is cut off: none of its %u peers "
			     "answers%s%s%s",
			     c->node.name, peers, c->interface[0] != '\0' ? " on " : "",
			     c->interface, other);
	} else {
		cn_team_fail(t, now, true, COLLNET_EPEER,
			     "%u of %u peers stopped answering: %s (seen by "
			     "node %s)%s",
			     silent, peers, l.text, c->node.name, other);
	}
}

/* The sentence goes to all nodes, so it says who did not hear whom: a node that hears nobody takes
 * everybody else for silent. */
static void fail_by_loss(struct cn_team *t, cn_time now, const struct cn_peer *p, uint32_t k,
			 enum cn_peer_loss why)
{
	const char *own = t->engine->config.node.name, *name = t->nodes[k].name;

	if (why == CN_PEER_SILENT || why == CN_PEER_PATH) {
		fail_by_silence(t, now, p, k);
	} else if (why == CN_PEER_RESET) {
		cn_team_fail(t, now, true, COLLNET_EPEER,
			     "node %s did not hear node %s for long and "
			     "gave up node %s",
			     name, own, own);
	} else {
		cn_team_fail(t, now, true, COLLNET_EPEER, "node %s %s its daemon", name,
			     why == CN_PEER_RESTARTED ? "restarted" : "ended");
	}
}

void cn_teams_peer_down(struct cn_engine *e, cn_time now, struct cn_peer *p, enum cn_peer_loss why)
{
	struct cn_engine_peer *m = cn_engine_peer_of(p);
	uint32_t index = cn_peer_index(p);

	cn_join_remove_all(m);
	cn_pending_drop(e, p);
	for (uint32_t s = 0; s < e->config.max_teams; s++) {
		struct cn_team *t = e->teams[s];
		uint32_t k;

		if (t == NULL) {
			continue;
		}
		t->told[index].version = 0;
		t->told[index].confirmed = false;
		if (t->nodes == NULL || index >= t->npeers ||
		    t->node_by_peer[index] == UINT16_MAX) {
			continue;
		}
		k = t->node_by_peer[index];
		t->nodes[k].peer = NULL;
		if (t->nodes[k].left_after != UINT32_MAX) {
			continue; /* its ranks had left before: nobody misses it */
		}
		fail_by_loss(t, now, p, k, why);
	}
}
