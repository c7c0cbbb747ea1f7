/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes with which no session is possible: of another wire version, of the same version in another
 * encapsulation, without this node's key, or with the name of this node or of another one.
 */
#ifndef CN_FOREIGN_VERSION_H
#define CN_FOREIGN_VERSION_H

#include "proto/frame.h"
#include "util/util.h"

struct cn_node;
struct cn_peer;

#define CN_FOREIGN_VERSIONS 16u

/* The mismatch shown by its last such frame. */
struct cn_mismatch {
	uint8_t version;
	enum cn_encapsulation encapsulation;
	bool authenticated;
	bool other_key; /* its tag is wrong */
	/* Of the node, and of this one or of another one that answers; "": it is not about that. */
	char name[COLLNET_NAME_MAX + 1];
};

struct cn_foreign_version {
	/* with this address, up or down; NULL: none that has its name */
	const struct cn_peer *peer;
	uint8_t mac[6];
	struct cn_mismatch what;
};

/* An entry of the node's table. */
struct cn_foreign_version_entry {
	bool used;
	uint8_t mac[6];
	struct cn_mismatch what;
	cn_time last_rx; /* of such a frame */
};

/*
 * Lists the senders of such frames of the last minute without a session since; returns their
 * number.
 */
uint32_t cn_node_foreign_versions(struct cn_node *n, cn_time now,
				  struct cn_foreign_version out[CN_FOREIGN_VERSIONS]);
/* Such a frame came from this address. */
void cn_foreign_version_record(struct cn_node *n, const uint8_t mac[6],
			       const struct cn_mismatch *what);
/* A session with this address was established. */
void cn_foreign_version_forget(struct cn_node *n, const uint8_t mac[6]);
/* A hello of another cluster was received. */
void cn_other_cluster_record(struct cn_node *n, uint16_t id);
/* True if one was received in the last minute; *id is its cluster (of several, one of them). */
bool cn_node_other_cluster(const struct cn_node *n, cn_time now, uint16_t *id);
/* "speaks wire version 2, this node 3", "uses encapsulation udp, this node raw", "has a key, this
 * node none", "has no key, this node has one", "has another key than this node", "is called n1, as
 * this node" or "is called n1, as another node". */
#define CN_FOREIGN_VERSION_TEXT sizeof(((struct collnet_node_info *)NULL)->mismatch)
void cn_foreign_version_text(const struct cn_node *n, const struct cn_mismatch *what,
			     char out[CN_FOREIGN_VERSION_TEXT]);

#endif
