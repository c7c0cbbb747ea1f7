/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/bench/baseline.c: two processes on a pair of veth interfaces in a network namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/bench/baseline.h"
#include "namespace.h"
#include "util/clock.h"

#define ITERATIONS 200

static struct baseline *a;
static uint8_t mac_b[6];

static cn_time in_ms(uint64_t ms)
{
	return cn_now() + ms * CN_MS;
}

static int set_up(void **state)
{
	struct cn_err err = { 0 };
	struct baseline *b;

	(void)state;
	if (!add_pair() || baseline_open("a0", BASELINE_ETHERTYPE, &a, &err) != 0 ||
	    baseline_open("b0", BASELINE_ETHERTYPE, &b, &err) != 0) {
		print_message("%s\n", err.text);
		return -1;
	}
	memcpy(mac_b, baseline_mac(b), sizeof(mac_b));
	baseline_close(b);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	baseline_close(a);
	return run_command("ip link delete a0") ? 0 : -1;
}

/* Starts the other side in a process of its own. */
static pid_t other_side(int (*side)(struct baseline *b))
{
	struct baseline *b;

	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (baseline_open("b0", BASELINE_ETHERTYPE, &b, NULL) != 0) {
			_exit(2);
		}
		_exit(side(b) == 0 ? 0 : 1);
	}
	return child;
}

static void join(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int answer_pings(struct baseline *b)
{
	/* Sizes below the minimum of Ethernet and the largest; with no pause between them. */
	static const uint32_t payload[] = { BASELINE_PAYLOAD_MIN, 64, 1500 };

	for (int i = 0; i < 3; i++) {
		int r = baseline_pingpong(b, baseline_mac(a), false, payload[i], 0, NULL, NULL,
					  in_ms(20000), NULL);

		if (r != 0) {
			return r;
		}
	}
	return 0;
}

static void pingpong__measures_every_round_trip(void **state)
{
	static const uint32_t payload[] = { BASELINE_PAYLOAD_MIN, 64, 1500 };
	pid_t child = other_side(answer_pings);

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint64_t rtt[ITERATIONS] = { 0 }, lost = 77;
		struct cn_err err = { 0 };
		int r = baseline_pingpong(a, mac_b, true, payload[i], ITERATIONS, rtt, &lost,
					  in_ms(20000), &err);

		assert_string_equal(err.text, "");
		assert_int_equal(r, 0);
		for (int k = 0; k < ITERATIONS; k++) {
			assert_uint_in_range(rtt[k], 100, 20000 * CN_MS);
		}
	}
	join(child);
}

static int send_stream(struct baseline *b)
{
	uint64_t sent;

	return baseline_stream_send(b, baseline_mac(a), 1500, 100 * CN_MS, &sent, in_ms(20000),
				    NULL);
}

static void stream__counts_frames_and_losses(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		struct baseline_rate rate = { 0 };
		struct cn_err err = { 0 };
		pid_t child = other_side(send_stream);
		int r = baseline_stream_recv(a, mac_b, &rate, in_ms(20000), &err);

		assert_string_equal(err.text, "");
		assert_int_equal(r, 0);
		join(child);
		/* How many it can be is the machine's affair; that the figures agree is ours. */
		assert_true(rate.frames > 1 && rate.ns > 0);
		assert_uint_in_range(rate.per_second * (double)rate.ns / 1e9 + 0.5, rate.frames - 1,
				     rate.frames);
	}
}

static void stream__slow_link_paces_the_sender(void **state)
{
	struct baseline_rate rate = { 0 };
	struct cn_err err = { 0 };
	pid_t child;

	(void)state;
	if (!run_command("tc qdisc add dev b0 root tbf rate 20mbit burst 3100 limit 10000000")) {
		print_message("skipped: no tbf here\n");
		skip();
	}
	child = other_side(send_stream);
	assert_int_equal(baseline_stream_recv(a, mac_b, &rate, in_ms(20000), &err), 0);
	join(child);
	assert_int_equal(rate.lost, 0);
	/* At 20 Mbit/s a frame of 1,514 bytes takes 605.6 us, but for those that the bucket of two
	 * frames lets through at once. A busy machine is slower, and nothing is faster. */
	assert_true(rate.frames > 4);
	assert_true((double)rate.ns > (double)(rate.frames - 4) * 605600 * 0.95);
}

static void deadlines__alone_on_the_wire(void **state)
{
	struct baseline_rate rate;
	uint64_t rtt[1], sent;
	struct cn_err err;

	(void)state;
	assert_int_equal(baseline_pingpong(a, mac_b, true, 64, 1, rtt, NULL, in_ms(50), &err),
			 COLLNET_ETIMEOUT);
	assert_string_equal(err.text, "raw sockets on a0: no answer in time: does the other "
				      "side run it too?");
	assert_int_equal(baseline_pingpong(a, mac_b, false, 64, 1, NULL, NULL, in_ms(50), &err),
			 COLLNET_ETIMEOUT);
	assert_int_equal(baseline_stream_send(a, mac_b, 64, CN_MS, &sent, in_ms(50), &err),
			 COLLNET_ETIMEOUT);
	assert_int_equal(baseline_stream_recv(a, mac_b, &rate, in_ms(50), &err), COLLNET_ETIMEOUT);
	assert_int_equal(baseline_pingpong(a, mac_b, true, 15, 1, rtt, NULL, in_ms(50), &err),
			 COLLNET_EINVAL);
	assert_int_equal(baseline_stream_send(a, mac_b, 1501, CN_MS, &sent, in_ms(50), &err),
			 COLLNET_EINVAL);
	assert_true(run_command("ip link set a0 down"));
	assert_int_equal(baseline_pingpong(a, mac_b, true, 64, 1, rtt, NULL, in_ms(50), &err),
			 COLLNET_EIFACE);
}

static void open__refusals(void **state)
{
	struct baseline *c = NULL;
	struct cn_err err;

	(void)state;
	assert_int_equal(baseline_open("nope", BASELINE_ETHERTYPE, &c, &err), COLLNET_EIFACE);
	assert_non_null(strstr(err.text, "no such interface 'nope'"));
	assert_null(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pingpong__measures_every_round_trip, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(stream__counts_frames_and_losses, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(stream__slow_link_paces_the_sender, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(deadlines__alone_on_the_wire, set_up, tear_down),
		cmocka_unit_test_setup_teardown(open__refusals, set_up, tear_down),
	};
	const char *why = enter_namespace();

	if (why != NULL) {
		printf("skipped: %s\n", why);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
