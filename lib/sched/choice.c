/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses and writes the names of algorithms with their modifiers. */
#include <stdio.h>
#include <string.h>

#include "sched/choice.h"

static const char rank_order[] = "rank-order";

/* One modifier of c->algorithm. */
static int modify(struct cn_choice *c, const char *text, const char *name, struct cn_err *err)
{
	enum cn_permutation p;

	if (strcmp(name, rank_order) == 0) {
		c->contention_aware = false;
		return COLLNET_OK;
	}
	if (!cn_perm_find(name, &p) || p == CN_PERM_AUTO) {
		return cn_fail(err, COLLNET_EINVAL,
			       "'%.60s': there is no modifier '%.40s'; there are %s, %s, %s and %s",
			       text, name, cn_perm_name(CN_PERM_SHIFT), cn_perm_name(CN_PERM_XOR),
			       cn_perm_name(CN_PERM_EDGE_COLOUR), rank_order);
	}
	if (c->permutation != CN_PERM_AUTO) {
		return cn_fail(err, COLLNET_EINVAL,
			       "'%.60s' names two permutations: expected one of %s, %s and %s",
			       text, cn_perm_name(CN_PERM_SHIFT), cn_perm_name(CN_PERM_XOR),
			       cn_perm_name(CN_PERM_EDGE_COLOUR));
	}
	c->permutation = p;
	return COLLNET_OK;
}

int cn_choice_parse(enum cn_op_kind op, const char *text, struct cn_choice *out, struct cn_err *err)
{
	struct cn_choice c = { .permutation = CN_PERM_AUTO, .contention_aware = true };
	size_t len = text != NULL ? strcspn(text, ":") : 0;
	char name[CN_CHOICE_TEXT] = "", known[160];
	int rc = COLLNET_OK;

	if (text == NULL) {
		*out = c;
		return COLLNET_OK;
	}
	if (len < sizeof(name)) {
		memcpy(name, text, len);
	}
	c.algorithm = name[0] != '\0' ? cn_algorithm_find(op, name) : NULL;
	if (c.algorithm == NULL) {
		return cn_fail(err, COLLNET_EINVAL, "%s has no algorithm '%.*s'; there are %s",
			       cn_op_name(op), len < 40 ? (int)len : 40, text,
			       cn_algorithm_names(op, known, sizeof(known)));
	}
	if (text[len] == ':' && !c.algorithm->permuted) {
		return cn_fail(err, COLLNET_EINVAL, "'%.60s': algorithm %s has no modifiers", text,
			       c.algorithm->name);
	}
	for (const char *at = text + len; *at != '\0' && rc == COLLNET_OK; at += len) {
		char word[CN_CHOICE_TEXT] = "";

		at++;
		len = strcspn(at, ",");
		snprintf(word, sizeof(word), "%.*s", (int)(len < sizeof(word) ? len : 40), at);
		rc = modify(&c, text, word, err);
	}
	if (rc == COLLNET_OK) {
		*out = c;
	}
	return rc;
}

const char *cn_choice_format(const struct cn_choice *c, char out[CN_CHOICE_TEXT])
{
	bool permuted = c->permutation != CN_PERM_AUTO, ranks = !c->contention_aware;

	snprintf(out, CN_CHOICE_TEXT, "%s%s%s%s%s", c->algorithm->name,
		 permuted || ranks ? ":" : "", permuted ? cn_perm_name(c->permutation) : "",
		 permuted && ranks ? "," : "", ranks ? rank_order : "");
	return out;
}

/* Bytes of the first entry of a list, with its modifiers. */
static size_t entry(const char *text)
{
	size_t len = strcspn(text, ","), more;

	if (memchr(text, ':', len) == NULL) {
		return len;
	}
	while (text[len] == ',') {
		more = strcspn(text + len + 1, ",");
		if (more == 0 || memchr(text + len + 1, '=', more) != NULL) {
			break;
		}
		len += 1 + more;
	}
	return len;
}

int cn_choice_override(const char *text, enum cn_op_kind op, struct cn_choice *out,
		       struct cn_err *err)
{
	uint32_t named = 0; /* operations, by a bit */

	cn_choice_parse(op, NULL, out, NULL);
	while (*text != '\0') {
		size_t len = entry(text);
		char part[96] = "", *name;
		struct cn_choice c;
		struct cn_err why;
		enum cn_op_kind of;

		if (len < sizeof(part)) {
			memcpy(part, text, len);
		}
		name = strchr(part, '=');
		if (name == NULL) {
			return cn_fail(err, COLLNET_EINVAL,
				       "'%.60s': expected OPERATION=ALGORITHM, "
				       "like alltoall=aapc,allgather=lr3",
				       text);
		}
		*name++ = '\0';
		if (!cn_op_find(part, &of)) {
			return cn_fail(err, COLLNET_EINVAL, "'%.60s': there is no operation '%s'",
				       text, part);
		}
		if ((named >> of & 1) != 0) {
			return cn_fail(err, COLLNET_EINVAL, "'%.60s': %s is named twice", text,
				       part);
		}
		named |= 1u << of;
		if (cn_choice_parse(of, name, &c, &why) != COLLNET_OK) {
			return cn_fail(err, COLLNET_EINVAL, "'%.60s': %s", text, why.text);
		}
		if (of == op) {
			*out = c;
		}
		text += len + (text[len] == ',');
	}
	return COLLNET_OK;
}
