/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plain MPI program for single cases. The argument names one:
 *
 *   rendezvous     a rank waits in a collective while another one needs a long message of it first
 *   threads        MPI_THREAD_MULTIPLE: threads call collectives on communicators of their own at
 *                  once, whose order differs between ranks
 *   communicators  communicators of all kinds
 *   nonblocking    many operations at once, in another order on the communicators of each rank,
 *                  whose communicator, type and operation are freed before they are complete
 *   ahead          broadcasts of a root that does not wait, on many communicators
 *   outstanding    more non-blocking operations than collnet has at once, on many communicators, in
 *                  another order on each rank
 *   repetition N   the same calls N times (24), often enough for a choice between collnet and MPI
 *   reductions     short reductions, often enough for a choice
 *   in-turns       long and short exchanges with a count per rank, in turns
 *   operands       reductions by a function of the program, of elements whose alignment is 16, or
 *                  whose extent is negative
 *   unused         blocks without elements whose displacements are far away
 *   sums           100 sums of a floating-point number, and 100 of 200 numbers, of two frames
 *   few            100 broadcasts, maxima and barriers: too few short calls for a choice
 *   halves N       four short calls N times in two halves of an even number of ranks
 *   persistent-choice   an all-to-all often enough for a choice, and a persistent one
 *   long-pairs     a persistent reduction of pairs that are more than 1 GiB only with their holes
 *   recurring      duplicates with and without non-blocking calls, one after another, and how many
 *                  teams there are then
 *   mixed          the first rank alone has MPI_THREAD_MULTIPLE, and lets collnet do all
 *   limit          more communicators of two ranks than a process can have teams, then others
 *   rows N         all-to-alls in rows and columns of a square of ranks, N times each
 *   error          calls until one fails, and prints the error's string; MPI_ERRORS_RETURN
 *   fatal          the same with the handler of every program, which aborts it
 *   nonblocking-error   as `error`, with two non-blocking calls and a persistent one
 *   restarted      as `error`; then a communicator that is created after the daemon's restart
 *   refused        more calls at once than rank 1's daemon takes
 *
 * Rank 0 prints "right: CASE"; in the cases of errors every rank "failed: TEXT".
 */
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi_persistent_names.h"

#define THREADS 3
#define CALLS	60
#define LONG	(1 << 20)
#define BLOCK	(1 << 17)
#define LIMIT	1024 /* teams of a process */
#define LOW	((uintptr_t)1 << 28)

#define REPETITIONS 24
#define OUTSTANDING 150
#define SMALL	    8 /* integers, which collnet serves; a single one it may leave to MPI */

static int rank, size, times; /* times: N */

static void wrong(const char *what)
{
	printf("wrong: rank %d, %s\n", rank, what);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void rendezvous(void)
{
	char *data = malloc(LONG);

	for (int i = 0; i < 3; i++) {
		MPI_Request request = MPI_REQUEST_NULL;
		int last = size - 1;

		memset(data, rank + i, LONG);
		if (rank == 0) {
			MPI_Isend(data, LONG, MPI_CHAR, last, 0, MPI_COMM_WORLD, &request);
		} else if (rank == last) {
			MPI_Recv(data, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (data[0] != i || data[LONG - 1] != i) {
				wrong("the message");
			}
		}
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	free(data);
}

struct worker {
	MPI_Comm comm;
	int number;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < CALLS; i++) {
		int mine = rank * (w->number + 1) + i, sum, root = i % size;

		usleep((useconds_t)((rank * 31 + w->number * 17 + i * 7) % 5) * 300);
		MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, w->comm);
		if (sum != size * (size - 1) / 2 * (w->number + 1) + size * i) {
			wrong("allreduce");
		}
		mine = rank == root ? i * 1000 + w->number : -1;
		MPI_Bcast(&mine, 1, MPI_INT, root, w->comm);
		if (mine != i * 1000 + w->number) {
			wrong("bcast");
		}
	}
	return NULL;
}

static void threads(void)
{
	struct worker w[THREADS];
	pthread_t t[THREADS];

	for (int again = 0; again < 2; again++) { /* the second time on duplicates of free ones */
		for (int i = 0; i < THREADS; i++) {
			w[i].number = i;
			MPI_Comm_dup(MPI_COMM_WORLD, &w[i].comm);
			pthread_create(&t[i], NULL, work, &w[i]);
		}
		for (int i = 0; i < THREADS; i++) {
			pthread_join(t[i], NULL);
		}
		for (int i = 0; i < THREADS; i++) {
			MPI_Comm_free(&w[i].comm);
		}
	}
}

static void check_sum(MPI_Comm comm, const char *what)
{
	int one = 1, sum, n;

	MPI_Comm_size(comm, &n);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
	if (sum != n) {
		wrong(what);
	}
}

static void communicators(void)
{
	MPI_Comm half, inter, merged, again, grid;
	int upper = rank >= size / 2, dims[2] = { size / 2, 2 }, periods[2] = { 0, 1 };

	MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &half);
	check_sum(half, "split");
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : size / 2, 1, &inter);
	MPI_Intercomm_merge(inter, upper, &merged);
	check_sum(merged, "merged");
	MPI_Comm_dup(inter, &again);
	MPI_Barrier(again);
	MPI_Comm_free(&again);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
	check_sum(grid, "grid");
	MPI_Comm_free(&grid);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &half);
	check_sum(half, "shared");
	MPI_Comm_free(&half);
}

#include "mpi_outstanding.h"

/* An all-to-all in `comm`. */
static void exchange(MPI_Comm comm, int i)
{
	int n, me;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	char *send = malloc((size_t)n * BLOCK), *recv = malloc((size_t)n * BLOCK);

	for (int to = 0; to < n; to++) {
		memset(send + (size_t)to * BLOCK, me * 31 + to * 7 + i, BLOCK);
	}
	MPI_Alltoall(send, BLOCK, MPI_CHAR, recv, BLOCK, MPI_CHAR, comm);
	for (int from = 0; from < n; from++) {
		const char *block = recv + (size_t)from * BLOCK;

		for (int at = 0; at < BLOCK; at++) {
			if (block[at] != (char)(from * 31 + me * 7 + i)) {
				wrong("alltoall");
			}
		}
	}
	free(send);
	free(recv);
}

#include "mpi_blocks.h"
#include "mpi_choices.h"

/* The type of it has no `before`, and so begins in the middle of what is aligned. */
struct record {
	int before, low;
	long double value;
	int high[2];
};

static void add_records(void *in, void *inout, int *n, MPI_Datatype *type)
{
	struct record *a = in, *b = inout;

	(void)type;
	if ((uintptr_t)a % _Alignof(struct record) != 0 ||
	    (uintptr_t)b % _Alignof(struct record) != 0) {
		wrong("operands that are not aligned");
	}
	for (int i = 0; i < *n; i++) {
		b[i].low = a[i].low < b[i].low ? a[i].low : b[i].low;
		b[i].value += a[i].value;
		b[i].high[1] = a[i].high[1] > b[i].high[1] ? a[i].high[1] : b[i].high[1];
	}
}

static void add_values(void *in, void *inout, int *n, MPI_Datatype *type)
{
	long double *a = in, *b = inout;

	(void)type;
	if ((uintptr_t)a % _Alignof(long double) != 0 ||
	    (uintptr_t)b % _Alignof(long double) != 0) {
		wrong("values that are not aligned");
	}
	for (int i = 0; i < *n; i++) {
		b[i] += a[i];
	}
}

/* The elements' extent is negative. */
static void add_backwards(void *in, void *inout, int *n, MPI_Datatype *type)
{
	long double *a = in, *b = inout;

	(void)type;
	for (int i = 0; i < *n; i++) {
		b[-i] += a[-i];
	}
}

/* The steps of a non-blocking duplication run at other places among each rank's own calls. */
static void idup(void)
{
	int in[64] = { 0 }, out[64];
	MPI_Request request;
	MPI_Comm copy;

	MPI_Iallreduce(in, out, 64, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 50; i++) {
		MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
		for (int k = 0, is_over = rank == 0; k < 2000 && !is_over; k++) {
			MPI_Test(&request, &is_over, MPI_STATUS_IGNORE);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Comm_free(&copy);
	}
}

static void operands(void)
{
	enum { MOST = 1001 };
	static struct record in[MOST], out[MOST];
	static long double value[MOST], sum[MOST];
	int lengths[] = { 1, 1, 2 }, all = size * (size - 1) / 2;
	MPI_Aint at[] = { offsetof(struct record, low), offsetof(struct record, value),
			  offsetof(struct record, high) };
	MPI_Datatype types[] = { MPI_INT, MPI_LONG_DOUBLE, MPI_INT }, parts, type, back;
	MPI_Op op, add, backwards;

	MPI_Type_create_struct(3, lengths, at, types, &parts);
	MPI_Type_create_resized(parts, 0, sizeof(struct record), &type);
	MPI_Type_commit(&type);
	MPI_Type_create_resized(MPI_LONG_DOUBLE, sizeof(long double),
				-(MPI_Aint)sizeof(long double), &back);
	MPI_Type_commit(&back);
	MPI_Op_create(add_records, 1, &op);
	MPI_Op_create(add_values, 1, &add);
	MPI_Op_create(add_backwards, 1, &backwards);
	for (int i = 0; i < MOST; i++) {
		in[i] = (struct record){ -1, rank + i, rank + i, { i, rank } };
		value[i] = rank + i;
	}
	for (int n = 1; n <= MOST; n += 100) {
		MPI_Allreduce(in, out, n, type, op, MPI_COMM_WORLD);
		MPI_Allreduce(value, sum, n, MPI_LONG_DOUBLE, add, MPI_COMM_WORLD);
		for (int i = 0; i < n; i++) {
			if (out[i].before != 0 || out[i].low != i || out[i].high[0] != i ||
			    out[i].value != all + size * i || out[i].high[1] != size - 1 ||
			    sum[i] != all + size * i) {
				wrong("a sum of records");
			}
			sum[i] = -1;
		}
		MPI_Allreduce(value + n - 1, sum + n - 1, n, back, backwards, MPI_COMM_WORLD);
		for (int i = 0; i < n; i++) {
			if (sum[i] != all + size * i) {
				wrong("a sum of elements with a negative extent");
			}
		}
	}
	MPI_Op_free(&op);
	MPI_Op_free(&add);
	MPI_Op_free(&backwards);
	MPI_Type_free(&back);
	MPI_Type_free(&parts);
	MPI_Type_free(&type);
}

static void persistent_choice(void)
{
	char *send = malloc((size_t)size * BLOCK), *recv = malloc((size_t)size * BLOCK);
	MPI_Request request;

	for (int i = 0; i < REPETITIONS; i++) {
		exchange(MPI_COMM_WORLD, i);
	}
	memset(send, rank + 1, (size_t)size * BLOCK);
	MPI_Alltoall_init(send, BLOCK, MPI_CHAR, recv, BLOCK, MPI_CHAR, MPI_COMM_WORLD,
			  MPI_INFO_NULL, &request);
	MPI_Start(&request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int from = 0; from < size; from++) {
		if (recv[from * BLOCK] != from + 1) {
			wrong("a persistent alltoall");
		}
	}
	MPI_Request_free(&request);
	free(send);
	free(recv);
}

/* It is not started, so that its memory is never used. The barrier is collnet's after it as before.
 */
static void long_pairs(void)
{
	const int count = 68000000; /* of 12 bytes, and 16 in memory */
	void *pairs = malloc((size_t)count * 16);
	MPI_Request requests[2];

	MPI_Allreduce_init(MPI_IN_PLACE, pairs, count, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD,
			   MPI_INFO_NULL, &requests[0]);
	MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
	MPI_Start(&requests[1]);
	MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
	free(pairs);
}

/* A communicator of all ranks, alone or along with another one. */
static void duplicate(int beside, int starts)
{
	int mine[SMALL] = { 1 }, sum[SMALL];
	MPI_Request request;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	check_sum(comm, "a duplicate");
	if (beside) {
		duplicate(0, starts);
	}
	if (starts) {
		MPI_Iallreduce(mine, sum, SMALL, MPI_INT, MPI_SUM, comm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		check_sum(comm, "a duplicate with non-blocking calls");
	}
	MPI_Comm_free(&comm);
}

static void recurring(void)
{
	check_sum(MPI_COMM_WORLD, "all");
	for (int i = 0; i < 20; i++) {
		duplicate(i % 2, 0);
		duplicate(0, 1);
	}
	if (rank == 0 && system("echo teams: `collnet status | grep -c '^mpi-'`") != 0) {
		wrong("collnet status");
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void mixed(void)
{
	for (int i = 0; i < 40; i++) { /* often enough for trials */
		check_sum(MPI_COMM_WORLD, "all");
		duplicate(1, 1);
	}
}

/* Before MPI_Init(): whether this rank has threads in the mixed case. It makes its selection, too.
 */
static int is_threaded(void)
{
	const char *open_mpi = getenv("OMPI_COMM_WORLD_RANK"), *mpich = getenv("PMI_RANK");
	const int first = strcmp(open_mpi != NULL ? open_mpi
				 : mpich != NULL  ? mpich
						  : "",
				 "0") == 0;

	setenv("OMPI_MCA_coll_collnet_select", first ? "always" : "measured", 1);
	setenv("COLLNET_MPI_SELECT", first ? "always" : "measured", 1);
	return first;
}

/* A communicator of two neighbours, with a team of its own if collnet has one. It is not freed. */
static void pair_of(int first)
{
	int mine[SMALL] = { 1 }, sum[SMALL] = { 2 };
	MPI_Request request;
	MPI_Comm comm;

	MPI_Comm_split(MPI_COMM_WORLD, rank == first || rank == first + 1 ? 0 : MPI_UNDEFINED, rank,
		       &comm);
	if (comm != MPI_COMM_NULL) {
		check_sum(comm, "a pair");
		MPI_Iallreduce(mine, sum, SMALL, MPI_INT, MPI_SUM, comm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	if (sum[0] != 2) {
		wrong("a sum of a pair");
	}
}

/* Only the first rank that cannot have another team may keep the others waiting. When the last rank
 * still can, communicators that share a team keep it. */
static void limit(void)
{
	int mine[SMALL] = { 1 }, sum[SMALL];
	MPI_Comm shared[2];
	MPI_Request request;
	double began = 0;

	for (int i = 0; i < 2; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &shared[i]);
		check_sum(shared[i], "a shared team");
	}
	for (int i = 0; i < LIMIT + 8; i++) {
		if (i == LIMIT - 1) {
			MPI_Iallreduce(mine, sum, SMALL, MPI_INT, MPI_SUM, shared[0], &request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			check_sum(shared[0], "a team that is not its own");
			check_sum(shared[1], "a team that is shared");
		}
		pair_of(0);
	}
	for (int i = 0; i < 8; i++) {
		began = i == 1 ? MPI_Wtime() : began;
		pair_of(1);
	}
	if (MPI_Wtime() - began > 15) {
		wrong("time for pairs without a team");
	}
}

static void rows(void)
{
	MPI_Comm row, column;
	int side = 1;

	while (side * side < size) {
		side++;
	}
	MPI_Comm_split(MPI_COMM_WORLD, rank / side, rank, &row);
	MPI_Comm_split(MPI_COMM_WORLD, rank % side, rank, &column);
	for (int i = 0; i < times; i++) {
		exchange(row, i);
		exchange(column, i);
	}
	MPI_Comm_free(&row);
	MPI_Comm_free(&column);
}

#include "mpi_errors.h"

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "rendezvous", rendezvous },
		{ "threads", threads },
		{ "communicators", communicators },
		{ "nonblocking", nonblocking },
		{ "outstanding", outstanding },
		{ "ahead", ahead },
		{ "repetition", repetition },
		{ "reductions", reductions },
		{ "in-turns", in_turns },
		{ "persistent-choice", persistent_choice },
		{ "long-pairs", long_pairs },
		{ "recurring", recurring },
		{ "operands", operands },
		{ "between", between },
		{ "unused", unused },
		{ "idup", idup },
		{ "sums", sums },
		{ "few", few },
		{ "halves", halves },
		{ "mixed", mixed },
		{ "limit", limit },
		{ "rows", rows },
		{ "error", error },
		{ "fatal", fatal },
		{ "nonblocking-error", nonblocking_error },
		{ "restarted", restarted },
		{ "refused", refused },
	};
	const char *what = argc > 1 ? argv[1] : "";
	size_t k = 0;
	int level = MPI_THREAD_MULTIPLE;

	if (strcmp(what, "threads") == 0 || (strcmp(what, "mixed") == 0 && is_threaded())) {
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	} else {
		MPI_Init(&argc, &argv);
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	while (k < sizeof(cases) / sizeof(cases[0]) && strcmp(what, cases[k].name) != 0) {
		k++;
	}
	if (k == sizeof(cases) / sizeof(cases[0]) || level != MPI_THREAD_MULTIPLE) {
		wrong("there is no such case here");
	}
	times = argc > 2 ? atoi(argv[2]) : REPETITIONS;
	cases[k].run();
	if (rank == 0) {
		printf("right: %s\n", what);
	}
	MPI_Finalize();
	return 0;
}
