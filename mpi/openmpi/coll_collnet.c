/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collective component of Open MPI: mca_coll_collnet.so. Open MPI asks it for a module for each
 * communicator; the module with the highest priority provides its collectives. Each function of
 * this module calls the glue, and if the glue declines, the function of the previous module.
 *
 * One build serves one release series of Open MPI, whose internal headers it is compiled against.
 */
#include "ompi_config.h"

#include <stdlib.h>

#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "opal/runtime/opal_progress.h"

#include "mpi/openmpi/coll_collnet.h"

/* Below every other component of Open MPI: collnet is used when the user asks for it. */
#define PRIORITY 0

static int priority = PRIORITY, verbose;
static char *how_to_select;

static void construct(struct module *m)
{
	memset((char *)m + sizeof(m->super), 0, sizeof(*m) - sizeof(m->super));
}

static void destruct(struct module *m)
{
	glue_comm_free(&m->comm);
#define X(name)                                                                                    \
	if (m->previous_##name##_module != NULL) {                                                 \
		OBJ_RELEASE(m->previous_##name##_module);                                          \
	}
	EACH_COLLECTIVE(X)
#undef X
}

OBJ_CLASS_INSTANCE(module_t, mca_coll_base_module_t, construct, destruct);

/* ---- what the glue needs of Open MPI ------------------------------------------------------- */

static int min_of(void *self, int64_t *values, int n, MPI_Comm comm)
{
	module_t *m = self;

	return m->previous_allreduce(MPI_IN_PLACE, values, n, MPI_INT64_T, MPI_MIN, comm,
				     m->previous_allreduce_module);
}

static int bcast_of(void *self, void *data, int bytes, MPI_Comm comm)
{
	module_t *m = self;

	return m->previous_bcast(data, bytes, MPI_BYTE, 0, comm, m->previous_bcast_module);
}

bool glue_is_predefined(MPI_Datatype type)
{
	return ompi_datatype_is_predefined(type);
}

static struct glue_mpi open_mpi = { NULL, min_of, bcast_of, opal_progress, false };

/* ---- the blocking collectives
 * ------------------------------------------------------------------------ */

/* Passes what the glue declines to the previous module. */
#define SERVE(name, call, ...)                                                                     \
	module_t *m = (module_t *)module;                                                          \
	struct glue_call k = { .c = &m->comm, .comm = comm };                                      \
	int rc = call;                                                                             \
	if (rc == GLUE_DECLINED) {                                                                 \
		rc = m->previous_##name(__VA_ARGS__, comm, m->previous_##name##_module);           \
	} else {                                                                                   \
		rc = glue_finish(&k, rc);                                                          \
	}                                                                                          \
	glue_end(&m->comm);                                                                        \
	return rc

static int coll_barrier(MPI_Comm comm, mca_coll_base_module_t *module)
{
	module_t *m = (module_t *)module;
	struct glue_call k = { .c = &m->comm, .comm = comm };
	int rc = glue_barrier(&k);

	if (rc == GLUE_DECLINED) {
		rc = m->previous_barrier(comm, m->previous_barrier_module);
	} else {
		rc = glue_finish(&k, rc);
	}
	glue_end(&m->comm);
	return rc;
}

static int coll_bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
		      mca_coll_base_module_t *module)
{
	SERVE(bcast, glue_bcast(&k, buffer, count, type, root), buffer, count, type, root);
}

static int coll_allgather(const void *send, int nsend, MPI_Datatype tsend, void *recv, int nrecv,
			  MPI_Datatype trecv, MPI_Comm comm, mca_coll_base_module_t *module)
{
	SERVE(allgather, glue_allgather(&k, send, nsend, tsend, recv, nrecv, trecv), send, nsend,
	      tsend, recv, nrecv, trecv);
}

static int coll_alltoall(const void *send, int nsend, MPI_Datatype tsend, void *recv, int nrecv,
			 MPI_Datatype trecv, MPI_Comm comm, mca_coll_base_module_t *module)
{
	SERVE(alltoall, glue_alltoall(&k, send, nsend, tsend, recv, nrecv, trecv), send, nsend,
	      tsend, recv, nrecv, trecv);
}

static int coll_gather(const void *send, int nsend, MPI_Datatype tsend, void *recv, int nrecv,
		       MPI_Datatype trecv, int root, MPI_Comm comm, mca_coll_base_module_t *module)
{
	SERVE(gather, glue_gather(&k, send, nsend, tsend, recv, nrecv, trecv, root), send, nsend,
	      tsend, recv, nrecv, trecv, root);
}

static int coll_scatter(const void *send, int nsend, MPI_Datatype tsend, void *recv, int nrecv,
			MPI_Datatype trecv, int root, MPI_Comm comm, mca_coll_base_module_t *module)
{
	SERVE(scatter, glue_scatter(&k, send, nsend, tsend, recv, nrecv, trecv, root), send, nsend,
	      tsend, recv, nrecv, trecv, root);
}

static int coll_alltoallv(const void *send, const int *send_counts, const int *send_displs,
			  MPI_Datatype tsend, void *recv, const int *recv_counts,
			  const int *recv_displs, MPI_Datatype trecv, MPI_Comm comm,
			  mca_coll_base_module_t *module)
{
	SERVE(alltoallv,
	      glue_alltoallv(&k, send, send_counts, send_displs, tsend, recv, recv_counts,
			     recv_displs, trecv),
	      send, send_counts, send_displs, tsend, recv, recv_counts, recv_displs, trecv);
}

static int coll_alltoallw(const void *send, const int *send_counts, const int *send_displs,
			  MPI_Datatype const *tsend, void *recv, const int *recv_counts,
			  const int *recv_displs, MPI_Datatype const *trecv, MPI_Comm comm,
			  mca_coll_base_module_t *module)
{
	SERVE(alltoallw,
	      glue_alltoallw(&k, send, send_counts, send_displs, tsend, recv, recv_counts,
			     recv_displs, trecv),
	      send, send_counts, send_displs, tsend, recv, recv_counts, recv_displs, trecv);
}

static int coll_allgatherv(const void *send, int nsend, MPI_Datatype tsend, void *recv,
			   const int *counts, const int *displs, MPI_Datatype trecv, MPI_Comm comm,
			   mca_coll_base_module_t *module)
{
	SERVE(allgatherv, glue_allgatherv(&k, send, nsend, tsend, recv, counts, displs, trecv),
	      send, nsend, tsend, recv, counts, displs, trecv);
}

static int coll_gatherv(const void *send, int nsend, MPI_Datatype tsend, void *recv,
			const int *counts, const int *displs, MPI_Datatype trecv, int root,
			MPI_Comm comm, mca_coll_base_module_t *module)
{
	SERVE(gatherv, glue_gatherv(&k, send, nsend, tsend, recv, counts, displs, trecv, root),
	      send, nsend, tsend, recv, counts, displs, trecv, root);
}

static int coll_scatterv(const void *send, const int *counts, const int *displs, MPI_Datatype tsend,
			 void *recv, int nrecv, MPI_Datatype trecv, int root, MPI_Comm comm,
			 mca_coll_base_module_t *module)
{
	SERVE(scatterv, glue_scatterv(&k, send, counts, displs, tsend, recv, nrecv, trecv, root),
	      send, counts, displs, tsend, recv, nrecv, trecv, root);
}

static int coll_allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			  MPI_Comm comm, mca_coll_base_module_t *module)
{
	SERVE(allreduce, glue_allreduce(&k, send, recv, count, type, op), send, recv, count, type,
	      op);
}

static int coll_reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		       int root, MPI_Comm comm, mca_coll_base_module_t *module)
{
	SERVE(reduce, glue_reduce(&k, send, recv, count, type, op, root), send, recv, count, type,
	      op, root);
}

static int coll_reduce_scatter(const void *send, void *recv, const int *counts, MPI_Datatype type,
			       MPI_Op op, MPI_Comm comm, mca_coll_base_module_t *module)
{
	SERVE(reduce_scatter, glue_reduce_scatter(&k, send, recv, counts, type, op), send, recv,
	      counts, type, op);
}

static int coll_reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type,
				     MPI_Op op, MPI_Comm comm, mca_coll_base_module_t *module)
{
	SERVE(reduce_scatter_block, glue_reduce_scatter_block(&k, send, recv, count, type, op),
	      send, recv, count, type, op);
}

static int coll_scan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		     MPI_Comm comm, mca_coll_base_module_t *module)
{
	SERVE(scan, glue_scan(&k, send, recv, count, type, op), send, recv, count, type, op);
}

static int coll_exscan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		       MPI_Comm comm, mca_coll_base_module_t *module)
{
	SERVE(exscan, glue_exscan(&k, send, recv, count, type, op), send, recv, count, type, op);
}

/* ---- the component -------------------------------------------------------------------------- */

static int enable(mca_coll_base_module_t *module, MPI_Comm comm)
{
	module_t *m = (module_t *)module;
	struct mca_coll_base_comm_coll_t *c = comm->c_coll;

#define X(name)                                                                                    \
	if (c->coll_##name == NULL || c->coll_##name##_module == NULL) {                           \
		return OMPI_ERR_NOT_FOUND;                                                         \
	}
	EACH_COLLECTIVE(X)
#undef X
#define X(name)                                                                                    \
	m->previous_##name = c->coll_##name;                                                       \
	m->previous_##name##_module = c->coll_##name##_module;                                     \
	OBJ_RETAIN(m->previous_##name##_module);
	EACH_COLLECTIVE(X)
#undef X
	glue_comm_init(&m->comm, &open_mpi, m, ompi_comm_rank(comm), ompi_comm_size(comm));
	return OMPI_SUCCESS;
}

static mca_coll_base_module_t *comm_query(MPI_Comm comm, int *out)
{
	module_t *m;

	*out = priority;
	if (priority < 0 || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) {
		return NULL;
	}
	m = OBJ_NEW(module_t);
	if (m == NULL) {
		return NULL;
	}
	m->super.coll_module_enable = enable;
#define X(name) m->super.coll_##name = coll_##name;
	EACH_BLOCKING(X)
#undef X
	nonblocking_offer(m);
	return &m->super;
}

static int init_query(bool progress_threads, bool mpi_threads)
{
	(void)progress_threads;
	open_mpi.threads = mpi_threads;
	glue_set_verbose(verbose);
	glue_set_select(how_to_select);
	open_mpi.job = getenv("PMIX_NAMESPACE");
	return OMPI_SUCCESS;
}

static int component_close(void)
{
	nonblocking_close();
	glue_finalize();
	return OMPI_SUCCESS;
}

static int component_register(void);

__attribute__((visibility("default"))) mca_coll_base_component_2_0_0_t mca_coll_collnet_component = {
	.collm_version = {
		MCA_COLL_BASE_VERSION_2_0_0,
		.mca_component_name = "collnet",
		MCA_BASE_MAKE_VERSION(component, COLLNET_VERSION_MAJOR, COLLNET_VERSION_MINOR,
				      COLLNET_VERSION_PATCH),
		.mca_close_component = component_close,
		.mca_register_component_params = component_register,
	},
	.collm_data = { MCA_BASE_METADATA_PARAM_CHECKPOINT },
	.collm_init_query = init_query,
	.collm_comm_query = comm_query,
};

static int component_register(void)
{
	mca_base_component_t *self = &mca_coll_collnet_component.collm_version;

	mca_base_component_var_register(self, "priority",
					"Priority of the collnet component: 90 puts it before the "
					"others, a negative number disables it",
					MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_3,
					MCA_BASE_VAR_SCOPE_READONLY, &priority);
	mca_base_component_var_register(self, "verbose",
					"1: print one line per communicator, whether collnet "
					"serves it, and if not, why; 2: and one per choice of "
					"coll_collnet_select",
					MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_3,
					MCA_BASE_VAR_SCOPE_READONLY, &verbose);
	mca_base_component_var_register(self, "select",
					"measured: the faster of collnet and Open MPI performs an "
					"operation; always: collnet does",
					MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3,
					MCA_BASE_VAR_SCOPE_READONLY, &how_to_select);
	return OMPI_SUCCESS;
}
