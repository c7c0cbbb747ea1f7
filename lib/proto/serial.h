/* SPDX-License-Identifier: BSD-2-Clause */
/* Serial number arithmetic (RFC 1982) on 32 bits: a sequence wraps, differences do not. */
#ifndef CN_SERIAL_H
#define CN_SERIAL_H

#include <stdbool.h>
#include <stdint.h>

/* b - a as a signed distance; right while the two are less than 2^31 apart. */
static inline int32_t cn_serial_diff(uint32_t a, uint32_t b)
{
	return (int32_t)(b - a);
}

static inline bool cn_serial_before(uint32_t a, uint32_t b)
{
	return cn_serial_diff(a, b) > 0;
}

/* a <= x <= b */
static inline bool cn_serial_within(uint32_t a, uint32_t x, uint32_t b)
{
	return x - a <= b - a;
}

#endif
