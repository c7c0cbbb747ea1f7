/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct udp_link, for the files of link udp: udp_socket.c opens it and receives, udp_send.c sends.
 */
#ifndef CN_UDP_IMPL_H
#define CN_UDP_IMPL_H

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "link/link.h"
#include "link/super_frame.h"
#include "link/udp_address.h"
#include "util/clock.h"

#define UDP_SEND_BATCH 64 /* messages */
#define UDP_RECV_BATCH 16
#define UDP_IOVECS     (4 * CN_SUPER_FRAME_MAX) /* of two super-frames */
#define UDP_SILENCE    16			/* broadcasts */
#define UDP_SINGLES    512u
#define UDP_STRANGERS  4u /* log lines about unlisted senders */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* Ancillary data of a message: the source address to use and the size of a segment, or the size of
 * a merged one. */
struct udp_control {
	_Alignas(struct cmsghdr)
		uint8_t bytes[CMSG_SPACE(sizeof(struct in_pktinfo)) + CMSG_SPACE(sizeof(int))];
};

struct udp_received {
	uint8_t ether[CN_ETH_HEADER];
	struct sockaddr_in from;
	struct udp_control control;
	struct iovec iov;
};

/* A host that gets single frames until `until`, because a super-frame to it was refused. */
struct udp_single {
	in_addr_t host;
	cn_time until;
};

struct udp_link {
	struct cn_link link;
	struct sockaddr_in self;
	struct cn_udp_peers peers;
	/* per listed host: `broadcasts` when it last sent a frame; 0: never */
	uint64_t *last_heard;
	uint64_t broadcasts; /* broadcasts started, plus UDP_SILENCE */
	uint32_t first;	     /* first host of the next broadcast */
	int send_buffer;     /* bytes, as accounted by the kernel */
	bool gso;	     /* the kernel has UDP_SEGMENT */
	bool single_logged;
	struct udp_single single[UDP_SINGLES];
	bool gone;					/* the loss of the interface is logged */
	struct sockaddr_in unknown_from[UDP_STRANGERS]; /* those logged */
	uint32_t unknown;				/* their number */
	struct cn_link_counters counters;

	uint8_t *buffers; /* UDP_RECV_BATCH of RECV_BYTES */
	struct mmsghdr in[UDP_RECV_BATCH];
	struct udp_received received[UDP_RECV_BATCH];
	uint32_t nin, at;	    /* messages received; the first one not completely returned */
	struct cn_super_frame rest; /* of message `at` */

	struct mmsghdr out[UDP_SEND_BATCH];
	uint32_t frames[UDP_SEND_BATCH]; /* of each message */
	struct sockaddr_in to[UDP_SEND_BATCH];
	struct udp_control control[UDP_SEND_BATCH];
	struct iovec iovecs[UDP_IOVECS];
};

void cn_udp_gone(struct udp_link *u, int e);
int cn_udp_send(struct cn_link *l, const struct cn_frame *frames, size_t n);

#endif
