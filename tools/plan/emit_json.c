/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A schedule as one JSON object: the head, and for every node the list of its actions, as they are
 * in sched.h.
 */
#include <errno.h>
#include <string.h>

#include "tools/plan/emit.h"

static void put_span(struct json *j, const char *key, const struct cn_span *s)
{
	static const char *const buffers[] = { "none", "send", "recv", "digest", "scratch" };

	json_object(j, key);
	json_string(j, "buffer", buffers[s->buffer]);
	json_uint(j, "rank", s->rank);
	json_uint(j, "offset", s->offset);
	json_object_end(j);
}

static void put_action(struct json *j, const struct emit *e, const struct cn_action *a,
		       uint32_t number)
{
	static const char *const kinds[] = { "send", "recv", "copy", "wait", "reduce" };
	static const char *const deps[] = { NULL, "complete", "stream" };

	json_object(j, NULL);
	json_string(j, "action", kinds[a->kind]);
	json_uint(j, "phase", a->phase);
	if (a->kind != CN_ACT_WAIT) {
		json_string(j, "peer", cn_tree_node_name(e->layout->tree, a->peer));
		json_bool(j, "sync", emit_is_sync(a));
		json_uint(j, "bytes", a->len);
		put_span(j, "from", &a->src);
		if (a->kind == CN_ACT_REDUCE) {
			put_span(j, "right", &a->right);
		}
		put_span(j, "to", &a->dst);
	}
	json_string(j, "dependency", deps[a->dep]);
	if (a->dep == CN_DEP_NONE) {
		json_null(j, "on");
	} else {
		json_uint(j, "on", a->dep_on);
	}
	if (a->kind == CN_ACT_REDUCE && a->after != number) {
		json_uint(j, "after", a->after);
	} else if (a->kind == CN_ACT_REDUCE) {
		json_null(j, "after");
	}
	json_object_end(j);
}

static void put_node(struct json *j, const struct emit *e, uint32_t node)
{
	json_object(j, NULL);
	json_string(j, "host", cn_tree_node_name(e->layout->tree, node));
	json_uint(j, "rank", e->layout->ranks[e->layout->first[node]]);
	json_array(j, "actions");
	for (uint32_t i = 0; i < e->parts[node].n; i++) {
		put_action(j, e, &e->parts[node].actions[i], i);
	}
	json_array_end(j);
	json_object_end(j);
}

void emit_json_guarantees(struct json *j, unsigned guarantees)
{
	char text[EMIT_GUARANTEES_TEXT];

	json_array(j, "guarantees");
	for (unsigned guarantee = CN_GUARANTEE_LINKS; guarantee <= CN_GUARANTEE_OPTIMAL;
	     guarantee *= 2) {
		if (guarantees & guarantee) {
			json_string(j, NULL, emit_guarantees(guarantee, text));
		}
	}
	json_array_end(j);
}

int emit_json(const struct emit *e, FILE *f, struct cn_err *err)
{
	const struct cn_sched *s = &e->parts[e->only == EMIT_ALL ? 0 : e->only];
	struct json j;

	json_begin(&j, f);
	json_object(&j, NULL);
	json_string(&j, "op", cn_op_name(e->plan->op));
	json_string(&j, "algorithm", e->algorithm);
	json_uint(&j, "hosts", e->layout->nnodes);
	json_uint(&j, "size", e->plan->bytes);
	if (cn_op_has_root(e->plan->op)) {
		json_uint(&j, "root", e->plan->root);
	} else {
		json_null(&j, "root");
	}
	json_string(&j, "order", emit_order_name(s->order));
	json_uint(&j, "phases", s->phases);
	emit_json_guarantees(&j, e->guarantees);
	json_array(&j, "nodes");
	for (uint32_t b = 0; b < e->layout->nnodes; b++) {
		if (e->only == EMIT_ALL || e->only == b) {
			put_node(&j, e, b);
		}
	}
	json_array_end(&j);
	json_object_end(&j);
	if (!json_end(&j)) {
		return cn_fail(err, COLLNET_ESYSTEM, "the schedule could not be written: %s",
			       strerror(errno));
	}
	return COLLNET_OK;
}
