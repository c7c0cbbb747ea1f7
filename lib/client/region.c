/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory shared with the daemon: collnet_alloc()'s, and regions for copies of the caller's other
 * memory. Staging regions are cached after their request; a new one is created only if no free one
 * is large enough, replacing the largest of these, so there are never more of them than concurrent
 * requests. When memory is short, all free ones are freed.
 */
#include "client/daemon.h"

#include "node/memfd.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COPY_MIN ((uint64_t)64 << 10)

static uint64_t whole_pages(uint64_t bytes)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

static int create(struct collnet *c, uint32_t number, uint64_t bytes, struct cn_err *err)
{
	struct cn_daemon_side *d = c->impl;
	struct cn_msg_region m = { .head = { .type = CN_MSG_REGION }, .region = number };
	struct cn_msg_unregion back = { .head = { .type = CN_MSG_UNREGION }, .region = number };
	/* The rings get their pages now: a slot is used again only after all others have been. */
	const int flags = number == CN_MSG_RINGS ? MAP_POPULATE : 0;
	void *p = NULL;
	int fd, rc;

	m.bytes = whole_pages(bytes);
	if (m.bytes > CN_MSG_BYTES - d->bytes) {
		return cn_fail(
			err, COLLNET_ELIMIT,
			"%llu bytes of shared memory are more than the %llu that are left to this "
			"context",
			(unsigned long long)bytes, (unsigned long long)(CN_MSG_BYTES - d->bytes));
	}
	rc = cn_socket_request_descriptor(c, &m, sizeof(m), &fd, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (fd >= 0) {
		p = cn_memfd_map(fd, m.bytes, flags);
		close(fd);
	}
	if (p == NULL) {
		cn_socket_send(c, &back, sizeof(back), NULL);
		return cn_fail(err, COLLNET_ENOMEM,
			       "%llu bytes of shared memory from collnetd cannot be mapped: the "
			       "limits of descriptors (ulimit -n) and of address space (ulimit -v) "
			       "may be too low, or /proc is not mounted",
			       (unsigned long long)bytes);
	}
	d->regions[number].p = p;
	d->regions[number].bytes = m.bytes;
	d->regions[number].busy = false;
	d->bytes += m.bytes;
	return COLLNET_OK;
}

void cn_region_destroy(struct collnet *c, uint32_t number)
{
	struct cn_daemon_side *d = c->impl;
	struct cn_region *r = &d->regions[number];
	struct cn_msg_unregion m = { .head = { .type = CN_MSG_UNREGION }, .region = number };

	if (r->p == NULL) {
		return;
	}
	munmap(r->p, r->bytes); /* first: its user is charged for it until then */
	/* Rings end with the connection. */
	if (number != CN_MSG_RINGS && c->gone.code == COLLNET_OK && d->fd >= 0) {
		cn_socket_send(c, &m, sizeof(m), NULL);
	}
	d->bytes -= r->bytes;
	r->p = NULL;
}

/* Frees unused staging regions; true if there were any. */
static bool drop_copies(struct collnet *c)
{
	struct cn_daemon_side *d = c->impl;
	bool any = false;

	for (uint32_t i = CN_MSG_USER_REGIONS; i < CN_MSG_USER_REGIONS + d->copies; i++) {
		if (d->regions[i].p != NULL && !d->regions[i].busy) {
			cn_region_destroy(c, i);
			any = true;
		}
	}
	return any;
}

int cn_region_create(struct collnet *c, uint32_t number, uint64_t bytes, struct cn_err *err)
{
	int rc = create(c, number, bytes, err);

	if ((rc == COLLNET_ELIMIT || rc == COLLNET_ENOMEM) && drop_copies(c)) {
		rc = create(c, number, bytes, err);
	}
	return rc;
}

bool cn_region_find(struct collnet *c, const void *p, uint64_t len, struct cn_msg_buffer_ref *out)
{
	struct cn_daemon_side *d = c->impl;
	const uintptr_t at = (uintptr_t)p;

	for (uint32_t i = 0; i < CN_MSG_USER_REGIONS; i++) {
		const struct cn_region *r = &d->regions[i];
		const uintptr_t begin = (uintptr_t)r->p;

		if (r->p != NULL && at >= begin && at - begin < r->bytes &&
		    len <= r->bytes - (at - begin)) {
			out->region = i;
			out->offset = at - begin;
			return true;
		}
	}
	return false;
}

/* Sizes of staging regions are quarters of powers of two, so that growing requests soon fit. */
static uint64_t copy_size(uint64_t bytes)
{
	uint64_t size = COPY_MIN;

	while (size <= bytes / 2) {
		size *= 2;
	}
	return (bytes + size / 4 - 1) / (size / 4) * (size / 4);
}

/*
 * True if a region that is too small is replaced by a larger one. While a call waits, the daemon
 * creates a region at once, but only if no other message precedes the request on the socket.
 */
static bool replaces(struct cn_daemon_side *d, uint32_t small, uint32_t empty)
{
	const bool full = empty == CN_MSG_REGIONS &&
			  CN_MSG_USER_REGIONS + d->copies == CN_MSG_REGIONS;

	return small != CN_MSG_REGIONS && (full || cn_rings_blocked_on(d, cn_now()) == 0);
}

int cn_region_acquire(struct collnet *c, uint64_t bytes, uint32_t *number, struct cn_err *err)
{
	struct cn_daemon_side *d = c->impl;
	uint32_t fit = CN_MSG_REGIONS, small = CN_MSG_REGIONS, empty = CN_MSG_REGIONS;
	uint64_t size = bytes < COPY_MIN ? COPY_MIN : copy_size(bytes);
	int rc;

	for (uint32_t i = CN_MSG_USER_REGIONS; i < CN_MSG_USER_REGIONS + d->copies; i++) {
		const struct cn_region *r = &d->regions[i];

		if (r->p == NULL) {
			empty = empty < CN_MSG_REGIONS ? empty : i;
		} else if (r->busy) {
			continue;
		} else if (r->bytes < bytes) {
			small = small == CN_MSG_REGIONS || r->bytes > d->regions[small].bytes
					? i
					: small;
		} else {
			fit = fit == CN_MSG_REGIONS || r->bytes < d->regions[fit].bytes ? i : fit;
		}
	}
	if (fit == CN_MSG_REGIONS) {
		if (replaces(d, small, empty)) {
			cn_region_destroy(c, small);
			empty = small;
		} else if (empty == CN_MSG_REGIONS) {
			/* There are as many numbers as requests. */
			empty = CN_MSG_USER_REGIONS + d->copies;
		}
		rc = cn_region_create(c, empty, size, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
		fit = empty;
		if (fit == CN_MSG_USER_REGIONS + d->copies) {
			d->copies++;
		}
	}
	d->regions[fit].busy = true;
	*number = fit;
	return COLLNET_OK;
}

void cn_region_release(struct collnet *c, uint32_t number)
{
	struct cn_daemon_side *d = c->impl;

	d->regions[number].busy = false;
}
