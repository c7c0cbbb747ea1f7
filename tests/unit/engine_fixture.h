/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engines on the in-memory hub under a virtual clock, their teams and operations. Frames take no
 * time there, so the clock advances only from timer to timer: elapsed time means a fault.
 */
#ifndef ENGINE_FIXTURE_H
#define ENGINE_FIXTURE_H

#include "node/poller.h"
#include "proto/wire.h"
#include "tests/unit/hub.h"

#define NODES	17
#define OWNER	1000u
#define RANKS	(NODES * 3)
#define SECOND	(1000 * CN_MS)
#define MTU	576
#define PAYLOAD (MTU - CN_WIRE_HEADER)
#define SEED	271828u

struct engine_waiter {
	struct cn_done done;
	uint32_t calls;
	int status;
	cn_time at;
	char text[CN_ERR_TEXT];
	struct engine_fixture *fixture;
	/* An operation's buffers: when it is done the caller overwrites them, which exposes a frame
	 * that still points into them. The received data are copied first. */
	uint8_t *send, *recv, *got, *scratch;
	size_t sent, received, scratched;
	struct cn_reducer reducer;
	struct cn_combine piece;
	uint32_t pieces; /* fragments passed out */
	uint32_t last;	 /* fragments that need no answer */
	bool has_piece;	 /* a fragment to combine at the next step */
};

struct engine_rank {
	uint32_t node;
	struct cn_member *member;
	struct engine_waiter joined, op[COLLNET_OUTSTANDING_MAX];
	uint8_t *send[COLLNET_OUTSTANDING_MAX], *recv[COLLNET_OUTSTANDING_MAX];
	uint8_t *scratch[COLLNET_OUTSTANDING_MAX];
};

struct engine_fixture {
	cn_time now;
	uint32_t nodes, ranks, number; /* of operations so far */
	struct cn_hub *hub;
	struct cn_engine *engines[NODES];
	struct cn_poller *pollers[NODES];
	struct cn_engine_config config;
	struct cn_topo *topo;
	struct engine_rank rank[RANKS];
	bool later; /* fragments of reductions are combined at the next step, not at once */
	bool ordered;
	struct { /* the ranks' data of a reduction, cached for these parameters */
		uint32_t number;
		uint64_t bytes, sent;
		uint8_t *send[RANKS];
	} reduced;
};

struct cn_done *engine_begin_wait(struct engine_fixture *w, struct engine_waiter *x);
void engine_start_node(struct engine_fixture *w, uint32_t i);
void engine_stop_node(struct engine_fixture *w, uint32_t i);
struct engine_fixture *engine_fixture(uint32_t nodes, const char *shape,
				      void (*change)(struct cn_engine_config *));
void engine_fixture_free(struct engine_fixture *w);

/* Polls every node once. If none has work, time advances to the next timer. False: limit. */
bool engine_step(struct engine_fixture *w, cn_time limit);
void engine_run(struct engine_fixture *w, cn_time duration);
void engine_wait_all(struct engine_fixture *w, int k, cn_time duration);
void engine_join(struct engine_fixture *w, uint32_t rank, uint32_t node, const char *job,
		 cn_time within);

/* `a_node` ranks per node, round-robin or in blocks. */
void engine_join_all(struct engine_fixture *w, uint32_t a_node, bool in_turn, const char *job);
void engine_leave(struct engine_fixture *w, uint32_t rank, bool failed);
void engine_leave_all(struct engine_fixture *w);
/* Number of ACK frames of the whole cluster. Asserts that no frame was retransmitted. */
uint64_t engine_acks(const struct engine_fixture *w);
int engine_post(struct engine_fixture *w, uint32_t rank, int k, const struct cn_coll_args *like,
		struct cn_err *err);
void engine_check(struct engine_fixture *w, uint32_t rank, int k, const struct cn_coll_args *a);

/* All ranks call and complete, with correct bytes. */
void engine_collective(struct engine_fixture *w, const struct cn_coll_args *a, cn_time within);

/* Sets the state after `calls` operations of all ranks, all complete; no CALLED was requested. */
void engine_set_numbers(struct engine_fixture *w, uint32_t calls);

extern const char *const engine_exchanges[];
struct cn_coll_args engine_alltoall(uint64_t bytes);

/* Every row of the registry that can run here; the order of numbers and the root change. */
void engine_every_algorithm(struct engine_fixture *w, const uint64_t *sizes, int nsizes,
			    cn_time within);

extern const uint64_t engine_sizes[];

/* Every rank but those on `gone` gets `status` with `text` in its message, within `most`. */
void engine_assert_all_fail(struct engine_fixture *w, uint32_t gone, int status, const char *text,
			    cn_time most);

#endif
