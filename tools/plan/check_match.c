/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker: whether the messages that one side sends are those that the other side expects. For
 * every receiver, both lists are sorted by sender, without changing the order of a pair, and
 * compared.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/plan/check_parts.h"

/* The first message from a to b that differs: a message. s or r may be NULL: none is left. */
static void mismatch(const struct cn_check *c, uint32_t a, uint32_t b,
		     const struct cn_check_sent *s, const struct cn_check_recv *r,
		     struct cn_err *broken)
{
	uint32_t sent = 0, expected = 0, phase;
	char pair[CN_CHECK_PAIR];

	cn_check_pair(c, a, b, pair);
	for (uint32_t i = 0; i < c->nodes[a].nsent; i++) {
		sent += c->nodes[a].sent[i].to == b;
	}
	for (uint32_t i = 0; i < c->nodes[b].nrecv; i++) {
		expected += c->nodes[b].recv[i].from == a;
	}
	phase = s == NULL || (r != NULL && r->phase < s->phase) ? r->phase : s->phase;
	if (sent != expected) {
		cn_fail(broken, COLLNET_EINVAL,
			"%s: messages sent: %u, expected: %u; they differ from phase %u on", pair,
			sent, expected, phase);
	} else if (s->phase != r->phase) {
		cn_fail(broken, COLLNET_EINVAL, "%s: sent in phase %u, expected in phase %u", pair,
			s->phase, r->phase);
	} else if (s->data != r->data) {
		cn_fail(broken, COLLNET_EINVAL, "%s (phase %u): %s is sent, %s expected", pair,
			s->phase, s->data ? "data" : "a synchronisation",
			r->data ? "data" : "a synchronisation");
	} else if (s->len != r->len) {
		cn_fail(broken, COLLNET_EINVAL, "%s (phase %u): %llu bytes are sent, %llu expected",
			pair, s->phase, (unsigned long long)s->len, (unsigned long long)r->len);
	} else {
		cn_fail(broken, COLLNET_EINVAL,
			"%s (phase %u): the sender means other places than the receiver", pair,
			s->phase);
	}
}

/* Messages by receiver: for each of them by sender, then in the sender's order. */
static uint32_t *sort_by_receiver(const struct cn_check *c, uint32_t *start)
{
	uint32_t n = c->l->nnodes, *sorted = malloc((c->nsent + 1) * sizeof(*sorted));

	if (sorted == NULL) {
		return NULL;
	}
	memset(start, 0, (n + 1) * sizeof(*start));
	for (uint32_t a = 0; a < n; a++) {
		for (uint32_t i = 0; i < c->nodes[a].nsent; i++) {
			start[c->nodes[a].sent[i].to + 1]++;
		}
	}
	for (uint32_t b = 0; b < n; b++) {
		start[b + 1] += start[b];
	}
	for (uint32_t a = 0; a < n; a++) {
		for (uint32_t i = 0; i < c->nodes[a].nsent; i++) {
			sorted[start[c->nodes[a].sent[i].to]++] = c->base[a] + i;
		}
	}
	memmove(start + 1, start, n * sizeof(*start));
	start[0] = 0;
	return sorted;
}

/* A node's receives by sender, in its order. */
static void sort_by_sender(struct cn_check *c, uint32_t b, uint32_t *sorted)
{
	const struct cn_check_node *n = &c->nodes[b];
	uint32_t sum = 0;

	memset(c->counts, 0, c->l->nnodes * sizeof(*c->counts));
	for (uint32_t i = 0; i < n->nrecv; i++) {
		c->counts[n->recv[i].from]++;
	}
	for (uint32_t a = 0; a < c->l->nnodes; a++) {
		uint32_t count = c->counts[a];

		c->counts[a] = sum;
		sum += count;
	}
	for (uint32_t i = 0; i < n->nrecv; i++) {
		sorted[c->counts[n->recv[i].from]++] = i;
	}
}

/* False: they do not match; `broken` is the difference. */
static bool match_node(struct cn_check *c, uint32_t b, const uint32_t *incoming, uint32_t count,
		       const uint32_t *sorted, struct cn_err *broken)
{
	struct cn_check_node *n = &c->nodes[b];
	uint32_t i = 0, j = 0, a = 0;

	while (i < count || j < n->nrecv) {
		struct cn_check_recv *r = j < n->nrecv ? &n->recv[sorted[j]] : NULL;
		struct cn_check_sent *s = NULL;

		if (i < count) {
			while (c->base[a + 1] <= incoming[i]) {
				a++;
			}
			s = &c->nodes[a].sent[incoming[i] - c->base[a]];
		}
		if (s == NULL || (r != NULL && r->from < a)) {
			mismatch(c, r->from, b, NULL, r, broken);
			return false;
		}
		if (r == NULL || r->from > a) {
			mismatch(c, a, b, s, NULL, broken);
			return false;
		}
		if (s->hash != r->hash || s->len != r->len || s->phase != r->phase ||
		    s->data != r->data) {
			mismatch(c, a, b, s, r, broken);
			return false;
		}
		c->match[c->rbase[b] + sorted[j]] = incoming[i];
		s->before = r->before;
		s->after = r->after;
		i++;
		j++;
	}
	return true;
}

int cn_check_match(struct cn_check *c, struct cn_err *broken, struct cn_err *err)
{
	uint32_t n = c->l->nnodes, most = 0, *start, *incoming = NULL, *sorted = NULL;

	for (uint32_t b = 0; b < n; b++) {
		most = c->nodes[b].nrecv > most ? c->nodes[b].nrecv : most;
	}
	start = malloc((n + 1) * sizeof(*start));
	sorted = malloc((most + 1) * sizeof(*sorted));
	c->match = malloc((c->nrecv + 1) * sizeof(*c->match));
	if (start != NULL) {
		incoming = sort_by_receiver(c, start);
	}
	if (incoming == NULL || sorted == NULL || c->match == NULL) {
		free(start);
		free(sorted);
		free(incoming);
		return cn_fail(err, COLLNET_ENOMEM, "no memory to match %llu messages",
			       (unsigned long long)c->nsent);
	}
	for (uint32_t b = 0; b < n; b++) {
		sort_by_sender(c, b, sorted);
		if (!match_node(c, b, incoming + start[b], start[b + 1] - start[b], sorted,
				broken)) {
			break;
		}
	}
	free(start);
	free(sorted);
	free(incoming);
	return COLLNET_OK;
}
