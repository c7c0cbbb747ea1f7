/* SPDX-License-Identifier: BSD-2-Clause */
/* The pending control queue: one list over all peers, in the order of the calls. */
#include <stdlib.h>
#include <string.h>

#include "coll/pending.h"

#define PENDING_MAX 65536u /* messages to all peers */

static const cn_time retry_every = 5 * CN_MS;

struct cn_pending {
	struct cn_pending *next;
	struct cn_peer *peer;
	uint32_t len;
	uint8_t data[];
};

bool cn_pending_init(struct cn_pending_queue *q, struct cn_node *node, uint32_t max_peers)
{
	q->node = node;
	q->of_peer = calloc(max_peers, sizeof(*q->of_peer));
	q->blocked = calloc(max_peers, sizeof(*q->blocked));
	return q->of_peer != NULL && q->blocked != NULL;
}

void cn_pending_fini(struct cn_pending_queue *q)
{
	while (q->first != NULL) {
		struct cn_pending *o = q->first;

		q->first = o->next;
		free(o);
	}
	free(q->of_peer);
	free(q->blocked);
	memset(q, 0, sizeof(*q));
}

/* False: it is lost. */
static bool append(struct cn_pending_queue *q, struct cn_peer *p, const uint8_t *m, size_t len)
{
	const uint32_t i = cn_peer_index(p);
	const bool full = q->n >= PENDING_MAX || q->of_peer[i] >= CN_PENDING_OF_PEER;
	struct cn_pending *o = full ? NULL : malloc(sizeof(*o) + len);

	if (o == NULL) {
		cn_peer_log(p, COLLNET_LOG_ERROR, "a message about a team to node %s is lost: %s",
			    cn_peer_name(p), full ? "too many others are pending" : "no memory");
		return false;
	}
	*o = (struct cn_pending){ .peer = p, .len = (uint32_t)len };
	memcpy(o->data, m, len);
	if (q->last != NULL) {
		q->last->next = o;
	} else {
		q->first = o;
		q->retry_at = 0; /* at the next expiry, which knows the time */
	}
	q->last = o;
	q->n++;
	q->of_peer[i]++;
	return true;
}

bool cn_pending_send(struct cn_pending_queue *q, struct cn_peer *p, const uint8_t *m, size_t len)
{
	return (q->of_peer[cn_peer_index(p)] == 0 &&
		cn_node_control(q->node, p, m, len) == COLLNET_OK) ||
	       append(q, p, m, len);
}

/* Drops the messages to `gone`; with `send`, retries the others, for each peer up to the first one
 * without a buffer. */
static void pass(struct cn_pending_queue *q, const struct cn_peer *gone, bool send)
{
	struct cn_pending **at = &q->first, *o;

	q->last = NULL;
	while ((o = *at) != NULL) {
		uint32_t i = cn_peer_index(o->peer);

		if (o->peer == gone ||
		    (send && !q->blocked[i] &&
		     cn_node_control(q->node, o->peer, o->data, o->len) == COLLNET_OK)) {
			*at = o->next;
			q->n--;
			q->of_peer[i]--;
			free(o);
			continue;
		}
		q->blocked[i] = send;
		q->last = o;
		at = &o->next;
	}
	for (o = q->first; o != NULL; o = o->next) {
		q->blocked[cn_peer_index(o->peer)] = false;
	}
}

void cn_pending_expire(struct cn_pending_queue *q, cn_time now)
{
	if (q->first != NULL && q->retry_at <= now) {
		pass(q, NULL, true);
		q->retry_at = now + retry_every;
	}
}

cn_time cn_pending_deadline(const struct cn_pending_queue *q)
{
	return q->first != NULL ? q->retry_at : CN_NEVER;
}

void cn_pending_drop(struct cn_pending_queue *q, const struct cn_peer *p)
{
	if (q->of_peer[cn_peer_index(p)] > 0) {
		pass(q, p, false);
	}
}
