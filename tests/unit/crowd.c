/* SPDX-License-Identifier: BSD-2-Clause */
#include "crowd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint8_t pattern(uint32_t from, uint32_t to, uint32_t i)
{
	return (uint8_t)(from * 7 + to * 13 + i + 1);
}

struct crowd *crowd_join(struct engine_fixture *w, const char *job, uint32_t here, uint32_t there,
			 uint64_t payer)
{
	struct crowd *c = calloc(1, sizeof(*c));
	struct cn_err err;

	assert_true(c != NULL && here + there <= CROWD_RANKS);
	c->w = w;
	c->ranks = here + there;
	for (uint32_t r = 0; r < c->ranks; r++) {
		const size_t bytes = (size_t)c->ranks * CROWD_BYTES;

		c->rank[r].send = malloc(bytes);
		c->rank[r].recv = malloc(bytes);
		c->rank[r].blocks = calloc(c->ranks, sizeof(*c->rank[r].blocks));
		for (uint32_t d = 0; d < c->ranks; d++) {
			c->rank[r].blocks[d] = (struct cn_block){ (uint64_t)d * CROWD_BYTES,
								  CROWD_BYTES };
		}
		for (uint32_t i = 0; i < bytes; i++) {
			c->rank[r].send[i] = pattern(r, i / CROWD_BYTES, i % CROWD_BYTES);
		}
		cn_engine_set_payer(w->engines[r < here ? 0 : 1], payer);
		assert_int_equal(cn_team_join(w->engines[r < here ? 0 : 1], w->now, OWNER, job, r,
					      c->ranks, w->now + SECOND,
					      engine_begin_wait(w, &c->rank[r].joined),
					      &c->rank[r].member, &err),
				 COLLNET_OK);
	}
	engine_run(w, SECOND);
	for (uint32_t r = 0; r < c->ranks; r++) {
		assert_int_equal(c->rank[r].joined.calls, 1);
		assert_int_equal(c->rank[r].joined.status, COLLNET_OK);
	}
	return c;
}

void crowd_free(struct crowd *c)
{
	for (uint32_t r = 0; r < c->ranks; r++) {
		if (c->rank[r].member != NULL) {
			cn_team_leave(c->rank[r].member, c->w->now, false);
		}
		free(c->rank[r].send);
		free(c->rank[r].recv);
		free(c->rank[r].blocks);
	}
	free(c);
}

struct cn_coll_args crowd_alltoall(struct crowd *c, uint32_t rank, bool vector)
{
	struct cn_coll_args a = engine_alltoall(CROWD_BYTES);

	a.algorithm = NULL;
	if (vector) {
		a.op = CN_OP_ALLTOALLV;
		a.bytes = 0;
		a.blocks.send = a.blocks.recv = c->rank[rank].blocks;
	}
	a.send = c->rank[rank].send;
	a.recv = c->rank[rank].recv;
	a.deadline = CN_NEVER;
	return a;
}

int crowd_call(struct crowd *c, uint32_t rank, const struct cn_coll_args *a, struct cn_err *err)
{
	memset(c->rank[rank].recv, 0, (size_t)c->ranks * CROWD_BYTES);
	return cn_coll_post(c->rank[rank].member, c->w->now, a,
			    engine_begin_wait(c->w, &c->rank[rank].done), err);
}

void crowd_call_all(struct crowd *c, uint32_t first, bool vector)
{
	struct cn_err err;

	for (uint32_t r = first; r < c->ranks; r++) {
		const struct cn_coll_args a = crowd_alltoall(c, r, vector);

		assert_int_equal(crowd_call(c, r, &a, &err), COLLNET_OK);
	}
}

uint32_t crowd_done(const struct crowd *c)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < c->ranks; r++) {
		n += c->rank[r].done.calls;
	}
	return n;
}

void crowd_check(struct crowd *c)
{
	for (uint32_t r = 0; r < c->ranks; r++) {
		assert_int_equal(c->rank[r].done.calls, 1);
		assert_int_equal(c->rank[r].done.status, COLLNET_OK);
		for (uint32_t i = 0; i < c->ranks * CROWD_BYTES; i++) {
			assert_int_equal(c->rank[r].recv[i],
					 pattern(i / CROWD_BYTES, r, i % CROWD_BYTES));
		}
	}
}
