/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers of calls: every byte is a function of operation, source and destination. Guards behind
 * them detect writes out of bounds, and buffers given back are overwritten at once, so that a frame
 * sent from one later is wrong.
 */
#include "fixture.h"

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
	return op == CN_OP_ALLTOALL || op == CN_OP_SCATTER;
}

bool fixture_prepare_buffers(struct call *c)
{
	const struct op_plan *p = &c->fixture->ops[c->number];
	const struct cn_call k = {
		.op = p->op,
		.bytes = p->bytes,
		.rank = c->rank,
		.ranks = c->fixture->s->ranks,
		.root = p->root,
	};

	c->send_bytes = cn_call_send_bytes(&k);
	c->recv_bytes = cn_call_recv_bytes(&k);
	c->send = buffer(c->send_bytes);
	c->recv = buffer(c->recv_bytes);
	if ((c->send == NULL) != (c->send_bytes == 0) ||
	    (c->recv == NULL) != (c->recv_bytes == 0)) {
		return false;
	}
	for (uint64_t i = 0; i * p->bytes < c->send_bytes; i++) {
		pattern(c->number, c->rank, own_blocks(p->op) ? (uint32_t)i : 0,
			c->send + i * p->bytes, p->bytes, true);
	}
	return true;
}

/* Blocks of what was received that are not right; *which has the ranks that they are of. */
uint64_t fixture_wrong_blocks(const struct call *c, uint64_t which[2])
{
	const struct op_plan *p = &c->fixture->ops[c->number];
	bool one = p->op == CN_OP_BCAST || p->op == CN_OP_SCATTER;
	uint64_t wrong = 0;

	which[0] = which[1] = 0;
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
