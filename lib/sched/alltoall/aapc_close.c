/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The synchronisations that close an operation, so that the next one does not begin on links that
 * this one still uses (see aapc.h).
 *
 * Whatever is left out must be known to the one who would be told, at the latest when all has come
 * to it. It knows of its own messages and of those that come to it, and so of every earlier message
 * that shares a link with one of these; and of what it is told of, and what came before that.
 * Leaving out looks only at later messages, so nothing is left out in a circle.
 */
#include <stdlib.h>

#include "sched/alltoall/aapc.h"

#define NONE CN_TOPO_NONE

/* For whom the next operation begins, who must tell, latest message first. */
static int compare(const void *x, const void *y)
{
	const struct cn_aapc_closing *a = x, *b = y;

	if (a->to != b->to) {
		return a->to < b->to ? -1 : 1;
	}
	if (a->last.from != b->last.from) {
		return a->last.from < b->last.from ? -1 : 1;
	}
	return a->last.phase > b->last.phase ? -1 : a->last.phase < b->last.phase;
}

/* The last user of every directed link and who is its first; of a pair only the latest message. */
static uint32_t all_pairs(const struct cn_aapc *a, struct cn_aapc_closing *list)
{
	uint32_t n = 0, kept = 0;

	for (uint32_t dlink = 2; dlink < 2 * a->tree->n; dlink++) {
		struct cn_aapc_message first, last;

		if (cn_aapc_user(a, dlink, NONE, false, CN_AAPC_ANY, &first) &&
		    cn_aapc_user(a, dlink, a->phases, true, CN_AAPC_ANY, &last)) {
			list[n++] = (struct cn_aapc_closing){ last, first.from };
		}
	}
	qsort(list, n, sizeof(*list), compare);
	for (uint32_t i = 0; i < n; i++) {
		if (kept == 0 || list[kept - 1].to != list[i].to ||
		    list[kept - 1].last.from != list[i].last.from) {
			list[kept++] = list[i];
		}
	}
	return kept;
}

/*
 * True if list[i].to knows of that message anyway; list[first] .. list[end - 1] are all messages
 * whose synchronisations it would receive, and its own last message.
 */
static bool known(const struct cn_aapc *a, const struct cn_aapc_closing *list, uint32_t first,
		  uint32_t end, uint32_t i)
{
	const struct cn_aapc_message *m = &list[i].last;
	uint32_t to = list[i].to;
	struct cn_aapc_message last;

	if (m->from == to || cn_aapc_between(a, m->from, to).phase >= m->phase) {
		return true;
	}
	if (cn_aapc_user(a, 2 * a->tree->host[a->node[to]] + 1, a->phases, true, CN_AAPC_ANY,
			 &last) &&
	    last.phase > m->phase && cn_aapc_share(a, &last, m)) {
		return true;
	}
	for (uint32_t k = first; k < end; k++) {
		if (list[k].last.phase > m->phase && cn_aapc_share(a, &list[k].last, m)) {
			return true;
		}
	}
	return false;
}

int cn_aapc_closing(const struct cn_aapc *a, uint32_t me, struct cn_aapc_closing **out, uint32_t *n,
		    struct cn_err *err)
{
	struct cn_aapc_closing *list, *mine;
	uint32_t pairs, end;

	*out = NULL;
	*n = 0;
	list = calloc(2 * (size_t)a->tree->n, sizeof(*list));
	mine = calloc(2 * (size_t)a->tree->n, sizeof(*mine));
	if (list == NULL || mine == NULL) {
		free(list);
		free(mine);
		return cn_fail(err, COLLNET_ENOMEM, "no memory to synchronise %u nodes", a->n);
	}
	pairs = all_pairs(a, list);
	for (uint32_t first = 0; first < pairs; first = end) {
		for (end = first; end < pairs && list[end].to == list[first].to; end++) {
		}
		for (uint32_t i = first; i < end; i++) {
			if ((list[i].to == me || list[i].last.from == me) &&
			    !known(a, list, first, end, i)) {
				mine[(*n)++] = list[i];
			}
		}
	}
	free(list);
	*out = mine;
	return COLLNET_OK;
}
