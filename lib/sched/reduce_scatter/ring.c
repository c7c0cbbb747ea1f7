/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce-scatter round a ring of nodes: a chunk begins at the node after its owner's, and each node
 * combines it with the contributions of its ranks and passes it on, byte by byte as it comes; after
 * all steps but one it is complete at its owner. A node sends (P - 1) / P of a rank's send buffer,
 * the least possible. Contributions are combined in the order of the ring, which begins at another
 * node for each chunk: only for commutative operations.
 *
 * A node's ranks share the arithmetic: a chunk's number selects one of them.
 *
 * A digest of the sizes precedes chunks that have sizes of their own, from each node to the next:
 * frames show the sum of a step's chunks alone.
 */
#include "sched/reduce_scatter/ring.h"

#include <stdlib.h>

#include "sched/planners.h"

static void step(struct cn_reduction *r, struct cn_chunk *k, uint32_t c, uint32_t s)
{
	const uint32_t at = (k->owner + s) % r->nparts, next = (at + 1) % r->nparts;
	const struct cn_part *to = &r->parts[next];
	const uint32_t rank = next == k->owner ? k->rank : cn_chunk_handler(to, c);
	const struct cn_span result = cn_reduction_result(rank, k->result);
	struct cn_value in, own;

	in = cn_reduction_move(r, k->value, cn_reduction_slot(r, rank, k->len), k->len, s - 1);
	own = cn_reduction_fold(r, to, rank, k->offset, k->len, NULL);
	k->value = cn_reduction_combine(r, in, own, next == k->owner ? result : in.at, k->len);
}

void cn_ring_reduce_scatter(struct cn_reduction *r, struct cn_chunk *chunks, uint32_t n)
{
	for (uint32_t i = 0; i < r->nparts; i++) {
		cn_reduction_agree(r, r->parts[i].node, r->parts[(i + 1) % r->nparts].node, 0);
	}
	for (uint32_t c = 0; c < n; c++) {
		struct cn_chunk *k = &chunks[c];
		const struct cn_part *first = &r->parts[(k->owner + 1) % r->nparts];
		const struct cn_span result = cn_reduction_result(k->rank, k->result);
		const bool alone = r->nparts == 1;

		if (k->len > 0) {
			k->value = cn_reduction_fold(r, first,
						     alone ? k->rank : cn_chunk_handler(first, c),
						     k->offset, k->len, alone ? &result : NULL);
		}
	}
	for (uint32_t s = 1; s < r->nparts; s++) {
		for (uint32_t c = 0; c < n; c++) {
			if (chunks[c].len > 0) {
				step(r, &chunks[c], c, s);
			}
		}
	}
}

struct cn_chunk *cn_ring_begin(struct cn_reduction *r, const struct cn_layout *l,
			       const struct cn_plan *p, uint32_t me, uint32_t n,
			       struct cn_sched *out, struct cn_err *err)
{
	struct cn_chunk *chunks = NULL;

	r->rc = cn_reduction_unordered(p, "ring", err);
	if (r->rc == COLLNET_OK) {
		r->rc = cn_reduction_init(r, l, p, me, false, out, err);
	}
	if (r->rc == COLLNET_OK) {
		chunks = calloc(n, sizeof(*chunks));
		if (chunks == NULL) {
			r->rc = cn_fail(err, COLLNET_ENOMEM, "no memory to plan %u chunks", n);
			cn_reduction_done(r);
		}
	}
	return chunks;
}

int cn_plan_reduce_scatter_ring(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
				struct cn_sched *out, struct cn_err *err)
{
	struct cn_reduction r;
	struct cn_chunk *chunks = cn_ring_begin(&r, l, p, me, l->nranks, out, err);

	if (chunks == NULL) {
		return r.rc;
	}
	for (uint32_t i = 0; i < r.nparts; i++) {
		for (uint32_t k = 0; k < r.parts[i].n; k++) {
			const uint32_t rank = r.parts[i].ranks[k];
			const struct cn_block b = cn_reduction_block(&r, rank);

			chunks[rank] = (struct cn_chunk){
				.offset = b.at, .len = b.len, .owner = i, .rank = rank
			};
		}
	}
	cn_ring_reduce_scatter(&r, chunks, l->nranks);
	free(chunks);
	return cn_reduction_done(&r);
}
