/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes with which no session is possible, as errors name them. */
#include <stdio.h>
#include <string.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "coll/version_mismatch.h"

#define NAMED 3u /* in one error */

/* The name of the peer with the address, or of the host; NULL: neither is known. */
static const char *known_name(const struct cn_engine *e, const struct cn_foreign_version *s)
{
	const struct cn_topo *t = e->config.topo;

	if (s->peer != NULL) {
		return cn_peer_name(s->peer);
	}
	for (uint32_t i = 0; t != NULL && i < t->nhosts; i++) {
		const struct cn_vertex *v = &t->vertices[t->hosts[i]];

		if (v->has_mac && memcmp(v->mac, s->mac, 6) == 0) {
			return v->name;
		}
	}
	return NULL;
}

void cn_version_mismatch_name(const struct cn_engine *e, const struct cn_foreign_version *s,
			      char name[CN_VERSION_MISMATCH_NAME])
{
	const char *known = s->what.name[0] == '\0' ? known_name(e, s) : NULL;
	const uint8_t *m = s->mac;

	if (known != NULL) {
		snprintf(name, CN_VERSION_MISMATCH_NAME, "%s", known);
		return;
	}
	snprintf(name, CN_VERSION_MISMATCH_NAME, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2],
		 m[3], m[4], m[5]);
}

/* A node of the team that is silent together with `lost`, a peer of the team's transport; p is of
 * the node's own. */
static bool is_silent(const struct cn_team *t, const struct cn_peer *lost, const struct cn_peer *p)
{
	uint32_t k = p != NULL ? cn_team_node_of(t, p) : UINT32_MAX;
	const struct cn_peer *q = k != UINT32_MAX ? t->nodes[k].peer : NULL;

	return k != UINT32_MAX &&
	       (k == cn_team_node_of(t, lost) || (q != NULL && cn_peer_is_silent(q)));
}

void cn_version_mismatch_clause(const struct cn_team *t, cn_time now, const struct cn_peer *lost,
				char *text, size_t cap)
{
	struct cn_foreign_version s[CN_FOREIGN_VERSIONS];
	uint32_t n = cn_node_foreign_versions(t->engine->own.node, now, s), named = 0;
	char name[CN_VERSION_MISMATCH_NAME], what[CN_FOREIGN_VERSION_TEXT];
	size_t len = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < n && named < NAMED; i++) {
		if (lost != NULL && !is_silent(t, lost, s[i].peer)) {
			continue;
		}
		cn_version_mismatch_name(t->engine, &s[i], name);
		cn_foreign_version_text(t->engine->own.node, &s[i].what, what);
		snprintf(text + len, cap - len, "; %s %s", name, what);
		len += strlen(text + len);
		named++;
	}
}
