/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/topo: parser, writer, shapes and the tree; any bytes give an error with a line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "topo/tree.h"
#include "topo_text.h"
#include "tools/plan/write.h"

/* What reading a file fails with; 0: nothing. */
static int read_errno;

char *__real_cn_read_all(FILE *f, size_t max, size_t *len);
char *__wrap_cn_read_all(FILE *f, size_t max, size_t *len);

char *__wrap_cn_read_all(FILE *f, size_t max, size_t *len)
{
	errno = read_errno;
	return read_errno != 0 ? NULL : __real_cn_read_all(f, max, len);
}

#define GOOD                                                                                       \
	"# two switches\n"                                                                         \
	"switch left\n"                                                                            \
	"switch right # a comment behind\n"                                                        \
	"\n"                                                                                       \
	"host a mac 02:C0:11:00:00:0a\n"                                                           \
	"\thost  b\r\n"                                                                            \
	"link left right rate 2.5gbit buffer 45\n"                                                 \
	"link a left rate 20mbit buffer 43\n"                                                      \
	"link right b rate none"

static void parse__a_small_network(void **state)
{
	struct cn_topo *t = topo_text(GOOD);
	uint32_t a = cn_topo_find(t, "a"), b = cn_topo_find(t, "b");
	uint32_t left = cn_topo_find(t, "left"), right = cn_topo_find(t, "right");

	(void)state;
	assert_int_equal(t->nvertices, 4);
	assert_int_equal(t->nlinks, 3);
	assert_int_equal(t->nhosts, 2);
	assert_int_equal(t->hosts[0], a);
	assert_int_equal(t->hosts[1], b);
	assert_int_equal(t->root, left);
	assert_int_equal(t->vertices[right].parent, left);
	assert_int_equal(t->vertices[left].hosts, 2);
	assert_int_equal(t->vertices[right].hosts, 1);
	assert_int_equal(cn_topo_switch_of(t, a), left);
	assert_int_equal(cn_topo_switch_of(t, b), right);
	assert_true(cn_topo_switch_of(t, left) == CN_TOPO_NONE);
	assert_true(cn_topo_switch_of(t, 99) == CN_TOPO_NONE);
	assert_int_equal(cn_topo_host_rate(t, a), 20000000);
	assert_int_equal(cn_topo_host_rate(t, b), 0);
	assert_int_equal(t->links[0].rate, 2500000000u);
	assert_int_equal(t->links[0].buffer, 45);
	assert_int_equal(t->links[2].buffer, 0);
	assert_true(t->vertices[a].has_mac);
	assert_memory_equal(t->vertices[a].mac, "\x02\xc0\x11\x00\x00\x0a", 6);
	assert_false(t->vertices[b].has_mac);
	assert_true(cn_topo_find(t, "c") == CN_TOPO_NONE);
	cn_topo_free(t);
}

static void parse__one_host_alone(void **state)
{
	struct cn_topo *t = topo_text("host only");

	(void)state;
	assert_int_equal(t->root, 0);
	assert_true(cn_topo_switch_of(t, 0) == CN_TOPO_NONE);
	assert_int_equal(cn_topo_host_rate(t, 0), 0);
	cn_topo_free(t);
}

/*
 * Cycles and parallel links: the tree is breadth-first from the first switch, and of two links to
 * a switch it takes the first of the file.
 */
static void parse__a_spanning_tree_of_a_graph(void **state)
{
	struct cn_topo *t = topo_text("switch r\nswitch s\nswitch t\nswitch u\nhost a\n"
				      "link t u rate 1mbit\n"
				      "link r s rate 1mbit\n"
				      "link s r rate 5mbit\n"
				      "link r t rate 1mbit\n"
				      "link s t rate 1mbit\n"
				      "link s u rate 1mbit buffer 4 channels 3\n"
				      "link a u rate 1mbit\n");
	const struct cn_vertex *v = t->vertices;
	uint32_t seen = 0;

	(void)state;
	assert_int_equal(t->nlinks, 7);
	assert_int_equal(t->root, 0);
	assert_int_equal(v[1].parent_link, 1); /* s, at the first of two links */
	assert_int_equal(v[2].parent_link, 3);
	assert_int_equal(v[3].parent_link, 5); /* u: s was reached before t */
	assert_int_equal(v[3].parent, 1);
	assert_int_equal(v[4].parent, 3);
	assert_int_equal(v[0].hosts, 1);
	assert_int_equal(v[2].hosts, 0);
	assert_int_equal(t->links[5].channels, 3);
	assert_int_equal(t->links[5].buffer, 4);
	assert_int_equal(t->links[0].channels, 1);
	for (uint32_t i = 0; i < t->nvertices; i++) {
		for (uint32_t k = t->adj_start[i]; k < t->adj_start[i + 1]; k++) {
			const struct cn_topo_link *l = &t->links[t->adj[k]];

			assert_true(l->a == i || l->b == i);
			assert_true(k == t->adj_start[i] || t->adj[k - 1] < t->adj[k]);
			seen++;
		}
	}
	assert_int_equal(seen, 2 * t->nlinks);
	cn_topo_free(t);
}

static void parse__errors_name_the_line(void **state)
{
	static const struct topo_refusal bad[] = {
		{ "", "net:1: expected at least one host" },
		{ "switch s\n", "net:1: expected at least one host" },
		{ "router r", "net:1: expected 'switch', 'host' or 'link', found 'router'" },
		{ "\n\nhost", "net:3: expected a name after 'host'" },
		{ "host a b", "net:1: expected 'mac" },
		{ "host a mac", "net:1: expected 'mac" },
		{ "host a mac 01:00:00:00:00:00", "net:1: expected 'mac" },
		{ "host a mac 00:00:00:00:00:00", "net:1: expected 'mac" },
		{ "host a mac 02:00:00:00:00:0g", "net:1: expected 'mac" },
		{ "host a mac 02:00:00:00:00-01", "net:1: expected 'mac" },
		{ "host a mac 02:00:00:00:00:01 x",
		  "net:1: expected the end of the line, found 'x'" },
		{ "switch s t",
		  "net:1: expected 'input-buffered' or the end of the line, found 't'" },
		{ "switch s input-buffered t", "net:1: expected the end of the line, found 't'" },
		{ "host a!", "net:1: expected a name of 1 to 63" },
		{ "host a\nhost a", "net:2: expected a new name: 'a' is declared in line 1" },
		{ "host a mac 02:00:00:00:00:01\nhost b mac 02:00:00:00:00:01",
		  "net:2: expected an address of its own: 'a' has this one (line 1)" },
		{ "switch s\nlink s", "net:2: expected two names after 'link'" },
		{ "switch s\nhost a\nlink s a", "net:3: expected 'rate RATE'" },
		{ "switch s\nhost a\nlink s a rate", "net:3: expected 'rate RATE'" },
		{ "switch s\nhost a\nlink s a rate 0", "net:3: expected 'rate RATE'" },
		{ "switch s\nhost a\nlink s a rate 1000000",
		  "net:3: expected 'rate RATE' with a unit, like 20mbit, from 1kbit to 100tbit" },
		{ "switch s\nhost a\nlink s a rate 101tbit", "net:3: expected 'rate RATE'" },
		{ "switch s\nhost a\nlink s a speed 1mbit", "net:3: expected 'rate RATE'" },
		{ "switch s\nhost a\nlink s a rate 1mbit buffer",
		  "net:3: expected 'buffer FRAMES'" },
		{ "switch s\nhost a\nlink s a rate 1mbit buffer 0", "net:3: expected 'buffer" },
		{ "switch s\nhost a\nlink s a rate 1mbit buffer 1000001",
		  "net:3: expected 'buffer" },
		{ "switch s\nhost a\nlink s a rate 1mbit buffer 4 5",
		  "net:3: expected 'buffer FRAMES', 'channels N' (1 to 65536) or the end of the "
		  "line, found '5'" },
		{ "switch s\nhost a\nlink s a rate 1mbit channels",
		  "net:3: expected 'buffer FRAMES', 'channels N'" },
		{ "switch s\nhost a\nlink s a rate 1mbit channels 0",
		  "net:3: expected 'buffer FRAMES', 'channels N'" },
		{ "switch s\nhost a\nlink s a rate 1mbit channels 65537",
		  "net:3: expected 'buffer FRAMES', 'channels N'" },
		{ "switch s\nhost a\nlink s a rate 1mbit channels 2 buffer 4",
		  "net:3: expected the end of the line, found 'buffer'" },
		{ "switch s\nhost a\nlink s a rate 1mbit buffer 4 channels 2 6",
		  "net:3: expected the end of the line, found '6'" },
		{ "switch s\nhost a\nlink s a rate 1mbit buffer 4 channels 2 6 7",
		  "net:3: expected the end of the line, found '7'" },
		{ "switch s\nlink s a rate 1mbit\nhost a",
		  "net:2: expected a host or switch decl" },
		{ "host a\nhost b\nlink a b rate 1mbit", "net:3: expected a switch at one end" },
		{ "switch s\nhost a\nlink s a rate 1mbit\nlink a s rate 1mbit",
		  "net:4: expected one link for host 'a'" },
		{ "switch s\nlink s s rate 1mbit\nhost a",
		  "net:2: expected two names: 's' is linked to itself" },
		{ "host a\nlink a a rate 1mbit", "net:2: expected a switch at one end" },
		{ "switch s\nswitch t\nhost a\nhost b\nlink a s rate 1kbit\nlink b t rate 1kbit\n"
		  "link a s rate 1kbit\n",
		  "net:7: expected one link for host 'a'" },
		{ "switch s\nswitch t\nswitch u\nhost a\nlink a s rate 1kbit\nlink t u rate 1kbit\n"
		  "link t u rate 1kbit\n",
		  "net:2: expected links that join 't' to 's'" },
		{ "switch s\n\nhost a\n", "net:3: expected a link: host 'a' has none" },
		{ "host a\nhost b\n", "net:2: expected a link: host 'b' has none" },
	};

	(void)state;
	topo_refused(cn_topo_parse, "net", bad, sizeof(bad) / sizeof(bad[0]));
}

static void parse__bytes_that_are_no_text(void **state)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	char word[300];

	(void)state;
	assert_int_equal(cn_topo_parse("host a\nhost \0b", 14, "net", &t, &err), COLLNET_ETOPO);
	assert_string_equal(err.text, "net:2: expected plain text, found the byte 0x00");
	memset(word, 'h', sizeof(word));
	assert_int_equal(cn_topo_parse(word, sizeof(word), "net", &t, &err), COLLNET_ETOPO);
	assert_string_equal(err.text, "net:1: expected a word of less than 128 characters");
}

static void parse__damaged_files(void **state)
{
	(void)state;
	assert_uint_in_range(topo_damaged(cn_topo_parse, "net", GOOD, 7), 10001, 20000);
}

static void shape__names_and_links(void **state)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	uint32_t s2;

	(void)state;
	assert_int_equal(cn_topo_shape("8x2", 20, 43, 200, 45, &t, &err), 0);
	assert_int_equal(t->nhosts, 16);
	assert_int_equal(t->nvertices, 19);
	assert_int_equal(t->nlinks, 18);
	assert_int_equal(t->root, cn_topo_find(t, "s0"));
	s2 = cn_topo_find(t, "s2");
	assert_int_equal(cn_topo_switch_of(t, cn_topo_find(t, "h8")), s2);
	assert_int_equal(cn_topo_switch_of(t, cn_topo_find(t, "h7")), cn_topo_find(t, "s1"));
	assert_int_equal(t->links[t->vertices[s2].parent_link].rate, 200);
	assert_int_equal(t->links[t->vertices[s2].parent_link].buffer, 45);
	assert_int_equal(cn_topo_host_rate(t, t->hosts[15]), 20);
	assert_string_equal(t->vertices[t->hosts[15]].name, "h15");
	cn_topo_free(t);
	assert_int_equal(cn_topo_shape("16", 20, 43, 200, 45, &t, &err), 0);
	assert_int_equal(t->nvertices, 17);
	assert_string_equal(t->vertices[t->root].name, "s1");
	cn_topo_free(t);
	assert_int_equal(cn_topo_shape("3x1", 20, 43, 200, 45, &t, &err), 0);
	assert_int_equal(t->nvertices, 4);
	cn_topo_free(t);
}

static void shape__refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"8x",
		"x2",
		"0",
		"0x2",
		"8x0",
		"8x2x1",
		"8X2",
		"-1",
		"8 x2",
		"200000",
		"1000x1000",
		"99999999999999999999x2",
		"000000000000000000000000008",
	};
	struct cn_topo *t = NULL;
	struct cn_err err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&err, 0, sizeof(err));
		assert_int_equal(cn_topo_shape(bad[i], 1, 1, 1, 1, &t, &err), COLLNET_ETOPO);
		assert_null(t);
		assert_non_null(strstr(err.text, "expected"));
	}
}

static void same_topology(const struct cn_topo *a, const struct cn_topo *b)
{
	uint32_t i;

	assert_int_equal(a->nvertices, b->nvertices);
	assert_int_equal(a->nlinks, b->nlinks);
	for (i = 0; i < a->nvertices; i++) {
		assert_string_equal(a->vertices[i].name, b->vertices[i].name);
		assert_int_equal(a->vertices[i].is_switch, b->vertices[i].is_switch);
		assert_int_equal(a->vertices[i].input_buffered, b->vertices[i].input_buffered);
		assert_int_equal(a->vertices[i].has_mac, b->vertices[i].has_mac);
		assert_memory_equal(a->vertices[i].mac, b->vertices[i].mac, 6);
		assert_int_equal(a->vertices[i].parent, b->vertices[i].parent);
	}
	for (i = 0; i < a->nlinks; i++) {
		assert_int_equal(a->links[i].a, b->links[i].a);
		assert_int_equal(a->links[i].b, b->links[i].b);
		assert_true(a->links[i].rate == b->links[i].rate);
		assert_int_equal(a->links[i].buffer, b->links[i].buffer);
		assert_int_equal(a->links[i].channels, b->links[i].channels);
	}
}

static void write__reads_back_the_same(void **state)
{
	static const char *const texts[] = {
		GOOD,
		"host only mac aa:bb:cc:dd:ee:ff",
		"switch s\nhost a\nlink s a rate 12345bit\n",
		("switch s input-buffered\nswitch t\nhost a\nlink s a rate none channels 2\n"
		 "link s t rate 1gbit buffer 9 channels 65536\nlink t s rate 1kbit\n"),
	};
	struct cn_topo *t, *again;
	struct cn_err err = { 0 };
	size_t i, len;
	char *text;
	FILE *f;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		t = topo_text(texts[i]);
		f = open_memstream(&text, &len);
		assert_non_null(f);
		assert_int_equal(cn_topo_write(t, f), 0);
		fclose(f);
		again = NULL;
		assert_int_equal(cn_topo_parse(text, len, "again", &again, &err), 0);
		same_topology(t, again);
		free(text);
		cn_topo_free(t);
		cn_topo_free(again);
	}
}

static void write__full_disk(void **state)
{
	struct cn_topo *t = topo_text(GOOD);
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(f);
	assert_int_equal(cn_topo_write(t, f), COLLNET_ESYSTEM);
	fclose(f);
	cn_topo_free(t);
}

static void read__files(void **state)
{
	char path[] = "/tmp/test_topo.XXXXXX", expected[100];
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, GOOD, strlen(GOOD)), strlen(GOOD));
	assert_int_equal(cn_topo_read(path, &t, &err), 0);
	assert_int_equal(t->nhosts, 2);
	cn_topo_free(t);
	t = NULL;
	assert_int_equal(write(fd, "\nlink x", 7), 7);
	assert_int_equal(cn_topo_read(path, &t, &err), COLLNET_ETOPO);
	snprintf(expected, sizeof(expected), "%s:10: expected two names after 'link'", path);
	assert_string_equal(err.text, expected);
	close(fd);
	unlink(path);
	assert_int_equal(cn_topo_read(path, &t, &err), COLLNET_ETOPO);
	assert_non_null(strstr(err.text, "No such file"));
	assert_int_equal(cn_topo_read("/", &t, &err), COLLNET_ETOPO);
	assert_non_null(strstr(err.text, "Is a directory"));
	assert_null(t);
}

/* Only what is wrong with the file is an error of it. */
static void read__short_of_memory(void **state)
{
	static const struct {
		int e, code;
	} want[] = { { ENOMEM, COLLNET_ENOMEM },
		     { EMFILE, COLLNET_ESYSTEM },
		     { ENFILE, COLLNET_ESYSTEM },
		     { EIO, COLLNET_ETOPO } };
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		read_errno = want[i].e;
		assert_int_equal(cn_topo_read("/", &t, &err), want[i].code);
		assert_non_null(strstr(err.text, "cannot read the topology file /: "));
	}
	read_errno = 0;
	assert_null(t);
}

/* Messages of an all-to-all each way over the busiest link. */
static uint64_t all_to_all_load(const struct cn_topo *t)
{
	uint64_t most = 0, load;

	for (uint32_t i = 1; i < t->nvertices; i++) {
		load = t->vertices[t->order[i]].hosts;
		load *= t->nhosts - load;
		most = load > most ? load : most;
	}
	return most;
}

/*
 * The networks of the papers' experiments that are installed as examples: hosts, switches, the load
 * that decides the time of an all-to-all, and the switches on the longest path. The loads of
 * aapc-b and aapc-c have the ratio of the times measured there, 6396 ms / 4836 ms.
 */
static void read__the_papers_networks(void **state)
{
	static const struct {
		const char *name;
		uint32_t hosts, switches, load, longest;
	} files[] = {
		{ "aapc-a", 24, 1, 23, 1 },   { "aapc-b", 32, 4, 192, 3 },
		{ "aapc-c", 32, 4, 256, 4 },  { "aapc-figure-1", 6, 3, 9, 3 },
		{ "rings-a", 16, 1, 15, 1 },  { "rings-b", 16, 2, 64, 2 },
		{ "rings-c", 16, 4, 48, 3 },  { "rings-d", 16, 4, 64, 4 },
		{ "rings-e", 32, 4, 256, 4 }, { "rings-f", 32, 4, 256, 4 },
	};
	const char *source = getenv("COLLNET_SOURCE");
	struct cn_err err = { 0 };
	char path[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct cn_topo *t = NULL;
		struct cn_tree *tree = NULL;
		uint32_t longest = 0, hops;

		snprintf(path, sizeof(path), "%s/examples/topologies/%s.topo",
			 source != NULL ? source : ".", files[i].name);
		if (cn_topo_read(path, &t, &err) != 0 ||
		    cn_tree_make(t, t->hosts, t->nhosts, CN_TOPO_NONE, &tree, &err) != 0) {
			fail_msg("%s", err.text);
		}
		assert_int_equal(t->nhosts, files[i].hosts);
		assert_int_equal(t->nvertices - t->nhosts, files[i].switches);
		assert_int_equal(cn_topo_unused(t), 0);
		assert_int_equal(all_to_all_load(t), files[i].load);
		for (uint32_t a = 0; a < t->nhosts; a++) {
			snprintf(path, sizeof(path), "n%u", a);
			assert_string_equal(cn_tree_node_name(tree, a), path);
			for (uint32_t b = 0; b < t->nhosts; b++) {
				hops = cn_tree_hops(tree, a, b);
				longest = hops > longest ? hops : longest;
			}
		}
		for (uint32_t k = 0; k < t->nlinks; k++) {
			assert_int_equal(t->links[k].rate, 100000000);
		}
		assert_int_equal(longest, files[i].longest);
		cn_tree_free(tree);
		cn_topo_free(t);
	}
}

/* A chain of 99,000 switches: nothing recurses, and it takes no more than linear time. */
static void parse__a_long_chain(void **state)
{
	const uint32_t n = 99000;
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	char *text = NULL;
	size_t len;
	uint32_t i;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	fprintf(f, "switch s0\nhost a\nhost b\nlink a s0 rate 1mbit buffer 43\n");
	for (i = 1; i < n; i++) {
		fprintf(f, "switch s%u\nlink s%u s%u rate 1mbit buffer 40\n", i, i - 1, i);
	}
	fprintf(f, "link b s%u rate 1mbit buffer 43\n", n - 1);
	fclose(f);
	if (cn_topo_parse(text, len, "chain", &t, &err) != 0) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(t->vertices[t->root].hosts, 2);
	assert_int_equal(cn_topo_window(t, t->hosts, 2, 2, NULL), 320); /* 16 times 40 / 2 */
	cn_topo_input_buffered(t);
	assert_int_equal(cn_topo_window(t, t->hosts, 2, 2, NULL), 20);
	cn_topo_free(t);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__a_small_network),
		cmocka_unit_test(parse__one_host_alone),
		cmocka_unit_test(parse__a_spanning_tree_of_a_graph),
		cmocka_unit_test(parse__errors_name_the_line),
		cmocka_unit_test(parse__bytes_that_are_no_text),
		cmocka_unit_test(parse__damaged_files),
		cmocka_unit_test(shape__names_and_links),
		cmocka_unit_test(shape__refuses),
		cmocka_unit_test(write__reads_back_the_same),
		cmocka_unit_test(write__full_disk),
		cmocka_unit_test(read__files),
		cmocka_unit_test(read__short_of_memory),
		cmocka_unit_test(read__the_papers_networks),
		cmocka_unit_test(parse__a_long_chain),
	};

	return cmocka_run_group_tests_name("topo", tests, NULL, NULL);
}
