/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/super_frame.h"

#include <string.h>

size_t cn_super_frame_length(const struct cn_frame *frames, size_t n, size_t most)
{
	size_t size = cn_super_frame_size(&frames[0]), total = size, k = 1;

	if (size > most) {
		return 1;
	}
	for (; k < n && k < CN_SUPER_FRAME_MAX; k++) {
		size_t len = cn_super_frame_size(&frames[k]);

		if ((frames[k - 1].ends && k >= CN_SUPER_FRAME_LEAST) || len > size ||
		    total + len > CN_SUPER_FRAME_BYTES || frames[k].flow != frames[0].flow ||
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

size_t cn_super_frame_whole(const struct cn_frame *frames, size_t n)
{
	size_t first = 0, k = 0;

	while (first + k < n) {
		first += k;
		k = cn_super_frame_length(frames + first, n - first, SIZE_MAX);
	}
	return k < CN_SUPER_FRAME_MAX && first > 0 ? first : n;
}

size_t cn_super_frame_iov(struct iovec *out, const struct cn_frame *frames, size_t k)
{
	size_t n = 0;

	/* struct iovec has a non-const pointer; sending only reads. */
	for (size_t i = 0; i < k; i++) {
		const struct cn_frame *f = &frames[i];

		out[n++] = (struct iovec){ (void *)(uintptr_t)(f->head + CN_ETH_HEADER),
					   (size_t)f->head_len - CN_ETH_HEADER };
		if (f->payload_len > 0) {
			out[n++] = (struct iovec){ (void *)(uintptr_t)f->payload, f->payload_len };
		}
	}
	return n;
}

size_t cn_super_frame_next(struct cn_super_frame *s, struct cn_rx_frame *out, size_t max)
{
	size_t n = 0;

	for (; n < max && s->left > 0; n++) {
		size_t len = s->size == 0 || s->left < s->size ? s->left : s->size;

		s->left -= len;
		if (s->placed > 0) {
			out[n] = (struct cn_rx_frame){ s->ether, s->headers, len, s->encapsulation,
						       s->payloads };
			s->headers += s->header;
			s->payloads += len - s->header;
			s->placed -= len;
			continue;
		}
		out[n] = (struct cn_rx_frame){ s->ether, s->at, len, s->encapsulation, NULL };
		s->at += len;
	}
	return n;
}
