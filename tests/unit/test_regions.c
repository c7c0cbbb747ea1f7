/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/mapping.c: regions of clients, and what their user is charged. */
#include "daemon/daemon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "region_daemon.h"

static void region__is_made_sealed_and_charged(void **state)
{
	struct cn_daemon *d = region_daemon();
	char text[CN_ERR_TEXT];
	struct cn_client *c;
	int fd, memory;
	void *p;

	(void)state;
	c = region_client(d, &fd);
	assert_int_equal(region_ask(c, fd, 64 * MIB, text), -1);
	assert_non_null(strstr(text, "max-memory"));
	assert_int_equal(d->memory.used, 0);
	memory = region_ask(c, fd, MIB, text);
	assert_true(memory >= 0);
	p = cn_memfd_map(memory, MIB, 0);
	assert_non_null(p);
	assert_int_equal(c->user->used[CN_QUOTA_MEMORY], MIB);
	munmap(p, MIB);
	close(memory);
	/* It is charged until it is unmapped. */
	assert_true(cn_mapping_drop(c, 0));
	assert_int_equal(d->memory.used, MIB);
	assert_false(cn_mapping_unmap(d));
	assert_int_equal(d->memory.used, 0);
	cn_client_end(d);
	close(fd);
	free(d);
}

static void region__waits_for_what_is_unmapped(void **state)
{
	struct cn_msg_region m = { .head = { .type = CN_MSG_REGION, .tag = 9 } };
	struct cn_daemon *d = region_daemon();
	char text[CN_ERR_TEXT];
	struct cn_client *c;
	int fd, memory;

	(void)state;
	d->config.limits[CN_QUOTA_MEMORY] = 200 * MIB;
	d->memory.total = 1024 * MIB;
	c = region_client(d, &fd);
	c->greeted = true;
	munmap(region_map(c, fd, 160 * MIB), 160 * MIB);
	assert_true(cn_mapping_drop(c, 0));
	m.bytes = 100 * MIB;
	assert_int_equal(send(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	for (int turns = 0; turns < 2; turns++) {
		cn_client_readable(c);
		assert_int_equal(recv(fd, text, 1, MSG_DONTWAIT | MSG_PEEK), -1);
		assert_true(cn_mapping_unmap(d));
	}
	assert_false(cn_mapping_unmap(d));
	cn_client_readable(c);
	memory = region_answer(fd, text);
	assert_true(memory >= 0);
	close(memory);
	/* What is not enough then is refused, and what is enough already does not wait. */
	assert_true(cn_mapping_drop(c, 0));
	m.bytes = 40 * MIB;
	assert_int_equal(send(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	cn_client_readable(c);
	memory = region_answer(fd, text);
	assert_true(memory >= 0);
	close(memory);
	while (cn_mapping_unmap(d)) {
	}
	assert_int_equal(d->memory.used, m.bytes);
	m.region = 1;
	m.bytes = 200 * MIB;
	assert_int_equal(send(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	cn_client_readable(c);
	assert_int_equal(region_answer(fd, text), -1);
	cn_client_end(d);
	close(fd);
	free(d);
}

/* Others may free memory again and again. */
static void region__waits_for_a_while(void **state)
{
	const struct cn_msg_region m = { .head = { .type = CN_MSG_REGION, .tag = 9 },
					 .bytes = 300 * MIB };
	struct cn_daemon *d = region_loop();
	struct cn_client *c, *other;
	char text[CN_ERR_TEXT];
	int fd, other_fd;
	uint8_t *p;

	(void)state;
	d->config.limits[CN_QUOTA_MEMORY] = 200 * MIB;
	c = region_client_of(d, 1000, &fd);
	c->greeted = true;
	other = region_client_of(d, 1001, &other_fd);
	p = region_map(other, other_fd, 160 * MIB);
	assert_true(cn_mapping_drop(other, 0));
	while (cn_mapping_unmap(d)) {
	}
	for (int again = 0; again < 2; again++) {
		assert_int_equal(send(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
		for (int turns = 0; turns < 2; turns++) {
			assert_true(d->now < d->freed_by);
			cn_client_readable(c);
			assert_int_equal(recv(fd, text, 1, MSG_DONTWAIT | MSG_PEEK), -1);
			d->now += d->config.peer_timeout_ms * CN_MS / 4;
			d->freed_by = d->now + CN_MS; /* of more memory */
		}
		cn_client_readable(c);
		assert_int_equal(region_answer(fd, text), -1);
		assert_non_null(strstr(text, "max-memory"));
	}
	munmap(p, 160 * MIB);
	region_loop_end(d);
	close(fd);
	close(other_fd);
}

/* Many small ones are not much memory, but many mappings of the daemon. */
static void region__is_one_of_a_number(void **state)
{
	struct cn_msg_region m = { .head = { .type = CN_MSG_REGION, .tag = 9 }, .bytes = 4096 };
	struct cn_daemon *d = region_daemon();
	char text[CN_ERR_TEXT];
	struct cn_client *c;
	int fd, memory;

	(void)state;
	d->config.limits[CN_QUOTA_REGIONS] = 3;
	c = region_client(d, &fd);
	c->greeted = true;
	for (m.region = 0; m.region < 3; m.region++) {
		assert_true(cn_mapping_create(c, &m));
		close(region_answer(fd, text));
	}
	assert_true(cn_mapping_create(c, &m));
	assert_int_equal(region_answer(fd, text), -1);
	assert_non_null(strstr(text, "user 1000 has 3 regions of shared memory"));
	assert_non_null(strstr(text, "max-regions"));
	/* What is refused for another reason is not one. */
	assert_true(cn_mapping_drop(c, 2));
	assert_int_equal(c->user->used[CN_QUOTA_REGIONS], 3);
	assert_false(cn_mapping_unmap(d));
	m.bytes = 40 * MIB;
	assert_true(cn_mapping_create(c, &m));
	assert_int_equal(region_answer(fd, text), -1);
	assert_non_null(strstr(text, "max-memory"));
	m.bytes = 4096;
	assert_true(cn_mapping_create(c, &m));
	close(region_answer(fd, text));
	/* One that is to be unmapped is waited for. */
	assert_true(cn_mapping_drop(c, 3));
	assert_int_equal(send(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	cn_client_readable(c);
	assert_int_equal(recv(fd, text, 1, MSG_DONTWAIT | MSG_PEEK), -1);
	assert_false(cn_mapping_unmap(d));
	cn_client_readable(c);
	memory = region_answer(fd, text);
	assert_true(memory >= 0);
	close(memory);
	cn_client_end(d);
	assert_int_equal(d->memory.regions, 0);
	close(fd);
	free(d);
}

/* ---- blocks ---------------------------------------------------------------------------- */

/* Copies of blocks are the user's memory as his regions are, until the request has ended. */
static void blocks__are_charged(void **state)
{
	struct cn_daemon *d = region_daemon();
	struct cn_call call = { .op = CN_OP_ALLTOALLV, .ranks = 4096 };
	const uint64_t bytes = 2 * 4096 * sizeof(struct cn_block);
	const struct cn_msg_coll m = { .op = CN_OP_ALLTOALLV };
	static struct cn_op_slot ops[16];
	struct cn_err err = { 0 };
	struct cn_client *c;
	int fd, n = 0;
	uint8_t *p;

	(void)state;
	c = region_client(d, &fd);
	p = region_map(c, fd, MIB);
	d->config.limits[CN_QUOTA_MEMORY] = MIB + 3 * bytes;
	while (n < 16) {
		ops[n].client = c;
		if (cn_blocks_copy(c, &ops[n], &m, &call, &err) != COLLNET_OK) {
			break;
		}
		n++;
	}
	assert_int_equal(n, 3);
	assert_int_equal(err.code, COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "max-memory"));
	cn_blocks_free(&ops[3]); /* the one that was refused */
	assert_int_equal(d->memory.used, MIB + 3 * bytes);
	cn_blocks_free(&ops[0]);
	assert_int_equal(cn_blocks_copy(c, &ops[0], &m, &call, &err), COLLNET_OK);
	for (int i = 0; i < 3; i++) {
		cn_blocks_free(&ops[i]);
	}
	assert_int_equal(d->memory.used, MIB);
	munmap(p, MIB);
	cn_client_end(d);
	close(fd);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(region__is_made_sealed_and_charged),
		cmocka_unit_test(region__waits_for_what_is_unmapped),
		cmocka_unit_test(region__waits_for_a_while),
		cmocka_unit_test(region__is_one_of_a_number),
		cmocka_unit_test(blocks__are_charged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
