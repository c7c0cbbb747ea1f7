/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One process per interface and EtherType at a time; see lock.c.
 */
#ifndef CN_LOCK_H
#define CN_LOCK_H

#include "node/descriptor.h"
#include "util/util.h"

#define CN_LOCK_DIR "/run/collnet" /* the daemon's run directory */

struct cn_lock {
	int file_fd, name_fd; /* -1: not held */
	struct cn_descriptor_id file_id, name_id;
};

#define CN_LOCK_NONE ((struct cn_lock){ .file_fd = -1, .name_fd = -1 })

/*
 * Acquires a lock of which *l holds nothing, or only the file. COLLNET_EIFACE: another process has
 * it, which err names. After an error *l holds what it held before.
 */
int cn_lock_acquire(const char *dir, const char *interface, uint16_t ethertype, struct cn_lock *l,
		    struct cn_err *err);
/* Only the file: before the interface exists, and before a daemon loses the permission to open it.
 * COLLNET_OK also where the directory is not usable. */
int cn_lock_acquire_file(const char *dir, const char *interface, uint16_t ethertype,
			 struct cn_lock *l, struct cn_err *err);
/* Keeps the file, for another interface with this name. */
void cn_lock_release_name(struct cn_lock *l);
void cn_lock_release(struct cn_lock *l);
/* In a child of fork(): closes its descriptors; the parent keeps the lock. */
void cn_lock_forked(struct cn_lock *l);

#endif
