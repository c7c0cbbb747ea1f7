/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/tlp.h"

#include "proto/node_impl.h"

cn_time cn_node_pto(const struct cn_node *n)
{
	cn_time slow = cn_min_time(8 * n->idle.interval, n->config.dead_after / 5);

	return slow > n->config.pto_min ? slow : n->config.pto_min;
}

void cn_tlp_data_received(struct cn_node *n)
{
	cn_time gap = n->now - n->idle.last_data;

	if (n->idle.last_data != 0 && gap < n->config.dead_after / 15) {
		n->idle.interval = n->idle.interval - n->idle.interval / 8 + gap / 8;
	}
	n->idle.last_data = n->now;
}

void cn_tlp_await_idle(struct cn_node *n, cn_time at)
{
	if (n->idle.timer.at == CN_NEVER) {
		cn_heap_set(&n->timers, &n->idle.timer, at);
	}
}

void cn_tlp_expire(struct cn_peer *p)
{
	struct cn_node *n = p->node;
	cn_time last = n->idle.last_data, pto = cn_node_pto(n);
	cn_time since = last > p->live.expect_since ? last : p->live.expect_since;
	cn_time least = 2 * p->tx.rtt.least;

	least = least > pto ? least : pto;
	if (last + pto > n->now) {
		p->tlp.at = CN_NEVER; /* until the node is idle again */
		p->tlp.wait = 0;
		cn_tlp_await_idle(n, last + pto);
		return;
	}
	if (p->tlp.wait < least || last + least > n->now) {
		p->tlp.wait = least;
	}
	if (n->now < since + p->tlp.wait) {
		p->tlp.at = since + p->tlp.wait;
		return;
	}
	p->ackreq_due = true;
	cn_peer_ready(p);
	p->tlp.wait = cn_min_time(2 * p->tlp.wait, cn_liveness_interval(p));
	p->tlp.at = n->now + cn_peer_jitter(p, p->tlp.wait);
}

/* While data arrives, no peer is probed and no timer per peer runs: in an exchange of a thousand
 * nodes there would be many more timers than frames. */
void cn_tlp_idle_timeout(struct cn_node *n)
{
	cn_time since = n->idle.last_data + cn_node_pto(n);

	for (uint32_t i = 0; since <= n->now && i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		if (p->live.expecting > 0 && p->tlp.at == CN_NEVER) {
			cn_tlp_expire(p);
			cn_peer_reschedule(p);
		}
	}
	cn_heap_set(&n->timers, &n->idle.timer,
		    n->nexpecting > 0 && since > n->now ? since : CN_NEVER);
}
