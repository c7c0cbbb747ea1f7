/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/sender.c: what is sent, sent again, and when, between nodes in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"

#define SEED 20240611u

static struct pair *two(void (*change)(struct cn_node_config *))
{
	struct pair *p = pair_new(2, SEED, change);

	if (!pair_run_up(p, 2000 * CN_MS)) {
		fail_msg("seed %u: not up", SEED);
	}
	return p;
}

static void arrives(struct pair *p, cn_time within)
{
	if (!pair_run_flows(p, within)) {
		fail_msg("seed %llu: %u of %u frames, log:\n%s", (unsigned long long)p->seed,
			 p->flows[0][1].received, p->flows[0][1].total, p->log);
	}
	assert_int_equal(p->flows[0][1].received, p->flows[0][1].total);
	assert_int_equal(p->flows[1][0].received, p->flows[1][0].total);
	assert_int_equal(p->nodes[0].downs + p->nodes[1].downs, 0);
}

/* Frames in order, once, every byte; with all faults that a wire has, both ways at once. */
static void stream(uint32_t frames, uint32_t loss, uint32_t others)
{
	struct pair *p = two(NULL);

	p->loss = loss;
	p->duplicate = p->reorder = others;
	pair_send(p, 0, 1, frames, 0);
	pair_send(p, 1, 0, frames / 2, 0);
	arrives(p, 4000 * 1000 * CN_MS);
	if (loss == 0 && others == 0) {
		assert_int_equal(pair_stats(p, 0).data_resent, 0);
		assert_int_equal(pair_stats(p, 1).data_resent, 0);
	}
	assert_int_equal(pair_stats(p, 0).data_sent, frames);
	assert_int_equal(pair_stats(p, 1).data_received, frames);
	assert_int_equal(p->nodes[0].room_broken + p->nodes[1].room_broken, 0);
	pair_free(p);
}

static void sender__loss_none(void **state)
{
	(void)state;
	stream(120000, 0, 0);
}

static void sender__loss_1_percent(void **state)
{
	(void)state;
	stream(40000, 10000, 1000);
}

static void sender__loss_5_percent(void **state)
{
	(void)state;
	stream(10000, 50000, 5000);
}

static void sender__loss_20_percent(void **state)
{
	(void)state;
	stream(3000, 200000, 20000);
}

static void sender__sequence_wraps(void **state)
{
	struct pair *p = pair_new(2, SEED, NULL);

	(void)state;
	p->first_seq = 0xffffff80u;
	assert_true(pair_run_up(p, 2000 * CN_MS));
	assert_int_equal(pair_peer(p, 0, 1)->tx.queue.end, 0xffffff80u);
	p->loss = 20000;
	p->reorder = 5000;
	pair_send(p, 0, 1, 3000, 700);
	pair_send(p, 1, 0, 3000, 0);
	arrives(p, 600 * 1000 * CN_MS);
	assert_int_equal(pair_peer(p, 0, 1)->tx.queue.una, 0xffffff80u + 3000u);
	pair_free(p);
}

static void small_window(struct cn_node_config *c)
{
	c->send_window = 5;
}

static void sender__window_of_five(void **state)
{
	struct pair *p = two(small_window);

	(void)state;
	p->loss = 30000;
	pair_send(p, 0, 1, 4000, 0);
	arrives(p, 600 * 1000 * CN_MS);
	assert_int_equal(p->nodes[0].room_broken, 0);
	pair_free(p);
}

static void window_of_two(struct cn_node_config *c)
{
	c->send_window = 2;
}

static void window_of_twelve(struct cn_node_config *c)
{
	c->send_window = 12;
}

/* A window smaller than what is acknowledged by itself does not wait for delayed acknowledgements
 * each time: the frames that close it request one. */
static void sender__small_windows_request_acks(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct pair *p = two(k == 0 ? window_of_two : window_of_twelve);

		pair_send(p, 0, 1, 600, 1000);
		arrives(p, 60 * CN_MS);
		pair_free(p);
	}
}

/* With the way back cut, exactly a window leaves, and nothing more. */
static void sender__window_closes(void **state)
{
	struct pair *p = two(NULL);
	struct cn_peer *peer = pair_peer(p, 0, 1);

	(void)state;
	p->cut[1][0] = true;
	pair_send(p, 0, 1, 1000, 100);
	pair_run(p, 20 * CN_MS);
	assert_int_equal(p->flows[0][1].sent, 128);
	assert_int_equal(peer->tx.queue.end - peer->tx.queue.una, 128);
	assert_int_equal(cn_peer_room(peer), 0);
	assert_int_equal(p->flows[0][1].received, 128);
	p->cut[1][0] = false;
	arrives(p, 3000 * CN_MS);
	pair_free(p);
}

static uint32_t drop_left;

static bool is_data(const uint8_t *f)
{
	return (f[CN_ETH_HEADER + 2] & 15) >= CN_TYPE_CONTROL;
}

static bool drop_some_data(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	(void)to;
	(void)len;
	if (from == 0 && is_data(f) && drop_left > 0) {
		drop_left--;
		return false;
	}
	return from != 0 || is_data(f) || p->filter_arg == NULL || drop_left == 0;
}

/* The last frame of all is lost: only the timer can know. */
static void sender__tail_loss(void **state)
{
	struct pair *p = two(NULL);
	cn_time from;

	(void)state;
	pair_send(p, 0, 1, 100, 1000);
	arrives(p, 1000 * CN_MS);
	p->filter = drop_some_data;
	drop_left = 1;
	pair_trace(p);
	pair_send(p, 0, 1, 1, 1000);
	from = p->now;
	arrives(p, 1000 * CN_MS);
	assert_int_equal(drop_left, 0);
	assert_int_equal(pair_stats(p, 0).timeouts, 1);
	pair_assert_trace(p, "a: DATA 0; a: RESEND 0 ACKREQ; b: ACK 1");
	/* the timeout after samples: floor and acknowledgement delay, not rto_first */
	assert_true(p->now - from <
		    p->nodes[0].config.rto_min + 2 * p->nodes[0].config.ack_delay + 5 * CN_MS);
	pair_free(p);
}

/* Doubling: the tail is lost five times, and the pauses grow. Then a probe tells. */
static void sender__tail_loss_repeated(void **state)
{
	struct pair *p = two(NULL);

	(void)state;
	p->filter = drop_some_data;
	p->filter_arg = &drop_left; /* acknowledgements, too */
	drop_left = 5;
	pair_send(p, 0, 1, 1, 1000);
	pair_run(p, 119 * CN_MS);
	assert_int_equal(pair_stats(p, 0).timeouts, 0);
	pair_run(p, 2 * CN_MS);
	assert_int_equal(pair_stats(p, 0).timeouts, 1);
	pair_run(p, 177 * CN_MS); /* three quarters of 240, and then all of it */
	assert_int_equal(pair_stats(p, 0).timeouts, 1);
	pair_run(p, 64 * CN_MS);
	assert_int_equal(pair_stats(p, 0).timeouts, 2);
	arrives(p, 5000 * CN_MS);
	assert_int_equal(pair_stats(p, 0).timeouts, 4);
	assert_int_equal(pair_stats(p, 0).data_resent, 5);
	pair_free(p);
}

/* Two senders that lost frames at one time send them again at different times. */
static void sender__timeouts_differ(void **state)
{
	struct pair *p[2];
	uint32_t apart = 0;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		p[i] = pair_new(2, SEED + i, NULL);
		assert_true(pair_run_up(p[i], 2000 * CN_MS));
		pair_run(p[i], 2000 * CN_MS - p[i]->now);
		p[i]->filter = drop_some_data;
		pair_send(p[i], 0, 1, 1, 1000);
	}
	for (uint32_t ms = 0; ms < 1000; ms++) {
		for (uint32_t i = 0; i < 2; i++) {
			drop_left = 1000;
			pair_run(p[i], CN_MS);
		}
		apart += pair_stats(p[0], 0).timeouts != pair_stats(p[1], 0).timeouts;
	}
	assert_int_equal(pair_stats(p[0], 0).timeouts, pair_stats(p[1], 0).timeouts);
	assert_true(apart > 10); /* of their times of 60 to 240 ms */
	pair_free(p[0]);
	pair_free(p[1]);
}

static uint32_t drop_seq, drop_times;

static bool drop_one_number(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f,
			    size_t len)
{
	struct cn_wire w;

	(void)p;
	(void)to;
	if (from == 0 && is_data(f) && drop_times > 0 &&
	    cn_wire_get(f + CN_ETH_HEADER, len - CN_ETH_HEADER, &w) == CN_WIRE_OK &&
	    w.seq == drop_seq) {
		drop_times--;
		return false;
	}
	return true;
}

/* One loss in the middle: one NAK, no timeout, half the window. */
static void sender__goes_back_once(void **state)
{
	struct pair *p = two(NULL);

	(void)state;
	p->filter = drop_one_number;
	drop_seq = pair_peer(p, 0, 1)->tx.queue.end + 40;
	drop_times = 1;
	pair_send(p, 0, 1, 400, 1000);
	arrives(p, 1000 * CN_MS);
	assert_int_equal(pair_stats(p, 1).naks_sent, 1);
	assert_int_equal(pair_stats(p, 0).timeouts, 0);
	assert_uint_in_range(pair_stats(p, 0).data_resent, 1, 128);
	pair_free(p);
}

static uint32_t first_loss, second_loss, seen_second;

static bool drop_first_and_second(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f,
				  size_t len)
{
	struct cn_wire w;

	(void)p;
	(void)to;
	if (from != 0 || !is_data(f) ||
	    cn_wire_get(f + CN_ETH_HEADER, len - CN_ETH_HEADER, &w) != CN_WIRE_OK) {
		return true;
	}
	if (w.seq == first_loss) {
		first_loss--;
		return false;
	}
	return w.seq != second_loss || ++seen_second != 2;
}

/* Two losses in one window of data are one reason to send less, not two. */
static void sender__one_decrease_a_window(void **state)
{
	struct pair *p = two(NULL);
	struct cn_peer *peer = pair_peer(p, 0, 1);
	uint32_t least = UINT32_MAX;

	(void)state;
	p->filter = drop_first_and_second;
	p->delay = 2 * CN_MS; /* so that the window is full */
	first_loss = peer->tx.queue.end + 40;
	second_loss = peer->tx.queue.end + 60;
	seen_second = 0;
	pair_send(p, 0, 1, 600, 1000);
	pair_poke(p);
	while (p->flows[0][1].acked < 600 && pair_step(p, 10 * 1000 * CN_MS)) {
		least = peer->tx.cc.cwnd < least ? peer->tx.cc.cwnd : least;
	}
	assert_int_equal(p->flows[0][1].received, 600);
	assert_int_equal(pair_stats(p, 1).naks_sent, 2);
	assert_uint_in_range(least, 50, 70);
	pair_free(p);
}

static void initial_cwnd_of_ten(struct cn_node_config *c)
{
	c->initial_cwnd = 10;
}

/* Slow start: the initial window, doubled by every round trip without a loss, up to the window.
 * What is not in use does not grow. */
static void sender__slow_start(void **state)
{
	struct pair *p = two(initial_cwnd_of_ten);
	struct cn_peer *peer = pair_peer(p, 0, 1);
	cn_time from;

	(void)state;
	p->delay = 2 * CN_MS;
	for (uint32_t i = 0; i < 60; i++) {
		pair_send(p, 0, 1, 1, 100);
		arrives(p, 200 * CN_MS);
	}
	assert_int_equal(peer->tx.cc.cwnd, 10);
	from = p->now;
	pair_send(p, 0, 1, 600, 100);
	pair_run(p, 1 * CN_MS);
	assert_int_equal(peer->tx.queue.end - peer->tx.queue.una, 10);
	arrives(p, 3000 * CN_MS);
	/* 10, 20, 40, 80, 128 ...: about eight round trips, and the last acknowledgement waits; one
	 * frame more each would be thirty */
	assert_uint_in_range((p->now - from) / (4 * CN_MS), 6, 16);
	assert_int_equal(peer->tx.cc.cwnd, 128);
	pair_free(p);
}

/* After a timeout: slow start from two to ssthresh, half of what was in flight, then congestion
 * avoidance. */
static void sender__slow_start_after_a_timeout(void **state)
{
	struct pair *p = two(NULL);
	struct cn_peer *peer = pair_peer(p, 0, 1);

	(void)state;
	p->delay = 2 * CN_MS;
	p->cut[0][1] = true;
	pair_send(p, 0, 1, 400, 100);
	pair_run(p, 20 * CN_MS);
	assert_int_equal(peer->tx.queue.end - peer->tx.queue.una, 128);
	while (peer->tx.cc.cwnd != 2) {
		assert_true(pair_step(p, p->now + 1000 * CN_MS));
	}
	assert_int_equal(peer->tx.cc.ssthresh, 64);
	p->cut[0][1] = false;
	while (peer->tx.cc.cwnd < 64) {
		assert_true(pair_step(p, p->now + 1000 * CN_MS));
	}
	assert_true(p->flows[0][1].acked < 300); /* by one each it would have been 2,000 */
	arrives(p, 3000 * CN_MS);
	assert_uint_in_range(peer->tx.cc.cwnd, 64, 75);
	pair_free(p);
}

/* An acknowledgement of a frame that was sent twice is no round-trip sample (Karn). */
static void sender__no_sample_of_resent_frames(void **state)
{
	struct pair *p = two(NULL);

	(void)state;
	p->delay = 100 * CN_MS;
	pair_send(p, 0, 1, 1, 1000);
	arrives(p, 1000 * CN_MS);
	assert_int_equal(pair_stats(p, 0).data_resent, 1);
	assert_int_equal(pair_peer(p, 0, 1)->tx.rtt.srtt, 0);
	pair_free(p);
}

/* No retransmission where nothing is lost, whatever the delays up to the acknowledgement's. */
static void sender__no_spurious_resends(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 8; k++) {
		struct pair *p = two(NULL);

		p->jitter = (k + 1) * 3 * CN_MS;
		p->random = SEED + k;
		for (uint32_t i = 0; i < 40; i++) {
			pair_send(p, 0, 1, 1 + i * 7 % 50, 1000);
			pair_send(p, 1, 0, i % 3, 64);
			pair_run(p, i * 5 % 70 * CN_MS);
		}
		arrives(p, 60 * 1000 * CN_MS);
		assert_int_equal(pair_stats(p, 0).data_resent, 0);
		assert_int_equal(pair_stats(p, 1).data_resent, 0);
		pair_free(p);
	}
}

/* After many frames without a loss, the next one is a reason to send less all the same: numbers go
 * round, and half a round further is before. */
static void sender__first_loss_after_half_a_round(void **state)
{
	struct pair *p = two(NULL);
	struct cn_peer *peer = pair_peer(p, 0, 1);

	(void)state;
	pair_send(p, 0, 1, 1, 1000);
	arrives(p, 100 * CN_MS);
	peer->tx.cc.recover = peer->tx.queue.una - 0x7ffffff0u; /* as if so many had come well */
	pair_send(p, 0, 1, 1, 1000);
	arrives(p, 100 * CN_MS);
	pair_send(p, 0, 1, 100, 1000);
	arrives(p, 100 * CN_MS);
	p->filter = drop_one_number;
	drop_seq = peer->tx.queue.end;
	drop_times = 1;
	pair_send(p, 0, 1, 40, 1000);
	pair_run(p, CN_MS / 2);
	assert_int_equal(drop_times, 0);
	assert_true(peer->tx.cc.cwnd < 64);
	arrives(p, 1000 * CN_MS);
	pair_free(p);
}

static void slow_wire(struct cn_node_config *c)
{
	c->send_window = 32;
}

/* 20 Mbit/s, where one window takes 20 ms: queues are not losses. */
static void sender__slow_wire(void **state)
{
	struct pair *p = two(slow_wire);

	(void)state;
	p->ns_per_byte = 400;
	pair_send(p, 0, 1, 3000, 0);
	pair_send(p, 1, 0, 3000, 0);
	arrives(p, 60 * 1000 * CN_MS);
	assert_int_equal(pair_stats(p, 0).data_resent + pair_stats(p, 1).data_resent, 0);
	pair_free(p);
}

/* Tokens come back when the other is lost, too, each once. */
static void sender__tokens_return_at_death(void **state)
{
	struct pair *p = two(NULL);

	(void)state;
	p->cut[0][1] = p->cut[1][0] = true;
	pair_send(p, 0, 1, 1000, 1000);
	pair_run(p, 2100 * CN_MS);
	assert_false(pair_is_up(p, 0, 1));
	assert_int_equal(p->flows[0][1].sent, 128);
	assert_int_equal(p->flows[0][1].acked, 128);
	pair_free(p);
}

/* Retries are bounded: a timer that never gives up would send for ever. */
static void sender__retries_are_bounded(void **state)
{
	struct pair *p = two(NULL);

	(void)state;
	p->cut[0][1] = p->cut[1][0] = true;
	pair_send(p, 0, 1, 10, 1000);
	pair_run(p, 10 * 1000 * CN_MS);
	assert_false(pair_is_up(p, 0, 1));
	assert_uint_in_range(pair_stats(p, 0).timeouts, 3, 12);
	assert_true(pair_stats(p, 0).data_resent <= 2u * pair_stats(p, 0).timeouts);
	pair_free(p);
}

static bool drop_full_frames(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f,
			     size_t len)
{
	(void)p;
	(void)to;
	(void)f;
	return from != 0 || len < 1000;
}

/* A switch that does not carry full frames: the other answers every probe, and yet nothing ever
 * arrives. That ends, too. */
static void sender__black_hole_for_long_frames(void **state)
{
	struct pair *p = two(NULL);

	(void)state;
	p->filter = drop_full_frames;
	pair_send(p, 0, 1, 1, 1400);
	pair_run(p, 15 * 1000 * CN_MS);
	assert_true(p->nodes[0].downs >= 1);
	assert_int_equal(p->flows[0][1].acked, 1);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sender__loss_none),
		cmocka_unit_test(sender__loss_1_percent),
		cmocka_unit_test(sender__loss_5_percent),
		cmocka_unit_test(sender__loss_20_percent),
		cmocka_unit_test(sender__sequence_wraps),
		cmocka_unit_test(sender__window_of_five),
		cmocka_unit_test(sender__small_windows_request_acks),
		cmocka_unit_test(sender__window_closes),
		cmocka_unit_test(sender__tail_loss),
		cmocka_unit_test(sender__tail_loss_repeated),
		cmocka_unit_test(sender__timeouts_differ),
		cmocka_unit_test(sender__goes_back_once),
		cmocka_unit_test(sender__one_decrease_a_window),
		cmocka_unit_test(sender__slow_start),
		cmocka_unit_test(sender__slow_start_after_a_timeout),
		cmocka_unit_test(sender__no_sample_of_resent_frames),
		cmocka_unit_test(sender__no_spurious_resends),
		cmocka_unit_test(sender__first_loss_after_half_a_round),
		cmocka_unit_test(sender__slow_wire),
		cmocka_unit_test(sender__tokens_return_at_death),
		cmocka_unit_test(sender__retries_are_bounded),
		cmocka_unit_test(sender__black_hole_for_long_frames),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
