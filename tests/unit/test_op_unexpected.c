/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/op_unexpected.c on a simulated cluster: a rank that does not call holds up its own job
 * alone, and nodes that call in time are not held up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine.h"
#include "tools/sim/core/sim.h"

#define OWNER  1000u
#define HOSTS  4u
#define SECOND (1000 * CN_MS)

struct call {
	struct cn_done done; /* first */
	uint32_t told;
	int status;
	char text[CN_ERR_TEXT];
};

struct job {
	struct cn_member *members[HOSTS];
	struct call calls[HOSTS][COLLNET_OUTSTANDING_MAX];
	uint32_t ranks, window; /* the window is of its operations */
	uint8_t *send, *recv;	/* of all calls: the bytes are not looked at */
};

struct cluster {
	struct cn_topo *topo;
	struct cn_sim *sim;
	struct job x, y;
};

static void ended(struct cn_done *d, int status, const char *text)
{
	struct call *c = (struct call *)(void *)d;

	c->told++;
	c->status = status;
	snprintf(c->text, sizeof(c->text), "%s", text);
}

static void run(struct cluster *c, cn_time duration)
{
	cn_sim_run(c->sim, cn_sim_now(c->sim) + duration);
}

static void join(struct cluster *c, struct job *j, const char *name, uint32_t ranks)
{
	struct cn_err err;

	j->ranks = ranks;
	j->window = COLLNET_WINDOW_AUTO;
	for (uint32_t r = 0; r < ranks; r++) {
		j->calls[r][0] = (struct call){ .done.fn = ended };
		if (cn_team_join(cn_sim_engine(c->sim, r), cn_sim_now(c->sim), OWNER, name, r,
				 ranks, cn_sim_now(c->sim) + 5 * SECOND, &j->calls[r][0].done,
				 &j->members[r], &err) != COLLNET_OK) {
			fail_msg("%s", err.text);
		}
		cn_sim_kick(c->sim, r);
	}
	run(c, SECOND);
	for (uint32_t r = 0; r < ranks; r++) {
		assert_int_equal(j->calls[r][0].told, 1);
		assert_int_equal(j->calls[r][0].status, COLLNET_OK);
	}
	j->send = calloc(HOSTS, COLLNET_OUTSTANDING_MAX << 20);
	j->recv = calloc(HOSTS, COLLNET_OUTSTANDING_MAX << 20);
	assert_non_null(j->send);
	assert_non_null(j->recv);
}

/* Job x has a rank on every host, job y on the first `ranks_y`. */
static struct cluster *begin_with(uint32_t window, uint32_t pool, uint32_t ranks_y)
{
	struct cluster *c = calloc(1, sizeof(*c));
	struct cn_sim_config s;
	struct cn_err err;

	assert_non_null(c);
	assert_int_equal(cn_topo_shape("4", 1000000000, 43, 1000000000, 43, &c->topo, &err),
			 COLLNET_OK);
	cn_sim_config_init(&s);
	s.topo = c->topo;
	s.engine.window = window;
	s.engine.node.pool_frames = pool > 0 ? pool : s.engine.node.pool_frames;
	assert_int_equal(cn_sim_new(&s, &c->sim, &err), COLLNET_OK);
	run(c, 2 * SECOND);
	join(c, &c->x, "x", HOSTS);
	join(c, &c->y, "y", ranks_y);
	return c;
}

static struct cluster *begin(uint32_t window)
{
	return begin_with(window, 0, HOSTS);
}

static void end(struct cluster *c)
{
	cn_sim_free(c->sim);
	cn_topo_free(c->topo);
	free(c->x.send);
	free(c->x.recv);
	free(c->y.send);
	free(c->y.recv);
	free(c);
}

static void call(struct cluster *c, struct job *j, uint32_t rank, uint32_t slot, enum cn_op_kind op,
		 uint64_t bytes, cn_time deadline)
{
	const struct cn_coll_args a = {
		.op = op,
		.bytes = bytes,
		.root = op == CN_OP_GATHER ? HOSTS - 1 : 0,
		.permutation = CN_PERM_AUTO,
		.contention_aware = true,
		.window = j->window,
		.deadline = cn_sim_now(c->sim) + deadline,
		.send = j->send,
		.recv = j->recv + ((uint64_t)rank << 20) * COLLNET_OUTSTANDING_MAX,
	};
	struct cn_err err;

	j->calls[rank][slot] = (struct call){ .done.fn = ended };
	if (cn_coll_post(j->members[rank], cn_sim_now(c->sim), &a, &j->calls[rank][slot].done,
			 &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	cn_sim_kick(c->sim, rank);
}

static void assert_done(const struct job *j, uint32_t slot)
{
	for (uint32_t r = 0; r < j->ranks; r++) {
		if (j->calls[r][slot].told != 1 || j->calls[r][slot].status != COLLNET_OK) {
			fail_msg("rank %u told %u times: \"%s\"", r, j->calls[r][slot].told,
				 j->calls[r][slot].text);
		}
	}
}

static uint64_t refusals(struct cluster *c)
{
	struct collnet_stats s;
	uint64_t n = 0;

	for (uint32_t h = 0; h < HOSTS; h++) {
		cn_engine_stats(cn_sim_engine(c->sim, h), &s, false);
		n += s.busy;
	}
	return n;
}

/* Ranks 0 to 2 of job x call operations of 1 MB in all, outstanding at once, and rank 3 does not.
 * An exchange of job y between the same nodes ends; so do those of x when rank 3 calls. */
static void one_does_not_call(enum cn_op_kind op, uint64_t bytes, uint32_t window)
{
	struct cluster *c = begin(window);

	for (uint32_t k = 0; k < COLLNET_OUTSTANDING_MAX; k++) {
		for (uint32_t r = 0; r < 3; r++) {
			call(c, &c->x, r, k, op, bytes, 60 * SECOND);
		}
	}
	run(c, 2 * SECOND);
	for (uint32_t r = 0; r < HOSTS; r++) {
		call(c, &c->y, r, 0, CN_OP_ALLTOALL, 100000, 5 * SECOND);
	}
	run(c, 6 * SECOND);
	assert_done(&c->y, 0);
	assert_int_equal(refusals(c), 0);
	for (uint32_t k = 0; k < COLLNET_OUTSTANDING_MAX; k++) {
		call(c, &c->x, 3, k, op, bytes, 60 * SECOND);
	}
	run(c, 20 * SECOND);
	for (uint32_t k = 0; k < COLLNET_OUTSTANDING_MAX; k++) {
		assert_done(&c->x, k);
	}
	end(c);
}

static void op_unexpected__a_rank_that_does_not_call_stops_no_other_job(void **state)
{
	const uint32_t windows[] = { COLLNET_WINDOW_AUTO, COLLNET_WINDOW_OFF };

	(void)state;
	for (int i = 0; i < 2; i++) {
		one_does_not_call(CN_OP_ALLTOALL, 250000, windows[i]);
		one_does_not_call(CN_OP_ALLGATHER, 250000, windows[i]);
		one_does_not_call(CN_OP_BCAST, 1000000, windows[i]);
		one_does_not_call(CN_OP_SCATTER, 250000, windows[i]);
	}
}

/*
 * The pool of host 3 is so small that it refuses frames of an operation of job x. They are not in
 * flight while they wait for their retransmission: the window stays open for job y, on hosts 0
 * to 2.
 */
static void op_unexpected__refused_frames_do_not_hold_the_window(void **state)
{
	struct cluster *c = begin_with(COLLNET_WINDOW_AUTO, 16, 3);

	(void)state;
	c->x.window = 8;
	c->y.window = 4;
	for (uint32_t r = 0; r < 3; r++) {
		call(c, &c->x, r, 0, CN_OP_GATHER, 100000, 60 * SECOND);
	}
	run(c, SECOND);
	assert_true(refusals(c) > 0);
	for (uint32_t r = 0; r < 3; r++) {
		call(c, &c->y, r, 0, CN_OP_ALLTOALL, 100000, 5 * SECOND);
	}
	run(c, 6 * SECOND);
	assert_done(&c->y, 0);
	call(c, &c->x, 3, 0, CN_OP_GATHER, 100000, 60 * SECOND);
	run(c, 2 * SECOND);
	assert_done(&c->x, 0);
	for (uint32_t h = 0; h < HOSTS; h++) {
		assert_int_equal(
			cn_node_window(cn_engine_node(cn_sim_engine(c->sim, h)))->in_flight, 0);
	}
	end(c);
}

/* The sender's error names the node and the operation. */
static void op_unexpected__deadline_names_the_node_that_has_not_started(void **state)
{
	struct cluster *c = begin(COLLNET_WINDOW_AUTO);

	(void)state;
	for (uint32_t r = 0; r < HOSTS; r++) {
		call(c, &c->x, r, 0, CN_OP_BARRIER, 0, 5 * SECOND);
	}
	run(c, SECOND);
	assert_done(&c->x, 0);
	for (uint32_t r = 0; r < 3; r++) {
		call(c, &c->x, r, 1, CN_OP_SCATTER, 1000000, 2 * SECOND);
	}
	run(c, 3 * SECOND);
	assert_int_equal(c->x.calls[0][1].told, 1);
	assert_int_equal(c->x.calls[0][1].status, COLLNET_ETIMEOUT);
	assert_non_null(strstr(c->x.calls[0][1].text,
			       "node h3 has not started operation 1 of job x"));
	end(c);
}

/* Operations of every kind, called one after the other and late by turns: every
 * one ends, more than an operation's number distinguishes on the wire. */
static void op_unexpected__many_operations_end(void **state)
{
	static const enum cn_op_kind kinds[] = { CN_OP_BCAST,	CN_OP_GATHER, CN_OP_ALLTOALL,
						 CN_OP_SCATTER, CN_OP_BCAST,  CN_OP_ALLGATHER,
						 CN_OP_GATHER };
	struct cluster *c = begin(COLLNET_WINDOW_AUTO);

	(void)state;
	for (uint32_t n = 0; n < 4200; n++) {
		uint32_t slot = n % COLLNET_OUTSTANDING_MAX, late = n / 8 % HOSTS;
		uint64_t bytes = n % 64 < 56 ? 10 : 60000;

		if (slot == 0 && n > 0) { /* the late one calls what the others have called */
			for (uint32_t k = 0; k < COLLNET_OUTSTANDING_MAX; k++) {
				uint32_t i = n - COLLNET_OUTSTANDING_MAX + k;

				call(c, &c->x, i / 8 % HOSTS, k, kinds[i % 7],
				     i % 64 < 56 ? 10 : 60000, 60 * SECOND);
			}
			run(c, 300 * CN_MS);
			for (uint32_t k = 0; k < COLLNET_OUTSTANDING_MAX; k++) {
				assert_done(&c->x, k);
			}
		}
		for (uint32_t r = 0; r < HOSTS; r++) {
			if (r != late) {
				call(c, &c->x, r, slot, kinds[n % 7], bytes, 60 * SECOND);
			}
		}
	}
	assert_int_equal(refusals(c), 0);
	end(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(op_unexpected__a_rank_that_does_not_call_stops_no_other_job),
		cmocka_unit_test(op_unexpected__refused_frames_do_not_hold_the_window),
		cmocka_unit_test(op_unexpected__deadline_names_the_node_that_has_not_started),
		cmocka_unit_test(op_unexpected__many_operations_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
