/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages that found no buffer. Who joins is told again by the meeting's own rounds; but
 * that a rank left, a team ended or has failed is said once, by those who then forget the team. So
 * what cannot be sent waits here, in order for each node, and is tried again until it goes. Many
 * ranks that leave at once in a large cluster are more messages than there are buffers.
 */
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"

#define PENDING_MAX 65536u /* messages; what is beyond is lost, and the log says so */

static const cn_time retry = 5 * CN_MS;

struct cn_pending {
	struct cn_pending *next;
	struct cn_peer *peer;
	uint32_t len;
	uint8_t data[];
};

static void keep(struct cn_engine *e, struct cn_peer *p, const uint8_t *m, size_t len)
{
	struct cn_pending *o = e->npending < PENDING_MAX ? malloc(sizeof(*o) + len) : NULL;

	if (o == NULL) {
		cn_log(COLLNET_LOG_ERROR,
		       "node %s cannot be told of a team's end: too much waits to be "
		       "told",
		       cn_peer_name(p));
		return;
	}
	*o = (struct cn_pending){ .peer = p, .len = (uint32_t)len };
	memcpy(o->data, m, len);
	if (e->pending_last != NULL) {
		e->pending_last->next = o;
	} else {
		e->pending_first = o;
		e->pending_at = 0; /* at the next expiry, which knows the time */
		cn_engine_touch(e);
	}
	e->pending_last = o;
	e->npending++;
	cn_engine_peer_of(p)->npending++;
}

void cn_pending_send(struct cn_engine *e, struct cn_peer *p, const uint8_t *m, size_t len)
{
	struct cn_engine_peer *q = cn_engine_peer_of(p);

	if (q == NULL || (q->npending == 0 && cn_node_control(e->node, p, m, len) == COLLNET_OK)) {
		return;
	}
	keep(e, p, m, len);
}

/* Goes over the list: drops what `gone` is owed; tries the rest, where `send` says so. */
static void go_over(struct cn_engine *e, const struct cn_peer *gone, bool send)
{
	struct cn_pending **at = &e->pending_first, *o;

	e->pending_last = NULL;
	while ((o = *at) != NULL) {
		struct cn_engine_peer *q = cn_engine_peer_of(o->peer);
		bool first = !q->stuck;

		if (o->peer == gone ||
		    (send && first &&
		     cn_node_control(e->node, o->peer, o->data, o->len) == COLLNET_OK)) {
			*at = o->next;
			e->npending--;
			q->npending--;
			free(o);
			continue;
		}
		q->stuck = send; /* later ones to this node wait, too */
		e->pending_last = o;
		at = &o->next;
	}
	for (o = e->pending_first; o != NULL; o = o->next) {
		cn_engine_peer_of(o->peer)->stuck = false;
	}
}

void cn_pending_expire(struct cn_engine *e, cn_time now)
{
	if (e->pending_first != NULL && e->pending_at <= now) {
		go_over(e, NULL, true);
		e->pending_at = now + retry;
	}
}

cn_time cn_pending_deadline(const struct cn_engine *e)
{
	return e->pending_first != NULL ? e->pending_at : CN_NEVER;
}

void cn_pending_drop(struct cn_engine *e, const struct cn_peer *p)
{
	if (cn_engine_peer_of((struct cn_peer *)(uintptr_t)p) != NULL) {
		go_over(e, p, false);
	}
}

void cn_pending_free(struct cn_engine *e)
{
	while (e->pending_first != NULL) {
		struct cn_pending *o = e->pending_first;

		e->pending_first = o->next;
		free(o);
	}
	e->pending_last = NULL;
	e->npending = 0;
}
