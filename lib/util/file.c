/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/file.h"

#include <stdlib.h>

#define FIRST 65536u

char *cn_read_all(FILE *f, size_t max, size_t *len)
{
	size_t cap = FIRST, n = 0;
	char *text = malloc(cap), *more;

	while (text != NULL) {
		n += fread(text + n, 1, cap - 1 - n, f);
		if (n < cap - 1 || n > max) {
			text[n] = '\0';
			break;
		}
		more = realloc(text, cap * 2);
		if (more == NULL) {
			free(text);
			return NULL;
		}
		text = more;
		cap *= 2;
	}
	if (text != NULL && ferror(f)) {
		free(text);
		return NULL;
	}
	*len = n;
	return text;
}
