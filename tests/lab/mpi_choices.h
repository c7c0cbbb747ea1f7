/* SPDX-License-Identifier: BSD-2-Clause */
/* The cases of choices between collnet and MPI; included by mpi_cases.c. */

static void repetition(void)
{
	for (int i = 0; i < times; i++) {
		double one = 1, sum = 0;
		int small = rank == 0 ? i : -1;

		MPI_Bcast(&small, 1, MPI_INT, 0, MPI_COMM_WORLD);
		if (small != i) {
			wrong("bcast");
		}
		exchange(MPI_COMM_WORLD, i);
		MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		if (sum != size) {
			wrong("sum");
		}
	}
}

/* Long and short exchanges in turns, with a count per rank. */
static void in_turns(void)
{
	char *in = calloc((size_t)size, BLOCK), *out = calloc((size_t)size, BLOCK);
	int *counts = malloc(sizeof(int) * (size_t)size),
	    *displs = malloc(sizeof(int) * (size_t)size);

	for (int i = 0; i < 60; i++) {
		for (int r = 0; r < size; r++) {
			counts[r] = i % 2 == 0 ? BLOCK : 8;
			displs[r] = r * BLOCK;
			in[displs[r]] = (char)(i + rank * size + r);
		}
		MPI_Alltoallv(in, counts, displs, MPI_CHAR, out, counts, displs, MPI_CHAR,
			      MPI_COMM_WORLD);
		for (int r = 0; r < size; r++) {
			if (out[displs[r]] != (char)(i + r * size + rank)) {
				wrong("alltoallv");
			}
		}
	}
	free(in);
	free(out);
	free(counts);
	free(displs);
}

static void few(void)
{
	for (int i = 0; i < 100; i++) {
		int value = rank == 0 ? i : -1, most = -1;

		MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
		value += rank;
		MPI_Allreduce(&value, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
		if (most != i + size - 1) {
			wrong("a maximum");
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* Halves of the ranks: short calls, which no team performs while they are few. */
static void halves(void)
{
	int members;
	MPI_Comm half;

	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Comm_size(half, &members);
	for (int i = 0; i < times; i++) {
		int value = rank < 2 ? i : -1, most = -1;
		double one = 1, sum = 0;

		MPI_Bcast(&value, 1, MPI_INT, 0, half);
		value += rank;
		MPI_Allreduce(&value, &most, 1, MPI_INT, MPI_MAX, half);
		MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
		if (most != i + size - 2 + rank % 2 || sum != members) {
			wrong("a maximum or a sum");
		}
		MPI_Barrier(half);
	}
	MPI_Comm_free(&half);
}

/* Reductions as long as what the glue itself lets MPI reduce, and longer ones. */
static void reductions(void)
{
	int *in = malloc(BLOCK), *out = malloc(BLOCK), counts[] = { 4, BLOCK / (int)sizeof(int) };

	for (int i = 0; i < 300; i++) {
		for (int k = 0; k < 2; k++) {
			for (int at = 0; at < counts[k]; at++) {
				in[at] = rank + i + at;
			}
			MPI_Reduce(in, out, counts[k], MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
			if (rank == 0 && out[3] != size - 1 + i + 3) {
				wrong("reduce");
			}
			MPI_Allreduce(in, out, counts[k], MPI_INT, MPI_MIN, MPI_COMM_WORLD);
			if (out[3] != i + 3) {
				wrong("allreduce");
			}
		}
	}
	free(in);
	free(out);
}

static void sums(void)
{
	double in[200], out[200];

	for (int i = 0; i < 200; i++) {
		in[i] = i + rank;
	}
	for (int i = 0; i < 200; i++) {
		MPI_Allreduce(in, out, i % 2 == 0 ? 1 : 200, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		if (out[0] != size * (size - 1) / 2 ||
		    (i > 0 && out[199] != 199 * size + size * (size - 1) / 2)) {
			wrong("sum");
		}
	}
}
