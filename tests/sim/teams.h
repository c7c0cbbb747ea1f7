/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that follow a script of several teams in a simulated cluster: see teams.c.
 *
 *   teams_call.c      their calls, and the checks at the end of each
 *   teams_errors.c    whether their errors are true
 *   teams_process.c   their steps, tasks that calls wait for, and faults
 *   teams.c           a run
 */
#ifndef TESTS_TEAMS_H
#define TESTS_TEAMS_H

#include "fixture.h"
#include "script.h"

#define TEAMS_HOSTS    12u
#define FIRST_ENDPOINT 100u /* that of rank 0 */

struct teams_fixture;
struct process;

/* A call's buffers; those of a persistent operation serve all its calls. */
struct work {
	struct buffers buffers;
	struct cn_reducer reducer;
	struct cn_combine piece; /* to be combined later */
	struct process *process;
	struct cn_coll_args args;
};

struct team_call {
	struct cn_done done;
	struct process *process;
	const struct step *step;
	uint32_t number; /* of the step */
	uint32_t team;	 /* which fails with it */
	uint32_t seq; /* of an operation of the step's team: its number; UINT32_MAX: it is none */
	bool posted, refused;
	uint32_t completions;
	int status;
	cn_time at, deadline;
	struct work own, *work; /* the handle's, or its own; NULL: none */
	uint8_t *message;
	struct cn_received received;
};

struct handle {
	struct cn_prepared *prepared; /* NULL: not there, or gone */
	struct work work;
	bool busy;
};

/* A call with options is refused on all ranks, or on none. */
enum verdict {
	VERDICT_NONE,
	VERDICT_TAKEN,
	VERDICT_REFUSED,
};

/* A rank of team 0, with its endpoint. Where its host restarts, another process goes on in its
 * place with the next team that all ranks join. */
struct process {
	struct teams_fixture *fixture;
	uint32_t rank, host;
	struct cn_endpoint *endpoint;
	struct cn_member *members[SCRIPT_TEAMS]; /* NULL: it is not in it, or left */
	bool failed[SCRIPT_TEAMS];		 /* it is about to leave */
	bool left[SCRIPT_TEAMS];
	uint32_t called[SCRIPT_TEAMS]; /* operations, and the last ones */
	const struct team_call *last[SCRIPT_TEAMS][COLLNET_OUTSTANDING_MAX];
	struct handle handles[SCRIPT_HANDLES];
	uint32_t next, stop; /* step; the first one that it does not make */
	uint32_t outstanding, heard[SCRIPT_RANKS];
	bool gone, died, scheduled;
	bool reopened;		   /* its endpoint was */
	struct team_call *blocked; /* nothing is called before this one has ended */
	bool waits;		   /* it waits for a task */
};

struct teams_fixture {
	struct fixture fixture; /* of which ranks, operations and calls are not used */
	const struct scenario *s;
	struct script script;
	struct process processes[SCRIPT_RANKS];
	struct team_call *calls;	    /* [nsteps * ranks] */
	struct cn_task *tasks[TEAMS_HOSTS]; /* being run */
	cn_time task_most;		    /* how long they take, at most */
	uint32_t round;			    /* of scripts */
	uint32_t depth;
	enum script_style style;
	bool again; /* ranks join teams in later steps, too, and processes start again */
	uint32_t mtus[TEAMS_HOSTS]; /* `mixed`: of each host */
	bool mixed;		    /* they differ: no team of all ranks is ever ready */
	bool soon;		    /* a second script follows at once */
	bool interface_fails;	    /* that of the host, where a process would leave or die */
	bool in_turn;		    /* ranks are on the hosts in turn; false: host by host */
	bool must_succeed, over;
	enum verdict verdicts[SCRIPT_STEPS]; /* on a call with options */
	struct fault_event events[2 * FAULTS_MAX];
	cn_time quiet; /* when the last of them is over */
	bool struck;   /* the fault in the script's chosen step has begun */
};

static inline cn_time teams_now(const struct teams_fixture *w)
{
	return cn_sim_now(w->fixture.sim);
}

/* ---- teams_call.c --------------------------------------------------------------------- */

/* what: NULL: nothing is wrong. */
void teams_report(struct team_call *c, const char *what);
/* Once, before the call is made; false: no memory. */
bool teams_begin_call(struct team_call *c);
/* It may wait for a task: then it is made again. */
void teams_make_call(struct team_call *c);
/* The team that a step is of, or makes. */
uint32_t teams_team_of(const struct process *p, const struct step *x);
bool teams_takes_part(const struct process *p, const struct step *x);
bool teams_makes(const struct step *x); /* one team, or several */

/* ---- teams_errors.c ------------------------------------------------------------------- */

/* Checks the error of a call that may fail: NULL, or the mistake in it. */
const char *teams_check_error(const struct team_call *c, int status, const char *text);

/* ---- teams_process.c ------------------------------------------------------------------ */

/* After a call of the host's engine. */
void teams_kick(struct process *p);
/* False: it has no endpoint, which is reported. */
bool teams_open_endpoint(struct process *p);
/* The process leaves teams that failed, and continues with its steps. */
void teams_advance_later(struct process *p);
/* It leaves all its teams. */
void teams_end_process(struct process *p, bool dead);
/* Whether a call on this host waits for a task. */
bool teams_somebody_waits(const struct teams_fixture *w, uint32_t host);
/* The next task of a host, if none is being run. */
void teams_submit_task(struct teams_fixture *w, uint32_t host);
/* Calls on this host that wait for a task, and whose deadline has passed, are made again. */
void teams_call_late(struct teams_fixture *w, uint32_t host);
/* Those of the scenario. */
void teams_schedule_faults(struct teams_fixture *w);

#endif
