/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-to-all personalised communication on a tree of switches, in phases without contention and as
 * few as the most loaded link allows: Faraj and Yuan, "Message Scheduling for All-to-All
 * Personalized Communication on Ethernet Switched Clusters", section 4.
 *
 * The tree is rooted at a switch none of whose k subtrees t_0 .. t_(k-1) has more than half of the
 * n hosts (section 4.1). Subtrees are sorted by their hosts, |M_0| first; of equal ones the first
 * of the tree goes first; a subtree may be a single host. The hosts of t_i, in the order of the
 * tree, are t_(i,0), t_(i,1) ..: their places are first[i], first[i] + 1 .., and all of this file
 * speaks of places. There are |M_0| (n - |M_0|) phases.
 *
 * Messages from t_i to t_j have consecutive phases, a group (extended ring scheduling, 4.2). Groups
 * out of a subtree never overlap, nor do groups into one; beside them a subtree has at most one
 * local message a phase, which shares no link with either global one (Lemma 3). Everything is in
 * closed form: nothing is ever built for all messages.
 *
 * What the paper leaves open or says twice, and what is done here:
 *  - Step 3 ends at phase |M_0| (|M_0| - 1) - 1: Figure 4 says "to phase |M_0| (|M_0| - 1)", the
 *    text says "in the first |M_0| (|M_0| - 1) phases".
 *  - Step 1 wants the rotate pattern for the senders and receivers that begin at (p - phases) mod
 *    |M_j|, not at t_(j,0): every pair still meets exactly once, since a constant added to the
 *    receivers only permutes which rotation brings which pair.
 *  - Step 5 has several phases to choose from where |M_(i-1)| > |M_i|: the first one is taken.
 *  - Step 6 takes the broadcast pattern, as Table 4 does.
 *  - The root: where a link halves the hosts, more than one switch will do. Of those with three
 *    branches or more (the paper's "nodal degree larger than 2") the one with the fewest is taken,
 *    for long groups, and then the first of the topology: s1 in Figure 1, where s0 would do as
 *    well. Two hosts have no such switch, and take one between them.
 *
 * The paper takes all links to be equal. Where they are not, the phases are as valid, and as many:
 * they are the bound for hosts, not for rates or channels.
 */
#ifndef CN_AAPC_H
#define CN_AAPC_H

#include "topo/tree.h"

struct cn_aapc_rotation {
	uint32_t gcd, lcm; /* of |M_0| and |M_j| */
	uint32_t inverse;  /* of |M_0| / gcd, modulo |M_j| / gcd */
};

struct cn_aapc {
	struct cn_tree *tree; /* the team's, rooted as section 4.1 wants it */
	uint32_t n, k, phases;
	uint32_t *first;   /* [k + 1] first place of a subtree */
	uint32_t *top;	   /* [k] index in the tree of a subtree's uppermost vertex */
	uint32_t *node;	   /* [n] by place: node of the team */
	uint32_t *place;   /* [n] by node */
	uint32_t *subtree; /* [n] by place */
	uint32_t *lowest;  /* [tree->n] first place at or below a vertex; they are consecutive */
	struct cn_aapc_rotation *rotation; /* [k] of t_0 -> t_j */
};

/* A message: places, and its phase. A node sends at most one a phase. */
struct cn_aapc_message {
	uint32_t phase, from, to;
};

/*
 * For the hosts of a tree, wherever that one is rooted: the topology's tree and the order of nodes
 * decide, so that all nodes get the same. COLLNET_ELIMIT: more phases than 2^32 - 2.
 */
int cn_aapc_new(const struct cn_tree *tree, struct cn_aapc **out, struct cn_err *err);
void cn_aapc_free(struct cn_aapc *a); /* NULL is ignored */
/* The root of section 4.1, a vertex of the topology. CN_TOPO_NONE: fewer than two hosts. */
uint32_t cn_aapc_root(const struct cn_tree *tree);

static inline uint32_t cn_aapc_size(const struct cn_aapc *a, uint32_t i)
{
	return a->first[i + 1] - a->first[i];
}

/* First phase of t_i -> t_j, i != j (4.2); it has |M_i| |M_j| phases. */
uint32_t cn_aapc_start(const struct cn_aapc *a, uint32_t i, uint32_t j);
/* The message of t_i -> t_j at a phase of theirs. */
struct cn_aapc_message cn_aapc_global(const struct cn_aapc *a, uint32_t i, uint32_t j,
				      uint32_t phase);
/* The subtree that t_i sends to at a phase; that sends to it. CN_TOPO_NONE: none. */
uint32_t cn_aapc_target(const struct cn_aapc *a, uint32_t i, uint32_t phase);
uint32_t cn_aapc_source(const struct cn_aapc *a, uint32_t j, uint32_t phase);
/* The message within t_i at a phase. False: there is none. */
bool cn_aapc_local(const struct cn_aapc *a, uint32_t i, uint32_t phase,
		   struct cn_aapc_message *out);
/* The message between two places, from != to: its phase. */
struct cn_aapc_message cn_aapc_between(const struct cn_aapc *a, uint32_t from, uint32_t to);

/* ---- for lib/sched: the patterns ---------------------------------------------------------- */

/* Sender at step r of the rotate pattern between mi senders and any number with that lcm. */
uint32_t cn_aapc_rotate(uint32_t mi, uint32_t lcm, uint32_t r);
/* Table 3: the receiver in t_0 while `sender` of t_0 sends in a round. */
uint32_t cn_aapc_mapped(uint32_t m0, uint32_t round, uint32_t sender);
/* Where t_0's senders begin in a round of |M_0| phases: the sender of its phase e is
 * (e + that) mod |M_0|. */
uint32_t cn_aapc_turn(const struct cn_aapc *a, uint32_t round);
/* The latest group (place in the order of groups, from 0) out of t_i that has begun by a phase. */
uint32_t cn_aapc_group_out(const struct cn_aapc *a, uint32_t i, uint32_t phase);
/* The same of groups into t_j. */
uint32_t cn_aapc_group_in(const struct cn_aapc *a, uint32_t j, uint32_t phase);

/* Groups out of t_i go to t_(i+1), t_(i+2) ..; groups into t_j come from t_(j-1), t_(j-2) .. */
static inline uint32_t cn_aapc_nth_target(const struct cn_aapc *a, uint32_t i, uint32_t nth)
{
	return i + 1 + nth < a->k ? i + 1 + nth : i + 1 + nth - a->k;
}

static inline uint32_t cn_aapc_nth_source(const struct cn_aapc *a, uint32_t j, uint32_t nth)
{
	return j >= 1 + nth ? j - 1 - nth : j + a->k - 1 - nth;
}

/* (phase - phases) mod m: where step 1 and step 4 align their receivers. */
static inline uint32_t cn_aapc_aligned(const struct cn_aapc *a, uint32_t m, uint32_t phase)
{
	uint32_t left = (a->phases - phase) % m;

	return left == 0 ? 0 : m - left;
}

/* ---- synchronisations (aapc_sync.c, aapc_close.c, aapc_users.c) -------------------------- */

/*
 * Section 5: a message that shares a link with earlier ones starts after them. On every directed
 * link its users form a chain by phase, so all that matters is the user just before; and of these
 * an edge is redundant if another way leads from its first message to its second, over messages
 * that share links and over the sends of one sender, which follow one another anyway. What is left
 * is the transitive reduction; an edge of it between messages of different senders is a
 * synchronisation: an empty message from the first one's sender to the second one's.
 *
 * Both ends decide by the same search, which looks at no more than `effort` messages an edge; an
 * edge that it cannot decide within that is kept, at both ends (tests/unit shows that this does not
 * happen on networks that are built).
 */
struct cn_aapc_sync;

#define CN_AAPC_EFFORT 20000u

int cn_aapc_sync_new(const struct cn_aapc *a, uint32_t effort, struct cn_aapc_sync **out,
		     struct cn_err *err);
void cn_aapc_sync_free(struct cn_aapc_sync *s); /* NULL is ignored */

/*
 * The messages of other senders that the message m must wait for, latest first; and those of other
 * senders that wait for m. list[] is the synchroniser's own, until the next call.
 */
int cn_aapc_before(struct cn_aapc_sync *s, const struct cn_aapc_message *m,
		   const struct cn_aapc_message **list, uint32_t *n, struct cn_err *err);
int cn_aapc_after(struct cn_aapc_sync *s, const struct cn_aapc_message *m,
		  const struct cn_aapc_message **list, uint32_t *n, struct cn_err *err);

/*
 * Operations follow one another, and their messages are to be as ordered as those of one. On every
 * directed link the first user of the next operation must come after the last one of this: so the
 * sender of the last tells the sender of the first, which is the same in every operation, right
 * after that message. Nobody waits for this within the operation; but an operation is complete on a
 * node only when all has come, and the node begins no other one before. Of the messages of one
 * sender the latest is enough; and what is known anyway, by data that comes and by messages that
 * share links, is left out. (So it may be where the same is told by a synchronisation from above.)
 */
struct cn_aapc_closing {
	struct cn_aapc_message last; /* its sender tells, after it ... */
	uint32_t to;		     /* ... this place; never itself */
};

/* Those that the place `me` sends or receives; both ends get the same. *out is the caller's. */
int cn_aapc_closing(const struct cn_aapc *a, uint32_t me, struct cn_aapc_closing **out, uint32_t *n,
		    struct cn_err *err);

static inline bool cn_aapc_is_local(const struct cn_aapc *a, const struct cn_aapc_message *m)
{
	return a->subtree[m->from] == a->subtree[m->to];
}

/*
 * What a message uses of one subtree: all links from `from` up to the one above vertex `up`, and
 * from the one above `down` down to `to`. NONE: no such links.
 */
struct cn_aapc_route {
	uint32_t subtree, from, to; /* vertices */
	uint32_t up, down;
};

struct cn_aapc_route cn_aapc_local_route(const struct cn_aapc *a, const struct cn_aapc_message *m);
/* True if two messages share a directed link. */
bool cn_aapc_share(const struct cn_aapc *a, const struct cn_aapc_message *x,
		   const struct cn_aapc_message *y);

enum cn_aapc_kind {
	CN_AAPC_ANY = 0,
	CN_AAPC_GLOBAL = 1, /* between subtrees */
	CN_AAPC_LOCAL = 2,  /* within one */
};

/*
 * The user of a directed link of a->tree next to a phase: the latest before it, or the first after
 * (CN_TOPO_NONE: the first of all). False: there is none of that kind.
 */
bool cn_aapc_user(const struct cn_aapc *a, uint32_t dlink, uint32_t phase, bool before,
		  enum cn_aapc_kind kind, struct cn_aapc_message *out);
/* The phase of the latest local user before a phase; CN_TOPO_NONE: there is none. */
uint32_t cn_aapc_local_before(const struct cn_aapc *a, uint32_t dlink, uint32_t phase);

#endif
