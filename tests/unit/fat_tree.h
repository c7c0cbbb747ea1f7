/* SPDX-License-Identifier: BSD-2-Clause */
/* Teams on binary fat trees of one rank per node, and their plans, for the tests test_fat_tree_*.
 */
#ifndef FAT_TREE_H
#define FAT_TREE_H

#include "sched/sched.h"
#include "packet_stepper.h"

#define FAT_TREE_LEVELS 10u /* 1,024 hosts */
void *fat_tree_alloc(size_t count, size_t size);

/* One rank per node. */
struct fat_tree {
	struct cn_topo *topo;
	struct cn_tree *tree;
	struct cn_layout layout;
	uint32_t *numbers; /* 0, 1, .. nhosts */
};

void fat_tree_layout(struct fat_tree *m);
struct fat_tree fat_tree_binary(uint32_t levels, const uint32_t *channels);
void fat_tree_done(struct fat_tree *m);
void fat_tree_plan(const struct fat_tree *m, enum cn_op_kind op, const char *name, uint32_t root,
		   uint32_t node, struct cn_sched *s);

/* Every node has received from every other one exactly once, and not from itself. */
void fat_tree_assert_all_received(const uint8_t *heard, uint32_t n);

#endif
