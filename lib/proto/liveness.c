/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/liveness.h"

#include "proto/node_impl.h"

/* However much is lost, loss does not explain silence for ever: with twenty probes in dead_after,
 * six times that. */
#define TRIES_MAX  120u
#define MISSED_MAX 8u
/* Full ports drop a share of the frames each. The mean of all paths says little of one that leads
 * through several of them, and probes tell which only if their answers come. So a silent peer may
 * be behind so many ports that each lose as much as the mean, both ways. */
#define FULL_PORTS	3u
#define TRIES_CONGESTED (2 * TRIES_MAX)

/* The loss is that of each of so many ports, there and back. */
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

/* Until the node is given up. Either direction may be the one that loses frames, and what is lost
 * on the way here only the receiver of frames knows. */
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

/* The last of the probes was answered, the others were not. A node that was paused misses many at
 * once, which is no loss; so one silence counts for a few only. */
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

/* What others have found of the node's silence stands. */
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

/* The node was heard since something began to wait for the peer. Until it is, the peer is probed,
 * also if what waits has ended at its deadline: what waits next does not begin anew. */
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
#define GRACE_PROBES  16u /* and then at least so many without an answer, dead_after / 5 apart */
/* So many sessions that wait for one node are probed as if each were alone, others in turn. */
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

/* The session has been, while others hear the node. */
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
		n->nexpecting--; /* the idle timer finds it so */
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
 * One peer is silent: are others? Whether this node is cut off, or a group of nodes, shows only if
 * those are probed that nobody waits for: up to OTHERS_MAX, evenly spread over all peers. They are
 * probed in every round until the peer is given up, as they may have fallen silent after it. Each
 * is probed at a random time within half a round: a burst overflows the first short queue, which
 * loses the probes of the same peers in every round.
 */
#define SUSPECT_PROBES 3u /* without an answer: from here on, each may begin a round */
#define OTHERS_MAX     64u
#define SILENT_ROUNDS  4u /* without an answer, where frames are lost; fewer where none is */

/* Up to `most`, by chance. */
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

		if (q->state == CN_PEER_UP && q->live.extra_probe_at == CN_NEVER &&
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
		l->extra_probes = 0; /* heard meanwhile, if only by a hello */
	}
	l->extra_probes++;
	l->extra_probed_at = p->node->now;
	p->ackreq_due = true;
	cn_peer_ready(p);
}

bool cn_peer_is_silent(const struct cn_peer *p)
{
	const struct cn_node *n = p->node;
	uint32_t tries = cn_node_min_tries(n);
	uint32_t rounds = tries < SILENT_ROUNDS ? tries : SILENT_ROUNDS;
	bool just_probed = n->now < p->live.extra_probed_at + n->config.dead_after / 20;

	return p->live.own->last_rx <= p->live.extra_probed_at &&
	       p->live.extra_probes >= rounds + (just_probed ? 1 : 0);
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
	/* One probe may be lost; the first one without an answer is followed by many. On a long
	 * path with loss on every link most round trips fail (6 of 10 over nine links that lose 5
	 * %), so probes are three times as frequent in the second half of the grace period. */
	bool heard = silent < first, late = silent >= dead_after / 2, due;
	cn_time interval = first;

	if (is_silent(p) || is_silent_alone(p)) {
		if (is_needed(p)) {
			l->own->timed_out = is_silent(p);
			cn_peer_down(p, CN_PEER_SILENT);
			return;
		}
		/* It may be paused, and nobody waits for it; the next wait finds whether it is. */
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
	/* Whether the node is still heard is looked at more often than the session is probed. */
	interval = cn_min_time(interval, first);
	interval = cn_peer_jitter(p, interval);
	if (silent < dead_after && silent + interval > dead_after) {
		interval = dead_after - silent; /* given up in time */
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
