/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/transport.c and lib/proto/connect.c: the transports of teams, on a simulated cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "engine_fixture.h"
#include "proto/node_impl.h"
#include "two_jobs.h"

static struct cn_engine *engine(struct two_jobs *c, uint32_t host)
{
	return cn_sim_engine(c->sim, host);
}

/* Transports of teams on a host: those that are open, and those that are closing. */
static uint32_t transports(struct two_jobs *c, uint32_t host, bool closing)
{
	uint32_t n = 0;

	for (struct cn_transport *x = engine(c, host)->own.next; x != NULL; x = x->next) {
		n += (x->team == NULL) == closing;
	}
	return n;
}

static void leave(struct two_jobs *c, struct two_jobs_job *j)
{
	for (uint32_t r = 0; r < j->ranks; r++) {
		cn_team_leave(j->members[r], cn_sim_now(c->sim), false);
		cn_sim_kick(c->sim, r);
	}
}

static void assert_none(struct two_jobs *c)
{
	for (uint32_t h = 0; h < TWO_JOBS_HOSTS; h++) {
		assert_int_equal(transports(c, h, true), 0);
		assert_int_equal(transports(c, h, false), 0);
		assert_int_equal(cn_node_window(cn_engine_node(engine(c, h)))->in_flight, 0);
	}
}

/* ---- isolation --------------------------------------------------------------------------- */

/* The time of 20 exchanges of job y, one after the other. */
static cn_time exchanges(struct two_jobs *c)
{
	cn_time begin = cn_sim_now(c->sim);

	for (uint32_t i = 0; i < 20; i++) {
		bool busy = true;

		for (uint32_t r = 0; r < TWO_JOBS_HOSTS; r++) {
			two_jobs_call(c, &c->y, r, 0, CN_OP_ALLTOALL, 100000, 60 * SECOND);
		}
		while (busy) {
			two_jobs_run(c, 50 * CN_US);
			busy = false;
			for (uint32_t r = 0; r < TWO_JOBS_HOSTS; r++) {
				busy |= c->y.calls[r][0].told == 0;
			}
		}
		two_jobs_assert_done(&c->y, 0);
	}
	return cn_sim_now(c->sim) - begin;
}

/* Rank 3 of job x never receives. Job y, between the same nodes, takes as long as without x. */
static void one_never_receives(uint32_t window, uint32_t pool, bool refuses)
{
	struct two_jobs *c = two_jobs_begin_with(window, pool, TWO_JOBS_HOSTS);
	cn_time alone, beside;

	alone = exchanges(c);
	for (uint32_t k = 0; k < TWO_JOBS_CALLS; k++) {
		for (uint32_t r = 0; r < 3; r++) {
			two_jobs_call(c, &c->x, r, k, CN_OP_GATHER, 1000000, 600 * SECOND);
		}
	}
	two_jobs_run(c, SECOND);
	beside = exchanges(c);
	assert_int_equal(two_jobs_refusals(c) > 0, refuses);
	print_message(
		"W_g %d, pool %u: %.3f ms alone, %.3f ms beside a job that does not receive\n",
		(int)window, pool, (double)alone / 1e6, (double)beside / 1e6);
	assert_true(beside * 100 <= alone * 105);
	for (uint32_t k = 0; k < TWO_JOBS_CALLS; k++) {
		two_jobs_call(c, &c->x, 3, k, CN_OP_GATHER, 1000000, 600 * SECOND);
	}
	two_jobs_run(c, 10 * SECOND);
	for (uint32_t k = 0; k < TWO_JOBS_CALLS; k++) {
		two_jobs_assert_done(&c->x, k);
	}
	two_jobs_end(c);
}

static void transport__isolation(void **state)
{
	(void)state;
	one_never_receives(COLLNET_WINDOW_AUTO, 0, false);
	one_never_receives(COLLNET_WINDOW_OFF, 0, false);
	one_never_receives(COLLNET_WINDOW_AUTO, 16, true);
	one_never_receives(COLLNET_WINDOW_OFF, 16, true);
}

/* ---- the end ----------------------------------------------------------------------------- */

static void transport_close__after_the_last_acknowledgement(void **state)
{
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);

	(void)state;
	for (uint32_t h = 0; h < TWO_JOBS_HOSTS; h++) {
		assert_int_equal(transports(c, h, false), 2);
	}
	for (uint32_t r = 0; r < TWO_JOBS_HOSTS; r++) {
		two_jobs_call(c, &c->x, r, 0, CN_OP_BCAST, 100000, SECOND);
	}
	two_jobs_run(c, SECOND);
	two_jobs_assert_done(&c->x, 0);
	leave(c, &c->x);
	assert_int_equal(transports(c, 0, true), 1);
	leave(c, &c->y);
	two_jobs_run(c, 20 * CN_MS);
	assert_none(c);
	two_jobs_end(c);
}

/* The first rank leaves long before the others: its transport goes on for them. */
static void transport_close__others_go_on(void **state)
{
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);

	(void)state;
	cn_team_leave(c->x.members[0], cn_sim_now(c->sim), false);
	cn_sim_kick(c->sim, 0);
	two_jobs_run(c, 100 * CN_MS);
	assert_int_equal(transports(c, 0, true), 1);
	for (uint32_t r = 1; r < TWO_JOBS_HOSTS; r++) {
		cn_team_leave(c->x.members[r], cn_sim_now(c->sim), false);
		cn_sim_kick(c->sim, r);
	}
	leave(c, &c->y);
	two_jobs_run(c, 20 * CN_MS);
	assert_none(c);
	two_jobs_end(c);
}

/* A node is cut off while the team ends: nothing waits for it for ever. */
static void transport_close__without_an_answer(void **state)
{
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);

	(void)state;
	cn_sim_cut(c->sim, 0, 2, true);
	leave(c, &c->x);
	leave(c, &c->y);
	two_jobs_run(c, 4 * 1500 * CN_MS + 10 * CN_MS);
	assert_none(c);
	two_jobs_end(c);
}

/* A node is cut off, and a job finds that it is silent. At the end of the node nothing waits for
 * it, also where what is for it goes on another port. */
static void engine_drain__a_node_that_was_given_up(void **state)
{
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);

	(void)state;
	cn_sim_cut(c->sim, 2, 2, true);
	for (uint32_t r = 0; r < TWO_JOBS_HOSTS; r++) {
		two_jobs_call(c, &c->x, r, 0, CN_OP_ALLTOALL, 1000, 60 * SECOND);
	}
	while (c->x.calls[0][0].told == 0) {
		two_jobs_run(c, CN_MS);
	}
	assert_int_equal(c->x.calls[0][0].status, COLLNET_EPEER);
	cn_team_leave(c->x.members[0], cn_sim_now(c->sim), false);
	cn_team_leave(c->y.members[0], cn_sim_now(c->sim), false);
	cn_sim_kick(c->sim, 0);
	two_jobs_run(c, 50 * CN_MS);
	assert_true(cn_engine_drain(engine(c, 0)));
	c->x.members[0] = c->y.members[0] = NULL;
	two_jobs_end(c);
}

/* ---- ports ------------------------------------------------------------------------------- */

/* A team of one rank on host 0. */
static struct cn_member *join_alone(struct two_jobs *c, struct two_jobs_call *call)
{
	struct cn_member *m = NULL;
	struct cn_err err;

	if (cn_team_join(engine(c, 0), cn_sim_now(c->sim), 1000, "z", 0, 1,
			 cn_sim_now(c->sim) + SECOND, &call->done, &m, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	return m;
}

static void joined(struct cn_done *d, int status, const char *text)
{
	(void)d;
	(void)text;
	assert_int_equal(status, COLLNET_OK);
}

/* A port is not used again before 254 others were at its place in the table, and 0 never. */
static void transport_open__ports(void **state)
{
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);
	struct two_jobs_call call = { .done.fn = joined };
	static uint32_t last[65536];

	(void)state;
	for (uint32_t i = 1; i <= 600; i++) {
		struct cn_member *m = join_alone(c, &call);
		struct cn_transport *x = engine(c, 0)->own.next;
		uint16_t port = x->port;

		assert_true(port >= 256);
		assert_true(last[port] == 0 || i - last[port] >= 255);
		last[port] = i;
		assert_ptr_equal(cn_transport_of_port(engine(c, 0), port), x);
		cn_team_leave(m, cn_sim_now(c->sim), false);
		cn_sim_kick(c->sim, 0);
		two_jobs_run(c, 10 * CN_MS);
		assert_ptr_equal(cn_transport_of_port(engine(c, 0), port), &engine(c, 0)->own);
	}
	two_jobs_end(c);
}

/* More teams end than there are ports, and none of them can close: the one that has been closing
 * for the longest time gives way. */
static void transport_open__oldest_gives_way(void **state)
{
	struct two_jobs *c = two_jobs_begin_with(COLLNET_WINDOW_AUTO, 16, TWO_JOBS_HOSTS);
	struct two_jobs_call call = { .done.fn = joined };
	uint16_t first = 0;

	(void)state;
	for (uint32_t i = 0; i <= CN_TRANSPORTS_MAX; i++) {
		struct cn_member *m = join_alone(c, &call);

		first = i == 0 ? engine(c, 0)->own.next->port : first;
		cn_team_leave(m, cn_sim_now(c->sim) + i, false);
		assert_int_equal(transports(c, 0, false), 2);
	}
	assert_int_equal(transports(c, 0, true), CN_TRANSPORTS_MAX - 2);
	assert_ptr_equal(cn_transport_of_port(engine(c, 0), first), &engine(c, 0)->own);
	two_jobs_end(c);
}

/* ---- frames ------------------------------------------------------------------------------ */

/* A frame from host 1 to a port of host 0. */
static void inject(struct two_jobs *c, uint16_t to, uint32_t session)
{
	const struct cn_node_config *a = cn_node_config(cn_engine_node(engine(c, 0)));
	const struct cn_node_config *b = cn_node_config(cn_engine_node(engine(c, 1)));
	struct cn_wire w = { .type = CN_TYPE_ACK, .port_to = to, .session = session };
	uint8_t frame[CN_ETH_MIN] = { 0 };
	const struct cn_rx_frame f = cn_rx_frame_raw(frame, sizeof(frame));

	memcpy(frame, a->mac, 6);
	memcpy(frame + 6, b->mac, 6);
	frame[12] = 0x88;
	frame[13] = 0xb5;
	cn_wire_put(frame + CN_ETH_HEADER, &w);
	cn_engine_input(engine(c, 0), cn_sim_now(c->sim), &f);
}

static void no_change(void *ctx, cn_time now, struct cn_peer *p)
{
	(void)ctx;
	(void)now;
	(void)p;
}

static void no_loss(void *ctx, cn_time now, struct cn_peer *p, enum cn_peer_loss why)
{
	(void)why;
	no_change(ctx, now, p);
}

/* Each port of either end, and each number with which it is used again, has a session of its own:
 * a frame says no more about its sender. */
static void connect__session_of_each_port(void **state)
{
	static const struct cn_node_ops ops = { .peer_up = no_change, .peer_down = no_loss };
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);
	struct cn_peer *with = cn_node_find(cn_engine_node(engine(c, 0)), "h1"), *p;
	uint32_t in[16], out[16];

	(void)state;
	for (uint32_t i = 0; i < 16; i++) {
		struct cn_node_config config = *cn_node_config(cn_engine_node(engine(c, 0)));
		const struct cn_port to = { .port = i & 1 ? 0x1001 : 0x2001,
					    .id = 1 + (i >> 1 & 1) };
		struct cn_node *n;

		config.port = i & 4 ? 0x1001 : 0x2001;
		config.goodbyes = NULL;
		assert_int_equal(cn_node_new(&config, &ops, NULL, &n, NULL), COLLNET_OK);
		p = cn_node_connect(n, cn_sim_now(c->sim), with, 1 + (i >> 3), &to);
		assert_non_null(p);
		in[i] = p->session_in;
		out[i] = p->session_out;
		assert_true(in[i] != with->session_in && out[i] != with->session_out);
		for (uint32_t k = 0; k < i; k++) {
			assert_true(in[k] != in[i] && out[k] != out[i]);
		}
		cn_node_free(n);
	}
	two_jobs_end(c);
}

/* A session that ended while the nodes' own goes on is not established again: its late frames would
 * belong to the new one. */
static void connect__not_the_same_session_again(void **state)
{
	static const struct cn_node_ops ops = { .peer_up = no_change, .peer_down = no_loss };
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);
	struct cn_peer *with = cn_node_find(cn_engine_node(engine(c, 0)), "h1"), *p;
	struct cn_node_config config = *cn_node_config(cn_engine_node(engine(c, 0)));
	struct cn_port to = { .port = 0x1001, .id = 1 };
	struct cn_node *n;
	uint32_t in, out;

	(void)state;
	config.port = 0x2001;
	config.goodbyes = NULL;
	assert_int_equal(cn_node_new(&config, &ops, NULL, &n, NULL), COLLNET_OK);
	p = cn_node_connect(n, cn_sim_now(c->sim), with, 1, &to);
	assert_non_null(p);
	assert_ptr_equal(cn_node_connect(n, cn_sim_now(c->sim), with, 1, &to), p);
	in = p->session_in;
	out = p->session_out;
	with->unheard = 7; /* nodes that it did not hear: an error of the port's team says so */
	cn_node_disconnect(n, cn_sim_now(c->sim), with, CN_PEER_UNHEARD);
	assert_int_equal(cn_peer_unheard(p), 7);
	assert_null(cn_node_connect(n, cn_sim_now(c->sim), with, 1, &to));
	assert_false(cn_peer_alive(p));
	to.id++; /* the peer's next team */
	assert_ptr_equal(cn_node_connect(n, cn_sim_now(c->sim), with, 1, &to), p);
	assert_true(cn_peer_alive(p) && p->session_in != in && p->session_out != out);
	cn_node_free(n);
	two_jobs_end(c);
}

static uint64_t stale(struct two_jobs *c)
{
	struct collnet_stats s = { .size = sizeof(s) };

	cn_engine_stats(engine(c, 0), &s, false);
	return s.stale_frames;
}

/* Frames for a port that is closed, or of another session of the sender, are counted. They change
 * nothing and are not replied to: the nodes' own session is up. */
static void transport__stale_frames(void **state)
{
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);
	struct cn_transport *x = engine(c, 0)->own.next;
	struct cn_peer *p = cn_node_find(x->node, "h1"), *other, *own;
	uint64_t before = stale(c), frames, received;
	struct collnet_stats s = { .size = sizeof(s) };

	(void)state;
	assert_non_null(p);
	other = cn_node_find(x->next->node, "h1");
	own = cn_node_find(cn_engine_node(engine(c, 0)), "h1");
	assert_non_null(other);
	frames = x->node->counters.frames_received;
	inject(c, x->port, p->session_in ^ 1);
	inject(c, x->port, other->session_in);
	inject(c, x->port, own->session_in);
	inject(c, x->port, p->session_out);
	inject(c, (uint16_t)(x->port ^ 0x200), p->session_in);
	inject(c, x->next->port, p->session_in);
	inject(c, 0, p->session_in);
	inject(c, 255, 1);
	assert_int_equal(stale(c) - before, 8);
	assert_int_equal(x->node->counters.frames_received, frames);
	cn_engine_stats(engine(c, 1), &s, false);
	received = s.frames_received;
	for (int i = 0; i < 100; i++) {
		inject(c, 255, 1);
	}
	two_jobs_run(c, CN_MS);
	cn_engine_stats(engine(c, 1), &s, false);
	assert_true(s.frames_received - received <= 2); /* a hello, or what was due in any case */
	assert_true(cn_peer_alive(p));
	assert_true(cn_peer_alive(cn_node_find(cn_engine_node(engine(c, 0)), "h1")));
	two_jobs_end(c);
}

/*
 * Host 0 waits for host 1 in job x, of which nothing of host 0 arrives there any more. Until that
 * ends, the time; job y is busy or idle.
 */
static cn_time one_session_silent(bool busy)
{
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);
	struct cn_transport *x = engine(c, 1)->own.next->next;
	cn_time begin = cn_sim_now(c->sim), took;

	cn_node_find(x->node, "h0")->session_in ^= 1;
	two_jobs_call(c, &c->x, 0, 0, CN_OP_ALLTOALL, 1000, 600 * SECOND);
	for (uint32_t i = 0; c->x.calls[0][0].told == 0; i++) {
		for (uint32_t r = 0; busy && i % 40 == 0 && r < TWO_JOBS_HOSTS; r++) {
			two_jobs_call(c, &c->y, r, 0, CN_OP_ALLTOALL, 1000, SECOND);
		}
		two_jobs_run(c, 5 * CN_MS);
		assert_true(cn_sim_now(c->sim) - begin < 30 * SECOND);
	}
	took = cn_sim_now(c->sim) - begin;
	assert_int_equal(c->x.calls[0][0].status, COLLNET_EPEER);
	assert_non_null(strstr(c->x.calls[0][0].text, "node h1 stopped answering node h0"));
	two_jobs_end(c);
	return took;
}

/* A node that is heard on one port lives, so a session on another port is not given up as soon. */
static void transport__a_node_lives_on_any_port(void **state)
{
	(void)state;
	assert_uint_in_range(one_session_silent(false) / CN_MS, 1500, 1700);
	assert_uint_in_range(one_session_silent(true) / CN_MS, 5000, 7000);
}

/* What the transports count is the node's, while they are open and afterwards. */
static void transport__counters(void **state)
{
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);
	struct collnet_stats open = { .size = sizeof(open) }, closed = open;
	struct collnet_node_info info[TWO_JOBS_HOSTS + 1];
	size_t n = TWO_JOBS_HOSTS + 1;
	uint64_t sent = 0;

	(void)state;
	exchanges(c);
	cn_engine_stats(engine(c, 0), &open, false);
	assert_true(open.data_sent >= 20 * 3 * 68);
	/* Nodes are those of the node's own transport: a team's does not look at its peers. */
	assert_int_equal(open.nodes, TWO_JOBS_HOSTS);
	cn_node_stats(engine(c, 0)->own.next->node, &closed);
	assert_int_equal(closed.nodes, 0);
	cn_engine_nodes(engine(c, 0), cn_sim_now(c->sim), 0, info, &n);
	for (size_t i = 1; i < n; i++) {
		sent += info[i].data_sent;
		assert_true(info[i].rtt_ns > 0);
	}
	assert_int_equal(sent, open.data_sent);
	leave(c, &c->x);
	leave(c, &c->y);
	two_jobs_run(c, 20 * CN_MS);
	assert_none(c);
	cn_engine_stats(engine(c, 0), &closed, false);
	assert_true(closed.data_sent >= open.data_sent && closed.data_sent < open.data_sent + 20);
	n = TWO_JOBS_HOSTS + 1;
	sent = 0;
	cn_engine_nodes(engine(c, 0), cn_sim_now(c->sim), 0, info, &n);
	for (size_t i = 1; i < n; i++) {
		sent += info[i].data_sent;
	}
	assert_int_equal(sent, closed.data_sent);
	two_jobs_end(c);
}

/* What waits for a peer that is lost is dropped, and for others it is not. The next session in its
 * place has not ended. */
static void transport__what_goes_with_a_peer(void **state)
{
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);
	struct cn_transport *x = engine(c, 0)->own.next;
	struct cn_team *t = x->team;
	struct cn_peer *lost = cn_node_find(x->node, "h1"), *other = cn_node_find(x->node, "h2");
	const uint32_t i = cn_peer_index(lost), k = cn_peer_index(other);
	const uint8_t nothing = 0;

	(void)state;
	for (uint32_t n = 0; n < 100000 && x->pending.of_peer[i] + x->pending.of_peer[k] < 4; n++) {
		cn_pending_send(&x->pending, n % 2 ? lost : other, &nothing, 1);
	}
	assert_true(x->pending.of_peer[i] > 0);
	assert_true(x->pending.of_peer[k] > 0);
	x->ended[i] = x->ended[k] = true;
	x->team = NULL; /* it need not be told */
	x->node->ops->peer_down(x, cn_sim_now(c->sim), lost, CN_PEER_RESTARTED);
	x->team = t;
	assert_int_equal(x->pending.of_peer[i], 0);
	assert_true(x->pending.of_peer[k] > 0);
	assert_int_equal(x->pending.n, x->pending.of_peer[k]);
	x->node->ops->peer_up(x, cn_sim_now(c->sim), lost);
	assert_false(x->ended[i]);
	assert_true(x->ended[k]);
	two_jobs_end(c);
}

/* The hosts of the topology have precedence in the table of nodes. */
static void transport_listed__hosts_of_the_topology(void **state)
{
	static const char *const names[] = { "h0", "h3", "s1", "h4", "" };

	(void)state;
	for (int with = 0; with < 2; with++) {
		struct engine_fixture *w = engine_fixture(4, with ? "2x2" : NULL, NULL);
		const struct cn_node *n = w->engines[0]->own.node;

		for (int i = 0; i < 5; i++) {
			assert_int_equal(n->ops->listed(n->ctx, names[i]), with && i < 2);
		}
		engine_fixture_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transport__isolation),
		cmocka_unit_test(transport_close__after_the_last_acknowledgement),
		cmocka_unit_test(transport_close__others_go_on),
		cmocka_unit_test(transport_close__without_an_answer),
		cmocka_unit_test(engine_drain__a_node_that_was_given_up),
		cmocka_unit_test(transport_open__ports),
		cmocka_unit_test(transport_open__oldest_gives_way),
		cmocka_unit_test(connect__session_of_each_port),
		cmocka_unit_test(connect__not_the_same_session_again),
		cmocka_unit_test(transport__stale_frames),
		cmocka_unit_test(transport__a_node_lives_on_any_port),
		cmocka_unit_test(transport__counters),
		cmocka_unit_test(transport__what_goes_with_a_peer),
		cmocka_unit_test(transport_listed__hosts_of_the_topology),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
