/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/client/socket.c: what a user is told who has no permission to use the daemon's socket. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "collnet/collnet.h"

static const char *owner, *group; /* of the socket; the group is the owner's */
static bool has_collnet;	  /* a group of this name */
static char dir[] = "/tmp/test_socket_permission.XXXXXX";
static struct sockaddr_un name = { .sun_family = AF_UNIX };

/* The library's calls come here. Only those to a socket that has a path fail. */
int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	if (((const struct sockaddr_un *)(const void *)to)->sun_path[0] == '\0') {
		return (int)syscall(SYS_connect, fd, to, len);
	}
	errno = EACCES;
	return -1;
}

int getpwuid_r(uid_t uid, struct passwd *pw, char *text, size_t size, struct passwd **found)
{
	*pw = (struct passwd){ .pw_name = text, .pw_uid = uid, .pw_gid = getegid() };
	snprintf(text, size, "%s", owner);
	*found = pw;
	return 0;
}

int getgrgid_r(gid_t gid, struct group *gr, char *text, size_t size, struct group **found)
{
	*gr = (struct group){ .gr_name = text, .gr_gid = gid };
	snprintf(text, size, "%s", group != NULL ? group : "");
	*found = group != NULL ? gr : NULL;
	return 0;
}

int getgrnam_r(const char *of, struct group *gr, char *text, size_t size, struct group **found)
{
	const bool is_there = has_collnet && strcmp(of, "collnet") == 0;

	(void)text, (void)size;
	*gr = (struct group){ .gr_gid = getegid() + 1 };
	*found = is_there ? gr : NULL;
	return 0;
}

static void without_permission(mode_t mode, const char *advice)
{
	char expected[512];
	struct collnet_options o;
	collnet_t *c = NULL;

	assert_int_equal(chmod(name.sun_path, mode), 0);
	collnet_options_init(&o);
	o.mode = COLLNET_MODE_DAEMON;
	o.socket = name.sun_path;
	assert_int_equal(collnet_open(&o, &c), COLLNET_EPERM);
	snprintf(expected, sizeof(expected), "no permission to use collnetd's socket %s: %s",
		 name.sun_path, advice);
	assert_string_equal(collnet_error(NULL), expected);
}

/* Nobody is told to join the group of the user nobody. */
static void open__advice_without_permission(void **state)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char number[128];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/sock", dir);
	assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
	owner = group = "collnet";
	has_collnet = true;
	without_permission(0660, "join its group, collnet, or see group and socket-mode in "
				 "collnetd.conf(5)");
	without_permission(0600, "its mode, 0600, admits no group: see socket-mode in "
				 "collnetd.conf(5)");
	owner = group = "alice";
	has_collnet = false;
	without_permission(0660, "join its group, alice, or see group and socket-mode in "
				 "collnetd.conf(5)");
	group = NULL;
	snprintf(number, sizeof(number),
		 "join its group, %lu, or see group and socket-mode in collnetd.conf(5)",
		 (unsigned long)getegid());
	without_permission(0660, number);
	group = "nogroup";
	for (int i = 0; i < 2; i++) {
		owner = i == 0 ? "nobody" : "collnet";
		has_collnet = false;
		without_permission(0660, "there is no group collnet: as root, create it with "
					 "'groupadd -r collnet', add users to it and restart "
					 "collnetd, or see group and socket-mode in "
					 "collnetd.conf(5)");
		has_collnet = true;
		without_permission(0660, "collnetd did not find the group collnet at its start: "
					 "restart collnetd and join that group, or see group and "
					 "socket-mode in collnetd.conf(5)");
	}
	close(fd);
	assert_int_equal(unlink(name.sun_path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__advice_without_permission),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
