/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An interface that goes down and up within microseconds is up when it is checked: only
 * notifications show that it was down.
 */
#include "link/netlink.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define BUFFER	  8192 /* one notification of the kernel's */
#define READS_MAX 64   /* datagrams a call */

int cn_netlink_request(int protocol, const void *request, size_t len)
{
	const struct timeval limit = { .tv_sec = 2 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), e;

	if (fd < 0 || (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
		       send(fd, request, len, 0) >= 0)) {
		return fd;
	}
	e = errno;
	close(fd);
	errno = e;
	return -1;
}

int cn_netlink_open(int *out, struct cn_err *err)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		int e = errno;

		if (fd >= 0) {
			close(fd);
		}
		return cn_fail(err, COLLNET_ESYSTEM, "notifications of network interfaces: %s",
			       cn_strerror(e));
	}
	*out = fd;
	return COLLNET_OK;
}

static bool is_named(struct nlmsghdr *h, const char *name)
{
	const struct ifinfomsg *info = NLMSG_DATA(h);
	size_t left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*info));

	for (struct rtattr *a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_IFNAME) {
			size_t len = RTA_PAYLOAD(a);

			return len > 0 && strnlen(RTA_DATA(a), len) == strlen(name) &&
			       memcmp(RTA_DATA(a), name, strlen(name)) == 0;
		}
	}
	return false;
}

void cn_netlink_parse(const void *buf, size_t len, const char *name, struct cn_link_change *out)
{
	/* The macros do not write, but are not const. */
	struct nlmsghdr *h = (struct nlmsghdr *)(uintptr_t)buf;
	unsigned int left = (unsigned int)len;

	for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
		const struct ifinfomsg *info = NLMSG_DATA(h);

		if ((h->nlmsg_type != RTM_NEWLINK && h->nlmsg_type != RTM_DELLINK) ||
		    h->nlmsg_len < NLMSG_LENGTH(sizeof(*info)) || info->ifi_family != AF_UNSPEC ||
		    !is_named(h, name)) {
			continue; /* AF_BRIDGE: a port joined or left a bridge */
		}
		out->changed = true;
		if (h->nlmsg_type == RTM_DELLINK || (info->ifi_flags & IFF_UP) == 0) {
			out->went_down = true;
		}
	}
}

void cn_netlink_read(int fd, const char *name, struct cn_link_change *out)
{
	union {
		struct nlmsghdr align;
		char bytes[BUFFER];
	} buf;

	memset(out, 0, sizeof(*out));
	for (int i = 0; i < READS_MAX; i++) {
		ssize_t n = recv(fd, &buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC);

		if (n > (ssize_t)sizeof(buf) || (n < 0 && errno == ENOBUFS)) {
			out->changed = true; /* notifications were lost: check the interface */
		} else if (n > 0) {
			cn_netlink_parse(&buf, (size_t)n, name, out);
		} else if (n == 0 || errno != EINTR) {
			return;
		}
	}
}
