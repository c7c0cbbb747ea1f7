/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "two_jobs.h"

static void ended(struct cn_done *d, int status, const char *text)
{
	struct two_jobs_call *c = (struct two_jobs_call *)(void *)d;

	c->told++;
	c->status = status;
	snprintf(c->text, sizeof(c->text), "%s", text);
}

void two_jobs_run(struct two_jobs *c, cn_time duration)
{
	cn_sim_run(c->sim, cn_sim_now(c->sim) + duration);
}

void two_jobs_join(struct two_jobs *c, struct two_jobs_job *j, const char *name, uint32_t ranks)
{
	struct cn_err err;

	j->ranks = ranks;
	j->window = COLLNET_WINDOW_AUTO;
	for (uint32_t r = 0; r < ranks; r++) {
		j->calls[r][0] = (struct two_jobs_call){ .done.fn = ended };
		if (cn_team_join(cn_sim_engine(c->sim, r), cn_sim_now(c->sim), 1000, name, r, ranks,
				 cn_sim_now(c->sim) + 5 * SECOND, &j->calls[r][0].done,
				 &j->members[r], &err) != COLLNET_OK) {
			fail_msg("%s", err.text);
		}
		cn_sim_kick(c->sim, r);
	}
	two_jobs_run(c, SECOND);
	for (uint32_t r = 0; r < ranks; r++) {
		assert_int_equal(j->calls[r][0].told, 1);
		assert_int_equal(j->calls[r][0].status, COLLNET_OK);
	}
	j->send = calloc(TWO_JOBS_HOSTS, TWO_JOBS_CALLS << 20);
	j->recv = calloc(TWO_JOBS_HOSTS, TWO_JOBS_CALLS << 20);
	assert_non_null(j->send);
	assert_non_null(j->recv);
}

/* Job x has a rank on every host, job y on the first `ranks_y`. */
struct two_jobs *two_jobs_begin_with(uint32_t window, uint32_t pool, uint32_t ranks_y)
{
	struct two_jobs *c = calloc(1, sizeof(*c));
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
	two_jobs_run(c, 2 * SECOND);
	two_jobs_join(c, &c->x, "x", TWO_JOBS_HOSTS);
	two_jobs_join(c, &c->y, "y", ranks_y);
	return c;
}

struct two_jobs *two_jobs_begin(uint32_t window)
{
	return two_jobs_begin_with(window, 0, TWO_JOBS_HOSTS);
}

void two_jobs_end(struct two_jobs *c)
{
	cn_sim_free(c->sim);
	cn_topo_free(c->topo);
	free(c->x.send);
	free(c->x.recv);
	free(c->y.send);
	free(c->y.recv);
	free(c);
}

void two_jobs_call(struct two_jobs *c, struct two_jobs_job *j, uint32_t rank, uint32_t slot,
		   enum cn_op_kind op, uint64_t bytes, cn_time deadline)
{
	const struct cn_coll_args a = {
		.op = op,
		.bytes = bytes,
		.root = op == CN_OP_GATHER ? TWO_JOBS_HOSTS - 1 : 0,
		.permutation = CN_PERM_AUTO,
		.contention_aware = true,
		.window = j->window,
		.deadline = deadline == CN_NEVER ? CN_NEVER : cn_sim_now(c->sim) + deadline,
		.send = j->send,
		.recv = j->recv + ((uint64_t)rank << 20) * TWO_JOBS_CALLS,
	};
	struct cn_err err;

	j->calls[rank][slot] = (struct two_jobs_call){ .done.fn = ended };
	if (cn_coll_post(j->members[rank], cn_sim_now(c->sim), &a, &j->calls[rank][slot].done,
			 &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	cn_sim_kick(c->sim, rank);
}

void two_jobs_assert_done(const struct two_jobs_job *j, uint32_t slot)
{
	for (uint32_t r = 0; r < j->ranks; r++) {
		if (j->calls[r][slot].told != 1 || j->calls[r][slot].status != COLLNET_OK) {
			fail_msg("rank %u told %u times: \"%s\"", r, j->calls[r][slot].told,
				 j->calls[r][slot].text);
		}
	}
}

uint64_t two_jobs_refusals(struct two_jobs *c)
{
	struct collnet_stats s;
	uint64_t n = 0;

	for (uint32_t h = 0; h < TWO_JOBS_HOSTS; h++) {
		cn_engine_stats(cn_sim_engine(c->sim, h), &s, false);
		n += s.busy;
	}
	return n;
}
