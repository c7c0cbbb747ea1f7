/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sizes and bounds of the messages in msg.h. One function per message that has something to check;
 * each looks only at fields that its exact length has proved to be there.
 */
#include "ipc/msg.h"

#include <string.h>

#include "sched/sched.h"
#include "util/owner.h"

/* The same on every machine: a uint64_t is aligned to 4 bytes on some, and a size_t has 4. */
#define SIZE(of, bytes) _Static_assert(sizeof(struct cn_msg_##of) == (bytes), "no padding")

SIZE(hello, 16);
SIZE(region, 24);
SIZE(unregion, 16);
SIZE(join, 8 + 16 + 64 + 8 + 24 + 8 + COLLNET_RANKS_MAX / 8);
SIZE(leave, 16);
SIZE(ranks, 16);
SIZE(coll, 152);
SIZE(combined, 16);
SIZE(start, 24);
SIZE(release, 8);
SIZE(open, 24);
SIZE(close, 16);
SIZE(send, 8 + 8 + 64 + 16 + 8 + 8 + 8);
SIZE(recv, 8 + 8 + 16 + 8 + 8);
SIZE(stats, 16);
SIZE(table, 16);
SIZE(welcome, 8 + 16 + 64 + CN_ERR_TEXT); /* for ever */
SIZE(reply, 8 + 8 + 8 + CN_ERR_TEXT);
SIZE(done, 8 + 8 + 8 + 64 + CN_ERR_TEXT);
SIZE(combine, 8 + 16 + 3 * 16 + 8);
SIZE(joined, 8 + 24 + 2 * CN_MSG_MAPPED);
SIZE(rank_names, 16 + CN_MSG_PAGE * 64);
SIZE(stats_reply, 312);
SIZE(node_table, 16 + CN_MSG_PAGE * 216);
SIZE(job_table, 16 + CN_MSG_PAGE * 88);
_Static_assert(offsetof(struct cn_msg_stats_reply, stats.frames_sent) == 16, "after stats.size");
_Static_assert(sizeof(struct cn_block) == 16, "shared, too");

_Static_assert(sizeof(struct cn_msg_coll) <= CN_MSG_REQUEST_SLOT, "a slot per request");
_Static_assert(sizeof(struct cn_msg_send) <= CN_MSG_REQUEST_SLOT, "a slot per request");
_Static_assert(sizeof(struct cn_msg_done) <= CN_MSG_DONE_SLOT, "a slot per completion");
_Static_assert(CN_MSG_RING_SLOTS >= 2 * CN_MSG_REQUESTS, "all requests, and a piece of each");
_Static_assert(sizeof(struct cn_msg_combine) <= CN_MSG_DONE_SLOT, "a slot per completion");

/* A string that ends inside its array. */
static bool ends(const char *s, size_t size)
{
	return memchr(s, '\0', size) != NULL;
}

static bool name_ok(const char *s)
{
	return ends(s, CN_MSG_NAME) && cn_valid_name(s);
}

bool cn_msg_timeout_ok(uint32_t ms)
{
	return (ms >= 1 && ms <= CN_MSG_TIMEOUT_MAX) || ms == COLLNET_TIMEOUT_NONE;
}

static bool status_ok(int32_t status)
{
	return status <= COLLNET_OK && status >= COLLNET_EUNSUPPORTED;
}

static bool buffer_ref_ok(const struct cn_msg_buffer_ref *p)
{
	if (p->zero != 0) {
		return false;
	}
	if (p->region == CN_MSG_NO_REGION) {
		return p->offset == 0;
	}
	return p->region < CN_MSG_REGIONS && p->offset <= CN_MSG_BYTES;
}

static const char *check_hello(const union cn_msg *m)
{
	/* The receiver checks the version, and responds with its own. */
	return m->hello.magic == CN_MSG_MAGIC ? NULL : "no magic number";
}

static const char *check_region(const union cn_msg *m)
{
	if (m->region.region > CN_MSG_RINGS || m->region.zero != 0) {
		return "region number";
	}
	if (m->region.region == CN_MSG_RINGS &&
	    (m->region.bytes < CN_MSG_RINGS_BYTES ||
	     m->region.bytes >= CN_MSG_RINGS_BYTES + CN_MSG_PAGE_MAX)) {
		return "size of the rings";
	}
	if (m->region.bytes == 0 || m->region.bytes > CN_MSG_BYTES ||
	    m->region.bytes % CN_MSG_BYTES_UNIT != 0) {
		return "region size";
	}
	return NULL;
}

static const char *check_unregion(const union cn_msg *m)
{
	return m->unregion.region <= CN_MSG_RINGS && m->unregion.zero == 0 ? NULL : "region number";
}

/* Must not be a user id, so that a secret impersonates no user. */
static bool secret_ok(uint64_t secret)
{
	return secret == 0 || (secret & CN_OWNER_SECRET) != 0;
}

static const char *check_join(const union cn_msg *m)
{
	const struct cn_msg_join *j = &m->join;

	if (j->head.tag >= CN_MSG_REQUESTS) {
		return "request number";
	}
	if (j->team >= CN_MSG_TEAMS || j->derived > 1 ||
	    (j->derived != 0 && j->parent >= CN_MSG_TEAMS)) {
		return "team number";
	}
	if (j->making > CN_MAKING_DUP) {
		return "kind of team";
	}
	if (!secret_ok(j->secret)) {
		return "secret";
	}
	if (j->ranks < 1 || j->ranks > COLLNET_RANKS_MAX || j->rank >= j->ranks) {
		return "rank";
	}
	if (!cn_msg_timeout_ok(j->timeout_ms)) {
		return "timeout";
	}
	return name_ok(j->job) ? NULL : "job name";
}

static const char *check_leave(const union cn_msg *m)
{
	return m->leave.team < CN_MSG_TEAMS && m->leave.zero == 0 ? NULL : "team number";
}

static const char *check_ranks(const union cn_msg *m)
{
	if (m->ranks.team >= CN_MSG_TEAMS) {
		return "team number";
	}
	return m->ranks.first < COLLNET_RANKS_MAX ? NULL : "rank";
}

static const char *check_coll(const union cn_msg *m)
{
	const struct cn_msg_coll *c = &m->coll;

	if (c->head.tag >= CN_MSG_REQUESTS) {
		return "request number";
	}
	if (c->team >= CN_MSG_TEAMS) {
		return "team number";
	}
	if (c->op < CN_OP_ALLTOALL || c->op >= CN_OP_KINDS) {
		return "operation";
	}
	if (!ends(c->algorithm, sizeof(c->algorithm))) {
		return "algorithm name";
	}
	if (c->permutation > CN_PERM_EDGE_COLOUR || c->contention_aware > 1) {
		return "permutation";
	}
	if (c->root >= COLLNET_RANKS_MAX || c->persistent > 1 || c->buffered > 1 || c->zero != 0) {
		return "root";
	}
	if (c->window > 65535 && c->window != COLLNET_WINDOW_OFF) {
		return "window";
	}
	if (!cn_msg_timeout_ok(c->timeout_ms)) {
		return "timeout";
	}
	if (c->bytes > COLLNET_BLOCK_MAX ||
	    (c->bytes != 0 && (c->op == CN_OP_BARRIER || c->op == CN_OP_ALLTOALLV ||
			       c->op == CN_OP_ALLGATHERV || c->op == CN_OP_REDUCE_SCATTERV))) {
		return "block size";
	}
	if (c->ordered > 1 || c->element > COLLNET_ELEMENT_MAX ||
	    (cn_op_reduces((enum cn_op_kind)c->op)
		     ? c->element == 0 || c->bytes % c->element != 0
		     : c->element != 0 || c->function != 0 || c->ordered != 0)) {
		return "element";
	}
	if (cn_op_is_vector((enum cn_op_kind)c->op) && !buffer_ref_ok(&c->blocks)) {
		return "buffer reference of blocks";
	}
	return buffer_ref_ok(&c->send) && buffer_ref_ok(&c->recv) && buffer_ref_ok(&c->scratch)
		       ? NULL
		       : "buffer reference";
}

static const char *check_combined(const union cn_msg *m)
{
	return m->combined.head.tag < CN_MSG_REQUESTS && m->combined.zero == 0 ? NULL
									       : "request number";
}

static const char *check_start(const union cn_msg *m)
{
	if (m->start.head.tag >= CN_MSG_REQUESTS) {
		return "request number";
	}
	return cn_msg_timeout_ok(m->start.timeout_ms) ? NULL : "timeout";
}

static const char *check_release(const union cn_msg *m)
{
	return m->release.head.tag < CN_MSG_REQUESTS ? NULL : "request number";
}

static bool span_ok(const struct cn_msg_span *s)
{
	return (s->buffer == CN_BUF_SEND || s->buffer == CN_BUF_RECV ||
		s->buffer == CN_BUF_SCRATCH) &&
	       s->zero == 0 && s->offset <= CN_MSG_BYTES;
}

static const char *check_combine(const union cn_msg *m)
{
	const struct cn_msg_combine *c = &m->combine;

	if (c->head.tag >= CN_MSG_REQUESTS) {
		return "request number";
	}
	if (c->operands == 0 || c->last > 1 || c->zero != 0) {
		return "operands";
	}
	return span_ok(&c->left) && span_ok(&c->right) && span_ok(&c->out) &&
			       c->bytes <= CN_MSG_BYTES
		       ? NULL
		       : "buffer reference";
}

static const char *check_open(const union cn_msg *m)
{
	if (!secret_ok(m->open.secret)) {
		return "secret";
	}
	return m->open.endpoint < CN_MSG_ENDPOINTS && m->open.number <= 65535 ? NULL
									      : "endpoint number";
}

static const char *check_close(const union cn_msg *m)
{
	return m->close.endpoint < CN_MSG_ENDPOINTS && m->close.zero == 0 ? NULL
									  : "endpoint number";
}

static const char *check_send(const union cn_msg *m)
{
	const struct cn_msg_send *s = &m->send;

	if (s->head.tag >= CN_MSG_REQUESTS) {
		return "request number";
	}
	if (s->endpoint >= CN_MSG_ENDPOINTS || s->to < 1 || s->to > 65535) {
		return "endpoint number";
	}
	if (!name_ok(s->node)) {
		return "node name";
	}
	if (!cn_msg_timeout_ok(s->timeout_ms) || s->zero != 0) {
		return "timeout";
	}
	if (s->bytes > COLLNET_MESSAGE_MAX) {
		return "message size";
	}
	return buffer_ref_ok(&s->data) ? NULL : "buffer reference";
}

static const char *check_recv(const union cn_msg *m)
{
	const struct cn_msg_recv *r = &m->recv;

	if (r->head.tag >= CN_MSG_REQUESTS) {
		return "request number";
	}
	if (r->endpoint >= CN_MSG_ENDPOINTS) {
		return "endpoint number";
	}
	if (!cn_msg_timeout_ok(r->timeout_ms)) {
		return "timeout";
	}
	if (r->capacity > COLLNET_MESSAGE_MAX) {
		return "message size";
	}
	return buffer_ref_ok(&r->data) ? NULL : "buffer reference";
}

static const char *check_stats(const union cn_msg *m)
{
	return m->stats.reset_peak <= 1 && m->stats.zero == 0 ? NULL : "flag";
}

static const char *check_table(const union cn_msg *m)
{
	return m->table.zero == 0 ? NULL : "flag";
}

static const char *check_welcome(const union cn_msg *m)
{
	const struct cn_msg_welcome *w = &m->welcome;

	if (!status_ok(w->status) || !ends(w->text, sizeof(w->text))) {
		return "status";
	}
	if (w->status != COLLNET_OK) {
		return w->peer_timeout_ms == 0 && w->zero == 0 ? NULL : "peer timeout";
	}
	if (w->peer_timeout_ms < CN_MSG_PEER_TIMEOUT_MIN ||
	    w->peer_timeout_ms > CN_MSG_PEER_TIMEOUT_MAX || w->zero != 0) {
		return "peer timeout";
	}
	return name_ok(w->node) ? NULL : "node name";
}

static const char *check_reply(const union cn_msg *m)
{
	const struct cn_msg_reply *r = &m->reply;

	return status_ok(r->status) && r->zero == 0 && ends(r->text, sizeof(r->text)) ? NULL
										      : "status";
}

static const char *check_done(const union cn_msg *m)
{
	const struct cn_msg_done *d = &m->done;

	if (d->head.tag >= CN_MSG_REQUESTS) {
		return "request number";
	}
	if (!status_ok(d->status) || !ends(d->text, sizeof(d->text))) {
		return "status";
	}
	if (d->from_endpoint > 65535 || d->bytes > COLLNET_MESSAGE_MAX) {
		return "message";
	}
	return ends(d->from_node, sizeof(d->from_node)) ? NULL : "node name";
}

static const char *check_joined(const union cn_msg *m)
{
	const struct cn_msg_joined *j = &m->joined;

	if (j->head.tag >= CN_MSG_REQUESTS) {
		return "request number";
	}
	if (j->ranks > COLLNET_RANKS_MAX || j->rank >= j->ranks || j->nodes == 0 ||
	    j->nodes > j->ranks) {
		return "count";
	}
	if (j->mapped != 0 && (j->mapped > CN_MSG_MAPPED || j->mapped != j->ranks)) {
		return "map";
	}
	for (uint32_t i = 0; i < j->mapped; i++) {
		if (j->in_parent[i] >= COLLNET_RANKS_MAX) {
			return "map";
		}
	}
	return NULL;
}

static const char *check_rank_names(const union cn_msg *m)
{
	const struct cn_msg_rank_names *n = &m->rank_names;

	if (n->count > CN_MSG_PAGE || n->count > n->ranks || n->ranks > COLLNET_RANKS_MAX) {
		return "count";
	}
	for (uint32_t i = 0; i < n->count; i++) {
		if (!name_ok(n->names[i])) {
			return "node name";
		}
	}
	return NULL;
}

static const char *check_stats_reply(const union cn_msg *m)
{
	const struct collnet_stats *s = &m->stats_reply.stats;

	return ends(s->interface, sizeof(s->interface)) && ends(s->link, sizeof(s->link)) &&
			       ends(s->encapsulation, sizeof(s->encapsulation))
		       ? NULL
		       : "name";
}

static const char *check_node_table(const union cn_msg *m)
{
	const struct cn_msg_node_table *t = &m->node_table;

	if (t->count > CN_MSG_PAGE || t->count > t->total) {
		return "count";
	}
	for (uint32_t i = 0; i < t->count; i++) {
		if (!ends(t->nodes[i].name, sizeof(t->nodes[i].name))) {
			return "node name";
		}
		if (!ends(t->nodes[i].mismatch, sizeof(t->nodes[i].mismatch))) {
			return "mismatch";
		}
	}
	return NULL;
}

static const char *check_job_table(const union cn_msg *m)
{
	const struct cn_msg_job_table *t = &m->job_table;

	if (t->count > CN_MSG_PAGE || t->count > t->total) {
		return "count";
	}
	for (uint32_t i = 0; i < t->count; i++) {
		if (!ends(t->jobs[i].name, sizeof(t->jobs[i].name))) {
			return "job name";
		}
	}
	return NULL;
}

static const struct {
	size_t size;
	const char *(*check)(const union cn_msg *m); /* NULL: any contents will do */
} table[CN_MSG_LAST_RESPONSE + 1] = {
	[CN_MSG_HELLO] = { sizeof(struct cn_msg_hello), check_hello },
	[CN_MSG_REGION] = { sizeof(struct cn_msg_region), check_region },
	[CN_MSG_UNREGION] = { sizeof(struct cn_msg_unregion), check_unregion },
	[CN_MSG_JOIN] = { sizeof(struct cn_msg_join), check_join },
	[CN_MSG_LEAVE] = { sizeof(struct cn_msg_leave), check_leave },
	[CN_MSG_RANKS] = { sizeof(struct cn_msg_ranks), check_ranks },
	[CN_MSG_COLL] = { sizeof(struct cn_msg_coll), check_coll },
	[CN_MSG_OPEN] = { sizeof(struct cn_msg_open), check_open },
	[CN_MSG_CLOSE] = { sizeof(struct cn_msg_close), check_close },
	[CN_MSG_SEND] = { sizeof(struct cn_msg_send), check_send },
	[CN_MSG_RECV] = { sizeof(struct cn_msg_recv), check_recv },
	[CN_MSG_STATS] = { sizeof(struct cn_msg_stats), check_stats },
	[CN_MSG_NODES] = { sizeof(struct cn_msg_table), check_table },
	[CN_MSG_JOBS] = { sizeof(struct cn_msg_table), check_table },
	[CN_MSG_PING] = { sizeof(struct cn_msg_head), NULL },
	[CN_MSG_DOORBELL] = { sizeof(struct cn_msg_head), NULL },
	[CN_MSG_COMBINED] = { sizeof(struct cn_msg_combined), check_combined },
	[CN_MSG_START] = { sizeof(struct cn_msg_start), check_start },
	[CN_MSG_RELEASE] = { sizeof(struct cn_msg_release), check_release },
	[CN_MSG_WELCOME] = { sizeof(struct cn_msg_welcome), check_welcome },
	[CN_MSG_REPLY] = { sizeof(struct cn_msg_reply), check_reply },
	[CN_MSG_DONE] = { sizeof(struct cn_msg_done), check_done },
	[CN_MSG_RANK_NAMES] = { sizeof(struct cn_msg_rank_names), check_rank_names },
	[CN_MSG_STATS_REPLY] = { sizeof(struct cn_msg_stats_reply), check_stats_reply },
	[CN_MSG_NODE_TABLE] = { sizeof(struct cn_msg_node_table), check_node_table },
	[CN_MSG_JOB_TABLE] = { sizeof(struct cn_msg_job_table), check_job_table },
	[CN_MSG_PONG] = { sizeof(struct cn_msg_head), NULL },
	[CN_MSG_EVENT] = { sizeof(struct cn_msg_head), NULL },
	[CN_MSG_COMBINE] = { sizeof(struct cn_msg_combine), check_combine },
	[CN_MSG_JOINED] = { sizeof(struct cn_msg_joined), check_joined },
};

void cn_msg_rings_init(void *memory, struct cn_shm_ring *requests, struct cn_shm_ring *completions)
{
	cn_shm_ring_init(requests, memory, CN_MSG_RING_SLOTS, CN_MSG_REQUEST_SLOT);
	cn_shm_ring_init(completions,
			 (uint8_t *)memory +
				 CN_SHM_RING_BYTES(CN_MSG_RING_SLOTS, CN_MSG_REQUEST_SLOT),
			 CN_MSG_RING_SLOTS, CN_MSG_DONE_SLOT);
}

size_t cn_msg_size(uint32_t type)
{
	return type <= CN_MSG_LAST_RESPONSE ? table[type].size : 0;
}

const char *cn_msg_check(const union cn_msg *m, size_t len, bool from_daemon)
{
	size_t size;

	if (len < sizeof(struct cn_msg_head)) {
		return "shorter than a head";
	}
	size = cn_msg_size(m->head.type);
	if (size == 0 || (m->head.type >= CN_MSG_WELCOME) != from_daemon) {
		return "unknown type";
	}
	if (len != size) {
		return "wrong length";
	}
	return table[m->head.type].check == NULL ? NULL : table[m->head.type].check(m);
}
