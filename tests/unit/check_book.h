/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Schedules of small teams, written by hand for the tests of the checker: a table of messages and
 * synchronisations becomes each node's list, which a test may then corrupt.
 */
#ifndef CHECK_BOOK_H
#define CHECK_BOOK_H

#include "check_oracle.h"
#include "tools/plan/check.h"

#define B_MESSAGES 256u

/* A data message between nodes: all blocks of their ranks. */
struct b_message {
	uint32_t from, to, phase;
};

/* After the message of `from` in `phase`, before that of `to` in `until`. */
struct b_sync {
	uint32_t from, to, phase, until;
};

struct book {
	struct cn_topo *topo; /* NULL: the layout is borrowed */
	struct cn_tree *tree;
	struct cn_layout l;
	uint32_t node_of[O_NODES], first[O_NODES + 1], ranks[O_NODES];
	struct cn_plan p;
	struct cn_sched s[O_NODES];
	struct b_message m[B_MESSAGES];
	struct b_sync y[B_MESSAGES];
	uint32_t nm, ny, phases;
};

#define ALL (CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED | CN_GUARANTEE_OPTIMAL)

/* Two switches of two hosts. */
#define TWO_TWO                                                                                    \
	"switch s0\nswitch s1\nhost a\nhost b\nhost c\nhost d\nlink a s0 rate none\n"              \
	"link b s0 rate none\nlink c s1 rate none\nlink d s1 rate none\n"
#define UPLINK "link s0 s1 rate none\n"

enum { A, B, C, D, E, F };

#define STAR                                                                                       \
	"switch s\nhost a\nhost b\nhost c\nlink a s rate none\nlink b s rate none\n"               \
	"link c s rate none\n"

/* One rank per host, hosts in the order of the text. */
struct book *b_open(const char *text, enum cn_op_kind op, uint64_t bytes);
void b_close(struct book *b);

/* Adds a message to the table. */
void b_put(struct book *b, uint32_t from, uint32_t to, uint32_t phase);
/* A synchronisation for all users of a link that follow one another; some are superfluous. */
void b_synchronise(struct book *b);
bool b_on_link(const struct book *b, const struct b_message *m, uint32_t link);
/* Writes each node's list from the tables. */
void b_write(struct book *b);
/* An all-to-all of TWO_TWO in the minimum of phases: 2 * 2. */
struct book *b_good(void);

/* Appends an action; returns its index. */
uint32_t b_add(struct book *b, uint32_t node, struct cn_action a);
void b_add_message(struct book *b, uint32_t node, const struct b_message *m, bool send);
/* The first such action; fails the test if there is none. */
uint32_t b_find(const struct book *b, uint32_t node, enum cn_action_kind kind, uint32_t peer,
		uint32_t phase);
struct cn_action *b_action(const struct book *b, uint32_t node, enum cn_action_kind kind,
			   uint32_t peer, uint32_t phase);
/* Removes action i; actions that depended on it depend on nothing. */
void b_cut(struct cn_sched *s, uint32_t i);

/* The checker's verdict. */
int b_verdict(const struct book *b, unsigned guarantees, struct cn_check_report *r,
	      struct cn_err *err);
/* Asserts its message; "": no error. */
void b_expect(const struct book *b, unsigned guarantees, const char *message);

#endif
