/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of the benchmark: one JSON object per line, or a row of an aligned table; and a CSV file
 * for plotting. What is not known is null, - and empty.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/bench/command.h"

static bool report_json(const struct bench *b, const struct measure_result *r)
{
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	measure_report_keys(&j, &b->m, r);
	json_object_end(&j);
	return json_end(&j);
}

/* ---- the table ------------------------------------------------------------------------ */

static void header(const struct bench *b, const struct measure_result *r)
{
	printf("%s, %u rank%s on %u node%s%s\n", measure_op_name(r->op), b->m.place.ranks,
	       b->m.place.ranks == 1 ? "" : "s", b->m.place.nodes, b->m.place.nodes == 1 ? "" : "s",
	       b->m.place.ranks == 1 ? " (for more, start one process per rank: see collnet(7))"
				     : "");
	switch (r->op) {
	case MEASURE_PINGPONG:
		printf("%10s %7s %10s %10s %10s %10s %7s %10s %6s\n", "size", "trips", "min us",
		       "median us", "p99 us", "half us", "checked", "base us", "ratio");
		break;
	case MEASURE_STREAM:
		printf("%10s %8s %11s %10s %11s %7s %7s %8s %7s %11s %6s\n", "size", "messages",
		       "ms/message", "MB/s", "frames/s", "resent", "acks", "s/GiB", "checked",
		       "base fr./s", "ratio");
		break;
	case MEASURE_BARRIER:
		printf("%-13s %6s %10s %10s %10s %8s %7s\n", "algorithm", "iter", "min us",
		       "median us", "p99 us", "frames", "resent");
		break;
	default:
		printf("%8s %-9s %-11s %-3s %7s %5s %10s %10s %10s %11s %7s %9s %7s %6s %7s %7s\n",
		       "size", "algorithm", "permutation", "CA", "window", "iter", "min ms",
		       "median ms", "p99 ms", "Mbit/s/node", "% limit", "frames", "resent", "acks",
		       "s/GiB", "checked");
		break;
	}
}

static void row_collective(const struct measure_result *r)
{
	char size[TOOL_TEXT], window[TOOL_TEXT];

	measure_report_window(r, window);
	printf("%8s %-9s %-11s %-3s %7s %5" PRIu64, tool_format_size(r->bytes, size), r->algorithm,
	       r->permutation != NULL ? r->permutation : "-", *r->contention_aware ? "on" : "off",
	       window, r->iterations);
	measure_report_column(r->ns.min / 1e6, 10, 3, "");
	measure_report_column(r->ns.median / 1e6, 10, 3, "");
	measure_report_column(r->ns.p99 / 1e6, 10, 3, "");
	measure_report_column(r->bandwidth, 11, 2, "");
	measure_report_column(measure_efficiency(r) * 100, 7, 1, "");
	printf(" %9" PRIu64 " %7" PRIu64, r->frames_sent, r->frames_resent);
	measure_report_column(r->ack_bytes_share * 100, 6, 2, "%");
	measure_report_column(r->cpu_s_per_gib, 7, 1, "");
	printf(" %7s\n", measure_report_checked(r->verified));
}

static void row_barrier(const struct measure_result *r)
{
	printf("%-13s %6" PRIu64, r->algorithm, r->iterations);
	measure_report_column(r->ns.min / 1e3, 10, 1, "");
	measure_report_column(r->ns.median / 1e3, 10, 1, "");
	measure_report_column(r->ns.p99 / 1e3, 10, 1, "");
	printf(" %8" PRIu64 " %7" PRIu64 "\n", r->frames_sent, r->frames_resent);
}

static void row_pingpong(const struct measure_result *r)
{
	char size[TOOL_TEXT];

	printf("%10s %7" PRIu64, tool_format_size(r->bytes, size), r->iterations);
	measure_report_column(r->ns.min / 1e3, 10, 1, "");
	measure_report_column(r->ns.median / 1e3, 10, 1, "");
	measure_report_column(r->ns.p99 / 1e3, 10, 1, "");
	measure_report_column(r->ns.median / 2e3, 10, 1, "");
	printf(" %7s", measure_report_checked(r->verified));
	measure_report_column(r->baseline_ns.median / 1e3, 10, 1, "");
	measure_report_column(r->baseline_ratio, 6, 2, "");
	putchar('\n');
}

static void row_stream(const struct measure_result *r)
{
	char size[TOOL_TEXT];

	printf("%10s %8" PRIu64, tool_format_size(r->bytes, size), r->iterations);
	measure_report_column(r->ns.median / 1e6, 11, 3, "");
	measure_report_column(r->bandwidth / 8, 10, 2, "");
	measure_report_column(r->frames_per_s, 11, 0, "");
	printf(" %7" PRIu64, r->frames_resent);
	measure_report_column(r->ack_bytes_share * 100, 7, 2, "%");
	measure_report_column(r->cpu_s_per_gib, 8, 2, "");
	printf(" %7s", measure_report_checked(r->verified));
	measure_report_column(r->baseline_frames_per_s, 11, 0, "");
	measure_report_column(r->baseline_ratio, 6, 2, "");
	putchar('\n');
}

static bool report_table(struct bench *b, const struct measure_result *r)
{
	if (!b->m.header) {
		header(b, r);
	}
	switch (r->op) {
	case MEASURE_PINGPONG:
		row_pingpong(r);
		break;
	case MEASURE_STREAM:
		row_stream(r);
		break;
	case MEASURE_BARRIER:
		row_barrier(r);
		break;
	default:
		row_collective(r);
		break;
	}
	return fflush(stdout) == 0 && !ferror(stdout);
}

static bool report_csv(const struct bench *b, const struct measure_result *r)
{
	FILE *f = b->m.csv;

	if (!b->m.header) {
		fprintf(f, "%s\n", measure_report_names);
	}
	measure_report_cells(f, r);
	putc('\n', f);
	return fflush(f) == 0 && !ferror(f);
}

bool bench_report(struct bench *b, const struct measure_result *r)
{
	bool ok = measure_report_written(b->o->m.json ? report_json(b, r) : report_table(b, r),
					 "standard output");

	if (b->m.csv != NULL) {
		ok = measure_report_written(report_csv(b, r), b->o->m.csv) && ok;
	}
	b->m.header = true;
	return ok;
}
