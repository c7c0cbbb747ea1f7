/* SPDX-License-Identifier: BSD-2-Clause */
/* Permutations by arithmetic on the numbers of nodes; see permutation.h. */
#include <string.h>

#include "sched/permutation.h"

static bool is_power_of_two(uint32_t p)
{
	return p > 0 && (p & (p - 1)) == 0;
}

int cn_perm_resolve(enum cn_permutation wanted, uint32_t p, enum cn_permutation *out,
		    struct cn_err *err)
{
	switch (wanted) {
	case CN_PERM_AUTO:
		if (is_power_of_two(p)) {
			*out = CN_PERM_XOR;
		} else if (p % 2 == 0) {
			*out = CN_PERM_EDGE_COLOUR;
		} else {
			*out = CN_PERM_SHIFT;
		}
		return COLLNET_OK;
	case CN_PERM_XOR:
		if (!is_power_of_two(p)) {
			return cn_fail(err, COLLNET_EINVAL,
				       "the xor permutation needs a power of two of nodes, not %u; "
				       "use edge-colour, shift or auto",
				       p);
		}
		*out = wanted;
		return COLLNET_OK;
	case CN_PERM_SHIFT:
	case CN_PERM_EDGE_COLOUR:
		*out = wanted;
		return COLLNET_OK;
	}
	return cn_fail(err, COLLNET_EINVAL, "permutation %d is not known", (int)wanted);
}

const char *cn_perm_name(enum cn_permutation kind)
{
	switch (kind) {
	case CN_PERM_AUTO:
		return "auto";
	case CN_PERM_SHIFT:
		return "shift";
	case CN_PERM_XOR:
		return "xor";
	case CN_PERM_EDGE_COLOUR:
		return "edge-colour";
	}
	return "unknown";
}

bool cn_perm_find(const char *name, enum cn_permutation *out)
{
	static const struct {
		const char *name;
		enum cn_permutation kind;
	} names[] = {
		{ "auto", CN_PERM_AUTO },
		{ "shift", CN_PERM_SHIFT },
		{ "xor", CN_PERM_XOR },
		{ "edge-colour", CN_PERM_EDGE_COLOUR },
		{ "edge-color", CN_PERM_EDGE_COLOUR },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i].name) == 0) {
			*out = names[i].kind;
			return true;
		}
	}
	return false;
}

uint32_t cn_perm_steps(enum cn_permutation kind, uint32_t p)
{
	if (p < 2) {
		return 0;
	}
	return kind == CN_PERM_EDGE_COLOUR && p % 2 ? p : p - 1;
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

uint32_t cn_perm_to(enum cn_permutation kind, uint32_t p, uint32_t me, uint32_t step)
{
	switch (kind) {
	case CN_PERM_XOR:
		return me ^ step;
	case CN_PERM_EDGE_COLOUR:
		return edge_colour(p, me, step);
	case CN_PERM_AUTO: /* resolved before; falls back to what any p has */
	case CN_PERM_SHIFT:
		break;
	}
	return (me + step) % p;
}

uint32_t cn_perm_from(enum cn_permutation kind, uint32_t p, uint32_t me, uint32_t step)
{
	switch (kind) {
	case CN_PERM_XOR:
	case CN_PERM_EDGE_COLOUR:
		return cn_perm_to(kind, p, me, step);
	case CN_PERM_AUTO:
	case CN_PERM_SHIFT:
		break;
	}
	return (me + p - step % p) % p;
}
