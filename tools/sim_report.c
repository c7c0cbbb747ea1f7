/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of the simulator: the benchmark's, with what only a simulator sees (where frames were
 * lost, how long queues were) and what the equations say; and a closing line for who plans.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/sim.h"

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
		      const struct sim_spot *s)
{
	if (s->at == CN_TOPO_NONE) {
		json_null(j, key);
		return;
	}
	json_object(j, key);
	json_string(j, "switch", t->vertices[s->at].name);
	json_string(j, "peer", t->vertices[s->peer].name);
	json_uint(j, "frames", s->count);
	json_object_end(j);
}

static bool report_json(const struct bench *b, const struct sim_row *row)
{
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	bench_report_keys(&j, b, row->r);
	json_uint(&j, "drops", row->out->drops);
	json_uint(&j, "lost_by_faults", row->out->lost);
	json_uint(&j, "peak_queue", row->out->longest.count);
	spot_json(&j, "longest_queue", b->topo, &row->out->longest);
	spot_json(&j, "most_drops", b->topo, &row->out->worst_drops);
	json_double(&j, "eq2_us", row->model->eq2, 3);
	json_double(&j, "eq6_us", row->model->eq6, 3);
	json_double(&j, "eq7_us", row->model->eq7, 3);
	json_double(&j, "predicted_us", row->predicted_us, 3);
	json_double(&j, "of_best", of_best(row), 4);
	json_uint(&j, "frame_events", row->out->frame_events);
	json_object_end(&j);
	return json_end(&j);
}

static bool report_csv(const struct bench *b, const struct sim_row *row)
{
	FILE *f = b->csv;

	if (!b->header) {
		fprintf(f, "%s,drops,lost_by_faults,peak_queue,eq2_us,eq6_us,eq7_us,predicted_us,"
			"of_best\n", bench_report_names);
	}
	bench_report_cells(f, row->r);
	fprintf(f, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, row->out->drops, row->out->lost,
		row->out->longest.count);
	bench_report_cell(f, row->model->eq2);
	bench_report_cell(f, row->model->eq6);
	bench_report_cell(f, row->model->eq7);
	bench_report_cell(f, row->predicted_us);
	bench_report_cell(f, of_best(row));
	putc('\n', f);
	return fflush(f) == 0 && !ferror(f);
}

/* ---- the table ------------------------------------------------------------------------ */

static void header(const struct bench *b)
{
	printf("%s, %u ranks on %u simulated nodes, seed %" PRIu64 "; times are virtual\n",
	       bench_op_name(b->o->op), b->ranks, b->place.nodes, b->o->seed);
	printf("%8s %-13s %-11s %-3s %7s %10s %11s %7s %9s %7s %6s %7s %7s %5s %10s %10s %10s %6s\n",
	       "size", "algorithm", "permutation", "CA", "window", "median ms", "Mbit/s/node",
	       "% limit", "frames", "resent", "acks", "checked", "drops", "peak", "Eq.2/6 ms",
	       "Eq.7 ms", "model ms", "% best");
}

static bool report_table(const struct bench *b, const struct sim_row *row)
{
	const struct bench_result *r = row->r;
	char size[TOOL_TEXT], window[TOOL_TEXT] = "off";

	if (!b->header) {
		header(b);
	}
	if (r->window != COLLNET_WINDOW_OFF) {
		snprintf(window, sizeof(window), "%" PRIu64 "/%u", r->window_peak, r->window);
	}
	printf("%8s %-13s %-11s %-3s %7s", tool_format_size(r->bytes, size), r->algorithm,
	       r->permutation != NULL ? r->permutation : "-", *r->contention_aware ? "on" : "off",
	       window);
	bench_report_column(r->ns.median / 1e6, 10, 3, "");
	bench_report_column(r->bandwidth > 0 ? r->bandwidth : NAN, 11, 2, "");
	bench_report_column(bench_efficiency(r) * 100, 7, 1, "");
	printf(" %9" PRIu64 " %7" PRIu64, r->frames_sent, r->frames_resent);
	bench_report_column(r->ack_bytes_share * 100, 6, 2, "%");
	printf(" %7s %7" PRIu64 " %5" PRIu64,
	       r->verified == NULL ? "-" : *r->verified ? "right" : "WRONG", row->out->drops,
	       row->out->longest.count);
	bench_report_column(equation(row) / 1e3, 10, 3, "");
	bench_report_column(row->model->eq7 / 1e3, 10, 3, "");
	bench_report_column(row->predicted_us / 1e3, 10, 3, "");
	bench_report_column(of_best(row) * 100, 6, 1, "");
	putchar('\n');
	return fflush(stdout) == 0 && !ferror(stdout);
}

bool sim_report(struct bench *b, const struct sim_row *row)
{
	bool ok = bench_report_written(b->o->json ? report_json(b, row) : report_table(b, row),
				       "standard output");

	if (b->csv != NULL) {
		ok = bench_report_written(report_csv(b, row), b->o->csv) && ok;
	}
	b->header = true;
	return ok;
}

/* ---- the closing line ----------------------------------------------------------------- */

static void print_losses(const struct cn_topo *t, const struct sim_outcome *out)
{
	const struct sim_spot *d = &out->worst_drops, *q = &out->longest;

	if (out->drops > 0 && d->at != CN_TOPO_NONE) {
		printf("; full queues lost %" PRIu64 " frames, most of them (%" PRIu64 ") at %s, "
		       "port to %s", out->drops, d->count, t->vertices[d->at].name,
		       t->vertices[d->peer].name);
	} else if (q->at != CN_TOPO_NONE) {
		printf("; no queue overflowed, the longest was %" PRIu64, q->count);
		if (q->room > 0) {
			printf(" of %u", q->room);
		}
		printf(" frames, at %s, port to %s", t->vertices[q->at].name,
		       t->vertices[q->peer].name);
	}
	if (out->ring_drops > 0) {
		printf("; hosts' receive rings lost %" PRIu64, out->ring_drops);
	}
	if (out->lost > 0) {
		printf("; faults took %" PRIu64, out->lost);
	}
}

void sim_report_end(const struct bench *b, const struct sim_row *last)
{
	const struct bench_result *r = last->r;
	char size[TOOL_TEXT], time[TOOL_TEXT];

	printf("\n%u nodes: %s", b->place.nodes, bench_op_name(r->op));
	if (r->op != BENCH_BARRIER) {
		printf(" of %s", tool_format_size(r->bytes, size));
	}
	printf(" by %s takes %s", r->algorithm,
	       tool_format_ns((uint64_t)(r->ns.median + 0.5), time));
	if (isfinite(last->model->best)) {
		printf(", %.0f %% of the best that these links allow (%s)", of_best(last) * 100,
		       tool_format_ns((uint64_t)(last->model->best * 1e3), time));
	}
	print_losses(b->topo, last->out);
	printf(".\n");
}
