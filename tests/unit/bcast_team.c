/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bcast_team.h"
#include "topo_text.h"

uint64_t bcast_seed = 20010423;

uint32_t bcast_below(uint32_t n)
{
	return (uint32_t)(cn_random(&bcast_seed) % n);
}

void bcast_team(struct bcast_team *t, struct cn_topo *topo, uint32_t most)
{
	uint32_t n = topo->nhosts, nranks = 0, k = 0;
	struct cn_err err = { 0 };

	memset(t, 0, sizeof(*t));
	t->topo = topo;
	t->node_of = calloc((size_t)n * most, sizeof(uint32_t));
	t->first = calloc((size_t)n + 1, sizeof(uint32_t));
	t->ranks = calloc((size_t)n * most, sizeof(uint32_t));
	assert_true(t->node_of && t->first && t->ranks);
	for (uint32_t b = 0; b < n; b++) {
		for (uint32_t i = 1 + bcast_below(most); i > 0; i--) {
			uint32_t at = bcast_below(++nranks);

			t->node_of[nranks - 1] = t->node_of[at];
			t->node_of[at] = b;
		}
	}
	for (uint32_t b = 0; b < n; b++) {
		for (uint32_t r = 0; r < nranks; r++) {
			if (t->node_of[r] == b) {
				t->ranks[k++] = r;
			}
		}
		t->first[b + 1] = k;
	}
	if (cn_tree_make(topo, topo->hosts, n, CN_TOPO_NONE, &t->tree, &err)) {
		fail_msg("%s", err.text);
	}
	t->l = (struct cn_layout){ .nranks = nranks,
				   .nnodes = n,
				   .node_of = t->node_of,
				   .first = t->first,
				   .ranks = t->ranks,
				   .tree = t->tree };
}

void bcast_team_done(struct bcast_team *t)
{
	cn_tree_free(t->tree);
	cn_topo_free(t->topo);
	free(t->node_of);
	free(t->first);
	free(t->ranks);
}

struct cn_topo *bcast_shape(const char *text)
{
	struct cn_topo *topo;

	assert_int_equal(cn_topo_shape(text, 1000000000, 0, 0, 0, &topo, NULL), COLLNET_OK);
	return topo;
}

struct cn_topo *bcast_random_topo(uint32_t switches, uint32_t hosts)
{
	static const char *const rates[] = { "none", "100mbit", "1gbit", "10gbit" };
	uint32_t s = 1 + bcast_below(switches), h = 1 + bcast_below(hosts);
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct cn_topo *topo;

	assert_non_null(f);
	for (uint32_t i = 0; i < s; i++) {
		fprintf(f, "switch s%u\n", i);
		if (i > 0) {
			fprintf(f, "link s%u s%u rate %s channels %u\n", i, bcast_below(i),
				rates[bcast_below(4)], 1 + bcast_below(3) / 2 * bcast_below(4));
		}
	}
	for (uint32_t i = 0; i < h; i++) {
		fprintf(f, "host h%u\nlink h%u s%u rate %s\n", i, i, bcast_below(s),
			rates[bcast_below(4)]);
	}
	fclose(f);
	topo = topo_bytes(text, len);
	free(text);
	return topo;
}

uint32_t bcast_height(const struct bcast_team *t, uint32_t root, uint32_t kids)
{
	struct cn_bcast b;
	uint32_t phases;

	assert_int_equal(cn_bcast_kary_tree(&t->l, root, kids, &b, NULL), COLLNET_OK);
	assert_int_equal(cn_bcast_segment(&b, 1, 0, NULL), COLLNET_OK);
	assert_int_equal(cn_bcast_colour(&b, t->tree, NULL), COLLNET_OK);
	phases = b.phases;
	cn_bcast_done(&b);
	return phases;
}
