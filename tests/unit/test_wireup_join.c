/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/wireup_join.c: the records of what a peer advertises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/join.h"

static bool none(const void *ctx, const struct cn_join *j)
{
	(void)ctx;
	(void)j;
	return false;
}

/* Records of jobs that begin with 'u' are in use. */
static bool by_name(const void *ctx, const struct cn_join *j)
{
	(void)ctx;
	return j->job[0] == 'u';
}

static struct cn_join *add(struct cn_join_list *l, uint32_t id, uint64_t owner, const char *job,
			   cn_join_in_use *in_use)
{
	const struct cn_join in = { .id = id, .owner = owner, .ranks = 4 };

	return cn_join_new(l, &in, job, in_use, NULL);
}

static void join__the_newest_is_found(void **state)
{
	struct cn_join_list l = { 0 };

	(void)state;
	assert_null(cn_join_find(&l, 1, "job"));
	add(&l, 7, 1, "job", none);
	add(&l, 8, 2, "job", none);
	assert_int_equal(cn_join_find(&l, 1, "job")->id, 7);
	assert_int_equal(cn_join_find(&l, 2, "job")->id, 8);
	assert_null(cn_join_find(&l, 1, "other"));
	/* the next team of the same job: no team can be made with the one before */
	add(&l, 9, 1, "job", none);
	assert_int_equal(cn_join_find(&l, 1, "job")->id, 9);
	assert_true(cn_join_by_id(&l, 7)->left);
	cn_join_remove(&l, cn_join_by_id(&l, 9));
	assert_null(cn_join_find(&l, 1, "job"));
	assert_null(cn_join_by_id(&l, 9));
	assert_int_equal(l.n, 2);
	cn_join_remove_all(&l);
	assert_null(l.first);
	assert_int_equal(l.n, 0);
}

/* 64 records of a peer that are not in use, 48 of an owner: the oldest makes room. */
static void join__is_bounded(void **state)
{
	struct cn_join_list l = { 0 };
	char job[16];
	uint32_t id;

	(void)state;
	add(&l, 1, 1, "used", by_name);
	for (uint32_t i = 2; i <= 60; i++) {
		snprintf(job, sizeof(job), "job%u", i);
		assert_non_null(add(&l, i, 1, job, by_name));
	}
	assert_int_equal(l.n, 49);
	assert_non_null(cn_join_by_id(&l, 1)); /* in use */
	assert_null(cn_join_by_id(&l, 12));
	assert_non_null(cn_join_by_id(&l, 13));
	for (uint32_t i = 100; i < 140; i++) {
		snprintf(job, sizeof(job), "job%u", i);
		assert_non_null(add(&l, i, 2, job, by_name));
	}
	assert_int_equal(l.n, 65);
	assert_non_null(cn_join_by_id(&l, 1));
	assert_null(cn_join_by_id(&l, 36)); /* 24 of the first owner's made room */
	assert_non_null(cn_join_by_id(&l, 37));
	/* those in use are never removed */
	for (uint32_t i = 1000; i < 1000 + CN_TEAMS_MAX - 40; i++) {
		snprintf(job, sizeof(job), "u%u", i);
		add(&l, i, 3, job, by_name);
	}
	assert_int_equal(l.n, CN_TEAMS_MAX);
	/* where there is no room at all, those that are not in use make it, until all are */
	for (id = 50000; add(&l, id, id, "u", by_name) != NULL; id++) {
		assert_int_equal(l.n, CN_TEAMS_MAX);
		assert_true(id < 50200);
	}
	assert_true(id > 50000);
	assert_int_equal(l.n, CN_TEAMS_MAX);
	assert_non_null(cn_join_by_id(&l, 1));
	cn_join_remove_all(&l);
}

/* Whatever the number of records, a look-up by id takes few steps: ids follow one another. */
static void join_by_id__few_steps(void **state)
{
	struct cn_join_list l = { 0 };
	uint32_t id = UINT32_MAX - CN_TEAMS_MAX;

	(void)state;
	for (uint32_t n = 0; n < CN_TEAMS_MAX + 500; n++, id++) {
		if (l.n == CN_TEAMS_MAX) {
			cn_join_remove(&l, cn_join_by_id(&l, id - CN_TEAMS_MAX / 2));
		}
		assert_non_null(add(&l, id, 1, "used", by_name));
		assert_ptr_equal(cn_join_by_id(&l, id), l.first);
		assert_null(cn_join_by_id(&l, id + 1));
		assert_uint_in_range(l.nslots, l.n, 2 * l.n + 4);
	}
	for (uint32_t i = 0; i < l.nslots; i++) {
		uint32_t steps = 0;

		for (const struct cn_join *j = l.slots[i]; j != NULL; j = j->in_slot) {
			assert_int_equal(j->id & (l.nslots - 1), i);
			steps++;
		}
		assert_uint_in_range(steps, 0, 2);
	}
	cn_join_remove_all(&l);
	assert_int_equal(l.nslots, 0);
	assert_null(cn_join_by_id(&l, id));
}

static uint32_t asked;

static bool count(const void *ctx, const struct cn_join *j)
{
	asked++;
	return by_name(ctx, j);
}

/* By job, too: the newest. What has committed is not asked about, until it is withdrawn. */
static void join_new__few_steps(void **state)
{
	struct cn_join_list l = { 0 };
	char job[16];

	(void)state;
	for (uint32_t id = 1; id <= 3000; id++) {
		struct cn_join *j;

		snprintf(job, sizeof(job), "u%u", id <= 1000 ? 0 : id);
		j = add(&l, id, 1, job, count);
		assert_ptr_equal(cn_join_find(&l, 1, job), j);
		assert_null(cn_join_find(&l, 2, job));
		cn_join_commit(&l, j, id, id);
	}
	assert_int_equal(asked, 0);
	assert_int_equal(l.ncommitted, 3000);
	assert_int_equal(cn_join_find(&l, 1, "u0")->id, 1000);
	cn_join_remove(&l, cn_join_by_id(&l, 1000));
	assert_null(cn_join_find(&l, 1, "u0"));
	for (uint32_t i = 1001; i < 3000; i++) {
		uint32_t steps = 1;

		snprintf(job, sizeof(job), "u%u", i);
		for (const struct cn_join *j = l.slots[l.nslots + i]; j != NULL;
		     j = j->in_job_slot) {
			steps += j->id > 1000;
		}
		assert_uint_in_range(steps, 1, 16);
		assert_int_equal(cn_join_find(&l, 1, job)->id, i);
	}
	for (uint32_t id = 2001; id <= 2048; id++) {
		cn_join_commit(&l, cn_join_by_id(&l, id), 0, id);
	}
	add(&l, 5000, 1, "u", count);
	assert_int_equal(asked, l.n - 1);
	assert_int_equal(l.ncommitted, 3000 - 1 - 48);
	cn_join_remove_all(&l);
	assert_int_equal(l.ncommitted, 0);
}

static bool read(const uint32_t *field, uint16_t count, size_t fields, struct cn_join *j)
{
	uint8_t m[256];
	struct cn_cursor w = { m, m + sizeof(m), false }, r;

	cn_put16(&w, count);
	for (size_t i = 0; i < fields; i++) {
		cn_put32(&w, field[i]);
	}
	r = cn_cursor_of(m, (size_t)(w.at - m));
	return cn_join_read(&r, j);
}

static void join_read__ranges(void **state)
{
	struct cn_join_list l = { 0 };
	struct cn_join in = { .ranks = 10 }, *j;

	(void)state;
	j = add(&l, 1, 1, "job", none);
	assert_true(read((uint32_t[]){ 2, 3 }, 1, 2, &in));
	cn_join_move_ranges(j, &in);
	assert_int_equal(cn_join_ranks(j), 3);
	assert_ptr_equal(j->ranges, &j->one);
	assert_true(read((uint32_t[]){ 0, 1, 5, 5 }, 2, 4, &in));
	cn_join_move_ranges(j, &in);
	assert_int_equal(cn_join_ranks(j), 6);
	assert_int_equal(j->ranges[1].first, 5);
	assert_true(read((uint32_t[]){ 1, 3u << 16 | 3 }, 1, 2, &in)); /* 1, 5, 9 */
	cn_join_move_ranges(j, &in);
	assert_int_equal(cn_join_ranks(j), 3);
	assert_int_equal(cn_range_rank(j->ranges, 2), 9);
	cn_join_remove_all(&l);
}

static void join_read__refuses(void **state)
{
	struct cn_join in = { .ranks = 10 };

	(void)state;
	assert_false(read(NULL, 0, 0, &in));		      /* no range */
	assert_false(read((uint32_t[]){ 0, 0 }, 1, 2, &in));  /* an empty one */
	assert_false(read((uint32_t[]){ 10, 1 }, 1, 2, &in)); /* beyond the ranks */
	assert_false(read((uint32_t[]){ 9, 2 }, 1, 2, &in));
	assert_false(read((uint32_t[]){ 1, UINT32_MAX }, 1, 2, &in));
	assert_false(read((uint32_t[]){ 2, 3u << 16 | 3 }, 1, 2, &in)); /* 2, 6, 10 */
	assert_false(read((uint32_t[]){ 0, UINT32_MAX }, 1, 2, &in));
	assert_false(read((uint32_t[]){ 0, 1, 2, 1 }, 3, 4, &in)); /* cut off */
	assert_false(read((uint32_t[]){ 0, 1 }, 70, 2, &in));	   /* more than a message has */
	assert_int_equal(in.nranges, 0);
}

/* The first rank that leaves counts, also where the numbers of operations wrap around. */
static void left_note__the_first(void **state)
{
	struct cn_left l = { 0 };

	(void)state;
	cn_left_record(&l, 1, 1, false);
	cn_left_record(&l, 2, UINT32_MAX, true);
	assert_true(l.any && l.dead);
	assert_false(cn_left_is_first(&l, UINT32_MAX));
	assert_true(cn_left_is_first(&l, UINT32_MAX - 1));
	assert_int_equal(l.rank, 2);
	cn_left_record(&l, 3, 0, false);
	assert_int_equal(l.rank, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(join__the_newest_is_found),
		cmocka_unit_test(join__is_bounded),
		cmocka_unit_test(join_read__ranges),
		cmocka_unit_test(join_read__refuses),
		cmocka_unit_test(left_note__the_first),
		cmocka_unit_test(join_by_id__few_steps),
		cmocka_unit_test(join_new__few_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
