/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transports of a node, with what the engine keeps for each: the node's own (port 0), for
 * control messages between nodes and for endpoints, and one per team. They share the interface and
 * the global window W_g and nothing else: each has its own sequences, congestion windows and
 * buffers for early frames, so a team that does not read does not block the others.
 *
 * A team's transport is created with the team. It is connected to another node (proto/connect.h)
 * before this node commits to that node's team, so it is there when the first frame comes. When the
 * team ends, the transport sends END as its last message and closes: it lingers until all nodes
 * have acknowledged everything and sent END, too, or until the linger time has passed.
 */
#ifndef CN_TRANSPORT_H
#define CN_TRANSPORT_H

#include "coll/pending.h"
#include "coll/source.h"
#include "coll/turns.h"
#include "proto/connect.h"
#include "util/heap.h"

struct cn_engine;
struct cn_join;
struct cn_team;

#define CN_TRANSPORTS_MAX 4096u /* of teams, those that are closing included */

struct cn_transport {
	struct cn_engine *engine;
	struct cn_team *team; /* NULL: it is the node's own, or closing */
	struct cn_node *node;
	struct cn_source_ring sources;
	struct cn_pending_queue pending;
	struct cn_transport *next, *prev; /* in the engine's list, which begins with the node's own
					   */
	/* Links in the list of active ones, likewise; an inactive one has `timer` in the engine's
	 * heap `waiting`, if it has a deadline. */
	struct cn_transport *next_active, *prev_active;
	struct cn_turn turn; /* while active */
	bool active;
	bool activated;	 /* activated since the last check */
	cn_time idle_at; /* becomes inactive then, unless activated */
	struct cn_timer timer;
	cn_time team_at;  /* while inactive: its team's deadline */
	uint16_t port;	  /* place in the engine's table (12 bits), and generation << 12 */
	cn_time check_at; /* closing: next check whether it is finished */
	cn_time check_every;
	cn_time close_at; /* closing: end of the linger time; CN_NEVER: not closing */
	uint32_t id;	  /* of its team, also if that has ended */
	cn_time fail_at;  /* cn_transport_fail_team(): sends more FAIL; CN_NEVER: no more */
	uint32_t failed;  /* peers that were sent it, by index */
	bool *ended;	  /* [max_peers] END was received from the peer */
};

/* The node's own transport, of which the engine has the memory. */
int cn_transport_open_own(struct cn_transport *x, struct cn_engine *e,
			  const struct cn_node_ops *ops, struct cn_err *err);
/* A team's. NULL: no memory, or no port is free. */
struct cn_transport *cn_transport_open(struct cn_engine *e, struct cn_team *t);
/* The team has ended: its transport closes. */
void cn_transport_close(struct cn_transport *x, cn_time now);
/* A message about the team is lost, for want of memory: at the next expiry the team fails here,
 * and FAIL goes to all peers, as buffers allow. */
void cn_transport_fail_team(struct cn_transport *x);
/*
 * The transport may have work: a received frame, or an operation or message of its team. Only
 * active transports take part in the engine's calls, so idle or waiting teams cost no time.
 */
void cn_transport_activate(struct cn_transport *x);
/* Called when none has anything to send: deactivates transports without recent input, or whose team
 * is on this node alone, if only a frame, a timer, a call, or copies can give them work. */
void cn_transport_deactivate_idle(struct cn_engine *e, cn_time now);
/* The earliest deadline of inactive transports. */
cn_time cn_transport_wake_at(const struct cn_engine *e);
/* Handles deadlines of inactive transports: protocol timers expire, everything else activates
 * them. */
void cn_transport_wake(struct cn_engine *e, cn_time now);
/* Ends transports that are closing and finished; all: whatever they wait for. */
void cn_transport_reap(struct cn_engine *e, cn_time now, bool all);
void cn_transport_fini(struct cn_transport *x);

/* Connects a team's transport to that of the peer's team. False: no memory. */
bool cn_transport_connect(struct cn_transport *x, cn_time now, struct cn_peer *with,
			  const struct cn_join *j);
/* The engine's transport with this port; the node's own for 0 and for ports that are closed. */
struct cn_transport *cn_transport_of_port(struct cn_engine *e, uint16_t port);
cn_time cn_transport_deadline(const struct cn_transport *x);
void cn_transport_expire(struct cn_transport *x, cn_time now);

/*
 * Frames of several operations, or of messages, close the node's window, or the smaller one of an
 * operation. Unless an ACK request is outstanding, requests acknowledgements for all flights
 * clocked by them, and for those that wait for data: nodes still in an earlier operation send none.
 * True: there are requests to send.
 */
bool cn_transport_request_acks(struct cn_engine *e);
/* The next frame of any transport; false: there is none now. (transport_output.c) */
bool cn_transport_output(struct cn_engine *e, cn_time now, struct cn_frame *out);

/* Upcalls that all transports have in common (ctx: the transport). */
bool cn_transport_pull(void *ctx, cn_time now, struct cn_tx *out);
void cn_transport_acked(void *ctx, void *token, bool refused);
void cn_transport_refused(void *ctx, void *token);
bool cn_transport_resend(void *ctx, void *token, uint8_t *flags);
void cn_transport_lost(void *ctx, void *token);
/* True if the topology has a host of this name. */
bool cn_transport_listed(void *ctx, const char *name);
#define CN_TRANSPORT_UPCALLS                                                                       \
	.pull = cn_transport_pull, .acked = cn_transport_acked, .refused = cn_transport_refused,   \
	.resend = cn_transport_resend, .lost = cn_transport_lost, .listed = cn_transport_listed

#endif
