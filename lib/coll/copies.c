/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/copies.h"

#include "coll/engine_state.h"
#include "coll/op.h"
#include "util/util.h"

void cn_copies_enter(struct cn_copies *c, struct cn_op *op)
{
	struct cn_copies_place *at = &op->copies;
	struct cn_op *next;

	if (at->next != NULL) {
		return;
	}
	at->payer = (uint32_t)(cn_mix64(cn_team_payer(op->team)) % CN_COPY_PAYERS);
	next = c->next[at->payer];
	if (next == NULL) {
		at->next = at->prev = op;
		c->next[at->payer] = op;
		c->used |= UINT64_C(1) << at->payer;
		return;
	}
	at->next = next; /* at the tail */
	at->prev = next->copies.prev;
	at->prev->copies.next = op;
	next->copies.prev = op;
}

void cn_copies_leave(struct cn_copies *c, struct cn_op *op)
{
	struct cn_copies_place *at = &op->copies;

	if (at->next == NULL) {
		return;
	}
	at->prev->copies.next = at->next;
	at->next->copies.prev = at->prev;
	if (at->next == op) {
		c->next[at->payer] = NULL;
		c->used &= ~(UINT64_C(1) << at->payer);
	} else if (c->next[at->payer] == op) {
		c->next[at->payer] = at->next;
	}
	at->next = at->prev = NULL;
}

/* The next operation, payers round robin. */
static struct cn_op *next_round_robin(struct cn_copies *c)
{
	struct cn_op *op;

	while ((c->used >> c->next_payer & 1) == 0) {
		c->next_payer = (c->next_payer + 1) % CN_COPY_PAYERS;
	}
	op = c->next[c->next_payer];
	c->next[c->next_payer] = op->copies.next;
	c->next_payer = (c->next_payer + 1) % CN_COPY_PAYERS;
	return op;
}

void cn_copies_run(struct cn_copies *c, cn_time now)
{
	uint64_t budget = CN_COPY_CHUNK;

	while (c->used != 0 && budget > 0) {
		cn_op_run_copies(next_round_robin(c), now, &budget);
	}
}
