/* SPDX-License-Identifier: BSD-2-Clause */
/* Namespaces and commands for tests. */
#include "namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0) {
		close(fd);
	}
	return ok;
}

bool run_command(const char *fmt, ...)
{
	char command[1024] = "exec >/dev/null 2>&1; PATH=$PATH:/usr/sbin:/sbin; ";
	size_t at = strlen(command);
	va_list ap;
	int n, status;

	va_start(ap, fmt);
	n = vsnprintf(command + at, sizeof(command) - at, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(command) - at) {
		return false;
	}
	status = system(command);
	return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool add_pair(void)
{
	return run_command("ip link add a0 type veth peer name b0 && ip link set a0 up && "
			   "ip link set b0 up") &&
	       run_command("for i in $(seq 1000); do "
			   "ip link show a0 | grep -q 'state UP' && "
			   "ip link show b0 | grep -q 'state UP' && exit 0; "
			   "sleep 0.01; done; exit 1");
}

const char *enter_namespace(void)
{
	static char why[128];
	char map[64];
	unsigned int uid = getuid(), gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) {
		snprintf(why, sizeof(why), "user and network namespaces are refused here: %s",
			 strerror(errno));
		return why;
	}
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (!write_file("/proc/self/setgroups", "deny") || !write_file("/proc/self/uid_map", map)) {
		return "the user namespace's map cannot be written here";
	}
	snprintf(map, sizeof(map), "0 %u 1", gid);
	if (!write_file("/proc/self/gid_map", map)) {
		return "the user namespace's map cannot be written here";
	}
	if (!run_command("ip link set lo up")) {
		return "the ip command is missing (Debian: iproute2), or may not work here";
	}
	if (!run_command("ip link add x type veth peer name y && ip link delete x")) {
		return "this kernel makes no veth pairs";
	}
	return NULL;
}
