/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The builder of a topology.
 *
 * Invariants: both hash tables have more than twice as many slots as there are vertices, so a
 * probe always ends; a host has at most one link, and no link joins a vertex to itself. The graph
 * is in one piece exactly when the walk from the root reaches every vertex. Nothing recurses: a
 * chain of 100,000 switches is fine.
 */
#include "topo/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/vector.h"

#define FIRST_VERTICES 64u

int cn_build_fail(const struct cn_build *b, uint32_t line, struct cn_err *err, const char *fmt, ...)
{
	char text[CN_ERR_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (line == 0) {
		return cn_fail(err, COLLNET_ETOPO, "%.160s: %s", b->name, text);
	}
	return cn_fail(err, COLLNET_ETOPO, "%.160s:%u: %s", b->name, line, text);
}

static int no_memory(const struct cn_build *b, struct cn_err *err)
{
	return cn_fail(err, COLLNET_ENOMEM, "%.160s: no memory for the topology", b->name);
}

static uint64_t hash_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325u;
	size_t i;

	for (i = 0; i < len; i++) {
		h = (h ^ p[i]) * 0x100000001b3u;
	}
	return cn_mix64(h);
}

uint32_t cn_topo_slot(const struct cn_topo *t, const char *name)
{
	uint32_t i = (uint32_t)hash_bytes(name, strlen(name)) & t->index_mask;

	while (t->index[i] != CN_TOPO_NONE && strcmp(t->vertices[t->index[i]].name, name) != 0) {
		i = (i + 1) & t->index_mask;
	}
	return i;
}

static uint32_t mac_slot(const struct cn_build *b, const uint8_t *mac)
{
	const struct cn_topo *t = b->t;
	uint32_t i = (uint32_t)hash_bytes(mac, 6) & t->index_mask;

	while (b->macs[i] != CN_TOPO_NONE && memcmp(t->vertices[b->macs[i]].mac, mac, 6) != 0) {
		i = (i + 1) & t->index_mask;
	}
	return i;
}

/* Resizes *array to `n` elements; its contents stay. */
static bool grow(void *array, size_t n, size_t size)
{
	void *old, *p;

	memcpy(&old, array, sizeof(old));
	p = realloc(old, n * size);
	if (p == NULL) {
		return false;
	}
	memcpy(array, &p, sizeof(p));
	return true;
}

/* Room for `cap` vertices, and both tables of four times that, filled anew. */
static bool grow_vertices(struct cn_build *b, uint32_t cap)
{
	struct cn_topo *t = b->t;
	uint32_t slots = cap * 4, i;

	if (!grow(&t->vertices, cap, sizeof(*t->vertices)) ||
	    !grow(&b->vline, cap, sizeof(*b->vline)) ||
	    !grow(&t->index, slots, sizeof(*t->index)) ||
	    !grow(&b->macs, slots, sizeof(*b->macs))) {
		return false;
	}
	b->vcap = cap;
	t->index_mask = slots - 1;
	memset(t->index, 0xff, (size_t)slots * sizeof(*t->index));
	memset(b->macs, 0xff, (size_t)slots * sizeof(*b->macs));
	for (i = 0; i < t->nvertices; i++) {
		t->index[cn_topo_slot(t, t->vertices[i].name)] = i;
		if (t->vertices[i].has_mac) {
			b->macs[mac_slot(b, t->vertices[i].mac)] = i;
		}
	}
	return true;
}

int cn_build_init(struct cn_build *b, const char *name, struct cn_err *err)
{
	memset(b, 0, sizeof(*b));
	b->name = name;
	b->t = calloc(1, sizeof(*b->t));
	if (b->t == NULL || !grow_vertices(b, FIRST_VERTICES)) {
		cn_build_abort(b);
		return no_memory(b, err);
	}
	return COLLNET_OK;
}

void cn_build_abort(struct cn_build *b)
{
	cn_topo_free(b->t);
	free(b->vline);
	free(b->macs);
	b->t = NULL;
	b->vline = b->macs = NULL;
}

int cn_build_vertex(struct cn_build *b, const char *name, bool is_switch, const uint8_t *mac,
		    struct cn_err *err)
{
	struct cn_topo *t = b->t;
	struct cn_vertex *v;
	uint32_t slot, id;

	if (!cn_valid_name(name)) {
		return cn_build_fail(b, b->line, err,
				     "expected a name of 1 to %d letters, digits or ._:@/-",
				     COLLNET_NAME_MAX);
	}
	if (t->nvertices == CN_TOPO_VERTICES_MAX) {
		return cn_build_fail(b, b->line, err, "expected at most %u hosts and switches",
				     CN_TOPO_VERTICES_MAX);
	}
	if (t->nvertices == b->vcap && !grow_vertices(b, b->vcap * 2)) {
		return no_memory(b, err);
	}
	slot = cn_topo_slot(t, name);
	if (t->index[slot] != CN_TOPO_NONE) {
		return cn_build_fail(b, b->line, err,
				     "expected a new name: '%s' is declared in line %u", name,
				     b->vline[t->index[slot]]);
	}
	if (mac != NULL && b->macs[mac_slot(b, mac)] != CN_TOPO_NONE) {
		id = b->macs[mac_slot(b, mac)];
		return cn_build_fail(b, b->line, err,
				     "expected an address of its own: '%s' has this one (line %u)",
				     t->vertices[id].name, b->vline[id]);
	}
	id = t->nvertices++;
	v = &t->vertices[id];
	memset(v, 0, sizeof(*v));
	memcpy(v->name, name, strlen(name));
	v->is_switch = is_switch;
	v->parent = v->parent_link = CN_TOPO_NONE;
	v->hosts = is_switch ? 0 : 1;
	t->nhosts += v->hosts;
	t->index[slot] = id;
	if (mac != NULL) {
		v->has_mac = true;
		memcpy(v->mac, mac, 6);
		b->macs[mac_slot(b, mac)] = id;
	}
	b->vline[id] = b->line;
	return COLLNET_OK;
}

/* The vertex of a link's end; while building, a host's parent_link marks that it has its link. */
static int link_end(struct cn_build *b, const char *name, uint32_t *out, struct cn_err *err)
{
	uint32_t v = cn_topo_find(b->t, name);

	if (v == CN_TOPO_NONE) {
		return cn_build_fail(b, b->line, err,
				     "expected a host or switch declared above, not '%.63s'", name);
	}
	if (!b->t->vertices[v].is_switch && b->t->vertices[v].parent_link != CN_TOPO_NONE) {
		return cn_build_fail(b, b->line, err,
				     "expected one link for host '%s', this is the second", name);
	}
	*out = v;
	return COLLNET_OK;
}

int cn_build_link(struct cn_build *b, const char *a, const char *z, uint64_t rate, uint32_t buffer,
		  uint32_t channels, struct cn_err *err)
{
	struct cn_topo *t = b->t;
	struct cn_topo_link *links;
	uint32_t va, vz;
	int rc = link_end(b, a, &va, err);

	if (rc == COLLNET_OK) {
		rc = link_end(b, z, &vz, err);
	}
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (!t->vertices[va].is_switch && !t->vertices[vz].is_switch) {
		return cn_build_fail(b, b->line, err,
				     "expected a switch at one end: '%s' and '%s' are hosts", a, z);
	}
	if (va == vz) {
		return cn_build_fail(b, b->line, err,
				     "expected two names: '%s' is linked to itself", a);
	}
	links = cn_vector_grow(t->links, t->nlinks, &b->lcap, sizeof(*links));
	if (links == NULL) {
		return no_memory(b, err);
	}
	t->links = links;
	links[t->nlinks] = (struct cn_topo_link){
		.a = va, .b = vz, .rate = rate, .buffer = buffer, .channels = channels
	};
	t->vertices[va].parent_link = t->vertices[vz].parent_link = t->nlinks++;
	return COLLNET_OK;
}

/* Those of vertex v are adj[start[v]] .. adj[start[v + 1] - 1], in the order of the file. */
void cn_topo_neighbours(struct cn_topo *t)
{
	uint32_t *start = t->adj_start, *adj = t->adj;
	uint32_t i, sum = 0, n;

	memset(start, 0, ((size_t)t->nvertices + 1) * sizeof(*start));
	for (i = 0; i < t->nlinks; i++) {
		start[t->links[i].a]++;
		start[t->links[i].b]++;
	}
	for (i = 0; i <= t->nvertices; i++) {
		n = start[i];
		start[i] = sum += n;
	}
	for (i = t->nlinks; i-- > 0;) {
		adj[--start[t->links[i].a]] = i;
		adj[--start[t->links[i].b]] = i;
	}
}

uint32_t cn_topo_walk(struct cn_topo *t, const bool *use)
{
	uint32_t head, tail = 0, i, v, w;

	for (v = 0; v < t->nvertices; v++) {
		t->vertices[v].parent = t->vertices[v].parent_link = CN_TOPO_NONE;
		t->vertices[v].hosts = t->vertices[v].is_switch ? 0 : 1;
	}
	t->order[tail++] = t->root;
	for (head = 0; head < tail; head++) {
		v = t->order[head];
		for (i = t->adj_start[v]; i < t->adj_start[v + 1]; i++) {
			w = cn_topo_other_end(t, t->adj[i], v);
			if (w == t->root || t->vertices[w].parent != CN_TOPO_NONE ||
			    (use != NULL && !use[t->adj[i]])) {
				continue;
			}
			t->vertices[w].parent = v;
			t->vertices[w].parent_link = t->adj[i];
			t->order[tail++] = w;
		}
	}
	for (i = tail; i-- > 1;) {
		w = t->order[i];
		t->vertices[t->vertices[w].parent].hosts += t->vertices[w].hosts;
	}
	return tail;
}

/* The root is the first switch; without one, the first host. Lists the hosts on the way. */
static void list_hosts(struct cn_topo *t)
{
	uint32_t v, n = 0;

	t->root = CN_TOPO_NONE;
	for (v = 0; v < t->nvertices; v++) {
		if (!t->vertices[v].is_switch) {
			t->hosts[n++] = v;
		} else if (t->root == CN_TOPO_NONE) {
			t->root = v;
		}
	}
	if (t->root == CN_TOPO_NONE) {
		t->root = t->hosts[0];
	}
}

int cn_build_finish(struct cn_build *b, struct cn_topo **out, struct cn_err *err)
{
	struct cn_topo *t = b->t;
	uint32_t v, reached;

	if (t->nhosts == 0) {
		return cn_build_fail(b, b->line, err, "expected at least one host");
	}
	t->hosts = calloc(t->nhosts, sizeof(*t->hosts));
	t->order = calloc(t->nvertices, sizeof(*t->order));
	t->adj_start = calloc((size_t)t->nvertices + 1, sizeof(*t->adj_start));
	t->adj = calloc((size_t)t->nlinks * 2 + 1, sizeof(*t->adj));
	if (t->hosts == NULL || t->order == NULL || t->adj_start == NULL || t->adj == NULL) {
		return no_memory(b, err);
	}
	list_hosts(t);
	cn_topo_neighbours(t);
	reached = cn_topo_walk(t, NULL);
	if (reached < t->nvertices) {
		v = 0;
		while (v == t->root || t->vertices[v].parent != CN_TOPO_NONE) {
			v++;
		}
		if (t->adj_start[v] == t->adj_start[v + 1]) {
			return cn_build_fail(b, b->vline[v], err,
					     "expected a link: %s '%s' has none",
					     t->vertices[v].is_switch ? "switch" : "host",
					     t->vertices[v].name);
		}
		return cn_build_fail(b, b->vline[v], err,
				     "expected links that join '%s' to '%s': all in one piece",
				     t->vertices[v].name, t->vertices[t->root].name);
	}
	*out = t;
	b->t = NULL;
	cn_build_abort(b);
	return COLLNET_OK;
}
