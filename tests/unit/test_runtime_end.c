/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/node/runtime.c: how a node ends, of itself or because of what happens to its interface. Exit
 * 77 where the system refuses namespaces.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "namespace.h"
#include "runtime_pair.h"
#include "util/clock.h"

/* The other node hears of the end at once, and why, and before it of what was queued. */
static void close__says_goodbye(void **state)
{
	const cn_time until = cn_now() + RUNTIME_LONG;
	struct cn_err err = { 0 };
	struct runtime_rank r[2];

	(void)state;
	for (uint32_t failed = 0; failed < 2; failed++) {
		runtime_open_as(runtime_on_lo("a"), &runtime_a);
		runtime_open_as(runtime_on_lo("b"), &runtime_b);
		runtime_join_both(r);
		if (failed) {
			cn_engine_fail(runtime_b.engine, cn_now(), COLLNET_EIFACE, "the reason");
		}
		runtime_b.bye = CN_BYE_PROCESS;
		cn_runtime_close(&runtime_b, RUNTIME_LONG);
		while (cn_peer_alive(runtime_peer_of(&runtime_a))) {
			assert_true(cn_now() < until);
			cn_poller_poll(runtime_a.poller, cn_now());
		}
		assert_int_equal(cn_member_check(r[0].member, &err),
				 failed ? COLLNET_EIFACE : COLLNET_EPEER);
		runtime_assert_words(err.text, failed ? "the reason" : "ended its process");
		cn_runtime_close(&runtime_a, RUNTIME_LONG);
	}
	assert_true(cn_now() < until);
}

/* A link that takes one frame at a time, and refuses each once although its descriptor is writable.
 */
static const struct cn_link_ops *real;
static uint32_t polls, refusals;
static bool refuses;

static size_t counting_recv(struct cn_link *l, struct cn_rx_frame *out, size_t max)
{
	polls++;
	return real->recv(l, out, max);
}

static int reluctant_send(struct cn_link *l, const struct cn_frame *frames, size_t n)
{
	refuses = !refuses;
	refusals += refuses;
	return refuses || n == 0 ? 0 : real->send(l, frames, 1);
}

/* A daemon's goodbyes, and what was queued before, leave a link that is full now and then; without
 * waiting. */
static void close__full_link_is_tried_again(void **state)
{
	static struct cn_link_ops reluctant;
	const cn_time until = cn_now() + RUNTIME_LONG;
	struct cn_err err = { 0 };
	struct runtime_rank r[2];

	(void)state;
	for (uint32_t blocked = 0; blocked < 2; blocked++) {
		runtime_open_as(runtime_on_lo("a"), &runtime_a);
		runtime_open_as(runtime_on_lo("b"), &runtime_b);
		runtime_join_both(r);
		cn_poller_set_event_driven(runtime_b.poller);
		real = runtime_b.link->ops;
		reluctant = *real;
		reluctant.recv = counting_recv;
		reluctant.send = reluctant_send;
		runtime_b.link->ops = &reluctant;
		cn_engine_fail(runtime_b.engine, cn_now(), COLLNET_EIFACE, "the reason");
		refuses = false;
		if (blocked) { /* and nobody has waited for it since */
			cn_poller_poll(runtime_b.poller, cn_now());
			assert_true(cn_poller_blocked(runtime_b.poller));
		}
		polls = refusals = 0;
		runtime_b.bye = CN_BYE_PROCESS;
		cn_runtime_close(&runtime_b, blocked ? 0 : RUNTIME_LONG);
		if (!blocked) {
			assert_true(refusals >= 2 && polls <= 4 * refusals);
		}
		while (cn_member_check(r[0].member, &err) == COLLNET_OK) {
			assert_true(cn_now() < until);
			cn_poller_poll(runtime_a.poller, cn_now());
		}
		runtime_assert_words(err.text, "the reason");
		cn_runtime_close(&runtime_a, RUNTIME_LONG);
	}
}

static void on_sent(struct cn_done *done, int status, const char *text)
{
	(void)done;
	(void)status;
	(void)text;
}

/* Until the other node has acknowledged all, or the time is over. */
static void drain__until_all_is_acknowledged(void **state)
{
	struct cn_done done = { on_sent };
	struct cn_endpoint *ep;
	struct cn_err err = { 0 };
	struct collnet_stats s;
	cn_time until;

	(void)state;
	runtime_open_as(runtime_on_lo("a"), &runtime_a);
	runtime_open_as(runtime_on_lo("b"), &runtime_b);
	runtime_discover();
	runtime_start_answering();
	assert_true(cn_runtime_drain(&runtime_a,
				     cn_now() + RUNTIME_LONG)); /* nothing is left to be sent */
	runtime_stop_answering();
	assert_int_equal(cn_endpoint_open(runtime_a.engine, RUNTIME_OWNER, RUNTIME_OWNER, 5, &ep,
					  &err),
			 COLLNET_OK);
	assert_int_equal(cn_endpoint_send(ep, cn_now(), "b", 5, "x", 1, CN_NEVER, &done, &err),
			 COLLNET_OK);
	until = cn_now() + 20 * CN_MS;
	assert_false(cn_runtime_drain(&runtime_a, until));
	assert_true(cn_now() >= until);
	runtime_start_answering();
	assert_true(cn_runtime_drain(&runtime_a, cn_now() + RUNTIME_LONG));
	runtime_stop_answering();
	cn_runtime_stats(&runtime_b, &s, false);
	assert_true(s.data_received > 0);
	cn_runtime_close(&runtime_b, RUNTIME_LONG);
	cn_runtime_close(&runtime_a, RUNTIME_LONG);
}

/* What is done to the interface of node a, or its socket, what is said on both nodes, and the
 * reason of the end. */
static const struct change {
	const char *command; /* NULL, "": the descriptor to receive, to send is closed */
	const char *words;
	int other; /* of the other node's rank */
	enum cn_bye bye;
} changes[] = {
	{ "ip link set a0 mtu 1400", "interface a0 was given an MTU of 1400 instead of 1500",
	  COLLNET_EIFACE, CN_BYE_DAEMON },
	{ "ip link set a0 address 02:00:00:00:00:77", "interface a0 was given another address",
	  COLLNET_EIFACE, CN_BYE_ADDRESS },
	{ "ip link delete a0", "interface a0 of node a disappeared", COLLNET_OK, CN_BYE_DAEMON },
	{ NULL, "the program closed a descriptor of the library", COLLNET_OK, CN_BYE_DAEMON },
	{ "", "the program closed a descriptor of the library", COLLNET_OK, CN_BYE_DAEMON },
};

static void check__says_what_happened(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const struct change *c = &changes[i];
		const cn_time until = cn_now() + RUNTIME_LONG;
		struct cn_err err = { 0 };
		struct runtime_rank r[2];
		cn_time now;
		int other = -1, fd = -1;

		assert_true(add_pair());
		runtime_open_as(runtime_on_veth("a"), &runtime_a);
		runtime_open_as(runtime_on_veth("b"), &runtime_b);
		runtime_join_both(r);
		now = cn_now();
		assert_int_equal(cn_runtime_check(&runtime_a, now, 1, &err), COLLNET_OK);
		if (c->command != NULL && c->command[0] != '\0') {
			assert_true(run_command("%s", c->command));
		} else { /* another file has its number */
			other = open("/dev/null", O_RDONLY | O_CLOEXEC);
			fd = c->command == NULL ? runtime_a.link->recv_fd : runtime_a.link->send_fd;
			assert_int_equal(dup2(other, fd), fd);
		}
		runtime_start_answering();
		if (strstr(c->words, "disappeared") ==
		    NULL) { /* the kernel is asked now and then */
			assert_int_equal(cn_runtime_check(&runtime_a, now + 99 * CN_MS, 1, &err),
					 COLLNET_OK);
			assert_int_equal(cn_runtime_check(&runtime_a, now + 100 * CN_MS, 1, &err),
					 COLLNET_EIFACE);
		} else {
			assert_int_equal(cn_runtime_check(&runtime_a, now, COLLNET_EIFACE, &err),
					 COLLNET_EIFACE);
		}
		runtime_stop_answering();
		runtime_assert_words(err.text, c->words);
		assert_int_equal(runtime_a.bye, c->bye);
		while (c->other != COLLNET_OK && cn_member_check(r[1].member, &err) == COLLNET_OK) {
			assert_true(cn_now() < until);
			cn_poller_poll(runtime_b.poller, cn_now());
		}
		if (c->other != COLLNET_OK) {
			assert_int_equal(cn_member_check(r[1].member, &err), c->other);
			runtime_assert_words(err.text, c->words);
		}
		cn_runtime_close(&runtime_a, 0);
		cn_runtime_close(&runtime_b, 0);
		if (fd >= 0) {
			assert_true(fcntl(fd, F_GETFD) >= 0);
			close(fd);
			close(other);
		}
		(void)run_command("ip link delete a0");
	}
}

/* Why others are silent; the kernel says so within seconds. */
static void check__finds_the_carrier_lost(void **state)
{
	const cn_time until = cn_now() + RUNTIME_LONG;
	struct cn_err err = { 0 };

	(void)state;
	assert_true(add_pair());
	runtime_open_as(runtime_on_veth("a"), &runtime_a);
	for (uint32_t lost = 0; lost < 3; lost++) {
		if (lost > 0) {
			assert_true(run_command("ip link set b0 %s", lost == 1 ? "down" : "up"));
		}
		do {
			assert_true(cn_now() < until);
			runtime_a.check_at = 0;
			assert_int_equal(cn_runtime_check(&runtime_a, cn_now(), 0, &err),
					 COLLNET_OK);
		} while (runtime_a.engine->no_carrier != (lost == 1));
	}
	cn_runtime_close(&runtime_a, 0);
	assert_true(run_command("ip link delete a0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close__says_goodbye),
		cmocka_unit_test(close__full_link_is_tried_again),
		cmocka_unit_test(drain__until_all_is_acknowledged),
		cmocka_unit_test(check__says_what_happened),
		cmocka_unit_test(check__finds_the_carrier_lost),
	};
	const char *why = runtime_namespace();

	if (why != NULL) {
		printf("skipped: %s\n", why);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
