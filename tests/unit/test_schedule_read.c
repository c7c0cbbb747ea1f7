/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Schedules from text: what is understood, what is refused and in which words; a good schedule
 * that was broken by hand is refused with the pair and the link; and no text makes it crash.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tools/schedule/command.h"

#define SEED 20261121u

/* Two switches; a, b and c on the one, d and e on the other. */
static const char net[] = "switch s0\nswitch s1\nlink s0 s1 rate none\n"
			  "host a\nhost b\nhost c\nhost d\nhost e\n"
			  "link a s0 rate none\nlink b s0 rate none\nlink c s0 rate none\n"
			  "link d s1 rate none\nlink e s1 rate none\n";

static int setup(void **state)
{
	struct cn_topo *t = NULL;
	struct cn_err err;

	if (cn_topo_parse(net, strlen(net), "net", &t, &err)) {
		return -1;
	}
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	cn_topo_free(*state);
	return 0;
}

/* Reads, and checks what it guarantees. */
static int take(const struct cn_topo *t, const char *text, size_t len, struct cn_err *err,
		struct cn_check_report *report)
{
	struct subject s;
	struct cn_sched *parts = NULL;
	bool checked;
	int rc;

	memset(err, 0, sizeof(*err));
	memset(report, 0, sizeof(*report));
	rc = schedule_parse(text, len, "file", t, &s, &parts, err);
	if (rc == COLLNET_OK) {
		rc = subject_check(&s, parts, s.guarantees, report, &checked, err);
		subject_free_parts(&s, parts);
	}
	subject_done(&s);
	return rc;
}

static void accepted(void **state, const char *text, uint64_t messages, uint64_t syncs)
{
	struct cn_check_report r;
	struct cn_err err;

	if (take(*state, text, strlen(text), &err, &r)) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(r.messages, messages);
	assert_int_equal(r.syncs, syncs);
}

static void refused(void **state, const char *text, const char *message)
{
	struct cn_check_report r;
	struct cn_err err;

	assert_int_not_equal(take(*state, text, strlen(text), &err, &r), COLLNET_OK);
	if (strstr(err.text, message) == NULL) {
		fail_msg("'%s' is not in '%s'", message, err.text);
	}
}

#define GATHER "schedule gather\nhosts a b d\nsize 100\nroot b\n"

static void schedule_parse__takes_what_a_person_writes(void **state)
{
	/* Comments, an empty line, blocks cut in two, phases that nobody counted. */
	accepted(state,
		 "# by hand\n" GATHER "\n"
		 "phase 0: b copies send block 0 to block 1\n"
		 "phase 0: a -> b send bytes 0+60 to bytes 0+60   # the larger part\n"
		 "phase 0:\ta -> b send bytes 60+40 to bytes 60+40\n"
		 "phase 1: d -> b send block 0 to block 2\n",
		 3, 0);
	/* Forwarding, a synchronisation that is waited for, several things at once. */
	accepted(state,
		 "schedule bcast\nhosts a b c d\nsize 1k\nguarantees links\nphases 3\n"
		 "phase 0: a copies send block 0 to block 0\n"
		 "phase 0: a -> b send block 0 to block 0, as m1\n"
		 "phase 0: a => c sync, as m2\n"
		 "phase 1: a -> d send block 0 to block 0\n"
		 "phase 2: b -> c recv block 0 to block 0, streams m1\n"
		 "phase 2: c => a sync, after m2\n",
		 3, 2);
}

static void schedule_parse__refuses_with_file_and_line(void **state)
{
	static const char head[] = GATHER;
	char text[512];
	static const struct {
		const char *line, *message;
	} lines[] = {
		{ "phase x: a -> b send block 0 to block 0",
		  "file:5: expected the phase's number" },
		{ "phase 0 a -> b send block 0 to block 0", "file:5: expected the phase's number" },
		{ "phase 0: z -> b send block 0 to block 0",
		  "file:5: expected a host of the line" },
		{ "phase 0: a -> c send block 0 to block 0", "not 'c'" },
		{ "phase 0: a -> a send block 0 to block 0", "it copies" },
		{ "phase 0: a >> b send block 0 to block 0", "expected ->, => or copies" },
		{ "phase 0: a -> b block 0 to block 0", "expected send or recv" },
		{ "phase 0: a -> b send block 3 to block 0", "the number of a block, not '3'" },
		{ "phase 0: a -> b send bytes 0+60 to bytes 0+61", "not of one length" },
		{ "phase 0: a -> b send bytes 0+301 to bytes 0+301", "bytes of a buffer" },
		{ "phase 0: a -> b send blocks 2-1 to blocks 2-1", "numbers of blocks" },
		{ "phase 0: a -> b send block 0 to block 0, later m1",
		  "after, needs, streams, as" },
		{ "phase 0: a -> b send block 0 to block 0, after m1",
		  "no earlier message is called m1" },
		{ "phase 0: a -> b send block 0 to block 0, as m99999999",
		  "the name of a message" },
		{ "phase 0: a => b", "expected sync" },
		{ "phase 4294967296: a => b sync", "the phase's number" },
		{ "part a", "the part of one host" },
		{ "hosts z", "'z' is not a host of the network" },
		{ "hosts s1", "'s1' is not a host of the network" },
		{ "hosts a", "host a is named twice" },
		{ "hosts c", "c comes earlier in the topology" },
		{ "size -3", "the bytes of a block, not '-3'" },
		{ "order backwards", "expected in-turn, interleaved or any, not 'backwards'" },
		{ "guarantees everything", "expected links, ordered, optimal or none" },
		{ "phases many", "a number of phases, not 'many'" },
		{ "schedule dance", "expected an operation, not 'dance'" },
		{ "nonsense", "expected schedule, algorithm, hosts" },
		{ "size 4 5", "expected the end of the line, not '5'" },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "%s%s\n", head, lines[i].line);
		refused(state, text, lines[i].message);
	}
	refused(state, "", "file:1: before the first message expected lines with schedule");
	refused(state, "schedule gather\nhosts a\nsize 1\n", "a team of one host");
	refused(state, GATHER "phases 1\nphase 1: a => b sync\n", "there are 1 phases");
	refused(state, "schedule gather\nhosts a b\nsize 1\nroot d\n",
		"d is not one of the team's");
	refused(state, GATHER "phase 0: a => b sync, as m1\nphase 0: a => b sync, as m1\n",
		"file:6: another message is called m1");
	refused(state, GATHER "phase 0: a => b sync, as m1\nphase 0: d => b sync, after m1\n",
		"d does not know when m1 is done");
}

/* A complete schedule of aapc among all five hosts. */
static char *good(const struct cn_topo *t)
{
	const struct cn_algorithm *a = cn_algorithm_find(CN_OP_ALLTOALL, "aapc");
	struct cn_sched parts[5] = { { 0 } };
	struct cn_err err = { 0 };
	struct subject s;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct emit e = { .layout = &s.layout,
			  .plan = &s.plan,
			  .algorithm = "aapc",
			  .only = EMIT_ALL,
			  .parts = parts };

	assert_non_null(a);
	assert_int_equal(subject_init(&s, t, t->hosts, t->nhosts, &err), COLLNET_OK);
	s.plan.op = CN_OP_ALLTOALL;
	s.plan.algorithm = a->id;
	s.plan.bytes = 1000;
	e.guarantees = a->guarantees;
	if (subject_plan_all(&s, parts, &err) || emit_text(&e, f, &err)) {
		fail_msg("%s", err.text);
	}
	fclose(f);
	for (uint32_t b = 0; b < 5; b++) {
		cn_sched_reset(&parts[b]);
	}
	subject_done(&s);
	return text;
}

/* The i-th line of a message with data, its phase's first digit; phases have one digit here. */
static char *phase_digit(char *text, uint32_t i)
{
	char *p = text;

	for (;;) {
		char *end;

		p = strstr(p, "\nphase ");
		if (p == NULL) {
			return NULL;
		}
		end = strchr(++p, '\n');
		*end = '\0';
		if (strstr(p, " -> ") != NULL && i-- == 0) {
			*end = '\n';
			assert_int_equal(p[7], ':');
			return p + 6;
		}
		*end = '\n';
	}
}

static void schedule_parse__swapped_messages_are_refused_with_pair_and_link(void **state)
{
	char *text = good(*state);
	uint32_t swaps = 0, links = 0;
	struct cn_check_report report;
	struct cn_err why;

	assert_int_equal(take(*state, text, strlen(text), &why, &report), COLLNET_OK);
	assert_int_equal(report.messages, 20);
	for (uint32_t i = 0; phase_digit(text, i) != NULL; i++) {
		for (uint32_t j = 0; j < i; j++) {
			char *x = phase_digit(text, i), *y = phase_digit(text, j), was = *x;
			struct cn_check_report r;
			struct cn_err err;

			if (*x == *y) {
				continue;
			}
			*x = *y;
			*y = was;
			swaps++;
			assert_int_equal(take(*state, text, strlen(text), &err, &r),
					 COLLNET_EINVAL);
			links += strstr(err.text, "link ") != NULL &&
				 strstr(err.text, "phase") != NULL;
			*y = *x;
			*x = was;
		}
	}
	assert_true(swaps > 100);
	print_message("%u swaps refused, %u with a link\n", swaps, links);
	assert_true(links > swaps / 2);
	free(text);
}

/*
 * Lines that are gone: a message, a synchronisation. Of one operation alone nobody waits for what
 * closes it, the synchronisations without a name: the others are all right without them.
 */
static void schedule_parse__missing_lines_are_refused(void **state)
{
	char *text = good(*state), *p = text;
	uint32_t gone = 0, closing = 0;

	while ((p = strstr(p, "\nphase ")) != NULL) {
		char was = *++p;
		struct cn_check_report r;
		struct cn_err err;
		size_t len = strcspn(p, "\n");
		bool closes = memcmp(p + len - 5, " sync", 5) == 0;

		*p = '#';
		assert_int_equal(take(*state, text, strlen(text), &err, &r),
				 closes ? COLLNET_OK : COLLNET_EINVAL);
		*p = was;
		gone++;
		closing += closes;
	}
	assert_true(gone - closing > 25);
	assert_true(closing > 0);
	free(text);
}

static void schedule_parse__survives_any_bytes(void **state)
{
	char *text = good(*state), *copy;
	size_t len = strlen(text);
	uint64_t seed = SEED;
	uint32_t taken = 0;

	print_message("seed %llu\n", (unsigned long long)seed);
	copy = malloc(len);
	assert_non_null(copy);
	for (int i = 0; i < 3000; i++) {
		uint32_t changes = 1 + (uint32_t)(cn_random(&seed) % 4);
		struct cn_check_report r;
		struct cn_err err;

		memcpy(copy, text, len);
		while (changes-- > 0) {
			size_t at = cn_random(&seed) % len, from = cn_random(&seed) % len, n;

			switch (cn_random(&seed) % 3) {
			case 0:
				copy[at] = (char)cn_random(&seed);
				break;
			case 1:
				copy[at] = text[from];
				break;
			default:
				n = cn_random(&seed) % 40;
				n = at + n > len ? len - at : n;
				n = from + n > len ? len - from : n;
				memmove(copy + at, copy + from, n);
			}
		}
		taken += take(*state, copy, i % 7 == 0 ? cn_random(&seed) % len : len, &err, &r) ==
			 COLLNET_OK;
	}
	print_message("%u of 3000 are still good\n", taken);
	assert_true(taken < 1500);
	free(copy);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schedule_parse__takes_what_a_person_writes),
		cmocka_unit_test(schedule_parse__refuses_with_file_and_line),
		cmocka_unit_test(schedule_parse__swapped_messages_are_refused_with_pair_and_link),
		cmocka_unit_test(schedule_parse__missing_lines_are_refused),
		cmocka_unit_test(schedule_parse__survives_any_bytes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
