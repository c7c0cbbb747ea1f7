/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/unmap.c: the end of clients' regions. */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "region_daemon.h"

/* Linked with --wrap: so many times, the system has no inotify instance. */
static uint32_t without_inotify;

int __real_inotify_init1(int flags);
int __wrap_inotify_init1(int flags);

int __wrap_inotify_init1(int flags)
{
	if (without_inotify > 0) {
		without_inotify--;
		errno = EMFILE;
		return -1;
	}
	return __real_inotify_init1(flags);
}

static struct cn_daemon *d;
static struct cn_client *c;
static int fd;

static int begin(void **state)
{
	(void)state;
	d = region_loop();
	c = region_client(d, &fd);
	return 0;
}

static int end(void **state)
{
	(void)state;
	region_loop_end(d);
	if (fd >= 0) {
		close(fd);
	}
	return 0;
}

/* It is dropped in parts. As long as the client has it, it is readable there, and charged. */
static void region__is_charged_until_it_is_freed(void **state)
{
	const uint64_t bytes = 160 * MIB;
	struct epoll_event event;
	int parts;
	uint8_t *p;

	(void)state;
	for (int later = 0; later < 2; later++) {
		p = region_map(c, fd, bytes);
		if (!later) {
			munmap(p, bytes);
		}
		assert_true(cn_mapping_drop(c, 0));
		for (parts = 1; cn_mapping_unmap(d); parts++) {
		}
		assert_int_equal(parts, 3);
		if (later) {
			for (int turns = 0; turns < 3; turns++) { /* time does not change it */
				d->now += 1000 * CN_MS;
				assert_false(cn_mapping_unmap(d));
				assert_false(region_has_events(d));
				assert_int_equal(d->memory.used, bytes);
			}
			assert_int_equal(p[0], 7);
			assert_int_equal(p[bytes - 1], 7);
			munmap(p, bytes);
		}
		/* A child process may have to drop the last reference. */
		if (d->memory.used > 0) {
			assert_int_equal(epoll_wait(d->epoll_fd, &event, 1, 20000), 1);
			cn_mapping_collect(d);
		}
		assert_int_equal(d->memory.used, 0);
		assert_int_equal(d->memory.regions, 0);
	}
}

/* A region that cannot be watched is not charged any more; the next one is. */
static void region__without_inotify_for_once(void **state)
{
	uint8_t *p;

	(void)state;
	without_inotify = 1;
	for (uint64_t kept = 0; kept <= MIB; kept += MIB) {
		p = region_map(c, fd, MIB);
		assert_true(cn_mapping_drop(c, 0));
		assert_false(cn_mapping_unmap(d));
		assert_int_equal(d->memory.used, kept);
		munmap(p, MIB);
		cn_mapping_collect(d);
		assert_int_equal(d->memory.used, 0);
	}
}

/* The connection has ended, the process has not. O_PATH is another way to keep it. */
static void region__of_a_process_that_lives_on(void **state)
{
	struct cn_user *user;
	char path[32];
	uint8_t *p;
	int other;

	(void)state;
	user = c->user;
	p = region_map(c, fd, MIB);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", c->regions[0]->fd);
	other = open(path, O_PATH | O_CLOEXEC);
	assert_true(other >= 0);
	cn_client_mark(c, NULL);
	cn_client_reap(d);
	assert_int_equal(d->nclients, 0);
	assert_int_equal(user->used[CN_QUOTA_CONNECTIONS], 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(user->used[CN_QUOTA_MEMORY], MIB);
		assert_int_equal(user->used[CN_QUOTA_REGIONS], 1);
		if (i == 0) {
			assert_int_equal(p[0], 7);
			munmap(p, MIB);
		}
		assert_false(region_has_events(d));
	}
	close(other);
	assert_true(region_has_events(d));
	cn_mapping_collect(d);
	assert_int_equal(user->used[CN_QUOTA_MEMORY], 0);
	assert_int_equal(user->used[CN_QUOTA_REGIONS], 0);
}

/* More than a watch may be added for, or than the queue of events has room for. */
static void region__waits_for_a_watch(void **state)
{
	struct cn_msg_region m = { .head = { .type = CN_MSG_REGION, .tag = 9 }, .bytes = 4096 };
	char text[CN_ERR_TEXT];

	(void)state;
	assert_true(cn_mapping_create(c, &m));
	close(region_answer(fd, text));
	assert_true(cn_mapping_drop(c, 0));
	d->nwatched = 4096;
	assert_false(cn_mapping_unmap(d));
	assert_int_equal(d->memory.used, 4096);
	assert_int_equal(cn_mapping_deadline(d), d->now + 100 * CN_MS);
	d->nwatched = 4000; /* the user has as many as are left */
	c->user->watches = 96;
	d->now = cn_mapping_deadline(d);
	assert_false(cn_mapping_unmap(d));
	assert_int_equal(d->memory.used, 4096);
	d->nwatched = 4095;
	c->user->watches = 0;
	assert_false(cn_mapping_unmap(d)); /* not yet */
	assert_int_equal(d->memory.used, 4096);
	d->now = cn_mapping_deadline(d);
	assert_false(cn_mapping_unmap(d));
	assert_int_equal(d->memory.used, 0);
	assert_true(cn_mapping_deadline(d) == CN_NEVER);
	assert_int_equal(d->nwatched, 4095);
	d->nwatched = 0;
}

/* A user who ends one region after the other does not delay that of another user. */
static void region__ends_in_order(void **state)
{
	struct cn_client *other;
	struct cn_mapping *s;
	uint8_t *p;
	int end_of_other;

	(void)state;
	other = region_client_of(d, 1001, &end_of_other);
	p = region_map(c, fd, 128 * MIB);
	s = c->regions[0]; /* charged as long as it is mapped here */
	assert_true(cn_mapping_drop(c, 0));
	for (int turns = 0; turns < 2; turns++) {
		munmap(region_map(other, end_of_other, 128 * MIB), 128 * MIB);
		assert_true(cn_mapping_drop(other, 0));
		cn_mapping_unmap(d);
	}
	cn_mapping_unmap(d);
	cn_mapping_unmap(d);
	assert_null(s->p);
	munmap(p, 128 * MIB);
	close(end_of_other);
}

/* The kernel reports the end of a watch in a second event, maybe after the first was handled. */
static void collect__late_events(void **state)
{
	struct cn_memfd m;

	(void)state;
	munmap(region_map(c, fd, MIB), MIB);
	assert_true(cn_mapping_drop(c, 0));
	assert_false(cn_mapping_unmap(d));
	assert_int_equal(d->nwatched, 0);
	assert_true(cn_memfd_new(&m, MIB, 0));
	assert_true(cn_memfd_watch(d->inotify_fd, m.own) >= 0);
	munmap(m.p, MIB);
	close(m.own);
	close(m.client);
	assert_true(region_has_events(d));
	cn_mapping_collect(d);
	assert_false(region_has_events(d));
}

/* ---- regions that are not sealed ------------------------------------------------------- */

/* Nothing reads, writes or unmaps it as long as the client could punch a hole. */
static void region__is_not_used_before_it_is_sealed(void **state)
{
	const struct cn_msg_buffer_ref place = { .region = 0 };
	char text[CN_ERR_TEXT];
	struct cn_mapping *s, *ref;
	int memory;
	uint8_t *p;
	bool ok;

	(void)state;
	for (int sealed = 0; sealed < 2; sealed++) {
		if (sealed) {
			close(fd);
			c = region_client(d, &fd);
		}
		memory = region_ask(c, fd, MIB, text);
		s = c->regions[0];
		assert_null(cn_mapping_resolve(c, &place, 1, &ref, &ok));
		assert_false(ok);
		cn_client_mark(c, NULL);
		cn_client_reap(d);
		for (int turns = 0; turns < 3; turns++) {
			assert_false(cn_mapping_unmap(d));
			assert_non_null(s->p);
			s->p[0] = 7; /* it is mapped */
			assert_int_equal(d->memory.used, MIB);
			d->now = cn_mapping_deadline(d);
		}
		if (sealed) {
			p = cn_memfd_map(memory, MIB, 0);
			assert_non_null(p);
			close(memory);
			assert_false(cn_mapping_unmap(d));
			assert_null(s->p);
			assert_int_equal(p[0], 7);
			assert_int_equal(d->memory.used, MIB);
			munmap(p, MIB);
			cn_mapping_collect(d);
		} else { /* it ends without having mapped it */
			close(memory);
			assert_false(cn_mapping_unmap(d));
		}
		assert_int_equal(d->memory.used, 0);
	}
}

/* At the daemon's end nothing is taken, neither from clients nor from those that left. */
static void region__stays_at_the_end(void **state)
{
	struct cn_daemon *daemon = region_loop();
	struct cn_client *client;
	uint8_t *p[2];
	int ends[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		client = region_client(daemon, &ends[i]);
		p[i] = region_map(client, ends[i], MIB);
		if (i == 0) {
			cn_client_mark(client, NULL);
			cn_client_reap(daemon);
		}
	}
	region_loop_end(daemon);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(p[i][0], 7);
		munmap(p[i], MIB);
		close(ends[i]);
	}
}

/* What it returned as it ended is processed, also if it left messages unread. */
static void region__given_back_at_the_end(void **state)
{
	const struct cn_msg_unregion m = { .head = { .type = CN_MSG_UNREGION } };

	(void)state;
	c->greeted = true;
	munmap(region_map(c, fd, MIB), MIB);
	cn_client_reply(c, 1, COLLNET_OK, 0, "");
	assert_int_equal(send(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	close(fd);
	fd = -1;
	for (int turns = 0; turns < 3 && d->nclients > 0; turns++) {
		cn_client_readable(c);
		cn_client_reap(d);
	}
	assert_int_equal(d->nclients, 0);
	assert_int_equal(d->memory.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(region__is_charged_until_it_is_freed, begin, end),
		cmocka_unit_test_setup_teardown(region__without_inotify_for_once, begin, end),
		cmocka_unit_test_setup_teardown(region__of_a_process_that_lives_on, begin, end),
		cmocka_unit_test_setup_teardown(region__waits_for_a_watch, begin, end),
		cmocka_unit_test_setup_teardown(region__ends_in_order, begin, end),
		cmocka_unit_test_setup_teardown(collect__late_events, begin, end),
		cmocka_unit_test_setup_teardown(region__is_not_used_before_it_is_sealed, begin,
						end),
		cmocka_unit_test(region__stays_at_the_end),
		cmocka_unit_test_setup_teardown(region__given_back_at_the_end, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
