/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints schedules: as text (which tools/schedule/read.c reads), JSON, a drawing, and as a C
 * routine of MPI point-to-point calls.
 *
 * All of them sort the messages of all nodes topologically (emit_order_make): every message follows
 * those that its sender sends before it and those that it depends on. A node's lines, in that
 * order, are therefore an equivalent schedule of that node; and a program in which every rank
 * executes its part of the order cannot deadlock: the first incomplete message waits for none. One
 * rank per node; rank i is node i.
 */
#ifndef COLLNET_EMIT_H
#define COLLNET_EMIT_H

#include "sched/sched.h"
#include "tools/tool.h"

/* What is printed. */
struct emit {
	const struct cn_layout *layout; /* with a tree */
	const struct cn_plan *plan;
	const char *algorithm;
	const char *source; /* where the network is from: a file's name or a shape */
	unsigned guarantees;
	uint32_t only;		/* EMIT_ALL, or the only node of which there is a part */
	struct cn_sched *parts; /* [nnodes] */
};

#define EMIT_ALL  UINT32_MAX
#define EMIT_NONE UINT32_MAX

/* A message (or a copy) in the common order. */
struct emit_item {
	uint32_t node, action; /* who sends, or copies; place in its list */
	uint32_t received;     /* place of its receive in the peer's list; EMIT_NONE: a copy */
};

struct emit_order {
	uint32_t n;
	struct emit_item *items;
	uint32_t *start;   /* [nnodes + 1] where the actions of a node begin in item_of[] */
	uint32_t *item_of; /* of every action; EMIT_NONE: a wait */
};

/*
 * COLLNET_EINVAL: sends and receives do not match, there are several ranks per node, or the
 * schedule is a deadlock; the message names it. Linear memory.
 */
int emit_order_make(const struct emit *e, struct emit_order *out, struct cn_err *err);
void emit_order_free(struct emit_order *o);

/* Writes a text into a comment; nothing in it can end that. */
void emit_plain(const char *text, FILE *f);
/* An empty message: a synchronisation. */
bool emit_is_sync(const struct cn_action *a);
const char *emit_order_name(enum cn_order order);
/* "links ordered optimal", or "none". */
#define EMIT_GUARANTEES_TEXT 40
const char *emit_guarantees(unsigned guarantees, char text[EMIT_GUARANTEES_TEXT]);
/* The same as an array, "guarantees"; empty: none. */
void emit_json_guarantees(struct json *j, unsigned guarantees);

/* They write; COLLNET_ESYSTEM when the stream failed. */
int emit_text(const struct emit *e, FILE *f, struct cn_err *err);
int emit_json(const struct emit *e, FILE *f, struct cn_err *err);
/* The messages of a phase on the network, `alike`: in one colour. */
int emit_dot(const struct emit *e, uint32_t phase, bool alike, FILE *f, struct cn_err *err);
/* Before its parts are planned: COLLNET_ELIMIT if it is too long, whatever the algorithm. */
int emit_mpi_check(const struct cn_layout *l, const struct cn_plan *plan, struct cn_err *err);
/* `name` of the routine, NULL: collnet_ and the operation. */
int emit_mpi(const struct emit *e, const char *name, FILE *f, struct cn_err *err);

#endif
