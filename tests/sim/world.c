/* SPDX-License-Identifier: BSD-2-Clause */
#include "attackers.h"
#include "world.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/global_window.h"

#define GUARD 32u /* bytes behind a buffer */

static const uint8_t guard_byte = 0xc3, sent_byte = 0xa5, read_byte = 0x5b, fresh_byte = 0xee;

void world_blame(struct world *w, const char *fmt, ...)
{
	char text[sizeof(w->verdict) - 40];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (w->findings++ == 0) {
		snprintf(w->verdict, sizeof(w->verdict), "at %.6f ms: %s",
			 (double)cn_sim_now(w->sim) / 1e6 - 1000.0, text);
	}
	if (w->verbose) {
		printf("  FOUND at %.6f ms: %s\n", (double)cn_sim_now(w->sim) / 1e6 - 1000.0, text);
	}
}

static void blame_wire(void *arg, const char *text)
{
	world_blame(arg, "%s", text);
}

/* ---- buffers -------------------------------------------------------------------------- */

/* Byte i of what `from` has for `to` in operation `number` depends on the four. */
static uint64_t pattern(uint32_t number, uint32_t from, uint32_t to, uint8_t *data, uint64_t len,
			bool fill)
{
	uint64_t wrong = 0,
		 base = (uint64_t)number << 56 ^ (uint64_t)from << 40 ^ (uint64_t)to << 24;

	for (uint64_t i = 0; i < len; i += 8) {
		uint64_t v = cn_mix64(base ^ i), n = len - i < 8 ? len - i : 8;

		if (fill) {
			memcpy(data + i, &v, n);
		} else {
			wrong += memcmp(data + i, &v, n) != 0;
		}
	}
	return wrong;
}

static uint64_t count_other(const uint8_t *data, uint64_t len, uint8_t byte)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < len; i++) {
		n += data[i] != byte;
	}
	return n;
}

static uint8_t *buffer(uint64_t bytes)
{
	uint8_t *b = bytes > 0 ? malloc(bytes + GUARD) : NULL;

	if (b != NULL) {
		memset(b, fresh_byte, bytes);
		memset(b + bytes, guard_byte, GUARD);
	}
	return b;
}

static bool own_blocks(enum cn_op_kind op)
{
	return op == CN_OP_ALLTOALL || op == CN_OP_SCATTER;
}

static bool prepare(struct call *c)
{
	const struct op_plan *p = &c->world->ops[c->number];
	const struct cn_call k = { p->op, p->bytes, c->rank, c->world->s->ranks, p->root };

	c->send_bytes = cn_call_send_bytes(&k);
	c->recv_bytes = cn_call_recv_bytes(&k);
	c->send = buffer(c->send_bytes);
	c->recv = buffer(c->recv_bytes);
	if ((c->send == NULL) != (c->send_bytes == 0) ||
	    (c->recv == NULL) != (c->recv_bytes == 0)) {
		return false;
	}
	for (uint64_t i = 0; i * p->bytes < c->send_bytes; i++) {
		pattern(c->number, c->rank, own_blocks(p->op) ? (uint32_t)i : 0,
			c->send + i * p->bytes, p->bytes, true);
	}
	return true;
}

/* Blocks of what was received that are not right; *which has the ranks that they are of. */
static uint64_t wrong_blocks(const struct call *c, uint64_t which[2])
{
	const struct op_plan *p = &c->world->ops[c->number];
	bool one = p->op == CN_OP_BCAST || p->op == CN_OP_SCATTER;
	uint64_t wrong = 0;

	which[0] = which[1] = 0;
	for (uint64_t i = 0; i * p->bytes < c->recv_bytes; i++) {
		uint32_t from = one ? p->root : (uint32_t)i;

		if (pattern(c->number, from, own_blocks(p->op) ? c->rank : 0,
			    c->recv + i * p->bytes, p->bytes, false) != 0) {
			wrong++;
			if (from < 128) {
				which[from / 64] |= (uint64_t)1 << from % 64;
			}
		}
	}
	return wrong;
}

static void check_guards(struct call *c)
{
	if ((c->send != NULL && count_other(c->send + c->send_bytes, GUARD, guard_byte) != 0) ||
	    (c->recv != NULL && count_other(c->recv + c->recv_bytes, GUARD, guard_byte) != 0)) {
		world_blame(c->world, "rank %u, operation %u: bytes behind a buffer were written",
			    c->rank, c->number);
	}
}

/* The buffers are the caller's again: he does with them what he likes. */
static void give_back(struct call *c)
{
	check_guards(c);
	if (c->send != NULL) {
		memset(c->send, sent_byte, c->send_bytes);
	}
	if (c->recv != NULL) {
		memset(c->recv, read_byte, c->recv_bytes);
	}
}

static void check_after(struct call *c)
{
	check_guards(c);
	if (c->told == 0) {
		return;
	}
	if (c->recv != NULL && count_other(c->recv, c->recv_bytes, read_byte) != 0) {
		world_blame(c->world,
			    "rank %u, operation %u: its receive buffer was written after it "
			    "had ended",
			    c->rank, c->number);
	}
	if (c->send != NULL && count_other(c->send, c->send_bytes, sent_byte) != 0) {
		world_blame(c->world, "rank %u, operation %u: its send buffer was written", c->rank,
			    c->number);
	}
}

/* ---- calls ---------------------------------------------------------------------------- */

static void post(void *arg);

static struct call *call_of(struct world *w, uint32_t number, uint32_t rank)
{
	return &w->calls[number * w->s->ranks + rank];
}

/* This rank calls no more: those that it will not make are not waited for. */
static void fall_silent(struct rank *r)
{
	struct world *w = r->world;

	if (!r->quiet) {
		r->quiet = true;
		w->open -= w->nops - r->next;
	}
}

static void call_later(struct rank *r)
{
	struct world *w = r->world;

	if (r->next >= r->stop) {
		fall_silent(r);
	}
	if (!r->quiet && !r->waiting && r->next < w->nops && r->next - r->ended < w->s->depth) {
		r->waiting = true;
		cn_sim_at(w->sim,
			  cn_sim_now(w->sim) +
				  (w->s->think > 0 ? cn_random(&w->random) % w->s->think : 0),
			  post, r);
	}
}

static void finish(struct call *c, int status, const char *text)
{
	struct world *w = c->world;
	struct rank *r = &w->ranks[c->rank];

	if (c->told++ > 0) {
		world_blame(w, "rank %u is told a second time of operation %u: %s", c->rank,
			    c->number, text);
		return;
	}
	c->status = status;
	snprintf(c->text, sizeof(c->text), "%s", text);
	c->ended = w->finish = cn_sim_now(w->sim);
	if (wrong_blocks(c, c->missing) != 0 && status == COLLNET_OK) {
		world_blame(w, "rank %u, operation %u (%s): bytes are wrong", c->rank, c->number,
			    cn_op_name(w->ops[c->number].op));
	}
	give_back(c);
	wire_oracle_over(w->wire, r->host, c->number);
	w->open--;
	r->ended++;
	judge_call(w, c);
	if (status != COLLNET_OK) {
		fall_silent(r);
	}
	call_later(r);
}

static void ended(struct cn_done *d, int status, const char *text)
{
	struct call *c = (struct call *)((char *)d - offsetof(struct call, done));

	if (!c->posted) {
		world_blame(c->world, "rank %u is told of operation %u, which was refused", c->rank,
			    c->number);
	} else {
		finish(c, status, text);
	}
}

/* Event: the rank makes its next call. */
static void post(void *arg)
{
	struct rank *r = arg;
	struct world *w = r->world;
	struct call *c;
	struct cn_coll_args a = { 0 };
	const struct op_plan *p;
	struct cn_err err = { 0 };

	r->waiting = false;
	if (r->quiet || r->member == NULL || r->next == w->nops) {
		return;
	}
	p = &w->ops[r->next];
	c = call_of(w, r->next++, r->number);
	c->at = cn_sim_now(w->sim);
	c->deadline = c->at + (w->ops == w->s->after ? CALM_DEADLINE : w->s->deadline);
	if (!prepare(c)) {
		world_blame(w, "no memory for buffers");
		return;
	}
	a = (struct cn_coll_args){
		.op = p->op,
		.algorithm = p->algorithm,
		.permutation = p->permutation,
		.contention_aware = p->contention_aware,
		.window = p->window,
		.root = p->root,
		.bytes = p->bytes,
		.send = c->send,
		.recv = c->recv,
		.deadline = c->deadline,
	};
	c->done.fn = ended;
	c->posted = true;
	if (cn_coll_post(r->member, c->at, &a, &c->done, &err) != COLLNET_OK) {
		if (c->told > 0) {
			world_blame(w,
				    "rank %u was told of operation %u, and the call failed too: %s",
				    r->number, c->number, err.text);
		} else {
			finish(c, err.code, err.text);
		}
		c->posted = false;
	}
	cn_sim_kick(w->sim, r->host);
	call_later(r);
}

/* Event, every millisecond while calls are open. */
static void look(void *arg)
{
	struct world *w = arg;
	cn_time now = cn_sim_now(w->sim);

	if (w->open == 0) {
		return;
	}
	for (uint32_t i = 0; i < w->nops * w->s->ranks; i++) {
		const struct call *c = &w->calls[i];
		cn_time deadline = c->deadline;

		if (!c->posted || c->told > 0) {
			continue;
		}
		if (deadline < w->frozen[w->ranks[c->rank].host]) {
			deadline = w->frozen[w->ranks[c->rank].host];
		}
		if (now > deadline + w->limit_slack) {
			world_blame(w, "rank %u, operation %u is alive %.3f ms past its deadline",
				    c->rank, c->number, (double)(now - deadline) / 1e6);
			w->open = 0;
			return;
		}
	}
	for (uint32_t h = 0; h < w->s->hosts; h++) {
		struct cn_engine *e = cn_sim_engine(w->sim, h);
		const struct cn_window *g = e != NULL ? cn_node_window(cn_engine_node(e)) : NULL;

		if (g != NULL && g->in_flight > g->limit) {
			world_blame(w, "W_g of host %u: %u of %u", h, g->in_flight, g->limit);
		}
	}
	cn_sim_at(w->sim, now + CN_MS, look, w);
}

/* ---- faults --------------------------------------------------------------------------- */

struct happening {
	struct world *world;
	const struct fault_plan *plan;
	bool end;
};

static void rank_gone(struct rank *r, bool failed)
{
	struct cn_member *m = r->member;

	r->member = NULL;
	fall_silent(r);
	if (m != NULL) {
		cn_team_leave(m, cn_sim_now(r->world->sim), failed);
		cn_sim_kick(r->world->sim, r->host);
	}
}

static void crash(struct world *w, const struct fault_plan *f)
{
	w->crashed[f->host] = true;
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		if (w->ranks[i].host == f->host) {
			w->ranks[i].member = NULL; /* goes with the engine */
			fall_silent(&w->ranks[i]);
		}
	}
	cn_sim_crash(w->sim, f->host);
}

static void begin(struct world *w, const struct fault_plan *f)
{
	switch (f->kind) {
	case FAULT_WEATHER:
		cn_sim_fault(w->sim, f->link, f->end, &f->weather);
		break;
	case FAULT_CUT:
		cn_sim_cut(w->sim, f->link, f->end, true);
		break;
	case FAULT_PAUSE:
		w->frozen[f->host] = cn_sim_now(w->sim) + f->until - f->at;
		cn_sim_pause(w->sim, f->host, f->until - f->at);
		break;
	case FAULT_CRASH:
		crash(w, f);
		break;
	case FAULT_DIE:
	case FAULT_LEAVE:
		rank_gone(&w->ranks[f->rank], f->kind == FAULT_DIE);
		break;
	case FAULT_NO_CALL:
		break; /* its calls stop by themselves: call_later() */
	}
}

static void end(struct world *w, const struct fault_plan *f)
{
	static const struct cn_sim_faults none;
	struct cn_err err = { 0 };

	if (f->kind == FAULT_WEATHER) {
		cn_sim_fault(w->sim, f->link, f->end, &none);
	} else if (f->kind == FAULT_CUT) {
		cn_sim_cut(w->sim, f->link, f->end, false);
	} else if (f->kind == FAULT_CRASH && cn_sim_restart(w->sim, f->host, &err) != COLLNET_OK) {
		world_blame(w, "host %u does not start again: %s", f->host, err.text);
	}
}

static void happen(void *arg)
{
	struct happening *h = arg;

	if (h->world->verbose) {
		printf("  %.6f ms: fault %d %s\n", (double)cn_sim_now(h->world->sim) / 1e6 - 1000.0,
		       h->plan->kind, h->end ? "ends" : "begins");
	}
	(h->end ? end : begin)(h->world, h->plan);
}

/* ---- teams ---------------------------------------------------------------------------- */

static void joined(struct cn_done *d, int status, const char *text)
{
	struct rank *r = (struct rank *)((char *)d - offsetof(struct rank, join));

	if (r->join_told) {
		world_blame(r->world, "rank %u is told a second time that it joined: %s", r->number,
			    text);
	}
	r->join_told = true;
	r->join_status = status;
	snprintf(r->join_text, sizeof(r->join_text), "%s", text);
}

static bool join_all(struct world *w)
{
	cn_time until = cn_sim_now(w->sim) + 60000 * CN_MS;
	uint32_t told = 0;

	for (uint32_t i = 0; i < w->s->ranks; i++) {
		struct rank *r = &w->ranks[i];
		struct cn_err err = { 0 };

		*r = (struct rank){ .join = { joined },
				    .world = w,
				    .number = i,
				    .host = i / w->s->local,
				    .stop = UINT32_MAX };
		if (cn_team_join(cn_sim_engine(w->sim, r->host), cn_sim_now(w->sim), 1000, "job", i,
				 w->s->ranks, until, &r->join, &r->member, &err) != COLLNET_OK) {
			world_blame(w, "rank %u cannot join: %s", i, err.text);
			return false;
		}
		cn_sim_kick(w->sim, r->host);
	}
	while (told < w->s->ranks && cn_sim_step(w->sim, until + 100 * CN_MS)) {
		while (told < w->s->ranks && w->ranks[told].join_told) {
			told++;
		}
	}
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		const struct rank *r = &w->ranks[i];

		if (!r->join_told || r->join_status != COLLNET_OK) {
			world_blame(w, "rank %u does not join: %s", i,
				    r->join_told ? r->join_text : "nobody tells it");
			return false;
		}
	}
	if (w->verbose) {
		printf("  %.6f ms: all have joined\n", (double)cn_sim_now(w->sim) / 1e6 - 1000.0);
	}
	return true;
}

static void leave_all(struct world *w)
{
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		rank_gone(&w->ranks[i], false);
	}
}

/* Until nobody has anything to say any more, but not for ever; and a little longer. */
static void calm_down(struct world *w)
{
	for (int i = 0; i < 60; i++) {
		cn_sim_run(w->sim, cn_sim_now(w->sim) + 1000 * CN_MS);
		if (i > 0 && judge_is_quiet(w)) {
			return;
		}
	}
}

static void print_calls(const struct world *w)
{
	for (uint32_t i = 0; w->verbose && i < w->nops * w->s->ranks; i++) {
		const struct call *c = &w->calls[i];

		if (c->posted || c->told > 0) {
			printf("  rank %u, operation %u: %.6f .. %.6f ms: %d %s\n", c->rank,
			       c->number, (double)c->at / 1e6 - 1000.0,
			       (double)c->ended / 1e6 - 1000.0, c->status, c->text);
		}
	}
}

/* Runs the operations of the present team; faults: also what goes wrong. */
static bool run_ops(struct world *w, const struct op_plan *ops, uint32_t nops, bool faults)
{
	struct happening happenings[2 * FAULTS_MAX];
	uint32_t n = 0;
	cn_time quiet;

	w->ops = ops;
	w->nops = nops;
	w->calls = calloc((size_t)nops * w->s->ranks, sizeof(*w->calls));
	if (w->calls == NULL) {
		world_blame(w, "no memory for calls");
		return false;
	}
	wire_oracle_team(w->wire);
	w->start = quiet = w->finish = cn_sim_now(w->sim);
	w->open = nops * w->s->ranks;
	for (uint32_t i = 0; i < nops; i++) {
		wire_oracle_limit(w->wire, i, judge_window(w->s, &ops[i]), judge_by_acks(&ops[i]));
		for (uint32_t k = 0; k < w->s->ranks; k++) {
			*call_of(w, i, k) = (struct call){ .world = w, .rank = k, .number = i };
		}
	}
	cn_sim_totals(w->sim, &w->before);
	for (uint32_t i = 0; faults && i < w->s->nfaults; i++) {
		const struct fault_plan *f = &w->s->faults[i];

		happenings[n] = (struct happening){ w, f, false };
		cn_sim_at(w->sim, w->start + f->at, happen, &happenings[n++]);
		quiet = w->start + f->at > quiet ? w->start + f->at : quiet;
		if (f->until != CN_NEVER) {
			happenings[n] = (struct happening){ w, f, true };
			cn_sim_at(w->sim, w->start + f->until, happen, &happenings[n++]);
			quiet = w->start + f->until > quiet ? w->start + f->until : quiet;
		}
		if (f->kind == FAULT_NO_CALL) {
			w->ranks[f->rank].stop = f->number;
		}
	}
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		call_later(&w->ranks[i]);
	}
	cn_sim_at(w->sim, w->start, look, w);
	while (w->open > 0 && cn_sim_step(w->sim, CN_NEVER)) {
	}
	print_calls(w);
	/* The happenings are on this stack: all of them are over when we leave. */
	cn_sim_run(w->sim, (quiet > cn_sim_now(w->sim) ? quiet : cn_sim_now(w->sim)) + 1);
	return w->findings == 0;
}

static void end_calls(struct world *w)
{
	for (uint32_t i = 0; i < w->nops * w->s->ranks && w->calls != NULL; i++) {
		struct call *c = &w->calls[i];

		check_after(c);
		free(c->send);
		free(c->recv);
	}
	free(w->calls);
	w->calls = NULL;
	w->nops = 0;
}

/* Weather is there from the beginning; all else begins with the calls. */
static void set_weather(struct world *w)
{
	for (uint32_t i = 0; w->s->climate == WEATHER && i < w->s->nfaults; i++) {
		begin(w, &w->s->faults[i]);
	}
}

static void mend(struct world *w)
{
	static const struct cn_sim_faults none;
	struct cn_err err = { 0 };

	cn_sim_fault(w->sim, CN_TOPO_NONE, 2, &none);
	for (uint32_t h = 0; h < w->s->hosts; h++) {
		if (cn_sim_engine(w->sim, h) == NULL &&
		    cn_sim_restart(w->sim, h, &err) != COLLNET_OK) {
			world_blame(w, "host %u does not start again: %s", h, err.text);
		}
		w->crashed[h] = false;
	}
}

static void run(struct world *w)
{
	bool calm = scenario_is_calm(w->s);

	set_weather(w);
	if (!join_all(w)) {
		return;
	}
	run_ops(w, w->s->ops, w->s->nops, w->s->climate != WEATHER);
	if (calm && w->findings == 0) {
		judge_goodput(w);
	}
	leave_all(w);
	calm_down(w);
	end_calls(w);
	if (w->findings > 0) {
		return;
	}
	if (!calm) {
		mend(w);
		cn_sim_run(w->sim, cn_sim_now(w->sim) + 3000 * CN_MS);
		if (!join_all(w) || !run_ops(w, w->s->after, w->s->nafter, false)) {
			leave_all(w);
			end_calls(w);
			return;
		}
		leave_all(w);
		calm_down(w);
		end_calls(w);
	}
	judge_rest(w);
}

bool world_run(struct world *w, const struct scenario *s, bool verbose)
{
	const struct cn_sim_config *c = &s->config;
	const struct wire_oracle_config wc = {
		.topo = s->topo,
		.window = c->engine.node.window,
		.blame = blame_wire,
		.arg = w,
	};
	struct cn_err err = { 0 };

	memset(w, 0, sizeof(*w));
	w->s = s;
	w->verbose = verbose;
	w->random = cn_mix64(s->seed ^ 0x776f726c64);
	/* A full ring is emptied before timers are looked at, and a wake-up may be late. */
	w->limit_slack = 50 * CN_MS + 2 * c->jitter +
			 2 * c->ring * (c->o_recv + c->u_recv + c->o_send);
	w->ranks = calloc(s->ranks, sizeof(*w->ranks));
	w->frozen = calloc(s->hosts, sizeof(*w->frozen));
	w->crashed = calloc(s->hosts, sizeof(*w->crashed));
	w->wire = wire_oracle_new(&wc);
	if (w->ranks == NULL || w->frozen == NULL || w->crashed == NULL || w->wire == NULL ||
	    cn_sim_new(c, &w->sim, &err) != COLLNET_OK) {
		snprintf(w->verdict, sizeof(w->verdict), "cannot begin: %.300s", err.text);
		w->findings++;
	} else {
		struct attackers *a = NULL;

		cn_sim_trace(w->sim, wire_oracle_see, w->wire);
		if (s->attackers != 0) {
			a = attackers_new(w, s->attackers);
		}
		run(w);
		if (a != NULL) {
			attackers_judge(a);
		} else if (s->attackers != 0) {
			world_blame(w, "no memory for the attackers");
		}
		cn_sim_trace(w->sim, NULL, NULL);
		attackers_free(a);
	}
	cn_sim_free(w->sim);
	wire_oracle_free(w->wire);
	free(w->ranks);
	free(w->frozen);
	free(w->crashed);
	return w->findings == 0;
}
