/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ratios as a plot: a gnuplot script that contains its data, or the picture that gnuplot makes
 * of it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/compare/command.h"
#include "tools/gnuplot.h"
#include "tools/lab/command.h"

static bool is_svg(const char *path)
{
	size_t len = strlen(path);

	return len >= 4 && strcmp(path + len - 4, ".svg") == 0;
}

bool compare_can_write(const char *path, struct cn_err *err)
{
	struct stat st;
	bool created;
	FILE *f;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		return true; /* the reader of a pipe would see its end */
	}
	f = fopen(path, "axe");
	created = f != NULL;
	f = created ? f : fopen(path, "ae");
	if (f == NULL) {
		cn_fail(err, COLLNET_ESYSTEM, "%s: %s", path, strerror(errno));
		return false;
	}
	fclose(f);
	if (created) {
		unlink(path);
	}
	return true;
}

bool compare_can_plot(const char *path, struct cn_err *err)
{
	char gnuplot[COMPARE_PATH];

	if (is_svg(path) && !lab_find_tool("gnuplot", gnuplot, sizeof(gnuplot))) {
		cn_fail(err, COLLNET_ESYSTEM,
			"gnuplot is missing: install the Debian package gnuplot-nox, or let --plot "
			"write a script, to a file that does not end in .svg");
		return false;
	}
	return compare_can_write(path, err);
}

static void put_ratio(FILE *f, const struct cell *cell, enum cell_library library)
{
	double ratio = cell_ratio(cell, cell_of_library(cell, library)).median;

	if (isfinite(ratio)) {
		fprintf(f, " %.4f", ratio);
	} else {
		fputs(" ?", f);
	}
}

void compare_plot_script(const struct compare *c, FILE *f)
{
	char size[TOOL_TEXT];

	fputs("# collnet's time / the other's: operation and size, Open MPI, MPICH\n"
	      "$ratios << EOD\n",
	      f);
	for (size_t i = 0; i < c->ncells; i++) {
		const struct cell *cell = &c->cells[i];

		fprintf(f, "\"%s%s%s\"", loop_op_name(cell->op),
			cell->op == LOOP_BARRIER ? "" : " ",
			cell->op == LOOP_BARRIER ? "" : tool_format_size(cell->bytes, size));
		put_ratio(f, cell, CELL_OPENMPI);
		put_ratio(f, cell, CELL_MPICH);
		fputc('\n', f);
	}
	fprintf(f,
		"EOD\n"
		"set terminal svg size 800,500 background 'white' font 'sans,14'\n"
		"set datafile missing '?'\n"
		"set title '%u ranks on %u nodes; below the line collnet is faster'\n"
		"set ylabel 'time of collnet / time of the other'\n"
		"set logscale y 2\n"
		"set xtics rotate by -45\n"
		"set xrange [-0.5:%zu.5]\n"
		"set grid ytics\n"
		"set key top right\n"
		"plot 1 with lines lc rgb 'black' notitle, \\\n"
		"     $ratios using 0:2:xtic(1) with points pt 7 ps 0.8 lc rgb '#0072b2' title "
		"'Open MPI', \\\n"
		"     $ratios using 0:3 with points pt 5 ps 0.8 lc rgb '#d55e00' title 'MPICH'\n",
		c->nhosts * c->o->ranks_per_node, c->nhosts, c->ncells > 0 ? c->ncells - 1 : 0);
}

/* Writes the script; with `picture` it writes the picture to that file in the same directory. */
static bool write_script(const struct compare *c, const char *path, const char *picture)
{
	FILE *f = fopen(path, "we");

	if (f == NULL) {
		return false;
	}
	if (picture != NULL) {
		fprintf(f, "set output '%s'\n", picture);
	}
	compare_plot_script(c, f);
	return fclose(f) == 0;
}

static bool copy(const char *from, const char *to)
{
	FILE *in = fopen(from, "re"), *out = fopen(to, "we");
	bool ok = in != NULL && out != NULL;
	char block[4096];
	size_t n;

	while (ok && (n = fread(block, 1, sizeof(block), in)) > 0) {
		ok = fwrite(block, 1, n, out) == n;
	}
	if (in != NULL) {
		fclose(in);
	}
	return (out == NULL || fclose(out) == 0) && ok;
}

int compare_plot(const struct compare *c)
{
	char script[COMPARE_PATH + 16], picture[COMPARE_PATH + 16];

	if (!is_svg(c->o->plot)) {
		return measure_report_written(write_script(c, c->o->plot, NULL), c->o->plot)
			       ? TOOL_OK
			       : TOOL_FAILED;
	}
	snprintf(script, sizeof(script), "%s/plot.gp", c->directory);
	snprintf(picture, sizeof(picture), "%s/plot.svg", c->directory);
	if (!measure_report_written(write_script(c, script, "plot.svg"), script)) {
		return TOOL_FAILED;
	}
	if (!tool_gnuplot(c->directory, "plot.gp")) {
		tool_complain("gnuplot failed");
		return TOOL_FAILED;
	}
	return measure_report_written(copy(picture, c->o->plot), c->o->plot) ? TOOL_OK
									     : TOOL_FAILED;
}
