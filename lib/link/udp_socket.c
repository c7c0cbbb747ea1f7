/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link over an ordinary UDP socket: no privilege, and any network that carries IPv4.
 *
 * A datagram is a collnet frame. The transport's addresses are made of port and IPv4 address
 * (udp_address.h), so a received frame gets an Ethernet header that never was on a wire. A
 * broadcast goes to a multicast group, or to each node of a list. With a list, what comes from
 * others is dropped: the list says who takes part, and no discovery can add to it. What is sent to
 * a host that is switched off stays in the kernel for seconds and fills the socket's send buffer:
 * so nodes that are silent are greeted in turns, and a part of the buffer is enough for them.
 *
 * Super-frames go out by UDP_SEGMENT and come in by UDP_GRO, where the kernel has them. The
 * socket's send buffer is small, as that of the packet link: what waits in the interface's queue
 * fills it.
 *
 * Frames that were received lie in the buffers of the last recvmmsg(), which runs again when all of
 * them were taken and released.
 */
#include "link/udp_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "link/kinds.h"

#define SEND_BATCH 64 /* messages */
#define RECV_BATCH 16
#define RECV_BYTES 65536
#define PIECES	   (4 * CN_SUPER_FRAME_MAX) /* of two super-frames */
#define LOOKS_MAX  4  /* at the socket in a row, while none of the frames is of a node */
#define SILENCE	   16 /* broadcasts */
#define STRANGERS  4u /* lines of the log about senders that are not listed */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* Ancillary data of a message: the source address to use and the size of a segment, or the size of
 * a merged one. */
union control {
	struct cmsghdr align;
	uint8_t bytes[CMSG_SPACE(sizeof(struct in_pktinfo)) + CMSG_SPACE(sizeof(int))];
};

struct received {
	uint8_t ether[CN_ETH_HEADER];
	struct sockaddr_in from;
	union control control;
	struct iovec piece;
};

struct udp_link {
	struct cn_link link;
	struct sockaddr_in self;
	struct cn_udp_peers peers;
	uint64_t *heard;     /* of each listed one: `broadcasts` when it was heard; 0: never */
	uint64_t broadcasts; /* begun, and SILENCE */
	uint32_t first;	     /* whom the next one begins with */
	int send_buffer;     /* bytes, as the kernel accounts for them */
	bool gso;
	bool gone;		     /* the loss of the interface is logged */
	struct sockaddr_in stranger; /* the last one that was logged */
	uint32_t strangers;	     /* that were */
	struct cn_link_counters counters;

	uint8_t *buffers; /* RECV_BATCH of RECV_BYTES */
	struct mmsghdr in[RECV_BATCH];
	struct received received[RECV_BATCH];
	uint32_t nin, at; /* messages received; the first of which not all frames were taken */
	struct cn_super_frame rest; /* of message `at` */

	struct mmsghdr out[SEND_BATCH];
	uint32_t frames[SEND_BATCH]; /* of each message */
	struct sockaddr_in to[SEND_BATCH];
	union control control[SEND_BATCH];
	struct iovec pieces[PIECES];
};

static void report_gone(struct udp_link *u, int e)
{
	if (!u->gone) {
		u->gone = true;
		cn_log(COLLNET_LOG_ERROR, "interface %s: %s", u->link.interface, cn_strerror(e));
	}
}

/* ---- receiving ------------------------------------------------------------------------ */

/* The order of the list of peers, as it is searched. */
static int by_address(const void *a, const void *b)
{
	const struct sockaddr_in *x = a, *y = b;

	return x->sin_addr.s_addr != y->sin_addr.s_addr
		       ? (x->sin_addr.s_addr < y->sin_addr.s_addr ? -1 : 1)
		       : (int)x->sin_port - (int)y->sin_port;
}

/* The size of a segment of a message, or 0. */
static size_t segment_of(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		int size;

		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&size, CMSG_DATA(c), sizeof(size));
			return size > 0 ? (size_t)size : 0;
		}
	}
	return 0;
}

/* A source address can be forged, so the lines have a limit for all senders together. */
static void report_stranger(struct udp_link *u, const struct sockaddr_in *from)
{
	char text[INET_ADDRSTRLEN];

	if (u->strangers == STRANGERS ||
	    (u->strangers > 0 && by_address(from, &u->stranger) == 0)) {
		return;
	}
	u->stranger = *from;
	u->strangers++;
	cn_log(COLLNET_LOG_WARNING,
	       "interface %s: %s:%u is not in the list of peers, so its frames are dropped%s",
	       u->link.interface, inet_ntop(AF_INET, &from->sin_addr, text, sizeof(text)),
	       ntohs(from->sin_port), u->strangers == STRANGERS ? "; others are not logged" : "");
}

/* Whether a node may be there: in a list it is, and in a group anyone is. */
static bool admits(struct udp_link *u, const struct sockaddr_in *from)
{
	const struct sockaddr_in *listed;

	if (ntohs(from->sin_port) < CN_UDP_PORT_MIN) {
		return false;
	}
	if (u->peers.group) {
		return true;
	}
	listed = bsearch(from, u->peers.list, u->peers.n, sizeof(*from), by_address);
	if (listed != NULL) {
		u->heard[listed - u->peers.list] = u->broadcasts;
		return true;
	}
	report_stranger(u, from);
	return false;
}

/* Message `at` as a super-frame. What is none, of no node, or our own by the group, has no frames.
 */
static void begin_message(struct udp_link *u)
{
	struct mmsghdr *m = &u->in[u->at];
	struct received *r = &u->received[u->at];

	memset(&u->rest, 0, sizeof(u->rest));
	if ((m->msg_hdr.msg_flags & MSG_TRUNC) != 0 || m->msg_len == 0 || !admits(u, &r->from)) {
		return;
	}
	memcpy(r->ether, u->link.mac, 6);
	cn_udp_address_put(r->ether + 6, &r->from);
	if (memcmp(r->ether + 6, u->link.mac, 6) != 0) {
		u->rest = (struct cn_super_frame){ .ether = r->ether,
						   .at = r->piece.iov_base,
						   .left = m->msg_len,
						   .size = segment_of(&m->msg_hdr),
						   .encapsulation = CN_ENCAPSULATION_UDP };
	}
}

static bool receive_messages(struct udp_link *u)
{
	int n;

	for (int i = 0; i < RECV_BATCH; i++) {
		u->in[i].msg_hdr.msg_namelen = sizeof(u->received[i].from);
		u->in[i].msg_hdr.msg_controllen = sizeof(u->received[i].control);
	}
	n = recvmmsg(u->link.recv_fd, u->in, RECV_BATCH, MSG_DONTWAIT, NULL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		report_gone(u, errno);
	}
	u->at = 0;
	u->nin = n > 0 ? (uint32_t)n : 0;
	if (u->nin > 0) {
		begin_message(u);
	}
	return u->nin > 0;
}

static size_t udp_recv(struct cn_link *l, struct cn_rx_frame *out, size_t max)
{
	struct udp_link *u = (struct udp_link *)l;
	size_t n = 0;
	int looks = 0;

	while (n < max) {
		if (u->at == u->nin && (n > 0 || looks++ == LOOKS_MAX || !receive_messages(u))) {
			break;
		}
		n += cn_super_frame_take(&u->rest, out + n, max - n);
		if (u->rest.left == 0 && ++u->at < u->nin) {
			begin_message(u);
		}
	}
	return n;
}

static void udp_release(struct cn_link *l)
{
	(void)l; /* the buffers are free when the last of them was taken, and the next recv follows
		  */
}

/* ---- sending -------------------------------------------------------------------------- */

/* The source address of a message, and the size of its segments unless it is one (0). */
static void put_control(const struct udp_link *u, struct msghdr *m, union control *c, size_t size)
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
		report_gone(u, EADDRNOTAVAIL);
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
		report_gone(u, e);
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
		const bool silent = !u->peers.group && u->broadcasts - u->heard[at] > SILENCE;

		if (by_address(&u->peers.list[at], &u->self) == 0 || (silent && full)) {
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

	while (n > 0 && messages < SEND_BATCH && (f->head[0] & 1) == 0) {
		size_t k = n < (PIECES - pieces) / 2 ? n : (PIECES - pieces) / 2;

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

static int udp_send(struct cn_link *l, const struct cn_frame *frames, size_t n)
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

/* ---- opening -------------------------------------------------------------------------- */

static void udp_counters(struct cn_link *l, struct cn_link_counters *out)
{
	uint32_t memory[SK_MEMINFO_DROPS + 1] = { 0 };
	socklen_t len = sizeof(memory);

	*out = ((struct udp_link *)l)->counters;
	(void)getsockopt(l->recv_fd, SOL_SOCKET, SO_MEMINFO, memory, &len); /* Linux 4.12 */
	out->ring_drops += memory[SK_MEMINFO_DROPS];
}

static void udp_close(struct cn_link *l)
{
	struct udp_link *u = (struct udp_link *)l;

	if (l->recv_fd >= 0) {
		close(l->recv_fd);
	}
	free(u->peers.list);
	free(u->heard);
	free(u->buffers);
	free(u);
}

static const struct cn_link_ops udp_ops = {
	.name = "udp",
	.recv = udp_recv,
	.release = udp_release,
	.send = udp_send,
	.counters = udp_counters,
	.close = udp_close,
};

static int set_options(struct udp_link *u, const struct cn_link_config *c,
		       const struct cn_interface *i, struct cn_err *err)
{
	/* Frames are never fragmented: a longer one than the path takes is found by probes. */
	const int on = 1, probe = IP_PMTUDISC_PROBE;
	const int send = cn_link_send_buffer(c->queue_frames, i->mtu);
	const int fd = u->link.recv_fd;
	struct ip_mreqn group = { .imr_ifindex = i->index };
	socklen_t len = sizeof(u->send_buffer);

	if (setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send, sizeof(send)) < 0 ||
	    !cn_link_set_receive_buffer(&u->link)) {
		return cn_link_refused(u->link.interface, "setsockopt", errno, err);
	}
	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &u->send_buffer, &len) < 0) {
		return cn_link_refused(u->link.interface, "getsockopt", errno, err);
	}
	u->gso = setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) == 0;
	if (u->peers.group) {
		group.imr_multiaddr = u->peers.list[0].sin_addr;
		if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &group, sizeof(group)) < 0 ||
		    setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group)) < 0) {
			return cn_fail(err, COLLNET_ESYSTEM, "interface %s: multicast group: %s",
				       u->link.interface, cn_strerror(errno));
		}
	}
	return COLLNET_OK;
}

static int bind_socket(struct udp_link *u, uint16_t port, struct cn_err *err)
{
	struct sockaddr_in a = u->self;

	a.sin_port = u->self.sin_port = htons(port);
	if (u->peers.group) {
		a.sin_addr.s_addr = INADDR_ANY; /* or the group's datagrams would not arrive */
	}
	if (bind(u->link.recv_fd, (const struct sockaddr *)&a, sizeof(a)) < 0) {
		return errno == EADDRINUSE
			       ? cn_fail(err, COLLNET_EIFACE,
					 "UDP port %u of interface %s is in use, by another "
					 "collnetd or a program in direct mode",
					 port, u->link.interface)
			       : cn_link_refused(u->link.interface, "bind", errno, err);
	}
	cn_udp_address_put(u->link.mac, &u->self);
	return COLLNET_OK;
}

static int take_peers(struct udp_link *u, const struct cn_link_config *c, struct cn_err *err)
{
	if (c->peers == NULL) {
		return cn_udp_peers_read(CN_UDP_PEERS_DEFAULT, c->ethertype, &u->peers, err);
	}
	u->peers = *c->peers;
	u->peers.list = malloc(c->peers->n * sizeof(*u->peers.list));
	u->heard = calloc(c->peers->n, sizeof(*u->heard));
	if (u->peers.list == NULL || u->heard == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for a link");
	}
	memcpy(u->peers.list, c->peers->list, c->peers->n * sizeof(*u->peers.list));
	qsort(u->peers.list, u->peers.n, sizeof(*u->peers.list), by_address);
	u->first = ntohl(u->self.sin_addr.s_addr) %
		   u->peers.n; /* not all begin with the same one */
	return COLLNET_OK;
}

static int make_buffers(struct udp_link *u, struct cn_err *err)
{
	u->buffers = malloc((size_t)RECV_BATCH * RECV_BYTES);
	if (u->buffers == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for a link");
	}
	for (int i = 0; i < RECV_BATCH; i++) {
		struct received *r = &u->received[i];

		r->piece = (struct iovec){ u->buffers + (size_t)i * RECV_BYTES, RECV_BYTES };
		u->in[i].msg_hdr = (struct msghdr){ .msg_name = &r->from,
						    .msg_iov = &r->piece,
						    .msg_iovlen = 1,
						    .msg_control = &r->control };
	}
	return COLLNET_OK;
}

static int open_socket(const struct cn_link_config *c)
{
	return c->open_socket != NULL
		       ? c->open_socket(c->open_arg)
		       : socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int cn_link_open_udp(const struct cn_link_config *c, const struct cn_interface *i,
		     struct cn_link **out, struct cn_err *err)
{
	struct udp_link *u = calloc(1, sizeof(*u));
	int rc;

	if (u == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for a link");
	}
	u->link.ops = &udp_ops;
	u->broadcasts = SILENCE;
	u->link.mtu = i->mtu;
	memcpy(u->link.interface, i->name, sizeof(i->name));
	u->link.recv_fd = u->link.send_fd = open_socket(c);
	rc = u->link.recv_fd < 0 ? cn_link_refused(i->name, "UDP socket", errno, err)
				 : cn_udp_own_address(u->link.recv_fd, i->name, &u->self, err);
	if (rc == COLLNET_OK) {
		rc = take_peers(u, c, err);
	}
	if (rc == COLLNET_OK) {
		rc = set_options(u, c, i, err);
	}
	if (rc == COLLNET_OK) {
		rc = bind_socket(u, c->ethertype, err);
	}
	if (rc == COLLNET_OK) {
		rc = make_buffers(u, err);
	}
	if (rc != COLLNET_OK) {
		udp_close(&u->link);
		return rc;
	}
	*out = &u->link;
	return COLLNET_OK;
}
