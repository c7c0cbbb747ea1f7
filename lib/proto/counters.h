/* SPDX-License-Identifier: BSD-2-Clause */
/* What a node counts. cn_node_stats() copies it into the public struct collnet_stats. */
#ifndef CN_COUNTERS_H
#define CN_COUNTERS_H

#include <stdint.h>

struct cn_counters {
	uint64_t frames_sent, frames_received;
	uint64_t bytes_sent, bytes_received; /* with Ethernet headers, as padded to 60 */
	uint64_t data_sent, data_resent;     /* reliable frames, the first time and again */
	uint64_t data_received;		     /* reliable frames accepted */
	uint64_t acks_sent, ack_bytes_sent, naks_sent;
	uint64_t duplicates;	 /* reliable frames that had come before */
	uint64_t gaps;		 /* reliable frames beyond a gap */
	uint64_t timeouts;	 /* of the retransmission timer */
	uint64_t rnr;		 /* reliable frames refused: no buffer */
	uint64_t bad_frames;	 /* malformed */
	uint64_t foreign_frames; /* of another protocol or receiver; hellos of another cluster */
	uint64_t stale_frames;	 /* of no session that is established */
	uint64_t version_frames; /* of another wire version or encapsulation */
};

#endif
