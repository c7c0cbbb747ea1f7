/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `collnet topo`: its subcommands, their options and their help. An option belongs to some
 * subcommands only; getopt gets the table of the one that was named.
 */
#include <getopt.h>
#include <string.h>

#include "tools/topo/command.h"

#define SHOW   1u
#define CHECK  2u
#define DRAW   4u
#define RANDOM 8u
#define TREE   16u
#define WINDOW 32u
#define READS  (SHOW | CHECK | DRAW | TREE | WINDOW) /* they take FILE or --shape */
#define ANY    (READS | RANDOM)

static const char shape_help[] =
	"FILE is a topology file of collnet or Slurm's topology.conf; - is standard input.\n"
	"Instead of FILE:\n"
	"  --shape A or AxB        A hosts on one switch, or on each of B switches under a root\n" SHAPE_HELP
	"\n";

static const struct part {
	const char *name;
	unsigned bit;
	int (*run)(const struct topo_options *o);
	const char *description;
	const char *help;
} parts[] = {
	{ "show", SHOW, topo_show, "print a topology and its spanning tree",
	  "usage: collnet topo show FILE [OPTION...]\n"
	  "Prints switches, hosts, links, rates, the spanning tree, and the bottleneck of an "
	  "all-to-all.\n\n"
	  "  --all                   print large trees and all unused links, too\n" },
	{ "check", CHECK, topo_check, "check a topology file",
	  "usage: collnet topo check FILE [OPTION...]\n"
	  "Prints one line and exits with 0 if the file is valid, else prints its first error with "
	  "its\nline and exits with 1. Warnings name missing rates and buffers; they do not change "
	  "the status.\n\n" },
	{ "draw", DRAW, topo_draw, "draw a topology, with a ring or a phase",
	  "usage: collnet topo draw FILE [OPTION...]\n"
	  "Draws a network, and the messages of a ring or of a phase on it.\n\n"
	  "  --ring lr1|lr2|lr3|file-order  the messages of a ring of the hosts in this order\n"
	  "  --phase N               the messages of phase N, counted from 0\n"
	  "  --algorithm NAME        algorithm of --phase (aapc)\n"
	  "  --format dot|svg        Graphviz source or its drawing (svg if FILE ends in .svg)\n"
	  "  --output FILE           (standard output)\n" },
	{ "random", RANDOM, topo_random, "generate a random cluster",
	  "usage: collnet topo random --hosts N [OPTION...]\n"
	  "Writes the topology of a random cluster to standard output.\n\n"
	  "  --hosts N               number of hosts\n"
	  "  --switches M            number of switches (a fifth of the hosts)\n"
	  "  --degree D              mean number of links between a switch and others (4)\n"
	  "  --seed S                seed of the random numbers (1)\n"
	  "  --rate RATE             of all links, or none (none)\n"
	  "  --buffer FRAMES         of all ports (unknown)\n" },
	{ "tree", TREE, topo_tree, "keep only the links of a spanning tree",
	  "usage: collnet topo tree FILE [OPTION...]\n"
	  "Writes the topology with only the links of a spanning tree to standard output.\n\n"
	  "  --kind KIND             bfs (fewest hops), dfs, random, shortest (by rates) (bfs)\n"
	  "  --root SWITCH           root of the tree (the first switch of the file)\n"
	  "  --seed S                seed of a random tree (1)\n" },
	{ "window", WINDOW, topo_window, "print the global window that the buffers allow",
	  "usage: collnet topo window FILE [OPTION...]\n"
	  "Prints the global window of an exchange, port by port.\n\n"
	  "  --hosts A,B,...         the hosts that take part (all)\n" },
};
#define NPARTS (sizeof(parts) / sizeof(parts[0]))

enum {
	OPT_JSON = SHAPE_OPT_OWN,
	OPT_ALL,
	OPT_RING,
	OPT_PHASE,
	OPT_ALGORITHM,
	OPT_FORMAT,
	OPT_OUTPUT,
	OPT_KIND,
	OPT_ROOT,
	OPT_SEED,
	OPT_HOSTS,
	OPT_SWITCHES,
	OPT_DEGREE,
};

static const struct {
	struct option option;
	unsigned parts;
} options[] = {
	{ { "help", no_argument, NULL, 'h' }, ANY },
	{ { "json", no_argument, NULL, OPT_JSON }, ANY },
	{ { "all", no_argument, NULL, OPT_ALL }, SHOW },
	{ { "shape", required_argument, NULL, SHAPE_OPT_SHAPE }, READS },
	{ { "rate", required_argument, NULL, SHAPE_OPT_RATE }, ANY },
	{ { "uplink", required_argument, NULL, SHAPE_OPT_UPLINK }, READS },
	{ { "buffer", required_argument, NULL, SHAPE_OPT_BUFFER }, ANY },
	{ { "uplink-buffer", required_argument, NULL, SHAPE_OPT_UPLINK_BUFFER }, READS },
	{ { "ring", required_argument, NULL, OPT_RING }, DRAW },
	{ { "phase", required_argument, NULL, OPT_PHASE }, DRAW },
	{ { "algorithm", required_argument, NULL, OPT_ALGORITHM }, DRAW },
	{ { "format", required_argument, NULL, OPT_FORMAT }, DRAW },
	{ { "output", required_argument, NULL, OPT_OUTPUT }, DRAW },
	{ { "kind", required_argument, NULL, OPT_KIND }, TREE },
	{ { "root", required_argument, NULL, OPT_ROOT }, TREE },
	{ { "seed", required_argument, NULL, OPT_SEED }, TREE | RANDOM },
	{ { "hosts", required_argument, NULL, OPT_HOSTS }, WINDOW | RANDOM },
	{ { "switches", required_argument, NULL, OPT_SWITCHES }, RANDOM },
	{ { "degree", required_argument, NULL, OPT_DEGREE }, RANDOM },
};
#define NOPTIONS (sizeof(options) / sizeof(options[0]))

static void part_help(const struct part *p)
{
	fputs(p->help, stdout);
	fputs("  --json                  print one JSON object\n"
	      "  --help                  print this text\n\n",
	      stdout);
	if (p->bit & READS) {
		fputs(shape_help, stdout);
	}
	puts("See collnet-topo(1).");
}

static void print_help(void)
{
	size_t i;

	puts("usage: collnet topo SUBCOMMAND FILE [OPTION...]\n"
	     "\n"
	     "Shows, checks, draws and generates topology files.\n"
	     "\n"
	     "subcommands:");
	for (i = 0; i < NPARTS; i++) {
		printf("  %-7s %s\n", parts[i].name, parts[i].description);
	}
	puts("\n"
	     "FILE is - for standard input; --shape 8x2 specifies a network without a file.\n"
	     "Each subcommand has its own --help.");
}

/* "4", "3.25": a mean number of neighbours. */
static int parse_degree(const char *text, double *out, struct cn_err *err)
{
	uint64_t n;

	if (tool_parse_thousandths(text, &n) != COLLNET_OK || n == 0 ||
	    n > CN_TOPO_VERTICES_MAX * 1000) {
		return cn_fail(err, COLLNET_EINVAL, "'%.40s' is not a number like 4 or 2.5", text);
	}
	*out = (double)n / 1000;
	return COLLNET_OK;
}

static int parse_kind(struct topo_options *o, const char *text, struct cn_err *err)
{
	static const char *const kinds[] = { [CN_TREE_BFS] = "bfs",
					     [CN_TREE_DFS] = "dfs",
					     [CN_TREE_RANDOM] = "random",
					     [CN_TREE_SHORTEST] = "shortest",
					     NULL };
	uint32_t i = CN_TREE_BFS;
	int rc = tool_parse_name(text, kinds, &i, err);

	o->kind = (enum cn_tree_kind)i;
	o->kind_name = kinds[i];
	return rc;
}

static int parse_hosts(struct topo_options *o, const char *text, struct cn_err *err)
{
	o->hosts = text;
	o->hosts_given = true;
	return strcmp(o->part, "random") != 0
		       ? tool_check_list(text, err)
		       : tool_parse_u32(text, 1, CN_TOPO_VERTICES_MAX, &o->random.hosts, err);
}

static int parse_option(void *into, int opt, char *arg, struct cn_err *err)
{
	static const char *const rings[] = { "lr1", "lr2", "lr3", "file-order", NULL };
	static const char *const formats[] = { "dot", "svg", NULL };
	struct topo_options *o = into;
	uint32_t i;

	if (opt < SHAPE_OPT_OWN) {
		return shape_option(&o->shape, opt, arg, err);
	}
	switch (opt) {
	case OPT_JSON:
		o->json = true;
		return COLLNET_OK;
	case OPT_ALL:
		o->all = true;
		return COLLNET_OK;
	case OPT_ALGORITHM:
		o->algorithm = arg;
		return topo_check_algorithm(arg, err);
	case OPT_OUTPUT:
		o->output = arg;
		return COLLNET_OK;
	case OPT_ROOT:
		o->root = arg;
		return COLLNET_OK;
	case OPT_RING:
		o->ring = arg;
		return tool_parse_name(arg, rings, &i, err);
	case OPT_FORMAT:
		o->format = arg;
		return tool_parse_name(arg, formats, &i, err);
	case OPT_PHASE:
		o->phase_given = true;
		return tool_parse_number(arg, 0, UINT32_MAX - 1, &o->phase, err);
	case OPT_KIND:
		return parse_kind(o, arg, err);
	case OPT_SEED:
		return tool_parse_number(arg, 0, UINT64_MAX, &o->random.seed, err);
	case OPT_HOSTS:
		return parse_hosts(o, arg, err);
	case OPT_SWITCHES:
		o->switches_given = true;
		return tool_parse_u32(arg, 1, CN_TOPO_VERTICES_MAX, &o->random.switches, err);
	default: /* OPT_DEGREE */
		return parse_degree(arg, &o->random.degree, err);
	}
}

/* A network that is made from options, which is wrong only when these are. */
static int check_shape(const struct topo_options *o)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };

	if (topo_open(o, &t, &err) != COLLNET_OK && err.code != COLLNET_ENOMEM) {
		return tool_usage("%s", err.text);
	}
	cn_topo_free(t);
	return TOOL_OK;
}

/* Conflicting options. */
static int check_together(const struct topo_options *o, unsigned bit)
{
	const struct shape *s = &o->shape;

	if ((bit & READS) && o->file != NULL && s->text != NULL) {
		return tool_usage("specify a FILE or --shape, not both");
	}
	if ((bit & READS) && o->file == NULL && s->text == NULL) {
		return tool_usage("%s needs a FILE (- is standard input) or --shape "
				  "(e.g. 8x2)",
				  o->part);
	}
	if ((bit & READS) && s->text == NULL && shape_has_rates(s)) {
		return tool_usage("a topology file specifies rates and buffers itself: --rate, "
				  "--uplink, --buffer and --uplink-buffer go with --shape");
	}
	if (bit == RANDOM && (o->file != NULL || !o->hosts_given)) {
		return tool_usage("random reads no file and requires --hosts N");
	}
	if (bit == DRAW && o->ring != NULL && o->phase_given) {
		return tool_usage("--ring and --phase exclude each other");
	}
	if (bit == DRAW && o->algorithm != NULL && !o->phase_given) {
		return tool_usage("specify with --phase N which phase of %.40s", o->algorithm);
	}
	if (bit == DRAW && o->json && o->format != NULL) {
		return tool_usage("--json and --format exclude each other");
	}
	return s->text != NULL ? check_shape(o) : TOOL_OK;
}

static int run_part(const struct part *p, int argc, char **argv)
{
	struct topo_options o = { .part = p->name, .kind_name = "bfs" };
	struct option table[NOPTIONS + 1] = { 0 };
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < NOPTIONS; i++) {
		if (options[i].parts & p->bit) {
			table[n++] = options[i].option;
		}
	}
	o.random.seed = 1;
	o.random.degree = 4;
	rc = tool_options(argc, argv, table, parse_option, &o);
	if (rc < 0) {
		part_help(p);
		return TOOL_OK;
	}
	if (rc != TOOL_OK) {
		return rc;
	}
	if (argc - optind > 1) {
		return tool_usage("unexpected argument '%.60s'", argv[optind + 1]);
	}
	o.file = optind < argc ? argv[optind] : NULL;
	rc = check_together(&o, p->bit);
	return rc != TOOL_OK ? rc : p->run(&o);
}

int collnet_cmd_topo(int argc, char **argv)
{
	char known[80] = "";
	size_t i;

	for (i = 0; i < NPARTS; i++) {
		tool_list(known, sizeof(known), parts[i].name);
	}
	if (argc < 2) {
		return tool_usage("no subcommand given; there are %s", known);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_help();
		return TOOL_OK;
	}
	for (i = 0; i < NPARTS; i++) {
		if (strcmp(argv[1], parts[i].name) == 0) {
			return run_part(&parts[i], argc - 1, argv + 1);
		}
	}
	return tool_usage("unknown subcommand '%.40s'; there are %s", argv[1], known);
}
