/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as a topology file: refused with a sentence that names the file, or a graph that
 * written out and read again is the same graph.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok) {
		abort();
	}
}

/* The graph as text; freed by the caller. */
static char *text_of(const struct cn_topo *t, size_t *len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, len);

	check(f && cn_topo_write(t, f) == COLLNET_OK && fclose(f) == 0);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cn_topo *t = NULL, *again = NULL;
	struct cn_err err = { 0 };
	size_t len, len_again;
	char *text, *text_again;

	if (cn_topo_parse((const char *)data, size, "input", &t, &err) != COLLNET_OK) {
		check(!t && err.code < 0 && err.text[0]);
		return 0;
	}
	check(t->nhosts <= t->nvertices && t->nvertices <= CN_TOPO_VERTICES_MAX);
	for (uint32_t i = 0; i < t->nhosts; i++) {
		check(cn_topo_find(t, t->vertices[t->hosts[i]].name) == t->hosts[i]);
		(void)cn_topo_switch_of(t, t->hosts[i]);
		(void)cn_topo_host_rate(t, t->hosts[i]);
	}
	check(cn_topo_window(t, t->hosts, t->nhosts, 2, NULL) >= 1);

	text = text_of(t, &len);
	check(cn_topo_parse(text, len, "again", &again, &err) == COLLNET_OK);
	text_again = text_of(again, &len_again);
	check(len == len_again && memcmp(text, text_again, len) == 0);
	free(text);
	free(text_again);
	cn_topo_free(t);
	cn_topo_free(again);
	return 0;
}
