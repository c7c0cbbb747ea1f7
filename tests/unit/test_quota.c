/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/quota.c: users, what they may have, how often the log names them, and the memory that
 * there is, in a control group whose files are this test's.
 */
#include "daemon/daemon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_capture.h"
#include "region_daemon.h"

#define GROUPS "/sys/fs/cgroup"

/* ---- users ---------------------------------------------------------------------------- */

static void find__forgets_idle_users_only(void **state)
{
	struct cn_daemon *d = region_daemon();
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
	struct cn_daemon *d = region_daemon();
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
	struct cn_daemon *d = region_daemon();
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

/* ---- what they may have ---------------------------------------------------------------- */

static void take__up_to_the_limit(void **state)
{
	struct cn_daemon *d = region_daemon();
	struct cn_user *u = cn_user_find(d, 1000), *root = cn_user_find(d, 0);
	struct cn_err err;

	(void)state;
	d->config.limits[CN_QUOTA_ENDPOINTS] = 3;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_ENDPOINTS, 1, &err), COLLNET_OK);
	}
	assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_ENDPOINTS, 1, &err), COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "user 1000 has 3 endpoints"));
	assert_non_null(strstr(err.text, "max-endpoints"));
	assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_ENDPOINTS, 0, &err), COLLNET_OK);
	cn_quota_uncharge(d, u, CN_QUOTA_ENDPOINTS, 1);
	assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_ENDPOINTS, 1, &err), COLLNET_OK);
	d->config.limits[CN_QUOTA_ENDPOINTS] = 2; /* by a reload */
	assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_ENDPOINTS, 1, &err), COLLNET_ELIMIT);
	d->config.limits[CN_QUOTA_ENDPOINTS] = 3;
	/* Nobody else has less for that, and root has no limit. */
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 1001), CN_QUOTA_ENDPOINTS, 3, &err),
			 COLLNET_OK);
	assert_int_equal(cn_quota_charge(d, root, CN_QUOTA_ENDPOINTS, 1000, &err), COLLNET_OK);
	assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_MEMORY, UINT64_MAX, &err), COLLNET_ELIMIT);
	free(d);
}

static void take__memory_of_all(void **state)
{
	struct cn_daemon *d = region_daemon();
	struct cn_err err;

	(void)state;
	/* Half of it each, and three quarters together; also for root. */
	assert_int_equal(cn_quota_limit(d, CN_QUOTA_MEMORY), 32 * MIB);
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 1), CN_QUOTA_MEMORY, 33 * MIB, &err),
			 COLLNET_ELIMIT);
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 1), CN_QUOTA_MEMORY, 32 * MIB, &err),
			 COLLNET_OK);
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 0), CN_QUOTA_MEMORY, 17 * MIB, &err),
			 COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "all users together"));
	assert_non_null(strstr(err.text, "three quarters of its memory (50331648)"));
	d->memory.limited = true; /* the memory is that of a control group */
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 0), CN_QUOTA_MEMORY, 17 * MIB, &err),
			 COLLNET_ELIMIT);
	assert_non_null(strstr(err.text,
			       "quarters of the memory limit of the daemon's control group"));
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 2), CN_QUOTA_MEMORY, 16 * MIB, &err),
			 COLLNET_OK);
	assert_int_equal(d->memory.used, 48 * MIB);
	free(d);
}

static void take__regions_of_all(void **state)
{
	const uint64_t most = CN_REGIONS_MAX / 3;
	struct cn_daemon *d = region_daemon();
	struct cn_err err;

	(void)state;
	for (uid_t uid = 1; uid <= 3; uid++) {
		struct cn_user *u = cn_user_find(d, uid);

		assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_REGIONS, most, &err), COLLNET_OK);
		assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_REGIONS, 1, &err), COLLNET_ELIMIT);
		assert_non_null(strstr(err.text, "max-regions"));
	}
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 0), CN_QUOTA_REGIONS, 1, &err),
			 COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "all users together have 49152 regions"));
	cn_quota_uncharge(d, cn_user_find(d, 2), CN_QUOTA_REGIONS, 1);
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 0), CN_QUOTA_REGIONS, 1, &err),
			 COLLNET_OK);
	free(d);
}

/* The process may have fewer descriptors than all regions need. */
static void take__regions_with_few_descriptors(void **state)
{
	struct cn_daemon *d = region_daemon();
	struct cn_err err;

	(void)state;
	d->descriptors = 1024;
	assert_int_equal(cn_quota_limit(d, CN_QUOTA_REGIONS), 170);
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 1), CN_QUOTA_REGIONS, 171, &err),
			 COLLNET_ELIMIT);
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 0), CN_QUOTA_REGIONS, 512, &err),
			 COLLNET_OK);
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 0), CN_QUOTA_REGIONS, 1, &err),
			 COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "all users together have 512 regions"));
	free(d);
}

/* ---- the memory that there is --------------------------------------------------------- */

struct file {
	const char *path, *text;
};

static const struct file *files; /* up to one without a path; others are not there */

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

static struct cn_daemon *open_with(const struct file *f)
{
	struct cn_daemon *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	files = f;
	cn_quota_open(d);
	return d;
}

/* Of the group and those above it, the smallest limit counts. */
static void open__in_nested_groups(void **state)
{
	static const struct file nested[] = {
		{ "/proc/self/cgroup", "1:cpu:/elsewhere\n0::/all.slice/user.slice/job:1.scope\n" },
		{ GROUPS "/all.slice/user.slice/job:1.scope/memory.max", "33554432\n" },
		{ GROUPS "/all.slice/user.slice/memory.max", "16777216\n" },
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
	assert_true(d->memory.limited);
	free(d);
}

/* The hierarchy of version 1, beside an empty one of version 2. */
static void open__in_a_group_of_version_1(void **state)
{
	static const struct file one[] = {
		{ "/proc/self/cgroup", "4:memory:/job\n0::/\n" },
		{ GROUPS "/memory/job/memory.limit_in_bytes", "67108864\n" },
		{ GROUPS "/memory/memory.limit_in_bytes", "9223372036854771712\n" },
		{ NULL, NULL },
	};
	struct cn_daemon *d = open_with(one);

	(void)state;
	assert_int_equal(d->memory.base, 64 * MIB);
	assert_true(d->memory.limited);
	free(d);
}

/* Without a group, it is the machine's memory. */
static void open__without_a_group(void **state)
{
	static const struct file none[] = { { NULL, NULL } };
	struct cn_daemon *d = open_with(none);
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	(void)state;
	assert_int_equal(d->memory.base / page, sysconf(_SC_PHYS_PAGES));
	assert_false(d->memory.limited);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__forgets_idle_users_only),
		cmocka_unit_test(may_log__a_burst_and_one_a_second),
		cmocka_unit_test(may_log__says_what_was_left_out),
		cmocka_unit_test(take__up_to_the_limit),
		cmocka_unit_test(take__memory_of_all),
		cmocka_unit_test(take__regions_of_all),
		cmocka_unit_test(take__regions_with_few_descriptors),
		cmocka_unit_test(open__in_nested_groups),
		cmocka_unit_test(open__in_a_group_of_version_1),
		cmocka_unit_test(open__without_a_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
