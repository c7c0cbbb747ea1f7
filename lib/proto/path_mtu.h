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
	bool wanted;   /* by_data: cn_peer_validate() was called meanwhile */
	uint32_t size; /* of padded probes, bytes after the Ethernet header */
	bool padded_due, short_due; /* probes to be sent: padded, and behind it one that is not */
	bool again;		    /* the next try is not the first */
	uint16_t number;	    /* of the last try */
	uint32_t strikes; /* tries of which the short probe arrived and the padded one did not */
	cn_time sent_at;  /* the last try */
	cn_time at; /* end of the wait for an answer, or of the pause after a strike; CN_NEVER */
	struct cn_peer *next; /* WAITING: in the node's queue */
};

/* Per peer: the answer to its probes. */
struct cn_path_reply {
	uint16_t number;  /* of its last try */
	uint16_t largest; /* bytes after the Ethernet header of the largest probe of that try */
	bool due;
};

/* Per node. */
struct cn_path_queue {
	struct cn_peer *probing; /* its try waits for an answer; NULL: none does */
	struct cn_peer *first, *last;
	cn_time wait;	 /* for an answer; 0: no probe was sent yet */
	cn_time doubled; /* when `wait` was doubled last */
};

void cn_path_reset(struct cn_peer *p);	/* a session begins or ends */
void cn_path_expire(struct cn_peer *p); /* path.at has come */
/* A reliable frame of so many bytes after the Ethernet header is retransmitted in vain. */
void cn_path_suspect(struct cn_peer *p, uint32_t bytes);
/* A frame with CN_FLAG_MTU_PROBE came, of so many bytes, or one with CN_FLAG_MTU_REPLY. */
void cn_path_probed(struct cn_peer *p, uint32_t stream, uint32_t bytes);
void cn_path_answer(struct cn_peer *p, uint32_t stream);

#endif
