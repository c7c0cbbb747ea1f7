/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Persistent operations. A non-blocking function with the option `persistent` checks its arguments,
 * places the memory and has the backend prepare the operation, once; collnet_start() only copies
 * what must be copied and tells the backend the request's number.
 */
#include "collnet/collnet.h"

#include "client/backend.h"

static int check_inactive(struct collnet_request *r)
{
	return r->state == CN_REQUEST_INACTIVE
		       ? COLLNET_OK
		       : cn_fail(&r->c->err, COLLNET_EINVAL,
				 r->persistent ? "the request is outstanding: collnet_wait() first"
					       : "the request is not persistent");
}

static int start(struct collnet_request *r)
{
	struct collnet *c = r->c;
	int rc = check_inactive(r);

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (c->gone.code != COLLNET_OK) {
		c->err = c->gone;
		return c->gone.code;
	}
	if (r->team == NULL) {
		return cn_fail(&c->err, COLLNET_ERANK, "the team of the request was destroyed");
	}
	rc = cn_request_restart(r, &c->err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	rc = c->backend->start(r, &c->err);
	if (rc != COLLNET_OK) {
		return cn_request_refused(r);
	}
	c->backend->progress(c, 0);
	return COLLNET_OK;
}

int collnet_start(collnet_request_t *r)
{
	int rc = cn_request_enter(r);

	return rc != COLLNET_OK ? rc : cn_leave(r->c, start(r));
}

int collnet_request_free(collnet_request_t *r)
{
	int rc = cn_request_enter(r);

	if (rc != COLLNET_OK) {
		return rc;
	}
	rc = check_inactive(r);
	if (rc != COLLNET_OK) {
		return cn_leave(r->c, rc);
	}
	r->c->backend->release(r);
	r->persistent = false;
	cn_request_free_memory(r);
	r->team = NULL;
	r->state = CN_REQUEST_FREE;
	return cn_leave(r->c, COLLNET_OK);
}
