/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/siphash.h"

struct state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static uint64_t little_endian(const uint8_t *p, size_t len)
{
	uint64_t x = 0;

	for (size_t i = 0; i < len; i++) {
		x |= (uint64_t)p[i] << (8 * i);
	}
	return x;
}

static void rounds(struct state *s, int n)
{
	while (n-- > 0) {
		s->v0 += s->v1;
		s->v1 = rotate(s->v1, 13) ^ s->v0;
		s->v0 = rotate(s->v0, 32);
		s->v2 += s->v3;
		s->v3 = rotate(s->v3, 16) ^ s->v2;
		s->v0 += s->v3;
		s->v3 = rotate(s->v3, 21) ^ s->v0;
		s->v2 += s->v1;
		s->v1 = rotate(s->v1, 17) ^ s->v2;
		s->v2 = rotate(s->v2, 32);
	}
}

static void compress(struct state *s, uint64_t m)
{
	s->v3 ^= m;
	rounds(s, 2);
	s->v0 ^= m;
}

uint64_t cn_siphash(const uint8_t key[CN_SIPHASH_KEY], const void *data, size_t len)
{
	uint64_t k0 = little_endian(key, 8), k1 = little_endian(key + 8, 8);
	const uint8_t *p = data;
	size_t left = len;
	/* "somepseudorandomlygeneratedbytes" */
	struct state s = {
		k0 ^ 0x736f6d6570736575u,
		k1 ^ 0x646f72616e646f6du,
		k0 ^ 0x6c7967656e657261u,
		k1 ^ 0x7465646279746573u,
	};

	for (; left >= 8; left -= 8, p += 8) {
		compress(&s, little_endian(p, 8));
	}
	compress(&s, little_endian(p, left) | (uint64_t)(len & 0xff) << 56);
	s.v2 ^= 0xff;
	rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
