/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside `collnet schedule`: what is scheduled, and the command line.
 *
 * command.c is the subcommand, options.c its command line, plan.c the team and its plan, read.c a
 * schedule from a file, report.c what is printed about one.
 */
#ifndef COLLNET_SCHEDULE_H
#define COLLNET_SCHEDULE_H

#include "tools/plan/check.h"
#include "tools/plan/emit.h"

/* A team with one rank per host, rank i and node i on the i-th of its hosts in the topology. */
struct subject {
	const struct cn_topo *topo; /* not owned */
	struct cn_tree *tree;
	struct cn_layout layout;
	enum cn_encapsulation encapsulation;
	struct cn_plan plan;
	const struct cn_algorithm *algorithm; /* NULL: the schedule is from a file */
	char name[COLLNET_NAME_MAX + 1];      /* of the algorithm */
	unsigned guarantees;
	uint32_t *numbers; /* what the layout points to */
};

/*
 * hosts[]: vertices of the topology, `n` of them. subject_done() frees what is there, also after
 * a failure. COLLNET_EINVAL: fewer than two, or too many.
 */
int subject_init(struct subject *s, const struct cn_topo *topo, const uint32_t *hosts, uint32_t n,
		 struct cn_err *err);
void subject_done(struct subject *s);
/* The team's node of that name; COLLNET_EINVAL: there is none. */
int subject_find(const struct subject *s, const char *name, uint32_t *node, struct cn_err *err);
/* All nodes' parts; parts[] is zeroed and of layout.nnodes. */
int subject_plan_all(const struct subject *s, struct cn_sched *parts, struct cn_err *err);
void subject_free_parts(const struct subject *s, struct cn_sched *parts);

/*
 * Plans (or takes parts[], where it is not NULL) node by node and runs the checker. The report is
 * filled in where the guarantees are broken, too: *checked is whether it was.
 */
int subject_check(const struct subject *s, const struct cn_sched *parts, unsigned guarantees,
		  struct cn_check_report *report, bool *checked, struct cn_err *err);

/* read.c: a schedule as --emit text writes it. `s` is made by it; *parts is allocated.
 * Errors are COLLNET_EINVAL with `name`, line and what was expected. */
int schedule_read(const char *path, const struct cn_topo *topo, struct subject *s,
		  struct cn_sched **parts, struct cn_err *err);
int schedule_parse(const char *text, size_t len, const char *name, const struct cn_topo *topo,
		   struct subject *s, struct cn_sched **parts, struct cn_err *err);

enum schedule_emit { EMIT_SUMMARY, EMIT_TEXT, EMIT_JSON, EMIT_DOT, EMIT_MPI };

struct schedule_options {
	enum cn_op_kind op;
	const char *algorithm; /* NULL: auto */
	const char *topology, *shape;
	const char *schedule;	 /* a file */
	const char *hosts;	 /* NULL: all */
	const char *root, *rank; /* as given: a name or a number */
	enum cn_encapsulation encapsulation;
	uint64_t size, segment;
	uint32_t phase;
	bool authenticated;
	bool phase_given, check, explain, json, size_given, seed_given, output_given;
	enum schedule_emit emit;
	const char *name; /* of the routine */
	const char *experiment, *output;
	const char *not_of_experiment; /* the first such option that was given, or NULL */
	uint64_t seed;
};

/* TOOL_OK, TOOL_USAGE after a complaint, or -1: help was asked for and given. */
int schedule_options_parse(struct schedule_options *o, int argc, char **argv);
/* The name of the network in messages: the file or the shape. */
const char *schedule_source(const struct schedule_options *o);

/* report.c; `broken`: NULL, or the checker's message. False: a write error. */
void schedule_summary(const struct subject *s, const struct cn_check_report *r, FILE *f);
bool schedule_summary_json(const struct subject *s, const struct cn_check_report *r, bool checked,
			   const char *broken, FILE *f);
void schedule_explain(const struct subject *s, const struct schedule_options *o,
		      const struct cn_check_report *r, FILE *f);

#endif
