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

/* Minimum frames of a super-frame that may end early (cn_frame.ends); a shorter one is
 * inefficient. */
#define CN_SUPER_FRAME_LEAST 16u

/* How many of the n frames (1 at least), from the first on, form a super-frame. A frame of more
 * than `most` bytes after the Ethernet header is sent singly, for the kernel to refuse it. */
size_t cn_super_frame_length(const struct cn_frame *frames, size_t n, size_t most);

/* How many of the n frames, from the first on, form complete super-frames, which no later frame can
 * extend; all if they are one. */
size_t cn_super_frame_whole(const struct cn_frame *frames, size_t n);

/* Bytes of the collnet frame in a frame to send. */
static inline size_t cn_super_frame_size(const struct cn_frame *f)
{
	return (size_t)f->head_len - CN_ETH_HEADER + f->payload_len;
}

/* Builds the I/O vector of k collnet frames, at most 2 * k entries; returns its length. */
size_t cn_super_frame_iov(struct iovec *out, const struct cn_frame *frames, size_t k);

/* The rest of a received super-frame or single frame. Empty: left is 0. */
struct cn_super_frame {
	const uint8_t *ether; /* its Ethernet header */
	const uint8_t *at;
	size_t left; /* bytes */
	size_t size; /* bytes of a frame; 0: the rest is one frame */
	enum cn_encapsulation encapsulation;
	/* The next `placed` bytes of `left` are frames whose payloads were placed apart from their
	 * headers. */
	size_t placed;
	size_t header; /* bytes of each header */
	const uint8_t *headers, *payloads;
};

/* Removes up to max frames from it; returns how many. */
size_t cn_super_frame_next(struct cn_super_frame *s, struct cn_rx_frame *out, size_t max);

#endif
