/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `collnet topo random` and `tree`, which write a topology file, and `window`, which prints how
 * many frames the buffers of a topology allow in flight.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/topo/command.h"
#include "tools/plan/random.h"
#include "tools/plan/write.h"
#include "tools/plan/span.h"

#define NONE CN_TOPO_NONE

static int failed(const struct cn_err *err)
{
	tool_complain("%s", err->text);
	return TOOL_FAILED;
}

int topo_finish(bool written)
{
	if (!written) {
		tool_complain("standard output: %s", strerror(errno));
	}
	return written ? TOOL_OK : TOOL_FAILED;
}

/* The topology as a file, or as JSON. */
static int put_topology(const struct topo_options *o, const struct cn_topo *t)
{
	struct json j;

	if (!o->json) {
		return topo_finish(cn_topo_write(t, stdout) == COLLNET_OK);
	}
	json_begin(&j, stdout);
	json_object(&j, NULL);
	topo_json(&j, t);
	json_object_end(&j);
	return topo_finish(json_end(&j));
}

int topo_random(const struct topo_options *o)
{
	struct cn_topo_random r = o->random;
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	int rc;

	r.rate = o->shape.rate;
	r.buffer = o->shape.buffer;
	if (!o->switches_given) {
		r.switches = (r.hosts + 4) / 5;
	}
	if (cn_topo_random(&r, &t, &err) != COLLNET_OK) { /* there is no network that is wrong */
		return err.code == COLLNET_EINVAL ? tool_usage("%s", err.text) : failed(&err);
	}
	if (!o->json) {
		printf("# a random cluster: collnet topo random --hosts %" PRIu32
		       " --switches %" PRIu32 " --degree %.9g --seed %" PRIu64,
		       r.hosts, r.switches, r.degree, r.seed);
		if (r.rate != 0) {
			printf(" --rate %" PRIu64 "bit", r.rate);
		}
		if (r.buffer != 0) {
			printf(" --buffer %" PRIu32, r.buffer);
		}
		printf("\n");
	}
	rc = put_topology(o, t);
	cn_topo_free(t);
	return rc;
}

/* The switch of --root; NONE: the first. */
static int find_root(const struct topo_options *o, const struct cn_topo *t, uint32_t *root,
		     struct cn_err *err)
{
	*root = NONE;
	if (o->root == NULL) {
		return COLLNET_OK;
	}
	*root = cn_topo_find(t, o->root);
	if (*root == NONE || !t->vertices[*root].is_switch) {
		return cn_fail(err, COLLNET_ETOPO, "--root %.63s: %s has no switch of that name",
			       o->root, topo_source(o));
	}
	return COLLNET_OK;
}

int topo_tree(const struct topo_options *o)
{
	struct cn_topo *t = NULL, *spanned = NULL, *pruned = NULL;
	struct cn_err err = { 0 };
	uint32_t root;
	int rc = topo_open(o, &t, &err);

	rc = rc != COLLNET_OK ? rc : find_root(o, t, &root, &err);
	rc = rc != COLLNET_OK ? rc : cn_topo_span(t, o->kind, root, o->random.seed, &spanned, &err);
	rc = rc != COLLNET_OK ? rc : cn_topo_prune(spanned, &pruned, &err);
	if (rc != COLLNET_OK) {
		rc = failed(&err);
	} else {
		if (!o->json) {
			printf("# spanning tree (%s) from %s: %" PRIu32 " of %" PRIu32
			       " links are left out\n",
			       o->kind_name, spanned->vertices[spanned->root].name,
			       t->nlinks - pruned->nlinks, t->nlinks);
		}
		rc = put_topology(o, pruned);
	}
	cn_topo_free(t);
	cn_topo_free(spanned);
	cn_topo_free(pruned);
	return rc;
}

/* ---- window --------------------------------------------------------------------------- */

/* A port of the exchange; those that are alike become one class. */
struct port {
	bool trunk;	/* between two switches */
	uint32_t below; /* hosts on the smaller side */
	uint32_t channels, buffer;
	uint32_t waiting; /* of CN_TOPO_ALL frames: cn_topo_waiting() */
	uint32_t link;
	uint32_t count; /* of the class */
};

static int compare_ports(const void *pa, const void *pb)
{
	const struct port *a = pa, *b = pb;

	if (a->trunk != b->trunk) {
		return a->trunk ? 1 : -1;
	}
	if (a->below != b->below) {
		return a->below < b->below ? -1 : 1;
	}
	if (a->channels != b->channels) {
		return a->channels < b->channels ? -1 : 1;
	}
	if (a->buffer != b->buffer) {
		return a->buffer < b->buffer ? -1 : 1;
	}
	if (a->waiting != b->waiting) {
		return a->waiting < b->waiting ? -1 : 1;
	}
	return a->link < b->link ? -1 : a->link > b->link;
}

static bool alike(const struct port *a, const struct port *b)
{
	return a->trunk == b->trunk && a->below == b->below && a->channels == b->channels &&
	       a->buffer == b->buffer && a->waiting == b->waiting;
}

/* The classes of the links that an exchange among the tree's hosts crosses. NULL: no memory. */
static struct port *classify(const struct cn_tree *t, const uint32_t *hosts, uint32_t *count)
{
	struct port *p = calloc(t->n, sizeof(*p));
	uint32_t *waiting = cn_topo_waiting(t->topo, hosts, t->nhosts);
	uint32_t n = 0, classes = 0, assumed = cn_topo_assumed_buffer(t->topo);

	if (waiting == NULL) {
		free(p);
		return NULL;
	}
	for (uint32_t v = 1; p != NULL && v < t->n; v++) {
		const struct cn_topo_link *l = &t->topo->links[t->v[v].link];
		uint32_t below = t->v[v].hosts, above = t->nhosts - below;

		if (above > 0) {
			p[n++] = (struct port){
				.trunk = t->v[v].node == NONE,
				.below = below < above ? below : above,
				.channels = l->channels,
				.buffer = l->buffer != 0 ? l->buffer : assumed,
				.waiting = waiting[t->v[v].vertex],
				.link = t->v[v].link,
				.count = 1,
			};
		}
	}
	free(waiting);
	if (n > 0) {
		qsort(p, n, sizeof(*p), compare_ports);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (classes > 0 && alike(&p[classes - 1], &p[i])) {
			p[classes - 1].count++;
		} else {
			p[classes++] = p[i];
		}
	}
	*count = classes;
	return p;
}

/* Frames a step and channel: Eq. 3. */
static double nu_of(const struct port *p, uint32_t n)
{
	return (double)p->below * (n - p->below) / ((double)(n - 1) * p->channels);
}

/* Eq. 4 of this class alone; `control` 2: frames that only acknowledge are counted too. */
static uint32_t window_of(const struct port *p, uint32_t n, uint32_t control)
{
	return cn_topo_port_window((uint64_t)p->buffer * p->channels, p->below, n, p->waiting,
				   control);
}

/* COLLNET_WINDOW_OFF: no limit; a link: the one that decides. */
struct windows {
	uint32_t data, acks, bottleneck; /* Eq. 4, without and with control frames */
	uint32_t slowest, slowest_link;	 /* what the ports of the slowest links hold */
	bool two;			 /* cn_topo_holds_two() */
};

static void window_text(uint32_t window, char text[16])
{
	if (window == COLLNET_WINDOW_OFF) {
		snprintf(text, 16, "off");
	} else {
		snprintf(text, 16, "%" PRIu32, window);
	}
}

/* A window has one frame at least, which may be more than Eq. 4 allows. */
static void print_rounded_up(const struct cn_tree *t, const struct port *p, uint32_t classes)
{
	char name[TOPO_LINK_TEXT];

	for (uint32_t i = 0; i < classes; i++) {
		const double window = p[i].buffer * (double)CN_TOPO_ALL /
				      (2 * nu_of(&p[i], t->nhosts) * p[i].waiting);

		if (p[i].buffer != 0 && window < 1) {
			printf("Eq. 4 gives %.2f for %s; the least window is 1, with which that "
			       "port may overflow\n",
			       window, topo_link_name(t->topo, p[i].link, name));
		}
	}
}

static void print_window(const struct topo_options *o, const struct cn_tree *t,
			 const struct port *p, uint32_t classes, const struct windows *w)
{
	uint32_t n = t->nhosts;
	char name[TOPO_LINK_TEXT], w1[16], w2[16];

	printf("%s: an exchange among %" PRIu32 " host%s\n\n", topo_source(o), n,
	       n == 1 ? "" : "s");
	printf("%-6s %7s %9s %9s %9s %8s %9s %8s %8s  %s\n", "ports", "links", "hosts", "channels",
	       "nu", "waiting", "buffer", "W", "W acks", "such as");
	for (uint32_t i = 0; i < classes; i++) {
		char sides[32];

		snprintf(sides, sizeof(sides), "%" PRIu32 ":%" PRIu32, p[i].below, n - p[i].below);
		printf("%-6s %7" PRIu32 " %9s %9" PRIu32 " %9.3f %6.1f %% ",
		       p[i].trunk ? "switch" : "host", p[i].count, sides, p[i].channels,
		       nu_of(&p[i], n), 100.0 * p[i].waiting / CN_TOPO_ALL);
		if (p[i].buffer == 0) {
			printf("%9s %8s %8s  ", "unknown", "-", "-");
		} else {
			printf("%9" PRIu32 " %8" PRIu32 " %8" PRIu32 "  ", p[i].buffer,
			       window_of(&p[i], n, 1), window_of(&p[i], n, 2));
		}
		puts(topo_link_name(t->topo, p[i].link, name));
	}
	if (w->bottleneck == NONE) {
		puts("\nW_g: off; no port that the exchange crosses has a known buffer");
		return;
	}
	window_text(w->data, w1);
	window_text(w->acks, w2);
	printf("\nW_g: %s frames in flight per host; %s if pure acknowledgements are counted, "
	       "which is the limit that collnet uses%s\nbottleneck: %s\n",
	       w1, w2, n < t->topo->nhosts ? " if that of all hosts is no smaller" : "",
	       topo_link_name(t->topo, w->bottleneck, name));
	if (w->slowest < w->acks) {
		printf("W_g is %" PRIu32 " in an all-to-all: frames collect at the slowest link, "
		       "%s\n",
		       w->slowest, topo_link_name(t->topo, w->slowest_link, name));
	}
	if (w->acks == 1 && w->slowest > 1 && w->two) {
		puts("W_g is 2 in an all-to-all: none are sent there, and the ports hold two");
	}
	print_rounded_up(t, p, classes);
	if (cn_topo_assumed_buffer(t->topo) != 0) {
		printf("no link has a known buffer; %u frames per port are assumed\n",
		       cn_topo_assumed_buffer(t->topo));
	}
}

static void json_window(struct json *j, const char *key, uint32_t window)
{
	if (window == COLLNET_WINDOW_OFF) {
		json_null(j, key);
	} else {
		json_uint(j, key, window);
	}
}

static int window_json(const struct topo_options *o, const struct cn_tree *t, const struct port *p,
		       uint32_t classes, const struct windows *w)
{
	char name[TOPO_LINK_TEXT];
	uint32_t n = t->nhosts;
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_string(&j, "source", topo_source(o));
	json_uint(&j, "hosts", n);
	json_array(&j, "ports");
	for (uint32_t i = 0; i < classes; i++) {
		json_object(&j, NULL);
		json_string(&j, "kind", p[i].trunk ? "switch" : "host");
		json_uint(&j, "links", p[i].count);
		json_string(&j, "such_as", topo_link_name(t->topo, p[i].link, name));
		json_uint(&j, "near", p[i].below);
		json_uint(&j, "far", n - p[i].below);
		json_uint(&j, "channels", p[i].channels);
		json_double(&j, "nu", nu_of(&p[i], n), 6);
		json_double(&j, "waiting", (double)p[i].waiting / CN_TOPO_ALL, 6);
		if (p[i].buffer == 0) {
			json_null(&j, "buffer");
			json_null(&j, "window_data");
			json_null(&j, "window");
		} else {
			json_uint(&j, "buffer", p[i].buffer);
			json_uint(&j, "window_data", window_of(&p[i], n, 1));
			json_uint(&j, "window", window_of(&p[i], n, 2));
		}
		json_object_end(&j);
	}
	json_array_end(&j);
	json_window(&j, "window_data", w->data);
	json_window(&j, "window", w->acks);
	json_string(&j, "bottleneck",
		    w->bottleneck == NONE ? NULL : topo_link_name(t->topo, w->bottleneck, name));
	json_window(&j, "window_slowest", w->slowest);
	json_string(&j, "slowest",
		    w->slowest_link == NONE ? NULL
					    : topo_link_name(t->topo, w->slowest_link, name));
	json_object_end(&j);
	return topo_finish(json_end(&j));
}

int topo_window(const struct topo_options *o)
{
	struct cn_topo *t = NULL;
	struct cn_tree *tree = NULL;
	struct cn_err err = { 0 };
	struct port *ports = NULL;
	uint32_t *hosts = NULL, n = 0, classes = 0;
	struct windows w = { .bottleneck = NONE };
	int rc = topo_open(o, &t, &err);

	if (rc == COLLNET_OK) {
		hosts = calloc(t->nhosts, sizeof(*hosts));
		rc = hosts != NULL ? topo_hosts(t, topo_source(o), o->hosts, hosts, &n, &err)
				   : cn_fail(&err, COLLNET_ENOMEM, "no memory for a list of hosts");
	}
	rc = rc != COLLNET_OK ? rc : cn_tree_make(t, hosts, n, NONE, &tree, &err);
	if (rc == COLLNET_OK) {
		ports = classify(tree, hosts, &classes);
		if (ports == NULL) {
			rc = cn_fail(&err, COLLNET_ENOMEM, "no memory for the ports");
		}
	}
	if (rc != COLLNET_OK) {
		rc = failed(&err);
	} else {
		w.data = cn_topo_window(t, hosts, n, 1, NULL);
		w.acks = cn_topo_window(t, hosts, n, 2, &w.bottleneck);
		w.slowest = cn_topo_slowest_window(t, hosts, n, 0, 1, &w.slowest_link);
		w.two = cn_topo_holds_two(t, hosts, n);
		if (o->json) {
			rc = window_json(o, tree, ports, classes, &w);
		} else {
			print_window(o, tree, ports, classes, &w);
			rc = topo_finish(fflush(stdout) == 0 && !ferror(stdout));
		}
	}
	free(ports);
	free(hosts);
	cn_tree_free(tree);
	cn_topo_free(t);
	return rc;
}
