/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/compare/cell.h"

#include <math.h>

#include "tools/measure/model.h"

#define TURN_US 100000.0

double cell_median(const struct cell *c, size_t contender)
{
	double v[CELL_ROUNDS_MAX];
	size_t n = 0;

	for (uint32_t r = 0; r < c->rounds; r++) {
		if (!isnan(c->us[contender][r])) {
			v[n++] = c->us[contender][r];
		}
	}
	return measure_median(v, n);
}

static size_t lowest(const struct cell *c, bool (*counts)(enum cell_library, enum cell_library),
		     enum cell_library library)
{
	double least = INFINITY;
	size_t best = CELL_NONE;

	for (size_t i = 0; i < c->contenders; i++) {
		double m = cell_median(c, i);

		if (counts(c->library[i], library) && m < least) { /* not if it is NAN */
			least = m;
			best = i;
		}
	}
	return best;
}

static bool same(enum cell_library a, enum cell_library b)
{
	return a == b;
}

static bool without(enum cell_library a, enum cell_library b)
{
	return a != b && !cell_on_collnet(a);
}

bool cell_on_collnet(enum cell_library library)
{
	return library == CELL_OPENMPI_ON_COLLNET || library == CELL_MPICH_ON_COLLNET;
}

enum cell_library cell_with_collnet(enum cell_library library)
{
	return library == CELL_OPENMPI ? CELL_OPENMPI_ON_COLLNET : CELL_MPICH_ON_COLLNET;
}

size_t cell_of_library(const struct cell *c, enum cell_library library)
{
	return lowest(c, same, library);
}

size_t cell_best(const struct cell *c)
{
	return lowest(c, without, CELL_COLLNET);
}

static struct cell_ratio ratio_of(const struct cell *c, size_t ours, size_t contender)
{
	struct cell_ratio ratio = { NAN, NAN, NAN };
	double v[CELL_ROUNDS_MAX];
	size_t n = 0;

	if (ours == CELL_NONE || contender == CELL_NONE) {
		return ratio;
	}
	for (uint32_t r = 0; r < c->rounds; r++) {
		double q = c->us[ours][r] / c->us[contender][r];

		if (isfinite(q)) {
			v[n++] = q;
		}
	}
	if (n > 0) {
		const double median = measure_median(v, n); /* which sorts them */

		ratio = (struct cell_ratio){ median, v[0], v[n - 1] };
	}
	return ratio;
}

struct cell_ratio cell_ratio(const struct cell *c, size_t contender)
{
	return ratio_of(c, cell_of_library(c, CELL_COLLNET), contender);
}

struct cell_ratio cell_ratio_on_collnet(const struct cell *c, enum cell_library library)
{
	return ratio_of(c, cell_of_library(c, cell_with_collnet(library)),
			cell_of_library(c, library));
}

double cell_fastest(const struct cell *c, enum cell_library library)
{
	double least = NAN;

	for (size_t i = 0; i < c->contenders; i++) {
		if (c->library[i] == library) {
			least = fmin(least, c->min_us[i]); /* which passes over NAN */
		}
	}
	return least;
}

double cell_fastest_ratio(const struct cell *c)
{
	return cell_fastest(c, CELL_COLLNET) /
	       fmin(cell_fastest(c, CELL_OPENMPI), cell_fastest(c, CELL_MPICH));
}

uint32_t cell_iterations(double us)
{
	double n = TURN_US / us;

	return !(n > 3) ? 3 : n > 200 ? 200 : (uint32_t)n;
}

uint32_t cell_start_delay(double us)
{
	return !(us >= 500) ? 0 : us < 2000 ? 2000 : us > 5000 ? 5000 : (uint32_t)us;
}
