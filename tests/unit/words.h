/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines for tests. */
#ifndef TESTS_WORDS_H
#define TESTS_WORDS_H

/* Cuts a line at blanks, up to 48 words; how many. The texts live until the next call. */
int words(const char *line, char ***argv);

#endif
