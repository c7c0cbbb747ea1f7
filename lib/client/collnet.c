/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts: opening and closing, errors, buffers, statistics, nodes and jobs.
 *
 * The message of a failed call stays with its context and thread; that of a failed collnet_open(),
 * and of a call without a context, with the thread.
 */
#include "collnet/collnet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/backend.h"
#include "client/env.h"
#include "sched/choice.h"

static _Thread_local struct cn_err open_err;

const char *collnet_strerror(int status)
{
	static const char *const texts[] = {
		[-COLLNET_OK] = "success",
		[-COLLNET_EINVAL] = "an argument is invalid",
		[-COLLNET_ENOMEM] = "there is not enough memory",
		[-COLLNET_ETIMEOUT] = "the deadline passed",
		[-COLLNET_EPEER] = "a node stopped answering or restarted",
		[-COLLNET_ERANK] = "a rank left the team or died",
		[-COLLNET_EMISMATCH] = "operations or sizes differ between ranks",
		[-COLLNET_EPERM] = "permission denied",
		[-COLLNET_EIFACE] = "there is no such interface, or it cannot be used",
		[-COLLNET_EDAEMON] = "the daemon is not running, or has terminated",
		[-COLLNET_ELIMIT] = "a documented limit has been reached",
		[-COLLNET_EPROTO] = "the versions differ, or the protocol was violated",
		[-COLLNET_ETRUNC] = "the message is longer than the buffer",
		[-COLLNET_ENOENT] = "there is no such node or endpoint",
		[-COLLNET_ESYSTEM] = "the operating system reported an error",
		[-COLLNET_ETOPO] = "the topology or configuration file has an error",
		[-COLLNET_EUNSUPPORTED] = "not supported in this mode or build",
	};

	if (status == COLLNET_INPROGRESS) {
		return "the operation has not completed";
	}
	if (status > 0 || status < COLLNET_EUNSUPPORTED) {
		return "unknown status";
	}
	return texts[-status];
}

const char *collnet_error(const collnet_t *c)
{
	/* Only shared state changes. */
	return c == NULL ? open_err.text : cn_thread_error((struct collnet *)(uintptr_t)c);
}

int cn_argument_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(open_err.text, sizeof(open_err.text), fmt, ap);
	va_end(ap);
	open_err.code = COLLNET_EINVAL;
	return COLLNET_EINVAL;
}

void cn_context_gone(struct collnet *c, const struct cn_err *why)
{
	if (c->gone.code == COLLNET_OK) {
		c->gone = *why;
	}
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		cn_request_done(&c->requests[i], c->gone.code, c->gone.text);
	}
}

int cn_options_copy(void *ours, size_t have, const void *theirs, size_t size, const char *name,
		    struct cn_err *err)
{
	const unsigned char *bytes = theirs;

	/* Nothing smaller was ever published, and nothing will be a hundred times as large. */
	if (size < 2 * sizeof(size_t) || size > 100 * have) {
		return cn_fail(err, COLLNET_EINVAL,
			       "the size of %s is %zu: expected its sizeof, which its init "
			       "function sets if it has one",
			       name, size);
	}
	for (size_t i = have; i < size; i++) {
		if (bytes[i] != 0) {
			return cn_fail(err, COLLNET_EINVAL,
				       "%s has options that this libcollnet %s does not know: "
				       "update it",
				       name, collnet_version());
		}
	}
	memcpy(ours, theirs, size < have ? size : have);
	memcpy(ours, &have, sizeof(have));
	return COLLNET_OK;
}

/* ---- opening and closing -------------------------------------------------------------- */

/* The options in force: the caller's over the environment's over the defaults. */
static int settle_options(const struct collnet_options *o, struct collnet_options *out,
			  struct cn_err *err)
{
	enum collnet_mode mode;
	int rc = cn_options_from(cn_getenv, NULL, out, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	mode = out->mode != COLLNET_MODE_AUTO ? out->mode : COLLNET_MODE_DAEMON;
	if (o != NULL) {
		rc = cn_options_copy(out, sizeof(*out), o, o->size, "struct collnet_options", err);
		if (rc != COLLNET_OK) {
			return rc;
		}
	}
	if (out->mode == COLLNET_MODE_AUTO) {
		out->mode = mode;
	}
	if (out->mode != COLLNET_MODE_DAEMON && out->mode != COLLNET_MODE_DIRECT) {
		return cn_fail(err, COLLNET_EINVAL,
			       "mode is %d: expected COLLNET_MODE_AUTO (%d), COLLNET_MODE_DAEMON "
			       "(%d) or COLLNET_MODE_DIRECT (%d)",
			       (int)out->mode, COLLNET_MODE_AUTO, COLLNET_MODE_DAEMON,
			       COLLNET_MODE_DIRECT);
	}
	if (!cn_msg_timeout_ok(out->timeout_ms)) {
		return cn_fail(err, COLLNET_EINVAL, "timeout_ms is %u: expected 1 to %u",
			       out->timeout_ms, CN_MSG_TIMEOUT_MAX);
	}
	if (out->peer_timeout_ms == 0) {
		out->peer_timeout_ms = CN_MSG_PEER_TIMEOUT;
	}
	if (out->peer_timeout_ms < CN_MSG_PEER_TIMEOUT_MIN ||
	    out->peer_timeout_ms > CN_MSG_PEER_TIMEOUT_MAX) {
		return cn_fail(err, COLLNET_EINVAL, "peer_timeout_ms is %u: expected %u to %u",
			       out->peer_timeout_ms, CN_MSG_PEER_TIMEOUT_MIN,
			       CN_MSG_PEER_TIMEOUT_MAX);
	}
	if (out->ethertype < 0x0600) {
		return cn_fail(err, COLLNET_EINVAL,
			       "ethertype is 0x%04x: at least 0x0600 is needed", out->ethertype);
	}
	return COLLNET_OK;
}

/* Checks the algorithms of all operations, although parsed for one. */
static int check_algorithms(const char *text, struct cn_err *err)
{
	struct cn_choice unused;
	struct cn_err why;

	if (cn_choice_override(text, CN_OP_ALLTOALL, &unused, &why) != COLLNET_OK) {
		return cn_fail(err, COLLNET_EINVAL, "COLLNET_ALGORITHM is %s", why.text);
	}
	return COLLNET_OK;
}

/* Frees the context after the backend is closed. */
static void dispose(struct collnet *c)
{
	cn_threads_fini(c);
	free(c->algorithms);
	free(c);
}

int collnet_open(const struct collnet_options *o, collnet_t **out)
{
	const char *algorithms = cn_getenv(NULL, "COLLNET_ALGORITHM");
	struct collnet_options options;
	struct collnet *c;
	int rc;

	if (out == NULL) {
		return cn_argument_error("collnet_open: out is NULL");
	}
	rc = settle_options(o, &options, &open_err);
	if (rc == COLLNET_OK && algorithms != NULL) {
		rc = check_algorithms(algorithms, &open_err);
	}
	if (rc != COLLNET_OK) {
		return rc;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		return cn_fail(&open_err, COLLNET_ENOMEM, "out of memory for a context");
	}
	rc = cn_threads_init(c, &open_err);
	if (rc == COLLNET_OK && algorithms != NULL) {
		c->algorithms = strdup(algorithms);
		rc = c->algorithms != NULL
			     ? COLLNET_OK
			     : cn_fail(&open_err, COLLNET_ENOMEM, "out of memory for a context");
	}
	if (rc != COLLNET_OK) {
		dispose(c);
		return rc;
	}
	c->timeout_ms = options.timeout_ms;
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		c->requests[i].c = c;
		c->requests[i].number = i;
	}
	c->backend = options.mode == COLLNET_MODE_DIRECT ? &cn_backend_direct : &cn_backend_daemon;
	rc = cn_fork_watch(c, &open_err);
	if (rc == COLLNET_OK) {
		rc = c->backend->open(c, &options, &open_err);
	}
	if (rc != COLLNET_OK) {
		c->backend->close(c);
		cn_fork_forget(c);
		dispose(c);
		return rc;
	}
	*out = c;
	return COLLNET_OK;
}

void collnet_close(collnet_t *c)
{
	if (c == NULL || cn_may_enter(c) != COLLNET_OK) {
		return;
	}
	for (uint32_t i = 0; i < CN_MSG_ENDPOINTS; i++) {
		if (c->endpoints[i] != NULL) {
			collnet_endpoint_close(c->endpoints[i]);
		}
	}
	for (uint32_t i = 0; i < CN_MSG_TEAMS; i++) {
		if (c->teams[i] != NULL) {
			collnet_team_destroy(c->teams[i]);
		}
	}
	cn_fork_await_exit(); /* it may be within the backend */
	/* Before the buffers: the backend may still read them until it has stopped. */
	c->backend->close(c);
	cn_fork_forget(c);
	for (uint32_t i = 0; i < CN_MSG_USER_REGIONS; i++) {
		if (c->user_buffers[i].p != NULL) {
			c->backend->free(c, i, &c->user_buffers[i]);
		}
	}
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		cn_request_free_memory(&c->requests[i]);
	}
	dispose(c);
}

const char *collnet_node_name(const collnet_t *c)
{
	return c == NULL ? NULL : c->node;
}

/* ---- buffers -------------------------------------------------------------------------- */

static int alloc_buffer(struct collnet *c, uint64_t bytes, void **out)
{
	uint32_t i = 0;
	int rc;

	if (bytes == 0 || bytes > CN_MSG_USER_BYTES - c->user_buffer_bytes) {
		return cn_fail(
			&c->err, bytes == 0 ? COLLNET_EINVAL : COLLNET_ELIMIT,
			"collnet_alloc of %llu bytes: 1 byte to 16 GiB per context, of which "
			"%llu are in "
			"use",
			(unsigned long long)bytes, (unsigned long long)c->user_buffer_bytes);
	}
	while (i < CN_MSG_USER_REGIONS && c->user_buffers[i].p != NULL) {
		i++;
	}
	if (i == CN_MSG_USER_REGIONS) {
		return cn_fail(&c->err, COLLNET_ELIMIT,
			       "collnet_alloc: all %u allocations of this context are in use",
			       CN_MSG_USER_REGIONS);
	}
	rc = c->backend->alloc(c, i, bytes, out, &c->err);
	if (rc == COLLNET_OK) {
		c->user_buffers[i].p = *out;
		c->user_buffers[i].bytes = bytes;
		c->user_buffer_bytes += bytes;
	}
	return rc;
}

void *collnet_alloc(collnet_t *c, size_t bytes)
{
	void *p = NULL;

	if (cn_enter(c) != COLLNET_OK) {
		return NULL;
	}
	return cn_leave(c, alloc_buffer(c, bytes, &p)) == COLLNET_OK ? p : NULL;
}

void collnet_free(collnet_t *c, void *p)
{
	if (c == NULL || p == NULL || cn_may_enter(c) != COLLNET_OK) {
		return;
	}
	cn_lock(c); /* also of a broken context */
	for (uint32_t i = 0; i < CN_MSG_USER_REGIONS; i++) {
		if (c->user_buffers[i].p == p) {
			c->user_buffer_bytes -= c->user_buffers[i].bytes;
			c->backend->free(c, i, &c->user_buffers[i]);
			c->user_buffers[i].p = NULL;
			break;
		}
	}
	pthread_mutex_unlock(&c->lock);
}

/* ---- what the node knows -------------------------------------------------------------- */

int collnet_get_stats(collnet_t *c, struct collnet_stats *out, int reset_peak)
{
	struct collnet_stats s;
	size_t size;
	int rc = cn_enter(c);

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (out == NULL || out->size < 2 * sizeof(size_t) || out->size > 100 * sizeof(s)) {
		return cn_leave(c, cn_fail(&c->err, COLLNET_EINVAL,
					   "collnet_get_stats: set out->size to sizeof(struct "
					   "collnet_stats)"));
	}
	memset(&s, 0, sizeof(s));
	rc = c->backend->stats(c, &s, reset_peak != 0, &c->err);
	if (rc == COLLNET_OK) {
		size = out->size;
		if (size > sizeof(s)) {
			memset((char *)out + sizeof(s), 0, size - sizeof(s));
		}
		memcpy(out, &s, size < sizeof(s) ? size : sizeof(s));
		out->size = size;
	}
	return cn_leave(c, rc);
}

int collnet_get_nodes(collnet_t *c, struct collnet_node_info *out, size_t *count)
{
	int rc = cn_enter(c);

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (count == NULL || (out == NULL && *count > 0)) {
		return cn_leave(c, cn_fail(&c->err, COLLNET_EINVAL, "collnet_get_nodes: %s is NULL",
					   count == NULL ? "count" : "out"));
	}
	return cn_leave(c, c->backend->nodes(c, out, count, &c->err));
}

int collnet_get_jobs(collnet_t *c, struct collnet_job_info *out, size_t *count)
{
	int rc = cn_enter(c);

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (count == NULL || (out == NULL && *count > 0)) {
		return cn_leave(c, cn_fail(&c->err, COLLNET_EINVAL, "collnet_get_jobs: %s is NULL",
					   count == NULL ? "count" : "out"));
	}
	return cn_leave(c, c->backend->jobs(c, out, count, &c->err));
}
