/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of ranks and of node names as ranges, for messages: "3, 5, 7-9" and "h8-h15, h20". */
#ifndef CN_RANGES_H
#define CN_RANGES_H

#include "util/util.h"

/* Ranks are added in ascending order; begin with { .text, .cap }. */
struct cn_rank_list {
	char *text;
	size_t cap, len;
	uint32_t first, last, count; /* the open range */
};
void cn_rank_list_add(struct cn_rank_list *l, uint32_t rank);
void cn_rank_list_end(struct cn_rank_list *l);

/* Names that count up are a range. They must live until the end. */
struct cn_name_list {
	char text[200];
	size_t len;
	const char *first, *last; /* the open range; first NULL: none */
};
void cn_name_list_add(struct cn_name_list *l, const char *name);
void cn_name_list_end(struct cn_name_list *l);

#endif
