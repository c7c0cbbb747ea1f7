/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/adaptive_window.c: slow start, the decrease, the size that lost frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/adaptive_window.h"

#define LEAST 2u

/* Frames are acknowledged while the window is full. Returns how many, until it changes; `most` if
 * it does not. */
static uint64_t until_change(struct cn_adaptive_window *w, uint64_t most)
{
	uint32_t before = w->window;

	for (uint64_t i = 0; i < most; i++) {
		cn_adaptive_window_closed(w);
		cn_adaptive_window_acked(w);
		if (w->window != before) {
			return i + 1;
		}
	}
	return most;
}

/* A network that loses frames of a window above `capacity`, for so many frames. Returns how often
 * it did. */
static uint32_t run(struct cn_adaptive_window *w, uint32_t capacity, uint64_t frames)
{
	uint32_t losses = 0;

	for (uint64_t i = 0; i < frames; i++) {
		cn_adaptive_window_closed(w);
		if (w->window > capacity) {
			cn_adaptive_window_lost(w);
			losses++;
		}
		cn_adaptive_window_acked(w);
	}
	return losses;
}

static void window__slow_start(void **state)
{
	struct cn_adaptive_window w;

	(void)state;
	cn_adaptive_window_init(&w);
	assert_true(w.window >= LEAST);
	for (uint32_t i = w.window; i < 1000; i++) {
		assert_int_equal(until_change(&w, 10), 1);
		assert_int_equal(w.window, i + 1);
	}
	for (uint32_t i = 0; i < 100000; i++) {
		until_change(&w, 1);
	}
	assert_int_equal(w.window, 65535);
}

/* Nothing is learned from a window that was never full. */
static void window__not_full(void **state)
{
	struct cn_adaptive_window w;
	uint32_t before;

	(void)state;
	cn_adaptive_window_init(&w);
	before = w.window;
	for (int i = 0; i < 1000; i++) {
		cn_adaptive_window_acked(&w);
	}
	assert_int_equal(w.window, before);
}

static void window__halves_once_per_window(void **state)
{
	struct cn_adaptive_window w;

	(void)state;
	cn_adaptive_window_init(&w);
	while (w.window < 64) {
		until_change(&w, 1);
	}
	for (int i = 0; i < 20; i++) {
		cn_adaptive_window_lost(&w);
	}
	assert_int_equal(w.window, 32);
	assert_int_equal(w.lossy, 64);
	for (int i = 0; i < 64; i++) { /* not full: it stays */
		cn_adaptive_window_acked(&w);
	}
	cn_adaptive_window_lost(&w);
	assert_int_equal(w.window, 16);
	assert_int_equal(w.lossy, 32);
	for (int i = 0; i < 10; i++) {
		while (w.acked < w.lossy) {
			cn_adaptive_window_acked(&w);
		}
		cn_adaptive_window_lost(&w);
	}
	assert_int_equal(w.window, LEAST);
}

/* It grows soon to one less than the size that lost frames, and stays there for long. */
static void window__stays_below(void **state)
{
	struct cn_adaptive_window w;
	uint64_t frames = 0;

	(void)state;
	cn_adaptive_window_init(&w);
	while (w.window < 40) {
		until_change(&w, 1);
	}
	cn_adaptive_window_lost(&w);
	while (w.window < 39) {
		frames += until_change(&w, 10000);
	}
	assert_uint_in_range(frames, 20, 40 * 20);
	assert_true(until_change(&w, 1000000) >= 100 * 39);
	assert_int_equal(w.window, 40);
}

/* On ports that do not change, ever fewer frames are lost, and the window is near the capacity. */
static void window__settles(void **state)
{
	(void)state;
	for (uint32_t capacity = LEAST; capacity < 200; capacity = capacity * 3 / 2 + 1) {
		struct cn_adaptive_window w;
		const uint64_t frames = 10000 * (uint64_t)capacity;

		cn_adaptive_window_init(&w);
		run(&w, capacity, frames);
		assert_uint_in_range(w.window, capacity / 2, capacity + 1);
		assert_uint_in_range(run(&w, capacity, frames), 1, 10);
		assert_true(w.probe_wait > 512);
	}
}

/* Ports that have become larger, or are used by fewer, are found after a while. */
static void window__finds_more(void **state)
{
	struct cn_adaptive_window w;

	(void)state;
	cn_adaptive_window_init(&w);
	run(&w, 5, 20000);
	assert_uint_in_range(w.window, LEAST, 6);
	run(&w, 50, 4000000);
	assert_uint_in_range(w.window, 25, 51);
	run(&w, 5, 20000);
	assert_uint_in_range(w.window, LEAST, 6);
}

/* What the ports hold is never exceeded, and used where nothing is lost. */
static void window__known(void **state)
{
	struct cn_adaptive_window w;

	(void)state;
	for (uint32_t known = 1; known < 50; known++) {
		cn_adaptive_window_init_known(&w, known, known);
		assert_int_equal(w.window, known);
		for (int i = 0; i < 100000; i++) {
			cn_adaptive_window_closed(&w);
			if (i % 1000 == 0 && i < 20000) {
				cn_adaptive_window_lost(&w);
				assert_uint_in_range(w.window, (known + 1) / 2,
						     known - (known > 1));
			}
			cn_adaptive_window_acked(&w);
			assert_uint_in_range(w.window, (known + 1) / 2, known);
		}
		run(&w, known, 4000000);
		assert_int_equal(w.window, known);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window__slow_start),
		cmocka_unit_test(window__not_full),
		cmocka_unit_test(window__halves_once_per_window),
		cmocka_unit_test(window__stays_below),
		cmocka_unit_test(window__settles),
		cmocka_unit_test(window__finds_more),
		cmocka_unit_test(window__known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
