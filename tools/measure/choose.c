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
#include "tools/measure/measure.h"

/* The team as the library lays it out. */
struct team {
	struct cn_layout layout;
	uint32_t *storage;
	struct cn_tree *tree;
};

static const struct measure *sorting;

static int by_vertex(const void *pa, const void *pb)
{
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	uint32_t va = sorting->place.vertex[a], vb = sorting->place.vertex[b];

	if (va != vb) {
		return va < vb ? -1 : 1;
	}
	return a < b ? -1 : a > b;
}

/* What the nodes know of the network; NULL: nothing. */
static const struct cn_topo *known(const struct measure *m)
{
	return m->place.unaware ? NULL : m->place.topo;
}

/* The network, where all nodes are in the topology. */
static int find_tree(const struct measure *m, const uint32_t *order, struct team *t)
{
	uint32_t nodes = m->place.nodes, *hosts;
	struct cn_err err;
	int rc = COLLNET_OK;

	if (known(m) == NULL) {
		return TOOL_OK;
	}
	hosts = calloc(nodes, sizeof(*hosts));
	for (uint32_t i = 0; hosts != NULL && i < nodes; i++) {
		hosts[i] = m->place.vertex[order[i]];
		if (hosts[i] == CN_TOPO_NONE) {
			free(hosts);
			return TOOL_OK;
		}
	}
	if (hosts != NULL) {
		rc = cn_tree_make(m->place.topo, hosts, nodes, CN_TOPO_NONE, &t->tree, &err);
	}
	free(hosts);
	if (hosts == NULL || rc != COLLNET_OK) {
		tool_complain("%s", hosts == NULL ? "no memory" : err.text);
		return TOOL_FAILED;
	}
	t->layout.tree = t->tree;
	return TOOL_OK;
}

static int lay_out(const struct measure *m, struct team *t)
{
	uint32_t nodes = m->place.nodes, ranks = m->place.ranks;
	uint32_t *order, *number, *node_of, *first, *list;

	memset(t, 0, sizeof(*t));
	t->storage = calloc(3 * (size_t)nodes + 2 * (size_t)ranks + 1, sizeof(*t->storage));
	if (t->storage == NULL) {
		tool_complain("no memory to choose an algorithm");
		return TOOL_FAILED;
	}
	order = t->storage;
	number = order + nodes;
	first = number + nodes;
	node_of = first + nodes + 1;
	list = node_of + ranks;
	for (uint32_t i = 0; i < nodes; i++) {
		order[i] = i;
	}
	if (known(m) != NULL) {
		sorting = m;
		qsort(order, nodes, sizeof(*order), by_vertex);
	}
	for (uint32_t i = 0; i < nodes; i++) {
		number[order[i]] = i;
	}
	for (uint32_t r = 0; r < ranks; r++) {
		node_of[r] = number[m->place.node_of[r]];
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
		.nranks = ranks,
		.nnodes = nodes,
		.node_of = node_of,
		.first = first,
		.ranks = list,
		.headers = m->headers,
		.rate = m->link_rate,
	};
	return find_tree(m, order, t);
}

int measure_choose(struct measure *m, uint64_t bytes,
		   const struct cn_algorithm *rows[CN_ALGORITHMS_MAX], size_t *count)
{
	const struct cn_plan p = { .op = measure_op_kind(m->o->op), .bytes = bytes };
	struct cn_cost cost;
	const char *text = getenv("COLLNET_ALGORITHM");
	struct cn_prediction all[CN_ALGORITHMS_MAX];
	struct cn_choice named;
	struct cn_err err;
	struct team t;
	size_t n;
	int rc;

	m->modifiers = (struct cn_choice){ NULL, m->o->permutation, m->o->contention_aware };
	*count = m->o->nalgorithms;
	if (*count > 0) {
		memcpy(rows, m->o->algorithms, *count * sizeof(rows[0]));
		return TOOL_OK;
	}
	if (cn_choice_override(!m->o->all && text != NULL ? text : "", p.op, &named, &err) !=
	    COLLNET_OK) {
		tool_complain("COLLNET_ALGORITHM is %s", err.text);
		return TOOL_USAGE;
	}
	if (m->modifiers.permutation == CN_PERM_AUTO) {
		m->modifiers.permutation = named.permutation;
	}
	m->modifiers.contention_aware &= named.contention_aware;
	rc = lay_out(m, &t);
	if (rc == TOOL_OK && m->o->all) {
		cost = cn_cost_of(&t.layout);
		n = cn_predict(&t.layout, &p, &cost, all);
		for (size_t i = 0; i < n; i++) {
			if (all[i].seconds >= 0) {
				rows[(*count)++] = all[i].algorithm;
			} else if (m->rank == 0 && (m->omitted >> all[i].algorithm->id & 1) == 0) {
				m->omitted |= UINT32_C(1) << all[i].algorithm->id;
				tool_complain("left out: %s (%s)", all[i].algorithm->name,
					      all[i].why);
			}
		}
	} else if (rc == TOOL_OK) {
		rows[(*count)++] = named.algorithm != NULL ? named.algorithm
							   : cn_select(&t.layout, &p);
		if (rows[*count - 1] == NULL) {
			tool_complain("no memory to select an algorithm");
			rc = TOOL_FAILED;
		}
	}
	cn_tree_free(t.tree);
	free(t.storage);
	return rc;
}

int measure_predict(struct measure *m, uint64_t bytes, const struct cn_algorithm *row, double *us)
{
	const struct cn_plan p = { .op = row->op,
				   .bytes = bytes,
				   .contention_aware = m->modifiers.contention_aware };
	struct cn_cost cost;
	struct cn_prediction all[CN_ALGORITHMS_MAX];
	struct team t;
	size_t n;
	int rc = lay_out(m, &t);

	*us = NAN;
	if (rc == TOOL_OK) {
		cost = cn_cost_of(&t.layout);
		n = cn_predict(&t.layout, &p, &cost, all);
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

struct cn_choice measure_choice(const struct measure *m, const struct cn_algorithm *row)
{
	if (!row->permuted) {
		return (struct cn_choice){ row, CN_PERM_AUTO, true };
	}
	return (struct cn_choice){ row, m->modifiers.permutation, m->modifiers.contention_aware };
}

const bool *measure_contention_aware(const struct measure *m, const struct cn_algorithm *row)
{
	static const bool always = true;

	return row->permuted ? &m->modifiers.contention_aware : &always;
}

const char *measure_permutation(const struct measure *m, const struct cn_algorithm *row)
{
	enum cn_permutation p = m->modifiers.permutation;

	if (!row->permuted) {
		return NULL;
	}
	if (p == CN_PERM_AUTO) {
		p = row->permutation;
	}
	if (cn_perm_resolve(p, m->place.nodes, &p, NULL) != COLLNET_OK) {
		return NULL;
	}
	return cn_perm_name(p);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b; /* COLLNET_WINDOW_OFF is the largest */
}

/* The automatic window for these nodes by the topology. */
static uint32_t topo_window(const struct measure *m, enum cn_window_rule rule)
{
	const struct cn_topo *topo = known(m);
	const uint32_t n = m->place.nodes, *vertices = m->place.vertex;
	uint32_t window = COLLNET_WINDOW_OFF, i, senders;
	struct team t;

	for (i = 0; i < n && topo != NULL; i++) {
		topo = vertices[i] != CN_TOPO_NONE ? topo : NULL;
	}
	if (rule == CN_WINDOW_FAN_IN) {
		return cn_topo_fan_in(topo, vertices, n, &senders);
	}
	if (topo == NULL || rule == CN_WINDOW_NONE) {
		return COLLNET_WINDOW_OFF;
	}
	if (rule != CN_WINDOW_EXCHANGE) {
		return cn_topo_link_window(topo, vertices, n);
	}
	if (lay_out(m, &t) == TOOL_OK) {
		const struct cn_cost cost = cn_cost_of(&t.layout);

		window = cn_exchange_window(&t.layout, &cost, measure_op_kind(m->o->op));
	}
	cn_tree_free(t.tree);
	free(t.storage);
	return window;
}

/*
 * The global window that an algorithm ran with: its own, and under a daemon whose window was set
 * by hand also that. The node's window shows which: by hand, it differs from Eq. 4.
 * COLLNET_WINDOW_AUTO: it adapted to losses.
 */
uint32_t measure_window(const struct measure *m, const struct cn_algorithm *row)
{
	const struct cn_topo *topo = known(m);
	uint32_t by_hand = COLLNET_WINDOW_OFF, own = m->o->window;

	if (topo == NULL ||
	    m->node_window != cn_topo_window(topo, topo->hosts, topo->nhosts, 2, NULL)) {
		by_hand = m->node_window;
	}
	if (own == COLLNET_WINDOW_AUTO) {
		own = topo_window(m, row->window_rule);
	}
	if (own == COLLNET_WINDOW_OFF && by_hand == COLLNET_WINDOW_OFF && topo == NULL &&
	    m->o->window == COLLNET_WINDOW_AUTO && row->window_rule == CN_WINDOW_EXCHANGE) {
		return COLLNET_WINDOW_AUTO;
	}
	return smaller(own, by_hand);
}
