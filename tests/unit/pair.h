/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two to four transports connected in memory under a virtual clock, for tests of lib/proto.
 *
 * Every node has one cable into an ideal switch: frames leave at `rate`, arrive `delay` plus a
 * random `jitter` later and in order, unless a seeded fault drops, duplicates, reorders or corrupts
 * them; corrupted bytes are not compared. Above each node sits an application that sends numbered
 * frames to the others and checks number and every byte of what it receives; upcalls are also
 * recorded as text, as in "a: up b". A step advances to the next event; nothing depends on real
 * time.
 */
#ifndef TESTS_PAIR_H
#define TESTS_PAIR_H

#include <stdio.h>

#include "proto/global_window.h"
#include "proto/node_impl.h"

#define PAIR_NODES 4
#define PAIR_SLOTS 1024 /* unacknowledged payloads per flow */
#define PAIR_LOG   8192
#define PAIR_SPARE 1024

extern const char pair_names[]; /* a letter per node */

struct pair;

/* Frames of one type from one node to another. */
struct pair_flow {
	uint32_t total; /* frames to send; new ones may be added while it runs */
	uint32_t sent;
	uint32_t received;	 /* counted by the receiver */
	uint32_t acked;		 /* tokens returned */
	struct cn_flight flight; /* pair.own_limit > 0 */
	uint16_t len;		 /* of each; 0: varies with the number */
	uint8_t *slots;		 /* [PAIR_SLOTS][payload], allocated when first used */
	uint8_t taken[PAIR_SLOTS];
};

struct pair_node {
	struct pair *pair;
	struct cn_node *node; /* NULL: switched off */
	struct cn_node_config config;
	uint32_t id, turn;
	cn_time line_free;
	uint32_t refuse; /* frames for deliver() to refuse; UINT32_MAX: all */
	uint32_t control_received, control_sent;
	uint32_t room_broken; /* pulls at which cn_peer_room() was found exceeded */
	uint32_t downs, ups;
};

struct pair_packet {
	cn_time at;
	uint64_t order;
	uint32_t to;
	uint32_t len;
	uint8_t *data;
};

struct pair {
	cn_time now;
	struct pair_node nodes[PAIR_NODES];
	uint32_t count;
	struct pair_flow flows[PAIR_NODES][PAIR_NODES];
	/* the network */
	uint64_t seed, random;
	cn_time delay, jitter;
	uint32_t ns_per_byte;
	uint32_t loss, duplicate, reorder, garble; /* parts per million */
	bool cut[PAIR_NODES][PAIR_NODES];	   /* [from][to] */
	cn_time last_at[PAIR_NODES][PAIR_NODES];
	/* Inspects each frame before transmission; false: lost. */
	bool (*filter)(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len);
	void *filter_arg;
	uint32_t first_seq; /* of every session; 0: the transport's own */
	uint32_t own_limit; /* of each flow, in the sender's global window; 0: it is not used */
	bool reply_soon;    /* receivers announce that data will go back */
	bool no_reply;	    /* ... that nothing will */
	bool listed;	    /* nodes of one letter are */
	bool gaps_allowed;  /* streams are abandoned or sessions end: numbers may be missing */
	struct pair_packet *queue; /* heap by (at, order) */
	uint32_t queued, queue_cap;
	uint8_t *spare[PAIR_SPARE]; /* free packets, cached so that a steady state allocates nothing
				     */
	uint32_t nspare;
	uint64_t order, frames;
	char log[PAIR_LOG];
	size_t log_len;
	/* effects: pair_trace() */
	bool tracing;
	char trace[PAIR_LOG];
	size_t trace_len;
	uint32_t trace_first[PAIR_NODES][PAIR_NODES]; /* [from][to]: the number that counts as 0 */
	uint32_t trace_next[PAIR_NODES][PAIR_NODES];  /* [from][to]: smaller ones are RESEND */
};

/* `change` may alter the configuration of every node before it starts; NULL: defaults. */
struct pair *pair_new(uint32_t nodes, uint64_t seed, void (*change)(struct cn_node_config *));
void pair_free(struct pair *p);
/* Switches a node off without a goodbye, and on again with a new epoch. */
void pair_stop(struct pair *p, uint32_t node);
void pair_start(struct pair *p, uint32_t node);

/* Advances to the next event, at most to `limit`. False: limit reached. */
bool pair_step(struct pair *p, cn_time limit);
void pair_run(struct pair *p, cn_time duration);
/* Until all nodes that run see each other and lines are idle, or all flows have arrived and are
 * acknowledged. */
bool pair_run_up(struct pair *p, cn_time duration);
/* Until `of` is down at `at`; returns how long that took. */
cn_time pair_run_down(struct pair *p, uint32_t at, uint32_t of, cn_time duration);
bool pair_run_flows(struct pair *p, cn_time duration);
/* A new pair with all sessions established. */
struct pair *pair_up(uint32_t nodes, uint64_t seed);
/* Sends a few frames each way, continuing the flows; after a restart they begin at 0. */
void pair_exchange(struct pair *p, uint32_t a, uint32_t b);
/* `at` expects something from `of`, so that it probes a silent peer. */
void pair_expect(struct pair *p, uint32_t at, uint32_t of);
/* Preallocates the harness's own memory, for tests that count allocations. */
void pair_reserve(struct pair *p);
/* Lets nodes output now, after a test called into them. */
void pair_poke(struct pair *p);

struct cn_peer *pair_peer(struct pair *p, uint32_t at, uint32_t of); /* NULL: not in the table */
bool pair_is_up(struct pair *p, uint32_t at, uint32_t of);
/* Injects a frame to a node, as if another node had sent it. */
void pair_inject(struct pair *p, uint32_t to, const uint8_t *frame, size_t len, cn_time at);
/* The frame, with its Ethernet header, arrives there now. */
void pair_input(struct pair *p, uint32_t to, const uint8_t *frame, size_t len);
/* A hello to node `to` in the name of an address; with `proof`, it echoes what `to` sent there. Its
 * length is returned; frame: CN_FRAME_HEAD bytes. */
size_t pair_hello(struct pair *p, uint32_t to, const uint8_t mac[6], const struct cn_hello *h,
		  uint8_t flags, bool proof, uint8_t *frame);
void pair_send(struct pair *p, uint32_t from, uint32_t to, uint32_t frames, uint16_t len);
struct collnet_stats pair_stats(struct pair *p, uint32_t node);
void pair_log(struct pair *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pair_log_clear(struct pair *p);
/*
 * Logs the effects from here on, that is, each frame that a node sends but broadcast hellos, by its
 * letter: "a: DATA 5", "a: RESEND 5", "b: ACK 3", "b: NAK 3 SACK 0x6", "b: RNR 3", "b: HELLO", with
 * " ACKREQ" behind those that request an acknowledgement. Sequence numbers of both directions count
 * from here.
 */
void pair_trace(struct pair *p);
/* Adds a frame that a node sends; pair.c calls it. */
void pair_trace_frame(struct pair *p, uint32_t from, const uint8_t *f, size_t len);
/* Compares the effects, joined by "; ", and clears them. */
void pair_assert_trace(struct pair *p, const char *effects);

#endif
