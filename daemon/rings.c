/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients' rings: requests are removed, completions and fragments to combine are inserted.
 *
 * The loop polls the rings of clients that have used them recently. A client whose ring was empty
 * for POLLS_MAX consecutive polls is not polled again until it sends a message on its socket: a
 * DOORBELL, as `asleep` in its ring requires. Before the loop sleeps it sets `asleep` in all polled
 * rings.
 *
 * The rings are not touched before the client has sealed their memory and sent a message.
 *
 * The client can write to the memory at any time. A request is copied once, and the copy is checked
 * as if it had arrived on the socket; the other contents (counters, `asleep`) determine only
 * whether the client's own requests are served. A client whose ring of completions is full does not
 * read them, and is closed.
 */
#include "daemon/daemon.h"

#include "util/clock.h"

#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REQUESTS_PER_POLL 32u
#define POLLS_MAX	  4096u
#define PROMPT		  (50 * CN_US) /* from a completion to a prompt next request */
#define PROMPT_MIN	  16u	       /* consecutive prompt requests */

/* ---- requests ------------------------------------------------------------------------- */

static void poll_client(struct cn_client *c)
{
	struct cn_daemon *d = c->daemon;

	c->idle_polls = 0;
	if (!c->polled && c->requests.shared != NULL && !c->marked) {
		c->polled = true;
		d->polled[d->npolled++] = c;
		cn_shm_ring_awake(&c->requests);
	}
}

/* The list is in the order of service: removing a client does not change that of the others. */
static void remove_polled(struct cn_daemon *d, uint32_t i)
{
	d->polled[i]->polled = false;
	d->npolled--;
	memmove(&d->polled[i], &d->polled[i + 1], (d->npolled - i) * sizeof(d->polled[0]));
}

/* The client does not have the memory yet. */
void cn_client_rings_prepare(struct cn_client *c, void *memory)
{
	struct cn_shm_ring requests, completions;

	cn_msg_rings_init(memory, &requests, &completions);
	cn_shm_ring_set_consumed_oob(&requests, c->received);
	(void)cn_shm_ring_sleep(&requests, CN_SHM_RING_ON_MESSAGE);
}

void cn_client_rings_open(struct cn_client *c)
{
	struct cn_mapping *s = c->regions[CN_MSG_RINGS];

	if (s != NULL && c->requests.shared == NULL && cn_mapping_is_sealed(s)) {
		cn_msg_rings_init(s->p, &c->requests, &c->completions);
		poll_client(c);
	}
}

void cn_client_rings_close(struct cn_client *c)
{
	struct cn_daemon *d = c->daemon;

	cn_rings_wake(d);
	for (uint32_t i = 0; c->polled && i < d->npolled; i++) {
		if (d->polled[i] == c) {
			remove_polled(d, i);
		}
	}
	c->requests.shared = c->completions.shared = NULL;
}

void cn_client_rings_set_waiting(struct cn_client *c, int tag)
{
	c->has_waited = true;
	if (c->requests.shared != NULL) {
		cn_shm_ring_set_blocked_on(&c->requests, (uint32_t)(tag + 1));
	}
}

void cn_client_rings_count_message(struct cn_client *c)
{
	c->received++;
	cn_client_rings_open(c);
	if (c->requests.shared != NULL) {
		cn_shm_ring_set_consumed_oob(&c->requests, c->received);
	}
}

/*
 * The client itself ends a request that has not been taken when its deadline passes. The deadline
 * is therefore compared with a clock that is read after the request was taken.
 */
void cn_client_update_clock(const struct cn_client *c)
{
	struct cn_daemon *d = c->daemon;

	if (c->has_waited && d->slice.round != 0) {
		cn_shm_ring_fence();
		d->now = cn_now();
	}
}

/* One request; false: there is none, or it violates the protocol. */
static bool serve_one(struct cn_client *c)
{
	static union cn_msg m;
	const void *slot;

	switch (cn_shm_ring_front(&c->requests, &slot)) {
	case CN_SHM_RING_OK:
		break;
	case CN_SHM_RING_NONE:
		return false;
	default:
		cn_client_mark(c, "it broke its ring of requests");
		return false;
	}
	memcpy(&m, slot, CN_MSG_REQUEST_SLOT);
	cn_shm_ring_pop(&c->requests); /* the copy is complete before this */
	cn_client_update_clock(c);
	if (c->done_at != 0 && m.head.type != CN_MSG_COMBINED) {
		c->prompt = c->daemon->now - c->done_at < PROMPT ? c->prompt + 1 : 0;
		c->done_at = 0;
	}
	if (m.head.type != CN_MSG_COLL && m.head.type != CN_MSG_SEND &&
	    m.head.type != CN_MSG_RECV && m.head.type != CN_MSG_COMBINED &&
	    m.head.type != CN_MSG_START && m.head.type != CN_MSG_RELEASE) {
		cn_client_mark(c, "it put a message into its ring that does not belong there");
		return false;
	}
	cn_client_message(c, &m, cn_msg_size(m.head.type));
	return true;
}

void cn_client_rings_serve(struct cn_client *c, uint32_t max)
{
	if (c->requests.shared == NULL || c->marked) {
		return;
	}
	poll_client(c);
	cn_shm_ring_set_processor(&c->requests, sched_getcpu());
	for (uint32_t n = 0; n < max && !c->marked && c->call.op == NULL && serve_one(c); n++) {
		if (cn_slice_is_over(c->daemon)) {
			break;
		}
	}
}

/* The list is in the order of service. */
static void rotate_polled(struct cn_daemon *d, uint32_t first)
{
	struct cn_client *moved[CN_CLIENTS_MAX];
	const uint32_t rest = d->npolled - first;

	memcpy(moved, d->polled, first * sizeof(moved[0]));
	memmove(d->polled, &d->polled[first], rest * sizeof(moved[0]));
	memcpy(&d->polled[rest], moved, first * sizeof(moved[0]));
}

bool cn_rings_poll(struct cn_daemon *d)
{
	uint32_t first = 0; /* of the next round: who waits, or follows one whose slice ended */
	bool some = false;

	for (uint32_t i = 0; i < d->npolled; i++) {
		struct cn_client *c = d->polled[i];
		const void *slot;

		if (c->marked || c->call.op != NULL) {
			continue;
		}
		if (cn_shm_ring_front(&c->requests, &slot) != CN_SHM_RING_NONE) {
			if (!cn_slice_begin(d, c->user)) {
				first = first > 0 ? first : i;
				continue;
			}
			cn_client_rings_serve(c, REQUESTS_PER_POLL);
			some = true;
			if (cn_slice_end(d, c->user) && first == 0) {
				first = i + 1;
			}
		} else if (++c->idle_polls > POLLS_MAX &&
			   cn_shm_ring_sleep(&c->requests, CN_SHM_RING_ON_MESSAGE)) {
			remove_polled(d, i--);
		}
	}
	if (first > 0 && first < d->npolled) {
		rotate_polled(d, first);
	}
	return some;
}

cn_time cn_rings_sleep(struct cn_daemon *d)
{
	cn_time until = CN_NEVER;

	for (uint32_t i = 0; i < d->npolled; i++) {
		struct cn_client *c = d->polled[i];

		if (c->call.op != NULL || cn_shm_ring_sleep(&c->requests, CN_SHM_RING_ON_MESSAGE)) {
			continue;
		}
		if (c->user->waits_until <= d->now) {
			cn_rings_awake(d);
			return 0;
		}
		until = cn_min_time(until, c->user->waits_until);
	}
	return until;
}

void cn_rings_awake(struct cn_daemon *d)
{
	for (uint32_t i = 0; i < d->npolled; i++) {
		cn_shm_ring_awake(&d->polled[i]->requests);
	}
}

/* ---- completions ---------------------------------------------------------------------- */

/* The futex is in the daemon's own mapping of the ring, which the client cannot take away. */
static void wake(struct cn_client *c)
{
	static const struct cn_msg_head event = { .type = CN_MSG_EVENT };

	switch (cn_shm_ring_wake(&c->completions)) {
	case CN_SHM_RING_AWAKE:
		break;
	case CN_SHM_RING_ON_FUTEX:
		syscall(SYS_futex, &c->completions.shared->asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
		break;
	default:
		cn_client_send(c, &event, sizeof(event));
		break;
	}
}

/*
 * A client that sleeps on this processor may preempt the daemon as soon as it is woken, until it
 * sleeps again: acknowledgements of the data that it waited for, and frames that other nodes wait
 * for, are therefore sent first. A client that made prompt requests after its last operations is
 * woken at once.
 */
static void wake_in_turn(struct cn_client *c, bool done)
{
	struct cn_daemon *d = c->daemon;

	if (done) {
		c->done_at = d->now;
	}
	if ((done && c->prompt >= PROMPT_MIN) ||
	    !cn_shm_ring_shares_processor(&c->completions, sched_getcpu())) {
		wake(c);
	} else if (!c->to_wake) {
		c->to_wake = true;
		d->to_wake[d->nto_wake++] = c;
	}
}

void cn_rings_wake(struct cn_daemon *d)
{
	for (uint32_t i = 0; i < d->nto_wake; i++) {
		d->to_wake[i]->to_wake = false;
		wake(d->to_wake[i]);
	}
	d->nto_wake = 0;
}

/* `len` bytes of a message of `size` bytes; the others are zero. A message that is not urgent does
 * not wake a rank that waits for another operation. */
static void put(struct cn_client *c, const struct cn_msg_head *m, size_t len, size_t size,
		bool urgent)
{
	if (c->completions.shared == NULL) {
		cn_client_send(c, m, size);
		return;
	}
	if (c->marked) {
		return;
	}
	switch (cn_shm_ring_put(&c->completions, m, len)) {
	case CN_SHM_RING_OK:
		if (urgent || cn_shm_ring_wants_all(&c->completions)) {
			wake_in_turn(c, m->type != CN_MSG_COMBINE);
		}
		return;
	case CN_SHM_RING_NONE:
		cn_client_mark(c, "it does not take its completions");
		return;
	default:
		cn_client_mark(c, "it broke its ring of completions");
		return;
	}
}

void cn_client_complete(struct cn_client *c, const struct cn_msg_done *m, bool urgent)
{
	put(c, &m->head,
	    m->status == COLLNET_OK ? offsetof(struct cn_msg_done, text) + 1 : sizeof(*m),
	    sizeof(*m), urgent);
}

void cn_client_combine(struct cn_client *c, const struct cn_msg_combine *m)
{
	put(c, &m->head, sizeof(*m), sizeof(*m), true);
}

void cn_client_joined(struct cn_client *c, uint32_t tag, uint32_t team, uint32_t parent)
{
	const struct cn_member *member = c->teams[team],
			       *p = parent < CN_MSG_TEAMS ? c->teams[parent] : NULL;
	struct cn_msg_joined m = {
		.head = { .type = CN_MSG_JOINED, .tag = tag },
		.run = cn_member_run(member),
		.rank = cn_member_rank(member),
		.ranks = cn_member_ranks(member),
		.nodes = cn_member_nodes(member),
	};

	if (p != NULL && m.ranks <= CN_MSG_MAPPED && cn_member_in_parent(member, p, m.in_parent)) {
		m.mapped = m.ranks;
	}
	put(c, &m.head, offsetof(struct cn_msg_joined, in_parent) + m.mapped * sizeof(*m.in_parent),
	    sizeof(m), true);
}
