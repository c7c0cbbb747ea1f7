/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the nodes of a team can exchange frames of the MTU. A forming team that knows all its
 * ranks compares the nodes' MTUs and has the transport validate the path to each
 * (lib/proto/path_mtu.c); COMMIT waits for that. So a team that is ready has validated paths in
 * both directions.
 */
#include "coll/engine_state.h"
#include "coll/team.h"

uint32_t cn_wireup_path_begin(struct cn_team *t, cn_time now)
{
	struct cn_engine *e = t->engine;
	uint32_t pending = 0, n = t->wireup.ncandidates;
	/* Different on every node, so that not all probe the same node at once. */
	uint32_t first = n > 0 ? (uint32_t)(cn_mix64(e->config.node.epoch) % n) : 0;

	for (uint32_t k = 0; k < n; k++) {
		struct cn_peer *p = cn_wireup_candidate(t, (first + k) % n);
		const struct cn_node_config *c = cn_node_config(e->own.node);
		const struct cn_join *j = cn_wireup_join_of(t, p);

		if (j == NULL || !cn_wireup_agrees(t, j)) {
			continue;
		}
		if (cn_peer_mtu(p) != c->mtu) {
			cn_team_fail(t, true, COLLNET_EMISMATCH,
				     "node %s has MTU %u, node %s %u: set them alike",
				     cn_peer_name(p), cn_peer_mtu(p), c->name, c->mtu);
			return 1;
		}
		if (cn_peer_path(p) != CN_PATH_VALID) {
			pending++;
			cn_peer_validate(e->own.node, now, p);
		}
	}
	return pending;
}

void cn_wireup_path_valid(struct cn_engine *e, cn_time now, struct cn_peer *p)
{
	for (uint32_t i = 0; i < e->places && e->nforming > 0; i++) {
		struct cn_team *t = e->teams[i];

		const struct cn_join *j;

		if (t == NULL || t->state != CN_TEAM_FORMING || !t->wireup.complete ||
		    t->wireup.npaths == 0) {
			continue;
		}
		j = cn_wireup_join_of(t, p);
		if (j != NULL && cn_wireup_agrees(t, j) && --t->wireup.npaths == 0) {
			cn_wireup_check(t, now);
		}
	}
}

void cn_wireup_path_drops(struct cn_engine *e, struct cn_peer *p, uint32_t bytes)
{
	cn_log(COLLNET_LOG_ERROR,
	       "frames of %u bytes do not reach node %s, shorter ones do: does every "
	       "switch carry MTU %u?",
	       bytes, cn_peer_name(p), e->config.node.mtu);
	for (uint32_t i = 0; i < e->places; i++) {
		struct cn_team *t = e->teams[i];

		bool in = t != NULL &&
			  (t->nodes == NULL ? t->wireup.complete && cn_wireup_join_of(t, p) != NULL
					    : cn_team_node_of(t, p) != UINT32_MAX);

		if (in) {
			cn_team_path_drops(t, p, bytes);
		}
	}
}
