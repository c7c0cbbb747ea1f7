/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/receiver.c: frames that arrive one by one, around one gap or several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"

#define SEED 77u

static void with_reorder_buffer(struct cn_node_config *c)
{
	c->reorder = CN_REORDER_MAX;
}

static uint8_t held[8][CN_FRAME_HEAD + 1000];
static uint32_t nheld;

/* Holds what node 0 sends. */
static bool hold(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	(void)p;
	(void)to;
	if (from == 0 && nheld < 8 && len == CN_HEAD + 1000) {
		memcpy(held[nheld++], f, len);
	}
	return from != 0;
}

/* Node 0 sends so many frames, from this number on, and none arrives yet. */
static struct pair *hold_frames(uint32_t n, uint32_t first)
{
	struct pair *p = pair_new(2, SEED, with_reorder_buffer);

	p->first_seq = first;
	assert_true(pair_run_up(p, 2000 * CN_MS));
	p->filter = hold;
	nheld = 0;
	pair_trace(p);
	pair_send(p, 0, 1, n, 1000);
	pair_run(p, 100 * CN_US);
	assert_int_equal(nheld, n);
	p->trace_len = 0;
	p->trace[0] = '\0';
	return p;
}

static void arrives(struct pair *p, uint32_t frame)
{
	pair_input(p, 1, held[frame], sizeof(held[frame]));
}

/* The frame that seemed to be lost comes before the NAK is sent, which nobody needs then. */
static void receiver__no_nak_for_a_gap_that_is_closed(void **state)
{
	struct pair *p = hold_frames(5, 0);

	(void)state;
	for (uint32_t i = 1; i <= 5; i++) {
		arrives(p, i % 5);
		assert_int_equal(pair_peer(p, 1, 0)->nak_due, i == 4);
	}
	pair_run(p, CN_MS);
	assert_int_equal(pair_stats(p, 1).naks_sent, 0);
	pair_free(p);
}

/* Behind a gap that is closed there is another one, and no frame that comes later shows it. */
static void receiver__another_gap(void **state)
{
	struct pair *p = hold_frames(4, 0);

	(void)state;
	arrives(p, 1);
	arrives(p, 3);
	arrives(p, 0);
	pair_run(p, 400 * CN_US);
	pair_assert_trace(p, "");
	pair_run(p, 200 * CN_US);
	pair_assert_trace(p, "b: NAK 2 SACK 0x1; a: RESEND 2 ACKREQ");
	pair_free(p);
}

/* Numbers that begin again at 0 do not go backwards: the loss was reported. */
static void receiver__numbers_wrap_behind_a_gap(void **state)
{
	struct pair *p = hold_frames(8, UINT32_MAX - 5);

	(void)state;
	for (uint32_t i = 1; i < 8; i++) {
		arrives(p, i);
		assert_int_equal(pair_peer(p, 1, 0)->nak_due, i == 4);
		pair_poke(p);
		pair_run(p, CN_US);
	}
	assert_int_equal(pair_stats(p, 1).naks_sent, 1);
	pair_free(p);
}

/* The sender's last ACK frame is so many data frames old that its number seems to lie ahead. */
static void receiver__old_announcement(void **state)
{
	struct pair *p = hold_frames(4, 0);
	struct cn_receiver *r = &pair_peer(p, 1, 0)->rx;

	(void)state;
	r->announced = r->expected - 0x80000100u;
	arrives(p, 1);
	arrives(p, 0);
	arrives(p, 2);
	arrives(p, 3);
	pair_run(p, 10 * CN_MS);
	assert_int_equal(pair_stats(p, 1).naks_sent, 0);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receiver__no_nak_for_a_gap_that_is_closed),
		cmocka_unit_test(receiver__another_gap),
		cmocka_unit_test(receiver__numbers_wrap_behind_a_gap),
		cmocka_unit_test(receiver__old_announcement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
