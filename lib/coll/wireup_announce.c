/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending JOIN and COMMIT: encoding, pacing and repetition; see wireup.h. */
#include "coll/control.h"
#include "coll/engine_state.h"
#include "coll/team.h"
#include "util/byteorder.h"

static const cn_time repeat_first = 50 * CN_MS, repeat_most = 2000 * CN_MS;
static const cn_time announce_again = 2000 * CN_MS;

static bool send(struct cn_engine *e, struct cn_peer *p, const uint8_t *m,
		 const struct cn_cursor *c)
{
	if (c->bad) {
		return false;
	}
	return cn_node_control(e->own.node, p, m, (size_t)(c->at - m)) == COLLNET_OK;
}

/* The team's local ranks as ranges, of ranks one after the other or, where every rank is on another
 * node than the one before it, as far apart. Members are kept in ascending order of rank. */
static void put_ranges(struct cn_cursor *c, const struct cn_team *t)
{
	uint8_t *count_at = c->at;
	uint16_t count = 0;

	cn_put16(c, 0);
	for (const struct cn_member *m = t->members; m != NULL;) {
		const uint32_t first = m->rank, step = m->next != NULL ? m->next->rank - first : 1;
		uint32_t n = 0;

		while (m != NULL && m->rank == first + n * step) {
			n++;
			m = m->next;
		}
		cn_put32(c, first);
		cn_put16(c, (uint16_t)(step - 1));
		cn_put16(c, (uint16_t)n);
		count++;
	}
	if (!c->bad) {
		cn_put_be16(count_at, count);
	}
}

static void put_join(struct cn_cursor *c, struct cn_team *t, struct cn_peer *p)
{
	const struct cn_join *j = cn_wireup_join_of(t, p);

	cn_put8(c, CN_CONTROL_JOIN);
	cn_put32(c, t->id);
	cn_put16(c, t->transport->port);
	cn_put32(c, t->ranks);
	cn_put32(c, t->topology);
	cn_put64(c, t->owner);
	cn_put32(c, j != NULL ? j->id : 0);
	cn_put_text(c, t->job);
	put_ranges(c, t);
	cn_put32(c, t->link_mbit);
	t->wireup.scattered = c->bad;
}

/* False: no buffer, or no memory. */
bool cn_wireup_send_join(struct cn_team *t, struct cn_peer *p)
{
	uint8_t m[CN_CONTROL_MAX];
	struct cn_cursor c = { m, m + sizeof(m), false };
	struct cn_advertised *a = cn_wireup_advertise(t, cn_peer_index(p));

	put_join(&c, t, p);
	if (a == NULL || !send(t->engine, p, m, &c)) {
		return false;
	}
	a->version = t->wireup.version;
	return true;
}

bool cn_wireup_is_announced_to(const struct cn_team *t, const struct cn_peer *p)
{
	return t->wireup.version > 0 &&
	       cn_wireup_advertised(t, cn_peer_index(p))->version == t->wireup.version;
}

void cn_wireup_pend_joins(struct cn_team *t)
{
	for (uint32_t k = 0; k < t->wireup.ncandidates; k++) {
		struct cn_peer *p = cn_wireup_candidate(t, k);
		struct cn_advertised *a = &t->wireup.advertised[t->wireup.candidates[k]];
		uint8_t m[CN_CONTROL_MAX];
		struct cn_cursor c = { m, m + sizeof(m), false };

		if (a->version != 0 || cn_wireup_join_of(t, p) == NULL) {
			continue;
		}
		put_join(&c, t, p);
		if (!c.bad && cn_pending_send(&t->engine->own.pending, p, m, (size_t)(c.at - m))) {
			a->version = t->wireup.version;
		}
	}
}

/* A node that has received COMMIT may send data, so the transport is connected first. */
static bool send_commit(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j,
			bool ask)
{
	uint8_t m[16];
	struct cn_cursor c = { m, m + sizeof(m), false };

	cn_put8(&c, CN_CONTROL_COMMIT);
	cn_put32(&c, t->id);
	cn_put32(&c, j->id);
	cn_put8(&c, ask);
	if (!cn_transport_connect(t->transport, now, p, j) || !send(t->engine, p, m, &c)) {
		return false;
	}
	cn_join_commit(&cn_engine_peer_of(p)->joins, j, j->commit_received, t->id);
	cn_wireup_record_commit(t, p, j);
	return true;
}

bool cn_wireup_announces_to(const struct cn_team *t, uint32_t peer)
{
	return !t->wireup.derived ||
	       (t->wireup.version > 0 && cn_wireup_advertised(t, peer)->member);
}

bool cn_wireup_adopt(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j)
{
	if (j->commit_sent != t->id && !cn_transport_connect(t->transport, now, p, j)) {
		return false;
	}
	cn_join_commit(&cn_engine_peer_of(p)->joins, j, t->id, t->id);
	cn_wireup_record_commit(t, p, j);
	return true;
}

/*
 * Pacing. In a large cluster all nodes send all others the same messages at about the same time, so
 * every node begins with another peer and, beyond the first few, sends one message each 100 us.
 * False: not now; the team is woken when it may go on.
 */
#define AT_ONCE 16u
static const cn_time send_every = 100 * CN_US;

static bool may_send(struct cn_team *t, cn_time now, cn_time *until)
{
	if (*until < now) {
		*until = now;
	}
	if (*until >= now + AT_ONCE * send_every) {
		cn_wireup_wake(t, now + AT_ONCE / 2 * send_every);
		return false;
	}
	*until += send_every;
	return true;
}

static uint32_t first_peer(const struct cn_team *t, uint32_t n)
{
	return n > 0 ? (uint32_t)(cn_mix64(t->engine->config.node.epoch) % n) : 0;
}

/* False: not all yet; it goes on when its time has come. */
static bool announce_to_candidates(struct cn_team *t, cn_time now)
{
	if (!t->wireup.candidates_due) {
		return true;
	}
	for (uint32_t k = 0; k < t->wireup.ncandidates; k++) {
		struct cn_peer *p = cn_wireup_candidate(t, k);

		if (t->wireup.advertised[t->wireup.candidates[k]].version == t->wireup.version ||
		    cn_wireup_join_of(t, p) == NULL) {
			continue;
		}
		if (!may_send(t, now, &t->wireup.candidates_paced)) {
			return false;
		}
		if (!cn_wireup_send_join(t, p)) {
			return false;
		}
	}
	t->wireup.candidates_due = false;
	return true;
}

void cn_wireup_announce_candidates(struct cn_team *t, cn_time now)
{
	(void)announce_to_candidates(t, now);
}

void cn_wireup_announce(struct cn_team *t, cn_time now)
{
	struct cn_engine *e = t->engine;

	if (!announce_to_candidates(t, now) || t->wireup.complete) {
		return; /* no other node has a rank of it */
	}
	if (t->wireup.announced == 0) {
		t->wireup.announce_n =
			cn_node_peers(e->own.node); /* later ones get JOIN when they come up */
	}
	while (t->wireup.announced < t->wireup.announce_n) {
		uint32_t i = (first_peer(t, t->wireup.announce_n) + t->wireup.announced) %
			     t->wireup.announce_n;
		struct cn_peer *p = cn_node_peer(e->own.node, i);

		if (cn_peer_alive(p) && cn_wireup_announces_to(t, i) &&
		    cn_wireup_advertised(t, i)->version != t->wireup.version) {
			if (!may_send(t, now, &t->wireup.all_paced)) {
				return;
			}
			if (!cn_wireup_send_join(t, p)) {
				return; /* no buffer: it goes on at the next check */
			}
		}
		t->wireup.announced++;
	}
}

/* False: it is sent later, at cn_wireup_expire(). */
static bool commit_to(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j)
{
	const bool announced = cn_wireup_is_announced_to(t, p);

	if (j->commit_sent == t->id && (announced || !t->wireup.derived)) {
		return true;
	}
	if (!may_send(t, now, &t->wireup.candidates_paced)) {
		return false;
	}
	/* A COMMIT means nothing to a peer that does not know the team. */
	if ((!announced && !cn_wireup_send_join(t, p)) ||
	    !(t->wireup.derived ? cn_wireup_adopt(t, now, p, j)
				: send_commit(t, now, p, j, false))) {
		return false;
	}
	return true;
}

bool cn_wireup_commit_all(struct cn_team *t, cn_time now)
{
	while (t->wireup.next_commit < t->wireup.ncandidates) {
		struct cn_peer *p = cn_wireup_candidate(t, t->wireup.next_commit);
		struct cn_join *j = cn_wireup_join_of(t, p);

		if (j != NULL && cn_wireup_agrees(t, j) && !commit_to(t, now, p, j)) {
			return false;
		}
		t->wireup.next_commit++;
	}
	return true;
}

/* ---- repetition ------------------------------------------------------------------------- */

/* Candidates that did not confirm what they were sent are sent it again. */
static void repeat(struct cn_team *t, cn_time now)
{
	for (uint32_t k = 0; k < t->wireup.ncandidates; k++) {
		struct cn_peer *p = cn_wireup_candidate(t, k);
		struct cn_join *j = cn_wireup_join_of(t, p);
		bool commit;

		if (j == NULL || !cn_wireup_agrees(t, j) ||
		    (t->wireup.derived && t->wireup.version == 0)) {
			continue;
		}
		commit = t->wireup.complete && t->wireup.npaths == 0 && j->commit_received != t->id;
		if (!commit && t->wireup.advertised[t->wireup.candidates[k]].confirmed) {
			continue;
		}
		if (!may_send(t, now, &t->wireup.candidates_paced) || !cn_wireup_send_join(t, p) ||
		    (commit && !send_commit(t, now, p, j, true))) {
			break; /* the rest at the next repetition */
		}
	}
	t->wireup.repeat_wait = cn_min_time(2 * t->wireup.repeat_wait, repeat_most);
	t->wireup.repeat_at = now + t->wireup.repeat_wait;
}

/* All peers are sent JOIN again, less and less often. */
static void begin_again(struct cn_team *t, cn_time now)
{
	for (uint32_t i = 0; i < t->wireup.nadvertised; i++) {
		if (!t->wireup.advertised[i].confirmed) {
			t->wireup.advertised[i].version = 0;
		}
	}
	t->wireup.announced = 0;
	t->wireup.candidates_due = true;
	t->wireup.announce_wait *= 2;
	t->wireup.announce_at = now + t->wireup.announce_wait;
}

void cn_wireup_announce_begin(struct cn_team *t, cn_time now)
{
	t->wireup.repeat_wait = repeat_first;
	t->wireup.repeat_at = now + repeat_first;
	t->wireup.announce_wait = announce_again;
	t->wireup.announce_at = now + announce_again;
}

void cn_wireup_repeat(struct cn_team *t, cn_time now)
{
	if (t->wireup.announce_at <= now && !t->wireup.complete) {
		begin_again(t, now);
	}
	if (t->wireup.repeat_at <= now) {
		repeat(t, now);
	}
}

void cn_wireup_commit_again(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j)
{
	if (may_send(t, now, &t->wireup.candidates_paced) && cn_wireup_send_join(t, p)) {
		send_commit(t, now, p, j, false);
	}
}
