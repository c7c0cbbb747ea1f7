/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of active sources. */
#include <string.h>

#include "coll/source.h"

void cn_source_start(struct cn_source_ring *r, struct cn_source *s)
{
	memset(&s->flight, 0, sizeof(s->flight));
	r->n++;
	if (r->current == NULL) {
		r->current = s->next = s->prev = s;
		return;
	}
	s->next = r->current;
	s->prev = r->current->prev;
	s->prev->next = s;
	s->next->prev = s;
}

void cn_source_stop(struct cn_source_ring *r, struct cn_source *s, struct cn_window *w)
{
	if (s->next == NULL) {
		return;
	}
	cn_flight_end(&s->flight, w);
	r->n--;
	if (s->next == s) {
		r->current = NULL;
	} else {
		if (r->current == s) {
			r->current = s->next;
			r->quantum_used = 0;
		}
		s->next->prev = s->prev;
		s->prev->next = s->next;
	}
	s->next = s->prev = NULL;
}

bool cn_source_pull(struct cn_source_ring *r, cn_time now, uint32_t quantum, struct cn_tx *out)
{
	/* A source may end in pull(); then the ring has advanced. */
	for (uint32_t n = r->n; n > 0 && r->current != NULL; n--) {
		struct cn_source *s = r->current;
		bool sent = s->pull(s, now, out);

		if (r->current != s) {
			r->quantum_used = 0;
		} else if (!sent || ++r->quantum_used >= quantum) {
			r->current = s->next;
			r->quantum_used = 0;
		}
		if (sent) {
			return true;
		}
	}
	return false;
}
