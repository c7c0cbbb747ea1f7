/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One collective operation on one node: its progress through its schedule.
 *
 *   post.c           calls: checked, posted
 *   op_plan.c        algorithm and schedule
 *   op_start.c       the start: cursors are rewound
 *   op_deadline.c    the deadline, and the ranks that missed it
 *   op_idle.c        idle operations, cached with their plans
 *   op.c             progress, copies between local ranks, completion
 *   op_window.c      frames in flight: port buffers, cables, losses
 *   op_frames.c      fragmentation of streams into frames
 *   op_send.c        the next frame: ordering checks, window, link release
 *   op_reduce.c      combinations by ranks of this node
 *   op_recv.c        received frames, and unexpected ones
 *   op_unexpected.c  limit of frames to a node that has not started it
 *
 * It starts when every rank of this node has called it. One stream runs from node a to node b: the
 * messages of the schedule from a to b, in list order, fragmented into frames (op_frames.c). So the
 * order of the frames determines their position, and the wire carries no offsets. Frames received
 * before the start are queued in the node's pool (unexpected_queue.h).
 *
 * It is complete when every action is, and its frames are acknowledged, or the last few of them
 * copied (cn_node_detach()), so that the user's buffers are free.
 */
#ifndef CN_OP_H
#define CN_OP_H

#include "coll/cursor.h"
#include "coll/source.h"
#include "coll/team.h"

#define CN_NONE UINT32_MAX

/* Progress of an action, and the next one of its list. */
struct cn_progress {
	uint64_t done;
	uint32_t next;	  /* SEND: to the same node; RECV: from the same node; COPY: in the queue;
			   * REDUCE: of the same rank */
	uint32_t copies;  /* first copy that depends on this action */
	uint32_t sibling; /* COPY: next one that depends on the same action */
	/* SEND, RECV that begin a run (op_frames.c): its bytes, and the message after it */
	uint64_t run;
	uint32_t after;
	bool complete;
	bool queued; /* COPY */
};

/* Progress of a stream's fragmentation in its current run. */
struct cn_fragmenter {
	uint64_t run,
		left;	/* bytes: all, and those of the frames to come; 0: another run is next */
	uint32_t after; /* the message after it */
};

/* The two streams between this node and another one. */
struct cn_streams {
	uint32_t send, recv; /* current action; CN_NONE: all done */
	struct cn_fragmenter out, in;
	bool expected;	  /* cn_peer_expect() is in force */
	uint32_t sent;	  /* frames */
	cn_time begun;	  /* sent > 0: when the first one was */
	uint32_t carried; /* frames in cables, as measured */
};

struct cn_post {
	struct cn_done *done; /* NULL: this rank has not called */
	const uint8_t *send;
	uint8_t *recv, *scratch;
	struct cn_blocks blocks;
	struct cn_op *own; /* of the persistent operation that the rank started; NULL: none */
	struct cn_reducer *reducer;
	uint32_t reduce;    /* current REDUCE of the rank; CN_NONE: all done */
	uint64_t combining; /* bytes of it that the reducer has taken; 0: none */
	uint32_t operands;  /* actions from `reduce` on that it has taken together */
};

enum op_state {
	OP_FREE,
	OP_POSTED,   /* called by some ranks of this node */
	OP_STARTING, /* called by all of them; it may wait for the start of one before it */
	OP_RUNNING,
};

/* Progress of an operation's start. */
struct cn_starting {
	uint32_t streamed; /* actions not yet in a stream */
	uint32_t listed;   /* actions already in the lists */
	/* Frames that are counted: of nodes before this one, and of the stream to it, or, the next,
	 * from it, up to a message */
	uint32_t node;
	bool received, in_stream, is_short;
	uint32_t message;
	uint64_t mixed; /* bytes of the frames to others that several messages are part of */
};

struct cn_op {
	struct cn_source source; /* the first member; cn_tx.token of its frames points to it */
	struct cn_team *team;
	enum op_state state;
	uint32_t seq; /* number of the operation in its team, from 0, in messages from 1; not of a
		       * frame */
	struct cn_coll_args args; /* of the first call; buffers are in posts[] */
	const struct cn_algorithm *algorithm;
	uint32_t window;
	bool automatic;	      /* the window changes as it runs */
	cn_time begun;	      /* when its first frame was requested; 0: not yet */
	cn_time pulled;	      /* when a frame was last requested */
	cn_time opens_at;     /* when the window grows without a received frame */
	uint32_t pair_window; /* frames in flight to one node */
	uint32_t before; /* the exchange of blocks of any size before this one, from 1; 0: none */
	bool own_port_has_room; /* CN_FLAG_ROOM, while no other operation is running */
	cn_time deadline;
	cn_time ask_at;	       /* when to request CALLED from the other nodes */
	uint32_t asks;	       /* the team's number of that request */
	struct cn_post *posts; /* [local ranks] */
	uint32_t nposts;

	struct cn_op *next_idle; /* OP_FREE: in the team's list */
	bool persistent;	 /* owned by a persistent operation, which releases it */
	uint64_t id;		 /* likewise; 0: of none */
	/* [local ranks] whose blocks the schedule of a vector operation was planned for: ids of
	 * persistent operations; 0: of another call */
	uint64_t *planned_for;

	/* the plan, cached for the next similar operation */
	struct cn_plan plan;
	struct cn_sched sched;
	bool planning;		      /* a vector operation: a task plans it (task.h), */
	bool planned;		      /* it has planned, for the repeated call */
	struct cn_progress *progress; /* [sched.n] */
	uint32_t progress_cap;
	struct cn_streams *streams; /* [nodes] */
	uint32_t *targets;	    /* nodes with something left to send, in order of appearance */
	uint32_t ntargets;
	uint32_t next;			/* the next target, or (IN_TURN) the next action */
	uint32_t quantum_used;		/* frames sent in a row to the next target */
	uint32_t copy_first, copy_last; /* runnable copies */
	/* in a ring while there are runnable copies, and in OP_STARTING until it waits */
	struct cn_turn copies;
	struct cn_starting starting;
	uint64_t framed, frame_bytes;	/* the last answer of cn_op_frame_bytes() */
	uint32_t remaining;		/* actions not complete */
	uint32_t deferred_reduces;	/* REDUCE actions deferred until after the last sends */
	uint64_t frames_out, frames_in; /* to and from other nodes */
	uint64_t bytes_in;
	uint8_t *mixed; /* frames of several messages */
	uint64_t mixed_used, mixed_cap;
	bool reduces;	      /* it has REDUCE actions */
	uint64_t combine_max; /* longest fragment of a reduction, bytes; whole elements */
	bool synchronised;    /* its sends wait for synchronisations of others */
	bool ending;	      /* all is sent; finishes at the next expiry */
	bool ending_tried;    /* that failed: acknowledgements finish it */
};

/* ---- op_idle.c -------------------------------------------------------------------------- */

#define CN_OPS_IDLE 8u /* idle operations cached per team */

struct cn_op *cn_op_new(struct cn_team *t); /* NULL: no memory */
void cn_op_free_storage(struct cn_op *op);  /* NULL is ignored */
/*
 * An operation for this plan: an idle one with the plan, else a new one, or the least recently used
 * (LRU) idle one if there are enough. NULL: no memory.
 */
struct cn_op *cn_op_get_idle(struct cn_team *t, const struct cn_plan *p);
/* Caches a finished operation with its plan. */
void cn_op_put_idle(struct cn_op *op);
/* Frees the idle operations of a team except the `keep` most recently used. */
void cn_op_free_idle(struct cn_team *t, uint32_t keep);
/* Bytes of an operation with its schedule, which the team sums up: after a change, less the bytes
 * before. */
uint64_t cn_op_bytes(const struct cn_op *op);
void cn_op_count(struct cn_op *op, uint64_t before);
/* COLLNET_ELIMIT: the payer's schedules exceed the limit. */
int cn_op_check_schedules(struct cn_team *t, struct cn_err *err);
void cn_op_drop_schedule(struct cn_op *op);

/* ---- op_deadline.c ---------------------------------------------------------------------- */

/* A rank called with this deadline; the earliest one counts. */
void cn_op_set_deadline(struct cn_op *op, cn_time now, cn_time deadline);
/* When cn_op_expire() is due. */
cn_time cn_op_deadline(const struct cn_op *op);
void cn_op_expire(struct cn_op *op, cn_time now);
/* All ranks of this node have called an operation: notifies the nodes that requested CALLED
 * before. */
void cn_op_called_late(struct cn_team *t);
/* CALLED came from a peer of the team's transport, which is node k of a team that was ready. */
void cn_op_called_by(struct cn_team *t, struct cn_peer *p, uint32_t k, struct cn_cursor *c);

/* ---- post.c ----------------------------------------------------------------------------- */

/* Dry run of cn_coll_post(), except of vector operations. COLLNET_INPROGRESS: the call would return
 * it. */
int cn_coll_check(struct cn_member *m, cn_time now, const struct cn_coll_args *a,
		  struct cn_err *err);
/* A rank of node k left after `posted` operations: fails the operations that it will never join. */
void cn_op_check_left(struct cn_team *t, uint32_t k);

/* ---- op_plan.c -------------------------------------------------------------------------- */

/* The algorithm of a call, and its plan. COLLNET_INPROGRESS, here and below: by a task (task.h). */
int cn_op_make_plan(struct cn_member *m, const struct cn_coll_args *a,
		    const struct cn_algorithm **g, struct cn_plan *p, struct cn_err *err);
/* Plans it, unless it has this plan. */
int cn_op_plan(struct cn_op *op, const struct cn_plan *p, struct cn_err *err);
/* Plans a vector operation that all ranks of this node have called. */
int cn_op_plan_vector(struct cn_op *op, struct cn_err *err);
/* Requests a task if cn_op_plan() would take long. COLLNET_OK: not necessary, or an idle operation
 * has the plan. */
int cn_op_request_plan(struct cn_team *t, const struct cn_plan *p, struct cn_err *err);
/* An operation for a persistent one; of a task that has planned it for that. NULL: no memory. */
struct cn_op *cn_op_new_planned(struct cn_team *t, const struct cn_plan *p);
/* Actions that a schedule may have; 0: as many as any team needs. */
uint32_t cn_op_actions_max(const struct cn_team *t);
/* A task has selected the algorithm; has planned. The schedule is taken. */
void cn_op_selected(struct cn_team *t, const struct cn_plan *p, const struct cn_algorithm *a);
int cn_op_planned(struct cn_team *t, struct cn_op *vector, const struct cn_plan *p,
		  struct cn_sched *sched, struct cn_err *err);

/* ---- op_start.c ------------------------------------------------------------------------- */

/* Starts an operation that is planned and called by all ranks of this node: it runs, at once or
 * later, or the team has failed. */
void cn_op_start(struct cn_op *op, cn_time now);
/* Continues the start within a budget of bytes, from which it subtracts. */
void cn_op_start_more(struct cn_op *op, cn_time now, uint64_t *budget);

/* ---- op.c ------------------------------------------------------------------------------- */

uint32_t cn_op_locals(const struct cn_team *t); /* ranks of this node */
bool cn_op_busy(const struct cn_op *op);	/* not free */
/* Name of the call for messages: "allgather", "split", ... */
const char *cn_op_called(const struct cn_coll_args *a);
/* What both ends must agree on besides sizes, which the frames show. */
uint32_t cn_op_signature(const struct cn_op *op);
/* How the call differs from that of a node whose frame has another signature; a clause. */
void cn_op_difference(const struct cn_op *op, uint32_t stream, char *to, size_t room);
/* The buffers of a rank of this node. */
struct cn_post *cn_op_post(const struct cn_op *op, uint32_t rank);
/* The address of a buffer reference of the schedule in its rank's buffers; NULL: no buffer. */
uint8_t *cn_op_address(const struct cn_op *op, const struct cn_span *s);
/*
 * Bytes per frame of a message of `len` bytes, which is divided into as few frames as possible, of
 * equal size. With a short last frame, all frames of an exchange's last round would be short,
 * overtake those before them, and meet at ports where these are still queued.
 */
uint64_t cn_op_frame_bytes(struct cn_op *op, uint64_t len);
void cn_op_abort(struct cn_op *op, int status, const char *text);
/* Frames that are copied at the end instead of waiting for their acknowledgements: more than a
 * super-frame, which takes less time to copy than to be acknowledged. */
uint32_t cn_op_copied_max(const struct cn_op *op);
/* Finishes it if all actions are complete and the buffers are free. */
void cn_op_try_finish(struct cn_op *op);
/* Progresses actions that waited for local data; the operation may finish. */
void cn_op_progress(struct cn_op *op);
/* The operation waits for node k, which is probed when silent. */
void cn_op_expect(struct cn_op *op, cn_time now, uint32_t k);
/* It does not any more. */
void cn_op_unexpect(struct cn_op *op, uint32_t k);
/* Gives it turns, until it leaves, in cn_op_run_copies(). */
void cn_op_turn_enter(struct cn_op *op);
void cn_op_turn_leave(struct cn_op *op);
void cn_op_queue_copy(struct cn_op *op, uint32_t action);
/*
 * Copies between ranks of this node. One poll moves CN_COPY_CHUNK bytes over all operations, with a
 * minimum per copy: payers take turns, and the operations of each. They progress and may finish.
 * Operations with many actions start in the same way.
 */
void cn_op_run_copies(struct cn_engine *e, cn_time now);
void cn_op_complete(struct cn_op *op, uint32_t action);
/* `len` bytes of action i are available at `from`: runs the copies that depend on it by byte, at
 * once if no more than a frame. */
void cn_op_stream_copies(struct cn_op *op, uint32_t i, const uint8_t *from, uint64_t offset,
			 uint32_t len);

/* ---- op_reduce.c ------------------------------------------------------------------------ */

/* Starts combinations that are ready; called when an action has progressed. */
void cn_op_reduce(struct cn_op *op);

/* ---- op_window.c ------------------------------------------------------------------------ */

/* Sets the windows of an operation whose arguments and algorithm are known. */
void cn_op_window_begin(struct cn_op *op);
/* It starts. */
void cn_op_window_start(struct cn_op *op);
/* True if the port to node k has room for its next frame, however many are in flight to it. */
bool cn_op_peer_port_has_room(const struct cn_op *op, uint32_t k);
/* Updates the windows; called before it sends. */
void cn_op_window_update(struct cn_op *op, cn_time now);
/* The part of its window that may be in ports. */
uint32_t cn_op_ports_window(const struct cn_op *op);

/* ---- op_frames.c ------------------------------------------------------------------------ */

/* Finds the runs of rewound streams and counts their frames, one run at a time. Returns at least
 * its number of messages; 0: none left. */
void cn_op_fragment_begin(struct cn_op *op);
uint32_t cn_op_fragment_more(struct cn_op *op);
/* Room for frames of several messages. False: no memory. */
bool cn_op_fragment_end(struct cn_op *op);
/* Bytes of the next frame of a stream whose current message is i. */
uint64_t cn_op_next_frame(struct cn_op *op, struct cn_fragmenter *c, uint32_t i);
/* The next n bytes of the stream to a node, whose current message is i; NULL if n is 0. */
const uint8_t *cn_op_frame_data(struct cn_op *op, uint32_t i, uint64_t n);

/* ---- op_send.c: the source's upcalls ---------------------------------------------------- */

bool cn_op_pull(struct cn_source *source, cn_time now, struct cn_tx *out);
/* True if a running operation still has frames for node k. */
bool cn_op_sends_to(const struct cn_team *t, uint32_t k);
void cn_op_acked(struct cn_source *source);

/* ---- op_recv.c -------------------------------------------------------------------------- */

bool cn_op_deliver(struct cn_team *t, struct cn_peer *p, const struct cn_rx *rx);
/* Direct data placement: where deliver() will write the payload of the next frame of p, and of
 * those that follow it. False: unknown. */
bool cn_op_place(struct cn_team *t, const struct cn_peer *p, const struct cn_rx *rx,
		 struct cn_rx_place *out);
/* A tombstone was received: the team's operations there have ended before completion. */
void cn_op_tombstone(struct cn_team *t, const struct cn_peer *p);
/* The team is ready: records what nodes have started, as shown by their earlier frames, because
 * they will not notify it again. */
void cn_op_record_started(struct cn_team *t);
/* Delivers the unexpected frames of this operation, in order of arrival. */
void cn_op_deliver_unexpected(struct cn_op *op);

/* ---- op_unexpected.c --------------------------------------------------------------------- */

/* True if the unexpected limit allows the operation's next frame to node k. */
bool cn_op_unexpected_allows(const struct cn_op *op, uint32_t k);
void cn_op_unexpected_received(struct cn_op *op, uint32_t k); /* a frame from node k */
/* STARTED of p was received. It is sent once, so a forming team stores it with the peer's
 * record. */
void cn_op_unexpected_started(struct cn_team *t, struct cn_peer *p, struct cn_join *j, uint32_t n);
/* The operation has started; its unexpected frames are delivered afterwards. */
void cn_op_unexpected_start(struct cn_op *op);
/* "; node h2 has not started ...": what the operation waits for at other nodes' buffers, or "". */
void cn_op_unexpected_explain(const struct cn_op *op, char *text, size_t cap);

#endif
