/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport of one node: a pure state machine without sockets, clock, threads, randomness, or
 * allocation per frame. Its interface is four calls:
 *
 *   cn_node_input()     a frame came in, at this time
 *   cn_node_output()    give me the next frame to send, at this time
 *   cn_node_deadline()  when do you want to be called next
 *   cn_node_expire()    that time has come
 *
 * The engine (lib/coll) is above it, reached by the upcalls of struct cn_node_ops. Upcalls run
 * inside the four calls and may use the functions below, but not the four calls.
 *
 * Reliability is Go-Back-N, as in Directed Point, extended by selective acknowledgements and a
 * reorder buffer. A transport has a port. Port 0 is the node's own: it discovers other nodes, and
 * carries control messages between them and the messages of endpoints. Each team has a transport
 * with its own port, whose sessions are derived from those of port 0 (connect.h), so a team that
 * does not read does not block the others (no head-of-line blocking). Each session has one sequence
 * of reliable frames in each direction.
 *
 * A machine has one engine (struct cn_engine), one struct cn_node for port 0 and one per team. A
 * struct cn_peer is another machine as seen by one cn_node: a machine is one peer per port. The
 * peer of cn_engine_peer, and the liveness in live.own, are those of the machine on port 0.
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
/* collective: the port to the sender can buffer the frames of all others twice */
#define CN_FLAG_ROOM 0x10
#define CN_FLAG_LAST 0x20 /* last frame of a message, or of a stream of a collective */

struct cn_node_config {
	uint8_t mac[6];
	uint16_t ethertype;
	uint16_t cluster;
	uint16_t port; /* 0: the node's own transport; only it has hellos (connect.h) */
	enum cn_encapsulation encapsulation;
	uint64_t epoch;		     /* of this incarnation: nonzero, new at every start */
	uint8_t key[CN_SIPHASH_KEY]; /* secret, random, new at every start; nonces and the hash of
				      * the node table are derived from it. All 0 only in tests */
	bool authenticated;	     /* all frames, by the cluster's key (auth.h) */
	uint8_t cluster_key[CN_SIPHASH_KEY];
	char name[COLLNET_NAME_MAX + 1];
	uint32_t mtu; /* bytes after the Ethernet header, headers of the encapsulation included: 576
		       * plus these .. 65,000 */
	uint32_t send_window;  /* Go-Back-N window: frames in flight to one peer, 2 .. 1,024 */
	uint32_t initial_cwnd; /* initial window of a session, frames; at least 2 */
	uint32_t max_peers;    /* 1 .. 65,535 */
	uint32_t expected;     /* number of other nodes expected; 0: unknown */
	uint32_t pool_frames;  /* buffers for out-of-order and unexpected frames, control messages
				* and copied tails */
	uint32_t reorder;      /* reorder buffer per peer, frames: 0 (pure Go-Back-N) .. 8 */
	struct cn_window *window_shared;  /* that of port 0; NULL: its own */
	struct cn_goodbye_list *goodbyes; /* cn_goodbye_list_size(max_peers) bytes that outlive the
					   * transport; NULL: none */
	cn_time rto_min, rto_first; /* retransmission timeout: minimum; before the first sample */
	cn_time pto_min;	    /* minimum probe timeout (TLP) */
	cn_time ack_delay;	    /* delayed acknowledgement timeout */
	cn_time dead_after;	    /* peer timeout: silence after which a peer is declared dead */
	cn_time hello_interval;
};

void cn_node_config_init(struct cn_node_config *c);

/* A frame to send, and a received frame, as the engine sees them. */
struct cn_tx {
	struct cn_peer *peer;
	enum cn_type type;
	uint8_t flags;
	uint16_t len;
	uint32_t stream;
	const uint8_t *payload; /* stays valid and unchanged until acked() or cn_node_detach() */
	void *token;		/* opaque to the transport; passed to acked() */
	bool owned; /* payload is a buffer of the node's pool, which the transport returns when the
		     * frame is acknowledged */
	bool ends;  /* as in struct cn_frame */
};

struct cn_rx {
	enum cn_type type;
	uint8_t flags;
	uint16_t len;
	uint32_t stream;
	const uint8_t *payload; /* valid during the upcall */
};

struct cn_node_ops {
	/* The next new frame in schedule order to a peer with room; false: none now. */
	bool (*pull)(void *ctx, cn_time now, struct cn_tx *out);
	/* Delivers a reliable frame, in order. False: no buffer (RNR); it will be retransmitted. */
	bool (*deliver)(void *ctx, cn_time now, struct cn_peer *p, const struct cn_rx *rx);
	/* Direct data placement: where deliver() will write the payload of this frame and of those
	 * that follow in its stream, if it is the next one. False: unknown. May be NULL. */
	bool (*place)(void *ctx, struct cn_peer *p, const struct cn_rx *rx,
		      struct cn_rx_place *out);
	/* The frame with this token is acknowledged, or never will be (the peer is gone). refused:
	 * it was not retransmitted since the last refused() for it. */
	void (*acked)(void *ctx, void *token, bool refused);
	/* The receiver refused the frame with this token (RNR): it is no longer in flight. */
	void (*refused)(void *ctx, void *token);
	/* It is due for retransmission. False: not now; the upcall is repeated later. *flags:
	 * CN_FLAG_ACKREQ may be added. Both may be NULL. */
	bool (*resend)(void *ctx, void *token, uint8_t *flags);
	/* A frame with this token was lost. NULL: the token is unknown, because the frame was
	 * copied (cn_node_detach()) or sent by a peer. May be NULL. */
	void (*lost)(void *ctx, void *token);
	void (*peer_up)(void *ctx, cn_time now, struct cn_peer *p);
	void (*peer_down)(void *ctx, cn_time now, struct cn_peer *p, enum cn_peer_loss why);
	/*
	 * The path to the peer was validated (bytes 0), or it drops frames of `bytes` bytes after
	 * the Ethernet header but not shorter ones (black hole). In the second case the session
	 * ends afterwards (CN_PEER_PATH) unless the frame was abandoned. May be NULL.
	 */
	void (*path)(void *ctx, cn_time now, struct cn_peer *p, uint32_t bytes);
	/* True if a node of this name is expected: when the node table is full, it replaces one
	 * that is not. May be NULL: none is. */
	bool (*listed)(void *ctx, const char *name);
};

int cn_node_new(const struct cn_node_config *c, const struct cn_node_ops *ops, void *ctx,
		struct cn_node **out, struct cn_err *err);
void cn_node_free(struct cn_node *n);

void cn_node_input(struct cn_node *n, cn_time now, const struct cn_rx_frame *f);
/* A cn_rx_place_fn: where the payload of a frame will be written when it is processed. */
bool cn_node_place(struct cn_node *n, const struct cn_rx_frame *f, struct cn_rx_place *out);
/* The next frame to send; false: none. The payload in *out is valid until the next call into the
 * transport. */
bool cn_node_output(struct cn_node *n, cn_time now, struct cn_frame *out);
/* True if cn_node_output() has something to send besides the engine's new frames. */
bool cn_node_has_output(struct cn_node *n, cn_time now);
/* True if only a received frame, a timer or a call can give it something to send; false while
 * refused frames wait for the global window. */
bool cn_node_is_idle(const struct cn_node *n);
cn_time cn_node_deadline(const struct cn_node *n);
void cn_node_expire(struct cn_node *n, cn_time now);

/* Closes the transport: the next outputs are goodbyes to all peers with this reason; input is
 * ignored. */
void cn_node_bye(struct cn_node *n, enum cn_bye why);

/*
 * Before a goodbye: sends delayed acknowledgements at once. True: none is left to send, and all
 * reliable frames of this node are acknowledged. Nodes declared dead on any port do not count.
 */
bool cn_node_drain(struct cn_node *n);

cn_time cn_node_now(const struct cn_node *n); /* the latest time passed in */
/* Maximum payload of a frame, bytes. */
uint32_t cn_node_payload(const struct cn_node *n);

/*
 * Sends a control message (at most cn_node_payload() bytes, copied), reliable and in order with all
 * frames to the peer. COLLNET_ELIMIT: no buffer, or CN_CONTROL_WAITING messages to the peer are
 * queued; the limit keeps a node that does not read the replies it causes from exhausting the
 * others' buffers.
 */
#define CN_CONTROL_WAITING 256u
int cn_node_control(struct cn_node *n, struct cn_peer *p, const void *data, size_t len);

/* A buffer is free again: notifies the peers whose frames were refused. */
void cn_node_ready(struct cn_node *n);

/*
 * Copies all unacknowledged payloads of this token (at most `limit` frames) so that the user's
 * buffer is free; there is no acked() for them any more. False: nothing was done (too many, or no
 * buffers).
 */
bool cn_node_detach(struct cn_node *n, void *token, uint32_t limit);
/* True if an acknowledgement of frames of this token (NULL: any) is requested and outstanding. */
bool cn_node_is_acked_soon(const struct cn_node *n, const void *token);
/* Something waits until the frames of this token (NULL: any) are acknowledged: sends an ACK request
 * to each peer with such frames and no request outstanding. True: there are such peers. */
bool cn_node_request_acks(struct cn_node *n, const void *token);
/*
 * Turns the unacknowledged frames of this token, of a stream that has failed, into tombstones:
 * empty control frames that preserve the sequence. The original frames may be in flight, so a
 * tombstone keeps the stream field, and CN_FLAG_LAST marks it as part of a collective; the receiver
 * reads nothing else of it.
 */
void cn_node_abandon(struct cn_node *n, void *token);
/* The same for frames in buffers of the pool (their calls are over) that exceed this MTU, the
 * interface's new one: the frames that follow would wait for them. Those with a token get acked().
 */
void cn_node_abandon_longer(struct cn_node *n, uint32_t mtu);

/* Buffers of the node's pool, for a full payload and CN_WIRE_HEADER bytes before it, which are the
 * user's. NULL: none. */
void *cn_node_buffer_get(struct cn_node *n);
void cn_node_buffer_put(struct cn_node *n, void *buffer);

/* The node table: indices 0 .. cn_node_peers() - 1; a peer keeps its index. */
uint32_t cn_node_peers(const struct cn_node *n);
struct cn_peer *cn_node_peer(struct cn_node *n, uint32_t index);
/* Finds an established peer by name; NULL: none. */
struct cn_peer *cn_node_find(const struct cn_node *n, const char *name);

struct cn_window *cn_node_window(struct cn_node *n); /* the global window of all ports */
/* Adds the transport's counters; sets mtu, nodes and the window. */
void cn_node_stats(const struct cn_node *n, struct collnet_stats *s);
const struct cn_node_config *cn_node_config(const struct cn_node *n);

#endif
