/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stream field of a collective operation's frame: the slot of the team at the receiver (12
 * bits), the number of the operation (12), and the operation's signature (8).
 */
#ifndef CN_STREAM_H
#define CN_STREAM_H

#include <stdint.h>

#define CN_NUMBER_MASK 0xfffu

static inline uint32_t cn_stream(uint32_t slot, uint32_t seq, uint8_t signature)
{
	return slot << 20 | (seq & CN_NUMBER_MASK) << 8 | signature;
}

static inline uint16_t cn_stream_slot(uint32_t stream)
{
	return (uint16_t)(stream >> 20);
}

static inline uint32_t cn_stream_number(uint32_t stream)
{
	return stream >> 8 & CN_NUMBER_MASK;
}

static inline uint8_t cn_stream_signature(uint32_t stream)
{
	return (uint8_t)stream;
}

#endif
