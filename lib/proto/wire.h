/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire format. Every frame begins, after the 14 bytes of the Ethernet header, with 24 bytes
 * in network byte order:
 *
 *  offset bytes  field
 *    0     2     magic      0xC011; anything else is a stranger's and dropped unread
 *    2     1     version    high four bits, 1; low four bits: type (enum cn_type)
 *    3     1     flags      CN_FLAG_..., below
 *    4     2     cluster    id of the cluster; another one is dropped
 *    6     2     length     bytes that follow this header (Ethernet pads short frames to 60)
 *    8     4     session    both nodes' epochs, mixed; 0 in a hello. A frame of an older life of
 *                           either node does not match and is dropped
 *   12     4     seq        reliable frames: number in the sequence to this peer
 *   16     4     ack        next number expected from this peer (all before it have come)
 *   20     4     stream     collective: slot (16), operation (8), signature (8)
 *                           message: endpoint to (16), endpoint from (16)
 *                           negative acknowledgement: CN_NAK_..., below
 *                           probe (SIZE): number of the try (16), 0 (16)
 *                           its answer (SIZED): that number (16), size of the largest probe of
 *                           it that came, without its Ethernet header (16)
 *
 * Types CONTROL, COLL and MESSAGE are reliable and share one sequence a peer and direction; every
 * one of them carries an acknowledgement. ACK frames carry no data; HELLO frames have a body:
 *
 *    0     8     epoch      of the sender's transport, new at every start, never 0
 *    8     4     life       which life of the connection to this receiver; only with UNICAST
 *   12     4     mtu        of the sender
 *   16     1     length of the name
 *   17     n     name       1 .. 63 bytes
 *
 * The first message of a sequence has number first_seq = mix(session); there is no connection
 * set-up beyond a hello each way, from which both sides compute session and first number.
 */
#ifndef CN_WIRE_H
#define CN_WIRE_H

#include "proto/node.h"

#define CN_WIRE_MAGIC 0xC011u
#define CN_WIRE_VERSION 1u
#define CN_WIRE_HEADER 24
#define CN_HEAD (CN_ETH_HEADER + CN_WIRE_HEADER)
#define CN_HELLO_FIXED 17
#define CN_HELLO_MAX (CN_HELLO_FIXED + COLLNET_NAME_MAX)

#define CN_FLAG_ASK 0x01     /* acknowledge this one at once */
#define CN_FLAG_NAK 0x02     /* ACK: a frame is missing, go back to `ack` */
#define CN_FLAG_BUSY 0x04    /* ACK: no buffer, wait, then go back to `ack` */
#define CN_FLAG_WANT 0x08    /* HELLO: answer with a hello of your own */
#define CN_FLAG_BYE 0x40     /* HELLO: this node's transport ends */
#define CN_FLAG_UNICAST 0x80 /* HELLO: for this receiver alone; `life` is valid */
/* CN_FLAG_FIRST 0x10 and CN_FLAG_LAST 0x20: proto/node.h */
#define CN_FLAG_SIZE 0x10  /* ACK: a probe of the path MTU; padding may follow the header */
#define CN_FLAG_SIZED 0x20 /* ACK: the answer to a probe */

/* What a negative acknowledgement says of the frames beyond the missing one, `ack`. 0: nothing; all
 * are to be sent again. */
#define CN_NAK_HELD 0x000000ffu /* bit i: frame ack + 1 + i is here */
#define CN_NAK_MAP 0x80000000u  /* those bits are valid: what they say is here is not sent again, nor
				 * what was sent after the last of these, which is still on its way */

struct cn_wire {
	uint8_t type, flags;
	uint16_t cluster, length;
	uint32_t session, seq, ack, stream;
};

struct cn_hello {
	uint64_t epoch;
	uint32_t life, mtu;
	char name[COLLNET_NAME_MAX + 1];
};

enum cn_wire_fault {
	CN_WIRE_OK = 0,
	CN_WIRE_FOREIGN, /* not ours: magic, or another cluster */
	CN_WIRE_BAD,	 /* ours, but short, of another version, or inconsistent */
};

/* Writes the 24 bytes. */
void cn_wire_put(uint8_t out[CN_WIRE_HEADER], const struct cn_wire *w);
/* Reads and checks header and length; `len` is what came after the Ethernet header. */
enum cn_wire_fault cn_wire_get(const uint8_t *in, size_t len, uint16_t cluster, struct cn_wire *w);

/* Writes the body and returns its length; reads a body of exactly `len` bytes. */
size_t cn_hello_put(uint8_t out[CN_HELLO_MAX], const struct cn_hello *h);
bool cn_hello_get(const uint8_t *in, size_t len, struct cn_hello *h);

/* Session of the frames from the node with epoch and life `a` to the one with `b`. Never 0. */
uint32_t cn_session(uint64_t epoch_a, uint32_t life_a, uint64_t epoch_b, uint32_t life_b);

#endif
