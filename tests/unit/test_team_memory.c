/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/engine.c, wireup*.c, team*.c, split.c, endpoint*.c, flow.c without memory: nodes that
 * start, teams that form, divide and end, and messages, each allocation of a node failing in turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "scarce_impl.h"

#define LONGER (8 * PAYLOAD)

static struct cn_member *children[PROCS];

static void run(cn_time duration)
{
	const cn_time limit = w.now + duration;

	while (step(limit)) {
	}
}

/* ---- nodes and teams -------------------------------------------------------------------- */

/* What a node that had no memory knows of the network is what the others know. */
static void expect_same_network(void)
{
	const struct cn_team *t = members[0]->team;

	for (uint32_t r = 1; r < PROCS; r++) {
		const struct cn_team *o = members[r]->team;

		/* a node that had no memory for its own window has the smallest one */
		assert_true(o->engine->window != t->engine->window ||
			    (o->few == t->few && o->burst == t->burst));
		assert_true(o->rates_known == t->rates_known &&
			    o->port_carries == t->port_carries &&
			    o->frames_per_ms == t->frames_per_ms &&
			    o->exchanged_per_ms == t->exchanged_per_ms);
	}
}

static void form(void)
{
	begin();
	stop_node(victim);
	armed = true;
	start_node(victim);
	join("job");
	expect_same_network();
	barrier(members);
	leave_all(members);
	run(SECOND);
	join("job");
	barrier(members);
	leave_all(members);
	run(SECOND);
	end();
}

static void formation(void **state)
{
	(void)state;
	for_each_victim(NULL, false, form);
	for_each_victim("2x2", false, form);
}

/* ---- ranks that leave ------------------------------------------------------------------- */

/* Rank 2 leaves when there is no buffer, and no memory for one of its messages. The ranks of node 0
 * call alone, and are told. */
static void depart(void)
{
	const struct cn_coll_args a = { .op = CN_OP_BARRIER,
					.window = COLLNET_WINDOW_AUTO,
					.deadline = CN_NEVER };
	struct cn_node *n;
	struct cn_err err;
	int rc;

	begin();
	join("job");
	n = members[2]->team->transport->node;
	for (uint32_t i = 0; i < cn_node_peers(n); i++) {
		while (cn_node_control(n, cn_node_peer(n, i), "", 1) == COLLNET_OK) {
		}
	}
	armed = true;
	leave(members, 2);
	armed = false;
	memset(waiters, 0, sizeof(waiters));
	for (uint32_t r = 0; r < 2; r++) {
		AT(0, cn_coll_post(members[r], w.now, &a, begin_wait(&waiters[r]), &err));
		assert_int_equal(rc, COLLNET_OK);
	}
	wait_for(waiters, PROCS, "leave");
	for (uint32_t r = 0; r < 2; r++) {
		assert_true(waiters[r].status == COLLNET_ERANK ||
			    (waiters[r].status == COLLNET_ENOMEM &&
			     strstr(waiters[r].text, "for want of memory") != NULL));
	}
	leave_all(members);
	run(SECOND);
	join("next");
	barrier(members);
	leave_all(members);
	end();
}

static void departure(void **state)
{
	(void)state;
	shape = NULL;
	tasks = false;
	victim = node_of[2];
	assert_true(sweep(depart) >= 2);
}

/* ---- teams of teams --------------------------------------------------------------------- */

/* The ranks of new teams use them, or leave those that failed. */
static void use_children(void)
{
	struct cn_err err;

	for (uint32_t r = 0; r < PROCS; r++) {
		if (children[r] != NULL && cn_member_check(children[r], &err) != COLLNET_OK) {
			leave(children, r);
		}
	}
	barrier(children);
	if (cn_member_check(members[0], &err) == COLLNET_OK) {
		barrier(members);
	}
	leave_all(children);
	leave_all(members);
	run(SECOND);
}

static void divide(void)
{
	static const int32_t colors[PROCS] = { 0, 1, 0, 1, -1 };
	static const char *const jobs[] = { "none", "even", "odd" };
	struct waiter of[PROCS];
	struct cn_err err;
	int rc;

	begin();
	join("job");
	armed = true;
	for (uint32_t r = 0; r < PROCS; r++) {
		const struct cn_split_call call = { jobs[colors[r] + 1], CN_MAKING_SPLIT, colors[r],
						    -(int32_t)r };

		do {
			AT(node_of[r], cn_team_split(members[r], w.now, &call, w.now + 10 * SECOND,
						     begin_wait(&waiters[r]), &children[r], &err));
		} while (again(r, rc, &err));
	}
	wait_for(waiters, PROCS, "split");
	armed = false;
	for (int32_t color = -1; color < 2; color++) {
		memset(of, 0, sizeof(of));
		for (uint32_t r = 0; r < PROCS; r++) {
			if (colors[r] == color) {
				of[r] = waiters[r];
			}
		}
		(void)succeeded(of, PROCS, jobs[color + 1], children);
	}
	use_children();
	end();
}

static void derive(void)
{
	const uint64_t bits = 0x1d; /* all but rank 1 */
	struct cn_err err;
	uint32_t n = 0;
	int rc;

	begin();
	join("job");
	memset(waiters, 0, sizeof(waiters));
	armed = true;
	for (uint32_t r = 0; r < PROCS; r++) {
		if ((bits >> r & 1) == 0) {
			continue;
		}
		do {
			AT(node_of[r], cn_team_derive(members[r], w.now, "derived", n, 4, &bits,
						      w.now + 10 * SECOND, begin_wait(&waiters[r]),
						      &children[r], &err));
		} while (lacked(rc, &err));
		n++;
	}
	wait_for(waiters, PROCS, "derive");
	armed = false;
	(void)succeeded(waiters, PROCS, "derive", children);
	use_children();
	end();
}

static void teams_of_teams(void **state)
{
	(void)state;
	for_each_victim(NULL, false, divide);
	for_each_victim("2x2", true, divide);
	for_each_victim(NULL, false, derive);
	for_each_victim("2x2", false, derive);
}

/* ---- messages --------------------------------------------------------------------------- */

static uint8_t sent[LONGER], received_bytes[LONGER + 1];

static struct cn_endpoint *open_at(uint32_t node, uint16_t number)
{
	struct cn_endpoint *ep;
	struct cn_err err;
	int rc;

	do {
		AT(node, cn_endpoint_open(w.engines[node], OWNER, 1, number, &ep, &err));
	} while (lacked(rc, &err));
	return ep;
}

/* A message, which is sent again if the receiver had no memory for it. */
static void message(uint32_t from, struct cn_endpoint *out, uint32_t to, struct cn_endpoint *in,
		    uint64_t bytes, bool early)
{
	static const char *const names[HOSTS] = { "h0", "h1", "h2" };
	struct cn_received received;
	struct waiter x[2] = { { .calls = 0 } };
	struct cn_err err;
	bool again;
	int rc;

	memset(received_bytes, 0xcc, sizeof(received_bytes));
	if (!early) {
		AT(to, cn_endpoint_recv(in, w.now, received_bytes, sizeof(received_bytes), CN_NEVER,
					&received, begin_wait(&x[1]), &err));
		assert_int_equal(rc, COLLNET_OK);
	}
	do {
		AT(from, cn_endpoint_send(out, w.now, names[to], cn_endpoint_number(in), sent,
					  bytes, w.now + SECOND, begin_wait(&x[0]), &err));
		again = rc != COLLNET_ELIMIT ? lacked(rc, &err) : true;
		run(5 * CN_MS);
		again |= x[0].status == COLLNET_ELIMIT;
	} while (again);
	if (early) {
		AT(to, cn_endpoint_recv(in, w.now, received_bytes, sizeof(received_bytes), CN_NEVER,
					&received, begin_wait(&x[1]), &err));
		assert_int_equal(rc, COLLNET_OK);
	}
	wait_for(x, 2, "message");
	if (x[0].status != COLLNET_OK || x[1].status != COLLNET_OK || received.bytes != bytes ||
	    memcmp(sent, received_bytes, bytes) != 0 || received_bytes[bytes] != 0xcc) {
		fail_msg("allocation %lld of node %u: %llu bytes from %u to %u: %d, %s; %d, %s",
			 (long long)failing, victim, (unsigned long long)bytes, from, to,
			 x[0].status, x[0].text, x[1].status, x[1].text);
	}
}

static void messages(void)
{
	static const uint64_t sizes[] = { 0, 100, LONGER };
	const uint32_t other = (victim + 1) % HOSTS;
	struct cn_endpoint *ep[3];

	begin();
	join("job"); /* the nodes know each other */
	leave_all(members);
	run(SECOND);
	for (uint32_t i = 0; i < LONGER; i++) {
		sent[i] = (uint8_t)(i * 7 + (i >> 8));
	}
	armed = true;
	ep[0] = open_at(victim, 7);
	ep[1] = open_at(other, 8);
	ep[2] = open_at(victim, 9);
	for (int i = 0; i < 6; i++) {
		message(victim, ep[0], other, ep[1], sizes[i % 3], i < 3);
		message(other, ep[1], victim, ep[2], sizes[i % 3], i < 3);
		message(victim, ep[2], victim, ep[0], sizes[i % 3], i < 3);
	}
	for (int i = 0; i < 3; i++) {
		cn_endpoint_close(ep[i], w.now);
	}
	run(SECOND);
	end();
}

static void all_messages(void **state)
{
	(void)state;
	for_each_victim(NULL, false, messages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formation),
		cmocka_unit_test(departure),
		cmocka_unit_test(teams_of_teams),
		cmocka_unit_test(all_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
