/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/endpoint*.c: messages between endpoints of two or three engines, over the hub in memory
 * and under a virtual clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/endpoint.h"
#include "node/poller.h"
#include "tests/unit/hub.h"

#define MTU	  1500u
#define PAYLOAD	  (MTU - CN_WIRE_HEADER)
#define OWNER	  1000u
#define NODES_MAX 3
#define SECOND	  (1000 * CN_MS)
#define SEED	  20240917u

/* ---- a fixture of nodes ------------------------------------------------------------------- */

struct fixture {
	struct cn_hub *hub;
	uint32_t n;
	cn_time now, next; /* nothing happens before `next` */
	struct cn_engine *engine[NODES_MAX];
	struct cn_poller *poller[NODES_MAX];
};

static const char *const names[NODES_MAX] = { "a", "b", "c" };

static void start(struct fixture *w, uint32_t i, uint64_t epoch,
		  void (*change)(struct cn_engine_config *))
{
	struct cn_engine_config c;
	struct cn_err err = { 0 };

	cn_engine_config_init(&c);
	memcpy(c.node.mac, cn_hub_port(w->hub, i)->mac, 6);
	c.node.epoch = epoch;
	c.node.mtu = MTU;
	c.window = COLLNET_WINDOW_OFF;
	snprintf(c.node.name, sizeof(c.node.name), "%s", names[i]);
	if (change != NULL) {
		change(&c);
	}
	if (cn_engine_new(&c, &w->engine[i], &err) != COLLNET_OK ||
	    cn_poller_new(cn_hub_port(w->hub, i), w->engine[i], &w->poller[i], &err) != 0) {
		fail_msg("%s", err.text);
	}
}

static void stop(struct fixture *w, uint32_t i)
{
	cn_poller_free(w->poller[i]);
	cn_engine_free(w->engine[i]);
	w->poller[i] = NULL;
	w->engine[i] = NULL;
}

/* One turn of everybody; where nothing happens, time goes on to the next deadline. */
static void step(struct fixture *w)
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

static void run(struct fixture *w, cn_time duration)
{
	cn_time end = w->now + duration;

	while (w->now < end) {
		step(w);
	}
}

static bool all_know(struct fixture *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		for (uint32_t j = 0; j < w->n; j++) {
			if (i != j && w->engine[i] != NULL && w->engine[j] != NULL &&
			    cn_node_find(cn_engine_node(w->engine[i]), names[j]) == NULL) {
				return false;
			}
		}
	}
	return true;
}

static void meet(struct fixture *w)
{
	cn_time end = w->now + 10 * SECOND;

	while (!all_know(w)) {
		step(w);
		assert_true(w->now < end);
	}
}

static struct fixture *fixture(uint32_t n, void (*change)(struct cn_engine_config *))
{
	struct fixture *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->n = n;
	w->now = SECOND;
	w->hub = cn_hub_new(n, MTU, 4096);
	assert_non_null(w->hub);
	for (uint32_t i = 0; i < n; i++) {
		start(w, i, 100 + i, change);
	}
	meet(w);
	return w;
}

static void end(struct fixture *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		stop(w, i);
	}
	cn_hub_free(w->hub);
	free(w);
}

static struct collnet_stats stats(struct fixture *w, uint32_t i)
{
	struct collnet_stats s = { .size = sizeof(s) };

	cn_engine_stats(w->engine[i], &s, false);
	return s;
}

/* No request is left, and every buffer of the pools is back. */
static void assert_clean(struct fixture *w)
{
	run(w, 3 * SECOND);
	for (uint32_t i = 0; i < w->n; i++) {
		struct cn_endpoints *s = w->engine[i]->endpoints;
		struct cn_node *node = cn_engine_node(w->engine[i]);
		void *b[4096];
		uint32_t n = 0, all = w->engine[i]->config.node.pool_frames;

		while (n < 4096 && (b[n] = cn_node_buffer_get(node)) != NULL) {
			n++;
		}
		assert_int_equal(n, all);
		while (n > 0) {
			cn_node_buffer_put(node, b[--n]);
		}
		assert_int_equal(cn_node_window(node)->in_flight, 0);
		assert_null(s->retry);
		assert_int_equal(s->pool.free, s->pool.count);
		for (struct cn_endpoint *ep = s->list; ep != NULL; ep = ep->next) {
			assert_null(ep->current);
			for (struct cn_flow *f = ep->flows; f != NULL; f = f->next) {
				assert_int_equal(f->sends, 0);
				assert_int_equal(f->pooled, 0);
				assert_false(f->coming);
				assert_false(f->expecting);
				assert_false(f->awaiting);
			}
		}
	}
}

/* ---- messages ------------------------------------------------------------------------- */

struct request {
	struct cn_done done;
	struct cn_received got;
	uint8_t *data;
	uint64_t bytes;
	int status;
	uint32_t ended; /* times that it was told */
	char text[CN_ERR_TEXT];
};

static void on_done(struct cn_done *done, int status, const char *text)
{
	struct request *r = (struct request *)done;

	r->status = status;
	r->ended++;
	snprintf(r->text, sizeof(r->text), "%s", text);
}

static uint8_t byte_at(uint32_t key, uint64_t i)
{
	return (uint8_t)(cn_mix64((uint64_t)key << 32 | i >> 3) >> 8 * (i & 7));
}

static void fill(uint8_t *data, uint64_t bytes, uint32_t key)
{
	for (uint64_t i = 0; i < bytes; i++) {
		data[i] = byte_at(key, i);
	}
}

static void assert_filled(const uint8_t *data, uint64_t bytes, uint32_t key)
{
	for (uint64_t i = 0; i < bytes; i++) {
		if (data[i] != byte_at(key, i)) {
			fail_msg("byte %llu of message %u is wrong", (unsigned long long)i, key);
		}
	}
}

static struct request *request(uint64_t bytes)
{
	struct request *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->done.fn = on_done;
	r->status = COLLNET_INPROGRESS;
	r->bytes = bytes;
	r->data = malloc(bytes + 1); /* exactly as long as asked for but one, so that ASan sees */
	assert_non_null(r->data);
	return r;
}

static void drop(struct request *r)
{
	assert_int_equal(r->ended, 1);
	free(r->data);
	free(r);
}

static struct cn_endpoint *open_at(struct fixture *w, uint32_t node, uint16_t number)
{
	struct cn_endpoint *ep = NULL;
	struct cn_err err = { 0 };

	if (cn_endpoint_open(w->engine[node], OWNER, number, &ep, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	return ep;
}

static struct request *send_to(struct fixture *w, struct cn_endpoint *ep, const char *node,
			       uint16_t to, uint64_t bytes, uint32_t key, cn_time timeout)
{
	struct request *r = request(bytes);
	struct cn_err err = { 0 };

	w->next = 0;
	fill(r->data, bytes, key);
	if (cn_endpoint_send(ep, w->now, node, to, r->data, bytes, w->now + timeout, &r->done,
			     &err)) {
		fail_msg("%s", err.text);
	}
	return r;
}

static struct request *recv_at(struct fixture *w, struct cn_endpoint *ep, uint64_t capacity,
			       cn_time timeout)
{
	struct request *r = request(capacity);
	struct cn_err err = { 0 };

	w->next = 0;
	if (cn_endpoint_recv(ep, w->now, r->data, capacity, w->now + timeout, &r->got, &r->done,
			     &err)) {
		fail_msg("%s", err.text);
	}
	return r;
}

static int wait_for(struct fixture *w, struct request *r, cn_time limit)
{
	cn_time stop_at = w->now + limit;

	while (r->ended == 0 && w->now < stop_at) {
		step(w);
	}
	return r->status;
}

static void assert_ok(struct fixture *w, struct request *r)
{
	if (wait_for(w, r, 60 * SECOND) != COLLNET_OK) {
		fail_msg("status %d: %s", r->status, r->text);
	}
}

static void assert_got(struct request *r, const char *node, uint16_t from, uint64_t bytes,
		       uint32_t key)
{
	assert_int_equal(r->status, COLLNET_OK);
	assert_string_equal(r->got.from.node, node);
	assert_int_equal(r->got.from.endpoint, from);
	assert_int_equal(r->got.bytes, bytes);
	assert_filled(r->data, bytes, key);
}

static void assert_status(struct fixture *w, struct request *r, int status, const char *sentence)
{
	assert_int_equal(wait_for(w, r, 60 * SECOND), status);
	if (strstr(r->text, sentence) == NULL) {
		fail_msg("\"%s\" does not say \"%s\"", r->text, sentence);
	}
}

/* ---- sizes and order -------------------------------------------------------------------- */

static void one_message(struct fixture *w, struct cn_endpoint *from, struct cn_endpoint *to,
			uint64_t bytes, bool early)
{
	struct request *in = NULL, *out;

	if (!early) {
		in = recv_at(w, to, bytes, 10 * SECOND);
	}
	out = send_to(w, from, "b", 7, bytes, (uint32_t)bytes, 10 * SECOND);
	if (early) {
		run(w, 2 * CN_MS);
		in = recv_at(w, to, bytes, 10 * SECOND);
	}
	assert_ok(w, in);
	assert_ok(w, out);
	assert_got(in, "a", 5, bytes, (uint32_t)bytes);
	drop(in);
	drop(out);
}

static void send__sizes(void **state)
{
	static const uint32_t around[] = { PAYLOAD - CN_EP_HEAD,
					   PAYLOAD,
					   2 * PAYLOAD - CN_EP_HEAD,
					   2 * PAYLOAD,
					   3 * PAYLOAD - CN_EP_HEAD,
					   4 * PAYLOAD - CN_EP_HEAD,
					   5 * PAYLOAD - CN_EP_HEAD,
					   CN_EP_CREDIT * PAYLOAD - CN_EP_HEAD,
					   MTU,
					   2 * MTU,
					   3 * MTU };
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7);

	(void)state;
	for (int early = 0; early < 2; early++) {
		for (uint64_t n = 0; n < 70; n++) {
			one_message(w, a, b, n, early);
		}
		for (uint64_t n = 70; n < 3 * MTU + 1; n += 37) {
			one_message(w, a, b, n, early);
		}
		for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
			for (uint32_t n = around[i] - 2; n <= around[i] + 2; n++) {
				one_message(w, a, b, n, early);
			}
		}
		one_message(w, a, b, 1 << 20, early);
	}
	assert_int_equal(stats(w, 0).data_resent, 0);
	assert_int_equal(stats(w, 1).busy, 0);
	assert_clean(w);
	end(w);
}

/* With the pool used up, heads go alone and nothing is copied. */
static void send__without_buffers(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7);
	struct cn_node *node = cn_engine_node(w->engine[0]);
	void *taken[4096];
	uint32_t n = 0;

	(void)state;
	while ((taken[n] = cn_node_buffer_get(node)) != NULL) {
		n++;
	}
	for (uint64_t bytes = 0; bytes < 3 * PAYLOAD; bytes += 211) {
		one_message(w, a, b, bytes, false);
		one_message(w, a, b, bytes, true);
	}
	one_message(w, a, b, 100000, true);
	while (n > 0) {
		cn_node_buffer_put(node, taken[--n]);
	}
	assert_clean(w);
	end(w);
}

#define EPS	   4
#define PER_FLOW   12
#define FLOW_BYTES (6 * PAYLOAD)

/*
 * Every endpoint of every node sends numbered messages to every endpoint of every node, its own
 * included; receives are posted now and then. Each message comes once, whole, and in the order of
 * its flow.
 */
struct storm {
	struct fixture *w;
	uint64_t random;
	struct cn_endpoint *ep[NODES_MAX * EPS];
	uint32_t sent[NODES_MAX * EPS][NODES_MAX * EPS], came[NODES_MAX * EPS][NODES_MAX * EPS];
	struct request *out[NODES_MAX * EPS][8], *in[NODES_MAX * EPS][4];
	uint32_t left;
};

static uint32_t storm_key(uint32_t from, uint32_t to, uint32_t number)
{
	return from << 20 | to << 10 | number;
}

static uint64_t storm_bytes(uint32_t key)
{
	uint64_t x = cn_mix64(key);

	return x % 3 == 0 ? (x >> 8) % FLOW_BYTES : (x >> 8) % 200;
}

static void storm_came(struct storm *s, uint32_t to, struct request *r)
{
	uint32_t from = (uint32_t)(r->got.from.node[0] - 'a') * EPS + r->got.from.endpoint - 1;
	uint32_t key = storm_key(from, to, s->came[from][to]++);

	assert_got(r, names[from / EPS], (uint16_t)(from % EPS + 1), storm_bytes(key), key);
	s->left--;
}

static void storm_turn(struct storm *s)
{
	uint32_t all = s->w->n * EPS;

	for (uint32_t i = 0; i < all; i++) {
		for (uint32_t k = 0; k < 8; k++) {
			uint32_t to = (uint32_t)(cn_random(&s->random) % all);
			uint32_t key = storm_key(i, to, s->sent[i][to]);

			if (s->out[i][k] != NULL && s->out[i][k]->ended > 0) {
				assert_int_equal(s->out[i][k]->status, COLLNET_OK);
				drop(s->out[i][k]);
				s->out[i][k] = NULL;
			}
			if (s->out[i][k] == NULL && s->sent[i][to] < PER_FLOW) {
				s->sent[i][to]++;
				s->out[i][k] = send_to(s->w, s->ep[i], names[to / EPS],
						       (uint16_t)(to % EPS + 1), storm_bytes(key),
						       key, 600 * SECOND);
			}
		}
	}
	/* Receives complete in the order of posting, for they take messages in order; but their
	 * messages may end in another. So each is looked at in the order of posting. */
	for (uint32_t i = 0; i < all; i++) {
		struct request **in = s->in[i];

		while (in[0] != NULL && in[0]->ended > 0) {
			storm_came(s, i, in[0]);
			drop(in[0]);
			memmove(in, in + 1, 3 * sizeof(in[0]));
			in[3] = NULL;
		}
		for (uint32_t k = 0; k < 4; k++) {
			if (in[k] == NULL && cn_random(&s->random) % 16 == 0) {
				in[k] = recv_at(s->w, s->ep[i], FLOW_BYTES, 600 * SECOND);
			} else if (in[k] == NULL) {
				break;
			}
		}
	}
}

static void storm(uint32_t nodes, uint64_t seed, void (*change)(struct cn_engine_config *),
		  const struct cn_hub_faults *faults)
{
	struct storm *s = calloc(1, sizeof(*s));
	uint32_t all = nodes * EPS;
	cn_time limit;

	assert_non_null(s);
	print_message("seed %llu\n", (unsigned long long)seed);
	s->w = fixture(nodes, change);
	s->random = seed;
	for (uint32_t i = 0; i < all; i++) {
		s->ep[i] = open_at(s->w, i / EPS, (uint16_t)(i % EPS + 1));
	}
	if (faults != NULL) {
		cn_hub_set_faults(s->w->hub, faults);
	}
	s->left = all * all * PER_FLOW;
	limit = s->w->now + 500 * SECOND;
	while (s->left > 0) {
		storm_turn(s);
		step(s->w);
		if (s->w->now > limit) {
			fail_msg("%u messages did not come", s->left);
		}
	}
	run(s->w, 5 * SECOND);
	for (uint32_t i = 0; i < all; i++) {
		cn_endpoint_close(s->ep[i], s->w->now);
		for (uint32_t k = 0; k < 8; k++) {
			if (s->out[i][k] != NULL) {
				assert_int_equal(s->out[i][k]->status, COLLNET_OK);
				drop(s->out[i][k]);
			}
		}
		for (uint32_t k = 0; k < 4; k++) {
			if (s->in[i][k] != NULL) {
				assert_int_equal(s->in[i][k]->status, COLLNET_EINVAL);
				drop(s->in[i][k]);
			}
		}
	}
	run(s->w, 5 * SECOND);
	for (uint32_t i = 0; i < nodes; i++) {
		assert_int_equal(s->w->engine[i]->endpoints->nflows, 0);
		if (change == NULL && faults == NULL) {
			assert_int_equal(stats(s->w, i).busy, 0);
			assert_int_equal(stats(s->w, i).data_resent, 0);
		}
	}
	assert_clean(s->w);
	end(s->w);
	free(s);
}

static void order__of_many_flows(void **state)
{
	(void)state;
	storm(3, SEED, NULL, NULL);
}

static void small_pool(struct cn_engine_config *c)
{
	c->node.pool_frames = 16;
}

static void order__with_a_small_pool(void **state)
{
	(void)state;
	storm(3, SEED + 1, small_pool, NULL);
}

static void order__with_loss(void **state)
{
	static const struct cn_hub_faults one = {
		.seed = SEED, .loss = 10000, .duplicate = 2000, .reorder = 2000
	};
	static const struct cn_hub_faults five = { .seed = SEED + 1, .loss = 50000 };

	(void)state;
	storm(3, SEED + 2, NULL, &one);
	storm(2, SEED + 3, NULL, &five);
	storm(2, SEED + 4, small_pool, &five);
}

static void window_of_5(struct cn_engine_config *c)
{
	c->window = 5;
}

static void order__in_a_window(void **state)
{
	struct fixture *w;
	struct cn_endpoint *a, *b;

	(void)state;
	storm(3, SEED + 5, window_of_5, NULL);
	w = fixture(2, window_of_5);
	a = open_at(w, 0, 5);
	b = open_at(w, 1, 7);
	one_message(w, a, b, 1 << 20, false);
	/* Not by delayed acknowledgements: 712 frames by fives would take three seconds. */
	assert_true(w->now < SECOND + 600 * CN_MS);
	assert_int_equal(stats(w, 0).window_peak, 5);
	assert_clean(w);
	end(w);
}

/* ---- credits -------------------------------------------------------------------------- */

/* Many endpoints send to one that does not receive: no frame is refused, everything arrives. */
static void recv__many_unread(void **state)
{
	enum { FLOWS = 20, EACH = 20 };
	struct fixture *w = fixture(2, small_pool);
	struct cn_endpoint *b = open_at(w, 1, 7), *a[FLOWS];
	struct request *out[FLOWS][EACH], *in;

	(void)state;
	for (int i = 0; i < FLOWS; i++) {
		a[i] = open_at(w, 0, (uint16_t)(i + 1));
		for (uint32_t k = 0; k < EACH; k++) {
			out[i][k] = send_to(w, a[i], "b", 7, 100, k, 100 * SECOND);
		}
	}
	run(w, SECOND);
	assert_int_equal(stats(w, 1).busy, 0);
	for (int n = 0; n < FLOWS * EACH; n++) {
		in = recv_at(w, b, 100, 100 * SECOND);
		assert_ok(w, in);
		assert_int_equal(in->got.bytes, 100);
		drop(in);
	}
	for (int i = 0; i < FLOWS; i++) {
		for (int k = 0; k < EACH; k++) {
			assert_ok(w, out[i][k]);
			drop(out[i][k]);
		}
	}
	assert_clean(w);
	end(w);
}

/* An endpoint that does not receive takes no more than its credits, and holds up nobody else. */
static void credit__of_one_that_does_not_receive(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7), *other = open_at(w, 1, 8);
	struct request *out[CN_EP_REQUESTS - 1], *big, *in;
	uint64_t before;
	uint32_t done = 0;

	(void)state;
	for (uint32_t k = 0; k < CN_EP_REQUESTS - 1; k++) {
		out[k] = send_to(w, a, "b", 7, 1000, k, 100 * SECOND);
	}
	run(w, SECOND);
	for (uint32_t k = 0; k < CN_EP_REQUESTS - 1; k++) {
		done += out[k]->ended;
	}
	assert_int_equal(done, CN_EP_CREDIT);
	/* The same endpoint to another one, many frames. */
	before = stats(w, 0).data_sent;
	in = recv_at(w, other, 1 << 20, 100 * SECOND);
	big = send_to(w, a, "b", 8, 1 << 20, 99, 100 * SECOND);
	assert_ok(w, in);
	assert_ok(w, big);
	assert_got(in, "a", 5, 1 << 20, 99);
	assert_true(stats(w, 0).data_sent - before <= ((1 << 20) + PAYLOAD) / PAYLOAD + 1);
	assert_int_equal(stats(w, 1).busy, 0);
	drop(in);
	drop(big);
	for (uint32_t k = 0; k < CN_EP_REQUESTS - 1; k++) {
		in = recv_at(w, b, 1000, 100 * SECOND);
		assert_ok(w, in);
		assert_got(in, "a", 5, 1000, k);
		assert_ok(w, out[k]);
		drop(in);
		drop(out[k]);
	}
	assert_clean(w);
	end(w);
}

/* Many that do not receive hold up no collective of the same nodes. */
static void credit__lets_collectives_pass(void **state)
{
	enum { FLOWS = 40, BYTES = 100000 };
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a[FLOWS], *b = open_at(w, 1, 7);
	struct request *out[FLOWS], *member[2], *op[2];
	struct cn_member *m[2];
	uint8_t *send[2], *recv[2];
	struct cn_err err = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		member[i] = request(0);
		assert_int_equal(cn_team_join(w->engine[i], w->now, OWNER, "job", i, 2,
					      w->now + SECOND, &member[i]->done, &m[i], &err),
				 COLLNET_OK);
	}
	assert_ok(w, member[0]);
	assert_ok(w, member[1]);
	for (uint32_t i = 0; i < FLOWS; i++) {
		a[i] = open_at(w, 0, (uint16_t)(i + 1));
		out[i] = send_to(w, a[i], "b", 7, 1 << 20, i, 100 * SECOND);
	}
	run(w, 100 * CN_MS);
	for (uint32_t i = 0; i < 2; i++) {
		struct cn_coll_args args = { .op = CN_OP_ALLTOALL,
					     .bytes = BYTES,
					     .window = COLLNET_WINDOW_AUTO,
					     .deadline = w->now + SECOND };

		send[i] = malloc(2 * BYTES);
		recv[i] = malloc(2 * BYTES);
		fill(send[i], BYTES, 10 * i);
		fill(send[i] + BYTES, BYTES, 10 * i + 1);
		args.send = send[i];
		args.recv = recv[i];
		op[i] = request(0);
		assert_int_equal(cn_coll_post(m[i], w->now, &args, &op[i]->done, &err), COLLNET_OK);
	}
	for (uint32_t i = 0; i < 2; i++) {
		assert_ok(w, op[i]);
		drop(op[i]);
	}
	for (uint32_t i = 0; i < 2; i++) {
		assert_filled(recv[i], BYTES, i);
		assert_filled(recv[i] + BYTES, BYTES, 10 + i);
		free(send[i]);
		free(recv[i]);
		cn_team_leave(m[i], w->now, false);
		drop(member[i]);
	}
	assert_int_equal(stats(w, 1).busy, 0);
	assert_int_equal(w->engine[1]->endpoints->pool.count - w->engine[1]->endpoints->pool.free,
			 FLOWS * CN_EP_CREDIT);
	cn_endpoint_close(b, w->now);
	for (uint32_t i = 0; i < FLOWS; i++) {
		assert_status(w, out[i], COLLNET_ENOENT, "endpoint 7 of node b was closed");
		drop(out[i]);
	}
	assert_clean(w);
	end(w);
}

/* A stream of small messages costs no more grants than one for half the credits. */
static void credit__costs_few_frames(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7);
	uint64_t before = stats(w, 1).data_sent;

	(void)state;
	for (uint32_t k = 0; k < 20 * CN_EP_CREDIT; k++) {
		one_message(w, a, b, 64, false);
	}
	assert_true(stats(w, 1).data_sent - before <= 20 * 2 + 1);
	assert_clean(w);
	end(w);
}

/* Who sent is there: an answer is complete as soon as it was sent. */
static void send__answers_at_once(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7);
	struct request *in = recv_at(w, b, 10, SECOND), *out;
	struct cn_frame frame;

	(void)state;
	out = send_to(w, a, "b", 7, 10, 1, SECOND);
	while (cn_engine_output(w->engine[0], w->now, &frame)) {
	}
	assert_int_equal(out->ended, 0); /* nobody knows yet whether anybody is there */
	assert_ok(w, in);
	assert_ok(w, out);
	drop(in);
	drop(out);
	out = send_to(w, b, "a", 5, 10, 1, SECOND);
	while (cn_engine_output(w->engine[1], w->now, &frame)) {
	}
	assert_int_equal(out->status, COLLNET_OK);
	run(w, SECOND); /* the frame was lost: it is sent again */
	in = recv_at(w, a, 10, SECOND);
	assert_ok(w, in);
	assert_got(in, "b", 7, 10, 1);
	drop(in);
	drop(out);
	assert_clean(w);
	end(w);
}

/* ---- endpoints that are not there --------------------------------------------------------- */

static void send__to_nobody(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b;
	struct request *small, *large, *in;
	struct cn_err err = { 0 };
	struct cn_done unused = { 0 };

	(void)state;
	small = send_to(w, a, "b", 7, 10, 1, 10 * SECOND);
	large = send_to(w, a, "b", 7, 200000, 1, 10 * SECOND);
	assert_status(w, small, COLLNET_ENOENT, "no endpoint 7 is open on node b");
	assert_status(w, large, COLLNET_ENOENT, "no endpoint 7 is open on node b");
	assert_true(w->now < 2 * SECOND);
	drop(small);
	drop(large);
	b = open_at(w, 1, 7);
	one_message(w, a, b, 10, false);
	one_message(w, a, b, 200000, true);

	assert_int_equal(cn_endpoint_send(a, w->now, "c", 7, "x", 1, CN_NEVER, &unused, &err),
			 COLLNET_ENOENT);
	assert_non_null(strstr(err.text, "no node c"));
	assert_int_equal(cn_endpoint_send(a, w->now, "a", 6, "x", 1, CN_NEVER, &unused, &err),
			 COLLNET_ENOENT);
	assert_non_null(strstr(err.text, "no endpoint 6"));
	assert_int_equal(cn_endpoint_send(a, w->now, "b", 0, "x", 1, CN_NEVER, &unused, &err),
			 COLLNET_EINVAL);
	assert_int_equal(cn_endpoint_send(a, w->now, "b", 7, NULL, 1, CN_NEVER, &unused, &err),
			 COLLNET_EINVAL);
	assert_int_equal(cn_endpoint_send(a, w->now, "b", 7, "x", COLLNET_MESSAGE_MAX + 1, CN_NEVER,
					  &unused, &err),
			 COLLNET_EINVAL);
	in = recv_at(w, b, 0, SECOND);
	assert_status(w, in, COLLNET_ETIMEOUT, "endpoint 7");
	drop(in);
	assert_clean(w);
	end(w);
}

static void close__of_the_receiver(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7);
	struct request *large, *queued, *waiting, *in;

	(void)state;
	one_message(w, a, b, 100, false);
	/* In the middle of a message that nobody receives, with another behind it. */
	large = send_to(w, a, "b", 7, 200000, 1, 100 * SECOND);
	queued = send_to(w, a, "b", 7, 10, 1, 100 * SECOND);
	run(w, 10 * CN_MS);
	cn_endpoint_close(b, w->now);
	assert_status(w, large, COLLNET_ENOENT, "endpoint 7 of node b was closed");
	assert_status(w, queued, COLLNET_ENOENT, "endpoint 7 of node b was closed");
	drop(large);
	drop(queued);
	/* Opened again, and closed in the middle of a message that is being received. */
	b = open_at(w, 1, 7);
	one_message(w, a, b, 100000, true);
	in = recv_at(w, b, 4 << 20, 100 * SECOND);
	waiting = recv_at(w, b, 100, 100 * SECOND);
	large = send_to(w, a, "b", 7, 4 << 20, 1, 100 * SECOND);
	for (int i = 0; i < 3; i++) {
		step(w);
	}
	assert_int_equal(in->ended, 0);
	cn_endpoint_close(b, w->now);
	assert_status(w, in, COLLNET_EINVAL, "endpoint 7 was closed");
	assert_status(w, waiting, COLLNET_EINVAL, "endpoint 7 was closed");
	assert_status(w, large, COLLNET_ENOENT, "endpoint 7 of node b was closed");
	drop(in);
	drop(waiting);
	drop(large);
	b = open_at(w, 1, 7);
	one_message(w, a, b, 100000, false);
	assert_clean(w);
	end(w);
}

/* Opened again before the sender hears of it: what begins then ends too. */
static void close__and_open_unnoticed(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *other = open_at(w, 0, 6), *b = open_at(w, 1, 7);
	struct request *large, *small, *in;

	(void)state;
	one_message(w, a, b, 100, false);
	cn_endpoint_close(b, w->now);
	b = open_at(w, 1, 7);
	in = recv_at(w, b, 1 << 20, 100 * SECOND);
	large = send_to(w, a, "b", 7, 1 << 20, 1, 100 * SECOND);
	assert_status(w, large, COLLNET_ENOENT, "endpoint 7 of node b was closed");
	drop(large);
	run(w, 10 * CN_MS);
	assert_int_equal(in->ended, 0);
	small = send_to(w, other, "b", 7, 60, 2, 100 * SECOND);
	assert_ok(w, in);
	assert_got(in, "a", 6, 60, 2);
	assert_ok(w, small);
	drop(in);
	drop(small);
	for (uint64_t n = 0; n < 3 * CN_EP_CREDIT; n++) {
		one_message(w, a, b, n, n % 2 == 0);
	}
	assert_clean(w);
	end(w);
}

/* Closed and opened at once, over and over, while messages come: nothing sticks. */
static void close__and_open_under_fire(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7);
	struct request *out[8] = { 0 }, *in = NULL;
	uint64_t random = SEED;
	uint32_t ok = 0;

	(void)state;
	print_message("seed %u\n", SEED);
	for (int n = 0; n < 4000; n++) {
		uint64_t x = cn_random(&random);
		struct request **r = &out[x % 8];

		if (*r != NULL && (*r)->ended > 0) {
			assert_true((*r)->status == COLLNET_OK || (*r)->status == COLLNET_ENOENT);
			drop(*r);
			*r = NULL;
		}
		if (*r == NULL) {
			uint64_t bytes = (x >> 8) % 5 == 0 ? (x >> 16) % 90000 : (x >> 16) % 400;

			*r = send_to(w, a, "b", 7, bytes, (uint32_t)bytes, 1000 * SECOND);
		}
		if (in != NULL && in->ended > 0) {
			if (in->status == COLLNET_OK) {
				assert_got(in, "a", 5, in->got.bytes, (uint32_t)in->got.bytes);
				ok++;
			} else {
				assert_int_equal(in->status, COLLNET_EINVAL);
			}
			drop(in);
			in = NULL;
		}
		if (in == NULL) {
			in = recv_at(w, b, 90000, 1000 * SECOND);
		}
		if ((x >> 40) % 40 == 0) {
			cn_endpoint_close(b, w->now);
			b = open_at(w, 1, 7);
		}
		step(w);
	}
	assert_true(ok > 500);
	run(w, SECOND);
	/* Whatever happened, both sides agree on credits: a message of any length goes through. */
	for (int i = 0; i < 100; i++) {
		if (in == NULL) {
			in = recv_at(w, b, 1 << 20, 10 * SECOND);
		}
		run(w, SECOND);
		if (in->ended == 0) {
			break;
		}
		drop(in);
		in = NULL;
	}
	assert_non_null(in);
	for (int i = 0; i < 8; i++) {
		if (out[i] != NULL) {
			assert_int_equal(out[i]->ended, 1);
			drop(out[i]);
		}
	}
	cn_endpoint_close(b, w->now);
	drop(in);
	b = open_at(w, 1, 7);
	run(w, 10 * CN_MS);
	one_message(w, a, b, 1 << 20, false);
	for (uint64_t n = 0; n < 3 * CN_EP_CREDIT; n++) {
		one_message(w, a, b, n, true);
	}
	assert_clean(w);
	end(w);
}

static void close__of_the_sender(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7), *other = open_at(w, 0, 6);
	struct request *large, *small, *in;

	(void)state;
	/* What was complete arrives; the rest is forgotten, and its receive gets another. */
	small = send_to(w, a, "b", 7, 50, 1, 100 * SECOND);
	assert_ok(w, small);
	large = send_to(w, a, "b", 7, 4 << 20, 2, 100 * SECOND);
	run(w, 10 * CN_MS);
	in = recv_at(w, b, 4 << 20, 100 * SECOND);
	assert_ok(w, in);
	assert_got(in, "a", 5, 50, 1);
	drop(in);
	in = recv_at(w, b, 4 << 20, 100 * SECOND);
	for (int i = 0; i < 4; i++) {
		step(w);
	}
	cn_endpoint_close(a, w->now);
	assert_status(w, large, COLLNET_EINVAL, "endpoint 5 was closed");
	run(w, 100 * CN_MS);
	assert_int_equal(in->ended, 0);
	drop(large);
	drop(small);
	small = send_to(w, other, "b", 7, 70, 3, 100 * SECOND);
	assert_ok(w, in);
	assert_got(in, "a", 6, 70, 3);
	assert_ok(w, small);
	drop(in);
	drop(small);
	/* A message that has come waits, although its sender has closed since. */
	a = open_at(w, 0, 5);
	small = send_to(w, a, "b", 7, 90, 4, 100 * SECOND);
	assert_ok(w, small);
	cn_endpoint_close(a, w->now);
	run(w, 100 * CN_MS);
	in = recv_at(w, b, 100, 100 * SECOND);
	assert_ok(w, in);
	assert_got(in, "a", 5, 90, 4);
	drop(in);
	drop(small);
	assert_clean(w);
	end(w);
}

/* ---- failures ------------------------------------------------------------------------- */

static void recv__truncates(void **state)
{
	static const uint32_t sizes[] = { 1, 100, 5000, 300000 };
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7);

	(void)state;
	for (int early = 0; early < 2; early++) {
		for (size_t i = 0; i < 4; i++) {
			uint32_t capacity = sizes[i] - 1 - sizes[i] / 3;
			struct request *in = NULL, *out;

			if (!early) {
				in = recv_at(w, b, capacity, SECOND);
			}
			out = send_to(w, a, "b", 7, sizes[i], 9, SECOND);
			if (early) {
				run(w, 10 * CN_MS);
				in = recv_at(w, b, capacity, SECOND);
			}
			assert_status(w, in, COLLNET_ETRUNC, "longer than the buffer");
			assert_int_equal(in->got.bytes, sizes[i]);
			assert_string_equal(in->got.from.node, "a");
			assert_filled(in->data, capacity, 9);
			assert_ok(w, out);
			drop(in);
			drop(out);
			one_message(w, a, b, 20, early);
		}
	}
	assert_clean(w);
	end(w);
}

static void timeout__of_a_send(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7);
	struct request *out, *behind, *in;

	(void)state;
	for (int round = 0; round < 5; round++) {
		out = send_to(w, a, "b", 7, 100000, 1, SECOND);
		behind = send_to(w, a, "b", 7, 30000, 2, 10 * SECOND);
		assert_status(w, out, COLLNET_ETIMEOUT,
			      "a message of 100000 bytes from endpoint 5 to endpoint 7 of node b");
		assert_non_null(strstr(out->text, "nobody there receives"));
		drop(out);
		run(w, 10 * CN_MS);
		in = recv_at(w, b, 100000, 10 * SECOND);
		assert_ok(w, in);
		assert_got(in, "a", 5, 30000, 2);
		assert_ok(w, behind);
		drop(behind);
		drop(in);
		one_message(w, a, b, 200000, true);
	}
	assert_clean(w);
	end(w);
}

/* The deadline comes while the message is being received: the receive gets the next one. */
static void timeout__of_a_send_half_received(void **state)
{
	static const struct cn_hub_faults deaf = { .seed = 1, .loss = 1000000 }, none = { 0 };
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7), *c = open_at(w, 0, 9);
	struct request *out, *in, *next;

	(void)state;
	for (int round = 0; round < 6; round++) {
		struct cn_endpoint *from = round % 2 == 0 ? a : c;

		in = recv_at(w, b, 1 << 20, 10 * SECOND);
		next = recv_at(w, b, 10, 10 * SECOND);
		out = send_to(w, a, "b", 7, 1 << 20, 1, 200 * CN_MS);
		for (int i = 0; i < 1 + round; i++) {
			step(w);
		}
		cn_hub_set_faults(w->hub, &deaf);
		assert_status(w, out, COLLNET_ETIMEOUT, "node b");
		cn_hub_set_faults(w->hub, &none);
		drop(out);
		run(w, SECOND);
		assert_int_equal(in->ended, 0);
		out = send_to(w, from, "b", 7, 300000, 2, 10 * SECOND);
		assert_ok(w, in);
		assert_got(in, "a", cn_endpoint_number(from), 300000, 2);
		assert_ok(w, out);
		drop(out);
		drop(in);
		out = send_to(w, from, "b", 7, 10, 3, 10 * SECOND);
		assert_ok(w, next);
		assert_got(next, "a", cn_endpoint_number(from), 10, 3);
		assert_ok(w, out);
		drop(out);
		drop(next);
		for (uint64_t n = 0; n < 3 * CN_EP_CREDIT; n++) {
			one_message(w, a, b, n, n % 2 == 0);
		}
	}
	assert_clean(w);
	end(w);
}

/* All its frames are lost: they were never counted, so both sides must forget them alike. */
static void timeout__of_a_send_never_heard(void **state)
{
	static const struct cn_hub_faults deaf = { .seed = 1, .loss = 1000000 }, none = { 0 };
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7);
	struct request *out;

	(void)state;
	for (int round = 0; round < 4; round++) {
		one_message(w, a, b, 100, false);
		cn_hub_set_faults(w->hub, &deaf);
		out = send_to(w, a, "b", 7, 100000, 1, 200 * CN_MS);
		assert_status(w, out, COLLNET_ETIMEOUT, "node b");
		cn_hub_set_faults(w->hub, &none);
		drop(out);
		/* What is sent again finds a receive, or none. */
		run(w, round % 2 == 0 ? SECOND : 0);
		for (uint64_t n = 0; n < 3 * CN_EP_CREDIT; n++) {
			one_message(w, a, b, n, n % 2 == 0);
		}
	}
	assert_clean(w);
	end(w);
}

static void timeout__of_a_receive(void **state)
{
	static const struct cn_hub_faults deaf = { .seed = 1, .loss = 1000000 }, none = { 0 };
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7);
	struct request *out, *in, *late;
	cn_time before = w->now;

	(void)state;
	in = recv_at(w, b, 100, SECOND);
	late = recv_at(w, b, 100, 3 * SECOND);
	assert_status(w, in, COLLNET_ETIMEOUT, "no message came to endpoint 7");
	assert_true(w->now >= before + SECOND && w->now < before + SECOND + 100 * CN_MS);
	assert_int_equal(late->ended, 0);
	drop(in);
	out = send_to(w, a, "b", 7, 100, 4, SECOND);
	assert_ok(w, late);
	assert_got(late, "a", 5, 100, 4);
	assert_ok(w, out);
	drop(late);
	drop(out);
	/* In the middle of a message: the rest of it is thrown away. */
	in = recv_at(w, b, 4 << 20, 300 * CN_MS);
	out = send_to(w, a, "b", 7, 4 << 20, 1, 10 * SECOND);
	for (int i = 0; i < 5; i++) {
		step(w);
	}
	cn_hub_set_faults(w->hub, &deaf);
	assert_status(w, in, COLLNET_ETIMEOUT, "did not come in time");
	cn_hub_set_faults(w->hub, &none);
	assert_ok(w, out);
	drop(in);
	drop(out);
	one_message(w, a, b, 100000, false);
	assert_clean(w);
	end(w);
}

static void peer__down(void **state)
{
	struct fixture *w = fixture(3, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7), *c = open_at(w, 2, 9);
	struct request *whole, *out, *queued, *matched, *waiting, *in;

	(void)state;
	/* A whole message waits at b, another is half received, and a third has not begun. */
	whole = send_to(w, a, "b", 7, 3000, 1, 100 * SECOND);
	run(w, 10 * CN_MS);
	assert_ok(w, whole);
	out = send_to(w, a, "b", 7, 1 << 20, 2, 100 * SECOND);
	queued = send_to(w, a, "b", 7, 5, 3, 100 * SECOND);
	run(w, 10 * CN_MS);
	cn_hub_cut(w->hub, 0, true);
	in = recv_at(w, b, 1 << 20, 100 * SECOND);
	assert_ok(w, in);
	assert_got(in, "a", 5, 3000, 1);
	matched = recv_at(w, b, 1 << 20, 100 * SECOND);
	waiting = recv_at(w, b, 1 << 20, 100 * SECOND);
	assert_status(w, matched, COLLNET_EPEER, "node a is gone");
	assert_status(w, out, COLLNET_EPEER, "node b is gone");
	assert_status(w, queued, COLLNET_EPEER, "node b is gone");
	assert_true(w->now < 4 * SECOND);
	assert_int_equal(waiting->ended, 0);
	drop(in);
	drop(matched);
	drop(out);
	drop(queued);
	drop(whole);
	whole = send_to(w, c, "b", 7, 77, 8, SECOND);
	assert_ok(w, waiting);
	assert_got(waiting, "c", 9, 77, 8);
	assert_ok(w, whole);
	drop(waiting);
	drop(whole);
	/* Back again; and gone with all frames of a message on their way. */
	cn_hub_cut(w->hub, 0, false);
	meet(w);
	one_message(w, a, b, 100000, true);
	cn_hub_cut(w->hub, 0, true);
	out = send_to(w, a, "b", 7, 20000, 2, 100 * SECOND);
	assert_status(w, out, COLLNET_EPEER, "node b is gone");
	drop(out);
	cn_hub_cut(w->hub, 0, false);
	meet(w);
	assert_clean(w);
	end(w);
}

/* A node that ends takes with it what is unfinished; what has come whole stays. */
static void peer__ends(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7);
	struct request *whole, *out, *waiting, *in;

	(void)state;
	whole = send_to(w, a, "b", 7, 3000, 1, 100 * SECOND);
	out = send_to(w, a, "b", 7, 1 << 20, 2, 100 * SECOND);
	waiting = recv_at(w, a, 100, 100 * SECOND);
	run(w, 10 * CN_MS);
	cn_engine_shutdown(w->engine[0], w->now);
	assert_int_equal(out->status, COLLNET_EDAEMON);
	assert_int_equal(waiting->status, COLLNET_EDAEMON);
	drop(out);
	drop(waiting);
	run(w, 100 * CN_MS);
	stop(w, 0);
	in = recv_at(w, b, 1 << 20, 100 * SECOND);
	assert_ok(w, in);
	assert_got(in, "a", 5, 3000, 1);
	assert_ok(w, whole);
	drop(in);
	drop(whole);
	assert_int_equal(w->engine[1]->endpoints->nflows, 0);
	start(w, 0, 555, NULL);
	meet(w);
	a = open_at(w, 0, 5);
	one_message(w, a, b, 5000, false);
	assert_clean(w);
	end(w);
}

/* ---- on one node ------------------------------------------------------------------------ */

static void local__messages(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 1000, PAYLOAD - CN_EP_HEAD, PAYLOAD, 70000 };
	struct fixture *w = fixture(1, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 0, 7);
	struct request *out[6], *in[6];

	(void)state;
	for (int early = 0; early < 2; early++) {
		for (int i = 0; i < 6; i++) {
			in[i] = early ? NULL : recv_at(w, b, 70000, SECOND);
		}
		for (uint32_t i = 0; i < 6; i++) {
			out[i] = send_to(w, a, "a", 7, sizes[i], i, SECOND);
			/* Small ones are copied and complete at once; others wait for a receive. */
			assert_int_equal(out[i]->ended, !early || i < 4);
		}
		for (uint32_t i = 0; i < 6; i++) {
			if (early) {
				in[i] = recv_at(w, b, 70000, SECOND);
			}
			assert_int_equal(in[i]->ended, 1);
			assert_got(in[i], "a", 5, sizes[i], i);
			assert_int_equal(out[i]->status, COLLNET_OK);
			drop(in[i]);
			drop(out[i]);
		}
	}
	/* To itself. */
	out[0] = send_to(w, b, "a", 7, 33, 1, SECOND);
	in[0] = recv_at(w, b, 33, SECOND);
	assert_got(in[0], "a", 7, 33, 1);
	drop(in[0]);
	drop(out[0]);
	assert_int_equal(stats(w, 0).data_sent, 0);
	assert_clean(w);
	end(w);
}

static void local__failures(void **state)
{
	struct fixture *w = fixture(1, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 0, 7);
	struct request *out[CN_EP_CREDIT + 1], *in;

	(void)state;
	/* Copies are bounded. */
	for (uint32_t i = 0; i <= CN_EP_CREDIT; i++) {
		out[i] = send_to(w, a, "a", 7, 10, i, SECOND);
		assert_int_equal(out[i]->ended, i < CN_EP_CREDIT);
	}
	assert_status(w, out[CN_EP_CREDIT], COLLNET_ETIMEOUT, "to endpoint 7 of node a");
	for (uint32_t i = 0; i < CN_EP_CREDIT; i++) {
		in = recv_at(w, b, 10, SECOND);
		assert_got(in, "a", 5, 10, i);
		drop(in);
	}
	for (uint32_t i = 0; i <= CN_EP_CREDIT; i++) {
		drop(out[i]);
	}
	out[0] = send_to(w, a, "a", 7, 100000, 1, SECOND);
	out[1] = send_to(w, a, "a", 7, 10, 1, SECOND);
	cn_endpoint_close(b, w->now);
	assert_int_equal(out[0]->status, COLLNET_ENOENT);
	assert_int_equal(out[1]->status, COLLNET_OK);
	drop(out[0]);
	drop(out[1]);
	b = open_at(w, 0, 7);
	out[0] = send_to(w, a, "a", 7, 100000, 1, SECOND);
	out[1] = send_to(w, a, "a", 7, 10, 2, SECOND);
	cn_endpoint_close(a, w->now);
	assert_int_equal(out[0]->status, COLLNET_EINVAL);
	in = recv_at(w, b, 5, SECOND);
	assert_status(w, in, COLLNET_ETRUNC, "10 bytes from endpoint 5");
	drop(in);
	drop(out[0]);
	drop(out[1]);
	assert_clean(w);
	end(w);
}

/* ---- bounds --------------------------------------------------------------------------- */

static void three_endpoints(struct cn_engine_config *c)
{
	c->max_endpoints = 3;
}

static void open__numbers(void **state)
{
	struct fixture *w = fixture(1, three_endpoints);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 0, 0), *c, *d;
	struct cn_err err = { 0 };
	uint16_t number = cn_endpoint_number(b);

	(void)state;
	assert_int_equal(cn_endpoint_number(a), 5);
	assert_true(number >= 32768);
	assert_int_equal(cn_endpoint_open(w->engine[0], OWNER, 5, &d, &err), COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "endpoint 5 of node a is open already"));
	c = open_at(w, 0, 65535);
	assert_int_equal(cn_endpoint_open(w->engine[0], OWNER, 6, &d, &err), COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "3 endpoints"));
	cn_endpoint_close(b, w->now);
	b = open_at(w, 0, 0);
	assert_true(cn_endpoint_number(b) >= 32768 && cn_endpoint_number(b) != number);
	for (int i = 0; i < 70000; i++) {
		cn_endpoint_close(b, w->now);
		b = open_at(w, 0, 0);
		assert_true(cn_endpoint_number(b) >= 32768 && cn_endpoint_number(b) != 65535);
	}
	cn_endpoint_close(c, w->now);
	assert_clean(w);
	end(w);
}

static void request__bounds(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b = open_at(w, 1, 7);
	struct request *out[CN_EP_REQUESTS], *in[CN_EP_REQUESTS];
	struct cn_done unused = { 0 };
	struct cn_err err = { 0 };

	(void)state;
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		out[i] = send_to(w, a, "b", 7, 5000, i, 100 * SECOND);
	}
	assert_int_equal(cn_endpoint_send(a, w->now, "b", 7, "x", 1, CN_NEVER, &unused, &err),
			 COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "64 sends"));
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		in[i] = recv_at(w, b, 5000, 100 * SECOND);
	}
	assert_int_equal(cn_endpoint_recv(b, w->now, NULL, 0, CN_NEVER, NULL, &unused, &err),
			 COLLNET_ELIMIT);
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		assert_ok(w, in[i]);
		assert_got(in[i], "a", 5, 5000, i);
		assert_ok(w, out[i]);
		drop(in[i]);
		drop(out[i]);
	}
	assert_clean(w);
	end(w);
}

/* More pairs of endpoints talk, one after the other, than flows can be: idle ones make room. */
static void flow__bounds(void **state)
{
	struct fixture *w = fixture(2, NULL);
	struct cn_endpoint *a = open_at(w, 0, 5), *b;
	struct request *out, *in;

	(void)state;
	for (uint32_t i = 1; i < CN_EP_FLOWS + 500; i++) {
		out = send_to(w, a, "b", (uint16_t)i, 10, i, 100 * SECOND);
		assert_status(w, out, COLLNET_ENOENT, "no endpoint");
		drop(out);
	}
	assert_true(w->engine[0]->endpoints->nflows <= CN_EP_FLOWS);
	/* And where the flows are with the receiver, too. */
	for (uint32_t i = 0; i < CN_EP_FLOWS + 500; i++) {
		b = open_at(w, 1, 0);
		in = recv_at(w, a, 10, 100 * SECOND);
		out = send_to(w, b, "a", 5, 10, i, 100 * SECOND);
		assert_ok(w, out);
		assert_ok(w, in);
		assert_got(in, "b", cn_endpoint_number(b), 10, i);
		drop(out);
		drop(in);
		cn_endpoint_close(b, w->now);
	}
	b = open_at(w, 1, 7);
	one_message(w, a, b, 1 << 20, true);
	assert_clean(w);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__sizes),
		cmocka_unit_test(send__without_buffers),
		cmocka_unit_test(order__of_many_flows),
		cmocka_unit_test(order__with_a_small_pool),
		cmocka_unit_test(order__with_loss),
		cmocka_unit_test(order__in_a_window),
		cmocka_unit_test(recv__many_unread),
		cmocka_unit_test(credit__of_one_that_does_not_receive),
		cmocka_unit_test(credit__lets_collectives_pass),
		cmocka_unit_test(credit__costs_few_frames),
		cmocka_unit_test(send__answers_at_once),
		cmocka_unit_test(send__to_nobody),
		cmocka_unit_test(close__of_the_receiver),
		cmocka_unit_test(close__and_open_unnoticed),
		cmocka_unit_test(close__and_open_under_fire),
		cmocka_unit_test(close__of_the_sender),
		cmocka_unit_test(recv__truncates),
		cmocka_unit_test(timeout__of_a_send),
		cmocka_unit_test(timeout__of_a_send_half_received),
		cmocka_unit_test(timeout__of_a_send_never_heard),
		cmocka_unit_test(timeout__of_a_receive),
		cmocka_unit_test(peer__down),
		cmocka_unit_test(peer__ends),
		cmocka_unit_test(local__messages),
		cmocka_unit_test(local__failures),
		cmocka_unit_test(open__numbers),
		cmocka_unit_test(request__bounds),
		cmocka_unit_test(flow__bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
