/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mutator for inputs that are lists of steps. It inserts, removes, repeats and moves whole steps
 * and changes single arguments, so that a mutation of a valid script is a valid script; a share of
 * the mutations is left to the byte mutator. libFuzzer calls it through LLVMFuzzerCustomMutator(),
 * the replay main too.
 *
 * A harness describes its steps once, in `mutate_grammar`. A step is a code byte and arguments,
 * each of them described by a letter:
 *
 *   b  a byte, any value             i  an index: a small number, rarely any value
 *   q  a number of a request: below 8, rarely any value
 *   d  a deviation: 0 is right; rarely another small number, of either sign
 *   t  an exponent of a time in nanoseconds, mostly 2^14 .. 2^33
 *   l  flags: mostly one bit or none
 *   n  a count, and as many bytes    k  a count modulo 4, and as many pairs of bytes
 *   y  a type, mostly a valid one     w  what is wrong: half the time 0, nothing; else small
 *   m  four bytes: 0, or a bitmap with the highest bit set, or any value
 */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#define MUTATE_ANY (-1)

struct mutate_step {
	uint8_t code;
	int16_t sub;	/* next byte, modulo the grammar's `sub`; MUTATE_ANY: there is none */
	uint8_t weight; /* how often it is inserted; 0: never */
	const char *args;
};

struct mutate_grammar {
	size_t head;  /* bytes before the first step */
	uint8_t mask; /* bits of the first byte that are the code; the others are random */
	uint8_t sub;
	size_t n;
	const struct mutate_step *steps;
};

extern const struct mutate_grammar mutate_grammar;

/* libFuzzer's; tests/fuzz/replay.c has one of its own. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
/* Returns the new size, at most max_size. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

#endif
