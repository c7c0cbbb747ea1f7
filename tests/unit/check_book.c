/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_book.h"

struct book *b_open(const char *text, enum cn_op_kind op, uint64_t bytes)
{
	struct book *b = calloc(1, sizeof(*b));
	struct cn_err err = { 0 };

	assert_non_null(b);
	if (cn_topo_parse(text, strlen(text), "text", &b->topo, &err) ||
	    cn_tree_make(b->topo, b->topo->hosts, b->topo->nhosts, CN_TOPO_NONE, &b->tree, &err)) {
		fail_msg("%s", err.text);
	}
	for (uint32_t i = 0; i < b->topo->nhosts; i++) {
		b->node_of[i] = b->ranks[i] = i;
		b->first[i + 1] = i + 1;
	}
	b->l = (struct cn_layout){ .nranks = b->topo->nhosts,
				   .nnodes = b->topo->nhosts,
				   .node_of = b->node_of,
				   .first = b->first,
				   .ranks = b->ranks,
				   .tree = b->tree };
	b->p = (struct cn_plan){ .op = op, .bytes = bytes };
	return b;
}

void b_close(struct book *b)
{
	for (uint32_t i = 0; i < O_NODES; i++) {
		cn_sched_reset(&b->s[i]);
	}
	cn_tree_free(b->tree);
	cn_topo_free(b->topo);
	free(b);
}

uint32_t b_add(struct book *b, uint32_t node, struct cn_action a)
{
	struct cn_err err = { 0 };

	if (cn_sched_add(&b->s[node], &a, &err)) {
		fail_msg("%s", err.text);
	}
	if (a.kind != CN_ACT_WAIT && a.phase >= b->s[node].phases) {
		b->s[node].phases = a.phase + 1;
	}
	return b->s[node].n - 1;
}

/* Block d of rank s, on its way to rank d. */
static struct cn_action block(const struct book *b, uint32_t s, uint32_t d)
{
	uint64_t bytes = b->p.bytes;

	return (struct cn_action){ .src = { CN_BUF_SEND, s, d * bytes },
				   .dst = { CN_BUF_RECV, d, s * bytes },
				   .len = bytes };
}

void b_add_message(struct book *b, uint32_t node, const struct b_message *m, bool send)
{
	const struct cn_layout *l = &b->l;

	for (uint32_t i = l->first[m->from]; i < l->first[m->from + 1]; i++) {
		for (uint32_t k = l->first[m->to]; k < l->first[m->to + 1]; k++) {
			struct cn_action a = block(b, l->ranks[i], l->ranks[k]);

			a.kind = send ? CN_ACT_SEND : CN_ACT_RECV;
			a.peer = send ? m->to : m->from;
			a.phase = m->phase;
			b_add(b, node, a);
		}
	}
}

static void add_copies(struct book *b, uint32_t node)
{
	for (uint32_t i = b->l.first[node]; i < b->l.first[node + 1]; i++) {
		for (uint32_t k = b->l.first[node]; k < b->l.first[node + 1]; k++) {
			struct cn_action a = block(b, b->l.ranks[i], b->l.ranks[k]);

			a.kind = CN_ACT_COPY;
			a.peer = node;
			b_add(b, node, a);
		}
	}
}

/* A node's list, phase by phase: waits, data, what others are told, what comes. */
static void write_node(struct book *b, uint32_t node)
{
	uint32_t told[B_MESSAGES];

	add_copies(b, node);
	for (uint32_t phase = 0; phase < b->phases; phase++) {
		for (uint32_t i = 0; i < b->ny; i++) {
			if (b->y[i].to == node && b->y[i].until == phase) {
				b_add(b, node,
				      (struct cn_action){ .kind = CN_ACT_WAIT,
							  .peer = node,
							  .dep = CN_DEP_COMPLETE,
							  .dep_on = told[i] });
			}
		}
		for (uint32_t i = 0; i < b->nm; i++) {
			if (b->m[i].from == node && b->m[i].phase == phase) {
				b_add_message(b, node, &b->m[i], true);
			}
		}
		for (uint32_t i = 0; i < b->ny; i++) {
			if (b->y[i].from == node && b->y[i].phase == phase) {
				b_add(b, node,
				      (struct cn_action){ .kind = CN_ACT_SEND,
							  .peer = b->y[i].to,
							  .phase = phase });
			}
		}
		for (uint32_t i = 0; i < b->nm; i++) {
			if (b->m[i].to == node && b->m[i].phase == phase) {
				b_add_message(b, node, &b->m[i], false);
			}
		}
		for (uint32_t i = 0; i < b->ny; i++) {
			if (b->y[i].to == node && b->y[i].phase == phase) {
				told[i] = b_add(b, node,
						(struct cn_action){ .kind = CN_ACT_RECV,
								    .peer = b->y[i].from,
								    .phase = phase });
			}
		}
	}
}

void b_write(struct book *b)
{
	b->phases = 0;
	for (uint32_t i = 0; i < b->nm; i++) {
		b->phases = b->m[i].phase >= b->phases ? b->m[i].phase + 1 : b->phases;
	}
	for (uint32_t node = 0; node < b->l.nnodes; node++) {
		b->s[node].n = b->s[node].phases = 0;
		write_node(b, node);
		b->s[node].phases = b->phases;
	}
}

bool b_on_link(const struct book *b, const struct b_message *m, uint32_t link)
{
	uint32_t path[64], n = cn_tree_path(b->l.tree, m->from, m->to, path);

	for (uint32_t i = 0; i < n; i++) {
		if (path[i] == link) {
			return true;
		}
	}
	return false;
}

void b_synchronise(struct book *b)
{
	b->ny = 0;
	for (uint32_t link = 2; link < 2 * b->l.tree->n; link++) {
		for (uint32_t i = 0; i < b->nm; i++) {
			const struct b_message *x = &b->m[i], *next = NULL;

			for (uint32_t k = 0; k < b->nm && b_on_link(b, x, link); k++) {
				const struct b_message *y = &b->m[k];

				if (y->phase > x->phase && b_on_link(b, y, link) &&
				    (next == NULL || y->phase < next->phase)) {
					next = y;
				}
			}
			if (next != NULL && next->from != x->from) {
				assert_true(b->ny < B_MESSAGES);
				b->y[b->ny++] = (struct b_sync){ x->from, next->from, x->phase,
								 next->phase };
			}
		}
	}
}

void b_put(struct book *b, uint32_t from, uint32_t to, uint32_t phase)
{
	assert_true(b->nm < B_MESSAGES);
	b->m[b->nm++] = (struct b_message){ from, to, phase };
}

uint32_t b_find(const struct book *b, uint32_t node, enum cn_action_kind kind, uint32_t peer,
		uint32_t phase)
{
	for (uint32_t i = 0; i < b->s[node].n; i++) {
		const struct cn_action *a = &b->s[node].actions[i];

		if (a->kind == kind && a->peer == peer && a->phase == phase) {
			return i;
		}
	}
	fail_msg("no such action");
	return 0;
}

struct cn_action *b_action(const struct book *b, uint32_t node, enum cn_action_kind kind,
			   uint32_t peer, uint32_t phase)
{
	return &b->s[node].actions[b_find(b, node, kind, peer, phase)];
}

void b_cut(struct cn_sched *s, uint32_t i)
{
	memmove(s->actions + i, s->actions + i + 1, (s->n - i - 1) * sizeof(*s->actions));
	s->n--;
	for (uint32_t k = i; k < s->n; k++) {
		struct cn_action *a = &s->actions[k];

		if (a->dep != CN_DEP_NONE && a->dep_on == i) {
			a->dep = CN_DEP_NONE;
		} else if (a->dep != CN_DEP_NONE && a->dep_on > i) {
			a->dep_on--;
		}
		if (a->kind == CN_ACT_WAIT && a->dep == CN_DEP_NONE) { /* no longer one */
			b_cut(s, k--);
		}
	}
}

int b_verdict(const struct book *b, unsigned guarantees, struct cn_check_report *r,
	      struct cn_err *err)
{
	struct cn_check *c = NULL;
	int rc = cn_check_new(&b->l, &b->p, &c, err);

	memset(r, 0, sizeof(*r));
	for (uint32_t i = b->l.nnodes; rc == COLLNET_OK && i-- > 0;) {
		rc = cn_check_add(c, i, &b->s[i], err);
	}
	if (rc == COLLNET_OK) {
		rc = cn_check_run(c, guarantees, r, err);
	}
	cn_check_free(c);
	return rc;
}

void b_expect(const struct book *b, unsigned guarantees, const char *message)
{
	struct cn_check_report r;
	struct cn_err err = { 0 };
	int rc = b_verdict(b, guarantees, &r, &err);

	assert_string_equal(err.text, message);
	assert_int_equal(rc, message[0] == '\0' ? COLLNET_OK : COLLNET_EINVAL);
}

struct book *b_good(void)
{
	static const struct b_message m[] = {
		{ A, C, 0 }, { D, B, 0 }, { B, A, 0 }, { C, D, 0 }, { A, D, 1 }, { C, B, 1 },
		{ D, C, 1 }, { B, C, 2 }, { D, A, 2 }, { A, B, 2 }, { B, D, 3 }, { C, A, 3 },
	};
	struct book *b = b_open(TWO_TWO UPLINK, CN_OP_ALLTOALL, 10);

	for (uint32_t i = 0; i < sizeof(m) / sizeof(m[0]); i++) {
		b_put(b, m[i].from, m[i].to, m[i].phase);
	}
	b_synchronise(b);
	b_write(b);
	return b;
}
