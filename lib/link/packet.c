/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link of Linux: AF_PACKET.
 *
 * Receiving: one socket with a TPACKET_V2 ring, which the kernel fills slot by slot; frames are
 * handed out where they lie. V2 and not V3, because V3 holds frames back until a block is full or
 * a timer of milliseconds runs out. The socket is opened deaf (protocol 0) and bound last, so
 * that no frame passes before the filter is on it and locked.
 *
 * Sending: a second, deaf socket, so that waiting for room never wakes up on a frame that came.
 * Its send buffer is small: the frames that wait in the interface's queue fill it, and the kernel
 * reports that instead of dropping them. The queueing discipline is not bypassed; it is that queue.
 *
 * Slots are in order of arrival. [tail, tail + borrowed) is with the caller.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/filter.h"
#include "link/kinds.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define SEND_BATCH	32
#define SEND_TOGETHER	512
#define BLOCK_MIN	65536
#define SEND_BUFFER_MIN 2304 /* the kernel goes no lower, in the unit of SO_SNDBUF */
#define ERROR_EVERY	64   /* empty looks at the ring between looks at the socket's error */

/* A place in the ring. Slots do not cross blocks, and a block can end in a rest. */
struct cursor {
	uint32_t block, slot;
};

struct packet_link {
	struct cn_link link;
	uint8_t *ring;
	size_t ring_bytes;
	uint32_t slot_bytes, slots_per_block, block_bytes, blocks;
	uint32_t slots;
	struct cursor head, tail;
	uint32_t borrowed;
	uint32_t empty_looks;
	int send_buffer;
	bool gone; /* the loss of the interface is logged */
	struct cn_link_counters counters;
	struct mmsghdr messages[SEND_BATCH];
	struct iovec pieces[SEND_BATCH][3];
};

static const uint8_t padding[CN_ETH_MIN];

static struct tpacket2_hdr *slot_at(const struct packet_link *p, const struct cursor *c)
{
	return (struct tpacket2_hdr *)(void *)(p->ring + (size_t)c->block * p->block_bytes +
					       (size_t)c->slot * p->slot_bytes);
}

static void advance(const struct packet_link *p, struct cursor *c)
{
	if (++c->slot == p->slots_per_block) {
		c->slot = 0;
		if (++c->block == p->blocks) {
			c->block = 0;
		}
	}
}

static void report_gone(struct packet_link *p, int e)
{
	if (!p->gone) {
		p->gone = true;
		cn_log(COLLNET_LOG_ERROR, "interface %s: %s", p->link.interface, strerror(e));
	}
}

/*
 * An interface that goes down leaves an error on the socket, which poll() reports until somebody
 * fetches it. Asking at every empty look would cost a system call in loops that spin.
 */
static void fetch_error(struct packet_link *p)
{
	int e = 0;
	socklen_t len = sizeof(e);

	p->empty_looks = 0;
	if (getsockopt(p->link.recv_fd, SOL_SOCKET, SO_ERROR, &e, &len) == 0 && e != 0) {
		report_gone(p, e);
	}
}

/*
 * A frame with a VLAN tag is of another network. The kernel has taken the tag out, which it reports
 * in the status, or, to sockets bound to one EtherType, only by calling it somebody else's frame.
 */
static bool is_tagged(const struct tpacket2_hdr *h, uint32_t status)
{
	const struct sockaddr_ll *from = (const void *)((const uint8_t *)h +
							TPACKET_ALIGN(sizeof(*h)));

	return (status & TP_STATUS_VLAN_VALID) != 0 || from->sll_pkttype == PACKET_OTHERHOST;
}

static void packet_release(struct cn_link *l)
{
	struct packet_link *p = (struct packet_link *)l;

	for (; p->borrowed > 0; p->borrowed--) {
		struct tpacket2_hdr *h = slot_at(p, &p->tail);

		__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		advance(p, &p->tail);
	}
}

/* False: the frame is not for us. */
static bool is_wanted(struct packet_link *p, const struct tpacket2_hdr *h, uint32_t status)
{
	if (is_tagged(h, status)) {
		return false;
	}
	if (h->tp_snaplen < h->tp_len) {
		p->counters.ring_drops++;
		return false;
	}
	return true;
}

static size_t packet_recv(struct cn_link *l, struct cn_rx_frame *out, size_t max)
{
	struct packet_link *p = (struct packet_link *)l;
	size_t n = 0;

	while (n < max && p->borrowed < p->slots) {
		const struct tpacket2_hdr *h = slot_at(p, &p->head);
		uint32_t status = __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE);

		if ((status & TP_STATUS_USER) == 0) {
			break;
		}
		advance(p, &p->head);
		p->borrowed++;
		if (is_wanted(p, h, status)) {
			out[n++] = cn_rx_frame_raw((const uint8_t *)h + h->tp_mac, h->tp_snaplen);
		} else if (p->borrowed == 1) {
			/* A caller that gets nothing has nothing to release. */
			packet_release(l);
		}
	}
	if (n == 0 && ++p->empty_looks >= ERROR_EVERY) {
		fetch_error(p);
	}
	return n;
}

static void fill_message(struct packet_link *p, size_t at, const struct cn_frame *f)
{
	struct iovec *v = p->pieces[at];
	size_t n = 0, len = (size_t)f->head_len + f->payload_len;

	/* sendmmsg() takes pointers to non-const and only reads. */
	v[n].iov_base = (void *)(uintptr_t)f->head;
	v[n++].iov_len = f->head_len;
	if (f->payload_len > 0) {
		v[n].iov_base = (void *)(uintptr_t)f->payload;
		v[n++].iov_len = f->payload_len;
	}
	if (len < CN_ETH_MIN) {
		v[n].iov_base = (void *)(uintptr_t)padding;
		v[n++].iov_len = CN_ETH_MIN - len;
	}
	p->messages[at].msg_hdr.msg_iovlen = n;
}

/* As sendmmsg(): how many were taken, or -1 and errno. */
static int send_batch(struct packet_link *p, const struct cn_frame *frames, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fill_message(p, i, &frames[i]);
	}
	return sendmmsg(p->link.send_fd, p->messages, (unsigned int)n, MSG_DONTWAIT);
}

/*
 * A frame alone is the latency of small messages. Copying a short one together is cheaper than
 * having the kernel read a message of two pieces.
 */
static int send_alone(struct packet_link *p, const struct cn_frame *f)
{
	size_t len = (size_t)f->head_len + f->payload_len;
	uint8_t together[SEND_TOGETHER];

	if (len > sizeof(together)) {
		fill_message(p, 0, f);
		return sendmsg(p->link.send_fd, &p->messages[0].msg_hdr, MSG_DONTWAIT) < 0 ? -1 : 1;
	}
	memcpy(together, f->head, f->head_len);
	if (f->payload_len > 0) {
		memcpy(together + f->head_len, f->payload, f->payload_len);
	}
	if (len < CN_ETH_MIN) {
		memset(together + len, 0, CN_ETH_MIN - len);
		len = CN_ETH_MIN;
	}
	return send(p->link.send_fd, together, len, MSG_DONTWAIT) < 0 ? -1 : 1;
}

/*
 * The queueing discipline dropped a frame: its queue is shorter than our send buffer, or others
 * fill it. Make the buffer as small as what it holds now, so that waiting for room is a wait.
 * False: nothing of ours is there to wait for; the frame counts as lost.
 */
static bool shrink_send_buffer(struct packet_link *p)
{
	int waiting = 0, half;

	if (ioctl(p->link.send_fd, SIOCOUTQ, &waiting) < 0) {
		return false;
	}
	half = waiting / 2;
	if (half < SEND_BUFFER_MIN) {
		return false;
	}
	if (half < p->send_buffer) {
		p->send_buffer = half;
		if (setsockopt(p->link.send_fd, SOL_SOCKET, SO_SNDBUF, &half, sizeof(half)) < 0) {
			return false;
		}
		cn_log(COLLNET_LOG_INFO, "the queue of %s is short: %d bytes of memory in it",
		       p->link.interface, waiting);
	}
	return true;
}

/*
 * The first frame of a batch was refused. 0: it stays, the queue is full; 1: it is lost, go on
 * with the next; negative: the interface is gone.
 */
static int refused(struct packet_link *p, int e)
{
	switch (e) {
	case EAGAIN:
	case ENOMEM:
		p->counters.send_full++;
		return 0;
	case ENOBUFS:
		if (shrink_send_buffer(p)) {
			p->counters.send_full++;
			return 0;
		}
		break;
	case ENETDOWN:
	case ENXIO:
	case ENODEV:
		report_gone(p, e);
		p->counters.send_errors++;
		return COLLNET_EIFACE;
	default:
		if (p->counters.send_errors == 0) {
			cn_log(COLLNET_LOG_WARNING, "interface %s refused a frame: %s",
			       p->link.interface, strerror(e));
		}
		break;
	}
	p->counters.send_errors++;
	return 1;
}

static int packet_send(struct cn_link *l, const struct cn_frame *frames, size_t n)
{
	struct packet_link *p = (struct packet_link *)l;
	size_t done = 0;

	while (done < n) {
		size_t batch = n - done < SEND_BATCH ? n - done : SEND_BATCH;
		int r = batch == 1 ? send_alone(p, &frames[done])
				   : send_batch(p, &frames[done], batch);

		if (r > 0) {
			done += (size_t)r;
			p->gone = false;
			continue;
		}
		if (r < 0 && errno == EINTR) {
			continue;
		}
		r = refused(p, r < 0 ? errno : EAGAIN);
		if (r <= 0) {
			return done > 0 ? (int)done : r;
		}
		done++;
	}
	return (int)done;
}

static void packet_counters(struct cn_link *l, struct cn_link_counters *out)
{
	struct packet_link *p = (struct packet_link *)l;
	struct tpacket_stats s;
	socklen_t len = sizeof(s);

	/* The kernel starts again from zero at every reading. */
	if (getsockopt(l->recv_fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) == 0) {
		p->counters.ring_drops += s.tp_drops;
	}
	*out = p->counters;
}

static void packet_close(struct cn_link *l)
{
	struct packet_link *p = (struct packet_link *)l;

	if (p->ring != NULL) {
		munmap(p->ring, p->ring_bytes);
	}
	if (l->recv_fd >= 0) {
		close(l->recv_fd);
	}
	if (l->send_fd >= 0) {
		close(l->send_fd);
	}
	free(p);
}

static const struct cn_link_ops packet_ops = {
	.name = "packet",
	.recv = packet_recv,
	.release = packet_release,
	.send = packet_send,
	.counters = packet_counters,
	.close = packet_close,
};

/* Attaches the filter to the socket and locks it. */
static int set_filter(struct packet_link *p, uint16_t ethertype, struct cn_err *err)
{
	struct sock_filter filter[CN_LINK_FILTER];
	const struct sock_fprog program = { .len = CN_LINK_FILTER, .filter = filter };
	const int on = 1;

	cn_link_filter(filter, ethertype, p->link.mac);
	if (setsockopt(p->link.recv_fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) <
		    0 ||
	    setsockopt(p->link.recv_fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)) < 0) {
		return cn_link_refused(p->link.interface, "packet filter", errno, err);
	}
	return 0;
}

static int map_ring(struct packet_link *p, uint32_t frames, struct cn_err *err)
{
	int version = TPACKET_V2;
	struct tpacket_req r = { 0 };

	/* Where the kernel puts a frame: after its header and an address, with 16 for the MAC's. */
	p->slot_bytes = (uint32_t)(TPACKET_ALIGN(TPACKET2_HDRLEN + 16) + CN_ETH_HEADER +
				   p->link.mtu);
	p->slot_bytes = TPACKET_ALIGN(p->slot_bytes);
	p->block_bytes = BLOCK_MIN;
	while (p->block_bytes < p->slot_bytes) {
		p->block_bytes *= 2;
	}
	p->slots_per_block = p->block_bytes / p->slot_bytes;
	p->blocks = (frames + p->slots_per_block - 1) / p->slots_per_block;
	p->slots = p->blocks * p->slots_per_block;
	p->ring_bytes = (size_t)p->blocks * p->block_bytes;
	r.tp_block_size = p->block_bytes;
	r.tp_block_nr = p->blocks;
	r.tp_frame_size = p->slot_bytes;
	r.tp_frame_nr = p->slots;
	if (setsockopt(p->link.recv_fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) <
		    0 ||
	    setsockopt(p->link.recv_fd, SOL_PACKET, PACKET_RX_RING, &r, sizeof(r)) < 0) {
		return cn_link_refused(p->link.interface, "receive ring", errno, err);
	}
	p->ring = mmap(NULL, p->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->link.recv_fd, 0);
	if (p->ring == MAP_FAILED) {
		p->ring = NULL;
		return cn_link_refused(p->link.interface, "receive ring", errno, err);
	}
	return 0;
}

static int bind_socket(int fd, const struct cn_interface *i, uint16_t ethertype, struct cn_err *err)
{
	struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ethertype),
		.sll_ifindex = i->index,
	};

	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		return cn_link_refused(i->name, "bind", errno, err);
	}
	return 0;
}

static int open_socket(const struct cn_link_config *config)
{
	const int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;

	return config->open_socket != NULL ? config->open_socket(config->open_arg)
					   : socket(AF_PACKET, SOCK_RAW | flags, 0);
}

static int open_sockets(struct packet_link *p, const struct cn_link_config *config,
			const struct cn_interface *i, struct cn_err *err)
{
	int on = 1, r;

	p->link.recv_fd = open_socket(config);
	if (p->link.recv_fd < 0) {
		return cn_link_refused(i->name, "packet socket", errno, err);
	}
	p->link.send_fd = open_socket(config);
	if (p->link.send_fd < 0) {
		return cn_link_refused(i->name, "packet socket", errno, err);
	}
	p->send_buffer = cn_link_send_buffer(config->queue_frames, i->mtu);
	if (setsockopt(p->link.send_fd, SOL_SOCKET, SO_SNDBUF, &p->send_buffer,
		       sizeof(p->send_buffer)) < 0 ||
	    setsockopt(p->link.recv_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) < 0) {
		return cn_link_refused(i->name, "packet socket", errno, err);
	}
	r = bind_socket(p->link.send_fd, i, 0, err);
	if (r == 0) {
		r = set_filter(p, config->ethertype, err);
	}
	if (r == 0) {
		r = map_ring(p, config->ring_frames, err);
	}
	if (r == 0) {
		r = bind_socket(p->link.recv_fd, i, config->ethertype, err);
	}
	return r;
}

int cn_link_open_packet(const struct cn_link_config *config, const struct cn_interface *i,
			struct cn_link **out, struct cn_err *err)
{
	struct packet_link *p = calloc(1, sizeof(*p));
	int r;

	if (p == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for a link");
	}
	p->link.ops = &packet_ops;
	p->link.mtu = i->mtu;
	p->link.recv_fd = -1;
	p->link.send_fd = -1;
	memcpy(p->link.mac, i->mac, sizeof(p->link.mac));
	memcpy(p->link.interface, i->name, sizeof(i->name));
	for (size_t k = 0; k < SEND_BATCH; k++) {
		p->messages[k].msg_hdr.msg_iov = p->pieces[k];
	}
	r = open_sockets(p, config, i, err);
	if (r < 0) {
		packet_close(&p->link);
		return r;
	}
	*out = &p->link;
	return 0;
}
