/* SPDX-License-Identifier: BSD-2-Clause */
/* The cases of blocks with a count per rank; included by mpi_cases.c. */

/* Blocks that are sent lie between those that are received. */
static void between(void)
{
	enum { MOST = 16 };
	int g[2 * MOST], counts[MOST], at[MOST], root = 1;
	MPI_Comm all = MPI_COMM_WORLD;
	MPI_Request request;

	for (int call = 0; call < 5 * 8; call++) {
		for (int i = 0; i < size; i++) {
			g[2 * i] = 100 * rank + i;
			g[2 * i + 1] = -1;
			counts[i] = 1;
			at[i] = 2 * i;
		}
		switch (call % 5) {
		case 0:
			MPI_Alltoallv(g, counts, at, MPI_INT, g + 1, counts, at, MPI_INT, all);
			break;
		case 1:
			MPI_Ialltoallv(g, counts, at, MPI_INT, g + 1, counts, at, MPI_INT, all,
				       &request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			break;
		case 2:
			MPI_Allgatherv(g + 2, 1, MPI_INT, g + 1, counts, at, MPI_INT, all);
			break;
		case 3:
			MPI_Gatherv(g + 2, 1, MPI_INT, g + 1, counts, at, MPI_INT, root, all);
			break;
		default:
			MPI_Scatterv(g, counts, at, MPI_INT, g + 3, 1, MPI_INT, root, all);
			break;
		}
		for (int i = 0; i < size; i++) {
			int from = 100 * i + (call % 5 < 2 ? rank : 1);

			if (call % 5 == 3 && rank != root) {
				from = -1;
			} else if (call % 5 == 4) {
				from = i == 1 ? 100 * root + rank : -1;
			}
			if (g[2 * i] != 100 * rank + i || g[2 * i + 1] != from) {
				wrong("a block between others");
			}
		}
	}
}

/* Blocks without elements, whose displacements are anything, as seen from a low address. */
static void unused(void)
{
	enum { MOST = 16 };
	const int next = (rank + 1) % size, last = (rank + size - 1) % size;
	int sent[MOST] = { 0 }, got[MOST] = { 0 }, from[MOST], to[MOST];
	int *data = mmap((void *)LOW, 2 * LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	int *out = data + LONG / sizeof(*data);

	if (data == MAP_FAILED) {
		wrong("no memory");
	}
	for (int i = 0; i < size; i++) {
		from[i] = i == next ? 1 : i % 2 == 0 ? INT_MIN : INT_MAX;
		to[i] = i == last ? 2 : i % 2 == 0 ? INT_MAX : INT_MIN;
	}
	sent[next] = got[last] = SMALL;
	data[1] = rank;
	MPI_Alltoallv(data, sent, from, MPI_INT, out, got, to, MPI_INT, MPI_COMM_WORLD);
	if (out[2] != last) {
		wrong("alltoallv");
	}
	sent[next] = got[last] = 0;
	from[next] = to[last] = INT_MIN;
	MPI_Alltoallv(data, sent, from, MPI_INT, out, got, to, MPI_INT, MPI_COMM_WORLD);
	munmap(data, 2 * LONG);
}
