/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/super_frame.h"

#include <string.h>

static size_t length_of(const struct cn_frame *f)
{
	return (size_t)f->head_len - CN_ETH_HEADER + f->payload_len;
}

size_t cn_super_frame_length(const struct cn_frame *frames, size_t n, size_t most)
{
	size_t size = length_of(&frames[0]), total = size, k = 1;

	if (size > most) {
		return 1;
	}
	for (; k < n && k < CN_SUPER_FRAME_MAX; k++) {
		size_t len = length_of(&frames[k]);

		if (len > size || total + len > CN_SUPER_FRAME_BYTES ||
		    memcmp(frames[k].head, frames[0].head, 12) != 0) {
			break;
		}
		total += len;
		if (len < size) {
			return k + 1;
		}
	}
	return k;
}

size_t cn_super_frame_take(struct cn_super_frame *s, struct cn_rx_frame *out, size_t max)
{
	size_t n = 0;

	for (; n < max && s->left > 0; n++) {
		size_t len = s->size == 0 || s->left < s->size ? s->left : s->size;

		out[n] = (struct cn_rx_frame){ s->ether, s->at, len, s->encapsulation };
		s->at += len;
		s->left -= len;
	}
	return n;
}
