/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/client/socket.c, rings.c and daemon.c, through the public functions, against a daemon that is
 * this test: a child process that speaks lib/ipc/msg.h and misbehaves.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/daemon.h"
#include "fake_daemon.h"
#include "ipc/msg.h"
#include "util/clock.h"
#include "util/spin.h"

static uint32_t yields;

/* The library's calls come here, too. */
int sched_yield(void)
{
	yields++;
	return (int)syscall(SYS_sched_yield);
}

/* ---- the daemon ----------------------------------------------------------------------- */

enum behaviour {
	SILENT,	    /* reads nothing after the handshake */
	RESPONSIVE, /* to PING only */
	ASKED,	    /* responds to STATS after one PING */
	LATE,	    /* responds to STATS after BEFORE_STATS times PING */
	WRONG_TYPE, /* responds to STATS with a RANK_NAMES */
	WRONG_DONE, /* responds to PING, and completes a request that is not pending */
	WRONG_RING, /* responds to PING, and writes an impossible counter */
	DYING,	    /* completes what a client has outstanding, and ends */
	BESIDE, /* completes all requests after a while, and says that it runs on this processor */
	ELSEWHERE, /* the same, but does not say where it runs */
	UNSEALED,  /* hands out memory that it can cut short */
	ENDS,	   /* closes the connection after the handshake */
	REFUSES,
};

/* Peer timeouts, within which the daemon responds however busy the machine is. A context sends
 * three times PING in the second one, so that LATE takes longer than the 5 s for the WELCOME. */
#define PATIENT	     60000u
#define RESPONDED    3000u
#define BEFORE_STATS 6u

#define LONG 30000u /* a deadline that is not reached */

/* Completes every JOIN, with an error, when the client waits for it. */
static void complete_joins(int fd, struct cn_shm_ring *completions, const struct cn_msg_done *how)
{
	struct cn_msg_done done = *how;
	uint32_t how_asleep;
	union cn_msg m;

	while (recv(fd, &m, sizeof(m), 0) > 0) {
		if (m.head.type == CN_MSG_LEAVE) {
			fake_respond(fd, CN_MSG_REPLY, m.head.tag);
		} else if (m.head.type == CN_MSG_JOIN) {
			usleep(200);
			done.head.tag = m.head.tag;
			cn_shm_ring_put(completions, &done, sizeof(done));
			how_asleep = cn_shm_ring_wake(completions);
			if (how_asleep == CN_SHM_RING_ON_FUTEX) {
				syscall(SYS_futex, &completions->shared->asleep, FUTEX_WAKE, 1,
					NULL, NULL, 0);
			} else if (how_asleep != CN_SHM_RING_AWAKE) {
				fake_respond(fd, CN_MSG_EVENT, 0);
			}
		}
	}
	_exit(0);
}

/* Makes the rings, and does to them what the client is to find there. */
static void hand_out_rings(int fd, const struct cn_msg_region *request, enum behaviour b)
{
	struct cn_msg_done done = { .head = { .type = CN_MSG_DONE } };
	struct cn_shm_ring requests, completions;
	const int memory = fake_rings(request, b != UNSEALED, &requests, &completions);

	if (b == WRONG_DONE) {
		done.head.tag = CN_MSG_REQUESTS - 1;
		cn_shm_ring_put(&completions, &done, sizeof(done));
	} else if (b == WRONG_RING) {
		completions.shared->tail = CN_MSG_RING_SLOTS + 1;
	} else {
		done.status = COLLNET_EIFACE;
		strcpy(done.text, "the daemon had its reasons");
	}
	if (b == BESIDE) {
		cn_shm_ring_set_processor(&requests, sched_getcpu());
	}
	fake_hand_out(fd, request->head.tag, memory);
	if (b == BESIDE || b == ELSEWHERE) {
		complete_joins(fd, &completions, &done);
	}
	if (b == DYING) {
		union cn_msg m;

		/* The JOIN; the client may sleep by now, and sees the end of file only. */
		if (recv(fd, &m, sizeof(m), 0) != (ssize_t)sizeof(m.join)) {
			_exit(1);
		}
		usleep(100000);
		done.head.tag = m.head.tag;
		cn_shm_ring_put(&completions, &done, sizeof(done));
		_exit(0);
	}
}

static void serve(int fd, int behaviour)
{
	const enum behaviour b = (enum behaviour)behaviour;
	uint32_t pings = 0, stats = 0;
	union cn_msg m;

	if (b == ENDS) {
		_exit(0);
	}
	while (b != SILENT && recv(fd, &m, sizeof(m), 0) > 0) {
		if (m.head.type == CN_MSG_PING) {
			fake_respond(fd, CN_MSG_PONG, m.head.tag);
			if (++pings == (b == LATE ? BEFORE_STATS : 1) &&
			    (b == LATE || b == ASKED)) {
				fake_respond(fd, CN_MSG_STATS_REPLY, stats);
			}
		} else if ((b == LATE || b == ASKED) && m.head.type == CN_MSG_STATS) {
			stats = m.head.tag;
		} else if (b == WRONG_TYPE && m.head.type == CN_MSG_STATS) {
			fake_respond(fd, CN_MSG_RANK_NAMES, m.head.tag);
		} else if (m.head.type == CN_MSG_REGION) {
			hand_out_rings(fd, &m.region, b);
		}
	}
	pause();
}

/* ---- the program ---------------------------------------------------------------------- */

static int try_open(enum behaviour b, uint32_t peer_timeout_ms, collnet_t **out)
{
	return fake_open(serve, b, b == REFUSES ? "no more room" : NULL, peer_timeout_ms, out);
}

static collnet_t *open_context(enum behaviour b, uint32_t peer_timeout_ms)
{
	collnet_t *c = NULL;

	assert_int_equal(try_open(b, peer_timeout_ms, &c), COLLNET_OK);
	assert_string_equal(collnet_node_name(c), "here");
	return c;
}

/* Milliseconds until a join that nobody serves ends, with this status. */
static uint64_t join_fails(collnet_t *c, uint32_t timeout_ms, int status)
{
	struct collnet_team_options o;
	collnet_team_t *t = NULL;
	cn_time began = cn_now();

	collnet_team_options_init(&o);
	o.timeout_ms = timeout_ms;
	o.job = "job";
	o.rank = 0;
	o.ranks = 2;
	assert_int_equal(collnet_team_create(c, &o, &t), status);
	return (cn_now() - began) / CN_MS;
}

static void probe__gives_up_after_the_daemons_peer_timeout(void **state)
{
	/* The shorter one has ended before the longer one may, also where this process waits for a
	 * processor. */
	static const uint32_t timeouts[] = { 300, 4000 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		collnet_t *c = open_context(SILENT, timeouts[i]);
		uint64_t ms = join_fails(c, LONG, COLLNET_EDAEMON);

		assert_non_null(strstr(collnet_error(c), "does not respond"));
		assert_true(ms >= timeouts[i]);
		assert_true(ms < (i == 0 ? timeouts[1] : LONG));
		fake_end(c);
	}
}

/* With responses to PING, only the request's own deadline counts. */
static void probe__a_daemon_that_responds_is_not_given_up(void **state)
{
	collnet_t *c = open_context(RESPONSIVE, RESPONDED);
	uint64_t ms = join_fails(c, RESPONDED, COLLNET_EDAEMON);

	(void)state;
	assert_non_null(strstr(collnet_error(c), "did not end"));
	/* the deadline, and two seconds for the daemon to report it */
	assert_true(ms >= RESPONDED + 1900);
	fake_end(c);
}

/* A response may be due when another call has been planned, which takes longer than 5 s. */
static void request__response_of_a_daemon_that_is_late(void **state)
{
	struct collnet_stats s = { .size = sizeof(s) };
	collnet_t *c = open_context(LATE, RESPONDED);

	(void)state;
	assert_int_equal(collnet_get_stats(c, &s, 0), COLLNET_OK);
	fake_end(c);
}

/* It is asked soon, whatever its peer timeout: the caller has the context's lock. The daemon ends
 * before a third of that. */
static void request__of_a_daemon_with_a_long_peer_timeout(void **state)
{
	struct collnet_stats s = { .size = sizeof(s) };
	collnet_t *c = open_context(ASKED, CN_MSG_PEER_TIMEOUT_MAX);

	(void)state;
	assert_int_equal(collnet_get_stats(c, &s, 0), COLLNET_OK);
	fake_end(c);
}

static void request__unexpected_responses_end_the_context(void **state)
{
	struct collnet_stats s = { .size = sizeof(s) };
	collnet_t *c = open_context(WRONG_TYPE, PATIENT);

	(void)state;
	assert_int_equal(collnet_get_stats(c, &s, 0), COLLNET_EPROTO);
	assert_non_null(strstr(collnet_error(c), "unexpected response"));
	assert_int_equal(collnet_get_stats(c, &s, 0), COLLNET_EPROTO);
	fake_end(c);
}

static void *fails(void *c)
{
	collnet_team_t *t;
	struct collnet_team_options o = { .size = sizeof(o), .job = "j", .rank = 1, .ranks = 1 };

	return collnet_team_create(c, &o, &t) == COLLNET_EINVAL && collnet_error(c)[0] != '\0'
		       ? c
		       : NULL;
}

static void *has_no_error(void *c)
{
	return collnet_error(c)[0] == '\0' ? c : NULL;
}

/* The system gives the number of a thread that has ended to the next one. */
static void error__of_a_thread_that_has_ended(void **state)
{
	collnet_t *c = open_context(RESPONSIVE, PATIENT);
	pthread_t thread;
	void *out;

	(void)state;
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pthread_create(&thread, NULL, i % 2 == 0 ? fails : has_no_error,
						c),
				 0);
		assert_int_equal(pthread_join(thread, &out), 0);
		assert_ptr_equal(out, c);
	}
	fake_end(c);
}

static void rings__what_no_daemon_writes_ends_the_context(void **state)
{
	collnet_t *c = open_context(WRONG_DONE, PATIENT);

	(void)state;
	join_fails(c, LONG, COLLNET_EPROTO);
	assert_non_null(strstr(collnet_error(c), "not pending"));
	fake_end(c);
	c = open_context(UNSEALED, PATIENT);
	join_fails(c, LONG, COLLNET_ENOMEM);
	fake_end(c);
	c = open_context(WRONG_RING, PATIENT);
	join_fails(c, LONG, COLLNET_EPROTO);
	assert_non_null(strstr(collnet_error(c), "broke its ring"));
	fake_end(c);
}

/* The end of file does not hide what was completed before it. */
static void rings__completions_of_a_daemon_that_ended(void **state)
{
	collnet_t *c = open_context(DYING, RESPONDED);

	(void)state;
	join_fails(c, LONG, COLLNET_EIFACE);
	assert_non_null(strstr(collnet_error(c), "had its reasons"));
	fake_end(c);
}

/* The yields of a context whose waits are long, so that one in CN_SPIN_PROBE polls. On a busy
 * machine such a wait may be over when the context first looks: until one yields, or so many. */
static uint32_t yields_beside(enum behaviour b, uint32_t probes)
{
	collnet_t *c = open_context(b, PATIENT);
	const uint32_t before = yields;

	for (uint32_t i = 0; i < probes * CN_SPIN_PROBE && yields == before; i++) {
		join_fails(c, LONG, COLLNET_EIFACE);
	}
	fake_end(c);
	return yields - before;
}

/* To poll for a daemon that has no other processor than this one is in vain. */
static void rings__a_daemon_on_the_same_processor_is_not_polled_for(void **state)
{
	cpu_set_t all, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(yields_beside(BESIDE, 3), 0);
	assert_int_not_equal(yields_beside(ELSEWHERE, 300), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void request__a_closed_connection(void **state)
{
	struct collnet_stats s = { .size = sizeof(s) };
	collnet_t *c = open_context(ENDS, PATIENT);

	(void)state;
	assert_int_equal(collnet_get_stats(c, &s, 0), COLLNET_EDAEMON);
	assert_non_null(strstr(collnet_error(c), "went away"));
	fake_end(c);
}

/* The program closes a descriptor of the library, and opens a file under its number. */
static void request__a_descriptor_that_the_program_closed(void **state)
{
	struct collnet_stats s = { .size = sizeof(s) };

	(void)state;
	for (int reopened = 0; reopened < 2; reopened++) {
		collnet_t *c = open_context(RESPONSIVE, PATIENT);
		const int fd = ((struct cn_daemon_side *)c->impl)->fd;

		assert_int_equal(close(fd), 0);
		if (reopened) {
			assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), fd);
		}
		assert_int_equal(collnet_get_stats(c, &s, 0), COLLNET_EDAEMON);
		assert_non_null(strstr(collnet_error(c),
				       "collnetd on this node cannot be reached"));
		assert_non_null(strstr(collnet_error(c), "the program closed a descriptor"));
		assert_int_equal(fcntl(fd, F_GETFD) >= 0, reopened);
		if (reopened) {
			close(fd);
		}
		fake_end(c);
	}
}

static void open__refusals_and_missing_daemons(void **state)
{
	struct collnet_options o;
	collnet_t *c = NULL;

	(void)state;
	assert_int_equal(try_open(REFUSES, PATIENT, &c), COLLNET_ELIMIT);
	assert_non_null(strstr(collnet_error(NULL), "no more room"));
	fake_end(NULL);
	collnet_options_init(&o);
	o.mode = COLLNET_MODE_DAEMON;
	o.socket = "/nonexistent/socket";
	assert_int_equal(collnet_open(&o, &c), COLLNET_EDAEMON);
	assert_non_null(strstr(collnet_error(NULL), "no collnetd at /nonexistent/socket"));
	assert_null(c);
	o.mode = (enum collnet_mode)9;
	assert_int_equal(collnet_open(&o, &c), COLLNET_EINVAL);
	assert_non_null(strstr(collnet_error(NULL), "mode is 9: expected COLLNET_MODE_AUTO (0), "
						    "COLLNET_MODE_DAEMON (1) or "));
	o.mode = COLLNET_MODE_DAEMON;
	o.socket = "";
	assert_int_equal(collnet_open(&o, &c), COLLNET_EINVAL);
	assert_string_equal(collnet_error(NULL), "the path of the socket is empty");
	assert_null(c);
}

/* ---- a daemon that accepts nobody ------------------------------------------------------ */

static volatile sig_atomic_t interruptions;

/* After 20 s there are no more: whoever begins his wait again with every signal ends it, too late.
 */
static void interrupt(int signal)
{
	const struct itimerval none = { .it_value = { 0 } };

	(void)signal;
	if (++interruptions == 20) {
		setitimer(ITIMER_REAL, &none, NULL);
	}
}

static void open__a_full_backlog_and_signals(void **state)
{
	const struct itimerval every_second = { .it_interval = { .tv_sec = 1 },
						.it_value = { .tv_sec = 1 } };
	const struct itimerval none = { .it_value = { 0 } };
	const struct sigaction act = { .sa_handler = interrupt };
	struct collnet_options o;
	collnet_t *c = NULL;
	int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int waiting = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	cn_time ms;

	(void)state;
	unlink(fake_name.sun_path);
	assert_int_equal(bind(listening, (struct sockaddr *)&fake_name, sizeof(fake_name)), 0);
	assert_int_equal(listen(listening, 0), 0);
	assert_int_equal(connect(waiting, (struct sockaddr *)&fake_name, sizeof(fake_name)), 0);
	collnet_options_init(&o);
	o.mode = COLLNET_MODE_DAEMON;
	o.socket = fake_name.sun_path;
	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every_second, NULL), 0);
	ms = cn_now() / CN_MS;
	assert_int_equal(collnet_open(&o, &c), COLLNET_EDAEMON);
	ms = cn_now() / CN_MS - ms;
	setitimer(ITIMER_REAL, &none, NULL);
	signal(SIGALRM, SIG_DFL);
	assert_non_null(strstr(collnet_error(NULL), "does not respond"));
	assert_true(interruptions > 0);
	assert_true(ms >= 5000 && ms < 15000);
	close(waiting);
	close(listening);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe__gives_up_after_the_daemons_peer_timeout),
		cmocka_unit_test(probe__a_daemon_that_responds_is_not_given_up),
		cmocka_unit_test(request__response_of_a_daemon_that_is_late),
		cmocka_unit_test(request__of_a_daemon_with_a_long_peer_timeout),
		cmocka_unit_test(request__unexpected_responses_end_the_context),
		cmocka_unit_test(error__of_a_thread_that_has_ended),
		cmocka_unit_test(rings__what_no_daemon_writes_ends_the_context),
		cmocka_unit_test(rings__completions_of_a_daemon_that_ended),
		cmocka_unit_test(rings__a_daemon_on_the_same_processor_is_not_polled_for),
		cmocka_unit_test(request__a_closed_connection),
		cmocka_unit_test(request__a_descriptor_that_the_program_closed),
		cmocka_unit_test(open__refusals_and_missing_daemons),
		cmocka_unit_test(open__a_full_backlog_and_signals),
	};
	int status;

	fake_begin();
	status = cmocka_run_group_tests(tests, NULL, NULL);
	fake_finish();
	return status;
}
