/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/unvalidated.h"

#include <string.h>

#include "proto/node_impl.h"

#define WAYS	  4u
#define SLOTS_MAX 1024u
/* Lifetime of an entry after its hello was sent, for the spacing of hellos. */
static const cn_time entry_lifetime = 1000 * CN_MS;
/* Replies to all addresses together: minimum burst and rate per second. */
#define REPLIES_LEAST 64u

uint32_t cn_unvalidated_slots(uint32_t max_peers)
{
	uint32_t slots = 16;

	while (slots < max_peers && slots < SLOTS_MAX) {
		slots *= 2;
	}
	return slots;
}

/* The entry of an address, or the least recently used idle one of its set. The set is chosen by a
 * keyed hash, so that addresses cannot be made to collide. */
static struct cn_unvalidated *slot_of(struct cn_node *n, const uint8_t mac[6], bool take)
{
	uint32_t set = (uint32_t)cn_siphash(n->config.key, mac, 6) & (n->nunvalidated / WAYS - 1);
	struct cn_unvalidated *first = &n->unvalidated[set * WAYS], *found = NULL;

	for (struct cn_unvalidated *s = first; s < first + WAYS; s++) {
		if (s->used && memcmp(s->mac, mac, 6) == 0) {
			return s;
		}
		if (!s->waits && !s->due &&
		    (found == NULL || (found->used && !s->used) ||
		     (found->used == s->used && s->timer.at < found->timer.at))) {
			found = s;
		}
	}
	return take ? found : NULL;
}

static void free_slot(struct cn_node *n, struct cn_unvalidated *s)
{
	cn_heap_set(&n->timers, &s->timer, CN_NEVER);
	n->nunvalidated_used -= s->used;
	s->used = s->waits = false;
}

static void set_due(struct cn_node *n, struct cn_unvalidated *s)
{
	s->waits = false;
	s->due = true;
	s->next = NULL;
	if (n->unvalidated_last != NULL) {
		n->unvalidated_last->next = s;
	} else {
		n->unvalidated_first = s;
	}
	n->unvalidated_last = s;
	cn_heap_set(&n->timers, &s->timer, n->now + entry_lifetime);
}

void cn_unvalidated_reply(struct cn_node *n, const uint8_t mac[6], enum cn_hello_why why,
			  uint64_t echo, cn_time wait)
{
	uint32_t burst = n->config.max_peers > REPLIES_LEAST ? n->config.max_peers : REPLIES_LEAST;
	struct cn_unvalidated *s = slot_of(n, mac, true);

	if (s == NULL) {
		return;
	}
	if (!s->used || memcmp(s->mac, mac, 6) != 0) {
		struct cn_timer timer = s->timer;

		n->nunvalidated_used += !s->used;
		memset(s, 0, sizeof(*s));
		s->timer = timer;
		s->used = true;
		memcpy(s->mac, mac, 6);
	}
	if (s->waits || s->due) {
		s->echo = echo != 0 ? echo : s->echo;
		if (s->waits && wait == 0 && n->now >= s->last[why] + CN_HELLO_SPACING) {
			s->last[why] = n->now;
			set_due(n, s); /* a reply with jitter was due; this one has none */
		}
		return;
	}
	if (!cn_bucket_take(&n->unvalidated_replies, n->now, burst, 1000 * CN_MS / burst)) {
		if (s->timer.at == CN_NEVER) {
			free_slot(n, s); /* which nothing would free later */
		}
		return;
	}
	if (s->last[why] != 0 && n->now + wait < s->last[why] + CN_HELLO_SPACING) {
		wait = s->last[why] + CN_HELLO_SPACING - n->now;
	}
	s->last[why] = n->now + wait;
	s->echo = echo;
	if (wait == 0) {
		set_due(n, s);
	} else {
		s->waits = true;
		cn_heap_set(&n->timers, &s->timer, n->now + wait);
	}
}

struct cn_unvalidated *cn_unvalidated_next(struct cn_node *n)
{
	struct cn_unvalidated *s = n->unvalidated_first;

	while (s != NULL) {
		n->unvalidated_first = s->next;
		if (s->next == NULL) {
			n->unvalidated_last = NULL;
		}
		s->due = false;
		if (s->used) {
			return s;
		}
		s = n->unvalidated_first; /* it has become a peer */
	}
	return NULL;
}

void cn_unvalidated_forget(struct cn_node *n, const uint8_t mac[6])
{
	struct cn_unvalidated *s = slot_of(n, mac, false);

	if (s != NULL) {
		free_slot(n, s);
	}
}

bool cn_unvalidated_expire(struct cn_node *n, struct cn_timer *t)
{
	struct cn_unvalidated *s = (struct cn_unvalidated *)(void *)t;

	if (t->owner != n->unvalidated) {
		return false;
	}
	if (s->waits) {
		set_due(n, s);
	} else {
		free_slot(n, s);
	}
	return true;
}
