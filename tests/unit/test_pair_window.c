/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/topo/pair_window.c, and cn_topo_few(), which goes with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "topo/topo.h"

static struct cn_topo *shape(const char *text, uint32_t buffer, uint32_t uplink_buffer)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };

	if (cn_topo_shape(text, 100000000, buffer, 1000000000, uplink_buffer, &t, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return t;
}

/* A port holds what all the others may send to its host. */
static void pair_window__share_of_a_port(void **state)
{
	struct cn_topo *t = shape("4x2", 43, 20);

	(void)state;
	assert_int_equal(cn_topo_pair_window(t, t->hosts, 8), 4); /* 33 / 7 */
	assert_int_equal(cn_topo_pair_window(t, t->hosts, 2), 33);
	assert_true(cn_topo_pair_window(t, t->hosts, 1) == COLLNET_WINDOW_OFF);
	t->links[t->vertices[t->hosts[3]].parent_link].buffer = 8;
	assert_int_equal(cn_topo_pair_window(t, t->hosts, 3), 16);
	assert_int_equal(cn_topo_pair_window(t, t->hosts, 4), 1); /* (8 - 3) / 3 */
	assert_int_equal(cn_topo_pair_window(t, t->hosts, 8), 1); /* one at least */
	cn_topo_free(t);
}

/* The only host of a file needs no link: no port limits it. */
static void pair_window__host_without_a_link(void **state)
{
	static const char text[] = "host a\n";
	struct cn_topo *t = NULL;

	(void)state;
	assert_int_equal(cn_topo_parse(text, strlen(text), "net", &t, NULL), COLLNET_OK);
	assert_true(cn_topo_pair_window(t, t->hosts, 1) == COLLNET_WINDOW_OFF);
	assert_true(cn_topo_port_holds(t, t->hosts, 1) >= 1000000);
	cn_topo_free(t);
}

/* Two exchanges, or one and a frame from each, fit into a port; an uplink has what an even one
 * brings. */
static void few__of_an_exchange_at_once(void **state)
{
	struct cn_topo *t = NULL;

	(void)state;
	assert_int_equal(cn_topo_shape("4x2", 1000000000, 43, 10000000000, 45, &t, NULL), 0);
	assert_int_equal(cn_topo_port_holds(t, t->hosts, 8), 21);
	assert_int_equal(cn_topo_few(t, t->hosts, 8), 4 * cn_topo_burst(t, t->hosts, 8));
	assert_int_equal(cn_topo_few(t, t->hosts, 5), 4 * cn_topo_burst(t, t->hosts, 5));
	assert_int_equal(cn_topo_few(t, t->hosts, 4), 3 * cn_topo_burst(t, t->hosts, 4));
	assert_true(cn_topo_burst(t, t->hosts, 8) > 0);
	assert_int_equal(cn_topo_few(t, t->hosts, 1), 0);
	t->links[t->vertices[t->hosts[3]].parent_link].buffer = 8;
	assert_int_equal(cn_topo_port_holds(t, t->hosts, 3), 21);
	assert_int_equal(cn_topo_port_holds(t, t->hosts, 4), 4);
	assert_int_equal(cn_topo_port_holds(t, t->hosts, 6), 2);
	assert_int_equal(cn_topo_port_holds(t, t->hosts, 8), 0);
	cn_topo_free(t);
}

/* The largest topology there is, whose file says no buffer: linear. */
static void few__of_the_largest_topology(void **state)
{
	struct cn_topo *t = shape("199998", 0, 0);

	(void)state;
	assert_int_equal(cn_topo_few(t, t->hosts, 8), 28); /* 7 times 32.25 / 7 */
	cn_topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pair_window__share_of_a_port),
		cmocka_unit_test(pair_window__host_without_a_link),
		cmocka_unit_test(few__of_an_exchange_at_once),
		cmocka_unit_test(few__of_the_largest_topology),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
