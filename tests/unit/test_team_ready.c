/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/team_ready.c: what a team learns of its network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine_fixture.h"

static struct cn_topo *lone;

static void on_lone_host(struct cn_engine_config *c)
{
	c->topo = lone;
}

/* A file with a single host needs neither a switch nor a link. */
static void team_ready__host_without_a_link(void **state)
{
	static const char text[] = "host n0\n";
	struct engine_fixture *w;

	(void)state;
	assert_int_equal(cn_topo_parse(text, strlen(text), "net", &lone, NULL), COLLNET_OK);
	w = engine_fixture(1, NULL, on_lone_host);
	w->topo = lone; /* algorithms that need a tree run, too; freed with the fixture */
	engine_join_all(w, 3, false, "job");
	engine_every_algorithm(w, engine_sizes, 4, SECOND);
	engine_leave_all(w);
	engine_run(w, SECOND);
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(team_ready__host_without_a_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
