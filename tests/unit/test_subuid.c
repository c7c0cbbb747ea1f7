/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/subuid.c: the ranges of a file, and who is charged for an ID in one of them. */
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/daemon.h"
#include "engine_fixture.h"

static struct cn_subuids s;

static void read_by(void (*reader)(struct cn_subuids *, const char *), const char *text)
{
	char path[] = "/tmp/collnet-subuid.XXXXXX";
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	reader(&s, path);
	unlink(path);
}

static void read_text(const char *text)
{
	read_by(cn_subuid_read, text);
}

static void subuid__ranges(void **state)
{
	(void)state;
	read_text(
		"1000:100000:65536\n1001:165536:65536\n1000:300000:1\n2000:4294967295:4294967295");
	assert_int_equal(s.n, 4);
	assert_int_equal(cn_subuid_owner(&s, 0), 0);
	assert_int_equal(cn_subuid_owner(&s, 1000), 1000);
	assert_int_equal(cn_subuid_owner(&s, 99999), 99999);
	assert_int_equal(cn_subuid_owner(&s, 100000), 1000);
	assert_int_equal(cn_subuid_owner(&s, 165535), 1000);
	assert_int_equal(cn_subuid_owner(&s, 165536), 1001);
	assert_int_equal(cn_subuid_owner(&s, 231072), 231072);
	assert_int_equal(cn_subuid_owner(&s, 300000), 1000);
	assert_int_equal(cn_subuid_owner(&s, 300001), 300001);
	assert_int_equal(cn_subuid_owner(&s, UINT32_MAX), 2000);
	assert_int_equal(cn_subuid_owner(&s, UINT32_MAX - 1), UINT32_MAX - 1);
}

static bool maps_all(const char *text)
{
	read_by(cn_subuid_read_map, text);
	return !s.lacks_users;
}

static void subuid__users_of_the_namespace(void **state)
{
	(void)state;
	assert_true(maps_all("         0          0 4294967295\n"));
	assert_true(maps_all("0 100000 1\n1 0 4294967294\n"));
	assert_false(maps_all("         0       1000          1\n"));
	assert_false(maps_all("0 100000 65536\n"));
	assert_true(maps_all(""));
	cn_subuid_read_map(&s, "/nonexistent");
	assert_false(s.lacks_users);
}

/* A user has a name, or no account any more; root has no limits to charge. */
static void subuid__names(void **state)
{
	const struct passwd *pw = getpwent();
	char text[512];
	uid_t uid;

	(void)state;
	while (pw != NULL && (pw->pw_uid == 0 || strlen(pw->pw_name) > 60)) {
		pw = getpwent();
	}
	assert_non_null(pw);
	uid = pw->pw_uid;
	snprintf(text, sizeof(text),
		 "%s:700000:10\n%s:800000:10\nroot:1000000:65536\nroot:2000000:10\n0:3000000:10\n"
		 "no-such-user:900000:10\nno-such-user:910000:10\n",
		 pw->pw_name, pw->pw_name);
	endpwent();
	read_text(text);
	assert_int_equal(cn_subuid_owner(&s, 700009), uid);
	assert_int_equal(cn_subuid_owner(&s, 800000), uid);
	assert_int_equal(cn_subuid_owner(&s, 1000001), 1000001);
	assert_int_equal(cn_subuid_owner(&s, 2000001), 2000001);
	assert_int_equal(cn_subuid_owner(&s, 3000001), 3000001);
	assert_int_equal(cn_subuid_owner(&s, 900005), 900000);
	assert_int_equal(cn_subuid_owner(&s, 910005), 900000);
	assert_int_equal(s.n, 4);
}

/* No file, and lines that are none. No range has the ID of root. */
static void subuid__nothing(void **state)
{
	static const char *const bad[] = {
		"",
		"\n\n",
		":",
		"::",
		"# 1000:100000:65536",
		"1000",
		"1000:100000",
		"1000:100000:",
		"1000::65536",
		":100000:65536",
		"1000:a:10",
		"1000:1:0",
		"1000:0:65536",
		"1000:1:2:3",
		"1000:-1:10",
		"1000:1:1e6",
		"1000:1: 10",
		"1000:1:10\r\n",
		"1000:1:4294967296",
	};

	(void)state;
	cn_subuid_read(&s, "/nonexistent/subuid");
	assert_int_equal(s.n, 0);
	cn_subuid_read(&s, "/tmp"); /* it opens, and cannot be read */
	assert_int_equal(s.n, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		read_text(bad[i]);
		if (s.n != 0) {
			fail_msg("'%s'", bad[i]);
		}
	}
	read_text("nonsense\n1000:100000:10\n\n");
	assert_int_equal(cn_subuid_owner(&s, 100009), 1000);
}

static uint32_t warnings;

static void count_line(void *ctx, enum collnet_log_level level, const char *line)
{
	(void)ctx;
	warnings += level == COLLNET_LOG_WARNING && strstr(line, "is too long") != NULL;
}

/* As many ranges as there is room for, or more; or a megabyte of something else. */
static void subuid__is_bounded(void **state)
{
	char *text = malloc(3u << 20);

	(void)state;
	assert_non_null(text);
	warnings = 0;
	collnet_set_log(count_line, NULL);
	for (uint32_t more = 0; more < 2; more++) {
		size_t n = 0;

		for (uint32_t i = 0; i < CN_SUBUIDS_MAX + more; i++) {
			n += (size_t)sprintf(text + n, "%u:%u:10\n", 1000 + i, 100000 + 10 * i);
		}
		read_text(text);
		assert_int_equal(s.n, CN_SUBUIDS_MAX);
		assert_int_equal(warnings, more);
	}
	memset(text, '#', 3u << 20);
	text[(3u << 20) - 1] = '\0';
	read_text(text);
	assert_int_equal(s.n, 0);
	assert_int_equal(warnings, 2);
	collnet_set_log(NULL, NULL);
	free(text);
}

static struct cn_client *new_client(struct cn_daemon *d, uid_t uid, int *fd)
{
	struct cn_client *c;
	int p[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
	*fd = p[1];
	c = cn_client_new(d, p[0], uid);
	if (c == NULL) {
		close(p[0]);
		close(p[1]);
		return NULL;
	}
	c->greeted = true;
	return c;
}

/* What processes with the IDs of a range have counts to one limit; their jobs stay their own. */
static void subuid__one_user_for_the_limits(void **state)
{
	struct engine_fixture *w = engine_fixture(1, NULL, NULL);
	struct cn_daemon *d = calloc(1, sizeof(*d));
	union cn_msg m = { .join = { .head = { .type = CN_MSG_JOIN },
				     .ranks = 2,
				     .timeout_ms = 1000,
				     .job = "job" } };
	const uid_t uids[] = { 1000, 100001, 100002, 100003 };
	struct cn_client *c[4];
	bool takes_part;
	int fd[4], other;

	(void)state;
	assert_non_null(d);
	cn_config_init(&d->config);
	d->now = w->now;
	d->runtime.engine = w->engines[0];
	d->config.limits[CN_QUOTA_CONNECTIONS] = 4;
	d->config.limits[CN_QUOTA_TEAMS] = 3;
	read_text("1000:100000:65536\n");
	d->subuids = s;
	for (int i = 0; i < 4; i++) {
		c[i] = new_client(d, uids[i], &fd[i]);
		assert_non_null(c[i]);
		assert_int_equal(c[i]->uid, uids[i]);
		assert_ptr_equal(c[i]->user, c[0]->user);
		m.join.head.tag = (uint32_t)i;
		cn_client_message(c[i], &m, sizeof(m.join));
		assert_false(c[i]->marked);
	}
	assert_null(new_client(d, 100004, &other));
	assert_int_equal(cn_engine_teams_paid(w->engines[0], 1000, 1000, "job", &takes_part), 3);
	assert_true(takes_part);
	assert_int_equal(cn_engine_teams_paid(w->engines[0], 1000, 100003, "job", &takes_part), 3);
	assert_false(takes_part);
	cn_client_end(d);
	for (int i = 0; i < 4; i++) {
		close(fd[i]);
	}
	free(d);
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(subuid__ranges),
		cmocka_unit_test(subuid__users_of_the_namespace),
		cmocka_unit_test(subuid__names),
		cmocka_unit_test(subuid__nothing),
		cmocka_unit_test(subuid__is_bounded),
		cmocka_unit_test(subuid__one_user_for_the_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
