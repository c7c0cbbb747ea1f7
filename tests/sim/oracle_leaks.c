/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The oracle of leaks: when all ranks have left and nothing is in flight, no node holds buffers,
 * frames, teams or a share of W_g, and every frame was delivered once.
 */
#include "fixture.h"

#include "coll/engine_state.h"
#include "proto/node_impl.h"

bool oracle_is_idle(const struct fixture *fx)
{
	for (uint32_t h = 0; h < fx->s->hosts; h++) {
		const struct cn_engine *e = cn_sim_engine(fx->sim, h);

		if (e != NULL && e->own.next != NULL) {
			return false; /* a transport is open, or closing */
		}
		for (uint32_t i = 0; e != NULL && i < e->own.node->npeers; i++) {
			const struct cn_peer *p = e->own.node->peers[i];

			if (p->tx.queue.una != p->tx.queue.end || p->control_first != NULL ||
			    e->own.pending.n > 0) {
				return false;
			}
		}
	}
	return true;
}

/* On an almost idle link a burst of losses may last longer than the grace period, so that two nodes
 * lose their session although neither failed. */
static bool session_lost(const struct fixture *fx, const struct cn_peer *p)
{
	bool bursts = false;

	for (uint32_t i = 0; i < fx->s->nfaults; i++) {
		bursts |= fx->s->faults[i].link_faults.burst > 0;
	}
	return bursts && (uint32_t)p->generation != 0;
}

static void check_node(struct fixture *fx, uint32_t host)
{
	struct cn_engine *e = cn_sim_engine(fx->sim, host);
	struct cn_node *n = cn_engine_node(e);
	struct collnet_stats st = { .size = sizeof(st) };

	cn_engine_stats(e, &st, false);
	if (n->pool.free != n->pool.count) {
		fixture_report(fx, "host %u holds %u of %u buffers when idle", host,
			       n->pool.count - n->pool.free, n->pool.count);
	}
	if (st.window_now != 0) {
		fixture_report(fx, "host %u: %u frames in flight when idle", host, st.window_now);
	}
	if (e->own.next != NULL) {
		fixture_report(fx, "host %u: the transport of port %u is open when idle", host,
			       e->own.next->port);
	}
	if (st.jobs != 0) {
		fixture_report(fx, "host %u holds %u teams that all ranks left", host, st.jobs);
	}
	for (uint32_t i = 0; i < n->npeers; i++) {
		const struct cn_peer *p = n->peers[i];
		const struct cn_engine_peer *m = cn_engine_peer_of(n->peers[i]);

		if (p->live.expecting != 0 || p->tx.queue.una != p->tx.queue.end) {
			fixture_report(fx, "host %u waits for %s (%u), has %u frames for it", host,
				       p->name, p->live.expecting,
				       p->tx.queue.end - p->tx.queue.una);
		}
		if (m != NULL && m->joins.n != 0 && !fx->hints && !session_lost(fx, p)) {
			fixture_report(fx, "host %u holds %u teams of %s that all ranks left", host,
				       m->joins.n, p->name);
		}
	}
}

/* Whether every frame between the two must have been delivered. */
static bool all_delivered(const struct fixture *fx, const struct cn_peer *to,
			  const struct cn_peer *from)
{
	return scenario_must_succeed(fx->s) && !session_lost(fx, to) && !session_lost(fx, from);
}

static const struct cn_peer *peer_of(struct fixture *fx, uint32_t at, uint32_t of)
{
	const char *name = fx->s->topo->vertices[fx->s->topo->hosts[of]].name;

	return cn_node_find(cn_engine_node(cn_sim_engine(fx->sim, at)), name);
}

void oracle_check_leaks(struct fixture *fx)
{
	bool same = true; /* no node restarted: its counters cover the whole run */

	for (uint32_t i = 0; i < fx->s->nfaults; i++) {
		same &= fx->s->faults[i].kind != FAULT_CRASH;
	}
	for (uint32_t a = 0; a < fx->s->hosts; a++) {
		check_node(fx, a);
		for (uint32_t b = 0; b < fx->s->hosts && same; b++) {
			const struct cn_peer *to = a != b ? peer_of(fx, a, b) : NULL;
			const struct cn_peer *from = to != NULL ? peer_of(fx, b, a) : NULL;

			if (from != NULL && (from->data_received > to->data_sent ||
					     (all_delivered(fx, to, from) &&
					      from->data_received != to->data_sent))) {
				fixture_report(
					fx, "host %u sent host %u %llu frames, which received %llu",
					a, b, (unsigned long long)to->data_sent,
					(unsigned long long)from->data_received);
			}
		}
	}
}
