/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Common code of the components for MPI libraries: MPI collectives as calls to the public interface
 * of libcollnet.
 *
 * A component keeps a struct glue_comm per communicator and offers each collective call to the
 * glue. The glue serves the call, or returns GLUE_DECLINED, and the component passes the call to
 * the function that MPI would have used. The result is the same on all ranks of a communicator,
 * because it depends only on
 *
 *   - what the ranks agreed on at the communicator's first call (team.c), and
 *   - the bytes of the operation, which MPI requires to be equal on all ranks. It never depends on
 *     the layout of a datatype, which may differ between ranks: derived types are packed.
 *   - times that the ranks measured and exchanged (select.c).
 *
 * With MPI_IN_PLACE, the count and type of that side are ignored.
 */
#ifndef COLLNET_MPI_GLUE_H
#define COLLNET_MPI_GLUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include "collnet/collnet.h"

/* Not an MPI error code: these are 0 or positive, or negative in Open MPI's own range. */
#define GLUE_DECLINED INT32_MAX

/* What the glue needs of the MPI library. */
struct glue_mpi {
	const char *job; /* the launcher's name of the job, or NULL */
	/* Minimum over the ranks, element by element, by what MPI would use without collnet. */
	int (*min)(void *self, int64_t *values, int n, MPI_Comm comm);
	/* Broadcast from rank 0, likewise. */
	int (*bcast)(void *self, void *data, int bytes, MPI_Comm comm);
	/* Drives MPI's own communication. Called while a collective waits: a peer may need it
	 * before it can take part. */
	void (*progress)(void);
	/* Several threads may call MPI at once. Every communicator then has a context and a team of
	 * its own, so that no lock is held while a collective waits. */
	bool threads;
	/* Keep what the program may free before a persistent operation that uses it, or no longer.
	 * NULL if no operation is persistent. */
	void (*retain_type)(MPI_Datatype type, bool hold);
	void (*retain_op)(MPI_Op op, bool hold);
};

/* Defined by the component. Open MPI itself uses types that MPI_Type_get_envelope() rejects. */
bool glue_is_predefined(MPI_Datatype type);
/* Defined by the component: elements to `size` contiguous bytes, in the order of the type map, and
 * back. MPI_SUCCESS or an error code, and no call of an error handler. */
int glue_pack_block(const void *data, int count, MPI_Datatype type, void *bytes, size_t size,
		    MPI_Comm comm);
int glue_unpack_block(const void *bytes, size_t size, void *data, int count, MPI_Datatype type,
		      MPI_Comm comm);

struct glue_team;
struct glue_choice;

struct glue_comm {
	enum { GLUE_UNDECIDED = 0, GLUE_SERVED, GLUE_NOT_SERVED } state;
	const struct glue_mpi *mpi;
	void *self; /* passed to the functions of mpi */
	struct glue_team *team;
	int rank, size;
	bool threads;		     /* of a rank call MPI at once: its team is its own */
	bool always;		     /* collnet performs all operations: each rank says so */
	bool wants_team, tried_team; /* of its own, for non-blocking calls */
	bool persistent_by_mpi;	     /* a rank could not prepare one */
	bool asking;		     /* the glue calls MPI: what that calls itself, is MPI's */
	int64_t short_bytes;	     /* at most: calls of glue_serves_untried() that MPI performs */
	bool reported_short;	     /* that it does */
	unsigned early;		     /* short calls that MPI performed before the decision */
};

/* 1: prints one line per communicator to standard error: whether it is served, and if not, why.
 * 2: and one per choice between collnet and MPI. */
void glue_set_verbose(int verbose);
/* "measured" (or NULL): the faster one performs an operation; "always": collnet does. Another one
 * is "measured", and is reported by the parameter's name on the rank where that is not NULL. */
void glue_set_select(const char *how, const char *name);

/* The name of a rank's node; false: it is not known. */
typedef bool glue_node_function(int rank, char *out, size_t size);
/* Prints one line about the ranks of MPI_COMM_WORLD, which has n, that lack what it takes. node may
 * be NULL. */
void glue_report_lacking(const bool *lacks, int n, const char *what, glue_node_function *node);

/* A communicator for which nothing is decided yet. */
void glue_comm_init(struct glue_comm *c, const struct glue_mpi *mpi, void *self, int rank,
		    int size);
/* The communicator is freed. Its team stays for the next congruent one. */
void glue_comm_free(struct glue_comm *c);
/* Ends all teams and the context: MPI is finalized. */
void glue_finalize(void);

struct glue_call;

/*
 * The operations start a call: MPI_SUCCESS, GLUE_DECLINED, or an error code. What they do not
 * decline, glue_finish() completes, whatever the result, or for a non-blocking call that started
 * glue_test(). A persistent call they prepare; see glue_prepare().
 */
int glue_barrier(struct glue_call *k);
int glue_bcast(struct glue_call *k, void *buffer, int count, MPI_Datatype type, int root);
int glue_allgather(struct glue_call *k, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		   int nrecv, MPI_Datatype trecv);
int glue_alltoall(struct glue_call *k, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		  int nrecv, MPI_Datatype trecv);
int glue_gather(struct glue_call *k, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		int nrecv, MPI_Datatype trecv, int root);
int glue_scatter(struct glue_call *k, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		 int nrecv, MPI_Datatype trecv, int root);
int glue_alltoallv(struct glue_call *k, const void *send, const int *send_counts,
		   const int *send_displs, MPI_Datatype tsend, void *recv, const int *recv_counts,
		   const int *recv_displs, MPI_Datatype trecv);
int glue_alltoallw(struct glue_call *k, const void *send, const int *send_counts,
		   const int *send_displs, const MPI_Datatype *tsend, void *recv,
		   const int *recv_counts, const int *recv_displs, const MPI_Datatype *trecv);
int glue_allgatherv(struct glue_call *k, const void *send, int nsend, MPI_Datatype tsend,
		    void *recv, const int *counts, const int *displs, MPI_Datatype trecv);
int glue_gatherv(struct glue_call *k, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		 const int *counts, const int *displs, MPI_Datatype trecv, int root);
int glue_scatterv(struct glue_call *k, const void *send, const int *counts, const int *displs,
		  MPI_Datatype tsend, void *recv, int nrecv, MPI_Datatype trecv, int root);
int glue_allreduce(struct glue_call *k, const void *send, void *recv, int count, MPI_Datatype type,
		   MPI_Op op);
int glue_reduce(struct glue_call *k, const void *send, void *recv, int count, MPI_Datatype type,
		MPI_Op op, int root);
int glue_reduce_scatter_block(struct glue_call *k, const void *send, void *recv, int count,
			      MPI_Datatype type, MPI_Op op);
int glue_reduce_scatter(struct glue_call *k, const void *send, void *recv, const int *counts,
			MPI_Datatype type, MPI_Op op);
int glue_scan(struct glue_call *k, const void *send, void *recv, int count, MPI_Datatype type,
	      MPI_Op op);
int glue_exscan(struct glue_call *k, const void *send, void *recv, int count, MPI_Datatype type,
		MPI_Op op);

/* Waits for a call that started (rc: what the operation returned), and frees what it used.
 * MPI_SUCCESS or an error code. A failure of collnet's is of an error class of its own, whose
 * string is collnet's message, which is also a line on standard error. */
int glue_finish(struct glue_call *k, int rc);
/* Whether a call that has been posted, or started, will be complete only after a test of it. */
bool glue_is_outstanding(const struct glue_call *k);
/* Whether a non-blocking call, or the start of a persistent one, is complete; then it is finished,
 * with this result. */
bool glue_test(struct glue_call *k, int *rc);

/*
 * A persistent call: glue_prepare() finds or creates a team for it alone, because MPI lets the
 * ranks start their persistent operations in any order. If that succeeds, the operation prepares
 * it. glue_prepared(), with the result of both, lets the ranks agree on MPI_SUCCESS or
 * GLUE_DECLINED. As MPI allows, the first and the last wait for the other ranks. A prepared call
 * without a request moves nothing; any other can be started.
 */
int glue_prepare(struct glue_call *k);
int glue_prepared(struct glue_call *k, int rc);
/* MPI_SUCCESS or an error code; a call that has failed can be started again. */
int glue_start(struct glue_call *k);
/* It is not started, and no longer needed. */
void glue_unprepare(struct glue_call *k);

/* The component has performed a blocking call, or passed it to MPI: every call of an operation is
 * followed by this one. */
void glue_end(struct glue_call *k);

/* Counts and displacements of MPI's functions with large ones. */
struct glue_large {
	const MPI_Count *counts;
	const MPI_Aint *displs;
};

/* A count as an int. If that cannot hold it, it is another one that is also too large for a block,
 * unless the elements have no bytes. */
int glue_narrow(MPI_Count count);
/* Count i of either array: that of the large ones if these are not NULL. */
int glue_count_in(const int *counts, const struct glue_large *large, uint32_t i);

/* Blocks of `count` elements each; or if these are not NULL, with their own counts, displacements
 * and types, which are the caller's until the call is complete. */
struct glue_blocks {
	void *data;
	uint32_t n;
	int count;
	MPI_Datatype type;
	const int *counts, *displs;
	const MPI_Datatype *types;
	const struct glue_large *large; /* instead of counts and displacements, or NULL */
};

/*
 * Blocks as contiguous bytes. A type that is contiguous in memory is used in place; else the bytes
 * are in `owned`, which glue_packed_free() frees.
 */
struct glue_packed {
	void *bytes;
	void *owned;
	struct glue_blocks blocks; /* if they are packed */
	bool filled;		   /* with what the blocks hold; else with what they receive */
	/* The owned bytes are in this buffer, or were allocated in this context; both NULL: the
	 * heap. */
	struct glue_buffer *buffer;
	collnet_t *context;
	/* With a count per rank: bytes; the second is part of the first's memory. Else NULL. */
	size_t *counts, *displs;
	/* It holds the types of the blocks, and has copies of their arrays. */
	const struct glue_mpi *holder;
	void *arrays;
};

/* An operation that MPI applies to elements. */
struct glue_by_mpi {
	MPI_Datatype type;
	MPI_Op op;
	MPI_Comm comm;
	size_t size;	 /* bytes of an element, packed */
	bool contiguous; /* it lies in memory as it is packed */
	bool used;	 /* by this call */
	int rc;		 /* of the first failure */
};

/* collnet_iallreduce() and the others with its arguments. */
typedef int glue_reduce_function(collnet_team_t *t, const void *send, void *recv, size_t count,
				 enum collnet_type type, enum collnet_op op,
				 const struct collnet_coll_options *o, collnet_request_t **out);

/* Elements that collnet combines. */
struct glue_reduction {
	glue_reduce_function *function; /* that glue_start_reduction() calls */
	const void *send;
	void *recv;
	size_t count;	      /* of each block; with counts: of all of them together */
	const size_t *counts; /* of each block, or NULL */
	enum collnet_type type;
	enum collnet_op op;
	struct collnet_user_op user; /* if that is COLLNET_USER */
};

/* Starts the operation of collnet's that performs a call, or prepares it. */
typedef int glue_start_function(struct glue_call *k, const struct collnet_coll_options *o);

/* A call. The component sets the first five, and the others to 0; it does not move a call that
 * has started or is prepared. */
struct glue_call {
	struct glue_comm *c;
	MPI_Comm comm;
	bool nonblocking, persistent;
	const struct glue_large *receives; /* in place of these arguments; or NULL */

	struct glue_team *team; /* that performs it */
	const char *what;	/* MPI's name without MPI_; NULL: the program did not call it */
	/* The operation: in what order it starts, and with what. */
	glue_start_function *start;
	unsigned number;	    /* of the team's, from 0 */
	struct glue_packed in, out; /* what is sent and received */
	size_t bytes;		    /* of a block, or of this rank's */
	uint32_t root;
	struct glue_reduction reduction;
	size_t *counts; /* that the reduction needs, until the call is complete; or NULL */

	bool waits;		    /* it is not started yet */
	collnet_request_t *request; /* NULL: none is outstanding, or prepared */
	atomic_bool *pending;	    /* its mark in the team */
	struct glue_by_mpi by_mpi;
	struct glue_choice *trial; /* the call is one that is timed, from `began` */
	atomic_uchar *found;	   /* by it, for communicators alike; or NULL */
	int64_t began;
};

/* ---- between the files of the glue ------------------------------------------------------- */

#define GLUE_EACH_OP(X)                                                                            \
	X(Barrier)                                                                                 \
	X(Bcast)                                                                                   \
	X(Allgather)                                                                               \
	X(Alltoall)                                                                                \
	X(Gather)                                                                                  \
	X(Scatter)                                                                                 \
	X(Alltoallv)                                                                               \
	X(Alltoallw)                                                                               \
	X(Allgatherv)                                                                              \
	X(Gatherv)                                                                                 \
	X(Scatterv)                                                                                \
	X(Allreduce) X(Reduce) X(Reduce_scatter_block) X(Reduce_scatter) X(Scan) X(Exscan)

enum glue_op {
#define X(name) GLUE_##name,
	GLUE_EACH_OP(X)
#undef X
		GLUE_NOPS
};

#define GLUE_UNTRIED_BYTES (16u << 10) /* smaller blocks are tried only after some calls */

#define GLUE_CLASSES 31 /* of sizes: powers of two */
#define GLUE_TRIALS  5	/* that are compared, of each */

enum glue_by { GLUE_BY_COLLNET = 0, GLUE_BY_MPI };

/* Who performs an operation with blocks of a size. */
struct glue_choice {
	bool decided;
	enum glue_by by;
	unsigned untried;		/* calls before the trials */
	unsigned deferred;		/* others while communicators alike were in trials */
	unsigned calls;			/* trials of both */
	unsigned class;			/* of the bytes that the first of them moved */
	int64_t pair_bytes;		/* that the latest trial by collnet moved */
	unsigned unlike;		/* calls since the latest trial that moved more or less */
	unsigned unlike_rows;		/* of UNLIKE_MAX such calls */
	int64_t latest;			/* ns of this rank in the latest trial */
	int64_t since, delay;		/* begin of the trials, and what this rank had waited for a
					 * processor until then */
	bool busy;			/* ranks wait for processors */
	int64_t ns[2][1 + GLUE_TRIALS]; /* of the slowest rank; the first sets up connections */
};

/* What communicators of as many ranks on as many nodes have found. */
enum glue_found { GLUE_NOTHING = 0, GLUE_CLEARLY_COLLNET, GLUE_CLEARLY_MPI, GLUE_IN_TRIALS };

struct glue_alike {
	uint32_t ranks, nodes;
	atomic_uchar found[GLUE_NOPS][GLUE_CLASSES]; /* enum glue_found; threads share it */
	struct glue_alike *next;
};

/* Shared with the daemon, for packed elements. */
struct glue_buffer {
	void *p;
	size_t bytes;
	atomic_bool busy; /* another thread may complete the call that uses it */
};

#define GLUE_OUTSTANDING (COLLNET_OUTSTANDING_MAX / 2 - 1)

#define GLUE_BUFFERS 2 /* what is sent and what is received */

struct glue_team {
	collnet_t *context;
	bool owns_context;    /* or it is closed last */
	collnet_team_t *team; /* NULL: this rank has left it, for this reason: */
	char why[192];
	atomic_bool failed; /* an operation has: no other communicator is to use it */
	bool leaves;	    /* and a thread destroys it, until the end of this struct at most: */
	pthread_t leaving;
	uint32_t nodes;
	MPI_Group group;
	int64_t id;		  /* equal on all its ranks, between 0 and GLUE_UNUSED */
	const void *user;	  /* the communicator or persistent call that alone uses it */
	unsigned sharers;	  /* communicators that have used it since it had no user */
	unsigned communicators;	  /* that have it */
	unsigned duplicates;	  /* teams made of this one */
	pthread_mutex_t starting; /* protects: */
	unsigned called, started; /* operations; those between wait for room */
	atomic_uint outstanding;  /* of those that have started */
	atomic_bool pending[GLUE_OUTSTANDING]; /* whether the latest ones are, by their number */
	struct glue_choice choices[GLUE_NOPS][GLUE_CLASSES];
	struct glue_alike *alike; /* of all teams with as many ranks and nodes */
	struct glue_buffer buffers[GLUE_BUFFERS];
	bool no_buffers; /* the daemon has no more memory for this process */
	/* Bytes that all ranks had for a call, and that one had not; 0: not known. Alike on all. */
	uint64_t had, lacked;
	bool drove_mpi; /* the latest blocking call had to drive MPI's communication */
	struct glue_team *next;
};

/* Teams are in the list of all teams of the process, from their creation to their end. */
void glue_add_team(struct glue_team *t);
void glue_remove_team(struct glue_team *t);
void glue_destroy_team(struct glue_team *t);
void glue_destroy_teams(void);
/* Contexts that teams own. */
unsigned glue_count_contexts(void);
/* The daemon of all teams so far has ended: no other communicator is to use them. The last one to
 * be destroyed closes the context, which it owns from now on; without a team it is closed now. */
void glue_retire_context(collnet_t *context);
/* What ranks compare of a team that is free: teams that communicators share come first. */
#define GLUE_UNUSED (INT64_C(1) << 62)
int64_t glue_offer_of(const struct glue_team *t);
/* The first free team of the communicator's ranks whose offer is at least this, for this user.
 * unshared: among those that nobody uses. */
struct glue_team *glue_find_free(MPI_Comm comm, const void *user, bool unshared, int64_t least);
/* A team that was found free for the user is so again. NULL is none. */
void glue_return_team(struct glue_team *t, const void *user);
/* Whether the only communicator that uses a team has it for itself from now on. */
bool glue_acquire_team(struct glue_team *t, const void *user);
/* A communicator has the team from now on, or no longer: the last one frees the team's buffers.
 * NULL and a team that was destroyed are none. */
void glue_use_team(struct glue_team *t);
void glue_unuse_team(const struct glue_team *team);
/* The team of this user alone is free for the next congruent one. NULL has none. */
void glue_free_team_of(const void *user);

/*
 * Whether a call's communicator is served. The first blocking call decides, together with the other
 * ranks. A non-blocking call must not wait for them: it is served only if it is already decided,
 * and if the team is the communicator's own, because MPI does not order the calls of several
 * communicators. The next blocking call gets such a team, if the call moves more than
 * GLUE_SMALL bytes: Open MPI makes communicators by non-blocking reductions of an integer, which
 * must not cost their parents a team each.
 */
#define GLUE_SMALL 16
bool glue_decide(struct glue_call *k, size_t bytes);
/* Whether all ranks of the communicator, of which there are `size`, are in the group. */
bool glue_is_part_of(MPI_Group group, MPI_Comm comm, int size);
/*
 * Whether MPI performs the call because nothing is decided for its communicator, whose calls are
 * few and short so far: a decision takes longer than they do. The answer is the same on all
 * ranks.
 */
bool glue_decides_later(struct glue_call *k, size_t bytes);
/* MPI_COMM_WORLD is served, each of its ranks has a node to itself, and none has threads or lets
 * collnet perform all operations. All ranks call it at once. */
void glue_learn_of_world(const struct glue_comm *c);
void glue_forget_world(void);
/* Whether the user wants collnet to perform all operations, on this rank. */
bool glue_is_always(void);
/* The same for one call. bytes: of a block, on average if all ranks know all counts. */
bool glue_serves(struct glue_call *k, enum glue_op op, size_t bytes);
/* The same for one whose ranks know only their own counts: those of these blocks. */
bool glue_serves_counts(struct glue_call *k, enum glue_op op, const struct glue_blocks *blocks);
/* The same for one whose result depends on who performs it. */
bool glue_serves_untried(struct glue_call *k, enum glue_op op, size_t bytes);
/* Whether collnet performs a call as far as memory goes. The answer is the same on all ranks. The
 * call has its root, or of a reduce-scatter with counts the bytes of the longest block, or of an
 * allgather with counts those of all blocks and of the longest one again. */
bool glue_has_memory(struct glue_call *k, enum glue_op op, size_t bytes);
/* The name without MPI_. */
const char *glue_op_name(enum glue_op op);
/* How many bytes are short for that on this node's link; 0: the context is of no use any more. */
int64_t glue_short_bytes(collnet_t *context);

/* Minimum over the ranks by MPI, element by element, in place. MPI's reduction may consist of other
 * operations of the communicator, which come to the glue: it declines them. */
int glue_min_by_mpi(struct glue_comm *c, int64_t *values, int n, MPI_Comm comm);
/* The same of a served communicator by collnet. */
int glue_min(const struct glue_call *k, int64_t *values, size_t n);
/* The team of a persistent call is free for others. */
void glue_release_team(struct glue_call *k);

/* Prints a line about a communicator if the level of verbosity is that high. */
void glue_explain(const struct glue_comm *c, MPI_Comm comm, int level, const char *text);

/* A thread that runs no handler of the program's signals, except of faults: it may run a function
 * of the program's. */
bool glue_start_thread(pthread_t *thread, void *(*run)(void *), void *arg);

/* Nanoseconds of a monotonic clock. */
int64_t glue_now(void);

/* Whether there is room for one more persistent operation, which is taken. */
bool glue_reserve(void);
void glue_unreserve(void);
/*
 * Starts a call, or prepares it. What is not blocking, and finds no room, starts later, when it is
 * tested. MPI_SUCCESS or an error code.
 */
int glue_post(struct glue_call *k, const char *what, glue_start_function *start);

/* Starts the call's reduction by its function. */
glue_start_function glue_start_reduction;

#define GLUE_NOT_PACKED ((struct glue_packed){ .bytes = NULL })

enum glue_side {
	GLUE_RECEIVED, /* into the blocks */
	GLUE_SENT,     /* from them */
	/* Likewise, and never in place. */
	GLUE_RECEIVED_COPIED,
	GLUE_COPIED,
};

/* MPI_SUCCESS or an error class. Of a persistent call, the bytes are filled when it starts. */
int glue_pack(const struct glue_call *k, struct glue_packed *p, const struct glue_blocks *b,
	      enum glue_side side);
/* Packs again what the blocks hold now. */
int glue_repack(const struct glue_packed *p, MPI_Comm comm);
/* What was received goes to its blocks; for a type that is contiguous it is there already. */
int glue_unpack(const struct glue_packed *p, MPI_Comm comm);
void glue_packed_free(struct glue_packed *p);
/* Memory of a struct glue_buffer. */
void glue_free_shared(collnet_t *context, void *p);
/* Where the bytes of block i of `b` are, and how many they are. */
void *glue_packed_block(const struct glue_packed *p, const struct glue_blocks *b, uint32_t i,
			size_t *bytes);
/* Bytes of `count` elements; COLLNET_BLOCK_MAX + 1 when they are too many for a block. */
size_t glue_bytes(int count, MPI_Datatype type);
/* The bytes of all blocks. */
size_t glue_total(const struct glue_blocks *b);
/*
 * A rank exchanges with itself as much as with each other rank: what it sends is as long as what it
 * receives, else the result is an error class. The library would use memory behind the shorter one.
 */
int glue_match(size_t received, int nsend, MPI_Datatype tsend);
/* Whether the elements of a type are adjacent, so that it is used in place. */
bool glue_is_contiguous(MPI_Datatype type);
/* Address of a block. */
void *glue_block(const struct glue_blocks *b, uint32_t i);

#endif
