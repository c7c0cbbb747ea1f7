/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes as a script for a transport: frames arrive, time passes, frames are sent. Random bytes
 * alone would rarely pass the first checks of a frame, so a script can also request frames whose
 * header is valid up to a chosen error.
 *
 * A script is a list of steps, each of them a byte and its arguments (missing ones are 0):
 *
 *   0 peer n bytes[n]               a frame with these bytes after the Ethernet header
 *   1 peer type flags seq ack stream[4] n bytes[n]
 *                                   a frame of the peer's session; seq and ack are added to the
 *                                   correct numbers, and the length is wrong
 *                                   where the high four bits of the type are not 0
 *   2 peer flags epoch how n        a hello, with a name of n bytes; how: which of its nonce,
 *                                   echo and epoch are right (script.c, nonces())
 *   3 t                             time passes: 2^(t mod 36) ns
 *   4 n                             up to n frames go out; the peers answer the probes of the
 *                                   path MTU among them, if n < 128
 *   5                               the deadline passes
 *   13 peer                         the peer says hello as it should, and is up
 *   14 peer type flags seq ack stream[4] n n
 *                                   as 1, with a payload of n (two bytes) modulo the largest + 8
 *   other                           for the harness
 */
#ifndef FUZZ_SCRIPT_H
#define FUZZ_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

#define SCRIPT_PEERS 4u

/* The steps above, for a mutator's grammar (mutate.h). */
#define SCRIPT_STEPS                                                                               \
	{ 0, MUTATE_ANY, 1, "in" }, { 1, MUTATE_ANY, 10, "iylddmn" },                              \
		{ 2, MUTATE_ANY, 2, "iliii" }, { 3, MUTATE_ANY, 3, "t" },                          \
		{ 4, MUTATE_ANY, 4, "b" }, { 5, MUTATE_ANY, 5, "" }, { 13, MUTATE_ANY, 6, "i" },   \
	{                                                                                          \
		14, MUTATE_ANY, 4, "iylddmbb"                                                      \
	}

struct script {
	const uint8_t *data;
	size_t len, at;
	cn_time now;
	struct cn_node *node;	      /* whose frames these are */
	uint32_t probe[SCRIPT_PEERS]; /* number << 16 | size of one that has no answer; 0: none */
	void *machine;		      /* what gets the four calls: a node, or an engine */
	void (*input)(void *machine, cn_time now, const uint8_t *frame, size_t len);
	bool (*output)(void *machine, cn_time now, struct cn_frame *out);
	cn_time (*deadline)(const void *machine);
	void (*expire)(void *machine, cn_time now);
	/* A step that the script does not know. */
	void (*other)(struct script *s, uint8_t step);
	/* After a deadline has passed: what must have ended by now. NULL: nothing. */
	void (*expired)(struct script *s);
};

/* The next byte; 0 at the end. */
uint8_t script_byte(struct script *s);
/* An Ethernet header from a peer of the script. */
void script_ethernet(const struct script *s, uint8_t peer, uint8_t frame[CN_ETH_HEADER]);
/* Delivers a copy of exactly that size. */
void script_deliver(struct script *s, const uint8_t *frame, size_t len);
/*
 * A reliable frame of the peer's session with a transport (`node`). wire gives type, flags and
 * stream; seq and ack are deviations from the right numbers; the length is that of the payload,
 * plus wire->length. Nothing happens where the peer is not known.
 */
void script_session_frame(struct script *s, struct cn_node *node, uint8_t peer,
			  const struct cn_wire *wire, const uint8_t *payload, size_t len);
/* Passes the next deadline, if there is one not later than `until`; else false. */
bool script_pass_deadline(struct script *s, cn_time until);
/* All peers of the script are down, and their buffers are free. */
void script_end_peers(struct script *s);
/*
 * Two machines exchange frames and time until over() is true; false: not within a bounded number
 * of rounds, or of virtual time.
 */
bool script_exchange(struct script *a, struct script *b, bool (*over)(void *ctx), void *ctx);
/* Runs to the end. Aborts where a frame that goes out is malformed. */
void script_run(struct script *s);
/* Aborts unless it holds: a finding. */
void script_check(bool holds);

#endif
