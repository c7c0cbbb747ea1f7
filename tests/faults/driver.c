/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault tests, inside `collnet lab shell`:
 *
 *   fault_driver soak --seed N --jobs N
 *   fault_driver trials --kind KIND [--trials N] [--csv FILE] [--seed N]
 *   fault_driver alarms [--jobs N] [--load N]
 *
 * Exit status 1: something is not as it must be, and was printed.
 */
#include "cluster.h"

#include <signal.h>
#include <string.h>

int main(int argc, char **argv)
{
	uint64_t seed = 1, jobs = 10, n = 100, load = 8;
	const char *csv = NULL;
	struct cluster c;
	enum kind kind = FAULT_RANK;
	int rc = 2;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 2; i < argc; i += 2) {
		const char *v = i + 1 < argc ? argv[i + 1] : "";
		bool ok = strcmp(argv[i], "--seed") == 0   ? cn_parse_uint(v, 0, UINT64_MAX, &seed)
			  : strcmp(argv[i], "--jobs") == 0 ? cn_parse_uint(v, 1, 1000000, &jobs)
			  : strcmp(argv[i], "--trials") == 0 ? cn_parse_uint(v, 1, 100000, &n)
			  : strcmp(argv[i], "--load") == 0   ? cn_parse_uint(v, 0, 64, &load)
			  : strcmp(argv[i], "--kind") == 0   ? kind_find(v, &kind)
							     : strcmp(argv[i], "--csv") == 0;

		if (!ok) {
			fprintf(stderr,
				"fault_driver: %s %s: not understood; see tests/faults/driver.c\n",
				argv[i], v);
			return 2;
		}
		csv = strcmp(argv[i], "--csv") == 0 ? v : csv;
	}
	if (!cluster_open(&c, seed)) {
		return 1;
	}
	if (argc > 1 && strcmp(argv[1], "soak") == 0) {
		rc = soak(&c, seed, (uint32_t)jobs);
	} else if (argc > 1 && strcmp(argv[1], "trials") == 0) {
		rc = trials(&c, kind, (uint32_t)n, csv);
	} else if (argc > 1 && strcmp(argv[1], "alarms") == 0) {
		rc = alarms(&c, (uint32_t)jobs, (uint32_t)load);
	} else {
		fprintf(stderr, "usage: fault_driver soak|trials|alarms ...\n");
	}
	cluster_close(&c);
	if (rc == 0) {
		printf("VERDICT ok\n"); /* the lab's own status may be of a daemon that ended */
	}
	return rc;
}
