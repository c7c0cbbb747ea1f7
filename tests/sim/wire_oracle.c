/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire_oracle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/serial.h"
#include "proto/wire.h"

#define RING	1024u /* the largest window there is */
#define NUMBERS 256u
#define NO_OP	0xffffu

/* The sequence of reliable frames from one port to another, of the latest session. */
struct flow {
	struct flow *next; /* between the same hosts */
	uint32_t from, to; /* hosts */
	uint16_t port_from, port_to;
	uint32_t session;
	uint32_t una, end; /* as the sender must see it */
	uint32_t prefix;   /* all before it have come */
	bool begun;
	uint64_t *content; /* [RING] hash of a frame */
	uint16_t *op;	   /* [RING] number of its operation */
	uint8_t *arrived;  /* [RING] 1: it has come; 3: and when it first did, as data */
	bool *refused;	   /* [RING] RNR came, and it was not sent again */
};

struct flight {
	uint64_t sent, received, unacked;
	uint64_t refused; /* of `sent` and `unacked` */
	bool over;
};

struct host {
	struct flight *flights; /* [NUMBERS] */
	uint32_t first, last;	/* of its operations: first .. last - 1 may be in flight */
	bool count;		/* no session changed since the team began */
};

struct wire_oracle {
	struct wire_oracle_config config;
	uint32_t n;
	struct flow **flows; /* [n * n] from * n + to */
	struct host *hosts;
	uint32_t *host_at; /* [nvertices] */
	uint32_t limits[NUMBERS];
	uint32_t cables[NUMBERS];
	bool by_acks[NUMBERS];
	uint64_t *loads;  /* [WIRE_ORACLE_OPS * n * n] bytes on the wire, first sendings */
	uint64_t *frames; /* ... frames */
};

static void report(struct wire_oracle *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void report(struct wire_oracle *o, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	o->config.report(o->config.arg, text);
}

struct wire_oracle *wire_oracle_new(const struct wire_oracle_config *c)
{
	struct wire_oracle *o = calloc(1, sizeof(*o));
	uint32_t n = c->topo->nhosts;

	if (o == NULL) {
		return NULL;
	}
	o->config = *c;
	o->n = n;
	o->flows = calloc((size_t)n * n, sizeof(struct flow *));
	o->hosts = calloc(n, sizeof(*o->hosts));
	o->host_at = calloc(c->topo->nvertices, sizeof(*o->host_at));
	for (uint32_t i = 0; i < n && o->hosts != NULL; i++) {
		o->hosts[i].flights = calloc(NUMBERS, sizeof(struct flight));
		if (o->hosts[i].flights == NULL) {
			break;
		}
	}
	o->loads = calloc((size_t)WIRE_ORACLE_OPS * n * n, sizeof(*o->loads));
	o->frames = calloc((size_t)WIRE_ORACLE_OPS * n * n, sizeof(*o->frames));
	if (o->flows == NULL || o->hosts == NULL || o->host_at == NULL || o->loads == NULL ||
	    o->frames == NULL || o->hosts[n - 1].flights == NULL) {
		wire_oracle_free(o);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		o->host_at[c->topo->hosts[i]] = i;
	}
	wire_oracle_team(o);
	return o;
}

void wire_oracle_free(struct wire_oracle *o)
{
	if (o == NULL) {
		return;
	}
	for (uint32_t i = 0; o->flows != NULL && i < o->n * o->n; i++) {
		while (o->flows[i] != NULL) {
			struct flow *f = o->flows[i];

			o->flows[i] = f->next;
			free(f->content);
			free(f->op);
			free(f->arrived);
			free(f->refused);
			free(f);
		}
	}
	for (uint32_t i = 0; o->hosts != NULL && i < o->n; i++) {
		free(o->hosts[i].flights);
	}
	free(o->flows);
	free(o->hosts);
	free(o->host_at);
	free(o->loads);
	free(o->frames);
	free(o);
}

void wire_oracle_team(struct wire_oracle *o)
{
	for (uint32_t i = 0; i < o->n; i++) {
		struct host *h = &o->hosts[i];

		memset(h->flights, 0, NUMBERS * sizeof(*h->flights));
		h->first = h->last = 0;
		h->count = true;
	}
	for (uint32_t i = 0; i < o->n * o->n; i++) {
		for (struct flow *f = o->flows[i]; f != NULL; f = f->next) {
			for (uint32_t k = 0; k < RING; k++) {
				f->op[k] = NO_OP; /* of the team before */
			}
		}
	}
	for (uint32_t i = 0; i < NUMBERS; i++) {
		o->limits[i] = COLLNET_WINDOW_OFF;
	}
	memset(o->loads, 0, (size_t)WIRE_ORACLE_OPS * o->n * o->n * sizeof(*o->loads));
	memset(o->frames, 0, (size_t)WIRE_ORACLE_OPS * o->n * o->n * sizeof(*o->frames));
}

void wire_oracle_limit(struct wire_oracle *o, uint32_t number, uint32_t limit, uint32_t cables,
		       bool by_acks)
{
	o->cables[number % NUMBERS] = cables;
	o->by_acks[number % NUMBERS] = by_acks;
	o->limits[number % NUMBERS] = limit;
}

void wire_oracle_over(struct wire_oracle *o, uint32_t host, uint32_t number)
{
	struct host *h = &o->hosts[host];

	h->flights[number % NUMBERS].over = true;
	while (h->first < h->last && h->flights[h->first].over) {
		h->first++;
	}
}

uint64_t wire_oracle_load(const struct wire_oracle *o, uint32_t number, uint32_t from, uint32_t to)
{
	return o->loads[((size_t)number * o->n + from) * o->n + to];
}

uint64_t wire_oracle_frames(const struct wire_oracle *o, uint32_t number, uint32_t from,
			    uint32_t to)
{
	return o->frames[((size_t)number * o->n + from) * o->n + to];
}

/* ---- frames in flight ----------------------------------------------------------------- */

static struct flight *flight_of(struct host *h, uint32_t number)
{
	if (number >= h->last) {
		h->last = number + 1;
	}
	return &h->flights[number];
}

static uint64_t in_flight(const struct wire_oracle *o, const struct host *h)
{
	uint64_t sum = 0;

	for (uint32_t i = h->first; i < h->last; i++) {
		const struct flight *f = &h->flights[i];
		uint64_t sent = f->sent - f->refused, unacked = f->unacked - f->refused;
		uint64_t e = sent > f->received ? sent - f->received : 0;

		if (!f->over) {
			sum += e < unacked && !o->by_acks[i] ? e : unacked;
		}
	}
	return sum;
}

static void check_window(struct wire_oracle *o, uint32_t host, uint32_t number)
{
	struct host *h = &o->hosts[host];
	const struct flight *f = flight_of(h, number);

	uint64_t limit = o->limits[number];

	if (!h->count || f->over || in_flight(o, h) <= limit) {
		return;
	}
	if (o->cables[number] > 0) {
		limit += o->config.in_cables(o->config.arg, host, o->cables[number]);
	}
	limit += o->config.in_vain(o->config.arg, host);
	if (in_flight(o, h) > limit) {
		report(o, "W_g: host %u has %llu frames in flight where operation %u may have %llu",
		       host, (unsigned long long)in_flight(o, h), number,
		       (unsigned long long)limit);
		h->count = false; /* once is enough */
	}
}

static void count_sent(struct wire_oracle *o, uint32_t host, uint32_t number)
{
	struct flight *f = flight_of(&o->hosts[host], number);

	f->sent++;
	f->unacked++;
	check_window(o, host, number);
}

/* ---- frames --------------------------------------------------------------------------- */

static uint64_t hash(const struct cn_wire *w, const uint8_t *body)
{
	uint64_t h = cn_mix64((uint64_t)w->type << 48 ^ (uint64_t)w->length << 32 ^ w->stream);
	size_t i = 0;

	h ^= w->flags & (CN_FLAG_FIRST | CN_FLAG_LAST);
	for (; i + 8 <= w->length; i += 8) {
		uint64_t v;

		memcpy(&v, body + i, 8);
		h = (h ^ v) * 0x9e3779b97f4a7c15u;
		h ^= h >> 32;
	}
	for (; i < w->length; i++) {
		h = (h ^ body[i]) * 0x9e3779b97f4a7c15u;
	}
	return cn_mix64(h) | 1;
}

/* Between two ports. NULL: there is none. */
static struct flow *flow_of(const struct wire_oracle *o, uint32_t from, uint32_t to,
			    uint16_t port_from, uint16_t port_to)
{
	struct flow *f = o->flows[from * o->n + to];

	while (f != NULL && (f->port_from != port_from || f->port_to != port_to)) {
		f = f->next;
	}
	return f;
}

/* With this session, which is its latest one. NULL: there is none. */
static struct flow *flow_with(const struct wire_oracle *o, uint32_t from, uint32_t to,
			      uint32_t session)
{
	struct flow *f = o->flows[from * o->n + to];

	while (f != NULL && f->session != session) {
		f = f->next;
	}
	return f;
}

/* In the other direction. NULL: there is none. */
static struct flow *flow_back(const struct wire_oracle *o, const struct flow *f)
{
	return flow_of(o, f->to, f->from, f->port_to, f->port_from);
}

/* NULL: no memory. */
static struct flow *flow_new(struct wire_oracle *o, uint32_t from, uint32_t to, uint16_t port_from,
			     uint16_t port_to)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (f == NULL) {
		return NULL;
	}
	f->content = calloc(RING, sizeof(*f->content));
	f->op = malloc(RING * sizeof(*f->op));
	f->arrived = calloc(RING, 1);
	f->refused = calloc(RING, sizeof(*f->refused));
	f->from = from;
	f->to = to;
	f->port_from = port_from;
	f->port_to = port_to;
	if (f->content == NULL || f->op == NULL || f->arrived == NULL || f->refused == NULL) {
		free(f->content);
		free(f->op);
		free(f->arrived);
		free(f->refused);
		free(f);
		return NULL;
	}
	f->next = o->flows[from * o->n + to];
	o->flows[from * o->n + to] = f;
	return f;
}

/* The first frame of a session, of any type, has the number that the sequence begins with. */
static void begin(struct wire_oracle *o, struct flow *f, uint32_t session, uint32_t first)
{
	memset(f->arrived, 0, RING);
	memset(f->refused, 0, RING * sizeof(*f->refused));
	memset(f->op, 0xff, RING * sizeof(*f->op));
	f->session = session;
	f->una = f->end = f->prefix = first;
	if (f->begun) {
		o->hosts[f->from].count = o->hosts[f->to].count = false;
	}
	f->begun = true;
}

static bool is_reliable(const struct cn_wire *w)
{
	return w->type != CN_TYPE_HELLO && w->type != CN_TYPE_ACK;
}

/* The frame carries an acknowledgement of the other direction: of nothing that has not come. */
static void check_ack(struct wire_oracle *o, const struct flow *f, const struct cn_wire *w)
{
	const struct flow *back = flow_back(o, f);

	if (back != NULL && cn_serial_before(back->prefix, w->ack) &&
	    cn_serial_within(back->prefix, w->ack, back->end)) {
		report(o,
		       "acknowledgement of a gap: host %u tells host %u that all before %u came, "
		       "and %u has not",
		       f->from, f->to, w->ack, back->prefix);
	}
}

static void count_load(struct wire_oracle *o, uint32_t from, uint32_t to, const struct cn_wire *w)
{
	const uint32_t number = w->stream >> 8 & 0xfff;
	const uint32_t len = CN_ETH_HEADER + cn_wire_header(w->authenticated) + w->length;

	if (number < WIRE_ORACLE_OPS) {
		size_t at = ((size_t)number * o->n + from) * o->n + to;

		o->loads[at] += (len < CN_ETH_MIN ? CN_ETH_MIN : len) + 24;
		o->frames[at]++;
	}
}

static void check_new(struct wire_oracle *o, uint32_t from, uint32_t to, struct flow *f,
		      const struct cn_wire *w, const uint8_t *body)
{
	if (w->seq != f->end) {
		report(o, "numbers: host %u sends host %u frame %u after %u", from, to, w->seq,
		       f->end - 1);
		f->end = w->seq;
	}
	f->content[w->seq % RING] = hash(w, body);
	f->arrived[w->seq % RING] = 0;
	f->op[w->seq % RING] = NO_OP;
	f->refused[w->seq % RING] = false;
	f->end = w->seq + 1;
	if (f->end - f->una > o->config.window) {
		report(o, "window: host %u has %u frames under way to host %u, %u are allowed",
		       from, f->end - f->una, to, o->config.window);
	}
	if (w->type == CN_TYPE_COLL) {
		f->op[w->seq % RING] = (uint16_t)(w->stream >> 8 & 0xfff);
		count_load(o, from, to, w);
		count_sent(o, from, w->stream >> 8 & 0xfff);
	}
}

/* A refused frame is in flight again. */
static void count_resent(struct wire_oracle *o, uint32_t host, struct flow *f, uint32_t seq)
{
	uint32_t number = f->op[seq % RING];

	if (f->refused[seq % RING] && number != NO_OP) {
		f->refused[seq % RING] = false;
		o->hosts[host].flights[number].refused--;
		check_window(o, host, number);
	}
}

/* The flow of a frame that is sent, which may be the first of its session. NULL: no memory. */
static struct flow *flow_sent(struct wire_oracle *o, uint32_t from, uint32_t to,
			      const struct cn_sim_record *record, const struct cn_wire *w)
{
	struct flow *f = flow_with(o, from, to, w->session);
	uint16_t port = 0;

	if (f != NULL && f->port_to == w->port_to) {
		return f;
	}
	if (!o->config.port_of(o->config.arg, from, record->frame, w->session, &port)) {
		report(o, "host %u sends host %u a frame of session %08x, which it has not", from,
		       to, w->session);
	}
	f = flow_of(o, from, to, port, w->port_to);
	if (f == NULL) {
		f = flow_new(o, from, to, port, w->port_to);
	}
	if (f != NULL) {
		begin(o, f, w->session, w->seq);
	}
	return f;
}

static void on_sent(struct wire_oracle *o, uint32_t from, uint32_t to,
		    const struct cn_sim_record *record, const struct cn_wire *w)
{
	const uint8_t *body = record->frame + CN_ETH_HEADER + cn_wire_header(w->authenticated);
	struct flow *f = flow_sent(o, from, to, record, w);

	if (f == NULL) {
		return;
	}
	check_ack(o, f, w);
	if (!is_reliable(w)) {
		return;
	}
	if (!cn_serial_before(w->seq, f->end)) {
		check_new(o, from, to, f, w, body);
		return;
	}
	if (cn_serial_within(f->una, w->seq, f->end)) {
		count_resent(o, from, f, w->seq);
	}
	if (f->end - w->seq <= RING && f->content[w->seq % RING] != hash(w, body)) {
		if (w->type != CN_TYPE_CONTROL || w->length != 0) {
			report(o, "host %u sends host %u frame %u again, and it is another one",
			       from, to, w->seq);
		}
		f->content[w->seq % RING] = hash(w, body); /* emptied: its operation has failed */
	}
}

static void check_received_ack(struct wire_oracle *o, uint32_t host, struct flow *mine,
			       uint32_t ack)
{
	if (mine == NULL || !cn_serial_within(mine->una, ack, mine->end)) {
		return;
	}
	for (; mine->una != ack; mine->una++) {
		uint32_t number = mine->op[mine->una % RING];

		if (number != NO_OP) {
			o->hosts[host].flights[number].unacked--;
			o->hosts[host].flights[number].refused -= mine->refused[mine->una % RING];
		}
	}
}

/* The receiver refuses all that the host has sent it. */
static void check_received_rnr(struct wire_oracle *o, uint32_t host, struct flow *mine,
			       uint32_t ack)
{
	if (mine == NULL || ack != mine->una) {
		return;
	}
	for (uint32_t seq = mine->una; seq != mine->end; seq++) {
		uint32_t number = mine->op[seq % RING];

		if (number != NO_OP && !mine->refused[seq % RING]) {
			mine->refused[seq % RING] = true;
			o->hosts[host].flights[number].refused++;
		}
	}
}

static void on_received(struct wire_oracle *o, uint32_t from, uint32_t to, const struct cn_wire *w)
{
	struct flow *f = flow_with(o, from, to, w->session), *mine;

	if (f == NULL || f->port_to != w->port_to) {
		return;
	}
	mine = flow_back(o, f);
	check_received_ack(o, to, mine, w->ack);
	if (w->type == CN_TYPE_ACK && (w->flags & CN_FLAG_RNR) != 0) {
		check_received_rnr(o, to, mine, w->ack);
	}
	if (!is_reliable(w) || !cn_serial_within(f->prefix, w->seq, f->end) || w->seq == f->end) {
		return;
	}
	if (f->arrived[w->seq % RING] == 0) {
		f->arrived[w->seq % RING] = w->type == CN_TYPE_COLL ? 3 : 1;
	}
	while (f->prefix != f->end && f->arrived[f->prefix % RING] != 0) {
		uint32_t number = f->op[f->prefix % RING];

		if (number != NO_OP && f->arrived[f->prefix % RING] == 3) {
			flight_of(&o->hosts[to], number)->received++;
		}
		f->prefix++;
	}
}

static bool host_of(const struct wire_oracle *o, const uint8_t *mac, uint32_t *host)
{
	*host = ((uint32_t)mac[3] << 16 | (uint32_t)mac[4] << 8 | mac[5]) - 1;
	return (mac[0] & 1) == 0 && *host < o->n;
}

void wire_oracle_record(void *oracle, const struct cn_sim_record *record)
{
	struct wire_oracle *o = oracle;
	uint32_t from, to;
	struct cn_wire w;

	if (record->kind == CN_SIM_DROPPED || record->kind == CN_SIM_SENT ||
	    record->len < CN_HEAD || !host_of(o, record->frame, &to) ||
	    !host_of(o, record->frame + 6, &from) ||
	    cn_wire_get(record->frame + CN_ETH_HEADER, record->len - CN_ETH_HEADER, &w) !=
		    CN_WIRE_OK ||
	    w.type == CN_TYPE_HELLO) {
		return;
	}
	if (record->kind == CN_SIM_RECEIVED) {
		on_received(o, from, to, &w);
	} else if (record->kind == CN_SIM_TAKEN) {
		on_sent(o, from, to, record, &w);
	}
}
