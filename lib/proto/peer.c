/* SPDX-License-Identifier: BSD-2-Clause */
/* The node table: peers by MAC address, start and end of their sessions, their timers. */
#include <stdlib.h>
#include <string.h>

#include "proto/node_impl.h"
#include "proto/goodbye_list.h"

static uint32_t slot_of(const struct cn_node *n, const uint8_t mac[6])
{
	uint64_t x = 0;

	for (int i = 0; i < 6; i++) {
		x = x << 8 | mac[i];
	}
	return (uint32_t)cn_mix64(x ^ n->hash_key) & n->hash_mask;
}

struct cn_peer *cn_peer_by_mac(struct cn_node *n, const uint8_t mac[6])
{
	for (uint32_t s = slot_of(n, mac); n->hash[s] != 0; s = (s + 1) & n->hash_mask) {
		struct cn_peer *p = n->peers[n->hash[s] - 1];

		if (memcmp(p->mac, mac, 6) == 0) {
			return p;
		}
	}
	return NULL;
}

static void enter(struct cn_node *n, const struct cn_peer *p)
{
	uint32_t s = slot_of(n, p->mac);

	while (n->hash[s] != 0) {
		s = (s + 1) & n->hash_mask;
	}
	n->hash[s] = p->index + 1;
}

/* A node is gone after this many times the longest silence of a live node: in a small cluster, and
 * in a large one, whose hellos are rarer. */
#define GONE_AFTER	 20u
#define GONE_AFTER_LARGE 2u
#define FULL_LOG	 (60 * 1000 * CN_MS) /* between log lines that the table is full */

/* The longest silence of a live node, allowing for some lost hellos. */
static cn_time longest_silence(const struct cn_node *n)
{
	return n->config.dead_after + 3 * cn_hello_interval(n);
}

/* The hello interval grows with the table, so forged nodes that fill it would stay for long: it has
 * less weight here. */
static cn_time gone_after(const struct cn_node *n)
{
	const cn_time small = GONE_AFTER * (n->config.dead_after + 3 * n->config.hello_interval);
	const cn_time large = GONE_AFTER_LARGE * longest_silence(n);

	return small > large ? small : large;
}

static bool is_listed(const struct cn_node *n, const char *name)
{
	return n->ops->listed != NULL && n->ops->listed(n->ctx, name);
}

/* True if the entry may be reused; listed: for a listed node. */
static bool is_replaceable(const struct cn_peer *p, bool listed)
{
	const struct cn_node *n = p->node;
	const bool established = p->state != CN_PEER_DOWN && p->validated;

	/* Something waits for the node, on any port. */
	if (p->ready || p->live.waiting > 0 || p->tx.queue.una != p->tx.queue.end) {
		return false;
	}
	return p->live.last_rx + (established ? gone_after(n) : n->config.dead_after) < n->now ||
	       (listed && (p->state == CN_PEER_DOWN || !is_listed(n, p->name)));
}

/*
 * The table is full: reuses the entry of a peer without a session established at both ends, or
 * silent for long, the one heard from least recently. A listed node may also replace one that has
 * no session or is not listed. Names of sessions are unique, so forged nodes can take at most the
 * names of listed nodes that are down. The scan is rate-limited, separately for listed nodes.
 */
static struct cn_peer *evict(struct cn_node *n, const uint8_t mac[6], bool listed)
{
	struct cn_peer *oldest = NULL;

	if (n->now < n->evict_at[listed]) {
		return NULL;
	}
	n->evict_at[listed] = n->now + 100 * CN_MS;
	for (uint32_t i = 0; i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		if (is_replaceable(p, listed) &&
		    (oldest == NULL || p->live.last_rx < oldest->live.last_rx)) {
			oldest = p;
		}
	}
	if (oldest == NULL) {
		if (n->now >= n->full_log_at) {
			n->full_log_at = n->now + FULL_LOG;
			cn_log(COLLNET_LOG_WARNING,
			       "the table of nodes is full: another one than the %u in it is "
			       "ignored until one of them is gone",
			       n->npeers);
		}
		return NULL;
	}
	cn_peer_down(oldest, CN_PEER_SILENT);
	memcpy(oldest->mac, mac, 6);
	n->evicted++;
	oldest->epoch = oldest->nonce_in = oldest->refused_at = 0;
	oldest->validated = oldest->mtu_logged = false;
	oldest->hello.due = oldest->reset_due = false;
	oldest->log = (struct cn_bucket){ 0 };
	oldest->data_sent = oldest->data_resent = oldest->data_received = 0;
	oldest->live.own->loss = 0;
	memset(oldest->hello.last, 0, sizeof(oldest->hello.last));
	oldest->hello.later_at = CN_NEVER;
	cn_peer_reschedule(oldest);
	memset(n->hash, 0, ((size_t)n->hash_mask + 1) * sizeof(*n->hash));
	for (uint32_t i = 0; i < n->npeers; i++) {
		enter(n, n->peers[i]);
	}
	return oldest;
}

struct cn_peer *cn_peer_add(struct cn_node *n, const uint8_t mac[6], const char *name)
{
	struct cn_peer *p;

	if (n->npeers == n->config.max_peers) {
		return evict(n, mac, name != NULL && is_listed(n, name));
	}
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		return NULL;
	}
	p->node = n;
	p->index = n->npeers;
	p->state = CN_PEER_DOWN;
	memcpy(p->mac, mac, 6);
	cn_liveness_init(&p->live);
	p->tlp.at = p->hello.later_at = p->path.at = CN_NEVER;
	p->tx.rto_at = CN_NEVER;
	p->rx.ack_at = p->rx.nak_at = CN_NEVER;
	p->timer.at = CN_NEVER;
	p->timer.owner = p;
	n->peers[n->npeers++] = p;
	enter(n, p);
	return p;
}

void cn_peer_ready(struct cn_peer *p)
{
	struct cn_node *n = p->node;

	if (p->ready) {
		return;
	}
	p->ready = true;
	p->ready_next = NULL;
	if (n->ready_last != NULL) {
		n->ready_last->ready_next = p;
	} else {
		n->ready_first = p;
	}
	n->ready_last = p;
}

static cn_time peer_deadline(const struct cn_peer *p)
{
	cn_time at = p->hello.later_at;

	if (p->state == CN_PEER_UP) {
		at = cn_min_time(at, cn_min_time(p->rx.nak_at, p->tx.rto_at));
		at = cn_min_time(at, cn_min_time(p->rx.ack_at, p->tlp.at));
		at = cn_min_time(at, cn_min_time(cn_liveness_deadline(&p->live), p->path.at));
	}
	return at;
}

/*
 * The timer is only moved to earlier times, because deadlines change with every frame. If it
 * expires too early, it finds nothing to do and is set again.
 */
void cn_peer_reschedule(struct cn_peer *p)
{
	cn_time at = peer_deadline(p);

	if (at < p->timer.at) {
		cn_heap_set(&p->node->timers, &p->timer, at);
	}
}

void cn_peer_set_timer(struct cn_peer *p)
{
	cn_heap_set(&p->node->timers, &p->timer, peer_deadline(p));
}

uint32_t cn_name_hash(const char *name)
{
	uint64_t h = 0;

	while (*name != '\0') {
		h = cn_mix64(h ^ (uint8_t)*name++);
	}
	return (uint32_t)h | 1;
}

/* Both epochs and nonces are known: starts a new session, with a new sequence in each direction. */
void cn_peer_up(struct cn_peer *p)
{
	struct cn_node *n = p->node;
	struct cn_end us = { n->config.epoch, p->nonce_out }, it = { p->epoch, p->nonce_in };
	struct cn_session out = cn_session(&us, &it), in = cn_session(&it, &us);

	p->session_out = out.id;
	p->session_in = in.id;
	p->bye_out = out.bye;
	p->bye_in = in.bye;
	if (n->config.authenticated) {
		cn_auth_begin(&p->auth, n->config.cluster_key, &us, &it);
	}
	cn_sender_init(p, out.first);
	cn_receiver_init(p, in.first);
	cn_path_reset(p);
	p->path_reply = (struct cn_path_reply){ 0 };
	p->validated = p->live.timed_out = p->reset_due = false;
	p->live.last_session_rx = 0;
	p->unheard = 0;
	p->ended = false;
	p->state = CN_PEER_UP;
	n->names[p->index] = cn_name_hash(p->name);
	if (n->config.goodbyes != NULL) {
		cn_goodbye_list_set(n->config.goodbyes, p->index, p->mac, p->session_out,
				    p->bye_out);
	}
	n->ops->peer_up(n->ctx, n->now, p);
}

void cn_peer_down(struct cn_peer *p, enum cn_peer_loss why)
{
	struct cn_node *n = p->node;

	if (p->state != CN_PEER_UP) {
		return;
	}
	p->state = CN_PEER_DOWN;
	if (n->config.goodbyes != NULL) {
		cn_goodbye_list_clear(n->config.goodbyes, p->index);
	}
	n->names[p->index] &= ~1u;
	/* Invalidates frames in flight and echoes of the session. On other ports the nonces remain:
	 * by them cn_node_connect() recognises a session that has ended. */
	if (n->config.port == 0) {
		p->nonce_out = cn_nonce(n, p->mac, ++p->generation);
	}
	memset(p->hello.last, 0, sizeof(p->hello.last));
	p->hello.fresh = p->hello.challenged = false;
	p->ack_due = p->nak_due = p->rnr_due = p->ackreq_due = p->path_reply.due = false;
	cn_path_reset(p);
	cn_sender_drop_all(p);
	cn_receiver_drop_all(p);
	while (p->control_first != NULL) {
		uint8_t *b = p->control_first;

		memcpy(&p->control_first, b, sizeof(p->control_first));
		cn_node_put(n, b);
	}
	p->control_last = NULL;
	p->controls = 0;
	cn_liveness_reset(p);
	p->rx.ack_at = CN_NEVER;
	cn_peer_reschedule(p);
	/* The peer may hear this node, although its own frames do not arrive. */
	p->reset_due = why == CN_PEER_SILENT;
	if (p->reset_due) {
		cn_peer_ready(p);
	}
	n->ops->peer_down(n->ctx, n->now, p, why);
}

uint32_t cn_peer_room(struct cn_peer *p)
{
	if (p->state != CN_PEER_UP || !cn_sender_is_open(p) || p->control_first != NULL ||
	    !cn_rtx_reserve(&p->tx.queue, &p->node->rings)) {
		return 0;
	}
	return p->tx.cc.cwnd - cn_rtx_in_flight(&p->tx.queue);
}

uint32_t cn_peer_in_flight(const struct cn_peer *p)
{
	return cn_rtx_in_flight(&p->tx.queue);
}

uint32_t cn_peer_unrequested(const struct cn_peer *p)
{
	return p->tx.queue.end - p->tx.ackreq_end;
}

bool cn_peer_ack_requested(const struct cn_peer *p)
{
	return p->tx.ackreq_end != p->tx.queue.una;
}

void cn_peer_request_ack(struct cn_peer *p)
{
	if (!cn_peer_ack_requested(p) && p->tx.queue.una != p->tx.queue.end) {
		cn_sender_request_ack(p);
	}
}

const char *cn_peer_name(const struct cn_peer *p)
{
	return p->name;
}

uint32_t cn_peer_index(const struct cn_peer *p)
{
	return p->index;
}

bool cn_peer_alive(const struct cn_peer *p)
{
	return p->state == CN_PEER_UP;
}

cn_time cn_peer_least_rtt(const struct cn_peer *p)
{
	return p->tx.rtt.least;
}

void *cn_peer_user(const struct cn_peer *p)
{
	return p->user;
}

void cn_peer_set_user(struct cn_peer *p, void *user)
{
	p->user = user;
}

bool cn_peer_is_replaced(const struct cn_peer *p)
{
	return p->node->names[p->index] == 0;
}

uint32_t cn_peer_unheard(const struct cn_peer *p)
{
	return p->unheard;
}

uint32_t cn_peer_mtu(const struct cn_peer *p)
{
	return p->mtu;
}

void cn_peer_info(const struct cn_peer *p, cn_time now, struct collnet_node_info *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->name, p->name, sizeof(out->name));
	memcpy(out->mac, p->mac, 6);
	out->mtu = p->mtu;
	out->wire_version = CN_WIRE_VERSION;
	out->heard_ns = now > p->live.last_rx ? now - p->live.last_rx : 0;
	out->alive = p->state == CN_PEER_UP && out->heard_ns < longest_silence(p->node);
	out->rtt_ns = p->tx.rtt.srtt;
	out->data_sent = p->data_sent;
	out->data_resent = p->data_resent;
	out->data_received = p->data_received;
}
