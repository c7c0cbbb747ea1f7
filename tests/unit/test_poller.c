/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/node/poller.c: frames that the link does not take, a link that is gone, batches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "link/super_frame.h"
#include "node/poller.h"
#include "proto/node_impl.h"
#include "proto/wire.h"
#include "tests/unit/hub.h"

/* A link that takes `room` frames and then none, or fails; a frame comes at calls of recv, or as
 * many as there is room for at all of them. */
static struct {
	struct cn_link link; /* first: what the poller sees */
	uint32_t room;
	uint32_t asked, taken;	   /* calls of send, frames taken */
	int fail;		   /* what send returns instead; 0: nothing */
	uint32_t looked, comes_at; /* calls of recv; by number, from 1 on */
	uint32_t comes_until;	   /* the last of them; 0: there is one */
	bool floods;
	uint32_t senders;  /* in turn */
	uint32_t together; /* so many come at once, and the last one requests an acknowledgement */
	uint8_t last[CN_FRAME_HEAD];
} fake;

static size_t fake_recv(struct cn_link *l, struct cn_rx_frame *out, size_t max)
{
	static uint8_t zeros[CN_ETH_MIN];
	static uint8_t asks[CN_WIRE_HEADER];

	(void)l;
	assert_true(max > 0);
	fake.looked++;
	if (!fake.floods && fake.looked != fake.comes_at &&
	    (fake.looked < fake.comes_at || fake.looked > fake.comes_until)) {
		return 0;
	}
	zeros[11] = (uint8_t)(fake.looked % fake.senders);
	max = fake.floods ? max : fake.together > 0 ? fake.together : 1;
	for (size_t i = 0; i < max; i++) {
		out[i] = (struct cn_rx_frame){ .ether = zeros,
					       .data = zeros + CN_ETH_HEADER,
					       .len = CN_ETH_MIN - CN_ETH_HEADER };
	}
	if (fake.together > 0) {
		cn_wire_put(asks,
			    &(struct cn_wire){ .type = CN_TYPE_COLL, .flags = CN_FLAG_ACKREQ });
		out[max - 1].data = asks;
		out[max - 1].len = sizeof(asks);
	}
	return max;
}

static void fake_release(struct cn_link *l)
{
	(void)l;
}

static int fake_send(struct cn_link *l, const struct cn_frame *frames, size_t n)
{
	(void)l;
	fake.asked++;
	if (fake.fail != 0) {
		return fake.fail;
	}
	n = n < fake.room ? n : fake.room;
	fake.room -= (uint32_t)n;
	fake.taken += (uint32_t)n;
	if (n > 0) {
		memcpy(fake.last, frames[n - 1].head, sizeof(fake.last));
	}
	return (int)n;
}

static const struct cn_link_ops fake_ops = {
	.name = "fake",
	.recv = fake_recv,
	.release = fake_release,
	.send = fake_send,
};

static struct cn_engine *engine;
static struct cn_poller *poller;

/* A node that is about to say hello, on a full link. */
static int setup(void **state)
{
	struct cn_engine_config c;

	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.link.ops = &fake_ops;
	fake.senders = 1;
	fake.link.recv_fd = fake.link.send_fd = -1;
	cn_engine_config_init(&c);
	c.node.mac[0] = 2;
	c.node.mac[5] = 1;
	c.node.epoch = 1;
	c.node.mtu = 1500;
	c.node.max_peers = 4;
	c.node.pool_frames = 64;
	snprintf(c.node.name, sizeof(c.node.name), "n1");
	return cn_engine_new(&c, &engine, NULL) != COLLNET_OK ||
	       cn_poller_new(&fake.link, engine, &poller, NULL) != COLLNET_OK;
}

static int teardown(void **state)
{
	(void)state;
	cn_poller_free(poller);
	cn_engine_free(engine);
	return 0;
}

static void turn__what_is_not_taken_is_kept(void **state)
{
	(void)state;
	assert_int_equal(cn_poller_poll(poller, CN_MS), 0);
	assert_true(cn_poller_blocked(poller));
	assert_int_equal(fake.asked, 1);
	assert_int_equal(cn_poller_poll(poller, CN_MS), 0);
	assert_int_equal(fake.asked, 2);
	fake.room = 10;
	assert_true(cn_poller_poll(poller, CN_MS) > 0);
	assert_false(cn_poller_blocked(poller));
	/* It is the hello, whole: to everybody, from us. */
	assert_memory_equal(fake.last, "\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01", 12);
}

static void turn__a_link_that_is_gone(void **state)
{
	(void)state;
	fake.fail = COLLNET_EIFACE;
	assert_int_equal(cn_poller_poll(poller, CN_MS), COLLNET_EIFACE);
}

static void be_patient__asks_when_told_or_later(void **state)
{
	(void)state;
	cn_poller_set_event_driven(poller);
	cn_poller_poll(poller, 100 * CN_MS);
	assert_int_equal(fake.asked, 1);
	assert_true(cn_poller_deadline(poller) <= 110 * CN_MS);
	cn_poller_poll(poller, 101 * CN_MS);
	cn_poller_poll(poller, 109 * CN_MS);
	assert_int_equal(fake.asked, 1);
	cn_poller_writable(poller);
	cn_poller_poll(poller, 109 * CN_MS);
	assert_int_equal(fake.asked, 2);
	/* Nobody says anything: it does not wait for ever. */
	cn_poller_poll(poller, 118 * CN_MS);
	assert_int_equal(fake.asked, 2);
	fake.room = 10;
	assert_true(cn_poller_poll(poller, 119 * CN_MS) > 0);
	assert_int_equal(fake.asked, 3);
	assert_false(cn_poller_blocked(poller));
}

static void spin__sends_before_it_looks_again(void **state)
{
	(void)state;
	fake.room = 10;
	assert_true(cn_poller_spin(poller, CN_MS) > 0);
	assert_int_equal(fake.taken, 1);
	assert_int_equal(fake.looked, 1);
}

static void spin__looks_until_a_frame_comes(void **state)
{
	(void)state;
	fake.room = 10;
	cn_poller_poll(poller, CN_MS);
	fake.looked = 0;
	fake.comes_at = 5;
	assert_int_equal(cn_poller_spin(poller, CN_MS), 1);
	assert_int_equal(fake.looked, 5);
	assert_int_equal(cn_poller_spin(poller, CN_MS), 0);
	assert_true(fake.looked > 10 && fake.looked < 1000);
}

/* Between the polls, the engine is not called: it is asked where time or frames have changed it. */
static void again__asks_when_a_timer_is_due(void **state)
{
	(void)state;
	fake.room = 10;
	assert_int_equal(cn_poller_poll(poller, CN_MS), 1);
	cn_engine_node(engine)->hello_due = true; /* as a call would have it */
	assert_int_equal(cn_poller_poll_input(poller, CN_MS), 0);
	assert_int_equal(fake.taken, 1);
	assert_true(cn_poller_poll_input(poller, cn_poller_deadline(poller)) > 0);
	assert_int_equal(fake.taken, 2);
}

static void again__asks_when_a_frame_came(void **state)
{
	(void)state;
	fake.room = 10;
	cn_poller_poll(poller, CN_MS);
	cn_engine_node(engine)->hello_due = true;
	fake.comes_at = fake.looked + 1;
	assert_int_equal(cn_poller_poll_input(poller, CN_MS), 2);
	assert_int_equal(fake.taken, 2);
}

static void again__sends_what_was_not_taken(void **state)
{
	(void)state;
	cn_poller_poll(poller, CN_MS);
	assert_true(cn_poller_blocked(poller));
	fake.room = 10;
	assert_int_equal(cn_poller_poll_input(poller, CN_MS), 1);
	assert_false(cn_poller_blocked(poller));
}

/* A batch of few frames does not mean that no others wait; the acknowledgement that a timer waits
 * for can be among them. */
static void expire__after_all_that_is_there(void **state)
{
	(void)state;
	fake.room = 10;
	fake.comes_at = 1;
	fake.comes_until = 5;
	assert_true(cn_poller_poll(poller, CN_MS) > 5); /* and the hello */
	assert_int_equal(fake.looked, 6);
	fake.looked = 0;
	assert_int_equal(cn_poller_poll(poller, CN_MS), 1); /* no timer is due */
	assert_int_equal(fake.looked, 1);
}

/* A link that always has frames does not hold the timers up. */
static void expire__beside_a_flood(void **state)
{
	(void)state;
	fake.room = 10;
	fake.floods = true;
	for (int i = 0; i < 20; i++) {
		assert_true(cn_poller_poll(poller, CN_MS) >= 1024);
	}
	assert_int_equal(fake.taken, 1);
}

/* Once it has no more, they expire at once. */
static void expire__after_a_flood(void **state)
{
	(void)state;
	fake.room = 10;
	fake.floods = true;
	assert_true(cn_poller_poll(poller, CN_MS) >= 1024);
	assert_int_equal(fake.taken, 0);
	fake.floods = false;
	assert_int_equal(cn_poller_poll(poller, CN_MS), 1);
	assert_int_equal(fake.taken, 1);
}

/* What a long super-frame requests goes before the next one is received. */
static void answer__between_super_frames(void **state)
{
	(void)state;
	fake.room = 10;
	assert_int_equal(cn_poller_poll(poller, CN_MS), 1); /* the timers */
	fake.together = CN_SUPER_FRAME_LEAST;
	for (uint32_t poll = 1; poll <= 3; poll++) {
		fake.looked = 0;
		fake.comes_at = 1;
		fake.comes_until = 3;
		assert_int_equal(cn_poller_poll(poller, CN_MS), fake.together);
		assert_int_equal(fake.looked, 1);
	}
	/* those of several nodes share one, and so do short ones, and what is no super-frame */
	fake.looked = 0;
	fake.senders = 2;
	assert_int_equal(cn_poller_poll(poller, CN_MS), 3 * fake.together);
	assert_int_equal(fake.looked, 4);
	fake.looked = 0;
	fake.senders = 1;
	fake.together--;
	assert_int_equal(cn_poller_poll(poller, CN_MS), 3 * fake.together);
	assert_int_equal(fake.looked, 4);
}

/* ---- batches --------------------------------------------------------------------------- */

#define NODES 3u
#define BLOCK 100000u /* 69 frames and a part of one */

static uint32_t polls;
static uint32_t most; /* frames that a port takes at once; 0: all */

/* A port of a hub. It counts the super-frames that are sent, and that the batches of a poll make
 * two of. */
struct port {
	struct cn_link link; /* first: what the poller sees */
	struct cn_link *hub;
	struct cn_frame last; /* of the batch before */
	size_t length;	      /* frames of the super-frame that ended it */
	uint32_t poll;	      /* in which it was sent */
	uint32_t divided, data;
	uint32_t first;		/* the length of the first one */
	uint32_t frames, burst; /* in this poll, and the most in one */
};

static struct port *port_of(struct cn_link *l)
{
	return (struct port *)(void *)l;
}

static size_t port_recv(struct cn_link *l, struct cn_rx_frame *out, size_t max)
{
	const size_t n = cn_link_recv(port_of(l)->hub, out, max);

	for (size_t i = 0; i < n; i++) {
		out[i].encapsulation = CN_ENCAPSULATION_UDP;
	}
	return n;
}

static void port_release(struct cn_link *l)
{
	cn_link_release(port_of(l)->hub);
}

static int port_send(struct cn_link *l, const struct cn_frame *frames, size_t n)
{
	struct port *p = port_of(l);
	struct cn_frame pair[2] = { p->last, frames[0] };

	n = most == 0 || n < most ? n : most;
	p->frames = p->poll == polls ? p->frames + (uint32_t)n : (uint32_t)n;
	p->burst = p->frames > p->burst ? p->frames : p->burst;
	p->divided += most == 0 && p->poll == polls && p->length < CN_SUPER_FRAME_MAX &&
		      frames[0].payload_len > 0 && cn_super_frame_length(pair, 2, SIZE_MAX) == 2;
	for (size_t at = 0; at < n; at += p->length) {
		p->length = cn_super_frame_length(frames + at, n - at, SIZE_MAX);
		p->data += p->length > 1;
		if (p->first == 0 && frames[at].payload_len > 1000) {
			p->first = (uint32_t)p->length;
		}
	}
	p->last = frames[n - 1];
	p->poll = polls;
	return cn_link_send(p->hub, frames, n);
}

static const struct cn_link_ops port_ops = {
	.name = "port",
	.recv = port_recv,
	.release = port_release,
	.send = port_send,
};

static uint32_t done;

static void is_done(struct cn_done *d, int status, const char *text)
{
	(void)d;
	(void)text;
	assert_int_equal(status, COLLNET_OK);
	done++;
}

static struct {
	struct cn_hub *hub;
	struct port ports[NODES];
	struct cn_engine *engines[NODES];
	struct cn_poller *pollers[NODES];
	struct cn_member *members[NODES];
	struct cn_done done[NODES];
	cn_time now;
	uint32_t n, ended; /* nodes; operations and joins, of all of them */
} team;

/* Polls the nodes in turn until all have ended what they began. */
static void end_all(void)
{
	team.ended += team.n;
	for (uint32_t turn = 0; done < team.ended; turn++, team.now += 20 * CN_US) {
		assert_true(turn < 1000000);
		polls++;
		assert_true(cn_poller_poll(team.pollers[turn % team.n], team.now) >= 0);
	}
}

static void start_team_on(uint32_t n, uint64_t rate)
{
	memset(&team, 0, sizeof(team));
	team.hub = cn_hub_new(n, 1500, 4096);
	team.now = CN_MS;
	team.n = n;
	done = most = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct port *port = &team.ports[i];
		struct cn_engine_config c;

		cn_engine_config_init(&c);
		c.node.epoch = i + 1;
		c.node.mtu = 1500;
		c.node.encapsulation = CN_ENCAPSULATION_UDP;
		c.rate = rate;
		snprintf(c.node.name, sizeof(c.node.name), "n%u", i);
		port->hub = cn_hub_port(team.hub, i);
		memcpy(c.node.mac, port->hub->mac, 6);
		port->link.ops = &port_ops;
		team.done[i] = (struct cn_done){ is_done };
		assert_int_equal(cn_engine_new(&c, &team.engines[i], NULL), COLLNET_OK);
		assert_int_equal(cn_poller_new(&port->link, team.engines[i], &team.pollers[i],
					       NULL),
				 COLLNET_OK);
		assert_int_equal(cn_team_join(team.engines[i], team.now, 1, "job", i, n, CN_NEVER,
					      &team.done[i], &team.members[i], NULL),
				 COLLNET_OK);
	}
	end_all();
}

static void start_team(uint32_t n)
{
	start_team_on(n, 0);
}

static void post(uint32_t i, const struct cn_coll_args *a)
{
	assert_int_equal(cn_coll_post(team.members[i], team.now, a, &team.done[i], NULL),
			 COLLNET_OK);
}

static void end_team(void)
{
	for (uint32_t i = 0; i < team.n; i++) {
		cn_poller_free(team.pollers[i]);
		cn_engine_free(team.engines[i]);
	}
	cn_hub_free(team.hub);
}

static void batch__ends_with_a_super_frame(void **state)
{
	static uint8_t send[NODES][NODES * BLOCK], recv[NODES][NODES * BLOCK];

	(void)state;
	start_team(NODES);
	for (uint32_t round = 1; round < 8; round++) {
		most = round == 7 ? 5 : 0; /* the rest is kept again and again */
		for (uint32_t i = 0; i < NODES; i++) {
			memset(send[i], (int)i + 1, sizeof(send[i]));
			post(i, &(struct cn_coll_args){
					.op = CN_OP_ALLTOALL,
					.window = COLLNET_WINDOW_OFF,
					.bytes = BLOCK,
					.send = send[i],
					.recv = recv[i],
					.deadline = CN_NEVER,
				});
		}
		end_all();
	}
	for (uint32_t i = 0; i < NODES; i++) {
		for (uint32_t k = 0; k < NODES; k++) {
			assert_int_equal(recv[i][k * BLOCK], k + 1);
			assert_int_equal(recv[i][(k + 1) * BLOCK - 1], k + 1);
		}
		/* a block is two, or more */
		assert_true(team.ports[i].data >= 7 * 2 * (NODES - 1));
		assert_int_equal(team.ports[i].divided, 0);
	}
	end_team();
}

static void collective(enum cn_op_kind op, uint32_t window, uint64_t bytes)
{
	static uint8_t send[NODES][NODES * BLOCK], recv[NODES][NODES * BLOCK];

	for (uint32_t i = 0; i < team.n; i++) {
		post(i, &(struct cn_coll_args){
				.op = op,
				.window = window,
				.bytes = bytes,
				.send = send[i],
				.recv = op == CN_OP_BCAST && i == 0 ? send[i] : recv[i],
				.deadline = CN_NEVER,
			});
	}
	end_all();
}

/* The length of the first super-frame that a node sends in an operation with root 0 on n nodes,
 * when the congestion window has grown. */
static uint32_t first_length(enum cn_op_kind op, uint32_t n, uint32_t window, uint64_t bytes)
{
	struct port *p = &team.ports[op == CN_OP_BCAST ? 0 : 1];

	start_team(n);
	collective(op, COLLNET_WINDOW_OFF, BLOCK);
	collective(op, COLLNET_WINDOW_OFF, BLOCK);
	p->first = 0;
	collective(op, window, bytes);
	end_team();
	return p->first;
}

/* A window that closes is sent by halves, unless these are short, or many send to one. */
static void batch__of_half_a_window(void **state)
{
	const uint32_t least = CN_SUPER_FRAME_LEAST;

	(void)state;
	assert_int_equal(first_length(CN_OP_BCAST, 2, 2 * least, BLOCK), least);
	assert_int_equal(first_length(CN_OP_BCAST, 2, 40, BLOCK), 20);
	assert_int_equal(first_length(CN_OP_BCAST, 2, 2 * least - 2, BLOCK), 2 * least - 2);
	assert_int_equal(first_length(CN_OP_BCAST, 2, 40, 40 * 1000), 28); /* all of it */
	assert_int_equal(first_length(CN_OP_BCAST, 2, COLLNET_WINDOW_OFF, BLOCK),
			 CN_SUPER_FRAME_MAX);
	assert_int_equal(first_length(CN_OP_GATHER, 2, 2 * least, BLOCK), least);
	assert_true(first_length(CN_OP_GATHER, 3, 2 * least, BLOCK) > least);
}

/* The most frames that a poll of node 0 sends in a broadcast, with polls that end after bursts. */
static uint32_t longest_burst(uint64_t rate)
{
	struct port *p = &team.ports[0];

	start_team_on(NODES, rate);
	for (uint32_t i = 0; i < NODES; i++) {
		cn_poller_set_bursts(team.pollers[i]);
	}
	p->burst = 0;
	collective(CN_OP_BCAST, COLLNET_WINDOW_OFF, BLOCK);
	collective(CN_OP_BCAST, COLLNET_WINDOW_OFF, BLOCK);
	end_team();
	return p->burst;
}

static void burst__is_half_a_millisecond_of_the_link(void **state)
{
	(void)state;
	assert_int_equal(longest_burst(20000000), 1);
	assert_int_equal(longest_burst(100000000), 4);
	/* Where it would be a super-frame or more, a poll sends what there is. */
	assert_true(longest_burst(10000000000) > CN_SUPER_FRAME_MAX);
	assert_true(longest_burst(0) > CN_SUPER_FRAME_MAX);
}

/* The rest waits for no frame and for no timer. */
static void burst__more_follows_at_once(void **state)
{
	static uint8_t send[BLOCK];
	uint32_t bursts = 0;

	(void)state;
	start_team_on(NODES, 20000000);
	cn_poller_set_bursts(team.pollers[0]);
	post(0, &(struct cn_coll_args){ .op = CN_OP_BCAST,
					.window = COLLNET_WINDOW_OFF,
					.bytes = 3000,
					.send = send,
					.recv = send,
					.deadline = CN_NEVER });
	polls++;
	assert_true(cn_poller_poll(team.pollers[0], team.now) > 0);
	while (cn_poller_has_more(team.pollers[0])) {
		assert_true(++bursts < 100);
		polls++;
		cn_poller_poll_input(team.pollers[0], team.now);
	}
	assert_true(bursts >= 3); /* the data are six frames, or three and a copy */
	assert_int_equal(team.ports[0].frames, 1);
	assert_int_equal(cn_poller_poll_input(team.pollers[0], team.now), 0);
	end_team();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(turn__what_is_not_taken_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(turn__a_link_that_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(be_patient__asks_when_told_or_later, setup,
						teardown),
		cmocka_unit_test_setup_teardown(spin__sends_before_it_looks_again, setup, teardown),
		cmocka_unit_test_setup_teardown(spin__looks_until_a_frame_comes, setup, teardown),
		cmocka_unit_test_setup_teardown(again__asks_when_a_timer_is_due, setup, teardown),
		cmocka_unit_test_setup_teardown(again__asks_when_a_frame_came, setup, teardown),
		cmocka_unit_test_setup_teardown(again__sends_what_was_not_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(expire__after_all_that_is_there, setup, teardown),
		cmocka_unit_test_setup_teardown(expire__beside_a_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(expire__after_a_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(answer__between_super_frames, setup, teardown),
		cmocka_unit_test(batch__ends_with_a_super_frame),
		cmocka_unit_test(batch__of_half_a_window),
		cmocka_unit_test(burst__is_half_a_millisecond_of_the_link),
		cmocka_unit_test(burst__more_follows_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
