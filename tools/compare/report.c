/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The results: a table or JSON on standard output, and a CSV file. What is not known is -, null and
 * empty. Times are medians over the rounds, in microseconds.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/compare/command.h"

static bool present(const struct compare *c, enum cell_library library)
{
	for (size_t i = 0; i < c->ncontenders; i++) {
		if (c->contenders[i].library == library) {
			return true;
		}
	}
	return false;
}

/* The time of a library, by its faster setting; NAN. */
static double time_of(const struct cell *cell, enum cell_library library)
{
	size_t i = cell_of_library(cell, library);

	return i == CELL_NONE ? NAN : cell_median(cell, i);
}

static bool any_wrong(const struct cell *cell)
{
	for (size_t i = 0; i < cell->contenders; i++) {
		if (cell->wrong[i]) {
			return true;
		}
	}
	return false;
}

static uint32_t ranks_of(const struct compare *c)
{
	return c->nhosts * c->o->ranks_per_node;
}

/* ---- the table ------------------------------------------------------------------------ */

static void table_begin(const struct compare *c)
{
	const char *separator = "";

	for (size_t i = 0; i < c->ncontenders; i++) {
		const struct contender *t = &c->contenders[i];

		if (t->yield != 1 && !cell_on_collnet(t->library) && !t->failed) {
			printf("%s%s", separator, t->version);
			separator = ", ";
		}
	}
	printf("\n%u rank%s on %u node%s; microseconds, medians of %u round%s; ratio: collnet's time / "
	       "the other's\n",
	       ranks_of(c), ranks_of(c) == 1 ? "" : "s", c->nhosts, c->nhosts == 1 ? "" : "s",
	       c->o->rounds, c->o->rounds == 1 ? "" : "s");
	printf("%-10s %8s %10s", "operation", "size", "collnet");
	if (present(c, CELL_OPENMPI)) {
		printf(" %10s %5s %7s", "Open MPI", "yield", "ratio");
	}
	if (present(c, CELL_OPENMPI_ON_COLLNET)) {
		printf(" %10s %7s", "on collnet", "ratio");
	}
	if (present(c, CELL_MPICH)) {
		printf(" %10s %7s", "MPICH", "ratio");
	}
	if (present(c, CELL_MPICH_ON_COLLNET)) {
		printf(" %10s %7s", "on collnet", "ratio");
	}
	printf(" %7s %15s %7s\n", "best", "min - max", "fastest");
}

static void table_library(const struct compare *c, const struct cell *cell,
			  enum cell_library library)
{
	size_t i = cell_of_library(cell, library);

	if (!present(c, library)) {
		return;
	}
	measure_report_column(time_of(cell, library), 10, 1, "");
	if (library == CELL_OPENMPI) {
		measure_report_column(i == CELL_NONE ? NAN : c->contenders[i].yield, 5, 0, "");
	}
	measure_report_column(cell_ratio(cell, i).median, 7, 2, "");
	if (present(c, cell_with_collnet(library))) {
		measure_report_column(time_of(cell, cell_with_collnet(library)), 10, 1, "");
		measure_report_column(cell_ratio_on_collnet(cell, library).median, 7, 2, "");
	}
}

static bool table_row(const struct compare *c, const struct cell *cell)
{
	struct cell_ratio best = cell_ratio(cell, cell_best(cell));
	char size[TOOL_TEXT] = "-", range[TOOL_TEXT] = "-";

	if (cell->op != LOOP_BARRIER) {
		tool_format_size(cell->bytes, size);
	}
	if (isfinite(best.median)) {
		snprintf(range, sizeof(range), "%.2f - %.2f", best.min, best.max);
	}
	printf("%-10s %8s", loop_op_name(cell->op), size);
	measure_report_column(time_of(cell, CELL_COLLNET), 10, 1, "");
	table_library(c, cell, CELL_OPENMPI);
	table_library(c, cell, CELL_MPICH);
	measure_report_column(best.median, 7, 2, "");
	printf(" %15s", range);
	measure_report_column(cell_fastest_ratio(cell), 7, 2, "");
	printf("%s%s\n", best.median > CELL_NOT_SLOWER ? "  slower" : "",
	       any_wrong(cell) ? "  WRONG" : "");
	return fflush(stdout) == 0 && !ferror(stdout);
}

static bool table_end(const struct compare *c)
{
	size_t slower = 0, n = 0;
	double logs = 0;

	for (size_t i = 0; i < c->ncells; i++) {
		double ratio = cell_ratio(&c->cells[i], cell_best(&c->cells[i])).median;

		if (isfinite(ratio)) {
			slower += ratio > CELL_NOT_SLOWER;
			logs += log(ratio);
			n++;
		}
	}
	printf("collnet is slower than the best MPI (ratio above %.2f) in %zu of %zu cells",
	       CELL_NOT_SLOWER, slower, n);
	if (n > 0) {
		printf("; geometric mean of the ratios %.2f", exp(logs / (double)n));
	}
	printf("\n%s\n",
	       c->one_clock
		       ? "time: from the common moment or the last call that the result needs to the last return, by one clock"
		       : "time: of the slowest rank, from its call to its return");
	return fflush(stdout) == 0 && !ferror(stdout);
}

/* ---- JSON ----------------------------------------------------------------------------- */

static void json_contender(struct json *j, const struct compare *c, const struct cell *cell,
			   size_t i)
{
	const struct contender *t = &c->contenders[i];
	bool right = !cell->wrong[i];

	json_object(j, NULL);
	json_string(j, "library", compare_library_key(t->library));
	json_string(j, "version", t->version);
	if (t->yield < 0) {
		json_null(j, "yield");
	} else {
		json_uint(j, "yield", (uint64_t)t->yield);
	}
	json_uint(j, "iterations", cell->iterations[i]);
	json_double(j, "time_us", cell_median(cell, i), 3);
	json_double(j, "min_us", cell->min_us[i], 3);
	json_array(j, "rounds_us");
	for (uint32_t r = 0; r < cell->rounds; r++) {
		json_double(j, NULL, cell->us[i][r], 3);
	}
	json_array_end(j);
	measure_report_bool(j, "verified", isnan(cell_median(cell, i)) ? NULL : &right);
	json_string(j, "by", cell->by[i]);
	json_object_end(j);
}

static bool json_cell(const struct compare *c, const struct cell *cell)
{
	size_t i = cell_best(cell);
	struct cell_ratio best = cell_ratio(cell, i);
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_string(&j, "op", loop_op_name(cell->op));
	json_uint(&j, "bytes", cell->bytes);
	json_uint(&j, "ranks", ranks_of(c));
	json_uint(&j, "nodes", c->nhosts);
	json_uint(&j, "rounds", cell->rounds);
	json_bool(&j, "one_clock", c->one_clock);
	json_string(&j, "best", i == CELL_NONE ? NULL : compare_library_key(cell->library[i]));
	json_double(&j, "ratio", best.median, 4);
	json_double(&j, "ratio_min", best.min, 4);
	json_double(&j, "ratio_max", best.max, 4);
	json_double(&j, "ratio_fastest", cell_fastest_ratio(cell), 4);
	json_double(&j, "openmpi_on_collnet_ratio",
		    cell_ratio_on_collnet(cell, CELL_OPENMPI).median, 4);
	json_double(&j, "mpich_on_collnet_ratio", cell_ratio_on_collnet(cell, CELL_MPICH).median,
		    4);
	if (isfinite(best.median)) {
		json_bool(&j, "slower", best.median > CELL_NOT_SLOWER);
	} else {
		json_null(&j, "slower");
	}
	json_array(&j, "contenders");
	for (i = 0; i < cell->contenders; i++) {
		json_contender(&j, c, cell, i);
	}
	json_array_end(&j);
	json_object_end(&j);
	return json_end(&j);
}

/* ---- CSV ------------------------------------------------------------------------------ */

static const char csv_names[] =
	"op,bytes,ranks,nodes,rounds,collnet_us,openmpi_us,openmpi_yield,openmpi_ratio,"
	"mpich_us,mpich_ratio,ratio,ratio_min,ratio_max,ratio_fastest,collnet_min_us,openmpi_min_us,"
	"mpich_min_us,openmpi_on_collnet_us,openmpi_on_collnet_ratio,mpich_on_collnet_us,"
	"mpich_on_collnet_ratio,verified";

bool compare_csv_row(const struct compare *c, const struct cell *cell)
{
	struct cell_ratio best = cell_ratio(cell, cell_best(cell));
	size_t openmpi = cell_of_library(cell, CELL_OPENMPI);
	size_t mpich = cell_of_library(cell, CELL_MPICH);

	fprintf(c->csv, "%s,%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32, loop_op_name(cell->op),
		cell->bytes, ranks_of(c), c->nhosts, cell->rounds);
	measure_report_cell(c->csv, time_of(cell, CELL_COLLNET));
	measure_report_cell(c->csv, time_of(cell, CELL_OPENMPI));
	measure_report_cell(c->csv, openmpi == CELL_NONE ? NAN : c->contenders[openmpi].yield);
	measure_report_cell(c->csv, cell_ratio(cell, openmpi).median);
	measure_report_cell(c->csv, time_of(cell, CELL_MPICH));
	measure_report_cell(c->csv, cell_ratio(cell, mpich).median);
	measure_report_cell(c->csv, best.median);
	measure_report_cell(c->csv, best.min);
	measure_report_cell(c->csv, best.max);
	measure_report_cell(c->csv, cell_fastest_ratio(cell));
	measure_report_cell(c->csv, cell_fastest(cell, CELL_COLLNET));
	measure_report_cell(c->csv, cell_fastest(cell, CELL_OPENMPI));
	measure_report_cell(c->csv, cell_fastest(cell, CELL_MPICH));
	measure_report_cell(c->csv, time_of(cell, CELL_OPENMPI_ON_COLLNET));
	measure_report_cell(c->csv, cell_ratio_on_collnet(cell, CELL_OPENMPI).median);
	measure_report_cell(c->csv, time_of(cell, CELL_MPICH_ON_COLLNET));
	measure_report_cell(c->csv, cell_ratio_on_collnet(cell, CELL_MPICH).median);
	fprintf(c->csv, ",%s\n", any_wrong(cell) ? "false" : "true");
	return fflush(c->csv) == 0 && !ferror(c->csv);
}

/* ---- as the cells are measured -------------------------------------------------------- */

int compare_report_begin(struct compare *c)
{
	if (c->o->m.csv != NULL) {
		c->csv = fopen(c->o->m.csv, "we");
		if (!measure_report_written(c->csv != NULL, c->o->m.csv)) {
			return TOOL_FAILED;
		}
		fprintf(c->csv, "%s\n", csv_names);
	}
	if (!c->o->m.json) {
		table_begin(c);
	}
	return TOOL_OK;
}

int compare_report_cell(struct compare *c, const struct cell *cell)
{
	bool ok = measure_report_written(c->o->m.json ? json_cell(c, cell) : table_row(c, cell),
					 "standard output");

	if (c->csv != NULL) {
		ok = measure_report_written(compare_csv_row(c, cell), c->o->m.csv) && ok;
	}
	return ok ? TOOL_OK : TOOL_FAILED;
}

int compare_report_end(struct compare *c)
{
	bool ok = true;

	if (!c->o->m.json) {
		ok = measure_report_written(table_end(c), "standard output");
	}
	return ok ? TOOL_OK : TOOL_FAILED;
}
