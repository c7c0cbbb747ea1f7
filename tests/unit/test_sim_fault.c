/* SPDX-License-Identifier: BSD-2-Clause */
/* `collnet sim --fault`: the grammar, and what faults at their times do to an operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tools/sim/case.h"

#define SEED 20261121u

static struct cn_topo *two_switches(void)
{
	struct cn_err err = { 0 };
	struct cn_topo *t;

	if (cn_topo_shape("4x2", 100000000, 43, 1000000000, 45, &t, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	return t;
}

static struct sim_fault good(const struct cn_topo *t, const char *text)
{
	struct cn_err err = { 0 };
	struct sim_fault f;

	if (sim_fault_parse(t, text, &f, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	return f;
}

static void parse__every_action(void **state)
{
	struct cn_topo *t = two_switches();
	struct sim_fault f;

	(void)state;
	f = good(t, "t=2.5ms crash h3");
	assert_int_equal(f.kind, SIM_FAULT_CRASH);
	assert_int_equal(f.at, 2500000);
	assert_int_equal(f.lasts, 0);
	assert_int_equal(f.host, 3);
	f = good(t, "  for=1s t=0 crash   h0 ");
	assert_int_equal(f.lasts, 1000000000);
	assert_int_equal(good(t, "t=5ms restart h3").kind, SIM_FAULT_RESTART);
	f = good(t, "t=2ms for=10ms pause h7");
	assert_int_equal(f.kind, SIM_FAULT_PAUSE);
	assert_int_equal(f.host, 7);
	f = good(t, "cut h5");
	assert_int_equal(f.kind, SIM_FAULT_CUT);
	assert_int_equal(f.link, t->vertices[t->hosts[5]].parent_link);
	assert_int_equal(good(t, "cut s2-h5").link, f.link);
	assert_int_equal(good(t, "repair h5-s2").link, f.link);
	f = good(t, "cut s0-s1");
	assert_int_equal(f.link, t->vertices[cn_topo_find(t, "s1")].parent_link);
	f = good(t, "for=1ms loss 5%");
	assert_int_equal(f.kind, SIM_FAULT_LOSS);
	assert_int_equal(f.ppm, 50000);
	assert_int_equal(f.link, CN_TOPO_NONE);
	assert_int_equal(good(t, "loss 0.0001%").ppm, 1);
	assert_int_equal(good(t, "loss 100%").ppm, 1000000);
	assert_int_equal(good(t, "duplicate 10% h1").ppm, 100000);
	assert_int_equal(good(t, "reorder 1% s0-s2").kind, SIM_FAULT_REORDER);
	assert_int_equal(good(t, "corrupt 1%").kind, SIM_FAULT_CORRUPT);
	cn_topo_free(t);
}

static void parse__partition(void **state)
{
	static const uint8_t sides[8] = { 1, 1, 1, 0, 2, 0, 2, 2 };
	struct cn_topo *t = two_switches();
	struct sim_fault f = good(t, "partition h0-h2|h4,h6-h7");

	(void)state;
	assert_memory_equal(f.side, sides, 8);
	free(f.side);
	cn_topo_free(t);
}

/* A range is looked for only where the whole is no name. */
static void parse__names_with_dashes(void **state)
{
	static const char text[] = "switch s\nhost a-b\nhost a\nhost b\nlink s a-b rate 1gbit\n"
				   "link s a rate 1gbit\nlink s b rate 1gbit\n";
	static const uint8_t sides[3] = { 1, 2, 2 };
	struct cn_err err = { 0 };
	struct cn_topo *t;
	struct sim_fault f;

	(void)state;
	assert_int_equal(cn_topo_parse(text, strlen(text), "dashes", &t, &err), COLLNET_OK);
	f = good(t, "partition a-b|a,b");
	assert_memory_equal(f.side, sides, 3);
	free(f.side);
	assert_int_equal(good(t, "cut a-b").link, t->vertices[cn_topo_find(t, "a-b")].parent_link);
	cn_topo_free(t);
}

static void parse__refused(void **state)
{
	static const struct {
		const char *text, *expected;
	} bad[] = {
		{ "t=2ms crush h3",
		  "column 7: 'crush'; expected crash, restart, pause, cut, repair, " },
		{ "t=2ms", "column 6: incomplete; expected crash," },
		{ "", "column 1: incomplete; expected crash," },
		{ "t=2 crash h3", "column 1: 't=2'; expected one t= and one for=" },
		{ "t=61s crash h3", "column 1: 't=61s'; expected one t=" },
		{ "t=1ms t=2ms crash h3", "column 7: 't=2ms'; expected one t=" },
		{ "for=0 cut h3", "column 1: 'for=0'; expected one t=" },
		{ "crash", "column 6: incomplete; expected a host" },
		{ "crash s1", "column 7: 's1'; expected a host" },
		{ "crash h8", "column 7: 'h8'; expected a host" },
		{ "crash h1 h2", "column 10: 'h2'; expected the end" },
		{ "pause h1", "column 1: 'pause'; expected for=TIME" },
		{ "for=1s restart h1", "column 8: 'restart'; expected no for=TIME" },
		{ "for=1s repair h1", "column 8: 'repair'; expected no for=TIME" },
		{ "cut s1-h7", "column 5: 's1-h7'; expected a host, for its link" },
		{ "partition h0", "column 11: 'h0'; expected two sets" },
		{ "partition h0|", "column 11: 'h0|'; expected hosts or ranges" },
		{ "partition h3-h0|h4", "expected hosts or ranges" },
		{ "partition h0-h3|h2", "expected every host on one side only" },
		{ "partition h0|h1|h2", "expected hosts or ranges" },
		{ "loss", "column 5: incomplete; expected a share" },
		{ "loss 5", "column 6: '5'; expected a share of at most 100%" },
		{ "loss 101%", "expected a share of at most 100%" },
		{ "loss 0.00001%", "expected a share" },
		{ "duplicate 10.1%", "expected a share of at most 10%" },
		{ "loss 5% h9", "column 9: 'h9'; expected a host, for its link" },
		{ "loss 5% h1 now", "column 12: 'now'; expected the end" },
	};
	struct cn_topo *t = two_switches();

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cn_err err = { 0 };
		struct sim_fault f = { .ppm = 7 };

		assert_int_equal(sim_fault_parse(t, bad[i].text, &f, &err), COLLNET_EINVAL);
		if (strstr(err.text, bad[i].expected) == NULL) {
			fail_msg("'%s': %s", bad[i].text, err.text);
		}
		assert_int_equal(f.ppm, 7);
	}
	cn_topo_free(t);
}

/* ---- what they do ----------------------------------------------------------------------- */

#define FAULTS 4u

struct result {
	struct sim_outcome out;
	struct sim_fault timed[FAULTS];
	uint32_t n;
};

static void run(const struct cn_topo *t, const char *const *texts, struct result *r)
{
	struct sim_case c = { .local = 1,
			      .iterations = 2,
			      .warmup = 1,
			      .verify = true,
			      .args = { .op = CN_OP_ALLTOALL,
					.algorithm = "shuffle",
					.contention_aware = true,
					.bytes = 20000 } };
	struct cn_err err = { 0 };

	for (r->n = 0; r->n < FAULTS && texts[r->n] != NULL; r->n++) {
		r->timed[r->n] = good(t, texts[r->n]);
	}
	cn_sim_config_init(&c.cluster);
	c.cluster.topo = t;
	c.cluster.seed = SEED;
	c.timed = r->timed;
	c.nfaults = r->n;
	if (sim_run(&c, &r->out, &err) != COLLNET_OK) {
		fail_msg("seed %u: %s", SEED, err.text);
	}
	assert_int_equal(r->out.wrong, 0);
}

static void done(struct result *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		free(r->timed[i].side);
	}
	sim_outcome_free(&r->out);
}

/* Every rank names the host; its own knows at once, the others within two virtual seconds. */
static void run__crash(void **state)
{
	struct cn_topo *t = two_switches();
	struct result r;

	(void)state;
	run(t, (const char *const[]){ "t=1ms for=3s crash h3", NULL }, &r);
	assert_int_equal(r.out.nerrors, 8);
	for (uint32_t i = 0; i < r.out.nerrors; i++) {
		const struct sim_error *e = &r.out.errors[i];

		assert_int_equal(e->rank, i);
		assert_int_equal(e->culprit, t->hosts[3]);
		assert_true(e->faulted);
		assert_int_equal(e->own, i == 3);
		assert_int_equal(e->fault, 0);
		assert_true(i == 3 ? e->after == 0 : e->after > 0 && e->after < 2000 * CN_MS);
	}
	assert_int_equal(r.out.next, SIM_NEXT_RIGHT);
	done(&r);
	run(t, (const char *const[]){ "t=1ms crash h3", NULL }, &r);
	assert_int_equal(r.out.next, SIM_NEXT_NEVER);
	done(&r);
	run(t, (const char *const[]){ "t=1ms for=3s crash h3", "t=500ms restart h3", NULL }, &r);
	assert_false(r.out.fault_states[0].host_was_running ||
		     r.out.fault_states[1].host_was_running);
	done(&r);
	run(t, (const char *const[]){ "t=1ms crash h3", "t=5s restart h3", NULL }, &r);
	assert_int_equal(r.out.next, SIM_NEXT_RIGHT);
	assert_false(r.out.fault_states[1].host_was_running);
	done(&r);
	cn_topo_free(t);
}

static void run__cut_and_repair(void **state)
{
	struct cn_topo *t = two_switches();
	struct result r;

	(void)state;
	/* long enough to fail; both halves name a host of the other */
	run(t, (const char *const[]){ "t=1ms cut s0-s1", "t=4s repair s0-s1", NULL }, &r);
	assert_int_equal(r.out.nerrors, 8);
	for (uint32_t i = 0; i < r.out.nerrors; i++) {
		assert_true(r.out.errors[i].faulted);
		assert_int_equal(r.out.errors[i].fault, 0);
	}
	assert_int_equal(r.out.next, SIM_NEXT_RIGHT);
	done(&r);
	run(t, (const char *const[]){ "t=1ms cut h2", NULL }, &r);
	assert_int_equal(r.out.nerrors, 8);
	assert_int_equal(r.out.next, SIM_NEXT_NEVER);
	done(&r);
	/*
	 * short enough to survive; two cuts of a link overlap, and the link is cut until both end
	 */
	run(t, (const char *const[]){ "t=1ms for=200ms cut h2", "t=2ms for=300ms cut h2", NULL },
	    &r);
	assert_int_equal(r.out.nerrors, 0);
	assert_int_equal(r.out.failed, 0);
	assert_true(r.out.lost > 0);
	assert_true(r.out.ns.p99 >= 300e6);
	done(&r);
	cn_topo_free(t);
}

static void run__partition_and_pause(void **state)
{
	struct cn_topo *t = two_switches();
	struct result r;

	(void)state;
	run(t, (const char *const[]){ "t=1ms for=4s partition h0-h5|h6,h7", NULL }, &r);
	assert_int_equal(r.out.nerrors, 8);
	for (uint32_t i = 0; i < r.out.nerrors; i++) {
		assert_true(r.out.errors[i].faulted);
	}
	assert_int_equal(r.out.next, SIM_NEXT_RIGHT);
	done(&r);
	run(t, (const char *const[]){ "t=1ms for=300ms pause h1", NULL }, &r);
	assert_int_equal(r.out.failed, 0);
	assert_true(r.out.ns.p99 >= 300e6);
	done(&r);
	cn_topo_free(t);
}

static void run__shares_and_what_comes_too_late(void **state)
{
	struct cn_topo *t = two_switches();
	struct result a, b;

	(void)state;
	run(t,
	    (const char *const[]){ "for=3ms loss 20% s0-s1", "duplicate 5%", "t=50s crash h0",
				   "restart h1" },
	    &a);
	assert_int_equal(a.out.failed, 0);
	assert_true(a.out.lost > 0);
	assert_true(a.out.data_resent > 0);
	assert_true(a.out.fault_states[0].began && a.out.fault_states[1].began &&
		    !a.out.fault_states[2].began);
	assert_true(a.out.fault_states[3].host_was_running);
	run(t,
	    (const char *const[]){ "for=3ms loss 20% s0-s1", "duplicate 5%", "t=50s crash h0",
				   "restart h1" },
	    &b);
	assert_int_equal(a.out.frame_events, b.out.frame_events);
	assert_int_equal(a.out.lost, b.out.lost);
	done(&a);
	done(&b);
	/* after its span a share is that of the options again */
	run(t, (const char *const[]){ "for=1ns loss 100%", NULL }, &a);
	assert_int_equal(a.out.failed, 0);
	assert_int_equal(a.out.lost, 8); /* the first frame of every host */
	done(&a);
	cn_topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__every_action),
		cmocka_unit_test(parse__partition),
		cmocka_unit_test(parse__names_with_dashes),
		cmocka_unit_test(parse__refused),
		cmocka_unit_test(run__crash),
		cmocka_unit_test(run__cut_and_repair),
		cmocka_unit_test(run__partition_and_pause),
		cmocka_unit_test(run__shares_and_what_comes_too_late),
	};

	return cmocka_run_group_tests_name("sim_fault", tests, NULL, NULL);
}
