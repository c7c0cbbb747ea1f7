/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Effects of timed faults: the error of each rank, the host that it names, the time from the fault
 * to the error, and whether a new job worked afterwards.
 */
#include <inttypes.h>
#include <math.h>

#include "tools/sim/command.h"

static const char *next_text(const struct sim_outcome *out)
{
	switch (out->next) {
	case SIM_NEXT_RIGHT:
		return "right";
	case SIM_NEXT_FAILED:
		return out->next_why;
	case SIM_NEXT_NEVER:
		return "not attempted: a host is still down or a link still cut";
	default:
		return NULL;
	}
}

static const char *name_of(const struct cn_topo *t, uint32_t vertex)
{
	return vertex != CN_TOPO_NONE ? t->vertices[vertex].name : NULL;
}

/* Errors at hosts other than the one that had the fault. */
struct summary {
	uint32_t others, named; /* ...; those that name a host which had the fault */
	double first, last;	/* shortest and longest time to an error, us */
};

static struct summary summarise(const struct sim_outcome *out)
{
	struct summary s = { .first = NAN, .last = NAN };

	for (uint32_t i = 0; i < out->nerrors; i++) {
		const struct sim_error *e = &out->errors[i];
		double us = (double)e->after / 1e3;

		if (e->own || e->fault == SIM_NO_FAULT) {
			continue;
		}
		s.others++;
		s.named += e->faulted;
		s.first = !(us > s.first) ? us : s.first;
		s.last = !(us < s.last) ? us : s.last;
	}
	return s;
}

void sim_fault_json(struct json *j, const struct cn_topo *t, const struct sim_row *row)
{
	const struct sim_outcome *out = row->out;

	json_array(j, "faults");
	for (uint32_t i = 0; i < row->o->nfaults; i++) {
		const struct sim_fault_state *s = out->fault_states != NULL ? &out->fault_states[i]
									    : NULL;

		json_object(j, NULL);
		json_string(j, "fault", row->o->timed[i].text);
		json_bool(j, "began", s != NULL && s->began);
		json_bool(j, "host_was_running", s != NULL && s->host_was_running);
		json_object_end(j);
	}
	json_array_end(j);
	json_array(j, "errors");
	for (uint32_t i = 0; i < out->nerrors; i++) {
		const struct sim_error *e = &out->errors[i];
		bool known = e->fault != SIM_NO_FAULT;

		json_object(j, NULL);
		json_uint(j, "rank", e->rank);
		json_string(j, "node", name_of(t, e->host));
		json_string(j, "culprit", name_of(t, e->culprit));
		json_bool(j, "culprit_faulted", e->faulted);
		json_string(j, "fault", known ? row->o->timed[e->fault].text : NULL);
		json_double(j, "after_us", known ? (double)e->after / 1e3 : NAN, 3);
		json_string(j, "error", e->text);
		json_object_end(j);
	}
	json_array_end(j);
	json_string(j, "next_job", next_text(out));
}

const char sim_fault_names[] = ",ranks_failed,culprits_named,error_first_us,error_last_us,next_job";

void sim_fault_cells(FILE *f, const struct sim_outcome *out)
{
	static const char *const next[] = { [SIM_NEXT_NONE] = "",
					    [SIM_NEXT_RIGHT] = "right",
					    [SIM_NEXT_FAILED] = "failed",
					    [SIM_NEXT_NEVER] = "not attempted" };
	struct summary s = summarise(out);

	fprintf(f, ",%" PRIu32 ",%" PRIu32, out->nerrors, s.named);
	measure_report_cell(f, s.first);
	measure_report_cell(f, s.last);
	fprintf(f, ",%s", next[out->next]);
}

void sim_fault_table(const struct cn_topo *t, const struct sim_row *row)
{
	const struct sim_outcome *out = row->out;
	struct summary s = summarise(out);

	for (uint32_t i = 0; out->fault_states != NULL && i < row->o->nfaults; i++) {
		if (!out->fault_states[i].began) {
			printf("  fault '%s': the operation ended before it\n",
			       row->o->timed[i].text);
		} else if (out->fault_states[i].host_was_running) {
			printf("  fault '%s': no effect, the host was running\n",
			       row->o->timed[i].text);
		}
	}
	for (uint32_t i = 0; i < out->nerrors; i++) {
		const struct sim_error *e = &out->errors[i];

		printf("  rank %" PRIu32 " on %s: ", e->rank, name_of(t, e->host));
		if (e->fault != SIM_NO_FAULT) {
			printf("%.3f ms after '%s'", (double)e->after / 1e6,
			       row->o->timed[e->fault].text);
			if (e->culprit != CN_TOPO_NONE) {
				printf(", names %s", name_of(t, e->culprit));
			}
			printf(": ");
		}
		printf("%s\n", e->text);
	}
	if (out->nerrors > 0) {
		printf("  %" PRIu32 " rank%s failed", out->nerrors, out->nerrors == 1 ? "" : "s");
		if (s.others > 0) {
			printf(", %" PRIu32
			       " on other hosts %.3f to %.3f ms after the fault; %" PRIu32
			       " of these name a host with the fault",
			       s.others, s.first / 1e3, s.last / 1e3, s.named);
		}
		printf("\n  next job: %s\n", next_text(out));
	}
}
