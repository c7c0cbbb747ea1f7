/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/endpoint*.c: requests whose time is up, and nodes that are lost or end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint_fixture.h"

static void timeout__of_a_send(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out, *behind, *in;

	(void)state;
	for (int round = 0; round < 5; round++) {
		out = endpoint_send_to(w, a, "b", 7, 100000, 1, SECOND);
		behind = endpoint_send_to(w, a, "b", 7, 30000, 2, 10 * SECOND);
		endpoint_assert_status(
			w, out, COLLNET_ETIMEOUT,
			"a message of 100000 bytes from endpoint 5 to endpoint 7 of node b");
		assert_non_null(strstr(out->text, "nobody there receives"));
		endpoint_drop(out);
		endpoint_run(w, 10 * CN_MS);
		in = endpoint_recv_at(w, b, 100000, 10 * SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_got(in, "a", 5, 30000, 2);
		endpoint_assert_ok(w, behind);
		endpoint_drop(behind);
		endpoint_drop(in);
		endpoint_one_message(w, a, b, 200000, true);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* The deadline comes while the message is being received: the receive gets the next one. */
static void timeout__of_a_send_half_received(void **state)
{
	static const struct cn_hub_faults deaf = { .seed = 1, .loss = 1000000 }, none = { 0 };
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7),
			   *c = endpoint_open_at(w, 0, 9);
	struct endpoint_request *out, *in, *next;

	(void)state;
	b->posted = UINT32_MAX; /* the numbers of receives wrap around */
	for (int round = 0; round < 6; round++) {
		struct cn_endpoint *from = round % 2 == 0 ? a : c;

		in = endpoint_recv_at(w, b, 1 << 20, 10 * SECOND);
		next = endpoint_recv_at(w, b, 10, 10 * SECOND);
		out = endpoint_send_to(w, a, "b", 7, 1 << 20, 1, 200 * CN_MS);
		for (int i = 0; i < 1 + round; i++) {
			endpoint_step(w);
		}
		cn_hub_set_faults(w->hub, &deaf);
		endpoint_assert_status(w, out, COLLNET_ETIMEOUT, "node b");
		cn_hub_set_faults(w->hub, &none);
		endpoint_drop(out);
		endpoint_run(w, SECOND);
		assert_int_equal(in->ended, 0);
		out = endpoint_send_to(w, from, "b", 7, 300000, 2, 10 * SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_got(in, "a", cn_endpoint_number(from), 300000, 2);
		endpoint_assert_ok(w, out);
		endpoint_drop(out);
		endpoint_drop(in);
		out = endpoint_send_to(w, from, "b", 7, 10, 3, 10 * SECOND);
		endpoint_assert_ok(w, next);
		endpoint_assert_got(next, "a", cn_endpoint_number(from), 10, 3);
		endpoint_assert_ok(w, out);
		endpoint_drop(out);
		endpoint_drop(next);
		for (uint64_t n = 0; n < 3 * CN_EP_CREDIT; n++) {
			endpoint_one_message(w, a, b, n, n % 2 == 0);
		}
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* All its frames are lost: they were never counted, so both sides must forget them alike. */
static void timeout__of_a_send_never_heard(void **state)
{
	static const struct cn_hub_faults deaf = { .seed = 1, .loss = 1000000 }, none = { 0 };
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out;

	(void)state;
	for (int round = 0; round < 4; round++) {
		endpoint_one_message(w, a, b, 100, false);
		cn_hub_set_faults(w->hub, &deaf);
		out = endpoint_send_to(w, a, "b", 7, 100000, 1, 200 * CN_MS);
		endpoint_assert_status(w, out, COLLNET_ETIMEOUT, "node b");
		cn_hub_set_faults(w->hub, &none);
		endpoint_drop(out);
		/* What is sent again finds a receive, or none. */
		endpoint_run(w, round % 2 == 0 ? SECOND : 0);
		for (uint64_t n = 0; n < 3 * CN_EP_CREDIT; n++) {
			endpoint_one_message(w, a, b, n, n % 2 == 0);
		}
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void timeout__of_a_receive(void **state)
{
	static const struct cn_hub_faults deaf = { .seed = 1, .loss = 1000000 }, none = { 0 };
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out, *in, *late;
	cn_time before = w->now;

	(void)state;
	in = endpoint_recv_at(w, b, 100, SECOND);
	late = endpoint_recv_at(w, b, 100, 3 * SECOND);
	endpoint_assert_status(w, in, COLLNET_ETIMEOUT, "no message arrived at endpoint 7");
	assert_true(w->now >= before + SECOND && w->now < before + SECOND + 100 * CN_MS);
	assert_int_equal(late->ended, 0);
	endpoint_drop(in);
	out = endpoint_send_to(w, a, "b", 7, 100, 4, SECOND);
	endpoint_assert_ok(w, late);
	endpoint_assert_got(late, "a", 5, 100, 4);
	endpoint_assert_ok(w, out);
	endpoint_drop(late);
	endpoint_drop(out);
	/* In the middle of a message: the rest of it is thrown away. */
	in = endpoint_recv_at(w, b, 4 << 20, 300 * CN_MS);
	out = endpoint_send_to(w, a, "b", 7, 4 << 20, 1, 10 * SECOND);
	for (int i = 0; i < 5; i++) {
		endpoint_step(w);
	}
	cn_hub_set_faults(w->hub, &deaf);
	endpoint_assert_status(w, in, COLLNET_ETIMEOUT, "did not arrive in time");
	assert_false(b->flows->awaiting);
	cn_hub_set_faults(w->hub, &none);
	endpoint_assert_ok(w, out);
	endpoint_drop(in);
	endpoint_drop(out);
	endpoint_one_message(w, a, b, 100000, false);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* At a deadline only requests of endpoints that have one due are looked at: one that is changed
 * behind the endpoint's back shows which. */
static void timeout__looks_at_few(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(1, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *other = endpoint_open_at(w, 0, 6);
	struct endpoint_request *in[3];

	(void)state;
	in[0] = endpoint_recv_at(w, other, 1, 10 * SECOND);
	in[1] = endpoint_recv_at(w, a, 1, SECOND);
	in[2] = endpoint_recv_at(w, a, 1, 3 * SECOND);
	other->recv_first->deadline = w->now + SECOND;
	endpoint_run(w, 2 * SECOND);
	assert_int_equal(in[0]->ended, 0);
	assert_int_equal(in[1]->status, COLLNET_ETIMEOUT);
	assert_int_equal(in[2]->ended, 0);
	endpoint_run(w, 2 * SECOND);
	assert_int_equal(in[2]->status, COLLNET_ETIMEOUT);
	assert_int_equal(in[0]->ended, 0);
	endpoint_run(w, 7 * SECOND);
	assert_int_equal(in[0]->status, COLLNET_ETIMEOUT);
	for (uint32_t i = 0; i < 3; i++) {
		endpoint_drop(in[i]);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void peer__down(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(3, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7),
			   *c = endpoint_open_at(w, 2, 9);
	struct endpoint_request *whole, *out, *queued, *matched, *waiting, *in;

	(void)state;
	/* A whole message waits at b, another is half received, and a third has not begun. */
	whole = endpoint_send_to(w, a, "b", 7, 3000, 1, 100 * SECOND);
	endpoint_run(w, 10 * CN_MS);
	endpoint_assert_ok(w, whole);
	out = endpoint_send_to(w, a, "b", 7, 1 << 20, 2, 100 * SECOND);
	queued = endpoint_send_to(w, a, "b", 7, 5, 3, 100 * SECOND);
	endpoint_run(w, 10 * CN_MS);
	cn_hub_cut(w->hub, 0, true);
	in = endpoint_recv_at(w, b, 1 << 20, 100 * SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", 5, 3000, 1);
	matched = endpoint_recv_at(w, b, 1 << 20, 100 * SECOND);
	waiting = endpoint_recv_at(w, b, 1 << 20, 100 * SECOND);
	endpoint_assert_status(w, matched, COLLNET_EPEER, "node a is gone");
	endpoint_assert_status(w, out, COLLNET_EPEER, "node b is gone");
	endpoint_assert_status(w, queued, COLLNET_EPEER, "node b is gone");
	assert_true(w->now < 4 * SECOND);
	assert_int_equal(waiting->ended, 0);
	endpoint_drop(in);
	endpoint_drop(matched);
	endpoint_drop(out);
	endpoint_drop(queued);
	endpoint_drop(whole);
	whole = endpoint_send_to(w, c, "b", 7, 77, 8, SECOND);
	endpoint_assert_ok(w, waiting);
	endpoint_assert_got(waiting, "c", 9, 77, 8);
	endpoint_assert_ok(w, whole);
	endpoint_drop(waiting);
	endpoint_drop(whole);
	/* Back again; and gone with all frames of a message on their way. */
	cn_hub_cut(w->hub, 0, false);
	endpoint_meet(w);
	endpoint_one_message(w, a, b, 100000, true);
	cn_hub_cut(w->hub, 0, true);
	out = endpoint_send_to(w, a, "b", 7, 20000, 2, 100 * SECOND);
	endpoint_assert_status(w, out, COLLNET_EPEER, "node b is gone");
	endpoint_drop(out);
	cn_hub_cut(w->hub, 0, false);
	endpoint_meet(w);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Sends to a node that is gone, each with a deadline below the time after which it is lost. */
static void peer__down_behind_short_deadlines(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5);
	struct endpoint_request *out;
	int status = COLLNET_OK;
	cn_time from;

	(void)state;
	endpoint_open_at(w, 1, 7);
	for (uint32_t n = 0; n < CN_EP_CREDIT; n++) {
		out = endpoint_send_to(w, a, "b", 7, 100, n, SECOND);
		endpoint_assert_ok(w, out);
		endpoint_drop(out);
	}
	endpoint_run(w, SECOND);
	cn_hub_cut(w->hub, 1, true);
	from = w->now;
	while (status != COLLNET_EPEER && w->now < from + 10 * SECOND) {
		out = endpoint_send_to(w, a, "b", 7, 100, 1, SECOND);
		status = endpoint_wait_for(w, out, 2 * SECOND);
		endpoint_drop(out);
	}
	assert_int_equal(status, COLLNET_EPEER);
	assert_true(w->now < from + 3 * SECOND);
	cn_hub_cut(w->hub, 1, false);
	endpoint_meet(w);
	endpoint_fixture_free(w);
}

/* A node that ends takes with it what is unfinished; what has come whole stays. */
static void peer__ends(void **state)
{
	static const char closing[] = "the daemon of node a is shutting down";
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *whole, *out, *waiting, *in;
	struct cn_endpoint *late = NULL;
	struct cn_err err = { 0 };

	(void)state;
	whole = endpoint_send_to(w, a, "b", 7, 3000, 1, 100 * SECOND);
	out = endpoint_send_to(w, a, "b", 7, 1 << 20, 2, 100 * SECOND);
	waiting = endpoint_recv_at(w, a, 100, 100 * SECOND);
	endpoint_run(w, 10 * CN_MS);
	cn_engine_shutdown(w->engine[0], CN_BYE_DAEMON);
	assert_int_equal(out->status, COLLNET_EDAEMON);
	assert_int_equal(waiting->status, COLLNET_EDAEMON);
	assert_string_equal(out->text, closing);
	assert_string_equal(waiting->text, closing);
	assert_int_equal(cn_endpoint_open(w->engine[0], OWNER, OWNER, 6, &late, &err),
			 COLLNET_EDAEMON);
	assert_string_equal(err.text, closing);
	assert_int_equal(cn_endpoint_send(a, w->now, "b", 7, "", 0, CN_NEVER, &out->done, &err),
			 COLLNET_EDAEMON);
	assert_string_equal(err.text, closing);
	assert_int_equal(cn_endpoint_recv(a, w->now, NULL, 0, CN_NEVER, &out->got, &out->done,
					  &err),
			 COLLNET_EDAEMON);
	assert_string_equal(err.text, closing);
	endpoint_drop(out);
	endpoint_drop(waiting);
	endpoint_run(w, 100 * CN_MS);
	endpoint_stop_node(w, 0);
	in = endpoint_recv_at(w, b, 1 << 20, 100 * SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", 5, 3000, 1);
	endpoint_assert_ok(w, whole);
	endpoint_drop(in);
	endpoint_drop(whole);
	assert_int_equal(w->engine[1]->endpoints->nflows, 0);
	endpoint_start_node(w, 0, 555, NULL);
	endpoint_meet(w);
	a = endpoint_open_at(w, 0, 5);
	endpoint_one_message(w, a, b, 5000, false);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void renamed(struct cn_engine_config *c)
{
	memcpy(c->node.name, "z", 2);
}

/* A message is of the node that sent it, also when the node behind that address has restarted under
 * another name. */
static void peer__another_name(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out[2], *in;

	(void)state;
	out[0] = endpoint_send_to(w, a, "b", 7, 3000, 1, SECOND);
	endpoint_assert_ok(w, out[0]);
	endpoint_run(w, 10 * CN_MS);
	endpoint_stop_node(w, 0);
	endpoint_start_node(w, 0, 555, renamed);
	while (cn_node_find(cn_engine_node(w->engine[1]), "z") == NULL) {
		endpoint_step(w);
		assert_true(w->now < 10 * SECOND);
	}
	a = endpoint_open_at(w, 0, 5);
	out[1] = endpoint_send_to(w, a, "b", 7, 100, 2, SECOND);
	endpoint_assert_ok(w, out[1]);
	for (int i = 0; i < 2; i++) {
		in = endpoint_recv_at(w, b, 3000, SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_got(in, i == 0 ? "a" : "z", 5, i == 0 ? 3000 : 100, i + 1);
		endpoint_drop(in);
		endpoint_drop(out[i]);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* The sender's interface goes down in the middle of a message. Once it is up, the receive is told
 * that the rest does not come, and gets the next message, of another node. */
static void interface__down(void **state)
{
	static const struct cn_hub_faults deaf = { .seed = 1, .loss = 1000000 }, none = { 0 };
	struct endpoint_fixture *w = endpoint_fixture(3, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7),
			   *c = endpoint_open_at(w, 2, 9);
	struct endpoint_request *in = endpoint_recv_at(w, b, 1 << 20, 60 * SECOND), *out, *next;

	(void)state;
	out = endpoint_send_to(w, a, "b", 7, 1 << 20, 1, 60 * SECOND);
	for (int i = 0; i < 4; i++) {
		endpoint_step(w);
	}
	cn_hub_set_faults(w->hub, &deaf);
	cn_engine_fail(w->engine[0], w->now, COLLNET_EIFACE, "interface eth0 is down");
	endpoint_run(w, 200 * CN_MS);
	cn_hub_set_faults(w->hub, &none);
	assert_int_equal(out->status, COLLNET_EIFACE);
	assert_int_equal(in->ended, 0);
	next = endpoint_send_to(w, c, "b", 7, 100, 2, 5 * SECOND);
	endpoint_assert_ok(w, next);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "c", 9, 100, 2);
	endpoint_drop(in);
	endpoint_drop(out);
	endpoint_drop(next);
	endpoint_one_message(w, a, b, 200000, true);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeout__of_a_send),
		cmocka_unit_test(timeout__of_a_send_half_received),
		cmocka_unit_test(timeout__of_a_send_never_heard),
		cmocka_unit_test(timeout__of_a_receive),
		cmocka_unit_test(timeout__looks_at_few),
		cmocka_unit_test(peer__down),
		cmocka_unit_test(peer__down_behind_short_deadlines),
		cmocka_unit_test(peer__ends),
		cmocka_unit_test(peer__another_name),
		cmocka_unit_test(interface__down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
