/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/endpoint*.c: endpoints that do not exist, that close, and that open again under the same
 * number while messages are under way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint_fixture.h"
#include "proto/node_impl.h"

static void send__to_nobody(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b;
	struct endpoint_request *small, *large, *in;
	struct cn_err err = { 0 };
	struct cn_done unused = { 0 };

	(void)state;
	small = endpoint_send_to(w, a, "b", 7, 10, 1, 10 * SECOND);
	large = endpoint_send_to(w, a, "b", 7, 200000, 1, 10 * SECOND);
	endpoint_assert_status(w, small, COLLNET_ENOENT, "no endpoint 7 is open on node b");
	endpoint_assert_status(w, large, COLLNET_ENOENT, "no endpoint 7 is open on node b");
	assert_true(w->now < 2 * SECOND);
	endpoint_drop(small);
	endpoint_drop(large);
	for (uint32_t n = 0; n < 2 * CN_EP_CREDIT; n++) { /* which take no credit for good */
		small = endpoint_send_to(w, a, "b", 7, 10, 1, SECOND);
		endpoint_assert_status(w, small, COLLNET_ENOENT, "no endpoint 7");
		endpoint_drop(small);
	}
	b = endpoint_open_at(w, 1, 7);
	endpoint_one_message(w, a, b, 10, false);
	endpoint_one_message(w, a, b, 200000, true);

	assert_int_equal(cn_endpoint_send(a, w->now, "c", 7, "x", 1, CN_NEVER, &unused, &err),
			 COLLNET_ENOENT);
	assert_non_null(strstr(err.text, "no node c"));
	assert_int_equal(cn_endpoint_send(a, w->now, "a", 6, "x", 1, CN_NEVER, &unused, &err),
			 COLLNET_ENOENT);
	assert_non_null(strstr(err.text, "no endpoint 6"));
	assert_int_equal(cn_endpoint_send(a, w->now, "b", 0, "x", 1, CN_NEVER, &unused, &err),
			 COLLNET_EINVAL);
	assert_int_equal(cn_endpoint_send(a, w->now, "b", 7, NULL, 1, CN_NEVER, &unused, &err),
			 COLLNET_EINVAL);
	assert_int_equal(cn_endpoint_send(a, w->now, "b", 7, "x", COLLNET_MESSAGE_MAX + 1, CN_NEVER,
					  &unused, &err),
			 COLLNET_EINVAL);
	in = endpoint_recv_at(w, b, 0, SECOND);
	endpoint_assert_status(w, in, COLLNET_ETIMEOUT, "endpoint 7");
	endpoint_drop(in);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void close__of_the_receiver(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *large, *queued, *waiting, *in;

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	/* In the middle of a message that nobody receives, with another behind it. */
	large = endpoint_send_to(w, a, "b", 7, 200000, 1, 100 * SECOND);
	queued = endpoint_send_to(w, a, "b", 7, 10, 1, 100 * SECOND);
	endpoint_run(w, 10 * CN_MS);
	cn_endpoint_close(b, w->now);
	endpoint_assert_status(w, large, COLLNET_ENOENT, "endpoint 7 of node b was closed");
	endpoint_assert_status(w, queued, COLLNET_ENOENT, "endpoint 7 of node b was closed");
	endpoint_drop(large);
	endpoint_drop(queued);
	/* Opened again, and closed in the middle of a message that is being received. */
	b = endpoint_open_at(w, 1, 7);
	endpoint_one_message(w, a, b, 100000, true);
	in = endpoint_recv_at(w, b, 4 << 20, 100 * SECOND);
	waiting = endpoint_recv_at(w, b, 100, 100 * SECOND);
	large = endpoint_send_to(w, a, "b", 7, 4 << 20, 1, 100 * SECOND);
	for (int i = 0; i < 3; i++) {
		endpoint_step(w);
	}
	assert_int_equal(in->ended, 0);
	cn_endpoint_close(b, w->now);
	endpoint_assert_status(w, in, COLLNET_EINVAL, "endpoint 7 was closed");
	endpoint_assert_status(w, waiting, COLLNET_EINVAL, "endpoint 7 was closed");
	endpoint_assert_status(w, large, COLLNET_ENOENT, "endpoint 7 of node b was closed");
	endpoint_drop(in);
	endpoint_drop(waiting);
	endpoint_drop(large);
	b = endpoint_open_at(w, 1, 7);
	endpoint_one_message(w, a, b, 100000, false);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Opened again before the sender hears of it: what begins then ends too. */
static void close__and_open_unnoticed(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *other = endpoint_open_at(w, 0, 6),
			   *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *large, *small, *in;

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	cn_endpoint_close(b, w->now);
	b = endpoint_open_at(w, 1, 7);
	in = endpoint_recv_at(w, b, 1 << 20, 100 * SECOND);
	large = endpoint_send_to(w, a, "b", 7, 1 << 20, 1, 100 * SECOND);
	endpoint_assert_status(w, large, COLLNET_ENOENT, "endpoint 7 of node b was closed");
	endpoint_drop(large);
	endpoint_run(w, 10 * CN_MS);
	assert_int_equal(in->ended, 0);
	small = endpoint_send_to(w, other, "b", 7, 60, 2, 100 * SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", 6, 60, 2);
	endpoint_assert_ok(w, small);
	endpoint_drop(in);
	endpoint_drop(small);
	for (uint64_t n = 0; n < 3 * CN_EP_CREDIT; n++) {
		endpoint_one_message(w, a, b, n, n % 2 == 0);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Closed and opened at once, over and over, while messages come: nothing sticks. */
static void close__and_open_under_fire(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out[8] = { 0 }, *in = NULL;
	uint64_t random = SEED;
	uint32_t ok = 0;

	(void)state;
	print_message("seed %u\n", SEED);
	for (int n = 0; n < 4000; n++) {
		uint64_t x = cn_random(&random);
		struct endpoint_request **r = &out[x % 8];

		if (*r != NULL && (*r)->ended > 0) {
			assert_true((*r)->status == COLLNET_OK || (*r)->status == COLLNET_ENOENT);
			endpoint_drop(*r);
			*r = NULL;
		}
		if (*r == NULL) {
			uint64_t bytes = (x >> 8) % 5 == 0 ? (x >> 16) % 90000 : (x >> 16) % 400;

			*r = endpoint_send_to(w, a, "b", 7, bytes, (uint32_t)bytes, 1000 * SECOND);
		}
		if (in != NULL && in->ended > 0) {
			if (in->status == COLLNET_OK) {
				endpoint_assert_got(in, "a", 5, in->got.bytes,
						    (uint32_t)in->got.bytes);
				ok++;
			} else {
				assert_int_equal(in->status, COLLNET_EINVAL);
			}
			endpoint_drop(in);
			in = NULL;
		}
		if (in == NULL) {
			in = endpoint_recv_at(w, b, 90000, 1000 * SECOND);
		}
		if ((x >> 40) % 40 == 0) {
			cn_endpoint_close(b, w->now);
			b = endpoint_open_at(w, 1, 7);
		}
		endpoint_step(w);
	}
	assert_true(ok > 500);
	endpoint_run(w, SECOND);
	/* Whatever happened, both sides agree on credits: a message of any length goes through. */
	for (int i = 0; i < 100; i++) {
		if (in == NULL) {
			in = endpoint_recv_at(w, b, 1 << 20, 10 * SECOND);
		}
		endpoint_run(w, SECOND);
		if (in->ended == 0) {
			break;
		}
		endpoint_drop(in);
		in = NULL;
	}
	assert_non_null(in);
	for (int i = 0; i < 8; i++) {
		if (out[i] != NULL) {
			assert_int_equal(out[i]->ended, 1);
			endpoint_drop(out[i]);
		}
	}
	cn_endpoint_close(b, w->now);
	endpoint_drop(in);
	b = endpoint_open_at(w, 1, 7);
	endpoint_run(w, 10 * CN_MS);
	endpoint_one_message(w, a, b, 1 << 20, false);
	for (uint64_t n = 0; n < 3 * CN_EP_CREDIT; n++) {
		endpoint_one_message(w, a, b, n, true);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void close__of_the_sender(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7),
			   *other = endpoint_open_at(w, 0, 6);
	struct endpoint_request *large, *small, *in;

	(void)state;
	/* What was complete arrives; the rest is forgotten, and its receive gets another. */
	small = endpoint_send_to(w, a, "b", 7, 50, 1, 100 * SECOND);
	endpoint_assert_ok(w, small);
	large = endpoint_send_to(w, a, "b", 7, 4 << 20, 2, 100 * SECOND);
	endpoint_run(w, 10 * CN_MS);
	in = endpoint_recv_at(w, b, 4 << 20, 100 * SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", 5, 50, 1);
	endpoint_drop(in);
	in = endpoint_recv_at(w, b, 4 << 20, 100 * SECOND);
	for (int i = 0; i < 4; i++) {
		endpoint_step(w);
	}
	cn_endpoint_close(a, w->now);
	endpoint_assert_status(w, large, COLLNET_EINVAL, "endpoint 5 was closed");
	endpoint_run(w, 100 * CN_MS);
	assert_int_equal(in->ended, 0);
	endpoint_drop(large);
	endpoint_drop(small);
	small = endpoint_send_to(w, other, "b", 7, 70, 3, 100 * SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", 6, 70, 3);
	endpoint_assert_ok(w, small);
	endpoint_drop(in);
	endpoint_drop(small);
	/* A message that has come waits, although its sender has closed since. */
	a = endpoint_open_at(w, 0, 5);
	small = endpoint_send_to(w, a, "b", 7, 90, 4, 100 * SECOND);
	endpoint_assert_ok(w, small);
	cn_endpoint_close(a, w->now);
	endpoint_run(w, 100 * CN_MS);
	in = endpoint_recv_at(w, b, 100, 100 * SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", 5, 90, 4);
	endpoint_drop(in);
	endpoint_drop(small);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* All buffers of a pool, in a list through their first bytes. */
static void *take_all(struct cn_pool *pool)
{
	void *first = NULL, *b;

	while ((b = cn_pool_get(pool)) != NULL) {
		memcpy(b, &first, sizeof(first));
		first = b;
	}
	return first;
}

static void put_all(struct cn_pool *pool, void *first)
{
	void *next;

	for (; first != NULL; first = next) {
		memcpy(&next, first, sizeof(next));
		cn_pool_put(pool, first);
	}
}

/* There is no buffer to notify the other end. The endpoint, open again under its number, sends
 * nothing before that, also if it closes again or the other end sends to it meanwhile. */
static void close__without_a_buffer(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct cn_node *n = cn_engine_node(w->engine[0]);
	struct endpoint_request *out, *in;
	void *small, *large;

	(void)state;
	for (uint32_t round = 0; round < 6; round++) {
		endpoint_one_message(w, a, b, 100, false);
		large = take_all(&n->pool);
		small = take_all(&n->small);
		for (uint32_t k = 0; k <= round % 3; k++) {
			cn_endpoint_close(a, w->now);
			a = endpoint_open_at(w, 0, 5);
			if (k < round % 3) {
				out = endpoint_send_to(w, a, "b", 7, 10, 1, 10 * CN_MS);
				endpoint_assert_status(w, out, COLLNET_ETIMEOUT, "0 bytes went");
				endpoint_drop(out);
			}
		}
		if (round >= 3) { /* the other end has not heard of it */
			out = endpoint_send_to(w, b, "a", 5, 100, 2, SECOND);
			in = endpoint_recv_at(w, a, 100, SECOND);
			endpoint_assert_ok(w, out);
			endpoint_assert_ok(w, in);
			endpoint_drop(out);
			endpoint_drop(in);
		}
		put_all(&n->pool, large);
		put_all(&n->small, small);
		out = endpoint_send_to(w, a, "b", 7, 1 << 20, 3, 5 * SECOND);
		endpoint_run(w, 10 * CN_MS);
		in = endpoint_recv_at(w, b, 1 << 20, 5 * SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_ok(w, out);
		endpoint_assert_got(in, "a", 5, 1 << 20, 3);
		endpoint_drop(in);
		endpoint_drop(out);
		assert_null(w->engine[0]->endpoints->retry);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Frames that are sent now arrive at the other node's next step. */
static void step_of(struct endpoint_fixture *w, uint32_t node)
{
	w->now += 5 * CN_US;
	cn_poller_poll(w->poller[node], w->now);
}

/* Both ends close at the same time. The CLOSED that waits for a buffer goes all the same: the other
 * end receives the beginning of a message of which the rest never comes. */
static void close__of_both_ends(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct cn_endpoint *other = endpoint_open_at(w, 0, 6);
	struct cn_node *n = cn_engine_node(w->engine[0]);
	struct endpoint_request *large, *in, *next, *last;
	void *pool, *small;

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	endpoint_run(w, 100 * CN_MS);
	large = endpoint_send_to(w, a, "b", 7, 1 << 20, 3, 100 * SECOND);
	step_of(w, 0);
	cn_endpoint_close(b, w->now);
	b = endpoint_open_at(w, 1, 7);
	in = endpoint_recv_at(w, b, 1 << 20, 20 * SECOND);
	step_of(w, 1);
	pool = take_all(&n->pool);
	small = take_all(&n->small);
	cn_endpoint_close(a, w->now);
	a = endpoint_open_at(w, 0, 5);
	next = endpoint_send_to(w, a, "b", 7, 10, 1, 10 * SECOND);
	step_of(w, 0);
	put_all(&n->pool, pool);
	put_all(&n->small, small);
	endpoint_run(w, 3 * SECOND);
	last = endpoint_send_to(w, other, "b", 7, 70, 3, 5 * SECOND);
	endpoint_assert_ok(w, last);
	endpoint_assert_ok(w, in);
	endpoint_run(w, 10 * SECOND);
	assert_int_equal(large->ended, 1);
	assert_int_equal(next->ended, 1);
	endpoint_drop(large);
	endpoint_drop(in);
	endpoint_drop(next);
	endpoint_drop(last);
	endpoint_fixture_free(w);
}

/* The other end closes while the CLOSED of this one waits for a buffer: nobody is known to be there
 * any more. */
static void close__of_both_ends_without_a_buffer(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct cn_node *n = cn_engine_node(w->engine[0]);
	struct endpoint_request *out, *in;
	void *pool, *small;

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	pool = take_all(&n->pool);
	small = take_all(&n->small);
	cn_endpoint_close(a, w->now);
	a = endpoint_open_at(w, 0, 5);
	in = endpoint_recv_at(w, a, 10, SECOND);
	out = endpoint_send_to(w, b, "a", 5, 10, 1, SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_ok(w, out);
	endpoint_drop(in);
	endpoint_drop(out);
	cn_endpoint_close(b, w->now);
	endpoint_run(w, 10 * CN_MS);
	put_all(&n->pool, pool);
	put_all(&n->small, small);
	out = endpoint_send_to(w, a, "b", 7, 10, 1, SECOND);
	endpoint_assert_status(w, out, COLLNET_ENOENT, "no endpoint 7");
	endpoint_drop(out);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* b, which a has sent to, closes after its node has forgotten the idle pair: a is not notified. */
static void close_unnoticed(struct endpoint_fixture *w, struct cn_endpoint *a,
			    struct cn_endpoint *b)
{
	endpoint_one_message(w, a, b, 100, false);
	endpoint_run(w, 100 * CN_MS);
	cn_flow_control_grant(b->flows, CN_EP_CREDIT - b->flows->avail);
	cn_flow_free(b->flows);
	endpoint_run(w, 100 * CN_MS);
	cn_endpoint_close(b, w->now);
}

/* The message before is refused while this one is sent, which needs no confirmation then. */
static void send__behind_a_refused_message(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *lost, *out, *in;
	struct cn_frame f;

	(void)state;
	close_unnoticed(w, a, b);
	lost = endpoint_send_to(w, a, "b", 7, 10, 1, 100 * SECOND);
	step_of(w, 0);
	step_of(w, 1);
	b = endpoint_open_at(w, 1, 7);
	in = endpoint_recv_at(w, b, 20000, 20 * SECOND);
	out = endpoint_send_to(w, a, "b", 7, 14000, 2, 50 * SECOND);
	for (int i = 0; i < 3; i++) {
		assert_true(cn_engine_output(w->engine[0], w->now, &f));
		assert_int_equal(cn_link_send(cn_hub_port(w->hub, 0), &f, 1), 1);
	}
	endpoint_assert_ok(w, in);
	endpoint_assert_ok(w, out);
	endpoint_drop(lost);
	endpoint_drop(out);
	endpoint_drop(in);
	endpoint_fixture_free(w);
}

/* A send whose time is up while its frames are under way. */
static void send_too_late(struct endpoint_fixture *w, struct cn_endpoint *a)
{
	struct endpoint_request *r = endpoint_send_to(w, a, "b", 7, 8000, 1, 10 * CN_US);

	step_of(w, 0);
	w->now += 20 * CN_US;
	cn_endpoints_expire(w->engine[0], w->now);
	assert_int_equal(r->status, COLLNET_ETIMEOUT);
	endpoint_drop(r);
}

/* A message that was sent is lost, also if the next one has failed before that is known. Those that
 * failed are not. `after` so many messages. */
static void lost_before_some_that_failed(uint32_t after, bool one_is_lost, uint32_t fail)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *lost;

	endpoint_one_message(w, a, b, 100, false);
	endpoint_skip_to(w, a, b, a->flows->numbers.next + after);
	close_unnoticed(w, a, b);
	if (one_is_lost) {
		lost = endpoint_send_to(w, a, "b", 7, 10, 1, 100 * SECOND);
		step_of(w, 0);
		assert_int_equal(lost->status, COLLNET_OK);
		endpoint_drop(lost);
	}
	for (uint32_t n = 0; n < fail; n++) {
		send_too_late(w, a);
	}
	endpoint_run(w, SECOND);
	assert_int_equal(a->lost.code, one_is_lost ? COLLNET_ENOENT : COLLNET_OK);
	endpoint_fixture_free(w);
}

static void send__lost_before_one_that_failed(void **state)
{
	/* Beyond half of the numbers, and around: to the number before the first. */
	const uint32_t after[] = { 0, 3u << 30, UINT32_MAX - 2 };

	(void)state;
	for (uint32_t n = 0; n < 3 * 6; n++) {
		lost_before_some_that_failed(after[n / 6], n % 2 == 0, n % 6 / 2);
	}
}

/* The first message to an endpoint from which one has come, which is closed since. */
static void send__lost_as_the_first(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out, *in;

	(void)state;
	in = endpoint_recv_at(w, a, 10, SECOND);
	out = endpoint_send_to(w, b, "a", 5, 10, 1, SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_ok(w, out);
	endpoint_drop(in);
	endpoint_drop(out);
	endpoint_run(w, 100 * CN_MS);
	cn_flow_free(b->flows);
	cn_endpoint_close(b, w->now);
	out = endpoint_send_to(w, a, "b", 7, 10, 1, SECOND);
	endpoint_assert_ok(w, out);
	endpoint_drop(out);
	endpoint_run(w, SECOND);
	assert_int_equal(a->lost.code, COLLNET_ENOENT);
	endpoint_fixture_free(w);
}

/* A message of the endpoint that closed waits here. What is sent goes to the one that opens under
 * its number. */
static void close__with_a_message_unread(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out, *in;

	(void)state;
	out = endpoint_send_to(w, b, "a", 5, 10, 1, SECOND);
	endpoint_assert_ok(w, out);
	endpoint_drop(out);
	endpoint_one_message(w, a, b, 100, false);
	cn_endpoint_close(b, w->now);
	b = endpoint_open_at(w, 1, 7);
	endpoint_run(w, 10 * CN_MS);
	endpoint_one_message(w, a, b, 100, false);
	in = endpoint_recv_at(w, a, 10, SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "b", 7, 10, 1);
	endpoint_drop(in);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* The CLOSED to one node waits for a buffer while another node is lost. */
static void close__while_another_node_is_lost(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(3, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7),
			   *other = endpoint_open_at(w, 0, 6);
	struct cn_node *n = cn_engine_node(w->engine[0]);
	struct endpoint_request *out;
	void *pool, *small;

	(void)state;
	endpoint_open_at(w, 2, 9);
	endpoint_one_message(w, a, b, 100, false);
	endpoint_run(w, 100 * CN_MS);
	pool = take_all(&n->pool);
	small = take_all(&n->small);
	cn_endpoint_close(a, w->now);
	cn_hub_cut(w->hub, 2, true);
	out = endpoint_send_to(w, other, "c", 9, 100, 1, 60 * SECOND);
	endpoint_assert_status(w, out, COLLNET_EPEER, "node c is gone");
	endpoint_drop(out);
	assert_int_equal(w->engine[1]->endpoints->nflows, 1);
	put_all(&n->pool, pool);
	put_all(&n->small, small);
	endpoint_run(w, 100 * CN_MS);
	assert_int_equal(w->engine[1]->endpoints->nflows, 0);
	endpoint_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__to_nobody),
		cmocka_unit_test(close__of_the_receiver),
		cmocka_unit_test(close__of_both_ends),
		cmocka_unit_test(close__of_both_ends_without_a_buffer),
		cmocka_unit_test(send__behind_a_refused_message),
		cmocka_unit_test(send__lost_before_one_that_failed),
		cmocka_unit_test(send__lost_as_the_first),
		cmocka_unit_test(close__with_a_message_unread),
		cmocka_unit_test(close__while_another_node_is_lost),
		cmocka_unit_test(close__and_open_unnoticed),
		cmocka_unit_test(close__and_open_under_fire),
		cmocka_unit_test(close__of_the_sender),
		cmocka_unit_test(close__without_a_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
