/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two node runtimes of this process, on the loopback interface or on a pair of interfaces, in a
 * namespace of its own.
 */
#ifndef TESTS_RUNTIME_PAIR_H
#define TESTS_RUNTIME_PAIR_H

#include "node/runtime.h"

#define RUNTIME_PORT  40000
#define RUNTIME_OWNER 1000u
#define RUNTIME_LONG  (10000 * CN_MS) /* never reached */

extern struct cn_runtime runtime_a, runtime_b;

/* enter_namespace(), with a run directory of its own, where the locks are. */
const char *runtime_namespace(void);

/* Of node "a" or "b": over UDP sockets on lo, or AF_PACKET on a0 or b0 of add_pair(). No peer times
 * out while a test runs. */
struct cn_runtime_config runtime_on_lo(const char *node);
struct cn_runtime_config runtime_on_veth(const char *node);
void runtime_open_as(struct cn_runtime_config c, struct cn_runtime *s);

/* The other node; NULL: not discovered yet. */
const struct cn_peer *runtime_peer_of(const struct cn_runtime *s);
/* Polls both until they have discovered each other. */
void runtime_discover(void);
/* Node b runs in a thread of its own until it is stopped. */
void runtime_start_answering(void);
void runtime_stop_answering(void);

struct runtime_rank {
	struct cn_done done; /* first */
	uint32_t calls;
	int status;
	struct cn_member *member;
};

void runtime_join(const struct cn_runtime *s, const char *job, uint32_t rank, uint32_t ranks,
		  struct runtime_rank *r);
/* A team of both nodes, which is ready. */
void runtime_join_both(struct runtime_rank r[2]);

void runtime_assert_words(const char *text, const char *words);

#endif
