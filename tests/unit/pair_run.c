/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a pair until something is true. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pair.h"

bool pair_is_up(struct pair *p, uint32_t at, uint32_t of)
{
	struct cn_peer *peer = pair_peer(p, at, of);

	return peer != NULL && cn_peer_alive(peer);
}

static bool all_up(struct pair *p)
{
	for (uint32_t a = 0; a < p->count; a++) {
		for (uint32_t b = 0; b < p->count; b++) {
			if (a != b && p->nodes[a].node != NULL && p->nodes[b].node != NULL &&
			    !pair_is_up(p, a, b)) {
				return false;
			}
		}
	}
	return true;
}

static bool all_arrived(struct pair *p)
{
	for (uint32_t a = 0; a < p->count; a++) {
		for (uint32_t b = 0; b < p->count; b++) {
			const struct pair_flow *f = &p->flows[a][b];

			if (f->received < f->total || f->acked < f->total) {
				return false;
			}
		}
	}
	return true;
}

static bool run_until(struct pair *p, bool (*done)(struct pair *), cn_time duration)
{
	cn_time limit = p->now + duration;

	pair_poke(p);
	while (!done(p)) {
		if (!pair_step(p, limit)) {
			return done(p);
		}
	}
	return true;
}

bool pair_run_up(struct pair *p, cn_time duration)
{
	bool up = run_until(p, all_up, duration);

	pair_run(p, 100 * CN_US); /* the last hello leaves the line */
	return up;
}

cn_time pair_run_down(struct pair *p, uint32_t at, uint32_t of, cn_time duration)
{
	cn_time from = p->now;

	pair_poke(p);
	while (pair_is_up(p, at, of) && pair_step(p, from + duration)) {
	}
	return p->now - from;
}

bool pair_run_flows(struct pair *p, cn_time duration)
{
	return run_until(p, all_arrived, duration);
}

struct pair *pair_up(uint32_t nodes, uint64_t seed)
{
	struct pair *p = pair_new(nodes, seed, NULL);

	if (!pair_run_up(p, 2000 * CN_MS)) {
		fail_msg("seed %llu: not up", (unsigned long long)seed);
	}
	return p;
}

void pair_exchange(struct pair *p, uint32_t a, uint32_t b)
{
	p->flows[a][b].sent = p->flows[a][b].total = 0;
	p->flows[a][b].received = p->flows[a][b].acked = 0;
	p->flows[b][a].sent = p->flows[b][a].total = 0;
	p->flows[b][a].received = p->flows[b][a].acked = 0;
	pair_send(p, a, b, 20, 500);
	pair_send(p, b, a, 20, 500);
	if (!pair_run_flows(p, 1500 * CN_MS)) {
		fail_msg("seed %llu: they do not talk: %u and %u of 20\n%s",
			 (unsigned long long)p->seed, p->flows[a][b].received,
			 p->flows[b][a].received, p->log);
	}
}

void pair_expect(struct pair *p, uint32_t at, uint32_t of)
{
	cn_peer_expect(p->nodes[at].node, p->now, pair_peer(p, at, of), 1);
}
