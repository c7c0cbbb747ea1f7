/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes without memory, for tests that are linked with --wrap=malloc, calloc, realloc, free, mmap,
 * mmap64 and munmap: of all allocations of one node, one fails, each in turn. The call that needed
 * it fails and can be repeated, or the team fails on all nodes, or the transport makes up for it.
 * Nobody waits for a deadline, and nothing is leaked.
 */
#ifndef TEST_SCARCE_IMPL_H
#define TEST_SCARCE_IMPL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "coll/engine.h"
#include "node/poller.h"
#include "proto/wire.h"
#include "tests/unit/failing_memory_impl.h"
#include "tests/unit/hub.h"

#define HOSTS	3u
#define PROCS	5u
#define OWNER	1000u
#define MTU	576u
#define PAYLOAD (MTU - CN_WIRE_HEADER)
#define SECOND	(1000 * CN_MS)

/* Two ranks, one, and two. */
static const uint32_t node_of[PROCS] = { 0, 0, 1, 2, 2 };

/* ---- memory ----------------------------------------------------------------------------- */

/* Linked with --wrap: the allocations of one node are counted, and one of them fails. */
static bool armed;

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *p, size_t size);
int __wrap_munmap(void *p, size_t size);

/* Large pools have pages of their own. */
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	return fails() ? MAP_FAILED : got(__real_mmap(at, size, protection, flags, fd, offset));
}

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	return fails() ? MAP_FAILED : got(__real_mmap64(at, size, protection, flags, fd, offset));
}

int __wrap_munmap(void *p, size_t size)
{
	live--;
	return __real_munmap(p, size);
}

/* ---- nodes ------------------------------------------------------------------------------ */

struct waiter {
	struct cn_done done;
	uint32_t calls;
	int status;
	char text[CN_ERR_TEXT];
};

static struct {
	cn_time now;
	struct cn_hub *hub;
	struct cn_topo *topo;
	struct cn_engine_config config;
	struct cn_engine *engines[HOSTS];
	struct cn_poller *pollers[HOSTS];
} w;

static uint32_t victim;
static const char *shape;
static bool tasks;

static void on_done(struct cn_done *d, int status, const char *text)
{
	struct waiter *x = (struct waiter *)d;

	x->calls++;
	x->status = status;
	snprintf(x->text, sizeof(x->text), "%s", text);
}

static struct cn_done *begin_wait(struct waiter *x)
{
	*x = (struct waiter){ .done.fn = on_done };
	return &x->done;
}

static void count(uint32_t node)
{
	counted = armed && node == victim;
}

#define AT(node, call) (count(node), rc = (call), counted = false)

/* The call may have failed without memory. True: it has, and is to be repeated. */
static bool lacked(int rc, const struct cn_err *err)
{
	if (rc != COLLNET_OK && (rc != COLLNET_ENOMEM || strstr(err->text, "memory") == NULL)) {
		fail_msg("allocation %lld of node %u: a call returned %d: %s", (long long)failing,
			 victim, rc, err->text);
	}
	return rc != COLLNET_OK;
}

static void run_tasks(uint32_t node)
{
	struct cn_engine *e = w.engines[node];
	struct cn_task *x;

	while ((x = cn_engine_next_task(e)) != NULL) {
		count(node);
		cn_task_run(x);
		cn_engine_task_done(e, x);
		counted = false;
	}
}

static bool step(cn_time limit)
{
	cn_time next = CN_NEVER;
	int work = 0, rc;

	for (uint32_t i = 0; i < HOSTS; i++) {
		run_tasks(i);
		AT(i, cn_poller_poll(w.pollers[i], w.now));
		assert_true(rc >= 0);
		work += rc;
		next = cn_min_time(next, cn_poller_deadline(w.pollers[i]));
	}
	w.now = work > 0 || next <= w.now ? w.now + CN_US : next < limit ? next : limit;
	return w.now < limit;
}

static void wait_for(struct waiter *x, uint32_t n, const char *what)
{
	const cn_time limit = w.now + 20 * SECOND;
	uint32_t ended;

	do {
		ended = 0;
		for (uint32_t i = 0; i < n; i++) {
			ended += x[i].done.fn == NULL || x[i].calls > 0;
		}
	} while (ended < n && step(limit));
	for (uint32_t i = 0; i < n; i++) {
		if (x[i].done.fn != NULL && x[i].calls != 1) {
			fail_msg("allocation %lld of node %u: %s, %u of %u: told %u times",
				 (long long)failing, victim, what, i, n, x[i].calls);
		}
	}
}

/* True: all have succeeded; false: some have failed without memory, and the others find that their
 * team has. */
static bool succeeded(const struct waiter *x, uint32_t n, const char *what,
		      struct cn_member *const *of)
{
	bool all = true;

	for (uint32_t i = 0; i < n; i++) {
		if (x[i].status != COLLNET_OK &&
		    (x[i].status != COLLNET_ENOMEM || strstr(x[i].text, "memory") == NULL)) {
			fail_msg("allocation %lld of node %u: %s, %u of %u: %d, %s",
				 (long long)failing, victim, what, i, n, x[i].status, x[i].text);
		}
		all = all && x[i].status == COLLNET_OK;
	}
	for (uint32_t i = 0; !all && i < n; i++) {
		const cn_time limit = w.now + SECOND;
		struct cn_err err = { 0 };

		while (of[i] != NULL && x[i].done.fn != NULL &&
		       cn_member_check(of[i], &err) == COLLNET_OK) {
			if (!step(limit)) {
				fail_msg("allocation %lld of node %u: %s, %u of %u: is not told",
					 (long long)failing, victim, what, i, n);
			}
		}
	}
	return all;
}

static void start_node(uint32_t i)
{
	struct cn_link *l = cn_hub_port(w.hub, i);
	struct cn_node_config *c = &w.config.node;
	struct cn_err err;
	int rc;

	memcpy(c->mac, l->mac, 6);
	c->epoch++;
	snprintf(c->name, sizeof(c->name), "h%u", i); /* as in the topology */
	do {
		AT(i, cn_engine_new(&w.config, &w.engines[i], &err));
	} while (lacked(rc, &err));
	do {
		AT(i, cn_poller_new(l, w.engines[i], &w.pollers[i], &err));
	} while (lacked(rc, &err));
}

/* The nodes are there, with all their memory. */
static void begin(void)
{
	armed = false;
	w.now = SECOND;
	w.hub = cn_hub_new(HOSTS, MTU, 256);
	assert_non_null(w.hub);
	assert_true(shape == NULL || cn_topo_shape(shape, 100000000, 43, 1000000000, 45, &w.topo,
						   NULL) == COLLNET_OK);
	cn_engine_config_init(&w.config);
	w.config.node.epoch = 1;
	w.config.node.mtu = MTU;
	w.config.node.max_peers = 8;
	w.config.node.pool_frames = 64;
	w.config.topo = w.topo;
	w.config.task_min = tasks ? 1 : 0;
	for (uint32_t i = 0; i < HOSTS; i++) {
		start_node(i);
	}
}

static void stop_node(uint32_t i)
{
	cn_poller_free(w.pollers[i]);
	cn_engine_free(w.engines[i]);
}

static void end(void)
{
	for (uint32_t i = 0; i < HOSTS; i++) {
		stop_node(i);
	}
	cn_hub_free(w.hub);
	cn_topo_free(w.topo);
	w.topo = NULL;
}

/* ---- teams ------------------------------------------------------------------------------ */

static struct cn_member *members[PROCS];
static struct waiter waiters[PROCS];

static void leave(struct cn_member **of, uint32_t r)
{
	if (of[r] != NULL) {
		count(node_of[r]);
		cn_team_leave(of[r], w.now, false);
		counted = false;
		of[r] = NULL;
	}
}

static void leave_all(struct cn_member **of)
{
	for (uint32_t r = 0; r < PROCS; r++) {
		leave(of, r);
	}
}

static bool try_join(const char *job)
{
	struct cn_err err;
	int rc;

	for (uint32_t r = 0; r < PROCS; r++) {
		do {
			AT(node_of[r], cn_team_join(w.engines[node_of[r]], w.now, OWNER, job, r,
						    PROCS, w.now + 10 * SECOND,
						    begin_wait(&waiters[r]), &members[r], &err));
		} while (lacked(rc, &err));
	}
	wait_for(waiters, PROCS, job);
	return succeeded(waiters, PROCS, job, members);
}

/* A team that failed without memory is made once more. */
static void join(const char *job)
{
	if (!try_join(job)) {
		leave_all(members);
		assert_true(try_join(job));
	}
}

/* True if a call of rank r that returned this is to be repeated: it has lacked memory, or waits for
 * a task. */
static bool again(uint32_t r, int rc, const struct cn_err *err)
{
	if (rc == COLLNET_INPROGRESS) {
		run_tasks(node_of[r]);
		return true;
	}
	cn_engine_task_over(w.engines[node_of[r]]);
	return lacked(rc, err);
}

/* All ranks that are in the teams call a barrier, which succeeds. */
static void barrier(struct cn_member *const *of)
{
	const struct cn_coll_args a = { .op = CN_OP_BARRIER,
					.window = COLLNET_WINDOW_AUTO,
					.deadline = CN_NEVER };
	struct waiter x[PROCS] = { { .calls = 0 } };
	struct cn_err err;
	int rc;

	for (uint32_t r = 0; r < PROCS; r++) {
		if (of[r] == NULL) {
			continue;
		}
		do {
			AT(node_of[r], cn_coll_post(of[r], w.now, &a, begin_wait(&x[r]), &err));
		} while (again(r, rc, &err));
	}
	wait_for(x, PROCS, "barrier");
	assert_true(succeeded(x, PROCS, "barrier", of));
}

/* ---- the sweep -------------------------------------------------------------------------- */

/* Each allocation of the scenario fails in turn. Returns how many there are. */
static int64_t sweep(void (*scenario)(void))
{
	int64_t n = 0, before;

	do {
		before = live;
		allocations = 0;
		failing = n++;
		scenario();
		if (live != before) {
			fail_msg("allocation %lld of node %u: %lld blocks are left",
				 (long long)failing, victim, (long long)(live - before));
		}
	} while (allocations >= n);
	failing = -1;
	return n - 1;
}

static void for_each_victim(const char *on, bool by_tasks, void (*scenario)(void))
{
	shape = on;
	tasks = by_tasks;
	for (victim = 0; victim < HOSTS; victim++) {
		assert_true(sweep(scenario) > 0);
	}
}

#endif
