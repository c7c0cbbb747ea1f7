/* SPDX-License-Identifier: BSD-2-Clause */
/* A run: teams, calls and their deadlines. */
#include "attackers.h"
#include "fixture.h"
#include "tests/unit/reduction.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/engine_state.h"
#include "proto/global_window.h"
#include "proto/node_impl.h"

void fixture_report(struct fixture *fx, const char *fmt, ...)
{
	char text[sizeof(fx->finding) - 40];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (fx->findings++ == 0) {
		snprintf(fx->finding, sizeof(fx->finding), "at %.6f ms: %s",
			 (double)cn_sim_now(fx->sim) / 1e6 - 1000.0, text);
	}
	if (fx->verbose) {
		printf("  FOUND at %.6f ms: %s\n", (double)cn_sim_now(fx->sim) / 1e6 - 1000.0,
		       text);
	}
}

static void see(void *arg, const struct cn_sim_record *record)
{
	struct fixture *fx = arg;

	wire_oracle_record(fx->wire, record);
	oracle_idle_record(fx, record);
}

static void report_wire(void *arg, const char *text)
{
	fixture_report(arg, "%s", text);
}

static bool port_of(void *arg, uint32_t host, const uint8_t to[6], uint32_t session, uint16_t *out)
{
	const struct fixture *fx = arg;
	const struct cn_engine *e = cn_sim_engine(fx->sim, host);

	for (const struct cn_transport *x = e != NULL ? &e->own : NULL; x != NULL; x = x->next) {
		const struct cn_peer *p = cn_peer_by_mac(x->node, to);

		if (p != NULL && p->session_out == session) {
			*out = x->port;
			return true;
		}
	}
	return false;
}

/* Frames of so many bytes that the links carry in the round trip to the node that is furthest away,
 * of which so much counts at most. */
static uint32_t in_cables(void *arg, uint32_t host, uint32_t bytes)
{
	struct fixture *fx = arg;
	const struct cn_topo *t = fx->s->topo;
	struct cn_engine *e = cn_sim_engine(fx->sim, host);
	const cn_time most = 200 * CN_US;
	cn_time rtt = 0;

	for (uint32_t i = 0; e != NULL && i < cn_node_peers(cn_engine_node(e)); i++) {
		cn_time to = cn_peer_least_rtt(cn_node_peer(cn_engine_node(e), i));

		rtt = to > rtt ? to : rtt;
	}
	rtt = rtt < most ? rtt : most;
	return cn_topo_transit(cn_topo_share(t, t->hosts, t->nhosts, false), rtt, bytes);
}

static uint32_t in_vain(void *arg, uint32_t host)
{
	const struct fixture *fx = arg;
	const struct cn_engine *e = cn_sim_engine(fx->sim, host);
	uint32_t n = 0;

	for (const struct cn_transport *x = e != NULL ? &e->own : NULL; x != NULL; x = x->next) {
		for (uint32_t i = 0; i < cn_node_peers(x->node); i++) {
			struct cn_peer *p = cn_node_peer(x->node, i);
			const struct cn_rtx_queue *q = &p->tx.queue;

			for (uint32_t s = q->una; !cn_peer_rnr_received(p) && s != q->end; s++) {
				n += cn_rtx_at(&p->tx.queue, s)->refused;
			}
		}
		const struct cn_turn *at = x->sources.current;

		for (uint32_t i = 0; i < x->sources.n; i++, at = at->next) {
			n += (uint32_t)((const struct cn_source *)at->owner)->flight.deferred;
		}
	}
	return n;
}

/* ---- calls ---------------------------------------------------------------------------- */

static void post(void *arg);

static struct call *call_of(struct fixture *fx, uint32_t number, uint32_t rank)
{
	return &fx->calls[number * fx->s->ranks + rank];
}

/* The rank makes no more calls; the remaining ones are not waited for. */
void fixture_stop_calling(struct rank *r)
{
	struct fixture *fx = r->fixture;

	if (!r->stopped) {
		r->stopped = true;
		fx->open -= fx->nops - r->next;
	}
}

static void call_later(struct rank *r)
{
	struct fixture *fx = r->fixture;

	if (r->next >= r->stop) {
		fixture_stop_calling(r);
	}
	if (!r->stopped && !r->waiting && r->next < fx->nops && r->next - r->ended < fx->s->depth) {
		r->waiting = true;
		cn_sim_at(fx->sim,
			  cn_sim_now(fx->sim) +
				  (fx->s->think > 0 ? cn_random(&fx->random) % fx->s->think : 0),
			  post, r);
	}
}

/* what: NULL: nothing is wrong. */
static void report_buffers(const struct call *c, const char *what)
{
	if (what != NULL) {
		fixture_report(c->fixture, "rank %u, operation %u: %s", c->rank, c->number, what);
	}
}

static void finish(struct call *c, int status, const char *text)
{
	struct fixture *fx = c->fixture;
	struct rank *r = &fx->ranks[c->rank];

	oracle_idle_note(fx);
	if (c->completions++ > 0) {
		fixture_report(fx, "rank %u: operation %u completed a second time: %s", c->rank,
			       c->number, text);
		return;
	}
	c->status = status;
	snprintf(c->text, sizeof(c->text), "%s", text);
	c->ended = fx->finish = cn_sim_now(fx->sim);
	if (buffers_wrong(&c->buffers, c->missing) != 0 && status == COLLNET_OK) {
		fixture_report(fx, "rank %u, operation %u (%s): bytes are wrong", c->rank,
			       c->number, cn_op_name(fx->ops[c->number].op));
	}
	report_buffers(c, buffers_release(&c->buffers));
	wire_oracle_over(fx->wire, r->host, c->number);
	fx->open--;
	r->ended++;
	oracle_check_call(fx, c);
	if (status != COLLNET_OK) {
		fixture_stop_calling(r);
	}
	call_later(r);
}

/* Event: a piece is combined, unless the operation has ended meanwhile. */
static void combine_late(void *arg)
{
	struct call *c = arg;

	if (c->reducer.op != NULL) {
		buffers_combine(&c->buffers, &c->piece);
		cn_coll_combined(&c->reducer);
		cn_sim_kick(c->fixture->sim, c->fixture->ranks[c->rank].host);
	}
}

static bool combine(struct cn_reducer *r, const struct cn_combine *piece)
{
	struct call *c = (struct call *)((char *)r - offsetof(struct call, reducer));
	struct fixture *fx = c->fixture;

	c->piece = *piece;
	if (fx->s->late && cn_random(&fx->random) % 2 == 0 &&
	    cn_sim_at(fx->sim, cn_sim_now(fx->sim) + cn_random(&fx->random) % FIXTURE_LATE,
		      combine_late, c) == COLLNET_OK) {
		return false;
	}
	buffers_combine(&c->buffers, piece);
	return true;
}

static void ended(struct cn_done *d, int status, const char *text)
{
	struct call *c = (struct call *)((char *)d - offsetof(struct call, done));

	if (!c->posted) {
		fixture_report(c->fixture,
			       "rank %u: operation %u completed, but its call had failed", c->rank,
			       c->number);
	} else {
		finish(c, status, text);
	}
}

/* Event: the rank makes its next call. */
static void post(void *arg)
{
	struct rank *r = arg;
	struct fixture *fx = r->fixture;
	struct call *c;
	struct cn_coll_args a = { 0 };
	const struct op_plan *p;
	struct cn_err err = { 0 };

	oracle_idle_note(fx);
	r->waiting = false;
	if (r->stopped || r->member == NULL || r->next == fx->nops) {
		return;
	}
	p = &fx->ops[r->next];
	c = call_of(fx, r->next++, r->number);
	c->at = cn_sim_now(fx->sim);
	c->deadline = c->at + (fx->ops == fx->s->after ? SUCCESS_DEADLINE : fx->s->deadline);
	c->buffers = (struct buffers){ .plan = p,
				       .number = c->number,
				       .rank = c->rank,
				       .ranks = fx->s->ranks,
				       .nodes = fx->s->hosts,
				       .local = fx->s->local };
	if (!buffers_prepare(&c->buffers)) {
		fixture_report(fx, "no memory for buffers");
		return;
	}
	a = (struct cn_coll_args){
		.op = p->op,
		.algorithm = p->algorithm,
		.permutation = p->permutation,
		.contention_aware = p->contention_aware,
		.window = p->window,
		.root = p->root,
		.bytes = cn_op_is_vector(p->op) ? 0 : p->bytes,
		.blocks = c->buffers.blocks,
		.send = c->buffers.send,
		.recv = c->buffers.recv,
		.deadline = c->deadline,
		.element = cn_op_reduces(p->op) ? reduction_element(p->ordered) : 0,
		.ordered = p->ordered,
		.scratch = c->buffers.scratch,
		.reducer = cn_op_reduces(p->op) ? &c->reducer : NULL,
	};
	c->reducer.combine = combine;
	c->done.fn = ended;
	c->posted = true;
	if (cn_coll_post(r->member, c->at, &a, &c->done, &err) != COLLNET_OK) {
		if (c->completions > 0) {
			fixture_report(
				fx, "rank %u: operation %u completed, and its call failed, too: %s",
				r->number, c->number, err.text);
		} else {
			finish(c, err.code, err.text);
		}
		c->posted = false;
	}
	cn_sim_kick(fx->sim, r->host);
	call_later(r);
}

/* Event, every millisecond while calls are open. */
static void check_deadlines(void *arg)
{
	struct fixture *fx = arg;
	cn_time now = cn_sim_now(fx->sim);

	if (fx->open == 0) {
		return;
	}
	for (uint32_t i = 0; i < fx->nops * fx->s->ranks; i++) {
		const struct call *c = &fx->calls[i];
		cn_time deadline = c->deadline;

		if (!c->posted || c->completions > 0) {
			continue;
		}
		if (deadline < fx->frozen[fx->ranks[c->rank].host]) {
			deadline = fx->frozen[fx->ranks[c->rank].host];
		}
		if (now > deadline + fx->limit_slack) {
			fixture_report(fx,
				       "rank %u, operation %u is active %.3f ms past its deadline",
				       c->rank, c->number, (double)(now - deadline) / 1e6);
			fx->open = 0;
			return;
		}
	}
	for (uint32_t h = 0; h < fx->s->hosts; h++) {
		struct cn_engine *e = cn_sim_engine(fx->sim, h);
		const struct cn_window *g = e != NULL ? cn_node_window(cn_engine_node(e)) : NULL;

		if (g != NULL && g->in_flight > g->limit) {
			fixture_report(fx, "W_g of host %u: %u of %u", h, g->in_flight, g->limit);
		}
	}
	cn_sim_at(fx->sim, now + CN_MS, check_deadlines, fx);
}

/* ---- teams ---------------------------------------------------------------------------- */

static void joined(struct cn_done *d, int status, const char *text)
{
	struct rank *r = (struct rank *)((char *)d - offsetof(struct rank, join));

	if (r->join_done) {
		fixture_report(r->fixture, "rank %u: its join completed a second time: %s",
			       r->number, text);
	}
	r->join_done = true;
	r->join_status = status;
	snprintf(r->join_text, sizeof(r->join_text), "%s", text);
}

static bool join_all(struct fixture *fx)
{
	cn_time until = cn_sim_now(fx->sim) + 60000 * CN_MS;
	uint32_t done = 0;

	for (uint32_t i = 0; i < fx->s->ranks; i++) {
		struct rank *r = &fx->ranks[i];
		struct cn_err err = { 0 };

		*r = (struct rank){ .join = { joined },
				    .fixture = fx,
				    .number = i,
				    .host = i / fx->s->local,
				    .stop = UINT32_MAX };
		if (cn_team_join(cn_sim_engine(fx->sim, r->host), cn_sim_now(fx->sim), 1000, "job",
				 i, fx->s->ranks, until, &r->join, &r->member,
				 &err) != COLLNET_OK) {
			fixture_report(fx, "rank %u cannot join: %s", i, err.text);
			return false;
		}
		cn_sim_kick(fx->sim, r->host);
	}
	while (done < fx->s->ranks && cn_sim_step(fx->sim, until + 100 * CN_MS)) {
		while (done < fx->s->ranks && fx->ranks[done].join_done) {
			done++;
		}
	}
	for (uint32_t i = 0; i < fx->s->ranks; i++) {
		const struct rank *r = &fx->ranks[i];

		if (!r->join_done || r->join_status != COLLNET_OK) {
			fixture_report(fx, "rank %u does not join: %s", i,
				       r->join_done ? r->join_text : "it did not complete");
			return false;
		}
	}
	if (fx->verbose) {
		printf("  %.6f ms: all have joined\n", (double)cn_sim_now(fx->sim) / 1e6 - 1000.0);
	}
	return true;
}

static void leave_all(struct fixture *fx)
{
	for (uint32_t i = 0; i < fx->s->ranks; i++) {
		fixture_rank_leaves(&fx->ranks[i], false);
	}
}

/* Until no frame is in flight, but at most a minute. */
static void drain(struct fixture *fx)
{
	for (int i = 0; i < 60; i++) {
		cn_sim_run(fx->sim, cn_sim_now(fx->sim) + 1000 * CN_MS);
		if (i > 0 && oracle_is_idle(fx)) {
			return;
		}
	}
}

static void print_calls(const struct fixture *fx)
{
	for (uint32_t i = 0; fx->verbose && i < fx->nops * fx->s->ranks; i++) {
		const struct call *c = &fx->calls[i];

		if (c->posted || c->completions > 0) {
			printf("  rank %u, operation %u: %.6f .. %.6f ms: %d %s\n", c->rank,
			       c->number, (double)c->at / 1e6 - 1000.0,
			       (double)c->ended / 1e6 - 1000.0, c->status, c->text);
		}
	}
}

/* Runs the operations of the present team; faults: and those of the scenario. */
static bool run_ops(struct fixture *fx, const struct op_plan *ops, uint32_t nops, bool faults)
{
	struct fault_event events[2 * FAULTS_MAX];
	cn_time quiet;

	fx->ops = ops;
	fx->nops = nops;
	fx->calls = calloc((size_t)nops * fx->s->ranks, sizeof(*fx->calls));
	if (fx->calls == NULL) {
		fixture_report(fx, "no memory for calls");
		return false;
	}
	wire_oracle_team(fx->wire);
	fx->start = fx->finish = cn_sim_now(fx->sim);
	fx->open = nops * fx->s->ranks;
	for (uint32_t i = 0; i < nops; i++) {
		wire_oracle_limit(fx->wire, i, oracle_in_flight(fx->s, &ops[i]),
				  oracle_cable_frame(fx->s, &ops[i]),
				  oracle_by_acks(fx->s, &ops[i]));
		for (uint32_t k = 0; k < fx->s->ranks; k++) {
			*call_of(fx, i, k) = (struct call){ .fixture = fx, .rank = k, .number = i };
		}
	}
	cn_sim_totals(fx->sim, &fx->before);
	oracle_idle_begin(fx);
	quiet = faults ? fixture_schedule_faults(fx, events) : fx->start;
	for (uint32_t i = 0; i < fx->s->ranks; i++) {
		call_later(&fx->ranks[i]);
	}
	cn_sim_at(fx->sim, fx->start, check_deadlines, fx);
	while (fx->open > 0 && cn_sim_step(fx->sim, CN_NEVER)) {
	}
	print_calls(fx);
	/* The events are on this stack: the last must be over. */
	cn_sim_run(fx->sim, (quiet > cn_sim_now(fx->sim) ? quiet : cn_sim_now(fx->sim)) + 1);
	return fx->findings == 0;
}

static void end_calls(struct fixture *fx)
{
	for (uint32_t i = 0; i < fx->nops * fx->s->ranks && fx->calls != NULL; i++) {
		struct call *c = &fx->calls[i];

		report_buffers(c, buffers_check(&c->buffers));
		buffers_free(&c->buffers);
	}
	free(fx->calls);
	fx->calls = NULL;
	fx->nops = 0;
}

static void run(struct fixture *fx)
{
	bool must_succeed = scenario_must_succeed(fx->s);

	fixture_begin_link_faults(fx);
	if (!join_all(fx)) {
		return;
	}
	run_ops(fx, fx->s->ops, fx->s->nops, fx->s->profile != PROFILE_LOSS);
	if (must_succeed && fx->findings == 0) {
		oracle_check_goodput(fx);
	}
	leave_all(fx);
	drain(fx);
	end_calls(fx);
	if (fx->findings > 0) {
		return;
	}
	if (!must_succeed) {
		fixture_repair(fx);
		cn_sim_run(fx->sim, cn_sim_now(fx->sim) + 3000 * CN_MS);
		if (!join_all(fx) || !run_ops(fx, fx->s->after, fx->s->nafter, false)) {
			leave_all(fx);
			end_calls(fx);
			return;
		}
		leave_all(fx);
		drain(fx);
		end_calls(fx);
	}
	oracle_check_leaks(fx);
}

bool fixture_run(struct fixture *fx, const struct scenario *s, bool verbose)
{
	const struct cn_sim_config *c = &s->config;
	const struct wire_oracle_config wc = {
		.topo = s->topo,
		.window = c->engine.node.send_window,
		.report = report_wire,
		.in_cables = in_cables,
		.in_vain = in_vain,
		.port_of = port_of,
		.arg = fx,
	};
	struct cn_err err = { 0 };

	memset(fx, 0, sizeof(*fx));
	fx->s = s;
	fx->verbose = verbose;
	fx->random = cn_mix64(s->seed ^ 0x776f726c64);
	/* A full ring is emptied before timers are looked at, and a wake-up may be late. */
	fx->limit_slack = 50 * CN_MS + 2 * c->jitter +
			  2 * c->ring * (c->o_recv + c->u_recv + c->o_send);
	fx->ranks = calloc(s->ranks, sizeof(*fx->ranks));
	fx->frozen = calloc(s->hosts, sizeof(*fx->frozen));
	fx->crashed = calloc(s->hosts, sizeof(*fx->crashed));
	fx->wire = wire_oracle_new(&wc);
	if (fx->ranks == NULL || fx->frozen == NULL || fx->crashed == NULL || fx->wire == NULL ||
	    cn_sim_new(c, &fx->sim, &err) != COLLNET_OK) {
		snprintf(fx->finding, sizeof(fx->finding), "cannot begin: %.300s", err.text);
		fx->findings++;
	} else {
		struct attackers *a = NULL;

		cn_sim_trace(fx->sim, see, fx);
		if (s->attackers != 0) {
			a = attackers_new(fx, s->attackers);
		}
		run(fx);
		if (a != NULL) {
			attackers_check(a);
		} else if (s->attackers != 0) {
			fixture_report(fx, "no memory for the attackers");
		}
		cn_sim_trace(fx->sim, NULL, NULL);
		attackers_free(a);
	}
	cn_sim_free(fx->sim);
	wire_oracle_free(fx->wire);
	free(fx->ranks);
	free(fx->frozen);
	free(fx->crashed);
	return fx->findings == 0;
}
