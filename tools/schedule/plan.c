/* SPDX-License-Identifier: BSD-2-Clause */
/* What is scheduled: a team of one rank per host on a network, and its plan. */
#include <stdlib.h>
#include <string.h>

#include "tools/schedule/command.h"
#include "util/ascending.h"

int subject_init(struct subject *s, const struct cn_topo *topo, const uint32_t *hosts, uint32_t n,
		 struct cn_err *err)
{
	uint32_t *sorted, *identity, *first, *logical;
	int rc;

	memset(s, 0, sizeof(*s));
	s->topo = topo;
	if (n < 2) {
		return cn_fail(err, COLLNET_EINVAL,
			       "a team of %s has no peer: specify "
			       "two hosts or more",
			       n == 0 ? "no host" : "one host");
	}
	if (n > COLLNET_RANKS_MAX) {
		return cn_fail(err, COLLNET_EINVAL,
			       "%u hosts exceed the size of a team, %u; "
			       "select some with collnet schedule --hosts",
			       n, COLLNET_RANKS_MAX);
	}
	s->numbers = calloc((size_t)n * 4 + 1, sizeof(*s->numbers));
	if (s->numbers == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a team of %u hosts", n);
	}
	sorted = s->numbers;
	identity = s->numbers + n;
	first = s->numbers + 2 * (size_t)n;
	logical = s->numbers + 3 * (size_t)n + 1;
	memcpy(sorted, hosts, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), cn_ascending_u32);
	for (uint32_t i = 0; i <= n; i++) {
		first[i] = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		identity[i] = i;
	}
	rc = cn_tree_make(topo, sorted, n, CN_TOPO_NONE, &s->tree, err);
	rc = rc == COLLNET_OK ? cn_number_nodes(topo, sorted, n, logical, err) : rc;
	s->layout = (struct cn_layout){ .nranks = n,
					.nnodes = n,
					.node_of = identity,
					.first = first,
					.ranks = identity,
					.logical = logical,
					.tree = s->tree };
	s->plan.contention_aware = 1;
	return rc;
}

void subject_done(struct subject *s)
{
	cn_tree_free(s->tree);
	free(s->numbers);
	s->tree = NULL;
	s->numbers = NULL;
}

int subject_find(const struct subject *s, const char *name, uint32_t *node, struct cn_err *err)
{
	uint32_t v = cn_topo_find(s->topo, name);

	if (v == CN_TOPO_NONE) {
		return cn_fail(err, COLLNET_EINVAL, "the network has no host %.63s", name);
	}
	for (uint32_t i = 0; i < s->layout.nnodes; i++) {
		if (s->tree->v[s->tree->host[i]].vertex == v) {
			*node = i;
			return COLLNET_OK;
		}
	}
	return cn_fail(err, COLLNET_EINVAL, "%.63s is %s", name,
		       s->topo->vertices[v].is_switch ? "a switch, not a host"
						      : "not one of the team's hosts");
}

int subject_plan_all(const struct subject *s, struct cn_sched *parts, struct cn_err *err)
{
	for (uint32_t b = 0; b < s->layout.nnodes; b++) {
		int rc = cn_sched_plan(&s->layout, &s->plan, b, &parts[b], err);

		if (rc != COLLNET_OK) {
			return rc;
		}
	}
	return COLLNET_OK;
}

void subject_free_parts(const struct subject *s, struct cn_sched *parts)
{
	for (uint32_t b = 0; parts != NULL && b < s->layout.nnodes; b++) {
		cn_sched_reset(&parts[b]);
	}
	free(parts);
}

int subject_check(const struct subject *s, const struct cn_sched *parts, unsigned guarantees,
		  struct cn_check_report *report, bool *checked, struct cn_err *err)
{
	struct cn_sched mine = { 0 };
	struct cn_check *c = NULL;
	int rc = cn_check_new(&s->layout, &s->plan, &c, err);

	*checked = false;
	memset(report, 0, sizeof(*report));
	for (uint32_t b = 0; rc == COLLNET_OK && b < s->layout.nnodes; b++) {
		if (parts == NULL) {
			rc = cn_sched_plan(&s->layout, &s->plan, b, &mine, err);
		}
		rc = rc == COLLNET_OK ? cn_check_add(c, b, parts != NULL ? &parts[b] : &mine, err)
				      : rc;
	}
	if (rc == COLLNET_OK) {
		rc = cn_check_run(c, guarantees, report, err);
		*checked = true;
	}
	cn_check_free(c);
	cn_sched_reset(&mine);
	return rc;
}
