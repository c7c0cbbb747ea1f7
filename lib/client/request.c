/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests: the table of a context, waiting, and collecting results.
 *
 * A request is FREE, PENDING from its posting until the backend reports its end, and DONE until
 * the caller collects it. The caller's memory is written only while he is in the library.
 */
#include "client/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long after an operation's own deadline a wait stops believing in the backend. */
#define BACKSTOP (2000 * CN_MS)

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

struct collnet_request *cn_request_get(struct collnet *c, struct collnet_team *t,
				       struct collnet_endpoint *e, uint32_t timeout_ms,
				       struct cn_err *err)
{
	struct collnet_request *r = NULL;

	if (t != NULL && t->outstanding >= COLLNET_OUTSTANDING_MAX) {
		cn_fail(err, COLLNET_ELIMIT,
			"%d requests of team %s are outstanding: collnet_wait() for one first",
			COLLNET_OUTSTANDING_MAX, t->job);
		return NULL;
	}
	if (e != NULL && c->messages >= CN_MSG_ENDPOINT_REQUESTS) {
		cn_fail(err, COLLNET_ELIMIT,
			"%u sends and receives of this context are outstanding: collnet_wait() for "
			"one "
			"first",
			CN_MSG_ENDPOINT_REQUESTS);
		return NULL;
	}
	for (uint32_t i = 0; i < CN_MSG_REQUESTS && r == NULL; i++) {
		if (c->requests[i].state == CN_REQUEST_FREE) {
			r = &c->requests[i];
		}
	}
	if (r == NULL) {
		cn_fail(err, COLLNET_ELIMIT,
			"all %u requests of this context are in use: collnet_wait() for those of "
			"teams "
			"that were destroyed, too",
			CN_MSG_REQUESTS);
		return NULL;
	}
	r->state = CN_REQUEST_PENDING;
	r->team = t;
	r->endpoint = e;
	r->message = e != NULL;
	r->deadline = cn_deadline(cn_now(), timeout_ms);
	r->from = NULL;
	r->bytes = NULL;
	r->staging.region = CN_MSG_NO_REGION;
	r->staging.back = NULL;
	r->staging.blocks = NULL;
	r->blocks = NULL;
	r->copy = NULL;
	memset(&r->reduction, 0, sizeof(r->reduction));
	if (t != NULL) {
		t->outstanding++;
	}
	if (r->message) {
		c->messages++;
	}
	return r;
}

void cn_request_free_memory(struct collnet_request *r)
{
	free(r->blocks);
	free(r->copy);
	r->blocks = NULL;
	r->copy = NULL;
}

void cn_request_put(struct collnet_request *r)
{
	if (r->team != NULL) {
		r->team->outstanding--;
	}
	if (r->message) {
		r->c->messages--;
	}
	cn_request_free_memory(r);
	r->state = CN_REQUEST_FREE;
}

void cn_request_done(struct collnet_request *r, int status, const char *text)
{
	if (r->state != CN_REQUEST_PENDING) {
		return;
	}
	r->c->ended++;
	r->status = status;
	if (status != COLLNET_OK) {
		snprintf(r->text, sizeof(r->text), "%s", text);
	}
	r->state = CN_REQUEST_DONE;
}

static int collect(struct collnet_request *r)
{
	struct collnet *c = r->c;
	int status = r->status;

	c->backend->collect(r);
	if (status == COLLNET_OK || status == COLLNET_ETRUNC) {
		if (r->from != NULL) {
			*r->from = r->received.from;
		}
		if (r->bytes != NULL) {
			*r->bytes = (size_t)r->received.bytes;
		}
	}
	if (status != COLLNET_OK) {
		cn_fail(&c->err, status, "%s",
			r->text[0] != '\0' ? r->text : collnet_strerror(status));
	}
	cn_request_put(r);
	return status;
}

int cn_request_wait(struct collnet_request *r, cn_time until)
{
	struct collnet *c = r->c;

	if (until == 0 && r->state == CN_REQUEST_PENDING) {
		c->backend->progress(c, 0);
	}
	while (r->state == CN_REQUEST_PENDING && until != 0) {
		c->backend->progress(c, until);
		if (r->state == CN_REQUEST_PENDING && cn_now() >= until) {
			break;
		}
	}
	return r->state == CN_REQUEST_PENDING ? COLLNET_INPROGRESS : collect(r);
}

static cn_time backstop(const struct collnet_request *r)
{
	return r->deadline == CN_NEVER ? CN_NEVER : r->deadline + BACKSTOP;
}

int cn_request_finish(struct collnet_request *r)
{
	int rc = cn_request_wait(r, backstop(r));

	if (rc == COLLNET_INPROGRESS) {
		r->c->backend->give_up(r->c, "an operation did not end");
		rc = collect(r);
	}
	return rc;
}

/* Of a broken context too: its requests have ended, and are collected. */
static int enter_request(struct collnet_request *r)
{
	if (r == NULL) {
		return cn_complain("the request is NULL");
	}
	pthread_mutex_lock(&r->c->lock);
	if (r->state == CN_REQUEST_FREE) {
		return cn_leave(r->c, cn_fail(&r->c->err, COLLNET_EINVAL,
					      "the request has been collected already"));
	}
	return COLLNET_OK;
}

int collnet_test(collnet_request_t *r)
{
	int rc = enter_request(r);

	return rc != COLLNET_OK ? rc : cn_leave(r->c, cn_request_wait(r, 0));
}

int collnet_wait(collnet_request_t *r, uint32_t timeout_ms)
{
	cn_time until;
	int rc = enter_request(r);

	if (rc != COLLNET_OK) {
		return rc;
	}
	until = cn_deadline(cn_now(), timeout_ms);
	if (timeout_ms == 0 || until >= backstop(r)) {
		return cn_leave(r->c, cn_request_finish(r));
	}
	return cn_leave(r->c, cn_request_wait(r, until));
}
