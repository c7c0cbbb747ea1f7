/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/endpoint*.c and flow.c: frames and grants that are late, or that the protocol forbids.
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

/* Until the congestion window is large. */
static void warm_up(struct endpoint_fixture *w, struct cn_endpoint *from, struct cn_endpoint *to)
{
	for (uint32_t n = 0; n < 6; n++) {
		endpoint_one_message(w, from, to, 1 << 20, false);
	}
	endpoint_run(w, SECOND);
}

/* A grant for the rest of a message that was aborted comes during the next one, which nobody
 * receives: it is no credit for that one, which waits, and is received whole in the end. */
static void share__of_one_with_a_late_grant(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *in, *aborted, *next;

	(void)state;
	warm_up(w, a, b);
	aborted = endpoint_send_to(w, a, "b", 7, 8 << 20, 1, CN_MS);
	endpoint_poll_only(w, 0, 4);
	cn_poller_poll(w->poller[1], w->now);
	in = endpoint_recv_at(w, b, 8 << 20, 10 * CN_US);
	w->now += 2 * CN_MS;
	cn_endpoints_expire(w->engine[1], w->now);
	cn_endpoints_expire(w->engine[0], w->now);
	assert_int_equal(in->status, COLLNET_ETIMEOUT);
	assert_int_equal(aborted->status, COLLNET_ETIMEOUT);
	endpoint_drop(in);
	endpoint_drop(aborted);
	next = endpoint_send_to(w, a, "b", 7, 32 << 20, 2, 30 * SECOND);
	for (cn_time end = w->now + SECOND; w->now < end; endpoint_step(w)) {
		assert_true(endpoint_unread(w, 1) <= CN_EP_CREDIT);
	}
	assert_int_equal(next->ended, 0);
	in = endpoint_recv_at(w, b, 32 << 20, 30 * SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", 5, 32 << 20, 2);
	endpoint_assert_ok(w, next);
	assert_int_equal(endpoint_stats(w, 1).busy, 0);
	endpoint_drop(in);
	endpoint_drop(next);
	endpoint_one_message(w, a, b, 100000, true);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* A grant as it comes from node b; without its number, as of earlier builds, if bytes is 9. */
static void grant(struct endpoint_fixture *w, uint32_t frames, uint32_t number, uint32_t bytes)
{
	uint8_t m[13];
	struct cn_cursor c = { m, m + sizeof(m), false };
	struct cn_peer *b = cn_node_find(cn_engine_node(w->engine[0]), "b");

	cn_put8(&c, CN_EP_GRANT);
	cn_put16(&c, 5);
	cn_put16(&c, 7);
	cn_put32(&c, frames);
	cn_put32(&c, number);
	assert_true(cn_endpoints_control(w->engine[0], w->now, b, m, bytes));
}

/* What a grant counts, by the message that it was made for, after so many messages. */
static void grant_by_its_message(uint32_t after)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	const uint32_t frames = 100;
	struct endpoint_request *in, *aborted, *next;
	const struct cn_flow *f;

	warm_up(w, a, b);
	f = a->flows;
	endpoint_skip_to(w, a, b, f->numbers.next + after);
	endpoint_run(w, SECOND);
	grant(w, 1000, f->numbers.next - 1, 13);
	assert_int_equal(f->credit, CN_EP_CREDIT); /* nothing is being sent */
	aborted = endpoint_send_to(w, a, "b", 7, frames * PAYLOAD, 1, CN_MS);
	endpoint_poll_only(w, 0, 4);
	grant(w, 10, f->numbers.next - 2, 13); /* of one before, which was not aborted */
	assert_int_equal(f->credit, 10);
	grant(w, 1000, f->numbers.next - 1, 13);
	assert_int_equal(f->credit, CN_EP_CREDIT + frames + 1 - CN_EP_CREDIT);
	w->now += 2 * CN_MS;
	cn_endpoints_expire(w->engine[0], w->now);
	assert_int_equal(aborted->status, COLLNET_ETIMEOUT);
	grant(w, 1000, f->numbers.next - 1, 13);
	assert_int_equal(f->credit, CN_EP_CREDIT);
	next = endpoint_send_to(w, a, "b", 7, frames * PAYLOAD, 2, 30 * SECOND);
	while (f->since < 10) {
		struct cn_frame out;

		assert_true(cn_engine_output(w->engine[0], w->now, &out));
	}
	assert_int_equal(f->credit, CN_EP_CREDIT - 10);
	grant(w, 1000, f->numbers.next - 2, 13);
	assert_int_equal(f->credit, CN_EP_CREDIT - 10); /* all that was sent since counts */
	endpoint_poll_only(w, 0, 4);
	assert_int_equal(f->credit, 0);
	grant(w, 1000, f->numbers.next - 2, 13);
	grant(w, 1000, f->numbers.next - 100, 13);
	grant(w, 1000, f->numbers.next + 100, 13);
	assert_int_equal(f->credit, 0);
	grant(w, 8, f->numbers.next - 1, 13);
	assert_int_equal(f->credit, 8);
	grant(w, 8, 0, 9);
	assert_int_equal(f->credit, 16);
	in = endpoint_recv_at(w, b, frames * PAYLOAD, 30 * SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", 5, frames * PAYLOAD, 2);
	endpoint_assert_ok(w, next);
	endpoint_drop(in);
	endpoint_drop(aborted);
	endpoint_drop(next);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

static void grant__by_its_message(void **state)
{
	const uint32_t beyond_half = 3u << 30,
		       around = UINT32_MAX - 7; /* to one before the first */

	(void)state;
	grant_by_its_message(0);
	grant_by_its_message(beyond_half);
	grant_by_its_message(around);
}

/* A frame for endpoint 7 of b as if it came from endpoint 5 of a: the first one of a message of so
 * many bytes, or (NOT_FIRST) a further one. */
#define NOT_FIRST UINT32_MAX

static struct cn_rx frame_of(uint64_t owner, uint32_t bytes, uint16_t len, bool last)
{
	static uint8_t payload[PAYLOAD];
	struct cn_cursor c = { payload, payload + sizeof(payload), false };

	cn_put32(&c, bytes);
	cn_put32(&c, 1);
	cn_put64(&c, owner);
	return (struct cn_rx){
		.type = CN_TYPE_MESSAGE,
		.flags = (uint8_t)((bytes != NOT_FIRST ? CN_FLAG_FIRST : 0) |
				   (last ? CN_FLAG_LAST : 0)),
		.len = (uint16_t)(len + (bytes != NOT_FIRST ? CN_EP_HEAD : 0)),
		.stream = 7u << 16 | 5,
		.payload = payload,
	};
}

static void deliver_frame(struct endpoint_fixture *w, struct cn_rx rx)
{
	assert_true(cn_endpoints_deliver(w->engine[1], w->now,
					 cn_node_find(cn_engine_node(w->engine[1]), "a"), &rx));
	endpoint_run(w, CN_MS);
}

static void deliver(struct endpoint_fixture *w, uint32_t bytes, uint16_t len, bool last)
{
	deliver_frame(w, frame_of(OWNER, bytes, len, last));
}

/* One that sends what it has no credit for: messages of a frame, or further frames. */
static void share__of_one_that_ignores_credit(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *b = endpoint_open_at(w, 1, 7);

	(void)state;
	for (uint32_t n = 1; n < CN_EP_UNREAD + 8; n++) {
		deliver(w, 0, 0, true);
		assert_int_equal(endpoint_unread(w, 1), n < CN_EP_UNREAD ? n : CN_EP_UNREAD);
	}
	cn_endpoint_close(b, w->now);
	endpoint_open_at(w, 1, 7);
	deliver(w, 1 << 20, 100, false);
	for (uint32_t n = 2; n < CN_EP_UNREAD + 8; n++) {
		deliver(w, NOT_FIRST, 100, false);
		assert_int_equal(endpoint_unread(w, 1), n <= CN_EP_UNREAD ? n : 0);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* The sender's number is another owner's now, which this node has not heard of. */
static void recv__of_another_owner(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	deliver_frame(w, frame_of(OWNER + 1, 10, 10, true));
	assert_int_equal(endpoint_unread(w, 1), 0);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Frames that are longer than what their message has left, and a last one that leaves some. */
static void recv__of_wrong_lengths(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *in = endpoint_recv_at(w, b, 1000, 60 * SECOND), *out;
	const struct cn_peer *peer = cn_node_find(cn_engine_node(w->engine[1]), "a");
	const struct cn_rx next = frame_of(OWNER, NOT_FIRST, 60, false);
	struct cn_rx_place place;

	(void)state;
	deliver(w, 50, 100, false);
	assert_non_null(b->recv_first);
	deliver(w, 150, 100, false);
	assert_null(b->recv_first);
	assert_true(cn_endpoints_place(w->engine[1], peer, &next, &place));
	assert_ptr_equal(place.at, in->data + 100);
	assert_int_equal(place.room, 50); /* what follows is of another message */
	deliver(w, NOT_FIRST, 60, false);
	assert_non_null(b->recv_first);
	deliver(w, 150, 100, false);
	assert_null(b->recv_first);
	deliver(w, NOT_FIRST, 40, true);
	assert_non_null(b->recv_first);
	assert_int_equal(in->ended, 0);
	out = endpoint_send_to(w, a, "b", 7, 1000, 3, SECOND);
	endpoint_assert_ok(w, in);
	endpoint_assert_got(in, "a", 5, 1000, 3);
	endpoint_assert_ok(w, out);
	endpoint_drop(in);
	endpoint_drop(out);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/*
 * Messages of which the first frame came, and no more, from a node that lives. Each keeps one
 * receive, until that one's own deadline; what others send, or the same node from other endpoints,
 * is received by those behind it.
 */
static void recv__of_messages_that_stop(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(3, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7),
			   *others[] = { endpoint_open_at(w, 2, 9), endpoint_open_at(w, 0, 6),
					 endpoint_open_at(w, 1, 8) };
	static const char *const nodes[] = { "c", "a", "b" };
	static const cn_time deadlines[] = { 4 * SECOND, 6 * SECOND };
	const cn_time start = w->now;
	struct endpoint_request *stopped[2], *in, *out;
	struct cn_rx first = frame_of(OWNER, 1 << 20, 100, false);

	(void)state;
	for (uint32_t i = 0; i < 2; i++, first.stream--) {
		stopped[i] = endpoint_recv_at(w, b, 1 << 20, deadlines[i]);
		deliver_frame(w, first);
	}
	assert_null(b->recv_first);
	for (uint32_t i = 0; i < 9; i++) {
		struct cn_endpoint *from = others[i % 3];
		const uint64_t bytes = i < 3 ? 10 : 300000;

		out = endpoint_send_to(w, from, "b", 7, bytes, i, SECOND);
		endpoint_run(w, i < 6 ? 0 : 10 * CN_MS);
		in = endpoint_recv_at(w, b, bytes, SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_got(in, nodes[i % 3], cn_endpoint_number(from), bytes, i);
		endpoint_assert_ok(w, out);
		endpoint_drop(in);
		endpoint_drop(out);
	}
	assert_true(w->now < start + SECOND);
	for (uint32_t i = 0; i < 2; i++) {
		endpoint_assert_status(w, stopped[i], COLLNET_ETIMEOUT,
				       "of node a did not arrive in time: 1048476 bytes");
		assert_true(w->now >= start + deadlines[i]);
		assert_true(w->now < start + deadlines[i] + 100 * CN_MS);
		endpoint_drop(stopped[i]);
	}
	assert_true(cn_peer_alive(cn_node_find(cn_engine_node(w->engine[1]), "a")));
	/* It sends again. The other message may go on for as long as its node lives: nobody waits.
	 */
	endpoint_one_message(w, a, b, 300000, true);
	cn_endpoint_close(b, w->now);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Aborted messages whose frames arrived, and refused ones after them: when all has been received,
 * the grants that follow are credit again. */
static void grant__after_a_refusal(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	const uint32_t ten = 10 * PAYLOAD - CN_EP_HEAD;
	struct endpoint_request *r;

	(void)state;
	endpoint_one_message(w, a, b, 100, false);
	for (uint32_t n = 0; n < 7; n++) {
		/* Its frames arrive, their acknowledgement comes after the deadline. */
		r = endpoint_send_to(w, a, "b", 7, ten, 1, 2 * CN_MS);
		endpoint_poll_only(w, 0, 1);
		cn_hub_cut(w->hub, 0, true);
		endpoint_poll_only(w, 1, 1);
		cn_hub_cut(w->hub, 0, false);
		w->now += 3 * CN_MS;
		endpoint_poll_only(w, 0, 1);
		assert_int_equal(r->status, COLLNET_ETIMEOUT);
		endpoint_drop(r);
		endpoint_run(w, 300 * CN_MS);
		for (uint32_t k = 0; n == 5 && k < 4; k++) {
			r = endpoint_send_to(w, a, "b", 7, 100, 1, SECOND);
			endpoint_assert_ok(w, r);
			endpoint_drop(r);
		}
	}
	assert_int_equal(endpoint_unread(w, 1), CN_EP_UNREAD);
	for (uint32_t n = 0; n < 8; n++) {
		r = endpoint_send_to(w, a, "b", 7, ten, 1, SECOND);
		endpoint_wait_for(w, r, 3 * SECOND);
		assert_int_equal(r->status, COLLNET_ELIMIT);
		endpoint_drop(r);
	}
	for (uint32_t n = 0; n < 20; n++) {
		r = endpoint_recv_at(w, b, ten, 100 * CN_MS);
		endpoint_wait_for(w, r, SECOND);
		endpoint_drop(r);
	}
	assert_int_equal(endpoint_unread(w, 1), 0);
	endpoint_one_message(w, a, b, 100000, false);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__of_one_with_a_late_grant),
		cmocka_unit_test(grant__by_its_message),
		cmocka_unit_test(grant__after_a_refusal),
		cmocka_unit_test(share__of_one_that_ignores_credit),
		cmocka_unit_test(recv__of_another_owner),
		cmocka_unit_test(recv__of_wrong_lengths),
		cmocka_unit_test(recv__of_messages_that_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
