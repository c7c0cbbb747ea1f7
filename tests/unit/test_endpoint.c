/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/endpoint*.c: messages between endpoints of two engines and of one: sizes, truncation,
 * and messages within a node.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "coll/engine_state.h"
#include "endpoint_fixture.h"

/* The bytes that the system has for a pool. */
static size_t most_bytes = SIZE_MAX;

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__real_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return bytes > most_bytes ? MAP_FAILED
				  : __real_mmap(at, bytes, protection, flags, fd, offset);
}

/* mmap() of a system with 64-bit offsets */
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return bytes > most_bytes ? MAP_FAILED
				  : __real_mmap64(at, bytes, protection, flags, fd, offset);
}

/* Whether it has memory for a flow. */
static bool no_flows;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return no_flows && size == sizeof(struct cn_flow) ? NULL : __real_calloc(n, size);
}

/* ---- sizes and order -------------------------------------------------------------------- */

static void send__sizes(void **state)
{
	static const uint32_t around[] = { PAYLOAD - CN_EP_HEAD,
					   PAYLOAD,
					   2 * PAYLOAD - CN_EP_HEAD,
					   2 * PAYLOAD,
					   3 * PAYLOAD - CN_EP_HEAD,
					   4 * PAYLOAD - CN_EP_HEAD,
					   5 * PAYLOAD - CN_EP_HEAD,
					   CN_EP_CREDIT * PAYLOAD - CN_EP_HEAD,
					   MTU,
					   2 * MTU,
					   3 * MTU };
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);

	(void)state;
	for (int early = 0; early < 2; early++) {
		for (uint64_t n = 0; n < 70; n++) {
			endpoint_one_message(w, a, b, n, early);
		}
		for (uint64_t n = 70; n < 3 * MTU + 1; n += 37) {
			endpoint_one_message(w, a, b, n, early);
		}
		for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
			for (uint32_t n = around[i] - 2; n <= around[i] + 2; n++) {
				endpoint_one_message(w, a, b, n, early);
			}
		}
		endpoint_one_message(w, a, b, 1 << 20, early);
	}
	assert_int_equal(endpoint_stats(w, 0).data_resent, 0);
	assert_int_equal(endpoint_stats(w, 1).busy, 0);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* A machine with little memory has fewer pairs of endpoints. */
static void open__little_memory(void **state)
{
	struct endpoint_fixture *w;
	struct cn_endpoint *a, *b;
	size_t item;

	(void)state;
	w = endpoint_fixture(2, NULL);
	a = endpoint_open_at(w, 0, 5);
	assert_true(w->engine[1]->endpoints->max_flows > 2 * CN_EP_FLOWS_LEAST);
	item = sizeof(struct cn_ep_buffered) + w->engine[1]->endpoints->payload;
	most_bytes = 3 * CN_EP_UNREAD * CN_EP_FLOWS_LEAST * item / 2;
	b = endpoint_open_at(w, 1, 7);
	most_bytes = SIZE_MAX;
	assert_int_equal(w->engine[1]->endpoints->max_flows, CN_EP_FLOWS_LEAST);
	endpoint_one_message(w, a, b, 100000, 0);
	endpoint_one_message(w, a, b, 100000, 1);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void assert_no_flow(struct endpoint_fixture *w, struct cn_endpoint *ep, const char *node,
			   int status, const char *text)
{
	struct cn_err err = { 0 };
	struct cn_done done = { 0 };

	assert_int_equal(cn_endpoint_send(ep, w->now, node, 7, "", 1, w->now + SECOND, &done, &err),
			 status);
	assert_non_null(strstr(err.text, text));
}

/* A send that fails at once says whether memory is short, or which limit is reached. */
static void send__no_flow(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct cn_endpoint *c = endpoint_open_at(w, 0, 7);
	struct cn_endpoints *s = w->engine[0]->endpoints;
	const char *const nodes[] = { "a", "b" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		no_flows = true;
		assert_no_flow(w, a, nodes[i], COLLNET_ENOMEM, "no memory for a pair");
		no_flows = false;
		s->nflows += s->max_flows;
		assert_no_flow(w, a, nodes[i], COLLNET_ELIMIT, "pairs of endpoints already, of");
		s->nflows -= s->max_flows;
		a->account->flows += s->max_flows;
		assert_no_flow(w, a, nodes[i], COLLNET_ELIMIT,
			       i == 0 ? "of the user of endpoint 7" : "of the user of endpoint 5");
		a->account->flows -= s->max_flows;
	}
	cn_endpoint_close(c, w->now);
	endpoint_one_message(w, a, b, 100, false);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* With the pool used up, heads go alone and nothing is copied. */
static void send__without_buffers(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct cn_node *node = cn_engine_node(w->engine[0]);
	void *taken[4096];
	uint32_t n = 0;

	(void)state;
	while ((taken[n] = cn_node_buffer_get(node)) != NULL) {
		n++;
	}
	for (uint64_t bytes = 0; bytes < 3 * PAYLOAD; bytes += 211) {
		endpoint_one_message(w, a, b, bytes, false);
		endpoint_one_message(w, a, b, bytes, true);
	}
	endpoint_one_message(w, a, b, 100000, true);
	while (n > 0) {
		cn_node_buffer_put(node, taken[--n]);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* ---- failures ------------------------------------------------------------------------- */

static void recv__truncates(void **state)
{
	static const uint32_t sizes[] = { 1, 100, 5000, 300000 };
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);

	(void)state;
	for (int early = 0; early < 2; early++) {
		for (size_t i = 0; i < 4; i++) {
			uint32_t capacity = sizes[i] - 1 - sizes[i] / 3;
			struct endpoint_request *in = NULL, *out;

			if (!early) {
				in = endpoint_recv_at(w, b, capacity, SECOND);
			}
			out = endpoint_send_to(w, a, "b", 7, sizes[i], 9, SECOND);
			if (early) {
				endpoint_run(w, 10 * CN_MS);
				in = endpoint_recv_at(w, b, capacity, SECOND);
			}
			endpoint_assert_status(w, in, COLLNET_ETRUNC, "longer than the buffer");
			assert_int_equal(in->got.bytes, sizes[i]);
			assert_string_equal(in->got.from.node, "a");
			endpoint_assert_filled(in->data, capacity, 9);
			endpoint_assert_ok(w, out);
			endpoint_drop(in);
			endpoint_drop(out);
			endpoint_one_message(w, a, b, 20, early);
		}
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* ---- on one node ------------------------------------------------------------------------ */

static void local__messages(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 1000, PAYLOAD - CN_EP_HEAD, PAYLOAD, 70000 };
	struct endpoint_fixture *w = endpoint_fixture(1, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 0, 7);
	struct endpoint_request *out[6], *in[6];

	(void)state;
	for (int early = 0; early < 2; early++) {
		for (int i = 0; i < 6; i++) {
			in[i] = early ? NULL : endpoint_recv_at(w, b, 70000, SECOND);
		}
		for (uint32_t i = 0; i < 6; i++) {
			out[i] = endpoint_send_to(w, a, "a", 7, sizes[i], i, SECOND);
			/* What is kept, and a short one that is received, completes at once; others
			 * with the receive. */
			assert_int_equal(out[i]->ended, i < (early ? 5 : 4));
		}
		for (uint32_t i = 0; i < 6; i++) {
			if (early) {
				in[i] = endpoint_recv_at(w, b, 70000, SECOND);
			}
			endpoint_assert_ok(w, in[i]);
			endpoint_assert_got(in[i], "a", 5, sizes[i], i);
			endpoint_assert_ok(w, out[i]);
			endpoint_drop(in[i]);
			endpoint_drop(out[i]);
		}
	}
	/* To itself. */
	out[0] = endpoint_send_to(w, b, "a", 7, 33, 1, SECOND);
	in[0] = endpoint_recv_at(w, b, 33, SECOND);
	endpoint_assert_got(in[0], "a", 7, 33, 1);
	endpoint_drop(in[0]);
	endpoint_drop(out[0]);
	assert_int_equal(endpoint_stats(w, 0).data_sent, 0);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void local__failures(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(1, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 0, 7);
	struct endpoint_request *out[CN_EP_CREDIT + 1], *in;

	(void)state;
	/* Copies are bounded. */
	for (uint32_t i = 0; i <= CN_EP_CREDIT; i++) {
		out[i] = endpoint_send_to(w, a, "a", 7, 10, i, SECOND);
		assert_int_equal(out[i]->ended, i < CN_EP_CREDIT);
	}
	endpoint_assert_status(w, out[CN_EP_CREDIT], COLLNET_ETIMEOUT, "to endpoint 7 of node a");
	for (uint32_t i = 0; i < CN_EP_CREDIT; i++) {
		in = endpoint_recv_at(w, b, 10, SECOND);
		endpoint_assert_got(in, "a", 5, 10, i);
		endpoint_drop(in);
	}
	for (uint32_t i = 0; i <= CN_EP_CREDIT; i++) {
		endpoint_drop(out[i]);
	}
	out[0] = endpoint_send_to(w, a, "a", 7, 100000, 1, SECOND);
	out[1] = endpoint_send_to(w, a, "a", 7, 10, 1, SECOND);
	cn_endpoint_close(b, w->now);
	assert_int_equal(out[0]->status, COLLNET_ENOENT);
	assert_int_equal(out[1]->status, COLLNET_OK);
	endpoint_drop(out[0]);
	endpoint_drop(out[1]);
	b = endpoint_open_at(w, 0, 7);
	out[0] = endpoint_send_to(w, a, "a", 7, 100000, 1, SECOND);
	out[1] = endpoint_send_to(w, a, "a", 7, 10, 2, SECOND);
	cn_endpoint_close(a, w->now);
	assert_int_equal(out[0]->status, COLLNET_EINVAL);
	in = endpoint_recv_at(w, b, 5, SECOND);
	endpoint_assert_status(w, in, COLLNET_ETRUNC, "10 bytes from endpoint 5");
	endpoint_drop(in);
	endpoint_drop(out[0]);
	endpoint_drop(out[1]);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* A long message, which is sent from the caller's memory, asks for the acknowledgement of its end:
 * its caller does not wait for a delayed one. */
static void send__ends_at_once(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	for (uint64_t frames = CN_EP_COPIED + 1; frames < CN_EP_COPIED + 32; frames++) {
		const uint64_t bytes = frames * PAYLOAD - CN_EP_HEAD;
		struct endpoint_request *in, *out;
		cn_time began;

		endpoint_run(w, SECOND);
		began = w->now;
		in = endpoint_recv_at(w, b, bytes, SECOND);
		out = endpoint_send_to(w, a, "b", 7, bytes, 1, SECOND);
		endpoint_assert_ok(w, out);
		assert_true(w->now - began < CN_MS);
		endpoint_assert_ok(w, in);
		endpoint_drop(out);
		endpoint_drop(in);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* A super-frame is received in the place of its message, unless it may also have messages to an
 * endpoint of another owner: they would be in this one's memory. */
static void place__of_two_owners(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7), *other;
	struct endpoint_request *in = endpoint_recv_at(w, b, 1 << 20, SECOND), *out;
	const struct cn_peer *p = cn_node_find(cn_engine_node(w->engine[1]), "a");
	const struct cn_rx rx = { .type = CN_TYPE_MESSAGE, .stream = 7u << 16 | 5 };
	struct cn_rx_place place;
	struct cn_err err;

	(void)state;
	out = endpoint_send_to(w, a, "b", 7, 1 << 20, 1, SECOND);
	endpoint_poll_only(w, 0, 1);
	endpoint_poll_only(w, 1, 1);
	assert_true(b->flows->coming);
	for (uint32_t n = 1; n <= 7; n++) {
		assert_true(cn_endpoints_place(w->engine[1], p, &rx, &place));
		assert_ptr_equal(place.at, in->data + (b->flows->bytes - b->flows->left));
		assert_int_equal(place.room, b->flows->left);
		endpoint_open_at(w, 1, (uint16_t)(7 + n)); /* of another flow */
		assert_int_equal(cn_endpoint_open(w->engine[1], OWNER + 1, OWNER + 1,
						  (uint16_t)(7 + n * CN_FLOWS), &other, &err),
				 COLLNET_OK);
		assert_false(cn_endpoints_place(w->engine[1], p, &rx, &place));
		cn_endpoint_close(other, w->now);
	}
	w->next = 0;
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", 5, 1 << 20, 1);
	endpoint_assert_ok(w, out);
	endpoint_drop(in);
	endpoint_drop(out);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void small_mtu(struct cn_engine_config *c)
{
	c->node.mtu = 700;
}

/* Frames that the other node cannot receive are not sent: what comes behind them arrives. */
static void send__to_a_smaller_mtu(void **state)
{
	static const uint64_t too_long[] = { 700 - CN_WIRE_HEADER - CN_EP_HEAD + 1, 1001, 1 << 16 };
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	static uint8_t data[1 << 16];
	struct cn_endpoint *a, *b;
	struct cn_done done = { 0 };
	struct cn_err err = { 0 };

	(void)state;
	endpoint_stop_node(w, 1);
	endpoint_start_node(w, 1, 555, small_mtu);
	endpoint_meet(w); /* a may still have the session of the former node */
	endpoint_run(w, SECOND / 10);
	a = endpoint_open_at(w, 0, 5);
	b = endpoint_open_at(w, 1, 7);
	for (size_t i = 0; i < sizeof(too_long) / sizeof(*too_long); i++) {
		assert_int_equal(cn_endpoint_send(a, w->now, "b", 7, data, too_long[i], CN_NEVER,
						  &done, &err),
				 COLLNET_EMISMATCH);
		assert_string_equal(err.text, "node b has MTU 700, node a 1500: set them alike");
	}
	endpoint_one_message(w, a, b, too_long[0] - 1, true);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__to_a_smaller_mtu), cmocka_unit_test(send__sizes),
		cmocka_unit_test(send__without_buffers),  cmocka_unit_test(recv__truncates),
		cmocka_unit_test(local__messages),	  cmocka_unit_test(local__failures),
		cmocka_unit_test(open__little_memory),	  cmocka_unit_test(send__ends_at_once),
		cmocka_unit_test(place__of_two_owners),	  cmocka_unit_test(send__no_flow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
