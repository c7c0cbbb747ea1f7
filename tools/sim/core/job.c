/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs. Byte i of the block from rank s to rank d in operation n is a function of all four, so a
 * frame in the wrong place, twice, or of the operation before is detected. Receive buffers are
 * filled with other bytes first.
 */
#include "tools/sim/core/job.h"

#include "coll/combine.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct rank {
	struct cn_done join, op;
	struct cn_job *job;
	struct cn_member *member; /* of the engine of this epoch; it is gone with it */
	uint64_t epoch;
	uint8_t *send, *recv;
	uint8_t *scratch; /* reductions */
	uint64_t scratch_bytes;
	struct cn_reducer reducer;
	struct cn_job_rank result;
	uint64_t number;    /* of its present operation */
	uint32_t iteration; /* which of those that are run back to back */
	uint64_t wrong;	    /* in those before */
	bool joined, join_done;
	int join_status;
	char join_text[CN_ERR_TEXT];
};

struct cn_job {
	struct cn_sim *sim;
	struct cn_job_config config;
	uint32_t nranks, done, joins_done, posts;
	uint64_t number;
	struct rank *ranks;
	uint8_t *shared_send, *shared_recv;
	const struct cn_coll_args *args; /* of the present operation */
	uint32_t times;			 /* it is run back to back */
	uint64_t *sum, *slowest;	 /* [times] of its ranks' times; NULL: not wanted */
	cn_time limit;
};

static uint64_t word(uint64_t number, uint32_t from, uint32_t to, uint64_t at)
{
	return cn_mix64(number << 48 ^ (uint64_t)from << 36 ^ (uint64_t)to << 24 ^ at);
}

/* `len` bytes of a block: fills them, or counts those that differ. */
static uint64_t pattern(uint64_t number, uint32_t from, uint32_t to, uint8_t *data, uint64_t len,
			bool fill)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < len; i += 8) {
		uint64_t w = word(number, from, to, i), n = len - i < 8 ? len - i : 8;
		const uint8_t *bytes = (const uint8_t *)&w;

		if (fill) {
			memcpy(data + i, &w, n);
		} else if (memcmp(data + i, &w, n) != 0) {
			for (uint64_t k = 0; k < n; k++) {
				wrong += data[i + k] != bytes[k];
			}
		}
	}
	return wrong;
}

static void joined(struct cn_done *d, int status, const char *text)
{
	struct rank *r = (struct rank *)((char *)d - offsetof(struct rank, join));

	r->join_done = true;
	r->join_status = status;
	memcpy(r->join_text, text, strnlen(text, CN_ERR_TEXT - 1) + 1);
	r->join_text[CN_ERR_TEXT - 1] = '\0';
	r->job->joins_done++;
}

static void again(void *arg);

/* Counts the times of an iteration; false: it was the last one, or the next call failed. */
static bool end_iteration(struct rank *r)
{
	struct cn_job *j = r->job;
	cn_time now = cn_sim_now(j->sim), took = now - r->result.from;
	uint32_t iteration = r->iteration++;

	if (j->sum != NULL) {
		j->sum[iteration] += took;
	}
	if (j->slowest != NULL && took > j->slowest[iteration]) {
		j->slowest[iteration] = took;
	}
	return r->iteration < j->times && cn_sim_at(j->sim, now, again, r) == COLLNET_OK;
}

static void ended(struct cn_done *d, int status, const char *text)
{
	struct rank *r = (struct rank *)((char *)d - offsetof(struct rank, op));
	size_t n = strnlen(text, CN_ERR_TEXT - 1);

	if (status == COLLNET_OK && end_iteration(r)) {
		return;
	}
	r->result.done = true;
	r->result.status = status;
	memcpy(r->result.text, text, n);
	r->result.text[n] = '\0';
	r->result.to = cn_sim_now(r->job->sim);
	r->job->done++;
}

/* The root, rank 0, and the others have different ones. */
void cn_job_room(enum cn_op_kind op, uint64_t bytes, uint32_t ranks, uint64_t *send, uint64_t *recv)
{
	*send = *recv = op == 0 ? bytes * ranks : 0;
	for (uint32_t rank = 0; op != 0 && rank < 2; rank++) {
		const struct cn_call c = { .op = op, .bytes = bytes, .rank = rank, .ranks = ranks };

		*send = cn_call_send_bytes(&c) > *send ? cn_call_send_bytes(&c) : *send;
		*recv = cn_call_recv_bytes(&c) > *recv ? cn_call_recv_bytes(&c) : *recv;
	}
}

int cn_job_new(struct cn_sim *s, const struct cn_job_config *c, struct cn_job **out,
	       struct cn_err *err)
{
	struct cn_job *j = calloc(1, sizeof(*j));
	uint64_t send, recv;
	bool ok = j != NULL;

	if (c->local < 1 || c->hosts > cn_sim_hosts(s)) {
		free(j);
		return cn_fail(err, COLLNET_EINVAL,
			       "a job of %u hosts with %u ranks each on %u hosts", c->hosts,
			       c->local, cn_sim_hosts(s));
	}
	if (ok) {
		j->sim = s;
		j->config = *c;
		j->config.hosts = c->hosts != 0 ? c->hosts : cn_sim_hosts(s);
		j->config.name = c->name != NULL ? c->name : "sim";
		j->nranks = j->config.hosts * c->local;
		cn_job_room(c->op, c->bytes, j->nranks, &send, &recv);
		j->ranks = calloc(j->nranks, sizeof(*j->ranks));
		ok = j->ranks != NULL;
	}
	if (ok && c->shared) {
		j->shared_send = calloc(1, send + 1);
		j->shared_recv = calloc(1, recv + 1);
		ok = j->shared_send != NULL && j->shared_recv != NULL;
	}
	for (uint32_t i = 0; ok && i < j->nranks; i++) {
		struct rank *r = &j->ranks[i];

		r->job = j;
		r->result.host = i / c->local;
		r->join.fn = joined;
		r->op.fn = ended;
		r->send = c->shared ? j->shared_send : malloc(send + 1);
		r->recv = c->shared ? j->shared_recv : malloc(recv + 1);
		ok = r->send != NULL && r->recv != NULL;
	}
	if (!ok) {
		cn_job_free(j);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the buffers of a job");
	}
	*out = j;
	return COLLNET_OK;
}

/* The rank's engine, if it still is the one that it joined on. */
static struct cn_engine *engine_of(const struct cn_job *j, const struct rank *r)
{
	struct cn_engine *e = cn_sim_engine(j->sim, r->result.host);

	if (e == NULL || r->member == NULL ||
	    cn_node_config(cn_engine_node(e))->epoch != r->epoch) {
		return NULL;
	}
	return e;
}

void cn_job_leave(struct cn_job *j)
{
	for (uint32_t i = 0; i < j->nranks; i++) {
		struct rank *r = &j->ranks[i];

		if (engine_of(j, r) != NULL) {
			cn_team_leave(r->member, cn_sim_now(j->sim), false);
			cn_sim_kick(j->sim, r->result.host);
		}
		r->member = NULL;
		r->joined = false;
	}
}

void cn_job_free(struct cn_job *j)
{
	if (j == NULL) {
		return;
	}
	if (j->ranks != NULL) {
		cn_job_leave(j);
	}
	for (uint32_t i = 0; j->ranks != NULL && i < j->nranks; i++) {
		free(j->ranks[i].scratch);
	}
	for (uint32_t i = 0; j->ranks != NULL && !j->config.shared && i < j->nranks; i++) {
		free(j->ranks[i].send);
		free(j->ranks[i].recv);
	}
	free(j->shared_send);
	free(j->shared_recv);
	free(j->ranks);
	free(j);
}

static int no_memory(const struct cn_job *j, struct cn_err *err)
{
	return cn_fail(err, COLLNET_ENOMEM, "not enough memory to simulate %u hosts",
		       cn_sim_hosts(j->sim));
}

/* Why rank i did not join; the transport's advice to check the daemons does not apply here. */
static int not_joined(const struct cn_job *j, uint32_t i, cn_time within, struct cn_err *err)
{
	const struct rank *r = &j->ranks[i];

	if (!r->join_done || r->join_status == COLLNET_ETIMEOUT) {
		return cn_fail(err, COLLNET_ETIMEOUT,
			       "rank %u does not join: with this rate, "
			       "latency, gap or loss the hosts did not all find each other in %llu "
			       "virtual seconds",
			       i, (unsigned long long)(within / (1000 * CN_MS)));
	}
	return cn_fail(err, r->join_status, "rank %u does not join: %.200s", i, r->join_text);
}

int cn_job_join(struct cn_job *j, cn_time within, struct cn_err *err)
{
	cn_time until = cn_sim_now(j->sim) + within;

	j->joins_done = 0;
	for (uint32_t i = 0; i < j->nranks; i++) {
		struct rank *r = &j->ranks[i];
		struct cn_engine *e = cn_sim_engine(j->sim, r->result.host);
		int rc;

		r->join_done = r->joined = false;
		if (e == NULL) {
			return cn_fail(err, COLLNET_ERANK, "the host of rank %u is down", i);
		}
		rc = cn_team_join(e, cn_sim_now(j->sim), j->config.owner, j->config.name, i,
				  j->nranks, until, &r->join, &r->member, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
		r->epoch = cn_node_config(cn_engine_node(e))->epoch;
		cn_sim_kick(j->sim, r->result.host);
	}
	while (j->joins_done < j->nranks && cn_sim_step(j->sim, until + 100 * CN_MS)) {
	}
	if (cn_sim_failed(j->sim)) {
		return no_memory(j, err);
	}
	for (uint32_t i = 0; i < j->nranks; i++) {
		struct rank *r = &j->ranks[i];

		if (!r->join_done || r->join_status != COLLNET_OK) {
			return not_joined(j, i, within, err);
		}
		r->joined = true;
	}
	return COLLNET_OK;
}

static struct cn_call call_of(const struct cn_job *j, uint32_t rank)
{
	return (struct cn_call){
		.op = j->args->op,
		.bytes = j->args->bytes,
		.rank = rank,
		.ranks = j->nranks,
		.root = j->args->root,
		.blocks = j->args->blocks,
		.nodes = j->config.hosts,
		.local = j->config.local,
		.element = j->args->element,
	};
}

/* What the rank sends, and other bytes where it receives. */
static void fill(struct cn_job *j, uint32_t rank)
{
	struct rank *r = &j->ranks[rank];
	struct cn_call c = call_of(j, rank);
	uint64_t out = cn_call_send_bytes(&c);

	memset(r->recv, 0xee, cn_call_recv_bytes(&c));
	for (uint64_t i = 0; i * c.bytes < out; i++) {
		pattern(r->number, rank, cn_op_sends_to_each(c.op) ? (uint32_t)i : 0,
			r->send + i * c.bytes, c.bytes, true);
	}
}

static uint8_t *place(const struct rank *r, const struct cn_span *s)
{
	return (s->buffer == CN_BUF_SEND   ? r->send
		: s->buffer == CN_BUF_RECV ? r->recv
					   : r->scratch) +
	       s->offset;
}

/* Sums of bytes. */
/* Event: the rank reports that it has combined a piece, unless the operation has ended. */
static void combined(void *arg)
{
	struct rank *r = arg;

	if (r->reducer.op != NULL) {
		cn_coll_combined(&r->reducer);
		cn_sim_kick(r->job->sim, r->result.host);
	}
}

static bool combine(struct cn_reducer *reducer, const struct cn_combine *p)
{
	struct rank *r = (struct rank *)((char *)reducer - offsetof(struct rank, reducer));

	if (!r->job->config.shared) {
		const uint8_t *left = place(r, &p->left);

		for (uint32_t i = 0; i < p->operands; i++, left = place(r, &p->out)) {
			cn_combine_find(COLLNET_UINT8,
					COLLNET_SUM)(left, place(r, &p->right) + i * p->bytes,
						     place(r, &p->out), p->bytes);
		}
	}
	return r->job->config.combining == 0 ||
	       cn_sim_at(r->job->sim, cn_sim_now(r->job->sim) + r->job->config.combining, combined,
			 r) != COLLNET_OK;
}

/* Bytes of a reduction's result that are not the sums of so many ranks' blocks for `to`. */
static uint64_t look_at_sums(const struct rank *r, uint32_t ranks, uint32_t to, uint64_t bytes)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; ranks > 0 && i < bytes; i += 8) {
		uint8_t sum[8] = { 0 };

		for (uint32_t from = 0; from < ranks; from++) {
			uint64_t w = word(r->number, from, to, i);
			const uint8_t *b = (const uint8_t *)&w;

			for (int k = 0; k < 8; k++) {
				sum[k] = (uint8_t)(sum[k] + b[k]);
			}
		}
		for (uint64_t k = 0; k < 8 && i + k < bytes; k++) {
			wrong += r->recv[i + k] != sum[k];
		}
	}
	return wrong;
}

static uint64_t look(struct cn_job *j, uint32_t rank)
{
	struct rank *r = &j->ranks[rank];
	struct cn_call c = call_of(j, rank);
	uint64_t in = cn_call_recv_bytes(&c), wrong = 0;
	bool one = cn_op_is_from_root(c.op);

	if (cn_op_reduces(c.op)) {
		return look_at_sums(r, cn_op_operands(c.op, rank, j->nranks),
				    cn_op_sends_to_each(c.op) ? rank : 0, in);
	}
	for (uint64_t i = 0; i * c.bytes < in; i++) {
		wrong += pattern(r->number, one ? c.root : (uint32_t)i,
				 cn_op_sends_to_each(c.op) ? rank : 0, r->recv + i * c.bytes,
				 c.bytes, false);
	}
	return wrong;
}

static bool reserve_scratch(struct rank *r, const struct cn_call *c)
{
	const uint64_t bytes = cn_call_scratch_bytes(c);
	uint8_t *more;

	if (bytes > r->scratch_bytes) {
		more = realloc(r->scratch, bytes);
		if (more == NULL) {
			return false;
		}
		r->scratch = more;
		r->scratch_bytes = bytes;
	}
	return true;
}

/* Event: the rank calls. */
static void post(void *arg)
{
	struct rank *r = arg;
	struct cn_job *j = r->job;
	uint32_t rank = (uint32_t)(r - j->ranks);
	struct cn_coll_args a = *j->args;
	struct cn_call c = call_of(j, rank);
	struct cn_err err = { 0 };

	r->result.from = cn_sim_now(j->sim);
	if (engine_of(j, r) == NULL) {
		ended(&r->op, COLLNET_EDAEMON, "the host is down");
		return;
	}
	a.deadline = j->limit;
	a.send = cn_call_send_bytes(&c) > 0 ? r->send : NULL;
	a.recv = cn_call_recv_bytes(&c) > 0 ? r->recv : NULL;
	if (cn_op_reduces(a.op) && !reserve_scratch(r, &c)) {
		ended(&r->op, COLLNET_ENOMEM, "no memory for a scratch buffer");
		return;
	}
	a.scratch = r->scratch;
	r->reducer.combine = combine;
	a.reducer = cn_op_reduces(a.op) ? &r->reducer : NULL;
	if (cn_coll_post(r->member, cn_sim_now(j->sim), &a, &r->op, &err) != COLLNET_OK) {
		ended(&r->op, err.code, err.text);
	}
	cn_sim_kick(j->sim, r->result.host);
}

/* Event: the rank calls again. */
static void again(void *arg)
{
	struct rank *r = arg;
	uint32_t rank = (uint32_t)(r - r->job->ranks);

	if (!r->job->config.shared) {
		r->wrong += look(r->job, rank);
		r->number++;
		fill(r->job, rank);
	}
	post(r);
}

static int run(struct cn_job *j, const struct cn_coll_args *args, cn_time within,
	       struct cn_job_result *out, struct cn_err *err)
{
	cn_time start = cn_sim_now(j->sim);
	uint64_t sum = 0;

	if (args->bytes > j->config.bytes) {
		return cn_fail(err, COLLNET_EINVAL, "blocks of %llu bytes in a job made for %llu",
			       (unsigned long long)args->bytes,
			       (unsigned long long)j->config.bytes);
	}
	memset(out, 0, sizeof(*out));
	j->args = args;
	j->done = 0;
	j->limit = start + args->deadline;
	for (uint32_t i = 0; i < j->nranks; i++) {
		struct rank *r = &j->ranks[i];

		r->result = (struct cn_job_rank){ .host = r->result.host };
		r->number = j->number + 1;
		r->iteration = 0;
		r->wrong = 0;
		if (!j->config.shared) {
			fill(j, i);
		}
		if (cn_sim_at(j->sim, start, post, r) != COLLNET_OK) {
			return no_memory(j, err);
		}
	}
	while (j->done < j->nranks && cn_sim_step(j->sim, start + within)) {
	}
	if (cn_sim_failed(j->sim)) {
		return no_memory(j, err);
	}
	for (uint32_t i = 0; i < j->nranks; i++) {
		struct cn_job_rank *r = &j->ranks[i].result;

		if (!r->done) {
			out->pending++;
		} else if (r->status != COLLNET_OK) {
			out->failed++;
		} else {
			cn_time took = r->to - r->from;

			out->ended++;
			sum += took;
			out->slowest = took > out->slowest ? took : out->slowest;
			r->wrong = j->config.shared ? 0 : look(j, i);
			out->wrong += r->wrong + j->ranks[i].wrong;
		}
	}
	out->mean = out->ended > 0 ? sum / out->ended : 0;
	j->number += j->times;
	return COLLNET_OK;
}

int cn_job_run(struct cn_job *j, const struct cn_coll_args *args, cn_time within,
	       struct cn_job_result *out, struct cn_err *err)
{
	j->times = 1;
	j->sum = j->slowest = NULL;
	return run(j, args, within, out, err);
}

int cn_job_repeat(struct cn_job *j, const struct cn_coll_args *args, uint32_t times, cn_time within,
		  uint64_t *mean, uint64_t *slowest, struct cn_job_result *out, struct cn_err *err)
{
	int rc;

	j->times = times > 0 ? times : 1;
	j->sum = mean;
	j->slowest = slowest;
	for (uint32_t i = 0; i < j->times; i++) {
		if (mean != NULL) {
			mean[i] = 0;
		}
		if (slowest != NULL) {
			slowest[i] = 0;
		}
	}
	rc = run(j, args, within, out, err);
	for (uint32_t i = 0; mean != NULL && i < j->times; i++) {
		mean[i] /= j->nranks;
	}
	return rc;
}

uint32_t cn_job_ranks(const struct cn_job *j)
{
	return j->nranks;
}

const struct cn_job_rank *cn_job_rank(const struct cn_job *j, uint32_t rank)
{
	return &j->ranks[rank].result;
}
