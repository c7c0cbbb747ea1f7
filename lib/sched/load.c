/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts messages on directed links. */
#include "sched/load.h"

#include <stdlib.h>
#include <string.h>

uint32_t *cn_load_by_number(uint32_t n)
{
	uint32_t *nodes = malloc(n * sizeof(*nodes));

	for (uint32_t i = 0; nodes != NULL && i < n; i++) {
		nodes[i] = i;
	}
	return nodes;
}

bool cn_load_begin(struct cn_load *x, const struct cn_tree *t, uint32_t *nodes)
{
	*x = (struct cn_load){ .t = t, .nodes = nodes };
	x->messages = calloc(2 * (size_t)t->n, sizeof(*x->messages));
	x->path = malloc((2 * (size_t)t->height + 1) * sizeof(*x->path));
	return x->nodes != NULL && x->messages != NULL && x->path != NULL;
}

void cn_load_end(struct cn_load *x)
{
	free(x->nodes);
	free(x->messages);
	free(x->path);
}

uint32_t cn_load_add(struct cn_load *x, uint32_t from, uint32_t to)
{
	const uint32_t links = cn_tree_path(x->t, x->nodes[from], x->nodes[to], x->path);

	for (uint32_t i = 0; i < links; i++) {
		x->messages[x->path[i]]++;
	}
	return links;
}

void cn_load_clear(struct cn_load *x)
{
	memset(x->messages, 0, 2 * (size_t)x->t->n * sizeof(*x->messages));
}

uint32_t cn_load_turns(const struct cn_load *x, uint32_t link)
{
	const uint32_t channels = cn_tree_channels(x->t, link);

	return (x->messages[link] + channels - 1) / channels;
}

uint64_t cn_load_rate(const struct cn_load *x, uint32_t link)
{
	return cn_tree_rate(x->t, link / 2);
}
