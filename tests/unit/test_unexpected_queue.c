/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/unexpected_queue.c: frames by operation or peer, in the order in which they came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/stream.h"
#include "coll/unexpected_queue.h"

/* "5:0 6:1 5:2": number of the operation and position. */
static const char *text_of(const struct cn_unexpected_queue *q)
{
	static char text[256];
	size_t len = 0;

	text[0] = '\0';
	for (const struct cn_unexpected *f = q->first; f != NULL; f = f->next) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%u:%u ",
					cn_stream_number(f->stream), f->len);
		assert_true(f->next != NULL || q->last == f);
	}
	assert_true(q->first != NULL || q->last == NULL);
	return text;
}

static void unexpected_queue__splits_by_operation(void **state)
{
	static const uint32_t number[] = { 5, 6, 5, 4095, 6, 5 };
	struct cn_unexpected f[6];
	struct cn_unexpected_queue q = { NULL, NULL }, out = { NULL, NULL };

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		f[i].stream = cn_stream(number[i], 7);
		f[i].len = (uint16_t)i;
		cn_unexpected_queue_append(&q, &f[i]);
	}
	cn_unexpected_queue_split(&q, CN_UNEXPECTED_OF_OPERATION, 5, &out);
	assert_string_equal(text_of(&out), "5:0 5:2 5:5 ");
	assert_string_equal(text_of(&q), "6:1 4095:3 6:4 ");
	out = (struct cn_unexpected_queue){ NULL, NULL };
	cn_unexpected_queue_split(&q, CN_UNEXPECTED_OF_OPERATION, 7, &out);
	assert_string_equal(text_of(&out), "");
	assert_string_equal(text_of(&q), "6:1 4095:3 6:4 ");
	/* numbers have 12 bits on the wire */
	cn_unexpected_queue_split(&q, CN_UNEXPECTED_OF_OPERATION, 4095 + 3 * 4096, &out);
	assert_string_equal(text_of(&out), "4095:3 ");
	assert_ptr_equal(cn_unexpected_queue_pop(&q), &f[1]);
	assert_string_equal(text_of(&q), "6:4 ");
	assert_ptr_equal(cn_unexpected_queue_pop(&q), &f[4]);
	assert_null(cn_unexpected_queue_pop(&q));
	cn_unexpected_queue_append(&q, &f[0]);
	assert_string_equal(text_of(&q), "5:0 ");
}

static void unexpected_queue__splits_by_peer(void **state)
{
	static const uint16_t peer[] = { 3, 5, 3, 4099 };
	struct cn_unexpected f[4];
	struct cn_unexpected_queue q = { NULL, NULL }, out = { NULL, NULL };

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		f[i].stream = cn_stream(5, 7);
		f[i].peer = peer[i];
		f[i].len = (uint16_t)i;
		cn_unexpected_queue_append(&q, &f[i]);
	}
	cn_unexpected_queue_split(&q, CN_UNEXPECTED_OF_PEER, 5, &out);
	assert_string_equal(text_of(&out), "5:1 ");
	out = (struct cn_unexpected_queue){ NULL, NULL };
	cn_unexpected_queue_split(&q, CN_UNEXPECTED_OF_PEER, 4099, &out);
	assert_string_equal(text_of(&out), "5:3 ");
	assert_string_equal(text_of(&q), "5:0 5:2 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unexpected_queue__splits_by_operation),
		cmocka_unit_test(unexpected_queue__splits_by_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
