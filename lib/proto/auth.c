/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/auth.h"

#include <string.h>

#include "util/byteorder.h"

/* Public labels separate the keys derived from the cluster's key (domain separation). */
static const char hello_label[8] = "hello";
static const char session_label[8] = "session";

void cn_auth_hello_key(const uint8_t cluster_key[CN_SIPHASH_KEY], uint8_t out[CN_SIPHASH_KEY])
{
	cn_siphash_tag(cluster_key, hello_label, sizeof(hello_label), NULL, 0, out);
}

static void session_key(const uint8_t cluster_key[CN_SIPHASH_KEY], const struct cn_end *from,
			const struct cn_end *to, uint8_t out[CN_SIPHASH_KEY])
{
	uint8_t ends[32];

	cn_put_be64(ends, from->epoch);
	cn_put_be64(ends + 8, from->nonce);
	cn_put_be64(ends + 16, to->epoch);
	cn_put_be64(ends + 24, to->nonce);
	cn_siphash_tag(cluster_key, session_label, sizeof(session_label), ends, sizeof(ends), out);
}

void cn_auth_begin(struct cn_auth *a, const uint8_t cluster_key[CN_SIPHASH_KEY],
		   const struct cn_end *us, const struct cn_end *it)
{
	memset(a, 0, sizeof(*a));
	session_key(cluster_key, us, it, a->key_out);
	session_key(cluster_key, it, us, a->key_in);
	a->seen[0] = 1; /* counters begin at 1 */
}

/* `frame`: the collnet frame. */
static void make_tag(const uint8_t key[CN_SIPHASH_KEY], const uint8_t source[6],
		     const uint8_t *frame, const uint8_t *body, size_t len,
		     uint8_t out[CN_SIPHASH_TAG])
{
	uint8_t head[8 + CN_WIRE_HEADER + 8] = { 0 };

	memcpy(head, source, 6);
	memcpy(head + 8, frame, CN_WIRE_HEADER + 8);
	cn_siphash_tag(key, head, sizeof(head), body, len, out);
}

void cn_auth_seal(const uint8_t key[CN_SIPHASH_KEY], uint8_t *frame, uint64_t counter,
		  const uint8_t *body, size_t len)
{
	uint8_t *at = frame + CN_ETH_HEADER;

	cn_put_be64(at + CN_WIRE_HEADER, counter);
	make_tag(key, frame + 6, at, body, len, at + CN_WIRE_HEADER + 8);
}

bool cn_auth_is_genuine(const uint8_t key[CN_SIPHASH_KEY], const uint8_t source[6],
			const uint8_t *frame, const uint8_t *body, size_t len)
{
	uint8_t tag[CN_SIPHASH_TAG], differ = 0;

	make_tag(key, source, frame, body, len, tag);
	for (size_t i = 0; i < sizeof(tag); i++) {
		differ |= tag[i] ^ frame[CN_WIRE_HEADER + 8 + i]; /* constant time */
	}
	return differ == 0;
}

static uint64_t *word_of(struct cn_auth *a, uint64_t counter)
{
	return &a->seen[counter % CN_REPLAY_WINDOW / 64];
}

/* True if the counter was not seen before (anti-replay window). */
static bool is_new(struct cn_auth *a, uint64_t counter)
{
	if (counter > a->newest) {
		return true;
	}
	return a->newest - counter < CN_REPLAY_WINDOW &&
	       (*word_of(a, counter) >> counter % 64 & 1) == 0;
}

static void record(struct cn_auth *a, uint64_t counter)
{
	if (counter > a->newest && counter - a->newest >= CN_REPLAY_WINDOW) {
		memset(a->seen, 0, sizeof(a->seen));
		a->newest = counter;
	}
	while (a->newest < counter) {
		a->newest++;
		*word_of(a, a->newest) &= ~((uint64_t)1 << a->newest % 64);
	}
	*word_of(a, counter) |= (uint64_t)1 << counter % 64;
}

bool cn_auth_accept(struct cn_auth *a, const uint8_t source[6], const uint8_t *frame,
		    const uint8_t *body, size_t len)
{
	const uint64_t counter = cn_get_be64(frame + CN_WIRE_HEADER);

	if (!is_new(a, counter) || !cn_auth_is_genuine(a->key_in, source, frame, body, len)) {
		return false;
	}
	record(a, counter);
	return true;
}
