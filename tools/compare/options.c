/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of `collnet compare`.
 *
 * Options of the lab are checked here and passed on to `collnet lab`; the others are passed on to
 * the `collnet compare` inside the lab.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tools/compare/command.h"
#include "util/hostlist.h"

#define SIZES_DEFAULT	"8,1k,64k,1m"
#define ROUNDS_DEFAULT	5
#define TIMEOUT_DEFAULT 60000
#define HOSTS_MAX	4096u

static const char help_text[] =
	"usage: collnet compare [OPERATION...] (--shape SHAPE | --topology FILE | --hosts LIST)\n"
	"                       [OPTION...]\n"
	"       collnet compare loop [--mode MODE] [--spin] [--window N|auto|off]\n"
	"\n"
	"Measures collnet, Open MPI and MPICH side by side with the same loops, and prints the ratios\n"
	"of their times. The loop of each MPI library that is installed is compiled with its mpicc.\n"
	"compare starts loop on every rank. Defaults are in parentheses.\n"
	"\n"
	"operations (alltoall, allgather, bcast and barrier):\n"
	"  alltoall, alltoallv, allgather, allgatherv, bcast, scatter, gather, gatherv, allreduce,\n"
	"  reduce, reduce_scatter, scan, barrier\n"
	"\n"
	"on an emulated cluster, as by collnet lab --ip:\n"
	"  --shape A or AxB        A hosts on one switch, or on each of B switches under a root\n"
	"  --topology FILE         a topology file, which specifies rates and buffers itself\n" SHAPE_HELP
	"  --mtu BYTES             MTU of all links (1500)\n"
	"  --loss PERCENT          frames lost at random\n"
	"  --no-topology           nodes have no topology file\n"
	"  --daemon-arg ARG        an additional argument of every collnetd; may be repeated\n"
	"\n"
	"on a real network:\n"
	"  --hosts LIST            host names, a,b,n[1-8], or a file with one per line\n"
	"  --interface NAME        restrict the MPI libraries to TCP on this interface\n"
	"\n"
	"what to measure:\n"
	"  --ranks-per-node N      ranks per host (1)\n"
	"  --sizes LIST            bytes per block (8,1k,64k,1m); of alltoallv, allgatherv and gatherv\n"
	"                          the mean of lengths from 0 to twice as much\n"
	"  --rounds N              rounds, in each of which every library has a turn (5)\n"
	"  --iterations N          iterations per turn (3 to 200, for about a tenth of a second)\n"
	"  --warmup N              untimed iterations per turn (a fifth of the iterations plus one)\n"
	"  --window N|auto|off     collnet's global window in frames (auto)\n"
	"  --mode daemon|direct    collnet through collnetd, or in the process (daemon)\n"
	"  --spin                  direct: busy-wait\n"
	"  --mpi-on-collnet        also measure each MPI library with its collectives on collnet\n"
	"  --mpicc LIST            compilers of the MPI libraries (mpicc.openmpi, mpicc.mpich, mpicc)\n"
	"  --seed N                seed of the bytes, all of which are checked, and of lengths (1)\n"
	"  --timeout SECONDS       deadline for a library to start, and for a turn (60)\n"
	"  --directory DIR         keep programs and logs in DIR, which all hosts must see\n"
	"\n"
	"how to report:\n"
	"  --json                  print one object per operation and size, one per line\n"
	"  --csv FILE              also write the results to FILE\n"
	"  --plot FILE             plot the ratios: FILE.svg (with gnuplot) or a gnuplot script\n"
	"  --help                  print this text\n"
	"\n"
	"A ratio is collnet's time divided by the other library's, the median over the rounds. Time runs\n"
	"until the last rank has the last byte. Ratios above 1.05 are marked as slower.\n"
	"\n"
	"Exit status: 0; 1: something failed or a byte was wrong; 2: invalid command line; 77: the\n"
	"system does not allow namespaces.\n";

enum {
	OPT_SHAPE = MEASURE_OPT_OWN, /* as SHAPE_OPT_..., in their order */
	OPT_RATE,
	OPT_UPLINK,
	OPT_BUFFER,
	OPT_UPLINK_BUFFER,
	OPT_TOPOLOGY,
	OPT_MTU,
	OPT_LOSS,
	OPT_NO_TOPOLOGY,
	OPT_DAEMON_ARG,
	OPT_OWN, /* what is not the lab's */
	OPT_HOSTS = OPT_OWN,
	OPT_INTERFACE,
	OPT_RANKS_PER_NODE,
	OPT_ROUNDS,
	OPT_MODE,
	OPT_SPIN,
	OPT_MPI_ON_COLLNET,
	OPT_MPICC,
	OPT_TIMEOUT,
	OPT_DIRECTORY,
	OPT_PLOT,
};

static const struct option options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "shape", required_argument, NULL, OPT_SHAPE },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "uplink", required_argument, NULL, OPT_UPLINK },
	{ "buffer", required_argument, NULL, OPT_BUFFER },
	{ "uplink-buffer", required_argument, NULL, OPT_UPLINK_BUFFER },
	{ "topology", required_argument, NULL, OPT_TOPOLOGY },
	{ "mtu", required_argument, NULL, OPT_MTU },
	{ "loss", required_argument, NULL, OPT_LOSS },
	{ "no-topology", no_argument, NULL, OPT_NO_TOPOLOGY },
	{ "daemon-arg", required_argument, NULL, OPT_DAEMON_ARG },
	{ "hosts", required_argument, NULL, OPT_HOSTS },
	{ "interface", required_argument, NULL, OPT_INTERFACE },
	{ "ranks-per-node", required_argument, NULL, OPT_RANKS_PER_NODE },
	{ "rounds", required_argument, NULL, OPT_ROUNDS },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "spin", no_argument, NULL, OPT_SPIN },
	{ "mpi-on-collnet", no_argument, NULL, OPT_MPI_ON_COLLNET },
	{ "mpicc", required_argument, NULL, OPT_MPICC },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "directory", required_argument, NULL, OPT_DIRECTORY },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ "sizes", required_argument, NULL, MEASURE_OPT_SIZES },
	{ "window", required_argument, NULL, MEASURE_OPT_WINDOW },
	{ "iterations", required_argument, NULL, MEASURE_OPT_ITERATIONS },
	{ "warmup", required_argument, NULL, MEASURE_OPT_WARMUP },
	{ "seed", required_argument, NULL, MEASURE_OPT_SEED },
	{ "json", no_argument, NULL, MEASURE_OPT_JSON },
	{ "csv", required_argument, NULL, MEASURE_OPT_CSV },
	{ NULL, 0, NULL, 0 },
};

/* Notes the option as it was given, for the lab or for the comparison inside it. */
static int note(struct compare_options *o, int opt, const char *arg, struct cn_err *err)
{
	bool lab = opt >= OPT_SHAPE && opt < OPT_OWN;
	char *text;

	if (asprintf(&text, "--%s%s%s", tool_option_name(options, opt), arg != NULL ? "=" : "",
		     arg != NULL ? arg : "") < 0) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory");
	}
	if (lab) {
		o->lab_given = true;
		o->lab_args[o->nlab_args++] = text;
	} else {
		o->own_args[o->nown_args++] = text;
	}
	return COLLNET_OK;
}

static int parse_option(void *into, int opt, char *arg, struct cn_err *err)
{
	struct compare_options *o = into;
	int rc = note(o, opt, arg, err);
	enum collnet_mode mode;

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (opt < MEASURE_OPT_OWN) {
		return measure_options_option(&o->m, opt, arg, err);
	}
	if (opt >= OPT_SHAPE && opt <= OPT_UPLINK_BUFFER) {
		return shape_option(&o->shape, SHAPE_OPT_SHAPE + opt - OPT_SHAPE, arg, err);
	}
	switch (opt) {
	case OPT_TOPOLOGY:
		o->topology = arg;
		return COLLNET_OK;
	case OPT_HOSTS:
		o->hosts = arg;
		return COLLNET_OK;
	case OPT_INTERFACE:
		o->interface = arg;
		return COLLNET_OK;
	case OPT_RANKS_PER_NODE:
		return tool_parse_u32(arg, 1, COLLNET_RANKS_MAX, &o->ranks_per_node, err);
	case OPT_ROUNDS:
		return tool_parse_u32(arg, 1, CELL_ROUNDS_MAX, &o->rounds, err);
	case OPT_MODE:
		rc = tool_parse_mode(arg, &mode, err);
		o->direct = rc == COLLNET_OK && mode == COLLNET_MODE_DIRECT;
		return rc;
	case OPT_SPIN:
		o->spin = true;
		return COLLNET_OK;
	case OPT_MPI_ON_COLLNET:
		o->mpi_on_collnet = true;
		return COLLNET_OK;
	case OPT_MPICC:
		o->mpicc = arg;
		return COLLNET_OK;
	case OPT_TIMEOUT:
		return tool_parse_seconds(arg, &o->timeout_ms, err);
	case OPT_DIRECTORY:
		o->directory = arg;
		return COLLNET_OK;
	case OPT_PLOT:
		o->plot = arg;
		return COLLNET_OK;
	default: /* --mtu, --loss, --no-topology, --daemon-arg: the lab's */
		return COLLNET_OK;
	}
}

static int parse_operation(struct compare_options *o, const char *name, struct cn_err *err)
{
	enum loop_op op = loop_op_find(name);
	char known[160] = "";

	if (op == LOOP_OPS) {
		for (int i = 0; i < LOOP_OPS; i++) {
			tool_list(known, sizeof(known), loop_op_name((enum loop_op)i));
		}
		return cn_fail(err, COLLNET_EINVAL, "unknown operation '%.40s'; there are %s", name,
			       known);
	}
	for (size_t i = 0; i < o->nops; i++) {
		if (o->ops[i] == op) {
			return cn_fail(err, COLLNET_EINVAL, "%s is specified twice", name);
		}
	}
	o->ops[o->nops++] = op;
	return COLLNET_OK;
}

/* Dependent options, and the defaults. */
static int finish(struct compare_options *o, struct cn_err *err)
{
	static const enum loop_op usual[] = { LOOP_ALLTOALL, LOOP_ALLGATHER, LOOP_BCAST,
					      LOOP_BARRIER };

	if (o->m.sizes_arg == NULL) {
		o->m.sizes_arg = SIZES_DEFAULT;
	}
	if (measure_options_finish(&o->m, err) != COLLNET_OK) {
		return err->code;
	}
	for (size_t i = 0; i < o->m.nsizes; i++) {
		if (o->m.sizes[i] == 0) {
			return cn_fail(err, COLLNET_EINVAL,
				       "--sizes: a block of 0 bytes cannot be measured");
		}
	}
	if (o->nops == 0) {
		memcpy(o->ops, usual, sizeof(usual));
		o->nops = sizeof(usual) / sizeof(usual[0]);
	}
	if (o->m.csv != NULL && o->plot != NULL && tool_same_file(o->m.csv, o->plot)) {
		return cn_fail(err, COLLNET_EINVAL, "--csv and --plot name the same file, '%.80s'",
			       o->plot);
	}
	if (o->spin && !o->direct) {
		return cn_fail(err, COLLNET_EINVAL, "--spin requires --mode direct");
	}
	if (o->direct && o->ranks_per_node > 1) {
		return cn_fail(err, COLLNET_EINVAL,
			       "--mode direct has one rank per node: drop --ranks-per-node");
	}
	if (o->direct && o->mpi_on_collnet) {
		return cn_fail(err, COLLNET_EINVAL,
			       "--mpi-on-collnet needs collnetd: drop --mode direct");
	}
	if (o->hosts != NULL && o->lab_given) {
		return cn_fail(
			err, COLLNET_EINVAL,
			"--hosts names real machines; --shape, --topology and the options of "
			"a lab emulate a cluster");
	}
	if (o->interface != NULL && o->hosts == NULL) {
		return cn_fail(err, COLLNET_EINVAL,
			       "--interface requires --hosts: a host of a lab has one interface");
	}
	if (o->lab_given && (o->shape.text == NULL) == (o->topology == NULL)) {
		return cn_fail(err, COLLNET_EINVAL, "%s",
			       tool_network_fault(o->shape.text != NULL));
	}
	return COLLNET_OK;
}

int compare_options_parse(struct compare_options *o, int argc, char **argv)
{
	struct cn_err err = { 0 };
	int rc;

	memset(o, 0, sizeof(*o));
	measure_options_init(&o->m);
	o->m.op = MEASURE_ALLTOALL;
	o->rounds = ROUNDS_DEFAULT;
	o->ranks_per_node = 1;
	o->timeout_ms = TIMEOUT_DEFAULT;
	o->lab_args = calloc((size_t)argc + 1, sizeof(*o->lab_args));
	o->own_args = calloc((size_t)argc + 1, sizeof(*o->own_args));
	if (o->lab_args == NULL || o->own_args == NULL) {
		tool_complain("no memory");
		return TOOL_FAILED;
	}
	rc = tool_options(argc, argv, options, parse_option, o);
	if (rc != TOOL_OK) {
		fputs(rc < 0 ? help_text : "", stdout);
		return rc;
	}
	o->loop = optind + 1 == argc && strcmp(argv[optind], "loop") == 0;
	for (int i = optind; i < argc && !o->loop; i++) {
		if (parse_operation(o, argv[i], &err) != COLLNET_OK) {
			return tool_usage("%s", err.text);
		}
	}
	rc = finish(o, &err);
	return rc == COLLNET_OK ? TOOL_OK : tool_usage("%s", err.text);
}

void compare_options_free(struct compare_options *o)
{
	for (size_t i = 0; i < o->nlab_args; i++) {
		free(o->lab_args[i]);
	}
	for (size_t i = 0; i < o->nown_args; i++) {
		free(o->own_args[i]);
	}
	free(o->lab_args);
	free(o->own_args);
}

/* ---- hosts ---------------------------------------------------------------------------- */

static int add_host(const char *name, size_t len, char ***hosts, uint32_t *n, struct cn_err *err)
{
	char **more = realloc(*hosts, ((size_t)*n + 1) * sizeof(*more));

	if (more != NULL) {
		*hosts = more;
		more[*n] = strndup(name, len);
	}
	if (more == NULL || more[*n] == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for host names");
	}
	for (uint32_t i = 0; i < *n; i++) {
		if (strcmp(more[i], more[*n]) == 0) {
			free(more[*n]);
			return COLLNET_OK; /* a line per slot: still one host */
		}
	}
	++*n;
	return *n <= HOSTS_MAX ? COLLNET_OK
			       : cn_fail(err, COLLNET_ELIMIT, "more than %u hosts", HOSTS_MAX);
}

/* A list as Slurm writes it; a number of slots behind a name is ignored. */
static int add_list(const char *list, char ***hosts, uint32_t *n, struct cn_err *err)
{
	struct cn_hostlist h;
	char name[256], found[CN_HOSTLIST_FOUND];
	int more = 1, rc = COLLNET_OK;

	cn_hostlist_begin(&h, list);
	while (rc == COLLNET_OK && (more = cn_hostlist_next(&h, name, sizeof(name))) == 1) {
		const size_t len = strcspn(name, ":");

		rc = len > 0 ? add_host(name, len, hosts, n, err)
			     : cn_fail(err, COLLNET_EINVAL, "--hosts: '%.40s' names no host", name);
	}
	return rc != COLLNET_OK || more == 0
		       ? rc
		       : cn_fail(err, COLLNET_EINVAL,
				 "--hosts: expected a list of hosts like node[01-12],login, found %s",
				 cn_hostlist_found(&h, found));
}

static int read_hosts(FILE *f, char ***hosts, uint32_t *n, struct cn_err *err)
{
	char *line = NULL;
	size_t size = 0;
	int rc = COLLNET_OK;

	while (rc == COLLNET_OK && getline(&line, &size, f) >= 0) {
		char *p = line + strspn(line, " \t");

		p[strcspn(p, " \t\r\n#")] = '\0';
		if (*p != '\0') {
			rc = add_list(p, hosts, n, err);
		}
	}
	free(line);
	return rc;
}

int compare_hosts(const char *arg, char ***hosts, uint32_t *n, struct cn_err *err)
{
	FILE *f = fopen(arg, "re");
	int rc = COLLNET_OK;

	*hosts = NULL;
	*n = 0;
	if (f != NULL) {
		rc = read_hosts(f, hosts, n, err);
		if (ferror(f)) {
			rc = cn_fail(err, COLLNET_EINVAL, "--hosts %.200s: %s", arg,
				     strerror(errno));
		}
		fclose(f);
	} else if (strchr(arg, '/') != NULL) {
		return cn_fail(err, COLLNET_EINVAL, "--hosts %.200s: %s", arg, strerror(errno));
	} else {
		rc = add_list(arg, hosts, n, err);
	}
	if (rc == COLLNET_OK && *n < 2) {
		rc = cn_fail(err, COLLNET_EINVAL, "--hosts: %s; two are needed at least",
			     *n == 0 ? "no hosts" : "one host");
	}
	return rc;
}
