/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/ipc/shm_ring.c: order, wraparound, full and empty, sleep and wake-up, hostile counters. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/shm_ring.h"

#define SLOTS 8u
#define SLOT  64u
#define GUARD 4096u

/* Both sides of a ring, and bytes behind it that nobody may touch. */
static struct {
	_Alignas(64) uint8_t memory[CN_SHM_RING_BYTES(SLOTS, SLOT)];
	uint8_t guard[GUARD];
} area;
static struct cn_shm_ring producer, consumer;

static int setup(void **state)
{
	(void)state;
	memset(&area, 0, sizeof(area));
	cn_shm_ring_init(&producer, area.memory, SLOTS, SLOT);
	cn_shm_ring_init(&consumer, area.memory, SLOTS, SLOT);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < GUARD; i++) {
		assert_int_equal(area.guard[i], 0);
	}
	return 0;
}

static enum cn_shm_ring_status put(uint32_t value)
{
	uint32_t m[SLOT / 4];

	for (size_t i = 0; i < SLOT / 4; i++) {
		m[i] = value;
	}
	return cn_shm_ring_put(&producer, m, sizeof(m));
}

static void expect(uint32_t value)
{
	const void *slot = NULL;
	uint32_t m[SLOT / 4];

	assert_int_equal(cn_shm_ring_front(&consumer, &slot), CN_SHM_RING_OK);
	memcpy(m, slot, sizeof(m));
	cn_shm_ring_pop(&consumer);
	for (size_t i = 0; i < SLOT / 4; i++) {
		assert_int_equal(m[i], value);
	}
}

static void expect_empty(void)
{
	const void *slot;

	assert_int_equal(cn_shm_ring_front(&consumer, &slot), CN_SHM_RING_NONE);
}

static void put__in_order_around_the_end(void **state)
{
	uint32_t in = 0, out = 0;

	(void)state;
	for (int round = 0; round < 100; round++) {
		for (uint32_t k = 0; k < 1 + (uint32_t)round % SLOTS; k++) {
			assert_int_equal(put(in++), CN_SHM_RING_OK);
		}
		while (out < in) {
			expect(out++);
		}
		expect_empty();
	}
}

static void put__a_full_ring_keeps_what_it_has(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < SLOTS; i++) {
		assert_int_equal(put(i), CN_SHM_RING_OK);
	}
	assert_int_equal(put(99), CN_SHM_RING_NONE);
	expect(0);
	assert_int_equal(put(SLOTS), CN_SHM_RING_OK);
	assert_int_equal(put(99), CN_SHM_RING_NONE);
	for (uint32_t i = 1; i <= SLOTS; i++) {
		expect(i);
	}
	expect_empty();
}

/* What holds the consumer up, and whether a message has been taken, is seen by the producer. */
static void blocked__by_the_consumer(void **state)
{
	uint32_t first, second;

	(void)state;
	producer.at = consumer.at = UINT32_MAX; /* they wrap around */
	producer.shared->head = producer.shared->tail = UINT32_MAX;
	assert_int_equal(cn_shm_ring_blocked_on(&producer), 0);
	put(1);
	first = producer.at;
	put(2);
	second = producer.at;
	cn_shm_ring_set_blocked_on(&consumer, 7);
	assert_int_equal(cn_shm_ring_blocked_on(&producer), 7);
	assert_int_equal(cn_shm_ring_used(&producer), 2);
	assert_false(cn_shm_ring_has_consumed(&producer, first));
	expect(1);
	assert_true(cn_shm_ring_has_consumed(&producer, first));
	assert_false(cn_shm_ring_has_consumed(&producer, second));
	cn_shm_ring_set_blocked_on(&consumer, 0);
	assert_int_equal(cn_shm_ring_blocked_on(&producer), 0);
	expect(2);
	assert_true(cn_shm_ring_has_consumed(&producer, second));
	assert_int_equal(cn_shm_ring_used(&producer), 0);
	cn_shm_ring_set_consumed_oob(&consumer, UINT32_MAX);
	assert_true(cn_shm_ring_has_consumed_oob(&producer, UINT32_MAX));
	assert_false(cn_shm_ring_has_consumed_oob(&producer, 0));
}

static void counters__wrap_around(void **state)
{
	struct cn_shm_ring_shared *s = (struct cn_shm_ring_shared *)(void *)area.memory;

	(void)state;
	s->head = s->tail = producer.at = consumer.at = UINT32_MAX - 2;
	for (uint32_t i = 0; i < SLOTS; i++) {
		assert_int_equal(put(i), CN_SHM_RING_OK);
	}
	assert_int_equal(put(99), CN_SHM_RING_NONE);
	for (uint32_t i = 0; i < SLOTS; i++) {
		expect(i);
	}
	expect_empty();
	assert_int_equal(s->head, SLOTS - 3);
}

/* Every counter that the other side can write: the ring is used within its bounds, or broken. */
static void counters__hostile(void **state)
{
	struct cn_shm_ring_shared *s = (struct cn_shm_ring_shared *)(void *)area.memory;
	const void *slot;

	(void)state;
	for (uint32_t at = UINT32_MAX - 20; at != 20; at++) {
		for (uint32_t far = 0; far < 40; far++) {
			const uint32_t claims[] = { at + far, at - far, at + (far << 27) };

			for (size_t i = 0; i < 3; i++) {
				const uint32_t ahead = claims[i] - at, behind = at - claims[i];

				consumer.at = producer.at = at;
				s->tail = claims[i];
				assert_int_equal(cn_shm_ring_front(&consumer, &slot),
						 ahead > SLOTS ? CN_SHM_RING_BROKEN
						 : ahead == 0  ? CN_SHM_RING_NONE
							       : CN_SHM_RING_OK);
				if (ahead > 0 && ahead <= SLOTS) {
					assert_ptr_equal(slot, s->slots + at % SLOTS * SLOT);
				}
				s->head = claims[i];
				assert_int_equal(put(1), behind > SLOTS	   ? CN_SHM_RING_BROKEN
							 : behind == SLOTS ? CN_SHM_RING_NONE
									   : CN_SHM_RING_OK);
			}
		}
	}
}

static void sleep__is_refused_while_there_is_a_message(void **state)
{
	(void)state;
	assert_true(cn_shm_ring_sleep(&consumer, CN_SHM_RING_ON_MESSAGE));
	assert_int_equal(put(1), CN_SHM_RING_OK);
	assert_int_equal(cn_shm_ring_wake(&producer), CN_SHM_RING_ON_MESSAGE);
	assert_int_equal(put(2), CN_SHM_RING_OK);
	assert_int_equal(cn_shm_ring_wake(&producer), CN_SHM_RING_AWAKE); /* once */
	assert_false(cn_shm_ring_sleep(&consumer, CN_SHM_RING_ON_MESSAGE));
	cn_shm_ring_awake(&consumer);
	assert_int_equal(put(3), CN_SHM_RING_OK);
	assert_false(cn_shm_ring_wake(&producer));
}

static void wants_all__only_of_one_that_sleeps_for_all(void **state)
{
	(void)state;
	assert_false(cn_shm_ring_wants_all(&producer));
	assert_true(cn_shm_ring_sleep(&consumer, CN_SHM_RING_ON_MESSAGE));
	assert_false(cn_shm_ring_wants_all(&producer));
	assert_true(cn_shm_ring_sleep(&consumer, CN_SHM_RING_ON_FUTEX | CN_SHM_RING_FOR_ALL));
	assert_true(cn_shm_ring_wants_all(&producer));
	assert_int_equal(cn_shm_ring_wake(&producer), CN_SHM_RING_ON_FUTEX);
	assert_false(cn_shm_ring_wants_all(&producer));
}

static void processor__is_the_consumers(void **state)
{
	(void)state;
	assert_false(cn_shm_ring_shares_processor(&producer, 0));
	assert_false(cn_shm_ring_shares_processor(&producer, -1));
	cn_shm_ring_set_processor(&consumer, 0);
	assert_true(cn_shm_ring_shares_processor(&producer, 0));
	assert_false(cn_shm_ring_shares_processor(&producer, 1));
	cn_shm_ring_set_processor(&consumer, 3);
	assert_true(cn_shm_ring_shares_processor(&producer, 3));
	cn_shm_ring_set_processor(&consumer, -1);
	assert_false(cn_shm_ring_shares_processor(&producer, 3));
	assert_false(cn_shm_ring_shares_processor(&producer, -1));
}

/* ---- two threads ---------------------------------------------------------------------- */

#define MESSAGES 20000u

static int wakeups; /* an eventfd: a wait for it leaves the processor to the other thread */

static void *produce(void *arg)
{
	const struct timespec a_while = { .tv_nsec = 1000 };
	const uint64_t one = 1;

	(void)arg;
	for (uint32_t i = 0; i < MESSAGES;) {
		if (put(i) != CN_SHM_RING_OK) {
			nanosleep(&a_while, NULL);
			continue;
		}
		i++;
		if (cn_shm_ring_wake(&producer)) {
			assert_int_equal(write(wakeups, &one, sizeof(one)), sizeof(one));
		}
	}
	return NULL;
}

/* A consumer that sleeps whenever it may is woken every time: or this does not end. */
static void sleep__no_wake_up_is_lost(void **state)
{
	uint32_t taken = 0;
	pthread_t thread;
	const void *slot;
	uint64_t n;

	(void)state;
	alarm(60);
	wakeups = eventfd(0, EFD_CLOEXEC);
	assert_true(wakeups >= 0);
	assert_int_equal(pthread_create(&thread, NULL, produce, NULL), 0);
	while (taken < MESSAGES) {
		if (cn_shm_ring_front(&consumer, &slot) == CN_SHM_RING_OK) {
			expect(taken++);
		} else if (cn_shm_ring_sleep(&consumer, CN_SHM_RING_ON_MESSAGE)) {
			assert_int_equal(read(wakeups, &n, sizeof(n)), sizeof(n));
		} else {
			cn_shm_ring_awake(&consumer);
		}
	}
	pthread_join(thread, NULL);
	expect_empty();
	close(wakeups);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(put__in_order_around_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(put__a_full_ring_keeps_what_it_has, setup,
						teardown),
		cmocka_unit_test_setup_teardown(counters__wrap_around, setup, teardown),
		cmocka_unit_test_setup_teardown(processor__is_the_consumers, setup, teardown),
		cmocka_unit_test_setup_teardown(blocked__by_the_consumer, setup, teardown),
		cmocka_unit_test_setup_teardown(counters__hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(sleep__is_refused_while_there_is_a_message, setup,
						teardown),
		cmocka_unit_test_setup_teardown(wants_all__only_of_one_that_sleeps_for_all, setup,
						teardown),
		cmocka_unit_test_setup_teardown(sleep__no_wake_up_is_lost, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
