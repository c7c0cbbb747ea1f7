/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/reorder.h"

#include <stdlib.h>
#include <string.h>

static struct cn_reorder_frame *slot_of(const struct cn_reorder *r, uint32_t seq)
{
	return &r->slots[seq % CN_REORDER_MAX];
}

void cn_reorder_free(struct cn_reorder *r)
{
	free(r->slots);
	r->slots = NULL;
}

bool cn_reorder_has(const struct cn_reorder *r, uint32_t seq)
{
	return r->count > 0 && slot_of(r, seq)->data != NULL && slot_of(r, seq)->wire.seq == seq;
}

bool cn_reorder_put(struct cn_reorder *r, const struct cn_wire *w, const uint8_t *payload,
		    uint8_t *buffer)
{
	if (r->slots == NULL) {
		r->slots = calloc(CN_REORDER_MAX, sizeof(*r->slots));
	}
	if (r->slots == NULL) {
		return false;
	}
	memcpy(buffer, payload, w->length);
	*slot_of(r, w->seq) = (struct cn_reorder_frame){ .data = buffer, .wire = *w };
	r->count++;
	return true;
}

bool cn_reorder_remove(struct cn_reorder *r, uint32_t seq, struct cn_reorder_frame *out)
{
	if (!cn_reorder_has(r, seq)) {
		return false;
	}
	*out = *slot_of(r, seq);
	slot_of(r, seq)->data = NULL;
	r->count--;
	return true;
}

uint8_t *cn_reorder_drop(struct cn_reorder *r)
{
	for (uint32_t i = 0; i < CN_REORDER_MAX && r->count > 0; i++) {
		uint8_t *data = r->slots[i].data;

		if (data != NULL) {
			r->slots[i].data = NULL;
			r->count--;
			return data;
		}
	}
	return NULL;
}

uint32_t cn_reorder_sack(const struct cn_reorder *r, uint32_t expected)
{
	uint32_t sack = 0;

	for (uint32_t i = 0; i < CN_REORDER_MAX; i++) {
		if (cn_reorder_has(r, expected + 1 + i)) {
			sack |= 1u << i;
		}
	}
	return sack != 0 ? sack | CN_SACK_VALID : 0;
}
