/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/sim/core: frames through links with faults, and links that are cut and restored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim_net.h"

#define SEED 20261

static const char one[] = "switch s\nhost a\nhost b\nhost c\nhost d\n"
			  "link a s rate 100mbit\nlink b s rate 100mbit\n"
			  "link c s rate 100mbit\nlink d s rate 10mbit\n";

#define MANY 20000u

/* So many small frames from A to B, with these faults on A's link; which of them arrived. */
static struct sim_net *through(const struct cn_sim_faults *f, uint64_t seed)
{
	struct sim_net *n = sim_net(one, NULL);

	n->sim->random = seed;
	cn_sim_fault(n->sim, 0, 0, f);
	for (uint32_t i = 0; i < MANY; i++) {
		sim_net_send(n, 0, A, B, 60, i);
	}
	sim_net_run(n);
	return n;
}

/*
 * How often each frame arrived at B, and, in order of arrival, how many came before an earlier one.
 */
static uint32_t arrivals(const struct sim_net *n, uint8_t *times)
{
	uint32_t end, link = sim_net_link(n, "s", "b", &end), behind = 0, last = 0;

	memset(times, 0, MANY);
	for (size_t i = 0; i < n->nrecords; i++) {
		const struct sim_net_record *v = &n->records[i];

		if (v->kind == CN_SIM_DROPPED && v->link == link && v->end == end) {
			times[v->tag]++;
			behind += v->tag < last;
			last = v->tag > last ? v->tag : last;
		}
	}
	return behind;
}

static void faults__loss(void **state)
{
	static const uint32_t rates[] = { 0, 1000, 10000, 200000, 1000000 };
	static uint8_t times[MANY];

	(void)state;
	for (size_t k = 0; k < sizeof(rates) / sizeof(rates[0]); k++) {
		const struct cn_sim_faults f = { .loss = rates[k] };
		struct sim_net *n = through(&f, SEED + k);
		double want = rates[k] * (MANY / 1e6), lost = 0, spread;
		struct cn_sim_totals t;

		assert_int_equal(arrivals(n, times), 0);
		for (uint32_t i = 0; i < MANY; i++) {
			assert_true(times[i] <= 1);
			lost += times[i] == 0;
		}
		spread = want * (1 - rates[k] / 1e6);
		if ((lost - want) * (lost - want) > 16 * spread + 1e-9) {
			fail_msg("seed %zu: %g lost, not about %g", SEED + k, lost, want);
		}
		cn_sim_totals(n->sim, &t); /* what arrives at a host that is down is lost, too */
		assert_int_equal(t.lost, MANY);
		sim_net_end(n);
	}
}

/* Bursts of four on average, and a tenth of all frames, as asked for. */
static void faults__bursts(void **state)
{
	const struct cn_sim_faults f = { .loss = 100000, .burst = 4 };
	static uint8_t times[MANY];
	uint32_t lost = 0, bursts = 0;

	(void)state;
	for (uint32_t seed = SEED; seed < SEED + 5; seed++) {
		struct sim_net *n = through(&f, seed);

		arrivals(n, times);
		for (uint32_t i = 0; i < MANY; i++) {
			lost += times[i] == 0;
			bursts += times[i] == 0 && (i == 0 || times[i - 1] == 1);
		}
		sim_net_end(n);
	}
	if (lost < 5 * MANY / 10 * 93 / 100 || lost > 5 * MANY / 10 * 107 / 100) {
		fail_msg("seeds from %u: %u of %u lost", SEED, lost, 5 * MANY);
	}
	if (lost < bursts * 37 / 10 || lost > bursts * 43 / 10) {
		fail_msg("seeds from %u: %u in %u bursts", SEED, lost, bursts);
	}
}

static void faults__duplicates_and_corruption(void **state)
{
	const struct cn_sim_faults twice = { .duplicate = 50000 }, bad = { .corrupt = 50000 };
	static uint8_t times[MANY];
	struct sim_net *n = through(&twice, SEED);
	uint32_t count = 0;

	(void)state;
	assert_int_equal(arrivals(n, times), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_true(times[i] == 1 || times[i] == 2);
		count += times[i] == 2;
	}
	assert_true(count > 900 && count < 1100);
	sim_net_end(n);
	n = through(&bad, SEED); /* the far end's checksum does not match: it is not forwarded */
	arrivals(n, times);
	count = 0;
	for (uint32_t i = 0; i < MANY; i++) {
		count += times[i] == 0;
	}
	assert_true(count > 900 && count < 1100);
	sim_net_end(n);
}

/* A frame that is held back for 100 us is overtaken by some 14 small ones (6,720 ns each). */
static void faults__reordering_and_spikes(void **state)
{
	const struct cn_sim_faults late = { .reorder = 10000, .late = 100 * CN_US };
	const struct cn_sim_faults spike = { .spikes = 10000, .spike = 100 * CN_US };
	static uint8_t times[MANY];
	struct sim_net *n = through(&late, SEED);
	uint32_t behind = arrivals(n, times);

	(void)state;
	assert_true(behind > 150 && behind < 250);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(times[i], 1);
	}
	sim_net_end(n);
	n = through(&spike, SEED);
	behind = arrivals(n, times);
	assert_true(behind > 150 && behind < 250);
	sim_net_end(n);
}

/* Frames on a cable are lost when it is cut, those that it would carry later are too, and others
 * are none the worse; what is sent after it was put back arrives. */
static void cut__frames_under_way(void **state)
{
	struct sim_net *n = sim_net(one, NULL);

	(void)state;
	sim_net_send(n, 0, A, B, FULL, 1);     /* from s at T, arrives at 2 T */
	sim_net_send(n, T, A, B, FULL, 2);     /* from s at 2 T, when it is cut */
	sim_net_send(n, 2 * T, A, B, FULL, 3); /* from s at 3 T, when it is back */
	sim_net_send(n, 0, C, A, FULL, 4);
	sim_net_run_until(n, 2 * T - 100);
	cn_sim_cut(n->sim, 1, 2, true);
	sim_net_run_until(n, 2 * T + 100);
	cn_sim_cut(n->sim, 1, 2, false);
	sim_net_run(n);
	assert_int_equal(sim_net_count(n, CN_SIM_SENT, "s", "b", 1), 1);
	/* 1 was lost when it should have arrived, 2 as it was sent: never seen at the host */
	assert_int_equal(sim_net_when(n, CN_SIM_DROPPED, "s", "b", 1), 2 * T);
	assert_int_equal(sim_net_when(n, CN_SIM_DROPPED, "s", "b", 2), 2 * T);
	assert_int_equal(sim_net_when(n, CN_SIM_DROPPED, "s", "b", 3), 4 * T);
	assert_int_equal(sim_net_when(n, CN_SIM_DROPPED, "s", "a", 4), 2 * T);
	sim_net_end(n);
}

/* Cut and put back while a frame is under way: it is lost all the same, also if it is a broadcast
 * that another, slower port begins to send afterwards. */
static void cut__shorter_than_a_frame(void **state)
{
	struct sim_net
		*n = sim_net("switch s\nswitch t\nhost a\nhost b\nhost c\nlink s t rate 100mbit\n"
			     "link a s rate 100mbit\nlink b t rate 100mbit\n"
			     "link c s rate 10mbit\n",
			     NULL);

	(void)state;
	sim_net_send(n, 0, A, C, FULL, 1);	   /* keeps the slow port busy from T to 11 T */
	sim_net_send(n, T, A, EVERYBODY, FULL, 2); /* from s to t: 2 T to 3 T */
	sim_net_send(n, 2 * T, A, B, FULL, 3);	   /* 3 T to 4 T */
	sim_net_run_until(n, 2 * T + 50);
	cn_sim_cut(n->sim, 0, 2, true);
	sim_net_run_until(n, 2 * T + 60);
	cn_sim_cut(n->sim, 0, 2, false);
	cn_sim_cut(n->sim, 0, 2, false); /* it was not cut: nothing */
	sim_net_run(n);
	assert_int_equal(sim_net_count(n, CN_SIM_SENT, "s", "t", 2), 1);
	assert_int_equal(sim_net_count(n, CN_SIM_SENT, "t", "b", 2), 0);
	assert_int_equal(sim_net_arrival(n, "s", "c", 2), 21 * T);
	assert_int_equal(sim_net_arrival(n, "t", "b", 3), 5 * T);
	sim_net_end(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults__loss),
		cmocka_unit_test(faults__bursts),
		cmocka_unit_test(faults__duplicates_and_corruption),
		cmocka_unit_test(faults__reordering_and_spikes),
		cmocka_unit_test(cut__frames_under_way),
		cmocka_unit_test(cut__shorter_than_a_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
