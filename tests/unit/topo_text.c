/* SPDX-License-Identifier: BSD-2-Clause */
/* Networks from texts, for tests. */
#include "topo_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct cn_topo *topo_bytes(const char *text, size_t len)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };

	if (cn_topo_parse(text, len, "net", &t, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return t;
}

struct cn_topo *topo_text(const char *text)
{
	return topo_bytes(text, strlen(text));
}

void topo_refused(topo_parser *parse, const char *name, const struct topo_refusal *bad, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct cn_topo *t = NULL;
		struct cn_err err = { 0 };

		if (parse(bad[i].text, strlen(bad[i].text), name, &t, &err) != COLLNET_ETOPO) {
			fail_msg("'%s' was taken", bad[i].text);
		}
		assert_null(t);
		if (strncmp(err.text, bad[i].error, strlen(bad[i].error)) != 0) {
			fail_msg("'%s' gave '%s', not '%s'", bad[i].text, err.text, bad[i].error);
		}
	}
}

uint32_t topo_damaged(topo_parser *parse, const char *name, const char *good, uint64_t seed)
{
	size_t most = strlen(good), head = strlen(name);
	uint32_t failed = 0;

	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < 20000; round++) {
		size_t len = 1 + cn_random(&seed) % most;
		uint32_t hits = (uint32_t)(cn_random(&seed) % 4);
		char *text = malloc(len); /* so that a sanitizer sees a byte more */
		struct cn_topo *t = NULL;
		struct cn_err err = { 0 };

		assert_non_null(text);
		memcpy(text, good, len);
		for (uint32_t i = 0; i < hits; i++) {
			text[cn_random(&seed) % len] = (char)cn_random(&seed);
		}
		if (parse(text, len, name, &t, &err) == 0) {
			assert_non_null(t);
			cn_topo_free(t);
		} else {
			failed++;
			assert_memory_equal(err.text, name, head);
			assert_int_equal(err.text[head], ':');
			assert_uint_in_range(err.text[head + 1], '1', '9');
		}
		free(text);
	}
	return failed;
}
