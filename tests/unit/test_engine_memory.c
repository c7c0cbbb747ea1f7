/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/op*.c, post.c, task.c without memory: every operation by every algorithm, each
 * allocation of a node failing in turn. No byte is wrong, and the next operation succeeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scarce_impl.h"

#define BYTES 600u /* of a block: two frames */
#define ROOM  ((size_t)1 << 16)

/* ---- operations ------------------------------------------------------------------------- */

static struct proc {
	struct cn_reducer reducer;
	struct cn_block sends[PROCS], recvs[PROCS];
	uint8_t send[ROOM], recv[ROOM], scratch[ROOM];
} procs[PROCS];

static struct cn_coll_args args;
static uint64_t length(uint32_t from, uint32_t to)
{
	switch (args.op) {
	case CN_OP_ALLTOALLV:
		return (from + 2 * to) % 5 * 300;
	case CN_OP_ALLGATHERV:
	case CN_OP_GATHERV:
		return from * 300;
	case CN_OP_SCATTERV:
	case CN_OP_REDUCE_SCATTERV:
		return to * 300;
	default:
		return args.bytes;
	}
}

static bool has_sends(void)
{
	const enum cn_op_kind base = cn_op_base(args.op);

	return base == CN_OP_ALLTOALL || base == CN_OP_SCATTER || base == CN_OP_REDUCE_SCATTER;
}

static bool has_recvs(void)
{
	const enum cn_op_kind base = cn_op_base(args.op);

	return base == CN_OP_ALLTOALL || base == CN_OP_ALLGATHER || base == CN_OP_GATHER;
}

/* Where what a rank has for another one is. */
static uint64_t send_at(uint32_t from, uint32_t to)
{
	uint64_t at = 0;

	for (uint32_t k = 0; has_sends() && k < to; k++) {
		at += length(from, k);
	}
	return at;
}

static uint64_t recv_at(uint32_t from, uint32_t to)
{
	uint64_t at = 0;

	for (uint32_t k = 0; has_recvs() && k < from; k++) {
		at += length(k, to);
	}
	return at;
}

static struct cn_call call_of(uint32_t rank)
{
	const struct proc *p = &procs[rank];

	return (struct cn_call){ .op = args.op,
				 .bytes = args.bytes,
				 .rank = rank,
				 .ranks = PROCS,
				 .root = args.root,
				 .blocks = { p->sends, p->recvs, length(rank, args.root),
					     length(args.root, rank) },
				 .nodes = HOSTS,
				 .local = node_of[rank] == 1 ? 1 : 2,
				 .element = 1 };
}

static uint8_t *place(struct proc *p, const struct cn_span *s)
{
	return (s->buffer == CN_BUF_SEND   ? p->send
		: s->buffer == CN_BUF_RECV ? p->recv
					   : p->scratch) +
	       s->offset;
}

/* Sums of bytes. */
static bool combine(struct cn_reducer *r, const struct cn_combine *c)
{
	struct proc *p = (struct proc *)r;
	const uint8_t *left = place(p, &c->left), *right = place(p, &c->right);
	uint8_t *out = place(p, &c->out);

	for (uint64_t i = 0; i < c->bytes; i++) {
		uint8_t sum = left[i];

		for (uint32_t k = 0; k < c->operands; k++) {
			sum = (uint8_t)(sum + right[k * c->bytes + i]);
		}
		out[i] = sum;
	}
	return true;
}

static struct cn_coll_args prepare(uint32_t rank)
{
	struct proc *p = &procs[rank];
	struct cn_coll_args a = args;
	struct cn_call c;

	for (uint32_t k = 0; k < PROCS; k++) {
		p->sends[k] = (struct cn_block){ send_at(rank, k), length(rank, k) };
		p->recvs[k] = (struct cn_block){ recv_at(k, rank), length(k, rank) };
	}
	c = call_of(rank);
	assert_true(cn_call_send_bytes(&c) <= ROOM && cn_call_recv_bytes(&c) < ROOM &&
		    cn_call_scratch_bytes(&c) <= ROOM);
	for (size_t i = 0; i < ROOM; i++) {
		p->send[i] = (uint8_t)(rank * 37 + i * 7 + (i >> 8));
	}
	memset(p->recv, 0xcc, ROOM);
	p->reducer.combine = combine;
	a.send = p->send;
	a.recv = p->recv;
	a.scratch = p->scratch;
	a.blocks = c.blocks;
	if (cn_op_reduces(a.op)) {
		a.reducer = &p->reducer;
		a.element = 1;
	}
	return a;
}

static uint8_t reduced(uint32_t rank, uint64_t at)
{
	const uint32_t last = args.op == CN_OP_SCAN	? rank + 1
			      : args.op == CN_OP_EXSCAN ? rank
							: PROCS;
	uint8_t sum = 0;

	for (uint32_t r = 0; r < last; r++) {
		sum = (uint8_t)(sum + procs[r].send[send_at(r, rank) + at]);
	}
	return sum;
}

static void check(uint32_t rank)
{
	const struct proc *p = &procs[rank];
	const struct cn_call c = call_of(rank);
	const uint64_t end_at = cn_call_recv_bytes(&c);
	bool right = p->recv[end_at] == 0xcc;

	for (uint64_t i = 0; cn_op_reduces(args.op) && i < end_at; i++) {
		right = right && p->recv[i] == reduced(rank, i);
	}
	for (uint32_t from = 0; !cn_op_reduces(args.op) && end_at > 0 && from < PROCS; from++) {
		if (has_recvs() || from == args.root) {
			right = right && memcmp(p->recv + recv_at(from, rank),
						procs[from].send + send_at(from, rank),
						length(from, rank)) == 0;
		}
	}
	if (!right) {
		fail_msg("allocation %lld of node %u: %s, rank %u: wrong bytes", (long long)failing,
			 victim, cn_op_name(args.op), rank);
	}
}

/* A rank's call, repeated while it waits for tasks, or has lacked memory. */
static void post(uint32_t r)
{
	const struct cn_coll_args a = prepare(r);
	struct cn_err err;
	int rc;

	do {
		AT(node_of[r], cn_coll_post(members[r], w.now, &a, begin_wait(&waiters[r]), &err));
	} while (again(r, rc, &err));
}

/* True: all have succeeded. */
static bool call_all(void)
{
	for (uint32_t r = 0; r < PROCS; r++) {
		post(r);
	}
	wait_for(waiters, PROCS, cn_op_name(args.op));
	if (!succeeded(waiters, PROCS, cn_op_name(args.op), members)) {
		return false;
	}
	for (uint32_t r = 0; r < PROCS && args.op != CN_OP_BARRIER; r++) {
		check(r);
	}
	return true;
}

static struct cn_coll_args operation(enum cn_op_kind op, const char *algorithm)
{
	return (struct cn_coll_args){ .op = op,
				      .algorithm = algorithm,
				      .window = COLLNET_WINDOW_AUTO,
				      .bytes = cn_op_is_vector(op) || op == CN_OP_BARRIER ? 0
											  : BYTES,
				      .root = cn_op_has_root(op) ? 2 : 0,
				      .deadline = CN_NEVER };
}

/* ---- operations, one after the other ---------------------------------------------------- */

static void one_operation(void)
{
	bool all;

	begin();
	join("job");
	armed = true;
	all = call_all();
	armed = false;
	if (!all) {
		leave_all(members);
		join("next");
	}
	assert_true(call_all());
	barrier(members);
	leave_all(members);
	end();
}

/* Whether the algorithm can be used on this network: LR2 needs hosts on every switch. */
static bool is_usable(const struct cn_algorithm *a)
{
	return a->op == cn_op_base(args.op) && (!a->needs_tree || shape != NULL) &&
	       strcmp(a->name, "lr2") != 0;
}

static void every_operation(const char *on, bool by_tasks, uint32_t of)
{
	size_t rows;
	const struct cn_algorithm *row = cn_algorithms(&rows);

	shape = on;
	tasks = by_tasks;
	victim = of;
	for (int op = CN_OP_ALLTOALL; op < CN_OP_KINDS; op++) {
		args = operation((enum cn_op_kind)op, NULL);
		assert_true(sweep(one_operation) > 0);
		for (size_t i = 0; i < rows; i++) {
			args.algorithm = row[i].name;
			if (is_usable(&row[i])) {
				assert_true(sweep(one_operation) > 0);
			}
		}
	}
}

static void operations(void **state)
{
	(void)state;
	every_operation("2x2", false, 2);
}

static void operations__by_tasks(void **state)
{
	(void)state;
	every_operation(NULL, true, 0);
}

/* ---- persistent operations -------------------------------------------------------------- */

static struct cn_prepared *prepared[PROCS];

static void prepare_all(void)
{
	struct cn_err err;
	int rc;

	for (uint32_t r = 0; r < PROCS; r++) {
		const struct cn_coll_args a = prepare(r);

		do {
			AT(node_of[r], cn_coll_prepare(members[r], &a, &prepared[r], &err));
		} while (again(r, rc, &err));
	}
}

static bool start_all(void)
{
	struct cn_err err;
	int rc;

	for (uint32_t r = 0; r < PROCS; r++) {
		(void)prepare(r);
		do {
			AT(node_of[r], cn_prepared_start(prepared[r], w.now, CN_NEVER,
							 begin_wait(&waiters[r]), &err));
		} while (again(r, rc, &err));
	}
	wait_for(waiters, PROCS, "a persistent operation");
	if (!succeeded(waiters, PROCS, "a persistent operation", members)) {
		return false;
	}
	for (uint32_t r = 0; r < PROCS; r++) {
		check(r);
	}
	return true;
}

static void persistent(void)
{
	bool all;

	begin();
	join("job");
	armed = true;
	prepare_all();
	all = start_all() && start_all();
	armed = false;
	assert_true(!all || start_all());
	for (uint32_t r = 0; r < PROCS; r++) {
		cn_prepared_release(prepared[r]);
	}
	if (all) {
		barrier(members);
	}
	leave_all(members);
	end();
}

static void persistent_operations(void **state)
{
	static const enum cn_op_kind ops[] = { CN_OP_ALLTOALL, CN_OP_ALLTOALLV, CN_OP_ALLREDUCE };

	(void)state;
	for (int i = 0; i < 6; i++) {
		args = operation(ops[i / 2], NULL);
		for_each_victim(i < 3 ? "2x2" : NULL, i % 2 != 0, persistent);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations),
		cmocka_unit_test(operations__by_tasks),
		cmocka_unit_test(persistent_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
