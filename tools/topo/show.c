/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `collnet topo show` and `check`: what a topology is, in words and as a tree, and what its file
 * leaves out. The tree is walked without recursion, and its indentation has a limit: a chain of
 * 100,000 switches is a legal topology.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/topo/command.h"

#define NONE	       CN_TOPO_NONE
#define SWITCHES_SHOWN 64u /* a tree of more is summed up by levels */
#define LEVELS_SHOWN   16u
#define NAMES_SHOWN    6u
#define INDENT_MAX     32u /* levels */
#define TEXT_MAX       96

/* ---- words ---------------------------------------------------------------------------- */

static const char *plural(uint64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* "1 Gbit/s, 45 frames, 4 channels"; what is unknown is left out. */
static const char *link_text(const struct cn_topo_link *l, char text[TEXT_MAX])
{
	char rate[TOOL_TEXT];
	int n = 0;

	text[0] = 0;
	if (l->rate != 0) {
		n += snprintf(text, TEXT_MAX, "%s", tool_format_rate(l->rate, rate));
	}
	if (l->buffer != 0) {
		n += snprintf(text + n, TEXT_MAX - (size_t)n, "%s%" PRIu32 " %s", n > 0 ? ", " : "",
			      l->buffer, plural(l->buffer, "frame", "frames"));
	}
	if (l->channels > 1) {
		snprintf(text + n, TEXT_MAX - (size_t)n, "%s%" PRIu32 " channels",
			 n > 0 ? ", " : "", l->channels);
	}
	return text;
}

/* "20 Mbit/s", "20 Mbit/s to 1 Gbit/s", "an unknown rate". */
static const char *rates_text(const uint64_t r[2], char text[TEXT_MAX])
{
	char low[TOOL_TEXT], high[TOOL_TEXT];

	if (r[0] == 0) {
		snprintf(text, TEXT_MAX, "an unknown rate");
	} else if (r[0] == r[1]) {
		snprintf(text, TEXT_MAX, "%s", tool_format_rate(r[0], low));
	} else {
		snprintf(text, TEXT_MAX, "%s to %s", tool_format_rate(r[0], low),
			 tool_format_rate(r[1], high));
	}
	return text;
}

/* ", but 4 of them at an unknown rate", unless it is that of all. */
static void print_unknown(uint32_t no_rate, const uint64_t rate[2])
{
	if (no_rate > 0 && rate[0] != 0) {
		printf(", but %" PRIu32 " of them at an unknown rate", no_rate);
	}
}

static const char *summary(const struct cn_topo *t, const struct topo_facts *f,
			   char text[TEXT_MAX * 2])
{
	snprintf(text, TEXT_MAX * 2,
		 "%" PRIu32 " %s, %" PRIu32 " %s, %" PRIu32 " %s, height %" PRIu32, f->switches,
		 plural(f->switches, "switch", "switches"), t->nhosts,
		 plural(t->nhosts, "host", "hosts"), t->nlinks, plural(t->nlinks, "link", "links"),
		 f->height);
	return text;
}

/* ---- the tree ------------------------------------------------------------------------- */

/* Children of every vertex in the spanning tree: hosts and switches apart, in their order. */
struct family {
	uint32_t *host, *sw; /* first child of each kind */
	uint32_t *next;	     /* of the same kind */
	uint32_t *last, *depth;
};

static bool family_make(const struct cn_topo *t, struct family *f)
{
	uint32_t n = t->nvertices, *p = malloc((size_t)n * 5 * sizeof(*p)), i, v;

	if (p == NULL) {
		return false;
	}
	f->host = p;
	f->sw = p + n;
	f->next = p + 2 * (size_t)n;
	f->last = p + 3 * (size_t)n;
	f->depth = p + 4 * (size_t)n;
	memset(p, 0xff, (size_t)n * 4 * sizeof(*p));
	f->depth[t->root] = 0;
	for (i = n; i-- > 1;) { /* backwards, each in front of its siblings */
		uint32_t *first;

		v = t->order[i];
		first = t->vertices[v].is_switch ? &f->sw[t->vertices[v].parent]
						 : &f->host[t->vertices[v].parent];
		f->next[v] = *first;
		*first = v;
	}
	for (i = 1; i < n; i++) {
		v = t->order[i];
		f->depth[v] = f->depth[t->vertices[v].parent] + 1;
	}
	return true;
}

static void indent(uint32_t depth)
{
	if (depth > INDENT_MAX) {
		printf("%*s[%" PRIu32 "] ", (int)INDENT_MAX * 2, "", depth);
	} else {
		printf("%*s", (int)depth * 2, "");
	}
}

static bool alike(const struct cn_topo_link *a, const struct cn_topo_link *b)
{
	return a->rate == b->rate && a->buffer == b->buffer && a->channels == b->channels;
}

/* The hosts of a switch, a line for each run of equal links: "8 hosts h0 h1 .. h7: 20 Mbit/s". */
static void print_hosts(const struct cn_topo *t, const struct family *f, uint32_t sw, bool all)
{
	char text[TEXT_MAX];
	uint32_t v, end, last, n, i;

	for (v = f->host[sw]; v != NONE; v = end) {
		const struct cn_topo_link *l = &t->links[t->vertices[v].parent_link];

		n = 0;
		last = v;
		for (end = v; end != NONE && alike(l, &t->links[t->vertices[end].parent_link]);
		     end = f->next[end]) {
			last = end;
			n++;
		}
		indent(f->depth[v]);
		printf("%" PRIu32 " %s", n, plural(n, "host", "hosts"));
		for (i = 0; i < n; i++, v = f->next[v]) {
			if (all || n <= NAMES_SHOWN || i + 2 < NAMES_SHOWN) {
				printf(" %s", t->vertices[v].name);
			} else if (i + 2 == NAMES_SHOWN) {
				printf(" .. %s", t->vertices[last].name);
			}
		}
		link_text(l, text);
		printf("%s%s\n", text[0] == 0 ? "" : ": ", text);
	}
}

static void print_switch(const struct cn_topo *t, const struct family *f, uint32_t v)
{
	const struct cn_vertex *x = &t->vertices[v];
	char text[TEXT_MAX] = "";

	indent(f->depth[v]);
	if (x->parent != NONE) {
		link_text(&t->links[x->parent_link], text);
	}
	printf("%s%s%s\n", x->name, text[0] == 0 ? "" : ": ", text);
}

/* Preorder: a switch, its hosts, then its switches. */
static void print_tree(const struct cn_topo *t, const struct family *f, bool all)
{
	uint32_t v = t->root;

	for (;;) {
		print_switch(t, f, v);
		print_hosts(t, f, v, all);
		if (f->sw[v] != NONE) {
			v = f->sw[v];
			continue;
		}
		while (v != t->root && f->next[v] == NONE) {
			v = t->vertices[v].parent;
		}
		if (v == t->root) {
			return;
		}
		v = f->next[v];
	}
}

/* "level 1: 64 switches": order[] is level by level only in a breadth-first tree, so count. */
static void print_levels(const struct cn_topo *t, const struct family *f, uint32_t height)
{
	uint32_t *count = calloc((size_t)height + 1, 2 * sizeof(*count)), v, d;

	if (count == NULL) {
		return;
	}
	for (v = 0; v < t->nvertices; v++) {
		count[2 * f->depth[v] + (t->vertices[v].is_switch ? 0 : 1)]++;
	}
	for (d = 0; d <= height && d < LEVELS_SHOWN; d++) {
		printf("  level %" PRIu32 ": %" PRIu32 " %s, %" PRIu32 " %s\n", d, count[2 * d],
		       plural(count[2 * d], "switch", "switches"), count[2 * d + 1],
		       plural(count[2 * d + 1], "host", "hosts"));
	}
	if (d <= height) {
		printf("  and %" PRIu32 " more %s\n", height + 1 - d,
		       plural(height + 1 - d, "level", "levels"));
	}
	puts("  (--all shows every switch)");
	free(count);
}

/* ---- show ----------------------------------------------------------------------------- */

static void print_unused(const struct cn_topo *t, const struct topo_facts *f, bool all)
{
	char name[TOPO_LINK_TEXT];
	uint32_t i, n = 0;

	if (f->unused == 0) {
		puts("unused links   none");
		return;
	}
	printf("unused links   %" PRIu32 ":", f->unused);
	for (i = 0; i < t->nlinks; i++) {
		if (cn_topo_in_tree(t, i)) {
			continue;
		}
		if (!all && n == NAMES_SHOWN) {
			fputs(", ..", stdout);
			break;
		}
		printf("%s %s", n++ > 0 ? "," : "", topo_link_name(t, i, name));
	}
	putchar('\n');
}

static void print_facts(const struct cn_topo *t, const struct topo_facts *f)
{
	char hosts[TEXT_MAX], trunks[TEXT_MAX], name[TOPO_LINK_TEXT], rate[TOOL_TEXT];
	uint32_t trunk = f->switches > 0 ? f->switches - 1 : 0;

	printf("hosts          %" PRIu32 ", at %s", t->nhosts, rates_text(f->host_rate, hosts));
	print_unknown(f->host_no_rate, f->host_rate);
	printf("\nswitches       %" PRIu32, f->switches);
	if (trunk > 0) {
		printf(", joined by %" PRIu32 " %s of the tree at %s", trunk,
		       plural(trunk, "link", "links"), rates_text(f->trunk_rate, trunks));
		print_unknown(f->trunk_no_rate, f->trunk_rate);
	}
	printf("\nspanning tree  root %s, height %" PRIu32 "; longest path %" PRIu32 " %s\n",
	       t->vertices[t->root].name, f->height, f->longest,
	       plural(f->longest, "switch", "switches"));
	if (f->busiest != NONE) {
		uint32_t c = t->links[f->busiest].channels;

		printf("all-to-all     %" PRIu64 " %s at least: %s parts the hosts %" PRIu32
		       " to %" PRIu32 ", %" PRIu64 " %s each way",
		       f->bound, plural(f->bound, "phase", "phases"),
		       topo_link_name(t, f->busiest, name), f->below, t->nhosts - f->below,
		       f->messages, plural(f->messages, "message", "messages"));
		if (c > 1) {
			printf(" on %" PRIu32 " channels", c);
		}
		putchar('\n');
	}
	if (f->slowest != NONE && f->slowest != f->busiest) {
		const struct cn_topo_link *l = &t->links[f->slowest];

		printf("               by its rate, %s takes longest: %" PRIu64 " %s at %s\n",
		       topo_link_name(t, f->slowest, name), f->slowest_messages,
		       plural(f->slowest_messages, "message", "messages"),
		       tool_format_rate(l->rate * l->channels, rate));
	}
}

static void facts_json(struct json *j, const struct cn_topo *t, const struct topo_facts *f)
{
	char name[TOPO_LINK_TEXT];

	json_uint(j, "nhosts", t->nhosts);
	json_uint(j, "nswitches", f->switches);
	json_uint(j, "nlinks", t->nlinks);
	json_uint(j, "unused_links", f->unused);
	json_string(j, "root", t->vertices[t->root].name);
	json_uint(j, "height", f->height);
	json_uint(j, "longest_path", f->longest);
	if (f->busiest == NONE) {
		json_null(j, "bottleneck");
	} else {
		json_object(j, "bottleneck");
		json_string(j, "link", topo_link_name(t, f->busiest, name));
		json_uint(j, "below", f->below);
		json_uint(j, "messages", f->messages);
		json_uint(j, "channels", t->links[f->busiest].channels);
		json_object_end(j);
	}
	json_uint(j, "phases_bound", f->bound);
	json_string(j, "slowest", f->slowest == NONE ? NULL : topo_link_name(t, f->slowest, name));
}

static int show_json(const struct topo_options *o, const struct cn_topo *t,
		     const struct topo_facts *f)
{
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_string(&j, "source", topo_source(o));
	facts_json(&j, t, f);
	topo_json(&j, t);
	json_object_end(&j);
	return topo_finish(json_end(&j));
}

int topo_show(const struct topo_options *o)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	struct topo_facts f;
	struct family family;
	char text[TEXT_MAX * 2];
	int rc = TOOL_OK;

	if (topo_open(o, &t, &err) != COLLNET_OK) {
		tool_complain("%s", err.text);
		return TOOL_FAILED;
	}
	topo_count(t, &f);
	if (o->json) {
		rc = show_json(o, t, &f);
	} else if (!family_make(t, &family)) {
		tool_complain("no memory for the tree");
		rc = TOOL_FAILED;
	} else {
		printf("%s: %s\n", topo_source(o), summary(t, &f, text));
		print_facts(t, &f);
		print_unused(t, &f, o->all);
		putchar('\n');
		if (o->all || f.switches <= SWITCHES_SHOWN) {
			print_tree(t, &family, o->all);
		} else {
			print_levels(t, &family, f.height);
		}
		free(family.host);
	}
	cn_topo_free(t);
	return rc;
}

/* ---- check ---------------------------------------------------------------------------- */

/* Where warnings go: lines, or items of a JSON array. */
struct warnings {
	struct json *json; /* NULL: text */
	uint32_t n;
};

static void warn(struct warnings *w, const char *kind, uint32_t count, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void warn(struct warnings *w, const char *kind, uint32_t count, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	w->n++;
	if (w->json == NULL) {
		printf("warning: %s\n", text);
		return;
	}
	json_object(w->json, NULL);
	json_string(w->json, "kind", kind);
	json_uint(w->json, "count", count);
	json_string(w->json, "text", text);
	json_object_end(w->json);
}

static void warn_graph(struct warnings *w, const struct cn_topo *t, const struct topo_facts *f)
{
	char name[TOPO_LINK_TEXT];
	uint32_t i = 0;

	if (f->unused > 0) {
		while (cn_topo_in_tree(t, i)) {
			i++;
		}
		warn(w, "unused-links", f->unused,
		     "%" PRIu32 " %s not in the spanning tree (such as %s); if your switches use "
		     "another tree, select it with collnet topo tree",
		     f->unused, plural(f->unused, "link is", "links are"),
		     topo_link_name(t, i, name));
	}
	for (i = 0; f->empty > 0 && i < t->nvertices; i++) {
		if (t->vertices[i].is_switch && t->vertices[i].hosts == 0) {
			warn(w, "empty-switches", f->empty,
			     "%" PRIu32 " %s to no host (such as %s)", f->empty,
			     plural(f->empty, "switch leads", "switches lead"),
			     t->vertices[i].name);
			break;
		}
	}
}

static void warn_links(struct warnings *w, const struct cn_topo *t, const struct topo_facts *f)
{
	char text[TEXT_MAX];

	if (f->host_rate[0] != f->host_rate[1]) {
		warn(w, "host-rates", 2,
		     "hosts have unequal rates, %s: schedules count frames, so that "
		     "the slowest host determines the speed",
		     rates_text(f->host_rate, text));
	}
	if (f->trunk_rate[0] != f->trunk_rate[1]) {
		warn(w, "switch-rates", 2,
		     "links between switches have unequal rates, %s: phases "
		     "are as long as on the slowest of them",
		     rates_text(f->trunk_rate, text));
	}
	if (f->no_rate > 0) {
		warn(w, "no-rate", f->no_rate,
		     "%" PRIu32 " of %" PRIu32 " links %s no rate: "
		     "predictions use that of the nodes' interfaces, or 1 Gbit/s",
		     f->no_rate, f->used, plural(f->no_rate, "has", "have"));
	}
	if (f->no_buffer > 0) {
		const uint32_t frames = cn_topo_assumed_buffer(t);
		char assumed[64];

		snprintf(assumed, sizeof(assumed), "the window assumes %u frames per port", frames);
		warn(w, "no-buffer", f->no_buffer,
		     "%" PRIu32 " of %" PRIu32 " links %s no buffer: %s", f->no_buffer, f->used,
		     plural(f->no_buffer, "has", "have"),
		     frames != 0 ? assumed : "the window ignores their ports");
	}
}

static int check_failed(const struct topo_options *o, const struct cn_err *err)
{
	struct json j;

	if (!o->json) {
		tool_complain("%s", err->text);
		return TOOL_FAILED;
	}
	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_string(&j, "source", topo_source(o));
	json_bool(&j, "ok", false);
	json_string(&j, "error", err->text);
	json_object_end(&j);
	(void)topo_finish(json_end(&j));
	return TOOL_FAILED;
}

int topo_check(const struct topo_options *o)
{
	struct warnings w = { NULL, 0 };
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	struct topo_facts f;
	char text[TEXT_MAX * 2];
	int rc = TOOL_OK;
	struct json j;

	if (topo_open(o, &t, &err) != COLLNET_OK) {
		return check_failed(o, &err);
	}
	topo_count(t, &f);
	if (o->json) {
		w.json = &j;
		json_begin(&j, stdout);
		json_object(&j, NULL);
		json_string(&j, "source", topo_source(o));
		json_bool(&j, "ok", true);
		facts_json(&j, t, &f);
		json_array(&j, "warnings");
	} else {
		printf("%s: OK, %s\n", topo_source(o), summary(t, &f, text));
	}
	warn_graph(&w, t, &f);
	warn_links(&w, t, &f);
	if (o->json) {
		json_array_end(&j);
		json_object_end(&j);
		rc = topo_finish(json_end(&j));
	}
	cn_topo_free(t);
	return rc;
}
