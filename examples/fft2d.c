/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two-dimensional FFT of a square matrix, whose rows are distributed over the ranks: each rank
 * transforms its rows, the matrix is transposed by collnet_alltoallv(), with blocks as large as the
 * ranks' shares of rows, and the rows are transformed again.
 *
 *   cc fft2d.c -o fft2d $(pkg-config --cflags --libs collnet) -lm
 *   collnet lab run --shape 4x2 -- ./fft2d		on an emulated cluster of 8 hosts
 *
 * Usage: fft2d [N], the rows and columns, a power of two (256); at least one row per rank.
 */
#include <complex.h>
#include <math.h>

#include "start.h"

typedef double complex number;

static const double pi = 3.14159265358979323846;
static size_t n, rows;

/* In place, by decimation in time. */
static void fft(number *x)
{
	for (size_t i = 1, j = 0; i < n; i++) {
		size_t bit = n / 2;
		number t;

		for (; (j & bit) != 0; bit /= 2) {
			j ^= bit;
		}
		j |= bit;
		if (i < j) {
			t = x[i];
			x[i] = x[j];
			x[j] = t;
		}
	}
	for (size_t half = 1; half < n; half *= 2) {
		for (size_t k = 0; k < half; k++) {
			number w = cexp(-pi * (double)k / (double)half * I);

			for (size_t i = k; i < n; i += 2 * half) {
				number t = w * x[i + half];

				x[i + half] = x[i] - t;
				x[i] += t;
			}
		}
	}
}

/* The matrix as rows becomes the matrix as columns, in `m`; `packed` has the blocks for the ranks
 * one after the other. */
static void transpose(number *m, number *packed)
{
	size_t *send = calloc(2 * (size_t)ranks, sizeof(*send)), *recv = send + ranks;
	number *out = packed;

	check(send != NULL ? COLLNET_OK : COLLNET_ENOMEM, "calloc");
	for (uint32_t r = 0; r < ranks; r++) {
		size_t from = first_row(n, r), to = first_row(n, r + 1);

		for (size_t k = from; k < to; k++) {
			for (size_t i = 0; i < rows; i++) {
				*out++ = m[i * n + k];
			}
		}
		send[r] = recv[r] = rows * (to - from) * sizeof(number);
	}
	CHECK(collnet_alltoallv(team, packed, send, NULL, m, recv, NULL, NULL));
	/* From rank r came, for each of our columns, the part of it that r had. */
	for (size_t i = 0; i < rows * n; i++) {
		packed[i] = m[i];
	}
	out = packed;
	for (uint32_t r = 0; r < ranks; r++) {
		size_t from = first_row(n, r), to = first_row(n, r + 1);

		for (size_t k = 0; k < rows; k++) {
			for (size_t i = from; i < to; i++) {
				m[k * n + i] = *out++;
			}
		}
	}
	free(send);
}

int main(int argc, char **argv)
{
	number *m, *packed;
	size_t first, a, b;
	double error = 0, worst;
	char *end = "";

	n = argc > 1 ? strtoul(argv[1], &end, 10) : 256;
	start();
	if (*end != '\0' || n < ranks || n < 2 || n > 65536 || (n & (n - 1)) != 0) {
		fprintf(stderr, "usage: fft2d [N], a power of two of at least %u\n", ranks);
		return 2;
	}
	first = first_row(n, rank);
	rows = first_row(n, rank + 1) - first;
	m = allocate(rows * n * sizeof(*m));
	packed = allocate(rows * n * sizeof(*packed));
	/* A plane wave: its spectrum is one number, at row a of column b. */
	a = n / 3;
	b = n / 5;
	for (size_t i = 0; i < rows; i++) {
		for (size_t k = 0; k < n; k++) {
			m[i * n + k] = cexp(2 * pi / (double)n *
					    (double)((a * (first + i) + b * k) % n) * I);
		}
	}
	for (size_t i = 0; i < rows; i++) {
		fft(m + i * n);
	}
	transpose(m, packed);
	for (size_t i = 0; i < rows; i++) {
		fft(m + i * n);
	}
	/* Its rows are the spectrum's columns. */
	for (size_t i = 0; i < rows; i++) {
		for (size_t k = 0; k < n; k++) {
			double wanted = first + i == b && k == a ? (double)n * (double)n : 0;

			error = fmax(error, cabs(m[i * n + k] - wanted));
		}
	}
	CHECK(collnet_allreduce(team, &error, &worst, 1, COLLNET_FLOAT64, COLLNET_MAX, NULL));
	worst /= (double)n * (double)n;
	if (rank == 0) {
		printf("fft2d: %zu x %zu on %u ranks, largest error %.1e: %s\n", n, n, ranks, worst,
		       worst < 1e-12 ? "correct" : "WRONG");
	}
	collnet_free(context, m);
	collnet_free(context, packed);
	finish();
	return worst < 1e-12 ? 0 : 1;
}
