/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/endpoint_local.c: long messages within a node. How much is copied in a turn, in which
 * order they come, and what ends while one is copied.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint_fixture.h"

#define TURN 65536u   /* bytes */
#define LONG 1000000u /* bytes, of no whole number of turns */

/* Whether byte i of message `key` is in a receive's memory, which was spoilt(). */
static uint64_t copied(const struct endpoint_request *in, const uint8_t *message, uint64_t bytes)
{
	uint64_t n = 0;

	while (n < bytes && in->data[n] == message[n]) {
		n++;
	}
	for (uint64_t i = n; i < bytes; i++) {
		assert_int_equal(in->data[i], (uint8_t)~message[i]);
	}
	return n;
}

/* A receive in whose memory no byte is that of the message. */
static struct endpoint_request *spoilt_recv(struct endpoint_fixture *w, struct cn_endpoint *ep,
					    const uint8_t *message, uint64_t bytes)
{
	struct endpoint_request *in = endpoint_request(bytes);
	struct cn_err err = { 0 };

	for (uint64_t i = 0; i < bytes; i++) {
		in->data[i] = (uint8_t)~message[i];
	}
	w->next = 0;
	assert_int_equal(cn_endpoint_recv(ep, w->now, in->data, bytes, CN_NEVER, &in->got,
					  &in->done, &err),
			 COLLNET_OK);
	return in;
}

static void assert_both(struct endpoint_fixture *w, struct endpoint_request *in,
			struct endpoint_request *out, uint16_t from, uint64_t bytes, uint32_t key)
{
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", from, bytes, key);
	endpoint_assert_ok(w, out);
	endpoint_drop(in);
	endpoint_drop(out);
}

/* ---- turns ------------------------------------------------------------------------------ */

static void local__copies_in_turns(void **state)
{
	static uint8_t message[LONG];
	struct endpoint_fixture *w = endpoint_fixture(1, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 0, 7);

	(void)state;
	endpoint_fill(message, LONG, 3);
	for (int early = 0; early < 2; early++) {
		struct endpoint_request *in, *out;
		uint64_t before = 0, now = 0;
		uint32_t turns = 0;

		in = early ? NULL : spoilt_recv(w, b, message, LONG);
		out = endpoint_send_to(w, a, "a", 7, LONG, 3, SECOND);
		in = early ? spoilt_recv(w, b, message, LONG) : in;
		assert_int_equal(copied(in, message, LONG), 0);
		for (; now < LONG; turns++, before = now) {
			assert_int_equal(in->ended + out->ended, 0);
			/* There is more to do: nobody sleeps. */
			assert_int_equal(cn_poller_deadline(w->poller[0]), 0);
			endpoint_step(w);
			now = copied(in, message, LONG);
			assert_uint_in_range(now - before, 1, TURN);
		}
		assert_int_equal(turns, (LONG + TURN - 1) / TURN);
		assert_int_equal(in->ended + out->ended, 2);
		assert_both(w, in, out, 5, LONG, 3);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* The messages of a user share the turns that are his. */
static void local__payers_take_turns(void **state)
{
	enum { MANY = 20 };
	struct endpoint_fixture *w = endpoint_fixture(1, NULL);
	struct endpoint_request *out[MANY + 1], *in[MANY + 1];
	struct cn_endpoint *ep[MANY + 1];
	struct cn_err err;
	uint64_t others = 0;

	(void)state;
	for (uint16_t i = 0; i <= MANY; i++) {
		assert_int_equal(cn_endpoint_open(w->engine[0], OWNER, i == MANY ? 2 : 1, 1 + i,
						  &ep[i], &err),
				 COLLNET_OK);
		out[i] = endpoint_send_to(w, ep[i], "a", 1 + i, LONG, i, SECOND);
		in[i] = spoilt_recv(w, ep[i], out[i]->data, LONG);
	}
	while (in[MANY]->ended == 0) {
		endpoint_poll_only(w, 0, 1);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		others += copied(in[i], out[i]->data, LONG);
	}
	assert_uint_in_range(others, LONG - 2 * TURN, LONG + 2 * TURN);
	for (uint16_t i = 0; i <= MANY; i++) {
		assert_both(w, in[i], out[i], 1 + i, LONG, i);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Two long messages and short ones share the turns. */
static void local__flows_take_turns(void **state)
{
	static uint8_t message[2][LONG];
	struct endpoint_fixture *w = endpoint_fixture(1, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 0, 7),
			   *c = endpoint_open_at(w, 0, 9);
	struct endpoint_request *in[2], *out[2], *small_in, *small_out;
	uint64_t before[2] = { 0, 0 };

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		endpoint_fill(message[i], LONG, i);
		in[i] = spoilt_recv(w, i == 0 ? b : c, message[i], LONG);
	}
	out[0] = endpoint_send_to(w, a, "a", 7, LONG, 0, SECOND);
	out[1] = endpoint_send_to(w, a, "a", 9, LONG, 1, SECOND);
	for (uint32_t turn = 0; turn < 10; turn++) {
		uint64_t sum = 0;

		endpoint_step(w);
		for (uint32_t i = 0; i < 2; i++) {
			const uint64_t n = copied(in[i], message[i], LONG);

			sum += n - before[i];
			before[i] = n;
		}
		assert_int_equal(sum, TURN);
	}
	assert_int_equal(before[0], before[1]);
	small_in = endpoint_recv_at(w, a, 10, SECOND);
	small_out = endpoint_send_to(w, c, "a", 5, 10, 4, SECOND);
	assert_int_equal(small_in->ended + small_out->ended, 2);
	assert_both(w, small_in, small_out, 9, 10, 4);
	assert_both(w, in[0], out[0], 5, LONG, 0);
	assert_both(w, in[1], out[1], 5, LONG, 1);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void local__copies_what_there_is_room_for(void **state)
{
	static const uint32_t rooms[] = { 0, 10, TURN, TURN + 1 };
	struct endpoint_fixture *w = endpoint_fixture(1, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 0, 7);

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		struct endpoint_request *in = endpoint_recv_at(w, b, rooms[i], SECOND);
		struct endpoint_request *out = endpoint_send_to(w, a, "a", 7, LONG, i, SECOND);

		for (uint32_t turns = 0; turns < (rooms[i] > TURN ? 2 : 1); turns++) {
			assert_int_equal(in->ended + out->ended, 0);
			endpoint_step(w);
		}
		assert_int_equal(in->status, COLLNET_ETRUNC);
		assert_int_equal(in->got.bytes, LONG);
		endpoint_assert_filled(in->data, rooms[i], i);
		assert_int_equal(out->status, COLLNET_OK);
		endpoint_drop(in);
		endpoint_drop(out);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* ---- kept -------------------------------------------------------------------------------- */

/* The longest message of so many frames. */
static uint32_t frames(uint32_t n)
{
	return n * PAYLOAD - CN_EP_HEAD;
}

/* Messages of as many frames as another node may send complete without a receive. */
static void local__kept_without_a_receive(void **state)
{
	static const uint32_t sizes[][3] = {
		{ 2, 1, 29 }, { 32, 0, 0 }, { 1, 30, 1 }, { 16, 8, 8 }, { 31, 1, 0 },
	};
	struct endpoint_fixture *w = endpoint_fixture(1, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 0, 7);
	struct endpoint_request *out[4], *in;

	(void)state;
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = 0;

		for (; n < 3 && sizes[i][n] > 0; n++) {
			out[n] = endpoint_send_to(w, a, "a", 7, frames(sizes[i][n]), n, SECOND);
			assert_int_equal(out[n]->ended, 1);
		}
		assert_int_equal(endpoint_unread(w, 0), CN_EP_CREDIT);
		/* There is no credit for another one. */
		out[n] = endpoint_send_to(w, a, "a", 7, 1, n, SECOND);
		assert_int_equal(out[n]->ended, 0);
		for (uint32_t k = 0; k <= n; k++) {
			const uint32_t bytes = k < n ? frames(sizes[i][k]) : 1;

			in = endpoint_recv_at(w, b, k == 1 ? bytes / 2 : bytes, SECOND);
			assert_int_equal(in->ended + out[k]->ended, 2);
			assert_int_equal(in->status, k == 1 ? COLLNET_ETRUNC : COLLNET_OK);
			assert_int_equal(in->got.bytes, bytes);
			endpoint_assert_filled(in->data, k == 1 ? bytes / 2 : bytes, k);
			endpoint_drop(in);
			endpoint_drop(out[k]);
		}
	}
	out[0] = endpoint_send_to(w, a, "a", 7, frames(32) + 1, 1, SECOND);
	assert_int_equal(out[0]->ended, 0);
	out[1] = endpoint_send_to(w, a, "a", 7, frames(32), 2, SECOND);
	assert_int_equal(out[1]->ended, 1);
	in = endpoint_recv_at(w, b, frames(33), SECOND);
	assert_both(w, in, out[0], 5, frames(32) + 1, 1);
	in = endpoint_recv_at(w, b, frames(33), SECOND);
	assert_both(w, in, out[1], 5, frames(32), 2);
	endpoint_assert_clean(w);
	/* What is kept when the endpoint is closed is dropped. */
	out[0] = endpoint_send_to(w, a, "a", 7, frames(20), 1, SECOND);
	cn_endpoint_close(b, w->now);
	assert_int_equal(out[0]->status, COLLNET_OK);
	endpoint_drop(out[0]);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* ---- order ------------------------------------------------------------------------------ */

/* Messages of one endpoint come one after the other, whether they wait or are sent meanwhile;
 * another one's need not wait for them. */
static void local__in_order(void **state)
{
	static const uint32_t sizes[] = { LONG, 10, 70000, 0, PAYLOAD, 1000 };
	struct endpoint_fixture *w = endpoint_fixture(1, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 0, 7),
			   *c = endpoint_open_at(w, 0, 9);

	(void)state;
	for (uint32_t early = 0; early <= 6; early++) {
		struct endpoint_request *in[7], *out[6], *other;
		uint32_t next = 0;

		for (uint32_t i = 0; i < early; i++) {
			out[i] = endpoint_send_to(w, a, "a", 7, sizes[i], i, SECOND);
		}
		in[0] = endpoint_recv_at(w, b, LONG, SECOND);
		for (uint32_t i = early; i < 3; i++) {
			out[i] = endpoint_send_to(w, a, "a", 7, sizes[i], i, SECOND);
		}
		in[1] = endpoint_recv_at(w, b, LONG, SECOND);
		endpoint_step(w);
		assert_int_equal(in[0]->ended + in[1]->ended, 0);
		other = endpoint_send_to(w, c, "a", 7, 33, 9, SECOND);
		assert_int_equal(in[0]->ended, 0);
		endpoint_assert_got(in[1], "a", 9, 33, 9);
		endpoint_drop(other);
		endpoint_drop(in[1]);
		for (uint32_t i = 1; i < 6; i++) {
			in[i] = endpoint_recv_at(w, b, LONG, SECOND);
		}
		for (uint32_t i = early > 3 ? early : 3; i < 6; i++) {
			out[i] = endpoint_send_to(w, a, "a", 7, sizes[i], i, SECOND);
		}
		while (next < 6) {
			endpoint_step(w);
			while (next < 6 && in[next]->ended > 0) {
				next++;
			}
			for (uint32_t i = next; i < 6; i++) {
				assert_int_equal(in[i]->ended, 0);
			}
		}
		for (uint32_t i = 0; i < 6; i++) {
			assert_both(w, in[i], out[i], 5, sizes[i], i);
		}
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* ---- what ends meanwhile ------------------------------------------------------------------ */

/* The send's time is up: its receive gets the next message, and nothing of this one any more. */
static void local__send_ends(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(1, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 0, 7);

	(void)state;
	for (int close = 0; close < 2; close++) {
		const cn_time timeout = close ? SECOND : CN_US;
		struct endpoint_request *in = endpoint_recv_at(w, b, LONG, SECOND);
		struct endpoint_request *out = endpoint_send_to(w, a, "a", 7, LONG, 1, timeout);
		struct endpoint_request *behind = endpoint_send_to(w, a, "a", 7, LONG, 2, timeout);

		if (close) {
			endpoint_step(w);
			assert_int_equal(out->ended, 0);
			cn_endpoint_close(a, w->now);
			assert_int_equal(out->status, COLLNET_EINVAL);
			assert_int_equal(behind->status, COLLNET_EINVAL);
			a = endpoint_open_at(w, 0, 5);
		} else {
			endpoint_step(w); /* copies before it looks at the time */
			assert_int_equal(out->status, COLLNET_ETIMEOUT);
			assert_non_null(strstr(out->text, "65536 bytes went, the node is slow"));
			assert_int_equal(behind->status, COLLNET_ETIMEOUT);
		}
		endpoint_drop(out); /* its memory is freed */
		endpoint_drop(behind);
		memset(in->data, 0xee, LONG);
		endpoint_run(w, CN_MS);
		assert_int_equal(in->ended, 0);
		for (uint32_t i = 0; i < LONG; i++) {
			assert_int_equal(in->data[i], 0xee);
		}
		out = endpoint_send_to(w, a, "a", 7, 70000, 3, SECOND);
		assert_both(w, in, out, 5, 70000, 3);
		/* Without a next message the receive's time comes. */
		in = endpoint_recv_at(w, b, LONG, CN_MS);
		out = endpoint_send_to(w, a, "a", 7, LONG, 1, CN_US);
		endpoint_assert_status(w, in, COLLNET_ETIMEOUT, "no message arrived");
		endpoint_drop(in);
		endpoint_drop(out);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Two receives lose their messages, the first one first: it gets the next message all the same. */
static void local__receives_keep_their_order(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(1, NULL);
	struct cn_endpoint *b = endpoint_open_at(w, 0, 7), *from[2];
	struct endpoint_request *in[3], *out[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		from[i] = endpoint_open_at(w, 0, (uint16_t)(10 + i));
		in[i] = endpoint_recv_at(w, b, LONG, SECOND);
		out[i] = endpoint_send_to(w, from[i], "a", 7, LONG, i, SECOND);
	}
	in[2] = endpoint_recv_at(w, b, LONG, SECOND);
	endpoint_step(w);
	for (uint32_t i = 0; i < 2; i++) {
		cn_endpoint_close(from[i], w->now);
		assert_int_equal(out[i]->status, COLLNET_EINVAL);
		endpoint_drop(out[i]);
	}
	from[0] = endpoint_open_at(w, 0, 12);
	for (uint32_t i = 0; i < 3; i++) {
		out[0] = endpoint_send_to(w, from[0], "a", 7, 100, 20 + i, SECOND);
		assert_both(w, in[i], out[0], 12, 100, 20 + i);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* The receive's time is up: the message is whole for the next one, before those that came later. */
static void local__receive_ends(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(1, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 0, 7);

	(void)state;
	for (int waits = 0; waits < 2; waits++) {
		struct endpoint_request *in = endpoint_recv_at(w, b, LONG, CN_US), *next = NULL;
		struct endpoint_request *out = endpoint_send_to(w, a, "a", 7, LONG, 1, SECOND);
		struct endpoint_request *behind = endpoint_send_to(w, a, "a", 7, 10, 2, SECOND);

		if (waits) {
			next = endpoint_recv_at(w, b, LONG, SECOND);
		}
		endpoint_step(w);
		assert_int_equal(in->status, COLLNET_ETIMEOUT);
		assert_non_null(strstr(in->text, "a message of 1000000 bytes from endpoint 5 of "
						 "node a did not arrive in time: 934464 bytes are "
						 "missing"));
		memset(in->data, 0xee, LONG);
		endpoint_run(w, waits ? 5 * CN_US : CN_MS);
		assert_int_equal(out->ended, 0);
		for (uint32_t i = 0; i < LONG; i++) {
			assert_int_equal(in->data[i], 0xee);
		}
		endpoint_drop(in);
		if (!waits) {
			next = endpoint_recv_at(w, b, LONG, SECOND);
		}
		assert_both(w, next, out, 5, LONG, 1);
		in = endpoint_recv_at(w, b, 10, SECOND);
		assert_both(w, in, behind, 5, 10, 2);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Everything ends while messages are copied, wait for that, or wait for a receive. */
static void local__all_ends(void **state)
{
	enum { RECEIVER, ITSELF, FAILURE, SHUTDOWN, ENGINE, WAYS };

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct endpoint_fixture *w = endpoint_fixture(1, NULL);
		struct cn_endpoint *a = endpoint_open_at(w, 0, 5),
				   *b = way == ITSELF ? a : endpoint_open_at(w, 0, 7);
		struct endpoint_request *in[3], *out[5];
		uint32_t done = 0;

		for (uint32_t i = 0; i < 3; i++) {
			in[i] = endpoint_recv_at(w, b, LONG, SECOND);
		}
		for (uint32_t i = 0; i < 5; i++) {
			out[i] = endpoint_send_to(w, a, "a", way == ITSELF ? 5 : 7,
						  i % 2 == 0 ? LONG : 10, i, SECOND);
			done += out[i]->ended;
		}
		assert_int_equal(done, 2); /* the short ones are kept */
		endpoint_step(w);
		switch (way) {
		case RECEIVER:
		case ITSELF:
			cn_endpoint_close(b, w->now);
			break;
		case FAILURE:
			cn_endpoints_fail(w->engine[0], w->now, COLLNET_EIFACE, "down");
			break;
		case SHUTDOWN:
			cn_engine_shutdown(w->engine[0], CN_BYE_DAEMON);
			break;
		default:
			endpoint_stop_node(w, 0);
		}
		for (uint32_t i = 0; i < 5; i += 2) {
			assert_int_equal(out[i]->status, way == RECEIVER  ? COLLNET_ENOENT
							 : way == ITSELF  ? COLLNET_EINVAL
							 : way == FAILURE ? COLLNET_EIFACE
									  : COLLNET_EDAEMON);
			endpoint_drop(out[i]);
		}
		endpoint_drop(out[1]);
		endpoint_drop(out[3]);
		for (uint32_t i = 0; i < 3; i++) {
			/* A message that was kept may have come to a receive that waited. */
			assert_true(in[i]->status < 0 || in[i]->got.bytes == 10);
			endpoint_drop(in[i]);
		}
		if (way != ENGINE) {
			endpoint_run(w, CN_MS); /* nothing is touched: the memory is freed */
			assert_null(w->engine[0]->endpoints->copying);
		}
		endpoint_fixture_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(local__copies_in_turns),
		cmocka_unit_test(local__flows_take_turns),
		cmocka_unit_test(local__payers_take_turns),
		cmocka_unit_test(local__copies_what_there_is_room_for),
		cmocka_unit_test(local__kept_without_a_receive),
		cmocka_unit_test(local__in_order),
		cmocka_unit_test(local__send_ends),
		cmocka_unit_test(local__receives_keep_their_order),
		cmocka_unit_test(local__receive_ends),
		cmocka_unit_test(local__all_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
