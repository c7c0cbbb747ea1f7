/* SPDX-License-Identifier: BSD-2-Clause */
/* The file with the key of the cluster, by which frames are authenticated (proto/auth.h). */
#ifndef CN_KEY_H
#define CN_KEY_H

#include <sys/types.h>

#include "util/siphash.h"
#include "util/util.h"

/* 32 hexadecimal digits on one line, in a regular file that only its owner may read: root, the user
 * of this process, or `owner`, which it is to become. */
int cn_key_read(const char *path, uid_t owner, uint8_t out[CN_SIPHASH_KEY], struct cn_err *err);
/* This process has a key: it leaves no core dumps, and others of its user cannot trace it. */
void cn_key_protect(void);

#endif
