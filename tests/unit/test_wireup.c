/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/wireup.c on a simulated cluster: jobs on random subsets of the nodes become ready, with
 * loss, and beside peers that are established but silent. WIREUP_HOSTS and WIREUP_JOBS ask for
 * another cluster and more jobs.
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

#define OWNER 1000u
#define SEED  90210u

struct rank {
	struct cn_done done; /* first */
	struct cn_sim *sim;
	uint32_t told;
	int status;
	cn_time at;
	char text[CN_ERR_TEXT];
	struct cn_member *member;
	uint32_t host;
};

struct cluster {
	struct cn_topo *topo;
	struct cn_sim *sim;
	uint32_t hosts;
	uint64_t random;
};

static void joined(struct cn_done *d, int status, const char *text)
{
	struct rank *r = (struct rank *)(void *)d;

	r->told++;
	r->status = status;
	r->at = cn_sim_now(r->sim);
	snprintf(r->text, sizeof(r->text), "%s", text);
}

static void build(struct cluster *c, uint32_t hosts, uint32_t loss, uint64_t seed)
{
	struct cn_sim_faults f = { .loss = loss };
	struct cn_sim_config s;
	char shape[16];
	struct cn_err err;

	snprintf(shape, sizeof(shape), "%u", hosts);
	assert_int_equal(cn_topo_shape(shape, 100000000, 0, 100000000, 0, &c->topo, &err),
			 COLLNET_OK);
	cn_sim_config_init(&s);
	s.topo = c->topo;
	s.seed = seed;
	s.engine.node.max_peers = hosts;
	assert_int_equal(cn_sim_new(&s, &c->sim, &err), COLLNET_OK);
	c->hosts = hosts;
	c->random = seed;
	/* Until all have met, which the rounds of hellos bring about. */
	for (uint32_t i = 0, n = 0; n < hosts * (hosts - 1); i++) {
		assert_true(i < 60);
		cn_sim_run(c->sim, cn_sim_now(c->sim) + 1000 * CN_MS);
		n = 0;
		for (uint32_t a = 0; a < hosts; a++) {
			struct cn_node *node = cn_engine_node(cn_sim_engine(c->sim, a));

			for (uint32_t b = 0; b < cn_node_peers(node); b++) {
				n += cn_peer_alive(cn_node_peer(node, b));
			}
		}
	}
	cn_sim_fault(c->sim, CN_TOPO_NONE, 2, &f);
}

static void destroy(struct cluster *c)
{
	cn_sim_free(c->sim);
	cn_topo_free(c->topo);
}

static uint32_t draw(struct cluster *c, uint32_t n)
{
	c->random = cn_mix64(c->random + 1);
	return (uint32_t)(c->random % n);
}

static void leave(struct cluster *c, struct rank *r)
{
	if (r->member != NULL) {
		cn_team_leave(r->member, cn_sim_now(c->sim), false);
		cn_sim_kick(c->sim, r->host);
	}
	r->member = NULL;
}

/* A job of n ranks, one a host, on a random subset of the first `from` hosts; the time until all
 * were ready. at_once: each leaves as soon as it is ready. The name is the same for all jobs, as a
 * launcher without job ids gives it. */
static cn_time run_job(struct cluster *c, uint32_t n, uint32_t from, uint32_t number, bool at_once)
{
	cn_time begin = cn_sim_now(c->sim), last = begin, until = begin + 30000 * CN_MS;
	struct rank *r = calloc(n, sizeof(*r));
	uint8_t *used = calloc(from, 1);
	uint32_t told = 0;
	struct cn_err err;

	assert_non_null(r);
	assert_non_null(used);
	for (uint32_t i = 0; i < n; i++) {
		do {
			r[i].host = draw(c, from);
		} while (used[r[i].host]);
		used[r[i].host] = 1;
		r[i].done.fn = joined;
		r[i].sim = c->sim;
		cn_sim_run(c->sim, cn_sim_now(c->sim) + draw(c, 2000) * CN_US);
		if (cn_team_join(cn_sim_engine(c->sim, r[i].host), cn_sim_now(c->sim), OWNER, "job",
				 i, n, until, &r[i].done, &r[i].member, &err) != COLLNET_OK) {
			fail_msg("job %u: %s", number, err.text);
		}
		cn_sim_kick(c->sim, r[i].host);
	}
	while (told < n && cn_sim_step(c->sim, until + 100 * CN_MS)) {
		while (told < n && r[told].told > 0) {
			told++;
		}
		for (uint32_t i = 0; at_once && i < n; i++) {
			if (r[i].told > 0) {
				leave(c, &r[i]);
			}
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		if (r[i].told != 1 || r[i].status != COLLNET_OK) {
			fail_msg(
				"job %u of %u on %u hosts: rank %u on host %u told %u times, \"%s\"",
				number, n, c->hosts, i, r[i].host, r[i].told, r[i].text);
		}
		last = r[i].at > last ? r[i].at : last;
	}
	for (uint32_t i = 0; i < n; i++) {
		leave(c, &r[i]);
		cn_sim_run(c->sim, cn_sim_now(c->sim) + draw(c, 500) * CN_US);
	}
	free(used);
	free(r);
	return last - begin;
}

static void run_subsets(uint32_t hosts, uint32_t jobs, uint32_t loss, uint64_t seed, bool at_once)
{
	static const uint32_t sizes[] = { 4, 8, 16, 2, 28 };
	cn_time longest = 0;
	struct cluster c;

	build(&c, hosts, loss, seed);
	for (uint32_t k = 0; k < jobs; k++) {
		uint32_t n = sizes[k % 5] < hosts ? sizes[k % 5] : hosts;
		cn_time t = run_job(&c, n, hosts, k, at_once);

		longest = t > longest ? t : longest;
	}
	print_message("seed %llu: %u jobs on %u hosts, loss %u ppm: all ready, longest %llu us\n",
		      (unsigned long long)seed, jobs, hosts, loss,
		      (unsigned long long)(longest / CN_US));
	destroy(&c);
}

/* Every rank of every job becomes ready, whichever the subset. */
static void wireup__subsets(void **state)
{
	const char *hosts = getenv("WIREUP_HOSTS"), *jobs = getenv("WIREUP_JOBS");

	(void)state;
	if (hosts != NULL) {
		run_subsets((uint32_t)atoi(hosts), jobs != NULL ? (uint32_t)atoi(jobs) : 100, 0,
			    SEED, false);
		return;
	}
	run_subsets(32, 40, 0, SEED, false);
	run_subsets(64, 20, 0, SEED + 1, false);
}

static void wireup__subsets_with_loss(void **state)
{
	(void)state;
	run_subsets(32, 10, 10000, SEED + 2, false);
	run_subsets(32, 10, 50000, SEED + 3, false);
}

/* A rank that is ready calls nothing and leaves, before others have all that makes them ready. */
static void wireup__leave_at_once(void **state)
{
	(void)state;
	run_subsets(16, 60, 0, SEED + 5, true);
	run_subsets(16, 20, 10000, SEED + 6, true);
	run_subsets(16, 20, 50000, SEED + 7, true);
}

/* Most of the nodes are established but silent: those that answer come together all the same, in a
 * time that the silent ones bound by their pace. */
static void wireup__beside_silent_peers(void **state)
{
	const uint32_t hosts = 116, real = 16;
	struct cluster c;
	cn_time t;

	(void)state;
	build(&c, hosts, 0, SEED + 4);
	for (uint32_t k = 0; k < c.topo->nlinks; k++) {
		for (uint32_t h = real; h < hosts; h++) {
			if (c.topo->links[k].a == c.topo->hosts[h] ||
			    c.topo->links[k].b == c.topo->hosts[h]) {
				cn_sim_cut(c.sim, k, 2, true);
			}
		}
	}
	t = run_job(&c, 8, real, 0, false);
	print_message("%u silent peers: ready after %llu us\n", hosts - real,
		      (unsigned long long)(t / CN_US));
	assert_true(t < 200 * CN_MS); /* of virtual time: 8 calls within 2 ms each, 115 peers at 0.1
					 ms */
	destroy(&c);
}

/* A job of n ranks on two hosts, each on its host by a bit of `placed`; all get the same status. */
static int run_two(struct cluster *c, const uint8_t *placed, uint32_t n, const char *words)
{
	const cn_time until = cn_sim_now(c->sim) + 2000 * CN_MS;
	struct rank *r = calloc(n, sizeof(*r));
	struct cn_err err;
	int status;

	assert_non_null(r);
	for (uint32_t i = 0; i < n; i++) {
		r[i].host = placed[i];
		r[i].done.fn = joined;
		r[i].sim = c->sim;
		assert_int_equal(cn_team_join(cn_sim_engine(c->sim, r[i].host), cn_sim_now(c->sim),
					      OWNER, "placed", i, n, until, &r[i].done,
					      &r[i].member, &err),
				 COLLNET_OK);
		cn_sim_kick(c->sim, r[i].host);
	}
	cn_sim_run(c->sim, until + 100 * CN_MS);
	status = r[0].status;
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(r[i].told, 1);
		assert_int_equal(r[i].status, status);
		if (strstr(r[i].text, words) == NULL) {
			fail_msg("rank %u: %s", i, r[i].text);
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		leave(c, &r[i]);
	}
	cn_sim_run(c->sim, cn_sim_now(c->sim) + 500 * CN_MS);
	free(r);
	return status;
}

/* However many ranks a node has in turn with the others, they fit a JOIN; where they do not, the
 * error says so on both nodes. */
static void wireup__placements(void **state)
{
	const uint32_t n = 600;
	uint8_t placed[600];
	struct cluster c;

	(void)state;
	build(&c, 2, 0, SEED + 8);
	for (uint32_t i = 0; i < n; i++) {
		placed[i] = i % 2;
	}
	assert_int_equal(run_two(&c, placed, n, ""), COLLNET_OK);
	for (uint32_t i = 0; i < n; i++) {
		placed[i] = i >= n / 3;
	}
	assert_int_equal(run_two(&c, placed, n, ""), COLLNET_OK);
	for (uint32_t i = 0; i < n; i++) {
		placed[i] = (uint8_t)draw(&c, 2);
	}
	assert_int_equal(run_two(&c, placed, n, "are too scattered"), COLLNET_ELIMIT);
	destroy(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wireup__subsets),
		cmocka_unit_test(wireup__subsets_with_loss),
		cmocka_unit_test(wireup__leave_at_once),
		cmocka_unit_test(wireup__beside_silent_peers),
		cmocka_unit_test(wireup__placements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
