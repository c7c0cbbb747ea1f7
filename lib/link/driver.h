/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver moves frames between a link and an engine: the one loop that the daemon, the direct
 * mode and the tests share. It never sleeps; its caller waits on the link's descriptors until
 * cn_driver_deadline().
 */
#ifndef CN_DRIVER_H
#define CN_DRIVER_H

#include "coll/engine.h"
#include "link/link.h"

struct cn_driver;

int cn_driver_new(struct cn_link *l, struct cn_engine *e, struct cn_driver **out,
		  struct cn_err *err); /* borrows both */
void cn_driver_free(struct cn_driver *d);

/*
 * One turn: takes what has come in (bounded), expires what is due, sends until there is nothing
 * to send or the link is full. Positive: there was work; 0: nothing; negative: the interface is
 * down or gone (COLLNET_EIFACE), and what was to be sent is lost.
 */
int cn_driver_turn(struct cn_driver *d, cn_time now);
/*
 * For a caller that polls send_fd: from now on a full link is tried again only when he says that
 * it is writable, or after ten milliseconds, and not at every frame that comes in meanwhile.
 */
void cn_driver_be_patient(struct cn_driver *d);
void cn_driver_writable(struct cn_driver *d);
/* Frames wait for the link's queue: wait for send_fd to be writable. */
bool cn_driver_blocked(const struct cn_driver *d);
cn_time cn_driver_deadline(const struct cn_driver *d);

#endif
