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
	"       collnet schedule OPERATION --schedule FILE (--topology FILE | --shape SHAPE)\n"
	"           [OPTION...]\n"
	"       collnet schedule --experiment NAME [--seed N] [--output DIR]\n"
	"\n"
	"Plans a collective operation, without using a network: which host sends which data to which\n"
	"host, and when. There is one rank per host, in the order of the topology. Prints a summary,\n"
	"unless --emit, --explain or --rank is given.\n"
	"\n"
	"operations: alltoall, allgather, barrier, bcast, scatter, gather, allreduce, reduce,\n"
	"reduce_scatter, scan, exscan (of commutative reductions)\n"
	"\n"
	"what to plan:\n"
	"  --topology FILE       the network; - is standard input\n"
	"  --shape A or AxB      A hosts on one switch, or on each of B switches under a root\n"
	"  --hosts LIST|all      the team: a,b,c (all)\n"
	"  --algorithm NAME      algorithm (the predicted fastest)\n"
	"  --size BYTES          bytes per block; of the message for bcast and reductions (64k)\n"
	"  --root HOST           root of bcast, scatter, gather and reduce: a name or a rank (0)\n"
	"  --encapsulation udp|tcp|raw  of the frames, for predicted times (udp)\n"
	"  --authenticated       frames have a tag, as in a cluster with a key\n"
	"  --segment BYTES       with bcast: segment size of pipelined algorithms (by the cost model)\n"
	"  --schedule FILE       read a schedule, as --emit text writes it, instead of planning\n"
	"\n"
	"what to show:\n"
	"  --check               prove the schedule; if it is wrong, print why and exit with 1\n"
	"  --explain             explain the choice of the algorithm\n"
	"  --emit text|json|dot  print the schedule, or a drawing for Graphviz\n"
	"  --emit mpi-c          print a C routine of MPI calls that performs it\n"
	"  --name NAME           name of that routine (collnet_OPERATION)\n"
	"  --rank RANK           only this rank's part: a name or a number\n"
	"  --phase N             phase to draw (0)\n"
	"  --json                print summary, check and predictions as one JSON object\n"
	"  --help                print this text\n"
	"\n"
	"experiments (write DIR/NAME.csv, NAME.gp, and NAME.svg if gnuplot is installed):\n"
	"  --experiment NAME     one of those below, --seed N (1), --output DIR (.)\n";

enum {
	OPT_TOPOLOGY = 256,
	OPT_SHAPE,
	OPT_HOSTS,
	OPT_ALGORITHM,
	OPT_SIZE,
	OPT_ROOT,
	OPT_SEGMENT,
	OPT_ENCAPSULATION,
	OPT_AUTHENTICATED,
	OPT_SCHEDULE,
	OPT_CHECK,
	OPT_EXPLAIN,
	OPT_EMIT,
	OPT_NAME,
	OPT_RANK,
	OPT_PHASE,
	OPT_JSON,
	OPT_EXPERIMENT, /* from here on: options that an experiment takes */
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
	{ "encapsulation", required_argument, NULL, OPT_ENCAPSULATION },
	{ "authenticated", no_argument, NULL, OPT_AUTHENTICATED },
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

static int parse_size(const char *text, uint64_t *out, struct cn_err *err)
{
	size_t n;

	return tool_parse_sizes(text, COLLNET_BLOCK_MAX, out, 1, &n, err);
}

static int parse_emit(const char *text, enum schedule_emit *out, struct cn_err *err)
{
	static const char *const names[] = { "text", "json", "dot", "mpi-c", NULL };
	uint32_t i;
	int rc = tool_parse_name(text, names, &i, err);

	*out = rc == COLLNET_OK ? (enum schedule_emit)(EMIT_TEXT + i) : *out;
	return rc;
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
static int parse_name(const char *text, const char **out, struct cn_err *err)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char more[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
	size_t len = strlen(text);

	if (len == 0 || len > 60 || strspn(text, letters) == 0 || strspn(text, more) < len) {
		return cn_fail(err, COLLNET_EINVAL, "'%.60s' is not a valid name of a C function",
			       text);
	}
	if (is_taken(text)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "'%.60s' is a name of C, of MPI or of the "
			       "routine; choose another, such as cluster_alltoall",
			       text);
	}
	*out = text;
	return COLLNET_OK;
}

/* Options with a value that must be understood. */
static int parse_value(struct schedule_options *o, int opt, char *arg, struct cn_err *err)
{
	switch (opt) {
	case OPT_SIZE:
		o->size_given = true;
		return parse_size(arg, &o->size, err);
	case OPT_SEGMENT:
		return parse_size(arg, &o->segment, err);
	case OPT_ENCAPSULATION:
		return tool_parse_encapsulation(arg, &o->encapsulation, err);
	case OPT_AUTHENTICATED:
		o->authenticated = true;
		return COLLNET_OK;
	case OPT_EMIT:
		return parse_emit(arg, &o->emit, err);
	case OPT_NAME:
		return parse_name(arg, &o->name, err);
	case OPT_PHASE:
		o->phase_given = true;
		return tool_parse_u32(arg, 0, UINT32_MAX, &o->phase, err);
	default: /* OPT_SEED */
		o->seed_given = true;
		return tool_parse_number(arg, 0, UINT64_MAX, &o->seed, err);
	}
}

static int parse_option(void *into, int opt, char *arg, struct cn_err *err)
{
	struct schedule_options *o = into;

	if (o->not_of_experiment == NULL && opt < OPT_EXPERIMENT) {
		o->not_of_experiment = tool_option_name(options, opt);
	}
	switch (opt) {
	case OPT_TOPOLOGY:
		o->topology = arg;
		return COLLNET_OK;
	case OPT_SHAPE:
		o->shape = arg;
		return COLLNET_OK;
	case OPT_HOSTS:
		o->hosts = strcmp(arg, "all") == 0 ? NULL : arg;
		return tool_check_list(arg, err);
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
		o->output_given = true;
		o->output = arg;
		return COLLNET_OK;
	default:
		return parse_value(o, opt, arg, err);
	}
}

const char *schedule_source(const struct schedule_options *o)
{
	if (o->topology == NULL) {
		return o->shape;
	}
	return strcmp(o->topology, "-") == 0 ? "standard input" : o->topology;
}

/* Conflicting options. */
static int check_options(const struct schedule_options *o)
{
	char known[160];

	if ((o->topology == NULL) == (o->shape == NULL)) {
		return tool_usage("%s", tool_network_fault(o->shape != NULL));
	}
	if (o->algorithm != NULL && o->schedule == NULL &&
	    cn_algorithm_find(o->op, o->algorithm) == NULL) {
		return tool_usage("unknown algorithm '%.40s' for %s; there are %s", o->algorithm,
				  cn_op_name(o->op),
				  cn_algorithm_names(o->op, known, sizeof(known)));
	}
	if (o->schedule != NULL && (o->algorithm != NULL || o->hosts != NULL || o->root != NULL ||
				    o->rank != NULL || o->size_given || o->segment != 0)) {
		return tool_usage("--schedule FILE specifies hosts, root and sizes itself: drop "
				  "--algorithm, --hosts, --root, --rank, --size and --segment");
	}
	if (o->root != NULL && !cn_op_has_root(o->op)) {
		return tool_usage("--root: %s has no root", cn_op_name(o->op));
	}
	if (o->segment != 0 && o->op != CN_OP_BCAST) {
		return tool_usage("--segment: only bcast has segments, not %s", cn_op_name(o->op));
	}
	if (o->size_given && o->op == CN_OP_BARRIER) {
		return tool_usage("--size: a barrier carries no data");
	}
	if (o->seed_given || o->output_given) {
		return tool_usage("--seed and --output go with --experiment");
	}
	if (cn_op_reduces(o->op) && (o->schedule != NULL || o->emit == EMIT_MPI)) {
		return tool_usage("%s: schedules of reductions, as of %s, are only written, as "
				  "text, json or dot",
				  o->schedule != NULL ? "--schedule" : "--emit mpi-c",
				  cn_op_name(o->op));
	}
	if (o->rank != NULL && (o->check || o->explain || o->json || o->emit == EMIT_MPI)) {
		return tool_usage("--rank shows the part of one rank, with --emit json as JSON; "
				  "--check, --explain, --json and --emit mpi-c need all parts");
	}
	if (o->json && o->explain) {
		return tool_usage("--explain is text: drop --json");
	}
	if (o->phase_given && o->emit != EMIT_DOT) {
		return tool_usage("--phase requires --emit dot");
	}
	if (o->name != NULL && o->emit != EMIT_MPI) {
		return tool_usage("--name requires --emit mpi-c");
	}
	if (o->emit != EMIT_SUMMARY && (o->json || o->explain)) {
		return tool_usage("--emit excludes --json and --explain");
	}
	return TOOL_OK;
}

/* "alltoall, allgather, ..." */
static const char *operations(char *out, size_t size)
{
	out[0] = '\0';
	for (int op = CN_OP_ALLTOALL; op < CN_OP_KINDS; op++) {
		if (!cn_op_is_vector((enum cn_op_kind)op)) {
			tool_list(out, size, cn_op_name((enum cn_op_kind)op));
		}
	}
	return out;
}

/* The operation's name, the only word that is no option. */
static int parse_operation(struct schedule_options *o, int argc, char **argv)
{
	char known[160];

	if (optind == argc) {
		return tool_usage("no operation given; there are %s",
				  operations(known, sizeof(known)));
	}
	if (!cn_op_find(argv[optind], &o->op) || cn_op_is_vector(o->op)) {
		return tool_usage("unknown operation '%.40s'; there are %s", argv[optind],
				  operations(known, sizeof(known)));
	}
	return optind + 1 < argc ? tool_usage("unexpected argument '%.40s'", argv[optind + 1])
				 : TOOL_OK;
}

int schedule_options_parse(struct schedule_options *o, int argc, char **argv)
{
	int rc;

	memset(o, 0, sizeof(*o));
	o->encapsulation = CN_ENCAPSULATION_DEFAULT;
	o->size = 65536;
	o->seed = 1;
	o->output = ".";
	rc = tool_options(argc, argv, options, parse_option, o);
	if (rc < 0) {
		fputs(help_text, stdout);
		experiment_list(EXPERIMENT_PLANNED, stdout);
	}
	if (rc != TOOL_OK) {
		return rc;
	}
	if (o->experiment != NULL) {
		if (optind < argc) {
			return tool_usage("--experiment has no operation");
		}
		return o->not_of_experiment == NULL
			       ? TOOL_OK
			       : tool_usage(
					 "--experiment has its own networks, sizes and algorithms "
					 "and takes only --seed and --output, not --%s",
					 o->not_of_experiment);
	}
	rc = parse_operation(o, argc, argv);
	return rc == TOOL_OK ? check_options(o) : rc;
}
