/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internal to lib/sched: predicted times, one function per algorithm (registry.c names them), from
 * the network as the cost model sees it.
 */
#ifndef CN_PREDICT_H
#define CN_PREDICT_H

#include "sched/select.h"

struct cn_network {
	const struct cn_layout *layout;
	const struct cn_plan *plan;
	const struct cn_cost *cost;
	uint32_t local;	      /* ranks on the node that has most */
	uint32_t window;      /* W_g by Eq. 4; COLLNET_WINDOW_OFF: none */
	uint32_t link_window; /* of CN_WINDOW_LINK */
	uint32_t burst;	      /* frames per pair of an all-to-all that go at once */
	bool rates_known;     /* then most windows have room for what is in cables, too */
	double latency;	      /* of a block's first frame on the longest path */
	double exchange;  /* seconds that the busiest link needs for an all-to-all of the plan */
	uint64_t slowest; /* bit/s of the slowest link */
	bool *no_memory;  /* set if a prediction lacked memory, and is a different one */
};

/* Records a lack of memory; ok: there was enough. */
static inline bool cn_network_had(const struct cn_network *n, bool ok)
{
	*n->no_memory |= !ok;
	return ok;
}

static inline double cn_longer(double a, double b)
{
	return a > b ? a : b;
}

/* The paths from a node to the next one, of several in a row or round a ring. */
struct cn_ways {
	double sum, shortest, longest; /* seconds that a frame takes on all, and on one of them */
	uint32_t sharing; /* most messages on one directed link, were all sent at once */
	double load; /* how many of one message's times at the slowest rate the busiest link takes
		      */
};

/* Of `count` nodes (NULL: 0, 1, 2, ...); of a ring, from the last to the first as well. */
struct cn_ways cn_ways(const struct cn_network *n, const uint32_t *nodes, uint32_t count, bool ring,
		       uint64_t frame);

/* Of an allreduce by doubling, a reduce by binomial, a scan by doubling. */
double cn_rounds_seconds(const struct cn_network *n);

/* Each sets seconds and why; out->algorithm and seconds = -1 are set before. */
cn_predictor cn_predict_shuffle;
cn_predictor cn_predict_pairwise;
cn_predictor cn_predict_linear;
cn_predictor cn_predict_aapc;
cn_predictor cn_predict_fattree;
cn_predictor cn_predict_ring;
cn_predictor cn_predict_lr1;
cn_predictor cn_predict_lr2;
cn_predictor cn_predict_lr3;
cn_predictor cn_predict_doubling; /* allgather */
cn_predictor cn_predict_dissemination;
cn_predictor cn_predict_barrier_doubling;
cn_predictor cn_predict_bcast;	  /* all of them */
cn_predictor cn_predict_furthest; /* scatter */
cn_predictor cn_predict_windowed; /* gather */
cn_predictor cn_predict_nearest;
cn_predictor cn_predict_reduction_rounds;
cn_predictor cn_predict_reduction_allgather;
cn_predictor cn_predict_reduction_halving;
cn_predictor cn_predict_reduction_ring;
cn_predictor cn_predict_reduction_chain;
cn_predictor cn_predict_reduction_exchange;

#endif
