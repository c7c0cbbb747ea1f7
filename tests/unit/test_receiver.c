/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/receiver.c: order, the cost of acknowledgements, RNR, the reorder buffer and NAKs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"
#include "proto/sender.h"

#define SEED 77u

static void ack_share(cn_time delay, cn_time jitter, uint32_t ns_per_byte)
{
	struct pair *p = pair_up(2, SEED);
	struct collnet_stats a, b;

	p->delay = delay;
	p->jitter = jitter;
	p->ns_per_byte = ns_per_byte;
	pair_send(p, 0, 1, 50000, 1476);
	assert_true(pair_run_flows(p, 600 * 1000 * CN_MS));
	a = pair_stats(p, 0);
	b = pair_stats(p, 1);
	assert_int_equal(a.data_resent, 0);
	if (b.ack_bytes_sent * 100 >= a.bytes_sent) {
		fail_msg("delay %llu jitter %llu: %llu acknowledgements for %llu frames",
			 (unsigned long long)delay, (unsigned long long)jitter,
			 (unsigned long long)b.acks_sent, (unsigned long long)a.data_sent);
	}
	pair_free(p);
}

/* One way, full frames: acknowledgements are less than 1 % of the bytes. On a slow wire, on a
 * fast one that the window cannot fill, and where acknowledgements come in bunches. */
static void receiver__ack_share(void **state)
{
	(void)state;
	ack_share(20 * CN_US, 0, 400);
	ack_share(20 * CN_US, 0, 8);
	ack_share(20 * CN_US, 100 * CN_US, 8);
	ack_share(2 * CN_MS, 0, 8);
	ack_share(2 * CN_MS, 3 * CN_MS, 8);
	ack_share(5 * CN_US, 0, 1);
}

/* The same stream after a loss: a small window recovers and does not stay chatty. */
static void receiver__ack_share_after_loss(void **state)
{
	struct pair *p = pair_up(2, SEED);
	uint64_t before, acks;

	(void)state;
	p->loss = 20000;
	pair_send(p, 0, 1, 3000, 1476);
	assert_true(pair_run_flows(p, 600 * 1000 * CN_MS));
	p->loss = 0;
	pair_send(p, 0, 1, 20000, 1476);
	assert_true(pair_run_flows(p, 600 * 1000 * CN_MS));
	acks = pair_stats(p, 1).acks_sent;
	before = pair_stats(p, 0).data_sent;
	pair_send(p, 0, 1, 20000, 1476);
	assert_true(pair_run_flows(p, 600 * 1000 * CN_MS));
	acks = pair_stats(p, 1).acks_sent - acks;
	before = pair_stats(p, 0).data_sent - before;
	assert_true(acks * CN_ETH_MIN * 100 < before * 1514);
	pair_free(p);
}

/* Data both ways: hardly a frame that only acknowledges. */
static void receiver__data_back_acknowledges(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_send(p, 0, 1, 10000, 1400);
	pair_send(p, 1, 0, 10000, 1400);
	assert_true(pair_run_flows(p, 600 * 1000 * CN_MS));
	assert_true(pair_stats(p, 0).acks_sent + pair_stats(p, 1).acks_sent < 50);
	pair_free(p);
}

/* A single frame is acknowledged after ack_delay; twice that if data is about to go back. */
static void delayed_ack(bool reply_soon)
{
	struct pair *p = pair_up(2, SEED);
	cn_time delay = p->nodes[1].config.ack_delay * (reply_soon ? 2 : 1);
	uint64_t acks;

	acks = pair_stats(p, 1).acks_sent;
	p->reply_soon = reply_soon;
	pair_send(p, 0, 1, 1, 100);
	pair_run(p, delay - CN_MS);
	assert_int_equal(p->flows[0][1].received, 1);
	assert_int_equal(pair_stats(p, 1).acks_sent, acks);
	assert_int_equal(p->flows[0][1].acked, 0);
	pair_run(p, 2 * CN_MS);
	assert_int_equal(pair_stats(p, 1).acks_sent, acks + 1);
	assert_int_equal(p->flows[0][1].acked, 1);
	assert_int_equal(pair_stats(p, 0).data_resent, 0);
	pair_free(p);
}

static void receiver__delayed_ack(void **state)
{
	(void)state;
	delayed_ack(false);
	delayed_ack(true);
}

/* A frame for which nothing goes back is acknowledged at once, and the next one is not. */
static void receiver__no_reply(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	p->no_reply = true;
	pair_send(p, 0, 1, 1, 100);
	pair_run(p, CN_MS);
	assert_int_equal(p->flows[0][1].acked, 1);
	p->no_reply = false;
	pair_send(p, 0, 1, 1, 100);
	pair_run(p, CN_MS);
	assert_int_equal(p->flows[0][1].received, 2);
	assert_int_equal(p->flows[0][1].acked, 1);
	pair_free(p);
}

/* Sixteen frames are acknowledged at once, fifteen are not. */
static void receiver__every_sixteenth(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_send(p, 0, 1, 15, 100);
	pair_run(p, CN_MS);
	assert_int_equal(p->flows[0][1].acked, 0);
	pair_trace(p);
	pair_send(p, 0, 1, 1, 100);
	pair_run(p, CN_MS);
	pair_assert_trace(p, "a: DATA 0; b: ACK 1");
	assert_int_equal(p->flows[0][1].acked, 16);
	pair_free(p);
}

/* What came before is acknowledged again, as the first acknowledgement may be lost. */
static void receiver__lost_acks(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	p->cut[1][0] = true;
	pair_send(p, 0, 1, 1, 100);
	pair_run(p, 100 * CN_MS);
	assert_int_equal(p->flows[0][1].acked, 0);
	p->cut[1][0] = false;
	pair_run(p, 300 * CN_MS);
	assert_int_equal(p->flows[0][1].acked, 1);
	assert_int_equal(p->flows[0][1].received, 1);
	assert_true(pair_stats(p, 1).duplicates >= 1);
	pair_free(p);
}

/* Receiver not ready, for long: no peer goes down, nothing is lost, and once there are
 * buffers it goes on at once. */
static void receiver__not_ready_then_ready(void **state)
{
	struct pair *p = pair_up(2, SEED);
	uint32_t before;

	(void)state;
	pair_send(p, 0, 1, 500, 1000);
	pair_run(p, CN_MS / 2);
	p->nodes[1].refuse = UINT32_MAX;
	pair_run(p, 10 * 1000 * CN_MS);
	before = p->flows[0][1].received;
	assert_true(before > 0 && before < 500);
	assert_int_equal(p->nodes[0].downs + p->nodes[1].downs, 0);
	assert_true(pair_stats(p, 1).busy > 10);
	/* waiting is cheap: at most a window each 100 ms, not a storm */
	assert_true(pair_stats(p, 0).data_resent < 150u * 128u);
	p->nodes[1].refuse = 0;
	cn_node_ready(p->nodes[1].node);
	pair_run(p, CN_MS);
	assert_true(p->flows[0][1].received > before + 5);
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	assert_int_equal(pair_stats(p, 0).timeouts, 0);
	pair_free(p);
}

/* The RNR timeout is 5 ms; the end of the shortage is acknowledged at once. */
static void receiver__rnr_on_the_wire(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	p->nodes[1].refuse = UINT32_MAX;
	pair_trace(p);
	pair_send(p, 0, 1, 1, 100);
	pair_run(p, 4 * CN_MS);
	pair_assert_trace(p, "a: DATA 0; b: RNR 0");
	pair_run(p, 2 * CN_MS);
	pair_assert_trace(p, "a: RESEND 0 ACKREQ; b: RNR 0");
	cn_sender_request_ack(pair_peer(p, 1, 0));
	pair_run(p, CN_MS);
	pair_assert_trace(p, "b: RNR 0 ACKREQ; a: ACK 0");
	p->nodes[1].refuse = 0;
	cn_node_ready(p->nodes[1].node);
	pair_run(p, CN_MS);
	pair_assert_trace(p, "b: ACK 0; a: RESEND 0 ACKREQ; b: ACK 1");
	pair_free(p);
}

/* The acknowledgement that there are buffers again is lost: the RNR timeout ends by itself. */
static void receiver__ready_is_lost(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_send(p, 0, 1, 50, 1000);
	p->nodes[1].refuse = UINT32_MAX;
	pair_run(p, 1000 * CN_MS);
	p->nodes[1].refuse = 0;
	p->cut[1][0] = true;
	cn_node_ready(p->nodes[1].node);
	pair_run(p, CN_MS);
	p->cut[1][0] = false;
	assert_true(pair_run_flows(p, 400 * CN_MS));
	pair_free(p);
}

/* RNR NAKs and losses, in both directions. */
static void receiver__not_ready_at_random(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	p->loss = 20000;
	p->reorder = p->duplicate = 5000;
	pair_send(p, 0, 1, 4000, 0);
	pair_send(p, 1, 0, 4000, 0);
	for (int i = 0; i < 200; i++) {
		p->nodes[i % 2].refuse = (uint32_t)(cn_mix64((uint64_t)i) % 9);
		pair_run(p, 7 * CN_MS);
		p->nodes[i % 2].refuse = 0;
		if (i % 3 == 0) {
			cn_node_ready(p->nodes[i % 2].node);
		}
	}
	assert_true(pair_run_flows(p, 600 * 1000 * CN_MS));
	assert_int_equal(p->nodes[0].downs + p->nodes[1].downs, 0);
	pair_free(p);
}

static void reordering(struct cn_node_config *c)
{
	c->reorder = CN_REORDER_MAX;
}

static struct pair *two_that_reorder(void)
{
	struct pair *p = pair_new(2, SEED, reordering);

	if (!pair_run_up(p, 2000 * CN_MS)) {
		fail_msg("seed %u: not up", SEED);
	}
	p->ns_per_byte = 40;
	return p;
}

static uint32_t buffered(struct pair *p)
{
	return pair_peer(p, 1, 0)->rx.reorder.count;
}

/* Reordered frames are put in order, and none is retransmitted. */
static void receiver__reordered_frames(void **state)
{
	struct pair *p = two_that_reorder();

	(void)state;
	p->reorder = 50000;
	pair_send(p, 0, 1, 20000, 1400);
	assert_true(pair_run_flows(p, 600 * 1000 * CN_MS));
	assert_true(pair_stats(p, 1).gaps > 500);
	assert_int_equal(pair_stats(p, 0).data_resent, 0);
	assert_int_equal(pair_stats(p, 1).naks_sent, 0);
	assert_int_equal(buffered(p), 0);
	pair_free(p);
}

/* With losses, duplicates and RNR NAKs: all in order, once, and no buffer leaks. */
static void receiver__reordered_and_lost_frames(void **state)
{
	struct pair *p = two_that_reorder();

	(void)state;
	p->reorder = 30000;
	p->loss = 30000;
	p->duplicate = 10000;
	for (int i = 0; i < 40; i++) {
		p->nodes[1].refuse = i % 4 == 0 ? 3 : 0;
		pair_send(p, 0, 1, 500, 0);
		pair_send(p, 1, 0, 500, 0);
		assert_true(pair_run_flows(p, 600 * 1000 * CN_MS));
	}
	assert_int_equal(buffered(p), 0);
	assert_int_equal(p->nodes[1].node->pool.free, p->nodes[1].node->pool.count);
	pair_free(p);
}

/* The first frame of four is lost, and no NAK was sent yet. */
static void lose_one_buffer_three(struct pair *p)
{
	p->loss = 1000000;
	pair_send(p, 0, 1, 1, 1000);
	pair_run(p, CN_MS);
	p->loss = 0;
	pair_send(p, 0, 1, 3, 1000);
	pair_run(p, 300 * CN_US);
	assert_int_equal(buffered(p), 3);
}

/* A loss before fewer frames is reported after the reordering timeout, and sacked frames are not
 * retransmitted. */
static void receiver__reordering_timeout(void **state)
{
	struct pair *p = two_that_reorder();
	uint32_t first;

	(void)state;
	pair_send(p, 0, 1, 10, 1000);
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	first = pair_peer(p, 1, 0)->rx.expected;
	lose_one_buffer_three(p);
	assert_int_equal(pair_peer(p, 1, 0)->rx.expected, first);
	assert_int_equal(pair_stats(p, 1).naks_sent, 0);
	pair_trace(p);
	p->trace_first[0][1] = first;
	assert_true(pair_run_flows(p, 20 * CN_MS));
	pair_assert_trace(p, "b: NAK 0 SACK 0x7; a: RESEND 0 ACKREQ; b: ACK 4");
	assert_int_equal(pair_peer(p, 1, 0)->rx.expected, first + 4);
	assert_int_equal(buffered(p), 0);
	pair_free(p);
}

/* What four frames have overtaken is lost: a NAK goes out at once, and it alone is retransmitted.
 */
static void receiver__reordering_threshold(void **state)
{
	struct pair *p = two_that_reorder();

	(void)state;
	pair_trace(p);
	p->loss = 1000000;
	pair_send(p, 0, 1, 1, 1000);
	pair_run(p, CN_MS);
	p->loss = 0;
	pair_assert_trace(p, "a: DATA 0");
	pair_send(p, 0, 1, 8, 1000);
	pair_run(p, CN_MS);
	/* DATA 5 was on the line; the first loss takes cwnd to 8 */
	pair_assert_trace(p, "a: DATA 1; a: DATA 2; a: DATA 3; a: DATA 4; a: DATA 5; "
			     "b: NAK 0 SACK 0xf; a: DATA 6; a: RESEND 0 ACKREQ; "
			     "a: DATA 7 ACKREQ; b: ACK 7; a: DATA 8; b: ACK 8");
	assert_int_equal(buffered(p), 0);
	assert_true(pair_run_flows(p, 100 * CN_MS));
	pair_free(p);
}

static uint32_t lost_seq, lost_times;

/* Loses one number, so many times. */
static bool lose_one(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	struct cn_wire w;

	(void)p;
	(void)to;
	if (from == 0 && lost_times > 0 &&
	    cn_wire_get(f + CN_ETH_HEADER, len - CN_ETH_HEADER, &w) == CN_WIRE_OK &&
	    w.type != CN_TYPE_HELLO && w.type != CN_TYPE_ACK && w.seq == lost_seq) {
		lost_times--;
		return false;
	}
	return true;
}

/* The retransmission is lost as well, and nothing follows it: the NAK is repeated, long
 * before the sender's timer runs out. */
static void receiver__the_missing_frame_is_lost_again(void **state)
{
	struct pair *p = two_that_reorder();

	(void)state;
	pair_send(p, 0, 1, 10, 1000);
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	p->filter = lose_one;
	lost_seq = pair_peer(p, 0, 1)->tx.queue.end + 2;
	lost_times = 3;
	pair_send(p, 0, 1, 8, 1000);
	pair_run(p, 30 * CN_MS);
	assert_int_equal(lost_times, 0);
	assert_int_equal(pair_peer(p, 1, 0)->rx.expected, pair_peer(p, 0, 1)->tx.queue.end);
	assert_int_equal(pair_stats(p, 0).data_resent, 3);
	assert_int_equal(pair_stats(p, 0).timeouts, 0);
	pair_free(p);
}

/* More frames than the reorder buffer has came behind a loss: all are retransmitted. Behind the
 * next loss are few, and they are sacked again. */
static void receiver__beyond_the_reorder_buffer(void **state)
{
	struct pair *p = two_that_reorder();
	uint64_t before;

	(void)state;
	pair_send(p, 0, 1, 10, 1000);
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	p->filter = lose_one;
	lost_seq = pair_peer(p, 0, 1)->tx.queue.end;
	lost_times = 1;
	p->delay = 2 * CN_MS; /* so that many are in flight before the NAK */
	pair_send(p, 0, 1, 40, 1000);
	assert_true(pair_run_flows(p, 200 * CN_MS));
	assert_true(pair_stats(p, 0).data_resent > 20);
	assert_int_equal(buffered(p), 0);
	before = pair_stats(p, 0).data_resent;
	lost_seq = pair_peer(p, 0, 1)->tx.queue.end;
	lost_times = 1;
	pair_send(p, 0, 1, 4, 1000);
	assert_true(pair_run_flows(p, 200 * CN_MS));
	assert_uint_in_range(pair_stats(p, 0).data_resent - before, 1, 3);
	pair_free(p);
}

/* A flight much longer than the reorder buffer: one loss in it is detected at once for all frames,
 * also those that came too far ahead; nothing waits for a timer, or for more frames. */
static void receiver__loss_in_a_long_flight(void **state)
{
	struct pair *p = two_that_reorder();
	cn_time from;

	(void)state;
	pair_send(p, 0, 1, 10, 1000);
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	p->filter = lose_one;
	lost_seq = pair_peer(p, 0, 1)->tx.queue.end;
	lost_times = 1;
	p->delay = CN_MS; /* so that all are in flight before the NAK */
	pair_send(p, 0, 1, 32, 1000);
	from = p->now;
	pair_poke(p);
	while (p->flows[0][1].received < 42 && pair_step(p, from + 1000 * CN_MS)) {
	}
	assert_true(p->now - from < 10 * CN_MS);
	assert_int_equal(pair_stats(p, 0).timeouts, 0);
	assert_int_equal(pair_stats(p, 0).data_resent, 1 + 32 - 9);
	pair_free(p);
}

/* The NAK is repeated with backoff to a sender that is gone, though no operation here waits for it.
 */
static void receiver__nak_backoff(void **state)
{
	struct pair *p = two_that_reorder();

	(void)state;
	lose_one_buffer_three(p);
	pair_stop(p, 0);
	pair_run(p, 1000 * CN_MS);
	assert_uint_in_range(pair_stats(p, 1).naks_sent, 3, 12);
	pair_run(p, 10 * 1000 * CN_MS);
	assert_uint_in_range(pair_stats(p, 1).naks_sent, 20, 50);
	pair_free(p);
}

/* No buffer is free for the missing frame: the frames beyond it give theirs back, or all buffers
 * could be in reorder buffers that wait for one. */
static void receiver__not_ready_empties_the_reorder_buffer(void **state)
{
	struct pair *p = two_that_reorder();

	(void)state;
	lose_one_buffer_three(p);
	p->nodes[1].refuse = UINT32_MAX;
	pair_run(p, 5 * CN_MS);
	assert_true(pair_stats(p, 1).busy > 0);
	assert_int_equal(buffered(p), 0);
	assert_int_equal(p->nodes[1].node->pool.free, p->nodes[1].node->pool.count);
	p->nodes[1].refuse = 0;
	assert_true(pair_run_flows(p, 200 * CN_MS));
	pair_free(p);
}

/* A peer that goes leaves no buffers behind. */
static void receiver__held_frames_of_one_that_is_gone(void **state)
{
	struct pair *p = two_that_reorder();

	(void)state;
	lose_one_buffer_three(p);
	pair_stop(p, 0);
	pair_start(p, 0);
	p->gaps_allowed = true;
	pair_run(p, 2000 * CN_MS);
	assert_int_equal(buffered(p), 0);
	assert_int_equal(p->nodes[1].node->pool.free, p->nodes[1].node->pool.count);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receiver__ack_share),
		cmocka_unit_test(receiver__ack_share_after_loss),
		cmocka_unit_test(receiver__data_back_acknowledges),
		cmocka_unit_test(receiver__delayed_ack),
		cmocka_unit_test(receiver__no_reply),
		cmocka_unit_test(receiver__every_sixteenth),
		cmocka_unit_test(receiver__lost_acks),
		cmocka_unit_test(receiver__not_ready_then_ready),
		cmocka_unit_test(receiver__rnr_on_the_wire),
		cmocka_unit_test(receiver__ready_is_lost),
		cmocka_unit_test(receiver__not_ready_at_random),
		cmocka_unit_test(receiver__reordered_frames),
		cmocka_unit_test(receiver__reordered_and_lost_frames),
		cmocka_unit_test(receiver__reordering_timeout),
		cmocka_unit_test(receiver__reordering_threshold),
		cmocka_unit_test(receiver__the_missing_frame_is_lost_again),
		cmocka_unit_test(receiver__beyond_the_reorder_buffer),
		cmocka_unit_test(receiver__loss_in_a_long_flight),
		cmocka_unit_test(receiver__nak_backoff),
		cmocka_unit_test(receiver__not_ready_empties_the_reorder_buffer),
		cmocka_unit_test(receiver__held_frames_of_one_that_is_gone),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
