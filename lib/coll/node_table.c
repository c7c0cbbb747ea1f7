/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node table as users see it. A node whose address has changed, as with a new network card, is
 * listed once, with the new one.
 */
#include <string.h>

#include "coll/engine_state.h"
#include "coll/version_mismatch.h"
#include "proto/wire.h"

#define AT_ONCE 8192u /* lookups of a node in a transport: 64 nodes and 1,000 teams took 14 ms */

/* A part of the node table. */
struct part {
	struct collnet_node_info *out;
	size_t first, cap, count;
};

/* The next entry; NULL: it is not in the part. */
static struct collnet_node_info *next_entry(struct part *t)
{
	size_t i = t->count++ - t->first; /* of one before it: too large */

	return i < t->cap ? memset(&t->out[i], 0, sizeof(t->out[i])) : NULL;
}

static void mismatch_info(const struct cn_engine *e, const struct cn_foreign_version *s,
			  struct collnet_node_info *out)
{
	out->wire_version = s->what.version;
	cn_foreign_version_text(e->own.node, &s->what, out->mismatch);
}

void cn_engine_nodes(struct cn_engine *e, cn_time now, size_t first, struct collnet_node_info *out,
		     size_t *count)
{
	const struct cn_node_config *c = cn_node_config(e->own.node);
	struct cn_foreign_version s[CN_FOREIGN_VERSIONS];
	uint32_t n = cn_node_foreign_versions(e->own.node, now, s);
	struct part t = { .out = out, .first = first, .cap = *count };
	struct collnet_node_info *i = next_entry(&t);

	if (i != NULL) {
		memcpy(i->name, c->name, sizeof(c->name));
		memcpy(i->mac, c->mac, 6);
		i->mtu = c->mtu;
		i->wire_version = CN_WIRE_VERSION;
		i->alive = i->self = 1;
	}
	for (uint32_t k = 0; k < cn_node_peers(e->own.node); k++) {
		const struct cn_peer *p = cn_node_peer(e->own.node, k);

		if (!cn_peer_is_replaced(p) && (i = next_entry(&t)) != NULL) {
			cn_engine_peer_info(e, now, p, i);
			for (uint32_t m = 0; m < n; m++) {
				if (s[m].peer != p) {
					continue;
				}
				if (s[m].what.name[0] != '\0') { /* p's name is a former one */
					cn_version_mismatch_name(e, &s[m], i->name);
				}
				mismatch_info(e, &s[m], i);
			}
		}
	}
	for (uint32_t k = 0; k < n; k++) {
		if (s[k].peer == NULL && (i = next_entry(&t)) != NULL) {
			cn_version_mismatch_name(e, &s[k], i->name);
			memcpy(i->mac, s[k].mac, 6);
			mismatch_info(e, &s[k], i);
		}
	}
	*count = t.count;
}

uint32_t cn_engine_nodes_at_once(const struct cn_engine *e)
{
	uint32_t transports = 0;

	for (const struct cn_transport *x = &e->own; x != NULL; x = x->next) {
		transports++;
	}
	return transports < AT_ONCE ? AT_ONCE / transports : 1;
}
