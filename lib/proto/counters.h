/* SPDX-License-Identifier: BSD-2-Clause */
/* A node's counters. cn_node_stats() copies them into the public struct collnet_stats. */
#ifndef CN_COUNTERS_H
#define CN_COUNTERS_H

#include <stdint.h>

struct cn_counters {
	uint64_t frames_sent, frames_received;
	uint64_t bytes_sent, bytes_received; /* including Ethernet headers and padding to 60 */
	uint64_t data_sent, data_resent; /* reliable frames: first transmissions, retransmissions */
	uint64_t data_received;		 /* reliable frames accepted */
	uint64_t acks_sent, ack_bytes_sent, naks_sent;
	uint64_t duplicates;	 /* reliable frames received again */
	uint64_t gaps;		 /* reliable frames received out of order */
	uint64_t timeouts;	 /* of the retransmission timer */
	uint64_t rnr;		 /* reliable frames refused (RNR): no buffer */
	uint64_t bad_frames;	 /* malformed */
	uint64_t foreign_frames; /* other protocol or receiver; hellos of another cluster */
	uint64_t stale_frames;	 /* no established session */
	uint64_t version_frames; /* another wire version or encapsulation */
};

#endif
