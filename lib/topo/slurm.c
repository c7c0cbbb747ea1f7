/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the topology.conf of Slurm's tree plugin: a line a switch, with its children.
 *
 *   SwitchName=s0 Switches=s[1-3] LinkSpeed=10gbit
 *   SwitchName=s1 Nodes=node[01-12,20],login
 *
 * As Slurm reads it: keys in any case, blanks around '=', values perhaps in double quotes, '#'
 * begins a comment, and a backslash that ends a line joins the next one to it. LinkSpeed is in
 * arbitrary units there; it is the rate of the links to the line's children when it is a rate with
 * a unit of ours, and otherwise they are of unknown rate. The switch at the top becomes the first
 * vertex, and so the root; then the switches and the hosts in the order of the file.
 *
 * Input is untrusted. The text is copied once, without comments, and split in place; host lists are
 * expanded one name at a time, and all of them together name at most CHILDREN_MAX.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/build.h"
#include "topo/topo.h"
#include "util/hostlist.h"
#include "util/vector.h"

#define CHILDREN_MAX (4 * CN_TOPO_VERTICES_MAX)

/* A line: values in the copied text, NULL if absent. */
struct line {
	uint32_t number; /* in the file */
	char *name, *switches, *nodes, *speed;
};

struct slurm {
	struct cn_build b;
	char *text; /* the copy */
	struct line *lines;
	uint32_t n, cap;
	uint32_t children; /* named so far */
	bool *child;	   /* [n] some other switch names it */
};

/* ---- host lists ------------------------------------------------------------------------- */

/* Callback for a name of a list. */
typedef int (*parse_name)(struct slurm *s, const struct line *l, const char *name,
			  struct cn_err *err);

static int each_name(struct slurm *s, const struct line *l, const char *list, parse_name take,
		     struct cn_err *err)
{
	char name[COLLNET_NAME_MAX + 2]; /* a longer one is cut to this, and so refused */
	char found[CN_HOSTLIST_FOUND];
	struct cn_hostlist h;
	int more, rc;

	cn_hostlist_begin(&h, list);
	while ((more = cn_hostlist_next(&h, name, sizeof(name))) == 1) {
		if (s->children++ == CHILDREN_MAX) {
			return cn_build_fail(&s->b, l->number, err,
					     "expected lists of at most %u names together",
					     CHILDREN_MAX);
		}
		rc = take(s, l, name, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
	}
	if (more != 0) {
		return cn_build_fail(&s->b, l->number, err,
				     "expected a list of names like node[01-12,20],sw3, found %s",
				     cn_hostlist_found(&h, found));
	}
	return COLLNET_OK;
}

/* ---- lines ------------------------------------------------------------------------------ */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Equal in the first n characters but for the case of ASCII letters, in any locale. */
static bool same_letters(const char *a, const char *b, size_t n)
{
	while (n > 0 && *a != '\0' && lower(*a) == lower(*b)) {
		a++;
		b++;
		n--;
	}
	return n == 0 || lower(*a) == lower(*b);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/*
 * Copies the logical line at text[*at] to `to`, with a NUL: joined lines, without comments. Bytes
 * that are no text are an error; *lines counts lines.
 */
static int copy_line(const struct slurm *s, const char *text, size_t len, size_t *at,
		     uint32_t *lines, char **to, struct cn_err *err)
{
	char *p = *to;
	bool more = true;

	while (more && *at < len) {
		const char *end = memchr(text + *at, '\n', len - *at);
		size_t stop = end == NULL ? len : (size_t)(end - text), i = *at;
		char *start = p;

		for (; i < stop && text[i] != '#'; i++) {
			if (!is_blank(text[i]) && (text[i] < ' ' || text[i] >= 0x7f)) {
				return cn_build_fail(&s->b, s->b.line + *lines, err,
						     "expected plain text, found the byte 0x%02x",
						     (unsigned int)(unsigned char)text[i]);
			}
			*p++ = text[i];
		}
		while (p > start && is_blank(p[-1])) {
			p--;
		}
		more = p > start && p[-1] == '\\';
		p -= more;
		*at = stop + 1;
		(*lines)++;
	}
	*p++ = '\0';
	*to = p;
	return COLLNET_OK;
}

/* Parses "KEY = VALUE" at *p in place. False: something else. */
static bool next_pair(char **p, char **key, char **value)
{
	char *q = *p, *key_end, quote = '\0';

	*key = q;
	q += strcspn(q, " \t\r=");
	key_end = q;
	while (is_blank(*q)) {
		q++;
	}
	if (*q != '=' || key_end == *key) {
		return false;
	}
	q++;
	while (is_blank(*q)) {
		q++;
	}
	if (*q == '"') {
		quote = *q++;
	}
	*value = q;
	q += strcspn(q, quote != '\0' ? "\"" : " \t\r");
	if (q == *value || (quote != '\0' && *q == '\0')) {
		return false;
	}
	if (*q != '\0') {
		*q++ = '\0';
	}
	*key_end = '\0';
	*p = q;
	return true;
}

/* Length of a word shown in an error. */
static int shown(const char *word)
{
	size_t n = strcspn(word, " \t\r");

	return n > 40 ? 40 : (int)n;
}

static int parse_line(struct slurm *s, char *p, struct cn_err *err)
{
	struct line l = { .number = s->b.line }, *lines;
	const struct {
		const char *key;
		char **value;
	} keys[] = { { "SwitchName", &l.name },
		     { "Switches", &l.switches },
		     { "Nodes", &l.nodes },
		     { "LinkSpeed", &l.speed } };
	char *key, *value;
	size_t k;

	for (p += strspn(p, " \t\r"); *p != '\0'; p += strspn(p, " \t\r")) {
		const char *word = p;

		if (!next_pair(&p, &key, &value)) {
			return cn_build_fail(&s->b, s->b.line, err,
					     "expected KEY=VALUE, found '%.*s'", shown(word), word);
		}
		for (k = 0; k < 4 && !same_letters(key, keys[k].key, SIZE_MAX); k++) {
		}
		if (k == 4 || (k == 0) != (l.name == NULL)) {
			return cn_build_fail(&s->b, s->b.line, err,
					     "expected SwitchName= and then Switches=, Nodes= or "
					     "LinkSpeed=, found '%.40s'",
					     key);
		}
		if (*keys[k].value != NULL) {
			return cn_build_fail(&s->b, s->b.line, err, "expected %s= once in a line",
					     keys[k].key);
		}
		*keys[k].value = value;
	}
	if (l.name == NULL) {
		return COLLNET_OK;
	}
	if (l.switches == NULL && l.nodes == NULL) {
		return cn_build_fail(&s->b, s->b.line, err,
				     "expected Switches= or Nodes= for switch '%.63s'", l.name);
	}
	lines = cn_vector_grow(s->lines, s->n, &s->cap, sizeof(*lines));
	if (lines == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "%.160s: no memory for the topology",
			       s->b.name);
	}
	s->lines = lines;
	s->lines[s->n++] = l;
	return COLLNET_OK;
}

/* ---- the graph -------------------------------------------------------------------------- */

/* Index of the switch of that name in the topology, in order of lines. */
static int find_switch(const struct slurm *s, const struct line *l, const char *name, uint32_t *out,
		       struct cn_err *err)
{
	*out = cn_topo_find(s->b.t, name);
	if (*out == CN_TOPO_NONE || !s->b.t->vertices[*out].is_switch) {
		return cn_build_fail(&s->b, l->number, err,
				     "expected a switch with a line SwitchName=%s", name);
	}
	return COLLNET_OK;
}

static int mark_child(struct slurm *s, const struct line *l, const char *name, struct cn_err *err)
{
	uint32_t v;
	int rc = find_switch(s, l, name, &v, err);

	if (rc == COLLNET_OK) {
		s->child[v] = true;
	}
	return rc;
}

/* A rate with a unit; a plain number has an unknown unit. */
static uint64_t speed_of(const struct line *l)
{
	uint64_t rate;

	if (l->speed == NULL || !cn_parse_rate(l->speed, &rate) || rate < CN_RATE_MIN ||
	    rate > CN_RATE_MAX) {
		return 0;
	}
	return rate;
}

static int link_switch(struct slurm *s, const struct line *l, const char *name, struct cn_err *err)
{
	s->b.line = l->number;
	return cn_build_link(&s->b, name, l->name, speed_of(l), 0, 1, err);
}

static int add_host(struct slurm *s, const struct line *l, const char *name, struct cn_err *err)
{
	int rc;

	s->b.line = l->number;
	rc = cn_build_vertex(&s->b, name, false, NULL, err);
	if (rc == COLLNET_OK) {
		rc = cn_build_link(&s->b, name, l->name, speed_of(l), 0, 1, err);
	}
	return rc;
}

static int add_switches(struct slurm *s, size_t first, struct cn_err *err)
{
	int rc = COLLNET_OK;

	for (size_t i = 0; rc == COLLNET_OK && i <= s->n; i++) {
		/* `first` at the very beginning, and not again in its place */
		const struct line *l = &s->lines[i == 0 ? first : i - 1];

		if (i == 0 || i - 1 != first) {
			s->b.line = l->number;
			rc = cn_build_vertex(&s->b, l->name, true, NULL, err);
		}
	}
	return rc;
}

/* The only switch without a parent. */
static int find_top(struct slurm *s, size_t *top, struct cn_err *err)
{
	int rc = COLLNET_OK;

	for (size_t i = 0; rc == COLLNET_OK && i < s->n; i++) {
		if (s->lines[i].switches != NULL) {
			rc = each_name(s, &s->lines[i], s->lines[i].switches, mark_child, err);
		}
	}
	*top = s->n;
	for (size_t i = 0; rc == COLLNET_OK && i < s->n; i++) {
		if (s->child[i]) {
			continue;
		}
		if (*top < s->n) {
			return cn_build_fail(
				&s->b, s->lines[i].number, err,
				"expected one switch at the top: neither '%s' nor '%s' "
				"is in the Switches= of another; join them by a line "
				"SwitchName=NAME Switches=%s,%s",
				s->lines[*top].name, s->lines[i].name, s->lines[*top].name,
				s->lines[i].name);
		}
		*top = i;
	}
	if (rc == COLLNET_OK && *top == s->n) {
		return cn_build_fail(&s->b, s->lines[0].number, err,
				     "expected a switch at the top, in no Switches= of another");
	}
	return rc;
}

/* Switches are built twice: in the order of the lines to find the top, then below it. */
static int make_graph(struct slurm *s, struct cn_topo **out, struct cn_err *err)
{
	const char *name = s->b.name;
	size_t top = 0;
	int rc;

	if (s->n == 0) {
		return cn_build_fail(&s->b, s->b.line, err, "expected a line SwitchName=NAME");
	}
	rc = add_switches(s, 0, err);
	if (rc == COLLNET_OK) {
		rc = find_top(s, &top, err);
	}
	if (rc == COLLNET_OK && top != 0) {
		cn_build_abort(&s->b);
		rc = cn_build_init(&s->b, name, err);
		if (rc == COLLNET_OK) {
			rc = add_switches(s, top, err);
		}
	}
	s->children = 0;
	for (size_t i = 0; rc == COLLNET_OK && i < s->n; i++) {
		if (s->lines[i].switches != NULL) {
			rc = each_name(s, &s->lines[i], s->lines[i].switches, link_switch, err);
		}
	}
	for (size_t i = 0; rc == COLLNET_OK && i < s->n; i++) {
		if (s->lines[i].nodes != NULL) {
			rc = each_name(s, &s->lines[i], s->lines[i].nodes, add_host, err);
		}
	}
	return rc == COLLNET_OK ? cn_build_finish(&s->b, out, err) : rc;
}

static int read_lines(struct slurm *s, const char *text, size_t len, struct cn_err *err)
{
	char *to = s->text, *line;
	uint32_t lines;
	size_t at = 0;
	int rc = COLLNET_OK;

	while (rc == COLLNET_OK && at < len) {
		line = to;
		lines = 0;
		rc = copy_line(s, text, len, &at, &lines, &to, err);
		if (rc == COLLNET_OK) {
			rc = parse_line(s, line, err);
		}
		if (rc == COLLNET_OK && at < len) {
			s->b.line += lines;
		}
	}
	return rc;
}

int cn_topo_parse_slurm(const char *text, size_t len, const char *name, struct cn_topo **out,
			struct cn_err *err)
{
	struct slurm s = { 0 };
	int rc;

	if (len > CN_TOPO_FILE_MAX) {
		return cn_fail(err, COLLNET_ETOPO, "%.160s:1: expected at most %zu bytes", name,
			       CN_TOPO_FILE_MAX);
	}
	rc = cn_build_init(&s.b, name, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	s.b.line = 1;
	s.text = malloc(len + 1); /* a line's NUL takes the place of its end */
	if (s.text == NULL) {
		rc = cn_fail(err, COLLNET_ENOMEM, "%.160s: no memory for the topology", name);
	} else {
		rc = read_lines(&s, text, len, err);
	}
	if (rc == COLLNET_OK) {
		s.child = calloc(s.n + 1, sizeof(*s.child));
		rc = s.child != NULL ? make_graph(&s, out, err)
				     : cn_fail(err, COLLNET_ENOMEM,
					       "%.160s: no memory for the topology", name);
	}
	cn_build_abort(&s.b);
	free(s.text);
	free(s.lines);
	free(s.child);
	return rc;
}

/* The first statement, after blank lines and comments, begins with SwitchName. */
bool cn_topo_is_slurm(const char *text, size_t len)
{
	static const char word[] = "SwitchName";
	size_t at = 0, n = sizeof(word) - 1;

	while (at < len && (is_blank(text[at]) || text[at] == '#')) {
		if (text[at] == '#') {
			const char *end = memchr(text + at, '\n', len - at);

			at = end == NULL ? len : (size_t)(end - text);
		} else {
			at++;
		}
	}
	return len - at > n && same_letters(text + at, word, n) &&
	       (is_blank(text[at + n]) || text[at + n] == '=');
}
