/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What bare raw sockets do on an interface: the yardstick of `collnet bench --bare`.
 *
 * Plain AF_PACKET as an expert would write it for the one purpose, with nothing of the transport
 * or of the links in it: no reliability, no windows, no headers but sixteen bytes. Two sides,
 * each with a struct cn_bare on its node, call the matching functions towards each other's
 * address. All calls spin, and end by their deadline (CLOCK_MONOTONIC, nanoseconds) at the
 * latest, with COLLNET_ETIMEOUT.
 */
#ifndef CN_BARE_H
#define CN_BARE_H

#include "util/util.h"

#define CN_BARE_ETHERTYPE   0x88B6
#define CN_BARE_PAYLOAD_MIN 16 /* of a frame, after the Ethernet header */

struct cn_bare;

/* `interface` NULL: the only one, as for cn_link_open(), with the same errors. */
int cn_bare_open(const char *interface, uint16_t ethertype, struct cn_bare **out,
		 struct cn_err *err);
void cn_bare_close(struct cn_bare *b);
const uint8_t *cn_bare_mac(const struct cn_bare *b);
uint32_t cn_bare_mtu(const struct cn_bare *b);

/*
 * Round trips of frames with `payload` bytes after the Ethernet header (CN_BARE_PAYLOAD_MIN ..
 * MTU). The initiator writes `iterations` times into rtt_ns; the other side passes its rtt_ns as
 * NULL and is done when the initiator is. A lost frame is sent again after 10 ms and its round
 * trip measured anew; *lost (may be NULL) counts these.
 */
int cn_bare_pingpong(struct cn_bare *b, const uint8_t peer[6], bool initiator, uint32_t payload,
		     uint32_t iterations, uint64_t *rtt_ns, uint64_t *lost, cn_time deadline,
		     struct cn_err *err);

struct cn_bare_rate {
	uint64_t frames; /* received */
	uint64_t lost;	 /* sent and not received */
	uint64_t ns;	 /* from the first to the last of them */
	double per_second;
};

/* Waits for the receiver, sends for duration_ns as fast as it can, and says so. */
int cn_bare_stream_send(struct cn_bare *b, const uint8_t peer[6], uint32_t payload,
			uint64_t duration_ns, uint64_t *sent, cn_time deadline, struct cn_err *err);
/* Counts what the sender sends. */
int cn_bare_stream_recv(struct cn_bare *b, const uint8_t peer[6], struct cn_bare_rate *out,
			cn_time deadline, struct cn_err *err);

#endif
