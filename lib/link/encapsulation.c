/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/encapsulation.h"

#include <string.h>

#include "util/byteorder.h"

#define IP	    CN_ETH_HEADER
#define IP_HEADER   20
#define L4	    CN_CHECKSUM_START /* the UDP or TCP header */
#define ETHERTYPE   0x0800
#define UDP	    17
#define TCP	    6
#define DF	    0x4000
#define SOURCE	    0xefff0000u /* 239.255.0.0 */
#define SOURCE_PORT 0xc000	/* and 14 bits, the dynamic ports */

/* TCP header: data offset in 32-bit words, flags, and a dummy window. */
#define DATA_OFFSET 0x50
#define PSH	    0x08
#define ACK	    0x10
#define WINDOW	    0xffff

uint64_t cn_ip_sum(uint64_t sum, const uint8_t *data, size_t len)
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

/* Addresses, protocol and length of what follows the IP header, `bytes` with its own header. */
static uint64_t pseudo_header(const uint8_t *frame, size_t bytes)
{
	const uint8_t rest[4] = { 0, frame[IP + 9], (uint8_t)(bytes >> 8), (uint8_t)bytes };

	return cn_ip_sum(cn_ip_sum(0, frame + IP + 12, 8), rest, sizeof(rest));
}

static void put_ip(uint8_t *ip, const struct cn_headers *h)
{
	const uint8_t *from = h->addresses + 6;

	memset(ip, 0, IP_HEADER);
	ip[0] = 0x45;
	cn_put_be16(ip + 2, (uint16_t)(cn_encapsulation_bytes(h->encapsulation) + h->bytes));
	cn_put_be16(ip + 6, DF);
	ip[8] = 1;
	ip[9] = h->encapsulation == CN_ENCAPSULATION_TCP ? TCP : UDP;
	cn_put_be32(ip + 12, SOURCE | (uint32_t)from[4] << 8 | from[5]);
	cn_put_be32(ip + 16, CN_IP_GROUP);
	fold(cn_ip_sum(0, ip, IP_HEADER), ip + 10);
	complement(ip + 10);
}

void cn_headers_put(uint8_t *out, const struct cn_headers *h)
{
	const size_t l4_bytes = cn_encapsulation_bytes(h->encapsulation) - IP_HEADER + h->bytes;
	const uint8_t *to = h->addresses;
	uint8_t *l4 = out + L4;

	memcpy(out, h->addresses, 12);
	cn_put_be16(out + 12, ETHERTYPE);
	put_ip(out + IP, h);
	cn_put_be16(l4, (uint16_t)(SOURCE_PORT | (((to[4] << 8 | to[5]) ^ h->flow) & 0x3fff)));
	cn_put_be16(l4 + 2, h->port);
	if (h->encapsulation == CN_ENCAPSULATION_TCP) {
		cn_put_be32(l4 + 4, h->sequence);
		cn_put_be32(l4 + 8, 0);
		l4[12] = DATA_OFFSET;
		l4[13] = h->push ? ACK | PSH : ACK;
		cn_put_be16(l4 + 14, WINDOW);
		cn_put_be16(l4 + 18, 0);
	} else {
		cn_put_be16(l4 + 4, (uint16_t)l4_bytes);
	}
	fold(pseudo_header(out, l4_bytes), l4 + cn_checksum_offset(h->encapsulation));
}

void cn_headers_finish(uint8_t *head, enum cn_encapsulation e, uint64_t sum)
{
	uint8_t *checksum = head + L4 + cn_checksum_offset(e);

	/* The checksum field holds the pseudo-header's sum. */
	fold(cn_ip_sum(sum, head + L4, cn_head_bytes(e) - L4), checksum);
	complement(checksum);
	if (e == CN_ENCAPSULATION_UDP && checksum[0] == 0 && checksum[1] == 0) {
		checksum[0] = checksum[1] = 0xff; /* 0 means no checksum */
	}
}

size_t cn_encapsulate(uint8_t *out, enum cn_encapsulation e, const uint8_t *frame, size_t len,
		      uint16_t port)
{
	const struct cn_headers h = {
		.encapsulation = e,
		.addresses = frame,
		.port = port,
		.bytes = len - CN_ETH_HEADER,
	};

	if (e == CN_ENCAPSULATION_RAW) {
		memcpy(out, frame, len);
		return len;
	}
	memcpy(out + cn_head_bytes(e), frame + CN_ETH_HEADER, h.bytes);
	cn_headers_put(out, &h);
	cn_headers_finish(out, e, cn_ip_sum(0, out + cn_head_bytes(e), h.bytes));
	return cn_head_bytes(e) + h.bytes;
}

static bool is_right(uint64_t sum)
{
	uint8_t folded[2];

	fold(sum, folded);
	return folded[0] == 0xff && folded[1] == 0xff;
}

enum cn_encapsulation cn_encapsulation_of(const uint8_t *frame)
{
	if (cn_get_be16(frame + 12) != ETHERTYPE) {
		return CN_ENCAPSULATION_RAW;
	}
	return frame[IP + 9] == TCP ? CN_ENCAPSULATION_TCP : CN_ENCAPSULATION_UDP;
}

/* Of a header with this many bytes from it on. */
static bool is_ours(const uint8_t *l4, enum cn_encapsulation e, size_t bytes)
{
	if (e == CN_ENCAPSULATION_TCP) {
		return l4[12] == DATA_OFFSET && (l4[13] & ~PSH) == ACK;
	}
	return cn_get_be16(l4 + 4) == bytes;
}

bool cn_headers_get(const uint8_t *frame, size_t len, uint16_t port, bool trusted,
		    enum cn_encapsulation *e, const uint8_t **payload, size_t *bytes)
{
	const uint8_t *ip = frame + IP, *l4 = frame + L4;
	enum cn_encapsulation found;
	size_t total, l4_bytes;

	if (len < cn_head_bytes(CN_ENCAPSULATION_UDP) || cn_get_be16(frame + 12) != ETHERTYPE ||
	    ip[0] != 0x45 || (ip[9] != UDP && ip[9] != TCP) || (cn_get_be16(ip + 6) & ~DF) != 0 ||
	    cn_get_be32(ip + 16) != CN_IP_GROUP || cn_get_be16(l4 + 2) != port ||
	    !is_right(cn_ip_sum(0, ip, IP_HEADER))) {
		return false;
	}
	found = cn_encapsulation_of(frame);
	total = cn_get_be16(ip + 2);
	l4_bytes = total - IP_HEADER;
	if (total > len - IP || total < cn_encapsulation_bytes(found) ||
	    !is_ours(l4, found, l4_bytes)) {
		return false;
	}
	if (!trusted && ((found == CN_ENCAPSULATION_UDP && cn_get_be16(l4 + 6) == 0) ||
			 !is_right(cn_ip_sum(pseudo_header(frame, l4_bytes), l4, l4_bytes)))) {
		return false;
	}
	*e = found;
	*payload = frame + cn_head_bytes(found);
	*bytes = total - cn_encapsulation_bytes(found);
	return true;
}
