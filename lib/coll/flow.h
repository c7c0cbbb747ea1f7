/* SPDX-License-Identifier: BSD-2-Clause */
/* A flow: the state between two endpoints, in both directions. See endpoint.h for the protocol. */
#ifndef CN_FLOW_H
#define CN_FLOW_H

#include "coll/control.h"
#include "coll/turns.h"
#include "proto/node.h"

struct cn_endpoint;
struct cn_endpoints;
struct cn_ep_account;
struct cn_ep_buffered;
struct cn_ep_fragment;
struct cn_ep_message;
struct cn_recv;
struct cn_send;

enum cn_ep_control {
	CN_EP_GRANT = CN_CONTROL_ENDPOINT, /* value: additional frames; 0: the endpoint exists.
					    * Followed by the number of the last message received */
	CN_EP_NOENT,  /* value: number of a message to an endpoint that is not open */
	CN_EP_FULL,   /* value: number of a message refused for want of room */
	CN_EP_ABORT,  /* value: number of an aborted message */
	CN_EP_CLOSED, /* value 0: the endpoint `from` was closed */
};

/* Unexpected messages. */
struct cn_ep_queue {
	struct cn_ep_message *first, *last;
};

/* Of the messages that were sent. */
struct cn_ep_numbers {
	uint32_t first;		      /* the first whose refusal would still be reported */
	uint32_t next;		      /* message to be sent */
	uint32_t failed_from, failed; /* the last run that failed here */
};

/*
 * open       -make_gone()-> gone               the peer is down, or the other endpoint closed
 * open       -forget()-> freed                 it is idle, and makes room for another
 * open, gone -cn_flow_close()-> freed          the endpoint closes; no CLOSED is due, or it is sent
 * open       -cn_flow_close()-> closed         CLOSED found no buffer; `ep` is NULL
 * gone       -cn_flow_settle_gone()-> freed    no complete message of it waits any more
 * closed     -cn_flow_retry_all()-> freed      CLOSED is sent
 * closed     -take_over_closed()-> freed       a new flow between the same endpoints sends it
 * closed     -cn_endpoints_peer_down()-> freed
 *
 * Only an open flow is in the hash table. A flow within the node is open until it is freed, and has
 * of the flags `coming` alone.
 *
 * retry:      cn_flow_retry(), cn_flow_close() and take_over_closed() set it; cn_flow_retry_all()
 *             clears it once nothing is due any more, and so does detach().
 * closed_due: take_over_closed() sets it, of a new flow: no message, grant or ABORT goes before.
 *             cn_flow_retry_all() clears it, or make_gone(). `retry` is set, too.
 * known:      first_frame() sets it, of sending or receiving, or take_over_closed(). Without it no
 *             CLOSED is due.
 * abort_due:  take_back() sets it; cn_flow_send_abort() clears it, or flow_down(). No message goes
 *             before. on_closed() leaves a flow open that has ABORT or CLOSED to send.
 * confirmed:  cn_flow_confirmed() sets it; cn_flow_refused() and on_closed() clear it.
 * grant_due:  first_frame() sets it; cn_flow_credit() clears it by a grant, or on_closed() or
 *             flow_down().
 * coming:     first_frame() sets it, and one of `into` and `buffered`; or cn_local_match(), with
 *             `into` and `from`. `into` is NULL once its receive has failed. finish() and
 *             cn_flow_discard() clear all of it, or, of this node, stop().
 * awaiting:   as of update_expect(): `coming`, with `into` set and bytes missing.
 */
struct cn_flow {
	struct cn_flow *hash_next;   /* NULL too when it is gone */
	struct cn_flow *next, *prev; /* of the endpoint */
	struct cn_flow *retry_next;
	struct cn_endpoints *all;
	struct cn_ep_account *account; /* that is charged for it to its end */
	struct cn_endpoint *ep;	       /* NULL: closed, only its CLOSED is still to be sent */
	struct cn_peer *peer;	       /* NULL: this node */
	uint16_t local, remote;	       /* numbers of the endpoints */
	bool gone;  /* the peer is down, or the other endpoint closed: only complete messages are
		     * left */
	bool known; /* a first frame was sent or received: the other end may have the flow, too */
	bool closed_due; /* CLOSED of the endpoint that had its number before is due, before
			  * anything of this one */
	bool retry;	 /* in the list of flows with a control message to send */
	bool awaiting;	 /* cn_peer_expect() for the message that is being received is in force */

	/* sending */
	struct cn_send *first, *last;
	struct cn_turn turn; /* while it could send, or, of this node, its message is copied */
	uint32_t credit;
	struct cn_ep_numbers numbers;
	uint32_t abort; /* number of the last one cut off; to be sent, if abort_due */
	uint32_t since; /* frames sent since then */
	bool abort_due;
	bool confirmed; /* the other endpoint is there */
	/* requests that are not complete: cn_peer_expect() is in force while some */
	uint32_t sends;

	/* receiving */
	uint32_t avail;	      /* credit that the sender has, as far as we know */
	uint32_t pooled;      /* frames that wait in buffers */
	uint32_t waiting;     /* messages that wait, those of this node included */
	uint32_t in_number;   /* of the message in progress */
	uint32_t bytes, left; /* of it, total and missing */
	bool coming;	      /* a message is in progress: first frame received, last one not */
	bool grant_due;	      /* the sender has requested a grant, however small */
	struct cn_recv *into; /* its receive, or */
	struct cn_ep_buffered *buffered; /* its queue entry, or (both NULL) it is discarded */
	struct cn_ep_fragment **tail;	 /* where the next fragment of `buffered` goes */
	struct cn_send *from;		 /* local: the request being copied; NULL: none */
	struct cn_ep_queue deferred;	 /* local messages deferred behind the one in progress */

	/* of the other node; once that is gone, its peer may have another one */
	char name[COLLNET_NAME_MAX + 1];
};

struct cn_flow *cn_flow_find(struct cn_endpoints *s, const struct cn_peer *p, uint16_t local,
			     uint16_t remote);
/* Finds or makes. NULL: no room. */
struct cn_flow *cn_flow_get(struct cn_endpoint *ep, struct cn_peer *p, uint16_t remote);
/* Frees a flow without requests and messages, which is in no list if it is closed. */
void cn_flow_free(struct cn_flow *f);
/* The endpoint closes: the other end is notified, now or when there is a buffer. */
void cn_flow_close(struct cn_flow *f, cn_time now);
/* Frees it if it is gone and has no messages left. */
void cn_flow_settle_gone(struct cn_flow *f);

/* Sends a control message. False: no buffer for it. */
bool cn_flow_control(const struct cn_flow *f, enum cn_ep_control kind, uint32_t value);
bool cn_flow_control_grant(const struct cn_flow *f, uint32_t frames);
bool cn_flow_notify(struct cn_endpoints *s, struct cn_peer *p, enum cn_ep_control kind, uint16_t to,
		    uint16_t from, uint32_t value);
/* Refuses a message of the peer. False: no buffer, so its frame must be retransmitted. If the
 * peer accepts nothing either, both would deadlock: then the refusal is dropped, and the result
 * is true. */
bool cn_flow_refuse(struct cn_endpoints *s, struct cn_peer *p, enum cn_ep_control kind, uint16_t to,
		    uint16_t from, uint32_t number);
/* A control message of it found no buffer: schedules a retry. */
void cn_flow_retry(struct cn_flow *f, cn_time now);
void cn_flow_retry_all(struct cn_endpoints *s, cn_time now);

#endif
