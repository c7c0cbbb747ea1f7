/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers: hellos, delayed acknowledgements, timeouts and probes. */
#include "proto/node_impl.h"

/*
 * In a larger cluster, actions that every node would take at once (the first hellos, the replies to
 * one) get a jitter of this much per node: ten times a small frame's time at 100 Mbit/s.
 */
static const cn_time jitter_each = 100 * CN_US;
#define JITTER_NODES 8u

cn_time cn_node_jitter(const struct cn_node *n, const uint8_t *mac)
{
	uint32_t known = n->npeers + n->nunvalidated_used;
	uint32_t others = known > n->config.expected ? known : n->config.expected;
	uint64_t h = n->config.epoch ^ n->hellos_sent;

	if (others <= JITTER_NODES) {
		return 0;
	}
	for (int i = 0; mac != NULL && i < 6; i++) {
		h = h << 8 ^ h >> 56 ^ mac[i];
	}
	return cn_mix64(h) % (others * jitter_each);
}

cn_time cn_node_deadline(const struct cn_node *n)
{
	return cn_heap_next(&n->timers);
}

/* Broadcast hellos are rarer in large clusters, which bounds their total rate; the first few follow
 * sooner, so that a lost one does not delay the start. */
cn_time cn_hello_interval(const struct cn_node *n)
{
	cn_time large = (cn_time)n->npeers * 5 * CN_MS + cn_node_jitter(n, NULL);

	if (n->hellos_sent < 4) {
		return n->config.hello_interval / 5 + large / 4;
	}
	return n->config.hello_interval > large ? n->config.hello_interval : large;
}

/* Jitter of up to a quarter, different for every node and hello: otherwise hellos of nodes that
 * started together would meet at the same full port each time. */
static cn_time hello_wait(const struct cn_node *n)
{
	cn_time interval = cn_hello_interval(n);

	return interval - interval / 4 +
	       cn_mix64(n->config.epoch + n->hellos_sent) % (interval / 2 + 1);
}

static void expire_peer(struct cn_node *n, struct cn_peer *p)
{
	if (p->hello.later_at <= n->now) {
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
	if (p->rx.nak_at <= n->now) {
		cn_receiver_nak_timeout(p);
	}
	if (p->tx.rto_at <= n->now) {
		cn_liveness_unacked(p);
		cn_sender_timeout(p);
	}
	if (cn_liveness_deadline(&p->live) <= n->now) {
		cn_liveness_expire(p);
	}
	if (p->tlp.at <= n->now) {
		cn_tlp_expire(p);
	}
	if (p->path.at <= n->now) {
		cn_path_expire(p);
	}
	cn_peer_set_timer(p);
}

static void expire_hello(struct cn_node *n, cn_time now)
{
	if (!n->begun && cn_node_jitter(n, NULL) > 0) {
		cn_heap_set(&n->timers, &n->hello_timer, now + cn_node_jitter(n, NULL));
	} else {
		n->hello_due = !n->leaving;
		cn_heap_set(&n->timers, &n->hello_timer, now + hello_wait(n));
	}
	n->begun = true;
}

void cn_node_expire(struct cn_node *n, cn_time now)
{
	/* Every timer moves into the future, so one expiry each is enough. */
	uint32_t bound = n->npeers + n->nunvalidated + 2;
	struct cn_timer *t;

	n->now = now;
	while (cn_heap_next(&n->timers) <= now && bound-- > 0) {
		t = cn_heap_first(&n->timers);
		if (cn_unvalidated_expire(n, t)) {
			continue;
		}
		if (t->owner != NULL) {
			expire_peer(n, t->owner);
		} else if (t == &n->idle.timer) {
			cn_tlp_idle_timeout(n);
		} else {
			expire_hello(n, now);
		}
	}
}
