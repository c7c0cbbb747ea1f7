/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the component: a module, which is one communicator's, with what it passes calls to.
 */
#ifndef COLLNET_COLL_COLLNET_H
#define COLLNET_COLL_COLLNET_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/runtime/mpiruntime.h"

#include "mpi/glue/glue.h"

/*
 * The collectives: X(name, parameters, arguments), without the parameters that they all have. Of
 * each, Open MPI has a blocking, a non-blocking and a persistent function, and the glue has one.
 */
#define LIST(...) __VA_ARGS__
#define SEND_RECV                                                                                  \
	LIST(const void *send, int nsend, MPI_Datatype tsend, void *recv, int nrecv,               \
	     MPI_Datatype trecv)
#define REDUCED LIST(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op)

#define EACH_WITH_DATA(X)                                                                          \
	X(bcast, LIST(void *buffer, int count, MPI_Datatype type, int root),                       \
	  LIST(buffer, count, type, root))                                                         \
	X(allgather, SEND_RECV, LIST(send, nsend, tsend, recv, nrecv, trecv))                      \
	X(alltoall, SEND_RECV, LIST(send, nsend, tsend, recv, nrecv, trecv))                       \
	X(gather, LIST(SEND_RECV, int root), LIST(send, nsend, tsend, recv, nrecv, trecv, root))   \
	X(scatter, LIST(SEND_RECV, int root), LIST(send, nsend, tsend, recv, nrecv, trecv, root))  \
	X(alltoallv,                                                                               \
	  LIST(const void *send, const int *nsend, const int *at_send, MPI_Datatype tsend,         \
	       void *recv, const int *nrecv, const int *at_recv, MPI_Datatype trecv),              \
	  LIST(send, nsend, at_send, tsend, recv, nrecv, at_recv, trecv))                          \
	X(alltoallw,                                                                               \
	  LIST(const void *send, const int *nsend, const int *at_send, MPI_Datatype const *tsend,  \
	       void *recv, const int *nrecv, const int *at_recv, MPI_Datatype const *trecv),       \
	  LIST(send, nsend, at_send, tsend, recv, nrecv, at_recv, trecv))                          \
	X(allgatherv,                                                                              \
	  LIST(const void *send, int nsend, MPI_Datatype tsend, void *recv, const int *nrecv,      \
	       const int *at_recv, MPI_Datatype trecv),                                            \
	  LIST(send, nsend, tsend, recv, nrecv, at_recv, trecv))                                   \
	X(gatherv,                                                                                 \
	  LIST(const void *send, int nsend, MPI_Datatype tsend, void *recv, const int *nrecv,      \
	       const int *at_recv, MPI_Datatype trecv, int root),                                  \
	  LIST(send, nsend, tsend, recv, nrecv, at_recv, trecv, root))                             \
	X(scatterv,                                                                                \
	  LIST(const void *send, const int *nsend, const int *at_send, MPI_Datatype tsend,         \
	       void *recv, int nrecv, MPI_Datatype trecv, int root),                               \
	  LIST(send, nsend, at_send, tsend, recv, nrecv, trecv, root))                             \
	X(allreduce, REDUCED, LIST(send, recv, count, type, op))                                   \
	X(reduce, LIST(REDUCED, int root), LIST(send, recv, count, type, op, root))                \
	X(reduce_scatter,                                                                          \
	  LIST(const void *send, void *recv, const int *counts, MPI_Datatype type, MPI_Op op),     \
	  LIST(send, recv, counts, type, op))                                                      \
	X(reduce_scatter_block, REDUCED, LIST(send, recv, count, type, op))                        \
	X(scan, REDUCED, LIST(send, recv, count, type, op))                                        \
	X(exscan, REDUCED, LIST(send, recv, count, type, op))

/* X(name, ...) for all of them. */
#define EACH_COLLECTIVE(X) EACH_WITH_DATA(X) X(barrier, , )

/* A module's function of that name and what it replaces. */
#define PREVIOUS(function)                                                                         \
	mca_coll_base_module_##function##_fn_t previous_##function;                                \
	mca_coll_base_module_t *previous_##function##_module;

struct module {
	mca_coll_base_module_t super;
	struct glue_comm comm;
#define X(name, ...) PREVIOUS(name) PREVIOUS(i##name) PREVIOUS(name##_init)
	EACH_COLLECTIVE(X)
#undef X
};

OBJ_CLASS_DECLARATION(module_t);
typedef struct module module_t;

/*
 * In MPI_Init() of a spawned process, Open MPI performs collectives on its MPI_COMM_WORLD, on all
 * ranks alike, when its functions do not work yet.
 */
static inline bool is_initialized(void)
{
	return ompi_mpi_state >= OMPI_MPI_STATE_INIT_COMPLETED;
}

/* Publishes that this process has the component, with this priority: before MPI_Init() exchanges
 * what processes publish. */
void presence_publish(int priority);
/* Whether all processes of a communicator have published the same. The answer is the same on all
 * that have. One of MPI_COMM_WORLD's prints which of these have not. */
bool presence_is_on_all(MPI_Comm comm);

/* Puts the non-blocking and the persistent collectives into a module. */
void nonblocking_offer(module_t *m);
/* Keeps an operation of a program's for a persistent one, or no longer. */
void retain_op(MPI_Op op, bool hold);
/* MPI is finalized. */
void nonblocking_close(void);

#endif
