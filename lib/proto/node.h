/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport of one node: a pure machine. No sockets, no clock, no threads, no randomness,
 * and no allocation per frame. Four calls are its surface:
 *
 *   cn_node_input()     a frame came in, at this time
 *   cn_node_output()    give me the next frame to send, at this time
 *   cn_node_deadline()  when do you want to be called next
 *   cn_node_expire()    that time has come
 *
 * Above it sits the engine (lib/coll), reached by four upcalls (struct cn_node_ops). Upcalls run
 * inside the four calls; they may use the functions below, but not the four calls.
 *
 * Reliability is Go-Back-N in the manner of Directed Point: each pair of nodes has one sequence
 * of reliable frames in each direction, born with the two nodes' epochs. On it travel control
 * messages, the streams of collectives and the messages of endpoints, told apart by type and
 * stream.
 */
#ifndef CN_NODE_H
#define CN_NODE_H

#include "proto/frame.h"
#include "util/siphash.h"
#include "util/util.h"

struct cn_node;
struct cn_peer;
struct cn_goodbye_list;

/* Types of reliable frames, as on the wire (proto/wire.h). */
enum cn_type {
	CN_TYPE_HELLO = 1,   /* not reliable: who is there */
	CN_TYPE_ACK = 2,     /* not reliable: acknowledgement, negative one, or a probe for one */
	CN_TYPE_CONTROL = 3, /* engine to engine */
	CN_TYPE_COLL = 4,    /* part of a collective; stream: slot, operation, signature */
	CN_TYPE_MESSAGE = 5, /* part of a message; stream: endpoints */
};

/* Flags of reliable frames that the engine uses. */
#define CN_FLAG_FIRST 0x10 /* first frame of a message */
#define CN_FLAG_LAST  0x20 /* last frame of a message, or of a stream of a collective */

struct cn_node_config {
	uint8_t mac[6];
	uint16_t ethertype;
	uint16_t cluster;
	uint64_t epoch;		     /* not 0, and another one at every start */
	uint8_t key[CN_SIPHASH_KEY]; /* secret, random, another one at every start: nonces follow
				      * from it. All 0 in tests only */
	char name[COLLNET_NAME_MAX + 1];
	uint32_t mtu;	       /* bytes after the Ethernet header, 576 .. 65,000 */
	uint32_t window;       /* Go-Back-N frames in flight to one peer, 2 .. 1,024 */
	uint32_t initial_cwnd; /* ... at first, until acknowledgements came; 2 or more */
	uint32_t max_peers;    /* 1 .. 65,535 */
	uint32_t expected;     /* nodes that there may well be, besides this one; 0: not known */
	uint32_t pool_frames;  /* buffers for early frames, control and tails */
	uint32_t reorder; /* frames held that come before their turn, 0 (pure Go-Back-N) .. 8 */
	struct cn_goodbye_list
		*goodbyes; /* memory of cn_goodbye_list_size(max_peers) bytes, which outlives the
			    * transport; NULL: none (proto/goodbye_list.h) */
	uint32_t seq_bias; /* tests: added to the first sequence number */
	cn_time rto_min, rto_first, ack_delay, dead_after, hello_interval, pto_min;
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
	void *token;		/* given back by acked() */
	bool owned;		/* payload is the start of a buffer of the node's pool, which the
				 * transport puts back when the frame is acknowledged */
};

struct cn_rx {
	enum cn_type type;
	uint8_t flags;
	uint16_t len;
	uint32_t stream;
	const uint8_t *payload; /* valid during the upcall */
};

enum cn_peer_loss {
	CN_PEER_SILENT,	   /* nothing heard for dead_after while it was needed */
	CN_PEER_RESTARTED, /* it came back with another epoch */
	CN_PEER_BYE,	   /* it said goodbye */
	CN_PEER_RESET,	   /* it heard nothing of this node for dead_after, and began anew */
	CN_PEER_PATH,	   /* it answers, but a frame does not get through to it */
};

/* Whether frames of the MTU get through to a peer, in this session. */
enum cn_path_state {
	CN_PATH_UNKNOWN, /* cn_peer_validate() was not called */
	CN_PATH_WAITING, /* other peers are probed first */
	CN_PATH_PROBING,
	CN_PATH_VALID,
	CN_PATH_FAILED,
};

struct cn_node_ops {
	/* The next new frame by the schedules' order, to a peer with room; false: none now. */
	bool (*pull)(void *ctx, cn_time now, struct cn_tx *out);
	/* A reliable frame, in order. False: no buffer for it; it will come again. */
	bool (*deliver)(void *ctx, cn_time now, struct cn_peer *p, const struct cn_rx *rx);
	/* The frame with this token is acknowledged, or will never be (the peer is gone). */
	void (*acked)(void *ctx, void *token);
	void (*peer_up)(void *ctx, cn_time now, struct cn_peer *p);
	void (*peer_down)(void *ctx, cn_time now, struct cn_peer *p, enum cn_peer_loss why);
	/*
	 * The path to the peer was validated (bytes 0), or frames of so many bytes after the
	 * Ethernet header do not get through while shorter ones do. In the second case the peer is
	 * given up afterwards (CN_PEER_PATH) unless the frame was abandoned. May be NULL.
	 */
	void (*path)(void *ctx, cn_time now, struct cn_peer *p, uint32_t bytes);
};

int cn_node_new(const struct cn_node_config *c, const struct cn_node_ops *ops, void *ctx,
		struct cn_node **out, struct cn_err *err);
void cn_node_free(struct cn_node *n);

void cn_node_input(struct cn_node *n, cn_time now, const uint8_t *frame, size_t len);
/* False: nothing to send. The payload in *out is valid until the next call into the transport. */
bool cn_node_output(struct cn_node *n, cn_time now, struct cn_frame *out);
cn_time cn_node_deadline(const struct cn_node *n);
void cn_node_expire(struct cn_node *n, cn_time now);

/* Announces the end to everyone: the next outputs are goodbyes, and input is no longer heard. */
void cn_node_bye(struct cn_node *n);

/*
 * Before a goodbye: acknowledgements that are owed become due at once. True: none is owed any
 * more, and everything of ours is acknowledged, so that nobody misses anything when we go.
 */
bool cn_node_settle(struct cn_node *n);

/* Payload bytes that one frame carries. */
uint32_t cn_node_payload(const struct cn_node *n);

/* A control message (at most cn_node_payload() bytes, copied), reliable and in order with all
 * else that goes to the peer. COLLNET_ELIMIT: no buffer. */
int cn_node_control(struct cn_node *n, struct cn_peer *p, const void *data, size_t len);

/* New frames that may go to the peer now; 0: its window is closed, or it is gone. To be asked
 * before every frame that pull() gives: it makes room for one. */
uint32_t cn_peer_room(const struct cn_peer *p);

/* The peer's last answer refused a frame, because it has no buffer for it; or this node refused the
 * last one of the peer. */
bool cn_peer_rnr_received(const struct cn_peer *p);
bool cn_peer_rnr_sent(const struct cn_peer *p);

/*
 * Data will go back to this peer soon, by the operation whose frame is being delivered, or there is
 * other data that must not be held up: the acknowledgement may wait, twice as long as it would
 * alone, or for one and a half times what was between this frame and the one before.
 */
void cn_peer_reply_soon(struct cn_peer *p);

/*
 * Says that something here waits for this peer (delta 1), or no longer does (-1). A peer that is
 * waited for and silent is probed, and is lost after dead_after.
 */
void cn_peer_expect(struct cn_node *n, cn_time now, struct cn_peer *p, int delta);

/*
 * Finds out whether frames of the MTU get through to the peer; the result comes by the path()
 * upcall, once a session, or again after a failure. At most four probes of a node are under way.
 */
void cn_peer_validate(struct cn_node *n, cn_time now, struct cn_peer *p);
enum cn_path_state cn_peer_path(const struct cn_peer *p);
uint32_t cn_peer_mtu(const struct cn_peer *p); /* as its hello says */

/* A buffer is free again: peers whose frames were refused are told. */
void cn_node_ready(struct cn_node *n);

/*
 * Copies all unacknowledged payloads of this token (at most `limit` frames) so that the user's
 * buffer is free; the token is not given back any more. False: nothing was done (too many, or no
 * buffers).
 */
bool cn_node_detach(struct cn_node *n, void *token, uint32_t limit);
/* Like it, but without the data: the frames are sent again as empty control frames. For streams
 * that have failed: nobody will read them, but the sequence must go on. Later frames of them may
 * be under way as they were, so an empty frame keeps the stream, and CN_FLAG_LAST says that it was
 * part of a collective: the receiver reads no more of it. */
void cn_node_abandon(struct cn_node *n, void *token);

/* Buffers from the node's pool: a frame's payload, and CN_BUFFER_HEAD bytes that its user may
 * keep before it. NULL: none. */
#define CN_BUFFER_HEAD 24
void *cn_node_buffer_get(struct cn_node *n);
void cn_node_buffer_put(struct cn_node *n, void *buffer);

/* The node table. Index 0 .. cn_node_peers() - 1; a peer keeps its index while it is known. */
uint32_t cn_node_peers(const struct cn_node *n);
struct cn_peer *cn_node_peer(struct cn_node *n, uint32_t index);
struct cn_peer *cn_node_find(const struct cn_node *n, const char *name); /* alive ones only */
const char *cn_peer_name(const struct cn_peer *p);
uint32_t cn_peer_index(const struct cn_peer *p);
bool cn_peer_alive(const struct cn_peer *p);
/*
 * A line of the log about a peer, within bounds; how many were suppressed is said in a later one.
 */
void cn_peer_log(struct cn_peer *p, enum collnet_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void *cn_peer_user(const struct cn_peer *p); /* the engine's own, NULL at first */
void cn_peer_set_user(struct cn_peer *p, void *user);
/* Whether a peer that was lost by silence shares its silence with q: nothing of q was heard since
 * the first probes of p were not answered. During that time up to 64 silent peers were probed, too.
 */
bool cn_peer_silent_with(const struct cn_peer *p, const struct cn_peer *q);
cn_time cn_peer_rtt(const struct cn_peer *p); /* smoothed; 0: not measured */

/* Senders of frames of another wire version (foreign_version.c). */
#define CN_FOREIGN_VERSIONS 16u
struct cn_foreign_version {
	const struct cn_peer *peer; /* with this address, up or down; NULL: none */
	uint8_t mac[6];
	uint8_t version; /* of its last frame of another version */
};
/*
 * Those heard during the last minute of which no frame of a session came since; returns how many.
 */
uint32_t cn_node_foreign_versions(struct cn_node *n, cn_time now,
				  struct cn_foreign_version out[CN_FOREIGN_VERSIONS]);
uint32_t cn_node_wire_version(void); /* this transport's */

/* The global window (proto/global_window.h) and the counters, of which the node fills in its part.
 */
struct cn_window *cn_node_window(struct cn_node *n);
void cn_node_stats(const struct cn_node *n, struct collnet_stats *s);
void cn_peer_info(const struct cn_peer *p, cn_time now, struct collnet_node_info *out);
const struct cn_node_config *cn_node_config(const struct cn_node *n);

#endif
