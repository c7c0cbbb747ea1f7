/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What components for MPI libraries share: MPI collectives as calls to the public interface of
 * libcollnet.
 *
 * A component keeps a struct glue_comm per communicator and offers each collective call to the
 * glue. The glue serves the call, or returns GLUE_DECLINED, and the component passes the call to
 * what MPI would have used. The result is the same on all ranks of a communicator, because it
 * depends only on
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
};

/* Defined by the component. Open MPI itself uses types that MPI_Type_get_envelope() rejects. */
bool glue_is_predefined(MPI_Datatype type);

struct glue_team;
struct glue_choice;

struct glue_comm {
	enum { GLUE_UNDECIDED = 0, GLUE_SERVED, GLUE_NOT_SERVED } state;
	const struct glue_mpi *mpi;
	void *self; /* passed to the functions of mpi */
	struct glue_team *team;
	int rank, size;
	bool nested;		   /* in an operation that consists of others */
	struct glue_choice *trial; /* the call is one that is timed, from `began` */
	int64_t began;
};

/* 1: prints one line per communicator to standard error: whether it is served, and if not, why.
 * 2: and one per choice between collnet and MPI. */
void glue_set_verbose(int verbose);
/* "measured" (or NULL): the faster one performs an operation; "always": collnet does. */
void glue_set_select(const char *how);

/* A communicator for which nothing is decided yet. */
void glue_comm_init(struct glue_comm *c, const struct glue_mpi *mpi, void *self, int rank,
		    int size);
/* The communicator is freed. Its team stays for the next congruent one. */
void glue_comm_free(struct glue_comm *c);
/* Ends all teams and the context: MPI is finalized. */
void glue_finalize(void);

/* The component has performed a call, or passed it to MPI: every call of an operation is followed
 * by this one. c may be NULL. */
void glue_end(struct glue_comm *c);

/* The operations: MPI_SUCCESS, GLUE_DECLINED, or an error code. A failure of collnet's has an error
 * class of its own, whose string is collnet's message, which is also a line on standard error. */
int glue_barrier(struct glue_comm *c, MPI_Comm comm);
int glue_bcast(struct glue_comm *c, void *buffer, int count, MPI_Datatype type, int root,
	       MPI_Comm comm);
int glue_allgather(struct glue_comm *c, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		   int nrecv, MPI_Datatype trecv, MPI_Comm comm);
int glue_alltoall(struct glue_comm *c, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		  int nrecv, MPI_Datatype trecv, MPI_Comm comm);
int glue_gather(struct glue_comm *c, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		int nrecv, MPI_Datatype trecv, int root, MPI_Comm comm);
int glue_scatter(struct glue_comm *c, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		 int nrecv, MPI_Datatype trecv, int root, MPI_Comm comm);
int glue_alltoallv(struct glue_comm *c, const void *send, const int *send_counts,
		   const int *send_displs, MPI_Datatype tsend, void *recv, const int *recv_counts,
		   const int *recv_displs, MPI_Datatype trecv, MPI_Comm comm);
int glue_alltoallw(struct glue_comm *c, const void *send, const int *send_counts,
		   const int *send_displs, const MPI_Datatype *tsend, void *recv,
		   const int *recv_counts, const int *recv_displs, const MPI_Datatype *trecv,
		   MPI_Comm comm);
int glue_allgatherv(struct glue_comm *c, const void *send, int nsend, MPI_Datatype tsend,
		    void *recv, const int *counts, const int *displs, MPI_Datatype trecv,
		    MPI_Comm comm);
int glue_gatherv(struct glue_comm *c, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		 const int *counts, const int *displs, MPI_Datatype trecv, int root, MPI_Comm comm);
int glue_scatterv(struct glue_comm *c, const void *send, const int *counts, const int *displs,
		  MPI_Datatype tsend, void *recv, int nrecv, MPI_Datatype trecv, int root,
		  MPI_Comm comm);
int glue_allreduce(struct glue_comm *c, const void *send, void *recv, int count, MPI_Datatype type,
		   MPI_Op op, MPI_Comm comm);
int glue_reduce(struct glue_comm *c, const void *send, void *recv, int count, MPI_Datatype type,
		MPI_Op op, int root, MPI_Comm comm);
int glue_reduce_scatter_block(struct glue_comm *c, const void *send, void *recv, int count,
			      MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int glue_reduce_scatter(struct glue_comm *c, const void *send, void *recv, const int *counts,
			MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int glue_scan(struct glue_comm *c, const void *send, void *recv, int count, MPI_Datatype type,
	      MPI_Op op, MPI_Comm comm);
int glue_exscan(struct glue_comm *c, const void *send, void *recv, int count, MPI_Datatype type,
		MPI_Op op, MPI_Comm comm);

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

#define GLUE_CLASSES 31 /* of sizes: powers of two */
#define GLUE_TRIALS  5

enum glue_by { GLUE_BY_COLLNET = 0, GLUE_BY_MPI };

/* Who performs an operation with blocks of a size. */
struct glue_choice {
	bool decided;
	enum glue_by by; /* if not decided: the latest trial */
	unsigned calls;
	int64_t ns[2][GLUE_TRIALS];
};

/* Shared with the daemon, for packed elements. */
struct glue_buffer {
	void *p;
	size_t bytes;
	bool busy;
};

#define GLUE_BUFFERS 2 /* what is sent and what is received */

struct glue_team {
	collnet_t *context;
	collnet_team_t *team;
	MPI_Group group;
	int64_t id;		      /* equal on all its ranks, never 0 */
	const struct glue_comm *user; /* with threads: the one communicator that uses it */
	struct glue_choice choices[GLUE_NOPS][GLUE_CLASSES];
	struct glue_buffer buffers[GLUE_BUFFERS];
	bool no_buffers;	/* the daemon has no more memory for this process */
	int64_t no_spin_before; /* others need the processor */
	struct glue_team *next;
};

/* Decides at the first call of a communicator; collective. Whether the communicator is served. */
bool glue_decide(struct glue_comm *c, MPI_Comm comm);
/* The same for one call. bytes: of a block, 0 for operations with a count per rank. */
bool glue_serves(struct glue_comm *c, MPI_Comm comm, enum glue_op op, size_t bytes);
/* Prints a line about a communicator if the level of verbosity is that high. */
void glue_explain(const struct glue_comm *c, MPI_Comm comm, int level, const char *text);

/* How the operations run. */
struct collnet_coll_options glue_options(void);

/* Nanoseconds of a monotonic clock. */
int64_t glue_now(void);

/* Waits for an operation if its start succeeded (status). MPI_SUCCESS or an error code, as the
 * operations. */
int glue_wait(struct glue_comm *c, const char *what, int status, collnet_request_t **r);

/*
 * `count` elements of a type as contiguous bytes. A type that is contiguous in memory is used in
 * place; else the bytes are in `owned`, which glue_packed_free() frees.
 */
struct glue_packed {
	void *bytes;
	void *owned;
	struct glue_buffer *buffer; /* which the owned bytes are in; NULL: the heap */
};

#define GLUE_NOT_PACKED ((struct glue_packed){ NULL, NULL, NULL })

/* Memory for packed elements. NULL: there is none. */
void *glue_packed_alloc(struct glue_comm *c, struct glue_packed *p, size_t bytes);

/* MPI_SUCCESS or an error class. `blocks` blocks of `count` elements each; filled: with what `data`
 * holds (a send buffer), else the bytes are to be received. */
int glue_pack(struct glue_comm *c, struct glue_packed *p, const void *data, uint32_t blocks,
	      int count, MPI_Datatype type, bool filled, MPI_Comm comm);
/* What was received goes to `data`; for a type that is contiguous it is there already. */
int glue_unpack(const struct glue_packed *p, void *data, uint32_t blocks, int count,
		MPI_Datatype type, MPI_Comm comm);
void glue_packed_free(struct glue_packed *p);
/* One block, as MPI_Pack() and MPI_Unpack(). */
int glue_pack_block(const void *data, int count, MPI_Datatype type, void *bytes, size_t size,
		    MPI_Comm comm);
int glue_unpack_block(const void *bytes, size_t size, void *data, int count, MPI_Datatype type,
		      MPI_Comm comm);
/* Whether the elements of a type are adjacent, so that it is used in place. */
bool glue_is_contiguous(MPI_Datatype type);
/* Bytes of `count` elements; COLLNET_BLOCK_MAX + 1 when they are too many for a block. */
size_t glue_bytes(int count, MPI_Datatype type);
/* Address of block i of `data`. */
void *glue_block(const void *data, uint32_t i, int count, MPI_Datatype type);

#endif
