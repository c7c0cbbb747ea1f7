/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer: another node with which this one has or had a session, as the engine uses it. Peers are
 * in the node table (proto/node.h) and are freed with the node.
 */
#ifndef CN_PEER_H
#define CN_PEER_H

#include "util/util.h"

struct cn_node;
struct cn_peer;

/* Why a session ended. */
enum cn_peer_loss {
	CN_PEER_SILENT,	   /* idle for dead_after while something waited for it */
	CN_PEER_RESTARTED, /* a new incarnation: its epoch changed */
	CN_PEER_BYE,	   /* goodbye: its daemon ends */
	CN_PEER_RESET,	   /* the same incarnation ended the session and starts a new one */
	CN_PEER_PATH,	   /* it is alive, but the path drops a frame */
	CN_PEER_MOVED,	   /* goodbye: its interface was replaced */
	CN_PEER_PROCESS,   /* goodbye: its process, in direct mode, ends */
	CN_PEER_ADDRESS,   /* goodbye: its interface changed its address */
	CN_PEER_MTU,	   /* goodbye: its interface changed its MTU */
	CN_PEER_ACKS,	   /* it lacks acknowledged frames: a damaged frame was accepted */
	CN_PEER_UNHEARD,   /* it did not hear this node for long, and ended the session */
};

/* The reason in a goodbye. Unknown values count as the first. */
enum cn_bye {
	CN_BYE_DAEMON = 0,
	CN_BYE_MOVED = 1,   /* its interface was replaced */
	CN_BYE_PROCESS = 2, /* direct mode: there is no daemon */
	CN_BYE_ADDRESS = 3, /* its interface lost or changed its address */
	CN_BYE_MTU = 4,	    /* its interface changed its MTU, and it continues */
};

/* Path MTU state of a peer in this session. */
enum cn_path_state {
	CN_PATH_UNKNOWN, /* cn_peer_validate() was not called */
	CN_PATH_WAITING, /* queued behind other peers */
	CN_PATH_PROBING,
	CN_PATH_VALID,
	CN_PATH_FAILED,
};

const char *cn_peer_name(const struct cn_peer *p);
uint32_t cn_peer_index(const struct cn_peer *p); /* in the node table */
bool cn_peer_alive(const struct cn_peer *p);	 /* a session is established */
/* True if another peer is, or was since, established under its name. */
bool cn_peer_is_replaced(const struct cn_peer *p);
uint32_t cn_peer_mtu(const struct cn_peer *p); /* from its hello */
/* After CN_PEER_UNHEARD: of so many nodes of the port did it hear nothing; 0: it did not say. */
uint32_t cn_peer_unheard(const struct cn_peer *p);
/* Its minimum round-trip time; 0: not measured. */
cn_time cn_peer_least_rtt(const struct cn_peer *p);
void *cn_peer_user(const struct cn_peer *p); /* the engine's own; NULL at first */
void cn_peer_set_user(struct cn_peer *p, void *user);
void cn_peer_info(const struct cn_peer *p, cn_time now, struct collnet_node_info *out);

/*
 * Number of new frames that may be sent to the peer now; 0: its window is closed, or it is gone. It
 * allocates the queue entry of one, so it must be called before every frame that pull() returns.
 */
uint32_t cn_peer_room(struct cn_peer *p);
/* Unacknowledged frames. */
uint32_t cn_peer_in_flight(const struct cn_peer *p);
/* Of these, those sent since the last ACK request. */
uint32_t cn_peer_unrequested(const struct cn_peer *p);
/* True if an ACK request for some of them is outstanding. */
bool cn_peer_ack_requested(const struct cn_peer *p);
/*
 * Something waits until fewer frames are in flight to the peer: sends an ACK request, unless one is
 * outstanding.
 */
void cn_peer_request_ack(struct cn_peer *p);

/* Receiver not ready (RNR): the peer refused the last frame for want of a buffer, or this node
 * refused the peer's last frame. */
bool cn_peer_rnr_received(const struct cn_peer *p);
bool cn_peer_rnr_sent(const struct cn_peer *p);

/*
 * Data will be sent back to this peer soon, by the operation whose frame is being delivered, or
 * other data must not be delayed: the acknowledgement may wait twice as long as otherwise, or one
 * and a half times the inter-arrival time.
 */
void cn_peer_reply_soon(struct cn_peer *p);
/*
 * Nothing will be sent back to this peer for the frame that is being delivered, the last one of an
 * operation of all nodes: acknowledges it at once. After a delay the acknowledgements of all nodes
 * would coincide, and compete with the frames of the next operation.
 */
void cn_peer_no_reply(struct cn_peer *p);

/*
 * Something starts (delta 1) or stops (-1) waiting for this peer. An idle peer that something waits
 * for is probed, and lost after dead_after.
 */
void cn_peer_expect(struct cn_node *n, cn_time now, struct cn_peer *p, int delta);
/*
 * There is nothing behind the peer's port any more: it does not answer there, which is no silence.
 * Until its next session.
 */
void cn_peer_ended(struct cn_peer *p);
/*
 * True if a peer is also silent when another one is declared dead: while that one did not answer,
 * up to 64 others were probed in rounds, and this one did not answer either.
 */
bool cn_peer_is_silent(const struct cn_peer *p);

/*
 * Validates the path MTU to the peer; the path() upcall has the result, once per session, or again
 * after a failure. A node probes one peer at a time.
 */
void cn_peer_validate(struct cn_node *n, cn_time now, struct cn_peer *p);
enum cn_path_state cn_peer_path(const struct cn_peer *p);

/* Logs a line about a peer, rate-limited; a later line has the number of suppressed ones. */
void cn_peer_log(struct cn_peer *p, enum collnet_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
