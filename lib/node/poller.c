/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One poll receives, expires timers, sends, and makes copies within the node, while the link is
 * busy. Input is processed before timers, so that a process that was not scheduled for a while does
 * not count an acknowledgement in the ring as lost.
 *
 * Frames that the link did not accept form a backlog with copies of their payloads: the transport's
 * pointers are valid only until the next call into it.
 */
#include "node/poller.h"

#include <stdlib.h>
#include <string.h>

#include "link/super_frame.h"
#include "proto/wire.h"

#define BATCH	   (2 * CN_SUPER_FRAME_MAX)
#define RETRY	   (10 * CN_MS) /* event-driven: retry interval of a full link without an event */
#define SPIN_POLLS 32		/* polls of the link, of a caller that spins: a fraction of 1 us */
#define INPUT_MAX  1024		/* frames per poll, so that sending is not starved */
#define BULK	   4		/* frames at once: more may follow that share one ACK */
#define FULL_MAX   8		/* polls in a row with INPUT_MAX frames before timers expire */

struct cn_poller {
	struct cn_link *link;
	struct cn_engine *engine;
	struct cn_frame out[BATCH];
	uint32_t backlog, backlog_at; /* out[backlog_at .. backlog) wait for the link */
	uint8_t *copies;	      /* [BATCH][payload] of the backlog */
	size_t payload;
	uint32_t full; /* polls in a row with INPUT_MAX frames */
	bool drained;  /* the last poll sent all of the engine's frames */
	bool more;     /* the last poll ended after a burst */
	bool event_driven, bursts;
	cn_time retry_at; /* if event_driven: when to retry a full link */
	uint8_t from[6];  /* the sender of the last long super-frame */
};

int cn_poller_new(struct cn_link *l, struct cn_engine *e, struct cn_poller **out,
		  struct cn_err *err)
{
	struct cn_poller *p = calloc(1, sizeof(*p));

	if (p != NULL) {
		p->payload = cn_node_payload(cn_engine_node(e));
		p->copies = malloc(BATCH * p->payload);
	}
	if (p == NULL || p->copies == NULL) {
		free(p);
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for the poller");
	}
	p->link = l;
	p->engine = e;
	cn_link_set_place(l, cn_engine_place, e);
	*out = p;
	return COLLNET_OK;
}

void cn_poller_free(struct cn_poller *p)
{
	if (p != NULL) {
		cn_link_set_place(p->link, NULL, NULL);
		free(p->copies);
		free(p);
	}
}

/*
 * True if these frames are a long super-frame that ends with an ACK request, after another one of
 * the same node. The ACK is sent before the next input, because the sender waits for it. Where
 * several nodes send alternately, one batch of ACKs costs less.
 */
static bool is_ack_urgent(struct cn_poller *p, const struct cn_rx_frame *in, size_t n)
{
	bool again;

	if (n < CN_SUPER_FRAME_LEAST) {
		return false;
	}
	again = memcmp(p->from, in[0].ether + 6, sizeof(p->from)) == 0;
	memcpy(p->from, in[0].ether + 6, sizeof(p->from));
	return again && cn_wire_requests_ack(in[n - 1].data, in[n - 1].len);
}

static uint32_t receive(struct cn_poller *p, cn_time now)
{
	struct cn_rx_frame in[BATCH];
	uint32_t total = 0;
	bool urgent;
	size_t n;

	do {
		n = cn_link_recv(p->link, in, BATCH);
		urgent = is_ack_urgent(p, in, n);
		for (size_t i = 0; i < n; i++) {
			cn_engine_input(p->engine, now, &in[i]);
		}
		if (n > 0) {
			cn_link_release(p->link);
		}
		total += (uint32_t)n;
	} while (n >= BULK && !urgent && total < INPUT_MAX);
	return total;
}

/* Frames per poll, if it has a limit. */
static uint32_t limit_of(const struct cn_poller *p)
{
	const uint32_t burst = cn_engine_burst(p->engine);

	return p->bursts && burst < CN_SUPER_FRAME_MAX ? burst : UINT32_MAX;
}

/* Copies the payloads of frames that the link did not accept. */
static void save_backlog(struct cn_poller *p, uint32_t from, uint32_t n)
{
	p->backlog_at = from;
	p->backlog = n;
	for (uint32_t i = from; i < n; i++) {
		uint8_t *copy = p->copies + i * p->payload;

		if (p->out[i].payload_len > 0) {
			memcpy(copy, p->out[i].payload, p->out[i].payload_len);
			p->out[i].payload = copy;
		}
	}
}

static int transmit(struct cn_poller *p, cn_time now)
{
	const uint32_t limit = limit_of(p), batch = limit < BATCH ? limit : BATCH;
	uint32_t partial = 0; /* frames in out whose super-frame is not complete */
	int total = 0, gone = 0;

	p->more = false;
	if (p->backlog > 0 && p->event_driven && now < p->retry_at) {
		return 0;
	}
	do {
		const bool fresh = p->backlog == 0;
		uint32_t n = fresh ? partial : p->backlog, from = p->backlog_at, end;
		int taken;

		while (fresh && n < batch && cn_engine_output(p->engine, now, &p->out[n])) {
			n++;
		}
		if (n == from) {
			return gone < 0 ? gone : total;
		}
		/* Frames of a super-frame that the batch would split are sent with the next
		 * batch. */
		end = fresh && n == BATCH ? (uint32_t)cn_super_frame_whole(p->out, n) : n;
		taken = cn_link_send(p->link, p->out + from, end - from);
		if (taken < 0) {
			/* Lost, as on a broken cable: the transport continues. */
			gone = taken;
			taken = (int)(end - from);
		}
		total += taken;
		from += (uint32_t)taken;
		if (from < end) {
			p->retry_at = now + RETRY;
			if (fresh) {
				save_backlog(p, from, n);
			} else {
				p->backlog_at = from;
			}
			return gone < 0 ? gone : total;
		}
		partial = n - end;
		memmove(p->out, p->out + end, partial * sizeof(p->out[0]));
		p->backlog = p->backlog_at = 0;
	} while ((uint32_t)total < limit);
	p->more = true;
	return gone < 0 ? gone : total;
}

/* Receives all available frames, after `in` frames. The link may have more although it returned
 * few: it ends a batch before a super-frame, and skips foreign frames. Returns the total. */
static uint32_t receive_rest(struct cn_poller *p, cn_time now, uint32_t in)
{
	for (uint32_t n = in; n > 0 && in < INPUT_MAX; in += n) {
		n = receive(p, now);
	}
	return in;
}

/* True if timers may expire: all input was received, or it is continuous. */
static bool may_expire(struct cn_poller *p, uint32_t in)
{
	p->full = in < INPUT_MAX ? 0 : p->full + 1;
	return p->full % FULL_MAX == 0;
}

/* The rest of a poll after receiving `in` frames. `again`: the engine was not called since the last
 * poll. */
static int finish_poll(struct cn_poller *p, cn_time now, uint32_t in, bool again)
{
	const bool due = cn_engine_deadline(p->engine) <= now && !cn_engine_has_copies(p->engine);
	bool may;
	int out;

	in = due ? receive_rest(p, now, in) : in;
	may = may_expire(p, in);
	if (due && may) {
		cn_engine_expire(p->engine, now);
	} else if (again && p->drained && in == 0) {
		return 0;
	}
	out = transmit(p, now);
	p->drained = out >= 0 && p->backlog == 0 && !p->more;
	if (out >= 0 && may && cn_engine_has_copies(p->engine)) {
		cn_engine_expire(p->engine, now);
		p->drained = false; /* actions may depend on them */
		out++;
	}
	return out < 0 ? out : out + (int)in;
}

int cn_poller_poll(struct cn_poller *p, cn_time now)
{
	return finish_poll(p, now, receive(p, now), false);
}

int cn_poller_poll_input(struct cn_poller *p, cn_time now)
{
	return finish_poll(p, now, receive(p, now), true);
}

int cn_poller_spin(struct cn_poller *p, cn_time now)
{
	int work = cn_poller_poll(p, now);
	uint32_t in;

	for (int i = 1; i < SPIN_POLLS && work == 0; i++) {
		in = receive(p, now);
		work = in > 0 ? finish_poll(p, now, in, true) : 0;
	}
	return work;
}

void cn_poller_set_event_driven(struct cn_poller *p)
{
	p->event_driven = true;
}

void cn_poller_set_bursts(struct cn_poller *p)
{
	p->bursts = true;
}

bool cn_poller_has_more(const struct cn_poller *p)
{
	return p->more;
}

void cn_poller_writable(struct cn_poller *p)
{
	p->retry_at = 0;
}

bool cn_poller_blocked(const struct cn_poller *p)
{
	return p->backlog > 0;
}

cn_time cn_poller_deadline(const struct cn_poller *p)
{
	cn_time at = cn_engine_deadline(p->engine);

	return p->backlog > 0 && p->event_driven ? cn_min_time(at, p->retry_at) : at;
}
