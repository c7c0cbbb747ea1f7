/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Liveness: an idle peer that something waits for is probed (keepalive); it is lost after
 * dead_after and enough unanswered probes. It is notified (CN_FLAG_RESET): it may hear this node
 * although its own frames do not arrive.
 *
 * A node answers on each of its ports, and full queues may drop every frame of one session while
 * frames of another arrive. These show that the node is alive, so a single silent session has
 * several times dead_after. Then it ends: the peer may have ended it long ago.
 *
 * Sessions that wait for one node measure its silence jointly; the more there are, the less often
 * each is probed.
 */
#ifndef CN_LIVENESS_H
#define CN_LIVENESS_H

#include "util/util.h"

struct cn_node;
struct cn_peer;

struct cn_liveness {
	/* That of the session of port 0 with the same node, from which sessions of other ports are
	 * derived; of port 0: itself. */
	struct cn_liveness *own;
	cn_time last_rx;	 /* any frame, hellos included; in `own`: of any port */
	cn_time last_node_rx;	 /* in `own`: a frame of a session of any port */
	cn_time last_session_rx; /* a frame of this session: the peer also receives ours */
	uint32_t expecting;	 /* cn_peer_expect() */
	uint32_t waiting;	 /* in `own`: sessions with the node that expect something */
	cn_time expect_since;
	cn_time probe_at; /* CN_NEVER: not probed, as nothing waits for it */
	uint32_t loss;	  /* in `own`: share of frames to the node that were retransmitted, and of
			   * probes without an answer, of 65,536; the mean of some sixteen */
	uint32_t probes;  /* without an answer */
	/* in `own`: unanswered, of any session, since the node's last frame */
	uint32_t node_probes;
	cn_time extra_probe_at;	 /* probe because another peer is silent; CN_NEVER: none */
	cn_time extra_probed_at; /* when the last such probe was sent */
	bool timed_out;		 /* in `own`: a session ended by silence, which still lasts */
	uint32_t extra_probes;	 /* such probes in a row without an answer */
	bool contested; /* name conflict: another node announced itself under the peer's name,
			 * which the peer keeps if it answers; probed until it does */
};

/*
 * Consecutive unanswered tries before a peer is declared dead: loss alone, at the rate that this
 * node measures, explains them in one of 65,536 cases. At least 3.
 */
uint32_t cn_node_min_tries(const struct cn_node *n);
/* The same for one peer, at the loss rate of its path if that is higher. */
uint32_t cn_peer_min_tries(const struct cn_peer *p);
/* A frame to the peer was acknowledged; lost: it had been retransmitted. */
void cn_liveness_sample_loss(struct cn_peer *p, bool lost);
/*
 * The wait until the next probe with a jitter of up to a quarter. Where a schedule waits, all nodes
 * start to probe at once: without jitter, probes and answers would meet in the same short queues
 * each time, and the same ones would be lost.
 */
cn_time cn_peer_jitter(const struct cn_peer *p, cn_time wait);
/* The longest probe interval of a session, while the node answers. */
cn_time cn_liveness_interval(const struct cn_peer *p);
/* A frame of the session was received. */
void cn_liveness_received(struct cn_peer *p);
void cn_liveness_init(struct cn_liveness *l);
/* The earlier of probe_at and extra_probe_at. */
cn_time cn_liveness_deadline(const struct cn_liveness *l);
/* The deadline has passed. */
void cn_liveness_expire(struct cn_peer *p);
/* Frames are unacknowledged: the peer is probed, even if no operation waits for it. */
void cn_liveness_unacked(struct cn_peer *p);
/* Another node announced itself under the name of this established peer, which is probed. */
void cn_liveness_contest(struct cn_peer *p);
/* Peers of this port that are silent: lost by silence, or cn_peer_is_silent(). */
uint32_t cn_node_silent_peers(const struct cn_node *n);
/* The session ends. */
void cn_liveness_reset(struct cn_peer *p);

#endif
