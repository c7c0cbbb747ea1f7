/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon backend: requests become messages to collnetd, in a ring or on its socket; memory
 * becomes references to shared regions. Memory that the daemon does not map is staged: copied into
 * a region before the request is sent, and back when its result is collected.
 */
#include "client/env.h"
#include "client/daemon.h"
#include "client/staging.h"
#include "util/bits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limit of the input of a buffered operation. */
#define BUFFERED_BYTES 1024u
/* Limit of JOINs on the socket that have ended here, and their LEAVEs. */
#define LEAVES_MAX 32u

static int daemon_open(struct collnet *c, const struct collnet_options *o, struct cn_err *err)
{
	struct cn_daemon_side *d = calloc(1, sizeof(*d));

	if (d == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a context");
	}
	d->fd = -1;
	c->impl = d;
	return cn_socket_open(c, o->socket != NULL ? o->socket : CN_MSG_SOCKET, err);
}

static void daemon_close(struct collnet *c)
{
	struct cn_daemon_side *d = c->impl;

	if (d == NULL) {
		return;
	}
	for (uint32_t i = 0; i <= CN_MSG_RINGS; i++) {
		cn_region_destroy(c, i);
		if (i < CN_MSG_USER_REGIONS) {
			c->user_buffers[i].p = NULL;
		}
	}
	cn_descriptor_close(d->fd, &d->fd_id);
	d->fd = -1;
	c->impl = NULL; /* which a child of another thread's fork() looks at */
	free(d);
}

static void daemon_forked(struct collnet *c)
{
	struct cn_daemon_side *d = c->impl;

	if (d != NULL) {
		cn_descriptor_close(d->fd, &d->fd_id);
		d->fd = -1;
	}
}

static void daemon_timed_out(struct collnet *c, const char *what)
{
	char text[120];

	snprintf(text, sizeof(text), "does not respond: %s", what);
	cn_socket_gone(c, COLLNET_EDAEMON, text);
}

static int daemon_alloc(struct collnet *c, uint32_t index, uint64_t bytes, void **out,
			struct cn_err *err)
{
	struct cn_daemon_side *d = c->impl;
	int rc = cn_region_create(c, index, bytes, err);

	if (rc == COLLNET_OK) {
		*out = d->regions[index].p;
	}
	return rc;
}

static void daemon_free(struct collnet *c, uint32_t index, struct cn_allocation *piece)
{
	(void)piece;
	cn_region_destroy(c, index);
}

/* ---- teams ---------------------------------------------------------------------------- */

/* By the daemon's clock; 0: it has another one. */
static uint64_t called(const struct collnet_request *r)
{
	const struct cn_daemon_side *d = r->c->impl;

	return d->same_clock ? r->begun : 0;
}

/* True if the socket has room for another JOIN. */
static bool has_room(struct collnet *c)
{
	const struct cn_daemon_side *d = c->impl;

	if (d->unread >= LEAVES_MAX || d->late_joins >= LEAVES_MAX) {
		cn_rings_completions(c); /* some may have ended */
		cn_socket_drain_unread(c);
	}
	return c->gone.code != COLLNET_OK || /* reported by cn_socket_send() */
	       (d->unread < LEAVES_MAX && d->late_joins < LEAVES_MAX);
}

static int daemon_join(struct collnet_team *t, const struct cn_origin *from,
		       struct collnet_request *r, struct cn_err *err)
{
	struct cn_msg_join m = {
		.head = { .type = CN_MSG_JOIN, .tag = r->number },
		.team = t->number,
		.rank = t->rank,
		.ranks = t->ranks,
		.timeout_ms = r->timeout_ms,
		.secret = t->secret,
		.called = called(r),
	};
	struct cn_daemon_side *d = t->c->impl;
	int rc = cn_rings_open(t->c, err);

	if (from->parent != NULL) {
		m.derived = 1;
		m.parent = from->parent->number;
	}
	if (from->members != NULL) {
		memcpy(m.members, from->members,
		       CN_BIT_WORDS(from->parent->ranks) * sizeof(*m.members));
	}
	if (from->split != NULL) {
		m.making = from->split->making;
		m.color = from->split->color;
		m.key = from->split->key;
		m.refused = from->parent->refused;
	}
	memcpy(m.job, t->job, sizeof(m.job));
	r->what = from->split != NULL ? "the division" : NULL;
	if (rc == COLLNET_OK && !has_room(t->c)) {
		rc = cn_fail(err, COLLNET_ELIMIT,
			     "%u teams of this context have passed their deadlines and wait to be "
			     "taken by collnetd",
			     LEAVES_MAX);
	}
	if (rc == COLLNET_OK) {
		rc = cn_socket_send(t->c, &m, sizeof(m), err);
	}
	r->place = d->sent;
	r->out_of_band = true;
	return rc;
}

static int daemon_ranks(struct collnet_team *t, struct cn_err *err)
{
	struct cn_daemon_side *d = t->c->impl;
	const struct cn_msg_rank_names *response = &d->in.rank_names;
	struct cn_msg_ranks m = { .head = { .type = CN_MSG_RANKS }, .team = t->number };
	int rc;

	while (t->named < t->ranks) {
		m.first = t->named;
		rc = cn_socket_request(t->c, &m, sizeof(m), CN_MSG_RANK_NAMES, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
		if (response->count == 0 || response->ranks != t->ranks ||
		    response->count > t->ranks - t->named) {
			cn_socket_gone(t->c, COLLNET_EPROTO, "does not know the ranks of a team");
			return cn_fail(err, t->c->gone.code, "%s", t->c->gone.text);
		}
		memcpy(t->names[t->named], response->names, response->count * sizeof(t->names[0]));
		t->named += response->count;
	}
	return COLLNET_OK;
}

static void daemon_leave(struct collnet_team *t)
{
	struct cn_msg_leave m = { .head = { .type = CN_MSG_LEAVE }, .team = t->number };
	struct cn_daemon_side *d = t->c->impl;

	if (t->abandoned) { /* LEAVE is on the socket after the JOIN */
		m.head.tag = ++d->tag;
		d->unread += cn_socket_send(t->c, &m, sizeof(m), NULL) == COLLNET_OK;
	} else if (t->c->gone.code == COLLNET_OK) {
		cn_socket_request(t->c, &m, sizeof(m), CN_MSG_REPLY, NULL);
	}
}

/* ---- requests ------------------------------------------------------------------------- */

static void daemon_collect(struct collnet_request *r)
{
	struct cn_daemon_side *d = r->c->impl;
	uint64_t len = r->staging.len;

	if (r->preparing || r->buffered) {
		return;
	}
	if (r->refused && r->team != NULL) { /* its caller knows now, and may repeat it */
		r->team->refused++;
		r->team->operations--;
	}
	if (r->staging.blocks != NULL) {
		if (r->status == COLLNET_OK) {
			cn_blocks_unpack(r->staging.blocks, r->staging.nblocks,
					 (char *)d->regions[r->staging.region].p +
						 r->staging.offset,
					 r->staging.back);
		}
	} else if (r->staging.back != NULL &&
		   (r->status == COLLNET_OK || r->status == COLLNET_ETRUNC)) {
		if (r->message && r->received.bytes < len) {
			len = r->received.bytes;
		}
		memcpy(r->staging.back, (char *)d->regions[r->staging.region].p + r->staging.offset,
		       len);
	}
	if (!r->persistent) {
		cn_staging_release(r);
	}
}

/* Copies the input to a region that the daemon maps. */
static void copy_in(struct collnet_request *r)
{
	if (r->staging.in != NULL) {
		cn_staging_copy_in(r);
		cn_request_begins(r); /* restart the timeout after the copy */
	}
}

/* Sends the message of a request whose memory is placed; *when is its member `called`. */
static int post(struct collnet_request *r, const void *m, size_t len, uint64_t *when,
		struct cn_err *err)
{
	int rc;

	if (!r->preparing) {
		copy_in(r);
	}
	*when = called(r);
	rc = cn_rings_post(r, m, len, err);
	if (rc != COLLNET_OK) {
		cn_staging_release(r);
	}
	return rc;
}

static struct cn_memory memory_at(const struct cn_daemon_side *d, const struct cn_msg_buffer_ref *p,
				  uint64_t bytes)
{
	if (p->region == CN_MSG_NO_REGION) {
		return (struct cn_memory){ NULL, 0 };
	}
	return (struct cn_memory){ (uint8_t *)d->regions[p->region].p + p->offset, bytes };
}

/*
 * True if the operation completes for its caller once its input is copied: it writes nothing here,
 * and the daemon itself combines on behalf of this rank. Not for an exchange, whose windows assume
 * one at a time.
 */
static bool can_be_buffered(const struct collnet_request *r, const struct cn_coll_args *a,
			    const struct cn_staging *m)
{
	if (!cn_op_has_root(a->op) || m->in_len == 0 || m->in_len > BUFFERED_BYTES ||
	    m->out_len > 0 || r->persistent ||
	    (cn_op_reduces(a->op) &&
	     !cn_op_is_combined_by_daemon(a->op, a->bytes, r->reduction.call.combine == NULL))) {
		return false;
	}
	if (!cn_request_can_be_buffered(r->team)) {
		cn_rings_completions(r->c); /* some may have ended */
	}
	return cn_request_can_be_buffered(r->team);
}

static int daemon_coll(struct collnet_team *t, struct collnet_request *r,
		       const struct cn_coll_args *a, struct cn_err *err)
{
	struct cn_daemon_side *d = t->c->impl;
	const struct cn_call call = cn_coll_shape(t, a);
	const uint64_t own = cn_call_in_place(&call), in_len = cn_call_send_bytes(&call);
	const bool vector = cn_op_is_vector(a->op), only_sends = cn_call_only_sends(&call);
	const bool swaps = cn_call_swaps(&call, a->send, a->recv);
	const bool in_place = !swaps && !vector && !only_sends && own != UINT64_MAX && in_len > 0 &&
			      a->send == (const char *)a->recv + own;
	struct cn_staging mem = {
		.in = a->send,
		.out = only_sends ? NULL : a->recv,
		.in_len = in_place ? 0 : in_len,
		.out_len = only_sends ? 0 : cn_call_recv_bytes(&call),
		.blocks = vector ? &a->blocks : NULL,
		.ranks = t->ranks,
		.scratch_len = cn_call_scratch_bytes(&call),
	};
	struct cn_msg_coll m = {
		.head = { .type = CN_MSG_COLL, .tag = r->number },
		.team = t->number,
		.op = a->op,
		.permutation = a->permutation,
		.contention_aware = a->contention_aware,
		.window = a->window,
		.timeout_ms = r->timeout_ms,
		.root = a->root,
		.element = a->element,
		.function = a->function,
		.ordered = a->ordered,
		.persistent = r->persistent,
		.refused = t->refused,
		/* of one block; of the others, one is 0 */
		.bytes = a->bytes + a->blocks.send_len + a->blocks.recv_len,
	};
	const bool buffered = can_be_buffered(r, a, &mem);
	int rc;

	r->what = cn_op_name(a->op);
	m.buffered = buffered;
	mem.copy_in = swaps || buffered;
	rc = cn_staging_place(r, &mem, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (a->algorithm != NULL) {
		strncpy(m.algorithm, a->algorithm, sizeof(m.algorithm) - 1);
	}
	m.send = mem.in_place;
	m.recv = mem.out_place;
	m.blocks = mem.blocks_place;
	m.scratch = mem.scratch_place;
	r->reduction.buffers.send = memory_at(d, &m.send, in_len);
	r->reduction.buffers.recv = memory_at(d, &m.recv, mem.out_len);
	r->reduction.buffers.scratch = memory_at(d, &m.scratch, mem.scratch_len);
	if (in_place) {
		m.send = m.recv;
		m.send.offset += own;
		if (r->staging.back != NULL) {
			r->staging.in = a->send;
			r->staging.in_offset = m.send.offset;
			r->staging.in_len = a->bytes;
			r->staging.in_blocks = NULL;
		}
	}
	rc = post(r, &m, sizeof(m), &m.called, err);
	if (rc == COLLNET_OK && buffered) {
		cn_request_buffered(r);
	}
	return rc;
}

static int daemon_start(struct collnet_request *r, struct cn_err *err)
{
	struct cn_msg_start m = {
		.head = { .type = CN_MSG_START, .tag = r->number },
		.timeout_ms = r->timeout_ms,
		.refused = r->team->refused,
	};

	copy_in(r);
	m.called = called(r);
	return cn_rings_post(r, &m, sizeof(m), err);
}

static void daemon_release(struct collnet_request *r)
{
	const struct cn_msg_release m = {
		.head = { .type = CN_MSG_RELEASE, .tag = r->number },
	};

	if (r->c->gone.code == COLLNET_OK) {
		cn_rings_request(r->c, &m, sizeof(m), NULL);
	}
	cn_staging_release(r);
}

static int daemon_endpoint_open(struct collnet_endpoint *e, uint16_t number, struct cn_err *err)
{
	struct cn_daemon_side *d = e->c->impl;
	struct cn_msg_open m = {
		.head = { .type = CN_MSG_OPEN },
		.endpoint = e->number,
		.number = number,
	};
	int rc = cn_secret(NULL, &m.secret, err);

	if (rc == COLLNET_OK) {
		rc = cn_rings_open(e->c, err);
	}
	if (rc != COLLNET_OK) {
		return rc;
	}
	rc = cn_socket_request(e->c, &m, sizeof(m), CN_MSG_REPLY, err);

	if (rc == COLLNET_OK) {
		e->endpoint = (uint16_t)d->in.reply.value;
	}
	return rc;
}

static void daemon_endpoint_close(struct collnet_endpoint *e)
{
	struct cn_msg_close m = { .head = { .type = CN_MSG_CLOSE }, .endpoint = e->number };

	if (e->c->gone.code == COLLNET_OK) {
		cn_socket_request(e->c, &m, sizeof(m), CN_MSG_REPLY, NULL);
	}
}

static int daemon_send(struct collnet_endpoint *e, struct collnet_request *r,
		       const struct collnet_address *to, const void *data, uint64_t bytes,
		       struct cn_err *err)
{
	struct cn_staging mem = { .in = data, .in_len = bytes };
	struct cn_msg_send m = {
		.head = { .type = CN_MSG_SEND, .tag = r->number },
		.endpoint = e->number,
		.to = to->endpoint,
		.bytes = bytes,
		.timeout_ms = r->timeout_ms,
	};
	int rc = cn_staging_place(r, &mem, err);

	r->what = NULL;
	if (rc != COLLNET_OK) {
		return rc;
	}
	memcpy(m.node, to->node, sizeof(m.node));
	m.data = mem.in_place;
	return post(r, &m, sizeof(m), &m.called, err);
}

static int daemon_recv(struct collnet_endpoint *e, struct collnet_request *r, void *data,
		       uint64_t capacity, struct cn_err *err)
{
	struct cn_staging mem = { .out = data, .out_len = capacity };
	struct cn_msg_recv m = {
		.head = { .type = CN_MSG_RECV, .tag = r->number },
		.endpoint = e->number,
		.timeout_ms = r->timeout_ms,
		.capacity = capacity,
	};
	int rc = cn_staging_place(r, &mem, err);

	r->what = NULL;
	if (rc != COLLNET_OK) {
		return rc;
	}
	m.data = mem.out_place;
	return post(r, &m, sizeof(m), &m.called, err);
}

/* ---- what the node knows -------------------------------------------------------------- */

static int daemon_stats(struct collnet *c, struct collnet_stats *s, bool reset, struct cn_err *err)
{
	struct cn_daemon_side *d = c->impl;
	struct cn_msg_stats m = { .head = { .type = CN_MSG_STATS }, .reset_peak = reset };
	int rc = cn_socket_request(c, &m, sizeof(m), CN_MSG_STATS_REPLY, err);

	if (rc == COLLNET_OK) {
		*s = d->in.stats_reply.stats;
	}
	return rc;
}

/* Reads a table, a page at a time; when it changes in between, an entry may be missing or
 * duplicate. */
static int daemon_nodes(struct collnet *c, struct collnet_node_info *out, size_t *count,
			struct cn_err *err)
{
	struct cn_daemon_side *d = c->impl;
	const struct cn_msg_node_table *t = &d->in.node_table;
	struct cn_msg_table m = { .head = { .type = CN_MSG_NODES } };
	size_t total;
	int rc;

	do {
		rc = cn_socket_request(c, &m, sizeof(m), CN_MSG_NODE_TABLE, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
		total = t->total;
		for (uint32_t i = 0; i < t->count && m.first + i < *count; i++) {
			out[m.first + i] = t->nodes[i];
		}
		m.first += t->count;
	} while (t->count > 0 && m.first < total && m.first < *count);
	*count = total;
	return COLLNET_OK;
}

static int daemon_jobs(struct collnet *c, struct collnet_job_info *out, size_t *count,
		       struct cn_err *err)
{
	struct cn_daemon_side *d = c->impl;
	const struct cn_msg_job_table *t = &d->in.job_table;
	struct cn_msg_table m = { .head = { .type = CN_MSG_JOBS } };
	size_t total;
	int rc;

	do {
		rc = cn_socket_request(c, &m, sizeof(m), CN_MSG_JOB_TABLE, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
		total = t->total;
		for (uint32_t i = 0; i < t->count && m.first + i < *count; i++) {
			out[m.first + i] = t->jobs[i];
		}
		m.first += t->count;
	} while (t->count > 0 && m.first < total && m.first < *count);
	*count = total;
	return COLLNET_OK;
}

const struct cn_backend cn_backend_daemon = {
	.open = daemon_open,
	.close = daemon_close,
	.forked = daemon_forked,
	.progress = cn_rings_progress,
	.late = cn_rings_late,
	.is_blocked = cn_rings_are_blocked,
	.timed_out = daemon_timed_out,
	.alloc = daemon_alloc,
	.free = daemon_free,
	.join = daemon_join,
	.ranks = daemon_ranks,
	.leave = daemon_leave,
	.coll = daemon_coll,
	.start = daemon_start,
	.release = daemon_release,
	.endpoint_open = daemon_endpoint_open,
	.endpoint_close = daemon_endpoint_close,
	.send = daemon_send,
	.recv = daemon_recv,
	.collect = daemon_collect,
	.stats = daemon_stats,
	.nodes = daemon_nodes,
	.jobs = daemon_jobs,
};
