/* SPDX-License-Identifier: BSD-2-Clause */
/* The wire limit on known shapes and in simulated clusters, by hand, and the summary of times. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tools/measure/model.h"
#include "tools/sim/model.h"

#define MBIT 1000000ull
#define MOST 64

struct fixture {
	struct cn_topo *topo;
	uint32_t node_of[MOST], vertex[MOST];
	struct measure_layout place;
};

/* `each` ranks on every host of a topology, in its order. */
static void place_all(struct fixture *f, uint32_t each)
{
	uint32_t i;

	memset(&f->place, 0, sizeof(f->place));
	f->place.nodes = f->topo->nhosts;
	f->place.ranks = f->topo->nhosts * each;
	assert_true(f->place.ranks <= MOST);
	for (i = 0; i < f->place.ranks; i++) {
		f->node_of[i] = i / each;
	}
	for (i = 0; i < f->place.nodes; i++) {
		f->vertex[i] = f->topo->hosts[i];
	}
	f->place.node_of = f->node_of;
	f->place.topo = f->topo;
	f->place.vertex = f->vertex;
}

static void shape(struct fixture *f, const char *text, uint64_t rate, uint64_t uplink,
		  uint32_t each)
{
	struct cn_err err = { 0 };

	assert_int_equal(cn_topo_shape(text, rate, 43, uplink, 45, &f->topo, &err), COLLNET_OK);
	place_all(f, each);
}

static void parse(struct fixture *f, const char *text, uint32_t each)
{
	struct cn_err err = { 0 };

	assert_int_equal(cn_topo_parse(text, strlen(text), "test", &f->topo, &err), COLLNET_OK);
	place_all(f, each);
}

static void assert_near(double value, double expected)
{
	if (!(fabs(value - expected) <= fabs(expected) * 1e-9)) {
		fail_msg("%.9g is not %.9g", value, expected);
	}
}

static void limit__one_switch(void **state)
{
	struct fixture f;

	(void)state;
	shape(&f, "16", 20 * MBIT, 0, 1);
	/* 15 blocks of 1,000 bytes each way at 20 Mbit/s */
	assert_near(measure_limit_us(MEASURE_ALLTOALL, &f.place, 1000), 6000);
	assert_near(measure_limit_us(MEASURE_ALLGATHER, &f.place, 1000), 6000);
	assert_near(measure_limit_us(MEASURE_BCAST, &f.place, 1000), 400);
	assert_near(measure_limit_us(MEASURE_SCATTER, &f.place, 1000), 6000);
	assert_near(measure_limit_us(MEASURE_GATHERV, &f.place, 1000), 6000);
	assert_near(measure_limit_us(MEASURE_EXSCAN, &f.place, 1000), 400);
	assert_near(measure_limit_us(MEASURE_GATHER, &f.place, 1000), 6000);
	assert_true(isnan(measure_limit_us(MEASURE_BARRIER, &f.place, 0)));
	assert_true(isnan(measure_limit_us(MEASURE_ALLTOALL, &f.place, 0)));
	cn_topo_free(f.topo);
}

static void limit__two_switches_host_links_decide(void **state)
{
	struct fixture f;

	(void)state;
	shape(&f, "8x2", 20 * MBIT, 200 * MBIT, 1);
	/* host 15 * 8,000 / 20; uplink 64 * 8,000 / 200 = 2,560 us */
	assert_near(measure_limit_us(MEASURE_ALLTOALL, &f.place, 1000), 6000);
	assert_near(measure_limit_us(MEASURE_ALLGATHER, &f.place, 1000), 6000);
	cn_topo_free(f.topo);
}

static void limit__two_switches_uplinks_decide(void **state)
{
	struct fixture f;

	(void)state;
	shape(&f, "8x2", 20 * MBIT, 40 * MBIT, 1);
	assert_near(measure_limit_us(MEASURE_ALLTOALL, &f.place, 1000), 64.0 * 8000 / 40);
	cn_topo_free(f.topo);
	shape(&f, "8x2", 20 * MBIT, 10 * MBIT, 1);
	/* eight blocks of the other side, once each; the hosts need only 6,000 */
	assert_near(measure_limit_us(MEASURE_ALLGATHER, &f.place, 1000), 8.0 * 8000 / 10);
	cn_topo_free(f.topo);
}

static void limit__two_ranks_a_node(void **state)
{
	struct fixture f;

	(void)state;
	shape(&f, "4", 20 * MBIT, 0, 2);
	assert_near(measure_limit_us(MEASURE_ALLTOALL, &f.place, 1000), 2.0 * 6 * 8000 / 20);
	assert_near(measure_limit_us(MEASURE_ALLGATHER, &f.place, 1000), 6.0 * 8000 / 20);
	assert_near(measure_node_bytes(MEASURE_ALLTOALL, &f.place, 1000), 12000);
	assert_near(measure_node_bytes(MEASURE_ALLGATHER, &f.place, 1000), 6000);
	cn_topo_free(f.topo);
}

/* Three hosts on one switch, one slow host on another, a chain of switches between them. */
static const char uneven[] = "switch r\nswitch a\nswitch b\n"
			     "host h0\nhost h1\nhost h2\nhost h3\n"
			     "link r a rate 5mbit buffer 10\nlink r b rate 5mbit buffer 10\n"
			     "link h0 a rate 100mbit\nlink h1 a rate 100mbit\n"
			     "link h2 a rate 100mbit\nlink h3 b rate 2mbit\n";

static void limit__uneven(void **state)
{
	struct fixture f;

	(void)state;
	parse(&f, uneven, 1);
	/* all links to b: 3 * 1 blocks; the slowest is the host's own, 2 Mbit/s */
	assert_near(measure_limit_us(MEASURE_ALLTOALL, &f.place, 500), 3.0 * 4000 / 2);
	assert_near(measure_limit_us(MEASURE_ALLGATHER, &f.place, 500), 3.0 * 4000 / 2);
	/* a job on the first switch alone crosses none of the slow links */
	f.place.ranks = 3;
	f.place.nodes = 3;
	assert_near(measure_limit_us(MEASURE_ALLTOALL, &f.place, 500), 2.0 * 4000 / 100);
	cn_topo_free(f.topo);
}

/* Each side must learn the other's sum, and n branches send 2 (n - 1) blocks together. */
static void limit__allreduce(void **state)
{
	struct fixture f;

	(void)state;
	shape(&f, "8", 20 * MBIT, 0, 2);
	assert_near(measure_limit_us(MEASURE_ALLREDUCE, &f.place, 1000), 14.0 / 8 * 8000 / 20);
	assert_near(measure_node_bytes(MEASURE_ALLREDUCE, &f.place, 1000), 14.0 / 8 * 1000);
	f.place.rate = 10 * MBIT;
	assert_near(measure_limit_us(MEASURE_ALLREDUCE, &f.place, 1000), 14.0 / 8 * 8000 / 10);
	cn_topo_free(f.topo);
	shape(&f, "4x4", 20 * MBIT, 10 * MBIT, 1);
	assert_near(measure_limit_us(MEASURE_ALLREDUCE, &f.place, 1000), 6.0 / 4 * 8000 / 10);
	cn_topo_free(f.topo);
	parse(&f, uneven, 1);
	assert_near(measure_limit_us(MEASURE_ALLREDUCE, &f.place, 500), 4000.0 / 2);
	f.place.ranks = 3;
	f.place.nodes = 3;
	assert_near(measure_limit_us(MEASURE_ALLREDUCE, &f.place, 500), 4.0 / 3 * 4000 / 100);
	cn_topo_free(f.topo);
	shape(&f, "2", 8 * MBIT, 0, 3);
	f.node_of[3] = f.node_of[4] = 0;
	assert_near(measure_limit_us(MEASURE_ALLREDUCE, &f.place, 100), 100);
	cn_topo_free(f.topo);
}

/* Five ranks on one node, one on another: the direction that is busier counts in an allgather. */
static void limit__uneven_ranks(void **state)
{
	struct fixture f;

	(void)state;
	shape(&f, "2", 8 * MBIT, 0, 3);
	f.node_of[3] = f.node_of[4] = 0;
	assert_near(measure_limit_us(MEASURE_ALLTOALL, &f.place, 100), 5.0 * 100);
	assert_near(measure_limit_us(MEASURE_ALLGATHER, &f.place, 100), 5.0 * 100);
	cn_topo_free(f.topo);
	/* three ranks behind a slow link send more than they receive */
	parse(&f, "switch s\nhost h0\nhost h1\nlink h0 s rate 1mbit\nlink h1 s rate 100mbit\n", 2);
	f.node_of[2] = 0;
	assert_near(measure_limit_us(MEASURE_ALLGATHER, &f.place, 100), 3.0 * 800);
	assert_near(measure_limit_us(MEASURE_ALLTOALL, &f.place, 100), 3.0 * 800);
	cn_topo_free(f.topo);
}

static void limit__unknown(void **state)
{
	struct fixture f;

	(void)state;
	shape(&f, "4", 20 * MBIT, 0, 1);
	f.vertex[2] = CN_TOPO_NONE;
	assert_true(isnan(measure_limit_us(MEASURE_ALLTOALL, &f.place, 1000)));
	f.place.topo = NULL;
	f.place.vertex = NULL;
	assert_true(isnan(measure_limit_us(MEASURE_ALLTOALL, &f.place, 1000)));
	f.place.rate = 10 * MBIT;
	assert_near(measure_limit_us(MEASURE_ALLTOALL, &f.place, 1000), 3.0 * 8000 / 10);
	f.place.nodes = 1;
	memset(f.node_of, 0, sizeof(f.node_of));
	assert_true(isnan(measure_limit_us(MEASURE_ALLTOALL, &f.place, 1000)));
	cn_topo_free(f.topo);
}

static void iterations__follow_the_limit(void **state)
{
	struct fixture f;

	(void)state;
	shape(&f, "16", 20 * MBIT, 0, 1);
	assert_int_equal(measure_iterations(MEASURE_ALLTOALL, &f.place, 1, 10), 200);
	assert_int_equal(measure_iterations(MEASURE_ALLTOALL, &f.place, 1, 3e6), 3);
	assert_int_equal(measure_iterations(MEASURE_ALLTOALL, &f.place, 1, 1e5), 30);
	/* not known: 15 * 16 KiB at 20 Mbit/s take 98 ms */
	assert_int_equal(measure_iterations(MEASURE_ALLTOALL, &f.place, 16384, NAN), 31);
	assert_int_equal(measure_iterations(MEASURE_BARRIER, &f.place, 0, NAN), 200);
	cn_topo_free(f.topo);
}

static void payload__counts_other_ranks_only(void **state)
{
	(void)state;
	assert_near(measure_payload(MEASURE_ALLTOALL, 16, 10), 2400);
	assert_near(measure_payload(MEASURE_ALLGATHER, 3, 10), 60);
	assert_near(measure_payload(MEASURE_BCAST, 3, 10), 20);
	assert_near(measure_payload(MEASURE_GATHER, 3, 10), 20);
	assert_near(measure_payload(MEASURE_ALLTOALL, 1, 10), 0);
}

static void summary__percentiles(void **state)
{
	uint64_t v[200], i;
	struct measure_times t;

	(void)state;
	for (i = 0; i < 200; i++) {
		v[i] = 200 - i; /* 1 .. 200, backwards */
	}
	t = measure_summary(v, 200);
	assert_near(t.min, 1);
	assert_near(t.median, 100.5);
	assert_near(t.p99, 198);
	for (i = 0; i < 100; i++) {
		v[i] = i + 1;
	}
	assert_near(measure_summary(v, 100).p99, 99);
	assert_near(measure_summary(v, 99).p99, 99);
	assert_near(measure_summary(v, 3).median, 2);
	assert_near(measure_summary(v, 3).p99, 3);
	assert_near(measure_summary(v, 1).p99, 1);
	assert_true(isnan(measure_summary(v, 0).median));
}

static struct sim_model simulated(const struct fixture *f, bool buckets, enum measure_op op,
				  uint64_t bytes)
{
	struct cn_sim_config c;
	struct sim_model m;

	cn_sim_config_init(&c);
	c.topo = f->topo;
	c.buckets = buckets;
	c.latency = 1000;
	c.delay = 2000;
	sim_model(&c, &f->place, op, bytes, &m);
	return m;
}

static double eq7_us(const struct fixture *f, enum measure_op op, uint64_t bytes)
{
	return simulated(f, false, op, bytes).eq7;
}

/* Blocks that one message has need fewer frames, and no header each. */
static void simulated__messages(void **state)
{
	static const enum measure_op of_node[] = { MEASURE_SCATTER, MEASURE_GATHER,
						   MEASURE_REDUCE_SCATTER };
	struct fixture f;

	(void)state;
	shape(&f, "16", 100 * MBIT, 0, 1);
	/* 8 bytes: 24 + 14, to 60, and 24 */
	assert_near(eq7_us(&f, MEASURE_BCAST, 8), 84 * 0.08);
	assert_near(eq7_us(&f, MEASURE_ALLTOALL, 8), 15 * 84 * 0.08);
	assert_near(eq7_us(&f, MEASURE_GATHER, 8), 15 * 84 * 0.08);
	/* 15 blocks together, and of 1,000 bytes: 10 full frames, and one with 240 */
	assert_near(eq7_us(&f, MEASURE_ALLGATHER, 8), (24 + 14 + 120 + 24) * 0.08);
	assert_near(eq7_us(&f, MEASURE_ALLGATHER, 1000), (10 * 1538 + 302) * 0.08);
	cn_topo_free(f.topo);
	/* four ranks a node: 16 blocks between two nodes, 4 of one, 12 from all others */
	shape(&f, "4", 100 * MBIT, 0, 4);
	assert_near(eq7_us(&f, MEASURE_ALLTOALL, 8), 3 * (62 + 128) * 0.08);
	for (size_t i = 0; i < sizeof(of_node) / sizeof(of_node[0]); i++) {
		assert_near(eq7_us(&f, of_node[i], 8), 3 * (62 + 32) * 0.08);
	}
	assert_near(eq7_us(&f, MEASURE_ALLGATHER, 8), (62 + 96) * 0.08);
	cn_topo_free(f.topo);
	/* the uplinks are slow: 8 of 16 blocks */
	shape(&f, "8x2", 100 * MBIT, 10 * MBIT, 1);
	assert_near(eq7_us(&f, MEASURE_ALLGATHER, 8), (62 + 64) * 0.8);
	cn_topo_free(f.topo);
}

/* Eq. 2 and 6 count the messages of nodes. */
static void simulated__exchange_of_nodes(void **state)
{
	struct sim_model m;
	struct fixture f;

	(void)state;
	shape(&f, "4", 100 * MBIT, 0, 4);
	m = simulated(&f, false, MEASURE_ALLTOALL, 8);
	assert_near(m.eq2, 3 * 190 * 0.08 + m.t_w);
	assert_near(m.eq6, 3 * 190 * 0.08 + 3 * m.t_w);
	cn_topo_free(f.topo);
}

/* Token buckets count neither preamble nor gap, and do not hold a frame up for its own time. */
static void simulated__token_buckets(void **state)
{
	struct sim_model m;
	struct fixture f;

	(void)state;
	shape(&f, "16", 100 * MBIT, 0, 1);
	m = simulated(&f, true, MEASURE_ALLTOALL, 2 * 1476);
	assert_near(m.g, 121.12);
	assert_near(m.t_w, 2 * 1 + 2 - 121.12);
	assert_near(m.eq2, 15 * 2 * 121.12 + 2 * 1 + 2 - 121.12);
	assert_near(m.eq7, 15 * 2 * 121.12);
	m = simulated(&f, true, MEASURE_ALLTOALL, 1);
	assert_near(m.eq7, 15 * 60 * 0.08);
	cn_topo_free(f.topo);
}

static void median__of_doubles(void **state)
{
	double v[] = { 3, 1, 2, 10 };

	(void)state;
	assert_near(measure_median(v, 4), 2.5);
	assert_near(measure_median(v, 3), 2);
	assert_true(isnan(measure_median(v, 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limit__one_switch),
		cmocka_unit_test(limit__two_switches_host_links_decide),
		cmocka_unit_test(limit__two_switches_uplinks_decide),
		cmocka_unit_test(limit__two_ranks_a_node),
		cmocka_unit_test(limit__uneven),
		cmocka_unit_test(limit__allreduce),
		cmocka_unit_test(limit__uneven_ranks),
		cmocka_unit_test(limit__unknown),
		cmocka_unit_test(iterations__follow_the_limit),
		cmocka_unit_test(payload__counts_other_ranks_only),
		cmocka_unit_test(summary__percentiles),
		cmocka_unit_test(simulated__messages),
		cmocka_unit_test(simulated__exchange_of_nodes),
		cmocka_unit_test(simulated__token_buckets),
		cmocka_unit_test(median__of_doubles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
