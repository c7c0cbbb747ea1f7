/* SPDX-License-Identifier: BSD-2-Clause */
/* Euclid's algorithm, and its extended form. All values stay within 64 bits for any arguments. */
#include "sched/residue.h"

uint32_t cn_gcd(uint32_t a, uint32_t b)
{
	while (b != 0) {
		uint32_t r = a % b;

		a = b;
		b = r;
	}
	return a;
}

uint32_t cn_inverse(uint32_t a, uint32_t m)
{
	int64_t old_r = a % m, r = m, old_s = 1, s = 0;

	while (r != 0) {
		int64_t q = old_r / r, x = old_r - q * r, y = old_s - q * s;

		old_r = r;
		r = x;
		old_s = s;
		s = y;
	}
	return (uint32_t)(((old_s % m) + m) % m);
}
