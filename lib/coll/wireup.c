/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wire-up of a job: JOIN and COMMIT between the engines of its nodes.
 *
 * A forming team keeps a list of its candidates: the peers that announced the same job of the same
 * owner. Candidates come first and have a pace of their own, so that a job's wire-up depends on its
 * own nodes; all other peers are only told JOIN, at their own pace, until the team is complete. A
 * peer that does not answer delays neither.
 *
 * Both messages are idempotent. A JOIN to a candidate names the candidate's team id, which confirms
 * that this node knows it; a COMMIT is never sent before the JOIN it refers to. What is not
 * confirmed is repeated with backoff, so that no lost record leaves a team half formed: to
 * candidates from 50 ms on, to all peers from 2 s on, until the team is ready or its deadline
 * passes.
 */
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"

/* A forming team looks at its candidates again this often, in case no buffer was free. */
static const cn_time look_every = 20 * CN_MS;

static const cn_time repeat_first = 50 * CN_MS, repeat_most = 2000 * CN_MS;
static const cn_time announce_again = 2000 * CN_MS;

/* The team wants to be called not later than `at`. */
static void soon(struct cn_team *t, cn_time at)
{
	if (t->state == CN_TEAM_FORMING && at < t->check_at) {
		t->check_at = at;
		cn_engine_touch(t->engine);
	}
}

/* ---- candidates -------------------------------------------------------------------------- */

struct cn_join *cn_join_of(const struct cn_team *t, struct cn_peer *p)
{
	struct cn_engine_peer *m = cn_engine_peer_of(p);

	return m != NULL && cn_peer_alive(p) ? cn_join_find(m, t->owner, t->job) : NULL;
}

bool cn_wireup_agrees(const struct cn_team *t, const struct cn_join *j)
{
	return j->ranks == t->ranks && j->topology == t->engine->topology;
}

static struct cn_peer *candidate(const struct cn_team *t, uint32_t k)
{
	return cn_node_peer(t->engine->node, t->candidates[k]);
}

/* The peer announced the team's job. False: no memory. */
static bool add_candidate(struct cn_team *t, const struct cn_peer *p)
{
	uint32_t i = cn_peer_index(p), *more;

	if (t->told[i].candidate) {
		return true;
	}
	if (t->ncandidates == t->candidates_cap) {
		uint32_t cap = t->candidates_cap > 0 ? 2 * t->candidates_cap : 16;

		more = realloc(t->candidates, cap * sizeof(*more));
		if (more == NULL) {
			return false;
		}
		t->candidates = more;
		t->candidates_cap = cap;
	}
	t->candidates[t->ncandidates++] = i;
	t->told[i].candidate = true;
	return true;
}

void cn_wireup_begin(struct cn_team *t, cn_time now)
{
	struct cn_engine *e = t->engine;

	for (uint32_t i = 0; i < cn_node_peers(e->node); i++) {
		struct cn_peer *p = cn_node_peer(e->node, i);

		if (cn_join_of(t, p) != NULL) {
			add_candidate(t, p);
		}
	}
	t->repeat_wait = repeat_first;
	t->repeat_at = now + repeat_first;
	t->announce_wait = announce_again;
	t->announce_at = now + announce_again;
}

/* ---- messages -------------------------------------------------------------------------- */

static bool tell(struct cn_engine *e, struct cn_peer *p, const uint8_t *m,
		 const struct cn_cursor *c)
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

static void put_join(struct cn_cursor *c, struct cn_team *t, struct cn_peer *p)
{
	const struct cn_join *j = cn_join_of(t, p);

	cn_put8(c, CN_CONTROL_JOIN);
	cn_put32(c, t->id);
	cn_put16(c, t->slot);
	cn_put32(c, t->ranks);
	cn_put32(c, t->engine->topology);
	cn_put64(c, t->owner);
	cn_put32(c, j != NULL ? j->id : 0);
	cn_put_text(c, t->job);
	put_ranges(c, t);
	if (c->bad && !t->scattered) {
		t->scattered = true;
		cn_log(COLLNET_LOG_ERROR, "job %s: the ranks of this node are too scattered",
		       t->job);
	}
}

/* False: no buffer. */
static bool send_join(struct cn_team *t, struct cn_peer *p)
{
	uint8_t m[CN_CONTROL_MAX];
	struct cn_cursor c = { m, m + sizeof(m), false };

	put_join(&c, t, p);
	if (!tell(t->engine, p, m, &c)) {
		return false;
	}
	t->told[cn_peer_index(p)].version = t->version;
	return true;
}

void cn_wireup_send_joins(struct cn_team *t)
{
	for (uint32_t k = 0; k < t->ncandidates; k++) {
		struct cn_peer *p = candidate(t, k);
		struct cn_told *told = &t->told[t->candidates[k]];
		uint8_t m[CN_CONTROL_MAX];
		struct cn_cursor c = { m, m + sizeof(m), false };

		if (told->version != 0 || cn_join_of(t, p) == NULL) {
			continue;
		}
		put_join(&c, t, p);
		if (!c.bad) {
			cn_pending_send(t->engine, p, m, (size_t)(c.at - m));
			told->version = t->version;
		}
	}
}

static bool send_commit(struct cn_team *t, struct cn_peer *p, struct cn_join *j, bool ask)
{
	uint8_t m[16];
	struct cn_cursor c = { m, m + sizeof(m), false };

	cn_put8(&c, CN_CONTROL_COMMIT);
	cn_put32(&c, t->id);
	cn_put32(&c, j->id);
	cn_put8(&c, ask);
	if (!tell(t->engine, p, m, &c)) {
		return false;
	}
	j->commit_sent = t->id;
	return true;
}

/*
 * Pacing. In a large cluster all nodes tell all others the same things at about the same time, so
 * every node begins with another peer and, beyond the first few, sends one message each 100 us.
 * False: not now; check_at is set.
 */
#define AT_ONCE 16u
static const cn_time tell_every = 100 * CN_US;

static bool may_tell(struct cn_team *t, cn_time now, cn_time *until)
{
	if (*until < now) {
		*until = now;
	}
	if (*until >= now + AT_ONCE * tell_every) {
		soon(t, now + AT_ONCE / 2 * tell_every);
		return false;
	}
	*until += tell_every;
	return true;
}

static uint32_t first_peer(const struct cn_team *t, uint32_t n)
{
	return n > 0 ? (uint32_t)(cn_mix64(t->engine->config.node.epoch) % n) : 0;
}

/* False: not all yet; it goes on when its time has come. */
static bool tell_candidates(struct cn_team *t, cn_time now)
{
	if (!t->candidates_due) {
		return true;
	}
	for (uint32_t k = 0; k < t->ncandidates; k++) {
		struct cn_peer *p = candidate(t, k);

		if (t->told[t->candidates[k]].version == t->version || cn_join_of(t, p) == NULL) {
			continue;
		}
		if (!may_tell(t, now, &t->candidates_until)) {
			return false;
		}
		if (!send_join(t, p)) {
			soon(t, now + look_every);
			return false;
		}
	}
	t->candidates_due = false;
	return true;
}

void cn_wireup_announce(struct cn_team *t, cn_time now)
{
	struct cn_engine *e = t->engine;

	if (!tell_candidates(t, now) || t->complete) {
		return; /* nobody else has a rank of it */
	}
	if (t->announced == 0) {
		t->announce_n = cn_node_peers(e->node); /* later ones are told when they come up */
	}
	while (t->announced < t->announce_n) {
		uint32_t i = (first_peer(t, t->announce_n) + t->announced) % t->announce_n;
		struct cn_peer *p = cn_node_peer(e->node, i);

		if (cn_peer_alive(p) && t->told[i].version != t->version) {
			if (!may_tell(t, now, &t->told_until)) {
				return;
			}
			if (!send_join(t, p)) {
				soon(t, now + look_every); /* no buffer */
				return;
			}
		}
		t->announced++;
	}
}

/* False: it is sent later; the next one at cn_wireup_expire(). */
static bool commit_to(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j)
{
	if (j->commit_sent == t->id) {
		return true;
	}
	if (!may_tell(t, now, &t->candidates_until)) {
		return false;
	}
	/* Where the peer does not know the team, a COMMIT means nothing. */
	if ((t->told[cn_peer_index(p)].version != t->version && !send_join(t, p)) ||
	    !send_commit(t, p, j, false)) {
		soon(t, now + look_every);
		return false;
	}
	return true;
}

/* All ranks are there: binds the team to their nodes', from where it stopped last. True: to all. */
static bool commit_all(struct cn_team *t, cn_time now)
{
	while (t->next_commit < t->ncandidates) {
		struct cn_peer *p = candidate(t, t->next_commit);
		struct cn_join *j = cn_join_of(t, p);

		if (j != NULL && cn_wireup_agrees(t, j) && !commit_to(t, now, p, j)) {
			return false;
		}
		t->next_commit++;
	}
	return true;
}

/* ---- repetition ------------------------------------------------------------------------- */

/* Candidates that did not confirm what they were told are told again. */
static void repeat(struct cn_team *t, cn_time now)
{
	for (uint32_t k = 0; k < t->ncandidates; k++) {
		struct cn_peer *p = candidate(t, k);
		struct cn_join *j = cn_join_of(t, p);
		bool commit;

		if (j == NULL || !cn_wireup_agrees(t, j)) {
			continue;
		}
		commit = t->complete && t->npaths == 0 && j->commit_received != t->id;
		if (!commit && t->told[t->candidates[k]].confirmed) {
			continue;
		}
		if (!may_tell(t, now, &t->candidates_until) || !send_join(t, p) ||
		    (commit && !send_commit(t, p, j, true))) {
			break; /* the rest at the next repetition */
		}
	}
	t->repeat_wait = cn_min_time(2 * t->repeat_wait, repeat_most);
	t->repeat_at = now + t->repeat_wait;
}

/* All peers, too, less and less often. */
static void begin_again(struct cn_team *t, cn_time now)
{
	for (uint32_t i = 0; i < cn_node_peers(t->engine->node); i++) {
		if (!t->told[i].confirmed) {
			t->told[i].version = 0;
		}
	}
	t->announced = 0;
	t->candidates_due = true;
	t->announce_wait *= 2;
	t->announce_at = now + t->announce_wait;
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

/* False: a rank of the record is on another node too; *rank is it. */
static bool claim_join(struct cn_team *t, const struct cn_join *j, uint32_t *rank)
{
	for (uint32_t i = 0; i < j->nranges; i++) {
		for (uint32_t k = 0; k < j->ranges[i].n; k++) {
			*rank = j->ranges[i].first + k;
			if (!claim(t, *rank)) {
				return false;
			}
		}
	}
	return true;
}

static void fail_by_contradiction(struct cn_team *t, cn_time now, const struct cn_join *j,
				  const struct cn_peer *p)
{
	const char *name = cn_peer_name(p), *own = t->engine->config.node.name;

	if (j->ranks != t->ranks) {
		cn_team_fail(t, now, false, COLLNET_EMISMATCH,
			     "job %s has %u ranks on node %s and %u on node %s: start all with the "
			     "same size",
			     t->job, j->ranks, name, t->ranks, own);
	} else {
		cn_team_fail(t, now, false, COLLNET_EMISMATCH,
			     "nodes %s and %s have different topology files: give all the same",
			     name, own);
	}
}

/*
 * False: some are missing, or there is a contradiction. What contradicts may be of an earlier run,
 * of which the end is still under way, so it is borne until t->patience. A record of another size
 * or topology does not count, and ends the team only if ranks are missing without it.
 */
static bool count_all(struct cn_team *t, cn_time now)
{
	const struct cn_join *odd = NULL;
	const struct cn_peer *odd_peer = NULL;
	uint32_t rank;

	memset(t->present, 0, (t->ranks + 63) / 64 * sizeof(*t->present));
	t->npresent = t->njoined = t->ncommitted = 0;
	for (const struct cn_member *m = t->members; m != NULL; m = m->next) {
		claim(t, m->rank);
	}
	for (uint32_t k = 0; k < t->ncandidates; k++) {
		struct cn_peer *p = candidate(t, k);
		struct cn_join *j = cn_join_of(t, p);

		if (j != NULL && !cn_wireup_agrees(t, j)) {
			odd = j;
			odd_peer = p;
		} else if (j != NULL && !claim_join(t, j, &rank)) {
			t->heard = t->ranks; /* look again at whatever comes */
			if (now >= t->patience) {
				cn_team_fail(
					t, now, false, COLLNET_EMISMATCH,
					"rank %u of job %s is on node %s and on another one: give "
					"every process its own rank",
					rank, t->job, cn_peer_name(p));
			}
			return false;
		} else if (j != NULL) {
			t->njoined++;
			t->ncommitted += j->commit_received == t->id;
		}
	}
	t->heard = t->npresent;
	if (odd != NULL && t->npresent < t->ranks && now >= t->patience) {
		fail_by_contradiction(t, now, odd, odd_peer);
		return false;
	}
	return t->npresent == t->ranks;
}

static int get_ready(struct cn_team *t, cn_time now, struct cn_err *err)
{
	struct cn_join **joins = calloc((size_t)t->njoined + 1, sizeof(*joins));
	struct cn_peer **peers = calloc((size_t)t->njoined + 1, sizeof(*peers));
	uint32_t n = 0;
	int rc;

	for (uint32_t k = 0; joins != NULL && peers != NULL && k < t->ncandidates; k++) {
		struct cn_peer *p = candidate(t, k);
		struct cn_join *j = cn_join_of(t, p);

		if (j != NULL && cn_wireup_agrees(t, j)) {
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

void cn_wireup_check(struct cn_team *t, cn_time now)
{
	bool complete;
	struct cn_err err;

	if (t->state != CN_TEAM_FORMING) {
		return;
	}
	t->look_at = now + look_every;
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
	t->next_commit = 0; /* a peer that was lost and found again has a new record */
	if (complete && t->npaths == 0 && commit_all(t, now) && t->ncommitted == t->njoined &&
	    get_ready(t, now, &err) != COLLNET_OK) {
		cn_team_fail(t, now, true, err.code, "%s", err.text);
	}
}

void cn_wireup_expire(struct cn_team *t, cn_time now)
{
	t->check_at = CN_NEVER;
	if (t->announce_at <= now && !t->complete) {
		begin_again(t, now);
	}
	if (t->repeat_at <= now) {
		repeat(t, now);
	}
	if (t->look_at <= now) {
		t->candidates_due = true;
	}
	cn_wireup_announce(t, now);
	if (t->look_at <= now ||
	    (t->complete && t->npaths == 0 && commit_all(t, now) && t->ncommitted >= t->njoined)) {
		cn_wireup_check(t, now);
	}
	soon(t, t->look_at);
}

/* ---- what others tell -------------------------------------------------------------------- */

void cn_wireup_joined(struct cn_team *t, cn_time now, struct cn_peer *p, const struct cn_join *j,
		      uint32_t more, bool known)
{
	struct cn_told *told = &t->told[cn_peer_index(p)];

	if (!add_candidate(t, p)) {
		soon(t, now + look_every);
		return;
	}
	if (known) {
		told->confirmed = true;
	} else if (told->confirmed || more == cn_join_ranks(j)) {
		/* It may not have kept what it was told before it had a rank. */
		told->confirmed = false;
		told->version = 0;
	}
	t->candidates_due = true;
	tell_candidates(t, now);
	t->heard += more;
	if (!cn_wireup_agrees(t, j)) {
		soon(t, t->look_at);
	} else if (t->heard >= t->ranks) {
		cn_wireup_check(t, now);
	}
}

void cn_wireup_ended(struct cn_team *t, cn_time now)
{
	t->complete = false;
	t->look_at = now;
	soon(t, now);
}

void cn_wireup_committed(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j,
			 bool first, bool ask)
{
	t->told[cn_peer_index(p)].confirmed = true;
	/* Before it is complete, the check that finds it so counts who has bound it. */
	if (t->state == CN_TEAM_FORMING && t->complete && first && ++t->ncommitted >= t->njoined) {
		cn_wireup_check(t, now);
	}
	/* It lacks this node's COMMIT. */
	if (ask && j->commit_sent == t->id && t->state != CN_TEAM_FAILED &&
	    may_tell(t, now, &t->candidates_until) && send_join(t, p)) {
		send_commit(t, p, j, false);
	}
}

void cn_wireup_peer_up(struct cn_team *t, struct cn_peer *p)
{
	struct cn_told *told = &t->told[cn_peer_index(p)];

	told->version = 0;
	told->confirmed = false;
	if (t->state == CN_TEAM_FORMING) {
		send_join(t, p);
	}
}
