/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the options to the network and the ranks that the lab is to have. Nothing is made yet.
 *
 * Afterwards every host has an address and a name that can be a file's, and every link has the
 * rate and buffer that its ports will really have: the topology can be written out as it is.
 */
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "tools/lab/command.h"
#include "tools/plan/span.h"

/* Frames follow the spanning tree, so nothing else is built. */
static int drop_unused(struct lab *lab, struct cn_err *err)
{
	struct cn_topo *pruned = NULL;
	uint32_t unused = cn_topo_unused(lab->topo), i = 0;
	const struct cn_topo_link *l;
	int rc;

	if (unused == 0) {
		return COLLNET_OK;
	}
	while (cn_topo_in_tree(lab->topo, i)) {
		i++;
	}
	l = &lab->topo->links[i];
	tool_complain(
		"%u of %u links are not in the spanning tree and are not built, such as %s - %s; "
		"collnet topo tree selects another tree",
		unused, lab->topo->nlinks, lab->topo->vertices[l->a].name,
		lab->topo->vertices[l->b].name);
	rc = cn_topo_prune(lab->topo, &pruned, err);
	if (rc == COLLNET_OK) {
		cn_topo_free(lab->topo);
		lab->topo = pruned;
	}
	return rc;
}

static int read_topology(struct lab *lab, struct lab_options *o, struct cn_err *err)
{
	struct shape *s = &o->shape;
	int rc;

	if (o->topology != NULL) {
		rc = cn_topo_read(o->topology, &lab->topo, err);
		return rc == COLLNET_OK ? drop_unused(lab, err) : rc;
	}
	rc = shape_defaults(s, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (!s->uplink_given && s->uplink > LAB_RATE_MAX) {
		s->uplink = LAB_RATE_MAX;
	}
	return cn_topo_shape(s->text, s->rate, s->buffer, s->uplink, s->uplink_buffer, &lab->topo,
			     err);
}

static bool mac_is_taken(const struct lab *lab, const uint8_t *mac)
{
	uint32_t i;

	for (i = 0; i < lab->nhosts; i++) {
		const struct cn_vertex *v = &lab->topo->vertices[lab->topo->hosts[i]];

		if (v->has_mac && memcmp(v->mac, mac, 6) == 0) {
			return true;
		}
	}
	return false;
}

/* Hosts without an address in the file get 02:c0:11:00 and their number. */
static void give_macs(struct lab *lab)
{
	struct cn_vertex *v;
	uint32_t i;

	for (i = 0; i < lab->nhosts; i++) {
		uint8_t mac[6] = { 0x02, 0xc0, 0x11, 0, (uint8_t)(i >> 8), (uint8_t)i };

		v = &lab->topo->vertices[lab->topo->hosts[i]];
		while (!v->has_mac && mac_is_taken(lab, mac)) {
			mac[3]++;
		}
		if (!v->has_mac) {
			memcpy(v->mac, mac, sizeof(mac));
			v->has_mac = true;
		}
	}
}

/* Names become files and interfaces, so they must not have a meaning to either. */
static bool check_names(struct lab *lab, struct cn_err *err)
{
	const struct cn_topo *t = lab->topo;
	const char *name;
	uint32_t i;

	lab->plain_names = true;
	for (i = 0; i < t->nvertices; i++) {
		name = t->vertices[i].name;
		if (strpbrk(name, "/:@") != NULL || name[0] == '.' || name[0] == '-') {
			cn_fail(err, COLLNET_ETOPO,
				"the lab cannot have a host or switch '%s': "
				"use letters, digits, '_', '.' and '-', the last two not first",
				name);
			return false;
		}
		if (strlen(name) > (IFNAMSIZ - 2) / 2 || strpbrk(name, ".-") != NULL ||
		    strcmp(name, "lo") == 0 || strcmp(name, "all") == 0 ||
		    strcmp(name, "default") == 0) {
			lab->plain_names = false;
		}
	}
	return true;
}

static int check_links(const struct cn_topo *t, struct cn_err *err)
{
	for (uint32_t i = 0; i < t->nlinks; i++) {
		const struct cn_topo_link *l = &t->links[i];

		if (l->rate > LAB_RATE_MAX / l->channels ||
		    cn_topo_port_frames(l->buffer, l->channels) > LAB_BUFFER_MAX) {
			return cn_fail(err, COLLNET_ELIMIT,
				       "the link %s - %s exceeds the lab's limits of 1tbit and of "
				       "%u frames in a port",
				       t->vertices[l->a].name, t->vertices[l->b].name,
				       LAB_BUFFER_MAX);
		}
	}
	return COLLNET_OK;
}

int lab_plan(struct lab *lab, struct lab_options *o, struct cn_err *err)
{
	uint32_t i;
	int rc = read_topology(lab, o, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	lab->o = o;
	lab->nhosts = lab->topo->nhosts;
	if (!lab->topo->vertices[lab->topo->root].is_switch) {
		return cn_fail(err, COLLNET_ETOPO, "%s: the lab needs at least one switch",
			       o->topology);
	}
	if (lab->nhosts > LAB_HOSTS_MAX || o->ranks_per_node > LAB_RANKS_MAX / lab->nhosts) {
		return cn_fail(err, COLLNET_ELIMIT, "the lab has at most %u hosts and %u ranks",
			       LAB_HOSTS_MAX, LAB_RANKS_MAX);
	}
	if (!check_names(lab, err)) {
		return COLLNET_ETOPO;
	}
	rc = check_links(lab->topo, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	give_macs(lab);
	lab->nranks = lab->nhosts * o->ranks_per_node;
	lab->hosts = calloc(lab->nhosts, sizeof(*lab->hosts));
	lab->ranks = calloc(lab->nranks, sizeof(*lab->ranks));
	if (lab->hosts == NULL || lab->ranks == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory");
	}
	for (i = 0; i < lab->nhosts; i++) {
		lab->hosts[i].vertex = lab->topo->hosts[i];
		lab->hosts[i].name = lab->topo->vertices[lab->topo->hosts[i]].name;
		lab->hosts[i].ready = -1;
	}
	for (i = 0; i < lab->nranks; i++) {
		lab->ranks[i].host = i / o->ranks_per_node;
	}
	lab_assign_cpus(lab);
	return COLLNET_OK;
}
