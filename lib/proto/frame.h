/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames between the transport and a link.
 *
 * A frame to send: the head (Ethernet header, wire header, and the body of small control frames) is
 * copied into the frame; the payload points into a user's buffer or a pool, and is valid until the
 * next call into the transport. A link sends both at once or copies them; it pads to 60 bytes.
 *
 * The collnet frame begins with the wire header. It follows the Ethernet header in the head of a
 * frame to send. In a received frame the two are apart, because on the wire the headers of an
 * encapsulation can lie between them, which only the link knows.
 */
#ifndef CN_FRAME_H
#define CN_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CN_ETH_HEADER	 14
#define CN_UDP_HEADER	 28 /* IPv4 without options, and UDP */
#define CN_TCP_HEADER	 40 /* and TCP without options */
#define CN_ETH_MIN	 60
#define CN_FRAME_MTU_MIN 576 /* of an interface, besides the headers of the encapsulation */
/* Frames that a link sends at once: of MTU 1500 in the 64 KiB of an IPv4 datagram. */
#define CN_SUPER_FRAME_MAX 44
#define CN_FRAME_HEAD	   192 /* Ethernet header + wire header + counter, tag + largest hello */

/* The headers between the Ethernet header and the collnet frame on the wire. */
enum cn_encapsulation {
	CN_ENCAPSULATION_RAW, /* nothing: an EtherType of its own */
	CN_ENCAPSULATION_UDP, /* an IPv4 and a UDP header */
	CN_ENCAPSULATION_TCP, /* an IPv4 and a TCP header */
	CN_ENCAPSULATIONS
};
#define CN_ENCAPSULATION_NAMES	 "raw, udp, tcp"
#define CN_ENCAPSULATION_DEFAULT CN_ENCAPSULATION_UDP /* of links; pcap has none but raw */

/* Bytes of its headers per frame. */
static inline uint32_t cn_encapsulation_bytes(enum cn_encapsulation e)
{
	static const uint8_t bytes[CN_ENCAPSULATIONS] = { 0, CN_UDP_HEADER, CN_TCP_HEADER };

	return bytes[e];
}

static inline const char *cn_encapsulation_name(enum cn_encapsulation e)
{
	static const char *const names[CN_ENCAPSULATIONS] = { "raw", "udp", "tcp" };

	return names[e];
}

/* Parses the name; false: unknown. */
static inline bool cn_parse_encapsulation(const char *name, enum cn_encapsulation *out)
{
	for (int e = 0; e < CN_ENCAPSULATIONS; e++) {
		if (strcmp(name, cn_encapsulation_name((enum cn_encapsulation)e)) == 0) {
			*out = (enum cn_encapsulation)e;
			return true;
		}
	}
	return false;
}

struct cn_frame {
	uint8_t head[CN_FRAME_HEAD];
	uint16_t head_len;
	uint16_t flow; /* of cn_wire_flow(): a super-frame has frames of one flow */
	uint16_t payload_len;
	bool ends; /* the last frame of a super-frame that is long enough */
	const uint8_t *payload;
};

struct cn_rx_frame {
	const uint8_t *ether; /* the Ethernet header */
	const uint8_t *data;  /* the collnet frame */
	size_t len;	      /* bytes of the collnet frame; padding included */
	enum cn_encapsulation encapsulation;
	const uint8_t *payload; /* payload, if not contiguous with the header; else NULL */
};

/* Where the payloads of a super-frame are expected to belong (direct data placement). */
struct cn_rx_place {
	uint8_t *at;	 /* destination of the payloads, from the first frame on */
	size_t room;	 /* bytes */
	uint32_t header; /* bytes of a frame before its payload */
};

/*
 * Direct data placement: where the payloads of a super-frame may be received whose first frame has
 * this header (len bytes, only the header is readable). False: not known. All frames received
 * before it have been processed. Frames that belong elsewhere are moved when they are processed;
 * until then the memory must not be read.
 */
typedef bool cn_rx_place_fn(void *ctx, const struct cn_rx_frame *first, struct cn_rx_place *out);

/* A received frame of `len` bytes (at least CN_ETH_HEADER) in which the collnet frame follows the
 * Ethernet header. */
static inline struct cn_rx_frame cn_rx_frame_raw(const uint8_t *frame, size_t len)
{
	return (struct cn_rx_frame){ frame, frame + CN_ETH_HEADER, len - CN_ETH_HEADER,
				     CN_ENCAPSULATION_RAW, NULL };
}

#endif
