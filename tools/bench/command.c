/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `collnet bench`: opens a context, joins the team, maps ranks to nodes, and measures.
 *
 * Every rank runs the same steps in the same order; what they must agree on (how many
 * iterations) rank 0 decides and announces. Whatever needs the network for the measurement's own
 * sake (gathering times and counters) happens after the measured part.
 */
#include "client/env.h"
#include "proto/wire.h"
#include "tools/bench/command.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t bench_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int bench_fail(const struct bench *b, int status, const char *fmt, ...)
{
	const char *message = b->c != NULL ? collnet_error(b->c) : NULL;
	const char *node = b->c != NULL ? collnet_node_name(b->c) : NULL;
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (b->progress_shown) {
		fputc('\n', stderr);
	}
	tool_complain("rank %u on node %s: %s: %s", b->m.rank, node != NULL ? node : "?", what,
		      message != NULL && *message != 0 ? message : collnet_strerror(status));
	return TOOL_FAILED;
}

uint32_t bench_timeout(const struct bench *b)
{
	double ms;

	if (b->o->timeout_ms != 0) {
		return b->o->timeout_ms;
	}
	ms = b->o->open.timeout_ms + b->expected_us / 1000 * 20;
	return ms < 86400e3 ? (uint32_t)ms : 86400000;
}

int bench_barrier(const struct bench *b)
{
	struct collnet_coll_options co;
	int rc;

	collnet_coll_options_init(&co);
	co.timeout_ms = bench_timeout(b);
	rc = collnet_barrier(b->team, &co);
	return rc == COLLNET_OK ? TOOL_OK : bench_fail(b, rc, "barrier");
}

int bench_gather(const struct bench *b, const uint64_t *mine, size_t n, uint64_t *all)
{
	struct collnet_coll_options co;
	uint64_t *wire = malloc(n * sizeof(*wire));
	size_t i;
	int rc;

	if (wire == NULL) {
		return bench_fail(b, COLLNET_ENOMEM, "gathering results");
	}
	for (i = 0; i < n; i++) {
		wire[i] = htole64(mine[i]);
	}
	collnet_coll_options_init(&co);
	co.timeout_ms = bench_timeout(b);
	rc = collnet_allgather(b->team, wire, all, n * sizeof(*wire), &co);
	free(wire);
	if (rc != COLLNET_OK) {
		return bench_fail(b, rc, "gathering results");
	}
	for (i = 0; i < n * b->m.place.ranks; i++) {
		all[i] = le64toh(all[i]);
	}
	return TOOL_OK;
}

int bench_agree(const struct bench *b, uint64_t *value)
{
	uint64_t *all = malloc(b->m.place.ranks * sizeof(*all));
	int rc;

	if (all == NULL) {
		return bench_fail(b, COLLNET_ENOMEM, "agreeing on iterations");
	}
	rc = bench_gather(b, value, 1, all);
	if (rc == TOOL_OK) {
		*value = all[0];
	}
	free(all);
	return rc;
}

void bench_progress(struct bench *b, const char *fmt, ...)
{
	cn_time now;
	va_list ap;

	if (!b->progress) {
		return;
	}
	now = cn_now();
	if (b->progress_last != 0 && now - b->progress_last < 200 * CN_MS) {
		return;
	}
	b->progress_last = now;
	b->progress_shown = isatty(STDERR_FILENO);
	if (b->progress_shown) {
		fputs("\r\033[K", stderr);
	}
	fprintf(stderr, "%s ", measure_op_name(b->o->m.op));
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	if (!b->progress_shown) {
		fputc('\n', stderr);
	}
	fflush(stderr);
}

void bench_progress_end(struct bench *b)
{
	if (b->progress_shown) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	b->progress_shown = false;
	b->progress_last = 0;
}

void bench_wrong(struct bench *b, const char *what, uint32_t source, size_t offset, uint8_t want,
		 uint8_t got)
{
	b->wrong = true;
	tool_complain("wrong byte: rank %u on node %s, %s from rank %u, offset %zu: expected "
		      "0x%02x, got 0x%02x",
		      b->m.rank, collnet_node_name(b->c), what, source, offset, want, got);
}

/* ---- counters ------------------------------------------------------------------------- */

int bench_count_begin(struct bench *b, struct collnet_stats *before)
{
	int rc;

	memset(before, 0, sizeof(*before));
	before->size = sizeof(*before);
	if (!b->leader) {
		return TOOL_OK;
	}
	rc = collnet_get_stats(b->c, before, 1);
	if (rc != COLLNET_OK) {
		return bench_fail(b, rc, "reading the counters");
	}
	b->m.node_window = before->window;
	return TOOL_OK;
}

int bench_count_end(const struct bench *b, const struct collnet_stats *before,
		    uint64_t counters[BENCH_COUNTERS])
{
	struct collnet_stats s = { .size = sizeof(s) };
	int rc;

	if (!b->leader) {
		return TOOL_OK;
	}
	rc = collnet_get_stats(b->c, &s, 0);
	if (rc != COLLNET_OK) {
		return bench_fail(b, rc, "reading the counters");
	}
	counters[BENCH_DATA_SENT] += s.data_sent - before->data_sent;
	counters[BENCH_DATA_RESENT] += s.data_resent - before->data_resent;
	counters[BENCH_BYTES_SENT] += s.bytes_sent - before->bytes_sent;
	counters[BENCH_ACK_BYTES] += s.ack_bytes_sent - before->ack_bytes_sent;
	counters[BENCH_RING_DROPS] += s.ring_drops - before->ring_drops;
	if (!b->m.direct) { /* otherwise it is this process, which counts its own */
		counters[BENCH_CPU] += s.cpu_ns - before->cpu_ns;
	}
	if (s.window_peak > counters[BENCH_WINDOW_PEAK]) {
		counters[BENCH_WINDOW_PEAK] = s.window_peak;
	}
	counters[BENCH_RSS] = s.rss_bytes;
	return TOOL_OK;
}

int bench_count_gather(const struct bench *b, const uint64_t mine[BENCH_COUNTERS],
		       uint64_t total[BENCH_COUNTERS])
{
	uint64_t *all = malloc((size_t)b->m.place.ranks * BENCH_COUNTERS * sizeof(*all));
	size_t r, i;
	int rc;

	if (all == NULL) {
		return bench_fail(b, COLLNET_ENOMEM, "gathering results");
	}
	rc = bench_gather(b, mine, BENCH_COUNTERS, all);
	memset(total, 0, BENCH_COUNTERS * sizeof(total[0]));
	for (r = 0; rc == TOOL_OK && r < b->m.place.ranks; r++) {
		for (i = 0; i < BENCH_COUNTERS; i++) {
			uint64_t v = all[r * BENCH_COUNTERS + i];

			if (i < BENCH_SUMS) {
				total[i] += v;
			} else if (v > total[i]) {
				total[i] = v;
			}
		}
	}
	free(all);
	return rc;
}

void bench_count_report(const uint64_t total[BENCH_COUNTERS], double payload,
			struct measure_result *r)
{
	r->frames_sent = total[BENCH_DATA_SENT] + total[BENCH_DATA_RESENT];
	r->frames_resent = total[BENCH_DATA_RESENT];
	r->ring_drops = total[BENCH_RING_DROPS];
	r->rss_bytes = total[BENCH_RSS];
	r->window_peak = total[BENCH_WINDOW_PEAK];
	r->ack_bytes_share = total[BENCH_BYTES_SENT] > 0 ? (double)total[BENCH_ACK_BYTES] /
								   (double)total[BENCH_BYTES_SENT]
							 : NAN;
	r->cpu_s_per_gib = payload > 0 ? (double)total[BENCH_CPU] / 1e9 / (payload / 0x1p30) : NAN;
}

/* ---- the run -------------------------------------------------------------------------- */

/* The nodes of the ranks, and their vertices in the topology. */
static int locate(struct bench *b)
{
	const char *path = b->o->open.topology;
	const char **names = calloc(b->m.place.ranks, sizeof(*names));
	struct cn_err err = { 0 };
	uint32_t i, n, nodes = 0;

	b->node_of = calloc(b->m.place.ranks, sizeof(*b->node_of));
	b->vertex = calloc(b->m.place.ranks, sizeof(*b->vertex));
	if (names == NULL || b->node_of == NULL || b->vertex == NULL) {
		free(names);
		return bench_fail(b, COLLNET_ENOMEM, "looking for the ranks");
	}
	b->leader = true;
	for (i = 0; i < b->m.place.ranks; i++) {
		const char *name = collnet_team_node(b->team, i);

		for (n = 0; n < nodes && strcmp(names[n], name) != 0; n++) {
		}
		if (n == nodes) {
			names[nodes++] = name;
		}
		b->node_of[i] = n;
		if (i < b->m.rank && strcmp(name, collnet_team_node(b->team, b->m.rank)) == 0) {
			b->leader = false;
		}
	}
	b->m.place.nodes = nodes;
	b->m.place.node_of = b->node_of;
	b->m.place.rate = b->o->rate;
	if (path != NULL) {
		if (cn_topo_read(path, &b->topo, &err) != COLLNET_OK) {
			tool_complain("%s", err.text);
			free(names);
			return TOOL_FAILED;
		}
		for (n = 0; n < nodes; n++) {
			b->vertex[n] = cn_topo_find(b->topo, names[n]);
		}
		b->m.place.topo = b->topo;
		b->m.place.vertex = b->vertex;
	}
	free(names);
	return TOOL_OK;
}

/* What all ranks choose by: the rate of the slowest node's link, and the headers of frames. */
static int compare_links(struct bench *b)
{
	struct collnet_stats s = { .size = sizeof(s) };
	uint64_t *all = malloc(b->m.place.ranks * sizeof(*all)), mine;
	enum cn_encapsulation encapsulation = CN_ENCAPSULATION_DEFAULT;
	int rc;

	if (all == NULL) {
		return bench_fail(b, COLLNET_ENOMEM, "comparing the links");
	}
	rc = collnet_get_stats(b->c, &s, 0);
	if (rc != COLLNET_OK) {
		free(all);
		return bench_fail(b, rc, "comparing the links");
	}
	(void)cn_parse_encapsulation(s.encapsulation, &encapsulation);
	b->m.headers = cn_encapsulation_bytes(encapsulation) +
		       (s.authenticated != 0 ? CN_WIRE_AUTH : 0);
	mine = s.link_rate;
	rc = bench_gather(b, &mine, 1, all);
	for (uint32_t i = 0; rc == TOOL_OK && i < b->m.place.ranks; i++) {
		if (all[i] != 0 && (b->m.link_rate == 0 || all[i] < b->m.link_rate)) {
			b->m.link_rate = all[i];
		}
	}
	free(all);
	return rc;
}

static int start(struct bench *b)
{
	const struct bench_options *o = b->o;
	struct collnet_team_options team = o->team;
	const char *mode = getenv("COLLNET_MODE"), *progress = getenv("COLLNET_PROGRESS");
	int rc;

	rc = collnet_open(&o->open, &b->c);
	if (rc != COLLNET_OK) {
		tool_complain("rank %u: %s", team.rank, collnet_error(NULL));
		return TOOL_FAILED;
	}
	b->m.direct = o->open.mode == COLLNET_MODE_DIRECT ||
		      (o->open.mode == COLLNET_MODE_AUTO && mode != NULL &&
		       strcmp(mode, "direct") == 0);
	b->m.rank = team.rank;
	if (o->timeout_ms != 0) {
		team.timeout_ms = o->timeout_ms;
	}
	rc = collnet_team_create(b->c, &team, &b->team);
	if (rc != COLLNET_OK) {
		return bench_fail(b, rc, "joining the team");
	}
	b->m.rank = collnet_team_rank(b->team);
	b->m.place.ranks = collnet_team_size(b->team);
	rc = locate(b);
	if (rc == TOOL_OK && o->m.nalgorithms == 0) {
		rc = compare_links(b);
	}
	if (rc != TOOL_OK || b->m.rank != 0) {
		return rc;
	}
	b->progress = isatty(STDERR_FILENO) || (progress != NULL && strcmp(progress, "1") == 0);
	if (o->m.csv != NULL) {
		b->m.csv = fopen(o->m.csv, "w");
		if (b->m.csv == NULL) {
			tool_complain("%s: %s", o->m.csv, strerror(errno));
			return TOOL_FAILED;
		}
	}
	return TOOL_OK;
}

static int run(struct bench *b)
{
	int rc = start(b);

	if (rc != TOOL_OK) {
		return rc;
	}
	if (b->o->m.op == MEASURE_PINGPONG || b->o->m.op == MEASURE_STREAM) {
		rc = bench_messages(b);
	} else {
		rc = bench_collective(b);
	}
	if (rc == TOOL_OK) {
		/* No rank leaves while another still needs the last acknowledgements. */
		rc = bench_barrier(b);
	}
	return rc == TOOL_OK && b->wrong ? TOOL_FAILED : rc;
}

int collnet_cmd_bench(int argc, char **argv)
{
	struct bench_options o;
	struct bench b = { .o = &o, .m = { .o = &o.m } };
	struct cn_err err = { 0 };
	struct cn_launch_info place;
	int rc;

	if (bench_plans(argc, argv)) {
		return bench_plan(argc, argv); /* neither network nor ranks */
	}
	rc = bench_options_parse(&o, argc, argv);
	if (rc != TOOL_OK) {
		return rc < 0 ? TOOL_OK : rc;
	}
	if (cn_launch_info(&place, &err) == COLLNET_OK) {
		rc = bench_check_ranks(&o, place.specified_by);
		if (rc != TOOL_OK) {
			return rc;
		}
	} else if (o.team.ranks == 0) { /* nor do the options specify them */
		tool_complain("%s", err.text);
		return TOOL_FAILED;
	}
	rc = run(&b);
	if (b.m.csv != NULL && fclose(b.m.csv) != 0) {
		tool_complain("%s: %s", o.m.csv, strerror(errno));
		rc = TOOL_FAILED;
	}
	collnet_team_destroy(b.team);
	if (b.c != NULL) {
		collnet_close(b.c);
	}
	cn_topo_free(b.topo);
	free(b.node_of);
	free(b.vertex);
	return rc;
}
