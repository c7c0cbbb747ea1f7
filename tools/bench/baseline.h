/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames on a raw socket, without the transport: the baseline of `collnet bench --baseline`.
 *
 * Plain AF_PACKET as an expert would write it for this purpose, with nothing of the transport
 * or of the links in it: no reliability, no windows, no headers but sixteen bytes. Two sides,
 * each with a struct baseline on its node, call the matching functions towards each other's
 * address. All calls spin, and end by their deadline (CLOCK_MONOTONIC, nanoseconds) at the
 * latest, with COLLNET_ETIMEOUT.
 */
#ifndef BASELINE_H
#define BASELINE_H

#include "util/util.h"

#define BASELINE_ETHERTYPE   0x88B6
#define BASELINE_PAYLOAD_MIN 16 /* of a frame, after the Ethernet header */

struct baseline;

/* `interface` NULL: the only one, as for cn_link_open(), with the same errors. */
int baseline_open(const char *interface, uint16_t ethertype, struct baseline **out,
		  struct cn_err *err);
void baseline_close(struct baseline *b);
const uint8_t *baseline_mac(const struct baseline *b);

/*
 * Round trips of frames with `payload` bytes after the Ethernet header (BASELINE_PAYLOAD_MIN ..
 * MTU). The initiator writes `iterations` times into rtt_ns; the other side passes its rtt_ns as
 * NULL and is done when the initiator is. A lost frame is sent again after 10 ms and its round
 * trip measured anew; *lost (may be NULL) counts these.
 */
int baseline_pingpong(struct baseline *b, const uint8_t peer[6], bool initiator, uint32_t payload,
		      uint32_t iterations, uint64_t *rtt_ns, uint64_t *lost, cn_time deadline,
		      struct cn_err *err);

struct baseline_rate {
	uint64_t frames; /* received */
	uint64_t lost;	 /* sent and not received */
	uint64_t ns;	 /* from the first to the last of them */
	double per_second;
};

/* Waits for the receiver, sends for duration_ns as fast as it can, and reports how many it sent. */
int baseline_stream_send(struct baseline *b, const uint8_t peer[6], uint32_t payload,
			 uint64_t duration_ns, uint64_t *sent, cn_time deadline,
			 struct cn_err *err);
/* Counts what the sender sends. */
int baseline_stream_recv(struct baseline *b, const uint8_t peer[6], struct baseline_rate *out,
			 cn_time deadline, struct cn_err *err);

#endif
