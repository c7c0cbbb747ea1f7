/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-contention-free permutations: the partner schedule of an exchange, for steps 1 ..
 * cn_perm_steps().
 *
 * At every step each number sends to at most one other and receives from at most one, and over
 * all steps each meets every other exactly once in each direction. `to` and `from` are inverse:
 * to(from(me)) == me. xor and edge-colour pair numbers up (to == from); shift does not.
 */
#ifndef CN_PERMUTATION_H
#define CN_PERMUTATION_H

#include "util/util.h"

/* Part of the signature on the wire, and of the daemon protocol. */
enum cn_permutation {
	CN_PERM_AUTO = 0, /* the algorithm's own; else xor for powers of two, edge-colour for other
			   * even numbers, shift for odd ones */
	CN_PERM_SHIFT = 1,
	CN_PERM_XOR = 2, /* powers of two only */
	CN_PERM_EDGE_COLOUR = 3,
};

#define CN_IDLE UINT32_MAX

/*
 * AUTO becomes xor, edge-colour or shift for p nodes; COLLNET_EINVAL: xor without a power of two.
 * shift: to me + step, from me - step (mod p). xor: me ^ step. edge-colour: disjoint pairs for any
 * p by the circle method; p - 1 steps for even p, p steps for odd p, where every node is idle in
 * one (CN_IDLE). One node or none: no steps.
 */
int cn_perm_resolve(enum cn_permutation wanted, uint32_t p, enum cn_permutation *out,
		    struct cn_err *err);
const char *cn_perm_name(enum cn_permutation kind);
bool cn_perm_find(const char *name, enum cn_permutation *out);
uint32_t cn_perm_steps(enum cn_permutation kind, uint32_t p);
uint32_t cn_perm_to(enum cn_permutation kind, uint32_t p, uint32_t me, uint32_t step);
uint32_t cn_perm_from(enum cn_permutation kind, uint32_t p, uint32_t me, uint32_t step);

#endif
