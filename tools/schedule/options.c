/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of `collnet schedule`.
 */
#include <getopt.h>
#include <string.h>

#include "tools/papers/papers.h"
#include "tools/schedule/command.h"

static const char help_text[] =
	"usage: collnet schedule OPERATION (--topology FILE | --shape SHAPE) [OPTION...]\n"
	"       collnet schedule OPERATION --topology FILE --schedule FILE [OPTION...]\n"
	"       collnet schedule --experiment NAME [--seed N] [--output DIR]\n"
	"\n"
	"Plans a collective operation on a network, without one: who sends what to whom, and when.\n"
	"One rank a host, in the order of the topology. Without --emit, --check or --explain: a\n"
	"summary.\n"
	"\n"
	"operations: alltoall, allgather, barrier, bcast, scatter, gather\n"
	"\n"
	"what is planned:\n"
	"  --topology FILE       the network; - is standard input\n"
	"  --shape A or AxB      A hosts on one switch, or on each of B switches under a root\n"
	"  --hosts LIST|all      the team: a,b,c; all of the network's by default\n"
	"  --algorithm NAME      instead of the one that is predicted to be the fastest\n"
	"  --size BYTES          of a block (64k); for bcast of the message\n"
	"  --root HOST           of bcast, scatter and gather: a name or a rank (0)\n"
	"  --segment BYTES       of pipelined algorithms, instead of the cost model's choice\n"
	"  --schedule FILE       a schedule as --emit text writes it, instead of a planned one\n"
	"\n"
	"what is shown:\n"
	"  --check               proves the schedule; status 1 and a sentence where it is wrong\n"
	"  --explain             says in words what was chosen, and why\n"
	"  --emit text|json|dot  the schedule, or its drawing for Graphviz\n"
	"  --emit mpi-c          a C routine of MPI calls that does it\n"
	"  --name NAME           of that routine (collnet_OPERATION)\n"
	"  --rank RANK           only this rank's part: a name or a number\n"
	"  --phase N             which phase is drawn (0)\n"
	"  --json                summary, check and predictions as one JSON object\n"
	"\n"
	"experiments (writes DIR/NAME.csv, NAME.gp, and NAME.svg where gnuplot is installed):\n"
	"  --experiment NAME     one of those below, --seed N (1), --output DIR (.)\n";

enum {
	OPT_TOPOLOGY = 256,
	OPT_SHAPE,
	OPT_HOSTS,
	OPT_ALGORITHM,
	OPT_SIZE,
	OPT_ROOT,
	OPT_SEGMENT,
	OPT_SCHEDULE,
	OPT_CHECK,
	OPT_EXPLAIN,
	OPT_EMIT,
	OPT_NAME,
	OPT_RANK,
	OPT_PHASE,
	OPT_JSON,
	OPT_EXPERIMENT,
	OPT_SEED,
	OPT_OUTPUT,
};

static const struct option options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "topology", required_argument, NULL, OPT_TOPOLOGY },
	{ "shape", required_argument, NULL, OPT_SHAPE },
	{ "hosts", required_argument, NULL, OPT_HOSTS },
	{ "algorithm", required_argument, NULL, OPT_ALGORITHM },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "root", required_argument, NULL, OPT_ROOT },
	{ "segment", required_argument, NULL, OPT_SEGMENT },
	{ "schedule", required_argument, NULL, OPT_SCHEDULE },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ "explain", no_argument, NULL, OPT_EXPLAIN },
	{ "emit", required_argument, NULL, OPT_EMIT },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "rank", required_argument, NULL, OPT_RANK },
	{ "phase", required_argument, NULL, OPT_PHASE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "experiment", required_argument, NULL, OPT_EXPERIMENT },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ NULL, 0, NULL, 0 },
};

static int take_size(const char *text, uint64_t *out, struct cn_err *err)
{
	size_t n;

	return tool_parse_sizes(text, COLLNET_BLOCK_MAX, out, 1, &n, err);
}

static int take_emit(const char *text, enum schedule_emit *out, struct cn_err *err)
{
	static const char *const names[] = {
		[EMIT_TEXT] = "text", [EMIT_JSON] = "json", [EMIT_DOT] = "dot", [EMIT_MPI] = "mpi-c"
	};

	for (enum schedule_emit e = EMIT_TEXT; e <= EMIT_MPI; e++) {
		if (strcmp(text, names[e]) == 0) {
			*out = e;
			return COLLNET_OK;
		}
	}
	return cn_fail(err, COLLNET_EINVAL, "'%.40s' is none of text, json, dot, mpi-c", text);
}

/* Names that the routine's file, C or MPI has taken; those of MPI would also call themselves. */
static bool is_taken(const char *text)
{
	static const char *const taken[] = {
		"act",	    "auto",	"begin",    "break",	"case",	    "char",	"const",
		"continue", "default",	"do",	    "double",	"else",	    "enum",	"exit",
		"extern",   "first",	"float",    "for",	"forget",   "free",	"goto",
		"if",	    "inline",	"int",	    "length",	"long",	    "main",	"malloc",
		"own_comm", "place",	"post",	    "register", "restrict", "return",	"run_steps",
		"send_one", "short",	"signed",   "sizeof",	"static",   "steps",	"struct",
		"switch",   "typedef",	"union",    "unsigned", "void",	    "volatile", "while",
		"SEND",	    "FORWARD",	"RECV",	    "NOTE",	"AWAIT",    "WAIT",	"COPY",
		"TAG_DATA", "TAG_SYNC", "TAG_COPY", "RANKS",	"ROOT",	    "PIECES",	"WINDOW",
		"SENDS",    "NULL",
	};

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		if (strcmp(text, taken[i]) == 0) {
			return true;
		}
	}
	return strncmp(text, "MPI_", 4) == 0 || strncmp(text, "PMPI_", 5) == 0;
}

/* An identifier of C, not too long. */
static int take_name(const char *text, const char **out, struct cn_err *err)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char more[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
	size_t len = strlen(text);

	if (len == 0 || len > 60 || strspn(text, letters) == 0 || strspn(text, more) < len) {
		return cn_fail(err, COLLNET_EINVAL, "'%.60s' is not a name for a function of C",
			       text);
	}
	if (is_taken(text)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "'%.60s' is a name of C, of MPI or of the "
			       "routine's own; choose another, like cluster_alltoall",
			       text);
	}
	*out = text;
	return COLLNET_OK;
}

/* Options with a value that must be understood. */
static int take_value(struct schedule_options *o, int opt, char *arg, struct cn_err *err)
{
	switch (opt) {
	case OPT_SIZE:
		o->size_said = true;
		return take_size(arg, &o->size, err);
	case OPT_SEGMENT:
		return take_size(arg, &o->segment, err);
	case OPT_EMIT:
		return take_emit(arg, &o->emit, err);
	case OPT_NAME:
		return take_name(arg, &o->name, err);
	case OPT_PHASE:
		o->phase_said = true;
		return tool_parse_u32(arg, 0, UINT32_MAX, &o->phase, err);
	default: /* OPT_SEED */
		o->seed_said = true;
		return tool_parse_number(arg, 0, UINT64_MAX, &o->seed, err);
	}
}

static int take_option(void *into, int opt, char *arg, struct cn_err *err)
{
	struct schedule_options *o = into;

	switch (opt) {
	case OPT_TOPOLOGY:
		o->topology = arg;
		return COLLNET_OK;
	case OPT_SHAPE:
		o->shape = arg;
		return COLLNET_OK;
	case OPT_HOSTS:
		o->hosts = strcmp(arg, "all") == 0 ? NULL : arg;
		return COLLNET_OK;
	case OPT_ALGORITHM:
		o->algorithm = strcmp(arg, "auto") == 0 ? NULL : arg;
		return COLLNET_OK;
	case OPT_ROOT:
		o->root = arg;
		return COLLNET_OK;
	case OPT_SCHEDULE:
		o->schedule = arg;
		return COLLNET_OK;
	case OPT_CHECK:
		o->check = true;
		return COLLNET_OK;
	case OPT_EXPLAIN:
		o->explain = true;
		return COLLNET_OK;
	case OPT_RANK:
		o->rank = arg;
		return COLLNET_OK;
	case OPT_JSON:
		o->json = true;
		return COLLNET_OK;
	case OPT_EXPERIMENT:
		o->experiment = arg;
		return COLLNET_OK;
	case OPT_OUTPUT:
		o->output_said = true;
		o->output = arg;
		return COLLNET_OK;
	default:
		return take_value(o, opt, arg, err);
	}
}

const char *schedule_source(const struct schedule_options *o)
{
	if (o->topology == NULL) {
		return o->shape;
	}
	return strcmp(o->topology, "-") == 0 ? "standard input" : o->topology;
}

/* What does not go together. */
static int check_options(const struct schedule_options *o)
{
	char known[160];

	if ((o->topology == NULL) == (o->shape == NULL)) {
		return tool_usage("specify --shape (e.g. 8x4) or --topology FILE");
	}
	if (o->algorithm != NULL && o->schedule == NULL &&
	    cn_algorithm_find(o->op, o->algorithm) == NULL) {
		return tool_usage("%s has no algorithm '%.40s'; there are %s", cn_op_name(o->op),
				  o->algorithm, cn_algorithm_names(o->op, known, sizeof(known)));
	}
	if (o->schedule != NULL && (o->algorithm != NULL || o->hosts != NULL || o->root != NULL ||
				    o->rank != NULL || o->size_said || o->segment != 0)) {
		return tool_usage("--schedule FILE says itself which hosts, root and sizes: drop "
				  "--algorithm, --hosts, --root, --rank, --size and --segment");
	}
	if (o->root != NULL && !cn_op_has_root(o->op)) {
		return tool_usage("--root: %s has no root", cn_op_name(o->op));
	}
	if (o->segment != 0 && o->op != CN_OP_BCAST) {
		return tool_usage("--segment: only a bcast is cut in segments, not %s",
				  cn_op_name(o->op));
	}
	if (o->size_said && o->op == CN_OP_BARRIER) {
		return tool_usage("--size: a barrier carries nothing");
	}
	if (o->seed_said || o->output_said) {
		return tool_usage("--seed and --output go with --experiment");
	}
	if (o->rank != NULL && (o->check || o->explain || o->emit == EMIT_MPI)) {
		return tool_usage("--rank shows the part of one rank, and --check, --explain and "
				  "--emit mpi-c need everyone's");
	}
	if (o->phase_said && o->emit != EMIT_DOT) {
		return tool_usage("--phase goes with --emit dot");
	}
	if (o->name != NULL && o->emit != EMIT_MPI) {
		return tool_usage("--name goes with --emit mpi-c");
	}
	if (o->emit != EMIT_SUMMARY && (o->json || o->explain)) {
		return tool_usage("--emit writes the schedule; --json and --explain go without it");
	}
	return TOOL_OK;
}

/* The operation's name, the only word that is no option. */
static int take_operation(struct schedule_options *o, int argc, char **argv)
{
	if (optind == argc) {
		return tool_usage("no operation given; there are alltoall, allgather, barrier, "
				  "bcast, scatter, gather");
	}
	if (!cn_op_find(argv[optind], &o->op)) {
		return tool_usage("there is no operation '%.40s'; there are alltoall, allgather, "
				  "barrier, bcast, scatter, gather",
				  argv[optind]);
	}
	return optind + 1 < argc ? tool_usage("unexpected argument '%.40s'", argv[optind + 1])
				 : TOOL_OK;
}

int schedule_options_parse(struct schedule_options *o, int argc, char **argv)
{
	int rc;

	memset(o, 0, sizeof(*o));
	o->size = 65536;
	o->seed = 1;
	o->output = ".";
	rc = tool_options(argc, argv, options, take_option, o);
	if (rc < 0) {
		fputs(help_text, stdout);
		experiment_list(EXPERIMENT_PLANNED, stdout);
	}
	if (rc != TOOL_OK) {
		return rc;
	}
	if (o->experiment != NULL) {
		return optind < argc ? tool_usage("--experiment takes no operation") : TOOL_OK;
	}
	rc = take_operation(o, argc, argv);
	return rc == TOOL_OK ? check_options(o) : rc;
}
