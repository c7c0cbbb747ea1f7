/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/interface.c: what clients are told that an interface took teams and endpoints from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/daemon.h"
#include "link/interface.h"
#include "tests/unit/hub.h"

/* Linked with --wrap. */
int __wrap_cn_interface_find(const char *name, struct cn_interface *out, struct cn_err *err);
int __wrap_cn_runtime_attach(const struct cn_runtime_config *c, struct cn_runtime *s,
			     struct cn_err *err);
void __wrap_cn_runtime_detach(struct cn_runtime *s, cn_time linger);

static struct cn_daemon *d;
static struct cn_hub *hub;
static struct cn_interface now; /* as the system has it; without a name: it is not there */

int __wrap_cn_interface_find(const char *name, struct cn_interface *out, struct cn_err *err)
{
	(void)err;
	*out = now;
	return strcmp(name, now.name) == 0;
}

int __wrap_cn_runtime_attach(const struct cn_runtime_config *c, struct cn_runtime *s,
			     struct cn_err *err)
{
	(void)c;
	(void)s;
	return cn_fail(err, COLLNET_EIFACE, "somebody else uses it");
}

void __wrap_cn_runtime_detach(struct cn_runtime *s, cn_time linger)
{
	(void)linger;
	cn_engine_free(s->engine);
	s->engine = NULL;
}

static int setup(void **state)
{
	struct cn_engine_config config;
	struct cn_link *l;

	(void)state;
	d = calloc(1, sizeof(*d));
	hub = cn_hub_new(1, 1500, 8);
	assert_true(d != NULL && hub != NULL);
	cn_config_init(&d->config);
	d->epoll_fd = d->parent.fd = d->iface.netlink_fd = -1;
	l = d->runtime.link = cn_hub_port(hub, 0);
	snprintf(d->runtime.node, sizeof(d->runtime.node), "h1");
	snprintf(d->iface.name, sizeof(d->iface.name), "eth0");
	memcpy(d->iface.mac, l->mac, 6);
	now = (struct cn_interface){ .name = "eth0", .mtu = 1500, .up = true, .running = true };
	memcpy(now.mac, l->mac, 6);
	cn_engine_config_init(&config);
	memcpy(config.node.mac, l->mac, 6);
	config.node.epoch = 1;
	config.node.mtu = 1500;
	snprintf(config.node.name, sizeof(config.node.name), "h1");
	assert_int_equal(cn_engine_new(&config, &d->runtime.engine, NULL), COLLNET_OK);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cn_engine_free(d->runtime.engine);
	cn_hub_free(hub);
	free(d);
	return 0;
}

static void look(void)
{
	struct cn_err err;

	assert_int_equal(cn_iface_check(d, false, &err), COLLNET_OK);
}

/* The engine is gone, and all that clients had of it, for this reason. */
static void assert_lost(const char *why)
{
	assert_null(d->runtime.engine);
	assert_string_equal(d->iface.lost, why);
}

static void lost__to_an_mtu(void **state)
{
	(void)state;
	look();
	now.mtu = 700;
	look();
	assert_non_null(d->runtime.engine); /* until others have been notified */
	look();
	assert_lost("interface eth0 was given an MTU of 700 instead of 1500 on node h1");
}

static void lost__to_an_mtu_that_came_while_it_was_down(void **state)
{
	(void)state;
	now.up = false;
	look();
	assert_non_null(d->runtime.engine);
	now.mtu = 700;
	now.up = true;
	look();
	assert_lost("interface eth0 went down on node h1");
}

/* What clients had is lost when the link is replaced, at the look after the interface is up again:
 * a notification need not follow. */
static void lost__to_an_mtu_that_was_raised_while_it_was_down(void **state)
{
	(void)state;
	now.up = false;
	look();
	now.mtu = 9000;
	now.up = true;
	look();
	assert_false(d->iface.down);
	assert_non_null(d->runtime.engine);
	assert_int_not_equal(d->iface.check_at, CN_NEVER);
	look();
	assert_null(d->runtime.engine);
}

static void lost__to_an_mtu_that_was_lowered_and_raised(void **state)
{
	(void)state;
	now.mtu = 700;
	look();
	now.mtu = 9000;
	look();
	assert_int_not_equal(d->iface.check_at, CN_NEVER);
	look();
	assert_null(d->runtime.engine);
}

static void lost__to_a_removal(void **state)
{
	(void)state;
	now.up = false;
	look();
	now.name[0] = '\0';
	look();
	assert_lost("interface eth0 was removed on node h1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lost__to_an_mtu, setup, teardown),
		cmocka_unit_test_setup_teardown(lost__to_an_mtu_that_came_while_it_was_down, setup,
						teardown),
		cmocka_unit_test_setup_teardown(lost__to_an_mtu_that_was_raised_while_it_was_down,
						setup, teardown),
		cmocka_unit_test_setup_teardown(lost__to_an_mtu_that_was_lowered_and_raised, setup,
						teardown),
		cmocka_unit_test_setup_teardown(lost__to_a_removal, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
