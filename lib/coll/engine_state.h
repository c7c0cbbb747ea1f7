/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's state, for the files of lib/coll; its interface is engine.h. */
#ifndef CN_ENGINE_STATE_H
#define CN_ENGINE_STATE_H

#include "coll/engine.h"
#include "coll/join.h"
#include "coll/task.h"
#include "coll/transport.h"
#include "util/bucket.h"

struct cn_team;
struct cn_endpoints;

/* The engine's state of a peer (cn_peer_user()). */
struct cn_engine_peer {
	struct cn_peer *peer;
	struct cn_join_list joins; /* teams it has advertised */
	uint32_t warnings;	   /* log lines about it */
};

#define CN_DEFERRED_FRAMES 1024u
#define CN_JOB_LOGS	   64u
#define CN_JOB_SLOTS	   1024u

/* Bytes that copies within this node move between frames, for operations and for messages: some
 * microseconds. */
#define CN_COPY_CHUNK	(64u * 1024)
#define CN_AFTER_FRAMES 0 /* the deadline of these copies */

struct cn_engine {
	struct cn_engine_config config;
	struct cn_transport own; /* the node's own, and the list of all */
	struct cn_transport *ports[CN_TRANSPORTS_MAX];
	struct cn_heap waiting; /* transports that are not active, by what they wait for at most */
	uint8_t generations[CN_TRANSPORTS_MAX]; /* so that late frames match no transport */
	uint32_t last_port;			/* table index last assigned */
	struct cn_turns turns;			/* of active transports */
	struct cn_transport *sending;		/* its quantum is not used up; NULL: nobody's */
	uint32_t quantum_used;			/* frames that it has sent in a row */
	struct collnet_stats ended;		/* counters of transports that have ended */
	uint32_t window; /* W_g: by Eq. 4, or as configured; COLLNET_WINDOW_OFF */
	struct cn_adaptive_window adaptive; /* of exchanges on an unknown network */
	uint32_t brief, burst;	/* frames that the link carries in BRIEF_TIME, if the network is
				 * known, and in BURST_TIME */
	struct cn_team **teams; /* [max_teams]; NULL: free */
	uint32_t places;	/* from there on, all are free */
	struct cn_team *jobs[CN_JOB_SLOTS]; /* by a hash of owner and job, the newest first */
	uint32_t nteams;
	uint32_t nforming;     /* forming teams; only these process messages about forming teams */
	uint32_t topology;     /* hash of the topology, which all nodes of a job must share */
	uint32_t link_mbit;    /* Mbit/s of this node's link; 0: not known */
	uint32_t last_team_id; /* the last one given to a team */
	uint64_t plans;	       /* schedules planned */
	uint64_t scheduled;    /* bytes of all teams' operations, with their schedules */
	uint64_t selections;   /* algorithms selected */
	uint64_t prepared;     /* id of the last persistent operation */
	struct cn_endpoints *endpoints;
	struct cn_turns copies; /* of operations */
	struct cn_tasks tasks;
	cn_time deadline; /* earliest of teams and operations; see cn_engine_touch() */
	bool touched;	  /* it must be found anew */
	bool closing;
	bool no_carrier; /* of the interface */
	bool starved;	 /* an operation has frames to send, but none in flight that will open the
			  * window */
	uint64_t payer;	 /* of the members that join: cn_engine_set_payer() */
	struct cn_bucket job_log[CN_JOB_LOGS]; /* log lines, by hash of the payer */
	struct cn_bucket job_log_notes;	       /* log lines about suppressed ones */
	uint32_t job_log_suppressed;
	uint32_t deferred_frames; /* deferred for teams being split, at most CN_DEFERRED_FRAMES */
};

/*
 * The quantum: frames sent in a row to one node, so that the link can send them as a super-frame.
 * It is an eighth of this window and of W_g, because smaller port buffers (from which W_g follows)
 * need smaller bursts, or what the link carries in a tenth of a millisecond, up to the window, if
 * the network is known; and at most what it carries in half a millisecond, because bursts of two
 * nodes delay each other at a port (TCP also sizes its super-frames by time). 1 where the link
 * sends single frames.
 */
uint32_t cn_engine_quantum(const struct cn_engine *e, uint32_t window);
/* The error of unfinished work when the engine shuts down, and of every later call. */
int cn_engine_refuse(const struct cn_engine *e, struct cn_err *err);
/* A deadline was added or removed. */
void cn_engine_touch(struct cn_engine *e);
/* What all transports know about a peer of port 0. */
void cn_engine_peer_info(const struct cn_engine *e, cn_time now, const struct cn_peer *p,
			 struct collnet_node_info *out);
struct cn_engine_peer *cn_engine_peer_of(const struct cn_peer *p); /* NULL: never up */

#endif
