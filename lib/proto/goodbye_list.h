/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The goodbyes that a node sends when it dies, like a will message of MQTT: for every established
 * peer, what it takes to build a goodbye that is valid in the session. The transport keeps the list
 * current; another process that shares the memory (the daemon's parent) reads it after the
 * transport's process died, and sends the frames.
 *
 * A node whose interface was replaced by one with another address sends the goodbyes of its former
 * address itself, from a copy of the list. They end the sessions of that address at once; otherwise
 * the former address would keep the node's name until it is given up as silent.
 *
 * The list has a fixed size and no pointers. A reader finds an entry whole or not at all, also when
 * the writer was killed in between; an entry that is torn all the same builds a frame of a session
 * that does not exist, which is dropped. The reader has more privileges than the writer, so it
 * trusts nothing in the list: any contents build frames within the bounds below.
 */
#ifndef CN_GOODBYE_LIST_H
#define CN_GOODBYE_LIST_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"
#include "proto/wire.h"

struct cn_goodbye {
	_Atomic uint64_t to;	  /* MAC address, 48 bits; 0: no entry */
	_Atomic uint64_t session; /* high half: session of the frames to it; low: goodbye token */
};

struct cn_goodbye_list {
	uint32_t max_peers;
	uint16_t ethertype, cluster;
	enum cn_encapsulation encapsulation; /* the reader adds its headers */
	uint8_t mac[6];
	uint32_t mtu;
	uint64_t epoch;
	uint32_t reason; /* of enum cn_bye */
	char name[COLLNET_NAME_MAX + 1];
	uint8_t authenticated;
	uint8_t hello_key[CN_SIPHASH_KEY]; /* if authenticated */
	struct cn_goodbye peers[];
};

/* Bytes of memory for max_peers peers. */
size_t cn_goodbye_list_size(uint32_t max_peers);
/* Writes the identity of this node and empties the list. The memory has
 * cn_goodbye_list_size(c->max_peers) bytes. */
void cn_goodbye_list_init(struct cn_goodbye_list *l, const struct cn_node_config *c);
void cn_goodbye_list_set(struct cn_goodbye_list *l, uint32_t i, const uint8_t mac[6],
			 uint32_t session, uint32_t token);
void cn_goodbye_list_clear(struct cn_goodbye_list *l, uint32_t i);
/* The unicast goodbye to entry i (0 .. max_peers - 1), with its Ethernet header and not padded.
 * Returns its length, at most CN_FRAME_HEAD; 0: no such entry. */
size_t cn_goodbye_list_frame(const struct cn_goodbye_list *l, uint32_t i,
			     uint8_t out[CN_FRAME_HEAD]);
/* The encapsulation; raw if the number is unknown. */
enum cn_encapsulation cn_goodbye_list_encapsulation(const struct cn_goodbye_list *l);

#endif
