/* SPDX-License-Identifier: BSD-2-Clause */
#include "node/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define PATH 32

static const char *path_of(int fd, char path[PATH])
{
	snprintf(path, PATH, "/proc/self/fd/%d", fd);
	return path;
}

static void close_quietly(int fd)
{
	const int e = errno;

	if (fd >= 0) {
		close(fd);
	}
	errno = e;
}

/* A descriptor of memfd_create() does not count as open, so that a lease would ignore it: nobody
 * keeps it. */
static int create(uint64_t bytes)
{
	int fd = memfd_create("collnet", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL) { /* kernels before 6.3 */
		fd = memfd_create("collnet", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	}
	if (fd >= 0 && (ftruncate(fd, (off_t)bytes) != 0 ||
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)) {
		close_quietly(fd);
		return -1;
	}
	return fd;
}

/* All of it, and not only a part where it exceeds the address space. */
static void *map(int fd, uint64_t bytes, int flags)
{
	void *p;

	if (bytes > SIZE_MAX) {
		errno = ENOMEM;
		return NULL;
	}
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

bool cn_memfd_new(struct cn_memfd *m, uint64_t bytes, int flags)
{
	const int fd = create(bytes);
	char path[PATH];

	m->p = NULL;
	m->own = m->client = -1;
	if (fd < 0) {
		return false;
	}
	path_of(fd, path);
	m->p = map(fd, bytes, MAP_NORESERVE | flags);
	m->own = m->p != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	m->client = m->own >= 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (m->client < 0) {
		if (m->p != NULL) {
			const int e = errno;

			munmap(m->p, bytes);
			errno = e;
		}
		close_quietly(m->own);
		close_quietly(fd);
		return false;
	}
	(void)madvise(m->p, bytes, MADV_DONTFORK);
	close(fd);
	return true;
}

void *cn_memfd_map(int client, uint64_t bytes, int flags)
{
	const int seals = fcntl(client, F_GET_SEALS);
	struct stat st;
	char path[PATH];
	void *p = NULL;
	int fd;

	errno = EINVAL;
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(client, &st) != 0 ||
	    (uint64_t)st.st_size != bytes) {
		return NULL;
	}
	fd = open(path_of(client, path), O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		p = map(fd, bytes, flags);
	}
	if (p != NULL && fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) != 0) { /* Linux before 5.1 */
		munmap(p, bytes);
		p = NULL;
	}
	close_quietly(fd);
	return p;
}

/* Whether the kernel has F_SEAL_FUTURE_WRITE. */
static bool seal_is_known(void)
{
	static int known = -1;

	if (known < 0) {
		const int fd = memfd_create("collnet", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		known = fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0;
		close_quietly(fd);
	}
	return known != 0;
}

bool cn_memfd_is_sealed(int own)
{
	const int seals = fcntl(own, F_GET_SEALS);

	return seals >= 0 && (seals & (seal_is_known() ? F_SEAL_FUTURE_WRITE : F_SEAL_SEAL)) != 0;
}

/* A descriptor of O_PATH, which a lease ignores, opens nothing before the lease ends. */
bool cn_memfd_unmap_alone(int own, void *p, uint64_t bytes)
{
	if (fcntl(own, F_SETLEASE, F_WRLCK) != 0 && errno == EAGAIN) {
		return false;
	}
	munmap(p, bytes);
	fcntl(own, F_SETLEASE, F_UNLCK);
	return true;
}

int cn_memfd_watch(int inotify, int own)
{
	char path[PATH];

	return inotify_add_watch(inotify, path_of(own, path), IN_DELETE_SELF);
}
