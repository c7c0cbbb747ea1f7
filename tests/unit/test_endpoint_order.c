/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/endpoint*.c: many flows at once, with small pools, losses and windows. Every message
 * arrives once, whole, and in the order of its flow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint_fixture.h"

#define EPS	   4
#define PER_FLOW   12
#define FLOW_BYTES (6 * PAYLOAD)

/*
 * Every endpoint of every node sends numbered messages to every endpoint of every node, its own
 * included; receives are posted now and then. Each message comes once, whole, and in the order of
 * its flow.
 */
struct storm {
	struct endpoint_fixture *w;
	uint64_t random;
	struct cn_endpoint *ep[NODES_MAX * EPS];
	uint32_t sent[NODES_MAX * EPS][NODES_MAX * EPS], came[NODES_MAX * EPS][NODES_MAX * EPS];
	struct endpoint_request *out[NODES_MAX * EPS][8], *in[NODES_MAX * EPS][4];
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

static void storm_came(struct storm *s, uint32_t to, struct endpoint_request *r)
{
	uint32_t from = (uint32_t)(r->got.from.node[0] - 'a') * EPS + r->got.from.endpoint - 1;
	uint32_t key = storm_key(from, to, s->came[from][to]++);

	endpoint_assert_got(r, endpoint_node_names[from / EPS], (uint16_t)(from % EPS + 1),
			    storm_bytes(key), key);
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
				endpoint_drop(s->out[i][k]);
				s->out[i][k] = NULL;
			}
			if (s->out[i][k] == NULL && s->sent[i][to] < PER_FLOW) {
				s->sent[i][to]++;
				s->out[i][k] = endpoint_send_to(s->w, s->ep[i],
								endpoint_node_names[to / EPS],
								(uint16_t)(to % EPS + 1),
								storm_bytes(key), key,
								600 * SECOND);
			}
		}
	}
	/* Receives complete in the order of posting, for they take messages in order; but their
	 * messages may end in another. So each is looked at in the order of posting. */
	for (uint32_t i = 0; i < all; i++) {
		struct endpoint_request **in = s->in[i];

		while (in[0] != NULL && in[0]->ended > 0) {
			storm_came(s, i, in[0]);
			endpoint_drop(in[0]);
			memmove(in, in + 1, 3 * sizeof(in[0]));
			in[3] = NULL;
		}
		for (uint32_t k = 0; k < 4; k++) {
			if (in[k] == NULL && cn_random(&s->random) % 16 == 0) {
				in[k] = endpoint_recv_at(s->w, s->ep[i], FLOW_BYTES, 600 * SECOND);
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
	s->w = endpoint_fixture(nodes, change);
	s->random = seed;
	for (uint32_t i = 0; i < all; i++) {
		s->ep[i] = endpoint_open_at(s->w, i / EPS, (uint16_t)(i % EPS + 1));
	}
	if (faults != NULL) {
		cn_hub_set_faults(s->w->hub, faults);
	}
	s->left = all * all * PER_FLOW;
	limit = s->w->now + 500 * SECOND;
	while (s->left > 0) {
		storm_turn(s);
		endpoint_step(s->w);
		if (s->w->now > limit) {
			fail_msg("%u messages did not come", s->left);
		}
	}
	endpoint_run(s->w, 5 * SECOND);
	for (uint32_t i = 0; i < all; i++) {
		cn_endpoint_close(s->ep[i], s->w->now);
		for (uint32_t k = 0; k < 8; k++) {
			if (s->out[i][k] != NULL) {
				assert_int_equal(s->out[i][k]->status, COLLNET_OK);
				endpoint_drop(s->out[i][k]);
			}
		}
		for (uint32_t k = 0; k < 4; k++) {
			if (s->in[i][k] != NULL) {
				assert_int_equal(s->in[i][k]->status, COLLNET_EINVAL);
				endpoint_drop(s->in[i][k]);
			}
		}
	}
	endpoint_run(s->w, 5 * SECOND);
	for (uint32_t i = 0; i < nodes; i++) {
		assert_int_equal(s->w->engine[i]->endpoints->nflows, 0);
		if (change == NULL && faults == NULL) {
			assert_int_equal(endpoint_stats(s->w, i).busy, 0);
			assert_int_equal(endpoint_stats(s->w, i).data_resent, 0);
		}
	}
	endpoint_assert_clean(s->w);
	endpoint_fixture_free(s->w);
	free(s);
}

static void order__of_many_flows(void **state)
{
	(void)state;
	storm(3, SEED, NULL, NULL);
}

static void order__with_a_small_pool(void **state)
{
	(void)state;
	storm(3, SEED + 1, endpoint_small_pool, NULL);
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
	storm(2, SEED + 4, endpoint_small_pool, &five);
}

static void window_of_5(struct cn_engine_config *c)
{
	c->window = 5;
}

static void order__in_a_window(void **state)
{
	struct endpoint_fixture *w;
	struct cn_endpoint *a, *b;

	(void)state;
	storm(3, SEED + 5, window_of_5, NULL);
	w = endpoint_fixture(2, window_of_5);
	a = endpoint_open_at(w, 0, 5);
	b = endpoint_open_at(w, 1, 7);
	endpoint_one_message(w, a, b, 1 << 20, false);
	/* Not by delayed acknowledgements: 712 frames by fives would take three seconds. */
	assert_true(w->now < SECOND + 600 * CN_MS);
	assert_int_equal(endpoint_stats(w, 0).window_peak, 5);
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* Two messages are being received, and the first is cut off: its receive is the next one again, and
 * a later call comes behind it. */
static void recv__that_waits_again(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *other = endpoint_open_at(w, 0, 6),
			   *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *in[3], *out[3];

	(void)state;
	in[0] = endpoint_recv_at(w, b, 1 << 20, 10 * SECOND);
	in[1] = endpoint_recv_at(w, b, 1 << 20, 10 * SECOND);
	out[0] = endpoint_send_to(w, a, "b", 7, 1 << 20, 0, 10 * SECOND);
	while (b->recv_first->next != NULL) {
		endpoint_step(w);
	}
	out[1] = endpoint_send_to(w, other, "b", 7, 1 << 20, 1, 10 * SECOND);
	while (b->recv_first != NULL) {
		endpoint_step(w);
	}
	cn_endpoint_close(a, w->now);
	assert_int_equal(out[0]->status, COLLNET_EINVAL);
	endpoint_drop(out[0]);
	while (b->recv_first == NULL) {
		endpoint_step(w);
	}
	in[2] = endpoint_recv_at(w, b, 100, 10 * SECOND);
	endpoint_assert_ok(w, in[1]);
	endpoint_assert_got(in[1], "a", 6, 1 << 20, 1);
	for (uint32_t i = 0; i < 3; i += 2) {
		out[i] = endpoint_send_to(w, other, "b", 7, 100, i, 10 * SECOND);
		endpoint_assert_ok(w, in[i]);
		endpoint_assert_got(in[i], "a", 6, 100, i);
	}
	for (uint32_t i = 0; i < 3; i++) {
		endpoint_assert_ok(w, out[i]);
		endpoint_drop(out[i]);
		endpoint_drop(in[i]);
	}
	endpoint_assert_clean(w);
	endpoint_fixture_free(w);
}

/* The endpoint of the next frame of node a, which is lost; 0: none goes. */
static uint32_t next_to(struct endpoint_fixture *w)
{
	struct cn_frame f;
	struct cn_wire wire;

	while (cn_engine_output(w->engine[0], w->now, &f)) {
		assert_int_equal(cn_wire_get(f.head + CN_ETH_HEADER,
					     (size_t)f.head_len - CN_ETH_HEADER + f.payload_len,
					     &wire),
				 CN_WIRE_OK);
		if (wire.type == CN_TYPE_MESSAGE) {
			return wire.stream >> 16;
		}
	}
	return 0;
}

/* Messages of an endpoint to two others take turns of as many frames as a super-frame may have; the
 * turn of one that has ended is not the next one's. */
static void order__in_turns(void **state)
{
	struct endpoint_fixture *w = endpoint_fixture(2, NULL);
	struct cn_endpoint *a = endpoint_open_at(w, 0, 5), *b = endpoint_open_at(w, 1, 7);
	struct endpoint_request *out[4];
	uint32_t turn;

	(void)state;
	w->engine[0]->config.node.encapsulation = CN_ENCAPSULATION_UDP; /* as if of super-frames */
	w->engine[0]->burst = 8;
	turn = cn_engine_quantum(w->engine[0], w->engine[0]->window);
	endpoint_open_at(w, 1, 8);
	assert_int_equal(turn, 8);
	for (uint32_t n = 0; n < 6; n++) { /* the window opens */
		endpoint_one_message(w, a, b, 1 << 20, false);
		out[0] = endpoint_send_to(w, a, "b", 8, 10, n, SECOND);
		endpoint_assert_ok(w, out[0]);
		endpoint_drop(out[0]);
	}
	endpoint_run(w, SECOND);
	out[0] = endpoint_send_to(w, a, "b", 7, 2 * turn * PAYLOAD - CN_EP_HEAD, 1, SECOND);
	out[1] = endpoint_send_to(w, a, "b", 8, (turn + 1) * PAYLOAD - CN_EP_HEAD, 1, SECOND);
	for (uint32_t n = 0; n < 3 * turn + 1; n++) {
		assert_int_equal(next_to(w), n / turn % 2 == 0 ? 7 : 8);
	}
	/* After one frame of its turn there is no more for endpoint 8. */
	out[2] = endpoint_send_to(w, a, "b", 7, (turn + 1) * PAYLOAD - CN_EP_HEAD, 1, SECOND);
	out[3] = endpoint_send_to(w, a, "b", 8, PAYLOAD - CN_EP_HEAD, 1, SECOND);
	for (uint32_t n = 0; n < turn + 2; n++) {
		assert_int_equal(next_to(w), n == turn ? 8 : 7);
	}
	for (uint32_t n = 0; n < 4; n++) {
		endpoint_wait_for(w, out[n], 2 * SECOND);
		endpoint_drop(out[n]);
	}
	endpoint_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order__of_many_flows), cmocka_unit_test(order__with_a_small_pool),
		cmocka_unit_test(order__with_loss),	cmocka_unit_test(order__in_a_window),
		cmocka_unit_test(order__in_turns),	cmocka_unit_test(recv__that_waits_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
