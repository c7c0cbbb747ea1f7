/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of operations whose links have one message each, where the links' rates are not known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/sim/case.h"

#define RATE	    25000000000u
#define LINK_WINDOW 21u /* of ports that hold 43 frames */

/* A broadcast of 1 MiB on hosts of one switch, whose topology says no rate but this one of the last
 * host (0: none either). `window` is asked for. */
static struct sim_outcome run(const char *shape, uint64_t last, uint32_t window)
{
	struct sim_case c = { .local = 1,
			      .iterations = 1,
			      .warmup = 1,
			      .verify = true,
			      .args = { .op = CN_OP_BCAST, .bytes = 1 << 20, .window = window } };
	struct sim_outcome out;
	struct cn_err err = { 0 };
	struct cn_topo *t;

	assert_int_equal(cn_topo_shape(shape, 0, 43, 0, 43, &t, &err), COLLNET_OK);
	t->links[t->nlinks - 1].rate = last;
	cn_sim_config_init(&c.cluster);
	c.cluster.topo = t;
	c.cluster.rate = RATE;
	c.cluster.latency = 5 * CN_US;
	if (sim_run(&c, &out, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(out.failed, 0);
	assert_int_equal(out.wrong, 0);
	assert_int_equal(out.drops, 0);
	sim_outcome_free(&out);
	cn_topo_free(t);
	return out;
}

/* What is in cables comes on top of what ports hold, as it is acknowledged. */
static void op_window__frames_in_cables_are_measured(void **state)
{
	const struct sim_outcome automatic = run("2", 0, COLLNET_WINDOW_AUTO),
				 ports = run("2", 0, LINK_WINDOW);

	(void)state;
	assert_true(automatic.window_peak > LINK_WINDOW);
	assert_true(automatic.slowest_ns < 0.7 * ports.slowest_ns);
}

/* A window that the user asks for is not exceeded. */
static void op_window__is_what_was_asked_for(void **state)
{
	(void)state;
	assert_int_equal(run("2", 0, LINK_WINDOW).window_peak, LINK_WINDOW);
}

/* Each node's own acknowledgements count: the port to one whose link is slower than all others does
 * not overflow. */
static void op_window__a_slow_link_among_fast_ones(void **state)
{
	(void)state;
	run("2", RATE / 25, COLLNET_WINDOW_AUTO);
	run("8", RATE / 25, COLLNET_WINDOW_AUTO);
	run("8", RATE / 250, COLLNET_WINDOW_AUTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(op_window__frames_in_cables_are_measured),
		cmocka_unit_test(op_window__is_what_was_asked_for),
		cmocka_unit_test(op_window__a_slow_link_among_fast_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
