/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/keeper.c: it keeps a descriptor until its parent has let go of it, and then ends. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/daemon.h"

#define FOR_EVER 60000 /* ms */

static void keeper__keeps_a_descriptor_until_told(void **state)
{
	int ends[2], keeper;
	struct pollfd p;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	keeper = cn_keeper_begin(ends[1]);
	assert_true(keeper >= 0);
	assert_int_equal(close(ends[1]), 0);
	p = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	assert_int_equal(poll(&p, 1, 50), 0); /* a writer is left */
	cn_keeper_end(keeper);
	assert_int_equal(poll(&p, 1, FOR_EVER), 1);
	assert_int_equal(p.revents, POLLHUP);
	close(ends[0]);
	assert_int_equal(wait(NULL), -1); /* until the last child has ended, and of none is told */
	assert_int_equal(errno, ECHILD);
}

static void keeper__of_nothing(void **state)
{
	int keeper = cn_keeper_begin(-1);

	(void)state;
	assert_true(keeper >= 0);
	cn_keeper_end(keeper);
	cn_keeper_end(-1);
	assert_int_equal(wait(NULL), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeper__keeps_a_descriptor_until_told),
		cmocka_unit_test(keeper__of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
