/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One cost model for every algorithm: what a message costs on this network. The selection, the
 * segments of pipelined algorithms, and the explanations use it; tools/sim does not (it moves
 * frames).
 *
 * A message of n bytes from a to b over d links takes
 *     startup + n / bandwidth + (d - 1) * frame / bandwidth + d * hop
 * the start-up once a message, the wire's time at the slowest link of the path with every frame's
 * overhead, one frame's time again for every switch that stores and forwards it, and a switch's
 * own delay. One port a node: it sends one message at a time, and receives one.
 */
#ifndef CN_COST_H
#define CN_COST_H

#include "topo/tree.h"

struct cn_cost {
	double startup; /* seconds: processing of a message at its ends, while others are sent */
	double message; /* seconds of that in which a node's port sends nothing else */
	double combine; /* seconds until a rank has combined a fragment of a reduction */
	double combine_short; /* the same of short blocks, which the daemon combines */
	double loss;	      /* seconds until frames lost in a port are retransmitted */
	double hop;	      /* seconds a switch needs besides storing the frame */
	uint32_t payload;     /* bytes of the user's in a full frame */
	uint32_t overhead;    /* bytes on the wire a frame besides */
	double rate;	      /* bit/s of links whose rate the tree does not know */
	double pace;	      /* seconds a frame at least, by a window; 0: no window */
	uint32_t at_once; /* frames that a window lets go before the first is acknowledged, after
			   * which it has room for what is in cables; 0: all */
};

/* Ordinary machines on Gigabit Ethernet: 10, 0.5, 40, 1, 5000, 5 us, 1476 of 1538 bytes;
 * encapsulation raw.
 */
extern const struct cn_cost cn_cost_default;
struct cn_layout;
/* The same with the encapsulation and the links of these nodes. */
struct cn_cost cn_cost_of(const struct cn_layout *l);

/* Seconds on the wire of n bytes in frames, at bits per second (0: the model's rate). */
double cn_cost_wire(const struct cn_cost *c, uint64_t bytes, uint64_t rate);
/* Frames of a message; an empty one has one. */
uint64_t cn_cost_frames(const struct cn_cost *c, uint64_t bytes);
/* Bytes in the longest frame of n bytes, which are divided evenly (as by cn_op_frame_bytes()). */
uint64_t cn_cost_frame(const struct cn_cost *c, uint64_t bytes);
/* Seconds of a message from node a to node b of the tree. */
double cn_cost_message(const struct cn_cost *c, const struct cn_tree *t, uint32_t a, uint32_t b,
		       uint64_t bytes);
/* The same; *wire: of that, on the slowest link of the path. */
double cn_cost_message_and_wire(const struct cn_cost *c, const struct cn_tree *t, uint32_t a,
				uint32_t b, uint64_t bytes, double *wire);
/* Seconds that a node waits for acknowledgements, with so many frames to send, one in each
 * `interval`; `way`: of a frame to the node that it sends to. */
double cn_cost_waits(const struct cn_cost *c, uint64_t frames, double interval, double way);
/* Nanoseconds, at most 2^44 (five hours), so that those of all links of a network can be added. */
uint64_t cn_cost_ns(double seconds);
/* The slowest link of the tree, bit/s a channel; the model's rate where none is known. */
uint64_t cn_cost_slowest(const struct cn_cost *c, const struct cn_tree *t);

#endif
