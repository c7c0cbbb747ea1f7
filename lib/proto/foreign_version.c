/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nothing of a frame of another wire version is read beyond the version, so only the address of its
 * sender is known. A frame of another encapsulation, with a tag if this node has no key, without
 * one or with a wrong one if it has, is treated alike: no session with its sender is possible.
 * Neither is one with a node that has the name of this one: each refuses the other, so that only
 * this tells users; nor with one that has the name of another node, which keeps it. The table has
 * CN_FOREIGN_VERSIONS entries. An entry is replaced when nothing of its sender came for a few
 * seconds, so that forged addresses cannot displace a node that repeats its hellos; it expires
 * after a minute.
 */
#include "proto/foreign_version.h"

#include <stdio.h>
#include <string.h>

#include "proto/node_impl.h"

static const cn_time replaced_after = 5000 * CN_MS, expires_after = 60000 * CN_MS;
/* Interval of log lines over all senders. */
static const cn_time line_each = 10000 * CN_MS;

/* The sender's entry, or a free one, or the least recently used one; NULL: no room. */
static struct cn_foreign_version_entry *entry_of(struct cn_node *n, const uint8_t mac[6])
{
	struct cn_foreign_version_entry *found = &n->foreign_versions[0];

	for (struct cn_foreign_version_entry *s = n->foreign_versions;
	     s < n->foreign_versions + CN_FOREIGN_VERSIONS; s++) {
		if (s->used && memcmp(s->mac, mac, 6) == 0) {
			return s;
		}
		if (found->used && (!s->used || s->last_rx < found->last_rx)) {
			found = s;
		}
	}
	return !found->used || n->now >= found->last_rx + replaced_after ? found : NULL;
}

void cn_foreign_version_text(const struct cn_node *n, const struct cn_mismatch *what,
			     char out[CN_FOREIGN_VERSION_TEXT])
{
	if (what->name[0] != '\0') {
		snprintf(out, CN_FOREIGN_VERSION_TEXT, "is called %s, as %s node", what->name,
			 strcmp(what->name, n->config.name) == 0 ? "this" : "another");
	} else if (what->version != CN_WIRE_VERSION) {
		snprintf(out, CN_FOREIGN_VERSION_TEXT, "speaks wire version %u, this node %u",
			 what->version, CN_WIRE_VERSION);
	} else if (what->encapsulation == n->config.encapsulation) {
		snprintf(out, CN_FOREIGN_VERSION_TEXT, "%s",
			 what->other_key       ? "has another key than this node"
			 : what->authenticated ? "has a key, this node none"
					       : "has no key, this node has one");
	} else {
		snprintf(out, CN_FOREIGN_VERSION_TEXT, "uses encapsulation %s, this node %s",
			 cn_encapsulation_name(what->encapsulation),
			 cn_encapsulation_name(n->config.encapsulation));
	}
}

static bool is_alike(const struct cn_mismatch *a, const struct cn_mismatch *b)
{
	return a->version == b->version && a->encapsulation == b->encapsulation &&
	       a->authenticated == b->authenticated && a->other_key == b->other_key &&
	       strcmp(a->name, b->name) == 0;
}

void cn_foreign_version_forget(struct cn_node *n, const uint8_t mac[6])
{
	for (uint32_t i = 0; i < CN_FOREIGN_VERSIONS; i++) {
		struct cn_foreign_version_entry *s = &n->foreign_versions[i];

		s->used = s->used && memcmp(s->mac, mac, 6) != 0;
	}
}

void cn_foreign_version_record(struct cn_node *n, const uint8_t mac[6],
			       const struct cn_mismatch *what)
{
	char text[CN_FOREIGN_VERSION_TEXT];
	struct cn_foreign_version_entry *s = entry_of(n, mac);
	const struct cn_peer *p;
	bool known;

	if (s == NULL) {
		return;
	}
	known = s->used && memcmp(s->mac, mac, 6) == 0 && is_alike(&s->what, what);
	s->used = true;
	s->what = *what;
	s->last_rx = n->now;
	memcpy(s->mac, mac, 6);
	if (known) {
		return;
	}
	if (!cn_bucket_take(&n->foreign_version_log, n->now, CN_FOREIGN_VERSIONS, line_each)) {
		n->log_suppressed++;
		return;
	}
	p = what->name[0] == '\0' ? cn_peer_by_mac(n, mac) : NULL; /* else the hello has its name */
	cn_foreign_version_text(n, what, text);
	cn_log(COLLNET_LOG_WARNING, "%02x:%02x:%02x:%02x:%02x:%02x%s%s%s %s%s", mac[0], mac[1],
	       mac[2], mac[3], mac[4], mac[5], p != NULL ? " (" : "", p != NULL ? p->name : "",
	       p != NULL ? ")" : "", text,
	       what->name[0] != '\0' ? ": give every node a name of its own by --node" : "");
}

/* Only one other cluster is recorded; any number of nodes may belong to any cluster. */
void cn_other_cluster_record(struct cn_node *n, uint16_t id)
{
	struct cn_other_cluster *o = &n->other_cluster;

	if (!o->heard || o->id == id || n->now >= o->last_rx + replaced_after) {
		*o = (struct cn_other_cluster){ .heard = true, .id = id, .last_rx = n->now };
	}
}

bool cn_node_other_cluster(const struct cn_node *n, cn_time now, uint16_t *id)
{
	const struct cn_other_cluster *o = &n->other_cluster;

	*id = o->id;
	return o->heard && now < o->last_rx + expires_after;
}

uint32_t cn_node_foreign_versions(struct cn_node *n, cn_time now,
				  struct cn_foreign_version out[CN_FOREIGN_VERSIONS])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < CN_FOREIGN_VERSIONS; i++) {
		const struct cn_foreign_version_entry *s = &n->foreign_versions[i];
		const struct cn_peer *p = s->used ? cn_peer_by_mac(n, s->mac) : NULL;

		/* A frame of the session proves the peer's version; other frames can be forged. */
		if (!s->used || now >= s->last_rx + expires_after ||
		    (p != NULL && p->live.last_node_rx >= s->last_rx)) {
			continue;
		}
		out[count].peer = p != NULL && !cn_peer_is_replaced(p) ? p : NULL;
		out[count].what = s->what;
		memcpy(out[count++].mac, s->mac, 6);
	}
	return count;
}
