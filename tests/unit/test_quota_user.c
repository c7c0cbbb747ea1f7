/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/quota.c: who is asked for it, how often the log has him, and the memory that there is, in
 * a control group whose files are this test's.
 */
#include "daemon/daemon.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_capture.h"

#define MIB    ((uint64_t)1 << 20)
#define GROUPS "/sys/fs/cgroup"

/* ---- users ---------------------------------------------------------------------------- */

static struct cn_daemon *new_daemon(void)
{
	struct cn_daemon *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	cn_config_init(&d->config);
	d->now = 1000 * CN_MS;
	d->memory.base = 64 * MIB;
	d->memory.total = 48 * MIB;
	return d;
}

static void find__forgets_idle_users_only(void **state)
{
	struct cn_daemon *d = new_daemon();
	struct cn_user *busy = cn_user_find(d, 7);

	(void)state;
	assert_int_equal(cn_quota_charge(d, busy, CN_QUOTA_CONNECTIONS, 1, NULL), COLLNET_OK);
	for (uid_t uid = 100; uid < 100 + 3 * CN_USERS_MAX; uid++) {
		d->now++;
		assert_non_null(cn_user_find(d, uid));
	}
	cn_user_find(d, 5001)->log_lines = 3;
	d->now++;
	cn_user_find(d, 5002); /* in the place of one that is idle for longer */
	assert_int_equal(cn_user_find(d, 5001)->log_lines, 3);
	assert_ptr_equal(cn_user_find(d, 7), busy);
	assert_int_equal(busy->used[CN_QUOTA_CONNECTIONS], 1);
	/* One that asks again is not the one that is idle for longest, and who comes in the place
	 * of that has nothing of its. */
	for (uint32_t i = 0; i < CN_USERS_MAX; i++) {
		d->users[i].log_suppressed = 1;
	}
	for (uid_t uid = 6000; uid < 6000 + CN_USERS_MAX; uid++) {
		d->now++;
		assert_int_equal(cn_user_find(d, uid)->log_suppressed, 0);
		assert_int_equal(cn_user_find(d, 5001)->log_lines, 3);
	}
	/* When all have something there is no room for another. */
	for (uint32_t i = 0; i < CN_USERS_MAX; i++) {
		d->users[i].used[CN_QUOTA_MEMORY] = 1;
	}
	assert_null(cn_user_find(d, 5));
	free(d);
}

static uint32_t log_all(struct cn_daemon *d, struct cn_user *u)
{
	uint32_t lines = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		lines += cn_user_may_log(d, u);
	}
	return lines;
}

static void may_log__a_burst_and_one_a_second(void **state)
{
	struct cn_daemon *d = new_daemon();
	struct cn_user *u;
	uint32_t lines = 0;

	(void)state;
	d->now += 700 * CN_MS; /* the seconds are the user's */
	u = cn_user_find(d, 1000);
	assert_int_equal(log_all(d, u), 10);
	for (int i = 0; i < 20; i++) {
		d->now += 300 * CN_MS;
		lines += cn_user_may_log(d, u);
		assert_int_equal(lines, (i + 1) * 300 / 1000);
	}
	d->now += 6 * 1000 * CN_MS;
	for (int i = 0; i < 2; i++) {
		assert_true(cn_user_may_log(d, u));
	}
	d->now += 7 * 1000 * CN_MS; /* four of the burst and these are more than a burst */
	assert_int_equal(log_all(d, u), 10);
	d->now += 3600 * 1000 * CN_MS;
	assert_int_equal(log_all(d, u), 10);
	assert_int_equal(u->log_suppressed, 990); /* since the last one that said so */
	free(d);
}

static void may_log__says_what_was_left_out(void **state)
{
	struct cn_daemon *d = new_daemon();
	struct cn_user *u = cn_user_find(d, 1000);

	(void)state;
	for (int i = 0; i < 11; i++) {
		assert_int_equal(cn_user_may_log(d, u), i < 10);
	}
	d->now += 2000 * CN_MS;
	log_capture();
	assert_true(cn_user_may_log(d, u));
	assert_string_equal(logged, "1 log lines about user 1000 were suppressed\n");
	assert_true(cn_user_may_log(d, u));
	assert_int_equal(logged_lines, 1);
	log_capture_end();
	free(d);
}

/* ---- the memory that there is --------------------------------------------------------- */

struct file {
	const char *path, *text;
};

static const struct file *files;      /* up to one without a path; others are not there */
static int first = -1, opened, usage; /* descriptors: the first one, how many, the last one */

static const char *text_of(const char *path)
{
	for (const struct file *f = files; f->path != NULL; f++) {
		if (strcmp(f->path, path) == 0) {
			return f->text;
		}
	}
	return NULL;
}

/* Both names in the C library, of which the second one is for files of any size. */
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

FILE *__wrap_fopen(const char *path, const char *mode)
{
	const char *text = text_of(path);

	(void)mode;
	return text != NULL ? fmemopen((void *)(uintptr_t)text, strlen(text), "r") : NULL;
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	return __wrap_fopen(path, mode);
}

int __wrap_open(const char *path, int flags, ...)
{
	const char *text = text_of(path);
	char name[] = "/tmp/test_quota.XXXXXX";

	(void)flags;
	if (text == NULL) {
		return -1;
	}
	usage = mkstemp(name);
	unlink(name);
	assert_int_equal(write(usage, text, strlen(text)), strlen(text));
	first = opened++ == 0 ? usage : first;
	return usage;
}

int __wrap_open64(const char *path, int flags, ...)
{
	return __wrap_open(path, flags);
}

/* What a group uses changes. */
static void set_usage(const char *text)
{
	assert_int_equal(ftruncate(usage, 0), 0);
	assert_int_equal(pwrite(usage, text, strlen(text), 0), strlen(text));
}

static struct cn_daemon *open_with(const struct file *f)
{
	struct cn_daemon *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	files = f;
	first = -1;
	opened = 0;
	cn_quota_open(d);
	return d;
}

/* Of the group and those above it, the smallest limit counts, and what that group uses. */
static void open__in_nested_groups(void **state)
{
	static const struct file nested[] = {
		{ "/proc/self/cgroup", "1:cpu:/elsewhere\n0::/all.slice/user.slice/job:1.scope\n" },
		{ GROUPS "/all.slice/user.slice/job:1.scope/memory.max", "33554432\n" },
		{ GROUPS "/all.slice/user.slice/job:1.scope/memory.current", "1\n" },
		{ GROUPS "/all.slice/user.slice/memory.max", "16777216\n" },
		{ GROUPS "/all.slice/user.slice/memory.current", "2097152\n" },
		{ GROUPS "/all.slice/memory.max", "max\n" },
		{ GROUPS "/memory.max", "25165824\n" },
		{ GROUPS "/elsewhere/memory.max", "4096\n" },
		{ NULL, NULL },
	};
	struct cn_daemon *d = open_with(nested);

	(void)state;
	assert_int_equal(d->memory.base, 16 * MIB);
	assert_int_equal(d->memory.total, 12 * MIB);
	assert_int_equal(cn_quota_limit(d, CN_QUOTA_MEMORY), 8 * MIB);
	assert_int_equal(opened, 2);
	assert_int_equal(first, usage); /* the first one was closed: its number is taken again */
	assert_int_equal(d->memory.usage_fd, usage);
	/* It is short of memory when it uses more than an eighth of that. */
	assert_false(cn_quota_short(d));
	set_usage("2097153\n");
	assert_true(cn_quota_short(d));
	cn_quota_close(d);
	assert_int_equal(fcntl(usage, F_GETFD), -1);
	free(d);
}

/* The hierarchy of version 1, beside an empty one of version 2. */
static void open__in_a_group_of_version_1(void **state)
{
	static const struct file one[] = {
		{ "/proc/self/cgroup", "4:memory:/job\n0::/\n" },
		{ GROUPS "/memory/job/memory.limit_in_bytes", "67108864\n" },
		{ GROUPS "/memory/job/memory.usage_in_bytes", "4096\n" },
		{ GROUPS "/memory/memory.limit_in_bytes", "9223372036854771712\n" },
		{ NULL, NULL },
	};
	struct cn_daemon *d = open_with(one);

	(void)state;
	assert_int_equal(d->memory.base, 64 * MIB);
	assert_int_equal(opened, 1);
	assert_false(cn_quota_short(d));
	set_usage("8388609\n");
	assert_true(cn_quota_short(d));
	cn_quota_close(d);
	free(d);
}

/* Without a group, it is the machine's memory, which is never called short. */
static void open__without_a_group(void **state)
{
	static const struct file none[] = { { NULL, NULL } };
	struct cn_daemon *d = open_with(none);
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	(void)state;
	assert_int_equal(d->memory.base / page, sysconf(_SC_PHYS_PAGES));
	assert_int_equal(d->memory.usage_fd, -1);
	assert_false(cn_quota_short(d));
	cn_quota_close(d);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__forgets_idle_users_only),
		cmocka_unit_test(may_log__a_burst_and_one_a_second),
		cmocka_unit_test(may_log__says_what_was_left_out),
		cmocka_unit_test(open__in_nested_groups),
		cmocka_unit_test(open__in_a_group_of_version_1),
		cmocka_unit_test(open__without_a_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
