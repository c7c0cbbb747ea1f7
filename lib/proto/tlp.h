/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tail-loss probes (TLP), RFC 8985 section 7, sent by the receiver.
 *
 * When the last frames of a stream are lost, no later frame reveals it. A receiver that waits for a
 * peer's data, while no data has arrived from any peer for the probe timeout (PTO), sends that peer
 * an acknowledgement that requests one. The sequence number of each tells the other end what was
 * sent before it (cn_receiver_announced()). So a lost tail in either direction is detected much
 * earlier than by the sender's retransmission timeout, which must allow for delayed
 * acknowledgements.
 */
#ifndef CN_TLP_H
#define CN_TLP_H

#include "util/heap.h"

struct cn_node;
struct cn_peer;

/* Per peer. */
struct cn_tlp {
	cn_time at; /* next probe; CN_NEVER: nothing waits for data, or data arrives from others */
	cn_time wait; /* probe interval; doubles while nothing arrives */
};

/* Per node: how long no data has arrived from any peer. */
struct cn_idle {
	struct cn_timer timer; /* set while something waits for a peer without a timer of its own */
	cn_time last_data;     /* when the last reliable frame was accepted */
	cn_time interval;      /* mean inter-arrival time, without idle times */
};

/* The probe timeout: on slow links eight inter-arrival times, as queues are some frames long. */
cn_time cn_node_pto(const struct cn_node *n);
void cn_tlp_data_received(struct cn_node *n); /* a reliable frame was accepted */
void cn_tlp_expire(struct cn_peer *p);	      /* tlp.at has passed */
void cn_tlp_idle_timeout(struct cn_node *n);  /* the timer of struct cn_idle has expired */
/* Something waits for a peer without a timer: starts the node's idle timer, which expires at `at`,
 * unless it runs. */
void cn_tlp_await_idle(struct cn_node *n, cn_time at);

#endif
