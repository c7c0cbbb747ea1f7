/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/sched: messages on the directed links of a tree, for predictions. */
#ifndef CN_LOAD_H
#define CN_LOAD_H

#include "topo/tree.h"

struct cn_load {
	const struct cn_tree *t;
	uint32_t *nodes;    /* of the parts that send and receive */
	uint32_t *messages; /* [2 * t->n] by directed link */
	uint32_t *path;
};

/* Nodes 0 .. n - 1 in this order, for cn_load_begin(). NULL: no memory. */
uint32_t *cn_load_by_number(uint32_t n);
/* Takes ownership of the nodes (NULL: no memory). False: no memory; cn_load_end() must be called in
 * any case. */
bool cn_load_begin(struct cn_load *x, const struct cn_tree *t, uint32_t *nodes);
void cn_load_end(struct cn_load *x);
/* A message from one part to another. Returns the links of its path, which are in x->path. */
uint32_t cn_load_add(struct cn_load *x, uint32_t from, uint32_t to);
/* Clears all messages. */
void cn_load_clear(struct cn_load *x);
/* Messages in sequence on a directed link, with its channels in parallel. */
uint32_t cn_load_turns(const struct cn_load *x, uint32_t link);
/* Of a directed link, bit/s. */
uint64_t cn_load_rate(const struct cn_load *x, uint32_t link);

#endif
