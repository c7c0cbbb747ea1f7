/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/notify.c: what a service manager is sent that reads late, or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/daemon.h"
#include "util/clock.h"

static char directory[] = "/tmp/test_notify.XXXXXX";
static struct sockaddr_un name = { .sun_family = AF_UNIX };
static int manager;

static int setup(void **state)
{
	(void)state;
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (manager < 0 || mkdtemp(directory) == NULL) {
		return 1;
	}
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/s", directory);
	cn_log_set_level(COLLNET_LOG_ERROR);
	alarm(60); /* of a sender that waits for ever */
	return bind(manager, (struct sockaddr *)&name, sizeof(name)) != 0 ||
	       setenv("NOTIFY_SOCKET", name.sun_path, 1) != 0;
}

static int teardown(void **state)
{
	(void)state;
	close(manager);
	unlink(name.sun_path);
	return rmdir(directory);
}

static void fill_queue(void)
{
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	while (sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&name, sizeof(name)) == 1) {
	}
	close(fd);
}

/* Reads until this comes; false: it does not. */
static bool comes(const char *state)
{
	char got[32];
	ssize_t n;

	while ((n = recv(manager, got, sizeof(got) - 1, MSG_DONTWAIT)) > 0) {
		got[n] = '\0';
		if (strcmp(got, state) == 0) {
			return true;
		}
	}
	return false;
}

static void notify__arrives(void **state)
{
	(void)state;
	cn_notify("STATUS=well");
	assert_true(comes("STATUS=well"));
	cn_notify("READY=1");
	assert_true(comes("READY=1"));
}

static void notify__a_full_queue(void **state)
{
	cn_time began;

	(void)state;
	fill_queue();
	began = cn_now();
	cn_notify("STATUS=well");
	cn_notify("READY=1");
	assert_true(cn_now() - began < 10000 * CN_MS);
	assert_false(comes("STATUS=well"));
}

/* Until the process sleeps, or has ended. */
static void await_sleep(pid_t pid)
{
	char path[64], line[256];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	do {
		FILE *f = fopen(path, "re");

		assert_non_null(f);
		assert_non_null(fgets(line, sizeof(line), f));
		fclose(f);
		end = strrchr(line, ')');
	} while (strncmp(end, ") S", 3) != 0 && strncmp(end, ") Z", 3) != 0);
}

/* On a busy machine the queue may be read too late now and then. */
static void notify__ready_waits_for_room(void **state)
{
	bool came = false;

	(void)state;
	for (int i = 0; i < 50 && !came; i++) {
		pid_t child;

		fill_queue();
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			cn_notify("READY=1");
			_exit(0);
		}
		await_sleep(child);
		came = comes("READY=1");
		assert_int_equal(waitpid(child, NULL, 0), child);
		came = came || comes("READY=1");
	}
	assert_true(came);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notify__arrives),
		cmocka_unit_test(notify__a_full_queue),
		cmocka_unit_test(notify__ready_waits_for_room),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
