/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/turns.c, transport_output.c: how payers share the link of a node, whatever the number of
 * their teams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "engine_fixture.h"

#define TEAMS 40u
#define BLOCK ((size_t)200 * PAYLOAD)

/* Teams of two ranks, one on either node; the last one has another payer than the others. */
struct shared {
	struct engine_fixture *w;
	struct cn_member *member[TEAMS][2];
	struct engine_waiter waiter[TEAMS][2];
	uint8_t *send, *recv[TEAMS];
};

static struct shared *shared_teams(void (*change)(struct cn_engine_config *))
{
	struct shared *m = calloc(1, sizeof(*m));
	struct cn_err err;
	char job[16];

	m->w = engine_fixture(2, NULL, change);
	m->send = malloc(2 * BLOCK);
	memset(m->send, 1, 2 * BLOCK);
	for (uint32_t t = 0; t < TEAMS; t++) {
		m->recv[t] = calloc(1, 4 * BLOCK);
		snprintf(job, sizeof(job), "j%u", t);
		for (uint32_t r = 0; r < 2; r++) {
			cn_engine_set_payer(m->w->engines[r], t == TEAMS - 1 ? 2 : 1);
			assert_int_equal(cn_team_join(m->w->engines[r], m->w->now, OWNER, job, r, 2,
						      m->w->now + SECOND,
						      engine_begin_wait(m->w, &m->waiter[t][r]),
						      &m->member[t][r], &err),
					 COLLNET_OK);
		}
		engine_run(m->w, 10 * CN_MS);
		assert_int_equal(m->waiter[t][0].status, COLLNET_OK);
		assert_int_equal(m->waiter[t][1].calls, 1);
	}
	return m;
}

static void call(struct shared *m, uint32_t t, size_t bytes)
{
	struct cn_err err;

	for (uint32_t r = 0; r < 2; r++) {
		struct cn_coll_args a = engine_alltoall(bytes);

		a.send = m->send;
		a.recv = m->recv[t] + r * 2 * BLOCK;
		a.deadline = m->w->now + 100 * SECOND;
		assert_int_equal(cn_coll_post(m->member[t][r], m->w->now, &a,
					      engine_begin_wait(m->w, &m->waiter[t][r]), &err),
				 COLLNET_OK);
	}
}

/* What rank 1 of team t has received of rank 0. */
static size_t received(const struct shared *m, uint32_t t)
{
	size_t n = 0;

	for (size_t i = 0; i < BLOCK; i++) {
		n += m->recv[t][2 * BLOCK + i];
	}
	return n;
}

static void shared_end(struct shared *m)
{
	for (uint32_t t = 0; t < TEAMS; t++) {
		for (uint32_t r = 0; r < 2; r++) {
			cn_team_leave(m->member[t][r], m->w->now, false);
		}
		free(m->recv[t]);
	}
	engine_fixture_free(m->w);
	free(m->send);
	free(m);
}

/* Until the other payer's exchange has ended, all those of the first one have moved as much as it,
 * and some more that began before. */
static void assert_half(struct shared *m)
{
	size_t others = 0;

	for (uint32_t t = 0; t < TEAMS; t++) {
		call(m, t, BLOCK);
	}
	while (m->waiter[TEAMS - 1][1].calls == 0) {
		assert_true(engine_step(m->w, m->w->now + SECOND));
	}
	for (uint32_t t = 0; t < TEAMS - 1; t++) {
		others += received(m, t);
	}
	assert_uint_in_range(others, BLOCK / 2, 2 * BLOCK);
	while (m->waiter[0][0].calls == 0) {
		assert_true(engine_step(m->w, m->w->now + SECOND));
	}
	engine_run(m->w, SECOND);
	for (uint32_t t = 0; t < TEAMS; t++) {
		for (uint32_t r = 0; r < 2; r++) {
			assert_int_equal(m->waiter[t][r].calls, 1);
			assert_int_equal(m->waiter[t][r].status, COLLNET_OK);
		}
		assert_int_equal(received(m, t), BLOCK);
	}
}

static void payers_share_the_link(void **state)
{
	struct shared *m = shared_teams(NULL);

	(void)state;
	assert_half(m);
	shared_end(m);
}

static void a_window(struct cn_engine_config *c)
{
	c->window = 8;
}

/* The window opens by a few frames at a time. */
static void payers_share_a_window(void **state)
{
	struct shared *m = shared_teams(a_window);

	(void)state;
	assert_half(m);
	shared_end(m);
}

static void a_quantum(struct cn_engine_config *c)
{
	c->window = 64;
}

/* The team of node 1 for which node 0 sends the next frame; the frame is lost. */
static const struct cn_team *next_team(struct shared *m)
{
	struct cn_frame f;

	assert_true(cn_engine_output(m->w->engines[0], m->w->now, &f));
	return cn_transport_of_port(m->w->engines[1],
				    cn_wire_port(f.head + CN_ETH_HEADER,
						 (size_t)f.head_len - CN_ETH_HEADER))
		->team;
}

/* A payer's team that begins while another one sends is next when its quantum is used up, and both
 * send a quantum in turns. */
static void teams_take_turns_by_quantum(void **state)
{
	struct shared *m = shared_teams(a_quantum);
	struct cn_engine *e = m->w->engines[0];
	uint32_t quantum;

	(void)state;
	e->config.node.encapsulation = CN_ENCAPSULATION_UDP;
	quantum = cn_engine_quantum(e, e->window);
	assert_uint_in_range(quantum, 3, 8);
	call(m, 0, BLOCK);
	for (uint32_t i = 0; i < 2; i++) {
		assert_ptr_equal(next_team(m), m->member[0][1]->team);
	}
	call(m, 1, BLOCK);
	for (uint32_t i = 2; i < quantum; i++) {
		assert_ptr_equal(next_team(m), m->member[0][1]->team);
	}
	for (uint32_t i = 0; i < quantum; i++) {
		assert_ptr_equal(next_team(m), m->member[1][1]->team);
	}
	assert_ptr_equal(next_team(m), m->member[0][1]->team);
	e->config.node.encapsulation = CN_ENCAPSULATION_RAW;
	engine_run(m->w, SECOND);
	for (uint32_t t = 0; t < 2; t++) {
		assert_int_equal(m->waiter[t][1].status, COLLNET_OK);
		assert_int_equal(received(m, t), BLOCK);
	}
	shared_end(m);
}

/* A team without frames has had its turn: when its payer is next, that is another team's. */
static void turn_ends_without_frames(void **state)
{
	struct shared *m = shared_teams(a_quantum);
	struct cn_engine *e = m->w->engines[0];
	uint32_t quantum;

	(void)state;
	e->config.node.encapsulation = CN_ENCAPSULATION_UDP;
	quantum = cn_engine_quantum(e, e->window);
	call(m, 0, PAYLOAD);
	assert_ptr_equal(next_team(m), m->member[0][1]->team);
	call(m, 1, BLOCK);
	call(m, TEAMS - 1, BLOCK);
	for (uint32_t i = 0; i < quantum; i++) {
		assert_ptr_equal(next_team(m), m->member[TEAMS - 1][1]->team);
	}
	call(m, 0, BLOCK);
	assert_ptr_equal(next_team(m), m->member[1][1]->team);
	e->config.node.encapsulation = CN_ENCAPSULATION_RAW;
	engine_run(m->w, SECOND);
	assert_int_equal(received(m, 0), BLOCK);
	assert_int_equal(received(m, 1), BLOCK);
	assert_int_equal(received(m, TEAMS - 1), BLOCK);
	shared_end(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(payers_share_the_link),
		cmocka_unit_test(payers_share_a_window),
		cmocka_unit_test(teams_take_turns_by_quantum),
		cmocka_unit_test(turn_ends_without_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
