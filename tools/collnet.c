/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collnet: a table of subcommands, each in a folder of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/tool.h"
#include "util/descriptors.h"

static const struct subcommand {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *description;
} subcommands[] = {
	{ "bench", collnet_cmd_bench, "measure collective operations and messages" },
	{ "compare", collnet_cmd_compare, "measure collnet and MPI libraries side by side" },
	{ "lab", collnet_cmd_lab, "emulate a cluster on this machine" },
	{ "schedule", collnet_cmd_schedule, "plan, check and print schedules of operations" },
	{ "sim", collnet_cmd_sim, "simulate operations, and the experiments of the papers" },
	{ "status", collnet_cmd_status, "print the state of this node's daemon" },
	{ "topo", collnet_cmd_topo, "show, check, draw and generate topologies" },
};

#define NSUBCOMMANDS (sizeof(subcommands) / sizeof(subcommands[0]))

static void help(void)
{
	size_t i;

	puts("usage: collnet SUBCOMMAND [OPTION...]\n"
	     "\n"
	     "Collective communication on plain Ethernet.\n"
	     "\n"
	     "subcommands:");
	for (i = 0; i < NSUBCOMMANDS; i++) {
		printf("  %-8s %s\n", subcommands[i].name, subcommands[i].description);
	}
	puts("\n"
	     "Each subcommand has its own --help, and a manual page, collnet-SUBCOMMAND(1).\n"
	     "\n"
	     "  --help     print this text\n"
	     "  --version  print the version");
}

/* Fails if standard output could not be written, whichever subcommand wrote it. */
static int written(int status)
{
	bool flushed = fflush(stdout) == 0;

	if (status == TOOL_OK && (!flushed || ferror(stdout))) {
		tool_complain("standard output: %s", flushed ? "write error" : strerror(errno));
		return TOOL_FAILED;
	}
	return status;
}

static int run(int argc, char **argv)
{
	char known[160] = "";
	size_t i;

	for (i = 0; i < NSUBCOMMANDS; i++) {
		tool_list(known, sizeof(known), subcommands[i].name);
	}
	if (argc < 2) {
		return tool_usage("no subcommand given; there are %s", known);
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
	for (i = 0; i < NSUBCOMMANDS; i++) {
		if (strcmp(argv[1], subcommands[i].name) == 0) {
			tool_set_subcommand(subcommands[i].name);
			return subcommands[i].run(argc - 1, argv + 1);
		}
	}
	return tool_usage("unknown subcommand '%.40s'; there are %s", argv[1], known);
}

int main(int argc, char **argv)
{
	cn_open_standard_descriptors(O_RDONLY);
	return written(run(argc, argv));
}
