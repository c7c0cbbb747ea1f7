/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames that a well-informed attacker sends to an engine: right in session, sequence, type and
 * stream, with control messages, streams of collectives and messages of endpoints that fit the
 * engine's present state, up to one chosen mistake.
 *
 *   kind peer wrong at value a b c seq
 *
 * kind (modulo 16): 0 JOIN, 1 COMMIT, 2 LEAVE, 3 END, STARTED or CALLED, 4 FAIL, 5 .. 9 the
 * controls of endpoints, 10 the next frame of a running operation, 11 a frame of a later operation,
 * 12 the first frame of a message, 13 a further one, 14 an emptied frame, 15 JOIN and COMMIT. wrong
 * (modulo 8): 0 nothing, 1 the payload is cut at `at`, 2 its byte `at` has the value, 3 `at` bytes
 * follow it, 4 flags, 5 the stream, 6 the length in the header, 7 a bit. a, b, c: numbers of job,
 * team, endpoint, range; seq: a deviation of the sequence number.
 */
#ifndef FUZZ_FORGE_H
#define FUZZ_FORGE_H

#include "coll/engine.h"
#include "script.h"

/* For a mutator's grammar (mutate.h) with sub = 16. */
#define FORGE_ARGS "iwbbiiid"
#define FORGE_STEPS                                                                                \
	{ 15, 0, 4, FORGE_ARGS }, { 15, 1, 2, FORGE_ARGS }, { 15, 2, 2, FORGE_ARGS },              \
		{ 15, 3, 2, FORGE_ARGS }, { 15, 4, 2, FORGE_ARGS }, { 15, 5, 2, FORGE_ARGS },      \
		{ 15, 6, 2, FORGE_ARGS }, { 15, 7, 2, FORGE_ARGS }, { 15, 8, 2, FORGE_ARGS },      \
		{ 15, 9, 2, FORGE_ARGS }, { 15, 10, 16, FORGE_ARGS }, { 15, 11, 3, FORGE_ARGS },   \
		{ 15, 12, 8, FORGE_ARGS }, { 15, 13, 8, FORGE_ARGS }, { 15, 14, 2, FORGE_ARGS },   \
	{                                                                                          \
		15, 15, 8, FORGE_ARGS                                                              \
	}

/* Job names are "j0" and "j1"; endpoints have numbers below 8. */
void forge_frame(struct script *s, struct cn_engine *e, uint64_t owner);

#endif
