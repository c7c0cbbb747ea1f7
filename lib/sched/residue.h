/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Modular arithmetic for schedules that combine two cyclic sequences of different lengths, such as
 * the hosts of two subtrees. Elements i mod a and i mod b meet every a b / gcd(a, b) steps; the
 * inverse gives the step at which a certain pair meets (Chinese remainder theorem).
 */
#ifndef CN_SCHED_RESIDUE_H
#define CN_SCHED_RESIDUE_H

#include <stdint.h>

/* The greatest common divisor; of 0 and b it is b. */
uint32_t cn_gcd(uint32_t a, uint32_t b);
/* The inverse of a modulo m, which have no common divisor, in [0, m); 0 for m = 1. */
uint32_t cn_inverse(uint32_t a, uint32_t m);

#endif
