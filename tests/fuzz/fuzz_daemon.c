/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any messages on the daemon's socket, from two clients: whatever they say, the daemon's answers
 * are well formed, memory outside of their regions is not touched, and after their end nothing
 * of them is left.
 *
 * The input is a list of steps, each of them a byte and its arguments (missing ones are 0). The
 * client of a step is its highest bit.
 *
 *   0 n bytes[n]        these bytes are a message
 *   1 type tag args...  a message of a type that is right, but for ...
 *     k (at value)[k]   ... k % 4 bytes that are overwritten
 *   2 region kind (n)   a region: 0 as it should be, 1 of a strange size, 2 of n * 256 MiB, else
 *                       with descriptors
 *   3 t                 time passes: 2^(t mod 36) ns
 *   4 n                 up to n frames go out
 *   5                   the client dies
 *   6                   the client does not read its messages any more, or does again
 *   7                   the client greets as it should, unless it has
 *   8                   the client has its rings made, unless it has them
 *   9 type tag args...  as 1, but the message goes into the ring
 *   10 at value m       four bytes of the rings: a counter or a flag, or of a slot, are added to or
 *                       overwritten
 *
 * No request number is accepted twice at a time, and each is answered once. Afterwards nothing of
 * the clients is left in the engine, and a client that keeps the rules is served.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll/endpoint.h"
#include "daemon_client.h"
#include "mutate.h"
#include "proto/node_impl.h"
#include "tests/unit/hub.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REGION_BYTES 65536u
#define FLOWS	     16u /* few, so that they run out, and a pool for all is quickly poisoned */
#define TYPES	     (CN_MSG_LAST_REQUEST + 1u)

static const struct mutate_step steps[] = {
	{ 0, MUTATE_ANY, 1, "n" },
	{ 1, CN_MSG_HELLO, 1, "qik" },
	{ 1, CN_MSG_UNREGION, 4, "qik" },
	{ 1, CN_MSG_JOIN, 8, "qiiibik" },
	{ 1, CN_MSG_JOIN, 3, "qiiibbk" },
	{ 1, CN_MSG_LEAVE, 4, "qik" },
	{ 1, CN_MSG_RANKS, 2, "qiik" },
	{ 1, CN_MSG_COLL, 12, "qiibiibiiiik" },
	{ 1, CN_MSG_COLL, 6, "qibbiibiiiik" },
	{ 1, CN_MSG_OPEN, 6, "qiik" },
	{ 1, CN_MSG_CLOSE, 4, "qik" },
	{ 1, CN_MSG_SEND, 8, "qiiibbiik" },
	{ 1, CN_MSG_RECV, 8, "qibbiik" },
	{ 1, CN_MSG_COMBINED, 4, "qbbk" },
	{ 1, CN_MSG_START, 2, "qik" },
	{ 1, CN_MSG_RELEASE, 1, "qk" },
	{ 1, CN_MSG_STATS, 1, "qik" },
	{ 1, CN_MSG_NODES, 1, "qk" },
	{ 1, CN_MSG_JOBS, 1, "qk" },
	{ 1, MUTATE_ANY, 0, "bbk" },
	{ 2, MUTATE_ANY, 8, "iw" },
	{ 3, MUTATE_ANY, 4, "t" },
	{ 4, MUTATE_ANY, 3, "b" },
	{ 5, MUTATE_ANY, 2, "" },
	{ 6, MUTATE_ANY, 1, "" },
	{ 7, MUTATE_ANY, 14, "" },
	{ 8, MUTATE_ANY, 8, "" },
	{ 9, CN_MSG_COLL, 8, "qiibiibiiiik" },
	{ 9, CN_MSG_COLL, 6, "qibbiibiiiik" },
	{ 9, CN_MSG_COMBINED, 4, "qbbk" },
	{ 9, CN_MSG_SEND, 6, "qiiibbiik" },
	{ 9, CN_MSG_RECV, 6, "qibbiik" },
	{ 9, CN_MSG_START, 6, "qik" },
	{ 9, CN_MSG_RELEASE, 3, "qk" },
	{ 9, MUTATE_ANY, 1, "bbk" },
	{ 10, MUTATE_ANY, 2, "bim" },
};
const struct mutate_grammar mutate_grammar = {
	.mask = 0x7f,
	.sub = TYPES,
	.n = sizeof(steps) / sizeof(steps[0]),
	.steps = steps,
};

static struct cn_msg_buffer_ref place(struct fixture *w)
{
	struct cn_msg_buffer_ref p = { .region = byte(w) % 8u };

	p.offset = byte(w) * 256u;
	if (p.region == 7) {
		p.region = CN_MSG_NO_REGION;
		p.offset = 0;
	}
	return p;
}

/* Writes blocks into the client's region: small ones, and now and then one beyond all memory. */
static struct cn_msg_buffer_ref blocks(struct fixture *w, int i)
{
	struct cn_msg_buffer_ref p = place(w);
	const struct cn_client *c = w->end[i].client;
	const struct cn_mapping *s = p.region != CN_MSG_NO_REGION && c != NULL
					     ? c->regions[p.region]
					     : NULL;
	uint8_t kind = byte(w);

	for (uint32_t k = 0; s != NULL && k < 6; k++) {
		struct cn_block b = { k * 100u, (uint64_t)(kind >> k & 1) * kind };

		if (kind == 255 && k == 1) {
			b.at = UINT64_MAX - 10;
		} else if (kind == 254 && k == 1) {
			b.len = UINT64_MAX;
		}
		if (p.offset + (k + 1) * sizeof(b) <= s->bytes) {
			memcpy(s->p + p.offset + k * sizeof(b), &b, sizeof(b));
		}
	}
	return p;
}

/* A message that is right in itself, if its arguments are. */
static void build(struct fixture *w, int i, union cn_msg *m)
{
	uint8_t op;

	static const char *const algorithms[] = {
		"", "shuffle", "pairwise", "linear", "ring", "x"
	};

	memset(m, 0, sizeof(*m));
	m->head.type = byte(w) % TYPES;
	m->head.tag = byte(w) % CN_MSG_REQUESTS;
	switch (m->head.type) {
	case CN_MSG_HELLO:
		m->hello.magic = CN_MSG_MAGIC;
		m->hello.version = CN_MSG_VERSION + (byte(w) == 1);
		break;
	case CN_MSG_UNREGION:
		m->unregion.region = byte(w) % 8u;
		break;
	case CN_MSG_JOIN:
		m->join.team = byte(w) % 16u;
		op = byte(w);
		m->join.ranks = 1 + op % 3u;
		/* the two are different users: most jobs belong to both */
		m->join.secret = op < 192 ? CN_OWNER_SECRET | 1 : 0;
		m->join.rank = byte(w) % m->join.ranks;
		m->join.timeout_ms = 1 + byte(w);
		op = byte(w);
		snprintf(m->join.job, sizeof(m->join.job), "j%u", op % 3u);
		m->join.derived = op >= 128; /* a team of another one, most of them divisions */
		m->join.parent = op / 3 % 4u;
		m->join.making = op % 7u % 3u;
		m->join.color = op % 5 - 1;
		m->join.members[0] = op % 8u;
		break;
	case CN_MSG_LEAVE:
		m->leave.team = byte(w) % 16u;
		break;
	case CN_MSG_RANKS:
		m->ranks.team = byte(w) % 16u;
		m->ranks.first = byte(w) % 4u;
		break;
	case CN_MSG_COLL:
		m->coll.team = byte(w) % 16u;
		op = byte(w);
		m->coll.op = op < 128	? 1 + op % 3u
			     : op < 192 ? CN_OP_ALLTOALLV + op % 4u
					: CN_OP_ALLREDUCE + op % 5u;
		m->coll.bytes = m->coll.op == CN_OP_BARRIER ? 0 : byte(w) * 97u;
		snprintf(m->coll.algorithm, sizeof(m->coll.algorithm), "%s",
			 algorithms[byte(w) % 6]);
		m->coll.permutation = byte(w) % 4u;
		m->coll.contention_aware = 1;
		m->coll.persistent = op / 32 % 2;
		m->coll.buffered = op / 64 % 2;
		m->coll.timeout_ms = 1 + byte(w);
		m->coll.send = place(w);
		m->coll.recv = place(w);
		if (cn_op_reduces((enum cn_op_kind)m->coll.op)) {
			m->coll.element = 1 + op / 8 % 2 * 96;
			m->coll.ordered = op / 16 % 2;
			m->coll.algorithm[0] = '\0';
			m->coll.scratch = m->coll.recv;
			m->coll.scratch.offset += m->coll.scratch.region < 7 ? REGION_BYTES / 4 : 0;
		}
		if (cn_op_is_vector((enum cn_op_kind)m->coll.op)) {
			m->coll.blocks = blocks(w, i);
			m->coll.bytes = m->coll.op >= CN_OP_SCATTERV ? m->coll.bytes : 0;
		}
		break;
	case CN_MSG_COMBINED:
		if (byte(w) % 4 != 0 && w->last.head.type != 0) {
			m->combined = w->last;
		}
		m->combined.piece += byte(w) % 8 == 7;
		break;
	case CN_MSG_START:
		m->start.timeout_ms = 1 + byte(w);
		break;
	case CN_MSG_OPEN:
		m->open.endpoint = byte(w) % CN_MSG_ENDPOINTS;
		m->open.number = byte(w) % 4u;
		break;
	case CN_MSG_CLOSE:
		m->close.endpoint = byte(w) % CN_MSG_ENDPOINTS;
		break;
	case CN_MSG_SEND:
		m->send.endpoint = byte(w) % CN_MSG_ENDPOINTS;
		m->send.to = 1 + byte(w) % 4u;
		snprintf(m->send.node, sizeof(m->send.node), "%s", byte(w) == 1 ? "other" : "self");
		m->send.bytes = byte(w) * 97u;
		m->send.timeout_ms = 1 + byte(w);
		m->send.data = place(w);
		break;
	case CN_MSG_RECV:
		m->recv.endpoint = byte(w) % CN_MSG_ENDPOINTS;
		m->recv.capacity = byte(w) * 97u;
		m->recv.timeout_ms = 1 + byte(w);
		m->recv.data = place(w);
		break;
	case CN_MSG_STATS:
		m->stats.reset_peak = byte(w) % 2u;
		break;
	default:
		break;
	}
}

static bool is_request(uint32_t type)
{
	return type == CN_MSG_JOIN || type == CN_MSG_COLL || type == CN_MSG_SEND ||
	       type == CN_MSG_RECV || type == CN_MSG_START;
}

static void step_message(struct fixture *w, int i, bool in_ring)
{
	static union cn_msg m;
	size_t size;
	bool was_busy;
	uint8_t k;

	build(w, i, &m);
	size = cn_msg_size(m.head.type);
	size = size > 0 ? size : sizeof(m.head);
	for (k = byte(w) % 4; k > 0; k--) {
		size_t at = byte(w) % size;

		((uint8_t *)&m)[at] = byte(w);
	}
	settle(w, i);
	read_answers(w);
	was_busy = m.head.tag < CN_MSG_REQUESTS && w->end[i].busy[m.head.tag] > 0;
	if (is_request(m.head.type) && m.head.tag < CN_MSG_REQUESTS) {
		w->end[i].busy[m.head.tag]++;
	}
	if (in_ring) {
		cn_shm_ring_put(&w->end[i].requests, &m, CN_MSG_REQUEST_SLOT);
		cn_rings_poll(w->daemon);
	} else {
		say(w, i, &m, size);
	}
	check(!is_request(m.head.type) || !was_busy || w->end[i].deaf || w->end[i].broken ||
	      w->end[i].client->marked);
}

static void step_greeting(struct fixture *w, int i)
{
	struct cn_msg_hello m = { .head = { .type = CN_MSG_HELLO },
				  .magic = CN_MSG_MAGIC,
				  .version = CN_MSG_VERSION };

	if (!w->end[i].client->greeted) {
		say(w, i, &m, sizeof(m));
	}
}

static void step_region(struct fixture *w, int i)
{
	struct cn_msg_region m = {
		.head = { .type = CN_MSG_REGION },
		.region = byte(w) % 8u,
		.bytes = REGION_BYTES,
	};
	const uint8_t kind = byte(w) % 6;

	if (kind == 1) {
		m.bytes += 1;
	} else if (kind == 2) {
		m.bytes = (uint64_t)byte(w) << 28;
	} else if (kind >= 3) {
		send_with_descriptors(w, i, &m, sizeof(m), kind == 3 ? 1 : kind - 2u);
		return;
	}
	say(w, i, &m, sizeof(m));
	if (kind != 2) {
		seal_regions(w, i);
	}
}

/* ---- the daemon's side ---------------------------------------------------------------- */

static void step_time(struct fixture *w)
{
	struct cn_daemon *d = w->daemon;

	d->now += (cn_time)1 << byte(w) % 36;
	if (cn_engine_deadline(d->runtime.engine) <= d->now) {
		cn_engine_expire(d->runtime.engine, d->now);
	}
}

static void send_frames(struct fixture *w, uint32_t n)
{
	struct cn_frame f;

	while (n > 0 && cn_engine_output(w->daemon->runtime.engine, w->daemon->now, &f)) {
		n--;
	}
}

static void step(struct fixture *w)
{
	static uint8_t raw[256];
	const uint8_t b = byte(w);
	const int i = b >> 7;
	uint8_t n;

	connect_client(w, i);
	switch (b & 0x7f) {
	case 0:
		n = byte(w);
		for (uint8_t k = 0; k < n; k++) {
			raw[k] = byte(w);
		}
		if (n > 0) {
			say(w, i, raw, n);
		}
		break;
	case 1:
		step_message(w, i, false);
		break;
	case 2:
		step_region(w, i);
		break;
	case 3:
		step_time(w);
		break;
	case 4:
		send_frames(w, byte(w));
		break;
	case 5:
		cn_client_mark(w->end[i].client, NULL);
		break;
	case 6:
		w->end[i].deaf = !w->end[i].deaf;
		break;
	case 7:
		step_greeting(w, i);
		break;
	case 8:
		make_rings(w, i);
		break;
	case 9:
		step_message(w, i, w->end[i].memory != NULL);
		break;
	case 10:
		scribble(w, i);
		break;
	default:
		break;
	}
	read_answers(w);
	reap(w);
	/* As the loop would, and it is here that copies between ranks of one node move. */
	run_task(w);
	send_frames(w, 16);
	if (cn_engine_deadline(w->daemon->runtime.engine) <= w->daemon->now) {
		cn_engine_expire(w->daemon->runtime.engine, w->daemon->now);
	}
}

/* ---- afterwards ----------------------------------------------------------------------- */

/* A descriptor that stays open moves it. */
static int lowest_descriptor(void)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);

	check(fd < 0 || close(fd) == 0);
	return fd;
}

/* Nothing of disconnected clients remains in the engine. */
static void check_nothing_left(const struct cn_daemon *d)
{
	const struct cn_engine *e = d->runtime.engine;

	check(d->nclients == 0 && !unmaps(d));
	check(e->nteams == 0 && e->own.sources.n == 0);
	check(e->nforming == 0 && e->scheduled == 0 && e->deferred_frames == 0);
	check(e->copies.used == 0 && e->endpoints->accounts == NULL);
	check(e->endpoints->count == 0 && e->endpoints->nflows == 0);
	check(e->endpoints->pool.free == e->endpoints->pool.count);
	check(e->own.node->pool.free == e->own.node->pool.count &&
	      e->own.node->window->in_flight == 0);
}

/* The answer to a question, or the end of the request, of this type and without an error: its
 * status, or what else is at that place, is 0. */
static void expect_answer(struct fixture *w, int i, uint32_t type, size_t status_at)
{
	static union cn_msg m;
	int32_t status;

	for (uint32_t turn = 0; turn < 100; turn++) {
		run_task(w);
		send_frames(w, 16);
		if (cn_engine_deadline(w->daemon->runtime.engine) <= w->daemon->now) {
			cn_engine_expire(w->daemon->runtime.engine, w->daemon->now);
		}
		cn_client_readable(w->end[i].client);
		check(!w->end[i].client->marked);
		if (recv(w->end[i].fd, &m, sizeof(m), MSG_DONTWAIT) > 0) {
			memcpy(&status, (uint8_t *)&m + status_at, sizeof(status));
			check(m.head.type == type && status == COLLNET_OK);
			return;
		}
	}
	check(false);
}

/* After all that, a client that keeps the rules is served. */
static void good_client(struct fixture *w)
{
	struct cn_msg_hello hello = { .head = { .type = CN_MSG_HELLO },
				      .magic = CN_MSG_MAGIC,
				      .version = CN_MSG_VERSION };
	struct cn_msg_join join = { .head = { .type = CN_MSG_JOIN },
				    .team = 3,
				    .ranks = 1,
				    .timeout_ms = 1000,
				    .job = "good" };
	struct cn_msg_coll coll = { .head = { .type = CN_MSG_COLL, .tag = 1 },
				    .team = 3,
				    .op = CN_OP_BARRIER,
				    .timeout_ms = 1000,
				    .send = { .region = CN_MSG_NO_REGION },
				    .recv = { .region = CN_MSG_NO_REGION } };
	struct cn_msg_leave leave = { .head = { .type = CN_MSG_LEAVE }, .team = 3 };

	for (int i = 0; i < CLIENTS; i++) {
		if (w->end[i].client != NULL) {
			cn_client_mark(w->end[i].client, NULL);
		}
	}
	do { /* large regions are unmapped in parts */
		reap(w);
	} while (unmaps(w->daemon));
	check_nothing_left(w->daemon);
	connect_client(w, 0);
	say(w, 0, &hello, sizeof(hello));
	expect_answer(w, 0, CN_MSG_WELCOME, offsetof(struct cn_msg_welcome, status));
	say(w, 0, &join, sizeof(join));
	expect_answer(w, 0, CN_MSG_JOINED, offsetof(struct cn_msg_joined, rank));
	say(w, 0, &coll, sizeof(coll));
	expect_answer(w, 0, CN_MSG_DONE, offsetof(struct cn_msg_done, status));
	say(w, 0, &leave, sizeof(leave));
	expect_answer(w, 0, CN_MSG_REPLY, offsetof(struct cn_msg_reply, status));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fixture w = { .data = data, .size = size };
	struct cn_engine_config config;
	struct cn_hub *hub = cn_hub_new(1, 1500, 8);
	const int descriptor = lowest_descriptor();

	w.daemon = calloc(1, sizeof(*w.daemon));
	check(hub != NULL && w.daemon != NULL);
	cn_config_init(&w.daemon->config);
	w.daemon->memory.base = w.daemon->memory.total = (uint64_t)4 << 30;
	w.daemon->config.limits[CN_QUOTA_TEAMS] = 2;
	w.daemon->config.limits[CN_QUOTA_ENDPOINTS] = 3;
	w.daemon->config.limits[CN_QUOTA_REQUESTS] = 4;
	w.daemon->now = 1000000;
	w.daemon->runtime.link = cn_hub_port(hub, 0);
	snprintf(w.daemon->runtime.node, sizeof(w.daemon->runtime.node), "self");
	cn_engine_config_init(&config);
	memcpy(config.node.mac, w.daemon->runtime.link->mac, 6);
	config.node.epoch = 1;
	config.node.mtu = 1500;
	config.node.max_peers = 4;
	config.node.pool_frames = 64;
	config.task_min = 1; /* all plans are tasks */
	snprintf(config.node.name, sizeof(config.node.name), "self");
	check(cn_engine_new(&config, &w.daemon->runtime.engine, NULL) == COLLNET_OK);
	w.daemon->runtime.engine->endpoints->max_flows = FLOWS;

	while (w.at < w.size) {
		step(&w);
	}

	good_client(&w);
	cn_engine_shutdown(w.daemon->runtime.engine, CN_BYE_DAEMON);
	read_answers(&w);
	cn_client_end(w.daemon);
	while (cn_mapping_unmap(w.daemon)) {
	}
	check(w.daemon->nclients == 0 && !unmaps(w.daemon));
	for (int i = 0; i < CLIENTS; i++) {
		if (w.end[i].client != NULL) {
			end_client(&w, i);
		}
	}
	check_nothing_left(w.daemon);
	while (w.task != NULL) {
		run_task(&w);
	}
	cn_engine_free(w.daemon->runtime.engine);
	check(!unmaps(w.daemon) && w.daemon->memory.used == 0 && w.daemon->memory.regions == 0);
	for (int i = 0; i < CLIENTS; i++) {
		const struct cn_user *u = cn_user_find(w.daemon, 1000 + (uid_t)i);

		for (int q = 0; q < CN_QUOTAS; q++) {
			check(u->used[q] == 0);
		}
	}
	check(lowest_descriptor() == descriptor);
	free(w.daemon);
	cn_hub_free(hub);
	return 0;
}
