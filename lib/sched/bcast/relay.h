/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two heuristics of Sun, Bader, Lin and Ling ("Broadcast on Clusters of SMPs with Optimal
 * Concurrency") on any tree of endpoints that forward a message, each to one child at a time. The
 * endpoints are the switches of a network that have hosts of the team, or these hosts.
 *
 * The tree is a tree of messages; its messages follow the routes of a network underneath, whose
 * links have channels. Neither heuristic ever increases the modelled time.
 */
#ifndef CN_BCAST_RELAY_H
#define CN_BCAST_RELAY_H

#include "util/util.h"

/* What messages cost and where they go. Times in nanoseconds. */
struct cn_relay_net {
	const void *ctx;
	/* How long the sender is busy, and when it has arrived, counted from its start. */
	void (*cost)(const void *ctx, uint32_t from, uint32_t to, uint64_t *busy, uint64_t *total);
	/* The directed links of its route; their number, at most `longest`. */
	uint32_t (*path)(const void *ctx, uint32_t from, uint32_t to, uint32_t *links);
	uint32_t (*channels)(const void *ctx, uint32_t link);
	uint32_t nlinks, longest;
	const bool *movable; /* [n] whose sender up-to-down may change; NULL: all */
	uint32_t segments;   /* of the message, pipelined; cost() is that of one */
};

struct cn_relay {
	uint32_t n, root;
	struct cn_relay_net net;
	uint32_t *parent;	/* UINT32_MAX: the root, or not yet attached */
	uint32_t *first, *next; /* children, in the order in which they are served */
	uint32_t *order;	/* parents before their children */
	/* Per endpoint [n], nanoseconds; start and ready are those of the first segment. */
	uint64_t *busy, *total; /* cost() of the message to it */
	uint64_t *start;	/* its parent begins to send to it */
	uint64_t *ready;	/* it has received */
	uint64_t *cycle;	/* it sends one segment to each of its children */
	uint64_t *interval;	/* between segments that arrive: the longest cycle above it */
	uint64_t *remaining;	/* w(p) of the paper: from ready until all below have the message */
	uint64_t *waited;	/* sum of ready[] of all below, counted from its own ready */
	uint64_t finish;	/* when the last one has all segments */
	uint64_t sum;		/* of ready[] */
	uint64_t steps_left;	/* up-to-down stops when it has used them up */
	uint32_t *scratch;	/* [n] */
	uint32_t *size;		/* [n] endpoints at and below */
	/* Messages (their receivers) of directed link d: users[use[d]] .. users[use[d + 1] - 1] */
	uint32_t *use, *users;
	uint32_t *links;  /* [n] of the route of the message to it */
	uint32_t *path;	  /* [longest] scratch, then [longest] each: the routes */
	uint64_t *sorted; /* [2 n] */
};

int cn_relay_init(struct cn_relay *r, uint32_t n, uint32_t root, const struct cn_relay_net *net,
		  struct cn_err *err);
void cn_relay_done(struct cn_relay *r);
/* Makes v the last child of `parent`, and removes it from the parent that it had, if any. */
void cn_relay_attach(struct cn_relay *r, uint32_t v, uint32_t parent);
/* Calls cost() again for all messages: their length has changed. */
void cn_relay_reprice(struct cn_relay *r);

/* Computes the times; the order of the children stays. */
void cn_relay_time(struct cn_relay *r);
/*
 * Down-to-up (Figure 2.1): sorts the children of each endpoint by the time that remains below them,
 * the longest first, which is the best order for a given tree, and computes the times.
 */
void cn_relay_down_up(struct cn_relay *r);
/*
 * Up-to-down (Figures 2.2 and 2.3): breadth-first, then depth-first, the later children of a node
 * are moved to another endpoint that has the message, if the broadcast then ends earlier, or at the
 * same time with a smaller sum of arrival times, and there are no more conflicts than before. The
 * tree is in down-to-up order before and after. *reparented (may be NULL): children moved.
 */
int cn_relay_up_down(struct cn_relay *r, uint32_t *reparented, struct cn_err *err);
/* *conflicts: messages that begin on a link while all its channels are in use; by these times. */
int cn_relay_conflicts(struct cn_relay *r, uint64_t *conflicts, struct cn_err *err);

#endif
