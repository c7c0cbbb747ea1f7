/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario runs: ranks join, call, think, call again, and faults happen at their times. The
 * oracles look on:
 *
 *   wire_oracle.h   what the frames must keep to
 *   world.c         bytes right when a call ends well; buffers not touched once it has ended (they
 *                   are overwritten at once, so that a frame sent from them later is wrong); done
 *                   functions called exactly once; no call alive past its deadline
 *   judge.c         errors that are true, memory, frames delivered once, goodput
 */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include "scenario.h"
#include "wire_oracle.h"

struct world;

struct call {
	struct cn_done done;
	struct world *world;
	uint32_t rank, number;
	bool posted;
	uint32_t told;
	int status;
	char text[CN_ERR_TEXT];
	cn_time at, deadline, ended;
	uint64_t send_bytes, recv_bytes;
	uint8_t *send, *recv; /* NULL: none */
	uint64_t missing[2];  /* ranks below 128 whose block was not whole when it failed */
};

struct rank {
	struct cn_done join;
	struct world *world;
	struct cn_member *member; /* NULL: not joined, or gone */
	uint32_t number, host;
	bool joined, join_told, quiet, waiting; /* quiet: calls no more; waiting: an event is due */
	int join_status;
	char join_text[CN_ERR_TEXT];
	uint32_t next, ended;
	uint32_t stop; /* the first operation that it does not call; UINT32_MAX: it calls all */
};

struct world {
	const struct scenario *s;
	struct cn_sim *sim;
	struct wire_oracle *wire;
	bool verbose;
	uint64_t random;

	struct rank *ranks;
	const struct op_plan *ops; /* of the present team */
	uint32_t nops;
	struct call *calls;    /* [nops * ranks] number * ranks + rank */
	uint32_t open;	       /* calls not told, of ranks that go on */
	cn_time start, finish; /* first call, last end */
	cn_time limit_slack;
	cn_time *frozen; /* [hosts] until when it is paused */
	bool *crashed;	 /* [hosts] its daemon ended or began anew since the team was made */
	struct cn_sim_totals before;

	char verdict[1024]; /* the first finding; "" while there is none */
	uint32_t findings;
};

/* Runs it; false: a finding, in w->verdict. */
bool world_run(struct world *w, const struct scenario *s, bool verbose);
void world_blame(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- judge.c -------------------------------------------------------------------------- */

/* The window that an operation must keep to; COLLNET_WINDOW_OFF: none, or it is not known here. */
uint32_t judge_window(const struct scenario *s, const struct op_plan *p);
bool judge_by_acks(const struct op_plan *p);
void judge_call(struct world *w, const struct call *c);
/* No frame is under way that must arrive. */
bool judge_is_quiet(const struct world *w);
/* All have left and it is quiet. */
void judge_rest(struct world *w);
void judge_goodput(struct world *w);

#endif
