/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pending control queue: control messages that found no buffer, in order for each node, retried
 * until they are sent. Wire-up messages are repeated anyway; but LEAVE, END and FAIL are sent once,
 * by a node that then frees the team. Many ranks that leave at once in a large cluster cause more
 * messages than there are buffers. The queue is bounded, in total and per peer, so that a peer that
 * does not read does not starve the others. Messages beyond, or without memory, are lost, and
 * logged; a team that needs them fails everywhere (cn_transport_fail_team()).
 */
#ifndef CN_PENDING_H
#define CN_PENDING_H

#include "proto/node.h"

#define CN_PENDING_OF_PEER 4096u /* messages that wait for one peer */

struct cn_pending;

struct cn_pending_queue {
	struct cn_node *node;
	struct cn_pending *first, *last;
	uint32_t n;
	uint32_t *of_peer; /* [max_peers] messages that wait for it */
	bool *blocked;	   /* [max_peers] during a retry: one of it found no buffer */
	cn_time retry_at;
};

/* max_peers: of the node. False: no memory. */
bool cn_pending_init(struct cn_pending_queue *q, struct cn_node *node, uint32_t max_peers);
void cn_pending_fini(struct cn_pending_queue *q);

/* Sends it now, or when there is a buffer, after the messages pending for this peer. False: it is
 * lost. */
bool cn_pending_send(struct cn_pending_queue *q, struct cn_peer *p, const uint8_t *m, size_t len);
void cn_pending_drop(struct cn_pending_queue *q, const struct cn_peer *p); /* it is gone */
void cn_pending_expire(struct cn_pending_queue *q, cn_time now);
cn_time cn_pending_deadline(const struct cn_pending_queue *q);

#endif
