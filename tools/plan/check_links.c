/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker: links and ports. Uses of links are sorted by phase and walked once; what a link or
 * a port carries is counted in arrays that begin anew with each phase. And the lower bound.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/cost.h"
#include "tools/plan/check_parts.h"

uint64_t cn_phase_bound(const struct cn_layout *l, enum cn_op_kind op, bool one_block)
{
	const struct cn_tree *t = l->tree;
	uint64_t bound = 0;

	if (t == NULL || l->nnodes < 2) {
		return 0;
	}
	if (!one_block) { /* who knows of a node's data doubles, at best, in a phase */
		while ((UINT64_C(1) << bound) < l->nnodes) {
			bound++;
		}
		return bound;
	}
	bound = l->nnodes - 1; /* one message to, or from, each of the others */
	for (uint32_t i = 1; op == CN_OP_ALLTOALL && i < t->n; i++) {
		uint64_t below = t->v[i].hosts, channels = cn_tree_channels(t, 2 * i);
		uint64_t load = (below * (l->nnodes - below) + channels - 1) / channels;

		bound = load > bound ? load : bound;
	}
	return bound;
}

/* What a link or a port has carried in the phase that it was used in last. */
struct load {
	uint32_t phase; /* index of the phase, from 1 */
	uint32_t count;
	uint32_t first; /* message of all that used it first in that phase */
};

struct walk {
	struct cn_check *c;
	unsigned guarantees;
	struct cn_check_report *out;
	struct cn_err *broken;
	uint32_t *path;
	struct load *link;	/* [2 tree->n] */
	struct load *to, *from; /* [nnodes] ports: of senders and of receivers */
	uint64_t *bytes;	/* [2 tree->n] */
	uint32_t *sender;	/* [2 tree->n] of a link's first use */
};

/* Counts one more; returns how many the phase has now. */
static uint32_t count_one(struct load *l, uint32_t phase, uint32_t g)
{
	if (l->phase != phase) {
		*l = (struct load){ phase, 0, g };
	}
	return ++l->count;
}

/* ---- by phase ----------------------------------------------------------------------------- */

static const struct cn_check_sent *message(const struct cn_check *c, uint32_t from, uint32_t g)
{
	return &c->nodes[from].sent[g - c->base[from]];
}

static uint32_t phase_of(const struct cn_check *c, uint32_t g)
{
	return message(c, cn_check_sender(c, g), g)->phase;
}

/* Sorts by phase, 11 bits at a time from the lowest; otherwise the order stays. */
static int sort_uses(struct cn_check *c, uint32_t highest, struct cn_err *err)
{
	uint32_t *key = malloc((c->nuses + 1) * sizeof(*key));
	uint32_t *key2 = malloc((c->nuses + 1) * sizeof(*key2));
	uint32_t *uses2 = malloc((c->nuses + 1) * sizeof(*uses2)), *x;
	uint32_t *start = malloc(2049 * sizeof(*start));
	bool memory = key != NULL && key2 != NULL && uses2 != NULL && start != NULL;

	for (uint32_t i = 0; memory && i < c->nuses; i++) {
		key[i] = phase_of(c, c->uses[i]);
	}
	for (unsigned shift = 0; memory && shift < 32 && highest >> shift > 0; shift += 11) {
		memset(start, 0, 2049 * sizeof(*start));
		for (uint32_t i = 0; i < c->nuses; i++) {
			start[(key[i] >> shift & 2047) + 1]++;
		}
		for (uint32_t d = 0; d < 2048; d++) {
			start[d + 1] += start[d];
		}
		for (uint32_t i = 0; i < c->nuses; i++) {
			uint32_t at = start[key[i] >> shift & 2047]++;

			key2[at] = key[i];
			uses2[at] = c->uses[i];
		}
		x = key, key = key2, key2 = x;
		x = c->uses, c->uses = uses2, uses2 = x;
	}
	free(key);
	free(key2);
	free(uses2);
	free(start);
	return memory ? COLLNET_OK
		      : cn_fail(err, COLLNET_ENOMEM, "no memory to sort %u messages", c->nuses);
}

/* Lists the uses of links, counts messages. */
static int list_uses(struct cn_check *c, struct cn_check_report *out, struct cn_err *err)
{
	uint32_t highest = 0;

	for (uint32_t a = 0; a < c->l->nnodes; a++) {
		for (uint32_t i = 0; i < c->nodes[a].nsent; i++) {
			const struct cn_check_sent *m = &c->nodes[a].sent[i];

			c->nuses += m->data && m->first;
			out->messages += m->data;
			out->syncs += !m->data;
			highest = m->data && m->phase > highest ? m->phase : highest;
		}
	}
	c->uses = malloc((c->nuses + 1) * sizeof(*c->uses));
	if (c->uses == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to sort %u messages", c->nuses);
	}
	c->nuses = 0;
	for (uint32_t a = 0; a < c->l->nnodes; a++) {
		for (uint32_t i = 0; i < c->nodes[a].nsent; i++) {
			if (c->nodes[a].sent[i].data && c->nodes[a].sent[i].first) {
				c->uses[c->nuses++] = c->base[a] + i;
			}
		}
	}
	out->phases = c->nuses > 0 ? highest + 1 : 0;
	return sort_uses(c, highest, err);
}

/* ---- the lower bound ------------------------------------------------------------------------ */

/*
 * Whether no message is of the blocks of several nodes: then a node, the root alone where there is
 * one, takes part in a message for each of the others. `sends`, `receives`: [nnodes], zero.
 */
static bool one_block(const struct cn_check *c, struct load *sends, struct load *receives)
{
	const enum cn_op_kind op = c->plan.op;
	const uint32_t n = c->l->nnodes;
	bool one = true;

	if (op != CN_OP_ALLTOALL && op != CN_OP_ALLGATHER && op != CN_OP_SCATTER &&
	    op != CN_OP_GATHER) {
		return false; /* a combination, and a barrier's message, stand for many */
	}
	for (uint32_t i = 0; i < c->nuses; i++) {
		uint32_t g = c->uses[i], from = cn_check_sender(c, g);

		sends[from].count++;
		receives[message(c, from, g)->to].count++;
	}
	for (uint32_t a = 0; a < n; a++) {
		const struct load *l = op == CN_OP_SCATTER ? &sends[a] : &receives[a];

		if (!cn_op_has_root(op) || a == c->l->node_of[c->plan.root]) {
			one = one && l->count >= n - 1;
		}
		sends[a].count = receives[a].count = 0;
	}
	return one;
}

/* ---- violations --------------------------------------------------------------------------- */

/* ", both over link s0 -> h9", where there is a tree. */
static const char *port_text(const struct walk *w, uint32_t node, bool sending, char *text,
			     size_t cap)
{
	const struct cn_tree *t = w->c->l->tree;
	char name[2 * CN_CHECK_NAME];

	text[0] = '\0';
	if (t != NULL && t->v[t->host[node]].parent != CN_TOPO_NONE) {
		snprintf(text, cap, ", both over link %s",
			 cn_tree_link_name(t, 2 * t->host[node] + !sending, name, sizeof(name)));
	}
	return text;
}

static void two_at_a_port(const struct walk *w, uint32_t from, uint32_t g, bool sending,
			  uint32_t first)
{
	struct cn_check *c = w->c;
	const struct cn_check_sent *m = message(c, from, g);
	uint32_t first_from = cn_check_sender(c, first), node = sending ? from : m->to;
	char name[CN_CHECK_NAME], one[CN_CHECK_NAME], two[CN_CHECK_NAME];
	char link[2 * CN_CHECK_NAME + 24];

	cn_check_name(c, sending ? message(c, first_from, first)->to : first_from, one);
	cn_check_name(c, sending ? m->to : from, two);
	cn_fail(w->broken, COLLNET_EINVAL, "phase %u: %s %s %s and %s %s%s", m->phase,
		cn_check_name(c, node, name), sending ? "sends to" : "receives from", one,
		sending ? "to" : "from", two, port_text(w, node, sending, link, sizeof(link)));
}

static void too_many_on_link(const struct walk *w, uint32_t from, uint32_t g, uint32_t link)
{
	struct cn_check *c = w->c;
	const struct cn_check_sent *m = message(c, from, g);
	uint32_t first = w->link[link].first, first_from = cn_check_sender(c, first);
	uint32_t channels = cn_tree_channels(c->l->tree, link);
	char one[CN_CHECK_PAIR], two[CN_CHECK_PAIR], name[2 * CN_CHECK_NAME];

	cn_check_pair(c, first_from, message(c, first_from, first)->to, one);
	cn_check_pair(c, from, m->to, two);
	cn_tree_link_name(c->l->tree, link, name, sizeof(name));
	if (channels == 1) {
		cn_fail(w->broken, COLLNET_EINVAL,
			"phase %u: %s and %s both use link %s, which has 1 channel", m->phase, one,
			two, name);
	} else {
		cn_fail(w->broken, COLLNET_EINVAL,
			"phase %u: %s, %s and %u more use link %s, which has %u channels", m->phase,
			one, two, channels - 1, name, channels);
	}
}

/* ---- walking ------------------------------------------------------------------------------ */

static void parse_ports(struct walk *w, uint32_t from, uint32_t g, uint32_t phase)
{
	struct load *s = &w->to[from], *r = &w->from[message(w->c, from, g)->to];

	if (count_one(s, phase, g) > 1 && w->guarantees != 0 && w->broken->code == 0) {
		two_at_a_port(w, from, g, true, s->first);
	}
	if (count_one(r, phase, g) > 1 && w->guarantees != 0 && w->broken->code == 0) {
		two_at_a_port(w, from, g, false, r->first);
	}
}

static void parse_path(struct walk *w, uint32_t from, uint32_t g, uint32_t phase)
{
	struct cn_check *c = w->c;
	const struct cn_check_sent *m = message(c, from, g);
	uint32_t links = cn_tree_path(c->l->tree, from, m->to, w->path);
	uint64_t bytes;

	cn_check_use_end(&c->nodes[from], g - c->base[from], &bytes);
	if (links > w->out->longest_path + 1) {
		w->out->longest_path = links - 1;
	}
	for (uint32_t i = 0; i < links; i++) {
		uint32_t link = w->path[i], load = count_one(&w->link[link], phase, g);

		if (load > w->out->link_load) {
			w->out->link_load = load;
			w->out->busiest = link;
			w->out->busiest_phase = m->phase;
		}
		w->bytes[link] += bytes;
		if (c->users[link]++ == 0) {
			w->sender[link] = from;
		}
		c->shared = c->shared || w->sender[link] != from;
		if ((w->guarantees & CN_GUARANTEE_LINKS) && w->broken->code == 0 &&
		    load > cn_tree_channels(c->l->tree, link)) {
			too_many_on_link(w, from, g, link);
		}
	}
}

/* The link that its bytes keep busy for the longest time. */
static void find_bottleneck(struct walk *w)
{
	const struct cn_tree *t = w->c->l->tree;
	double most = 0;

	for (uint32_t link = 2; link < 2 * t->n; link++) { /* the root has none */
		const struct cn_topo_link *l = &t->topo->links[t->v[link / 2].link];
		const double rate = l->rate != 0 ? (double)l->rate : cn_cost_default.rate,
			     time = (double)w->bytes[link] / (rate * l->channels);

		if (time > most) {
			most = time;
			w->out->link_total = w->bytes[link];
			w->out->bottleneck = link;
		}
	}
}

static void walk_uses(struct walk *w)
{
	struct cn_check *c = w->c;
	uint32_t phase = 0;

	for (uint32_t i = 0; i < c->nuses; i++) {
		uint32_t g = c->uses[i], from = cn_check_sender(c, g);

		if (i == 0 || phase_of(c, c->uses[i - 1]) != message(c, from, g)->phase) {
			phase++;
		}
		parse_ports(w, from, g, phase);
		if (c->l->tree != NULL) {
			parse_path(w, from, g, phase);
		}
	}
	if (c->l->tree != NULL) {
		find_bottleneck(w);
	}
}

int cn_check_links(struct cn_check *c, unsigned guarantees, struct cn_check_report *out,
		   struct cn_err *broken, struct cn_err *err)
{
	struct walk w = { .c = c, .guarantees = guarantees, .out = out, .broken = broken };
	const struct cn_tree *t = c->l->tree;
	size_t nlinks = t == NULL ? 1 : 2 * (size_t)t->n, n = c->l->nnodes;
	int rc = list_uses(c, out, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	w.path = calloc(t == NULL ? 1 : 2 * (size_t)t->height + 1, sizeof(*w.path));
	w.link = calloc(nlinks, sizeof(*w.link));
	w.to = calloc(n, sizeof(*w.to));
	w.from = calloc(n, sizeof(*w.from));
	w.bytes = calloc(nlinks, sizeof(*w.bytes));
	w.sender = calloc(nlinks, sizeof(*w.sender));
	c->users = calloc(nlinks, sizeof(*c->users));
	if (w.path == NULL || w.link == NULL || w.to == NULL || w.from == NULL || w.bytes == NULL ||
	    w.sender == NULL || c->users == NULL) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory to check %zu links", nlinks / 2);
	} else {
		out->one_block = one_block(c, w.to, w.from);
		out->bound = c->nuses == 0 ? 0 : cn_phase_bound(c->l, c->plan.op, out->one_block);
		walk_uses(&w);
	}
	free(w.path);
	free(w.link);
	free(w.to);
	free(w.from);
	free(w.bytes);
	free(w.sender);
	return rc;
}
