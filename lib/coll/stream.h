/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stream field of a collective operation's frame: which operation it is (12 bits), its number
 * in the team (12), and the algorithm and what else both ends must agree on (8). The first and the
 * last of these are the operation's signature.
 */
#ifndef CN_STREAM_H
#define CN_STREAM_H

#include <stdint.h>

#define CN_NUMBER_MASK	  0xfffu
#define CN_SIGNATURE_MASK (~(CN_NUMBER_MASK << 8))

/* `low`: 8 bits. */
static inline uint32_t cn_signature(uint32_t kind, uint32_t low)
{
	return kind << 20 | low;
}

static inline uint32_t cn_stream(uint32_t seq, uint32_t signature)
{
	return (seq & CN_NUMBER_MASK) << 8 | signature;
}

static inline uint32_t cn_stream_number(uint32_t stream)
{
	return stream >> 8 & CN_NUMBER_MASK;
}

static inline uint32_t cn_stream_signature(uint32_t stream)
{
	return stream & CN_SIGNATURE_MASK;
}

#endif
