/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the component: a module, which is one communicator's, with what it passes calls to.
 */
#ifndef COLLNET_COLL_COLLNET_H
#define COLLNET_COLL_COLLNET_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"

#include "mpi/glue/glue.h"

#define EACH_BLOCKING(X)                                                                           \
	X(allgather)                                                                               \
	X(allgatherv)                                                                              \
	X(allreduce)                                                                               \
	X(alltoall)                                                                                \
	X(alltoallv)                                                                               \
	X(alltoallw)                                                                               \
	X(barrier)                                                                                 \
	X(bcast)                                                                                   \
	X(exscan)                                                                                  \
	X(gather)                                                                                  \
	X(gatherv)                                                                                 \
	X(reduce) X(reduce_scatter) X(reduce_scatter_block) X(scan) X(scatter) X(scatterv)

/* All but ireduce_scatter, which may consist of two operations. */
#define EACH_NONBLOCKING(X)                                                                        \
	X(iallgather)                                                                              \
	X(iallgatherv)                                                                             \
	X(iallreduce)                                                                              \
	X(ialltoall)                                                                               \
	X(ialltoallv)                                                                              \
	X(ialltoallw)                                                                              \
	X(ibarrier)                                                                                \
	X(ibcast)                                                                                  \
	X(iexscan)                                                                                 \
	X(igather)                                                                                 \
	X(igatherv) X(ireduce) X(ireduce_scatter_block) X(iscan) X(iscatter) X(iscatterv)

#define EACH_COLLECTIVE(X) EACH_BLOCKING(X) EACH_NONBLOCKING(X)

struct module {
	mca_coll_base_module_t super;
	struct glue_comm comm;
#define X(name)                                                                                    \
	mca_coll_base_module_##name##_fn_t previous_##name;                                        \
	mca_coll_base_module_t *previous_##name##_module;
	EACH_COLLECTIVE(X)
#undef X
};

OBJ_CLASS_DECLARATION(module_t);
typedef struct module module_t;

/* Puts the non-blocking collectives into a module. */
void nonblocking_offer(module_t *m);
/* MPI is finalized. */
void nonblocking_close(void);

#endif
