/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives, by one or several algorithms in turns.
 *
 * With several algorithms the iterations of a size are cut into up to ten rounds, and in each
 * round every algorithm has its share, so that they run under the same conditions. Times stay on
 * their rank until all is measured; then they are gathered. An iteration's time is the mean of its
 * ranks': ranks that run iterations back to back overlap, one still in iteration i when another is
 * in i + 1 already, and only means add up to the time that all took. The slowest rank's time is
 * reported beside it. In operations with a root and in scans, ranks that only send may be far
 * ahead. There a barrier keeps iterations apart, and the slowest rank's time counts.
 *
 * With --verify every byte of every iteration is checked, and yet no checking comes between two
 * iterations: a batch of them, each with buffers of its own, is filled, run back to back, and then
 * checked. Where the buffers are large a batch is one iteration. Without --verify all are.
 */
#include "tools/bench/command.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/blocks.h"
#include "tools/bench/pattern.h"

#define ROUNDS	    10
#define WARM_UP	    UINT32_MAX		 /* in place of an iteration's number */
#define GATHER	    512			 /* iterations' times gathered at once */
#define BATCH_BYTES ((uint64_t)16 << 20) /* buffers of a batch, as long as one iteration fits */

/* One algorithm at one size. */
struct contest {
	const struct cn_algorithm *row;
	struct collnet_coll_options how;
	char algorithm[CN_CHOICE_TEXT]; /* with modifiers */
	uint64_t *ns, *slowest;		/* [iterations] */
	uint64_t counters[BENCH_COUNTERS];
	bool wrong; /* reported already */
};

struct coll {
	struct bench *b;
	uint64_t bytes; /* of a block */
	double limit_us;
	uint32_t iterations;
	uint8_t *send, *recv; /* [batch] buffers each */
	uint32_t batch;	      /* iterations that have buffers of their own */
	struct contest contests[CN_ALGORITHMS_MAX];
	size_t ncontests;
	bool checked; /* --verify, and there is something to check */
	struct bench_blocks blocks;
};

static enum cn_op_kind kind_of(const struct coll *k)
{
	return measure_op_kind(k->b->o->m.op);
}

static struct bench_call call_of(const struct coll *k)
{
	return (struct bench_call){
		.op = kind_of(k),
		.bytes = k->bytes,
		.seed = k->b->o->m.seed,
		.rank = k->b->m.rank,
		.ranks = k->b->m.place.ranks,
		.nodes = k->b->m.place.nodes,
	};
}

static uint64_t send_bytes(const struct coll *k)
{
	const struct bench_call c = call_of(k);

	return bench_send_room(&c);
}

static uint64_t recv_bytes(const struct coll *k)
{
	const struct bench_call c = call_of(k);

	return bench_recv_room(&c);
}

/*
 * The largest batch for blocks of this size. What is not checked has the same buffers every time,
 * as programs have: in others, most iterations would touch memory for the first time.
 */
static uint32_t batch_of(const struct coll *k)
{
	uint64_t one = send_bytes(k) + recv_bytes(k), n = one > 0 ? BATCH_BYTES / one : 1;

	if (!k->b->o->m.verify) {
		return 1;
	}
	return n < 1 ? 1 : n > 1024 ? 1024 : (uint32_t)n;
}

/* What `source` sends to `destination` in iteration `serial` of this run. */
static struct bench_pattern block(const struct coll *k, uint64_t serial, uint32_t source,
				  uint32_t destination)
{
	return bench_pattern(k->b->o->m.seed, serial, source,
			     cn_op_sends_to_each(kind_of(k)) ? destination : BENCH_EVERYONE);
}

/* Whose block is number i of this rank's receive buffer. */
static uint32_t source_of(const struct coll *k, uint32_t i)
{
	return cn_op_is_from_root(kind_of(k)) ? 0 : i;
}

/* What this rank sends in place `at` of the batch; wrong bytes where it is to receive. */
static void fill(const struct coll *k, uint64_t serial, uint32_t at)
{
	uint8_t *send = k->send + at * send_bytes(k), *recv = k->recv + at * recv_bytes(k);
	bool root = kind_of(k) == CN_OP_BCAST && k->b->m.rank == 0; /* it sends from recv */
	uint32_t i, me = k->b->m.rank;

	for (i = 0; i < k->blocks.nsends; i++) {
		struct bench_pattern p = block(k, serial, me, i);

		bench_pattern_fill(&p, send + k->blocks.send_at[i], k->blocks.sends[i]);
	}
	for (i = 0; i < k->blocks.nrecvs; i++) {
		struct bench_pattern p = block(k, serial, source_of(k, i), me);

		if (root) {
			bench_pattern_fill(&p, recv, k->bytes);
		} else {
			bench_pattern_poison(&p, recv + k->blocks.recv_at[i], k->blocks.recvs[i]);
		}
	}
}

static void report_wrong(const struct coll *k, struct contest *t, uint32_t source, size_t at,
			 uint8_t want, uint8_t got)
{
	char what[128], size[TOOL_TEXT];

	t->counters[BENCH_WRONG] = 1;
	if (!t->wrong) { /* the first is enough */
		t->wrong = true;
		snprintf(what, sizeof(what), "%s by %s, block of %s",
			 measure_op_name(k->b->o->m.op), t->row->name,
			 tool_format_size(k->bytes, size));
		bench_wrong(k->b, what, source, at, want, got);
	}
}

/* Each byte, where the rank has a result, is the sum of the ranks'. */
static void check_sums(const struct coll *k, struct contest *t, uint64_t serial, uint32_t slot)
{
	const uint8_t *data = k->recv + slot * recv_bytes(k);
	const uint32_t ranks = cn_op_operands(kind_of(k), k->b->m.rank, k->b->m.place.ranks);

	for (size_t at = 0; ranks > 0 && k->blocks.nrecvs > 0 && at < k->blocks.recvs[0]; at++) {
		uint8_t sum = 0;

		for (uint32_t r = 0; r < ranks; r++) {
			struct bench_pattern p = block(k, serial, r, k->b->m.rank);

			sum = (uint8_t)(sum + bench_pattern_byte(&p, at));
		}
		if (data[at] != sum) {
			report_wrong(k, t, 0, at, sum, data[at]);
			return;
		}
	}
}

static void check(const struct coll *k, struct contest *t, uint64_t serial, uint32_t slot)
{
	uint32_t i;
	size_t at;

	if (cn_op_reduces(kind_of(k))) {
		check_sums(k, t, serial, slot);
		return;
	}
	for (i = 0; i < k->blocks.nrecvs; i++) {
		struct bench_pattern p = block(k, serial, source_of(k, i), k->b->m.rank);
		const uint8_t *data = k->recv + slot * recv_bytes(k) + k->blocks.recv_at[i];

		if (bench_pattern_check(&p, data, k->blocks.recvs[i], &at)) {
			continue;
		}
		report_wrong(k, t, source_of(k, i), at, bench_pattern_byte(&p, at), data[at]);
	}
}

static int operate(const struct coll *k, const struct contest *t, uint32_t at)
{
	uint8_t *send = k->send + at * send_bytes(k), *recv = k->recv + at * recv_bytes(k);
	const struct collnet_coll_options *how = &t->how;
	const enum collnet_type type = COLLNET_UINT8;
	const struct bench_blocks *b = &k->blocks;
	collnet_team_t *team = k->b->team;

	switch (kind_of(k)) {
	case CN_OP_ALLTOALL:
		return collnet_alltoall(team, send, recv, k->bytes, how);
	case CN_OP_ALLTOALLV:
		return collnet_alltoallv(team, send, b->sends, b->send_at, recv, b->recvs,
					 b->recv_at, how);
	case CN_OP_ALLGATHER:
		return collnet_allgather(team, send, recv, k->bytes, how);
	case CN_OP_ALLGATHERV:
		return collnet_allgatherv(team, send, b->sends[0], recv, b->recvs, b->recv_at, how);
	case CN_OP_BCAST:
		return collnet_bcast(team, recv, k->bytes, 0, how);
	case CN_OP_SCATTER:
		return collnet_scatter(team, send, recv, k->bytes, 0, how);
	case CN_OP_SCATTERV:
		return collnet_scatterv(team, send, b->sends, b->send_at, recv, b->recvs[0], 0,
					how);
	case CN_OP_GATHER:
		return collnet_gather(team, send, recv, k->bytes, 0, how);
	case CN_OP_GATHERV:
		return collnet_gatherv(team, send, b->sends[0], recv, b->recvs, b->recv_at, 0, how);
	case CN_OP_ALLREDUCE:
		return collnet_allreduce(team, send, recv, k->bytes, type, COLLNET_SUM, how);
	case CN_OP_REDUCE:
		return collnet_reduce(team, send, recv, k->bytes, type, COLLNET_SUM, 0, how);
	case CN_OP_REDUCE_SCATTER:
		return collnet_reduce_scatter(team, send, recv, k->bytes, type, COLLNET_SUM, how);
	case CN_OP_REDUCE_SCATTERV:
		return collnet_reduce_scatterv(team, send, recv, b->sends, type, COLLNET_SUM, how);
	case CN_OP_SCAN:
		return collnet_scan(team, send, recv, k->bytes, type, COLLNET_SUM, how);
	case CN_OP_EXSCAN:
		return collnet_exscan(team, send, recv, k->bytes, type, COLLNET_SUM, how);
	default:
		return collnet_barrier(team, how);
	}
}

/* One iteration in place `at` of the batch; *ns is its time here. */
static int iterate(struct coll *k, struct contest *t, uint32_t at, uint64_t *ns)
{
	struct bench *b = k->b;
	char size[TOOL_TEXT];
	uint64_t cpu = bench_cpu();
	cn_time from = cn_now();
	int rc = operate(k, t, at);

	*ns = cn_now() - from;
	t->counters[BENCH_CPU] += bench_cpu() - cpu;
	if (rc != COLLNET_OK) {
		return bench_fail(b, rc, "%s by %s, blocks of %s", measure_op_name(b->o->m.op),
				  t->row->name, tool_format_size(k->bytes, size));
	}
	return TOOL_OK;
}

/* n iterations from number `from` on, back to back, at most a batch; before and after them all
 * that --verify costs. */
static int run_batch(struct coll *k, struct contest *t, uint32_t from, uint32_t n, uint64_t *ns)
{
	struct bench *b = k->b;
	uint64_t serial = b->serial;
	char size[TOOL_TEXT];
	uint32_t i;
	int rc = TOOL_OK;

	b->serial += n;
	for (i = 0; i < n && k->checked; i++) {
		fill(k, serial + i, i);
	}
	if (k->checked) {
		rc = bench_barrier(b);
	}
	for (i = 0; i < n && rc == TOOL_OK; i++) {
		if (from != WARM_UP) {
			bench_progress(b, "%s, %s: %u of %u", t->row->name,
				       tool_format_size(k->bytes, size), from + i + 1,
				       k->iterations);
		}
		if (cn_op_is_one_way(kind_of(k))) {
			rc = bench_barrier(b);
		}
		rc = rc == TOOL_OK ? iterate(k, t, i, &ns[i]) : rc;
	}
	for (i = 0; i < n && k->checked && rc == TOOL_OK; i++) {
		check(k, t, serial + i, i);
	}
	return rc;
}

static int warm_up(struct coll *k, struct contest *t)
{
	uint64_t kept[BENCH_COUNTERS], ns;
	uint32_t i;
	int rc = TOOL_OK;

	for (i = 0; i < k->b->o->m.warmup && rc == TOOL_OK; i++) {
		memcpy(kept, t->counters, sizeof(kept));
		rc = run_batch(k, t, WARM_UP, 1, &ns);
		kept[BENCH_WRONG] = t->counters[BENCH_WRONG]; /* wrong bytes count always */
		memcpy(t->counters, kept, sizeof(kept));
	}
	return rc;
}

/* Iterations [from, to) of one algorithm, with the counters around them. */
static int measure(struct coll *k, struct contest *t, uint32_t from, uint32_t to)
{
	struct bench *b = k->b;
	struct collnet_stats before;
	uint32_t i, n;
	int rc;

	/* All that came before is over everywhere; then the ranks start together. */
	rc = bench_barrier(b);
	if (rc == TOOL_OK) {
		rc = bench_count_begin(b, &before);
	}
	if (rc == TOOL_OK) {
		rc = bench_barrier(b);
	}
	for (i = from; i < to && rc == TOOL_OK; i += n) {
		n = to - i < k->batch ? to - i : k->batch;
		rc = run_batch(k, t, i, n, &t->ns[i]);
	}
	if (rc == TOOL_OK) {
		rc = bench_barrier(b);
	}
	if (rc == TOOL_OK) {
		rc = bench_count_end(b, &before, t->counters);
	}
	return rc;
}

/* slowest[i] becomes the longest of all ranks' iteration i, ns[i] that or their mean. */
static int gather_times(struct coll *k, uint64_t *ns, uint64_t *slowest)
{
	size_t ranks = k->b->m.place.ranks, n, r, i;
	uint64_t *all = malloc(ranks * GATHER * sizeof(*all));
	uint32_t at;
	int rc = TOOL_OK;

	if (all == NULL) {
		return bench_fail(k->b, COLLNET_ENOMEM, "gathering times");
	}
	for (at = 0; at < k->iterations && rc == TOOL_OK; at += (uint32_t)n) {
		n = k->iterations - at < GATHER ? k->iterations - at : GATHER;
		rc = bench_gather(k->b, ns + at, n, all);
		for (i = 0; rc == TOOL_OK && i < n; i++) {
			uint64_t sum = 0, most = 0;

			for (r = 0; r < ranks; r++) {
				sum += all[r * n + i];
				most = all[r * n + i] > most ? all[r * n + i] : most;
			}
			ns[at + i] = cn_op_is_one_way(kind_of(k)) ? most : sum / ranks;
			slowest[at + i] = most;
		}
	}
	free(all);
	return rc;
}

static int finish(struct coll *k, struct contest *t)
{
	struct bench *b = k->b;
	struct measure_result r;
	uint64_t total[BENCH_COUNTERS];
	bool verified;
	int rc;

	rc = gather_times(k, t->ns, t->slowest);
	if (rc == TOOL_OK) {
		rc = bench_count_gather(b, t->counters, total);
	}
	if (rc != TOOL_OK) {
		return rc;
	}
	measure_result_init(&r, &b->m, k->bytes);
	r.algorithm = t->row->name;
	r.permutation = measure_permutation(&b->m, t->row);
	r.contention_aware = measure_contention_aware(&b->m, t->row);
	r.window = measure_window(&b->m, t->row);
	r.iterations = k->iterations;
	r.ns = measure_summary(t->ns, k->iterations);
	r.slowest_ns = measure_summary(t->slowest, k->iterations).median;
	r.limit_us = k->limit_us;
	r.bandwidth = measure_node_bytes(b->o->m.op, &b->m.place, k->bytes) * 8 /
		      (r.ns.median / 1e3);
	bench_count_report(total,
			   measure_payload(b->o->m.op, b->m.place.ranks, k->bytes) * k->iterations,
			   &r);
	verified = total[BENCH_WRONG] == 0;
	r.verified = k->checked ? &verified : NULL;
	if (!verified) {
		b->wrong = true; /* the exit status of every rank */
	}
	bench_progress_end(b);
	return b->m.rank != 0 || bench_report(b, &r) ? TOOL_OK : TOOL_FAILED;
}

static int run_size(struct coll *k)
{
	uint32_t rounds, round;
	size_t i;
	int rc = TOOL_OK;

	rounds = k->ncontests == 1 ? 1 : k->iterations < ROUNDS ? k->iterations : ROUNDS;
	for (i = 0; i < k->ncontests && rc == TOOL_OK; i++) {
		rc = warm_up(k, &k->contests[i]);
	}
	for (round = 0; round < rounds; round++) {
		uint32_t from = (uint32_t)((uint64_t)k->iterations * round / rounds);
		uint32_t to = (uint32_t)((uint64_t)k->iterations * (round + 1) / rounds);

		for (i = 0; i < k->ncontests && rc == TOOL_OK; i++) {
			rc = measure(k, &k->contests[i], from, to);
		}
	}
	for (i = 0; i < k->ncontests && rc == TOOL_OK; i++) {
		rc = finish(k, &k->contests[i]);
	}
	return rc;
}

static int prepare(struct coll *k)
{
	const struct measure_options *o = &k->b->o->m;
	const struct bench_call call = call_of(k);
	const struct cn_algorithm *rows[CN_ALGORITHMS_MAX];
	uint64_t n;
	size_t i;
	int rc;

	k->limit_us = measure_limit_us(o->op, &k->b->m.place, k->bytes);
	k->b->expected_us = isfinite(k->limit_us) ? k->limit_us : 0;
	n = o->iterations != MEASURE_DEFAULT
		    ? o->iterations
		    : measure_iterations(o->op, &k->b->m.place, k->bytes, k->limit_us);
	rc = bench_agree(k->b, &n);
	if (rc != TOOL_OK) {
		return rc;
	}
	if (n < 1 || n > MEASURE_ITERATIONS_MAX) {
		return bench_fail(k->b, COLLNET_EPROTO, "rank 0 wants %llu iterations",
				  (unsigned long long)n);
	}
	k->iterations = (uint32_t)n;
	if (!bench_blocks_init(&k->blocks, &call)) {
		return bench_fail(k->b, COLLNET_ENOMEM, "no memory for sizes");
	}
	k->batch = batch_of(k);
	k->checked = o->verify && o->op != MEASURE_BARRIER;
	rc = measure_choose(&k->b->m, k->bytes, rows, &k->ncontests);
	if (rc != TOOL_OK) {
		return rc;
	}
	for (i = 0; i < k->ncontests; i++) {
		struct contest *t = &k->contests[i];
		struct cn_choice choice;

		t->row = rows[i];
		collnet_coll_options_init(&t->how);
		choice = measure_choice(&k->b->m, t->row);
		t->how.algorithm = cn_choice_format(&choice, t->algorithm);
		t->how.window = o->window;
		t->how.timeout_ms = bench_timeout(k->b);
		t->ns = calloc(k->iterations, sizeof(*t->ns));
		t->slowest = calloc(k->iterations, sizeof(*t->slowest));
		if (t->ns == NULL || t->slowest == NULL) {
			return bench_fail(k->b, COLLNET_ENOMEM, "no memory for %u times",
					  k->iterations);
		}
	}
	return TOOL_OK;
}

static void cleanup(struct coll *k)
{
	size_t i;

	bench_blocks_free(&k->blocks);
	for (i = 0; i < CN_ALGORITHMS_MAX; i++) {
		free(k->contests[i].ns);
		free(k->contests[i].slowest);
	}
}

int bench_collective(struct bench *b)
{
	uint64_t send = 1, recv = 1; /* bytes of the buffers: the most that any size wants */
	struct coll k = { .b = b };
	size_t i;
	int rc = TOOL_OK;

	for (i = 0; i < b->o->m.nsizes; i++) {
		uint64_t n;

		k.bytes = b->o->m.sizes[i];
		n = batch_of(&k);
		send = n * send_bytes(&k) > send ? n * send_bytes(&k) : send;
		recv = n * recv_bytes(&k) > recv ? n * recv_bytes(&k) : recv;
	}
	k.send = collnet_alloc(b->c, send);
	if (k.send == NULL) {
		return bench_fail(b, COLLNET_ENOMEM, "a buffer to send from");
	}
	k.recv = collnet_alloc(b->c, recv);
	if (k.recv == NULL) {
		return bench_fail(b, COLLNET_ENOMEM, "a buffer to receive into");
	}
	for (i = 0; i < b->o->m.nsizes && rc == TOOL_OK; i++) {
		struct coll one = {
			.b = b, .bytes = b->o->m.sizes[i], .send = k.send, .recv = k.recv
		};

		rc = prepare(&one);
		if (rc == TOOL_OK) {
			fill(&one, 0, 0); /* without --verify too: real pages with real bytes */
			rc = run_size(&one);
		}
		cleanup(&one);
	}
	collnet_free(b->c, k.send);
	collnet_free(b->c, k.recv);
	return rc;
}
