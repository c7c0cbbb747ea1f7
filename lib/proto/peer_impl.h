/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct cn_peer, for lib/proto and its tests: the identity and the session of another node, and
 * one object for each task of the transport. The objects have no pointer to the peer or the node.
 */
#ifndef CN_PEER_IMPL_H
#define CN_PEER_IMPL_H

#include "proto/auth.h"
#include "proto/hello.h"
#include "proto/liveness.h"
#include "proto/path_mtu.h"
#include "proto/peer.h"
#include "proto/receiver.h"
#include "proto/sender.h"
#include "proto/tlp.h"
#include "util/bucket.h"
#include "util/heap.h"

enum cn_peer_state {
	CN_PEER_DOWN, /* no session: it had one, or its name is taken */
	CN_PEER_UP,   /* the session is established here */
};

/* Fields used by every frame come first, in few cache lines: a node of a large cluster has many
 * peers. */
struct cn_peer {
	struct cn_node *node;
	uint32_t index; /* in the node table */
	enum cn_peer_state state;
	uint8_t mac[6];
	bool validated; /* a frame of the session came: the session is established at both ends */
	bool ready;	/* in the node's list of peers that have something to send */
	uint32_t session_out, session_in;
	uint16_t port; /* of its transport */
	struct cn_peer *ready_next;
	void *user;
	/* to be sent in an ACK frame */
	bool ack_due, nak_due, rnr_due, ackreq_due;
	bool reset_due; /* likewise, of the session that has ended */
	/* queued control messages, a list through their buffers, and their number */
	uint8_t *control_first, *control_last;
	uint32_t controls;
	struct cn_timer timer; /* earliest deadline of all objects */
	struct cn_receiver rx;
	struct cn_sender tx;
	struct cn_liveness live;
	struct cn_tlp tlp;
	uint64_t data_sent, data_resent, data_received;
	struct cn_path path;
	struct cn_path_reply path_reply;
	struct cn_hello_state hello;
	struct cn_auth auth; /* if frames are authenticated */

	uint64_t epoch;	     /* of its incarnation */
	uint64_t generation; /* of our nonce; grows when the session ends */
	uint64_t nonce_out;  /* ours for it, known only to receivers of our unicast hellos to it */
	uint64_t nonce_in;   /* its nonce for us, validated while the session is established */
	uint32_t bye_out, bye_in; /* tokens of the session's goodbyes */
	cn_time refused_at;	  /* first refusal for a name conflict; 0: established since */
	uint32_t unheard;	  /* cn_peer_unheard() */
	bool ended;		  /* cn_peer_ended() */
	struct cn_bucket log;
	bool mtu_logged; /* a differing MTU was logged */
	uint32_t mtu;
	char name[COLLNET_NAME_MAX + 1];
};

struct cn_peer *cn_peer_by_mac(struct cn_node *n, const uint8_t mac[6]);
/* `name`: of a node that may replace an unlisted one; else NULL. Returns NULL if the table is
 * full. */
struct cn_peer *cn_peer_add(struct cn_node *n, const uint8_t mac[6], const char *name);
uint32_t cn_name_hash(const char *name); /* odd */
/* Begins and ends the session. */
void cn_peer_up(struct cn_peer *p);
void cn_peer_down(struct cn_peer *p, enum cn_peer_loss why);
/* Adds it to the list of peers that may have something to send. */
void cn_peer_ready(struct cn_peer *p);
void cn_peer_reschedule(struct cn_peer *p); /* a deadline has changed */
void cn_peer_set_timer(struct cn_peer *p);  /* its timer has expired */

#endif
