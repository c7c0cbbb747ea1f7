/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stream field of a collective operation's frame: the number of the operation (12 bits), and
 * the operation's signature (8).
 */
#ifndef CN_STREAM_H
#define CN_STREAM_H

#include <stdint.h>

#define CN_NUMBER_MASK 0xfffu

static inline uint32_t cn_stream(uint32_t seq, uint8_t signature)
{
	return (seq & CN_NUMBER_MASK) << 8 | signature;
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
