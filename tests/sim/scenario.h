/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From one number a whole scenario: a network, a job, the operations that it runs and what goes
 * wrong meanwhile. Drawing a scenario depends on the seed alone, so that a seed is all that has to
 * be kept of a finding.
 *
 * Its climate says what may be expected of it:
 *
 *   FAIR       nothing goes wrong
 *   WEATHER    all links lose, double, reorder, garble and delay some frames, up to the limits
 *              below: every operation ends well
 *   OUTAGE     a host or a link is gone for up to OUTAGE_LIMIT: every operation ends well
 *   STORM      up to a fifth of the frames is lost, in bursts, on some links: operations may fail
 *              at their deadline, or because a node behind those links does not answer
 *   DISASTER   a host crashes, freezes or is cut off for long, a rank dies or does not call:
 *              operations fail, and say who it was
 *
 * After a storm or disaster everything is mended, all ranks leave and join again, and a second list
 * of operations ends well.
 */
#ifndef TESTS_SCENARIO_H
#define TESTS_SCENARIO_H

#include "coll/engine.h"
#include "tools/sim/core/sim.h"

#define LOSS_LIMIT    20000u /* WEATHER: parts per million a link */
#define OUTAGE_LIMIT  (500 * CN_MS)
#define CALM_DEADLINE (120000 * CN_MS) /* where nothing may fail */
#define OPS_MAX	      8u
#define FAULTS_MAX    4u

enum climate {
	FAIR,
	WEATHER,
	OUTAGE,
	STORM,
	DISASTER,
	CLIMATES,
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
};

enum fault_kind {
	FAULT_WEATHER, /* link (CN_TOPO_NONE: all), end: faults, from `at` to `until` */
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
	struct cn_sim_faults weather;
};

struct scenario {
	uint64_t seed;
	enum climate climate;
	struct cn_topo *topo;
	struct cn_sim_config config;
	char network[160]; /* in words */
	uint32_t hosts, local, ranks;
	uint32_t nops, nafter; /* operations, and those after everything is mended */
	struct op_plan ops[OPS_MAX], after[OPS_MAX];
	uint32_t depth;	    /* operations outstanding a rank */
	cn_time think;	    /* longest time between an end and the next call */
	cn_time deadline;   /* of each operation, from its call */
	uint32_t attackers; /* attackers.h; 0, which is drawn: none */
	uint32_t nfaults;
	struct fault_plan faults[FAULTS_MAX];
};

/* False: no memory. */
bool scenario_draw(uint64_t seed, struct scenario *s);
/* Instead of what was drawn to go wrong: every link loses so much of its frames, all the time.
 * Every operation must end well. */
void scenario_lose(struct scenario *s, uint32_t ppm);
void scenario_free(struct scenario *s);
void scenario_print(const struct scenario *s);
/* Whether every operation must end well. */
bool scenario_is_calm(const struct scenario *s);
const char *climate_name(enum climate c);

#endif
