/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Schedules are data: what one node does in a collective operation.
 *
 * A planner is a pure function from (layout of the team, operation, sizes) to a schedule: a list of
 * actions with their dependencies, and the order of sends. One engine (lib/coll) runs any schedule.
 * Nodes, not ranks, send frames: the ranks of one node share its link, so a schedule is a node's,
 * and data between ranks of one node moves by copies.
 *
 * Invariants of every schedule (checked by tests/unit):
 *  - the sends of node a to node b are, in list order, exactly the receives of b from a, with the
 *    same spans and lengths: the position in the stream of bytes from a to b names the message
 *    (where blocks have sizes of their own, a span on the other node has CN_OFFSET_UNKNOWN);
 *  - a dependency points to an earlier action of the list;
 *  - in one phase a node sends data to at most one node and receives data from at most one. (All
 *    but `linear`, the naive baseline: everything at once is its one phase; and reductions in the
 *    order of the ranks, where ranks of a node do not follow one another.)
 *  - a synchronisation has the phase of the message that it follows.
 *
 * Copies come first in the list where they depend on nothing. Source and destination of a copy
 * may be the same memory (allgather in place): then there is nothing to move.
 */
#ifndef CN_SCHED_H
#define CN_SCHED_H

#include <stdatomic.h>

#include "sched/permutation.h"
#include "topo/tree.h"
#include "util/util.h"

enum cn_op_kind {
	CN_OP_ALLTOALL = 1,
	CN_OP_ALLGATHER = 2,
	CN_OP_BARRIER = 3,
	CN_OP_BCAST = 4,   /* the root's send buffer (bytes) to every rank's receive buffer */
	CN_OP_SCATTER = 5, /* block d of the root's send buffer to the receive buffer of rank d */
	CN_OP_GATHER = 6,  /* rank s's send buffer to block s of the root's receive buffer */
	/* The same with blocks of any sizes at any places: struct cn_blocks. */
	CN_OP_ALLTOALLV = 7,
	CN_OP_ALLGATHERV = 8,
	CN_OP_SCATTERV = 9,
	CN_OP_GATHERV = 10,
	/* Reductions: the ranks' send buffers are combined, element by element, to a result. */
	CN_OP_ALLREDUCE = 11,	    /* of all ranks, on all */
	CN_OP_REDUCE = 12,	    /* of all ranks, on the root */
	CN_OP_REDUCE_SCATTER = 13,  /* of all ranks: block d on rank d */
	CN_OP_SCAN = 14,	    /* of ranks 0 .. r, on rank r */
	CN_OP_EXSCAN = 15,	    /* of ranks 0 .. r - 1, on rank r; rank 0 has none */
	CN_OP_REDUCE_SCATTERV = 16, /* the blocks have sizes of their own */
};
#define CN_OP_KINDS 17 /* one more than the greatest */

/* Of a vector operation, the one of equal blocks, whose algorithms serve it; else itself. */
static inline enum cn_op_kind cn_op_base(enum cn_op_kind op)
{
	switch (op) {
	case CN_OP_ALLTOALLV:
		return CN_OP_ALLTOALL;
	case CN_OP_ALLGATHERV:
		return CN_OP_ALLGATHER;
	case CN_OP_SCATTERV:
		return CN_OP_SCATTER;
	case CN_OP_GATHERV:
		return CN_OP_GATHER;
	case CN_OP_REDUCE_SCATTERV:
		return CN_OP_REDUCE_SCATTER;
	default:
		return op;
	}
}

static inline bool cn_op_is_vector(enum cn_op_kind op)
{
	return cn_op_base(op) != op;
}

/* One rank has the data. */
static inline bool cn_op_is_from_root(enum cn_op_kind op)
{
	op = cn_op_base(op);
	return op == CN_OP_BCAST || op == CN_OP_SCATTER;
}

/* One rank has the data, or gets it. */
static inline bool cn_op_has_root(enum cn_op_kind op)
{
	op = cn_op_base(op);
	return cn_op_is_from_root(op) || op == CN_OP_GATHER || op == CN_OP_REDUCE;
}

/* A rank has different data for each of the others. */
static inline bool cn_op_sends_to_each(enum cn_op_kind op)
{
	op = cn_op_base(op);
	return op == CN_OP_ALLTOALL || op == CN_OP_SCATTER || op == CN_OP_REDUCE_SCATTER;
}

/* Reductions: how many ranks, from 0 on, the result of `rank` combines. */
static inline uint32_t cn_op_operands(enum cn_op_kind op, uint32_t rank, uint32_t ranks)
{
	return op == CN_OP_SCAN ? rank + 1 : op == CN_OP_EXSCAN ? rank : ranks;
}

/* Some ranks only send: in repeated calls they can be far ahead of the others. */
static inline bool cn_op_is_one_way(enum cn_op_kind op)
{
	return cn_op_has_root(op) || op == CN_OP_SCAN || op == CN_OP_EXSCAN;
}

/* Every node sends as much to every other one as it receives from it. */
static inline bool cn_op_is_exchange(enum cn_op_kind op)
{
	op = cn_op_base(op);
	return op == CN_OP_ALLTOALL || op == CN_OP_REDUCE_SCATTER;
}

static inline bool cn_op_reduces(enum cn_op_kind op)
{
	return op >= CN_OP_ALLREDUCE && op <= CN_OP_REDUCE_SCATTERV;
}

/* Blocks of a reduction that a daemon combines itself have so many bytes at most. */
#define CN_COMBINED_BY_DAEMON (64u << 10)

/* A reduction of such blocks: daemon/combine.c. */
static inline bool cn_op_is_combined_by_daemon(enum cn_op_kind op, uint64_t bytes,
					       bool user_defined)
{
	return bytes <= CN_COMBINED_BY_DAEMON && !user_defined && !cn_op_is_vector(op);
}

/* "alltoall", "bcast", ... */
const char *cn_op_name(enum cn_op_kind op);
bool cn_op_find(const char *name, enum cn_op_kind *out);

/* An allgather that makes teams is not one that a user called. On the wire. */
enum cn_making {
	CN_MAKING_NONE = 0,
	CN_MAKING_SPLIT = 1,
	CN_MAKING_DUP = 2,
};

/* A block of a vector operation, in a buffer. */
struct cn_block {
	uint64_t at, len; /* bytes */
};

/*
 * The blocks that one rank knows of a vector operation, for or from rank i.
 *
 *   alltoallv    send, recv
 *   allgatherv   recv, equal lengths on all ranks; it sends recv[rank].len bytes
 *   scatterv     send on the root; recv_len
 *   gatherv      recv on the root; send_len
 *   reduce_scatterv  send, one behind the other, equal lengths on all ranks; it receives
 *                send[rank].len bytes
 */
struct cn_blocks {
	const struct cn_block *send, *recv; /* [ranks], or NULL */
	uint64_t send_len, recv_len;	    /* of a buffer of one block */
};

/* What a rank's two buffers depend on. */
struct cn_call {
	enum cn_op_kind op;
	uint64_t bytes; /* of one block; 0 in vector operations */
	uint32_t rank, ranks, root;
	struct cn_blocks blocks;
	/* of a reduction: */
	uint32_t nodes;	  /* of the team */
	uint32_t local;	  /* ranks on the rank's node */
	uint32_t element; /* bytes */
};
/*
 * Bytes of the two buffers; 0: the rank has none. Of blocks, to the end of the last one;
 * UINT64_MAX: it is beyond any memory.
 */
uint64_t cn_call_send_bytes(const struct cn_call *c);
uint64_t cn_call_recv_bytes(const struct cn_call *c);
/* Bytes of CN_BUF_SCRATCH, enough for every algorithm; 0: none is needed. */
uint64_t cn_call_scratch_bytes(const struct cn_call *c);
/* True if the rank needs blocks.send, blocks.recv: [ranks]. */
bool cn_call_send_blocks(const struct cn_call *c);
bool cn_call_recv_blocks(const struct cn_call *c);
/* True if nothing is written to the rank's recv, which is its send: the root of a broadcast. */
static inline bool cn_call_only_sends(const struct cn_call *c)
{
	return c->op == CN_OP_BCAST && c->rank == c->root;
}
/* The offset in recv at which send may be the same memory; UINT64_MAX: there is none. */
uint64_t cn_call_in_place(const struct cn_call *c);
/*
 * Checks whether buffers may be given to an operation: not NULL where bytes are needed, root,
 * blocks and totals within bounds, no overlap except one of these, in place. COLLNET_OK or
 * COLLNET_EINVAL.
 *
 *   alltoall               send is recv: the caller of the engine copies it (cn_call_swaps())
 *   allgather; gather root send is the rank's own block of recv
 *   scatter root           recv is the rank's own block of send
 *   bcast root             send is recv
 */
int cn_call_check_buffers(const struct cn_call *c, const void *send, const void *recv,
			  struct cn_err *err);
/* Blocks replace those that they are exchanged for: what is sent must be copied first. */
bool cn_call_swaps(const struct cn_call *c, const void *send, const void *recv);
/* Copies the blocks of a buffer to `to`, one behind the other; returns the bytes. */
uint64_t cn_blocks_pack(const struct cn_block *b, uint32_t n, const void *from, void *to);
/* The other way round. */
void cn_blocks_unpack(const struct cn_block *b, uint32_t n, const void *from, void *to);
/* Sets the offsets that packed blocks have. */
void cn_blocks_follow(struct cn_block *b, uint32_t n);
uint64_t cn_blocks_bytes(const struct cn_block *b, uint32_t n);

/* The order of a schedule's sends. */
enum cn_order {
	CN_ORDER_IN_TURN = 0,	  /* one message at a time, in list order */
	CN_ORDER_INTERLEAVED = 1, /* frame by frame over destinations (Algorithm 1): see below */
	CN_ORDER_ANY = 2, /* the first in list order that can progress, but never past an unfinished
			   * message to the same node */
};

/*
 * INTERLEAVED takes turns over destinations, not over messages. All messages to one node, in list
 * order, are one stream of frames (coll/op_frames.c cuts it). Round r sends frame r of the stream
 * to the node that appears first in the list, then frame r of the stream to the node that appears
 * second, and so on; then round r + 1. A destination whose stream has ended is left out; a
 * destination whose next frame cannot go now is waited for, not passed over. So messages from a to
 * b are sent one after the other, and the next message to b may begin while messages to other nodes
 * are unfinished.
 */

enum cn_action_kind {
	CN_ACT_SEND = 0,
	CN_ACT_RECV = 1,
	CN_ACT_COPY = 2,   /* between ranks of this node */
	CN_ACT_WAIT = 3,   /* IN_TURN: the sends after it in the list, of which there is one at
			    * least, do not start before the action that it depends on
			    * (CN_DEP_COMPLETE) is complete */
	CN_ACT_REDUCE = 4, /* src combined with `right` into dst, all three of one rank of this
			    * node; dst may be one of the two */
};

/*
 * The rank that has the memory of a CN_ACT_REDUCE does the arithmetic, whole elements at a time;
 * its REDUCE actions follow one another in list order. Memory that was sent is immutable, as it may
 * be retransmitted.
 */

/*
 * A synchronisation is an empty message without a buffer (CN_BUF_NONE, len 0): a SEND after the
 * message that it follows, a RECV, and a WAIT for that before the message that it delays.
 */

enum cn_dep {
	CN_DEP_NONE = 0,
	CN_DEP_COMPLETE = 1, /* the other action must be complete before this one starts */
	CN_DEP_STREAM = 2,   /* this action may use the bytes that the other one has done so far */
};

enum cn_buffer {
	CN_BUF_NONE = 0, /* no data (barrier) */
	CN_BUF_SEND = 1,
	CN_BUF_RECV = 2,
	CN_BUF_DIGEST = 3,  /* no rank's: the 8 bytes of `offset` itself */
	CN_BUF_SCRATCH = 4, /* reductions: memory for what is combined */
};

#define CN_OFFSET_UNKNOWN UINT64_MAX

/* A buffer reference: a range of a rank's buffer. */
struct cn_span {
	enum cn_buffer buffer;
	uint32_t rank;
	uint64_t offset;
};

static inline bool cn_span_same(const struct cn_span *a, const struct cn_span *b)
{
	return a->buffer == b->buffer && a->rank == b->rank && a->offset == b->offset;
}

/*
 * Messages of blocks of any size. Both nodes list the blocks from one to the other in the same
 * order, each by what its own ranks know. Blocks of no bytes are left out. Where there can be more
 * than one block, a message of 8 bytes precedes them, a digest of all their sizes, which the
 * receiver compares with its own: without it, frames of unequal blocks might fit by chance. Where
 * there is one block, the frames tell its size, and if it has no bytes, one empty frame does.
 * So a node receives something from every node with which it must agree.
 */

struct cn_action {
	enum cn_action_kind kind;
	enum cn_dep dep;
	uint32_t dep_on; /* index of an earlier action */
	uint32_t peer;	 /* node of the team, 0 .. nnodes - 1; itself for a copy */
	uint32_t phase;	 /* step of the algorithm, from 0 */
	uint32_t after;	 /* REDUCE: another action that must be complete; its own index: none */
	struct cn_span src, dst, right; /* right: of REDUCE, the right operand; src is the left */
	uint64_t len;			/* bytes; a message of 0 bytes is one empty frame */
};

struct cn_sched {
	enum cn_order order;
	uint32_t phases;
	uint32_t n, cap;
	uint32_t most;		 /* actions that a planner may add; 0: as many as any team needs */
	const atomic_bool *stop; /* true: cancelled, planning fails; NULL: never */
	struct cn_action *actions;
};

/*
 * A team as a planner sees it. Nodes are numbered so that those behind one switch follow one
 * another (the order of the topology): the ring goes by these numbers. Every node has a rank.
 */
struct cn_layout {
	uint32_t nranks, nnodes;
	const uint32_t *node_of;    /* [nranks] node of a rank */
	const uint32_t *first;	    /* [nnodes + 1] where a node's ranks begin in ranks[] */
	const uint32_t *ranks;	    /* [nranks] the ranks, node by node, ascending */
	const uint32_t *logical;    /* [nnodes] contention-aware number of a node (a permutation of
				     * 0 .. nnodes - 1), or NULL: the node's own number */
	const struct cn_tree *tree; /* the network of the nodes, node for node; NULL: not known */
	uint32_t headers; /* bytes per frame of the encapsulation, and of a tag; the same on all
			     nodes */
	uint64_t rate;	  /* bit/s of links whose rate the tree does not know; 0: not known */
};

struct cn_plan {
	enum cn_op_kind op;
	enum cn_making making; /* no schedule depends on it */
	uint8_t algorithm;     /* id of a row of the registry, one of `op` */
	uint8_t permutation;   /* enum cn_permutation; AUTO: the algorithm's own choice */
	uint8_t contention_aware;
	uint64_t bytes;	  /* of one block; 0 in vector operations */
	uint32_t root;	  /* rank; bcast, scatter, gather, reduce */
	uint32_t element; /* reductions: bytes of an element, which is never divided; 0: one byte */
	uint16_t function;    /* reductions: what combines two elements; the same on all ranks */
	uint8_t user_defined; /* reductions: the function; only the choice depends on it */
	uint8_t ordered;      /* reductions: 1: only neighbours in the order of the ranks may be
			       * combined; 0: any two (the operation is commutative) */
	uint64_t segment;     /* bytes, for pipelined algorithms; 0: chosen by the cost model */
	/* Vector operations: what the planned node's ranks know, in the order of the layout. */
	const struct cn_blocks *blocks;
};

/* What an algorithm guarantees of its schedules besides the rules above; tools/plan/check.h proves
 * it. */
enum cn_guarantee {
	CN_GUARANTEE_LINKS =
		1, /* in a phase no directed link carries more messages than channels */
	CN_GUARANTEE_ORDERED =
		2, /* no two messages that share a link (and a channel) are unordered */
	CN_GUARANTEE_OPTIMAL = 4, /* its phases are the lower bound */
};

/* Frames that a node may have in flight, from the buffers of the network. */
enum cn_window_rule {
	CN_WINDOW_NONE = 0,
	CN_WINDOW_EXCHANGE = 1, /* Eq. 4: cn_topo_window() */
	CN_WINDOW_LINK = 2,	/* no link has two messages at a time: cn_topo_link_window() */
	CN_WINDOW_FAN_IN = 3,	/* many nodes send to one: cn_topo_fan_in() */
	CN_WINDOW_TWO_WAY = 4,	/* a link has one message each way, of a chain: LINK's, and half of
				 * it towards each node */
	CN_WINDOW_RULES = 5,
};

struct cn_network;
struct cn_prediction;

/* Generators (planners.h), and predictions of what they take (predict.h). */
typedef int cn_planner(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		       struct cn_sched *out, struct cn_err *err);
typedef void cn_predictor(const struct cn_network *n, struct cn_prediction *out);

/* A row of the registry: an algorithm of `op` and its vector variant. Ids are explicit, unique in
 * an operation, and never change: they go on the wire. */
struct cn_algorithm {
	uint8_t id; /* 1 .. CN_ALGORITHMS_MAX */
	enum cn_op_kind op;
	const char *name;
	const char *description;
	enum cn_window_rule window_rule; /* what the automatic global window is */
	bool needs_tree;		 /* plans only where the layout has a tree */
	bool baseline;			 /* for comparison: never chosen but by name */
	unsigned guarantees;		 /* enum cn_guarantee */
	bool permuted; /* it goes by a permutation and by the order of the nodes */
	enum cn_permutation permutation; /* permuted: what AUTO means; AUTO: cn_perm_resolve() */
	cn_planner *plan;
	cn_predictor *predict;
};
#define CN_ALGORITHMS_MAX 31 /* of an operation */

const struct cn_algorithm *cn_algorithms(size_t *count);
/* By name (NULL: the default of the operation); NULL: unknown. */
const struct cn_algorithm *cn_algorithm_find(enum cn_op_kind op, const char *name);
const struct cn_algorithm *cn_algorithm_by_id(enum cn_op_kind op, uint8_t id);
/* "shuffle, pairwise, ...": the names of an operation's algorithms, for messages. Returns out. */
const char *cn_algorithm_names(enum cn_op_kind op, char *out, size_t size);

/* What the algorithm guarantees on this network: phases for the exchange are as few as the bound
 * only where no link has several channels, which the paper does not know. */
unsigned cn_algorithm_guarantees(const struct cn_algorithm *a, const struct cn_layout *l);

/* Messages from one node to another are fragmented into frames together (coll/op_frames.c) if all
 * of them have at most this many bytes. On the wire. */
#define CN_STREAM_SHORT 65536u
/* Frames of an all-to-all that a node has for another one, at most; `payload`: bytes of a frame. */
uint64_t cn_frames_per_pair(const struct cn_layout *l, uint64_t bytes, uint64_t payload);
/*
 * The window of a node where many send to one, so that no port overflows; *senders:
 * how many nodes may send at a time. Where the network is not known, its ports are taken for small
 * ones.
 */
int cn_fan_in(const struct cn_layout *l, uint32_t *senders, uint32_t *window, struct cn_err *err);

/* Plans node `me`'s part. `out` must be zeroed or planned before; its storage is used again. */
int cn_sched_plan(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		  struct cn_sched *out, struct cn_err *err);
void cn_sched_reset(struct cn_sched *s); /* frees the storage */
/* Checks whether a schedule may have `more` further actions (for planners, before they begin). */
int cn_sched_check_room(const struct cn_sched *s, uint64_t more, struct cn_err *err);
/* Appends an action (for planners). COLLNET_ENOMEM, COLLNET_ELIMIT. */
int cn_sched_add(struct cn_sched *s, const struct cn_action *a, struct cn_err *err);

/*
 * Contention-aware numbering (Eq. 5), generalised to switches with unequal numbers of hosts: the
 * hosts of every switch are spread evenly over 0 .. n - 1, so that consecutive numbers lie behind
 * different switches. hosts[i] is the vertex of node i. For B equal switches of A hosts it is
 * exactly floor(id / A) + (id mod A) * B.
 */
int cn_number_nodes(const struct cn_topo *t, const uint32_t *hosts, uint32_t n, uint32_t *logical,
		    struct cn_err *err);

#endif
