/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners of endpoints (lib/coll/endpoint.c): whom they reach, and what one owner may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/endpoint.h"
#include "tools/sim/core/sim.h"

#define OWNER  1000u
#define SECOND (1000 * CN_MS)

struct request {
	struct cn_done done; /* first */
	struct cn_received got;
	uint8_t data[10000];
	int status;
	char text[CN_ERR_TEXT];
};

static struct cn_topo *topo;
static struct cn_sim *sim;

static void on_done(struct cn_done *d, int status, const char *text)
{
	struct request *r = (struct request *)(void *)d;

	assert_int_equal(r->status, COLLNET_INPROGRESS);
	r->status = status;
	snprintf(r->text, sizeof(r->text), "%s", text);
}

static void begin(const char *shape, uint32_t pool_frames)
{
	struct cn_sim_config c;
	struct cn_err err;

	assert_int_equal(cn_topo_shape(shape, 100000000, 0, 100000000, 0, &topo, &err), COLLNET_OK);
	cn_sim_config_init(&c);
	c.topo = topo;
	c.engine.node.pool_frames = pool_frames;
	assert_int_equal(cn_sim_new(&c, &sim, &err), COLLNET_OK);
	cn_sim_run(sim, cn_sim_now(sim) + 2 * SECOND);
}

static void end(void)
{
	cn_sim_free(sim);
	cn_topo_free(topo);
}

static struct cn_endpoint *open_at(uint32_t host, uint64_t owner, uint16_t number)
{
	struct cn_endpoint *ep = NULL;
	struct cn_err err;

	if (cn_endpoint_open(cn_sim_engine(sim, host), owner, owner, number, &ep, &err) !=
	    COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	return ep;
}

static struct request *request(void)
{
	struct request *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->done.fn = on_done;
	r->status = COLLNET_INPROGRESS;
	return r;
}

/* A send from the host's endpoint to one of h1; it runs for `time`. */
static struct request *send_to(uint32_t host, struct cn_endpoint *ep, uint16_t to, uint64_t bytes,
			       cn_time time)
{
	struct request *r = request();
	struct cn_err err;

	if (cn_endpoint_send(ep, cn_sim_now(sim), "h1", to, r->data, bytes,
			     cn_sim_now(sim) + 1000 * SECOND, &r->done, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	cn_sim_kick(sim, host);
	cn_sim_run(sim, cn_sim_now(sim) + time);
	return r;
}

/* A message from h0 arrives at b, on h1. */
static void one_message(struct cn_endpoint *a, struct cn_endpoint *b)
{
	struct request *in = request(), *out;
	struct cn_err err;

	assert_int_equal(cn_endpoint_recv(b, cn_sim_now(sim), in->data, sizeof(in->data),
					  cn_sim_now(sim) + SECOND, &in->got, &in->done, &err),
			 COLLNET_OK);
	cn_sim_kick(sim, 1);
	out = send_to(0, a, cn_endpoint_number(b), sizeof(out->data), SECOND);
	assert_int_equal(in->status, COLLNET_OK);
	assert_int_equal(out->status, COLLNET_OK);
	free(in);
	free(out);
}

/* To a sender of another owner an endpoint is as one that is not open, here and on other nodes,
 * also where its own owner talked with the same two numbers. */
static void owner__others_do_not_reach(void **state)
{
	struct cn_endpoint *a, *b, *other;
	struct request *out;
	struct cn_err err;

	(void)state;
	begin("2", 1024);
	a = open_at(0, OWNER, 5);
	b = open_at(1, OWNER, 7);
	one_message(a, b);
	other = open_at(0, OWNER + 1, 6);
	out = send_to(0, other, 7, 100, SECOND);
	assert_int_equal(out->status, COLLNET_ENOENT);
	assert_non_null(strstr(out->text, "no endpoint 7"));
	assert_int_equal(cn_endpoint_send(other, cn_sim_now(sim), "h0", 5, out->data, 1, CN_NEVER,
					  &out->done, &err),
			 COLLNET_ENOENT);
	free(out);
	cn_endpoint_close(a, cn_sim_now(sim));
	other = open_at(0, OWNER + 1, 5);
	out = send_to(0, other, 7, 5000, SECOND);
	assert_int_equal(out->status, COLLNET_ENOENT);
	free(out);
	end();
}

/*
 * An owner sends to 320 endpoints that nobody reads, 32 messages to each: more than there were
 * buffers. Another owner's messages between the same nodes still arrive, and no frame is refused.
 */
static void owner__unread_messages_stop_nobody_else(void **state)
{
	enum { MANY = 320, EACH = 32, SENDERS = MANY * EACH / 64 };
	static struct request *flood[SENDERS * 64];
	struct collnet_stats stats = { .size = sizeof(stats) };
	struct cn_endpoint *from, *a, *b;

	(void)state;
	begin("2", 1024);
	for (uint32_t i = 0; i < MANY; i++) {
		open_at(1, OWNER, (uint16_t)(1000 + i));
	}
	for (uint32_t i = 0; i < SENDERS; i++) {
		from = open_at(0, OWNER, (uint16_t)(1000 + i));
		for (uint32_t k = 0; k < 64; k++) {
			flood[i * 64 + k] = send_to(0, from, (uint16_t)(1000 + 2 * i + k % 2), 0,
						    0);
		}
	}
	cn_sim_run(sim, cn_sim_now(sim) + SECOND);
	cn_engine_stats(cn_sim_engine(sim, 1), &stats, false);
	assert_int_equal(stats.busy, 0);
	a = open_at(0, OWNER + 1, 5);
	b = open_at(1, OWNER + 1, 7);
	for (uint32_t i = 0; i < 10; i++) {
		one_message(a, b);
	}
	for (uint32_t i = 0; i < SENDERS * 64; i++) {
		assert_int_equal(flood[i]->status, COLLNET_OK);
		free(flood[i]);
	}
	end();
}

/* An owner has a quarter of the flows of a node; a message beyond is refused, with the endpoint's
 * name, and other owners are not concerned. */
static void owner__share_of_the_flows(void **state)
{
	enum { SHARE = CN_EP_FLOWS_LEAST / CN_EP_SHARES };
	uint32_t full = 0;

	(void)state;
	begin("3", 64);
	open_at(1, OWNER, 7);
	for (uint32_t i = 0; i < SHARE + 8;
	     i++) { /* from two nodes, which have shares of their own */
		uint32_t host = i % 2 * 2;
		struct request *out = send_to(host, open_at(host, OWNER, 0), 7, 10, 100 * CN_MS);

		if (out->status != COLLNET_OK) {
			assert_int_equal(out->status, COLLNET_ELIMIT);
			assert_non_null(strstr(out->text, "endpoint 7"));
			full++;
		}
		assert_true(full == (i < SHARE ? 0 : i + 1 - SHARE));
		free(out);
	}
	one_message(open_at(0, OWNER + 1, 5), open_at(1, OWNER + 1, 8));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owner__others_do_not_reach),
		cmocka_unit_test(owner__unread_messages_stop_nobody_else),
		cmocka_unit_test(owner__share_of_the_flows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
