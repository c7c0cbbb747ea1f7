/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer of a team is lost: the team fails, with an error that names the nodes at fault. */
#include <stdio.h>

#include "coll/engine_state.h"
#include "coll/ranges.h"
#include "coll/team.h"
#include "coll/version_mismatch.h"

const char *cn_peer_loss_text(enum cn_peer_loss why)
{
	static const char *const text[] = {
		[CN_PEER_SILENT] = "stopped answering",
		[CN_PEER_RESTARTED] = "restarted its daemon or process",
		[CN_PEER_RESET] = "did not hear this node for long",
		[CN_PEER_BYE] = "ended its daemon",
		[CN_PEER_PATH] = "answers, but large frames do not reach it",
		[CN_PEER_MOVED] = "replaced its interface",
		[CN_PEER_PROCESS] = "ended its process",
		[CN_PEER_ADDRESS] = "changed the address of its interface",
		[CN_PEER_MTU] = "changed the MTU of its interface",
		[CN_PEER_ACKS] = "lacks frames that it had acknowledged (a frame was damaged)",
		[CN_PEER_UNHEARD] = "did not hear this node for long",
	};

	return text[why];
}

void cn_engine_set_carrier(struct cn_engine *e, bool carrier)
{
	e->no_carrier = !carrier;
}

/* Nodes of the team that could answer: its ranks there have not left. */
static uint32_t remaining_peers(const struct cn_team *t, uint32_t lost)
{
	uint32_t peers = 0;

	for (uint32_t k = 0; k < t->layout.nnodes; k++) {
		peers += k != t->me && (k == lost || !t->nodes[k].left.any);
	}
	return peers;
}

/* True if a node whose ranks have left, or outside the team, has answered since the others have
 * been silent. */
static bool hears_others(const struct cn_team *t, cn_time now)
{
	struct cn_node *n = t->engine->own.node;
	struct collnet_node_info info;
	bool heard = false;

	for (uint32_t i = 0; i < cn_node_peers(n) && !heard; i++) {
		const struct cn_peer *p = cn_node_peer(n, i);
		const uint32_t k = cn_team_node_of(t, p);

		if (k == UINT32_MAX || t->nodes[k].left.any) {
			cn_peer_info(p, now, &info);
			heard = info.alive && info.heard_ns < t->engine->config.node.dead_after / 2;
		}
	}
	return heard;
}

/*
 * A peer is lost by silence. If all peers are silent and no other node answers, this node is cut
 * off; else the silent ones are named as a group.
 */
static void fail_by_silence(struct cn_team *t, cn_time now, const struct cn_peer *p, uint32_t lost)
{
	const struct cn_engine_config *c = &t->engine->config;
	struct cn_name_list l = { .len = 0 };
	char other[256];
	const uint32_t peers = remaining_peers(t, lost);
	uint32_t silent = 0;

	for (uint32_t k = 0; k < t->layout.nnodes; k++) {
		const struct cn_peer *q = t->nodes[k].peer;

		if (k == lost || (q != NULL && !t->nodes[k].left.any && cn_peer_is_silent(q))) {
			cn_name_list_add(&l, t->nodes[k].name);
			silent++;
		}
	}
	cn_name_list_end(&l);
	cn_version_mismatch_clause(t, now, p, other, sizeof(other));
	if (t->engine->no_carrier) {
		snprintf(other, sizeof(other), ": interface %s of node %s has no carrier",
			 c->interface, c->node.name);
	}
	if (silent == 1) {
		cn_team_fail(t, true, COLLNET_EPEER, "node %s stopped answering node %s%s",
			     t->nodes[lost].name, c->node.name, other);
	} else if (silent == peers && !hears_others(t, now)) {
		cn_team_fail(t, true, COLLNET_EPEER,
			     "node %s is cut off: none of its %u peers "
			     "answers%s%s%s",
			     c->node.name, peers, c->interface[0] != '\0' ? " on " : "",
			     c->interface, other);
	} else {
		cn_team_fail(t, true, COLLNET_EPEER,
			     "%u of %u peers stopped answering: %s (seen by "
			     "node %s)%s",
			     silent, peers, l.text, c->node.name, other);
	}
}

/* The peer gave this node up. If it did not hear others either, it is the peer that is cut off. */
static void fail_unheard(struct cn_team *t, const struct cn_peer *p, uint32_t k)
{
	const struct cn_engine_config *c = &t->engine->config;
	const char *own = c->node.name, *name = t->nodes[k].name;
	const uint32_t unheard = cn_peer_unheard(p), peers = remaining_peers(t, k);
	char whom[COLLNET_NAME_MAX + 40], by[sizeof(c->interface) + 20] = "";

	if (unheard >= peers && peers > 1) {
		snprintf(whom, sizeof(whom), "any of its %u peers", peers);
	} else if (unheard > 1) {
		snprintf(whom, sizeof(whom), "%u of its %u peers", unheard, peers);
	} else {
		snprintf(whom, sizeof(whom), "node %s", own);
		if (c->interface[0] != '\0') {
			snprintf(by, sizeof(by), ", which sends on %s", c->interface);
		}
	}
	cn_team_fail(t, true, COLLNET_EPEER,
		     "node %s did not hear %s for long and gave up node %s%s", name, whom, own, by);
}

/* The message goes to all nodes, so it names both ends: a node that is cut off takes all others for
 * silent. */
static void fail_by_loss(struct cn_team *t, cn_time now, const struct cn_peer *p, uint32_t k,
			 enum cn_peer_loss why)
{
	const char *name = t->nodes[k].name;

	if (why == CN_PEER_SILENT || why == CN_PEER_PATH) {
		fail_by_silence(t, now, p, k);
	} else if (why == CN_PEER_RESET || why == CN_PEER_UNHEARD) {
		fail_unheard(t, p, k);
	} else {
		cn_team_fail(t, true, COLLNET_EPEER, "node %s %s", name, cn_peer_loss_text(why));
	}
}

/* Frames that came before the team is ready are of the team that the peer had then. */
static void forget_early_frames(struct cn_team *t, const struct cn_peer *p)
{
	struct cn_unexpected_queue early = { NULL, NULL };

	cn_unexpected_queue_split(&t->unexpected, CN_UNEXPECTED_OF_PEER,
				  cn_peer_index(cn_engine_peer_of(p)->peer), &early);
	cn_team_drop_unexpected(t, &early);
}

/* The session ended with a node that has this one's COMMIT and may be ready: it is not established
 * again. If the nodes' own has ended, the record is gone, and the node may join anew. */
static void lose_committed(struct cn_team *t, const struct cn_peer *p)
{
	const struct cn_join *j = cn_wireup_join_of(t, cn_engine_peer_of(p)->peer);

	if (j != NULL && j->commit_sent == t->id && !j->first_left.any) {
		cn_team_fail(t, true, COLLNET_EPEER,
			     "nodes %s and %s lost each other before the team was ready",
			     t->engine->config.node.name, cn_peer_name(p));
	}
}

void cn_team_peer_down(struct cn_team *t, cn_time now, struct cn_peer *p, enum cn_peer_loss why)
{
	uint32_t k = cn_team_node_of(t, p);

	if (t->state == CN_TEAM_FORMING) {
		forget_early_frames(t, p);
		lose_committed(t, p);
		return;
	}
	if (k == UINT32_MAX || t->nodes[k].peer != p) {
		return;
	}
	t->nodes[k].peer = NULL;
	if (!t->nodes[k].left.any) { /* else its ranks had left before */
		fail_by_loss(t, now, p, k, why);
	}
}

void cn_team_path_drops(struct cn_team *t, const struct cn_peer *p, uint32_t bytes)
{
	const struct cn_node_config *c = &t->engine->config.node;

	cn_team_fail(t, true, COLLNET_EPEER,
		     "frames of %u bytes from node %s do not reach node %s, shorter ones do: let "
		     "every switch and bridge between them carry MTU %u",
		     bytes, c->name, cn_peer_name(p), c->mtu);
}
