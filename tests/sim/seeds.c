/* SPDX-License-Identifier: BSD-2-Clause */
#include "seeds.h"

#include <string.h>

#include "util/util.h"

bool seed_options_parse(int argc, char **argv, bool lossy, struct seed_options *o)
{
	for (int i = 1; i < argc; i++) {
		uint64_t *into = NULL;

		if (strcmp(argv[i], "--verbose") == 0) {
			o->verbose = true;
			continue;
		}
		if (strcmp(argv[i], "--seed") == 0) {
			into = &o->first;
			o->seeds = 1;
		} else if (strcmp(argv[i], "--first") == 0) {
			into = &o->first;
		} else if (strcmp(argv[i], "--seeds") == 0) {
			into = &o->seeds;
		} else if (strcmp(argv[i], "--loss") == 0 && lossy) {
			into = &o->loss;
		} else if (strcmp(argv[i], "--seconds") == 0) {
			into = &o->seconds;
			o->seeds = UINT64_MAX;
		}
		if (into == NULL || i + 1 == argc ||
		    !cn_parse_uint(argv[++i], 0, UINT64_MAX, into)) {
			return false;
		}
	}
	return o->loss <= 1000000;
}
