/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service manager's readiness protocol: one datagram to the socket in NOTIFY_SOCKET.
 *
 * A manager that reads nothing must not block the loop: if its queue is full, a state is lost.
 * READY waits a little for room, because without it the manager would stop the service.
 */
#include "daemon/daemon.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define READY_WAITS 100000 /* microseconds; other nodes notice after 300 ms at the earliest */

void cn_notify(const char *state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const struct timeval limit = { .tv_usec = READY_WAITS };
	const bool ready = strcmp(state, "READY=1") == 0;
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path == NULL ? 0 : strlen(path);
	socklen_t size;
	int fd;

	if (len < 2 || len >= sizeof(sun.sun_path) || (path[0] != '/' && path[0] != '@')) {
		return;
	}
	memcpy(sun.sun_path, path, len);
	if (path[0] == '@') {
		sun.sun_path[0] = '\0'; /* an abstract socket: its name has no end mark */
	}
	size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL | (ready ? 0 : MSG_DONTWAIT),
		   (struct sockaddr *)&sun, size) < 0) {
		cn_log(COLLNET_LOG_WARNING, "cannot notify the service manager at %s", path);
	}
	close(fd);
}
