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

static void release(mca_coll_base_module_t *previous)
{
	if (previous != NULL) {
		OBJ_RELEASE(previous);
	}
}

static void destruct(struct module *m)
{
	glue_comm_free(&m->comm);
#define X(name, ...)                                                                               \
	release(m->previous_##name##_module);                                                      \
	release(m->previous_i##name##_module);                                                     \
	release(m->previous_##name##_init_module);
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

/* As Open MPI's own collectives copy. MPI_Pack() rejects types that are not committed, which some
 * of these accept, and reports that to the error handler. */
int glue_pack_block(const void *data, int count, MPI_Datatype type, void *bytes, size_t size,
		    MPI_Comm comm)
{
	(void)comm;
	return ompi_datatype_sndrcv(data, count, type, bytes, (int)size, MPI_PACKED);
}

int glue_unpack_block(const void *bytes, size_t size, void *data, int count, MPI_Datatype type,
		      MPI_Comm comm)
{
	(void)comm;
	return ompi_datatype_sndrcv(bytes, (int)size, MPI_PACKED, data, count, type);
}

static void retain_type(MPI_Datatype type, bool hold)
{
	if (hold) {
		OBJ_RETAIN(type);
	} else {
		OBJ_RELEASE(type);
	}
}

static void progress(void)
{
	opal_progress(); /* returns an int since Open MPI 5 */
}

static struct glue_mpi open_mpi = {
	NULL, min_of, bcast_of, progress, false, retain_type, retain_op
};

/* ---- the blocking collectives --------------------------------------------------------------- */

static int finish(struct glue_call *k, int rc)
{
	rc = glue_finish(k, rc);
	glue_end(k);
	return rc;
}

static int coll_barrier(MPI_Comm comm, mca_coll_base_module_t *module)
{
	module_t *m = (module_t *)module;
	struct glue_call k = { .c = &m->comm, .comm = comm };
	int rc = is_initialized() ? glue_barrier(&k) : GLUE_DECLINED;

	if (rc != GLUE_DECLINED) {
		return finish(&k, rc);
	}
	rc = m->previous_barrier(comm, m->previous_barrier_module);
	glue_end(&k);
	return rc;
}

/* Passes what the glue declines to the previous module. */
#define X(name, parameters, arguments)                                                             \
	static int coll_##name(parameters, MPI_Comm comm, mca_coll_base_module_t *module)          \
	{                                                                                          \
		module_t *m = (module_t *)module;                                                  \
		struct glue_call k = { .c = &m->comm, .comm = comm };                              \
		int rc = is_initialized() ? glue_##name(&k, arguments) : GLUE_DECLINED;            \
		if (rc != GLUE_DECLINED) {                                                         \
			return finish(&k, rc);                                                     \
		}                                                                                  \
		rc = m->previous_##name(arguments, comm, m->previous_##name##_module);             \
		glue_end(&k);                                                                      \
		return rc;                                                                         \
	}
EACH_WITH_DATA(X)
#undef X

/* ---- the component -------------------------------------------------------------------------- */

static int enable(mca_coll_base_module_t *module, MPI_Comm comm)
{
	module_t *m = (module_t *)module;
	struct mca_coll_base_comm_coll_t *c = comm->c_coll;

#define HAS(function) (c->coll_##function != NULL && c->coll_##function##_module != NULL)
#define X(name, ...)                                                                               \
	if (!HAS(name) || !HAS(i##name) || !HAS(name##_init)) {                                    \
		return OMPI_ERR_NOT_FOUND;                                                         \
	}
	EACH_COLLECTIVE(X)
#undef X
#define SAVE(function)                                                                             \
	m->previous_##function = c->coll_##function;                                               \
	m->previous_##function##_module = c->coll_##function##_module;                             \
	OBJ_RETAIN(m->previous_##function##_module);
#define X(name, ...) SAVE(name) SAVE(i##name) SAVE(name##_init)
	EACH_COLLECTIVE(X)
#undef X
	glue_comm_init(&m->comm, &open_mpi, m, ompi_comm_rank(comm), ompi_comm_size(comm));
	return OMPI_SUCCESS;
}

static mca_coll_base_module_t *comm_query(MPI_Comm comm, int *out)
{
	module_t *m;

	*out = priority;
	if (priority >= 0 && comm == MPI_COMM_WORLD) {
		glue_set_select(how_to_select,
				ompi_comm_rank(comm) == 0 ? "coll_collnet_select" : NULL);
	}
	if (priority < 0 || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2 ||
	    !presence_is_on_all(comm)) {
		return NULL;
	}
	m = OBJ_NEW(module_t);
	if (m == NULL) {
		return NULL;
	}
	m->super.coll_module_enable = enable;
#define X(name, ...) m->super.coll_##name = coll_##name;
	EACH_COLLECTIVE(X)
#undef X
	nonblocking_offer(m);
	return &m->super;
}

static int init_query(bool progress_threads, bool mpi_threads)
{
	(void)progress_threads;
	open_mpi.threads = mpi_threads;
	glue_set_verbose(verbose);
	open_mpi.job = getenv("PMIX_NAMESPACE");
	return OMPI_SUCCESS;
}

static int component_open(void)
{
	if (priority >= 0) {
		presence_publish(priority);
	}
	return OMPI_SUCCESS;
}

static int component_close(void)
{
	nonblocking_close();
	glue_finalize();
	return OMPI_SUCCESS;
}

static int component_register(void);

/* The version of the interface, of which this component uses what all have. */
#if OMPI_MAJOR_VERSION >= 5
#define INTERFACE_VERSION MCA_COLL_BASE_VERSION_2_4_0
#else
#define INTERFACE_VERSION MCA_COLL_BASE_VERSION_2_0_0
#endif

__attribute__((visibility("default"))) mca_coll_base_component_t mca_coll_collnet_component = {
	.collm_version = {
		INTERFACE_VERSION,
		.mca_component_name = "collnet",
		MCA_BASE_MAKE_VERSION(component, COLLNET_VERSION_MAJOR, COLLNET_VERSION_MINOR,
				      COLLNET_VERSION_PATCH),
		.mca_open_component = component_open,
		.mca_close_component = component_close,
		.mca_register_component_params = component_register,
	},
	.collm_data = { .param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT },
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
