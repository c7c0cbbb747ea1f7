/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated network without nodes: all hosts are down, the test puts frames on their cards and
 * reads the trace. A frame that arrives at a host is recorded as dropped there.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "tools/sim/core/parts.h"

#define EVERYBODY NOBODY
#define MBIT	  UINT64_C(1000000)
#define FULL	  1514u
#define SMALL	  60u
#define T	  123040u /* of a full frame at 100 Mbit/s */
enum { A, B, C, D };	  /* hosts a to d */

struct sim_net_record {
	enum cn_sim_record_kind kind;
	cn_time at, until; /* since the beginning */
	uint32_t link, end, tag;
	size_t len;
};

struct sim_net {
	struct cn_sim *sim;
	struct cn_topo *topo;
	struct sim_net_record *records;
	size_t nrecords, cap;
};

/* Of a topology file's text; change: may change the configuration, which has no latency, no delay
 * and 100 Mbit/s. */
struct sim_net *sim_net(const char *text, void (*change)(struct cn_sim_config *c));
void sim_net_end(struct sim_net *n);

/* One switch of four hosts, with buffers of five frames per port. */
extern const char sim_net_one_switch[];
/* Changes: 500 ns per link and 2,000 ns per switch; and cut-through. */
void sim_net_delays(struct cn_sim_config *c);
void sim_net_cut_through(struct cn_sim_config *c);

/* A frame of `len` bytes with a tag, from host to host (numbers), on the card at that time. */
void sim_net_send(struct sim_net *n, cn_time at, uint32_t from, uint32_t to, uint32_t len,
		  uint32_t tag);
/* All that happens. */
void sim_net_run(struct sim_net *n);
void sim_net_run_until(struct sim_net *n, cn_time until);

/* How many records of a frame with the tag there are from vertex `a` to `b`; time of the first. */
uint32_t sim_net_count(const struct sim_net *n, enum cn_sim_record_kind kind, const char *a,
		       const char *b, uint32_t tag);
cn_time sim_net_when(const struct sim_net *n, enum cn_sim_record_kind kind, const char *a,
		     const char *b, uint32_t tag);
/* When it arrived at the host `b`, from the switch `a`. */
cn_time sim_net_arrival(const struct sim_net *n, const char *a, const char *b, uint32_t tag);
/* The port of `a` towards `b`. */
struct cn_sim_port sim_net_port(const struct sim_net *n, const char *a, const char *b);
uint32_t sim_net_link(const struct sim_net *n, const char *a, const char *b, uint32_t *end);
/* Nanoseconds of a frame on the wire. */
cn_time sim_net_wire(uint32_t len, uint64_t rate);

#endif
