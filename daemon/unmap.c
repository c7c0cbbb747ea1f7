/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of regions. Their user is charged for them until the kernel has freed the memory: other
 * processes may still have it, and its pages are charged to the control group of the process that
 * touched them first, which may be the daemon.
 *
 * unused  -is_settled()-> unused       its pages are dropped, in parts, and it is unmapped
 * unused  -hold()-> held               not settled, or no watch could be added
 * held    -try_again()-> unused        every AGAIN
 * unused  -watch()-> watched           the descriptor is closed, maybe by a reaper
 * watched -cn_mapping_collect()-> freed  inotify reports that nobody had it any more
 *
 * A region is settled if the client has sealed it, or is unmapped already because nobody else has
 * it. Otherwise munmap() could wait (node/memfd.h).
 */
#include "daemon/daemon.h"

#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#define PER_ITERATION ((uint64_t)64 << 20) /* bytes whose pages are dropped */
#define AT_ONCE	      512u		   /* regions; 7 ms, if each has pages */
#define AGAIN	      (100 * CN_MS)	   /* until held regions are tried again */
#define FREED_WITHIN  (1000 * CN_MS)	   /* by a reaper; it takes 0.16 s per GiB */
/* Each causes two events; fs.inotify.max_queued_events is 16384 by default. A user has at most as
 * many as are left for others. */
#define WATCHES_MAX 4096u

void cn_mapping_put(struct cn_daemon *d, struct cn_mapping *s)
{
	if (s != NULL && --s->refs == 0) {
		/* The engine may be the caller and still use it: the loop unmaps it later. */
		s->next = d->unmap;
		d->unmap = s;
	}
}

static struct cn_mapping *pop(struct cn_mapping **list)
{
	struct cn_mapping *s = *list;

	*list = s->next;
	return s;
}

/* ---- those that cannot end yet -------------------------------------------------------- */

static void hold(struct cn_daemon *d, struct cn_mapping *s)
{
	struct cn_mapping **last = d->held != NULL ? &d->held_last->next : &d->held;

	s->next = NULL;
	*last = d->held_last = s;
	d->held_until = d->held_until != 0 ? d->held_until : d->now + AGAIN;
}

static void try_again(struct cn_daemon *d)
{
	if (d->held == NULL || d->now < d->held_until) {
		return;
	}
	for (uint32_t n = 0; d->held != NULL && n < AT_ONCE; n++) {
		struct cn_mapping *s = pop(&d->held);

		s->next = d->unmap;
		d->unmap = s;
	}
	d->held_until = d->held != NULL ? d->now + AGAIN : 0;
}

cn_time cn_mapping_deadline(const struct cn_daemon *d)
{
	return d->held != NULL ? d->held_until : CN_NEVER;
}

/* Memory that is not sealed is unmapped at once, if it can be: it was never used. */
static bool is_settled(struct cn_mapping *s)
{
	if (s->p != NULL && !cn_mapping_is_sealed(s) &&
	    cn_memfd_unmap_alone(s->fd, s->p, s->bytes)) {
		s->p = NULL;
		s->dropped = s->bytes;
	}
	return s->p == NULL || s->sealed;
}

/* Returns the number of settled ones, which are then the first of the list. */
static uint32_t hold_unsettled(struct cn_daemon *d)
{
	struct cn_mapping **at = &d->unmap;
	uint32_t settled = 0;

	for (uint32_t n = 0; *at != NULL && n < AT_ONCE; n++) {
		if (is_settled(*at)) {
			at = &(*at)->next;
			settled++;
		} else {
			hold(d, pop(at));
		}
	}
	return settled;
}

/* ---- their pages ---------------------------------------------------------------------- */

/* A part of the memory that waits to be unmapped, so that the loop continues: it takes 50 ms for a
 * GiB. Of the first n. True: there is more. */
static bool drop_some_pages(struct cn_mapping *s, uint32_t n)
{
	uint64_t most = PER_ITERATION;

	for (; n > 0; s = s->next, n--) {
		const uint64_t left = s->bytes - s->dropped, part = left < most ? left : most;

		if (part > 0) {
			(void)madvise(s->p + s->dropped, part, MADV_DONTNEED); /* or munmap() */
			s->dropped += part;
			most -= part;
		}
		if (s->dropped < s->bytes) {
			return true;
		}
	}
	return false;
}

/* ---- until the kernel has freed them -------------------------------------------------- */

static void finish(struct cn_daemon *d, struct cn_mapping *s)
{
	cn_mapping_uncharge(d, s->user, s->bytes);
	free(s);
}

static struct cn_mapping **bucket(struct cn_daemon *d, int watch)
{
	return &d->watched[(uint32_t)watch % CN_WATCH_BUCKETS];
}

/* False: it must be tried again. Without inotify, it ends here. */
static bool watch(struct cn_daemon *d, struct cn_mapping *s)
{
	if (d->inotify_fd == 0) {
		d->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		if (d->inotify_fd >= 0 && cn_event_add_memory(d) != COLLNET_OK) {
			close(d->inotify_fd);
			d->inotify_fd = -1;
		}
	}
	if (d->inotify_fd < 0) {
		finish(d, s);
		return true;
	}
	s->watch = s->user->watches < WATCHES_MAX - d->nwatched
			   ? cn_memfd_watch(d->inotify_fd, s->fd)
			   : -1;
	if (s->watch < 0) {
		return false;
	}
	s->next = *bucket(d, s->watch);
	*bucket(d, s->watch) = s;
	s->user->watches++;
	d->nwatched++;
	return true;
}

static void freed(struct cn_daemon *d, int watch)
{
	for (struct cn_mapping **at = bucket(d, watch); *at != NULL; at = &(*at)->next) {
		if ((*at)->watch == watch) {
			(*at)->user->watches--;
			d->nwatched--;
			finish(d, pop(at));
			return;
		}
	}
}

/* Events without a name: all have the same size. */
void cn_mapping_collect(struct cn_daemon *d)
{
	struct inotify_event events[128];
	ssize_t n;

	while (d->nwatched > 0 && (n = read(d->inotify_fd, events, sizeof(events))) > 0) {
		for (size_t i = 0; i < (size_t)n / sizeof(events[0]); i++) {
			if ((events[i].mask & IN_DELETE_SELF) != 0) {
				freed(d, events[i].wd);
			}
		}
	}
}

bool cn_mapping_is_ending(const struct cn_daemon *d)
{
	return d->unmap != NULL || (d->nwatched > 0 && d->now < d->freed_by);
}

/* ---- all of it ------------------------------------------------------------------------ */

/*
 * The process that drops the last reference to memory frees its pages, 0.16 s for a GiB. A client
 * ends before its socket is closed, so this process would have the last one. A reaper takes it.
 */
bool cn_mapping_unmap(struct cn_daemon *d)
{
	int fds[AT_ONCE];
	uint64_t bytes = 0;
	uint32_t n = 0, settled;
	pid_t reaper = -1;

	try_again(d);
	settled = hold_unsettled(d);
	if (drop_some_pages(d->unmap, settled)) {
		return true;
	}
	for (uint32_t i = 0; i < settled; i++) {
		struct cn_mapping *s = pop(&d->unmap);
		const uint64_t size = s->bytes;
		const int fd = s->fd;

		if (s->p != NULL) {
			munmap(s->p, s->bytes);
			s->p = NULL;
		}
		if (watch(d, s)) {
			fds[n++] = fd;
			bytes += size;
		} else {
			hold(d, s);
		}
	}
	if (bytes > PER_ITERATION) {
		reaper = cn_reaper_begin(fds, n);
		d->freed_by = d->now + FREED_WITHIN;
	}
	for (uint32_t i = 0; i < n; i++) {
		close(fds[i]);
	}
	cn_reaper_end(reaper);
	if (n > 0) {
		cn_mapping_collect(d);
	}
	return d->unmap != NULL;
}

void cn_mapping_end(struct cn_daemon *d)
{
	while (cn_mapping_unmap(d)) {
	}
	while (d->held != NULL) {
		close(d->held->fd);
		finish(d, pop(&d->held));
	}
	for (uint32_t i = 0; i < CN_WATCH_BUCKETS; i++) {
		while (d->watched[i] != NULL) {
			finish(d, pop(&d->watched[i]));
		}
	}
	d->nwatched = 0;
	if (d->inotify_fd > 0) {
		close(d->inotify_fd);
	}
	d->inotify_fd = 0;
}
