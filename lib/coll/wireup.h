/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wire-up (bootstrap) of a job: how the ranks of a job discover each other, by JOIN and COMMIT
 * between the engines of its nodes.
 *
 *   wireup.c            candidates, completeness, input
 *   wireup_announce.c   JOIN and COMMIT: encoding, pacing and repetition
 *   wireup_path.c       MTUs and paths, which are validated before COMMIT
 *   wireup_join.c       records of peers' advertisements (join.h)
 *
 * A team is ready when it knows all ranks and every other node has committed to it. A team left by
 * an earlier run of the same job never commits to the new one, so the two cannot be confused.
 *
 * A forming team keeps a list of its candidates: the peers that announced the same job of the same
 * owner. Candidates come first and have a pace of their own, so that a job's wire-up depends on its
 * own nodes; all other peers are only sent JOIN, at their own pace, until the team is complete. A
 * peer that does not answer delays neither.
 *
 * A derived team (cn_team_derive()) knows its nodes, which have validated the paths to each other,
 * and has a name that no team had before, so that there are no records of an earlier run. Its JOINs
 * go to its nodes only, which are its candidates from the beginning, and a JOIN is also the peer's
 * COMMIT: one message per pair of nodes. A team that is divided (split.h) needs none of them: an
 * operation of the parent says the same.
 *
 * Both messages are idempotent. A JOIN to a candidate names the candidate's team id, which confirms
 * that this node knows it; a COMMIT is never sent before the JOIN that it refers to. Unconfirmed
 * messages are repeated with backoff, so that no lost record leaves a team half formed: to
 * candidates from 50 ms on, to all peers from 2 s on, until the team is ready or its deadline
 * passes.
 */
#ifndef CN_WIREUP_H
#define CN_WIREUP_H

#include "coll/join.h"
#include "proto/node.h"

struct cn_engine;
struct cn_team;

/* What was advertised to a peer. */
struct cn_advertised {
	uint32_t version;   /* of the local ranks; 0: nothing */
	bool candidate;	    /* it is in the list of candidates */
	bool member;	    /* a derived team: a rank of it is on that node */
	bool confirmed;	    /* it knows this team */
	uint8_t lost;	    /* since: 1 + enum cn_peer_loss; 0: no, or it is back */
	uint32_t committed; /* id of its team that has committed to this one, and this one to it:
			     * while its record says so; 0: none */
};

/*
 * State of a forming team. The counts, which avoid a scan of all peers per message, are exact after
 * cn_wireup_check() and then follow the input; the next check corrects errors.
 */
struct cn_wireup {
	uint32_t version;		  /* of the local ranks: a rank that comes or goes adds 1 */
	struct cn_advertised *advertised; /* [nadvertised] by index: to others nothing was */
	uint32_t nadvertised;
	uint32_t *candidates; /* peers that announced the job, by index */
	uint32_t ncandidates, candidates_cap;
	bool candidates_due; /* some may lack the current version */
	bool derived;	     /* from another team: its nodes are known */
	uint32_t expected;   /* derived: local ranks that will join */
	uint64_t *members;   /* derived: [ranks of the parent / 64] those that take part */
	bool scattered;	     /* the local ranks are too many ranges for a message so far */
	uint64_t *present;   /* [ranks / 64] ranks that are known, and how many */
	uint64_t *seen;	     /* [ranks / 64] ranks ever known */
	uint32_t npresent;
	uint32_t known;	     /* ranks known */
	uint32_t njoined;    /* other nodes with known ranks */
	uint32_t ncommitted; /* ... that have committed to this team */
	bool complete;	     /* all ranks were known at the last check */
	uint32_t npaths;     /* complete: nodes to which the path is not validated yet */
	cn_time wake_at;     /* cn_wireup_expire() */
	cn_time check_at;    /* the next check */
	cn_time grace_until; /* until then a contradiction may be due to an earlier run */
	bool contradicts;    /* the announcements conflict: the team fails */
	char contradiction[CN_ERR_TEXT]; /* with an earlier run, perhaps; "": none */
	cn_time refused_until; /* with a process here: it fails then if ranks are missing; 0: none
				*/
	/* Pacing: when all that was sent would have gone out evenly, to candidates and to all. */
	cn_time candidates_paced, all_paced;
	cn_time repeat_at, repeat_wait;	    /* what candidates did not confirm */
	cn_time announce_at, announce_wait; /* to all peers again */
	uint32_t announced, announce_n;	    /* of announce_n peers, the number processed */
	uint32_t next_commit;		    /* candidates processed for COMMIT */
};

/* False: no memory. */
bool cn_wireup_init(struct cn_wireup *w, uint32_t ranks);
void cn_wireup_fini(struct cn_wireup *w);

/* ---- wireup.c --------------------------------------------------------------------------- */

/* The team is new: peers that announced its job before are its first candidates. */
void cn_wireup_begin(struct cn_team *t, cn_time now);
/* Before cn_wireup_begin(): the team is derived from these ranks of the parent. False: no memory.
 */
bool cn_wireup_derive(struct cn_team *t, const struct cn_team *parent, const uint64_t *members);
/* A local rank came or went. */
void cn_wireup_ranks_changed(struct cn_team *t, cn_time now);
/* A process of this node was refused, for the job's size or for a rank that is here: the text. */
void cn_wireup_refused(struct cn_team *t, cn_time now, const char *text);
/* Looks at all candidates, and makes the team ready if nothing is missing. */
void cn_wireup_check(struct cn_team *t, cn_time now);
void cn_wireup_expire(struct cn_team *t, cn_time now); /* t->wireup.wake_at has come */
/* The deadline of a rank has come: the team fails, unless all that was missing is there. */
void cn_wireup_timeout(struct cn_team *t, cn_time now);
/* A peer announced the job of a forming team, with `more` ranks than before. confirmed: it knows
 * this node's team. */
void cn_wireup_joined(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j,
		      uint32_t more, bool confirmed);
/* A peer's team of its job has failed, since its announcements contradict each other. */
void cn_wireup_contradicted(struct cn_team *t, cn_time now, const char *text);
/* A peer's team of its job has ended, or its record was stale. */
void cn_wireup_ended(struct cn_team *t, cn_time now);
/* A peer has committed to the team, for the first time or again; ask: it lacks this node's COMMIT.
 */
void cn_wireup_committed(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j,
			 bool first, bool ask);
void cn_wireup_peer_up(struct cn_team *t, struct cn_peer *p);
void cn_wireup_peer_down(struct cn_team *t, const struct cn_peer *p, enum cn_peer_loss why);
/* The record is of this team, as far as size and topology tell. */
bool cn_wireup_agrees(const struct cn_team *t, const struct cn_join *j);
/* The k-th candidate, and the peer's record of the team's job; NULL: none, or the peer is gone. */
struct cn_peer *cn_wireup_candidate(const struct cn_team *t, uint32_t k);
/* Removes the records of peers' teams that have ended while the team formed, as it does not any
 * more, or all. */
void cn_wireup_remove(struct cn_team *t, bool all);
/* A derived team: the peer and this node know of each other what JOINs say. False: no memory. */
bool cn_wireup_learn(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j);
/* What was advertised to the peer of this index. */
const struct cn_advertised *cn_wireup_advertised(const struct cn_team *t, uint32_t peer);
/* The same, to be changed. NULL: no memory, which never happens for a candidate. */
struct cn_advertised *cn_wireup_advertise(struct cn_team *t, uint32_t peer);
/* The record of the peer's team that has committed to the team here, which has committed to it,
 * also if ranks of it have left since; NULL: none. */
struct cn_join *cn_wireup_committed_of(const struct cn_team *t, const struct cn_peer *p);
/* A commitment was sent or received: cn_wireup_committed_of() is this one, if both were. */
void cn_wireup_record_commit(struct cn_team *t, const struct cn_peer *p, const struct cn_join *j);
/* That, or else one with which a team can be made; NULL: none. */
struct cn_join *cn_wireup_join_of(const struct cn_team *t, struct cn_peer *p);
/* The team wants cn_wireup_expire() not later than `at`. */
void cn_wireup_wake(struct cn_team *t, cn_time at);

/* ---- wireup_announce.c ------------------------------------------------------------------ */

/* Begins the waits for repetition. */
void cn_wireup_announce_begin(struct cn_team *t, cn_time now);
/* Sends JOIN to those that lack the present version, as fast as the pace allows. */
void cn_wireup_announce(struct cn_team *t, cn_time now);
void cn_wireup_announce_candidates(struct cn_team *t, cn_time now);
/* Repeats what is due and was not confirmed. */
void cn_wireup_repeat(struct cn_team *t, cn_time now);
/* All ranks are known: commits to all nodes, from where it stopped last. False: not to all yet. */
bool cn_wireup_commit_all(struct cn_team *t, cn_time now);
/* True if the peer was sent a JOIN with the current local ranks. */
bool cn_wireup_is_announced_to(const struct cn_team *t, const struct cn_peer *p);
/* Answers a peer that lacks this node's COMMIT, if the pace allows. */
void cn_wireup_commit_again(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j);
/* True if the team is announced to the peer of this index. */
bool cn_wireup_announces_to(const struct cn_team *t, uint32_t peer);
/* A derived team takes a JOIN for the peer's COMMIT. False: no memory. */
bool cn_wireup_adopt(struct cn_team *t, cn_time now, struct cn_peer *p, struct cn_join *j);
/* Sends JOIN at once. False: no buffer, or no memory. */
bool cn_wireup_send_join(struct cn_team *t, struct cn_peer *p);
/* The team fails while it forms: candidates that were not sent JOIN get it first. */
void cn_wireup_pend_joins(struct cn_team *t);

/* ---- wireup_path.c ---------------------------------------------------------------------- */

/* A complete team: begins what is left to validate and returns to how many nodes. A node with
 * another MTU fails the team. */
uint32_t cn_wireup_path_begin(struct cn_team *t, cn_time now);
/* The path to the peer was validated: teams that wait for it go on. */
void cn_wireup_path_valid(struct cn_engine *e, cn_time now, struct cn_peer *p);
/* Frames of so many bytes do not reach the peer: its teams fail and say so. */
void cn_wireup_path_drops(struct cn_engine *e, struct cn_peer *p, uint32_t bytes);

#endif
