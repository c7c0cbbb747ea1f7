/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Included before a program of MPI, to make its collectives non-blocking ones that are waited for
 * at once. MPI_Barrier() stays as it is: a communicator is not served before its first blocking
 * collective.
 */
#include <mpi.h>

static MPI_Request nonblocking_request;

#define WAITED(call) (call, MPI_Wait(&nonblocking_request, MPI_STATUS_IGNORE))

#define MPI_Allgather(...)	WAITED(MPI_Iallgather(__VA_ARGS__, &nonblocking_request))
#define MPI_Allgatherv(...)	WAITED(MPI_Iallgatherv(__VA_ARGS__, &nonblocking_request))
#define MPI_Allreduce(...)	WAITED(MPI_Iallreduce(__VA_ARGS__, &nonblocking_request))
#define MPI_Alltoall(...)	WAITED(MPI_Ialltoall(__VA_ARGS__, &nonblocking_request))
#define MPI_Alltoallv(...)	WAITED(MPI_Ialltoallv(__VA_ARGS__, &nonblocking_request))
#define MPI_Alltoallw(...)	WAITED(MPI_Ialltoallw(__VA_ARGS__, &nonblocking_request))
#define MPI_Bcast(...)		WAITED(MPI_Ibcast(__VA_ARGS__, &nonblocking_request))
#define MPI_Exscan(...)		WAITED(MPI_Iexscan(__VA_ARGS__, &nonblocking_request))
#define MPI_Gather(...)		WAITED(MPI_Igather(__VA_ARGS__, &nonblocking_request))
#define MPI_Gatherv(...)	WAITED(MPI_Igatherv(__VA_ARGS__, &nonblocking_request))
#define MPI_Reduce(...)		WAITED(MPI_Ireduce(__VA_ARGS__, &nonblocking_request))
#define MPI_Reduce_scatter(...) WAITED(MPI_Ireduce_scatter(__VA_ARGS__, &nonblocking_request))
#define MPI_Reduce_scatter_block(...)                                                              \
	WAITED(MPI_Ireduce_scatter_block(__VA_ARGS__, &nonblocking_request))
#define MPI_Scan(...)	  WAITED(MPI_Iscan(__VA_ARGS__, &nonblocking_request))
#define MPI_Scatter(...)  WAITED(MPI_Iscatter(__VA_ARGS__, &nonblocking_request))
#define MPI_Scatterv(...) WAITED(MPI_Iscatterv(__VA_ARGS__, &nonblocking_request))
