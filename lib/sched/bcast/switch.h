/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broadcast between switches of Sun, Bader, Lin and Ling, on the graph of a network, cycles
 * included: shortest paths from the source's switch (Dijkstra), and of them the tree of the
 * working switches, those that have members of the team. Its heuristics are in relay.h.
 */
#ifndef CN_BCAST_SWITCH_H
#define CN_BCAST_SWITCH_H

#include "topo/topo.h"

struct cn_bswitch {
	const struct cn_topo *topo;
	bool tree_only;		/* only links of the spanning tree */
	const uint64_t *weight; /* [nlinks] nanoseconds of the message on the link */
	const bool *working;	/* [nvertices] switches that have members */
};

/* Shortest paths from a switch over switches. */
struct cn_bswitch_paths {
	uint64_t *dist;	 /* [nvertices] UINT64_MAX: not reached */
	uint32_t *via;	 /* [nvertices] last link of the path; CN_TOPO_NONE: source, not reached */
	uint32_t *order; /* [reached] nearest first */
	uint32_t reached;
};

int cn_bswitch_shortest(const struct cn_bswitch *s, uint32_t source, struct cn_bswitch_paths *out,
			struct cn_err *err);
void cn_bswitch_paths_done(struct cn_bswitch_paths *p);
/* above[v] (of nvertices): the last working switch, or the source, on the path before v. */
void cn_bswitch_above(const struct cn_bswitch *s, const struct cn_bswitch_paths *p,
		      uint32_t *above);
/* The vertex at the other end of a link. */
uint32_t cn_bswitch_across(const struct cn_topo *t, uint32_t link, uint32_t v);

/* Modelled times of a broadcast among the working switches, one message, nanoseconds. */
struct cn_bswitch_times {
	uint32_t working;    /* switches */
	uint32_t reparented; /* children that up-to-down gave to another sender */
	uint64_t shortest;   /* the shortest-path tree, children in the order of the file */
	uint64_t down_up;    /* in down-to-up order */
	uint64_t final;	     /* and after up-to-down */
	uint64_t binomial;   /* by the working switches' numbers, links being free */
};

/*
 * startup[nvertices]: nanoseconds a switch's leader needs to begin a message. A message between
 * two working switches takes the shortest path and costs its sender start-up and path.
 * COLLNET_ELIMIT: too many switches for a table of all paths.
 */
int cn_bswitch_broadcast(const struct cn_bswitch *s, const uint64_t *startup, uint32_t source,
			 struct cn_bswitch_times *out, struct cn_err *err);

#endif
