/* SPDX-License-Identifier: BSD-2-Clause */
/* What the equations of the papers say of an operation on a simulated cluster. */
#ifndef COLLNET_SIM_MODEL_H
#define COLLNET_SIM_MODEL_H

#include "tools/measure/model.h"
#include "tools/sim/core/sim.h"

/*
 * Microseconds, NAN where an equation does not speak of the operation. Tam and Wang:
 * Eq. 2, the shuffle: all blocks of a host one frame every g, and T_w = O_s + L - g + O_r + U_r.
 * Eq. 6, pairwise exchange: the same with T_w once a round.
 * Eq. 7, the best that the busiest link allows, whichever it is and whatever the operation: what
 * must cross it, with the headers of its frames, at its rate.
 * A frame's g is what its host's link, its gap, or its processor needs, the longest of the three.
 */
struct sim_model {
	double eq2, eq6, eq7;
	double best;   /* the larger of Eq. 7 and Eq. 2 */
	double g, t_w; /* of a full frame, of the last frame of a block */
};
/* place->topo says all rates; all nodes have equally many ranks. */
void sim_model(const struct cn_sim_config *c, const struct measure_layout *place,
	       enum measure_op op, uint64_t bytes, struct sim_model *out);

#endif
