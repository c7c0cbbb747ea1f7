/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of one phase of a schedule, drawn on the network. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/plan/emit.h"
#include "tools/plan/draw.h"

static bool drawn(const struct cn_action *a, uint32_t phase)
{
	return a->kind == CN_ACT_SEND && a->phase == phase && !emit_is_sync(a);
}

static uint32_t count(const struct emit *e, uint32_t phase)
{
	uint32_t n = 0;

	for (uint32_t b = 0; b < e->layout->nnodes; b++) {
		for (uint32_t i = 0; i < e->parts[b].n; i++) {
			n += drawn(&e->parts[b].actions[i], phase);
		}
	}
	return n;
}

int emit_dot(const struct emit *e, uint32_t phase, bool alike, FILE *f, struct cn_err *err)
{
	const struct cn_tree *t = e->layout->tree;
	struct cn_drawn *m = calloc((size_t)count(e, phase) + 1, sizeof(*m));
	char title[128];
	uint32_t n = 0;
	int rc;

	if (m == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to draw a phase");
	}
	for (uint32_t b = 0; b < e->layout->nnodes; b++) {
		for (uint32_t i = 0; i < e->parts[b].n; i++) {
			const struct cn_action *a = &e->parts[b].actions[i];

			if (drawn(a, phase)) {
				m[n] = (struct cn_drawn){ t->v[t->host[b]].vertex,
							  t->v[t->host[a->peer]].vertex,
							  alike ? 0 : n, NULL };
				n++;
			}
		}
	}
	if (alike) {
		snprintf(title, sizeof(title), "%s by %s: the ring", cn_op_name(e->plan->op),
			 e->algorithm);
	} else {
		snprintf(title, sizeof(title), "%s by %s: phase %u, %u messages",
			 cn_op_name(e->plan->op), e->algorithm, phase, n);
	}
	rc = cn_topo_draw(t->topo, m, n, title, f);
	free(m);
	return rc == COLLNET_OK
		       ? rc
		       : cn_fail(err, rc, "the drawing could not be written: %s", strerror(errno));
}
