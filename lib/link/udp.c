/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/udp.h"

#include <string.h>

#include "util/byteorder.h"

#define IP	    CN_ETH_HEADER
#define IP_HEADER   20
#define UDP	    (IP + IP_HEADER)
#define UDP_HEADER  8
#define ETHERTYPE   0x0800
#define PROTOCOL    17
#define DF	    0x4000
#define LINK_LOCAL  0xa9fe0000u /* 169.254.0.0 */
#define SOURCE_PORT 0xc000	/* and 14 bits, the dynamic ports */

uint64_t cn_udp_sum(uint64_t sum, const uint8_t *data, size_t len)
{
	uint32_t word;

	/* Sums of 32-bit words in the machine's order fold to those of 16-bit words (RFC 1071). */
	for (; len >= sizeof(word); len -= sizeof(word), data += sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		sum += word;
	}
	word = 0;
	memcpy(&word, data, len);
	return sum + word;
}

/* The sum as the two bytes that a header has. */
static void fold(uint64_t sum, uint8_t out[2])
{
	uint16_t folded;

	while (sum >> 16 != 0) {
		sum = (sum & 0xffff) + (sum >> 16);
	}
	folded = (uint16_t)sum;
	memcpy(out, &folded, sizeof(folded));
}

static void complement(uint8_t sum[2])
{
	sum[0] = (uint8_t)~sum[0];
	sum[1] = (uint8_t)~sum[1];
}

/* Addresses, protocol and length of the datagram. */
static uint64_t pseudo_header(const uint8_t *frame)
{
	const uint8_t rest[4] = { 0, PROTOCOL, frame[UDP + 4], frame[UDP + 5] };

	return cn_udp_sum(cn_udp_sum(0, frame + IP + 12, 8), rest, sizeof(rest));
}

void cn_udp_put(uint8_t out[CN_UDP_HEAD], const uint8_t addresses[12], uint16_t port, uint16_t flow,
		size_t bytes)
{
	uint8_t *ip = out + IP, *udp = out + UDP;
	const uint8_t *to = addresses, *from = addresses + 6;

	memcpy(out, addresses, 12);
	cn_put_be16(out + 12, ETHERTYPE);
	memset(ip, 0, IP_HEADER);
	ip[0] = 0x45;
	cn_put_be16(ip + 2, (uint16_t)(CN_UDP_HEADER + bytes));
	cn_put_be16(ip + 6, DF);
	ip[8] = 1;
	ip[9] = PROTOCOL;
	cn_put_be32(ip + 12, LINK_LOCAL | (uint32_t)from[4] << 8 | from[5]);
	cn_put_be32(ip + 16, CN_UDP_GROUP);
	fold(cn_udp_sum(0, ip, IP_HEADER), ip + 10);
	complement(ip + 10);
	cn_put_be16(udp, (uint16_t)(SOURCE_PORT | (((to[4] << 8 | to[5]) ^ flow) & 0x3fff)));
	cn_put_be16(udp + 2, port);
	cn_put_be16(udp + 4, (uint16_t)(UDP_HEADER + bytes));
	fold(pseudo_header(out), udp + 6);
}

void cn_udp_finish(uint8_t head[CN_UDP_HEAD], uint64_t sum)
{
	uint8_t *udp = head + UDP;

	/* The checksum field holds the pseudo-header's sum. */
	fold(cn_udp_sum(sum, udp, UDP_HEADER), udp + 6);
	complement(udp + 6);
	if (udp[6] == 0 && udp[7] == 0) { /* 0 means that there is none */
		udp[6] = udp[7] = 0xff;
	}
}

size_t cn_udp_encapsulate(uint8_t *out, const uint8_t *frame, size_t len, uint16_t port)
{
	size_t bytes = len - CN_ETH_HEADER;

	memcpy(out + CN_UDP_HEAD, frame + CN_ETH_HEADER, bytes);
	cn_udp_put(out, frame, port, 0, bytes);
	cn_udp_finish(out, cn_udp_sum(0, out + CN_UDP_HEAD, bytes));
	return CN_UDP_HEAD + bytes;
}

static bool is_right(uint64_t sum)
{
	uint8_t folded[2];

	fold(sum, folded);
	return folded[0] == 0xff && folded[1] == 0xff;
}

bool cn_udp_get(const uint8_t *frame, size_t len, uint16_t port, bool trusted,
		const uint8_t **payload, size_t *bytes)
{
	const uint8_t *ip = frame + IP, *udp = frame + UDP;
	size_t total, datagram;

	if (len < CN_UDP_HEAD || cn_get_be16(frame + 12) != ETHERTYPE || ip[0] != 0x45 ||
	    ip[9] != PROTOCOL || (cn_get_be16(ip + 6) & ~DF) != 0 ||
	    cn_get_be32(ip + 16) != CN_UDP_GROUP || cn_get_be16(udp + 2) != port ||
	    !is_right(cn_udp_sum(0, ip, IP_HEADER))) {
		return false;
	}
	total = cn_get_be16(ip + 2);
	datagram = cn_get_be16(udp + 4);
	if (total > len - IP || total < CN_UDP_HEADER || datagram != total - IP_HEADER) {
		return false;
	}
	if (!trusted && (cn_get_be16(udp + 6) == 0 ||
			 !is_right(cn_udp_sum(pseudo_header(frame), udp, datagram)))) {
		return false;
	}
	*payload = udp + UDP_HEADER;
	*bytes = datagram - UDP_HEADER;
	return true;
}
