/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending half of the packet link: sendmmsg() on a second socket, which receives nothing, so
 * that a wait for room is not woken by received frames.
 *
 * Its send buffer is small: frames queued at the interface fill it, and the kernel reports that
 * (backpressure) instead of dropping them. The queueing discipline (qdisc) is not bypassed; it is
 * that queue.
 *
 * With the encapsulations udp and tcp, a message is a super-frame where the kernel accepts them. A
 * refused one is sent again as single frames, and so are the following ones for a while. Linux
 * before 6.2 accepts none of the encapsulation udp from a packet socket. The first short frame, a
 * hello, probes this: it is described as a super-frame of one, which later kernels send as any
 * frame. Without PACKET_VNET_HDR the checksum is computed here.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>

#include "link/kinds.h"
#include "link/packet_impl.h"

#define SEND_TOGETHER	512
#define SILENT_SENDS	4 /* sends without input between checks of the ring */
#define GROW_AFTER	(100 * CN_MS)
#define SEND_BUFFER_MIN 2304 /* the kernel goes no lower, in the unit of SO_SNDBUF */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

static const uint8_t padding[CN_ETH_MIN];

/* sendmmsg() takes pointers to non-const and only reads. */
static struct iovec to_iovec(const void *data, size_t len)
{
	return (struct iovec){ (void *)(uintptr_t)data, len };
}

/* Adds a raw frame to the vector; returns the number of entries. */
static size_t put_raw(struct iovec *v, const struct cn_frame *f)
{
	size_t n = 0, len = (size_t)f->head_len + f->payload_len;

	v[n++] = to_iovec(f->head, f->head_len);
	if (f->payload_len > 0) {
		v[n++] = to_iovec(f->payload, f->payload_len);
	}
	if (len < CN_ETH_MIN) {
		v[n++] = to_iovec(padding, CN_ETH_MIN - len);
	}
	return n;
}

/* Adds k frames behind one set of headers, the last ones of a batch or not; returns the number of
 * entries. */
static size_t put_datagram(struct packet_link *p, struct packet_headers *h, struct iovec *v,
			   const struct cn_frame *f, size_t k, bool last)
{
	size_t n = 1 + cn_super_frame_iov(v + 1, f, k);
	struct cn_headers headers = {
		.encapsulation = p->link.encapsulation,
		.addresses = f->head,
		.port = p->ethertype,
		.flow = f->flow,
		.sequence = p->sequence,
		.push = last,
	};
	uint64_t sum = 0;

	for (size_t i = 1; i < n; i++) {
		headers.bytes += v[i].iov_len;
	}
	p->sequence += (uint32_t)headers.bytes;
	cn_headers_put(h->head, &headers);
	if (!p->vnet) { /* then k is 1, and the head has an even length or is all of the frame */
		for (size_t i = 1; i < n; i++) {
			sum = cn_ip_sum(sum, v[i].iov_base, v[i].iov_len);
		}
		cn_headers_finish(h->head, p->link.encapsulation, sum);
		v[0] = to_iovec(h->head, p->head_bytes);
		return n;
	}
	h->vnet = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.hdr_len = (uint16_t)p->head_bytes,
		.csum_start = CN_CHECKSUM_START,
		.csum_offset = (uint16_t)cn_checksum_offset(p->link.encapsulation),
	};
	if (k > 1) {
		h->vnet.gso_type = p->link.encapsulation == CN_ENCAPSULATION_TCP
					   ? VIRTIO_NET_HDR_GSO_TCPV4
					   : VIRTIO_NET_HDR_GSO_UDP_L4;
		h->vnet.gso_size = (uint16_t)cn_super_frame_size(f);
	}
	v[0] = to_iovec(h, sizeof(h->vnet) + p->head_bytes);
	return n;
}

/* Builds the next message of some of the n frames; sets their number. */
static size_t put_message(struct packet_link *p, size_t at, struct iovec *v,
			  const struct cn_frame *f, size_t n)
{
	struct msghdr *m = &p->messages[at].msg_hdr;
	size_t k = 1;

	if (p->link.encapsulation == CN_ENCAPSULATION_RAW) {
		m->msg_iovlen = put_raw(v, f);
	} else {
		k = p->gso && p->single_until == 0
			    ? cn_super_frame_length(f, n,
						    p->link.mtu + CN_ETH_HEADER - p->head_bytes)
			    : 1;
		m->msg_iovlen = put_datagram(p, &p->headers[at], v, f, k, k == n);
	}
	m->msg_iov = v;
	p->frames[at] = (uint32_t)k;
	return m->msg_iovlen;
}

/* Returns the number of frames accepted, or -1 and errno. */
static int send_batch(struct packet_link *p, const struct cn_frame *frames, size_t n)
{
	size_t iovecs = 0, messages = 0;
	int taken = 0, r;

	for (size_t i = 0; i < n; i += p->frames[messages++]) {
		iovecs += put_message(p, messages, p->iovecs + iovecs, frames + i, n - i);
	}
	if (messages == 1) {
		r = sendmsg(p->link.send_fd, &p->messages[0].msg_hdr, MSG_DONTWAIT) < 0 ? -1 : 1;
	} else {
		r = sendmmsg(p->link.send_fd, p->messages, (unsigned int)messages, MSG_DONTWAIT);
	}
	for (int i = 0; i < r; i++) {
		taken += (int)p->frames[i];
	}
	return r < 0 ? r : taken;
}

/*
 * Single frames determine the latency of small messages. Copying a short one into one buffer is
 * cheaper than having the kernel read a vector of two.
 */
static int send_alone(struct packet_link *p, const struct cn_frame *f)
{
	uint8_t together[SEND_TOGETHER];
	size_t len = 0, n;

	if ((size_t)f->head_len + f->payload_len + sizeof(p->headers[0]) > sizeof(together)) {
		return send_batch(p, f, 1);
	}
	n = put_message(p, 0, p->iovecs, f, 1);
	if (p->probe) {
		p->headers[0].vnet.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
		p->headers[0].vnet.gso_size = (uint16_t)(f->head_len - CN_ETH_HEADER +
							 f->payload_len);
	}
	for (size_t i = 0; i < n; i++) {
		memcpy(together + len, p->iovecs[i].iov_base, p->iovecs[i].iov_len);
		len += p->iovecs[i].iov_len;
	}
	if (send(p->link.send_fd, together, len, MSG_DONTWAIT) < 0) {
		return -1;
	}
	p->probe = false;
	return 1;
}

static bool set_send_buffer(struct packet_link *p, int bytes)
{
	p->send_buffer = bytes;
	p->grow_at = cn_now() + GROW_AFTER;
	return setsockopt(p->link.send_fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) == 0;
}

/*
 * The queueing discipline dropped a frame: its queue is shorter than our send buffer, or others
 * fill it. Shrinks the buffer to its current fill level, so that the socket blocks until there is
 * room. False: none of our frames is queued; the frame counts as lost.
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
		if (p->grow_at == 0) {
			cn_log(COLLNET_LOG_INFO,
			       "the queue of %s is short: %d bytes of memory in it",
			       p->link.interface, waiting);
		}
		return set_send_buffer(p, half);
	}
	p->grow_at = cn_now() + GROW_AFTER;
	return true;
}

/* The queue may have drained. If not, a frame is refused once more, not lost. */
static void grow_send_buffer(struct packet_link *p)
{
	if (cn_now() >= p->grow_at) {
		(void)set_send_buffer(p, p->send_buffer > p->full_send_buffer / 2
						 ? p->full_send_buffer
						 : 2 * p->send_buffer);
	}
}

static int drop(struct packet_link *p, int e)
{
	if (cn_link_is_new_refusal(&p->link, e)) {
		cn_log(COLLNET_LOG_WARNING, "interface %s refused a frame: %s", p->link.interface,
		       cn_strerror(e));
	}
	p->counters.send_errors += p->frames[0];
	return 1;
}

static void log_single_frames(const struct packet_link *p, int e)
{
	const char *interface = p->link.interface;

	if (p->link.encapsulation == CN_ENCAPSULATION_UDP && e == EINVAL) {
		cn_log(COLLNET_LOG_INFO,
		       "interface %s: this kernel takes frames of the encapsulation udp only one by "
		       "one (Linux 6.2 and later several at once): encapsulation tcp on all nodes "
		       "would make long messages cheaper",
		       interface);
	} else {
		cn_log(COLLNET_LOG_INFO,
		       "interface %s refused a super-frame of the encapsulation %s: %s; single "
		       "frames are sent",
		       interface, cn_encapsulation_name(p->link.encapsulation), cn_strerror(e));
	}
}

/*
 * Handles a refusal of the first message of a batch. 0: keep it, the queue is full; 1: it is lost,
 * or must be sent as single frames; negative: the interface is gone.
 *
 * The socket becomes writable only if its send buffer was full: waiting after ENOMEM, for example,
 * would be a busy loop. The transport retransmits lost frames, at its intervals.
 */
static int refused(struct packet_link *p, int e)
{
	switch (e) {
	case EAGAIN:
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
		cn_packet_gone(p, e);
		return COLLNET_EIFACE;
	default:
		break;
	}
	if (p->frames[0] == 1 &&
	    (e != EINVAL || p->headers[0].vnet.gso_type == VIRTIO_NET_HDR_GSO_NONE)) {
		return drop(p, e);
	}
	p->probe = false;
	/* A queue filled by others may have room for a part of it now, and soon for all. */
	p->single_until = cn_now() + (e == ENOBUFS ? 0 : CN_SUPER_FRAME_RETRY);
	if (!p->single_logged) {
		p->single_logged = true;
		log_single_frames(p, e);
	}
	p->frames[0] = 0;
	return 1;
}

int cn_packet_send(struct cn_link *l, const struct cn_frame *frames, size_t n)
{
	struct packet_link *p = (struct packet_link *)l;
	size_t done = 0;

	if (++p->silent_sends % SILENT_SENDS == 0) {
		cn_packet_check_ring(p);
	}
	if (p->send_buffer < p->full_send_buffer) {
		grow_send_buffer(p);
	}
	if (p->single_until != 0 && cn_now() >= p->single_until) {
		p->single_until = 0;
	}
	while (done < n) {
		size_t batch = n - done < PACKET_BATCH ? n - done : PACKET_BATCH;
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
		done += p->frames[0];
	}
	return (int)done;
}
