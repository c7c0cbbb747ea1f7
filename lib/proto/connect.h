/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions of other ports than 0. A team's transport does not discover nodes: its sessions follow
 * from those that the node's own transport has established. Both ends derive the nonces of a
 * session from the nonces of the node's session, the port of the sender and a number that the
 * sender has never used before (the id of its team). So an end needs to know only the other end's
 * port and number, and a host that does not know the nodes' nonces does not know those of their
 * ports.
 */
#ifndef CN_CONNECT_H
#define CN_CONNECT_H

#include "proto/node.h"

/* One end of a session between ports. */
struct cn_port {
	uint16_t port;
	uint32_t id;
};

/*
 * Establishes the session of `n` with the transport `to` of the node `with`, an established peer of
 * port 0. No effect if that session exists; another session with the node ends first. `id` is this
 * end's. NULL: no memory, or the table is full; or that session has ended: established again, it
 * would accept its late frames as new ones.
 */
struct cn_peer *cn_node_connect(struct cn_node *n, cn_time now, struct cn_peer *with, uint32_t id,
				const struct cn_port *to);
/* The established peer of this transport on the same node as `with`; NULL: none. */
struct cn_peer *cn_node_connected(struct cn_node *n, const struct cn_peer *with);
/* Ends the session with the node `with`, if there is one; peer_down() is called. */
void cn_node_disconnect(struct cn_node *n, cn_time now, const struct cn_peer *with,
			enum cn_peer_loss why);
/* Adds the per-peer counters of `from`, the transport of another port, which is closing. */
void cn_node_add_counters(struct cn_node *n, const struct cn_node *from);

#endif
