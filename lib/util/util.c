/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors with a message, the log callback of the process, and the version.
 *
 * The callback is two words that change together, protected by a spinlock, so that a line never
 * gets the function of one setting with the argument of another. The callback runs without the lock
 * and may log or set the callback again.
 */
#include "util/util.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define STRING(x)	      #x
#define VERSION_TEXT(a, b, c) STRING(a) "." STRING(b) "." STRING(c)

static atomic_flag log_lock = ATOMIC_FLAG_INIT;
static collnet_log_fn log_fn;
static void *log_arg;

static void lock_log(void)
{
	while (atomic_flag_test_and_set_explicit(&log_lock, memory_order_acquire)) {
		/* held for two loads or stores only */
	}
}

static void unlock_log(void)
{
	atomic_flag_clear_explicit(&log_lock, memory_order_release);
}

int cn_fail(struct cn_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (err != NULL) {
		err->code = code;
		va_start(ap, fmt);
		vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
	}
	return code;
}

const char *cn_strerror(int e)
{
	return e == EMFILE ? "too many open files: raise the limit of descriptors (ulimit -n)"
			   : strerror(e);
}

void collnet_set_log(collnet_log_fn fn, void *arg)
{
	lock_log();
	log_fn = fn;
	log_arg = arg;
	unlock_log();
}

void cn_vlog(enum collnet_log_level level, const char *fmt, va_list ap)
{
	char line[CN_ERR_TEXT * 2];
	collnet_log_fn fn;
	void *arg;

	lock_log();
	fn = log_fn;
	arg = log_arg;
	unlock_log();
	if (fn == NULL) {
		return;
	}
	vsnprintf(line, sizeof(line), fmt, ap);
	fn(arg, level, line);
}

void cn_log(enum collnet_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cn_vlog(level, fmt, ap);
	va_end(ap);
}

const char *collnet_version(void)
{
	return VERSION_TEXT(COLLNET_VERSION_MAJOR, COLLNET_VERSION_MINOR, COLLNET_VERSION_PATCH);
}
