/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The name of a job from a PMI-1 server. MPICH's hydra puts no identifier of the job into the
 * environment; the key-value space that it keeps for the job has a name, the same for all ranks
 * on all nodes and another for every mpiexec ("kvs_PID_GROUP_RANDOM_HOST"). It is asked for without
 * the protocol's "init", so that the server does not expect a "finalize", and an MPI_Init() before
 * or after finds nothing changed.
 */
#include "client/env.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "util/clock.h"

#define PATIENCE (5000 * CN_MS)

/*
 * Launchers connect the descriptor to their server by a socketpair. In a process whose parent
 * closed what it inherited, the number may stand for anything else, which gets no bytes of ours.
 */
static bool is_pmi_socket(int fd)
{
	struct sockaddr_un peer;
	socklen_t size = sizeof(peer), type_size = sizeof(int);
	int type = 0;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM &&
	       getpeername(fd, (struct sockaddr *)&peer, &size) == 0 &&
	       peer.sun_family == AF_UNIX && size <= offsetof(struct sockaddr_un, sun_path);
}

/* Reads one line, without what may come behind it. */
static bool read_line(int fd, char *out, size_t size)
{
	const cn_time until = cn_now() + PATIENCE;
	size_t n = 0;

	while (n + 1 < size) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		const cn_time now = cn_now();
		const struct timespec ts = cn_timespec(now < until ? until - now : 0);
		int ready = ppoll(&p, 1, &ts, NULL);
		ssize_t got;

		if (ready < 0 && errno == EINTR) {
			continue;
		}
		if (ready <= 0) {
			return false;
		}
		got = recv(fd, out + n, 1, MSG_DONTWAIT);
		if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
			continue;
		}
		if (got <= 0) {
			return false;
		}
		if (out[n] == '\n') {
			out[n] = '\0';
			return true;
		}
		n++;
	}
	return false;
}

bool cn_pmi_ask(int fd, const char *request, const char *key, char *out, size_t size)
{
	const size_t length = strlen(request);
	char line[1024];
	const char *value;
	size_t n;

	if (!is_pmi_socket(fd) || send(fd, request, length, MSG_NOSIGNAL) != (ssize_t)length ||
	    !read_line(fd, line, sizeof(line))) {
		return false;
	}
	value = strstr(line, key);
	if (value == NULL) {
		return false;
	}
	value += strlen(key);
	n = strcspn(value, " ");
	if (n == 0 || n >= size) {
		return false;
	}
	memcpy(out, value, n);
	out[n] = '\0';
	return true;
}

bool cn_pmi_job(int fd, char *out, size_t size)
{
	return cn_pmi_ask(fd, "cmd=get_my_kvsname\n", " kvsname=", out, size);
}
