/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/turns.h"

#include "util/bits.h"

void cn_turn_enter(struct cn_turn **next, struct cn_turn *x, void *owner)
{
	if (x->next != NULL) {
		return;
	}
	*next = *next != NULL ? *next : x;
	x->owner = owner;
	x->next = *next;
	x->prev = *next != x ? x->next->prev : x;
	x->prev->next = x->next->prev = x;
}

void cn_turn_leave(struct cn_turn **next, struct cn_turn *x)
{
	if (x->next == NULL) {
		return;
	}
	if (*next == x) {
		*next = x->next != x ? x->next : NULL;
	}
	x->prev->next = x->next;
	x->next->prev = x->prev;
	x->next = x->prev = NULL;
}

uint32_t cn_turn_of(uint64_t payer)
{
	return 1 + (uint32_t)(cn_mix64(payer) % (CN_TURN_PAYERS - 1));
}

void cn_turns_enter(struct cn_turns *s, struct cn_turn *x, void *owner)
{
	cn_turn_enter(&s->next[x->payer], x, owner);
	cn_bit_set(&s->used, x->payer);
}

void cn_turns_leave(struct cn_turns *s, struct cn_turn *x)
{
	cn_turn_leave(&s->next[x->payer], x);
	if (s->next[x->payer] == NULL) {
		cn_bit_clear(&s->used, x->payer);
	}
}

uint32_t cn_turns_following(const struct cn_turns *s, uint32_t payer)
{
	const uint64_t later = s->used & ~((UINT64_C(2) << payer) - 1);

	return cn_bit_first(later != 0 ? later : s->used);
}

void cn_turns_served(struct cn_turns *s, const struct cn_turn *x)
{
	s->payer = x->payer;
	s->next[x->payer] = x->next;
}
