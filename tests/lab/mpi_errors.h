/* SPDX-License-Identifier: BSD-2-Clause */
/* The cases of mpi_cases.c that end with an error: a node or its daemon dies while they run. */

static void print_error(int rc)
{
	char text[MPI_MAX_ERROR_STRING], of_class[MPI_MAX_ERROR_STRING];
	int class, length;

	MPI_Error_string(rc, text, &length);
	printf("failed: %s\n", text);
	MPI_Error_class(rc, &class);
	MPI_Error_string(class, of_class, &length);
	if (class <= MPI_ERR_LASTCODE || strcmp(of_class, text) != 0) {
		wrong("not a class of its own");
	}
}

/* Calls until one fails, which under the handler of every program aborts it. */
static void fatal(void)
{
	int rc = MPI_SUCCESS, mine[SMALL] = { 0 }, sum[SMALL];

	MPI_Barrier(MPI_COMM_WORLD);
	while (rc == MPI_SUCCESS) {
		rc = MPI_Allreduce(mine, sum, SMALL, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		if (rank == 0) {
			fclose(fopen("calling", "w"));
		}
	}
	print_error(rc);
}

/* The same, and the program goes on. */
static void error(void)
{
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	fatal();
}

/* The same, and the daemon has started again. */
static void restarted(void)
{
	MPI_Comm again;

	error();
	while (access("restarted", F_OK) != 0) {
		usleep(10000);
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &again);
	MPI_Comm_set_name(again, "again");
	check_sum(again, "a communicator after the restart");
	MPI_Comm_free(&again);
}

static int wait_for(int rc, MPI_Request *request)
{
	return rc == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
}

static void nonblocking_error(void)
{
	int mine[SMALL] = { 0 }, got[SMALL], all[SMALL], counts[SMALL] = { 0, 1, 2 };
	int reduced = MPI_SUCCESS, exchanged = MPI_SUCCESS, rc;
	MPI_Request request, persistent, barrier;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Alltoall_init(mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
			  &persistent);
	while (reduced == MPI_SUCCESS || exchanged == MPI_SUCCESS) {
		if (exchanged == MPI_SUCCESS) {
			MPI_Start(&persistent);
		}
		if (reduced == MPI_SUCCESS) {
			rc = MPI_Iallreduce(mine, got, SMALL, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
					    &request);
			reduced = wait_for(rc, &request);
		}
		exchanged = wait_for(exchanged, &persistent);
		if (rank == 0) {
			fclose(fopen("calling", "w"));
		}
	}
	print_error(reduced);
	rc = MPI_Ireduce_scatter(mine, got, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	if (wait_for(rc, &request) == MPI_SUCCESS) {
		wrong("no error");
	}
	/* What the ranks agree on first is no allreduce of the program's. */
	if (MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &barrier) != MPI_SUCCESS) {
		wrong("not left to MPI");
	}
	MPI_Request_free(&barrier);
}

/* The daemon of rank 1 refuses schedules beyond little memory: some of many calls at once. No call
 * is matched with a later one. */
static void refused(void)
{
	enum { AT_ONCE = 31 };
	int mine[AT_ONCE][SMALL] = { { 0 } }, sum[AT_ONCE][SMALL], rc[AT_ONCE], errors = 0;
	MPI_Request requests[AT_ONCE];
	MPI_Comm comm = with_a_team();

	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* Open MPI's MPI_Wait() */
	for (int round = 0; errors == 0 && round < 4; round++) {
		for (int i = 0; i < AT_ONCE; i++) {
			mine[i][0] = round * AT_ONCE + i;
			rc[i] = MPI_Iallreduce(mine[i], sum[i], SMALL, MPI_INT, MPI_SUM, comm,
					       &requests[i]);
		}
		for (int i = 0; i < AT_ONCE; i++) {
			if (wait_for(rc[i], &requests[i]) != MPI_SUCCESS) {
				errors++;
			} else if (sum[i][0] != size * mine[i][0]) {
				wrong("a sum of other calls");
			}
		}
	}
	if (errors == 0) {
		wrong("no error");
	}
	MPI_Comm_free(&comm);
}
