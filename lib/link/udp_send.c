/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending half of link udp.
 *
 * What is sent to a host that is switched off stays in the kernel for seconds and fills the
 * socket's send buffer: so nodes that are silent are greeted in turns, and a part of the buffer is
 * enough for them. The send buffer is small, as that of the packet link: what waits in the
 * interface's queue fills it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>

#include "link/kinds.h"
#include "link/udp_impl.h"

/* The source address of a message, and the size of its segments unless it is one (0). */
static void put_control(const struct udp_link *u, struct msghdr *m, union udp_control *c,
			size_t size)
{
	struct in_pktinfo from = { .ipi_spec_dst = u->self.sin_addr };
	struct cmsghdr *h = &c->align;
	uint16_t segment = (uint16_t)size;

	memset(c, 0, sizeof(*c));
	m->msg_control = c;
	m->msg_controllen = CMSG_SPACE(sizeof(from));
	h->cmsg_level = IPPROTO_IP;
	h->cmsg_type = IP_PKTINFO;
	h->cmsg_len = CMSG_LEN(sizeof(from));
	memcpy(CMSG_DATA(h), &from, sizeof(from));
	if (size > 0) {
		m->msg_controllen += CMSG_SPACE(sizeof(segment));
		h = CMSG_NXTHDR(m, h);
		h->cmsg_level = IPPROTO_UDP;
		h->cmsg_type = UDP_SEGMENT;
		h->cmsg_len = CMSG_LEN(sizeof(segment));
		memcpy(CMSG_DATA(h), &segment, sizeof(segment));
	}
}

/* Message `at` of the first k frames, all to one address. Returns how many pieces of v it took. */
static size_t put_message(struct udp_link *u, uint32_t at, struct iovec *v,
			  const struct cn_frame *f, uint32_t k)
{
	struct msghdr *m = &u->out[at].msg_hdr;
	size_t n = cn_super_frame_pieces(v, f, k);

	m->msg_name = &u->to[at];
	m->msg_namelen = sizeof(u->to[at]);
	m->msg_iov = v;
	m->msg_iovlen = n;
	put_control(u, m, &u->control[at], k > 1 ? cn_super_frame_size(f) : 0);
	u->frames[at] = k;
	return n;
}

/* Whether the interface has lost the address that the link was opened with. */
static bool has_moved(struct udp_link *u)
{
	struct sockaddr_in now;
	struct cn_err err;

	u->link.moved = cn_udp_own_address(u->link.send_fd, u->link.interface, &now, &err) !=
				COLLNET_OK ||
			now.sin_addr.s_addr != u->self.sin_addr.s_addr;
	return u->link.moved;
}

/*
 * The first message was refused. 0: it stays, the queue is full; 1: it is lost, or to be sent in
 * another way; negative: the interface is gone.
 */
static int refused(struct udp_link *u, int e)
{
	char text[INET_ADDRSTRLEN];

	if ((e == EINVAL || e == EADDRNOTAVAIL || e == ENETUNREACH) && has_moved(u)) {
		cn_udp_gone(u, EADDRNOTAVAIL);
		u->counters.send_errors++;
		return COLLNET_EIFACE;
	}
	switch (e) {
	case EAGAIN:
	case ENOMEM:
		u->counters.send_full++;
		return 0;
	case ENETDOWN:
	case ENODEV:
	case ENXIO:
		cn_udp_gone(u, e);
		u->counters.send_errors++;
		return COLLNET_EIFACE;
	case EIO: /* no offload of the checksum */
	case EINVAL:
		if (u->gso && u->frames[0] > 1) {
			u->gso = false;
			cn_log(COLLNET_LOG_INFO, "interface %s: no segmentation offload for UDP",
			       u->link.interface);
			u->frames[0] = 0;
			return 1;
		}
		break;
	case ECONNREFUSED: /* by ICMP, about a frame before: no process there listens now */
		u->frames[0] = 0;
		return 1;
	default: /* no route to one node, a full queue of the interface: as lost as on a wire */
		break;
	}
	if (u->counters.send_errors == 0) {
		cn_log(COLLNET_LOG_WARNING, "interface %s refused a frame for %s: %s",
		       u->link.interface,
		       inet_ntop(AF_INET, &u->to[0].sin_addr, text, sizeof(text)), cn_strerror(e));
	}
	u->counters.send_errors += u->frames[0];
	return 1;
}

/* Whether a message for a node that may never take it leaves room in the send buffer for others:
 * the kernel calls a socket writable up to half of it. */
static bool has_room(const struct udp_link *u)
{
	int held;

	return ioctl(u->link.send_fd, SIOCOUTQ, &held) < 0 || held < u->send_buffer / 4;
}

/* A broadcast, to each node of the list. What cannot go is lost: hellos are repeated, and the next
 * one begins where this one had no room. COLLNET_OK, or COLLNET_EIFACE. */
static int send_broadcast(struct udp_link *u, const struct cn_frame *f)
{
	uint32_t at = u->first;
	bool full = false;
	int r;

	u->broadcasts++;
	for (uint32_t i = 0; i < u->peers.n; i++, at = (at + 1) % u->peers.n) {
		const bool silent = !u->peers.group && u->broadcasts - u->heard[at] > UDP_SILENCE;

		if (cn_udp_address_order(&u->peers.list[at], &u->self) == 0 || (silent && full)) {
			continue;
		}
		if (silent && !has_room(u)) {
			full = true;
			u->first = at;
			continue;
		}
		u->to[0] = u->peers.list[at];
		put_message(u, 0, u->pieces, f, 1);
		do {
			r = (int)sendmsg(u->link.send_fd, &u->out[0].msg_hdr, MSG_DONTWAIT);
		} while (r < 0 && errno == EINTR);
		r = r < 0 ? refused(u, errno) : 1;
		if (r <= 0) {
			u->first = full ? u->first : at;
			return r;
		}
	}
	return COLLNET_OK;
}

/* As many messages as fit, up to the next broadcast. Returns their number. */
static uint32_t put_messages(struct udp_link *u, const struct cn_frame *f, size_t n)
{
	const size_t most = u->link.mtu - CN_UDP_HEADER;
	size_t pieces = 0;
	uint32_t messages = 0;

	while (n > 0 && messages < UDP_SEND_BATCH && (f->head[0] & 1) == 0) {
		size_t k = n < (UDP_PIECES - pieces) / 2 ? n : (UDP_PIECES - pieces) / 2;

		if (k == 0) {
			break;
		}
		k = u->gso ? cn_super_frame_length(f, k, most) : 1;
		if (!cn_udp_address_get(f->head, &u->to[messages])) {
			break;
		}
		pieces += put_message(u, messages, u->pieces + pieces, f, (uint32_t)k);
		messages++;
		f += k;
		n -= k;
	}
	return messages;
}

int cn_udp_send(struct cn_link *l, const struct cn_frame *frames, size_t n)
{
	struct udp_link *u = (struct udp_link *)l;
	size_t done = 0;

	while (done < n) {
		uint32_t messages = put_messages(u, frames + done, n - done);
		int r;

		if (messages == 0) { /* a broadcast, or an address that no node can have */
			r = (frames[done].head[0] & 1) != 0 ? send_broadcast(u, &frames[done])
							    : COLLNET_OK;
			if (r < 0) {
				return done > 0 ? (int)done : r;
			}
			done++;
			continue;
		}
		r = messages == 1
			    ? (sendmsg(l->send_fd, &u->out[0].msg_hdr, MSG_DONTWAIT) < 0 ? -1 : 1)
			    : sendmmsg(l->send_fd, u->out, messages, MSG_DONTWAIT);
		for (int i = 0; i < r; i++) {
			done += u->frames[i];
		}
		if (r >= 0) {
			u->gone = false;
			continue;
		}
		if (errno == EINTR) {
			continue;
		}
		r = refused(u, errno);
		if (r <= 0) {
			return done > 0 ? (int)done : r;
		}
		done += u->frames[0];
	}
	return (int)done;
}
