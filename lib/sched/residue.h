/* SPDX-License-Identifier: BSD-2-Clause */
/* Arithmetic of residues, for schedules in which two subtrees go round at different lengths. */
#ifndef CN_SCHED_RESIDUE_H
#define CN_SCHED_RESIDUE_H

#include <stdint.h>

/* The greatest common divisor; of 0 and b it is b. */
uint32_t cn_gcd(uint32_t a, uint32_t b);
/* The inverse of a modulo m, which have no common divisor, in [0, m); 0 for m = 1. */
uint32_t cn_inverse(uint32_t a, uint32_t m);

#endif
