/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/source.c: the ring of sources, by the log of what is asked and sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/source.h"

static char asked[256];
static uint32_t quantum = 1;

struct fake {
	struct cn_source source; /* first */
	const char *name;
	uint32_t frames; /* that it still has */
	struct cn_source_ring *ring;
	struct cn_window *window;
};

/* "a" for a frame of a, "a-" when it has none; it leaves the ring after its last frame. */
static bool pull(struct cn_source *s, cn_time now, struct cn_tx *out)
{
	struct fake *f = (struct fake *)(void *)s;

	(void)now;
	strcat(asked, f->name);
	if (f->frames == 0) {
		strcat(asked, "- ");
		return false;
	}
	strcat(asked, " ");
	out->token = s;
	if (--f->frames == 0 && f->ring != NULL) {
		cn_source_stop(f->ring, s, f->window);
	}
	return true;
}

static void pull_all(struct cn_source_ring *r, uint32_t n)
{
	struct cn_tx tx;

	asked[0] = '\0';
	while (n-- > 0) {
		if (!cn_source_pull(r, 0, quantum, &tx)) {
			strcat(asked, "none ");
		}
	}
}

static void source__round_robin(void **state)
{
	struct cn_source_ring r = { .n = 0 };
	struct cn_window w = { 0 };
	struct fake a = { { .pull = pull }, "a", 3, NULL, NULL };
	struct fake b = { { .pull = pull }, "b", 1, NULL, NULL };
	struct fake c = { { .pull = pull }, "c", 2, NULL, NULL };

	(void)state;
	pull_all(&r, 1);
	assert_string_equal(asked, "none ");
	cn_source_start(&r, &a.source);
	cn_source_start(&r, &b.source);
	cn_source_start(&r, &c.source);
	pull_all(&r, 7);
	/* who has none is passed over; each is asked once per call */
	assert_string_equal(asked, "a b c a b- c a b- c- a- none ");
	cn_source_stop(&r, &a.source, &w);
	a.frames = 1;
	cn_source_start(&r, &a.source);
	pull_all(&r, 1);
	assert_string_equal(asked, "b- c- a ");
	assert_int_equal(r.n, 3);
}

/* Each sends three frames in a row, or what it has. */
static void source__quantum(void **state)
{
	struct cn_source_ring r = { .n = 0 };
	struct fake a = { { .pull = pull }, "a", 7, NULL, NULL };
	struct fake b = { { .pull = pull }, "b", 2, NULL, NULL };

	(void)state;
	cn_source_start(&r, &a.source);
	cn_source_start(&r, &b.source);
	quantum = 3;
	pull_all(&r, 10);
	assert_string_equal(asked, "a a a b b b- a a a b- a a- b- none ");
	quantum = 1;
}

/* A source ends itself when it is asked: the ring goes on with the next one. */
static void source__ends_itself(void **state)
{
	struct cn_source_ring r = { .n = 0 };
	struct cn_window w = { 0 };
	struct fake a = { { .pull = pull }, "a", 1, &r, &w };
	struct fake b = { { .pull = pull }, "b", 2, &r, &w };

	(void)state;
	cn_source_start(&r, &a.source);
	cn_source_start(&r, &b.source);
	pull_all(&r, 4);
	assert_string_equal(asked, "a b b none ");
	assert_int_equal(r.n, 0);
	assert_null(r.current);
	cn_source_stop(&r, &a.source, &w); /* not in the ring: nothing happens */
	assert_int_equal(r.n, 0);
}

/* What a source has in flight leaves the node's window with it, and it starts at 0. */
static void source_stop__leaves_the_window(void **state)
{
	struct cn_source_ring r = { .n = 0 };
	struct cn_window w = { .limit = COLLNET_WINDOW_OFF };
	struct fake a = { { .pull = pull }, "a", 9, NULL, NULL };

	(void)state;
	cn_source_start(&r, &a.source);
	cn_flight_sent(&a.source.flight, &w, 100);
	cn_flight_sent(&a.source.flight, &w, 100);
	assert_int_equal(w.in_flight, 2);
	cn_source_stop(&r, &a.source, &w);
	assert_int_equal(w.in_flight, 0);
	cn_source_start(&r, &a.source);
	assert_true(a.source.flight.unacked == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(source__round_robin),
		cmocka_unit_test(source__quantum),
		cmocka_unit_test(source__ends_itself),
		cmocka_unit_test(source_stop__leaves_the_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
