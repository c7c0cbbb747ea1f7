/* SPDX-License-Identifier: BSD-2-Clause */
/* Random operations: their sizes, their data, and the ways to wait for them. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "stress.h"

const char *const names[] = { "alltoall",  "allgather",	     "bcast",	"scatter",  "gather",
			      "alltoallv", "allgatherv",     "gatherv", "scatterv", "allreduce",
			      "reduce",	   "reduce_scatter", "scan",	"exscan",   "barrier" };

/* ---- one operation ---------------------------------------------------------------------- */

static uint32_t word(uint64_t tag, uint32_t from, uint32_t to, size_t k)
{
	return (uint32_t)mix(tag ^ (uint64_t)from << 40 ^ (uint64_t)to << 50 ^ k);
}

static unsigned char byte(uint64_t tag, uint32_t from, uint32_t to, size_t k)
{
	return (unsigned char)((tag ^ tag >> 13) + from * 31 + to * 17 + k * 7 + (k >> 8));
}

static size_t count(const struct slot *s, uint32_t from, uint32_t to)
{
	return word(s->tag, from, to, 99) % (s->n + 1);
}

void put(unsigned char *p, uint64_t tag, uint32_t from, uint32_t to, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		p[k] = byte(tag, from, to, k);
	}
}

void get(struct worker *w, const struct slot *s, const unsigned char *p, uint32_t from, uint32_t to,
	 size_t n)
{
	for (size_t k = 0; k < n; k++) {
		if (p[k] != byte(s->tag, from, to, k)) {
			fprintf(stderr, "%s: byte %zu of %zu from %u to %u\n", names[s->kind], k, n,
				from, to);
			fail(w, __LINE__, "wrong data", 1);
		}
	}
}

static void add(const void *left, const void *right, void *out, size_t n, void *context)
{
	const uint32_t *a = left, *b = right;
	uint32_t *o = out;

	(void)context;
	for (size_t i = 0; i < n; i++) {
		o[i] = a[i] + b[i];
	}
}

/* Before a start: contents of the memory. */
void fill(struct slot *s)
{
	const uint32_t me = collnet_team_rank(s->team), p = collnet_team_size(s->team);
	uint32_t *words = (void *)s->send;
	size_t at = 0;

	if (s->recv != s->send) {
		memset(s->recv, 0xEE,
		       (size_t)p * s->n * 4 < MEMORY ? (size_t)p * s->n * 4 : MEMORY);
	}
	switch (s->kind) {
	case ALLTOALL:
	case SCATTER:
		for (uint32_t i = 0; i < p; i++) {
			put(s->send + (size_t)i * s->n, s->tag, me, i, s->n);
		}
		break;
	case ALLGATHER:
	case GATHER:
	case BCAST:
		put(s->send, s->tag, me, 0, s->n);
		break;
	case ALLTOALLV:
	case SCATTERV:
		for (uint32_t i = 0; i < p; i++) {
			put(s->send + at, s->tag, me, i, count(s, me, i));
			at += count(s, me, i);
		}
		break;
	case ALLGATHERV:
	case GATHERV:
		put(s->send, s->tag, me, 0, count(s, me, 0));
		break;
	case REDUCE_SCATTER:
		for (uint32_t k = 0; k < s->n * p; k++) {
			words[k] = word(s->tag, me, 0, k);
		}
		break;
	case BARRIER:
		break;
	default:
		for (uint32_t k = 0; k < s->n; k++) {
			words[k] = word(s->tag, me, 0, k);
		}
	}
}

static void reduced(struct worker *w, const struct slot *s, uint32_t first, uint32_t last,
		    uint32_t offset)
{
	const uint32_t *words = (const void *)s->recv;

	for (uint32_t k = 0; k < s->n; k++) {
		uint32_t sum = 0;

		for (uint32_t i = first; i < last; i++) {
			sum += word(s->tag, i, 0, k + offset);
		}
		if (words[k] != sum) {
			fprintf(stderr, "%s: element %u\n", names[s->kind], k);
			fail(w, __LINE__, "wrong sum", 1);
		}
	}
}

void verify(struct worker *w, const struct slot *s)
{
	const uint32_t me = collnet_team_rank(s->team), p = collnet_team_size(s->team);
	size_t at = 0;

	for (uint32_t i = 0; i < p; i++) {
		switch (s->kind) {
		case ALLTOALL:
			get(w, s, s->recv + (size_t)i * s->n, i, me, s->n);
			break;
		case GATHER:
			if (me != s->root) {
				break;
			}
			/* fall through */
		case ALLGATHER:
			get(w, s, s->recv + (size_t)i * s->n, i, 0, s->n);
			break;
		case ALLTOALLV:
			get(w, s, s->recv + at, i, me, count(s, i, me));
			at += count(s, i, me);
			break;
		case GATHERV:
			if (me != s->root) {
				break;
			}
			/* fall through */
		case ALLGATHERV:
			get(w, s, s->recv + at, i, 0, count(s, i, 0));
			at += count(s, i, 0);
			break;
		default:
			break;
		}
	}
	switch (s->kind) {
	case BCAST:
		get(w, s, s->send, s->root, 0, s->n);
		break;
	case SCATTER:
		get(w, s, s->recv, s->root, me, s->n);
		break;
	case SCATTERV:
		get(w, s, s->recv, s->root, me, count(s, s->root, me));
		break;
	case ALLREDUCE:
		reduced(w, s, 0, p, 0);
		break;
	case REDUCE:
		if (me == s->root) {
			reduced(w, s, 0, p, 0);
		}
		break;
	case REDUCE_SCATTER:
		reduced(w, s, 0, p, me * s->n);
		break;
	case SCAN:
		reduced(w, s, 0, me + 1, 0);
		break;
	case EXSCAN:
		if (me > 0) {
			reduced(w, s, 0, me, 0);
		}
		break;
	default:
		break;
	}
}

/* What the operation is: the same on all ranks of its team. */
void shape(struct worker *w, struct slot *s, collnet_team_t *t, int large)
{
	const uint32_t p = collnet_team_size(t);

	s->team = t;
	s->kind = (enum kind)ALL(w, KINDS);
	s->n = ALL(w, 4) == 0 ? ALL(w, 4) : 1 + ALL(w, large ? MEMORY / 4 / p : BLOCK / 4);
	s->root = ALL(w, 4096) % p;
	s->tag = (uint64_t)ALL(w, UINT32_MAX) << 8;
	s->user = ALL(w, 3) == 0;
	/* and of this rank alone */
	s->send = OWN(w, 2) ? s->plain[0] : s->shared[0];
	s->recv = OWN(w, 2) ? s->plain[1] : s->shared[1];
	s->in_place = OWN(w, 4) == 0;
	if (s->in_place && (s->kind == ALLTOALL || s->kind == ALLREDUCE)) {
		s->send = s->recv;
	}
	if (s->in_place && s->kind == ALLGATHER) {
		s->send = s->recv + (size_t)collnet_team_rank(t) * s->n;
	}
	collnet_coll_options_init(&s->o);
	s->op = (struct collnet_user_op){ sizeof(s->op), 4, 1, add, NULL };
	s->o.user_op = s->user ? &s->op : NULL;
}

#define BOTH(name, ...)                                                                            \
	(blocking ? collnet_##name(__VA_ARGS__, o) : collnet_i##name(__VA_ARGS__, o, &s->request))

int call(struct slot *s, int blocking)
{
	const struct collnet_coll_options *o = &s->o;
	const uint32_t me = collnet_team_rank(s->team), p = collnet_team_size(s->team);
	const enum collnet_op op = s->user ? COLLNET_USER : COLLNET_SUM;
	collnet_team_t *t = s->team;
	const size_t n = s->n;

	for (uint32_t i = 0; i < p; i++) {
		s->counts[i] = s->kind == ALLTOALLV || s->kind == SCATTERV ? count(s, me, i)
									   : count(s, i, 0);
		s->counts2[i] = count(s, i, me);
	}
	s->request = NULL;
	switch (s->kind) {
	case ALLTOALL:
		return BOTH(alltoall, t, s->send, s->recv, n);
	case ALLGATHER:
		return BOTH(allgather, t, s->send, s->recv, n);
	case BCAST:
		return BOTH(bcast, t, s->send, n, s->root);
	case SCATTER:
		return BOTH(scatter, t, s->send, s->recv, n, s->root);
	case GATHER:
		return BOTH(gather, t, s->send, s->recv, n, s->root);
	case ALLTOALLV:
		return BOTH(alltoallv, t, s->send, s->counts, NULL, s->recv, s->counts2, NULL);
	case ALLGATHERV:
		return BOTH(allgatherv, t, s->send, s->counts[me], s->recv, s->counts, NULL);
	case GATHERV:
		return BOTH(gatherv, t, s->send, s->counts[me], s->recv, s->counts, NULL, s->root);
	case SCATTERV:
		return BOTH(scatterv, t, s->send, s->counts, NULL, s->recv, count(s, s->root, me),
			    s->root);
	case ALLREDUCE:
		return BOTH(allreduce, t, s->send, s->recv, n, COLLNET_UINT32, op);
	case REDUCE:
		return BOTH(reduce, t, s->send, s->recv, n, COLLNET_UINT32, op, s->root);
	case REDUCE_SCATTER:
		return BOTH(reduce_scatter, t, s->send, s->recv, n, COLLNET_UINT32, op);
	case SCAN:
		return BOTH(scan, t, s->send, s->recv, n, COLLNET_UINT32, op);
	case EXSCAN:
		return BOTH(exscan, t, s->send, s->recv, n, COLLNET_UINT32, op);
	default:
		return blocking ? collnet_barrier(t, o) : collnet_ibarrier(t, o, &s->request);
	}
}

int call_persistent(struct slot *s)
{
	int rc;

	s->o.persistent = 1;
	rc = call(s, 0);
	s->o.persistent = 0;
	return rc;
}

/* ---- waiting ---------------------------------------------------------------------------- */

/* All of the set, in one of the ways there are. */
void wait_set(struct worker *w, collnet_request_t **set, size_t n)
{
	const uint32_t way = OWN(w, 7);
	int statuses[SLOTS + KEPT + 4], rc;
	size_t index, pending;

	DOING(w, "waits for %zu, way %u", n, way);
	switch (way) {
	case 0:
		OK(w, collnet_waitall(n, set, OWN(w, 2) ? statuses : NULL, 0));
		break;
	case 1:
		for (;;) {
			OK(w, collnet_waitany(n, set, &index, 0));
			w->steps++;
			if (index == n) {
				break;
			}
		}
		break;
	case 2:
		while ((rc = collnet_testall(n, set, statuses)) == COLLNET_INPROGRESS) {
			if (OWN(w, 2)) {
				sched_yield();
			}
		}
		OK(w, rc);
		break;
	case 3:
		do {
			rc = collnet_testany(n, set, &index);
			CHECK(w, rc <= 0 || rc == COLLNET_INPROGRESS);
			if (rc < 0) {
				OK(w, rc);
			}
			w->steps += rc == COLLNET_OK;
		} while (rc == COLLNET_INPROGRESS || index < n);
		break;
	case 4:
		while ((rc = collnet_waitall(n, set, statuses, 1 + OWN(w, 3))) ==
		       COLLNET_INPROGRESS) {
		}
		OK(w, rc);
		break;
	case 5:
		for (size_t left = n; left > 0; left--) {
			size_t i = OWN(w, (uint32_t)left);
			collnet_request_t *r = set[i];

			set[i] = set[left - 1];
			set[left - 1] = NULL;
			DOING(w, "waits for one, %zu left", left);
			OK(w, r != NULL ? collnet_wait(r, 0) : COLLNET_OK);
		}
		break;
	default:
		pending = n;
		while (pending > 0) {
			pending = 0;
			for (size_t i = 0; i < n; i++) {
				if (set[i] == NULL) {
					continue;
				}
				rc = OWN(w, 2) ? collnet_test(set[i])
					       : collnet_wait(set[i], 1 + OWN(w, 2));
				if (rc == COLLNET_INPROGRESS) {
					pending++;
				} else {
					OK(w, rc);
					set[i] = NULL;
					w->steps++;
				}
			}
		}
	}
}

/* ---- wrong calls ------------------------------------------------------------------------ */

void wrong(struct worker *w)
{
	collnet_team_t *t = w->teams[0];
	struct collnet_coll_options o;
	const uint32_t none = collnet_team_size(t);
	unsigned char b[64] = { 0 };
	collnet_request_t *r = NULL;
	size_t index;

	DOING(w, "wrong calls");
	collnet_coll_options_init(&o);
	switch (OWN(w, 7)) {
	case 0:
		o.algorithm = "nothing";
		CHECK(w, collnet_ibarrier(t, &o, &r) == COLLNET_EINVAL && r == NULL);
		break;
	case 1:
		CHECK(w, collnet_ibcast(t, b, 8, none, NULL, &r) == COLLNET_OK || r == NULL);
		if (r != NULL) {
			CHECK(w, collnet_wait(r, 0) == COLLNET_EINVAL);
		}
		break;
	case 2:
		CHECK(w, collnet_allreduce(t, b + 1, b + 33, 1, COLLNET_UINT64, COLLNET_SUM,
					   NULL) == COLLNET_EINVAL);
		break;
	case 3:
		o.persistent = 1;
		CHECK(w, collnet_barrier(t, &o) == COLLNET_EINVAL);
		CHECK(w, collnet_ibcast(t, b, 8, none, &o, &r) == COLLNET_EINVAL && r == NULL);
		break;
	case 4:
		o.window = 70000;
		CHECK(w, collnet_barrier(t, &o) == COLLNET_EINVAL);
		break;
	case 5:
		CHECK(w, collnet_waitany(1, &r, &index, 0) == COLLNET_OK && index == 1);
		CHECK(w, collnet_wait(NULL, 0) == COLLNET_EINVAL);
		break;
	default:
		CHECK(w, collnet_alltoall(t, NULL, b, 1, NULL) == COLLNET_EINVAL);
	}
}
