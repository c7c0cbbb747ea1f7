/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/sender.c: a frame is lost when it is sent, and again when it is retransmitted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pair.h"

#define SEED 20261130u

static uint32_t drop_seq, drop_times;
static uint32_t drop_above; /* where it is lost because of its window: windows above it */

static bool filter(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	struct cn_wire w;

	if (from != 0 || drop_times == 0 ||
	    cn_wire_get(f + CN_ETH_HEADER, len - CN_ETH_HEADER, &w) != CN_WIRE_OK ||
	    w.type != CN_TYPE_MESSAGE || w.seq != drop_seq ||
	    pair_peer(p, from, to)->tx.cc.cwnd <= drop_above) {
		return true;
	}
	drop_times--;
	return false;
}

/* The frame `ahead` of the next one is lost so many times. */
static void drop(struct pair *p, uint32_t ahead, uint32_t times)
{
	p->filter = filter;
	drop_seq = pair_peer(p, 0, 1)->tx.queue.una + ahead;
	drop_times = times;
	drop_above = 0;
}

/* The same frame is lost each time it is retransmitted: a NAK for each. */
static void sender__same_frame_lost_again(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	drop(p, 40, 4);
	pair_send(p, 0, 1, 400, 1000);
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	assert_int_equal(drop_times, 0);
	assert_int_equal(pair_stats(p, 1).naks_sent, 4);
	assert_int_equal(pair_stats(p, 0).timeouts, 0);
	pair_free(p);
}

static void reordering(struct cn_node_config *c)
{
	c->reorder = CN_REORDER_MAX;
}

/*
 * Six frames are lost, and when they are sent again, two at a time, the first one once more: the
 * SACK of the second one does not cover the others, which wait for their retransmission.
 */
static void sender__lost_again_in_a_small_window(void **state)
{
	struct pair *p = pair_new(2, SEED, reordering);

	(void)state;
	assert_true(pair_run_up(p, 2000 * CN_MS));
	p->cut[0][1] = true;
	pair_send(p, 0, 1, 6, 1000);
	pair_run(p, 100 * CN_MS);
	assert_int_equal(pair_stats(p, 0).timeouts, 0);
	p->cut[0][1] = false;
	drop(p, 0, 1);
	pair_run(p, 40 * CN_MS);
	assert_int_equal(drop_times, 0);
	assert_int_equal(p->flows[0][1].received, 6);
	assert_int_equal(pair_stats(p, 0).timeouts, 1);
	pair_free(p);
}

/* A port has no room for the frame behind the others of the window, whenever it is retransmitted.
 * NAKs decrease the window, though each restarts the timer. */
static void sender__lost_by_its_own_window(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	drop(p, 10, UINT32_MAX);
	drop_above = 2;
	pair_send(p, 0, 1, 18, 1000);
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	assert_int_equal(p->flows[0][1].received, 18);
	assert_true(drop_times < UINT32_MAX - 2);
	assert_int_equal(pair_stats(p, 0).timeouts, 0);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sender__same_frame_lost_again),
		cmocka_unit_test(sender__lost_again_in_a_small_window),
		cmocka_unit_test(sender__lost_by_its_own_window),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
