/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames between the transport and a link.
 *
 * A frame to send: the head (Ethernet header, wire header, and the body of small control frames) is
 * copied into the frame; the payload points into a user's buffer or a pool, and is valid until the
 * next call into the transport. A link sends both at once or copies them; it pads to 60 bytes.
 *
 * The collnet frame begins with the wire header. It follows the Ethernet header in the head of a
 * frame to send. In a received frame the two are apart, because on the wire the headers of an
 * encapsulation can lie between them, which only the link knows.
 */
#ifndef CN_FRAME_H
#define CN_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define CN_ETH_HEADER 14
#define CN_ETH_MIN    60
#define CN_FRAME_HEAD 192 /* Ethernet header + wire header + largest hello */

struct cn_frame {
	uint8_t head[CN_FRAME_HEAD];
	uint16_t head_len;
	uint16_t payload_len;
	const uint8_t *payload;
};

struct cn_rx_frame {
	const uint8_t *ether; /* the Ethernet header */
	const uint8_t *data;  /* the collnet frame */
	size_t len;	      /* bytes of the collnet frame; padding included */
};

/* A received frame whose `len` bytes (CN_ETH_HEADER at least) begin with the Ethernet header, and
 * without another header between it and the collnet frame. */
static inline struct cn_rx_frame cn_rx_frame_raw(const uint8_t *frame, size_t len)
{
	return (struct cn_rx_frame){ frame, frame + CN_ETH_HEADER, len - CN_ETH_HEADER };
}

#endif
