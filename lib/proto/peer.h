/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer, another node that this one has a session with or had one: what the engine asks of the
 * transport about it. Peers are in the node table (proto/node.h) and are never freed before the
 * node.
 */
#ifndef CN_PEER_H
#define CN_PEER_H

#include "util/util.h"

struct cn_node;
struct cn_peer;

/* Why a session ended. */
enum cn_peer_loss {
	CN_PEER_SILENT,	   /* idle for dead_after while something waited for it */
	CN_PEER_RESTARTED, /* a new incarnation: its epoch is another one */
	CN_PEER_BYE,	   /* it said goodbye: its daemon ends */
	CN_PEER_RESET,	   /* the same incarnation ended the session and begins a new one */
	CN_PEER_PATH,	   /* it answers, but a frame does not get through to it */
	CN_PEER_MOVED,	   /* it said goodbye, because it has another interface now */
	CN_PEER_PROCESS,   /* it said goodbye: its process, which has no daemon, ends */
	CN_PEER_ADDRESS,   /* it said goodbye: its interface has another address now */
	CN_PEER_MTU,	   /* it said goodbye: its interface has another MTU now */
	CN_PEER_ACKS,	   /* it lacks frames that were acknowledged: a frame was damaged */
};

/* Why a node says goodbye, as its goodbye has it. Other numbers count as the first. */
enum cn_bye {
	CN_BYE_DAEMON = 0,
	CN_BYE_MOVED = 1,   /* its interface was replaced */
	CN_BYE_PROCESS = 2, /* direct mode: there is no daemon */
	CN_BYE_ADDRESS = 3, /* its interface lost or changed its address */
	CN_BYE_MTU = 4,	    /* and another MTU, at which it continues */
};

/* Whether frames of the MTU get through to a peer, in this session. */
enum cn_path_state {
	CN_PATH_UNKNOWN, /* cn_peer_validate() was not called */
	CN_PATH_WAITING, /* other peers are probed first */
	CN_PATH_PROBING,
	CN_PATH_VALID,
	CN_PATH_FAILED,
};

const char *cn_peer_name(const struct cn_peer *p);
uint32_t cn_peer_index(const struct cn_peer *p); /* in the node table */
bool cn_peer_alive(const struct cn_peer *p);	 /* a session is established */
/* Another peer is, or was since, established under its name. */
bool cn_peer_is_replaced(const struct cn_peer *p);
uint32_t cn_peer_mtu(const struct cn_peer *p); /* of its hello */
/* Its smallest round trip so far; 0: none was measured. */
cn_time cn_peer_least_rtt(const struct cn_peer *p);
void *cn_peer_user(const struct cn_peer *p); /* the engine's own; NULL at first */
void cn_peer_set_user(struct cn_peer *p, void *user);
void cn_peer_info(const struct cn_peer *p, cn_time now, struct collnet_node_info *out);

/*
 * How many new frames may be sent to the peer now; 0: its window is closed, or it is gone. It makes
 * room for one, so it is called before every frame that pull() gives.
 */
uint32_t cn_peer_room(struct cn_peer *p);
/* Frames sent and not acknowledged. */
uint32_t cn_peer_in_flight(const struct cn_peer *p);
/* Of these, those sent since the last request of an acknowledgement. */
uint32_t cn_peer_unrequested(const struct cn_peer *p);
/* Whether the acknowledgement of some of them was requested. */
bool cn_peer_ack_requested(const struct cn_peer *p);
/*
 * Something waits until fewer frames are in flight to the peer: it is sent an ACK request, unless
 * the acknowledgement of some of them was requested.
 */
void cn_peer_request_ack(struct cn_peer *p);

/* Receiver not ready: the peer refused the last frame, because it has no buffer for it; or this
 * node refused the last frame of the peer. */
bool cn_peer_rnr_received(const struct cn_peer *p);
bool cn_peer_rnr_sent(const struct cn_peer *p);

/*
 * Data will be sent back to this peer soon, by the operation whose frame is being delivered, or
 * there is other data that must not be delayed: the acknowledgement may wait, twice as long as it
 * would alone, or one and a half times the inter-arrival time.
 */
void cn_peer_reply_soon(struct cn_peer *p);
/*
 * Nothing will be sent back to this peer for the frame that is being delivered, which ends what all
 * nodes do together: it is acknowledged at once. After a delay the acknowledgements of all nodes
 * would go at one time, among the frames of what follows.
 */
void cn_peer_no_reply(struct cn_peer *p);

/*
 * Something here waits for this peer (delta 1), or no longer does (-1). A peer that is waited for
 * and idle is probed, and is lost after dead_after.
 */
void cn_peer_expect(struct cn_node *n, cn_time now, struct cn_peer *p, int delta);
/*
 * Whether a peer is silent, too, when another one is given up: while that one did not answer, up to
 * 64 others were probed in rounds, and this one did not answer either.
 */
bool cn_peer_is_silent(const struct cn_peer *p);

/*
 * Finds out whether frames of the MTU get through to the peer; the result comes by the path()
 * upcall, once per session, or again after a failure. A node probes one peer at a time.
 */
void cn_peer_validate(struct cn_node *n, cn_time now, struct cn_peer *p);
enum cn_path_state cn_peer_path(const struct cn_peer *p);

/* Logs a line about a peer, unless it is one too many; a later line has the number of those that
 * were suppressed. */
void cn_peer_log(struct cn_peer *p, enum collnet_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
