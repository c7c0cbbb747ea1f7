/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/link/interface.c: which interface is taken, and what the refusals say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/interface.h"

#define ETHER .ethernet = true, .up = true, .running = true, .mtu = 1500

static const struct cn_interface lo = {
	.name = "lo", .index = 1, .mtu = 65536, .loopback = true, .up = true, .running = true
};
static const struct cn_interface eth0 = { .name = "eth0", .index = 2, ETHER };
static const struct cn_interface eth1 = { .name = "eth1", .index = 3, ETHER };
static const struct cn_interface port = { .name = "veth7", .index = 4, ETHER, .enslaved = true };
static const struct cn_interface down = {
	.name = "eth2", .index = 5, .ethernet = true, .mtu = 1500
};
static const struct cn_interface dark = {
	.name = "eth3", .index = 6, .ethernet = true, .up = true, .mtu = 1500
};
static const struct cn_interface small = {
	.name = "eth4", .index = 7, .ethernet = true, .up = true, .running = true, .mtu = 575
};
static const struct cn_interface tun = {
	.name = "tun0", .index = 8, .up = true, .running = true, .mtu = 1500
};

static void assert_refused(const struct cn_interface *list, size_t count, const char *name,
			   const char *message)
{
	struct cn_interface out = { .index = -7 };
	struct cn_err err = { 0 };

	assert_int_equal(cn_interface_pick(list, count, name, false, &out, &err), COLLNET_EIFACE);
	assert_int_equal(err.code, COLLNET_EIFACE);
	assert_string_equal(err.text, message);
	assert_int_equal(out.index, -7);
}

static void pick__the_only_candidate(void **state)
{
	const struct cn_interface list[] = { lo, down, dark, port, tun, eth1 };
	struct cn_interface out;
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_interface_pick(list, 6, NULL, false, &out, &err), 0);
	assert_string_equal(out.name, "eth1");
	assert_int_equal(cn_interface_pick(list, 6, "", false, &out, &err), 0);
	assert_string_equal(out.name, "eth1");
}

static void pick__several_are_listed(void **state)
{
	const struct cn_interface list[] = { lo, eth0, port, eth1 };

	(void)state;
	assert_refused(list, 4, NULL,
		       "several Ethernet interfaces (eth0, eth1): specify one, with collnetd "
		       "--interface or, in direct mode, COLLNET_INTERFACE");
}

static void pick__none_says_what_there_is(void **state)
{
	const struct cn_interface list[] = { lo, down, dark, port };

	(void)state;
	assert_refused(list, 4, NULL,
		       "no Ethernet interface is up and has a carrier (available: lo, eth2 (down), "
		       "eth3 (no carrier), veth7 (enslaved)): bring one up with "
		       "'ip link set NAME up', or look at its cable");
	assert_refused(list, 0, NULL,
		       "no Ethernet interface is up and has a carrier (available: none): "
		       "bring one up with 'ip link set NAME up', or look at its cable");
}

static void pick__named(void **state)
{
	const struct cn_interface list[] = { lo, eth0, eth1, dark };
	struct cn_interface out;
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_interface_pick(list, 4, "eth0", false, &out, &err), 0);
	assert_int_equal(out.index, 2);
	assert_int_equal(cn_interface_pick(list, 4, "eth1", false, &out, &err), 0);
	assert_int_equal(out.index, 3);
	/* A cable may be plugged in later. */
	assert_int_equal(cn_interface_pick(list, 4, "eth3", false, &out, &err), 0);
}

static void pick__named_and_unusable(void **state)
{
	const struct cn_interface list[] = { lo, eth0, down, port, small, tun };

	(void)state;
	assert_refused(list, 3, "foo",
		       "no such interface 'foo' (available: lo, eth0, eth2 "
		       "(down))");
	assert_refused(list, 6, "eth2",
		       "interface eth2 is down: bring it up with 'ip link set "
		       "eth2 up'");
	assert_refused(list, 6, "lo", "interface lo is not Ethernet");
	assert_refused(list, 6, "tun0", "interface tun0 is not Ethernet");
	assert_refused(list, 6, "veth7",
		       "interface veth7 is a port of a bridge or bond: use the "
		       "bridge or bond instead");
}

static void pick__long_lists_and_names_stay_one_line(void **state)
{
	struct cn_interface list[100];
	struct cn_interface out;
	struct cn_err err;
	char name[1000];

	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		list[i] = eth0;
		snprintf(list[i].name, sizeof(list[i].name), "ethernet%07u", i % 100);
	}
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(cn_interface_pick(list, 100, NULL, false, &out, &err), COLLNET_EIFACE);
	assert_non_null(strstr(err.text, "ethernet0000000, ethernet0000001, "));
	assert_non_null(strstr(err.text, ", ...): specify one, with collnetd --interface or, in "
					 "direct mode, COLLNET_INTERFACE"));
	assert_int_equal(cn_interface_pick(list, 100, name, false, &out, &err), COLLNET_EIFACE);
	assert_non_null(strstr(err.text, ", ...)"));
}

static void list__has_the_loopback(void **state)
{
	struct cn_interface *list = NULL;
	struct cn_err err;
	size_t count = 0, found = 0;

	(void)state;
	assert_int_equal(cn_interface_list(&list, &count, &err), 0);
	for (size_t i = 0; i < count; i++) {
		found += list[i].loopback && strcmp(list[i].name, "lo") == 0;
		assert_true(list[i].index > 0);
	}
	assert_int_equal(found, 1);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pick__the_only_candidate),
		cmocka_unit_test(pick__several_are_listed),
		cmocka_unit_test(pick__none_says_what_there_is),
		cmocka_unit_test(pick__named),
		cmocka_unit_test(pick__named_and_unusable),
		cmocka_unit_test(pick__long_lists_and_names_stay_one_line),
		cmocka_unit_test(list__has_the_loopback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
