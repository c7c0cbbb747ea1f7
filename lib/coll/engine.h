/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: teams, collective operations and endpoints of one node, run on the transport.
 *
 * Pure, as the transport is: no sockets, clock or threads. collnetd, the in-process ("direct")
 * driver and the tests are its callers. It owns the node's transport and one per team
 * (transport.h), and passes the four calls through. The caller of an asynchronous function passes a
 * `struct cn_done`, embedded in an object of its own. The done function is called exactly once,
 * unless the asynchronous function itself returned an error. It runs inside an engine call and must
 * not call the engine; it may defer work.
 *
 * Memory passed to an operation remains the caller's, which must not change or unmap it before the
 * done function was called.
 */
#ifndef CN_ENGINE_H
#define CN_ENGINE_H

#include "proto/node.h"
#include "sched/sched.h"
#include "util/owner.h"

struct cn_engine;
struct cn_member;   /* one rank of this node in a team */
struct cn_endpoint; /* a numbered endpoint of this node */

struct cn_done {
	/* status: COLLNET_OK or an error; text: the message ("" for OK), valid during the call */
	void (*fn)(struct cn_done *done, int status, const char *text);
};

struct cn_engine_config {
	struct cn_node_config node;
	const struct cn_topo *topo; /* borrowed; NULL: none */
	char interface[32];	    /* for errors; "": not known */
	const char *advice;	    /* what helps if ranks are missing; borrowed */
	uint64_t rate;		    /* of the link, bit/s, if the topology has none; 0: not known */
	uint32_t window;	    /* node-wide: COLLNET_WINDOW_AUTO, _OFF, or frames */
	uint32_t max_teams;	    /* 1 .. CN_TEAMS_MAX */
	uint32_t max_endpoints;	    /* at least 1 */
	uint64_t max_schedules;	    /* bytes, of a payer's operations; 0: unlimited */
	uint64_t task_min;	    /* longer plans, in actions, become tasks of the caller:
				     * cn_engine_next_task(); 0: none */
};

void cn_engine_config_init(struct cn_engine_config *c);
int cn_engine_new(const struct cn_engine_config *c, struct cn_engine **out, struct cn_err *err);
/* Every outstanding done function is called with COLLNET_EDAEMON first. */
void cn_engine_free(struct cn_engine *e);

/* The transport's four calls. */
void cn_engine_input(struct cn_engine *e, cn_time now, const struct cn_rx_frame *f);
/* Where the payloads of a super-frame belong: a cn_rx_place_fn, whose ctx is the engine. */
bool cn_engine_place(void *engine, const struct cn_rx_frame *first, struct cn_rx_place *out);
bool cn_engine_output(struct cn_engine *e, cn_time now, struct cn_frame *out);
/* Frames that the link carries in half a millisecond: 1 to CN_SUPER_FRAME_MAX, which is also the
 * value for a link whose rate is not known. */
uint32_t cn_engine_burst(const struct cn_engine *e);
cn_time cn_engine_deadline(const struct cn_engine *e);
/* True if cn_engine_expire() would make copies within the node: frames that can be sent go
 * first. */
bool cn_engine_has_copies(const struct cn_engine *e);
void cn_engine_expire(struct cn_engine *e, cn_time now);

/* Shuts down: outstanding work is done with COLLNET_EDAEMON, and the other nodes are notified of
 * the reason (send all output afterwards). */
void cn_engine_shutdown(struct cn_engine *e, enum cn_bye why);

/*
 * Ends all operations and fails all teams with this status and text; their other nodes are
 * notified. Endpoints stay open, and new teams can be joined: the interface went down and may come
 * back.
 */
void cn_engine_fail(struct cn_engine *e, cn_time now, int status, const char *text);
/* Sets whether the interface has a carrier, which explains silent peers. Initially true.
 * (peer_loss.c) */
void cn_engine_set_carrier(struct cn_engine *e, bool carrier);
/* The interface has this MTU now and refuses longer frames: abandons longer copied frames of
 * operations that are over, because the notice of a failure would wait behind them. */
void cn_engine_abandon_longer(struct cn_engine *e, uint32_t mtu);

/*
 * Another topology (borrowed; NULL: none), window and max_schedules from now on. Ready teams
 * continue with the old topology, which must stay until none of them uses it. Existing schedules
 * stay.
 */
void cn_engine_reconfigure(struct cn_engine *e, const struct cn_topo *topo, uint32_t window,
			   uint64_t max_schedules);
bool cn_engine_uses(const struct cn_engine *e, const struct cn_topo *topo);

/* The node's own transport (port 0); those of teams are private to the engine. */
struct cn_node *cn_engine_node(struct cn_engine *e);
/* cn_node_drain() for all transports. */
bool cn_engine_drain(struct cn_engine *e);

/* ---- tasks (coll/task.h) -------------------------------------------------------------- */

/* A caller's task_min: actions take some dozen nanoseconds each. */
#define CN_TASK_MIN 16384u

/*
 * With config.task_min, functions documented so can return COLLNET_INPROGRESS: nothing has
 * happened, and the call must be repeated when another task is done. Its memory remains the
 * caller's, who frees it with cn_engine_discard() if the call is not repeated.
 */
struct cn_task;
/* The next task; NULL: none, or the last one is not done. */
struct cn_task *cn_engine_next_task(struct cn_engine *e);
/* The only function that may run in another thread while this one uses the engine. */
void cn_task_run(struct cn_task *x);
/* The task was run. Repeat the calls that wait for tasks, */
void cn_engine_task_done(struct cn_engine *e, struct cn_task *x);
/* then call this: later calls do not get its error. */
void cn_engine_task_over(struct cn_engine *e);
/* Cancels the running task: it ends soon, if it plans a schedule. */
void cn_engine_cancel_task(struct cn_engine *e);
/* True, once: a team or an operation with a task has ended. Calls that wait for tasks must be
 * repeated. */
bool cn_engine_tasks_dropped(struct cn_engine *e);
/* What cn_engine_tasks_dropped() returns next. */
bool cn_engine_has_dropped(const struct cn_engine *e);
/* Frees memory that malloc() gave, as soon as no task can read it. NULL is ignored. */
void cn_engine_discard(struct cn_engine *e, void *memory, size_t bytes);

/* ---- teams ---------------------------------------------------------------------------- */

/*
 * Rank `rank` of `ranks` of the owner's job is here. `done` is called when all ranks have joined,
 * or with COLLNET_ETIMEOUT and the list of missing ranks at `deadline` (then, as after any failure,
 * the member must still leave). A team is identified by its owner and its job name: teams of two
 * owners with the same name are unrelated.
 */
int cn_team_join(struct cn_engine *e, cn_time now, uint64_t owner, const char *job, uint32_t rank,
		 uint32_t ranks, cn_time deadline, struct cn_done *done, struct cn_member **out,
		 struct cn_err *err);
/*
 * As cn_team_join(), for a team of ranks of the parent's team, which is ready: `members` has the
 * bit r % 64 of word r / 64 for each of its ranks r that takes part. Its owner is the parent's.
 * Messages go only to these ranks' nodes, one per pair of nodes, so `job` must be a name that they
 * have never used before, such as one with cn_member_run() and a count.
 */
int cn_team_derive(struct cn_member *parent, cn_time now, const char *job, uint32_t rank,
		   uint32_t ranks, const uint64_t *members, cn_time deadline, struct cn_done *done,
		   struct cn_member **out, struct cn_err *err);
/* A rank's arguments of a split. */
struct cn_split_call {
	/* name of its new team, as for cn_team_derive(); different for each color */
	const char *job;
	enum cn_making making; /* NONE is not one */
	int32_t color, key;    /* color < 0: it joins no new team */
};
/*
 * As cn_team_derive(), called by all ranks of the parent: those of one color form a team, ordered
 * by key, then by their ranks in the parent. It is an operation of the parent. *out is NULL where
 * the color is less than 0; the new rank and size are known when it is done. COLLNET_INPROGRESS:
 * wait for a task.
 */
int cn_team_split(struct cn_member *parent, cn_time now, const struct cn_split_call *call,
		  cn_time deadline, struct cn_done *done, struct cn_member **out,
		  struct cn_err *err);
/* A number that is the same for all ranks of a team that is ready, and for no other team. */
uint64_t cn_member_run(const struct cn_member *m);
/*
 * Leaves: outstanding work of this member is done with COLLNET_ERANK, the other members are
 * notified, and the member is gone. dead: the rank died (its process ended without leaving). The
 * others can still complete the operations that it had completed.
 */
void cn_team_leave(struct cn_member *m, cn_time now, bool dead);

/* Who is charged for the members that join from now on, 0 at first; not known to other nodes, while
 * the owner may be a secret's. */
void cn_engine_set_payer(struct cn_engine *e, uint64_t payer);
uint64_t cn_member_owner(const struct cn_member *m);
/* The number of teams with a member charged to this payer. *takes_part: the forming team of this
 * owner and name, which another rank can join, is among them. */
uint32_t cn_engine_teams_paid(const struct cn_engine *e, uint64_t payer, uint64_t owner,
			      const char *job, bool *takes_part);

/* No call waits for tasks of its team any more: drops those not started. The result of a running
 * one may serve the next call. */
void cn_member_drops_tasks(struct cn_member *m);
/* Its call that waited for a task will not be repeated. */
void cn_member_drops_call(struct cn_member *m);
/* COLLNET_OK: the team is ready; or why it is not. */
int cn_member_check(const struct cn_member *m, struct cn_err *err);
/* Of a team that is not ready they may change. */
uint32_t cn_member_rank(const struct cn_member *m);
uint32_t cn_member_ranks(const struct cn_member *m);
uint32_t cn_member_nodes(const struct cn_member *m);
uint32_t cn_member_local(const struct cn_member *m); /* ranks of this node */
/* Name of the node of a rank, of a team that is ready; NULL otherwise. */
const char *cn_member_node_name(const struct cn_member *m, uint32_t rank);
/*
 * Of a team of ranks of another one, of which parent is a member: a rank of the parent on the same
 * node for each rank, in out[cn_member_ranks()]. False: it is no such team, or the parent is not
 * ready.
 */
bool cn_member_in_parent(const struct cn_member *m, const struct cn_member *parent, uint16_t *out);

/* ---- collectives ---------------------------------------------------------------------- */

struct cn_op;

/*
 * A fragment of a reduction: out = left op right, of whole elements, all in one rank's buffers.
 * With several operands: out = (left op right) op the `bytes` after right, and so on.
 */
struct cn_combine {
	struct cn_span left, right, out; /* out may be left, and of one operand right */
	uint64_t bytes;
	uint32_t operands; /* on the right, at least 1 */
	bool last; /* the operation is complete on this node except for this fragment: a combiner
		    * that is sure to run before any other use of the buffers may return true at
		    * once */
};

/*
 * Combines for a rank. Embedded in an object of the caller, as struct cn_done is, and unused once
 * the operation's done function is called.
 */
struct cn_reducer {
	/*
	 * Combines a fragment. True: done. False: it will call cn_coll_combined() when done; until
	 * then this function is not called again. It must not call the engine.
	 */
	bool (*combine)(struct cn_reducer *r, const struct cn_combine *c);
	struct cn_op *op; /* the engine's; NULL: none */
	uint32_t local;	  /* likewise */
};

struct cn_coll_args {
	enum cn_op_kind op;
	const char *algorithm; /* NULL: default */
	enum cn_permutation permutation;
	bool contention_aware;
	uint32_t window;  /* as in collnet_coll_options */
	uint32_t root;	  /* rank: bcast, scatter, gather, reduce; else 0 */
	uint64_t bytes;	  /* of one block; 0 in vector operations */
	const void *send; /* NULL where the rank has no such buffer */
	void *recv;
	cn_time deadline;
	enum cn_making making;	 /* the caller's: NONE */
	struct cn_blocks blocks; /* vector operations: checked, and valid until they are done */
	/* Reductions; the first three as in struct cn_plan. */
	uint32_t element;
	uint16_t function;
	bool ordered;
	void *scratch; /* cn_call_scratch_bytes() */
	struct cn_reducer *reducer;
};

/* COLLNET_INPROGRESS: wait for a task; repeated after the deadline, the call fails, and so does the
 * team. */
int cn_coll_post(struct cn_member *m, cn_time now, const struct cn_coll_args *a,
		 struct cn_done *done, struct cn_err *err);

/*
 * A persistent operation: checked and planned once, then started any number of times, by one call
 * at a time. The buffers and blocks of `a` stay the caller's until it is released, which happens
 * before the member leaves; a->deadline is ignored. (A vector operation is planned when all ranks
 * of the node have started it for the first time.) COLLNET_INPROGRESS of the first two: a task is
 * to be waited for.
 */
struct cn_prepared;
int cn_coll_prepare(struct cn_member *m, const struct cn_coll_args *a, struct cn_prepared **out,
		    struct cn_err *err);
int cn_prepared_start(struct cn_prepared *p, cn_time now, cn_time deadline, struct cn_done *done,
		      struct cn_err *err);
/* A call that was processed only after its deadline, behind others of its process: the team fails.
 * Returns the error. */
int cn_coll_late(struct cn_member *m, const struct cn_coll_args *a, struct cn_err *err);
int cn_prepared_late(struct cn_prepared *p, struct cn_err *err);
/* A call was refused that has returned to its caller, who cannot repeat it: the team fails. */
void cn_coll_refused(struct cn_member *m, const struct cn_coll_args *a, const struct cn_err *why);
/* Started operations continue. NULL is ignored. */
void cn_prepared_release(struct cn_prepared *p);
/* The reducer's outstanding fragment is combined. No effect if there is none any more. */
void cn_coll_combined(struct cn_reducer *r);

/* ---- endpoints ------------------------------------------------------------------------ */

/* Endpoints of one owner reach each other; to others an endpoint appears not open. The resources of
 * a payer's endpoints are bounded. */
int cn_endpoint_open(struct cn_engine *e, uint64_t owner, uint64_t payer, uint16_t number,
		     struct cn_endpoint **out, struct cn_err *err);
/* Outstanding work on it is done with COLLNET_EINVAL ("endpoint closed"). */
void cn_endpoint_close(struct cn_endpoint *ep, cn_time now);
uint16_t cn_endpoint_number(const struct cn_endpoint *ep);

int cn_endpoint_send(struct cn_endpoint *ep, cn_time now, const char *node, uint16_t to,
		     const void *data, uint64_t bytes, cn_time deadline, struct cn_done *done,
		     struct cn_err *err);

/* Where a received message came from and how long it was; written before `done` is called. */
struct cn_received {
	struct collnet_address from;
	uint64_t bytes;
};
int cn_endpoint_recv(struct cn_endpoint *ep, cn_time now, void *data, uint64_t capacity,
		     cn_time deadline, struct cn_received *result, struct cn_done *done,
		     struct cn_err *err);

/* ---- what the node knows -------------------------------------------------------------- */

/* All counters except those of the process and the link. */
void cn_engine_stats(struct cn_engine *e, struct collnet_stats *s, bool reset_peak);
/* As collnet_get_nodes() and collnet_get_jobs(), for the entries of the table from `first` on:
 * *count is the room in `out`, and then the entries of the whole table. */
void cn_engine_nodes(struct cn_engine *e, cn_time now, size_t first, struct collnet_node_info *out,
		     size_t *count);
/* The number of nodes that cn_engine_nodes() lists in about a millisecond: it sums up the counters
 * of each over all teams. */
uint32_t cn_engine_nodes_at_once(const struct cn_engine *e);
/* Only jobs of the viewer, or, for CN_OWNER_ROOT, of all owners. */
void cn_engine_jobs(struct cn_engine *e, uint64_t viewer, size_t first,
		    struct collnet_job_info *out, size_t *count);

#endif
