/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of the simulator: those of the benchmark, drops and queue lengths by port, the times of
 * the equations, and a summary of the largest size.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/sim/command.h"

/* Eq. 6 is pairwise exchange's, Eq. 2 everything else's. */
static double equation(const struct sim_row *row)
{
	return strcmp(row->r->algorithm, "pairwise") == 0 ? row->model->eq6 : row->model->eq2;
}

static double of_best(const struct sim_row *row)
{
	return row->model->best / (row->r->ns.median / 1e3);
}

/* ---- JSON and CSV --------------------------------------------------------------------- */

static void spot_json(struct json *j, const char *key, const struct cn_topo *t,
		      const struct sim_row *row, const struct sim_spot *s)
{
	if (row->r->failed != NULL || s->at == CN_TOPO_NONE) {
		json_null(j, key);
		return;
	}
	json_object(j, key);
	json_string(j, "switch", t->vertices[s->at].name);
	json_string(j, "peer", t->vertices[s->peer].name);
	json_bool(j, "input", s->input);
	json_uint(j, "frames", s->count);
	json_object_end(j);
}

static void count_json(struct json *j, const char *key, const struct sim_row *row, uint64_t value)
{
	if (row->r->failed != NULL) {
		json_null(j, key);
	} else {
		json_uint(j, key, value);
	}
}

static bool report_json(const struct measure *m, const struct sim_row *row)
{
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	measure_report_keys(&j, m, row->r);
	count_json(&j, "drops", row, row->out->drops);
	count_json(&j, "lost_by_faults", row, row->out->lost);
	count_json(&j, "peak_queue", row, row->out->longest.count);
	spot_json(&j, "longest_queue", m->place.topo, row, &row->out->longest);
	spot_json(&j, "most_drops", m->place.topo, row, &row->out->worst_drops);
	json_double(&j, "eq2_us", row->model->eq2, 3);
	json_double(&j, "eq6_us", row->model->eq6, 3);
	json_double(&j, "eq7_us", row->model->eq7, 3);
	json_double(&j, "predicted_us", row->predicted_us, 3);
	json_double(&j, "of_best", of_best(row), 4);
	count_json(&j, "frame_events", row, row->out->frame_events);
	json_string(&j, "error", row->r->failed);
	if (row->o->nfaults > 0) {
		sim_fault_json(&j, m->place.topo, row);
	}
	json_object_end(&j);
	return json_end(&j);
}

static bool report_csv(const struct measure *m, const struct sim_row *row)
{
	FILE *f = m->csv;

	if (!m->header) {
		fprintf(f,
			"%s,drops,lost_by_faults,peak_queue,eq2_us,eq6_us,eq7_us,predicted_us,"
			"of_best%s\n",
			measure_report_names, row->o->nfaults > 0 ? sim_fault_names : "");
	}
	measure_report_cells(f, row->r);
	if (row->r->failed != NULL) {
		fputs(",,,", f);
	} else {
		fprintf(f, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, row->out->drops, row->out->lost,
			row->out->longest.count);
	}
	measure_report_cell(f, row->model->eq2);
	measure_report_cell(f, row->model->eq6);
	measure_report_cell(f, row->model->eq7);
	measure_report_cell(f, row->predicted_us);
	measure_report_cell(f, of_best(row));
	if (row->o->nfaults > 0) {
		sim_fault_cells(f, row->out);
	}
	putc('\n', f);
	return fflush(f) == 0 && !ferror(f);
}

/* ---- the table ------------------------------------------------------------------------ */

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* A count of a case that did not fail. */
static void count_column(const struct sim_row *row, uint64_t value, int width)
{
	char text[TOOL_TEXT] = "-";

	if (row->r->failed == NULL) {
		snprintf(text, sizeof(text), "%" PRIu64, value);
	}
	printf(" %*s", width, text);
}

static const char *checked_text(const struct measure_result *r)
{
	if (r->failed != NULL) {
		return "failed";
	}
	return r->verified == NULL ? "-" : *r->verified ? "right" : "WRONG";
}

static void header(const struct measure *m)
{
	printf("%s, %u rank%s on %u simulated node%s, seed %" PRIu64 "; times are virtual\n",
	       measure_op_name(m->o->op), m->place.ranks, plural(m->place.ranks), m->place.nodes,
	       plural(m->place.nodes), m->o->seed);
	printf("%8s %-13s %-11s %-3s %7s %10s %11s %7s %9s %7s %6s %7s %7s %5s %10s %10s %10s %6s\n",
	       "size", "algorithm", "permutation", "CA", "window", "median ms", "Mbit/s/node",
	       "% limit", "frames", "resent", "acks", "checked", "drops", "peak", "Eq.2/6 ms",
	       "Eq.7 ms", "model ms", "% best");
}

static bool report_table(const struct measure *m, const struct sim_row *row)
{
	const struct measure_result *r = row->r;
	char size[TOOL_TEXT], window[TOOL_TEXT];

	if (!m->header) {
		header(m);
	}
	if (r->failed != NULL) {
		snprintf(window, sizeof(window), "-");
	} else {
		measure_report_window(r, window);
	}
	printf("%8s %-13s %-11s %-3s %7s", tool_format_size(r->bytes, size), r->algorithm,
	       r->permutation != NULL ? r->permutation : "-", *r->contention_aware ? "on" : "off",
	       window);
	measure_report_column(r->ns.median / 1e6, 10, 3, "");
	measure_report_column(r->bandwidth > 0 ? r->bandwidth : NAN, 11, 2, "");
	measure_report_column(measure_efficiency(r) * 100, 7, 1, "");
	count_column(row, r->frames_sent, 9);
	count_column(row, r->frames_resent, 7);
	measure_report_column(r->ack_bytes_share * 100, 6, 2, "%");
	printf(" %7s", checked_text(r));
	count_column(row, row->out->drops, 7);
	count_column(row, row->out->longest.count, 5);
	measure_report_column(equation(row) / 1e3, 10, 3, "");
	measure_report_column(row->model->eq7 / 1e3, 10, 3, "");
	measure_report_column(row->predicted_us / 1e3, 10, 3, "");
	measure_report_column(of_best(row) * 100, 6, 1, "");
	putchar('\n');
	if (row->o->nfaults > 0) {
		sim_fault_table(m->place.topo, row);
	}
	return fflush(stdout) == 0 && !ferror(stdout);
}

bool sim_report(struct measure *m, const struct sim_row *row)
{
	bool ok = measure_report_written(m->o->json ? report_json(m, row) : report_table(m, row),
					 "standard output");

	if (m->csv != NULL) {
		ok = measure_report_written(report_csv(m, row), m->o->csv) && ok;
	}
	m->header = true;
	return ok;
}

/* ---- the summary ---------------------------------------------------------------------- */

/* "port to s0", or for the queue of an input port "port from s0". */
static void print_port(const struct cn_topo *t, const struct sim_spot *s)
{
	printf("port %s %s", s->input ? "from" : "to", t->vertices[s->peer].name);
}

/* No queue overflowed: how long the longest was. */
static void print_longest(const struct cn_topo *t, const struct sim_spot *q)
{
	const char *at = t->vertices[q->at].name;

	if (q->room == 0) {
		printf("; buffers at %s are unlimited, and its longest queue was %" PRIu64
		       " frame%s, ",
		       at, q->count, plural(q->count));
	} else if (q->shared) {
		printf("; no queue overflowed, the longest was %" PRIu64 " of %" PRIu32
		       " frames of %s's memory, ",
		       q->count, q->room, at);
	} else {
		printf("; no queue overflowed, the longest was %" PRIu64 " of %" PRIu32
		       " frame%s, at %s, ",
		       q->count, q->room, plural(q->room), at);
	}
	print_port(t, q);
}

static void print_losses(const struct cn_topo *t, const struct sim_row *row)
{
	const struct sim_outcome *out = row->out;
	const struct sim_spot *d = &out->worst_drops, *q = &out->longest;

	if (out->drops > 0 && d->at != CN_TOPO_NONE) {
		printf("; full queues dropped %" PRIu64 " frame%s, most of them (%" PRIu64
		       ") at %s, ",
		       out->drops, plural(out->drops), d->count, t->vertices[d->at].name);
		print_port(t, d);
	} else if (q->at != CN_TOPO_NONE) {
		print_longest(t, q);
	}
	if (out->ring_drops > 0) {
		printf("; receive rings of hosts dropped %" PRIu64, out->ring_drops);
	}
	if (out->lost > 0) {
		printf("; faults dropped %" PRIu64, out->lost);
	}
}

/* Why an operation without drops took longer than necessary. */
static void print_hints(const struct cn_topo *t, const struct sim_row *row)
{
	const struct measure_result *r = row->r;
	uint32_t assumed = cn_topo_assumed_buffer(t);

	if (row->out->drops > 0 || row->out->ring_drops > 0 || row->out->lost > 0) {
		return;
	}
	if (r->frames_resent > 0) {
		printf("; no frame was dropped, but %" PRIu64 " %s retransmitted", r->frames_resent,
		       r->frames_resent == 1 ? "was" : "were");
	} else if (r->window != COLLNET_WINDOW_OFF && r->window_peak == r->window &&
		   of_best(row) < 0.9) {
		printf("; the window of %u frame%s", r->window, plural(r->window));
		if (row->o->measure.window == COLLNET_WINDOW_AUTO && assumed > 0) {
			printf(", for an assumed buffer of %u frames per port,", assumed);
		} else if (row->o->measure.window == COLLNET_WINDOW_AUTO) {
			printf(", which the buffers allow,");
		}
		printf(" limits it (--window sets another)");
	}
}

static void print_share(double of)
{
	if (of < 0.005) {
		printf(", <1 %%");
	} else {
		printf(", %.0f %%", of * 100);
	}
}

void sim_report_end(const struct measure *m, const struct sim_row *best, uint32_t rivals)
{
	const struct measure_result *r = best->r;
	char size[TOOL_TEXT], time[TOOL_TEXT];

	printf("\n%u node%s: %s", m->place.nodes, plural(m->place.nodes), measure_op_name(r->op));
	if (r->op != MEASURE_BARRIER) {
		printf(" of %s", tool_format_size(r->bytes, size));
	}
	tool_format_ns((uint64_t)(r->ns.median + 0.5), time);
	if (rivals > 1) {
		/* others may take just as long */
		printf("; of %u algorithms none is faster than %s, which takes %s", rivals,
		       r->algorithm, time);
	} else {
		printf(" by %s takes %s", r->algorithm, time);
	}
	if (isfinite(best->model->best)) {
		print_share(of_best(best));
		printf(" of the best time that these links allow (%s)",
		       tool_format_ns((uint64_t)(best->model->best * 1e3), time));
	}
	print_losses(m->place.topo, best);
	print_hints(m->place.topo, best);
	printf(".\n");
}
