/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two heuristics of Sun, Bader, Lin and Ling ("Broadcast on Clusters of SMPs with Optimal
 * Concurrency") on any tree of endpoints that hand on a message, one at a time each. The endpoints
 * are the working switches of a network, or the hosts of a team.
 *
 * The tree is a tree of messages; its messages follow the routes of a network underneath, whose
 * links have channels. Neither heuristic ever makes the modelled time longer.
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
	uint32_t segments;   /* pipelined, each of the cost above */
};

struct cn_relay {
	uint32_t n, root;
	struct cn_relay_net net;
	uint32_t *parent;	/* UINT32_MAX: the root, or not yet put */
	uint32_t *first, *next; /* children, in the order in which they are served */
	uint32_t *order;	/* parents before their children */
	/* By endpoint: of the message to it; when it starts and has come; the time to serve all
	 * children once; the longest of that on its way; w(p), from its having the first segment to
	 * everyone's below having all. */
	uint64_t *busy, *total, *start, *ready, *cycle, *pace, *rest;
	uint64_t finish;   /* when the last one has all segments */
	uint64_t sum;	   /* of ready[] */
	uint64_t budget;   /* steps that up-to-down may still take */
	uint32_t *scratch; /* [n] */
	/* Messages (their receivers) of directed link d: users[use[d]] .. users[use[d + 1] - 1] */
	uint32_t *use, *users;
	uint32_t *path;	  /* [longest] */
	uint64_t *sorted; /* [2 n] */
};

int cn_relay_init(struct cn_relay *r, uint32_t n, uint32_t root, const struct cn_relay_net *net,
		  struct cn_err *err);
void cn_relay_done(struct cn_relay *r);
/* Endpoint v receives from `parent`, as its last child; it may have had another parent. */
void cn_relay_put(struct cn_relay *r, uint32_t v, uint32_t parent);
/* Asks for the costs of all messages again (another segment). */
void cn_relay_reprice(struct cn_relay *r);

/* Times with the children as they are. */
void cn_relay_time(struct cn_relay *r);
/*
 * Down-to-up (Figure 2.1): children are served in the order of what remains below them, the
 * longest first, which is the best order that a tree can have; and times.
 */
void cn_relay_down_up(struct cn_relay *r);
/*
 * Up-to-down (Figures 2.2 and 2.3): breadth-first, then depth-first, the later children of a node
 * are given to another holder of the message where the whole ends earlier, or as early with earlier
 * arrivals in sum, and no link carries more paths at a time than it has channels. Begins and ends
 * in down-to-up order. *reparented (may be NULL): children that changed hands.
 */
int cn_relay_up_down(struct cn_relay *r, uint32_t *reparented, struct cn_err *err);
/* How many messages begin on a link while all its channels are taken, by the times as they are. */
int cn_relay_crowded(struct cn_relay *r, uint64_t *pairs, struct cn_err *err);

#endif
