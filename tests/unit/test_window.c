/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/topo/window.c: the paper's table of windows, and the same by brute force on random trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topo/topo.h"

static struct cn_topo *shape(const char *text, uint32_t buffer, uint32_t uplink_buffer)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };

	if (cn_topo_shape(text, 100000000, buffer, 1000000000, uplink_buffer, &t, &err) != 0) {
		fail_msg("%s", err.text);
	}
	cn_topo_input_buffered(t); /* as the paper's switches: Eq. 4 as printed */
	return t;
}

static uint32_t window_of(const char *text, uint32_t buffer, uint32_t uplink_buffer,
			  uint32_t control)
{
	struct cn_topo *t = shape(text, buffer, uplink_buffer);
	uint32_t w = cn_topo_window(t, t->hosts, t->nhosts, control, NULL);

	cn_topo_free(t);
	return w;
}

/* Section 4 of the paper. For 6x4 it states 5; its own formula gives 45 / (2 * 108 / 23) = 4.79. */
static void window__of_the_paper(void **state)
{
	(void)state;
	assert_int_equal(window_of("16x1", 43, 45, 2), 21);
	assert_int_equal(window_of("8x2", 43, 45, 2), 5);
	assert_int_equal(window_of("8x3", 43, 45, 2), 4);
	assert_int_equal(window_of("8x4", 43, 45, 2), 3);
	assert_int_equal(window_of("6x4", 43, 45, 2), 4);
}

/* Section 3.3: 4x4 with uplinks of 30 frames: nu = 12 * 4 / 15 = 3.2 by Eq. 3, W_g = 9 by Eq. 4. */
static void window__of_section_3_3(void **state)
{
	(void)state;
	assert_int_equal(window_of("4x4", 0, 30, 1), 9);
	assert_int_equal(window_of("4x4", 43, 30, 1), 9);
}

/* Eq. 3 as printed, nu = (p - d1) d1 / (p - 1), for every two-level network of up to 12 x 12. */
static void window__equation_4(void **state)
{
	char text[32];
	uint32_t d1, switches, p, want;

	(void)state;
	for (d1 = 1; d1 <= 12; d1++) {
		for (switches = 2; switches <= 12; switches++) {
			p = d1 * switches;
			snprintf(text, sizeof(text), "%ux%u", d1, switches);
			want = 45 * (p - 1) / ((p - d1) * d1);
			assert_int_equal(window_of(text, 0, 45, 1), want < 1 ? 1 : want);
		}
	}
}

static void window__control_frames(void **state)
{
	(void)state;
	assert_int_equal(window_of("16", 43, 0, 1), 43);
	assert_int_equal(window_of("8x2", 43, 45, 1), 10);
}

static void window__bounds(void **state)
{
	(void)state;
	assert_int_equal(window_of("8x4", 1, 1, 2), 1);
	assert_int_equal(window_of("2", 1000000, 0, 1), 65535);
	assert_true(window_of("1", 43, 45, 2) == COLLNET_WINDOW_OFF);
	/* no link says a buffer: all have 43 */
	assert_int_equal(window_of("8x2", 0, 0, 2), 5);
	assert_int_equal(window_of("16", 0, 0, 2), 21);
	/* only the hosts' ports say a buffer */
	assert_int_equal(window_of("8x2", 43, 0, 2), 21);
}

/*
 * Uplinks of 2 cables: twice the room. And beyond what a product of 64 bits could compare: two
 * links of nearly the same ratio, of which the smaller decides.
 */
static void window__channels(void **state)
{
	static const char text[] = "switch a\nswitch b\nhost h0\nhost h1\nhost h2\nhost h3\n"
				   "link a b rate 1gbit buffer 45 channels 2\n"
				   "link h0 a rate 1gbit buffer 43\n"
				   "link h1 a rate 1gbit buffer 43 channels 3\n"
				   "link h2 b rate 1gbit buffer 43\nlink h3 b rate 1gbit\n";
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	uint32_t link = 0;

	(void)state;
	assert_int_equal(cn_topo_parse(text, sizeof(text) - 1, "t", &t, &err), 0);
	/* 90 / (4/3) = 67.5 against 43: one of the hosts' ports decides */
	assert_int_equal(cn_topo_window(t, t->hosts, 4, 1, &link), 43);
	assert_int_equal(link, 1);
	t->links[0].channels = 1; /* 45 / (4/3) = 33.75 */
	assert_int_equal(cn_topo_window(t, t->hosts, 4, 1, &link), 33);
	assert_int_equal(link, 0);
	cn_topo_free(t);
}

static void window__nearly_equal_ports(void **state)
{
	struct cn_topo *t = shape("50000x2", 1000000, 1000000);
	uint32_t link = 0, i, uplinks = 0, second = 0;

	(void)state;
	for (i = 0; i < t->nlinks; i++) {
		t->links[i].channels = CN_TOPO_CHANNELS_MAX;
		if (t->vertices[t->links[i].a].is_switch && t->vertices[t->links[i].b].is_switch) {
			second = i;
			uplinks++;
		}
	}
	assert_int_equal(uplinks, 2);
	t->links[second].buffer = 999999;
	/* 999999 * 65536 * 99999 / (2 * 50000 * 50000) = 1310704.8.. above what a window can be */
	assert_int_equal(cn_topo_window(t, t->hosts, t->nhosts, 2, &link), 65535);
	assert_int_equal(link, second);
	cn_topo_free(t);
}

static void window__names_the_bottleneck(void **state)
{
	struct cn_topo *t = shape("8x2", 43, 45);
	const struct cn_topo_link *l;
	uint32_t link = 0;

	(void)state;
	cn_topo_window(t, t->hosts, t->nhosts, 2, &link);
	assert_true(link < t->nlinks);
	l = &t->links[link];
	assert_true(t->vertices[l->a].is_switch && t->vertices[l->b].is_switch);
	/* hosts of one switch alone never cross the uplinks */
	assert_int_equal(cn_topo_window(t, t->hosts, 8, 2, &link), 21);
	l = &t->links[link];
	assert_false(t->vertices[l->a].is_switch && t->vertices[l->b].is_switch);
	assert_true(cn_topo_window(t, t->hosts, 1, 2, &link) == COLLNET_WINDOW_OFF);
	assert_true(link == CN_TOPO_NONE);
	cn_topo_free(t);
}

/* One host on one switch and three on the other: s (n - s) = 3 of 3 steps, nu = 1. */
static void window__unequal_switches(void **state)
{
	static const char text[] = "switch a\nswitch b\n"
				   "host h0\nhost h1\nhost h2\nhost h3\n"
				   "link a b rate 1gbit buffer 40\n"
				   "link h0 a rate 1gbit buffer 100\n"
				   "link h1 b rate 1gbit buffer 100\n"
				   "link h2 b rate 1gbit buffer 100\n"
				   "link h3 b rate 1gbit buffer 100\n";
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	uint32_t two[2];

	(void)state;
	assert_int_equal(cn_topo_parse(text, sizeof(text) - 1, "t", &t, &err), 0);
	assert_int_equal(cn_topo_window(t, t->hosts, 4, 2, NULL), 20);
	two[0] = cn_topo_find(t, "h3");
	two[1] = cn_topo_find(t, "h1");
	assert_int_equal(cn_topo_window(t, two, 2, 2, NULL), 800); /* 16 times 50 */
	cn_topo_free(t);
}

/* What a port of an output-buffered switch holds of the frames in flight; Eq. 4 with nothing else.
 */
static void window__output_buffered(void **state)
{
	/* hosts of 1 Gbit/s and 43 frames, uplinks of so many Gbit/s and 45 */
	static const struct {
		const char *shape;
		uint64_t uplink;
		uint32_t window;
	} want[] = {
		{ "8x2", 1, 5 },  /* 45 * 15 / (2 * 64): the busiest links hold all */
		{ "8x2", 4, 5 },  /* nu = 4.27 is still more than 4 */
		{ "8x2", 5, 12 }, /* 8 Gbit/s arrive, 5 leave: (8 - 5) / (8 - 1) of them wait */
		{ "8x2", 8, 21 }, /* nothing waits; 43 / 2 of a host's port */
		{ "8x3", 5, 4 },  /* nu = 5.57 */
		{ "8x3", 8, 21 },
		{ "10x3", 8, 14 }, /* 45 * 29 / (2 * 200) = 3.26, of which 2 / 9 */
		{ "2", 1, 344 },   /* one port feeds each: 1/16 all the same, 43 * 16 / 2 */
		{ "3", 1, 21 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct cn_topo *t = NULL;
		uint32_t *share;

		assert_int_equal(cn_topo_shape(want[i].shape, 1000000000, 43,
					       want[i].uplink * 1000000000, 45, &t, NULL),
				 COLLNET_OK);
		assert_int_equal(cn_topo_window(t, t->hosts, t->nhosts, 2, NULL), want[i].window);
		share = cn_topo_waiting(t, t->hosts, t->nhosts);
		assert_non_null(share);
		for (uint32_t v = 0; v < t->nvertices; v++) {
			assert_true(share[v] <= CN_TOPO_ALL);
			assert_true((share[v] == 0) == (v == t->root));
		}
		free(share);
		cn_topo_input_buffered(t);
		share = cn_topo_waiting(t, t->hosts, t->nhosts);
		assert_non_null(share);
		for (uint32_t v = 0; v < t->nvertices; v++) {
			assert_int_equal(share[v], v == t->root ? 0 : CN_TOPO_ALL);
		}
		free(share);
		cn_topo_free(t);
	}
}

/* A rate that is not known may be any: Eq. 4 as printed. */
static void window__unknown_rates(void **state)
{
	struct cn_topo *t = NULL;

	(void)state;
	assert_int_equal(cn_topo_shape("8x2", 1000000000, 43, 0, 45, &t, NULL), COLLNET_OK);
	assert_int_equal(cn_topo_window(t, t->hosts, t->nhosts, 2, NULL), 5);
	cn_topo_free(t);
	assert_int_equal(cn_topo_shape("8x2", 0, 43, 10000000000, 45, &t, NULL), COLLNET_OK);
	assert_int_equal(cn_topo_window(t, t->hosts, t->nhosts, 2, NULL), 5);
	cn_topo_free(t);
	assert_int_equal(cn_topo_shape("2", 0, 43, 0, 0, &t, NULL), COLLNET_OK);
	assert_int_equal(cn_topo_window(t, t->hosts, t->nhosts, 2, NULL), 21);
	cn_topo_free(t);
}

/* Random trees against counting which pairs of hosts a link parts, path by path. */
static uint32_t by_brute_force(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	uint32_t link, i, j, v, best = UINT32_MAX, w;
	uint64_t pairs;
	bool side_i, side_j;

	for (link = 0; link < t->nlinks; link++) {
		if (t->links[link].buffer == 0) {
			continue;
		}
		pairs = 0;
		for (i = 0; i < n; i++) {
			for (j = 0; j < n; j++) {
				side_i = side_j = false;
				for (v = hosts[i]; v != t->root; v = t->vertices[v].parent) {
					side_i |= t->vertices[v].parent_link == link;
				}
				for (v = hosts[j]; v != t->root; v = t->vertices[v].parent) {
					side_j |= t->vertices[v].parent_link == link;
				}
				pairs += side_i && !side_j;
			}
		}
		if (pairs != 0) {
			w = (uint32_t)((uint64_t)t->links[link].buffer * t->links[link].channels *
				       (n - 1) / (2 * pairs));
			w = w == 0 ? 1 : w;
			best = w < best ? w : best;
		}
	}
	return best;
}

static struct cn_topo *random_tree(uint64_t *seed, char *text, size_t size)
{
	uint32_t switches = 1 + (uint32_t)(cn_random(seed) % 6);
	uint32_t hosts = 2 + (uint32_t)(cn_random(seed) % 12), i;
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	size_t at = 0;

	for (i = 0; i < switches; i++) {
		at += (size_t)snprintf(text + at, size - at, "switch s%u\n", i);
	}
	for (i = 1; i < switches; i++) {
		at += (size_t)snprintf(text + at, size - at,
				       "link s%u s%u rate 1gbit buffer %u channels %u\n", i,
				       (unsigned int)(cn_random(seed) % i),
				       (unsigned int)(1 + cn_random(seed) % 60),
				       (unsigned int)(1 + cn_random(seed) % 4));
	}
	for (i = 0; i < hosts; i++) {
		at += (size_t)snprintf(text + at, size - at,
				       "host h%u\nlink s%u h%u rate 1mbit buffer %u\n", i,
				       (unsigned int)(cn_random(seed) % switches), i,
				       (unsigned int)(1 + cn_random(seed) % 60));
	}
	if (cn_topo_parse(text, at, "random", &t, &err) != 0) {
		fail_msg("%s", err.text);
	}
	cn_topo_input_buffered(t);
	return t;
}

static void window__random_trees(void **state)
{
	uint64_t seed = 20240611;
	char text[4096];
	struct cn_topo *t;
	uint32_t round, n, i, j, tmp;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (round = 0; round < 300; round++) {
		t = random_tree(&seed, text, sizeof(text));
		for (i = 0; i < t->nhosts; i++) {
			j = (uint32_t)(cn_random(&seed) % t->nhosts);
			tmp = t->hosts[i];
			t->hosts[i] = t->hosts[j];
			t->hosts[j] = tmp;
		}
		n = 2 + (uint32_t)(cn_random(&seed) % (t->nhosts - 1));
		assert_int_equal(cn_topo_window(t, t->hosts, n, 2, NULL),
				 by_brute_force(t, t->hosts, n));
		cn_topo_free(t);
	}
}

/* Half of the smallest buffer that the team's messages may stand in; one at least. */
static void link_window__half_of_the_smallest(void **state)
{
	struct cn_topo *t = NULL;

	(void)state;
	assert_int_equal(cn_topo_shape("4x2", 1000, 43, 1000, 20, &t, NULL), COLLNET_OK);
	assert_int_equal(cn_topo_link_window(t, t->hosts, 8), 10); /* over the uplinks */
	assert_int_equal(cn_topo_link_window(t, t->hosts, 4), 21); /* within a switch */
	assert_true(cn_topo_link_window(t, t->hosts, 1) == COLLNET_WINDOW_OFF);
	assert_int_equal(cn_topo_two_way_window(10), 5);
	assert_int_equal(cn_topo_two_way_window(1), 1);
	assert_true(cn_topo_two_way_window(COLLNET_WINDOW_OFF) == COLLNET_WINDOW_OFF);
	cn_topo_free(t);
	assert_int_equal(cn_topo_shape("3", 1000, 1, 0, 0, &t, NULL), COLLNET_OK);
	assert_int_equal(cn_topo_link_window(t, t->hosts, 3), 1);
	cn_topo_free(t);
	assert_int_equal(cn_topo_shape("3", 1000, 0, 0, 0, &t, NULL), COLLNET_OK);
	assert_int_equal(cn_topo_assumed_buffer(t), 43);
	assert_int_equal(cn_topo_link_window(t, t->hosts, 3), 21);
	cn_topo_free(t);
	/* hosts of one switch, where only uplinks say a buffer */
	assert_int_equal(cn_topo_shape("4x2", 1000, 0, 1000, 20, &t, NULL), COLLNET_OK);
	assert_int_equal(cn_topo_assumed_buffer(t), 0);
	assert_true(cn_topo_link_window(t, t->hosts, 4) == COLLNET_WINDOW_OFF);
	cn_topo_free(t);
}

/* The frames of all that send fit into the smallest buffer, less an eighth and one. */
static void fan_in__share_of_a_port(void **state)
{
	struct cn_topo *t = shape("4x2", 43, 20);
	uint32_t senders;

	(void)state;
	assert_int_equal(cn_topo_fan_in(t, t->hosts, 8, &senders), 2); /* 17 / 7 */
	assert_int_equal(senders, 7);
	assert_int_equal(cn_topo_fan_in(t, t->hosts, 4, &senders), 12); /* 37 / 3, one switch */
	assert_int_equal(senders, 3);
	t->links[t->vertices[t->hosts[3]].parent_link].buffer = 6;
	assert_int_equal(cn_topo_fan_in(t, t->hosts, 8, &senders), 1);
	assert_int_equal(senders, 5);
	assert_int_equal(cn_topo_fan_in(t, t->hosts, 1, &senders), COLLNET_WINDOW_OFF);
	assert_int_equal(senders, 1);
	assert_int_equal(cn_topo_fan_in(NULL, NULL, 3, &senders), 18); /* 37 / 2 */
	assert_int_equal(cn_topo_fan_in(NULL, NULL, 100, &senders), 1);
	assert_int_equal(senders, 37);
	cn_topo_free(t);
}

static uint32_t transit(const struct cn_topo *t, uint32_t n, bool exchange, uint64_t time,
			uint32_t bytes)
{
	return cn_topo_transit(cn_topo_share(t, t->hosts, n, exchange), time, bytes);
}

/* 8x2 at 100 Mbit/s with uplinks of 1 Gbit/s: 1,500 bytes take 120 us and 12 us. */
static void transit__share_of_the_busiest_link(void **state)
{
	struct cn_topo *t = shape("8x2", 43, 45);
	const uint32_t n = t->nhosts;

	(void)state;
	/* In an exchange the hosts' own links are the busiest: 64 / 15 frames a step take 51 us. */
	assert_int_equal(transit(t, n, true, 120 * 1000, 1500), 1);
	assert_int_equal(transit(t, n, true, 119 * 1000, 1500), 0);
	assert_int_equal(transit(t, n, true, 1200 * 1000, 1500), 10);
	assert_int_equal(transit(t, n, false, 1200 * 1000, 1500), 10);
	assert_int_equal(transit(t, n, false, UINT64_MAX, 68), 65535);
	for (uint32_t i = 0; i < t->nlinks; i++) { /* uplinks as slow: 64 / 15 * 120 us */
		t->links[i].rate = 100000000;
	}
	assert_int_equal(transit(t, n, true, 1200 * 1000, 1500), 2);
	assert_int_equal(transit(t, n, false, 1200 * 1000, 1500), 10);
	for (uint32_t i = 0; i < t->nlinks; i++) {
		t->links[i].rate = 0;
	}
	assert_int_equal(transit(t, n, true, 1200 * 1000, 1500), 0);
	assert_int_equal(transit(t, 1, false, 1200 * 1000, 1500), 0);
	cn_topo_free(t);
}

/* All frames at once come to a port at the mean rate of those who send through it. */
static void burst__what_ports_hold(void **state)
{
	/* hosts of 1 Gbit/s and 43 frames, uplinks of so many Gbit/s and 45 */
	static const struct {
		const char *shape;
		uint64_t uplink;
		uint32_t frames;
	} want[] = {
		{ "8x2", 2, 0 },  /* 64 frames come at 4.27 Gbit/s: 34 are left, of 33.75 */
		{ "8x2", 3, 1 },  /* 19 */
		{ "8x2", 4, 2 },  /* 4; and 32.25 / 15 of a host's port */
		{ "8x2", 10, 2 }, /* none */
		{ "4x4", 3, 2 },  /* 48 at 3.2 */
		{ "12x2", 5, 0 }, /* 144 at 6.26: 29, and 7 more when all hosts send across */
		{ "12x2", 6, 1 }, /* 6, and 6 */
		{ "33", 1, 1 },	  /* 32.25 / 32 */
		{ "34", 1, 0 },	  { "2", 1, 32 }, { "1", 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct cn_topo *t = NULL;

		assert_int_equal(cn_topo_shape(want[i].shape, 1000000000, 43,
					       want[i].uplink * 1000000000, 45, &t, NULL),
				 0);
		assert_int_equal(cn_topo_burst(t, t->hosts, t->nhosts), want[i].frames);
		for (uint32_t k = 0; k < t->nlinks; k++) {
			t->links[k].rate = 0;
		}
		/* nothing is known to have left a port: 33.75 / 64, 33.75 / 48 */
		assert_int_equal(cn_topo_burst(t, t->hosts, t->nhosts),
				 strchr(want[i].shape, 'x') != NULL ? 0 : want[i].frames);
		cn_topo_input_buffered(t);
		assert_int_equal(cn_topo_burst(t, t->hosts, t->nhosts),
				 strchr(want[i].shape, 'x') != NULL ? 0 : want[i].frames);
		cn_topo_free(t);
	}
}

/* The frames in flight of all who send through the port of a slowest link collect there. */
static void window__slowest_links(void **state)
{
	/* Hosts of 1 Gbit/s and 43 frames, and one host with another cable. */
	static const struct {
		const char *shape;
		uint64_t uplink, cable; /* Mbit/s */
		uint32_t slowest, exchange;
	} want[] = {
		{ "16", 1000, 1000, 45, 21 }, /* 43, and two in cables; Eq. 4: 43 / 2 */
		{ "16", 1000, 950, 44, 21 },  /* meant to be equal */
		{ "16", 1000, 850, 4, 4 },    /* 43 / 15 + 2 * 0.85 */
		{ "16", 1000, 100, 3, 3 },    /* 43 / 15 + 2 * 0.1 */
		{ "45", 1000, 100, 1, 1 },    /* 43 / 44 + 2 * 0.1 */
		{ "8x2", 1000, 1000, 11, 5 }, /* 45 / 4 + 2 * 15 / 64: of four ports in two rows */
		{ "8x2", 10000, 100, 3, 3 },
		{ "2", 1000, 1000, 690, 344 }, /* 1/16 waits, as above */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct cn_topo *t = NULL;
		uint32_t link, w;

		assert_int_equal(cn_topo_shape(want[i].shape, 1000000000, 43,
					       want[i].uplink * 1000000, 45, &t, NULL),
				 COLLNET_OK);
		w = t->vertices[t->hosts[1]].parent_link;
		t->links[w].rate = want[i].cable * 1000000;
		if (cn_topo_slowest_window(t, t->hosts, t->nhosts, 0, 1, &link) !=
			    want[i].slowest ||
		    cn_topo_exchange_window(t, t->hosts, t->nhosts, 0, 1) != want[i].exchange) {
			fail_msg("case %zu: %u, %u", i,
				 cn_topo_slowest_window(t, t->hosts, t->nhosts, 0, 1, &link),
				 cn_topo_exchange_window(t, t->hosts, t->nhosts, 0, 1));
		}
		if (want[i].cable < 900) {
			assert_int_equal(link, w);
		}
		cn_topo_free(t);
	}
}

/* Two frames where Eq. 4 allows one: where links are fast enough that data acknowledges, and
 * ports hold more than the mean of what waits. */
static void window__holds_two(void **state)
{
	static const struct {
		const char *shape;
		uint32_t mbit, uplink, buffer, uplink_buffer;
		bool input, two;
	} want[] = {
		{ "24x2", 100, 1000, 43, 45, false, true },
		{ "20x3", 100, 1000, 43, 45, false, true },
		{ "16x4", 100, 1000, 43, 45, false, true },
		{ "16x4", 20, 200, 43, 45, false, false }, /* a turn takes 46 ms */
		{ "24x2", 100, 1000, 43, 45, true, false },
		{ "24x2", 100, 0, 43, 45, false, false },
		{ "24x2", 100, 300, 43, 45, false, false },  /* 24 * 1.5 frames, and 24 more */
		{ "33x3", 100, 600, 43, 45, false, false },  /* 33 * 1.46 */
		{ "35x2", 100, 1000, 43, 45, false, false }, /* 35 * 0.87, and 22 more */
		{ "16x4", 100, 1000, 7, 45, false, false },  /* 2 frames, and 6 more */
		{ "48x2", 100, 1000, 43, 45, false, false }, /* 1 without control frames */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct cn_topo *t = NULL;
		uint32_t window;

		assert_int_equal(cn_topo_shape(want[i].shape, want[i].mbit * UINT64_C(1000000),
					       want[i].buffer, want[i].uplink * UINT64_C(1000000),
					       want[i].uplink_buffer, &t, NULL),
				 COLLNET_OK);
		if (want[i].input) {
			cn_topo_input_buffered(t);
		}
		assert_int_equal(cn_topo_window(t, t->hosts, t->nhosts, 2, NULL), 1);
		window = cn_topo_exchange_window(t, t->hosts, t->nhosts, 0, 1);
		if (window != (want[i].two ? 2 : 1) ||
		    cn_topo_holds_two(t, t->hosts, t->nhosts) != want[i].two) {
			fail_msg("case %zu: %u", i, window);
		}
		cn_topo_free(t);
	}
}

static void window__slowest_uplink(void **state)
{
	/* two hosts of five behind the one link: 45 / 3 + 2 * 4 / 6 */
	static const char text[] = "switch a\nswitch b\nlink a b rate 1gbit buffer 45\n"
				   "host p\nhost q\nhost x\nhost y\nhost z\n"
				   "link p a rate 1gbit buffer 43\nlink q a rate 1gbit buffer 43\n"
				   "link x b rate 1gbit buffer 43\nlink y b rate 1gbit buffer 43\n"
				   "link z b rate 1gbit buffer 43\n";
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	uint32_t link;

	(void)state;
	assert_int_equal(cn_topo_parse(text, sizeof(text) - 1, "t", &t, &err), 0);
	assert_int_equal(cn_topo_slowest_window(t, t->hosts, 5, 0, 1, &link), 16);
	assert_int_equal(link, 0);
	t->links[1].rate = 0; /* what takes no time */
	assert_int_equal(cn_topo_slowest_window(t, t->hosts, 5, 0, 1, &link), 16);
	for (uint32_t i = 1; i < t->nlinks; t->links[i++].rate = 0) { /* of all cables: 45 / 3 */
	}
	assert_int_equal(cn_topo_slowest_window(t, t->hosts, 5, 0, 1, &link), 15);
	t->links[0].rate = 0;
	assert_true(cn_topo_slowest_window(t, t->hosts, 5, 0, 1, &link) == COLLNET_WINDOW_OFF);
	assert_int_equal(link, CN_TOPO_NONE);
	assert_true(cn_topo_slowest_window(t, t->hosts, 1, 0, 1, &link) == COLLNET_WINDOW_OFF);
	cn_topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window__of_the_paper),
		cmocka_unit_test(window__of_section_3_3),
		cmocka_unit_test(window__equation_4),
		cmocka_unit_test(window__control_frames),
		cmocka_unit_test(window__channels),
		cmocka_unit_test(window__nearly_equal_ports),
		cmocka_unit_test(window__bounds),
		cmocka_unit_test(window__names_the_bottleneck),
		cmocka_unit_test(window__unequal_switches),
		cmocka_unit_test(window__output_buffered),
		cmocka_unit_test(window__unknown_rates),
		cmocka_unit_test(window__random_trees),
		cmocka_unit_test(link_window__half_of_the_smallest),
		cmocka_unit_test(fan_in__share_of_a_port),
		cmocka_unit_test(transit__share_of_the_busiest_link),
		cmocka_unit_test(burst__what_ports_hold),
		cmocka_unit_test(window__slowest_links),
		cmocka_unit_test(window__holds_two),
		cmocka_unit_test(window__slowest_uplink),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
