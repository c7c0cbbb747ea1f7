/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which transport sends next: round robin over payers, and over the active transports of each, with
 * a quantum. A user with many teams therefore gets no more of the link than another one with one.
 * The node's own transport has turns like a payer's.
 */
#ifndef CN_TURNS_H
#define CN_TURNS_H

#include "proto/node.h"

struct cn_engine;
struct cn_transport;

#define CN_TURN_PAYERS 64u /* by hash, with collisions; 0: the node's own transport */

struct cn_turns {
	struct cn_transport *next[CN_TURN_PAYERS]; /* ring of transports per payer; NULL: empty */
	uint64_t used;				   /* bit i: next[i] is not NULL */
	uint32_t payer;				   /* the payer that sends next */
	uint32_t quantum_used;			   /* frames its next[] has sent in a row */
};

/* A transport's links in its ring. */
struct cn_turn {
	struct cn_transport *next, *prev;
	uint32_t payer; /* index of the ring */
};

/* The index of a payer's ring. */
uint32_t cn_turn_of(uint64_t payer);
/* Adds a transport that has become active; removes one that is active no longer. */
void cn_turns_enter(struct cn_turns *s, struct cn_transport *x);
void cn_turns_leave(struct cn_turns *s, struct cn_transport *x);
/* The next frame of any transport; false: there is none now. */
bool cn_turns_output(struct cn_engine *e, cn_time now, struct cn_frame *out);

#endif
