/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The total exchange of Dimopoulos and Dimakopoulos (Communications in Binary Fat Trees, section 5)
 * on any tree of switches, with any number of channels a link.
 *
 * As in the paper, the subtrees of a switch exchange all messages that cross it, then each subtree
 * does the same for itself, all in parallel. A switch's share takes
 *
 *     D = max over the links l below it of ceil(messages over l that cross the switch / channels)
 *
 * phases, which is the least possible for these messages. In a phase a node sends at most one
 * message and receives at most one, and a link carries at most as many as it has channels (a host's
 * counts as one channel), even when a message holds its whole path for the whole phase. How the
 * phases are filled:
 *  - ring: where D = n0 (N - n0), n0 being the largest of the subtrees and N their sum, one message
 *    at a time leaves a subtree and one enters it: extended ring scheduling (Faraj and Yuan),
 *    source by source. With two equal subtrees it is the paper's algorithm for constant capacities.
 *  - xor: two equal subtrees of 2^k hosts, all of which send at once: the paper's algorithm for
 *    exponential capacities.
 *  - windows: two subtrees, or several of one size, that exchange c messages at a time: c
 *    consecutive places of a diagonal walk through all pairs, over hosts so numbered that
 *    consecutive ones lie as far apart as the subtree allows. Used where it is seen to respect
 *    every link below and to need no more than D phases; this is so for regular trees.
 *  - colour: everything else, by colouring the messages (fattree_colour.c); exactly D.
 * Where colouring would need too much memory (CN_FATTREE_ENTRIES), the ring is used, and D is its.
 *
 * Where optimality stops: each switch's share is as short as it can be, but the shares of the
 * switches on a way down are not interleaved, so their sum is above the lower bound of the whole
 * operation: for binary trees with one channel by a third (see aapc, which interleaves them where
 * links have one channel), for one switch not at all, in deep unbalanced trees, such as chains, by
 * far more.
 */
#ifndef CN_FATTREE_H
#define CN_FATTREE_H

#include "topo/tree.h"

/* Vertices times phases that colouring one switch's messages may take; 4 bytes each. */
#define CN_FATTREE_ENTRIES ((uint64_t)1 << 24)
#define CN_FATTREE_NONE	   UINT32_MAX

enum cn_fattree_method {
	CN_FATTREE_NOTHING = 0, /* a host, or a switch that no message crosses */
	CN_FATTREE_RING = 1,
	CN_FATTREE_XOR = 2,
	CN_FATTREE_DIAGONAL = 3,
	CN_FATTREE_COLOUR = 4,
};

/* A switch's share. */
struct cn_fattree_share {
	enum cn_fattree_method method;
	uint32_t start, phases; /* of all phases; D */
	uint32_t window;	/* c; xor, windows */
	uint32_t *place;	/* windows: of a host, in preorder, in its subtree's numbering */
	uint32_t *colour;	/* colour: [hosts * hosts] of (from, to), made at first use */
};

struct cn_fattree {
	const struct cn_tree *t;	/* not owned, or `own` */
	struct cn_tree *own;		/* NULL: the caller's tree is used */
	uint32_t phases;		/* all of them */
	uint32_t *base;			/* [n] hosts before a vertex, in preorder */
	uint32_t *leaf;			/* [nhosts] the vertex of the k-th host in preorder */
	struct cn_fattree_share *share; /* [n] */
};

int cn_fattree_new(const struct cn_tree *t, struct cn_fattree **out, struct cn_err *err);
/* The same with the root that the paper's rule gives, on a tree of its own (fattree_root.c). */
int cn_fattree_rooted(const struct cn_tree *t, struct cn_fattree **out, struct cn_err *err);
void cn_fattree_free(struct cn_fattree *x); /* NULL is ignored */
/*
 * One node's part: the phases in which it sends to, and receives from, every node of the team;
 * CN_FATTREE_NONE for itself. Linear in the team, except where a share must be coloured.
 */
int cn_fattree_node(struct cn_fattree *x, uint32_t node, uint32_t *to, uint32_t *from,
		    struct cn_err *err);

/* ---- inside: fattree_diagonal.c, fattree_colour.c ----------------------------------------- */

/* Channels of the link above a vertex as the exchange counts them: a host sends one at a time. */
static inline uint32_t cn_fattree_cap(const struct cn_tree *t, uint32_t v)
{
	return t->v[v].node != CN_TOPO_NONE ? 1 : cn_tree_channels(t, 2 * v);
}

/*
 * Fills in method and window where the share of switch v can go by windows; false: it cannot.
 * seq[base[c] ..] is the numbering of child c's hosts, as leaves. `count` is [n] zeros.
 */
bool cn_fattree_diagonal(const struct cn_fattree *x, uint32_t v, const uint32_t *seq,
			 uint32_t *count);
/* The phase, within a round, of the message from place s of a to place d of b. */
uint32_t cn_fattree_window_phase(const struct cn_fattree_share *h, uint32_t a, uint32_t b,
				 uint32_t s, uint32_t d);
/* Colours switch v's messages with share[v].phases colours, into share[v].colour. */
int cn_fattree_colour(struct cn_fattree *x, uint32_t v, struct cn_err *err);

#endif
