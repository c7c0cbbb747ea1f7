/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link over an ordinary UDP socket: no privilege, and any network that carries IPv4.
 *
 * A datagram is a collnet frame. The transport's addresses are made of port and IPv4 address
 * (udp_address.h), so a received frame gets a synthetic Ethernet header. A broadcast goes to a
 * multicast group, or to each node of a list. With a list, datagrams from other hosts are dropped:
 * the list defines the members, and discovery does not add to it. With a group, datagrams from
 * another port are dropped: all its nodes use one port, which is bound on each of them.
 *
 * Super-frames go out by UDP_SEGMENT (udp_send.c) and come in by UDP_GRO, where the kernel has
 * them.
 *
 * Received frames are in the buffers of the last recvmmsg(), which runs again when all of them were
 * returned and released.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/kinds.h"
#include "link/udp_impl.h"

#define RECV_BYTES 65536
#define POLLS_MAX  4 /* recvmmsg() calls in a row without a frame of a node */

void cn_udp_gone(struct udp_link *u, int e)
{
	if (!u->gone) {
		u->gone = true;
		cn_log(COLLNET_LOG_DEBUG, "interface %s: %s", u->link.interface, cn_strerror(e));
	}
}

/* ---- receiving ------------------------------------------------------------------------ */

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

/* Source addresses can be forged, so log lines are limited over all senders. */
static void report_unknown(struct udp_link *u, const struct sockaddr_in *from)
{
	char text[INET_ADDRSTRLEN];

	if (u->unknown == UDP_STRANGERS) {
		return;
	}
	for (uint32_t i = 0; i < u->unknown; i++) {
		if (cn_udp_address_order(from, &u->unknown_from[i]) == 0) {
			return;
		}
	}
	u->unknown_from[u->unknown++] = *from;
	cn_log(COLLNET_LOG_WARNING, "interface %s: %s:%u %s, so its frames are dropped%s",
	       u->link.interface, inet_ntop(AF_INET, &from->sin_addr, text, sizeof(text)),
	       ntohs(from->sin_port),
	       u->peers.group ? "has another port than this node" : "is not in the list of peers",
	       u->unknown == UDP_STRANGERS ? "; others are not logged" : "");
}

static bool receives_from_listed(struct udp_link *u, const struct sockaddr_in *from)
{
	const struct sockaddr_in *listed = bsearch(from, u->peers.list, u->peers.n, sizeof(*from),
						   cn_udp_address_order);

	if (listed != NULL) {
		u->last_heard[listed - u->peers.list] = u->broadcasts;
	}
	return listed != NULL;
}

/* True if the sender may be a node: it is listed, or with a group has our port. */
static bool admits(struct udp_link *u, const struct sockaddr_in *from)
{
	if (u->peers.group ? from->sin_port == u->self.sin_port : receives_from_listed(u, from)) {
		return true;
	}
	report_unknown(u, from);
	return false;
}

/* Starts message `at` as a super-frame. Malformed messages, those of unknown senders, and our own
 * multicasts have no frames. */
static void begin_message(struct udp_link *u)
{
	struct mmsghdr *m = &u->in[u->at];
	struct udp_received *r = &u->received[u->at];

	memset(&u->rest, 0, sizeof(u->rest));
	if ((m->msg_hdr.msg_flags & MSG_TRUNC) != 0 || m->msg_len == 0 || !admits(u, &r->from)) {
		return;
	}
	memcpy(r->ether, u->link.mac, 6);
	cn_udp_address_put(r->ether + 6, &r->from);
	if (memcmp(r->ether + 6, u->link.mac, 6) != 0) {
		u->rest = (struct cn_super_frame){ .ether = r->ether,
						   .at = r->iov.iov_base,
						   .left = m->msg_len,
						   .size = segment_of(&m->msg_hdr),
						   .encapsulation = CN_ENCAPSULATION_UDP };
	}
}

static bool receive_messages(struct udp_link *u)
{
	int n;

	for (int i = 0; i < UDP_RECV_BATCH; i++) {
		u->in[i].msg_hdr.msg_namelen = sizeof(u->received[i].from);
		u->in[i].msg_hdr.msg_controllen = sizeof(u->received[i].control);
	}
	n = recvmmsg(u->link.recv_fd, u->in, UDP_RECV_BATCH, MSG_DONTWAIT, NULL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		cn_udp_gone(u, errno);
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
	int polls = 0;

	while (n < max) {
		if (u->at == u->nin && (n > 0 || polls++ == POLLS_MAX || !receive_messages(u))) {
			break;
		}
		n += cn_super_frame_next(&u->rest, out + n, max - n);
		if (u->rest.left == 0 && ++u->at < u->nin) {
			begin_message(u);
		}
	}
	return n;
}

static void udp_release(struct cn_link *l)
{
	/* The buffers are free when the last frame was returned and recv is called again. */
	(void)l;
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
	free(u->last_heard);
	free(u->buffers);
	free(u);
}

static const struct cn_link_ops udp_ops = {
	.name = "udp",
	.recv = udp_recv,
	.release = udp_release,
	.send = cn_udp_send,
	.counters = udp_counters,
	.close = udp_close,
};

static int set_options(struct udp_link *u, const struct cn_link_config *c,
		       const struct cn_interface *i, struct cn_err *err)
{
	/* Datagrams are never fragmented (DF): path MTU probes detect those that are too long. */
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
			return cn_link_refused(u->link.interface, "multicast group", errno, err);
		}
	}
	return COLLNET_OK;
}

static int bind_socket(struct udp_link *u, uint16_t port, struct cn_err *err)
{
	struct sockaddr_in a = u->self;

	a.sin_port = u->self.sin_port = htons(port);
	if (u->peers.group) {
		/* With another address the group's datagrams would not be received. */
		a.sin_addr.s_addr = INADDR_ANY;
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

static int copy_peers(struct udp_link *u, const struct cn_link_config *c, struct cn_err *err)
{
	if (c->peers == NULL) {
		return cn_udp_peers_read(CN_UDP_PEERS_DEFAULT, c->ethertype, &u->peers, err);
	}
	u->peers = *c->peers;
	u->peers.list = malloc(c->peers->n * sizeof(*u->peers.list));
	u->last_heard = calloc(c->peers->n, sizeof(*u->last_heard));
	if (u->peers.list == NULL || u->last_heard == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for a link");
	}
	memcpy(u->peers.list, c->peers->list, c->peers->n * sizeof(*u->peers.list));
	qsort(u->peers.list, u->peers.n, sizeof(*u->peers.list), cn_udp_address_order);
	u->first = ntohl(u->self.sin_addr.s_addr) % u->peers.n; /* different on every node */
	return COLLNET_OK;
}

static int make_buffers(struct udp_link *u, struct cn_err *err)
{
	u->buffers = malloc((size_t)UDP_RECV_BATCH * RECV_BYTES);
	if (u->buffers == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for a link");
	}
	for (int i = 0; i < UDP_RECV_BATCH; i++) {
		struct udp_received *r = &u->received[i];

		r->iov = (struct iovec){ u->buffers + (size_t)i * RECV_BYTES, RECV_BYTES };
		u->in[i].msg_hdr = (struct msghdr){ .msg_name = &r->from,
						    .msg_iov = &r->iov,
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
	u->broadcasts = UDP_SILENCE;
	u->link.mtu = i->mtu;
	memcpy(u->link.interface, i->name, sizeof(i->name));
	u->link.recv_fd = u->link.send_fd = open_socket(c);
	rc = u->link.recv_fd < 0
		     ? cn_link_refused(i->name, "UDP socket", errno, err)
		     : cn_udp_own_address(u->link.recv_fd, i->name, NULL, &u->self, err);
	if (rc == COLLNET_OK) {
		rc = copy_peers(u, c, err);
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
