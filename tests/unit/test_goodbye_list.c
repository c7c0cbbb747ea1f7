/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/goodbye_list.c: the goodbye that another process sends for a node that died. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"
#include "proto/goodbye_list.h"

#define SEED 77u

static struct cn_goodbye_list *list;

static void with_list(struct cn_node_config *c)
{
	if (c->name[0] == 'b') {
		list = calloc(1, cn_goodbye_list_size(c->max_peers));
		assert_non_null(list);
		memset(list, 0xff,
		       cn_goodbye_list_size(c->max_peers)); /* what was there is written over */
		c->goodbyes = list;
	}
}

static struct pair *begin(uint32_t nodes)
{
	struct pair *p = pair_new(nodes, SEED, with_list);

	assert_true(pair_run_up(p, 2000 * CN_MS));
	pair_run(p, 50 * CN_MS);
	pair_log_clear(p);
	return p;
}

static void end(struct pair *p)
{
	pair_free(p);
	free(list);
	list = NULL;
}

static uint32_t entries(void)
{
	uint8_t f[CN_FRAME_HEAD];
	uint32_t found = 0;

	for (uint32_t i = 0; i < list->max_peers; i++) {
		found += cn_goodbye_list_frame(list, i, f) != 0;
	}
	return found;
}

/* Sends every frame of the list to the node that it is addressed to. */
static void execute(struct pair *p)
{
	for (uint32_t i = 0; i < list->max_peers; i++) {
		uint8_t f[CN_FRAME_HEAD];
		size_t len = cn_goodbye_list_frame(list, i, f);

		for (uint32_t k = 0; len != 0 && k < p->count; k++) {
			if (memcmp(f, p->nodes[k].config.mac, 6) == 0) {
				pair_inject(p, k, f, len, p->now + CN_US);
			}
		}
	}
	pair_run(p, CN_MS);
}

/* A node dies without a goodbye; another process sends its goodbyes to both others. */
static void will__is_believed(void **state)
{
	struct pair *p = begin(3);

	(void)state;
	assert_int_equal(entries(), 2);
	pair_stop(p, 1);
	execute(p);
	assert_true(strcmp(p->log, "a: down b bye\nc: down b bye\n") == 0 ||
		    strcmp(p->log, "c: down b bye\na: down b bye\n") == 0);
	end(p);
}

/* The node continues at another address: it sends the goodbyes of the former one. */
static void will__of_a_former_address(void **state)
{
	struct pair *p = begin(2);

	(void)state;
	list->reason = CN_BYE_MOVED;
	pair_stop(p, 1);
	execute(p);
	assert_string_equal(p->log, "a: down b moved\n");
	end(p);
}

/* Peers that went down have no entry, and those that come back have another. */
static void will__follows_the_peers(void **state)
{
	struct pair *p = begin(3);

	(void)state;
	cn_node_bye(p->nodes[2].node, CN_BYE_DAEMON);
	pair_poke(p);
	pair_run(p, CN_MS);
	assert_int_equal(entries(), 1);
	pair_stop(p, 2);
	pair_start(p, 2);
	assert_true(pair_run_up(p, 2000 * CN_MS));
	assert_int_equal(entries(), 2);
	pair_log_clear(p);
	execute(p);
	assert_non_null(strstr(p->log, "a: down b bye\n"));
	assert_non_null(strstr(p->log, "c: down b bye\n"));
	end(p);
}

static void will__out_of_range(void **state)
{
	struct pair *p = begin(2);
	uint8_t f[CN_FRAME_HEAD];

	(void)state;
	assert_int_equal(cn_goodbye_list_frame(list, list->max_peers, f), 0);
	assert_int_equal(cn_goodbye_list_frame(list, UINT32_MAX, f), 0);
	cn_goodbye_list_clear(list, 0);
	assert_int_equal(cn_goodbye_list_frame(list, 0, f), 0);
	end(p);
}

/* The longest name still fits in the frame. */
static void will__longest_name(void **state)
{
	struct cn_node_config c;
	uint8_t f[CN_FRAME_HEAD];
	const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };

	(void)state;
	cn_node_config_init(&c);
	c.max_peers = 2;
	c.epoch = 5;
	memset(c.name, 'n', COLLNET_NAME_MAX);
	list = malloc(cn_goodbye_list_size(2));
	assert_non_null(list);
	for (unsigned int k = 0; k < 2; k++) {
		c.authenticated = k == 1;
		cn_goodbye_list_init(list, &c);
		assert_int_equal(entries(), 0);
		cn_goodbye_list_set(list, 1, mac, 7, 8);
		assert_int_equal(cn_goodbye_list_frame(list, 0, f), 0);
		assert_int_equal(cn_goodbye_list_frame(list, 1, f),
				 CN_HEAD + k * CN_WIRE_AUTH + CN_HELLO_MAX);
		assert_memory_equal(f, mac, 6);
	}
	free(list);
	list = NULL;
}

/* Whatever the writer did to the memory, the reader stays within its frame. */
static void will__any_contents(void **state)
{
	const size_t bytes = cn_goodbye_list_size(2);
	uint8_t f[CN_FRAME_HEAD];

	(void)state;
	list = malloc(bytes);
	assert_non_null(list);
	memset(list, 'x', bytes);
	assert_int_equal(cn_goodbye_list_frame(list, 1, f), CN_HEAD + CN_WIRE_AUTH + CN_HELLO_MAX);
	assert_int_equal(cn_goodbye_list_encapsulation(list), CN_ENCAPSULATION_RAW);
	memset(list, 0xff, bytes);
	assert_int_equal(cn_goodbye_list_encapsulation(list), CN_ENCAPSULATION_RAW);
	list->encapsulation = CN_ENCAPSULATION_TCP;
	assert_int_equal(cn_goodbye_list_encapsulation(list), CN_ENCAPSULATION_TCP);
	free(list);
	list = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(will__is_believed),
		cmocka_unit_test(will__of_a_former_address),
		cmocka_unit_test(will__follows_the_peers),
		cmocka_unit_test(will__out_of_range),
		cmocka_unit_test(will__longest_name),
		cmocka_unit_test(will__any_contents),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
