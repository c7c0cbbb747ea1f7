/* SPDX-License-Identifier: BSD-2-Clause */
/* Drawings of a topology. */
#ifndef CN_DRAW_H
#define CN_DRAW_H

#include <stdio.h>

#include "topo/topo.h"

/* A message to be drawn along its path. */
struct cn_drawn {
	uint32_t from, to; /* vertices of hosts */
	uint32_t colour;   /* index; equal ones look alike */
	const char *label; /* may be NULL */
};
/* Graphviz DOT: switches, hosts, rates, links that the tree does not use dashed; and messages. */
int cn_topo_draw(const struct cn_topo *t, const struct cn_drawn *m, uint32_t n, const char *title,
		 FILE *f);

#endif
