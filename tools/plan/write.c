/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a topology in the format that read.c reads; what it writes reads back as the same
 * topology, vertex by vertex and link by link.
 */
#include "tools/plan/write.h"

#include <inttypes.h>
#include <stdio.h>

#include "topo/topo.h"

/* The largest unit that expresses the rate exactly. */
static void write_rate(uint64_t rate, FILE *f)
{
	static const struct {
		uint64_t factor;
		const char *unit;
	} units[] = { { 1000000000u, "gbit" }, { 1000000u, "mbit" }, { 1000u, "kbit" } };
	size_t i;

	if (rate == 0) {
		fputs("none", f);
		return;
	}
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (rate % units[i].factor == 0) {
			fprintf(f, "%" PRIu64 "%s", rate / units[i].factor, units[i].unit);
			return;
		}
	}
	fprintf(f, "%" PRIu64 "bit", rate);
}

int cn_topo_write(const struct cn_topo *t, FILE *f)
{
	const struct cn_vertex *v;
	const struct cn_topo_link *l;
	uint32_t i;

	for (i = 0; i < t->nvertices; i++) {
		v = &t->vertices[i];
		fprintf(f, "%s %s", v->is_switch ? "switch" : "host", v->name);
		if (v->input_buffered) {
			fprintf(f, " input-buffered");
		}
		if (v->has_mac) {
			fprintf(f, " mac %02x:%02x:%02x:%02x:%02x:%02x", v->mac[0], v->mac[1],
				v->mac[2], v->mac[3], v->mac[4], v->mac[5]);
		}
		fputc('\n', f);
	}
	for (i = 0; i < t->nlinks; i++) {
		l = &t->links[i];
		fprintf(f, "link %s %s rate ", t->vertices[l->a].name, t->vertices[l->b].name);
		write_rate(l->rate, f);
		if (l->buffer != 0) {
			fprintf(f, " buffer %" PRIu32, l->buffer);
		}
		if (l->channels != 1) {
			fprintf(f, " channels %" PRIu32, l->channels);
		}
		fputc('\n', f);
	}
	return ferror(f) || fflush(f) != 0 ? COLLNET_ESYSTEM : COLLNET_OK;
}
