/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport of one node: its creation and end, buffers, counters, and tokens of the engine. */
#include <stdlib.h>
#include <string.h>

#include "proto/goodbye_list.h"
#include "proto/node_impl.h"

void cn_node_config_init(struct cn_node_config *c)
{
	memset(c, 0, sizeof(*c));
	c->ethertype = 0x88b5;
	c->mtu = 1500;
	/* The bandwidth-delay product of unshaped links, where the delay is a busy machine's
	 * scheduling latency. Where buffers are small, losses keep cwnd small. */
	c->send_window = 256;
	/* Ports hold some tens of frames: if all nodes started with a full window to every peer,
	 * nearly all frames would be lost. */
	c->initial_cwnd = 16;
	/* Linux may send consecutive frames from different processors, which reorders them. */
	c->reorder = CN_REORDER_MAX;
	c->max_peers = 4096;
	c->pool_frames = 1024;
	c->rto_min = 60 * CN_MS;
	c->pto_min = 5 * CN_MS;
	c->rto_first = 120 * CN_MS;
	c->ack_delay = 20 * CN_MS;
	c->dead_after = 1500 * CN_MS;
	c->hello_interval = 500 * CN_MS;
}

static int check_config(const struct cn_node_config *c, struct cn_err *err)
{
	uint32_t least;

	if (c->epoch == 0 || !cn_valid_name(c->name)) {
		return cn_fail(err, COLLNET_EINVAL, "a node needs an epoch and a valid name");
	}
	least = CN_FRAME_MTU_MIN + cn_encapsulation_bytes(c->encapsulation) +
		(c->authenticated ? CN_WIRE_AUTH : 0);
	if (c->mtu < least || c->mtu > 65000) {
		return cn_fail(err, COLLNET_EINVAL,
			       "MTU %u: must be %u .. 65000 with the encapsulation %s%s", c->mtu,
			       least, cn_encapsulation_name(c->encapsulation),
			       c->authenticated ? " and a key" : "");
	}
	if (c->reorder > CN_REORDER_MAX || c->send_window < 2 || c->send_window > CN_WINDOW_MAX ||
	    c->initial_cwnd < 2 || c->max_peers < 1 || c->max_peers > 65535 ||
	    c->pool_frames < 16 || c->rto_min == 0 || c->rto_first == 0 || c->pto_min == 0 ||
	    c->dead_after < 100 * CN_US || c->hello_interval < 100 * CN_US) {
		return cn_fail(err, COLLNET_EINVAL, "a limit of the transport is out of range");
	}
	return COLLNET_OK;
}

/* Buffers that only control messages and tails may use: a few for every peer. Untouched ones cost
 * address space, not memory. */
static uint32_t control_reserve(const struct cn_node_config *c)
{
	return 2 * c->max_peers;
}

/* Bytes of a buffer for a short control message, with its list link. */
#define SMALL 128

void cn_node_put(struct cn_node *n, const void *buffer)
{
	void *b = (void *)(uintptr_t)buffer;

	cn_pool_put(cn_pool_owns(&n->small, b) ? &n->small : &n->pool, b);
}

int cn_node_new(const struct cn_node_config *c, const struct cn_node_ops *ops, void *ctx,
		struct cn_node **out, struct cn_err *err)
{
	struct cn_node *n;
	uint32_t slots = 16, unvalidated;
	int r = check_config(c, err);

	if (r != COLLNET_OK) {
		return r;
	}
	unvalidated = cn_unvalidated_slots(c->port == 0 ? c->max_peers : 1);
	while (slots < 2 * c->max_peers) {
		slots *= 2;
	}
	n = calloc(1, sizeof(*n));
	if (n == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the transport");
	}
	n->config = *c;
	n->ops = ops;
	n->ctx = ctx;
	n->header = cn_encapsulation_bytes(c->encapsulation) + cn_wire_header(c->authenticated);
	if (c->authenticated) {
		cn_auth_hello_key(c->cluster_key, n->hello_key);
	}
	n->payload = c->mtu - n->header;
	n->hash_mask = slots - 1;
	memcpy(&n->hash_key, c->key, sizeof(n->hash_key));
	n->own_window.limit = COLLNET_WINDOW_OFF;
	n->window = c->window_shared != NULL ? c->window_shared : &n->own_window;
	n->peers = calloc(c->max_peers, sizeof(struct cn_peer *));
	n->hash = calloc(slots, sizeof(*n->hash));
	n->zeros = calloc(1, n->payload);
	n->names = calloc(c->max_peers, sizeof(*n->names));
	n->unvalidated = calloc(unvalidated, sizeof(*n->unvalidated));
	if (n->peers == NULL || n->hash == NULL || n->zeros == NULL || n->names == NULL ||
	    n->unvalidated == NULL ||
	    cn_heap_init(&n->timers, c->max_peers + unvalidated + 2) != COLLNET_OK ||
	    cn_pool_init(&n->pool, c->mtu, c->pool_frames + control_reserve(c)) != COLLNET_OK ||
	    cn_pool_init(&n->small, SMALL, control_reserve(c)) != COLLNET_OK ||
	    cn_pool_init(&n->rings, CN_RTX_SMALL * sizeof(struct cn_rtx_frame), c->max_peers) !=
		    COLLNET_OK) {
		cn_node_free(n);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the transport");
	}
	n->nunvalidated = unvalidated;
	for (uint32_t i = 0; i < unvalidated; i++) {
		n->unvalidated[i].timer.at = CN_NEVER;
		n->unvalidated[i].timer.owner = n->unvalidated;
	}
	if (c->goodbyes != NULL) {
		cn_goodbye_list_init(c->goodbyes, c);
	}
	n->idle.timer.at = CN_NEVER;
	n->hello_timer.at = CN_NEVER;
	if (c->port == 0) {
		cn_heap_set(&n->timers, &n->hello_timer, 0);
	}
	*out = n;
	return COLLNET_OK;
}

void cn_node_free(struct cn_node *n)
{
	if (n == NULL) {
		return;
	}
	for (uint32_t i = 0; i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		if (p->live.own != &p->live) {
			cn_liveness_reset(p); /* port 0's session counts it */
		}
		cn_sender_free(p);
		cn_receiver_free(p);
		free(p);
	}
	free(n->peers);
	free(n->hash);
	free(n->zeros);
	free(n->names);
	free(n->unvalidated);
	cn_heap_fini(&n->timers);
	cn_pool_fini(&n->pool);
	cn_pool_fini(&n->small);
	cn_pool_fini(&n->rings);
	free(n);
}

void cn_node_bye(struct cn_node *n, enum cn_bye why)
{
	n->bye = why;
	n->leaving = true;
	n->hello_due = false;
	n->byes_due = 3; /* goodbyes are not acknowledged */
}

bool cn_node_drain(struct cn_node *n)
{
	bool drained = true;

	for (uint32_t i = 0; i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		if (p->state != CN_PEER_UP || p->live.own->timed_out) {
			continue;
		}
		if (p->rx.ack_at != CN_NEVER) {
			p->rx.ack_at = CN_NEVER;
			p->ack_due = true;
			cn_peer_ready(p);
		}
		if (p->ack_due || p->tx.queue.una != p->tx.queue.end || p->control_first != NULL) {
			drained = false;
		}
	}
	return drained;
}

cn_time cn_node_now(const struct cn_node *n)
{
	return n->now;
}

uint32_t cn_node_payload(const struct cn_node *n)
{
	return n->payload;
}

void cn_node_ready(struct cn_node *n)
{
	for (uint32_t i = 0; i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		if (p->state == CN_PEER_UP && p->rx.rnr) {
			p->rx.rnr = false;
			p->rnr_due = false;
			p->ack_due = true;
			cn_peer_ready(p);
		}
	}
}

bool cn_node_detach(struct cn_node *n, void *token, uint32_t limit)
{
	uint32_t found = 0;

	/* First count, then copy: all or nothing. */
	for (int copy = 0; copy < 2; copy++) {
		for (uint32_t i = 0; i < n->npeers; i++) {
			struct cn_peer *p = n->peers[i];

			for (uint32_t seq = p->tx.queue.una; seq != p->tx.queue.end; seq++) {
				struct cn_rtx_frame *f = cn_rtx_at(&p->tx.queue, seq);
				uint8_t *b;

				if (f->token != token) {
					continue;
				}
				if (copy == 0) {
					found += !f->owned;
					continue;
				}
				f->token = NULL;
				if (f->len > 0 && !f->owned) {
					b = cn_pool_get(&n->pool);
					memcpy(b, f->payload, f->len);
					f->payload = b;
					f->owned = true;
				}
			}
		}
		if (copy == 0 && (found > limit || found > n->pool.free / 2)) {
			return false;
		}
	}
	return true;
}

/* True if one of the frames [from, to) with this token (NULL: any) is in flight; refused ones are
 * not. */
static bool in_flight(const struct cn_peer *p, const void *token, uint32_t from, uint32_t to)
{
	for (uint32_t seq = from; seq != to; seq++) {
		const struct cn_rtx_frame *f = cn_rtx_at(&p->tx.queue, seq);

		if (f->token != NULL && (f->token == token || token == NULL) && !f->refused) {
			return true;
		}
	}
	return false;
}

bool cn_node_is_acked_soon(const struct cn_node *n, const void *token)
{
	for (uint32_t i = 0; i < n->npeers; i++) {
		const struct cn_peer *p = n->peers[i];

		if (in_flight(p, token, p->tx.queue.una, p->tx.ackreq_end)) {
			return true;
		}
	}
	return false;
}

bool cn_node_request_acks(struct cn_node *n, const void *token)
{
	bool any = false;

	for (uint32_t i = 0; i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		if (in_flight(p, token, p->tx.ackreq_end, p->tx.queue.end)) {
			cn_sender_request_ack(p);
			any = true;
		}
	}
	return any;
}

static void make_tombstone(struct cn_node *n, struct cn_rtx_frame *f)
{
	if (f->owned) {
		cn_node_put(n, f->payload);
		f->owned = false;
	}
	f->token = NULL;
	f->payload = NULL;
	f->len = 0;
	f->flags &= CN_FLAG_ACKREQ;
	f->flags |= f->type == CN_TYPE_COLL ? CN_FLAG_LAST : 0;
	f->type = CN_TYPE_CONTROL;
}

void cn_node_abandon(struct cn_node *n, void *token)
{
	for (uint32_t i = 0; i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		for (uint32_t seq = p->tx.queue.una; seq != p->tx.queue.end; seq++) {
			struct cn_rtx_frame *f = cn_rtx_at(&p->tx.queue, seq);

			if (f->token == token) {
				make_tombstone(n, f);
			}
		}
	}
}

void cn_node_abandon_longer(struct cn_node *n, uint32_t mtu)
{
	const uint32_t fits = mtu > n->header ? mtu - n->header : 0;

	for (uint32_t i = 0; i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		for (uint32_t seq = p->tx.queue.una; seq != p->tx.queue.end; seq++) {
			struct cn_rtx_frame *f = cn_rtx_at(&p->tx.queue, seq);
			void *token = f->token;

			if (!f->owned || f->len <= fits) {
				continue;
			}
			make_tombstone(n, f);
			if (token != NULL) {
				n->ops->acked(n->ctx, token, f->refused);
			}
		}
	}
}

bool cn_node_has_buffer(const struct cn_node *n)
{
	return n->pool.free > control_reserve(&n->config);
}

void *cn_node_buffer_get(struct cn_node *n)
{
	return cn_node_has_buffer(n) ? cn_pool_get(&n->pool) : NULL;
}

void cn_node_buffer_put(struct cn_node *n, void *buffer)
{
	cn_pool_put(&n->pool, buffer);
}

uint32_t cn_node_peers(const struct cn_node *n)
{
	return n->npeers;
}

struct cn_peer *cn_node_peer(struct cn_node *n, uint32_t index)
{
	return index < n->npeers ? n->peers[index] : NULL;
}

struct cn_peer *cn_node_find(const struct cn_node *n, const char *name)
{
	uint32_t hash = cn_name_hash(name);

	for (uint32_t i = 0; i < n->npeers; i++) {
		if (n->names[i] == hash && strcmp(n->peers[i]->name, name) == 0) {
			return n->peers[i];
		}
	}
	return NULL;
}

struct cn_window *cn_node_window(struct cn_node *n)
{
	return n->window;
}

void cn_node_stats(const struct cn_node *n, struct collnet_stats *s)
{
	const struct cn_counters *c = &n->counters;

	s->frames_sent += c->frames_sent;
	s->frames_received += c->frames_received;
	s->bytes_sent += c->bytes_sent;
	s->bytes_received += c->bytes_received;
	s->data_sent += c->data_sent;
	s->data_resent += c->data_resent;
	s->data_received += c->data_received;
	s->acks_sent += c->acks_sent;
	s->ack_bytes_sent += c->ack_bytes_sent;
	s->naks_sent += c->naks_sent;
	s->duplicates += c->duplicates;
	s->gaps += c->gaps;
	s->timeouts += c->timeouts;
	s->busy += c->rnr;
	s->bad_frames += c->bad_frames;
	s->foreign_frames += c->foreign_frames;
	s->stale_frames += c->stale_frames;
	s->version_frames += c->version_frames;
	s->window = n->window->limit;
	s->window_now = n->window->in_flight;
	s->window_peak = n->window->peak;
	s->mtu = n->config.mtu;
	if (n->config.port != 0) {
		return; /* its peers are counted by port 0 */
	}
	s->other_heard = cn_node_other_cluster(n, n->now, &s->other_cluster);
	s->nodes = 1;
	for (uint32_t i = 0; i < n->npeers; i++) {
		s->nodes += n->peers[i]->state == CN_PEER_UP;
	}
}

const struct cn_node_config *cn_node_config(const struct cn_node *n)
{
	return &n->config;
}
