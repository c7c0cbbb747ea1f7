/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets stepping through a tree, store and forward: in a step every channel of every link carries
 * at most one packet in each direction, and a switch uses all its links at once. Packets that want
 * the same link wait in a queue, first come first served. It uses trees, but no code of schedules.
 */
#ifndef PACKET_STEPPER_H
#define PACKET_STEPPER_H

#include "topo/tree.h"

#define ST_EVERYBODY UINT32_MAX

struct st_packet {
	uint32_t from, to; /* nodes; to ST_EVERYBODY: the switches replicate it */
	/* To everybody: up to this vertex without copies, from there down to its other subtrees;
	 * ST_EVERYBODY: at every switch to all other links. */
	uint32_t top;
	uint64_t start; /* the step in which it wants its host's link, from 1 */
	uint64_t end;	/* filled in: the step in which it, or its last copy, has arrived */
};

struct st_result {
	uint64_t steps;	    /* until the last packet has arrived */
	uint64_t delivered; /* copies that reached a host */
	uint64_t waits;	    /* steps that packets spent in queues, summed */
	uint32_t queue;	    /* the longest queue of packets that had to wait */
};

/*
 * Runs until nothing moves. heard (may be NULL): [nhosts * nhosts] counts of arrivals, by receiver,
 * then sender. Sorts the packets by start. Fails the test when memory runs out.
 */
struct st_result st_run(const struct cn_tree *t, struct st_packet *p, uint32_t n, uint8_t *heard);

/*
 * A complete binary tree of 2^levels hosts h0 .. from left to right; channels[i - 1] a link between
 * levels i - 1 and i (hosts are level 0), or 1 everywhere for NULL. The caller frees both.
 */
void st_binary(uint32_t levels, const uint32_t *channels, struct cn_topo **topo,
	       struct cn_tree **tree);
/* A random tree of switches with 1 .. channels channels a link, hosts at any of them. */
void st_random(uint32_t hosts, uint32_t switches, uint32_t channels, uint64_t *seed,
	       struct cn_topo **topo, struct cn_tree **tree);
/* n switches in a row, s0 .., with a host each, h0 .. . */
void st_chain(uint32_t n, struct cn_topo **topo);

#endif
