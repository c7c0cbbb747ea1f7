/* SPDX-License-Identifier: BSD-2-Clause */
/* A team that is not ready at the deadline of a rank here: why not. */
#include <stdio.h>

#include "coll/engine_state.h"
#include "coll/ranges.h"
#include "coll/team.h"
#include "coll/version_mismatch.h"

/* Ranks whose bit is not set; returns how many. */
static uint32_t list_missing(const struct cn_team *t, const uint64_t *bits, char *text, size_t cap)
{
	struct cn_rank_list l = { .text = text, .cap = cap };
	uint32_t n = 0;

	text[0] = '\0';
	for (uint32_t r = 0; r < t->ranks; r++) {
		if (!cn_bit(bits, r)) {
			cn_rank_list_add(&l, r);
			n++;
		}
	}
	cn_rank_list_end(&l);
	return n;
}

/* "; nodes of cluster 2 were heard, this node is of cluster 0", or "". */
static void cluster_clause(const struct cn_engine *e, cn_time now, char *text, size_t cap)
{
	uint16_t other;

	text[0] = '\0';
	if (cn_node_other_cluster(e->own.node, now, &other)) {
		snprintf(text, cap, "; nodes of cluster %u were heard, this node is of cluster %u",
			 other, e->config.node.cluster);
	}
}

/* "; nodes h4-h7 stopped answering": those lost for the reason of the first one. */
static void lost_clause(const struct cn_team *t, char *text, size_t cap)
{
	struct cn_node *n = t->engine->own.node;
	struct cn_name_list l = { .len = 0 };
	uint32_t count = 0;
	uint8_t why = 0;

	for (uint32_t i = 0; i < cn_node_peers(n); i++) {
		const struct cn_peer *p = cn_node_peer(n, i);
		/* One that came back with another address is there. */
		const uint8_t lost = cn_peer_is_replaced(p) ? 0 : cn_wireup_advertised(t, i)->lost;

		why = why == 0 ? lost : why;
		if (lost != 0 && lost == why) {
			cn_name_list_add(&l, cn_peer_name(p));
			count++;
		}
	}
	cn_name_list_end(&l);
	if (count > 0) {
		snprintf(text, cap, "; node%s %.80s %s", count > 1 ? "s" : "", l.text,
			 cn_peer_loss_text((enum cn_peer_loss)(why - 1)));
	}
}

/* What this node knows of the network that explains missing ranks, or "". */
static void network_clause(const struct cn_team *t, char *text, size_t cap)
{
	const struct cn_engine_config *c = &t->engine->config;
	struct cn_node *n = t->engine->own.node;
	uint32_t alive = 0;

	for (uint32_t i = 0; i < cn_node_peers(n); i++) {
		alive += cn_peer_alive(cn_node_peer(n, i));
	}
	if (t->engine->no_carrier) {
		snprintf(text, cap, "; interface %s of node %s has no carrier", c->interface,
			 c->node.name);
	} else if (alive > 0) {
		lost_clause(t, text, cap);
	} else {
		snprintf(text, cap, "; node %s exchanges frames with no other node%s%s",
			 c->node.name, c->interface[0] != '\0' ? " on " : "", c->interface);
	}
}

/* A node is alive that did not announce the job: its ranks may have another owner. */
static bool has_bystander(const struct cn_team *t)
{
	struct cn_node *n = t->engine->own.node;

	for (uint32_t i = 0; !t->wireup.derived && i < cn_node_peers(n); i++) {
		if (cn_peer_alive(cn_node_peer(n, i)) && !cn_wireup_advertised(t, i)->candidate) {
			return true;
		}
	}
	return false;
}

/* Others may have given up before us: those that never came are to blame, not those that left. */
void cn_wireup_timeout(struct cn_team *t, cn_time now)
{
	char missing[200], other[256], cluster[160]; /* cluster: or the network */
	uint32_t n;

	cn_wireup_check(t, now);
	if (t->state != CN_TEAM_FORMING) {
		return;
	}
	if (t->wireup.scattered) {
		cn_team_fail(t, true, COLLNET_ELIMIT,
			     "job %s: the ranks of node %s are too scattered: place ranks node by "
			     "node, or one on each node in turn",
			     t->job, t->engine->config.node.name);
		return;
	}
	cn_version_mismatch_clause(t, now, NULL, other, sizeof(other));
	cluster_clause(t->engine, now, cluster, sizeof(cluster));
	if (cluster[0] == '\0' && other[0] == '\0') {
		network_clause(t, cluster, sizeof(cluster));
	}
	/* FAIL carries 255 bytes, an error some more. */
	n = list_missing(t, t->wireup.seen, missing,
			 other[0] != '\0'			  ? 60
			 : cluster[0] != '\0' || has_bystander(t) ? 100
								  : sizeof(missing));
	if (n > 0 && t->wireup.contradiction[0] != '\0') {
		cn_team_fail(
			t, false, COLLNET_ETIMEOUT,
			"job %s: %u of %u ranks missing at the deadline: %.60s; before, %.160s",
			t->job, n, t->ranks, missing, t->wireup.contradiction);
		return;
	}
	if (n > 0 && t->wireup.derived) {
		/* A node is not heard before all its ranks have called. */
		cn_team_fail(
			t, other[0] != '\0', COLLNET_ETIMEOUT,
			"job %s: %u of %u ranks missing at the deadline, or waiting for "
			"another one of their node: %s%s%s; every rank of a new team must call%s",
			t->job, n, t->ranks, missing, other, cluster,
			t->divided ? "" : " with the same list");
		return;
	}
	if (n > 0) {
		/* Nodes that received no such frame are notified. */
		cn_team_fail(
			t, other[0] != '\0', COLLNET_ETIMEOUT,
			"job %s: %u of %u ranks missing at the deadline: %s%s%s; start them%s, or %s",
			t->job, n, t->ranks, missing, other, cluster,
			has_bystander(t)
				? ", with the same COLLNET_JOB and user ID (or COLLNET_SECRET)"
				: "",
			t->engine->config.advice);
		return;
	}
	n = list_missing(t, t->wireup.present, missing, sizeof(missing));
	if (n > 0) {
		cn_team_fail(t, false, COLLNET_ETIMEOUT,
			     "job %s: %u of %u ranks came and were gone again before the team was "
			     "ready: %s%s",
			     t->job, n, t->ranks, missing, cluster);
		return;
	}
	/* Others may have their team. */
	cn_team_fail(t, true, COLLNET_ETIMEOUT,
		     "job %s: all %u ranks are there, but not every "
		     "node confirmed it in time",
		     t->job, t->ranks);
}
