/* SPDX-License-Identifier: BSD-2-Clause */
#include "buffers.h"
#include "tests/unit/reduction.h"
#include "util/bits.h"

#include <stdlib.h>
#include <string.h>

#define GUARD 32u /* bytes behind a buffer */
static const uint8_t guard_byte = 0xc3, sent_byte = 0xa5, read_byte = 0x5b, fresh_byte = 0xee;

/* Byte i of the block from `from` to `to` in operation `number` depends on all four. */
static uint64_t pattern(uint32_t number, uint32_t from, uint32_t to, uint8_t *data, uint64_t len,
			bool fill)
{
	uint64_t wrong = 0, i, v, is,
		 base = (uint64_t)number << 56 ^ (uint64_t)from << 40 ^ (uint64_t)to << 24;

	for (i = 0; len - i >= 8; i += 8) { /* of constant length, which compilers inline */
		v = cn_mix64(base ^ i);
		if (fill) {
			memcpy(data + i, &v, 8);
		} else {
			memcpy(&is, data + i, 8);
			wrong += is != v;
		}
	}
	v = cn_mix64(base ^ i);
	if (fill) {
		memcpy(data + i, &v, len - i);
	} else {
		wrong += memcmp(data + i, &v, len - i) != 0;
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
	return cn_op_base(op) == CN_OP_ALLTOALL || cn_op_base(op) == CN_OP_SCATTER ||
	       cn_op_base(op) == CN_OP_REDUCE_SCATTER;
}

struct cn_call buffers_shape(const struct buffers *c)
{
	const struct op_plan *p = c->plan;

	return (struct cn_call){
		.op = p->op,
		.bytes = cn_op_is_vector(p->op) ? 0 : p->bytes,
		.blocks = c->blocks,
		.rank = c->rank,
		.ranks = c->ranks,
		.root = p->root,
		.nodes = c->nodes,
		.local = c->local,
		.element = cn_op_reduces(p->op) ? reduction_element(p->ordered) : 0,
	};
}

/* Blocks in the order of their ranks, backwards for odd ones, with a gap between any two. */
static void place(struct cn_block *b, uint32_t n, uint32_t rank)
{
	uint64_t at = rank % 3;

	for (uint32_t i = 0; i < n; i++) {
		struct cn_block *x = &b[rank % 2 ? n - 1 - i : i];

		x->at = at;
		at += x->len + 1;
	}
}

static uint64_t whole_elements(const struct op_plan *p, uint64_t bytes)
{
	return bytes - bytes % reduction_element(p->ordered);
}

/* What the rank knows of a vector operation. */
static bool prepare_blocks(struct buffers *c)
{
	const struct op_plan *p = c->plan;
	struct cn_call k = buffers_shape(c);
	struct cn_block *b = calloc(2 * (size_t)k.ranks, sizeof(*b));

	if (b == NULL) {
		return false;
	}
	c->memory = b;
	for (uint32_t i = 0; i < k.ranks; i++) {
		b[i].len = p->op == CN_OP_REDUCE_SCATTERV
				   ? whole_elements(p, scenario_size(p, i, 0))
				   : scenario_size(p, c->rank, i);
		b[k.ranks + i].len = p->op == CN_OP_ALLTOALLV ? scenario_size(p, i, c->rank)
							      : scenario_size(p, i, 0);
	}
	if (p->op == CN_OP_REDUCE_SCATTERV) {
		cn_blocks_follow(b, k.ranks);
	} else {
		place(b, k.ranks, c->rank);
	}
	place(b + k.ranks, k.ranks, c->rank);
	c->blocks.send = cn_call_send_blocks(&k) ? b : NULL;
	c->blocks.recv = cn_call_recv_blocks(&k) ? b + k.ranks : NULL;
	c->blocks.send_len = p->op == CN_OP_GATHERV ? scenario_size(p, c->rank, 0) : 0;
	c->blocks.recv_len = p->op == CN_OP_SCATTERV ? scenario_size(p, p->root, c->rank) : 0;
	return true;
}

/* The block for, or from, rank i in one of the call's buffers. */
static struct cn_block block(const struct buffers *c, bool send, uint32_t i)
{
	const struct op_plan *p = c->plan;
	const struct cn_block *b = send ? c->blocks.send : c->blocks.recv;

	if (!cn_op_is_vector(p->op)) {
		return (struct cn_block){ i * p->bytes, p->bytes };
	}
	return b != NULL ? b[i] : (struct cn_block){ 0, send ? c->send_bytes : c->recv_bytes };
}

/* Blocks of a buffer of that many bytes. */
static uint32_t blocks_of(const struct buffers *c, bool send, uint64_t bytes)
{
	const struct op_plan *p = c->plan;
	const struct cn_block *b = send ? c->blocks.send : c->blocks.recv;

	if (bytes == 0) {
		return 0;
	}
	return !cn_op_is_vector(p->op) ? (uint32_t)(bytes / p->bytes) : b != NULL ? c->ranks : 1;
}

/* What a rank sends. */
static void fill(const struct buffers *c, uint32_t rank, uint8_t *send)
{
	const struct op_plan *p = c->plan;

	for (uint32_t i = 0; i < blocks_of(c, true, c->send_bytes); i++) {
		struct cn_block b = block(c, true, i);

		pattern(c->number, rank, own_blocks(p->op) ? i : 0, send + b.at, b.len, true);
	}
	/* Maps x -> a x + b of which a is odd can be told apart (reduction.h). */
	for (uint64_t i = 0; cn_op_reduces(p->op) && p->ordered && i < c->send_bytes; i += 2) {
		send[i] |= 1;
	}
}

bool buffers_prepare(struct buffers *c)
{
	const struct op_plan *p = c->plan;
	struct cn_call k;

	if (cn_op_is_vector(p->op) && !prepare_blocks(c)) {
		return false;
	}
	k = buffers_shape(c);
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

void buffers_renew(struct buffers *c, uint32_t number)
{
	c->number = number;
	c->released = false;
	if (c->recv != NULL) {
		memset(c->recv, fresh_byte, c->recv_bytes);
	}
	fill(c, c->rank, c->send);
}

/* What all ranks sent in an operation, for all of its ranks to check their results. */
struct sent {
	uint64_t number, op, ordered, bytes, send_bytes, ranks; /* determine the data */
	uint8_t **of;						/* [ranks] */
	uint8_t *memory;
};

/* NULL: no memory. It stays until the next call. */
static uint8_t **sent_by_all(const struct buffers *c)
{
	static struct sent last;
	const struct op_plan *p = c->plan;
	const struct sent this = { c->number,	  p->op,    p->ordered,	   p->bytes,
				   c->send_bytes, c->ranks, .of = last.of, .memory = last.memory };

	if (last.of != NULL && memcmp(&last, &this, sizeof(last)) == 0 && !cn_op_is_vector(p->op)) {
		return last.of;
	}
	free(last.of);
	free(last.memory);
	last = this;
	last.of = calloc(c->ranks, sizeof(*last.of));
	last.memory = malloc(c->ranks * c->send_bytes + 1);
	if (last.of == NULL || last.memory == NULL) {
		free(last.of);
		free(last.memory);
		last.of = NULL;
		last.memory = NULL;
		return NULL;
	}
	for (uint32_t r = 0; r < c->ranks; r++) {
		last.of[r] = last.memory + r * c->send_bytes;
		fill(c, r, last.of[r]);
	}
	return last.of;
}

/* 1: the result of a reduction is not that of a sequential model. */
static uint64_t wrong_result(const struct buffers *c)
{
	const struct op_plan *p = c->plan;
	const uint32_t ranks = c->ranks;
	uint8_t **send = sent_by_all(c), *want = malloc(c->send_bytes + c->recv_bytes + 1);
	uint64_t wrong = 0;

	if (send == NULL || want == NULL) {
		wrong = 1; /* no memory to see that it is right */
	} else if (c->recv_bytes > 0 && p->op == CN_OP_REDUCE_SCATTERV) {
		reduction_expect(CN_OP_ALLREDUCE, p->ordered, c->rank, ranks, c->send_bytes, send,
				 want);
		wrong = memcmp(c->recv, want + c->blocks.send[c->rank].at, c->recv_bytes) != 0;
	} else if (c->recv_bytes > 0) {
		reduction_expect(p->op, p->ordered, c->rank, ranks, p->bytes, send, want);
		wrong = memcmp(c->recv, want, c->recv_bytes) != 0;
	}
	free(want);
	return wrong;
}

/* Bytes between the blocks of what was received: they are as they were. */
static bool gaps_written(const struct buffers *c)
{
	uint64_t in_gaps = c->recv_bytes, fresh = 0, data = 0;

	if (c->blocks.recv == NULL || c->recv == NULL) {
		return false;
	}
	for (uint64_t i = 0; i < c->recv_bytes; i++) {
		fresh += c->recv[i] == fresh_byte;
	}
	for (uint32_t k = 0; k < c->ranks; k++) {
		struct cn_block b = c->blocks.recv[k];

		in_gaps -= b.len;
		for (uint64_t i = 0; i < b.len; i++) {
			data += c->recv[b.at + i] == fresh_byte;
		}
	}
	return fresh - data != in_gaps;
}

/* Blocks of what was received that are not right; *which has the ranks that they are of. */
uint64_t buffers_wrong(const struct buffers *c, uint64_t which[2])
{
	const struct op_plan *p = c->plan;
	bool one = p->op == CN_OP_BCAST || cn_op_base(p->op) == CN_OP_SCATTER;
	uint64_t wrong = gaps_written(c);

	which[0] = which[1] = 0;
	if (cn_op_reduces(p->op)) {
		return wrong_result(c);
	}
	for (uint32_t i = 0; i < blocks_of(c, false, c->recv_bytes); i++) {
		uint32_t from = one ? p->root : i;
		struct cn_block b = block(c, false, i);

		if (pattern(c->number, from, own_blocks(p->op) ? c->rank : 0, c->recv + b.at, b.len,
			    false) != 0) {
			wrong++;
			if (from < 128) {
				cn_bit_set(which, from);
			}
		}
	}
	return wrong;
}

static bool guards_written(const struct buffers *c)
{
	return (c->send != NULL && count_other(c->send + c->send_bytes, GUARD, guard_byte) != 0) ||
	       (c->scratch != NULL &&
		count_other(c->scratch + c->scratch_bytes, GUARD, guard_byte) != 0) ||
	       (c->recv != NULL && count_other(c->recv + c->recv_bytes, GUARD, guard_byte) != 0);
}

static const char *const behind = "bytes behind a buffer were written";

/* The buffers are the caller's again. */
const char *buffers_release(struct buffers *c)
{
	const bool written = guards_written(c);

	if (c->send != NULL) {
		memset(c->send, sent_byte, c->send_bytes);
	}
	if (c->recv != NULL) {
		memset(c->recv, read_byte, c->recv_bytes);
	}
	if (c->scratch != NULL) {
		memset(c->scratch, sent_byte, c->scratch_bytes);
	}
	c->released = true;
	return written ? behind : NULL;
}

const char *buffers_check(const struct buffers *c)
{
	if (guards_written(c)) {
		return behind;
	}
	if (!c->released) {
		return NULL;
	}
	if (c->recv != NULL && count_other(c->recv, c->recv_bytes, read_byte) != 0) {
		return "its receive buffer was written after it had ended";
	}
	return c->send != NULL && count_other(c->send, c->send_bytes, sent_byte) != 0
		       ? "its send buffer was written"
		       : NULL;
}

void buffers_free(struct buffers *c)
{
	free(c->send);
	free(c->scratch);
	free(c->recv);
	free(c->memory);
}

/* ---- reductions ----------------------------------------------------------------------- */

static uint8_t *span(const struct buffers *c, const struct cn_span *s)
{
	return (s->buffer == CN_BUF_SEND   ? c->send
		: s->buffer == CN_BUF_RECV ? c->recv
					   : c->scratch) +
	       s->offset;
}

void buffers_combine(struct buffers *c, const struct cn_combine *p)
{
	reduction_combine_all(c->plan->ordered, span(c, &p->left), span(c, &p->right),
			      span(c, &p->out), p->bytes, p->operands);
}
