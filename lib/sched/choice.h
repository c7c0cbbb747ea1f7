/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An algorithm as a user names it: "aapc", "shuffle:xor", "shuffle:shift,rank-order". The modifiers
 * after the colon are for experiments: a permutation (shift, xor, edge-colour) in place of the
 * algorithm's own, and rank-order, which numbers the nodes in the order of the team and not by the
 * topology (Eq. 5). Only algorithms that go by a permutation take them.
 */
#ifndef CN_CHOICE_H
#define CN_CHOICE_H

#include "sched/sched.h"

struct cn_choice {
	const struct cn_algorithm *algorithm; /* NULL: none is named */
	enum cn_permutation permutation;      /* AUTO: the algorithm's own */
	bool contention_aware;		      /* false: rank-order */
};

#define CN_CHOICE_TEXT 48 /* bytes of the longest name with modifiers, with its zero */

/* NULL: none is named. COLLNET_EINVAL: not known; err lists what exists, in one line. */
int cn_choice_parse(enum cn_op_kind op, const char *text, struct cn_choice *out,
		    struct cn_err *err);
/* The text of a choice that names an algorithm. Returns out. */
const char *cn_choice_format(const struct cn_choice *c, char out[CN_CHOICE_TEXT]);

/*
 * Choices by operation, "alltoall=shuffle:shift,rank-order,allgather=lr3": the one for `op`; none
 * is named when the text has no entry for it. COLLNET_EINVAL when the text is not understood,
 * whichever operation it is about.
 */
int cn_choice_override(const char *text, enum cn_op_kind op, struct cn_choice *out,
		       struct cn_err *err);

#endif
