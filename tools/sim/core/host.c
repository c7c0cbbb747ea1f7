/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts: one processor that alternately processes a received frame and sends one, and a card with
 * a receive ring and a short send queue. As in the daemon, input is processed before timers.
 */
#include <stdio.h>
#include <string.h>

#include "proto/frame.h"
#include "tools/sim/core/parts.h"

#define AT_ONCE 64 /* polls of a processor without overheads before other events run */

/* A key of its own for every host and start, which follows from the seed. */
static void new_key(uint64_t seed, uint8_t key[CN_SIPHASH_KEY])
{
	for (int i = 0; i < CN_SIPHASH_KEY; i += 8) {
		uint64_t x = cn_random(&seed);

		memcpy(key + i, &x, 8);
	}
}

int sim_host_start(struct cn_sim *s, uint32_t host, struct cn_err *err)
{
	struct host *h = &s->hosts[host];
	struct cn_engine_config c = s->config.engine;
	uint32_t number = host + 1;
	int rc;

	c.node.mtu = s->config.mtus != NULL ? s->config.mtus[host] : c.node.mtu;
	c.node.mac[0] = 0x02;
	c.node.mac[1] = c.node.mac[2] = 0;
	c.node.mac[3] = (uint8_t)(number >> 16);
	c.node.mac[4] = (uint8_t)(number >> 8);
	c.node.mac[5] = (uint8_t)number;
	c.node.epoch = (cn_mix64(s->config.seed ^ host) | 1) + 2 * (uint64_t)h->incarnations++;
	new_key(s->config.seed ^ c.node.epoch, c.node.key);
	snprintf(c.node.name, sizeof(c.node.name), "%s", s->topo->vertices[h->vertex].name);
	c.topo = s->config.topology_unaware ? NULL : s->topo;
	rc = cn_engine_new(&c, &h->engine, err);
	if (rc == COLLNET_OK) {
		h->busy = h->paused = h->due = s->now;
		h->idle = h->blocked = h->taking = false;
		sim_host_schedule(s, host, s->now);
	}
	return rc;
}

void sim_host_schedule(struct cn_sim *s, uint32_t host, cn_time at)
{
	struct host *h = &s->hosts[host];

	at = at > s->now ? at : s->now;
	at = at > h->busy ? at : h->busy;
	at = at > h->paused ? at : h->paused;
	if (at < h->poll.at) {
		cn_heap_set(&s->polls, &h->poll, at);
	}
}

void sim_host_kick(struct cn_sim *s, uint32_t host)
{
	struct host *h = &s->hosts[host];

	if (h->engine != NULL) {
		h->due = cn_engine_deadline(h->engine);
		sim_host_wake(s, host);
	}
}

void sim_host_wake(struct cn_sim *s, uint32_t host)
{
	struct host *h = &s->hosts[host];

	if (h->idle && s->config.jitter > 0 && sim_below(s, 1000000) < s->config.jitter_ppm) {
		cn_time late = s->now + sim_below(s, s->config.jitter + 1);

		h->busy = late > h->busy ? late : h->busy; /* for all that comes meanwhile, too */
	}
	h->idle = false;
	sim_host_schedule(s, host, s->now);
}

void sim_host_sent(struct cn_sim *s, uint32_t host)
{
	struct host *h = &s->hosts[host];

	if (h->blocked) {
		h->blocked = false;
		h->idle = false; /* the card wakes a busy host: no scheduling delay */
		sim_host_schedule(s, host, s->now);
	}
}

/* The host of an address of a frame; NOBODY: broadcast, or an address that nobody has. */
static uint32_t addressee(const struct cn_sim *s, const uint8_t *mac, bool *nobody)
{
	uint32_t number = (uint32_t)mac[3] << 16 | (uint32_t)mac[4] << 8 | mac[5];

	*nobody = false;
	if ((mac[0] & 1) != 0) {
		return NOBODY;
	}
	*nobody = number == 0 || number > s->topo->nhosts;
	return number - 1;
}

void sim_host_receive(struct cn_sim *s, uint32_t host, struct frame *f)
{
	struct host *h = &s->hosts[host];
	bool nobody;
	uint32_t from = addressee(s, f->data + 6, &nobody);
	bool lost = h->engine == NULL ||
		    (!nobody && from != NOBODY && sim_separated(s, from, host));

	if (lost || h->ring.n >= s->config.ring) {
		*(lost ? &s->totals.lost : &s->totals.ring_drops) += 1;
		sim_trace_frame(s, CN_SIM_DROPPED, h->out ^ 1, f, s->now);
		sim_frame_put(s, f);
	} else if (sim_queue_put(s, &h->ring, f)) {
		sim_host_wake(s, host);
	}
}

static bool give(struct cn_sim *s, struct host *h)
{
	struct cn_frame out;
	struct frame *f;
	uint32_t least;
	bool nobody;

	if (s->links[h->out].queue.n >= s->config.queue) {
		h->blocked = true;
		return false;
	}
	if (!cn_engine_output(h->engine, s->now, &out)) {
		return false;
	}
	f = sim_frame_new(s);
	if (f == NULL) {
		return false;
	}
	f->len = (uint32_t)out.head_len + out.payload_len;
	memcpy(f->data, out.head, out.head_len);
	if (out.payload_len > 0) {
		memcpy(f->data + out.head_len, out.payload, out.payload_len);
	}
	least = CN_ETH_MIN - cn_encapsulation_bytes(s->config.engine.node.encapsulation);
	if (f->len < least) {
		memset(f->data + f->len, 0, least - f->len);
		f->len = least;
	}
	sim_trace_frame(s, CN_SIM_TAKEN, h->out, f, s->now);
	f->to = addressee(s, f->data, &nobody);
	s->totals.frame_events++;
	h->busy = s->now + s->config.o_send;
	if (nobody) {
		sim_frame_put(s, f);
	} else if (s->config.o_send > 0) {
		sim_push_frame(s, h->busy, EVENT_CARD, h->out, f, 0);
	} else {
		sim_host_send(s, h->out, f);
	}
	return true;
}

/*
 * The payload is received where it is expected to belong. One time in eight, more is written than
 * this frame has, as by a super-frame whose other frames belong elsewhere.
 */
static void place(struct cn_sim *s, struct host *h, struct cn_rx_frame *rx)
{
	const uint64_t random = cn_mix64(s->totals.frame_events);
	struct cn_rx_place p;
	size_t len;

	if (!cn_engine_place(h->engine, rx, &p) || rx->len - p.header > p.room) {
		return;
	}
	len = rx->len - p.header;
	if (random % 8 == 0) {
		memset(p.at, (int)(random >> 8), p.room < 44 * len ? p.room : 44 * len);
	}
	memcpy(p.at, rx->data + p.header, len);
	rx->payload = p.at;
}

static bool take(struct cn_sim *s, struct host *h)
{
	struct frame *f = sim_queue_get(&h->ring);
	struct cn_rx_frame rx;

	if (f == NULL) {
		return false;
	}
	s->totals.frame_events++;
	sim_trace_frame(s, CN_SIM_RECEIVED, h->out ^ 1, f, s->now);
	rx = cn_rx_frame_raw(f->data, f->len);
	rx.encapsulation = s->config.engine.node.encapsulation;
	if (s->config.place) {
		place(s, h, &rx);
	}
	cn_engine_input(h->engine, s->now, &rx);
	sim_frame_put(s, f);
	return true;
}

/* Its engine was called: when it wants to be called again. */
static void set_due(struct cn_sim *s, struct host *h)
{
	h->due = cn_engine_deadline(h->engine);
	if (h->due != CN_NEVER) {
		sim_host_schedule(s, (uint32_t)(h - s->hosts),
				  h->due > s->now ? h->due : s->now + 1);
	}
}

/* One frame in and one out, if there are any. False: nothing is left to do now. */
static bool work(struct cn_sim *s, struct host *h)
{
	cn_time receiving = s->config.o_recv + s->config.u_recv;
	bool took, gave;

	if (receiving > 0 && h->ring.n > 0 && !h->taking) {
		h->taking = true;
		h->busy = s->now + receiving;
		return true;
	}
	h->taking = false;
	took = take(s, h);
	if (h->ring.n == 0 && h->due <= s->now) {
		cn_engine_expire(h->engine, s->now);
		h->due = cn_engine_deadline(h->engine);
		h->due = h->due > s->now ? h->due : s->now + 1;
		took = true;
	}
	gave = give(s, h);
	return took || gave;
}

void sim_host_poll(struct cn_sim *s, uint32_t host)
{
	struct host *h = &s->hosts[host];

	if (h->busy > s->now || h->paused > s->now) {
		sim_host_schedule(s, host, s->now);
		return;
	}
	for (int i = 0; h->engine != NULL; i++) {
		if (!work(s, h)) {
			h->idle = true;
			set_due(s, h);
			return;
		}
		if (h->busy > s->now || i == AT_ONCE) {
			h->due = cn_engine_deadline(h->engine);
			sim_host_schedule(s, host, s->now);
			return;
		}
	}
}
