/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of scatter and gather: Dimopoulos and Dimakopoulos, Theorem 1, on any tree.
 */
#ifndef CN_FURTHEST_H
#define CN_FURTHEST_H

#include "topo/tree.h"

/*
 * The nnodes - 1 nodes other than `root`, those most hops away first; those of one distance in the
 * preorder of the tree. Without a tree (NULL) all are equally far: by number. Linear.
 */
int cn_furthest_first(const struct cn_tree *t, uint32_t nnodes, uint32_t root, uint32_t *order,
		      struct cn_err *err);

#endif
