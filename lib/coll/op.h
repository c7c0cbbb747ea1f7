/* SPDX-License-Identifier: BSD-2-Clause */
/* An operation's state, shared by op.c, which runs it, and post.c, which starts and ends it. */
#ifndef CN_OP_H
#define CN_OP_H

#include "coll/coll.h"

#define CN_NONE UINT32_MAX

/* How far an action has come, and the next one of its list. */
struct cn_progress {
	uint64_t done;
	uint32_t next;	  /* SEND: to the same node; RECV: from the same node; COPY: in the queue */
	uint32_t copies;  /* first copy that depends on this action */
	uint32_t sibling; /* COPY: next one that depends on the same action */
	bool complete;
};

/* The two streams between this node and another one. */
struct cn_streams {
	uint32_t send, recv; /* current action; CN_NONE: all done */
	bool expected;	     /* cn_peer_expect() is in force */
};

struct cn_post {
	struct cn_done *done; /* NULL: this rank has not called */
	const uint8_t *send;
	uint8_t *recv;
};

enum op_state {
	OP_FREE,
	OP_POSTED, /* some ranks of this node have called */
	OP_RUNNING,
};

struct cn_op {
	struct cn_source source; /* first: the transport's token is the source */
	struct cn_team *team;
	enum op_state state;
	uint32_t seq;
	struct cn_coll_args args; /* of the first call; buffers are in posts[] */
	const struct cn_algorithm *algorithm;
	uint32_t window;
	cn_time deadline;
	struct cn_post *posts; /* [local ranks] */
	uint32_t nposts;

	/* the plan, kept for the next operation that is alike */
	struct cn_plan plan;
	struct cn_sched sched;
	struct cn_progress *progress; /* [sched.n] */
	uint32_t progress_cap;
	struct cn_streams *streams; /* [nodes] */
	uint32_t *targets;	    /* nodes with something left to send, in order of appearance */
	uint32_t ntargets, turn;
	uint32_t copy_first, copy_last; /* copies that can run */
	uint32_t remaining;		/* actions not complete */
	bool one_way;			/* it sends more frames than it receives */
	bool synchronised;		/* its sends wait for synchronisations of others */
	bool ending;			/* all is done; to be finished at the next expiry */
	bool ending_tried;		/* that was tried: acknowledgements finish it now */
};

/* Ranks of this node. */
uint32_t cn_op_locals(const struct cn_team *t);
/* Every rank of this node is told. The operation is free afterwards. */
void cn_op_finish(struct cn_op *op, int status, const char *text);
/* Complete if nothing is left to do and the buffers are free. */
void cn_op_try_finish(struct cn_op *op);
void cn_op_queue_copy(struct cn_op *op, uint32_t action);
void cn_op_run_copies(struct cn_op *op);
/* The source's upcalls. */
bool cn_op_pull(struct cn_source *source, cn_time now, struct cn_tx *out);
void cn_op_acked(struct cn_source *source);
/* Frames that waited for this operation, in the order in which they came. */
void cn_op_take_unexpected(struct cn_op *op, cn_time now);

/* unexpected.c */
/* Whether the next frame of the operation may go to node k. */
bool cn_unexpected_room(const struct cn_op *op, uint32_t k);
void cn_unexpected_sent(struct cn_op *op, uint32_t k);	/* it goes */
void cn_unexpected_taken(struct cn_op *op, uint32_t k); /* a frame from node k has its reader */
/* The operation has started; early frames are taken afterwards. */
void cn_unexpected_start(struct cn_op *op);
/*
 * "; node h2 has not started ...": what the operation waits for at another node's buffers, or "".
 */
void cn_unexpected_explain(const struct cn_op *op, char *text, size_t cap);

#endif
