/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's side of the rings: requests in, completions out, and waiting for them.
 *
 * A wait polls the ring of completions for as long as util/spin.h allows, unless the daemon runs on
 * the same processor, and then sleeps: at first, for FUTEX_FOR, on a futex in the ring, and then on
 * the socket, on which the daemon wakes it with a message. The socket is looked at only then, and
 * every SOCKET_EVERY by callers that never wait, and with it whether the daemon is there.
 */
#include "client/daemon.h"

#include "client/reduce.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define SOCKET_EVERY CN_MS
#define FUTEX_FOR    (20 * CN_MS)
#define LATE_RETRY   (10 * CN_MS)   /* interval of checks whether the daemon is blocked */
#define BLOCKED_FOR  (2000 * CN_MS) /* afterwards: it serves requests and ends late ones */

int cn_rings_open(struct collnet *c, struct cn_err *err)
{
	struct cn_daemon_side *d = c->impl;
	int rc;

	if (d->requests.shared != NULL) {
		return COLLNET_OK;
	}
	rc = cn_region_create(c, CN_MSG_RINGS, CN_MSG_RINGS_BYTES, err);
	if (rc == COLLNET_OK) {
		cn_msg_rings_init(d->regions[CN_MSG_RINGS].p, &d->requests, &d->completions);
	}
	return rc;
}

int cn_rings_request(struct collnet *c, const void *m, size_t len, struct cn_err *err)
{
	static const struct cn_msg_head doorbell = { .type = CN_MSG_DOORBELL };
	struct cn_daemon_side *d = c->impl;

	/* There is room for all requests that can be outstanding. */
	if (cn_shm_ring_put(&d->requests, m, len) != CN_SHM_RING_OK) {
		cn_socket_gone(c, COLLNET_EPROTO, "does not take requests");
		return cn_fail(err, c->gone.code, "%s", c->gone.text);
	}
	return cn_shm_ring_wake(&d->requests) != CN_SHM_RING_AWAKE
		       ? cn_socket_send(c, &doorbell, sizeof(doorbell), err)
		       : COLLNET_OK;
}

int cn_rings_post(struct collnet_request *r, const void *m, size_t len, struct cn_err *err)
{
	struct cn_daemon_side *d = r->c->impl;
	int rc;

	if (d->abandoned > 0 && cn_shm_ring_used(&d->requests) >= CN_MSG_REQUESTS) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "%u requests of this context wait to be taken by collnetd, and %u "
			       "of them have passed their deadlines",
			       CN_MSG_REQUESTS, d->abandoned);
	}
	rc = cn_rings_request(r->c, m, len, err);
	r->place = d->requests.at;
	r->out_of_band = false;
	return rc;
}

/* ---- requests that are not taken ------------------------------------------------------ */

uint32_t cn_rings_blocked_on(struct cn_daemon_side *d, cn_time now)
{
	const uint32_t by = d->requests.shared != NULL ? cn_shm_ring_blocked_on(&d->requests) : 0;

	if (by != 0) {
		d->blocked_at = now;
	}
	return by;
}

bool cn_rings_are_blocked(struct collnet *c, cn_time now)
{
	struct cn_daemon_side *d = c->impl;

	return cn_rings_blocked_on(d, now) != 0 ||
	       (d->blocked_at != 0 && now < d->blocked_at + BLOCKED_FOR);
}

/*
 * The request is still in the ring or on the socket, and the daemon is blocked: ends it here. The
 * daemon also detects that the deadline has passed, and completes the request when it processes it.
 */
void cn_rings_late(struct collnet_request *r, cn_time now)
{
	struct collnet *c = r->c;
	struct cn_daemon_side *d = c->impl;
	const uint32_t by = cn_rings_blocked_on(d, now);
	const struct collnet_request *first = by - 1 < CN_MSG_REQUESTS ? &c->requests[by - 1]
								       : NULL;
	char what[160] = "another request";
	char text[CN_ERR_TEXT];

	if (r->out_of_band ? cn_shm_ring_has_consumed_oob(&d->requests, r->place)
			   : cn_shm_ring_has_consumed(&d->requests, r->place)) {
		r->late_at = CN_NEVER;
		return;
	}
	if (by == 0 || !d->same_clock) {
		r->late_at = now + LATE_RETRY;
		return;
	}
	if (first != NULL && first->what != NULL && first->team != NULL) {
		snprintf(what, sizeof(what), "%s of team %s", first->what, first->team->job);
	}
	snprintf(text, sizeof(text),
		 "the deadline passed while the call waited behind %s, an earlier call of this "
		 "process whose schedule collnetd is still planning",
		 what);
	d->abandons[r->number]++;
	d->abandoned++;
	if (r->out_of_band) {
		/* The daemon serves the ring first: another request of this number there would
		 * overtake it. */
		r->in_transit = true;
		d->late_joins++;
		r->team->abandoned = true;
	}
	cn_request_done(r, COLLNET_ETIMEOUT, text);
}

/* True for the completion of an abandoned request. */
static bool is_abandoned(struct collnet *c, const struct cn_msg_head *m)
{
	struct cn_daemon_side *d = c->impl;

	if (m->type != CN_MSG_DONE || d->abandons[m->tag] == 0) {
		return false;
	}
	d->abandons[m->tag]--;
	d->abandoned--;
	if (d->abandons[m->tag] == 0 && c->requests[m->tag].in_transit) {
		c->requests[m->tag].in_transit = false;
		d->late_joins--;
	}
	return true;
}

static struct cn_span span_of(const struct cn_msg_span *s)
{
	return (struct cn_span){ .buffer = (enum cn_buffer)s->buffer, .offset = s->offset };
}

/* Combines a fragment of a reduction. False: invalid, and the context is gone. */
static bool combine(struct collnet *c, const struct cn_msg_combine *m)
{
	const struct cn_combine piece = {
		.left = span_of(&m->left),
		.right = span_of(&m->right),
		.out = span_of(&m->out),
		.bytes = m->bytes,
		.operands = m->operands,
	};
	const struct cn_msg_combined done = {
		.head = { .type = CN_MSG_COMBINED, .tag = m->head.tag },
		.piece = m->piece,
	};
	struct collnet_request *r = &c->requests[m->head.tag];

	if (r->state != CN_REQUEST_PENDING || !cn_request_combine(r, &piece)) {
		cn_socket_gone(c, COLLNET_EPROTO, "sent an invalid fragment of a reduction");
		return false;
	}
	return m->last != 0 || cn_rings_request(c, &done, sizeof(done), NULL) == COLLNET_OK;
}

/*
 * A team is ready: what it is, and the names of its nodes, if they are the parent's. False: it is
 * none that is joined.
 */
static bool joined(struct collnet_team *t, const struct cn_msg_joined *m)
{
	if (t == NULL || t->named > 0 || m->ranks > t->ranks) {
		return false;
	}
	for (uint32_t i = 0; i < m->mapped; i++) {
		if (t->parent == NULL || m->in_parent[i] >= t->parent->ranks) {
			return false;
		}
		memcpy(t->names[i], t->parent->names[m->in_parent[i]], sizeof(t->names[i]));
	}
	t->named = m->mapped;
	t->rank = m->rank;
	t->ranks = m->ranks;
	t->nodes = m->nodes;
	t->run = m->run;
	return true;
}

/*
 * Handles a completion, or a fragment to combine, popped from the ring. False: there is no such
 * request, and the context is gone.
 */
static bool handle_completion(struct collnet *c, const union cn_msg *m)
{
	const uint32_t type = m->head.type;
	struct collnet_request *r;

	if ((type != CN_MSG_DONE && type != CN_MSG_JOINED && type != CN_MSG_COMBINE) ||
	    cn_msg_check(m, cn_msg_size(type), true) != NULL) {
		cn_socket_gone(c, COLLNET_EPROTO, "sent an invalid completion");
		return false;
	}
	if (type == CN_MSG_COMBINE) {
		return combine(c, &m->combine);
	}
	if (is_abandoned(c, &m->head)) {
		return true;
	}
	r = &c->requests[m->head.tag];
	if (!cn_request_is_posted(r) || (type == CN_MSG_JOINED && !joined(r->team, &m->joined))) {
		cn_socket_gone(c, COLLNET_EPROTO, "completed a request that was not pending");
		return false;
	}
	if (type == CN_MSG_JOINED) {
		cn_request_done(r, COLLNET_OK, "");
		return true;
	}
	r->refused = r->counts != NULL && r->counts == r->team &&
		     (m->done.status == COLLNET_ELIMIT || m->done.status == COLLNET_ENOMEM);
	memcpy(r->received.from.node, m->done.from_node, sizeof(r->received.from.node));
	r->received.from.endpoint = (uint16_t)m->done.from_endpoint;
	r->received.bytes = m->done.bytes;
	cn_request_done(r, m->done.status, m->done.text);
	return true;
}

int cn_rings_completions(struct collnet *c)
{
	struct cn_daemon_side *d = c->impl;
	enum cn_shm_ring_status status;
	union cn_msg m;
	const void *slot;
	int n = 0;

	if (d->completions.shared == NULL) {
		return 0;
	}
	while ((status = cn_shm_ring_front(&d->completions, &slot)) == CN_SHM_RING_OK) {
		memcpy(&m, slot, CN_MSG_DONE_SLOT); /* the daemon could write there meanwhile */
		cn_shm_ring_pop(&d->completions);
		if (!handle_completion(c, &m)) {
			return -1;
		}
		n++;
	}
	if (status == CN_SHM_RING_BROKEN) {
		cn_socket_gone(c, COLLNET_EPROTO, "broke its ring");
		return -1;
	}
	if (n > 0) {
		cn_socket_received(d);
		cn_wake(c); /* it must announce again that it sleeps */
	}
	return n;
}

/*
 * True if the thread should yield and poll again rather than sleep. On the daemon's processor,
 * polling costs a switch to this process and back each time the daemon yields; sleeping costs only
 * one.
 */
static bool polls(struct cn_daemon_side *d, cn_time now)
{
	return !cn_shm_ring_shares_processor(&d->requests, sched_getcpu()) &&
	       cn_spin_wait(&d->spin, now);
}

void cn_rings_progress(struct collnet *c, cn_time until)
{
	struct cn_daemon_side *d = c->impl;
	const uint64_t ended = c->ended;
	const cn_time began = cn_now();
	cn_time now = began;
	uint32_t all, futex;
	bool message;

	/* Another thread can take our completions while this one yields or sleeps. */
	while (cn_rings_completions(c) == 0 && c->ended == ended) {
		if (now >= until) {
			if (now - d->read_at >= SOCKET_EVERY && cn_socket_poll(c, now)) {
				cn_socket_probe(c, now);
			}
			return;
		}
		cn_rings_blocked_on(d, now);
		all = c->awaits_buffered > 0 ? CN_SHM_RING_FOR_ALL : 0;
		futex = CN_SHM_RING_ON_FUTEX | all;
		if (polls(d, now)) {
			cn_yield(c);
		} else if (!cn_socket_probe(c, now)) {
			return;
		} else if (now - began < FUTEX_FOR) {
			cn_shm_ring_set_processor(&d->completions, sched_getcpu());
			if (cn_shm_ring_sleep(&d->completions, futex)) {
				cn_sleep_on(c, &d->completions.shared->asleep, futex,
					    cn_min_time(until, began + FUTEX_FOR) - now);
			}
			cn_shm_ring_awake(&d->completions);
		} else if (cn_shm_ring_sleep(&d->completions, CN_SHM_RING_ON_MESSAGE | all)) {
			message = cn_socket_sleep(c, until);
			cn_shm_ring_awake(&d->completions);
			if (message && !cn_socket_poll(c, now)) {
				return;
			}
		}
		now = cn_now();
	}
	cn_spin_over(&d->spin, now);
}
