/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Utilities independent of networks: errors with a message, the log, seeded pseudo-random numbers,
 * hashing.
 *
 * A function that can fail takes a `struct cn_err *` last, fills it in by cn_fail() and returns
 * the negative COLLNET_E... code. The first to detect an error writes the message; callers
 * pass it on.
 */
#ifndef CN_UTIL_H
#define CN_UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collnet/collnet.h"

/* The sanitizers need system calls, and to trace their process. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
	__has_feature(memory_sanitizer)
#define CN_SANITIZED 1
#endif
#endif

#define CN_ERR_TEXT 320

struct cn_err {
	int code;
	char text[CN_ERR_TEXT];
};

/* Writes code and message (cut at CN_ERR_TEXT) and returns code. `err` may be NULL. */
int cn_fail(struct cn_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* strerror(), with advice if a limit of the process is the reason. */
const char *cn_strerror(int e);

/* A line to the process's log callback (collnet_set_log()); no newline. */
void cn_log(enum collnet_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void cn_vlog(enum collnet_log_level level, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* Nanoseconds of a monotonic clock; always passed in, never read by the pure modules. */
typedef uint64_t cn_time;
#define CN_NEVER UINT64_MAX
#define CN_MS	 ((cn_time)1000000)
#define CN_US	 ((cn_time)1000)

static inline cn_time cn_min_time(cn_time a, cn_time b)
{
	return a < b ? a : b;
}

/* The end of a timeout of the interface. */
static inline cn_time cn_deadline(cn_time now, uint32_t timeout_ms)
{
	return timeout_ms == COLLNET_TIMEOUT_NONE ? CN_NEVER : now + timeout_ms * CN_MS;
}

/* The binary logarithm, rounded up: the rounds of doubling; 0 for n < 2. */
static inline uint32_t cn_log2_up(uint32_t n)
{
	uint32_t rounds = 0;

	while (((uint64_t)1 << rounds) < n) {
		rounds++;
	}
	return rounds;
}

/* splitmix64: a seeded stream, and a good mixer. */
static inline uint64_t cn_mix64(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static inline uint64_t cn_random(uint64_t *state)
{
	uint64_t r = cn_mix64(*state);

	*state += 0x9e3779b97f4a7c15u;
	return r;
}

/* One of 0 .. n - 1. */
static inline uint32_t cn_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(cn_random(state) % n);
}

/* Limits of link rates, bit/s: below, the unit was forgotten; above, sums of channels could
 * overflow. */
#define CN_RATE_MIN 1000u
#define CN_RATE_MAX 100000000000000u
/* "20mbit", "1gbit", "9600bit" -> bit/s. False: not a rate with a unit, or zero. */
bool cn_parse_rate(const char *text, uint64_t *bits_per_second);
/* "64k", "1m", "512" -> bytes (k, m, g are powers of 1024). False: not a size. */
bool cn_parse_size(const char *text, uint64_t *bytes);
/* Decimal without sign, whole string, within [min, max]. */
bool cn_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* An EtherType, 1536 .. 65535, decimal or hexadecimal with 0x. */
bool cn_parse_ethertype(const char *text, uint64_t *out);
/* A usable name of a node, switch or job: 1 .. COLLNET_NAME_MAX of [A-Za-z0-9._:@/-]. */
bool cn_valid_name(const char *name);

#endif
