/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The grammar of `collnet sim --fault`, one fault a text, words between blanks:
 *
 *   fault:  { t=TIME | for=TIME } action
 *   action: crash HOST | restart HOST | pause HOST | cut LINK | repair LINK |
 *           partition HOSTS|HOSTS | (loss | duplicate | reorder | corrupt) PERCENT [LINK]
 *   LINK:   HOST, its link to its switch; or NAME-NAME
 *   HOSTS:  HOST or HOST-HOST, a range in the topology's order; several with commas
 *
 * Errors name the column, counted from 1, and the words that are expected there.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/sim/fault.h"
#include "tools/sim/parse.h"

#define WORD_MAX 1023u

struct parser {
	const struct cn_topo *topo;
	const char *text, *next;
	char word[WORD_MAX + 1];
	size_t column; /* of the word */
	struct cn_err *err;
};

static const struct {
	const char *name;
	enum sim_fault_kind kind;
} actions[] = {
	{ "crash", SIM_FAULT_CRASH },	  { "restart", SIM_FAULT_RESTART },
	{ "pause", SIM_FAULT_PAUSE },	  { "cut", SIM_FAULT_CUT },
	{ "repair", SIM_FAULT_REPAIR },	  { "partition", SIM_FAULT_PARTITION },
	{ "loss", SIM_FAULT_LOSS },	  { "duplicate", SIM_FAULT_DUPLICATE },
	{ "reorder", SIM_FAULT_REORDER }, { "corrupt", SIM_FAULT_CORRUPT },
};
static const char action_names[] =
	"crash, restart, pause, cut, repair, partition, loss, duplicate, reorder or corrupt";

static int expected(struct parser *p, const char *what)
{
	if (p->word[0] == '\0') {
		return cn_fail(p->err, COLLNET_EINVAL,
			       "--fault '%.80s', column %zu: incomplete; "
			       "expected %s",
			       p->text, p->column, what);
	}
	return cn_fail(p->err, COLLNET_EINVAL, "--fault '%.80s', column %zu: '%.40s'; expected %s",
		       p->text, p->column, p->word, what);
}

/* The next word; an empty one at the end. */
static int advance(struct parser *p)
{
	size_t n;

	p->next += strspn(p->next, " \t");
	n = strcspn(p->next, " \t");
	p->column = (size_t)(p->next - p->text) + 1;
	p->word[0] = '\0';
	if (n > WORD_MAX) {
		return expected(p, "words of at most 1023 characters");
	}
	memcpy(p->word, p->next, n);
	p->word[n] = '\0';
	p->next += n;
	return COLLNET_OK;
}

static uint32_t find_host(const struct cn_topo *t, const char *name)
{
	uint32_t v = cn_topo_find(t, name);

	for (uint32_t i = 0; v != CN_TOPO_NONE && i < t->nhosts; i++) {
		if (t->hosts[i] == v) {
			return i;
		}
	}
	return CN_TOPO_NONE;
}

static int parse_host(struct parser *p, uint32_t *out)
{
	*out = find_host(p->topo, p->word);
	return *out != CN_TOPO_NONE ? COLLNET_OK
				    : expected(p, "a host of the topology, such as h3");
}

static int parse_link(struct parser *p, uint32_t *out)
{
	uint32_t host = find_host(p->topo, p->word);

	if (host != CN_TOPO_NONE) {
		*out = p->topo->vertices[p->topo->hosts[host]].parent_link;
		return COLLNET_OK;
	}
	if (sim_find_port(p->topo, p->word, out, NULL) == COLLNET_OK) {
		return COLLNET_OK;
	}
	return expected(p, "a host, for its link, or the two ends of a link, such as s0-s1");
}

/* "h3" or "h0-h7". */
static bool parse_range(const struct cn_topo *t, char *item, uint32_t *first, uint32_t *last)
{
	*first = *last = find_host(t, item);
	for (char *dash = strchr(item, '-'); *first == CN_TOPO_NONE && dash != NULL;
	     dash = strchr(dash + 1, '-')) {
		*dash = '\0';
		*first = find_host(t, item);
		*last = find_host(t, dash + 1);
		*dash = '-';
		if (*first == CN_TOPO_NONE || *last == CN_TOPO_NONE || *first > *last) {
			*first = CN_TOPO_NONE;
		}
	}
	return *first != CN_TOPO_NONE;
}

static int parse_side(struct parser *p, char *list, uint8_t side, uint8_t *sides)
{
	static const char hosts[] = "hosts or ranges on both sides of a '|', such as h0-h3|h4,h6";
	char *save = NULL, *item = strtok_r(list, ",", &save);
	uint32_t first, last;

	if (item == NULL) {
		return expected(p, hosts);
	}
	for (; item != NULL; item = strtok_r(NULL, ",", &save)) {
		if (!parse_range(p->topo, item, &first, &last)) {
			return expected(p, hosts);
		}
		for (uint32_t i = first; i <= last; i++) {
			if (sides[i] != 0 && sides[i] != side) {
				return expected(p, "every host on one side only");
			}
			sides[i] = side;
		}
	}
	return COLLNET_OK;
}

static int parse_partition(struct parser *p, struct sim_fault *f)
{
	char copy[WORD_MAX + 1], *bar;
	int rc;

	memcpy(copy, p->word, sizeof(copy));
	bar = strchr(copy, '|');
	if (bar == NULL) {
		return expected(p,
				"two sets of hosts with a '|' between them, such as h0-h3|h4-h7");
	}
	*bar = '\0';
	f->side = calloc(p->topo->nhosts + 1, 1);
	if (f->side == NULL) {
		return cn_fail(p->err, COLLNET_ENOMEM, "no memory for a partition");
	}
	rc = parse_side(p, copy, 1, f->side);
	return rc == COLLNET_OK ? parse_side(p, bar + 1, 2, f->side) : rc;
}

/* "5%", "0.01%" into parts per million. */
static int parse_share(struct parser *p, struct sim_fault *f)
{
	const uint32_t most = f->kind == SIM_FAULT_DUPLICATE ? 100000 : 1000000;
	size_t digits = strspn(p->word, "0123456789"), more = 0;
	const char *rest = p->word + digits;
	uint64_t ppm = 0, scale = 10000;

	if (*rest == '.') {
		more = strspn(rest + 1, "0123456789");
		rest += 1 + more;
	}
	for (size_t i = 0; i < digits && digits <= 3; i++) {
		ppm = ppm * 10 + (uint64_t)(p->word[i] - '0');
	}
	ppm *= 10000;
	for (size_t i = 0; i < more; i++) {
		scale /= 10;
		ppm += scale * (uint64_t)(p->word[digits + 1 + i] - '0');
	}
	if (digits == 0 || digits > 3 || more > 4 || strcmp(rest, "%") != 0 || ppm > most) {
		return expected(p, most < 1000000 ? "a share of at most 10%, such as 0.5%"
						  : "a share of at most 100%, such as 5%");
	}
	f->ppm = (uint32_t)ppm;
	return COLLNET_OK;
}

static int parse_times(struct parser *p, struct sim_fault *f)
{
	bool at = false, lasts = false;
	int rc;

	while ((rc = advance(p)) == COLLNET_OK) {
		bool *given = strncmp(p->word, "t=", 2) == 0	 ? &at
			      : strncmp(p->word, "for=", 4) == 0 ? &lasts
								 : NULL;
		cn_time *into = given == &at ? &f->at : &f->lasts;

		if (given == NULL) {
			return COLLNET_OK;
		}
		if (*given || sim_parse_time(strchr(p->word, '=') + 1, into, NULL) != COLLNET_OK ||
		    (given == &lasts && f->lasts == 0)) {
			return expected(
				p, "one t= and one for= with a time of at most a minute and its "
				   "unit, such as t=2.5ms for=300us");
		}
		*given = true;
	}
	return rc;
}

static int parse_object(struct parser *p, struct sim_fault *f)
{
	int rc = advance(p);

	if (rc != COLLNET_OK) {
		return rc;
	}
	switch (f->kind) {
	case SIM_FAULT_CRASH:
	case SIM_FAULT_RESTART:
	case SIM_FAULT_PAUSE:
		return parse_host(p, &f->host);
	case SIM_FAULT_CUT:
	case SIM_FAULT_REPAIR:
		return parse_link(p, &f->link);
	case SIM_FAULT_PARTITION:
		return parse_partition(p, f);
	default:
		rc = parse_share(p, f);
		rc = rc == COLLNET_OK ? advance(p) : rc;
		return rc != COLLNET_OK || p->word[0] == '\0' ? rc : parse_link(p, &f->link);
	}
}

static int parse(struct parser *p, struct sim_fault *f)
{
	const size_t n = sizeof(actions) / sizeof(actions[0]);
	size_t i = 0;
	int rc = parse_times(p, f);

	if (rc != COLLNET_OK) {
		return rc;
	}
	while (i < n && strcmp(p->word, actions[i].name) != 0) {
		i++;
	}
	if (i == n) {
		return expected(p, action_names);
	}
	f->kind = actions[i].kind;
	if (f->kind == SIM_FAULT_PAUSE && f->lasts == 0) {
		return expected(p, "for=TIME before a pause");
	}
	if ((f->kind == SIM_FAULT_RESTART || f->kind == SIM_FAULT_REPAIR) && f->lasts != 0) {
		return expected(p, "no for=TIME before a restart or repair");
	}
	rc = parse_object(p, f);
	if (rc == COLLNET_OK && p->word[0] != '\0') {
		rc = advance(p);
	}
	return rc == COLLNET_OK && p->word[0] != '\0' ? expected(p, "the end") : rc;
}

int sim_fault_parse(const struct cn_topo *t, const char *text, struct sim_fault *out,
		    struct cn_err *err)
{
	struct parser p = { .topo = t, .text = text, .next = text, .err = err };
	struct sim_fault f = { .text = text, .host = CN_TOPO_NONE, .link = CN_TOPO_NONE };
	int rc = parse(&p, &f);

	if (rc != COLLNET_OK) {
		free(f.side);
		return rc;
	}
	*out = f;
	return COLLNET_OK;
}
