/* SPDX-License-Identifier: BSD-2-Clause */
/* Discovery and the handshake; hello.c describes them. */
#ifndef CN_HELLO_H
#define CN_HELLO_H

#include "util/util.h"

struct cn_node;
struct cn_peer;
struct cn_wire;

/* Minimum interval of hellos to one address for one cause. */
#define CN_HELLO_SPACING (20 * CN_MS)
/* With authentication: hellos per second, and the burst, to addresses that sent only frames without
 * a session. */
#define CN_HELLO_STRAYS 8u

/* Why a unicast hello is sent. All but the last are limited to one per CN_HELLO_SPACING and
 * address. */
enum cn_hello_why {
	CN_HELLO_BEGIN,	    /* a broadcast hello, or a frame of an unknown session */
	CN_HELLO_REPLY,	    /* a unicast hello that does not echo our nonce */
	CN_HELLO_CHALLENGE, /* one that does, but does not fit the session; never delayed */
	CN_HELLO_PROOF,	    /* the first one that establishes a session: not limited */
};
#define CN_HELLO_LIMITED 3

/* Hellos to one peer. */
struct cn_hello_state {
	bool due;
	bool challenged;	    /* with a fresh nonce, and not answered since */
	bool fresh;		    /* sent with a fresh nonce, not that of the session */
	uint8_t flags, later_flags; /* flags of the hello that is due, and of the one due later */
	uint64_t echo, later_echo;  /* the nonce that it echoes; 0: none */
	cn_time later_at;	    /* CN_NEVER: none */
	cn_time last[CN_HELLO_LIMITED]; /* by cause */
};

void cn_hello_input(struct cn_node *n, const uint8_t mac[6], const struct cn_wire *w,
		    const uint8_t *body);
/* hello.later_at has come. */
void cn_hello_later(struct cn_peer *p);
/* A frame without a session was received from this address. p: its peer, or NULL. */
void cn_hello_stray(struct cn_node *n, const uint8_t mac[6], struct cn_peer *p);
/* The nonce of the hello that is due. */
uint64_t cn_hello_nonce(const struct cn_peer *p);
/* Our nonce for an address; never 0. */
uint64_t cn_nonce(const struct cn_node *n, const uint8_t mac[6], uint64_t generation);

#endif
