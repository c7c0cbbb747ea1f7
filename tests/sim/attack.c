/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenarios in which nothing fails, or no more than frames that are lost, with attackers
 * (attackers.h), each kind alone and all together.
 *
 *   attack [--seeds N] [--first N] [--verbose]   N scenarios (40) from seed `first` on
 *
 * Exit status 1: one failed; it is printed.
 */
#include <stdio.h>
#include <string.h>

#include "attackers.h"

static const uint32_t all[] = {
	ATTACKER_FORGER,
	ATTACKER_REPLAYER,
	ATTACKER_FLOODER,
	ATTACKER_INVENTOR,
	ATTACKER_FORGER | ATTACKER_REPLAYER | ATTACKER_FLOODER | ATTACKER_INVENTOR,
	ATTACKER_ON_PATH,
};

int main(int argc, char **argv)
{
	uint64_t first = 1, seeds = 40, run = 0, failed = 0;
	bool verbose = false;

	for (int i = 1; i < argc; i++) {
		uint64_t *into = strcmp(argv[i], "--seeds") == 0   ? &seeds
				 : strcmp(argv[i], "--first") == 0 ? &first
								   : NULL;

		if (strcmp(argv[i], "--verbose") == 0) {
			verbose = true;
		} else if (into == NULL || i + 1 == argc ||
			   !cn_parse_uint(argv[++i], 0, UINT64_MAX, into)) {
			fprintf(stderr, "usage: %s [--seeds N] [--first N] [--verbose]\n", argv[0]);
			return 2;
		}
	}
	for (uint64_t seed = first; run < seeds; seed++) {
		struct scenario s;
		struct fixture w;

		if (!scenario_draw(seed, &s)) {
			printf("seed %llu: it cannot be drawn\n", (unsigned long long)seed);
			return 1;
		}
		if (s.profile == PROFILE_NONE || s.profile == PROFILE_LOSS) {
			s.attackers = all[run++ % (sizeof(all) / sizeof(all[0]))];
			if ((s.attackers & ATTACKER_ON_PATH) != 0) {
				scenario_authenticate(&s, true);
			}
			if (!fixture_run(&w, &s, verbose)) {
				printf("seed %llu, attackers %u, failed: %s\n",
				       (unsigned long long)seed, s.attackers, w.finding);
				failed++;
			}
		}
		scenario_free(&s);
	}
	printf("%llu scenarios from seed %llu with attackers; %llu failed\n",
	       (unsigned long long)run, (unsigned long long)first, (unsigned long long)failed);
	return failed > 0;
}
