/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to the checker (check.h): what it keeps of every schedule, and its parts.
 *
 * A message is two records, one from either side's list, of 24 bytes each; the places of its data
 * are a hash there, for both sides must only agree on them: that they are the right ones is seen
 * while the receiver's schedule is at hand (check_data.c). A number of 4 bytes joins them.
 *
 * Consecutive data messages of a sender to one node in one phase, the blocks of its ranks, are
 * one use of a link; the first of them stands for all.
 */
#ifndef CN_CHECK_PARTS_H
#define CN_CHECK_PARTS_H

#include "tools/plan/check.h"

#define CN_CHECK_NONE UINT32_MAX
#define CN_CHECK_NAME 96u  /* of a node or a link, cut */
#define CN_CHECK_PAIR 208u /* "h3 -> h9", cut */

struct cn_check_sent {
	uint64_t hash; /* of the places */
	uint64_t len;
	uint32_t phase;
	unsigned to : 28;
	unsigned data : 1;   /* not a synchronisation */
	unsigned first : 1;  /* data that begins a use of links */
	unsigned before : 1; /* its receiver needs what the sender knew when it began ... */
	unsigned after : 1;  /* ... when it was sent */
};

struct cn_check_recv {
	uint64_t hash;
	uint64_t len;
	uint32_t phase;
	unsigned from : 28;
	unsigned data : 1;
	unsigned before : 1;
	unsigned after : 1;
};

/* What a node does, in its order: a kind, and for the last two the number of a receive. */
enum cn_check_step {
	CN_CHECK_SEND = 0,   /* the next message of the list */
	CN_CHECK_WAIT = 1,   /* until the receive is complete */
	CN_CHECK_STREAM = 2, /* the send that follows goes as the receive comes */
};
#define CN_CHECK_SHIFT 30
#define CN_CHECK_INDEX ((1u << CN_CHECK_SHIFT) - 1)

struct cn_check_node {
	struct cn_check_sent *sent;
	struct cn_check_recv *recv;
	uint32_t *steps;
	uint32_t nsent, nrecv, nsteps;
	bool added, in_turn;
	/* Reductions: a copy of the schedule's. */
	struct cn_action *actions;
	uint32_t nactions;
};

/* A piece of a receive buffer that an action fills. */
struct cn_check_fragment {
	uint64_t offset;
	uint32_t action;
	uint32_t local; /* which of the node's ranks */
};

/* What the checker knows of an action while it reads a node's schedule. */
struct cn_check_ready {
	uint32_t recv;	   /* number of the receive that it hangs on; CN_CHECK_NONE */
	unsigned mode : 2; /* enum cn_dep */
	unsigned done : 1; /* a copy that is complete before the sends that follow */
};

struct cn_check {
	const struct cn_layout *l;
	struct cn_plan plan;
	uint32_t *local; /* [nranks] which of its node's ranks it is */
	struct cn_check_node *nodes;
	uint32_t nadded;
	uint64_t nsent, nrecv;
	/* For the node that is being added; kept for the next. */
	struct cn_check_fragment *pieces, *unsorted;
	struct cn_check_ready *ready;
	uint32_t *ordinal; /* of a receive among those of its peer, from 1 */
	uint32_t *start;   /* pieces of the node's k-th rank */
	uint32_t *counts;  /* [nnodes] */
	uint32_t *known;   /* [nnodes] ordinal of the last receive that is known to be complete */
	uint32_t nfragments_cap, nready_cap, nordinal_cap, nstart_cap;
	/* The first violation of its kind that was seen while adding; code 0: none. */
	struct cn_err wrong_data, stuck, backwards;
	/* Made by cn_check_run(). */
	uint32_t *base;	 /* [nnodes + 1] number of a node's first message of all */
	uint32_t *rbase; /* [nnodes + 1] and of its first receive */
	uint32_t *match; /* [nrecv] the message that a receive takes */
	uint32_t *uses;	 /* [nuses] messages that begin a use of links, by phase */
	uint32_t nuses;
	uint32_t *users; /* [2 tree->n] uses of a directed link; NULL without a tree */
	bool shared;	 /* by different senders: one link at least */
};

/* Names for messages: "h3", "h3 -> h9"; `text` of CN_CHECK_NAME and CN_CHECK_PAIR bytes. */
const char *cn_check_name(const struct cn_check *c, uint32_t node, char *text);
const char *cn_check_pair(const struct cn_check *c, uint32_t from, uint32_t to, char *text);
/* Who sends message number g of all. */
uint32_t cn_check_sender(const struct cn_check *c, uint32_t g);
/* The last message of the use that message i of a node begins; *bytes: of them all. */
uint32_t cn_check_use_end(const struct cn_check_node *n, uint32_t i, uint64_t *bytes);
/* Bytes of a rank's receive buffer. */
uint64_t cn_check_recv_size(const struct cn_check *c, uint32_t rank);

/* Reads what a node's actions move; fills in c->wrong_data and the node's steps. check_data.c */
int cn_check_data(struct cn_check *c, uint32_t node, const struct cn_sched *s, struct cn_err *err);
/* A send of the node waits for a receive: c->stuck takes that if the order is INTERLEAVED. */
void cn_check_waits(struct cn_check *c, uint32_t node, const struct cn_sched *s);
/* The same for a reduction: the steps, and a copy of the actions. check_reduce.c */
int cn_check_reduce_steps(struct cn_check *c, uint32_t node, const struct cn_sched *s,
			  struct cn_err *err);
/* Carries all actions of a reduction out on symbols; `wrong` takes the first fault. After matching.
 */
int cn_check_reduce(struct cn_check *c, struct cn_err *wrong, struct cn_err *err);
/* Counts uses of links phase by phase; `broken` takes the first violation. check_links.c */
int cn_check_links(struct cn_check *c, unsigned guarantees, struct cn_check_report *out,
		   struct cn_err *broken, struct cn_err *err);
/* Fills in c->match and the messages waited for; `broken` takes a difference. check_match.c */
int cn_check_match(struct cn_check *c, struct cn_err *broken, struct cn_err *err);
/*
 * Lets all nodes take their steps, phase by phase, with their vector clocks. `stuck` takes that
 * nothing goes on, or the barrier does not hold; `late` a phase that waits for a later one, and
 * `unordered` the first users of a link without an order. check_order.c
 */
int cn_check_order(struct cn_check *c, struct cn_check_report *out, struct cn_err *stuck,
		   struct cn_err *late, struct cn_err *unordered, struct cn_err *err);

#endif
