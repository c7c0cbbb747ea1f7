/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/link/offload.c on a pair of veth interfaces, whose offloads ethtool changes. Exit 77 where
 * the system refuses namespaces, or without ethtool.
 */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/offload.h"
#include "namespace.h"
#include "util/util.h"

static char logged[500];
static bool no_count; /* the number of features cannot be asked for */
static int names;     /* requests for their names, of which the kernel writes as many as it has */

#ifdef __GLIBC__
typedef unsigned long ioctl_request;
#else
typedef int ioctl_request; /* as in POSIX */
#endif

/* The kernel's, which offload.c calls. */
int ioctl(int fd, ioctl_request request, ...)
{
	struct ifreq *r;
	uint32_t command = 0;
	va_list ap;

	va_start(ap, request);
	r = va_arg(ap, struct ifreq *);
	va_end(ap);
	if (request == SIOCETHTOOL) {
		memcpy(&command, r->ifr_data, sizeof(command));
	}
	if (command == ETHTOOL_GSSET_INFO && no_count) {
		return -1;
	}
	if (command == ETHTOOL_GSTRINGS) {
		names++;
		if (no_count) {
			return -1;
		}
	}
	return (int)syscall(SYS_ioctl, fd, request, r);
}

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

static void offload__number_of_features_unknown(void **state)
{
	struct cn_offload o;

	(void)state;
	names = 0;
	assert_true(cn_offload_read("a0", &o));
	assert_true(o.udp && names == 1);
	no_count = true;
	assert_true(cn_offload_read("a0", &o));
	no_count = false;
	assert_true(!o.udp && names == 1);
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
		cmocka_unit_test(offload__number_of_features_unknown),
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
