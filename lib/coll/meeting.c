/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the ranks of a job find each other. Engines tell each other over their reliable sequences,
 * so nothing is repeated and order is kept:
 *
 *   JOIN   my ranks of this job, and the slot to address the team by; to every node known, again
 *          when a rank is added, and to nodes that come later
 *   BIND   I know all ranks of the job, and you under this nonce; a team is ready when it knows
 *          all ranks and every other node has bound it. A team that an earlier run of the same
 *          job left behind never binds the new one, so the two cannot be taken for each other.
 *          BIND is sent when all nodes have this one's MTU and a validated path (path.c)
 *   LEAVE, END, FAIL   a rank leaves, the last one has left, the team has failed
 *
 * A nonce names one team of one engine.
 */
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"

/* ---- time -------------------------------------------------------------------------------- */

/* A forming team looks at all peers again this often, in case a buffer was short when something
 * was to be told; less often in large clusters, where it takes a while. */
static const cn_time look_least = 20 * CN_MS;

static cn_time look_interval(const struct cn_team *t)
{
	cn_time spread = (cn_time)cn_node_peers(t->engine->node) * 100 * CN_US;

	return spread > look_least ? spread : look_least;
}

/* The team wants to be called not later than `at`. */
static void soon(struct cn_team *t, cn_time at)
{
	if (t->state == CN_TEAM_FORMING && at < t->check_at) {
		t->check_at = at;
		cn_engine_touch(t->engine);
	}
}

/* ---- telling -------------------------------------------------------------------------- */

static bool tell(struct cn_engine *e, struct cn_peer *p, const uint8_t *m, const struct cn_cursor *c)
{
	if (c->bad) {
		return false;
	}
	return cn_node_control(e->node, p, m, (size_t)(c->at - m)) == COLLNET_OK;
}

/* The team's local ranks as ranges. Members are kept in ascending order of rank. */
static void put_ranges(struct cn_cursor *c, const struct cn_team *t)
{
	uint8_t *count_at = c->at;
	uint16_t count = 0;

	cn_put16(c, 0);
	for (const struct cn_member *m = t->members; m != NULL;) {
		uint32_t first = m->rank, n = 0;

		while (m != NULL && m->rank == first + n) {
			n++;
			m = m->next;
		}
		cn_put32(c, first);
		cn_put32(c, n);
		count++;
	}
	if (!c->bad) {
		count_at[0] = (uint8_t)(count >> 8);
		count_at[1] = (uint8_t)count;
	}
}

static void put_join(struct cn_cursor *c, const struct cn_team *t)
{
	cn_put8(c, CN_CONTROL_JOIN);
	cn_put32(c, t->nonce);
	cn_put16(c, t->slot);
	cn_put32(c, t->ranks);
	cn_put32(c, t->engine->topology);
	cn_put64(c, t->owner);
	cn_put_text(c, t->job);
	put_ranges(c, t);
}

static bool tell_join(struct cn_team *t, struct cn_peer *p)
{
	uint8_t m[CN_CONTROL_MAX];
	struct cn_cursor c = {m, m + sizeof(m), false};

	put_join(&c, t);
	if (c.bad) {
		cn_log(COLLNET_LOG_ERROR, "job %s: the ranks of this node are too scattered", t->job);
	}
	return tell(t->engine, p, m, &c);
}

struct cn_join *cn_join_of(const struct cn_team *t, struct cn_peer *p)
{
	struct cn_mate *m = cn_mate_of(p);

	return m != NULL && cn_peer_alive(p) ? cn_join_find(m, t->owner, t->job) : NULL;
}

/*
 * Pacing. In a large cluster all nodes tell all others the same things at about the same time, so
 * every node begins with another peer and, beyond the first few, takes its time. False: not now;
 * check_at is set.
 */
#define AT_ONCE 16u
static const cn_time tell_every = 100 * CN_US;

static bool may_tell(struct cn_team *t, cn_time now)
{
	if (t->told_until < now) {
		t->told_until = now;
	}
	if (t->told_until >= now + AT_ONCE * tell_every) {
		soon(t, now + AT_ONCE / 2 * tell_every);
		return false;
	}
	t->told_until += tell_every;
	return true;
}

static uint32_t first_peer(const struct cn_team *t, uint32_t n)
{
	return n > 0 ? (uint32_t)(cn_mix64(t->engine->config.node.epoch) % n) : 0;
}

void cn_meeting_announce(struct cn_team *t, cn_time now)
{
	struct cn_engine *e = t->engine;

	if (t->announced == 0) {
		t->announce_n = cn_node_peers(e->node); /* later ones are told when they come up */
	}
	while (t->announced < t->announce_n) {
		uint32_t i = (first_peer(t, t->announce_n) + t->announced) % t->announce_n;
		struct cn_peer *p = cn_node_peer(e->node, i);

		if (cn_peer_alive(p) && t->told[i] != t->edition) {
			if (!may_tell(t, now)) {
				return;
			}
			if (!tell_join(t, p)) {
				soon(t, now + look_least); /* no buffer */
				return;
			}
			t->told[i] = t->edition;
		}
		t->announced++;
	}
}

static void tell_everyone(struct cn_team *t, const uint8_t *m, const struct cn_cursor *c)
{
	struct cn_engine *e = t->engine;

	uint32_t n = cn_node_peers(e->node), first = first_peer(t, n);

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = (first + k) % n;
		struct cn_peer *p = cn_node_peer(e->node, i);

		if (cn_peer_alive(p) && t->told[i] != 0 && !c->bad) {
			cn_owed_tell(e, p, m, (size_t)(c->at - m));
		}
	}
}

void cn_meeting_leave(struct cn_team *t, uint32_t rank, uint32_t posted)
{
	uint8_t m[16];
	struct cn_cursor c = {m, m + sizeof(m), false};

	cn_put8(&c, CN_CONTROL_LEAVE);
	cn_put32(&c, t->nonce);
	cn_put32(&c, rank);
	cn_put32(&c, posted);
	tell_everyone(t, m, &c);
}

void cn_meeting_end(struct cn_team *t)
{
	uint8_t m[8];
	struct cn_cursor c = {m, m + sizeof(m), false};

	cn_put8(&c, CN_CONTROL_END);
	cn_put32(&c, t->nonce);
	tell_everyone(t, m, &c);
}

/* While the team forms, a node of it may not have been told of the ranks here, to which FAIL refers. */
static void tell_join_first(struct cn_team *t)
{
	struct cn_engine *e = t->engine;

	for (uint32_t i = 0; i < cn_node_peers(e->node); i++) {
		struct cn_peer *p = cn_node_peer(e->node, i);

		if (cn_peer_alive(p) && t->told[i] == 0 && cn_join_of(t, p) != NULL) {
			uint8_t m[CN_CONTROL_MAX];
			struct cn_cursor c = {m, m + sizeof(m), false};

			put_join(&c, t);
			if (!c.bad) {
				cn_owed_tell(e, p, m, (size_t)(c.at - m));
				t->told[i] = t->edition;
			}
		}
	}
}

void cn_meeting_fail(struct cn_team *t, int code, const char *text)
{
	uint8_t m[CN_CONTROL_MAX];
	struct cn_cursor c = {m, m + sizeof(m), false};
	bool forming = t->nodes == NULL;

	if (forming) {
		tell_join_first(t);
	}
	cn_put8(&c, CN_CONTROL_FAIL);
	cn_put32(&c, t->nonce);
	cn_put8(&c, (uint8_t)(-code | (forming ? CN_FAIL_FORMING : 0)));
	cn_put_text(&c, text);
	tell_everyone(t, m, &c);
}

/* ---- is everybody there? ---------------------------------------------------------------- */

/* The rank's bit is set; false: it was. */
static bool claim(struct cn_team *t, uint32_t rank)
{
	uint64_t bit = (uint64_t)1 << (rank % 64);

	if ((t->present[rank / 64] & bit) != 0) {
		return false;
	}
	t->present[rank / 64] |= bit;
	t->seen[rank / 64] |= bit;
	t->npresent++;
	return true;
}

/* False: there is a contradiction, and the team has failed unless it may still resolve itself. */
static bool claim_join(struct cn_team *t, cn_time now, const struct cn_join *j, struct cn_peer *p)
{
	const char *name = cn_peer_name(p), *own = t->engine->config.node.name;
	bool patient = now < t->patience;

	if (j->ranks != t->ranks && patient) {
		return false;
	}
	if (j->ranks != t->ranks) {
		cn_team_fail(t, now, false, COLLNET_EMISMATCH,
			     "job %s has %u ranks on node %s and %u on node %s: start all with the "
			     "same size", t->job, j->ranks, name, t->ranks, own);
		return false;
	}
	if (j->topology != t->engine->topology) {
		cn_team_fail(t, now, false, COLLNET_EMISMATCH,
			     "nodes %s and %s have different topology files: give all the same",
			     name, own);
		return false;
	}
	for (uint32_t i = 0; i < j->nranges; i++) {
		for (uint32_t k = 0; k < j->ranges[i].n; k++) {
			if (!claim(t, j->ranges[i].first + k)) {
				if (patient) {
					return false;
				}
				cn_team_fail(t, now, false, COLLNET_EMISMATCH,
					     "rank %u of job %s is on node %s and on another one: give "
					     "every process its own rank", j->ranges[i].first + k,
					     t->job, name);
				return false;
			}
		}
	}
	return true;
}

/* False: it is told later; the next one at cn_meeting_expire(). */
static bool bind_to(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j)
{
	uint8_t m[16];
	struct cn_cursor c = {m, m + sizeof(m), false};

	if (j->bind_sent == t->nonce) {
		return true;
	}
	if (!may_tell(t, now)) {
		return false;
	}
	cn_put8(&c, CN_CONTROL_BIND);
	cn_put32(&c, t->nonce);
	cn_put32(&c, j->nonce);
	if (!tell(t->engine, p, m, &c)) {
		soon(t, now + look_least);
		return false;
	}
	j->bind_sent = t->nonce;
	return true;
}

/* All ranks are there: binds the team to their nodes', from where it stopped last. True: to all. */
static bool bind_all(struct cn_team *t, cn_time now)
{
	struct cn_engine *e = t->engine;
	uint32_t n = cn_node_peers(e->node);

	while (t->binding < n) {
		struct cn_peer *p = cn_node_peer(e->node, (first_peer(t, n) + t->binding) % n);
		struct cn_join *j = cn_join_of(t, p);

		if (j != NULL && !bind_to(t, now, p, j)) {
			return false;
		}
		t->binding++;
	}
	return true;
}

/* False: some are missing, or there is a contradiction. */
static bool count_all(struct cn_team *t, cn_time now)
{
	struct cn_engine *e = t->engine;

	memset(t->present, 0, (t->ranks + 63) / 64 * sizeof(*t->present));
	t->npresent = t->njoined = t->nbound = 0;
	for (const struct cn_member *m = t->members; m != NULL; m = m->next) {
		claim(t, m->rank);
	}
	for (uint32_t i = 0; i < cn_node_peers(e->node); i++) {
		struct cn_peer *p = cn_node_peer(e->node, i);
		struct cn_join *j = cn_join_of(t, p);

		if (j == NULL) {
			continue;
		}
		if (!claim_join(t, now, j, p)) {
			t->heard = t->ranks; /* look again at whatever comes */
			return false;
		}
		t->njoined++;
		t->nbound += j->bound_mine == t->nonce;
	}
	t->heard = t->npresent;
	return t->npresent == t->ranks;
}

static int get_ready(struct cn_team *t, cn_time now, struct cn_err *err)
{
	struct cn_engine *e = t->engine;
	struct cn_join **joins = calloc((size_t)t->njoined + 1, sizeof(*joins));
	struct cn_peer **peers = calloc((size_t)t->njoined + 1, sizeof(*peers));
	uint32_t n = 0;
	int rc;

	for (uint32_t i = 0; joins != NULL && peers != NULL && i < cn_node_peers(e->node); i++) {
		struct cn_peer *p = cn_node_peer(e->node, i);
		struct cn_join *j = cn_join_of(t, p);

		if (j != NULL) {
			joins[n] = j;
			peers[n++] = p;
		}
	}
	rc = joins == NULL || peers == NULL
		     ? cn_fail(err, COLLNET_ENOMEM, "no memory for a team of %u ranks", t->ranks)
		     : cn_team_ready(t, now, joins, peers, n, err);
	free(joins);
	free(peers);
	return rc;
}

void cn_meeting_check(struct cn_team *t, cn_time now)
{
	bool complete;
	struct cn_err err;

	if (t->state != CN_TEAM_FORMING) {
		return;
	}
	t->look_at = now + look_interval(t);
	complete = count_all(t, now);
	if (t->state != CN_TEAM_FORMING) {
		return;
	}
	soon(t, t->look_at);
	t->complete = complete;
	t->npaths = complete ? cn_path_begin(t, now) : 0;
	if (t->state != CN_TEAM_FORMING) {
		return;
	}
	t->binding = 0; /* a peer that was lost and found again has a new record */
	if (complete && t->npaths == 0 && bind_all(t, now) && t->nbound == t->njoined &&
	    get_ready(t, now, &err) != COLLNET_OK) {
		cn_team_fail(t, now, true, err.code, "%s", err.text);
	}
}

void cn_meeting_expire(struct cn_team *t, cn_time now)
{
	t->check_at = CN_NEVER;
	if (t->look_at <= now) {
		t->announced = 0;
	}
	cn_meeting_announce(t, now);
	if (t->look_at <= now || (t->complete && t->npaths == 0 && bind_all(t, now) &&
				  t->nbound >= t->njoined)) {
		cn_meeting_check(t, now);
	}
	soon(t, t->look_at);
}

/* Somebody told of `more` ranks of the job, as this record says. */
static void check_job(struct cn_engine *e, cn_time now, const struct cn_join *j, uint32_t more)
{
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		struct cn_team *t = e->teams[i];

		if (t == NULL || t->state != CN_TEAM_FORMING || t->owner != j->owner ||
		    strcmp(t->job, j->job) != 0) {
			continue;
		}
		t->heard += more;
		if (t->heard >= t->ranks || j->ranks != t->ranks || j->topology != e->topology) {
			cn_meeting_check(t, now);
		}
	}
}

/* ---- being told ----------------------------------------------------------------------- */

static void on_join(struct cn_engine *e, cn_time now, struct cn_mate *m, struct cn_cursor *c)
{
	struct cn_join in = {0}, *j;
	char job[COLLNET_NAME_MAX + 1];
	uint32_t before = 0;

	in.nonce = cn_get32(c);
	in.slot = cn_get16(c);
	in.ranks = cn_get32(c);
	in.topology = cn_get32(c);
	in.owner = cn_get64(c);
	if (!cn_get_text(c, job, sizeof(job)) || !cn_valid_name(job) || in.ranks == 0 ||
	    in.ranks > COLLNET_RANKS_MAX || !cn_join_read(c, &in)) {
		cn_log(COLLNET_LOG_WARNING, "node %s sent a join that makes no sense",
		       cn_peer_name(m->peer));
		return;
	}
	j = cn_join_by_nonce(m, in.nonce);
	if (j != NULL && (j->ranks != in.ranks || j->owner != in.owner || strcmp(j->job, job) != 0)) {
		cn_log(COLLNET_LOG_WARNING, "node %s says that a team of it is another one now",
		       cn_peer_name(m->peer));
		cn_join_forget(&in);
		return;
	}
	if (j == NULL) {
		if (m->njoins == CN_TEAMS_MAX ||
		    (j = calloc(1, sizeof(*j) + strlen(job) + 1)) == NULL) {
			cn_log(COLLNET_LOG_WARNING, "node %s has too many teams",
			       cn_peer_name(m->peer));
			cn_join_forget(&in);
			return;
		}
		*j = in;
		memcpy(j->job, job, strlen(job) + 1);
		j->ranges = NULL;
		j->next = m->joins;
		m->joins = j;
		m->njoins++;
	} else {
		before = cn_join_ranks(j);
	}
	cn_join_take(j, &in);
	check_job(e, now, j, cn_join_ranks(j) > before ? cn_join_ranks(j) - before : 0);
}

static struct cn_team *team_by_nonce(struct cn_engine *e, uint32_t nonce)
{
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		if (e->teams[i] != NULL && e->teams[i]->nonce == nonce) {
			return e->teams[i];
		}
	}
	return NULL;
}

/* The ready team here in which the peer's team of this record takes part, and its node there. */
static struct cn_team *team_of(struct cn_engine *e, const struct cn_mate *m,
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

static void on_leave(struct cn_engine *e, cn_time now, struct cn_mate *m, struct cn_join *j,
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
static struct cn_team *forming_of(struct cn_engine *e, struct cn_mate *m, const struct cn_join *j)
{
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		struct cn_team *t = e->teams[i];

		if (t != NULL && t->state == CN_TEAM_FORMING && j->ranks == t->ranks &&
		    strcmp(j->job, t->job) == 0 && cn_join_find(m, t->owner, t->job) == j &&
		    (j->bound_mine == 0 || j->bound_mine == t->nonce)) {
			return t;
		}
	}
	return NULL;
}

static void on_fail(struct cn_engine *e, cn_time now, struct cn_mate *m, struct cn_join *j,
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

bool cn_meeting_control(struct cn_engine *e, cn_time now, struct cn_peer *p, const uint8_t *data,
			size_t len)
{
	/* The cursor reads only; its type serves writing too. */
	uint8_t *at = (uint8_t *)(uintptr_t)data;
	struct cn_cursor c = {at, at + len, false};
	struct cn_mate *m = cn_mate_of(p);
	struct cn_join *j;
	struct cn_team *t;
	uint8_t kind = cn_get8(&c);

	if (m == NULL) {
		return true;
	}
	if (kind == CN_CONTROL_JOIN) {
		on_join(e, now, m, &c);
		return true;
	}
	j = cn_join_by_nonce(m, cn_get32(&c));
	if (j == NULL) {
		return true; /* of a team that it never told us of, or has ended */
	}
	switch (kind) {
	case CN_CONTROL_BIND:
		j->bound_mine = cn_get32(&c);
		t = team_by_nonce(e, j->bound_mine);
		/* Before it is complete, the check that finds it so counts who has bound it. */
		if (t != NULL && t->state == CN_TEAM_FORMING && t->complete &&
		    ++t->nbound >= t->njoined) {
			cn_meeting_check(t, now);
		}
		break;
	case CN_CONTROL_LEAVE:
		on_leave(e, now, m, j, &c);
		break;
	case CN_CONTROL_END:
		cn_join_remove(m, j);
		break;
	case CN_CONTROL_FAIL:
		on_fail(e, now, m, j, &c);
		break;
	default:
		break;
	}
	return true;
}

void cn_meeting_peer_up(struct cn_engine *e, struct cn_peer *p)
{
	uint32_t i = cn_peer_index(p);

	for (uint32_t s = 0; s < e->config.max_teams; s++) {
		struct cn_team *t = e->teams[s];

		if (t == NULL) {
			continue;
		}
		t->told[i] = 0;
		if (t->state == CN_TEAM_FORMING && tell_join(t, p)) {
			t->told[i] = t->edition;
		}
	}
}

/* The sentence goes to all nodes, so it says who did not hear whom: a node that hears nobody takes
 * everybody else for silent. */
static void fail_by_loss(struct cn_team *t, cn_time now, const char *name, enum cn_peer_loss why)
{
	const char *own = t->engine->config.node.name;

	if (why == CN_PEER_SILENT) {
		cn_team_fail(t, now, true, COLLNET_EPEER, "node %s stopped answering node %s", name, own);
	} else if (why == CN_PEER_GAVE_UP) {
		cn_team_fail(t, now, true, COLLNET_EPEER, "node %s did not hear node %s for long and "
			     "gave up node %s", name, own, own);
	} else {
		cn_team_fail(t, now, true, COLLNET_EPEER, "node %s %s its daemon", name,
			     why == CN_PEER_RESTARTED ? "restarted" : "ended");
	}
}

void cn_meeting_peer_down(struct cn_engine *e, cn_time now, struct cn_peer *p,
			  enum cn_peer_loss why)
{
	struct cn_mate *m = cn_mate_of(p);
	uint32_t index = cn_peer_index(p);

	cn_join_remove_all(m);
	cn_owed_drop(e, p);
	for (uint32_t s = 0; s < e->config.max_teams; s++) {
		struct cn_team *t = e->teams[s];
		uint32_t k;

		if (t == NULL) {
			continue;
		}
		t->told[index] = 0;
		if (t->nodes == NULL || index >= t->npeers ||
		    t->node_by_peer[index] == UINT16_MAX) {
			continue;
		}
		k = t->node_by_peer[index];
		t->nodes[k].peer = NULL;
		if (t->nodes[k].left_after != UINT32_MAX) {
			continue; /* its ranks had left before: nobody misses it */
		}
		fail_by_loss(t, now, t->nodes[k].name, why);
	}
}
