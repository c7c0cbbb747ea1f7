/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses that sent hellos and are not validated: they have not echoed a nonce.
 *
 * Such an address has no entry in the node table, causes no upcall and no line in the log. As with
 * SYN cookies, its nonce follows from the key and the address, so no state is needed until it is
 * echoed. The state in this cache of fixed size only limits and delays the hellos to it: replacing
 * an entry loses at most one hello, which the next one from that address triggers again.
 */
#ifndef CN_UNVALIDATED_H
#define CN_UNVALIDATED_H

#include "proto/hello.h"
#include "util/heap.h"

struct cn_unvalidated {
	struct cn_timer timer; /* when its reply is due, or the entry expires */
	uint8_t mac[6];
	bool used;
	bool waits; /* the reply is delayed */
	bool due;   /* in the list of those to be replied to */
	uint64_t echo;
	cn_time last[CN_HELLO_LIMITED];
	struct cn_unvalidated *next;
};

/* Entries for a node of max_peers peers. */
uint32_t cn_unvalidated_slots(uint32_t max_peers);
/* Sends a hello after `wait`, or later if rate-limited. */
void cn_unvalidated_reply(struct cn_node *n, const uint8_t mac[6], enum cn_hello_why why,
			  uint64_t echo, cn_time wait);
/* The next address that a hello is due to; NULL: none. */
struct cn_unvalidated *cn_unvalidated_next(struct cn_node *n);
/* The address has become a peer. */
void cn_unvalidated_forget(struct cn_node *n, const uint8_t mac[6]);
/* Handles the timer if it is an entry's, and returns true. */
bool cn_unvalidated_expire(struct cn_node *n, struct cn_timer *t);

#endif
