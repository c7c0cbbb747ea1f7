/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The encapsulation udp: the collnet frame behind an IPv4 and a UDP header, addressed by MAC.
 *
 * No address is configured, and no host replies to such a frame or reports it. The destination is
 * the multicast group 224.0.0.254, which RFC 4727 reserves for experiments: hosts never send ICMP
 * about a datagram to a group (RFC 1122, 3.2.2), Linux drops one to a group that it has not joined
 * before it looks at the source, and routers never forward 224.0.0.0/24. The source is link-local,
 * 169.254 and the last two bytes of the sender's MAC address, so that network cards distribute the
 * senders over their receive queues. The destination port is the number of the EtherType.
 *
 * Each datagram has DF set, the identification 0 (RFC 6864), a TTL of 1 and a checksum.
 */
#ifndef CN_LINK_UDP_H
#define CN_LINK_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"

#define CN_UDP_HEAD  (CN_ETH_HEADER + CN_UDP_HEADER)
#define CN_UDP_GROUP 0xe00000feu /* 224.0.0.254 */

/*
 * Writes the Ethernet, IPv4 and UDP headers of a datagram of `bytes` (65,507 at most) between the
 * addresses that the 12 bytes at `addresses` are, destination first. The UDP checksum is the sum of
 * the pseudo-header, as CHECKSUM_PARTIAL has it. The source port differs between the flows of a
 * destination, so that GRO never merges the frames of two.
 */
void cn_udp_put(uint8_t out[CN_UDP_HEAD], const uint8_t addresses[12], uint16_t port, uint16_t flow,
		size_t bytes);

/* Adds `len` bytes to a sum of 16-bit words. All pieces but the last have an even length. */
uint64_t cn_udp_sum(uint64_t sum, const uint8_t *data, size_t len);
/* Puts the checksum of a datagram whose bytes have this sum into headers of cn_udp_put(). */
void cn_udp_finish(uint8_t head[CN_UDP_HEAD], uint64_t sum);

/*
 * A whole frame, from the Ethernet header of `frame` on, put behind these headers, with its
 * checksum. Returns its length; out has room for len + CN_UDP_HEADER bytes.
 */
size_t cn_udp_encapsulate(uint8_t *out, const uint8_t *frame, size_t len, uint16_t port);

/*
 * The payload of a received frame: headers as above in all that a host can check, lengths that
 * agree, and a right checksum unless it is `trusted` (the network card or the kernel verified it,
 * or the frame never left this machine). False: not one of ours, or damaged.
 */
bool cn_udp_get(const uint8_t *frame, size_t len, uint16_t port, bool trusted,
		const uint8_t **payload, size_t *bytes);

#endif
