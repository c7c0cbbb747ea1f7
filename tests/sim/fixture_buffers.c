/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers of calls: every byte is a function of operation, source and destination. Guards behind
 * them detect writes out of bounds, and buffers given back are overwritten at once, so that a frame
 * sent from one later is wrong.
 */
#include "fixture.h"
#include "tests/unit/reduction.h"

#include <stdlib.h>
#include <string.h>

#define GUARD 32u /* bytes behind a buffer */
static const uint8_t guard_byte = 0xc3, sent_byte = 0xa5, read_byte = 0x5b, fresh_byte = 0xee;

/* Byte i of the block from `from` to `to` in operation `number` depends on all four. */
static uint64_t pattern(uint32_t number, uint32_t from, uint32_t to, uint8_t *data, uint64_t len,
			bool fill)
{
	uint64_t wrong = 0,
		 base = (uint64_t)number << 56 ^ (uint64_t)from << 40 ^ (uint64_t)to << 24;

	for (uint64_t i = 0; i < len; i += 8) {
		uint64_t v = cn_mix64(base ^ i), n = len - i < 8 ? len - i : 8;

		if (fill) {
			memcpy(data + i, &v, n);
		} else {
			wrong += memcmp(data + i, &v, n) != 0;
		}
	}
	return wrong;
}

static uint64_t count_other(const uint8_t *data, uint64_t len, uint8_t byte)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < len; i++) {
		n += data[i] != byte;
	}
	return n;
}

static uint8_t *buffer(uint64_t bytes)
{
	uint8_t *b = bytes > 0 ? malloc(bytes + GUARD) : NULL;

	if (b != NULL) {
		memset(b, fresh_byte, bytes);
		memset(b + bytes, guard_byte, GUARD);
	}
	return b;
}

static bool own_blocks(enum cn_op_kind op)
{
	return op == CN_OP_ALLTOALL || op == CN_OP_SCATTER || op == CN_OP_REDUCE_SCATTER;
}

struct cn_call fixture_shape(const struct call *c)
{
	const struct op_plan *p = &c->fixture->ops[c->number];

	return (struct cn_call){
		.op = p->op,
		.bytes = p->bytes,
		.rank = c->rank,
		.ranks = c->fixture->s->ranks,
		.root = p->root,
		.nodes = c->fixture->s->hosts,
		.local = c->fixture->s->local,
		.element = cn_op_reduces(p->op) ? reduction_element(p->ordered) : 0,
	};
}

/* What a rank sends. */
static void fill(const struct call *c, uint32_t rank, uint8_t *send)
{
	const struct op_plan *p = &c->fixture->ops[c->number];

	for (uint64_t i = 0; i * p->bytes < c->send_bytes; i++) {
		pattern(c->number, rank, own_blocks(p->op) ? (uint32_t)i : 0, send + i * p->bytes,
			p->bytes, true);
	}
	/* Maps x -> a x + b of which a is odd can be told apart (reduction.h). */
	for (uint64_t i = 0; cn_op_reduces(p->op) && p->ordered && i < c->send_bytes; i += 2) {
		send[i] |= 1;
	}
}

bool fixture_prepare_buffers(struct call *c)
{
	const struct cn_call k = fixture_shape(c);

	c->send_bytes = cn_call_send_bytes(&k);
	c->recv_bytes = cn_call_recv_bytes(&k);
	c->send = buffer(c->send_bytes);
	c->recv = buffer(c->recv_bytes);
	c->scratch_bytes = cn_call_scratch_bytes(&k);
	c->scratch = buffer(c->scratch_bytes);
	if ((c->send == NULL) != (c->send_bytes == 0) ||
	    (c->recv == NULL) != (c->recv_bytes == 0) ||
	    (c->scratch == NULL) != (c->scratch_bytes == 0)) {
		return false;
	}
	fill(c, c->rank, c->send);
	return true;
}

/* 1: the result of a reduction is not that of a sequential model. */
static uint64_t wrong_result(const struct call *c)
{
	const struct op_plan *p = &c->fixture->ops[c->number];
	const uint32_t ranks = c->fixture->s->ranks;
	uint8_t **send = calloc(ranks, sizeof(*send)), *want = malloc(c->recv_bytes + 1);
	uint64_t wrong = 0;

	for (uint32_t r = 0; send != NULL && r < ranks; r++) {
		send[r] = malloc(c->send_bytes + 1);
		if (send[r] != NULL) {
			fill(c, r, send[r]);
		} else {
			wrong = 1; /* no memory to see that it is right */
		}
	}
	if (send == NULL || want == NULL || wrong != 0) {
		wrong = 1;
	} else if (c->recv_bytes > 0) {
		reduction_expect(p->op, p->ordered, c->rank, ranks, p->bytes, send, want);
		wrong = memcmp(c->recv, want, c->recv_bytes) != 0;
	}
	for (uint32_t r = 0; send != NULL && r < ranks; r++) {
		free(send[r]);
	}
	free(send);
	free(want);
	return wrong;
}

/* Blocks of what was received that are not right; *which has the ranks that they are of. */
uint64_t fixture_wrong_blocks(const struct call *c, uint64_t which[2])
{
	const struct op_plan *p = &c->fixture->ops[c->number];
	bool one = p->op == CN_OP_BCAST || p->op == CN_OP_SCATTER;
	uint64_t wrong = 0;

	which[0] = which[1] = 0;
	if (cn_op_reduces(p->op)) {
		return wrong_result(c);
	}
	for (uint64_t i = 0; i * p->bytes < c->recv_bytes; i++) {
		uint32_t from = one ? p->root : (uint32_t)i;

		if (pattern(c->number, from, own_blocks(p->op) ? c->rank : 0,
			    c->recv + i * p->bytes, p->bytes, false) != 0) {
			wrong++;
			if (from < 128) {
				which[from / 64] |= (uint64_t)1 << from % 64;
			}
		}
	}
	return wrong;
}

static void check_guards(struct call *c)
{
	if ((c->send != NULL && count_other(c->send + c->send_bytes, GUARD, guard_byte) != 0) ||
	    (c->scratch != NULL &&
	     count_other(c->scratch + c->scratch_bytes, GUARD, guard_byte) != 0) ||
	    (c->recv != NULL && count_other(c->recv + c->recv_bytes, GUARD, guard_byte) != 0)) {
		fixture_report(c->fixture,
			       "rank %u, operation %u: bytes behind a buffer were written", c->rank,
			       c->number);
	}
}

/* The buffers are the caller's again. */
void fixture_release_buffers(struct call *c)
{
	check_guards(c);
	if (c->send != NULL) {
		memset(c->send, sent_byte, c->send_bytes);
	}
	if (c->recv != NULL) {
		memset(c->recv, read_byte, c->recv_bytes);
	}
	if (c->scratch != NULL) {
		memset(c->scratch, sent_byte, c->scratch_bytes);
	}
}

void fixture_check_buffers(struct call *c)
{
	check_guards(c);
	if (c->completions == 0) {
		return;
	}
	if (c->recv != NULL && count_other(c->recv, c->recv_bytes, read_byte) != 0) {
		fixture_report(c->fixture,
			       "rank %u, operation %u: its receive buffer was written after it "
			       "had ended",
			       c->rank, c->number);
	}
	if (c->send != NULL && count_other(c->send, c->send_bytes, sent_byte) != 0) {
		fixture_report(c->fixture, "rank %u, operation %u: its send buffer was written",
			       c->rank, c->number);
	}
}
