/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines: options one by one, arguments into numbers, and numbers into text. The only state
 * is the name of the subcommand that messages begin with.
 */
#include "tools/tool.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SECONDS_MAX_MS 86400000u /* the longest deadline of a call: a day */

static const char *subcommand = "";

void tool_set_subcommand(const char *name)
{
	subcommand = name;
}

static void __attribute__((format(printf, 1, 0)))
complain(const char *fmt, va_list ap, const char *tail)
{
	char line[1024];

	/* One write a line: sixteen ranks complain into one terminal. */
	vsnprintf(line, sizeof(line), fmt, ap);
	fprintf(stderr, "collnet%s%s: %s%s\n", *subcommand != 0 ? " " : "", subcommand, line, tail);
}

void tool_complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(fmt, ap, "");
	va_end(ap);
}

const char *tool_network_fault(bool both)
{
	return both ? "specify --shape or --topology, not both"
		    : "specify --shape (e.g. 8x4) or --topology FILE";
}

int tool_usage(const char *fmt, ...)
{
	char tail[128];
	va_list ap;

	snprintf(tail, sizeof(tail), "; see collnet %s%s--help", subcommand,
		 *subcommand != 0 ? " " : "");
	va_start(ap, fmt);
	complain(fmt, ap, tail);
	va_end(ap);
	return TOOL_USAGE;
}

bool tool_same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	if (stat(a, &sa) != 0 || stat(b, &sb) != 0) {
		return strcmp(a, b) == 0;
	}
	return S_ISREG(sa.st_mode) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

int tool_check_list(const char *text, struct cn_err *err)
{
	const size_t n = strlen(text);

	return n > 0 && text[0] != ',' && text[n - 1] != ',' && strstr(text, ",,") == NULL
		       ? COLLNET_OK
		       : cn_fail(err, COLLNET_EINVAL, "the list has an empty item; write a,b,c");
}

int tool_split(char *text, const char **out, size_t max, size_t *count, struct cn_err *err)
{
	size_t n = 0;
	char *p = text;

	if (tool_check_list(text, err) != COLLNET_OK) {
		return COLLNET_EINVAL;
	}
	for (;;) {
		char *comma = strchr(p, ',');

		if (comma != NULL) {
			*comma = 0;
		}
		if (n == max) {
			return cn_fail(err, COLLNET_EINVAL, "the list has more than %zu items",
				       max);
		}
		out[n++] = p;
		if (comma == NULL) {
			break;
		}
		p = comma + 1;
	}
	*count = n;
	return COLLNET_OK;
}

const char *tool_list(char *list, size_t size, const char *name)
{
	const size_t n = strlen(list);

	snprintf(list + n, size - n, "%s%s", n == 0 ? "" : ", ", name);
	return list;
}

int tool_parse_name(const char *text, const char *const *names, uint32_t *index, struct cn_err *err)
{
	char known[160] = "";

	for (uint32_t i = 0; names[i] != NULL; i++) {
		if (strcmp(text, names[i]) == 0) {
			*index = i;
			return COLLNET_OK;
		}
		tool_list(known, sizeof(known), names[i]);
	}
	return cn_fail(err, COLLNET_EINVAL, "'%.40s' is unknown; there are %s", text, known);
}

static int parse_size_list(char *text, uint64_t limit, uint64_t *out, size_t max, size_t *count,
			   struct cn_err *err)
{
	const char *items[64];
	uint64_t sizes[64];
	size_t n, i;
	int rc;

	rc = tool_split(text, items, max < 64 ? max : 64, &n, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	for (i = 0; i < n; i++) {
		char most[TOOL_TEXT];

		if (!cn_parse_size(items[i], &sizes[i])) {
			return cn_fail(err, COLLNET_EINVAL,
				       "'%.40s' is not a size; write 512, 64k, 1m", items[i]);
		}
		if (sizes[i] > limit) {
			return cn_fail(err, COLLNET_EINVAL, "'%.40s' is larger than the limit, %s",
				       items[i], tool_format_size(limit, most));
		}
	}
	memcpy(out, sizes, n * sizeof(sizes[0]));
	*count = n;
	return COLLNET_OK;
}

int tool_parse_sizes(const char *text, uint64_t limit, uint64_t *out, size_t max, size_t *count,
		     struct cn_err *err)
{
	char *copy = strdup(text);
	int rc;

	if (copy == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a list of sizes");
	}
	rc = parse_size_list(copy, limit, out, max, count, err);
	free(copy);
	return rc;
}

int tool_parse_switch(const char *text, bool *out, struct cn_err *err)
{
	static const char *const names[] = { "off", "on", NULL };
	uint32_t i;
	int rc = tool_parse_name(text, names, &i, err);

	*out = rc == COLLNET_OK ? i == 1 : *out;
	return rc;
}

int tool_parse_mode(const char *text, enum collnet_mode *out, struct cn_err *err)
{
	static const char *const names[] = { "daemon", "direct", NULL };
	uint32_t i;
	int rc = tool_parse_name(text, names, &i, err);

	if (rc == COLLNET_OK) {
		*out = i == 0 ? COLLNET_MODE_DAEMON : COLLNET_MODE_DIRECT;
	}
	return rc;
}

int tool_parse_window(const char *text, uint32_t *out, struct cn_err *err)
{
	uint64_t n;

	if (strcmp(text, "auto") == 0) {
		*out = COLLNET_WINDOW_AUTO;
	} else if (strcmp(text, "off") == 0) {
		*out = COLLNET_WINDOW_OFF;
	} else if (cn_parse_uint(text, 1, 65535, &n)) {
		*out = (uint32_t)n;
	} else {
		return cn_fail(err, COLLNET_EINVAL,
			       "'%.40s' is not a window; write auto, off, or 1 to 65535 frames",
			       text);
	}
	return COLLNET_OK;
}

int tool_parse_seconds(const char *text, uint32_t *ms, struct cn_err *err)
{
	uint64_t total = 0, scale = 1000;
	bool point = false, digit = false;
	const char *p;

	for (p = text; *p != 0; p++) {
		if (*p == '.' && !point) {
			point = true;
			continue;
		}
		if (*p < '0' || *p > '9' || (point && scale == 1)) {
			goto bad;
		}
		digit = true;
		if (point) {
			scale /= 10;
			total += (uint64_t)(*p - '0') * scale;
		} else {
			total = total * 10 + (uint64_t)(*p - '0') * 1000;
		}
		if (total > SECONDS_MAX_MS) {
			goto bad;
		}
	}
	if (!digit || total == 0) {
		goto bad;
	}
	*ms = (uint32_t)total;
	return COLLNET_OK;
bad:
	return cn_fail(err, COLLNET_EINVAL,
		       "'%.40s' is not a time of at most 86400 seconds; write 30 or 0.5", text);
}

int tool_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out,
		      struct cn_err *err)
{
	if (!cn_parse_uint(text, min, max, out)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "'%.40s' is not a number from %" PRIu64 " to %" PRIu64, text, min,
			       max);
	}
	return COLLNET_OK;
}

int tool_parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out, struct cn_err *err)
{
	uint64_t n;
	int rc = tool_parse_number(text, min, max, &n, err);

	if (rc == COLLNET_OK) {
		*out = (uint32_t)n;
	}
	return rc;
}

int tool_parse_rate(const char *text, uint64_t *out, struct cn_err *err)
{
	if (!cn_parse_rate(text, out) || *out < CN_RATE_MIN || *out > CN_RATE_MAX) {
		return cn_fail(
			err, COLLNET_EINVAL,
			"'%.40s' is not a rate with a unit, from 1kbit to 100tbit: write 20mbit "
			"or 1gbit",
			text);
	}
	return COLLNET_OK;
}

int tool_parse_encapsulation(const char *text, enum cn_encapsulation *out, struct cn_err *err)
{
	if (!cn_parse_encapsulation(text, out)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "'%.40s' is no encapsulation; there are " CN_ENCAPSULATION_NAMES,
			       text);
	}
	return COLLNET_OK;
}

int tool_parse_rate_or_none(const char *text, uint64_t *out, struct cn_err *err)
{
	if (strcmp(text, "none") == 0) {
		*out = 0;
		return COLLNET_OK;
	}
	if (tool_parse_rate(text, out, NULL) != COLLNET_OK) {
		return cn_fail(
			err, COLLNET_EINVAL,
			"'%.40s' is neither none nor a rate with a unit, from 1kbit to 100tbit: "
			"write 20mbit or 1gbit",
			text);
	}
	return COLLNET_OK;
}

/* As kbit, a fraction of up to three digits comes out whole. */
int tool_parse_thousandths(const char *text, uint64_t *out)
{
	char number[32];

	if (*text == '\0' || strlen(text) > sizeof(number) - 8 ||
	    strspn(text, "0123456789.") < strlen(text) || strpbrk(text, "0123456789") == NULL ||
	    strchr(text, '.') != strrchr(text, '.')) {
		return COLLNET_EINVAL;
	}
	snprintf(number, sizeof(number), "%skbit", text);
	*out = 0; /* which is not a rate */
	return cn_parse_rate(number, out) || strspn(text, "0.") == strlen(text) ? COLLNET_OK
										: COLLNET_EINVAL;
}

int tool_parse_permutation(const char *text, enum cn_permutation *out, struct cn_err *err)
{
	if (!cn_perm_find(text, out)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "'%.40s' is not a permutation; there are auto, "
			       "shift, xor, edge-colour",
			       text);
	}
	return COLLNET_OK;
}

/* What getopt has refused: of a long option, the word before optind; of a letter among several,
 * none yet. */
static int refuse(const char *word, const struct option *options)
{
	const size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;

	if (optopt == 0) {
		return tool_usage("unknown or ambiguous option '%.40s'", word);
	}
	for (const struct option *o = options; n > 0 && o->name != NULL; o++) {
		if (o->val == optopt && strncmp(o->name, word + 2, n) == 0) {
			return tool_usage("--%s takes no value", o->name);
		}
	}
	return tool_usage("unknown option '-%c'", optopt);
}

/* `shorts`: how getopt is to go through the words; "+:h" ends at the first that is no option. */
static int parse_options(int argc, char **argv, const char *shorts, const struct option *options,
			 tool_option_fn *take, void *into)
{
	struct cn_err err = { 0 };
	int opt, index = -1;

	opterr = 0;
	optind = 0;
	while ((opt = getopt_long(argc, argv, shorts, options, &index)) != -1) {
		if (opt == 'h') {
			return -1;
		}
		if (opt == '?') {
			return refuse(argv[optind - 1], options);
		}
		if (opt == ':') {
			return tool_usage("%.40s needs a value", argv[optind - 1]);
		}
		if (optarg != NULL && optarg == argv[optind - 1] && strncmp(optarg, "--", 2) == 0) {
			/* getopt takes the next option for the value that was forgotten */
			return tool_usage(
				"--%s needs a value; one that begins with -- is written --%s=VALUE",
				options[index].name, options[index].name);
		}
		if (take(into, opt, optarg, &err) != COLLNET_OK) {
			return tool_usage("--%s: %s", options[index].name, err.text);
		}
	}
	return TOOL_OK;
}

int tool_options(int argc, char **argv, const struct option *options, tool_option_fn *take,
		 void *into)
{
	return parse_options(argc, argv, ":h", options, take, into);
}

int tool_options_of_command(int argc, char **argv, const struct option *options,
			    tool_option_fn *take, void *into)
{
	return parse_options(argc, argv, "+:h", options, take, into);
}

const char *tool_option_name(const struct option *options, int opt)
{
	while (options->val != opt) {
		options++;
	}
	return options->name;
}

const char *tool_format_size(uint64_t bytes, char buf[TOOL_TEXT])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	unsigned u = 0;

	while (u < 3 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		u++;
	}
	snprintf(buf, TOOL_TEXT, "%" PRIu64 " %s", bytes, units[u]);
	return buf;
}

const char *tool_format_rate(uint64_t rate, char buf[TOOL_TEXT])
{
	static const char *const units[] = { "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s" };
	double value = (double)rate;
	unsigned u = 0;

	while (u < 4 && value >= 1000) {
		value /= 1000;
		u++;
	}
	snprintf(buf, TOOL_TEXT, "%.4g %s", value, units[u]);
	return buf;
}

const char *tool_format_ns(uint64_t ns, char buf[TOOL_TEXT])
{
	if (ns < 1000000) {
		snprintf(buf, TOOL_TEXT, "%.1f us", (double)ns / 1e3);
	} else if (ns < 1000000000) {
		snprintf(buf, TOOL_TEXT, "%.2f ms", (double)ns / 1e6);
	} else {
		snprintf(buf, TOOL_TEXT, "%.2f s", (double)ns / 1e9);
	}
	return buf;
}
