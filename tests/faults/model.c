/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a rank calls. Operation n of a job is a function of the job's seed and n alone: its kind,
 * size and root; and byte i of what rank s has for rank d follows from the seed, n, s, d and i. So
 * every rank knows what it must receive.
 *
 * Every fourth operation is a barrier, so that no rank is far ahead when all are to stop.
 */
#include "cluster.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collnet/collnet.h"

#define BYTES_MAX   20000u
#define MESSAGE_MAX 3000u

enum op { ALLTOALL, ALLGATHER, BCAST, SCATTER, GATHER, ENDPOINTS, OPS, BARRIER = OPS };

struct rank {
	const struct cluster *c;
	const struct job *j;
	struct slot *s;
	uint32_t rank;
	collnet_t *ctx;
	collnet_team_t *team;
	collnet_endpoint_t *end;
	unsigned char *send, *recv;
	uint64_t key; /* of the present operation */
};

static void end(struct rank *r, int status, const char *text)
{
	r->s->at_us = now_us();
	r->s->status = status;
	snprintf(r->s->text, sizeof(r->s->text), "%s", status != 0 ? text : "");
	atomic_store(&r->s->ended, true);
}

/* ---- bytes ------------------------------------------------------------------------------ */

static void fill(const struct rank *r, uint32_t from, uint32_t to, unsigned char *p, size_t n)
{
	const uint64_t key = mix(r->key, (uint64_t)from << 32 | to);

	for (size_t i = 0; i < n; i++) {
		p[i] = (unsigned char)(mix(key, i / 8) >> 8 * (i % 8));
	}
}

static void check(struct rank *r, uint32_t from, uint32_t to, const unsigned char *p, size_t n)
{
	const uint64_t key = mix(r->key, (uint64_t)from << 32 | to);

	for (size_t i = 0; i < n; i++) {
		r->s->wrong += p[i] != (unsigned char)(mix(key, i / 8) >> 8 * (i % 8));
	}
}

/* ---- operations ------------------------------------------------------------------------- */

static uint16_t endpoint_of(const struct rank *r, uint32_t rank)
{
	return (uint16_t)(1000 + (r->j->number * 512 + rank) % 60000);
}

/* A message to the next rank, one from the rank before. */
static int ring(struct rank *r, size_t bytes, const struct collnet_coll_options *o)
{
	uint32_t next = (r->rank + 1) % r->j->ranks;
	uint32_t last = (r->rank + r->j->ranks - 1) % r->j->ranks;
	struct collnet_address to = { .endpoint = endpoint_of(r, next) }, from;
	collnet_request_t *q = NULL;
	size_t got = BYTES_MAX;
	int rc;

	snprintf(to.node, sizeof(to.node), "%s", collnet_team_node(r->team, next));
	fill(r, r->rank, next, r->send, bytes);
	rc = collnet_isend(r->end, &to, r->send, bytes, o->timeout_ms / 2, &q);
	if (rc >= 0) {
		rc = collnet_recv(r->end, &from, r->recv, &got, o->timeout_ms / 2);
		if (rc == COLLNET_OK) {
			check(r, last, r->rank, r->recv, bytes);
			r->s->wrong += got != bytes;
		}
		int sent = collnet_wait(q, 0);
		rc = rc == COLLNET_OK ? sent : rc;
	}
	if (rc == COLLNET_OK) {
		return rc;
	}
	/* The error of the team, not of a missing message, names the rank that is gone. */
	snprintf((char *)r->recv, TEXT_MAX, "endpoints: %s", collnet_error(r->ctx));
	rc = collnet_barrier(r->team, o);
	if (rc != COLLNET_OK) {
		return rc;
	}
	end(r, COLLNET_ETIMEOUT, (char *)r->recv);
	return COLLNET_ETIMEOUT;
}

static void fill_all(struct rank *r, size_t n, bool own)
{
	for (uint32_t i = 0; i < r->j->ranks; i++) {
		fill(r, r->rank, own ? i : 0, r->send + i * n, n);
	}
}

static void check_all(struct rank *r, size_t n, bool own)
{
	for (uint32_t i = 0; i < r->j->ranks; i++) {
		check(r, i, own ? r->rank : 0, r->recv + i * n, n);
	}
}

static int call(struct rank *r, enum op op, size_t n, uint32_t root,
		const struct collnet_coll_options *o)
{
	const bool is_root = r->rank == root;
	int rc;

	memset(r->recv, 0xee, r->j->ranks * n + 1);
	switch (op) {
	case ALLTOALL:
		fill_all(r, n, true);
		rc = collnet_alltoall(r->team, r->send, r->recv, n, o);
		if (rc == COLLNET_OK) {
			check_all(r, n, true);
		}
		return rc;
	case ALLGATHER:
		fill(r, r->rank, 0, r->send, n);
		rc = collnet_allgather(r->team, r->send, r->recv, n, o);
		if (rc == COLLNET_OK) {
			check_all(r, n, false);
		}
		return rc;
	case BCAST:
		if (is_root) {
			fill(r, root, 0, r->recv, n);
		}
		rc = collnet_bcast(r->team, r->recv, n, root, o);
		if (rc == COLLNET_OK) {
			check(r, root, 0, r->recv, n);
		}
		return rc;
	case SCATTER:
		if (is_root) {
			fill_all(r, n, true);
		}
		rc = collnet_scatter(r->team, is_root ? r->send : NULL, r->recv, n, root, o);
		if (rc == COLLNET_OK) {
			check(r, root, r->rank, r->recv, n);
		}
		return rc;
	case GATHER:
		fill(r, r->rank, 0, r->send, n);
		rc = collnet_gather(r->team, r->send, is_root ? r->recv : NULL, n, root, o);
		if (rc == COLLNET_OK && is_root) {
			check_all(r, n, false);
		}
		return rc;
	case ENDPOINTS:
		return ring(r, n < MESSAGE_MAX ? n : MESSAGE_MAX, o);
	default:
		return collnet_barrier(r->team, o);
	}
}

static int operation(struct rank *r, uint32_t n, const struct collnet_coll_options *o)
{
	static const uint32_t sizes[] = { 0, 1, 100, 1476, 5000, BYTES_MAX };
	uint64_t h = mix(mix(r->j->seed, r->j->number), n);

	r->key = h;
	if (!r->j->mixed) {
		return call(r, ALLTOALL, r->j->bytes, 0, o);
	}
	return call(r, n % 4 == 3 ? BARRIER : (enum op)(h % OPS), sizes[(h >> 8) % 6],
		    (uint32_t)((h >> 16) % r->j->ranks), o);
}

static int join(struct rank *r)
{
	struct collnet_options o;
	struct collnet_team_options t;
	char socket[256], job[64];
	int rc;

	collnet_options_init(&o);
	snprintf(socket, sizeof(socket), "%s/%s.sock", r->c->dir,
		 r->c->hosts[host_of(r->c, r->rank)].name);
	o.mode = COLLNET_MODE_DAEMON;
	o.socket = socket;
	rc = collnet_open(&o, &r->ctx);
	if (rc != COLLNET_OK) {
		end(r, rc, collnet_error(NULL));
		return rc;
	}
	collnet_team_options_init(&t);
	snprintf(job, sizeof(job), "faults-%u", r->j->number);
	t.job = job;
	t.rank = r->rank;
	t.ranks = r->j->ranks;
	t.timeout_ms = r->j->form_ms;
	r->send = collnet_alloc(r->ctx, (size_t)r->j->ranks * BYTES_MAX + TEXT_MAX);
	r->recv = collnet_alloc(r->ctx, (size_t)r->j->ranks * BYTES_MAX + TEXT_MAX);
	rc = r->send == NULL || r->recv == NULL ? COLLNET_ENOMEM : COLLNET_OK;
	rc = rc == COLLNET_OK ? collnet_endpoint_open(r->ctx, endpoint_of(r, r->rank), &r->end)
			      : rc;
	rc = rc == COLLNET_OK ? collnet_team_create(r->ctx, &t, &r->team) : rc;
	if (rc != COLLNET_OK) {
		end(r, rc, collnet_error(r->ctx));
	}
	return rc;
}

void rank_run(const struct cluster *c, uint32_t rank)
{
	struct rank r = {
		.c = c, .j = &c->shared->job, .s = &c->shared->slots[rank], .rank = rank
	};
	struct collnet_coll_options o;
	int rc = join(&r);

	collnet_coll_options_init(&o);
	o.timeout_ms = r.j->op_ms;
	for (uint32_t n = 0; rc == COLLNET_OK && n < atomic_load(&c->shared->job.stop); n++) {
		rc = operation(&r, n, &o);
		if (rc == COLLNET_OK) {
			atomic_fetch_add(&r.s->ops, 1);
		}
	}
	if (!atomic_load(&r.s->ended)) {
		end(&r, rc, rc != COLLNET_OK ? collnet_error(r.ctx) : "");
	}
	/* A rank leaves its team when it has ended; a killed one does not. */
	collnet_close(r.ctx);
}
