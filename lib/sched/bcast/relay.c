/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Down-to-up and up-to-down. Up-to-down compares candidates by the time of the whole tree in its
 * best order, so that the result is never worse than the tree before. The paper's window slides
 * over the holding set, the endpoints that have the message; here it contains the CANDIDATES
 * holders that would serve the child first, of those with a free path. STEPS_MAX bounds the work:
 * with more than a few hundred hosts, the depth-first pass may be cut short.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/bcast/relay.h"
#include "util/ascending.h"

#define NONE	   UINT32_MAX
#define CANDIDATES 16u
#define STEPS_MAX  ((uint64_t)1 << 22)

int cn_relay_init(struct cn_relay *r, uint32_t n, uint32_t root, const struct cn_relay_net *net,
		  struct cn_err *err)
{
	*r = (struct cn_relay){ .n = n, .root = root, .net = *net, .steps_left = STEPS_MAX };
	r->parent = malloc((size_t)n * 7 * sizeof(*r->parent));
	r->busy = calloc((size_t)n * 8, sizeof(*r->busy));
	r->use = malloc(((size_t)net->nlinks + 2) * sizeof(*r->use));
	r->path = malloc(((size_t)net->longest * (n + 1) + 1) * sizeof(*r->path));
	r->sorted = malloc(2 * (size_t)n * sizeof(*r->sorted));
	if (r->parent == NULL || r->busy == NULL || r->use == NULL || r->path == NULL ||
	    r->sorted == NULL) {
		cn_relay_done(r);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a broadcast among %u", n);
	}
	r->first = r->parent + n;
	r->next = r->parent + 2 * (size_t)n;
	r->order = r->parent + 3 * (size_t)n;
	r->scratch = r->parent + 4 * (size_t)n;
	r->size = r->parent + 5 * (size_t)n;
	r->links = r->parent + 6 * (size_t)n;
	memset(r->parent, 0xff, (size_t)n * 7 * sizeof(*r->parent)); /* NONE */
	r->total = r->busy + n;
	r->start = r->busy + 2 * (size_t)n;
	r->ready = r->busy + 3 * (size_t)n;
	r->cycle = r->busy + 4 * (size_t)n;
	r->interval = r->busy + 5 * (size_t)n;
	r->remaining = r->busy + 6 * (size_t)n;
	r->waited = r->busy + 7 * (size_t)n;
	return COLLNET_OK;
}

void cn_relay_done(struct cn_relay *r)
{
	free(r->parent);
	free(r->busy);
	free(r->use);
	free(r->users);
	free(r->path);
	free(r->sorted);
	memset(r, 0, sizeof(*r));
}

static void append(struct cn_relay *r, uint32_t v, uint32_t parent)
{
	uint32_t *at = &r->first[parent];

	while (*at != NONE) {
		at = &r->next[*at];
	}
	*at = v;
	r->next[v] = NONE;
	r->parent[v] = parent;
}

static uint32_t *path_of(const struct cn_relay *r, uint32_t v)
{
	return r->path + (size_t)(v + 1) * r->net.longest;
}

void cn_relay_attach(struct cn_relay *r, uint32_t v, uint32_t parent)
{
	if (r->parent[v] != NONE) {
		uint32_t *at = &r->first[r->parent[v]];

		while (*at != v) {
			at = &r->next[*at];
		}
		*at = r->next[v];
	}
	append(r, v, parent);
	r->net.cost(r->net.ctx, parent, v, &r->busy[v], &r->total[v]);
	r->links[v] = r->net.path(r->net.ctx, parent, v, path_of(r, v));
}

void cn_relay_reprice(struct cn_relay *r)
{
	for (uint32_t v = 0; v < r->n; v++) {
		if (r->parent[v] != NONE) {
			r->net.cost(r->net.ctx, r->parent[v], v, &r->busy[v], &r->total[v]);
		}
	}
}

/* Parents before their children; returns how many are in the tree. */
static uint32_t find_order(struct cn_relay *r)
{
	uint32_t tail = 1;

	r->order[0] = r->root;
	for (uint32_t q = 0; q < tail; q++) {
		for (uint32_t c = r->first[r->order[q]]; c != NONE; c = r->next[c]) {
			r->order[tail++] = c;
		}
	}
	return tail;
}

/* Times outwards; order[] is there. */
static void forward(struct cn_relay *r, uint32_t n)
{
	r->finish = r->sum = 0;
	r->ready[r->root] = r->interval[r->root] = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = r->order[i];
		uint64_t end = r->ready[v] + (r->net.segments - 1) * r->interval[v], interval;

		r->cycle[v] = 0;
		for (uint32_t c = r->first[v]; c != NONE; c = r->next[c]) {
			r->start[c] = r->ready[v] + r->cycle[v];
			r->ready[c] = r->start[c] + r->total[c];
			r->cycle[v] += r->busy[c];
		}
		interval = r->cycle[v] > r->interval[v] ? r->cycle[v] : r->interval[v];
		for (uint32_t c = r->first[v]; c != NONE; c = r->next[c]) {
			r->interval[c] = interval;
		}
		r->finish = end > r->finish ? end : r->finish;
		r->sum += r->ready[v];
	}
}

void cn_relay_time(struct cn_relay *r)
{
	forward(r, find_order(r));
}

static uint64_t tail_of(const struct cn_relay *r, uint32_t c)
{
	return r->total[c] - r->busy[c] + r->remaining[c];
}

/* In descending order of tail_of(); of equal ones the smaller number first. */
static void sort_children(struct cn_relay *r, uint32_t v)
{
	uint32_t sorted = NONE, last = NONE, c = r->first[v];

	while (c != NONE) {
		uint32_t after = r->next[c], *at = &sorted;

		/* They are usually sorted already. */
		if (last != NONE && (tail_of(r, last) > tail_of(r, c) ||
				     (tail_of(r, last) == tail_of(r, c) && last < c))) {
			at = &r->next[last];
		}
		while (*at != NONE && (tail_of(r, *at) > tail_of(r, c) ||
				       (tail_of(r, *at) == tail_of(r, c) && *at < c))) {
			at = &r->next[*at];
		}
		r->next[c] = *at;
		*at = c;
		last = r->next[c] == NONE ? c : last;
		c = after;
	}
	r->first[v] = sorted;
}

/* Sums up what is at and below v, that of the children being there; false: they are not in order.
 */
static bool sum_up_sorted(struct cn_relay *r, uint32_t v)
{
	uint64_t before = 0, end, remaining = (r->net.segments - 1) * r->interval[v], waited = 0;
	uint64_t tail, last_tail = UINT64_MAX;
	uint32_t size = 1, last = 0;

	for (uint32_t c = r->first[v]; c != NONE; c = r->next[c]) {
		tail = tail_of(r, c);
		if (tail > last_tail || (tail == last_tail && c < last)) {
			return false;
		}
		last_tail = tail;
		last = c;
		end = before + r->total[c];
		waited += r->size[c] * end + r->waited[c];
		size += r->size[c];
		end += r->remaining[c];
		remaining = end > remaining ? end : remaining;
		before += r->busy[c];
	}
	r->remaining[v] = remaining;
	r->waited[v] = waited;
	r->size[v] = size;
	return true;
}

static void sum_up(struct cn_relay *r, uint32_t v)
{
	if (!sum_up_sorted(r, v)) {
		sort_children(r, v);
		sum_up_sorted(r, v);
	}
}

void cn_relay_down_up(struct cn_relay *r)
{
	uint32_t n = find_order(r);

	forward(r, n); /* the intervals, which do not depend on the order of children */
	for (uint32_t i = n; i-- > 0;) {
		sum_up(r, r->order[i]);
	}
	forward(r, n);
}

/* What depends on cycle[v], and on what is below v: of those below with another interval than
 * before, and of v. */
static void update_from(struct cn_relay *r, uint32_t v)
{
	uint32_t tail = 1;

	r->order[0] = v;
	for (uint32_t q = 0; r->net.segments > 1 && q < tail; q++) {
		uint32_t u = r->order[q];
		uint64_t interval = r->cycle[u] > r->interval[u] ? r->cycle[u] : r->interval[u];

		for (uint32_t c = r->first[u]; c != NONE; c = r->next[c]) {
			if (r->interval[c] != interval) {
				r->interval[c] = interval;
				r->order[tail++] = c;
			}
		}
	}
	while (tail-- > 0) {
		sum_up(r, r->order[tail]);
	}
}

/*
 * As cn_relay_attach() and cn_relay_down_up() of a tree in down-to-up order, except for start[] and
 * ready[], which remain those of the tree before. scratch[] is 0 before and after.
 */
static void move(struct cn_relay *r, uint32_t c, uint32_t parent)
{
	uint32_t old = r->parent[c], v;

	r->cycle[old] -= r->busy[c];
	cn_relay_attach(r, c, parent);
	r->cycle[parent] += r->busy[c];
	for (v = parent; v != NONE; v = r->parent[v]) {
		r->scratch[v] = 1;
	}
	update_from(r, old);
	for (v = old; !r->scratch[v]; v = r->parent[v]) {
		sum_up(r, v);
	}
	update_from(r, parent);
	for (v = parent; v != NONE; v = r->parent[v]) {
		sum_up(r, v);
		r->scratch[v] = 0;
	}
	r->finish = r->remaining[r->root];
	r->sum = r->waited[r->root];
}

/* ---- the channels of links ------------------------------------------------------------------ */

/* Which messages of the current tree use which link. */
static int index_uses(struct cn_relay *r, struct cn_err *err)
{
	uint32_t *use = r->use, *users, links = r->net.nlinks;

	memset(use, 0, ((size_t)links + 2) * sizeof(*use));
	for (uint32_t v = 0; v < r->n; v++) {
		const uint32_t *path = path_of(r, v);

		for (uint32_t i = 0; r->parent[v] != NONE && i < r->links[v]; i++) {
			use[path[i] + 2]++;
		}
	}
	for (uint32_t d = 2; d < links + 2; d++) {
		use[d] += use[d - 1];
	}
	users = realloc(r->users, ((size_t)use[links + 1] + 1) * sizeof(*users));
	if (users == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the paths of %u messages", r->n);
	}
	r->users = users;
	/* use[d + 1] runs while the users of d are filled in, up to where those of d + 1 begin. */
	for (uint32_t v = 0; v < r->n; v++) {
		const uint32_t *path = path_of(r, v);

		for (uint32_t i = 0; r->parent[v] != NONE && i < r->links[v]; i++) {
			users[use[path[i] + 1]++] = v;
		}
	}
	return COLLNET_OK;
}

/*
 * Messages that begin on the link while all its channels are in use. With segments, one more if the
 * link needs longer for a segment than the slowest node: then the link determines the interval.
 */
static uint64_t conflicts_on(const struct cn_relay *r, uint32_t d, uint64_t interval)
{
	const uint32_t *u = r->users + r->use[d];
	uint32_t n = r->use[d + 1] - r->use[d], channels, ended = 0;
	uint64_t *starts = r->sorted, *ends = r->sorted + r->n, conflicts = 0, all = 0;
	bool several = false; /* senders: one alone sends one message at a time */

	for (uint32_t i = 1; i < n && !several; i++) {
		several = r->parent[u[i]] != r->parent[u[0]];
	}
	if (!several || n <= (channels = r->net.channels(r->net.ctx, d))) {
		return 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		starts[i] = r->start[u[i]];
		ends[i] = starts[i] + r->busy[u[i]];
		all += r->busy[u[i]];
	}
	qsort(starts, n, sizeof(*starts), cn_ascending_u64);
	qsort(ends, n, sizeof(*ends), cn_ascending_u64);
	for (uint32_t i = 0; i < n; i++) {
		while (ended < n && ends[ended] <= starts[i]) {
			ended++;
		}
		conflicts += i + 1 - ended > channels;
	}
	return conflicts + (r->net.segments > 1 && all / channels > interval ? 1 : 0);
}

int cn_relay_conflicts(struct cn_relay *r, uint64_t *conflicts, struct cn_err *err)
{
	uint64_t interval = 0;
	int rc = index_uses(r, err);

	*conflicts = 0;
	for (uint32_t v = 0; v < r->n; v++) {
		interval = r->cycle[v] > interval ? r->cycle[v] : interval;
	}
	for (uint32_t d = 0; !rc && d < r->net.nlinks; d++) {
		*conflicts += conflicts_on(r, d, interval);
	}
	return rc;
}

/* ---- up-to-down ---------------------------------------------------------------------------- */

/* Candidates, the one that would serve the child first in front; and the result of each. */
struct window {
	uint32_t n, holder[CANDIDATES];
	uint64_t served[CANDIDATES];
	uint64_t finish[CANDIDATES], sum[CANDIDATES];
};

/* Marks in scratch[]: c and all below it. */
static void mark_below(struct cn_relay *r, uint32_t c)
{
	uint32_t v = c;

	memset(r->scratch, 0, r->n * sizeof(*r->scratch));
	for (;;) {
		r->scratch[v] = 1;
		if (r->first[v] != NONE) {
			v = r->first[v];
			continue;
		}
		while (v != c && r->next[v] == NONE) {
			v = r->parent[v];
		}
		if (v == c) {
			return;
		}
		v = r->next[v];
	}
}

/* True if a message from u to c at that time has a free channel on every link of its path, by the
 * current times. */
static bool path_free(struct cn_relay *r, uint32_t u, uint32_t c, uint64_t start, uint64_t busy)
{
	uint32_t n = r->net.path(r->net.ctx, u, c, r->path);

	while (n-- > 0) {
		uint32_t d = r->path[n], same = 0;

		for (uint32_t k = r->use[d]; k < r->use[d + 1]; k++) {
			uint32_t v = r->users[k];

			same += v != c && r->start[v] < start + busy &&
				start < r->start[v] + r->busy[v];
		}
		if (same > 0 && same >= r->net.channels(r->net.ctx, d)) {
			return false;
		}
	}
	return true;
}

/* The window slides over the holding set until it is full of holders with a free path. */
static void find_window(struct cn_relay *r, uint32_t c, struct window *w)
{
	w->n = 0;
	mark_below(r, c);
	for (uint32_t u = 0; u < r->n; u++) {
		uint64_t busy, total, start = r->ready[u] + r->cycle[u], served, interval;
		uint32_t i;

		if (r->scratch[u] || u == r->parent[c] || (u != r->root && r->parent[u] == NONE) ||
		    (w->n == CANDIDATES && start >= w->served[w->n - 1])) {
			continue;
		}
		r->net.cost(r->net.ctx, u, c, &busy, &total);
		interval = r->cycle[u] + busy > r->interval[u] ? r->cycle[u] + busy
							       : r->interval[u];
		served = start + total + (r->net.segments - 1) * interval;
		if ((w->n == CANDIDATES && served >= w->served[w->n - 1]) ||
		    !path_free(r, u, c, start, busy)) {
			continue;
		}
		w->n += w->n < CANDIDATES;
		for (i = w->n - 1; i > 0 && w->served[i - 1] > served; i--) {
			w->served[i] = w->served[i - 1];
			w->holder[i] = w->holder[i - 1];
		}
		w->served[i] = served;
		w->holder[i] = u;
	}
}

/* The candidate with the smallest times that is better than the tree was; w->n: none. */
static uint32_t pick(const struct window *w, uint64_t finish, uint64_t sum)
{
	uint32_t best = w->n;

	for (uint32_t i = 0; i < w->n; i++) {
		if (w->finish[i] < finish || (w->finish[i] == finish && w->sum[i] < sum)) {
			finish = w->finish[i];
			sum = w->sum[i];
			best = i;
		}
	}
	return best;
}

/* Reparents c to the best candidate. Keeps the times and users[] up to date. */
static int try_child(struct cn_relay *r, uint32_t c, uint64_t *conflicts, uint32_t *reparented,
		     struct cn_err *err)
{
	uint64_t finish = r->finish, sum = r->sum, now, steps;
	uint32_t old = r->parent[c], best;
	bool timed = false;
	struct window w;
	int rc;

	find_window(r, c, &w);
	steps = (uint64_t)r->n * (w.n + 4);
	if (r->steps_left < steps) {
		r->steps_left = 0;
		return COLLNET_OK;
	}
	r->steps_left -= steps;
	memset(r->scratch, 0, r->n * sizeof(*r->scratch));
	for (uint32_t i = 0; i < w.n; i++) {
		move(r, c, w.holder[i]);
		w.finish[i] = r->finish;
		w.sum[i] = r->sum;
	}
	while ((best = pick(&w, finish, sum)) < w.n) {
		move(r, c, w.holder[best]);
		cn_relay_time(r);
		timed = true;
		rc = cn_relay_conflicts(r, &now, err);
		r->steps_left -= r->steps_left < 4 * (uint64_t)r->n ? r->steps_left
								    : 4 * (uint64_t)r->n;
		if (rc) {
			return rc;
		}
		if (now <= *conflicts) {
			*conflicts = now;
			*reparented += 1;
			return COLLNET_OK;
		}
		w.finish[best] = UINT64_MAX; /* more conflicts than before */
	}
	move(r, c, old);
	if (!timed) {
		return COLLNET_OK;
	}
	cn_relay_time(r);
	return index_uses(r, err);
}

/* All endpoints in depth-first order. */
static void depth_first(const struct cn_relay *r, uint32_t *out)
{
	uint32_t n = 0, v = r->root;

	for (;;) {
		out[n++] = v;
		if (r->first[v] != NONE) {
			v = r->first[v];
			continue;
		}
		while (v != r->root && r->next[v] == NONE) {
			v = r->parent[v];
		}
		if (v == r->root) {
			return;
		}
		v = r->next[v];
	}
}

int cn_relay_up_down(struct cn_relay *r, uint32_t *reparented, struct cn_err *err)
{
	uint32_t *list = malloc(2 * (size_t)r->n * sizeof(*list)), *kids, count, n = 0;
	uint64_t conflicts;
	int rc;

	if (list == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a broadcast among %u", r->n);
	}
	kids = list + r->n;
	cn_relay_down_up(r);
	rc = cn_relay_conflicts(r, &conflicts, err);
	for (int pass = 0; !rc && pass < 2; pass++) {
		count = find_order(r);
		memcpy(list, r->order, count * sizeof(*list));
		if (pass == 1) {
			depth_first(r, list);
		}
		for (uint32_t i = 0; !rc && i < count && r->steps_left > 0; i++) {
			uint32_t m = 0;

			for (uint32_t c = r->first[list[i]]; c != NONE; c = r->next[c]) {
				kids[m++] = c;
			}
			/* The last one served gains most; the first one does not wait, and is not
			 * reparented. */
			for (uint32_t k = m; !rc && k-- > 1 && r->steps_left > 0;) {
				if (r->first[list[i]] != kids[k] &&
				    (r->net.movable == NULL || r->net.movable[kids[k]])) {
					rc = try_child(r, kids[k], &conflicts, &n, err);
				}
			}
		}
	}
	free(list);
	if (reparented != NULL) {
		*reparented = n;
	}
	return rc;
}
