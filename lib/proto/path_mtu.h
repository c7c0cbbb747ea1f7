/* SPDX-License-Identifier: BSD-2-Clause */
/* Path MTU validation; path_mtu.c describes it. */
#ifndef CN_PATH_MTU_H
#define CN_PATH_MTU_H

#include "proto/peer.h"

/* Per peer: the validation of the path to it. */
struct cn_path {
	enum cn_path_state state;
	enum cn_path_state before; /* by_data: the state before */
	bool by_data;  /* a reliable frame did not get through; else cn_peer_validate() */
	bool wanted;   /* by_data: cn_peer_validate() was called as well */
	uint32_t size; /* of padded probes, bytes after the Ethernet header */
	bool padded_due, short_due; /* probes due: the padded one, and the short one after it */
	bool again;		    /* the next try is a retry */
	uint16_t number;	    /* of the last try */
	uint32_t strikes;	    /* tries whose short probe arrived and padded one did not */
	cn_time sent_at;	    /* the last try */
	cn_time at;	      /* timeout of the try, or end of the pause after a strike; CN_NEVER */
	struct cn_peer *next; /* WAITING: in the node's queue */
};

/* Per peer: the reply to its probes. */
struct cn_path_reply {
	uint16_t number;  /* of its last try */
	uint16_t largest; /* bytes after the Ethernet header of the largest probe of that try */
	bool due;
};

/* Per node. */
struct cn_path_queue {
	struct cn_peer *probing; /* peer with an outstanding try; NULL: none */
	struct cn_peer *first, *last;
	cn_time wait;	 /* timeout of a try; 0: no probe sent yet */
	cn_time doubled; /* when `wait` last doubled */
};

void cn_path_reset(struct cn_peer *p);	/* a session begins or ends */
void cn_path_expire(struct cn_peer *p); /* path.at has come */
/* A reliable frame of `bytes` bytes after the Ethernet header is retransmitted without success. */
void cn_path_suspect(struct cn_peer *p, uint32_t bytes);
/* A frame with CN_FLAG_MTU_PROBE, of `bytes` bytes, or with CN_FLAG_MTU_REPLY was received. */
void cn_path_probed(struct cn_peer *p, uint32_t stream, uint32_t bytes);
void cn_path_answer(struct cn_peer *p, uint32_t stream);

#endif
