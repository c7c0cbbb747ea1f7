/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending half of link udp.
 *
 * Datagrams to a host that is switched off stay in the kernel for seconds (unresolved ARP) and fill
 * the socket's send buffer: so silent nodes get hellos round robin, within a part of the buffer.
 * The send buffer is small, as that of the packet link: datagrams in the interface's queue fill it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>

#include "link/kinds.h"
#include "link/udp_impl.h"

/* The source address of a message, and the size of its segments unless it is one (0). */
static void put_control(const struct udp_link *u, struct msghdr *m, struct udp_control *c,
			size_t size)
{
	struct in_pktinfo from = { .ipi_spec_dst = u->self.sin_addr };
	struct cmsghdr *h = (struct cmsghdr *)(void *)c->bytes;
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

/* Builds message `at` of the first k frames, all to one address. Returns the number of entries of v
 * used. */
static size_t put_message(struct udp_link *u, uint32_t at, struct iovec *v,
			  const struct cn_frame *f, uint32_t k)
{
	struct msghdr *m = &u->out[at].msg_hdr;
	size_t n = cn_super_frame_iov(v, f, k);

	m->msg_name = &u->to[at];
	m->msg_namelen = sizeof(u->to[at]);
	m->msg_iov = v;
	m->msg_iovlen = n;
	put_control(u, m, &u->control[at], k > 1 ? cn_super_frame_size(f) : 0);
	u->frames[at] = k;
	return n;
}

/* The host's entry in the table. A collision replaces the entry, at the cost of one refusal. */
static struct udp_single *single_of(struct udp_link *u, const struct sockaddr_in *to)
{
	return &u->single[cn_mix64(to->sin_addr.s_addr) % UDP_SINGLES];
}

static bool takes_super_frames(struct udp_link *u, const struct sockaddr_in *to)
{
	const struct udp_single *s = single_of(u, to);

	return u->gso && (s->host != to->sin_addr.s_addr || cn_now() >= s->until);
}

/*
 * A super-frame was refused: the device of its route computes no checksums (EIO), or has an MTU
 * that is smaller than this link's (EINVAL, EMSGSIZE), or there is no memory for so much. Other
 * routes may take them.
 */
static void send_single(struct udp_link *u, const struct sockaddr_in *to, int e)
{
	char text[INET_ADDRSTRLEN];

	*single_of(u, to) = (struct udp_single){ to->sin_addr.s_addr,
						 cn_now() + CN_SUPER_FRAME_RETRY };
	if (!u->single_logged) {
		u->single_logged = true;
		cn_log(COLLNET_LOG_INFO,
		       "interface %s refused a super-frame for %s: %s; hosts that it refuses them "
		       "for get single frames",
		       u->link.interface, inet_ntop(AF_INET, &to->sin_addr, text, sizeof(text)),
		       cn_strerror(e));
	}
}

/* An errno if the interface is down, or has lost the address that the link was opened with; else
 * 0. */
static int check_interface(struct udp_link *u)
{
	struct sockaddr_in now;
	struct cn_err err;

	u->link.moved = cn_udp_own_address(u->link.send_fd, u->link.interface, &u->self, &now,
					   &err) != COLLNET_OK ||
			now.sin_addr.s_addr != u->self.sin_addr.s_addr;
	return u->link.moved						? EADDRNOTAVAIL
	       : cn_interface_is_up(u->link.send_fd, u->link.interface) ? 0
									: ENETDOWN;
}

/* Drops the frames of the first message, as lost on the wire. */
static int drop(struct udp_link *u, int e)
{
	char text[INET_ADDRSTRLEN];

	if (cn_link_is_new_refusal(&u->link, e)) {
		cn_log(COLLNET_LOG_WARNING, "interface %s refused a frame for %s: %s",
		       u->link.interface,
		       inet_ntop(AF_INET, &u->to[0].sin_addr, text, sizeof(text)), cn_strerror(e));
	}
	u->counters.send_errors += u->frames[0];
	return 1;
}

/*
 * Handles a refusal of the first message. 0: keep it, the queue is full; 1: it is lost, or must be
 * sent as single frames; negative: the interface is gone.
 *
 * Only after EAGAIN will the socket become writable: waiting after any other error would be a busy
 * loop. The transport retransmits lost frames, at its intervals.
 */
static int refused(struct udp_link *u, int e)
{
	int gone;

	switch (e) {
	case EAGAIN:
		u->counters.send_full++;
		return 0;
	case EADDRNOTAVAIL:
	case EINVAL:
	case ENETDOWN:
	case ENETUNREACH:
	case ENODEV:
	case ENXIO: /* of the route to this node, or of all */
		gone = check_interface(u);
		if (gone != 0) {
			cn_udp_gone(u, gone);
			return COLLNET_EIFACE;
		}
		break;
	default: /* a firewall, no memory */
		break;
	}
	if (u->frames[0] > 1) {
		send_single(u, &u->to[0], e);
		u->frames[0] = 0;
		return 1;
	}
	return drop(u, e);
}

/* True if a message to a node that may be switched off leaves room in the send buffer for others:
 * the kernel reports a socket writable up to half of it. */
static bool has_room(const struct udp_link *u)
{
	int held;

	return ioctl(u->link.send_fd, SIOCOUTQ, &held) < 0 || held < u->send_buffer / 4;
}

/* Sends a broadcast to each node of the list. Without room, the rest is dropped: hellos are
 * repeated, and the next one starts where this one stopped. COLLNET_OK, or COLLNET_EIFACE. */
static int send_broadcast(struct udp_link *u, const struct cn_frame *f)
{
	uint32_t at = u->first;
	bool full = false;
	int r;

	u->broadcasts++;
	for (uint32_t i = 0; i < u->peers.n; i++, at = (at + 1) % u->peers.n) {
		const bool silent = !u->peers.group &&
				    u->broadcasts - u->last_heard[at] > UDP_SILENCE;

		if (cn_udp_address_order(&u->peers.list[at], &u->self) == 0 || (silent && full)) {
			continue;
		}
		if (silent && !has_room(u)) {
			full = true;
			u->first = at;
			continue;
		}
		u->to[0] = u->peers.list[at];
		put_message(u, 0, u->iovecs, f, 1);
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

/* Builds as many messages as fit, up to the next broadcast. Returns their number. */
static uint32_t put_messages(struct udp_link *u, const struct cn_frame *f, size_t n)
{
	const size_t most = u->link.mtu - CN_UDP_HEADER;
	size_t iovecs = 0;
	uint32_t messages = 0;

	while (n > 0 && messages < UDP_SEND_BATCH && (f->head[0] & 1) == 0) {
		size_t k = n < (UDP_IOVECS - iovecs) / 2 ? n : (UDP_IOVECS - iovecs) / 2;

		if (k == 0 || !cn_udp_address_get(f->head, &u->to[messages])) {
			break;
		}
		k = takes_super_frames(u, &u->to[messages]) ? cn_super_frame_length(f, k, most) : 1;
		iovecs += put_message(u, messages, u->iovecs + iovecs, f, (uint32_t)k);
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
