/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A malformed client of collnetd: malformed_client SOCKET SEED ROUNDS.
 *
 * Says things on the daemon's socket that no library would, in every round one of each kind, and
 * sees that the daemon closes the connection where it must. In between, a well-behaved client
 * has to be served as if nothing had happened.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ipc/msg.h"
#include "node/memfd.h"
#include "tests/unit/descriptor.h"

#define CLOSE_MS 10000 /* until when a connection must be closed */

static const char *path;
static uint64_t seed;

static void die(const char *what)
{
	fprintf(stderr, "malformed_client: %s (%s)\n", what, strerror(errno));
	exit(1);
}

static int dial(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(sun.sun_path)) {
		die("socket");
	}
	strcpy(sun.sun_path, path);
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0) {
		die("the daemon does not answer any more");
	}
	return fd;
}

/* Whether the daemon took it: it may have closed already. */
static bool say(int fd, const void *m, size_t len)
{
	return send(fd, m, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static int greet(void)
{
	struct cn_msg_hello h = {
		.head = { .type = CN_MSG_HELLO, .tag = 1 },
		.magic = CN_MSG_MAGIC,
		.version = CN_MSG_VERSION,
	};
	struct cn_msg_welcome w;
	int fd = dial();

	if (!say(fd, &h, sizeof(h)) || recv(fd, &w, sizeof(w), 0) != (ssize_t)sizeof(w) ||
	    w.status != COLLNET_OK) {
		die("no welcome");
	}
	return fd;
}

/* Reads until the daemon has closed the connection. */
static void must_close(int fd, const char *what)
{
	static char rest[1 << 16];
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (;;) {
		if (poll(&p, 1, CLOSE_MS) <= 0) {
			die(what);
		}
		if (recv(fd, rest, sizeof(rest), 0) <= 0) {
			close(fd);
			return;
		}
	}
}

static void fill(void *p, size_t n)
{
	unsigned char *bytes = p;

	while (n-- > 0) {
		*bytes++ = (unsigned char)cn_random(&seed);
	}
}

/* ---- kinds of malformed input ------------------------------------------------------------ */

static void noise_before_greeting(void)
{
	static char b[5000];
	size_t n = 1 + cn_random(&seed) % sizeof(b);
	int fd = dial();

	fill(b, n);
	say(fd, b, n);
	must_close(fd, "noise instead of a greeting is suffered");
}

static void request_before_greeting(void)
{
	struct cn_msg_stats m = { .head = { .type = CN_MSG_STATS } };
	int fd = dial();

	say(fd, &m, sizeof(m));
	must_close(fd, "a request before the greeting is suffered");
}

static void another_version(void)
{
	struct cn_msg_hello h = {
		.head = { .type = CN_MSG_HELLO },
		.magic = CN_MSG_MAGIC,
		.version = CN_MSG_VERSION + 1,
	};
	struct cn_msg_welcome w;
	char text[64];
	int fd = dial();

	say(fd, &h, sizeof(h));
	snprintf(text, sizeof(text), "libcollnet speaks version %u ", h.version);
	if (recv(fd, &w, sizeof(w), 0) != (ssize_t)sizeof(w) || strstr(w.text, text) == NULL) {
		die("another version is not named");
	}
	must_close(fd, "another version is suffered");
}

static void noise_after_greeting(void)
{
	static union cn_msg m;
	int fd = greet();

	/* Of the right length: it passes now and then, and then something else has to go wrong. */
	for (int i = 0; i < 200; i++) {
		uint32_t type = 1 + (uint32_t)(cn_random(&seed) % (CN_MSG_LAST_REQUEST + 1));

		fill(&m, sizeof(m));
		m.head.type = type;
		m.head.tag %= CN_MSG_REQUESTS;
		if (!say(fd, &m, cn_msg_size(type) > 0 ? cn_msg_size(type) : sizeof(m.head))) {
			break;
		}
	}
	say(fd, &m, 3);
	must_close(fd, "noise is suffered");
}

static void wrong_length(void)
{
	struct {
		struct cn_msg_stats m;
		char more;
	} m = { .m = { .head = { .type = CN_MSG_STATS } } };
	int fd = greet();

	say(fd, &m, sizeof(m.m) + 1);
	must_close(fd, "a byte too many is suffered");
	fd = greet();
	say(fd, &m, sizeof(m.m) - 1);
	must_close(fd, "a byte too few is suffered");
}

static void empty(void)
{
	int fd = greet();

	say(fd, "", 0);
	must_close(fd, "an empty message is suffered");
}

/* Asks for a region and maps it. */
static void *map_region(int fd, const struct cn_msg_region *m)
{
	struct cn_msg_reply r;
	int memory;
	void *p;

	if (!say(fd, m, sizeof(*m)) ||
	    receive_descriptor(fd, &r, sizeof(r), 0, &memory) != (ssize_t)sizeof(r) ||
	    r.status != COLLNET_OK || memory < 0) {
		die("no memory");
	}
	p = cn_memfd_map(memory, m->bytes, 0);
	if (p == NULL) {
		die("memory cannot be mapped");
	}
	close(memory);
	return p;
}

/* Asks for a page of memory as region 0. The descriptor is left to the kernel. */
static void get_page(int fd)
{
	struct cn_msg_region m = { .head = { .type = CN_MSG_REGION }, .bytes = 4096 };
	struct cn_msg_reply r;

	if (!say(fd, &m, sizeof(m)) || recv(fd, &r, sizeof(r), 0) != (ssize_t)sizeof(r) ||
	    r.status != COLLNET_OK) {
		die("no memory");
	}
}

/* An exchange of one rank with itself, from and to places that are not there. */
static void places(uint32_t region, uint64_t offset, uint64_t bytes)
{
	struct cn_msg_join j = {
		.head = { .type = CN_MSG_JOIN },
		.ranks = 1,
		.timeout_ms = 1000,
	};
	struct cn_msg_coll c = {
		.head = { .type = CN_MSG_COLL, .tag = 1 },
		.op = 1,
		.timeout_ms = 1000,
		.bytes = bytes,
		.send = { .region = 0 },
		.recv = { .region = region, .offset = offset },
	};
	int fd = greet();

	get_page(fd);
	snprintf(j.job, sizeof(j.job), "malformed-%ld", (long)getpid());
	say(fd, &j, sizeof(j));
	say(fd, &c, sizeof(c));
	must_close(fd, "a place that does not exist is suffered");
}

/* A vector operation of one rank with itself, whose blocks are not where it says, or go too far. */
static void blocks(uint32_t region, uint64_t offset, struct cn_block send, struct cn_block recv)
{
	struct cn_msg_region page = { .head = { .type = CN_MSG_REGION }, .bytes = 4096 };
	struct cn_msg_join j = {
		.head = { .type = CN_MSG_JOIN },
		.ranks = 1,
		.timeout_ms = 1000,
	};
	struct cn_msg_coll c = {
		.head = { .type = CN_MSG_COLL, .tag = 1 },
		.op = CN_OP_ALLTOALLV,
		.timeout_ms = 1000,
		.send = { .region = 0 },
		.recv = { .region = 0, .offset = 2048 },
		.blocks = { .region = region, .offset = offset },
	};
	int fd = greet();
	struct cn_block *b = map_region(fd, &page);

	b[0] = send;
	b[1] = recv;
	munmap(b, page.bytes);
	snprintf(j.job, sizeof(j.job), "malformed-%ld", (long)getpid());
	say(fd, &j, sizeof(j));
	say(fd, &c, sizeof(c));
	must_close(fd, "blocks that do not exist are suffered");
}

static void all_blocks(void)
{
	const struct cn_block good = { 64, 100 }, none = { UINT64_MAX, 0 };

	blocks(1, 0, good, good);
	blocks(0, 4096 - sizeof(good), good, good);
	blocks(0, 4097, good, good);
	blocks(CN_MSG_NO_REGION, 0, good, good);
	blocks(0, 0, (struct cn_block){ 4000, 97 }, none);
	blocks(0, 0, none, (struct cn_block){ 2000, 49 });
	blocks(0, 0, (struct cn_block){ UINT64_MAX - 50, 100 }, none);
	blocks(0, 0, none, (struct cn_block){ 0, UINT64_MAX });
	blocks(0, 0, good, (struct cn_block){ UINT64_MAX - 99, 100 });
}

static void descriptors(int what)
{
	struct cn_msg_region m = {
		.head = { .type = CN_MSG_REGION },
		.bytes = 4096,
	};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
	int fd = greet(), fds[4] = { fd, fd, fd, fd };
	size_t n = what == 0 ? 1 : 4;

	memset(&control, 0, sizeof(control));
	msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, n * sizeof(int));
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0) {
		if (errno != EPERM) {
			die("descriptors cannot be sent");
		}
		close(fd); /* the kernel does not let them in */
		return;
	}
	must_close(fd, "a descriptor is suffered");
}

/* Asks and asks, and never reads. */
static void deaf(void)
{
	struct cn_msg_table m = { .head = { .type = CN_MSG_NODES } };
	int fd = greet();
	long n = 0;

	while (say(fd, &m, sizeof(m))) {
		if (++n > 1000000) {
			die("one that never reads is suffered");
		}
	}
	must_close(fd, "one that never reads is suffered");
}

/* Has its rings made, and writes noise all over them. */
static void noise_in_rings(void)
{
	const struct cn_msg_region m = { .head = { .type = CN_MSG_REGION },
					 .region = CN_MSG_RINGS,
					 .bytes = (CN_MSG_RINGS_BYTES + 4095) / 4096 * 4096 };
	const struct cn_msg_head doorbell = { .type = CN_MSG_DOORBELL };
	int fd = greet();
	void *p = map_region(fd, &m);

	fill(p, m.bytes);
	say(fd, &doorbell, sizeof(doorbell));
	must_close(fd, "noise in rings is suffered");
	munmap(p, m.bytes);
}

/* Comes, joins a team that will never be complete, and dies. */
static void leaves_abruptly(void)
{
	struct cn_msg_join j = {
		.head = { .type = CN_MSG_JOIN },
		.ranks = 4096,
		.timeout_ms = 60000,
	};
	int fd = greet();

	snprintf(j.job, sizeof(j.job), "never-%ld", (long)getpid());
	say(fd, &j, sizeof(j));
	close(fd);
}

/* ---- the well-behaved client ---------------------------------------------------------- */

static void behave(void)
{
	struct collnet_options o;
	struct collnet_team_options to;
	collnet_t *c = NULL;
	collnet_team_t *t = NULL;
	char in[1000], out[1000];

	collnet_options_init(&o);
	o.mode = COLLNET_MODE_DAEMON;
	o.socket = path;
	if (collnet_open(&o, &c) != COLLNET_OK) {
		fprintf(stderr, "malformed_client: %s\n", collnet_error(NULL));
		exit(1);
	}
	collnet_team_options_init(&to);
	to.job = NULL;
	to.rank = 0;
	to.ranks = 1;
	fill(in, sizeof(in));
	if (collnet_team_create(c, &to, &t) != COLLNET_OK ||
	    collnet_alltoall(t, in, out, sizeof(in), NULL) != COLLNET_OK) {
		fprintf(stderr, "malformed_client: %s\n", collnet_error(c));
		exit(1);
	}
	if (memcmp(in, out, sizeof(in)) != 0) {
		die("wrong bytes");
	}
	collnet_close(c);
}

int main(int argc, char **argv)
{
	uint64_t rounds = 0;

	if (argc != 4 || !cn_parse_uint(argv[2], 0, UINT64_MAX, &seed) ||
	    !cn_parse_uint(argv[3], 1, 1000000, &rounds)) {
		fprintf(stderr, "usage: malformed_client SOCKET SEED ROUNDS\n");
		return 2;
	}
	path = argv[1];
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint64_t i = 0; i < rounds; i++) {
		noise_before_greeting();
		request_before_greeting();
		another_version();
		noise_after_greeting();
		wrong_length();
		empty();
		behave();
		places(6, 0, 100);    /* no such region */
		places(0, 4000, 100); /* beyond its end */
		places(0, UINT64_C(1) << 34, 100);
		places(0, 1, COLLNET_BLOCK_MAX); /* longer than it */
		places(0, 50, 100);		 /* over what is sent */
		all_blocks();
		descriptors(0);
		descriptors(1);
		noise_in_rings();
		deaf();
		leaves_abruptly();
		behave();
	}
	printf("the daemon is unaffected\n");
	return 0;
}
