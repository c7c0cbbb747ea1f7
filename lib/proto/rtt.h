/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round-trip estimator and retransmission timeout, RFC 6298, without its floor of one second:
 * the floor is the cluster's (rto_min), and the receiver's longest delay of an acknowledgement
 * is added, as in QUIC, so that a delayed acknowledgement is never mistaken for a loss.
 */
#ifndef CN_RTT_H
#define CN_RTT_H

#include "util/util.h"

struct cn_rtt {
	cn_time srtt, rttvar; /* srtt 0: no sample yet */
	cn_time least;	      /* smallest sample (min_RTT): the path without queues */
};

/* Adds a sample of a frame sent only once (Karn). */
void cn_rtt_sample(struct cn_rtt *r, cn_time rtt);
/* The timeout without backoff. */
cn_time cn_rtt_timeout(const struct cn_rtt *r, cn_time first, cn_time min, cn_time ack_delay);

#endif
