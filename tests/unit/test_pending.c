/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/pending.c: what is sent, in which order, when buffers are short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/pending.h"

#define PEERS 3u

/* Stand for the transport: --wrap in tests/local.mk. */
struct fake {
	uint32_t index;
} peers[PEERS] = { { 0 }, { 1 }, { 2 } };
static uint32_t buffers;
static char sent[256];

static struct cn_peer *peer(uint32_t i)
{
	return (struct cn_peer *)(void *)&peers[i];
}

uint32_t __wrap_cn_peer_index(const struct cn_peer *p);
uint32_t __wrap_cn_peer_index(const struct cn_peer *p)
{
	return ((const struct fake *)(const void *)p)->index;
}

const char *__wrap_cn_peer_name(const struct cn_peer *p);
const char *__wrap_cn_peer_name(const struct cn_peer *p)
{
	(void)p;
	return "fake";
}

/* The last line of the log, and how many there are. */
static char line[256];
static uint32_t lines;

void __wrap_cn_peer_log(struct cn_peer *p, enum collnet_log_level level, const char *fmt, ...);
void __wrap_cn_peer_log(struct cn_peer *p, enum collnet_log_level level, const char *fmt, ...)
{
	va_list ap;

	(void)p;
	assert_int_equal(level, COLLNET_LOG_ERROR);
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	lines++;
}

/* "1:c ": message c went to peer 1; "1! ": no buffer. */
int __wrap_cn_node_control(struct cn_node *n, struct cn_peer *p, const void *data, size_t len);
int __wrap_cn_node_control(struct cn_node *n, struct cn_peer *p, const void *data, size_t len)
{
	char *at = sent + strlen(sent);
	size_t room = sizeof(sent) - strlen(sent);

	assert_null(n);
	if (buffers == 0) {
		snprintf(at, room, "%u! ", __wrap_cn_peer_index(p));
		return COLLNET_ELIMIT;
	}
	buffers--;
	snprintf(at, room, "%u:%.*s ", __wrap_cn_peer_index(p), (int)len, (const char *)data);
	return COLLNET_OK;
}

/* False: it is lost. */
static bool send_to(struct cn_pending_queue *q, uint32_t to, const char *m)
{
	return cn_pending_send(q, peer(to), (const uint8_t *)m, strlen(m));
}

/* At each expiry, peers in the order of their oldest message, and each one's in order. */
static void pending__order_and_retry(void **state)
{
	struct cn_pending_queue q = { 0 };

	(void)state;
	assert_true(cn_pending_init(&q, NULL, PEERS));
	assert_true(cn_pending_deadline(&q) == CN_NEVER);
	buffers = 1;
	sent[0] = '\0';
	send_to(&q, 0, "a");
	send_to(&q, 1, "b");
	send_to(&q, 1, "c");
	send_to(&q, 2, "d");
	send_to(&q, 1, "e");
	assert_string_equal(sent, "0:a 1! 2! "); /* c and e wait for b without a trial */
	assert_int_equal(q.n, 4);
	assert_true(cn_pending_deadline(&q) == 0); /* the next expiry knows the time */
	sent[0] = '\0';
	buffers = 1;
	cn_pending_expire(&q, 1000);
	assert_string_equal(sent, "1:b 1! 2! ");
	assert_true(cn_pending_deadline(&q) == 1000 + 5 * CN_MS);
	sent[0] = '\0';
	buffers = 9;
	cn_pending_expire(&q, 1001); /* not yet */
	assert_string_equal(sent, "");
	send_to(&q, 0, "f"); /* nothing waits for peer 0 */
	send_to(&q, 2, "g");
	assert_string_equal(sent, "0:f ");
	sent[0] = '\0';
	cn_pending_expire(&q, 1000 + 5 * CN_MS);
	assert_string_equal(sent, "1:c 2:d 1:e 2:g ");
	assert_int_equal(q.n, 0);
	assert_true(cn_pending_deadline(&q) == CN_NEVER);
	cn_pending_fini(&q);
}

/* A peer that is gone takes its messages with it, and those alone. */
static void pending_drop__one_peer(void **state)
{
	struct cn_pending_queue q = { 0 };

	(void)state;
	assert_true(cn_pending_init(&q, NULL, PEERS));
	buffers = 0;
	send_to(&q, 0, "a");
	send_to(&q, 1, "b");
	send_to(&q, 0, "c");
	cn_pending_drop(&q, peer(2));
	assert_int_equal(q.n, 3);
	cn_pending_drop(&q, peer(0));
	assert_int_equal(q.n, 1);
	send_to(&q, 1, "d");
	sent[0] = '\0';
	buffers = 9;
	cn_pending_expire(&q, 0);
	assert_string_equal(sent, "1:b 1:d ");
	send_to(&q, 0, "e");
	assert_string_equal(sent, "1:b 1:d 0:e ");
	cn_pending_fini(&q);
}

/* A peer that takes nothing has its share of the queue; those to others wait as before. */
static void pending__bounds_of_one_peer(void **state)
{
	struct cn_pending_queue q = { 0 };

	(void)state;
	assert_true(cn_pending_init(&q, NULL, PEERS));
	buffers = 0;
	lines = 0;
	for (uint32_t i = 0; i < 20 * CN_PENDING_OF_PEER; i++) {
		assert_int_equal(send_to(&q, 0, "a"), i < CN_PENDING_OF_PEER);
	}
	assert_int_equal(q.of_peer[0], CN_PENDING_OF_PEER);
	assert_int_equal(lines, 19 * CN_PENDING_OF_PEER);
	assert_string_equal(line, "a message about a team to node fake is lost: too many others "
				  "are pending");
	send_to(&q, 1, "b");
	cn_pending_drop(&q, peer(0));
	sent[0] = '\0';
	buffers = 1;
	cn_pending_expire(&q, 0);
	assert_string_equal(sent, "1:b ");
	assert_int_equal(q.n, 0);
	cn_pending_fini(&q);
}

/* Messages that still wait are freed; the sanitizer would see them. */
static void pending_fini__frees(void **state)
{
	struct cn_pending_queue q = { 0 };

	(void)state;
	assert_true(cn_pending_init(&q, NULL, PEERS));
	buffers = 0;
	send_to(&q, 0, "a");
	cn_pending_fini(&q);
	assert_null(q.first);
	assert_int_equal(q.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pending__order_and_retry),
		cmocka_unit_test(pending_drop__one_peer),
		cmocka_unit_test(pending__bounds_of_one_peer),
		cmocka_unit_test(pending_fini__frees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
