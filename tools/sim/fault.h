/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of `collnet sim --fault`, each at its time: as they are written (fault_parse.c), as they
 * happen, and which error follows from which (fault_run.c).
 */
#ifndef COLLNET_SIM_FAULT_H
#define COLLNET_SIM_FAULT_H

#include "tools/sim/core/job.h"

struct sim_case;
struct sim_outcome;

#define SIM_FAULTS_MAX CN_SIM_PARTITIONS
#define SIM_NO_FAULT   UINT32_MAX

enum sim_fault_kind {
	SIM_FAULT_CRASH,
	SIM_FAULT_RESTART,
	SIM_FAULT_PAUSE,
	SIM_FAULT_CUT,
	SIM_FAULT_REPAIR,
	SIM_FAULT_PARTITION,
	SIM_FAULT_LOSS, /* from here on: shares of the frames that enter links */
	SIM_FAULT_DUPLICATE,
	SIM_FAULT_REORDER,
	SIM_FAULT_CORRUPT,
};

struct sim_fault {
	const char *text; /* as specified; borrowed */
	enum sim_fault_kind kind;
	cn_time at, lasts; /* since the counted iterations began; 0: until the end */
	uint32_t host;	   /* CRASH, RESTART, PAUSE: index of a host; else CN_TOPO_NONE */
	uint32_t link;	   /* CUT, REPAIR, shares; CN_TOPO_NONE: all links */
	uint32_t ppm;
	uint8_t *side; /* PARTITION: [hosts], see cn_sim_partition(); else NULL; free() it */
};
/* The grammar is in fault_parse.c. `text` must live as long as *out. COLLNET_EINVAL, _ENOMEM. */
int sim_fault_parse(const struct cn_topo *t, const char *text, struct sim_fault *out,
		    struct cn_err *err);

/* The state of a fault at the end of a case. */
struct sim_fault_state {
	bool began;
	bool host_was_running; /* a restart without effect */
	cn_time at;
};

/* A rank whose operation failed, or did not end. */
struct sim_error {
	uint32_t rank, host; /* host: its vertex */
	int status;
	bool pending;
	uint32_t culprit; /* vertex of the host that the error names; CN_TOPO_NONE: none */
	uint32_t fault;	  /* the culprit's last one before the error, or the first of all */
	cn_time after;	  /* from that fault to the error */
	bool faulted;	  /* the fault was the culprit's */
	bool own;	  /* the fault was its own host's */
	char text[CN_ERR_TEXT];
};

/* Schedules the timed faults of a case whose counted iterations begin now; free `s` first. */
struct sim_armed;
int sim_faults_arm(struct cn_sim *s, const struct sim_case *c, struct sim_fault_state *states,
		   struct sim_armed **out, struct cn_err *err);
void sim_faults_free(struct sim_armed *a); /* NULL is ignored */
/* Runs until the last of them has ended; false: a host stays down or a link stays cut. */
bool sim_faults_over(struct sim_armed *a);
/* The ranks of the job that failed, into out->errors. */
int sim_faults_errors(const struct sim_armed *a, const struct cn_job *j, struct sim_outcome *out,
		      struct cn_err *err);

#endif
