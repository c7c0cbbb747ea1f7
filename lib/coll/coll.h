/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of lib/coll share (private to the room).
 *
 *   engine.c    life, the four calls, upcalls of the transport, what the node knows
 *   control.c   control messages about teams between engines
 *   wireup.c    how the ranks of a job find each other: JOIN and COMMIT
 *   wireup_path.c      whether frames of the MTU get through between the nodes of a team
 *   version_mismatch.c   nodes of another wire version, for errors and the node table
 *   wireup_join.c      what peers told of their teams
 *   cursor.c    control messages byte by byte
 *   pending.c      control messages that found no buffer
 *   team.c      teams and their members, layout, failure
 *   op.c        one collective operation: cursors into its schedule
 *   unexpected.c  how many frames go to a node that has not started their operation
 *   endpoint.c  numbered endpoints and their messages
 *
 * Whatever sends frames is a source: an operation, or the messages of an endpoint. The transport
 * asks the engine for the next frame; the engine asks its sources in turn.
 */
#ifndef CN_COLL_H
#define CN_COLL_H

#include "coll/engine.h"
#include "proto/global_window.h"
#include "proto/wire.h"

#define CN_OPS	     COLLNET_OUTSTANDING_MAX
#define CN_TEAMS_MAX 256 /* slots of 8 bits, and 4 bits of generation */

/* ---- sources -------------------------------------------------------------------------- */

struct cn_source {
	/* The next frame, with `token` set to this source; false: none now. */
	bool (*pull)(struct cn_source *s, cn_time now, struct cn_tx *out);
	/* A frame of it was acknowledged, or never will be; the flight is already counted. May end
	 * the source. */
	void (*acked)(struct cn_source *s);
	struct cn_flight flight;
	struct cn_source *next, *prev; /* ring of active sources; NULL: not active */
};

void cn_source_start(struct cn_engine *e, struct cn_source *s);
/* Leaves the ring and the window. Its frames must be acknowledged, detached or abandoned. */
void cn_source_stop(struct cn_engine *e, struct cn_source *s);

/* ---- engine --------------------------------------------------------------------------- */

struct cn_team;
struct cn_join;
struct cn_endpoints;

/* What the engine keeps with a peer (cn_peer_user()). */
struct cn_engine_peer {
	struct cn_peer *peer;
	struct cn_join *joins; /* teams it has told us of */
	uint32_t njoins;
	uint32_t npending; /* control messages that wait for it (pending.c) */
	bool stuck;
	uint32_t complaints; /* lines of the log about it */
};

struct cn_engine {
	struct cn_engine_config config;
	struct cn_node *node;
	uint32_t window;	/* W_g: by Eq. 4, or as configured; COLLNET_WINDOW_OFF */
	struct cn_team **teams; /* [max_teams] by slot; NULL: free */
	uint8_t *generation;	/* [max_teams] of the slot, so that an old frame finds nobody */
	uint32_t nteams;
	uint32_t topology;	  /* hash of the topology, which all nodes of a job must share */
	uint32_t last_team_id;	  /* the last one given to a team */
	struct cn_source *source; /* whose turn it is; NULL: none active */
	uint32_t nsources;
	struct cn_endpoints *endpoints;
	struct cn_pending *pending_first, *pending_last; /* pending.c */
	uint32_t npending;
	cn_time pending_at; /* when it is tried again */
	cn_time deadline;   /* earliest of teams and operations; see cn_engine_touch() */
	bool touched;	    /* it must be found anew */
	bool closing;
};

/* A deadline was added or removed. */
void cn_engine_touch(struct cn_engine *e);
struct cn_engine_peer *cn_engine_peer_of(struct cn_peer *p); /* NULL: never came up */

/* ---- control messages (control.c dispatches; kinds from 16 belong to endpoint.c) -------- */

enum cn_control {
	CN_CONTROL_JOIN = 1, /* team id 4, slot 2, ranks 4, topology 4, owner 8, your team id 4 (0:
			      * not known), job, count 2, (first 4, n 4)... */
	CN_CONTROL_COMMIT = 2, /* team id 4, your team id 4, ask 1: I know all ranks, and you with
				* this team id; ask: your COMMIT has not come */
	CN_CONTROL_LEAVE = 3,  /* team id 4, rank 4, posted 4: this rank is gone after so many
				* operations */
	CN_CONTROL_END = 4,    /* team id 4: no rank of the team is left here */
	CN_CONTROL_FAIL = 5,   /* team id 4, code 1, text: the team has failed here; CN_FAIL_FORMING
				* in   code: it was not ready yet */
	CN_CONTROL_STARTED = 6, /* team id 4, n 4: the first n operations have started here */
	CN_CONTROL_ENDPOINT = 16,
};

#define CN_FAIL_FORMING 0x80u

/*
 * The stream field of a collective's frame: slot 12 bits, number of the operation 12, signature 8.
 */
#define CN_NUMBER_MASK 0xfffu
static inline uint32_t cn_stream(uint32_t slot, uint32_t seq, uint8_t signature)
{
	return slot << 20 | (seq & CN_NUMBER_MASK) << 8 | signature;
}
static inline uint16_t cn_stream_slot(uint32_t stream)
{
	return (uint16_t)(stream >> 20);
}
static inline uint32_t cn_stream_number(uint32_t stream)
{
	return stream >> 8 & CN_NUMBER_MASK;
}

#define CN_CONTROL_MAX 552 /* bytes of a control message: the smallest MTU's payload */

/* A message that must arrive, if the node stays: sent now, or when there is a buffer, in order. */
void cn_pending_send(struct cn_engine *e, struct cn_peer *p, const uint8_t *m, size_t len);
void cn_pending_expire(struct cn_engine *e, cn_time now);
cn_time cn_pending_deadline(const struct cn_engine *e);
void cn_pending_drop(struct cn_engine *e, const struct cn_peer *p); /* the node is gone */
void cn_pending_free(struct cn_engine *e);

/* Network byte order, bounds-checked. A cursor that ran over stays bad. */
struct cn_cursor {
	uint8_t *at, *end;
	bool bad;
};
void cn_put8(struct cn_cursor *c, uint8_t v);
void cn_put16(struct cn_cursor *c, uint16_t v);
void cn_put32(struct cn_cursor *c, uint32_t v);
void cn_put64(struct cn_cursor *c, uint64_t v);
void cn_put_text(struct cn_cursor *c, const char *text); /* length 1, bytes; cut at 255 */
uint8_t cn_get8(struct cn_cursor *c);
uint16_t cn_get16(struct cn_cursor *c);
uint32_t cn_get32(struct cn_cursor *c);
uint64_t cn_get64(struct cn_cursor *c);
bool cn_get_text(struct cn_cursor *c, char *out, size_t cap);

/* False: no buffer for it now (it will come again). */
bool cn_control_deliver(struct cn_engine *e, cn_time now, struct cn_peer *p, const uint8_t *data,
			size_t len);
void cn_teams_peer_up(struct cn_engine *e, struct cn_peer *p);
void cn_teams_peer_down(struct cn_engine *e, cn_time now, struct cn_peer *p, enum cn_peer_loss why);
/* The team is new: peers that announced its job before are its first candidates. */
void cn_wireup_begin(struct cn_team *t, cn_time now);
/* Tells those who were not told yet of the team's ranks, as fast as may be. */
void cn_wireup_announce(struct cn_team *t, cn_time now);
/* Looks at all candidates: is everybody there? */
void cn_wireup_check(struct cn_team *t, cn_time now);
/* Goes on with what was left to be told when its time has come (t->check_at). */
void cn_wireup_expire(struct cn_team *t, cn_time now);
/* A peer announced the job of a forming team, with `more` ranks than before. known: it knows this
 * node's team. */
void cn_wireup_joined(struct cn_team *t, cn_time now, struct cn_peer *p, const struct cn_join *j,
		      uint32_t more, bool known);
/* A peer's team of its job has ended, or its record was stale. */
void cn_wireup_ended(struct cn_team *t, cn_time now);
/* A peer has bound the team, for the first time or again; ask: it lacks this node's COMMIT. */
void cn_wireup_committed(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j,
			 bool first, bool ask);
/* The team fails while it forms: candidates that were not told of it are told first. */
void cn_wireup_send_joins(struct cn_team *t);
/* The record is of this team, as far as size and topology tell. */
bool cn_wireup_agrees(const struct cn_team *t, const struct cn_join *j);
void cn_wireup_peer_up(struct cn_team *t, struct cn_peer *p);
void cn_control_leave(struct cn_team *t, uint32_t rank, uint32_t posted);
void cn_control_end(struct cn_team *t);
void cn_control_fail(struct cn_team *t, int code, const char *text);
/* The join record of a peer for an owner's job; NULL: none. */
struct cn_join *cn_join_find(struct cn_engine_peer *m, uint64_t owner, const char *job);
struct cn_join *cn_join_by_id(struct cn_engine_peer *m, uint32_t id);
/* A record of a peer's team, from `in` without its ranges. It takes the place of the oldest one
 * without a team here where there are too many, of the peer or of the owner. NULL: no room. */
struct cn_join *cn_join_new(struct cn_engine *e, struct cn_engine_peer *m, const struct cn_join *in,
			    const char *job);
void cn_join_remove(struct cn_engine_peer *m, struct cn_join *j);
void cn_join_remove_all(struct cn_engine_peer *m); /* NULL is ignored */
/* The ranges of ranks from a message; false: not sound, and none are kept. */
bool cn_join_read(struct cn_cursor *c, struct cn_join *j);
void cn_join_forget(struct cn_join *j);
/* `from` gives its ranges to j, which is the same or had others. */
void cn_join_take(struct cn_join *j, struct cn_join *from);
uint32_t cn_join_ranks(const struct cn_join *j);

/* The peer's record of the team's job; NULL: none, or the peer is gone. */
struct cn_join *cn_join_of(const struct cn_team *t, struct cn_peer *p);

/* wireup_path.c */
/* A complete team: begins what is left to validate and returns to how many nodes. A node with
 * another MTU fails the team. */
uint32_t cn_path_begin(struct cn_team *t, cn_time now);
/* The path to the peer was validated: teams that wait for it go on. */
void cn_path_valid(struct cn_engine *e, cn_time now, struct cn_peer *p);
/* Frames of so many bytes do not reach the peer: its teams fail and say so. */
void cn_path_drops(struct cn_engine *e, cn_time now, struct cn_peer *p, uint32_t bytes);

/* version_mismatch.c */
/*
 * "; h3 speaks wire version 2, this node 1" for every sender of another wire version, three at
 * most;
 * "" without one. lost: a peer that is lost by silence, then only those nodes of the team `t` that
 * share its silence; NULL: all.
 */
void cn_version_mismatch_clause(const struct cn_team *t, cn_time now, const struct cn_peer *lost,
				char *text, size_t cap);
/* The name of one: the peer's, else the topology's for its address, else the address. */
#define CN_VERSION_MISMATCH_NAME (COLLNET_NAME_MAX + 1)
void cn_version_mismatch_name(const struct cn_engine *e, const struct cn_foreign_version *s,
			      char name[CN_VERSION_MISMATCH_NAME]);

struct cn_range {
	uint32_t first, n;
};

/* What a peer told of a team. */
struct cn_join {
	struct cn_join *next;
	uint32_t id, ranks, topology;
	uint64_t owner;
	uint16_t slot;
	uint32_t commit_received; /* team id of our team that it has bound; 0: none */
	uint32_t commit_sent;	  /* team id of our team that we bound it to; 0: none */
	bool left; /* a rank of it is gone, or the peer forms the next team of the job:
		    * no new team can be made with it */
	uint32_t nranges;
	struct cn_range *ranges, one; /* one: what a single range is kept in */
	char job[];		      /* there are as many records as nodes: no longer than it is */
};

/* ---- teams ---------------------------------------------------------------------------- */

enum cn_team_state {
	CN_TEAM_FORMING,
	CN_TEAM_READY,
	CN_TEAM_FAILED,
};

#define CN_UNEXPECTED_OPS 32u

/* One node of a team. */
struct cn_team_node {
	struct cn_peer *peer; /* NULL: this node, or one that is gone */
	const char *name;     /* the topology's, or of the team's `names` */
	uint8_t mac[6];
	uint32_t vertex;     /* in the topology, or CN_TOPO_NONE */
	uint16_t slot;	     /* of the team there */
	uint32_t left_after; /* operations after which a rank of it left; UINT32_MAX: none did */
	uint32_t left_rank;
	bool failed; /* the team failed there: frames that still come have gaps between them */

	/*
	 * Unexpected messages (unexpected.c). Numbers of operations are those of cn_member.posted.
	 */
	uint32_t started;    /* it is known to have started all operations before this one */
	uint32_t nsent;	     /* frames sent to it, of operations from there on */
	uint32_t sent_first; /* nsent > 0: the first operation of these */
	uint8_t sent[CN_UNEXPECTED_OPS]; /* ... by operation */
	uint32_t told;	 /* it knows that all operations before this one have started here */
	uint32_t ntaken; /* frames taken from it, of operations from there on */
	uint32_t taken_first, taken_last; /* ntaken > 0: operations of these */
};

struct cn_member {
	struct cn_team *team;
	struct cn_member *next;
	uint32_t rank;
	uint32_t posted; /* operations posted so far */
	uint32_t done_ops;
	struct cn_done *joining; /* NULL: was told */
	cn_time join_deadline;
};

/* A frame that came before its operation was started; kept in a buffer of the node's pool. */
struct cn_unexpected {
	struct cn_unexpected *next;
	uint32_t stream;
	uint16_t peer, len;
	uint8_t flags;
	uint8_t data[];
};

struct cn_told {
	uint32_t version; /* that the peer was told of; 0: none */
	bool candidate;	  /* it is in the list below */
	bool confirmed;	  /* it knows this team */
};

struct cn_team {
	struct cn_engine *engine;
	uint64_t owner;
	char job[COLLNET_NAME_MAX + 1];
	uint32_t ranks, id;
	uint16_t slot; /* index in the engine's table, and generation << 8 */
	enum cn_team_state state;
	int status; /* why it failed */
	char text[CN_ERR_TEXT];
	struct cn_member *members;
	uint32_t nlocal;
	uint64_t operations;
	uint32_t version;     /* of the local ranks: another one when a rank comes or goes */
	struct cn_told *told; /* [max_peers] */
	uint32_t *candidates; /* peers that announced the job, by index */
	uint32_t ncandidates, candidates_cap;
	bool candidates_due; /* some of them may lack the present version */
	bool scattered;	     /* the log has said so */
	uint64_t *present;   /* [ranks / 64] ranks known to be there, and how many */
	uint64_t *seen;	     /* [ranks / 64] those that were there at some time */
	uint32_t npresent;
	cn_time check_at; /* forming: when to look again, or to go on telling */
	/* Forming, so that not every message needs a look at all peers. The counts are exact after
	 * cn_wireup_check(), and then follow what comes; if they err, the next check sets them
	 * right. */
	uint32_t heard;		  /* ranks of which it knows */
	uint32_t njoined;	  /* nodes they are on, besides this one */
	uint32_t ncommitted;	  /* ... that have bound this team */
	bool complete;		  /* all ranks were there at the last check */
	uint32_t npaths;	  /* complete: nodes to which the path MTU is not validated yet */
	cn_time look_at;	  /* the next check */
	cn_time told_until;	  /* pacing: when all that was told would have gone out evenly */
	cn_time candidates_until; /* ... to candidates */
	cn_time repeat_at, repeat_wait;	    /* what candidates did not confirm */
	cn_time announce_at, announce_wait; /* to all peers again */
	uint32_t announced, announce_n;	    /* of so many peers, so many were looked at */
	uint32_t next_commit;		    /* candidates looked at for COMMIT */
	cn_time patience; /* until then a contradiction may be an earlier run's end */

	/* from here on: when ready */
	struct cn_team_node *nodes;	     /* [layout.nnodes], the same order on every node */
	char (*names)[COLLNET_NAME_MAX + 1]; /* [layout.nnodes]; NULL: the topology has all */
	struct cn_layout layout;
	uint32_t *storage;		  /* of the layout's arrays */
	struct cn_tree *tree;		  /* the layout's; NULL: the network is not known */
	uint32_t me;			  /* this node */
	uint32_t window[CN_WINDOW_RULES]; /* automatic ones, for its hosts */
	struct cn_choice {		  /* the last algorithm that was selected, by operation */
		const struct cn_algorithm *algorithm;
		uint64_t bytes;
		uint32_t root;
	} choice[CN_OP_KINDS];
	struct cn_member **local; /* [nlocal] by rank, as layout.ranks[first[me] ...] */
	uint16_t *node_by_peer;	  /* [npeers] node of a peer; UINT16_MAX: not in the team */
	uint32_t npeers;
	struct cn_op *ops[CN_OPS]; /* by number mod CN_OPS */
	uint32_t nstarted;	   /* operations that have started here */
	uint32_t tell_after;	   /* frames of a node, until it is told so (unexpected.c) */
	struct cn_unexpected *unexpected_first, *unexpected_last;
};

struct cn_team *cn_team_by_slot(struct cn_engine *e, uint16_t slot);
/* The team becomes ready with these join records (one per peer). */
int cn_team_ready(struct cn_team *t, cn_time now, struct cn_join **joins, struct cn_peer **peers,
		  uint32_t n, struct cn_err *err);
/* Ends all its work with the status and, where tell is true, tells the other nodes. */
void cn_team_fail(struct cn_team *t, cn_time now, bool tell, int status, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
void cn_team_expire(struct cn_team *t, cn_time now);
cn_time cn_team_deadline(const struct cn_team *t);
uint32_t cn_topology_hash(const struct cn_topo *t);
/* "3, 5, 7-9": appends ranks to text as they come in ascending order. */
struct cn_rank_list {
	char *text;
	size_t cap, len;
	uint32_t first, last, count;
};
void cn_rank_list_add(struct cn_rank_list *l, uint32_t rank);
void cn_rank_list_end(struct cn_rank_list *l);

/* ---- operations ----------------------------------------------------------------------- */

struct cn_op;

bool cn_op_deliver(struct cn_team *t, cn_time now, struct cn_peer *p, const struct cn_rx *rx);
/* An emptied frame came: the operations of the team have ended there before they were complete. */
void cn_op_emptied(struct cn_team *t, const struct cn_peer *p);
void cn_op_abort(struct cn_op *op, int status, const char *text);
void cn_op_free_storage(struct cn_op *op);
bool cn_op_busy(const struct cn_op *op); /* posted or running */
cn_time cn_op_deadline(const struct cn_op *op);
void cn_op_expire(struct cn_op *op, cn_time now);
/* A rank of node k left after `posted` operations: those it will never take part in fail. */
void cn_op_check_left(struct cn_team *t, cn_time now, uint32_t k);

/* unexpected.c: node k says or shows that its first n operations have started. */
void cn_unexpected_started(struct cn_team *t, uint32_t k, uint32_t n);

/* ---- endpoints ------------------------------------------------------------------------ */

int cn_endpoints_new(struct cn_engine *e, struct cn_err *err);
void cn_endpoints_free(struct cn_engine *e); /* outstanding work was ended before */
/* Ends all outstanding work with the status. */
void cn_endpoints_abort(struct cn_engine *e, int status, const char *text);
/* The same while the engine goes on: the other ends are told of messages that are cut off. */
void cn_endpoints_fail(struct cn_engine *e, cn_time now, int status, const char *text);
bool cn_endpoints_deliver(struct cn_engine *e, cn_time now, struct cn_peer *p,
			  const struct cn_rx *rx);
/* A control message whose first byte is >= CN_CONTROL_ENDPOINT. */
bool cn_endpoints_control(struct cn_engine *e, cn_time now, struct cn_peer *p, const uint8_t *data,
			  size_t len);
void cn_endpoints_peer_down(struct cn_engine *e, cn_time now, struct cn_peer *p);
cn_time cn_endpoints_deadline(const struct cn_engine *e);
void cn_endpoints_expire(struct cn_engine *e, cn_time now);

#endif
