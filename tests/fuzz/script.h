/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes as a story that happens to a transport: frames come in, time passes, frames go out. Random
 * bytes alone would hardly get past the first checks of a frame, so a script can also ask for
 * frames whose header is right up to the point where it chooses to be wrong.
 *
 * A script is a list of steps, each of them a byte and its arguments (what is missing is 0):
 *
 *   0 peer n bytes[n]               a frame with these bytes after the Ethernet header
 *   1 peer type flags seq ack stream[4] n bytes[n]
 *                                   a frame of the peer's session; seq and ack are added to the
 *                                   numbers that would be right, and the length is a lie
 *                                   where the high four bits of the type are not 0
 *   2 peer flags epoch life n       a hello, with a name of n bytes
 *   3 t                             time passes: 2^(t mod 36) ns
 *   4 n                             up to n frames go out
 *   5                               the deadline passes
 *   other                           for the harness
 */
#ifndef FUZZ_SCRIPT_H
#define FUZZ_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/node.h"

#define SCRIPT_PEERS 4u

struct script {
	const uint8_t *data;
	size_t len, at;
	cn_time now;
	struct cn_node *node; /* whose frames these are */
	void *machine;	      /* what gets the four calls: a node, or an engine */
	void (*input)(void *machine, cn_time now, const uint8_t *frame, size_t len);
	bool (*output)(void *machine, cn_time now, struct cn_frame *out);
	cn_time (*deadline)(const void *machine);
	void (*expire)(void *machine, cn_time now);
	/* A step that the script does not know. */
	void (*other)(struct script *s, uint8_t step);
};

/* The next byte; 0 at the end. */
uint8_t script_byte(struct script *s);
/* Runs to the end. Aborts where a frame that goes out is malformed. */
void script_run(struct script *s);
/* Aborts unless it holds: a finding. */
void script_check(bool holds);

#endif
