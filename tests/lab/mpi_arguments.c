/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wrong arguments are reported to the handler of the communicator that was called, once, and the
 * program goes on: the handler of MPI_COMM_WORLD aborts it. Rank 0 prints "right: arguments".
 */
#include <mpi.h>
#include <stdio.h>

#define MOST_RANKS 8

static int errors;

static void count(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
	errors++;
}

static void keep(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)in;
	(void)inout;
	(void)n;
	(void)type;
}

/*
 * What a rank sends to itself and what it receives differ in length: MPI_SUCCESS is wrong, and so
 * is a byte beyond what is received. Later calls of the communicator fail, too: each has its own,
 * whose ranks are in another order than those of all others.
 */
static int sides(int kind, MPI_Errhandler handler)
{
	MPI_Comm comm;
	int in[2 * MOST_RANKS] = { 0 }, out[4 * MOST_RANKS], rank, beyond = 0, before = errors;
	int counts[MOST_RANKS], displs[MOST_RANKS];

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_set_errhandler(comm, handler);
	for (int i = 0; i < 4 * MOST_RANKS; i++) {
		out[i] = -1;
	}
	for (int i = 0; i < MOST_RANKS; i++) {
		counts[i] = 2;
		displs[i] = 2 * i;
	}
	switch (kind) {
	case 0:
		MPI_Allgather(in, 2, MPI_INT, out, 1, MPI_INT, comm);
		break;
	case 1:
		MPI_Alltoall(in, 2, MPI_INT, out, 1, MPI_INT, comm);
		break;
	case 2:
		MPI_Gather(in, rank == 0 ? 2 : 1, MPI_INT, out, 1, MPI_INT, 0, comm);
		errors += rank != 0; /* what it sends is on its way */
		break;
	case 3:
		MPI_Allgatherv(in, 1, MPI_INT, out, counts, displs, MPI_INT, comm);
		break;
	default:
		MPI_Scatter(in, 2, MPI_INT, out, rank == 0 ? 1 : 2, MPI_INT, 0, comm);
		beyond = rank == 0 && out[1] != -1;
	}
	if (errors == before || beyond) {
		fprintf(stderr, "wrong: rank %d, sides of kind %d, %d beyond\n", rank, kind,
			beyond);
	}
	MPI_Comm_free(&comm);
	return errors == before || beyond;
}

int main(int argc, char **argv)
{
	MPI_Comm comm;
	MPI_Errhandler handler;
	MPI_Datatype two, types[MOST_RANKS];
	MPI_Op op;
	int counts[MOST_RANKS], displs[MOST_RANKS], all[2 * MOST_RANKS] = { 0 };
	int all_too[2 * MOST_RANKS];
	int rank, mine = 1, sum = 0, calls = 0, mine_two[2] = { 1, 1 }, sum_two[2];
	double real = 1, real_sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_create_errhandler(count, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Comm_rank(comm, &rank);
	MPI_Barrier(comm);
#define WRONG(call) calls++, (call)
	WRONG(MPI_Bcast(&mine, 1, MPI_DATATYPE_NULL, 0, comm));
	WRONG(MPI_Bcast(&mine, -1, MPI_INT, 0, comm));
	WRONG(MPI_Allgather(&mine, -1, MPI_INT, all, 1, MPI_INT, comm));
	WRONG(MPI_Allreduce(&mine, &sum, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
	WRONG(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_OP_NULL, comm));
	WRONG(MPI_Allgather(&mine, 1, MPI_DATATYPE_NULL, &sum, 1, MPI_DATATYPE_NULL, comm));
	WRONG(MPI_Reduce_scatter_block(&mine, &sum, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
	WRONG(MPI_Scan(&mine, &sum, 1, MPI_INT, MPI_OP_NULL, comm));
	/* Reductions that MPI does not define. */
	MPI_Type_contiguous(2, MPI_INT, &two);
	MPI_Type_commit(&two);
	WRONG(MPI_Allreduce(&real, &real_sum, 1, MPI_DOUBLE, MPI_BAND, comm));
	WRONG(MPI_Reduce(&real, &real_sum, 1, MPI_DOUBLE, MPI_MAXLOC, 0, comm));
	WRONG(MPI_Allreduce(&mine, &sum, 1, MPI_WCHAR, MPI_SUM, comm));
	WRONG(MPI_Allreduce(mine_two, sum_two, 1, two, MPI_SUM, comm));
	MPI_Type_free(&two);
	/* Types that are not committed. */
	MPI_Type_contiguous(2, MPI_INT, &two);
	for (int i = 0; i < MOST_RANKS; i++) {
		counts[i] = 1;
		displs[i] = i;
		types[i] = two;
	}
	WRONG(MPI_Alltoallv(all, counts, displs, MPI_DATATYPE_NULL, all_too, counts, displs,
			    MPI_DATATYPE_NULL, comm));
	WRONG(MPI_Allgatherv(&mine, 1, MPI_DATATYPE_NULL, all, counts, displs, MPI_DATATYPE_NULL,
			     comm));
	WRONG(MPI_Bcast(mine_two, 1, two, 0, comm));
	WRONG(MPI_Allgather(mine_two, 1, two, all, 1, two, comm));
	WRONG(MPI_Allgather(mine_two, 1, two, all, 2, MPI_INT, comm));
#ifdef OPEN_MPI /* it does not look there, and scatters them */
	for (int i = 0; i < 2 * MOST_RANKS; i++) {
		all[i] = i;
	}
	MPI_Scatter(all, 1, two, mine_two, 1, two, 0, comm);
	errors += mine_two[0] != 2 * rank || mine_two[1] != 2 * rank + 1;
#else
	WRONG(MPI_Scatter(all, 1, two, mine_two, 1, two, 0, comm));
#endif
	WRONG(MPI_Alltoallv(all, counts, displs, two, all_too, counts, displs, two, comm));
	WRONG(MPI_Alltoallw(all, counts, displs, types, all_too, counts, displs, types, comm));
	WRONG(MPI_Gatherv(mine_two, 1, two, all, counts, displs, two, 0, comm));
	MPI_Op_create(keep, 1, &op);
	WRONG(MPI_Allreduce(mine_two, sum_two, 1, two, op, comm));
	MPI_Op_free(&op);
	MPI_Type_free(&two);
	if (errors != calls) {
		fprintf(stderr, "wrong: rank %d, %d errors of %d calls\n", rank, errors, calls);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (int kind = 0; kind < 5; kind++) {
		if (sides(kind, handler) != 0) {
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
	MPI_Errhandler_free(&handler);
	MPI_Comm_free(&comm);
	if (rank == 0) {
		puts("right: arguments");
	}
	MPI_Finalize();
	return 0;
}
