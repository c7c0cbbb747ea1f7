/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of active sources. */
#include <string.h>

#include "coll/source.h"

void cn_source_start(struct cn_source_ring *r, struct cn_source *s)
{
	memset(&s->flight, 0, sizeof(s->flight));
	r->n++;
	cn_turn_enter(&r->current, &s->turn, s);
}

void cn_source_stop(struct cn_source_ring *r, struct cn_source *s, struct cn_window *w)
{
	if (s->turn.next == NULL) {
		return;
	}
	cn_flight_end(&s->flight, w);
	r->n--;
	if (r->current == &s->turn) {
		r->quantum_used = 0;
	}
	cn_turn_leave(&r->current, &s->turn);
}

bool cn_source_pull(struct cn_source_ring *r, cn_time now, uint32_t quantum, struct cn_tx *out)
{
	/* A source may end in pull(); then the ring has advanced. */
	for (uint32_t n = r->n; n > 0 && r->current != NULL; n--) {
		struct cn_turn *at = r->current;
		struct cn_source *s = at->owner;
		bool sent = s->pull(s, now, out);

		if (r->current != at) {
			r->quantum_used = 0;
		} else if (!sent || ++r->quantum_used >= quantum) {
			r->current = at->next;
			r->quantum_used = 0;
		}
		if (sent) {
			return true;
		}
	}
	return false;
}
