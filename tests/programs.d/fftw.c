/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transforms of FFTW's MPI library, which plans and communicates itself: forward and back, N * N *
 * N complex numbers, as often as the second argument says. Rank 0 prints "right: SECONDS" of the
 * transforms if the result is the beginning, N^3 times.
 *
 * A third argument follows the tips of FFTW's manual, "FFTW MPI Performance Tips": the output stays
 * transposed, and the input may be overwritten. FFTW then considers MPI_Alltoall(), and uses it if
 * it finds it faster than messages.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <fftw3-mpi.h>

static double value(ptrdiff_t i)
{
	return (double)((i * 2654435761) % 1000) / 1000;
}

int main(int argc, char **argv)
{
	ptrdiff_t n = argc > 1 ? atoi(argv[1]) : 64, planes, first, size;
	const bool tips = argc > 3;
	const unsigned flags = FFTW_MEASURE | (tips ? FFTW_DESTROY_INPUT : 0);
	int rank, wrong = 0, all, times = argc > 2 ? atoi(argv[2]) : 5;
	double began;

	MPI_Init(&argc, &argv);
	fftw_mpi_init();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	size = fftw_mpi_local_size_3d(n, n, n, MPI_COMM_WORLD, &planes, &first);
	fftw_complex *a = fftw_alloc_complex((size_t)size);
	fftw_complex *b = fftw_alloc_complex((size_t)size);
	fftw_plan forth = fftw_mpi_plan_dft_3d(n, n, n, a, b, MPI_COMM_WORLD, FFTW_FORWARD,
					       flags | (tips ? FFTW_MPI_TRANSPOSED_OUT : 0));
	fftw_plan back = fftw_mpi_plan_dft_3d(n, n, n, b, a, MPI_COMM_WORLD, FFTW_BACKWARD,
					      flags | (tips ? FFTW_MPI_TRANSPOSED_IN : 0));
	const double scale = 1.0 / ((double)n * (double)n * (double)n);

	for (ptrdiff_t i = 0; i < planes * n * n; i++) {
		a[i][0] = value(first * n * n + i);
		a[i][1] = 0;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	began = MPI_Wtime();
	for (int k = 0; k < times; k++) {
		fftw_execute(forth);
		fftw_execute(back);
		for (ptrdiff_t i = 0; i < planes * n * n; i++) {
			a[i][0] *= scale;
			a[i][1] *= scale;
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	began = MPI_Wtime() - began;
	for (ptrdiff_t i = 0; i < planes * n * n; i++) {
		wrong |= fabs(a[i][0] - value(first * n * n + i)) > 1e-9;
	}
	MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("%s: %.3f s\n", all ? "wrong" : "right", began);
		fftw_print_plan(forth);
		printf("\n");
	}
	fftw_destroy_plan(forth);
	fftw_destroy_plan(back);
	MPI_Finalize();
	return all;
}
