/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole files. */
#ifndef CN_FILE_H
#define CN_FILE_H

#include <stddef.h>
#include <stdio.h>

/*
 * Reads the rest of a stream and appends a NUL; the caller frees the memory. Of a longer stream it
 * reads max + 1 bytes or more, so *len > max detects it. NULL: error in errno.
 */
char *cn_read_all(FILE *f, size_t max, size_t *len);

#endif
