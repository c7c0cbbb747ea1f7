/* SPDX-License-Identifier: BSD-2-Clause */
/* What upcalls and effects look like as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pair.h"

const char pair_names[] = "abcd";

void pair_log(struct pair *p, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(p->log + p->log_len, PAIR_LOG - p->log_len, fmt, ap);
	va_end(ap);
	if (n > 0) {
		p->log_len += (size_t)n;
		if (p->log_len >= PAIR_LOG) {
			p->log_len = PAIR_LOG - 1;
		}
	}
}

void pair_log_clear(struct pair *p)
{
	p->log_len = 0;
	p->log[0] = '\0';
}

void pair_trace(struct pair *p)
{
	p->tracing = true;
	p->trace_len = 0;
	p->trace[0] = '\0';
	for (uint32_t a = 0; a < p->count; a++) {
		for (uint32_t b = 0; b < p->count; b++) {
			const struct cn_peer *peer = a != b ? pair_peer(p, a, b) : NULL;

			p->trace_first[a][b] = peer != NULL ? peer->tx.queue.end : 0;
			p->trace_next[a][b] = p->trace_first[a][b];
		}
	}
}

void pair_assert_trace(struct pair *p, const char *effects)
{
	assert_string_equal(p->trace, effects);
	p->trace_len = 0;
	p->trace[0] = '\0';
}

static void trace_add(struct pair *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void trace_add(struct pair *p, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(p->trace + p->trace_len, PAIR_LOG - p->trace_len, fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && p->trace_len + (size_t)n < PAIR_LOG);
	p->trace_len += (size_t)n;
}

void pair_trace_frame(struct pair *p, uint32_t from, const uint8_t *f, size_t len)
{
	uint32_t to = f[5] - 1u, number;
	struct cn_wire w;

	assert_int_equal(cn_wire_get(f + CN_ETH_HEADER, len - CN_ETH_HEADER, &w), CN_WIRE_OK);
	if (w.type == CN_TYPE_HELLO && (w.flags & CN_FLAG_UNICAST) == 0) {
		return;
	}
	trace_add(p, "%s%c: ", p->trace_len > 0 ? "; " : "", pair_names[from]);
	if (w.type == CN_TYPE_HELLO) {
		trace_add(p, (w.flags & CN_FLAG_BYE) != 0 ? "BYE" : "HELLO");
		return;
	}
	assert_true(to < p->count);
	if (w.type != CN_TYPE_ACK) {
		number = w.seq - p->trace_first[from][to];
		if (number < p->trace_next[from][to] - p->trace_first[from][to]) {
			trace_add(p, "RESEND %u", number);
		} else {
			trace_add(p, "DATA %u", number);
			p->trace_next[from][to] = w.seq + 1;
		}
	} else {
		number = w.ack - p->trace_first[to][from];
		trace_add(p, "%s %u",
			  (w.flags & CN_FLAG_RNR) != 0	   ? "RNR"
			  : (w.flags & CN_FLAG_NAK) != 0   ? "NAK"
			  : (w.flags & CN_FLAG_RESET) != 0 ? "RESET"
							   : "ACK",
			  number);
		if ((w.flags & CN_FLAG_NAK) != 0 && (w.stream & CN_SACK_VALID) != 0) {
			trace_add(p, " SACK 0x%x", w.stream & CN_SACK_BITMAP);
		}
	}
	if ((w.flags & CN_FLAG_ACKREQ) != 0) {
		trace_add(p, " ACKREQ");
	}
}
