/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the text format of topology files (topo.h describes it).
 *
 * Input is untrusted: a line is split into at most WORDS_MAX words within its bounds, everything
 * must parse as a whole, and every error is "file:line: expected ...".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/build.h"
#include "topo/topo.h"
#include "util/file.h"

#define WORDS_MAX 10
#define WORD_MAX  128

struct statement {
	unsigned int n;
	char word[WORDS_MAX][WORD_MAX];
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* A word may only hold visible ASCII, so that an error can print it. */
static bool is_visible(char c)
{
	return c > ' ' && c < 0x7f;
}

/* Splits a line into words without the comment. */
static int cut_line(const struct cn_build *b, const char *p, size_t len, struct statement *s,
		    struct cn_err *err)
{
	size_t i = 0, start;

	s->n = 0;
	for (;;) {
		while (i < len && is_blank(p[i])) {
			i++;
		}
		if (i == len || p[i] == '#') {
			return COLLNET_OK;
		}
		start = i;
		while (i < len && is_visible(p[i]) && p[i] != '#') {
			i++;
		}
		if (i < len && !is_blank(p[i]) && p[i] != '#') {
			return cn_build_fail(b, b->line, err,
					     "expected plain text, found the byte 0x%02x",
					     (unsigned int)(unsigned char)p[i]);
		}
		if (i - start >= WORD_MAX) {
			return cn_build_fail(b, b->line, err,
					     "expected a word of less than %d characters",
					     WORD_MAX);
		}
		if (s->n == WORDS_MAX) {
			return cn_build_fail(b, b->line, err,
					     "expected the end of the line, found '%.*s'",
					     (int)(i - start), p + start);
		}
		memcpy(s->word[s->n], p + start, i - start);
		s->word[s->n++][i - start] = '\0';
	}
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	if (c >= 'a' && c <= 'f') {
		return c - 'a' + 10;
	}
	if (c >= 'A' && c <= 'F') {
		return c - 'A' + 10;
	}
	return -1;
}

/* Six pairs of hexadecimal digits with colons; an address of one station, not a group. */
static bool parse_mac(const char *text, uint8_t mac[6])
{
	static const uint8_t zero[6];
	int i, hi, lo;

	if (strlen(text) != 17) {
		return false;
	}
	for (i = 0; i < 6; i++) {
		hi = hex_digit(text[3 * i]);
		lo = hex_digit(text[3 * i + 1]);
		if (hi < 0 || lo < 0 || (i < 5 && text[3 * i + 2] != ':')) {
			return false;
		}
		mac[i] = (uint8_t)(hi * 16 + lo);
	}
	return (mac[0] & 1) == 0 && memcmp(mac, zero, 6) != 0;
}

static int extra_word(const struct cn_build *b, const struct statement *s, unsigned int n,
		      struct cn_err *err)
{
	if (s->n > n) {
		return cn_build_fail(b, b->line, err, "expected the end of the line, found '%s'",
				     s->word[n]);
	}
	return COLLNET_OK;
}

/* switch NAME [input-buffered] | host NAME [mac XX:XX:XX:XX:XX:XX] */
static int parse_vertex(struct cn_build *b, const struct statement *s, bool is_switch,
			struct cn_err *err)
{
	uint8_t mac[6];
	unsigned int n = 2;
	int rc;

	if (s->n < 2) {
		return cn_build_fail(b, b->line, err, "expected a name after '%s'", s->word[0]);
	}
	if (is_switch && s->n > 2) {
		if (strcmp(s->word[2], "input-buffered") != 0) {
			return cn_build_fail(b, b->line, err,
					     "expected 'input-buffered' or the end of the line, "
					     "found '%s'",
					     s->word[2]);
		}
		n = 3;
	}
	if (!is_switch && s->n > 2) {
		if (strcmp(s->word[2], "mac") != 0 || s->n < 4 || !parse_mac(s->word[3], mac)) {
			return cn_build_fail(b, b->line, err,
					     "expected 'mac XX:XX:XX:XX:XX:XX' (one station's) "
					     "after the host's name");
		}
		n = 4;
	}
	rc = extra_word(b, s, n, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	rc = cn_build_vertex(b, s->word[1], is_switch, n == 4 ? mac : NULL, err);
	if (rc == COLLNET_OK && n == 3) {
		b->t->vertices[b->t->nvertices - 1].input_buffered = true;
	}
	return rc;
}

/* link A B rate RATE [buffer FRAMES] [channels N] */
static int parse_link(struct cn_build *b, const struct statement *s, struct cn_err *err)
{
	uint64_t rate = 0, buffer = 0, channels = 1;
	unsigned int at = 5;
	int rc;

	if (s->n < 3) {
		return cn_build_fail(b, b->line, err, "expected two names after 'link'");
	}
	if (s->n < 5 || strcmp(s->word[3], "rate") != 0) {
		return cn_build_fail(b, b->line, err,
				     "expected 'rate RATE' after the names, like 'rate 20mbit'");
	}
	if (strcmp(s->word[4], "none") != 0 &&
	    (!cn_parse_rate(s->word[4], &rate) || rate < CN_RATE_MIN || rate > CN_RATE_MAX)) {
		return cn_build_fail(b, b->line, err,
				     "expected 'rate RATE' with a unit, like 20mbit, from 1kbit to "
				     "100tbit, or none, found '%s'",
				     s->word[4]);
	}
	if (s->n > at && strcmp(s->word[at], "buffer") == 0) {
		if (s->n < at + 2 ||
		    !cn_parse_uint(s->word[at + 1], 1, CN_TOPO_BUFFER_MAX, &buffer)) {
			return cn_build_fail(b, b->line, err,
					     "expected 'buffer FRAMES' after the rate, 1 to %u",
					     CN_TOPO_BUFFER_MAX);
		}
		at += 2;
	}
	if (s->n > at) {
		if (strcmp(s->word[at], "channels") != 0 || s->n < at + 2 ||
		    !cn_parse_uint(s->word[at + 1], 1, CN_TOPO_CHANNELS_MAX, &channels)) {
			return cn_build_fail(b, b->line, err,
					     "expected 'buffer FRAMES', 'channels N' (1 to %u) or "
					     "the end of the line, found '%s'",
					     CN_TOPO_CHANNELS_MAX, s->word[at]);
		}
		at += 2;
	}
	rc = extra_word(b, s, at, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	return cn_build_link(b, s->word[1], s->word[2], rate, (uint32_t)buffer, (uint32_t)channels,
			     err);
}

static int parse_statement(struct cn_build *b, const struct statement *s, struct cn_err *err)
{
	if (s->n == 0) {
		return COLLNET_OK;
	}
	if (strcmp(s->word[0], "switch") == 0) {
		return parse_vertex(b, s, true, err);
	}
	if (strcmp(s->word[0], "host") == 0) {
		return parse_vertex(b, s, false, err);
	}
	if (strcmp(s->word[0], "link") == 0) {
		return parse_link(b, s, err);
	}
	return cn_build_fail(b, b->line, err, "expected 'switch', 'host' or 'link', found '%s'",
			     s->word[0]);
}

int cn_topo_parse(const char *text, size_t len, const char *name, struct cn_topo **out,
		  struct cn_err *err)
{
	struct statement s;
	struct cn_build b;
	const char *end;
	size_t at = 0, n;
	int rc;

	if (len > CN_TOPO_FILE_MAX) {
		return cn_fail(err, COLLNET_ETOPO, "%.160s:1: expected at most %zu bytes", name,
			       CN_TOPO_FILE_MAX);
	}
	rc = cn_build_init(&b, name, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	b.line = 1;
	while (rc == COLLNET_OK && at < len) {
		end = memchr(text + at, '\n', len - at);
		n = end == NULL ? len - at : (size_t)(end - (text + at));
		rc = cut_line(&b, text + at, n, &s, err);
		if (rc == COLLNET_OK) {
			rc = parse_statement(&b, &s, err);
		}
		at += n + 1;
		if (rc == COLLNET_OK && at < len) {
			b.line++;
		}
	}
	if (rc == COLLNET_OK) {
		rc = cn_build_finish(&b, out, err);
	}
	if (rc != COLLNET_OK) {
		cn_build_abort(&b);
	}
	return rc;
}

/* A file without memory or descriptors to read it has no error. */
static int unread(const char *path, int e, struct cn_err *err)
{
	const int code = e == ENOMEM		      ? COLLNET_ENOMEM
			 : e == EMFILE || e == ENFILE ? COLLNET_ESYSTEM
						      : COLLNET_ETOPO;

	return cn_fail(err, code, "cannot read the topology file %.160s: %s", path, cn_strerror(e));
}

int cn_topo_read(const char *path, struct cn_topo **out, struct cn_err *err)
{
	size_t len = 0;
	char *text = NULL;
	FILE *f = fopen(path, "re");
	int rc;

	if (f != NULL) {
		text = cn_read_all(f, CN_TOPO_FILE_MAX, &len);
	}
	if (text == NULL) {
		rc = unread(path, errno, err);
	} else {
		rc = cn_topo_is_slurm(text, len) ? cn_topo_parse_slurm(text, len, path, out, err)
						 : cn_topo_parse(text, len, path, out, err);
	}
	free(text);
	if (f != NULL) {
		fclose(f);
	}
	return rc;
}
