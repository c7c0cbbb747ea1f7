/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links and switches. A frame takes two events a link: its arrival at the far end, and the port
 * being free again. A switch knows where every host is (its tree never changes).
 *
 * A frame counts in its queue until its last bit has left. Broadcasts, which are few, wait at every
 * output port in a queue of their own and go first; they take no memory of the switch.
 */
#include <stdlib.h>

#include "sim/parts.h"

/* ---- queues --------------------------------------------------------------------------- */

bool sim_queue_put(struct cn_sim *s, struct queue *q, struct frame *f)
{
	if (q->n == q->cap) {
		uint32_t cap = q->cap == 0 ? 8 : q->cap * 2;
		struct frame **frames = malloc(cap * sizeof(struct frame *));

		if (frames == NULL) {
			s->failed = true;
			return false;
		}
		for (uint32_t i = 0; i < q->n; i++) {
			frames[i] = q->frames[(q->head + i) & (q->cap - 1)];
		}
		free(q->frames);
		q->frames = frames;
		q->head = 0;
		q->cap = cap;
	}
	q->frames[(q->head + q->n++) & (q->cap - 1)] = f;
	return true;
}

struct frame *sim_queue_get(struct queue *q)
{
	struct frame *f;

	if (q->n == 0) {
		return NULL;
	}
	f = q->frames[q->head];
	q->head = (q->head + 1) & (q->cap - 1);
	q->n--;
	return f;
}

static struct frame *queue_first(const struct queue *q)
{
	return q->n == 0 ? NULL : q->frames[q->head];
}

/* ---- sending -------------------------------------------------------------------------- */

static cn_time wire_time(const struct dlink *l, uint32_t len)
{
	return ((uint64_t)(len + WIRE_OVERHEAD) * 8 * 1000000000u + l->rate - 1) / l->rate;
}

static bool is_switch(const struct cn_sim *s, uint32_t v)
{
	return s->topo->vertices[v].is_switch;
}

void sim_start(struct cn_sim *s, uint32_t d, struct frame *f)
{
	struct dlink *l = &s->links[d];
	cn_time takes = wire_time(l, f->len), there, extra;
	uint32_t to_switch = is_switch(s, l->to);
	enum fate fate = sim_fate(s, l, &extra);

	l->sending = true;
	l->frame = f;
	l->seen.frames++;
	l->seen.bytes += f->len;
	l->seen.busy += takes;
	f->sent = s->now;
	f->tail = s->now + takes + s->config.latency + extra;
	sim_see(s, CN_SIM_SENT, d, f, s->now + takes);
	sim_push(s, s->now + takes, EVENT_FREE, d, NULL);
	if (fate == FATE_LOST) {
		s->totals.lost++;
		sim_see(s, CN_SIM_DROPPED, d, f, s->now);
		return;
	}
	there = f->tail;
	if (to_switch && s->config.cut_through) { /* as soon as its head is there */
		there = s->now + wire_time(l, 64 - WIRE_OVERHEAD) + s->config.latency + extra;
		there = there < f->tail ? there : f->tail;
	}
	there += to_switch ? s->config.delay : 0;
	for (int copies = fate == FATE_TWICE ? 2 : 1; copies > 0; copies--) {
		f->refs++;
		sim_push(s, there, EVENT_ARRIVE, d, f);
	}
}

/* ---- switches ------------------------------------------------------------------------- */

/* The directed link from switch v towards a host. */
static uint32_t route(const struct cn_sim *s, uint32_t v, uint32_t host)
{
	const struct cn_tree *t = s->tree;
	uint32_t x = s->place[v], y = t->host[host], low, n;

	if (!cn_tree_below(t, y, x)) {
		return s->up[x];
	}
	low = t->v[x].first_child; /* children ascend: the last one that is not beyond y */
	n = t->v[x].nchildren;
	while (n > 1) {
		uint32_t half = n / 2;

		if (t->children[low + half] <= y) {
			low += half;
			n -= half;
		} else {
			n = half;
		}
	}
	return s->down[t->children[low]];
}

static void dropped(struct cn_sim *s, uint32_t counted, uint32_t d, struct frame *f)
{
	s->links[counted].seen.drops++;
	s->totals.drops++;
	sim_see(s, CN_SIM_DROPPED, d, f, s->now);
	sim_frame_put(s, f);
}

static void note_peak(struct dlink *l, uint32_t standing)
{
	if (standing > l->seen.peak) {
		l->seen.peak = standing;
	}
}

static void want(struct cn_sim *s, uint32_t input);

/* The next thing for a port that is free: broadcasts, then its queue, or the inputs that want it. */
static void next(struct cn_sim *s, uint32_t d)
{
	struct dlink *l = &s->links[d];
	struct frame *f = queue_first(&l->spread);

	if (f != NULL) {
		sim_start(s, d, f);
	} else if (!is_switch(s, l->from) || s->config.kind != CN_SIM_INPUT) {
		f = queue_first(&l->queue);
		if (f != NULL && s->now < l->next_start) {
			l->sending = true; /* the gap between a host's frames */
			sim_push(s, l->next_start, EVENT_FREE, d, NULL);
		} else if (f != NULL) {
			sim_start(s, d, f);
			if (!is_switch(s, l->from)) {
				l->next_start = s->now + s->config.gap;
			}
		}
	} else if (l->ninputs > 0) {
		uint32_t input = l->inputs[l->input_head];

		l->input_head = (l->input_head + 1) % l->input_cap;
		l->ninputs--;
		l->origin = input;
		sim_start(s, d, sim_queue_get(&s->links[input].input));
		if (s->links[input].input.n > 0) {
			want(s, input);
		}
	}
}

/* CN_SIM_INPUT: the first frame of an input wants its port now. */
static void want(struct cn_sim *s, uint32_t input)
{
	struct frame *f = queue_first(&s->links[input].input);
	uint32_t d = route(s, s->links[input].to, f->to);
	struct dlink *l = &s->links[d];

	l->inputs[(l->input_head + l->ninputs++) % l->input_cap] = input;
	if (!l->sending) {
		next(s, d);
	}
}

static bool has_room(const struct cn_sim *s, const struct dlink *l, const struct sw *sw)
{
	switch (s->config.kind) {
	case CN_SIM_OUTPUT:
		return l->buffer == 0 || l->queue.n < l->buffer;
	case CN_SIM_INPUT:
		return l->buffer == 0 || l->standing < l->buffer;
	case CN_SIM_SHARED:
		return sw->size == 0 || sw->used < sw->size;
	case CN_SIM_DYNAMIC:
		return sw->size == 0 ||
		       (uint64_t)l->queue.n * 100 <
			       (uint64_t)(sw->size - sw->used) * s->config.alpha_pct;
	}
	return false;
}

static void to_all(struct cn_sim *s, uint32_t came_by, struct frame *f)
{
	uint32_t x = s->place[s->links[came_by].to];
	const struct cn_tree_vertex *v = &s->tree->v[x];

	for (uint32_t i = 0; i <= v->nchildren; i++) {
		uint32_t d = i == v->nchildren ? s->up[x] :
						 s->down[s->tree->children[v->first_child + i]];

		if (d == NOBODY || d == (came_by ^ 1) || s->links[d].spread.n >= SPREAD_MAX) {
			continue;
		}
		f->refs++;
		if (sim_queue_put(s, &s->links[d].spread, f) && !s->links[d].sending) {
			next(s, d);
		}
	}
	sim_frame_put(s, f);
}

static void forward(struct cn_sim *s, uint32_t came_by, struct frame *f)
{
	uint32_t v = s->links[came_by].to, d;
	struct sw *sw = &s->switches[v];
	bool at_input = s->config.kind == CN_SIM_INPUT;
	struct dlink *out, *holder;
	struct queue *q;

	if (f->to == NOBODY) {
		to_all(s, came_by, f);
		return;
	}
	d = route(s, v, f->to);
	out = &s->links[d];
	if (d == (came_by ^ 1)) {
		sim_frame_put(s, f); /* back where it came from: a switch filters it */
		return;
	}
	if (s->config.cut_through && !out->sending && s->now < f->tail && out->rate > s->links[came_by].rate) {
		/* A faster port may begin only so late that it does not run dry. */
		cn_time start = f->tail - wire_time(out, f->len);

		if (start > s->now) {
			sim_push(s, start, EVENT_ARRIVE, came_by, f);
			return;
		}
	}
	holder = at_input ? &s->links[came_by] : out;
	q = at_input ? &holder->input : &holder->queue;
	if (!has_room(s, holder, sw)) {
		dropped(s, (uint32_t)(holder - s->links), d, f);
		return;
	}
	if (!sim_queue_put(s, q, f)) {
		return;
	}
	sw->used++;
	note_peak(holder, at_input ? ++holder->standing : q->n);
	if (at_input) {
		if (q->n == 1) {
			want(s, came_by);
		}
	} else if (!out->sending) {
		next(s, d);
	}
}

void sim_arrive(struct cn_sim *s, uint32_t d, struct frame *f)
{
	struct dlink *l = &s->links[d];

	s->totals.frame_events++;
	if (l->cut || f->sent < l->cut_at) {
		s->totals.lost++;
		sim_see(s, CN_SIM_DROPPED, d, f, s->now);
		sim_frame_put(s, f);
	} else if (is_switch(s, l->to)) {
		forward(s, d, f);
	} else {
		sim_host_receive(s, s->tree->v[s->place[l->to]].node, d, f);
	}
}

/* The frame that a switch's port has sent leaves the queue that it stood in. */
static void leave(struct cn_sim *s, uint32_t d, struct frame *f)
{
	struct dlink *l = &s->links[d];

	if (f == queue_first(&l->spread)) {
		sim_queue_get(&l->spread);
	} else if (!is_switch(s, l->from)) {
		sim_queue_get(&l->queue);
	} else if (s->config.kind != CN_SIM_INPUT) {
		sim_queue_get(&l->queue);
		s->switches[l->from].used--;
	} else {
		s->links[l->origin].standing--;
		s->switches[l->from].used--;
	}
	l->frame = NULL;
	sim_frame_put(s, f);
}

void sim_free_port(struct cn_sim *s, uint32_t d)
{
	struct dlink *l = &s->links[d];

	if (l->frame != NULL) {
		leave(s, d, l->frame);
	}
	l->sending = false;
	next(s, d);
	if (!is_switch(s, l->from)) {
		sim_host_wake(s, s->tree->v[s->place[l->from]].node);
	}
}

void sim_host_send(struct cn_sim *s, uint32_t d, struct frame *f)
{
	struct dlink *l = &s->links[d];

	if (sim_queue_put(s, &l->queue, f) && !l->sending) {
		next(s, d);
	}
}

/* ---- life ----------------------------------------------------------------------------- */

static void lay_link(struct cn_sim *s, uint32_t link)
{
	const struct cn_topo_link *t = &s->topo->links[link];

	for (uint32_t end = 0; end < 2; end++) {
		struct dlink *l = &s->links[2 * link + end];
		uint64_t rate = t->rate != 0 ? t->rate : s->config.rate;
		uint32_t buffer = t->buffer != 0 ? t->buffer : s->config.buffer;

		l->from = NOBODY;
		if (!cn_topo_in_tree(s->topo, link)) {
			continue;
		}
		l->from = end == 0 ? t->a : t->b;
		l->to = end == 0 ? t->b : t->a;
		l->rate = rate * t->channels;
		l->buffer = buffer * t->channels;
	}
}

int sim_net_init(struct cn_sim *s, struct cn_err *err)
{
	const struct cn_topo *t = s->topo;

	for (uint32_t k = 0; k < t->nlinks; k++) {
		lay_link(s, k);
	}
	for (uint32_t x = 0; x < s->tree->n; x++) {
		const struct cn_tree_vertex *v = &s->tree->v[x];

		s->place[v->vertex] = x;
		s->up[x] = s->down[x] = NOBODY;
		if (v->parent != CN_TOPO_NONE) {
			uint32_t end = t->links[v->link].a == v->vertex ? 0 : 1;

			s->up[x] = 2 * v->link + end;
			s->down[x] = 2 * v->link + (end ^ 1);
		}
	}
	for (uint32_t d = 0; d < 2 * t->nlinks; d++) {
		struct dlink *l = &s->links[d];

		if (l->from == NOBODY || !t->vertices[l->from].is_switch) {
			continue;
		}
		l->input_cap = t->adj_start[l->from + 1] - t->adj_start[l->from];
		l->inputs = calloc(l->input_cap, sizeof(*l->inputs));
		if (l->inputs == NULL) {
			return cn_fail(err, COLLNET_ENOMEM, "no memory for the ports of %s",
				       t->vertices[l->from].name);
		}
		s->switches[l->from].size += l->buffer;
	}
	return COLLNET_OK;
}

void sim_net_done(struct cn_sim *s)
{
	for (uint32_t d = 0; s->links != NULL && d < 2 * s->topo->nlinks; d++) {
		struct dlink *l = &s->links[d];
		struct frame *f;

		while ((f = sim_queue_get(&l->queue)) != NULL ||
		       (f = sim_queue_get(&l->spread)) != NULL ||
		       (f = sim_queue_get(&l->input)) != NULL) {
			sim_frame_put(s, f);
		}
		free(l->queue.frames);
		free(l->input.frames);
		free(l->spread.frames);
		free(l->inputs);
	}
}
