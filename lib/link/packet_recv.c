/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving half of the packet link: a TPACKET_V2 ring, which the kernel fills slot by slot;
 * frames are passed to the caller in place (zero-copy). V2 and not V3, because V3 delays frames
 * until a block is full or a timer of milliseconds expires.
 *
 * A slot holds a frame of the MTU. For one that is longer, a super-frame, the kernel marks the slot
 * and queues the frame to the socket (PACKET_COPY_THRESH); it is read into `large`, one at a time.
 * So the ring has as many slots as without super-frames, and the receiving process copies a
 * super-frame instead of the kernel's receive path. The slot has the beginning of the super-frame:
 * if it identifies where the payloads belong, they are read there directly (direct data placement),
 * without another copy.
 *
 * The destination of a super-frame is known only when all frames before it have been processed, and
 * moving a wrongly placed one relies on this: so it is always the first of a batch.
 *
 * Slots are in order of arrival, and so are the queued frames. [tail, tail + borrowed) is in use by
 * the caller. A partially returned super-frame keeps its slot and `large`.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>

#include "link/kinds.h"
#include "link/packet_impl.h"
#include "util/byteorder.h"

#define ERROR_EVERY 512 /* empty polls of the ring per check of the socket's error */

static struct tpacket2_hdr *slot_at(const struct packet_link *p, const struct packet_cursor *c)
{
	return (struct tpacket2_hdr *)(void *)(p->ring + (size_t)c->block * p->block_bytes +
					       (size_t)c->slot * p->slot_bytes);
}

static void advance(const struct packet_link *p, struct packet_cursor *c)
{
	if (++c->slot == p->slots_per_block) {
		c->slot = 0;
		if (++c->block == p->blocks) {
			c->block = 0;
		}
	}
}

/*
 * An interface that goes down leaves an error on the socket, which poll() reports until it is
 * fetched. Fetching it at every empty poll would cost spinning loops a system call.
 */
static void fetch_error(struct packet_link *p)
{
	int e = 0;
	socklen_t len = sizeof(e);

	p->empty_polls = 0;
	if (getsockopt(p->link.recv_fd, SOL_SOCKET, SO_ERROR, &e, &len) == 0 && e != 0) {
		cn_packet_gone(p, e);
	}
}

/*
 * A frame with a VLAN tag is of another network, unless the tag has only a priority (VLAN 0). The
 * kernel has removed the tag, which it reports in the status.
 */
static bool is_tagged(const struct tpacket2_hdr *h, uint32_t status)
{
	const struct sockaddr_ll *from = (const void *)((const uint8_t *)h +
							TPACKET_ALIGN(sizeof(*h)));

	return ((status & TP_STATUS_VLAN_VALID) != 0 && (h->tp_vlan_tci & CN_VLAN_ID) != 0) ||
	       from->sll_pkttype == PACKET_OTHERHOST;
}

void cn_packet_release(struct cn_link *l)
{
	struct packet_link *p = (struct packet_link *)l;
	uint32_t kept = p->rest.left > 0;

	for (; p->borrowed > kept; p->borrowed--) {
		struct tpacket2_hdr *h = slot_at(p, &p->tail);

		__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		advance(p, &p->tail);
	}
	p->large_in_use = p->large_in_use && kept;
}

/*
 * True if the checksum need not be verified: it was, or the frame never left this machine. Not by
 * TP_STATUS_CSUM_VALID, which Linux before 6.1 also sets where the network card has only computed
 * the sum (CHECKSUM_COMPLETE), which was not compared.
 */
static bool is_trusted(const struct virtio_net_hdr *vnet, uint32_t status)
{
	return (vnet->flags & (VIRTIO_NET_HDR_F_NEEDS_CSUM | VIRTIO_NET_HDR_F_DATA_VALID)) != 0 ||
	       (status & TP_STATUS_CSUMNOTREADY) != 0;
}

/* True if the destination of the super-frame that this slot announces is known. */
static bool find_place(const struct packet_link *p, const struct tpacket2_hdr *h, uint32_t status,
		       const struct virtio_net_hdr *vnet, struct cn_rx_place *place)
{
	const uint8_t *frame = (const uint8_t *)h + h->tp_mac;
	const struct cn_rx_frame first = {
		.ether = frame,
		.data = frame + p->head_bytes,
		.len = vnet->gso_size,
		.encapsulation = p->link.encapsulation,
	};

	/* The filter accepted it: our EtherType, or UDP or TCP to our port. */
	return p->link.place != NULL && vnet->gso_type != VIRTIO_NET_HDR_GSO_NONE &&
	       is_trusted(vnet, status) && cn_encapsulation_of(frame) == p->link.encapsulation &&
	       h->tp_snaplen >= p->head_bytes + PACKET_HEADER_MAX &&
	       p->link.place(p->link.place_ctx, &first, place) &&
	       place->header <= PACKET_HEADER_MAX && place->header < vnet->gso_size;
}

/*
 * Builds the I/O vector of recvmsg() for a super-frame: its own headers; header and payload of each
 * placed frame; the rest, which follows its headers in `large`. Returns its length.
 */
static size_t divide(struct packet_link *p, size_t bytes, size_t size, struct cn_rx_place *place,
		     struct cn_super_frame *apart)
{
	struct iovec *v = p->parts;
	uint8_t *head = p->heads, *rest = p->large + sizeof(struct virtio_net_hdr) + p->head_bytes;
	size_t n = 0;

	apart->header = place->header;
	apart->headers = head;
	apart->payloads = place->at;
	v[n++] = (struct iovec){ p->large, (size_t)(rest - p->large) };
	while (n < 2 * CN_SUPER_FRAME_MAX && bytes > place->header) {
		size_t len = bytes < size ? bytes : size, payload = len - place->header;

		if (payload > place->room) {
			break;
		}
		v[n++] = (struct iovec){ head, place->header };
		v[n++] = (struct iovec){ place->at, payload };
		head += place->header;
		place->at += payload;
		place->room -= payload;
		apart->placed += len;
		bytes -= len;
	}
	v[n++] = (struct iovec){ rest, PACKET_LARGE - p->head_bytes };
	return n;
}

/*
 * The kernel reports an error of the interface once, before the queued frames. Without a second
 * call, the frame would be attributed to the next slot.
 */
static ssize_t receive_queued(struct packet_link *p, struct msghdr *m)
{
	ssize_t r = recvmsg(p->link.recv_fd, m, MSG_DONTWAIT | MSG_TRUNC);

	if (r < 0 && (errno == ENETDOWN || errno == ENODEV || errno == ENXIO)) {
		cn_packet_gone(p, errno);
		r = recvmsg(p->link.recv_fd, m, MSG_DONTWAIT | MSG_TRUNC);
	}
	return r;
}

/* True if the frame in `large` is not that of the slot: it was split by another size. */
static bool is_of_another_slot(const struct packet_link *p, const struct virtio_net_hdr *slot)
{
	struct virtio_net_hdr read;

	memcpy(&read, p->large, sizeof(read));
	return read.gso_type != slot->gso_type || read.gso_size != slot->gso_size;
}

/* Reads the next frame that the kernel queued, with its struct virtio_net_hdr. Returns its length,
 * 0: none; *apart describes its frames outside `large`. */
static size_t read_large(struct packet_link *p, const struct tpacket2_hdr *h, uint32_t status,
			 struct cn_super_frame *apart)
{
	struct msghdr m = { .msg_iov = p->parts, .msg_iovlen = 1 };
	struct cn_rx_place place;
	struct virtio_net_hdr vnet;
	ssize_t r;

	memcpy(&vnet, (const uint8_t *)h + h->tp_mac - sizeof(vnet), sizeof(vnet));
	p->parts[0] = (struct iovec){ p->large, sizeof(vnet) + PACKET_LARGE };
	if (h->tp_len > p->head_bytes && find_place(p, h, status, &vnet, &place)) {
		m.msg_iovlen = divide(p, h->tp_len - p->head_bytes, vnet.gso_size, &place, apart);
	}
	r = receive_queued(p, &m);
	return r < (ssize_t)sizeof(vnet) || is_of_another_slot(p, &vnet) ? 0
									 : (size_t)r - sizeof(vnet);
}

/* Number of collnet frames of a slot whose super-frame did not fit the receive buffer; 0 for other
 * encapsulations. */
static uint32_t frames_lost(const struct packet_link *p, const struct tpacket2_hdr *h)
{
	const uint8_t *frame = (const uint8_t *)h + h->tp_mac;
	struct virtio_net_hdr vnet = { 0 };

	if (cn_encapsulation_of(frame) != p->link.encapsulation) {
		return 0;
	}
	if (p->vnet) {
		memcpy(&vnet, frame - sizeof(vnet), sizeof(vnet));
	}
	if (vnet.gso_type == VIRTIO_NET_HDR_GSO_NONE || vnet.gso_size == 0 ||
	    h->tp_len <= p->head_bytes) {
		return 1;
	}
	return (h->tp_len - p->head_bytes + vnet.gso_size - 1) / vnet.gso_size;
}

/* Makes the frame of a slot the next to be returned, if it is for us. */
static void receive_slot(struct packet_link *p, const struct tpacket2_hdr *h, uint32_t status)
{
	const uint8_t *frame = (const uint8_t *)h + h->tp_mac;
	struct virtio_net_hdr vnet = { 0 };
	struct cn_super_frame s, apart = { .placed = 0 };
	size_t len = h->tp_snaplen;
	bool large = (status & TP_STATUS_COPY) != 0;

	if (large) {
		len = read_large(p, h, status, &apart);
		frame = p->large + sizeof(vnet);
	}
	if (is_tagged(h, status)) {
		return;
	}
	if (len > PACKET_LARGE || (large ? len != h->tp_len : len < h->tp_len)) {
		p->counters.ring_drops += frames_lost(p, h);
		return;
	}
	if (p->vnet) {
		memcpy(&vnet, frame - sizeof(vnet), sizeof(vnet));
	}
	if (!cn_link_decapsulate(frame, len, p->ethertype, is_trusted(&vnet, status), &s)) {
		return;
	}
	s.size = vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE ? vnet.gso_size : 0;
	if (apart.placed > 0 &&
	    (s.encapsulation != p->link.encapsulation || s.left != len - p->head_bytes)) {
		return; /* it was split by another length */
	}
	s.placed = apart.placed;
	s.header = apart.header;
	s.headers = apart.headers;
	s.payloads = apart.payloads;
	p->rest = s;
	p->large_in_use |= large;
}

size_t cn_packet_recv(struct cn_link *l, struct cn_rx_frame *out, size_t max)
{
	struct packet_link *p = (struct packet_link *)l;
	size_t n = cn_super_frame_next(&p->rest, out, max);

	/* Bounds the number of dropped frames. */
	for (uint32_t tries = 0;
	     p->ring != NULL && n < max && p->borrowed < p->slots && tries < p->slots; tries++) {
		const struct tpacket2_hdr *h = slot_at(p, &p->head);
		uint32_t status = __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE);

		if ((status & TP_STATUS_USER) == 0 ||
		    ((status & TP_STATUS_COPY) != 0 && (n > 0 || p->large_in_use))) {
			break;
		}
		advance(p, &p->head);
		p->borrowed++;
		receive_slot(p, h, status);
		n += cn_super_frame_next(&p->rest, out + n, max - n);
		if (n == 0) {
			/* A caller that gets no frames does not call release. */
			cn_packet_release(l);
		}
	}
	if (n > 0) {
		p->silent_sends = 0;
		p->silent_drops = UINT64_MAX;
	} else if (++p->empty_polls >= ERROR_EVERY) {
		fetch_error(p);
	}
	return n;
}
