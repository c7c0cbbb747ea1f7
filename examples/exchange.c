/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-to-all exchange: every rank sends a block to every rank. Start one process per rank:
 *
 *   cc exchange.c -o exchange $(pkg-config --cflags --libs collnet)
 *   collnet lab run --shape 8x2 -- ./exchange		on an emulated cluster of 16 hosts
 *   srun ./exchange					on a real cluster with collnetd
 *
 * Rank, size and job come from the launcher. Usage: exchange [BYTES], the size of a block.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <collnet/collnet.h>

/* Byte i of the block from one rank to another; sender and receiver can both compute it. */
static unsigned char byte_of(uint32_t from, uint32_t to, size_t i)
{
	return (unsigned char)(from * 31 + to * 17 + i * 7 + 1);
}

static void fill(unsigned char *send, uint32_t rank, uint32_t size, size_t bytes)
{
	for (uint32_t to = 0; to < size; to++) {
		for (size_t i = 0; i < bytes; i++) {
			send[to * bytes + i] = byte_of(rank, to, i);
		}
	}
}

/* Returns 0 if all bytes are correct. */
static int check(const unsigned char *recv, uint32_t rank, uint32_t size, size_t bytes)
{
	for (uint32_t from = 0; from < size; from++) {
		for (size_t i = 0; i < bytes; i++) {
			if (recv[from * bytes + i] != byte_of(from, rank, i)) {
				fprintf(stderr, "rank %u: byte %zu from rank %u is wrong\n", rank,
					i, from);
				return 1;
			}
		}
	}
	return 0;
}

/* Prints the library's message, which names the node, the rank and the phase. */
static int report(const collnet_t *c, const char *what, int status)
{
	const char *why = collnet_error(c);

	fprintf(stderr, "%s: %s\n", what, *why ? why : collnet_strerror(status));
	return 1;
}

static int exchange(collnet_t *c, collnet_team_t *team, size_t bytes)
{
	uint32_t rank = collnet_team_rank(team), size = collnet_team_size(team);
	/* Buffers from collnet_alloc() are sent without a copy. */
	unsigned char *send = collnet_alloc(c, size * bytes);
	unsigned char *recv = collnet_alloc(c, size * bytes);
	int status, failed;

	if (!send || !recv) {
		failed = report(c, "collnet_alloc", COLLNET_ENOMEM);
		goto out;
	}
	fill(send, rank, size, bytes);
	status = collnet_alltoall(team, send, recv, bytes, NULL);
	if (status) {
		failed = report(c, "collnet_alltoall", status);
		goto out;
	}
	failed = check(recv, rank, size, bytes);
	if (!failed && rank == 0) {
		printf("%u ranks on %u nodes exchanged %zu bytes per pair: correct\n", size,
		       collnet_team_nodes(team), bytes);
	}
out:
	collnet_free(c, send);
	collnet_free(c, recv);
	return failed;
}

int main(int argc, char **argv)
{
	char *end = "";
	size_t bytes = argc > 1 ? strtoul(argv[1], &end, 10) : 65536;
	struct collnet_team_options options;
	collnet_t *c = NULL;
	collnet_team_t *team = NULL;
	int status, failed;

	if (argc > 2 || *end != '\0' || bytes == 0 || bytes > COLLNET_BLOCK_MAX) {
		fprintf(stderr, "usage: exchange [BYTES], 1 to %zu\n", COLLNET_BLOCK_MAX);
		return 2;
	}
	status = collnet_open(NULL, &c);
	if (status) {
		return report(NULL, "collnet_open", status);
	}
	collnet_team_options_init(&options);
	status = collnet_team_create(c, &options, &team);
	failed = status ? report(c, "collnet_team_create", status) : exchange(c, team, bytes);
	collnet_team_destroy(team);
	collnet_close(c);
	return failed;
}
