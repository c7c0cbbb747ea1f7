/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for requests: for one, for all or for any of a set, and collecting their results.
 *
 * A set is of one context. NULL entries are ignored, as are persistent requests that are inactive.
 * The result of a request is collected, and the request freed unless it is persistent, by the call
 * that reports its completion, and by no other.
 */
#include <sched.h>

#include "client/backend.h"

/* How long after an operation's own deadline a wait declares the backend dead. */
#define BACKSTOP (2000 * CN_MS)

/* A wait that ends so much later than it should was stopped, as the backend may have been. */
#define STOPPED (500 * CN_MS)

/* A program that tests in a loop yields the processor this often, because the daemon may need
 * it. */
#define YIELD_EVERY (20 * CN_US)

struct set {
	collnet_request_t *const *requests;
	size_t n;
	bool any;			     /* one that has ended is enough */
	const struct collnet_team *buffered; /* instead of these: those of the team that are */
	const struct collnet *full; /* instead: one of them that is buffered and was collected */
	const struct collnet_request *one;    /* instead: this one, until it is not buffered */
	const struct collnet_request *enters; /* instead: those that keep it out of this team */
	const struct collnet_team *team;
};

/* True if a request is free, or none can become free without a call. */
static bool has_free(const struct collnet *c)
{
	bool detached = false;

	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		if (c->requests[i].state == CN_REQUEST_FREE && !c->requests[i].in_transit) {
			return true;
		}
		detached |= c->requests[i].state == CN_REQUEST_DETACHED;
	}
	return !detached;
}

/* Its result was reported. A buffered one may not have ended; it is no longer the caller's. */
static bool is_collected(const struct collnet_request *r)
{
	return r->state == CN_REQUEST_FREE || r->state == CN_REQUEST_DETACHED;
}

static bool is_over(const struct set *s)
{
	bool pending = false;

	if (s->buffered != NULL) {
		return s->buffered->buffered == 0;
	}
	if (s->full != NULL) {
		return has_free(s->full);
	}
	if (s->one != NULL) {
		return !s->one->buffered;
	}
	if (s->enters != NULL) {
		return !cn_request_waits_for_buffered(s->enters, s->team);
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct collnet_request *r = s->requests[i];

		if (r != NULL && r->state == CN_REQUEST_PENDING) {
			if (!s->any) {
				return false;
			}
			pending = true;
		} else if (r != NULL && r->state == CN_REQUEST_DONE && s->any) {
			return true;
		}
	}
	return !pending;
}

/* When the next one of the set is late that may not be with the backend. */
static cn_time late_at(const struct collnet *c, const struct set *s)
{
	cn_time at = CN_NEVER;

	for (size_t i = 0; i < s->n && c->backend->late != NULL; i++) {
		const struct collnet_request *r = s->requests[i];

		if (r != NULL && r->state == CN_REQUEST_PENDING) {
			at = cn_min_time(at, r->late_at);
		}
	}
	return at;
}

/* Has the backend end what is late; returns when the next one is. */
static cn_time end_late(const struct collnet *c, const struct set *s, cn_time now)
{
	for (size_t i = 0; i < s->n; i++) {
		struct collnet_request *r = s->requests[i];

		if (r != NULL && r->state == CN_REQUEST_PENDING && r->late_at <= now) {
			c->backend->late(r, now);
		}
	}
	return late_at(c, s);
}

/* Until the set is over, or until then, a moment to come (0: only looks). */
static bool poll_for(struct collnet *c, const struct set *s, cn_time until)
{
	const bool buffered = s->buffered != NULL || s->full != NULL || s->one != NULL ||
			      s->enters != NULL;
	bool over = is_over(s), in_time = until != 0;

	if (over) {
		return true;
	}
	if (buffered) {
		c->awaits_buffered++;
		cn_wake(c); /* a thread that sleeps for what is urgent must announce that */
	}
	if (until == 0 || c->polling) {
		c->backend->progress(c, 0); /* what was posted moves at once */
		over = is_over(s);
	}
	while (!over && in_time) {
		if (c->polling) {
			cn_wait_for_poller(c, until);
			over = is_over(s);
			in_time = cn_now() < until;
			continue;
		}
		c->polling = cn_thread_serial();
		do {
			c->backend->progress(c, until);
			over = is_over(s);
			in_time = over || cn_now() < until;
		} while (!over && in_time);
		c->polling = 0;
		cn_wake_waiting(c);
	}
	c->awaits_buffered -= buffered;
	return over;
}

/* The same; what is late, and not with the backend, ends. */
static bool wait_for(struct collnet *c, const struct set *s, cn_time until)
{
	cn_time late = late_at(c, s), now;

	do {
		if (poll_for(c, s, cn_min_time(until, late))) {
			return true;
		}
		now = cn_now();
		if (late <= now) {
			late = end_late(c, s, now);
		}
	} while (!is_over(s) && now < until);
	return is_over(s);
}

/* Leaves, after a test that found the set not to be over. */
static int leave_pending(struct collnet *c)
{
	const cn_time now = cn_now();
	const bool yield = c->backend == &cn_backend_daemon && now >= c->yielded_at + YIELD_EVERY;

	if (yield) {
		c->yielded_at = now;
	}
	pthread_mutex_unlock(&c->lock);
	if (yield) {
		sched_yield();
	}
	return COLLNET_INPROGRESS;
}

static int collect(struct collnet_request *r)
{
	struct collnet *c = r->c;
	int status = r->status;

	if (r->state == CN_REQUEST_INACTIVE) {
		return COLLNET_OK;
	}
	if (status != COLLNET_OK && r->preparing) {
		r->persistent = r->preparing = false; /* it holds nothing */
	}
	c->backend->collect(r);
	r->preparing = false;
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

/*
 * The later of a moment and of that when the backend must have ended the request, for a wait that
 * begins now. The caller may have computed until after the deadline: then the time counts from the
 * first wait after it.
 */
static cn_time later(cn_time at, cn_time now, struct collnet_request *r)
{
	cn_time end = CN_NEVER;

	if (r->deadline != CN_NEVER && r->deadline < now && r->late_since == 0) {
		r->late_since = now;
	}
	if (r->deadline != CN_NEVER) {
		end = (r->late_since != 0 ? r->late_since : r->deadline) + BACKSTOP;
	}
	return at > end ? at : end;
}

/* When the backend must have ended all that is pending, for a wait that begins now. */
static cn_time backstop(const struct set *s, cn_time now)
{
	cn_time at = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (s->requests[i] != NULL && s->requests[i]->state == CN_REQUEST_PENDING) {
			at = later(at, now, s->requests[i]);
		}
	}
	return at;
}

/* For wait_for(): of a moment that has passed, only to look. */
static cn_time or_look(cn_time until, cn_time now)
{
	return until > now ? until : 0;
}

static bool is_blocked(struct collnet *c, cn_time now)
{
	return c->backend->is_blocked != NULL && c->backend->is_blocked(c, now);
}

/*
 * Until the backend must have ended the set. At the end it looks once more: what came while this
 * process was stopped, or had no processor, has not been taken.
 */
static void wait_or_time_out(struct collnet *c, const struct set *s, cn_time now, cn_time end)
{
	cn_time stopped;

	while (!wait_for(c, s, or_look(end, now))) {
		stopped = (end > now ? end : now) + STOPPED;
		now = cn_now();
		if (wait_for(c, s, 0)) {
			return;
		}
		if (now < stopped && !is_blocked(c, now)) {
			c->backend->timed_out(c, "an operation did not end");
			return;
		}
		end = now + BACKSTOP;
	}
}

/* The same, from now on for at most timeout_ms (0: until the operations' own deadlines). */
static bool wait_within(struct collnet *c, const struct set *s, cn_time now, uint32_t timeout_ms)
{
	const cn_time until = cn_deadline(now, timeout_ms), end = backstop(s, now);

	if (timeout_ms != 0 && until < end) {
		return wait_for(c, s, until);
	}
	wait_or_time_out(c, s, now, end);
	return true;
}

/* When the backend must have ended the buffered requests: of team t, or of all (NULL). */
static cn_time backstop_of_ends(struct collnet *c, const struct collnet_team *t, cn_time now)
{
	cn_time end = 0;

	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		if (c->requests[i].buffered && (t == NULL || c->requests[i].team == t)) {
			end = later(end, now, &c->requests[i]);
		}
	}
	return end;
}

/* Until the set is over that is made of them. */
static void wait_for_ends(struct collnet *c, const struct set *s, const struct collnet_team *t)
{
	const cn_time now = cn_now();

	wait_or_time_out(c, s, now, backstop_of_ends(c, t, now));
}

void cn_wait_for_buffered(struct collnet_team *t)
{
	const struct set s = { .buffered = t };

	wait_for_ends(t->c, &s, t);
}

void cn_wait_for_room(struct collnet_request *r, const struct collnet_team *t)
{
	const struct set s = { .enters = r, .team = t };
	const cn_time now = cn_now();
	cn_time end;

	r->c->backend->progress(r->c, 0); /* what has ended may not be known */
	end = backstop_of_ends(r->c, t, now);
	if (r->deadline < end) {
		wait_for(r->c, &s, or_look(r->deadline, now));
	} else {
		wait_or_time_out(r->c, &s, now, end);
	}
}

void cn_wait_for_free(struct collnet *c)
{
	const struct set s = { .full = c };

	wait_for_ends(c, &s, NULL);
}

void cn_wait_at_exit(struct collnet *c, cn_time until)
{
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		struct collnet_request *r = &c->requests[i];
		/* Not the team's, which another thread may destroy during the wait. */
		const struct set s = { .one = r };

		if (r->buffered) {
			const cn_time now = cn_now();

			wait_for(c, &s, or_look(cn_min_time(until, later(0, now, r)), now));
		}
	}
}

int cn_request_finish(struct collnet_request *r)
{
	const struct set s = { .requests = &r, .n = 1 };

	wait_within(r->c, &s, r->begun, 0);
	return collect(r);
}

/* ---- one request ---------------------------------------------------------------------- */

int cn_request_enter(struct collnet_request *r)
{
	if (r == NULL) {
		return cn_argument_error("the request is NULL");
	}
	if (cn_may_enter(r->c) != COLLNET_OK) {
		return COLLNET_EINVAL;
	}
	cn_lock(r->c);
	if (is_collected(r)) {
		return cn_leave(r->c, cn_fail(&r->c->err, COLLNET_EINVAL,
					      "the request has been collected already"));
	}
	return COLLNET_OK;
}

int collnet_test(collnet_request_t *r)
{
	const struct set s = { .requests = &r, .n = 1 };
	int rc = cn_request_enter(r);

	if (rc != COLLNET_OK) {
		return rc;
	}
	return wait_for(r->c, &s, 0) ? cn_leave(r->c, collect(r)) : leave_pending(r->c);
}

int collnet_wait(collnet_request_t *r, uint32_t timeout_ms)
{
	const struct set s = { .requests = &r, .n = 1 };
	int rc = cn_request_enter(r);

	if (rc != COLLNET_OK) {
		return rc;
	}
	return cn_leave(r->c, wait_within(r->c, &s, cn_now(), timeout_ms) ? collect(r)
									  : COLLNET_INPROGRESS);
}

/* ---- sets ----------------------------------------------------------------------------- */

/* Enters the context of the set's requests; *c is NULL, and nothing entered, where there are none.
 */
static int enter_set(size_t n, collnet_request_t *const *requests, struct collnet **c)
{
	*c = NULL;
	if (requests == NULL && n > 0) {
		return cn_argument_error("the array of requests is NULL");
	}
	for (size_t i = 0; i < n; i++) {
		struct collnet_request *r = requests[i];

		if (r == NULL) {
			continue;
		}
		if (*c == NULL) {
			if (cn_may_enter(r->c) != COLLNET_OK) {
				return COLLNET_EINVAL;
			}
			*c = r->c;
			cn_lock(r->c);
		}
		if (r->c != *c) {
			return cn_leave(*c, cn_fail(&(*c)->err, COLLNET_EINVAL,
						    "request %zu belongs to another context", i));
		}
		if (is_collected(r)) {
			return cn_leave(*c, cn_fail(&(*c)->err, COLLNET_EINVAL,
						    "request %zu has been collected already", i));
		}
	}
	return COLLNET_OK;
}

/* COLLNET_EINVAL: a request of the set that is to be completed is in it twice. */
static int check_once(struct collnet *c, size_t n, collnet_request_t *const *requests)
{
	int rc = COLLNET_OK;

	for (size_t i = 0; i < n; i++) {
		struct collnet_request *r = requests[i];

		if (r != NULL && r->state != CN_REQUEST_INACTIVE) {
			if (r->listed) {
				rc = cn_fail(&c->err, COLLNET_EINVAL, "request %zu is listed twice",
					     i);
			}
			r->listed = true;
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (requests[i] != NULL) {
			requests[i]->listed = false;
		}
	}
	return rc;
}

/* The same as enter_set(), for a set of which all are to be completed. */
static int enter_all(size_t n, collnet_request_t *const *requests, struct collnet **c)
{
	int rc = enter_set(n, requests, c);

	if (rc != COLLNET_OK || *c == NULL) {
		return rc;
	}
	rc = check_once(*c, n, requests);
	return rc == COLLNET_OK ? rc : cn_leave(*c, rc);
}

/* All of a set that is over. The first error counts; a deadline's least: another may be why. */
static int collect_all(struct collnet *c, size_t n, collnet_request_t **requests, int *statuses)
{
	struct cn_err first = { .code = COLLNET_OK };

	for (size_t i = 0; i < n; i++) {
		struct collnet_request *r = requests[i];
		int status = COLLNET_OK;

		if (r != NULL && is_collected(r)) {
			status = cn_fail(&c->err, COLLNET_EINVAL,
					 "another thread has collected request %zu meanwhile", i);
		} else if (r != NULL) {
			status = collect(r);
		}
		if (r != NULL && !r->persistent) {
			requests[i] = NULL;
		}
		if (statuses != NULL) {
			statuses[i] = status;
		}
		if (status != COLLNET_OK &&
		    (first.code == COLLNET_OK ||
		     (first.code == COLLNET_ETIMEOUT && status != COLLNET_ETIMEOUT))) {
			first = c->err;
		}
	}
	if (first.code != COLLNET_OK) {
		c->err = first;
	}
	return first.code;
}

static int collect_any(size_t n, collnet_request_t **requests, size_t *index)
{
	size_t i = 0;
	struct collnet_request *r;

	while (i < n && (requests[i] == NULL || requests[i]->state != CN_REQUEST_DONE)) {
		i++;
	}
	*index = i;
	if (i == n) {
		return COLLNET_OK; /* all are inactive */
	}
	r = requests[i];
	if (!r->persistent) {
		requests[i] = NULL;
	}
	return collect(r);
}

/* All requests of a set are NULL. */
static int none_left(size_t n, int *statuses)
{
	for (size_t i = 0; i < n && statuses != NULL; i++) {
		statuses[i] = COLLNET_OK;
	}
	return COLLNET_OK;
}

int collnet_waitall(size_t n, collnet_request_t **requests, int *statuses, uint32_t timeout_ms)
{
	const struct set s = { .requests = requests, .n = n };
	struct collnet *c = NULL;
	int rc = enter_all(n, requests, &c);

	if (rc != COLLNET_OK || c == NULL) {
		return rc == COLLNET_OK ? none_left(n, statuses) : rc;
	}
	return cn_leave(c, wait_within(c, &s, cn_now(), timeout_ms)
				   ? collect_all(c, n, requests, statuses)
				   : COLLNET_INPROGRESS);
}

int collnet_testall(size_t n, collnet_request_t **requests, int *statuses)
{
	const struct set s = { .requests = requests, .n = n };
	struct collnet *c = NULL;
	int rc = enter_all(n, requests, &c);

	if (rc != COLLNET_OK || c == NULL) {
		return rc == COLLNET_OK ? none_left(n, statuses) : rc;
	}
	return wait_for(c, &s, 0) ? cn_leave(c, collect_all(c, n, requests, statuses))
				  : leave_pending(c);
}

static int enter_any(size_t n, collnet_request_t **requests, size_t *index, struct collnet **c)
{
	int rc;

	if (index == NULL) {
		return cn_argument_error("the index is NULL");
	}
	rc = enter_set(n, requests, c);
	if (rc == COLLNET_OK && *c == NULL) {
		*index = n;
	}
	return rc;
}

int collnet_waitany(size_t n, collnet_request_t **requests, size_t *index, uint32_t timeout_ms)
{
	const struct set s = { .requests = requests, .n = n, .any = true };
	struct collnet *c = NULL;
	int rc = enter_any(n, requests, index, &c);

	if (rc != COLLNET_OK || c == NULL) {
		return rc;
	}
	return cn_leave(c, wait_within(c, &s, cn_now(), timeout_ms)
				   ? collect_any(n, requests, index)
				   : COLLNET_INPROGRESS);
}

int collnet_testany(size_t n, collnet_request_t **requests, size_t *index)
{
	const struct set s = { .requests = requests, .n = n, .any = true };
	struct collnet *c = NULL;
	int rc = enter_any(n, requests, index, &c);

	if (rc != COLLNET_OK || c == NULL) {
		return rc;
	}
	return wait_for(c, &s, 0) ? cn_leave(c, collect_any(n, requests, index)) : leave_pending(c);
}
