/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The oracle of errors: a call fails only where the fault profile allows it, and its error names a
 * node, link or rank that had a fault.
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/bits.h"

uint32_t oracle_host_named(const struct fixture *fx, const char *text, const char *after)
{
	const struct cn_topo *t = fx->s->topo;
	const char *at = strstr(text, after);
	size_t n;

	if (at == NULL) {
		return UINT32_MAX;
	}
	at += strlen(after);
	n = strcspn(at, " ,:;)");
	for (uint32_t i = 0; i < t->nhosts; i++) {
		const char *name = t->vertices[t->hosts[i]].name;

		if (strlen(name) == n && memcmp(name, at, n) == 0) {
			return i;
		}
	}
	return UINT32_MAX;
}

/* Whether host is on the far side of the link, seen from the root. */
static bool beyond(const struct cn_topo *t, uint32_t host, uint32_t link)
{
	for (uint32_t v = t->hosts[host]; v != t->root; v = t->vertices[v].parent) {
		if (t->vertices[v].parent_link == link) {
			return true;
		}
	}
	return false;
}

static bool separated(const struct cn_topo *t, uint32_t a, uint32_t b, uint32_t link)
{
	return link == CN_TOPO_NONE || beyond(t, a, link) != beyond(t, b, link);
}

/* A fault explains that `by` received no answer of `named`. */
bool oracle_silence_explained(const struct fixture *fx, uint32_t named, uint32_t by)
{
	for (uint32_t i = 0; i < fx->s->nfaults; i++) {
		const struct fault_plan *f = &fx->s->faults[i];

		switch (f->kind) {
		case FAULT_LINK:
		case FAULT_CUT:
			if (separated(fx->s->topo, named, by, f->link)) {
				return true;
			}
			break;
		case FAULT_PAUSE:
		case FAULT_CRASH:
			if (named == f->host || by == f->host) {
				return true;
			}
			break;
		default:
			break;
		}
	}
	return false;
}

static bool has_fault(const struct fixture *fx, enum fault_kind kind, uint32_t host, uint32_t rank)
{
	for (uint32_t i = 0; i < fx->s->nfaults; i++) {
		const struct fault_plan *f = &fx->s->faults[i];

		if (f->kind == kind && (host == UINT32_MAX || f->host == host) &&
		    (rank == UINT32_MAX || f->rank == rank)) {
			return true;
		}
	}
	return false;
}

/* "node h5 is cut off", "did not hear any of its peers": every other host is separated from it. */
static bool cut_off_explained(const struct fixture *fx, uint32_t named)
{
	for (uint32_t h = 0; h < fx->s->hosts; h++) {
		if (h != named && !oracle_silence_explained(fx, named, h)) {
			return false;
		}
	}
	return named != UINT32_MAX;
}

const char *oracle_check_peer_error(const struct fixture *fx, const char *text)
{
	uint32_t named = oracle_host_named(fx, text, "node "),
		 by = oracle_host_named(fx, text, "answering node ");

	if (strstr(text, "is cut off") != NULL || strstr(text, " did not hear any of ") != NULL) {
		return cut_off_explained(fx, named) ? NULL : "the node was not cut off";
	}
	if (strstr(text, " peers stopped answering: ") != NULL) {
		by = oracle_host_named(fx, text, "seen by node ");
		named = UINT32_MAX; /* the first of the group */
		for (uint32_t h = 0; h < fx->s->hosts && named == UINT32_MAX; h++) {
			const char *name = fx->s->topo->vertices[fx->s->topo->hosts[h]].name;
			const char *list = strstr(text, ": ");

			if (list != NULL && strncmp(list + 2, name, strlen(name)) == 0 &&
			    strchr(",- ", list[2 + strlen(name)]) != NULL) {
				named = h;
			}
		}
	}
	if (named == UINT32_MAX) {
		return "the error names no node";
	}
	if (strstr(text, "stopped answering") != NULL) {
		return by != UINT32_MAX && oracle_silence_explained(fx, named, by)
			       ? NULL
			       : "no fault explains it";
	}
	by = oracle_host_named(fx, text, "gave up node ");
	return has_fault(fx, FAULT_CRASH, named, UINT32_MAX) ||
			       (by != UINT32_MAX && oracle_silence_explained(fx, named, by))
		       ? NULL
		       : "it did not restart or end";
}

static void check_peer(struct fixture *fx, const struct call *c)
{
	const char *wrong = oracle_check_peer_error(fx, c->text);

	if (wrong != NULL) {
		fixture_report(fx, "rank %u, operation %u: %s: %s", c->rank, c->number, wrong,
			       c->text);
	}
}

/* Each rank of a list such as "3, 5-7" did not call, or its data is incomplete. */
static void check_listed(struct fixture *fx, const struct call *c, const char *list, bool calls)
{
	char *at = (char *)(uintptr_t)list;

	while (*at >= '0' && *at <= '9') {
		unsigned long first = strtoul(at, &at, 10), last = first;

		if (*at == '-') {
			last = strtoul(at + 1, &at, 10);
		}
		for (unsigned long r = first; r <= last; r++) {
			bool true_for = r < fx->s->ranks;

			if (true_for && calls) {
				true_for = !fx->calls[c->number * fx->s->ranks + r].posted;
			} else if (true_for && r < 128) {
				true_for = cn_bit(c->missing, r);
			}
			if (!true_for) {
				fixture_report(fx,
					       "rank %u, operation %u: rank %lu is not missing: %s",
					       c->rank, c->number, r, c->text);
				return;
			}
		}
		at += strncmp(at, ", ", 2) == 0 ? 2 : 0;
	}
}

/* A rank receives its own data only: no synchronisations, nothing to forward. */
static bool has_data_only(const struct op_plan *p)
{
	return p->op == CN_OP_ALLTOALL && p->algorithm != NULL &&
	       (strcmp(p->algorithm, "shuffle") == 0 || strcmp(p->algorithm, "pairwise") == 0 ||
		strcmp(p->algorithm, "linear") == 0);
}

static void check_timeout(struct fixture *fx, const struct call *c)
{
	const struct op_plan *p = &fx->ops[c->number];
	uint32_t by = oracle_host_named(fx, c->text, "on node ");
	const char *data = strstr(c->text, "for data of ranks "),
		   *call = strstr(c->text, "call of ranks ");
	char own[40];

	snprintf(own, sizeof(own), "operation %u (%s) ", c->number + 1, cn_op_name(p->op));

	if (c->ended < fx->start + fx->s->deadline) {
		fixture_report(fx, "rank %u, operation %u: too early: %s", c->rank, c->number,
			       c->text);
	}
	if (by != fx->ranks[c->rank].host || strncmp(c->text, own, strlen(own)) != 0) {
		return; /* found at another rank, or in another operation */
	}
	if (call != NULL) {
		check_listed(fx, c, call + strlen("call of ranks "), true);
	} else if (data != NULL && fx->s->local == 1 && p->bytes > 0 && has_data_only(p)) {
		check_listed(fx, c, data + strlen("for data of ranks "), false);
	}
}

static void check_rank(struct fixture *fx, const struct call *c)
{
	const char *at = strstr(c->text, "rank ");
	uint32_t rank = at != NULL ? (uint32_t)strtoul(at + 5, NULL, 10) : UINT32_MAX;

	if (rank == UINT32_MAX || (!has_fault(fx, FAULT_DIE, UINT32_MAX, rank) &&
				   !has_fault(fx, FAULT_LEAVE, UINT32_MAX, rank))) {
		fixture_report(fx, "rank %u, operation %u: that rank did not leave: %s", c->rank,
			       c->number, c->text);
	}
}

void oracle_check_call(struct fixture *fx, const struct call *c)
{
	if (c->status == COLLNET_OK) {
		return;
	}
	if (c->text[0] == '\0') {
		fixture_report(fx, "rank %u, operation %u: error %d without a message", c->rank,
			       c->number, c->status);
		return;
	}
	if (scenario_must_succeed(fx->s) || fx->ops == fx->s->after) {
		fixture_report(fx, "rank %u, operation %u failed: %s", c->rank, c->number, c->text);
		return;
	}
	switch (c->status) {
	case COLLNET_EPEER:
		check_peer(fx, c);
		break;
	case COLLNET_ETIMEOUT:
		check_timeout(fx, c);
		break;
	case COLLNET_ERANK:
		check_rank(fx, c);
		break;
	case COLLNET_EDAEMON:
		if (!fx->crashed[fx->ranks[c->rank].host]) {
			fixture_report(fx, "rank %u, operation %u: its daemon did not end: %s",
				       c->rank, c->number, c->text);
		}
		break;
	default:
		fixture_report(fx, "rank %u, operation %u: error %d: %s", c->rank, c->number,
			       c->status, c->text);
		break;
	}
}
