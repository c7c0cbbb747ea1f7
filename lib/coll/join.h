/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JOIN records of a peer: what it advertised of its teams, the newest first. There may be a
 * thousand, so hash tables index them by the id of the peer's team and by its job, and scans skip
 * those of mutually committed teams, which are most.
 */
#ifndef CN_JOIN_H
#define CN_JOIN_H

#include "coll/cursor.h"

#define CN_TEAMS_MAX 4096 /* of a node */

/* Ranks first, first + 1 + gap, ...; n of them. */
struct cn_range {
	uint32_t first;
	uint16_t gap, n;
};

static inline uint32_t cn_range_rank(const struct cn_range *r, uint32_t i)
{
	return r->first + i * (1u + r->gap);
}

/* The rank of a node that left first: LEAVE. */
struct cn_left {
	uint32_t after; /* so many operations; their number wraps */
	uint32_t rank;
	bool any;  /* one left */
	bool dead; /* it died */
};

struct cn_join {
	struct cn_join *next, *prev;	       /* prev: NULL if it is the first */
	struct cn_join *in_slot, *in_job_slot; /* next in the hash chains */
	uint32_t hash;			       /* of owner and job */
	uint32_t id, ranks, topology;	       /* of the peer's team */
	uint64_t owner;
	uint32_t link_mbit;	  /* Mbit/s of its link; 0: not known */
	uint16_t port;		  /* of its transport */
	uint32_t commit_received; /* id of the team here to which it has committed; 0: none */
	uint32_t commit_sent;	  /* id of the team here that has committed to it; 0: none */
	bool left; /* a rank has left, or the peer forms the next team of the job: no new team can
		    * use it */
	/* Mutually committed, so that it may have been ready, while the team here still forms: */
	struct cn_left first_left;
	uint32_t started; /* operations, by STARTED */
	bool ended;	  /* END was received: the record stays until the team is ready */
	uint32_t nranges;
	struct cn_range *ranges, one; /* one: storage of a single range */
	char job[];		      /* as long as the name: there are as many records as nodes */
};

/* A team that failed at the peer before it was known here. */
struct cn_join_failure {
	uint32_t id; /* 0: none */
	int code;
	char text[256];
};
#define CN_JOIN_FAILURES                                                                           \
	8u /* last failures per peer: ranks of a node split in several colors at once */

struct cn_join_list {
	struct cn_join *first;
	uint32_t n;
	uint32_t nslots;	/* a power of 2, at least n if there was memory for so many; or 0 */
	struct cn_join **slots; /* [nslots] by id, then as many by job, the newest first */
	uint32_t ncommitted;	/* records of teams that have committed to each other */
	struct cn_join_failure *failures; /* [CN_JOIN_FAILURES], a ring; NULL: there was none */
	uint32_t nfailures;		  /* that there were */
};

/* True if a rank that left after `posted` operations is the first; later ones are ignored. */
bool cn_left_is_first(const struct cn_left *l, uint32_t posted);
/* LEAVE of a rank of the node, after `posted` operations. */
void cn_left_record(struct cn_left *l, uint32_t rank, uint32_t posted, bool dead);

/* The record for an owner's job with which a team can be made; NULL: none. */
struct cn_join *cn_join_find(const struct cn_join_list *l, uint64_t owner, const char *job);
struct cn_join *cn_join_by_id(const struct cn_join_list *l, uint32_t id);

/* Sets ids of teams here: to which the peer's has committed, and which has committed to it. */
void cn_join_commit(struct cn_join_list *l, struct cn_join *j, uint32_t received, uint32_t sent);
/* True if a team here needs the record; mutually committed teams do. */
typedef bool cn_join_in_use(const void *ctx, const struct cn_join *j);
/*
 * A record as `in`, without its ranges. If the peer or the owner has too many, it replaces the
 * oldest unused one. NULL: no room, or no memory.
 */
struct cn_join *cn_join_new(struct cn_join_list *l, const struct cn_join *in, const char *job,
			    cn_join_in_use *in_use, const void *ctx);
void cn_join_remove(struct cn_join_list *l, struct cn_join *j);
void cn_join_remove_all(struct cn_join_list *l); /* and the failures */

/* An entry for the next failure; NULL: no memory. */
struct cn_join_failure *cn_join_fail(struct cn_join_list *l);
/* Of this team; NULL: none is known. */
const struct cn_join_failure *cn_join_failure(const struct cn_join_list *l, uint32_t id);

/* Parses the ranges of ranks of a message; false: malformed, and none are stored. */
bool cn_join_read(struct cn_cursor *c, struct cn_join *j);
void cn_join_forget(struct cn_join *j); /* frees its ranges */
/* Moves the ranges of `from` to j, which may be the same record. */
void cn_join_move_ranges(struct cn_join *j, struct cn_join *from);
uint32_t cn_join_ranks(const struct cn_join *j);

#endif
