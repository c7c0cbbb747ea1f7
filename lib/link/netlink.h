/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of a network interface, as the kernel announces them by rtnetlink (RTMGRP_LINK), and
 * requests for lists. Needs no privilege.
 */
#ifndef CN_NETLINK_H
#define CN_NETLINK_H

#include "util/util.h"

struct cn_link_change {
	bool changed;	/* a notification concerns the interface, or notifications were lost */
	bool went_down; /* one reports it down or deleted, whatever its current state */
};

/*
 * Sends a request for a list of the kernel's to a new socket of that netlink protocol, and returns
 * it; -1: errno. The kernel responds at once; a receive timeout ensures that nothing hangs.
 */
int cn_netlink_request(int protocol, const void *request, size_t len);
/* A non-blocking socket; readable when there are notifications. */
int cn_netlink_open(int *fd, struct cn_err *err);
/* Reads available notifications, up to a bound; ignores those of other interfaces. */
void cn_netlink_read(int fd, const char *name, struct cn_link_change *out);
/* One datagram of them; adds to *out. */
void cn_netlink_parse(const void *buf, size_t len, const char *name, struct cn_link_change *out);

#endif
