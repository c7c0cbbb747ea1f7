/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An in-process hub: a switch whose ports are links, with faults drawn from a seed.
 *
 * A port has a queue of `depth` slots for frames on their way to it, one more slot for a frame
 * that a fault holds back, and a cable that can be cut. A frame goes to the port that has its
 * destination address, or to all others. Everything is allocated when the hub is made. The same
 * seed and the same calls give the same faults.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/hub.h"
#include "util/pool.h"

#define MILLION 1000000u

struct slot {
	uint8_t *data;
	size_t len;
};

struct port {
	struct cn_link link;
	struct cn_hub *hub;
	uint32_t number;
	uint32_t first, count; /* of the queue */
	uint32_t borrowed;     /* of those, with the caller */
	struct slot *queue;
	struct slot held; /* len 0: none */
	bool held_long;	  /* it was there at the last look into an empty queue */
	bool cut;
	struct cn_link_counters counters;
};

struct cn_hub {
	uint32_t ports, depth, frame_max;
	struct cn_hub_faults faults;
	enum cn_encapsulation encapsulation;
	uint64_t random;
	struct cn_pool memory; /* all in one buffer */
	struct slot *slots;
	uint8_t *scratch; /* one frame, put together */
	struct port *port;
};

static bool happens(struct cn_hub *h, uint32_t per_million)
{
	return per_million > 0 && cn_random(&h->random) % MILLION < per_million;
}

static void enqueue(struct port *to, const uint8_t *data, size_t len)
{
	struct slot *s;

	if (to->count == to->hub->depth) {
		to->counters.ring_drops++;
		return;
	}
	s = &to->queue[(to->first + to->count) % to->hub->depth];
	memcpy(s->data, data, len);
	s->len = len;
	to->count++;
}

static void enqueue_held(struct port *to)
{
	if (to->held.len > 0) {
		enqueue(to, to->held.data, to->held.len);
		to->held.len = 0;
	}
}

static void flip_a_bit(struct cn_hub *h, uint8_t *data, size_t len)
{
	uint64_t at = cn_random(&h->random) % ((len - CN_ETH_HEADER) * 8);

	data[CN_ETH_HEADER + at / 8] ^= (uint8_t)(1u << (at % 8));
}

/* One frame arrives at one port, or suffers what the faults have in store for it. */
static void deliver(struct port *to, uint8_t *data, size_t len)
{
	struct cn_hub *h = to->hub;
	bool twice;
	uint8_t *copy = NULL;

	if (to->cut || happens(h, h->faults.loss)) {
		return;
	}
	twice = happens(h, h->faults.duplicate);
	if (happens(h, h->faults.corrupt)) {
		copy = h->scratch + h->frame_max;
		memcpy(copy, data, len);
		flip_a_bit(h, copy, len);
		data = copy;
	}
	if (to->held.len == 0 && happens(h, h->faults.reorder)) {
		memcpy(to->held.data, data, len);
		to->held.len = len;
		to->held_long = false;
		return;
	}
	enqueue(to, data, len);
	if (twice) {
		enqueue(to, data, len);
	}
	enqueue_held(to);
}

static void switch_frame(struct port *from, uint8_t *data, size_t len)
{
	struct cn_hub *h = from->hub;

	for (uint32_t i = 0; i < h->ports; i++) {
		if (memcmp(data, h->port[i].link.mac, 6) == 0) {
			if (i != from->number) {
				deliver(&h->port[i], data, len);
			}
			return;
		}
	}
	for (uint32_t i = 0; i < h->ports; i++) {
		if (i != from->number) {
			deliver(&h->port[i], data, len);
		}
	}
}

static int mem_send(struct cn_link *l, const struct cn_frame *frames, size_t n)
{
	struct port *from = (struct port *)l;
	uint8_t *data = from->hub->scratch;

	for (size_t i = 0; i < n; i++) {
		const struct cn_frame *f = &frames[i];
		size_t len = (size_t)f->head_len + f->payload_len;

		if (f->head_len < CN_ETH_HEADER || len > from->hub->frame_max) {
			from->counters.send_errors++;
			continue;
		}
		if (from->cut) {
			continue;
		}
		memcpy(data, f->head, f->head_len);
		if (f->payload_len > 0) {
			memcpy(data + f->head_len, f->payload, f->payload_len);
		}
		if (len < CN_ETH_MIN) {
			memset(data + len, 0, CN_ETH_MIN - len);
			len = CN_ETH_MIN;
		}
		switch_frame(from, data, len);
	}
	return (int)n;
}

static size_t mem_recv(struct cn_link *l, struct cn_rx_frame *out, size_t max)
{
	struct port *p = (struct port *)l;
	size_t n = 0;

	/* A held frame that nothing overtakes comes at the second look into an empty queue. */
	if (p->count == p->borrowed && p->held.len > 0) {
		if (p->held_long) {
			enqueue_held(p);
		}
		p->held_long = true;
	}
	for (; n < max && p->borrowed < p->count; n++) {
		const struct slot *s = &p->queue[(p->first + p->borrowed) % p->hub->depth];

		out[n] = cn_rx_frame_raw(s->data, s->len);
		out[n].encapsulation = p->hub->encapsulation;
		p->borrowed++;
	}
	return n;
}

static void mem_release(struct cn_link *l)
{
	struct port *p = (struct port *)l;

	p->first = (p->first + p->borrowed) % p->hub->depth;
	p->count -= p->borrowed;
	p->borrowed = 0;
}

static void mem_counters(struct cn_link *l, struct cn_link_counters *out)
{
	*out = ((struct port *)l)->counters;
}

/* The hub owns its ports. */
static void mem_close(struct cn_link *l)
{
	(void)l;
}

static const struct cn_link_ops mem_ops = {
	.name = "mem",
	.recv = mem_recv,
	.release = mem_release,
	.send = mem_send,
	.counters = mem_counters,
	.close = mem_close,
};

static void init_port(struct cn_hub *h, uint32_t number, uint32_t mtu)
{
	struct port *p = &h->port[number];
	uint8_t *memory = h->memory.memory + (size_t)number * (h->depth + 1) * h->frame_max;

	p->hub = h;
	p->number = number;
	p->queue = h->slots + (size_t)number * h->depth;
	for (uint32_t i = 0; i < h->depth; i++) {
		p->queue[i].data = memory + (size_t)i * h->frame_max;
	}
	p->held.data = memory + (size_t)h->depth * h->frame_max;
	p->link.ops = &mem_ops;
	p->link.mtu = mtu;
	p->link.recv_fd = -1;
	p->link.send_fd = -1;
	p->link.mac[0] = 2;
	p->link.mac[4] = (uint8_t)((number + 1) >> 8);
	p->link.mac[5] = (uint8_t)(number + 1);
	snprintf(p->link.interface, sizeof(p->link.interface), "mem%u", number);
}

struct cn_hub *cn_hub_new(uint32_t ports, uint32_t mtu, uint32_t depth)
{
	struct cn_hub *h;
	int rc;

	if (ports == 0 || ports > 65535 || mtu < 46 || mtu > 65535 || depth == 0 ||
	    depth > 1u << 20) {
		return NULL;
	}
	h = calloc(1, sizeof(*h));
	if (h == NULL) {
		return NULL;
	}
	h->ports = ports;
	h->depth = depth;
	h->frame_max = CN_ETH_HEADER + mtu;
	h->port = calloc(ports, sizeof(*h->port));
	h->slots = calloc((size_t)ports * depth, sizeof(*h->slots));
	rc = cn_pool_init(&h->memory, (size_t)ports * (depth + 1) * h->frame_max, 1);
	h->scratch = calloc(2, h->frame_max);
	if (h->port == NULL || h->slots == NULL || rc != COLLNET_OK || h->scratch == NULL) {
		cn_hub_free(h);
		return NULL;
	}
	for (uint32_t i = 0; i < ports; i++) {
		init_port(h, i, mtu);
	}
	return h;
}

void cn_hub_free(struct cn_hub *h)
{
	if (h != NULL) {
		free(h->port);
		free(h->slots);
		cn_pool_fini(&h->memory);
		free(h->scratch);
		free(h);
	}
}

struct cn_link *cn_hub_port(struct cn_hub *h, uint32_t port)
{
	return port < h->ports ? &h->port[port].link : NULL;
}

void cn_hub_set_faults(struct cn_hub *h, const struct cn_hub_faults *f)
{
	h->faults = *f;
	h->random = f->seed;
}

void cn_hub_set_encapsulation(struct cn_hub *h, enum cn_encapsulation e)
{
	h->encapsulation = e;
}

void cn_hub_cut(struct cn_hub *h, uint32_t port, bool cut)
{
	if (port < h->ports) {
		h->port[port].cut = cut;
	}
}
