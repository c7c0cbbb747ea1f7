/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario follows from its seed: a network, a job, its operations and faults. A draw depends on
 * the seed alone, so the seed suffices to replay a finding.
 *
 * Its fault profile determines which results are allowed:
 *
 *   NONE        no faults
 *   LOSS        all links lose, duplicate, reorder, corrupt and delay frames, up to the limits
 *               below: every operation succeeds
 *   OUTAGE      a host or link is down for up to OUTAGE_LIMIT: every operation succeeds
 *   HEAVY_LOSS  up to a fifth of the frames is lost, in bursts, on some links: operations may fail
 *               at their deadline, or because a node behind those links does not answer
 *   FAILURE     a host crashes, stops or is cut off for long, a rank dies or does not call:
 *               operations fail, and their errors name the culprit
 *
 * After HEAVY_LOSS and FAILURE all faults end, all ranks leave and join again, and a second list of
 * operations succeeds.
 */
#ifndef TESTS_SCENARIO_H
#define TESTS_SCENARIO_H

#include "coll/engine.h"
#include "tools/sim/core/sim.h"

#define LOSS_LIMIT	 20000u /* PROFILE_LOSS: parts per million per link */
#define OUTAGE_LIMIT	 (500 * CN_MS)
#define SUCCESS_DEADLINE (120000 * CN_MS) /* where every operation must succeed */
#define OPS_MAX		 8u
#define FAULTS_MAX	 4u

enum fault_profile {
	PROFILE_NONE,
	PROFILE_LOSS,
	PROFILE_OUTAGE,
	PROFILE_HEAVY_LOSS,
	PROFILE_FAILURE,
	PROFILES,
};

/* One collective operation of all ranks. */
struct op_plan {
	enum cn_op_kind op;
	const char *algorithm; /* NULL: the engine chooses */
	enum cn_permutation permutation;
	bool contention_aware;
	uint32_t window;
	uint32_t root;
	uint64_t bytes;
	bool ordered;	/* reductions */
	uint64_t sizes; /* vector operations: seed of the sizes, of which `bytes` is the mean */
};

/* Bytes from rank `from` to rank `to` of a vector operation: about a third of them 0. */
uint64_t scenario_size(const struct op_plan *p, uint32_t from, uint32_t to);

enum fault_kind {
	FAULT_LINK,    /* link (CN_TOPO_NONE: all), end: faults, from `at` to `until` */
	FAULT_CUT,     /* link, end 0 or 1: that port is deaf; 2: the cable is pulled */
	FAULT_PAUSE,   /* host */
	FAULT_CRASH,   /* host; for good, or until `until`, when it starts anew */
	FAULT_DIE,     /* rank: its process ends without leaving */
	FAULT_LEAVE,   /* rank: leaves in the middle */
	FAULT_NO_CALL, /* rank: does not call from operation `number` on */
};

struct fault_plan {
	enum fault_kind kind;
	cn_time at, until; /* after the first call */
	uint32_t link, end, host, rank, number;
	struct cn_sim_faults link_faults;
};

struct scenario {
	uint64_t seed;
	enum fault_profile profile;
	struct cn_topo *topo;
	struct cn_sim_config config;
	char network[160]; /* its description */
	uint32_t hosts, local, ranks;
	uint32_t nops, nafter; /* operations, and those after the faults */
	struct op_plan ops[OPS_MAX], after[OPS_MAX];
	uint32_t depth;	    /* outstanding operations per rank */
	bool late;	    /* pieces of reductions are combined a while after they could be */
	cn_time think;	    /* longest time between an end and the next call */
	cn_time deadline;   /* of each operation, from its call */
	uint32_t attackers; /* attackers.h; 0, which is drawn: none */
	uint32_t nfaults;
	struct fault_plan faults[FAULTS_MAX];
};

/* False: no memory. */
bool scenario_draw(uint64_t seed, struct scenario *s);
/* Replaces the faults: every link loses so many of its frames all the time. Every operation must
 * succeed, within a deadline that allows for the losses. */
void scenario_lose(struct scenario *s, uint32_t ppm);
/* Whether the hosts have a key, as a quarter of the scenarios' do. */
void scenario_authenticate(struct scenario *s, bool on);
void scenario_free(struct scenario *s);
void scenario_print(const struct scenario *s);
/* Whether every operation must succeed. */
bool scenario_must_succeed(const struct scenario *s);
const char *profile_name(enum fault_profile c);

#endif
