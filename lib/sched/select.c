/* SPDX-License-Identifier: BSD-2-Clause */
/* Predictions of all algorithms of an operation, and the choice among them. */
#include "sched/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/predict.h"

static const double worth = 0.999; /* of the time of an earlier row */
static const uint32_t mtu = 1500;  /* of the frames of the cost model */

/* Ranks at or below every vertex of the tree; NULL: no memory. */
static uint64_t *ranks_below(const struct cn_layout *l)
{
	const struct cn_tree *t = l->tree;
	uint64_t *below = calloc(t->n, sizeof(*below));

	if (below == NULL) {
		return NULL;
	}
	for (uint32_t k = 0; k < l->nnodes; k++) {
		below[t->host[k]] = l->first[k + 1] - l->first[k];
	}
	for (uint32_t x = t->n; x-- > 1;) {
		below[t->v[x].parent] += below[x];
	}
	return below;
}

/* Without a tree, one switch: the port of the node that has most ranks. */
static double exchange_time(const struct cn_network *n)
{
	const struct cn_layout *l = n->layout;
	double block = cn_cost_wire(n->cost, n->plan->bytes, 0), most = 0;
	uint64_t *below = l->tree != NULL ? ranks_below(l) : NULL;

	if (!cn_network_had(n, below != NULL || l->tree == NULL) || below == NULL) {
		return (double)n->local * (l->nranks - n->local) * block;
	}
	for (uint32_t x = 1; x < l->tree->n; x++) {
		const struct cn_topo_link *link = &l->tree->topo->links[l->tree->v[x].link];
		double messages = (double)below[x] * (double)(l->nranks - below[x]);
		double seconds = messages / link->channels *
				 cn_cost_wire(n->cost, n->plan->bytes, link->rate);

		most = seconds > most ? seconds : most;
	}
	free(below);
	return most;
}

/* Of a frame from a host to the root, over the links that take longest, and down again. */
static double latency(const struct cn_network *n)
{
	const struct cn_tree *t = n->layout->tree;
	uint64_t bytes = cn_cost_frame(n->cost, n->plan->bytes);
	uint32_t links = t != NULL && t->height > 0 ? 2 * t->height : 2;
	double *up = t != NULL ? calloc(t->n, sizeof(*up)) : NULL;
	double most = 0;

	if (!cn_network_had(n, up != NULL || t == NULL) || up == NULL) {
		most = links / 2.0 * cn_cost_wire(n->cost, bytes, n->slowest);
	}
	for (uint32_t x = 1; up != NULL && x < t->n; x++) {
		up[x] = up[t->v[x].parent] + cn_cost_wire(n->cost, bytes, cn_tree_rate(t, x));
		most = up[x] > most ? up[x] : most;
	}
	free(up);
	return n->cost->startup + (links - 1) * n->cost->hop + 2 * most;
}

/* Of a frame of so many bytes from a host to another one of a tree, in the mean; *in_ports: of
 * that, while a port sends it. */
static double mean_latency(const struct cn_layout *l, const struct cn_cost *c, uint64_t bytes,
			   double *in_ports)
{
	const struct cn_tree *t = l->tree;
	const double nodes = l->nnodes;
	double links = 0, seconds = 0;

	for (uint32_t x = 1; x < t->n; x++) {
		const double hosts = t->v[x].hosts,
			     share = 2 * hosts * (nodes - hosts) / (nodes * (nodes - 1));

		links += share;
		seconds += share * cn_cost_wire(c, bytes, cn_tree_rate(t, x));
	}
	*in_ports = seconds;
	return c->startup + (links - 1) * c->hop + seconds;
}

/* The vertices of the nodes; NULL: no memory, or no tree. */
static uint32_t *hosts_of(const struct cn_layout *l)
{
	uint32_t *hosts = l->tree != NULL ? malloc(l->nnodes * sizeof(*hosts)) : NULL;

	for (uint32_t k = 0; hosts != NULL && k < l->nnodes; k++) {
		hosts[k] = l->tree->v[l->tree->host[k]].vertex;
	}
	return hosts;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b; /* COLLNET_WINDOW_OFF is the largest */
}

/* Eq. 4 for all hosts of the topology, which limits every team of some of them. 0, here and below:
 * no memory. */
static uint32_t node_window(const struct cn_topo *t)
{
	return cn_topo_window(t, t->hosts, t->nhosts, 2, NULL);
}

/* As automatic_windows() of coll/team_ready.c, and ports_window() of op_window.c. */
static uint32_t exchange_window(const struct cn_layout *l, const struct cn_cost *c,
				const uint32_t *hosts, enum cn_op_kind op)
{
	const struct cn_topo *t = l->tree->topo;
	double in_ports, seconds = l->nnodes > 1 ? mean_latency(l, c, 0, &in_ports) : 0;
	uint32_t all = node_window(t),
		 window = cn_topo_exchange_window(t, hosts, l->nnodes, cn_cost_ns(seconds), mtu);

	if (op != CN_OP_ALLTOALL) {
		window = smaller(window, cn_topo_window(t, hosts, l->nnodes, 2, NULL));
	} else {
		all = cn_topo_widened(t, t->hosts, t->nhosts, all);
	}
	return smaller(all, window);
}

uint32_t cn_exchange_window(const struct cn_layout *l, const struct cn_cost *c, enum cn_op_kind op)
{
	uint32_t *hosts = hosts_of(l), window = l->tree != NULL ? 0 : COLLNET_WINDOW_OFF;

	if (hosts != NULL) {
		window = exchange_window(l, c, hosts, op);
		free(hosts);
	}
	return window;
}

/* The window that there was memory for, or any. */
static uint32_t had(const struct cn_network *n, uint32_t window)
{
	return cn_network_had(n, window > 0) ? window : 1;
}

static void windows(const struct cn_layout *l, struct cn_network *n)
{
	uint32_t *hosts = hosts_of(l);

	n->window = n->link_window = COLLNET_WINDOW_OFF;
	if (cn_network_had(n, hosts != NULL || l->tree == NULL) && hosts != NULL) {
		const struct cn_topo *t = l->tree->topo;

		n->window = had(n, exchange_window(l, n->cost, hosts, n->plan->op));
		n->link_window = had(n, cn_topo_link_window(t, hosts, l->nnodes));
		if (had(n, cn_topo_window(t, hosts, l->nnodes, 2, NULL)) <=
		    had(n, node_window(t))) {
			n->burst = cn_topo_burst(t, hosts, l->nnodes);
			cn_network_had(n, n->burst != COLLNET_WINDOW_OFF);
		}
		free(hosts);
	}
}

static bool rates_are_known(const struct cn_tree *t)
{
	for (uint32_t x = 1; t != NULL && x < t->n; x++) {
		if (cn_tree_rate(t, x) == 0) {
			return false;
		}
	}
	return t != NULL;
}

bool cn_sent_at_once(const struct cn_layout *l, uint32_t *frames)
{
	uint32_t *hosts, window = 0;

	*frames = 0;
	if (!rates_are_known(l->tree)) {
		return true;
	}
	hosts = hosts_of(l);
	if (hosts != NULL) {
		window = cn_topo_link_window(l->tree->topo, hosts, l->nnodes);
		free(hosts);
	}
	*frames = window == COLLNET_WINDOW_OFF ? 0 : window;
	return window > 0;
}

static uint32_t most_local(const struct cn_layout *l)
{
	uint32_t local = 0;

	for (uint32_t k = 0; k < l->nnodes; k++) {
		const uint32_t here = l->first[k + 1] - l->first[k];

		local = here > local ? here : local;
	}
	return local;
}

uint64_t cn_frames_per_pair(const struct cn_layout *l, uint64_t bytes, uint64_t payload)
{
	const uint64_t local = most_local(l);
	uint64_t messages = local * local;

	if (bytes > 0 && messages * bytes <= CN_STREAM_SHORT) { /* cut as one */
		bytes *= messages;
		messages = 1;
	}
	return messages * (bytes / payload + (bytes % payload > 0 || bytes == 0));
}

static void fill_network(const struct cn_layout *l, const struct cn_plan *p,
			 const struct cn_cost *c, bool *no_memory, struct cn_network *n)
{
	*n = (struct cn_network){ .layout = l, .plan = p, .cost = c, .no_memory = no_memory };
	n->local = most_local(l);
	n->slowest = l->tree != NULL ? cn_cost_slowest(c, l->tree) : (uint64_t)c->rate;
	windows(l, n);
	n->rates_known = rates_are_known(l->tree);
	n->latency = latency(n);
	n->exchange = exchange_time(n);
}

/* Messages that a node sends, of a broadcast those to two children. */
static uint32_t messages(const struct cn_network *n, enum cn_op_kind op)
{
	if (op == CN_OP_BCAST) {
		return n->layout->nnodes > 2 ? 2 : 1;
	}
	return n->local * (cn_op_is_exchange(op) ? n->layout->nranks - n->local : 1);
}

/* As coll/op_window.c. */
static bool goes_at_once(const struct cn_network *n)
{
	return n->plan->op == CN_OP_ALLTOALL &&
	       cn_frames_per_pair(n->layout, n->plan->bytes, n->cost->payload) <= n->burst;
}

/*
 * Seconds until a window of frames that go one way is acknowledged: an acknowledgement is requested
 * when half of them have been sent. The first nodes of a scan receive no data that would clock
 * them.
 */
static double acknowledged(const struct cn_network *n, uint32_t window)
{
	const uint64_t bytes = cn_cost_frame(n->cost, n->plan->bytes);
	const uint32_t links = n->layout->tree != NULL ? 2 * n->layout->tree->height : 2;

	return n->latency + (links - 1) * n->cost->hop +
	       window / 2.0 * cn_cost_wire(n->cost, bytes, n->slowest);
}

/*
 * A window lets so many frames pass per round trip, or, where the peers' data is its clock, per
 * latency: that of near and far ones, in the mean. It does not matter where a node sends less than
 * a window.
 */
static double pace(const struct cn_network *n, const struct cn_algorithm *a)
{
	const enum cn_op_kind op = cn_op_base(n->plan->op);
	const double frames = (double)(1 + n->plan->bytes / n->cost->payload) * messages(n, op);
	uint32_t window = COLLNET_WINDOW_OFF, senders = 1;

	switch (a->window_rule) {
	case CN_WINDOW_EXCHANGE:
		window = goes_at_once(n) ? COLLNET_WINDOW_OFF : n->window;
		break;
	case CN_WINDOW_LINK:
	case CN_WINDOW_TWO_WAY:
		window = n->link_window;
		break;
	case CN_WINDOW_FAN_IN:
		if (!cn_network_had(n,
				    cn_fan_in(n->layout, &senders, &window, NULL) == COLLNET_OK)) {
			return 0;
		}
		break;
	default:
		break;
	}
	if (window == COLLNET_WINDOW_OFF || frames <= window) {
		return 0;
	}
	if (a->window_rule == CN_WINDOW_EXCHANGE && cn_op_is_exchange(op)) {
		double in_ports = n->latency, mean = n->latency;

		if (n->layout->tree != NULL && n->layout->nnodes > 1) {
			mean = mean_latency(n->layout, n->cost,
					    cn_cost_frame(n->cost, n->plan->bytes), &in_ports);
		}
		/* an all-to-all has room besides for what is in cables, where rates are known */
		return (n->rates_known && op == CN_OP_ALLTOALL ? in_ports : mean) / window;
	}
	if (n->rates_known && a->window_rule != CN_WINDOW_EXCHANGE) {
		return 0; /* so do these, for a whole round trip */
	}
	if (a->window_rule == CN_WINDOW_EXCHANGE && (op == CN_OP_SCAN || op == CN_OP_EXSCAN)) {
		return acknowledged(n, window) / window;
	}
	return (n->latency + n->cost->startup) / ((double)window * senders);
}

static double combine_time(const struct cn_cost *c, const struct cn_plan *p)
{
	return cn_op_is_combined_by_daemon(p->op, p->bytes, p->user_defined != 0) ? c->combine_short
										  : c->combine;
}

static size_t predict(const struct cn_layout *l, const struct cn_plan *p, const struct cn_cost *c,
		      struct cn_prediction *out, bool *no_memory)
{
	struct cn_network n;
	size_t rows, count = 0;
	const struct cn_algorithm *a = cn_algorithms(&rows);
	uint32_t at_once;

	fill_network(l, p, c, no_memory, &n);
	cn_network_had(&n, cn_sent_at_once(l, &at_once));
	for (size_t i = 0; i < rows; i++) {
		struct cn_prediction *x = &out[count];

		if (a[i].op != cn_op_base(p->op)) {
			continue;
		}
		*x = (struct cn_prediction){ .algorithm = &a[i], .seconds = -1 };
		if (a[i].needs_tree && l->tree == NULL) {
			snprintf(x->why, sizeof(x->why), "it needs the topology");
		} else {
			struct cn_cost paced = *c;

			paced.combine = combine_time(c, p);
			paced.pace = pace(&n, &a[i]);
			paced.at_once = a[i].window_rule == CN_WINDOW_LINK ? at_once : 0;
			n.cost = &paced;
			a[i].predict(&n, x);
			n.cost = c;
		}
		count++;
	}
	return count;
}

size_t cn_predict(const struct cn_layout *l, const struct cn_plan *p, const struct cn_cost *c,
		  struct cn_prediction out[CN_ALGORITHMS_MAX])
{
	bool no_memory = false;

	return predict(l, p, c, out, &no_memory);
}

bool cn_select_predicts(enum cn_op_kind op)
{
	return op != CN_OP_ALLTOALLV && op != CN_OP_SCATTERV && op != CN_OP_GATHERV;
}

const struct cn_algorithm *cn_select(const struct cn_layout *l, const struct cn_plan *p)
{
	const struct cn_cost cost = cn_cost_of(l);
	struct cn_prediction all[CN_ALGORITHMS_MAX], *best = NULL;
	size_t n;
	bool no_memory = false;

	if (!cn_select_predicts(p->op)) {
		return cn_algorithm_find(p->op, NULL);
	}
	n = predict(l, p, &cost, all, &no_memory);
	if (no_memory) {
		return NULL; /* other nodes, with memory, could select another one */
	}
	for (size_t i = 0; i < n; i++) {
		if (all[i].seconds < 0 || all[i].algorithm->baseline) {
			continue;
		}
		if (best == NULL || all[i].seconds < worth * best->seconds) {
			best = &all[i];
		}
	}
	return best != NULL ? best->algorithm : cn_algorithm_find(p->op, NULL);
}

int cn_select_failed(enum cn_op_kind op, struct cn_err *err)
{
	return cn_fail(err, COLLNET_ENOMEM, "no memory to select an algorithm for %s",
		       cn_op_name(op));
}
