/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages between engines: their kinds, and the messages about teams. The transport
 * delivers them in order and exactly once.
 *
 *   JOIN     this node's ranks of a job, and the port of its team's transport (wireup.h)
 *   COMMIT   all ranks are known, and the receiver's team by this id (wireup.h)
 *   LEAVE, END, FAIL   a rank leaves, the last one has left, the team has failed
 *   STARTED  so many operations have started here (unexpected_limit.h)
 *   CALLED   so many operations have been called here (op_deadline.c)
 *
 * LEAVE, END and FAIL go to the nodes that announced the job. A stale record at another node is
 * detected when it is used: a JOIN or COMMIT that names a dead team is answered by END. So
 * announcements are hints, cached in a bounded table.
 *
 * The claims of a split (split.c) carry the same information as JOIN.
 *
 * A team id identifies one team of one engine.
 */
#ifndef CN_CONTROL_H
#define CN_CONTROL_H

#include "proto/node.h"

struct cn_engine;
struct cn_engine_peer;
struct cn_join;
struct cn_team;
struct cn_transport;

/* The first byte of a message, and the fields that follow with their sizes. */
enum cn_control {
	CN_CONTROL_JOIN = 1,	/* team id 4, port 2, ranks 4, topology 4, owner 8, the receiver's
				 * team id 4 (0: not known), job, count 2, and as often first 4,
				 * gap 2, n 2; Mbit/s of the link 4 (0: not known) */
	CN_CONTROL_COMMIT = 2,	/* team id 4, the receiver's team id 4, 1: its COMMIT is missing */
	CN_CONTROL_LEAVE = 3,	/* team id 4, rank 4, n 4, dead 1: it has called n operations. Not
				 * through the team's transport: the rank died before the team
				 * was ready on its node */
	CN_CONTROL_END = 4,	/* team id 4, 1: never ready here: no rank of the team is left
				 * here. Through the team's transport, without id and flag:
				 * its last message */
	CN_CONTROL_FAIL = 5,	/* team id 4, code 1 and flags, text */
	CN_CONTROL_STARTED = 6, /* team id 4, n 4: the first n operations have started here */
	CN_CONTROL_CALLED = 7,	/* team id 4, n 4, late 8, ask 1: all ranks here have called the
				 * first n operations, those in late no more; ask: CALLED is due */
	CN_CONTROL_ENDPOINT = 16, /* from here on: endpoint messages (endpoint.h) */
};

#define CN_FAIL_FORMING	      0x80u /* the team was still forming */
#define CN_FAIL_CONTRADICTION 0x40u /* the nodes' announcements of the job conflict */
#define CN_CONTROL_MAX	      548   /* longest message, bytes: the smallest MTU's payload */

/* Dispatches a message about a team. False: no buffer (RNR); it will be retransmitted. */
bool cn_control_deliver(struct cn_engine *e, cn_time now, struct cn_peer *p, const uint8_t *data,
			size_t len);
/* The same for a message that came through a team's transport: LEAVE, FAIL, STARTED
 * and CALLED. */
void cn_control_deliver_team(struct cn_team *t, struct cn_peer *p, const uint8_t *data, size_t len);
/* Records a peer's JOIN, taking over its ranges; NULL: not recorded. *more: ranks added since the
 * last one. */
struct cn_join *cn_control_record_join(struct cn_engine *e, struct cn_engine_peer *m,
				       struct cn_join *in, const char *job, uint32_t *more);
/* END was received through the team's transport. */
void cn_control_team_ended(struct cn_team *t, cn_time now, struct cn_peer *p);
/* Notify the nodes to which the team is known. */
void cn_control_leave(struct cn_team *t, uint32_t rank, uint32_t posted, bool dead);
/* A rank died while the team forms: notifies the nodes to which it has committed, where it may be
 * ready. */
void cn_control_died_forming(struct cn_team *t, uint32_t rank);
void cn_control_end(struct cn_team *t);
void cn_control_fail(struct cn_team *t, int code, const char *text);
/* FAIL to the transport's peers from x->failed on, without the pending queue. False: no buffer. */
bool cn_control_fail_peers(struct cn_transport *x, const struct cn_err *why);
/* Sends CALLED to a peer of the team's transport, if there is a buffer. */
void cn_control_called(struct cn_team *t, struct cn_peer *p, uint32_t n, uint64_t late, bool ask);

#endif
