/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests: the table of a context. A request is PENDING until the backend reports its end, and
 * DONE until the caller collects it (wait.c); all states are at struct collnet_request (backend.h).
 * The caller's memory is written only during library calls.
 */
#include "client/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/bits.h"

int cn_settle_timeout(const struct collnet *c, uint32_t *timeout_ms, struct cn_err *err)
{
	if (*timeout_ms == 0) {
		*timeout_ms = c->timeout_ms;
	}
	return cn_msg_timeout_ok(*timeout_ms)
		       ? COLLNET_OK
		       : cn_fail(err, COLLNET_EINVAL, "timeout_ms is %u: at most %u is allowed",
				 *timeout_ms, CN_MSG_TIMEOUT_MAX);
}

/* Requests of a team that may be buffered. Nodes run ahead by up to seven operations
 * (coll/op.h). */
#define BUFFERED_MAX 8u

/* And of all teams: few of a context's, for a caller does not know that these are in use, and would
 * wait for one where it counts on a free one (mpi/glue/wait.c). */
#define BUFFERED_ALL_MAX 32u

/* As many are outstanding as are allowed. A request that divides the team does not count. */
static bool has_most(const struct collnet_request *r, const struct collnet_team *t)
{
	return r->team == t && t->outstanding >= COLLNET_OUTSTANDING_MAX;
}

/* The engine would refuse it: it keeps the last COLLNET_OUTSTANDING_MAX operations of a team, and
 * the one before these has not ended, even if it has for its caller. */
static bool is_too_far(const struct collnet_request *r, const struct collnet_team *t)
{
	return !r->preparing && cn_bit(&t->busy, t->operations % COLLNET_OUTSTANDING_MAX);
}

bool cn_request_waits_for_buffered(const struct collnet_request *r, const struct collnet_team *t)
{
	bool collected = false, oldest = false;

	if (r->state != CN_REQUEST_PENDING || (!has_most(r, t) && !is_too_far(r, t))) {
		return false;
	}
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		const struct collnet_request *o = &r->c->requests[i];

		if (o->buffered && o->counts == t) {
			collected |= o->state == CN_REQUEST_DETACHED;
			oldest |= t->operations - o->operation == COLLNET_OUTSTANDING_MAX;
		}
	}
	return (collected || !has_most(r, t)) && (oldest || !is_too_far(r, t));
}

/* Why one more may not be posted on the team. */
static int check_team(const struct collnet_request *r, struct collnet_team *t, struct cn_err *err)
{
	const bool waited = cn_request_waits_for_buffered(r, t);

	if (t->delayed.code != COLLNET_OK) {
		*err = t->delayed;
		t->delayed.code = COLLNET_OK;
		return err->code;
	}
	if (waited) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "an operation of team %s whose call has returned, %d or more before "
			       "this one, has not ended within the timeout, as it waits for other "
			       "ranks",
			       t->job, COLLNET_OUTSTANDING_MAX);
	}
	if (has_most(r, t)) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "%d requests of team %s are outstanding: collnet_wait() for one "
			       "first",
			       COLLNET_OUTSTANDING_MAX, t->job);
	}
	return !is_too_far(r, t) ? COLLNET_OK
				 : cn_fail(err, COLLNET_ELIMIT,
					   "the oldest operation of team %s that is outstanding is "
					   "%d operations back: collnet_wait() for it first",
					   t->job, COLLNET_OUTSTANDING_MAX);
}

int cn_request_admit(struct collnet_request *r, struct collnet_team *t, struct cn_err *err)
{
	int rc;

	if (has_most(r, t) || is_too_far(r, t)) {
		cn_wait_for_room(r, t);
	}
	if (r->state != CN_REQUEST_PENDING) { /* the context is gone, or the team */
		return cn_fail(err, r->status, "%s", r->text);
	}
	rc = check_team(r, t, err);
	if (rc == COLLNET_OK && r->team == t) {
		t->outstanding++;
		r->admitted = true;
	}
	if (rc == COLLNET_OK && !r->preparing) {
		r->counts = t;
		r->operation = t->operations++;
		cn_bit_set(&t->busy, r->operation % COLLNET_OUTSTANDING_MAX);
	}
	return rc;
}

/*
 * It has ended. An operation that fails while its team does not was refused, and the engine has not
 * counted it. A division of the team may have failed later.
 */
static void end_operation(struct collnet_request *r, int status)
{
	struct collnet_team *t = r->counts;

	if (t != NULL) {
		cn_bit_clear(&t->busy, r->operation % COLLNET_OUTSTANDING_MAX);
		if (status != COLLNET_OK && !r->refused && r->team == t &&
		    t->operations == r->operation + 1) {
			t->operations--;
		}
		r->counts = NULL;
	}
}

static struct collnet_request *find_free(struct collnet *c)
{
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		if (c->requests[i].state == CN_REQUEST_FREE && !c->requests[i].in_transit) {
			return &c->requests[i];
		}
	}
	return NULL;
}

void cn_request_begins(struct collnet_request *r)
{
	r->begun = cn_now();
	r->deadline = cn_deadline(r->begun, r->timeout_ms);
	r->late_since = 0;
	r->late_at = r->deadline;
	r->refused = false;
}

struct collnet_request *cn_request_get(struct collnet *c, struct collnet_team *t,
				       struct collnet_endpoint *e, uint32_t timeout_ms,
				       struct cn_err *err)
{
	struct collnet_request *r;

	if (e != NULL && c->messages >= CN_MSG_ENDPOINT_REQUESTS) {
		cn_fail(err, COLLNET_ELIMIT,
			"%u sends and receives of this context are outstanding: collnet_wait() for "
			"one "
			"first",
			CN_MSG_ENDPOINT_REQUESTS);
		return NULL;
	}
	r = find_free(c);
	if (r == NULL) {
		cn_wait_for_free(c);
		if (c->gone.code != COLLNET_OK) {
			*err = c->gone;
			return NULL;
		}
		r = find_free(c);
	}
	if (r == NULL) {
		cn_fail(err, COLLNET_ELIMIT,
			"all %u requests of this context are in use: collnet_wait() for those of "
			"teams that were destroyed, too, and collnet_request_free() persistent "
			"ones",
			CN_MSG_REQUESTS);
		return NULL;
	}
	r->state = CN_REQUEST_PENDING;
	r->team = t;
	r->endpoint = e;
	r->counts = NULL;
	r->message = e != NULL;
	r->persistent = r->preparing = r->buffered = r->admitted = false;
	r->prepared = NULL;
	r->timeout_ms = timeout_ms;
	cn_request_begins(r);
	r->from = NULL;
	r->bytes = NULL;
	r->staging.region = CN_MSG_NO_REGION;
	r->staging.in = NULL;
	r->staging.back = NULL;
	r->staging.blocks = NULL;
	r->blocks = NULL;
	memset(&r->copy, 0, sizeof(r->copy));
	memset(&r->reduction, 0, sizeof(r->reduction));
	if (r->message) {
		c->messages++;
	}
	return r;
}

void cn_request_free_memory(struct collnet_request *r)
{
	free(r->blocks);
	free(r->copy.p);
	free(r->copy.blocks);
	r->blocks = NULL;
	r->copy.p = NULL;
	r->copy.blocks = NULL;
}

void cn_request_put(struct collnet_request *r)
{
	if (r->buffered) {
		r->state = CN_REQUEST_DETACHED;
		return;
	}
	if (r->admitted && r->team != NULL) {
		r->team->outstanding--;
	}
	r->admitted = false;
	if (r->message) {
		r->c->messages--;
	}
	if (r->persistent) {
		r->state = CN_REQUEST_INACTIVE;
		return;
	}
	cn_request_free_memory(r);
	r->team = NULL;
	r->state = CN_REQUEST_FREE;
}

/* Numbers of ranks in an error mean something only with the team that they are of. The end of a
 * context is no team's error. */
static void name_team(const struct collnet_request *r, const char *text, char *out, size_t size)
{
	if (r->team != NULL && r->team->made_as[0] != '\0' && r->c->gone.code == COLLNET_OK) {
		snprintf(out, size, "%s: %s", r->team->made_as, text);
	} else {
		snprintf(out, size, "%s", text);
	}
}

int cn_request_refused(struct collnet_request *r)
{
	const struct cn_err why = r->c->err;

	name_team(r, why.text, r->c->err.text, sizeof(r->c->err.text));
	end_operation(r, why.code);
	cn_request_put(r);
	return why.code;
}

int cn_request_restart(struct collnet_request *r, struct cn_err *err)
{
	int rc;

	r->state = CN_REQUEST_PENDING;
	cn_request_begins(r);
	rc = cn_request_admit(r, r->team, err);
	if (rc != COLLNET_OK) {
		cn_request_put(r);
	}
	return rc;
}

/* For its caller. */
static void complete(struct collnet_request *r, int status, const char *text)
{
	r->c->ended++;
	r->status = status;
	if (status != COLLNET_OK) {
		name_team(r, text, r->text, sizeof(r->text));
	}
	r->state = CN_REQUEST_DONE;
	cn_wake(r->c);
	cn_wake_waiting(r->c);
}

void cn_request_buffered(struct collnet_request *r)
{
	if (!cn_request_is_posted(r)) {
		return; /* the context is gone since it was begun: nothing will end it again */
	}
	complete(r, COLLNET_OK, "");
	r->buffered = true;
	r->team->buffered++;
	r->c->buffered++;
}

bool cn_request_can_be_buffered(const struct collnet_team *t)
{
	return t->buffered < BUFFERED_MAX && t->c->buffered < BUFFERED_ALL_MAX;
}

bool cn_request_is_posted(const struct collnet_request *r)
{
	return r->state == CN_REQUEST_PENDING || r->buffered;
}

/* The backend has ended a buffered request. */
static void end_buffered(struct collnet_request *r, int status, const char *text)
{
	struct cn_err *delayed = &r->team->delayed;

	r->buffered = false;
	r->team->buffered--;
	r->c->buffered--;
	if (status != COLLNET_OK && delayed->code == COLLNET_OK) {
		delayed->code = status;
		name_team(r, text, delayed->text, sizeof(delayed->text));
	}
	if (r->state == CN_REQUEST_DETACHED) {
		r->c->backend->collect(r);
		cn_request_put(r);
	}
	r->c->ended++;
	cn_wake(r->c);
	cn_wake_waiting(r->c);
}

void cn_request_done(struct collnet_request *r, int status, const char *text)
{
	if (!cn_request_is_posted(r)) {
		return;
	}
	end_operation(r, status);
	if (r->buffered) {
		end_buffered(r, status, text);
	} else {
		complete(r, status, text);
	}
}
