/* SPDX-License-Identifier: BSD-2-Clause */
/* A team that is not ready at the deadline of a rank here: why not. */
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

/* Others may have given up before us: those that never came are to blame, not those that left. */
void cn_wireup_timeout(struct cn_team *t, cn_time now)
{
	char missing[200], other[256];
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
	/* FAIL carries 255 bytes. */
	n = list_missing(t, t->wireup.seen, missing, other[0] == '\0' ? sizeof(missing) : 60);
	if (n > 0 && t->wireup.contradiction[0] != '\0') {
		cn_team_fail(
			t, false, COLLNET_ETIMEOUT,
			"job %s: %u of %u ranks missing at the deadline: %.60s; before, %.160s",
			t->job, n, t->ranks, missing, t->wireup.contradiction);
		return;
	}
	if (n > 0) {
		/* Nodes that received no such frame are notified. */
		cn_team_fail(
			t, other[0] != '\0', COLLNET_ETIMEOUT,
			"job %s: %u of %u ranks missing at the deadline: %s%s; start them, or see "
			"whether collnet status shows their nodes",
			t->job, n, t->ranks, missing, other);
		return;
	}
	n = list_missing(t, t->wireup.present, missing, sizeof(missing));
	if (n > 0) {
		cn_team_fail(
			t, false, COLLNET_ETIMEOUT,
			"job %s: %u of %u ranks came and left again before the team was ready: %s",
			t->job, n, t->ranks, missing);
		return;
	}
	/* Others may have their team. */
	cn_team_fail(t, true, COLLNET_ETIMEOUT,
		     "job %s: all %u ranks are there, but not every "
		     "node confirmed it in time",
		     t->job, t->ranks);
}
