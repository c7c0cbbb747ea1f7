/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranks that join on a simulated cluster, and a team of 4x2 nodes with links of any MTU. */
#ifndef CONTROL_TEAM_H
#define CONTROL_TEAM_H

#include "coll/control.h"
#include "tools/sim/core/sim.h"

#define CONTROL_OWNER 1000u
#define CONTROL_HOSTS 24u

struct control_rank {
	struct cn_done done; /* first */
	uint32_t told;
	int status;
	char text[CN_ERR_TEXT];
	struct cn_member *member;
};

void control_joined(struct cn_done *d, int status, const char *text);
uint32_t control_link_of(const struct cn_topo *t, uint32_t host);

#define CONTROL_NODES 8u

struct control_mtu_team {
	struct cn_sim *sim;
	struct cn_topo *topo;
	struct control_rank rank[CONTROL_HOSTS];
	cn_time begin;
};

void control_mtu_sim(struct control_mtu_team *m, const uint32_t *mtus, uint64_t seed, uint32_t loss,
		     uint32_t narrow_end);
void control_mtu_team(struct control_mtu_team *m, const uint32_t *mtus, uint64_t seed,
		      uint32_t loss, uint32_t narrow_end);

/* Runs until every join has completed; returns how long that took. */
cn_time control_mtu_wait(struct control_mtu_team *m);
void control_mtu_end(struct control_mtu_team *m);

#endif
