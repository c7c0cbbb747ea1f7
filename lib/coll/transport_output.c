/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which transport sends next: payers take turns (turns.h), and the active transports of each, with
 * a quantum. The node's own transport has turns like a payer's.
 */
#include "coll/engine_state.h"

/* The next frame of this transport; false: it has none now. */
static bool output(struct cn_transport *x, cn_time now, struct cn_frame *out)
{
	return (x->sources.n > 0 || cn_node_has_output(x->node, now)) &&
	       cn_node_output(x->node, now, out);
}

/* The first transport of a ring that has a frame, with that; NULL: none has. `last` had none. */
static struct cn_transport *output_ring(const struct cn_turn *first,
					const struct cn_transport *last, cn_time now,
					struct cn_frame *out)
{
	const struct cn_turn *at = first;

	do {
		if (at->owner != last && output(at->owner, now, out)) {
			return at->owner;
		}
		at = at->next;
	} while (at != first);
	return NULL;
}

/* The same of all rings, from the payer's whose turn it is; with `last`, that turn is over. */
static struct cn_transport *output_rings(const struct cn_turns *s, const struct cn_transport *last,
					 cn_time now, struct cn_frame *out)
{
	const bool over = last != NULL || s->next[s->payer] == NULL;
	const uint32_t first = over ? cn_turns_following(s, s->payer) : s->payer;
	uint32_t payer = first;
	struct cn_transport *x;

	do {
		x = output_ring(s->next[payer], last, now, out);
		payer = cn_turns_following(s, payer);
	} while (x == NULL && payer != first);
	return x;
}

/*
 * A transport without a frame before its quantum is used ends the turn of its payer, who would
 * otherwise have one turn after the other with many such transports. If nobody has a frame, as when
 * the window is closed, the turn goes on.
 */
bool cn_transport_output(struct cn_engine *e, cn_time now, struct cn_frame *out)
{
	struct cn_turns *s = &e->turns;
	struct cn_transport *last = e->sending, *x = last;

	e->starved = false;
	if (last == NULL || !output(last, now, out)) {
		x = output_rings(s, last, now, out);
		if (x == NULL) {
			return false;
		}
		if (last != NULL) {
			cn_turns_served(s, &last->turn);
		}
		s->payer = x->turn.payer;
		s->next[s->payer] = &x->turn;
		e->sending = x;
		e->quantum_used = 0;
	}
	if (++e->quantum_used >= cn_engine_quantum(e, e->window)) {
		cn_turns_served(s, &x->turn);
		s->payer = cn_turns_following(s, s->payer);
		e->sending = NULL;
	}
	return true;
}
