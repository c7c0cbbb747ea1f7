/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/node/poller.c: frames that the link does not take, and a link that is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "node/poller.h"

/* A link that takes `room` frames and then none, or fails. */
static struct {
	struct cn_link link; /* first: what the poller sees */
	uint32_t room;
	uint32_t asked, taken; /* calls of send, frames taken */
	int fail;	       /* what send returns instead; 0: nothing */
	uint8_t last[CN_FRAME_HEAD];
} fake;

static size_t fake_recv(struct cn_link *l, struct cn_rx_frame *out, size_t max)
{
	(void)l;
	(void)out;
	(void)max;
	return 0;
}

static void fake_release(struct cn_link *l)
{
	(void)l;
}

static int fake_send(struct cn_link *l, const struct cn_frame *frames, size_t n)
{
	(void)l;
	fake.asked++;
	if (fake.fail != 0) {
		return fake.fail;
	}
	n = n < fake.room ? n : fake.room;
	fake.room -= (uint32_t)n;
	fake.taken += (uint32_t)n;
	if (n > 0) {
		memcpy(fake.last, frames[n - 1].head, sizeof(fake.last));
	}
	return (int)n;
}

static const struct cn_link_ops fake_ops = {
	.name = "fake",
	.recv = fake_recv,
	.release = fake_release,
	.send = fake_send,
};

static struct cn_engine *engine;
static struct cn_poller *poller;

/* A node that is about to say hello, on a full link. */
static int setup(void **state)
{
	struct cn_engine_config c;

	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.link.ops = &fake_ops;
	fake.link.recv_fd = fake.link.send_fd = -1;
	cn_engine_config_init(&c);
	c.node.mac[0] = 2;
	c.node.mac[5] = 1;
	c.node.epoch = 1;
	c.node.mtu = 1500;
	c.node.max_peers = 4;
	c.node.pool_frames = 64;
	snprintf(c.node.name, sizeof(c.node.name), "n1");
	return cn_engine_new(&c, &engine, NULL) != COLLNET_OK ||
	       cn_poller_new(&fake.link, engine, &poller, NULL) != COLLNET_OK;
}

static int teardown(void **state)
{
	(void)state;
	cn_poller_free(poller);
	cn_engine_free(engine);
	return 0;
}

static void turn__what_is_not_taken_is_kept(void **state)
{
	(void)state;
	assert_int_equal(cn_poller_poll(poller, CN_MS), 0);
	assert_true(cn_poller_blocked(poller));
	assert_int_equal(fake.asked, 1);
	assert_int_equal(cn_poller_poll(poller, CN_MS), 0);
	assert_int_equal(fake.asked, 2);
	fake.room = 10;
	assert_true(cn_poller_poll(poller, CN_MS) > 0);
	assert_false(cn_poller_blocked(poller));
	/* It is the hello, whole: to everybody, from us. */
	assert_memory_equal(fake.last, "\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01", 12);
}

static void turn__a_link_that_is_gone(void **state)
{
	(void)state;
	fake.fail = COLLNET_EIFACE;
	assert_int_equal(cn_poller_poll(poller, CN_MS), COLLNET_EIFACE);
}

static void be_patient__asks_when_told_or_later(void **state)
{
	(void)state;
	cn_poller_set_event_driven(poller);
	cn_poller_poll(poller, 100 * CN_MS);
	assert_int_equal(fake.asked, 1);
	assert_true(cn_poller_deadline(poller) <= 110 * CN_MS);
	cn_poller_poll(poller, 101 * CN_MS);
	cn_poller_poll(poller, 109 * CN_MS);
	assert_int_equal(fake.asked, 1);
	cn_poller_writable(poller);
	cn_poller_poll(poller, 109 * CN_MS);
	assert_int_equal(fake.asked, 2);
	/* Nobody says anything: it does not wait for ever. */
	cn_poller_poll(poller, 118 * CN_MS);
	assert_int_equal(fake.asked, 2);
	fake.room = 10;
	assert_true(cn_poller_poll(poller, 119 * CN_MS) > 0);
	assert_int_equal(fake.asked, 3);
	assert_false(cn_poller_blocked(poller));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(turn__what_is_not_taken_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(turn__a_link_that_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(be_patient__asks_when_told_or_later, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
