/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The oracle of frames: it reads the simulated wire by the wire format alone (proto/wire.h) and
 * does not use the state of the transport, except to learn which port a session begins at.
 *
 *   - no acknowledgement covers a frame that was sent and has not arrived
 *   - numbers of new frames are consecutive, and a retransmitted frame is the same frame (or its
 *     tombstone if its operation has failed)
 *   - no more frames are in flight to a peer than the transport's window
 *   - the frames in flight, counted from first transmissions and frames received in order, never
 *     exceed the W_g of the operation that sends; a refused frame (RNR) does not count until it is
 *     retransmitted
 *
 * A frame is recorded when an engine sends it and when an engine receives it.
 */
#ifndef TESTS_WIRE_ORACLE_H
#define TESTS_WIRE_ORACLE_H

#include "tools/sim/core/sim.h"

struct wire_oracle;

/* A finding calls `report` with its message. */
struct wire_oracle_config {
	const struct cn_topo *topo;
	uint32_t window; /* of the transport */
	void (*report)(void *arg, const char *text);
	/* Frames of so many bytes that an automatic window of this host may have in cables besides.
	 */
	uint32_t (*in_cables)(void *arg, uint32_t host, uint32_t bytes);
	/* Frames that this host sent in vain to teams that never sent it any, and counts no more.
	 */
	uint32_t (*in_vain)(void *arg, uint32_t host);
	/* The port of the host's transport that has this session with the node at an address, and
	 * sends frames of it. False: there is none. */
	bool (*port_of)(void *arg, uint32_t host, const uint8_t to[6], uint32_t session,
			uint16_t *out);
	void *arg;
};

struct wire_oracle *wire_oracle_new(const struct wire_oracle_config *c);
void wire_oracle_free(struct wire_oracle *o);
/* For cn_sim_trace(). */
void wire_oracle_record(void *oracle, const struct cn_sim_record *record);

/* A new team: operations are numbered from 0 again. */
void wire_oracle_team(struct wire_oracle *o);
/* W_g of operation `number` (mod 256) as it must be; COLLNET_WINDOW_OFF: not bounded, or not known.
 * cables: frames of so many bytes are allowed in cables besides, 0: none; by_acks: what counts is
 * what is not acknowledged, whatever has come. */
void wire_oracle_limit(struct wire_oracle *o, uint32_t number, uint32_t limit, uint32_t cables,
		       bool by_acks);
/* The operation is over on this host: its frames in flight leave the sum. */
void wire_oracle_over(struct wire_oracle *o, uint32_t host, uint32_t number);
/* What an operation had to carry from one host to another: bytes on the wire and frames, each frame
 * once, since the team began. */
#define WIRE_ORACLE_OPS 8u
uint64_t wire_oracle_load(const struct wire_oracle *o, uint32_t number, uint32_t from, uint32_t to);
uint64_t wire_oracle_frames(const struct wire_oracle *o, uint32_t number, uint32_t from,
			    uint32_t to);

#endif
