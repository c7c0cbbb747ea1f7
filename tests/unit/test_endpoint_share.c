/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/endpoint*.c and flow.c: what an endpoint may take of its node's buffers and pairs,
 * whatever its sender believes or does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint_fixture.h"

/* Frames that wait unread at a node. */
static uint32_t unread(const struct endpoint_fixture *w, uint32_t node)
{
	const struct cn_pool *pool = &w->engine[node]->endpoints->pool;

	return pool->count - pool->free;
}

static int send_one(struct endpoint_fixture *w, struct cn_endpoint *ep, uint16_t to, uint64_t bytes,
		    cn_time timeout)
{
	struct endpoint_request *out = endpoint_send_to(w, ep, "b", to, bytes, 1, timeout);
	int status = endpoint_wait_for(w, out, 2 * timeout);

	endpoint_drop(out);
	return status;
}

/* Few flows, and a buffer for each frame of a flow. */
static void few_flows(struct cn_engine_config *c)
{
	c->node.pool_frames = CN_EP_FLOWS_LEAST / 4;
}

/* A sender closes and opens again after each message that nobody reads: the pairs that it had stay
 * charged to the receiver's owner, whose share of the buffers is all that it takes. */
static void share__of_one_that_opens_again(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, few_flows);
	struct cn_endpoint *a, *b = endpoint_open_at(w, 1, 7);
	struct cn_endpoints *s = w->engine[1]->endpoints;
	const uint32_t share = s->max_flows / CN_EP_SHARES;
	struct endpoint_request *in;
	uint32_t whole = 0;

	(void)state;
	for (uint32_t n = 0; n < 2 * share; n++) {
		a = endpoint_open_at(w, 0, 5);
		for (uint32_t k = 0; k < CN_EP_CREDIT; k++) {
			int status = send_one(w, a, 7, 100, 50 * CN_MS);

			assert_int_equal(status, n < share ? COLLNET_OK : COLLNET_ELIMIT);
			whole += status == COLLNET_OK;
		}
		cn_endpoint_close(a, w->now);
		endpoint_run(w, CN_MS);
	}
	assert_int_equal(endpoint_stats(w, 1).busy, 0);
	assert_int_equal(unread(w, 1), share * CN_EP_CREDIT);
	assert_int_equal(b->account->flows, share);
	for (uint32_t n = 0; n < whole; n++) {
		in = endpoint_recv_at(w, b, 100, SECOND);
		endpoint_assert_ok(w, in);
		endpoint_assert_got(in, "a", 5, 100, 1);
		endpoint_drop(in);
	}
	assert_int_equal(s->nflows, 0);
	endpoint_one_message(w, endpoint_open_at(w, 0, 5), b, 100000, true);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__of_one_that_opens_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
