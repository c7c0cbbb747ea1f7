/* SPDX-License-Identifier: BSD-2-Clause */
/* node/memfd.c: what the client can do with shared memory, and what the daemon sees of it. */
#include "node/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES ((uint64_t)1 << 20)

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static struct cn_memfd m;

static int setup(void **state)
{
	(void)state;
	return cn_memfd_new(&m, BYTES, 0) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	if (m.p != NULL) {
		munmap(m.p, BYTES);
	}
	close(m.own);
	if (m.client >= 0) {
		close(m.client);
	}
	return 0;
}

static int open_to_write(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

static void *map_for_writing(int fd)
{
	return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void map__shares_what_is_written(void **state)
{
	uint8_t *p = cn_memfd_map(m.client, BYTES, 0);

	(void)state;
	assert_non_null(p);
	p[0] = 7;
	m.p[BYTES - 1] = 8;
	assert_int_equal(m.p[0], 7);
	assert_int_equal(p[BYTES - 1], 8);
	munmap(p, BYTES);
}

/* Neither before nor after. */
static void size__is_fixed(void **state)
{
	void *p = NULL;

	(void)state;
	assert_null(cn_memfd_map(m.client, BYTES / 2, 0));
	for (int mapped = 0; mapped < 2; mapped++) {
		const int fd = open_to_write(m.client);

		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, 0), -1);
		assert_int_equal(errno, EPERM);
		assert_int_equal(ftruncate(fd, 2 * BYTES), -1);
		close(fd);
		p = mapped ? p : cn_memfd_map(m.client, BYTES, 0);
		assert_non_null(p);
	}
	munmap(p, BYTES);
}

static void map__refuses_memory_that_can_shrink(void **state)
{
	const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(ftruncate(fd, BYTES), 0);
	assert_null(cn_memfd_map(fd, BYTES, 0));
	close(fd);
}

/* Once the client has mapped it, nobody punches holes, by any descriptor or mapping. */
static void map__seals_against_holes(void **state)
{
	const int fd = open_to_write(m.client);
	uint8_t *before = map_for_writing(fd), *p;

	(void)state;
	assert_ptr_not_equal(before, MAP_FAILED);
	before[0] = 7;
	assert_false(cn_memfd_is_sealed(m.own));
	assert_int_equal(madvise(before, BYTES, MADV_REMOVE), 0);
	assert_int_equal(m.p[0], 0);
	p = cn_memfd_map(m.client, BYTES, 0);
	assert_non_null(p);
	if ((fcntl(m.own, F_GET_SEALS) & F_SEAL_FUTURE_WRITE) == 0) {
		print_message("skipped: this kernel has no F_SEAL_FUTURE_WRITE (Linux 5.1)\n");
		munmap(p, BYTES);
		munmap(before, BYTES);
		close(fd);
		skip();
	}
	assert_true(cn_memfd_is_sealed(m.own));
	p[0] = 8;
	assert_int_equal(madvise(p, BYTES, MADV_REMOVE), -1);
	assert_int_equal(madvise(before, BYTES, MADV_REMOVE), -1);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BYTES), -1);
	assert_int_equal(m.p[0], 8);
	assert_ptr_equal(map_for_writing(fd), MAP_FAILED);
	munmap(p, BYTES);
	munmap(before, BYTES);
	close(fd);
}

/* Without that seal, others do not count. */
static void sealed__by_the_right_seal(void **state)
{
	const int fd = open_to_write(m.client);

	(void)state;
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL), 0);
	assert_false(cn_memfd_is_sealed(m.own));
	assert_null(cn_memfd_map(m.client, BYTES, 0)); /* it cannot be added any more */
	close(fd);
}

static bool unmaps(void)
{
	return cn_memfd_unmap_alone(m.own, m.p, BYTES);
}

/* Any way to have it counts, and the daemon's own mapping does not. */
static void unmap_alone__without_descriptors_and_mappings(void **state)
{
	unsigned char resident;

	uint8_t *p, *again;
	int fd;

	(void)state;
	assert_false(unmaps());
	p = cn_memfd_map(m.client, BYTES, 0);
	assert_non_null(p);
	fd = open_to_write(m.client);
	close(m.client);
	m.client = -1;
	assert_false(unmaps());
	close(fd);
	assert_false(unmaps());
	again = mremap(p, 0, 4096, MREMAP_MAYMOVE);
	assert_ptr_not_equal(again, MAP_FAILED);
	munmap(p, BYTES);
	assert_false(unmaps());
	munmap(again, 4096);
	m.p[0] = 1;
	assert_true(unmaps());
	assert_int_equal(mincore(m.p, 4096, &resident), -1);
	m.p = NULL;
	fd = open_to_write(m.own); /* the lease has ended */
	assert_true(fd >= 0);
	close(fd);
}

/* The watch reports the end of the last reference, whatever it is. */
static void watch__reports_when_it_is_freed(void **state)
{
	const int inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct cn_memfd other;
	struct inotify_event event;
	int watch, path;
	char name[32];

	(void)state;
	assert_true(cn_memfd_new(&other, BYTES, 0));
	watch = cn_memfd_watch(inotify, other.own);
	assert_true(watch >= 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", other.client);
	path = open(name, O_PATH | O_CLOEXEC);
	close(other.client);
	close(other.own);
	munmap(other.p, BYTES);
	assert_int_equal(read(inotify, &event, sizeof(event)), -1);
	close(path);
	assert_int_equal(read(inotify, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event.wd, watch);
	assert_int_equal(event.mask & IN_DELETE_SELF, IN_DELETE_SELF);
	close(inotify);
}

/* fork() would wait for a hole that is being punched. */
static void new__is_not_mapped_in_a_child(void **state)
{
	unsigned char resident;
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		_exit(mincore(m.p, 4096, &resident) == -1 && errno == ENOMEM ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(mincore(m.p, 4096, &resident), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(map__shares_what_is_written, setup, teardown),
		cmocka_unit_test_setup_teardown(size__is_fixed, setup, teardown),
		cmocka_unit_test(map__refuses_memory_that_can_shrink),
		cmocka_unit_test_setup_teardown(map__seals_against_holes, setup, teardown),
		cmocka_unit_test_setup_teardown(sealed__by_the_right_seal, setup, teardown),
		cmocka_unit_test_setup_teardown(unmap_alone__without_descriptors_and_mappings,
						setup, teardown),
		cmocka_unit_test(watch__reports_when_it_is_freed),
		cmocka_unit_test_setup_teardown(new__is_not_mapped_in_a_child, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
