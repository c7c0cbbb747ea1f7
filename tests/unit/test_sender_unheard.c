/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/proto/sender.c: frames of sessions in which the peer was never heard, as it is not ready,
 * beside a global window of one frame.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pair.h"

#define SEED 20261129u

/* Data that node a does not bring to a node, so many frames each; UINT32_MAX: all. */
static uint32_t lost[PAIR_NODES];

static bool filter(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	const unsigned type = f[CN_ETH_HEADER + 2] & 0x7;

	(void)p;
	(void)len;
	if (from != 0 || type == CN_TYPE_HELLO || lost[to] == 0) {
		return true;
	}
	lost[to] -= lost[to] != UINT32_MAX && type == CN_TYPE_MESSAGE;
	return false;
}

/* Node a has a window of one frame, and has heard nothing in its sessions. */
static struct pair *begin(uint32_t nodes)
{
	struct pair *p = pair_up(nodes, SEED);

	for (uint32_t i = 1; i < nodes; i++) {
		pair_peer(p, 0, i)->live.last_session_rx = 0;
		lost[i] = 0;
	}
	cn_node_window(p->nodes[0].node)->limit = 1;
	p->own_limit = 1;
	p->filter = filter;
	return p;
}

/* Two of them take nothing. Their frames leave the window to others, and not to each other. */
static void sender__two_never_heard(void **state)
{
	struct pair *p = begin(4);

	(void)state;
	lost[1] = lost[2] = UINT32_MAX;
	pair_send(p, 0, 1, 1, 100);
	pair_send(p, 0, 2, 1, 100);
	while (p->flows[0][1].sent + p->flows[0][2].sent < 2) {
		assert_true(pair_step(p, p->now + 1000 * CN_MS));
	}
	pair_send(p, 0, 3, 10, 100);
	pair_run(p, 1000 * CN_MS);
	assert_int_equal(p->flows[0][3].acked, 10);
	assert_int_equal(p->flows[0][1].acked + p->flows[0][2].acked, 0);
	lost[1] = lost[2] = 0;
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	assert_int_equal(cn_node_window(p->nodes[0].node)->in_flight, 0);
	pair_free(p);
}

/* The first frame is lost, and lost again beside the window, which the second one is in then. It
 * does not keep the first one back. */
static void sender__lost_beside_the_window(void **state)
{
	struct pair *p = begin(2);

	(void)state;
	lost[1] = 2;
	pair_send(p, 0, 1, 4, 100);
	assert_true(pair_run_flows(p, 3000 * CN_MS));
	assert_int_equal(p->flows[0][1].received, 4);
	assert_int_equal(lost[1], 0);
	assert_int_equal(cn_node_window(p->nodes[0].node)->in_flight, 0);
	pair_free(p);
}

/* Node b is heard meanwhile, and its frame is lost beside the window: it finds room there, although
 * only frames for c, which takes nothing, are in it and no new one waits. */
static void sender__heard_beside_the_window(void **state)
{
	struct pair *p = begin(3);

	(void)state;
	lost[1] = 2;
	lost[2] = UINT32_MAX;
	pair_send(p, 0, 1, 1, 100);
	pair_send(p, 0, 2, 1, 100);
	while (p->flows[0][2].sent == 0 || lost[1] > 0) {
		assert_true(pair_step(p, p->now + 1000 * CN_MS));
	}
	pair_send(p, 1, 0, 1, 100);
	pair_run(p, 1000 * CN_MS);
	assert_int_equal(p->flows[1][0].received, 1);
	assert_int_equal(p->flows[0][1].received, 1);
	assert_int_equal(p->flows[0][2].received, 0);
	lost[2] = 0;
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	assert_int_equal(cn_node_window(p->nodes[0].node)->in_flight, 0);
	pair_free(p);
}

/* What an earlier incarnation sent is of another session. */
static void sender__heard_before_a_restart(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	p->gaps_allowed = true;
	pair_exchange(p, 0, 1);
	assert_true(pair_peer(p, 0, 1)->live.last_session_rx > 0);
	pair_stop(p, 1);
	pair_start(p, 1);
	assert_true(pair_run_up(p, 3000 * CN_MS));
	assert_int_equal(pair_peer(p, 0, 1)->live.last_session_rx, 0);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sender__two_never_heard),
		cmocka_unit_test(sender__lost_beside_the_window),
		cmocka_unit_test(sender__heard_beside_the_window),
		cmocka_unit_test(sender__heard_before_a_restart),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
