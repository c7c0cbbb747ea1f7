/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/link/offload.c on a pair of veth interfaces, whose offloads ethtool changes. Exit 77 where
 * the system refuses namespaces, or without ethtool.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "link/offload.h"
#include "namespace.h"
#include "util/util.h"

static char logged[500];

static void note(void *ctx, enum collnet_log_level level, const char *text)
{
	(void)ctx;
	(void)level;
	snprintf(logged, sizeof(logged), "%s", text);
}

static const char *advice(enum cn_encapsulation e)
{
	logged[0] = '\0';
	cn_offload_advise("a0", e);
	return logged;
}

static void offload__as_ethtool_sets_it(void **state)
{
	struct cn_offload o;

	(void)state;
	assert_true(cn_offload_read("a0", &o));
	assert_true(o.tcp && o.udp && !o.merge);
	assert_string_equal(advice(CN_ENCAPSULATION_UDP), "");
	assert_true(run_command("ethtool -K a0 tx-udp-segmentation off"));
	assert_true(cn_offload_read("a0", &o));
	assert_true(o.tcp && !o.udp);
	assert_non_null(strstr(advice(CN_ENCAPSULATION_UDP), "interface a0 segments TCP, but not"));
	assert_string_equal(advice(CN_ENCAPSULATION_TCP), "");
	assert_string_equal(advice(CN_ENCAPSULATION_RAW), "");
	assert_true(run_command("ethtool -K a0 tso off"));
	assert_true(cn_offload_read("a0", &o));
	assert_true(!o.tcp && !o.udp);
	assert_string_equal(advice(CN_ENCAPSULATION_UDP), "");
	assert_true(run_command("ethtool -K a0 tx-udp-segmentation on"));
	assert_true(cn_offload_read("a0", &o));
	assert_true(!o.tcp && o.udp);
}

static void offload__no_such_interface(void **state)
{
	struct cn_offload o;

	(void)state;
	assert_false(cn_offload_read("a1", &o));
	assert_false(cn_offload_read("an-interface-with-a-name-that-is-too-long", &o));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offload__as_ethtool_sets_it),
		cmocka_unit_test(offload__no_such_interface),
	};
	const char *why = enter_namespace();

	if (why == NULL && !run_command("command -v ethtool >/dev/null")) {
		why = "ethtool is not installed";
	}
	if (why != NULL) {
		printf("skipped: %s\n", why);
		return 77;
	}
	if (!run_command("ip link add a0 type veth peer name b0")) {
		return 1;
	}
	collnet_set_log(note, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
