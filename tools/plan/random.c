/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random clusters (Faraj, Patarasuk and Yuan, section 5).
 *
 * Pairs of switches are drawn one after the other. A pair that joins two pieces becomes a link; so
 * does another one, as long as the links that a tree does not need are not used up. The graph is
 * a random one of the number of links asked for, except that what would stay in pieces is joined
 * by the last of them. Equal parameters give equal clusters on every machine.
 */
#include "tools/plan/random.h"

#include <stdio.h>
#include <stdlib.h>

#include "topo/build.h"
#include "topo/topo.h"
#include "util/union_find.h"

#define LINKS_MAX 2000000u

struct pair {
	uint32_t a, b;
};

/* Union-find of the switches, and a hash table of the pairs that are linked. */
struct scratch {
	uint32_t *set;
	struct pair *pairs;
	uint32_t *table; /* [mask + 1] of pairs */
	uint32_t mask;
};

/* Where the pair is, or belongs. */
static uint32_t slot_of(const struct scratch *s, struct pair p)
{
	uint32_t i = (uint32_t)cn_mix64((uint64_t)p.a << 32 | p.b) & s->mask, at;

	while ((at = s->table[i]) != CN_TOPO_NONE &&
	       (s->pairs[at].a != p.a || s->pairs[at].b != p.b)) {
		i = (i + 1) & s->mask;
	}
	return i;
}

static bool scratch_new(struct scratch *s, uint32_t switches, uint32_t links)
{
	uint32_t slots = 4;

	while (slots < 2 * links) {
		slots *= 2;
	}
	s->mask = slots - 1;
	s->set = malloc((size_t)switches * sizeof(*s->set));
	s->pairs = malloc(((size_t)links + 1) * sizeof(*s->pairs));
	s->table = malloc((size_t)slots * sizeof(*s->table));
	if (s->set == NULL || s->pairs == NULL || s->table == NULL) {
		return false;
	}
	cn_union_init(s->set, switches);
	for (uint32_t i = 0; i < slots; i++) {
		s->table[i] = CN_TOPO_NONE;
	}
	return true;
}

static void scratch_free(struct scratch *s)
{
	free(s->set);
	free(s->pairs);
	free(s->table);
}

/* Fills pairs[0 .. links - 1]; there are as many pairs, and they suffice for a tree. */
static void draw_pairs(struct scratch *s, uint32_t switches, uint32_t links, uint64_t *state)
{
	uint32_t n = 0, extra = links - (switches - 1), x, y, i;
	struct pair p;
	bool joins;

	while (n < links) {
		x = cn_below(state, switches);
		y = cn_below(state, switches);
		p = (struct pair){ .a = x < y ? x : y, .b = x < y ? y : x };
		i = x == y ? 0 : slot_of(s, p);
		if (x == y || s->table[i] != CN_TOPO_NONE) {
			continue;
		}
		x = cn_union_find(s->set, x);
		y = cn_union_find(s->set, y);
		joins = x != y;
		if (!joins && extra == 0) {
			continue;
		}
		extra -= !joins;
		s->set[x] = y;
		s->table[i] = n;
		s->pairs[n++] = p;
	}
}

/* "s0", "h12" */
static const char *name_of(char text[16], char kind, uint32_t i)
{
	snprintf(text, 16, "%c%u", kind, i);
	return text;
}

static int build(const struct cn_topo_random *r, const struct scratch *s, uint32_t links,
		 uint64_t *state, struct cn_build *b, struct cn_err *err)
{
	char x[16], y[16];
	int rc = COLLNET_OK;

	for (uint32_t i = 0; rc == COLLNET_OK && i < r->switches; i++) {
		rc = cn_build_vertex(b, name_of(x, 's', i), true, NULL, err);
	}
	for (uint32_t i = 0; rc == COLLNET_OK && i < r->hosts; i++) {
		rc = cn_build_vertex(b, name_of(x, 'h', i), false, NULL, err);
	}
	for (uint32_t i = 0; rc == COLLNET_OK && i < links; i++) {
		rc = cn_build_link(b, name_of(x, 's', s->pairs[i].a),
				   name_of(y, 's', s->pairs[i].b), r->rate, r->buffer, 1, err);
	}
	for (uint32_t i = 0; rc == COLLNET_OK && i < r->hosts; i++) {
		uint32_t at = cn_below(state, r->switches);

		rc = cn_build_link(b, name_of(x, 'h', i), name_of(y, 's', at), r->rate, r->buffer,
				   1, err);
	}
	return rc;
}

static int count_links(const struct cn_topo_random *r, uint32_t *links, struct cn_err *err)
{
	double most, want;

	if (r->hosts == 0 || r->switches == 0 || r->hosts > CN_TOPO_VERTICES_MAX ||
	    r->switches > CN_TOPO_VERTICES_MAX - r->hosts) {
		return cn_fail(err, COLLNET_EINVAL,
			       "a random cluster has at least one host and one switch, and at most "
			       "%u of both",
			       CN_TOPO_VERTICES_MAX);
	}
	if (!(r->degree >= 0)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "the degree of a random cluster's switches is 0 or more");
	}
	most = (double)r->switches * (r->switches - 1) / 2;
	want = r->degree * r->switches / 2 + 0.5;
	want = want > most ? most : want;
	want = want < r->switches - 1 ? r->switches - 1 : want;
	if (want > LINKS_MAX) {
		return cn_fail(err, COLLNET_EINVAL,
			       "a random cluster has at most %u links between switches; choose a "
			       "smaller degree",
			       LINKS_MAX);
	}
	*links = (uint32_t)want;
	return COLLNET_OK;
}

int cn_topo_random(const struct cn_topo_random *r, struct cn_topo **out, struct cn_err *err)
{
	uint64_t state = cn_mix64(r->seed);
	struct scratch s = { 0 };
	struct cn_build b;
	uint32_t links = 0;
	int rc = count_links(r, &links, err);

	if (rc == COLLNET_OK && !scratch_new(&s, r->switches, links)) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory for a cluster of %u switches",
			     r->switches);
	}
	if (rc == COLLNET_OK) {
		rc = cn_build_init(&b, "random cluster", err);
	}
	if (rc == COLLNET_OK) {
		draw_pairs(&s, r->switches, links, &state);
		rc = build(r, &s, links, &state, &b, err);
		if (rc == COLLNET_OK) {
			rc = cn_build_finish(&b, out, err);
		}
		cn_build_abort(&b);
	}
	scratch_free(&s);
	return rc;
}
