/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole files. */
#ifndef CN_FILE_H
#define CN_FILE_H

#include <stddef.h>
#include <stdio.h>

/*
 * The rest of a stream and a NUL, in memory that the caller frees; of a longer one max + 1 bytes or
 * more, so that *len > max tells. NULL: errno has the reason.
 */
char *cn_read_all(FILE *f, size_t max, size_t *len);

#endif
