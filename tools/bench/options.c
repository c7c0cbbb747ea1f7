/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of `collnet bench`.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "client/env.h"
#include "tools/bench/command.h"

static const char help_text[] =
	"usage: collnet bench OPERATION [OPTION...]\n"
	"\n"
	"Measures an operation. Run it on every rank; the launcher (COLLNET_RANK and COLLNET_SIZE,\n"
	"Slurm, PMI, Open MPI, torchrun) or the options below specify the rank and the number of\n"
	"ranks. Rank 0 prints the results. Defaults are in parentheses.\n"
	"\n"
	"operations:\n"
	"  alltoall   total exchange: every rank sends a block to every other rank\n"
	"  allgather  all-to-all broadcast: every rank sends a block to all ranks\n"
	"  bcast      broadcast: rank 0 sends a block to all ranks\n"
	"  scatter    rank 0 sends a block to every rank\n"
	"  gather     every rank sends a block to rank 0\n"
	"  allreduce  the sums of all ranks' bytes, on every rank\n"
	"  reduce     the sums of all ranks' bytes, on rank 0\n"
	"  reduce_scatter  the sums of all ranks' bytes, a block on every rank\n"
	"  alltoallv  alltoall with blocks of different sizes, 0 to twice --sizes\n"
	"  allgatherv  allgather, likewise\n"
	"  scatterv   scatter, likewise\n"
	"  gatherv    gather, likewise\n"
	"  reduce_scatterv  reduce_scatter, likewise\n"
	"  scan       the sums of the bytes of ranks 0 to r, on rank r\n"
	"  exscan     the sums of the bytes of ranks 0 to r - 1, on rank r\n"
	"  barrier    wait until all ranks have arrived\n"
	"  pingpong   a message from rank 0 to rank 1 and back\n"
	"  stream     messages from rank 0 to rank 1, two in flight\n"
	"  plan       processor time of planning, without a network; see collnet bench plan --help\n"
	"\n"
	"what to measure:\n"
	"  --sizes LIST          bytes per block or message, like 1k,64k,1m\n"
	"  --algorithm LIST      algorithms to measure alternately, or all (the predicted fastest)\n"
	"  --permutation auto|shift|xor|edge-colour  of the algorithms that go by one (auto)\n"
	"  --contention-aware on|off   number the nodes by the topology (on)\n"
	"  --window N|auto|off   global window in frames (auto: from the topology's buffers)\n"
	"  --iterations N        iterations (about three seconds at the links' limit, 3 to 200;\n"
	"                        pingpong, stream: about two seconds)\n"
	"  --warmup N            untimed iterations before these (1; pingpong 10, stream 2)\n"
	"  --verify              check every byte of every iteration; filling and checking buffers is\n"
	"                        not timed, except by stream\n"
	"  --baseline            pingpong, stream: alternately measure a raw-socket baseline\n"
	"\n"
	"how to report:\n"
	"  --json                print one object per size and algorithm, one per line\n"
	"  --csv FILE            also write the results to FILE, for plotting\n"
	"  --rate RATE           rate of every node's link, for the links' limit: 20mbit, 1gbit\n"
	"                        (COLLNET_LINK_RATE, or the topology file's)\n"
	"\n"
	"how to reach the network:\n"
	"  --mode daemon|direct  through collnetd, or directly on the interface\n"
	"  --socket PATH         socket of the daemon\n"
	"  --interface NAME      direct: the Ethernet interface\n"
	"  --link packet|udp|pcap    direct: how to send and receive frames (packet)\n"
	"  --peers HOSTS         direct, link udp: the other nodes: a multicast group, list,\n"
	"                        file, or launcher\n"
	"  --encapsulation udp|tcp|raw  direct: of the frames (udp)\n"
	"  --spin                direct: busy-wait\n"
	"  --topology FILE       switches, links, rates and buffers, for direct mode and, in both\n"
	"                        modes, for the links' limit (COLLNET_TOPOLOGY)\n"
	"  --job NAME, --rank N, --ranks N   instead of the launcher's\n"
	"  --timeout SECONDS     deadline of every call (30 seconds plus 20 times the links' limit)\n"
	"  --seed N              seed of the bytes that are checked (1)\n"
	"  --help                print this text\n"
	"\n"
	"The time of an iteration is the mean over its ranks, each from call to return; in operations\n"
	"with a root, which a barrier precedes, it is that of the slowest rank. Minimum, median and\n"
	"99th percentile are printed. The limit is the time that the payload needs on the busiest link.\n"
	"Frames and processor time are those of all nodes and include the barriers between batches.\n"
	"\n"
	"Exit status: 0; 1: an operation failed or a byte was wrong; 2: invalid command line.\n";

enum {
	OPT_BASELINE = MEASURE_OPT_OWN,
	OPT_RATE,
	OPT_MODE,
	OPT_SOCKET,
	OPT_INTERFACE,
	OPT_LINK,
	OPT_PEERS,
	OPT_ENCAPSULATION,
	OPT_SPIN,
	OPT_TOPOLOGY,
	OPT_JOB,
	OPT_RANK,
	OPT_RANKS,
	OPT_TIMEOUT,
};

static const struct option options[] = {
	{ "help", no_argument, NULL, 'h' },
	MEASURE_OPTIONS,
	{ "baseline", no_argument, NULL, OPT_BASELINE },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "interface", required_argument, NULL, OPT_INTERFACE },
	{ "link", required_argument, NULL, OPT_LINK },
	{ "peers", required_argument, NULL, OPT_PEERS },
	{ "encapsulation", required_argument, NULL, OPT_ENCAPSULATION },
	{ "spin", no_argument, NULL, OPT_SPIN },
	{ "topology", required_argument, NULL, OPT_TOPOLOGY },
	{ "job", required_argument, NULL, OPT_JOB },
	{ "rank", required_argument, NULL, OPT_RANK },
	{ "ranks", required_argument, NULL, OPT_RANKS },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ NULL, 0, NULL, 0 },
};

static int parse_option(void *into, int opt, char *arg, struct cn_err *err)
{
	struct bench_options *o = into;

	if (opt < MEASURE_OPT_OWN) {
		return measure_options_option(&o->m, opt, arg, err);
	}
	switch (opt) {
	case OPT_BASELINE:
		o->baseline = true;
		return COLLNET_OK;
	case OPT_RATE:
		return tool_parse_rate(arg, &o->rate, err);
	case OPT_MODE:
		return tool_parse_mode(arg, &o->open.mode, err);
	case OPT_SOCKET:
		o->open.socket = arg;
		return COLLNET_OK;
	case OPT_INTERFACE:
		o->direct_only = "--interface";
		o->open.interface = arg;
		return COLLNET_OK;
	case OPT_LINK:
		o->direct_only = "--link";
		o->open.link = arg;
		return COLLNET_OK;
	case OPT_PEERS:
		o->direct_only = "--peers";
		o->open.peers = arg;
		return COLLNET_OK;
	case OPT_ENCAPSULATION:
		o->direct_only = "--encapsulation";
		o->open.encapsulation = arg;
		return COLLNET_OK;
	case OPT_SPIN:
		o->direct_only = "--spin";
		o->open.spin = 1;
		return COLLNET_OK;
	case OPT_TOPOLOGY:
		o->open.topology = arg;
		return COLLNET_OK;
	case OPT_JOB:
		o->team.job = arg;
		return COLLNET_OK;
	case OPT_RANK:
		return tool_parse_u32(arg, 0, COLLNET_RANKS_MAX - 1, &o->team.rank, err);
	case OPT_RANKS:
		o->ranks_given = true;
		return tool_parse_u32(arg, 1, COLLNET_RANKS_MAX, &o->team.ranks, err);
	default: /* OPT_TIMEOUT */
		return tool_parse_seconds(arg, &o->timeout_ms, err);
	}
}

/* What depends on the operation. */
static int finish(struct bench_options *o, struct cn_err *err)
{
	const char *rate = cn_env_value(cn_getenv, NULL, "COLLNET_LINK_RATE");
	int rc = measure_options_finish(&o->m, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (o->direct_only != NULL && o->open.mode != COLLNET_MODE_DIRECT) {
		return cn_fail(err, COLLNET_EINVAL, "%s requires --mode direct", o->direct_only);
	}
	if (o->baseline && o->m.op != MEASURE_PINGPONG && o->m.op != MEASURE_STREAM) {
		return cn_fail(err, COLLNET_EINVAL,
			       "--baseline applies only to pingpong and stream");
	}
	if (o->m.warmup == 0 && o->m.iterations == MEASURE_DEFAULT &&
	    (o->m.op == MEASURE_PINGPONG || o->m.op == MEASURE_STREAM)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "--warmup 0 requires --iterations: the number of iterations is "
			       "derived from the time of the first ones");
	}
	if (o->rate == 0 && rate != NULL && tool_parse_rate(rate, &o->rate, err) != COLLNET_OK) {
		return measure_options_blame(err, "COLLNET_LINK_RATE");
	}
	/* With 0 ranks the environment is wrong, and joining the team reports it. */
	if (o->team.ranks > 0 && o->team.rank >= o->team.ranks) {
		return cn_fail(err, COLLNET_EINVAL, "rank %u is not one of %u ranks", o->team.rank,
			       o->team.ranks);
	}
	if (o->m.warmup == MEASURE_DEFAULT) {
		o->m.warmup = measure_op_warmup(o->m.op);
	}
	return COLLNET_OK;
}

int bench_check_ranks(const struct bench_options *o, const char *specified_by)
{
	if (o->team.ranks != 1 || o->ranks_given ||
	    (specified_by != NULL && strcmp(specified_by, "COLLNET_SIZE") == 0)) {
		return TOOL_OK;
	}
	if (specified_by == NULL) {
		return tool_usage(
			"no launcher started this process, so it is one rank of one: use "
			"srun, mpirun or mpiexec, or give every process --rank and --ranks "
			"(or COLLNET_RANK and COLLNET_SIZE); --ranks 1 measures one rank");
	}
	return tool_usage("the launcher started one rank (%s is 1): specify how many (srun -N, "
			  "Open MPI: mpirun -N 1, MPICH: mpiexec -n RANKS -ppn 1); --ranks 1 "
			  "measures one rank",
			  specified_by);
}

int bench_options_parse(struct bench_options *o, int argc, char **argv)
{
	struct cn_err err = { 0 };
	char known[MEASURE_NAMES];
	int rc;

	memset(o, 0, sizeof(*o));
	measure_options_init(&o->m);
	collnet_options_init(&o->open);
	collnet_team_options_init(&o->team);
	rc = tool_options(argc, argv, options, parse_option, o);
	if (rc != TOOL_OK) {
		fputs(rc < 0 ? help_text : "", stdout);
		return rc;
	}
	if (optind == argc) {
		return tool_usage("no operation given; there are %s, plan",
				  measure_op_names(false, known));
	}
	if (strcmp(argv[optind], "plan") == 0) {
		return tool_usage("plan takes no options but --json and --seed");
	}
	if (!measure_op_find(argv[optind], &o->m.op)) {
		return tool_usage("unknown operation '%.40s'; there are %s, plan", argv[optind],
				  measure_op_names(false, known));
	}
	if (optind + 1 < argc) {
		return tool_usage("unexpected argument '%.40s'", argv[optind + 1]);
	}
	rc = finish(o, &err);
	return rc == COLLNET_OK ? TOOL_OK : tool_usage("%s", err.text);
}
