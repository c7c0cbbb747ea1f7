/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The non-blocking collectives of the component. A call that the glue has started is an MPI
 * request. Open MPI's progress tests the requests that are pending, in any thread, and completes
 * them.
 *
 * The program may free the communicator, the datatypes and the operation of a call before it is
 * complete. The request holds the communicator; the others Open MPI's functions hold, in the part
 * of the request that all of its non-blocking collectives have.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "mpi/openmpi/coll_collnet.h"

/* Open MPI's header of operations, which the one of requests includes, needs one that is not
 * installed. */
#define OMPI_OP_H
typedef struct ompi_op_t ompi_op_t;

#include "ompi/constants.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "opal/runtime/opal_progress.h"

struct request {
	ompi_coll_base_nbc_request_t super;
	struct glue_call call;
	int rc;
	struct request *next;
};
typedef struct request request_t;

/* The pending ones, in the order in which they started. */
static request_t *first, **last = &first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool registered;

/* ---- requests ------------------------------------------------------------------------------ */

static int cancel(ompi_request_t *request, int complete)
{
	(void)request;
	(void)complete;
	return MPI_ERR_REQUEST;
}

static int free_request(ompi_request_t **request)
{
	ompi_request_t *r = *request;

	if (!REQUEST_COMPLETE(r)) {
		return MPI_ERR_REQUEST;
	}
	OMPI_REQUEST_FINI(r);
	OBJ_RELEASE(r);
	*request = MPI_REQUEST_NULL;
	return OMPI_SUCCESS;
}

static void construct(request_t *r)
{
	ompi_request_t *q = &r->super.super;

	memset((char *)r + sizeof(r->super), 0, sizeof(*r) - sizeof(r->super));
	q->req_type = OMPI_REQUEST_COLL;
	q->req_status._cancelled = 0;
	q->req_free = free_request;
	q->req_cancel = cancel;
}

static void destruct(request_t *r)
{
	OBJ_RELEASE(r->call.comm);
}

OBJ_CLASS_INSTANCE(request_t, ompi_coll_base_nbc_request_t, construct, destruct);

static request_t *new_request(module_t *m, MPI_Comm comm)
{
	request_t *r = OBJ_NEW(request_t);

	if (r == NULL) {
		return NULL;
	}
	OMPI_REQUEST_INIT(&r->super.super, false);
	r->super.super.req_mpi_object.comm = comm;
	OBJ_RETAIN(comm);
	r->call = (struct glue_call){ .c = &m->comm, .comm = comm, .nonblocking = true };
	return r;
}

/* ---- progress ------------------------------------------------------------------------------- */

/* Takes those that are complete from the list. */
static request_t *take_completed(void)
{
	request_t *completed = NULL, **end = &completed, **at = &first;

	while (*at != NULL) {
		request_t *r = *at;

		if (!glue_test(&r->call, &r->rc)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		r->next = NULL;
		*end = r;
		end = &r->next;
	}
	last = at;
	return completed;
}

static int progress(void)
{
	request_t *r;
	int n = 0;

	/* Not again while the glue tests a call, and not in two threads. */
	if (pthread_mutex_trylock(&lock) != 0) {
		return 0;
	}
	const bool pending = first != NULL;
	r = take_completed();
	pthread_mutex_unlock(&lock);
	while (r != NULL) {
		request_t *next = r->next;

		r->super.super.req_status.MPI_ERROR = r->rc;
		ompi_request_complete(&r->super.super, true); /* and the program may free it */
		r = next;
		n++;
	}
	if (pending && n == 0) {
		sched_yield(); /* the daemon may need this processor, and MPI need not yield */
	}
	return n;
}

static int start(request_t *r, int rc, ompi_request_t **out)
{
	*out = MPI_REQUEST_NULL;
	if (rc != MPI_SUCCESS) {
		rc = glue_finish(&r->call, rc);
		OBJ_RELEASE(r);
		return rc;
	}
	*out = &r->super.super;
	(*out)->req_state = OMPI_REQUEST_ACTIVE;
	(*out)->req_status.MPI_ERROR = OMPI_SUCCESS;
	if (r->call.request == NULL) {
		return ompi_request_complete(*out, false); /* no bytes */
	}
	pthread_mutex_lock(&lock);
	*last = r;
	last = &r->next;
	if (!registered) {
		registered = true;
		opal_progress_register(progress);
	}
	pthread_mutex_unlock(&lock);
	return MPI_SUCCESS;
}

void nonblocking_close(void)
{
	if (registered) {
		opal_progress_unregister(progress);
		registered = false;
	}
}

/* ---- the collectives ------------------------------------------------------------------------ */

/* Passes what the glue declines to the previous module. */
#define START(name, started, ...)                                                                  \
	module_t *m = (module_t *)module;                                                          \
	request_t *r = new_request(m, comm);                                                       \
	int rc = r != NULL ? (started) : MPI_ERR_NO_MEM;                                           \
	if (rc == GLUE_DECLINED) {                                                                 \
		OBJ_RELEASE(r);                                                                    \
		return m->previous_##name(__VA_ARGS__, comm, out, m->previous_##name##_module);    \
	}                                                                                          \
	return r != NULL ? start(r, rc, out) : rc

static int coll_ibarrier(MPI_Comm comm, ompi_request_t **out, mca_coll_base_module_t *module)
{
	module_t *m = (module_t *)module;
	request_t *r = new_request(m, comm);
	int rc = r != NULL ? glue_barrier(&r->call) : MPI_ERR_NO_MEM;

	if (rc == GLUE_DECLINED) {
		OBJ_RELEASE(r);
		return m->previous_ibarrier(comm, out, m->previous_ibarrier_module);
	}
	return r != NULL ? start(r, rc, out) : rc;
}

static int coll_ibcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
		       ompi_request_t **out, mca_coll_base_module_t *module)
{
	START(ibcast, glue_bcast(&r->call, buffer, count, type, root), buffer, count, type, root);
}

static int coll_iallgather(const void *send, int nsend, MPI_Datatype tsend, void *recv, int nrecv,
			   MPI_Datatype trecv, MPI_Comm comm, ompi_request_t **out,
			   mca_coll_base_module_t *module)
{
	START(iallgather, glue_allgather(&r->call, send, nsend, tsend, recv, nrecv, trecv), send,
	      nsend, tsend, recv, nrecv, trecv);
}

static int coll_ialltoall(const void *send, int nsend, MPI_Datatype tsend, void *recv, int nrecv,
			  MPI_Datatype trecv, MPI_Comm comm, ompi_request_t **out,
			  mca_coll_base_module_t *module)
{
	START(ialltoall, glue_alltoall(&r->call, send, nsend, tsend, recv, nrecv, trecv), send,
	      nsend, tsend, recv, nrecv, trecv);
}

static int coll_igather(const void *send, int nsend, MPI_Datatype tsend, void *recv, int nrecv,
			MPI_Datatype trecv, int root, MPI_Comm comm, ompi_request_t **out,
			mca_coll_base_module_t *module)
{
	START(igather, glue_gather(&r->call, send, nsend, tsend, recv, nrecv, trecv, root), send,
	      nsend, tsend, recv, nrecv, trecv, root);
}

static int coll_iscatter(const void *send, int nsend, MPI_Datatype tsend, void *recv, int nrecv,
			 MPI_Datatype trecv, int root, MPI_Comm comm, ompi_request_t **out,
			 mca_coll_base_module_t *module)
{
	START(iscatter, glue_scatter(&r->call, send, nsend, tsend, recv, nrecv, trecv, root), send,
	      nsend, tsend, recv, nrecv, trecv, root);
}

static int coll_ialltoallv(const void *send, const int *send_counts, const int *send_displs,
			   MPI_Datatype tsend, void *recv, const int *recv_counts,
			   const int *recv_displs, MPI_Datatype trecv, MPI_Comm comm,
			   ompi_request_t **out, mca_coll_base_module_t *module)
{
	START(ialltoallv,
	      glue_alltoallv(&r->call, send, send_counts, send_displs, tsend, recv, recv_counts,
			     recv_displs, trecv),
	      send, send_counts, send_displs, tsend, recv, recv_counts, recv_displs, trecv);
}

static int coll_ialltoallw(const void *send, const int *send_counts, const int *send_displs,
			   MPI_Datatype const *tsend, void *recv, const int *recv_counts,
			   const int *recv_displs, MPI_Datatype const *trecv, MPI_Comm comm,
			   ompi_request_t **out, mca_coll_base_module_t *module)
{
	START(ialltoallw,
	      glue_alltoallw(&r->call, send, send_counts, send_displs, tsend, recv, recv_counts,
			     recv_displs, trecv),
	      send, send_counts, send_displs, tsend, recv, recv_counts, recv_displs, trecv);
}

static int coll_iallgatherv(const void *send, int nsend, MPI_Datatype tsend, void *recv,
			    const int *counts, const int *displs, MPI_Datatype trecv, MPI_Comm comm,
			    ompi_request_t **out, mca_coll_base_module_t *module)
{
	START(iallgatherv,
	      glue_allgatherv(&r->call, send, nsend, tsend, recv, counts, displs, trecv), send,
	      nsend, tsend, recv, counts, displs, trecv);
}

static int coll_igatherv(const void *send, int nsend, MPI_Datatype tsend, void *recv,
			 const int *counts, const int *displs, MPI_Datatype trecv, int root,
			 MPI_Comm comm, ompi_request_t **out, mca_coll_base_module_t *module)
{
	START(igatherv,
	      glue_gatherv(&r->call, send, nsend, tsend, recv, counts, displs, trecv, root), send,
	      nsend, tsend, recv, counts, displs, trecv, root);
}

static int coll_iscatterv(const void *send, const int *counts, const int *displs,
			  MPI_Datatype tsend, void *recv, int nrecv, MPI_Datatype trecv, int root,
			  MPI_Comm comm, ompi_request_t **out, mca_coll_base_module_t *module)
{
	START(iscatterv,
	      glue_scatterv(&r->call, send, counts, displs, tsend, recv, nrecv, trecv, root), send,
	      counts, displs, tsend, recv, nrecv, trecv, root);
}

static int coll_iallreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			   MPI_Comm comm, ompi_request_t **out, mca_coll_base_module_t *module)
{
	START(iallreduce, glue_allreduce(&r->call, send, recv, count, type, op), send, recv, count,
	      type, op);
}

static int coll_ireduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			int root, MPI_Comm comm, ompi_request_t **out,
			mca_coll_base_module_t *module)
{
	START(ireduce, glue_reduce(&r->call, send, recv, count, type, op, root), send, recv, count,
	      type, op, root);
}

static int coll_ireduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type,
				      MPI_Op op, MPI_Comm comm, ompi_request_t **out,
				      mca_coll_base_module_t *module)
{
	START(ireduce_scatter_block,
	      glue_reduce_scatter_block(&r->call, send, recv, count, type, op), send, recv, count,
	      type, op);
}

static int coll_iscan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		      MPI_Comm comm, ompi_request_t **out, mca_coll_base_module_t *module)
{
	START(iscan, glue_scan(&r->call, send, recv, count, type, op), send, recv, count, type, op);
}

static int coll_iexscan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			MPI_Comm comm, ompi_request_t **out, mca_coll_base_module_t *module)
{
	START(iexscan, glue_exscan(&r->call, send, recv, count, type, op), send, recv, count, type,
	      op);
}

void nonblocking_offer(module_t *m)
{
#define X(name) m->super.coll_##name = coll_##name;
	EACH_NONBLOCKING(X)
#undef X
}
