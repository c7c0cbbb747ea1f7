/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A list of hosts as Slurm writes it: node[01-12,20],login. It is expanded one name at a time, as
 * twenty characters may denote a billion names.
 */
#ifndef CN_HOSTLIST_H
#define CN_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CN_HOSTLIST_GROUPS 8  /* brackets in one name */
#define CN_HOSTLIST_FOUND  48 /* text of cn_hostlist_found() */

struct cn_hostlist {
	const char *at; /* after the current element; position of an error */
	bool within;	/* the current element has more names */
	/* an element, such as r[0-1]n[01-12,20]: its literal texts, and positions */
	unsigned int groups;
	const char *before[CN_HOSTLIST_GROUPS + 1]; /* text before group i, and after the last */
	int before_len[CN_HOSTLIST_GROUPS + 1];
	const char *ranges[CN_HOSTLIST_GROUPS];	 /* after the bracket */
	const char *present[CN_HOSTLIST_GROUPS]; /* range */
	uint32_t now[CN_HOSTLIST_GROUPS], last[CN_HOSTLIST_GROUPS];
	int width[CN_HOSTLIST_GROUPS];
};

/* The text must outlive the list. */
void cn_hostlist_begin(struct cn_hostlist *h, const char *text);
/*
 * The next name, truncated to size - 1 bytes. 1: a name; 0: end of the list; -1: syntax error at
 * h->at. An empty text is an error.
 */
int cn_hostlist_next(struct cn_hostlist *h, char *name, size_t size);
/* The text at h->at, for a message: its beginning in quotes, or "its end". Returns text. */
const char *cn_hostlist_found(const struct cn_hostlist *h, char text[CN_HOSTLIST_FOUND]);

#endif
