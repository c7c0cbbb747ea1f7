/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where `collnet topo` gets its topology from, and what it is, counted: numbers that several
 * subcommands print.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/topo/command.h"
#include "util/file.h"

const char *topo_source(const struct topo_options *o)
{
	return o->file == NULL		   ? o->shape.text
	       : strcmp(o->file, "-") == 0 ? "standard input"
					   : o->file;
}

int topo_open(const struct topo_options *o, struct cn_topo **out, struct cn_err *err)
{
	struct shape shape = o->shape;
	char *text;
	size_t len;
	int rc;

	if (o->file == NULL) {
		rc = shape_defaults(&shape, err);
		return rc != COLLNET_OK
			       ? rc
			       : cn_topo_shape(shape.text, shape.rate, shape.buffer, shape.uplink,
					       shape.uplink_buffer, out, err);
	}
	if (strcmp(o->file, "-") != 0) {
		return cn_topo_read(o->file, out, err);
	}
	text = cn_read_all(stdin, CN_TOPO_FILE_MAX, &len);
	if (text == NULL) {
		return cn_fail(err, COLLNET_ESYSTEM, "standard input: %s", strerror(errno));
	}
	rc = cn_topo_is_slurm(text, len) ? cn_topo_parse_slurm(text, len, topo_source(o), out, err)
					 : cn_topo_parse(text, len, topo_source(o), out, err);
	free(text);
	return rc;
}

int topo_hosts(const struct cn_topo *t, const char *source, const char *list, uint32_t *hosts,
	       uint32_t *n, struct cn_err *err)
{
	const char **names = calloc(t->nhosts, sizeof(*names));
	char *text = list != NULL ? strdup(list) : NULL;
	struct cn_err why = { 0 };
	size_t count = 0;
	int rc = COLLNET_OK;

	*n = t->nhosts;
	memcpy(hosts, t->hosts, t->nhosts * sizeof(*hosts));
	if (names == NULL || (list != NULL && text == NULL)) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory for a list of hosts");
	} else if (list != NULL && tool_split(text, names, t->nhosts, &count, &why) != COLLNET_OK) {
		rc = cn_fail(err, why.code, "--hosts: %s", why.text);
	} else if (list != NULL) {
		*n = (uint32_t)count;
	}
	for (size_t i = 0; rc == COLLNET_OK && i < count; i++) {
		hosts[i] = cn_topo_find(t, names[i]);
		if (hosts[i] == CN_TOPO_NONE || t->vertices[hosts[i]].is_switch) {
			rc = cn_fail(err, COLLNET_ETOPO, "--hosts: %s has no host '%.63s'", source,
				     names[i]);
		}
	}
	free(names);
	free(text);
	return rc;
}

const char *topo_link_name(const struct cn_topo *t, uint32_t link, char text[TOPO_LINK_TEXT])
{
	const struct cn_topo_link *l = &t->links[link];
	const char *a = t->vertices[l->a].name, *b = t->vertices[l->b].name;

	/* the lower end first, where the tree has one */
	if (t->vertices[l->b].parent_link == link) {
		snprintf(text, TOPO_LINK_TEXT, "%s - %s", b, a);
	} else {
		snprintf(text, TOPO_LINK_TEXT, "%s - %s", a, b);
	}
	return text;
}

/* a / b < c / d; no product of ours needs more than 128 bits, and floating point is near enough. */
static bool takes_less(uint64_t a, double b, uint64_t c, double d)
{
	return (double)a / b < (double)c / d;
}

static void range(uint64_t value, uint64_t *r)
{
	if (value != 0) {
		r[0] = r[0] == 0 || value < r[0] ? value : r[0];
		r[1] = value > r[1] ? value : r[1];
	}
}

static void range32(uint32_t value, uint32_t *r)
{
	if (value != 0) {
		r[0] = r[0] == 0 || value < r[0] ? value : r[0];
		r[1] = value > r[1] ? value : r[1];
	}
}

/* The link above v, which `below` of the n hosts are behind. */
static void count_link(const struct cn_topo *t, uint32_t v, struct topo_facts *f)
{
	uint32_t link = t->vertices[v].parent_link;
	const struct cn_topo_link *l = &t->links[link], *s;
	uint64_t below = t->vertices[v].hosts, messages = below * (t->nhosts - below), bound;
	bool trunk = t->vertices[v].is_switch;

	if (messages > 0 || !trunk) {
		range(l->rate, trunk ? f->trunk_rate : f->host_rate);
		*(trunk ? &f->trunk_no_rate : &f->host_no_rate) += l->rate == 0;
		range32(l->buffer, trunk ? f->trunk_buffer : f->host_buffer);
	}
	if (messages == 0) {
		return; /* no host sends over it */
	}
	f->used++;
	f->no_rate += l->rate == 0;
	f->no_buffer += l->buffer == 0;
	bound = (messages + l->channels - 1) / l->channels;
	if (bound > f->bound) {
		f->bound = bound;
		f->busiest = link;
		f->below = (uint32_t)below;
		f->messages = messages;
	}
	if (l->rate == 0) {
		return;
	}
	s = f->slowest == CN_TOPO_NONE ? NULL : &t->links[f->slowest];
	if (s == NULL || takes_less(f->slowest_messages, (double)s->rate * s->channels, messages,
				    (double)l->rate * l->channels)) {
		f->slowest = link;
		f->slowest_messages = messages;
	}
}

/*
 * Depths from the root downwards; then, from below, the greatest number of switches on a way down
 * to a host: the two greatest of a switch, and itself counted once, are the longest path over it.
 */
static void count_paths(const struct cn_topo *t, struct topo_facts *f)
{
	uint32_t *depth = calloc(t->nvertices, 2 * sizeof(*depth)), *down = depth + t->nvertices;
	uint32_t i, v, up, reach;

	if (depth == NULL) {
		return;
	}
	for (i = 1; i < t->nvertices; i++) {
		v = t->order[i];
		depth[v] = depth[t->vertices[v].parent] + 1;
		f->height = depth[v] > f->height ? depth[v] : f->height;
	}
	for (i = t->nvertices; i-- > 1;) {
		v = t->order[i];
		up = t->vertices[v].parent;
		if (t->vertices[v].hosts == 0) {
			continue;
		}
		reach = down[v] + (t->vertices[up].is_switch ? 1 : 0);
		if (down[up] > 0 && down[up] + reach - 1 > f->longest) {
			f->longest = down[up] + reach - 1;
		}
		down[up] = reach > down[up] ? reach : down[up];
	}
	free(depth);
}

void topo_count(const struct cn_topo *t, struct topo_facts *f)
{
	uint32_t v;

	memset(f, 0, sizeof(*f));
	f->switches = t->nvertices - t->nhosts;
	f->unused = cn_topo_unused(t);
	f->busiest = f->slowest = CN_TOPO_NONE;
	for (v = 0; v < t->nvertices; v++) {
		f->empty += t->vertices[v].is_switch && t->vertices[v].hosts == 0;
		if (t->vertices[v].parent != CN_TOPO_NONE) {
			count_link(t, v, f);
		}
	}
	count_paths(t, f);
}

void topo_json(struct json *j, const struct cn_topo *t)
{
	uint32_t i;

	json_array(j, "switches");
	for (i = 0; i < t->nvertices; i++) {
		if (t->vertices[i].is_switch) {
			json_string(j, NULL, t->vertices[i].name);
		}
	}
	json_array_end(j);
	json_array(j, "hosts");
	for (i = 0; i < t->nhosts; i++) {
		const struct cn_vertex *v = &t->vertices[t->hosts[i]];
		char mac[18];

		json_object(j, NULL);
		json_string(j, "name", v->name);
		json_string(j, "switch",
			    v->parent == CN_TOPO_NONE ? NULL : t->vertices[v->parent].name);
		snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", v->mac[0], v->mac[1],
			 v->mac[2], v->mac[3], v->mac[4], v->mac[5]);
		json_string(j, "mac", v->has_mac ? mac : NULL);
		json_object_end(j);
	}
	json_array_end(j);
	json_array(j, "links");
	for (i = 0; i < t->nlinks; i++) {
		const struct cn_topo_link *l = &t->links[i];

		json_object(j, NULL);
		json_string(j, "a", t->vertices[l->a].name);
		json_string(j, "b", t->vertices[l->b].name);
		if (l->rate == 0) {
			json_null(j, "rate");
		} else {
			json_uint(j, "rate", l->rate);
		}
		if (l->buffer == 0) {
			json_null(j, "buffer");
		} else {
			json_uint(j, "buffer", l->buffer);
		}
		json_uint(j, "channels", l->channels);
		json_bool(j, "in_tree", cn_topo_in_tree(t, i));
		json_object_end(j);
	}
	json_array_end(j);
}
