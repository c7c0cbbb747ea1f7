/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that are buffered: complete before the backend has ended them. And for how long others
 * are waited for.
 */
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/backend.h"

static struct collnet *c;
static struct collnet_team team;
static uint32_t collected, progressed;
static bool breaks; /* the next time that the backend is to make progress */
static bool idle;   /* it makes none, and is given up */
static void (*instead)(struct collnet *context, cn_time until); /* of that progress; or NULL */
static sem_t inside, closed;
static cn_time last_until;
static const struct cn_err why_gone = { .code = COLLNET_EDAEMON, .text = "gone" };

static void collect(struct collnet_request *r)
{
	collected += !r->buffered;
}

/* Ends the oldest that is buffered, when a call waits. */
static void progress(struct collnet *context, cn_time until)
{
	uint32_t i = 0;

	last_until = until;
	if (instead != NULL) {
		progressed++;
		instead(context, until);
		return;
	}
	if (idle || (until == 0 && context->awaits_buffered == 0)) {
		return;
	}
	if (breaks) {
		cn_context_gone(context, &why_gone);
		return;
	}
	assert_true(until > 0);
	assert_int_equal(context->awaits_buffered, 1); /* what is not urgent is told, too */
	while (!context->requests[i].buffered) {
		assert_true(++i < CN_MSG_REQUESTS);
	}
	progressed++;
	cn_request_done(&context->requests[i], COLLNET_OK, "");
}

static void timed_out(struct collnet *context, const char *what)
{
	(void)what;
	cn_context_gone(context, &why_gone);
}

static void close_backend(struct collnet *context)
{
	(void)context;
	sem_post(&closed);
}

static const struct cn_backend backend = {
	.close = close_backend, .collect = collect, .progress = progress, .timed_out = timed_out
};

static int setup(void **state)
{
	(void)state;
	c = calloc(1, sizeof(*c));
	assert_non_null(c);
	c->backend = &backend;
	assert_int_equal(cn_threads_init(c, &c->err), COLLNET_OK);
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		c->requests[i].c = c;
		c->requests[i].number = i;
	}
	team = (struct collnet_team){ .c = c, .job = "job" };
	collected = progressed = 0;
	breaks = idle = false;
	instead = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cn_threads_fini(c);
	free(c);
	return 0;
}

static struct collnet_request *post(void)
{
	struct collnet_request *r = cn_request_get(c, &team, NULL, 1000, &c->err);

	assert_non_null(r);
	assert_int_equal(cn_request_admit(r, &team, &c->err), COLLNET_OK);
	return r;
}

/* The next call on the team gets this error, and leaves nothing. */
static void refused(int code, const char *part)
{
	struct collnet_request *r = cn_request_get(c, &team, NULL, 1000, &c->err);

	assert_non_null(r);
	assert_int_equal(cn_request_admit(r, &team, &c->err), code);
	assert_non_null(strstr(c->err.text, part));
	cn_request_put(r);
}

/* Of a call that is buffered, and has returned. */
static struct collnet_request *post_detached(void)
{
	struct collnet_request *r = post();

	cn_request_buffered(r);
	assert_int_equal(cn_request_finish(r), COLLNET_OK);
	return r;
}

static void cn_request_buffered__is_free_after_its_end(void **state)
{
	struct collnet_request *r = post_detached();

	(void)state;
	assert_true(cn_request_is_posted(r));
	assert_ptr_not_equal(post(), r);
	assert_int_equal(team.outstanding, 2);
	assert_int_equal(collected, 0);
	cn_request_done(r, COLLNET_OK, "");
	assert_false(cn_request_is_posted(r));
	assert_null(r->team); /* which may be destroyed before the request is used again */
	assert_int_equal(team.outstanding, 1);
	assert_int_equal(collected, 1);
	assert_ptr_equal(post(), r);
	cn_request_refused(r);
	assert_null(r->team);
}

static void cn_request_buffered__ends_before_it_is_collected(void **state)
{
	struct collnet_request *r = post();

	(void)state;
	cn_request_buffered(r);
	cn_request_done(r, COLLNET_OK, "");
	assert_int_equal(team.outstanding, 1);
	assert_int_equal(cn_request_finish(r), COLLNET_OK);
	assert_int_equal(team.outstanding, 0);
	assert_int_equal(collected, 1);
}

static void cn_request_buffered__its_error_is_of_the_next_call(void **state)
{
	struct collnet_request *r = post_detached(), *s = post_detached();

	(void)state;
	cn_request_done(r, COLLNET_ELIMIT, "too much");
	cn_request_done(s, COLLNET_ERANK, "and more");
	refused(COLLNET_ELIMIT, "too much");
	post();
}

/* The daemon is gone, as the completions that were taken on the way have shown. */
static void cn_request_buffered__not_after_its_end(void **state)
{
	struct collnet_request *r = post();

	(void)state;
	cn_request_done(r, COLLNET_EDAEMON, "gone");
	cn_request_buffered(r);
	assert_int_equal(team.buffered, 0);
	assert_int_equal(cn_request_finish(r), COLLNET_EDAEMON);
	assert_int_equal(r->state, CN_REQUEST_FREE);
	assert_int_equal(team.outstanding, 0);
}

static void cn_request_buffered__is_bounded(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		assert_true(cn_request_can_be_buffered(&team));
		post_detached();
	}
	assert_false(cn_request_can_be_buffered(&team));
}

static void cn_request_buffered__leaves_room_for_other_teams(void **state)
{
	struct collnet_team others[5] = { 0 };

	(void)state;
	for (int i = 0; i < 32; i++) {
		struct collnet_team *t = &others[i / 8];

		t->c = c;
		assert_true(cn_request_can_be_buffered(t));
		cn_request_buffered(cn_request_get(c, t, NULL, 1000, &c->err));
	}
	others[4].c = c;
	assert_false(cn_request_can_be_buffered(&others[4]));
	cn_request_done(&c->requests[0], COLLNET_OK, "");
	assert_true(cn_request_can_be_buffered(&others[4]));
}

static void cn_request_admit__waits_for_what_its_caller_does_not_know(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		post_detached();
	}
	for (int i = 3; i < COLLNET_OUTSTANDING_MAX; i++) {
		post();
	}
	for (uint32_t i = 1; i <= 3; i++) {
		post();
		assert_int_equal(progressed, i);
		assert_int_equal(c->awaits_buffered, 0);
		assert_int_equal(team.outstanding, COLLNET_OUTSTANDING_MAX);
	}
	refused(COLLNET_ELIMIT, "64 requests");
}

/* Posts this many operations, each of which ends before the next one. */
static void post_and_end(int n)
{
	for (int i = 0; i < n; i++) {
		struct collnet_request *r = post();

		cn_request_done(r, COLLNET_OK, "");
		assert_int_equal(cn_request_finish(r), COLLNET_OK);
	}
}

/* For what has ended for its caller alone, when 63 later ones have; until its own deadline. */
static void cn_request_admit__waits_for_the_oldest(void **state)
{
	struct collnet_request *first = post_detached(), *second, *r;

	(void)state;
	second = post_detached();
	post_and_end(COLLNET_OUTSTANDING_MAX - 2);
	post();
	assert_int_equal(progressed, 1);
	assert_false(first->buffered);
	idle = true;
	r = cn_request_get(c, &team, NULL, 20, &c->err);
	assert_int_equal(cn_request_admit(r, &team, &c->err), COLLNET_ELIMIT);
	assert_non_null(strstr(c->err.text, "has returned"));
	assert_true(cn_now() >= r->deadline && c->gone.code == COLLNET_OK);
	cn_request_put(r);
	assert_int_equal(team.outstanding, 2);
	cn_request_done(second, COLLNET_OK, "");
	post_and_end(COLLNET_OUTSTANDING_MAX - 1);
	refused(COLLNET_ELIMIT, "64 operations back");
}

/* The engine does not count what it refuses, nor what is prepared, but each start. */
static void cn_request_admit__counts_as_the_engine(void **state)
{
	struct collnet_request *r = post(), *last = post();

	(void)state;
	cn_request_done(last, COLLNET_ELIMIT, "no schedule");
	assert_int_equal(team.operations, 1);
	last = post();
	cn_fail(&c->err, COLLNET_EINVAL, "refused");
	assert_int_equal(cn_request_refused(last), COLLNET_EINVAL);
	assert_int_equal(team.operations, 1);
	r = cn_request_get(c, &team, NULL, 1000, &c->err);
	r->persistent = r->preparing = true;
	assert_int_equal(cn_request_admit(r, &team, &c->err), COLLNET_OK);
	cn_request_done(r, COLLNET_OK, "");
	assert_int_equal(cn_request_finish(r), COLLNET_OK);
	assert_int_equal(cn_request_restart(r, &c->err), COLLNET_OK);
	assert_int_equal(team.operations, 2);
}

/* All requests but the first are of other teams. */
static void fill_table(void)
{
	static struct collnet_team others[CN_MSG_REQUESTS / COLLNET_OUTSTANDING_MAX];

	for (uint32_t i = 1; i < CN_MSG_REQUESTS; i++) {
		struct collnet_team *t = &others[i / COLLNET_OUTSTANDING_MAX];

		if (i == 1 || i % COLLNET_OUTSTANDING_MAX == 0) {
			*t = (struct collnet_team){ .c = c, .job = "other" };
		}
		assert_non_null(cn_request_get(c, t, NULL, 1000, &c->err));
	}
}

static void cn_request_get__waits_for_a_place_in_the_table(void **state)
{
	(void)state;
	post_detached();
	fill_table();
	post();
	assert_int_equal(progressed, 1);
	assert_int_equal(c->awaits_buffered, 0);
	assert_null(cn_request_get(c, &team, NULL, 1000, &c->err));
	assert_non_null(strstr(c->err.text, "all 512 requests"));
}

static void cn_context_gone__ends_what_is_buffered(void **state)
{
	(void)state;
	post_detached();
	cn_context_gone(c, &why_gone);
	assert_int_equal(team.buffered, 0);
	assert_int_equal(team.outstanding, 0);
	assert_int_equal(collected, 1);
}

/* The context as before it was gone. */
static void post_again(void)
{
	c->gone.code = team.delayed.code = COLLNET_OK;
	post_detached();
}

/* Calls that wait for a free request, while the daemon ends. */
static void cn_context_gone__is_the_error_of_calls_that_wait(void **state)
{
	struct collnet_endpoint e = { .c = c, .endpoint = 1 };
	const struct collnet_address to = { .node = "h1", .endpoint = 1 };
	const struct collnet_team_options o = {
		.size = sizeof(o), .job = "new", .ranks = 2, .timeout_ms = 1000
	};
	const struct cn_origin from = { .parent = NULL };
	collnet_request_t *r;
	collnet_team_t *t;
	size_t bytes = 0;

	(void)state;
	c->timeout_ms = 1000;
	post_detached();
	fill_table();
	breaks = true;
	assert_int_equal(collnet_isend(&e, &to, NULL, 0, 0, &r), COLLNET_EDAEMON);
	post_again();
	assert_int_equal(collnet_irecv(&e, NULL, NULL, &bytes, 0, &r), COLLNET_EDAEMON);
	post_again();
	assert_int_equal(cn_team_open(c, &o, 0, &from, &t), COLLNET_EDAEMON);
}

/*
 * A caller may compute until after the deadline: the backend has two more seconds from the first
 * wait after it, and not from each one.
 */
static void collnet_wait__after_the_deadline(void **state)
{
	struct collnet_request *r = post();
	cn_time first;

	(void)state;
	idle = true;
	r->deadline = 1;
	first = cn_now();
	assert_int_equal(collnet_wait(r, 1), COLLNET_INPROGRESS);
	assert_true(r->late_since >= first && r->late_since <= cn_now());
	assert_true(last_until < first + 1000 * CN_MS);
	first = r->late_since;
	assert_int_equal(collnet_wait(r, 1), COLLNET_INPROGRESS);
	assert_int_equal(r->late_since, first);
	/* So long ago that these two seconds are over. */
	r->late_since = 2;
	assert_int_equal(collnet_wait(r, 1000), COLLNET_EDAEMON);
	/* The next request in its place begins anew. */
	c->gone.code = COLLNET_OK;
	assert_ptr_equal(post(), r);
	assert_int_equal(r->late_since, 0);
}

/* It succeeds, although its end, and the time that the backend has after that, are over. */
static void wait_past_its_end(void (*polled)(struct collnet *context, cn_time until))
{
	struct collnet_request *r = post();

	instead = polled;
	r->deadline = 1;
	r->late_since = 2;
	assert_int_equal(collnet_wait(r, 0), COLLNET_OK);
}

static void end_at_the_second(struct collnet *context, cn_time until)
{
	(void)until;
	if (progressed == 2) {
		cn_request_done(&context->requests[0], COLLNET_OK, "");
	}
}

/* What came while the program was stopped, or another thread polled, is not taken yet. */
static void collnet_wait__looks_once_more(void **state)
{
	(void)state;
	wait_past_its_end(end_at_the_second);
	assert_int_equal(progressed, 2);
}

static void stop_at_the_first(struct collnet *context, cn_time until)
{
	if (progressed == 1) {
		sleep(1);
	} else if (until > 0) {
		cn_request_done(&context->requests[0], COLLNET_OK, "");
	}
}

/* A program that was stopped gives the backend, which may have been as well, two more seconds. */
static void collnet_wait__after_a_stop(void **state)
{
	(void)state;
	wait_past_its_end(stop_at_the_first);
}

/* All are completed or none, also where one is listed twice. A deadline is not the reason. */
static void collnet_waitall__lists_a_request_once(void **state)
{
	collnet_request_t *r[] = { post(), NULL, NULL, post() };
	int statuses[4] = { 7, 7, 7, 7 };

	(void)state;
	cn_request_done(r[0], COLLNET_ETIMEOUT, "late");
	cn_request_done(r[3], COLLNET_ERANK, "gone");
	r[2] = r[0];
	for (int i = 0; i < 2; i++) {
		assert_int_equal(i == 0 ? collnet_waitall(4, r, statuses, 0)
					: collnet_testall(4, r, statuses),
				 COLLNET_EINVAL);
		assert_string_equal(collnet_error(c), "request 2 is listed twice");
		assert_true(r[0] != NULL && r[2] == r[0] && r[3] != NULL && statuses[0] == 7);
	}
	r[2] = NULL;
	assert_int_equal(collnet_waitall(4, r, statuses, 0), COLLNET_ERANK);
	assert_true(r[0] == NULL && r[3] == NULL && statuses[0] == COLLNET_ETIMEOUT);
	/* Persistent ones that are inactive are ignored, as often as they are listed. */
	r[0] = r[1] = post();
	r[0]->persistent = true;
	r[0]->state = CN_REQUEST_INACTIVE;
	assert_int_equal(collnet_waitall(2, r, statuses, 0), COLLNET_OK);
}

/* ---- the end of the process ----------------------------------------------------------- */

/* As collnet_team_destroy() of another thread does; the team's memory is another's then. */
static void destroy_team(struct collnet *context, cn_time until)
{
	(void)until;
	assert_int_equal(context->awaits_buffered, 1);
	cn_request_done(&context->requests[0], COLLNET_OK, "");
	context->requests[0].team = NULL;
	team.buffered = 1;
}

static void cn_wait_at_exit__of_a_team_that_is_destroyed(void **state)
{
	(void)state;
	post_detached();
	instead = destroy_team;
	cn_wait_at_exit(c, cn_now() + 1000 * CN_MS);
	assert_int_equal(progressed, 1);
	assert_int_equal(c->awaits_buffered, 0);
}

/*
 * Another process has an operation that is buffered, starts the thread and calls exit(); `instead`
 * ends it with a status. after_thread: once the thread has posted `inside`.
 */
static void exit_beside(void *(*thread)(void *), bool after_thread)
{
	pthread_t other;
	int status = 1;
	pid_t child;

	fflush(NULL);
	sem_init(&inside, 0, 0);
	sem_init(&closed, 0, 0);
	child = fork();
	if (child == 0) {
		if (cn_fork_watch(c, &c->err) != COLLNET_OK) {
			_exit(2);
		}
		post_detached();
		if (pthread_create(&other, NULL, thread, NULL) != 0) {
			_exit(2);
		}
		if (after_thread) {
			sem_wait(&inside);
		}
		exit(3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sem_destroy(&inside);
	sem_destroy(&closed);
}

/* Is in the library, until another thread waits for it. */
static void *be_inside(void *arg)
{
	cn_lock(c);
	sem_post(&inside);
	while (__atomic_load_n(&c->entering, __ATOMIC_RELAXED) == 0) {
		sched_yield();
	}
	pthread_mutex_unlock(&c->lock);
	return arg;
}

static void exit_well(struct collnet *context, cn_time until)
{
	(void)context;
	(void)until;
	_exit(0);
}

static void exit__waits_for_another_thread(void **state)
{
	(void)state;
	instead = exit_well;
	exit_beside(be_inside, true);
}

static void *close_context(void *arg)
{
	sem_wait(&inside);
	collnet_close(c);
	return arg;
}

/* Sleeps without the lock, while another thread closes the context; well, unless it closes the
 * backend. */
static void exit_unless_closed(struct collnet *context, cn_time until)
{
	struct timespec ts;

	(void)until;
	pthread_mutex_unlock(&context->lock);
	sem_post(&inside);
	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec++;
	_exit(sem_timedwait(&closed, &ts) == 0);
}

static void exit__keeps_the_backend(void **state)
{
	(void)state;
	instead = exit_unless_closed;
	exit_beside(close_context, false);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cn_request_buffered__is_free_after_its_end),
		TEST(cn_request_buffered__ends_before_it_is_collected),
		TEST(cn_request_buffered__its_error_is_of_the_next_call),
		TEST(cn_request_buffered__not_after_its_end),
		TEST(cn_request_buffered__is_bounded),
		TEST(cn_request_buffered__leaves_room_for_other_teams),
		TEST(cn_request_admit__waits_for_what_its_caller_does_not_know),
		TEST(cn_request_admit__waits_for_the_oldest),
		TEST(cn_request_admit__counts_as_the_engine),
		TEST(cn_request_get__waits_for_a_place_in_the_table),
		TEST(collnet_wait__after_the_deadline),
		TEST(collnet_wait__looks_once_more),
		TEST(collnet_wait__after_a_stop),
		TEST(collnet_waitall__lists_a_request_once),
		TEST(cn_wait_at_exit__of_a_team_that_is_destroyed),
		TEST(exit__waits_for_another_thread),
		TEST(exit__keeps_the_backend),
		TEST(cn_context_gone__ends_what_is_buffered),
		TEST(cn_context_gone__is_the_error_of_calls_that_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
