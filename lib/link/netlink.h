/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of a network interface, as the kernel announces them by rtnetlink (RTMGRP_LINK). Needs
 * no privilege.
 */
#ifndef CN_NETLINK_H
#define CN_NETLINK_H

#include "util/util.h"

struct cn_link_change {
	bool changed;	/* a notification concerns the interface, or notifications were lost */
	bool went_down; /* one of them says that it is down or deleted, whatever it is now */
};

/* A non-blocking socket; readable when there are notifications. */
int cn_netlink_open(int *fd, struct cn_err *err);
/* Takes the notifications that have come, up to a bound; those of other interfaces are ignored. */
void cn_netlink_read(int fd, const char *name, struct cn_link_change *out);
/* One datagram of them; adds to *out. */
void cn_netlink_parse(const void *buf, size_t len, const char *name, struct cn_link_change *out);

#endif
