/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/log.c: lines about peers are limited, and the suppressed ones are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"

#define SEED 11u

static char text[4096];
static uint32_t lines;

static void take_line(void *ctx, enum collnet_log_level level, const char *line)
{
	size_t n = strlen(text);

	(void)ctx;
	(void)level;
	snprintf(text + n, sizeof(text) - n, "%s\n", line);
	lines++;
}

static struct pair *up(uint32_t nodes)
{
	struct pair *p = pair_up(nodes, SEED);

	text[0] = '\0';
	lines = 0;
	collnet_set_log(take_line, NULL);
	return p;
}

static void end(struct pair *p)
{
	collnet_set_log(NULL, NULL);
	pair_free(p);
}

/* Eight at once, then one in ten seconds. */
static void log__of_one_peer(void **state)
{
	struct pair *p = up(2);

	(void)state;
	for (int i = 0; i < 20; i++) {
		cn_peer_log(pair_peer(p, 0, 1), COLLNET_LOG_INFO, "line %d", i);
	}
	assert_string_equal(text,
			    "line 0\nline 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\n");
	text[0] = '\0';
	pair_run(p, 11000 * CN_MS);
	for (int i = 20; i < 22; i++) {
		cn_peer_log(pair_peer(p, 0, 1), COLLNET_LOG_INFO, "line %d", i);
	}
	assert_string_equal(text, "12 more lines about nodes were suppressed\nline 20\n");
	end(p);
}

/* Twice as many as a node may have peers (8), for all of them together. */
static void log__of_all_peers(void **state)
{
	struct pair *p = up(4);

	(void)state;
	for (uint32_t of = 1; of < 4; of++) {
		for (int i = 0; i < 8; i++) {
			cn_peer_log(pair_peer(p, 0, of), COLLNET_LOG_INFO, "line");
		}
	}
	assert_int_equal(lines, 16);
	assert_int_equal(p->nodes[0].node->log_suppressed, 8);
	end(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log__of_one_peer),
		cmocka_unit_test(log__of_all_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
