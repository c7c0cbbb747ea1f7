/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a fixture for schedules, for its two files. */
#ifndef SCHED_FIXTURE_IMPL_H
#define SCHED_FIXTURE_IMPL_H

#include "sched_fixture.h"

#define POISON 0xee

struct w_frame {
	uint8_t data[W_FRAME];
	uint32_t len;
	bool last; /* of its message */
};

/* The stream of bytes from one node to another. */
struct w_stream {
	uint32_t *sends, *recvs; /* actions at either side, in list order */
	uint32_t nsends, nrecvs;
	uint32_t sent, received; /* messages */
	struct w_frame *frames;	 /* on the wire */
	uint32_t head, tail, cap;
};

struct w_state {
	uint64_t done; /* bytes */
	bool complete;
};

struct w_node {
	struct cn_sched sched;
	struct w_state *state;
	uint32_t ncopies, *copies;	 /* and REDUCE actions */
	uint32_t ndests, dests[W_NODES]; /* by first appearance */
	uint32_t turn;			 /* of dests, or the place in the list */
};

struct sched_fixture {
	const struct w_team *team;
	struct cn_plan plan;
	struct w_node nodes[W_NODES];
	struct w_stream streams[W_NODES][W_NODES]; /* from, to */
	uint8_t *send[W_RANKS], *recv[W_RANKS], *writes[W_RANKS], *scratch[W_RANKS];
	uint64_t send_bytes, recv_bytes; /* of a buffer */
	uint64_t scratch_bytes[W_RANKS];
};

/* Byte i of the block from a rank to a rank. */
uint8_t w_pattern(uint32_t from, uint32_t to, uint64_t i);

#endif
