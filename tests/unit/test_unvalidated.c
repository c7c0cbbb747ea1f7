/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/unvalidated.c: hellos to addresses that are not validated are limited and delayed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"

#define SEED 11u

static struct pair *p;
static struct cn_node *n;

static int begin(void **state)
{
	(void)state;
	p = pair_new(1, SEED, NULL);
	n = p->nodes[0].node;
	pair_run(p, 3000 * CN_MS);
	return 0;
}

static int end(void **state)
{
	(void)state;
	pair_free(p);
	return 0;
}

static const uint8_t *address(uint32_t i)
{
	static uint8_t mac[6] = { 2, 9 };

	mac[4] = (uint8_t)(i >> 8);
	mac[5] = (uint8_t)i;
	return mac;
}

/* Time passes; the addresses that hellos go to, by their last byte, with the echo. */
static const char *after(cn_time t)
{
	static char log[256];
	const struct cn_unvalidated *u;
	size_t len = 0;

	cn_node_expire(n, n->now + t);
	log[0] = '\0';
	while ((u = cn_unvalidated_next(n)) != NULL) {
		len += (size_t)snprintf(log + len, sizeof(log) - len, "%u echo %u; ", u->mac[5],
					(unsigned)u->echo);
	}
	return log;
}

static void unvalidated__reply_at_once(void **state)
{
	(void)state;
	cn_unvalidated_reply(n, address(1), CN_HELLO_REPLY, 7, 0);
	cn_unvalidated_reply(n, address(2), CN_HELLO_REPLY, 8, 0);
	assert_string_equal(after(0), "1 echo 7; 2 echo 8; ");
	assert_string_equal(after(1000 * CN_MS), "");
	assert_int_equal(cn_node_peers(n), 0);
	assert_int_equal(n->nunvalidated_used, 0);
}

/* Two hellos for one cause are 20 ms apart, for different causes they are not. */
static void unvalidated__spacing(void **state)
{
	(void)state;
	cn_unvalidated_reply(n, address(1), CN_HELLO_REPLY, 1, 0);
	assert_string_equal(after(0), "1 echo 1; ");
	cn_unvalidated_reply(n, address(1), CN_HELLO_BEGIN, 2, 0);
	assert_string_equal(after(0), "1 echo 2; ");
	cn_unvalidated_reply(n, address(1), CN_HELLO_REPLY, 3, 0);
	assert_string_equal(after(CN_HELLO_SPACING - 1), "");
	assert_string_equal(after(1), "1 echo 3; ");
}

/* A reply with jitter is overtaken by one that has none; both are one hello. */
static void unvalidated__jitter(void **state)
{
	(void)state;
	cn_unvalidated_reply(n, address(1), CN_HELLO_BEGIN, 0, 50 * CN_MS);
	assert_string_equal(after(49 * CN_MS), "");
	cn_unvalidated_reply(n, address(1), CN_HELLO_REPLY, 5, 0);
	assert_string_equal(after(0), "1 echo 5; ");
	assert_string_equal(after(100 * CN_MS), "");
}

static void unvalidated__forget(void **state)
{
	(void)state;
	cn_unvalidated_reply(n, address(1), CN_HELLO_REPLY, 1, 0);
	cn_unvalidated_reply(n, address(2), CN_HELLO_REPLY, 1, 10 * CN_MS);
	cn_unvalidated_forget(n, address(1));
	cn_unvalidated_forget(n, address(2));
	cn_unvalidated_forget(n, address(3));
	assert_int_equal(n->nunvalidated_used, 0);
	assert_string_equal(after(100 * CN_MS), "");
}

/* A flood of addresses: bounded entries, and 64 replies at once. */
static void unvalidated__flood(void **state)
{
	uint32_t sent = 0;

	(void)state;
	for (uint32_t i = 0; i < 10000; i++) {
		cn_unvalidated_reply(n, address(i), CN_HELLO_BEGIN, 0, 0);
		sent += cn_unvalidated_next(n) != NULL;
	}
	assert_int_equal(sent, 64);
	assert_true(n->nunvalidated_used <= n->nunvalidated);
	assert_int_equal(n->nunvalidated, cn_unvalidated_slots(8));
	for (uint32_t i = 0; i < 10000; i++) {
		cn_unvalidated_forget(n, address(i));
	}
	assert_int_equal(n->nunvalidated_used, 0);
	cn_unvalidated_reply(n, address(1), CN_HELLO_BEGIN, 0, 0); /* there is no reply for it */
	assert_int_equal(n->nunvalidated_used, 0);
}

static void unvalidated__slots(void **state)
{
	(void)state;
	assert_int_equal(cn_unvalidated_slots(1), 16);
	assert_int_equal(cn_unvalidated_slots(17), 32);
	assert_int_equal(cn_unvalidated_slots(4096), 1024);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(unvalidated__reply_at_once), TEST(unvalidated__spacing),
		TEST(unvalidated__jitter),	  TEST(unvalidated__forget),
		TEST(unvalidated__flood),	  TEST(unvalidated__slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
