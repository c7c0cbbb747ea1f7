/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Path MTU validation. Before a team uses a peer, a probe padded to the MTU shows that every switch
 * on the way to it carries such frames; once a session, each direction by its own sender.
 *
 * A probe is an ACK frame with CN_FLAG_MTU_PROBE and the number of the try; the padding follows the
 * header and is no payload. Its receiver answers with CN_FLAG_MTU_REPLY, that number, and the size
 * of the largest probe of that number that came, so that a lost answer loses nothing.
 *
 * The first try is the padded probe alone. If its answer does not come, each further try is a
 * padded probe and a short one behind it. An answer to the try that shows no frame of the full size
 * is a strike: the short one came and the padded one did not. A path fails by strikes, not by time,
 * and by more of them on a network that loses much (cn_node_tries()).
 *
 * A reliable frame that was sent again and again while the peer answered is probed for in the same
 * way, at its own size. So it fails by count whatever caused the retransmissions, and a peer that
 * hears nothing at all is not taken for one that large frames do not reach.
 *
 * One padded probe of a node is under way. An answer, or the end of the wait for it, lets the next
 * one go. So probes are paced by what the network carries: as many full frames as there are nodes
 * at the most, which together with hellos and JOINs stay within the ports' buffers when all nodes
 * begin at once. (With four a node, twelve nodes lost a few in ports of 45 frames.)
 */
#include "proto/peer.h"

/* Padded probes of a node that are under way. */
#define SLOTS 1u
/* A loss of one in three per frame takes the longer one 16 times in a row once in 43 million. */
#define STRIKES 16u
/* So many strikes follow each other after pto_min; then the time between them doubles. */
#define QUICK 4u

static bool is_pending(const struct cn_path *h)
{
	return h->state == CN_PATH_WAITING || h->state == CN_PATH_PROBING;
}

static cn_time wait_least(const struct cn_node *n)
{
	return 4 * n->config.pto_min;
}

/* Sends tries while there are slots. */
static void next(struct cn_node *n)
{
	while (n->path_first != NULL && n->path_slots < SLOTS) {
		struct cn_peer *p = n->path_first;
		struct cn_path *h = &p->path;

		n->path_first = h->next;
		if (n->path_first == NULL) {
			n->path_last = NULL;
		}
		h->state = CN_PATH_PROBING;
		h->slot = true;
		n->path_slots++;
		h->number++;
		h->full_due = true;
		h->short_due = h->again;
		h->again = true;
		h->sent = n->now;
		h->at = n->now + n->path_wait;
		cn_peer_ready(p);
		cn_peer_reschedule(p);
	}
}

static void enqueue(struct cn_peer *p)
{
	struct cn_node *n = p->node;

	p->path.state = CN_PATH_WAITING;
	p->path.at = CN_NEVER;
	p->path.next = NULL;
	if (n->path_last != NULL) {
		n->path_last->path.next = p;
	} else {
		n->path_first = p;
	}
	n->path_last = p;
}

static void unqueue(struct cn_peer *p)
{
	struct cn_node *n = p->node;
	struct cn_peer **at = &n->path_first, *before = NULL;

	while (*at != NULL && *at != p) {
		before = *at;
		at = &before->path.next;
	}
	if (*at == p) {
		*at = p->path.next;
		if (n->path_last == p) {
			n->path_last = before;
		}
	}
}

/* It is neither under way nor waits to be. */
static void withdraw(struct cn_peer *p)
{
	if (p->path.state == CN_PATH_WAITING) {
		unqueue(p);
	}
	p->node->path_slots -= p->path.slot;
	p->path.slot = p->path.full_due = p->path.short_due = false;
	p->path.at = CN_NEVER;
}

static void begin(struct cn_peer *p, uint32_t size, bool by_data)
{
	struct cn_node *n = p->node;

	p->path.before = p->path.state;
	p->path.strikes = 0;
	p->path.size = size;
	p->path.by_data = by_data;
	p->path.again = false;
	if (n->path_wait == 0) {
		n->path_wait = wait_least(n);
	}
	cn_peer_expect(n, n->now, p, 1); /* it may be gone, too */
	enqueue(p);
	next(n);
}

void cn_path_reset(struct cn_peer *p)
{
	bool pending = is_pending(&p->path);

	withdraw(p);
	p->path = (struct cn_path){ .at = CN_NEVER, .number = p->path.number };
	if (pending) {
		cn_peer_expect(p->node, p->node->now, p, -1);
		next(p->node);
	}
}

void cn_peer_validate(struct cn_node *n, cn_time now, struct cn_peer *p)
{
	n->now = now;
	if (p->state == CN_PEER_UP && !is_pending(&p->path) && p->path.state != CN_PATH_VALID) {
		begin(p, n->config.mtu, false);
	}
}

enum cn_path_state cn_peer_path(const struct cn_peer *p)
{
	return p->path.state;
}

void cn_path_suspect(struct cn_peer *p, uint32_t bytes)
{
	if (!is_pending(&p->path)) {
		begin(p, bytes, true);
	}
}

static void end(struct cn_peer *p, bool valid)
{
	struct cn_node *n = p->node;
	struct cn_path *h = &p->path;
	struct cn_sender *t = &p->tx;

	withdraw(p);
	h->state = !valid ? CN_PATH_FAILED : h->by_data ? h->before : CN_PATH_VALID;
	t->repeats = 0;
	cn_peer_expect(n, n->now, p, -1);
	next(n);
	if (n->ops->path != NULL) {
		n->ops->path(n->ctx, n->now, p, valid ? 0 : h->size);
	}
	if (!valid && h->by_data && p->state == CN_PEER_UP && t->una != t->end &&
	    CN_WIRE_HEADER + (uint32_t)cn_sender_entry(p, t->una)->len >= h->size) {
		cn_peer_down(p, CN_PEER_PATH);
	}
}

/* No answer to a try: a loss, a long queue, or nobody is there. Or the pause after a strike is
 * over. */
void cn_path_expire(struct cn_peer *p)
{
	struct cn_path *h = &p->path;
	struct cn_node *n = p->node;

	if (h->slot && h->sent >= n->path_backoff) { /* once a round */
		n->path_backoff = n->now;
		n->path_wait = cn_min_time(2 * n->path_wait, n->config.dead_after / 3);
	}
	withdraw(p);
	if (h->state == CN_PATH_PROBING) {
		enqueue(p);
		next(n);
	}
}

void cn_path_probed(struct cn_peer *p, uint32_t stream, uint32_t bytes)
{
	uint16_t number = (uint16_t)(stream >> 16);

	if (number != p->size_number || bytes > p->largest) {
		p->largest = (uint16_t)bytes;
	}
	p->size_number = number;
	p->size_due = true;
	cn_peer_ready(p);
}

static void pause_after_strike(struct cn_peer *p)
{
	struct cn_path *h = &p->path;
	struct cn_node *n = p->node;
	cn_time step = n->config.pto_min, most = 10 * step;

	for (uint32_t i = QUICK; i < h->strikes && step < most; i++) {
		step *= 2;
	}
	withdraw(p);
	h->state = CN_PATH_PROBING;
	h->at = n->now + cn_min_time(step, most);
	next(n);
	cn_peer_reschedule(p);
}

void cn_path_answer(struct cn_peer *p, uint32_t stream)
{
	struct cn_path *h = &p->path;
	struct cn_node *n = p->node;
	cn_time wait;

	if (!is_pending(h) || stream >> 16 != h->number || h->full_due || h->short_due) {
		return;
	}
	if (h->slot) {
		wait = 3 * (n->now - h->sent);
		wait = wait > wait_least(n) ? wait : wait_least(n);
		n->path_wait = cn_min_time(wait, n->config.dead_after / 3);
	}
	if ((stream & 0xffff) >= h->size) {
		end(p, true);
	} else if (h->slot) { /* once a try */
		if (++h->strikes >= STRIKES && h->strikes >= cn_node_tries(n)) {
			end(p, false);
		} else {
			pause_after_strike(p);
		}
	}
}
