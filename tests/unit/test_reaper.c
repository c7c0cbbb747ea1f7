/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/reaper.c: it keeps descriptors until its parent has let go of them, and then ends. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/daemon.h"

#define FOR_EVER 60000 /* ms */

/* Wherever they are, and though no descriptor is left for anything else. */
static void reaper__keeps_descriptors_until_told(void **state)
{
	struct rlimit before, none;
	struct pollfd p[2];
	int a[2], b[2], kept[2];
	pid_t reaper;

	(void)state;
	assert_int_equal(pipe(a), 0);
	assert_int_equal(pipe(b), 0);
	kept[0] = b[1];
	kept[1] = a[1];
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)b[1] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(dup(b[1]), -1);
	reaper = cn_reaper_begin(kept, 2);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(reaper > 0);
	close(a[1]);
	close(b[1]);
	p[0] = (struct pollfd){ .fd = a[0], .events = POLLIN };
	p[1] = (struct pollfd){ .fd = b[0], .events = POLLIN };
	assert_int_equal(poll(p, 2, 50), 0); /* a writer is left of each */
	cn_reaper_end(reaper);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(poll(&p[i], 1, FOR_EVER), 1);
		assert_int_equal(p[i].revents, POLLHUP);
		close(p[i].fd);
	}
	assert_int_equal(wait(NULL), -1); /* until the last child has ended, and of none is told */
	assert_int_equal(errno, ECHILD);
}

static void reaper__of_nothing(void **state)
{
	pid_t reaper = cn_reaper_begin(NULL, 0);

	(void)state;
	assert_true(reaper > 0);
	cn_reaper_end(reaper);
	cn_reaper_end(-1);
	assert_int_equal(wait(NULL), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reaper__keeps_descriptors_until_told),
		cmocka_unit_test(reaper__of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
