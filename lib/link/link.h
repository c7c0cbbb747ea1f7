/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links send and receive frames on an Ethernet interface. There are three kinds:
 *
 *   packet  AF_PACKET: TPACKET_V2 receive ring, sendmmsg; Linux, the default
 *   udp     an ordinary UDP socket: any IPv4 network, no privilege
 *   pcap    libpcap receives, libnet builds and injects; portable (not with --without-pcap)
 *
 * A link never blocks and never allocates after opening. It delivers only frames of its
 * EtherType, or of the encapsulations udp and tcp with that number as the port, that are addressed
 * to it or to the broadcast address, and never its own. Frames of the encapsulation that the link
 * does not use are delivered, too, so that the transport can report their senders.
 */
#ifndef CN_LINK_H
#define CN_LINK_H

#include "proto/frame.h"
#include "util/util.h"

struct cn_udp_peers;

struct cn_link_config {
	const char *kind;      /* "packet" (NULL too), "udp" or "pcap" */
	const char *interface; /* NULL: the only candidate, else refused with the list of them */
	uint16_t ethertype;    /* encapsulation udp: the number of the UDP port */
	enum cn_encapsulation encapsulation; /* pcap: raw */
	uint32_t auth; /* bytes that authentication adds to each frame; 0: no key */
	const struct cn_udp_peers *peers; /* udp: is copied; NULL: the default group */
	uint32_t ring_frames;		  /* receive ring, frames; 0: 2,048 */
	uint32_t queue_frames;		  /* full frames in the kernel's send queue; 0: 8 */
	/*
	 * Opens a packet socket (SOCK_RAW, protocol 0) for a process without CAP_NET_RAW, or a UDP
	 * socket for link udp, non-blocking: a descriptor, or -1 with errno. NULL: socket(). The
	 * pcap link opens its own.
	 */
	int (*open_socket)(void *arg);
	void *open_arg;
};

struct cn_link_counters {
	uint64_t ring_drops;  /* dropped by the kernel because the ring or buffer was full */
	uint64_t send_full;   /* sends refused because the queue was full */
	uint64_t send_errors; /* frames lost because the interface refused them (down, too long) */
};

struct cn_link;

/* What a kind of link provides; link.c dispatches. */
struct cn_link_ops {
	const char *name;
	size_t (*recv)(struct cn_link *l, struct cn_rx_frame *out, size_t max);
	void (*release)(struct cn_link *l);
	int (*send)(struct cn_link *l, const struct cn_frame *frames, size_t n);
	void (*counters)(struct cn_link *l, struct cn_link_counters *out);
	void (*close)(struct cn_link *l);
};

#define CN_REFUSALS 4

/* Common to every link; its first member. */
struct cn_link {
	const struct cn_link_ops *ops;
	uint8_t mac[6];
	uint32_t mtu;  /* bytes after the Ethernet header, the encapsulation's headers included */
	int recv_fd;   /* readable when frames are available; -1: none */
	int send_fd;   /* writable when the queue has room again; may equal recv_fd; -1: none */
	uint64_t rate; /* bit/s, when it was opened; 0: not known */
	uint64_t lost; /* frames that the caller lost because the interface went away */
	enum cn_encapsulation encapsulation; /* that it adds; raw: none */
	char interface[32];
	int receive_buffer;	   /* receive buffer for super-frames, bytes; 0: none */
	int refusals[CN_REFUSALS]; /* errnos logged for refused frames; 0: none */
	bool moved;		   /* `mac` is no longer the interface's: replace the link */
	cn_rx_place_fn *place;	   /* NULL: all frames are received into the link's memory */
	void *place_ctx;
};

/*
 * Checks what does not depend on the interface, and loads the libraries of the kind of link, for a
 * process that can no longer load them when it opens the link. COLLNET_EINVAL: there is no such
 * kind, or no such EtherType; COLLNET_EUNSUPPORTED: not in this build, a library is missing, or the
 * kind has no such encapsulation.
 */
int cn_link_prepare(const struct cn_link_config *config, struct cn_err *err);

/* The well-known protocol with this EtherType, which must not be used; NULL: none. */
const char *cn_link_ethertype_owner(uint16_t ethertype);

/* True if the kind (NULL: the default) is link udp, whose encapsulation is udp. */
bool cn_link_is_udp(const char *kind);

/* True if the kind needs an IPv4 address that the interface lacks. */
bool cn_link_lacks_address(const char *kind, const char *interface);

/*
 * Opens a link. COLLNET_EPERM, COLLNET_EIFACE (none, unknown, down, not Ethernet, several and
 * none named; the message lists them and the remedy), COLLNET_ESYSTEM, and what
 * cn_link_prepare() returns.
 */
int cn_link_open(const struct cn_link_config *config, struct cn_link **out, struct cn_err *err);
void cn_link_close(struct cn_link *l);
/* Logs advice on system and interface settings for a link. */
void cn_link_advise(const struct cn_link *l);

/* Describes the change of its address; link udp cannot distinguish a lost address from a changed
 * one. */
const char *cn_link_address_changed(const struct cn_link *l);

/* Sets the callback for direct data placement. The packet link uses it for super-frames. */
void cn_link_set_place(struct cn_link *l, cn_rx_place_fn *place, void *ctx);

/*
 * Receives up to max frames, in order; 0: none now. They are borrowed from the link until
 * cn_link_release(), which must precede the next recv.
 */
size_t cn_link_recv(struct cn_link *l, struct cn_rx_frame *out, size_t max);
void cn_link_release(struct cn_link *l);

/*
 * Sends n frames in order; returns how many were accepted. Fewer than n: the queue is full, wait
 * for send_fd to be writable. COLLNET_EIFACE: the interface went away.
 */
int cn_link_send(struct cn_link *l, const struct cn_frame *frames, size_t n);
void cn_link_counters(struct cn_link *l, struct cn_link_counters *out);

#endif
