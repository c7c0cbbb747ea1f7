/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One turn moves everything one way, then the other. Input comes before timers, so that a process
 * that was not scheduled for a while does not take an acknowledgement that lies in the ring for a
 * lost one.
 *
 * Frames that the link would not take are kept with copies of their payloads: the transport's
 * pointers are good only until the next call into it.
 */
#include <stdlib.h>
#include <string.h>

#include "link/driver.h"

#define BATCH	  32
#define RETRY	  (10 * CN_MS) /* until a full link is tried again by a patient driver, unasked */
#define INPUT_MAX 1024	       /* frames a turn, so that sending gets its turn too */

struct cn_driver {
	struct cn_link *link;
	struct cn_engine *engine;
	struct cn_frame out[BATCH];
	uint32_t kept, kept_at; /* out[kept_at .. kept) wait for the link */
	uint8_t *copies;	/* [BATCH][payload] of kept frames */
	size_t payload;
	bool patient;
	cn_time retry_at; /* if patient: when to try a full link again */
};

int cn_driver_new(struct cn_link *l, struct cn_engine *e, struct cn_driver **out,
		  struct cn_err *err)
{
	struct cn_driver *d = calloc(1, sizeof(*d));

	if (d != NULL) {
		d->payload = cn_node_payload(cn_engine_node(e));
		d->copies = malloc(BATCH * d->payload);
	}
	if (d == NULL || d->copies == NULL) {
		free(d);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the driver");
	}
	d->link = l;
	d->engine = e;
	*out = d;
	return COLLNET_OK;
}

void cn_driver_free(struct cn_driver *d)
{
	if (d != NULL) {
		free(d->copies);
		free(d);
	}
}

static uint32_t receive(struct cn_driver *d, cn_time now)
{
	struct cn_rx_frame in[BATCH];
	uint32_t total = 0;
	size_t n;

	do {
		n = cn_link_recv(d->link, in, BATCH);
		for (size_t i = 0; i < n; i++) {
			cn_engine_input(d->engine, now, in[i].data, in[i].len);
		}
		if (n > 0) {
			cn_link_release(d->link);
		}
		total += (uint32_t)n;
	} while (n == BATCH && total < INPUT_MAX);
	return total;
}

/* What the link did not take keeps its payload by itself. */
static void keep(struct cn_driver *d, uint32_t from, uint32_t n)
{
	d->kept_at = from;
	d->kept = n;
	for (uint32_t i = from; i < n; i++) {
		uint8_t *copy = d->copies + i * d->payload;

		if (d->out[i].payload_len > 0) {
			memcpy(copy, d->out[i].payload, d->out[i].payload_len);
			d->out[i].payload = copy;
		}
	}
}

static int transmit(struct cn_driver *d, cn_time now)
{
	int total = 0, gone = 0;

	if (d->kept > 0 && d->patient && now < d->retry_at) {
		return 0;
	}
	for (;;) {
		uint32_t n = d->kept, from = d->kept_at;
		bool fresh = n == 0;
		int taken;

		while (fresh && n < BATCH && cn_engine_output(d->engine, now, &d->out[n])) {
			n++;
		}
		if (n == from) {
			return gone < 0 ? gone : total;
		}
		taken = cn_link_send(d->link, d->out + from, n - from);
		if (taken < 0) {
			/* Lost, as on a cable that is cut: the transport is not held up. */
			gone = taken;
			taken = (int)(n - from);
		}
		total += taken;
		from += (uint32_t)taken;
		if (from < n) {
			d->retry_at = now + RETRY;
			if (fresh) {
				keep(d, from, n);
			} else {
				d->kept_at = from;
			}
			return gone < 0 ? gone : total;
		}
		d->kept = d->kept_at = 0;
	}
}

int cn_driver_turn(struct cn_driver *d, cn_time now)
{
	uint32_t in = receive(d, now);
	int out;

	if (in < INPUT_MAX && cn_engine_deadline(d->engine) <= now) {
		cn_engine_expire(d->engine, now);
	}
	out = transmit(d, now);
	return out < 0 ? out : out + (int)in;
}

void cn_driver_be_patient(struct cn_driver *d)
{
	d->patient = true;
}

void cn_driver_writable(struct cn_driver *d)
{
	d->retry_at = 0;
}

bool cn_driver_blocked(const struct cn_driver *d)
{
	return d->kept > 0;
}

cn_time cn_driver_deadline(const struct cn_driver *d)
{
	cn_time at = cn_engine_deadline(d->engine);

	return d->kept > 0 && d->patient ? cn_min_time(at, d->retry_at) : at;
}
