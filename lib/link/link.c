/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening links, and the code shared by all kinds. */
#include "link/link.h"

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/encapsulation.h"
#include "link/kinds.h"
#include "link/offload.h"
#include "link/udp_address.h"
#include "util/byteorder.h"

#define RING_FRAMES_DEFAULT  2048
#define RING_FRAMES_MAX	     65536
#define RING_BYTES_DEFAULT   ((uint32_t)8 << 20) /* jumbo frames get fewer slots by default */
#define QUEUE_FRAMES_DEFAULT 8
#define QUEUE_FRAMES_MAX     1024
#define ETHERTYPE_MIN	     0x0600 /* below are lengths, not types */

static const struct {
	const char *name;
	int (*prepare)(const struct cn_link_config *config,
		       struct cn_err *err); /* NULL: nothing to do */
	cn_link_opener open;		    /* NULL: not in this build */
} kinds[] = {
	{ "packet", NULL, cn_link_open_packet },
	{ "udp", NULL, cn_link_open_udp },
#ifdef HAVE_PCAP
	{ "pcap", cn_link_prepare_pcap, cn_link_open_pcap },
#else
	{ "pcap", NULL, NULL },
#endif
};

/*
 * The kernel accounts a queued frame by its memory (truesize): a short one is one block of 2^n
 * bytes with its descriptor, a long one is pages and a small block. It accepts a frame while less
 * than the buffer is in use, and doubles the value it is given.
 */
int cn_link_send_buffer(uint32_t frames, uint32_t mtu)
{
	const uint32_t descriptor = 256, info = 320, reserve = 64;
	uint32_t piece = 1024, held;

	if (reserve + CN_ETH_HEADER + mtu < 4096) {
		while (piece < CN_ETH_HEADER + mtu + reserve + info) {
			piece *= 2;
		}
		held = descriptor + piece;
	} else {
		held = 3 * descriptor + (mtu + 4095) / 4096 * 4096;
	}
	return (int)((frames * held - held / 2) / 2);
}

/* The kernel accounts super-frames by their pages (truesize). Without CAP_NET_ADMIN the limit is
 * net.core.rmem_max, 208 KiB by default. It doubles the value it is given. */
static const int receive_buffer = 16 << 20;

bool cn_link_set_receive_buffer(struct cn_link *l)
{
	const int *want = &receive_buffer, fd = l->recv_fd;
	int have = 0;
	socklen_t len = sizeof(have);

	if ((setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, want, sizeof(*want)) < 0 &&
	     setsockopt(fd, SOL_SOCKET, SO_RCVBUF, want, sizeof(*want)) < 0) ||
	    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &have, &len) < 0) {
		return false;
	}
	l->receive_buffer = have / 2;
	return true;
}

bool cn_link_lacks_address(const char *kind, const char *interface)
{
	const int fd = cn_link_is_udp(kind) ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
	struct sockaddr_in a;
	const bool lacks = fd >= 0 &&
			   cn_udp_own_address(fd, interface, NULL, &a, NULL) != COLLNET_OK;

	if (fd >= 0) {
		close(fd);
	}
	return lacks;
}

void cn_link_advise(const struct cn_link *l)
{
	cn_offload_advise(l->interface, l->encapsulation);
	if (l->receive_buffer > 0 && l->receive_buffer < receive_buffer) {
		cn_log(COLLNET_LOG_INFO,
		       "interface %s: the receive buffer is %d KiB, and frames are lost where more "
		       "wait: set net.core.rmem_max to %d",
		       l->interface, l->receive_buffer / 1024, receive_buffer);
	}
}

const char *cn_link_address_changed(const struct cn_link *l)
{
	return cn_link_is_udp(l->ops->name) ? "lost or changed its IPv4 address"
					    : "was given another address";
}

bool cn_link_decapsulate(const uint8_t *frame, size_t len, uint16_t ethertype, bool trusted,
			 struct cn_super_frame *out)
{
	enum cn_encapsulation e;
	const uint8_t *payload;
	size_t bytes;

	if (len < CN_ETH_HEADER) {
		return false;
	}
	if (cn_get_be16(frame + 12) == ethertype) {
		*out = (struct cn_super_frame){ .ether = frame,
						.at = frame + CN_ETH_HEADER,
						.left = len - CN_ETH_HEADER,
						.encapsulation = CN_ENCAPSULATION_RAW };
		return true;
	}
	if (!cn_headers_get(frame, len, ethertype, trusted, &e, &payload, &bytes)) {
		return false;
	}
	*out = (struct cn_super_frame){
		.ether = frame, .at = payload, .left = bytes, .encapsulation = e
	};
	return true;
}

bool cn_link_is_new_refusal(struct cn_link *l, int e)
{
	for (int i = 0; i < CN_REFUSALS && l->refusals[i] != e; i++) {
		if (l->refusals[i] == 0) {
			l->refusals[i] = e;
			return true;
		}
	}
	return false;
}

int cn_link_refused(const char *interface, const char *what, int e, struct cn_err *err)
{
	if (e == EPERM || e == EACCES) {
		return cn_fail(
			err, COLLNET_EPERM,
			"no permission for raw sockets on %s: run as root or with CAP_NET_RAW "
			"(setcap cap_net_raw+ep); without it, programs use collnetd",
			interface);
	}
	if (e == EAFNOSUPPORT) {
		return cn_fail(err, COLLNET_EPERM,
			       "interface %s: %s: %s: the service must allow its address family "
			       "(RestrictAddressFamilies=, see collnetd(8))",
			       interface, what, cn_strerror(e));
	}
	/* The interface, or with link udp its address, went away since it was chosen. */
	return cn_fail(err,
		       e == ENODEV || e == ENXIO || e == EADDRNOTAVAIL ? COLLNET_EIFACE
								       : COLLNET_ESYSTEM,
		       "interface %s: %s: %s", interface, what, cn_strerror(e));
}

bool cn_link_is_udp(const char *kind)
{
	return kind != NULL && strcmp(kind, "udp") == 0;
}

/* Protocols of every machine. */
const char *cn_link_ethertype_owner(uint16_t ethertype)
{
	switch (ethertype) {
	case 0x0800:
		return "IPv4";
	case 0x0806:
		return "ARP";
	case 0x8100:
		return "VLAN tags";
	case 0x86dd:
		return "IPv6";
	case 0x88cc:
		return "LLDP";
	default:
		return NULL;
	}
}

/* Fills in the defaults of sizes, and checks them. */
static int complete_config(struct cn_link_config *c, uint32_t mtu, struct cn_err *err)
{
	if (c->ring_frames > RING_FRAMES_MAX || c->queue_frames > QUEUE_FRAMES_MAX) {
		return cn_fail(err, COLLNET_EINVAL,
			       "a receive ring of %u and a send queue of %u "
			       "frames: at most %d and %d are possible",
			       c->ring_frames, c->queue_frames, RING_FRAMES_MAX, QUEUE_FRAMES_MAX);
	}
	if (c->ring_frames == 0) {
		c->ring_frames = RING_BYTES_DEFAULT / mtu;
		if (c->ring_frames > RING_FRAMES_DEFAULT) {
			c->ring_frames = RING_FRAMES_DEFAULT;
		}
	}
	if (c->queue_frames == 0) {
		c->queue_frames = QUEUE_FRAMES_DEFAULT;
	}
	return 0;
}

/* The index of a kind of link in *out. */
static int find_kind(const char *name, size_t *out, struct cn_err *err)
{
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		if (name != NULL && strcmp(name, kinds[k].name) != 0) {
			continue;
		}
		if (kinds[k].open == NULL) {
			return cn_fail(err, COLLNET_EUNSUPPORTED,
				       "this build has no link %s: configure it with libpcap and "
				       "libnet",
				       name);
		}
		*out = k;
		return COLLNET_OK;
	}
	return cn_fail(err, COLLNET_EINVAL, "unknown link '%.40s' (available: packet, udp, pcap)",
		       name);
}

static int check_ethertype(const struct cn_link_config *c, struct cn_err *err)
{
	if (c->ethertype < ETHERTYPE_MIN) {
		return cn_fail(err, COLLNET_EINVAL,
			       "0x%04x is not an EtherType: choose one from "
			       "0x0600 up, such as 0x88b5",
			       c->ethertype);
	}
	if (cn_link_is_udp(c->kind) && c->ethertype < CN_UDP_PORT_MIN) {
		return cn_fail(err, COLLNET_EINVAL,
			       "link udp: 0x%04x (%u) is too low a port: choose an EtherType from "
			       "0x8000 up, such as 0x88b5",
			       c->ethertype, c->ethertype);
	}
	if (cn_link_ethertype_owner(c->ethertype) != NULL) {
		return cn_fail(err, COLLNET_EINVAL,
			       "EtherType 0x%04x belongs to %s: choose a free one, "
			       "such as 0x88b5",
			       c->ethertype, cn_link_ethertype_owner(c->ethertype));
	}
	return COLLNET_OK;
}

int cn_link_prepare(const struct cn_link_config *c, struct cn_err *err)
{
	size_t k = 0;
	int r = find_kind(c->kind, &k, err);

	if (r == COLLNET_OK) {
		r = check_ethertype(c, err);
	}
	return r == COLLNET_OK && kinds[k].prepare != NULL ? kinds[k].prepare(c, err) : r;
}

static int check_mtu(const struct cn_interface *i, const struct cn_link_config *c,
		     struct cn_err *err)
{
	const enum cn_encapsulation e = cn_link_is_udp(c->kind) ? CN_ENCAPSULATION_UDP
								: c->encapsulation;
	const uint32_t least = CN_FRAME_MTU_MIN + cn_encapsulation_bytes(e) + c->auth;

	if (i->mtu < least) {
		return cn_fail(err, COLLNET_EIFACE,
			       "interface %s has an MTU of %u, and at least %u is required with "
			       "the encapsulation %s%s: 'ip link set %s mtu 1500'",
			       i->name, i->mtu, least, cn_encapsulation_name(e),
			       c->auth != 0 ? " and a key" : "", i->name);
	}
	return COLLNET_OK;
}

int cn_link_open(const struct cn_link_config *config, struct cn_link **out, struct cn_err *err)
{
	struct cn_link_config c = *config;
	struct cn_interface i;
	size_t k = 0;
	int r = find_kind(c.kind, &k, err);

	if (r == COLLNET_OK) {
		r = check_ethertype(&c, err);
	}
	if (r == COLLNET_OK) {
		r = cn_interface_choose(c.interface, cn_link_is_udp(c.kind), &i, err);
	}
	if (r < 0) {
		return r;
	}
	if (i.mtu > CN_LINK_MTU_MAX) {
		i.mtu = CN_LINK_MTU_MAX;
	}
	r = check_mtu(&i, &c, err);
	if (r == COLLNET_OK) {
		r = complete_config(&c, i.mtu, err);
	}
	if (r < 0) {
		return r;
	}
	r = kinds[k].open(&c, &i, out, err);
	if (r == COLLNET_OK) {
		(*out)->rate = cn_interface_rate((*out)->send_fd, (*out)->interface);
	}
	return r;
}

void cn_link_close(struct cn_link *l)
{
	if (l != NULL) {
		l->ops->close(l);
	}
}

void cn_link_set_place(struct cn_link *l, cn_rx_place_fn *place, void *ctx)
{
	l->place = place;
	l->place_ctx = ctx;
}

size_t cn_link_recv(struct cn_link *l, struct cn_rx_frame *out, size_t max)
{
	return l->ops->recv(l, out, max);
}

void cn_link_release(struct cn_link *l)
{
	l->ops->release(l);
}

int cn_link_send(struct cn_link *l, const struct cn_frame *frames, size_t n)
{
	const int r = l->ops->send(l, frames, n);

	l->lost += r < 0 ? n : 0;
	return r;
}

void cn_link_counters(struct cn_link *l, struct cn_link_counters *out)
{
	l->ops->counters(l, out);
	out->send_errors += l->lost;
}
