/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport of one node: a pure machine. No sockets, no clock, no threads, no randomness, and
 * no allocation per frame. Four calls are its surface:
 *
 *   cn_node_input()     a frame came in, at this time
 *   cn_node_output()    give me the next frame to send, at this time
 *   cn_node_deadline()  when do you want to be called next
 *   cn_node_expire()    that time has come
 *
 * Above it is the engine (lib/coll), reached by the upcalls of struct cn_node_ops. Upcalls run
 * inside the four calls; they may use the functions below, but not the four calls.
 *
 * Reliability is Go-Back-N, as in Directed Point, extended by selective acknowledgements and a
 * reorder buffer. A transport has a port. Port 0 is the node's own: it discovers other nodes, and
 * carries control messages between them and the messages of endpoints. Each team has a transport
 * with a port of its own, whose sessions follow from those of port 0 (connect.h); so what one team
 * does not read holds up no other one. In each session there is one sequence of reliable frames in
 * each direction.
 *
 * So a machine has one engine (struct cn_engine), and a struct cn_node for itself and one per team.
 * A struct cn_peer is another machine as one cn_node sees it: a machine is a peer once per port.
 * The peer of cn_engine_peer, and the liveness in live.own, are those of the machine on port 0.
 *
 *   sender.h, receiver.h      Go-Back-N: retransmission queue (rtx_queue.h), reorder buffer
 *                             (reorder.h), acknowledgements, negative ones with SACK, RNR
 *   cc.h, rtt.h               congestion window, slow start, ssthresh; retransmission timeout
 *   tlp.h, liveness.h         tail-loss probes; silent peers
 *   hello.h, unvalidated.h    discovery, the handshake, sessions
 *   connect.h                 sessions of other ports than 0
 *   path_mtu.h                path MTU validation
 *   global_window.h           W_g, over all peers
 *   wire.h, auth.h            the wire format; authenticated frames
 *
 * peer_impl.h and node_impl.h put these together; input.c, output.c and timers.c are the four
 * calls.
 */
#ifndef CN_NODE_H
#define CN_NODE_H

#include "proto/foreign_version.h"
#include "proto/frame.h"
#include "proto/global_window.h"
#include "proto/peer.h"
#include "util/siphash.h"
#include "util/util.h"

struct cn_goodbye_list;

/* Types of frames, as on the wire (proto/wire.h). */
enum cn_type {
	CN_TYPE_HELLO = 1,   /* not reliable: discovery and the handshake */
	CN_TYPE_ACK = 2,     /* not reliable: an acknowledgement, or a request for one */
	CN_TYPE_CONTROL = 3, /* engine to engine */
	CN_TYPE_COLL = 4,    /* part of a collective; stream: coll/stream.h */
	CN_TYPE_MESSAGE = 5, /* part of a message; stream: endpoints */
};

/* Flags of reliable frames that the engine uses. */
#define CN_FLAG_FIRST 0x10 /* first frame of a message */
/* of a collective: the port to the sender holds all frames that the others have for it, twice */
#define CN_FLAG_ROOM 0x10
#define CN_FLAG_LAST 0x20 /* last frame of a message, or of a stream of a collective */

struct cn_node_config {
	uint8_t mac[6];
	uint16_t ethertype;
	uint16_t cluster;
	uint16_t port; /* 0: the node's own transport; others have no hellos: connect.h */
	enum cn_encapsulation encapsulation;
	uint64_t epoch;		     /* of this incarnation: not 0, and a new one at every start */
	uint8_t key[CN_SIPHASH_KEY]; /* secret, random, a new one at every start: nonces follow from
				      * it. All 0 in tests only */
	bool authenticated;	     /* all frames are, by the key of the cluster: auth.h */
	uint8_t cluster_key[CN_SIPHASH_KEY];
	char name[COLLNET_NAME_MAX + 1];
	uint32_t mtu;	       /* bytes after the Ethernet header, 576 .. 65,000; and what the
				* encapsulation takes of them, from 576 more on */
	uint32_t send_window;  /* Go-Back-N: frames in flight to one peer at most, 2 .. 1,024 */
	uint32_t initial_cwnd; /* first congestion window of a session, frames; 2 or more */
	uint32_t max_peers;    /* 1 .. 65,535 */
	uint32_t expected;     /* nodes that are to be expected, besides this one; 0: unknown */
	uint32_t pool_frames;  /* buffers for early frames, control messages and tails */
	uint32_t reorder;      /* frames of the reorder buffer, per peer: 0 (pure Go-Back-N) .. 8 */
	struct cn_window *window_shared;  /* of the node's own transport; NULL: it has its own */
	struct cn_goodbye_list *goodbyes; /* memory of cn_goodbye_list_size(max_peers) bytes, which
					   * outlives the transport; NULL: none */
	cn_time rto_min, rto_first; /* retransmission timeout: its floor; before the first sample */
	cn_time pto_min;	    /* probe timeout (TLP): its floor */
	cn_time ack_delay;	    /* of a delayed acknowledgement */
	cn_time dead_after;	    /* silence after which a peer is lost */
	cn_time hello_interval;
};

void cn_node_config_init(struct cn_node_config *c);

/* A frame that the engine wants sent, and one that came. */
struct cn_tx {
	struct cn_peer *peer;
	enum cn_type type;
	uint8_t flags;
	uint16_t len;
	uint32_t stream;
	const uint8_t *payload; /* stays valid and unchanged until acked() or cn_node_detach() */
	void *token;		/* opaque to the transport; passed to acked() */
	bool owned;		/* payload is the start of a buffer of the node's pool, which the
				 * transport puts back when the frame is acknowledged */
	bool ends;		/* as in struct cn_frame */
};

struct cn_rx {
	enum cn_type type;
	uint8_t flags;
	uint16_t len;
	uint32_t stream;
	const uint8_t *payload; /* valid during the upcall */
};

struct cn_node_ops {
	/* The next new frame by the schedules' order, to a peer with room; false: none now. */
	bool (*pull)(void *ctx, cn_time now, struct cn_tx *out);
	/* A reliable frame, in order. False: no buffer for it; it will come again. */
	bool (*deliver)(void *ctx, cn_time now, struct cn_peer *p, const struct cn_rx *rx);
	/* Where the payload of this frame, and those of the frames of its stream that follow, will
	 * be written by deliver(), if it is the next one. False: unknown. May be NULL. */
	bool (*place)(void *ctx, struct cn_peer *p, const struct cn_rx *rx,
		      struct cn_rx_place *out);
	/* The frame with this token is acknowledged, or will never be (the peer is gone). refused:
	 * it was not sent again since the last refused() for it. */
	void (*acked)(void *ctx, void *token, bool refused);
	/* The receiver refused the frame with this token: it is not in flight any more. */
	void (*refused)(void *ctx, void *token);
	/* It is to be sent again. False: it may not be in flight now, and will be asked for again.
	 * *flags: CN_FLAG_ACKREQ may be added. Both may be NULL. */
	bool (*resend)(void *ctx, void *token, uint8_t *flags);
	/* A frame with this token was lost, or one whose token is not known (NULL): it was copied
	 * (cn_node_detach()), or is one that a peer sent. May be NULL. */
	void (*lost)(void *ctx, void *token);
	void (*peer_up)(void *ctx, cn_time now, struct cn_peer *p);
	void (*peer_down)(void *ctx, cn_time now, struct cn_peer *p, enum cn_peer_loss why);
	/*
	 * The path to the peer was validated (bytes 0), or frames of so many bytes after the
	 * Ethernet header do not get through while shorter ones do. In the second case the peer is
	 * given up afterwards (CN_PEER_PATH) unless the frame was abandoned. May be NULL.
	 */
	void (*path)(void *ctx, cn_time now, struct cn_peer *p, uint32_t bytes);
	/* Whether a node of this name is expected: when the table of nodes is full, it takes the
	 * place of one that is not. May be NULL: none is. */
	bool (*listed)(void *ctx, const char *name);
};

int cn_node_new(const struct cn_node_config *c, const struct cn_node_ops *ops, void *ctx,
		struct cn_node **out, struct cn_err *err);
void cn_node_free(struct cn_node *n);

void cn_node_input(struct cn_node *n, cn_time now, const struct cn_rx_frame *f);
/* Where the payload of a frame will be written when it is processed, as the link may ask before: a
 * cn_rx_place_fn. */
bool cn_node_place(struct cn_node *n, const struct cn_rx_frame *f, struct cn_rx_place *out);
/* False: nothing to send. The payload in *out is valid until the next call into the transport. */
bool cn_node_output(struct cn_node *n, cn_time now, struct cn_frame *out);
/* Whether cn_node_output() has something to send that pull() does not bring. */
bool cn_node_has_output(struct cn_node *n, cn_time now);
/* Whether only a frame, a timer or a call can give it something to send again; not so while frames
 * that were refused wait for the global window. */
bool cn_node_is_idle(const struct cn_node *n);
cn_time cn_node_deadline(const struct cn_node *n);
void cn_node_expire(struct cn_node *n, cn_time now);

/* The transport ends: the next outputs are goodbyes to all peers, with this reason, and input is
 * ignored. */
void cn_node_bye(struct cn_node *n, enum cn_bye why);

/*
 * Before a goodbye: delayed acknowledgements are sent at once. True: none is left to be sent, and
 * all reliable frames of this node are acknowledged. Nodes that were given up do not count, on
 * whatever port that was.
 */
bool cn_node_drain(struct cn_node *n);

cn_time cn_node_now(const struct cn_node *n); /* of the last call that said it */
/* Payload bytes that one frame carries. */
uint32_t cn_node_payload(const struct cn_node *n);

/* A control message (at most cn_node_payload() bytes, copied), reliable and in order with all
 * else that goes to the peer. COLLNET_ELIMIT: no buffer, or CN_CONTROL_WAITING of them wait until
 * the peer takes more: what a node causes by its frames, and does not take, leaves the others'
 * buffers alone. */
#define CN_CONTROL_WAITING 256u
int cn_node_control(struct cn_node *n, struct cn_peer *p, const void *data, size_t len);

/* A buffer is free again: peers whose frames were refused are notified. */
void cn_node_ready(struct cn_node *n);

/*
 * Copies all unacknowledged payloads of this token (at most `limit` frames) so that the user's
 * buffer is free; the token is not given back any more. False: nothing was done (too many, or no
 * buffers).
 */
bool cn_node_detach(struct cn_node *n, void *token, uint32_t limit);
/* Whether an acknowledgement of frames of this token (NULL: any) was requested and has not come. */
bool cn_node_is_acked_soon(const struct cn_node *n, const void *token);
/* Something waits until the frames of this token (NULL: any) are acknowledged: peers that have some
 * whose acknowledgement was not requested are sent an ACK request. True: there are such peers. */
bool cn_node_request_acks(struct cn_node *n, const void *token);
/* Turns the unacknowledged frames of this token into tombstones: empty control frames that keep the
 * sequence going, for a stream that has failed. Frames of it may be in flight as they were, so a
 * tombstone keeps the stream, and CN_FLAG_LAST says that it was part of a collective: the receiver
 * reads no more of it. */
void cn_node_abandon(struct cn_node *n, void *token);
/* The same for frames of which there are copies, as their call is over, and that do not fit this
 * MTU, which the interface has now: what follows them would wait for them. */
void cn_node_abandon_longer(struct cn_node *n, uint32_t mtu);

/* Buffers of the node's pool, of the MTU: a frame's payload, and CN_WIRE_HEADER bytes before it for
 * their user. NULL: none. */
void *cn_node_buffer_get(struct cn_node *n);
void cn_node_buffer_put(struct cn_node *n, void *buffer);

/* The node table. Index 0 .. cn_node_peers() - 1; a peer keeps its index. */
uint32_t cn_node_peers(const struct cn_node *n);
struct cn_peer *cn_node_peer(struct cn_node *n, uint32_t index);
struct cn_peer *cn_node_find(const struct cn_node *n, const char *name); /* established ones */

struct cn_window *cn_node_window(struct cn_node *n); /* the global window of all ports */
/* Adds the transport's counters; mtu, nodes and the window are set. */
void cn_node_stats(const struct cn_node *n, struct collnet_stats *s);
const struct cn_node_config *cn_node_config(const struct cn_node *n);

#endif
