/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The portable link: libpcap receives, libnet builds and injects. Both are loaded when the first
 * such link is prepared: building needs only their headers, and programs that use other links do
 * not map them.
 *
 * libpcap's buffer is valid only during the callback, so frames are copied into our slots, at most
 * RECEIVE_BATCH at a time. libnet sends one frame per call, from one block that is built once and
 * updated by its tag; libnet copies it into memory that it allocates, so this link is the exception
 * to "no allocation after opening", and it does not grow. Its socket would receive all frames of
 * the machine; it gets a filter that rejects everything.
 */
#include <errno.h>
#include <fcntl.h>
#include <libnet.h>
#include <linux/if_ether.h>
#include <pcap/pcap.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/filter.h"
#include "link/kinds.h"
#include "link/load.h"
#include "util/byteorder.h"

#define RECEIVE_BATCH 64
#define ETH_ADDRESSES 12u
#define VLAN_TAG      4u

/* ---- the libraries -------------------------------------------------------------------- */

#define PCAP_FUNCTIONS(X)                                                                          \
	X(pcap_create)                                                                             \
	X(pcap_set_snaplen)                                                                        \
	X(pcap_set_promisc)                                                                        \
	X(pcap_set_immediate_mode)                                                                 \
	X(pcap_set_buffer_size)                                                                    \
	X(pcap_activate)                                                                           \
	X(pcap_datalink)                                                                           \
	X(pcap_setfilter)                                                                          \
	X(pcap_setdirection)                                                                       \
	X(pcap_setnonblock)                                                                        \
	X(pcap_get_selectable_fd)                                                                  \
	X(pcap_dispatch)                                                                           \
	X(pcap_stats)                                                                              \
	X(pcap_geterr)                                                                             \
	X(pcap_close)

#define LIBNET_FUNCTIONS(X)                                                                        \
	X(libnet_init)                                                                             \
	X(libnet_getfd)                                                                            \
	X(libnet_build_ethernet)                                                                   \
	X(libnet_clear_packet)                                                                     \
	X(libnet_write)                                                                            \
	X(libnet_destroy)

#define POINTER(f) __typeof__(f) *f;
#define SYMBOL(f)  { #f, (void **)&lib.f },

static struct {
	PCAP_FUNCTIONS(POINTER)
	LIBNET_FUNCTIONS(POINTER)
} lib;

int cn_link_prepare_pcap(const struct cn_link_config *config, struct cn_err *err)
{
	static const struct cn_load_symbol pcap[] = { PCAP_FUNCTIONS(SYMBOL) };
	static const struct cn_load_symbol net[] = { LIBNET_FUNCTIONS(SYMBOL) };
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool loaded;
	int rc = COLLNET_OK;

	if (config->encapsulation != CN_ENCAPSULATION_RAW) {
		return cn_fail(err, COLLNET_EUNSUPPORTED,
			       "link pcap has no encapsulation %s: use link packet, or the "
			       "encapsulation raw on all nodes",
			       cn_encapsulation_name(config->encapsulation));
	}
	pthread_mutex_lock(&lock);
	if (!loaded) {
		rc = cn_load("link pcap", "libpcap.so.0.8", "libpcap0.8", pcap,
			     sizeof(pcap) / sizeof(pcap[0]), err);
		if (rc == COLLNET_OK) {
			rc = cn_load("link pcap", "libnet.so.1", "libnet1", net,
				     sizeof(net) / sizeof(net[0]), err);
		}
		loaded = rc == COLLNET_OK;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

/* ---- the link ------------------------------------------------------------------------- */

struct slot {
	uint8_t *data;
	struct cn_super_frame frame;
};

struct pcap_link {
	struct cn_link link;
	pcap_t *pcap;
	libnet_t *net;
	libnet_ptag_t tag;
	uint16_t ethertype;
	uint32_t frame_max;
	uint8_t *memory;
	uint8_t *payload; /* the payload passed to libnet: everything after the Ethernet header */
	struct slot slots[RECEIVE_BATCH];
	size_t taken;
	bool gone; /* the loss of the interface is logged */
	struct cn_link_counters counters;
};

static void report_gone(struct pcap_link *p, const char *why)
{
	if (!p->gone) {
		p->gone = true;
		cn_log(COLLNET_LOG_DEBUG, "interface %s: %s", p->link.interface, why);
	}
}

/*
 * libpcap puts VLAN tags back into the frame. One that has only a priority (VLAN 0) is taken out;
 * with another one, the frame is of another network, and not of our type.
 */
static bool has_priority_tag(const u_char *data, uint32_t len)
{
	return len > CN_ETH_HEADER + VLAN_TAG && cn_get_be16(data + ETH_ADDRESSES) == ETH_P_8021Q &&
	       (cn_get_be16(data + ETH_ADDRESSES + 2) & CN_VLAN_ID) == 0;
}

static void receive_frame(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	struct pcap_link *p = (struct pcap_link *)(void *)user;
	struct slot *s = &p->slots[p->taken];
	const uint32_t tag = has_priority_tag(data, h->caplen) ? VLAN_TAG : 0;
	const uint32_t len = h->caplen - tag;

	if (h->caplen < h->len || len > p->frame_max) {
		p->counters.ring_drops++;
		return;
	}
	if (tag > 0) {
		memcpy(s->data, data, ETH_ADDRESSES);
		memcpy(s->data + ETH_ADDRESSES, data + ETH_ADDRESSES + tag, len - ETH_ADDRESSES);
	} else {
		memcpy(s->data, data, len);
	}
	/* A frame without a byte of collnet's is none, as for the other links. */
	if (cn_link_decapsulate(s->data, len, p->ethertype, false, &s->frame) &&
	    s->frame.left > 0) {
		p->taken++;
	}
}

static size_t pcap_link_recv(struct cn_link *l, struct cn_rx_frame *out, size_t max)
{
	struct pcap_link *p = (struct pcap_link *)l;
	size_t first = p->taken;
	size_t room = RECEIVE_BATCH - first;
	int r;

	if (max > room) {
		max = room;
	}
	if (max == 0) {
		return 0;
	}
	r = lib.pcap_dispatch(p->pcap, (int)max, receive_frame, (u_char *)p);
	if (r < 0 && r != PCAP_ERROR_BREAK) {
		report_gone(p, lib.pcap_geterr(p->pcap));
	}
	for (size_t i = first; i < p->taken; i++) {
		(void)cn_super_frame_next(&p->slots[i].frame, &out[i - first], 1);
	}
	return p->taken - first;
}

static void pcap_link_release(struct cn_link *l)
{
	((struct pcap_link *)l)->taken = 0;
}

/* Sends one frame; 0 or the errno. */
static int inject(struct pcap_link *p, const struct cn_frame *f)
{
	size_t head = (size_t)f->head_len - CN_ETH_HEADER;
	size_t len = head + f->payload_len;
	libnet_ptag_t tag;

	if (f->head_len < CN_ETH_HEADER || len > p->link.mtu) {
		return EMSGSIZE;
	}
	memcpy(p->payload, f->head + CN_ETH_HEADER, head);
	if (f->payload_len > 0) {
		memcpy(p->payload + head, f->payload, f->payload_len);
	}
	if (len < CN_ETH_MIN - CN_ETH_HEADER) {
		memset(p->payload + len, 0, CN_ETH_MIN - CN_ETH_HEADER - len);
		len = CN_ETH_MIN - CN_ETH_HEADER;
	}
	tag = lib.libnet_build_ethernet(f->head, f->head + 6, cn_get_be16(f->head + 12), p->payload,
					(uint32_t)len, p->net, p->tag);
	if (tag == -1) {
		/* libnet has discarded the block; the next frame starts a new one. */
		lib.libnet_clear_packet(p->net);
		p->tag = LIBNET_PTAG_INITIALIZER;
		return ENOMEM;
	}
	p->tag = tag;
	errno = 0;
	if (lib.libnet_write(p->net) != (int)(CN_ETH_HEADER + len)) {
		return errno != 0 ? errno : EIO;
	}
	return 0;
}

static int pcap_link_send(struct cn_link *l, const struct cn_frame *frames, size_t n)
{
	struct pcap_link *p = (struct pcap_link *)l;

	for (size_t i = 0; i < n; i++) {
		int e = inject(p, &frames[i]);

		switch (e) {
		case 0:
			p->gone = false;
			break;
		case EINTR:
			i--;
			break;
		case EAGAIN:
			p->counters.send_full++;
			return (int)i;
		case ENETDOWN:
		case ENXIO:
		case ENODEV:
			report_gone(p, strerror(e));
			return i > 0 ? (int)i : COLLNET_EIFACE;
		default:
			/* Also ENOMEM, and ENOBUFS: the queueing discipline dropped it, and does
			 * not report when to retry. It is lost, as on the wire. */
			p->counters.send_errors++;
			if (cn_link_is_new_refusal(l, e)) {
				cn_log(COLLNET_LOG_WARNING, "interface %s refused a frame: %s",
				       l->interface, strerror(e));
			}
			break;
		}
	}
	return (int)n;
}

static void pcap_link_counters(struct cn_link *l, struct cn_link_counters *out)
{
	struct pcap_link *p = (struct pcap_link *)l;
	struct pcap_stat s;

	*out = p->counters;
	/* libpcap accumulates the kernel's counters. */
	if (lib.pcap_stats(p->pcap, &s) == 0) {
		out->ring_drops += s.ps_drop;
	}
}

static void pcap_link_close(struct cn_link *l)
{
	struct pcap_link *p = (struct pcap_link *)l;

	if (p->pcap != NULL) {
		lib.pcap_close(p->pcap);
	}
	if (p->net != NULL) {
		lib.libnet_destroy(p->net);
	}
	free(p->memory);
	free(p->payload);
	free(p);
}

static const struct cn_link_ops pcap_link_ops = {
	.name = "pcap",
	.recv = pcap_link_recv,
	.release = pcap_link_release,
	.send = pcap_link_send,
	.counters = pcap_link_counters,
	.close = pcap_link_close,
};

static int refused_by_pcap(struct pcap_link *p, int code, struct cn_err *err)
{
	const char *name = p->link.interface;

	switch (code) {
	case PCAP_ERROR_PERM_DENIED:
		return cn_link_refused(name, "libpcap", EPERM, err);
	case PCAP_ERROR_NO_SUCH_DEVICE:
		return cn_fail(err, COLLNET_EIFACE, "interface %s disappeared", name);
	case PCAP_ERROR_IFACE_NOT_UP:
		return cn_fail(err, COLLNET_EIFACE,
			       "interface %s is down: bring it up with 'ip "
			       "link set %s up'",
			       name, name);
	default:
		return cn_fail(err, COLLNET_ESYSTEM, "interface %s: libpcap: %s", name,
			       lib.pcap_geterr(p->pcap));
	}
}

static int open_receiver(struct pcap_link *p, const struct cn_link_config *config,
			 struct cn_err *err)
{
	/* libpcap's instructions are those of the kernel. */
	struct sock_filter filter[CN_LINK_FILTER];
	struct bpf_program program = { CN_LINK_FILTER, (struct bpf_insn *)(void *)filter };
	char why[PCAP_ERRBUF_SIZE];
	int buffer, r;

	p->pcap = lib.pcap_create(p->link.interface, why);
	if (p->pcap == NULL) {
		return cn_fail(err, COLLNET_ESYSTEM, "interface %s: libpcap: %s", p->link.interface,
			       why);
	}
	/* libpcap adds some tens of bytes per frame. */
	buffer = (int)(config->ring_frames * (p->frame_max + 100));
	if ((r = lib.pcap_set_snaplen(p->pcap, (int)(p->frame_max + VLAN_TAG))) < 0 ||
	    (r = lib.pcap_set_promisc(p->pcap, 0)) < 0 ||
	    (r = lib.pcap_set_immediate_mode(p->pcap, 1)) < 0 ||
	    (r = lib.pcap_set_buffer_size(p->pcap, buffer)) < 0 ||
	    (r = lib.pcap_activate(p->pcap)) < 0) {
		return refused_by_pcap(p, r, err);
	}
	if (lib.pcap_datalink(p->pcap) != DLT_EN10MB) {
		return cn_fail(err, COLLNET_EIFACE, "interface %s is not Ethernet",
			       p->link.interface);
	}
	cn_link_filter(filter, config->ethertype, p->link.mac);
	r = lib.pcap_setfilter(p->pcap, &program);
	if (r != 0 || lib.pcap_setdirection(p->pcap, PCAP_D_IN) != 0) {
		return refused_by_pcap(p, PCAP_ERROR, err);
	}
	if (lib.pcap_setnonblock(p->pcap, 1, why) != 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "interface %s: libpcap: %s", p->link.interface,
			       why);
	}
	p->link.recv_fd = lib.pcap_get_selectable_fd(p->pcap);
	if (p->link.recv_fd < 0) {
		return cn_fail(err, COLLNET_EUNSUPPORTED,
			       "interface %s: libpcap has no "
			       "descriptor to wait for",
			       p->link.interface);
	}
	return 0;
}

/* Rejects all input of libnet's socket, which only sends, and discards what is already queued. */
static int disable_receive(int fd)
{
	struct sock_filter none = { .code = BPF_RET | BPF_K };
	struct sock_fprog program = { .len = 1, .filter = &none };
	uint8_t byte;

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0) {
		return -1;
	}
	while (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) >= 0) {
		/* bounded by the receive buffer */
	}
	return 0;
}

static int open_sender(struct pcap_link *p, const struct cn_link_config *config, struct cn_err *err)
{
	int send_buffer = cn_link_send_buffer(config->queue_frames, p->link.mtu);
	char why[LIBNET_ERRBUF_SIZE];
	int fd, flags;

	errno = 0;
	p->net = lib.libnet_init(LIBNET_LINK_ADV, p->link.interface, why);
	if (p->net == NULL) {
		if (errno == EPERM) {
			return cn_link_refused(p->link.interface, "libnet", errno, err);
		}
		return cn_fail(err, COLLNET_ESYSTEM, "interface %s: libnet: %.200s",
			       p->link.interface, why);
	}
	p->tag = LIBNET_PTAG_INITIALIZER;
	fd = lib.libnet_getfd(p->net);
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || disable_receive(fd) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(send_buffer)) < 0) {
		return cn_link_refused(p->link.interface, "libnet's socket", errno, err);
	}
	p->link.send_fd = fd;
	return 0;
}

int cn_link_open_pcap(const struct cn_link_config *config, const struct cn_interface *i,
		      struct cn_link **out, struct cn_err *err)
{
	struct pcap_link *p;
	int r = cn_link_prepare_pcap(config, err);

	if (r != COLLNET_OK) {
		return r;
	}
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for a link");
	}
	p->link.ops = &pcap_link_ops;
	p->link.mtu = i->mtu;
	p->link.recv_fd = -1;
	p->link.send_fd = -1;
	memcpy(p->link.mac, i->mac, sizeof(p->link.mac));
	memcpy(p->link.interface, i->name, sizeof(i->name));
	p->ethertype = config->ethertype;
	p->frame_max = CN_ETH_HEADER + i->mtu;
	p->memory = calloc(RECEIVE_BATCH, p->frame_max);
	p->payload = calloc(1, i->mtu);
	if (p->memory == NULL || p->payload == NULL) {
		pcap_link_close(&p->link);
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for a link");
	}
	for (size_t k = 0; k < RECEIVE_BATCH; k++) {
		p->slots[k].data = p->memory + k * p->frame_max;
	}
	r = open_receiver(p, config, err);
	if (r == 0) {
		r = open_sender(p, config, err);
	}
	if (r < 0) {
		pcap_link_close(&p->link);
		return r;
	}
	*out = &p->link;
	return 0;
}
