/* SPDX-License-Identifier: BSD-2-Clause */
/* The line about ranks of a job that run without collnet. */
#include <stdio.h>
#include <string.h>

#include "mpi/glue/glue.h"

/* Appends to a text; what does not fit is left out. */
static void append(char *out, size_t size, const char *text)
{
	const size_t n = strlen(out), more = strlen(text);

	if (n + more < size) {
		memcpy(out + n, text, more + 1);
	}
}

/* Such as "0, 4-7". */
static void list_ranks(char *out, size_t size, const bool *lacks, int n)
{
	char range[40];

	for (int i = 0, end; i < n; i = end) {
		for (end = i + 1; lacks[i] && end < n && lacks[end]; end++) {
		}
		if (!lacks[i]) {
			continue;
		}
		snprintf(range, sizeof(range), end - i > 1 ? "%s%d-%d" : "%s%d",
			 out[0] != '\0' ? ", " : "", i, end - 1);
		append(out, size, range);
	}
}

void glue_report_lacking(const bool *lacks, int n, const char *what, glue_node_function *node)
{
	char ranks[200] = "", nodes[200] = "", name[80], last[80] = "";

	list_ranks(ranks, sizeof(ranks), lacks, n);
	for (int i = 0; i < n && node != NULL; i++) {
		if (lacks[i] && node(i, name, sizeof(name)) && strcmp(name, last) != 0) {
			append(nodes, sizeof(nodes), nodes[0] != '\0' ? ", " : " on ");
			append(nodes, sizeof(nodes), name);
			memcpy(last, name, sizeof(last));
		}
	}
	fprintf(stderr,
		"collnet: not used, because ranks of %d lack %s, or have another version or "
		"priority: %s%s\n",
		n, what, ranks, nodes);
}
