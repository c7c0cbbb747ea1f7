/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collectives with data. This file is included once for each type of counts, with macros for
 *
 *   OWN              the communicator of a call whose counts are those of one rank
 *   NAME, PNAME      the names of MPI's functions
 *   COUNT, DISPL     the types of counts and displacements
 *   BLOCKS           as the argument of glue_reduce_scatter()
 *   SENDS, RECEIVES  counts and displacements as the glue's arguments
 */

EXPORT int NAME(Bcast)(void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm)
{
	struct glue_comm *c = one_typed(rooted_comm_of(comm, root), type);

	SERVE(c, glue_bcast(&k, buffer, glue_narrow(count), type, root), PNAME(Bcast),
	      (buffer, count, type, root, comm));
}

EXPORT int NAME(Allgather)(const void *send, COUNT nsend, MPI_Datatype tsend, void *recv,
			   COUNT nrecv, MPI_Datatype trecv, MPI_Comm comm)
{
	struct glue_comm *c = typed(counted(comm_of(comm), send, nsend), send, tsend, trecv);

	SERVE(c,
	      glue_allgather(&k, send, glue_narrow(nsend), tsend, recv, glue_narrow(nrecv), trecv),
	      PNAME(Allgather), (send, nsend, tsend, recv, nrecv, trecv, comm));
}

EXPORT int NAME(Alltoall)(const void *send, COUNT nsend, MPI_Datatype tsend, void *recv,
			  COUNT nrecv, MPI_Datatype trecv, MPI_Comm comm)
{
	struct glue_comm *c = typed(counted(comm_of(comm), send, nsend), send, tsend, trecv);

	SERVE(c,
	      glue_alltoall(&k, send, glue_narrow(nsend), tsend, recv, glue_narrow(nrecv), trecv),
	      PNAME(Alltoall), (send, nsend, tsend, recv, nrecv, trecv, comm));
}

EXPORT int NAME(Gather)(const void *send, COUNT nsend, MPI_Datatype tsend, void *recv, COUNT nrecv,
			MPI_Datatype trecv, int root, MPI_Comm comm)
{
	struct glue_comm *c = counted(rooted_typed(comm, root, trecv, send, tsend), send, nsend);

	SERVE(c,
	      glue_gather(&k, send, glue_narrow(nsend), tsend, recv, glue_narrow(nrecv), trecv,
			  root),
	      PNAME(Gather), (send, nsend, tsend, recv, nrecv, trecv, root, comm));
}

EXPORT int NAME(Scatter)(const void *send, COUNT nsend, MPI_Datatype tsend, void *recv, COUNT nrecv,
			 MPI_Datatype trecv, int root, MPI_Comm comm)
{
	struct glue_comm *c = counted(rooted_typed(comm, root, tsend, recv, trecv), recv, nrecv);

	SERVE(c,
	      glue_scatter(&k, send, glue_narrow(nsend), tsend, recv, glue_narrow(nrecv), trecv,
			   root),
	      PNAME(Scatter), (send, nsend, tsend, recv, nrecv, trecv, root, comm));
}

EXPORT int NAME(Alltoallv)(const void *send, const COUNT *send_counts, const DISPL *send_displs,
			   MPI_Datatype tsend, void *recv, const COUNT *recv_counts,
			   const DISPL *recv_displs, MPI_Datatype trecv, MPI_Comm comm)
{
	struct glue_comm *c = OWN(typed(comm_of(comm), send, tsend, trecv));

	SERVE(c,
	      glue_alltoallv(&k, send, SENDS(send_counts, send_displs), tsend, recv,
			     RECEIVES(recv_counts, recv_displs), trecv),
	      PNAME(Alltoallv),
	      (send, send_counts, send_displs, tsend, recv, recv_counts, recv_displs, trecv, comm));
}

EXPORT int NAME(Alltoallw)(const void *send, const COUNT *send_counts, const DISPL *send_displs,
			   const MPI_Datatype *tsend, void *recv, const COUNT *recv_counts,
			   const DISPL *recv_displs, const MPI_Datatype *trecv, MPI_Comm comm)
{
	struct glue_comm *c = OWN(all_typed(comm_of(comm), recv_counts, trecv));

	c = send == MPI_IN_PLACE ? c : OWN(all_typed(c, send_counts, tsend));
	SERVE(c,
	      glue_alltoallw(&k, send, SENDS(send_counts, send_displs), tsend, recv,
			     RECEIVES(recv_counts, recv_displs), trecv),
	      PNAME(Alltoallw),
	      (send, send_counts, send_displs, tsend, recv, recv_counts, recv_displs, trecv, comm));
}

EXPORT int NAME(Allgatherv)(const void *send, COUNT nsend, MPI_Datatype tsend, void *recv,
			    const COUNT *counts, const DISPL *displs, MPI_Datatype trecv,
			    MPI_Comm comm)
{
	struct glue_comm *c = typed(counted(comm_of(comm), send, nsend), send, tsend, trecv);

	SERVE(c,
	      glue_allgatherv(&k, send, glue_narrow(nsend), tsend, recv, RECEIVES(counts, displs),
			      trecv),
	      PNAME(Allgatherv), (send, nsend, tsend, recv, counts, displs, trecv, comm));
}

EXPORT int NAME(Gatherv)(const void *send, COUNT nsend, MPI_Datatype tsend, void *recv,
			 const COUNT *counts, const DISPL *displs, MPI_Datatype trecv, int root,
			 MPI_Comm comm)
{
	struct glue_comm *c = OWN(counted(rooted_typed(comm, root, trecv, send, tsend), send,
					  nsend));

	SERVE(c,
	      glue_gatherv(&k, send, glue_narrow(nsend), tsend, recv, RECEIVES(counts, displs),
			   trecv, root),
	      PNAME(Gatherv), (send, nsend, tsend, recv, counts, displs, trecv, root, comm));
}

EXPORT int NAME(Scatterv)(const void *send, const COUNT *counts, const DISPL *displs,
			  MPI_Datatype tsend, void *recv, COUNT nrecv, MPI_Datatype trecv, int root,
			  MPI_Comm comm)
{
	struct glue_comm *c = OWN(counted(rooted_typed(comm, root, tsend, recv, trecv), recv,
					  nrecv));

	SERVE(c,
	      glue_scatterv(&k, send, SENDS(counts, displs), tsend, recv, glue_narrow(nrecv), trecv,
			    root),
	      PNAME(Scatterv), (send, counts, displs, tsend, recv, nrecv, trecv, root, comm));
}

EXPORT int NAME(Allreduce)(const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op,
			   MPI_Comm comm)
{
	struct glue_comm *c = reducible(comm_of(comm), type, op);

	SERVE(c, glue_allreduce(&k, send, recv, glue_narrow(count), type, op), PNAME(Allreduce),
	      (send, recv, count, type, op, comm));
}

EXPORT int NAME(Reduce)(const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op,
			int root, MPI_Comm comm)
{
	struct glue_comm *c = reducible(rooted_comm_of(comm, root), type, op);

	SERVE(c, glue_reduce(&k, send, recv, glue_narrow(count), type, op, root), PNAME(Reduce),
	      (send, recv, count, type, op, root, comm));
}

EXPORT int NAME(Reduce_scatter)(const void *send, void *recv, const COUNT *counts,
				MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct glue_comm *c = reducible(comm_of(comm), type, op);

	SERVE(c, glue_reduce_scatter(&k, send, recv, BLOCKS(counts), type, op),
	      PNAME(Reduce_scatter), (send, recv, counts, type, op, comm));
}

EXPORT int NAME(Reduce_scatter_block)(const void *send, void *recv, COUNT count, MPI_Datatype type,
				      MPI_Op op, MPI_Comm comm)
{
	struct glue_comm *c = reducible(comm_of(comm), type, op);

	SERVE(c, glue_reduce_scatter_block(&k, send, recv, glue_narrow(count), type, op),
	      PNAME(Reduce_scatter_block), (send, recv, count, type, op, comm));
}

EXPORT int NAME(Scan)(const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op,
		      MPI_Comm comm)
{
	struct glue_comm *c = reducible(comm_of(comm), type, op);

	SERVE(c, glue_scan(&k, send, recv, glue_narrow(count), type, op), PNAME(Scan),
	      (send, recv, count, type, op, comm));
}

EXPORT int NAME(Exscan)(const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op,
			MPI_Comm comm)
{
	struct glue_comm *c = reducible(comm_of(comm), type, op);

	SERVE(c, glue_exscan(&k, send, recv, glue_narrow(count), type, op), PNAME(Exscan),
	      (send, recv, count, type, op, comm));
}
