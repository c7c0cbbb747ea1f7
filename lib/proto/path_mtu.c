/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Path MTU validation, by probe packets as in RFC 4821 and RFC 8899. Before a team uses a peer, a
 * probe padded to the MTU shows that every switch on the path carries such frames; once per
 * session, each direction by its own sender.
 *
 * A probe is an ACK frame with CN_FLAG_MTU_PROBE and the number of the try; the padding follows the
 * header and is no payload. Its receiver answers with CN_FLAG_MTU_REPLY, that number, and the size
 * of the largest probe of that number that came, so that the loss of one reply does no harm.
 *
 * The first try is the padded probe alone. If it is not answered, each further try is a padded
 * probe followed by a short one. An answer to the try that shows no frame of the full size is a
 * strike: the short probe came and the padded one did not. A path fails by strikes, not by time,
 * and by more of them on a lossy network (cn_node_min_tries()).
 *
 * A reliable frame that was retransmitted again and again while the peer answered is probed for in
 * the same way, at its own size. So the path fails by count whatever caused the retransmissions,
 * and a peer that receives nothing at all is distinguished from a path MTU black hole.
 *
 * A node has at most one padded probe outstanding. A reply or its timeout triggers the next one. So
 * probes are self-clocked: at most as many full frames as there are nodes, which together with
 * hellos and JOINs fit the ports' buffers when all nodes start at once.
 */
#include "proto/path_mtu.h"

#include "proto/node_impl.h"

/* A loss of one in three per frame takes the longer probe 16 times in a row once in 43 million. */
#define STRIKES 16u
/* This many strikes follow each other after pto_min; then the interval doubles. */
#define QUICK_STRIKES 4u

static bool is_pending(const struct cn_path *h)
{
	return h->state == CN_PATH_WAITING || h->state == CN_PATH_PROBING;
}

static cn_time wait_least(const struct cn_node *n)
{
	return 4 * n->config.pto_min;
}

/* Sends the next try, unless one is outstanding. */
static void next(struct cn_node *n)
{
	struct cn_path_queue *q = &n->paths;
	struct cn_peer *p = q->first;
	struct cn_path *h;

	if (p == NULL || q->probing != NULL) {
		return;
	}
	h = &p->path;
	q->first = h->next;
	if (q->first == NULL) {
		q->last = NULL;
	}
	q->probing = p;
	h->state = CN_PATH_PROBING;
	h->number++;
	h->padded_due = true;
	h->short_due = h->again;
	h->again = true;
	h->sent_at = n->now;
	h->at = n->now + q->wait;
	cn_peer_ready(p);
	cn_peer_reschedule(p);
}

static void enqueue(struct cn_peer *p)
{
	struct cn_path_queue *q = &p->node->paths;

	p->path.state = CN_PATH_WAITING;
	p->path.at = CN_NEVER;
	p->path.next = NULL;
	if (q->last != NULL) {
		q->last->path.next = p;
	} else {
		q->first = p;
	}
	q->last = p;
}

static void dequeue(struct cn_peer *p)
{
	struct cn_path_queue *q = &p->node->paths;
	struct cn_peer **at = &q->first, *before = NULL;

	while (*at != NULL && *at != p) {
		before = *at;
		at = &before->path.next;
	}
	if (*at == p) {
		*at = p->path.next;
		if (q->last == p) {
			q->last = before;
		}
	}
}

static bool waits_for_answer(const struct cn_peer *p)
{
	return p->node->paths.probing == p;
}

/* Cancels the peer's try: outstanding, due or queued. */
static void withdraw(struct cn_peer *p)
{
	if (p->path.state == CN_PATH_WAITING) {
		dequeue(p);
	}
	if (waits_for_answer(p)) {
		p->node->paths.probing = NULL;
	}
	p->path.padded_due = p->path.short_due = false;
	p->path.at = CN_NEVER;
}

static void begin(struct cn_peer *p, uint32_t size, bool by_data)
{
	struct cn_node *n = p->node;

	p->path.before = p->path.state;
	p->path.strikes = 0;
	p->path.size = size;
	p->path.by_data = by_data;
	p->path.wanted = false;
	p->path.again = false;
	if (n->paths.wait == 0) {
		n->paths.wait = wait_least(n);
	}
	cn_peer_expect(n, n->now, p, 1); /* the peer may also be dead */
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
	if (p->state != CN_PEER_UP || cn_peer_path(p) == CN_PATH_VALID) {
		return;
	}
	if (is_pending(&p->path)) {
		p->path.wanted = p->path.by_data;
	} else {
		begin(p, n->config.mtu, false);
	}
}

/* The path state for frames of the MTU; a probe of a data frame's size may be shorter. */
enum cn_path_state cn_peer_path(const struct cn_peer *p)
{
	const struct cn_path *h = &p->path;

	return is_pending(h) && h->by_data ? h->before : h->state;
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
	const struct cn_rtx_queue *q = &p->tx.queue;
	const bool by_data = h->by_data;

	withdraw(p);
	h->state = !valid ? CN_PATH_FAILED : by_data ? h->before : CN_PATH_VALID;
	p->tx.una_resends = 0;
	cn_peer_expect(n, n->now, p, -1);
	if (valid && by_data && h->wanted) {
		begin(p, n->config.mtu, false);
	}
	next(n);
	if (valid && by_data) {
		return; /* not conclusive about the MTU */
	}
	if (n->ops->path != NULL) {
		n->ops->path(n->ctx, n->now, p, valid ? 0 : h->size);
	}
	if (!valid && by_data && p->state == CN_PEER_UP && q->una != q->end &&
	    n->header + (uint32_t)cn_rtx_at(q, q->una)->len >= h->size) {
		cn_peer_down(p, CN_PEER_PATH);
	}
}

/* A try timed out (loss, a long queue, or a dead peer), or the pause after a strike is over. */
void cn_path_expire(struct cn_peer *p)
{
	struct cn_path *h = &p->path;
	struct cn_node *n = p->node;

	if (waits_for_answer(p) && h->sent_at >= n->paths.doubled) { /* once per round */
		n->paths.doubled = n->now;
		n->paths.wait = cn_min_time(2 * n->paths.wait, n->config.dead_after / 3);
	}
	withdraw(p);
	if (h->state == CN_PATH_PROBING) {
		enqueue(p);
		next(n);
	}
}

void cn_path_probed(struct cn_peer *p, uint32_t stream, uint32_t bytes)
{
	struct cn_path_reply *r = &p->path_reply;
	uint16_t number = (uint16_t)(stream >> 16);

	if (number != r->number || bytes > r->largest) {
		r->largest = (uint16_t)bytes;
	}
	r->number = number;
	r->due = true;
	cn_peer_ready(p);
}

static void pause_after_strike(struct cn_peer *p)
{
	struct cn_path *h = &p->path;
	struct cn_node *n = p->node;
	cn_time step = n->config.pto_min, most = 10 * step;

	for (uint32_t i = QUICK_STRIKES; i < h->strikes && step < most; i++) {
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

	if (!is_pending(h) || stream >> 16 != h->number || h->padded_due || h->short_due) {
		return;
	}
	if (waits_for_answer(p)) {
		/* replies are immediate, unlike delayed acknowledgements */
		cn_rtt_sample(&p->tx.rtt, n->now - h->sent_at);
		wait = 3 * (n->now - h->sent_at);
		wait = wait > wait_least(n) ? wait : wait_least(n);
		n->paths.wait = cn_min_time(wait, n->config.dead_after / 3);
	}
	if ((stream & 0xffff) >= h->size) {
		end(p, true);
	} else if (waits_for_answer(p)) { /* once per try */
		if (++h->strikes >= STRIKES && h->strikes >= cn_node_min_tries(n)) {
			end(p, false);
		} else {
			pause_after_strike(p);
		}
	}
}
