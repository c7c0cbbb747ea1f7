/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands between `collnet sim` and its core: a case and its outcome, the equations, traces and
 * captures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/wire.h"
#include "tools/sim/case.h"
#include "tools/sim/model.h"
#include "tools/sim/parse.h"
#include "tools/sim/trace.h"

#define SEED 20260101u

static struct cn_topo *shape(const char *text, uint64_t uplink, uint32_t buffer)
{
	struct cn_err err = { 0 };
	struct cn_topo *t;

	if (cn_topo_shape(text, 100000000, buffer, uplink, buffer, &t, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	return t;
}

static struct sim_case exchange(const struct cn_topo *t, const char *algorithm, uint64_t bytes)
{
	struct sim_case c = { .local = 1,
			      .iterations = 2,
			      .warmup = 1,
			      .verify = true,
			      .args = { .op = CN_OP_ALLTOALL,
					.algorithm = algorithm,
					.contention_aware = true,
					.bytes = bytes } };

	cn_sim_config_init(&c.cluster);
	c.cluster.topo = t;
	c.cluster.seed = SEED;
	return c;
}

static void model_of(const struct cn_sim_config *c, enum measure_op op, uint64_t bytes,
		     struct sim_model *m)
{
	const struct cn_topo *t = c->topo;
	uint32_t node_of[64];
	struct measure_layout p = { .ranks = t->nhosts,
				    .nodes = t->nhosts,
				    .node_of = node_of,
				    .topo = t,
				    .vertex = t->hosts };

	assert_true(t->nhosts <= 64);
	for (uint32_t i = 0; i < t->nhosts; i++) {
		node_of[i] = i;
	}
	sim_model(c, &p, op, bytes, m);
}

static void near(double got, double want, double by)
{
	if (!(fabs(got - want) <= by)) {
		fail_msg("%f, and it should be %f", got, want);
	}
}

/* ---- the equations -------------------------------------------------------------------- */

/* 16 hosts on a switch at 100 Mbit/s, by hand. */
static void model__one_switch(void **state)
{
	struct cn_topo *t = shape("16", 0, 43);
	struct cn_sim_config c;
	struct sim_model m;

	(void)state;
	cn_sim_config_init(&c);
	c.topo = t;
	c.latency = 1000;
	c.delay = 2000;
	model_of(&c, MEASURE_ALLTOALL, 2 * 1476, &m);
	/* A full frame: 1476 + 24 + 14 + 24 = 1538 bytes, 123.04 us. */
	near(m.g, 123.04, 0.001);
	/* L: two links, a switch. */
	near(m.t_w, 2 * 123.04 + 2 * 1 + 2 - 123.04, 0.001);
	near(m.eq2, 15 * 2 * 123.04 + m.t_w, 0.001);
	near(m.eq6, 15 * 2 * 123.04 + 15 * m.t_w, 0.001);
	near(m.eq7, 15 * 2 * 123.04, 0.001);
	near(m.best, m.eq2, 0);
	/* O_s + O_r + U_r beyond the wire's time: the processor decides. */
	c.o_send = c.o_recv = 60000;
	c.u_recv = 10000;
	model_of(&c, MEASURE_ALLTOALL, 1476, &m);
	near(m.g, 130, 0.001);
	near(m.eq2, 15 * 130 + 2 * 123.04 + 4 - 130 + 130, 0.001);
	/* A byte: 24 + 14 + 1 padded to 60, and 24. */
	c.o_send = c.o_recv = c.u_recv = 0;
	model_of(&c, MEASURE_ALLTOALL, 1, &m);
	near(m.eq7, 15 * 84 * 0.08, 0.001);
	model_of(&c, MEASURE_BARRIER, 0, &m);
	assert_true(isnan(m.eq2) && isnan(m.eq7) && isnan(m.best));
	cn_topo_free(t);
}

/* 8x2 with slow uplinks: 64 blocks cross them each way. */
static void model__uplinks(void **state)
{
	struct cn_topo *t = shape("8x2", 200000000, 45);
	struct cn_sim_config c;
	struct sim_model m;

	(void)state;
	cn_sim_config_init(&c);
	c.topo = t;
	model_of(&c, MEASURE_ALLTOALL, 1476, &m);
	near(m.eq7, 64 * 61.52, 0.001);
	near(m.best, m.eq7, 0);
	model_of(&c, MEASURE_BCAST, 1476, &m);
	near(m.eq7, 123.04, 0.001);
	assert_true(isnan(m.eq2) && isnan(m.eq6));
	near(m.best, m.eq7, 0);
	cn_topo_free(t);
}

/* ---- a case --------------------------------------------------------------------------- */

static void run__near_equation_2(void **state)
{
	struct cn_topo *t = shape("8", 0, 43);
	struct sim_case c = exchange(t, "shuffle", 65536);
	struct sim_outcome out;
	struct sim_model m;
	struct cn_err err = { 0 };

	(void)state;
	if (sim_run(&c, &out, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	model_of(&c.cluster, MEASURE_ALLTOALL, 65536, &m);
	print_message("%.3f ms, Eq. 2: %.3f ms\n", out.ns.median / 1e6, m.eq2 / 1e3);
	assert_int_equal(out.failed, 0);
	assert_int_equal(out.wrong, 0);
	assert_int_equal(out.drops, 0);
	assert_true(out.ns.median / 1e3 > m.eq7 && out.ns.median / 1e3 < m.eq2 * 1.05);
	assert_int_equal(out.data_sent, 2 * 8 * 7 * 45); /* two iterations, 45 frames a block */
	assert_int_equal(out.data_resent, 0);
	assert_true(out.longest.at != CN_TOPO_NONE && out.longest.count > 0);
	assert_true(t->vertices[out.longest.at].is_switch);
	assert_int_equal(out.longest.room, 43);
	assert_int_equal(out.worst_drops.at, CN_TOPO_NONE);
	cn_topo_free(t);
}

static void run__one_seed_one_result(void **state)
{
	struct cn_topo *t = shape("4x2", 100000000, 8);
	struct sim_case c = exchange(t, "linear", 16384);
	struct sim_outcome a, b, d;

	(void)state;
	c.cluster.jitter = 100000;
	c.cluster.jitter_ppm = 100000;
	c.faults.loss = 2000;
	assert_int_equal(sim_run(&c, &a, NULL), COLLNET_OK);
	assert_int_equal(sim_run(&c, &b, NULL), COLLNET_OK);
	c.cluster.seed++;
	assert_int_equal(sim_run(&c, &d, NULL), COLLNET_OK);
	assert_memory_equal(&a.ns, &b.ns, sizeof(a.ns));
	assert_int_equal(a.frame_events, b.frame_events);
	assert_true(a.frame_events != d.frame_events);
	assert_int_equal(a.wrong + b.wrong + d.wrong, 0);
	assert_int_equal(a.failed + d.failed, 0);
	/* everything at once into eight frames: they overflow, and what is lost is sent again */
	assert_true(a.drops > 0 && a.data_resent > 0 && a.lost > 0);
	assert_true(a.worst_drops.at != CN_TOPO_NONE && a.worst_drops.count > 0);
	assert_true(a.longest.count == 8);
	cn_topo_free(t);
}

/* 32 hosts on a chain of four switches send to all at once. Of what crosses the switches more than
 * half is lost for seconds, and some sessions are silent for that time. No node is dead. */
static void run__overload_is_not_death(void **state)
{
	const char *source = getenv("COLLNET_SOURCE");
	struct sim_outcome out;
	struct sim_case c;
	struct cn_topo *t;
	char path[512];

	(void)state;
	snprintf(path, sizeof(path), "%s/examples/topologies/aapc-c.topo",
		 source != NULL ? source : ".");
	assert_int_equal(cn_topo_read(path, &t, NULL), COLLNET_OK);
	c = exchange(t, "linear", 65536);
	c.cluster.kind = CN_SIM_SHARED;
	c.cluster.rate = 100000000;
	c.cluster.buffer = 43;
	c.cluster.seed = 1;
	c.iterations = 1;
	c.warmup = 0;
	assert_int_equal(sim_run(&c, &out, NULL), COLLNET_OK);
	if (out.failed > 0) {
		fail_msg("%s", out.why);
	}
	assert_int_equal(out.wrong, 0);
	assert_true(out.drops > 10000 && out.slowest_ns > 1.5e9);
	cn_topo_free(t);
}

/*
 * A block of one frame on fast links: the window of what a port holds by Eq. 4 would let 7 of 15
 * frames go, and the others a round trip later. The ports hold all of them, so `shuffle` takes as
 * long as `linear`, which has no window.
 */
static void run__short_exchange_at_once(void **state)
{
	static const uint64_t sizes[] = { 64, 1024 };
	struct cn_err err = { 0 };
	struct cn_topo *t;

	(void)state;
	assert_int_equal(cn_topo_shape("4x4", 25000000000, 43, 75000000000, 45, &t, &err), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double ns[2];

		for (int k = 0; k < 2; k++) {
			struct sim_case c = exchange(t, k == 0 ? "shuffle" : "linear", sizes[i]);
			struct sim_outcome out;

			c.cluster.latency = 5 * CN_US;
			c.iterations = 8;
			assert_int_equal(sim_run(&c, &out, &err), COLLNET_OK);
			assert_int_equal(out.wrong, 0);
			assert_int_equal(out.drops, 0);
			ns[k] = out.slowest_ns;
		}
		assert_true(ns[0] < 1.05 * ns[1]);
	}
	cn_topo_free(t);
}

/* Three switches in a row, each with ten hosts; the links between them are four times as fast. */
static struct cn_topo *switches_in_a_row(void)
{
	char text[4096] = "switch s0\nswitch s1\nswitch s2\n"
			  "link s0 s1 rate 4gbit buffer 43\nlink s1 s2 rate 4gbit buffer 43\n";
	struct cn_err err = { 0 };
	struct cn_topo *t;

	for (int h = 0; h < 30; h++) {
		const size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len,
			 "host h%d\nlink h%d s%d rate 1gbit buffer 43\n", h, h, h / 10);
	}
	assert_int_equal(cn_topo_parse(text, strlen(text), "a row", &t, &err), COLLNET_OK);
	return t;
}

/* Nanoseconds of the exchange of blocks of 64 bytes, of which no frame is lost. */
static double short_exchange(const struct cn_topo *t, uint32_t window)
{
	struct sim_case c = exchange(t, "shuffle", 64);
	struct sim_outcome out;
	struct cn_err err = { 0 };

	c.cluster.latency = 5 * CN_US;
	c.iterations = 8;
	c.args.window = window;
	assert_int_equal(sim_run(&c, &out, &err), COLLNET_OK);
	assert_int_equal(out.wrong, 0);
	assert_int_equal(out.drops, 0);
	return out.slowest_ns;
}

/*
 * The ports do not hold all of an exchange of blocks of one frame. By Eq. 4 they hold 5 of 15
 * frames, but so many more are in cables that the others follow as the uplinks carry them, and not
 * a latency later: it takes little longer than all at once, which happens to lose none here.
 */
static void run__short_exchange_by_rates(void **state)
{
	struct cn_err err = { 0 };
	double rates, at_once;
	struct cn_topo *t;

	(void)state;
	assert_int_equal(cn_topo_shape("8x2", 25000000000, 43, 50000000000, 45, &t, &err), 0);
	rates = short_exchange(t, COLLNET_WINDOW_AUTO);
	at_once = short_exchange(t, COLLNET_WINDOW_OFF);
	if (rates > 1.1 * at_once) {
		fail_msg("%g us, and %g", rates / 1e3, at_once / 1e3);
	}
	cn_topo_free(t);
}

/*
 * Of 29 frames, ports hold 3, and all at once lose 200. More than half of a round trip of short
 * frames is in cables, though the links of the path take most of that time to carry full ones.
 */
static void run__short_exchange_on_long_paths(void **state)
{
	struct cn_topo *t = switches_in_a_row();
	const double by_ports = short_exchange(t, 3);

	(void)state;
	assert_true(short_exchange(t, COLLNET_WINDOW_AUTO) < 0.6 * by_ports);
	cn_topo_free(t);
}

/*
 * What goes forward along the chain and what comes back share each node's link: the block twice,
 * and not three times, as when a node sent all forward first, or had no room left in its window for
 * what comes back.
 */
static void run__chain_there_and_back(void **state)
{
	static const char *const shapes[] = { "16", "8x2", "5x3" };
	struct cn_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const uint64_t bytes = 1 << 20;
		struct cn_topo *t = shape(shapes[i], 1000000000, 43);
		struct sim_case c = exchange(t, "chain", bytes);
		struct sim_outcome out;

		c.args.op = CN_OP_ALLREDUCE;
		c.args.element = 1;
		c.verify = false;
		assert_int_equal(sim_run(&c, &out, &err), COLLNET_OK);
		assert_int_equal(out.failed, 0);
		assert_int_equal(out.drops, 0);
		/* twice 711 frames at 100 Mbit/s, and the hops */
		assert_true(out.slowest_ns < 1.15 * 2 * 711 * 1538 * 80);
		sim_outcome_free(&out);
		cn_topo_free(t);
	}
}

/* Nobody is to look for a daemon then. */
static void run__hosts_that_do_not_meet(void **state)
{
	struct cn_topo *t = shape("4", 0, 43);
	struct sim_case c = exchange(t, "shuffle", 1024);
	struct sim_outcome out;
	struct cn_err err = { 0 };

	(void)state;
	c.faults.loss = 1000000;
	assert_int_equal(sim_run(&c, &out, &err), COLLNET_ETIMEOUT);
	assert_non_null(strstr(err.text,
			       "rank 0 does not join: with this rate, latency, gap or loss"));
	assert_non_null(strstr(err.text, " 600 virtual seconds"));
	cn_topo_free(t);
}

/*
 * The first exchange of a new job, with Tam and Wang's processors and ports: it has the ports for
 * itself, as the wire-up's acknowledgements have been sent. When each of them was sent 20 ms after
 * its message, more than 200 filled ports with data behind them.
 */
static void run__first_exchange(void **state)
{
	static const char *const shapes[] = { "8x3", "6x4" };
	struct cn_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct cn_topo *t = shape(shapes[i], 1000000000, 43);
		struct sim_case c = exchange(t, "shuffle", 16384);
		struct sim_outcome out;

		cn_topo_input_buffered(t);
		c.iterations = 1;
		c.warmup = 0;
		c.cluster.kind = CN_SIM_INPUT;
		c.cluster.o_send = 10 * CN_US;
		c.cluster.o_recv = 20 * CN_US;
		c.cluster.u_recv = 5 * CN_US;
		c.cluster.delay = 5 * CN_US;
		assert_int_equal(sim_run(&c, &out, &err), COLLNET_OK);
		assert_int_equal(out.failed, 0);
		assert_int_equal(out.drops, 0);
		assert_true(out.ack_bytes < 24 * 60);
		sim_outcome_free(&out);
		cn_topo_free(t);
	}
}

/* ---- traces and captures -------------------------------------------------------------- */

static void temporary(char path[64])
{
	int fd;

	strcpy(path, "/tmp/collnet-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 22);
	size_t n;

	assert_non_null(f);
	assert_non_null(text);
	n = fread(text, 1, (1 << 22) - 1, f);
	assert_true(n > 0 && n < (1 << 22) - 1);
	fclose(f);
	return text;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)) != NULL; text += strlen(what)) {
		n++;
	}
	return n;
}

/* The frames of a capture that carry data to a host, by what the transport's header says. */
static size_t data_frames(const char *path, size_t *all, uint64_t *last)
{
	struct {
		uint32_t magic, version, zone, accuracy, longest, link;
	} head;
	struct {
		uint32_t seconds, nanoseconds, captured, len;
	} h;
	uint8_t data[2048];
	FILE *f = fopen(path, "r");
	size_t n = 0;

	assert_non_null(f);
	assert_int_equal(fread(&head, sizeof(head), 1, f), 1);
	assert_int_equal(head.magic, 0xa1b23c4d); /* nanoseconds */
	assert_int_equal(head.link, 1);		  /* Ethernet */
	*all = 0;
	*last = 0;
	while (fread(&h, sizeof(h), 1, f) == 1) {
		struct cn_wire w;
		uint64_t at = (uint64_t)h.seconds * 1000000000u + h.nanoseconds;

		assert_true(h.captured >= 60 && h.captured == h.len && h.len <= sizeof(data));
		assert_int_equal(fread(data, h.len, 1, f), 1);
		assert_int_equal(data[12] << 8 | data[13], 0x88b5);
		assert_int_equal(cn_wire_get(data + 14, h.len - 14, &w), CN_WIRE_OK);
		n += w.type == CN_TYPE_COLL;
		assert_true(at >= 1000000000u);
		*last = at > *last ? at : *last;
		++*all;
	}
	fclose(f);
	return n;
}

static void trace__trace_and_capture(void **state)
{
	struct cn_topo *t = shape("4", 0, 43);
	struct sim_case c = exchange(t, "shuffle", 3000);
	struct sim_outcome out;
	char trace[64], pcap[64], *text;
	uint32_t link = 99;
	size_t all;
	uint64_t last;
	bool cut = true;

	(void)state;
	temporary(trace);
	temporary(pcap);
	assert_int_equal(sim_find_port(t, "s1-h2", &link, NULL), COLLNET_OK);
	assert_int_equal(sim_trace_open(t, trace, pcap, link, &c.trace, NULL), COLLNET_OK);
	assert_int_equal(sim_run(&c, &out, NULL), COLLNET_OK);
	assert_int_equal(sim_trace_close(c.trace, &cut, NULL), COLLNET_OK);
	assert_false(cut);
	text = slurp(trace);
	/* 2 iterations, 4 hosts, 3 others, 3 frames a block; on the host's port and the switch's */
	assert_int_equal(count(text, "\"name\": \"data h"), 2 * 4 * 3 * 3 * 2);
	assert_int_equal(count(text, "\"name\": \"data h2 > h0\""), 2 * 3 * 2);
	assert_int_equal(count(text, "\"process_name\""), 5);
	assert_int_equal(count(text, "\"thread_name\""), 8);
	assert_int_equal(text[0], '{');
	assert_int_equal(count(text, "{"), count(text, "}"));
	free(text);
	/* 3 iterations with the one that is not counted, both ways */
	assert_int_equal(data_frames(pcap, &all, &last), 3 * 2 * 3 * 3);
	assert_true(all > 54 && last > 1000000000u);
	unlink(trace);
	unlink(pcap);
	cn_topo_free(t);
}

static void trace__cannot_be_opened(void **state)
{
	struct cn_topo *t = shape("4", 0, 43);
	struct sim_trace *w = NULL;
	struct cn_err err = { 0 };

	(void)state;
	assert_int_equal(sim_trace_open(t, "/nowhere/x", NULL, 0, &w, &err), COLLNET_ESYSTEM);
	assert_non_null(strstr(err.text, "--trace: /nowhere/x"));
	assert_int_equal(sim_trace_open(t, NULL, "/nowhere/x", 0, &w, &err), COLLNET_ESYSTEM);
	assert_non_null(strstr(err.text, "--pcap: /nowhere/x"));
	assert_null(w);
	assert_int_equal(sim_trace_close(NULL, NULL, NULL), COLLNET_OK);
	cn_topo_free(t);
}

/* A capture that is larger than the stream's buffer fails long before it is closed. */
static void trace__cannot_be_written(void **state)
{
	struct cn_topo *t = shape("4", 0, 43);
	struct sim_case c = exchange(t, "shuffle", 30000);
	struct sim_outcome out;
	struct cn_err err = { 0 };

	(void)state;
	if (access("/dev/full", W_OK) != 0) {
		skip();
	}
	assert_int_equal(sim_trace_open(t, NULL, "/dev/full", 0, &c.trace, NULL), COLLNET_OK);
	assert_int_equal(sim_run(&c, &out, NULL), COLLNET_OK);
	assert_int_equal(sim_trace_close(c.trace, NULL, &err), COLLNET_ESYSTEM);
	assert_non_null(strstr(err.text, "--pcap: /dev/full could not be written: No space left"));
	assert_int_equal(sim_trace_open(t, "/dev/full", NULL, 0, &c.trace, NULL), COLLNET_OK);
	assert_int_equal(sim_run(&c, &out, NULL), COLLNET_OK);
	assert_int_equal(sim_trace_close(c.trace, NULL, &err), COLLNET_ESYSTEM);
	assert_non_null(strstr(err.text, "--trace: /dev/full could not be written: No space left"));
	cn_topo_free(t);
}

static void find_port__names_with_dashes(void **state)
{
	static const char text[] = "switch a\nswitch a-b\nhost c\nhost b-c\n"
				   "link a a-b rate 1gbit\nlink c a-b rate 1gbit\n"
				   "link b-c a rate 1gbit\n";
	struct cn_topo *t;
	uint32_t link;

	(void)state;
	assert_int_equal(cn_topo_parse(text, strlen(text), "t", &t, NULL), COLLNET_OK);
	assert_int_equal(sim_find_port(t, "a-a-b", &link, NULL), COLLNET_OK);
	assert_int_equal(link, 0);
	assert_int_equal(sim_find_port(t, "a-b-a", &link, NULL), COLLNET_OK);
	assert_int_equal(link, 0);
	/* "a" and "b-c", or "a-b" and "c": the first that is a link */
	assert_int_equal(sim_find_port(t, "a-b-c", &link, NULL), COLLNET_OK);
	assert_int_equal(link, 2);
	assert_int_equal(sim_find_port(t, "c-a-b", &link, NULL), COLLNET_OK);
	assert_int_equal(link, 1);
	assert_int_equal(sim_find_port(t, "c-a", &link, NULL), COLLNET_EINVAL);
	assert_int_equal(sim_find_port(t, "a", &link, NULL), COLLNET_EINVAL);
	assert_int_equal(sim_find_port(t, "-", &link, NULL), COLLNET_EINVAL);
	assert_int_equal(sim_find_port(t, "", &link, NULL), COLLNET_EINVAL);
	cn_topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(model__one_switch),
		cmocka_unit_test(model__uplinks),
		cmocka_unit_test(run__near_equation_2),
		cmocka_unit_test(run__one_seed_one_result),
		cmocka_unit_test(run__overload_is_not_death),
		cmocka_unit_test(run__short_exchange_at_once),
		cmocka_unit_test(run__short_exchange_by_rates),
		cmocka_unit_test(run__short_exchange_on_long_paths),
		cmocka_unit_test(run__chain_there_and_back),
		cmocka_unit_test(run__hosts_that_do_not_meet),
		cmocka_unit_test(run__first_exchange),
		cmocka_unit_test(trace__trace_and_capture),
		cmocka_unit_test(trace__cannot_be_opened),
		cmocka_unit_test(trace__cannot_be_written),
		cmocka_unit_test(find_port__names_with_dashes),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
