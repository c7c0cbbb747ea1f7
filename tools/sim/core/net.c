/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links and switches. A frame takes two events per link: its arrival at the far end, and the port
 * being free again. A switch knows where every host is (its tree never changes).
 *
 * A frame counts in its queue until its last bit has left; at an input port, until it moves to its
 * output port. Broadcasts, which are few, wait at every output port in a separate queue, which does
 * not share the memory of other frames, and are sent first.
 *
 * Invariants: a queue holds no more than its bound; an input is in the list of at most one output
 * port, that of its first frame; frames that arrive by one link leave a switch by another link in
 * the same order (except broadcasts, which overtake).
 */
#include <stdlib.h>

#include "tools/sim/core/parts.h"

/* ---- queues --------------------------------------------------------------------------- */

bool sim_queue_put(struct cn_sim *s, struct queue *q, struct frame *f)
{
	if (q->n == q->cap) {
		uint32_t cap = q->cap == 0 ? 8 : q->cap * 2;
		struct frame **frames = malloc(cap * sizeof(struct frame *));

		if (frames == NULL) {
			sim_fail(s);
			sim_frame_put(s, f);
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

/* Bytes of a frame on the wire, from its Ethernet header on. */
static uint32_t wire_bytes(const struct cn_sim *s, const struct frame *f)
{
	return f->len + cn_encapsulation_bytes(s->config.engine.node.encapsulation);
}

static cn_time wire_time(const struct dlink *l, uint32_t len)
{
	return ((uint64_t)(len + WIRE_OVERHEAD) * 8 * 1000000000u + l->rate - 1) / l->rate;
}

static bool is_switch(const struct cn_sim *s, uint32_t v)
{
	return s->topo->vertices[v].is_switch;
}

void sim_push_frame(struct cn_sim *s, cn_time at, enum event_kind kind, uint32_t d, struct frame *f,
		    uint16_t cuts)
{
	struct event e = { .at = at, .kind = (uint16_t)kind, .who = d, .what = f, .cuts = cuts };

	if (!sim_events_push(&s->events, e)) {
		sim_fail(s);
		sim_frame_put(s, f);
	}
}

/* What of a frame is there when a switch may cut through. */
static cn_time head_time(const struct dlink *l)
{
	return wire_time(l, 64 - WIRE_OVERHEAD);
}

/* The time until the last bit of the next frame has left, in whole nanoseconds: what one frame is
 * rounded up by the next ones are shorter, so that frames in a row pass at the link's rate. */
static cn_time next_time(struct dlink *l, uint32_t len)
{
	const cn_time ns = wire_time(l, len);
	const uint64_t bits = (uint64_t)(len + WIRE_OVERHEAD) * 8 * 1000000000u,
		       over = l->over + ns * l->rate - bits;

	l->over = over % l->rate;
	return ns > over / l->rate ? ns - over / l->rate : 0;
}

/* A token bucket: how long the port waits after this frame. */
static cn_time bucket_time(const struct cn_sim *s, struct dlink *l, uint32_t len)
{
	uint64_t full = s->config.engine.node.mtu + CN_ETH_HEADER;
	cn_time holds = 2 * full * 8 * 1000000000u / l->rate + 250 * CN_US;

	l->spent = (l->spent > s->now ? l->spent : s->now) + len * UINT64_C(8000000000) / l->rate;
	return l->spent > s->now + holds ? l->spent - s->now - holds : 0;
}

void sim_start(struct cn_sim *s, uint32_t d, struct frame *f)
{
	struct dlink *l = &s->links[d];
	const uint32_t len = wire_bytes(s, f);
	cn_time takes = s->config.buckets ? bucket_time(s, l, len) : next_time(l, len);
	cn_time passes = s->config.buckets ? 0 : takes, there, extra;
	bool to_switch = is_switch(s, l->to), head = to_switch && s->config.cut_through;
	enum fault_outcome outcome = sim_fault_outcome(s, l, len, &extra);

	l->sending = true;
	l->frame = f;
	l->counters.frames++;
	l->counters.bytes += len;
	l->counters.busy += takes;
	sim_trace_frame(s, CN_SIM_SENT, d, f, s->now + takes);
	sim_push(s, s->now + takes, EVENT_FREE, d, NULL);
	if (outcome == OUTCOME_LOST) {
		s->totals.lost++;
		sim_trace_frame(s, CN_SIM_DROPPED, d, f, s->now);
		return;
	}
	there = s->now + (head ? head_time(l) : passes) + s->config.latency + extra +
		(to_switch ? s->config.delay : 0);
	for (int copies = outcome == OUTCOME_DUPLICATED ? 2 : 1; copies > 0; copies--) {
		f->refs++;
		sim_push_frame(s, there, head ? EVENT_HEAD : EVENT_ARRIVE, d, f, l->cuts);
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

/* A frame that was to go over d found no room. */
static void dropped(struct cn_sim *s, uint64_t *count, uint32_t d, struct frame *f)
{
	++*count;
	s->totals.drops++;
	sim_trace_frame(s, CN_SIM_DROPPED, d, f, s->now);
	sim_frame_put(s, f);
}

static void note_peak(uint32_t *peak, uint32_t standing)
{
	if (standing > *peak) {
		*peak = standing;
	}
}

/* The next frame for a port that is free: broadcasts first, then its queue. */
static void next(struct cn_sim *s, uint32_t d)
{
	struct dlink *l = &s->links[d];
	struct frame *f = queue_first(&l->spread);

	if (f != NULL) {
		sim_start(s, d, f);
		return;
	}
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
}

/* CN_SIM_INPUT: the first frame of an input waits for its port. Its directed link. */
static uint32_t want(struct cn_sim *s, uint32_t input)
{
	struct frame *f = queue_first(&s->links[input].input);
	uint32_t d = route(s, s->links[input].to, f->to);
	struct dlink *l = &s->links[d];

	l->inputs[(l->input_head + l->ninputs++) % l->input_cap] = input;
	return d;
}

/*
 * CN_SIM_INPUT: first frames move to the port that they wait for, as far as it has room; those
 * behind them move up and may want another port, which may have room, too.
 */
static void transfer(struct cn_sim *s, uint32_t d)
{
	struct dlink *l = &s->links[d];

	while (l->ninputs > 0 && l->queue.n < s->config.output) {
		uint32_t input = l->inputs[l->input_head], other = d;
		struct queue *q = &s->links[input].input;

		l->input_head = (l->input_head + 1) % l->input_cap;
		l->ninputs--;
		sim_queue_put(s, &l->queue, sim_queue_get(q));
		if (!l->sending) {
			next(s, d);
		}
		if (q->n > 0) {
			other = want(s, input);
		}
		if (other != d) {
			transfer(s, other);
		}
	}
}

static bool has_room(const struct cn_sim *s, const struct dlink *l, const struct sw *sw)
{
	switch (sw->kind) {
	case CN_SIM_OUTPUT:
		return l->buffer == 0 || l->queue.n < l->buffer;
	case CN_SIM_INPUT:
		return l->buffer == 0 || l->input.n < l->buffer;
	case CN_SIM_SHARED:
		return sw->size == 0 || sw->used < sw->size;
	case CN_SIM_DYNAMIC:
		return sw->size == 0 ||
		       (uint64_t)l->queue.n * 100 <
			       (uint64_t)(sw->size - sw->used) * s->config.alpha_pct;
	}
	return false;
}

static void to_all(struct cn_sim *s, uint32_t ingress, struct frame *f)
{
	uint32_t x = s->place[s->links[ingress].to];
	const struct cn_tree_vertex *v = &s->tree->v[x];

	for (uint32_t i = 0; i <= v->nchildren; i++) {
		uint32_t d = i == v->nchildren ? s->up[x]
					       : s->down[s->tree->children[v->first_child + i]];
		struct dlink *l = &s->links[d == NOBODY ? ingress : d];

		if (d == NOBODY || d == (ingress ^ 1)) {
			continue;
		}
		f->refs++;
		if (l->spread.n >= (l->buffer != 0 ? l->buffer : SPREAD_MAX)) {
			dropped(s, &l->counters.drops, d, f);
		} else if (sim_queue_put(s, &l->spread, f) && !l->sending) {
			next(s, d);
		}
	}
	sim_frame_put(s, f);
}

/* A frame is at a switch; the reference is given away. */
static void forward(struct cn_sim *s, uint32_t ingress, struct frame *f)
{
	uint32_t v = s->links[ingress].to, d;
	struct sw *sw = &s->switches[v];
	bool at_input = sw->kind == CN_SIM_INPUT;
	struct dlink *holder;
	struct queue *q;

	if (f->to == NOBODY) {
		to_all(s, ingress, f);
		return;
	}
	d = route(s, v, f->to);
	if (d == (ingress ^ 1)) {
		sim_frame_put(s, f); /* back where it came from: a switch filters it */
		return;
	}
	holder = &s->links[at_input ? ingress : d];
	if (!has_room(s, holder, sw)) {
		dropped(s, at_input ? &holder->counters.input_drops : &holder->counters.drops, d,
			f);
		return;
	}
	q = at_input ? &holder->input : &holder->queue;
	if (!sim_queue_put(s, q, f)) {
		return;
	}
	sw->used++;
	note_peak(at_input ? &holder->counters.input_peak : &holder->counters.peak, q->n);
	if (at_input) {
		if (q->n == 1) {
			transfer(s, want(s, ingress));
		}
	} else if (!s->links[d].sending) {
		next(s, d);
	}
}

/* Lost on a cable that was cut meanwhile. */
static bool cut_off(struct cn_sim *s, const struct event *e)
{
	const struct dlink *l = &s->links[e->who];

	if (!l->cut && e->cuts == l->cuts) {
		return false;
	}
	s->totals.lost++;
	sim_trace_frame(s, CN_SIM_DROPPED, e->who, e->what, s->now);
	sim_frame_put(s, e->what);
	return true;
}

/* Whether a frame need not be stored: nothing is before it, and its way out is not faster. */
static bool cuts_through(const struct cn_sim *s, uint32_t ingress, const struct frame *f)
{
	const struct dlink *in = &s->links[ingress], *out;
	uint32_t d;

	if (f->to == NOBODY) {
		return false;
	}
	d = route(s, in->to, f->to);
	out = &s->links[d];
	return !out->sending && out->rate <= in->rate && in->input.n == 0;
}

void sim_head(struct cn_sim *s, const struct event *e)
{
	struct dlink *l = &s->links[e->who];
	struct frame *f = e->what;

	if (cut_off(s, e)) {
		return;
	}
	if (cuts_through(s, e->who, f)) {
		s->totals.frame_events++;
		forward(s, e->who, f);
	} else {
		sim_push_frame(s, s->now + wire_time(l, wire_bytes(s, f)) - head_time(l),
			       EVENT_ARRIVE, e->who, f, e->cuts);
	}
}

void sim_arrive(struct cn_sim *s, const struct event *e)
{
	const struct dlink *l = &s->links[e->who];

	s->totals.frame_events++;
	if (cut_off(s, e)) {
		return;
	}
	if (is_switch(s, l->to)) {
		forward(s, e->who, e->what);
	} else {
		sim_host_receive(s, s->tree->v[s->place[l->to]].node, e->what);
	}
}

/* The frame that a port has sent leaves the queue that it stood in. */
static void leave(struct cn_sim *s, struct dlink *l)
{
	struct frame *f = l->frame;

	l->frame = NULL;
	if (f == queue_first(&l->spread)) {
		sim_queue_get(&l->spread);
	} else {
		sim_queue_get(&l->queue);
		s->switches[l->from].used--; /* not used where a host sends */
	}
	sim_frame_put(s, f);
}

void sim_free_port(struct cn_sim *s, uint32_t d)
{
	struct dlink *l = &s->links[d];

	if (l->frame != NULL) {
		leave(s, l);
	}
	l->sending = false;
	next(s, d);
	if (l->ninputs > 0) {
		transfer(s, d);
	}
	if (!is_switch(s, l->from)) {
		sim_host_sent(s, s->tree->v[s->place[l->from]].node);
	}
}

void sim_host_send(struct cn_sim *s, uint32_t d, struct frame *f)
{
	struct dlink *l = &s->links[d];

	if (sim_queue_put(s, &l->queue, f) && !l->sending) {
		next(s, d);
	}
}

/* ---- construction --------------------------------------------------------------------- */

static void init_link(struct cn_sim *s, uint32_t link)
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
		l->buffer = cn_topo_port_frames(buffer, t->channels);
	}
}

int sim_net_init(struct cn_sim *s, struct cn_err *err)
{
	const struct cn_topo *t = s->topo;

	for (uint32_t k = 0; k < t->nlinks; k++) {
		init_link(s, k);
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
		struct sw *sw;

		if (l->from == NOBODY || !t->vertices[l->from].is_switch) {
			continue;
		}
		l->input_cap = t->adj_start[l->from + 1] - t->adj_start[l->from];
		l->inputs = calloc(l->input_cap, sizeof(*l->inputs));
		if (l->inputs == NULL) {
			return cn_fail(err, COLLNET_ENOMEM, "no memory for the ports of %s",
				       t->vertices[l->from].name);
		}
		sw = &s->switches[l->from];
		sw->size = l->buffer < UINT32_MAX - sw->size ? sw->size + l->buffer : UINT32_MAX;
		sw->boundless |= l->buffer == 0;
	}
	for (uint32_t v = 0; v < t->nvertices; v++) {
		s->switches[v].kind = s->config.kind;
		s->switches[v].size = s->switches[v].boundless ? 0 : s->switches[v].size;
	}
	if (s->config.root.other) {
		struct sw *root = &s->switches[t->root];

		root->kind = s->config.root.kind;
		root->size = s->config.root.memory != 0 ? s->config.root.memory : root->size;
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
