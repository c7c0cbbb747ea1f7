/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients' memory: mapped once, named by number, kept until the last request on it has ended.
 *
 * A mapping must never fault under our hands, so a region is a memfd (ordinary pages) that is
 * sealed against shrinking, of the size that was said.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* NULL: it is what it should be. */
static const char *check_memory(int fd, uint64_t bytes)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct statfs fs;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & needed) != needed) {
		return "memory that is not sealed";
	}
	/* Huge pages can be short when they are touched, ordinary ones are waited for. */
	if (fstatfs(fd, &fs) != 0 || fs.f_type != TMPFS_MAGIC) {
		return "memory of a strange kind";
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 0 ||
	    (uint64_t)st.st_size != bytes) {
		return "memory of another size than it says";
	}
	return NULL;
}

bool cn_region_take(struct cn_client *c, const struct cn_msg_region *m, int fd)
{
	const char *wrong = NULL;
	struct cn_shared *s;
	void *p;

	if (c->regions[m->region] != NULL) {
		wrong = "a region number that is taken";
	} else if (fd < 0) {
		wrong = "a region without a descriptor";
	} else if (m->bytes > CN_MSG_BYTES - c->bytes) {
		wrong = "more memory than is possible";
	} else {
		wrong = check_memory(fd, m->bytes);
	}
	if (wrong != NULL) {
		if (fd >= 0) {
			close(fd);
		}
		cn_client_doom(c, wrong);
		return false;
	}
	s = calloc(1, sizeof(*s));
	p = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	if (s == NULL || p == MAP_FAILED) {
		if (p != MAP_FAILED) {
			munmap(p, m->bytes);
		}
		free(s);
		cn_client_reply(c, m->head.tag, COLLNET_ENOMEM, 0,
				"collnetd has no memory to map this piece");
		return true;
	}
	s->p = p;
	s->bytes = m->bytes;
	s->refs = 1;
	c->regions[m->region] = s;
	c->bytes += m->bytes;
	cn_client_reply(c, m->head.tag, COLLNET_OK, 0, "");
	return true;
}

bool cn_region_drop(struct cn_client *c, uint32_t number)
{
	struct cn_shared *s = c->regions[number];

	if (s == NULL) {
		return false;
	}
	c->regions[number] = NULL;
	c->bytes -= s->bytes;
	cn_region_put(c->daemon, s);
	return true;
}

void *cn_region_place(struct cn_client *c, const struct cn_msg_place *place, uint64_t len,
		      struct cn_shared **ref, bool *ok)
{
	struct cn_shared *s;

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

void cn_region_put(struct cn_daemon *d, struct cn_shared *s)
{
	if (s != NULL && --s->refs == 0) {
		/* Perhaps inside the engine, which is not quite done with it. */
		s->next = d->unmap;
		d->unmap = s;
	}
}

void cn_region_unmap(struct cn_daemon *d)
{
	while (d->unmap != NULL) {
		struct cn_shared *s = d->unmap;

		d->unmap = s->next;
		munmap(s->p, s->bytes);
		free(s);
	}
}
