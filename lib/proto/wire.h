/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire format. Every frame begins, after the 14 bytes of the Ethernet header, with 24 bytes
 * in network byte order:
 *
 *  offset bytes  field
 *    0     2     magic      0xC011; a frame with another one is dropped unread
 *    2     1     version    high four bits, 3. Of a frame of another version nothing else is
 *                           read. The next bit is 1 if the frame is authenticated: a counter
 *                           (8 bytes) and a tag (16) then follow the header (proto/auth.h).
 *                           The low three bits are the type (enum cn_type)
 *    3     1     flags      CN_FLAG_..., below
 *    4     2     length     bytes that follow this header, and counter and tag (Ethernet pads
 *                           short frames to 60)
 *    6     2     port to    the receiver's transport: 0 is the node's own, which all hellos are
 *                           for; every team has another one
 *    8     4     session    a hash of both ends' epochs and nonces, which identifies the sender's
 *                           transport and cluster; 0 in a hello, except a goodbye. A frame of
 *                           another session is dropped
 *   12     4     seq        reliable frames: number in the sequence to this peer. Acknowledgements:
 *                           number of the next one
 *   16     4     ack        cumulative: next number expected from this peer
 *   20     4     stream     collective: operation (12), its number (12), algorithm and more (8)
 *                           message: endpoint to (16), endpoint from (16)
 *                           negative acknowledgement: SACK, CN_SACK_... below
 *                           MTU_PROBE: number of the try (16); in an authenticated frame the
 *                           bytes of padding (16), else 0
 *                           MTU_REPLY: that number (16), size of the largest probe of it that
 *                           came, without its Ethernet header (16)
 *
 * Types CONTROL, COLL and MESSAGE are reliable and share one sequence per direction between two
 * ports; each carries an acknowledgement. COLL frames go between the ports of a team, MESSAGE
 * frames between the nodes' own. ACK frames carry no data; HELLO frames have a body:
 *
 *    0     8     epoch      of the sender's transport, random, new at every start, never 0
 *    8     4     nonce      its low half
 *   12     4     mtu        of the sender
 *   16     2     cluster    id of the cluster; a hello of another one is dropped
 *   18     1     length of the name
 *   19     n     name       1 .. 63 bytes
 *
 * and use the fields of the header otherwise, where UNICAST is set (else they are 0):
 *
 *   12     8     seq, ack   echo: the nonce that the receiver sent last; 0: unknown
 *   20     4     stream     nonce: its high half. The sender's for this receiver, never 0
 *
 * or, with BYE as well: the session, and in seq the session's goodbye token.
 *
 * A nonce is sent in unicast hellos alone. A node that echoes it receives what is sent to its
 * address. Session id, first sequence number and goodbye token of each direction are hashes of both
 * epochs and nonces (cn_session()), so they are unknown to a node that receives broadcasts alone.
 * lib/proto/hello.c has the handshake.
 */
#ifndef CN_WIRE_H
#define CN_WIRE_H

#include "proto/node.h"
#include "util/siphash.h"

#define CN_WIRE_MAGIC	0xC011u
#define CN_WIRE_VERSION 3u
#define CN_WIRE_HEADER	24
#define CN_HEAD		(CN_ETH_HEADER + CN_WIRE_HEADER)
#define CN_WIRE_AUTH	(8 + CN_SIPHASH_TAG) /* counter and tag */
#define CN_HELLO_FIXED	19
#define CN_HELLO_MAX	(CN_HELLO_FIXED + COLLNET_NAME_MAX)

/* ACK request: acknowledge this frame at once. HELLO: a challenge, reply in any case. */
#define CN_FLAG_ACKREQ 0x01
/* ACK: frame `ack` is missing, retransmit from it. */
#define CN_FLAG_NAK 0x02
/* ACK: receiver not ready, no buffer is free: wait, then retransmit from `ack`. */
#define CN_FLAG_RNR 0x04
/* HELLO: reply with a hello. Unicast: the sender has no session with the receiver. */
#define CN_FLAG_SOLICIT 0x08
/* HELLO: goodbye, the sender's transport ends; the low half of the nonce is enum cn_bye. */
#define CN_FLAG_BYE 0x40
/* HELLO: for this receiver alone; nonce and echo are valid. */
#define CN_FLAG_UNICAST 0x80
/* CN_FLAG_FIRST 0x10, CN_FLAG_ROOM 0x10 and CN_FLAG_LAST 0x20: proto/node.h */
/* ACK: a probe of the path MTU, whose padding follows the header; the answer to one. */
#define CN_FLAG_MTU_PROBE 0x10
#define CN_FLAG_MTU_REPLY 0x20
/* ACK: the sender has given the session up, as it did not hear the receiver (RST); stream: how many
 * nodes of the port it does not hear, 0: not stated. */
#define CN_FLAG_RESET 0x40

/* Selective acknowledgement (SACK) of a NAK. 0: none, all frames from `ack` on are missing. */
#define CN_SACK_BITMAP 0x000000ffu /* bit i: frame ack + 1 + i is in the reorder buffer */
#define CN_SACK_VALID  0x80000000u /* the bitmap is valid */

struct cn_wire {
	uint8_t version; /* as read; cn_wire_put() writes CN_WIRE_VERSION */
	uint8_t type, flags;
	bool authenticated;
	uint16_t length, port_to;
	uint32_t session, seq, ack, stream;
};

struct cn_hello {
	uint64_t epoch;
	uint32_t nonce, mtu;
	uint16_t cluster;
	char name[COLLNET_NAME_MAX + 1];
};

enum cn_wire_fault {
	CN_WIRE_OK = 0,
	CN_WIRE_FOREIGN,	 /* not collnet's: magic */
	CN_WIRE_BAD,		 /* short or inconsistent */
	CN_WIRE_FOREIGN_VERSION, /* another wire version; of w only version is valid */
};

/* Bytes of a collnet frame that precede its body. */
static inline uint32_t cn_wire_header(bool authenticated)
{
	return CN_WIRE_HEADER + (authenticated ? CN_WIRE_AUTH : 0);
}

/* Bytes per frame of the encapsulation and, with authentication, of counter and tag. */
static inline uint32_t cn_wire_overhead(enum cn_encapsulation e, bool authenticated)
{
	return cn_encapsulation_bytes(e) + cn_wire_header(authenticated) - CN_WIRE_HEADER;
}

/* The body (w->length bytes) of a frame that cn_wire_get() has read. */
static inline const uint8_t *cn_wire_body(const struct cn_rx_frame *f, const struct cn_wire *w)
{
	return f->payload != NULL ? f->payload : f->data + cn_wire_header(w->authenticated);
}

/* Writes the 24 bytes. */
void cn_wire_put(uint8_t out[CN_WIRE_HEADER], const struct cn_wire *w);
/* Reads and checks header and length; `len` is what came after the Ethernet header. */
enum cn_wire_fault cn_wire_get(const uint8_t *in, size_t len, struct cn_wire *w);

/*
 * The flow of a frame. The frames of a team have one flow, the messages to an endpoint another. No
 * two teams of a node share a flow; two endpoints do if their numbers differ by a multiple of
 * CN_FLOWS.
 */
#define CN_FLOWS 0x2000u
static inline uint16_t cn_wire_flow(const struct cn_wire *w)
{
	return (uint16_t)(w->type == CN_TYPE_MESSAGE ? CN_FLOWS | (w->stream >> 16) % CN_FLOWS
						     : w->port_to % CN_FLOWS);
}

/* True if a frame requests an acknowledgement; false if it is short or not collnet's. */
bool cn_wire_requests_ack(const uint8_t *in, size_t len);

/* The destination port of a frame; 0 also if it is short or not collnet's. */
uint16_t cn_wire_port(const uint8_t *in, size_t len);

/* Writes the body and returns its length; reads a body of exactly `len` bytes. */
size_t cn_hello_put(uint8_t out[CN_HELLO_MAX], const struct cn_hello *h);
bool cn_hello_get(const uint8_t *in, size_t len, struct cn_hello *h);
/* The cluster of a body of 18 bytes or more; whether a body is that of another cluster; false where
 * it is too short to say so. */
uint16_t cn_hello_cluster(const uint8_t *in);
bool cn_hello_is_foreign(const uint8_t *in, size_t len, uint16_t cluster);

/* One end of a session, and what both ends derive from the two: of the frames from one to other. */
struct cn_end {
	uint64_t epoch, nonce;
};
struct cn_session {
	uint32_t id;	/* never 0 */
	uint32_t first; /* number of the first reliable frame */
	uint32_t bye;	/* in the goodbye, besides the id */
};
struct cn_session cn_session(const struct cn_end *from, const struct cn_end *to);

#endif
