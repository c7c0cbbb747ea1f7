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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mpi/glue/glue.h"

#define FIRST_MS 5u
#define NEXT_MS	 1u

/* Of a context; see COLLNET_OUTSTANDING_MAX. */
#define ALL_OUTSTANDING_MAX 512

/* Of those, non-blocking calls: the oldest of each team, and others. */
#define OLDEST_MAX (ALL_OUTSTANDING_MAX - 64)
#define OTHERS_MAX (ALL_OUTSTANDING_MAX / 2)

/* Persistent operations, which count from their preparation to their end, leave room for others. */
#define RESERVED_MAX (ALL_OUTSTANDING_MAX / 2)

/* How the operation runs. */

static struct collnet_coll_options glue_options(const struct glue_call *k)
{
	struct collnet_coll_options o;

	collnet_coll_options_init(&o);
	o.timeout_ms =
		COLLNET_TIMEOUT_NONE; /* an MPI program waits for as long as its peers live */
	o.persistent = k->persistent;
	o.user_op = k->reduction.op == COLLNET_USER ? &k->reduction.user : NULL;
	return o;
}

/*
 * MPI's error for a failure, with collnet's message as its string, and a line on standard error.
 * There is one per process, because MPI has no function to release one: its string is that of the
 * last failure. It is a code of a class, because Open MPI 4 knows the class of codes only.
 */
static int failure(const struct glue_call *k)
{
	struct glue_team *t = k->team;
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int class = MPI_ERR_OTHER, code = MPI_ERR_OTHER;
	char text[MPI_MAX_ERROR_STRING];
	int rc;

	t->failed = true;
	snprintf(text, sizeof(text), "collnet: %s%s, rank %d of %d: %s",
		 k->what != NULL ? "MPI_" : "an agreement of the ranks",
		 k->what != NULL ? k->what : "", k->c->rank, k->c->size,
		 t->team != NULL ? collnet_error(t->context) : t->why);
	fprintf(stderr, "%s\n", text);
	pthread_mutex_lock(&lock);
	if (code == MPI_ERR_OTHER && (PMPI_Add_error_class(&class) != MPI_SUCCESS ||
				      PMPI_Add_error_code(class, &code) != MPI_SUCCESS)) {
		code = MPI_ERR_OTHER;
	}
	if (code != MPI_ERR_OTHER) {
		PMPI_Add_error_string(class, text);
		PMPI_Add_error_string(code, text);
	}
	rc = code;
	pthread_mutex_unlock(&lock);
	return rc;
}

int64_t glue_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool glue_start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
	const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
	sigset_t blocked, before;
	bool started;

	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		sigdelset(&blocked, faults[i]);
	}
	pthread_sigmask(SIG_BLOCK, &blocked, &before);
	started = pthread_create(thread, NULL, run, arg) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

/* Operations of all teams, which share a context's requests; and persistent ones of these. */
static atomic_uint outstanding, reserved;

bool glue_reserve(void)
{
	if (reserved++ >= RESERVED_MAX) {
		reserved--;
		return false;
	}
	outstanding++;
	return true;
}

void glue_unreserve(void)
{
	outstanding--;
	reserved--;
}

/*
 * Operation n of a team starts when operation n - GLUE_OUTSTANDING is complete, so the ranks of a
 * node are less than COLLNET_OUTSTANDING_MAX operations apart: none completes before all of them
 * have called it. A persistent operation has a team to itself.
 *
 * MPI does not order the non-blocking calls of several communicators. If each rank used up what a
 * context can have outstanding with others, they would wait for one another. So the oldest call of
 * a team always finds room, up to OLDEST_MAX, before which the others leave some; and a blocking
 * one finds some after these.
 */
static bool has_room(const struct glue_call *k)
{
	const struct glue_team *t = k->team;

	return !t->pending[t->started % GLUE_OUTSTANDING] &&
	       outstanding < (!k->nonblocking	    ? ALL_OUTSTANDING_MAX
			      : t->outstanding == 0 ? OLDEST_MAX
						    : OTHERS_MAX);
}

static void *destroy(void *team)
{
	collnet_team_destroy(team);
	return NULL;
}

/*
 * A served call could not start on this rank, for example without memory, or collnetd has refused
 * it. Others may have started theirs, and would wait for this rank until it calls something else,
 * or take a later call of the same operation for this one: it leaves the team, and they get an
 * error. All later calls by the team fail, too.
 *
 * The end of the team waits for what this rank has broadcast without waiting, and other ranks may
 * need messages of MPI's before they receive that. Hence it runs in a thread of its own, which ends
 * before the context is closed.
 */
static void leave(const struct glue_call *k, int rc)
{
	struct glue_team *t = k->team;
	char error[MPI_MAX_ERROR_STRING] = "";
	collnet_team_t *left;
	int length;

	if (t == NULL) {
		return;
	}
	PMPI_Error_string(rc, error, &length);
	pthread_mutex_lock(&t->starting);
	left = t->team;
	if (left != NULL) {
		snprintf(t->why, sizeof(t->why), "this rank left the team after: %.150s", error);
		t->team = NULL;
		t->leaves = glue_start_thread(&t->leaving, destroy, left);
	}
	pthread_mutex_unlock(&t->starting);
	if (left != NULL && !t->leaves) {
		destroy(left); /* most often there is nothing to wait for */
	}
}

/* With this status of collnet's. */
static int started(struct glue_call *k, int status)
{
	if (status != COLLNET_OK) {
		k->request = NULL;
		return failure(k);
	}
	k->pending = &k->team->pending[k->number % GLUE_OUTSTANDING];
	*k->pending = true;
	k->team->outstanding++;
	outstanding++;
	return MPI_SUCCESS;
}

/* Starts a call if that is its turn, and there is room. */
static bool start(struct glue_call *k, int *rc)
{
	struct collnet_coll_options o = glue_options(k);
	struct glue_team *t = k->team;

	pthread_mutex_lock(&t->starting);
	if (k->number == t->started && has_room(k)) {
		k->waits = false;
		*rc = t->team != NULL ? started(k, k->start(k, &o)) : failure(k);
		t->started++;
	}
	pthread_mutex_unlock(&t->starting);
	return !k->waits;
}

static int prepare(struct glue_call *k)
{
	struct collnet_coll_options o = glue_options(k);

	if (k->start(k, &o) == COLLNET_OK) {
		return MPI_SUCCESS;
	}
	k->request = NULL;
	glue_explain(k->c, k->comm, 1, collnet_error(k->team->context));
	return MPI_ERR_OTHER;
}

int glue_post(struct glue_call *k, const char *what, glue_start_function *function)
{
	int rc = MPI_SUCCESS;

	k->what = what;
	k->start = function;
	if (k->persistent) {
		return prepare(k);
	}
	pthread_mutex_lock(&k->team->starting);
	k->number = k->team->called++;
	pthread_mutex_unlock(&k->team->starting);
	k->waits = true;
	while (!start(k, &rc) && !k->nonblocking) {
		k->c->mpi->progress(); /* completes others' calls, and starts those before */
		sched_yield();
	}
	return rc;
}

bool glue_is_outstanding(const struct glue_call *k)
{
	return k->waits || k->request != NULL;
}

/* The operation has ended with this status of collnet's. */
static int ended(struct glue_call *k, int status)
{
	int rc;

	if (!k->persistent) {
		k->request = NULL;
		*k->pending = false;
		k->team->outstanding--;
		outstanding--;
	}
	if (status != COLLNET_OK) {
		rc = failure(k);
		if (status == COLLNET_ELIMIT || status == COLLNET_ENOMEM) {
			leave(k, rc); /* refused: the team has not failed */
		}
		return rc;
	}
	return k->by_mpi.rc != MPI_SUCCESS ? k->by_mpi.rc : glue_unpack(&k->out, k->comm);
}

static void release(struct glue_call *k)
{
	glue_packed_free(&k->in);
	glue_packed_free(&k->out);
	free(k->counts);
	k->counts = NULL;
}

int glue_finish(struct glue_call *k, int rc)
{
	int status;

	if (k->request != NULL) {
		struct glue_team *t = k->team;

		status = collnet_wait(k->request, t->drove_mpi ? NEXT_MS : FIRST_MS);
		t->drove_mpi = status == COLLNET_INPROGRESS;
		while (status == COLLNET_INPROGRESS) {
			k->c->mpi->progress();
			status = collnet_wait(k->request, NEXT_MS);
		}
		rc = ended(k, status);
	} else if (rc != MPI_SUCCESS) {
		leave(k, rc);
	}
	release(k);
	return rc;
}

bool glue_test(struct glue_call *k, int *rc)
{
	int status;

	*rc = MPI_SUCCESS;
	if (k->waits && !start(k, rc)) {
		return false;
	}
	if (*rc == MPI_SUCCESS) {
		status = collnet_test(k->request);
		if (status == COLLNET_INPROGRESS) {
			return false;
		}
		*rc = ended(k, status);
	} else {
		leave(k, *rc);
	}
	if (!k->persistent) {
		release(k);
	}
	return true;
}

/* ---- persistent calls ------------------------------------------------------------------- */

int glue_min(const struct glue_call *k, int64_t *values, size_t n)
{
	struct glue_call min = { .c = k->c, .comm = k->comm, .team = k->c->team };

	min.reduction = (struct glue_reduction){ .function = collnet_iallreduce,
						 .send = values,
						 .recv = values,
						 .count = n,
						 .type = COLLNET_INT64,
						 .op = COLLNET_MIN };
	return glue_finish(&min, glue_post(&min, NULL, glue_start_reduction));
}

void glue_unprepare(struct glue_call *k)
{
	if (k->request != NULL) {
		collnet_request_free(k->request);
		k->request = NULL;
	}
	if (k->by_mpi.used) {
		k->c->mpi->retain_op(k->by_mpi.op, false);
		k->by_mpi.used = false;
	}
	release(k);
	glue_release_team(k);
}

int glue_prepared(struct glue_call *k, int rc)
{
	int64_t prepared = rc == MPI_SUCCESS;
	char text[64];

	/* That a call is declined or moves nothing, all ranks know; but one may lack memory. */
	if (rc != GLUE_DECLINED && !(rc == MPI_SUCCESS && k->request == NULL)) {
		if (glue_min(k, &prepared, 1) != MPI_SUCCESS) {
			prepared = 0;
		}
		k->c->persistent_by_mpi = prepared == 0;
	}
	if (prepared == 0 || k->request == NULL) {
		glue_unprepare(k);
	} else if (k->c->rank == 0) {
		snprintf(text, sizeof(text), "MPI_%s: persistent, by collnet", k->what);
		glue_explain(k->c, k->comm, 2, text);
	}
	return prepared != 0 ? MPI_SUCCESS : GLUE_DECLINED;
}

int glue_start(struct glue_call *k)
{
	int rc = glue_repack(&k->in, k->comm);

	rc = rc == MPI_SUCCESS ? glue_repack(&k->out, k->comm) : rc;
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	k->by_mpi.rc = MPI_SUCCESS;
	return collnet_start(k->request) == COLLNET_OK ? MPI_SUCCESS : failure(k);
}
