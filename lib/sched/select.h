/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice of an algorithm: for operation, size and network a predicted time of every row of the
 * registry, all from one cost model (cost.h), and the row with the smallest.
 *
 * Every node decides for itself, and all must decide alike: the input is known to all (layout,
 * topology, plan), and the arithmetic is the same everywhere. A later row of the registry is chosen
 * only when it is at least 0.1 % faster, so that equal ones do not alternate. Rows marked as
 * baselines are predicted, and chosen only by name.
 */
#ifndef CN_SELECT_H
#define CN_SELECT_H

#include "sched/cost.h"
#include "sched/sched.h"

struct cn_prediction {
	const struct cn_algorithm *algorithm;
	double seconds; /* negative: it cannot run here */
	char why[160];	/* explanation of the time, or why it cannot run; a clause without a full
			 * stop */
};

/*
 * Predictions of all rows of plan->op, in the order of the registry; returns how many there are.
 * plan->algorithm is ignored. Time proportional to what the generators need to lay out their trees
 * and rings once, not to their schedules.
 */
size_t cn_predict(const struct cn_layout *l, const struct cn_plan *p, const struct cn_cost *c,
		  struct cn_prediction out[CN_ALGORITHMS_MAX]);
/*
 * Frames that a node sends, where no link has two messages at a time, before the first is
 * acknowledged, after which the window has room for what is in cables; 0: all of them, or the rates
 * are not known and the window stays as it is. False: no memory.
 */
bool cn_sent_at_once(const struct cn_layout *l, uint32_t *frames);
/*
 * W_g of an operation as a team's nodes have it, with the model's latency in the place of the round
 * trips that each measures. Not of a node whose window was set by hand, which others do not know.
 * COLLNET_WINDOW_OFF: none, or the network is not known; 0: no memory.
 */
uint32_t cn_exchange_window(const struct cn_layout *l, const struct cn_cost *c, enum cn_op_kind op);
/* True if the algorithm depends on sizes: where no node knows all of them it does not, as all nodes
 * must select the same one. */
bool cn_select_predicts(enum cn_op_kind op);
/* The row to run; NULL: no memory, or there is no such operation. */
const struct cn_algorithm *cn_select(const struct cn_layout *l, const struct cn_plan *p);
/* The error of an operation that exists and for which nothing was selected. */
int cn_select_failed(enum cn_op_kind op, struct cn_err *err);

#endif
