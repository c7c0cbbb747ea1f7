/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/turns.h"

#include "coll/engine_state.h"
#include "util/util.h"

uint32_t cn_turn_of(uint64_t payer)
{
	return 1 + (uint32_t)(cn_mix64(payer) % (CN_TURN_PAYERS - 1));
}

void cn_turns_enter(struct cn_turns *s, struct cn_transport *x)
{
	struct cn_turn *at = &x->turn;
	struct cn_transport *next = s->next[at->payer];

	if (next == NULL) {
		at->next = at->prev = x;
		s->next[at->payer] = x;
		s->used |= UINT64_C(1) << at->payer;
		return;
	}
	at->next = next; /* at the tail */
	at->prev = next->turn.prev;
	at->prev->turn.next = x;
	next->turn.prev = x;
}

void cn_turns_leave(struct cn_turns *s, struct cn_transport *x)
{
	struct cn_turn *at = &x->turn;

	at->prev->turn.next = at->next;
	at->next->turn.prev = at->prev;
	if (s->next[at->payer] != x) {
		return;
	}
	s->next[at->payer] = at->next != x ? at->next : NULL;
	if (at->next == x) {
		s->used &= ~(UINT64_C(1) << at->payer);
	}
	s->quantum_used = at->payer == s->payer ? 0 : s->quantum_used;
}

/* The payer after this one, which may be itself. The node's own transport is always there. */
static uint32_t following(const struct cn_turns *s, uint32_t payer)
{
	do {
		payer = (payer + 1) % CN_TURN_PAYERS;
	} while ((s->used >> payer & 1) == 0);
	return payer;
}

/* The next frame of this transport; false: it has none now. */
static bool output(struct cn_transport *x, cn_time now, struct cn_frame *out)
{
	return (x->sources.n > 0 || cn_node_has_output(x->node, now)) &&
	       cn_node_output(x->node, now, out);
}

/* The first transport of a ring that has a frame, with that; NULL: none has. `last` had none. */
static struct cn_transport *output_ring(const struct cn_turns *s, uint32_t payer,
					const struct cn_transport *last, cn_time now,
					struct cn_frame *out)
{
	const bool here = last != NULL && last->turn.payer == payer;
	struct cn_transport *x = here ? last->turn.next : s->next[payer];
	const struct cn_transport *end = here ? last : x;

	if (x == last) {
		return NULL;
	}
	do {
		if (output(x, now, out)) {
			return x;
		}
		x = x->turn.next;
	} while (x != end);
	return NULL;
}

/* x has sent a frame. */
static void count(struct cn_engine *e, struct cn_transport *x)
{
	struct cn_turns *s = &e->turns;

	s->payer = x->turn.payer;
	s->next[s->payer] = x;
	if (++s->quantum_used >= cn_engine_quantum(e, e->window)) {
		s->next[s->payer] = x->turn.next;
		s->payer = following(s, s->payer);
		s->quantum_used = 0;
	}
}

/*
 * A transport without a frame before its quantum is used ends the turn of its payer, who would
 * otherwise have one turn after the other with many such transports. If nobody has a frame, as when
 * the window is closed, the turn goes on.
 */
bool cn_turns_output(struct cn_engine *e, cn_time now, struct cn_frame *out)
{
	struct cn_turns *s = &e->turns;
	struct cn_transport *last = s->quantum_used > 0 ? s->next[s->payer] : NULL, *x;
	uint32_t payer, first;

	e->starved = false;
	if (last != NULL && output(last, now, out)) {
		count(e, last);
		return true;
	}
	first = last != NULL || s->next[s->payer] == NULL ? following(s, s->payer) : s->payer;
	payer = first;
	do {
		x = output_ring(s, payer, last, now, out);
		if (x != NULL) {
			if (last != NULL) {
				s->next[s->payer] = last->turn.next;
			}
			s->quantum_used = 0;
			count(e, x);
			return true;
		}
		payer = following(s, payer);
	} while (payer != first);
	return false;
}
