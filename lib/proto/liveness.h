/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Liveness: a peer that something here waits for, and that is idle, is probed; it is lost after
 * dead_after and enough probes without an answer.
 *
 * A node answers on each of its ports, and full queues may drop every frame of one session while
 * those of another come. These are a sign of life of the node, so a session alone is given several
 * times dead_after. It does end then: the peer may have ended it long ago.
 *
 * Many sessions may wait for one node. They count its silence together, and the more there are, the
 * less often each is probed.
 */
#ifndef CN_LIVENESS_H
#define CN_LIVENESS_H

#include "util/util.h"

struct cn_node;
struct cn_peer;

struct cn_liveness {
	/* Of the session of port 0 with the same node, which the sessions of other ports follow
	 * from; itself if this is that one. */
	struct cn_liveness *own;
	cn_time last_rx;	 /* any frame, hellos included; in `own`: of any port */
	cn_time last_node_rx;	 /* in `own`: a frame of a session of any port */
	cn_time last_session_rx; /* a frame of this session: the peer receives ours, too */
	uint32_t expecting;	 /* cn_peer_expect() */
	uint32_t waiting;	 /* in `own`: sessions with the node that expect something */
	cn_time expect_since;
	cn_time probe_at; /* CN_NEVER: it is not probed, as nobody waits for it */
	uint32_t loss;	  /* in `own`: share of frames to the node that were retransmitted, and of
			   * probes without an answer, of 65,536; the mean of some sixteen */
	uint32_t probes;  /* without an answer */
	uint32_t node_probes;	/* in `own`: of any session, since one last heard the node */
	cn_time extra_probe_at; /* when to probe it because another peer is silent; CN_NEVER: not */
	cn_time extra_probed_at; /* when that was last done */
	bool timed_out; /* in `own`: a session was, because the node was silent, and it still is */
	uint32_t extra_probes; /* how often in a row without an answer */
	bool contested; /* name conflict: another node announced itself under the peer's name,
			 * which the peer keeps if it answers; probed until it does */
};

/*
 * How many tries in a row must stay without an answer before a peer is given up: so many that loss
 * alone, at the rate that this node sees, explains it in one of 65,536 cases. At least 3.
 */
uint32_t cn_node_min_tries(const struct cn_node *n);
/* The same for one peer: where its path loses more than those of others, at the rate of that. */
uint32_t cn_peer_min_tries(const struct cn_peer *p);
/* A frame to the peer was acknowledged, lost: after a retransmission. */
void cn_liveness_sample_loss(struct cn_peer *p, bool lost);
/*
 * A wait until the next probe, up to a quarter shorter or longer. Where a schedule waits, all nodes
 * begin to probe at one moment: without jitter their probes and the answers meet in the same short
 * queues each time, and the same ones are lost.
 */
cn_time cn_peer_jitter(const struct cn_peer *p, cn_time wait);
/* The longest wait between two probes of a session, while the node is heard and answers them. */
cn_time cn_liveness_interval(const struct cn_peer *p);
/* A frame of the session came. */
void cn_liveness_received(struct cn_peer *p);
void cn_liveness_init(struct cn_liveness *l);
/* The next of probe_at and ask_at. */
cn_time cn_liveness_deadline(const struct cn_liveness *l);
/* That has come. */
void cn_liveness_expire(struct cn_peer *p);
/* Frames are not acknowledged, though no operation may wait for the peer: it is probed. */
void cn_liveness_unacked(struct cn_peer *p);
/* Another node announced itself under the name of this peer, which is up: the peer is probed. */
void cn_liveness_contest(struct cn_peer *p);
/* The session ends. */
void cn_liveness_reset(struct cn_peer *p);

#endif
