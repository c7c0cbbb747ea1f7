/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's state, for the files of lib/coll; its interface is engine.h. */
#ifndef CN_ENGINE_STATE_H
#define CN_ENGINE_STATE_H

#include "coll/engine.h"
#include "coll/join.h"
#include "coll/pending.h"
#include "coll/source.h"

struct cn_team;
struct cn_endpoints;

/* What the engine keeps with a peer (cn_peer_user()). */
struct cn_engine_peer {
	struct cn_peer *peer;
	struct cn_join_list joins; /* teams that it has advertised */
	uint32_t complaints;	   /* lines of the log about it */
};

struct cn_engine {
	struct cn_engine_config config;
	struct cn_node *node;
	uint32_t window;	/* W_g: by Eq. 4, or as configured; COLLNET_WINDOW_OFF */
	struct cn_team **teams; /* [max_teams] by slot; NULL: free */
	uint8_t *generation;	/* [max_teams] of the slot, so that an old frame finds nobody */
	uint32_t nteams;
	uint32_t topology;     /* hash of the topology, which all nodes of a job must share */
	uint32_t last_team_id; /* the last one given to a team */
	struct cn_source_ring sources;
	struct cn_endpoints *endpoints;
	struct cn_pending_queue pending;
	cn_time deadline; /* earliest of teams and operations; see cn_engine_touch() */
	bool touched;	  /* it must be found anew */
	bool closing;
};

/*
 * How many frames in a row go to one node before the next one has its turn, so that the link can
 * send them as a super-frame: an eighth of this window and of W_g, since what a port receives in a
 * burst is the smaller the smaller the ports' buffers are, from which W_g follows. 1 where the link
 * sends single frames.
 */
uint32_t cn_engine_quantum(const struct cn_engine *e, uint32_t window);
/* A deadline was added or removed. */
void cn_engine_touch(struct cn_engine *e);
struct cn_engine_peer *cn_engine_peer_of(struct cn_peer *p); /* NULL: never came up */
uint32_t cn_engine_topology_hash(const struct cn_topo *t);   /* 0: no topology */

#endif
