/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plain MPI program for the teams of communicators and persistent operations, which come and go.
 * The argument names a case:
 *
 *   orders        communicators with non-blocking calls, which each rank frees and creates in an
 *                 order of its own
 *   persistent    persistent operations likewise
 *   first         the first team of a communicator with non-blocking calls is for no other one
 *   descriptors   MPI_THREAD_MULTIPLE: more communicators than half of the descriptors suffice for
 *   attributes    functions that MPI calls while a communicator is freed, and that use it
 *   finalize      rank 0 is in MPI_Finalize(), whose functions for attributes call collectives
 *   signals       threads that collnet starts run no handlers of the program
 *   buffers       communicators that come and go, whose long blocks are packed
 *   leaving       a rank has an error at once, while another one on its node needs its messages,
 *                 also one after the error, before it receives what the rank has broadcast
 *
 * Rank 0 prints how many teams there are then, and "right: CASE".
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "mpi_persistent_names.h"

#define ROUNDS	    40
#define SMALL	    8 /* integers, which collnet serves; a single one it may leave to MPI */
#define DESCRIPTORS 256
#define MANY	    3 /* alive at once */
#define MESSAGE	    (4 << 20)
#define LONGEST	    (1 << 30) /* block, in bytes */

static int rank, size;

static void wrong(const char *what)
{
	printf("wrong: rank %d, %s\n", rank, what);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Starts after, or before, a barrier of another communicator, if that is one. */
static void exchange_concurrently(MPI_Comm comm, MPI_Comm other)
{
	int *sent = malloc((size_t)size * SMALL * sizeof(int)),
	    *got = calloc((size_t)size, SMALL * sizeof(int));
	MPI_Request request;

	for (int i = 0; i < size * SMALL; i++) {
		sent[i] = rank;
	}
	if (other != MPI_COMM_NULL && rank % 2 != 0) {
		MPI_Barrier(other);
	}
	MPI_Ialltoall(sent, SMALL, MPI_INT, got, SMALL, MPI_INT, comm, &request);
	if (other != MPI_COMM_NULL && rank % 2 == 0) {
		MPI_Barrier(other);
	}
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (got[size * SMALL - 1] != size - 1) {
		wrong("an exchange");
	}
	free(sent);
	free(got);
}

static void exchange(MPI_Comm comm)
{
	exchange_concurrently(comm, MPI_COMM_NULL);
}

/* No communicator is decided on yet. Those with non-blocking calls come in another order among the
 * calls of others on each rank. */
static void first(void)
{
	MPI_Comm created, taken, other;

	MPI_Comm_dup(MPI_COMM_WORLD, &created);
	exchange(created);
	MPI_Barrier(created); /* creates a team for it alone */
	MPI_Comm_dup(MPI_COMM_WORLD, &taken);
	MPI_Barrier(taken); /* creates one that others may share */
	exchange_concurrently(created, taken);
	exchange(taken); /* takes it */
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	MPI_Barrier(other);
	exchange_concurrently(created, other);
	exchange_concurrently(taken, other);
	MPI_Comm_free(&other);
	MPI_Comm_free(&taken);
	MPI_Comm_free(&created);
}

/* Each rank frees the former ones in another order, rank 0 before it creates another one. */
static void orders(void)
{
	MPI_Comm old[MANY] = { MPI_COMM_NULL }, comm[MANY];

	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0 && i > 0) {
			for (int k = 0; k < MANY; k++) {
				MPI_Comm_free(&old[k]);
			}
		}
		for (int k = 0; k < MANY; k++) {
			MPI_Comm_dup(MPI_COMM_WORLD, &comm[k]);
			exchange(comm[k]);
			MPI_Barrier(comm[k]); /* it has a team of its own from now on */
			exchange(comm[k]);
		}
		if (rank != 0 && i > 0) {
			for (int k = 0; k < MANY; k++) {
				MPI_Comm_free(&old[(k + rank) % MANY]);
			}
		}
		memcpy(old, comm, sizeof(old));
	}
	for (int k = 0; k < MANY; k++) {
		MPI_Comm_free(&old[k]);
	}
}

static void persistent(void)
{
	MPI_Request old[MANY], request[MANY];
	int *sent = calloc((size_t)size, SMALL * sizeof(int)),
	    *got = calloc((size_t)size, SMALL * sizeof(int));

	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0 && i > 0) {
			for (int k = 0; k < MANY; k++) {
				MPI_Request_free(&old[k]);
			}
		}
		for (int k = 0; k < MANY; k++) {
			MPI_Alltoall_init(sent, SMALL, MPI_INT, got, SMALL, MPI_INT, MPI_COMM_WORLD,
					  MPI_INFO_NULL, &request[k]);
			MPI_Start(&request[k]);
			MPI_Wait(&request[k], MPI_STATUS_IGNORE);
		}
		if (rank != 0 && i > 0) {
			for (int k = 0; k < MANY; k++) {
				MPI_Request_free(&old[(k + rank) % MANY]);
			}
		}
		memcpy(old, request, sizeof(old));
	}
	for (int k = 0; k < MANY; k++) {
		MPI_Request_free(&old[k]);
	}
	free(sent);
	free(got);
}

static int count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d) != NULL) {
		n++;
	}
	closedir(d);
	return n;
}

/* Those of a communicator are at most two. */
static void descriptors(void)
{
	const int n = DESCRIPTORS / 4, before = count_descriptors();
	MPI_Comm comm[DESCRIPTORS / 4];

	for (int i = 0; i < n; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
		MPI_Barrier(comm[i]);
	}
	if (count_descriptors() - before > DESCRIPTORS / 4) {
		wrong("more than a quarter of the descriptors");
	}
	for (int i = 0; i < n; i++) {
		MPI_Comm_free(&comm[i]);
	}
}

static void check_sum(MPI_Comm comm)
{
	int one = 1, sum;

	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
	if (sum != size) {
		wrong("a sum");
	}
}

/* The attribute is another communicator, or NULL. */
static int delete_function(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)key;
	(void)extra;
	check_sum(comm);
	if (value != NULL) {
		MPI_Comm_free(value);
	}
	check_sum(comm);
	return MPI_SUCCESS;
}

static void attributes(void)
{
	MPI_Comm comm, other;
	int first, second;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_function, &first, NULL);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_function, &second, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Comm_dup(MPI_COMM_WORLD, &other);
		MPI_Comm_set_attr(other, first, NULL);
		check_sum(other);
		MPI_Comm_set_attr(comm, first, NULL);
		check_sum(comm);
		MPI_Comm_set_attr(comm, second, &other);
		(i % 2 == 0 ? MPI_Comm_free : MPI_Comm_disconnect)(&comm);
	}
	MPI_Comm_free_keyval(&first);
	MPI_Comm_free_keyval(&second);
	check_sum(MPI_COMM_WORLD);
}

static int delete_at_end(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)key;
	(void)value;
	(void)extra;
	check_sum(MPI_COMM_WORLD);
	puts("right: in MPI_Finalize()");
	return MPI_SUCCESS;
}

/* The other ranks call the same after their last print. */
static void finalize(void)
{
	int key;

	if (rank == 0) {
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_at_end, &key, NULL);
		MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
		MPI_Comm_free_keyval(&key);
	}
}

/* Rank 0's block is longer than collnet takes. */
static int gather(MPI_Comm comm)
{
	const int block[1] = { rank };
	int *all = calloc((size_t)size * 3, sizeof(int)), *counts = all + size, rc;

	for (int i = 0; i < size; i++) {
		counts[i] = 1;
		counts[size + i] = i;
	}
	rc = MPI_Gatherv(block, rank == 0 ? LONGEST / (int)sizeof(int) + 1 : 1, MPI_INT, all,
			 counts, counts + size, MPI_INT, size - 1, comm);
	free(all);
	return rc;
}

static void leaving(void)
{
	MPI_Request request = MPI_REQUEST_NULL;
	char *message = calloc(1, MESSAGE);
	int sent[SMALL] = { rank == 0 };
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	check_sum(comm);
	if (rank == 0) {
		MPI_Isend(message, MESSAGE, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
	} else if (rank == 1) {
		MPI_Recv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(message, MESSAGE, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (MPI_Bcast(sent, SMALL, MPI_INT, 0, comm) != MPI_SUCCESS || sent[0] != 1) {
		wrong("a broadcast");
	}
	if (gather(comm) == MPI_SUCCESS && (rank == 0 || rank == size - 1)) {
		wrong("no error of Gatherv");
	}
	if (rank == 0) {
		MPI_Send(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD);
	}
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (MPI_Barrier(comm) == MPI_SUCCESS) {
		wrong("no error of Barrier");
	}
	MPI_Comm_free(&comm);
	free(message);
}

/* Threads that have been started since this became 0: in the place of the library's function. */
static int started = -1;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	sigset_t blocked;

	if (next == NULL) {
		*(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
	}
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	if (started >= 0) {
		started++;
		if (!sigismember(&blocked, SIGUSR1) || sigismember(&blocked, SIGSEGV)) {
			wrong("signals of a thread");
		}
	}
	return next(thread, attr, run, arg);
}

static void signals(void)
{
	sigset_t blocked;

	started = 0;
	MPI_Barrier(MPI_COMM_WORLD); /* creates a team */
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	if (started == 0 || sigismember(&blocked, SIGUSR1)) {
		wrong("no thread, or signals of this one");
	}
	started = -1;
}

/* KiB of shared memory. */
static long shared_memory(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[200];
	long kib = -1;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		sscanf(line, "RssShmem: %ld", &kib);
	}
	if (kib < 0) {
		wrong("status");
	}
	fclose(f);
	return kib;
}

/* An all-to-all of long blocks that are packed. */
static void exchange_columns(MPI_Comm comm)
{
	const int n = MESSAGE / (int)sizeof(int);
	int *sent = calloc((size_t)size * 2, MESSAGE), *got = calloc((size_t)size * 2, MESSAGE);
	MPI_Datatype type;

	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
	MPI_Type_commit(&type);
	for (int i = 0; i < size * n; i++) {
		sent[2 * i] = rank;
	}
	MPI_Alltoall(sent, n, type, got, n, type, comm);
	MPI_Type_free(&type);
	free(sent);
	free(got);
}

/* Communicators whose ranks are in another order each have another team, whose buffers end with
 * them. */
static void buffers(void)
{
	const int orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
				  { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	MPI_Comm comm;
	long first = 0;

	for (int i = 0; i < 6; i++) {
		MPI_Comm_split(MPI_COMM_WORLD, 0, orders[i][rank], &comm);
		exchange_columns(comm);
		MPI_Comm_free(&comm);
		first = i == 1 ? shared_memory() : first;
	}
	if (shared_memory() > first + MESSAGE / 1024) {
		wrong("buffers of communicators that were freed");
	}
}

static void print_teams(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0 && system("echo teams: `collnet status | grep -c '^mpi-'`") != 0) {
		wrong("collnet status");
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "orders", orders },	      { "persistent", persistent },
		{ "first", first },	      { "descriptors", descriptors },
		{ "attributes", attributes }, { "leaving", leaving },
		{ "finalize", finalize },     { "buffers", buffers },
		{ "signals", signals },
	};
	const size_t n = sizeof(cases) / sizeof(cases[0]);
	const char *what = argc > 1 ? argv[1] : "";
	const struct rlimit few = { DESCRIPTORS, DESCRIPTORS };
	const bool threads = strcmp(what, "descriptors") == 0;
	size_t k = 0;
	int level = MPI_THREAD_MULTIPLE;

	if (threads) {
		setrlimit(RLIMIT_NOFILE, &few);
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	} else {
		MPI_Init(&argc, &argv);
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	while (k < n && strcmp(what, cases[k].name) != 0) {
		k++;
	}
	if (k == n || level != MPI_THREAD_MULTIPLE) {
		wrong("there is no such case here");
	}
	if (cases[k].run != first && cases[k].run != leaving && cases[k].run != signals) {
		MPI_Barrier(MPI_COMM_WORLD);
	}
	cases[k].run();
	print_teams();
	if (rank == 0) {
		printf("right: %s\n", what);
	} else if (cases[k].run == finalize) {
		check_sum(MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
