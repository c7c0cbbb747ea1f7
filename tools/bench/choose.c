/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which algorithms to measure. Where the user names none it is the one that the library would
 * choose, found out here so that the result can name it: from the same facts, the team's nodes in
 * the order of the topology.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sched/select.h"
#include "tools/bench/command.h"

/* The team as the library lays it out. */
struct team {
	struct cn_layout layout;
	uint32_t *storage;
	struct cn_tree *tree;
};

static const struct bench *sorting;

static int by_vertex(const void *pa, const void *pb)
{
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	uint32_t va = sorting->vertex[a], vb = sorting->vertex[b];

	if (va != vb) {
		return va < vb ? -1 : 1;
	}
	return a < b ? -1 : a > b;
}

/* The network, where all nodes are in the topology. */
static int find_tree(const struct bench *b, const uint32_t *order, struct team *t)
{
	uint32_t nodes = b->place.nodes, *hosts;
	struct cn_err err;
	int rc = COLLNET_OK;

	if (b->topo == NULL) {
		return TOOL_OK;
	}
	hosts = calloc(nodes, sizeof(*hosts));
	for (uint32_t i = 0; hosts != NULL && i < nodes; i++) {
		hosts[i] = b->vertex[order[i]];
		if (hosts[i] == CN_TOPO_NONE) {
			free(hosts);
			return TOOL_OK;
		}
	}
	if (hosts != NULL) {
		rc = cn_tree_make(b->topo, hosts, nodes, CN_TOPO_NONE, &t->tree, &err);
	}
	free(hosts);
	if (hosts == NULL || rc != COLLNET_OK) {
		tool_complain("%s", hosts == NULL ? "no memory" : err.text);
		return TOOL_FAILED;
	}
	t->layout.tree = t->tree;
	return TOOL_OK;
}

static int lay_out(const struct bench *b, struct team *t)
{
	uint32_t nodes = b->place.nodes, ranks = b->ranks;
	uint32_t *order, *number, *node_of, *first, *list;
	int rc;

	memset(t, 0, sizeof(*t));
	t->storage = calloc(3 * (size_t)nodes + 2 * (size_t)ranks + 1, sizeof(*t->storage));
	if (t->storage == NULL) {
		return bench_fail(b, COLLNET_ENOMEM, "no memory to choose an algorithm");
	}
	order = t->storage;
	number = order + nodes;
	first = number + nodes;
	node_of = first + nodes + 1;
	list = node_of + ranks;
	for (uint32_t i = 0; i < nodes; i++) {
		order[i] = i;
	}
	if (b->topo != NULL) {
		sorting = b;
		qsort(order, nodes, sizeof(*order), by_vertex);
	}
	for (uint32_t i = 0; i < nodes; i++) {
		number[order[i]] = i;
	}
	for (uint32_t r = 0; r < ranks; r++) {
		node_of[r] = number[b->node_of[r]];
		first[node_of[r] + 1]++;
	}
	for (uint32_t i = 0; i < nodes; i++) {
		first[i + 1] += first[i];
	}
	for (uint32_t i = 0, n = 0; i < nodes; i++) {
		for (uint32_t r = 0; n < first[i + 1]; r++) {
			if (node_of[r] == i) {
				list[n++] = r;
			}
		}
	}
	t->layout = (struct cn_layout){
		.nranks = ranks, .nnodes = nodes, .node_of = node_of, .first = first, .ranks = list
	};
	rc = find_tree(b, order, t);
	return rc;
}

int bench_choose(struct bench *b, uint64_t bytes,
		 const struct cn_algorithm *rows[BENCH_ALGORITHMS_MAX], size_t *count)
{
	const struct cn_plan p = { .op = bench_op_kind(b->o->op), .bytes = bytes };
	const char *text = getenv("COLLNET_ALGORITHM");
	struct cn_prediction all[BENCH_ALGORITHMS_MAX];
	const struct cn_algorithm *named = NULL;
	struct cn_err err;
	struct team t;
	size_t n;
	int rc;

	*count = b->o->nalgorithms;
	if (*count > 0) {
		memcpy(rows, b->o->algorithms, *count * sizeof(rows[0]));
		return TOOL_OK;
	}
	if (!b->o->all && text != NULL &&
	    cn_select_override(text, p.op, &named, &err) != COLLNET_OK) {
		tool_complain("COLLNET_ALGORITHM is %s", err.text);
		return TOOL_USAGE;
	}
	rc = lay_out(b, &t);
	if (rc == TOOL_OK && b->o->all) {
		n = cn_predict(&t.layout, &p, &cn_cost_default, all, BENCH_ALGORITHMS_MAX);
		for (size_t i = 0; i < n; i++) {
			if (all[i].seconds >= 0) {
				rows[(*count)++] = all[i].algorithm;
			} else if (b->rank == 0 && (b->left_out >> all[i].algorithm->id & 1) == 0) {
				b->left_out |= UINT32_C(1) << all[i].algorithm->id;
				tool_complain("left out: %s (%s)", all[i].algorithm->name,
					      all[i].why);
			}
		}
	} else if (rc == TOOL_OK) {
		rows[(*count)++] = named != NULL ? named : cn_select(&t.layout, &p);
	}
	cn_tree_free(t.tree);
	free(t.storage);
	return rc;
}

int bench_predict(struct bench *b, uint64_t bytes, const struct cn_algorithm *row, double *us)
{
	const struct cn_plan p = { .op = row->op,
				   .bytes = bytes,
				   .contention_aware = b->o->contention_aware };
	struct cn_prediction all[BENCH_ALGORITHMS_MAX];
	struct team t;
	size_t n;
	int rc = lay_out(b, &t);

	*us = NAN;
	if (rc == TOOL_OK) {
		n = cn_predict(&t.layout, &p, &cn_cost_default, all, BENCH_ALGORITHMS_MAX);
		for (size_t i = 0; i < n; i++) {
			if (all[i].algorithm == row && all[i].seconds >= 0) {
				*us = all[i].seconds * 1e6;
			}
		}
	}
	cn_tree_free(t.tree);
	free(t.storage);
	return rc;
}
