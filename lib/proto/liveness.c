/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/liveness.h"

#include "proto/node_impl.h"

/* Upper bound whatever the loss rate: with twenty probes in dead_after, six times dead_after. */
#define TRIES_MAX  120u
#define MISSED_MAX 8u
/*
 * Each full port drops a share of the frames. The mean over all paths says little about a path
 * through several such ports, and probes measure it only if they are answered. So a silent peer is
 * assumed to be behind this many ports that each lose the mean, in both directions.
 */
#define FULL_PORTS	3u
#define TRIES_CONGESTED (2 * TRIES_MAX)

/* `loss` is the loss rate of each of `ports` ports, which frames pass in both directions. */
static uint32_t min_tries(uint32_t loss, uint32_t ports, uint32_t most)
{
	uint64_t answered = 65536, silent = 65536;
	uint32_t tries = 0;

	for (uint32_t i = 0; i < 2 * ports; i++) {
		answered = answered * (65536 - loss) >> 16;
	}
	while (silent > 1 && tries < most) {
		silent = silent * (65536 - answered) >> 16;
		tries++;
	}
	return tries > 3 ? tries : 3;
}

uint32_t cn_node_min_tries(const struct cn_node *n)
{
	return min_tries(n->loss, 1, TRIES_MAX);
}

uint32_t cn_peer_min_tries(const struct cn_peer *p)
{
	uint32_t node = p->node->loss, peer = p->live.own->loss;

	return min_tries(node > peer ? node : peer, 1, TRIES_MAX);
}

/* Probes until the node is declared dead. Either direction may lose frames; only the receiver sees
 * the losses on the way here. */
static uint32_t silent_tries(const struct cn_peer *p)
{
	const struct cn_node *n = p->node;
	const uint32_t mean = n->loss > n->loss_in ? n->loss : n->loss_in;
	const uint32_t congested = min_tries(mean, FULL_PORTS, TRIES_CONGESTED),
		       tries = cn_peer_min_tries(p);

	return congested > tries ? congested : tries;
}

void cn_liveness_sample_loss(struct cn_peer *p, bool lost)
{
	struct cn_liveness *own = p->live.own;

	own->loss -= own->loss / 16;
	own->loss += lost ? 65536 / 16 : 0;
}

/* The last probe was answered, the others were not. A paused node misses many probes without loss,
 * so one silence counts as a few losses only. */
static void sample_probes(struct cn_peer *p)
{
	for (uint32_t i = 1; i < p->live.probes && i <= MISSED_MAX; i++) {
		cn_liveness_sample_loss(p, true);
	}
	if (p->live.probes > 0) {
		cn_liveness_sample_loss(p, false);
	}
}

void cn_liveness_init(struct cn_liveness *l)
{
	l->own = l;
	l->probe_at = l->extra_probe_at = CN_NEVER;
}

void cn_liveness_received(struct cn_peer *p)
{
	struct cn_liveness *l = &p->live;

	l->last_rx = l->last_session_rx = p->node->now;
	l->own->last_rx = l->own->last_node_rx = p->node->now;
	l->own->timed_out = false;
	l->contested = false;
	sample_probes(p);
	l->probes = l->own->node_probes = l->extra_probes = 0;
}

/* Keeps the silence that other sessions have measured. */
static void start_probing(struct cn_peer *p, cn_time since, cn_time at)
{
	struct cn_liveness *own = p->live.own;

	p->live.expect_since = since;
	p->live.probes = 0;
	if (own->waiting == 0 ||
	    p->node->now < own->last_node_rx + p->node->config.dead_after / 5) {
		own->node_probes = 0;
	}
	p->live.probe_at = at;
}

/*
 * True if a frame of the node came since something began to wait for the peer. Until then the peer
 * is probed, even after the waiter has ended at its deadline, so that the next waiter does not
 * start over.
 */
static bool heard_since(const struct cn_liveness *l)
{
	return l->own->last_node_rx >= l->expect_since;
}

/* Time since the last frame, or since something waits for the peer. */
static cn_time silence(const struct cn_peer *p, cn_time last_rx)
{
	cn_time since = last_rx > p->live.expect_since ? last_rx : p->live.expect_since;

	return p->node->now > since ? p->node->now - since : 0;
}

/* How many times dead_after a session may be silent while its node is heard by another one. */
#define SESSION_GRACE 4u
#define GRACE_PROBES  16u /* and at least this many unanswered probes, dead_after / 5 apart */
/* Up to this many sessions that wait for one node are each probed at the full rate; more of them
 * share the total rate of this many. */
#define PROBED_MAX 16u

/* All sessions that wait for the node together probe it as often as PROBED_MAX do. */
static cn_time share(const struct cn_peer *p, cn_time interval)
{
	uint32_t waiting = p->live.own->waiting;

	return waiting > PROBED_MAX ? interval * waiting / PROBED_MAX : interval;
}

cn_time cn_liveness_interval(const struct cn_peer *p)
{
	cn_time dead_after = p->node->config.dead_after;

	return cn_min_time(share(p, dead_after / 5), SESSION_GRACE * dead_after);
}

/* The node has been silent for too long, and answers no probes. */
static bool is_silent(const struct cn_peer *p)
{
	return silence(p, p->live.own->last_node_rx) >= p->node->config.dead_after &&
	       p->live.own->node_probes >= silent_tries(p);
}

/* The session has been silent for too long while other sessions of the node are not. */
static bool is_silent_alone(const struct cn_peer *p)
{
	return silence(p, p->live.last_session_rx) >= SESSION_GRACE * p->node->config.dead_after &&
	       p->live.probes >= GRACE_PROBES && p->live.probes >= cn_peer_min_tries(p);
}

/* Something waits for the peer. */
static bool is_needed(const struct cn_peer *p)
{
	return p->live.expecting > 0 || p->tx.queue.una != p->tx.queue.end || p->live.contested;
}

void cn_peer_expect(struct cn_node *n, cn_time now, struct cn_peer *p, int delta)
{
	if (p->state != CN_PEER_UP) {
		return;
	}
	if (delta > 0) {
		if (p->live.expecting++ == 0) {
			if (p->live.probe_at == CN_NEVER) {
				start_probing(p, now, now + n->config.dead_after / 5);
			} else if (is_silent(p)) {
				p->live.probe_at = now;
			}
			p->tlp = (struct cn_tlp){ .at = CN_NEVER };
			p->live.own->waiting++;
			n->nexpecting++;
			cn_tlp_await_idle(n, now + cn_node_pto(n));
		}
	} else if (p->live.expecting > 0 && --p->live.expecting == 0) {
		if (!p->live.contested && heard_since(&p->live)) {
			p->live.probe_at = CN_NEVER;
		}
		p->tlp.at = CN_NEVER;
		p->live.own->waiting--;
		n->nexpecting--; /* detected by the idle timer */
	}
	cn_peer_reschedule(p);
}

void cn_liveness_contest(struct cn_peer *p)
{
	if (!p->live.contested) {
		p->live.contested = true;
		if (p->live.probe_at == CN_NEVER) {
			start_probing(p, p->node->now,
				      p->node->now + p->node->config.dead_after / 20);
			cn_peer_reschedule(p);
		}
	}
}

void cn_liveness_unacked(struct cn_peer *p)
{
	if (p->live.probe_at == CN_NEVER) {
		start_probing(p, cn_rtx_at(&p->tx.queue, p->tx.queue.una)->sent_at,
			      p->node->now + p->node->config.dead_after / 5);
	}
}

void cn_liveness_reset(struct cn_peer *p)
{
	if (p->live.expecting > 0) {
		p->node->nexpecting--;
		p->live.own->waiting--;
	}
	p->live.expecting = 0;
	p->live.probes = p->live.node_probes = p->live.extra_probes = 0;
	p->live.contested = false;
	p->live.probe_at = p->live.extra_probe_at = p->tlp.at = CN_NEVER;
}

/*
 * One peer is silent. To tell whether this node, or a group of nodes, is cut off, peers that
 * nothing waits for are probed too: up to OTHERS_MAX, evenly spread over all peers, in every round
 * until the peer is declared dead, because they may fall silent later. Each is probed at a random
 * time within half a round: a burst would overflow the first short queue, which would lose the
 * probes of the same peers in every round.
 */
#define SUSPECT_PROBES 3u /* unanswered probes; from here on each may start a round */
#define OTHERS_MAX     64u
#define SILENT_ROUNDS  4u /* unanswered rounds where frames are lost; fewer without loss */

/* A random time up to `most`. */
static cn_time random_time(const struct cn_peer *p, cn_time most)
{
	return cn_mix64(p->node->config.epoch + p->node->now + p->index) % (most + 1);
}

static void probe_others(struct cn_node *n, struct cn_peer *p)
{
	uint32_t others = n->npeers - 1, extra_probes = others < OTHERS_MAX ? others : OTHERS_MAX;

	for (uint32_t i = 0; i < extra_probes; i++) {
		uint32_t step = 1 + (uint32_t)((uint64_t)i * others / extra_probes);
		struct cn_peer *q = n->peers[(p->index + step) % n->npeers];

		if (q->state == CN_PEER_UP && !q->ended && q->live.extra_probe_at == CN_NEVER &&
		    n->now >= q->live.extra_probed_at + n->config.dead_after / 10) {
			q->live.extra_probe_at = n->now + random_time(q, n->config.dead_after / 20);
			cn_peer_reschedule(q);
		}
	}
}

static void probe_extra(struct cn_peer *p)
{
	struct cn_liveness *l = &p->live;

	l->extra_probe_at = CN_NEVER;
	if (l->own->last_rx > l->extra_probed_at) {
		l->extra_probes = 0; /* heard from meanwhile, if only by a hello */
	}
	l->extra_probes++;
	l->extra_probed_at = p->node->now;
	p->ackreq_due = true;
	cn_peer_ready(p);
}

void cn_peer_ended(struct cn_peer *p)
{
	p->ended = true;
}

bool cn_peer_is_silent(const struct cn_peer *p)
{
	const struct cn_node *n = p->node;
	uint32_t tries = cn_node_min_tries(n);
	uint32_t rounds = tries < SILENT_ROUNDS ? tries : SILENT_ROUNDS;
	bool just_probed = n->now < p->live.extra_probed_at + n->config.dead_after / 20;

	return !p->ended && p->live.own->last_rx <= p->live.extra_probed_at &&
	       p->live.extra_probes >= rounds + (just_probed ? 1 : 0);
}

uint32_t cn_node_silent_peers(const struct cn_node *n)
{
	uint32_t silent = 0;

	for (uint32_t i = 0; i < n->npeers; i++) {
		silent += n->peers[i]->live.own->timed_out || cn_peer_is_silent(n->peers[i]);
	}
	return silent;
}

cn_time cn_peer_jitter(const struct cn_peer *p, cn_time wait)
{
	return wait - wait / 4 + random_time(p, wait / 2);
}

static void probe(struct cn_node *n, struct cn_peer *p)
{
	struct cn_liveness *l = &p->live;
	const cn_time dead_after = n->config.dead_after, first = dead_after / 5;
	cn_time idle = silence(p, l->last_session_rx), silent = silence(p, l->own->last_node_rx);
	/* One probe may be lost; after the first unanswered one many follow. On a long path with
	 * loss on every link most round trips fail (6 of 10 over nine links that lose 5 %), so
	 * probes are three times as frequent in the second half of the grace period. */
	bool heard = silent < first, late = silent >= dead_after / 2, due;
	cn_time interval = first;

	if (is_silent(p) || is_silent_alone(p)) {
		if (is_needed(p)) {
			l->own->timed_out = is_silent(p);
			cn_peer_down(p, CN_PEER_SILENT);
			return;
		}
		/* It may be paused, and nothing waits for it; the next wait detects that. */
		p->ackreq_due = true;
		cn_peer_ready(p);
		l->probe_at = n->now + cn_peer_jitter(p, first);
		return;
	}
	if (l->own->node_probes > 0) {
		interval = cn_min_time(share(p, dead_after / (late ? 60 : 20)), first);
	} else if (heard && l->probes == 0) {
		interval = cn_liveness_interval(p);
	}
	due = idle >= interval;
	if (due) {
		l->probes++;
		p->ackreq_due = true;
		cn_peer_ready(p);
	} else {
		interval = interval - idle + dead_after / 60;
	}
	if (due && !heard) {
		if (l->own->node_probes++ == 0) {
			interval = dead_after / 20;
		}
		if (l->own->node_probes >= SUSPECT_PROBES) {
			probe_others(n, p);
		}
	}
	/* The node is checked more often than the session is probed. */
	interval = cn_min_time(interval, first);
	interval = cn_peer_jitter(p, interval);
	if (silent < dead_after && silent + interval > dead_after) {
		interval = dead_after - silent; /* not later than the deadline */
	}
	l->probe_at = n->now + interval;
}

cn_time cn_liveness_deadline(const struct cn_liveness *l)
{
	return cn_min_time(l->probe_at, l->extra_probe_at);
}

void cn_liveness_expire(struct cn_peer *p)
{
	if (p->live.extra_probe_at <= p->node->now) {
		probe_extra(p);
	}
	if (p->live.probe_at > p->node->now) {
		return;
	}
	if (p->node->now - p->live.probe_at > p->node->config.dead_after / 5 &&
	    p->live.own->node_probes == 0) {
		p->live.expect_since = p->node->now; /* this node was paused */
	}
	if (!is_needed(p) && heard_since(&p->live)) {
		p->live.probe_at = CN_NEVER;
	} else {
		probe(p->node, p);
	}
}
