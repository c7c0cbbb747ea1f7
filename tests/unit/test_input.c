/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/input.c: what is dropped, how it is counted, and that nothing else happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"
#include "util/byteorder.h"

#define SEED 11u

struct counts {
	uint64_t bad, foreign, stale, received, bytes;
};

static struct pair *p;
static uint8_t frame[1600];
static size_t frame_len;

static int begin(void **state)
{
	(void)state;
	p = pair_new(2, SEED, NULL);
	return pair_run_up(p, 2000 * CN_MS) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	pair_free(p);
	return 0;
}

/* A frame from b to a as b would send it. */
static void from_b(uint8_t type, uint8_t flags, uint32_t seq, uint32_t ack, uint16_t len)
{
	struct cn_peer *b = pair_peer(p, 1, 0);
	struct cn_wire w = {
		.type = type,
		.flags = flags,
		.length = len,
		.session = b->session_out,
		.seq = seq,
		.ack = ack,
	};

	memset(frame, 0, sizeof(frame));
	memcpy(frame, p->nodes[0].config.mac, 6);
	memcpy(frame + 6, p->nodes[1].config.mac, 6);
	frame[12] = 0x88;
	frame[13] = 0xb5;
	cn_wire_put(frame + CN_ETH_HEADER, &w);
	frame_len = CN_HEAD + len < CN_ETH_MIN ? CN_ETH_MIN : CN_HEAD + (size_t)len;
}

/* A hello from b to a with b's epoch and name, in the name of this cluster. */
static void hello_of_b(uint8_t flags, uint32_t seq, uint16_t cluster)
{
	struct cn_hello h = {
		.epoch = pair_peer(p, 0, 1)->epoch, .mtu = 1500, .cluster = cluster, .name = "b"
	};
	uint8_t body[CN_HELLO_MAX];
	size_t len = cn_hello_put(body, &h);

	from_b(CN_TYPE_HELLO, flags, seq, 0, (uint16_t)len);
	memcpy(frame + CN_HEAD, body, len);
	if ((flags & CN_FLAG_UNICAST) == 0) {
		memset(frame, 0xff, 6);
	}
}

static struct counts taken(void)
{
	struct collnet_stats a = pair_stats(p, 0), b;
	uint8_t *copy = malloc(frame_len); /* of exact size, for the sanitizer */

	assert_non_null(copy);
	memcpy(copy, frame, frame_len);
	pair_input(p, 0, copy, frame_len);
	free(copy);
	b = pair_stats(p, 0);
	return (struct counts){
		.bad = b.bad_frames - a.bad_frames,
		.foreign = b.foreign_frames - a.foreign_frames,
		.stale = b.stale_frames - a.stale_frames,
		.received = b.frames_received - a.frames_received,
		.bytes = b.bytes_received - a.bytes_received,
	};
}

static void assert_counts(uint64_t bad, uint64_t foreign, uint64_t stale, uint64_t received)
{
	struct counts c = taken();

	assert_int_equal(c.bad, bad);
	assert_int_equal(c.foreign, foreign);
	assert_int_equal(c.stale, stale);
	assert_int_equal(c.received, received);
	assert_int_equal(c.bytes, received * (frame_len < CN_ETH_MIN ? CN_ETH_MIN : frame_len));
}

static void input__lengths(void **state)
{
	uint32_t expected = pair_peer(p, 0, 1)->rx.expected;

	(void)state;
	for (size_t len = CN_ETH_HEADER; len < CN_HEAD + 30; len++) {
		from_b(CN_TYPE_CONTROL, 0, expected, 0, 30);
		frame_len = len;
		assert_counts(len >= CN_ETH_HEADER + 2, len < CN_ETH_HEADER + 2, 0, 0);
	}
	assert_int_equal(pair_peer(p, 0, 1)->rx.expected, expected);
	from_b(CN_TYPE_CONTROL, 0, expected, pair_peer(p, 0, 1)->tx.queue.una, 30);
	assert_counts(0, 0, 0, 1);
	assert_int_equal(pair_peer(p, 0, 1)->rx.expected, expected + 1);
}

/* Longer than the MTU allows: a link would not bring it, but the transport counts on nothing. */
static void input__too_long(void **state)
{
	(void)state;
	from_b(CN_TYPE_CONTROL, 0, pair_peer(p, 0, 1)->rx.expected, 0, 1477);
	assert_counts(1, 0, 0, 0);
}

static void input__foreign_frames(void **state)
{
	(void)state;
	from_b(CN_TYPE_ACK, 0, 0, 0, 0);
	frame[CN_ETH_HEADER] = 0x45;
	assert_counts(0, 1, 0, 0);
	from_b(CN_TYPE_ACK, 0, 0, 0, 0);
	frame[5] = 77; /* for another machine */
	assert_counts(0, 1, 0, 0);
	from_b(CN_TYPE_ACK, 0, 0, 0, 0);
	frame[CN_ETH_HEADER + 2] = 0x22;
	assert_counts(0, 0, 0, 0); /* input__other_version */
	from_b(CN_TYPE_ACK, 0, 0, 0, 0);
	frame[6] |= 1; /* from a group */
	assert_counts(1, 0, 0, 0);
	from_b(CN_TYPE_ACK, 0, 0, 0, 0);
	memcpy(frame + 6, p->nodes[0].config.mac, 6); /* from ourselves */
	assert_counts(1, 0, 0, 0);
	from_b(CN_TYPE_ACK, 0, 0, 0, 0);
	frame[11] = 99; /* from an unknown address */
	assert_counts(0, 0, 1, 0);
	assert_int_equal(cn_node_peers(p->nodes[0].node), 1);
}

/* A hello of another cluster is counted as foreign, whatever else is right in it, and one of this
 * cluster is not. The cluster is known for a minute, and another one takes its place if nothing of
 * it comes for some seconds. A body that ends before its cluster is bad. */
static void input__other_cluster(void **state)
{
	static const uint8_t flags[] = { 0, CN_FLAG_SOLICIT, CN_FLAG_UNICAST | CN_FLAG_SOLICIT,
					 CN_FLAG_UNICAST | CN_FLAG_BYE };
	const uint32_t token = pair_peer(p, 0, 1)->bye_in;
	uint16_t other;

	(void)state;
	assert_false(cn_node_other_cluster(p->nodes[0].node, p->now, &other));
	for (size_t i = 0; i < sizeof(flags); i++) {
		hello_of_b(flags[i], token, 2);
		assert_counts(0, 1, 0, 0);
		hello_of_b(flags[i], token, 0x101);
		assert_counts(0, 1, 0, 0);
		assert_true(pair_is_up(p, 0, 1));
	}
	assert_true(cn_node_other_cluster(p->nodes[0].node, p->now, &other));
	assert_int_equal(other, 2); /* it goes on to come */
	assert_true(cn_node_other_cluster(p->nodes[0].node, p->now + 59000 * CN_MS, &other));
	assert_false(cn_node_other_cluster(p->nodes[0].node, p->now + 60000 * CN_MS, &other));
	p->now += 5000 * CN_MS;
	hello_of_b(0, 0, 0x101);
	assert_counts(0, 1, 0, 0);
	assert_int_equal(pair_stats(p, 0).other_heard, 1);
	assert_int_equal(pair_stats(p, 0).other_cluster, 0x101);
	assert_int_equal(pair_stats(p, 1).other_heard, 0);
	for (uint16_t len = 0; len < 18; len++) {
		hello_of_b(0, 0, 2);
		cn_put_be16(frame + CN_ETH_HEADER + 4, len);
		assert_counts(1, 0, 0, 1);
	}
	hello_of_b(0, 0, 1);
	assert_counts(0, 0, 0, 1);
	hello_of_b(CN_FLAG_UNICAST | CN_FLAG_BYE, token, 1);
	assert_counts(0, 0, 0, 1);
	assert_false(pair_is_up(p, 0, 1));
}

/* A frame of version 2 comes from 02:00:00:00:hi:lo. */
static void version_two(uint16_t from)
{
	from_b(CN_TYPE_HELLO, 0, 0, 0, 0);
	memset(frame + CN_HEAD - 12, 0xff, 12);
	frame[CN_ETH_HEADER + 2] = 0x21;
	frame[10] = (uint8_t)(from >> 8);
	frame[11] = (uint8_t)from;
	assert_counts(0, 0, 0, 0);
}

static uint32_t lines;

static void count_line(void *ctx, enum collnet_log_level level, const char *line)
{
	(void)ctx;
	(void)level;
	lines += strstr(line, "speaks wire version 2, this node 3") != NULL;
}

/* Counted, and the sender is known until a frame of its session comes, or a minute has passed. */
static void input__other_version(void **state)
{
	struct cn_node *n = p->nodes[0].node;
	struct cn_foreign_version s[CN_FOREIGN_VERSIONS];
	uint64_t before = pair_stats(p, 0).version_frames;

	(void)state;
	assert_int_equal(cn_node_foreign_versions(n, p->now, s), 0);
	p->now += CN_MS;
	version_two(2);
	version_two(0x777);
	assert_int_equal(pair_stats(p, 0).version_frames - before, 2);
	assert_int_equal(cn_node_foreign_versions(n, p->now, s), 2);
	assert_int_equal(s[0].what.version, 2);
	assert_ptr_equal(s[0].peer, pair_peer(p, 0, 1));
	assert_null(s[1].peer);
	assert_int_equal(s[1].mac[4], 7);
	assert_int_equal(cn_node_peers(n), 1);

	from_b(CN_TYPE_ACK, 0, pair_peer(p, 0, 1)->rx.expected, pair_peer(p, 0, 1)->tx.queue.una,
	       0);
	p->now += CN_MS;
	assert_counts(0, 0, 0, 1);
	assert_int_equal(cn_node_foreign_versions(n, p->now, s), 1);
	assert_null(s[0].peer);
	assert_int_equal(cn_node_foreign_versions(n, p->now + 59000 * CN_MS, s), 1);
	assert_int_equal(cn_node_foreign_versions(n, p->now + 60000 * CN_MS, s), 0);

	/* From ourselves, from a group, to another one. */
	before = pair_stats(p, 0).version_frames;
	from_b(CN_TYPE_ACK, 0, 0, 0, 0);
	frame[CN_ETH_HEADER + 2] = 0x22;
	frame[5] = 77;
	assert_counts(0, 1, 0, 0);
	from_b(CN_TYPE_ACK, 0, 0, 0, 0);
	frame[CN_ETH_HEADER + 2] = 0x22;
	frame[6] |= 1;
	assert_counts(1, 0, 0, 0);
	assert_int_equal(pair_stats(p, 0).version_frames, before);
}

/* A frame of the session, but in the other encapsulation: no part of it is used. */
static void input__other_encapsulation(void **state)
{
	struct cn_node *n = p->nodes[0].node;
	uint64_t version = pair_stats(p, 0).version_frames;
	uint64_t received = pair_stats(p, 0).frames_received;
	uint32_t expected = pair_peer(p, 0, 1)->rx.expected;
	struct cn_foreign_version s[CN_FOREIGN_VERSIONS];
	char text[CN_FOREIGN_VERSION_TEXT];
	struct cn_rx_frame f;

	(void)state;
	p->now += CN_MS;
	from_b(CN_TYPE_CONTROL, 0, expected, pair_peer(p, 0, 1)->tx.queue.una, 30);
	f = cn_rx_frame_raw(frame, frame_len);
	f.encapsulation = CN_ENCAPSULATION_UDP;
	cn_node_input(n, p->now, &f);
	assert_int_equal(pair_stats(p, 0).version_frames, version + 1);
	assert_int_equal(pair_stats(p, 0).frames_received, received);
	assert_int_equal(pair_peer(p, 0, 1)->rx.expected, expected);
	assert_int_equal(cn_node_foreign_versions(n, p->now, s), 1);
	assert_ptr_equal(s[0].peer, pair_peer(p, 0, 1));
	cn_foreign_version_text(n, &s[0].what, text);
	assert_string_equal(text, "uses encapsulation udp, this node raw");
	/* Of another cluster a hello is nobody's business. */
	for (uint16_t cluster = 2; cluster > 0; cluster--) {
		hello_of_b(0, 0, cluster);
		f = cn_rx_frame_raw(frame, frame_len);
		f.encapsulation = CN_ENCAPSULATION_UDP;
		cn_node_input(n, p->now, &f);
		assert_int_equal(pair_stats(p, 0).version_frames, version + (cluster == 1 ? 2 : 1));
	}
	from_b(CN_TYPE_CONTROL, 0, expected, pair_peer(p, 0, 1)->tx.queue.una, 30);
	p->now += CN_MS;
	assert_counts(0, 0, 0, 1);
	assert_int_equal(cn_node_foreign_versions(n, p->now, s), 0);
}

/* Invented addresses neither displace a node that repeats its hellos nor fill the log. */
static void input__other_version_forged(void **state)
{
	struct cn_node *n = p->nodes[0].node;
	struct cn_foreign_version s[CN_FOREIGN_VERSIONS];
	uint32_t count, found = 0;

	(void)state;
	lines = 0;
	collnet_set_log(count_line, NULL);
	for (uint32_t i = 0; i < 20000; i++) {
		p->now += CN_MS;
		if (i % 500 == 0) {
			version_two(0x777);
		}
		version_two((uint16_t)(0x1000 + i));
	}
	collnet_set_log(NULL, NULL);
	count = cn_node_foreign_versions(n, p->now, s);
	assert_int_equal(count, CN_FOREIGN_VERSIONS);
	for (uint32_t i = 0; i < count; i++) {
		found += s[i].mac[4] == 7 && s[i].mac[5] == 0x77;
	}
	assert_int_equal(found, 1);
	print_message("%u lines\n", lines);
	assert_true(lines >= 1 && lines <= CN_FOREIGN_VERSIONS + 2);
}

static void input__other_session(void **state)
{
	struct cn_peer *a = pair_peer(p, 0, 1);
	uint32_t expected = a->rx.expected;

	(void)state;
	from_b(CN_TYPE_CONTROL, 0, expected, a->tx.queue.una, 5);
	frame[CN_ETH_HEADER + 11] ^= 1;
	assert_counts(0, 0, 1, 0);
	assert_int_equal(a->rx.expected, expected);
}

/* A thousand frames of another session in a moment: one or two hellos, no storm. */
static void input__stale_storm(void **state)
{
	uint64_t before;

	(void)state;
	pair_run(p, 150 * CN_MS); /* beyond the hellos of the beginning */
	before = p->frames;
	for (int i = 0; i < 1000; i++) {
		from_b(CN_TYPE_CONTROL, 0, 0, 0, 5);
		frame[CN_ETH_HEADER + 11] ^= 1;
		(void)taken();
		pair_run(p, 10 * CN_US);
	}
	assert_uint_in_range(p->frames - before, 1, 4);
}

/* Acknowledgements of what was never sent, or of the past: ignored. */
static void input__impossible_acks(void **state)
{
	struct cn_peer *a = pair_peer(p, 0, 1);

	(void)state;
	p->cut[0][1] = true;
	pair_send(p, 0, 1, 10, 100);
	pair_run(p, CN_MS);
	for (int k = 0; k < 3; k++) {
		const uint8_t flags[] = { 0, CN_FLAG_NAK, CN_FLAG_RNR };
		const uint32_t acks[] = {
			a->tx.queue.end + 1,	       a->tx.queue.end + 1000, a->tx.queue.una - 1,
			a->tx.queue.una + 0x80000000u, a->tx.queue.una - 1000,
		};

		for (int i = 0; i < 5; i++) {
			from_b(CN_TYPE_ACK, flags[k], a->rx.expected, acks[i], 0);
			/* the past is of the session while it is less than a window away */
			if (acks[i] - (a->tx.queue.una - 1024) <= 1024) {
				assert_counts(0, 0, 0, 1);
			} else {
				assert_counts(0, 0, 1, 0);
			}
			assert_int_equal(a->tx.queue.end - a->tx.queue.una, 10);
			assert_int_equal(a->tx.queue.next, a->tx.queue.end);
			assert_true(a->tx.rnr_until == 0);
		}
	}
	from_b(CN_TYPE_ACK, 0, a->rx.expected, a->tx.queue.una + 4, 0);
	(void)taken();
	assert_int_equal(a->tx.queue.end - a->tx.queue.una, 6);
	assert_int_equal(p->flows[0][1].acked, 4);
	from_b(CN_TYPE_ACK, CN_FLAG_NAK, a->rx.expected, a->tx.queue.una, 0);
	(void)taken();
	assert_int_equal(a->tx.queue.next, a->tx.queue.una);
	from_b(CN_TYPE_ACK, 0, a->rx.expected, a->tx.queue.end,
	       0); /* goes past `next`, which went back */
	(void)taken();
	assert_int_equal(a->tx.queue.una, a->tx.queue.end);
	assert_int_equal(a->tx.queue.next, a->tx.queue.end);
}

/* Sequence numbers from nowhere: a gap or a duplicate, never data. */
static void input__any_sequence_number(void **state)
{
	struct cn_peer *a = pair_peer(p, 0, 1);
	uint32_t expected = a->rx.expected;
	uint64_t random = SEED, stale = pair_stats(p, 0).stale_frames;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		uint32_t seq = (uint32_t)cn_random(&random);

		if (seq != expected) {
			from_b(CN_TYPE_CONTROL, (uint8_t)cn_random(&random), seq, a->tx.queue.una,
			       5);
			(void)taken();
		}
	}
	assert_int_equal(a->rx.expected, expected);
	assert_int_equal(p->nodes[0].control_received, 0);
	assert_int_equal(pair_stats(p, 0).gaps + pair_stats(p, 0).duplicates +
				 pair_stats(p, 0).stale_frames - stale,
			 10000);
	assert_true(pair_stats(p, 0).gaps + pair_stats(p, 0).duplicates < 3);
}

static void input__bad_hellos(void **state)
{
	(void)state;
	from_b(CN_TYPE_HELLO, CN_FLAG_UNICAST, 0, 0, 20);
	frame[CN_HEAD + 17] = 1;
	assert_counts(1, 0, 0, 1); /* counted as a frame, and as a bad one */
	from_b(CN_TYPE_HELLO, CN_FLAG_BYE, 0, 0, 0);
	assert_counts(1, 0, 0, 1);
	from_b(CN_TYPE_HELLO, CN_FLAG_BYE, 0, 0, 1400);
	frame[CN_HEAD + 17] = 1;
	assert_counts(1, 0, 0, 1);
	assert_true(pair_is_up(p, 0, 1));
}

/* A goodbye is believed with the session's number and token, and in no other way. */
static void input__forged_goodbye(void **state)
{
	struct cn_peer *a = pair_peer(p, 0, 1);
	struct cn_hello h = { .epoch = a->epoch, .mtu = 1500, .cluster = 1, .name = "b" };
	uint8_t body[CN_HELLO_MAX];
	size_t len = cn_hello_put(body, &h);

	(void)state;
	for (int wrong = 0; wrong < 4; wrong++) {
		from_b(CN_TYPE_HELLO, CN_FLAG_BYE | CN_FLAG_UNICAST, a->bye_in + (wrong == 0), 0,
		       (uint16_t)len);
		memcpy(frame + CN_HEAD, body, len);
		if (wrong == 1) {
			frame[CN_ETH_HEADER + 11] ^= 1; /* another session */
		} else if (wrong == 2) {
			memset(frame, 0xff, 6); /* broadcast, with epoch and name alone */
			memset(frame + CN_ETH_HEADER + 8, 0, 8);
		} else if (wrong == 3) {
			frame[11] = 98; /* of an unknown address: nothing is kept */
		}
		assert_counts(0, 0, 1, 1);
		assert_true(pair_is_up(p, 0, 1));
	}
	assert_int_equal(cn_node_peers(p->nodes[0].node), 1);
	from_b(CN_TYPE_HELLO, CN_FLAG_BYE | CN_FLAG_UNICAST, a->bye_in, 0, (uint16_t)len);
	memcpy(frame + CN_HEAD, body, len);
	assert_counts(0, 0, 0, 1);
	assert_false(pair_is_up(p, 0, 1));
}

/* A broadcast that solicits hellos is replied to before the session is validated, and not after. */
static void input__broadcast_hello_that_wants(void **state)
{
	struct cn_peer *a = pair_peer(p, 0, 1);
	struct cn_hello h = { .mtu = 1500, .cluster = 1, .name = "b" };
	uint8_t body[CN_HELLO_MAX];
	struct cn_frame out;
	size_t len;

	(void)state;
	pair_run(p, 50 * CN_MS); /* hellos have their distance */
	h.epoch = a->epoch;
	len = cn_hello_put(body, &h);
	for (int knows = 0; knows < 2; knows++) {
		a->validated = knows;
		from_b(CN_TYPE_HELLO, CN_FLAG_SOLICIT, 0, 0, (uint16_t)len);
		memset(frame, 0xff, 6);
		memcpy(frame + CN_HEAD, body, len);
		assert_counts(0, 0, 0, 1);
		assert_int_equal(cn_node_output(p->nodes[0].node, p->now, &out), !knows);
		if (!knows) {
			assert_int_equal(out.head[CN_ETH_HEADER + 3], CN_FLAG_UNICAST);
		}
		pair_run(p, 30 * CN_MS);
		assert_true(pair_is_up(p, 0, 1));
	}
}

/* After a goodbye of this node input is ignored. */
static void input__after_our_goodbye(void **state)
{
	struct cn_peer *a = pair_peer(p, 0, 1);
	struct cn_frame out;

	(void)state;
	cn_node_bye(p->nodes[0].node, CN_BYE_DAEMON);
	for (int i = 0; i < 3; i++) {
		assert_true(cn_node_output(p->nodes[0].node, p->now, &out));
		assert_int_equal(out.head[CN_ETH_HEADER + 3], CN_FLAG_BYE | CN_FLAG_UNICAST);
		assert_memory_equal(out.head, a->mac, 6);
	}
	assert_false(cn_node_output(p->nodes[0].node, p->now, &out));
	from_b(CN_TYPE_CONTROL, 0, a->rx.expected, a->tx.queue.una, 5);
	assert_counts(0, 0, 0, 0);
	cn_node_expire(p->nodes[0].node, p->now + 10 * 1000 * CN_MS);
	assert_false(cn_node_output(p->nodes[0].node, p->now, &out));
}

/* Five frames are lost and, by a damaged frame, acknowledged: the session ends, though b answers.
 */
static void input__acks_of_what_b_lacks(void **state)
{
	struct cn_peer *b = pair_peer(p, 0, 1);

	(void)state;
	pair_run(p, 100 * CN_MS);
	pair_log_clear(p);
	p->gaps_allowed = true;
	cn_peer_expect(p->nodes[1].node, p->now, pair_peer(p, 1, 0), 1);
	p->cut[0][1] = true;
	pair_send(p, 0, 1, 5, 300);
	pair_run(p, CN_MS);
	from_b(CN_TYPE_ACK, 0, b->rx.expected, b->tx.queue.end, 0);
	pair_input(p, 0, frame, frame_len);
	assert_int_equal(p->flows[0][1].acked, 5);
	p->cut[0][1] = false;
	pair_run(p, 5000 * CN_MS);
	assert_string_equal(p->log, ""); /* frames may be late */
	pair_run(p, 2500 * CN_MS);
	assert_non_null(strstr(p->log, "a: down b acks\n"));
	assert_true(pair_run_up(p, 1000 * CN_MS));
	pair_exchange(p, 0, 1);
}

/* A late frame acknowledges less than others did before it. */
static void input__late_acks(void **state)
{
	struct cn_peer *b = pair_peer(p, 0, 1);
	uint32_t una;

	(void)state;
	pair_run(p, 100 * CN_MS);
	una = b->tx.queue.una;
	pair_exchange(p, 0, 1);
	for (int i = 0; i < 20; i++) {
		from_b(CN_TYPE_ACK, 0, b->rx.expected, una, 0);
		pair_input(p, 0, frame, frame_len);
		pair_run(p, 1000 * CN_MS);
		from_b(CN_TYPE_ACK, 0, b->rx.expected, b->tx.queue.una, 0);
		pair_input(p, 0, frame, frame_len);
		pair_run(p, 1000 * CN_MS);
	}
	assert_true(pair_is_up(p, 0, 1));
	assert_int_equal(p->nodes[0].downs, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(input__lengths),
		TEST(input__too_long),
		TEST(input__foreign_frames),
		TEST(input__other_cluster),
		TEST(input__other_version),
		TEST(input__other_encapsulation),
		TEST(input__other_version_forged),
		TEST(input__other_session),
		TEST(input__stale_storm),
		TEST(input__impossible_acks),
		TEST(input__acks_of_what_b_lacks),
		TEST(input__late_acks),
		TEST(input__any_sequence_number),
		TEST(input__bad_hellos),
		TEST(input__forged_goodbye),
		TEST(input__broadcast_hello_that_wants),
		TEST(input__after_our_goodbye),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
