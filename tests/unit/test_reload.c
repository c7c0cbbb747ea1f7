/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/reload.c: what changes while the daemon runs; link/netlink.c: what a notification says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "coll/engine_state.h"
#include "daemon/daemon.h"
#include "link/netlink.h"
#include "region_daemon.h"

static void config(struct cn_config *c, const char *text)
{
	struct cn_err err;

	cn_config_init(c);
	assert_int_equal(cn_config_parse(c, text, strlen(text), "file", &err), COLLNET_OK);
}

static void keep__changes_what_can_change(void **state)
{
	struct cn_config running, fresh;
	char stays[160];

	(void)state;
	config(&running, "interface eth0\nwindow 3\n");
	config(&fresh, "interface eth0\nwindow 9\ntopology /t\nlog-level debug\nmax-teams 7\n"
		       "socket-mode 0600\n");
	cn_reload_keep(&fresh, &running, stays, sizeof(stays));
	assert_string_equal(stays, "");
	assert_int_equal(fresh.window, 9);
	assert_string_equal(fresh.topology, "/t");
	assert_int_equal(fresh.log_level, COLLNET_LOG_DEBUG);
	assert_int_equal(fresh.socket_mode, 0600);
	assert_int_equal(fresh.limits[CN_QUOTA_TEAMS], 7);
}

static void keep__names_what_cannot(void **state)
{
	struct cn_config running, fresh;
	char stays[160], few[12];

	(void)state;
	config(&running, "interface eth0\nnode a\n");
	config(&fresh,
	       "interface eth1\nlink pcap\nencapsulation raw\nnode b\nsocket /s\nuser u\ngroup g\n"
	       "cluster 4\nethertype 0x88B6\nwindow 5\npeer-timeout 700\n");
	running.ready_fd = 7;
	cn_reload_keep(&fresh, &running, stays, sizeof(stays));
	assert_string_equal(stays, "interface, link, encapsulation, node, socket, user, group, "
				   "cluster, ethertype, peer-timeout");
	assert_string_equal(fresh.interface, "eth0");
	assert_string_equal(fresh.link, "");
	assert_int_equal(fresh.encapsulation, CN_ENCAPSULATION_UDP);
	assert_string_equal(fresh.node, "a");
	assert_string_equal(fresh.socket, CN_MSG_SOCKET);
	assert_string_equal(fresh.user, "");
	assert_string_equal(fresh.group, "");
	assert_int_equal(fresh.cluster, 0);
	assert_int_equal(fresh.ethertype, 0x88B5);
	assert_int_equal(fresh.ready_fd, 7);
	assert_int_equal(fresh.window, 5);
	/* A list that does not fit is cut. */
	config(&fresh, "interface eth1\nlink pcap\nnode b\n");
	cn_reload_keep(&fresh, &running, few, sizeof(few));
	assert_string_equal(few, "interface, ");
}

/* A daemon with an engine, and no more. */
static struct cn_daemon *new_daemon(void)
{
	struct cn_daemon *d = region_daemon();
	struct cn_engine_config c;
	struct cn_err err = { 0 };

	cn_engine_config_init(&c);
	c.node.epoch = 1;
	c.node.mtu = 1500;
	memcpy(c.node.mac, "\2\0\0\0\0\1", 6);
	memcpy(c.node.name, "a", 2);
	if (cn_engine_new(&c, &d->runtime.engine, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	return d;
}

static void reload(struct cn_daemon *d, char *option, char *value)
{
	char *argv[] = { (char[]){ "collnetd" }, option, value, NULL };

	d->argc = option != NULL ? 3 : 1;
	d->argv = argv;
	cn_reload(d);
}

/* What the engine may keep for a user's operations follows from max-memory. */
static void reload__changes_what_follows_from_a_limit(void **state)
{
	struct cn_daemon *d = new_daemon();
	const struct cn_engine_config *engine = &d->runtime.engine->config;
	char memory[] = "--max-memory", few[] = "8m", many[] = "64g", topology[] = "--topology",
	     none[] = "/nonexistent/topology";

	(void)state;
	reload(d, memory, few);
	assert_int_equal(d->config.limits[CN_QUOTA_MEMORY], 8 << 20);
	assert_int_equal(engine->max_schedules, 2 << 20);
	reload(d, memory, many);
	assert_int_equal(engine->max_schedules, 512 << 20);
	/* An error changes nothing: without the option it would be a quarter of 32 MiB. */
	reload(d, topology, none);
	assert_string_equal(d->config.topology, "");
	assert_int_equal(d->config.limits[CN_QUOTA_MEMORY], (uint64_t)64 << 30);
	assert_int_equal(engine->max_schedules, 512 << 20);
	reload(d, NULL, NULL);
	assert_int_equal(engine->max_schedules, 8 << 20);
	cn_engine_free(d->runtime.engine);
	free(d);
}

/* ---- notifications -------------------------------------------------------------------- */

static struct {
	struct nlmsghdr h;
	struct ifinfomsg info;
	char attributes[64];
} note;

static void notify(uint16_t type, unsigned int flags, const char *name, struct cn_link_change *out)
{
	struct rtattr *a = (struct rtattr *)(void *)note.attributes;

	memset(&note, 0, sizeof(note));
	note.info.ifi_family = AF_UNSPEC;
	note.info.ifi_flags = flags;
	a->rta_type = IFLA_IFNAME;
	a->rta_len = (unsigned short)RTA_LENGTH(strlen(name) + 1);
	memcpy(RTA_DATA(a), name, strlen(name) + 1);
	note.h.nlmsg_type = type;
	note.h.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(note.info)) + RTA_ALIGN(a->rta_len));
	memset(out, 0, sizeof(*out));
	cn_netlink_parse(&note, note.h.nlmsg_len, "eth0", out);
}

static void parse__what_happened(void **state)
{
	struct cn_link_change c;

	(void)state;
	notify(RTM_NEWLINK, IFF_UP, "eth0", &c);
	assert_true(c.changed && !c.went_down);
	notify(RTM_NEWLINK, 0, "eth0", &c);
	assert_true(c.changed && c.went_down);
	notify(RTM_DELLINK, IFF_UP, "eth0", &c);
	assert_true(c.changed && c.went_down);
	/* An interface that was up again before anybody looked. */
	cn_netlink_parse(&note, note.h.nlmsg_len, "eth0", &c);
	notify(RTM_NEWLINK, IFF_UP, "eth00", &c);
	assert_false(c.changed || c.went_down);
	notify(RTM_NEWLINK, 0, "eth", &c);
	assert_false(c.changed || c.went_down);
	notify(RTM_NEWADDR, 0, "eth0", &c);
	assert_false(c.changed || c.went_down);
}

static void parse__a_port_leaves_a_bridge(void **state)
{
	struct cn_link_change c = { .changed = false };

	(void)state;
	notify(RTM_DELLINK, IFF_UP, "eth0", &c);
	note.info.ifi_family = AF_BRIDGE;
	memset(&c, 0, sizeof(c));
	cn_netlink_parse(&note, note.h.nlmsg_len, "eth0", &c);
	assert_false(c.changed || c.went_down);
}

static void parse__a_short_message(void **state)
{
	struct cn_link_change c;

	(void)state;
	notify(RTM_DELLINK, 0, "eth0", &c);
	for (size_t len = 0; len < note.h.nlmsg_len; len++) {
		memset(&c, 0, sizeof(c));
		cn_netlink_parse(&note, len, "eth0", &c);
		assert_false(c.changed);
	}
	note.h.nlmsg_len = NLMSG_LENGTH(sizeof(note.info)) - 1;
	cn_netlink_parse(&note, sizeof(note), "eth0", &c);
	assert_false(c.changed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keep__changes_what_can_change),
		cmocka_unit_test(keep__names_what_cannot),
		cmocka_unit_test(reload__changes_what_follows_from_a_limit),
		cmocka_unit_test(parse__what_happened),
		cmocka_unit_test(parse__a_port_leaves_a_bridge),
		cmocka_unit_test(parse__a_short_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
