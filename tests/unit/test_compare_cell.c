/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of `collnet compare`: medians, the better setting, paired ratios; the time of an
 * iteration from its ranks' calls and returns; the row of the CSV file; the plot.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "tools/compare/command.h"

/* collnet, Open MPI with two settings, MPICH; three rounds. In the second everything was slow. */
static const struct cell example = {
	.op = LOOP_BCAST,
	.bytes = 1024,
	.rounds = 3,
	.contenders = 4,
	.library = { CELL_COLLNET, CELL_OPENMPI, CELL_OPENMPI, CELL_MPICH },
	.us = { { 20, 80, 30 }, { 50, 90, 60 }, { 10, 100, 20 }, { 40, 160, 30 } },
	.min_us = { 15, 45, 8, 25 },
};

static void assert_near(double value, double expected)
{
	assert_true(fabs(value - expected) < 1e-9);
}

static void cell_median__passes_over_missing_rounds(void **state)
{
	struct cell c = example;

	(void)state;
	assert_near(cell_median(&c, 0), 30);
	c.us[0][2] = NAN;
	assert_near(cell_median(&c, 0), 50);
	c.us[0][0] = c.us[0][1] = NAN;
	assert_true(isnan(cell_median(&c, 0)));
}

static void cell_of_library__takes_the_better_setting(void **state)
{
	struct cell c = example;

	(void)state;
	assert_int_equal(cell_of_library(&c, CELL_OPENMPI), 2);
	assert_int_equal(cell_of_library(&c, CELL_MPICH), 3);
	assert_int_equal(cell_best(&c), 2);
	c.library[2] = CELL_OPENMPI_ON_COLLNET; /* the fastest, but it is collnet */
	assert_int_equal(cell_of_library(&c, CELL_OPENMPI), 1);
	assert_int_equal(cell_best(&c), 3);
	c = example;
	c.us[2][0] = c.us[2][1] = c.us[2][2] = NAN; /* that setting has failed */
	assert_int_equal(cell_of_library(&c, CELL_OPENMPI), 1);
	assert_int_equal(cell_best(&c), 3);
	c.contenders = 1;
	assert_true(cell_of_library(&c, CELL_MPICH) == CELL_NONE);
	assert_true(cell_best(&c) == CELL_NONE);
}

/* Quotients of the rounds 2, 0.8, 1.5, not the quotient of the medians; collnet is never `best`. */
static void cell_ratio__is_paired(void **state)
{
	struct cell c = example;
	struct cell_ratio r = cell_ratio(&c, 2);

	(void)state;
	assert_near(r.median, 1.5);
	assert_near(r.min, 0.8);
	assert_near(r.max, 2);
	c.us[2][0] = NAN;
	assert_near(cell_ratio(&c, 2).median, (0.8 + 1.5) / 2);
	assert_true(isnan(cell_ratio(&c, CELL_NONE).median));
	c.us[0][0] = c.us[0][1] = c.us[0][2] = NAN;
	assert_true(isnan(cell_ratio(&c, 2).median));
	assert_true(isnan(cell_ratio(&c, 2).max));
}

/* Open MPI on collnet with two settings, of which the first has the lower median. */
static void cell_ratio_on_collnet__is_to_the_same_library(void **state)
{
	static const enum cell_library libraries[] = { CELL_OPENMPI_ON_COLLNET,
						       CELL_OPENMPI_ON_COLLNET, CELL_OPENMPI,
						       CELL_MPICH };
	struct cell c = example;

	(void)state;
	memcpy(c.library, libraries, sizeof(libraries));
	assert_near(cell_ratio_on_collnet(&c, CELL_OPENMPI).median, 1.5);
	assert_near(cell_ratio_on_collnet(&c, CELL_OPENMPI).min, 0.8);
	assert_true(isnan(cell_ratio_on_collnet(&c, CELL_MPICH).median));
	assert_true(isnan(cell_ratio(&c, 2).median));
}

static void cell_fastest_ratio__to_any_other(void **state)
{
	struct cell c = example;

	(void)state;
	assert_near(cell_fastest(&c, CELL_OPENMPI), 8);
	assert_near(cell_fastest_ratio(&c), 15.0 / 8);
	c.min_us[2] = NAN;
	assert_near(cell_fastest(&c, CELL_OPENMPI), 45);
	assert_near(cell_fastest_ratio(&c), 15.0 / 25);
	c.contenders = 1;
	assert_true(isnan(cell_fastest_ratio(&c)));
}

static void cell_iterations__from_the_time_of_one(void **state)
{
	(void)state;
	assert_int_equal(cell_iterations(1), 200);
	assert_int_equal(cell_iterations(1000), 100);
	assert_int_equal(cell_iterations(1e6), 3);
	assert_int_equal(cell_iterations(NAN), 3);
}

static void cell_start_delay__of_long_iterations(void **state)
{
	(void)state;
	assert_int_equal(cell_start_delay(0), 0);
	assert_int_equal(cell_start_delay(NAN), 0);
	assert_int_equal(cell_start_delay(499), 0);
	assert_int_equal(cell_start_delay(500), 2000);
	assert_int_equal(cell_start_delay(3000), 3000);
	assert_int_equal(cell_start_delay(1e9), 5000);
}

/* ---- the loop ------------------------------------------------------------------------- */

static void loop_time__by_one_clock(void **state)
{
	static const uint64_t call[] = { 100, 130, 110 }, ret[] = { 105, 190, 150 };

	(void)state;
	/* all ranks' blocks are needed: from the last call to the last return */
	assert_int_equal(loop_time(LOOP_ALLTOALL, 1, call, ret, 3), 60);
	assert_int_equal(loop_time(LOOP_GATHER, 1, call, ret, 3), 60);
	/* a receiver that is late makes a broadcast late; the root alone begins it */
	assert_int_equal(loop_time(LOOP_BCAST, 1, call, ret, 3), 90);
	assert_int_equal(loop_time(LOOP_SCATTER, 1, call, ret, 3), 90);
}

static void loop_time__by_clocks_of_their_own(void **state)
{
	static const uint64_t call[] = { 100, 90000, 7 }, ret[] = { 105, 90060, 47 };

	(void)state;
	assert_int_equal(loop_time(LOOP_ALLTOALL, 0, call, ret, 3), 60);
	assert_int_equal(loop_time(LOOP_BCAST, 0, call, ret, 3), 60);
}

static void loop_barrier_held__nobody_leaves_early(void **state)
{
	static const uint64_t call[] = { 100, 130, 110 };
	static const uint64_t held[] = { 130, 131, 150 }, broken[] = { 131, 132, 129 };

	(void)state;
	assert_true(loop_barrier_is_valid(call, held, 3));
	assert_false(loop_barrier_is_valid(call, broken, 3));
}

static void loop_operands__of_a_scan(void **state)
{
	(void)state;
	assert_int_equal(loop_operands(LOOP_SCAN, 0, 5), 1);
	assert_int_equal(loop_operands(LOOP_SCAN, 4, 5), 5);
	assert_int_equal(loop_operands(LOOP_REDUCE_SCATTER, 0, 5), 5);
}

static void loop_blocks__of_every_operation(void **state)
{
	static const struct {
		enum loop_op op;
		uint64_t root_sends, root_recvs, sends, recvs;
	} expected[] = {
		{ LOOP_ALLTOALL, 5, 5, 5, 5 },	     { LOOP_ALLTOALLV, 5, 5, 5, 5 },
		{ LOOP_ALLGATHER, 1, 5, 1, 5 },	     { LOOP_ALLGATHERV, 1, 5, 1, 5 },
		{ LOOP_BCAST, 0, 1, 0, 1 },	     { LOOP_SCATTER, 5, 1, 0, 1 },
		{ LOOP_GATHER, 1, 5, 1, 0 },	     { LOOP_GATHERV, 1, 5, 1, 0 },
		{ LOOP_ALLREDUCE, 1, 1, 1, 1 },	     { LOOP_REDUCE, 1, 1, 1, 0 },
		{ LOOP_REDUCE_SCATTER, 5, 1, 5, 1 }, { LOOP_SCAN, 1, 1, 1, 1 },
		{ LOOP_BARRIER, 0, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < LOOP_OPS; i++) {
		assert_int_equal(loop_send_blocks(expected[i].op, 0, 5), expected[i].root_sends);
		assert_int_equal(loop_recv_blocks(expected[i].op, 0, 5), expected[i].root_recvs);
		assert_int_equal(loop_send_blocks(expected[i].op, 3, 5), expected[i].sends);
		assert_int_equal(loop_recv_blocks(expected[i].op, 3, 5), expected[i].recvs);
	}
}

/* What a rank sends to another is what that one receives from it; blocks lie one after another. */
static void loop_layout__of_both_sides(void **state)
{
	struct loop_layout to[5], from[5];
	bool differ[LOOP_OPS] = { false };

	(void)state;
	for (int op = 0; op < LOOP_OPS; op++) {
		memset(to, 0, sizeof(to));
		memset(from, 0, sizeof(from));
		for (uint32_t r = 0; r < 5; r++) {
			assert_int_equal(loop_layout(&to[r], op, true, 7, 1000, r, 5), 0);
			assert_int_equal(loop_layout(&from[r], op, false, 7, 1000, r, 5), 0);
		}
		for (uint32_t r = 0; r < 5; r++) {
			size_t at = 0;

			for (uint32_t i = 0; i < from[r].n; i++) {
				const struct loop_layout *s = &to[loop_source(op, i)];

				assert_int_equal(from[r].at[i], at);
				assert_int_equal(from[r].displ[i], at);
				assert_int_equal(from[r].count[i], from[r].bytes[i]);
				assert_true(from[r].bytes[i] <= 2000);
				if (op != LOOP_BCAST) {
					assert_int_equal(from[r].bytes[i],
							 s->bytes[s->n > 1 ? r : 0]);
				}
				differ[op] = differ[op] || from[r].bytes[i] != 1000;
				at += from[r].bytes[i];
			}
			assert_int_equal(from[r].total, at);
		}
		assert_int_equal(differ[op], op == LOOP_ALLTOALLV || op == LOOP_ALLGATHERV ||
						     op == LOOP_GATHERV);
		for (uint32_t r = 0; r < 5; r++) {
			loop_layout_free(&to[r]);
			loop_layout_free(&from[r]);
		}
	}
	/* the offsets of 5 blocks of 2 GiB are beyond MPI's int */
	assert_int_not_equal(loop_layout(&to[0], LOOP_ALLTOALLV, true, 7, (uint64_t)1 << 31, 0, 5),
			     0);
	loop_layout_free(&to[0]);
}

/* ---- reports -------------------------------------------------------------------------- */

static void set_up(struct compare *c, struct compare_options *o, struct cell *cell)
{
	memset(c, 0, sizeof(*c));
	memset(o, 0, sizeof(*o));
	c->o = o;
	o->rounds = 3;
	o->ranks_per_node = 2;
	c->nhosts = 4;
	c->ncontenders = cell->contenders;
	for (size_t i = 0; i < c->ncontenders; i++) {
		c->contenders[i].library = cell->library[i];
		c->contenders[i].yield = i == 1 ? 0 : i == 2 ? 1 : -1;
	}
	c->cells = cell;
	c->ncells = 1;
}

static void compare_csv_row__columns(void **state)
{
	struct compare_options o;
	struct compare c;
	struct cell cell = example;
	char *text = NULL;
	size_t len;

	(void)state;
	set_up(&c, &o, &cell);
	c.csv = open_memstream(&text, &len);
	assert_non_null(c.csv);
	assert_true(compare_csv_row(&c, &cell));
	cell.wrong[3] = true;
	cell.contenders = 2; /* as if the others had not been there */
	assert_true(compare_csv_row(&c, &cell));
	cell.contenders = 4;
	assert_true(compare_csv_row(&c, &cell));
	cell.library[0] = CELL_MPICH_ON_COLLNET;
	assert_true(compare_csv_row(&c, &cell));
	fclose(c.csv);
	assert_string_equal(
		text, "bcast,1024,8,4,3,30,20,1,1.5,40,0.5,1.5,0.8,2,1.875,15,8,25,,,,,true\n"
		      "bcast,1024,8,4,3,30,60,0,0.5,,,0.5,0.4,0.888889,0.333333,15,45,,,,,,true\n"
		      "bcast,1024,8,4,3,30,20,1,1.5,40,0.5,1.5,0.8,2,1.875,15,8,25,,,,,false\n"
		      "bcast,1024,8,4,3,,20,1,,40,,,,,,,8,25,,,30,0.5,false\n");
	free(text);
}

static void compare_can_plot__where_the_file_can_be_written(void **state)
{
	char path[] = "/tmp/test_compare_cell.XXXXXX", text[8];
	int fd = mkstemp(path);
	struct cn_err err;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "before", 6), 6);
	assert_true(compare_can_plot(path, &err));
	assert_int_equal(pread(fd, text, sizeof(text), 0), 6);
	close(fd);
	unlink(path);
	assert_true(compare_can_plot(path, &err));
	assert_int_not_equal(access(path, F_OK), 0); /* nothing stays of a comparison that fails */
	assert_false(compare_can_plot("/nonexistent/ratios.gp", &err));
	assert_string_equal(err.text, "/nonexistent/ratios.gp: No such file or directory");
	/* A pipe is not opened: it has no reader yet, or one that would see its end. */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(compare_can_write(path, &err));
	unlink(path);
}

static void compare_plot_script__has_its_data(void **state)
{
	struct compare_options o;
	struct compare c;
	struct cell cells[2] = { example, example };
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	set_up(&c, &o, cells);
	c.ncells = 2;
	cells[1].op = LOOP_BARRIER;
	cells[1].contenders = 3;
	compare_plot_script(&c, f);
	fclose(f);
	assert_non_null(strstr(text, "\n\"bcast 1 KiB\" 1.5000 0.5000\n"));
	assert_non_null(strstr(text, "\n\"barrier\" 1.5000 ?\n"));
	assert_non_null(strstr(text, "8 ranks on 4 nodes"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cell_median__passes_over_missing_rounds),
		cmocka_unit_test(cell_of_library__takes_the_better_setting),
		cmocka_unit_test(cell_ratio__is_paired),
		cmocka_unit_test(cell_ratio_on_collnet__is_to_the_same_library),
		cmocka_unit_test(cell_fastest_ratio__to_any_other),
		cmocka_unit_test(cell_iterations__from_the_time_of_one),
		cmocka_unit_test(cell_start_delay__of_long_iterations),
		cmocka_unit_test(loop_time__by_one_clock),
		cmocka_unit_test(loop_time__by_clocks_of_their_own),
		cmocka_unit_test(loop_barrier_held__nobody_leaves_early),
		cmocka_unit_test(loop_operands__of_a_scan),
		cmocka_unit_test(loop_blocks__of_every_operation),
		cmocka_unit_test(loop_layout__of_both_sides),
		cmocka_unit_test(compare_csv_row__columns),
		cmocka_unit_test(compare_can_plot__where_the_file_can_be_written),
		cmocka_unit_test(compare_plot_script__has_its_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
