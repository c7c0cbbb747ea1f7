/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A schedule as text: a head, then a line for every message, phase by phase. The format is in
 * collnet-schedule(1); tools/schedule/read.c reads it. A line of a message:
 *
 *   phase 3: h0 -> h5 send block 5 to block 0, after m1 m2, needs m3, streams m4, as m7
 *
 * `after` is a wait, which holds back the sender's later messages too; `needs` and `streams` are
 * the dependency of this message; `as` names it for others.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/plan/emit.h"

struct text {
	const struct emit *e;
	FILE *f;
	struct emit_order order; /* of all nodes; not for one part alone */
	uint32_t *labels;	 /* of the items, or of the actions of the one part; 0: none */
	uint32_t nlabels;
};

#define REFERRED UINT32_MAX /* a label that has no number yet */

static const char *name_of(const struct text *t, uint32_t node)
{
	return cn_tree_node_name(t->e->layout->tree, node);
}

static void put_names(const struct text *t)
{
	uint32_t n = t->e->layout->nnodes;

	for (uint32_t i = 0; i < n; i++) {
		fprintf(t->f, "%s %s%s", i % 16 == 0 ? "hosts" : "", name_of(t, i),
			i % 16 == 15 || i + 1 == n ? "\n" : "");
	}
}

static void put_head(const struct text *t)
{
	const struct cn_plan *p = t->e->plan;
	const struct cn_sched *s = &t->e->parts[t->e->only == EMIT_ALL ? 0 : t->e->only];
	char guarantees[EMIT_GUARANTEES_TEXT];

	fprintf(t->f, "# A schedule of collnet; collnet-schedule(1) explains the format.\n");
	if (t->e->source != NULL) {
		fputs("# Network: ", t->f);
		emit_plain(t->e->source, t->f);
		fputs(".\n", t->f);
	}
	fprintf(t->f, "schedule %s\nalgorithm %s\n", cn_op_name(p->op), t->e->algorithm);
	put_names(t);
	fprintf(t->f, "size %" PRIu64 "\n", p->bytes);
	if (cn_op_has_root(p->op)) {
		fprintf(t->f, "root %s\n", name_of(t, t->e->layout->node_of[p->root]));
	}
	fprintf(t->f, "order %s\nphases %u\nguarantees %s\n", emit_order_name(s->order), s->phases,
		emit_guarantees(t->e->guarantees, guarantees));
	if (t->e->only != EMIT_ALL) {
		fprintf(t->f, "part %s\n", name_of(t, t->e->only));
	}
	putc('\n', t->f);
}

/* "block 5", "blocks 5-7", "bytes 1000+24". */
static void put_place(const struct text *t, const struct cn_span *s, uint64_t len)
{
	uint64_t size = t->e->plan->bytes;

	if (size == 0 || len == 0 || s->offset % size != 0 || len % size != 0) {
		fprintf(t->f, "bytes %" PRIu64 "+%" PRIu64, s->offset, len);
	} else if (len == size) {
		fprintf(t->f, "block %" PRIu64, s->offset / size);
	} else {
		fprintf(t->f, "blocks %" PRIu64 "-%" PRIu64, s->offset / size,
			(s->offset + len) / size - 1);
	}
}

static void put_buffer(const struct text *t, const struct cn_span *s, uint64_t len)
{
	fputs(s->buffer == CN_BUF_SEND	 ? " send "
	      : s->buffer == CN_BUF_RECV ? " recv "
					 : " scratch ",
	      t->f);
	put_place(t, s, len);
}

/* What the action of this node is named by; 0: no name. */
static uint32_t *label(struct text *t, uint32_t node, uint32_t action)
{
	uint32_t i = action;

	if (t->e->only == EMIT_ALL) {
		i = t->order.item_of[t->order.start[node] + action];
		if (i == EMIT_NONE) {
			return NULL; /* a wait for a wait */
		}
	}
	return &t->labels[i];
}

static void refer(struct text *t, uint32_t node)
{
	const struct cn_sched *s = &t->e->parts[node];

	for (uint32_t i = 0; i < s->n; i++) {
		if (s->actions[i].dep != CN_DEP_NONE) {
			uint32_t *l = label(t, node, s->actions[i].dep_on);

			if (l != NULL) {
				*l = REFERRED;
			}
		}
		if (s->actions[i].kind == CN_ACT_REDUCE && s->actions[i].after != i) {
			uint32_t *l = label(t, node, s->actions[i].after);

			if (l != NULL) {
				*l = REFERRED;
			}
		}
	}
}

static void put_dep(struct text *t, uint32_t node, const char *word, uint32_t on)
{
	const uint32_t *l = label(t, node, on);

	if (l != NULL) {
		fprintf(t->f, "%s m%u", word, *l);
	}
}

/* The waits of the list between the send before and this one. */
static void put_waits(struct text *t, uint32_t node, uint32_t action)
{
	const struct cn_action *list = t->e->parts[node].actions;
	uint32_t first = action;
	bool some = false;

	while (first > 0 && list[first - 1].kind != CN_ACT_SEND) {
		first--;
	}
	for (; first < action; first++) {
		if (list[first].kind == CN_ACT_WAIT && list[first].dep != CN_DEP_NONE) {
			put_dep(t, node, some ? "" : ", after", list[first].dep_on);
			some = true;
		}
	}
}

static void put_action(struct text *t, uint32_t node, uint32_t action)
{
	const struct cn_action *a = &t->e->parts[node].actions[action];
	uint32_t from = a->kind == CN_ACT_RECV ? a->peer : node;
	uint32_t to = a->kind == CN_ACT_RECV ? node : a->peer;
	uint32_t *l = label(t, node, action);

	if (a->kind != CN_ACT_REDUCE) {
		fprintf(t->f, "phase %u: ", a->phase);
	}
	fprintf(t->f, "%s ", name_of(t, from));
	if (a->kind == CN_ACT_REDUCE) {
		fputs("combines", t->f);
		put_buffer(t, &a->src, a->len);
		fputs(" and", t->f);
		put_buffer(t, &a->right, a->len);
		fputs(" to", t->f);
		put_buffer(t, &a->dst, a->len);
	} else if (emit_is_sync(a)) {
		fprintf(t->f, "=> %s sync", name_of(t, to));
	} else {
		if (a->kind == CN_ACT_COPY) {
			fputs("copies", t->f);
		} else {
			fprintf(t->f, "-> %s", name_of(t, to));
		}
		put_buffer(t, &a->src, a->len);
		fputs(" to", t->f);
		if (cn_op_reduces(t->e->plan->op)) {
			put_buffer(t, &a->dst, a->len);
		} else {
			putc(' ', t->f);
			put_place(t, &a->dst, a->len);
		}
	}
	if (a->kind == CN_ACT_SEND) {
		put_waits(t, node, action);
	}
	if (a->kind != CN_ACT_RECV && a->dep != CN_DEP_NONE) {
		put_dep(t, node, a->dep == CN_DEP_STREAM ? ", streams" : ", needs", a->dep_on);
	}
	if (a->kind == CN_ACT_REDUCE && a->after != action) {
		put_dep(t, node, ", needs", a->after);
	}
	if (l != NULL && *l == REFERRED) {
		*l = ++t->nlabels;
		fprintf(t->f, ", as m%u", *l);
	}
	putc('\n', t->f);
}

static int put_part(struct text *t, struct cn_err *err)
{
	const struct cn_sched *s = &t->e->parts[t->e->only];

	t->labels = calloc((size_t)s->n + 1, sizeof(*t->labels));
	if (t->labels == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for %u names", s->n);
	}
	refer(t, t->e->only);
	put_head(t);
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->actions[i].kind != CN_ACT_WAIT) {
			put_action(t, t->e->only, i);
		}
	}
	return COLLNET_OK;
}

static int put_all(struct text *t, struct cn_err *err)
{
	int rc = emit_order_make(t->e, &t->order, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	t->labels = calloc((size_t)t->order.n + 1, sizeof(*t->labels));
	if (t->labels == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for %u names", t->order.n);
	}
	for (uint32_t b = 0; b < t->e->layout->nnodes; b++) {
		refer(t, b);
	}
	put_head(t);
	for (uint32_t i = 0; i < t->order.n; i++) {
		put_action(t, t->order.items[i].node, t->order.items[i].action);
	}
	return COLLNET_OK;
}

int emit_text(const struct emit *e, FILE *f, struct cn_err *err)
{
	struct text t = { .e = e, .f = f };
	int rc = e->only == EMIT_ALL ? put_all(&t, err) : put_part(&t, err);

	emit_order_free(&t.order);
	free(t.labels);
	if (rc == COLLNET_OK && (fflush(f) != 0 || ferror(f))) {
		rc = cn_fail(err, COLLNET_ESYSTEM, "the schedule could not be written: %s",
			     strerror(errno));
	}
	return rc;
}
