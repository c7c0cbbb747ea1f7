/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/liveness.h"

#include "proto/node_impl.h"

/* However much is lost, loss does not explain silence for ever: with twenty probes in dead_after,
 * six times that. */
#define TRIES_MAX 120u

uint32_t cn_node_min_tries(const struct cn_node *n)
{
	uint64_t there = 65536 - n->loss, both = there * there >> 16, silent = 65536;
	uint32_t tries = 0;

	while (silent > 1 && tries < TRIES_MAX) {
		silent = silent * (65536 - both) >> 16;
		tries++;
	}
	return tries > 3 ? tries : 3;
}

void cn_liveness_note(struct cn_peer *p)
{
	p->live.last_rx = p->live.last_session_rx = p->node->now;
	p->live.contested = false;
	p->live.probes = p->live.asked = 0;
}

static void start_probing(struct cn_peer *p, cn_time since, cn_time at)
{
	p->live.expect_since = since;
	p->live.probes = 0;
	p->live.probe_at = at;
}

void cn_peer_expect(struct cn_node *n, cn_time now, struct cn_peer *p, int delta)
{
	if (p->state != CN_PEER_UP) {
		return;
	}
	if (delta > 0) {
		if (p->live.expecting++ == 0) {
			start_probing(p, now, now + n->config.dead_after / 5);
			p->tlp = (struct cn_tlp){ .at = CN_NEVER };
			if (n->nexpecting++ == 0) {
				cn_heap_set(&n->timers, &n->idle.timer, now + cn_node_pto(n));
			}
		}
	} else if (p->live.expecting > 0 && --p->live.expecting == 0) {
		p->live.probe_at = p->tlp.at = CN_NEVER;
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
	p->node->nexpecting -= p->live.expecting > 0;
	p->live.expecting = 0;
	p->live.probes = p->live.asked = 0;
	p->live.contested = false;
	p->live.probe_at = p->tlp.at = CN_NEVER;
}

/*
 * One peer is silent: are others? Whether this node is cut off, or a group of nodes, shows only if
 * those are probed that nobody waits for: up to OTHERS_MAX, evenly spread over all peers. They are
 * probed in every round until the peer is given up, as they may have fallen silent after it.
 */
#define SUSPECT_PROBES 3u /* without an answer begin a round */
#define OTHERS_MAX     64u
#define SILENT_ROUNDS  4u /* without an answer, where frames are lost; fewer where none is */

static void probe_others(struct cn_node *n, struct cn_peer *p)
{
	uint32_t others = n->npeers - 1, asked = others < OTHERS_MAX ? others : OTHERS_MAX;

	for (uint32_t i = 0; i < asked; i++) {
		uint32_t step = 1 + (uint32_t)((uint64_t)i * others / asked);
		struct cn_peer *q = n->peers[(p->index + step) % n->npeers];

		if (q->state == CN_PEER_UP &&
		    n->now >= q->live.asked_at + n->config.dead_after / 10) {
			if (q->live.last_rx > q->live.asked_at) {
				q->live.asked = 0; /* heard meanwhile, if only by a hello */
			}
			q->live.asked++;
			q->live.asked_at = n->now;
			q->ackreq_due = true;
			cn_peer_ready(q);
		}
	}
}

bool cn_peer_is_silent(const struct cn_peer *p)
{
	uint32_t tries = cn_node_min_tries(p->node);

	return p->live.last_rx <= p->live.asked_at &&
	       p->live.asked >= (tries < SILENT_ROUNDS ? tries : SILENT_ROUNDS);
}

cn_time cn_peer_jitter(const struct cn_peer *p, cn_time wait)
{
	const struct cn_node *n = p->node;

	return wait - wait / 4 + cn_mix64(n->config.epoch + n->now + p->index) % (wait / 2 + 1);
}

static void probe(struct cn_node *n, struct cn_peer *p)
{
	struct cn_liveness *l = &p->live;
	cn_time since = l->last_session_rx > l->expect_since ? l->last_session_rx : l->expect_since;
	cn_time silent = n->now > since ? n->now - since : 0;
	/* One probe may be lost; the first one without an answer is followed by many. On a long
	 * path with loss on every link most round trips fail (6 of 10 over nine links that lose 5
	 * %), so probes are three times as frequent in the second half of the grace period. */
	bool late = silent >= n->config.dead_after / 2;
	cn_time interval = n->config.dead_after / (l->probes == 0 ? 5 : late ? 60 : 20);

	if (silent >= n->config.dead_after && l->probes >= cn_node_min_tries(n)) {
		cn_peer_down(p, CN_PEER_SILENT);
		return;
	}
	if (silent >= interval) {
		if (l->probes++ == 0) {
			interval = n->config.dead_after / 20;
		}
		p->ackreq_due = true;
		cn_peer_ready(p);
		if (l->probes % (late ? 3 * SUSPECT_PROBES : SUSPECT_PROBES) == 0) {
			probe_others(n, p);
		}
	}
	interval = cn_peer_jitter(p, interval);
	if (silent < n->config.dead_after && silent + interval > n->config.dead_after) {
		interval = n->config.dead_after - silent; /* given up in time */
	}
	l->probe_at = n->now + interval;
}

void cn_liveness_expire(struct cn_peer *p)
{
	if (p->live.expecting == 0 && p->tx.queue.una == p->tx.queue.end && !p->live.contested) {
		p->live.probe_at = CN_NEVER;
	} else {
		probe(p->node, p);
	}
}
