/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/cc.h"

#include "proto/serial.h"

#define CWND_LEAST 2u

void cn_cc_init(struct cn_cc *c, uint32_t initial_cwnd, uint32_t send_window, uint32_t seq)
{
	c->cwnd = initial_cwnd < send_window ? initial_cwnd : send_window;
	c->ssthresh = send_window;
	c->cwnd_count = 0;
	c->recover = seq;
}

static void grow(struct cn_cc *c, uint32_t acked, uint32_t in_flight, uint32_t send_window)
{
	if (c->cwnd < c->ssthresh) { /* slow start: doubles per round trip */
		if (2 * in_flight >= c->cwnd) {
			c->cwnd += acked < c->ssthresh - c->cwnd ? acked : c->ssthresh - c->cwnd;
		}
		return;
	}
	c->cwnd_count += acked; /* congestion avoidance: one frame per window */
	if (c->cwnd_count >= c->cwnd) {
		c->cwnd_count -= c->cwnd;
		if (c->cwnd < send_window) {
			c->cwnd++;
		}
	}
}

void cn_cc_acked(struct cn_cc *c, uint32_t acked, uint32_t ack, uint32_t in_flight,
		 uint32_t send_window)
{
	if (cn_serial_before(c->recover, ack)) {
		c->recover = ack; /* not ahead again after 2^31 frames without a loss */
	}
	grow(c, acked, in_flight, send_window);
}

static uint32_t decreased(const struct cn_cc *c, uint32_t in_flight)
{
	uint32_t cwnd = c->cwnd / 2 < 8 ? c->cwnd / 2 : 8;

	cwnd = in_flight / 2 > cwnd ? in_flight / 2 : cwnd;
	return cwnd > CWND_LEAST ? cwnd : CWND_LEAST;
}

void cn_cc_loss(struct cn_cc *c, uint32_t una, uint32_t end)
{
	if (cn_serial_before(una, c->recover)) {
		return; /* same window of data as the last loss */
	}
	c->cwnd = c->ssthresh = decreased(c, end - una);
	c->cwnd_count = 0;
	c->recover = end;
}

void cn_cc_timeout(struct cn_cc *c, uint32_t una, uint32_t end)
{
	c->ssthresh = decreased(c, end - una);
	c->cwnd = CWND_LEAST;
	c->cwnd_count = 0;
	c->recover = end;
}
