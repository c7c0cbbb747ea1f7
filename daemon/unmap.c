/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of regions. Their user is charged for them until the kernel has freed the memory: other
 * processes may still have it, and its pages are charged to the control group of the process that
 * touched them first, which may be the daemon.
 *
 * unused  -settle_some()-> settled     its pages are dropped, in parts, and it is unmapped
 * unused  -settle_some()-> held        not settled
 * held    -try_again()-> unused        every AGAIN
 * settled -hold()-> held               no watch could be added
 * settled -watch()-> watched           the descriptor is closed, maybe by a reaper
 * watched -cn_mapping_collect()-> freed  inotify reports that nobody had it any more
 *
 * A region is settled if the client has sealed it, or is unmapped already because nobody else has
 * it. Otherwise munmap() could wait (node/memfd.h). Regions end in order, so that a user who always
 * ends some does not delay those of others.
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

static void append(struct cn_mappings *q, struct cn_mapping *s)
{
	s->next = NULL;
	*(q->first != NULL ? &q->last->next : &q->first) = s;
	q->last = s;
}

static struct cn_mapping *pop(struct cn_mapping **list)
{
	struct cn_mapping *s = *list;

	*list = s->next;
	return s;
}

void cn_mapping_put(struct cn_daemon *d, struct cn_mapping *s)
{
	if (s != NULL && --s->refs == 0) {
		/* The engine may be the caller and still use it: the loop unmaps it later. */
		append(&d->unmap, s);
	}
}

/* ---- those that cannot end yet -------------------------------------------------------- */

static void hold(struct cn_daemon *d, struct cn_mapping *s)
{
	append(&d->held, s);
	d->held_until = d->held_until != 0 ? d->held_until : d->now + AGAIN;
}

static void try_again(struct cn_daemon *d)
{
	if (d->held.first == NULL || d->now < d->held_until) {
		return;
	}
	for (uint32_t n = 0; d->held.first != NULL && n < AT_ONCE; n++) {
		append(&d->unmap, pop(&d->held.first));
	}
	d->held_until = d->held.first != NULL ? d->now + AGAIN : 0;
}

cn_time cn_mapping_deadline(const struct cn_daemon *d)
{
	return d->held.first != NULL ? d->held_until : CN_NEVER;
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

/* The first ones are settled, or held. */
static void settle_some(struct cn_daemon *d)
{
	for (uint32_t n = 0; d->unmap.first != NULL && n < AT_ONCE; n++) {
		struct cn_mapping *s = pop(&d->unmap.first);

		if (is_settled(s)) {
			append(&d->settled, s);
		} else {
			hold(d, s);
		}
	}
}

/* ---- their pages ---------------------------------------------------------------------- */

/* A part of the settled memory, so that the loop continues: it takes 50 ms for a GiB. True: there
 * is more. */
static bool drop_some_pages(struct cn_daemon *d)
{
	uint64_t most = PER_ITERATION;

	for (struct cn_mapping *s = d->settled.first; s != NULL; s = s->next) {
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

/* False: there is none now. */
static bool open_inotify(struct cn_daemon *d)
{
	const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0) {
		return false;
	}
	d->inotify_fd = fd;
	if (cn_event_add_memory(d) != COLLNET_OK) {
		close(fd);
		d->inotify_fd = 0;
	}
	return d->inotify_fd != 0;
}

/* False: it must be tried again. Without inotify, it ends here. */
static bool watch(struct cn_daemon *d, struct cn_mapping *s)
{
	if (d->inotify_fd == 0 && !open_inotify(d)) {
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

	/* Also if nothing is watched: the end of a watch is a second event, maybe a later one. */
	while (d->inotify_fd > 0 && (n = read(d->inotify_fd, events, sizeof(events))) > 0) {
		for (size_t i = 0; i < (size_t)n / sizeof(events[0]); i++) {
			if ((events[i].mask & IN_DELETE_SELF) != 0) {
				freed(d, events[i].wd);
			}
		}
	}
}

bool cn_mapping_is_ending(const struct cn_daemon *d)
{
	return d->unmap.first != NULL || d->settled.first != NULL ||
	       (d->nwatched > 0 && d->now < d->freed_by);
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
	uint32_t n = 0;
	pid_t reaper = -1;

	try_again(d);
	if (d->settled.first == NULL) {
		settle_some(d);
	}
	if (drop_some_pages(d)) {
		return true;
	}
	while (d->settled.first != NULL) {
		struct cn_mapping *s = pop(&d->settled.first);
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
	return d->unmap.first != NULL;
}

void cn_mapping_end(struct cn_daemon *d)
{
	while (cn_mapping_unmap(d)) {
	}
	while (d->held.first != NULL) {
		close(d->held.first->fd);
		finish(d, pop(&d->held.first));
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
