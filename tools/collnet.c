/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collnet: one command with verbs. This file knows their names; each verb lives in its own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/tool.h"

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *description;
} verbs[] = {
	{ "bench", collnet_cmd_bench, "measure collective operations and messages" },
	{ "lab", collnet_cmd_lab, "an emulated cluster on this machine" },
	{ "schedule", collnet_cmd_schedule, "plan, prove and show collective operations" },
	{ "sim", collnet_cmd_sim,
	  "a cluster in virtual time: plan one, and the papers' experiments" },
	{ "status", collnet_cmd_status, "what this node's daemon knows" },
	{ "topo", collnet_cmd_topo, "show, check, draw and make topologies" },
};

static void help(void)
{
	size_t i;

	puts("usage: collnet VERB [OPTION...]\n"
	     "\n"
	     "Collective communication on plain Ethernet.\n"
	     "\n"
	     "verbs:");
	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		printf("  %-8s %s\n", verbs[i].name, verbs[i].description);
	}
	puts("\n"
	     "Each verb has its own --help, and a manual page: collnet-bench(1), collnet-lab(1),\n"
	     "collnet-schedule(1), collnet-sim(1), collnet-status(1), collnet-topo(1).\n"
	     "\n"
	     "  --help     this text\n"
	     "  --version  the version");
}

/* What was printed must have got there, whichever verb printed it. */
static int written(int status)
{
	bool flushed = fflush(stdout) == 0;

	if (status == TOOL_OK && (!flushed || ferror(stdout))) {
		tool_complain("standard output: %s",
			      flushed ? "it could not be written" : strerror(errno));
		return TOOL_FAILED;
	}
	return status;
}

static int run(int argc, char **argv)
{
	size_t i;

	if (argc < 2) {
		return tool_usage("no command given");
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		help();
		return TOOL_OK;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("collnet %s\n", collnet_version());
		return TOOL_OK;
	}
	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(argv[1], verbs[i].name) == 0) {
			tool_set_subcommand(verbs[i].name);
			return verbs[i].run(argc - 1, argv + 1);
		}
	}
	return tool_usage("unknown command '%.40s'", argv[1]);
}

int main(int argc, char **argv)
{
	return written(run(argc, argv));
}
