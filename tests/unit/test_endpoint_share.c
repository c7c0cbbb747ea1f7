/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/endpoint*.c and flow.c: what an endpoint may take of its node's buffers and pairs,
 * whatever its sender believes or does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint_fixture.h"
#include "proto/node_impl.h"

static int send_one(struct endpoint_fixture *w, struct cn_endpoint *ep, uint16_t to, uint64_t bytes,
		    cn_time timeout)
{
	struct endpoint_request *out = endpoint_send_to(w, ep, "b", to, bytes, 1, timeout);
	int status = endpoint_wait_for(w, out, 2 * timeout);

	endpoint_drop(out);
	return status;
}

/* Few flows, and a buffer for each frame of a flow. */
static void few_flows(struct cn_engine_config *c)
{
	c->node.pool_frames = CN_EP_FLOWS_LEAST / 4;
}

/* A sender closes and opens again after each message that nobody reads: the pairs that it had stay
 * charged to the receiver's owner, whose share of the buffers is all that it takes. */
static void share__of_one_that_opens_again(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, few_flows);
	struct cn_endpoint *a, *b = endpoint_open_at(w, 1, 7);
	struct cn_endpoints *s = w->engine[1]->endpoints;
	const uint32_t share = s->max_flows / CN_EP_SHARES;
	struct endpoint_request *in;
	uint32_t whole = 0;

	(void)state;
	for (uint32_t n = 0; n < 2 * share; n++) {
		a = endpoint_open_at(w, 0, 5);
		for (uint32_t k = 0; k < CN_EP_CREDIT; k++) {
			int status = send_one(w, a, 7, 100, 50 * CN_MS);

			assert_int_equal(status, n < share ? COLLNET_OK : COLLNET_ELIMIT);
			whole += status == COLLNET_OK;
		}
		cn_endpoint_close(a, w->now);
		endpoint_run(w, CN_MS);
	}
	assert_int_equal(endpoint_stats(w, 1).busy, 0);
	assert_int_equal(endpoint_unread(w, 1), share * CN_EP_CREDIT);
	assert_int_equal(b->account->flows, share);
	for (uint32_t n = 0; n < whole; n++) {
		in = endpoint_recv_at(w, b, 100, SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_got(in, "a", 5, 100, 1);
		endpoint_drop(in);
	}
	assert_int_equal(s->nflows, 0);
	endpoint_one_message(w, endpoint_open_at(w, 0, 5), b, 100000, true);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* A sender that times out before it hears of what arrived counts it as if it had not. */
static void share__of_one_that_times_out(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out;
	uint32_t timeouts = 0;

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	for (uint32_t n = 0; n < 60; n++) {
		out = endpoint_send_to(w, a, "b", 7, 8000, n, 50 * CN_US);
		for (uint32_t i = 0; i < 3; i++) {
			w->now += 5 * CN_US;
			cn_poller_poll(w->poller[0], w->now);
		}
		w->now += 100 * CN_US;
		cn_endpoints_expire(w->engine[0], w->now);
		timeouts += out->status == COLLNET_ETIMEOUT;
		endpoint_run(w, 5 * CN_MS);
		endpoint_drop(out);
		assert_true(endpoint_unread(w, 1) <= CN_EP_UNREAD);
	}
	assert_true(timeouts > 10);
	assert_int_equal(endpoint_stats(w, 1).busy, 0);
	cn_endpoint_close(b, w->now);
	b = endpoint_open_at(w, 1, 7);
	endpoint_run(w, SECOND);
	endpoint_one_message(w, a, b, 100000, true);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Of pairs that have sent nothing the other end knows nothing: their end takes no buffers. */
static void close__of_pairs_that_sent_nothing(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	const struct cn_node *n = cn_engine_node(w->engine[0]);
	const uint32_t small = n->small.free, all = n->pool.free;
	struct endpoint_request *out[CN_EP_REQUESTS];
	struct cn_endpoint *a;

	(void)state;
	for (uint32_t k = 0; k < 100; k++) {
		a = endpoint_open_at(w, 0, 5);
		for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
			out[i] = endpoint_send_to(w, a, "b", (uint16_t)(100 + i), 1, 1, SECOND);
		}
		cn_endpoint_close(a, w->now);
		for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
			assert_int_equal(out[i]->status, COLLNET_EINVAL);
			endpoint_drop(out[i]);
		}
	}
	assert_int_equal(n->small.free, small);
	assert_int_equal(n->pool.free, all);
	assert_int_equal(w->engine[0]->endpoints->nflows, 0);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* One sends to more endpoints than it may have pairs, and all is received: those before make room,
 * though their receivers have granted nothing, and another payer's do not. */
static void flow__idle_at_the_sender(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, few_flows);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b, *other = NULL;
	const uint32_t share = w->engine[0]->endpoints->max_flows / CN_EP_SHARES;
	struct endpoint_request *in, *out;
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_endpoint_open(w->engine[0], OWNER, OWNER + 1, 6, &other, &err),
			 COLLNET_OK);
	for (uint32_t n = 1; n <= share; n++) {
		assert_int_equal(send_one(w, other, (uint16_t)(1000 + n), 1, SECOND),
				 COLLNET_ENOENT);
	}
	for (uint32_t n = 1; n <= 2 * share; n++) {
		b = endpoint_open_at(w, 1, (uint16_t)(100 + n));
		for (uint32_t k = 0; k < 2 + n % 14; k++) {
			in = endpoint_recv_at(w, b, 100, SECOND);
			out = endpoint_send_to(w, a, "b", (uint16_t)(100 + n), 100, k, SECOND);
			endpoint_assert_ok(w, in);
			endpoint_assert_ok(w, out);
			endpoint_assert_got(in, "a", 5, 100, k);
			endpoint_drop(in);
			endpoint_drop(out);
		}
		assert_true(a->account->flows <= share);
		assert_int_equal(other->account->flows, share);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Messages for endpoint 8 of b, which nobody receives, of so many endpoints of a. */
static void deliver_unread(struct endpoint_fixture *w, uint32_t from)
{
	struct cn_peer *a = cn_node_find(cn_engine_node(w->engine[1]), "a");
	uint8_t head[CN_EP_HEAD] = { 0 };
	struct cn_cursor owner = { head + 8, head + sizeof(head), false };
	struct cn_rx rx = { .type = CN_TYPE_MESSAGE,
			    .flags = CN_FLAG_FIRST | CN_FLAG_LAST,
			    .payload = head,
			    .len = sizeof(head) };

	cn_put64(&owner, OWNER);
	for (uint32_t n = 0; n < from; n++) {
		rx.stream = 8u << 16 | (1000 + n);
		assert_true(cn_endpoints_deliver(w->engine[1], w->now, a, &rx));
	}
}

/* A pair makes no room in the middle of a message, or while its receiver owes half of the credit.
 */
static void flow__not_idle(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, few_flows);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	const uint32_t share = w->engine[1]->endpoints->max_flows / CN_EP_SHARES;
	struct endpoint_request *in = endpoint_recv_at(w, b, 1 << 20, 10 * SECOND), *out;
	struct cn_peer *p = cn_node_find(cn_engine_node(w->engine[0]), "b");

	(void)state;
	out = endpoint_send_to(w, a, "b", 7, 1 << 20, 1, 10 * SECOND);
	endpoint_poll_only(w, 0, 1);
	endpoint_poll_only(w, 1, 1);
	assert_true(b->flows->coming);
	endpoint_open_at(w, 1, 8);
	deliver_unread(w, share);
	assert_int_equal(b->account->flows, share);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", 5, 1 << 20, 1);
	endpoint_assert_ok(w, out);
	endpoint_drop(in);
	endpoint_drop(out);
	endpoint_run(w, SECOND);
	for (uint32_t n = 0; n < CN_EP_CREDIT / 2; n++) {
		assert_int_equal(send_one(w, a, 7, 100, SECOND), COLLNET_OK);
	}
	for (uint32_t n = 0; n < 2 * share; n++) {
		assert_int_equal(send_one(w, a, (uint16_t)(1000 + n), 1, SECOND), COLLNET_ENOENT);
	}
	assert_int_equal(a->account->flows, share);
	assert_non_null(cn_flow_find(w->engine[0]->endpoints, p, 5, 7));
	endpoint_fixture_free(w);
}

static void assert_next_send_fails(struct endpoint_fixture *w, struct cn_endpoint *ep, int status)
{
	struct cn_done unused = { 0 };
	struct cn_err err = { 0 };

	assert_int_equal(cn_endpoint_send(ep, w->now, "b", 9, "x", 1, CN_NEVER, &unused, &err),
			 status);
	assert_non_null(strstr(err.text, "sent earlier is lost"));
	assert_non_null(strstr(err.text, "endpoint 7"));
}

/* Endpoint 7 of b gets messages from endpoints of c, from `first` on, until it has forgotten its
 * pair with endpoint 5 of a. */
static void forget(struct endpoint_fixture *w, struct cn_endpoint *b, uint16_t first)
{
	const struct cn_peer *a = cn_node_find(cn_engine_node(w->engine[1]), "a");

	for (uint16_t n = first; cn_flow_find(w->engine[1]->endpoints, a, 7, 5) != NULL; n++) {
		struct endpoint_request *out, *in;

		out = endpoint_send_to(w, endpoint_open_at(w, 2, n), "b", 7, 1, 1, SECOND);
		in = endpoint_recv_at(w, b, 100, SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_ok(w, out);
		endpoint_drop(in);
		endpoint_drop(out);
	}
}

/* A pair that makes room is granted what it still owes: its sender never runs out of credit. */
static void flow__forgotten_again_and_again(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(3, few_flows);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);

	(void)state;
	for (uint16_t k = 1; k <= 3; k++) {
		for (uint32_t n = 0; n < CN_EP_CREDIT / 2 - 1; n++) {
			endpoint_one_message(w, a, b, 100, false);
		}
		forget(w, b, (uint16_t)(1000 * k));
	}
	endpoint_fixture_free(w);
}

/* All credit goes to a receiver that has forgotten the pair and closed: what is sent behind that
 * reaches the one that opens there then. */
static void flow__forgotten_before_many_messages(void **state)
{
	enum { MORE = 8 };
	struct endpoint_fixture *w = endpoint_fixture(3, few_flows);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out[CN_EP_CREDIT + MORE], *in;

	(void)state;
	for (uint32_t n = 0; n < 6; n++) {
		endpoint_one_message(w, a, b, 1 << 20, false); /* the window opens */
	}
	forget(w, b, 1000);
	cn_endpoint_close(b, w->now);
	for (uint32_t n = 0; n < CN_EP_CREDIT + MORE; n++) {
		out[n] = endpoint_send_to(w, a, "b", 7, 100, n, SECOND);
		if (n + 1 == CN_EP_CREDIT) { /* those behind use the same requests again */
			endpoint_poll_only(w, 0, 2);
		}
	}
	assert_int_equal(a->flows->credit, 0);
	endpoint_poll_only(w, 1, 1);
	b = endpoint_open_at(w, 1, 7);
	w->next = 0;
	for (uint32_t n = 0; n < CN_EP_CREDIT + MORE; n++) {
		endpoint_assert_ok(w, out[n]);
		endpoint_drop(out[n]);
		if (n >= CN_EP_CREDIT) {
			in = endpoint_recv_at(w, b, 100, SECOND);
			endpoint_assert_ok(w, in);
			endpoint_assert_got(in, "a", 5, 100, n);
			endpoint_drop(in);
		}
	}
	assert_next_send_fails(w, a, COLLNET_ENOENT);
	endpoint_fixture_free(w);
}

/* A receiver that has forgotten an idle pair refuses its next message, which is complete: the send
 * after it fails, once. */
static void flow__forgotten_by_the_receiver(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(3, few_flows);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	const uint32_t share = w->engine[1]->endpoints->max_flows / CN_EP_SHARES;
	struct endpoint_request *out, *in;

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	endpoint_run(w, SECOND);
	for (uint32_t n = 0; n < share; n++) {
		assert_int_equal(send_one(w, endpoint_open_at(w, 2, (uint16_t)(100 + n)), 7, 100,
					  SECOND),
				 COLLNET_OK);
	}
	assert_int_equal(b->account->flows, share);
	assert_int_equal(send_one(w, a, 7, 100, SECOND), COLLNET_OK);
	endpoint_run(w, SECOND);
	assert_next_send_fails(w, a, COLLNET_ELIMIT);
	out = endpoint_send_to(w, a, "b", 7, 100, 2, SECOND);
	endpoint_assert_status(w, out, COLLNET_ELIMIT, "no room");
	endpoint_drop(out);
	for (uint32_t n = 0; n < share; n++) {
		in = endpoint_recv_at(w, b, 100, SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_got(in, "c", (uint16_t)(100 + n), 100, 1);
		endpoint_drop(in);
	}
	endpoint_one_message(w, a, b, 100, false);
	/* Forgotten again, and closed since. */
	forget(w, b, 1000);
	cn_endpoint_close(b, w->now);
	w->next = 0;
	endpoint_run(w, SECOND);
	out = endpoint_send_to(w, a, "b", 7, 100, 2, SECOND);
	endpoint_assert_ok(w, out);
	endpoint_run(w, SECOND);
	assert_next_send_fails(w, a, COLLNET_ENOENT);
	endpoint_drop(out);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* A message is refused by a receiver that has forgotten its pair, after its sender has, too: the
 * next send of its endpoint fails, once, and not one of an endpoint that has its number since. */
static void forgotten_by_both(bool reopens)
{
	enum { BUSY = CN_EP_FLOWS_LEAST / CN_EP_SHARES };
	struct endpoint_fixture *w = endpoint_fixture(3, few_flows);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7), *busy[2];
	struct endpoint_request *out, *sends[BUSY];
	const struct cn_peer *peer = cn_node_find(cn_engine_node(w->engine[0]), "b");
	uint32_t number;

	assert_int_equal(w->engine[0]->endpoints->max_flows, CN_EP_FLOWS_LEAST);
	endpoint_one_message(w, a, b, 100, false);
	endpoint_run(w, SECOND);
	for (uint32_t n = 0; n < BUSY; n++) {
		assert_int_equal(send_one(w, endpoint_open_at(w, 2, (uint16_t)(100 + n)), 7, 100,
					  SECOND),
				 COLLNET_OK);
	}
	out = endpoint_send_to(w, a, "b", 7, 100, 2, SECOND);
	number = a->flows->numbers.next;
	endpoint_poll_only(w, 0, 2);
	assert_int_equal(out->status, COLLNET_OK);
	endpoint_drop(out);
	busy[0] = endpoint_open_at(w, 0, 50);
	busy[1] = endpoint_open_at(w, 0, 51);
	for (uint32_t n = 0; n < BUSY; n++) {
		sends[n] = endpoint_send_to(w, busy[n % 2], "c", (uint16_t)(1000 + n), 1, 1,
					    SECOND);
	}
	assert_null(a->flows);
	if (reopens) {
		cn_endpoint_close(a, w->now);
		a = endpoint_open_at(w, 0, 5);
	}
	for (uint32_t n = 0; n < BUSY; n++) {
		endpoint_assert_status(w, sends[n], COLLNET_ENOENT, "no endpoint");
		endpoint_drop(sends[n]);
	}
	endpoint_run(w, SECOND);
	if (!reopens) {
		cn_endpoint_refused(a, peer, 7, number - 1, true); /* twice, and others */
		cn_endpoint_refused(a, peer, 8, number, true);
		assert_next_send_fails(w, a, COLLNET_ELIMIT);
	}
	cn_endpoint_refused(a, peer, 7, number, true);
	cn_endpoint_refused(a, peer, 7, number + 1, true);
	cn_endpoint_refused(a, peer, 7, number - 1, true);
	out = endpoint_send_to(w, a, "b", 9, 1, 1, SECOND);
	endpoint_assert_status(w, out, COLLNET_ENOENT, "no endpoint 9");
	endpoint_drop(out);
	cn_endpoint_close(b, w->now);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void flow__forgotten_by_both(void **state)
{
	(void)state;
	forgotten_by_both(false);
	forgotten_by_both(true);
}

/* Endpoints open, get messages of a node that takes nothing, and close: the pairs of which that
 * node is not notified yet stay charged, and other users have theirs. */
static void share__of_pairs_that_are_closing(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(3, few_flows);
	struct cn_endpoint *b, *c = endpoint_open_at(w, 2, 9), *other = NULL;
	struct cn_endpoints *s = w->engine[1]->endpoints;
	struct cn_peer *a = cn_node_find(cn_engine_node(w->engine[1]), "a");
	uint8_t head[CN_EP_HEAD] = { 0 };
	struct cn_cursor owner = { head + 8, head + sizeof(head), false };
	struct cn_rx rx = { .type = CN_TYPE_MESSAGE,
			    .flags = CN_FLAG_FIRST | CN_FLAG_LAST,
			    .payload = head,
			    .len = sizeof(head) };
	struct endpoint_request *in, *out;
	uint16_t from = 1000;
	struct cn_err err;

	(void)state;
	cn_put64(&owner, OWNER);
	for (uint32_t round = 0; round < 12; round++) {
		b = endpoint_open_at(w, 1, 7);
		for (uint32_t i = 0; i < s->max_flows / CN_EP_SHARES; i++) {
			rx.stream = 7u << 16 | from++;
			(void)cn_endpoints_deliver(w->engine[1], w->now, a, &rx);
		}
		cn_endpoint_close(b, w->now);
	}
	assert_int_equal(s->nflows, s->max_flows / CN_EP_SHARES);
	assert_int_equal(cn_endpoint_open(w->engine[1], OWNER, OWNER + 1, 8, &other, &err),
			 COLLNET_OK);
	in = endpoint_recv_at(w, other, 100, SECOND);
	out = endpoint_send_to(w, c, "b", 8, 100, 1, SECOND);
	endpoint_assert_ok(w, out);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "c", 9, 100, 1);
	endpoint_drop(in);
	endpoint_drop(out);
	cn_endpoint_close(other, w->now);
	w->next = 0;
	endpoint_assert_clean(w);
	assert_int_equal(s->nflows, 0);
	assert_null(s->accounts);
	endpoint_fixture_free(w);
}

/* A node sends to endpoints that are not open, and takes no answer: what waits for it is bounded.
 * Then its frames are refused, and other nodes have their answers and this node its early frames.
 */
static void control__of_one_that_takes_no_answers(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(3, NULL);
	struct cn_endpoint *b = endpoint_open_at(w, 1, 7), *c = endpoint_open_at(w, 2, 9);
	struct cn_node *node = cn_engine_node(w->engine[1]);
	struct cn_peer *a = cn_node_find(node, "a");
	const uint8_t head[CN_EP_HEAD] = { 0 };
	const struct cn_rx rx = { .type = CN_TYPE_MESSAGE,
				  .flags = CN_FLAG_FIRST | CN_FLAG_LAST,
				  .stream = 8u << 16 | 5,
				  .payload = head,
				  .len = sizeof(head) };
	const uint32_t buffers = node->small.free + node->pool.free;
	uint32_t answers = 0;
	struct endpoint_request *in, *out;
	bool room;

	(void)state;
	while (cn_endpoints_deliver(w->engine[1], w->now, a, &rx)) {
		answers++;
	}
	assert_int_equal(answers, CN_CONTROL_WAITING);
	assert_int_equal(node->small.free + node->pool.free, buffers - answers);
	in = endpoint_recv_at(w, b, 100, SECOND);
	out = endpoint_send_to(w, c, "b", 7, 100, 1, SECOND);
	while (out->ended == 0) {
		w->now += 5 * CN_US;
		cn_poller_poll(w->poller[2], w->now);
		cn_poller_poll(w->poller[1], w->now);
		room = a->controls < CN_CONTROL_WAITING;
		assert_true(cn_endpoints_deliver(w->engine[1], w->now, a, &rx) == room);
		assert_true(buffers - node->small.free - node->pool.free <=
			    CN_CONTROL_WAITING + node->config.send_window);
		assert_true(w->now < 60 * SECOND);
	}
	endpoint_assert_ok(w, out);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "c", 9, 100, 1);
	endpoint_drop(in);
	endpoint_drop(out);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* So many endpoints of a node, and pairs of two nodes that exceed CN_CONTROL_WAITING. */
#define PAIRED 17u

/* Two nodes whose processes end while frames of both are in flight: the queues of both are full of
 * CLOSED, and each has answers for the other's frames. None may wait for the other's answers. */
static void control__of_two_that_take_no_answers(void **state)
{
	static const char *const name[] = { "a", "b" };
	const struct cn_hub_faults loss = { .seed = 1, .loss = 1000000 }, none = { .seed = 1 };
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct endpoint_request *in[2][PAIRED], *out[2][PAIRED][CN_EP_CREDIT];
	struct cn_endpoint *ep[2][PAIRED];
	struct cn_peer *peer;

	(void)state;
	for (uint32_t n = 0; n < 2 * PAIRED; n++) {
		ep[n % 2][n / 2] = endpoint_open_at(w, n % 2, (uint16_t)(n / 2 + 1));
	}
	for (uint32_t k = 0; k < PAIRED; k++) {
		for (uint32_t n = 0; n < 2 * PAIRED; n++) {
			const uint32_t at = n % 2, i = n / 2;

			in[at][i] = endpoint_recv_at(w, ep[at][i], 100, 10 * SECOND);
			out[at][i][0] = endpoint_send_to(w, ep[at][i], name[!at],
							 (uint16_t)((i + k) % PAIRED + 1), 100, 1,
							 10 * SECOND);
		}
		for (uint32_t n = 0; n < 2 * PAIRED; n++) {
			endpoint_assert_ok(w, in[n % 2][n / 2]);
			endpoint_assert_ok(w, out[n % 2][n / 2][0]);
			endpoint_drop(in[n % 2][n / 2]);
			endpoint_drop(out[n % 2][n / 2][0]);
		}
	}
	endpoint_run(w, SECOND);
	for (uint32_t n = 0; n < 2 * PAIRED * CN_EP_CREDIT; n++) {
		const uint32_t at = n % 2, i = n / 2 % PAIRED;

		out[at][i][n / 2 / PAIRED] = endpoint_send_to(w, ep[at][i], name[!at],
							      (uint16_t)(i + 1), 100, 1,
							      100 * SECOND);
	}
	cn_hub_set_faults(w->hub, &loss);
	for (uint32_t k = 0; k < 3; k++) {
		endpoint_poll_only(w, 0, 1);
		endpoint_poll_only(w, 1, 1);
	}
	for (uint32_t n = 0; n < 2 * PAIRED; n++) {
		cn_endpoint_close(ep[n % 2][n / 2], w->now);
	}
	cn_hub_set_faults(w->hub, &none);
	for (uint32_t at = 0; at < 2; at++) {
		peer = cn_node_find(cn_engine_node(w->engine[at]), name[!at]);
		assert_int_equal(peer->controls, CN_CONTROL_WAITING);
		assert_true(peer->tx.queue.end != peer->tx.queue.una);
	}
	w->next = 0;
	endpoint_run(w, 2 * SECOND);
	for (uint32_t at = 0; at < 2; at++) {
		peer = cn_node_find(cn_engine_node(w->engine[at]), name[!at]);
		assert_int_equal(peer->controls, 0);
		assert_int_equal(peer->tx.queue.end, peer->tx.queue.una);
		for (uint32_t i = 0; i < PAIRED * CN_EP_CREDIT; i++) {
			endpoint_drop(out[at][i / CN_EP_CREDIT][i % CN_EP_CREDIT]);
		}
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__of_one_that_opens_again),
		cmocka_unit_test(share__of_one_that_times_out),
		cmocka_unit_test(close__of_pairs_that_sent_nothing),
		cmocka_unit_test(flow__idle_at_the_sender),
		cmocka_unit_test(flow__not_idle),
		cmocka_unit_test(flow__forgotten_by_the_receiver),
		cmocka_unit_test(flow__forgotten_again_and_again),
		cmocka_unit_test(flow__forgotten_before_many_messages),
		cmocka_unit_test(flow__forgotten_by_both),
		cmocka_unit_test(share__of_pairs_that_are_closing),
		cmocka_unit_test(control__of_one_that_takes_no_answers),
		cmocka_unit_test(control__of_two_that_take_no_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
