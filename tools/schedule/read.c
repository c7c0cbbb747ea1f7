/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a schedule as emit_text.c writes it, or as a person did. The hosts' parts are made line by
 * line, in the order of the file; the checker decides whether they are correct. Memory is
 * linear in the file. Every error has the file, the line and what was expected.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/schedule/command.h"
#include "util/file.h"

#define FILE_MAX       ((size_t)1 << 30)
#define LINE_MAX_BYTES 4096
#define WORDS_MAX      512
#define PHASES_MAX     (1u << 28)

/* Where a named message is. */
struct named {
	uint32_t from, to;	 /* nodes; the same: a copy */
	uint32_t sent, received; /* places in their lists */
	bool known;
};

struct reader {
	const char *name;
	uint32_t line;
	const struct cn_topo *topo;
	struct subject *s;
	struct cn_sched *parts;
	uint32_t *hosts, nhosts; /* vertices, as they come */
	uint32_t *node_of;	 /* [nvertices] node of a vertex, CN_TOPO_NONE */
	struct named *names;
	uint64_t nnames, names_max;
	char root[COLLNET_NAME_MAX + 1];
	uint32_t phases;
	enum cn_order order;
	bool op_given, size_given, phases_given;
	struct cn_err *err;
	char text[LINE_MAX_BYTES];
	const char *words[WORDS_MAX];
	uint32_t nwords, at; /* the word that is read next */
};

static int wrong(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int wrong(struct reader *r, const char *fmt, ...)
{
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	for (char *p = what; *p != '\0'; p++) {
		*p = *p < ' ' || *p > '~' ? '?' : *p; /* any byte may come from a file */
	}
	return cn_fail(r->err, COLLNET_EINVAL, "%.100s:%u: %s", r->name, r->line > 0 ? r->line : 1,
		       what);
}

static const char *next(struct reader *r)
{
	return r->at < r->nwords ? r->words[r->at++] : "";
}

static bool next_is(struct reader *r, const char *word)
{
	if (r->at < r->nwords && strcmp(r->words[r->at], word) == 0) {
		r->at++;
		return true;
	}
	return false;
}

static int expected(struct reader *r, const char *what, const char *got)
{
	return wrong(r, "expected %s, not '%.60s'", what,
		     *got == '\0' ? "the end of the line" : got);
}

/* Words at blanks; a comma is a blank, and a colon ends a word. */
static int split(struct reader *r, const char *line, size_t len)
{
	const char *comment = memchr(line, '#', len);
	char *p = r->text;

	len = comment != NULL ? (size_t)(comment - line) : len;
	if (len >= sizeof(r->text)) {
		return wrong(r, "the line is longer than %d bytes", LINE_MAX_BYTES - 1);
	}
	if (memchr(line, '\0', len) != NULL) {
		return wrong(r, "the line contains a zero byte");
	}
	memcpy(r->text, line, len);
	r->text[len] = '\0';
	r->nwords = r->at = 0;
	while (*(p += strspn(p, " \t\r,")) != '\0') {
		if (r->nwords == WORDS_MAX) {
			return wrong(r, "the line has more than %d words", WORDS_MAX);
		}
		r->words[r->nwords++] = p;
		p += strcspn(p, " \t\r,");
		if (*p != '\0') {
			*p++ = '\0';
		}
	}
	return COLLNET_OK;
}

/* ---- the head ----------------------------------------------------------------------------- */

static int read_hosts(struct reader *r)
{
	while (r->at < r->nwords) {
		const char *name = next(r);
		uint32_t v = cn_topo_find(r->topo, name);

		if (v == CN_TOPO_NONE || r->topo->vertices[v].is_switch) {
			return wrong(r, "'%.63s' is not a host of the network", name);
		}
		if (r->node_of[v] != CN_TOPO_NONE) {
			return wrong(r, "host %.63s is named twice", name);
		}
		if (r->nhosts > 0 && r->hosts[r->nhosts - 1] > v) {
			return wrong(r,
				     "%.63s comes earlier in the topology: name the hosts in "
				     "its order",
				     name);
		}
		r->node_of[v] = r->nhosts;
		r->hosts[r->nhosts++] = v;
	}
	return COLLNET_OK;
}

static int read_guarantees(struct reader *r)
{
	r->s->guarantees = 0;
	while (r->at < r->nwords) {
		if (next_is(r, "links")) {
			r->s->guarantees |= CN_GUARANTEE_LINKS;
		} else if (next_is(r, "ordered")) {
			r->s->guarantees |= CN_GUARANTEE_ORDERED;
		} else if (next_is(r, "optimal")) {
			r->s->guarantees |= CN_GUARANTEE_OPTIMAL;
		} else if (!next_is(r, "none")) {
			return expected(r, "links, ordered, optimal or none", next(r));
		}
	}
	return COLLNET_OK;
}

static int read_order(struct reader *r)
{
	for (enum cn_order o = CN_ORDER_IN_TURN; o <= CN_ORDER_ANY; o++) {
		if (next_is(r, emit_order_name(o))) {
			r->order = o;
			return COLLNET_OK;
		}
	}
	return expected(r, "in-turn, interleaved or any", next(r));
}

static int read_head(struct reader *r)
{
	const char *word = next(r), *value;
	uint64_t n = 0;

	if (strcmp(word, "hosts") == 0) {
		return read_hosts(r);
	}
	if (strcmp(word, "guarantees") == 0) {
		return read_guarantees(r);
	}
	if (strcmp(word, "order") == 0) {
		return read_order(r);
	}
	if (strcmp(word, "part") == 0) {
		return wrong(r, "this is the part of one host; the schedule of all is needed");
	}
	value = next(r);
	if (strcmp(word, "schedule") == 0) {
		r->op_given = cn_op_find(value, &r->s->plan.op) &&
			      !cn_op_is_vector(r->s->plan.op) && !cn_op_reduces(r->s->plan.op);
		return r->op_given ? COLLNET_OK : expected(r, "an operation", value);
	}
	if (strcmp(word, "algorithm") == 0 && *value != '\0') {
		snprintf(r->s->name, sizeof(r->s->name), "%s", value);
		return COLLNET_OK;
	}
	if (strcmp(word, "root") == 0 && strlen(value) < sizeof(r->root) && *value != '\0') {
		snprintf(r->root, sizeof(r->root), "%s", value);
		return COLLNET_OK;
	}
	if (strcmp(word, "size") == 0) {
		r->size_given = cn_parse_size(value, &r->s->plan.bytes) &&
				r->s->plan.bytes <= COLLNET_BLOCK_MAX;
		return r->size_given ? COLLNET_OK : expected(r, "the bytes of a block", value);
	}
	if (strcmp(word, "phases") == 0) {
		r->phases_given = cn_parse_uint(value, 0, PHASES_MAX, &n);
		r->phases = (uint32_t)n;
		return r->phases_given ? COLLNET_OK : expected(r, "a number of phases", value);
	}
	return expected(r,
			"schedule, algorithm, hosts, size, root, order, phases, guarantees or a "
			"phase's message",
			word);
}

/* At the first message: everything that messages need is there. */
static int end_head(struct reader *r)
{
	struct subject *s = r->s, made;
	struct cn_err why = { 0 };
	int rc;

	if (!r->op_given || r->nhosts == 0 || (!r->size_given && s->plan.op != CN_OP_BARRIER)) {
		return wrong(r, "before the first message expected lines with schedule, hosts and "
				"size");
	}
	rc = subject_init(&made, r->topo, r->hosts, r->nhosts, &why);
	made.plan.op = s->plan.op;
	made.plan.bytes = s->plan.bytes;
	made.guarantees = s->guarantees;
	memcpy(made.name, s->name, sizeof(made.name));
	*s = made;
	if (rc != COLLNET_OK) {
		return wrong(r, "%.200s", why.text);
	}
	if (r->root[0] != '\0' && subject_find(s, r->root, &s->plan.root, &why) != COLLNET_OK) {
		return wrong(r, "root: %.200s", why.text);
	}
	r->parts = calloc(r->nhosts, sizeof(*r->parts));
	if (r->parts == NULL) {
		return cn_fail(r->err, COLLNET_ENOMEM, "no memory for the parts of %u hosts",
			       r->nhosts);
	}
	return COLLNET_OK;
}

/* ---- messages ----------------------------------------------------------------------------- */

static int read_host(struct reader *r, uint32_t *node)
{
	const char *name = next(r);
	uint32_t v = *name == '\0' ? CN_TOPO_NONE : cn_topo_find(r->topo, name);

	if (v == CN_TOPO_NONE || r->node_of[v] == CN_TOPO_NONE) {
		return expected(r, "a host of the line 'hosts'", name);
	}
	*node = r->node_of[v];
	return COLLNET_OK;
}

/* "m12" */
static int read_name(struct reader *r, uint64_t *n)
{
	const char *word = next(r);

	if (word[0] != 'm' || !cn_parse_uint(word + 1, 1, r->names_max, n)) {
		return expected(r, "the name of a message, like m12", word);
	}
	return COLLNET_OK;
}

/* "A" and "B" of "A-B" or "A+B". */
static bool pair(const char *text, char between, uint64_t *a, uint64_t *b)
{
	const char *sign = strchr(text, between);
	char first[24];

	if (sign == NULL || (size_t)(sign - text) >= sizeof(first)) {
		return false;
	}
	memcpy(first, text, (size_t)(sign - text));
	first[sign - text] = '\0';
	return cn_parse_uint(first, 0, UINT64_MAX, a) && cn_parse_uint(sign + 1, 0, UINT64_MAX, b);
}

static int read_place(struct reader *r, uint64_t *offset, uint64_t *len)
{
	uint64_t size = r->s->plan.bytes, a, b, most = size * r->s->layout.nranks;
	const char *word;

	if (next_is(r, "bytes")) {
		word = next(r);
		if (!pair(word, '+', &a, &b) || a > most || b > most - a) {
			return expected(r, "bytes of a buffer, like 1000+24", word);
		}
		*offset = a;
		*len = b;
		return COLLNET_OK;
	}
	if (next_is(r, "block")) {
		word = next(r);
		if (!cn_parse_uint(word, 0, r->s->layout.nranks - 1, &a)) {
			return expected(r, "the number of a block", word);
		}
		b = a;
	} else if (next_is(r, "blocks")) {
		word = next(r);
		if (!pair(word, '-', &a, &b) || a > b || b >= r->s->layout.nranks) {
			return expected(r, "numbers of blocks, like 3-5", word);
		}
	} else {
		return expected(r, "block, blocks or bytes", next(r));
	}
	*offset = a * size;
	*len = (b - a + 1) * size;
	return COLLNET_OK;
}

/* "send block 5 to block 0" */
static int read_data(struct reader *r, struct cn_action *a, uint32_t from, uint32_t to)
{
	uint64_t len;
	int rc;

	a->dst = (struct cn_span){ CN_BUF_RECV, to, 0 };
	a->src = (struct cn_span){ CN_BUF_SEND, from, 0 };
	if (next_is(r, "recv")) {
		a->src.buffer = CN_BUF_RECV;
	} else if (!next_is(r, "send")) {
		return expected(r, "send or recv, the buffer that it is from", next(r));
	}
	rc = read_place(r, &a->src.offset, &a->len);
	if (rc == COLLNET_OK && !next_is(r, "to")) {
		rc = expected(r, "'to' and the place in the receive buffer", next(r));
	}
	rc = rc == COLLNET_OK ? read_place(r, &a->dst.offset, &len) : rc;
	if (rc == COLLNET_OK && len != a->len) {
		rc = wrong(r, "the two places are not of one length");
	}
	return rc;
}

/* The action of `node` that a name stands for. */
static int resolve(struct reader *r, uint32_t node, uint32_t *action)
{
	const struct named *n;
	uint64_t name = 0;
	int rc = read_name(r, &name);

	if (rc != COLLNET_OK) {
		return rc;
	}
	n = name < r->nnames ? &r->names[name] : NULL;
	if (n == NULL || !n->known) {
		return wrong(r, "no earlier message is called m%llu", (unsigned long long)name);
	}
	if (n->to != node && n->from != node) {
		return wrong(r,
			     "%s does not know when m%llu is done: it neither sends nor "
			     "receives it",
			     cn_tree_node_name(r->s->tree, node), (unsigned long long)name);
	}
	*action = n->to == node ? n->received : n->sent;
	return COLLNET_OK;
}

static int read_waits(struct reader *r, uint32_t node, uint32_t phase)
{
	int rc = COLLNET_OK;

	do {
		struct cn_action a = {
			.kind = CN_ACT_WAIT, .dep = CN_DEP_COMPLETE, .peer = node, .phase = phase
		};

		rc = resolve(r, node, &a.dep_on);
		rc = rc == COLLNET_OK ? cn_sched_add(&r->parts[node], &a, r->err) : rc;
	} while (rc == COLLNET_OK && r->at < r->nwords && r->words[r->at][0] == 'm');
	return rc;
}

static int remember(struct reader *r, uint64_t name, const struct named *n)
{
	if (name >= r->nnames) {
		uint64_t size = r->nnames == 0 ? 64 : r->nnames * 2;
		struct named *names;

		size = size > name ? size : name + 1;
		names = realloc(r->names, size * sizeof(*names));
		if (names == NULL) {
			return cn_fail(r->err, COLLNET_ENOMEM,
				       "no memory for the names of messages");
		}
		memset(names + r->nnames, 0, (size - r->nnames) * sizeof(*names));
		r->names = names;
		r->nnames = size;
	}
	if (r->names[name].known) {
		return wrong(r, "another message is called m%llu", (unsigned long long)name);
	}
	r->names[name] = *n;
	return COLLNET_OK;
}

/* The clauses after the message, and the message into its lists. */
static int finish_message(struct reader *r, struct cn_action *a, uint32_t from, uint32_t to)
{
	struct named n = { .from = from, .to = to, .known = true };
	uint64_t name = 0;
	int rc = COLLNET_OK;

	while (rc == COLLNET_OK && r->at < r->nwords) {
		const char *word = next(r);

		if (strcmp(word, "after") == 0) {
			rc = read_waits(r, from, a->phase);
		} else if (strcmp(word, "needs") == 0 || strcmp(word, "streams") == 0) {
			a->dep = word[0] == 'n' ? CN_DEP_COMPLETE : CN_DEP_STREAM;
			rc = resolve(r, from, &a->dep_on);
		} else if (strcmp(word, "as") == 0) {
			rc = read_name(r, &name);
		} else {
			rc = expected(r, "after, needs, streams, as, or nothing", word);
		}
	}
	n.sent = r->parts[from].n;
	rc = rc == COLLNET_OK ? cn_sched_add(&r->parts[from], a, r->err) : rc;
	if (rc == COLLNET_OK && a->kind == CN_ACT_SEND) {
		struct cn_action b = *a;

		b.kind = CN_ACT_RECV;
		b.peer = from;
		b.dep = CN_DEP_NONE;
		b.dep_on = 0;
		n.received = r->parts[to].n;
		rc = cn_sched_add(&r->parts[to], &b, r->err);
	} else {
		n.received = n.sent;
	}
	return rc == COLLNET_OK && name > 0 ? remember(r, name, &n) : rc;
}

static int read_message(struct reader *r)
{
	struct cn_action a = { .kind = CN_ACT_SEND };
	char number[24];
	const char *word;
	uint32_t from = 0, to = 0;
	uint64_t phase;
	size_t len;
	int rc;

	word = next(r);
	len = strlen(word);
	if (len < 2 || len > sizeof(number) || word[len - 1] != ':') {
		return expected(r, "the phase's number and a colon", word);
	}
	memcpy(number, word, len - 1);
	number[len - 1] = '\0';
	if (!cn_parse_uint(number, 0, PHASES_MAX - 1, &phase)) {
		return expected(r, "the phase's number and a colon", word);
	}
	if (r->phases_given && phase >= r->phases) {
		return wrong(r, "there are %u phases, numbered from 0", r->phases);
	}
	a.phase = (uint32_t)phase;
	r->phases = a.phase >= r->phases ? a.phase + 1 : r->phases;
	rc = read_host(r, &from);
	if (rc != COLLNET_OK) {
		return rc;
	}
	word = next(r);
	if (strcmp(word, "copies") == 0) {
		a.kind = CN_ACT_COPY;
		to = from;
	} else if (strcmp(word, "->") == 0 || strcmp(word, "=>") == 0) {
		rc = read_host(r, &to);
		if (rc == COLLNET_OK && to == from) {
			rc = wrong(r, "a host sends nothing to itself; it copies");
		}
	} else {
		return expected(r, "->, => or copies", word);
	}
	a.peer = to;
	if (rc == COLLNET_OK && strcmp(word, "=>") == 0) {
		rc = next_is(r, "sync") ? COLLNET_OK : expected(r, "sync", next(r));
	} else if (rc == COLLNET_OK) {
		rc = read_data(r, &a, from, to);
	}
	return rc == COLLNET_OK ? finish_message(r, &a, from, to) : rc;
}

/* ------------------------------------------------------------------------------------------ */

static int read_lines(struct reader *r, const char *text, size_t len)
{
	const char *p = text, *end = text + len;
	int rc = COLLNET_OK;

	while (rc == COLLNET_OK && p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		size_t n = newline != NULL ? (size_t)(newline - p) : (size_t)(end - p);

		r->line++;
		rc = split(r, p, n);
		p += newline != NULL ? n + 1 : n;
		if (rc != COLLNET_OK || r->nwords == 0) {
			continue;
		}
		if (next_is(r, "phase")) {
			rc = r->parts == NULL ? end_head(r) : COLLNET_OK;
			rc = rc == COLLNET_OK ? read_message(r) : rc;
		} else if (r->parts != NULL) {
			rc = expected(r, "a line of a message, which begins with phase",
				      r->words[0]);
		} else {
			rc = read_head(r);
		}
		if (rc == COLLNET_OK && r->at < r->nwords) {
			rc = expected(r, "the end of the line", r->words[r->at]);
		}
	}
	return rc == COLLNET_OK && r->parts == NULL ? end_head(r) : rc;
}

int schedule_parse(const char *text, size_t len, const char *name, const struct cn_topo *topo,
		   struct subject *s, struct cn_sched **parts, struct cn_err *err)
{
	struct reader *r = calloc(1, sizeof(*r));
	int rc = COLLNET_ENOMEM;

	memset(s, 0, sizeof(*s));
	s->guarantees = CN_GUARANTEE_LINKS;
	snprintf(s->name, sizeof(s->name), "unnamed");
	if (r != NULL) {
		r->hosts = calloc((size_t)topo->nhosts + 1, sizeof(*r->hosts));
		r->node_of = malloc(((size_t)topo->nvertices + 1) * sizeof(*r->node_of));
	}
	if (r == NULL || r->hosts == NULL || r->node_of == NULL) {
		cn_fail(err, rc, "no memory to read %.100s", name);
	} else {
		memset(r->node_of, 0xff, topo->nvertices * sizeof(*r->node_of));
		r->name = name;
		r->topo = topo;
		r->s = s;
		r->err = err;
		r->names_max = len;
		rc = read_lines(r, text, len);
	}
	for (uint32_t b = 0; r != NULL && r->parts != NULL && b < r->nhosts; b++) {
		r->parts[b].phases = r->phases;
		r->parts[b].order = r->order;
	}
	if (rc == COLLNET_OK) {
		*parts = r->parts;
	} else if (r != NULL) {
		subject_free_parts(s, r->parts);
	}
	if (r != NULL) {
		free(r->hosts);
		free(r->node_of);
		free(r->names);
	}
	free(r);
	return rc;
}

int schedule_read(const char *path, const struct cn_topo *topo, struct subject *s,
		  struct cn_sched **parts, struct cn_err *err)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t n = 0;
	int rc = COLLNET_OK;

	memset(s, 0, sizeof(*s));
	if (f == NULL) {
		return cn_fail(err, COLLNET_ESYSTEM, "%.100s: %s", path, strerror(errno));
	}
	text = cn_read_all(f, FILE_MAX, &n);
	if (text == NULL) {
		rc = cn_fail(err, COLLNET_ESYSTEM, "%.100s: %s", path, strerror(errno));
	} else if (n > FILE_MAX) {
		rc = cn_fail(err, COLLNET_ELIMIT, "%.100s is too long", path);
	}
	fclose(f);
	rc = rc == COLLNET_OK ? schedule_parse(text, n, path, topo, s, parts, err) : rc;
	free(text);
	return rc;
}
