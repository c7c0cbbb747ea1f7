/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/tlp.c: tail-loss probes of a receiver that waits for data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"

#define SEED 77u

static uint32_t tail;

static bool drop_tail(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	struct cn_wire w;

	(void)p;
	(void)to;
	if (from == 0 && tail != 0 && (f[CN_ETH_HEADER + 2] & 15) == CN_TYPE_MESSAGE &&
	    cn_wire_get(f + CN_ETH_HEADER, len - CN_ETH_HEADER, &w) == CN_WIRE_OK &&
	    w.seq == tail) {
		tail = 0;
		return false;
	}
	return true;
}

/* Node 0 sends so many frames, of which the last is lost, while a node waits for the other one. */
static struct pair *lost_tail(uint32_t frames, uint32_t waiting)
{
	struct pair *p = pair_up(2, SEED);

	pair_send(p, 0, 1, 50, 1000);
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	cn_peer_expect(p->nodes[waiting].node, p->now, pair_peer(p, waiting, 1 - waiting), 1);
	p->filter = drop_tail;
	tail = pair_peer(p, 0, 1)->tx.queue.end + frames - 1;
	pair_send(p, 0, 1, frames, 1000);
	return p;
}

/* The last frame is lost while the receiver waits for it: a probe finds it long before the
 * retransmission timeout. */
static void tlp__finds_a_lost_tail(void **state)
{
	struct pair *p = lost_tail(10, 1);
	const cn_time from = p->now;

	(void)state;
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	assert_int_equal(tail, 0);
	assert_int_equal(pair_stats(p, 0).timeouts, 0);
	/* the probe, and the delay of the last acknowledgement */
	assert_true(p->now - from < 60 * CN_MS);
	pair_free(p);
}

/* The receiver does not wait for the lost frame, but the sender for what it causes: the response to
 * its probe tells. */
static void tlp__finds_a_lost_frame_of_its_own(void **state)
{
	struct pair *p = lost_tail(1, 0);
	const cn_time from = p->now;

	(void)state;
	while (pair_stats(p, 0).data_resent == 0 && p->now < from + 1000 * CN_MS) {
		pair_run(p, CN_MS);
	}
	assert_int_equal(tail, 0);
	assert_int_equal(pair_stats(p, 0).timeouts, 0);
	assert_int_equal(pair_stats(p, 0).data_resent, 1);
	assert_true(p->now - from < 20 * CN_MS);
	pair_free(p);
}

/* Messages of so many bytes, which come up to `jitter` late, while the receiver waits for them.
 * Returns how many of 1,000 frames were sent again. */
static uint64_t resent_when_late(cn_time jitter, uint32_t bytes)
{
	struct pair *p = pair_up(2, SEED);
	struct collnet_stats s;
	uint64_t acks;

	cn_peer_expect(p->nodes[1].node, p->now, pair_peer(p, 1, 0), 1);
	for (uint32_t i = 0; i < 100; i++) {
		p->jitter = 1 + i % 10 * jitter / 9;
		pair_send(p, 0, 1, 1 + i % 40, bytes);
		pair_run(p, i * 13 % 60 * CN_MS);
	}
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	s = pair_stats(p, 0);
	pair_run(p, 2000 * CN_MS);
	acks = pair_stats(p, 1).acks_sent;
	pair_run(p, 10 * 1000 * CN_MS);
	assert_true(pair_stats(p, 1).acks_sent - acks < 10 * 9); /* probes become rare */
	pair_free(p);
	return s.data_resent * 1000 / s.data_sent;
}

/* Waited for, and nothing lost, only late: nothing is sent again, also of what is later than the
 * probe timeout. */
static void tlp__without_harm(void **state)
{
	(void)state;
	for (uint32_t bytes = 900; bytes <= 1400; bytes += 50) {
		uint64_t later = resent_when_late(9 * CN_MS, bytes);

		print_message("%u bytes, up to 9 ms late: %llu of 1,000 sent again\n", bytes,
			      (unsigned long long)later);
		assert_int_equal(resent_when_late(4 * CN_MS, bytes), 0);
		assert_int_equal(later, 0);
	}
}

/* Frames wait in a port for much longer than the probe timeout, while their sender waits for data
 * and probes. Acknowledgements of older frames that come then are no responses, and nothing is
 * lost. */
static void tlp__long_queue(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_send(p, 0, 1, 50, 1000);
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	cn_peer_expect(p->nodes[0].node, p->now, pair_peer(p, 0, 1), 1);
	p->delay = 17 * CN_MS;
	for (int i = 0; i < 100; i++) {
		pair_send(p, 0, 1, 2, 1000);
		pair_run(p, 3 * CN_MS);
	}
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	assert_int_equal(pair_stats(p, 0).data_resent, 0);
	pair_free(p);
}

/* The frames of a lost tail, in order. */
static void tlp__on_the_wire(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_send(p, 0, 1, 50, 1000);
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	cn_peer_expect(p->nodes[1].node, p->now, pair_peer(p, 1, 0), 1);
	p->filter = drop_tail;
	tail = pair_peer(p, 0, 1)->tx.queue.end + 2;
	pair_trace(p);
	pair_send(p, 0, 1, 3, 1000);
	assert_true(pair_run_flows(p, 100 * CN_MS));
	pair_assert_trace(p, "a: DATA 0; a: DATA 1; a: DATA 2; b: ACK 2 ACKREQ; "
			     "a: ACK 0; b: NAK 2; a: RESEND 2 ACKREQ; b: ACK 3");
	pair_free(p);
}

/* As many as may be were sent again and are lost once more, while others wait for their turn: a
 * probe is enough for that, too. */
static void tlp__while_the_sender_goes_back(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	cn_peer_expect(p->nodes[1].node, p->now, pair_peer(p, 1, 0), 1);
	p->cut[0][1] = true;
	p->cut[1][0] = true;
	pair_send(p, 0, 1, 6, 1000);
	pair_run(p, 125 * CN_MS); /* a timeout; the next one is not before 360 ms */
	assert_int_equal(pair_stats(p, 0).timeouts, 1);
	p->cut[0][1] = p->cut[1][0] = false;
	pair_run(p, 75 * CN_MS);
	assert_int_equal(p->flows[0][1].received, 6);
	assert_int_equal(pair_stats(p, 0).timeouts, 1);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tlp__finds_a_lost_tail),
		cmocka_unit_test(tlp__finds_a_lost_frame_of_its_own),
		cmocka_unit_test(tlp__long_queue),
		cmocka_unit_test(tlp__on_the_wire),
		cmocka_unit_test(tlp__without_harm),
		cmocka_unit_test(tlp__while_the_sender_goes_back),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
