/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tools/sim/core/net.c: when frames pass links and switches, store-and-forward and cut-through, by
 * hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "sim_net.h"

static void timing__one_switch(void **state)
{
	struct sim_net *n = sim_net(sim_net_one_switch, sim_net_delays);

	(void)state;
	sim_net_send(n, 1000, A, B, FULL, 1);
	sim_net_run(n);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "a", "s", 1), 1000);
	/* whole at the switch after T and the cable, and forwarded its delay later */
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "b", 1), 1000 + T + 500 + 2000);
	assert_int_equal(sim_net_arrival(n, "s", "b", 1), 1000 + 2 * T + 2 * 500 + 2000);
	assert_int_equal(sim_net_count(n, CN_SIM_SENT, "s", "b", 1), 1);
	assert_int_equal(sim_net_count(n, CN_SIM_SENT, "s", "c", 1), 0);
	assert_int_equal(sim_net_port(n, "s", "b").frames, 1);
	assert_int_equal(sim_net_port(n, "s", "b").bytes, FULL);
	assert_int_equal(sim_net_port(n, "s", "b").busy, T);
	sim_net_end(n);
}

/*
 * Three links of 100 Mbit/s, 1 Gbit/s and 10 Mbit/s, of which the last rounds up: 1,538 * 800 ns.
 */
static const char chain[] = "switch s\nswitch t\nhost a\nhost b\nlink a s rate 100mbit\n"
			    "link s t rate 1gbit\nlink t b rate 10mbit\n";

static void timing__three_links_of_unequal_rates(void **state)
{
	struct sim_net *n = sim_net(chain, sim_net_delays);
	cn_time at = T + 500 + 2000;

	(void)state;
	sim_net_send(n, 0, A, B, FULL, 1);
	sim_net_run(n);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "t", 1), at);
	at += T / 10 + 500 + 2000;
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "t", "b", 1), at);
	assert_int_equal(sim_net_arrival(n, "t", "b", 1), at + 10 * T + 500);
	sim_net_end(n);
}

static void timing__padding_and_rounding(void **state)
{
	(void)state;
	assert_int_equal(sim_net_wire(SMALL, 100 * MBIT), 6720); /* 84 bytes */
	assert_int_equal(sim_net_wire(FULL, 100 * MBIT), T);
	for (uint32_t rate = 3; rate < 1000; rate += 97) { /* never too short */
		char text[256];
		struct sim_net *n;
		cn_time takes = sim_net_wire(FULL, rate * MBIT);

		snprintf(text, sizeof(text),
			 "switch s\nhost a\nhost b\nlink a s rate %umbit\n"
			 "link b s rate %umbit\n",
			 rate, rate);
		n = sim_net(text, NULL);
		sim_net_send(n, 0, A, B, FULL, 1);
		sim_net_run(n);
		assert_int_equal(sim_net_arrival(n, "s", "b", 1), 2 * takes);
		assert_true(takes * rate / 1000 >= 1538 * 8 - 1 && takes * rate >= 1538 * 8000);
		sim_net_end(n);
	}
}

/* Frames in a row pass at the link's rate, though each ends with a whole nanosecond: 25 of 26.88 ns
 * at 25 Gbit/s. */
static void timing__frames_in_a_row(void **state)
{
	struct sim_net *n = sim_net("switch s\nhost a\nhost b\nlink a s rate 25gbit\n"
				    "link b s rate 25gbit buffer 30\n",
				    NULL);

	(void)state;
	for (uint32_t i = 1; i <= 25; i++) {
		sim_net_send(n, 0, A, B, SMALL, i);
	}
	sim_net_run(n);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "a", "s", 2), 27);
	assert_int_equal(sim_net_arrival(n, "s", "b", 25), 27 + 25 * 2688 / 100);
	sim_net_end(n);
}

/* Four cables are one pipe of four times the rate, with four buffers. */
static void timing__channels(void **state)
{
	struct sim_net *n = sim_net("switch s\nswitch t\nhost a\nhost b\nlink a s rate 100mbit\n"
				    "link s t rate 100mbit buffer 3 channels 4\n"
				    "link t b rate 100mbit\n",
				    NULL);

	(void)state;
	sim_net_send(n, 0, A, B, FULL, 1);
	sim_net_run(n);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "t", "b", 1), T + T / 4);
	assert_int_equal(n->sim->links[2].buffer, 12);
	sim_net_end(n);
}

/* A rate that is not said is the configuration's. */
static void rate_5(struct cn_sim_config *c)
{
	c->rate = 5 * MBIT;
}

static void timing__rates_not_said(void **state)
{
	struct sim_net *n = sim_net("switch s\nhost a\nhost b\nlink a s rate none\n"
				    "link b s rate none\n",
				    rate_5);

	(void)state;
	sim_net_send(n, 0, A, B, FULL, 1);
	sim_net_run(n);
	assert_int_equal(sim_net_arrival(n, "s", "b", 1), 40 * T);
	sim_net_end(n);
}

/* Cutting through, the switch waits for 64 bytes (5,120 ns) only. */
static void cut_through__idle_port(void **state)
{
	struct sim_net *n = sim_net(sim_net_one_switch, sim_net_cut_through);

	(void)state;
	sim_net_send(n, 0, A, B, FULL, 1);
	sim_net_run(n);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "b", 1), 5120 + 500 + 2000);
	assert_int_equal(sim_net_arrival(n, "s", "b", 1), 5120 + T + 2 * 500 + 2000);
	sim_net_end(n);
}

/* The port is busy when the second one's head comes: it is stored, and goes when both are over. */
static void cut_through__busy_port(void **state)
{
	struct sim_net *n = sim_net(sim_net_one_switch, sim_net_cut_through);
	cn_time first = 5120 + 500 + 2000;

	(void)state;
	sim_net_send(n, 0, A, B, FULL, 1);
	sim_net_send(n, 1000, C, B, FULL, 2);
	sim_net_send(n, 2000, D, B, SMALL, 3);
	sim_net_run(n);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "b", 1), first);
	/* the small one is stored before the second: 2,000 + 6,720 against 1,000 + T */
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "b", 3), first + T);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "b", 2), first + T + 6720);
	sim_net_end(n);
}

/* Onto a faster link a frame cannot go before all of it is there; onto a slower one it can. */
static void cut_through__unequal_rates(void **state)
{
	struct sim_net *n = sim_net(chain, sim_net_cut_through);
	cn_time second = T + 500 + 2000;

	(void)state;
	sim_net_send(n, 0, A, B, FULL, 1);
	sim_net_run(n);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "t", 1), second);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "t", "b", 1), second + 512 + 500 + 2000);
	sim_net_end(n);
}

/* Frames of one way stay in order, whichever of them are stored. */
static void cut_through__keeps_order(void **state)
{
	struct sim_net *n = sim_net(sim_net_one_switch, sim_net_cut_through);

	(void)state;
	for (uint32_t i = 0; i < 40; i++) {
		sim_net_send(n, 1000 * i, A, B, i % 3 == 0 ? SMALL : FULL, i);
		sim_net_send(n, 1000 * i, C, i % 2 == 0 ? B : D, SMALL + 30 * i, 100 + i);
	}
	sim_net_run(n);
	for (uint32_t i = 1; i < 40; i++) {
		if (sim_net_count(n, CN_SIM_SENT, "s", "b", i) > 0 &&
		    sim_net_count(n, CN_SIM_SENT, "s", "b", i - 1) > 0) {
			assert_true(sim_net_when(n, CN_SIM_SENT, "s", "b", i) >
				    sim_net_when(n, CN_SIM_SENT, "s", "b", i - 1));
		}
	}
	sim_net_end(n);
}

static void gap(struct cn_sim_config *c)
{
	c->gap = 200000;
}

/* The gap is from beginning to beginning, and no frame waits that comes after it. */
static void timing__gap_of_a_host(void **state)
{
	struct sim_net *n = sim_net(sim_net_one_switch, gap);

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		sim_net_send(n, 0, A, B, FULL, i);
	}
	sim_net_send(n, 1000000, A, B, FULL, 3);
	sim_net_run(n);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(sim_net_when(n, CN_SIM_SENT, "a", "s", i), 200000 * i);
		/* a switch has none */
		assert_int_equal(sim_net_arrival(n, "s", "b", i), 200000 * i + 2 * T);
	}
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "a", "s", 3), 1000000);
	sim_net_end(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timing__one_switch),
		cmocka_unit_test(timing__three_links_of_unequal_rates),
		cmocka_unit_test(timing__padding_and_rounding),
		cmocka_unit_test(timing__frames_in_a_row),
		cmocka_unit_test(timing__channels),
		cmocka_unit_test(timing__rates_not_said),
		cmocka_unit_test(timing__gap_of_a_host),
		cmocka_unit_test(cut_through__idle_port),
		cmocka_unit_test(cut_through__busy_port),
		cmocka_unit_test(cut_through__unequal_rates),
		cmocka_unit_test(cut_through__keeps_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
