/* SPDX-License-Identifier: BSD-2-Clause */
/* struct cn_node, for lib/proto and its tests. */
#ifndef CN_NODE_IMPL_H
#define CN_NODE_IMPL_H

#include "proto/counters.h"
#include "proto/foreign_version.h"
#include "proto/global_window.h"
#include "proto/node.h"
#include "proto/peer_impl.h"
#include "proto/unvalidated.h"
#include "util/pool.h"

/* The largest window that can be configured. */
#define CN_WINDOW_MAX 1024u

struct cn_node {
	struct cn_node_config config;
	const struct cn_node_ops *ops;
	void *ctx;
	cn_time now;	 /* of the current call */
	uint32_t header; /* bytes between a frame's Ethernet header and its payload */
	uint8_t hello_key[CN_SIPHASH_KEY]; /* if frames are authenticated */
	uint32_t payload;		   /* maximum payload of a frame */

	/* the node table */
	struct cn_peer **peers; /* [max_peers], the first npeers in use */
	uint32_t npeers;
	uint32_t *hash; /* index + 1 by MAC address; 0: empty; open addressing */
	uint32_t hash_mask;
	uint64_t hash_key; /* secret, so that addresses cannot be made to collide */
	/* [max_peers] up: hash of the name; down: the hash - 1, or 0 if another peer has the
	 * name */
	uint32_t *names;
	uint64_t evicted;    /* entries reused for other addresses */
	cn_time evict_at[2]; /* earliest next eviction; [1]: for a listed node */
	cn_time full_log_at; /* earliest next line that the table is full */

	struct cn_heap timers;
	struct cn_idle idle;
	uint32_t nexpecting; /* peers that something waits for */
	struct cn_peer *ready_first, *ready_last;
	struct cn_peer *window_waiting; /* peers whose refused frames have no room in W_g */
	struct cn_path_queue paths;
	uint8_t *zeros; /* [payload] padding of probes */

	/* discovery */
	struct cn_timer hello_timer;
	uint32_t hellos_sent;
	bool hello_due;
	bool begun;			    /* the first hello is scheduled */
	bool leaving;			    /* closing (goodbyes): input is ignored */
	enum cn_bye bye;		    /* why */
	uint32_t byes_due, bye_next;	    /* remaining rounds of goodbyes, and the next peer */
	struct cn_unvalidated *unvalidated; /* [nunvalidated] */
	uint32_t nunvalidated, nunvalidated_used;
	struct cn_unvalidated *unvalidated_first, *unvalidated_last; /* a hello is due */
	struct cn_bucket unvalidated_replies;
	/* replies to addresses without an entry, with authentication */
	struct cn_bucket stray_replies;
	struct cn_foreign_version_entry foreign_versions[CN_FOREIGN_VERSIONS];
	struct cn_other_cluster {
		bool heard;
		uint16_t id;
		cn_time last_rx;
	} other_cluster;

	struct cn_bucket log, foreign_version_log;
	uint32_t log_suppressed;

	struct cn_pool pool; /* full payloads: out-of-order and unexpected frames, control messages,
			      * copied tails */
	struct cn_pool small; /* short control messages */
	struct cn_pool rings; /* retransmission queues of CN_RTX_SMALL frames, one per peer */
	struct cn_window own_window, *window; /* port 0's, shared by the node's other transports */
	struct cn_counters counters;
	uint32_t loss; /* share of acknowledged frames that were retransmitted, of 65,536; mean of
			* some dozens. A dead peer acknowledges nothing and does not count */
	uint32_t loss_in; /* likewise of frames accepted here after a NAK for them */
};

/* Frames accepted per acknowledgement: an eighth of the window, so that a sender never waits for
 * one, and at least 16, which keeps acknowledgements below 1 % of the bytes. */
static inline uint32_t cn_ack_every(const struct cn_node *n)
{
	return n->config.send_window / 8 > 16 ? n->config.send_window / 8 : 16;
}

/* True if cn_node_buffer_get() would succeed. */
bool cn_node_has_buffer(const struct cn_node *n);
/* Returns a buffer to its pool. */
void cn_node_put(struct cn_node *n, const void *buffer);
cn_time cn_hello_interval(const struct cn_node *n);
/* The jitter of actions that many nodes would take at once: different on every node and, with an
 * address (not NULL), for every pair of nodes. 0 in small clusters. */
cn_time cn_node_jitter(const struct cn_node *n, const uint8_t *mac);

#endif
