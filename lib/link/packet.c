/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link of Linux: AF_PACKET. One socket receives into a ring (packet_recv.c), a second one sends
 * (packet_send.c).
 *
 * The receiving socket is opened with protocol 0, which receives nothing, and bound last, so that
 * no frame passes before the filter is attached and locked. It is bound to all protocols, because
 * the filter accepts frames of any encapsulation, to report nodes that use another one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "link/filter.h"
#include "link/kinds.h"
#include "link/packet_impl.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define BLOCK_MIN      65536
#define CHECK_INTERVAL (100 * CN_MS) /* of a ring without input */

void cn_packet_gone(struct packet_link *p, int e)
{
	if (!p->gone) {
		p->gone = true;
		cn_log(COLLNET_LOG_DEBUG, "interface %s: %s", p->link.interface, strerror(e));
	}
}

static void read_drops(struct packet_link *p)
{
	struct tpacket_stats s;
	socklen_t len = sizeof(s);

	/* Every read resets the kernel's counters. */
	if (getsockopt(p->link.recv_fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) == 0) {
		p->kernel_drops += s.tp_drops;
		p->counters.ring_drops += s.tp_drops;
	}
}

static void packet_counters(struct cn_link *l, struct cn_link_counters *out)
{
	struct packet_link *p = (struct packet_link *)l;

	read_drops(p);
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
	free(p->large);
	free(p);
}

static const struct cn_link_ops packet_ops = {
	.name = "packet",
	.recv = cn_packet_recv,
	.release = cn_packet_release,
	.send = cn_packet_send,
	.counters = packet_counters,
	.close = packet_close,
};

/* Attaches the filter to the socket and locks it. */
static int set_filter(struct packet_link *p, struct cn_err *err)
{
	struct sock_filter filter[CN_LINK_FILTER];
	const struct sock_fprog program = { .len = CN_LINK_FILTER, .filter = filter };
	const int on = 1;

	cn_link_filter(filter, p->ethertype, p->link.mac);
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
				   p->link.mtu + (p->vnet ? sizeof(struct virtio_net_hdr) : 0));
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

static void reopen_ring(struct packet_link *p)
{
	const struct tpacket_req none = { 0 };
	struct cn_err err;

	if (p->ring != NULL) {
		munmap(p->ring, p->ring_bytes);
	}
	p->ring = NULL;
	p->head = p->tail = (struct packet_cursor){ 0, 0 };
	if (setsockopt(p->link.recv_fd, SOL_PACKET, PACKET_RX_RING, &none, sizeof(none)) < 0) {
		cn_link_refused(p->link.interface, "receive ring", errno, &err);
	} else if (map_ring(p, p->slots, &err) == 0) {
		cn_log(p->reopened ? COLLNET_LOG_DEBUG : COLLNET_LOG_WARNING,
		       "interface %s: the kernel stopped receiving at a frame that it cannot "
		       "describe, and goes on now: with Linux before 6.2, use ethtool -K %s "
		       "rx-udp-gro-forwarding off",
		       p->link.interface, p->link.interface);
		p->reopened = true;
		return;
	}
	cn_log(COLLNET_LOG_DEBUG, "%s", err.text); /* retried */
}

/*
 * A frame with a segmentation type that struct virtio_net_hdr cannot represent stops the ring: the
 * kernel drops it but keeps its slot reserved, and drops all that follow (tpacket_rcv(),
 * rx_owner_map). Before Linux 6.2 these are merged frames of the encapsulation udp, since then UDP
 * fragmentation offload, which a virtual machine behind a bridge can send. It shows as drops
 * without input.
 */
void cn_packet_check_ring(struct packet_link *p)
{
	const cn_time now = cn_now();

	if (p->borrowed > 0 || !p->vnet || now < p->ring_check_at) {
		return;
	}
	p->ring_check_at = now + CHECK_INTERVAL;
	read_drops(p);
	if (p->ring == NULL || p->kernel_drops > p->silent_drops) {
		reopen_ring(p);
	}
	p->silent_drops = p->kernel_drops;
}

/*
 * The encapsulations udp and tcp use PACKET_VNET_HDR where the system has it, and super-frames.
 * Queued super-frames are accounted against the socket's receive buffer.
 */
static int set_offloads(struct packet_link *p, struct cn_err *err)
{
	const int on = 1;
	const int fd = p->link.recv_fd;

	if (p->link.encapsulation == CN_ENCAPSULATION_RAW ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) < 0 ||
	    setsockopt(p->link.send_fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) < 0) {
		return 0;
	}
	p->vnet = p->gso = true;
	p->probe = p->link.encapsulation == CN_ENCAPSULATION_UDP;
	p->large = malloc(sizeof(struct virtio_net_hdr) + PACKET_LARGE);
	if (p->large == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for a link");
	}
	if (setsockopt(fd, SOL_PACKET, PACKET_COPY_THRESH, &on, sizeof(on)) < 0 ||
	    !cn_link_set_receive_buffer(&p->link)) {
		return cn_link_refused(p->link.interface, "receive buffer", errno, err);
	}
	return 0;
}

static int bind_socket(int fd, const struct cn_interface *i, uint16_t protocol, struct cn_err *err)
{
	struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
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
	p->full_send_buffer = p->send_buffer;
	/* Before Linux 4.20 only the filter drops this node's own frames. */
	if (setsockopt(p->link.send_fd, SOL_SOCKET, SO_SNDBUF, &p->send_buffer,
		       sizeof(p->send_buffer)) < 0 ||
	    (setsockopt(p->link.recv_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) < 0 &&
	     errno != ENOPROTOOPT)) {
		return cn_link_refused(i->name, "packet socket", errno, err);
	}
	r = bind_socket(p->link.send_fd, i, 0, err);
	if (r == 0) {
		r = set_filter(p, err);
	}
	if (r == 0) {
		r = set_offloads(p, err);
	}
	if (r == 0) {
		r = map_ring(p, config->ring_frames, err);
	}
	if (r == 0) {
		r = bind_socket(p->link.recv_fd, i, ETH_P_ALL, err);
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
	p->link.encapsulation = config->encapsulation;
	p->head_bytes = (uint32_t)cn_head_bytes(p->link.encapsulation);
	p->ethertype = config->ethertype;
	p->silent_drops = UINT64_MAX;
	r = open_sockets(p, config, i, err);
	if (r < 0) {
		packet_close(&p->link);
		return r;
	}
	*out = &p->link;
	return 0;
}
