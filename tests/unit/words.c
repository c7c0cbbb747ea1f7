/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines for tests. */
#include "words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define WORDS 48

int words(const char *line, char ***argv)
{
	static char text[1024];
	static char *word[WORDS + 1];
	int n = 0;

	assert_true(strlen(line) < sizeof(text));
	strcpy(text, line);
	for (char *w = strtok(text, " "); w != NULL; w = strtok(NULL, " ")) {
		assert_true(n < WORDS);
		word[n++] = w;
	}
	word[n] = NULL;
	*argv = word;
	return n;
}
