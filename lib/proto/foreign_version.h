/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes of another wire version, or of the same version in another encapsulation. */
#ifndef CN_FOREIGN_VERSION_H
#define CN_FOREIGN_VERSION_H

#include "proto/frame.h"
#include "util/util.h"

struct cn_node;
struct cn_peer;

#define CN_FOREIGN_VERSIONS 16u

struct cn_foreign_version {
	const struct cn_peer *peer; /* with this address, up or down; NULL: none */
	uint8_t mac[6];
	uint8_t version; /* of its last such frame */
	enum cn_encapsulation encapsulation;
};

/* An entry of the node's table. */
struct cn_foreign_version_entry {
	bool used;
	uint8_t mac[6];
	uint8_t version;
	enum cn_encapsulation encapsulation;
	cn_time last_rx; /* of such a frame */
};

/*
 * Those heard during the last minute of which no frame of a session came since; returns how many.
 */
uint32_t cn_node_foreign_versions(struct cn_node *n, cn_time now,
				  struct cn_foreign_version out[CN_FOREIGN_VERSIONS]);
/* A frame of another wire version, or else of another encapsulation, came from this address. */
void cn_foreign_version_note(struct cn_node *n, const uint8_t mac[6], uint8_t version,
			     enum cn_encapsulation encapsulation);
/* "speaks wire version 3, this node 2" or "uses encapsulation udp, this node raw". */
#define CN_FOREIGN_VERSION_TEXT 64
void cn_foreign_version_text(const struct cn_node *n, uint8_t version,
			     enum cn_encapsulation encapsulation,
			     char out[CN_FOREIGN_VERSION_TEXT]);

#endif
