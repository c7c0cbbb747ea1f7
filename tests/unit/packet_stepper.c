/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet_stepper.h"

#define NONE UINT32_MAX

/* A packet, or a copy of one, in a queue. */
struct copy {
	uint32_t packet, next;
};

struct queue {
	uint32_t head, tail, length;
	bool active; /* in the list of links with something to carry */
};

struct stepper {
	const struct cn_tree *t;
	struct st_packet *p;
	struct queue *queues; /* of directed links */
	uint32_t *active, nactive;
	struct copy *copies;
	uint32_t ncopies, cap, spare;
	uint32_t *carried, ncarried, carried_cap; /* link, packet: arriving at the step's end */
	uint8_t *heard;
	uint64_t now;
	struct st_result r;
};

static void *need(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size);

	assert_non_null(p);
	return p;
}

static void put(struct stepper *s, uint32_t link, uint32_t packet)
{
	struct queue *q = &s->queues[link];
	uint32_t i = s->spare;

	if (i != NONE) {
		s->spare = s->copies[i].next;
	} else {
		if (s->ncopies == s->cap) {
			s->cap = s->cap ? 2 * s->cap : 1024;
			s->copies = realloc(s->copies, s->cap * sizeof(*s->copies));
			assert_non_null(s->copies);
		}
		i = s->ncopies++;
	}
	s->copies[i] = (struct copy){ packet, NONE };
	if (q->length++ == 0) {
		q->head = i;
	} else {
		s->copies[q->tail].next = i;
	}
	q->tail = i;
	if (!q->active) {
		q->active = true;
		s->active[s->nactive++] = link;
	}
}

/* Into the links that lead from vertex v, reached by `came` (NONE: it is the sender). */
static void forward(struct stepper *s, uint32_t v, uint32_t came, uint32_t packet)
{
	const struct st_packet *p = &s->p[packet];
	const struct cn_tree *t = s->t;
	const uint32_t *children = &t->children[t->v[v].first_child];
	bool down = came != NONE && came % 2 == 1;

	if (p->to != ST_EVERYBODY) {
		uint32_t to = t->host[p->to], low = 0, high = t->v[v].nchildren;

		if (!cn_tree_below(t, to, v)) {
			put(s, 2 * v, packet);
			return;
		}
		while (high - low > 1) { /* the last child that does not come after it */
			uint32_t middle = (low + high) / 2;

			*(children[middle] <= to ? &low : &high) = middle;
		}
		put(s, 2 * children[low] + 1, packet);
		return;
	}
	if (!down && (p->top == ST_EVERYBODY ? v != 0 : v != p->top)) {
		put(s, 2 * v, packet);
	}
	for (uint32_t i = 0; i < t->v[v].nchildren; i++) {
		if ((down || v == p->top || p->top == ST_EVERYBODY) &&
		    (down || children[i] != came / 2)) {
			put(s, 2 * children[i] + 1, packet);
		}
	}
}

/* Every active link carries what it can. */
static void carry(struct stepper *s)
{
	uint32_t kept = 0;

	s->ncarried = 0;
	for (uint32_t k = 0; k < s->nactive; k++) {
		uint32_t link = s->active[k], room = cn_tree_channels(s->t, link);
		struct queue *q = &s->queues[link];

		while (q->length > 0 && room-- > 0) {
			uint32_t i = q->head;

			if (s->ncarried + 2 > s->carried_cap) {
				s->carried_cap = 2 * s->carried_cap + 1024;
				s->carried = realloc(s->carried,
						     s->carried_cap * sizeof(*s->carried));
				assert_non_null(s->carried);
			}
			s->carried[s->ncarried++] = link;
			s->carried[s->ncarried++] = s->copies[i].packet;
			q->head = s->copies[i].next;
			q->length--;
			s->copies[i].next = s->spare;
			s->spare = i;
		}
		s->r.waits += q->length;
		s->r.queue = q->length > s->r.queue ? q->length : s->r.queue;
		q->active = q->length > 0;
		if (q->active) {
			s->active[kept++] = link;
		}
	}
	s->nactive = kept;
}

static void arrive(struct stepper *s)
{
	for (uint32_t k = 0; k < s->ncarried; k += 2) {
		uint32_t link = s->carried[k], packet = s->carried[k + 1];
		uint32_t v = link % 2 == 1 ? link / 2 : s->t->v[link / 2].parent;
		uint32_t node = s->t->v[v].node;

		if (node == CN_TOPO_NONE) {
			forward(s, v, link, packet);
			continue;
		}
		assert_true(s->p[packet].to == ST_EVERYBODY || s->p[packet].to == node);
		s->p[packet].end = s->r.steps = s->now;
		s->r.delivered++;
		if (s->heard != NULL) {
			s->heard[(size_t)node * s->t->nhosts + s->p[packet].from]++;
		}
	}
}

/* By start, otherwise in the order that they have: a counting sort, for millions of packets. */
static void sort(struct st_packet *p, uint32_t n)
{
	struct st_packet *sorted = need(n, sizeof(*sorted));
	uint64_t last = 0;
	uint32_t *at, sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		assert_true(p[i].start > 0);
		last = p[i].start > last ? p[i].start : last;
	}
	at = need(last + 1, sizeof(*at));
	for (uint32_t i = 0; i < n; i++) {
		at[p[i].start]++;
	}
	for (uint64_t start = 0; start <= last; start++) {
		uint32_t count = at[start];

		at[start] = sum;
		sum += count;
	}
	for (uint32_t i = 0; i < n; i++) {
		sorted[at[p[i].start]++] = p[i];
	}
	memcpy(p, sorted, n * sizeof(*p));
	free(sorted);
	free(at);
}

struct st_result st_run(const struct cn_tree *t, struct st_packet *p, uint32_t n, uint8_t *heard)
{
	struct stepper s = { .t = t, .p = p, .heard = heard, .spare = NONE };
	uint32_t next = 0;

	sort(p, n);
	s.queues = need(2 * (size_t)t->n, sizeof(*s.queues));
	s.active = need(2 * (size_t)t->n, sizeof(*s.active));
	while (next < n || s.nactive > 0) {
		s.now = s.nactive == 0 && p[next].start > s.now ? p[next].start : s.now + 1;
		for (; next < n && p[next].start <= s.now; next++) {
			assert_int_equal(p[next].start, s.now);
			put(&s, 2 * t->host[p[next].from], next);
		}
		carry(&s);
		arrive(&s);
	}
	free(s.queues);
	free(s.active);
	free(s.copies);
	free(s.carried);
	return s.r;
}

/* ---- trees --------------------------------------------------------------------------------- */

struct text {
	char *s;
	size_t at, cap;
};

static void say(struct text *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct text *x, const char *fmt, ...)
{
	va_list ap;
	int len;

	if (x->cap - x->at < 128) {
		x->cap = 2 * x->cap + 256;
		x->s = realloc(x->s, x->cap);
		assert_non_null(x->s);
	}
	va_start(ap, fmt);
	len = vsnprintf(x->s + x->at, x->cap - x->at, fmt, ap);
	va_end(ap);
	assert_uint_in_range(len, 1, 127);
	x->at += (size_t)len;
}

static void parse(struct text *x, struct cn_topo **topo, struct cn_tree **tree)
{
	struct cn_err err = { 0 };

	if (cn_topo_parse(x->s, x->at, "text", topo, &err) != COLLNET_OK ||
	    cn_tree_make(*topo, (*topo)->hosts, (*topo)->nhosts, CN_TOPO_NONE, tree, &err) !=
		    COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	free(x->s);
}

void st_binary(uint32_t levels, const uint32_t *channels, struct cn_topo **topo,
	       struct cn_tree **tree)
{
	struct text x = { 0 };
	uint32_t n = 1u << levels;

	/* Vertices by heap numbers: 1 is the root, 2 i and 2 i + 1 are below i, hosts from n on. */
	for (uint32_t i = 1, level = levels; i < 2 * n; i++) {
		level -= i >= 2 && (i & (i - 1)) == 0;
		if (i < n) {
			say(&x, "switch s%u\n", i);
		} else {
			say(&x, "host h%u\n", i - n);
		}
		if (i > 1) {
			say(&x, "link s%u %s%u rate none channels %u\n", i / 2, i < n ? "s" : "h",
			    i < n ? i : i - n, channels ? channels[level] : 1);
		}
	}
	parse(&x, topo, tree);
}

void st_random(uint32_t hosts, uint32_t switches, uint32_t channels, uint64_t *seed,
	       struct cn_topo **topo, struct cn_tree **tree)
{
	struct text x = { 0 };

	for (uint32_t i = 0; i < switches; i++) {
		say(&x, "switch s%u\n", i);
		if (i > 0) {
			say(&x, "link s%u s%u rate none channels %u\n", i,
			    (uint32_t)(cn_random(seed) % i),
			    1 + (uint32_t)(cn_random(seed) % channels));
		}
	}
	for (uint32_t i = 0; i < hosts; i++) {
		say(&x, "host h%u\nlink h%u s%u rate none channels %u\n", i, i,
		    (uint32_t)(cn_random(seed) % switches),
		    1 + (uint32_t)(cn_random(seed) % channels));
	}
	parse(&x, topo, tree);
}

void st_chain(uint32_t n, struct cn_topo **topo)
{
	struct text x = { 0 };
	struct cn_err err = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		say(&x, "switch s%u\nhost h%u\nlink s%u h%u rate none\n", i, i, i, i);
		if (i > 0) {
			say(&x, "link s%u s%u rate none\n", i - 1, i);
		}
	}
	if (cn_topo_parse(x.s, x.at, "chain", topo, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	free(x.s);
}
