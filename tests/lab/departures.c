/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An exchange without end, in which something happens to rank 1 or its node. Every rank prints its
 * error, and how long the call took that failed, how much processor time it used, and how long
 * the context took to close.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collnet/collnet.h"

#define ROUNDS 100 /* until it happens */
#define BYTES  1000u

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void happen(const char *what, collnet_t *c)
{
	if (strcmp(what, "kill") == 0) {
		raise(SIGKILL);
	} else if (strcmp(what, "end") == 0) {
		collnet_close(c);
		exit(0);
	} else if (strcmp(what, "descriptors") == 0) {
		for (int fd = 3; fd < 100; fd++) {
			close(fd);
		}
	} else if (system(what) != 0) {
		fprintf(stderr, "departures: '%s' failed\n", what);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	static unsigned char send[8 * BYTES], recv[8 * BYTES];
	double began = 0, used = 0, took;
	collnet_team_t *t;
	collnet_t *c;
	uint32_t rank;
	int rc = COLLNET_OK;

	if (argc != 2 || collnet_open(NULL, &c) != COLLNET_OK ||
	    collnet_team_create(c, NULL, &t) != COLLNET_OK) {
		fprintf(stderr, "departures: %s\n", collnet_error(NULL));
		return 1;
	}
	rank = collnet_team_rank(t);
	for (int i = 0; rc == COLLNET_OK; i++) {
		if (i == ROUNDS && rank == 1) {
			happen(argv[1], c);
		}
		began = seconds(CLOCK_MONOTONIC);
		used = seconds(CLOCK_PROCESS_CPUTIME_ID);
		rc = collnet_alltoall(t, send, recv, BYTES, NULL);
	}
	took = seconds(CLOCK_MONOTONIC) - began;
	used = seconds(CLOCK_PROCESS_CPUTIME_ID) - used;
	printf("%u: error %s\n", rank, collnet_error(c));
	began = seconds(CLOCK_MONOTONIC);
	collnet_close(c);
	printf("%u: took %.3f used %.3f close %.3f\n", rank, took, used,
	       seconds(CLOCK_MONOTONIC) - began);
	return 0;
}
