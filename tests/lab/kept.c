/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was received stays in memory from collnet_alloc(), though the daemon that shares it has
 * little memory and ends. Runs as every rank of a team, with a command that ends this node's
 * daemon. Before, it opens contexts one after the other, which have more together than the daemon.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collnet/collnet.h"

#define BYTES	((size_t)40 << 20)
#define OPENED	5
#define PATTERN 0x5a

static collnet_t *c;
static unsigned char *p;

static void check(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "kept: %s (last error: %s)\n", what, collnet_error(c));
		exit(1);
	}
}

static void open_and_allocate(void)
{
	check(collnet_open(NULL, &c) == COLLNET_OK, "no context");
	p = collnet_alloc(c, BYTES);
	check(p != NULL, "no memory");
}

int main(int argc, char **argv)
{
	collnet_team_t *team;

	for (int i = 0; i < OPENED; i++) {
		open_and_allocate();
		p[0] = 1;
		collnet_close(c);
	}
	open_and_allocate();
	check(collnet_team_create(c, NULL, &team) == COLLNET_OK, "no team");
	if (collnet_team_rank(team) == 0) {
		memset(p, PATTERN, BYTES);
	}
	check(collnet_bcast(team, p, BYTES, 0, NULL) == COLLNET_OK, "no broadcast");
	check(collnet_barrier(team, NULL) == COLLNET_OK, "no barrier");
	check(argc == 2 && system(argv[1]) == 0, "the daemon cannot be ended");
	check(collnet_barrier(team, NULL) != COLLNET_OK, "the daemon has not ended");
	for (size_t i = 0; i < BYTES; i++) {
		check(p[i] == PATTERN, "what was received is gone");
	}
	puts("kept");
	return 0;
}
