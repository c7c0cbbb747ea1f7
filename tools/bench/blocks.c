/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/bench/blocks.h"

#include <stdlib.h>

#include "sched/reduction.h"
#include "util/util.h"

/* The largest block. */
static uint64_t room(const struct bench_call *c)
{
	return cn_op_is_vector(c->op) ? 2 * c->bytes : c->bytes;
}

/* The same with blocks of the largest size. */
static struct cn_call largest(const struct bench_call *c)
{
	return (struct cn_call){
		.op = cn_op_base(c->op),
		.bytes = room(c),
		.rank = c->rank,
		.ranks = c->ranks,
		.nodes = c->nodes,
		.element = 1,
	};
}

uint64_t bench_send_room(const struct bench_call *c)
{
	const struct cn_call call = largest(c);

	return cn_call_send_bytes(&call);
}

uint64_t bench_recv_room(const struct bench_call *c)
{
	const struct cn_call call = largest(c);

	return cn_call_recv_bytes(&call);
}

static uint64_t draw(const struct bench_call *c, uint64_t which)
{
	return cn_mix64(c->seed ^ which) % (2 * c->bytes + 1);
}

uint64_t bench_length(const struct bench_call *c, uint32_t source, uint32_t destination)
{
	const uint32_t rank = cn_op_sends_to_each(c->op) ? destination : source;

	if (c->op == CN_OP_ALLTOALLV) {
		return draw(c, (uint64_t)source << 32 ^ destination);
	}
	if (!cn_op_is_vector(c->op) || (rank % 2 == 0 && rank == c->ranks - 1)) {
		return c->bytes;
	}
	return rank % 2 == 0 ? draw(c, rank) : 2 * c->bytes - draw(c, rank - 1);
}

bool bench_blocks_init(struct bench_blocks *b, const struct bench_call *c)
{
	size_t send_at = 0, recv_at = 0;

	b->sends = calloc(4 * (size_t)c->ranks, sizeof(*b->sends));
	if (b->sends == NULL) {
		return false;
	}
	b->send_at = b->sends + c->ranks;
	b->recvs = b->send_at + c->ranks;
	b->recv_at = b->recvs + c->ranks;
	b->nsends = room(c) > 0 ? (uint32_t)(bench_send_room(c) / room(c)) : 0;
	b->nrecvs = room(c) > 0 ? (uint32_t)(bench_recv_room(c) / room(c)) : 0;
	for (uint32_t i = 0; i < c->ranks; i++) {
		b->sends[i] = bench_length(c, c->rank, i);
		b->recvs[i] = bench_length(c, i, c->rank);
		b->send_at[i] = send_at;
		b->recv_at[i] = recv_at;
		send_at += b->sends[i];
		recv_at += b->recvs[i];
	}
	return true;
}

void bench_blocks_free(struct bench_blocks *b)
{
	free(b->sends);
	b->sends = NULL;
}
