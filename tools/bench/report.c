/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of the benchmark: a JSON object a line, or a row of an aligned table; and a CSV file
 * for plotting. What is not known is null, - and empty.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/bench/command.h"

void bench_result_init(struct bench_result *r, const struct bench *b, uint64_t bytes)
{
	const struct bench_times none = { NAN, NAN, NAN };

	memset(r, 0, sizeof(*r));
	r->op = b->o->op;
	r->bytes = bytes;
	r->window = COLLNET_WINDOW_OFF;
	r->ns = r->bare_ns = none;
	r->limit_us = r->bandwidth = r->ack_bytes_share = r->cpu_s_per_gib = NAN;
	r->frames_per_s = r->bare_frames_per_s = r->bare_ratio = r->slowest_ns = NAN;
}

double bench_efficiency(const struct bench_result *r)
{
	return r->limit_us / (r->ns.median / 1e3);
}

static void times(struct json *j, const char *key, const struct bench_times *t)
{
	if (isnan(t->median)) {
		json_null(j, key);
		return;
	}
	json_object(j, key);
	json_double(j, "min", t->min / 1e3, 3);
	json_double(j, "median", t->median / 1e3, 3);
	json_double(j, "p99", t->p99 / 1e3, 3);
	json_object_end(j);
}

static void optional_bool(struct json *j, const char *key, const bool *value)
{
	if (value == NULL) {
		json_null(j, key);
	} else {
		json_bool(j, key, *value);
	}
}

static void count(struct json *j, const char *key, const struct bench_result *r, uint64_t value)
{
	if (r->failed != NULL) {
		json_null(j, key);
	} else {
		json_uint(j, key, value);
	}
}

void bench_report_keys(struct json *j, const struct bench *b, const struct bench_result *r)
{
	json_string(j, "op", bench_op_name(r->op));
	json_string(j, "algorithm", r->algorithm);
	json_string(j, "permutation", r->permutation);
	optional_bool(j, "contention_aware", r->contention_aware);
	if (r->window == COLLNET_WINDOW_OFF) {
		json_null(j, "window");
	} else {
		json_uint(j, "window", r->window);
	}
	count(j, "window_peak", r, r->window_peak);
	json_uint(j, "ranks", b->ranks);
	json_uint(j, "nodes", b->place.nodes);
	json_uint(j, "bytes_per_pair", r->bytes);
	json_uint(j, "iterations", r->iterations);
	times(j, "time_us", &r->ns);
	json_double(j, "limit_us", r->limit_us, 3);
	json_double(j, "efficiency", bench_efficiency(r), 4);
	count(j, "frames_sent", r, r->frames_sent);
	count(j, "frames_resent", r, r->frames_resent);
	json_double(j, "ack_bytes_share", r->ack_bytes_share, 5);
	json_double(j, "cpu_s_per_gib", r->cpu_s_per_gib, 3);
	optional_bool(j, "verified", r->verified);
	json_double(j, "bandwidth_mbit_per_node", r->bandwidth, 3);
	count(j, "ring_drops", r, r->ring_drops);
	json_uint(j, b->direct ? "transport_rss_bytes" : "daemon_rss_bytes", r->rss_bytes);
	if (isfinite(r->slowest_ns)) {
		json_double(j, "slowest_rank_us", r->slowest_ns / 1e3, 3);
	}
	if (r->op == BENCH_PINGPONG) {
		json_double(j, "half_us", r->ns.median / 2e3, 3);
		times(j, "bare_time_us", &r->bare_ns);
		json_double(j, "bare_ratio", r->bare_ratio, 3);
	} else if (r->op == BENCH_STREAM) {
		json_double(j, "frames_per_s", r->frames_per_s, 0);
		json_double(j, "bare_frames_per_s", r->bare_frames_per_s, 0);
		json_double(j, "bare_ratio", r->bare_ratio, 3);
	}
}

static bool report_json(const struct bench *b, const struct bench_result *r)
{
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	bench_report_keys(&j, b, r);
	json_object_end(&j);
	return json_end(&j);
}

/* ---- the table ------------------------------------------------------------------------ */

void bench_report_column(double value, int width, int decimals, const char *unit)
{
	char text[TOOL_TEXT];

	if (isfinite(value)) {
		snprintf(text, sizeof(text), "%.*f%s", decimals, value, unit);
	} else {
		snprintf(text, sizeof(text), "-");
	}
	printf(" %*s", width, text);
}

static const char *checked_text(const bool *verified)
{
	return verified == NULL ? "-" : *verified ? "right" : "WRONG";
}

static void window_text(const struct bench_result *r, char out[TOOL_TEXT])
{
	if (r->window == COLLNET_WINDOW_OFF) {
		snprintf(out, TOOL_TEXT, "off");
	} else {
		snprintf(out, TOOL_TEXT, "%" PRIu64 "/%u", r->window_peak, r->window);
	}
}

static void header(const struct bench *b, const struct bench_result *r)
{
	printf("%s, %u rank%s on %u node%s%s\n", bench_op_name(r->op), b->ranks,
	       b->ranks == 1 ? "" : "s", b->place.nodes, b->place.nodes == 1 ? "" : "s",
	       b->ranks == 1 ? " (for more, start one process a rank: see collnet(7))" : "");
	switch (r->op) {
	case BENCH_PINGPONG:
		printf("%10s %7s %10s %10s %10s %10s %7s %10s %6s\n", "size", "trips", "min us",
		       "median us", "p99 us", "half us", "checked", "bare us", "ratio");
		break;
	case BENCH_STREAM:
		printf("%10s %8s %11s %10s %11s %7s %7s %8s %7s %11s %6s\n", "size", "messages",
		       "ms/message", "MB/s", "frames/s", "resent", "acks", "s/GiB", "checked",
		       "bare fr./s", "ratio");
		break;
	case BENCH_BARRIER:
		printf("%-13s %6s %10s %10s %10s %8s %7s\n", "algorithm", "iter", "min us",
		       "median us", "p99 us", "frames", "resent");
		break;
	case BENCH_ALLTOALL:
	case BENCH_ALLGATHER:
	case BENCH_BCAST:
	case BENCH_SCATTER:
	case BENCH_GATHER:
		printf("%8s %-9s %-11s %-3s %7s %5s %10s %10s %10s %11s %7s %9s %7s %6s %7s %7s\n",
		       "size", "algorithm", "permutation", "CA", "window", "iter", "min ms",
		       "median ms", "p99 ms", "Mbit/s/node", "% limit", "frames", "resent", "acks",
		       "s/GiB", "checked");
		break;
	}
}

static void row_collective(const struct bench_result *r)
{
	char size[TOOL_TEXT], window[TOOL_TEXT];

	window_text(r, window);
	printf("%8s %-9s %-11s %-3s %7s %5" PRIu64, tool_format_size(r->bytes, size), r->algorithm,
	       r->permutation != NULL ? r->permutation : "-", *r->contention_aware ? "on" : "off",
	       window, r->iterations);
	bench_report_column(r->ns.min / 1e6, 10, 3, "");
	bench_report_column(r->ns.median / 1e6, 10, 3, "");
	bench_report_column(r->ns.p99 / 1e6, 10, 3, "");
	bench_report_column(r->bandwidth, 11, 2, "");
	bench_report_column(bench_efficiency(r) * 100, 7, 1, "");
	printf(" %9" PRIu64 " %7" PRIu64, r->frames_sent, r->frames_resent);
	bench_report_column(r->ack_bytes_share * 100, 6, 2, "%");
	bench_report_column(r->cpu_s_per_gib, 7, 1, "");
	printf(" %7s\n", checked_text(r->verified));
}

static void row_barrier(const struct bench_result *r)
{
	printf("%-13s %6" PRIu64, r->algorithm, r->iterations);
	bench_report_column(r->ns.min / 1e3, 10, 1, "");
	bench_report_column(r->ns.median / 1e3, 10, 1, "");
	bench_report_column(r->ns.p99 / 1e3, 10, 1, "");
	printf(" %8" PRIu64 " %7" PRIu64 "\n", r->frames_sent, r->frames_resent);
}

static void row_pingpong(const struct bench_result *r)
{
	char size[TOOL_TEXT];

	printf("%10s %7" PRIu64, tool_format_size(r->bytes, size), r->iterations);
	bench_report_column(r->ns.min / 1e3, 10, 1, "");
	bench_report_column(r->ns.median / 1e3, 10, 1, "");
	bench_report_column(r->ns.p99 / 1e3, 10, 1, "");
	bench_report_column(r->ns.median / 2e3, 10, 1, "");
	printf(" %7s", checked_text(r->verified));
	bench_report_column(r->bare_ns.median / 1e3, 10, 1, "");
	bench_report_column(r->bare_ratio, 6, 2, "");
	putchar('\n');
}

static void row_stream(const struct bench_result *r)
{
	char size[TOOL_TEXT];

	printf("%10s %8" PRIu64, tool_format_size(r->bytes, size), r->iterations);
	bench_report_column(r->ns.median / 1e6, 11, 3, "");
	bench_report_column(r->bandwidth / 8, 10, 2, "");
	bench_report_column(r->frames_per_s, 11, 0, "");
	printf(" %7" PRIu64, r->frames_resent);
	bench_report_column(r->ack_bytes_share * 100, 7, 2, "%");
	bench_report_column(r->cpu_s_per_gib, 8, 2, "");
	printf(" %7s", checked_text(r->verified));
	bench_report_column(r->bare_frames_per_s, 11, 0, "");
	bench_report_column(r->bare_ratio, 6, 2, "");
	putchar('\n');
}

static bool report_table(struct bench *b, const struct bench_result *r)
{
	if (!b->header) {
		header(b, r);
	}
	switch (r->op) {
	case BENCH_PINGPONG:
		row_pingpong(r);
		break;
	case BENCH_STREAM:
		row_stream(r);
		break;
	case BENCH_BARRIER:
		row_barrier(r);
		break;
	case BENCH_ALLTOALL:
	case BENCH_ALLGATHER:
	case BENCH_BCAST:
	case BENCH_SCATTER:
	case BENCH_GATHER:
		row_collective(r);
		break;
	}
	return fflush(stdout) == 0 && !ferror(stdout);
}

/* ---- CSV ------------------------------------------------------------------------------ */

void bench_report_cell(FILE *f, double value)
{
	if (isfinite(value)) {
		fprintf(f, ",%.6g", value);
	} else {
		putc(',', f);
	}
}

const char bench_report_names[] =
	"op,algorithm,bytes_per_pair,median_us,min_us,p99_us,limit_us,efficiency,"
	"bandwidth_mbit_per_node,frames_sent,frames_resent,frames_per_s,bare_ratio";

void bench_report_cells(FILE *f, const struct bench_result *r)
{
	fprintf(f, "%s,%s,%" PRIu64, bench_op_name(r->op), r->algorithm != NULL ? r->algorithm : "",
		r->bytes);
	bench_report_cell(f, r->ns.median / 1e3);
	bench_report_cell(f, r->ns.min / 1e3);
	bench_report_cell(f, r->ns.p99 / 1e3);
	bench_report_cell(f, r->limit_us);
	bench_report_cell(f, bench_efficiency(r));
	bench_report_cell(f, r->bandwidth);
	if (r->failed != NULL) {
		fputs(",,", f);
	} else {
		fprintf(f, ",%" PRIu64 ",%" PRIu64, r->frames_sent, r->frames_resent);
	}
	bench_report_cell(f, r->frames_per_s);
	bench_report_cell(f, r->bare_ratio);
}

static bool report_csv(const struct bench *b, const struct bench_result *r)
{
	FILE *f = b->csv;

	if (!b->header) {
		fprintf(f, "%s\n", bench_report_names);
	}
	bench_report_cells(f, r);
	putc('\n', f);
	return fflush(f) == 0 && !ferror(f);
}

bool bench_report_written(bool ok, const char *where)
{
	if (!ok) {
		tool_complain("%s: %s", where, strerror(errno));
	}
	return ok;
}

bool bench_report(struct bench *b, const struct bench_result *r)
{
	bool ok = bench_report_written(b->o->json ? report_json(b, r) : report_table(b, r),
				       "standard output");

	if (b->csv != NULL) {
		ok = bench_report_written(report_csv(b, r), b->o->csv) && ok;
	}
	b->header = true;
	return ok;
}
