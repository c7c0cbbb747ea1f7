/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The direct backend: the transport runs in this process, on the caller's thread during library
 * calls.
 *
 * Between calls a keep-alive thread polls every KEEP_ALIVE, so that peers are answered and do
 * not consider this node dead. It only tries the context's lock; a caller waits for at most
 * KEEP_ALIVE_POLLS polls. While a caller polls, it does nothing.
 */
#include "client/env.h"
#include "client/backend.h"
#include "client/periodic.h"
#include "client/reduce.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node/runtime.h"
#include "util/spin.h"

#define KEEP_ALIVE	 (25 * CN_MS)
#define KEEP_ALIVE_POLLS 16
#define SPIN_ALONE	 (20 * CN_US)  /* of polling, until others are let in between polls */
#define LINGER		 (200 * CN_MS) /* for goodbyes at the end */

struct direct {
	struct cn_runtime runtime;
	bool never_sleeps;
	struct cn_spin spin;
	bool alone;	  /* the thread below polls, not a caller */
	cn_time wake_at;  /* of a caller that sleeps */
	uint32_t waiting; /* fragments of reductions for the caller's thread */
	struct cn_periodic thread;
};

static struct collnet_request *request_of(struct cn_done *done)
{
	return (struct collnet_request *)(void *)((char *)done -
						  offsetof(struct collnet_request, done));
}

static void direct_done(struct cn_done *done, int status, const char *text)
{
	cn_request_done(request_of(done), status, text);
}

/* Ends everything with this error; the engine releases the callers' memory. */
static void broken(struct collnet *c, const struct cn_err *why)
{
	struct direct *d = c->impl;

	cn_context_gone(c, why);
	cn_engine_shutdown(d->runtime.engine, d->runtime.bye);
}

/* Handles a poll's result. False: there was nothing to do, or the context is broken. */
static bool worked(struct collnet *c, int work, cn_time now)
{
	struct direct *d = c->impl;
	struct cn_err why;

	if (c->gone.code == COLLNET_OK &&
	    cn_runtime_check(&d->runtime, now, work, &why) != COLLNET_OK) {
		broken(c, &why);
	}
	return work > 0;
}

/* ---- reductions ------------------------------------------------------------------------ */

/* Called by the engine. A user-defined operation runs on the caller's thread only. */
static bool direct_combine(struct cn_reducer *reducer, const struct cn_combine *piece)
{
	char *at = (char *)reducer - offsetof(struct collnet_request, reduction.reducer);
	struct collnet_request *r = (struct collnet_request *)(void *)at;
	struct direct *d = r->c->impl;

	if (d->alone && r->reduction.call.combine == NULL) {
		r->reduction.piece = *piece;
		r->reduction.waiting = true;
		d->waiting++;
		return false;
	}
	return cn_request_combine(r, piece);
}

/* Combines fragments that the keep-alive thread has left to the caller. */
static void combine_waiting(struct collnet *c)
{
	struct direct *d = c->impl;

	for (uint32_t i = 0; d->waiting > 0 && i < CN_MSG_REQUESTS; i++) {
		struct cn_request_reduction *x = &c->requests[i].reduction;

		if (x->waiting) {
			x->waiting = false;
			d->waiting--;
			if (c->requests[i].state == CN_REQUEST_PENDING &&
			    cn_request_combine(&c->requests[i], &x->piece)) {
				cn_coll_combined(&x->reducer);
			}
		}
	}
}

/* Allocates the scratch memory of a reduction. */
static int reduction_memory(struct collnet_request *r, struct cn_coll_args *a,
			    const struct cn_call *call, struct cn_err *err)
{
	struct cn_request_reduction *x = &r->reduction;
	const uint64_t scratch = (cn_call_scratch_bytes(call) + 127) / 64 * 64;

	x->owned = scratch <= SIZE_MAX ? aligned_alloc(64, (size_t)scratch) : NULL;
	if (x->owned == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to combine %llu bytes",
			       (unsigned long long)a->bytes);
	}
	a->scratch = x->owned;
	x->buffers = cn_combine_buffers_of(a, call);
	x->reducer.combine = direct_combine;
	a->reducer = &x->reducer;
	return COLLNET_OK;
}

static void free_reduction(struct collnet_request *r)
{
	struct direct *d = r->c->impl;

	free(r->reduction.owned);
	r->reduction.owned = NULL;
	d->waiting -= r->reduction.waiting;
	r->reduction.waiting = false;
}

/* ---- polling --------------------------------------------------------------------------- */

/* After a poll. Wakes a sleeping thread that would sleep for too long. */
static bool polled(struct collnet *c, int result, cn_time now)
{
	struct direct *d = c->impl;
	const bool work = worked(c, result, now);

	if (c->asleep && (cn_poller_blocked(d->runtime.poller) ||
			  cn_poller_deadline(d->runtime.poller) < d->wake_at)) {
		cn_wake(c);
	}
	return work;
}

static bool poll_once(struct collnet *c, cn_time now)
{
	struct direct *d = c->impl;

	return polled(c, cn_poller_poll(d->runtime.poller, now), now);
}

/* True if a wait polls instead of sleeping. After SPIN_ALONE it yields the processor between polls:
 * the kernel's threads, or the peer, may need it to send the frame. */
static bool spins(struct collnet *c, cn_time now)
{
	struct direct *d = c->impl;

	if (!cn_spin_wait(&d->spin, now) && !d->never_sleeps) {
		return false;
	}
	if (now - d->spin.since > SPIN_ALONE) {
		cn_yield(c);
	}
	return true;
}

static void direct_progress(struct collnet *c, cn_time until)
{
	struct direct *d = c->impl;
	struct cn_poller *poller = d->runtime.poller;
	struct pollfd p[3];
	const uint64_t ended = c->ended;
	cn_time now;

	if (until != 0) {
		cn_yield_lock(c);
	}
	combine_waiting(c);
	now = cn_now(); /* another thread may have polled meanwhile */
	if (polled(c, cn_poller_spin(poller, now), now) || c->ended != ended || until <= now) {
		cn_spin_over(&d->spin, now);
		while (until == 0 && cn_poller_has_more(poller)) {
			poll_once(c, cn_now()); /* all that was posted moves at once */
		}
		if (cn_poller_has_more(poller)) {
			cn_yield(c);
		}
		return;
	}
	d->wake_at = cn_min_time(until, cn_poller_deadline(poller));
	if (d->wake_at <= now || spins(c, now)) {
		return;
	}
	cn_runtime_descriptors(&d->runtime, p);
	cn_sleep(c, p, cn_poller_blocked(poller) ? 2 : 1, d->wake_at - now);
}

static void direct_timed_out(struct collnet *c, const char *what)
{
	struct cn_err why;

	cn_fail(&why, COLLNET_ETIMEOUT, "%s: the transport of node %s is stuck", what, c->node);
	broken(c, &why);
}

static void keep_alive(void *arg)
{
	struct collnet *c = arg;
	struct direct *d = c->impl;

	if (pthread_mutex_trylock(&c->lock) != 0) {
		return;
	}
	if (c->gone.code == COLLNET_OK && !c->polling) {
		d->alone = true;
		for (int i = 0; i < KEEP_ALIVE_POLLS && poll_once(c, cn_now()); i++) {
		}
		d->alone = false;
	}
	pthread_mutex_unlock(&c->lock);
}

static int direct_open(struct collnet *c, const struct collnet_options *o, struct cn_err *err)
{
	struct cn_runtime_config config = {
		.interface = o->interface,
		.link = o->link,
		.node = o->node,
		.topology = o->topology,
		.key = o->key,
		.cluster = o->cluster,
		.ethertype = o->ethertype,
		.encapsulation = CN_ENCAPSULATION_DEFAULT,
		.window = COLLNET_WINDOW_AUTO,
		.peer_timeout = o->peer_timeout_ms * CN_MS,
		.advice = cn_link_is_udp(o->link)
				  ? "check COLLNET_INTERFACE and COLLNET_PEERS on all hosts"
				  : "check COLLNET_INTERFACE on all hosts",
	};
	struct direct *d;
	char *peers;
	int rc;

	if (o->encapsulation != NULL &&
	    !cn_parse_encapsulation(o->encapsulation, &config.encapsulation)) {
		return cn_fail(err, COLLNET_EINVAL, "encapsulation '%.40s': expected one of %s",
			       o->encapsulation, CN_ENCAPSULATION_NAMES);
	}
	d = calloc(1, sizeof(*d));
	if (d == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for a context");
	}
	c->impl = d;
	d->never_sleeps = o->spin != 0;
	rc = cn_peers_from(cn_getenv, NULL, o->peers, &peers, err);
	if (rc == COLLNET_OK) {
		config.peers = peers;
		rc = cn_runtime_open(&config, &d->runtime, err);
	}
	free(peers);
	if (rc != COLLNET_OK) {
		return rc;
	}
	d->runtime.bye = CN_BYE_PROCESS;
	memcpy(c->node, d->runtime.node, sizeof(c->node));
	rc = cn_periodic_start(&d->thread, KEEP_ALIVE, keep_alive, c, err);
	if (rc == COLLNET_OK) {
		/* Lets peers discover this node now, not at its first wait. */
		cn_lock(c);
		poll_once(c, cn_now());
		pthread_mutex_unlock(&c->lock);
	}
	return rc;
}

static void direct_close(struct collnet *c)
{
	struct direct *d = c->impl;

	if (d == NULL) {
		return;
	}
	cn_periodic_stop(&d->thread);
	if (d->runtime.poller != NULL && c->gone.code == COLLNET_OK) {
		/* Other nodes may still need frames of operations that have ended here. */
		cn_runtime_drain(&d->runtime, cn_now() + CN_RUNTIME_DRAIN);
	}
	cn_runtime_close(&d->runtime, LINGER);
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		free_reduction(&c->requests[i]);
	}
	c->impl = NULL; /* which a child of another thread's fork() looks at */
	free(d);
}

static void direct_forked(struct collnet *c)
{
	struct direct *d = c->impl;

	if (d != NULL) {
		cn_runtime_forked(&d->runtime);
	}
}

static int direct_alloc(struct collnet *c, uint32_t index, uint64_t bytes, void **out,
			struct cn_err *err)
{
	void *p;

	(void)c;
	(void)index;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		return cn_fail(err, COLLNET_ENOMEM, "collnet_alloc of %llu bytes: %s",
			       (unsigned long long)bytes, cn_strerror(errno));
	}
	*out = p;
	return COLLNET_OK;
}

static void direct_free(struct collnet *c, uint32_t index, struct cn_allocation *piece)
{
	(void)c;
	(void)index;
	munmap(piece->p, piece->bytes);
}

static int direct_join(struct collnet_team *t, const struct cn_origin *from,
		       struct collnet_request *r, struct cn_err *err)
{
	r->done.fn = direct_done;
	if (from->split != NULL) {
		return cn_team_split(from->parent->member, cn_now(), from->split, r->deadline,
				     &r->done, &t->member, err);
	}
	if (from->parent != NULL) {
		return cn_team_derive(from->parent->member, cn_now(), t->job, t->rank, t->ranks,
				      from->members, r->deadline, &r->done, &t->member, err);
	}
	return cn_team_join(((struct direct *)t->c->impl)->runtime.engine, cn_now(),
			    t->secret != 0 ? t->secret : geteuid(), t->job, t->rank, t->ranks,
			    r->deadline, &r->done, &t->member, err);
}

static int direct_ranks(struct collnet_team *t, struct cn_err *err)
{
	t->rank = cn_member_rank(t->member);
	t->ranks = cn_member_ranks(t->member);
	t->nodes = cn_member_nodes(t->member);
	t->run = cn_member_run(t->member);
	for (uint32_t i = 0; i < t->ranks; i++) {
		const char *name = cn_member_node_name(t->member, i);

		if (name == NULL) {
			return cn_fail(err, COLLNET_ERANK, "rank %u of team %s is gone already", i,
				       t->job);
		}
		memcpy(t->names[i], name, strlen(name) + 1);
	}
	return COLLNET_OK;
}

static void direct_leave(struct collnet_team *t)
{
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		struct collnet_request *r = &t->c->requests[i];

		if (r->team == t && r->prepared != NULL) {
			cn_prepared_release(r->prepared);
			r->prepared = NULL;
		}
	}
	if (t->member != NULL) {
		cn_team_leave(t->member, cn_now(), false);
		t->member = NULL;
		poll_once(t->c, cn_now());
	}
}

/* Received blocks replace those not yet sent, or to be retransmitted: copies them. */
static int place_copy(struct collnet_request *r, const struct cn_call *call, struct cn_coll_args *a,
		      struct cn_err *err)
{
	const bool vector = cn_op_is_vector(call->op);
	const size_t blocks = call->ranks * sizeof(*r->blocks);

	r->copy.from = a->send;
	r->copy.bytes = vector ? cn_blocks_bytes(call->blocks.send, call->ranks)
			       : cn_call_send_bytes(call);
	r->copy.p = r->copy.bytes <= SIZE_MAX ? malloc((size_t)r->copy.bytes) : NULL;
	r->copy.blocks = vector ? malloc(blocks) : NULL;
	if (r->copy.p == NULL || (vector && r->copy.blocks == NULL)) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a copy of %llu bytes",
			       (unsigned long long)r->copy.bytes);
	}
	if (vector) { /* the request's own blocks, with those to be sent first */
		memcpy(r->copy.blocks, r->blocks, blocks);
		cn_blocks_follow(r->blocks, call->ranks);
	}
	a->send = r->copy.p;
	return COLLNET_OK;
}

static void copy_swapped(const struct collnet_request *r, uint32_t ranks)
{
	if (r->copy.blocks != NULL) {
		cn_blocks_pack(r->copy.blocks, ranks, r->copy.from, r->copy.p);
	} else if (r->copy.p != NULL) {
		memcpy(r->copy.p, r->copy.from, r->copy.bytes);
	}
}

static int direct_coll(struct collnet_team *t, struct collnet_request *r,
		       const struct cn_coll_args *args, struct cn_err *err)
{
	const struct cn_call call = cn_coll_shape(t, args);
	struct cn_coll_args a = *args;
	int rc = cn_call_swaps(&call, a.send, a.recv) ? place_copy(r, &call, &a, err) : COLLNET_OK;

	r->done.fn = direct_done;
	if (rc == COLLNET_OK && cn_op_reduces(a.op)) {
		rc = reduction_memory(r, &a, &call, err);
	}
	if (rc == COLLNET_OK && r->persistent) {
		rc = cn_coll_prepare(t->member, &a, &r->prepared, err);
	} else if (rc == COLLNET_OK) {
		copy_swapped(r, t->ranks);
		rc = cn_coll_post(t->member, cn_now(), &a, &r->done, err);
	}
	if (rc != COLLNET_OK) {
		free_reduction(r);
	} else if (r->persistent) {
		cn_request_done(r, COLLNET_OK, "");
	}
	return rc;
}

static int direct_start(struct collnet_request *r, struct cn_err *err)
{
	copy_swapped(r, r->team->ranks);
	return cn_prepared_start(r->prepared, cn_now(), r->deadline, &r->done, err);
}

static void direct_release(struct collnet_request *r)
{
	cn_prepared_release(r->prepared);
	r->prepared = NULL;
	free_reduction(r);
}

static int direct_endpoint_open(struct collnet_endpoint *e, uint16_t number, struct cn_err *err)
{
	struct direct *d = e->c->impl;
	uint64_t owner;
	int rc = cn_secret(NULL, &owner, err);

	if (rc == COLLNET_OK) {
		rc = cn_endpoint_open(d->runtime.engine, owner != 0 ? owner : geteuid(), geteuid(),
				      number, &e->ep, err);
	}
	if (rc == COLLNET_OK) {
		e->endpoint = cn_endpoint_number(e->ep);
	}
	return rc;
}

static void direct_endpoint_close(struct collnet_endpoint *e)
{
	cn_endpoint_close(e->ep, cn_now());
	poll_once(e->c, cn_now());
}

static int direct_send(struct collnet_endpoint *e, struct collnet_request *r,
		       const struct collnet_address *to, const void *data, uint64_t bytes,
		       struct cn_err *err)
{
	r->done.fn = direct_done;
	return cn_endpoint_send(e->ep, r->begun, to->node, to->endpoint, data, bytes, r->deadline,
				&r->done, err);
}

static int direct_recv(struct collnet_endpoint *e, struct collnet_request *r, void *data,
		       uint64_t capacity, struct cn_err *err)
{
	r->done.fn = direct_done;
	return cn_endpoint_recv(e->ep, r->begun, data, capacity, r->deadline, &r->received,
				&r->done, err);
}

/* The engine has written to the caller's memory itself. */
static void direct_collect(struct collnet_request *r)
{
	if (!r->persistent) {
		free_reduction(r);
	}
}

static int direct_stats(struct collnet *c, struct collnet_stats *s, bool reset, struct cn_err *err)
{
	struct direct *d = c->impl;

	(void)err;
	cn_runtime_stats(&d->runtime, s, reset);
	return COLLNET_OK;
}

static int direct_nodes(struct collnet *c, struct collnet_node_info *out, size_t *count,
			struct cn_err *err)
{
	struct direct *d = c->impl;

	(void)err;
	poll_once(c, cn_now());
	cn_engine_nodes(d->runtime.engine, cn_now(), 0, out, count);
	return COLLNET_OK;
}

static int direct_jobs(struct collnet *c, struct collnet_job_info *out, size_t *count,
		       struct cn_err *err)
{
	struct direct *d = c->impl;

	(void)err;
	cn_engine_jobs(d->runtime.engine, geteuid(), 0, out, count);
	return COLLNET_OK;
}

const struct cn_backend cn_backend_direct = {
	.open = direct_open,
	.close = direct_close,
	.forked = direct_forked,
	.progress = direct_progress,
	.timed_out = direct_timed_out,
	.alloc = direct_alloc,
	.free = direct_free,
	.join = direct_join,
	.ranks = direct_ranks,
	.leave = direct_leave,
	.coll = direct_coll,
	.start = direct_start,
	.release = direct_release,
	.endpoint_open = direct_endpoint_open,
	.endpoint_close = direct_endpoint_close,
	.send = direct_send,
	.recv = direct_recv,
	.collect = direct_collect,
	.stats = direct_stats,
	.nodes = direct_nodes,
	.jobs = direct_jobs,
};
