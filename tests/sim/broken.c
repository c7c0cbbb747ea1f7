/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Do the oracles see anything? The transport is broken on purpose, in one of three ways, and the
 * scenarios of the sweep have to find it; those that did must find nothing where it is whole.
 *
 *   broken [--seeds N]   of the first N seeds (100) for each way, until three were found
 */
#include "broken.h"

#include <stdio.h>
#include <string.h>

#include "world.h"

#define ENOUGH 3u

int broken;

static const struct way {
	const char *what,
		*oracle; /* a piece of the sentence of the oracle that must have seen it */
} ways[] = {
	{ "one frame more than W_g", "W_g: " },
	{ "an acknowledgement of a gap", "acknowledgement of a gap: " },
	{ "frames stay in eta when their operation ends", "eta is " },
};

/* 1: a finding; 0: none; -1: it cannot run. */
static int run(uint64_t seed, char *verdict, size_t cap)
{
	struct scenario s;
	struct world w;
	bool ok;

	if (!scenario_draw(seed, &s)) {
		return -1;
	}
	ok = world_run(&w, &s, false);
	snprintf(verdict, cap, "%s", w.verdict);
	scenario_free(&s);
	return ok ? 0 : 1;
}

static bool try_way(int way, uint64_t seeds)
{
	uint64_t seed = 1, found = 0, exact = 0, first = 0;
	char verdict[1024], whole[1024], said[1024] = "";

	for (; seed <= seeds && exact < ENOUGH; seed++) {
		broken = way;
		if (run(seed, verdict, sizeof(verdict)) == 0) {
			continue;
		}
		broken = 0;
		if (run(seed, whole, sizeof(whole)) != 0) {
			printf("seed %llu fails where nothing is broken: %s\n",
			       (unsigned long long)seed, whole);
			return false;
		}
		found++;
		if (strstr(verdict, ways[way - 1].oracle) != NULL && exact++ == 0) {
			first = seed;
			snprintf(said, sizeof(said), "%s", verdict);
		}
	}
	printf("%s: %llu of %llu seeds fail, %llu by the oracle that is meant", ways[way - 1].what,
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
	for (int way = 1; way <= 3; way++) {
		ok &= try_way(way, seeds);
	}
	return ok ? 0 : 1;
}
