/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allreduce round a ring of nodes: a reduce-scatter of one chunk per node, and then an allgather of
 * the chunks, byte by byte as they become complete. A node sends and receives 2 (P - 1) / P of the
 * block, the least possible on any tree (Patarasuk and Yuan); the ring is free of contention.
 */
#include <stdlib.h>

#include "sched/planners.h"
#include "sched/reduce_scatter/ring.h"

/* Whole elements, as equal as they can be. */
static void divide(const struct cn_reduction *r, struct cn_chunk *chunks)
{
	const uint64_t element = r->p->element > 0 ? r->p->element : 1;
	const uint64_t count = r->p->bytes / element, each = count / r->nparts;
	const uint64_t more = count % r->nparts; /* chunks of one element more */
	uint64_t at = 0;

	for (uint32_t c = 0; c < r->nparts; c++) {
		chunks[c] = (struct cn_chunk){
			.offset = at,
			.len = (each + (c < more)) * element,
			.owner = c,
			.rank = cn_chunk_handler(&r->parts[c], c),
			.result = at,
		};
		at += chunks[c].len;
	}
}

/* Sends the complete chunks once more round the ring (allgather). */
static void spread(struct cn_reduction *r, struct cn_chunk *chunks)
{
	for (uint32_t c = 0; c < r->nparts; c++) {
		if (chunks[c].len > 0) {
			cn_reduction_share(r, &r->parts[c], chunks[c].value, chunks[c].len);
		}
	}
	for (uint32_t s = 1; s < r->nparts; s++) {
		for (uint32_t c = 0; c < r->nparts; c++) {
			const struct cn_part *to = &r->parts[(c + s) % r->nparts];
			struct cn_chunk *k = &chunks[c];
			const uint32_t rank = cn_chunk_handler(to, c);

			if (k->len > 0) {
				k->value = cn_reduction_move(r, k->value,
							     cn_reduction_result(rank, k->result),
							     k->len, r->nparts - 2 + s);
				cn_reduction_share(r, to, k->value, k->len);
			}
		}
	}
}

int cn_plan_allreduce_ring(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			   struct cn_sched *out, struct cn_err *err)
{
	struct cn_reduction r;
	struct cn_chunk *chunks = cn_ring_begin(&r, l, p, me, l->nnodes, out, err);

	if (chunks == NULL) {
		return r.rc;
	}
	divide(&r, chunks);
	cn_ring_reduce_scatter(&r, chunks, r.nparts);
	spread(&r, chunks);
	free(chunks);
	return cn_reduction_done(&r);
}
