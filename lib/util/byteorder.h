/* SPDX-License-Identifier: BSD-2-Clause */
/* Integers in network byte order, at any alignment. */
#ifndef CN_BYTEORDER_H
#define CN_BYTEORDER_H

#include <stdint.h>

static inline void cn_put_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void cn_put_be32(uint8_t *p, uint32_t v)
{
	cn_put_be16(p, (uint16_t)(v >> 16));
	cn_put_be16(p + 2, (uint16_t)v);
}

static inline void cn_put_be64(uint8_t *p, uint64_t v)
{
	cn_put_be32(p, (uint32_t)(v >> 32));
	cn_put_be32(p + 4, (uint32_t)v);
}

static inline uint16_t cn_get_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t cn_get_be32(const uint8_t *p)
{
	return (uint32_t)cn_get_be16(p) << 16 | cn_get_be16(p + 2);
}

static inline uint64_t cn_get_be64(const uint8_t *p)
{
	return (uint64_t)cn_get_be32(p) << 32 | cn_get_be32(p + 4);
}

#endif
