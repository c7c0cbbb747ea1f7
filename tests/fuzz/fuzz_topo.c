/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as a topology file, ours or Slurm's: refused with a message that names the file, or a
 * graph that written out and read again is the same graph, and that has spanning trees of all
 * kinds, trees of teams and a drawing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/tree.h"
#include "tools/plan/draw.h"
#include "tools/plan/write.h"
#include "tools/plan/span.h"

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

/* What the parsed graph's own tree, and any other one, promises. */
static void check_tree(const struct cn_topo *t)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < t->nlinks; i++) {
		used += cn_topo_in_tree(t, i);
	}
	check(used == t->nvertices - 1 && cn_topo_unused(t) == t->nlinks - used);
	check(t->vertices[t->root].hosts == t->nhosts && t->order[0] == t->root);
}

static void use_trees(const struct cn_topo *t, uint64_t seed)
{
	struct cn_err err = { 0 };

	for (int kind = CN_TREE_BFS; kind <= CN_TREE_SHORTEST; kind++) {
		struct cn_topo *c = NULL, *p = NULL;

		check(cn_topo_span(t, (enum cn_tree_kind)kind, CN_TOPO_NONE, seed, &c, &err) ==
		      COLLNET_OK);
		check_tree(c);
		check(cn_topo_prune(c, &p, &err) == COLLNET_OK);
		check_tree(p);
		check(cn_topo_unused(p) == 0);
		cn_topo_free(p);
		cn_topo_free(c);
	}
}

/* The windows of a team, and what its links' rates say. */
static void use_windows(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	uint32_t link, senders = 0;

	check(cn_topo_window(t, hosts, n, 2, &link) >= 1);
	check(link == CN_TOPO_NONE || link < t->nlinks);
	check(cn_topo_slowest_window(t, hosts, n, 1000, 1500, &link) >= 1);
	check(link == CN_TOPO_NONE || link < t->nlinks);
	check(cn_topo_link_window(t, hosts, n) >= 1);
	check(cn_topo_pair_window(t, hosts, n) >= 1);
	check(cn_topo_fan_in(t, hosts, n, &senders) >= 1 && senders >= 1);
	(void)cn_topo_holds_two(t, hosts, n);
	(void)cn_topo_port_holds(t, hosts, n);
	check(cn_topo_few(t, hosts, n) != COLLNET_WINDOW_OFF);
	check(cn_topo_share(t, hosts, n, true) >= 0);
	check(cn_topo_share(t, hosts, n, false) >= 0);
}

/* The tree of some of the hosts; the input's size chooses which. */
static void use_team(const struct cn_topo *t, uint64_t seed)
{
	uint32_t n = 0, links, *hosts = malloc(t->nhosts * sizeof(*hosts)), *path;
	struct cn_tree *tree = NULL;
	struct cn_err err = { 0 };

	check(hosts);
	for (uint32_t i = 0; i < t->nhosts; i++) {
		if (n == 0 || cn_random(&seed) % 3 != 0) {
			hosts[n++] = t->hosts[i];
		}
	}
	check(cn_tree_make(t, hosts, n, CN_TOPO_NONE, &tree, &err) == COLLNET_OK);
	check(tree->v[0].size == tree->n && tree->v[0].hosts == n);
	for (uint32_t x = 0; x < tree->n; x++) {
		(void)cn_tree_rate(tree, x);
	}
	use_windows(t, hosts, n);
	path = malloc((2 * (size_t)tree->height + 1) * sizeof(*path));
	check(path);
	for (uint32_t i = 0; i < n && i < 8; i++) {
		links = cn_tree_path(tree, i, n - 1 - i, path);
		check(links == 0 || cn_tree_hops(tree, i, n - 1 - i) == links - 1);
	}
	free(path);
	free(hosts);
	cn_tree_free(tree);
}

static void use_drawing(const struct cn_topo *t)
{
	struct cn_drawn m[8] = { { 0 } };
	uint32_t n = t->nhosts < 8 ? t->nhosts : 8;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	for (uint32_t i = 0; i < n; i++) {
		m[i].from = t->hosts[i];
		m[i].to = t->hosts[t->nhosts - 1 - i];
		m[i].colour = i;
		m[i].label = t->vertices[m[i].to].name;
	}
	check(f && cn_topo_draw(t, m, n, "title", f) == COLLNET_OK && fclose(f) == 0);
	check(len > 2 && strcmp(text + len - 2, "}\n") == 0);
	free(text);
}

/* As text, and read again: the same text. */
static void write_and_read(const struct cn_topo *t)
{
	struct cn_topo *again = NULL;
	struct cn_err err = { 0 };
	size_t len, len_again;
	char *text = text_of(t, &len), *text_again;

	check(cn_topo_parse(text, len, "again", &again, &err) == COLLNET_OK);
	text_again = text_of(again, &len_again);
	check(len == len_again && memcmp(text, text_again, len) == 0);
	check(again->root == t->root &&
	      memcmp(again->order, t->order, t->nvertices * sizeof(*t->order)) == 0);
	free(text);
	free(text_again);
	cn_topo_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	uint32_t least;
	int rc;

	if (cn_topo_is_slurm((const char *)data, size)) {
		rc = cn_topo_parse_slurm((const char *)data, size, "input", &t, &err);
	} else {
		rc = cn_topo_parse((const char *)data, size, "input", &t, &err);
	}
	if (rc != COLLNET_OK) {
		check(!t && err.code < 0 && strncmp(err.text, "input:", 6) == 0);
		return 0;
	}
	check(t->nhosts <= t->nvertices && t->nvertices <= CN_TOPO_VERTICES_MAX);
	for (uint32_t i = 0; i < t->nhosts; i++) {
		check(cn_topo_find(t, t->vertices[t->hosts[i]].name) == t->hosts[i]);
		(void)cn_topo_switch_of(t, t->hosts[i]);
		(void)cn_topo_host_rate(t, t->hosts[i]);
	}
	least = cn_topo_exchange_window(t, t->hosts, t->nhosts, 0, 1);
	check_tree(t);
	write_and_read(t);
	if (t->nvertices <= 5000) { /* what takes longer finds no more */
		use_trees(t, size);
		use_team(t, size);
		use_drawing(t);
	}
	cn_topo_input_buffered(t);
	check(least >= 1 && cn_topo_exchange_window(t, t->hosts, t->nhosts, 0, 1) <= least);
	cn_topo_free(t);
	return 0;
}
