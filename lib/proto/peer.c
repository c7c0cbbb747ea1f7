/* SPDX-License-Identifier: BSD-2-Clause */
/* The node table: peers by MAC address, their coming and going, their timers. */
#include <stdlib.h>
#include <string.h>

#include "proto/peer.h"
#include "proto/goodbye_list.h"

static uint32_t slot_of(const struct cn_node *n, const uint8_t mac[6])
{
	uint64_t x = 0;

	for (int i = 0; i < 6; i++) {
		x = x << 8 | mac[i];
	}
	return (uint32_t)cn_mix64(x) & n->hash_mask;
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

/*
 * The table is full: the place of one that is gone, or sent no frame of its session, goes to the
 * newcomer; the one that was silent longest. Not often, since it looks at all of them.
 */
static struct cn_peer *evict(struct cn_node *n, const uint8_t mac[6])
{
	struct cn_peer *oldest = NULL;

	if (n->now < n->evict_at) {
		return NULL;
	}
	n->evict_at = n->now + 100 * CN_MS;
	for (uint32_t i = 0; i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		if ((p->state == CN_PEER_DOWN || !p->proven) && !p->ready && p->expecting == 0 &&
		    p->tx.una == p->tx.end && p->heard + n->config.dead_after < n->now &&
		    (oldest == NULL || p->heard < oldest->heard)) {
			oldest = p;
		}
	}
	if (oldest == NULL) {
		return NULL;
	}
	cn_peer_down(oldest, CN_PEER_SILENT);
	memcpy(oldest->mac, mac, 6);
	n->evicted++;
	oldest->epoch = oldest->nonce_in = 0;
	oldest->proven = oldest->mtu_told = false;
	oldest->hello_due = false;
	oldest->log = (struct cn_bucket){ 0 };
	memset(oldest->hello_last, 0, sizeof(oldest->hello_last));
	oldest->hello_at = CN_NEVER;
	cn_peer_reschedule(oldest);
	memset(n->hash, 0, ((size_t)n->hash_mask + 1) * sizeof(*n->hash));
	for (uint32_t i = 0; i < n->npeers; i++) {
		enter(n, n->peers[i]);
	}
	return oldest;
}

struct cn_peer *cn_peer_add(struct cn_node *n, const uint8_t mac[6])
{
	struct cn_peer *p;

	if (n->npeers == n->config.max_peers) {
		return evict(n, mac);
	}
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		return NULL;
	}
	p->node = n;
	p->index = n->npeers;
	p->state = CN_PEER_DOWN;
	memcpy(p->mac, mac, 6);
	p->probe_at = p->query_at = p->hello_at = p->path.at = CN_NEVER;
	p->tx.rto_at = CN_NEVER;
	p->rx.ack_at = p->rx.gap_at = CN_NEVER;
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
	cn_time at = p->hello_at;

	if (p->state == CN_PEER_UP) {
		at = cn_min_time(at, cn_min_time(p->rx.gap_at, p->tx.rto_at));
		at = cn_min_time(at,
				 cn_min_time(p->rx.ack_at, cn_min_time(p->probe_at, p->query_at)));
		at = cn_min_time(at, p->path.at);
	}
	return at;
}

/*
 * The timer is only ever moved forward: deadlines come and go with every frame. Called too early,
 * it finds nothing to do and is set anew.
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

/* Both epochs and nonces are known: a new sequence each way begins. */
void cn_peer_up(struct cn_peer *p)
{
	struct cn_node *n = p->node;
	struct cn_end us = { n->config.epoch, p->nonce_out }, it = { p->epoch, p->nonce_in };
	struct cn_session out = cn_session(&us, &it), in = cn_session(&it, &us);
	uint32_t bias = n->config.seq_bias;

	p->session_out = out.id;
	p->session_in = in.id;
	p->bye_out = out.bye;
	p->bye_in = in.bye;
	p->tx.una = p->tx.next = p->tx.end = bias != 0 ? bias : out.first;
	p->tx.recover = p->tx.una;
	p->tx.cwnd = n->config.initial_cwnd < n->config.window ? n->config.initial_cwnd
							       : n->config.window;
	p->tx.slow_until = n->config.window;
	p->tx.credit = 0;
	p->tx.doublings = p->tx.repeats = 0;
	p->tx.answered = false;
	p->tx.rto_at = CN_NEVER;
	p->tx.hold = p->tx.hold_until = 0;
	p->tx.rtt = (struct cn_rtt){ 0 };
	p->tx.cadence = (struct cn_cadence){ 0 };
	p->rx = (struct cn_receiver){
		.expected = bias != 0 ? bias : in.first,
		.ack_at = CN_NEVER,
		.gap_at = CN_NEVER,
		.held = p->rx.held,
	};
	cn_path_reset(p);
	p->size_number = p->largest = 0;
	p->size_due = false;
	p->proven = false;
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
	n->names[p->index] = 0;
	/* What is still under way, and every echo of it, belongs to a session that is over. */
	p->nonce_out = cn_nonce(n, p->mac, ++p->generation);
	memset(p->hello_last, 0, sizeof(p->hello_last));
	p->ack_due = p->nak_due = p->busy_due = p->probe_due = p->size_due = false;
	cn_path_reset(p);
	cn_sender_drop_all(p);
	cn_receiver_drop_all(p);
	while (p->control_first != NULL) {
		uint8_t *b = p->control_first;

		memcpy(&p->control_first, b, sizeof(p->control_first));
		cn_node_put(n, b);
	}
	p->control_last = NULL;
	n->nexpecting -= p->expecting > 0;
	p->expecting = 0;
	p->probes = 0;
	p->contested = false;
	p->probe_at = p->query_at = CN_NEVER;
	p->rx.ack_at = CN_NEVER;
	cn_peer_reschedule(p);
	n->ops->peer_down(n->ctx, n->now, p, why);
	p->suspected = 0;
}

void cn_peer_expect(struct cn_node *n, cn_time now, struct cn_peer *p, int delta)
{
	if (p->state != CN_PEER_UP) {
		return;
	}
	if (delta > 0) {
		if (p->expecting++ == 0) {
			p->expect_since = now;
			p->probes = 0;
			p->probe_at = now + n->config.dead_after / 5;
			p->query_wait = 0;
			p->query_at = CN_NEVER;
			if (n->nexpecting++ == 0) {
				cn_heap_set(&n->timers, &n->quiet_timer, now + cn_quiet_after(n));
			}
		}
	} else if (p->expecting > 0 && --p->expecting == 0) {
		p->probe_at = p->query_at = CN_NEVER;
		n->nexpecting--; /* the timer finds it so */
	}
	cn_peer_reschedule(p);
}

void cn_peer_contest(struct cn_peer *p)
{
	if (!p->contested) {
		p->contested = true;
		if (p->probe_at == CN_NEVER) {
			p->expect_since = p->node->now;
			p->probes = 0;
			p->probe_at = p->node->now + p->node->config.dead_after / 20;
			cn_peer_reschedule(p);
		}
	}
}

uint32_t cn_peer_room(const struct cn_peer *p)
{
	uint32_t flight = p->tx.end - p->tx.una;

	if (p->state != CN_PEER_UP || p->tx.next != p->tx.end || p->tx.hold_until != 0 ||
	    p->control_first != NULL) {
		return 0;
	}
	/* The ring's size is nothing that a caller can see. */
	return flight < p->tx.cwnd && cn_sender_reserve((struct cn_peer *)(uintptr_t)p)
		       ? p->tx.cwnd - flight
		       : 0;
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

void *cn_peer_user(const struct cn_peer *p)
{
	return p->user;
}

void cn_peer_set_user(struct cn_peer *p, void *user)
{
	p->user = user;
}

uint32_t cn_peer_mtu(const struct cn_peer *p)
{
	return p->mtu;
}

cn_time cn_peer_rtt(const struct cn_peer *p)
{
	return p->tx.rtt.srtt;
}

void cn_peer_info(const struct cn_peer *p, cn_time now, struct collnet_node_info *out)
{
	cn_time most = p->node->config.dead_after + 3 * cn_hello_interval(p->node);

	memset(out, 0, sizeof(*out));
	memcpy(out->name, p->name, sizeof(out->name));
	memcpy(out->mac, p->mac, 6);
	out->mtu = p->mtu;
	out->wire_version = CN_WIRE_VERSION;
	out->heard_ns = now > p->heard ? now - p->heard : 0;
	out->alive = p->state == CN_PEER_UP && out->heard_ns < most;
	out->rtt_ns = p->tx.rtt.srtt;
	out->data_sent = p->data_sent;
	out->data_resent = p->data_resent;
	out->data_received = p->data_received;
}
