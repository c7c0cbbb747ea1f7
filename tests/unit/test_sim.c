/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/sim/core: whole clusters; hosts with their overheads; and that one seed gives one run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/sim/core/job.h"
#include "sim_net.h"

#define BEGINNING 1000000000u
#define SEED	  20261

/* ---- whole clusters ------------------------------------------------------------------- */

struct cluster {
	struct cn_topo *topo;
	struct cn_sim *sim;
	uint64_t hash;	 /* of what was seen, bytes too */
	uint64_t timing; /* without the bytes */
	uint64_t sights, received, sent;
	struct cn_sim_record first; /* received; without its frame */
};

static void see(void *arg, const struct cn_sim_record *s)
{
	struct cluster *c = arg;
	uint64_t h = cn_mix64(s->at ^ (uint64_t)s->kind << 60 ^ (uint64_t)s->link << 40 ^
			      (uint64_t)s->end << 39 ^ (uint64_t)s->len << 20);

	c->timing = cn_mix64(c->timing ^ h);
	c->hash = cn_mix64(c->hash ^ h);
	for (size_t i = 0; i < s->len; i++) {
		c->hash = (c->hash ^ s->frame[i]) * 1099511628211u;
	}
	if (s->kind == CN_SIM_RECEIVED && c->received++ == 0) {
		c->first = *s;
	}
	c->sent += s->kind == CN_SIM_SENT;
	c->sights++;
}

static struct cluster *cluster(const char *shape, uint64_t seed,
			       void (*change)(struct cn_sim_config *c))
{
	struct cluster *c = calloc(1, sizeof(*c));
	struct cn_sim_config config;
	struct cn_err err = { 0 };

	assert_non_null(c);
	if (cn_topo_shape(shape, 100000000, 43, 1000000000, 45, &c->topo, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	cn_sim_config_init(&config);
	config.topo = c->topo;
	config.seed = seed;
	config.engine.node.max_peers = 64;
	config.engine.node.pool_frames = 256;
	if (change != NULL) {
		change(&config);
	}
	if (cn_sim_new(&config, &c->sim, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	cn_sim_trace(c->sim, see, c);
	return c;
}

static void cluster_end(struct cluster *c)
{
	cn_sim_free(c->sim);
	cn_topo_free(c->topo);
	free(c);
}

static void late(struct cn_sim_config *c)
{
	c->jitter = 10 * CN_MS;
	c->jitter_ppm = 10000;
}

/* A job that joins and exchanges `bytes` a pair; every byte right. */
static void exchange(struct cluster *c, uint64_t bytes)
{
	struct cn_job_config jc = { .local = 1, .bytes = bytes };
	struct cn_coll_args a = { .op = CN_OP_ALLTOALL,
				  .algorithm = "shuffle",
				  .contention_aware = true,
				  .bytes = bytes,
				  .deadline = 60000 * CN_MS };
	struct cn_job_result r;
	struct cn_err err = { 0 };
	struct cn_job *j;

	if (cn_job_new(c->sim, &jc, &j, &err) || cn_job_join(j, 20000 * CN_MS, &err) ||
	    cn_job_run(j, &a, 60000 * CN_MS, &r, &err)) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(r.ended, cn_job_ranks(j));
	assert_int_equal(r.wrong, 0);
	cn_job_free(j);
}

/* Operations in which some nodes only send, many in a row: they run ahead, by as much as the others
 * take and not more, and the numbers of operations come round. */
static void ahead__who_only_sends(void **state)
{
	static const struct {
		enum cn_op_kind op;
		const char *algorithm;
	} what[] = { { CN_OP_GATHER, "nearest" },
		     { CN_OP_GATHER, "windowed" },
		     { CN_OP_SCATTER, "furthest" },
		     { CN_OP_BCAST, "binomial" } };

	(void)state;
	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		struct cluster *c = cluster("3x2", 4 + i, i == 0 ? NULL : late);
		struct cn_job_config jc = { .local = 1, .bytes = 16 };
		struct cn_coll_args a = { .op = what[i].op,
					  .algorithm = what[i].algorithm,
					  .bytes = 16,
					  .deadline = 60000 * CN_MS };
		struct cn_job_result r;
		struct cn_err err = { 0 };
		struct cn_job *j;

		assert_int_equal(cn_job_new(c->sim, &jc, &j, &err), COLLNET_OK);
		assert_int_equal(cn_job_join(j, 20000 * CN_MS, &err), COLLNET_OK);
		if (cn_job_repeat(j, &a, 4500, 600000 * CN_MS, NULL, NULL, &r, &err) !=
		    COLLNET_OK) {
			fail_msg("%s", err.text);
		}
		assert_int_equal(r.ended, cn_job_ranks(j));
		assert_int_equal(r.wrong, 0);
		cn_job_free(j);
		cluster_end(c);
	}
}

static void faults(struct cn_sim_config *c)
{
	c->jitter = 50 * CN_US;
	c->jitter_ppm = 100000;
}

static struct cluster *run(const char *shape, uint64_t seed, bool lossy,
			   void (*change)(struct cn_sim_config *c))
{
	const struct cn_sim_faults f = { .loss = 10000,
					 .burst = 3,
					 .duplicate = 10000,
					 .corrupt = 500,
					 .reorder = 10000,
					 .late = 100 * CN_US };
	struct cluster *c = cluster(shape, seed, change);

	if (lossy) {
		cn_sim_fault(c->sim, CN_TOPO_NONE, 2, &f);
	}
	exchange(c, 100000);
	return c;
}

static void seed__same_run_bit_for_bit(void **state)
{
	(void)state;
	for (int lossy = 0; lossy < 2; lossy++) {
		struct cluster *x = run("4x2", SEED, lossy, faults);
		struct cluster *y = run("4x2", SEED, lossy, faults);

		assert_true(x->sights > 1000);
		assert_true(x->hash == y->hash && x->sights == y->sights);
		assert_true(cn_sim_now(x->sim) == cn_sim_now(y->sim));
		cluster_end(x);
		cluster_end(y);
	}
}

/*
 * Another seed is another run where something is drawn, and the same one where nothing is. Of two
 * nodes: more begin to tell each other things in an order that their epochs give.
 */
static void seed__another_run(void **state)
{
	static void (*const change[])(struct cn_sim_config * c) = { NULL, NULL, faults };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct cluster *x = run("2", SEED, i == 1, change[i]);
		struct cluster *y = run("2", SEED + 1, i == 1, change[i]);

		assert_int_equal(x->timing != y->timing, i > 0);
		assert_true(x->hash != y->hash); /* epochs */
		cluster_end(x);
		cluster_end(y);
	}
}

static void input(struct cn_sim_config *c)
{
	c->kind = CN_SIM_INPUT;
}

static void shared(struct cn_sim_config *c)
{
	c->kind = CN_SIM_SHARED;
	c->cut_through = true;
}

static void dynamic(struct cn_sim_config *c)
{
	c->kind = CN_SIM_DYNAMIC;
}

/* What nobody stands behind is not left over: buffers, memory of switches, events, timers. */
static void cluster__nothing_runs_away(void **state)
{
	static void (*const kinds[])(struct cn_sim_config * c) = { NULL, input, shared, dynamic };

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct cluster *c = run("4x2", SEED, true, kinds[i]);

		cn_sim_run(c->sim, cn_sim_now(c->sim) + 10000 * CN_MS);
		for (uint32_t d = 0; d < 2 * c->topo->nlinks; d++) {
			const struct dlink *l = &c->sim->links[d];

			assert_int_equal(l->queue.n + l->input.n + l->spread.n + l->ninputs, 0);
			assert_true(l->counters.peak <= 45);
		}
		for (uint32_t v = 0; v < c->topo->nvertices; v++) {
			assert_true(!c->topo->vertices[v].is_switch ||
				    c->sim->switches[v].used == 0);
		}
		assert_int_equal(c->sim->events.n, 0);
		assert_true(c->sim->polls.count <= cn_sim_hosts(c->sim));
		cluster_end(c);
	}
}

/* ---- hosts ---------------------------------------------------------------------------- */

static void overheads(struct cn_sim_config *c)
{
	c->o_send = 10000;
	c->o_recv = 20000;
	c->u_recv = 3000;
}

/* Two nodes say hello at once, and each answers the other's: by hand. */
static void host__overheads(void **state)
{
	struct cluster *c = cluster("2", SEED, overheads);
	cn_time arrives;

	(void)state;
	while (c->received == 0) {
		assert_true(cn_sim_step(c->sim, CN_NEVER));
	}
	arrives = BEGINNING + 10000 + 2 * sim_net_wire((uint32_t)c->first.len, 100000000) +
		  2 * 500 + 2000;
	assert_int_equal(c->first.at, arrives + 20000 + 3000);
	while (c->received < 4) {
		assert_true(cn_sim_step(c->sim, CN_NEVER));
	}
	/* broadcasts, and after them answers of the same length, which come at the same time */
	assert_int_equal(cn_sim_now(c->sim), 2 * (arrives + 23000) - BEGINNING);
	cluster_end(c);
}

/*
 * A host that is slow to receive keeps what its ring holds; what is beyond it is lost and counted.
 */
static void slow_host(struct cn_sim_config *c)
{
	c->o_recv = 2000 * CN_US;
	c->ring = 3;
}

static void host__ring(void **state)
{
	struct cluster *c = cluster("4", SEED, slow_host);
	struct cn_sim_totals t;
	uint32_t most = 0;

	(void)state;
	for (int i = 0; i < 200; i++) { /* foreign frames to host 0 */
		struct frame *f = sim_frame_new(c->sim);

		assert_non_null(f);
		f->len = 60;
		f->to = 0;
		memset(f->data, 0, 60);
		sim_host_send(c->sim, c->sim->hosts[1].out, f);
	}
	while (cn_sim_step(c->sim, BEGINNING + 20 * CN_MS)) {
		most = c->sim->hosts[0].ring.n > most ? c->sim->hosts[0].ring.n : most;
	}
	cn_sim_totals(c->sim, &t);
	assert_int_equal(most, 3);
	assert_true(t.ring_drops > 180);
	assert_int_equal(t.drops, 0);
	cluster_end(c);
}

static void host__paused(void **state)
{
	struct cluster *c = cluster("2", SEED, NULL);

	(void)state;
	cn_sim_pause(c->sim, 0, 30 * CN_MS);
	cn_sim_pause(c->sim, 1, 50 * CN_MS);
	cn_sim_pause(c->sim, 1, 10 * CN_MS); /* the longer one holds */
	cn_sim_run(c->sim, BEGINNING + 30 * CN_MS - 1);
	assert_int_equal(c->sent, 0);
	cn_sim_run(c->sim, BEGINNING + 50 * CN_MS - 1);
	assert_int_equal(c->sent, 2); /* one frame, two links */
	assert_int_equal(c->received, 0);
	cn_sim_run(c->sim, BEGINNING + 51 * CN_MS);
	assert_true(c->received >= 3);
	cluster_end(c);
}

static uint64_t epoch_of(const struct cluster *c, uint32_t host)
{
	return cn_node_config(cn_engine_node(cn_sim_engine(c->sim, host)))->epoch;
}

static void host__crash_and_restart(void **state)
{
	struct cluster *c = cluster("4", SEED, NULL);
	struct cn_sim_totals t;
	struct cn_err err = { 0 };
	uint64_t epoch = epoch_of(c, 2), received;

	(void)state;
	exchange(c, 3000);
	assert_int_equal(cn_sim_restart(c->sim, 2, &err), COLLNET_EINVAL);
	cn_sim_crash(c->sim, 2);
	assert_null(cn_sim_engine(c->sim, 2));
	cn_sim_crash(c->sim, 2); /* again: nothing */
	received = c->sim->links[c->sim->hosts[2].out].counters.frames;
	cn_sim_run(c->sim, cn_sim_now(c->sim) + 3000 * CN_MS);
	assert_int_equal(c->sim->links[c->sim->hosts[2].out].counters.frames, received);
	cn_sim_totals(c->sim, &t);
	assert_true(t.lost > 0); /* hellos that it did not hear */
	assert_int_equal(cn_sim_restart(c->sim, 2, &err), COLLNET_OK);
	assert_true(epoch_of(c, 2) != epoch);
	exchange(c, 3000);
	cluster_end(c);
}

/* Crashes at every moment of an exchange: the sanitizers look, and the others go on. */
static void host__crash_at_any_time(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 40; k++) {
		struct cluster *c = cluster("2x2", SEED + k, k % 2 == 0 ? input : shared);
		struct cn_job_config jc = { .local = 1, .bytes = 20000 };
		struct cn_coll_args a = { .op = CN_OP_ALLTOALL,
					  .bytes = 20000,
					  .deadline = 5000 * CN_MS };
		struct cn_job_result r;
		struct cn_err err = { 0 };
		struct cn_job *j;

		assert_int_equal(cn_job_new(c->sim, &jc, &j, &err), COLLNET_OK);
		assert_int_equal(cn_job_join(j, 5000 * CN_MS, &err), COLLNET_OK);
		assert_int_equal(cn_job_run(j, &a, 130 * CN_US * k, &r, &err), COLLNET_OK);
		cn_sim_crash(c->sim, k % 4);
		cn_sim_run(c->sim, cn_sim_now(c->sim) + 6000 * CN_MS);
		for (uint32_t i = 0; i < cn_job_ranks(j); i++) {
			assert_true(cn_job_rank(j, i)->done);
		}
		assert_int_equal(cn_sim_restart(c->sim, k % 4, &err), COLLNET_OK);
		cn_sim_run(c->sim, cn_sim_now(c->sim) + 100 * CN_MS);
		cn_job_free(j);
		cluster_end(c);
	}
}

/* Buffers are of an operation: one block, or one of every rank; for any, that of all. */
static void job__room_by_operation(void **state)
{
	static const struct {
		enum cn_op_kind op;
		uint64_t send, recv; /* blocks */
	} cases[] = {
		{ 0, 5, 5 },
		{ CN_OP_ALLTOALL, 5, 5 },
		{ CN_OP_ALLGATHER, 1, 5 },
		{ CN_OP_BCAST, 1, 1 },
		{ CN_OP_SCATTER, 5, 1 },
		{ CN_OP_GATHER, 1, 5 },
		{ CN_OP_ALLREDUCE, 1, 1 },
		{ CN_OP_REDUCE_SCATTER, 5, 1 },
		{ CN_OP_BARRIER, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t send = 1, recv = 1;

		cn_job_room(cases[i].op, 1000, 5, &send, &recv);
		assert_int_equal(send, cases[i].send * 1000);
		assert_int_equal(recv, cases[i].recv * 1000);
	}
}

/* ---- faults --------------------------------------------------------------------------- */

/* A deaf port sends, and hears nothing. */
static void cut__deaf(void **state)
{
	struct cluster *c = cluster("3", SEED, NULL);
	uint32_t heard = c->sim->hosts[0].out ^ 1;

	(void)state;
	cn_sim_cut(c->sim, c->sim->hosts[0].out / 2, c->sim->hosts[0].out % 2, true);
	cn_sim_run(c->sim, BEGINNING + 500 * CN_MS);
	assert_true(c->sim->links[heard].counters.frames > 0);
	assert_int_equal(cn_node_peers(cn_engine_node(cn_sim_engine(c->sim, 0))), 0);
	/* it is heard, but echoes nothing */
	assert_int_equal(cn_node_peers(cn_engine_node(cn_sim_engine(c->sim, 1))), 1);
	assert_non_null(cn_node_find(cn_engine_node(cn_sim_engine(c->sim, 1)), "h2"));
	assert_null(cn_node_find(cn_engine_node(cn_sim_engine(c->sim, 1)), "h0"));
	cn_sim_cut(c->sim, c->sim->hosts[0].out / 2, c->sim->hosts[0].out % 2, false);
	exchange(c, 1000);
	cluster_end(c);
}

static void new__refuses(void **state)
{
	struct cn_sim_config c;
	struct cn_topo *t;
	struct cn_sim *s;
	struct cn_err err = { 0 };

	(void)state;
	assert_int_equal(cn_topo_shape("2", 0, 0, 0, 0, &t, &err), COLLNET_OK);
	cn_sim_config_init(&c);
	assert_int_equal(cn_sim_new(&c, &s, &err), COLLNET_ETOPO);
	c.topo = t;
	c.rate = 0;
	assert_int_equal(cn_sim_new(&c, &s, &err), COLLNET_EINVAL);
	cn_sim_config_init(&c);
	c.topo = t;
	c.alpha_pct = 0;
	assert_int_equal(cn_sim_new(&c, &s, &err), COLLNET_EINVAL);
	c.alpha_pct = 1;
	c.engine.node.mtu = 100;
	assert_int_equal(cn_sim_new(&c, &s, &err), COLLNET_EINVAL);
	cn_sim_free(NULL);
	cn_topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(job__room_by_operation),
		cmocka_unit_test(seed__same_run_bit_for_bit),
		cmocka_unit_test(seed__another_run),
		cmocka_unit_test(ahead__who_only_sends),
		cmocka_unit_test(cluster__nothing_runs_away),
		cmocka_unit_test(host__overheads),
		cmocka_unit_test(host__ring),
		cmocka_unit_test(host__paused),
		cmocka_unit_test(host__crash_and_restart),
		cmocka_unit_test(host__crash_at_any_time),
		cmocka_unit_test(cut__deaf),
		cmocka_unit_test(new__refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
