/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes have the component. A node may lack the package, and an application context of
 * mpirun the parameters: a rank there would call another operation of MPI's than those that decide
 * together whether collnet serves a communicator, and they would wait for one another. So each
 * process that opens the component publishes that by PMIx, as Open MPI's components publish their
 * addresses: before MPI_Init() exchanges what all processes of the job have published. A
 * communicator has a module only if all its processes have published the same.
 *
 * Lookups return only values that are already present: they do not wait for a process that has
 * published nothing.
 */
#include "mpi/openmpi/coll_collnet.h"

#include <stdio.h>
#include <stdlib.h>

#if OMPI_MAJOR_VERSION >= 5
#include "opal/mca/pmix/pmix-internal.h"
#define SCOPE	 PMIX_GLOBAL
#define NUMBER	 PMIX_UINT32
#define TEXT	 PMIX_STRING
#define HOSTNAME PMIX_HOSTNAME
#else
#include "opal/mca/pmix/pmix.h"
#define SCOPE	 OPAL_PMIX_GLOBAL
#define NUMBER	 OPAL_UINT32
#define TEXT	 OPAL_STRING
#define HOSTNAME OPAL_PMIX_HOSTNAME
#endif

#define KEY "collnet.coll"

#define PRIORITY_OF(published) ((published)&0xff)

static uint32_t mine; /* version and priority: not 0 */
static bool all_of_job;

/* A rank with another version or priority counts as one without the component. */
void presence_publish(int priority)
{
	int rc;

	mine = (uint32_t)(0x80 | COLLNET_VERSION_MAJOR) << 24 | COLLNET_VERSION_MINOR << 16 |
	       COLLNET_VERSION_PATCH << 8 | (uint32_t)(priority < 0xff ? priority : 0xff);
	OPAL_MODEX_SEND_VALUE(rc, SCOPE, KEY, &mine, NUMBER);
	(void)rc; /* what was not published, no rank finds */
}

/* 0: it has not. */
static uint32_t published_by(opal_process_name_t name)
{
	uint32_t theirs = 0, *to = &theirs;
	int rc;

	OPAL_MODEX_RECV_VALUE_IMMEDIATE(rc, KEY, &name, &to, NUMBER);
	return rc == OPAL_SUCCESS ? theirs : 0;
}

static bool node_of(int rank, char *out, size_t size)
{
	opal_process_name_t name = ompi_group_get_proc_name(MPI_COMM_WORLD->c_local_group, rank);
	char *node = NULL;
	int rc;

	OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, HOSTNAME, &name, &node, TEXT);
	if (rc != OPAL_SUCCESS || node == NULL) {
		return false;
	}
	snprintf(out, size, "%s", node);
	free(node);
	return true;
}

/* The first rank that has the component tells which others lack it, unless no rank prefers it. */
static void tell(const uint32_t *published, int size, int rank)
{
	bool *lacks = calloc((size_t)size, sizeof(*lacks)), wanted = false;
	int first = 0;

	while (first < rank && published[first] == 0) {
		first++;
	}
	for (int i = 0; lacks != NULL && i < size; i++) {
		lacks[i] = published[i] != published[first];
		wanted = wanted || PRIORITY_OF(published[i]) > 0;
	}
	if (wanted && first == rank) {
		glue_report_lacking(lacks, size, "the component mca_coll_collnet.so", node_of);
	}
	free(lacks);
}

bool presence_is_on_all(MPI_Comm comm)
{
	ompi_group_t *group = comm->c_local_group;
	const int size = ompi_comm_size(comm);
	uint32_t *published = calloc((size_t)size, sizeof(*published));
	bool complete = true;

	for (int i = 0; i < size; i++) {
		const opal_process_name_t name = ompi_group_get_proc_name(group, i);
		const bool known = all_of_job && name.jobid == OMPI_PROC_MY_NAME->jobid;
		const uint32_t theirs = known ? mine : published_by(name);

		complete = complete && theirs == mine;
		if (published != NULL) {
			published[i] = theirs;
		}
	}
	if (comm == MPI_COMM_WORLD) {
		all_of_job = complete;
		if (!complete && published != NULL) {
			tell(published, size, ompi_comm_rank(comm));
		}
	}
	free(published);
	return complete;
}
