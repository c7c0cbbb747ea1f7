/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The poller moves frames between a link and an engine: the one loop that the daemon, the direct
 * mode and the tests share. It never sleeps; its caller waits on the link's descriptors until
 * cn_poller_deadline().
 */
#ifndef CN_POLLER_H
#define CN_POLLER_H

#include "coll/engine.h"
#include "link/link.h"

struct cn_poller;

int cn_poller_new(struct cn_link *l, struct cn_engine *e, struct cn_poller **out,
		  struct cn_err *err); /* borrows both */
void cn_poller_free(struct cn_poller *p);

/*
 * Receives frames (up to a bound), expires timers, and sends until there is nothing to send or the
 * link is full. Positive: there was work; 0: none; negative: the interface is down or gone
 * (COLLNET_EIFACE), and the frames to send are lost.
 */
int cn_poller_poll(struct cn_poller *p, cn_time now);
/*
 * The same, for a caller that has not called the engine since the last poll: nothing can be ready
 * to send unless frames were received or a timer is due.
 */
int cn_poller_poll_input(struct cn_poller *p, cn_time now);
/*
 * The same, for a caller that spins: without work, polls the link several times more, which takes
 * no longer than reading the clock.
 */
int cn_poller_spin(struct cn_poller *p, cn_time now);
/*
 * For a caller that waits for events on send_fd: from now on a full link is retried only after
 * cn_poller_writable(), or after ten milliseconds, and not at each frame received meanwhile.
 */
void cn_poller_set_event_driven(struct cn_poller *p);
void cn_poller_writable(struct cn_poller *p);
/*
 * For a caller that yields the processor while it sends: from now on a poll ends after
 * cn_engine_burst() frames, unless those are as many as a super-frame can have.
 */
void cn_poller_set_bursts(struct cn_poller *p);
/* True if the last poll ended so: the engine may have more frames. */
bool cn_poller_has_more(const struct cn_poller *p);
/* True if the backlog waits for the link's queue: wait for send_fd to be writable. */
bool cn_poller_blocked(const struct cn_poller *p);
cn_time cn_poller_deadline(const struct cn_poller *p);

#endif
