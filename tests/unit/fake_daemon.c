/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_daemon.h"
#include "util/clock.h"

static char directory[] = "/tmp/fake_daemon.XXXXXX";
struct sockaddr_un fake_name = { .sun_family = AF_UNIX };
static pid_t child;

void fake_begin(void)
{
	if (mkdtemp(directory) == NULL) {
		exit(1);
	}
	snprintf(fake_name.sun_path, sizeof(fake_name.sun_path), "%s/s", directory);
}

void fake_finish(void)
{
	unlink(fake_name.sun_path);
	rmdir(directory);
}

/* ---- the daemon ----------------------------------------------------------------------- */

void fake_respond(int fd, uint32_t type, uint32_t tag)
{
	union cn_msg m;

	memset(&m, 0, sizeof(m));
	m.head.type = type;
	m.head.tag = tag;
	if (type == CN_MSG_RANK_NAMES) {
		m.rank_names.ranks = 1;
	}
	if (send(fd, &m, cn_msg_size(type), MSG_NOSIGNAL) < 0) {
		_exit(1);
	}
}

int fake_rings(const struct cn_msg_region *request, bool sealed, struct cn_shm_ring *requests,
	       struct cn_shm_ring *completions)
{
	const int memory = memfd_create("rings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *p;

	if (request->region != CN_MSG_RINGS || ftruncate(memory, (off_t)request->bytes) != 0 ||
	    (sealed && fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) != 0)) {
		_exit(1);
	}
	p = mmap(NULL, request->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (p == MAP_FAILED) {
		_exit(1);
	}
	cn_msg_rings_init(p, requests, completions);
	return memory;
}

void fake_hand_out(int fd, uint32_t tag, int memory)
{
	struct cn_msg_reply r = { .head = { .type = CN_MSG_REPLY, .tag = tag } };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = &r, .iov_len = sizeof(r) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space),
	};

	memset(&control, 0, sizeof(control));
	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(memory));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &memory, sizeof(memory));
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) != (ssize_t)sizeof(r)) {
		_exit(1);
	}
}

static void greet(int listening, const char *refusal, uint32_t peer_timeout_ms, int *fd)
{
	struct cn_msg_welcome w = { .head = { .type = CN_MSG_WELCOME },
				    .version = CN_MSG_VERSION,
				    .peer_timeout_ms = peer_timeout_ms,
				    .node = "here" };
	union cn_msg m;

	*fd = accept(listening, NULL, NULL);
	alarm(19); /* less than a third of the longest peer timeout */
	if (recv(*fd, &m, sizeof(m), 0) != (ssize_t)sizeof(m.hello)) {
		_exit(1);
	}
	w.head.tag = m.head.tag;
	w.now = cn_now();
	if (refusal != NULL) {
		w.status = COLLNET_ELIMIT;
		w.peer_timeout_ms = 0;
		strcpy(w.text, refusal);
	}
	if (send(*fd, &w, sizeof(w), MSG_NOSIGNAL) != (ssize_t)sizeof(w)) {
		_exit(0);
	}
}

/* ---- the program ---------------------------------------------------------------------- */

int fake_open(void (*serve)(int fd, int arg), int arg, const char *refusal,
	      uint32_t peer_timeout_ms, collnet_t **out)
{
	struct collnet_options o;
	int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd;

	unlink(fake_name.sun_path);
	assert_int_equal(bind(listening, (struct sockaddr *)&fake_name, sizeof(fake_name)), 0);
	assert_int_equal(listen(listening, 1), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		greet(listening, refusal, peer_timeout_ms, &fd);
		serve(fd, arg);
		_exit(0);
	}
	close(listening);
	collnet_options_init(&o);
	o.mode = COLLNET_MODE_DAEMON;
	o.socket = fake_name.sun_path;
	return collnet_open(&o, out);
}

void fake_end(collnet_t *c)
{
	collnet_close(c);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
