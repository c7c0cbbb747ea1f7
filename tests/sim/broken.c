/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of the oracles: the transport is broken on purpose in one of four ways, which scenarios of
 * the sweep must detect; the same scenarios must find nothing in the intact transport.
 * The linker replaces one function of lib/proto for each way (--wrap).
 *
 *   broken [--seeds N]   of the first N seeds (100) for each way, until three were found
 */
#include <stdio.h>
#include <string.h>

#include "proto/global_window.h"
#include "proto/wire.h"
#include "fixture.h"

#define ENOUGH 3u

/* 0: none */
static enum { WINDOW_PLUS_ONE = 1, ACK_OF_A_GAP, IN_FLIGHT_LEAKS, NO_ACK_REQUESTS } broken;

bool __real_cn_window_open(const struct cn_window *w, const struct cn_flight *f,
			   uint32_t own_limit);
void __real_cn_wire_put(uint8_t out[CN_WIRE_HEADER], const struct cn_wire *w);
void __real_cn_flight_end(struct cn_flight *f, struct cn_window *w);
bool __wrap_cn_window_open(const struct cn_window *w, const struct cn_flight *f,
			   uint32_t own_limit);
void __wrap_cn_wire_put(uint8_t out[CN_WIRE_HEADER], const struct cn_wire *w);
void __wrap_cn_flight_end(struct cn_flight *f, struct cn_window *w);

/* One frame more than W_g. */
bool __wrap_cn_window_open(const struct cn_window *w, const struct cn_flight *f, uint32_t own_limit)
{
	own_limit += broken == WINDOW_PLUS_ONE && own_limit != COLLNET_WINDOW_OFF;
	return __real_cn_window_open(w, f, own_limit);
}

/* Acknowledges the frames of the reorder buffer beyond a gap; or requests no acknowledgement. */
void __wrap_cn_wire_put(uint8_t out[CN_WIRE_HEADER], const struct cn_wire *w)
{
	struct cn_wire wrong = *w;

	if (broken == ACK_OF_A_GAP && w->type == CN_TYPE_ACK && (w->flags & CN_FLAG_NAK) != 0) {
		for (uint32_t map = w->stream & CN_SACK_BITMAP; map != 0; map >>= 1) {
			wrong.ack += map & 1;
		}
	}
	if (broken == NO_ACK_REQUESTS && w->type == CN_TYPE_COLL) {
		wrong.flags &= (uint8_t)~CN_FLAG_ACKREQ;
	}
	__real_cn_wire_put(out, &wrong);
}

/* Frames that are not acknowledged when their operation ends stay in flight. */
void __wrap_cn_flight_end(struct cn_flight *f, struct cn_window *w)
{
	if (broken == IN_FLIGHT_LEAKS && f->unacked != 0) {
		f->in_flight = 0;
		return;
	}
	__real_cn_flight_end(f, w);
}

static const struct way {
	const char *what, *oracle; /* part of the report of the oracle that must detect it */
} ways[] = {
	{ "one frame more than W_g", "W_g: " },
	{ "an acknowledgement of a gap", "acknowledgement of a gap: " },
	{ "frames stay in flight when their operation ends", " frames in flight when idle" },
	{ "no acknowledgement is requested", "idle for " },
};

/* 1: a finding; 0: none; -1: it cannot run. */
static int run(uint64_t seed, char *finding, size_t cap)
{
	struct scenario s;
	struct fixture w;
	bool ok;

	if (!scenario_draw(seed, &s)) {
		return -1;
	}
	ok = fixture_run(&w, &s, false);
	snprintf(finding, cap, "%s", w.finding);
	scenario_free(&s);
	return ok ? 0 : 1;
}

static bool try_method(int way, uint64_t seeds)
{
	uint64_t seed = 1, found = 0, exact = 0, first = 0;
	char finding[1024], whole[1024], said[1024] = "";

	for (; seed <= seeds && exact < ENOUGH; seed++) {
		broken = way;
		if (run(seed, finding, sizeof(finding)) == 0) {
			continue;
		}
		broken = 0;
		if (run(seed, whole, sizeof(whole)) != 0) {
			printf("seed %llu fails with the intact transport: %s\n",
			       (unsigned long long)seed, whole);
			return false;
		}
		found++;
		if (strstr(finding, ways[way - 1].oracle) != NULL && exact++ == 0) {
			first = seed;
			snprintf(said, sizeof(said), "%s", finding);
		}
	}
	printf("%s: %llu of %llu seeds fail, %llu by the intended oracle", ways[way - 1].what,
	       (unsigned long long)found, (unsigned long long)(seed - 1),
	       (unsigned long long)exact);
	if (exact > 0) {
		printf("; the first, %llu: %s", (unsigned long long)first, said);
	}
	printf("\n");
	return exact > 0;
}

int main(int argc, char **argv)
{
	uint64_t seeds = 100;
	bool ok = true;

	if (argc != 1 && (argc != 3 || strcmp(argv[1], "--seeds") != 0 ||
			  !cn_parse_uint(argv[2], 1, 1000000, &seeds))) {
		fprintf(stderr, "usage: %s [--seeds N]\n", argv[0]);
		return 2;
	}
	for (int way = 1; way <= 4; way++) {
		ok &= try_method(way, seeds);
	}
	return ok ? 0 : 1;
}
