/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes with which no session is possible, in errors and in the node table. */
#ifndef CN_VERSION_MISMATCH_H
#define CN_VERSION_MISMATCH_H

#include "proto/node.h"

struct cn_engine;
struct cn_team;

/*
 * "; h3 speaks wire version 2, this node 3" for each such node, three at most; "" without one.
 * lost: a peer that is lost by silence, then only those nodes of the team `t` that share its
 * silence; NULL: all.
 */
void cn_version_mismatch_clause(const struct cn_team *t, cn_time now, const struct cn_peer *lost,
				char *text, size_t cap);
/* The name of one: the peer's, else the topology's for its address, else the address. The address
 * of a node that shares its name: both may be known by it. */
#define CN_VERSION_MISMATCH_NAME (COLLNET_NAME_MAX + 1)
void cn_version_mismatch_name(const struct cn_engine *e, const struct cn_foreign_version *s,
			      char name[CN_VERSION_MISMATCH_NAME]);

#endif
