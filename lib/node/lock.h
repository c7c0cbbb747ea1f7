/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One process per interface and EtherType at a time; see lock.c.
 */
#ifndef CN_LOCK_H
#define CN_LOCK_H

#include "util/util.h"

#define CN_LOCK_DIR "/run/collnet" /* the daemon's run directory */

struct cn_lock {
	int file_fd, name_fd; /* -1: not held */
};

/* COLLNET_EIFACE: another process has it, which err names. Nothing is held after an error. */
int cn_lock_acquire(const char *dir, const char *interface, uint16_t ethertype, struct cn_lock *l,
		    struct cn_err *err);
void cn_lock_release(struct cn_lock *l);
/* In a child of fork(): closes its descriptors; the parent keeps the lock. */
void cn_lock_forked(struct cn_lock *l);

#endif
