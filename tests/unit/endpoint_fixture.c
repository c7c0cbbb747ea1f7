/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint_fixture.h"

const char *const endpoint_node_names[NODES_MAX] = { "a", "b", "c" };

void endpoint_start_node(struct endpoint_fixture *w, uint32_t i, uint64_t epoch,
			 void (*change)(struct cn_engine_config *))
{
	struct cn_engine_config c;
	struct cn_err err = { 0 };

	cn_engine_config_init(&c);
	memcpy(c.node.mac, cn_hub_port(w->hub, i)->mac, 6);
	c.node.epoch = epoch;
	c.node.mtu = MTU;
	c.window = COLLNET_WINDOW_OFF;
	snprintf(c.node.name, sizeof(c.node.name), "%s", endpoint_node_names[i]);
	if (change != NULL) {
		change(&c);
	}
	if (cn_engine_new(&c, &w->engine[i], &err) != COLLNET_OK ||
	    cn_poller_new(cn_hub_port(w->hub, i), w->engine[i], &w->poller[i], &err) != 0) {
		fail_msg("%s", err.text);
	}
}

void endpoint_stop_node(struct endpoint_fixture *w, uint32_t i)
{
	cn_poller_free(w->poller[i]);
	cn_engine_free(w->engine[i]);
	w->poller[i] = NULL;
	w->engine[i] = NULL;
}

void endpoint_step(struct endpoint_fixture *w)
{
	cn_time next = CN_NEVER;
	int work = 0;

	w->now = w->next > w->now + 5 * CN_US ? w->next : w->now + 5 * CN_US;
	w->next = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		if (w->poller[i] != NULL) {
			int n = cn_poller_poll(w->poller[i], w->now);

			assert_true(n >= 0);
			work += n;
			next = cn_min_time(next, cn_poller_deadline(w->poller[i]));
		}
	}
	if (work == 0 && next != CN_NEVER) {
		w->next = next;
	}
}

void endpoint_run(struct endpoint_fixture *w, cn_time duration)
{
	cn_time end = w->now + duration;

	while (w->now < end) {
		endpoint_step(w);
	}
}

static bool all_know(struct endpoint_fixture *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		for (uint32_t j = 0; j < w->n; j++) {
			if (i != j && w->engine[i] != NULL && w->engine[j] != NULL &&
			    cn_node_find(cn_engine_node(w->engine[i]), endpoint_node_names[j]) ==
				    NULL) {
				return false;
			}
		}
	}
	return true;
}

void endpoint_meet(struct endpoint_fixture *w)
{
	cn_time end = w->now + 10 * SECOND;

	while (!all_know(w)) {
		endpoint_step(w);
		assert_true(w->now < end);
	}
}

struct endpoint_fixture *endpoint_fixture(uint32_t n, void (*change)(struct cn_engine_config *))
{
	struct endpoint_fixture *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->n = n;
	w->now = SECOND;
	w->hub = cn_hub_new(n, MTU, 4096);
	assert_non_null(w->hub);
	for (uint32_t i = 0; i < n; i++) {
		endpoint_start_node(w, i, 100 + i, change);
	}
	endpoint_meet(w);
	return w;
}

void endpoint_fixture_free(struct endpoint_fixture *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		endpoint_stop_node(w, i);
	}
	cn_hub_free(w->hub);
	free(w);
}

struct collnet_stats endpoint_stats(struct endpoint_fixture *w, uint32_t i)
{
	struct collnet_stats s = { .size = sizeof(s) };

	cn_engine_stats(w->engine[i], &s, false);
	return s;
}

void endpoint_assert_clean(struct endpoint_fixture *w)
{
	endpoint_run(w, 3 * SECOND);
	for (uint32_t i = 0; i < w->n; i++) {
		struct cn_endpoints *s = w->engine[i]->endpoints;
		struct cn_node *node = cn_engine_node(w->engine[i]);
		void *b[4096];
		uint32_t n = 0, flows = 0, all = w->engine[i]->config.node.pool_frames;

		while (n < 4096 && (b[n] = cn_node_buffer_get(node)) != NULL) {
			n++;
		}
		assert_int_equal(n, all);
		while (n > 0) {
			cn_node_buffer_put(node, b[--n]);
		}
		assert_int_equal(cn_node_window(node)->in_flight, 0);
		assert_null(s->retry);
		assert_null(s->copying);
		assert_int_equal(s->pool.free, s->pool.count);
		for (struct cn_endpoint *ep = s->list; ep != NULL; ep = ep->next) {
			assert_null(ep->current);
			for (struct cn_flow *f = ep->flows; f != NULL; f = f->next) {
				assert_int_equal(f->sends, 0);
				assert_int_equal(f->pooled, 0);
				assert_false(f->coming);
				assert_false(f->awaiting);
				flows++;
			}
		}
		assert_int_equal(s->nflows, flows);
	}
}

static void on_done(struct cn_done *done, int status, const char *text)
{
	struct endpoint_request *r = (struct endpoint_request *)done;

	r->status = status;
	r->ended++;
	snprintf(r->text, sizeof(r->text), "%s", text);
}

static uint8_t byte_at(uint32_t key, uint64_t i)
{
	return (uint8_t)(cn_mix64((uint64_t)key << 32 | i >> 3) >> 8 * (i & 7));
}

void endpoint_fill(uint8_t *data, uint64_t bytes, uint32_t key)
{
	for (uint64_t i = 0; i < bytes; i++) {
		data[i] = byte_at(key, i);
	}
}

void endpoint_assert_filled(const uint8_t *data, uint64_t bytes, uint32_t key)
{
	for (uint64_t i = 0; i < bytes; i++) {
		if (data[i] != byte_at(key, i)) {
			fail_msg("byte %llu of message %u is wrong", (unsigned long long)i, key);
		}
	}
}

struct endpoint_request *endpoint_request(uint64_t bytes)
{
	struct endpoint_request *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->done.fn = on_done;
	r->status = COLLNET_INPROGRESS;
	r->bytes = bytes;
	r->data = malloc(bytes + 1); /* exactly as long as asked for but one, so that ASan sees */
	assert_non_null(r->data);
	return r;
}

void endpoint_drop(struct endpoint_request *r)
{
	assert_int_equal(r->ended, 1);
	free(r->data);
	free(r);
}

struct cn_endpoint *endpoint_open_at(struct endpoint_fixture *w, uint32_t node, uint16_t number)
{
	struct cn_endpoint *ep = NULL;
	struct cn_err err = { 0 };

	if (cn_endpoint_open(w->engine[node], OWNER, OWNER, number, &ep, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	return ep;
}

struct endpoint_request *endpoint_send_to(struct endpoint_fixture *w, struct cn_endpoint *ep,
					  const char *node, uint16_t to, uint64_t bytes,
					  uint32_t key, cn_time timeout)
{
	struct endpoint_request *r = endpoint_request(bytes);
	struct cn_err err = { 0 };

	w->next = 0;
	endpoint_fill(r->data, bytes, key);
	if (cn_endpoint_send(ep, w->now, node, to, r->data, bytes, w->now + timeout, &r->done,
			     &err)) {
		fail_msg("%s", err.text);
	}
	return r;
}

struct endpoint_request *endpoint_recv_at(struct endpoint_fixture *w, struct cn_endpoint *ep,
					  uint64_t capacity, cn_time timeout)
{
	struct endpoint_request *r = endpoint_request(capacity);
	struct cn_err err = { 0 };

	w->next = 0;
	if (cn_endpoint_recv(ep, w->now, r->data, capacity, w->now + timeout, &r->got, &r->done,
			     &err)) {
		fail_msg("%s", err.text);
	}
	return r;
}

int endpoint_wait_for(struct endpoint_fixture *w, struct endpoint_request *r, cn_time limit)
{
	cn_time stop_at = w->now + limit;

	while (r->ended == 0 && w->now < stop_at) {
		endpoint_step(w);
	}
	return r->status;
}

void endpoint_assert_ok(struct endpoint_fixture *w, struct endpoint_request *r)
{
	if (endpoint_wait_for(w, r, 60 * SECOND) != COLLNET_OK) {
		fail_msg("status %d: %s", r->status, r->text);
	}
}

void endpoint_assert_got(struct endpoint_request *r, const char *node, uint16_t from,
			 uint64_t bytes, uint32_t key)
{
	assert_int_equal(r->status, COLLNET_OK);
	assert_string_equal(r->got.from.node, node);
	assert_int_equal(r->got.from.endpoint, from);
	assert_int_equal(r->got.bytes, bytes);
	endpoint_assert_filled(r->data, bytes, key);
}

void endpoint_assert_status(struct endpoint_fixture *w, struct endpoint_request *r, int status,
			    const char *message)
{
	assert_int_equal(endpoint_wait_for(w, r, 60 * SECOND), status);
	if (strstr(r->text, message) == NULL) {
		fail_msg("\"%s\" does not contain \"%s\"", r->text, message);
	}
}

void endpoint_one_message(struct endpoint_fixture *w, struct cn_endpoint *from,
			  struct cn_endpoint *to, uint64_t bytes, bool early)
{
	struct endpoint_request *in = NULL, *out;

	if (!early) {
		in = endpoint_recv_at(w, to, bytes, 10 * SECOND);
	}
	out = endpoint_send_to(w, from, "b", 7, bytes, (uint32_t)bytes, 10 * SECOND);
	if (early) {
		endpoint_run(w, 2 * CN_MS);
		in = endpoint_recv_at(w, to, bytes, 10 * SECOND);
	}
	endpoint_assert_ok(w, in);
	endpoint_assert_ok(w, out);
	endpoint_assert_got(in, "a", 5, bytes, (uint32_t)bytes);
	endpoint_drop(in);
	endpoint_drop(out);
}

void endpoint_skip_to(struct endpoint_fixture *w, struct cn_endpoint *from, struct cn_endpoint *to,
		      uint32_t next)
{
	const uint32_t few = UINT32_MAX / 16;
	struct cn_ep_numbers *n = &from->flows->numbers;

	while (next - n->next > few) {
		n->next += few;
		endpoint_one_message(w, from, to, 100, false);
	}
	n->next = next;
}

void endpoint_small_pool(struct cn_engine_config *c)
{
	c->node.pool_frames = 16;
}

uint32_t endpoint_unread(const struct endpoint_fixture *w, uint32_t node)
{
	const struct cn_pool *pool = &w->engine[node]->endpoints->pool;

	return pool->count - pool->free;
}

void endpoint_poll_only(struct endpoint_fixture *w, uint32_t node, uint32_t times)
{
	for (uint32_t n = 0; n < times; n++) {
		w->now += 5 * CN_US;
		cn_poller_poll(w->poller[node], w->now);
	}
}
