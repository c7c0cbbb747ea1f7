/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `collnet topo`: what its subcommands share. Each part gets the options, reads its topology
 * with topo_open(), and returns an exit status.
 */
#ifndef COLLNET_TOPO_TOOL_H
#define COLLNET_TOPO_TOOL_H

#include "tools/plan/random.h"
#include "tools/plan/span.h"
#include "tools/shape.h"
#include "tools/tool.h"
#include "topo/tree.h"

struct topo_options {
	const char *part; /* "show", .. */
	const char *file; /* NULL: the shape; "-": standard input */
	struct shape shape;
	bool json, all;
	/* draw */
	const char *ring, *algorithm, *format, *output;
	bool phase_given;
	uint64_t phase;
	/* tree */
	enum cn_tree_kind kind;
	const char *kind_name, *root;
	/* random */
	bool hosts_given, switches_given;
	struct cn_topo_random random; /* its seed is the tree's too */
	/* window */
	const char *hosts;
};

/* show.c */
int topo_show(const struct topo_options *o);
int topo_check(const struct topo_options *o);
/* draw.c */
int topo_draw(const struct topo_options *o);
/* COLLNET_EINVAL: no operation has it. */
int topo_check_algorithm(const char *name, struct cn_err *err);
/* make.c */
int topo_random(const struct topo_options *o);
int topo_tree(const struct topo_options *o);
int topo_window(const struct topo_options *o);
/* The exit status; complains if standard output was not written, of which errno says why. */
int topo_finish(bool written);

/* read.c: the topology that the options name. */
int topo_open(const struct topo_options *o, struct cn_topo **out, struct cn_err *err);
/* What it is called in messages and titles. */
const char *topo_source(const struct topo_options *o);
/* The vertices of --hosts, "a,b,c", or of all hosts (NULL), into hosts[t->nhosts]; `source`: the
 * topology's name. */
int topo_hosts(const struct cn_topo *t, const char *source, const char *list, uint32_t *hosts,
	       uint32_t *n, struct cn_err *err);

/* What a topology is, counted. Links are those of the spanning tree, but for `unused`. */
struct topo_facts {
	uint32_t switches, unused, empty; /* empty: switches that lead to no host */
	uint32_t height;		  /* links from the root to the furthest vertex */
	uint32_t longest;		  /* switches on the longest path between two hosts */
	uint32_t used;			  /* links that hosts send over; of these: */
	uint32_t no_rate, no_buffer;
	uint64_t host_rate[2], trunk_rate[2]; /* lowest and highest known; 0: none */
	uint32_t host_no_rate, trunk_no_rate; /* links of an unknown rate */
	uint32_t host_buffer[2], trunk_buffer[2];
	uint32_t busiest;  /* link that most messages of an all-to-all cross; CN_TOPO_NONE: none */
	uint32_t below;	   /* hosts on the far side of it */
	uint64_t messages; /* that cross it each way: s (n - s) */
	uint64_t bound;	   /* of phases: messages / channels, rounded up */
	uint32_t slowest;  /* the link that takes longest by its rate; CN_TOPO_NONE: not known */
	uint64_t slowest_messages;
};

void topo_count(const struct cn_topo *t, struct topo_facts *f);
/* "s1 - s0". Returns text. */
#define TOPO_LINK_TEXT (2 * COLLNET_NAME_MAX + 4)
const char *topo_link_name(const struct cn_topo *t, uint32_t link, char text[TOPO_LINK_TEXT]);
/* The topology itself, as items of the present JSON object. */
void topo_json(struct json *j, const struct cn_topo *t);

#endif
