/* SPDX-License-Identifier: BSD-2-Clause */
/* The cases of non-blocking operations; included by mpi_cases.c. */

static void product(void *in, void *inout, int *n, MPI_Datatype *type)
{
	int *a = in, *b = inout;

	(void)type;
	for (int i = 0; i < *n; i++) {
		b[i] *= a[i];
	}
}

/* Calls on two communicators, in another order on each rank. */
static void in_any_order(MPI_Comm comms[2])
{
	MPI_Request requests[2];
	int sums[2][SMALL], mine[2][SMALL] = { { rank + 1 }, { 10 * (rank + 1) } };

	for (int i = 0; i < 2; i++) {
		int k = (rank + i) % 2;

		MPI_Iallreduce(mine[k], sums[k], SMALL, MPI_INT, MPI_SUM, comms[k], &requests[k]);
	}
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	if (sums[0][0] != size * (size + 1) / 2 || sums[1][0] != 10 * sums[0][0]) {
		wrong("calls on two communicators");
	}
}

/* More calls than collnet has at once. */
static void many(MPI_Comm comm)
{
	static int got[OUTSTANDING][SMALL];
	MPI_Request requests[OUTSTANDING];

	for (int i = 0; i < OUTSTANDING; i++) {
		got[i][0] = rank == i % size ? i : -1;
		MPI_Ibcast(got[i], SMALL, MPI_INT, i % size, comm, &requests[i]);
	}
	MPI_Barrier(comm);
	MPI_Waitall(OUTSTANDING, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < OUTSTANDING; i++) {
		if (got[i][0] != i) {
			wrong("one of many");
		}
	}
}

/* A message that another rank needs before it takes part. */
static void before_a_message(MPI_Comm comm)
{
	MPI_Request request;
	int last = size - 1, n = 0;

	if (rank == last) {
		MPI_Recv(&n, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Ibarrier(comm, &request);
	if (rank == 0) {
		MPI_Send(&n, 1, MPI_INT, last, 7, MPI_COMM_WORLD);
	}
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* A communicator with a team of its own. */
static MPI_Comm with_a_team(void)
{
	int zeros[SMALL] = { 0 }, sums[SMALL];
	MPI_Request request;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Iallreduce(zeros, sums, SMALL, MPI_INT, MPI_SUM, comm, &request); /* asks for it */
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	check_sum(comm, "a communicator");
	return comm;
}

/* Handles that the program frees while the operations that use them are not complete. */
static void freed_handles(void)
{
	int in[BLOCK / 64], out[2 * (BLOCK / 64)], n = BLOCK / 64, expected = 1, mine = rank + 2;
	int all;
	MPI_Request requests[2];
	MPI_Datatype spread;
	MPI_Comm comm;
	MPI_Op op;

	comm = with_a_team();
	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
	MPI_Type_commit(&spread);
	MPI_Op_create(product, 1, &op);
	for (int i = 0; i < n; i++) {
		in[i] = out[2 * i] = rank == 0 ? i : -1;
	}
	MPI_Ibcast(rank == 0 ? in : out, n, rank == 0 ? MPI_INT : spread, 0, comm, &requests[0]);
	MPI_Iallreduce(&mine, &all, 1, MPI_INT, op, comm, &requests[1]);
	MPI_Type_free(&spread);
	MPI_Op_free(&op);
	MPI_Comm_free(&comm);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++) {
		if (out[2 * i] != i) {
			wrong("a type that was freed");
		}
	}
	for (int r = 0; r < size; r++) {
		expected *= r + 2;
	}
	if (all != expected) {
		wrong("an operation that was freed");
	}
}

/* As Open MPI's binding for Fortran, which converts an array of types and then frees it. */
static void freed_arrays(MPI_Comm comm)
{
	MPI_Datatype *types = malloc((size_t)size * sizeof(MPI_Datatype));
	int *in = calloc(3 * (size_t)size, sizeof(int)), *out = in + size, *displs = out + size;
	int *ones = malloc((size_t)size * sizeof(int));
	MPI_Request request;

	for (int r = 0; r < size; r++) {
		types[r] = MPI_INT;
		ones[r] = 1;
		displs[r] = r * (int)sizeof(int);
		in[r] = 100 * rank + r;
	}
	MPI_Ialltoallw(in, ones, displs, types, out, ones, displs, types, comm, &request);
	for (int r = 0; r < size; r++) {
		types[r] = MPI_DATATYPE_NULL;
	}
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int r = 0; r < size; r++) {
		if (out[r] != 100 * r + rank) {
			wrong("an array of types that was freed");
		}
	}
	free(types);
	free(ones);
	free(in);
}

static void ignore(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)in;
	(void)inout;
	(void)n;
	(void)type;
}

static long resident_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (f == NULL || fscanf(f, "%*d %ld", &pages) != 1) {
		wrong("statm");
	}
	fclose(f);
	return pages;
}

/* Operations that move nothing keep no memory. */
static void of_no_bytes(MPI_Comm comm)
{
	int *counts = malloc((size_t)size * sizeof(*counts)), in = 0, out = 0;
	long before = 0;
	MPI_Request request;
	MPI_Datatype type;
	MPI_Op op;

	MPI_Type_contiguous(0, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Op_create(ignore, 1, &op);
	for (int i = 0; i < size; i++) {
		counts[i] = i + 1;
	}
	for (int i = 0; i < 100000; i++) {
		if (i == 1000) {
			before = resident_pages();
		}
		MPI_Ireduce_scatter(&in, &out, counts, type, op, comm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	if (resident_pages() > before + 256) {
		wrong("memory of operations without bytes");
	}
	MPI_Op_free(&op);
	MPI_Type_free(&type);
	free(counts);
}

/* Duplicates of duplicates, which Open MPI makes by non-blocking calls on the one before. */
static void duplicates(void)
{
	MPI_Comm chain[6] = { MPI_COMM_WORLD };

	for (int i = 1; i < 6; i++) {
		MPI_Comm_dup(chain[i - 1], &chain[i]);
		check_sum(chain[i - 1], "a duplicate's parent");
		check_sum(chain[i], "a duplicate");
	}
	for (int i = 1; i < 6; i++) {
		MPI_Comm_free(&chain[i]);
	}
}

static void nonblocking(void)
{
	char *send = malloc((size_t)size * BLOCK), *recv = malloc((size_t)size * BLOCK);
	MPI_Comm comms[2] = { MPI_COMM_WORLD, MPI_COMM_NULL };
	MPI_Request request;
	int done = 0;

	duplicates();
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
	before_a_message(comms[1]);
	check_sum(comms[0], "the first");
	check_sum(comms[1], "the second");
	for (int i = 0; i < 3; i++) { /* first one, then both have a team of their own */
		in_any_order(comms);
		before_a_message(comms[i % 2]);
		many(comms[i % 2]);
	}
	for (int i = 0; i < 3; i++) {
		freed_handles();
		freed_arrays(comms[i % 2]);
	}
	of_no_bytes(comms[0]);
	memset(send, rank + 1, (size_t)size * BLOCK);
	MPI_Ialltoall(send, BLOCK, MPI_CHAR, recv, BLOCK, MPI_CHAR, comms[0], &request);
	while (!done) {
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	}
	for (int from = 0; from < size; from++) {
		if (recv[from * BLOCK] != from + 1 || recv[(from + 1) * BLOCK - 1] != from + 1) {
			wrong("ialltoall");
		}
	}
	MPI_Comm_free(&comms[1]);
	free(send);
	free(recv);
}

/*
 * Each rank starts all operations of one communicator, then those of the next one, and begins with
 * another one than the other ranks. A blocking call on one of them comes after its operations.
 */
static void outstanding(void)
{
	enum { COMMS = 20 };
	static int in[COMMS][OUTSTANDING][SMALL], sums[COMMS][OUTSTANDING][SMALL];
	static MPI_Request requests[COMMS][OUTSTANDING];
	const int ranks = size * (size + 1) / 2;
	MPI_Comm comms[COMMS];

	for (int i = 0; i < COMMS; i++) {
		comms[i] = with_a_team();
	}
	for (int k = 0; k < COMMS; k++) {
		const int i = (rank * (COMMS / 2) + k) % COMMS;

		for (int n = 0; n < OUTSTANDING; n++) {
			in[i][n][SMALL - 1] = (rank + 1) * (i + n);
			MPI_Iallreduce(in[i][n], sums[i][n], SMALL, MPI_INT, MPI_SUM, comms[i],
				       &requests[i][n]);
		}
	}
	check_sum(comms[1], "after all");
	MPI_Waitall(COMMS * OUTSTANDING, requests[0], MPI_STATUSES_IGNORE);
	for (int i = 0; i < COMMS; i++) {
		for (int n = 0; n < OUTSTANDING; n++) {
			if (sums[i][n][SMALL - 1] != ranks * (i + n)) {
				wrong("one of those outstanding");
			}
		}
		MPI_Comm_free(&comms[i]);
	}
}

/*
 * The root of broadcasts is ahead of the others as far as it can be, on many communicators: they
 * begin with a message that it sends after all of its calls.
 */
static void ahead(void)
{
	enum { COMMS = 36 };
	static int got[COMMS][OUTSTANDING][SMALL];
	static MPI_Request requests[COMMS][OUTSTANDING];
	MPI_Comm comms[COMMS];
	int flag, go = 0;

	for (int i = 0; i < COMMS; i++) {
		comms[i] = with_a_team();
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank != 0) {
		MPI_Recv(&go, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	for (int i = 0; i < COMMS; i++) {
		for (int n = 0; n < OUTSTANDING; n++) {
			got[i][n][SMALL - 1] = rank == 0 ? i + n : -1;
			MPI_Ibcast(got[i][n], SMALL, MPI_INT, 0, comms[i], &requests[i][n]);
			MPI_Iprobe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		}
	}
	for (int i = 1; i < size && rank == 0; i++) {
		MPI_Send(&go, 1, MPI_INT, i, 7, MPI_COMM_WORLD);
	}
	MPI_Waitall(COMMS * OUTSTANDING, requests[0], MPI_STATUSES_IGNORE);
	for (int i = 0; i < COMMS; i++) {
		for (int n = 0; n < OUTSTANDING; n++) {
			if (got[i][n][SMALL - 1] != i + n) {
				wrong("a broadcast of a root that is ahead");
			}
		}
		MPI_Comm_free(&comms[i]);
	}
}
