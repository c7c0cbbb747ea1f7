/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds a topology, statement by statement, and changes a finished one: internal to lib/topo and
 * tools/plan.
 *
 * The builder owns the half-made topology until cn_build_finish() hands it over; every error
 * names the source and line that the caller has set in `name` and `line`.
 */
#ifndef CN_TOPO_BUILD_H
#define CN_TOPO_BUILD_H

#include "topo/topo.h"

struct cn_build {
	struct cn_topo *t;
	const char *name;    /* of the file or shape, for errors */
	uint32_t line;	     /* of the current statement, from 1 */
	uint32_t vcap, lcap; /* capacity of the arrays of vertices and links */
	uint32_t *vline;     /* [vcap] line of a vertex */
	uint32_t *macs;	     /* [index_mask + 1] hash table of the MAC addresses */
};

int cn_build_init(struct cn_build *b, const char *name, struct cn_err *err);
/* Frees everything that cn_build_finish() has not handed over. */
void cn_build_abort(struct cn_build *b);

/* `mac` may be NULL. */
int cn_build_vertex(struct cn_build *b, const char *name, bool is_switch, const uint8_t *mac,
		    struct cn_err *err);
int cn_build_link(struct cn_build *b, const char *a, const char *z, uint64_t rate, uint32_t buffer,
		  uint32_t channels, struct cn_err *err);
/* Checks that it is connected, chooses the spanning tree, and passes it to the caller. */
int cn_build_finish(struct cn_build *b, struct cn_topo **out, struct cn_err *err);

/* An error "name:line: expected ...". */
int cn_build_fail(const struct cn_build *b, uint32_t line, struct cn_err *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The slot of a name in the hash table, used or free; also for cn_topo_find(). */
uint32_t cn_topo_slot(const struct cn_topo *t, const char *name);

static inline uint32_t cn_topo_other_end(const struct cn_topo *t, uint32_t link, uint32_t v)
{
	return t->links[link].a == v ? t->links[link].b : t->links[link].a;
}

/* Fills adj_start and adj from the links. */
void cn_topo_neighbours(struct cn_topo *t);
/*
 * The spanning tree: breadth-first from t->root over the links in use[] (NULL: all), of parallel
 * links the first. Fills order, parents and the numbers of hosts below; returns the vertices
 * reached.
 */
uint32_t cn_topo_walk(struct cn_topo *t, const bool *use);

#endif
