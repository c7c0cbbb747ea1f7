/* SPDX-License-Identifier: BSD-2-Clause */
/* What a node does when time passes: hellos, acknowledgements that waited, timeouts, questions and
 * probes. */
#include <string.h>

#include "proto/peer.h"

/*
 * In a larger cluster, what every node would do at once (the first hellos, the answers to one) is
 * spread over so much for each node that there is. It is ten times what a small frame takes at 100
 * Mbit/s.
 */
static const cn_time spread_each = 100 * CN_US;
#define SPREAD_FROM 8u

cn_time cn_node_spread(const struct cn_node *n, const uint8_t *mac)
{
	uint32_t known = n->npeers + n->strangers_heard;
	uint32_t others = known > n->config.expected ? known : n->config.expected;
	uint64_t h = n->config.epoch ^ n->hellos_sent;

	if (others <= SPREAD_FROM) {
		return 0;
	}
	for (int i = 0; mac != NULL && i < 6; i++) {
		h = h << 8 ^ h >> 56 ^ mac[i];
	}
	return cn_mix64(h) % (others * spread_each);
}

/* However much is lost, silence is not explained by it for ever: with twenty probes in dead_after,
 * six times that. */
#define TRIES_MAX 120u

uint32_t cn_node_tries(const struct cn_node *n)
{
	uint64_t there = 65536 - n->loss, both = there * there >> 16, silent = 65536;
	uint32_t tries = 0;

	while (silent > 1 && tries < TRIES_MAX) {
		silent = silent * (65536 - both) >> 16;
		tries++;
	}
	return tries > 3 ? tries : 3;
}

cn_time cn_node_deadline(const struct cn_node *n)
{
	return cn_heap_next(&n->timers);
}

/* Hellos thin out in large clusters, so that all of them together stay a trickle; the first few
 * are quicker, so that a lost one does not hold up the start. */
cn_time cn_hello_interval(const struct cn_node *n)
{
	cn_time spread = (cn_time)n->npeers * 5 * CN_MS + cn_node_spread(n, NULL);

	if (n->hellos_sent < 4) {
		return n->config.hello_interval / 5 + spread / 4;
	}
	return n->config.hello_interval > spread ? n->config.hello_interval : spread;
}

/* By up to a quarter shorter or longer, another time for every node and hello: nodes that were
 * started at one moment would else meet at the same full port each time, and the same hellos be
 * lost. */
static cn_time hello_wait(const struct cn_node *n)
{
	cn_time interval = cn_hello_interval(n);

	return interval - interval / 4 +
	       cn_mix64(n->config.epoch + n->hellos_sent) % (interval / 2 + 1);
}

/*
 * One peer is silent: are others? Whether this node is cut off, or a group of nodes, shows only if
 * those are probed for which nobody waits. Those that were heard meanwhile, by a hello, need none.
 */
#define SUSPECT	   3u /* probes without an answer */
#define OTHERS_MAX 64u

static void probe_others(struct cn_node *n, struct cn_peer *p)
{
	uint32_t left = OTHERS_MAX;

	if (p->probes == SUSPECT) {
		p->suspected = n->now;
	}
	for (uint32_t i = 1; i < n->npeers && left > 0; i++) {
		struct cn_peer *q = n->peers[(p->index + i) % n->npeers];

		if (q->state == CN_PEER_UP && q->proven && q->heard <= p->suspected) {
			q->probe_due = true;
			cn_peer_ready(q);
			left--;
		}
	}
}

bool cn_peer_silent_with(const struct cn_peer *p, const struct cn_peer *q)
{
	return p->suspected != 0 && q->heard <= p->suspected;
}

/*
 * A wait, by up to a quarter shorter or longer. Where a schedule waits, all nodes begin to probe at
 * one moment: without jitter their probes and the answers meet in the same short queues each time,
 * and the same ones are lost.
 */
static cn_time with_jitter(const struct cn_node *n, const struct cn_peer *p, cn_time wait)
{
	return wait - wait / 4 + cn_mix64(n->config.epoch + n->now + p->index) % (wait / 2 + 1);
}

static void probe(struct cn_node *n, struct cn_peer *p)
{
	cn_time since = p->answered > p->expect_since ? p->answered : p->expect_since;
	cn_time silent = n->now > since ? n->now - since : 0;
	/* One probe may be lost; the first one without an answer is followed by many. */
	cn_time interval = n->config.dead_after / (p->probes == 0 ? 5 : 20);

	if (silent >= n->config.dead_after && p->probes >= cn_node_tries(n)) {
		cn_peer_down(p, CN_PEER_SILENT);
		return;
	}
	if (silent >= interval) {
		if (p->probes++ == 0) {
			interval = n->config.dead_after / 20;
		}
		p->probe_due = true;
		cn_peer_ready(p);
		if (p->probes % SUSPECT == 0) {
			probe_others(n, p);
		}
	}
	interval = with_jitter(n, p, interval);
	if (silent < n->config.dead_after && silent + interval > n->config.dead_after) {
		interval = n->config.dead_after - silent; /* given up in time */
	}
	p->probe_at = n->now + interval;
}

/*
 * Data of this peer is waited for, and for a while nothing has come from anyone: perhaps the last
 * frames were lost, which no later frame can tell. Ask; a sender that has frames out goes back.
 * This finds a lost tail much earlier than the sender's timer, which must allow for
 * acknowledgements that wait.
 */
static void query(struct cn_node *n, struct cn_peer *p)
{
	cn_time since = n->data_last > p->expect_since ? n->data_last : p->expect_since;
	cn_time least = 2 * p->tx.rtt.least;

	least = least > cn_quiet_after(n) ? least : cn_quiet_after(n);
	if (n->data_last + cn_quiet_after(n) > n->now) {
		p->query_at = CN_NEVER; /* until it is quiet again */
		p->query_wait = 0;
		return;
	}
	if (p->query_wait < least || n->data_last + least > n->now) {
		p->query_wait = least;
	}
	if (n->now < since + p->query_wait) {
		p->query_at = since + p->query_wait;
		return;
	}
	p->probe_due = true;
	cn_peer_ready(p);
	p->query_wait = cn_min_time(2 * p->query_wait, n->config.dead_after / 5);
	p->query_at = n->now + with_jitter(n, p, p->query_wait);
}

/*
 * Somebody is waited for. While data comes nobody is asked, and no peer's timer runs for it: in an
 * exchange of a thousand nodes they would be many more than its frames.
 */
static void look_whether_quiet(struct cn_node *n)
{
	cn_time since = n->data_last + cn_quiet_after(n);

	for (uint32_t i = 0; since <= n->now && i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		if (p->expecting > 0 && p->query_at == CN_NEVER) {
			query(n, p);
			cn_peer_reschedule(p);
		}
	}
	since = since > n->now ? since : n->now + cn_quiet_after(n);
	cn_heap_set(&n->timers, &n->quiet_timer, n->nexpecting > 0 ? since : CN_NEVER);
}

static void expire_peer(struct cn_node *n, struct cn_peer *p)
{
	if (p->hello_at <= n->now) {
		cn_hello_later(p);
	}
	if (p->state != CN_PEER_UP) {
		cn_peer_set_timer(p);
		return;
	}
	if (p->rx.ack_at <= n->now) {
		p->rx.ack_at = CN_NEVER;
		p->ack_due = true;
		cn_peer_ready(p);
	}
	if (p->rx.gap_at <= n->now) {
		cn_receiver_gap(p);
	}
	if (p->tx.rto_at <= n->now) {
		/* Unacknowledged frames are waiting too, even if no operation does. */
		if (p->probe_at == CN_NEVER) {
			p->expect_since = cn_sender_entry(p, p->tx.una)->at;
			p->probes = 0;
			p->probe_at = n->now + n->config.dead_after / 5;
		}
		cn_sender_timeout(p);
	}
	if (p->probe_at <= n->now) {
		if (p->expecting == 0 && p->tx.una == p->tx.end && !p->contested) {
			p->probe_at = CN_NEVER;
		} else {
			probe(n, p);
		}
	}
	if (p->query_at <= n->now) {
		query(n, p);
	}
	if (p->path.at <= n->now) {
		cn_path_expire(p);
	}
	cn_peer_set_timer(p);
}

void cn_node_expire(struct cn_node *n, cn_time now)
{
	struct cn_timer *t;
	uint32_t bound = n->npeers + n->nstrangers +
			 2; /* every timer moves into the future; once each is enough */

	n->now = now;
	while (cn_heap_next(&n->timers) <= now && bound-- > 0) {
		t = cn_heap_first(&n->timers);
		if (cn_unvalidated_expire(n, t)) {
			continue;
		}
		if (t->owner != NULL) {
			expire_peer(n, t->owner);
		} else if (t == &n->quiet_timer) {
			look_whether_quiet(n);
		} else if (!n->begun && cn_node_spread(n, NULL) > 0) {
			cn_heap_set(&n->timers, t, now + cn_node_spread(n, NULL));
			n->begun = true;
		} else {
			n->begun = true;
			n->hello_due = !n->leaving;
			cn_heap_set(&n->timers, t, now + hello_wait(n));
		}
	}
}
