/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the daemon shares with a client: a memfd.
 *
 * The daemon seals it against changes of its size, so that no access faults. The client maps it and
 * adds another seal (F_SEAL_FUTURE_WRITE), after which nobody can punch holes or map it for
 * writing. Before that, a client can punch a hole, which takes seconds if there are many mappings.
 * Meanwhile an access to the memory waits in the kernel, and so do mmap(), munmap() and fork().
 *
 * The daemon and the client each have an open file description of their own. The kernel grants the
 * daemon a lease only if nobody else has the memory open or mapped.
 */
#ifndef CN_MEMFD_H
#define CN_MEMFD_H

#include <stdbool.h>
#include <stdint.h>

/* What cn_memfd_new() returns: a mapping of the memory, which children of fork() do not inherit,
 * and two descriptors for reading, the daemon's and the client's. All are the caller's. */
struct cn_memfd {
	uint8_t *p;
	int own, client;
};

/* Makes memory; with MAP_POPULATE in `flags`, its pages as well. False: errno says why. */
bool cn_memfd_new(struct cn_memfd *m, uint64_t bytes, int flags);

/* Client: maps and seals the memory of the descriptor that it received. NULL: it has another size,
 * the size can change, or errno says why. */
void *cn_memfd_map(int client, uint64_t bytes, int flags);

/* Daemon: whether the client has sealed it, as far as the kernel knows the seal. Never waits. */
bool cn_memfd_is_sealed(int own);
/* Daemon: unmaps memory that is not sealed, if nobody else has it open or mapped, or could open it
 * meanwhile. Never waits. False: it is still mapped. A system without leases does not tell. */
bool cn_memfd_unmap_alone(int own, void *p, uint64_t bytes);
/* Daemon: adds a watch of the memory to an inotify instance, which reports IN_DELETE_SELF when the
 * memory has been freed. Returns the watch, or -1. */
int cn_memfd_watch(int inotify, int own);

#endif
