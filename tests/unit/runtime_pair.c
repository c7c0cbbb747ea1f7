/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime_pair.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include <cmocka.h>

#include "namespace.h"
#include "util/clock.h"

struct cn_runtime runtime_a, runtime_b;

const char *runtime_namespace(void)
{
	const char *why = enter_namespace();

	if (why == NULL &&
	    (unshare(CLONE_NEWNS) != 0 || mount("none", "/run", "tmpfs", 0, NULL) != 0)) {
		why = "the run directory cannot be one of its own here";
	}
	return why;
}

struct cn_runtime_config runtime_on_lo(const char *node)
{
	return (struct cn_runtime_config){
		.interface = "lo",
		.link = "udp",
		.peers = "127.0.0.1:40000,127.0.0.1:40001",
		.node = node,
		.ethertype = (uint16_t)(RUNTIME_PORT + (node[0] == 'b')),
		.window = COLLNET_WINDOW_AUTO,
		.peer_timeout = RUNTIME_LONG,
	};
}

struct cn_runtime_config runtime_on_veth(const char *node)
{
	return (struct cn_runtime_config){
		.interface = node[0] == 'a' ? "a0" : "b0",
		.node = node,
		.ethertype = 0x88b5,
		.window = COLLNET_WINDOW_AUTO,
		.peer_timeout = RUNTIME_LONG,
	};
}

void runtime_open_as(struct cn_runtime_config c, struct cn_runtime *s)
{
	struct cn_err err = { 0 };

	if (cn_runtime_open(&c, s, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
}

const struct cn_peer *runtime_peer_of(const struct cn_runtime *s)
{
	struct cn_node *n = cn_engine_node(s->engine);

	return cn_node_peers(n) > 0 ? cn_node_peer(n, 0) : NULL;
}

static bool meets(const struct cn_runtime *s)
{
	return runtime_peer_of(s) != NULL && cn_peer_alive(runtime_peer_of(s));
}

void runtime_discover(void)
{
	const cn_time until = cn_now() + RUNTIME_LONG;

	while (!meets(&runtime_a) || !meets(&runtime_b)) {
		assert_true(cn_now() < until);
		cn_poller_poll(runtime_a.poller, cn_now());
		cn_poller_poll(runtime_b.poller, cn_now());
	}
}

static atomic_bool stopped;
static pthread_t thread;

static void *answer(void *unused)
{
	while (!atomic_load(&stopped)) {
		cn_poller_poll(runtime_b.poller, cn_now());
	}
	return unused;
}

void runtime_start_answering(void)
{
	atomic_store(&stopped, false);
	assert_int_equal(pthread_create(&thread, NULL, answer, NULL), 0);
}

void runtime_stop_answering(void)
{
	atomic_store(&stopped, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void on_joined(struct cn_done *done, int status, const char *text)
{
	struct runtime_rank *r = (struct runtime_rank *)(void *)done;

	r->calls++;
	r->status = status;
	(void)text;
}

void runtime_join(const struct cn_runtime *s, const char *job, uint32_t rank, uint32_t ranks,
		  struct runtime_rank *r)
{
	struct cn_err err = { 0 };

	*r = (struct runtime_rank){ .done = { on_joined } };
	if (cn_team_join(s->engine, cn_now(), RUNTIME_OWNER, job, rank, ranks, CN_NEVER, &r->done,
			 &r->member, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
}

void runtime_join_both(struct runtime_rank r[2])
{
	const cn_time until = cn_now() + RUNTIME_LONG;

	runtime_discover();
	runtime_join(&runtime_a, "job", 0, 2, &r[0]);
	runtime_join(&runtime_b, "job", 1, 2, &r[1]);
	while (r[0].calls == 0 || r[1].calls == 0) {
		assert_true(cn_now() < until);
		cn_poller_poll(runtime_a.poller, cn_now());
		cn_poller_poll(runtime_b.poller, cn_now());
	}
	assert_int_equal(r[0].status, COLLNET_OK);
	assert_int_equal(r[1].status, COLLNET_OK);
}

void runtime_assert_words(const char *text, const char *words)
{
	if (strstr(text, words) == NULL) {
		fail_msg("'%s' is not in: %s", words, text);
	}
}
