/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/endpoint*.c and flow.c: credit, unread messages, and the limits on flows, requests and
 * endpoints.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint_fixture.h"

/* Many endpoints send to one that does not receive: no frame is refused, everything arrives. */
static void recv__many_unread(void **state)
{
	enum { FLOWS = 20, EACH = 20 };
	struct endpoint_fixture *w = endpoint_fixture(2, endpoint_small_pool);
	struct cn_endpoint *b = endpoint_open_at(w, 1, 7), *a[FLOWS];
	struct endpoint_request *out[FLOWS][EACH], *in;

	(void)state;
	for (int i = 0; i < FLOWS; i++) {
		a[i] = endpoint_open_at(w, 0, (uint16_t)(i + 1));
		for (uint32_t k = 0; k < EACH; k++) {
			out[i][k] = endpoint_send_to(w, a[i], "b", 7, 100, k, 100 * SECOND);
		}
	}
	endpoint_run(w, SECOND);
	assert_int_equal(endpoint_stats(w, 1).busy, 0);
	for (int n = 0; n < FLOWS * EACH; n++) {
		in = endpoint_recv_at(w, b, 100, 100 * SECOND);
		endpoint_assert_ok(w, in);
		assert_int_equal(in->got.bytes, 100);
		endpoint_drop(in);
	}
	for (int i = 0; i < FLOWS; i++) {
		for (int k = 0; k < EACH; k++) {
			endpoint_assert_ok(w, out[i][k]);
			endpoint_drop(out[i][k]);
		}
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* An endpoint that does not receive takes no more than its credits, and holds up nobody else. */
static void credit__of_one_that_does_not_receive(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7),
			   *other = endpoint_open_at(w, 1, 8);
	struct endpoint_request *out[CN_EP_REQUESTS - 1], *big, *in;
	uint64_t before;
	uint32_t done = 0;

	(void)state;
	for (uint32_t k = 0; k < CN_EP_REQUESTS - 1; k++) {
		out[k] = endpoint_send_to(w, a, "b", 7, 1000, k, 100 * SECOND);
	}
	endpoint_run(w, SECOND);
	for (uint32_t k = 0; k < CN_EP_REQUESTS - 1; k++) {
		done += out[k]->ended;
	}
	assert_int_equal(done, CN_EP_CREDIT);
	/* The same endpoint to another one, many frames. */
	before = endpoint_stats(w, 0).data_sent;
	in = endpoint_recv_at(w, other, 1 << 20, 100 * SECOND);
	big = endpoint_send_to(w, a, "b", 8, 1 << 20, 99, 100 * SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_ok(w, big);
	endpoint_assert_got(in, "a", 5, 1 << 20, 99);
	assert_true(endpoint_stats(w, 0).data_sent - before <= ((1 << 20) + PAYLOAD) / PAYLOAD + 1);
	assert_int_equal(endpoint_stats(w, 1).busy, 0);
	endpoint_drop(in);
	endpoint_drop(big);
	for (uint32_t k = 0; k < CN_EP_REQUESTS - 1; k++) {
		in = endpoint_recv_at(w, b, 1000, 100 * SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_got(in, "a", 5, 1000, k);
		endpoint_assert_ok(w, out[k]);
		endpoint_drop(in);
		endpoint_drop(out[k]);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* A job of one rank on each of the two nodes. */
struct job {
	struct endpoint_request *member[2], *op[2];
	struct cn_member *m[2];
	uint8_t *send[2], *recv[2];
};

static void job_join(struct endpoint_fixture *w, struct job *j)
{
	struct cn_err err = { 0 };

	for (uint32_t i = 0; i < 2; i++) {
		j->member[i] = endpoint_request(0);
		assert_int_equal(cn_team_join(w->engine[i], w->now, OWNER, "job", i, 2,
					      w->now + SECOND, &j->member[i]->done, &j->m[i], &err),
				 COLLNET_OK);
	}
	endpoint_assert_ok(w, j->member[0]);
	endpoint_assert_ok(w, j->member[1]);
}

static void job_leave(struct endpoint_fixture *w, struct job *j)
{
	for (uint32_t i = 0; i < 2; i++) {
		cn_team_leave(j->m[i], w->now, false);
		endpoint_drop(j->member[i]);
	}
}

/* An all-to-all of so many bytes; returns its time. */
static cn_time job_exchange(struct endpoint_fixture *w, struct job *j, uint64_t bytes,
			    uint32_t window)
{
	const cn_time begin = w->now;
	struct cn_err err = { 0 };
	cn_time time;

	for (uint32_t i = 0; i < 2; i++) {
		struct cn_coll_args args = { .op = CN_OP_ALLTOALL,
					     .bytes = bytes,
					     .window = window,
					     .deadline = w->now + SECOND };

		args.send = j->send[i] = malloc(2 * bytes);
		args.recv = j->recv[i] = malloc(2 * bytes);
		endpoint_fill(j->send[i], bytes, 10 * i);
		endpoint_fill(j->send[i] + bytes, bytes, 10 * i + 1);
		j->op[i] = endpoint_request(0);
		assert_int_equal(cn_coll_post(j->m[i], w->now, &args, &j->op[i]->done, &err),
				 COLLNET_OK);
	}
	w->next = 0;
	endpoint_assert_ok(w, j->op[0]);
	endpoint_assert_ok(w, j->op[1]);
	time = w->now - begin;
	for (uint32_t i = 0; i < 2; i++) {
		endpoint_assert_filled(j->recv[i], bytes, i);
		endpoint_assert_filled(j->recv[i] + bytes, bytes, 10 + i);
		endpoint_drop(j->op[i]);
		free(j->send[i]);
		free(j->recv[i]);
	}
	return time;
}

/* Many that do not receive hold up no collective of the same nodes. */
static void credit__lets_collectives_pass(void **state)
{
	enum { FLOWS = 40 };
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a[FLOWS], *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out[FLOWS];
	struct job j;

	(void)state;
	job_join(w, &j);
	for (uint32_t i = 0; i < FLOWS; i++) {
		a[i] = endpoint_open_at(w, 0, (uint16_t)(i + 1));
		out[i] = endpoint_send_to(w, a[i], "b", 7, 1 << 20, i, 100 * SECOND);
	}
	endpoint_run(w, 100 * CN_MS);
	job_exchange(w, &j, 100000, COLLNET_WINDOW_AUTO);
	job_leave(w, &j);
	assert_int_equal(endpoint_stats(w, 1).busy, 0);
	assert_int_equal(w->engine[1]->endpoints->pool.count - w->engine[1]->endpoints->pool.free,
			 FLOWS * CN_EP_CREDIT);
	cn_endpoint_close(b, w->now);
	for (uint32_t i = 0; i < FLOWS; i++) {
		endpoint_assert_status(w, out[i], COLLNET_ENOENT,
				       "endpoint 7 of node b was closed");
		endpoint_drop(out[i]);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Frames of messages fill the window of an exchange, and none of them requests an acknowledgement:
 * the exchange does, instead of waiting for a delayed one. */
static void exchange__in_a_window_of(uint32_t messages, uint64_t bytes)
{
	enum { FRAMES = 6, WINDOW = 4 };
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out[CN_EP_CREDIT], *in;
	const uint32_t unread = CN_EP_CREDIT - FRAMES;
	const struct cn_window *window = cn_node_window(cn_engine_node(w->engine[0]));
	struct job j;

	job_join(w, &j);
	for (uint32_t n = 0; n < unread; n++) {
		out[n] = endpoint_send_to(w, a, "b", 7, 100, n, SECOND);
	}
	endpoint_run(w, 100 * CN_MS);
	assert_int_equal(window->in_flight, 0);
	for (uint32_t n = unread; n < unread + messages; n++) {
		out[n] = endpoint_send_to(w, a, "b", 7, bytes, n, SECOND);
	}
	while (window->in_flight < FRAMES) { /* all that there is credit for */
		endpoint_step(w);
	}
	assert_uint_in_range(job_exchange(w, &j, 5000, WINDOW), 1, CN_MS);
	for (uint32_t n = 0; n < unread + messages; n++) {
		in = endpoint_recv_at(w, b, bytes, SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_got(in, "a", 5, n < unread ? 100 : bytes, n);
		endpoint_assert_ok(w, out[n]);
		endpoint_drop(in);
		endpoint_drop(out[n]);
	}
	job_leave(w, &j);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void exchange__in_a_window_of_messages(void **state)
{
	(void)state;
	exchange__in_a_window_of(6, 100);	   /* copied, and complete */
	exchange__in_a_window_of(1, 20 * PAYLOAD); /* in the middle of one */
}

/* A stream of small messages costs no more grants than one for half the credits. */
static void credit__costs_few_frames(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	uint64_t before = endpoint_stats(w, 1).data_sent;

	(void)state;
	for (uint32_t k = 0; k < 20 * CN_EP_CREDIT; k++) {
		endpoint_one_message(w, a, b, 64, false);
	}
	assert_true(endpoint_stats(w, 1).data_sent - before <= 20 * 2 + 1);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Who sent is there: an answer is complete as soon as it was sent. */
static void send__answers_at_once(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *in = endpoint_recv_at(w, b, 10, SECOND), *out;
	struct cn_frame frame;

	(void)state;
	out = endpoint_send_to(w, a, "b", 7, 10, 1, SECOND);
	while (cn_engine_output(w->engine[0], w->now, &frame)) {
	}
	assert_int_equal(out->ended, 0); /* nobody knows yet whether anybody is there */
	endpoint_assert_ok(w, in);
	endpoint_assert_ok(w, out);
	endpoint_drop(in);
	endpoint_drop(out);
	out = endpoint_send_to(w, b, "a", 5, 10, 1, SECOND);
	while (cn_engine_output(w->engine[1], w->now, &frame)) {
	}
	assert_int_equal(out->status, COLLNET_OK);
	endpoint_run(w, SECOND); /* the frame was lost: it is sent again */
	in = endpoint_recv_at(w, a, 10, SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "b", 7, 10, 1);
	endpoint_drop(in);
	endpoint_drop(out);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* ---- bounds --------------------------------------------------------------------------- */

static void three_endpoints(struct cn_engine_config *c)
{
	c->max_endpoints = 3;
}

static void open__numbers(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(1, three_endpoints);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 0, 0), *c, *d;
	struct cn_err err = { 0 };
	uint16_t number = cn_endpoint_number(b);

	(void)state;
	assert_int_equal(cn_endpoint_number(a), 5);
	assert_true(number >= 32768);
	assert_int_equal(cn_endpoint_open(w->engine[0], OWNER, OWNER, 5, &d, &err), COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "endpoint 5 of node a is open already"));
	c = endpoint_open_at(w, 0, 65535);
	assert_int_equal(cn_endpoint_open(w->engine[0], OWNER, OWNER, 6, &d, &err), COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "3 endpoints"));
	cn_endpoint_close(b, w->now);
	b = endpoint_open_at(w, 0, 0);
	assert_true(cn_endpoint_number(b) >= 32768 && cn_endpoint_number(b) != number);
	for (int i = 0; i < 70000; i++) {
		cn_endpoint_close(b, w->now);
		b = endpoint_open_at(w, 0, 0);
		assert_true(cn_endpoint_number(b) >= 32768 && cn_endpoint_number(b) != 65535);
	}
	cn_endpoint_close(c, w->now);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void request__bounds(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out[CN_EP_REQUESTS], *in[CN_EP_REQUESTS];
	struct cn_done unused = { 0 };
	struct cn_err err = { 0 };

	(void)state;
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		out[i] = endpoint_send_to(w, a, "b", 7, 5000, i, 100 * SECOND);
	}
	assert_int_equal(cn_endpoint_send(a, w->now, "b", 7, "x", 1, CN_NEVER, &unused, &err),
			 COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "64 sends"));
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		in[i] = endpoint_recv_at(w, b, 5000, 100 * SECOND);
	}
	assert_int_equal(cn_endpoint_recv(b, w->now, NULL, 0, CN_NEVER, NULL, &unused, &err),
			 COLLNET_ELIMIT);
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		endpoint_assert_ok(w, in[i]);
		endpoint_assert_got(in[i], "a", 5, 5000, i);
		endpoint_assert_ok(w, out[i]);
		endpoint_drop(in[i]);
		endpoint_drop(out[i]);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* More pairs of endpoints talk, one after the other, than flows can be: idle ones make room. */
static void flow__bounds(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b;
	struct endpoint_request *out, *in;

	(void)state;
	for (uint32_t i = 1; i < CN_EP_FLOWS + 500; i++) {
		out = endpoint_send_to(w, a, "b", (uint16_t)i, 10, i, 100 * SECOND);
		endpoint_assert_status(w, out, COLLNET_ENOENT, "no endpoint");
		endpoint_drop(out);
	}
	assert_true(w->engine[0]->endpoints->nflows <= CN_EP_FLOWS);
	/* And where the flows are with the receiver, too. */
	for (uint32_t i = 0; i < CN_EP_FLOWS + 500; i++) {
		b = endpoint_open_at(w, 1, 0);
		in = endpoint_recv_at(w, a, 10, 100 * SECOND);
		out = endpoint_send_to(w, b, "a", 5, 10, i, 100 * SECOND);
		endpoint_assert_ok(w, out);
		endpoint_assert_ok(w, in);
		endpoint_assert_got(in, "b", cn_endpoint_number(b), 10, i);
		endpoint_drop(out);
		endpoint_drop(in);
		cn_endpoint_close(b, w->now);
	}
	b = endpoint_open_at(w, 1, 7);
	endpoint_one_message(w, a, b, 1 << 20, true);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void shorter(struct cn_engine_config *c)
{
	c->node.mtu = 700;
}

/* The sender's frames are shorter than the receiver's would be: a message needs more than the
 * receiver grants at its beginning. */
static void credit__of_shorter_frames(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a, *b = endpoint_open_at(w, 1, 7);

	(void)state;
	endpoint_stop_node(w, 0);
	endpoint_start_node(w, 0, 555, shorter);
	endpoint_meet(w);
	a = endpoint_open_at(w, 0, 5);
	endpoint_one_message(w, a, b, 1 << 20, false);
	endpoint_one_message(w, a, b, 1 << 20, true);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* A user with many endpoints sends as much as one with one, while both send. */
static void send__payers_take_turns(void **state)
{
	enum { MANY = 20 };
	const uint64_t bytes = 100 * PAYLOAD;
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct endpoint_request *out[MANY + 1], *in[MANY + 1];
	struct cn_endpoint *to[MANY + 1], *from;
	struct cn_err err;
	uint64_t others = 0;

	(void)state;
	for (uint16_t i = 0; i <= MANY; i++) {
		to[i] = endpoint_open_at(w, 1, 100 + i);
		in[i] = endpoint_recv_at(w, to[i], bytes, 100 * SECOND);
		memset(in[i]->data, 0, bytes);
		assert_int_equal(cn_endpoint_open(w->engine[0], OWNER, i == MANY ? 2 : 1, 1 + i,
						  &from, &err),
				 COLLNET_OK);
		out[i] = endpoint_send_to(w, from, "b", 100 + i, bytes, 1, 100 * SECOND);
	}
	while (in[MANY]->ended == 0) {
		endpoint_step(w);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		for (uint64_t k = 0; k < bytes; k += PAYLOAD) {
			others += in[i]->data[k] != 0 ? PAYLOAD : 0;
		}
	}
	assert_uint_in_range(others, bytes / 2, 2 * bytes);
	for (uint32_t i = 0; i <= MANY; i++) {
		endpoint_assert_ok(w, in[i]);
		endpoint_assert_ok(w, out[i]);
		endpoint_assert_got(in[i], "a", 1 + i, bytes, 1);
		endpoint_drop(in[i]);
		endpoint_drop(out[i]);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recv__many_unread),
		cmocka_unit_test(credit__of_one_that_does_not_receive),
		cmocka_unit_test(credit__lets_collectives_pass),
		cmocka_unit_test(exchange__in_a_window_of_messages),
		cmocka_unit_test(credit__costs_few_frames),
		cmocka_unit_test(credit__of_shorter_frames),
		cmocka_unit_test(send__answers_at_once),
		cmocka_unit_test(send__payers_take_turns),
		cmocka_unit_test(open__numbers),
		cmocka_unit_test(request__bounds),
		cmocka_unit_test(flow__bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
