/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>

#include <cmocka.h>

#include "control_team.h"

void control_joined(struct cn_done *d, int status, const char *text)
{
	struct control_rank *r = (struct control_rank *)(void *)d;

	r->told++;
	r->status = status;
	snprintf(r->text, sizeof(r->text), "%s", text);
}

uint32_t control_link_of(const struct cn_topo *t, uint32_t host)
{
	uint32_t k = 0;

	while (t->links[k].a != t->hosts[host] && t->links[k].b != t->hosts[host]) {
		k++;
	}
	return k;
}

void control_mtu_sim(struct control_mtu_team *m, const uint32_t *mtus, uint64_t seed, uint32_t loss,
		     uint32_t narrow_end)
{
	const struct cn_sim_faults all = { .loss = loss };
	struct cn_sim_faults narrow = { .loss = loss, .mtu = 1400 };
	struct cn_sim_config c;
	struct cn_err err;

	assert_int_equal(cn_topo_shape("4x2", 100000000, 0, 100000000, 0, &m->topo, &err),
			 COLLNET_OK);
	cn_sim_config_init(&c);
	c.topo = m->topo;
	c.seed = seed;
	c.mtus = mtus;
	c.engine.node.mtu = mtus != NULL ? 9000 : 1500;
	c.engine.node.max_peers = CONTROL_NODES;
	assert_int_equal(cn_sim_new(&c, &m->sim, &err), COLLNET_OK);
	cn_sim_fault(m->sim, CN_TOPO_NONE, 2, &all);
	if (narrow_end < 3) { /* 0 or 1: one direction of a trunk; 2: both */
		uint32_t link = 0;

		while (!m->topo->vertices[m->topo->links[link].a].is_switch ||
		       !m->topo->vertices[m->topo->links[link].b].is_switch) {
			link++;
		}
		cn_sim_fault(m->sim, link, narrow_end, &narrow);
	}
	cn_sim_run(m->sim, cn_sim_now(m->sim) + 2000 * CN_MS); /* all have met */
	m->begin = cn_sim_now(m->sim);
	memset(m->rank, 0, sizeof(m->rank));
}

void control_mtu_team(struct control_mtu_team *m, const uint32_t *mtus, uint64_t seed,
		      uint32_t loss, uint32_t narrow_end)
{
	struct cn_err err;

	control_mtu_sim(m, mtus, seed, loss, narrow_end);
	for (uint32_t i = 0; i < CONTROL_NODES; i++) {
		m->rank[i].done.fn = control_joined;
		assert_int_equal(cn_team_join(cn_sim_engine(m->sim, i), m->begin, CONTROL_OWNER,
					      "job", i, CONTROL_NODES, m->begin + 30000 * CN_MS,
					      &m->rank[i].done, &m->rank[i].member, &err),
				 COLLNET_OK);
		cn_sim_kick(m->sim, i);
	}
}

cn_time control_mtu_wait(struct control_mtu_team *m)
{
	uint32_t n = 0;

	while (n < CONTROL_NODES && cn_sim_step(m->sim, m->begin + 40000 * CN_MS)) {
		n = 0;
		for (uint32_t i = 0; i < CONTROL_NODES; i++) {
			n += m->rank[i].told;
		}
	}
	return cn_sim_now(m->sim) - m->begin;
}

void control_mtu_end(struct control_mtu_team *m)
{
	for (uint32_t i = 0; i < CONTROL_NODES; i++) {
		assert_int_equal(m->rank[i].told, 1);
		cn_team_leave(m->rank[i].member, cn_sim_now(m->sim), false);
	}
	cn_sim_free(m->sim);
	cn_topo_free(m->topo);
}
