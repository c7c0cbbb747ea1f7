/* SPDX-License-Identifier: BSD-2-Clause */
/* The regions that clients share with the daemon: mapping.c makes them, unmap.c ends them. */
#ifndef CN_DAEMON_MAPPING_H
#define CN_DAEMON_MAPPING_H

#include "ipc/msg.h"
#include "node/memfd.h"
#include "util/util.h"

#define CN_REGIONS_MAX	 49152u /* of all clients: a process may have 65,530 mappings */
#define CN_WATCH_BUCKETS 1024u

struct cn_client;
struct cn_daemon;
struct cn_user;

/* A client's region. References: its number while it has one, and each request on it. */
struct cn_mapping {
	uint8_t *p; /* NULL: unmapped */
	uint64_t bytes;
	uint64_t dropped; /* of these, released before it is unmapped */
	int fd;		  /* closed when the region is watched */
	int watch;	  /* then: that reports when the kernel has freed the memory */
	bool sealed; /* nobody can punch holes any more: it may be read, written and unmapped */
	uint32_t refs;
	struct cn_user *user;	 /* who is charged for it */
	struct cn_mapping *next; /* in a list of unmap.c */
};

/* First in, first out. */
struct cn_mappings {
	struct cn_mapping *first, *last;
};

/* ---- mapping.c ------------------------------------------------------------------------ */

/* Charges a region of this size to the user, or COLLNET_ELIMIT. */
int cn_mapping_charge(struct cn_daemon *d, struct cn_user *u, uint64_t bytes, struct cn_err *err);
void cn_mapping_uncharge(struct cn_daemon *d, struct cn_user *u, uint64_t bytes);
/* Makes and maps a region, and replies with its descriptor. False: the client is marked for close.
 */
bool cn_mapping_create(struct cn_client *c, const struct cn_msg_region *m);
bool cn_mapping_drop(struct cn_client *c, uint32_t number);
/*
 * The address of a buffer reference, with a reference to its mapping. NULL with *ok: no buffer is
 * needed (len 0). False in *ok: it is not within a region of the client, or that is not sealed.
 */
void *cn_mapping_resolve(struct cn_client *c, const struct cn_msg_buffer_ref *place, uint64_t len,
			 struct cn_mapping **ref, bool *ok);
/* Whether the client has sealed it. Until then, nothing may read, write or unmap it. */
bool cn_mapping_is_sealed(struct cn_mapping *s);

/* ---- unmap.c -------------------------------------------------------------------------- */

void cn_mapping_put(struct cn_daemon *d, struct cn_mapping *s);
/* Unmaps unused memory, or a part of it. True: there is more. */
bool cn_mapping_unmap(struct cn_daemon *d);
/* Handles what inotify reports: memory that was freed. */
void cn_mapping_collect(struct cn_daemon *d);
/* Whether memory will soon be freed for which users are still charged. */
bool cn_mapping_is_ending(const struct cn_daemon *d);
/* When cn_mapping_unmap() has something to try again. */
cn_time cn_mapping_deadline(const struct cn_daemon *d);
/* At the end of the daemon: forgets all unused memory. */
void cn_mapping_end(struct cn_daemon *d);

#endif
