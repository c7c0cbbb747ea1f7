/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps the regions that clients share: once, until the last request on a region has completed.
 *
 * The daemon creates the memory and sends its descriptor: a memfd of ordinary pages, sealed against
 * shrinking, so that no access of the daemon can fault.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PER_ITERATION ((uint64_t)64 << 20) /* bytes whose pages are dropped */
#define AT_ONCE	      512u		   /* regions; 7 ms, if each has pages */

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* A memfd of this size that nobody can resize; -1: errno says why. */
static int sealed_memory(uint64_t bytes)
{
	int fd = memfd_create("collnet", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	int e;

	if (fd < 0 && errno == EINVAL) { /* kernels before 6.3 */
		fd = memfd_create("collnet", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	}
	if (fd >= 0 && (ftruncate(fd, (off_t)bytes) != 0 ||
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
		e = errno;
		close(fd);
		errno = e;
		return -1;
	}
	return fd;
}

/* Maps new memory with additional `flags`; returns the descriptor for the client, or -1. */
static int make(struct cn_mapping *s, uint64_t bytes, int flags)
{
	int fd, e;

	/* mmap() would map only a part of more than the address space. */
	if (bytes > SIZE_MAX) {
		errno = ENOMEM;
		return -1;
	}
	fd = sealed_memory(bytes);
	if (fd < 0) {
		return -1;
	}
	s->p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | flags, fd, 0);
	if (s->p == MAP_FAILED) {
		e = errno;
		close(fd);
		errno = e;
		return -1;
	}
	s->bytes = bytes;
	s->refs = 1;
	return fd;
}

int cn_mapping_charge(struct cn_daemon *d, struct cn_user *u, uint64_t bytes, struct cn_err *err)
{
	int rc = cn_quota_charge(d, u, CN_QUOTA_REGIONS, 1, err);

	if (rc == COLLNET_OK) {
		rc = cn_quota_charge(d, u, CN_QUOTA_MEMORY, bytes, err);
		if (rc != COLLNET_OK) {
			cn_quota_uncharge(d, u, CN_QUOTA_REGIONS, 1);
		}
	}
	return rc;
}

void cn_mapping_uncharge(struct cn_daemon *d, struct cn_user *u, uint64_t bytes)
{
	cn_quota_uncharge(d, u, CN_QUOTA_REGIONS, 1);
	cn_quota_uncharge(d, u, CN_QUOTA_MEMORY, bytes);
}

bool cn_mapping_create(struct cn_client *c, const struct cn_msg_region *m)
{
	struct cn_mapping *s;
	struct cn_err err;
	int fd = -1;

	if (c->regions[m->region] != NULL) {
		cn_client_mark(c, "region number in use");
		return false;
	}
	if (m->bytes > CN_MSG_BYTES - c->bytes) {
		cn_client_mark(c, "its regions exceed the limit");
		return false;
	}
	if (cn_mapping_charge(c->daemon, c->user, m->bytes, &err) != COLLNET_OK) {
		cn_client_reply(c, m->head.tag, err.code, 0, err.text);
		return true;
	}
	s = calloc(1, sizeof(*s));
	if (s != NULL) {
		fd = make(s, m->bytes, m->region == CN_MSG_RINGS ? MAP_POPULATE : 0);
	}
	if (fd < 0) {
		cn_fail(&err, COLLNET_ENOMEM,
			"collnetd cannot allocate %llu bytes of shared memory: %s",
			(unsigned long long)m->bytes, strerror(errno));
		cn_mapping_uncharge(c->daemon, c->user, m->bytes);
		free(s);
		cn_client_reply(c, m->head.tag, err.code, 0, err.text);
		return true;
	}
	s->user = c->user;
	c->regions[m->region] = s;
	c->bytes += m->bytes;
	if (m->region == CN_MSG_RINGS) {
		cn_client_rings_open(c, s->p);
	}
	cn_client_send_descriptor(c, m->head.tag, fd);
	close(fd);
	return true;
}

bool cn_mapping_drop(struct cn_client *c, uint32_t number)
{
	struct cn_mapping *s = c->regions[number];

	if (s == NULL) {
		return false;
	}
	if (number == CN_MSG_RINGS) {
		cn_client_rings_close(c);
	}
	c->regions[number] = NULL;
	c->bytes -= s->bytes;
	cn_mapping_put(c->daemon, s);
	return true;
}

void *cn_mapping_resolve(struct cn_client *c, const struct cn_msg_buffer_ref *place, uint64_t len,
			 struct cn_mapping **ref, bool *ok)
{
	struct cn_mapping *s;

	*ok = len == 0;
	*ref = NULL;
	if (len == 0 || place->region >= CN_MSG_REGIONS) {
		return NULL;
	}
	s = c->regions[place->region];
	if (s == NULL || place->offset > s->bytes || len > s->bytes - place->offset) {
		return NULL;
	}
	*ok = true;
	*ref = s;
	s->refs++;
	return s->p + place->offset;
}

void cn_mapping_put(struct cn_daemon *d, struct cn_mapping *s)
{
	if (s != NULL && --s->refs == 0) {
		/* The engine may be the caller and still use it: the loop unmaps it later. */
		s->next = d->unmap;
		d->unmap = s;
	}
}

/*
 * Drops the pages of a part, which takes 50 ms for a GiB. They are charged to the control group of
 * the process that touched them first, and remain while another process maps them. If the daemon's
 * group has a limit and they are many, they are removed: only children of fork(), and processes
 * that try to exceed their quota, still map them. Returns the bytes.
 */
static uint64_t drop_pages(struct cn_daemon *d, struct cn_mapping *s, uint64_t most)
{
	const uint64_t left = s->bytes - s->dropped, n = left < most ? left : most;

	if (n == 0) {
		return 0;
	}
	if (cn_quota_short(d) && madvise(s->p + s->dropped, n, MADV_REMOVE) == 0) {
		s->removed += n;
	} else {
		(void)madvise(s->p + s->dropped, n, MADV_DONTNEED); /* or munmap() does it */
	}
	s->dropped += n;
	return n;
}

/* A part of the memory that waits to be unmapped, so that the loop continues. True: there is more.
 */
static bool drop_some_pages(struct cn_daemon *d)
{
	uint64_t most = PER_ITERATION;
	uint32_t n = 0;

	for (struct cn_mapping *s = d->unmap; s != NULL && n < AT_ONCE; s = s->next, n++) {
		most -= drop_pages(d, s, most);
		if (s->dropped < s->bytes) {
			return true;
		}
	}
	return false;
}

/* Whether the next ones are so large that freeing their pages could take long. */
static bool are_many(const struct cn_mapping *s)
{
	uint64_t bytes = 0;

	for (uint32_t n = 0; s != NULL && n < AT_ONCE; s = s->next, n++) {
		bytes += s->bytes - s->removed;
	}
	return bytes > PER_ITERATION;
}

/*
 * The process that drops the last reference to memory frees its pages, 0.16 s for a GiB. A client
 * ends before its socket is closed, so this process would have the last one. A reaper takes it.
 */
bool cn_mapping_unmap(struct cn_daemon *d)
{
	pid_t reaper;

	if (drop_some_pages(d)) {
		return true;
	}
	reaper = are_many(d->unmap) ? cn_reaper_begin(NULL, 0) : -1;
	for (uint32_t n = 0; d->unmap != NULL && n < AT_ONCE; n++) {
		struct cn_mapping *s = d->unmap;

		d->unmap = s->next;
		munmap(s->p, s->bytes);
		cn_mapping_uncharge(d, s->user, s->bytes);
		free(s);
	}
	cn_reaper_end(reaper);
	return d->unmap != NULL;
}
