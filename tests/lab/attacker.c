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
 *   - headers   hellos behind IPv4 and UDP or TCP headers that are wrong, and of any length
 *   - super     super-frames of any number of frames of any size, whose frames are in part ours
 *
 * It waits until it has received both nodes' hellos, in COLLNET_ENCAPSULATION. COUNT: frames to
 * send (1; data, ack: 4,096). Prints "sent N".
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "link/encapsulation.h"
#include "proto/wire.h"
#include "util/byteorder.h"

/*
 * Frames a millisecond, a third of a port of 20 Mbit/s: a flood that fills a port starves anybody.
 */
#define BURST	10u
#define PORT	0x88b5
#define MOST	(CN_ETH_HEADER + 65535)
#define GSO_UDP 5 /* VIRTIO_NET_HDR_GSO_UDP_L4, which is younger than some headers */
#define HEADERS (CN_HEAD_MAX + CN_WIRE_HEADER)

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

static int open_socket(enum cn_encapsulation e)
{
	struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(e == CN_ENCAPSULATION_RAW ? PORT : 0x0800),
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
static bool listen_for(int s, enum cn_encapsulation e, const char *const names[2],
		       struct node nodes[2])
{
	const size_t head = cn_head_bytes(e);
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
		if (n < (ssize_t)head || f[0] != 0xff ||
		    cn_wire_get(f + head, (size_t)n - head, &w) != CN_WIRE_OK ||
		    w.type != CN_TYPE_HELLO ||
		    !cn_hello_get(f + head + CN_WIRE_HEADER, w.length, &h) || h.cluster != 1) {
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
	struct cn_wire w = { .type = CN_TYPE_HELLO };
	struct cn_hello h = { .epoch = as->epoch, .mtu = as->mtu, .cluster = 1 };
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
	} else if (strcmp(kind, "invent") == 0 || strcmp(kind, "flood") == 0 ||
		   strcmp(kind, "headers") == 0 || strcmp(kind, "super") == 0) {
		h.epoch = 1 + i;
		h.nonce = kind[0] == 'i' ? 0 : 1;
		unicast = kind[0] != 'f';
		w.flags = unicast ? CN_FLAG_UNICAST : CN_FLAG_SOLICIT;
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

static uint64_t pick(uint64_t *random, uint64_t below)
{
	return cn_random(random) % below;
}

/* Damages up to three bytes behind the addresses, and cuts or prolongs it; returns its length. */
static size_t damage(uint8_t *f, size_t len, uint64_t *random)
{
	static const uint8_t often[] = { 0, 1, 6, 17, 0x45, 0x4f, 0x50, 0x7f, 0x80, 0xff };
	const uint64_t how = pick(random, 4);

	for (uint64_t i = pick(random, 4); i > 0; i--) {
		uint64_t value = cn_random(random);

		f[12 + pick(random, HEADERS - 12)] = (value & 1) != 0
							     ? often[(value >> 1) % sizeof(often)]
							     : (uint8_t)(value >> 8);
	}
	if (how == 0) {
		return CN_ETH_HEADER + pick(random, len - CN_ETH_HEADER);
	}
	return how == 1 ? len + pick(random, 1500 - len) : len;
}

/* The struct virtio_net_hdr and the super-frame behind it, of copies of the collnet frame; returns
 * the length of both. */
static size_t put_super(uint8_t *out, const uint8_t *frame, size_t len, uint64_t *random)
{
	static const uint16_t sizes[] = { 1, 23, 24, 25, 46, 60, 100, 1000, 1436, 1448 };
	const bool tcp = pick(random, 2) == 0;
	struct cn_headers h = {
		.encapsulation = tcp ? CN_ENCAPSULATION_TCP : CN_ENCAPSULATION_UDP,
		.addresses = frame,
		.port = PORT,
		.flow = (uint16_t)cn_random(random),
		.sequence = (uint32_t)cn_random(random),
	};
	const size_t size = sizes[pick(random, sizeof(sizes) / sizeof(sizes[0]))];
	const size_t head = cn_head_bytes(h.encapsulation), most = 65535 - CN_TCP_HEADER;
	const size_t copied = len - CN_ETH_HEADER < size ? len - CN_ETH_HEADER : size;
	const struct virtio_net_hdr vnet = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = tcp ? VIRTIO_NET_HDR_GSO_TCPV4 : GSO_UDP,
		.hdr_len = (uint16_t)head,
		.gso_size = (uint16_t)size,
		.csum_start = CN_CHECKSUM_START,
		.csum_offset = (uint16_t)cn_checksum_offset(h.encapsulation),
	};
	uint8_t *body = out + sizeof(vnet) + head;

	h.bytes = size * (1 + pick(random, 64)) + pick(random, size);
	h.bytes = h.bytes < most ? h.bytes : most;
	for (size_t at = 0; at < h.bytes; at++) {
		body[at] = at % size < copied && (at / size) % 4 != 3
				   ? frame[CN_ETH_HEADER + at % size]
				   : (uint8_t)cn_random(random);
	}
	memcpy(out, &vnet, sizeof(vnet));
	cn_headers_put(out + sizeof(vnet), &h);
	return sizeof(vnet) + head + h.bytes;
}

/* The frame of build() as `kind` sends it; returns its length. */
static size_t wrap(const char *kind, const uint8_t *frame, size_t len, uint64_t *random,
		   uint8_t *out)
{
	if (strcmp(kind, "super") == 0) {
		return put_super(out, frame, len, random);
	}
	if (strcmp(kind, "headers") == 0) {
		memset(out, 0, 2048);
		len = cn_encapsulate(out,
				     pick(random, 2) == 0 ? CN_ENCAPSULATION_UDP
							  : CN_ENCAPSULATION_TCP,
				     frame, len, PORT);
		return damage(out, len, random);
	}
	memcpy(out, frame, len);
	return len;
}

int main(int argc, char **argv)
{
	static uint8_t out[sizeof(struct virtio_net_hdr) + MOST];
	const char *name = getenv("COLLNET_ENCAPSULATION");
	enum cn_encapsulation e = CN_ENCAPSULATION_RAW;
	uint64_t random = 1;
	int on;
	struct node nodes[2] = { { 0 }, { 0 } };
	uint64_t count, sent = 0;
	int s;

	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: attacker KIND VICTIM AS [COUNT]\n");
		return 2;
	}
	count = argc == 5 ? strtoull(argv[4], NULL, 10) : 1;
	if (name != NULL && !cn_parse_encapsulation(name, &e)) {
		fprintf(stderr, "attacker: no encapsulation %s\n", name);
		return 2;
	}
	s = open_socket(e);
	if (s < 0) {
		return fail("socket");
	}
	if (!listen_for(s, e, (const char *const[]){ argv[2], argv[3] }, nodes)) {
		fprintf(stderr, "attacker: no hellos of %s and %s\n", argv[2], argv[3]);
		return 1;
	}
	on = strcmp(argv[1], "super") == 0;
	if (setsockopt(s, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) < 0) {
		return fail("PACKET_VNET_HDR");
	}
	while (sent < count) {
		const struct timespec pause = { .tv_nsec = 1000000 };
		uint8_t f[CN_FRAME_HEAD];
		size_t len = build(argv[1], &nodes[0], &nodes[1], argv[3], (uint32_t)sent, f);
		struct pollfd p = { .fd = s, .events = POLLOUT };

		len = wrap(argv[1], f, len, &random, out);
		if (send(s, out, len, 0) == (ssize_t)len || errno == EINVAL) {
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
