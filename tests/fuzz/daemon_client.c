/* SPDX-License-Identifier: BSD-2-Clause */
/* See daemon_client.h. */
#include "daemon_client.h"
#include "tests/unit/descriptor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RINGS_BYTES ((CN_MSG_RINGS_BYTES + 4095) / 4096 * 4096)

void check(bool ok)
{
	if (!ok) {
		abort();
	}
}

uint8_t byte(struct fixture *w)
{
	return w->at < w->size ? w->data[w->at++] : 0;
}

void connect_client(struct fixture *w, int i)
{
	int fds[2];

	if (w->end[i].client != NULL) {
		return;
	}
	check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	w->end[i].fd = fds[1];
	w->end[i].deaf = w->end[i].broken = false;
	w->end[i].memory = NULL;
	memset(w->end[i].busy, 0, sizeof(w->end[i].busy));
	w->daemon->guarded = cn_receive_guard(fds[0]); /* a child process a client is slow */
	w->end[i].client = cn_client_new(w->daemon, fds[0], 1000 + (uid_t)i);
	check(w->end[i].client != NULL);
}

/* A DONE or JOINED. Requests may have been anything where the client wrote into its ring. */
static void check_end(struct fixture *w, int i, const union cn_msg *m)
{
	check(cn_msg_check(m, cn_msg_size(m->head.type), true) == NULL);
	check(w->end[i].broken || w->end[i].busy[m->head.tag] > 0);
	w->end[i].busy[m->head.tag] -= w->end[i].busy[m->head.tag] > 0;
}

/* A COMBINE: a valid message about a request that has no answer yet. */
static void check_combine(struct fixture *w, int i, const struct cn_msg_combine *m)
{
	check(cn_msg_check((const union cn_msg *)(const void *)m, sizeof(*m), true) == NULL);
	check(w->end[i].broken || w->end[i].busy[m->head.tag] > 0);
	w->last = (struct cn_msg_combined){
		.head = { .type = CN_MSG_COMBINED, .tag = m->head.tag },
		.piece = m->piece,
	};
}

static void check_completion(struct fixture *w, int i, const union cn_msg *m)
{
	if (m->head.type == CN_MSG_COMBINE) {
		check_combine(w, i, &m->combine);
	} else {
		check_end(w, i, m);
	}
}

static void read_completions(struct fixture *w, int i)
{
	const void *slot;

	while (w->end[i].memory != NULL && !w->end[i].deaf &&
	       cn_shm_ring_front(&w->end[i].completions, &slot) == CN_SHM_RING_OK) {
		if (!w->end[i].broken) {
			check_completion(w, i, slot);
		}
		cn_shm_ring_pop(&w->end[i].completions);
	}
}

void read_answers(struct fixture *w)
{
	static union cn_msg m;

	for (int i = 0; i < CLIENTS; i++) {
		ssize_t n;

		while (w->end[i].client != NULL && !w->end[i].deaf &&
		       (n = recv(w->end[i].fd, &m, sizeof(m), MSG_DONTWAIT)) > 0) {
			check(cn_msg_check(&m, (size_t)n, true) == NULL);
			if (m.head.type == CN_MSG_DONE || m.head.type == CN_MSG_JOINED ||
			    m.head.type == CN_MSG_COMBINE) {
				check_completion(w, i, &m);
			}
		}
		read_completions(w, i);
	}
}

void end_client(struct fixture *w, int i)
{
	w->end[i].client = NULL;
	close(w->end[i].fd);
	if (w->end[i].memory != NULL) {
		munmap(w->end[i].memory, RINGS_BYTES);
		w->end[i].memory = NULL;
	}
}

/* The daemon's loop: those that are doomed go. */
void reap(struct fixture *w)
{
	for (int i = 0; i < CLIENTS; i++) {
		if (w->end[i].client != NULL && w->end[i].client->marked) {
			end_client(w, i);
		}
	}
	cn_client_reap(w->daemon);
	cn_combine_pending(w->daemon);
}

void run_task(struct fixture *w)
{
	struct cn_engine *e = w->daemon->runtime.engine;

	if (w->task != NULL) {
		cn_task_run(w->task);
		cn_engine_task_done(e, w->task);
	}
	cn_call_make_waiting(w->daemon); /* it may have been dropped */
	w->task = cn_engine_next_task(e);
}

void settle(struct fixture *w, int i)
{
	while (w->end[i].client->call.op != NULL && !w->end[i].client->marked) {
		run_task(w);
	}
}

bool unmaps(const struct cn_daemon *d)
{
	return d->unmap.first != NULL || d->settled.first != NULL;
}

void say(struct fixture *w, int i, const void *m, size_t len)
{
	settle(w, i);
	check(send(w->end[i].fd, m, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len);
	cn_client_readable(w->end[i].client);
	if (unmaps(w->daemon)) { /* which it may wait for */
		while (cn_mapping_unmap(w->daemon)) {
		}
		cn_client_readable(w->end[i].client);
	}
}

void seal_regions(struct fixture *w, int i)
{
	for (uint32_t n = 0; n < CN_MSG_REGIONS; n++) {
		if (w->end[i].client->regions[n] != NULL) {
			w->end[i].client->regions[n]->sealed = true;
		}
	}
}

/* A message with descriptors, which must not come in. */
void send_with_descriptors(struct fixture *w, int i, const void *m, size_t len, uint32_t n)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)m, .iov_len = len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)),
	};
	const int before = dup(w->end[i].fd);
	int after, fds[4] = { before, before, before, before };

	settle(w, i);
	memset(&control, 0, sizeof(control));
	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, n * sizeof(int));
	if (sendmsg(w->end[i].fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len) {
		cn_client_readable(w->end[i].client);
		check(w->end[i].client->marked);
	} else {
		check(w->daemon->guarded);
	}
	close(before);
	after = dup(w->end[i].fd);
	check(after == before); /* the lowest free one, as it was */
	close(after);
}

/* The rings, from the daemon. The client takes the descriptor with the REPLY. */
void make_rings(struct fixture *w, int i)
{
	static const struct cn_msg_head doorbell = { .type = CN_MSG_DOORBELL };
	const struct cn_msg_region m = { .head = { .type = CN_MSG_REGION },
					 .region = CN_MSG_RINGS,
					 .bytes = RINGS_BYTES };
	static union cn_msg reply;
	int fd;

	if (!w->end[i].client->greeted || w->end[i].deaf || w->end[i].memory != NULL) {
		return;
	}
	settle(w, i);
	read_answers(w);
	if (w->end[i].client->marked) {
		return;
	}
	say(w, i, &m, sizeof(m));
	check(receive_descriptor(w->end[i].fd, &reply, sizeof(reply), MSG_DONTWAIT, &fd) > 0);
	if (fd < 0) { /* its other regions have used up its memory */
		check(reply.reply.status == COLLNET_ELIMIT);
		return;
	}
	w->end[i].memory = cn_memfd_map(fd, RINGS_BYTES, 0);
	check(w->end[i].memory != NULL);
	close(fd);
	cn_msg_rings_init(w->end[i].memory, &w->end[i].requests, &w->end[i].completions);
	say(w, i, &doorbell, sizeof(doorbell)); /* the daemon polls them from then on */
}

void scribble(struct fixture *w, int i)
{
	struct cn_shm_ring_shared *s[] = { w->end[i].requests.shared,
					   w->end[i].completions.shared };
	const uint8_t at = byte(w), how = byte(w);
	uint32_t value = 0, *where;

	for (int k = 0; k < 4; k++) {
		value = value << 8 | byte(w);
	}
	if (w->end[i].memory == NULL) {
		return;
	}
	where = at % 8 == 0   ? &s[at >> 7]->tail
		: at % 8 == 1 ? &s[at >> 7]->head
		: at % 8 == 2 ? &s[at >> 7]->asleep
			      : (uint32_t *)(void *)s[at >> 7]->slots + at + 64u * how;
	*where = how % 2 == 0 ? *where + how / 2u : value;
	w->end[i].broken = true;
	cn_rings_poll(w->daemon);
}
