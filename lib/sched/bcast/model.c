/* SPDX-License-Identifier: BSD-2-Clause */
/* The time of a broadcast's tree by the one-port model of cost.h, and the best segment. */
#include <stdlib.h>

#include "sched/bcast/bcast.h"

#define NONE CN_TOPO_NONE

void cn_bcast_cost(const struct cn_cost *c, const struct cn_tree *t, uint32_t from, uint32_t to,
		   uint64_t bytes, uint64_t *busy, uint64_t *total)
{
	double wire, all = cn_cost_message_and_wire(c, t, from, to, bytes, &wire);

	*busy = cn_cost_ns(c->message + wire);
	*total = cn_cost_ns(all);
	*total = *total < *busy ? *busy : *total;
}

uint64_t cn_bcast_try(const struct cn_cost *c, uint64_t bytes, uint32_t i)
{
	uint64_t frames = (bytes + c->payload - 1) / c->payload, size;

	if (i == 0) {
		return bytes;
	}
	/* ..., 8, 6, 4, 3, 2, 1 frames */
	for (uint32_t k = 62; k-- > 0;) {
		for (uint32_t half = 0; half < 2; half++) {
			size = half == 0 ? (uint64_t)1 << k : ((uint64_t)3 << k) / 4;
			if (size >= frames || (half == 1 && k < 2)) {
				continue;
			}
			if (--i == 0) {
				size *= c->payload;
				return (bytes - 1) / size < CN_BCAST_SEGMENTS_MAX ? size : 0;
			}
		}
	}
	return 0;
}

/* Counts the messages of a segment on each directed link. */
static int count_load(struct cn_bcast *b, const struct cn_tree *t, struct cn_err *err)
{
	uint32_t *links;

	if (b->load != NULL) {
		return COLLNET_OK;
	}
	b->load = calloc((size_t)t->n * 2, sizeof(*b->load));
	links = malloc(((size_t)t->height * 2 + 1) * sizeof(*links));
	if (b->load == NULL || links == NULL) {
		free(links);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the links of %u nodes", b->n);
	}
	for (uint32_t i = 1; i < b->n; i++) {
		uint32_t v = b->order[i], n = cn_tree_path(t, b->parent[v], v, links);

		while (n > 0) {
			b->load[links[--n]]++;
		}
	}
	free(links);
	return COLLNET_OK;
}

/* The busiest link's time for the messages of one segment. */
static uint64_t link_cycle(const struct cn_bcast *b, const struct cn_tree *t,
			   const struct cn_cost *c)
{
	uint64_t most = 0, time;

	for (uint32_t d = 2; d < 2 * t->n; d++) {
		const struct cn_topo_link *l = &t->topo->links[t->v[d / 2].link];

		if (b->load[d] > l->channels) {
			time = cn_cost_ns(cn_cost_wire(c, b->segment, l->rate) * b->load[d] /
					  l->channels);
			most = time > most ? time : most;
		}
	}
	return most;
}

/* Messages of v's phase on the busiest link of its path, per channel. */
static uint32_t contention(const struct cn_bcast *b, const struct cn_tree *t, const uint32_t *start,
			   const uint32_t *users, const uint32_t *path, uint32_t n, uint32_t v)
{
	uint32_t most = 1;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t d = path[i], same = 0, channels = cn_tree_channels(t, d);

		for (uint32_t k = start[d]; k < start[d + 1]; k++) {
			same += b->offset[users[k]] == b->offset[v];
		}
		same = same == 0 ? 0 : (same - 1) / channels + 1;
		most = same > most ? same : most;
	}
	return most;
}

/* True if a segment has more messages on the link than channels. */
static bool shared(const struct cn_bcast *b, const struct cn_tree *t, uint32_t d)
{
	return b->load[d] > 1 && b->load[d] > cn_tree_channels(t, d);
}

/* out[v]: how many times slower v's message is for those that share its links in its phase. */
static int contentions(const struct cn_bcast *b, const struct cn_tree *t, uint32_t *out,
		       struct cn_err *err)
{
	uint32_t *start = calloc((size_t)t->n * 2 + 2, sizeof(*start)), *users = NULL;
	uint32_t *path = malloc(((size_t)t->height * 2 + 1) * sizeof(*path));

	if (start != NULL) {
		for (uint32_t d = 0; d < 2 * t->n; d++) {
			start[d + 1] = start[d] + (shared(b, t, d) ? b->load[d] : 0);
		}
		users = malloc(((size_t)start[2 * t->n] + 1) * sizeof(*users));
	}
	if (start == NULL || users == NULL || path == NULL) {
		free(start);
		free(users);
		free(path);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the links of %u nodes", b->n);
	}
	/* From here start[d + 1] runs while the list of d is filled. */
	for (uint32_t d = 2 * t->n; d > 0; d--) {
		start[d] = start[d - 1];
	}
	for (int fill = 1; fill >= 0; fill--) {
		for (uint32_t i = 1; i < b->n; i++) {
			uint32_t v = b->order[i], n = cn_tree_path(t, b->parent[v], v, path);

			for (uint32_t k = 0; fill && k < n; k++) {
				if (shared(b, t, path[k])) {
					users[start[path[k] + 1]++] = v;
				}
			}
			if (!fill) {
				out[v] = contention(b, t, start, users, path, n, v);
			}
		}
	}
	free(start);
	free(users);
	free(path);
	return COLLNET_OK;
}

/* What a node of so many children, which it serves once in `cycle`, has waited for acknowledgements
 * when it has sent everything to child k; `way`: there, in the mean of those. */
static uint64_t waits_for(const struct cn_bcast *b, const struct cn_cost *c, uint32_t children,
			  uint32_t k, uint64_t cycle, uint64_t way)
{
	const uint64_t frames = cn_cost_frames(c, b->segment),
		       sent = ((b->segments - 1) * (uint64_t)children + k + 1) * frames;

	return cn_cost_ns(cn_cost_waits(c, sent, (double)cycle * 1e-9 / (double)(children * frames),
					1e-9 * (double)way));
}

int cn_bcast_time(struct cn_bcast *b, const struct cn_tree *t, const struct cn_cost *c,
		  struct cn_err *err)
{
	uint64_t *at = calloc((size_t)b->n * 3, sizeof(*at)), links, finish = 0;
	uint32_t *slower = calloc(b->n, sizeof(*slower));
	bool share = b->segments == 1 && b->phased;
	int rc = count_load(b, t, err);

	if (at == NULL || slower == NULL) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory for the times of %u nodes", b->n);
	}
	if (!rc && share) {
		rc = contentions(b, t, slower, err);
	}
	if (rc) {
		free(at);
		free(slower);
		return rc;
	}
	links = b->segments > 1 ? link_cycle(b, t, c) : 0;
	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t v = b->order[i];
		uint64_t *interval = at + b->n, *waits = interval + b->n, cycle = 0, end, busy,
			 total, more, way = 0;

		for (uint32_t k = 0; k < b->nchildren[v]; k++) {
			uint32_t child = b->order[b->first[v] + k];

			cn_bcast_cost(c, t, v, child, b->segment, &busy, &total);
			more = share ? (slower[child] - 1) * (busy - cn_cost_ns(c->message)) : 0;
			at[child] = at[v] + cycle + total + more;
			way += total - busy;
			waits[child] = way / (k + 1);
			cycle += busy + more;
		}
		cycle = cycle > interval[v] ? cycle : interval[v];
		for (uint32_t k = 0; k < b->nchildren[v]; k++) {
			uint32_t child = b->order[b->first[v] + k];

			interval[child] = cycle;
			waits[child] = waits_for(b, c, b->nchildren[v], k, cycle, waits[child]);
			waits[child] = waits[child] > waits[v] ? waits[child] : waits[v];
		}
		end = at[v] + waits[v] +
		      (b->segments - 1) * (interval[v] > links ? interval[v] : links);
		finish = v != b->root && end > finish ? end : finish;
	}
	free(at);
	free(slower);
	b->time = finish;
	return COLLNET_OK;
}

int cn_bcast_choose(struct cn_bcast *b, const struct cn_tree *t, const struct cn_cost *c,
		    uint64_t bytes, uint64_t segment, struct cn_err *err)
{
	uint64_t best = 0, best_time = UINT64_MAX, size;
	int rc = COLLNET_OK;

	if (segment == 0 && b->n > 1 && bytes > c->payload) {
		for (uint32_t i = 0; !rc && (size = cn_bcast_try(c, bytes, i)) > 0; i++) {
			rc = cn_bcast_segment(b, bytes, size, err);
			if (!rc) {
				rc = cn_bcast_time(b, t, c, err);
			}
			if (!rc && b->time < best_time) {
				best_time = b->time;
				best = b->segment;
			}
		}
		segment = best;
	}
	if (!rc) {
		rc = cn_bcast_segment(b, bytes, segment, err);
	}
	return rc ? rc : cn_bcast_time(b, t, c, err);
}
