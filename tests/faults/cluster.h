/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault tests on a lab. The driver runs inside `collnet lab shell`, as the parent of all ranks: a
 * rank is a fork that speaks to its host's daemon through the daemon's socket, so a job of 16 ranks
 * starts in milliseconds. What a rank does and what became of it stands in shared memory.
 *
 *   cluster.c   hosts, daemons, ranks as processes
 *   inject.c    the faults, and how they are healed
 *   model.c     what a rank calls, and every byte of it, from a seed
 *   driver.c    the command line; soak.c, trials.c, alarms.c the tests
 */
#ifndef FAULTS_CLUSTER_H
#define FAULTS_CLUSTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "topo/topo.h"
#include "util/util.h"

#define RANKS_MAX 256u
#define TEXT_MAX  400u
#define NOBODY	  UINT32_MAX
#define MS_PER_S  1000u

/* A rank, in shared memory: written by the rank until `ended`, read by the driver. */
struct slot {
	atomic_uint ops; /* operations that ended well */
	atomic_bool ended;
	uint64_t at_us; /* when the first error came, or the end */
	int status;	/* 0: it ended well */
	uint32_t wrong; /* bytes that are not the model's */
	char text[TEXT_MAX];
	pid_t pid; /* driver: 0 when it is reaped */
};

/* What all ranks of a job do. */
struct job {
	uint64_t seed;
	uint32_t number, ranks, local;
	bool mixed; /* all operations by the model; else alltoall of `bytes` */
	uint32_t bytes;
	uint32_t form_ms; /* until the team must be there */
	uint32_t op_ms;	  /* deadline of an operation */
	atomic_uint stop; /* a rank ends before this operation; UINT32_MAX: none */
};

struct host {
	const char *name;
	uint32_t vertex;
	pid_t daemon;	   /* whose usage the next two are */
	long fds, rss_kib; /* of its daemon's processes, at first */
};

struct shared {
	struct job job;
	struct slot slots[RANKS_MAX];
};

struct cluster {
	struct cn_topo *topo;
	struct host hosts[RANKS_MAX];
	uint32_t nhosts;
	struct shared *shared;
	const char *dir; /* $COLLNET_LAB_DIR */
	uint64_t random;
	uint32_t jobs;
};

uint64_t now_us(void);
void pause_ms(uint32_t ms);
uint32_t draw(struct cluster *c, uint32_t below);
uint64_t mix(uint64_t a, uint64_t b);
/* Where the word stands in the text, between other characters than those of names; or NULL. */
const char *find_word(const char *text, const char *word);

bool cluster_open(struct cluster *c, uint64_t seed);
void cluster_close(struct cluster *c);
uint32_t host_of(const struct cluster *c, uint32_t rank);

/* Processes of a host's daemon, the one that was started first; 0: none runs. */
#define DAEMON_PIDS 8u
uint32_t daemon_pids(const struct cluster *c, uint32_t host, pid_t out[DAEMON_PIDS]);
/* Starts the daemon again if it does not run. */
bool daemon_start(struct cluster *c, uint32_t host);
/*
 * Descriptors and memory of all daemons against what they were when this was first called for the
 * process; waits for them to settle. False: one leaks, and it is printed.
 */
bool daemons_usage(struct cluster *c, long *worst_fds, long *worst_kib);

/* Forks the ranks of shared->job. */
bool job_start(struct cluster *c);
/* Every rank but `except` has at least `ops` operations more than `than[rank]` (NULL: 0) within the
 * time, or has ended. */
bool job_progress(struct cluster *c, const uint32_t *than, uint32_t ops, uint32_t ms,
		  uint32_t except);
/* All ranks but `except` have ended within the time. */
bool job_ended(struct cluster *c, uint32_t ms, uint32_t except);
/* A rank cannot end of itself: those that did not are killed. All are reaped. */
void job_reap(struct cluster *c);
void job_print(const struct cluster *c, FILE *f);

/* model.c: in the rank's process; fills in the slot, returns when it is over. */
void rank_run(const struct cluster *c, uint32_t rank);

/* ---- faults (inject.c) ------------------------------------------------------------------ */

enum kind {
	FAULT_NONE,
	FAULT_RANK,	   /* kill -9 a rank */
	FAULT_DAEMON,	   /* kill -9 all processes of a daemon */
	FAULT_WORKER,	   /* kill -9 a daemon's child process only */
	FAULT_PARENT,	   /* kill -9 the process that has such a child only */
	FAULT_STOP_DAEMON, /* SIGSTOP, all processes of a daemon */
	FAULT_INTERFACE,   /* a host's interface is set down */
	FAULT_LINK,	   /* a switch's port to a host */
	FAULT_UPLINK,	   /* a switch's port to the root */
	FAULT_STOP_RANK,
	KINDS,
};

struct fault {
	enum kind kind;
	uint32_t rank, host; /* victims; UPLINK: host is one of those below the link */
	uint64_t at_us;
	uint32_t link;
	pid_t worker; /* WORKER, PARENT: the victim's */
};

const char *kind_name(enum kind k);
bool kind_find(const char *name, enum kind *out);
/* False: this lab has no such fault (no uplink, no parent process). */
bool fault_draw(struct cluster *c, enum kind k, struct fault *f);
bool fault_begin(struct cluster *c, struct fault *f);
/* Everything runs again; daemons that ended are started. */
bool fault_heal(struct cluster *c, const struct fault *f);
/* The rank is on the victim's node: what its error names is not looked at. */
bool fault_own(const struct cluster *c, const struct fault *f, uint32_t rank);
/* The first host, or the rank, that the text names is the one that was faulted, as the rank sees
 * it: "node h2 stopped answering node h5" accuses h2. */
bool fault_named(const struct cluster *c, const struct fault *f, uint32_t rank, const char *text);

/* ---- tests ------------------------------------------------------------------------------ */

int soak(struct cluster *c, uint64_t seed, uint32_t jobs);
int trials(struct cluster *c, enum kind k, uint32_t trials, const char *csv);
int alarms(struct cluster *c, uint32_t jobs, uint32_t load);

#endif
