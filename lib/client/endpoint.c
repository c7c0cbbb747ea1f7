/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints: arguments checked, then to the backend.
 */
#include "collnet/collnet.h"

#include <stdlib.h>
#include <string.h>

#include "client/backend.h"

static int open_endpoint(struct collnet *c, uint16_t number, struct collnet_endpoint **out)
{
	struct collnet_endpoint *e;
	uint32_t i = 0;
	int rc;

	while (i < CN_MSG_ENDPOINTS && c->endpoints[i] != NULL) {
		i++;
	}
	if (i == CN_MSG_ENDPOINTS) {
		return cn_fail(&c->err, COLLNET_ELIMIT, "this context has %u endpoints already",
			       CN_MSG_ENDPOINTS);
	}
	e = calloc(1, sizeof(*e));
	if (e == NULL) {
		return cn_fail(&c->err, COLLNET_ENOMEM, "out of memory for an endpoint");
	}
	e->c = c;
	e->number = i;
	rc = c->backend->endpoint_open(e, number, &c->err);
	if (rc != COLLNET_OK) {
		free(e);
		return rc;
	}
	c->endpoints[i] = e;
	*out = e;
	return COLLNET_OK;
}

int collnet_endpoint_open(collnet_t *c, uint16_t number, collnet_endpoint_t **out)
{
	int rc = cn_enter(c);

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (out == NULL) {
		return cn_leave(c, cn_fail(&c->err, COLLNET_EINVAL,
					   "collnet_endpoint_open: out is NULL"));
	}
	return cn_leave(c, open_endpoint(c, number, out));
}

void collnet_endpoint_close(collnet_endpoint_t *e)
{
	struct collnet *c;

	if (e == NULL || cn_may_enter(e->c) != COLLNET_OK) {
		return;
	}
	c = e->c;
	cn_lock(c); /* also of a broken context */
	c->backend->endpoint_close(e);
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		if (c->requests[i].endpoint == e) {
			cn_request_done(&c->requests[i], COLLNET_EINVAL, "the endpoint was closed");
			c->requests[i].endpoint = NULL;
		}
	}
	c->endpoints[e->number] = NULL;
	free(e);
	pthread_mutex_unlock(&c->lock);
}

uint16_t collnet_endpoint_number(const collnet_endpoint_t *e)
{
	return e == NULL ? 0 : e->endpoint;
}

/* ---- messages ------------------------------------------------------------------------- */

static int check_message(struct collnet *c, const void *data, size_t bytes, uint32_t *timeout_ms)
{
	if (data == NULL && bytes > 0) {
		return cn_fail(&c->err, COLLNET_EINVAL, "data is NULL");
	}
	if (bytes > COLLNET_MESSAGE_MAX) {
		return cn_fail(&c->err, COLLNET_EINVAL, "a message of %zu bytes is more than %zu",
			       bytes, COLLNET_MESSAGE_MAX);
	}
	return cn_settle_timeout(c, timeout_ms, &c->err);
}

static int post_send(struct collnet_endpoint *e, const struct collnet_address *to, const void *data,
		     size_t bytes, uint32_t timeout_ms, struct collnet_request **out)
{
	struct collnet *c = e->c;
	struct collnet_request *r;
	int rc;

	if (to == NULL || to->endpoint == 0 || memchr(to->node, '\0', sizeof(to->node)) == NULL ||
	    !cn_valid_name(to->node)) {
		return cn_fail(
			&c->err, COLLNET_EINVAL,
			"invalid address: expected the name of a node and an endpoint from 1 to 65535");
	}
	rc = check_message(c, data, bytes, &timeout_ms);
	if (rc != COLLNET_OK) {
		return rc;
	}
	r = cn_request_get(c, NULL, e, timeout_ms, &c->err);
	if (r == NULL) {
		return c->err.code;
	}
	rc = c->backend->send(e, r, to, data, bytes, &c->err);
	if (rc != COLLNET_OK) {
		cn_request_put(r);
		return rc;
	}
	*out = r;
	return COLLNET_OK;
}

static int post_recv(struct collnet_endpoint *e, struct collnet_address *from, void *data,
		     size_t *bytes, uint32_t timeout_ms, struct collnet_request **out)
{
	struct collnet *c = e->c;
	struct collnet_request *r;
	size_t capacity;
	int rc;

	if (bytes == NULL) {
		return cn_fail(&c->err, COLLNET_EINVAL, "bytes is NULL");
	}
	capacity = *bytes < COLLNET_MESSAGE_MAX ? *bytes : COLLNET_MESSAGE_MAX;
	rc = check_message(c, data, capacity, &timeout_ms);
	if (rc != COLLNET_OK) {
		return rc;
	}
	r = cn_request_get(c, NULL, e, timeout_ms, &c->err);
	if (r == NULL) {
		return c->err.code;
	}
	r->from = from;
	r->bytes = bytes;
	rc = c->backend->recv(e, r, data, capacity, &c->err);
	if (rc != COLLNET_OK) {
		cn_request_put(r);
		return rc;
	}
	*out = r;
	return COLLNET_OK;
}

static int enter_endpoint(struct collnet_endpoint *e)
{
	return e == NULL ? cn_argument_error("the endpoint is NULL") : cn_enter(e->c);
}

int collnet_send(collnet_endpoint_t *e, const struct collnet_address *to, const void *data,
		 size_t bytes, uint32_t timeout_ms)
{
	struct collnet_request *r;
	int rc = enter_endpoint(e);

	if (rc != COLLNET_OK) {
		return rc;
	}
	rc = post_send(e, to, data, bytes, timeout_ms, &r);
	return cn_leave(e->c, rc != COLLNET_OK ? rc : cn_request_finish(r));
}

int collnet_recv(collnet_endpoint_t *e, struct collnet_address *from, void *data, size_t *bytes,
		 uint32_t timeout_ms)
{
	struct collnet_request *r;
	int rc = enter_endpoint(e);

	if (rc != COLLNET_OK) {
		return rc;
	}
	rc = post_recv(e, from, data, bytes, timeout_ms, &r);
	return cn_leave(e->c, rc != COLLNET_OK ? rc : cn_request_finish(r));
}

int collnet_isend(collnet_endpoint_t *e, const struct collnet_address *to, const void *data,
		  size_t bytes, uint32_t timeout_ms, collnet_request_t **out)
{
	int rc = enter_endpoint(e);

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (out == NULL) {
		return cn_leave(e->c, cn_fail(&e->c->err, COLLNET_EINVAL, "out is NULL"));
	}
	rc = post_send(e, to, data, bytes, timeout_ms, out);
	if (rc == COLLNET_OK) {
		e->c->backend->progress(e->c, 0);
	}
	return cn_leave(e->c, rc);
}

int collnet_irecv(collnet_endpoint_t *e, struct collnet_address *from, void *data, size_t *bytes,
		  uint32_t timeout_ms, collnet_request_t **out)
{
	int rc = enter_endpoint(e);

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (out == NULL) {
		return cn_leave(e->c, cn_fail(&e->c->err, COLLNET_EINVAL, "out is NULL"));
	}
	rc = post_recv(e, from, data, bytes, timeout_ms, out);
	if (rc == COLLNET_OK) {
		e->c->backend->progress(e->c, 0);
	}
	return cn_leave(e->c, rc);
}
