/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a forming team: its candidates, and whether all ranks are known; see wireup.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "util/vector.h"

/* Announcements of a job may be from an earlier run whose END is still in flight. */
static const cn_time grace_period = 500 * CN_MS;
/* A check also retries messages that found no buffer. */
static const cn_time check_every = 20 * CN_MS;

void cn_wireup_wake(struct cn_team *t, cn_time at)
{
	if (t->state == CN_TEAM_FORMING && at < t->wireup.wake_at) {
		t->wireup.wake_at = at;
		cn_team_touch(t);
	}
}

/* ---- candidates -------------------------------------------------------------------------- */

struct cn_join *cn_wireup_committed_of(const struct cn_team *t, const struct cn_peer *p)
{
	const struct cn_engine_peer *m = cn_engine_peer_of(p);
	const uint32_t id = cn_wireup_advertised(t, cn_peer_index(p))->committed;
	struct cn_join *j = m != NULL && id != 0 ? cn_join_by_id(&m->joins, id) : NULL;

	return j != NULL && j->commit_received == t->id && j->commit_sent == t->id ? j : NULL;
}

void cn_wireup_record_commit(struct cn_team *t, const struct cn_peer *p, const struct cn_join *j)
{
	struct cn_advertised *a = cn_wireup_advertise(t, cn_peer_index(p));

	if (a != NULL && j->commit_received == t->id && j->commit_sent == t->id) {
		a->committed = j->id;
	}
}

struct cn_join *cn_wireup_join_of(const struct cn_team *t, struct cn_peer *p)
{
	const struct cn_engine_peer *m = cn_engine_peer_of(p);
	struct cn_join *j;

	if (m == NULL || !cn_peer_alive(p)) {
		return NULL;
	}
	j = cn_wireup_committed_of(t, p);
	return j != NULL ? j : cn_join_find(&m->joins, t->owner, t->job);
}

void cn_wireup_remove(struct cn_team *t, bool all)
{
	for (uint32_t k = 0; k < t->wireup.ncandidates; k++) {
		const struct cn_peer *p = cn_wireup_candidate(t, k);
		struct cn_join *j = cn_wireup_committed_of(t, p);

		if (j != NULL && (all || j->ended)) {
			cn_join_remove(&cn_engine_peer_of(p)->joins, j);
		}
	}
}

bool cn_wireup_agrees(const struct cn_team *t, const struct cn_join *j)
{
	return j->ranks == t->ranks && j->topology == t->topology;
}

struct cn_peer *cn_wireup_candidate(const struct cn_team *t, uint32_t k)
{
	return cn_node_peer(t->engine->own.node, t->wireup.candidates[k]);
}

const struct cn_advertised *cn_wireup_advertised(const struct cn_team *t, uint32_t peer)
{
	static const struct cn_advertised nothing;

	return peer < t->wireup.nadvertised ? &t->wireup.advertised[peer] : &nothing;
}

struct cn_advertised *cn_wireup_advertise(struct cn_team *t, uint32_t peer)
{
	struct cn_wireup *w = &t->wireup;
	const uint32_t n = cn_node_peers(t->engine->own.node), old = w->nadvertised;
	struct cn_advertised *more;

	if (peer >= old) { /* for all peers that there are now */
		more = realloc(w->advertised, n * sizeof(*more));
		if (more == NULL) {
			return NULL;
		}
		memset(more + old, 0, (n - old) * sizeof(*more));
		w->advertised = more;
		w->nadvertised = n;
	}
	return &w->advertised[peer];
}

/* The peer announced the team's job. False: no memory. */
static bool add_candidate(struct cn_team *t, const struct cn_peer *p)
{
	struct cn_wireup *w = &t->wireup;
	uint32_t i = cn_peer_index(p), *more;
	struct cn_advertised *a = cn_wireup_advertise(t, i);

	if (a == NULL || a->candidate) {
		return a != NULL;
	}
	more = cn_vector_grow(w->candidates, w->ncandidates, &w->candidates_cap, sizeof(*more));
	if (more == NULL) {
		return false;
	}
	w->candidates = more;
	w->candidates[w->ncandidates++] = i;
	a->candidate = true;
	return true;
}

bool cn_wireup_init(struct cn_wireup *w, uint32_t ranks)
{
	w->present = calloc(CN_BIT_WORDS(ranks), sizeof(*w->present));
	w->seen = calloc(CN_BIT_WORDS(ranks), sizeof(*w->seen));
	w->wake_at = CN_NEVER;
	return w->present != NULL && w->seen != NULL;
}

void cn_wireup_fini(struct cn_wireup *w)
{
	free(w->advertised);
	free(w->candidates);
	free(w->members);
	free(w->present);
	free(w->seen);
}

void cn_wireup_begin(struct cn_team *t, cn_time now)
{
	struct cn_engine *e = t->engine;

	for (uint32_t i = 0; i < cn_node_peers(e->own.node); i++) {
		struct cn_peer *p = cn_node_peer(e->own.node, i);

		struct cn_join *j = cn_wireup_join_of(t, p);

		if (j != NULL && add_candidate(t, p) && t->wireup.derived &&
		    cn_wireup_agrees(t, j)) {
			cn_wireup_adopt(t, now, p, j);
		}
	}
	t->wireup.grace_until = now + grace_period;
	cn_wireup_announce_begin(t, now);
}

bool cn_wireup_derive(struct cn_team *t, const struct cn_team *parent, const uint64_t *members)
{
	const struct cn_layout *l = &parent->layout;
	const size_t bytes = CN_BIT_WORDS(parent->ranks) * sizeof(*members);

	t->wireup.members = malloc(bytes);
	if (t->wireup.members == NULL) {
		return false;
	}
	memcpy(t->wireup.members, members, bytes);
	t->wireup.derived = true;
	for (uint32_t k = 0; k < l->nnodes; k++) {
		const struct cn_peer *p = parent->nodes[k].peer;
		uint32_t n = 0;

		for (uint32_t i = l->first[k]; i < l->first[k + 1]; i++) {
			n += cn_bit(members, l->ranks[i]);
		}
		if (k == parent->me) {
			t->wireup.expected = n;
		} else if (n > 0 && p != NULL) {
			const struct cn_peer *own = cn_engine_peer_of(p)->peer;

			if (!add_candidate(t, own)) {
				return false;
			}
			cn_wireup_advertise(t, cn_peer_index(own))->member = true;
		}
	}
	return true;
}

bool cn_wireup_learn(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j)
{
	struct cn_advertised *a;

	if (!add_candidate(t, p)) {
		return false;
	}
	a = cn_wireup_advertise(t, cn_peer_index(p));
	a->member = a->confirmed = true;
	a->version = t->wireup.version;
	return cn_wireup_adopt(t, now, p, j);
}

void cn_wireup_ranks_changed(struct cn_team *t, cn_time now)
{
	if (t->nlocal < t->wireup.expected && t->wireup.version == 0) {
		return; /* they are announced together */
	}
	t->wireup.version++;
	t->wireup.announced = 0;
	t->wireup.candidates_due = true;
	cn_wireup_announce(t, now);
}

/* ---- are all ranks known? ---------------------------------------------------------------- */

/* The rank's bit is set; false: it was. */
static bool mark_present(struct cn_team *t, uint32_t rank)
{
	if (cn_bit(t->wireup.present, rank)) {
		return false;
	}
	cn_bit_set(t->wireup.present, rank);
	cn_bit_set(t->wireup.seen, rank);
	t->wireup.npresent++;
	return true;
}

/* False: a rank of the record is on another node too; *rank is it. */
static bool mark_join(struct cn_team *t, const struct cn_join *j, uint32_t *rank)
{
	for (uint32_t i = 0; i < j->nranges; i++) {
		for (uint32_t k = 0; k < j->ranges[i].n; k++) {
			*rank = cn_range_rank(&j->ranges[i], k);
			if (!mark_present(t, *rank)) {
				return false;
			}
		}
	}
	return true;
}

/* The first node that has the rank, of this one and the candidates. */
static const char *node_of(struct cn_team *t, uint32_t wanted)
{
	for (const struct cn_member *m = t->members; m != NULL; m = m->next) {
		if (m->rank == wanted) {
			return t->engine->config.node.name;
		}
	}
	for (uint32_t k = 0; k < t->wireup.ncandidates; k++) {
		struct cn_peer *p = cn_wireup_candidate(t, k);
		const struct cn_join *j = cn_wireup_join_of(t, p);

		for (uint32_t i = 0; j != NULL && cn_wireup_agrees(t, j) && i < j->nranges; i++) {
			for (uint32_t n = 0; n < j->ranges[i].n; n++) {
				if (cn_range_rank(&j->ranges[i], n) == wanted) {
					return cn_peer_name(p);
				}
			}
		}
	}
	return "?"; /* unreachable */
}

static void fail_by_contradiction(struct cn_team *t, const struct cn_join *j,
				  const struct cn_peer *p)
{
	const char *name = cn_peer_name(p), *own = t->engine->config.node.name;

	t->wireup.contradicts = true;
	if (j->ranks != t->ranks) {
		cn_team_fail(t, true, COLLNET_EMISMATCH,
			     "job %s has %u ranks on node %s and %u on node %s: start all with the "
			     "same size",
			     t->job, j->ranks, name, t->ranks, own);
	} else {
		cn_team_fail(t, true, COLLNET_EMISMATCH,
			     "nodes %s and %s have different topology files: give all the same",
			     name, own);
	}
}

/*
 * False: some are missing, or there is a contradiction. A contradiction may be from an earlier run
 * whose END is still in flight, so it is tolerated until t->wireup.grace_until. A record of another
 * size or topology does not count, and ends the team only if ranks are missing without it.
 */
static bool count_all(struct cn_team *t, cn_time now)
{
	const struct cn_join *odd = NULL;
	const struct cn_peer *odd_peer = NULL;
	uint32_t rank;

	memset(t->wireup.present, 0, CN_BIT_WORDS(t->ranks) * sizeof(*t->wireup.present));
	t->wireup.npresent = t->wireup.njoined = t->wireup.ncommitted = 0;
	for (const struct cn_member *m = t->members; m != NULL; m = m->next) {
		mark_present(t, m->rank);
	}
	for (uint32_t k = 0; k < t->wireup.ncandidates; k++) {
		struct cn_peer *p = cn_wireup_candidate(t, k);
		struct cn_join *j = cn_wireup_join_of(t, p);

		if (j != NULL && !cn_wireup_agrees(t, j)) {
			odd = j;
			odd_peer = p;
		} else if (j != NULL && !mark_join(t, j, &rank)) {
			t->wireup.known = t->ranks; /* check again at any message */
			if (now >= t->wireup.grace_until) {
				t->wireup.contradicts = true;
				cn_team_fail(t, true, COLLNET_EMISMATCH,
					     "rank %u of job %s is on node %s and on node %s: give "
					     "every process its own rank",
					     rank, t->job, node_of(t, rank), cn_peer_name(p));
			}
			return false;
		} else if (j != NULL) {
			t->wireup.njoined++;
			t->wireup.ncommitted += j->commit_received == t->id;
		}
	}
	t->wireup.known = t->wireup.npresent;
	if (odd != NULL && t->wireup.npresent < t->ranks && now >= t->wireup.grace_until) {
		fail_by_contradiction(t, odd, odd_peer);
		return false;
	}
	if (t->wireup.refused_until != 0 && t->wireup.npresent < t->ranks &&
	    now >= t->wireup.refused_until) {
		t->wireup.contradicts = true;
		cn_team_fail(t, true, COLLNET_EMISMATCH, "%s", t->wireup.contradiction);
		return false;
	}
	return t->wireup.npresent == t->ranks;
}

/* The ranks here may be the wrong ones, or may wait for the refused one. */
void cn_wireup_refused(struct cn_team *t, cn_time now, const char *text)
{
	struct cn_wireup *w = &t->wireup;

	snprintf(w->contradiction, sizeof(w->contradiction), "%s", text);
	if (w->refused_until == 0) {
		w->refused_until = now + grace_period;
	}
}

static int get_ready(struct cn_team *t, struct cn_err *err)
{
	struct cn_join **joins = calloc((size_t)t->wireup.njoined + 1, sizeof(*joins));
	struct cn_peer **peers = calloc((size_t)t->wireup.njoined + 1, sizeof(*peers));
	uint32_t n = 0;
	int rc;

	for (uint32_t k = 0; joins != NULL && peers != NULL && k < t->wireup.ncandidates; k++) {
		struct cn_peer *p = cn_wireup_candidate(t, k);
		struct cn_join *j = cn_wireup_join_of(t, p);

		if (j != NULL && cn_wireup_agrees(t, j)) {
			joins[n] = j;
			peers[n++] = p;
		}
	}
	rc = joins == NULL || peers == NULL
		     ? cn_fail(err, COLLNET_ENOMEM, "no memory for a team of %u ranks", t->ranks)
		     : cn_team_ready(t, joins, peers, n, err);
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
	t->wireup.check_at = now + check_every;
	complete = count_all(t, now);
	if (t->state != CN_TEAM_FORMING) {
		return;
	}
	cn_wireup_wake(t, t->wireup.check_at);
	t->wireup.complete = complete;
	t->wireup.npaths = complete ? cn_wireup_path_begin(t, now) : 0;
	if (t->state != CN_TEAM_FORMING) {
		return;
	}
	t->wireup.next_commit = 0; /* a peer that was lost and found again has a new record */
	if (complete && t->wireup.npaths == 0 && cn_wireup_commit_all(t, now) &&
	    t->wireup.ncommitted == t->wireup.njoined && get_ready(t, &err) != COLLNET_OK) {
		cn_team_fail(t, true, err.code, "%s", err.text);
	}
}

void cn_wireup_expire(struct cn_team *t, cn_time now)
{
	t->wireup.wake_at = CN_NEVER;
	cn_wireup_repeat(t, now);
	if (t->wireup.check_at <= now) {
		t->wireup.candidates_due = true;
	}
	cn_wireup_announce(t, now);
	if (t->wireup.check_at <= now ||
	    (t->wireup.complete && t->wireup.npaths == 0 && cn_wireup_commit_all(t, now) &&
	     t->wireup.ncommitted >= t->wireup.njoined)) {
		cn_wireup_check(t, now);
	}
	cn_wireup_wake(t, t->wireup.check_at);
}

/* ---- input ------------------------------------------------------------------------------- */

void cn_wireup_joined(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j,
		      uint32_t more, bool confirmed)
{
	struct cn_advertised *a;

	if (!add_candidate(t, p)) {
		return;
	}
	a = cn_wireup_advertise(t, cn_peer_index(p));
	if (t->wireup.derived && cn_wireup_agrees(t, j)) {
		cn_wireup_adopt(t, now, p, j);
	}
	if (confirmed) {
		a->confirmed = true;
	} else if (t->wireup.derived) {
		/* The peer stores JOINs received before. */
	} else if (a->confirmed || more == cn_join_ranks(j)) {
		/* The peer may have dropped JOINs received before it had a rank. */
		a->confirmed = false;
		a->version = 0;
	}
	t->wireup.candidates_due = true;
	cn_wireup_announce_candidates(t, now);
	t->wireup.known += more;
	if (!cn_wireup_agrees(t, j)) {
		cn_wireup_wake(t, t->wireup.check_at);
	} else if (t->wireup.known >= t->ranks) {
		cn_wireup_check(t, now);
	}
}

/*
 * A waiting team of an earlier run fails as soon as it learns of this one, which may form after
 * that. One as old as this team fails at the end of its grace period.
 */
void cn_wireup_contradicted(struct cn_team *t, cn_time now, const char *text)
{
	if (now + grace_period / 2 < t->wireup.grace_until) {
		snprintf(t->wireup.contradiction, sizeof(t->wireup.contradiction), "%s", text);
	} else {
		cn_team_fail(t, false, COLLNET_EMISMATCH, "%s", text);
	}
}

void cn_wireup_ended(struct cn_team *t, cn_time now)
{
	t->wireup.complete = false;
	t->wireup.check_at = now;
	cn_wireup_wake(t, now);
}

void cn_wireup_committed(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j,
			 bool first, bool ask)
{
	struct cn_advertised *a = cn_wireup_advertise(t, cn_peer_index(p));

	if (a != NULL) {
		a->confirmed = true;
	}
	cn_wireup_record_commit(t, p, j);
	/* Before it is complete, the check that finds it so counts who has committed. */
	if (t->state == CN_TEAM_FORMING && t->wireup.complete && first &&
	    ++t->wireup.ncommitted >= t->wireup.njoined) {
		cn_wireup_check(t, now);
	}
	if (ask && j->commit_sent == t->id && t->state != CN_TEAM_FAILED) {
		cn_wireup_commit_again(t, now, p, j);
	}
}

/* The peer has lost its state. lost: as in struct cn_advertised. */
static void advertise_anew(struct cn_team *t, const struct cn_peer *p, uint8_t lost)
{
	if (cn_peer_index(p) < t->wireup.nadvertised) {
		struct cn_advertised *a = &t->wireup.advertised[cn_peer_index(p)];

		a->version = 0;
		a->confirmed = false;
		a->lost = lost;
	}
}

void cn_wireup_peer_up(struct cn_team *t, struct cn_peer *p)
{
	advertise_anew(t, p, 0);
	if (t->state == CN_TEAM_FORMING && cn_wireup_announces_to(t, cn_peer_index(p))) {
		cn_wireup_send_join(t, p);
	}
}

void cn_wireup_peer_down(struct cn_team *t, const struct cn_peer *p, enum cn_peer_loss why)
{
	advertise_anew(t, p, (uint8_t)(1 + why));
}
