/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the start of a call to its end. A wait alternates between waiting for the operation and
 * driving MPI's own communication, because a rank that has not called yet may be waiting for a
 * rendezvous with this one. How a wait divides into polling and sleeping, the library decides
 * (lib/util/spin.h): on a processor that ranks and daemons share, polling by the ranks delays what
 * they wait for.
 *
 * A sleep that ends before the scheduler's next tick programs a timer, which on a virtual machine
 * takes longer than all else that the glue does. So the first wait of a call is FIRST_MS at most,
 * if that sufficed the last time, and the others NEXT_MS.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "mpi/glue/glue.h"

#define FIRST_MS 5u
#define NEXT_MS	 1u

/* Of a context; see COLLNET_OUTSTANDING_MAX. */
#define ALL_OUTSTANDING_MAX 512

struct collnet_coll_options glue_options(void)
{
	struct collnet_coll_options o;

	collnet_coll_options_init(&o);
	o.timeout_ms =
		COLLNET_TIMEOUT_NONE; /* an MPI program waits for as long as its peers live */
	return o;
}

/*
 * MPI's error for a failure, with collnet's message as its string, and a line on standard error.
 * There is one class per process, because MPI has no function to release one: its string is that of
 * the last failure.
 */
static int failure(const struct glue_comm *c, const char *what)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int class = MPI_ERR_OTHER;
	char text[MPI_MAX_ERROR_STRING];
	int rc;

	snprintf(text, sizeof(text), "collnet: MPI_%s, rank %d of %d: %s", what, c->rank, c->size,
		 collnet_error(c->team->context));
	fprintf(stderr, "%s\n", text);
	pthread_mutex_lock(&lock);
	if (class == MPI_ERR_OTHER && PMPI_Add_error_class(&class) != MPI_SUCCESS) {
		class = MPI_ERR_OTHER;
	}
	if (class != MPI_ERR_OTHER) {
		PMPI_Add_error_string(class, text);
	}
	rc = class;
	pthread_mutex_unlock(&lock);
	return rc;
}

int64_t glue_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Operations of all teams, which share a context's requests. */
static atomic_uint outstanding;

/*
 * Operation n of a team starts when operation n - GLUE_OUTSTANDING is complete, so the ranks of a
 * node are less than COLLNET_OUTSTANDING_MAX operations apart: none completes before all of them
 * have called it.
 */
void glue_make_room(struct glue_comm *c)
{
	const struct glue_team *t = c->team;

	while (t->pending[t->started % GLUE_OUTSTANDING] || outstanding >= ALL_OUTSTANDING_MAX) {
		c->mpi->progress(); /* completes others' calls */
		sched_yield();
	}
}

int glue_started(struct glue_call *k, const char *what, int status)
{
	k->what = what;
	if (status != COLLNET_OK) {
		k->request = NULL;
		return failure(k->c, what);
	}
	k->pending = &k->c->team->pending[k->c->team->started++ % GLUE_OUTSTANDING];
	*k->pending = true;
	outstanding++;
	return MPI_SUCCESS;
}

/* The operation has ended with this status of collnet's. */
static int ended(struct glue_call *k, int status)
{
	k->request = NULL;
	*k->pending = false;
	outstanding--;
	if (status != COLLNET_OK) {
		return failure(k->c, k->what);
	}
	return k->by_mpi.rc != MPI_SUCCESS ? k->by_mpi.rc
					   : glue_unpack(&k->out, &k->received, k->comm);
}

static void release(struct glue_call *k)
{
	glue_packed_free(&k->in);
	glue_packed_free(&k->out);
}

int glue_finish(struct glue_call *k, int rc)
{
	int status;

	if (k->request != NULL) {
		struct glue_team *t = k->c->team;

		status = collnet_wait(k->request, t->drove_mpi ? NEXT_MS : FIRST_MS);
		t->drove_mpi = status == COLLNET_INPROGRESS;
		while (status == COLLNET_INPROGRESS) {
			k->c->mpi->progress();
			status = collnet_wait(k->request, NEXT_MS);
		}
		rc = ended(k, status);
	}
	release(k);
	return rc;
}

bool glue_test(struct glue_call *k, int *rc)
{
	const int status = collnet_test(k->request);

	if (status == COLLNET_INPROGRESS) {
		return false;
	}
	*rc = ended(k, status);
	release(k);
	return true;
}
