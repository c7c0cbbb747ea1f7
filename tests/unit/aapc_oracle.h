/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Networks for tests of sched/alltoall/aapc.h, and an oracle that knows only paths: every message
 * once, no link twice in a phase, synchronisations exactly the transitive reduction of the messages
 * that share links.
 */
#ifndef AAPC_ORACLE_H
#define AAPC_ORACLE_H

#include "sched/alltoall/aapc.h"

#define AAPC_HOSTS    32u
#define AAPC_MESSAGES (AAPC_HOSTS * (AAPC_HOSTS - 1))
#define AAPC_LINKS    256u

extern uint64_t aapc_seed;
uint32_t aapc_below(uint32_t n);

struct aapc_net {
	struct cn_topo *topo;
	struct cn_tree *tree; /* with a root of its own: for paths only */
	struct cn_aapc *a;
	struct cn_aapc_sync *sync, *sync_too;
};

void aapc_net_text(struct aapc_net *n, const char *text);
void aapc_net_shape(struct aapc_net *n, const char *shape);
void aapc_net_free(struct aapc_net *n);

/*
 * `hosts` hosts on `switches` switches. Kind 0: a random tree; 1: a chain; 2: a star; 3: deep, with
 * most hosts on few switches.
 */
void aapc_net_random(struct aapc_net *n, uint32_t hosts, uint32_t switches, uint32_t kind);
const char *aapc_host_name(const struct aapc_net *n, uint32_t place);

struct aapc_oracle {
	const struct aapc_net *net;
	uint32_t n, nlinks;			 /* messages, directed links of net->tree */
	struct cn_aapc_message m[AAPC_MESSAGES]; /* by phase, then sender */
	bool uses[AAPC_MESSAGES][AAPC_LINKS];
	bool edge[AAPC_MESSAGES][AAPC_MESSAGES];  /* earlier, later: they share a link */
	bool reach[AAPC_MESSAGES][AAPC_MESSAGES]; /* from, to */
};

struct aapc_oracle *aapc_oracle(const struct aapc_net *net);

/* Phases are the bound; no two messages of a phase share a link; the list by phase has the same
 * messages. */
void aapc_check_phases(const struct aapc_oracle *b);
bool aapc_listed(const struct cn_aapc_message *list, uint32_t n, const struct cn_aapc_message *m);

/*
 * Both ends list exactly the edges of the transitive reduction between different senders: so they
 * suffice, none is redundant, and both ends agree. Returns their number.
 */
uint32_t aapc_check_syncs(struct aapc_oracle *b);
void aapc_check_all(const struct aapc_net *net);

#endif
