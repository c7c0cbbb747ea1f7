/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of the benchmark: what the wires allow, how often to measure, and the summary of
 * what was measured. Pure.
 */
#ifndef COLLNET_MEASURE_MODEL_H
#define COLLNET_MEASURE_MODEL_H

#include "topo/topo.h"
#include "util/util.h"

enum measure_op {
	MEASURE_ALLTOALL,
	MEASURE_ALLTOALLV,
	MEASURE_ALLGATHER,
	MEASURE_ALLGATHERV,
	MEASURE_BCAST,
	MEASURE_SCATTER,
	MEASURE_SCATTERV,
	MEASURE_GATHER,
	MEASURE_GATHERV,
	MEASURE_ALLREDUCE,
	MEASURE_REDUCE,
	MEASURE_REDUCE_SCATTER,
	MEASURE_REDUCE_SCATTERV,
	MEASURE_SCAN,
	MEASURE_EXSCAN,
	MEASURE_BARRIER,
	MEASURE_PINGPONG,
	MEASURE_STREAM,
};

/* Which rank runs on which node. */
struct measure_layout {
	uint32_t ranks, nodes;
	const uint32_t *node_of;    /* [ranks] node of a rank */
	const struct cn_topo *topo; /* NULL: unknown */
	const uint32_t *vertex;	    /* [nodes] vertex of a node; CN_TOPO_NONE: not in the topology.
					 NULL without a topology */
	bool unaware;		    /* the nodes do not know the topology */
	uint64_t rate;		    /* bit/s of every node's link; replaces the topology. 0: no */
};

/*
 * The time in microseconds that the payload alone needs on the busiest link, in its busier
 * direction: the shortest any schedule can take. Each link that has r of the P ranks on one side
 * carries, in an exchange, r (P - r) blocks each way; in an allgather every block of the other
 * side at least once; in a broadcast or scan one block; in a scatter or gather a block for every
 * rank on the side without the root, which is rank 0. NAN where it is not known (no rate, a node
 * that the topology does not have) or where there is no wire (one node, a barrier).
 */
double measure_limit_us(enum measure_op op, const struct measure_layout *p, uint64_t bytes);

/* Blocks that cross the busiest link of the topology, in its busier direction; NAN: none do. */
double measure_limit_blocks(enum measure_op op, const struct measure_layout *p);

/* Payload in bytes that the busiest node must send or receive for one operation. */
double measure_node_bytes(enum measure_op op, const struct measure_layout *p, uint64_t bytes);

/* Payload in bytes that one operation delivers between different ranks. */
double measure_payload(enum measure_op op, uint32_t ranks, uint64_t bytes);

/*
 * Iterations so that a run takes about three seconds when one takes limit_us, 3 .. 200. Where the
 * limit is not known, links of 20 Mbit/s are assumed.
 */
uint32_t measure_iterations(enum measure_op op, const struct measure_layout *p, uint64_t bytes,
			    double limit_us);

/* Nanoseconds: the smallest, the middle one (or mean of two), the 99th percentile (nearest rank) */
struct measure_times {
	double min, median, p99;
};
/* Sorts v. All NAN for n = 0. */
struct measure_times measure_summary(uint64_t *v, size_t n);
/* Sorts v. Its median; NAN for n = 0. */
double measure_median(double *v, size_t n);

#endif
