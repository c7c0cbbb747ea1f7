/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/endpoint*.c and flow.c: messages that are cut off, and control messages of endpoints
 * that find no room.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint_fixture.h"

/* As many control messages wait for the other node as may; they mean nothing there. */
static void fill(struct endpoint_fixture *w, uint32_t node)
{
	struct cn_peer *p = cn_node_find(cn_engine_node(w->engine[node]),
					 endpoint_node_names[!node]);

	while (cn_flow_notify(w->engine[node]->endpoints, p, CN_EP_NOENT, 9, 9, 0)) {
	}
}

/* The receive waits: it gets a message of endpoint 6 of node a. */
static void assert_waits(struct endpoint_fixture *w, struct endpoint_request *in)
{
	struct endpoint_request *out;

	w->next = 0;
	endpoint_run(w, 10 * CN_MS);
	assert_int_equal(in->ended, 0);
	out = endpoint_send_to(w, endpoint_open_at(w, 0, 6), "b", 7, 60, 9, SECOND);
	endpoint_wait_for(w, in, SECOND);
	endpoint_assert_got(in, "a", 6, 60, 9);
	endpoint_assert_ok(w, out);
	endpoint_drop(in);
	endpoint_drop(out);
}

static void end(struct endpoint_fixture *w, struct cn_endpoint *a, struct cn_endpoint *b)
{
	for (uint64_t n = 0; n < 2 * CN_EP_CREDIT; n++) {
		endpoint_one_message(w, a, b, 100 * n, n % 2 == 0);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* ---- no room -------------------------------------------------------------------------- */

/* A pair whose CLOSED waits joins those that do without a look at them, of which there may be many:
 * one that is changed behind the node's back shows who does. */
static void close__looks_at_none_that_waits(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoints *s = w->engine[0]->endpoints;
	struct cn_peer *p = cn_node_find(cn_engine_node(w->engine[0]), "b");
	struct cn_endpoint *a[2];
	struct cn_flow after = { .retry_next = NULL }, *waits;

	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		a[n] = endpoint_open_at(w, 0, (uint16_t)(n + 1));
		cn_flow_get(a[n], p, 7)->known = true;
	}
	fill(w, 0);
	cn_endpoint_close(a[0], w->now);
	waits = s->retry;
	waits->retry_next = &after;
	cn_endpoint_close(a[1], w->now);
	assert_null(after.retry_next);
	waits->retry_next = NULL;
	w->next = 0;
	endpoint_assert_clean(w);
	assert_int_equal(s->nflows, 0);
	endpoint_fixture_free(w);
}

/* One that opens again while its CLOSED waits sends that itself; those of others go, too. */
static void close__of_one_that_opens_again(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a[3], *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *in, *out;

	(void)state;
	for (uint32_t again = 0; again < 3; again++) {
		for (uint32_t n = 0; n < 3; n++) {
			a[n] = endpoint_open_at(w, 0, (uint16_t)(n + 1));
			in = endpoint_recv_at(w, b, 100, SECOND);
			out = endpoint_send_to(w, a[n], "b", 7, 100, n, SECOND);
			endpoint_assert_ok(w, in);
			endpoint_assert_ok(w, out);
			endpoint_drop(in);
			endpoint_drop(out);
		}
		assert_int_equal(w->engine[1]->endpoints->nflows, 3);
		fill(w, 0);
		for (uint32_t n = 0; n < 3; n++) {
			cn_endpoint_close(a[n], w->now);
		}
		a[again] = endpoint_open_at(w, 0, (uint16_t)(again + 1));
		in = endpoint_recv_at(w, b, 100, SECOND);
		out = endpoint_send_to(w, a[again], "b", 7, 100, 4, SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_got(in, "a", (uint16_t)(again + 1), 100, 4);
		endpoint_assert_ok(w, out);
		endpoint_drop(in);
		endpoint_drop(out);
		endpoint_run(w, 10 * CN_MS);
		assert_int_equal(w->engine[0]->endpoints->nflows, 1);
		assert_int_equal(w->engine[1]->endpoints->nflows, 1);
		cn_endpoint_close(a[again], w->now);
		endpoint_run(w, 10 * CN_MS);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* A message is cut off in the middle: its receive hears of it when there is room. */
static void abort__without_room(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *in, *out;

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	in = endpoint_recv_at(w, b, 1 << 20, 10 * SECOND);
	out = endpoint_send_to(w, a, "b", 7, 1 << 20, 1, CN_MS);
	endpoint_poll_only(w, 0, 1);
	endpoint_poll_only(w, 1, 1);
	assert_true(b->flows->coming);
	fill(w, 0);
	w->now += 2 * CN_MS;
	cn_endpoints_expire(w->engine[0], w->now);
	assert_int_equal(out->status, COLLNET_ETIMEOUT);
	assert_true(a->flows->abort_due);
	endpoint_drop(out);
	assert_waits(w, in);
	end(w, a, b);
}

/* The same when the receiver has closed, and is open again before the sender hears of it. */
static void abort__to_one_that_opened_again(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *in, *out;

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	endpoint_run(w, 100 * CN_MS);
	cn_endpoint_close(b, w->now);
	b = endpoint_open_at(w, 1, 7);
	in = endpoint_recv_at(w, b, 1 << 20, 10 * SECOND);
	out = endpoint_send_to(w, a, "b", 7, 1 << 20, 1, SECOND);
	endpoint_poll_only(w, 0, 1);
	endpoint_poll_only(w, 1, 1);
	assert_true(b->flows->coming);
	fill(w, 0);
	endpoint_poll_only(w, 0, 1);
	assert_int_equal(out->status, COLLNET_ENOENT);
	assert_true(a->flows->abort_due);
	endpoint_drop(out);
	assert_waits(w, in);
	end(w, a, b);
}

/* The same when nearly all credit was spent before, on messages that nobody received: that of the
 * new receiver counts. */
static void abort__without_credit(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *in, *out;

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	while (a->flows->credit > 1) {
		out = endpoint_send_to(w, a, "b", 7, 100, 1, SECOND);
		endpoint_assert_ok(w, out);
		endpoint_drop(out);
	}
	endpoint_run(w, 100 * CN_MS);
	cn_endpoint_close(b, w->now);
	b = endpoint_open_at(w, 1, 7);
	out = endpoint_send_to(w, a, "b", 7, 1 << 20, 1, SECOND);
	endpoint_poll_only(w, 0, 1);
	assert_int_equal(a->flows->credit, 0);
	endpoint_poll_only(w, 1, 1);
	assert_true(b->flows->coming);
	fill(w, 0);
	endpoint_poll_only(w, 0, 1);
	assert_int_equal(out->status, COLLNET_ENOENT);
	assert_true(a->flows->abort_due);
	endpoint_drop(out);
	w->next = 0;
	endpoint_run(w, 10 * CN_MS);
	assert_false(b->flows->coming);
	in = endpoint_recv_at(w, b, 100, SECOND);
	out = endpoint_send_to(w, a, "b", 7, 100, 2, SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", 5, 100, 2);
	endpoint_assert_ok(w, out);
	endpoint_drop(in);
	endpoint_drop(out);
	end(w, a, b);
}

/* What was received is credit again when there is room to say so. */
static void grant__without_room(void **state)
{
	enum { MESSAGES = CN_EP_CREDIT + 8 };
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *in, *out[MESSAGES];

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	for (uint32_t n = 0; n < MESSAGES; n++) {
		out[n] = endpoint_send_to(w, a, "b", 7, 100, n, SECOND);
	}
	endpoint_run(w, 100 * CN_MS);
	fill(w, 1);
	for (uint32_t n = 0; n < MESSAGES; n++) {
		in = endpoint_recv_at(w, b, 100, SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_got(in, "a", 5, 100, n);
		endpoint_assert_ok(w, out[n]);
		endpoint_drop(in);
		endpoint_drop(out[n]);
	}
	end(w, a, b);
}

/* ---- messages that are cut off while another one is under way --------------------------- */

/* A message that has come, of which the sender does not know it, and the next, which is coming. */
struct two {
	struct endpoint_fixture *w;
	struct cn_endpoint *a, *b;
	struct endpoint_request *out[2], *in[2];
};

static struct two begin_two(void)
{
	struct two t = { .w = endpoint_fixture(2, NULL) };
	const uint64_t bytes[2] = { 6 * PAYLOAD, 40 * PAYLOAD }; /* neither is copied */

	t.a = endpoint_open_at(t.w, 0, 5);
	t.b = endpoint_open_at(t.w, 1, 7);
	for (uint32_t n = 0; n < 6; n++) {
		endpoint_one_message(t.w, t.a, t.b, 1 << 20, false); /* the window opens */
	}
	endpoint_run(t.w, SECOND);
	for (uint32_t n = 0; n < 2; n++) {
		t.in[n] = endpoint_recv_at(t.w, t.b, bytes[n], 10 * SECOND);
		t.out[n] = endpoint_send_to(t.w, t.a, "b", 7, bytes[n], n, 10 * SECOND);
	}
	endpoint_poll_only(t.w, 0, 1);
	cn_hub_cut(t.w->hub, 0, true);
	endpoint_poll_only(t.w, 1, 1);
	cn_hub_cut(t.w->hub, 0, false);
	assert_int_equal(t.out[0]->ended, 0);
	endpoint_assert_got(t.in[0], "a", 5, bytes[0], 0);
	endpoint_drop(t.in[0]);
	assert_true(t.b->flows->coming);
	return t;
}

/* The time of the n-th send is up. */
static void expire(struct two *t, uint32_t n)
{
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		if (t->a->sends[i].done == &t->out[n]->done) {
			cn_send_expire(&t->a->sends[i], t->w->now);
		}
	}
	assert_int_equal(t->out[n]->status, COLLNET_ETIMEOUT);
	endpoint_drop(t->out[n]);
}

static void abort__of_the_one_before(void **state)
{
	struct two t = begin_two();

	(void)state;
	expire(&t, 0);
	t.w->next = 0;
	endpoint_wait_for(t.w, t.in[1], SECOND);
	endpoint_assert_got(t.in[1], "a", 5, 40 * PAYLOAD, 1);
	endpoint_assert_ok(t.w, t.out[1]);
	endpoint_drop(t.in[1]);
	endpoint_drop(t.out[1]);
	end(t.w, t.a, t.b);
}

/* In whatever order they are cut off, the receiver hears of the later one. */
static void abort__of_both(void **state)
{
	(void)state;
	for (uint32_t first = 0; first < 2; first++) {
		struct two t = begin_two();

		fill(t.w, 0);
		expire(&t, first);
		expire(&t, !first);
		assert_waits(t.w, t.in[1]);
		end(t.w, t.a, t.b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close__looks_at_none_that_waits),
		cmocka_unit_test(close__of_one_that_opens_again),
		cmocka_unit_test(abort__without_room),
		cmocka_unit_test(abort__to_one_that_opened_again),
		cmocka_unit_test(abort__without_credit),
		cmocka_unit_test(grant__without_room),
		cmocka_unit_test(abort__of_the_one_before),
		cmocka_unit_test(abort__of_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
