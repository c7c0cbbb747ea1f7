/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any frames into an engine with teams, collectives and endpoints: every request ends exactly
 * once, and the memory of one that has ended is not touched any more (it is freed at once, so
 * that the sanitizer sees it).
 *
 * Steps of its own:
 *   6 job rank ranks time          a rank of this node joins a team
 *   7 member op bytes algorithm time   posts a collective; op from 240 on: divides its team;
 *                                      of a reduction, its upper half says how; with 0xf7
 *                                      again and again, until the table of a team is full, or
 *                                      has begun again
 *   8 member failed                leaves
 *   9 number                       opens an endpoint; a second time closes it
 *  10 endpoint node to n time      sends n * 64 bytes
 *  11 endpoint n time              receives up to n * 64
 *  12                              reads all the tables
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/endpoint.h"
#include "forge.h"
#include "mutate.h"
#include "reducer.h"
#include "script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OWNER	  1000u
#define MEMBERS	  4u
#define ENDPOINTS 3u
#define REQUESTS  80u /* more than a rank may have outstanding */
#define FLOWS	  16u /* few, so that they run out, and that a pool for all is quickly poisoned */

static const struct mutate_step steps[] = {
	SCRIPT_STEPS,
	{ 6, MUTATE_ANY, 8, "iiit" },
	{ 7, MUTATE_ANY, 12, "iiibt" },
	{ 7, MUTATE_ANY, 8, "ibibt" },
	{ 8, MUTATE_ANY, 3, "ii" },
	{ 9, MUTATE_ANY, 6, "i" },
	{ 10, MUTATE_ANY, 6, "iiibt" },
	{ 11, MUTATE_ANY, 6, "ibt" },
	{ 12, MUTATE_ANY, 1, "" },
	FORGE_STEPS,
};
const struct mutate_grammar mutate_grammar = {
	.mask = 15,
	.sub = 16,
	.n = sizeof(steps) / sizeof(steps[0]),
	.steps = steps,
};

struct request {
	struct cn_done done; /* first: the engine gives it back */
	bool busy;
	cn_time deadline;
	struct fixture *fixture;
	void *send, *recv;
	struct cn_block *blocks; /* of a vector operation */
	struct cn_received *received;
	struct reducer reducer;
};

struct fixture {
	struct cn_engine *engine;
	struct cn_member *members[MEMBERS];
	bool ready[MEMBERS];
	struct cn_endpoint *endpoints[ENDPOINTS];
	struct request requests[REQUESTS];
	bool good; /* undisturbed: every request succeeds */
};

static void done(struct cn_done *d, int status, const char *text)
{
	struct request *r = (struct request *)d;

	script_check(r->busy && text);
	script_check(status == COLLNET_OK || (status < 0 && text[0] && !r->fixture->good));
	free(r->send);
	free(r->recv);
	free(r->blocks);
	free(r->received);
	reducer_end(&r->reducer);
	*r = (struct request){ 0 };
}

static void combine_pending(struct fixture *w)
{
	for (uint32_t i = 0; i < REQUESTS; i++) {
		reducer_work(&w->requests[i].reducer);
	}
}

/* A free request with memory of its own; NULL: none. */
static struct request *request(struct fixture *w, size_t send, size_t recv, cn_time deadline)
{
	for (uint32_t i = 0; i < REQUESTS; i++) {
		struct request *r = &w->requests[i];

		if (r->busy) {
			continue;
		}
		r->done.fn = done;
		r->busy = true;
		r->deadline = deadline;
		r->fixture = w;
		r->send = calloc(1, send ? send : 1);
		r->recv = calloc(1, recv ? recv : 1);
		r->received = calloc(1, sizeof(*r->received));
		script_check(r->send && r->recv && r->received);
		return r;
	}
	return NULL;
}

/* The call that was given the request said no: nothing will call it. */
static void refused(struct request *r, const struct cn_err *err)
{
	script_check(r->busy && err->code < 0 && err->text[0]);
	done(&r->done, err->code, err->text);
}

static cn_time deadline_from(struct script *s)
{
	return s->now + ((cn_time)1 << (20 + script_byte(s) % 16));
}

static void join(struct script *s, struct fixture *w)
{
	uint8_t job = script_byte(s), rank = script_byte(s), ranks = script_byte(s);
	cn_time deadline = deadline_from(s);
	struct cn_err err = { 0 };
	struct request *r = request(w, 0, 0, deadline);
	uint32_t i = 0;
	char name[8];

	while (i < MEMBERS && w->members[i]) {
		i++;
	}
	if (!r || i == MEMBERS) {
		if (r) {
			done(&r->done, COLLNET_OK, "");
		}
		return;
	}
	snprintf(name, sizeof(name), "j%u", job % 2u);
	if (cn_team_join(w->engine, s->now, OWNER, name, rank % 4u, ranks % 4u, deadline, &r->done,
			 &w->members[i], &err) != COLLNET_OK) {
		script_check(!w->members[i]);
		refused(r, &err);
	}
}

/* Blocks for and from up to 4 ranks, whose sizes depend on the pair and on `seed`. */
static void make_blocks(struct cn_block *b, struct cn_call *c, uint64_t seed)
{
	for (uint32_t i = 0; i < c->ranks; i++) {
		b[i].len = (seed >> (c->rank + i) & 1) * (c->rank + 2 * i) * 97u;
		b[c->ranks + i].len = (seed >> (c->rank + i) & 1) * (i + 2 * c->rank) * 97u;
		if (c->op == CN_OP_ALLGATHERV) {
			b[c->ranks + i].len = (seed >> i & 1) * i * 997u;
		} else if (c->op == CN_OP_REDUCE_SCATTERV) {
			b[i].len = (seed >> i & 1) * i * 998u;
		}
	}
	cn_blocks_follow(b, c->ranks);
	cn_blocks_follow(b + c->ranks, c->ranks);
	c->bytes = 0;
	c->blocks = (struct cn_blocks){
		.send = cn_call_send_blocks(c) ? b : NULL,
		.recv = cn_call_recv_blocks(c) ? b + c->ranks : NULL,
		.send_len = c->op == CN_OP_GATHERV ? b[0].len : 0,
		.recv_len = c->op == CN_OP_SCATTERV ? b[c->ranks].len : 0,
	};
}

static void divide(struct script *s, struct fixture *w, struct cn_member *m, uint8_t op)
{
	char job[8];
	struct cn_split_call call = { job, 1 + op % 2u, script_byte(s) % 3 - 1,
				      script_byte(s) % 3 - 1 };
	cn_time deadline = deadline_from(s);
	struct cn_err err = { 0 };
	struct request *r = m ? request(w, 0, 0, deadline) : NULL;
	uint32_t i = 0;

	while (i < MEMBERS && w->members[i]) {
		i++;
	}
	snprintf(job, sizeof(job), "d%d", call.color & 1);
	if (!r || i == MEMBERS) {
		if (r) {
			done(&r->done, COLLNET_OK, "");
		}
		return;
	}
	if (cn_team_split(m, s->now, &call, deadline, &r->done, &w->members[i], &err) !=
	    COLLNET_OK) {
		script_check(!w->members[i]);
		refused(r, &err);
	}
}

static void post(struct script *s, struct fixture *w)
{
	static const char *const names[] = { NULL,	 "shuffle", "pairwise", "linear",
					     "ring",	 "none",    "chain",	"binomial",
					     "furthest", "nearest", "doubling", "halving",
					     "exchange" };
	struct cn_member *m = w->members[script_byte(s) % MEMBERS];
	const uint8_t op = script_byte(s);
	struct cn_coll_args a = { .op = 1 + op % 16u, .contention_aware = true };
	struct cn_err err = { 0 };
	struct cn_block *blocks = NULL;
	struct cn_call c;
	struct request *r;

	if (op >= 240) {
		divide(s, w, m, op);
		return;
	}
	a.bytes = script_byte(s) * 37u;
	a.algorithm = names[script_byte(s) % (sizeof(names) / sizeof(names[0]))];
	a.deadline = deadline_from(s);
	if (!m) {
		return;
	}
	c = (struct cn_call){
		.op = a.op,
		.bytes = a.bytes,
		.rank = cn_member_rank(m),
		.ranks = cn_member_ranks(m),
		.root = a.root,
		.blocks = a.blocks,
		.nodes = cn_member_nodes(m),
		.local = cn_member_local(m),
		.element = 1 + (op >> 6 & 1),
	};
	if (cn_op_is_vector(a.op)) {
		blocks = calloc(8, sizeof(*blocks));
		script_check(blocks && c.ranks <= 4);
		make_blocks(blocks, &c, a.bytes);
		a.bytes = 0;
		a.blocks = c.blocks;
	}
	r = request(w, cn_call_send_bytes(&c), cn_call_recv_bytes(&c), a.deadline);
	if (!r) {
		free(blocks);
		return;
	}
	r->blocks = blocks;
	a.send = a.op == CN_OP_BARRIER ? NULL : r->send;
	a.recv = a.op == CN_OP_BARRIER ? NULL : r->recv;
	if (cn_op_reduces(a.op)) {
		reducer_begin(&r->reducer, &a, &c, op >> 4);
	}
	if (cn_coll_post(m, s->now, &a, &r->done, &err) != COLLNET_OK) {
		refused(r, &err);
	}
}

static void post_again(struct script *s, struct fixture *w)
{
	const size_t at = s->at;

	for (uint32_t n = 0; n < COLLNET_OUTSTANDING_MAX + 8; n++) {
		s->at = at;
		post(s, w);
	}
}

static void leave(struct script *s, struct fixture *w)
{
	uint8_t i = script_byte(s) % MEMBERS;

	if (w->members[i]) {
		cn_team_leave(w->members[i], s->now, script_byte(s) & 1);
		w->members[i] = NULL;
	}
}

static void toggle_endpoint(struct script *s, struct fixture *w)
{
	uint8_t number = script_byte(s), i = number % ENDPOINTS;
	struct cn_err err = { 0 };

	if (w->endpoints[i]) {
		cn_endpoint_close(w->endpoints[i], s->now);
		w->endpoints[i] = NULL;
	} else if (cn_endpoint_open(w->engine, OWNER, OWNER, number % 8u, &w->endpoints[i], &err) !=
		   COLLNET_OK) {
		script_check(!w->endpoints[i] && err.text[0]);
	}
}

static void send_message(struct script *s, struct fixture *w)
{
	struct cn_endpoint *e = w->endpoints[script_byte(s) % ENDPOINTS];
	uint8_t peer = script_byte(s), to = script_byte(s);
	size_t n = script_byte(s) * 64u;
	cn_time deadline = deadline_from(s);
	char node[3] = { (char)('a' + peer % SCRIPT_PEERS), (char)('a' + peer % SCRIPT_PEERS), 0 };
	struct cn_err err = { 0 };
	struct request *r = e ? request(w, n, 0, deadline) : NULL;

	if (r && cn_endpoint_send(e, s->now, peer & 64 ? "self" : node, to % 8u, r->send, n,
				  deadline, &r->done, &err) != COLLNET_OK) {
		refused(r, &err);
	}
}

static void receive_message(struct script *s, struct fixture *w)
{
	struct cn_endpoint *e = w->endpoints[script_byte(s) % ENDPOINTS];
	size_t n = script_byte(s) * 64u;
	cn_time deadline = deadline_from(s);
	struct cn_err err = { 0 };
	struct request *r = e ? request(w, 0, n, deadline) : NULL;

	if (r && cn_endpoint_recv(e, s->now, r->recv, n, deadline, r->received, &r->done, &err) !=
			 COLLNET_OK) {
		refused(r, &err);
	}
}

static void read_tables(struct script *s, struct fixture *w)
{
	struct collnet_stats stats = { .size = sizeof(stats) };
	struct collnet_node_info nodes[2];
	struct collnet_job_info jobs[2];
	size_t n = 2;

	cn_engine_stats(w->engine, &stats, true);
	cn_engine_nodes(w->engine, s->now, 0, nodes, &n);
	script_check(n <= SCRIPT_PEERS + 1);
	n = 2;
	cn_engine_jobs(w->engine, OWNER, 0, jobs, &n);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		if (w->members[i]) {
			(void)cn_member_node_name(w->members[i], 0);
			(void)cn_member_node_name(w->members[i], 9);
		}
	}
}

static void other(struct script *s, uint8_t step)
{
	struct fixture *w = s->machine;

	switch (step % 16) {
	case 6:
		join(s, w);
		break;
	case 7:
		if (step == 0xf7) {
			post_again(s, w);
		} else {
			post(s, w);
		}
		break;
	case 8:
		leave(s, w);
		break;
	case 9:
		toggle_endpoint(s, w);
		break;
	case 10:
		send_message(s, w);
		break;
	case 11:
		receive_message(s, w);
		break;
	case 15:
		forge_frame(s, w->engine, OWNER);
		break;
	default:
		read_tables(s, w);
		break;
	}
}

/* What a deadline was given for has ended when it has passed. */
static void expired(struct script *s)
{
	const struct fixture *w = s->machine;

	for (uint32_t i = 0; i < REQUESTS; i++) {
		script_check(!w->requests[i].busy || w->requests[i].deadline > s->now);
	}
}

static void input(void *machine, cn_time now, const uint8_t *frame, size_t len)
{
	struct cn_engine *e = ((struct fixture *)machine)->engine;
	struct cn_rx_frame f = cn_rx_frame_raw(frame, len);
	struct cn_rx_place place;

	/* As a link that receives a payload in its place. All of the room is there to be written.
	 */
	if (cn_engine_place(e, &f, &place) && f.len - place.header <= place.room) {
		memset(place.at, 0x5a, place.room);
		memcpy(place.at, f.data + place.header, f.len - place.header);
		f.payload = place.at;
	}
	cn_engine_input(e, now, &f);
}

static bool output(void *machine, cn_time now, struct cn_frame *out)
{
	combine_pending(machine);
	return cn_engine_output(((struct fixture *)machine)->engine, now, out);
}

static cn_time deadline(const void *machine)
{
	return cn_engine_deadline(((const struct fixture *)machine)->engine);
}

static void expire(void *machine, cn_time now)
{
	cn_engine_expire(((struct fixture *)machine)->engine, now);
}

static struct script script_of(struct fixture *w, const char *mac, const char *name)
{
	struct cn_engine_config c;

	cn_engine_config_init(&c);
	memcpy(c.node.mac, mac, 6);
	snprintf(c.node.name, sizeof(c.node.name), "%s", name);
	c.node.epoch = 7u + (uint8_t)mac[4];
	c.node.max_peers = SCRIPT_PEERS;
	c.node.send_window = 8;
	c.node.reorder = 8; /* as the daemon has it */
	c.node.pool_frames = 16;
	c.max_teams = 2;
	c.max_endpoints = 2;
	script_check(cn_engine_new(&c, &w->engine, NULL) == COLLNET_OK);
	w->engine->endpoints->max_flows = FLOWS;
	return (struct script){ .now = CN_MS,
				.machine = w,
				.node = cn_engine_node(w->engine),
				.input = input,
				.output = output,
				.deadline = deadline,
				.expire = expire,
				.other = other,
				.expired = expired };
}

/* ---- afterwards ----------------------------------------------------------------------- */

static bool none_busy(void *ctx)
{
	struct fixture *const *w = ctx;

	for (uint32_t i = 0; i < 2 * REQUESTS; i++) {
		if (w[i / REQUESTS]->requests[i % REQUESTS].busy) {
			return false;
		}
	}
	return true;
}

/* Everything that this node began, it ends, and nothing is left of it. */
static void drain(struct script *s, struct fixture *w)
{
	const struct cn_engine *e = w->engine;
	cn_time until;

	for (uint32_t i = 0; i < MEMBERS; i++) {
		if (w->members[i]) {
			cn_team_leave(w->members[i], s->now, false);
			w->members[i] = NULL;
		}
	}
	for (uint32_t i = 0; i < ENDPOINTS; i++) {
		if (w->endpoints[i]) {
			cn_endpoint_close(w->endpoints[i], s->now);
			w->endpoints[i] = NULL;
		}
	}
	until = s->now + 5 * cn_node_config(s->node)->dead_after;
	while (script_pass_deadline(s, until)) {
	}
	s->now = until;
	for (uint32_t i = 0; i < REQUESTS; i++) {
		script_check(!w->requests[i].busy);
	}
	script_end_peers(s);
	script_check(e->nteams == 0 && e->own.sources.n == 0 && e->own.pending.n == 0 &&
		     e->own.next == NULL);
	script_check(e->nforming == 0 && e->scheduled == 0 && e->deferred_frames == 0);
	script_check(e->copies.used == 0 && e->endpoints->accounts == NULL);
	script_check(e->endpoints->count == 0 && e->endpoints->nflows == 0);
	script_check(e->endpoints->pool.free == e->endpoints->pool.count);
}

static void post_recv(struct script *s, struct fixture *w, size_t n)
{
	struct request *r = request(w, 0, n, s->now + 30000 * CN_MS);

	script_check(r != NULL);
	script_check(cn_endpoint_open(w->engine, OWNER, OWNER, 7, &w->endpoints[0], NULL) ==
		     COLLNET_OK);
	script_check(cn_endpoint_recv(w->endpoints[0], s->now, r->recv, n, r->deadline, r->received,
				      &r->done, NULL) == COLLNET_OK);
}

static bool sees_self(void *ctx)
{
	return cn_node_find(cn_engine_node(((struct fixture **)ctx)[1]->engine), "self") != NULL &&
	       cn_node_find(cn_engine_node(((struct fixture **)ctx)[0]->engine), "good") != NULL;
}

static void join_good(struct script *s, struct fixture *w, uint32_t rank)
{
	struct request *r = request(w, 0, 0, s->now + 30000 * CN_MS);

	script_check(r != NULL);
	script_check(cn_team_join(w->engine, s->now, OWNER, "j1", rank, 2, r->deadline, &r->done,
				  &w->members[0], NULL) == COLLNET_OK);
}

/* A node that keeps the rules gets its message through, and a job. */
static void good_node(struct script *s, struct fixture *w)
{
	static struct fixture other_fixture;
	struct fixture *both[2] = { w, &other_fixture };
	struct script good;
	const size_t bytes = 5000;
	struct request *r;

	memset(&other_fixture, 0, sizeof(other_fixture));
	good = script_of(&other_fixture, "\x02\0\0\0\2\1", "good");
	script_check(script_exchange(s, &good, sees_self, both));
	post_recv(s, w, bytes);
	script_check(cn_endpoint_open(other_fixture.engine, OWNER, OWNER, 7,
				      &other_fixture.endpoints[0], NULL) == COLLNET_OK);
	r = request(&other_fixture, bytes, 0, s->now + 30000 * CN_MS);
	script_check(r != NULL);
	script_check(cn_endpoint_send(other_fixture.endpoints[0], s->now, "self", 7, r->send, bytes,
				      r->deadline, &r->done, NULL) == COLLNET_OK);
	join_good(s, w, 0);
	join_good(&good, &other_fixture, 1);
	w->good = other_fixture.good = true; /* from here on nothing may fail */
	script_check(script_exchange(s, &good, none_busy, both));
	w->good = other_fixture.good = false;
	cn_engine_free(other_fixture.engine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fixture w;
	struct script s;

	memset(&w, 0, sizeof(w));
	s = script_of(&w, "\x02\0\0\0\0\1", "self");
	s.data = data;
	s.len = size;
	script_run(&s);
	drain(&s, &w);
	good_node(&s, &w);
	cn_engine_free(w.engine);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		script_check(!w.requests[i].busy);
	}
	return 0;
}
