/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rounds of doubling, after which each of `parts` has the data of all: senders, receivers and data.
 * In round k a part sends 2^k parts' data, its own and what it has received, so that there are
 * cn_log2_up(parts) rounds. With a power of two of parts, those whose numbers differ in bit k
 * exchange what they have (recursive doubling); else a part sends to the one 2^k places before it
 * and receives from the one 2^k places behind it (Bruck and others), in the last round only what is
 * missing there.
 */
#ifndef CN_DOUBLING_H
#define CN_DOUBLING_H

#include "sched/sched.h"

struct cn_doubling {
	uint32_t from, to;
	uint32_t first, count; /* the data of parts first, first + 1, .. modulo parts */
};

/* The message that a part sends in a round, and the one it receives. */
struct cn_doubling cn_doubling_send(uint32_t parts, uint32_t round, uint32_t part);
struct cn_doubling cn_doubling_receive(uint32_t parts, uint32_t round, uint32_t part);

/* The ranks of a message whose parts are nodes, ascending, to ranks[]; returns how many. */
uint32_t cn_doubling_ranks(const struct cn_layout *l, const struct cn_doubling *m, uint32_t *ranks);
/* The number of consecutive ranks in ranks[at], ranks[at + 1], .. up to ranks[n - 1]. */
uint32_t cn_doubling_run(const uint32_t *ranks, uint32_t n, uint32_t at);

#endif
