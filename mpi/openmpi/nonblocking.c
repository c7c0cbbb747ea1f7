/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The non-blocking and the persistent collectives of the component. A call that the glue has
 * started or prepared is an MPI request. Open MPI's progress tests the requests that are pending,
 * in any thread, and completes them.
 *
 * The program may free the communicator, the datatypes and the operation of a call before it is
 * complete. The request retains the communicator. Open MPI's functions retain the others, in the
 * part of the request that all of its non-blocking collectives have; but not those of persistent
 * ones, which are complete when these functions check: the glue retains them.
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

#define IDUP_MOST 4 /* integers of an operation by MPI_Comm_idup() */

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
	if (r->req_persistent) {
		glue_unprepare(&((request_t *)r)->call);
	}
	OMPI_REQUEST_FINI(r);
	OBJ_RELEASE(r);
	*request = MPI_REQUEST_NULL;
	return OMPI_SUCCESS;
}

static int start_persistent(size_t n, ompi_request_t **requests);

static void construct(request_t *r)
{
	ompi_request_t *q = &r->super.super;

	memset((char *)r + sizeof(r->super), 0, sizeof(*r) - sizeof(r->super));
	q->req_type = OMPI_REQUEST_COLL;
	q->req_status._cancelled = 0;
	q->req_start = start_persistent;
	q->req_free = free_request;
	q->req_cancel = cancel;
}

static void destruct(request_t *r)
{
	OBJ_RELEASE(r->call.comm);
}

OBJ_CLASS_INSTANCE(request_t, ompi_coll_base_nbc_request_t, construct, destruct);

static request_t *new_request(module_t *m, MPI_Comm comm, bool persistent)
{
	request_t *r = OBJ_NEW(request_t);

	if (r == NULL) {
		return NULL;
	}
	OMPI_REQUEST_INIT(&r->super.super, persistent);
	r->super.super.req_mpi_object.comm = comm;
	OBJ_RETAIN(comm);
	r->call = (struct glue_call){
		.c = &m->comm, .comm = comm, .nonblocking = !persistent, .persistent = persistent
	};
	return r;
}

/* ---- progress ------------------------------------------------------------------------------- */

/* Takes those that are complete from the list. */
static request_t *remove_completed(void)
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
	r = remove_completed();
	pthread_mutex_unlock(&lock);
	while (r != NULL) {
		request_t *next = r->next;

		r->super.super.req_status.MPI_ERROR = r->rc;
		r->next = NULL;
		ompi_request_complete(&r->super.super, true); /* the program may free or start it */
		r = next;
		n++;
	}
	if (pending && n == 0) {
		sched_yield(); /* the daemon may need this processor, and MPI need not yield */
	}
	return n;
}

static void add(request_t *r)
{
	pthread_mutex_lock(&lock);
	*last = r;
	last = &r->next;
	if (!registered) {
		registered = true;
		opal_progress_register(progress);
	}
	pthread_mutex_unlock(&lock);
}

static void activate(request_t *r)
{
	ompi_request_t *q = &r->super.super;

	q->req_complete = REQUEST_PENDING;
	q->req_state = OMPI_REQUEST_ACTIVE;
	q->req_status.MPI_ERROR = OMPI_SUCCESS;
}

/* A non-blocking call has started with this result. */
static int start(request_t *r, int rc, ompi_request_t **out)
{
	*out = MPI_REQUEST_NULL;
	if (r == NULL) {
		return rc;
	}
	if (rc != MPI_SUCCESS) {
		rc = rc != GLUE_DECLINED ? glue_finish(&r->call, rc) : rc;
		OBJ_RELEASE(r);
		return rc;
	}
	*out = &r->super.super;
	activate(r);
	if (!glue_is_outstanding(&r->call)) {
		return ompi_request_complete(*out, false); /* no bytes */
	}
	add(r);
	return MPI_SUCCESS;
}

/* An error is that of the wait: the result of MPI_Start() has no error handler. */
static int start_persistent(size_t n, ompi_request_t **requests)
{
	for (size_t i = 0; i < n; i++) {
		request_t *r = (request_t *)requests[i];
		int rc = MPI_SUCCESS;

		activate(r);
		if (r->call.request != NULL) {
			rc = glue_start(&r->call);
		}
		if (r->call.request != NULL && rc == MPI_SUCCESS) {
			add(r);
			continue;
		}
		r->super.super.req_status.MPI_ERROR = rc;
		ompi_request_complete(&r->super.super, false);
	}
	return OMPI_SUCCESS;
}

static int prepare(request_t *r)
{
	return r != NULL ? glue_prepare(&r->call) : MPI_ERR_NO_MEM;
}

/* A persistent call is prepared with this result. */
static int prepared(request_t *r, int rc, ompi_request_t **out)
{
	*out = MPI_REQUEST_NULL;
	rc = r != NULL ? glue_prepared(&r->call, rc) : rc;
	if (rc == MPI_SUCCESS) {
		*out = &r->super.super;
	} else if (r != NULL) {
		OBJ_RELEASE(r);
	}
	return rc;
}

void retain_op(MPI_Op op, bool hold)
{
	if (hold) {
		OBJ_RETAIN(op);
	} else {
		OBJ_RELEASE(op);
	}
}

void nonblocking_close(void)
{
	if (registered) {
		opal_progress_unregister(progress);
		registered = false;
	}
}

/* ---- the collectives ------------------------------------------------------------------------ */

#define START(r, call, out)                                                                        \
	start(r, (r) == NULL ? MPI_ERR_NO_MEM : is_initialized() ? (call) : GLUE_DECLINED, out)

static int coll_ibarrier(MPI_Comm comm, ompi_request_t **out, mca_coll_base_module_t *module)
{
	module_t *m = (module_t *)module;
	request_t *r = new_request(m, comm, false);
	int rc = START(r, glue_barrier(&r->call), out);

	return rc != GLUE_DECLINED ? rc
				   : m->previous_ibarrier(comm, out, m->previous_ibarrier_module);
}

static int coll_barrier_init(MPI_Comm comm, ompi_info_t *info, ompi_request_t **out,
			     mca_coll_base_module_t *module)
{
	module_t *m = (module_t *)module;
	request_t *r = new_request(m, comm, true);
	int rc = prepare(r);

	rc = prepared(r, rc == MPI_SUCCESS ? glue_barrier(&r->call) : rc, out);
	return rc != GLUE_DECLINED
		       ? rc
		       : m->previous_barrier_init(comm, info, out, m->previous_barrier_init_module);
}

/* Passes what the glue declines to the previous module. */
#define X(name, parameters, arguments)                                                             \
	static int coll_i##name(parameters, MPI_Comm comm, ompi_request_t **out,                   \
				mca_coll_base_module_t *module)                                    \
	{                                                                                          \
		module_t *m = (module_t *)module;                                                  \
		request_t *r = new_request(m, comm, false);                                        \
		int rc = START(r, glue_##name(&r->call, arguments), out);                          \
		return rc != GLUE_DECLINED ? rc                                                    \
					   : m->previous_i##name(arguments, comm, out,             \
								 m->previous_i##name##_module);    \
	}                                                                                          \
	static int coll_##name##_init(parameters, MPI_Comm comm, ompi_info_t *info,                \
				      ompi_request_t **out, mca_coll_base_module_t *module)        \
	{                                                                                          \
		module_t *m = (module_t *)module;                                                  \
		request_t *r = new_request(m, comm, true);                                         \
		int rc = prepare(r);                                                               \
		rc = prepared(r, rc == MPI_SUCCESS ? glue_##name(&r->call, arguments) : rc, out);  \
		return rc != GLUE_DECLINED                                                         \
			       ? rc                                                                \
			       : m->previous_##name##_init(arguments, comm, info, out,             \
							   m->previous_##name##_init_module);      \
	}
EACH_WITH_DATA(X)
#undef X

/*
 * MPI_Comm_idup() makes a communicator by operations on a few integers, which Open MPI starts from
 * its progress: on each rank at another place among the program's own calls, while a team's
 * operations have one order on all ranks. Of an inter-communicator, they are reductions and
 * broadcasts on the communicator of its local group. The type of a broadcast need not be the same
 * on all ranks, but its bytes are.
 */
static bool are_few(int count, MPI_Datatype type)
{
	return is_initialized() && glue_bytes(count, type) <= IDUP_MOST * sizeof(int);
}

#define X(name, few, parameters, arguments)                                                        \
	static int i##name(parameters, MPI_Comm comm, ompi_request_t **out,                        \
			   mca_coll_base_module_t *module)                                         \
	{                                                                                          \
		module_t *m = (module_t *)module;                                                  \
		return (few) ? m->previous_i##name(arguments, comm, out,                           \
						   m->previous_i##name##_module)                   \
			     : coll_i##name(arguments, comm, out, module);                         \
	}
X(allreduce, type == MPI_INT && count <= IDUP_MOST, REDUCED, LIST(send, recv, count, type, op))
X(reduce, type == MPI_INT && count <= IDUP_MOST, LIST(REDUCED, int root),
  LIST(send, recv, count, type, op, root))
X(bcast, are_few(count, type), LIST(void *buffer, int count, MPI_Datatype type, int root),
  LIST(buffer, count, type, root))
#undef X

void nonblocking_offer(module_t *m)
{
#define X(name, ...)                                                                               \
	m->super.coll_i##name = coll_i##name;                                                      \
	m->super.coll_##name##_init = coll_##name##_init;
	EACH_COLLECTIVE(X)
#undef X
	m->super.coll_iallreduce = iallreduce;
	m->super.coll_ireduce = ireduce;
	m->super.coll_ibcast = ibcast;
}
