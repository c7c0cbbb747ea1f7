/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bare raw sockets, measured.
 *
 * A frame is an Ethernet header and sixteen bytes: magic, type, three zeros, a number of 64 bits;
 * what follows is filler. Both measurements begin with HELLO, repeated until WELCOME comes, and
 * end with END, repeated until ENDED comes or replies cease: the last frame can be lost,
 * so a side that has its result does not insist, and an END of an earlier measurement is answered
 * whenever it comes.
 *
 * Receiving is a TPACKET_V2 ring, looked at without a system call: its round trips are shorter
 * by a tenth than those of a recv() that spins, and TPACKET_V3 receives streams no faster, for on
 * a veth pair the sender's processor does the work. Sending is send() for one frame and
 * sendmmsg() for streams, which was faster than a ring for sending.
 */
#include "tools/bench/baseline.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/interface.h"
#include "link/kinds.h"
#include "util/byteorder.h"
#include "util/clock.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define MAGIC	   0x636e4231u /* "cnB1" */
#define HEAD	   CN_ETH_HEADER
#define BATCH	   32
#define RING_BYTES ((size_t)8 << 20)
#define AGAIN	   (10 * CN_MS) /* repetition of what was not answered */
#define END_TRIES  200
#define SPIN_ALONE (20 * CN_US)
#define SPINS	   64 /* empty looks between looks at the clock */

enum type { HELLO = 1, WELCOME, PING, PONG, DATA, END, ENDED };

struct baseline {
	int fd;
	uint8_t *ring;
	uint32_t slot_bytes, slots, next;
	uint32_t block_bytes, slots_per_block;
	struct cn_interface interface;
	uint16_t ethertype;
	uint8_t *frames; /* BATCH of them, each of the largest size */
	uint32_t frame_max;
	struct mmsghdr messages[BATCH];
	struct iovec pieces[BATCH];
};

/* A frame that came. */
struct seen {
	enum type type;
	uint64_t number;
	uint64_t ns; /* when it came, by the kernel */
};

static void write_frame(struct baseline *b, uint8_t *f, const uint8_t peer[6], enum type type,
			uint64_t number)
{
	memcpy(f, peer, 6);
	memcpy(f + 6, b->interface.mac, 6);
	cn_put_be16(f + 12, b->ethertype);
	cn_put_be64(f + HEAD, (uint64_t)MAGIC << 32 | (uint64_t)type << 24);
	cn_put_be64(f + HEAD + 8, number);
}

/* The length on the wire of a frame with this payload. */
static size_t wire_length(uint32_t payload)
{
	return HEAD + payload < CN_ETH_MIN ? CN_ETH_MIN : HEAD + payload;
}

/* The next frame from the peer that is one of ours. False: none is there. */
static bool look(struct baseline *b, const uint8_t peer[6], struct seen *s)
{
	for (;;) {
		uint8_t *at = b->ring + (size_t)(b->next / b->slots_per_block) * b->block_bytes +
			      (size_t)(b->next % b->slots_per_block) * b->slot_bytes;
		struct tpacket2_hdr *h = (struct tpacket2_hdr *)(void *)at;
		const uint8_t *f;
		bool ours;

		if ((__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER) == 0) {
			return false;
		}
		f = at + h->tp_mac;
		ours = h->tp_snaplen >= HEAD + BASELINE_PAYLOAD_MIN &&
		       memcmp(f, b->interface.mac, 6) == 0 && memcmp(f + 6, peer, 6) == 0 &&
		       cn_get_be32(f + HEAD) == MAGIC;
		if (ours) {
			s->type = (enum type)f[HEAD + 4];
			s->number = cn_get_be64(f + HEAD + 8);
			s->ns = (uint64_t)h->tp_sec * 1000000000u + h->tp_nsec;
		}
		__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		b->next = b->next + 1 == b->slots ? 0 : b->next + 1;
		if (ours) {
			return true;
		}
	}
}

/* Spins until a frame comes or `until`. */
static bool poll_until(struct baseline *b, const uint8_t peer[6], struct seen *s, cn_time until)
{
	do {
		for (int i = 0; i < SPINS; i++) {
			if (look(b, peer, s)) {
				return true;
			}
		}
	} while (cn_now() < until);
	return false;
}

/*
 * Like it, but lets others run when nothing came for a while. A receiver that spins can hold the
 * very processor on which the kernel's thread is to bring it the frames, and would measure that.
 */
static bool await(struct baseline *b, const uint8_t peer[6], struct seen *s, cn_time until)
{
	if (look(b, peer, s)) {
		return true;
	}
	while (!poll_until(b, peer, s, cn_min_time(cn_now() + SPIN_ALONE, until))) {
		if (cn_now() >= until) {
			return false;
		}
		sched_yield();
	}
	return true;
}

static int failed(const struct baseline *b, const char *what, struct cn_err *err)
{
	return cn_fail(err, errno == ENETDOWN || errno == ENXIO ? COLLNET_EIFACE : COLLNET_ESYSTEM,
		       "interface %s: %s: %s", b->interface.name, what, strerror(errno));
}

static int timed_out(const struct baseline *b, const char *what, struct cn_err *err)
{
	return cn_fail(err, COLLNET_ETIMEOUT,
		       "raw sockets on %s: no %s in time: does the "
		       "other side run it too?",
		       b->interface.name, what);
}

static int wait_writable(const struct baseline *b, cn_time deadline, struct cn_err *err)
{
	struct pollfd p = { .fd = b->fd, .events = POLLOUT };

	if (cn_now() >= deadline) {
		return timed_out(b, "room in the send queue", err);
	}
	if (poll(&p, 1, 10) < 0 && errno != EINTR) {
		return failed(b, "poll", err);
	}
	return 0;
}

static bool is_full(int e)
{
	return e == EAGAIN || e == ENOBUFS || e == EINTR;
}

static int send_one(struct baseline *b, const uint8_t peer[6], enum type type, uint64_t number,
		    uint32_t payload, cn_time deadline, struct cn_err *err)
{
	write_frame(b, b->frames, peer, type, number);
	while (send(b->fd, b->frames, wire_length(payload), MSG_DONTWAIT) < 0) {
		int r = is_full(errno) ? wait_writable(b, deadline, err) : failed(b, "send", err);

		if (r < 0) {
			return r;
		}
	}
	return 0;
}

/* Answers what belongs to the beginning and to the end of a measurement; true: it was that. */
static bool answer(struct baseline *b, const uint8_t peer[6], const struct seen *s,
		   cn_time deadline, int *result, struct cn_err *err)
{
	if (s->type != HELLO && s->type != END) {
		return false;
	}
	*result = send_one(b, peer, s->type == HELLO ? WELCOME : ENDED, s->number,
			   BASELINE_PAYLOAD_MIN, deadline, err);
	return true;
}

/* Sends `type` until `reply` comes; at most `tries` times. 1: no reply. */
static int ask(struct baseline *b, const uint8_t peer[6], enum type type, uint64_t number,
	       enum type reply, uint32_t tries, cn_time deadline, struct cn_err *err)
{
	for (uint32_t i = 0; i < tries && cn_now() < deadline; i++) {
		cn_time until = cn_min_time(cn_now() + AGAIN, deadline);
		struct seen s;
		int r = send_one(b, peer, type, number, BASELINE_PAYLOAD_MIN, deadline, err);

		if (r < 0) {
			return r;
		}
		while (poll_until(b, peer, &s, until)) {
			if (s.type == reply && s.number == number) {
				return 0;
			}
			/* An END here is of the measurement before this one. */
			if (s.type == END && answer(b, peer, &s, deadline, &r, err) && r < 0) {
				return r;
			}
		}
	}
	return 1;
}

static int start(struct baseline *b, const uint8_t peer[6], uint64_t number, cn_time deadline,
		 struct cn_err *err)
{
	int r = ask(b, peer, HELLO, number, WELCOME, UINT32_MAX, deadline, err);

	return r == 1 ? timed_out(b, "answer", err) : r;
}

static int finish(struct baseline *b, const uint8_t peer[6], uint64_t number, cn_time deadline,
		  struct cn_err *err)
{
	int r = ask(b, peer, END, number, ENDED, END_TRIES, deadline, err);

	return r < 0 ? r : 0;
}

/* A number that distinguishes one measurement from the next. */
static uint64_t new_run(void)
{
	return cn_mix64(cn_now());
}

static int ping(struct baseline *b, const uint8_t peer[6], uint32_t payload, uint32_t iterations,
		uint64_t *rtt_ns, uint64_t *lost, cn_time deadline, struct cn_err *err)
{
	uint64_t number = 0;

	for (uint32_t i = 0; i < iterations;) {
		cn_time sent = cn_now();
		struct seen s = { .type = HELLO };
		int r;

		if (sent >= deadline) {
			return timed_out(b, "answer", err);
		}
		r = send_one(b, peer, PING, ++number, payload, deadline, err);
		if (r < 0) {
			return r;
		}
		while (poll_until(b, peer, &s, cn_min_time(sent + AGAIN, deadline))) {
			if (s.type == PONG && s.number == number) {
				rtt_ns[i++] = cn_now() - sent;
				break;
			}
		}
		if (s.type != PONG || s.number != number) {
			*lost += 1;
		}
	}
	return 0;
}

static int pong(struct baseline *b, const uint8_t peer[6], uint32_t payload, cn_time deadline,
		struct cn_err *err)
{
	uint64_t run = 0;
	struct seen s;
	int r = 0;

	while (poll_until(b, peer, &s, deadline)) {
		if (s.type == PING) {
			r = send_one(b, peer, PONG, s.number, payload, deadline, err);
		} else if (answer(b, peer, &s, deadline, &r, err)) {
			if (s.type == HELLO) {
				run = s.number;
			} else if (s.number == run && run != 0) {
				return r;
			}
		}
		if (r < 0) {
			return r;
		}
	}
	return timed_out(b, "end", err);
}

static int check_payload(const struct baseline *b, uint32_t payload, struct cn_err *err)
{
	if (payload < BASELINE_PAYLOAD_MIN || payload > b->interface.mtu) {
		return cn_fail(err, COLLNET_EINVAL,
			       "raw frames on %s carry %d to %u bytes, not "
			       "%u",
			       b->interface.name, BASELINE_PAYLOAD_MIN, b->interface.mtu, payload);
	}
	return 0;
}

int baseline_pingpong(struct baseline *b, const uint8_t peer[6], bool initiator, uint32_t payload,
		      uint32_t iterations, uint64_t *rtt_ns, uint64_t *lost, cn_time deadline,
		      struct cn_err *err)
{
	uint64_t run = new_run(), losses = 0;
	int r = check_payload(b, payload, err);

	if (r < 0) {
		return r;
	}
	if (!initiator) {
		return pong(b, peer, payload, deadline, err);
	}
	r = start(b, peer, run, deadline, err);
	if (r == 0) {
		r = ping(b, peer, payload, iterations, rtt_ns, &losses, deadline, err);
	}
	if (r == 0) {
		r = finish(b, peer, run, deadline, err);
	}
	if (r == 0 && lost != NULL) {
		*lost = losses;
	}
	return r;
}

int baseline_stream_send(struct baseline *b, const uint8_t peer[6], uint32_t payload,
			 uint64_t duration_ns, uint64_t *sent, cn_time deadline, struct cn_err *err)
{
	uint64_t run = new_run(), number = 0;
	cn_time until;
	int r = check_payload(b, payload, err);

	if (r == 0) {
		r = start(b, peer, run, deadline, err);
	}
	for (int i = 0; i < BATCH; i++) {
		b->pieces[i].iov_len = wire_length(payload);
		write_frame(b, b->pieces[i].iov_base, peer, DATA, 0);
	}
	until = cn_min_time(cn_now() + duration_ns, deadline);
	while (r == 0 && cn_now() < until) {
		for (unsigned int i = 0; i < BATCH; i++) {
			cn_put_be64((uint8_t *)b->pieces[i].iov_base + HEAD + 8, number + i);
		}
		int n = sendmmsg(b->fd, b->messages, BATCH, MSG_DONTWAIT);

		if (n > 0) {
			number += (uint64_t)n;
		} else {
			r = is_full(errno) ? wait_writable(b, deadline, err)
					   : failed(b, "send", err);
		}
	}
	/* The end carries how many there were, under the number of the run's beginning. */
	if (r == 0) {
		r = finish(b, peer, number, deadline, err);
	}
	if (r == 0 && sent != NULL) {
		*sent = number;
	}
	return r;
}

int baseline_stream_recv(struct baseline *b, const uint8_t peer[6], struct baseline_rate *out,
			 cn_time deadline, struct cn_err *err)
{
	struct baseline_rate rate = { 0 };
	uint64_t first = 0;
	bool started = false;
	struct seen s;
	int r = 0;

	while (await(b, peer, &s, deadline)) {
		if (s.type == DATA && started) {
			/* By the time of arrival, so that scheduling does not matter. */
			first = rate.frames++ == 0 ? s.ns : first;
			rate.ns = s.ns > first ? s.ns - first : 0;
		} else if (answer(b, peer, &s, deadline, &r, err)) {
			if (s.type == HELLO) {
				started = true;
			} else if (started) {
				rate.lost = s.number > rate.frames ? s.number - rate.frames : 0;
				rate.per_second = rate.ns == 0 ? 0
							       : (double)(rate.frames - 1) * 1e9 /
									 (double)rate.ns;
				*out = rate;
				return r;
			}
		}
		if (r < 0) {
			return r;
		}
	}
	return timed_out(b, started ? "end" : "beginning", err);
}

static int map_ring(struct baseline *b, struct cn_err *err)
{
	int version = TPACKET_V2, on = 1;
	struct tpacket_req r = { 0 };
	struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(b->ethertype),
		.sll_ifindex = b->interface.index,
	};

	b->block_bytes = 65536;
	/* As many slots as fit into a block; a slot does not cross its end. */
	b->slot_bytes = (uint32_t)TPACKET_ALIGN(TPACKET_ALIGN(TPACKET2_HDRLEN + 16) + b->frame_max);
	while (b->block_bytes < b->slot_bytes) {
		b->block_bytes *= 2;
	}
	b->slots_per_block = b->block_bytes / b->slot_bytes;
	r.tp_block_size = b->block_bytes;
	r.tp_block_nr = (uint32_t)(RING_BYTES / b->block_bytes);
	b->slots = r.tp_block_nr * b->slots_per_block;
	r.tp_frame_size = b->slot_bytes;
	r.tp_frame_nr = b->slots;
	if (setsockopt(b->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) < 0 ||
	    setsockopt(b->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0 ||
	    setsockopt(b->fd, SOL_PACKET, PACKET_RX_RING, &r, sizeof(r)) < 0) {
		return failed(b, "receive ring", err);
	}
	b->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (b->ring == MAP_FAILED) {
		b->ring = NULL;
		return failed(b, "receive ring", err);
	}
	if (bind(b->fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		return failed(b, "bind", err);
	}
	return 0;
}

int baseline_open(const char *interface, uint16_t ethertype, struct baseline **out,
		  struct cn_err *err)
{
	struct baseline *b = calloc(1, sizeof(*b));
	int r;

	if (b == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for raw sockets");
	}
	b->fd = -1;
	b->ethertype = ethertype;
	r = cn_interface_choose(interface, false, &b->interface, err);
	if (r < 0) {
		baseline_close(b);
		return r;
	}
	if (b->interface.mtu > CN_LINK_MTU_MAX) {
		b->interface.mtu = CN_LINK_MTU_MAX;
	}
	b->frame_max = HEAD + b->interface.mtu;
	b->frames = calloc(BATCH, b->frame_max);
	b->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (b->frames == NULL) {
		r = cn_fail(err, COLLNET_ENOMEM, "no memory for raw sockets");
	} else if (b->fd < 0) {
		r = cn_link_refused(b->interface.name, "packet socket", errno, err);
	} else {
		r = map_ring(b, err);
	}
	if (r < 0) {
		baseline_close(b);
		return r;
	}
	for (uint32_t i = 0; i < BATCH; i++) {
		b->pieces[i].iov_base = b->frames + (size_t)i * b->frame_max;
		b->messages[i].msg_hdr.msg_iov = &b->pieces[i];
		b->messages[i].msg_hdr.msg_iovlen = 1;
	}
	*out = b;
	return 0;
}

void baseline_close(struct baseline *b)
{
	if (b == NULL) {
		return;
	}
	if (b->ring != NULL) {
		munmap(b->ring, RING_BYTES);
	}
	if (b->fd >= 0) {
		close(b->fd);
	}
	free(b->frames);
	free(b);
}

const uint8_t *baseline_mac(const struct baseline *b)
{
	return b->interface.mac;
}
