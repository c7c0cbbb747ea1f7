/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The papers' experiments in virtual time, each with its few quick points: files, columns, values
 * that can be, and the guarantees that hold at any size. And their networks, which are also files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/papers/papers.h"
#include "tools/papers/sim.h"

#define SEED	5u
#define ROWS	256
#define COLUMNS 24

struct table {
	char text[65536];
	char *cell[ROWS][COLUMNS];
	size_t rows, columns;
};

/* Cuts the text; every row must have as many cells as the line of names. */
static void cut(struct table *t)
{
	char *p = t->text;

	t->rows = t->columns = 0;
	while (*p != '\0') {
		char *end = strchr(p, '\n');
		size_t n = 0;

		assert_non_null(end);
		*end = '\0';
		assert_true(t->rows < ROWS);
		for (char *c = p; c != NULL; n++) {
			char *comma = strchr(c, ',');

			assert_true(n < COLUMNS);
			t->cell[t->rows][n] = c;
			if (comma != NULL) {
				*comma++ = '\0';
			}
			c = comma;
		}
		if (t->rows == 0) {
			t->columns = n;
		}
		assert_int_equal(n, t->columns);
		t->rows++;
		p = end + 1;
	}
}

static size_t column(const struct table *t, const char *name)
{
	for (size_t c = 0; c < t->columns; c++) {
		if (strcmp(t->cell[0][c], name) == 0) {
			return c;
		}
	}
	fail_msg("no column %s", name);
	return 0;
}

static double number(const struct table *t, size_t row, const char *name)
{
	const char *text = t->cell[row][column(t, name)];
	char *end;
	double v = strtod(text, &end);

	if (*text == '\0' || *end != '\0') {
		fail_msg("row %zu: %s is '%s'", row, name, text);
	}
	return v;
}

/* The row whose cells are these. */
static size_t row_of(const struct table *t, const char *name, const char *value, const char *name2,
		     const char *value2)
{
	for (size_t r = 1; r < t->rows; r++) {
		if (strcmp(t->cell[r][column(t, name)], value) == 0 &&
		    strcmp(t->cell[r][column(t, name2)], value2) == 0) {
			return r;
		}
	}
	fail_msg("no row with %s %s and %s %s", name, value, name2, value2);
	return 0;
}

/* Runs it quickly into a directory of its own, reads the table, and sees that the plot's script is
 * there too. */
static void run(const char *name, struct table *t)
{
	char dir[] = "/tmp/collnet-test-XXXXXX", path[128];
	static const char *const endings[] = { "csv", "gp", "svg" };
	struct cn_err err = { 0 };
	FILE *f, *quiet = fopen("/dev/null", "w");
	size_t n;

	assert_non_null(quiet);
	assert_non_null(mkdtemp(dir));
	if (experiment_run(name, SEED, true, dir, quiet, &err) != COLLNET_OK) {
		fail_msg("%s: %s", name, err.text);
	}
	fclose(quiet);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s.%s", dir, name, endings[i]);
		f = fopen(path, "r");
		if (i == 0) {
			assert_non_null(f);
			n = fread(t->text, 1, sizeof(t->text) - 1, f);
			t->text[n] = '\0';
			assert_true(n > 0 && n < sizeof(t->text) - 1);
		} else if (i == 1) {
			assert_non_null(f);
		}
		if (f != NULL) {
			fclose(f);
			unlink(path);
		}
	}
	assert_int_equal(rmdir(dir), 0);
	cut(t);
	print_message("%s: %zu rows\n", name, t->rows - 1);
}

static struct table table;

#ifdef __SANITIZE_ADDRESS__
#define EVERY 2 /* half of them: the build without sanitizers runs all */
#else
#define EVERY 1
#endif

/* Each endpoint of a simulated node has room for messages of 200 MiB, of which no page is used. */
static bool has_room(const char *name)
{
	return SIZE_MAX > UINT32_MAX || strcmp(name, "exchange-6") != 0;
}

/* Every experiment: rows, no failed rank, times that are times, fractions that can be. */
static void experiments__every_one(void **state)
{
	static const struct {
		const char *name;
		size_t rows;
	} want[] = {
		{ "exchange-5", 3 * 2 },   { "exchange-6", 3 * 2 },
		{ "exchange-7", 12 * 2 },  { "exchange-8", 12 * 2 },
		{ "exchange-9", 12 * 2 },  { "exchange-10", 12 * 2 },
		{ "aapc-6", 4 * 2 },	   { "aapc-7", 4 * 2 },
		{ "aapc-8", 4 * 2 },	   { "rings-9", 4 * 3 * 2 + 3 * 2 },
		{ "rings-10", 2 * 3 * 2 }, { "rings-table-1", 3 * 2 },
		{ "smp-5.1", 4 },	   { "smp-5.2", 4 },
		{ "smp-5.3", 4 },	   { "smp-5.4", 4 },
		{ "loss", 2 * 2 * 2 },	   { "scale", 4 + 2 },
	};
	size_t n = 0;

	(void)state;
	for (; experiment_name(EXPERIMENT_SIMULATED, n) != NULL; n++) {
		assert_true(n < sizeof(want) / sizeof(want[0]));
		assert_string_equal(experiment_name(EXPERIMENT_SIMULATED, n), want[n].name);
		if (n % EVERY != 0 || !has_room(want[n].name)) {
			continue;
		}
		run(want[n].name, &table);
		assert_int_equal(table.rows - 1, want[n].rows);
		for (size_t r = 1; r < table.rows; r++) {
			bool smp = strncmp(want[n].name, "smp", 3) == 0;
			double ms = number(&table, r, smp ? "smp_ms" : "ms");

			assert_true(ms > 0.1 && ms < 60000);
			for (size_t c = 0; c < table.columns; c++) {
				const char *column_name = table.cell[0][c];

				/* the mean of the ranks may be a little below the bound */
				if (strncmp(column_name, "percent_of_", 11) == 0) {
					double percent = number(&table, r, column_name);

					assert_true(percent > 1 && percent < 102);
				} else if (strcmp(column_name, "failed_ranks") == 0) {
					assert_string_equal(table.cell[r][c], "0");
				}
			}
		}
	}
	assert_int_equal(n, sizeof(want) / sizeof(want[0]));
}

static void exchange_5__shuffle_before_pairwise(void **state)
{
	size_t sync, pair;

	(void)state;
	run("exchange-5", &table);
	sync = row_of(&table, "line", "sync+GW", "bytes", "1024");
	pair = row_of(&table, "line", "pair", "bytes", "1024");
	assert_true(number(&table, sync, "ms") < number(&table, pair, "ms"));
	sync = row_of(&table, "line", "sync+GW", "bytes", "16384");
	assert_true(number(&table, sync, "percent_of_best") > 95);
	assert_true(number(&table, sync, "drops") < 1);
	assert_true(number(&table, sync, "paper_percent") > 96.9);
}

static void aapc_8__best_on_the_chain(void **state)
{
	size_t ours, lam;

	(void)state;
	run("aapc-8", &table);
	ours = row_of(&table, "routine", "aapc", "bytes", "16384");
	lam = row_of(&table, "routine", "LAM", "bytes", "16384");
	assert_true(number(&table, ours, "ms") < number(&table, lam, "ms"));
	assert_true(number(&table, ours, "paper_ms") > 442.9 &&
		    number(&table, ours, "paper_ms") < 443.1);
	assert_true(number(&table, lam, "drops") > 0);
	assert_true(number(&table, ours, "drops") < 1);
}

static void rings_10__numbers_decide(void **state)
{
	size_t lr1, ring;

	(void)state;
	run("rings-10", &table);
	/* (e): the ring by numbers is LR1; (f): LR1 is as good, and the other many times slower. */
	lr1 = row_of(&table, "network", "e", "routine", "LR1");
	ring = row_of(&table, "network", "e", "routine", "MPICH");
	assert_string_equal(table.cell[lr1][3], table.cell[ring][3]);
	assert_string_equal(table.cell[0][3], "ms");
	ring = row_of(&table, "network", "f", "routine", "MPICH");
	assert_true(number(&table, ring, "ms") > 5 * number(&table, lr1, "ms"));
	lr1 = row_of(&table, "network", "f", "routine", "LR1");
	assert_true(number(&table, ring, "ms") > 5 * number(&table, lr1, "ms"));
}

static void smp__before_binomial(void **state)
{
	(void)state;
	run("smp-5.1", &table);
	for (size_t r = 1; r < table.rows; r++) {
		assert_true(number(&table, r, "smp_ms") < number(&table, r, "binomial_ms"));
		assert_true(number(&table, r, "saved_percent") > 20);
	}
}

static void run__unknown_name(void **state)
{
	struct cn_err err = { 0 };

	(void)state;
	assert_int_equal(experiment_run("exchange-4", 1, true, "/tmp", stdout, &err),
			 COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "exchange-4"));
}

/* The same network, host by host, as the file; rates too. */
static void same_as_file(struct cn_topo *t, const char *file)
{
	const char *source = getenv("COLLNET_SOURCE");
	struct cn_err err = { 0 };
	struct cn_topo *want;
	char path[512];

	snprintf(path, sizeof(path), "%s/examples/topologies/%s.topo",
		 source != NULL ? source : ".", file);
	if (cn_topo_read(path, &want, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(t->nhosts, want->nhosts);
	assert_int_equal(t->nvertices, want->nvertices);
	assert_int_equal(t->nlinks, want->nlinks);
	for (uint32_t v = 0; v < t->nvertices; v++) {
		uint32_t w = cn_topo_find(want, t->vertices[v].name), up = t->vertices[v].parent;

		assert_true(w != CN_TOPO_NONE);
		assert_int_equal(t->vertices[v].is_switch, want->vertices[w].is_switch);
		if (up == CN_TOPO_NONE) {
			assert_int_equal(want->vertices[w].parent, CN_TOPO_NONE);
			continue;
		}
		assert_string_equal(t->vertices[up].name,
				    want->vertices[want->vertices[w].parent].name);
		assert_int_equal(t->links[t->vertices[v].parent_link].rate,
				 want->links[want->vertices[w].parent_link].rate);
	}
	for (uint32_t i = 0; i < t->nhosts; i++) {
		assert_string_equal(t->vertices[t->hosts[i]].name,
				    want->vertices[want->hosts[i]].name);
	}
	cn_topo_free(want);
	cn_topo_free(t);
}

static void networks__are_those_of_the_examples(void **state)
{
	char file[16];
	struct cn_topo *t;

	(void)state;
	for (char c = 'a'; c <= 'c'; c++) {
		snprintf(file, sizeof(file), "aapc-%c", c);
		assert_int_equal(experiment_aapc_network(c, &t, NULL), COLLNET_OK);
		same_as_file(t, file);
	}
	for (char c = 'a'; c <= 'f'; c++) {
		snprintf(file, sizeof(file), "rings-%c", c);
		assert_int_equal(experiment_allgather_network(c, false, &t, NULL), COLLNET_OK);
		same_as_file(t, file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(experiments__every_one),
		cmocka_unit_test(exchange_5__shuffle_before_pairwise),
		cmocka_unit_test(aapc_8__best_on_the_chain),
		cmocka_unit_test(rings_10__numbers_decide),
		cmocka_unit_test(smp__before_binomial),
		cmocka_unit_test(run__unknown_name),
		cmocka_unit_test(networks__are_those_of_the_examples),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
