/* SPDX-License-Identifier: BSD-2-Clause */
#include "attackers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/node_impl.h"

#define TAPE	 512u
#define RECENT	 64u
#define LONGEST	 2048u /* of a frame that is kept */
#define INVENTED 4000u
static const cn_time distance = 100 * CN_US; /* of the frames of one attacker */
static const cn_time lasts = 2000 * CN_MS;

struct attackers {
	struct fixture *fixture;
	uint32_t kinds;
	uint64_t random, sent;
	cn_time until;
	struct {
		uint8_t data[CN_FRAME_HEAD];
		size_t len;
		uint32_t to;
	} tape[TAPE];
	uint32_t taped;
	struct {
		uint8_t data[LONGEST];
		size_t len;
		uint32_t to;
		bool arrived;
	} recent[RECENT];
	uint32_t nrecent; /* that were ever kept */
};

static const struct cn_node_config *config_of(struct attackers *a, uint32_t host)
{
	struct cn_engine *e = cn_sim_engine(a->fixture->sim, host);

	return e != NULL ? cn_node_config(cn_engine_node(e)) : NULL;
}

static void inject(struct attackers *a, uint32_t to, const uint8_t *frame, size_t len)
{
	struct cn_engine *e = cn_sim_engine(a->fixture->sim, to);

	if (e != NULL) {
		const struct cn_rx_frame f = cn_rx_frame_raw(frame, len);

		cn_engine_input(e, cn_sim_now(a->fixture->sim), &f);
		cn_sim_kick(a->fixture->sim, to);
		a->sent++;
	}
}

/* A frame from an address to a host, with any header and the body of a hello or of nothing. */
static void send_frame(struct attackers *a, uint32_t to, const uint8_t mac[6], struct cn_wire *w,
		       const struct cn_hello *h)
{
	const struct cn_node_config *c = config_of(a, to);
	uint8_t frame[CN_FRAME_HEAD] = { 0 }, *body;

	if (c == NULL) {
		return;
	}
	memset(frame, 0xff, 6);
	if (w->type != CN_TYPE_HELLO || (w->flags & CN_FLAG_UNICAST) != 0) {
		memcpy(frame, c->mac, 6);
	}
	memcpy(frame + 6, mac, 6);
	frame[12] = (uint8_t)(c->ethertype >> 8);
	frame[13] = (uint8_t)c->ethertype;
	w->authenticated = c->authenticated; /* with a tag of zeros */
	body = frame + CN_ETH_HEADER + cn_wire_header(w->authenticated);
	w->length = h != NULL ? (uint16_t)cn_hello_put(body, h) : 0;
	cn_wire_put(frame + CN_ETH_HEADER, w);
	inject(a, to, frame, (size_t)(body - frame) + w->length);
}

static uint32_t draw(struct attackers *a, uint32_t n)
{
	return (uint32_t)(cn_random(&a->random) % n);
}

static void forge(struct attackers *a)
{
	uint32_t to = draw(a, a->fixture->s->hosts), as = draw(a, a->fixture->s->hosts);
	const struct cn_node_config *c = config_of(a, as);
	static const uint8_t flags[] = {
		0,
		CN_FLAG_SOLICIT,
		CN_FLAG_UNICAST,
		CN_FLAG_UNICAST | CN_FLAG_SOLICIT,
		CN_FLAG_UNICAST | CN_FLAG_ACKREQ,
		CN_FLAG_BYE,
		CN_FLAG_BYE | CN_FLAG_UNICAST,
	};
	struct cn_wire w = {
		.type = (uint8_t)(1 + draw(a, 5)),
		.session = (uint32_t)cn_random(&a->random),
		.seq = (uint32_t)cn_random(&a->random),
		.ack = (uint32_t)cn_random(&a->random),
		.stream = (uint32_t)cn_random(&a->random),
	};
	struct cn_hello h = { .nonce = (uint32_t)cn_random(&a->random) };

	if (w.type != CN_TYPE_HELLO && draw(a, 2) == 0) { /* the first port of a team */
		w.port_to = 1u << 12 | 1;
	}
	if (c == NULL || to == as) {
		return;
	}
	h.epoch = c->epoch + draw(a, 2);
	h.mtu = c->mtu;
	h.cluster = c->cluster;
	memcpy(h.name, c->name, sizeof(h.name));
	if (draw(a, 4) == 0) {
		h.name[0] ^= 1; /* of another, or nobody */
	}
	if (w.type == CN_TYPE_HELLO) {
		w.flags = flags[draw(a, sizeof(flags))];
		send_frame(a, to, c->mac, &w, &h);
	} else {
		w.flags = (uint8_t)(cn_random(&a->random) & 0x3f);
		send_frame(a, to, c->mac, &w, NULL);
	}
}

static void replay(struct attackers *a)
{
	if (a->taped > 0) {
		uint32_t i = draw(a, a->taped);

		inject(a, a->tape[i].to, a->tape[i].data, a->tape[i].len);
	}
}

/* What a field of the header is to be, near to what it is. */
static void change_field(struct attackers *a, uint8_t *header)
{
	struct cn_wire w;
	uint32_t *const fields[] = { &w.seq, &w.ack, &w.stream };

	if (cn_wire_get(header, LONGEST - CN_ETH_HEADER, &w) != CN_WIRE_OK) {
		return;
	}
	switch (draw(a, 4)) {
	case 0:
		w.type = (uint8_t)(1 + draw(a, 5));
		break;
	case 1:
		w.flags ^= (uint8_t)(1u << draw(a, 8));
		break;
	case 2:
		w.length = (uint16_t)(w.length - draw(a, 4));
		break;
	default:
		*fields[draw(a, 3)] += draw(a, 9) - 4;
	}
	cn_wire_put(header, &w);
}

/* A frame that has arrived comes again, or another one before one that is on its way. (If that one
 * came itself, that would do no harm, but the oracle would not know of it.) */
static void intercept(struct attackers *a)
{
	const uint32_t kept = a->nrecent < RECENT ? a->nrecent : RECENT;
	const uint32_t i = kept != 0 ? draw(a, kept) : 0;
	uint8_t frame[LONGEST];
	size_t len = a->recent[i].len;

	if (kept == 0) {
		return;
	}
	memcpy(frame, a->recent[i].data, sizeof(frame));
	switch (a->recent[i].arrived ? 3 : draw(a, 3)) {
	case 0:
		frame[CN_ETH_HEADER + draw(a, (uint32_t)len - CN_ETH_HEADER)] ^=
			(uint8_t)(1u << draw(a, 8));
		break;
	case 1:
		len = CN_ETH_HEADER + draw(a, (uint32_t)len - CN_ETH_HEADER);
		break;
	case 2:
		change_field(a, frame + CN_ETH_HEADER);
		break;
	default:
		break;
	}
	if (a->recent[i].arrived || len != a->recent[i].len ||
	    memcmp(frame, a->recent[i].data, len) != 0) {
		inject(a, a->recent[i].to, frame, len);
	}
}

/* From one of this many addresses. */
static void invent(struct attackers *a, uint32_t addresses)
{
	uint32_t number = draw(a, addresses), to = draw(a, a->fixture->s->hosts);
	const uint8_t mac[6] = { 0x0a,
				 1,
				 (uint8_t)(number >> 24),
				 (uint8_t)(number >> 16),
				 (uint8_t)(number >> 8),
				 (uint8_t)number };
	const struct cn_node_config *c = config_of(a, to);
	struct cn_wire w = { .type = CN_TYPE_HELLO, .stream = 1, .ack = number };
	struct cn_hello h = { .epoch = number + 1, .nonce = 1 };

	if (c == NULL) {
		return;
	}
	h.mtu = c->mtu;
	h.cluster = c->cluster;
	snprintf(h.name, sizeof(h.name), "x%u", number);
	w.flags = draw(a, 2) == 0 ? CN_FLAG_SOLICIT : CN_FLAG_UNICAST | CN_FLAG_SOLICIT;
	if (draw(a, 4) == 0) {
		w.type = CN_TYPE_CONTROL;
		send_frame(a, to, mac, &w, NULL);
	} else {
		send_frame(a, to, mac, &w, &h);
	}
}

static void act(void *arg)
{
	struct attackers *a = arg;

	if ((a->kinds & ATTACKER_FORGER) != 0) {
		forge(a);
	}
	if ((a->kinds & ATTACKER_REPLAYER) != 0) {
		replay(a);
	}
	if ((a->kinds & ATTACKER_FLOODER) != 0) {
		for (int i = 0; i < 4; i++) {
			invent(a, UINT32_MAX);
		}
	}
	if ((a->kinds & ATTACKER_INVENTOR) != 0) {
		invent(a, INVENTED);
	}
	for (int i = 0; i < 4 && (a->kinds & ATTACKER_ON_PATH) != 0; i++) {
		intercept(a);
	}
	if (cn_sim_now(a->fixture->sim) < a->until) {
		cn_sim_at(a->fixture->sim, cn_sim_now(a->fixture->sim) + distance, act, a);
	}
}

/* The host that a frame is for; of a broadcast any. */
static uint32_t receiver(struct attackers *a, const uint8_t *frame)
{
	const uint32_t number = (uint32_t)frame[3] << 16 | (uint32_t)frame[4] << 8 | frame[5];

	return (frame[0] & 1) != 0 ? draw(a, a->fixture->s->hosts) : number - 1;
}

/* As it leaves its host, or as it arrives. */
static void tap(struct attackers *a, const struct cn_sim_record *record)
{
	const uint32_t i = a->nrecent % RECENT;

	if ((a->kinds & ATTACKER_ON_PATH) != 0 && record->len <= LONGEST &&
	    (record->kind == CN_SIM_TAKEN || record->kind == CN_SIM_RECEIVED)) {
		a->recent[i].to = receiver(a, record->frame);
		memcpy(a->recent[i].data, record->frame, record->len);
		a->recent[i].len = record->len;
		a->recent[i].arrived = record->kind == CN_SIM_RECEIVED;
		a->nrecent++;
	}
}

static void see(void *arg, const struct cn_sim_record *record)
{
	struct attackers *a = arg;

	wire_oracle_record(a->fixture->wire, record);
	tap(a, record);
	if (record->kind != CN_SIM_RECEIVED || record->len > CN_FRAME_HEAD ||
	    (record->frame[CN_ETH_HEADER + 2] & 7) != CN_TYPE_HELLO) {
		return;
	}
	a->tape[a->taped % TAPE].to = receiver(a, record->frame);
	memcpy(a->tape[a->taped % TAPE].data, record->frame, record->len);
	a->tape[a->taped % TAPE].len = record->len;
	a->taped += a->taped < TAPE - 1;
}

struct attackers *attackers_new(struct fixture *fx, uint32_t kinds)
{
	struct attackers *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		return NULL;
	}
	a->fixture = fx;
	a->kinds = kinds;
	a->random = cn_mix64(fx->s->seed ^ 0x61747461636b);
	a->until = cn_sim_now(fx->sim) + lasts;
	cn_sim_trace(fx->sim, see, a);
	cn_sim_at(fx->sim, cn_sim_now(fx->sim), act, a);
	return a;
}

void attackers_free(struct attackers *a)
{
	free(a);
}

void attackers_check(struct attackers *a)
{
	for (uint32_t host = 0; host < a->fixture->s->hosts; host++) {
		const struct cn_node *n = cn_engine_node(cn_sim_engine(a->fixture->sim, host));

		if (n->npeers >= a->fixture->s->hosts) {
			fixture_report(a->fixture,
				       "host %u knows %u nodes, and there are %u others", host,
				       n->npeers, a->fixture->s->hosts - 1);
		}
		for (uint32_t i = 0; i < n->npeers; i++) {
			if ((uint32_t)n->peers[i]->generation != 0) {
				fixture_report(a->fixture,
					       "host %u had %s down: a forged frame was accepted",
					       host, n->peers[i]->name);
			}
		}
	}
	if (a->sent == 0) {
		fixture_report(a->fixture, "the attackers sent nothing");
	}
}
