/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the endpoints share (private to them).
 *
 *   endpoint.c       life of endpoints and flows, control messages, the engine's hooks
 *   endpoint_send.c  requests to send, and their frames
 *   endpoint_recv.c  requests to receive, and the messages that came before them
 *
 * Directed Point: a node opens numbered endpoints and sends to (node, endpoint), with no
 * connection to set up. What two endpoints have to remember of each other is a flow: the pair
 * (endpoint here, endpoint of a peer), both directions together.
 *
 * On the wire. A message is one or more frames of type MESSAGE, stream = to << 16 | from. The
 * first has FIRST and begins with a head of 16 bytes: length of the whole message (32 bits; the
 * highest one, CN_EP_ASK, wants a grant as an answer), its number in the flow (32 bits), and the
 * owner of the sending endpoint (64 bits). A message to an endpoint of another owner is answered as
 * one to an endpoint that is not open. The last has LAST. Between endpoints also go control
 * messages of 9 bytes: kind (8), to (16), from (16), value (32); see enum cn_ep_control.
 *
 * Credits keep a receiver that does not receive from blocking everything else that its peers send:
 * all frames between two nodes are one sequence, which stops at a frame that finds no buffer. So
 * frames that wait have a pool of their own, of which untouched parts cost nothing, large enough
 * for all credits of all flows. An owner has at most a quarter of the flows, and so of the pool;
 * what is beyond is refused message by message (FULL), and its sender is told so.
 *
 * The sender may have `credit` frames more under way; it
 * begins with CN_EP_CREDIT, and the receiver grants more when frames that waited were taken, or,
 * for the whole rest of a message at once, when a receive was posted for it. Two rules make
 * credits safe against every race of closing, aborting and granting:
 *  - what the sender believes to have is never less than what the receiver believes that it has;
 *    where frames may have got lost to the count (abort, endpoint not there) the sender adds;
 *  - it is never more than CN_EP_CREDIT plus the rest of the message that is being sent.
 *
 * A flow is confirmed once the other endpoint is known to be there (it granted, or sent). Before,
 * one message at a time is sent, and is complete only when confirmed: so that a send to an endpoint
 * that is not there fails, although small messages are complete as soon as they are sent.
 */
#ifndef CN_ENDPOINT_H
#define CN_ENDPOINT_H

#include "coll/coll.h"
#include "util/pool.h"

#define CN_EP_CREDIT	  32u	/* frames that may wait unread, a flow; part of the protocol */
#define CN_EP_REQUESTS	  64u	/* sends, and as many receives, outstanding on an endpoint */
#define CN_EP_FLOWS	  4096u /* of a node, at most, and at least */
#define CN_EP_FLOWS_LEAST 256u
#define CN_EP_SHARES	  4u	/* one of them is what an owner may have of the flows */
#define CN_EP_BUCKETS	  1024u /* of their hash table, a power of two */
#define CN_EP_HEAD	  16u	/* bytes before the user's in a first frame */
#define CN_EP_ASK	  0x80000000u
#define CN_EP_COPIED	  4u /* messages of up to so many frames are copied, larger ones are not */
#define CN_EP_RETRY	  CN_MS /* after a control message found no buffer */

enum cn_ep_control {
	CN_EP_GRANT = CN_CONTROL_ENDPOINT, /* value: so many more frames; 0: I am there */
	CN_EP_NOENT,			   /* value: number of a message that found no endpoint */
	CN_EP_FULL,   /* value: number of a message that found no room for its flow */
	CN_EP_ABORT,  /* value: number of a message whose rest will not come */
	CN_EP_CLOSED, /* value 0: the endpoint `from` was closed */
};

/* A message that nobody has received yet, in the order in which first frames came. */
struct cn_arrival {
	struct cn_arrival *next;
	struct cn_flow *flow;
	uint32_t bytes; /* of the message */
	uint16_t len;	/* bytes of its first piece */
	bool local;	/* it is part of a struct cn_send of this node; else of a cn_kept */
};

/* Further frames of it; in a buffer of the endpoints' pool. */
struct cn_piece {
	struct cn_piece *next;
	uint16_t len;
};

/* Its first frame; in such a buffer too. The bytes come after it. */
struct cn_kept {
	struct cn_arrival arrival;
	struct cn_piece *more;
};

struct cn_send {
	struct cn_source source; /* first: the token of its frames, if they are not copied */
	struct cn_send *next;	 /* in its flow's queue, or free */
	struct cn_endpoint *ep;
	struct cn_flow *flow;
	struct cn_done *done; /* NULL: the request is free */
	const uint8_t *data;
	uint64_t bytes, offset; /* all, and those that were sent */
	uint32_t number;
	bool begun, sent; /* the first frame went, the last did */
	bool queued;	  /* it is in its flow's queue */
	cn_time deadline;
	struct cn_arrival arrival; /* to an endpoint of this node */
	uint8_t head[CN_EP_HEAD];
};

struct cn_recv {
	struct cn_recv *next; /* in the endpoint's queue, or free */
	struct cn_endpoint *ep;
	struct cn_flow *flow; /* a message of it is being received; NULL: waiting */
	struct cn_done *done; /* NULL: the request is free */
	uint8_t *data;
	uint64_t capacity;
	cn_time deadline;
	struct cn_received *result;
};

struct cn_flow {
	struct cn_flow *hash_next;   /* NULL too when it is gone */
	struct cn_flow *next, *prev; /* of the endpoint */
	struct cn_flow *retry_next;
	struct cn_endpoint *ep; /* NULL: closed, only its CLOSED is still to be sent */
	struct cn_peer *peer;	/* NULL: this node */
	uint16_t local, remote; /* numbers of the endpoints */
	bool gone;		/* the peer is down: only complete messages are left of it */
	bool retry;		/* in the list of flows with something to tell */
	bool expecting;		/* cn_peer_expect() for its sends is in force */
	bool awaiting;		/* likewise for the message that is being received */

	/* sending */
	struct cn_send *first, *last;
	struct cn_flow *turn_next, *turn_prev; /* ring of flows that could send; NULL: not in it */
	uint32_t credit;
	uint32_t number; /* of the next message */
	uint32_t abort;	 /* number to tell, if abort_due */
	bool abort_due;
	bool confirmed;
	uint32_t sends; /* requests that are not complete */

	/* receiving */
	uint32_t avail;		/* frames that the sender may send, as far as we know */
	uint32_t pooled;	/* frames that wait in buffers */
	uint32_t waiting;	/* messages that wait, those of this node included */
	uint32_t in_number;	/* of the message that is coming */
	uint32_t bytes, left;	/* of it, all and still to come */
	bool coming;		/* a first frame came, the last did not */
	bool answer;		/* the sender wants to know that we are there */
	struct cn_recv *into;	/* receives it, or */
	struct cn_kept *early;	/* keeps it, or (both NULL) it is thrown away */
	struct cn_piece **tail; /* where the next piece of `early` goes */
};

/* What the endpoints of one owner have together. */
struct cn_ep_account {
	struct cn_ep_account *next;
	uint64_t owner;
	uint32_t endpoints, flows;
};

struct cn_endpoint {
	struct cn_source source; /* first: in the engine's ring while a flow could send */
	struct cn_endpoints *all;
	struct cn_endpoint *next, *prev;
	uint64_t owner;
	struct cn_ep_account *account;
	uint16_t number;
	struct cn_flow *flows;
	struct cn_flow *turn; /* whose frame is next */
	struct cn_flow *last; /* the flow of the last send: most go where the last went */
	struct cn_recv *recv_first, *recv_last;
	struct cn_arrival *arrival_first, *arrival_last;
	struct cn_send *free_send;
	struct cn_recv *free_recv;
	struct cn_send sends[CN_EP_REQUESTS];
	struct cn_recv recvs[CN_EP_REQUESTS];
};

struct cn_endpoints {
	struct cn_engine *engine;
	struct cn_endpoint *list;
	struct cn_ep_account *accounts; /* of owners with an endpoint */
	uint32_t count, nflows;
	uint32_t max_flows;
	uint64_t born;	    /* flows so far: the first number of each is another one */
	uint32_t hand;	    /* bucket where the search for an idle flow goes on */
	uint32_t payload;   /* bytes of a frame */
	uint16_t next_free; /* where the search for a free number goes on */
	cn_time deadline;   /* of requests: the earliest or earlier */
	cn_time retry_at;
	struct cn_flow *retry; /* flows with something to tell, for which there was no buffer */
	struct cn_flow *heard; /* the flow of the last frame: most come from where the last came */
	struct cn_source copied; /* token of frames whose bytes were copied */
	bool refused;		 /* a frame found no buffer */
	struct cn_pool pool;	 /* for frames that wait; there with the first endpoint */
	struct cn_flow *hash[CN_EP_BUCKETS];
	struct cn_endpoint *by_number[65536]; /* untouched memory costs nothing */
};

static inline struct cn_node *cn_ep_node(const struct cn_endpoints *s)
{
	return s->engine->node;
}

static inline const char *cn_ep_name(const struct cn_flow *f)
{
	return f->peer != NULL ? cn_peer_name(f->peer) : f->ep->all->engine->config.node.name;
}

/* Frames that carry the rest of a message. */
static inline uint32_t cn_ep_frames(const struct cn_endpoints *s, uint64_t bytes)
{
	return (uint32_t)((bytes + s->payload - 1) / s->payload);
}

/* endpoint.c */
struct cn_flow *cn_flow_find(struct cn_endpoints *s, const struct cn_peer *p, uint16_t local,
			     uint16_t remote);
/* Finds or makes. NULL: no room. */
struct cn_flow *cn_flow_get(struct cn_endpoint *ep, struct cn_peer *p, uint16_t remote);
/* Frees a flow without requests and messages. */
void cn_flow_free(struct cn_flow *f);
/* Frees it if its peer is gone and nothing of it waits any more. */
void cn_flow_settle_gone(struct cn_flow *f);
/* False: no buffer for it. */
bool cn_flow_tell(const struct cn_flow *f, enum cn_ep_control kind, uint32_t value);
/* It has something to tell, and there was no buffer: tries again soon. */
void cn_flow_retry(struct cn_flow *f, cn_time now);
void cn_ep_deadline(struct cn_endpoints *s, cn_time deadline); /* a request was added */

/* endpoint_send.c */
void cn_send_init(struct cn_endpoint *ep);
void cn_send_init_copied(struct cn_endpoints *s);
/* A request that is in no queue any more is complete. */
void cn_send_end(struct cn_send *r, int status, const char *text);
/* Ends a request that is not complete; the receiver is told to forget it, unless it knows. */
void cn_send_fail(struct cn_send *r, cn_time now, bool tell, int status, const char *text);
/* All requests of a flow. */
void cn_send_fail_flow(struct cn_flow *f, cn_time now, bool tell, int status, const char *text);
void cn_send_expire(struct cn_send *r, cn_time now);
/* Enters or leaves the ring of those that could send. */
void cn_flow_turn(struct cn_flow *f);
void cn_flow_grant(struct cn_flow *f, uint32_t frames);
void cn_flow_confirmed(struct cn_flow *f);
/* A message found no endpoint, or no room there. */
void cn_flow_refused(struct cn_flow *f, cn_time now, uint32_t number, bool full);
void cn_flow_tell_abort(struct cn_flow *f, cn_time now);

/* endpoint_recv.c */
void cn_recv_init(struct cn_endpoint *ep);
/* A frame of a message came. False: no buffer for it. */
bool cn_flow_deliver(struct cn_flow *f, cn_time now, const struct cn_rx *rx);
/* Reads the head of a first frame. */
bool cn_ep_head(const struct cn_rx *rx, uint32_t *bytes, uint32_t *number);
uint64_t cn_ep_head_owner(const struct cn_rx *rx); /* of one that was read */
/* Grants what is due. */
void cn_flow_credit(struct cn_flow *f, cn_time now);
/* The rest of the message that is coming will not: its receive waits again. */
void cn_flow_discard(struct cn_flow *f, cn_time now);
/* The peer is gone: so is what is unfinished. */
void cn_flow_lost(struct cn_flow *f);
void cn_recv_fail(struct cn_recv *r, cn_time now, int status, const char *text);
void cn_recv_expire(struct cn_recv *r, cn_time now);
/* A message from an endpoint of this node: received or kept; false: neither is possible now. */
bool cn_recv_local(struct cn_endpoint *to, struct cn_flow *f, const void *data, uint32_t bytes);
/* Then the request waits, in order with the other messages. */
void cn_recv_wait(struct cn_endpoint *to, struct cn_send *r);
void cn_arrival_remove(struct cn_endpoint *ep, struct cn_arrival *a);
/* Throws away all that waits; the endpoint is closed. */
void cn_arrivals_drop(struct cn_endpoint *ep);

#endif
