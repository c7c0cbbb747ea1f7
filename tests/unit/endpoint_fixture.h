/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two or three engines on the in-memory hub under a virtual clock, and messages between their
 * endpoints.
 */
#ifndef ENDPOINT_FIXTURE_H
#define ENDPOINT_FIXTURE_H

#include "coll/endpoint.h"
#include "node/poller.h"
#include "tests/unit/hub.h"

#define MTU	  1500u
#define PAYLOAD	  (MTU - CN_WIRE_HEADER)
#define OWNER	  1000u
#define NODES_MAX 3
#define SECOND	  (1000 * CN_MS)
#define SEED	  20240917u

struct endpoint_fixture {
	struct cn_hub *hub;
	uint32_t n;
	cn_time now, next; /* nothing happens before `next` */
	struct cn_engine *engine[NODES_MAX];
	struct cn_poller *poller[NODES_MAX];
};

extern const char *const endpoint_node_names[NODES_MAX];
void endpoint_start_node(struct endpoint_fixture *w, uint32_t i, uint64_t epoch,
			 void (*change)(struct cn_engine_config *));
void endpoint_stop_node(struct endpoint_fixture *w, uint32_t i);

/* Polls every node once. If none has work, time advances to the next deadline. */
void endpoint_step(struct endpoint_fixture *w);
void endpoint_run(struct endpoint_fixture *w, cn_time duration);
void endpoint_meet(struct endpoint_fixture *w);
struct endpoint_fixture *endpoint_fixture(uint32_t n, void (*change)(struct cn_engine_config *));
void endpoint_fixture_free(struct endpoint_fixture *w);
struct collnet_stats endpoint_stats(struct endpoint_fixture *w, uint32_t i);

/* No request is left, and the pools have all their buffers. */
void endpoint_assert_clean(struct endpoint_fixture *w);

struct endpoint_request {
	struct cn_done done;
	struct cn_received got;
	uint8_t *data;
	uint64_t bytes;
	int status;
	uint32_t ended; /* how often it completed */
	char text[CN_ERR_TEXT];
};

void endpoint_fill(uint8_t *data, uint64_t bytes, uint32_t key);
void endpoint_assert_filled(const uint8_t *data, uint64_t bytes, uint32_t key);
struct endpoint_request *endpoint_request(uint64_t bytes);
void endpoint_drop(struct endpoint_request *r);
struct cn_endpoint *endpoint_open_at(struct endpoint_fixture *w, uint32_t node, uint16_t number);
struct endpoint_request *endpoint_send_to(struct endpoint_fixture *w, struct cn_endpoint *ep,
					  const char *node, uint16_t to, uint64_t bytes,
					  uint32_t key, cn_time timeout);
struct endpoint_request *endpoint_recv_at(struct endpoint_fixture *w, struct cn_endpoint *ep,
					  uint64_t capacity, cn_time timeout);
int endpoint_wait_for(struct endpoint_fixture *w, struct endpoint_request *r, cn_time limit);
void endpoint_assert_ok(struct endpoint_fixture *w, struct endpoint_request *r);
void endpoint_assert_got(struct endpoint_request *r, const char *node, uint16_t from,
			 uint64_t bytes, uint32_t key);
void endpoint_assert_status(struct endpoint_fixture *w, struct endpoint_request *r, int status,
			    const char *message);
void endpoint_one_message(struct endpoint_fixture *w, struct cn_endpoint *from,
			  struct cn_endpoint *to, uint64_t bytes, bool early);
/* From endpoint 5 of node a to 7 of b: messages as if all numbers before `next` were used, of which
 * only some are. */
void endpoint_skip_to(struct endpoint_fixture *w, struct cn_endpoint *from, struct cn_endpoint *to,
		      uint32_t next);
void endpoint_small_pool(struct cn_engine_config *c);
/* Unread frames at a node. */
uint32_t endpoint_unread(const struct endpoint_fixture *w, uint32_t node);
/* Polls only one node, `times` times. */
void endpoint_poll_only(struct endpoint_fixture *w, uint32_t node, uint32_t times);

#endif
