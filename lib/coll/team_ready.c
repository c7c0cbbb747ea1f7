/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A team becomes ready: the order of its nodes, its layout, tree, contention-aware numbers and
 * windows. Every node computes them from the same input, so all nodes get the same result.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/engine_state.h"
#include "coll/op.h"
#include "coll/team.h"
#include "proto/wire.h"

/* A longer round trip says that a processor was late, and nothing of cables. */
static const cn_time rtt_most = 200 * CN_US;

/* A node of the team before the nodes are put in order. */
struct ready_node {
	struct cn_team_node node;
	const struct cn_join *join; /* NULL: this node */
};

/* By place in the topology file, then by address: the same order everywhere. */
static int by_place(const void *a, const void *b)
{
	const struct ready_node *x = a, *y = b;

	if (x->node.vertex != y->node.vertex) {
		return x->node.vertex < y->node.vertex ? -1 : 1;
	}
	return memcmp(x->node.mac, y->node.mac, 6);
}

static struct ready_node *ready_nodes(struct cn_team *t, struct cn_join **joins,
				      struct cn_peer **peers, uint32_t n)
{
	const struct cn_node_config *c = &t->engine->config.node;
	const struct cn_topo *topo = t->topo;
	struct ready_node *all = calloc((size_t)n + 1, sizeof(*all));

	for (uint32_t i = 0; all != NULL && i <= n; i++) {
		struct cn_team_node *k = &all[i].node;
		struct collnet_node_info info;

		if (i < n) {
			cn_peer_info(peers[i], 0, &info);
			k->peer = cn_node_connected(t->transport->node, peers[i]);
			k->port = joins[i]->port;
			k->left = joins[i]->first_left;
			k->unexpected.started = joins[i]->started;
			all[i].join = joins[i];
			memcpy(k->mac, info.mac, 6);
		} else {
			k->port = t->transport->port;
			memcpy(k->mac, c->mac, 6);
		}
		k->name = i < n ? cn_peer_name(peers[i]) : c->name;
		k->vertex = topo != NULL ? cn_topo_find(topo, k->name) : CN_TOPO_NONE;
	}
	if (all != NULL) {
		qsort(all, (size_t)n + 1, sizeof(*all), by_place);
	}
	return all;
}

/* A node's name outlives what the transport knows of it. */
static bool copy_names(struct cn_team *t, uint32_t n)
{
	const struct cn_topo *topo = t->topo;

	for (uint32_t k = 0; k < n; k++) {
		struct cn_team_node *node = &t->nodes[k];

		if (node->vertex != CN_TOPO_NONE) {
			node->name = topo->vertices[node->vertex].name;
			continue;
		}
		if (t->names == NULL) {
			t->names = calloc(n, sizeof(*t->names));
		}
		if (t->names == NULL) {
			return false;
		}
		snprintf(t->names[k], sizeof(t->names[k]), "%s", node->name);
		node->name = t->names[k];
	}
	return true;
}

static void place_ranks(struct cn_team *t, const struct ready_node *all, uint32_t n,
			uint32_t *node_of, uint32_t *first, uint32_t *ranks)
{
	for (uint32_t k = 0; k < n; k++) {
		const struct cn_join *j = all[k].join;

		if (j == NULL) {
			t->me = k;
			for (const struct cn_member *m = t->members; m != NULL; m = m->next) {
				node_of[m->rank] = k;
			}
			continue;
		}
		for (uint32_t r = 0; r < j->nranges; r++) {
			for (uint32_t i = 0; i < j->ranges[r].n; i++) {
				node_of[cn_range_rank(&j->ranges[r], i)] = k;
			}
		}
	}
	/* Node by node, ascending within. */
	for (uint32_t r = 0; r < t->ranks; r++) {
		first[node_of[r] + 1]++;
	}
	for (uint32_t k = 0; k < n; k++) {
		first[k + 1] += first[k];
	}
	for (uint32_t r = 0; r < t->ranks; r++) {
		ranks[first[node_of[r]]++] = r;
	}
	for (uint32_t k = n; k > 0; k--) {
		first[k] = first[k - 1];
	}
	first[0] = 0;
}

cn_time cn_team_in_cables(const struct cn_team *t, cn_time rtt)
{
	rtt = cn_min_time(rtt, rtt_most);
	return rtt > t->serialisation ? rtt - t->serialisation : 0;
}

/* The round trip to a node in the mean: of short frames, as those of the wire-up were, and as far
 * as full ones are in cables. */
static void mean_round_trips(struct cn_team *t, struct cn_peer **peers, uint32_t n)
{
	cn_time all = 0, in_cables = 0;

	for (uint32_t i = 0; i < n; i++) {
		const cn_time rtt = cn_peer_least_rtt(peers[i]);

		all += cn_min_time(rtt, rtt_most);
		in_cables += cn_team_in_cables(t, rtt);
	}
	t->rtt = n > 0 ? in_cables / n : 0;
	t->rtt_short = n > 0 ? all / n : 0;
}

/* The longest path, in links. */
static uint32_t longest_path(const struct cn_topo *topo, const uint32_t *hosts, uint32_t n)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t links = 0;

		for (uint32_t v = hosts[i]; v != topo->root; v = topo->vertices[v].parent) {
			links++;
		}
		most = links > most ? links : most;
	}
	return 2 * most;
}

/* What the ports hold, and frames besides that are in cables. False: no memory. */
static bool automatic_windows(struct cn_team *t, const struct cn_topo *topo, const uint32_t *hosts,
			      uint32_t n, struct cn_peer **peers)
{
	const uint32_t mtu = t->engine->config.node.mtu,
		       w = cn_topo_window(topo, hosts, n, 2, NULL),
		       all = cn_topo_widened(topo, topo->hosts, topo->nhosts, t->engine->window);
	const double share = cn_topo_share(topo, hosts, n, true),
		     cable = cn_topo_share(topo, hosts, n, false);
	uint32_t exchange, transit;
	bool had;

	if (share < 0 || cable < 0) {
		return false;
	}
	t->window[CN_WINDOW_LINK] = cn_topo_link_window(topo, hosts, n);
	t->window[CN_WINDOW_TWO_WAY] = t->window[CN_WINDOW_LINK];
	t->pair_window = cn_topo_pair_window(topo, hosts, n);
	t->port_holds = cn_topo_port_holds(topo, hosts, n);
	t->port_carries = cn_topo_transit(cable, t->engine->config.node.pto_min / 4, 1);
	/* where all hosts of the file have a smaller window, others use the ports, too */
	t->burst = w <= t->engine->window ? cn_topo_burst(topo, hosts, n) : 0;
	t->few = w <= t->engine->window ? cn_topo_few(topo, hosts, n) : 0;
	t->rates_known = cn_topo_transit(cable, 1000 * CN_MS, 1) > 0;
	t->frames_per_ms = cn_topo_transit(cable, CN_MS, mtu);
	t->exchanged_per_ms = cn_topo_transit(share, CN_MS, mtu);
	t->path_links = longest_path(topo, hosts, n);
	if (t->frames_per_ms > 0) {
		t->serialisation = t->path_links * CN_MS / t->frames_per_ms;
	}
	mean_round_trips(t, peers, n - 1);
	exchange = cn_topo_exchange_window(topo, hosts, n, t->rtt_short / 2, mtu);
	exchange = exchange < all ? exchange : all;
	had = w > 0 && exchange > 0 && t->window[CN_WINDOW_LINK] > 0 &&
	      t->burst != COLLNET_WINDOW_OFF && t->few != COLLNET_WINDOW_OFF;
	/* two where Eq. 4 allows one, unless a frame in a cable makes it two */
	t->by_eq4 = exchange == 2 && (w == 1 || t->engine->window == 1) ? 1 : exchange;
	transit = cn_topo_transit(share, t->rtt / 2, mtu);
	t->window[CN_WINDOW_EXCHANGE] = transit > 0 ? t->by_eq4 : exchange;
	if (exchange != COLLNET_WINDOW_OFF) {
		/* what comes is its clock: a frame is in flight for half a round trip */
		cn_adaptive_window_init_known(&t->known, t->window[CN_WINDOW_EXCHANGE],
					      t->window[CN_WINDOW_EXCHANGE] + transit);
		t->adaptive = &t->known;
	}
	return had;
}

/* True if frames of this node may pass a link that is slower than its own; false if rates are not
 * known. */
static bool meets_slower(const struct cn_team *t)
{
	const uint64_t own = cn_tree_rate(t->tree, t->tree->host[t->me]);

	for (uint32_t x = 1; x < t->tree->n; x++) {
		if (cn_tree_rate(t->tree, x) != 0 && cn_tree_rate(t->tree, x) < own) {
			return true;
		}
	}
	return false;
}

/* The network's part: tree, contention-aware numbers and W_g, if the topology knows all hosts. */
static int place_in_topology(struct cn_team *t, uint32_t n, uint32_t *logical,
			     struct cn_peer **peers, struct cn_err *err)
{
	const struct cn_topo *topo = t->topo;
	uint32_t *hosts;
	int r = COLLNET_OK;

	t->window[CN_WINDOW_NONE] = COLLNET_WINDOW_OFF;
	t->window[CN_WINDOW_EXCHANGE] = t->window[CN_WINDOW_LINK] = t->window[CN_WINDOW_TWO_WAY] =
		t->by_eq4 = t->engine->window;
	t->window[CN_WINDOW_FAN_IN] = cn_topo_fan_in(NULL, NULL, n, &t->senders);
	t->pair_window = COLLNET_WINDOW_OFF;
	t->adaptive = t->engine->config.window == COLLNET_WINDOW_AUTO ? &t->engine->adaptive : NULL;
	if (topo == NULL) {
		return COLLNET_OK;
	}
	hosts = calloc(n, sizeof(*hosts));
	if (hosts == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a team");
	}
	for (uint32_t k = 0; k < n; k++) {
		hosts[k] = t->nodes[k].vertex;
		if (hosts[k] == CN_TOPO_NONE) {
			cn_job_log(t, COLLNET_LOG_WARNING,
				   "node %s is not in the topology file: job %s runs "
				   "without knowing its network",
				   t->nodes[k].name, t->job);
			if (t->adaptive != NULL && t->engine->window != COLLNET_WINDOW_OFF) {
				cn_adaptive_window_init_known(&t->known, t->engine->window,
							      t->engine->window);
				t->adaptive = &t->known;
			}
			goto out;
		}
	}
	t->adaptive = NULL;
	t->window[CN_WINDOW_FAN_IN] = cn_topo_fan_in(topo, hosts, n, &t->senders);
	if (t->window[CN_WINDOW_FAN_IN] == 0 || (t->engine->config.window == COLLNET_WINDOW_AUTO &&
						 !automatic_windows(t, topo, hosts, n, peers))) {
		r = cn_fail(err, COLLNET_ENOMEM, "no memory for a team");
		goto out;
	}
	r = cn_tree_make(topo, hosts, n, CN_TOPO_NONE, &t->tree, err);
	if (r == COLLNET_OK) {
		t->layout.tree = t->tree;
		t->meets_slower = meets_slower(t);
		r = cn_number_nodes(topo, hosts, n, logical, err);
	}
	if (r == COLLNET_OK) {
		t->layout.logical = logical;
	}
out:
	free(hosts);
	return r;
}

/* Of two rates, of which 0 is not known. */
static uint32_t slower(uint32_t a, uint32_t b)
{
	return b == 0 || (a != 0 && a < b) ? a : b;
}

/* A session that ended while the team was forming is not established again. */
static int check_sessions(const struct cn_team *t, struct cn_err *err)
{
	for (uint32_t k = 0; k < t->layout.nnodes; k++) {
		const struct cn_team_node *n = &t->nodes[k];

		if (k != t->me && n->peer == NULL && !n->left.any) {
			return cn_fail(err, COLLNET_EPEER,
				       "nodes %s and %s lost each other before the team was ready",
				       t->engine->config.node.name, n->name);
		}
	}
	return COLLNET_OK;
}

int cn_team_ready(struct cn_team *t, struct cn_join **joins, struct cn_peer **peers, uint32_t n,
		  struct cn_err *err)
{
	struct ready_node *all = ready_nodes(t, joins, peers, n);
	uint32_t nodes = n + 1, *s;
	int r;

	t->npeers = cn_node_peers(t->engine->own.node);
	t->nodes = calloc(nodes, sizeof(*t->nodes));
	t->storage = s = calloc(2 * (size_t)t->ranks + 2 * (size_t)nodes + 1, sizeof(*s));
	t->local = calloc(t->nlocal, sizeof(struct cn_member *));
	t->node_by_peer = malloc(((size_t)t->npeers + 1) * sizeof(*t->node_by_peer));
	if (all == NULL || t->nodes == NULL || s == NULL || t->local == NULL ||
	    t->node_by_peer == NULL) {
		free(all);
		free(t->nodes);
		t->nodes = NULL; /* nothing was placed: others are told as by a team that forms */
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a team of %u ranks", t->ranks);
	}
	for (uint32_t i = 0; i < n; i++) {
		t->link_mbit = slower(t->link_mbit, joins[i]->link_mbit);
	}
	t->layout = (struct cn_layout){
		.nranks = t->ranks,
		.nnodes = nodes,
		.node_of = s,
		.ranks = s + t->ranks,
		.first = s + 2 * (size_t)t->ranks,
		.headers = cn_wire_overhead(t->engine->config.node.encapsulation,
					    t->engine->config.node.authenticated),
		.rate = UINT64_C(1000000) * t->link_mbit,
	};
	place_ranks(t, all, nodes, s, s + 2 * (size_t)t->ranks, s + t->ranks);
	memset(t->node_by_peer, 0xff, ((size_t)t->npeers + 1) * sizeof(*t->node_by_peer));
	for (uint32_t k = 0; k < nodes; k++) {
		t->run = cn_mix64(t->run ^ (all[k].join != NULL ? all[k].join->id : t->id));
		t->nodes[k] = all[k].node;
		if (t->nodes[k].peer != NULL) {
			t->node_by_peer[cn_peer_index(cn_engine_peer_of(t->nodes[k].peer)->peer)] =
				(uint16_t)k;
		}
	}
	free(all);
	if (!copy_names(t, nodes)) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a team of %u ranks", t->ranks);
	}
	r = check_sessions(t, err);
	if (r == COLLNET_OK) {
		r = place_in_topology(t, nodes, s + 2 * (size_t)t->ranks + nodes + 1, peers, err);
	}
	if (r != COLLNET_OK) {
		return r;
	}
	cn_team_formed(t, CN_TEAM_READY);
	cn_op_record_started(t);
	t->wireup.wake_at = CN_NEVER;
	cn_wireup_remove(t, false);
	cn_team_touch(t);
	cn_job_log(t, COLLNET_LOG_INFO, "job %s: %u rank%s on %u node%s %s there", t->job, t->ranks,
		   t->ranks == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s",
		   t->ranks == 1 ? "is" : "are");
	for (struct cn_member *m = t->members, **at = t->local; m != NULL; m = m->next) {
		*at++ = m;
	}
	for (uint32_t k = 0; k < nodes; k++) {
		const struct cn_left *l = &t->nodes[k].left;

		if (l->dead) {
			cn_team_rank_left(t, k, l->rank, l->after, true);
		}
	}
	for (struct cn_member *m = t->members; m != NULL; m = m->next) {
		struct cn_done *d = m->joining;

		m->joining = NULL;
		if (d != NULL) {
			d->fn(d, COLLNET_OK, "");
		}
	}
	return COLLNET_OK;
}
