/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which ranks have the library preloaded. A node may lack the package, and an argument set of
 * mpiexec the variable: a rank there would call another operation of MPICH's than those that decide
 * together whether collnet serves a communicator, and they would wait for one another. Each rank
 * therefore puts a value into the job's key-value space, at the PMI server, before MPI_Init(). In
 * MPI_Init() all ranks put their addresses there and wait for one another, so a value that is
 * missing afterwards will never be put.
 *
 * Hydra discards values put before PMI's "init". MPICH's own "init" may follow this one.
 *
 * Under a launcher without such a server, all ranks count as ranks with the library. The linker
 * reports one that is not installed on every node that lacks it.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/env.h"
#include "mpi/glue/glue.h"
#include "mpi/mpich/preload.h"

static int server = -1; /* of PMI; -1: there is none */
static char space[256];

#define AS_TEXT(x)	 #x
#define VERSION(a, b, c) AS_TEXT(a) "." AS_TEXT(b) "." AS_TEXT(c)

/* A rank with another version counts as one without the library. */
static const char version[] = VERSION(COLLNET_VERSION_MAJOR, COLLNET_VERSION_MINOR,
				      COLLNET_VERSION_PATCH);

static int number_in(const char *variable)
{
	const char *value = getenv(variable);
	char *end;
	long n;

	if (value == NULL || value[0] == '\0') {
		return -1;
	}
	n = strtol(value, &end, 10);
	return *end == '\0' && n >= 0 && n < INT_MAX ? (int)n : -1;
}

void mpich_publish(void)
{
	const int fd = number_in("PMI_FD"), rank = number_in("PMI_RANK");
	char request[512], rc[8];

	/* Slurm's servers have that variable, and speak another protocol. */
	if (fd < 0 || rank < 0 || getenv("PMI_JOBID") != NULL ||
	    !cn_pmi_ask(fd, "cmd=init pmi_version=1 pmi_subversion=1\n", " rc=", rc, sizeof(rc)) ||
	    !cn_pmi_job(fd, space, sizeof(space))) {
		return;
	}
	server = fd;
	snprintf(request, sizeof(request), "cmd=put kvsname=%s key=collnet-%d value=%s\n", space,
		 rank, version);
	cn_pmi_ask(fd, request, " rc=", rc, sizeof(rc)); /* what is not put, no rank finds */
}

static bool has(int rank)
{
	char request[512], theirs[64];

	snprintf(request, sizeof(request), "cmd=get kvsname=%s key=collnet-%d\n", space, rank);
	return cn_pmi_ask(server, request, " value=", theirs, sizeof(theirs)) &&
	       strcmp(theirs, version) == 0;
}

bool mpich_is_on_all(int rank, int size)
{
	bool *lacks = calloc((size_t)size, sizeof(*lacks)), complete = true;
	int first = size;

	for (int i = 0; i < size && server >= 0; i++) {
		const bool lacking = !has(i);

		complete = complete && !lacking;
		first = !lacking && i < first ? i : first;
		if (lacks != NULL) {
			lacks[i] = lacking;
		}
	}
	if (!complete && rank == first && lacks != NULL) {
		glue_report_lacking(lacks, size, "libcollnet_mpich.so in LD_PRELOAD", NULL);
	}
	free(lacks);
	return complete;
}
