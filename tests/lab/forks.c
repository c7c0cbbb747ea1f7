/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks that fork, as ranks of a team of two or more. The word says what happens to rank 1:
 *
 *   tidy    its child ends all that it has inherited, and the team goes on
 *   reopen  its child lives on, while the rank closes its context and opens another one
 *   killed  its child lives on, while the rank is killed: the others have the error before their
 * deadline
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collnet/collnet.h"

#define DEADLINE_MS 6000
#define CHILD_S	    10 /* a child that lives on, at most: beyond the deadline */

static collnet_t *c;
static collnet_team_t *t;
static uint32_t rank;

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "forks: rank %u, line %d: %s (last error: %s)\n", rank,    \
				__LINE__, #what, collnet_error(c));                                \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void open_team(const char *name)
{
	struct collnet_team_options o;

	CHECK(collnet_open(NULL, &c) == COLLNET_OK);
	collnet_team_options_init(&o);
	o.job = name;
	CHECK(collnet_team_create(c, &o, &t) == COLLNET_OK);
	rank = collnet_team_rank(t);
}

static int exchange(void)
{
	static unsigned char send[64 * 100], recv[64 * 100];
	const uint32_t ranks = collnet_team_size(t);
	struct collnet_coll_options o;
	int rc;

	collnet_coll_options_init(&o);
	o.timeout_ms = DEADLINE_MS;
	memset(send, (int)rank + 1, sizeof(send));
	rc = collnet_alltoall(t, send, recv, 100, &o);
	for (uint32_t r = 0; r < ranks && rc == COLLNET_OK; r++) {
		CHECK(recv[r * 100] == r + 1 && recv[r * 100 + 99] == r + 1);
	}
	return rc;
}

static void end_in_child(collnet_request_t *ended, collnet_request_t *request)
{
	collnet_t *own;
	struct collnet_stats s = { .size = sizeof(s) };

	CHECK(collnet_barrier(t, NULL) == COLLNET_EINVAL);
	CHECK(strstr(collnet_error(c), "fork()") != NULL);
	CHECK(collnet_wait(request, 0) == COLLNET_EINVAL);
	CHECK(collnet_wait(ended, 0) == COLLNET_EINVAL);
	CHECK(collnet_alloc(c, 100) == NULL);
	collnet_team_destroy(t);
	collnet_close(c);
	if (getenv("COLLNET_MODE") == NULL) { /* the interface is the parent's, in direct mode */
		CHECK(collnet_open(NULL, &own) == COLLNET_OK);
		CHECK(collnet_get_stats(own, &s, 0) == COLLNET_OK && s.nodes > 0);
		collnet_close(own);
	}
	_exit(0);
}

static void tidy(void)
{
	collnet_request_t *ended, *request;
	int status = 1;
	pid_t child;

	CHECK(collnet_ibarrier(t, NULL, &ended) == COLLNET_OK);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	CHECK(collnet_ibarrier(t, NULL, &request) == COLLNET_OK);
	if (rank == 1) {
		child = fork();
		if (child == 0) {
			end_in_child(ended, request);
		}
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	CHECK(collnet_wait(request, COLLNET_TIMEOUT_NONE) == COLLNET_OK);
	CHECK(collnet_wait(ended, 0) == COLLNET_OK);
	for (int i = 0; i < 5; i++) {
		CHECK(exchange() == COLLNET_OK);
	}
}

/* A child that lives on; its pid. */
static pid_t leave_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		sleep(CHILD_S);
		_exit(0);
	}
	CHECK(child > 0);
	return child;
}

static void reopen(void)
{
	pid_t child = rank == 1 ? leave_child() : 0;

	CHECK(exchange() == COLLNET_OK);
	collnet_team_destroy(t);
	collnet_close(c);
	open_team("second");
	CHECK(exchange() == COLLNET_OK);
	if (child != 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
}

static void killed(void)
{
	int rc;

	if (rank == 1) {
		(void)leave_child();
		raise(SIGKILL);
	}
	rc = exchange();
	CHECK(rc == COLLNET_ERANK || rc == COLLNET_EPEER);
	CHECK(strstr(collnet_error(c), "h1") != NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	open_team("first");
	CHECK(exchange() == COLLNET_OK);
	if (strcmp(what, "tidy") == 0) {
		tidy();
	} else if (strcmp(what, "reopen") == 0) {
		reopen();
	} else {
		killed();
	}
	printf("rank %u: %s: as it should\n", rank, what);
	fflush(stdout);
	collnet_team_destroy(t);
	collnet_close(c);
	return 0;
}
