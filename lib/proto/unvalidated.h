/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes that are heard and have not echoed a nonce: strangers (private to lib/proto).
 *
 * A stranger has no entry in the node table, causes no upcall and no line in the log. The nonce for
 * it follows from the key and its address, so that nothing has to be kept until it is echoed. What
 * is kept, in a cache of fixed size, only limits and delays the hellos that answer it: a slot that
 * is taken by another address loses at most one answer, and the next hello causes it again.
 */
#ifndef CN_UNVALIDATED_H
#define CN_UNVALIDATED_H

#include "util/heap.h"

struct cn_node;

/* Why a unicast hello is due. Each of the first two is limited to one in 20 ms for an address. */
enum cn_hello_why {
	CN_HELLO_BEGIN, /* a broadcast hello, or a frame of an unknown session */
	CN_HELLO_REPLY, /* a unicast hello that does not echo our nonce */
	CN_HELLO_PROOF, /* one that does, for the first time: not limited */
};
#define CN_HELLO_LIMITED 2

struct cn_unvalidated {
	struct cn_timer timer; /* when its answer is due; or the slot is free again */
	uint8_t mac[6];
	bool used, waits, due; /* answer delayed; in the list of those to be answered */
	uint64_t echo;
	cn_time last[CN_HELLO_LIMITED];
	struct cn_unvalidated *next;
};

/* How many a node of so many peers remembers. */
uint32_t cn_unvalidated_slots(uint32_t max_peers);
/* An answer is due, not too often; after `wait`. */
void cn_unvalidated_answer(struct cn_node *n, const uint8_t mac[6], enum cn_hello_why why,
			   uint64_t echo, cn_time wait);
/* The next that is to be answered; NULL: none. */
struct cn_unvalidated *cn_unvalidated_next(struct cn_node *n);
/* It has become a peer. */
void cn_unvalidated_forget(struct cn_node *n, const uint8_t mac[6]);
/* Whether this timer is a stranger's; if so, what is due is done. */
bool cn_unvalidated_expire(struct cn_node *n, struct cn_timer *t);

#endif
