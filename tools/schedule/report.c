/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `collnet schedule` prints about a schedule: a summary, the same as JSON, and an explanation
 * in words. All numbers are the checker's, who counted them in the schedule itself, or the
 * selection's predictions.
 */
#include <inttypes.h>
#include <math.h>

#include "sched/alltoall/aapc.h"
#include "sched/planners.h"
#include "sched/select.h"
#include "tools/schedule/command.h"

#define LINK_TEXT 160

static const char *link_name(const struct subject *s, uint32_t dlink, char text[LINK_TEXT])
{
	if (dlink == CN_TOPO_NONE || s->tree->n < 2) {
		return "none";
	}
	return cn_tree_link_name(s->tree, dlink, text, LINK_TEXT);
}

/* Seconds that the data on the bottleneck link needs there; 0: its rate is not known. */
static double bottleneck_time(const struct subject *s, const struct cn_check_report *r)
{
	const struct cn_cost cost = cn_cost_of(&s->layout);
	const struct cn_topo_link *l;

	if (r->bottleneck == CN_TOPO_NONE || s->tree->n < 2) {
		return 0;
	}
	l = &s->topo->links[s->tree->v[r->bottleneck / 2].link];
	return l->rate == 0 ? 0 : cn_cost_wire(&cost, r->link_total / l->channels, l->rate);
}

static const char *seconds(double t, char text[TOOL_TEXT])
{
	return tool_format_ns(t < 1e9 ? (uint64_t)llround(t * 1e9) : UINT64_MAX, text);
}

static const char *encapsulation(const struct subject *s)
{
	return cn_encapsulation_name(s->encapsulation);
}

/* The predictions for all algorithms of the subject's operation; returns how many. */
static size_t predict(const struct subject *s, struct cn_prediction all[CN_ALGORITHMS_MAX])
{
	const struct cn_cost cost = cn_cost_of(&s->layout);

	return cn_predict(&s->layout, &s->plan, &cost, all);
}

/* The prediction for the subject's algorithm; false: there is none. */
static bool predicted(const struct subject *s, struct cn_prediction *out)
{
	struct cn_prediction all[CN_ALGORITHMS_MAX];
	size_t n = s->algorithm == NULL ? 0 : predict(s, all);

	for (size_t i = 0; i < n; i++) {
		if (all[i].algorithm == s->algorithm && all[i].seconds >= 0) {
			*out = all[i];
			return true;
		}
	}
	return false;
}

static const char *root_name(const struct subject *s)
{
	return cn_tree_node_name(s->tree, s->layout.node_of[s->plan.root]);
}

void schedule_summary(const struct subject *s, const struct cn_check_report *r, FILE *f)
{
	char text[LINK_TEXT], size[TOOL_TEXT], guarantees[EMIT_GUARANTEES_TEXT];
	struct cn_prediction p;

	fprintf(f, "operation         %s", cn_op_name(s->plan.op));
	if (s->plan.op != CN_OP_BARRIER) {
		fprintf(f, " of %s", tool_format_size(s->plan.bytes, size));
	}
	if (cn_op_has_root(s->plan.op)) {
		fprintf(f, ", root %s", root_name(s));
	}
	fprintf(f, "\nalgorithm         %s\n", s->name);
	fprintf(f, "hosts             %u\n", s->layout.nnodes);
	fprintf(f, "phases            %u", r->phases);
	if (r->bound > 0) {
		fprintf(f, " (lower bound%s %" PRIu64 ")",
			r->phases < r->bound ? " without contention" : "", r->bound);
	}
	fprintf(f, "\nmessages          %" PRIu64 "\n", r->messages);
	fprintf(f, "synchronisations  %" PRIu64 "\n", r->syncs);
	fprintf(f, "longest path      %u switch%s\n", r->longest_path,
		r->longest_path == 1 ? "" : "es");
	fprintf(f, "busiest link      %s, %u message%s in phase %u\n",
		link_name(s, r->busiest, text), r->link_load, r->link_load == 1 ? "" : "s",
		r->busiest_phase);
	fprintf(f, "bottleneck        %s, %" PRIu64 " bytes in all",
		link_name(s, r->bottleneck, text), r->link_total);
	if (bottleneck_time(s, r) > 0) {
		fprintf(f, ", %s", seconds(bottleneck_time(s, r), size));
	}
	fprintf(f, "\nguarantees        %s\n", emit_guarantees(s->guarantees, guarantees));
	if (predicted(s, &p)) {
		fprintf(f, "predicted time    %s (encapsulation %s)\n", seconds(p.seconds, size),
			encapsulation(s));
	}
}

static void json_predictions(struct json *j, const struct subject *s)
{
	struct cn_prediction all[CN_ALGORITHMS_MAX];
	size_t n = s->algorithm == NULL ? 0 : predict(s, all);

	json_array(j, "predictions");
	for (size_t i = 0; i < n; i++) {
		json_object(j, NULL);
		json_string(j, "algorithm", all[i].algorithm->name);
		if (all[i].seconds >= 0) {
			json_double(j, "seconds", all[i].seconds, 9);
		} else {
			json_null(j, "seconds");
		}
		json_string(j, "why", all[i].why);
		json_object_end(j);
	}
	json_array_end(j);
}

bool schedule_summary_json(const struct subject *s, const struct cn_check_report *r, bool checked,
			   const char *broken, FILE *f)
{
	char text[LINK_TEXT];
	struct json j;

	json_begin(&j, f);
	json_object(&j, NULL);
	json_string(&j, "op", cn_op_name(s->plan.op));
	json_string(&j, "algorithm", s->name);
	json_uint(&j, "hosts", s->layout.nnodes);
	json_uint(&j, "size", s->plan.bytes);
	json_string(&j, "encapsulation", encapsulation(s));
	json_string(&j, "root", cn_op_has_root(s->plan.op) ? root_name(s) : NULL);
	emit_json_guarantees(&j, s->guarantees);
	json_uint(&j, "phases", r->phases);
	if (r->bound > 0) {
		json_uint(&j, "bound", r->bound);
	} else {
		json_null(&j, "bound");
	}
	json_uint(&j, "messages", r->messages);
	json_uint(&j, "syncs", r->syncs);
	json_uint(&j, "longest_path", r->longest_path);
	json_string(&j, "busiest_link", link_name(s, r->busiest, text));
	json_uint(&j, "busiest_phase", r->busiest_phase);
	json_uint(&j, "link_load", r->link_load);
	json_string(&j, "bottleneck", link_name(s, r->bottleneck, text));
	json_uint(&j, "bottleneck_bytes", r->link_total);
	json_uint(&j, "unordered", r->unordered);
	if (checked) {
		json_bool(&j, "ok", broken == NULL);
	} else {
		json_null(&j, "ok");
	}
	json_string(&j, "broken", broken);
	json_predictions(&j, s);
	json_object_end(&j);
	return json_end(&j);
}

/* ---- in words ----------------------------------------------------------------------------- */

static void explain_tree(const struct subject *s, const char *source, FILE *f)
{
	const struct cn_topo *t = s->topo;
	uint32_t unused = cn_topo_unused(t), switches = 0;

	for (uint32_t i = 0; i < s->tree->n; i++) {
		switches += s->tree->v[i].node == CN_TOPO_NONE;
	}
	fprintf(f, "The network of %s has %u hosts, %u switch%s and %u links", source, t->nhosts,
		t->nvertices - t->nhosts, t->nvertices - t->nhosts == 1 ? "" : "es", t->nlinks);
	if (unused > 0) {
		fprintf(f,
			".\nIt has cycles: %u link%s not used; frames follow the breadth-first spanning "
			"tree\nfrom %s",
			unused, unused == 1 ? " is" : "s are", t->vertices[t->root].name);
	}
	fprintf(f,
		".\nThe team's %u hosts are connected by %u switch%s; the root of the tree is %s.\n",
		s->layout.nnodes, switches, switches == 1 ? "" : "es",
		t->vertices[s->tree->v[0].vertex].name);
	if (s->algorithm != NULL && s->algorithm->plan == cn_plan_alltoall_aapc) {
		fprintf(f,
			"The phases use the switch %s as root; none of its subtrees has more than\nhalf "
			"of the hosts.\n",
			t->vertices[cn_aapc_root(s->tree)].name);
	}
	if (cn_op_has_root(s->plan.op)) {
		fprintf(f, "The root is %s, rank %u.\n", root_name(s), s->plan.root);
	}
}

static void explain_phases(const struct cn_check_report *r, FILE *f)
{
	const char *of = r->one_block ? ", of messages of one block," : "";

	if (r->bound == 0) {
		fprintf(f, "There are %u phases.\n", r->phases);
	} else if (r->phases < r->bound && r->link_load > 1) {
		fprintf(f,
			"There are %u phases, in which messages share links; without sharing there "
			"would be at\nleast %" PRIu64 ".\n",
			r->phases, r->bound);
	} else if (r->phases == r->bound) {
		fprintf(f,
			"There are %u phases, which is the lower bound: no schedule without "
			"contention%s\nhas fewer.\n",
			r->phases, of);
	} else {
		fprintf(f, "There are %u phases; the lower bound%s is %" PRIu64 ".\n", r->phases,
			of, r->bound);
	}
}

static void explain_bound(const struct subject *s, const struct cn_check_report *r, FILE *f)
{
	char text[LINK_TEXT], time[TOOL_TEXT];

	if (r->bottleneck != CN_TOPO_NONE && r->link_total > 0) {
		const struct cn_tree_vertex *v = &s->tree->v[r->bottleneck / 2];

		fprintf(f, "The bottleneck is the link %s: ", link_name(s, r->bottleneck, text));
		if (v->node == CN_TOPO_NONE) {
			fprintf(f, "it separates %u of the hosts from the other %u, and\n",
				v->hosts, s->layout.nnodes - v->hosts);
		}
		fprintf(f, "%" PRIu64 " bytes cross it in this direction", r->link_total);
		if (bottleneck_time(s, r) > 0) {
			fprintf(f, ",\nwhich takes %s at its rate",
				seconds(bottleneck_time(s, r), time));
		}
		fprintf(f, ".\n");
	}
	explain_phases(r, f);
	fprintf(f, "The longest path of a message has %u switch%s. ", r->longest_path,
		r->longest_path == 1 ? "" : "es");
	if (r->link_load <= 1) {
		fprintf(f, "In no phase do two messages share\na link.\n");
	} else {
		fprintf(f, "At most %u messages share a link\nin one phase: %s in phase %u.\n",
			r->link_load, link_name(s, r->busiest, text), r->busiest_phase);
	}
	if (r->syncs > 0) {
		fprintf(f, "%" PRIu64 " empty messages keep the phases apart.\n", r->syncs);
	}
}

static void explain_choice(const struct subject *s, const struct schedule_options *o, FILE *f)
{
	struct cn_prediction all[CN_ALGORITHMS_MAX];
	size_t n = predict(s, all);
	char time[TOOL_TEXT];
	bool baselines = false;

	for (size_t i = 0; i < n; i++) {
		baselines = baselines || all[i].algorithm->baseline;
	}
	fprintf(f, "%s was %s. Predicted times of all, encapsulation %s%s:\n", s->name,
		o->algorithm != NULL ? "named by --algorithm" : "chosen by its predicted time",
		encapsulation(s), baselines ? " (+ are baselines, never chosen)" : "");
	for (size_t i = 0; i < n; i++) {
		fprintf(f, " %c %-14s %10s  %s\n",
			all[i].algorithm == s->algorithm ? '*'
			: all[i].algorithm->baseline	 ? '+'
							 : ' ',
			all[i].algorithm->name,
			all[i].seconds < 0 ? "-" : seconds(all[i].seconds, time), all[i].why);
	}
}

void schedule_explain(const struct subject *s, const struct schedule_options *o,
		      const struct cn_check_report *r, FILE *f)
{
	char size[TOOL_TEXT];

	fprintf(f, "%s", cn_op_name(s->plan.op));
	if (s->plan.op != CN_OP_BARRIER) {
		fprintf(f, " of %s", tool_format_size(s->plan.bytes, size));
	}
	fprintf(f, " by %s", s->name);
	if (s->algorithm != NULL) {
		fprintf(f, ": %s", s->algorithm->description);
	}
	fprintf(f, ".\n\n");
	explain_tree(s, schedule_source(o), f);
	fputc('\n', f);
	explain_bound(s, r, f);
	if (s->algorithm != NULL) {
		fputc('\n', f);
		explain_choice(s, o, f);
	}
}
