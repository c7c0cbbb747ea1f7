/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of an interface: one holder in a network namespace, and no other user can take its
 * place.
 */
#include "node/lock.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "namespace.h"

static char dir[64];
static uint16_t ethertype; /* of this process: other tests run at the same time */

static int setup(void **state)
{
	(void)state;
	ethertype = (uint16_t)(0x8000 | getpid());
	snprintf(dir, sizeof(dir), "/tmp/test_lock.XXXXXX");
	return mkdtemp(dir) != NULL && chmod(dir, 0755) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return run_command("rm -rf %s", dir) ? 0 : -1;
}

static void take__one_holder(void **state)
{
	struct cn_lock one = CN_LOCK_NONE, two = CN_LOCK_NONE;
	struct cn_err err;
	char who[64];

	(void)state;
	assert_int_equal(cn_lock_acquire(dir, "lo", ethertype, &one, &err), COLLNET_OK);
	assert_true(one.file_fd >= 0 && one.name_fd >= 0);
	assert_int_equal(cn_lock_acquire(dir, "lo", ethertype, &two, &err), COLLNET_EIFACE);
	assert_true(two.file_fd == -1 && two.name_fd == -1);
	snprintf(who, sizeof(who), "(process %ld of user %ld)", (long)getpid(), (long)geteuid());
	assert_non_null(strstr(err.text, who));
	/* Another EtherType is another lock. */
	assert_int_equal(cn_lock_acquire(dir, "lo", ethertype ^ 0x4000, &two, &err), COLLNET_OK);
	cn_lock_release(&two);
	cn_lock_release(&one);
	assert_int_equal(cn_lock_acquire(dir, "lo", ethertype, &one, &err), COLLNET_OK);
	cn_lock_release(&one);
}

static void take__either_part_is_enough(void **state)
{
	struct cn_lock one = CN_LOCK_NONE, two = CN_LOCK_NONE;
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_lock_acquire(dir, "lo", ethertype, &one, &err), COLLNET_OK);
	/* Without the file: a program that has no access to the directory. */
	assert_int_equal(cn_lock_acquire("/nonexistent/x", "lo", ethertype, &two, &err),
			 COLLNET_EIFACE);
	close(one.name_fd);
	one.name_fd = -1;
	assert_int_equal(cn_lock_acquire(dir, "lo", ethertype, &two, &err), COLLNET_EIFACE);
	cn_lock_release(&one);
}

/* A daemon that waits for its interface has the file, and keeps it while the interface changes. */
static void take__the_file_before_the_interface_exists(void **state)
{
	struct cn_lock one = CN_LOCK_NONE, two = CN_LOCK_NONE;
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_lock_acquire_file(dir, "none0", ethertype, &one, &err), COLLNET_OK);
	assert_true(one.file_fd >= 0 && one.name_fd == -1);
	assert_int_equal(cn_lock_acquire_file(dir, "none0", ethertype, &two, &err), COLLNET_EIFACE);
	assert_non_null(strstr(err.text, "interface none0 is used by another collnetd"));
	assert_int_equal(cn_lock_acquire(dir, "none0", ethertype, &one, &err), COLLNET_EIFACE);
	assert_non_null(strstr(err.text, "disappeared"));
	assert_true(one.file_fd >= 0 && one.name_fd == -1);
	cn_lock_release(&one);
	assert_int_equal(cn_lock_acquire_file(dir, "lo", ethertype, &one, &err), COLLNET_OK);
	assert_int_equal(cn_lock_acquire(dir, "lo", ethertype, &one, &err), COLLNET_OK);
	assert_true(one.file_fd >= 0 && one.name_fd >= 0);
	cn_lock_release_name(&one);
	assert_int_equal(cn_lock_acquire(dir, "lo", ethertype, &two, &err), COLLNET_EIFACE);
	cn_lock_release(&one);
	/* Not a name of an interface: no file elsewhere. */
	assert_int_equal(cn_lock_acquire_file(dir, "../lo", ethertype, &one, &err), COLLNET_OK);
	assert_true(one.file_fd == -1);
}

/* Those who ask leave something in the queue of the one who has the name. */
static void take__asked_again_and_again(void **state)
{
	struct cn_lock one = CN_LOCK_NONE, two = CN_LOCK_NONE;

	(void)state;
	assert_int_equal(cn_lock_acquire("/nonexistent/x", "lo", ethertype, &one, NULL),
			 COLLNET_OK);
	for (int i = 0; i < 30; i++) {
		assert_int_equal(cn_lock_acquire("/nonexistent/x", "lo", ethertype, &two, NULL),
				 COLLNET_EIFACE);
	}
	/* Now one that has the file: of no other user, and so not ignored. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cn_lock_acquire(dir, "lo", ethertype, &two, NULL), COLLNET_EIFACE);
		assert_true(two.file_fd == -1 && two.name_fd == -1);
	}
	cn_lock_release(&one);
}

/* A program in a container that uses the host's network, whose processes it does not see. */
static void take__asked_from_another_pid_namespace(void **state)
{
	struct cn_lock one = CN_LOCK_NONE, two = CN_LOCK_NONE;
	const uid_t uid = geteuid();
	struct cn_err err;
	char map[32];
	int status, fd;
	pid_t pid;

	(void)state;
	snprintf(map, sizeof(map), "%ld %ld 1", (long)uid, (long)uid);
	assert_int_equal(cn_lock_acquire("/nonexistent/x", "lo", ethertype, &one, NULL),
			 COLLNET_OK);
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0 ||
		    (fd = open("/proc/self/uid_map", O_WRONLY)) < 0 ||
		    write(fd, map, strlen(map)) < 0) {
			_exit(77);
		}
		pid = fork(); /* the first process of the namespace */
		if (pid == 0) {
			_exit(cn_lock_acquire("/nonexistent/x", "lo", ethertype, &two, &err) ==
						      COLLNET_EIFACE &&
					      strstr(err.text, "program (of user ") != NULL
				      ? 0
				      : 1);
		}
		_exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									   : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	cn_lock_release(&one);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("skipped: this system refuses user namespaces\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void take__no_directory_of_others(void **state)
{
	struct cn_lock l = CN_LOCK_NONE;

	(void)state;
	assert_int_equal(chmod(dir, 0777), 0);
	assert_int_equal(cn_lock_acquire(dir, "lo", ethertype, &l, NULL), COLLNET_OK);
	assert_true(l.file_fd == -1 && l.name_fd >= 0);
	cn_lock_release(&l);
	assert_int_equal(chmod(dir, 0755), 0);
}

/* Another user binds the name first, and says so on the pipe; ends when the pipe does. */
static void squat(int ready, int end)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "collnet/1/%04x", ethertype);
	char none;
	int fd;

	if (setresuid(65001, 65001, 65001) != 0 || (fd = socket(AF_UNIX, SOCK_STREAM, 0)) < 0 ||
	    bind(fd, (struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) != 0 ||
	    listen(fd, 1) != 0 || write(ready, "x", 1) != 1 || read(end, &none, 1) != 0) {
		_exit(1);
	}
	_exit(0);
}

static void take__name_of_another_user_counts_nothing(void **state)
{
	int ready[2], end[2], status;
	struct cn_lock l = CN_LOCK_NONE;
	char c;
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: another user needs root\n");
		skip();
	}
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(end), 0);
	pid = fork();
	if (pid == 0) {
		close(end[1]);
		squat(ready[1], end[0]);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	for (int i = 0; i < 9; i++) { /* and then its queue is full */
		assert_int_equal(cn_lock_acquire(dir, "lo", ethertype, &l, NULL), COLLNET_OK);
		assert_true(l.file_fd >= 0 && l.name_fd == -1);
		cn_lock_release(&l);
	}
	close(end[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(ready[0]);
	close(end[0]);
}

static void take__each_network_namespace_has_its_own(void **state)
{
	struct cn_lock one = CN_LOCK_NONE, two = CN_LOCK_NONE;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(cn_lock_acquire(dir, "lo", ethertype, &one, NULL), COLLNET_OK);
	pid = fork();
	if (pid == 0) {
		if (enter_namespace() != NULL) {
			_exit(77);
		}
		_exit(cn_lock_acquire(dir, "lo", ethertype, &two, NULL) == COLLNET_OK ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	cn_lock_release(&one);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("skipped: this system refuses network namespaces\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__one_holder),
		cmocka_unit_test(take__either_part_is_enough),
		cmocka_unit_test(take__no_directory_of_others),
		cmocka_unit_test(take__the_file_before_the_interface_exists),
		cmocka_unit_test(take__asked_again_and_again),
		cmocka_unit_test(take__asked_from_another_pid_namespace),
		cmocka_unit_test(take__name_of_another_user_counts_nothing),
		cmocka_unit_test(take__each_network_namespace_has_its_own),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
