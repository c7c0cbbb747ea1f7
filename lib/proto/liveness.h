/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Liveness: a peer that something here waits for, and that is idle, is probed; it is lost after
 * dead_after and enough probes without an answer.
 */
#ifndef CN_LIVENESS_H
#define CN_LIVENESS_H

#include "util/util.h"

struct cn_node;
struct cn_peer;

struct cn_liveness {
	cn_time last_rx;	 /* any frame, hellos included */
	cn_time last_session_rx; /* a frame of this session: the peer receives ours, too */
	uint32_t expecting;	 /* cn_peer_expect() */
	cn_time expect_since;
	cn_time probe_at; /* CN_NEVER: nobody waits for the peer */
	uint32_t probes;  /* without an answer */
	cn_time asked_at; /* when it was last probed because another peer is silent */
	uint32_t asked;	  /* how often in a row without an answer */
	bool contested;	  /* name conflict: another node announced itself under the peer's name,
			   * which the peer keeps if it answers; probed until it does */
};

/*
 * How many tries in a row must stay without an answer before the peer is given up: so many that
 * loss alone, at the rate that this node sees, explains it in one of 65,536 cases. At least 3.
 */
uint32_t cn_node_min_tries(const struct cn_node *n);
/*
 * A wait until the next probe, up to a quarter shorter or longer. Where a schedule waits, all nodes
 * begin to probe at one moment: without jitter their probes and the answers meet in the same short
 * queues each time, and the same ones are lost.
 */
cn_time cn_peer_jitter(const struct cn_peer *p, cn_time wait);
/* A frame of the session came. */
void cn_liveness_note(struct cn_peer *p);
/* probe_at has come. */
void cn_liveness_expire(struct cn_peer *p);
/* Frames are not acknowledged, though no operation may wait for the peer: it is probed. */
void cn_liveness_unacked(struct cn_peer *p);
/* Another node announced itself under the name of this peer, which is up: the peer is probed. */
void cn_liveness_contest(struct cn_peer *p);
/* The session ends. */
void cn_liveness_reset(struct cn_peer *p);

#endif
