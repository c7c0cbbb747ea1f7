/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many unexpected messages a node may send to another: frames of operations that the receiver
 * has not started, because a rank there has not called them. They wait in the receiver's pool of
 * buffers. When the pool is full, frames are refused, and with them everything of the team between
 * two nodes. So the sender bounds them.
 *
 * It counts the frames that it has sent to a node, of operations that the node is not known to have
 * started. At most `limit` of them are sent. The node shows that it has started operation k, and so
 * all before it, by its first frame of k, or it notifies by STARTED. It sends STARTED when it has
 * received half of the smallest limit of its running operations since it last showed or notified:
 * the other half is under way meanwhile. Operations without frames between the two nodes may go by
 * unnoticed, so the first and the last operation of the counted frames are less than
 * CN_UNEXPECTED_OPS apart, and half of that, or less, calls for STARTED, too.
 *
 * The frames that the sender counts are among those that the receiver counts or will receive, so a
 * blocked sender always waits for a call.
 *
 * Nodes without frames for each other, or operations without frames, are not limited by that, and a
 * frame has the low bits of its operation's number alone. So no frame is sent of an operation that
 * is CN_UNEXPECTED_APART or more ahead of those that the receiver is known to have started, and a
 * node sends STARTED to all others that it has not notified for CN_UNEXPECTED_RENEW operations, to
 * a few of them in each operation, so that all have their turn within as many.
 *
 * Numbers of operations are those of cn_member.posted, and wrap.
 */
#ifndef CN_UNEXPECTED_LIMIT_H
#define CN_UNEXPECTED_LIMIT_H

#include "util/util.h"

#define CN_UNEXPECTED_OPS   32u
#define CN_UNEXPECTED_APART 1536u
#define CN_UNEXPECTED_RENEW 512u

/* Between this node and another one, in both directions. */
struct cn_unexpected_limit {
	uint32_t started;    /* it is known to have started all operations before this one */
	uint32_t nsent;	     /* frames sent to it, of operations from there on */
	uint32_t sent_first; /* nsent > 0: the first operation of these */
	uint8_t sent[CN_UNEXPECTED_OPS]; /* ... by operation */
	uint32_t notified;  /* it knows that all operations before this one have started here */
	uint32_t nreceived; /* frames received from it, of operations from there on */
	uint32_t received_first, received_last; /* nreceived > 0: operations of these */
};

/* True if another frame of operation `seq` may be sent. */
bool cn_unexpected_limit_allows(const struct cn_unexpected_limit *n, uint32_t seq, uint32_t limit);
void cn_unexpected_limit_sent(struct cn_unexpected_limit *n, uint32_t seq);
/* The other node has started `started` operations. */
void cn_unexpected_limit_started(struct cn_unexpected_limit *n, uint32_t started);
/* A frame of the running operation `seq` was received; `last` is the last one that has started, or
 * some operations further, so that it is notified early. True: STARTED is due. */
bool cn_unexpected_limit_received(struct cn_unexpected_limit *n, uint32_t seq, uint32_t last,
				  uint32_t after);
/* True if STARTED is due after `after` frames, with `last` as above. */
bool cn_unexpected_limit_due(const struct cn_unexpected_limit *n, uint32_t last, uint32_t after);
/* True if STARTED is due to keep the numbers comparable, when `nstarted` operations have started
 * here. */
bool cn_unexpected_limit_stale(const struct cn_unexpected_limit *n, uint32_t nstarted);
/* STARTED was sent: so many operations have started here. */
void cn_unexpected_limit_notified(struct cn_unexpected_limit *n, uint32_t nstarted);

#endif
