/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcast by a binomial tree of the node numbers, relative to the root's: the baseline. Its
 * phases are its rounds, with the widest distance first; it knows nothing of the network, so that
 * messages of one round may share links. The message goes in one piece unless a segment is given.
 */
#include <stdlib.h>

#include "sched/bcast/bcast.h"

int cn_bcast_binomial(const struct cn_layout *l, uint32_t root, uint64_t bytes, uint64_t segment,
		      const struct cn_cost *c, struct cn_bcast *out, struct cn_err *err)
{
	uint32_t n = l->nnodes, rounds = cn_log2_up(n), count = 0, *seq;
	int rc = cn_bcast_init(out, n, root, err);

	if (rc) {
		return rc;
	}
	seq = malloc((size_t)n * sizeof(*seq));
	rc = seq == NULL ? cn_fail(err, COLLNET_ENOMEM, "no memory for a tree of %u nodes", n) : rc;
	/* In round r the nodes whose distance from the root is a multiple of 2 d send on by d. */
	for (uint32_t r = 0; !rc && r < rounds; r++) {
		uint32_t d = (uint32_t)1 << (rounds - 1 - r);

		for (uint32_t x = d; x < n; x += 2 * d) {
			uint32_t v = (root + x) % n;

			out->parent[v] = (root + x - d) % n;
			out->offset[v] = r;
			seq[count++] = v;
		}
	}
	if (!rc) {
		rc = cn_bcast_arrange(out, seq, err);
	}
	free(seq);
	if (!rc) {
		rc = cn_bcast_segment(out, bytes, segment, err);
	}
	out->phased = true;
	out->period = rounds;
	out->phases = rounds * out->segments;
	if (!rc && l->tree != NULL) {
		rc = cn_bcast_time(out, l->tree, c, err);
	}
	if (rc) {
		cn_bcast_done(out);
	}
	return rc;
}

int cn_plan_bcast_binomial(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			   struct cn_sched *out, struct cn_err *err)
{
	return cn_bcast_plan(cn_bcast_binomial, l, p, me, out, err);
}
