/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-contention-free permutations: who meets whom at each step.
 *
 * At every step each number sends to at most one other and receives from at most one, and over
 * all steps each meets every other exactly once in each direction. `to` and `from` are inverse:
 * to(from(me)) == me. xor and edge-colour pair numbers up (to == from); shift does not.
 */
#include <string.h>

#include "sched/sched.h"

static bool is_power_of_two(uint32_t p)
{
	return p > 0 && (p & (p - 1)) == 0;
}

int cn_perm_resolve(enum collnet_permutation wanted, uint32_t p, enum collnet_permutation *out,
		    struct cn_err *err)
{
	switch (wanted) {
	case COLLNET_PERM_AUTO:
		if (is_power_of_two(p)) {
			*out = COLLNET_PERM_XOR;
		} else if (p % 2 == 0) {
			*out = COLLNET_PERM_EDGE_COLOUR;
		} else {
			*out = COLLNET_PERM_SHIFT;
		}
		return COLLNET_OK;
	case COLLNET_PERM_XOR:
		if (!is_power_of_two(p)) {
			return cn_fail(err, COLLNET_EINVAL,
				       "the xor permutation needs a power of two of nodes, not %u; "
				       "use edge-colour, shift or auto",
				       p);
		}
		*out = wanted;
		return COLLNET_OK;
	case COLLNET_PERM_SHIFT:
	case COLLNET_PERM_EDGE_COLOUR:
		*out = wanted;
		return COLLNET_OK;
	}
	return cn_fail(err, COLLNET_EINVAL, "permutation %d is not known", (int)wanted);
}

const char *cn_perm_name(enum collnet_permutation kind)
{
	switch (kind) {
	case COLLNET_PERM_AUTO:
		return "auto";
	case COLLNET_PERM_SHIFT:
		return "shift";
	case COLLNET_PERM_XOR:
		return "xor";
	case COLLNET_PERM_EDGE_COLOUR:
		return "edge-colour";
	}
	return "unknown";
}

bool cn_perm_find(const char *name, enum collnet_permutation *out)
{
	static const struct {
		const char *name;
		enum collnet_permutation kind;
	} names[] = {
		{ "auto", COLLNET_PERM_AUTO },
		{ "shift", COLLNET_PERM_SHIFT },
		{ "xor", COLLNET_PERM_XOR },
		{ "edge-colour", COLLNET_PERM_EDGE_COLOUR },
		{ "edge-color", COLLNET_PERM_EDGE_COLOUR },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i].name) == 0) {
			*out = names[i].kind;
			return true;
		}
	}
	return false;
}

uint32_t cn_perm_steps(enum collnet_permutation kind, uint32_t p)
{
	if (p < 2) {
		return 0;
	}
	return kind == COLLNET_PERM_EDGE_COLOUR && p % 2 ? p : p - 1;
}

/*
 * Circle method. With m odd, (r - i) mod m pairs up the numbers below m in round r, and leaves one
 * over, the i with 2 i = r (mod m). For odd p that one is idle; for even p it meets p - 1.
 */
static uint32_t edge_colour(uint32_t p, uint32_t me, uint32_t step)
{
	uint32_t m = p % 2 ? p : p - 1;
	uint32_t round = (step - 1) % m;
	uint32_t partner;

	if (me == m) { /* only for even p: half of the round, modulo m */
		return round % 2 ? (round + m) / 2 : round / 2;
	}
	partner = (round + m - me) % m;
	if (partner != me) {
		return partner;
	}
	return p % 2 ? CN_IDLE : p - 1;
}

uint32_t cn_perm_to(enum collnet_permutation kind, uint32_t p, uint32_t me, uint32_t step)
{
	switch (kind) {
	case COLLNET_PERM_XOR:
		return me ^ step;
	case COLLNET_PERM_EDGE_COLOUR:
		return edge_colour(p, me, step);
	case COLLNET_PERM_AUTO: /* resolved before; falls back to what any p has */
	case COLLNET_PERM_SHIFT:
		break;
	}
	return (me + step) % p;
}

uint32_t cn_perm_from(enum collnet_permutation kind, uint32_t p, uint32_t me, uint32_t step)
{
	switch (kind) {
	case COLLNET_PERM_XOR:
	case COLLNET_PERM_EDGE_COLOUR:
		return cn_perm_to(kind, p, me, step);
	case COLLNET_PERM_AUTO:
	case COLLNET_PERM_SHIFT:
		break;
	}
	return (me + p - step % p) % p;
}
