/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/node/helper.c: tasks of an engine in a thread. */
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "crowd.h"
#include "node/helper.h"

#define HERE 140u

static void with_tasks(struct cn_engine_config *c)
{
	c->task_min = CN_TASK_MIN;
}

static int call(struct crowd *c, uint32_t rank)
{
	const struct cn_coll_args a = crowd_alltoall(c, rank, false);
	struct cn_err err;

	return crowd_call(c, rank, &a, &err);
}

/* Waits for the thread as an event loop does. */
static void wait_for(struct cn_helper *h)
{
	struct pollfd p = { .fd = cn_helper_fd(h), .events = POLLIN };

	assert_int_equal(poll(&p, 1, -1), 1);
}

static void helper__runs_tasks(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "crowd", HERE, 1, 1);
	struct cn_engine *e = w->engines[0];
	struct cn_helper *h = NULL;
	uint32_t tasks = 0;

	(void)state;
	assert_int_equal(cn_helper_new(&h, NULL), COLLNET_OK);
	cn_helper_submit(h, e); /* there is none */
	assert_false(cn_helper_reap(h, e));
	while (call(c, 0) == COLLNET_INPROGRESS) {
		cn_helper_submit(h, e);
		cn_helper_submit(h, e);
		engine_run(w, CN_MS); /* meanwhile the engine is used */
		wait_for(h);
		assert_true(cn_helper_reap(h, e));
		assert_false(cn_helper_reap(h, e));
		tasks++;
	}
	assert_int_equal(tasks, 2);
	crowd_call_all(c, 1, false);
	memset(c->rank[0].recv, 0, (size_t)c->ranks * CROWD_BYTES);
	engine_run(w, SECOND);
	crowd_check(c);
	crowd_free(c);
	cn_helper_submit(h, e); /* the memory */
	cn_helper_wait(h, e);
	cn_helper_wait(h, e);
	cn_helper_free(h);
	engine_fixture_free(w);
}

/* The engine ends with a task that is being run: that is not planned to its end. */
static void helper__is_waited_for(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "crowd", HERE, 1, 1);
	struct cn_helper *h = NULL;

	(void)state;
	assert_int_equal(cn_helper_new(&h, NULL), COLLNET_OK);
	assert_int_equal(call(c, 0), COLLNET_INPROGRESS);
	cn_helper_submit(h, w->engines[0]);
	wait_for(h);
	assert_true(cn_helper_reap(h, w->engines[0]));
	assert_int_equal(call(c, 0), COLLNET_INPROGRESS);
	cn_helper_submit(h, w->engines[0]);
	cn_helper_wait(h, w->engines[0]);
	assert_false(cn_helper_reap(h, w->engines[0]));
	assert_int_equal(w->engines[0]->plans, 0);
	crowd_free(c);
	cn_helper_free(h);
	engine_fixture_free(w);
	cn_helper_free(NULL);
}

/* The policy of the thread that runs a task while this one has a real-time priority. */
static int policy_of_task(void)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "crowd", HERE, 1, 1);
	struct cn_helper *h = NULL;
	struct dirent *d;
	DIR *threads;
	int policy = -1;

	assert_int_equal(cn_helper_new(&h, NULL), COLLNET_OK);
	assert_int_equal(call(c, 0), COLLNET_INPROGRESS);
	cn_helper_submit(h, w->engines[0]);
	wait_for(h);
	threads = opendir("/proc/self/task");
	assert_non_null(threads);
	while ((d = readdir(threads)) != NULL) {
		const int id = atoi(d->d_name);

		if (id > 0 && id != getpid()) {
			assert_int_equal(policy, -1); /* there is one */
			policy = sched_getscheduler(id);
		}
	}
	closedir(threads);
	assert_true(cn_helper_reap(h, w->engines[0]));
	crowd_free(c);
	cn_helper_free(h);
	engine_fixture_free(w);
	return policy;
}

static void helper__has_no_real_time_priority(void **state)
{
	const struct sched_param lowest = { .sched_priority = 1 }, none = { 0 };
	int policy;

	(void)state;
	if (sched_setscheduler(0, SCHED_RR, &lowest) != 0) {
		print_message("real-time priorities are not permitted here\n");
		skip();
	}
	policy = policy_of_task();
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	assert_int_equal(policy, SCHED_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(helper__runs_tasks),
		cmocka_unit_test(helper__is_waited_for),
		cmocka_unit_test(helper__has_no_real_time_priority),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
