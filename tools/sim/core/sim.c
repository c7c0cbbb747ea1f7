/* SPDX-License-Identifier: BSD-2-Clause */
/* Construction, the event loop, counters and the trace of a simulation. */
#include <stdlib.h>
#include <string.h>

#include "tools/sim/core/parts.h"

/* ---- shared by all parts -------------------------------------------------------------- */

void sim_push(struct cn_sim *s, cn_time at, enum event_kind kind, uint32_t who, void *what)
{
	struct event e = { .at = at, .kind = (uint16_t)kind, .who = who, .what = what };

	if (!sim_events_push(&s->events, e)) {
		sim_fail(s);
	}
}

void sim_fail(struct cn_sim *s)
{
	s->failed = true;
}

struct frame *sim_frame_new(struct cn_sim *s)
{
	struct frame *f = s->spare;

	if (f != NULL) {
		memcpy(&s->spare, f->data, sizeof(struct frame *));
	} else {
		f = malloc(sizeof(*f) + s->frame_bytes);
	}
	if (f == NULL) {
		sim_fail(s);
		return NULL;
	}
	memset(f, 0, sizeof(*f));
	f->refs = 1;
	return f;
}

void sim_frame_put(struct cn_sim *s, struct frame *f)
{
	if (--f->refs == 0) {
		memcpy(f->data, &s->spare, sizeof(struct frame *));
		s->spare = f;
	}
}

void sim_trace_frame(struct cn_sim *s, enum cn_sim_record_kind kind, uint32_t d,
		     const struct frame *f, cn_time until)
{
	if (s->trace != NULL) {
		const struct cn_sim_record record = {
			.kind = kind,
			.at = s->now,
			.until = until,
			.link = d / 2,
			.end = d % 2,
			.frame = f->data,
			.len = f->len,
		};

		s->trace(s->trace_arg, &record);
	}
}

uint64_t sim_below(struct cn_sim *s, uint64_t n)
{
	return cn_random(&s->random) % n;
}

/* ---- construction --------------------------------------------------------------------- */

void cn_sim_config_init(struct cn_sim_config *c)
{
	memset(c, 0, sizeof(*c));
	c->alpha_pct = 100;
	c->rate = 1000000000;
	c->latency = 500;
	c->delay = 2 * CN_US;
	c->ring = 2048;
	c->queue = 2;
	c->seed = 1;
	cn_engine_config_init(&c->engine);
}

static int check(const struct cn_sim_config *c, struct cn_err *err)
{
	if (c->topo == NULL || c->topo->nhosts < 1 || !c->topo->vertices[c->topo->root].is_switch) {
		return cn_fail(err, COLLNET_ETOPO, "a simulation needs a topology with a switch");
	}
	if (c->rate == 0) {
		return cn_fail(err, COLLNET_EINVAL, "a simulation needs a rate for its links");
	}
	if (c->buckets && c->cut_through) {
		return cn_fail(err, COLLNET_EINVAL,
			       "frames pass token buckets whole: they do not cut "
			       "through");
	}
	if (c->alpha_pct == 0 || c->queue == 0 || c->ring == 0) {
		return cn_fail(err, COLLNET_EINVAL,
			       "a threshold, ring or queue of a simulation is 0");
	}
	return COLLNET_OK;
}

static int allocate(struct cn_sim *s, struct cn_err *err)
{
	const struct cn_topo *t = s->topo;
	int rc = cn_tree_make(t, t->hosts, t->nhosts, t->root, &s->tree, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	s->frame_bytes = s->config.engine.node.mtu + CN_ETH_HEADER + CN_FRAME_HEAD;
	s->place = calloc(t->nvertices, sizeof(*s->place));
	s->up = calloc(s->tree->n, sizeof(*s->up));
	s->down = calloc(s->tree->n, sizeof(*s->down));
	s->links = calloc(2 * (size_t)t->nlinks, sizeof(*s->links));
	s->hosts = calloc(t->nhosts, sizeof(*s->hosts));
	s->switches = calloc(t->nvertices, sizeof(*s->switches));
	if (s->place == NULL || s->up == NULL || s->down == NULL || s->links == NULL ||
	    s->hosts == NULL || s->switches == NULL ||
	    cn_heap_init(&s->polls, t->nhosts) != COLLNET_OK) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to simulate %u hosts", t->nhosts);
	}
	return sim_net_init(s, err);
}

int cn_sim_new(const struct cn_sim_config *c, struct cn_sim **out, struct cn_err *err)
{
	struct cn_sim *s;
	int rc = check(c, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a simulation");
	}
	s->config = *c;
	s->config.output = c->output != 0 ? c->output : OUTPUT_FRAMES;
	s->topo = c->topo;
	s->now = 1000000000;
	s->random = c->seed;
	rc = allocate(s, err);
	for (uint32_t i = 0; rc == COLLNET_OK && i < s->topo->nhosts; i++) {
		struct host *h = &s->hosts[i];

		h->vertex = s->topo->hosts[i];
		h->out = s->up[s->tree->host[i]];
		h->poll.at = CN_NEVER;
		h->poll.owner = h;
		rc = sim_host_start(s, i, err);
	}
	if (rc != COLLNET_OK) {
		cn_sim_free(s);
		return rc;
	}
	*out = s;
	return COLLNET_OK;
}

void cn_sim_free(struct cn_sim *s)
{
	struct event e;
	struct frame *f;

	if (s == NULL) {
		return;
	}
	for (uint32_t i = 0; s->hosts != NULL && i < s->topo->nhosts; i++) {
		cn_sim_crash(s, i);
		free(s->hosts[i].ring.frames);
	}
	while (sim_events_pop(&s->events, CN_NEVER, &e)) {
		if (e.kind == EVENT_ARRIVE || e.kind == EVENT_HEAD || e.kind == EVENT_CARD) {
			sim_frame_put(s, e.what);
		} else if (e.kind == EVENT_USER) {
			free(e.what);
		}
	}
	sim_net_done(s);
	while ((f = s->spare) != NULL) {
		memcpy(&s->spare, f->data, sizeof(struct frame *));
		free(f);
	}
	cn_tree_free(s->tree);
	free(s->events.heap);
	cn_heap_fini(&s->polls);
	free(s->place);
	free(s->up);
	free(s->down);
	free(s->links);
	free(s->hosts);
	free(s->switches);
	free(s);
}

/* ---- running -------------------------------------------------------------------------- */

cn_time cn_sim_now(const struct cn_sim *s)
{
	return s->now;
}

bool cn_sim_step(struct cn_sim *s, cn_time until)
{
	struct cn_timer *poll;
	cn_time poll_at;
	struct user call;
	struct event e;

	if (s->failed) {
		return false;
	}
	poll_at = cn_heap_next(&s->polls);
	if (!sim_events_pop(&s->events, cn_min_time(poll_at, until), &e)) {
		if (poll_at > until || poll_at == CN_NEVER) {
			s->now = until == CN_NEVER ? s->now : until;
			return false;
		}
		poll = cn_heap_first(&s->polls);
		s->now = poll_at;
		s->totals.events++;
		cn_heap_set(&s->polls, poll, CN_NEVER);
		sim_host_poll(s, (uint32_t)((struct host *)poll->owner - s->hosts));
		return true;
	}
	s->now = e.at;
	s->totals.events++;
	switch (e.kind) {
	case EVENT_HEAD:
		sim_head(s, &e);
		break;
	case EVENT_ARRIVE:
		sim_arrive(s, &e);
		break;
	case EVENT_FREE:
		sim_free_port(s, e.who);
		break;
	case EVENT_CARD:
		sim_host_send(s, e.who, e.what);
		break;
	default:
		call = *(struct user *)e.what;
		free(e.what);
		call.fn(call.arg);
		break;
	}
	return true;
}

void cn_sim_run(struct cn_sim *s, cn_time until)
{
	while (cn_sim_step(s, until)) {
	}
}

bool cn_sim_failed(const struct cn_sim *s)
{
	return s->failed;
}

uint32_t cn_sim_hosts(const struct cn_sim *s)
{
	return s->topo->nhosts;
}

struct cn_engine *cn_sim_engine(struct cn_sim *s, uint32_t host)
{
	return s->hosts[host].engine;
}

void cn_sim_kick(struct cn_sim *s, uint32_t host)
{
	sim_host_kick(s, host);
}

int cn_sim_at(struct cn_sim *s, cn_time at, void (*fn)(void *arg), void *arg)
{
	struct event e = { .at = at > s->now ? at : s->now, .kind = EVENT_USER };
	struct user *u = malloc(sizeof(*u));

	if (u == NULL) {
		sim_fail(s);
		return COLLNET_ENOMEM;
	}
	*u = (struct user){ fn, arg };
	e.what = u;
	if (!sim_events_push(&s->events, e)) {
		free(u);
		sim_fail(s);
		return COLLNET_ENOMEM;
	}
	return COLLNET_OK;
}

/* ---- counters and trace --------------------------------------------------------------- */

enum cn_sim_kind cn_sim_switch(const struct cn_sim *s, uint32_t v, uint32_t *memory)
{
	const struct sw *sw = &s->switches[v];

	*memory = sw->kind == CN_SIM_SHARED || sw->kind == CN_SIM_DYNAMIC ? sw->size : 0;
	return sw->kind;
}

void cn_sim_port(const struct cn_sim *s, uint32_t link, uint32_t end, struct cn_sim_port *out)
{
	*out = s->links[2 * link + end].counters;
}

void cn_sim_reset_peaks(struct cn_sim *s)
{
	for (uint32_t d = 0; d < 2 * s->topo->nlinks; d++) {
		s->links[d].counters.peak = s->links[d].counters.input_peak = 0;
	}
}

void cn_sim_totals(const struct cn_sim *s, struct cn_sim_totals *out)
{
	*out = s->totals;
}

void cn_sim_trace(struct cn_sim *s, void (*fn)(void *arg, const struct cn_sim_record *record),
		  void *arg)
{
	s->trace = fn;
	s->trace_arg = arg;
}
