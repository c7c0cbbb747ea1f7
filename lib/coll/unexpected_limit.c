/* SPDX-License-Identifier: BSD-2-Clause */
/* The counts of unexpected messages between two nodes; see unexpected_limit.h. */
#include "coll/unexpected_limit.h"

static bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

bool cn_unexpected_limit_allows(const struct cn_unexpected_limit *n, uint32_t seq, uint32_t limit)
{
	if (before(seq, n->started)) {
		return true;
	}
	return seq - n->started < CN_UNEXPECTED_APART &&
	       (n->nsent == 0 || (n->nsent < limit && seq - n->sent_first < CN_UNEXPECTED_OPS));
}

void cn_unexpected_limit_sent(struct cn_unexpected_limit *n, uint32_t seq)
{
	if (!before(seq, n->started)) {
		if (n->nsent++ == 0) {
			n->sent_first = seq;
		}
		n->sent[seq % CN_UNEXPECTED_OPS]++;
	}
	if (!before(seq, n->notified)) {
		n->notified = seq + 1;
		if (n->nreceived > 0 && !before(seq, n->received_last)) {
			n->nreceived = 0;
		}
	}
}

void cn_unexpected_limit_started(struct cn_unexpected_limit *n, uint32_t started)
{
	if (!before(n->started, started)) {
		return;
	}
	n->started = started;
	while (n->nsent > 0 && before(n->sent_first, started)) {
		uint8_t *sent = &n->sent[n->sent_first++ % CN_UNEXPECTED_OPS];

		n->nsent -= *sent;
		*sent = 0;
	}
	while (n->nsent > 0 && n->sent[n->sent_first % CN_UNEXPECTED_OPS] == 0) {
		n->sent_first++;
	}
}

bool cn_unexpected_limit_received(struct cn_unexpected_limit *n, uint32_t seq, uint32_t last,
				  uint32_t after)
{
	cn_unexpected_limit_started(n, seq + 1);
	if (before(seq, n->notified)) {
		return false;
	}
	if (n->nreceived++ == 0) {
		n->received_first = seq;
	}
	n->received_last = seq;
	return cn_unexpected_limit_due(n, last, after);
}

bool cn_unexpected_limit_due(const struct cn_unexpected_limit *n, uint32_t last, uint32_t after)
{
	return n->nreceived >= after ||
	       (n->nreceived > 0 && last - n->received_first >= CN_UNEXPECTED_OPS / 2);
}

bool cn_unexpected_limit_stale(const struct cn_unexpected_limit *n, uint32_t nstarted)
{
	return nstarted - n->notified >= CN_UNEXPECTED_RENEW;
}

void cn_unexpected_limit_notified(struct cn_unexpected_limit *n, uint32_t nstarted)
{
	n->notified = nstarted;
	n->nreceived = 0;
}
