/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The encapsulations udp and tcp: the collnet frame behind an IPv4 header and a UDP or a TCP
 * header, addressed by MAC.
 *
 * No address is configured, and no host replies to such a frame or reports it. The destination is
 * the multicast group 224.0.0.254, which RFC 4727 reserves for experiments: hosts never send ICMP
 * about a datagram to a group (RFC 1122, 3.2.2), Linux drops one to a group that it has not joined
 * before it looks at the source, and routers never forward 224.0.0.0/24. The source is a group,
 * too, so that no socket receives the frame, although any user may join the destination: a host
 * silently discards a datagram from a group (RFC 1122, 3.2.1.3). It is 239.255 and the last two
 * bytes of the sender's MAC address, so that network cards distribute the senders over their
 * receive queues. The destination port is the number of the EtherType.
 *
 * Each datagram has DF set, the identification 0 (RFC 6864), a TTL of 1 and a checksum.
 *
 * The TCP header is there for network cards: nearly all cut TCP segments (TSO), and the kernel
 * merges those that are received (GRO), without a socket. There is no connection. ACK is the only
 * flag, with PSH on the last segment of a batch, and the sequence number counts what the link has
 * sent, because GRO merges consecutive numbers.
 */
#ifndef CN_LINK_ENCAPSULATION_H
#define CN_LINK_ENCAPSULATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"

#define CN_HEAD_MAX (CN_ETH_HEADER + CN_TCP_HEADER)
#define CN_IP_GROUP 0xe00000feu /* 224.0.0.254 */

/* Fields of the headers of a datagram or segment. */
struct cn_headers {
	enum cn_encapsulation encapsulation; /* udp or tcp */
	const uint8_t *addresses;	     /* 12 bytes: to and from, as in an Ethernet header */
	uint16_t port;
	uint16_t flow;	   /* determines the source port, so that GRO never merges two flows */
	size_t bytes;	   /* that follow the headers, 65,495 at most */
	uint32_t sequence; /* tcp */
	bool push;	   /* tcp: PSH */
};

/* Bytes of all headers before the collnet frame. */
static inline size_t cn_head_bytes(enum cn_encapsulation e)
{
	return CN_ETH_HEADER + cn_encapsulation_bytes(e);
}

/* Offset of the checksum in the UDP or TCP header. */
static inline size_t cn_checksum_offset(enum cn_encapsulation e)
{
	return e == CN_ENCAPSULATION_TCP ? 16 : 6;
}

/* Offset of the UDP or TCP header. */
#define CN_CHECKSUM_START (CN_ETH_HEADER + 20)

/*
 * Writes cn_head_bytes() of headers. The checksum of the UDP or TCP header is the sum of the
 * pseudo-header, as CHECKSUM_PARTIAL has it.
 */
void cn_headers_put(uint8_t *out, const struct cn_headers *h);

/* Adds `len` bytes to a sum of 16-bit words. All buffers but the last have an even length. */
uint64_t cn_ip_sum(uint64_t sum, const uint8_t *data, size_t len);
/* Completes the checksum in headers of cn_headers_put(); `sum` is that of the bytes behind them. */
void cn_headers_finish(uint8_t *head, enum cn_encapsulation e, uint64_t sum);

/*
 * Builds a complete frame: the collnet frame in `frame` (which has an Ethernet header) behind these
 * headers, with checksum; raw: unchanged. Returns its length; out has room for len + CN_TCP_HEADER
 * bytes.
 */
size_t cn_encapsulate(uint8_t *out, enum cn_encapsulation e, const uint8_t *frame, size_t len,
		      uint16_t port);

/*
 * The payload of a received frame: checks the headers as far as a host can, their lengths, and the
 * checksum unless it is `trusted` (verified by the network card or the kernel, or the frame never
 * left this machine). False: not a collnet frame, or damaged.
 */
bool cn_headers_get(const uint8_t *frame, size_t len, uint16_t port, bool trusted,
		    enum cn_encapsulation *e, const uint8_t **payload, size_t *bytes);

/* The encapsulation of a frame of which cn_head_bytes() are readable; raw if it is no other. */
enum cn_encapsulation cn_encapsulation_of(const uint8_t *frame);

#endif
