/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct packet_link, for the files of the packet link: packet.c opens and closes it, packet_recv.c
 * reads its ring, packet_send.c sends.
 */
#ifndef CN_PACKET_IMPL_H
#define CN_PACKET_IMPL_H

#include <linux/virtio_net.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "link/link.h"
#include "link/super_frame.h"
#include "link/encapsulation.h"
#include "util/clock.h"

/* Messages per system call; a message is a frame or a super-frame. */
#define PACKET_BATCH (2 * CN_SUPER_FRAME_MAX)
/* I/O vectors: head, payload and padding per frame, headers of the encapsulation per message. */
#define PACKET_IOVECS (4 * PACKET_BATCH)
/* Bytes of a header that is received apart from its payload. */
#define PACKET_HEADER_MAX 32
/* Bytes of the longest frame: a datagram behind an Ethernet header. */
#define PACKET_LARGE (CN_ETH_HEADER + 65535)

/* A position in the ring. Slots do not cross blocks, and a block can end in unused bytes. */
struct packet_cursor {
	uint32_t block, slot;
};

/* The headers before the collnet frames of a message of the encapsulation udp or tcp. */
struct packet_headers {
	struct virtio_net_hdr vnet; /* if the link has it: describes GSO and the checksum */
	uint8_t head[CN_HEAD_MAX];
};

struct packet_link {
	struct cn_link link;
	uint16_t ethertype;  /* and UDP or TCP port */
	uint32_t head_bytes; /* cn_head_bytes() of the encapsulation */
	bool vnet;	     /* a struct virtio_net_hdr precedes each frame, in both directions */
	bool gso;	     /* the kernel accepts super-frames */
	bool gone;	     /* the loss of the interface is logged */
	struct cn_link_counters counters;

	/* receiving */
	uint8_t *ring;
	size_t ring_bytes;
	uint32_t slot_bytes, slots_per_block, block_bytes, blocks;
	uint32_t slots;
	struct packet_cursor head, tail;
	uint32_t borrowed;
	uint32_t empty_polls;
	uint64_t kernel_drops; /* as the kernel counts them */
	uint32_t silent_sends; /* sends since the last frame received */
	uint64_t silent_drops; /* kernel_drops at the last check since; UINT64_MAX: not checked */
	cn_time ring_check_at; /* earliest next check of the ring */
	bool reopened;	       /* logged */
	uint8_t *large;	       /* buffer for a frame larger than a slot; NULL: none */
	bool large_in_use;     /* the caller has frames in it */
	struct iovec parts[2 * CN_SUPER_FRAME_MAX + 2];
	uint8_t heads[CN_SUPER_FRAME_MAX * PACKET_HEADER_MAX];
	struct cn_super_frame rest; /* received, not yet passed to the caller */

	/* sending */
	/* the current size, and that for an interface's queue that is long enough */
	int send_buffer, full_send_buffer;
	cn_time grow_at;      /* when to grow the former, if smaller; 0: never shrunk */
	cn_time single_until; /* send single frames until then; 0: super-frames */
	bool single_logged;
	bool probe; /* udp: the next short frame probes whether the kernel accepts super-frames */
	uint32_t sequence; /* tcp: sequence number, bytes sent */
	struct mmsghdr messages[PACKET_BATCH];
	uint32_t frames[PACKET_BATCH]; /* of each message */
	struct iovec iovecs[PACKET_IOVECS];
	struct packet_headers headers[PACKET_BATCH];
};

void cn_packet_gone(struct packet_link *p, int e);
/* The link sends but receives nothing: checks whether the kernel has stopped filling the ring. */
void cn_packet_check_ring(struct packet_link *p);
size_t cn_packet_recv(struct cn_link *l, struct cn_rx_frame *out, size_t max);
void cn_packet_release(struct cn_link *l);
int cn_packet_send(struct cn_link *l, const struct cn_frame *frames, size_t n);

#endif
