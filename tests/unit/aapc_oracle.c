/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aapc_oracle.h"
#include "topo_text.h"

uint64_t aapc_seed = 20050404;

uint32_t aapc_below(uint32_t n)
{
	return (uint32_t)(cn_random(&aapc_seed) % n);
}

static void net_of(struct aapc_net *n, struct cn_topo *topo)
{
	struct cn_err err = { 0 };

	n->topo = topo;
	if (cn_tree_make(topo, topo->hosts, topo->nhosts, CN_TOPO_NONE, &n->tree, &err) ||
	    cn_aapc_new(n->tree, &n->a, &err) ||
	    cn_aapc_sync_new(n->a, UINT32_MAX, &n->sync, &err) ||
	    cn_aapc_sync_new(n->a, UINT32_MAX, &n->sync_too, &err)) {
		fail_msg("%s", err.text);
	}
}

void aapc_net_text(struct aapc_net *n, const char *text)
{
	struct cn_err err = { 0 };
	struct cn_topo *topo = NULL;

	if (cn_topo_parse(text, strlen(text), "test", &topo, &err)) {
		fail_msg("%s", err.text);
	}
	net_of(n, topo);
}

void aapc_net_shape(struct aapc_net *n, const char *shape)
{
	struct cn_topo *topo = NULL;

	assert_int_equal(cn_topo_shape(shape, 0, 0, 0, 0, &topo, NULL), COLLNET_OK);
	net_of(n, topo);
}

void aapc_net_free(struct aapc_net *n)
{
	cn_aapc_sync_free(n->sync);
	cn_aapc_sync_free(n->sync_too);
	cn_aapc_free(n->a);
	cn_tree_free(n->tree);
	cn_topo_free(n->topo);
}

void aapc_net_random(struct aapc_net *n, uint32_t hosts, uint32_t switches, uint32_t kind)
{
	char text[8192];
	size_t at = 0;

	for (uint32_t s = 0; s < switches; s++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "switch s%u\n", s);
	}
	for (uint32_t h = 0; h < hosts; h++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "host h%u\n", h);
	}
	for (uint32_t s = 1; s < switches; s++) {
		uint32_t to = kind == 1 ? s - 1 : kind == 2 ? 0 : aapc_below(s);

		if (kind == 3 && s > 2) {
			to = s - 1 - aapc_below(2);
		}
		at += (size_t)snprintf(text + at, sizeof(text) - at, "link s%u s%u rate none\n", to,
				       s);
	}
	for (uint32_t h = 0; h < hosts; h++) {
		uint32_t s = aapc_below(switches);

		s = kind == 3 && aapc_below(2) ? s - s % 3 : s;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "link h%u s%u rate none\n", h,
				       s);
	}
	assert_true(at < sizeof(text));
	aapc_net_text(n, text);
}

const char *aapc_host_name(const struct aapc_net *n, uint32_t place)
{
	return cn_tree_node_name(n->tree, n->a->node[place]);
}

static int by_phase(const void *x, const void *y)
{
	const struct cn_aapc_message *a = x, *b = y;

	if (a->phase != b->phase) {
		return a->phase < b->phase ? -1 : 1;
	}
	return a->from < b->from ? -1 : a->from > b->from;
}

struct aapc_oracle *aapc_oracle(const struct aapc_net *net)
{
	const struct cn_aapc *a = net->a;
	struct aapc_oracle *b = calloc(1, sizeof(*b));
	uint32_t links[2 * AAPC_LINKS];

	assert_non_null(b);
	b->net = net;
	b->nlinks = 2 * net->tree->n;
	assert_true(a->n <= AAPC_HOSTS && b->nlinks <= AAPC_LINKS);
	for (uint32_t x = 0; x < a->n; x++) {
		for (uint32_t y = 0; y < a->n; y++) {
			if (x != y) {
				b->m[b->n++] = cn_aapc_between(a, x, y);
			}
		}
	}
	qsort(b->m, b->n, sizeof(b->m[0]), by_phase);
	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t d = cn_tree_path(net->tree, a->node[b->m[i].from], a->node[b->m[i].to],
					  links);

		for (uint32_t l = 0; l < d; l++) {
			b->uses[i][links[l]] = true;
		}
	}
	return b;
}

static bool brute_share(const struct aapc_oracle *b, uint32_t i, uint32_t j)
{
	for (uint32_t l = 0; l < b->nlinks; l++) {
		if (b->uses[i][l] && b->uses[j][l]) {
			return true;
		}
	}
	return false;
}

/* The load of the most loaded link: the paper's bound, from paths alone. */
static uint32_t brute_bound(const struct aapc_oracle *b)
{
	uint32_t most = 0;

	for (uint32_t l = 0; l < b->nlinks; l++) {
		uint32_t load = 0;

		for (uint32_t i = 0; i < b->n; i++) {
			load += b->uses[i][l];
		}
		most = load > most ? load : most;
	}
	return most;
}

void aapc_check_phases(const struct aapc_oracle *b)
{
	const struct cn_aapc *a = b->net->a;
	uint32_t seen = 0;

	assert_int_equal(a->phases, brute_bound(b));
	for (uint32_t i = 0; i < a->k; i++) { /* Lemma 1, and the order of the subtrees */
		assert_true(2 * cn_aapc_size(a, i) <= a->n);
		assert_true(i == 0 || cn_aapc_size(a, i) <= cn_aapc_size(a, i - 1));
	}
	assert_int_equal(b->n, a->n * (a->n - 1));
	for (uint32_t i = 0; i < b->n; i++) {
		assert_true(b->m[i].phase < a->phases);
		for (uint32_t j = i + 1; j < b->n && b->m[j].phase == b->m[i].phase; j++) {
			assert_int_not_equal(b->m[i].from, b->m[j].from);
			assert_int_not_equal(b->m[i].to, b->m[j].to);
			if (brute_share(b, i, j)) {
				fail_msg("phase %u: %s -> %s and %s -> %s share a link",
					 b->m[i].phase, aapc_host_name(b->net, b->m[i].from),
					 aapc_host_name(b->net, b->m[i].to),
					 aapc_host_name(b->net, b->m[j].from),
					 aapc_host_name(b->net, b->m[j].to));
			}
		}
	}
	for (uint32_t p = 0; p < a->phases; p++) {
		for (uint32_t i = 0; i < a->k; i++) {
			uint32_t j = cn_aapc_target(a, i, p);
			struct cn_aapc_message m, same;

			if (j != CN_TOPO_NONE) {
				m = cn_aapc_global(a, i, j, p);
				same = cn_aapc_between(a, m.from, m.to);
				assert_int_equal(same.phase, p);
				assert_int_equal(cn_aapc_source(a, j, p), i);
				seen++;
			}
			if (cn_aapc_local(a, i, p, &m)) {
				same = cn_aapc_between(a, m.from, m.to);
				assert_int_equal(m.phase, p);
				assert_int_equal(same.phase, p);
				seen++;
			}
		}
	}
	assert_int_equal(seen, b->n);
}

/* cn_aapc_user() for every link and phase. Links are of a->tree: found by what is below them. */
static void check_users(const struct aapc_oracle *b)
{
	const struct cn_aapc *a = b->net->a;
	const struct cn_tree *t = a->tree;

	for (uint32_t dlink = 2; dlink < 2 * t->n; dlink++) {
		/* Beyond both ends too: the first of all, and the last. */
		for (uint32_t p = CN_TOPO_NONE; p != a->phases + 1; p++) {
			const struct cn_aapc_message *before = NULL, *after = NULL;
			struct cn_aapc_message m;

			for (uint32_t i = 0; i < b->n; i++) {
				bool from = cn_tree_below(t, t->host[a->node[b->m[i].from]],
							  dlink / 2);
				bool to = cn_tree_below(t, t->host[a->node[b->m[i].to]], dlink / 2);

				if (from == to || from != (dlink % 2 == 0)) {
					continue;
				}
				if (p != CN_TOPO_NONE && b->m[i].phase < p) {
					before = &b->m[i];
				}
				if ((p == CN_TOPO_NONE || b->m[i].phase > p) && after == NULL) {
					after = &b->m[i];
				}
			}
			if (p != CN_TOPO_NONE) {
				assert_int_equal(cn_aapc_user(a, dlink, p, true, CN_AAPC_ANY, &m),
						 before != NULL);
			}
			if (before != NULL) {
				assert_memory_equal(&m, before, sizeof(m));
			}
			assert_int_equal(cn_aapc_user(a, dlink, p, false, CN_AAPC_ANY, &m),
					 after != NULL);
			if (after != NULL) {
				assert_memory_equal(&m, after, sizeof(m));
			}
		}
	}
}

static void find_edges(struct aapc_oracle *b)
{
	for (uint32_t j = 0; j < b->n; j++) {
		for (uint32_t i = j; i-- > 0;) {
			if (b->m[i].phase == b->m[j].phase || !brute_share(b, i, j)) {
				continue;
			}
			b->edge[i][j] = true;
			b->reach[i][j] = true;
			for (uint32_t h = 0; h < i; h++) {
				b->reach[h][j] |= b->reach[h][i];
			}
		}
	}
}

static bool brute_redundant(const struct aapc_oracle *b, uint32_t i, uint32_t j)
{
	for (uint32_t h = i + 1; h < j; h++) {
		if (b->reach[i][h] && b->edge[h][j]) {
			return true;
		}
	}
	return false;
}

bool aapc_listed(const struct cn_aapc_message *list, uint32_t n, const struct cn_aapc_message *m)
{
	for (uint32_t i = 0; i < n; i++) {
		if (memcmp(&list[i], m, sizeof(*m)) == 0) {
			return true;
		}
	}
	return false;
}

static void complain(const struct aapc_oracle *b, uint32_t i, uint32_t j, const char *what)
{
	fail_msg("%s -> %s (phase %u), then %s -> %s (phase %u): %s",
		 aapc_host_name(b->net, b->m[i].from), aapc_host_name(b->net, b->m[i].to),
		 b->m[i].phase, aapc_host_name(b->net, b->m[j].from),
		 aapc_host_name(b->net, b->m[j].to), b->m[j].phase, what);
}

uint32_t aapc_check_syncs(struct aapc_oracle *b)
{
	const struct cn_aapc_message *list;
	uint32_t found = 0, said = 0, n;

	find_edges(b);
	for (uint32_t j = 0; j < b->n; j++) {
		assert_int_equal(cn_aapc_before(b->net->sync, &b->m[j], &list, &n, NULL), 0);
		said += n;
		for (uint32_t i = 0; i < j; i++) {
			bool want = b->edge[i][j] && b->m[i].from != b->m[j].from &&
				    !brute_redundant(b, i, j);

			if (want != aapc_listed(list, n, &b->m[i])) {
				complain(b, i, j, want ? "not waited for" : "waited for in vain");
			}
			found += want;
		}
	}
	assert_int_equal(found, said);
	said = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		assert_int_equal(cn_aapc_after(b->net->sync, &b->m[i], &list, &n, NULL), 0);
		said += n;
		for (uint32_t j = i + 1; j < b->n; j++) {
			bool want = b->edge[i][j] && b->m[i].from != b->m[j].from &&
				    !brute_redundant(b, i, j);

			if (want != aapc_listed(list, n, &b->m[j])) {
				complain(b, i, j, want ? "not told" : "told in vain");
			}
		}
	}
	assert_int_equal(found, said);
	return found;
}

void aapc_check_all(const struct aapc_net *net)
{
	struct aapc_oracle *b = aapc_oracle(net);

	aapc_check_phases(b);
	check_users(b);
	aapc_check_syncs(b);
	free(b);
}
