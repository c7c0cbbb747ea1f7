/* SPDX-License-Identifier: BSD-2-Clause */
/* The file with the key of the cluster, by which frames are authenticated (proto/auth.h). */
#ifndef CN_KEY_H
#define CN_KEY_H

#include "util/siphash.h"
#include "util/util.h"

/* 32 hexadecimal digits on one line, in a regular file that only its owner may read. */
int cn_key_read(const char *path, uint8_t out[CN_SIPHASH_KEY], struct cn_err *err);

#endif
