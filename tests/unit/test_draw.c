/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tools/plan/draw: everything is in the drawing once, no box covers another one, hosts are in one
 * row and in the order of the tree; any title is quoted; and dot accepts it where it is installed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topo/tree.h"
#include "topo_text.h"
#include "tools/plan/draw.h"

#define SEED 20260809u

struct box {
	char name[160];
	double x, y, w, h;
	bool is_host;
};

static char *draw(const struct cn_topo *t, const struct cn_drawn *m, uint32_t n, const char *title)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(cn_topo_draw(t, m, n, title, f), 0);
	fclose(f);
	return text;
}

static uint32_t count(const char *text, const char *what)
{
	uint32_t n = 0;

	for (; (text = strstr(text, what)) != NULL; text += strlen(what)) {
		n++;
	}
	return n;
}

/* The boxes of the vertices; how many. */
static uint32_t boxes_of(const char *text, struct box *boxes, uint32_t cap)
{
	uint32_t n = 0;

	for (const char *p = strchr(text, '\n'); p != NULL && p[1] != '\0';
	     p = strchr(p + 1, '\n')) {
		struct box *b = &boxes[n];

		if (sscanf(p + 1, "\t\"%150[^\"]\" [pos=\"%lf,%lf\" width=%lf height=%lf", b->name,
			   &b->x, &b->y, &b->w, &b->h) == 5) {
			b->w *= 72;
			b->h *= 72;
			b->is_host = strncmp(strstr(p, "style="), "style=\"rounded", 14) == 0;
			assert_true(++n < cap);
		}
	}
	return n;
}

static void check_boxes(const struct cn_topo *t, const char *text)
{
	struct box *boxes = calloc(t->nvertices + 1, sizeof(*boxes));
	double row = 1;
	uint32_t n;

	assert_non_null(boxes);
	n = boxes_of(text, boxes, t->nvertices + 1);
	assert_int_equal(n, t->nvertices);
	for (uint32_t i = 0; i < n; i++) {
		const struct box *a = &boxes[i];

		assert_string_equal(a->name, t->vertices[i].name);
		assert_int_equal(a->is_host, !t->vertices[i].is_switch);
		if (a->is_host) {
			assert_true(row == 1 || row == a->y);
			row = a->y;
		}
		for (uint32_t k = 0; k < i; k++) {
			const struct box *b = &boxes[k];
			double dx = a->x < b->x ? b->x - a->x : a->x - b->x;
			double dy = a->y < b->y ? b->y - a->y : a->y - b->y;

			if (dx < (a->w + b->w) / 2 + 3 && dy < (a->h + b->h) / 2 + 3) {
				fail_msg("%s covers %s", a->name, b->name);
			}
		}
	}
	free(boxes);
}

/* Random graphs with names of all lengths. */
static struct cn_topo *random_topo(uint64_t *seed)
{
	uint32_t switches = 1 + (uint32_t)(cn_random(seed) % 12);
	uint32_t hosts = 1 + (uint32_t)(cn_random(seed) % 30);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	struct cn_topo *t;
	bool wide = cn_random(seed) % 2;

	assert_non_null(f);
	for (uint32_t i = 0; i < switches; i++) {
		fprintf(f, "switch s%0*u\n", wide ? 1 + (int)((i * 7) % 60) : 1, i);
		for (uint32_t k = 0; k < 2 && i > 0; k++) {
			uint32_t j = (uint32_t)(cn_random(seed) % i);

			fprintf(f, "link s%0*u s%0*u rate 1gbit channels %u\n",
				wide ? 1 + (int)((i * 7) % 60) : 1, i,
				wide ? 1 + (int)((j * 7) % 60) : 1, j, 1 + k);
		}
	}
	for (uint32_t i = 0; i < hosts; i++) {
		uint32_t j = (uint32_t)(cn_random(seed) % switches);

		fprintf(f, "host h%u\nlink h%u s%0*u rate %s\n", i, i,
			wide ? 1 + (int)((j * 7) % 60) : 1, j, i % 3 == 0 ? "none" : "100mbit");
	}
	fclose(f);
	t = topo_text(text);
	free(text);
	return t;
}

static void draw__no_box_covers_another(void **state)
{
	uint64_t seed = SEED;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int round = 0; round < 300; round++) {
		struct cn_topo *t = random_topo(&seed);
		char *text = draw(t, NULL, 0, NULL);

		check_boxes(t, text);
		assert_int_equal(count(text, " -> "), t->nlinks);
		assert_int_equal(count(text, "style=dashed"), cn_topo_unused(t));
		free(text);
		cn_topo_free(t);
	}
}

/* A switch's hosts are in the order of the tree from left to right; switches are below others. */
static void draw__in_the_order_of_the_tree(void **state)
{
	uint64_t seed = SEED;
	struct box boxes[64];

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct cn_topo *t = random_topo(&seed);
		struct cn_tree *tree = NULL;
		struct cn_err err = { 0 };
		char *text = draw(t, NULL, 0, "order");
		double before;

		assert_int_equal(boxes_of(text, boxes, 64), t->nvertices);
		for (uint32_t i = 0; i < t->nvertices; i++) {
			uint32_t p = t->vertices[i].parent;

			if (t->vertices[i].is_switch && p != CN_TOPO_NONE) {
				assert_true(boxes[i].y < boxes[p].y);
			}
		}
		assert_int_equal(cn_tree_make(t, t->hosts, t->nhosts, t->root, &tree, &err), 0);
		for (uint32_t s = 0; s < tree->n; s++) {
			const struct cn_tree_vertex *v = &tree->v[s];

			before = -1;
			for (uint32_t k = 0; k < v->nchildren; k++) {
				const struct cn_tree_vertex
					*c = &tree->v[tree->children[v->first_child + k]];

				if (c->node != CN_TOPO_NONE) {
					assert_true(boxes[c->vertex].x > before);
					before = boxes[c->vertex].x;
				}
			}
		}
		cn_tree_free(tree);
		free(text);
		cn_topo_free(t);
	}
}

static void draw__an_8x4_with_its_ring(void **state)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	struct cn_drawn m[32];
	char *text;

	(void)state;
	assert_int_equal(cn_topo_shape("8x4", 100000000, 43, 2500000000, 45, &t, &err), 0);
	for (uint32_t i = 0; i < 32; i++) {
		m[i] = (struct cn_drawn){ .from = t->hosts[i],
					  .to = t->hosts[(i + 1) % 32],
					  .colour = i / 8,
					  .label = i == 5 ? "five" : NULL };
	}
	text = draw(t, m, 32, "8x4: ring");
	check_boxes(t, text);
	assert_int_equal(count(text, "dir=forward"), 32);
	assert_int_equal(count(text, " -> "), t->nlinks + 32);
	assert_int_equal(count(text, "\"h31\" -> \"h0\""), 1);
	assert_int_equal(count(text, "label=\"2.5 Gbit/s\""), 4);
	assert_int_equal(count(text, "8 hosts, 100 Mbit/s"), 4);
	assert_int_equal(count(text, "45 frames per port"), 4);
	assert_int_equal(count(text, "label=\"five\""), 1);
	assert_int_equal(count(text, "color=\"#009e73\"]"), 8);
	assert_int_equal(count(text, "label=\"8x4: ring\""), 1);
	free(text);
	cn_topo_free(t);
}

static void draw__words_and_what_cannot_be_drawn(void **state)
{
	struct cn_topo *t = topo_text("switch s\nswitch u\nhost a\nhost b\nlink a s rate 1500bit\n"
				      "link b s rate none\nlink u s rate 40gbit channels 2\n"
				      "link s u rate none channels 3\n");
	const struct cn_drawn m[] = {
		{ .from = 2, .to = 2 },	 { .from = 0, .to = 2 },
		{ .from = 2, .to = 1 },	 { .from = 99, .to = 2 },
		{ .from = 2, .to = 99 }, { .from = 2, .to = 3, .colour = 50, .label = "a\"b" },
	};
	char *text = draw(t, m, 6, "say \"hi\" \\ to\nall\x01");

	(void)state;
	assert_int_equal(count(text, "dir=forward"), 1);
	assert_int_equal(count(text, "\"a\\\"b\""), 1);
	assert_int_equal(count(text, "\"say \\\"hi\\\" \\\\ to\\nall \""), 1);
	assert_int_equal(count(text, "2 hosts, 1.5 kbit/s<"), 1);
	assert_int_equal(count(text, "label=\"2 \xc3\x97 40 Gbit/s\""), 1);
	assert_int_equal(count(text, "3 channels"), 1);
	free(text);
	cn_topo_free(t);
	t = topo_text("host only");
	text = draw(t, NULL, 0, "one");
	check_boxes(t, text);
	free(text);
	cn_topo_free(t);
}

static void draw__full_disk(void **state)
{
	struct cn_topo *t = topo_text("host only");
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(f);
	assert_int_equal(cn_topo_draw(t, NULL, 0, NULL, f), COLLNET_ESYSTEM);
	fclose(f);
	cn_topo_free(t);
}

/* dot takes it without a word, and draws every arrow. */
static void draw__dot_renders_it(void **state)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	struct cn_drawn m[32];
	char out[256];
	uint32_t polygons = 0;
	FILE *f, *p;
	char path[] = "/tmp/test_draw.XXXXXX", command[200];
	int fd;

	(void)state;
	if (system("command -v dot >/dev/null 2>&1") != 0) {
		print_message("skipped: dot is not installed\n");
		skip();
	}
	assert_int_equal(cn_topo_shape("8x4", 0, 0, 0, 0, &t, &err), 0);
	for (uint32_t i = 0; i < 32; i++) {
		m[i] = (struct cn_drawn){ .from = t->hosts[i],
					  .to = t->hosts[(i + 9) % 32],
					  .colour = i };
	}
	fd = mkstemp(path);
	assert_true(fd >= 0);
	f = fdopen(fd, "w");
	assert_non_null(f);
	assert_int_equal(cn_topo_draw(t, m, 32, "ring", f), 0);
	fclose(f);
	snprintf(command, sizeof(command), "dot -Tsvg %s 2>&1", path);
	p = popen(command, "r");
	assert_non_null(p);
	while (fgets(out, sizeof(out), p) != NULL) {
		assert_null(strstr(out, "Warning"));
		assert_null(strstr(out, "rror"));
		polygons += strncmp(out, "<polygon", 8) == 0;
	}
	assert_int_equal(pclose(p), 0);
	remove(path);
	/* background, five switches and 32 heads of arrows; hosts are rounded paths */
	assert_int_equal(polygons, 1 + 5 + 32);
	cn_topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draw__no_box_covers_another),
		cmocka_unit_test(draw__in_the_order_of_the_tree),
		cmocka_unit_test(draw__an_8x4_with_its_ring),
		cmocka_unit_test(draw__words_and_what_cannot_be_drawn),
		cmocka_unit_test(draw__full_disk),
		cmocka_unit_test(draw__dot_renders_it),
	};

	return cmocka_run_group_tests_name("draw", tests, NULL, NULL);
}
