/* SPDX-License-Identifier: BSD-2-Clause */
/* Predicted times of barriers: the ways of their messages, of which each waits for the last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/allreduce/power.h"
#include "sched/predict.h"

#define ACKNOWLEDGED 8 /* frames that go one way, by one frame back */

struct rounds {
	const struct cn_network *n;
	struct cn_cost cost;
	double *at;   /* [nnodes] when a node has received what the rounds before bring it */
	double *next; /* [nnodes] the same after this round */
	uint32_t count;
};

static bool begin(struct rounds *x, const struct cn_network *n)
{
	const uint32_t nodes = n->layout->nnodes;

	*x = (struct rounds){ .n = n,
			      .cost = *n->cost,
			      .at = calloc(nodes, sizeof(*x->at)),
			      .next = calloc(nodes, sizeof(*x->next)) };
	x->cost.pace = 0;
	return cn_network_had(n, x->at != NULL && x->next != NULL);
}

static void message(struct rounds *x, uint32_t from, uint32_t to)
{
	const struct cn_tree *t = x->n->layout->tree;
	const double way = t != NULL ? cn_cost_message(&x->cost, t, from, to, 0) : x->n->latency;

	x->next[to] = cn_longer(x->next[to], x->at[from] + way);
}

static void end_round(struct rounds *x)
{
	memcpy(x->at, x->next, x->n->layout->nnodes * sizeof(*x->at));
	x->count++;
}

/* Seconds until the last node has received its last message. */
static double end(struct rounds *x)
{
	double last = 0;

	for (uint32_t i = 0; x->at != NULL && i < x->n->layout->nnodes; i++) {
		last = cn_longer(last, x->at[i]);
	}
	free(x->at);
	free(x->next);
	return last;
}

/* All frames to a node go one way, so others acknowledge them, for which processors have to wake.
 */
void cn_predict_dissemination(const struct cn_network *n, struct cn_prediction *out)
{
	const uint32_t nodes = n->layout->nnodes;
	const double acknowledgement = n->cost->startup + cn_cost_wire(n->cost, 0, n->slowest);
	struct rounds x;
	const bool begun = begin(&x, n);

	for (uint32_t d = 1; begun && d < nodes; d *= 2) {
		for (uint32_t i = 0; i < nodes; i++) {
			message(&x, i, (i + d) % nodes);
		}
		end_round(&x);
	}
	out->seconds = end(&x) + x.count * acknowledgement / ACKNOWLEDGED;
	snprintf(out->why, sizeof(out->why), "%u rounds", x.count);
}

void cn_predict_barrier_doubling(const struct cn_network *n, struct cn_prediction *out)
{
	const struct cn_power w = cn_power_of(n->layout->nnodes, CN_POWER_NO_ROOT);
	struct rounds x;
	const bool begun = begin(&x, n);

	for (uint32_t i = 0; begun && i < w.pairs; i++) {
		message(&x, cn_power_other(&w, i), cn_power_part(&w, i));
	}
	if (begun && w.pairs > 0) {
		end_round(&x);
	}
	for (uint32_t bit = 1; begun && bit < w.members; bit *= 2) {
		for (uint32_t i = 0; i < w.members; i++) {
			message(&x, cn_power_part(&w, i), cn_power_part(&w, i ^ bit));
		}
		end_round(&x);
	}
	for (uint32_t i = 0; begun && i < w.pairs; i++) {
		message(&x, cn_power_part(&w, i), cn_power_other(&w, i));
	}
	if (begun && w.pairs > 0) {
		end_round(&x);
	}
	out->seconds = end(&x);
	snprintf(out->why, sizeof(out->why), "%u rounds", x.count);
}
