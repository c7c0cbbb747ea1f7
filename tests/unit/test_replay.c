/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/proto/peer.c: frames of older incarnations and sessions that are replayed change nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"

#define SEED 4242u
#define KEPT 400

static struct {
	uint8_t data[KEPT][1514];
	size_t len[KEPT];
	uint32_t to[KEPT], count;
} tape;

static bool record(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	(void)p;
	(void)from;
	if (tape.count < KEPT) {
		memcpy(tape.data[tape.count], f, len);
		tape.len[tape.count] = len;
		tape.to[tape.count++] = to;
	}
	return true;
}

/* All frames of older incarnations, hellos included, are replayed: counted, dropped, and
 * nothing else happens. */
static void peer__replay_of_older_epochs(void **state)
{
	struct pair *p = pair_new(2, SEED, NULL);
	uint64_t stale;

	(void)state;
	tape.count = 0;
	p->filter = record;
	assert_true(pair_run_up(p, 100 * CN_MS));
	for (int life = 0; life < 3; life++) {
		pair_exchange(p, 0, 1);
		pair_stop(p, 1);
		pair_run(p, 20 * CN_MS);
		pair_start(p, 1);
		if (life == 2) {
			p->filter = NULL; /* from now on it is the present */
		}
		assert_true(pair_run_up(p, 500 * CN_MS));
	}
	pair_exchange(p, 0, 1);
	pair_log_clear(p);
	stale = pair_stats(p, 0).stale_frames;
	for (uint32_t i = 0; i < tape.count; i++) {
		if (tape.to[i] == 0) {
			pair_inject(p, 0, tape.data[i], tape.len[i], p->now + i * CN_MS);
		}
	}
	pair_run(p, 3000 * CN_MS);
	assert_string_equal(p->log, "");
	assert_true(pair_stats(p, 0).stale_frames > stale + 20);
	pair_exchange(p, 0, 1);
	pair_free(p);
}

/* Hellos of an older session of the same incarnations arrive late: no new session. */
static void peer__replay_of_older_lives(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	tape.count = 0;
	p->filter = record;
	for (int life = 0; life < 3; life++) {
		pair_exchange(p, 0, 1);
		if (life == 2) {
			p->filter = NULL;
		}
		pair_expect(p, 1, 0);
		p->cut[0][1] = p->cut[1][0] = true;
		pair_run(p, 2500 * CN_MS);
		assert_false(pair_is_up(p, 1, 0));
		p->cut[0][1] = p->cut[1][0] = false;
		assert_true(pair_run_up(p, 1500 * CN_MS));
	}
	pair_exchange(p, 0, 1);
	pair_log_clear(p);
	for (uint32_t i = 0; i < tape.count; i++) {
		pair_inject(p, tape.to[i], tape.data[i], tape.len[i], p->now + i * CN_MS);
	}
	pair_run(p, 3000 * CN_MS);
	assert_string_equal(p->log, "");
	pair_exchange(p, 0, 1);
	pair_free(p);
}

/* A replay to a node that never knew the older epoch is believed at first, and put right: the two
 * must not go on in one session from different numbers. */
static void peer__replay_to_a_new_node(void **state)
{
	struct pair *p = pair_new(2, SEED, NULL);

	(void)state;
	tape.count = 0;
	p->filter = record;
	assert_true(pair_run_up(p, 100 * CN_MS));
	pair_stop(p, 1);
	pair_stop(p, 0);
	p->filter = NULL;
	pair_start(p, 0);
	pair_start(p, 1);
	assert_true(pair_run_up(p, 100 * CN_MS));
	pair_exchange(p, 0, 1);
	for (uint32_t to = 0; to < 3; to++) { /* to one, the other, both */
		for (uint32_t i = 0; i < tape.count; i++) {
			if (to == 2 || tape.to[i] == to) {
				pair_inject(p, tape.to[i], tape.data[i], tape.len[i],
					    p->now + i * CN_MS);
			}
		}
		pair_run(p, 3000 * CN_MS);
		if (!pair_run_up(p, 1000 * CN_MS)) {
			fail_msg("replay %u: not up\n%s", to, p->log);
		}
		pair_exchange(p, 0, 1);
		pair_log_clear(p);
		pair_run(p, 5000 * CN_MS);
		assert_string_equal(p->log, "");
	}
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer__replay_of_older_epochs),
		cmocka_unit_test(peer__replay_of_older_lives),
		cmocka_unit_test(peer__replay_to_a_new_node),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
