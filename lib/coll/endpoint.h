/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints: what their files share (private to them). The engine's interface is in engine.h.
 *
 *   endpoint.c             endpoints open and close; the engine's calls
 *   endpoint_post.c        calls to send and to receive
 *   endpoint_local.c       messages within this node
 *   endpoint_send.c        requests to send, and their frames
 *   endpoint_recv.c        requests to receive, matching, credits
 *   endpoint_unexpected.c  the unexpected message queue: messages without a receive
 *   flow.c                 flows, and the control messages of endpoints
 *
 * Directed Point: a node opens numbered endpoints and sends to (node, endpoint), without connection
 * setup. The state between two endpoints is a flow: the pair (local endpoint, endpoint of a peer),
 * both directions together.
 *
 * On the wire. A message is one or more frames of type MESSAGE, stream = to << 16 | from. The first
 * has FIRST and begins with a header of 16 bytes: length of the whole message (32 bits; the highest
 * one, CN_EP_GRANTREQ, requests a grant), its number in the flow (32 bits), and the owner of the
 * sending endpoint (64 bits). A message to an endpoint of another owner is refused as if the
 * endpoint were not open. The last frame has LAST. Between endpoints also go control messages of 9
 * bytes: kind (8), to (16), from (16), value (32); see enum cn_ep_control. A grant has 4 more, the
 * number of the last message that came, which earlier builds neither send nor read.
 *
 * Credits keep an endpoint that does not receive from blocking the other endpoints of its node
 * (head-of-line blocking): the frames of all endpoints and the control messages between two nodes
 * share one sequence, which stops at a frame without a buffer. So unexpected frames have a pool of
 * their own, large enough for all frames of all flows; its untouched parts cost nothing. A payer's
 * endpoints have at most a quarter of the flows, and so of the pool, those of closed ones whose
 * CLOSED still waits included; what is beyond is refused message by message (FULL), and its sender
 * is notified.
 *
 * The sender may have `credit` more frames outstanding. It starts with CN_EP_CREDIT, and the
 * receiver grants more when unexpected frames were passed to a receive, or, for the whole rest of a
 * message at once, when a receive was posted for it. Two rules make credits safe against every race
 * of closing, aborting and granting:
 *  - the sender's view of its credit is never less than the receiver's view of it; where frames may
 *    be missing from the count (abort, endpoint not there) the sender adds them;
 *  - it is never more than CN_EP_CREDIT plus the rest of the message being sent.
 * At the end of a message, complete or aborted, the receiver assumes that its sender has at most
 * CN_EP_CREDIT. So a grant made before an abort was known to the receiver, as its number shows,
 * counts for at most CN_EP_CREDIT less the frames sent since the abort: otherwise the rest of the
 * aborted message would be credit of the next one. The sender may still overestimate its credit:
 * frames that it added may have been counted. A flow keeps at most CN_EP_UNREAD frames; a message
 * beyond is refused (FULL).
 *
 * A flow is confirmed once the other endpoint is known to be there (it granted, or sent). Before
 * that, one message at a time is sent, and completes only when confirmed, so that a send to a
 * missing endpoint fails although small messages complete as soon as they are sent. The receiver
 * may have evicted the flow since, and refuse such a message: then the endpoint's next send fails
 * instead, even if the sender has evicted the flow too, unless it has evicted CN_EP_FORGOTTEN
 * others of this endpoint since.
 */
#ifndef CN_ENDPOINT_H
#define CN_ENDPOINT_H

#include "coll/control.h"
#include "coll/engine_state.h"
#include "coll/flow.h"
#include "proto/wire.h"
#include "util/pool.h"

#define CN_EP_CREDIT	  32u		     /* unread frames per flow; part of the protocol */
#define CN_EP_UNREAD	  (2 * CN_EP_CREDIT) /* hard limit of unread frames per flow */
#define CN_EP_REQUESTS	  64u	/* sends, and as many receives, outstanding on an endpoint */
#define CN_EP_FLOWS	  4096u /* of a node, at most, and at least */
#define CN_EP_FLOWS_LEAST 256u
#define CN_EP_SHARES	  4u	/* a payer may have one of this many shares of the flows */
#define CN_EP_BUCKETS	  1024u /* of their hash table, a power of two */
#define CN_EP_HEAD	  16u	/* header of a first frame, bytes */
#define CN_EP_GRANTREQ	  0x80000000u
#define CN_EP_COPIED	  4u	/* messages of up to this many frames are copied */
#define CN_EP_FORGOTTEN	  16u	/* evicted flows of an endpoint that are remembered */
#define CN_EP_RETRY	  CN_MS /* after a control message found no buffer */

/* An unexpected message, in order of arrival of first frames. */
struct cn_ep_message {
	struct cn_ep_message *next, *prev;
	struct cn_ep_queue *queue; /* the queue that holds it */
	struct cn_flow *flow;
	uint32_t bytes; /* of the message */
	uint16_t len;	/* bytes of its first fragment */
	bool local;	/* it is part of a struct cn_send of this node; else of a cn_ep_buffered */
};

/* A further frame of it, in a buffer of the endpoints' pool. */
struct cn_ep_fragment {
	struct cn_ep_fragment *next;
	uint16_t len;
};

/* Its first frame, in such a buffer too, followed by the bytes. */
struct cn_ep_buffered {
	struct cn_ep_message message;
	struct cn_ep_fragment *more;
};

enum cn_send_state {
	CN_SEND_FREE = 0,
	CN_SEND_LOCAL,	 /* to an endpoint of this node: in its queue or `held`, or being copied */
	CN_SEND_QUEUED,	 /* in its flow's queue; no frame of it went */
	CN_SEND_BEGUN,	 /* likewise; its first frame went */
	CN_SEND_SENT,	 /* likewise; its last frame went, and the flow is not confirmed */
	CN_SEND_UNACKED, /* in no queue; frames without copies are unacknowledged */
};

/*
 * FREE    -cn_local_wait()-> LOCAL
 * FREE    -cn_send_enqueue()-> QUEUED
 * QUEUED  -first_frame()-> BEGUN
 * BEGUN   -send_frame()-> SENT       with the last frame, which may be the first; settle() follows
 * SENT    -settle()-> UNACKED, FREE  it did not request a grant, or the flow is confirmed; FREE:
 *                                    nothing of it is unacknowledged
 * UNACKED -on_acked()-> FREE
 * LOCAL   -cn_local_match()-> FREE   one that fits a frame; a longer one by finish()
 * any     -cn_send_fail()-> FREE     LOCAL also by cn_ep_unexpected_drop()
 *
 * cn_send_end() frees each.
 */
struct cn_send {
	struct cn_source source; /* the first member; token of its frames, unless they are copied */
	struct cn_send *next;	 /* in its flow's queue, or free */
	struct cn_endpoint *ep;
	struct cn_flow *flow;
	enum cn_send_state state;
	struct cn_done *done;
	const uint8_t *data;
	uint64_t bytes, offset; /* total, and sent or copied within this node */
	uint32_t number;
	bool grantreq; /* from BEGUN on: its first frame requested a grant, to confirm the flow */
	cn_time deadline;
	struct cn_ep_message message; /* to an endpoint of this node */
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
	uint32_t number; /* of the endpoint's receives */
	struct cn_received *result;
};

/* An evicted flow, whose messages may still be refused. */
struct cn_ep_forgotten {
	const struct cn_peer *peer; /* NULL: none */
	uint16_t remote;
	struct cn_ep_numbers numbers;
};

/* The resources of all endpoints charged to one payer. */
struct cn_ep_account {
	struct cn_source source; /* first member: in the engine's ring while `sources` has some */
	struct cn_source_ring sources; /* endpoints that could send */
	struct cn_turn *copying;       /* ring of local flows; the next one to copy */
	struct cn_turn turn;	       /* while there are some */
	struct cn_endpoints *all;
	struct cn_ep_account *next;
	uint64_t payer;
	uint32_t endpoints, flows;
};

struct cn_endpoint {
	struct cn_source source; /* first member: in the account's ring while a flow could send */
	struct cn_endpoints *all;
	struct cn_endpoint *next, *prev;
	uint64_t owner;
	struct cn_ep_account *account;
	uint16_t number;
	struct cn_flow *flows;
	struct cn_turn *current; /* the flow of the next frame */
	uint32_t quantum_used;	 /* frames it has sent in a row */
	struct cn_flow *last;	 /* the flow of the last send, a cache */
	struct cn_err lost;	 /* a completed message was refused; code 0: none */
	struct cn_ep_forgotten forgotten[CN_EP_FORGOTTEN]; /* a ring */
	uint32_t nforgotten;
	struct cn_recv *recv_first, *recv_last; /* posted receives, in order */
	uint32_t posted;			/* receives */
	cn_time deadline;			/* of requests: the earliest or earlier */
	struct cn_ep_queue unexpected;
	struct cn_send *free_send;
	struct cn_recv *free_recv;
	struct cn_send sends[CN_EP_REQUESTS];
	struct cn_recv recvs[CN_EP_REQUESTS];
};

struct cn_endpoints {
	struct cn_engine *engine;
	struct cn_endpoint *list;
	struct cn_ep_account *accounts; /* of payers with an endpoint */
	uint32_t count, nflows;
	uint32_t max_flows;
	uint64_t created;   /* flows created so far, from which initial message numbers follow */
	uint32_t hand;	    /* clock hand: bucket where the search for an idle flow continues */
	uint32_t payload;   /* bytes of a frame */
	uint16_t next_free; /* next number to try */
	cn_time deadline;   /* of the endpoints: the earliest or earlier */
	cn_time retry_at;
	struct cn_flow *retry;	       /* flows with a control message that found no buffer */
	struct cn_turn *copying;       /* ring of accounts with local copies; the next one */
	struct cn_flow *last_received; /* flow of the last frame received, a cache */
	struct cn_source copied;       /* token of frames whose bytes were copied */
	bool refused;		       /* a frame was refused (RNR) */
	struct cn_pool pool; /* for unexpected frames; allocated with the first endpoint */
	struct cn_flow *hash[CN_EP_BUCKETS];
	struct cn_endpoint **by_number; /* 65,536; allocated with the first endpoint */
};

/* The open endpoint of that number, or NULL. */
static inline struct cn_endpoint *cn_endpoint_at(const struct cn_endpoints *s, uint16_t number)
{
	return s->by_number != NULL ? s->by_number[number] : NULL;
}

static inline struct cn_node *cn_ep_node(const struct cn_endpoints *s)
{
	return s->engine->own.node;
}

/* Frames needed for the rest of a message. */
static inline uint32_t cn_ep_frames(const struct cn_endpoints *s, uint64_t bytes)
{
	return (uint32_t)((bytes + s->payload - 1) / s->payload);
}

/* ---- endpoint.c: the engine's calls ------------------------------------------------------- */

int cn_endpoints_new(struct cn_engine *e, struct cn_err *err);
void cn_endpoints_free(struct cn_engine *e); /* outstanding requests have ended */
/* Ends all outstanding requests with the status. */
void cn_endpoints_abort(struct cn_engine *e, int status, const char *text);
/* The same while the engine continues: notifies the other ends of aborted messages. */
void cn_endpoints_fail(struct cn_engine *e, cn_time now, int status, const char *text);
bool cn_endpoints_deliver(struct cn_engine *e, cn_time now, struct cn_peer *p,
			  const struct cn_rx *rx);
/* Where it will write the payload, as cn_op_place(). */
bool cn_endpoints_place(struct cn_engine *e, const struct cn_peer *p, const struct cn_rx *rx,
			struct cn_rx_place *out);
/* A control message whose first byte is >= CN_CONTROL_ENDPOINT (flow.c). */
bool cn_endpoints_control(struct cn_engine *e, cn_time now, struct cn_peer *p, const uint8_t *data,
			  size_t len);
void cn_endpoints_peer_down(struct cn_engine *e, cn_time now, struct cn_peer *p); /* flow.c */
cn_time cn_endpoints_deadline(const struct cn_engine *e);
void cn_endpoints_expire(struct cn_engine *e, cn_time now);
void cn_ep_deadline(struct cn_endpoint *ep, cn_time deadline); /* a request was added */
/* Frees an account without endpoints and flows. */
void cn_ep_account_settle(struct cn_endpoints *s, struct cn_ep_account *a);

/* ---- endpoint_send.c ---------------------------------------------------------------------- */

void cn_send_account_init(struct cn_ep_account *a);
void cn_send_init(struct cn_endpoint *ep);
void cn_send_init_copied(struct cn_endpoints *s);
void cn_send_enqueue(struct cn_flow *f, struct cn_send *r);
/* Completes a request that is in no queue. */
void cn_send_end(struct cn_send *r, int status, const char *text);
/* Ends a request that is not complete; notify: the receiver is to discard the message. */
void cn_send_fail(struct cn_send *r, cn_time now, bool notify, int status, const char *text);
/* Ends all requests of a flow. */
void cn_send_fail_flow(struct cn_flow *f, cn_time now, bool notify, int status, const char *text);
void cn_send_expire(struct cn_send *r, cn_time now);
/* Adds a flow to the ring of flows that could send, or removes it. */
void cn_flow_activate(struct cn_flow *f);
/* number: last message that the other end had received. */
void cn_flow_grant(struct cn_flow *f, uint32_t frames, uint32_t number);
void cn_flow_confirmed(struct cn_flow *f);
/* Remembers an evicted flow, whose completed messages may still be refused. */
void cn_flow_remember(const struct cn_flow *f);
void cn_endpoint_refused(struct cn_endpoint *ep, const struct cn_peer *p, uint16_t to,
			 uint32_t number, bool full);
/* A message was refused: no endpoint, or no room. */
void cn_flow_refused(struct cn_flow *f, cn_time now, uint32_t number, bool full);
void cn_flow_send_abort(struct cn_flow *f, cn_time now);

/* ---- endpoint_local.c --------------------------------------------------------------------- */

/* Delivers a short message from an endpoint of this node, or keeps a copy of one that has no
 * receive (eager). False: it must wait. */
bool cn_local_deliver(struct cn_flow *f, cn_time now, const void *data, uint64_t bytes);
/* Queues its request in order with the other messages. */
void cn_local_wait(struct cn_send *out, cn_time now);
/* Matches it with a receive. */
void cn_local_match(struct cn_send *out, struct cn_recv *in);
/* Copies one chunk to the receives. */
void cn_local_copy(struct cn_endpoints *s, cn_time now);
/* A request to send ends early: its receive gets the next message. */
void cn_local_send_ends(struct cn_send *out, cn_time now);
/* A receive with a message of this node ends early: the next one gets the message. */
void cn_local_recv_ends(struct cn_recv *in, cn_time now);

/* ---- endpoint_recv.c ---------------------------------------------------------------------- */

void cn_recv_init(struct cn_endpoint *ep);
void cn_recv_append(struct cn_endpoint *ep, struct cn_recv *r);
/* Its message was aborted: queues the receive again in its former position. */
void cn_recv_return(struct cn_endpoint *ep, struct cn_recv *r);
struct cn_recv *cn_recv_dequeue(struct cn_endpoint *ep); /* the first posted one; NULL: none */
/* Matches posted receives and unexpected messages. */
void cn_recv_match(struct cn_endpoint *ep, cn_time now);
/* Copies bytes of a message to the receive's buffer, truncated to its size. */
void cn_recv_copy(struct cn_recv *r, uint32_t at, const void *data, uint32_t n);
void cn_recv_complete(struct cn_recv *r, const struct cn_flow *f, uint32_t bytes);
void cn_recv_fail(struct cn_recv *r, cn_time now, int status, const char *text);
void cn_recv_expire(struct cn_recv *r, cn_time now);
/* Buffers or a receive are available: refused frames may be retransmitted. */
void cn_recv_resume(struct cn_endpoints *s);
/* Delivers a frame of a message. False: no buffer (RNR). */
bool cn_flow_deliver(struct cn_flow *f, cn_time now, const struct cn_rx *rx);
/* Where it will write the payload of a further frame. False: not one, or without a receive. */
bool cn_flow_place(const struct cn_flow *f, const struct cn_rx *rx, struct cn_rx_place *out);
/* Sends a grant that is due. */
void cn_flow_credit(struct cn_flow *f, cn_time now);
/* Discards the message in progress: its receive is queued again. */
void cn_flow_discard(struct cn_flow *f, cn_time now);
/* The peer is gone: discards the unfinished message. */
void cn_flow_lost(struct cn_flow *f);

/* The header of a first frame. */
struct cn_ep_head {
	uint32_t bytes, number;
	uint64_t owner;
	bool grantreq; /* a grant is requested */
};
bool cn_ep_head(const struct cn_rx *rx, struct cn_ep_head *head); /* false: malformed */

/* ---- endpoint_unexpected.c ---------------------------------------------------------------- */

void cn_ep_unexpected_append(struct cn_ep_queue *q, struct cn_ep_message *m);
void cn_ep_unexpected_prepend(struct cn_ep_queue *q, struct cn_ep_message *m);
void cn_ep_unexpected_remove(struct cn_ep_message *m);
/* Returns a flow's deferred messages to the head of the endpoint's queue. */
void cn_ep_unexpected_return(struct cn_endpoint *ep, struct cn_ep_queue *held);
/* Queues the first frame of a message of `bytes`; NULL: no buffer. */
struct cn_ep_buffered *cn_ep_unexpected_enqueue(struct cn_flow *f, uint32_t bytes, const void *data,
						uint32_t n);
/* Queues a further frame of f->buffered. False: no buffer. */
bool cn_ep_unexpected_add(struct cn_flow *f, const void *data, uint32_t n);
/* Returns the buffers; with a receive, copies the bytes to it. */
void cn_ep_unexpected_deliver(struct cn_ep_buffered *m, struct cn_recv *r);
/* Discards all unexpected messages; the endpoint is closed. */
void cn_ep_unexpected_drop(struct cn_endpoint *ep);
/* The request of a local message. */
struct cn_send *cn_ep_unexpected_send(struct cn_ep_message *m);

#endif
