/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/mapping.c: places of clients' buffers; their life is in test_regions. */
#include "daemon/daemon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define BYTES 4096u

static uint8_t memory[BYTES];

/* Whether so many bytes from there are a buffer. */
static bool resolves(uint32_t region, uint64_t offset, uint64_t len)
{
	const struct cn_msg_buffer_ref place = { .region = region, .offset = offset };
	struct cn_mapping s = { .p = memory, .bytes = BYTES, .sealed = true, .refs = 1 }, *ref;
	static struct cn_client c;
	bool ok;
	void *p;

	c.regions[1] = &s;
	p = cn_mapping_resolve(&c, &place, len, &ref, &ok);
	assert_ptr_equal(p, ok && len > 0 ? memory + offset : NULL);
	assert_ptr_equal(ref, p != NULL ? &s : NULL);
	assert_int_equal(s.refs, p != NULL ? 2 : 1);
	return ok;
}

static void resolve__within_a_region(void **state)
{
	(void)state;
	assert_true(resolves(1, 0, BYTES));
	assert_true(resolves(1, BYTES - 1, 1));
	assert_false(resolves(1, 0, BYTES + 1));
	assert_false(resolves(1, 1, BYTES));
	assert_false(resolves(1, BYTES, 1));
	assert_false(resolves(1, BYTES + 1, 1));
	assert_false(resolves(1, 1, UINT64_MAX));
	assert_false(resolves(0, 0, 1));
	assert_false(resolves(CN_MSG_REGIONS, 0, 1));
	assert_false(resolves(CN_MSG_NO_REGION, 0, 1));
	/* Nothing is anywhere. */
	assert_true(resolves(0, 0, 0));
	assert_true(resolves(CN_MSG_NO_REGION, 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(resolve__within_a_region) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
