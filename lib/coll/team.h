/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Teams: this node's part of a job, with its local ranks (members). A team forms (wireup.h), is
 * ready, and may fail; it ends when its last member leaves.
 */
#ifndef CN_TEAM_H
#define CN_TEAM_H

#include "coll/engine.h"
#include "coll/join.h"
#include "coll/transport.h"
#include "coll/unexpected_limit.h"
#include "coll/unexpected_queue.h"
#include "coll/wireup.h"
#include "util/bits.h"

#define CN_OPS	    COLLNET_OUTSTANDING_MAX
#define CN_SELECTED 32u

_Static_assert(CN_OPS <= 64, "the bits of cn_team.busy");

struct cn_division;
struct cn_op;
struct cn_split;

enum cn_team_state {
	CN_TEAM_FORMING,
	CN_TEAM_READY,
	CN_TEAM_FAILED,
};

/* One node of a team. */
struct cn_team_node {
	struct cn_peer *peer; /* of the team's transport; NULL: this node, or one that is gone */
	const char *name;     /* the topology's, or of the team's `names` */
	uint8_t mac[6];
	uint32_t vertex; /* in the topology, or CN_TOPO_NONE */
	uint16_t port;	 /* of the team's transport there */
	struct cn_left left;
	bool failed; /* the team failed there: frames that still come have gaps between them */
	/* What it said of its calls (CALLED): */
	uint32_t answered; /* asks of the team until then; 0: nothing yet */
	uint32_t called;   /* operations that all its ranks have called */
	uint64_t late;	   /* its ranks that have called no more, by their place on the node */
	uint32_t room_for; /* the last operation of which it said that its port has room
			      (CN_FLAG_ROOM), from 1; 0: none */
	struct cn_unexpected_limit unexpected;
};

/* An algorithm that was selected, and what for. */
struct cn_selected {
	const struct cn_algorithm *algorithm; /* NULL: none */
	uint64_t bytes;
	uint32_t root;
	uint8_t op;
	bool ordered;
	bool user_defined;
};

struct cn_member {
	struct cn_team *team;
	struct cn_member *next;
	uint32_t rank;
	uint64_t payer;		      /* cn_engine_set_payer() */
	struct cn_member *next_payer; /* if it is in team->payers */
	uint32_t posted;	      /* operations posted so far */
	bool waits;		      /* its call of the next one waits for a task */
	uint32_t done_ops;
	struct cn_selected selected; /* for its last call, which may wait for its plan */
	struct cn_split *split;	     /* its call divides a team (split.h); NULL: no */
	struct cn_done *joining;     /* NULL: was called */
	cn_time join_deadline;
};

/* Operations that it has called. */
static inline uint32_t cn_member_called(const struct cn_member *m)
{
	return m->posted + (m->waits ? 1 : 0);
}

struct cn_team {
	struct cn_engine *engine;
	uint64_t owner;
	char job[COLLNET_NAME_MAX + 1];
	uint32_t ranks;
	uint32_t id;		     /* names the team in control messages; unique in its engine */
	uint32_t place;		     /* in the engine's table */
	struct cn_team *in_job_slot; /* next of the engine's `jobs` */
	struct cn_transport *transport;
	const struct cn_topo *topo; /* of the node when it began, or of the parent */
	uint32_t topology;	    /* its hash */
	uint32_t link_mbit;	    /* Mbit/s: this node's link, then the slowest; 0: not known */
	enum cn_team_state state;
	int status; /* why it failed; of a forming team: why the team that it is made of did */
	char text[CN_ERR_TEXT];
	uint32_t parent;	      /* id of the team that it is made of, if wireup.derived */
	bool divided;		      /* ... by cn_team_split(): others are not sent JOIN */
	struct cn_division *division; /* it waits for what the others say (split.h); NULL: no */
	cn_time abandon_at;	      /* forming, status not 0: when it fails; 0: not decided yet */
	struct cn_member *members;    /* ascending by rank */
	struct cn_member *payers;     /* one of each payer (payers.c) */
	uint32_t nlocal;
	uint64_t operations;
	struct cn_wireup wireup;

	/* from here on: when ready */
	struct cn_team_node *nodes;	     /* [layout.nnodes], the same order on every node */
	char (*names)[COLLNET_NAME_MAX + 1]; /* [layout.nnodes]; NULL: the topology has all */
	struct cn_layout layout;
	uint32_t *storage;		  /* of the layout's arrays */
	struct cn_tree *tree;		  /* the layout's; NULL: the network is not known */
	uint32_t me;			  /* this node */
	uint64_t run;			  /* cn_member_run() */
	uint32_t window[CN_WINDOW_RULES]; /* automatic ones, for its hosts */
	uint32_t pair_window;		  /* for exchanges of blocks of any size */
	uint32_t few;			  /* frames of one of them that a node may send at once */
	uint32_t port_holds;		  /* ... and receive: ports to nodes hold them twice */
	uint32_t port_carries;	   /* bytes of one of them, that such a port is soon rid of */
	uint32_t uneven;	   /* the last of them that has started, from 1; 0: none */
	uint32_t burst;		   /* frames per pair of nodes that may be sent at once */
	uint32_t senders;	   /* at a time, that window[CN_WINDOW_FAN_IN] is for */
	bool rates_known;	   /* of all links; false: or the windows are fixed */
	uint32_t frames_per_ms;	   /* of the slowest link */
	uint32_t exchanged_per_ms; /* full frames of a node in an exchange */
	uint32_t by_eq4;	   /* window[CN_WINDOW_EXCHANGE], or 1 where ports hold 2 at most */
	bool meets_slower;	   /* a link of the tree is slower than this node's */
	uint32_t path_links;   /* there and back on the longest path; 0: the windows are fixed */
	cn_time serialisation; /* of a full frame on it, where it is in ports; 0: not known */
	cn_time rtt;	       /* the mean, as far as it is in cables; 0: not known */
	cn_time rtt_short;     /* the mean, of short frames */
	struct cn_adaptive_window known;     /* window[CN_WINDOW_EXCHANGE], less after losses */
	struct cn_adaptive_window *adaptive; /* that, or the engine's; NULL: it is fixed */
	struct cn_selected selected[CN_SELECTED]; /* by a hash of what they are for */
	struct cn_member **local; /* [nlocal] by rank, as layout.ranks[first[me] ...] */
	uint16_t *node_by_peer;	  /* [npeers] node of a peer of the node's own transport;
				   * UINT16_MAX: not in the team */
	uint32_t npeers;
	struct cn_op *ops[CN_OPS]; /* outstanding ones, by number mod CN_OPS; NULL: none */
	uint64_t busy;		   /* of them: a bit each */
	bool asked;		   /* what its ranks have called, since the last call */
	uint32_t asks;		   /* what others have called: so often, */
	cn_time asked_at;	   /* and when last */
	uint64_t *dead;		   /* [ranks / 64] ranks that died, with nothing outstanding;
				    * NULL: none */
	struct cn_op *idle;	   /* with their plans; the one that was used last is first */
	uint32_t nidle;
	uint64_t scheduled;    /* bytes of all its operations, with their schedules */
	uint32_t nstarted;     /* operations that have started here */
	uint32_t notify_after; /* frames of a node, until it is sent STARTED */
	struct cn_unexpected_queue unexpected;
};

/* A team without members. NULL: err says why. */
struct cn_team *cn_team_new(struct cn_engine *e, uint64_t owner, const char *job, uint32_t ranks,
			    struct cn_err *err);
void cn_team_free(struct cn_team *t, cn_time now);
/* A new team that is made of another one has from it what its nodes agreed on. */
void cn_team_inherit(struct cn_team *t, const struct cn_team *parent);
/* Checks whether a team of this name may be made now. */
int cn_team_check_new(const struct cn_engine *e, const char *job, struct cn_err *err);
/* The owner's team of this name that forms; NULL: none. */
struct cn_team *cn_team_forming(const struct cn_engine *e, uint64_t owner, const char *job);
/* A rank of this node. On an error, a team that has no members is freed. */
int cn_team_add_member(struct cn_team *t, cn_time now, uint32_t rank, cn_time deadline,
		       struct cn_done *done, struct cn_member **out, struct cn_err *err);
struct cn_team *cn_team_by_id(struct cn_engine *e, uint32_t id);
/* The owner's teams of this name, the newest first: the one after `t`, NULL: the first. Few steps,
 * of a thousand teams. (team_jobs.c) */
struct cn_team *cn_team_of_job(const struct cn_engine *e, const struct cn_team *t, uint64_t owner,
			       const char *job);
void cn_team_jobs_enter(struct cn_team *t);
void cn_team_jobs_leave(struct cn_team *t);
/* The member has joined, or is not among the team's members any more. */
void cn_payers_add(struct cn_member *m);
void cn_payers_remove(struct cn_member *m);
/* Who is charged for its first rank here; 0: it has none. */
uint64_t cn_team_payer(const struct cn_team *t);
/* The node of a ready team whose peer this is, of the node's own transport or the team's, also one
 * that is gone; UINT32_MAX: none. */
uint32_t cn_team_node_of(const struct cn_team *t, const struct cn_peer *p);
/* A line of the log about its job, unless there were too many of its payer. (job_log.c) */
void cn_job_log(const struct cn_team *t, enum collnet_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A deadline of it was added or removed, or something that it waits for has come. */
void cn_team_touch(struct cn_team *t);
/* A team does not form any more: it is ready, or has failed. */
void cn_team_formed(struct cn_team *t, enum cn_team_state state);
/* Ends all its work with the status and, where notify is true, notifies the other nodes. */
void cn_team_fail(struct cn_team *t, bool notify, int status, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/*
 * A rank of node k left a ready team, after so many operations: those in which it will never take
 * part fail. dead: teams that are made of this one fail, too, if they need it.
 */
void cn_team_rank_left(struct cn_team *t, uint32_t k, uint32_t rank, uint32_t posted, bool dead);
/* A peer of the team's transport is lost: a ready team fails, unless its ranks had left before.
 * (peer_loss.c) */
void cn_team_peer_down(struct cn_team *t, cn_time now, struct cn_peer *p, enum cn_peer_loss why);
/* What the node has done, for a text that begins with its name. (peer_loss.c) */
const char *cn_peer_loss_text(enum cn_peer_loss why);
/* Frames of so many bytes do not reach a peer of the team's transport. (peer_loss.c) */
void cn_team_path_drops(struct cn_team *t, const struct cn_peer *p, uint32_t bytes);
/* Gives the buffers of frames back that have no reader. */
void cn_team_drop_unexpected(struct cn_team *t, struct cn_unexpected_queue *q);
void cn_team_expire(struct cn_team *t, cn_time now);
cn_time cn_team_deadline(const struct cn_team *t);

/* team_ready.c: what of this round trip a frame is in cables and processors, and not in ports. */
cn_time cn_team_in_cables(const struct cn_team *t, cn_time rtt);
/* team_ready.c: the team becomes ready with these join records (one per peer). */
int cn_team_ready(struct cn_team *t, struct cn_join **joins, struct cn_peer **peers, uint32_t n,
		  struct cn_err *err);

#endif
