/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A topology in memory: queries, and shapes that need no file.
 *
 * A finished topology is immutable, so any number of readers may share it.
 */
#include "topo/topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/build.h"

void cn_topo_free(struct cn_topo *t)
{
	if (t == NULL) {
		return;
	}
	free(t->vertices);
	free(t->links);
	free(t->hosts);
	free(t->order);
	free(t->adj_start);
	free(t->adj);
	free(t->index);
	free(t);
}

uint32_t cn_topo_hash(const struct cn_topo *t)
{
	uint64_t h = 1;

	if (t == NULL) {
		return 0;
	}
	for (uint32_t i = 0; i < t->nvertices; i++) {
		const struct cn_vertex *v = &t->vertices[i];

		for (const char *s = v->name; *s != '\0'; s++) {
			h = cn_mix64(h ^ (uint8_t)*s);
		}
		for (int k = 0; k < 6 && v->has_mac; k++) {
			h = cn_mix64(h ^ v->mac[k] ^ 0x800u);
		}
		h = cn_mix64(h ^ (v->is_switch ? 0x100u : 0x200u) ^
			     (v->input_buffered ? 0x400u : 0));
	}
	for (uint32_t i = 0; i < t->nlinks; i++) {
		h = cn_mix64(h ^ ((uint64_t)t->links[i].a << 32 | t->links[i].b));
		h = cn_mix64(h ^ t->links[i].rate ^ (uint64_t)t->links[i].buffer << 40);
		h = cn_mix64(h ^ t->links[i].channels);
	}
	return (uint32_t)(h >> 32) | 1;
}

uint32_t cn_topo_find(const struct cn_topo *t, const char *name)
{
	return t->index[cn_topo_slot(t, name)];
}

uint32_t cn_topo_switch_of(const struct cn_topo *t, uint32_t host)
{
	/* A host is never the parent of another vertex, unless it is alone. */
	if (host >= t->nvertices || t->vertices[host].is_switch) {
		return CN_TOPO_NONE;
	}
	return t->vertices[host].parent;
}

uint64_t cn_topo_host_rate(const struct cn_topo *t, uint32_t host)
{
	if (cn_topo_switch_of(t, host) == CN_TOPO_NONE) {
		return 0;
	}
	return t->links[t->vertices[host].parent_link].rate;
}

/* "A" or "AxB" into hosts a switch and switches. */
static int parse_shape(const char *shape, uint32_t *a, uint32_t *b, struct cn_err *err)
{
	const char *x = strchr(shape, 'x');
	uint64_t hosts = 0, switches = 1;
	char first[16] = "";
	size_t len = x == NULL ? strlen(shape) : (size_t)(x - shape);

	if (len < sizeof(first)) {
		memcpy(first, shape, len);
		first[len] = '\0';
	}
	if (!cn_parse_uint(first, 1, CN_TOPO_VERTICES_MAX, &hosts) ||
	    (x != NULL && !cn_parse_uint(x + 1, 1, CN_TOPO_VERTICES_MAX, &switches))) {
		return cn_fail(err, COLLNET_ETOPO,
			       "shape '%.40s': expected HOSTS or HOSTSxSWITCHES, like 16 or 8x2, "
			       "with at most %u hosts and switches",
			       shape, CN_TOPO_VERTICES_MAX);
	}
	if (hosts * switches + switches + 1 > CN_TOPO_VERTICES_MAX) {
		return cn_fail(err, COLLNET_ETOPO,
			       "shape '%.40s': expected at most %u hosts and switches", shape,
			       CN_TOPO_VERTICES_MAX);
	}
	*a = (uint32_t)hosts;
	*b = (uint32_t)switches;
	return COLLNET_OK;
}

/* Switch number `s`, its uplink to the root if `uplinked`, and its hosts from h`first` on. */
static int shape_switch(struct cn_build *b, uint32_t s, bool uplinked,
			const struct cn_topo_link *uplink, uint32_t first, uint32_t hosts,
			const struct cn_topo_link *cable, struct cn_err *err)
{
	char sw[24], host[24];
	uint32_t i;
	int rc;

	snprintf(sw, sizeof(sw), "s%u", s);
	rc = cn_build_vertex(b, sw, true, NULL, err);
	if (rc == COLLNET_OK && uplinked) {
		rc = cn_build_link(b, sw, "s0", uplink->rate, uplink->buffer, 1, err);
	}
	for (i = 0; rc == COLLNET_OK && i < hosts; i++) {
		snprintf(host, sizeof(host), "h%u", first + i);
		rc = cn_build_vertex(b, host, false, NULL, err);
		if (rc == COLLNET_OK) {
			rc = cn_build_link(b, host, sw, cable->rate, cable->buffer, 1, err);
		}
	}
	return rc;
}

int cn_topo_shape(const char *shape, uint64_t rate, uint32_t buffer, uint64_t uplink_rate,
		  uint32_t uplink_buffer, struct cn_topo **out, struct cn_err *err)
{
	const struct cn_topo_link cable = { .rate = rate, .buffer = buffer };
	const struct cn_topo_link uplink = { .rate = uplink_rate, .buffer = uplink_buffer };
	uint32_t hosts = 0, switches = 0, s;
	struct cn_build b;
	int rc = parse_shape(shape, &hosts, &switches, err);

	if (rc == COLLNET_OK) {
		rc = cn_build_init(&b, shape, err);
	}
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (switches > 1) {
		rc = cn_build_vertex(&b, "s0", true, NULL, err);
	}
	for (s = 0; rc == COLLNET_OK && s < switches; s++) {
		rc = shape_switch(&b, s + 1, switches > 1, &uplink, s * hosts, hosts, &cable, err);
	}
	if (rc == COLLNET_OK) {
		rc = cn_build_finish(&b, out, err);
	}
	if (rc != COLLNET_OK) {
		cn_build_abort(&b);
	}
	return rc;
}

void cn_topo_input_buffered(struct cn_topo *t)
{
	for (uint32_t v = 0; v < t->nvertices; v++) {
		t->vertices[v].input_buffered = t->vertices[v].is_switch;
	}
}

bool cn_topo_in_tree(const struct cn_topo *t, uint32_t link)
{
	return link < t->nlinks && (t->vertices[t->links[link].a].parent_link == link ||
				    t->vertices[t->links[link].b].parent_link == link);
}

uint32_t cn_topo_unused(const struct cn_topo *t)
{
	return t->nlinks - (t->nvertices - 1);
}
