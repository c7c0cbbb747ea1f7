/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Teams and their collective operations: arguments checked, then to the backend.
 */
#include "collnet/collnet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/backend.h"
#include "client/env.h"
#include "client/reduce.h"
#include "sched/choice.h"

/* What o->job points to is in *place. On an error ranks is 0. */
static int init_options(struct collnet_team_options *o, struct cn_launch_info *place,
			struct cn_err *err)
{
	int rc = cn_launch_info(place, err);

	memset(o, 0, sizeof(*o));
	o->size = sizeof(*o);
	if (rc == COLLNET_OK) {
		o->job = place->job[0] != '\0' ? place->job : NULL;
		o->rank = place->rank;
		o->ranks = place->ranks;
	}
	return rc;
}

void collnet_team_options_init(struct collnet_team_options *o)
{
	static _Thread_local struct cn_launch_info place; /* of the thread, until the next call */

	if (o != NULL) { /* collnet_team_create() says what is wrong */
		(void)init_options(o, &place, NULL);
	}
}

/*
 * The job's name when nobody said one: a team of one rank is nobody else's, and all other
 * nameless ones are the same job.
 */
static void default_job(const struct collnet *c, const struct collnet_team_options *o, char *out,
			size_t size)
{
	if (o->ranks == 1) {
		snprintf(out, size, "single-%ld-%.40s", (long)getpid(), c->node);
	} else {
		snprintf(out, size, "default");
	}
}

/*
 * The options as given, or as the launcher says. This may ask its server, which can take seconds:
 * without the context's lock.
 */
static int complete_options(const struct collnet_team_options *o, struct collnet_team_options *out,
			    struct cn_launch_info *place, struct cn_err *err)
{
	int rc;

	if (o == NULL) {
		return init_options(out, place, err);
	}
	memset(out, 0, sizeof(*out));
	rc = cn_options_copy(out, sizeof(*out), o, o->size, "struct collnet_team_options", err);
	/* They may have been initialised when the launcher's variables were wrong, too. */
	return rc == COLLNET_OK && out->ranks == 0 ? cn_launch_info(place, err) : rc;
}

static int settle_team(struct collnet *c, struct collnet_team_options *out, char *job, size_t size)
{
	int rc;

	if (out->ranks < 1 || out->ranks > COLLNET_RANKS_MAX || out->rank >= out->ranks) {
		return cn_fail(&c->err, COLLNET_EINVAL,
			       "rank %u of %u: expected 1 to %d ranks, numbered from 0", out->rank,
			       out->ranks, COLLNET_RANKS_MAX);
	}
	rc = cn_settle_timeout(c, &out->timeout_ms, &c->err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (out->job == NULL) {
		default_job(c, out, job, size);
	} else if (!cn_valid_name(out->job)) {
		return cn_fail(&c->err, COLLNET_EINVAL,
			       "'%.70s' is not a valid job name: 1 to %d characters of "
			       "A-Z a-z 0-9 . _ : @ / -",
			       out->job, COLLNET_NAME_MAX);
	} else {
		snprintf(job, size, "%s", out->job);
	}
	return COLLNET_OK;
}

static void free_team(struct collnet_team *t)
{
	if (t->number < CN_MSG_TEAMS) {
		t->c->teams[t->number] = NULL;
	}
	free(t->names);
	free(t->lists);
	free(t);
}

/* Memory and a place in the context's table. */
static int new_team(struct collnet *c, const struct collnet_team_options *o, const char *job,
		    struct collnet_team **out)
{
	struct collnet_team *t;
	uint32_t i = 0;

	while (i < CN_MSG_TEAMS && c->teams[i] != NULL) {
		i++;
	}
	if (i == CN_MSG_TEAMS) {
		return cn_fail(&c->err, COLLNET_ELIMIT, "this context has %u teams already",
			       CN_MSG_TEAMS);
	}
	t = calloc(1, sizeof(*t));
	if (t != NULL) {
		t->names = calloc(o->ranks, sizeof(*t->names));
	}
	if (t == NULL || t->names == NULL) {
		free(t);
		return cn_fail(&c->err, COLLNET_ENOMEM, "out of memory for a team of %u ranks",
			       o->ranks);
	}
	t->c = c;
	t->number = i;
	t->rank = o->rank;
	t->ranks = o->ranks;
	snprintf(t->job, sizeof(t->job), "%s", job);
	c->teams[i] = t;
	*out = t;
	return COLLNET_OK;
}

int cn_team_open(struct collnet *c, const struct collnet_team_options *o, uint64_t secret,
		 const struct cn_origin *from, struct collnet_team **out)
{
	const bool outside = from->split != NULL && from->split->color < 0;
	struct collnet_request *r;
	struct collnet_team *t = NULL;
	int rc = new_team(c, o, o->job, &t);

	if (rc != COLLNET_OK) {
		return rc;
	}
	t->secret = secret;
	t->parent = from->parent;
	if (from->parent != NULL) {
		/* What fails before it is there is a call of the parent's ranks. */
		memcpy(t->made_as, from->parent->made_as, sizeof(t->made_as));
	}
	r = cn_request_get(c, t, NULL, o->timeout_ms, &c->err);
	if (r == NULL) {
		free_team(t);
		return c->err.code;
	}
	rc = from->split != NULL ? cn_request_admit(r, from->parent, &c->err) : COLLNET_OK;
	if (rc != COLLNET_OK) {
		cn_request_put(r);
		free_team(t);
		return rc;
	}
	rc = c->backend->join(t, from, r, &c->err);
	if (rc != COLLNET_OK) {
		cn_request_refused(r);
		free_team(t);
		return rc;
	}
	rc = cn_request_finish(r);
	t->parent = NULL;
	if (outside) {
		free_team(t);
		if (rc == COLLNET_OK) {
			*out = NULL;
		}
		return rc;
	}
	if (rc == COLLNET_OK) {
		rc = c->backend->ranks(t, &c->err);
	}
	for (uint32_t i = 0; rc == COLLNET_OK && i < t->ranks; i++) {
		t->local += strcmp(t->names[i], t->names[t->rank]) == 0;
	}
	if (rc != COLLNET_OK) {
		c->backend->leave(t);
		free_team(t);
		return rc;
	}
	*out = t;
	return COLLNET_OK;
}

static int create_team(struct collnet *c, const struct collnet_team_options *given,
		       struct collnet_team **out)
{
	struct collnet_team_options o = *given;
	char job[COLLNET_NAME_MAX + 1];
	int rc = settle_team(c, &o, job, sizeof(job));
	const struct cn_origin none = { NULL, NULL, NULL };
	uint64_t secret = 0;

	if (rc == COLLNET_OK) {
		rc = cn_secret(o.secret, &secret, &c->err);
	}
	o.job = job;
	return rc != COLLNET_OK ? rc : cn_team_open(c, &o, secret, &none, out);
}

int collnet_team_create(collnet_t *c, const struct collnet_team_options *given,
			collnet_team_t **out)
{
	struct collnet_team_options o;
	struct cn_launch_info place;
	struct cn_err err;
	const int known = complete_options(given, &o, &place, &err);
	int rc = cn_enter(c);

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (out == NULL) {
		return cn_leave(c, cn_fail(&c->err, COLLNET_EINVAL,
					   "collnet_team_create: out is NULL"));
	}
	if (known != COLLNET_OK) {
		c->err = err;
		return cn_leave(c, known);
	}
	return cn_leave(c, create_team(c, &o, out));
}

void cn_team_close(struct collnet_team *t)
{
	struct collnet *c = t->c;

	cn_wait_for_buffered(t);
	c->backend->leave(t);
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		if (c->requests[i].team == t) {
			cn_request_done(&c->requests[i], COLLNET_ERANK, "this rank left the team");
			c->requests[i].team = NULL;
		}
		if (c->requests[i].counts == t) {
			c->requests[i].counts = NULL;
		}
	}
	free_team(t);
}

void collnet_team_destroy(collnet_team_t *t)
{
	struct collnet *c;

	if (t == NULL || cn_may_enter(t->c) != COLLNET_OK) {
		return;
	}
	c = t->c;
	cn_lock(c); /* also of a broken context */
	cn_team_close(t);
	pthread_mutex_unlock(&c->lock);
}

uint32_t collnet_team_rank(const collnet_team_t *t)
{
	return t == NULL ? 0 : t->rank;
}

uint32_t collnet_team_size(const collnet_team_t *t)
{
	return t == NULL ? 0 : t->ranks;
}

uint32_t collnet_team_nodes(const collnet_team_t *t)
{
	return t == NULL ? 0 : t->nodes;
}

const char *collnet_team_node(const collnet_team_t *t, uint32_t rank)
{
	return t == NULL || rank >= t->ranks ? NULL : t->names[rank];
}

/* ---- collective operations ------------------------------------------------------------ */

void collnet_coll_options_init(struct collnet_coll_options *o)
{
	if (o != NULL) {
		memset(o, 0, sizeof(*o));
		o->size = sizeof(*o);
		o->window = COLLNET_WINDOW_AUTO;
	}
}

/* The algorithm that the caller names, else the environment, else none. */
static int choose(const struct collnet *c, enum cn_op_kind op, const char *name,
		  struct cn_choice *out, struct cn_err *err)
{
	return name != NULL || c->algorithms == NULL
		       ? cn_choice_parse(op, name, out, err)
		       : cn_choice_override(c->algorithms, op, out, err);
}

static int settle_coll(struct collnet_team *t, enum cn_op_kind op,
		       const struct collnet_coll_options *o, struct collnet_coll_options *out,
		       struct cn_choice *choice)
{
	struct cn_err *err = &t->c->err;
	int rc = COLLNET_OK;

	collnet_coll_options_init(out);
	if (o != NULL) {
		rc = cn_options_copy(out, sizeof(*out), o, o->size, "struct collnet_coll_options",
				     err);
	}
	if (rc == COLLNET_OK) {
		rc = choose(t->c, op, out->algorithm, choice, err);
	}
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (out->window > 65535 && out->window != COLLNET_WINDOW_OFF) {
		return cn_fail(err, COLLNET_EINVAL,
			       "a window of %u frames: expected 1 to 65535, COLLNET_WINDOW_AUTO "
			       "or COLLNET_WINDOW_OFF",
			       out->window);
	}
	return cn_settle_timeout(t->c, &out->timeout_ms, err);
}

struct cn_call cn_coll_shape(const struct collnet_team *t, const struct cn_coll_args *a)
{
	return (struct cn_call){
		.op = a->op,
		.bytes = a->bytes,
		.rank = t->rank,
		.ranks = t->ranks,
		.root = a->root,
		.blocks = a->blocks,
		.nodes = t->nodes,
		.local = t->local,
		.element = a->element,
	};
}

/* Checks and posts; *out is the pending request, or the inactive one. */
static int post_coll(struct collnet_team *t, const struct cn_coll_call *call,
		     const struct collnet_coll_options *given, bool blocking,
		     struct collnet_request **out)
{
	struct collnet *c = t->c;
	struct cn_reduction_call reduction = { 0 };
	struct cn_call shape;
	struct collnet_coll_options o;
	struct cn_choice choice;
	struct cn_coll_args a = { .op = call->op, .root = call->root };
	struct cn_block *blocks = NULL;
	struct collnet_request *r = NULL;
	int rc = settle_coll(t, call->op, given, &o, &choice);

	if (rc == COLLNET_OK && (o.persistent < 0 || o.persistent > 1)) {
		rc = cn_fail(&c->err, COLLNET_EINVAL, "persistent is %d: expected 0 or 1",
			     o.persistent);
	}
	if (rc == COLLNET_OK && blocking && o.persistent != 0) {
		rc = cn_fail(&c->err, COLLNET_EINVAL,
			     "persistent operations are prepared by the non-blocking functions");
	}
	shape = cn_coll_shape(t, &a);
	shape.bytes = call->bytes;
	if (rc == COLLNET_OK && cn_op_is_vector(call->op)) {
		rc = cn_coll_blocks(call, &shape, &blocks, &c->err);
	}
	if (rc == COLLNET_OK && cn_op_reduces(call->op)) {
		rc = cn_reduction_settle(call->bytes, call->type, call->function, &o, &reduction,
					 &c->err);
		shape.bytes = reduction.bytes;
		shape.element = a.element = reduction.element;
		a.function = reduction.function;
		a.ordered = reduction.ordered;
	}
	if (rc == COLLNET_OK && call->op == CN_OP_REDUCE_SCATTERV) {
		rc = cn_reduction_blocks(&reduction, blocks, t->ranks, &c->err);
	}
	if (rc == COLLNET_OK) {
		rc = cn_call_check_buffers(&shape, call->send, call->recv, &c->err);
	}
	if (rc == COLLNET_OK && cn_op_reduces(call->op)) {
		rc = cn_reduction_check(&reduction, call->send,
					cn_call_recv_bytes(&shape) > 0 ? call->recv : NULL,
					&c->err);
	}
	if (rc == COLLNET_OK) {
		r = cn_request_get(c, t, NULL, o.timeout_ms, &c->err);
		rc = r == NULL ? c->err.code : COLLNET_OK;
	}
	if (rc != COLLNET_OK) {
		free(blocks);
		return rc;
	}
	r->blocks = blocks;
	r->persistent = r->preparing = o.persistent != 0;
	rc = cn_request_admit(r, t, &c->err);
	if (rc != COLLNET_OK) {
		r->persistent = false;
		cn_request_put(r);
		return rc;
	}
	a.bytes = shape.bytes;
	a.blocks = shape.blocks;
	a.algorithm = choice.algorithm != NULL ? choice.algorithm->name : NULL;
	a.permutation = choice.permutation;
	a.contention_aware = choice.contention_aware;
	a.window = o.window;
	a.send = cn_call_send_bytes(&shape) > 0 ? call->send : NULL;
	a.recv = cn_call_recv_bytes(&shape) > 0 ? call->recv : NULL;
	r->reduction.call = reduction;
	a.deadline = r->deadline;
	rc = c->backend->coll(t, r, &a, &c->err);
	if (rc != COLLNET_OK) {
		r->persistent = false;
		return cn_request_refused(r);
	}
	if (r->persistent) { /* this needs no other node */
		rc = cn_request_finish(r);
	}
	if (rc == COLLNET_OK) {
		*out = r;
	}
	return rc;
}

int cn_coll_run_locked(struct collnet_team *t, const struct cn_coll_call *call,
		       const struct collnet_coll_options *o)
{
	struct collnet_request *r;
	int rc = post_coll(t, call, o, true, &r);

	return rc != COLLNET_OK ? rc : cn_request_finish(r);
}

int cn_coll_run(collnet_team_t *t, const struct cn_coll_call *call,
		const struct collnet_coll_options *o)
{
	int rc;

	if (t == NULL) {
		return cn_argument_error("the team is NULL");
	}
	rc = cn_enter(t->c);
	if (rc != COLLNET_OK) {
		return rc;
	}
	return cn_leave(t->c, cn_coll_run_locked(t, call, o));
}

int cn_coll_start(collnet_team_t *t, const struct cn_coll_call *call,
		  const struct collnet_coll_options *o, collnet_request_t **out)
{
	int rc;

	if (t == NULL) {
		return cn_argument_error("the team is NULL");
	}
	rc = cn_enter(t->c);
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (out == NULL) {
		return cn_leave(t->c, cn_fail(&t->c->err, COLLNET_EINVAL, "out is NULL"));
	}
	rc = post_coll(t, call, o, false, out);
	if (rc == COLLNET_OK && (*out)->state == CN_REQUEST_PENDING) {
		t->c->backend->progress(t->c, 0);
	}
	return cn_leave(t->c, rc);
}

/* Of blocks of one size. */
static struct cn_coll_call call(enum cn_op_kind op, const void *send, void *recv, size_t bytes,
				uint32_t root)
{
	return (struct cn_coll_call){
		.op = op, .send = send, .recv = recv, .bytes = bytes, .root = root
	};
}

static int run_coll(collnet_team_t *t, struct cn_coll_call c, const struct collnet_coll_options *o)
{
	return cn_coll_run(t, &c, o);
}

static int start_coll(collnet_team_t *t, struct cn_coll_call c,
		      const struct collnet_coll_options *o, collnet_request_t **out)
{
	return cn_coll_start(t, &c, o, out);
}

int collnet_alltoall(collnet_team_t *t, const void *send, void *recv, size_t bytes,
		     const struct collnet_coll_options *o)
{
	return run_coll(t, call(CN_OP_ALLTOALL, send, recv, bytes, 0), o);
}

int collnet_ialltoall(collnet_team_t *t, const void *send, void *recv, size_t bytes,
		      const struct collnet_coll_options *o, collnet_request_t **out)
{
	return start_coll(t, call(CN_OP_ALLTOALL, send, recv, bytes, 0), o, out);
}

int collnet_allgather(collnet_team_t *t, const void *send, void *recv, size_t bytes,
		      const struct collnet_coll_options *o)
{
	return run_coll(t, call(CN_OP_ALLGATHER, send, recv, bytes, 0), o);
}

int collnet_iallgather(collnet_team_t *t, const void *send, void *recv, size_t bytes,
		       const struct collnet_coll_options *o, collnet_request_t **out)
{
	return start_coll(t, call(CN_OP_ALLGATHER, send, recv, bytes, 0), o, out);
}

int collnet_bcast(collnet_team_t *t, void *buffer, size_t bytes, uint32_t root,
		  const struct collnet_coll_options *o)
{
	return run_coll(t, call(CN_OP_BCAST, buffer, buffer, bytes, root), o);
}

int collnet_ibcast(collnet_team_t *t, void *buffer, size_t bytes, uint32_t root,
		   const struct collnet_coll_options *o, collnet_request_t **out)
{
	return start_coll(t, call(CN_OP_BCAST, buffer, buffer, bytes, root), o, out);
}

int collnet_scatter(collnet_team_t *t, const void *send, void *recv, size_t bytes, uint32_t root,
		    const struct collnet_coll_options *o)
{
	return run_coll(t, call(CN_OP_SCATTER, send, recv, bytes, root), o);
}

int collnet_iscatter(collnet_team_t *t, const void *send, void *recv, size_t bytes, uint32_t root,
		     const struct collnet_coll_options *o, collnet_request_t **out)
{
	return start_coll(t, call(CN_OP_SCATTER, send, recv, bytes, root), o, out);
}

int collnet_gather(collnet_team_t *t, const void *send, void *recv, size_t bytes, uint32_t root,
		   const struct collnet_coll_options *o)
{
	return run_coll(t, call(CN_OP_GATHER, send, recv, bytes, root), o);
}

int collnet_igather(collnet_team_t *t, const void *send, void *recv, size_t bytes, uint32_t root,
		    const struct collnet_coll_options *o, collnet_request_t **out)
{
	return start_coll(t, call(CN_OP_GATHER, send, recv, bytes, root), o, out);
}

int collnet_barrier(collnet_team_t *t, const struct collnet_coll_options *o)
{
	return run_coll(t, call(CN_OP_BARRIER, NULL, NULL, 0, 0), o);
}

int collnet_ibarrier(collnet_team_t *t, const struct collnet_coll_options *o,
		     collnet_request_t **out)
{
	return start_coll(t, call(CN_OP_BARRIER, NULL, NULL, 0, 0), o, out);
}
