/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tail-loss probes (TLP), RFC 8985 section 7, sent by the receiver.
 *
 * When the last frames of a stream are lost, no later frame shows it. A receiver that waits for
 * data of a peer, while no data has come from anyone for the probe timeout (PTO), sends that peer
 * an acknowledgement that requests one. The number of each tells the other side what was sent
 * before it (cn_receiver_announced()). So a lost tail, of either, is found much earlier than by the
 * sender's retransmission timeout, which must allow for delayed acknowledgements.
 */
#ifndef CN_TLP_H
#define CN_TLP_H

#include "util/heap.h"

struct cn_node;
struct cn_peer;

/* Per peer. */
struct cn_tlp {
	cn_time at; /* the next probe; CN_NEVER: nobody waits for data, or data comes from others */
	cn_time wait; /* until it; doubles while nothing comes */
};

/* Per node: how long no data has come from anyone. */
struct cn_idle {
	struct cn_timer timer; /* set while a peer is waited for that has no timer of its own */
	cn_time last_data;     /* when the last reliable frame was accepted */
	cn_time interval;      /* mean time between two of them, idle times not counted */
};

/* The probe timeout. On slow links eight inter-arrival times, for queues are some frames long. */
cn_time cn_node_pto(const struct cn_node *n);
void cn_tlp_data_received(struct cn_node *n); /* a reliable frame was accepted */
void cn_tlp_expire(struct cn_peer *p);	      /* tlp.at has come */
void cn_tlp_idle_timeout(struct cn_node *n);  /* the timer of struct cn_idle has expired */
/* A peer without a timer is waited for: the node may be idle then, unless it is to be seen before.
 */
void cn_tlp_await_idle(struct cn_node *n, cn_time at);

#endif
