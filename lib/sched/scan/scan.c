/* SPDX-License-Identifier: BSD-2-Clause */
/* The prefixes within a part, and the results of its ranks. */
#include "sched/scan/scan.h"

#include <stdlib.h>

int cn_scan_init(struct cn_scan *s, const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		 struct cn_sched *out, struct cn_err *err)
{
	int rc = cn_reduction_init(&s->r, l, p, me, true, out, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	s->prefix = calloc(l->nranks, sizeof(*s->prefix));
	s->before = calloc(l->nranks, sizeof(*s->before));
	if (s->prefix == NULL || s->before == NULL) {
		s->r.rc = cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u ranks", l->nranks);
		return cn_scan_done(s);
	}
	for (uint32_t i = 0; i < s->r.nparts && p->bytes > 0; i++) {
		const struct cn_part *part = &s->r.parts[i];
		const uint32_t first = part->ranks[0];
		struct cn_value v = cn_reduction_own(first, 0);

		s->prefix[first] = v;
		for (uint32_t k = 1; k < part->n; k++) {
			const struct cn_value own = cn_reduction_move(
				&s->r, cn_reduction_own(part->ranks[k], 0),
				cn_reduction_slot(&s->r, first, p->bytes), p->bytes, 0);

			v = cn_reduction_combine(&s->r, v, own, own.at, p->bytes);
			s->prefix[part->ranks[k]] = v;
		}
	}
	return COLLNET_OK;
}

int cn_scan_done(struct cn_scan *s)
{
	free(s->prefix);
	free(s->before);
	s->prefix = s->before = NULL;
	return cn_reduction_done(&s->r);
}

struct cn_value cn_scan_total(const struct cn_scan *s, uint32_t part)
{
	const struct cn_part *p = &s->r.parts[part];

	return s->prefix[p->ranks[p->n - 1]];
}

void cn_scan_finish(struct cn_scan *s, uint32_t part, const struct cn_value *before)
{
	struct cn_reduction *r = &s->r;
	const struct cn_part *p = &r->parts[part];
	const bool exclusive = r->p->op == CN_OP_EXSCAN;
	const uint64_t len = r->p->bytes;

	for (uint32_t k = 0; k < p->n; k++) {
		const struct cn_span result = cn_reduction_result(p->ranks[k], 0);
		struct cn_value v;

		if (exclusive && k == 0) { /* what comes before the part, if anything does */
			if (before != NULL) {
				cn_reduction_move(r, *before, result, len, 0);
			}
			continue;
		}
		v = s->prefix[p->ranks[exclusive ? k - 1 : k]];
		if (before != NULL) {
			v = cn_reduction_combine(r, *before, v,
						 k == 0 ? result
							: cn_reduction_slot(r, p->ranks[0], len),
						 len);
		}
		if (v.at.buffer != CN_BUF_RECV) {
			cn_reduction_move(r, v, result, len, 0);
		}
	}
}
