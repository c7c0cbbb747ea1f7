/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of `collnet sim`.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tools/papers/papers.h"
#include "tools/sim/command.h"
#include "tools/sim/parse.h"

#define BUFFER_DEFAULT	      43u /* those of the lab, and of Tam and Wang */
#define UPLINK_BUFFER_DEFAULT 45u
#define LOCAL_MAX	      1024u
#define DUPLICATE_MAX	      100000u /* each switch doubles the copies of the one before */

static const char help_text[] =
	"usage: collnet sim OPERATION (--shape AxB | --topology FILE) [OPTION...]\n"
	"       collnet sim --experiment NAME [--seed N] [--output DIR] [--quick]\n"
	"\n"
	"Simulates an operation on a cluster: runs the transport and the schedules of collnetd in\n"
	"virtual time, in one process, on switches with finite buffers. Needs no network and no\n"
	"privileges. The same seed gives the same result on every machine. Defaults are in\n"
	"parentheses.\n"
	"\n"
	"Operations: alltoall, allgather, bcast, scatter, gather, allreduce, reduce,\n"
	"  reduce_scatter, scan, exscan, barrier\n"
	"\n"
	"Network:\n"
	"  --shape A or AxB      A hosts on one switch, or on each of B switches under a root switch\n"
	"  --topology FILE       a topology file (- is standard input); the next four options apply to\n"
	"                        links whose rate or buffer it does not specify\n"
	"  --rate RATE           rate of hosts' links (1gbit)\n"
	"  --uplink RATE         rate of links between switches (ten times --rate)\n"
	"  --buffer FRAMES       buffer of a port to a host (with --shape: 43); 0: unlimited\n"
	"  --uplink-buffer FRAMES  buffer of a port to a switch (with --shape: 45)\n"
	"  --switch KIND         where switches queue frames: output, input, shared, dynamic (output)\n"
	"  --root-switch KIND[:FRAMES]  kind of the switch at the root, and the size of its memory\n"
	"  --alpha PERCENT       dynamic: limit of a queue, as a share of the free memory (100)\n"
	"  --no-topology         the nodes have no topology file\n"
	"  --cut-through         switches forward a frame as soon as its header has arrived\n"
	"  --lab                 links are token buckets, as in collnet lab\n"
	"  --latency TIME        latency of a cable (500ns)\n"
	"  --delay TIME          delay of a switch (2us)\n"
	"\n"
	"Hosts:\n"
	"  --local RANKS         ranks per host (1)\n"
	"  --overheads O_S,O_R,U_R   processor time per frame to send it, to receive it, and of the\n"
	"                        receiving program (0,0,0)\n"
	"  --encapsulation udp|tcp|raw  the headers of the frames (udp)\n"
	"  --authenticated       frames have a tag, as in a cluster with a key\n"
	"  --gap TIME            minimum time between the starts of two frames of a host (0)\n"
	"  --jitter TIME:PPM     wake-ups are late by up to TIME, in PPM cases per million\n"
	"\n"
	"Faults:\n"
	"  --loss PPM            frames per million that every link loses\n"
	"  --duplicate PPM       ... duplicates (at most 100000)\n"
	"  --reorder PPM         ... delays by 1 ms\n"
	"  --corrupt PPM         ... delivers with a bit error\n"
	"  --fault FAULT         a fault at a given time; up to 64 times:\n"
	"                        [t=TIME] [for=TIME] crash|restart|pause HOST | cut|repair LINK |\n"
	"                        partition HOSTS|HOSTS |\n"
	"                        loss|duplicate|reorder|corrupt PERCENT [LINK]\n"
	"\n"
	"Measurement, as in collnet bench:\n"
	"  --sizes LIST          bytes per pair or block\n"
	"  --algorithm LIST|all  --permutation NAME  --contention-aware on|off\n"
	"  --window FRAMES|auto|off\n"
	"  --iterations N (3)  --warmup N (1)  --verify  --seed N (1)\n"
	"\n"
	"Reports:\n"
	"  --json                print one JSON object per size and algorithm, one per line\n"
	"  --csv FILE            also write the results to a file\n"
	"  --trace FILE          write every transmission for chrome://tracing or Perfetto\n"
	"  --pcap FILE --port SWITCH-PEER   capture the frames of the link between the two\n"
	"                        (--trace, --pcap: one size and algorithm, by default one iteration)\n"
	"\n"
	"Exit status: 0; 1: an operation failed, a byte was wrong or a file could not be written;\n"
	"2: invalid command line.\n"
	"\n"
	"Experiments of the papers (DIR/NAME.csv, NAME.gp, and NAME.svg if gnuplot is installed):\n"
	"  --experiment NAME     one of those listed below; takes --seed N (1), --output DIR (.) and\n"
	"                        --quick, which runs a few small points only\n";

enum {
	OPT_SHAPE = MEASURE_OPT_OWN,
	OPT_TOPOLOGY,
	OPT_RATE,
	OPT_UPLINK,
	OPT_BUFFER,
	OPT_UPLINK_BUFFER,
	OPT_SWITCH,
	OPT_ROOT_SWITCH,
	OPT_ALPHA,
	OPT_CUT_THROUGH,
	OPT_NO_TOPOLOGY,
	OPT_LAB,
	OPT_LATENCY,
	OPT_DELAY,
	OPT_LOCAL,
	OPT_OVERHEADS,
	OPT_ENCAPSULATION,
	OPT_AUTHENTICATED,
	OPT_GAP,
	OPT_JITTER,
	OPT_LOSS,
	OPT_DUPLICATE,
	OPT_REORDER,
	OPT_CORRUPT,
	OPT_FAULT,
	OPT_TRACE,
	OPT_PCAP,
	OPT_PORT,
	OPT_EXPERIMENT,
	OPT_OUTPUT,
	OPT_QUICK,
};

static const struct option options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "shape", required_argument, NULL, OPT_SHAPE },
	{ "topology", required_argument, NULL, OPT_TOPOLOGY },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "uplink", required_argument, NULL, OPT_UPLINK },
	{ "buffer", required_argument, NULL, OPT_BUFFER },
	{ "uplink-buffer", required_argument, NULL, OPT_UPLINK_BUFFER },
	{ "switch", required_argument, NULL, OPT_SWITCH },
	{ "root-switch", required_argument, NULL, OPT_ROOT_SWITCH },
	{ "alpha", required_argument, NULL, OPT_ALPHA },
	{ "no-topology", no_argument, NULL, OPT_NO_TOPOLOGY },
	{ "cut-through", no_argument, NULL, OPT_CUT_THROUGH },
	{ "lab", no_argument, NULL, OPT_LAB },
	{ "latency", required_argument, NULL, OPT_LATENCY },
	{ "delay", required_argument, NULL, OPT_DELAY },
	{ "local", required_argument, NULL, OPT_LOCAL },
	{ "overheads", required_argument, NULL, OPT_OVERHEADS },
	{ "encapsulation", required_argument, NULL, OPT_ENCAPSULATION },
	{ "authenticated", no_argument, NULL, OPT_AUTHENTICATED },
	{ "gap", required_argument, NULL, OPT_GAP },
	{ "jitter", required_argument, NULL, OPT_JITTER },
	{ "loss", required_argument, NULL, OPT_LOSS },
	{ "duplicate", required_argument, NULL, OPT_DUPLICATE },
	{ "reorder", required_argument, NULL, OPT_REORDER },
	{ "corrupt", required_argument, NULL, OPT_CORRUPT },
	{ "fault", required_argument, NULL, OPT_FAULT },
	MEASURE_OPTIONS,
	{ "trace", required_argument, NULL, OPT_TRACE },
	{ "pcap", required_argument, NULL, OPT_PCAP },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "experiment", required_argument, NULL, OPT_EXPERIMENT },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ "quick", no_argument, NULL, OPT_QUICK },
	{ NULL, 0, NULL, 0 },
};

static int parse_kind(const char *text, enum cn_sim_kind *out, struct cn_err *err)
{
	static const char *const names[] = { [CN_SIM_OUTPUT] = "output",
					     [CN_SIM_INPUT] = "input",
					     [CN_SIM_SHARED] = "shared",
					     [CN_SIM_DYNAMIC] = "dynamic",
					     NULL };
	uint32_t i;
	int rc = tool_parse_name(text, names, &i, err);

	*out = rc == COLLNET_OK ? (enum cn_sim_kind)i : *out;
	return rc;
}

/* "input", "shared:820" */
static int parse_root(char *text, struct cn_sim_root *r, struct cn_err *err)
{
	char *colon = strchr(text, ':');
	int rc;

	if (colon != NULL) {
		*colon = '\0';
	}
	r->other = true;
	r->memory = 0;
	rc = parse_kind(text, &r->kind, err);
	if (rc != COLLNET_OK || colon == NULL) {
		return rc;
	}
	if (r->kind != CN_SIM_SHARED && r->kind != CN_SIM_DYNAMIC) {
		return cn_fail(err, COLLNET_EINVAL,
			       "':%.40s': only shared and dynamic switches have a memory of "
			       "their own; buffers of ports are in the topology",
			       colon + 1);
	}
	return tool_parse_u32(colon + 1, 1, CN_TOPO_BUFFER_MAX, &r->memory, err);
}

static int parse_overheads(char *text, struct cn_sim_config *c, struct cn_err *err)
{
	cn_time *const out[] = { &c->o_send, &c->o_recv, &c->u_recv };
	const char *items[3];
	size_t n;
	int rc = tool_split(text, items, 3, &n, err);

	if (rc == COLLNET_OK && n != 3) {
		return cn_fail(err, COLLNET_EINVAL,
			       "expected three times, O_S,O_R,U_R, such as 5us,8us,0");
	}
	for (size_t i = 0; rc == COLLNET_OK && i < n; i++) {
		rc = sim_parse_time(items[i], out[i], err);
	}
	return rc;
}

/* "100us:5000" */
static int parse_jitter(char *text, struct cn_sim_config *c, struct cn_err *err)
{
	char *colon = strchr(text, ':');
	int rc;

	if (colon == NULL) {
		return cn_fail(err, COLLNET_EINVAL, "'%.40s' is not TIME:PPM, such as 100us:5000",
			       text);
	}
	*colon = '\0';
	rc = sim_parse_time(text, &c->jitter, err);
	return rc == COLLNET_OK ? tool_parse_u32(colon + 1, 0, 1000000, &c->jitter_ppm, err) : rc;
}

static int parse_network(struct sim_options *o, int opt, char *arg, struct cn_err *err)
{
	switch (opt) {
	case OPT_SHAPE:
		o->shape = arg;
		return COLLNET_OK;
	case OPT_TOPOLOGY:
		o->topology = arg;
		return COLLNET_OK;
	case OPT_RATE:
		return tool_parse_rate(arg, &o->rate, err);
	case OPT_UPLINK:
		return tool_parse_rate(arg, &o->uplink, err);
	case OPT_BUFFER:
		o->buffer_set = true;
		return tool_parse_u32(arg, 0, CN_TOPO_BUFFER_MAX, &o->buffer, err);
	case OPT_UPLINK_BUFFER:
		o->uplink_buffer_set = true;
		return tool_parse_u32(arg, 0, CN_TOPO_BUFFER_MAX, &o->uplink_buffer, err);
	case OPT_SWITCH:
		return parse_kind(arg, &o->cluster.kind, err);
	case OPT_ROOT_SWITCH:
		return parse_root(arg, &o->cluster.root, err);
	case OPT_ALPHA:
		o->alpha_set = true;
		return tool_parse_u32(arg, 1, 1000000, &o->cluster.alpha_pct, err);
	case OPT_NO_TOPOLOGY:
		o->cluster.topology_unaware = true;
		return COLLNET_OK;
	case OPT_CUT_THROUGH:
		o->cluster.cut_through = true;
		return COLLNET_OK;
	case OPT_LAB:
		o->cluster.buckets = true;
		return COLLNET_OK;
	case OPT_LATENCY:
		return sim_parse_time(arg, &o->cluster.latency, err);
	default: /* OPT_DELAY */
		return sim_parse_time(arg, &o->cluster.delay, err);
	}
}

static int parse_hosts(struct sim_options *o, int opt, char *arg, struct cn_err *err)
{
	switch (opt) {
	case OPT_LOCAL:
		return tool_parse_u32(arg, 1, LOCAL_MAX, &o->local, err);
	case OPT_OVERHEADS:
		return parse_overheads(arg, &o->cluster, err);
	case OPT_ENCAPSULATION:
		return tool_parse_encapsulation(arg, &o->cluster.engine.node.encapsulation, err);
	case OPT_AUTHENTICATED:
		o->cluster.engine.node.authenticated = true;
		return COLLNET_OK;
	case OPT_GAP:
		return sim_parse_time(arg, &o->cluster.gap, err);
	case OPT_JITTER:
		return parse_jitter(arg, &o->cluster, err);
	case OPT_LOSS:
		return tool_parse_u32(arg, 0, 1000000, &o->faults.loss, err);
	case OPT_DUPLICATE:
		return tool_parse_u32(arg, 0, DUPLICATE_MAX, &o->faults.duplicate, err);
	case OPT_REORDER:
		return tool_parse_u32(arg, 0, 1000000, &o->faults.reorder, err);
	default: /* OPT_CORRUPT */
		return tool_parse_u32(arg, 0, 1000000, &o->faults.corrupt, err);
	}
}

/* The options that an experiment takes; its networks, sizes and algorithms are fixed. */
static bool of_experiment(int opt)
{
	return opt == OPT_EXPERIMENT || opt == OPT_OUTPUT || opt == OPT_QUICK ||
	       opt == MEASURE_OPT_SEED;
}

static int parse_option(void *into, int opt, char *arg, struct cn_err *err)
{
	struct sim_options *o = into;

	if (arg != NULL && *arg == '\0') {
		return cn_fail(err, COLLNET_EINVAL, "its value is empty");
	}
	if (o->not_of_experiment == NULL && !of_experiment(opt)) {
		o->not_of_experiment = tool_option_name(options, opt);
	}
	if (opt < MEASURE_OPT_OWN) {
		return measure_options_option(&o->measure, opt, arg, err);
	} else if (opt <= OPT_DELAY) {
		return parse_network(o, opt, arg, err);
	} else if (opt <= OPT_CORRUPT) {
		return parse_hosts(o, opt, arg, err);
	}
	switch (opt) {
	case OPT_FAULT:
		if (o->nfaults == SIM_FAULTS_MAX) {
			return cn_fail(err, COLLNET_EINVAL, "at most %u faults", SIM_FAULTS_MAX);
		}
		o->fault_texts[o->nfaults++] = arg;
		break;
	case OPT_TRACE:
		o->trace = arg;
		break;
	case OPT_PCAP:
		o->pcap = arg;
		break;
	case OPT_PORT:
		o->port = arg;
		break;
	case OPT_EXPERIMENT:
		o->experiment = arg;
		break;
	case OPT_OUTPUT:
		o->output = arg;
		break;
	default: /* OPT_QUICK */
		o->quick = true;
		break;
	}
	return COLLNET_OK;
}

/* Defaults that depend on the operation. */
static int finish(struct sim_options *o, struct cn_err *err)
{
	struct measure_options *b = &o->measure;
	int rc = measure_options_finish(b, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	o->cluster.seed = b->seed;
	if (b->iterations == MEASURE_DEFAULT) {
		b->iterations = o->trace != NULL || o->pcap != NULL ? 1 : 3;
	}
	b->warmup = b->warmup == MEASURE_DEFAULT ? 1 : b->warmup;
	return COLLNET_OK;
}

/* Outputs must not share a file or overwrite the topology. */
static int check_files(const struct sim_options *o)
{
	const struct {
		const char *option, *path;
	} files[] = {
		{ "--topology", o->topology },
		{ "--csv", o->measure.csv },
		{ "--trace", o->trace },
		{ "--pcap", o->pcap },
	};
	const size_t n = sizeof(files) / sizeof(files[0]);

	for (size_t i = 0; i < n; i++) {
		for (size_t k = i + 1; k < n; k++) {
			if (files[i].path != NULL && files[k].path != NULL &&
			    tool_same_file(files[i].path, files[k].path)) {
				return tool_usage("%s and %s name the same file, '%.80s'",
						  files[i].option, files[k].option, files[k].path);
			}
		}
	}
	return TOOL_OK;
}

/* Options that exclude or require each other. */
static int check_options(const struct sim_options *o)
{
	if ((o->topology == NULL) == (o->shape == NULL)) {
		return tool_usage("%s", tool_network_fault(o->shape != NULL));
	}
	if ((o->pcap == NULL) != (o->port == NULL)) {
		return tool_usage("--pcap FILE and --port SWITCH-PEER require each other");
	}
	if (o->cluster.buckets && o->cluster.cut_through) {
		return tool_usage(
			"--lab and --cut-through exclude each other: token buckets pass whole frames");
	}
	if (o->alpha_set && o->cluster.kind != CN_SIM_DYNAMIC &&
	    o->cluster.root.kind != CN_SIM_DYNAMIC) {
		return tool_usage("--alpha requires --switch dynamic or --root-switch dynamic");
	}
	if (o->quick || o->output != NULL) {
		return tool_usage("--quick and --output require --experiment");
	}
	if ((o->trace != NULL || o->pcap != NULL) &&
	    (o->measure.nsizes != 1 || o->measure.all || o->measure.nalgorithms > 1)) {
		return tool_usage("--trace and --pcap require one size and one algorithm: use "
				  "--sizes and --algorithm");
	}
	return check_files(o);
}

/* The operation, the only argument that is not an option. */
static int parse_operation(struct sim_options *o, int argc, char **argv)
{
	char known[MEASURE_NAMES];

	if (optind == argc) {
		return tool_usage("no operation specified; expected one of %s",
				  measure_op_names(true, known));
	}
	if (!measure_op_find(argv[optind], &o->measure.op) || measure_op_kind(o->measure.op) == 0) {
		return tool_usage("unknown operation '%.40s'; expected one of %s", argv[optind],
				  measure_op_names(true, known));
	}
	if (!measure_op_simulated(o->measure.op)) {
		return tool_usage("%s is not simulated yet: see collnet bench", argv[optind]);
	}
	return optind + 1 < argc ? tool_usage("unexpected argument '%.40s'", argv[optind + 1])
				 : TOOL_OK;
}

static void defaults(struct sim_options *o)
{
	memset(o, 0, sizeof(*o));
	measure_options_init(&o->measure);
	cn_sim_config_init(&o->cluster);
	o->cluster.engine.node.encapsulation = CN_ENCAPSULATION_DEFAULT;
	o->buffer = BUFFER_DEFAULT;
	o->uplink_buffer = UPLINK_BUFFER_DEFAULT;
	o->local = 1;
	o->faults.late = CN_MS;
}

static int check_experiment(struct sim_options *o, int argc)
{
	if (optind < argc) {
		return tool_usage("--experiment has no operation");
	}
	if (o->not_of_experiment != NULL) {
		return tool_usage(
			"--experiment has its own networks, sizes and algorithms and takes "
			"only --seed, --output and --quick, not --%s",
			o->not_of_experiment);
	}
	o->output = o->output != NULL ? o->output : ".";
	return TOOL_OK;
}

int sim_options_parse(struct sim_options *o, int argc, char **argv)
{
	struct cn_err err = { 0 };
	int rc;

	defaults(o);
	rc = tool_options(argc, argv, options, parse_option, o);
	if (rc < 0) {
		fputs(help_text, stdout);
		experiment_list(EXPERIMENT_SIMULATED, stdout);
	}
	if (rc != TOOL_OK) {
		return rc;
	}
	if (o->experiment != NULL) {
		return check_experiment(o, argc);
	}
	rc = parse_operation(o, argc, argv);
	if (rc != TOOL_OK) {
		return rc;
	}
	if (finish(o, &err) != COLLNET_OK) {
		return tool_usage("%s", err.text);
	}
	return check_options(o);
}
