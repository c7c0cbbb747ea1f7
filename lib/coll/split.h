/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Division of a team (cn_team_split()): one allgather of the parent carries what each node must
 * know of every other one, so that no message per pair of nodes is needed.
 *
 * When a rank calls, its node makes the team of its color, which has an id and a port and waits (a
 * division). The rank's claim in the allgather is color, key, id and port. A node that has all
 * claims has the information of all JOINs (wireup.h), and knows that each node has this team: it
 * stores the records that JOINs would have made, connects, and the team is ready.
 *
 * A late node has no session yet when the first frames of the new team arrive. They are deferred
 * (cn_division_defer()) and processed once it has one; they are checked only then.
 *
 * Claims pass through other nodes of the parent, in the sessions of the parent. A forged claim
 * establishes no session, because nonces are derived from those of the two nodes (proto/connect.h).
 */
#ifndef CN_SPLIT_H
#define CN_SPLIT_H

#include "coll/engine.h"

struct cn_division;
struct cn_member;
struct cn_team;

/* t->wireup.wake_at of a division has passed: if all claims are known, the team continues with
 * them. */
void cn_division_expire(struct cn_team *t, cn_time now);
/* The last rank here leaves a team that was divided: new teams whose claims are all there go on
 * with them while it knows its nodes. */
void cn_division_parent_ends(struct cn_team *parent, cn_time now);
/* A peer sent JOIN for the team, as nodes of the parent did before there were claims: it fails. */
void cn_division_joined(struct cn_team *t, const struct cn_peer *p);
/* A frame for a division: true, and it is deferred until there is a session. */
bool cn_division_defer(struct cn_team *t, const struct cn_rx_frame *f);
/* NULL is ignored. */
void cn_division_free(struct cn_engine *e, struct cn_division *d);
/*
 * The member has been taken from its team; its call may still be outstanding in the parent. If it
 * was the last one, and waited for the team, other nodes are notified that the split failed.
 */
void cn_split_leave(const struct cn_member *m, bool waited, bool dead);

#endif
