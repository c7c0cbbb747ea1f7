/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Super-frames of the encapsulations udp and tcp: consecutive frames to one destination behind one
 * set of headers. The network card, or the kernel before the driver, cuts one into frames of the
 * MTU (GSO); a receiver gets what was merged on the way (GRO), or never cut, or single frames.
 *
 * All frames of a super-frame have one length but for the last, which may be shorter. So the length
 * of the datagram and that of a frame (gso_size) describe it.
 */
#ifndef CN_LINK_SUPER_FRAME_H
#define CN_LINK_SUPER_FRAME_H

#include <sys/uio.h>

#include "proto/frame.h"

#define CN_SUPER_FRAME_BYTES (65535 - CN_TCP_HEADER)

/* Frames of a super-frame that ends before the next frame though that would fit (cn_frame.ends): a
 * shorter one costs more than it brings. */
#define CN_SUPER_FRAME_LEAST 16u

/* How many of the n frames (1 at least), from the first on, form a super-frame. A frame of more
 * than `most` bytes after the Ethernet header is no part of one: the kernel has to refuse it. */
size_t cn_super_frame_length(const struct cn_frame *frames, size_t n, size_t most);

/* How many of the n frames, from the first on, are super-frames that no frame behind them can be
 * part of; all if they are one. */
size_t cn_super_frame_whole(const struct cn_frame *frames, size_t n);

/* Bytes of the collnet frame in a frame to send. */
static inline size_t cn_super_frame_size(const struct cn_frame *f)
{
	return (size_t)f->head_len - CN_ETH_HEADER + f->payload_len;
}

/* The collnet frames of k frames, one after the other, in at most 2 * k pieces; returns how many.
 */
size_t cn_super_frame_iov(struct iovec *out, const struct cn_frame *frames, size_t k);

/* What is left of a received one, or of a frame alone. Empty: left is 0. */
struct cn_super_frame {
	const uint8_t *ether; /* its Ethernet header */
	const uint8_t *at;
	size_t left; /* bytes */
	size_t size; /* of a frame; 0: all that is left is one frame */
	enum cn_encapsulation encapsulation;
	/* The next `placed` bytes of `left` are frames whose headers and payloads lie apart. */
	size_t placed;
	size_t header; /* bytes of each header */
	const uint8_t *headers, *payloads;
};

/* Takes up to max frames from it; returns how many. */
size_t cn_super_frame_next(struct cn_super_frame *s, struct cn_rx_frame *out, size_t max);

#endif
