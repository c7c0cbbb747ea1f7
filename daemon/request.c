/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Converts messages of a client into calls of the engine, and completions into messages.
 *
 * The message itself was checked before (cn_msg_check()); here it is checked against the client's
 * state: numbers in use and free, buffers within regions. A client that violates the protocol does
 * not use libcollnet and is closed. A request that the engine refuses is completed with the error.
 *
 * All requests of a team can end at once. A completion in a ring takes 0.4 us, one on a socket 12:
 * a user may have few of these (CN_ON_SOCKET_MAX). Clients of the library have rings.
 */
#include "daemon/daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cn_client_violation(struct cn_client *c, const char *what)
{
	cn_client_mark(c, what);
	return false;
}

/* ---- completions ---------------------------------------------------------------------- */

static struct cn_op_slot *slot_of(struct cn_done *done)
{
	return (struct cn_op_slot *)(void *)((char *)done - offsetof(struct cn_op_slot, done));
}

void cn_slot_free(struct cn_op_slot *op)
{
	struct cn_client *c = op->client;

	op->busy = op->kept = false;
	cn_quota_uncharge(c->daemon, c->user, CN_QUOTA_REQUESTS, 1);
	c->user->on_socket -= op->on_socket;
	cn_mapping_put(c->daemon, op->send);
	cn_mapping_put(c->daemon, op->recv);
	cn_mapping_put(c->daemon, op->scratch);
	cn_blocks_free(op);
	op->send = op->recv = op->scratch = NULL;
}

/* Called by the engine, from wherever it is: sends, marks, and no more. */
void cn_slot_done(struct cn_done *done, int status, const char *text)
{
	struct cn_op_slot *op = slot_of(done);
	struct cn_client *c = op->client;
	struct cn_msg_done m = {
		.head = { .type = CN_MSG_DONE, .tag = (uint32_t)(op - c->ops) },
		.status = status,
	};
	const bool urgent = !op->buffered || status != COLLNET_OK;

	if (op->receives && (status == COLLNET_OK || status == COLLNET_ETRUNC)) {
		memcpy(m.from_node, op->received.from.node, sizeof(m.from_node));
		m.from_endpoint = op->received.from.endpoint;
		m.bytes = op->received.bytes;
	}
	if (status != COLLNET_OK) {
		strncpy(m.text, text, sizeof(m.text) - 1);
	}
	cn_combine_cancel(op);
	if (op->kept) {
		op->busy = false;
	} else {
		cn_slot_free(op);
	}
	if (op->joins && status == COLLNET_OK && c->teams[op->team] != NULL) {
		cn_client_joined(c, m.head.tag, op->team, op->parent);
	} else {
		cn_client_complete(c, &m, urgent);
	}
}

/* A request that is refused before it has a slot. */
static void refuse(struct cn_client *c, uint32_t tag, const struct cn_err *err)
{
	struct cn_msg_done m = {
		.head = { .type = CN_MSG_DONE, .tag = tag },
		.status = err->code,
	};

	snprintf(m.text, sizeof(m.text), "%s", err->text); /* without the bytes after it */
	cn_client_complete(c, &m, true);
}

/* Charges a request, which gets its completion from the socket or from the ring. */
static int charge(struct cn_client *c, bool on_socket, struct cn_err *err)
{
	struct cn_user *u = c->user;
	int rc;

	if (on_socket && u->uid != 0 && u->on_socket >= CN_ON_SOCKET_MAX) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "user %lu has %u outstanding requests of processes without rings",
			       (unsigned long)u->uid, u->on_socket);
	}
	rc = cn_quota_charge(c->daemon, u, CN_QUOTA_REQUESTS, 1, err);
	u->on_socket += rc == COLLNET_OK && on_socket;
	return rc;
}

/* A free slot, initialised; NULL: the client is marked for close, or was sent the reason. */
struct cn_op_slot *cn_slot_begin(struct cn_client *c, uint32_t tag)
{
	const bool on_socket = c->completions.shared == NULL;
	struct cn_op_slot *op = &c->ops[tag];
	struct cn_err err;

	if (op->busy || op->kept) {
		cn_client_violation(c, "request number in use");
		return NULL;
	}
	if (charge(c, on_socket, &err) != COLLNET_OK) {
		refuse(c, tag, &err);
		return NULL;
	}
	memset(op, 0, sizeof(*op));
	op->done.fn = cn_slot_done;
	op->client = c;
	op->busy = true;
	op->on_socket = on_socket;
	return op;
}

/* The engine refused it: it is completed with the error. */
bool cn_slot_refused(struct cn_op_slot *op, const struct cn_err *err)
{
	cn_slot_done(&op->done, err->code, err->text);
	return true;
}

cn_time cn_slot_deadline(const struct cn_client *c, uint64_t called, uint32_t timeout_ms)
{
	const cn_time now = c->daemon->now;

	return cn_deadline(called != 0 && called < now ? called : now, timeout_ms);
}

bool cn_slot_late(struct cn_op_slot *op)
{
	struct cn_err err;

	cn_fail(&err, COLLNET_ETIMEOUT,
		"the deadline passed before collnetd on node %s received the call",
		op->client->daemon->runtime.node);
	return cn_slot_refused(op, &err);
}

/* ---- the interface -------------------------------------------------------------------- */

/* True, with the reason in *err: nothing can be sent now. */
static bool is_down(const struct cn_client *c, struct cn_err *err)
{
	const struct cn_iface *f = &c->daemon->iface;

	if (f->down) {
		cn_fail(err, COLLNET_EIFACE, "%s", f->text);
	}
	return f->down;
}

/* The client's handles belong to an interface that is gone. */
void cn_client_fail_lost(const struct cn_client *c, struct cn_err *err)
{
	cn_fail(err, COLLNET_EIFACE, "%s", c->daemon->iface.lost);
}

static bool lost_team(const struct cn_client *c, uint32_t team)
{
	return cn_bit(c->lost_teams, team);
}

static bool lost_endpoint(const struct cn_client *c, uint32_t endpoint)
{
	return cn_bit(c->lost_endpoints, endpoint);
}

/* A request on a team or endpoint that is lost ends at once. */
bool cn_client_refuse_lost(struct cn_client *c, uint32_t tag)
{
	struct cn_op_slot *op = cn_slot_begin(c, tag);
	struct cn_err err;

	if (op == NULL) {
		return !c->marked;
	}
	cn_client_fail_lost(c, &err);
	return cn_slot_refused(op, &err);
}

/* ---- teams ---------------------------------------------------------------------------- */

/* Of a team or endpoint with this secret; 0: without one. */
static uint64_t owner_of(const struct cn_client *c, uint64_t secret)
{
	return secret != 0 ? secret : c->uid;
}

/* Whether the user may take part in this job, which counts once for all of its ranks here. */
static int check_teams(struct cn_client *c, uint64_t owner, const char *job, struct cn_err *err)
{
	bool takes_part;
	const uint32_t count = cn_engine_teams_paid(c->daemon->runtime.engine, c->user->uid, owner,
						    job, &takes_part);

	return takes_part ? COLLNET_OK
			  : cn_quota_check(c->daemon, c->user, CN_QUOTA_TEAMS, count, 1, err);
}

static int join(struct cn_client *c, const struct cn_msg_join *m, cn_time deadline,
		struct cn_done *done, struct cn_member **out, struct cn_err *err)
{
	const struct cn_split_call call = { m->job, m->making, m->color, m->key };
	const cn_time now = c->daemon->now;

	cn_engine_set_payer(c->daemon->runtime.engine, c->user->uid);
	if (m->derived == 0) {
		return cn_team_join(c->daemon->runtime.engine, now, owner_of(c, m->secret), m->job,
				    m->rank, m->ranks, deadline, done, out, err);
	}
	return m->making != CN_MAKING_NONE
		       ? cn_team_split(c->teams[m->parent], now, &call, deadline, done, out, err)
		       : cn_team_derive(c->teams[m->parent], now, m->job, m->rank, m->ranks,
					m->members, deadline, done, out, err);
}

int cn_client_try_join(struct cn_op_slot *op, const struct cn_msg_join *m, cn_time deadline,
		       struct cn_err *err)
{
	struct cn_client *c = op->client;
	struct cn_member **member = &c->teams[m->team]; /* it may be ready before join() returns */
	uint64_t owner;

	if (m->derived != 0 && c->teams[m->parent] == NULL) {
		cn_client_fail_lost(c, err);
		return err->code;
	}
	owner = m->derived != 0 ? cn_member_owner(c->teams[m->parent]) : owner_of(c, m->secret);
	if (is_down(c, err) || (op->joins && check_teams(c, owner, m->job, err) != COLLNET_OK)) {
		return err->code;
	}
	return join(c, m, deadline, &op->done, member, err);
}

/* Splitting a team is an operation of it. */
static bool refuse_late_join(struct cn_client *c, const struct cn_msg_join *m,
			     struct cn_op_slot *op)
{
	const struct cn_coll_args a = { .op = CN_OP_ALLGATHER, .making = m->making };
	struct cn_err err;

	if (m->derived == 0 || m->making == CN_MAKING_NONE) {
		return cn_slot_late(op);
	}
	cn_coll_late(c->teams[m->parent], &a, &err);
	return cn_slot_refused(op, &err);
}

static bool handle_join(struct cn_client *c, const struct cn_msg_join *m)
{
	const bool outside = m->derived != 0 && m->making != CN_MAKING_NONE && m->color < 0;
	struct cn_client_call k = { .kind = CN_CALL_JOIN, .join = m };
	struct cn_op_slot *op;
	struct cn_err err;

	if (c->teams[m->team] != NULL || lost_team(c, m->team)) {
		return cn_client_violation(c, "team number in use");
	}
	if (m->derived != 0 && c->teams[m->parent] == NULL) {
		return lost_team(c, m->parent) ? cn_client_refuse_lost(c, m->head.tag)
					       : cn_client_violation(c, "team number not in use");
	}
	op = cn_slot_begin(c, m->head.tag);
	if (op == NULL) {
		return !c->marked;
	}
	c->refused[m->team] = 0;
	op->joins = !outside; /* whose team number stays free */
	op->team = m->team;
	op->parent = m->derived != 0 ? m->parent : CN_MSG_TEAMS;
	k.op = op;
	k.args.deadline = cn_slot_deadline(c, m->called, m->timeout_ms);
	if (k.args.deadline <= c->daemon->now) {
		return refuse_late_join(c, m, op);
	}
	if (m->derived != 0 && m->making != CN_MAKING_NONE &&
	    cn_member_check(c->teams[m->parent], &err) == COLLNET_OK &&
	    cn_operation_in_order(c, m->parent, m->refused, &err) != COLLNET_OK) {
		return cn_slot_refused(op, &err);
	}
	cn_call_make(c, &k);
	return true;
}

static bool handle_leave(struct cn_client *c, const struct cn_msg_leave *m)
{
	struct cn_member *member = c->teams[m->team];

	/* A join that was refused has no member, and is left all the same. */
	cn_bit_clear(c->lost_teams, m->team);
	if (member != NULL) {
		c->teams[m->team] = NULL;
		cn_client_release_team(c, m->team);
		cn_team_leave(member, c->daemon->now, false);
	}
	cn_client_reply(c, m->head.tag, COLLNET_OK, 0, "");
	return true;
}

static bool handle_ranks(struct cn_client *c, const struct cn_msg_ranks *m)
{
	struct cn_msg_rank_names a = { .head = { .type = CN_MSG_RANK_NAMES, .tag = m->head.tag } };
	const struct cn_member *member = c->teams[m->team];
	struct cn_err err;
	uint32_t ranks;

	if (member == NULL && lost_team(c, m->team)) {
		cn_client_fail_lost(c, &err);
		cn_client_reply(c, m->head.tag, err.code, 0, err.text);
		return true;
	}
	if (member == NULL) {
		return cn_client_violation(c, "team number not in use");
	}
	ranks = cn_member_ranks(member);
	a.ranks = ranks;
	while (a.count < CN_MSG_PAGE && m->first + a.count < ranks) {
		const char *name = cn_member_node_name(member, m->first + a.count);

		if (name == NULL) {
			cn_client_reply(c, m->head.tag, COLLNET_ERANK, 0,
					"a rank left the team before it was used");
			return true;
		}
		strncpy(a.names[a.count++], name, sizeof(a.names[0]) - 1);
	}
	cn_client_send(c, &a, sizeof(a));
	return true;
}

/* ---- endpoints ------------------------------------------------------------------------ */

static bool handle_open(struct cn_client *c, const struct cn_msg_open *m)
{
	struct cn_endpoint **e = &c->endpoints[m->endpoint];
	struct cn_err err;
	int rc;

	if (*e != NULL || lost_endpoint(c, m->endpoint)) {
		return cn_client_violation(c, "endpoint number in use");
	}
	if (is_down(c, &err)) {
		cn_client_reply(c, m->head.tag, err.code, 0, err.text);
		return true;
	}
	rc = cn_quota_charge(c->daemon, c->user, CN_QUOTA_ENDPOINTS, 1, &err);
	if (rc == COLLNET_OK) {
		rc = cn_endpoint_open(c->daemon->runtime.engine, owner_of(c, m->secret),
				      c->user->uid, (uint16_t)m->number, e, &err);
		if (rc != COLLNET_OK) {
			cn_quota_uncharge(c->daemon, c->user, CN_QUOTA_ENDPOINTS, 1);
		}
	}
	if (rc != COLLNET_OK) {
		*e = NULL;
		cn_client_reply(c, m->head.tag, rc, 0, err.text);
	} else {
		cn_client_reply(c, m->head.tag, COLLNET_OK, cn_endpoint_number(*e), "");
	}
	return true;
}

static bool handle_close(struct cn_client *c, const struct cn_msg_close *m)
{
	struct cn_endpoint *e = c->endpoints[m->endpoint];

	if (e == NULL && !lost_endpoint(c, m->endpoint)) {
		return cn_client_violation(c, "endpoint number not in use");
	}
	c->endpoints[m->endpoint] = NULL;
	cn_bit_clear(c->lost_endpoints, m->endpoint);
	if (e != NULL) {
		cn_endpoint_close(e, c->daemon->now);
		cn_quota_uncharge(c->daemon, c->user, CN_QUOTA_ENDPOINTS, 1);
	}
	cn_client_reply(c, m->head.tag, COLLNET_OK, 0, "");
	return true;
}

/* Begins a send or receive: the slot, and the memory in *data. NULL: as of cn_slot_begin(). */
static struct cn_op_slot *message_begin(struct cn_client *c, uint32_t tag, uint32_t endpoint,
					const struct cn_msg_buffer_ref *place, uint64_t len,
					cn_time deadline, bool receives, void **data)
{
	struct cn_op_slot *op;
	bool ok;

	if (c->endpoints[endpoint] == NULL) {
		cn_client_violation(c, "endpoint number not in use");
		return NULL;
	}
	op = cn_slot_begin(c, tag);
	if (op == NULL) {
		return NULL;
	}
	op->receives = receives;
	if (deadline <= c->daemon->now) {
		cn_slot_late(op);
		return NULL;
	}
	*data = cn_mapping_resolve(c, place, len, receives ? &op->recv : &op->send, &ok);
	if (!ok) {
		cn_slot_free(op);
		cn_client_violation(c, "buffer outside its regions");
		return NULL;
	}
	return op;
}

static bool handle_send(struct cn_client *c, const struct cn_msg_send *m)
{
	const cn_time deadline = cn_slot_deadline(c, m->called, m->timeout_ms);
	struct cn_err err;
	void *data;
	struct cn_op_slot *op;

	if (lost_endpoint(c, m->endpoint)) {
		return cn_client_refuse_lost(c, m->head.tag);
	}
	op = message_begin(c, m->head.tag, m->endpoint, &m->data, m->bytes, deadline, false, &data);
	if (op == NULL) {
		return !c->marked;
	}
	if (is_down(c, &err)) {
		return cn_slot_refused(op, &err);
	}
	if (cn_endpoint_send(c->endpoints[m->endpoint], c->daemon->now, m->node, (uint16_t)m->to,
			     data, m->bytes, deadline, &op->done, &err) != COLLNET_OK) {
		return cn_slot_refused(op, &err);
	}
	return true;
}

static bool handle_recv(struct cn_client *c, const struct cn_msg_recv *m)
{
	const cn_time deadline = cn_slot_deadline(c, m->called, m->timeout_ms);
	struct cn_err err;
	void *data;
	struct cn_op_slot *op;

	if (lost_endpoint(c, m->endpoint)) {
		return cn_client_refuse_lost(c, m->head.tag);
	}
	op = message_begin(c, m->head.tag, m->endpoint, &m->data, m->capacity, deadline, true,
			   &data);
	if (op == NULL) {
		return !c->marked;
	}
	if (is_down(c, &err)) {
		return cn_slot_refused(op, &err);
	}
	if (cn_endpoint_recv(c->endpoints[m->endpoint], c->daemon->now, data, m->capacity, deadline,
			     &op->received, &op->done, &err) != COLLNET_OK) {
		return cn_slot_refused(op, &err);
	}
	return true;
}

bool cn_client_request(struct cn_client *c, const union cn_msg *m)
{
	switch (m->head.type) {
	case CN_MSG_UNREGION:
		if (m->unregion.region == CN_MSG_RINGS && c->completions.shared != NULL) {
			return cn_client_violation(c, "it returned the rings that it uses");
		}
		return cn_mapping_drop(c, m->unregion.region) ||
		       cn_client_violation(c, "region number not in use");
	case CN_MSG_JOIN:
		return handle_join(c, &m->join);
	case CN_MSG_LEAVE:
		return handle_leave(c, &m->leave);
	case CN_MSG_RANKS:
		return handle_ranks(c, &m->ranks);
	case CN_MSG_COLL:
		return cn_operation_coll(c, &m->coll);
	case CN_MSG_START:
		return cn_operation_start(c, &m->start);
	case CN_MSG_RELEASE:
		return cn_operation_release(c, &m->release);
	case CN_MSG_COMBINED:
		cn_combined(c, &m->combined);
		return true;
	case CN_MSG_OPEN:
		return handle_open(c, &m->open);
	case CN_MSG_CLOSE:
		return handle_close(c, &m->close);
	case CN_MSG_SEND:
		return handle_send(c, &m->send);
	case CN_MSG_RECV:
		return handle_recv(c, &m->recv);
	case CN_MSG_STATS:
		cn_report_stats(c, &m->stats);
		return true;
	case CN_MSG_NODES:
		cn_report_nodes(c, &m->table);
		return true;
	case CN_MSG_JOBS:
		cn_report_jobs(c, &m->table);
		return true;
	case CN_MSG_PING:
		cn_report_alive(c, &m->head);
		return true;
	case CN_MSG_DOORBELL:
		return true; /* the ring is served before any message */
	default:
		return cn_client_violation(c, "second HELLO");
	}
}
