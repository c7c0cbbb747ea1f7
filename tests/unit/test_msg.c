/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/ipc/msg.c: every message at its exact length and bounds, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ipc/msg.h"
#include "sched/sched.h"

static const struct cn_msg_buffer_ref nowhere = { .region = CN_MSG_NO_REGION };

/* A message of each type that is right. */
static void make(union cn_msg *m, uint32_t type)
{
	memset(m, 0, sizeof(*m));
	m->head.type = type;
	m->head.tag = CN_MSG_REQUESTS - 1;
	switch (type) {
	case CN_MSG_HELLO:
		m->hello.magic = CN_MSG_MAGIC;
		break;
	case CN_MSG_REGION:
		m->region.bytes = 4096;
		break;
	case CN_MSG_JOIN:
		m->join.ranks = 1;
		m->join.timeout_ms = 1;
		strcpy(m->join.job, "job");
		break;
	case CN_MSG_COLL:
		m->coll.op = CN_OP_ALLTOALL;
		m->coll.timeout_ms = 1;
		m->coll.send = m->coll.recv = nowhere;
		break;
	case CN_MSG_START:
		m->start.timeout_ms = 1;
		break;
	case CN_MSG_SEND:
		m->send.to = 1;
		m->send.timeout_ms = 1;
		strcpy(m->send.node, "node");
		m->send.data = nowhere;
		break;
	case CN_MSG_RECV:
		m->recv.timeout_ms = 1;
		m->recv.data = nowhere;
		break;
	case CN_MSG_COMBINE:
		m->combine.left.buffer = m->combine.right.buffer = CN_BUF_SEND;
		m->combine.out.buffer = CN_BUF_SCRATCH;
		m->combine.operands = 1;
		break;
	case CN_MSG_JOINED:
		m->joined.ranks = m->joined.nodes = 1;
		break;
	case CN_MSG_RANK_NAMES:
		m->rank_names.ranks = 1;
		break;
	case CN_MSG_WELCOME:
		strcpy(m->welcome.node, "node");
		m->welcome.peer_timeout_ms = 1500;
		break;
	default:
		break;
	}
}

static bool from_daemon(uint32_t type)
{
	return type >= CN_MSG_WELCOME;
}

static bool ok(const union cn_msg *m)
{
	return cn_msg_check(m, cn_msg_size(m->head.type), from_daemon(m->head.type)) == NULL;
}

#define FOR_EACH_TYPE(type)                                                                        \
	for (uint32_t type = CN_MSG_HELLO; type <= CN_MSG_LAST_RESPONSE;                           \
	     type = type == CN_MSG_LAST_REQUEST ? CN_MSG_WELCOME : type + 1)

static void check__exact_length_and_side(void **state)
{
	static union cn_msg m;

	(void)state;
	FOR_EACH_TYPE(type)
	{
		size_t size = cn_msg_size(type);

		assert_true(size >= sizeof(struct cn_msg_head) && size <= sizeof(m));
		make(&m, type);
		assert_true(ok(&m));
		for (size_t len = 0; len <= sizeof(m); len++) {
			if (len != size) {
				assert_non_null(cn_msg_check(&m, len, from_daemon(type)));
			}
		}
		assert_non_null(cn_msg_check(&m, size, !from_daemon(type)));
		assert_non_null(cn_msg_check(&m, SIZE_MAX, from_daemon(type)));
	}
}

static void check__size_of_the_rings(void **state)
{
	static const struct {
		uint64_t bytes;
		bool good;
	} sizes[] = {
		{ CN_MSG_RINGS_BYTES / 4096 * 4096, false },
		{ (CN_MSG_RINGS_BYTES + 4095) / 4096 * 4096, true },
		{ (CN_MSG_RINGS_BYTES + CN_MSG_PAGE_MAX - 1) / CN_MSG_PAGE_MAX * CN_MSG_PAGE_MAX,
		  true },
		{ (CN_MSG_RINGS_BYTES + CN_MSG_PAGE_MAX + 4095) / 4096 * 4096, false },
		{ CN_MSG_BYTES, false },
	};
	static union cn_msg m;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		make(&m, CN_MSG_REGION);
		m.region.region = CN_MSG_RINGS;
		m.region.bytes = sizes[i].bytes;
		assert_int_equal(ok(&m), sizes[i].good);
	}
}

static void check__types_that_are_none(void **state)
{
	static const uint32_t types[] = { 0,
					  CN_MSG_LAST_REQUEST + 1,
					  CN_MSG_WELCOME - 1,
					  CN_MSG_LAST_RESPONSE + 1,
					  UINT32_MAX,
					  0x80000000u };
	static union cn_msg m;

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		make(&m, types[i]);
		assert_int_equal(cn_msg_size(types[i]), 0);
		for (size_t len = 0; len <= sizeof(m); len++) {
			assert_non_null(cn_msg_check(&m, len, false));
			assert_non_null(cn_msg_check(&m, len, true));
		}
	}
}

/* Sets a field to a value, expects the verdict. */
#define VERDICT(type, field, value, good)                                                          \
	do {                                                                                       \
		make(&m, type);                                                                    \
		m.field = (value);                                                                 \
		assert_int_equal(ok(&m), (good));                                                  \
	} while (0)

static void check__requests_within_bounds(void **state)
{
	static union cn_msg m;
	static const uint32_t requests[] = { CN_MSG_JOIN, CN_MSG_COLL, CN_MSG_SEND, CN_MSG_RECV,
					     CN_MSG_DONE };

	(void)state;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		VERDICT(requests[i], head.tag, CN_MSG_REQUESTS, false);
		VERDICT(requests[i], head.tag, UINT32_MAX, false);
	}
	VERDICT(CN_MSG_HELLO, hello.magic, 0, false);
	VERDICT(CN_MSG_HELLO, hello.version, UINT32_MAX, true);
	VERDICT(CN_MSG_REGION, region.region, CN_MSG_REGIONS - 1, true);
	VERDICT(CN_MSG_REGION, region.region, CN_MSG_RINGS + 1, false);
	VERDICT(CN_MSG_REGION, region.region, CN_MSG_RINGS, false); /* 4096 bytes are too few */
	VERDICT(CN_MSG_REGION, region.bytes, 0, false);
	VERDICT(CN_MSG_REGION, region.bytes, CN_MSG_BYTES_UNIT + 1, false);
	VERDICT(CN_MSG_REGION, region.bytes, CN_MSG_BYTES, true);
	VERDICT(CN_MSG_REGION, region.bytes, CN_MSG_BYTES + 1, false);
	VERDICT(CN_MSG_REGION, region.bytes, UINT64_MAX, false);
	VERDICT(CN_MSG_REGION, region.zero, 1, false);
	VERDICT(CN_MSG_UNREGION, unregion.region, CN_MSG_RINGS + 1, false);
	VERDICT(CN_MSG_LEAVE, leave.team, CN_MSG_TEAMS, false);
	VERDICT(CN_MSG_RANKS, ranks.team, CN_MSG_TEAMS, false);
	VERDICT(CN_MSG_RANKS, ranks.first, COLLNET_RANKS_MAX, false);
	VERDICT(CN_MSG_OPEN, open.endpoint, CN_MSG_ENDPOINTS, false);
	VERDICT(CN_MSG_OPEN, open.number, 65535, true);
	VERDICT(CN_MSG_OPEN, open.number, 65536, false);
	VERDICT(CN_MSG_CLOSE, close.endpoint, CN_MSG_ENDPOINTS, false);
	VERDICT(CN_MSG_STATS, stats.reset_peak, 2, false);
	VERDICT(CN_MSG_NODES, table.first, UINT32_MAX, true);
	VERDICT(CN_MSG_JOBS, table.zero, 1, false);
}

static void check__join_within_bounds(void **state)
{
	static union cn_msg m;

	(void)state;
	VERDICT(CN_MSG_JOIN, join.team, CN_MSG_TEAMS - 1, true);
	VERDICT(CN_MSG_JOIN, join.team, CN_MSG_TEAMS, false);
	VERDICT(CN_MSG_JOIN, join.rank, 1, false);
	VERDICT(CN_MSG_JOIN, join.ranks, 0, false);
	VERDICT(CN_MSG_JOIN, join.ranks, COLLNET_RANKS_MAX, true);
	VERDICT(CN_MSG_JOIN, join.ranks, COLLNET_RANKS_MAX + 1, false);
	VERDICT(CN_MSG_JOIN, join.timeout_ms, 0, false);
	VERDICT(CN_MSG_JOIN, join.timeout_ms, CN_MSG_TIMEOUT_MAX + 1, false);
	VERDICT(CN_MSG_JOIN, join.timeout_ms, COLLNET_TIMEOUT_NONE, true);
	VERDICT(CN_MSG_JOIN, join.making, CN_MAKING_DUP, true);
	VERDICT(CN_MSG_JOIN, join.making, CN_MAKING_DUP + 1, false);
	VERDICT(CN_MSG_JOIN, join.color, INT32_MIN, true);
	VERDICT(CN_MSG_JOIN, join.parent, CN_MSG_TEAMS, true); /* it is derived from none */
	make(&m, CN_MSG_JOIN);
	m.join.derived = 1;
	m.join.parent = CN_MSG_TEAMS - 1;
	assert_true(ok(&m));
	m.join.parent = CN_MSG_TEAMS;
	assert_false(ok(&m));
	VERDICT(CN_MSG_JOIN, join.job[0], '\0', false);
	VERDICT(CN_MSG_JOIN, join.job[0], ' ', false);
	make(&m, CN_MSG_JOIN);
	memset(m.join.job, 'x', sizeof(m.join.job));
	assert_false(ok(&m));
	m.join.job[sizeof(m.join.job) - 1] = '\0';
	assert_true(ok(&m));
}

static void check__coll_within_bounds(void **state)
{
	static union cn_msg m;

	(void)state;
	VERDICT(CN_MSG_COLL, coll.team, CN_MSG_TEAMS, false);
	VERDICT(CN_MSG_COLL, coll.op, 0, false);
	VERDICT(CN_MSG_COLL, coll.op, CN_OP_BARRIER, true);
	VERDICT(CN_MSG_COLL, coll.op, CN_OP_GATHER, true);
	VERDICT(CN_MSG_COLL, coll.op, CN_OP_KINDS, false);
	VERDICT(CN_MSG_COLL, coll.blocks.region, CN_MSG_REGIONS, true); /* it is ignored */
	VERDICT(CN_MSG_COLL, coll.root, COLLNET_RANKS_MAX, false);
	VERDICT(CN_MSG_COLL, coll.persistent, 1, true);
	VERDICT(CN_MSG_COLL, coll.persistent, 2, false);
	VERDICT(CN_MSG_COLL, coll.buffered, 1, true);
	VERDICT(CN_MSG_COLL, coll.buffered, 2, false);
	VERDICT(CN_MSG_START, start.head.tag, CN_MSG_REQUESTS, false);
	VERDICT(CN_MSG_START, start.timeout_ms, 0, false);
	VERDICT(CN_MSG_RELEASE, release.head.tag, CN_MSG_REQUESTS, false);
	VERDICT(CN_MSG_COLL, coll.permutation, CN_PERM_EDGE_COLOUR, true);
	VERDICT(CN_MSG_COLL, coll.permutation, CN_PERM_EDGE_COLOUR + 1, false);
	VERDICT(CN_MSG_COLL, coll.contention_aware, 2, false);
	VERDICT(CN_MSG_COLL, coll.window, 65535, true);
	VERDICT(CN_MSG_COLL, coll.window, 65536, false);
	VERDICT(CN_MSG_COLL, coll.window, COLLNET_WINDOW_OFF, true);
	VERDICT(CN_MSG_COLL, coll.timeout_ms, 0, false);
	VERDICT(CN_MSG_COLL, coll.bytes, COLLNET_BLOCK_MAX, true);
	VERDICT(CN_MSG_COLL, coll.bytes, COLLNET_BLOCK_MAX + 1, false);
	VERDICT(CN_MSG_COLL, coll.send.region, CN_MSG_REGIONS, false);
	VERDICT(CN_MSG_COLL, coll.recv.region, 0, true);
	VERDICT(CN_MSG_COLL, coll.recv.zero, 1, false);
	VERDICT(CN_MSG_COLL, coll.zero, 1, false);
	VERDICT(CN_MSG_COLL, coll.recv.offset, 1, false); /* nowhere has no places */
	make(&m, CN_MSG_COLL);
	m.coll.op = CN_OP_BARRIER;
	m.coll.bytes = 1;
	assert_false(ok(&m));
	make(&m, CN_MSG_COLL);
	m.coll.op = CN_OP_ALLTOALLV;
	m.coll.bytes = 0;
	assert_true(ok(&m));
	m.coll.bytes = 1;
	assert_false(ok(&m));
	m.coll.op = CN_OP_GATHERV;
	assert_true(ok(&m));
	m.coll.blocks.region = CN_MSG_REGIONS;
	assert_false(ok(&m));
	m.coll.blocks.region = 3;
	m.coll.blocks.offset = CN_MSG_BYTES + 1;
	assert_false(ok(&m));
	make(&m, CN_MSG_COLL);
	memset(m.coll.algorithm, 'x', sizeof(m.coll.algorithm));
	assert_false(ok(&m));
	make(&m, CN_MSG_COLL);
	m.coll.send.region = 1;
	m.coll.send.offset = UINT64_MAX;
	assert_false(ok(&m));
}

static void check__reductions_within_bounds(void **state)
{
	static union cn_msg m;

	(void)state;
	make(&m, CN_MSG_COLL);
	m.coll.op = CN_OP_ALLREDUCE;
	m.coll.bytes = 24;
	assert_false(ok(&m)); /* no element */
	m.coll.element = 8;
	m.coll.function = 3;
	m.coll.ordered = 1;
	assert_true(ok(&m));
	m.coll.element = 7;
	assert_false(ok(&m));
	m.coll.element = 8;
	m.coll.ordered = 2;
	assert_false(ok(&m));
	m.coll.ordered = 0;
	m.coll.scratch.region = CN_MSG_REGIONS;
	assert_false(ok(&m));
	VERDICT(CN_MSG_COLL, coll.element, 1, false); /* of no reduction */
	VERDICT(CN_MSG_COLL, coll.function, 1, false);
	VERDICT(CN_MSG_COLL, coll.ordered, 1, false);
	VERDICT(CN_MSG_COMBINED, combined.head.tag, CN_MSG_REQUESTS, false);
	VERDICT(CN_MSG_COMBINED, combined.piece, UINT32_MAX, true);
	VERDICT(CN_MSG_COMBINED, combined.zero, 1, false);
	VERDICT(CN_MSG_COMBINE, combine.head.tag, CN_MSG_REQUESTS, false);
	VERDICT(CN_MSG_COMBINE, combine.operands, 0, false);
	VERDICT(CN_MSG_COMBINE, combine.operands, 2, true);
	VERDICT(CN_MSG_COMBINE, combine.last, 1, true);
	VERDICT(CN_MSG_COMBINE, combine.last, 2, false);
	VERDICT(CN_MSG_COMBINE, combine.zero, 1, false);
	VERDICT(CN_MSG_COMBINE, combine.left.buffer, CN_BUF_NONE, false);
	VERDICT(CN_MSG_COMBINE, combine.right.buffer, CN_BUF_SCRATCH, true);
	VERDICT(CN_MSG_COMBINE, combine.out.buffer, CN_BUF_SCRATCH + 1, false);
	VERDICT(CN_MSG_COMBINE, combine.out.offset, CN_MSG_BYTES + 1, false);
	VERDICT(CN_MSG_COMBINE, combine.bytes, CN_MSG_BYTES + 1, false);
}

static void check__messages_within_bounds(void **state)
{
	static union cn_msg m;

	(void)state;
	VERDICT(CN_MSG_SEND, send.endpoint, CN_MSG_ENDPOINTS, false);
	VERDICT(CN_MSG_SEND, send.to, 0, false);
	VERDICT(CN_MSG_SEND, send.to, 65536, false);
	VERDICT(CN_MSG_SEND, send.node[0], '\0', false);
	VERDICT(CN_MSG_SEND, send.bytes, COLLNET_MESSAGE_MAX, true);
	VERDICT(CN_MSG_SEND, send.bytes, COLLNET_MESSAGE_MAX + 1, false);
	VERDICT(CN_MSG_SEND, send.timeout_ms, 0, false);
	VERDICT(CN_MSG_SEND, send.data.region, CN_MSG_REGIONS, false);
	VERDICT(CN_MSG_RECV, recv.endpoint, CN_MSG_ENDPOINTS, false);
	VERDICT(CN_MSG_RECV, recv.capacity, COLLNET_MESSAGE_MAX + 1, false);
	VERDICT(CN_MSG_RECV, recv.timeout_ms, UINT32_MAX - 1, false);
	VERDICT(CN_MSG_RECV, recv.data.offset, 4, false);
}

static void check__responses_within_bounds(void **state)
{
	static union cn_msg m;

	(void)state;
	VERDICT(CN_MSG_WELCOME, welcome.node[0], '\0', false);
	VERDICT(CN_MSG_WELCOME, welcome.status, COLLNET_INPROGRESS, false);
	VERDICT(CN_MSG_WELCOME, welcome.status, COLLNET_EPROTO, false); /* with a peer timeout */
	VERDICT(CN_MSG_WELCOME, welcome.peer_timeout_ms, 299, false);
	VERDICT(CN_MSG_WELCOME, welcome.peer_timeout_ms, 300, true);
	VERDICT(CN_MSG_WELCOME, welcome.peer_timeout_ms, 60000, true);
	VERDICT(CN_MSG_WELCOME, welcome.peer_timeout_ms, 60001, false);
	VERDICT(CN_MSG_WELCOME, welcome.zero, 1, false);
	VERDICT(CN_MSG_REPLY, reply.status, COLLNET_EUNSUPPORTED, true);
	VERDICT(CN_MSG_REPLY, reply.status, COLLNET_EUNSUPPORTED - 1, false);
	VERDICT(CN_MSG_DONE, done.status, INT32_MIN, false);
	VERDICT(CN_MSG_DONE, done.from_endpoint, 65536, false);
	VERDICT(CN_MSG_DONE, done.bytes, UINT64_MAX, false);
	VERDICT(CN_MSG_RANK_NAMES, rank_names.count, CN_MSG_PAGE + 1, false);
	VERDICT(CN_MSG_RANK_NAMES, rank_names.count, 0, true);
	VERDICT(CN_MSG_RANK_NAMES, rank_names.count, 2, false); /* more than there are */
	VERDICT(CN_MSG_RANK_NAMES, rank_names.ranks, COLLNET_RANKS_MAX + 1, false);
	VERDICT(CN_MSG_RANK_NAMES, rank_names.count, 1, false); /* its name is empty */
	VERDICT(CN_MSG_JOINED, joined.head.tag, CN_MSG_REQUESTS, false);
	VERDICT(CN_MSG_JOINED, joined.rank, 1, false);
	VERDICT(CN_MSG_JOINED, joined.ranks, 0, false);
	VERDICT(CN_MSG_JOINED, joined.ranks, COLLNET_RANKS_MAX, true);
	VERDICT(CN_MSG_JOINED, joined.ranks, COLLNET_RANKS_MAX + 1, false);
	VERDICT(CN_MSG_JOINED, joined.nodes, 0, false);
	VERDICT(CN_MSG_JOINED, joined.nodes, 2, false);
	VERDICT(CN_MSG_JOINED, joined.mapped, 1, true);
	VERDICT(CN_MSG_JOINED, joined.mapped, 2, false); /* of one rank */
	make(&m, CN_MSG_JOINED);
	m.joined.ranks = m.joined.mapped = CN_MSG_MAPPED;
	assert_true(ok(&m));
	m.joined.in_parent[CN_MSG_MAPPED - 1] = COLLNET_RANKS_MAX;
	assert_false(ok(&m));
	m.joined.ranks = m.joined.mapped = CN_MSG_MAPPED + 1;
	assert_false(ok(&m));
	VERDICT(CN_MSG_NODE_TABLE, node_table.count, 1, false); /* more than in all */
	make(&m, CN_MSG_NODE_TABLE);
	m.node_table.total = m.node_table.count = CN_MSG_PAGE;
	assert_true(ok(&m));
	memset(m.node_table.nodes[CN_MSG_PAGE - 1].name, 'x', CN_MSG_NAME);
	assert_false(ok(&m));
	make(&m, CN_MSG_NODE_TABLE);
	m.node_table.total = m.node_table.count = CN_MSG_PAGE;
	memset(m.node_table.nodes[0].mismatch, 'x', sizeof(m.node_table.nodes[0].mismatch));
	assert_false(ok(&m));
	make(&m, CN_MSG_STATS_REPLY);
	assert_true(ok(&m));
	memset(m.stats_reply.stats.link, 'x', sizeof(m.stats_reply.stats.link));
	assert_false(ok(&m));
	make(&m, CN_MSG_JOB_TABLE);
	m.job_table.total = UINT32_MAX;
	m.job_table.count = CN_MSG_PAGE + 1;
	assert_false(ok(&m));
	VERDICT(CN_MSG_JOB_TABLE, job_table.count, 1, false); /* more than in all */
	make(&m, CN_MSG_DONE);
	memset(m.done.text, 'x', sizeof(m.done.text));
	assert_false(ok(&m));
	make(&m, CN_MSG_DONE);
	memset(m.done.from_node, 'x', sizeof(m.done.from_node));
	assert_false(ok(&m));
	make(&m, CN_MSG_REPLY);
	memset(m.reply.text, 'x', sizeof(m.reply.text));
	assert_false(ok(&m));
}

static void check__wild_values_do_no_harm(void **state)
{
	static union cn_msg m;
	uint64_t seed = 20260802;

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < 20000; i++) {
		uint32_t type = (uint32_t)(cn_random(&seed) % (CN_MSG_LAST_RESPONSE + 2));
		uint8_t *bytes = (uint8_t *)&m;

		for (size_t k = 0; k < cn_msg_size(type); k++) {
			bytes[k] = (uint8_t)cn_random(&seed);
		}
		m.head.type = type;
		/* Whatever passes is within its arrays; the sanitizers watch the rest. */
		if (cn_msg_check(&m, cn_msg_size(type), from_daemon(type)) == NULL &&
		    type == CN_MSG_JOIN) {
			assert_true(m.join.team < CN_MSG_TEAMS);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check__exact_length_and_side),
		cmocka_unit_test(check__size_of_the_rings),
		cmocka_unit_test(check__types_that_are_none),
		cmocka_unit_test(check__requests_within_bounds),
		cmocka_unit_test(check__join_within_bounds),
		cmocka_unit_test(check__coll_within_bounds),
		cmocka_unit_test(check__reductions_within_bounds),
		cmocka_unit_test(check__messages_within_bounds),
		cmocka_unit_test(check__responses_within_bounds),
		cmocka_unit_test(check__wild_values_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
