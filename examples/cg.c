/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conjugate gradients: solves the Poisson equation on a square grid, whose rows are distributed
 * over the ranks. In each iteration neighbours exchange their edge rows (collnet_alltoallv(), with
 * blocks of no bytes between all other ranks), and scalar products are added up
 * (collnet_allreduce()).
 *
 *   cc cg.c -o cg $(pkg-config --cflags --libs collnet) -lm
 *   collnet lab run --shape 4x2 -- ./cg		on an emulated cluster of 8 hosts
 *
 * Usage: cg [N], the rows and columns of the grid (100); at least one row per rank.
 */
#include <math.h>
#include <string.h>

#include "start.h"

static size_t n, rows;
static size_t *send_counts, *send_at, *recv_counts, *recv_at;

/* Row i of a vector, -1 and `rows` being the neighbours' edges. */
static double *row(double *v, long i)
{
	return v + (size_t)(i + 1) * n;
}

/* Each rank's first and last row go to the rank before and after it. */
static void plan_edges(void)
{
	size_t bytes = n * sizeof(double);

	send_counts = calloc(4 * (size_t)ranks, sizeof(*send_counts));
	check(send_counts != NULL ? COLLNET_OK : COLLNET_ENOMEM, "calloc");
	send_at = send_counts + ranks;
	recv_counts = send_counts + 2 * ranks;
	recv_at = send_counts + 3 * ranks;
	if (rank > 0) {
		send_counts[rank - 1] = recv_counts[rank - 1] = bytes;
		send_at[rank - 1] = bytes; /* row 0 */
		recv_at[rank - 1] = 0;	   /* row -1 */
	}
	if (rank + 1 < ranks) {
		send_counts[rank + 1] = recv_counts[rank + 1] = bytes;
		send_at[rank + 1] = rows * bytes;
		recv_at[rank + 1] = (rows + 1) * bytes;
	}
}

/* out = A in: four times the value less those beside it; 0 beyond the grid. */
static void apply(double *in, double *edges, double *out)
{
	CHECK(collnet_alltoallv(team, in, send_counts, send_at, edges, recv_counts, recv_at, NULL));
	memcpy(row(in, -1), row(edges, -1), n * sizeof(double));
	memcpy(row(in, (long)rows), row(edges, (long)rows), n * sizeof(double));
	for (long i = 0; i < (long)rows; i++) {
		const double *above = row(in, i - 1), *here = row(in, i), *below = row(in, i + 1);

		for (size_t k = 0; k < n; k++) {
			row(out, i)[k] = 4 * here[k] - above[k] - below[k] -
					 (k > 0 ? here[k - 1] : 0) - (k + 1 < n ? here[k + 1] : 0);
		}
	}
}

static double product(double *a, double *b)
{
	double sum = 0, all;

	for (size_t i = 0; i < rows * n; i++) {
		sum += row(a, 0)[i] * row(b, 0)[i];
	}
	CHECK(collnet_allreduce(team, &sum, &all, 1, COLLNET_FLOAT64, COLLNET_SUM, NULL));
	return all;
}

/* x solves A x = b when the residual is small enough; returns the iterations. */
static int solve(double *x, double *b, double *r, double *p, double *ap, double *edges)
{
	double rr, before, limit;
	int iterations = 0;

	memcpy(row(r, 0), row(b, 0), rows * n * sizeof(double)); /* x is 0 */
	memcpy(row(p, 0), row(b, 0), rows * n * sizeof(double));
	rr = product(r, r);
	limit = rr * 1e-20;
	while (rr > limit && iterations < 10 * (int)n) {
		double alpha;

		apply(p, edges, ap);
		alpha = rr / product(p, ap);
		for (size_t i = 0; i < rows * n; i++) {
			row(x, 0)[i] += alpha * row(p, 0)[i];
			row(r, 0)[i] -= alpha * row(ap, 0)[i];
		}
		before = rr;
		rr = product(r, r);
		for (size_t i = 0; i < rows * n; i++) {
			row(p, 0)[i] = row(r, 0)[i] + rr / before * row(p, 0)[i];
		}
		iterations++;
	}
	return iterations;
}

int main(int argc, char **argv)
{
	double *v[7], error = 0, worst;
	char *end = "";
	int iterations;

	n = argc > 1 ? strtoul(argv[1], &end, 10) : 100;
	start();
	if (*end != '\0' || n < ranks || n > 100000) {
		fprintf(stderr, "usage: cg [N], %u to 100000\n", ranks);
		return 2;
	}
	rows = first_row(n, rank + 1) - first_row(n, rank);
	plan_edges();
	for (int i = 0; i < 7; i++) {
		v[i] = allocate((rows + 2) * n * sizeof(double));
		memset(v[i], 0, (rows + 2) * n * sizeof(double));
	}
	/* The solution is chosen, and b follows from it. */
	for (size_t i = 0; i < rows; i++) {
		for (size_t k = 0; k < n; k++) {
			row(v[6], (long)i)[k] = sin((double)(first_row(n, rank) + i)) +
						cos(0.1 * (double)k);
		}
	}
	apply(v[6], v[5], v[1]);
	iterations = solve(v[0], v[1], v[2], v[3], v[4], v[5]);
	for (size_t i = 0; i < rows * n; i++) {
		error = fmax(error, fabs(row(v[0], 0)[i] - row(v[6], 0)[i]));
	}
	CHECK(collnet_allreduce(team, &error, &worst, 1, COLLNET_FLOAT64, COLLNET_MAX, NULL));
	if (rank == 0) {
		printf("cg: %zu unknowns, %d iterations, largest error %.1e: %s\n", n * n,
		       iterations, worst, worst < 1e-6 ? "correct" : "WRONG");
	}
	for (int i = 0; i < 7; i++) {
		collnet_free(context, v[i]);
	}
	free(send_counts);
	finish();
	return worst < 1e-6 ? 0 : 1;
}
