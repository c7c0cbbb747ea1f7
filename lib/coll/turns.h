/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns: rings whose members are served round robin, and one such ring per payer, with payers round
 * robin. A user with many teams therefore gets no more of the link, or of the time for copies, than
 * another one with one.
 */
#ifndef CN_TURNS_H
#define CN_TURNS_H

#include "util/util.h"

#define CN_TURN_PAYERS 64u /* by hash, with collisions; 0: the node itself */

/* A member's place in its ring. */
struct cn_turn {
	struct cn_turn *next, *prev; /* NULL: in none */
	void *owner;
	uint32_t payer; /* index of the ring, if it is one of struct cn_turns */
};

struct cn_turns {
	struct cn_turn *next[CN_TURN_PAYERS]; /* ring per payer; NULL: empty */
	uint64_t used;			      /* bit i: next[i] is not NULL */
	uint32_t payer;			      /* whose turn it is, or was last */
};

/* Adds a member to the ring in which *next is next (NULL: it is empty), as the last, unless it is
 * in it; removes it, if it is. */
void cn_turn_enter(struct cn_turn **next, struct cn_turn *x, void *owner);
void cn_turn_leave(struct cn_turn **next, struct cn_turn *x);

/* The index of a payer's ring. */
uint32_t cn_turn_of(uint64_t payer);
/* The same for the ring of x->payer. */
void cn_turns_enter(struct cn_turns *s, struct cn_turn *x, void *owner);
void cn_turns_leave(struct cn_turns *s, struct cn_turn *x);
/* The next payer with a ring, which may be this one. Not all are empty. */
uint32_t cn_turns_following(const struct cn_turns *s, uint32_t payer);
/* The member was served: its turn, and its payer's, is over. */
void cn_turns_served(struct cn_turns *s, const struct cn_turn *x);

#endif
