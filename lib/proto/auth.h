/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authenticated frames. The nodes of a cluster may have a key in common. A counter and a tag then
 * follow the header of every frame, and a node drops frames that have none, or a wrong one: a host
 * that does not know the key can read, delay, lose and repeat frames, but cannot make or change
 * any.
 *
 * The tag is SipHash-2-4 with a value of 16 bytes, of the source address, two zero bytes, the
 * header, the counter and the `length` bytes that follow. It covers neither the other addresses nor
 * the padding. SipHash is made for the authentication of network traffic, needs no nonce, and does
 * not fail if a counter comes twice.
 *
 * No key is used for two purposes. From the cluster's key follow the key of all hellos, whose
 * counter is 0, as their nonces tell old ones from new; and two keys per session, one per
 * direction, by which the epochs and nonces of both ends are hashed. As teams have sessions of
 * their own, there is a key per team, pair of nodes and direction. In a session the counter grows
 * by one per frame, retransmissions and acknowledgements included, and a receiver accepts each
 * value once, in a window as in IPsec (RFC 4303, section 3.4.3).
 */
#ifndef CN_AUTH_H
#define CN_AUTH_H

#include "proto/wire.h"

/* Anti-replay window: how far a frame of the session may arrive behind the newest one. */
#define CN_REPLAY_WINDOW 256u

/* Of a session: both directions. */
struct cn_auth {
	uint8_t key_out[CN_SIPHASH_KEY], key_in[CN_SIPHASH_KEY];
	uint64_t sent;			      /* counter of the last frame to the peer */
	uint64_t newest;		      /* the largest counter that was accepted */
	uint64_t seen[CN_REPLAY_WINDOW / 64]; /* bit i % CN_REPLAY_WINDOW: i was accepted */
};

void cn_auth_hello_key(const uint8_t cluster_key[CN_SIPHASH_KEY], uint8_t out[CN_SIPHASH_KEY]);
/* Starts a session between these ends. */
void cn_auth_begin(struct cn_auth *a, const uint8_t cluster_key[CN_SIPHASH_KEY],
		   const struct cn_end *us, const struct cn_end *it);

/* Writes counter and tag after the header of a frame that begins with the Ethernet header. */
void cn_auth_seal(const uint8_t key[CN_SIPHASH_KEY], uint8_t *frame, uint64_t counter,
		  const uint8_t *body, size_t len);
/* True if the tag is correct; `frame`: the collnet frame, counter and tag included. */
bool cn_auth_is_genuine(const uint8_t key[CN_SIPHASH_KEY], const uint8_t source[6],
			const uint8_t *frame, const uint8_t *body, size_t len);
/* True if a frame of the session is genuine and not a replay; records its counter. */
bool cn_auth_accept(struct cn_auth *a, const uint8_t source[6], const uint8_t *frame,
		    const uint8_t *body, size_t len);

#endif
