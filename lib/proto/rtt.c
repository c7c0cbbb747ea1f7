/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/rtt.h"

void cn_rtt_sample(struct cn_rtt *r, cn_time rtt)
{
	cn_time delta;

	if (rtt == 0) {
		rtt = 1; /* 0 means "no sample" */
	}
	if (r->srtt == 0 || rtt < r->least) {
		r->least = rtt;
	}
	if (r->srtt == 0) {
		r->srtt = rtt;
		r->rttvar = rtt / 2;
		return;
	}
	delta = rtt > r->srtt ? rtt - r->srtt : r->srtt - rtt;
	r->rttvar = r->rttvar - r->rttvar / 4 + delta / 4;
	r->srtt = r->srtt - r->srtt / 8 + rtt / 8;
	if (r->srtt == 0) {
		r->srtt = 1;
	}
}

cn_time cn_rtt_timeout(const struct cn_rtt *r, cn_time first, cn_time min, cn_time ack_delay)
{
	cn_time t;

	if (r->srtt == 0) {
		return first;
	}
	t = r->srtt + 4 * r->rttvar;
	return (t < min ? min : t) + ack_delay;
}
