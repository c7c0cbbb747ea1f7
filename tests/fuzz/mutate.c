/* SPDX-License-Identifier: BSD-2-Clause */
/* Mutates lists of steps by the harness's grammar (see mutate.h). */
#include "mutate.h"

#include <string.h>

#include "util/util.h"

#define STEPS_MAX  2048u
#define STEP_BYTES 300u

struct list {
	uint8_t *data;
	size_t size, max;
	size_t at[STEPS_MAX + 1]; /* beginnings of the steps, and the end of the last */
	size_t n;
	uint64_t random;
};

static uint32_t roll(struct list *l, uint32_t n)
{
	return (uint32_t)(cn_random(&l->random) >> 32) % n;
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- grammar -------------------------------------------------------------------------- */

/* The step that begins here; NULL: the grammar has none, and it is one byte. */
static const struct mutate_step *step_at(const uint8_t *p, size_t left)
{
	const struct mutate_grammar *g = &mutate_grammar;

	for (size_t i = 0; i < g->n; i++) {
		const struct mutate_step *s = &g->steps[i];

		if (s->code == (p[0] & g->mask) &&
		    (s->sub == MUTATE_ANY || (left > 1 && p[1] % g->sub == s->sub))) {
			return s;
		}
	}
	return NULL;
}

static size_t arg_length(char kind, const uint8_t *p, size_t left)
{
	switch (kind) {
	case 'n':
		return left > 0 ? 1u + p[0] : 1;
	case 'k':
		return left > 0 ? 1u + 2u * (p[0] % 4) : 1;
	case 'm':
		return 4;
	default:
		return 1;
	}
}

static size_t step_length(const uint8_t *p, size_t left)
{
	const struct mutate_step *s = step_at(p, left);
	size_t at = 1;

	if (s == NULL) {
		return 1;
	}
	at += s->sub != MUTATE_ANY;
	for (const char *a = s->args; *a != '\0'; a++) {
		at += arg_length(*a, p + min(at, left), left - min(at, left));
	}
	return min(at, left);
}

static void parse(struct list *l)
{
	size_t at = min(mutate_grammar.head, l->size);

	for (l->n = 0; l->n < STEPS_MAX && at < l->size; l->n++) {
		l->at[l->n] = at;
		at += step_length(l->data + at, l->size - at);
	}
	l->at[l->n] = at;
}

static size_t build_arg(struct list *l, char kind, uint8_t *out)
{
	size_t n;

	switch (kind) {
	case 'i':
		out[0] = (uint8_t)roll(l, roll(l, 16) == 0 ? 256 : 4);
		return 1;
	case 'q':
		out[0] = (uint8_t)roll(l, roll(l, 16) == 0 ? 256 : 8);
		return 1;
	case 'd':
		out[0] = roll(l, 4) != 0 ? 0 : (uint8_t)(roll(l, 24) - 12);
		return 1;
	case 'y':
		out[0] = (uint8_t)(roll(l, 8) == 0 ? roll(l, 256) : 2 + roll(l, 4));
		return 1;
	case 'w':
		out[0] = (uint8_t)(roll(l, 2) == 0 ? 0 : roll(l, 8));
		return 1;
	case 't':
		out[0] = (uint8_t)(14 + roll(l, 20));
		return 1;
	case 'l':
		out[0] = roll(l, 3) == 0 ? 0 : (uint8_t)(1u << roll(l, 8) | 1u << roll(l, 8));
		return 1;
	case 'm':
		n = roll(l, 4);
		memset(out, 0, 4);
		out[0] = n > 1 ? 0x80 : (uint8_t)(n * roll(l, 256));
		out[3] = (uint8_t)(n > 0 ? roll(l, 256) : 0);
		return 4;
	case 'n':
		n = roll(l, roll(l, 8) == 0 ? 256 : 24);
		break;
	case 'k':
		n = 2u * (out[0] = roll(l, 4) != 0 ? 0 : (uint8_t)roll(l, 4));
		for (size_t i = 0; i < n; i++) {
			out[1 + i] = (uint8_t)roll(l, 256);
		}
		return 1 + n;
	default:
		out[0] = (uint8_t)roll(l, 256);
		return 1;
	}
	out[0] = (uint8_t)n;
	for (size_t i = 0; i < n; i++) {
		out[1 + i] = (uint8_t)roll(l, roll(l, 2) == 0 ? 256 : 4);
	}
	return 1 + n;
}

static size_t build_step(struct list *l, uint8_t *out)
{
	const struct mutate_grammar *g = &mutate_grammar;
	const struct mutate_step *s = g->steps;
	uint32_t total = 0, pick;
	size_t at = 1;

	for (size_t i = 0; i < g->n; i++) {
		total += g->steps[i].weight;
	}
	for (pick = roll(l, total); pick >= s->weight; s++) {
		pick -= s->weight;
	}
	out[0] = (uint8_t)(s->code | (roll(l, 256) & ~(uint32_t)g->mask));
	if (s->sub != MUTATE_ANY) {
		out[at++] = (uint8_t)s->sub;
	}
	for (const char *a = s->args; *a != '\0'; a++) {
		at += build_arg(l, *a, out + at);
	}
	return at;
}

/* ---- changes -------------------------------------------------------------------------- */

/* Replaces `cut` bytes at `at`; nothing happens where that would be too long. */
static void replace(struct list *l, size_t at, size_t cut, const uint8_t *with, size_t n)
{
	if (l->size - cut + n > l->max) {
		return;
	}
	memmove(l->data + at + n, l->data + at + cut, l->size - at - cut);
	if (n > 0) {
		memcpy(l->data + at, with, n);
	}
	l->size = l->size - cut + n;
}

static void insert(struct list *l)
{
	uint8_t step[STEP_BYTES];

	replace(l, l->at[roll(l, (uint32_t)l->n + 1)], 0, step, build_step(l, step));
}

static void copy_run(struct list *l, bool keep)
{
	uint8_t run[1024];
	uint32_t first = roll(l, (uint32_t)l->n), last = first + 1 + roll(l, 6);
	size_t at, n;

	last = last < l->n ? last : (uint32_t)l->n;
	at = l->at[first];
	n = l->at[last] - at;
	if (n > sizeof(run)) {
		return;
	}
	memcpy(run, l->data + at, n);
	if (!keep) {
		replace(l, at, n, NULL, 0);
		parse(l);
	}
	replace(l, l->at[roll(l, (uint32_t)l->n + 1)], 0, run, n);
}

static void change_argument(struct list *l)
{
	uint8_t arg[STEP_BYTES];
	size_t at = l->at[roll(l, (uint32_t)l->n)], end = l->size, old;
	const struct mutate_step *s = step_at(l->data + at, end - at);
	size_t n = s != NULL ? strlen(s->args) : 0, which;

	if (n == 0) {
		return;
	}
	which = roll(l, (uint32_t)n);
	at += 1u + (s->sub != MUTATE_ANY);
	for (size_t i = 0; i < which && at < end; i++) {
		at += arg_length(s->args[i], l->data + at, end - at);
	}
	if (at >= end) {
		return;
	}
	old = min(arg_length(s->args[which], l->data + at, end - at), end - at);
	if (old == 1 && roll(l, 3) == 0) {
		l->data[at] = (uint8_t)(l->data[at] + roll(l, 5) - 2);
		return;
	}
	replace(l, at, old, arg, build_arg(l, s->args[which], arg));
}

static void remove_run(struct list *l)
{
	uint32_t first = roll(l, (uint32_t)l->n), last = first + 1 + roll(l, 3);

	last = last < l->n ? last : (uint32_t)l->n;
	replace(l, l->at[first], l->at[last] - l->at[first], NULL, 0);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	static struct list l;

	l = (struct list){ .data = data, .max = max_size, .random = seed };
	l.size = min(size, max_size);
	for (uint32_t times = 1 + roll(&l, 5); times > 0; times--) {
		uint32_t what = roll(&l, 20);

		parse(&l);
		if (what < 8 || l.n == 0) {
			insert(&l);
		} else if (what < 13) {
			change_argument(&l);
		} else if (what < 15) {
			copy_run(&l, true);
		} else if (what < 17) {
			copy_run(&l, false);
		} else if (what < 19) {
			remove_run(&l);
		} else {
			l.size = LLVMFuzzerMutate(l.data, l.size, l.max);
		}
	}
	return l.size;
}
