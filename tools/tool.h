/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the subcommands of collnet share: exit statuses, messages, the parsing of options, and a
 * writer of JSON.
 */
#ifndef COLLNET_TOOL_H
#define COLLNET_TOOL_H

#include <stdio.h>

#include "proto/frame.h"
#include "sched/sched.h"
#include "util/util.h"

struct option; /* <getopt.h> */

/* Exit statuses. */
#define TOOL_OK	    0
#define TOOL_FAILED 1 /* something went wrong, or a check found wrong bytes */
#define TOOL_USAGE  2 /* the command line is not valid */

/* The subcommands: argv[0] is the name. They return an exit status. */
int collnet_cmd_bench(int argc, char **argv);
int collnet_cmd_compare(int argc, char **argv);
int collnet_cmd_lab(int argc, char **argv);
int collnet_cmd_schedule(int argc, char **argv);
int collnet_cmd_sim(int argc, char **argv);
int collnet_cmd_status(int argc, char **argv);
int collnet_cmd_topo(int argc, char **argv);

/* One line on stderr, "collnet SUBCOMMAND: ...". tool_set_subcommand() keeps the pointer. */
void tool_set_subcommand(const char *name);
void tool_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, followed by where help is; returns TOOL_USAGE. */
int tool_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What is wrong with the options that name a network: they are both given, or neither is. */
const char *tool_network_fault(bool both);

/* ---- args.c: values of options; errors are COLLNET_EINVAL with a message ---------------- */

/* "1k,64k,1m": up to max sizes, each at most `limit`. */
int tool_parse_sizes(const char *text, uint64_t limit, uint64_t *out, size_t max, size_t *count,
		     struct cn_err *err);
/* Appends to a list "a, b"; what does not fit is cut. Returns the list. */
const char *tool_list(char *list, size_t size, const char *name);
/* One of names[], which ends with NULL: its index. */
int tool_parse_name(const char *text, const char *const *names, uint32_t *index,
		    struct cn_err *err);
/* Two names of one file; devices may be named twice. */
bool tool_same_file(const char *a, const char *b);
/* "a,b,c": cuts `text` in place; out[] points into it. Empty items are an error. */
int tool_split(char *text, const char **out, size_t max, size_t *count, struct cn_err *err);
/* The same, of a list that is split later. */
int tool_check_list(const char *text, struct cn_err *err);
/* "on" or "off". */
int tool_parse_switch(const char *text, bool *out, struct cn_err *err);
/* "daemon" or "direct". */
int tool_parse_mode(const char *text, enum collnet_mode *out, struct cn_err *err);
/* "auto", "off", or a number of frames: a value for collnet_coll_options.window. */
int tool_parse_window(const char *text, uint32_t *out, struct cn_err *err);
/* "30", "0.5" seconds -> milliseconds, 1 .. UINT32_MAX / 2. */
int tool_parse_seconds(const char *text, uint32_t *ms, struct cn_err *err);
/* A number within [min, max]. */
int tool_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out,
		      struct cn_err *err);
int tool_parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out, struct cn_err *err);
/* "20mbit", "1gbit": bits per second, not 0. */
int tool_parse_rate(const char *text, uint64_t *out, struct cn_err *err);
/* The same, or "none": 0. */
int tool_parse_rate_or_none(const char *text, uint64_t *out, struct cn_err *err);
/* "2", "0.125": times a thousand, at most three decimals. COLLNET_EINVAL without a message. */
int tool_parse_thousandths(const char *text, uint64_t *out);
/* A name of CN_ENCAPSULATION_NAMES. */
int tool_parse_encapsulation(const char *text, enum cn_encapsulation *out, struct cn_err *err);
/* "auto", "shift", "xor", "edge-colour". */
int tool_parse_permutation(const char *text, enum cn_permutation *out, struct cn_err *err);

/*
 * Passes each option of a command line to `take`; the option's name precedes its messages. Other
 * arguments are in argv from optind on. TOOL_OK, TOOL_USAGE after a message, or -1: help was
 * requested ("help" is an option whose val is 'h').
 */
typedef int tool_option_fn(void *into, int opt, char *arg, struct cn_err *err);
int tool_options(int argc, char **argv, const struct option *options, tool_option_fn *take,
		 void *into);
/* The name of the option with this val, which exists. */
const char *tool_option_name(const struct option *options, int opt);
/* The same as tool_options(), up to the first argument that is not an option: another command
 * begins there. */
int tool_options_of_command(int argc, char **argv, const struct option *options,
			    tool_option_fn *take, void *into);

#define TOOL_TEXT 32
/* "16 KiB", "1000 B"; "20 Mbit/s"; "12.3 us", "4.56 ms". Return buf. */
const char *tool_format_size(uint64_t bytes, char buf[TOOL_TEXT]);
const char *tool_format_rate(uint64_t bits_per_second, char buf[TOOL_TEXT]);
const char *tool_format_ns(uint64_t ns, char buf[TOOL_TEXT]);

/* ---- json.c ------------------------------------------------------------------------------ */

/*
 * Writes one JSON value, normally an object, and a newline. Inside an object every call names its
 * key, inside an array the key is NULL. Wrong nesting is a mistake of the caller and asserted.
 */
#define JSON_DEPTH 16
struct json {
	FILE *out;
	unsigned depth;
	bool some[JSON_DEPTH + 1]; /* this level has an item already */
};

void json_begin(struct json *j, FILE *out);
/* Newline and flush; false: the stream could not be written. */
bool json_end(struct json *j);
void json_object(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *key);
void json_array_end(struct json *j);
void json_string(struct json *j, const char *key, const char *value); /* NULL: null */
void json_uint(struct json *j, const char *key, uint64_t value);
/* Not finite: null. `decimals` after the point. */
void json_double(struct json *j, const char *key, double value, int decimals);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

#endif
