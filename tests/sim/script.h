/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps of the ranks of a job: operations of several teams, which are created and left in
 * between, persistent operations, and messages between endpoints. The seed determines the script. A
 * rank executes the steps in which it takes part, in their order.
 *
 *   FIRST   the original scripts: findings of their seeds can be replayed
 *   WIDE    named algorithms and windows, many calls at a time, ranks that are late for a while
 *   LATE    ... so late that deadlines pass, messages that nobody receives, and teams that are left
 *           with operations outstanding: nothing else fails
 *
 * In scripts of either style that go on (`again`), all ranks join teams in later steps, too.
 */
#ifndef TESTS_SCRIPT_H
#define TESTS_SCRIPT_H

#include "scenario.h"

#define SCRIPT_RANKS   48u
#define SCRIPT_STEPS   160u
#define SCRIPT_TEAMS   16u
#define SCRIPT_HANDLES 8u
#define SCRIPT_MESSAGE 20000u /* bytes at most */

enum script_style {
	SCRIPT_FIRST,
	SCRIPT_WIDE,
	SCRIPT_LATE,
};

enum step_kind {
	STEP_JOIN,    /* all ranks: team 0, or, in a later step, the team `child` */
	STEP_CALL,    /* an operation of the team */
	STEP_PREPARE, /* a persistent one: the handle's */
	STEP_START,   /* of the handle */
	STEP_RELEASE,
	STEP_SPLIT,  /* the team's ranks form new teams: child .. child + children - 1 */
	STEP_DERIVE, /* some of its ranks form the team `child` */
	STEP_LEAVE,
	STEP_MESSAGE, /* rank `from` of team 0 sends rank `to` so many bytes */
	STEP_LATE,    /* rank `from` does nothing for a while */
	STEP_REOPEN,  /* rank `from` closes its endpoint, with its messages, and opens it again */
};

struct step {
	enum step_kind kind;
	uint32_t team, handle, child, children, from, to;
	enum cn_making making; /* SPLIT */
	uint64_t colors;       /* SPLIT: the seed of colors and keys */
	uint64_t bytes;	       /* MESSAGE */
	bool hasty;	       /* MESSAGE: nobody receives it. LEAVE, RELEASE: it does not wait */
	cn_time late;	       /* LATE */
	struct op_plan op;     /* CALL */
};

/* Its ranks, as ranks of team 0. */
struct script_team {
	uint32_t n, parent;
	int32_t color;
	bool left, joined; /* joined: all ranks do, in a later step: it has no parent */
	uint16_t ranks[SCRIPT_RANKS];
};

struct script_handle {
	uint32_t team;
	bool released;
	struct op_plan op;
};

struct script {
	uint32_t nsteps, nteams, nhandles;
	uint32_t strike; /* the step in which a process fails; UINT32_MAX: none is chosen */
	uint32_t newest; /* the last team that all ranks join */
	uint32_t shift;	 /* from a sender to its receiver: messages from several are in no order */
	struct step steps[SCRIPT_STEPS];
	struct script_team teams[SCRIPT_TEAMS];
	struct script_handle handles[SCRIPT_HANDLES];
};

/* deadline: of each call. */
void script_draw(uint64_t seed, uint32_t ranks, enum script_style style, bool again,
		 cn_time deadline, struct script *out);
/* The next step from `first` on in which all ranks join; UINT32_MAX: none. */
uint32_t script_next_join(const struct script *s, uint32_t first);
/* The rank in a team of rank `rank` of team 0; UINT32_MAX: it is not in it. */
uint32_t script_rank(const struct script_team *t, uint32_t rank);
/* What a rank of the parent says in a split. */
int32_t script_color(const struct step *s, uint32_t rank);
int32_t script_key(const struct step *s, uint32_t rank);
const char *script_name(enum step_kind kind);

#endif
