/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client that takes all it can get: greedy SOCKET WHAT [ARGUMENT].
 *
 *   connections    opens connections until one is refused
 *   memory SIZE    asks for regions of SIZE bytes until one is refused
 *   teams          joins jobs until one is refused, every second one with a secret of its own
 *   alone          joins jobs of one rank and one name until one is refused
 *   endpoints      opens endpoints, over as many connections as it takes, until one is refused
 *   descriptors N  sends N messages with two descriptors each
 *   stats          floods the daemon with STATS, until it is killed
 *   join JOB       joins JOB as rank 1 of 2, and waits for the end of that
 *   hold N         opens N connections, and waits for standard input to end
 *   holes N        punches holes in memory that it has mapped N times, but not sealed
 *
 * Prints how many it got, and the text of the refusal. Exit status 1: the daemon is not well.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ipc/msg.h"
#include "tests/unit/descriptor.h"
#include "util/owner.h"

#define PATIENCE_MS 20000

static const char *path;
static char refusal[CN_ERR_TEXT];

static void die(const char *what)
{
	fprintf(stderr, "greedy: %s (%s)\n", what, strerror(errno));
	exit(1);
}

/* A message from the daemon; false: the connection has ended. */
static bool receive_message(int fd, union cn_msg *m)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int tries = 0;
	ssize_t n;

	if (poll(&p, 1, PATIENCE_MS) <= 0) {
		die("the daemon does not answer");
	}
	do { /* the end of a connection with our message unread hides the last one that came */
		n = recv(fd, m, sizeof(*m), 0);
	} while (n < 0 && errno == ECONNRESET && tries++ == 0);
	if (n > 0 && cn_msg_check(m, (size_t)n, true) != NULL) {
		die("a message that makes no sense");
	}
	return n > 0;
}

/* A greeted connection; -1: refused, and why is in `refusal`. */
static int dial(void)
{
	static union cn_msg m;
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const struct cn_msg_hello h = {
		.head = { .type = CN_MSG_HELLO, .tag = 1 },
		.magic = CN_MSG_MAGIC,
		.version = CN_MSG_VERSION,
	};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(sun.sun_path)) {
		die("socket");
	}
	strcpy(sun.sun_path, path);
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0) {
		die("no connection");
	}
	if (send(fd, &h, sizeof(h), MSG_NOSIGNAL) < 0 && errno != EPIPE) {
		die("no greeting");
	}
	if (!receive_message(fd, &m) || m.head.type != CN_MSG_WELCOME) {
		die("no welcome");
	}
	if (m.welcome.status == COLLNET_OK) {
		return fd;
	}
	snprintf(refusal, sizeof(refusal), "%s", m.welcome.text);
	close(fd);
	return -1;
}

static int must_dial(void)
{
	int fd = dial();

	if (fd < 0) {
		fprintf(stderr, "greedy: refused: %s\n", refusal);
		exit(1);
	}
	return fd;
}

/* Sends a message and takes its answer. True: granted. */
static bool ask(int fd, const void *message, size_t len)
{
	static union cn_msg m;

	if (send(fd, message, len, MSG_NOSIGNAL) != (ssize_t)len || !receive_message(fd, &m)) {
		die("disconnected");
	}
	if (m.head.type == CN_MSG_REPLY && m.reply.status != COLLNET_OK) {
		snprintf(refusal, sizeof(refusal), "%s", m.reply.text);
	} else if (m.head.type == CN_MSG_DONE && m.done.status != COLLNET_OK) {
		snprintf(refusal, sizeof(refusal), "%s", m.done.text);
	} else {
		return true;
	}
	return false;
}

static unsigned connections(void)
{
	unsigned n = 0;

	while (dial() >= 0) {
		n++;
	}
	return n;
}

static unsigned memory(uint64_t bytes)
{
	struct cn_msg_region m = { .head = { .type = CN_MSG_REGION }, .bytes = bytes };
	int fd = must_dial();

	while (ask(fd, &m, sizeof(m))) {
		m.region++;
	}
	return m.region;
}

/* The next one forms when the one before is ready. */
static unsigned alone(void)
{
	int fd = must_dial();
	uint32_t n = 0;

	for (; n < CN_MSG_TEAMS; n++) {
		struct cn_msg_join j = {
			.head = { .type = CN_MSG_JOIN },
			.team = n,
			.ranks = 1,
			.timeout_ms = PATIENCE_MS,
			.job = "greedy",
		};

		if (!ask(fd, &j, sizeof(j))) {
			break;
		}
	}
	return n;
}

/* A job of two ranks is complete when both are here. */
static unsigned teams(void)
{
	unsigned n = 0;

	for (;;) {
		int fd[2] = { must_dial(), must_dial() };

		for (uint32_t t = 0; t < CN_MSG_TEAMS; t++, n++) {
			struct cn_msg_join j = {
				.head = { .type = CN_MSG_JOIN },
				.team = t,
				.ranks = 2,
				.timeout_ms = PATIENCE_MS,
				.secret = n % 2 != 0 ? CN_OWNER_SECRET | n : 0,
			};

			snprintf(j.job, sizeof(j.job), "greedy-%u", n);
			if (send(fd[0], &j, sizeof(j), MSG_NOSIGNAL) < 0) {
				die("disconnected");
			}
			j.rank = 1;
			if (!ask(fd[1], &j, sizeof(j))) {
				return n;
			}
		}
	}
}

static unsigned endpoints(void)
{
	unsigned n = 0;

	for (;;) {
		struct cn_msg_open m = { .head = { .type = CN_MSG_OPEN } };
		int fd = must_dial();

		for (; m.endpoint < CN_MSG_ENDPOINTS; m.endpoint++, n++) {
			if (!ask(fd, &m, sizeof(m))) {
				return n;
			}
		}
	}
}

/* How many messages the kernel took. */
static unsigned descriptors(uint64_t n)
{
	struct cn_msg_stats m = { .head = { .type = CN_MSG_STATS } };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
	unsigned taken = 0;

	memset(&control, 0, sizeof(control));
	msg.msg_controllen = sizeof(control.space);
	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(2 * sizeof(int));
	for (uint64_t i = 0; i < n; i++) {
		static union cn_msg answer;
		int fd = must_dial(), two[2] = { fd, fd };

		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), two, sizeof(two));
		if (sendmsg(fd, &msg, MSG_NOSIGNAL) >= 0) {
			taken++;
			while (receive_message(fd, &answer)) { /* until it is closed, or answers */
				if (answer.head.type == CN_MSG_STATS_REPLY) {
					break;
				}
			}
		}
		close(fd);
	}
	return taken;
}

static void stats(void)
{
	struct cn_msg_stats m = { .head = { .type = CN_MSG_STATS } };
	static union cn_msg answer;
	int fd = must_dial();

	for (;;) {
		if (send(fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
			continue;
		}
		if (errno != EAGAIN || !receive_message(fd, &answer)) {
			die("disconnected");
		}
		while (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) > 0) {
		}
	}
}

static void join(const char *job)
{
	struct cn_msg_join j = {
		.head = { .type = CN_MSG_JOIN },
		.rank = 1,
		.ranks = 2,
		.timeout_ms = 2000,
	};

	snprintf(j.job, sizeof(j.job), "%s", job);
	printf("%s\n", ask(must_dial(), &j, sizeof(j)) ? "joined" : refusal);
}

static void hold(uint64_t n)
{
	char none;

	while (n-- > 0) {
		must_dial();
	}
	puts("held");
	fflush(stdout);
	while (read(STDIN_FILENO, &none, 1) > 0) {
	}
}

/* ---- holes ---------------------------------------------------------------------------- */

#define HOLE_BYTES ((uint64_t)32 << 20)
#define HOLE_KINDS 3u

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The region 0 of a connection, for writing. */
static int unsealed_memory(int fd)
{
	const struct cn_msg_region m = { .head = { .type = CN_MSG_REGION }, .bytes = HOLE_BYTES };
	struct cn_msg_reply r;
	char name[32];
	int memory;

	if (send(fd, &m, sizeof(m), MSG_NOSIGNAL) < 0 ||
	    receive_descriptor(fd, &r, sizeof(r), 0, &memory) != sizeof(r) ||
	    r.status != COLLNET_OK || memory < 0) {
		die("no memory");
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", memory);
	fd = open(name, O_RDWR | O_CLOEXEC);
	close(memory);
	return fd;
}

struct hole {
	uint8_t *at; /* of the first mapping */
	int begun[2];
	bool ended; /* atomic */
};

static void *punch(void *argument)
{
	struct hole *h = argument;

	if (write(h->begun[1], "", 1) != 1 || madvise(h->at, HOLE_BYTES, MADV_REMOVE) != 0) {
		die("no hole");
	}
	__atomic_store_n(&h->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/* What the daemon has to do with the memory meanwhile. */
static void disturb(int fd, unsigned kind)
{
	const struct cn_msg_coll use = {
		.head = { .type = CN_MSG_COLL, .tag = 1 },
		.op = CN_OP_ALLTOALL,
		.timeout_ms = PATIENCE_MS,
		.bytes = HOLE_BYTES / 2,
		.recv = { .offset = HOLE_BYTES / 2 },
	};
	const struct cn_msg_unregion end = { .head = { .type = CN_MSG_UNREGION } };

	if (kind == 0) { /* ignored if the daemon has closed the connection */
		send(fd, &use, sizeof(use), MSG_NOSIGNAL);
	} else if (kind == 1) {
		send(fd, &end, sizeof(end), MSG_NOSIGNAL);
	}
	close(fd);
}

/* Whether the daemon still serves others during the hole; it sees the disturbance before these. */
static bool serves_others(struct hole *h)
{
	const struct cn_msg_stats m = { .head = { .type = CN_MSG_STATS } };
	const int fd = must_dial();

	for (int i = 0; i < 10; i++) {
		ask(fd, &m, sizeof(m));
	}
	close(fd);
	return !__atomic_load_n(&h->ended, __ATOMIC_ACQUIRE);
}

/* A hole in memory with so many mappings, of which all have pages. */
static bool hole(unsigned kind, uint64_t maps)
{
	const struct cn_msg_join j = { .head = { .type = CN_MSG_JOIN },
				       .ranks = 1,
				       .timeout_ms = PATIENCE_MS,
				       .job = "greedy" };
	const int fd = must_dial(), memory = unsealed_memory(fd);
	void **copies = calloc(maps, sizeof(*copies));
	struct hole h = { .ended = false };
	pthread_t thread;
	bool served;
	char begun;

	h.at = mmap(NULL, HOLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	for (uint64_t i = 0; i < maps; i++) {
		copies[i] = mremap(h.at, 0, HOLE_BYTES, MREMAP_MAYMOVE);
		if (copies[i] == MAP_FAILED ||
		    madvise(copies[i], HOLE_BYTES, MADV_POPULATE_WRITE) != 0) {
			die("no mapping");
		}
	}
	if (!ask(fd, &j, sizeof(j)) || pipe(h.begun) != 0 ||
	    pthread_create(&thread, NULL, punch, &h) != 0 || read(h.begun[0], &begun, 1) != 1) {
		die("no hole");
	}
	disturb(fd, kind);
	served = serves_others(&h);
	pthread_join(thread, NULL);
	for (uint64_t i = 0; i < maps; i++) {
		munmap(copies[i], HOLE_BYTES);
	}
	munmap(h.at, HOLE_BYTES);
	close(memory);
	close(h.begun[0]);
	close(h.begun[1]);
	free(copies);
	return served;
}

/* A busy machine may serve nobody during a hole, but not again and again. */
static unsigned holes(uint64_t maps)
{
	unsigned kind = 0;

	for (int tries = 0; kind < HOLE_KINDS && tries < 10; tries++) {
		if (hole(kind, maps)) {
			kind++;
			tries = 0;
		}
	}
	return kind;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "", *argument = argc > 3 ? argv[3] : "";
	uint64_t n = 0;

	path = argc > 1 ? argv[1] : "";
	if (cn_parse_size(argument, &n) && strcmp(what, "memory") == 0) {
		printf("%u granted: %s\n", memory(n), refusal);
	} else if (strcmp(what, "connections") == 0) {
		printf("%u granted: %s\n", connections(), refusal);
	} else if (strcmp(what, "teams") == 0) {
		printf("%u granted: %s\n", teams(), refusal);
	} else if (strcmp(what, "alone") == 0) {
		printf("%u granted: %s\n", alone(), refusal);
	} else if (strcmp(what, "endpoints") == 0) {
		printf("%u granted: %s\n", endpoints(), refusal);
	} else if (strcmp(what, "descriptors") == 0 && n > 0) {
		printf("%u taken\n", descriptors(n));
	} else if (strcmp(what, "stats") == 0) {
		stats();
	} else if (strcmp(what, "join") == 0) {
		join(argument);
	} else if (strcmp(what, "hold") == 0) {
		hold(n);
	} else if (strcmp(what, "holes") == 0 && n > 0) {
		printf("%u of %u: others were served during a hole\n", holes(n), HOLE_KINDS);
	} else {
		fprintf(stderr, "usage: greedy SOCKET WHAT [ARGUMENT]\n");
		return 2;
	}
	return 0;
}
