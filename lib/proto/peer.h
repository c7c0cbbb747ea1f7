/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a node knows of another one (private to lib/proto): identity, the Go-Back-N sender towards
 * it, the receiver from it, and the timer of both.
 *
 * Sender: sequence numbers una <= next <= end. Frames [una, end) are kept in the ring until
 * acknowledged; [una, next) are in flight; next < end means going back: frames are sent again.
 * Receiver: `expected` is the only number it accepts.
 */
#ifndef CN_PEER_H
#define CN_PEER_H

#include "proto/node.h"
#include "proto/rtt.h"
#include "proto/unvalidated.h"
#include "proto/global_window.h"
#include "proto/wire.h"
#include "util/bucket.h"
#include "util/heap.h"
#include "util/pool.h"

/* The largest window that can be configured. */
#define CN_WINDOW_MAX 1024u

/* Hellos to one address, of one kind of cause, are at least this far apart. */
#define CN_HELLO_SPACING (20 * CN_MS)

/* A frame kept until it is acknowledged. */
struct cn_sent {
	const uint8_t *payload;
	void *token; /* the engine's; NULL: nothing to tell */
	cn_time at;  /* when it was sent last */
	uint32_t stream;
	uint16_t len;
	uint8_t type, flags;
	bool again; /* sent more than once: no round-trip sample */
	bool there; /* the receiver has it, or will: it is passed over when going back */
	bool owned; /* payload is a buffer of the node's pool, to be put back */
};

/*
 * How far apart the frames of one way are. In an exchange of many nodes every peer has its turn
 * once a round, and what goes back comes a round later: the receiver waits for it with its
 * acknowledgement, and the sender, which sees the same round, with its timeout.
 */
struct cn_cadence {
	cn_time last, gap; /* gap 0: not known, or longer than is worth to wait for */
};

/* What control messages need: most pairs of nodes never exchange anything else. */
#define CN_RING_FEW 2u
struct cn_sender {
	/* It grows with what is in flight. The smallest ones are of the node's pool and are given
	 * back when nothing is in flight: NULL then. */
	struct cn_sent *ring;
	uint32_t mask;
	uint32_t una, next, end;
	uint32_t cwnd;	     /* frames that may be in flight, 2 .. window */
	uint32_t credit;     /* acknowledged frames towards the next increase */
	uint32_t slow_until; /* below it cwnd doubles a round trip, beyond it grows by one */
	uint32_t recover;    /* losses before this number belong to the last decrease */
	uint32_t doublings;  /* of the timeout since the last progress */
	uint32_t repeats;    /* of frame `una`, each after an answer that did not acknowledge it */
	bool answered;	     /* such an answer came since `una` was sent last */
	cn_time rto_at;	     /* CN_NEVER: nothing in flight */
	struct cn_cadence cadence;
	cn_time hold_until; /* refused for lack of a buffer: wait; 0: not */
	cn_time hold;
	struct cn_rtt rtt;
};

/* A frame that came before its turn, in a buffer of the node's pool. */
#define CN_REORDER_MAX 8
struct cn_held {
	uint8_t *data; /* NULL: free */
	struct cn_wire wire;
};

struct cn_receiver {
	uint32_t expected;
	uint32_t unacked; /* accepted since the last acknowledgement */
	cn_time ack_at;	  /* CN_NEVER: none owed */
	struct cn_cadence cadence;
	bool in_gap;	   /* a negative acknowledgement was sent for `expected` */
	bool beyond;	   /* a frame beyond the gap was not held: it must come again */
	uint32_t gap_last; /* last number seen beyond the gap */
	cn_time gap_at;	   /* frames are held: when the gap counts as a loss; CN_NEVER: none are */
	cn_time gap_wait;  /* until it is said again; grows while nothing comes */
	struct cn_held
		*held; /* [CN_REORDER_MAX] by number mod CN_REORDER_MAX; NULL: none ever was */
	uint32_t nheld;
	bool refused;	 /* the last frame was refused: no buffer */
	bool reply_soon; /* data will go back: cn_peer_reply_soon() */
};

/* Path MTU validation towards a peer (path.c). */
struct cn_path {
	enum cn_path_state state;
	enum cn_path_state before; /* by_data: what it was */
	bool by_data;  /* a reliable frame did not get through; else: cn_peer_validate() */
	uint32_t size; /* of padded probes, bytes after the Ethernet header */
	bool slot;     /* PROBING: a try is under way; else a pause after a strike */
	bool full_due, short_due; /* probes to be sent: padded, and behind it one that is not */
	bool again;		  /* the next try is not the first */
	uint16_t number;	  /* of the last try */
	uint32_t strikes;
	cn_time sent, at;     /* the last try; the end of the wait or pause, or CN_NEVER */
	struct cn_peer *next; /* WAITING: in the node's queue for a slot */
};

struct cn_foreign_version_entry {
	bool used;
	uint8_t mac[6];
	uint8_t version;
	cn_time heard; /* its last frame of another version */
};

enum cn_peer_state {
	CN_PEER_FREE = 0, /* entry unused */
	CN_PEER_DOWN,	  /* it was up once, or cannot be: its name is taken */
	CN_PEER_UP,
};

/* First what every frame needs, in few cache lines: a node of a large cluster has many of them. */
struct cn_peer {
	struct cn_node *node;
	uint32_t index;
	enum cn_peer_state state;
	uint8_t mac[6];
	bool proven; /* a frame of the session came: it knows that we are up */
	bool ready;  /* in the list of those that have something to send, in turn */
	uint32_t session_out, session_in;
	struct cn_peer *ready_next;
	void *user;
	/* what is to be said to it */
	bool hello_due, ack_due, nak_due, busy_due, probe_due;
	bool mtu_told;	/* a different MTU was logged */
	bool contested; /* another node has its name: it is probed until it answers */
	/* control frames that wait for room, a list through their buffers */
	uint8_t *control_first, *control_last;
	struct cn_timer timer;
	struct cn_receiver rx;
	struct cn_sender tx;

	/* liveness */
	cn_time heard;	  /* any frame, hellos too */
	cn_time answered; /* a frame of this session: it hears us, too */
	cn_time expect_since;
	cn_time probe_at; /* CN_NEVER: nobody waits for it */
	uint32_t expecting;
	uint32_t probes;
	cn_time suspected; /* when the first few probes had no answer; for cn_peer_silent_with() */
	/* a lost tail: nothing comes from anyone, and data of this peer is waited for */
	cn_time query_at;   /* CN_NEVER: not waited for, or data comes from others */
	cn_time query_wait; /* grows while nothing comes */
	uint64_t data_sent, data_resent, data_received;

	/* path MTU: ours to it, and what we tell it of its own */
	struct cn_path path;
	uint16_t size_number; /* of its last try */
	uint16_t largest;     /* bytes after the Ethernet header of the largest probe of that try */
	bool size_due;

	cn_time hello_last[CN_HELLO_LIMITED]; /* by cause */
	cn_time hello_at; /* an answer to a broadcast is due then; CN_NEVER: none is */
	uint8_t hello_flags, later_flags; /* of the hello that is due, and due later */
	uint64_t echo, later_echo;	  /* the nonce that the hello echoes; 0: none */
	uint64_t epoch;			  /* its transport's */
	uint64_t generation;		  /* of our nonce; grows when the peer goes down */
	uint64_t nonce_out, nonce_in; /* ours for it, which only a receiver of our hellos knows; and
				       * its own for us, proven while it is up */
	uint32_t bye_out, bye_in;     /* tokens of the session's goodbyes */
	struct cn_bucket log;
	uint32_t mtu;
	char name[COLLNET_NAME_MAX + 1];
};

struct cn_node {
	struct cn_node_config config;
	const struct cn_node_ops *ops;
	void *ctx;
	uint32_t payload; /* bytes a frame carries */

	struct cn_peer **peers; /* [max_peers], the first npeers in use */
	uint32_t npeers;
	uint32_t *hash; /* index + 1 by MAC; 0: empty; open addressing */
	uint32_t hash_mask;
	uint32_t *names; /* [max_peers] hash of the name while it is up; 0: it is not */

	struct cn_heap timers;
	struct cn_timer hello_timer;
	struct cn_timer quiet_timer; /* has nothing come for pto_min? */
	uint32_t nexpecting;	     /* peers that are waited for */
	uint32_t hellos_sent;
	bool hello_due;
	bool begun;			  /* the first hello's time is set */
	bool leaving;			  /* it said goodbye: hears and answers nothing any more */
	uint32_t byes_due, bye_next;	  /* rounds of goodbyes, and the peer that is next */
	struct cn_unvalidated *strangers; /* [nstrangers] */
	uint32_t nstrangers, strangers_heard;
	struct cn_unvalidated *stranger_first, *stranger_last; /* to be answered */
	struct cn_bucket answers;			       /* to strangers */
	struct cn_bucket log;
	uint32_t log_suppressed;
	struct cn_foreign_version_entry
		foreign_versions[CN_FOREIGN_VERSIONS]; /* of another wire version */
	struct cn_bucket foreign_version_log;
	uint64_t evicted; /* entries that were given to others */
	struct cn_peer *ready_first, *ready_last;
	struct cn_peer *path_first, *path_last; /* wait for a slot to probe their path */
	uint32_t path_slots;			/* in use */
	cn_time path_wait,
		path_backoff; /* for an answer, 0: none was needed yet; its last doubling */
	uint8_t *zeros;	      /* [payload] padding of probes */
	struct cn_pool pool;
	struct cn_pool small; /* short control messages */
	struct cn_pool rings; /* of CN_RING_FEW frames, one for every peer */
	struct cn_window window;
	struct collnet_stats stats;
	cn_time evict_at; /* not before this is a place in a full table looked for again */
	uint32_t
		loss; /* share of the acknowledged frames that went again, of 65,536; the mean of
		       * some dozens. A node that is gone acknowledges nothing and does not count */
	cn_time data_last; /* when the last reliable frame was accepted, from anyone */
	cn_time data_gap;  /* mean time between two of them, pauses not counted */
	cn_time now;	   /* of the call in progress */
};

/* Frames accepted without an acknowledgement: an eighth of a window, so that one never stands still
 * for lack of it, and not less than 16, which keeps acknowledgements below 1 % of the bytes. */
static inline uint32_t cn_ack_every(const struct cn_node *n)
{
	return n->config.window / 8 > 16 ? n->config.window / 8 : 16;
}

static inline void cn_cadence_note(struct cn_cadence *c, const struct cn_node *n)
{
	cn_time gap = n->now - c->last;

	c->gap = c->last != 0 && gap <= n->config.dead_after / 6 ? gap : 0;
	c->last = n->now;
}

/* How long an acknowledgement may wait for data to go back. */
static inline cn_time cn_cadence_wait(const struct cn_cadence *c, const struct cn_node *n)
{
	cn_time least = 2 * n->config.ack_delay, wait = c->gap + c->gap / 2;

	return wait > least ? wait : least;
}

/* For how long nothing must come until it seems that a tail was lost; and how old a frame must be
 * that should have arrived. On slow links eight frames' time, for queues are a few frames long. */
static inline cn_time cn_quiet_after(const struct cn_node *n)
{
	cn_time slow = cn_min_time(8 * n->data_gap, n->config.dead_after / 5);

	return slow > n->config.pto_min ? slow : n->config.pto_min;
}

/* timers.c */
/*
 * After how many tries without an answer loss alone is no explanation any more (in one of 65,536).
 */
uint32_t cn_node_tries(const struct cn_node *n);
cn_time cn_hello_interval(const struct cn_node *n);
/* How long what many nodes would do at once waits here: different on every node and, with an
 * address (not NULL), for every pair of them. 0 in small clusters. */
cn_time cn_node_spread(const struct cn_node *n, const uint8_t *mac);

/* node.c */
void cn_node_put(struct cn_node *n, const void *buffer); /* to the pool that it is of */

/* peer.c */
struct cn_peer *cn_peer_by_mac(struct cn_node *n, const uint8_t mac[6]);
struct cn_peer *cn_peer_add(struct cn_node *n, const uint8_t mac[6]); /* NULL: table full */
uint32_t cn_name_hash(const char *name);			      /* never 0 */
void cn_peer_up(struct cn_peer *p);
void cn_peer_down(struct cn_peer *p, enum cn_peer_loss why);
void cn_peer_contest(struct cn_peer *p); /* up: probes it, as if it were waited for */
void cn_peer_ready(struct cn_peer *p);
void cn_peer_reschedule(struct cn_peer *p); /* a deadline has changed */
void cn_peer_set_timer(struct cn_peer *p);  /* it has expired */

/* sender.c */
/* Takes a new frame into the ring and gives its number; there is room. */
uint32_t cn_sender_take(struct cn_peer *p, const struct cn_tx *tx, bool owned);
/* Makes room for one more in the ring. False: no memory. */
bool cn_sender_reserve(struct cn_peer *p);
void cn_sender_free(struct cn_peer *p);
void cn_sender_ack(struct cn_peer *p, uint32_t ack);
void cn_sender_nak(struct cn_peer *p, uint32_t map); /* CN_SACK_VALID; 0: send all again */
void cn_sender_busy(struct cn_peer *p);
/* The receiver waits for data and has nothing beyond `una`. */
void cn_sender_query(struct cn_peer *p);
void cn_sender_timeout(struct cn_peer *p);
/* Whether a frame is to be sent again now: number `next`. */
bool cn_sender_again(const struct cn_peer *p);
/* It was: on to the next one. */
void cn_sender_advance(struct cn_peer *p);
struct cn_sent *cn_sender_entry(struct cn_peer *p, uint32_t seq);
void cn_sender_drop_all(struct cn_peer *p);
cn_time cn_sender_rto(const struct cn_peer *p);

/* path.c */
void cn_path_reset(struct cn_peer *p);	/* the session begins or ends */
void cn_path_expire(struct cn_peer *p); /* path.at has come */
/* A reliable frame of so many bytes after the Ethernet header is sent in vain. */
void cn_path_suspect(struct cn_peer *p, uint32_t bytes);
/* A frame with CN_FLAG_MTU_PROBE came, of so many bytes, and one with CN_FLAG_MTU_REPLY. */
void cn_path_probed(struct cn_peer *p, uint32_t stream, uint32_t bytes);
void cn_path_answer(struct cn_peer *p, uint32_t stream);

/* foreign_version.c */
/* A frame of another wire version came from this address. */
void cn_foreign_version_note(struct cn_node *n, const uint8_t mac[6], uint8_t version);

/* receiver.c */
void cn_receiver_data(struct cn_peer *p, const struct cn_wire *w, const uint8_t *payload);
void cn_receiver_gap(struct cn_peer *p);	   /* the held frames have waited long enough */
uint32_t cn_receiver_map(const struct cn_peer *p); /* for a negative acknowledgement */
void cn_receiver_drop_all(struct cn_peer *p);
void cn_receiver_acked(struct cn_peer *p); /* an acknowledgement goes out now */

/* hello.c */
void cn_hello_take(struct cn_node *n, const uint8_t mac[6], const struct cn_wire *w,
		   const uint8_t *body);
/* A unicast hello is due with these flags, not too often. */
void cn_hello_ask(struct cn_peer *p, enum cn_hello_why why, uint8_t flags, uint64_t echo);
/* hello_at has come. */
void cn_hello_later(struct cn_peer *p);
/* A frame of no session came from this address; p: NULL, not a peer's. */
void cn_hello_stray(struct cn_node *n, const uint8_t mac[6], struct cn_peer *p);
/* Our nonce for an address; never 0. */
uint64_t cn_nonce(const struct cn_node *n, const uint8_t mac[6], uint64_t generation);

#endif
