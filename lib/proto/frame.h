/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A frame on its way out: what the transport hands to a link.
 *
 * The head (Ethernet header, wire header, and the body of small control frames) is copied into
 * the frame; the payload points into a user's buffer or a pool, and is valid until the next call
 * into the transport. A link sends both at once or copies them; it pads to 60 bytes.
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

#endif
