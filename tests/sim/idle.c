/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every algorithm, with and without windows, on quiet networks under all oracles, that of idle
 * times above all (oracle_idle.c): an operation that waits for a timer is found here.
 *
 *   idle [--verbose]
 *
 * Exit status 1: a case failed. It is printed.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "tests/unit/reduction.h"

static const struct network {
	const char *shape;
	uint64_t rate, uplink;
} networks[] = {
	{ "5", 1000000000u, 0 },
	{ "4x2", 10000000000u, 10000000000u },
};

static const uint32_t windows[] = { COLLNET_WINDOW_AUTO, COLLNET_WINDOW_OFF, 8, 3 };
static const uint64_t sizes[] = { 64, 20000, 100000 };

#define HOSTS_MAX 16u

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool run(const struct cn_algorithm *g, const struct network *net, uint32_t window,
		uint64_t bytes, bool verbose)
{
	struct scenario s = { .seed = 1, .profile = PROFILE_NONE, .local = 1, .nops = 2 };
	struct cn_err err = { 0 };
	struct fixture fx;
	bool ok;

	if (cn_topo_shape(net->shape, net->rate, 43, net->uplink, 45, &s.topo, &err) !=
	    COLLNET_OK) {
		printf("%s\n", err.text);
		return false;
	}
	cn_sim_config_init(&s.config);
	s.config.topo = s.topo;
	s.hosts = s.ranks = s.topo->nhosts;
	s.config.engine.node.max_peers = s.hosts;
	s.depth = 1;
	s.deadline = SUCCESS_DEADLINE;
	for (uint32_t i = 0; i < s.nops; i++) {
		s.ops[i] = (struct op_plan){ .op = g->op,
					     .algorithm = g->name,
					     .contention_aware = true,
					     .window = window,
					     .bytes = g->op == CN_OP_BARRIER ? 0 : bytes };
	}
	ok = fixture_run(&fx, &s, verbose);
	if (!ok) {
		printf("%s %s, window %d, %llu bytes, %s: %s\n", cn_op_name(g->op), g->name,
		       (int)window, (unsigned long long)bytes, net->shape, fx.finding);
	}
	scenario_free(&s);
	return ok;
}

static bool is_case(const struct cn_algorithm *g, uint64_t bytes)
{
	return strcmp(g->name, "lr2") != 0 && /* not on every network */
	       !(cn_op_reduces(g->op) && !reduction_takes(g, false, bytes, HOSTS_MAX)) &&
	       !(g->op == CN_OP_BARRIER && bytes != sizes[0]) &&
	       !((g->op == CN_OP_ALLTOALL || g->op == CN_OP_REDUCE_SCATTER) && bytes > 20000);
}

int main(int argc, char **argv)
{
	const bool verbose = argc == 2 && strcmp(argv[1], "--verbose") == 0;
	uint32_t cases = 0, failed = 0;
	size_t n;
	const struct cn_algorithm *all = cn_algorithms(&n);

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < COUNT(networks); k++) {
			for (size_t w = 0; w < COUNT(windows); w++) {
				for (size_t b = 0; b < COUNT(sizes); b++) {
					if (is_case(&all[i], sizes[b])) {
						cases++;
						failed += !run(&all[i], &networks[k], windows[w],
							       sizes[b], verbose);
					}
				}
			}
		}
	}
	/* Frames that no request covers fill a window only after many messages. */
	for (size_t w = 1; w < 3; w++) {
		const struct network large = { "12x2", 10000000000u, 10000000000u };

		cases++;
		failed += !run(cn_algorithm_find(CN_OP_ALLTOALL, "aapc"), &large, windows[w], 20000,
			       verbose);
	}
	printf("%u cases, %u failed\n", cases, failed);
	return failed > 0;
}
