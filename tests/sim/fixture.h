/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fixture of a scenario: ranks join, call, wait, call again, and faults happen at their times.
 * Oracles check the run:
 *
 *   wire_oracle.c      the frames on the simulated wire
 *   fixture.c          done functions are called once, and no call outlives its deadline
 *   buffers.c          received bytes are right, and no buffer is touched after its call has ended
 *   oracle_errors.c    errors are true
 *   oracle_leaks.c     nothing is left behind, and every frame was delivered once
 *   oracle_idle.c      no operation is idle for longer than a round trip
 *   oracle_goodput.c   operations take no longer than the network explains
 */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include "buffers.h"
#include "scenario.h"
#include "wire_oracle.h"

#define FIXTURE_LATE (20 * CN_US) /* scenario.late: a combination, at most */

struct fixture;

struct call {
	struct cn_done done;
	struct fixture *fixture;
	uint32_t rank, number;
	bool posted;
	uint32_t completions;
	int status;
	char text[CN_ERR_TEXT];
	cn_time at, deadline, ended;
	struct buffers buffers;
	struct cn_reducer reducer;
	struct cn_combine piece; /* to be combined later */
	uint64_t missing[2];	 /* ranks below 128 whose block was incomplete when it failed */
};

struct rank {
	struct cn_done join;
	struct fixture *fixture;
	struct cn_member *member; /* NULL: not joined, or gone */
	uint32_t number, host;
	bool joined, join_done;
	bool stopped, waiting; /* makes no more calls; its next call is scheduled */
	int join_status;
	char join_text[CN_ERR_TEXT];
	uint32_t next, ended;
	uint32_t stop; /* the first operation that it does not call; UINT32_MAX: it calls all */
};

struct fixture {
	const struct scenario *s;
	struct cn_sim *sim;
	struct wire_oracle *wire;
	bool verbose;
	uint64_t random;

	struct rank *ranks;
	const struct op_plan *ops; /* of the present team */
	uint32_t nops;
	struct call *calls;    /* [nops * ranks] number * ranks + rank */
	uint32_t open;	       /* calls not completed, of ranks that continue */
	cn_time start, finish; /* first call, last end */
	cn_time limit_slack;
	cn_time *frozen; /* [hosts] until when it is paused */
	bool *crashed;	 /* [hosts] its daemon ended or restarted since the team was formed */
	struct cn_sim_totals before;
	cn_time active, round_trip; /* oracle_idle.c: the last event of a frame; of the network */
	bool refused;		    /* a frame was (RNR) */
	bool hints; /* a team failed before it was ready: records of it stay with others */

	char finding[1024]; /* the first finding; "" while there is none */
	uint32_t findings;
};

struct fault_event {
	struct fixture *fixture;
	const struct fault_plan *plan;
	bool end;
};

/* Runs it; false: a finding, in fx->finding. */
bool fixture_run(struct fixture *fx, const struct scenario *s, bool verbose);
void fixture_report(struct fixture *fx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The rank makes no more calls. */
void fixture_stop_calling(struct rank *r);

/* ---- fixture_faults.c ----------------------------------------------------------------- */

/* Schedules the scenario's faults from fx->start on; the time of the last one. events: [2
 * FAULTS_MAX], valid until then. */
cn_time fixture_schedule_faults(struct fixture *fx, struct fault_event *events);
/* Link faults of PROFILE_LOSS begin before the ranks join, all others with the calls. */
void fixture_begin_link_faults(struct fixture *fx);
/* A fault of links, or a pause, begins or ends; false: it is of another kind. */
bool fixture_fault_network(struct fixture *fx, const struct fault_plan *f, bool end);
void fixture_restart(struct fixture *fx, uint32_t host);
void fixture_rank_leaves(struct rank *r, bool failed);
/* Ends all faults of links, and restarts hosts that crashed. */
void fixture_repair(struct fixture *fx);

/* ---- oracles -------------------------------------------------------------------------- */

/* The window that an operation must keep to; COLLNET_WINDOW_OFF: none, or not known here. */
uint32_t oracle_window(const struct scenario *s, const struct op_plan *p);
/* What an operation may have in flight: its window, or all frames of a short all-to-all. */
uint32_t oracle_in_flight(const struct scenario *s, const struct op_plan *p);
/* Whether frames in cables add to the window of an operation. */
bool oracle_has_cables(const struct scenario *s, const struct op_plan *p);
/* The bytes of each such frame, which are fewer in a short all-to-all; 0: there are none. */
uint32_t oracle_cable_frame(const struct scenario *s, const struct op_plan *p);
bool oracle_by_acks(const struct scenario *s, const struct op_plan *p);
void oracle_check_call(struct fixture *fx, const struct call *c);
/* The host whose name is behind `after`; UINT32_MAX: none. */
uint32_t oracle_host_named(const struct fixture *fx, const char *text, const char *after);
/* A fault explains that host `by` received no answer of `named`. */
bool oracle_silence_explained(const struct fixture *fx, uint32_t named, uint32_t by);
/* Checks an error about a lost peer: NULL, or the mistake in it. */
const char *oracle_check_peer_error(const struct fixture *fx, const char *text);
/* No frame is in flight that must arrive. */
bool oracle_is_idle(const struct fixture *fx);
/* All have left, and it is idle. */
void oracle_check_leaks(struct fixture *fx);
void oracle_check_goodput(struct fixture *fx);
/* Seconds: a full frame over the longest path and back, with the longest scheduling delay. */
double oracle_round_trip(struct fixture *fx);
/* Operations begin; something happened other than an event of a frame; such an event. */
void oracle_idle_begin(struct fixture *fx);
void oracle_idle_note(struct fixture *fx);
void oracle_idle_record(struct fixture *fx, const struct cn_sim_record *record);

#endif
