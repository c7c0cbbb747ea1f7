/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measuring loop of `collnet compare`, one source for every library that is compared.
 *
 * A program of one library calls loop_run() with the table of its functions on every rank. Rank 0
 * reads commands and writes replies, one line each (loop.c describes them). loop_collnet.c has the
 * table of collnet, loop_mpi.c that of any MPI library.
 *
 * The user's mpicc compiles loop.c and loop_mpi.c when `collnet compare` runs, from the installed
 * copies. They use C11, POSIX and tools/bench/pattern.h, and nothing else of collnet.
 */
#ifndef COLLNET_COMPARE_LOOP_H
#define COLLNET_COMPARE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* An operation is a row of shapes[] in loop_blocks.c and a function in each library's table. */
enum loop_op {
	LOOP_ALLTOALL,
	LOOP_ALLTOALLV,
	LOOP_ALLGATHER,
	LOOP_ALLGATHERV,
	LOOP_BCAST,
	LOOP_SCATTER,
	LOOP_GATHER,
	LOOP_GATHERV,
	LOOP_ALLREDUCE,
	LOOP_REDUCE,
	LOOP_REDUCE_SCATTER,
	LOOP_SCAN,
	LOOP_BARRIER,
	LOOP_OPS,
};

/* Begins every line of rank 0 that is meant for `collnet compare`; libraries print lines, too. */
#define LOOP_MARK "compare: "

/* The blocks that a rank sends or receives, one after another. */
struct loop_layout {
	uint32_t n;
	size_t total;	    /* bytes */
	size_t *bytes, *at; /* [n] length and offset */
	int *count, *displ; /* the same, as MPI takes them; of vector operations alone */
};

/*
 * An operation with blocks of `bytes` bytes and root 0; in a vector operation, with those of `to`
 * and `from`. A broadcast sends from `recv` of the root. A reduction is a bitwise exclusive or,
 * since some libraries add bytes with saturation. Functions return 0, or not 0 after an error;
 * error() then describes it.
 */
struct loop_call {
	const void *send;
	void *recv;
	size_t bytes;
	const struct loop_layout *to, *from;
};
typedef int loop_fn(const struct loop_call *call);

struct loop_library {
	int (*open)(uint32_t *rank, uint32_t *ranks);
	void (*close)(void);
	/* A buffer from which the library communicates fastest; NULL on error. */
	void *(*alloc)(size_t bytes);
	void (*free)(void *p);
	/* Rank 0's bytes arrive at all ranks, which use no processor time while they wait. */
	int (*announce)(void *data, size_t bytes);
	const char *(*version)(void);
	const char *(*error)(void);
	loop_fn *ops[LOOP_OPS];
};

/* An exit status: 0, or 1 after a line on stderr. Wrong bytes are not a failure but a reply. */
int loop_run(const struct loop_library *lib, FILE *in, FILE *out);

/* ---- loop_blocks.c -------------------------------------------------------------------- */

const char *loop_op_name(enum loop_op op);
/* "MPI_Alltoall" */
const char *loop_op_function(enum loop_op op);
/* LOOP_OPS: there is no such operation. */
enum loop_op loop_op_find(const char *name);
bool loop_op_reduces(enum loop_op op);
/* Reductions: how many ranks, from 0 on, the result of `rank` combines. */
uint32_t loop_operands(enum loop_op op, uint32_t rank, uint32_t ranks);
/* For whom a block is that is sent to this rank: for it, or BENCH_EVERYONE. */
uint32_t loop_destination(enum loop_op op, uint32_t destination);
/* Whose block is number i of a receive buffer. */
uint32_t loop_source(enum loop_op op, uint32_t i);

/* Blocks that a rank sends or receives in this operation. */
uint32_t loop_send_blocks(enum loop_op op, uint32_t rank, uint32_t ranks);
uint32_t loop_recv_blocks(enum loop_op op, uint32_t rank, uint32_t ranks);

/* What a rank sends, or receives. *l was zeroed, or filled before. Not 0: no memory, or more bytes
 * than MPI can count. */
int loop_layout(struct loop_layout *l, enum loop_op op, bool sends, uint64_t seed, uint64_t bytes,
		uint32_t rank, uint32_t ranks);
void loop_layout_free(struct loop_layout *l);

/*
 * The time of one iteration in nanoseconds, from the ranks' times of call and return. With one
 * clock for all ranks it lasts from the last call that the result depends on (in a broadcast and a
 * scatter the root's, otherwise any) to the last return. With a clock per node it is the longest
 * time of a rank from call to return.
 */
uint64_t loop_time(enum loop_op op, int one_clock, const uint64_t *call, const uint64_t *ret,
		   uint32_t ranks);

/* Whether a barrier kept its promise: no rank returned before the last one called. */
int loop_barrier_is_valid(const uint64_t *call, const uint64_t *ret, uint32_t ranks);

#endif
