/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libcollnet_mpich.so, preloaded into programs of MPICH: it defines MPI's collective functions,
 * calls the glue, and if the glue declines, MPICH's function of the same name with PMPI_. Fortran
 * programs come here, too, because MPICH's Fortran functions call those of C; see also fortran.c.
 *
 * A communicator's struct glue_comm is an attribute of it, made at its first collective call.
 *
 * The library is not linked with MPICH, and its references to it are weak and bound when they are
 * called (-z lazy): it may be preloaded into programs without MPI, such as mpiexec.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/glue/glue.h"
#include "mpi/mpich/preload.h"

#define EXPORT __attribute__((visibility("default")))

static bool active; /* between MPI_Init() and MPI_Finalize() */
static int keyval = MPI_KEYVAL_INVALID;
static MPI_Group world;
static MPI_Request never = MPI_REQUEST_NULL; /* is not complete before the end of MPI */
static char job[COLLNET_NAME_MAX + 1];

/* ---- what the glue needs of MPICH ---------------------------------------------------------- */

static int min_of(void *self, int64_t *values, int n, MPI_Comm comm)
{
	(void)self;
	return PMPI_Allreduce(MPI_IN_PLACE, values, n, MPI_INT64_T, MPI_MIN, comm);
}

static int bcast_of(void *self, void *data, int bytes, MPI_Comm comm)
{
	(void)self;
	return PMPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
}

/* A generalized request has no communication of its own. Asking for its status drives that of all
 * others, also of non-blocking collectives; MPI_Iprobe() does not on a communicator of one rank. */
static int query(void *extra, MPI_Status *status)
{
	(void)extra;
	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	return MPI_SUCCESS;
}

static int free_nothing(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int cancel_nothing(void *extra, int complete)
{
	(void)extra;
	(void)complete;
	return MPI_SUCCESS;
}

static void progress(void)
{
	int flag;

	PMPI_Request_get_status(never, &flag, MPI_STATUS_IGNORE);
}

bool glue_is_predefined(MPI_Datatype type)
{
	return mpich_combiner_of(type) == MPI_COMBINER_NAMED;
}

static struct glue_mpi mpich = { job, min_of, bcast_of, progress, false, NULL, NULL };

/* ---- functions of other libraries ---------------------------------------------------------- */

/* A tool may define MPI's functions, too. Its functions, or else MPICH's, come after this
 * library's. MPICH's that are not in that order are those of a module. */
static void *find_next(const char *pmpi)
{
	void *next = dlsym(RTLD_NEXT, pmpi + 1);

	next = next != NULL ? next : dlsym(RTLD_DEFAULT, pmpi);
	if (next == NULL) {
		fprintf(stderr, "collnet: no library of MPICH is found for %s\n", pmpi + 1);
		exit(1);
	}
	return next;
}

/* Calls the next function with the name of this one without P. */
#define PASS(rc, function, arguments)                                                              \
	do {                                                                                       \
		static _Atomic(__typeof__(&function)) next;                                        \
		if (next == NULL) {                                                                \
			next = (__typeof__(&function))find_next(#function);                        \
		}                                                                                  \
		(rc) = next arguments;                                                             \
	} while (0)

/* ---- communicators ------------------------------------------------------------------------- */

/* The communicators that this thread is freeing: the program's functions for its attributes may
 * free others. */
struct freeing {
	MPI_Comm comm;
	struct freeing *outer;
};

static _Thread_local struct freeing *freeing;

static bool is_freed(MPI_Comm comm)
{
	const struct freeing *f = freeing;

	while (f != NULL && f->comm != comm) {
		f = f->outer;
	}
	return f != NULL;
}

#define FREE_BY(function)                                                                          \
	struct freeing f = { comm != NULL ? *comm : MPI_COMM_NULL, freeing };                      \
	int rc;                                                                                    \
	freeing = &f;                                                                              \
	PASS(rc, function, (comm));                                                                \
	freeing = f.outer;                                                                         \
	return rc

EXPORT int MPI_Comm_free(MPI_Comm *comm)
{
	FREE_BY(PMPI_Comm_free);
}

EXPORT int MPI_Comm_disconnect(MPI_Comm *comm)
{
	FREE_BY(PMPI_Comm_disconnect);
}

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)key;
	(void)extra;
	glue_comm_free(value);
	free(value);
	return MPI_SUCCESS;
}

/* NULL: left to MPICH, which also reports errors of arguments. A communicator that is being freed
 * has lost its attribute, perhaps. */
static struct glue_comm *comm_of(MPI_Comm comm)
{
	struct glue_comm *c;
	int found, inter, rank, size;

	if (!active || comm == MPI_COMM_NULL || is_freed(comm) ||
	    PMPI_Comm_get_attr(comm, keyval, &c, &found) != MPI_SUCCESS) {
		return NULL;
	}
	if (found) {
		return c;
	}
	if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter ||
	    PMPI_Comm_size(comm, &size) != MPI_SUCCESS || size < 2 ||
	    PMPI_Comm_rank(comm, &rank) != MPI_SUCCESS) {
		return NULL;
	}
	c = malloc(sizeof(*c));
	if (c == NULL) {
		fprintf(stderr, "collnet: out of memory for a communicator\n");
		PMPI_Abort(comm, MPI_ERR_NO_MEM); /* the other ranks may have it */
		return NULL;
	}
	glue_comm_init(c, &mpich, NULL, rank, size);
	/* It is not known whether ranks of another job have this library. */
	if (!glue_is_part_of(world, comm, size)) {
		c->state = GLUE_NOT_SERVED;
		glue_explain(c, comm, 1, "not served: it has ranks of another job");
	}
	PMPI_Comm_set_attr(comm, keyval, c);
	return c;
}

static struct glue_comm *rooted_comm_of(MPI_Comm comm, int root)
{
	struct glue_comm *c = comm_of(comm);

	return c != NULL && root >= 0 && root < c->size ? c : NULL;
}

/*
 * The same for the arguments that an operation has besides. What MPICH rejects on this rank it is
 * to report: the glue would find it when other ranks already wait.
 */
static struct glue_comm *one_typed(struct glue_comm *c, MPI_Datatype type)
{
	return c != NULL && mpich_is_committed(type) ? c : NULL;
}

static struct glue_comm *typed(struct glue_comm *c, const void *send, MPI_Datatype tsend,
			       MPI_Datatype trecv)
{
	return one_typed(send == MPI_IN_PLACE ? c : one_typed(c, tsend), trecv);
}

/* all: type of the root's blocks; own: of each rank's buffer. */
static struct glue_comm *rooted_typed(MPI_Comm comm, int root, MPI_Datatype all, const void *buffer,
				      MPI_Datatype own)
{
	struct glue_comm *c = rooted_comm_of(comm, root);

	return c != NULL && c->rank == root ? typed(c, buffer, own, all) : one_typed(c, own);
}

/* The count of a buffer that may be in place. */
static struct glue_comm *counted(struct glue_comm *c, const void *buffer, MPI_Count n)
{
	return n >= 0 || buffer == MPI_IN_PLACE ? c : NULL;
}

/* Those of no elements may be anything. */
static struct glue_comm *all_typed(struct glue_comm *c, const int *counts,
				   const MPI_Datatype *types)
{
	for (uint32_t i = 0, n = c != NULL ? (uint32_t)c->size : 0; i < n; i++) {
		c = counts[i] > 0 ? one_typed(c, types[i]) : c;
	}
	return c;
}

/* Type and operation are equal on all ranks. */
static struct glue_comm *reducible(struct glue_comm *c, MPI_Datatype type, MPI_Op op)
{
	c = one_typed(c, type);
	return c != NULL && mpich_is_reduction(type, op) ? c : NULL;
}

/* The glue's result to the communicator's error handler. */
static int result(MPI_Comm comm, int rc)
{
	if (rc != MPI_SUCCESS) {
		PMPI_Comm_call_errhandler(comm, rc);
	}
	return rc;
}

/* ---- initialization ------------------------------------------------------------------------ */

/* This library's functions are bound in the global scope: MPICH becomes part of that. */
void mpich_find_library(void *caller)
{
	const char *now = getenv("LD_BIND_NOW");
	Dl_info at;
	void *module, *init;

	if (dlsym(RTLD_DEFAULT, "PMPI_Init") != NULL || dladdr(caller, &at) == 0) {
		return;
	}
	if (now != NULL && now[0] != '\0') {
		fprintf(stderr, "collnet: LD_BIND_NOW is set, and the program has loaded MPICH "
				"later: unset it\n");
		exit(1);
	}
	module = dlopen(at.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (module == NULL) {
		return;
	}
	init = dlsym(module, "PMPI_Init");
	if (init != NULL && dladdr(init, &at) != 0) {
		dlopen(at.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
	}
	dlclose(module);
}

static void refuse_other_libraries(void)
{
	if (dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != NULL) {
		fprintf(stderr,
			"collnet: libcollnet_mpich.so is for programs of MPICH, and this one "
			"uses Open MPI; see collnet_mpi(7)\n");
		exit(1);
	}
}

static void end(void)
{
	active = false;
	/* A team ends when nobody waits in it any more. */
	PMPI_Barrier(MPI_COMM_WORLD);
	PMPI_Grequest_complete(never);
	PMPI_Request_free(&never);
	PMPI_Group_free(&world);
	mpich_end_arguments();
}

/*
 * MPI_Finalize() first deletes the attributes of MPI_COMM_SELF, the earliest one last. Until then
 * the program's functions for the others call collectives, also such that other ranks call before
 * their MPI_Finalize().
 */
static int end_by_attribute(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)key;
	(void)value;
	(void)extra;
	if (active) {
		end();
	}
	return MPI_SUCCESS;
}

static bool let_attribute_end(void)
{
	int key;

	return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_by_attribute, &key, NULL) ==
		       MPI_SUCCESS &&
	       PMPI_Comm_set_attr(MPI_COMM_SELF, key, NULL) == MPI_SUCCESS;
}

static void begin(void)
{
	struct collnet_team_options o;
	const char *verbose = getenv("COLLNET_MPI_VERBOSE");
	int level, rank, size;

	if (PMPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
	    PMPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS || !mpich_is_on_all(rank, size) ||
	    PMPI_Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS || !mpich_begin_arguments() ||
	    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS ||
	    PMPI_Grequest_start(query, free_nothing, cancel_nothing, NULL, &never) != MPI_SUCCESS ||
	    PMPI_Query_thread(&level) != MPI_SUCCESS || !let_attribute_end()) {
		return;
	}
	glue_set_verbose(verbose != NULL ? (int)strtol(verbose, NULL, 10) : 0);
	glue_set_select(getenv("COLLNET_MPI_SELECT"), rank == 0 ? "COLLNET_MPI_SELECT" : NULL);
	collnet_team_options_init(&o);
	snprintf(job, sizeof(job), "%s", o.job != NULL ? o.job : "");
	mpich.threads = level == MPI_THREAD_MULTIPLE;
	active = true;
}

EXPORT int MPI_Init(int *argc, char ***argv)
{
	int rc;

	mpich_find_library(__builtin_return_address(0));
	refuse_other_libraries();
	if (!active) {
		mpich_publish();
	}
	PASS(rc, PMPI_Init, (argc, argv));
	if (rc == MPI_SUCCESS && !active) {
		begin();
	}
	return rc;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int rc;

	mpich_find_library(__builtin_return_address(0));
	refuse_other_libraries();
	if (!active) {
		mpich_publish();
	}
	PASS(rc, PMPI_Init_thread, (argc, argv, required, provided));
	if (rc == MPI_SUCCESS && !active) {
		begin();
	}
	return rc;
}

EXPORT int MPI_Finalize(void)
{
	const bool was_active = active;
	int rc;

	PASS(rc, PMPI_Finalize, ());
	if (active) {
		end(); /* a session keeps MPI alive, and the attributes */
	}
	if (was_active) {
		glue_finalize();
	}
	return rc;
}

/* ---- the collectives ----------------------------------------------------------------------- */

/* Passes what the glue declines, or is not asked for, to MPICH. */
#define SERVE(c, call, function, arguments)                                                        \
	struct glue_call k = { .c = (c), .comm = comm };                                           \
	int rc = (c) != NULL ? (call) : GLUE_DECLINED;                                             \
	if (rc == GLUE_DECLINED) {                                                                 \
		PASS(rc, function, arguments);                                                     \
	} else {                                                                                   \
		rc = result(comm, glue_finish(&k, rc));                                            \
	}                                                                                          \
	glue_end(&k);                                                                              \
	return rc

EXPORT int MPI_Barrier(MPI_Comm comm)
{
	struct glue_comm *c = comm_of(comm);

	SERVE(c, glue_barrier(&k), PMPI_Barrier, (comm));
}

#define OWN(c)			 (c)
#define NAME(operation)		 MPI_##operation
#define PNAME(operation)	 PMPI_##operation
#define COUNT			 int
#define DISPL			 int
#define BLOCKS(counts)		 counts
#define SENDS(counts, displs)	 counts, displs
#define RECEIVES(counts, displs) counts, displs
#include "mpi/mpich/collectives.h"

/* Large counts. Where no rank knows the others' counts, a block may be longer than collnet takes,
 * and the others would have started: MPICH performs these. */
#if MPI_VERSION >= 4
#undef OWN
#undef NAME
#undef PNAME
#undef COUNT
#undef DISPL
#undef BLOCKS
#undef SENDS
#undef RECEIVES
#define OWN(c)			 NULL
#define NAME(operation)		 MPI_##operation##_c
#define PNAME(operation)	 PMPI_##operation##_c
#define COUNT			 MPI_Count
#define DISPL			 MPI_Aint
#define LARGE(...)		 (&(struct glue_large){ __VA_ARGS__ })
#define BLOCKS(counts)		 (k.receives = LARGE(counts, NULL), NULL)
#define SENDS(counts, displs)	 NULL, NULL
#define RECEIVES(counts, displs) (k.receives = LARGE(counts, displs), NULL), NULL
#include "mpi/mpich/collectives.h"
#endif
