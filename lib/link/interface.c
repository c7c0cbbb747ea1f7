/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces, read from the kernel by rtnetlink and chosen by documented rules.
 *
 * rtnetlink and not /sys: in a network namespace made without a mount of its own, /sys still
 * shows the interfaces of another one.
 */
#include "link/interface.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/netlink.h"
#include "util/vector.h"

#define DUMP_BUFFER 32768
#define DUMP_TRIES  5
#define NAMES_TEXT  200 /* bytes of a message for a list of names */

struct list {
	struct cn_interface *items;
	uint32_t count, room;
};

static int list_add(struct list *l, const struct cn_interface *item, struct cn_err *err)
{
	struct cn_interface *items;

	if (l->count == CN_INTERFACES_MAX) {
		return cn_fail(err, COLLNET_ELIMIT, "more than %d network interfaces",
			       CN_INTERFACES_MAX);
	}
	items = cn_vector_grow(l->items, l->count, &l->room, sizeof(*items));
	if (items == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for the list of interfaces");
	}
	l->items = items;
	l->items[l->count++] = *item;
	return 0;
}

static void read_attribute(struct cn_interface *item, const struct rtattr *a)
{
	const void *data = RTA_DATA(a);
	size_t len = RTA_PAYLOAD(a);

	switch (a->rta_type) {
	case IFLA_IFNAME:
		if (len > 0 && len <= sizeof(item->name)) {
			memcpy(item->name, data, len);
			item->name[sizeof(item->name) - 1] = '\0';
		}
		break;
	case IFLA_MTU:
		if (len == sizeof(item->mtu)) {
			memcpy(&item->mtu, data, len);
		}
		break;
	case IFLA_ADDRESS:
		if (len == sizeof(item->mac)) {
			memcpy(item->mac, data, len);
		} else {
			item->ethernet = false;
		}
		break;
	case IFLA_MASTER:
		item->enslaved = true;
		break;
	default:
		break;
	}
}

static int read_link(struct list *l, struct nlmsghdr *h, struct cn_err *err)
{
	struct cn_interface item = { 0 };
	const struct ifinfomsg *info = NLMSG_DATA(h);
	const struct rtattr *a;
	size_t left;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*info))) {
		return 0;
	}
	item.index = info->ifi_index;
	item.ethernet = info->ifi_type == ARPHRD_ETHER;
	item.loopback = (info->ifi_flags & IFF_LOOPBACK) != 0;
	item.up = (info->ifi_flags & IFF_UP) != 0;
	/* IFF_RUNNING is set up to a second later. */
	item.running = item.up && (info->ifi_flags & IFF_LOWER_UP) != 0;
	left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*info));
	for (a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		read_attribute(&item, a);
	}
	return item.name[0] == '\0' ? 0 : list_add(l, &item, err);
}

static int open_dump(struct cn_err *err)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg info;
	} request = {
		.h = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
			.nlmsg_type = RTM_GETLINK,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			.nlmsg_seq = 1,
		},
		.info = { .ifi_family = AF_UNSPEC },
	};
	int fd = cn_netlink_request(NETLINK_ROUTE, &request, request.h.nlmsg_len);

	if (fd < 0) {
		return cn_fail(err, COLLNET_ESYSTEM,
			       "cannot request the list of network interfaces: %s",
			       cn_strerror(errno));
	}
	return fd;
}

/* 0: complete; 1: the interfaces changed meanwhile, repeat the request. */
static int read_dump(int fd, char *buf, struct list *l, struct cn_err *err)
{
	bool changed = false;

	for (;;) {
		ssize_t n = recv(fd, buf, DUMP_BUFFER, MSG_TRUNC);
		struct nlmsghdr *h = (struct nlmsghdr *)(void *)buf;
		unsigned int left;

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0 || n > DUMP_BUFFER) {
			return cn_fail(err, COLLNET_ESYSTEM,
				       "cannot read the list of network interfaces: %s",
				       n < 0 ? cn_strerror(errno) : "response of a wrong size");
		}
		left = (unsigned int)n;
		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			int e = 0;

			changed = changed || (h->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
			if (h->nlmsg_type == NLMSG_DONE) {
				return changed ? 1 : 0;
			}
			if (h->nlmsg_type == NLMSG_ERROR) {
				return cn_fail(err, COLLNET_ESYSTEM,
					       "the kernel refused to list the interfaces");
			}
			if (h->nlmsg_type == RTM_NEWLINK) {
				e = read_link(l, h, err);
			}
			if (e < 0) {
				return e;
			}
		}
	}
}

int cn_interface_list(struct cn_interface **out, size_t *count, struct cn_err *err)
{
	struct list l = { 0 };
	char *buf = malloc(DUMP_BUFFER);
	int r = 1;

	if (buf == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for the list of interfaces");
	}
	for (int i = 0; i < DUMP_TRIES && r == 1; i++) {
		int fd = open_dump(err);

		if (fd < 0) {
			r = fd;
			break;
		}
		l.count = 0;
		r = read_dump(fd, buf, &l, err);
		close(fd);
	}
	free(buf);
	if (r == 1) {
		r = cn_fail(err, COLLNET_ESYSTEM, "the network interfaces keep changing");
	}
	if (r < 0) {
		free(l.items);
		return r;
	}
	*out = l.items;
	*count = l.count;
	return 0;
}

static bool is_candidate(const struct cn_interface *i)
{
	return i->ethernet && !i->loopback && i->running && !i->enslaved;
}

/* "eth0, eth1 (down)"; what does not fit is "...". */
static void write_names(const struct cn_interface *list, size_t count, bool candidates_only,
			char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const char *note = "";

		if (candidates_only && !is_candidate(&list[i])) {
			continue;
		}
		if (!candidates_only && list[i].ethernet) {
			note = list[i].enslaved	  ? " (enslaved)"
			       : !list[i].up	  ? " (down)"
			       : !list[i].running ? " (no carrier)"
						  : "";
		}
		if (at + strlen(list[i].name) + strlen(note) + sizeof(", , ...") > size) {
			snprintf(text + at, size - at, ", ...");
			return;
		}
		at += (size_t)snprintf(text + at, size - at, "%s%s%s", at > 0 ? ", " : "",
				       list[i].name, note);
	}
	if (at == 0) {
		snprintf(text, size, "none");
	}
}

static int pick_only(const struct cn_interface *list, size_t count, const struct cn_interface **out,
		     struct cn_err *err)
{
	char names[NAMES_TEXT];
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		if (is_candidate(&list[i])) {
			*out = &list[i];
			found++;
		}
	}
	if (found == 0) {
		write_names(list, count, false, names, sizeof(names));
		return cn_fail(
			err, COLLNET_EIFACE,
			"no Ethernet interface is up and has a carrier (available: %s): bring "
			"one up with 'ip link set NAME up', or look at its cable",
			names);
	}
	if (found > 1) {
		write_names(list, count, true, names, sizeof(names));
		return cn_fail(err, COLLNET_EIFACE,
			       "several Ethernet interfaces (%s): specify one, with collnetd "
			       "--interface or, in direct mode, COLLNET_INTERFACE",
			       names);
	}
	return 0;
}

static int pick_named(const struct cn_interface *list, size_t count, const char *name,
		      const struct cn_interface **out, struct cn_err *err)
{
	char names[NAMES_TEXT];

	for (size_t i = 0; i < count; i++) {
		if (strcmp(list[i].name, name) == 0) {
			*out = &list[i];
			return 0;
		}
	}
	write_names(list, count, false, names, sizeof(names));
	return cn_fail(err, COLLNET_EIFACE, "no such interface '%.40s' (available: %s)", name,
		       names);
}

int cn_interface_pick(const struct cn_interface *list, size_t count, const char *name, bool any,
		      struct cn_interface *out, struct cn_err *err)
{
	const struct cn_interface *i = NULL;
	int r = name == NULL || name[0] == '\0' ? pick_only(list, count, &i, err)
						: pick_named(list, count, name, &i, err);

	if (r < 0) {
		return r;
	}
	if (!any && (!i->ethernet || i->loopback)) {
		return cn_fail(err, COLLNET_EIFACE, "interface %s is not Ethernet", i->name);
	}
	if (!i->up) {
		return cn_fail(err, COLLNET_EIFACE,
			       "interface %s is down: bring it up with 'ip "
			       "link set %s up'",
			       i->name, i->name);
	}
	if (i->enslaved) {
		return cn_fail(err, COLLNET_EIFACE,
			       "interface %s is a port of a bridge or bond: "
			       "use the bridge or bond instead",
			       i->name);
	}
	*out = *i;
	return 0;
}

int cn_interface_find(const char *name, struct cn_interface *out, struct cn_err *err)
{
	struct cn_interface *list = NULL;
	size_t count = 0;
	int found = 0, r = cn_interface_list(&list, &count, err);

	if (r < 0) {
		return r;
	}
	for (size_t i = 0; i < count && found == 0; i++) {
		if (strcmp(list[i].name, name) == 0) {
			*out = list[i];
			found = 1;
		}
	}
	free(list);
	return found;
}

int cn_interface_choose(const char *name, bool any, struct cn_interface *out, struct cn_err *err)
{
	struct cn_interface *list = NULL;
	size_t count = 0;
	int r = cn_interface_list(&list, &count, err);

	if (r < 0) {
		return r;
	}
	r = cn_interface_pick(list, count, name, any, out, err);
	free(list);
	return r;
}

uint64_t cn_interface_rate(int fd, const char *name)
{
	struct ethtool_cmd c = { .cmd = ETHTOOL_GSET };
	struct ifreq r = { .ifr_data = (void *)&c };
	uint32_t mbit;

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (ioctl(fd, SIOCETHTOOL, &r) < 0) {
		return 0;
	}
	mbit = ethtool_cmd_speed(&c);
	return mbit != (uint32_t)SPEED_UNKNOWN ? mbit * UINT64_C(1000000) : 0;
}

uint32_t cn_interface_mtu(int fd, const char *name)
{
	struct ifreq r = { .ifr_mtu = 0 };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	return ioctl(fd, SIOCGIFMTU, &r) == 0 && r.ifr_mtu > 0 ? (uint32_t)r.ifr_mtu : 0;
}

bool cn_interface_mac(int fd, const char *name, uint8_t out[6])
{
	struct ifreq r = { .ifr_hwaddr = { .sa_family = 0 } };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFHWADDR, &r) != 0) {
		return false;
	}
	memcpy(out, r.ifr_hwaddr.sa_data, 6);
	return true;
}

static int flags_of(int fd, const char *name)
{
	struct ifreq r = { .ifr_flags = 0 };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	return ioctl(fd, SIOCGIFFLAGS, &r) == 0 ? r.ifr_flags : 0;
}

bool cn_interface_is_up(int fd, const char *name)
{
	return (flags_of(fd, name) & IFF_UP) != 0;
}

bool cn_interface_has_carrier(int fd, const char *name)
{
	return (flags_of(fd, name) & (IFF_UP | IFF_RUNNING)) != IFF_UP;
}
