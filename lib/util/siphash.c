/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/siphash.h"

#include <endian.h>
#include <string.h>

struct state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static uint64_t word(const uint8_t *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof(x));
	return le64toh(x);
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

static struct state begin(const uint8_t key[CN_SIPHASH_KEY])
{
	const uint64_t k0 = word(key), k1 = word(key + 8);

	/* "somepseudorandomlygeneratedbytes" */
	return (struct state){
		k0 ^ 0x736f6d6570736575u,
		k1 ^ 0x646f72616e646f6du,
		k0 ^ 0x6c7967656e657261u,
		k1 ^ 0x7465646279746573u,
	};
}

/* Compresses the last block of `total` bytes. */
static void compress_last(struct state *s, const uint8_t *p, size_t len, size_t total)
{
	uint8_t rest[8] = { 0 };

	for (; len >= 8; len -= 8, p += 8) {
		compress(s, word(p));
	}
	if (len > 0) {
		memcpy(rest, p, len);
	}
	rest[7] = (uint8_t)total;
	compress(s, word(rest));
}

static uint64_t finish(struct state *s)
{
	rounds(s, 4);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

uint64_t cn_siphash(const uint8_t key[CN_SIPHASH_KEY], const void *data, size_t len)
{
	struct state s = begin(key);

	compress_last(&s, data, len, len);
	s.v2 ^= 0xff;
	return finish(&s);
}

void cn_siphash_tag(const uint8_t key[CN_SIPHASH_KEY], const void *first, size_t first_len,
		    const void *data, size_t len, uint8_t out[CN_SIPHASH_TAG])
{
	struct state s = begin(key);
	uint64_t half;

	s.v1 ^= 0xee;
	for (size_t i = 0; i < first_len; i += 8) {
		compress(&s, word((const uint8_t *)first + i));
	}
	compress_last(&s, data, len, first_len + len);
	s.v2 ^= 0xee;
	half = htole64(finish(&s));
	memcpy(out, &half, 8);
	s.v1 ^= 0xdd;
	half = htole64(finish(&s));
	memcpy(out + 8, &half, 8);
}
