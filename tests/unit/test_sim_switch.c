/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tools/sim/core/net.c: where frames wait and which are dropped, for every kind of switch, and
 * broadcasts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim_net.h"

/* ---- queues at outputs ---------------------------------------------------------------- */

/* Two hosts send k frames each to one port of five frames. The port forwards one every T and two
 * come every T, so after i frames times i are in the queue, the one being sent included. */
static void output__bound(void **state)
{
	struct sim_net *n = sim_net(sim_net_one_switch, NULL);
	uint32_t dropped = 0;

	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		sim_net_send(n, 0, A, C, FULL, i);
		sim_net_send(n, 10, B, C, FULL, 100 + i);
	}
	sim_net_run(n);
	for (uint32_t i = 0; i < 20; i++) {
		uint32_t a = sim_net_count(n, CN_SIM_SENT, "s", "c", i);
		uint32_t b = sim_net_count(n, CN_SIM_SENT, "s", "c", 100 + i);

		/* frame i of A comes at (i + 1) T, when i + 1 of 2 i are gone */
		assert_int_equal(a, 1);
		assert_int_equal(b, i < 4);
		dropped += 2 - a - b;
	}
	assert_int_equal(dropped, 16);
	assert_int_equal(sim_net_port(n, "s", "c").drops, 16);
	assert_int_equal(sim_net_port(n, "s", "c").peak, 5);
	assert_int_equal(sim_net_port(n, "s", "c").frames, 24);
	assert_int_equal(sim_net_port(n, "s", "d").peak, 0);
	sim_net_end(n);
}

/* One fewer than too many: nothing is dropped, and the peak is the bound. */
static void output__just_fits(void **state)
{
	struct sim_net *n = sim_net(sim_net_one_switch, NULL);

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		sim_net_send(n, 0, A, C, FULL, i);
		sim_net_send(n, 10, B, C, FULL, 100 + i);
	}
	sim_net_run(n);
	assert_int_equal(sim_net_port(n, "s", "c").drops, 0);
	assert_int_equal(sim_net_port(n, "s", "c").peak, 5);
	sim_net_send(n, 5000000, A, C, FULL, 200); /* an idle port: one frame stands there */
	sim_net_run(n);
	assert_int_equal(sim_net_arrival(n, "s", "c", 200), 5000000 + 2 * T);
	sim_net_end(n);
}

static void unlimited(struct cn_sim_config *c)
{
	c->buffer = 0;
}

static void output__not_limited(void **state)
{
	struct sim_net *n = sim_net("switch s\nhost a\nhost b\nhost c\nlink a s rate 100mbit\n"
				    "link b s rate 100mbit\nlink c s rate 1mbit\n",
				    unlimited);

	(void)state;
	for (uint32_t i = 0; i < 2000; i++) {
		sim_net_send(n, 0, i % 2, C, FULL, i);
	}
	sim_net_run(n);
	assert_int_equal(sim_net_port(n, "s", "c").drops, 0);
	assert_int_equal(sim_net_port(n, "s", "c").frames, 2000);
	assert_true(sim_net_port(n, "s", "c").peak > 1900);
	sim_net_end(n);
}

/* A switch does not send a frame back where it came from. */
static void output__filters(void **state)
{
	struct sim_net *n = sim_net(sim_net_one_switch, NULL);

	(void)state;
	sim_net_send(n, 0, A, A, FULL, 1);
	sim_net_run(n);
	assert_int_equal(n->nrecords, 1);
	sim_net_end(n);
}

/* ---- queues at inputs ----------------------------------------------------------------- */

static void input(struct cn_sim_config *c)
{
	c->kind = CN_SIM_INPUT;
}

static void input_1(struct cn_sim_config *c)
{
	c->kind = CN_SIM_INPUT;
	c->output = 1;
}

/*
 * A and B send to C; behind A's, frames to D, which is idle. With one frame at an output, A's
 * second frame waits for the port until B's first is over, and the frame to D waits behind it.
 */
static void input__head_of_line_blocks(void **state)
{
	struct sim_net *n = sim_net(sim_net_one_switch, input_1);

	(void)state;
	sim_net_send(n, 0, A, C, FULL, 1);
	sim_net_send(n, 0, A, C, FULL, 2);
	sim_net_send(n, 0, A, D, FULL, 3);
	sim_net_send(n, 10, B, C, FULL, 11);
	sim_net_send(n, 10, B, C, FULL, 12);
	sim_net_run(n);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "c", 1), T);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "c", 11), 2 * T);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "c", 2), 3 * T);
	/* it came at 3 T, just as the one before it moved on */
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "d", 3), 3 * T);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "c", 12), 4 * T);
	sim_net_end(n);
}

/* Longer: the frame to D waits a whole T for a port that it does not want; with two frames at an
 * output it does not. */
static void head_waits(struct sim_net *n)
{
	sim_net_send(n, 0, B, C, FULL, 11);
	sim_net_send(n, 0, B, C, FULL, 12);
	sim_net_send(n, 20, A, C, SMALL, 1);
	sim_net_send(n, 20, A, D, SMALL, 2);
	sim_net_send(n, T, A, C, SMALL, 3);
	sim_net_send(n, T, A, D, SMALL, 4);
	sim_net_run(n);
}

static void input__output_register(void **state)
{
	struct sim_net *n = sim_net(sim_net_one_switch, input_1);
	cn_time small = 6720;

	(void)state;
	head_waits(n);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "c", 1), 20 + small);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "d", 2), 20 + 2 * small);
	/* B's first frame has the port from T on: A's wait for it, also the one to D */
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "c", 11), T);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "c", 3), 2 * T);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "d", 4), 2 * T);
	sim_net_end(n);
	n = sim_net(sim_net_one_switch, input);
	assert_int_equal(n->sim->config.output, 2);
	head_waits(n);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "c", 3), 2 * T);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "d", 4), T + 2 * small);
	sim_net_end(n);
}

/* The bound is of what waits at the input; drops and peak are told of the way it came by. */
static void input__bound(void **state)
{
	struct sim_net
		*n = sim_net("switch s\nhost a\nhost b\nhost c\n"
			     "link a s rate 100mbit buffer 5\nlink b s rate 100mbit buffer 7\n"
			     "link c s rate 1mbit buffer 9\n",
			     input);

	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		sim_net_send(n, 0, A, C, FULL, i);
	}
	sim_net_send(n, 0, B, A, FULL, 100);
	sim_net_run(n);
	/* one being sent and one ready at the output, five at the input */
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(sim_net_count(n, CN_SIM_SENT, "s", "c", i), i < 7);
		/* of the way that it was to take */
		assert_int_equal(sim_net_count(n, CN_SIM_DROPPED, "s", "c", i), 1);
	}
	assert_int_equal(sim_net_port(n, "a", "s").input_drops, 13);
	assert_int_equal(sim_net_port(n, "a", "s").input_peak, 5);
	assert_int_equal(sim_net_port(n, "a", "s").drops, 0);
	assert_int_equal(sim_net_port(n, "s", "c").drops, 0);
	assert_int_equal(sim_net_port(n, "s", "c").peak, 0);
	assert_int_equal(sim_net_port(n, "b", "s").input_peak, 1); /* straight through */
	sim_net_end(n);
}

/* Inputs that want the same port have their turns in the order in which they began to wait. */
static void input__turns(void **state)
{
	struct sim_net *n = sim_net(sim_net_one_switch, input_1);

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		sim_net_send(n, 0, A, D, FULL, i);
		sim_net_send(n, 10, B, D, FULL, 10 + i);
		sim_net_send(n, 20, C, D, FULL, 20 + i);
	}
	sim_net_run(n);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "d", i), T * (1 + 3 * i));
		assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "d", 10 + i), T * (2 + 3 * i));
		assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "d", 20 + i), T * (3 + 3 * i));
	}
	assert_int_equal(sim_net_port(n, "a", "s").input_drops, 0);
	sim_net_end(n);
}

/* ---- shared memory -------------------------------------------------------------------- */

static void shared(struct cn_sim_config *c)
{
	c->kind = CN_SIM_SHARED;
}

/* Four ports of five frames are a memory of twenty, which one port may take. */
static void shared__bound(void **state)
{
	struct sim_net
		*n = sim_net("switch s\nhost a\nhost b\nhost c\nhost d\n"
			     "link a s rate 100mbit buffer 5\nlink b s rate 100mbit buffer 5\n"
			     "link c s rate 1mbit buffer 5\nlink d s rate 1mbit buffer 5\n",
			     shared);

	(void)state;
	for (uint32_t i = 0; i < 30; i++) {
		sim_net_send(n, 0, A, C, FULL, i);
	}
	sim_net_send(n, 25 * T, B, D, FULL, 100); /* the memory is full */
	sim_net_run(n);
	assert_int_equal(sim_net_port(n, "s", "c").peak, 20);
	assert_int_equal(sim_net_port(n, "s", "c").drops, 10);
	assert_int_equal(sim_net_port(n, "s", "c").frames, 20);
	assert_int_equal(sim_net_port(n, "s", "d").drops, 1);
	sim_net_send(n, 3000 * T, B, D, FULL, 101); /* all of it is free again */
	sim_net_run(n);
	assert_int_equal(sim_net_port(n, "s", "d").frames, 1);
	assert_int_equal(n->sim->switches[0].used, 0);
	sim_net_end(n);
}

/* A port without a limit makes the memory one without. */
static void shared__without_a_limit(void **state)
{
	struct sim_net *n = sim_net("switch s\nhost a\nhost b\nhost c\n"
				    "link a s rate 100mbit buffer 5\nlink b s rate 100mbit\n"
				    "link c s rate 1mbit buffer 5\n",
				    shared);

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		sim_net_send(n, 0, A, C, FULL, i);
	}
	sim_net_run(n);
	assert_int_equal(sim_net_port(n, "s", "c").drops, 0);
	assert_int_equal(sim_net_port(n, "s", "c").frames, 100);
	sim_net_end(n);
}

static void dynamic(struct cn_sim_config *c)
{
	c->kind = CN_SIM_DYNAMIC;
}

static void dynamic_half(struct cn_sim_config *c)
{
	c->kind = CN_SIM_DYNAMIC;
	c->alpha_pct = 50;
}

/* Of 20, a queue of q takes another frame while q < alpha (20 - used): 10 with alpha 1, and 7 with
 * a half (6 < 7). A second port then finds 10 free and takes 5 of them: 5 < 5 is false. */
static void dynamic__thresholds(void **state)
{
	static const char text[] =
		"switch s\nhost a\nhost b\nhost c\nhost d\n"
		"link a s rate 100mbit buffer 5\nlink b s rate 100mbit buffer 5\n"
		"link c s rate 1mbit buffer 5\nlink d s rate 1mbit buffer 5\n";
	struct sim_net *n = sim_net(text, dynamic);

	(void)state;
	for (uint32_t i = 0; i < 30; i++) {
		sim_net_send(n, 0, A, C, FULL, i);
		sim_net_send(n, 15 * T, B, D, FULL, 100 + i);
	}
	sim_net_run_until(n, 50 * T);
	assert_int_equal(sim_net_port(n, "s", "c").peak, 10);
	assert_int_equal(sim_net_port(n, "s", "c").drops, 20);
	assert_int_equal(sim_net_port(n, "s", "d").peak, 5);
	assert_int_equal(sim_net_port(n, "s", "d").drops, 25);
	sim_net_end(n);
	n = sim_net(text, dynamic_half);
	for (uint32_t i = 0; i < 30; i++) {
		sim_net_send(n, 0, A, C, FULL, i);
	}
	sim_net_run_until(n, 50 * T);
	assert_int_equal(sim_net_port(n, "s", "c").peak, 7);
	sim_net_end(n);
}

/* ---- a root of another kind ------------------------------------------------------------- */

static void root_shared(struct cn_sim_config *c)
{
	c->kind = CN_SIM_INPUT;
	c->root = (struct cn_sim_root){ true, CN_SIM_SHARED, 12 };
}

static void root_input(struct cn_sim_config *c)
{
	c->kind = CN_SIM_OUTPUT;
	c->root = (struct cn_sim_root){ true, CN_SIM_INPUT, 0 };
}

/* The slow way is that from the root to s2, and all frames take it. */
static struct sim_net *through_the_root(void (*kind)(struct cn_sim_config *c))
{
	struct sim_net *n = sim_net("switch s0\nswitch s1\nswitch s2\nhost a\nhost c\n"
				    "link s0 s1 rate 100mbit buffer 4\n"
				    "link s0 s2 rate 1mbit buffer 4\n"
				    "link a s1 rate 100mbit buffer 4\n"
				    "link c s2 rate 100mbit buffer 4\n",
				    kind);

	for (uint32_t i = 0; i < 30; i++) {
		sim_net_send(n, 0, 0, 1, FULL, i);
	}
	sim_net_run_until(n, 50 * T);
	return n;
}

static void root__of_another_kind(void **state)
{
	struct sim_net *n = through_the_root(root_shared);

	(void)state;
	assert_int_equal(sim_net_port(n, "s0", "s2").peak, 12);
	assert_int_equal(sim_net_port(n, "s0", "s2").drops, 18);
	assert_int_equal(sim_net_port(n, "s1", "s0").input_peak, 0);
	assert_int_equal(sim_net_port(n, "a", "s1").input_peak, 1);
	sim_net_end(n);
	n = through_the_root(root_input);
	assert_int_equal(sim_net_port(n, "s0", "s2").drops, 0);
	assert_int_equal(sim_net_port(n, "s1", "s0").input_peak, 4);
	assert_int_equal(sim_net_port(n, "s1", "s0").input_drops, 24); /* and two at the output */
	assert_int_equal(sim_net_port(n, "a", "s1").input_peak, 0);
	sim_net_end(n);
}

/* ---- broadcasts ----------------------------------------------------------------------- */

static const char tree[] = "switch s0\nswitch s1\nswitch s2\nhost a\nhost b\nhost c\nhost d\n"
			   "link s0 s1 rate 1gbit buffer 4\nlink s0 s2 rate 1gbit buffer 4\n"
			   "link a s1 rate 100mbit buffer 4\nlink b s1 rate 100mbit buffer 4\n"
			   "link c s2 rate 100mbit buffer 4\nlink d s2 rate 100mbit buffer 4\n";

static void broadcast__everybody_once(void **state)
{
	static void (*const kinds[])(struct cn_sim_config * c) = { NULL, input, shared, dynamic,
								   sim_net_cut_through };

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct sim_net *n = sim_net(tree, kinds[i]);

		sim_net_send(n, 0, A, EVERYBODY, SMALL, 1);
		sim_net_run(n);
		assert_int_equal(sim_net_count(n, CN_SIM_DROPPED, "s1", "b", 1), 1);
		assert_int_equal(sim_net_count(n, CN_SIM_DROPPED, "s2", "c", 1), 1);
		assert_int_equal(sim_net_count(n, CN_SIM_DROPPED, "s2", "d", 1), 1);
		assert_int_equal(sim_net_count(n, CN_SIM_SENT, "s1", "a", 1), 0);
		assert_int_equal(sim_net_count(n, CN_SIM_SENT, "s0", "s1", 1), 0);
		sim_net_end(n);
	}
}

/* It goes before frames that wait, and no further than the port's buffer allows. */
static void broadcast__turn_and_bound(void **state)
{
	struct sim_net
		*n = sim_net("switch s\nhost a\nhost b\nhost c\n"
			     "link a s rate 100mbit buffer 4\nlink b s rate 100mbit buffer 4\n"
			     "link c s rate 10mbit buffer 4\n",
			     NULL);

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		sim_net_send(n, 0, A, C, FULL, i);
	}
	for (uint32_t i = 0; i < 10; i++) {
		sim_net_send(n, 3 * T, B, EVERYBODY, FULL, 10 + i);
	}
	sim_net_run(n);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "c", 0), T);
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "c", 10), 11 * T);
	assert_int_equal(sim_net_port(n, "s", "a").frames, 10);
	/* five while the first frame goes, of which four find room */
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(sim_net_count(n, CN_SIM_SENT, "s", "c", 10 + i), i < 4);
	}
	assert_int_equal(sim_net_when(n, CN_SIM_SENT, "s", "c", 1), 51 * T);
	assert_int_equal(sim_net_port(n, "s", "c").drops, 6);
	sim_net_end(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root__of_another_kind),
		cmocka_unit_test(output__bound),
		cmocka_unit_test(output__just_fits),
		cmocka_unit_test(output__not_limited),
		cmocka_unit_test(output__filters),
		cmocka_unit_test(input__head_of_line_blocks),
		cmocka_unit_test(input__output_register),
		cmocka_unit_test(input__bound),
		cmocka_unit_test(input__turns),
		cmocka_unit_test(shared__bound),
		cmocka_unit_test(shared__without_a_limit),
		cmocka_unit_test(dynamic__thresholds),
		cmocka_unit_test(broadcast__everybody_once),
		cmocka_unit_test(broadcast__turn_and_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
