/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verb `collnet topo`: its parts, their options and their help. An option belongs to some
 * parts only, and getopt is given the table of the one that was named.
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
	"FILE is a topology file, collnet's own or Slurm's topology.conf; - is standard input.\n"
	"Instead of FILE:\n"
	"  --shape A or AxB        A hosts on one switch, or on each of B switches under a root\n"
	"  --rate RATE             of a host's link, or none; 20mbit, beyond 16 hosts 10mbit\n"
	"  --uplink RATE           of a switch's uplink, or none; ten times the host's\n"
	"  --buffer FRAMES         of a switch port to a host; 43\n"
	"  --uplink-buffer FRAMES  of a port on an uplink; 45\n"
	"\n";

static const struct part {
	const char *name;
	unsigned bit;
	int (*run)(const struct topo_options *o);
	const char *description;
	const char *help;
} parts[] = {
	{ "show", SHOW, topo_show, "what a topology is, and its tree",
	  "usage: collnet topo show FILE [option...]\n"
	  "Switches, hosts, links and rates, the spanning tree, and what an all-to-all is limited "
	  "by.\n\n"
	  "  --all                   the whole tree, however large, and every unused link\n" },
	{ "check", CHECK, topo_check, "whether a file is a topology, and what it leaves out",
	  "usage: collnet topo check FILE [option...]\n"
	  "One line and status 0 if the file is right, or its first error with its line and status "
	  "1.\nWarnings tell what is missing in it; they do not change the status.\n\n" },
	{ "draw", DRAW, topo_draw, "a picture of it, with a ring or a phase",
	  "usage: collnet topo draw FILE [option...]\n"
	  "Draws a network, and the messages of a ring or of a phase on it.\n\n"
	  "  --ring ORDER            lr1, lr2, lr3 or file-order\n"
	  "  --phase N               the messages of phase N, from 0, of ...\n"
	  "  --algorithm NAME        ... this algorithm; aapc\n"
	  "  --format dot|svg        for Graphviz (dot), or drawn by it; svg if --output ends so\n"
	  "  --output FILE           instead of standard output\n" },
	{ "random", RANDOM, topo_random, "makes a random cluster",
	  "usage: collnet topo random --hosts N [option...]\n"
	  "Writes the topology of a random cluster to standard output.\n\n"
	  "  --hosts N               how many\n"
	  "  --switches M            a fifth of the hosts\n"
	  "  --degree D              mean number of switches that a switch is linked to; 4\n"
	  "  --seed S                the same one gives the same cluster; 1\n"
	  "  --rate RATE             of all links, or none, the default\n"
	  "  --buffer FRAMES         of all ports; not said by default\n" },
	{ "tree", TREE, topo_tree, "leaves only the links of a spanning tree",
	  "usage: collnet topo tree FILE [option...]\n"
	  "Writes the topology with only the links of a spanning tree to standard output.\n\n"
	  "  --kind KIND             bfs (fewest hops), dfs, random, shortest (by rates); bfs\n"
	  "  --root SWITCH           where it begins; the first switch of the file\n"
	  "  --seed S                of a random one; 1\n" },
	{ "window", WINDOW, topo_window, "the global window that its buffers allow",
	  "usage: collnet topo window FILE [option...]\n"
	  "The global window of an exchange, port by port.\n\n"
	  "  --hosts A,B,...         the hosts that take part; all\n" },
};
#define NPARTS (sizeof(parts) / sizeof(parts[0]))

enum {
	OPT_HELP = 256,
	OPT_JSON,
	OPT_ALL,
	OPT_SHAPE,
	OPT_RATE,
	OPT_UPLINK,
	OPT_BUFFER,
	OPT_UPLINK_BUFFER,
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
	const char *name;
	int has_arg, id;
	unsigned parts;
} options[] = {
	{ "help", no_argument, OPT_HELP, ANY },
	{ "json", no_argument, OPT_JSON, ANY },
	{ "all", no_argument, OPT_ALL, SHOW },
	{ "shape", required_argument, OPT_SHAPE, READS },
	{ "rate", required_argument, OPT_RATE, ANY },
	{ "uplink", required_argument, OPT_UPLINK, READS },
	{ "buffer", required_argument, OPT_BUFFER, ANY },
	{ "uplink-buffer", required_argument, OPT_UPLINK_BUFFER, READS },
	{ "ring", required_argument, OPT_RING, DRAW },
	{ "phase", required_argument, OPT_PHASE, DRAW },
	{ "algorithm", required_argument, OPT_ALGORITHM, DRAW },
	{ "format", required_argument, OPT_FORMAT, DRAW },
	{ "output", required_argument, OPT_OUTPUT, DRAW },
	{ "kind", required_argument, OPT_KIND, TREE },
	{ "root", required_argument, OPT_ROOT, TREE },
	{ "seed", required_argument, OPT_SEED, TREE | RANDOM },
	{ "hosts", required_argument, OPT_HOSTS, WINDOW | RANDOM },
	{ "switches", required_argument, OPT_SWITCHES, RANDOM },
	{ "degree", required_argument, OPT_DEGREE, RANDOM },
};
#define NOPTIONS (sizeof(options) / sizeof(options[0]))

static void part_help(const struct part *p)
{
	fputs(p->help, stdout);
	fputs("  --json                  as one JSON object\n"
	      "  --help\n\n",
	      stdout);
	if (p->bit & READS) {
		fputs(shape_help, stdout);
	}
	puts("See collnet-topo(1).");
}

static void verb_help(void)
{
	size_t i;

	puts("usage: collnet topo PART FILE [option...]\n"
	     "\n"
	     "The network of a cluster, as a topology file tells it.\n"
	     "\n"
	     "parts:");
	for (i = 0; i < NPARTS; i++) {
		printf("  %-7s %s\n", parts[i].name, parts[i].description);
	}
	puts("\n"
	     "FILE is - for standard input, and --shape 8x2 makes a network without a file.\n"
	     "Each part has its own --help.");
}

static bool take_rate(const char *text, uint64_t *rate, bool *said)
{
	*said = true;
	if (strcmp(text, "none") == 0) {
		*rate = 0;
		return true;
	}
	return cn_parse_rate(text, rate);
}

static bool take_u32(const char *text, uint64_t min, uint64_t max, uint32_t *out)
{
	uint64_t n;

	if (!cn_parse_uint(text, min, max, &n)) {
		return false;
	}
	*out = (uint32_t)n;
	return true;
}

/* "4", "3.25": a mean number of neighbours. */
static bool take_degree(const char *text, double *out)
{
	char number[32];
	uint64_t n;

	/* as kbit, a fraction of up to three digits comes out whole, in thousandths */
	if (strlen(text) > sizeof(number) - 8 || strspn(text, "0123456789.") < strlen(text)) {
		return false;
	}
	snprintf(number, sizeof(number), "%skbit", text);
	if (!cn_parse_rate(number, &n)) {
		return false;
	}
	*out = (double)n / 1000;
	return *out <= CN_TOPO_VERTICES_MAX;
}

/* Where an option's value goes. False: it is not valid; *expected says what would be. */
static bool take_value(struct topo_options *o, int id, const char *v, const char **expected)
{
	struct lab_options *s = &o->shape;

	switch (id) {
	case OPT_RATE:
		*expected = "a rate like 20mbit, or none";
		return take_rate(v, &s->rate, &s->rate_said);
	case OPT_UPLINK:
		*expected = "a rate like 200mbit, or none";
		return take_rate(v, &s->uplink, &s->uplink_said);
	case OPT_BUFFER:
		*expected = "1 to 1000000 frames";
		s->buffer_said = true;
		return take_u32(v, 1, CN_TOPO_BUFFER_MAX, &s->buffer);
	case OPT_UPLINK_BUFFER:
		*expected = "1 to 1000000 frames";
		s->uplink_buffer_said = true;
		return take_u32(v, 1, CN_TOPO_BUFFER_MAX, &s->uplink_buffer);
	case OPT_RING:
		*expected = "lr1, lr2, lr3 or file-order";
		o->ring = v;
		return strcmp(v, "lr1") == 0 || strcmp(v, "lr2") == 0 || strcmp(v, "lr3") == 0 ||
		       strcmp(v, "file-order") == 0;
	case OPT_PHASE:
		*expected = "a number, from 0";
		o->phase_said = true;
		return cn_parse_uint(v, 0, UINT32_MAX - 1, &o->phase);
	case OPT_FORMAT:
		*expected = "dot or svg";
		o->format = v;
		return strcmp(v, "dot") == 0 || strcmp(v, "svg") == 0;
	case OPT_KIND:
		*expected = "bfs, dfs, random or shortest";
		o->kind_name = v;
		return cn_tree_kind_find(v, &o->kind);
	case OPT_SEED:
		*expected = "a number";
		return cn_parse_uint(v, 0, UINT64_MAX, &o->random.seed);
	case OPT_HOSTS:
		*expected = "1 to 200000";
		o->hosts = v;
		o->hosts_said = true;
		return strcmp(o->part, "random") != 0 ||
		       take_u32(v, 1, CN_TOPO_VERTICES_MAX, &o->random.hosts);
	case OPT_SWITCHES:
		*expected = "1 to 200000";
		o->switches_said = true;
		return take_u32(v, 1, CN_TOPO_VERTICES_MAX, &o->random.switches);
	default:
		*expected = "a number like 4 or 2.5";
		return take_degree(v, &o->random.degree);
	}
}

/* False: --help, or *rc is a usage error. */
static bool take_option(struct topo_options *o, int id, const char *v, int *rc)
{
	const char *expected = NULL, *name = "";
	size_t i;

	switch (id) {
	case OPT_HELP:
		return false;
	case OPT_JSON:
		o->json = true;
		return true;
	case OPT_ALL:
		o->all = true;
		return true;
	case OPT_SHAPE:
		o->shape.shape = v;
		return true;
	case OPT_ALGORITHM:
		o->algorithm = v;
		return true;
	case OPT_OUTPUT:
		o->output = v;
		return true;
	case OPT_ROOT:
		o->root = v;
		return true;
	default:
		break;
	}
	if (!take_value(o, id, v, &expected)) {
		for (i = 0; i < NOPTIONS; i++) {
			name = options[i].id == id ? options[i].name : name;
		}
		*rc = tool_usage("--%s %.60s: expected %s", name, v, expected);
		return false;
	}
	return true;
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

/* What does not go together. */
static int check_together(const struct topo_options *o, unsigned bit)
{
	const struct lab_options *s = &o->shape;

	if ((bit & READS) && (o->file == NULL) == (s->shape == NULL)) {
		return tool_usage("%s needs a FILE (- is standard input) or --shape "
				  "(e.g. 8x2)",
				  o->part);
	}
	if ((bit & READS) && s->shape == NULL &&
	    (s->rate_said || s->uplink_said || s->buffer_said || s->uplink_buffer_said)) {
		return tool_usage("rates and buffers are the file's to say: --rate, --uplink, "
				  "--buffer and --uplink-buffer go with --shape");
	}
	if (bit == RANDOM && (o->file != NULL || !o->hosts_said)) {
		return tool_usage("random takes no file, and needs --hosts N");
	}
	if (bit == DRAW && o->ring != NULL && o->phase_said) {
		return tool_usage("draw either a --ring or a --phase");
	}
	if (bit == DRAW && o->algorithm != NULL && !o->phase_said) {
		return tool_usage("which phase of %.40s? say --phase N", o->algorithm);
	}
	if (bit == DRAW && o->json && o->format != NULL) {
		return tool_usage("draw either --json or --format %s", o->format);
	}
	return s->shape != NULL ? check_shape(o) : TOOL_OK;
}

static int run_part(const struct part *p, int argc, char **argv)
{
	struct topo_options o = { .part = p->name, .kind_name = "bfs" };
	struct option table[NOPTIONS + 1];
	size_t i, n = 0;
	int id, rc = TOOL_OK;

	for (i = 0; i < NOPTIONS; i++) {
		if (options[i].parts & p->bit) {
			table[n++] = (struct option){ options[i].name, options[i].has_arg, NULL,
						      options[i].id };
		}
	}
	table[n] = (struct option){ NULL, 0, NULL, 0 };
	o.random.seed = 1;
	o.random.degree = 4;
	optind = 0;
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":", table, NULL)) != -1) {
		if (id == '?' || id == ':') {
			return tool_usage("%.60s: %s", argv[optind - 1],
					  id == ':' ? "expected a value after it"
						    : "unknown or ambiguous option");
		}
		if (!take_option(&o, id, optarg, &rc)) {
			if (rc == TOOL_OK) {
				part_help(p);
			}
			return rc;
		}
	}
	if (argc - optind > 1) {
		return tool_usage("unexpected argument '%.60s'", argv[optind + 1]);
	}
	o.file = optind < argc ? argv[optind] : NULL;
	rc = check_together(&o, p->bit);
	return rc != TOOL_OK ? rc : p->run(&o);
}

#define SUBCOMMANDS "show, check, draw, random, tree and window"

int collnet_cmd_topo(int argc, char **argv)
{
	size_t i;

	if (argc < 2) {
		return tool_usage("no subcommand given; there are " SUBCOMMANDS);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		verb_help();
		return TOOL_OK;
	}
	for (i = 0; i < NPARTS; i++) {
		if (strcmp(argv[1], parts[i].name) == 0) {
			return run_part(&parts[i], argc - 1, argv + 1);
		}
	}
	return tool_usage("unknown subcommand '%.40s'; there are " SUBCOMMANDS, argv[1]);
}
