/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A result as the keys of a JSON object and as the cells of a CSV file. What is not known is null,
 * and empty.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/measure/measure.h"

void measure_result_init(struct measure_result *r, const struct measure *m, uint64_t bytes)
{
	const struct measure_times none = { NAN, NAN, NAN };

	memset(r, 0, sizeof(*r));
	r->op = m->o->op;
	r->bytes = bytes;
	r->window = COLLNET_WINDOW_OFF;
	r->ns = r->baseline_ns = none;
	r->limit_us = r->bandwidth = r->ack_bytes_share = r->cpu_s_per_gib = NAN;
	r->frames_per_s = r->baseline_frames_per_s = r->baseline_ratio = r->slowest_ns = NAN;
}

double measure_efficiency(const struct measure_result *r)
{
	return r->limit_us / (r->ns.median / 1e3);
}

static void times(struct json *j, const char *key, const struct measure_times *t)
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

void measure_report_bool(struct json *j, const char *key, const bool *value)
{
	if (value == NULL) {
		json_null(j, key);
	} else {
		json_bool(j, key, *value);
	}
}

void measure_report_window(const struct measure_result *r, char out[TOOL_TEXT])
{
	if (r->window == COLLNET_WINDOW_OFF) {
		snprintf(out, TOOL_TEXT, "off");
	} else if (r->window == COLLNET_WINDOW_AUTO) {
		snprintf(out, TOOL_TEXT, "%" PRIu64 "/auto", r->window_peak);
	} else {
		snprintf(out, TOOL_TEXT, "%" PRIu64 "/%u", r->window_peak, r->window);
	}
}

static void count(struct json *j, const char *key, const struct measure_result *r, uint64_t value)
{
	if (r->failed != NULL) {
		json_null(j, key);
	} else {
		json_uint(j, key, value);
	}
}

void measure_report_keys(struct json *j, const struct measure *m, const struct measure_result *r)
{
	json_string(j, "op", measure_op_name(r->op));
	json_string(j, "algorithm", r->algorithm);
	json_string(j, "permutation", r->permutation);
	measure_report_bool(j, "contention_aware", r->contention_aware);
	if (r->window == COLLNET_WINDOW_OFF || r->window == COLLNET_WINDOW_AUTO) {
		json_null(j, "window");
	} else {
		json_uint(j, "window", r->window);
	}
	count(j, "window_peak", r, r->window_peak);
	json_uint(j, "ranks", m->place.ranks);
	json_uint(j, "nodes", m->place.nodes);
	json_uint(j, "bytes_per_pair", r->bytes);
	json_uint(j, "iterations", r->iterations);
	times(j, "time_us", &r->ns);
	json_double(j, "limit_us", r->limit_us, 3);
	json_double(j, "efficiency", measure_efficiency(r), 4);
	count(j, "frames_sent", r, r->frames_sent);
	count(j, "frames_resent", r, r->frames_resent);
	json_double(j, "ack_bytes_share", r->ack_bytes_share, 5);
	json_double(j, "cpu_s_per_gib", r->cpu_s_per_gib, 3);
	measure_report_bool(j, "verified", r->verified);
	json_double(j, "bandwidth_mbit_per_node", r->bandwidth, 3);
	count(j, "ring_drops", r, r->ring_drops);
	json_double(j, m->direct ? "transport_rss_bytes" : "daemon_rss_bytes",
		    r->rss_bytes > 0 ? (double)r->rss_bytes : NAN, 0);
	if (isfinite(r->slowest_ns)) {
		json_double(j, "slowest_rank_us", r->slowest_ns / 1e3, 3);
	}
	if (r->op == MEASURE_PINGPONG) {
		json_double(j, "half_us", r->ns.median / 2e3, 3);
		times(j, "baseline_time_us", &r->baseline_ns);
		json_double(j, "baseline_ratio", r->baseline_ratio, 3);
	} else if (r->op == MEASURE_STREAM) {
		json_double(j, "frames_per_s", r->frames_per_s, 0);
		json_double(j, "baseline_frames_per_s", r->baseline_frames_per_s, 0);
		json_double(j, "baseline_ratio", r->baseline_ratio, 3);
	}
}

void measure_report_column(double value, int width, int decimals, const char *unit)
{
	char text[TOOL_TEXT];

	if (isfinite(value)) {
		snprintf(text, sizeof(text), "%.*f%s", decimals, value, unit);
	} else {
		snprintf(text, sizeof(text), "-");
	}
	printf(" %*s", width, text);
}

const char *measure_report_checked(const bool *verified)
{
	return verified == NULL ? "-" : *verified ? "right" : "WRONG";
}

/* ---- CSV ------------------------------------------------------------------------------ */

void measure_report_cell(FILE *f, double value)
{
	if (isfinite(value)) {
		fprintf(f, ",%.6g", value);
	} else {
		putc(',', f);
	}
}

const char measure_report_names[] =
	"op,algorithm,bytes_per_pair,median_us,min_us,p99_us,limit_us,efficiency,"
	"bandwidth_mbit_per_node,frames_sent,frames_resent,frames_per_s,baseline_ratio";

void measure_report_cells(FILE *f, const struct measure_result *r)
{
	fprintf(f, "%s,%s,%" PRIu64, measure_op_name(r->op),
		r->algorithm != NULL ? r->algorithm : "", r->bytes);
	measure_report_cell(f, r->ns.median / 1e3);
	measure_report_cell(f, r->ns.min / 1e3);
	measure_report_cell(f, r->ns.p99 / 1e3);
	measure_report_cell(f, r->limit_us);
	measure_report_cell(f, measure_efficiency(r));
	measure_report_cell(f, r->bandwidth);
	if (r->failed != NULL) {
		fputs(",,", f);
	} else {
		fprintf(f, ",%" PRIu64 ",%" PRIu64, r->frames_sent, r->frames_resent);
	}
	measure_report_cell(f, r->frames_per_s);
	measure_report_cell(f, r->baseline_ratio);
}

bool measure_report_written(bool ok, const char *where)
{
	if (!ok) {
		tool_complain("%s: %s", where, strerror(errno));
	}
	return ok;
}
