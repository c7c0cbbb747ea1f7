/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim_net.h"

#define BEGINNING 1000000000u
#define TAG_AT	  14

const char sim_net_one_switch[] =
	"switch s\nhost a\nhost b\nhost c\nhost d\n"
	"link a s rate 100mbit buffer 5\nlink b s rate 100mbit buffer 5\n"
	"link c s rate 100mbit buffer 5\nlink d s rate 100mbit buffer 5\n";

struct put {
	struct sim_net *net;
	uint32_t from, to, len, tag;
};

static void see(void *arg, const struct cn_sim_record *s)
{
	struct sim_net *n = arg;
	struct sim_net_record *v;

	if (n->nrecords == n->cap) {
		n->cap = n->cap == 0 ? 256 : 2 * n->cap;
		n->records = realloc(n->records, n->cap * sizeof(*n->records));
		assert_non_null(n->records);
	}
	v = &n->records[n->nrecords++];
	*v = (struct sim_net_record){ .kind = s->kind,
				      .at = s->at - BEGINNING,
				      .until = s->until - BEGINNING,
				      .link = s->link,
				      .end = s->end,
				      .len = s->len };
	memcpy(&v->tag, s->frame + TAG_AT, sizeof(v->tag));
}

void sim_net_delays(struct cn_sim_config *c)
{
	c->latency = 500;
	c->delay = 2000;
}

void sim_net_cut_through(struct cn_sim_config *c)
{
	sim_net_delays(c);
	c->cut_through = true;
}

struct sim_net *sim_net(const char *text, void (*change)(struct cn_sim_config *c))
{
	struct sim_net *n = calloc(1, sizeof(*n));
	struct cn_sim_config c;
	struct cn_err err = { 0 };

	assert_non_null(n);
	if (cn_topo_parse(text, strlen(text), "test", &n->topo, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	cn_sim_config_init(&c);
	c.topo = n->topo;
	c.rate = 100000000;
	c.latency = c.delay = 0;
	c.queue = 100000;
	if (change != NULL) {
		change(&c);
	}
	if (cn_sim_new(&c, &n->sim, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	for (uint32_t i = 0; i < cn_sim_hosts(n->sim); i++) {
		cn_sim_crash(n->sim, i);
	}
	cn_sim_trace(n->sim, see, n);
	return n;
}

void sim_net_end(struct sim_net *n)
{
	cn_sim_free(n->sim);
	cn_topo_free(n->topo);
	free(n->records);
	free(n);
}

static void put(void *arg)
{
	struct put *p = arg;
	struct cn_sim *s = p->net->sim;
	struct frame *f = sim_frame_new(s);

	assert_non_null(f);
	f->len = p->len;
	f->to = p->to;
	memset(f->data, 0, p->len);
	memcpy(f->data + TAG_AT, &p->tag, sizeof(p->tag));
	sim_host_send(s, s->hosts[p->from].out, f);
	free(p);
}

void sim_net_send(struct sim_net *n, cn_time at, uint32_t from, uint32_t to, uint32_t len,
		  uint32_t tag)
{
	struct put *p = malloc(sizeof(*p));

	assert_non_null(p);
	*p = (struct put){ n, from, to, len, tag };
	assert_int_equal(cn_sim_at(n->sim, BEGINNING + at, put, p), COLLNET_OK);
}

void sim_net_run(struct sim_net *n)
{
	cn_sim_run(n->sim, CN_NEVER);
}

void sim_net_run_until(struct sim_net *n, cn_time until)
{
	cn_sim_run(n->sim, BEGINNING + until);
}

uint32_t sim_net_link(const struct sim_net *n, const char *a, const char *b, uint32_t *end)
{
	uint32_t x = cn_topo_find(n->topo, a), y = cn_topo_find(n->topo, b);

	for (uint32_t i = 0; i < n->topo->nlinks; i++) {
		const struct cn_topo_link *l = &n->topo->links[i];

		if ((l->a == x && l->b == y) || (l->a == y && l->b == x)) {
			*end = l->a == x ? 0 : 1;
			return i;
		}
	}
	fail_msg("no link from %s to %s", a, b);
	return 0;
}

uint32_t sim_net_count(const struct sim_net *n, enum cn_sim_record_kind kind, const char *a,
		       const char *b, uint32_t tag)
{
	uint32_t end, link = sim_net_link(n, a, b, &end), count = 0;

	for (size_t i = 0; i < n->nrecords; i++) {
		const struct sim_net_record *v = &n->records[i];

		count += v->kind == kind && v->link == link && v->end == end && v->tag == tag;
	}
	return count;
}

cn_time sim_net_when(const struct sim_net *n, enum cn_sim_record_kind kind, const char *a,
		     const char *b, uint32_t tag)
{
	uint32_t end, link = sim_net_link(n, a, b, &end);

	for (size_t i = 0; i < n->nrecords; i++) {
		const struct sim_net_record *v = &n->records[i];

		if (v->kind == kind && v->link == link && v->end == end && v->tag == tag) {
			return v->at;
		}
	}
	fail_msg("frame %u is not in the trace from %s to %s", tag, a, b);
	return 0;
}

cn_time sim_net_arrival(const struct sim_net *n, const char *a, const char *b, uint32_t tag)
{
	return sim_net_when(n, CN_SIM_DROPPED, a, b, tag);
}

struct cn_sim_port sim_net_port(const struct sim_net *n, const char *a, const char *b)
{
	uint32_t end, link = sim_net_link(n, a, b, &end);
	struct cn_sim_port p;

	cn_sim_port(n->sim, link, end, &p);
	return p;
}

cn_time sim_net_wire(uint32_t len, uint64_t rate)
{
	return ((uint64_t)(len + 24) * 8000000000u + rate - 1) / rate;
}
