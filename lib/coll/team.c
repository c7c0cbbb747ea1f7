/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Teams: this node's part of a job. A team forms (wireup.c), is ready, and may fail; it ends when
 * its last member leaves. What every node must see alike (order of the nodes, contention-aware
 * numbers) is computed here from the same facts everywhere.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"

/* What others say of a job may be of a run before, of which the end is still under way. */
static const cn_time patience = 500 * CN_MS;

/* ---- life ----------------------------------------------------------------------------- */

static struct cn_team *team_new(struct cn_engine *e, uint64_t owner, const char *job,
				uint32_t ranks)
{
	struct cn_team *t;
	uint32_t i = 0;

	while (i < e->config.max_teams && e->teams[i] != NULL) {
		i++;
	}
	if (i == e->config.max_teams) {
		return NULL;
	}
	t = calloc(1, sizeof(*t));
	if (t == NULL) {
		return NULL;
	}
	t->told = calloc(e->config.node.max_peers, sizeof(*t->told));
	t->present = calloc((ranks + 63) / 64, sizeof(*t->present));
	t->seen = calloc((ranks + 63) / 64, sizeof(*t->seen));
	if (t->told == NULL || t->present == NULL || t->seen == NULL) {
		free(t->told);
		free(t->present);
		free(t->seen);
		free(t);
		return NULL;
	}
	t->engine = e;
	t->owner = owner;
	snprintf(t->job, sizeof(t->job), "%s", job);
	t->ranks = ranks;
	t->id = ++e->last_team_id != 0 ? e->last_team_id : ++e->last_team_id;
	t->slot = (uint16_t)(i | (++e->generation[i] & 15u) << 8);
	t->check_at = CN_NEVER;
	e->teams[i] = t;
	e->nteams++;
	return t;
}

static void drop_unexpected(struct cn_team *t)
{
	bool any = t->unexpected_first != NULL;

	while (t->unexpected_first != NULL) {
		struct cn_unexpected *f = t->unexpected_first;

		t->unexpected_first = f->next;
		cn_node_buffer_put(t->engine->node, f);
	}
	t->unexpected_last = NULL;
	if (any) {
		cn_node_ready(t->engine->node);
	}
}

static void team_free(struct cn_team *t)
{
	struct cn_engine *e = t->engine;

	drop_unexpected(t);
	for (int i = 0; i < CN_OPS; i++) {
		cn_op_free_storage(t->ops[i]);
	}
	e->teams[t->slot & 0xff] = NULL;
	e->nteams--;
	free(t->told);
	free(t->candidates);
	free(t->present);
	free(t->seen);
	free(t->nodes);
	free(t->names);
	free(t->storage);
	free(t->local);
	free(t->node_by_peer);
	cn_tree_free(t->tree);
	free(t);
	cn_engine_touch(e);
}

struct cn_team *cn_team_by_slot(struct cn_engine *e, uint16_t slot)
{
	uint32_t i = slot & 0xff;
	struct cn_team *t = i < e->config.max_teams ? e->teams[i] : NULL;

	return t != NULL && t->slot == slot ? t : NULL;
}

uint32_t cn_topology_hash(const struct cn_topo *t)
{
	uint64_t h = 1;

	if (t == NULL) {
		return 0;
	}
	for (uint32_t i = 0; i < t->nvertices; i++) {
		for (const char *s = t->vertices[i].name; *s != '\0'; s++) {
			h = cn_mix64(h ^ (uint8_t)*s);
		}
		h = cn_mix64(h ^ (t->vertices[i].is_switch ? 0x100u : 0x200u));
	}
	for (uint32_t i = 0; i < t->nlinks; i++) {
		h = cn_mix64(h ^ ((uint64_t)t->links[i].a << 32 | t->links[i].b));
		h = cn_mix64(h ^ t->links[i].rate ^ (uint64_t)t->links[i].buffer << 40);
		h = cn_mix64(h ^ t->links[i].channels);
	}
	return (uint32_t)(h >> 32) | 1;
}

/* ---- members -------------------------------------------------------------------------- */

int cn_team_join(struct cn_engine *e, cn_time now, uint64_t owner, const char *job, uint32_t rank,
		 uint32_t ranks, cn_time deadline, struct cn_done *done, struct cn_member **out,
		 struct cn_err *err)
{
	struct cn_team *t = NULL;
	struct cn_member *m, **at;

	if (e->closing) {
		return cn_fail(err, COLLNET_EDAEMON, "the daemon is ending");
	}
	if (!cn_valid_name(job)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "not a name for a job (1 .. %d of letters, digits "
			       "and ._:@/-)",
			       COLLNET_NAME_MAX);
	}
	if (ranks < 1 || ranks > COLLNET_RANKS_MAX || rank >= ranks) {
		return cn_fail(err, COLLNET_EINVAL,
			       "rank %u of %u: must be 0 .. size - 1, size 1 .. %d", rank, ranks,
			       COLLNET_RANKS_MAX);
	}
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		if (e->teams[i] != NULL && e->teams[i]->state == CN_TEAM_FORMING &&
		    e->teams[i]->owner == owner && strcmp(e->teams[i]->job, job) == 0) {
			t = e->teams[i];
		}
	}
	if (t != NULL && t->ranks != ranks) {
		return cn_fail(err, COLLNET_EMISMATCH, "job %s has %u ranks, not %u", job, t->ranks,
			       ranks);
	}
	if (t == NULL) {
		t = team_new(e, owner, job, ranks);
		if (t != NULL) {
			t->patience = now + patience;
			cn_wireup_begin(t, now);
		}
	}
	if (t == NULL) {
		return cn_fail(err, COLLNET_ELIMIT, "too many teams on node %s (%u)",
			       e->config.node.name, e->config.max_teams);
	}
	at = &t->members;
	while (*at != NULL && (*at)->rank < rank) {
		at = &(*at)->next;
	}
	if (*at != NULL && (*at)->rank == rank) {
		return cn_fail(err, COLLNET_EMISMATCH,
			       "rank %u of job %s is here already: give every "
			       "process its own rank, every run its own job name",
			       rank, job);
	}
	m = calloc(1, sizeof(*m));
	if (m == NULL) {
		if (t->members == NULL) {
			team_free(t);
		}
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a rank");
	}
	m->team = t;
	m->rank = rank;
	m->joining = done;
	m->join_deadline = deadline;
	m->next = *at;
	*at = m;
	t->nlocal++;
	t->version++;
	t->announced = 0;
	t->candidates_due = true;
	cn_engine_touch(e);
	*out = m;
	cn_wireup_announce(t, now);
	cn_wireup_check(t, now);
	return COLLNET_OK;
}

void cn_team_leave(struct cn_member *m, cn_time now, bool failed)
{
	struct cn_team *t = m->team;
	struct cn_member **at = &t->members;
	bool busy = m->joining == NULL && m->done_ops < m->posted;

	if (t->state == CN_TEAM_READY && (failed || busy)) {
		cn_team_fail(t, now, true, COLLNET_ERANK, "rank %u on node %s %s", m->rank,
			     t->engine->config.node.name,
			     failed ? "died" : "left the team with operations outstanding");
	}
	if (m->joining != NULL) {
		m->joining->fn(m->joining, COLLNET_ERANK,
			       "the rank left before the team was ready");
		m->joining = NULL;
	}
	if (t->state == CN_TEAM_READY) {
		cn_control_leave(t, m->rank, m->posted);
		if (m->posted < t->nodes[t->me].left_after) {
			t->nodes[t->me].left_after = m->posted;
			t->nodes[t->me].left_rank = m->rank;
		}
	}
	while (*at != m) {
		at = &(*at)->next;
	}
	*at = m->next;
	t->nlocal--;
	t->version++;
	for (uint32_t i = 0; t->local != NULL && t->layout.first != NULL &&
			     i < t->layout.first[t->me + 1] - t->layout.first[t->me];
	     i++) {
		if (t->local[i] == m) {
			t->local[i] = NULL;
		}
	}
	free(m);
	if (t->members == NULL) {
		cn_control_end(t);
		team_free(t);
	} else if (t->state == CN_TEAM_READY) {
		cn_op_check_left(t, now, t->me);
	} else if (t->state == CN_TEAM_FORMING) {
		/* Its ranks are fewer now, which no one has to act on before the next join. */
		t->announced = 0;
		t->candidates_due = true;
		cn_wireup_announce(t, now);
	}
}

uint32_t cn_member_rank(const struct cn_member *m)
{
	return m->rank;
}

uint32_t cn_member_ranks(const struct cn_member *m)
{
	return m->team->ranks;
}

uint32_t cn_member_nodes(const struct cn_member *m)
{
	return m->team->layout.nnodes;
}

const char *cn_member_node_name(const struct cn_member *m, uint32_t rank)
{
	const struct cn_team *t = m->team;

	if (t->nodes == NULL || rank >= t->ranks) {
		return NULL;
	}
	return t->nodes[t->layout.node_of[rank]].name;
}

/* ---- ready ---------------------------------------------------------------------------- */

/* A node of the team before they are put in order. */
struct candidate {
	struct cn_team_node node;
	const struct cn_join *join; /* NULL: this node */
};

/* By place in the topology file, then by address: the same order everywhere. */
static int by_place(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->node.vertex != y->node.vertex) {
		return x->node.vertex < y->node.vertex ? -1 : 1;
	}
	return memcmp(x->node.mac, y->node.mac, 6);
}

static struct candidate *candidates(struct cn_team *t, struct cn_join **joins,
				    struct cn_peer **peers, uint32_t n)
{
	const struct cn_node_config *c = &t->engine->config.node;
	const struct cn_topo *topo = t->engine->config.topo;
	struct candidate *all = calloc((size_t)n + 1, sizeof(*all));

	for (uint32_t i = 0; all != NULL && i <= n; i++) {
		struct cn_team_node *k = &all[i].node;
		struct collnet_node_info info;

		if (i < n) {
			cn_peer_info(peers[i], 0, &info);
			k->peer = peers[i];
			k->slot = joins[i]->slot;
			all[i].join = joins[i];
			memcpy(k->mac, info.mac, 6);
		} else {
			k->slot = t->slot;
			memcpy(k->mac, c->mac, 6);
		}
		k->name = i < n ? cn_peer_name(peers[i]) : c->name;
		k->left_after = UINT32_MAX;
		k->vertex = topo != NULL ? cn_topo_find(topo, k->name) : CN_TOPO_NONE;
	}
	if (all != NULL) {
		qsort(all, (size_t)n + 1, sizeof(*all), by_place);
	}
	return all;
}

/* A node's name outlives what the transport knows of it. */
static bool keep_names(struct cn_team *t, uint32_t n)
{
	const struct cn_topo *topo = t->engine->config.topo;

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

static void place_ranks(struct cn_team *t, const struct candidate *all, uint32_t n,
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
				node_of[j->ranges[r].first + i] = k;
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

/* The network's part: tree, contention-aware numbers and W_g, if the topology knows all hosts. */
static int place_in_topology(struct cn_team *t, uint32_t n, uint32_t *logical, struct cn_err *err)
{
	const struct cn_topo *topo = t->engine->config.topo;
	uint32_t *hosts;
	int r = COLLNET_OK;

	t->window[CN_WINDOW_NONE] = COLLNET_WINDOW_OFF;
	t->window[CN_WINDOW_EXCHANGE] = t->window[CN_WINDOW_LINK] = t->engine->window;
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
			cn_log(COLLNET_LOG_WARNING,
			       "node %s is not in the topology file: job %s runs "
			       "without knowing its network",
			       t->nodes[k].name, t->job);
			goto out;
		}
	}
	if (t->engine->config.window == COLLNET_WINDOW_AUTO) {
		uint32_t w = cn_topo_window(topo, hosts, n, 2, NULL);

		t->window[CN_WINDOW_EXCHANGE] = w < t->engine->window ? w : t->engine->window;
		t->window[CN_WINDOW_LINK] = cn_topo_link_window(topo, hosts, n);
	}
	r = cn_tree_make(topo, hosts, n, CN_TOPO_NONE, &t->tree, err);
	if (r == COLLNET_OK) {
		t->layout.tree = t->tree;
		r = cn_number_nodes(topo, hosts, n, logical, err);
	}
	if (r == COLLNET_OK) {
		t->layout.logical = logical;
	}
out:
	free(hosts);
	return r;
}

int cn_team_ready(struct cn_team *t, cn_time now, struct cn_join **joins, struct cn_peer **peers,
		  uint32_t n, struct cn_err *err)
{
	struct candidate *all = candidates(t, joins, peers, n);
	uint32_t nodes = n + 1, *s;
	int r;

	t->npeers = cn_node_peers(t->engine->node);
	t->nodes = calloc(nodes, sizeof(*t->nodes));
	t->storage = s = calloc(2 * (size_t)t->ranks + 2 * (size_t)nodes + 1, sizeof(*s));
	t->local = calloc(t->nlocal, sizeof(struct cn_member *));
	t->node_by_peer = malloc(((size_t)t->npeers + 1) * sizeof(*t->node_by_peer));
	if (all == NULL || t->nodes == NULL || s == NULL || t->local == NULL ||
	    t->node_by_peer == NULL) {
		free(all);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a team of %u ranks", t->ranks);
	}
	t->layout = (struct cn_layout){
		.nranks = t->ranks,
		.nnodes = nodes,
		.node_of = s,
		.ranks = s + t->ranks,
		.first = s + 2 * (size_t)t->ranks,
	};
	place_ranks(t, all, nodes, s, s + 2 * (size_t)t->ranks, s + t->ranks);
	memset(t->node_by_peer, 0xff, ((size_t)t->npeers + 1) * sizeof(*t->node_by_peer));
	for (uint32_t k = 0; k < nodes; k++) {
		t->nodes[k] = all[k].node;
		if (all[k].node.peer != NULL) {
			t->node_by_peer[cn_peer_index(all[k].node.peer)] = (uint16_t)k;
		}
	}
	free(all);
	if (!keep_names(t, nodes)) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a team of %u ranks", t->ranks);
	}
	r = place_in_topology(t, nodes, s + 2 * (size_t)t->ranks + nodes + 1, err);
	if (r != COLLNET_OK) {
		return r;
	}
	t->state = CN_TEAM_READY;
	t->check_at = CN_NEVER;
	cn_engine_touch(t->engine);
	cn_log(COLLNET_LOG_INFO, "job %s: %u ranks on %u nodes are there", t->job, t->ranks, nodes);
	nodes = 0;
	for (struct cn_member *m = t->members; m != NULL; m = m->next) {
		t->local[nodes++] = m;
	}
	for (struct cn_member *m = t->members; m != NULL; m = m->next) {
		struct cn_done *d = m->joining;

		m->joining = NULL;
		if (d != NULL) {
			d->fn(d, COLLNET_OK, "");
		}
	}
	(void)now;
	return COLLNET_OK;
}

/* ---- failure, deadlines ----------------------------------------------------------------- */

void cn_team_fail(struct cn_team *t, cn_time now, bool tell, int status, const char *fmt, ...)
{
	va_list ap;

	(void)now;
	if (t->state == CN_TEAM_FAILED) {
		return;
	}
	t->state = CN_TEAM_FAILED;
	t->status = status;
	va_start(ap, fmt);
	vsnprintf(t->text, sizeof(t->text), fmt, ap);
	va_end(ap);
	cn_log(COLLNET_LOG_WARNING, "job %s failed: %s", t->job, t->text);
	if (tell) {
		cn_control_fail(t, status, t->text);
	}
	for (int i = 0; i < CN_OPS; i++) {
		if (t->ops[i] != NULL && cn_op_busy(t->ops[i])) {
			cn_op_abort(t->ops[i], status, t->text);
		}
	}
	for (struct cn_member *m = t->members; m != NULL; m = m->next) {
		struct cn_done *d = m->joining;

		m->joining = NULL;
		m->done_ops = m->posted;
		if (d != NULL) {
			d->fn(d, status, t->text);
		}
	}
	drop_unexpected(t);
	t->check_at = CN_NEVER;
	cn_engine_touch(t->engine);
}

void cn_rank_list_add(struct cn_rank_list *l, uint32_t rank)
{
	if (l->count > 0 && rank == l->last + 1) {
		l->last = rank;
		l->count++;
		return;
	}
	cn_rank_list_end(l);
	l->first = l->last = rank;
	l->count = 1;
}

void cn_rank_list_end(struct cn_rank_list *l)
{
	const char *comma = l->len > 0 ? ", " : "";
	int n;

	if (l->count == 0 || l->len + 1 >= l->cap) {
		return;
	}
	n = l->first == l->last
		    ? snprintf(l->text + l->len, l->cap - l->len, "%s%u", comma, l->first)
		    : snprintf(l->text + l->len, l->cap - l->len, "%s%u-%u", comma, l->first,
			       l->last);
	l->len = l->len + (size_t)n < l->cap ? l->len + (size_t)n : l->cap - 1;
	l->count = 0;
}

/* Ranks whose bit is not set; returns how many. */
static uint32_t list_missing(const struct cn_team *t, const uint64_t *bits, char *text, size_t cap)
{
	struct cn_rank_list l = { .text = text, .cap = cap };
	uint32_t n = 0;

	text[0] = '\0';
	for (uint32_t r = 0; r < t->ranks; r++) {
		if ((bits[r / 64] >> (r % 64) & 1) == 0) {
			cn_rank_list_add(&l, r);
			n++;
		}
	}
	cn_rank_list_end(&l);
	return n;
}

/* Others may have given up before us: those that never came are to blame, not those that left. */
static void join_timeout(struct cn_team *t, cn_time now)
{
	char missing[200], other[256];
	uint32_t n;

	cn_wireup_check(t, now);
	if (t->state != CN_TEAM_FORMING) {
		return;
	}
	cn_version_mismatch_clause(t, now, NULL, other, sizeof(other));
	/* FAIL carries 255 bytes. */
	n = list_missing(t, t->seen, missing, other[0] == '\0' ? sizeof(missing) : 60);
	if (n > 0) {
		/* Nodes that received no such frame are told. */
		cn_team_fail(
			t, now, other[0] != '\0', COLLNET_ETIMEOUT,
			"job %s: %u of %u ranks missing at the deadline: %s%s; start them, or see "
			"whether collnet status shows their nodes",
			t->job, n, t->ranks, missing, other);
		return;
	}
	n = list_missing(t, t->present, missing, sizeof(missing));
	if (n > 0) {
		cn_team_fail(
			t, now, false, COLLNET_ETIMEOUT,
			"job %s: %u of %u ranks came and left again before the team was ready: %s",
			t->job, n, t->ranks, missing);
		return;
	}
	cn_team_fail(t, now, false, COLLNET_ETIMEOUT,
		     "job %s: all %u ranks are there, but not every "
		     "node confirmed it in time",
		     t->job, t->ranks);
}

cn_time cn_team_deadline(const struct cn_team *t)
{
	cn_time at = t->check_at;

	if (t->state == CN_TEAM_FORMING) {
		for (const struct cn_member *m = t->members; m != NULL; m = m->next) {
			at = cn_min_time(at, m->join_deadline);
		}
	}
	for (int i = 0; i < CN_OPS; i++) {
		if (t->ops[i] != NULL) {
			at = cn_min_time(at, cn_op_deadline(t->ops[i]));
		}
	}
	return at;
}

void cn_team_expire(struct cn_team *t, cn_time now)
{
	if (t->state == CN_TEAM_FORMING) {
		for (const struct cn_member *m = t->members; m != NULL; m = m->next) {
			if (m->join_deadline <= now) {
				join_timeout(t, now);
				return;
			}
		}
		if (t->check_at <= now) {
			cn_wireup_expire(t, now);
		}
	}
	for (int i = 0; i < CN_OPS; i++) {
		if (t->ops[i] != NULL && cn_op_deadline(t->ops[i]) <= now) {
			cn_op_expire(t->ops[i], now);
		}
	}
}
